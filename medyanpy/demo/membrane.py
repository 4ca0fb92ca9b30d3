"""Membrane of the demos: that of a cell, on any mesh."""

import numpy as np

from medyanpy import units
from medyanpy.beads import Membrane
from medyanpy.demo.report import TEMPERATURE
from medyanpy.forces import MembraneArea, MembraneBending, MembraneVolume
from medyanpy.mesh import TriangleMesh
from medyanpy.mesh.geometry import heights as heights_of
from medyanpy.system import System

# 20 kT: lipid bilayers.
BENDING_MODULUS = 82.0
# pN/nm: between a bilayer's (250) and that of a membrane with folds and caveolae to unfold.
AREA_MODULUS = 50.0
# pN/nm²: holds the volume to a thousandth; a cell's (ion pumps, osmosis) holds it tighter but as slowly.
VOLUME_MODULUS = 1e-3
# Triangles lower than this share of the median height do not tell the curvature.
THIN = 0.1


def heights(mesh: TriangleMesh) -> np.ndarray:
    """Return the lowest height of each triangle, (F,) nm."""
    return heights_of(mesh.vertices, mesh.faces, mesh._lengths)


def lowest_heights(mesh: TriangleMesh) -> np.ndarray:
    """Return the lowest height of the triangles round each vertex, (V,) nm."""
    lowest = np.full(len(mesh.vertices), np.inf)
    np.minimum.at(lowest, mesh.faces.ravel(), np.repeat(heights(mesh), 3))
    return lowest


def thin_places(mesh: TriangleMesh) -> np.ndarray:
    """Tell whether a vertex touches a thin triangle, (V,)."""
    return lowest_heights(mesh) < THIN * float(np.median(heights(mesh)))


def add_membrane_forces(system: System, membrane: Membrane) -> None:
    """Add bending, area, volume, and the area of each triangle."""
    mesh = membrane.mesh
    system.add_force(MembraneBending(membrane, np.where(thin_places(mesh), 0.0, BENDING_MODULUS)))
    system.add_force(MembraneArea(membrane, AREA_MODULUS))
    if mesh.is_closed:
        system.add_force(MembraneVolume(membrane, VOLUME_MODULUS))
    # Bending and total area leave vertices free to slide within the membrane. Triangles that keep their areas to a
    # tenth hold them for the length of a demo, and leave the bending of a fluid membrane as it is (edge springs would
    # make it a solid shell). In millions of steps they are sheared to needles, see docs/parameters.md.
    areas = mesh.face_areas
    kT = TEMPERATURE * units.boltzmann
    modulus = 100.0 * kT * areas / np.maximum(areas, THIN * float(np.median(areas))) ** 2
    system.add_force(MembraneArea(membrane, modulus, per_triangle=True, name="MembraneTriangleAreas"))


def about_membrane_forces(mesh: TriangleMesh) -> str:
    return (
        f"bending {BENDING_MODULUS:g} pN nm, area {AREA_MODULUS:g} pN/nm, "
        + (f"volume {VOLUME_MODULUS:g} pN/nm², " if mesh.is_closed else "no volume to keep, ")
        + "each triangle's area to a tenth"
    )
