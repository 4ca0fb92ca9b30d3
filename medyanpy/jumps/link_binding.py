"""Binding and unbinding of links between sites."""

import math
from dataclasses import InitVar
from typing import TYPE_CHECKING, Any, ClassVar

from medyanpy._kernels.jumps import link_binding as kernel
from medyanpy._tools.validation import whole_number
from medyanpy.core.sites import Sites
from medyanpy.errors import ParameterError
from medyanpy.forces._arguments import Beads, Rows
from medyanpy.forces.links import Links
from medyanpy.jumps._base import Given, argument, declared, number
from medyanpy.jumps._linking import LinkingJump
from medyanpy.jumps.rates import DrivenRates

if TYPE_CHECKING:
    from medyanpy._kernels.jumps.jump import JumpOperation
    from medyanpy.core.layout import Layout
    from medyanpy.state import State

__all__ = ["LinkBinding"]


@declared
class LinkBinding(LinkingJump):
    r"""Binding of pairs of sites by links, and unbinding: crosslinkers, adhesion molecules.

    A pair of free sites binds, and a bound one lets go, at the rates

    .. math:: k_\mathrm{on}\, e^{-(1-\lambda) U/kT}, \qquad k_\mathrm{off}\, e^{\lambda U/kT}

    with the energy U(r) >= 0 of a link of this length. They are in detailed balance for every λ: a pair alone is bound
    with the probability w/(1 + w), :math:`w = (k_\mathrm{on}/k_\mathrm{off})\, e^{-U/kT}`, and of many sites with one
    partner each every matching has the weight ∏ w. Waiting times are exact: results depend on the timestep only through
    positions. The probability of a network is :math:`e^{-H/kT}` times :math:`(k_\mathrm{on}/k_\mathrm{off})^n` for n
    links, with a pool of N also times N!/[(N-n)! N^n].

    Parameters
    ----------
    a, b : Sites, handle, list of handles, or (n,) int
        The sites that may be bound to each other; where no `b` is given, those of `a` among themselves. Sites may be in
        both. See `Sites`: ``filaments.sites`` gives places along filaments. Of a handle the beads that it has now:
        those that are added later are not sites of this jump. Without sites, as after an edit that removes all, nothing
        binds; `Simulation.check` says so.

    Raises
    ------
    TopologyError
        Sites of several topologies; or (by a Context) beads that do not exist.
    ParameterError
        A number outside its domain. Neither or both of on_rate and dissociation_constant. One site twice in a group.
        Links of different stiffness or length, or of stiffness 0, where the reach would be infinite. Initial links that
        are not allowed.

    Notes
    -----
    ``state.links(links)`` has the bound links; ``links.lengths(state)`` and ``links.tensions(state)`` measure it. Of
    links with states the rates are those of the first, in which they bind; `CustomTransitions` changes the state, and
    lets go of others.

    Examples
    --------
    >>> import medyanpy as mp
    >>> topology = mp.Topology()
    >>> pair = topology.add_beads([[0.0, 0, 0], [30.0, 0, 0]], mass=1.0, friction=1.0)
    >>> sites = mp.Sites.beads(pair)
    >>> system = mp.System(topology)
    >>> links = system.add_force(mp.forces.Links([], [], stiffness=0.5, length=30.0))
    >>> binding = system.add_jump(mp.jumps.LinkBinding(links, sites[:1], sites[1:], off_rate=1.0, on_rate=1e6))
    >>> context = mp.Context(system, mp.BAGOGABIntegrator(0.01, kT=4.1, seed=1))
    >>> context.step(10)
    >>> context.get_state(positions=True).links(links)
    LinkEnds(1: 0 given, 1 bound)
    """

    kinds: ClassVar[tuple[str, ...]] = ("bind", "unbind")
    _has_states = True
    links: Links = argument(
        "Links", "The force of the links: springs or ropes, of one stiffness > 0 and one length. Its given terms stay; "
        "links that bind are added to them. It must be in the system.", attribute="The force of the links.",
    )  # fmt: skip
    a: Given["Beads", Sites] = argument(attribute="The first group of sites.")
    b: Given["Beads | None", Sites] = argument(
        default=None, attribute="The second group of sites; `a` where none was given."
    )
    off_rate: float = number("1/s", "Rate at which a relaxed link unbinds.", kw_only=True, above=0.0)
    on_rate: float | None = number(
        "1/s", "Rate at which a pair at the relaxed length binds.", default=None, kw_only=True, at_least=0.0
    )
    dissociation_constant: float | None = number(
        "1/nm³",
        "Instead of `on_rate`: K_D of the two sites, "
        r":math:`k_\mathrm{on} = k_\mathrm{off} / (K_D \int e^{-U/kT}\,d^3r)`. ``mp.units.molar`` is 0.602 per nm³.",
        default=None, kw_only=True, above=0.0,
    )  # fmt: skip
    load_sharing: float = number(
        "", "λ: the share of the energy that speeds up unbinding; the rest slows down binding.",
        default=0.5, kw_only=True, at_least=0.0, at_most=1.0,
    )  # fmt: skip
    rates: InitVar[DrivenRates | None] = argument(
        "Bell, CatchSlip or FlatWindow, optional", "Rates that are not in balance, by their authors' names, instead. "
        "Such a jump is driven: its changes of the energy are chemical energy, not heat.", default=None, kw_only=True,
    )  # fmt: skip
    reach: InitVar[float] = number(
        "kT", "Pairs that would have a link of more energy are not tried, and links with more energy do not unbind "
        "until they have less; for driven ones only the former holds.",
        default=25.0, kw_only=True, at_least=10.0, at_most=200.0, fixed=True,
    )  # fmt: skip
    partners: int = argument(
        "int, >= 1", "Links that a site may have at a time, those of other jumps at the same sites counted.",
        default=1, kw_only=True, attribute="Links that a site may have at a time.",
    )  # fmt: skip
    pool: int | None = argument(
        "int, >= 0, optional", "Number of links, bound or free: binding is slower by the share that is free. None: "
        "without limit.", default=None, kw_only=True, attribute="Number of links, bound or free; None without limit.",
    )  # fmt: skip
    separation: InitVar[float] = number(
        "nm", "The least distance of bound sites along one filament or rod.",
        default=0.0, kw_only=True, at_least=0.0, fixed=True,
    )  # fmt: skip
    same_filament: InitVar[bool] = argument(
        "bool", "Allow links between two sites of one filament or rod.", default=False, kw_only=True
    )
    bound: InitVar["Rows"] = argument(
        "(k, 2) int", "Links bound at the start: rows of `a` and `b`.", default=(), kw_only=True
    )

    def _take(self, given: dict[str, Any]) -> None:
        super()._take(given)
        rates, pool = given["rates"], given["pool"]
        if rates is not None and not isinstance(rates, DrivenRates):
            raise ParameterError(f"{self.name}: rates must be Bell, CatchSlip or FlatWindow, not {rates!r}")
        self._rates = rates
        self.driven: bool = rates is not None
        self._partners = whole_number(f"{self.name}: partners", given["partners"], at_least=1, at_most=64)
        self._pool = None if pool is None else whole_number(f"{self.name}: pool", pool, at_most=2**31 - 1)
        self._most_links = self._pool
        self._separation: float = given["separation"]
        self._take_sites(given)

    def set(self, **numbers: Any) -> None:
        # One of the two replaces the other.
        for name, other in (("on_rate", "dissociation_constant"), ("dissociation_constant", "on_rate")):
            if numbers.get(name) is not None:
                numbers.setdefault(other, None)
        super().set(**numbers)

    def _checked(self, **given: Any) -> dict[str, Any]:
        numbers = super()._checked(**given)
        if (numbers["on_rate"] is None) == (numbers["dissociation_constant"] is None):
            raise ParameterError(f"{self.name}: give on_rate= (1/s) or dissociation_constant= (1/nm³), one of the two")
        return numbers

    def fastest(self, kT: float | None) -> float | None:
        if self._rates is not None or kT is None:
            return None
        return max(self._binding_rate(kT), float(self._numbers["off_rate"]))

    def bind(self, layout: "Layout", kT: float) -> "JumpOperation":
        table = self._table
        operation = kernel.LinkBinding(
            self.name, kT, self.driven, self.every, table.sites.bind(layout), table.sites.on_points(layout),
            *self._labels(layout.topology), self._partners, -1 if self._pool is None else self._pool, table.most_pairs,
            max(1, len(self._links.states)),
        )  # fmt: skip
        operation.table, operation.layout = table, layout
        self.update(operation, kT)
        self._put_all(operation, "bound", self._bound, ParameterError)
        return operation

    def _put(self, operation: Any, a: int, b: int) -> str:
        why: str = operation.bind(a, b)
        return why

    def _binding_rate(self, kT: float) -> float:
        """Return on_rate, also where a dissociation constant was given, 1/s."""
        on: float | None = self._numbers["on_rate"]
        if on is not None:
            return on
        volume: float = self._numbers["dissociation_constant"] * self.volume(kT)
        return float(self._numbers["off_rate"] / volume)

    def log_weight(self, operation: "JumpOperation", state: "State", kT: float) -> float | None:
        if self.driven:
            return None
        n = int(operation.arrays()["numbers"][0])
        if not n:
            return 0.0
        each = self._binding_rate(kT) / self._numbers["off_rate"]
        return n * math.log(each) if each > 0.0 else -math.inf

    def update(self, operation: "JumpOperation", kT: float) -> None:
        share, rates = self._numbers["load_sharing"], self._rates
        law = (1.0 - share, share, 0.0, 0.0, 0.0)
        if rates is not None:
            law = float(rates.window is None), 0.0, rates.catch_share, 1.0 / rates.slip, 1.0 / rates.catch
        slack, average = self._slack(kT, *law[1:]), None if rates is None else rates.average
        pairs = self._binding_rate(kT), self._numbers["off_rate"]
        self._follow_links(operation, kT, *pairs, law, slack, self.driven, average)

    def window(self, kT: float) -> tuple[float, float]:
        """Return the lengths at which pairs bind, nm."""
        if self._rates is not None and self._rates.window is not None:
            return self._rates.window
        return super().window(kT)

    def in_frames(self) -> tuple[tuple[str, ...], int] | None:
        one, other = len(self._a), len(self.b)
        most = self._partners * (one // 2 + one % 2 if self._own_b is None else min(one, other))
        # Files keep room for one, also where there can be none.
        shown = ("links", "states") if self._links.states else ("links",)
        return shown, max(1, most if self._pool is None else min(most, self._pool))
