"""Walls that bound space. A boundary is geometry alone; forces and flows use it.

>>> import medyanpy as mp
>>> floor = mp.boundaries.Plane(point=(0.0, 0.0, -50.0), normal=(0.0, 0.0, 1.0))
>>> floor.distance([[10.0, 0.0, -20.0], [0.0, 0.0, -51.0]]).tolist()
[30.0, -1.0]
"""

from medyanpy.boundaries.plane import Boundary, Plane
from medyanpy.boundaries.round import Capsule, Sphere

__all__ = ["Boundary", "Capsule", "Plane", "Sphere"]
