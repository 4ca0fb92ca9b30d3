"""Repulsion of ellipsoids."""

from dataclasses import InitVar
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from medyanpy._kernels.forces.radial import Radial, radial_values
from medyanpy._kernels.selected import ellipsoids
from medyanpy._tools.types import Numbers
from medyanpy.core.handles import handles_in
from medyanpy.core.sites import Sites
from medyanpy.errors import ParameterError, TopologyError
from medyanpy.forces._arguments import Beads, Rows
from medyanpy.forces._base import Given, argument, declared, number
from medyanpy.forces._contact import ENDS, FORMS, expect_form
from medyanpy.forces._pair_force import PairForce, Profile

if TYPE_CHECKING:
    from medyanpy._kernels.core.program import Operation
    from medyanpy.core.handles import Handle
    from medyanpy.core.layout import Layout

__all__ = ["EllipsoidRepulsion"]

_GROUPS = "Oriented beads; beads of any other kind as spheres. As in `SoftSphere`."


@declared
class EllipsoidRepulsion(PairForce):
    r"""Repulsion of ellipsoids, by how much two of them must grow to touch.

    .. math:: U = \sum_{(i, j)} 4 \varepsilon \left[\mu_{ij}^{-12} - \mu_{ij}^{-6}\right] + \varepsilon
              \quad\text{for}\; \mu_{ij} < 2^{1/6},
              \qquad \text{or, soft,}\quad \sum_{(i, j)} \varepsilon\,(1 - \mu_{ij})^2 \quad\text{for}\; \mu_{ij} < 1

    over all pairs with one bead in each group, each pair once. μ is the contact function of Perram and Wertheim: two
    ellipsoids at fixed centres and orientations touch when both grow by it. It is below 1 where they overlap.

    Raises
    ------
    ParameterError
        A number outside its domain or of another shape. Different semi-axes for one bead that is in both groups. No
        sphere for a bead that does not turn.
    TopologyError
        As `SoftSphere`; sites.

    Notes
    -----
    Spheres of radii a and b have μ = r/(a + b): with WCA they interact as those of `WCA` with σ = a + b, soft as those
    of `SoftSphere` with the stiffness 2ε/(a + b)². Surfaces of equal energy are ellipsoids of one shape: at kT, the
    ellipsoid itself with WCA and ε = kT, and one smaller by √(kT/ε) with the soft form and ε ≫ kT. Ellipsoids with the
    same centre have no finite force with WCA, and none in the soft form, which is the one for random starts.

    Any semi-axes are allowed. Rounding errors of forces grow as (a/b)² with the ratio of the largest to the smallest:
    1e-13 of the force at 10 : 1. The range is the sum of the largest semi-axes: very long ones among many short ones
    are slow.

    References
    ----------
    J. W. Perram, M. S. Wertheim, J. Comput. Phys. 58, 409 (1985).
    """

    group_a: InitVar["Beads"] = argument("handle, list of handles, or (n,) int", _GROUPS)
    group_b: InitVar["Beads"] = argument("handle, list of handles, or (n,) int", _GROUPS)
    epsilon: float = number(
        "pN nm", "ε: with WCA the energy of two ellipsoids that touch, soft that of two with the same centre.",
        at_least=0.0,
    )  # fmt: skip
    semi_axes: Given["Numbers", np.ndarray] = number(
        "nm", "Those of the beads of `group_a` along the axes of the body frame: the same for all, or for each, in the "
        "order of the group. Of beads that do not turn all three must be equal.", above=0.0, per="_beads_a", size=3,
    )  # fmt: skip
    semi_axes_b: Given["Numbers | None", np.ndarray | None] = number(
        "nm", "Of the beads of `group_b`; `semi_axes` where none are given.",
        default=None, above=0.0, per="_beads_b", size=3,
    )  # fmt: skip
    form: Given[Literal["WCA", "soft"], str] = argument(
        '"WCA" or "soft"', default="WCA", kw_only=True, attribute="Which of the two energies."
    )
    exclusions: Given["Rows | None", np.ndarray] = argument(
        "(E, 2) int, optional", "As in `SoftSphere`.", default=None, kw_only=True
    )
    skin: float | None = number(
        "nm", "As in `SoftSphere`; 0.4 times the range where none is given.", default=None, kw_only=True, at_least=0.0
    )

    def _take(self, given: dict[str, Any]) -> None:
        title = given["name"] or type(self).__name__
        if isinstance(given["group_a"], Sites) or isinstance(given["group_b"], Sites):
            raise TopologyError(f"{title}: groups must be handles or bead numbers: sites have no orientation")
        self._form = expect_form(title, given["form"])
        super()._take(given)

    def _checked(self, **numbers: Any) -> dict[str, Any]:
        checked = super()._checked(**numbers)
        axes, n = checked["semi_axes"], len(self._beads_b)
        if checked["semi_axes_b"] is None and axes.ndim == 2 and len(axes) != n:
            raise ParameterError(
                f"{self.name}: give semi_axes_b=, because semi_axes has {len(axes)} rows and group_b has {n} beads"
            )
        return checked

    def _axes_of_beads(self, layout: "Layout") -> np.ndarray:
        """Return semi-axes (n, 3) by bead number; the groups have been checked."""
        topology = layout.topology
        turns = np.isin(np.arange(layout.n), layout.order[layout.oriented_places])
        out = np.full((layout.n, 3), np.nan)
        own = ("semi_axes", "semi_axes" if self._numbers["semi_axes_b"] is None else "semi_axes_b")
        by_species = self._axes_by_species()
        for handle, table in by_species.items():
            out[handle.kind.with_room] = 1.0
            out[handle.beads] = table[handle._of_species]
        for beads, group, name in zip((self._beads_a, self._beads_b), self._groups, own, strict=True):
            given = np.broadcast_to(self._numbers[name], (len(beads), 3))
            apart = np.isin(beads, np.concatenate([[-1], *(handle.beads for handle in by_species)]))
            other = ~apart & ~np.isnan(out[beads, 0]) & (out[beads] != given).any(axis=1)
            if other.any():
                i = int(np.argmax(other))
                raise ParameterError(
                    f"{self.name}: bead {beads[i]} is in both groups, with the semi-axes {out[beads[i]].tolist()} and "
                    f"{given[i].tolist()}"
                )
            out[beads[~apart]] = given[~apart]
            for handle in set(handles_in(group)) - by_species.keys():
                # Rows without a body have the semi-axes of those that jumps may add.
                born = self._number_of_all(name)
                out[handle.kind.with_room[len(handle) :]] = 1.0 if born is None else born
            no_sphere = ~turns[beads] & (given != given[:, :1]).any(axis=1)
            if no_sphere.any():
                i = int(np.argmax(no_sphere))
                raise ParameterError(
                    f"{self.name}: bead {beads[i]} of {topology.handle_of(int(beads[i]))!r} does not turn: its "
                    f"semi-axes must be equal, not {given[i].tolist()}"
                )
        return out

    def _axes_by_species(self) -> "dict[Handle, np.ndarray]":
        """Return the semi-axes (s, 3) of the species of each handle of which some are in either group, with numbers
        that are not of each bead; 1 of species in no group."""
        own = [self._numbers["semi_axes" if which == 0 else "semi_axes_b"] for which in range(2)]
        own[1] = own[0] if own[1] is None else own[1]
        if any(numbers.ndim > 1 for numbers in own):
            return {}
        out = {}
        for handle in self.handles_by_species:
            table = np.full((len(handle._species), 3), np.nan)
            for chosen, group, given in zip(self._of_species, self._groups, own, strict=True):
                bits = chosen.get(handle, -1 if handle in handles_in(group) else 0)
                for k, one in enumerate(handle._species):
                    if not bits >> k & 1:
                        continue
                    if not np.isnan(table[k, 0]) and (table[k] != given).any():
                        raise ParameterError(
                            f"{self.name}: species {one.name!r} of {handle.name!r} is in both groups, with the "
                            f"semi-axes {table[k].tolist()} and {given.tolist()}"
                        )
                    table[k] = given
            out[handle] = np.where(np.isnan(table), 1.0, table)
        return out

    def _profile(self, layout: "Layout", members: Any) -> "Profile | None":
        axes = self._axes_of_beads(layout)[members.bead]
        epsilon, kind = self._numbers["epsilon"], Radial.WCA if self._form == "WCA" else Radial.SOFT_SPHERE
        numbers = (epsilon if kind == Radial.WCA else 2.0 * epsilon, 1.0)
        # In units of the distance at which two touch as they are turned.
        end = ENDS[self._form] * 2.0 * axes.max(initial=0.0)
        return Profile(lambda mu, _: radial_values(kind, numbers, mu), end, axes=axes)

    def bind(self, layout: "Layout") -> "Operation":
        members = self._members(layout)
        axes = self._axes_of_beads(layout)[members.bead]
        row = members.row - layout.first_oriented
        oriented = np.where((row >= 0) & (row < layout.n_oriented), row, -1).astype(np.int32)
        entry, longest = np.full(len(axes), -1, np.int32), axes.max(axis=1, initial=0.0)
        for handle, table in self._axes_by_species().items():
            block = layout.block_of(handle)
            own = (members.row >= block.start) & (members.row < block.stop)
            # The list is for whatever they may become.
            entry[own], longest[own] = len(axes), table.max()
            axes = np.append(axes, table, axis=0)
        near = self._neighbors(layout, members, ENDS[self._form] * longest)
        form, epsilon = FORMS[self._form], self._numbers["epsilon"]
        operation = ellipsoids.Ellipsoids(self.name, form, epsilon, near, axes, entry, oriented, members.table)
        operation.acts_on_points = members.on_points
        return operation
