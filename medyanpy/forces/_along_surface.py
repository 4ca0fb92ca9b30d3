"""Pair forces by the distance along a surface: beads that may have one, and kernels that find it."""

from typing import TYPE_CHECKING, Any

import numpy as np

from medyanpy._kernels.core.accumulate import Accumulator
from medyanpy._kernels.core.program import Operation
from medyanpy._kernels.forces.along_surface import PairsAlongSurface
from medyanpy._kernels.forces.mesh_pairs import MeshPairs
from medyanpy.beads import InTrianglePoints, SurfacePoints
from medyanpy.core.sites import Sites
from medyanpy.errors import ParameterError, TopologyError
from medyanpy.forces._arguments import Beads
from medyanpy.surfaces.surface import PythonSurface

if TYPE_CHECKING:
    from medyanpy.core.handles import Handle
    from medyanpy.core.layout import Layout

# The error allowed for the largest curvature that is found.
_MARGIN = 1.02


def expect_on_surface(what: str, beads: "Beads") -> None:
    """Refuse handles, or sites, without a distance along a surface; beads by number are checked when a force is
    bound."""
    if isinstance(beads, Sites):
        raise TopologyError(
            f"{what}: sites have no distance along a surface; give in-triangle points or surface points (along_surface)"
        )
    for handle in beads if isinstance(beads, tuple) else ():
        if not isinstance(handle, InTrianglePoints | SurfacePoints):
            raise TopologyError(
                f"{what}: {handle!r} lives on no surface, so it has no distance along a surface (along_surface); "
                "in-triangle points and surface points have"
            )
        if isinstance(handle, SurfacePoints) and isinstance(handle.surface, PythonSurface):
            raise TopologyError(
                f"{what}: the surface of {handle!r} is given by Python functions: give it as an expression, and there "
                "are distances along it (along_surface)"
            )


def along_surface(
    layout: "Layout", beads: np.ndarray, groups: np.ndarray, cutoff: float, name: str, *arguments: Any
) -> Operation:
    """Make the operation of a pair force by distances along the surface on which its beads (m,) live.

    Groups are 1: of the first group, 2: of the second, 3: of both. Distances go up to a cutoff. Other arguments are
    those of the operation in space. Raises TopologyError for beads that live on no surface, no two on the same
    membrane, or not all on the same implicit surface, ParameterError for a cutoff beyond which shortest paths need not
    be unique.
    """
    handles: list[Any] = [h for h in layout.topology.handles if np.isin(h.kind.with_room, beads).any()]
    expect_on_surface(name, tuple(handles))
    on_meshes = [handle for handle in handles if isinstance(handle, InTrianglePoints)]
    if not on_meshes:
        for handle in handles[1:]:
            if not handle.surface.is_same(handles[0].surface):
                raise _apart(name, handles[0], handle)
        curvature = _largest_curvature(name, handles, cutoff)
        return PairsAlongSurface(name, *arguments, handles[0].surface.program, curvature, layout.threads)
    other = next((handle for handle in handles if handle not in on_meshes), None)
    if other is not None:
        raise _apart(name, on_meshes[0], other)
    of_a, of_b = (
        {h.membrane for h in handles if np.isin(h.kind.with_room, beads[groups & bit > 0]).any()} for bit in (1, 2)
    )
    if of_a and of_b and not of_a & of_b:
        a, b = (sorted(m.name for m in of)[0] for of in (of_a, of_b))
        raise TopologyError(
            f"{name}: no points of one group live on a membrane of the other ({a!r}, {b!r}): no way leads from one to "
            "the other (along_surface)"
        )
    of_vertices, of_points = layout.numbers_of_membranes()
    of_slots = np.concatenate([of_vertices, of_points])
    return MeshPairs(name, *arguments, Accumulator(len(of_slots), layout.threads, of_slots, of_points))


def _apart(name: str, one: "Handle", other: "Handle") -> TopologyError:
    return TopologyError(
        f"{name}: {one!r} and {other!r} live on different surfaces: no way leads from one to the other "
        "(along_surface); give each a force of its own"
    )


def _largest_curvature(name: str, handles: "list[Any]", cutoff: float) -> float:
    """Return a bound of the principal curvatures where beads of some handles may come, 1/nm; beyond it a run fails."""
    surface = handles[0].surface
    x = np.concatenate([handle.positions for handle in handles])
    found = surface.principal_curvatures(x).max(initial=0.0)
    whole = np.isfinite(surface.bounding_box).all()
    if whole:
        found = max(found, surface.largest_curvature)
    if not cutoff * found < np.pi:
        raise ParameterError(
            f"{name}: two beads can be joined by more than one way along {surface!r} that is shorter than the cutoff "
            f"{cutoff:.6g} nm, or these end: it must be below {np.pi / found:.6g} nm, π times the smallest radius of "
            "curvature (along_surface)"
        )
    return min(_MARGIN * found, np.pi / cutoff) if whole else np.pi / cutoff
