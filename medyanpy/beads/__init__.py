"""Kinds of beads, one file each: the handle, the checks of its arguments, and its operations for each letter."""

from medyanpy.beads.constraints import Constraints
from medyanpy.beads.filaments import Directors, Filaments
from medyanpy.beads.free import Balls, Beads
from medyanpy.beads.intriangle_points import InTrianglePoints
from medyanpy.beads.membranes import Membrane
from medyanpy.beads.oriented import OrientedBeads
from medyanpy.beads.rigid_bodies import RigidBodies
from medyanpy.beads.rods import Rods
from medyanpy.beads.surface_points import SurfacePoints
from medyanpy.core.handles import Handle

#: For the kinds defined here: every State has them, with no rows where there are no such beads.
COLUMNS = tuple(dict.fromkeys([*Handle.columns, *InTrianglePoints.columns, *OrientedBeads.columns]))

__all__ = [
    "COLUMNS", "Balls", "Beads", "Constraints", "Directors", "Filaments", "Handle", "InTrianglePoints", "Membrane",
    "OrientedBeads", "RigidBodies", "Rods", "SurfacePoints",
]  # fmt: skip
