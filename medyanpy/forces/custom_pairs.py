"""Pair energies given as text or as tables."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from medyanpy._kernels.forces.radial import Radial
from medyanpy._kernels.selected import pairs
from medyanpy._tools.described import scalar_if_one
from medyanpy._tools.types import Numbers
from medyanpy._tools.validation import array
from medyanpy.core.sites import Sites
from medyanpy.errors import ParameterError, TopologyError, shortened
from medyanpy.forces._arguments import Beads, Rows
from medyanpy.forces._base import Domain, Given, argument, declared, domain_table, number
from medyanpy.forces._expressions import WrittenForce
from medyanpy.forces._pair_force import Profile
from medyanpy.forces.pairs import EndingPair, Kernel, steepest
from medyanpy.surfaces.expressions import Graph, parse

if TYPE_CHECKING:
    from medyanpy._kernels.core.program import Operation
    from medyanpy.core.layout import Layout
    from medyanpy.forces._stiffness import Start

__all__ = ["CustomPair", "TabulatedPair"]

# Numbers that are not of the text.
_OWN = {**EndingPair.domains, "cutoff": replace(EndingPair.domains["cutoff"], optional=False)}
# Number of pairs for which the order of beads is checked, and the difference of values by rounding.
_TRIED = 64
_ROUNDING = 1e-9
# Places at which the lowest energy of a pair is looked for.
_GRID = 4096


class CustomPair(WrittenForce, EndingPair):
    r"""An energy of pairs written as an expression of their distance, of parameters, and of numbers of both beads.

    .. math:: U = \sum_{(i, j)} u(r;\ p,\ p_i,\ p_j) - U_c \quad\text{for}\; r = |x_j - x_i| < r_c

    over all pairs with one bead in each group, each pair once. U_c is u of the pair at the cutoff: 0 where the energy
    is switched off.

    Parameters
    ----------
    group_a, group_b : handle, list of handles, (n,) int, or Sites
        As in `SoftSphere`.
    energy : str or SymPy expression
        u, pN nm, of r (nm) and parameters, with the grammar and functions of :doc:`/forces/fields`.
    cutoff : float, nm, > 0
        r_c, beyond which beads do not interact.
    switch : float, nm, > 0, optional
        As in `LennardJones`.
    shift : bool
        As in `LennardJones`.
    exclusions : (E, 2) int, optional
        As in `SoftSphere`.
    skin : float, nm, >= 0, optional
        As in `SoftSphere`; 0.4 times the cutoff where none is given.
    name, group
        See `Force`.
    **parameters : float or (n,) float, finite
        The numbers that the expression names. One with a value for each bead is named twice there, with 1 for one bead
        of the pair and 2 for the other: ``sigma=[...]``, in the order of the beads, is ``sigma1`` and ``sigma2``. Both
        groups are then the same. Where they share no bead, ``sigma1=[...]`` may be given for the beads of group_a, and
        ``sigma2=[...]`` for those of group_b. Change them with `set`.

    Raises
    ------
    ParameterError
        Text that is not such an expression (the message names the place), that does not depend on r, or, in one group,
        is not symmetric in the two beads of a pair. A parameter that is missing, is not in the expression, has a name
        with another meaning, or is not finite. A switch that is not below the cutoff.
    TopologyError
        As `SoftSphere`; numbers of beads of two groups that share some.

    Notes
    -----
    The expression is read, never run. Its first three derivatives are exact to rounding. Where u is not a number, or
    infinite, the run stops. Two beads in one place do not push each other. The longest timestep is known where u has a
    lowest value and no number of single beads. For distances along a surface take `TabulatedPair`.

    Examples
    --------
    Beads of different sizes, by the rules of Lorentz and Berthelot:

    >>> import medyanpy as mp
    >>> topology = mp.Topology()
    >>> beads = topology.add_beads([[0.0, 0, 0], [3.0, 0, 0], [0, 4.0, 0]], mass=1.0)
    >>> system = mp.System(topology)
    >>> text = "4*e*((s/r)^12 - (s/r)^6); s = (sigma1 + sigma2)/2; e = sqrt(epsilon1*epsilon2)"
    >>> numbers = {"sigma": [2.0, 3.0, 4.0], "epsilon": [1.0, 4.0, 4.0]}
    >>> mixed = system.add_force(mp.forces.CustomPair(beads, beads, text, cutoff=12.0, switch=10.0, **numbers))
    >>> f"{mp.Context(system, mp.VerletIntegrator(0.01)).get_state(energy=True).potential_energy:.6f}"
    '-4.613271'
    """

    _coordinate_names = ("r",)
    domains: Mapping[str, Domain] = domain_table()  # of each force its own

    def __init__(
        self, group_a: "Beads", group_b: "Beads", energy: Any, *, cutoff: float, switch: float | None = None,
        shift: bool = True, exclusions: "Rows | None" = None, skin: float | None = None, name: str | None = None,
        group: int = 0, **parameters: "Numbers",
    ) -> None:  # fmt: skip
        title = name or type(self).__name__
        for p in parameters:
            if p in _OWN:
                raise ParameterError(f"{title}: {p} is a number of the force and cannot be a parameter")
        self._read(energy, "_beads_a", name, parameters)
        self._of_text = tuple(parameters)
        self._words = frozenset(re.findall(r"[A-Za-z_]\w*", self._text))
        numbers: dict[str, Any] = {"cutoff": cutoff, "switch": switch, "skin": skin, **parameters}
        given = {"group_a": group_a, "group_b": group_b, "shift": shift, "exclusions": exclusions}
        self._take({**given, "name": name, "group": group})
        self._declare(**numbers)
        self._check_text()
        self._check_order()

    @property
    def _is_one_group(self) -> bool:
        """True if the two groups name the same beads, or are the same sites."""
        a, b = self._groups
        if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
            return np.array_equal(a, b)
        return a is b or (isinstance(a, tuple) and a == b)

    def _items_of(self, p: str) -> str | None:
        """Name the attribute with the beads of which each may have its own value of a parameter; None for no beads."""
        if self._is_one_group:
            return None if p in self._words else "_beads_a"
        return {"1": "_beads_a", "2": "_beads_b"}.get(p[-1])

    def _declare(self, **numbers: Any) -> None:
        if "cutoff" not in self.changeable:
            # Which parameters each bead may have depends on the groups, which are known by now.
            table = domain_table(**{p: Domain(per=self._items_of(p)) for p in self._of_text}, **_OWN)
            self.domains: Mapping[str, Domain] = table
            self.changeable: tuple[str, ...] = tuple(table)
        of_text = {p: self.domains[p] for p in self._of_text}
        for p, domain in of_text.items():
            given = numbers[p]
            many = isinstance(given, list | tuple) or (isinstance(given, np.ndarray) and given.ndim > 0)
            if domain.per is None and many:
                a, b = self._group_names
                hint = f"give {p}1= for the beads of {a}, {p}2= for those of {b}"
                if self._is_one_group:
                    hint = f"name them {p}1 and {p}2 in the expression, where they are those of the two beads of a pair"
                raise ParameterError(f"{self.name}: {p} must be one number for all pairs; for numbers of beads {hint}")
        super()._declare(**{p: numbers[p] for p in self.changeable})

    def _names_of(self, p: str) -> list[str]:
        """List the names of a parameter in the text."""
        if self._is_one_group and self._items_of(p) is not None:
            return [w for w in (f"{p}1", f"{p}2") if w in self._words] or [p]
        return [p]

    def _named_numbers(self) -> dict[str, Any]:
        return {w: self._numbers[p] for p in self._of_text for w in self._names_of(p)}

    def _own_of(self, which: str) -> dict[str, str]:
        """Return the parameters of the first ("1") or second ("2") bead of a pair, by their names in the text."""
        own = [p for p in self._of_text if isinstance(scalar_if_one(self._numbers[p]), np.ndarray)]
        return {w: p for p in own for w in self._names_of(p) if w.endswith(which)}

    def _check_order(self) -> None:
        """Refuse an energy that is not symmetric in the beads of a pair, in one group: neither is first."""
        names = [w for p in self._of_text if self._items_of(p) is not None for w in self._names_of(p)]
        if not self._is_one_group or not names:
            return
        graph, u, _ = self._graph(names)
        draw = np.random.default_rng(0)
        r = self._numbers["cutoff"] * draw.uniform(0.05, 1.0, _TRIED)
        of: dict[str, list[np.ndarray]] = {}
        for w in names:
            given = np.atleast_1d(self._numbers[w[:-1]])
            if w[:-1] not in of:
                tried = [draw.choice(given, _TRIED) if len(given) else np.ones(_TRIED) for _ in range(2)]
                # Equal beads show no difference.
                of[w[:-1]] = [t * (1.0 + 0.1 * draw.random(_TRIED)) for t in tried]
        values = []
        for turned in (0, 1):
            numbers = [of[w[:-1]][(int(w[-1]) - 1 + turned) % 2] for w in names]
            values.append(graph.evaluate([u], [r, *numbers])[0])
        a, b = values
        told = np.isfinite(a) & np.isfinite(b)
        differs = told & (np.abs(a - b) > _ROUNDING * np.maximum(np.abs(a), np.abs(b)))
        if differs.any():
            raise ParameterError(
                f"{self.name}: {shortened(self._text, 80)!r} is another energy where the two beads of a pair change "
                "places; in one group neither is the first: write it such that 1 and 2 can be exchanged"
            )

    def _whole_graph(self, others: list[str]) -> tuple[Graph, int]:
        """Return the energy of a pair, brought to its end, with some of its numbers as inputs."""
        graph, u, at = self._graph(others)
        end, switch = self._end(self._numbers), self._numbers["switch"]
        if switch is not None and end is not None:
            one = graph.number(1.0)
            beyond = graph.subtract(at["r"], graph.number(switch))
            x = graph.max(graph.multiply(beyond, graph.number(1.0 / (end - switch))), graph.number(0.0))
            rest = graph.add(one, graph.multiply(x, graph.add(graph.number(3.0), graph.multiply(graph.number(6.0), x))))
            u = graph.multiply(u, graph.multiply(graph.power(graph.subtract(one, x), 3), rest))
        elif self._shift and end is not None:
            _, names = self._inputs(graph, others)
            try:
                there = parse(self.name, self._text, graph, names, False, {"r": graph.number(end)})
                known = graph.value_of(there)
            except (ParameterError, ArithmeticError):
                # The text has been read before: it is this distance.
                known = np.nan
            if known is not None and not np.isfinite(known):
                raise ParameterError(
                    f"{self.name}: {shortened(self._text, 80)!r} is not a number at the cutoff, {end:g} nm, where it "
                    "is to be brought to 0: give another, or shift=False"
                )
            u = graph.subtract(u, there)
        return graph, u

    def squared_frequencies(self, start: "Start") -> np.ndarray | None:
        if self._own_of("1") or self._own_of("2"):
            return None
        graph, u = self._whole_graph([])
        end = self._numbers["cutoff"]
        nodes = [u, graph.along(u, 0), graph.along(u, 0, 0)]

        def stiffness(r: np.ndarray, _: Any = None) -> np.ndarray:
            return steepest(np.column_stack(graph.evaluate(nodes, [r])), r)

        r = np.linspace(0.0, end, _GRID + 1)[1:-1]
        energy = graph.evaluate([u], [r])[0]
        lowest = int(np.argmin(np.where(np.isfinite(energy), energy, np.inf)))
        if lowest == 0 or lowest == len(r) - 1 or not np.isfinite(energy[lowest - 1]):
            # No well: the longest timestep depends on how near to each other beads will come.
            return None
        return self._frequencies(start, end, stiffness, max(float(stiffness(r[lowest : lowest + 1])[0]), 0.0))

    def bind(self, layout: "Layout") -> "Operation":
        members = self._members(layout)
        of, numbers = self._of_pair(layout, members)
        if (members.group == 3).any() and not self._is_one_group and of:
            bead, p = int(members.bead[np.argmax(members.group == 3)]), next(iter(of.values()))
            raise TopologyError(
                f"{self.name}: {p} has one number for each bead of a group, but bead {bead} is in both: give groups "
                "that share none, or one group"
            )
        graph, u = self._whole_graph(list(of))
        wanted = [u, *(graph.along(u, *[0] * k) for k in (1, 2, 3))]
        cutoff = self._numbers["cutoff"]
        operation = pairs.WrittenPairs(
            self.name, cutoff, *numbers, not self._is_one_group, [graph.program(wanted[:2]), graph.program(wanted)],
            layout.threads, self._neighbors(layout, members, np.full(len(members.row), 0.5 * cutoff)), members.table,
        )  # fmt: skip
        operation.acts_on_points = members.on_points
        return operation

    def _profile(self, layout: "Layout", members: Any) -> "Profile | None":
        of, numbers = self._of_pair(layout, members)
        graph, u = self._whole_graph(list(of))
        nodes = [u, graph.along(u, 0), graph.along(u, 0, 0)]
        end = self._numbers["cutoff"]

        def values(r: np.ndarray, pairs: np.ndarray) -> np.ndarray:
            first, second = (
                pairs.T if self._is_one_group else np.where(members.group[pairs[:, :1]] == 1, pairs, pairs[:, ::-1]).T
            )
            columns = [*numbers[0][first].T, *numbers[1][second].T]
            found = np.column_stack(graph.evaluate(nodes, [r, *columns]))
            return np.where(r[:, None] < end, found, 0.0)

        return Profile(values, end, None if of else 0)

    def _of_pair(self, layout: "Layout", members: Any) -> tuple[dict[str, str], list[np.ndarray]]:
        """Return names of the parameters of both beads in the text, and numbers (members, parameters) of each."""
        of = [self._own_of(which) for which in "12"]
        second = [False, not self._is_one_group]
        numbers = [self._of_members(layout, members, list(p.values()), b) for p, b in zip(of, second, strict=True)]
        return of[0] | of[1], numbers

    def _of_members(self, layout: "Layout", members: Any, wanted: list[str], second: bool) -> np.ndarray:
        """Return numbers (members, parameters) of the first or second bead; those of members elsewhere are not used."""
        out = np.zeros((len(members.row), len(wanted)))
        beads = self._beads_b if second else self._beads_a
        for k, p in enumerate(wanted):
            value = np.broadcast_to(self._numbers[p], (len(beads),))
            if isinstance(beads, Sites):
                at = members.row - (len(self._beads_a) if second else 0)
                there = (at >= 0) & (at < len(beads))
                out[there, k] = value[at[there]]
            else:
                # Rows without a bead have the values of beads that jumps may add.
                of = np.full(layout.n, self._number_of_all(p) or 0.0)
                of[beads] = value
                out[:, k] = of[members.bead]
        return out


@declared
class TabulatedPair(EndingPair):
    r"""An energy of pairs that is given as a table.

    .. math:: U = \sum_{(i, j)} s\,[u(r) - U_c] \quad\text{for}\; r = |x_j - x_i| < r_c

    over all pairs with one bead in each group, each pair once; u is the cubic spline through the table, U_c its value
    at the cutoff, or 0 where the energy is switched off.

    Parameters
    ----------
    cutoff
        r_c, within the table; its last distance where none is given.

    Raises
    ------
    ParameterError, TopologyError
        As `SoftSphere`; a switch that is not below the cutoff. A table that is too short, distances that do not ascend,
        numbers that are not finite; a cutoff outside the table.

    Notes
    -----
    The spline has two continuous derivatives; at both ends its third is that of the interval next to the last ("not a
    knot"). Its error falls as the fourth power of the spacing, that of forces as the third: give more rows where the
    energy is steep. Two beads nearer to each other than the first distance have no energy, and the run ends and names
    one. Let a table begin where thermal beads never come, or at 0, where there is no force.

    Examples
    --------
    >>> import numpy as np
    >>> import medyanpy as mp
    >>> topology = mp.Topology()
    >>> beads = topology.add_beads([[0.0, 0, 0], [2.5, 0, 0]], mass=1.0)
    >>> r = np.linspace(0.0, 5.0, 51)
    >>> mp.forces.TabulatedPair(beads, beads, r, 4.0 * np.exp(-r**2))
    TabulatedPair(scale=1, cutoff=None, switch=None, skin=None)
    """

    distances: Given["Numbers", np.ndarray] = argument(
        "(n,) float, nm, >= 0", "Of at least four rows of the table, each larger than the one before; equally far from "
        "each other or not.", attribute="(n,) nm; of the table.",
    )  # fmt: skip
    energies: Given["Numbers", np.ndarray] = argument(
        "(n,) float, pN nm, finite", "u there.", attribute="(n,) pN nm; of the table."
    )
    scale: float = number(text="s, a factor that can be set during a run.", default=1.0)

    def _take(self, given: dict[str, Any]) -> None:
        title = given["name"] or type(self).__name__
        self._distances, self._energies = _table(title, given["distances"], given["energies"])
        super()._take(given)

    def _end(self, numbers: Mapping[str, Any]) -> float | None:
        cutoff: float | None = numbers["cutoff"]
        return float(self._distances[-1]) if cutoff is None else cutoff

    def _checked(self, **numbers: Any) -> dict[str, Any]:
        checked = super()._checked(**numbers)
        cutoff, r = checked["cutoff"], self._distances
        if cutoff is not None and not r[0] < cutoff <= r[-1]:
            bounds = f"above {r[0]:g} and up to {r[-1]:g} nm"
            raise ParameterError(f"{self.name}: cutoff = {cutoff:g} nm but must be within the table, {bounds}")
        return checked

    def _kernel(self) -> Kernel:
        from scipy.interpolate import CubicSpline

        r = self._distances
        cubics = CubicSpline(r, self._energies).c[::-1].T
        return Radial.TABULATED, (self._numbers["scale"], float(len(r))), 0.0, np.append(r, cubics)

    def squared_frequencies(self, start: "Start") -> np.ndarray | None:
        lowest = int(np.argmin(self._numbers["scale"] * self._energies))
        if lowest in (0, len(self._distances) - 1):
            # No well: the longest timestep depends on how near to each other beads will come.
            return None
        stiffness, end = self._steepness(), self._end(self._numbers)
        least = float(stiffness(self._distances[lowest : lowest + 1])[0])
        return self._frequencies(start, end or 0.0, lambda r, _: stiffness(r), max(least, 0.0))


def _table(name: str, distances: "Numbers", energies: "Numbers") -> tuple[np.ndarray, np.ndarray]:
    r = array(f"{name}: distances", distances, (None,)).copy()
    u = array(f"{name}: energies", energies, (None,)).copy()
    if len(r) < 4 or len(u) != len(r):
        raise ParameterError(
            f"{name}: {len(r)} distances and {len(u)} energies, but there must be as many of either, and at least 4"
        )
    if r[0] < 0.0:
        raise ParameterError(f"{name}: distances[0] = {r[0]:g} nm but must be >= 0")
    if not (np.diff(r) > 0.0).all():
        k = int(np.argmin(np.diff(r) > 0.0)) + 1
        raise ParameterError(f"{name}: distances[{k}] = {r[k]:g} nm but must be above the one before, {r[k - 1]:g} nm")
    r.flags.writeable = u.flags.writeable = False
    return r, u
