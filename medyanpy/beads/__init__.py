"""Kinds of beads, one file each: the handle, what is checked when they are added, and what each letter does to them."""

from medyanpy.beads.filaments import Directors, Filaments
from medyanpy.beads.free import Balls, Beads
from medyanpy.beads.intriangle_points import InTrianglePoints
from medyanpy.beads.membranes import Membrane
from medyanpy.beads.oriented import OrientedBeads
from medyanpy.beads.rigid_bodies import RigidBodies
from medyanpy.beads.rods import Rods
from medyanpy.beads.surface_points import SurfacePoints
from medyanpy.handles import Handle

__all__ = [
    "Balls", "Beads", "Directors", "Filaments", "Handle", "InTrianglePoints", "Membrane", "OrientedBeads",
    "RigidBodies", "Rods", "SurfacePoints",
]  # fmt: skip
