"""Implicit surfaces g(x, y, z) = 0: beads can be held to them, and planes, spheres and capsules can be walls.

>>> import medyanpy as mp
>>> torus = mp.surfaces.Polynomial("(x**2 + y**2 + z**2 + R**2 - r**2)**2 - 4*R**2*(x**2 + y**2)", R=3.0, r=1.0)
>>> torus.gradient([[4.0, 0.0, 0.0]]).tolist()
[[96.0, 0.0, 0.0]]
"""

from medyanpy.surfaces.boundaries import Boundary, Capsule, Plane, Sphere
from medyanpy.surfaces.polynomial import Inflated, Lemniscate, Polynomial
from medyanpy.surfaces.shapes import Cylinder, Ellipsoid, Gyroid, Torus
from medyanpy.surfaces.surface import PythonSurface, Surface

__all__ = [
    "Boundary", "Capsule", "Cylinder", "Ellipsoid", "Gyroid", "Inflated", "Lemniscate", "Plane", "Polynomial",
    "PythonSurface", "Sphere", "Surface", "Torus",
]  # fmt: skip
