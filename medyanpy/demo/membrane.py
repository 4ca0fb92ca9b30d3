"""Membrane of the demos: that of a cell, on any mesh; its forces, masses and facts."""

from collections.abc import Callable
from math import sqrt
from typing import Any

import numpy as np

import medyanpy as mp
from medyanpy.beads import Membrane
from medyanpy.demo.report import KT
from medyanpy.mesh.geometry import heights as heights_of

BENDING_MODULUS = 82.0  # 20 kT: lipid bilayers.
AREA_MODULUS = 50.0  # pN/nm: between a bilayer's (250) and that of a membrane with folds and caveolae to unfold.
# pN/nm²: holds the volume to a thousandth; a cell's (ion pumps, osmosis) holds it tighter but as slowly.
VOLUME_MODULUS = 1e-3
THIN = 0.1  # Triangles lower than this share of the median height do not tell the curvature.


def heights(mesh: mp.TriangleMesh) -> np.ndarray:
    """Return the lowest height of each triangle, (F,) nm."""
    return heights_of(mesh.vertices, mesh.faces, mesh._lengths)


def lowest_heights(mesh: mp.TriangleMesh) -> np.ndarray:
    """Return the lowest height of the triangles round each vertex, (V,) nm."""
    lowest = np.full(len(mesh.vertices), np.inf)
    np.minimum.at(lowest, mesh.faces.ravel(), np.repeat(heights(mesh), 3))
    return lowest


def thin_places(mesh: mp.TriangleMesh) -> np.ndarray:
    """Tell whether a vertex touches a thin triangle, (V,)."""
    return lowest_heights(mesh) < THIN * float(np.median(heights(mesh)))


def add_membrane_forces(system: mp.System, membrane: Membrane) -> None:
    """Add bending, area, volume, and the area of each triangle."""
    mesh = membrane.mesh
    system.add_force(mp.forces.MembraneBending(membrane, np.where(thin_places(mesh), 0.0, BENDING_MODULUS)))
    system.add_force(mp.forces.MembraneArea(membrane, AREA_MODULUS))
    if mesh.is_closed:
        system.add_force(mp.forces.MembraneVolume(membrane, VOLUME_MODULUS))
    # Bending and total area leave vertices free to slide within the membrane. Triangles that keep their areas to a
    # tenth hold them for the length of a demo, and leave the bending of a fluid membrane as it is (edge springs would
    # make it a solid shell). In millions of steps they are sheared to needles, see docs/parameters.md.
    areas = mesh.face_areas
    modulus = 100.0 * KT * areas / np.maximum(areas, THIN * float(np.median(areas))) ** 2
    system.add_force(mp.forces.MembraneArea(membrane, modulus, per_triangle=True, name="MembraneTriangleAreas"))


def about_forces(mesh: mp.TriangleMesh) -> str:
    return (
        f"bending {BENDING_MODULUS:g} pN nm, area {AREA_MODULUS:g} pN/nm, "
        + (f"volume {VOLUME_MODULUS:g} pN/nm², " if mesh.is_closed else "no volume to keep, ")
        + "each triangle's area to a tenth"
    )


def size_of(mesh: mp.TriangleMesh) -> str:
    parts = [f"{len(mesh.vertices)} vertices", f"{len(mesh.faces)} faces", f"{mesh.area * 1e-6:.3g} µm²"]
    if mesh.is_closed:
        parts.append(f"{mesh.volume * 1e-9:.3g} µm³")
    else:
        parts.append(f"{len(mesh.borders)} border{'s' * (len(mesh.borders) > 1)}")
    return ", ".join(parts)


def facts_of(mesh: mp.TriangleMesh, name: str) -> dict[str, Any]:
    """Return the facts of a mesh for the summary."""
    return {
        "name": name,
        "vertices": len(mesh.vertices),
        "faces": len(mesh.faces),
        "closed": mesh.is_closed,
        "genus": mesh.genus,
        "area": mesh.area,
        "volume": mesh.volume if mesh.is_closed else None,
    }


def vertex_masses(
    mesh: mp.TriangleMesh, load: float, timestep: float, phase: float, system_with: Callable[[np.ndarray], mp.System]
) -> np.ndarray:
    """Return masses (V,) with which the timestep resolves every vibration of the vertices, ω dt <= phase. Their ratios
    are guessed from the size of triangles, stiffness ~ 1/height²; all are scaled by the fastest vibration, measured. No
    vertex is lighter than five times its share of `load`, the mass of proteins, which push it about; those of thin
    triangles travel less than a hundredth of the height in a thousand steps."""
    thin, lowest = thin_places(mesh), lowest_heights(mesh)
    typical = float(np.median(lowest[~thin])) if (~thin).any() else float(np.median(lowest))
    ratio = (typical / np.maximum(lowest, THIN * typical)) ** 2
    share = np.bincount(mesh.faces.ravel(), np.repeat(mesh.face_areas, 3), len(ratio)) / (3.0 * mesh.area)
    # A stiffness of 30 κ/l² is that of bending on a regular triangular lattice, at its shortest wave.
    mass = ratio * 30.0 * BENDING_MODULUS / typical**2 * (timestep / phase) ** 2
    held = KT * (1000.0 * timestep / (0.01 * lowest)) ** 2
    for _ in range(3):
        mass = np.maximum(mass, 5.0 * load * share)
        masses = np.where(thin, np.maximum(held, mass), mass)
        found = sqrt(_fastest(system_with(masses), masses, timestep)) * timestep
        mass = mass * max(1.0, (found / phase) ** 2)
        if found <= phase:
            break
    return np.asarray(np.where(thin, np.maximum(held, mass), mass))


def _fastest(system: mp.System, masses: np.ndarray, timestep: float) -> float:
    """Return the largest eigenvalue of M^-1/2 K M^-1/2 of the vertices, ω², by power iteration on central differences,
    points riding along. Thirty iterations come within a few percent; a tenth is added."""
    # The context serves for its forces only: with masses that are still a guess no step of the run's length would be
    # stable.
    context = mp.Context(system, mp.SplittingIntegrator("BAGAB", 1e-6 * timestep), threads=1)
    handles: Any = system.topology.handles
    vesicle, proteins = handles
    x = np.array(context.get_state(positions=True).positions)
    rows = vesicle.beads
    weights = proteins.barycentric[:, :, None]
    corners = vesicle.mesh.faces[proteins.triangles]

    def force(shift: np.ndarray) -> np.ndarray:
        moved = x.copy()
        moved[rows] += shift
        context.set_positions(moved)
        f = context.get_state(forces=True).forces
        out = np.array(f[rows])
        # Forces that points pass on are not in the vertices' rows.
        np.add.at(out, corners, weights * f[proteins.beads][:, None, :])
        return out

    light = masses < 1e6 * np.median(masses)
    root = np.sqrt(masses)[:, None]
    u = np.random.default_rng(1).normal(size=(len(masses), 3)) * light[:, None]
    largest = 0.0
    reach = 1e-3 * float(np.median(heights(vesicle.mesh)))
    for _ in range(30):
        u /= np.linalg.norm(u)
        shift = u / root
        scale = reach / np.abs(shift).max()
        u = (force(-scale * shift) - force(scale * shift)) / (2.0 * scale * root) * light[:, None]
        largest = float(np.linalg.norm(u))
        if largest == 0.0:
            break
    return 1.1 * largest
