"""The membrane of the demos: that of a cell, on any mesh."""

import numpy as np

from medyanpy import units
from medyanpy.demo.report import TEMPERATURE
from medyanpy.forces import MembraneArea, MembraneBending, MembraneEdgeSprings, MembraneVolume
from medyanpy.mesh import TriangleMesh
from medyanpy.system import System
from medyanpy.topology import Membrane

# 20 kT: lipid bilayers.
BENDING_MODULUS = 82.0
# pN/nm: between a bilayer's (250) and that of a membrane with folds and caveolae to unfold.
AREA_MODULUS = 50.0
# pN/nm²: holds the volume to a thousandth; a cell's (ion pumps, osmosis) holds it tighter but as slowly.
VOLUME_MODULUS = 1e-3
# Triangles lower than this share of the median height are no place for curvature.
THIN = 0.1


def heights(mesh: TriangleMesh) -> np.ndarray:
    """(F,) the lowest height of each triangle, nm."""
    corners = mesh.vertices[mesh.faces]
    longest = np.linalg.norm(corners - np.roll(corners, 1, axis=1), axis=2).max(axis=1)
    return 2.0 * mesh.face_areas / longest


def lowest_heights(mesh: TriangleMesh) -> np.ndarray:
    """(V,) the lowest height of the triangles round each vertex, nm."""
    lowest = np.full(len(mesh.vertices), np.inf)
    np.minimum.at(lowest, mesh.faces.ravel(), np.repeat(heights(mesh), 3))
    return lowest


def thin_places(mesh: TriangleMesh) -> np.ndarray:
    """(V,) whether a vertex touches a thin triangle."""
    return lowest_heights(mesh) < THIN * float(np.median(heights(mesh)))


def add_membrane_forces(system: System, membrane: Membrane) -> None:
    """Bending, area, volume and weak springs."""
    mesh = membrane.mesh
    height = heights(mesh)
    system.add_force(MembraneBending(membrane, np.where(thin_places(mesh), 0.0, BENDING_MODULUS)))
    system.add_force(MembraneArea(membrane, AREA_MODULUS))
    if mesh.is_closed:
        system.add_force(MembraneVolume(membrane, VOLUME_MODULUS))
    # Bending and area leave vertices free to slide within the membrane. Springs that are this weak let them
    # slide by some 5 % of a triangle.
    sides = mesh.edge_faces
    of_edge = np.minimum(height[sides[:, 0]], np.where(sides[:, 1] >= 0, height[sides[:, 1]], np.inf))
    kT = TEMPERATURE * units.boltzmann
    springs = 200.0 * kT / np.maximum(of_edge, THIN * float(np.median(height))) ** 2
    system.add_force(MembraneEdgeSprings(membrane, springs))


def about_membrane_forces(mesh: TriangleMesh) -> str:
    return (
        f"bending {BENDING_MODULUS:g} pN nm, area {AREA_MODULUS:g} pN/nm, "
        + (f"volume {VOLUME_MODULUS:g} pN/nm², " if mesh.is_closed else "no volume to keep, ")
        + "weak springs along the edges"
    )
