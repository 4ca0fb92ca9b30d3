"""Kinds of beads, one file each: the handle, the checks of its arguments, and its operations for each letter."""

from medyanpy.beads.constraints import Constraints
from medyanpy.beads.directors import Directors
from medyanpy.beads.filaments import Filaments, GrowingFilaments
from medyanpy.beads.free import Balls, BallsOfSpecies, Beads, BeadsKind, BeadsOfSpecies
from medyanpy.beads.intriangle_points import InTrianglePoints, PointsKind
from medyanpy.beads.lattice import Lattice
from medyanpy.beads.membranes import Membrane
from medyanpy.beads.oriented import OrientedBeads, OrientedKind
from medyanpy.beads.rigid_bodies import RigidBodies, RigidBodiesOfSpecies
from medyanpy.beads.rods import Rods
from medyanpy.beads.surface_points import SurfacePoints
from medyanpy.core.handles import Handle
from medyanpy.core.kinds import Kind

#: For the kinds defined here: every State has them, with no rows where there are no such beads.
COLUMNS = tuple(dict.fromkeys([*Kind.columns, *PointsKind.columns, *OrientedKind.columns]))

__all__ = [
    "COLUMNS", "Balls", "BallsOfSpecies", "Beads", "BeadsKind", "BeadsOfSpecies", "Constraints", "Directors",
    "Filaments", "GrowingFilaments", "Handle", "InTrianglePoints", "Kind", "Lattice", "Membrane", "OrientedBeads",
    "RigidBodies", "RigidBodiesOfSpecies", "Rods", "SurfacePoints",
]  # fmt: skip
