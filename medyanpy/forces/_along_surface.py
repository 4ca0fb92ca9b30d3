"""Pair forces by the distance along a surface: which points may have one, and by which kernel it is found."""

from typing import Any

import numpy as np

from medyanpy._kernels.accumulate import Accumulator
from medyanpy._kernels.mesh_pairs import MeshPairs
from medyanpy._kernels.program import Operation
from medyanpy.beads import InTrianglePoints
from medyanpy.errors import TopologyError
from medyanpy.handles import Handle
from medyanpy.sites import Sites


def expect_on_surface(what: str, beads: Any) -> None:
    """Refuse handles, or sites, that have no distance along a surface; beads given by their numbers are looked at when
    a force is bound."""
    if isinstance(beads, Sites):
        raise TopologyError(f"{what}: sites have no distance along a surface; give in-triangle points (along_surface)")
    for handle in beads if isinstance(beads, tuple) else ():
        if not isinstance(handle, InTrianglePoints):
            raise TopologyError(
                f"{what}: {handle!r} lives on no surface, so it has no distance along one (along_surface); "
                "in-triangle points have"
            )


def along_surface(layout: Any, beads: np.ndarray, groups: np.ndarray, name: str, *arguments: Any) -> Operation:
    """The operation of a pair force by distances along the surface that its beads (m,) live on, 1: of the first group,
    2: of the second, 3: of both; with what the operation in space is made of.

    Raises
    ------
    TopologyError
        Beads that live on no surface, or no two that live on the same.
    """
    handles: list[Handle] = [h for h in layout.topology.handles if np.isin(h.beads, beads).any()]
    expect_on_surface(name, tuple(handles))
    of_a, of_b = (
        {h.membrane for h in handles if np.isin(h.beads, beads[groups & bit > 0]).any()} for bit in (1, 2)
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
