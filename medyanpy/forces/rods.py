"""Forces on elastic rods: elasticity, loads on their ends, and excluded volume."""

from dataclasses import InitVar
from math import ceil, pi
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from medyanpy._kernels.selected import rods as kernel
from medyanpy._tools.described import scalar_if_one
from medyanpy._tools.types import Numbers
from medyanpy.beads import Rods
from medyanpy.beads.chains import with_edges
from medyanpy.beads.rods import longest_timestep
from medyanpy.errors import TopologyError
from medyanpy.forces._arguments import Handles, Rows
from medyanpy.forces._base import Each, Given, OnHandle, argument, declared, expect_handle, handles_in, number
from medyanpy.forces.collisions import SoftCollisions

if TYPE_CHECKING:
    from medyanpy._kernels.core.program import Operation
    from medyanpy.core.layout import Layout
    from medyanpy.forces._stiffness import Start

__all__ = ["RodCollision", "RodElasticity", "RodLoad"]


@declared
class _RodForce(OnHandle):
    """A force on the nodes of rods."""

    _on = ("rod", Rods, "rods")
    rod: Rods = argument("Rods", attribute="The rods acted on.")

    def _keys(self, per: str) -> np.ndarray | None:
        return self.rod.ids[self.rod.links[:, 0]] if per == "rod.links" else None

    def _in_domain(self, name: str, value: Any, n: int | None = None) -> Any:
        """Check a number: one for all as a float, and one vector for all as a tuple."""
        checked = scalar_if_one(super()._in_domain(name, value, n))
        one = self.domains[name].size is not None and checked.ndim == 1
        return tuple(checked.tolist()) if one else checked


