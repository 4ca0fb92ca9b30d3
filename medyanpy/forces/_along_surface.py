"""Pair forces by the distance along a surface: which beads may have one, and by which kernel it is found."""

from typing import TYPE_CHECKING, Any

import numpy as np

from medyanpy._kernels.program import Operation
from medyanpy._kernels.selected import along_surface as kernel
from medyanpy.beads import SurfacePoints
from medyanpy.errors import ParameterError, TopologyError
from medyanpy.sites import Sites
from medyanpy.surfaces.surface import PythonSurface

if TYPE_CHECKING:
    from medyanpy.handles import Handle
    from medyanpy.layout import Layout

# The largest curvature that is found may be missed by so much.
_MARGIN = 1.02


def expect_on_surface(what: str, beads: Any) -> None:
    """Refuse handles, or sites, that have no distance along a surface; beads given by their numbers are looked at when
    a force is bound."""
    if isinstance(beads, Sites):
        raise TopologyError(f"{what}: sites have no distance along a surface; give surface points (along_surface)")
    for handle in beads if isinstance(beads, tuple) else ():
        if not isinstance(handle, SurfacePoints):
            raise TopologyError(
                f"{what}: {handle!r} has no distance along a surface (along_surface); surface points have"
            )
        if isinstance(handle.surface, PythonSurface):
            raise TopologyError(
                f"{what}: the surface of {handle!r} is given by Python functions: give it as an expression, and there "
                "are distances along it (along_surface)"
            )


def along_surface(layout: "Layout", beads: np.ndarray, cutoff: float, name: str, *arguments: Any) -> Operation:
    """The operation of a pair force by distances along the surface that its beads (m,) live on, up to a cutoff; with
    what the operation in space is made of.

    Raises
    ------
    TopologyError
        Beads that live on no surface, or not all on the same.
    ParameterError
        A cutoff beyond which shortest paths need not be unique.
    """
    handles = [h for h in layout.topology.handles if np.isin(h.with_room, beads).any()]
    expect_on_surface(name, tuple(handles))
    for handle in handles[1:]:
        if not handle.surface.is_same(handles[0].surface):
            raise TopologyError(
                f"{name}: {handles[0]!r} and {handle!r} live on different surfaces: no way leads from one to the other "
                "(along_surface); give each a force of its own"
            )
    curvature = _largest_curvature(name, handles, cutoff)
    return kernel.PairsAlongSurface(name, *arguments, handles[0].surface.program, curvature, layout.threads)


def _largest_curvature(name: str, handles: "list[Handle]", cutoff: float) -> float:
    """1/nm; no principal curvature is larger where beads of some handles may come, or their run fails."""
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
