"""Coulomb's energy in a periodic box, by Ewald's sum: pairs within range, and waves."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from medyanpy._kernels.selected import ewald, pairs
from medyanpy.errors import ParameterError

if TYPE_CHECKING:
    from medyanpy._kernels.core.neighbors import NeighborList
    from medyanpy._kernels.core.program import Operation
    from medyanpy.core.layout import Layout

__all__ = ["bind_ewald", "expect_lattice", "splitting"]

# Errors of pairs that are left out add up at random: with this, to 0.04 of the tolerance times the root of the number
# of neighbours within the cutoff, its bound for 600 of them.
_MANY = 3.6
# Waves end smoothly, over the last twentieth.
_LONGER = 1.05


def splitting(cutoff: float, tolerance: float) -> tuple[float, float]:
    """Return the splitting a and the last wave number, both 1/nm, rounded: logarithms may differ in their last bits."""
    reach = math.sqrt(_MANY - math.log(tolerance))
    a = float(f"{reach / cutoff:.6g}")
    return a, float(f"{2.0 * _LONGER * reach * a:.6g}")


def expect_lattice(force: str, layout: "Layout", cutoff: float | None) -> None:
    """Refuse a box that is open along some direction, and a cutoff missing in a box or given in open space."""
    if not layout.is_periodic:
        if cutoff is not None:
            raise ParameterError(
                f"{force}: cutoff = {cutoff:g} nm splits Ewald's sum in a periodic box, and the system has none: a "
                "truncated 1/r is another energy. Leave it out; for such an energy take CustomPair"
            )
        return
    if not layout.box.all():
        raise ParameterError(
            f"{force}: the box is open along {'xyz'[int(np.argmin(layout.box))]}, but Ewald's sum needs all three "
            "directions periodic: give it a length there, several times that of the others for a slab"
        )
    if cutoff is None:
        raise ParameterError(
            f"{force} acts at any distance, and in a periodic box on all images: give cutoff=, up to which pairs are "
            "summed one by one, the rest by waves"
        )


def bind_ewald(
    force: str, layout: "Layout", members: Any, charges: np.ndarray, neighbors: "NeighborList",
    excluded: tuple[np.ndarray, np.ndarray], constant: float, cutoff: float, tolerance: float,
) -> "Operation":  # fmt: skip
    """Make the operation; `excluded` lists numbers of members that each excludes."""
    a, last = splitting(cutoff, tolerance)
    own = np.ascontiguousarray(charges)[:, None]
    near = pairs.ScreenedCharges(force, constant, a, cutoff, own, neighbors, members.table)
    start, ignored = excluded
    place = np.full(members.n_numbers, -1, np.int32)
    place[members.number] = np.arange(len(members.row))
    operation = ewald.Ewald(
        force, near, members.row, own[:, 0], start, place[ignored], members.table, constant, a, last
    )
    operation.acts_on_points = members.on_points
    return operation
