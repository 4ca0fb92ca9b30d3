"""Energies of all pairs of beads, or of those that come near each other."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from medyanpy import units
from medyanpy._kernels.neighbors import NeighborList, near_pairs
from medyanpy._kernels.program import Operation
from medyanpy._kernels.selected import all_pairs, pairs
from medyanpy._kernels.sites import SiteTable
from medyanpy._tools.validation import array, number, per_item
from medyanpy.beads import Balls
from medyanpy.errors import ParameterError, TopologyError
from medyanpy.forces._base import Force
from medyanpy.forces._stiffness import Start
from medyanpy.handles import bead_numbers, handles_in
from medyanpy.sites import Sites, as_sites
from medyanpy.topology import Topology

__all__ = ["WCA", "Coulomb", "LennardJones", "Ricker", "SoftSphere"]

# Numbers of the radial functions in _kernels/radial.pxd.
_SOFT_SPHERE = 1
_WCA = 2
_RICKER = 4
_LENNARD_JONES = 6
_COULOMB = 7
# Where WCA ends, in units of sigma.
_WCA_END = 2.0 ** (1.0 / 6.0)
# Where Ricker ends, in units of the distance of its minimum: what is left of the energy there is 4e-9 of the depth.
_RICKER_END = 4.0
# The largest second derivative of Ricker's well, in U_e/r_e²: at ρ² = (5 - √10)/3, where the third is zero.
_RICKER_STEEPEST = 12.4695
# Neighbours of a bead, beyond which a start is a heap that will be parted first, and says nothing about a run.
_CROWDED = 200
# Of more members than these together, so many neighbourhoods of so many are looked at when a Context is made: it is
# to tell a timestep that is too long, not to cost as much as a run's first steps.
_NEIGHBORHOODS = 4
_NEIGHBORHOOD = 4096
# Share of the range. Wider means fewer builds of the list and longer rows; see
# tests/benchmarks/bench_pairs.py.
_SKIN = 0.4


class _PairForce(Force):
    """A radial energy of all pairs of two groups that are within range."""

    # What the constructor calls its groups.
    _called = ("group_a", "group_b")

    def __init__(
        self, group_a: Any, group_b: Any, *, exclusions: Any, name: str | None, group: int, **numbers: Any
    ) -> None:
        super().__init__(name=name, group=group)
        groups = list(zip(self._called, (group_a, group_b), strict=True))
        if any(isinstance(beads, Sites) for _, beads in groups):
            self._groups = tuple(as_sites(f"{self.name}: {which}", beads) for which, beads in groups)
        else:
            self._groups = tuple(_frozen_group(f"{self.name}: {which}", beads) for which, beads in groups)
        self._exclusions = exclusion_pairs(self.name, exclusions)
        self._declare(**numbers)

    @property
    def handles(self):
        return tuple(h for g in self._groups for h in (g.handles if isinstance(g, Sites) else handles_in(g)))

    @property
    def conserves_momentum(self) -> bool:
        """Whether no site is an anchor."""
        return not any(isinstance(g, Sites) and len(g.anchor_positions) for g in self._groups)

    @property
    def exclusions(self) -> np.ndarray:
        """(E, 2) pairs of bead numbers that do not interact; where groups are sites, of numbers of sites."""
        return self._exclusions

    def _skin(self, skin: Any) -> float | None:
        return None if skin is None else number(f"{self.name}: skin", skin, at_least=0.0)

    def _members(self, layout) -> "_Members":
        if isinstance(self._groups[0], Sites):
            return self._members_of_sites(layout)
        topology = layout.topology
        in_a, in_b = (
            topology.bead_indices(f"{self.name}: {which}", beads)
            for which, beads in zip(self._called, self._groups, strict=True)
        )
        for which, beads in zip(self._called, (in_a, in_b), strict=True):
            topology.expect_places(f"{self.name}: {which}", beads)
        # 1: in A only, 2: in B only, 3: in both.
        membership = np.zeros(layout.n, np.int32)
        if len(in_a) and len(in_b):
            membership[layout.internal(in_a)] += 1
            membership[layout.internal(in_b)] += 2
        row = np.flatnonzero(membership).astype(np.int32)
        return _Members(
            SiteTable(),
            row,
            membership[row],
            layout.order[row],
            layout.order[row],
            layout.n,
            "beads",
            bool((row >= layout.n_cartesian).any()),
        )

    def _members_of_sites(self, layout) -> "_Members":
        a, b = self._groups
        for which, sites in zip(self._called, (a, b), strict=True):
            sites.check(f"{self.name}: {which}", layout.topology)
        same = a is b
        sites = a if same else a + b
        membership = np.repeat(np.array([3 if same else 1, 2], np.int32), [len(a), 0 if same else len(b)])
        beads = sites.single_beads
        twice = np.sort(beads[beads >= 0])
        twice = twice[1:][twice[1:] == twice[:-1]]
        if len(twice):
            i, k = np.flatnonzero(beads == twice[0])[:2]
            raise TopologyError(
                f"{self.name}: sites {i} and {k} are both bead {twice[0]}; give one Sites object for both groups, "
                "or groups that share no bead"
            )
        row = np.arange(len(sites) if len(a) and len(b) else 0, dtype=np.int32)
        return _Members(
            sites.bind(layout),
            row,
            membership[row],
            beads[row],
            row,
            len(sites),
            "sites",
            sites.on_points(layout),
        )

    def _frequencies(
        self, start: Start, reach: float, stiffness: Callable[..., Any], least: float
    ) -> np.ndarray | None:
        """Squared frequencies of what touches: `stiffness` of distances and members (P,), no more than `least` of two
        that are where they stay; those nearer than that are to be parted before a run. None of a crowd. Of very many
        members, samples are looked at."""
        members = self._members(start.layout)
        a, b = self._groups
        if isinstance(a, Sites):
            sites = a if a is b else a + b
            coordinates, x = start.sites(sites)[members.row], start.site_positions(sites)[members.row]
        else:
            coordinates, x = start.coordinates(members.bead), start.positions[members.bead]
        if not np.abs(x).max(initial=0.0) < 1e100:
            return None  # too far apart for their distances
        found = [np.empty(0, int)]
        for near in _neighborhoods(x):
            pairs = near_pairs(x[near], reach)
            if 2 * len(pairs) > _CROWDED * len(near):
                return None
            found.append(near[pairs] @ [len(x), 1])
        touching = np.column_stack(np.divmod(np.unique(np.concatenate(found)), max(1, len(x))))
        g = members.group[touching]
        met = ((g[:, 0] & 1) & (g[:, 1] >> 1)) | ((g[:, 0] >> 1) & (g[:, 1] & 1))
        keys = np.sort(members.number[touching], axis=1) @ [members.n_numbers, 1]
        left_out = np.isin(keys, np.sort(self._exclusions, axis=1) @ [members.n_numbers, 1])
        touching = touching[(met > 0) & ~left_out]
        distance = np.linalg.norm(x[touching[:, 1]] - x[touching[:, 0]], axis=1)
        k = np.clip(stiffness(distance, members.bead[touching]), 0.0, least)
        return start.contacts(coordinates, members.group, touching, k, least)

    def _bind(self, layout, kind: int, parameters: tuple[float, ...], radius_of) -> Operation:
        """The operation for one radial function; `radius_of` gives half the range of members by their bead numbers."""
        members = self._members(layout)
        radius = radius_of(members.bead) if len(members.row) else np.zeros(0)
        operation = pairs.Pairs(self.name, kind, parameters, self._neighbors(members, radius), members.table)
        operation.acts_on_points = members.on_points
        return operation

    def _bind_all(self, layout, kind: int, parameters: tuple[float, ...], weight_of=None) -> Operation:
        """The operation for all pairs at any distance; `weight_of` gives factors of members by their rows and bead
        numbers."""
        members = self._members(layout)
        # Those in A only, in both and in B only: the partners of each are a range.
        order = np.argsort(np.array([0, 0, 2, 1])[members.group], kind="stable")
        members = members._replace(**{k: getattr(members, k)[order] for k in ("row", "group", "bead", "number")})
        n = len(members.row)
        only_a, only_b = (members.group == 1).sum(), (members.group == 2).sum()
        first = np.where(members.group == 1, only_a, 0).astype(np.int32)
        last = np.where(members.group == 2, n - only_b, n).astype(np.int32)
        start, ignored = _excluded(self.name, self._exclusions, members)
        place = np.full(members.n_numbers, -1)
        place[members.number] = np.arange(n)
        # Nobody is a partner of itself.
        owner = np.concatenate([np.repeat(np.arange(n), np.diff(start)), np.arange(n)])
        ignored = np.concatenate([place[ignored], np.arange(n)])
        ignored = ignored[np.lexsort((ignored, owner))].astype(np.int32)
        weight = np.ones(n) if weight_of is None else weight_of(members.row, members.bead)
        row, start = members.row, (start + np.arange(n + 1)).astype(np.int32)
        operation = all_pairs.AllPairs(
            self.name, kind, parameters, row, weight, first, last, start, ignored, members.table
        )
        operation.acts_on_points = members.on_points
        return operation

    def _neighbors(self, members: "_Members", radius: np.ndarray) -> NeighborList:
        """The list of members, given half the range of each."""
        reach = 0.0
        if len(members.row):
            reach = float(radius[members.group != 2].max() + radius[members.group != 1].max())
        skin = self._numbers["skin"]
        return NeighborList(
            members.row,
            members.group,
            radius,
            reach,
            _SKIN * reach if skin is None else skin,
            *_excluded(self.name, self._exclusions, members),
        )


def _neighborhoods(x: np.ndarray) -> list[np.ndarray]:
    """Rows of x (n, 3), ascending in each: all of them, or those around a few that are spread over the list."""
    n = len(x)
    if n <= _NEIGHBORHOODS * _NEIGHBORHOOD:
        return [np.arange(n)]
    centers = (np.arange(_NEIGHBORHOODS) + 0.5) * (n / _NEIGHBORHOODS)
    ways = (x - x[int(center)] for center in centers)
    squares = (np.einsum("ij,ij->i", way, way) for way in ways)
    return [np.sort(np.argpartition(s, _NEIGHBORHOOD)[:_NEIGHBORHOOD]) for s in squares]


class _Members(NamedTuple):
    """The sites of both groups of a force, in the arrays of one Context."""

    table: SiteTable
    row: np.ndarray  # in the table, ascending
    group: np.ndarray  # 1: in A only, 2: in B only, 3: in both
    bead: np.ndarray  # topology number, -1 of sites that are not a single bead
    number: np.ndarray  # what users call it, and sums are ordered by
    n_numbers: int
    noun: str
    on_points: bool


class SoftSphere(_PairForce):
    r"""Soft repulsion: beads of two groups push each other apart when they overlap.

    .. math:: U = \sum_{(i, j)} \tfrac12 k (d_{ij} - r_{ij})^2 \quad\text{for}\; r_{ij} = |x_j - x_i| < d_{ij}

    over all pairs with one bead in each group, each pair once.

    Parameters
    ----------
    group_a, group_b : handle, list of handles, (n,) int, or Sites
        Beads of any kind. The groups may be the same, overlap, or have nothing in common; a bead in both
        interacts with all of both. Where one group is `Sites`, both are, and are taken for different sites unless
        they are one object; no bead may then be two of the sites.
    stiffness : float, pN/nm, >= 0
        k.
    diameter : float, nm, > 0, optional
        d, the distance at which two beads touch. Where none is given, the sum of their radii; then all beads
        (or sites) of both groups must be balls.
    exclusions : (E, 2) int, optional
        Pairs of bead numbers that do not interact, such as the pairs of a bond force. Pairs that would not
        interact anyway are ignored.
    skin : float, nm, >= 0, optional
        How far beyond touching neighbours are listed: a matter of speed, no bit of any result depends on it.
        0.4 times the largest d where none is given.
    name, group
        See `Force`.

    Raises
    ------
    ParameterError
        A number outside its domain, or no `diameter` though some beads have no radius.
    TopologyError
        A handle of another topology, beads that do not exist or are named twice, an exclusion of a bead from
        itself.

    Notes
    -----
    For coincident beads the direction is undefined; the force is set to zero, the mean over all
    directions. The force is continuous, its derivative jumps where beads touch: energies of a run fall as dt²
    nonetheless, but no higher order is to be had.

    Time and memory are linear in the number of beads at given density. Cells are as wide as the largest d
    plus skin: put few large balls among many small ones into a group, and a force, of their own.

    Examples
    --------
    >>> import medyanpy as mp
    >>> topology = mp.Topology()
    >>> balls = topology.add_balls([[0.0, 0, 0], [8.0, 0, 0]], radius=5.0, mass=1.0)
    >>> system = mp.System(topology)
    >>> system.add_force(mp.forces.SoftSphere(balls, balls, stiffness=3.0))
    SoftSphere(stiffness=3, diameter=None, skin=None)
    >>> mp.Context(system, mp.VerletIntegrator(0.01)).get_state(energy=True).potential_energy
    6.0
    """

    changeable = ("stiffness", "diameter", "skin")

    def __init__(
        self,
        group_a: Any,
        group_b: Any,
        stiffness: float,
        diameter: float | None = None,
        *,
        exclusions: Any = None,
        skin: float | None = None,
        name: str | None = None,
        group: int = 0,
    ) -> None:
        numbers = {"stiffness": stiffness, "diameter": diameter, "skin": skin}
        super().__init__(group_a, group_b, exclusions=exclusions, name=name, group=group, **numbers)

    def _checked(self, *, stiffness: Any, diameter: Any, skin: Any) -> dict[str, Any]:
        if diameter is not None:
            diameter = number(f"{self.name}: diameter", diameter, above=0.0)
        else:
            for group in self._groups:
                if isinstance(group, Sites):
                    self._check_single(group.single_beads)
                else:
                    for handle in handles_in(group):
                        if not isinstance(handle, Balls):
                            raise self._no_radius(repr(handle))
        return {
            "stiffness": number(f"{self.name}: stiffness", stiffness, at_least=0.0),
            "diameter": diameter,
            "skin": self._skin(skin),
        }

    def _check_single(self, beads: np.ndarray) -> None:
        if (beads < 0).any():
            raise self._no_radius(f"site {int(np.argmax(beads < 0))}, which is not a single bead,")

    def _no_radius(self, what: str) -> ParameterError:
        return ParameterError(f"{self.name}: give diameter=, because {what} has no radius: only balls have")

    def _radii(self, topology: Topology, beads: np.ndarray) -> np.ndarray:
        """Half of d of each of some beads."""
        d = self._numbers["diameter"]
        if d is not None:
            return np.full(len(beads), 0.5 * d)
        out = np.full(topology.n_beads, np.nan)
        for handle in topology.handles:
            if isinstance(handle, Balls):
                out[handle.beads] = handle.radius
        out = out[beads]
        if np.isnan(out).any():
            raise self._no_radius(repr(topology.handle_of(int(beads[np.argmax(np.isnan(out))]))))
        return out

    def squared_frequencies(self, start):
        k = self._numbers["stiffness"]

        def stiffness(distance: np.ndarray, beads: np.ndarray) -> np.ndarray:
            return np.where(distance < self._radii(start.topology, beads.ravel()).reshape(-1, 2).sum(axis=1), k, 0.0)

        beads = self._members(start.layout).bead
        reach = 2.0 * self._radii(start.topology, beads).max(initial=0.0)
        return self._frequencies(start, reach, stiffness, k)

    def bind(self, layout):
        k, d = self._numbers["stiffness"], self._numbers["diameter"]
        numbers = (k, 0.0 if d is None else d)
        return self._bind(layout, _SOFT_SPHERE, numbers, lambda beads: self._radii(layout.topology, beads))


class WCA(_PairForce):
    r"""The repulsive part of the Lennard-Jones energy (Weeks, Chandler & Andersen).

    .. math:: U = \sum_{(i, j)} 4 \varepsilon \left[(\sigma/r)^{12} - (\sigma/r)^6\right] + \varepsilon
              \quad\text{for}\; r = |x_j - x_i| < 2^{1/6} \sigma

    over all pairs with one bead in each group, each pair once.

    Parameters
    ----------
    group_a, group_b : handle, list of handles, or (n,) int
        As in `SoftSphere`.
    epsilon : float, pN nm, >= 0
        ε, the energy of two beads at distance σ.
    sigma : float, nm, > 0
        σ.
    exclusions : (E, 2) int, optional
        As in `SoftSphere`.
    skin : float, nm, >= 0, optional
        As in `SoftSphere`; 0.4 times the range 2^(1/6) σ where none is given.
    name, group
        See `Force`.

    Raises
    ------
    ParameterError, TopologyError
        As `SoftSphere`.

    Notes
    -----
    Two beads in one place have no finite force: a run then ends with a `SimulationError` that names the bead.
    Beads that may start on top of each other are better separated with `SoftSphere` and
    `Simulation.minimize_energy`.

    References
    ----------
    J. D. Weeks, D. Chandler, H. C. Andersen, J. Chem. Phys. 54, 5237 (1971).

    Examples
    --------
    >>> import medyanpy as mp
    >>> topology = mp.Topology()
    >>> beads = topology.add_beads([[0.0, 0, 0], [2.0, 0, 0], [9.0, 0, 0]], mass=1.0)
    >>> system = mp.System(topology)
    >>> system.add_force(mp.forces.WCA(beads, beads, epsilon=4.0, sigma=2.0))
    WCA(epsilon=4, sigma=2, skin=None)
    >>> mp.Context(system, mp.VerletIntegrator(0.01)).get_state(energy=True).potential_energy
    4.0
    """

    changeable = ("epsilon", "sigma", "skin")

    def __init__(
        self,
        group_a: Any,
        group_b: Any,
        epsilon: float,
        sigma: float,
        *,
        exclusions: Any = None,
        skin: float | None = None,
        name: str | None = None,
        group: int = 0,
    ) -> None:
        numbers = {"epsilon": epsilon, "sigma": sigma, "skin": skin}
        super().__init__(group_a, group_b, exclusions=exclusions, name=name, group=group, **numbers)

    def _checked(self, *, epsilon: Any, sigma: Any, skin: Any) -> dict[str, Any]:
        return {
            "epsilon": number(f"{self.name}: epsilon", epsilon, at_least=0.0),
            "sigma": number(f"{self.name}: sigma", sigma, above=0.0),
            "skin": self._skin(skin),
        }

    def squared_frequencies(self, start):
        epsilon, sigma = self._numbers["epsilon"], self._numbers["sigma"]
        # Two that meet with the energy ε come as near as σ.
        least = _lennard_jones(1.0) * epsilon / sigma**2
        end = _WCA_END * sigma
        return self._frequencies(start, end, lambda r, _: _lennard_jones(r / sigma) * epsilon / sigma**2, least)

    def bind(self, layout):
        epsilon, sigma = self._numbers["epsilon"], self._numbers["sigma"]
        return self._bind(layout, _WCA, (epsilon, sigma), lambda beads: np.full(len(beads), 0.5 * _WCA_END * sigma))


class LennardJones(_PairForce):
    r"""Repulsion of what overlaps, and attraction beyond it: the energy of Lennard-Jones.

    .. math:: U = \sum_{(i, j)} 4 \varepsilon \left[(\sigma/r)^{12} - (\sigma/r)^6\right] - U_c
              \quad\text{for}\; r = |x_j - x_i| < r_c

    over all pairs with one bead in each group, each pair once. U_c is what the first term is at the cutoff: 0 where
    there is none.

    Parameters
    ----------
    group_a, group_b : handle, list of handles, (n,) int, or Sites
        As in `SoftSphere`.
    epsilon : float, pN nm, >= 0
        ε: the energy is lowest, -ε, at the distance 2^(1/6) σ.
    sigma : float, nm, > 0
        σ.
    cutoff : float, nm, > 0, optional
        r_c, beyond which beads do not interact. Where none is given all pairs do, however far apart: a cluster in empty
        space; the time of a step grows as the square of the number of beads. Common in a fluid is 2.5 σ.
    exclusions : (E, 2) int, optional
        As in `SoftSphere`.
    skin : float, nm, >= 0, optional
        As in `SoftSphere`; 0.4 times the cutoff where none is given. Without cutoff there is no list.
    name, group
        See `Force`.

    Raises
    ------
    ParameterError, TopologyError
        As `SoftSphere`.

    Notes
    -----
    With C₁₂/r¹² - C₆/r⁶ given, ε = C₆²/4C₁₂ and σ = (C₁₂/C₆)^(1/6).

    At the cutoff the energy is continuous and the force is not: it jumps by 0.039 ε/σ at 2.5 σ. Two beads in one place
    have no finite force: a run then ends with a `SimulationError` that names the bead.

    References
    ----------
    J. E. Lennard-Jones, Proc. Phys. Soc. 43, 461 (1931).

    Examples
    --------
    >>> import medyanpy as mp
    >>> topology = mp.Topology()
    >>> beads = topology.add_beads([[0.0, 0, 0], [2.0, 0, 0], [0, 4.0, 0]], mass=1.0)
    >>> system = mp.System(topology)
    >>> system.add_force(mp.forces.LennardJones(beads, beads, epsilon=4.0, sigma=2.0))
    LennardJones(epsilon=4, sigma=2, cutoff=None, skin=None)
    >>> round(mp.Context(system, mp.VerletIntegrator(0.01)).get_state(energy=True).potential_energy, 6)
    -0.37307
    """

    changeable = ("epsilon", "sigma", "cutoff", "skin")

    def __init__(
        self,
        group_a: Any,
        group_b: Any,
        epsilon: float,
        sigma: float,
        *,
        cutoff: float | None = None,
        exclusions: Any = None,
        skin: float | None = None,
        name: str | None = None,
        group: int = 0,
    ) -> None:
        numbers = {"epsilon": epsilon, "sigma": sigma, "cutoff": cutoff, "skin": skin}
        super().__init__(group_a, group_b, exclusions=exclusions, name=name, group=group, **numbers)

    def _checked(self, *, epsilon: Any, sigma: Any, cutoff: Any, skin: Any) -> dict[str, Any]:
        return {
            "epsilon": number(f"{self.name}: epsilon", epsilon, at_least=0.0),
            "sigma": number(f"{self.name}: sigma", sigma, above=0.0),
            "cutoff": None if cutoff is None else number(f"{self.name}: cutoff", cutoff, above=0.0),
            "skin": self._skin(skin),
        }

    def squared_frequencies(self, start):
        epsilon, sigma, cutoff = (self._numbers[name] for name in ("epsilon", "sigma", "cutoff"))
        least = _lennard_jones(_WCA_END) * epsilon / sigma**2
        end = 2.5 * sigma if cutoff is None else min(cutoff, 2.5 * sigma)
        return self._frequencies(start, end, lambda r, _: _lennard_jones(r / sigma) * epsilon / sigma**2, least)

    def bind(self, layout):
        epsilon, sigma, cutoff = (self._numbers[name] for name in ("epsilon", "sigma", "cutoff"))
        if cutoff is None:
            return self._bind_all(layout, _LENNARD_JONES, (epsilon, sigma))
        parameters = epsilon, sigma, cutoff
        return self._bind(layout, _LENNARD_JONES, parameters, lambda beads: np.full(len(beads), 0.5 * cutoff))


class Coulomb(_PairForce):
    r"""Electrostatics of charges in empty space, or in a uniform medium.

    .. math:: U = \sum_{(i, j)} \frac{k\, q_i q_j}{r}, \qquad r = |x_j - x_i|

    over all pairs of beads, each pair once, however far apart.

    Parameters
    ----------
    beads : handle, list of handles, (n,) int, or Sites
        Those with charges, of any kind.
    charges : float or (n,) float, elementary charges, finite
        q, of the beads in the order in which they are given.
    constant : float, pN nm², > 0
        k, of two charges of 1; e²/4πε₀, which it is where none is given, is that of two elementary charges in empty
        space. Divide it by the relative permittivity of a medium. With ions in water the energy falls faster than this
        beyond the Debye length: not offered.
    exclusions : (E, 2) int, optional
        As in `SoftSphere`: pairs within one molecule.
    name, group
        See `Force`.

    Raises
    ------
    ParameterError
        A number outside its domain.
    TopologyError
        A handle of another topology, beads that do not exist or are named twice, an exclusion of a bead from itself.

    Notes
    -----
    There is no cutoff: a truncated 1/r is another energy, with charges that attract each other where none are.
    The time of a step grows as the square of the number of beads. Charges of opposite sign attract each other without
    bound: something else, such as `LennardJones`, has to keep them apart. Two charges in one place have no finite
    force, and the run ends with a `SimulationError` that names the bead.

    Examples
    --------
    A sodium and a chloride ion in contact, in units of kT at 300 K:

    >>> import medyanpy as mp
    >>> topology = mp.Topology()
    >>> ions = topology.add_beads([[0.0, 0, 0], [0.28, 0, 0]], mass=1.0)
    >>> system = mp.System(topology)
    >>> system.add_force(mp.forces.Coulomb(ions, [1.0, -1.0]))
    Coulomb(charges=array of 2, constant=230.708)
    >>> energy = mp.Context(system, mp.VerletIntegrator(0.01)).get_state(energy=True).potential_energy
    >>> round(energy / (300.0 * mp.units.boltzmann), 1)
    -198.9
    """

    changeable = ("charges", "constant")
    _called = ("beads", "beads")

    def __init__(
        self,
        beads: Any,
        charges: Any,
        constant: float = units.coulomb_constant,
        *,
        exclusions: Any = None,
        name: str | None = None,
        group: int = 0,
    ) -> None:
        super().__init__(
            beads, beads, exclusions=exclusions, name=name, group=group, charges=charges, constant=constant
        )

    def _checked(self, *, charges: Any, constant: Any) -> dict[str, Any]:
        beads = self._groups[0]
        n = len(beads if isinstance(beads, Sites) else bead_numbers(beads))
        return {
            "charges": per_item(f"{self.name}: charges", charges, n),
            "constant": number(f"{self.name}: constant", constant, above=0.0),
        }

    def bind(self, layout):
        charges, beads = self._numbers["charges"], self._groups[0]

        def weight_of(row: np.ndarray, bead: np.ndarray) -> np.ndarray:
            if isinstance(beads, Sites):
                return charges[row]
            of = np.empty(layout.n)
            of[bead_numbers(beads)] = charges
            return of[bead]

        return self._bind_all(layout, _COULOMB, (self._numbers["constant"],), weight_of)


class Ricker(_PairForce):
    r"""A soft well: beads of two groups repel each other below a distance and attract each other beyond it.

    .. math:: U = \sum_{(i, j)} \tfrac12 U_e (1 - 3 \rho^2)\, e^{3/2\, (1 - \rho^2)} - U_c
              \quad\text{for}\; \rho = |x_j - x_i| / r_e < r_c / r_e

    over all pairs with one bead in each group, each pair once. U_c is what the first term is at the cutoff.

    Parameters
    ----------
    group_a, group_b : handle, list of handles, (n,) int, or Sites
        As in `SoftSphere`.
    depth : float, pN nm, >= 0
        U_e: the energy is lowest, -U_e, at the distance r_e.
    distance : float, nm, > 0
        r_e.
    cutoff : float, nm, > 0, optional
        r_c, beyond which beads do not interact; 4 r_e where none is given.
    exclusions : (E, 2) int, optional
        As in `SoftSphere`.
    skin : float, nm, >= 0, optional
        As in `SoftSphere`; 0.4 times the cutoff where none is given.
    name, group
        See `Force`.

    Raises
    ------
    ParameterError, TopologyError
        As `SoftSphere`.

    Notes
    -----
    Many beads collapse: the integral of U over the plane, and over space, is negative, so that there is no bound to
    what each gains by more neighbours within the hill. In a patch of a hexagonal lattice that goes on in all
    directions a bead has the energy -3.79 U_e at the spacing r_e, -5.35 U_e at 0.8 r_e, -8.65 U_e at 0.6 r_e and
    -18.06 U_e at 0.4 r_e. Use it for pairs; for clusters take `LennardJones` with a cutoff, or add a `SoftSphere` that
    keeps beads apart.

    Beads pass through each other at a price of e^(3/2) U_e/2 = 2.24 U_e, and feel no force where they are in one
    place. The well has the stiffness U''(r_e) = 9 U_e/r_e²: two beads of mass m in it oscillate with the frequency
    ω² = 18 U_e/(m r_e²). The force is largest at 0.43 r_e (repulsion) and 1.35 r_e (attraction).

    Energies are continuous at the cutoff. Forces jump there by (9/2) ρ (ρ² - 1) e^(3/2 (1 - ρ²)) U_e/r_e: 5e-8 of
    U_e/r_e at the default cutoff, where U_c = -4e-9 U_e; 7e-4 at 3 r_e, 0.3 at 2 r_e, and none at r_e, which leaves
    the repulsion alone.

    References
    ----------
    The profile of N. Ricker, Geophysics 18, 10 (1953), with the side lobe as a well.

    Examples
    --------
    >>> import medyanpy as mp
    >>> topology = mp.Topology()
    >>> beads = topology.add_beads([[0.0, 0, 0], [3.0, 0, 0]], mass=1.0)
    >>> system = mp.System(topology)
    >>> system.add_force(mp.forces.Ricker(beads, beads, depth=8.0, distance=3.0))
    Ricker(depth=8, distance=3, cutoff=None, skin=None)
    >>> round(mp.Context(system, mp.VerletIntegrator(0.01)).get_state(energy=True).potential_energy, 6)
    -8.0
    """

    changeable = ("depth", "distance", "cutoff", "skin")

    def __init__(
        self,
        group_a: Any,
        group_b: Any,
        depth: float,
        distance: float,
        *,
        cutoff: float | None = None,
        exclusions: Any = None,
        skin: float | None = None,
        name: str | None = None,
        group: int = 0,
    ) -> None:
        numbers = {"depth": depth, "distance": distance, "cutoff": cutoff, "skin": skin}
        super().__init__(group_a, group_b, exclusions=exclusions, name=name, group=group, **numbers)

    def _checked(self, *, depth: Any, distance: Any, cutoff: Any, skin: Any) -> dict[str, Any]:
        return {
            "depth": number(f"{self.name}: depth", depth, at_least=0.0),
            "distance": number(f"{self.name}: distance", distance, above=0.0),
            "cutoff": None if cutoff is None else number(f"{self.name}: cutoff", cutoff, above=0.0),
            "skin": self._skin(skin),
        }

    def squared_frequencies(self, start):
        depth, distance, cutoff = (self._numbers[name] for name in ("depth", "distance", "cutoff"))

        def stiffness(r: np.ndarray, _: Any) -> np.ndarray:
            square = (r / distance) ** 2
            steep = 4.5 * np.exp(1.5 * (1.0 - square)) * depth / distance**2
            return steep * np.maximum(6.0 * square - 1.0 - 3.0 * square**2, square - 1.0)

        end = 3.0 * distance if cutoff is None else min(cutoff, 3.0 * distance)
        return self._frequencies(start, end, stiffness, _RICKER_STEEPEST * depth / distance**2)

    def bind(self, layout):
        depth, distance, cutoff = (self._numbers[name] for name in ("depth", "distance", "cutoff"))
        end = _RICKER_END * distance if cutoff is None else cutoff
        return self._bind(layout, _RICKER, (depth, distance, end), lambda beads: np.full(len(beads), 0.5 * end))


def _lennard_jones(r: Any) -> Any:
    """The stiffness of a pair at the distance r, in units of ε/σ² and σ: along it or, where it is larger, across."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        along = 4.0 * (156.0 * np.asarray(r) ** -14.0 - 42.0 * np.asarray(r) ** -8.0)
        across = 4.0 * (6.0 * np.asarray(r) ** -8.0 - 12.0 * np.asarray(r) ** -14.0)
    return np.nan_to_num(np.maximum(along, across), nan=np.inf)