@declared
class RodElasticity(_RodForce):
    r"""Shear, extension, bending and twist of elastic rods ("geometrically exact": of any size).

    .. math:: U = \sum_j \frac{\ell_j}{2} \sum_{i=1}^{3}
              \bigl[C_i (\Gamma_i - \Gamma^0_i)^2 + B_i (\Omega_i - \Omega^0_i)^2\bigr]

    over the segments j between successive nodes, with the strains Γ (shear along the axes 1 and 2, stretch along 3) and
    Ω (bending about 1 and 2, twist about 3) in the mean frame of the two nodes:

    .. math:: \Gamma = D(\bar q)^T\,\frac{x_b - x_a}{\ell},\qquad
              (0, \Omega) = \frac{2}{\ell}\,\bar q^{-1}(q_b - q_a),\qquad \bar q = \frac{q_a + q_b}{|q_a + q_b|}

    Parameters
    ----------
    rod
        With J segments, listed by ``rod.links``.

    Notes
    -----
    Forces and torques are exact derivatives, so that A and B keep the structure of the discrete rod. The length of Ω is
    4 sin(θ/4)/ℓ for an angle θ between two nodes, 1/R of a circle up to second order in ℓ. Two nodes turned against
    each other by π and more are taken the shorter way round, with a kink of the energy at π. Waves of stretch and shear
    bound the timestep; a Context warns. Cost: O(nodes).

    References
    ----------
    A. J. C. Ladd, G. Misra, A symplectic integration method for elastic filaments (2009): (48), (53), (54).

    Examples
    --------
    >>> import medyanpy as mp
    >>> nodes, orientations = mp.rods.uniform(63, 1.0)
    >>> section = mp.rods.CircularSection(radius=0.5, youngs_modulus=1.0, poisson_ratio=0.3, density=1.0)
    >>> topology = mp.Topology()
    >>> rod = topology.add_rod(nodes, orientations, 1.0, section.linear_density, section.inertia_density)
    >>> round(mp.forces.RodElasticity(rod, **section.stiffness).longest_timestep(), 3)  # s
    0.806
    """

    conserves_momentum = True
    exact_frequencies = True
    shear: Given["Numbers", np.ndarray] = number(
        "pN", "C1, C2.", above=0.0, per="rod.links", size=2, or_number=True, many="(J,)"
    )
    extension: Each = number("pN", "C3.", above=0.0, per="rod.links", many="(J,)")
    bending: Given["Numbers", np.ndarray] = number(
        "pN nm²", "B1, B2: about the first and second axis of the cross-section.",
        above=0.0, per="rod.links", size=2, or_number=True, many="(J,)",
    )  # fmt: skip
    twist: Each = number(
        "pN nm²", "B3. Of a round section, `rods.CircularSection` has all four: ``RodElasticity(rod, "
        "**section.stiffness)``.", above=0.0, per="rod.links", many="(J,)",
    )  # fmt: skip
    rest_strain: Given["Numbers", np.ndarray] = number(
        "dimensionless", "Γ⁰; (0, 0, 1) without shear and stretch.",
        default=(0.0, 0.0, 1.0), per="rod.links", size=3, many="(J,)",
    )  # fmt: skip
    rest_curvature: Given["Numbers", np.ndarray] = number(
        "1/nm", "Ω⁰: 0 of straight rods. Of rods that are at rest as they were added: ``rod.strains()``, which has "
        "both.", default=(0.0, 0.0, 0.0), per="rod.links", size=3, many="(J,)",
    )  # fmt: skip

    def _rows(self) -> np.ndarray:
        """Return rows (J, 12), or (1, 12) where all segments are alike: C, B, Γ⁰, Ω⁰."""
        names = ("shear", "extension", "bending", "twist", "rest_strain", "rest_curvature")
        parts = [np.atleast_1d(np.asarray(value, float)) for value in self._named(*names)]
        parts = [p[:, None] if key in ("extension", "twist") else p for key, p in zip(names, parts, strict=True)]
        parts = [p if p.ndim == 2 else p[None] for p in parts]
        # With all rods removed, a number for each segment is empty.
        n = min(map(len, parts)) and max(map(len, parts))
        return np.concatenate([np.broadcast_to(p, (n, p.shape[1])) for p in parts], axis=1)

    def squared_frequencies(self, start: "Start") -> np.ndarray | None:
        if start.overdamped:
            return None
        out = np.zeros(start.n_rows)
        rows = self.rod.kind.row_numbers
        if len(rows):
            out[self.rod.beads] = out[start.n + rows] = 4.0 / self._longest_timestep() ** 2
        return out

    def _longest_timestep(self) -> float:
        rod, c = self.rod, self._rows()
        length = rod.kind.joint_lengths
        c = np.broadcast_to(c, (len(length), c.shape[1]))
        # Each joint with the lighter of the nodes on its sides.
        density = rod.linear_density[rod.links].min(axis=1)
        inertia = rod.inertia_density[rod.links].min(axis=1) * length[:, None]
        return longest_timestep(length, density * length, inertia, c[:, :3], c[:, 3:6])

    def bind(self, layout: "Layout") -> "Operation":
        rod, numbers = self.rod, self._rows()
        node, which, k = rod.kind.chain_rows(1)
        n = np.diff(rod.starts)[which]
        owned = (k >= 0) & (k < n)
        # Rows without a joint follow no other: the last of an open rod, the last repeated of a ring.
        has_joint = k < (n if rod.closed else n - 1)
        joint = rod.kind.link_starts[which] + k % n
        length = np.where(has_joint, rod.segment_length[which], 0.0)
        if len(numbers) > 1:
            rows = np.zeros((len(node) + 2, numbers.shape[1]))
            rows[1:-1][has_joint] = numbers[joint[has_joint]]
            numbers = rows
        first = layout.slice_of(rod).start - layout.first_oriented
        return kernel.RodElasticity(
            self.name, layout.first_oriented, (first + with_edges(node, 1)).astype(np.int32),
            np.pad(owned, 1).astype(np.int32), np.pad(length, 1), np.ascontiguousarray(numbers),
        )  # fmt: skip


