"""Groups of beads that move as one where a periodic box changes its lengths."""

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from medyanpy.beads.chains import Chains
from medyanpy.beads.filaments import Directors
from medyanpy.beads.intriangle_points import InTrianglePoints
from medyanpy.beads.surface_points import SurfacePoints
from medyanpy.errors import TopologyError

if TYPE_CHECKING:
    from medyanpy.core.layout import Layout

__all__ = ["units_of"]


def units_of(what: str, layout: "Layout") -> list[np.ndarray]:
    """Return places of beads as units that move as one: k units of b beads each in arrays (k, b).

    Free beads, vertices and bodies are one each, filaments and rods are wholes; in-triangle points and directors are in
    none. Inactive rows are units of their own.

    Raises
    ------
    TopologyError
        Beads that cannot be moved: those that are fixed, on surfaces, or under constraints written by a user.
    """
    if layout.topology.joint is not None:
        raise TopologyError(f"{what}: beads with constraints of your own cannot be moved with the box")
    out = []
    for handle in layout.handles:
        if isinstance(handle, InTrianglePoints | Directors):
            continue
        if handle.kind.fixed_beads.any():
            bead = int(handle.beads[np.argmax(handle.kind.fixed_beads)])
            raise TopologyError(f"{what}: bead {bead} ({handle.name!r}) is fixed, and cannot be moved with the box")
        if isinstance(handle, SurfacePoints):
            raise TopologyError(f"{what}: {handle.name!r} is on a surface, and cannot be moved with the box")
        if isinstance(handle, Chains):
            places = layout.internal(handle.beads)
            out += [places[a:b][None] for a, b in pairwise(handle.starts)]
        else:
            out.append(layout.internal(handle.kind.with_room)[:, None])
    return out
