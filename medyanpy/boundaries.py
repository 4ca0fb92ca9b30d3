"""Walls that bound space: the planes, spheres and capsules of `surfaces`, from inside by default.

>>> import medyanpy as mp
>>> floor = mp.boundaries.Plane(point=(0.0, 0.0, -50.0), normal=(0.0, 0.0, 1.0))
>>> floor.distance([[10.0, 0.0, -20.0], [0.0, 0.0, -51.0]]).tolist()
[30.0, -1.0]
"""

from medyanpy import surfaces
from medyanpy._tools.types import Numbers
from medyanpy.surfaces import Boundary, Plane

__all__ = ["Boundary", "Capsule", "Plane", "Sphere"]


class Sphere(surfaces.Sphere):
    """A `surfaces.Sphere` that holds beads within it, or keeps them out."""

    _qualifier = "boundaries."

    def __init__(self, center: "Numbers" = (0.0, 0.0, 0.0), radius: float = 1.0, inside: bool = True) -> None:
        super().__init__(radius, center, inside=inside)


class Capsule(surfaces.Capsule):
    """A `surfaces.Capsule` that holds beads within it, or keeps them out."""

    _qualifier = "boundaries."

    def __init__(self, a: "Numbers", b: "Numbers", radius: float, inside: bool = True) -> None:
        super().__init__(a, b, radius, inside=inside)
