"""Filaments whose ends take subunits from a pool, and give them back."""

from collections.abc import Mapping, Sequence
from dataclasses import InitVar
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np

from medyanpy._kernels.jumps.polymerization import Polymerization as Kernel
from medyanpy._tools.validation import number as plain_number
from medyanpy._tools.validation import several, whole_number
from medyanpy.core.columns import SUBUNITS
from medyanpy.errors import ParameterError, TopologyError, UnitsWarning, shown
from medyanpy.forces._shapes import ShapeForce
from medyanpy.forces.filaments import FilamentBending, FixmanPotential
from medyanpy.jumps._balance import Balance
from medyanpy.jumps._base import Given, argument, declared
from medyanpy.jumps._chain_integrals import log_chains
from medyanpy.jumps._filament_ends import _ENDS, EndJump, asked, follow_places, joint_of, lets_go
from medyanpy.jumps.ageing import Ageing
from medyanpy.jumps.rates import GrowthLaw

if TYPE_CHECKING:
    from medyanpy.core.handles import Handle
    from medyanpy.core.layout import Layout
    from medyanpy.engine.schedule import Schedule
    from medyanpy.engine.worksheet import Look, Remark
    from medyanpy.forces import Force
    from medyanpy.jumps._base import Jump
    from medyanpy.state import State
    from medyanpy.topology import Topology

__all__ = ["Polymerization"]


# Steps in which an end that knocks is met at hardly any other place.
_FEW_STEPS = 10.0