@declared
class RodLoad(_RodForce):
    r"""A force and a couple on one end of every rod of a handle.

    .. math:: U = -\sum_\text{rods} F \cdot x_\text{end}

    for a force in space. Couples, and loads that turn with the rod, have no energy: they do work from outside.

    Raises
    ------
    TopologyError
        Not the handle of rods, or of rings.
    ParameterError
        A number outside its domain, another word for the end.

    Notes
    -----
    Loads do not move a clamped end, and a force does not move a pinned one. Forces on any place of a rod:
    ``UniformField(rod.sites(arms), force)``, `Links`. The half segment beyond the last free node is rigid: the
    deflection of the very end by a force misses Fℓ/2C of shear or stretch, of first order in ℓ. A couple that stays
    fixed in space is not conservative: a rod with little friction may flutter under it.

    References
    ----------
    Ladd & Misra (2009), after (29): prescribed forces and couples on the ends.
    """

    end: Given[Literal["start", "end"], str] = argument(
        "str", '``"start"`` or ``"end"``. A free end is half a segment beyond the node that is next to it.',
        attribute='Which end: ``"start"`` or ``"end"``.',
    )  # fmt: skip
    force: Given["Numbers", np.ndarray] = number("pN", "", default=(0.0, 0.0, 0.0), size=3)
    couple: Given["Numbers", np.ndarray] = number(
        "pN nm", "2πB/L rolls a straight rod up to a circle.", default=(0.0, 0.0, 0.0), size=3
    )
    follows: InitVar[bool] = argument(
        "bool", "Whether `force` and `couple` are given in the frame of the end and turn with it; else in space.",
        default=False, kw_only=True,
    )  # fmt: skip

    def _take(self, given: dict[str, Any]) -> None:
        super()._take(given)
        self._end = given["end"]
        given["rod"].kind.tips(given["end"])  # which refuses what has none
        self._follows = bool(given["follows"])

    @property
    def energy_tells_work(self) -> bool:  # type: ignore[override]
        """False for couples, and for forces that turn with the rod."""
        return not self._follows and not np.any(self._numbers["couple"])

    def bind(self, layout: "Layout") -> "Operation":
        first = layout.slice_of(self.rod).start - layout.first_oriented
        force, couple = (np.array(self._numbers[key]) for key in ("force", "couple"))
        nodes, arms = self.rod.kind.tips(self._end)
        return kernel.Loads(self.name, (first + nodes).astype(np.int32), arms, force, couple, self._follows)


class RodCollision(SoftCollisions):
    """Excluded volume of rods: soft repulsion of their segments, as tubes with round ends.

    The law of `SoftCollisions` between the segments of all rods given, and with those of other rods or of the same one.

    Parameters
    ----------
    rods : Rods or list of Rods
        Each once.
    stiffness : float or one per handle, pN/nm, >= 0
    radius : float or one per handle, nm, > 0
        Of the tubes.
    neighbors : int, >= 1, optional
        Segments of one rod do not collide if they are up to this many apart. By default as many as fit into half a
        circle with the diameter of the thickest rod: nearer ones cannot touch unless the rod is bent more than that.
    skin, name, group, exclusions
        See `SoftCollisions`.

    Raises
    ------
    TopologyError
        Something that is not a handle of rods, or one given twice.
    ParameterError
        A number outside its domain.

    Notes
    -----
    Tubes have no friction: forces act on the nodes and exert no torques. Half a segment at free ends, beyond the last
    nodes, is covered by the round ends up to the radius.
    """

    def __init__(
        self, rods: "Handles", stiffness: "Numbers", radius: "Numbers", *, neighbors: int | None = None,
        exclusions: "Rows | None" = None, skin: float | None = None, name: str | None = None, group: int = 0,
    ) -> None:  # fmt: skip
        title = type(self).__name__ if name is None else str(name)
        given: Any = handles_in(rods)
        if not given:
            raise TopologyError(f"{title}: rods must be handles of rods, not {rods!r}")
        for i, rod in enumerate(given):
            expect_handle(f"{title}: rods[{i}]", rod, Rods, "rods")
        super().__init__(
            rods, stiffness, radius, neighbors=1 if neighbors is None else neighbors, exclusions=exclusions, skin=skin,
            name=name, group=group,
        )  # fmt: skip
        if neighbors is None:
            thick = self._each("radius", self._numbers["radius"])
            shortest = ((r, rod.segment_length.min()) for r, rod in zip(thick, given, strict=True) if len(rod))
            self._neighbors = max(1, 1, *(ceil(pi * r / length) for r, length in shortest))

    def _arguments_now(self) -> dict[str, Any]:
        # Of the rods when it was made, of which some may have been removed.
        return {**super()._arguments_now(), "neighbors": self._neighbors}