def _frozen_group(what: str, beads: Any) -> Any:
    """Handles as they are; bead numbers copied, so that nobody changes them later."""
    handles = handles_in(beads)
    if handles:
        return handles
    out = array(what, beads, (None,), dtype=np.int64, error=TopologyError).copy()
    out.flags.writeable = False
    return out


def exclusion_pairs(force: str, exclusions: Any) -> np.ndarray:
    """Pairs of numbers as a user gives them: (E, 2), read-only."""
    given = np.empty((0, 2), np.int64) if exclusions is None else exclusions
    out = array(f"{force}: exclusions", given, (None, 2), dtype=np.int64, error=TopologyError).copy()
    out.flags.writeable = False
    return out


def excluded_beads(force: str, pairs: np.ndarray, layout) -> tuple[np.ndarray, np.ndarray]:
    """For every place, the beads that the one there ignores: where its list starts, and the lists, sorted."""
    row, order = np.arange(layout.n, dtype=np.int32), layout.order
    return _excluded(force, pairs, _Members(SiteTable(), row, row, order, order, layout.n, "beads", True))


def _excluded(force: str, pairs: np.ndarray, members: _Members) -> tuple[np.ndarray, np.ndarray]:
    """For every member, the numbers it ignores: where its list starts, and the lists, sorted."""
    n, noun = members.n_numbers, members.noun
    bad = ((pairs < 0) | (pairs >= n)).any(axis=1)
    if bad.any():
        e = int(np.argmax(bad))
        owner = "topology has beads" if noun == "beads" else "groups have sites"
        raise TopologyError(f"{force}: exclusions[{e}] names {noun} {pairs[e].tolist()}, but the {owner} 0 to {n - 1}")
    bad = pairs[:, 0] == pairs[:, 1]
    if bad.any():
        e = int(np.argmax(bad))
        raise TopologyError(f"{force}: exclusions[{e}] excludes {noun[:-1]} {pairs[e, 0]} from itself")
    member = np.full(n, -1)
    member[members.number] = np.arange(len(members.row))
    both = np.concatenate([pairs, pairs[:, ::-1]])
    both = both[(member[both] >= 0).all(axis=1)]
    owner, ignored = member[both[:, 0]], both[:, 1]
    order = np.lexsort((ignored, owner))
    start = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=len(members.row)))])
    return start.astype(np.int32), ignored[order].astype(np.int32)