@declared
class Polymerization(EndJump):
    r"""Growth and shrinkage of filaments at their ends, by subunits of a pool.

    The last link of a filament takes a subunit and gives one back at the rates

    .. math:: k_\mathrm{on}\, C\, \min\{1, e^{-\Delta U/kT}\}, \qquad k_\mathrm{off}\, \min\{1, e^{-\Delta U/kT}\}

    with the concentration C in the pool and the energy ΔU that all forces gain, as the end node moves along its link by
    one rise. Velocities stay. Free filaments of n subunits then have the weight :math:`(C/K_D)^n`, with
    :math:`K_D = k_\mathrm{off}/k_\mathrm{on}`, whatever their stiffness and the lengths of their links. An end that
    pushes with a force F grows as :math:`e^{-F\delta/kT}` says (the Brownian ratchet). No law for the force is given:
    those of other programs are `rates`.

    Where filaments have ``capacity_links=``, the link at an end splits in two as it becomes too long. The reverse is a
    merge.

    Parameters
    ----------
    filaments : GrowingFilaments
        Added with ``rise=``.
    species : species of a pool
        What it takes: ``pool["G-actin"]``, of a `Pool` or of `Compartments`, counted or a reservoir.

    Raises
    ------
    TopologyError
        Not the handle of filaments with subunits. An end node that is fixed, or an end link with fewer or more subunits
        than `subunits` allows.
    ParameterError
        A number outside its domain. Other than two of on_rate, off_rate and dissociation_constant. What is not a
        species of a pool. Another such jump at the same end that takes the same species. Once a Context is made:
        `FilamentBending` on the filaments with numbers that differ between joints, or with ``capacity_links=`` a rest
        angle.

    Notes
    -----
    The plus end is that of the last node. Two jumps, one for each end, may have rates of their own. Where their K_D
    differ, subunits flow through the filament (treadmilling): both jumps are driven then, from when both are in the
    system. Two jumps may have one end in common if they take other species, or from other pools. The
    ``chemical_energy`` of their events is :math:`\pm kT \ln(C/K_D)`, inf without a way back, and of balanced jumps 0.

    The integral of the last joint over directions is divided out, so that K_D does not depend on where nodes are.
    Beside `FilamentBending` this is exact with the `FixmanPotential`, and where ``capacity_links=`` is given. Else it
    is for filaments of one or two links, and near to it for others (:doc:`/theory/growth`). Energies of other forces
    count as they are.

    In `Compartments` subunits are taken from the cell where the end of the shorter filament is, and given back there.

    References
    ----------
    C. S. Peskin, G. M. Odell, G. F. Oster, Biophys. J. 65, 316 (1993): the ratchet. T. D. Pollard, J. Cell Biol. 103,
    2747 (1986): rates of actin, 11.6 /(µM s) and 1.4 /s at the barbed end.

    Examples
    --------
    >>> import medyanpy as mp
    >>> topology = mp.Topology()
    >>> actin = topology.add_filaments([[[0.0, 0, 0], [27.0, 0, 0], [54.0, 0, 0]]], 4e-12, 1e-6, rise=2.7)
    >>> system = mp.System(topology)
    >>> pool = system.add_pool(mp.Pool(volume=1e9, counts={"G-actin": 6022}))
    >>> rates = {"on_rate": 11.6 * mp.units.per_micromolar_second, "off_rate": 1.4}
    >>> growth = system.add_jump(mp.jumps.Polymerization(actin, pool["G-actin"], **rates))
    >>> context = mp.Context(system, mp.BAGOGABIntegrator(1e-7, temperature=300.0))
    >>> actin.subunits(context.get_state(positions=True))
    array([20])
    """

    kinds: ClassVar[tuple[str, ...]] = ("on", "off")
    subunits: Given["Sequence[int] | None", tuple[int, int]] = argument(
        "(2,) of int, >= 1, optional", "Fewest and most of the last link: an end waits there, or with "
        "``capacity_links=`` splits or merges. From half of N to below "
        "one and a half of N where none are given, N that of the longest link.", default=None, kw_only=True,
        attribute="Fewest and most subunits of the last link.",
    )  # fmt: skip

    off_rates: Given["Mapping[str, float] | None", dict[str, float]] = argument(
        "dict of str to float, 1/s, optional", "Beside `jumps.Ageing`: by the state of the outermost subunit, where "
        "it is not that of `off_rate`.", default=None, kw_only=True,
        attribute="Rates back by the state of the outermost subunit, where they are not `off_rate`.",
    )  # fmt: skip

    contact: InitVar[str] = argument(
        '"energy"', "What hinders an end: the energy ΔU, as above, unless `rates` is given.", default="energy",
        kw_only=True,
    )  # fmt: skip
    rates: InitVar[GrowthLaw | None] = argument(
        "MedyanRatchet or CytosimGrowth, optional", "Rates that read an averaged force in place of the energy; they "
        "are driven.", default=None, kw_only=True,
    )  # fmt: skip

    def _take(self, given: dict[str, Any]) -> None:
        super()._take(given)
        self._law: GrowthLaw | None = given["rates"]
        if self._law is not None and not isinstance(self._law, GrowthLaw):
            raise ParameterError(
                f"{self.name}: rates must be MedyanRatchet(...) or CytosimGrowth(...), not {shown(self._law)}"
            )
        if given["contact"] != "energy":
            raise ParameterError(
                f'{self.name}: contact must be "energy", not {shown(given["contact"])}: laws that read a force are '
                "given by rates="
            )
        by_state = {} if given["off_rates"] is None else given["off_rates"]
        if not isinstance(by_state, Mapping) or not all(isinstance(name, str) for name in by_state):
            raise ParameterError(f"{self.name}: off_rates must be a dict of rates by state, not {shown(by_state)}")
        self._off_rates = {
            name: plain_number(f"{self.name}: off_rates[{name!r}]", rate, at_least=0.0)
            for name, rate in by_state.items()
        }
        filaments, wanted = self._filaments, given["subunits"]
        longest = int(filaments.kind.subunits.max(initial=1))
        least, most = max(1, longest // 2), longest + max(0, longest // 2 - 1)
        if wanted is not None:
            two = several(f"{self.name}: subunits", wanted)
            if len(two) != 2:
                raise ParameterError(f"{self.name}: subunits = {shown(wanted)} but must be two, fewest and most")
            least = whole_number(f"{self.name}: subunits[0]", two[0], at_least=1)
            most = whole_number(f"{self.name}: subunits[1]", two[1], at_least=least, at_most=2**30)
        self._subunits = least, most
        #: All jumps of its system at the same filaments.
        self._mates: tuple[Polymerization, ...] = ()
        self._ageing: Ageing | None = None
        #: Whether ends let go what is held at places that they leave.
        self._unbinds = False

    def _arguments_now(self) -> dict[str, Any]:
        # Those that follow from the longest link do not follow it when filaments are added or removed.
        return super()._arguments_now() | {"subunits": list(self._subunits), "off_rates": self._off_rates or None}

    def __repr__(self) -> str:
        law = "contact='energy'" if self._law is None else f"rates={self._law!r}"
        return f"{super().__repr__()[:-1]}, {law})"

    @property
    def births(self) -> "tuple[Handle, ...]":
        return () if self._filaments._capacity_links is None else (self._filaments,)

    @property
    def longest_link(self) -> int:
        return self._subunits[1]

    @property
    def most_subunits(self) -> int:
        own, (least, most) = self._filaments.kind, self._subunits
        if self._filaments._capacity_links is not None:
            inner = max(most - least + 1, int(own.subunits.max(initial=1)))
            return self._filaments._capacity_links * inner + 2 * most
        return int(np.add.reduceat(own.subunits, own.link_starts[:-1]).max(initial=1)) + 2 * most

    def _shares(self) -> np.ndarray:
        """Return the number q of the last joint at each of the ends, (n,)."""
        handle, shares = self._filaments, []
        w = np.where(handle.kind.fixed_beads, 0.0, 1.0 / handle.mass)
        for last, before, _, inner in self.end_rows.tolist():
            i = int(np.searchsorted(handle.starts, last, side="right")) - 1
            nodes = w[handle.starts[i] : handle.starts[i + 1]]
            shares.append(0.0 if inner < 0 else _share(nodes[:: 1 if before < last else -1]))
        return np.array(shares, float)

    def check(self, topology: "Topology", forces: "tuple[Force, ...]") -> None:
        super().check(topology, forces)
        handle, ends = self._filaments, self.end_rows
        now = handle.kind.subunits
        number = np.empty(len(handle), int)
        number[handle.links[:, 0]] = np.arange(len(handle.links))
        fixed = handle.kind.fixed_beads
        least, most = self._subunits
        for node, _, link, _ in ends.tolist():
            if fixed[node]:
                raise TopologyError(
                    f"{self.name}: {handle.kind.describe(int(handle.beads[node]))} is fixed, but an end that grows "
                    "moves"
                )
            if not least <= now[number[link]] <= most:
                raise TopologyError(
                    f"{self.name}: {handle.kind.describe_link(int(number[link]))} has {now[number[link]]} subunits, "
                    f"but the link at an end that grows has {least} to {most}: add the filaments with other nodes, or "
                    "give subunits="
                )
        full = most - least + 1
        if handle._capacity_links is not None and (full < 4 or least != full // 2):
            raise ParameterError(
                f"{self.name}: subunits = ({least}, {most}): a link behind which another begins has {full}, the most "
                f"less the fewest and one more, but must have >= 4, and the fewest half of them, {full // 2}"
            )

    def check_forces(self, forces: "tuple[Force, ...]") -> None:
        handle = self._filaments
        splits = handle._capacity_links is not None
        for force in forces:
            if isinstance(force, FilamentBending) and force.filaments is handle:
                for name in ("bending_modulus", "rest_angle"):
                    values = np.asarray(force._numbers[name])
                    if values.size and (values != values.flat[0]).any():
                        raise ParameterError(
                            f"{self.name}: {name} of {force.name} differs between joints, but filaments that grow need "
                            "one number"
                        )
                if splits and force._number_of_all("rest_angle") != 0.0:
                    raise ParameterError(f"{self.name}: {force.name} has a rest angle: new links are drawn straight on")

    def beside(self, jumps: "Sequence[Jump]") -> None:
        handle, ends = self._filaments, set(_ENDS[self._end])
        mates = tuple(jump for jump in jumps if isinstance(jump, Polymerization) and jump.filaments is handle)
        for mate in mates:
            if handle._capacity_links is not None and mate.subunits != self._subunits:
                raise ParameterError(
                    f"{self.name}: subunits = {self._subunits}, but {mate.subunits} of {mate.name} at the same "
                    "filaments: links are split and merged by both"
                )
            both = [end for end in _ENDS[mate._end] if end in ends]
            if mate is not self and both and mate._species == self._species:
                raise ParameterError(
                    f"{self.name}: {mate!r} is at the {both[0]} end of {handle.name!r} already, and takes "
                    f"{self._species!r} too: add the on_rate and off_rate of both, or give end= the other end"
                )
        self._mates, self._unbinds = mates, lets_go(handle, jumps)
        super().beside(jumps)

    def bind(self, layout: "Layout", kT: float) -> Kernel:
        handle, rise, (least, most) = self._filaments, self._filaments.rise, self._subunits
        layout.expect_width(self.name, most * rise, f"{self.name}: a last link has up to")
        pool, ends = self._species.pool, self.bind_ends(layout)
        if handle.kind.slots is None:
            shares, which = np.unique(self._shares(), return_inverse=True)
        else:
            # With the Fixman potential these do not count.
            shares, which = np.zeros(1), np.zeros(len(ends), np.int64)
        longest = max(most, int(handle.kind.subunits.max(initial=0))) + most
        operation = Kernel(
            self.name, self.every, ends, which.astype(np.int32), shares, longest, rise, least, most,
            layout.pools[pool], self._species.number, layout.n, layout.momenta_sizes,
        )  # fmt: skip
        self.update(operation, kT)
        return operation

    def meet(self, operation: Any, others: Any) -> None:
        handle = self._filaments
        follow_places(self, handle, operation, others, self.most_subunits)
        ageing = next(((j, own) for j, own in others if isinstance(j, Ageing) and j.filaments is handle), None)
        if ageing is None and self._off_rates:
            raise ParameterError(f"{self.name}: off_rates= are by states of subunits: add a jumps.Ageing of {handle!r}")
        self._ageing = None if ageing is None else ageing[0]
        for state in self._off_rates:
            cast(Ageing, self._ageing).known("off_rates", state)
        operation.ageing = None if ageing is None else ageing[1]
        if handle.kind.slots is not None:
            least, most = self._subunits
            operation.split(most - least + 1, ways_of(self._mates))
        self.update(operation, operation.temperature)

    def balances(self, kT: float | None) -> "list[Balance]":
        (on, off), species, name = self.rates, self._species.pool, self._species.name
        if on == 0.0 or off == 0.0 or species.concentrations.get(name) == 0.0:
            return []
        taken, fixed = species.made({name: -1})
        return [Balance({(self._filaments, "subunits"): 1.0, **taken}, np.log(on / off) - fixed)]

    def _weigh_chains(self, operation: Any) -> None:
        """Without a Fixman potential numbers of subunits have a weight by all directions of their chain."""
        handle, (least, most) = self._filaments, self._subunits
        if handle._capacity_links is not None and operation.metric:
            stiffness = operation.bending_modulus / (handle.rise * operation.temperature)
            chains = log_chains(stiffness, most - least + 1, most, handle._capacity_links)
            operation.weigh_chains(chains)

    def update(self, operation: Any, kT: float) -> None:
        affinity = (*self._together(operation).affinities(self, kT), 0.0)[0]
        operation.set(kT, self.driven, *self.rates, affinity)
        self._weigh_chains(operation)
        law = self._law
        if law is not None:
            operation.read_force(kT / self._filaments.rise if law.force is None else law.force, law.average)
        if self._ageing is not None and operation.ageing is not None:
            off = [self._off_rates.get(state, self.rates[1]) for state in self._ageing.states]
            operation.age(np.array([self.rates[1], *off[1:]]))

    @property
    def driven(self) -> bool:  # type: ignore[override]
        """True if no concentration is in balance with all ends of the filaments, those of other jumps of its system
        among them, or a rate has no way back."""
        mates = self._mates or (self,)
        if self._unbinds or any(mate._law is not None or 0.0 in mate.rates for mate in mates):
            return True
        if any(off != mate.rates[1] for mate in mates for off in mate._off_rates.values()):
            return True
        return self._together().drives(self)

    def check_state(self, operation: Any, arrays: Mapping[str, np.ndarray]) -> None:
        if not np.isfinite(arrays.get("load", np.zeros(1))).all():
            raise ParameterError(f"{self.name}: averaged forces must be finite")

    def weigh(self, operation: Any, schedule: "Schedule") -> None:
        operation.weights.take(schedule.bound, asked(schedule), None, None)
        handle, forces = self._filaments, schedule.system.forces
        metric = not any(isinstance(force, FixmanPotential) and force.filaments is handle for force in forces)
        operation.bend(*joint_of(handle, forces), metric)
        self._weigh_chains(operation)
        for force in forces:
            if isinstance(force, ShapeForce) and handle in force.handles:
                reach = 2.0 * (force._widest_radius + self._subunits[1] * handle.rise)
                said = f"{self.name}: with the longest link, {force.name} reaches"
                schedule.layout.expect_width(f"{force.name} of links of {self.name}", reach, said)

    def log_weight(self, operation: Any, state: "State", kT: float) -> float | None:
        if self.driven or self._filaments._capacity_links is not None:
            return None
        if self._mates[0] is not self:
            # All mates weigh the same subunits.
            return self._together(operation).log_weight(self, state, kT)
        handle, company = self._filaments, self._together(operation)
        ends = np.concatenate([mate.end_rows for mate in self._mates])
        shares = np.concatenate([mate._shares() for mate in self._mates])
        # The two ends of a filament of two links have one joint.
        _, own = np.unique(np.where(ends[:, 3] < 0, -1, ends[:, 1]), return_index=True)
        own = own[ends[own, 3] >= 0]
        subunits = state.column(SUBUNITS.name)[handle.beads].astype(np.int64)
        both = subunits[ends[own, 2]] + subunits[ends[own, 3]]
        joints = operation.log_integrals(both, shares[own], kT)
        log_z = company.activities(kT)[handle, "subunits"]
        return float(handle.subunits(state).sum() * log_z - joints) + company.log_weight(self, state, kT)

    def remarks(self, look: "Look") -> "list[Remark]":
        """Return a remark on a force that is averaged over so few steps that it is that of the moment."""
        found, steps = super().remarks(look), look.integrator.timestep * self.every
        if self._law is not None and self._law.average < _FEW_STEPS * steps:
            text = (
                f"{self.name}: {self._law!r} reads nearly the force of the moment, since average is less than "
                f"{_FEW_STEPS:g} steps of {steps:g} s: that is 5.9 times too fast at 3 pN against a wall of 100 pN/nm "
                "(subunits of 2.7 nm, 300 K). Take a longer average=, or leave rates= out"
            )
            found.append((UnitsWarning, text))
        return found

    def remarks_on_cost(self, operation: Any, schedule: "Schedule") -> "list[Remark]":
        return self._remarks_on_whole_energies(schedule, operation.rate, "a subunit")


def _share(w: np.ndarray) -> float:
    """Return q of the last joint of a straight chain with these inverse masses of nodes, the far end first."""
    pivot = w[0] + w[1]
    for k in range(1, len(w) - 2):
        pivot = (w[k] + w[k + 1]) - (w[k] ** 2 / pivot if pivot > 0.0 else 0.0)
    together = pivot * (w[-1] + w[-2])
    return float(w[-2] ** 2 / together) if together > 0.0 else 0.0


def ends_that_grow(jumps: "Sequence[Polymerization]") -> set[str]:
    """Return which ends of the filaments of these jumps take subunits: "plus" and "minus"."""
    return {end for jump in jumps for end in _ENDS[jump.end]}


def ways_of(jumps: "Sequence[Polymerization]") -> np.ndarray:
    """Return logarithms of `_ways` where both ends grow by these jumps, which have the same `subunits`; else one 0."""
    return np.log(_ways(*jumps[0].subunits)) if len(ends_that_grow(jumps)) == 2 else np.zeros(1)


def _ways(least: int, most: int) -> np.ndarray:
    """Return in how many ways 0 to 2 most subunits can be divided among links, (2 most + 1,): one of the fewest to the
    most, or at each end one of these, and full ones between. Beyond, there are as many as in the last; 1 for none."""
    full, n = most - least + 1, np.arange(2 * most + 1)
    ends = np.arange(least, most + 1)
    left = n[:, None, None] - ends[:, None] - ends
    out = ((left >= 0) & (left % full == 0)).sum(axis=(1, 2)) + ((n >= least) & (n <= most))
    at_least_one: np.ndarray = np.maximum(out, 1).astype(float)
    return at_least_one
