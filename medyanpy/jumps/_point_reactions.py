"""Reactions of beads with species: checks of what users give, and rates."""

from collections import Counter
from collections.abc import Sequence
from math import exp, inf, isfinite, log, sqrt
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from medyanpy._kernels.core.workspace import WorkSpace
from medyanpy._kernels.jumps.point_reactions import PointReactions
from medyanpy._tools.names import look_up
from medyanpy._tools.validation import whole_number
from medyanpy.core.handles import Handle
from medyanpy.errors import ParameterError, shown
from medyanpy.jumps._balance import Balance, SpeciesForm
from medyanpy.jumps._reaction_grounds import InSpace, OnMembrane, ground_of, microscopic_rate
from medyanpy.jumps._reaction_texts import Reaction, ways_back
from medyanpy.pools import MoleculePool

if TYPE_CHECKING:
    from medyanpy.core.layout import Layout
    from medyanpy.core.species import Species
    from medyanpy.engine.schedule import Schedule
    from medyanpy.engine.worksheet import Look, Remark
    from medyanpy.jumps._formed import FormedJump

__all__ = ["PointForm"]

# What texts may give of a reaction, in place of the arguments of these names.
_NUMBERS = {"k_on": "on_rate", "k_off": "off_rate", "rate": "on_rate", "K_D": "dissociation_constant",
            "k_macro": "macroscopic_rate"}  # fmt: skip

TURN, PART, MEET, PASS, COME, GO = range(6)
# Kinds by how many points there are before and after.
_KINDS = {(1, 1): TURN, (1, 2): PART, (2, 1): MEET, (2, 2): PASS, (0, 1): COME, (1, 0): GO}
# Beyond these a rate is off by more than some percent: √(4Dh)/R, the inertial length over R, and λh.
_LONGEST_HOP, _INERTIA, _FASTEST = 0.2, 0.1, 0.1
# kT, up to which changes of energy are shared between both directions where nothing is said.
_LOAD_LIMIT = 5.0
# Masses that are meant to add up may miss it by so much.
_SAME_MASS = 1e-9


class OneWay(NamedTuple):
    """One direction of a reaction: its kind, species by number (-1: none), and where its way back stands in the list,
    -1 without."""

    kind: int
    reactants: tuple[int, ...]
    products: tuple[int, ...]
    back: int
    text: str
    #: Molecules of a pool that it takes and gives, by number: species that are counted, then reservoirs; -1: none.
    taken: int = -1
    given: int = -1


def ways_of(
    what: str, handle: Handle, reactions: tuple[Reaction, ...], pool: MoleculePool | None
) -> tuple[OneWay, ...]:
    """Return the directions of reactions; ParameterError for what beads cannot do."""
    names = {one.name: i for i, one in enumerate(handle._species)}
    molecules = {} if pool is None else {name: i for i, name in enumerate((*pool.species, *pool.concentrations))}
    if twice := sorted(names.keys() & molecules.keys()):
        raise ParameterError(f"{what}: {twice[0]!r} is a species of {handle.name!r} and of the pool: rename one")
    ways: list[OneWay] = []
    for reaction in reactions:
        where = f"species ({what}: {reaction.equation})"
        found = [
            [look_up(names | molecules, name, where, ParameterError) for name in side if name not in molecules]
            for side in (reaction.reactants, reaction.products)
        ]
        moved = [
            [molecules[name] for name in side if name in molecules] for side in (reaction.reactants, reaction.products)
        ]
        sides = [tuple(found[0]), _stays(tuple(found[0]), tuple(found[1]))]
        kinds = [_KINDS.get((len(a), len(b))) for a, b in (sides, sides[::-1])]
        few = max(map(len, moved)) <= 1 and (not any(moved) or kinds[0] in (TURN, COME, GO))
        if kinds[0] is None or not few:
            raise ParameterError(
                f"{what}: {reaction.equation}: beads react as A -> B, A + B -> C, C -> A + B, A + B -> C + D, 0 -> A "
                "and A -> 0, and with one molecule of a pool on a side in A -> B, 0 -> A and A -> 0; write it as steps "
                "of these"
            )
        titles = [" + ".join(side) or "0" for side in (reaction.reactants, reaction.products)]
        for turn in (1, -1) if reaction.reversible else (1,):
            before, after = sides[::turn]
            taken, given = ((*side, -1)[0] for side in moved[::turn])
            title = " -> ".join(titles[::turn])
            ways.append(OneWay(_KINDS[len(before), len(after)], before, after, -1, title, taken, given))
    return tuple(ways)


def paired(what: str, ways: Sequence[OneWay]) -> tuple[OneWay, ...]:
    """Return directions with those that go back; ParameterError for one that is there twice."""
    ways = list(ways)
    does, undoes = ([_what_happens(way, back) for way in ways] for back in (False, True))
    for i, back in enumerate(ways_back(what, [way.text for way in ways], does, undoes)):
        own, first = ways[i], ways[min(i, back)]
        if back >= 0 and own.kind == MEET:
            # The line is from A to B as the first of the two names them.
            own = own._replace(reactants=first.reactants if first.kind == MEET else first.products)
        elif back >= 0 and own.kind == PART:
            own = own._replace(products=first.reactants if first.kind == MEET else first.products)
        ways[i] = own._replace(back=back)
    return tuple(ways)


def _what_happens(way: OneWay, back: bool) -> tuple[Any, ...]:
    """Return what is the same for directions that do the same; `back`, of the reverse."""
    turn = -1 if back else 1
    before, after = (way.reactants, way.products)[::turn]
    if way.kind == PASS:
        # Each becomes one of the others, where it is.
        return tuple(sorted(zip(before, after, strict=True)))
    return tuple(sorted(before)), tuple(sorted(after)), (way.taken, way.given)[::turn]


def _stays(before: tuple[int, ...], after: tuple[int, ...]) -> tuple[int, ...]:
    """Return products in the order in which one that is also a reactant stays where it is."""
    swapped = after[::-1]
    same, crossed = (sum(a == b for a, b in zip(before, one, strict=False)) for one in (after, swapped))
    return swapped if len(before) == len(after) == 2 and crossed > same else after


def _flow(way: OneWay, rate: float, within: float) -> float:
    """Return events per area or volume at activities 1, of ideal beads of which others are met within so much of it."""
    if way.kind in (MEET, PASS):
        rate *= within * (0.5 if way.reactants[0] == way.reactants[1] else 1.0)
    return rate


def numbers_for_kernel(
    ways: tuple[OneWay, ...], rates: Sequence[float], affinities: Sequence[float], fraction: float,
    sharing: float | None = None, limit: float = 0.0,
) -> list[tuple[float, ...]]:
    """Return what the kernel takes of each direction. `sharing` is the share of a change of energy that is in rates
    back, up to `limit`, kT; the rest is in rates there. Attempts come so much more often."""
    out: list[tuple[float, ...]] = []
    for i, (way, rate, affinity) in enumerate(zip(ways, rates, affinities, strict=True)):
        before, after = ((*side, -1, -1)[:2] for side in (way.reactants, way.products))
        share = -1.0
        if sharing is not None:
            share = sharing if 0 <= way.back < i else 1.0 - sharing
            rate *= exp(share * limit)
        out.append((way.kind, *before, *after, way.taken, way.given, rate, fraction, affinity, share, limit))
    return out


def forces_on(schedule: "Schedule", handle: Handle, ways: tuple[OneWay, ...]) -> list[Any]:
    """Return the bound forces whose energy events change: those on the beads, or where all stay, those that tell
    species apart."""
    stay = all(way.kind in (TURN, PASS) for way in ways)
    named = zip(schedule.system.forces, schedule.bound, strict=True)
    return [bound for force, bound in named if handle in (force.handles_by_species if stay else force.handles)]


class PointForm(SpeciesForm):
    """Reactions of beads, as `Reactions` asks for them."""

    def __init__(
        self, jump: "FormedJump", handle: Any, reactions: tuple[Reaction, ...], most_partners: Any = None,
        pool: Any = None, momenta: Any = None, ways: tuple[OneWay, ...] | None = None,
    ) -> None:  # fmt: skip
        if pool is not None and not isinstance(pool, MoleculePool):
            raise ParameterError(f"{jump.name}: pool must be a Pool or Compartments, not {shown(pool)}")
        self._jump = jump
        self._pool: MoleculePool | None = pool
        self._handle: Handle = handle
        self._ground: OnMembrane | InSpace = ground_of(jump.name, handle)
        self._read = reactions
        self._ways = self._paired(ways_of(jump.name, handle, reactions, pool)) if ways is None else ways
        self.kinds: tuple[str, ...] = tuple(way.text for way in self._ways)
        self._most: int | None = None
        if most_partners is not None:
            self._most = whole_number(f"{jump.name}: most_partners", most_partners, at_least=1, at_most=2**20)
        #: Whether C takes the momentum of A and B, and hands it on.
        self._together = momenta == "center_of_mass"
        if momenta not in (None, "maxwell", "center_of_mass"):
            raise ParameterError(
                f'{jump.name}: momenta = {shown(momenta)} but must be "maxwell" or "center_of_mass"'
            )
        if self._together:
            self._expect_balance()
        #: True if two beads react, or one becomes two.
        self._meets = any(way.kind in (MEET, PASS, PART) for way in self._ways)

    def _paired(self, ways: tuple[OneWay, ...]) -> tuple[OneWay, ...]:
        return paired(self._jump.name, ways)

    def _expect_balance(self) -> None:
        """Refuse momenta of the centre of mass where beads do not move in space, or their masses do not add up."""
        if not isinstance(self._ground, InSpace):
            raise ParameterError(
                f'{self._jump.name}: momenta="center_of_mass" is of beads in space: velocities of points lie in the '
                "planes of their triangles"
            )
        for way in self._ways:
            if way.kind in (MEET, PART):
                before, after = (sum(self._handle._species[i].mass for i in side) for side in way[1:3])
                if abs(before - after) > _SAME_MASS * before:
                    raise ParameterError(
                        f'{self._jump.name}: {way.text}: masses are {before:g} before and {after:g} pN s²/nm after, '
                        'but must be the same with momenta="center_of_mass"'
                    )

    @property
    def handles(self) -> tuple[Handle, ...]:
        return (self._handle,)

    @property
    def remakes(self) -> tuple[Handle, ...]:
        return self.handles

    @property
    def pools(self) -> tuple[MoleculePool, ...]:
        return () if self._pool is None else (self._pool,)

    @property
    def births(self) -> tuple[Handle, ...]:
        return () if all(way.kind in (TURN, PASS) for way in self._ways) else (self._handle,)

    @property
    def _reach(self) -> float:
        reach = self._jump._numbers.get("reach")
        if reach is None and self._meets:
            raise ParameterError(f"{self._jump.name}: give reach=, within which two beads react")
        return float(reach or 1.0)

    def expect_sharing(self) -> tuple[float | None, float | None]:
        """Return how energies are shared by both directions, `load_sharing` and `load_limit`; ParameterError for the
        latter alone."""
        sharing, limit = (self._jump._numbers.get(name) for name in ("load_sharing", "load_limit"))
        if sharing is None and limit is not None:
            raise ParameterError(f"{self._jump.name}: load_limit = {limit:g} kT: give load_sharing=, too")
        return sharing, limit

    def found(self, kT: float | None) -> list[float]:
        """Return the rates of all directions. As long as kT is not known, None, those from a macroscopic rate are as
        slow reactions have them, which any rate can be."""
        rates: list[float] = []
        for reaction in self._read:
            on, off = self._both(reaction, self._ways[len(rates)], self._given_for(reaction), kT)
            rates += [on, off] if reaction.reversible else [on]
        return rates

    def _given_for(self, reaction: Reaction) -> dict[str, float]:
        """Return the numbers of one reaction, by the names of arguments."""
        where = f"{self._jump.name}: {reaction.equation}"
        given = {name: value for name in _NUMBERS.values() if (value := self._jump._numbers.get(name)) is not None}
        if given and len(self._read) > 1:
            raise ParameterError(
                f"{self._jump.name}: {', '.join(given)} is one number for {len(self._read)} reactions: write each "
                'behind its own, as "A <-> B; k_on = 2.0, k_off = 1.0"'
            )
        for name, value in reaction.numbers.items():
            if name not in _NUMBERS:
                raise ParameterError(f"{where}: {name} = {value:g}, but a number is one of {', '.join(_NUMBERS)}")
            if _NUMBERS[name] in given:
                raise ParameterError(f"{where}: {_NUMBERS[name]} is given twice")
            if not value >= 0.0:
                raise ParameterError(f"{where}: {name} = {value:g} but must be >= 0")
            given[_NUMBERS[name]] = value
        return given

    def _both(
        self, reaction: Reaction, way: OneWay, numbers: dict[str, float], kT: float | None
    ) -> tuple[float, float]:
        """Return forward and backward rate."""
        where = f"{self._jump.name}: {reaction.equation}"
        on, off, k_d = (numbers.get(name) for name in ("on_rate", "off_rate", "dissociation_constant"))
        macro = numbers.get("macroscopic_rate")
        if macro is not None:
            if on is not None or len(way.reactants) != 2:
                raise ParameterError(f"{where}: macroscopic_rate is in place of the forward rate of two beads")
            on = self._microscopic(way, macro, kT)
        if k_d is not None:
            if way.kind != MEET or not reaction.reversible or (on is not None and off is not None):
                raise ParameterError(
                    f"{where}: dissociation_constant is that of A + B <-> C, and in place of one of the two rates"
                )
            if on is None and off is None:
                raise ParameterError(f"{where}: give one of the rates, beside dissociation_constant")
            ratio = k_d * self._ground.within(self._reach) * (0.5 if way.reactants[0] == way.reactants[1] else 1.0)
            on, off = (off / ratio, off) if on is None and off is not None else (on, (on or 0.0) * ratio)
        if on is None or (reaction.reversible and off is None):
            missing = "on_rate" if on is None else "off_rate"
            raise ParameterError(f"{where}: give {missing}, or its number behind the reaction: {_hint(reaction)}")
        if not reaction.reversible and off is not None:
            raise ParameterError(f"{where}: off_rate is given, but the reaction goes one way: write <->")
        return on, 0.0 if off is None else off

    def _microscopic(self, way: OneWay, k: float, kT: float | None) -> float:
        """Return λ for a rate constant of two beads that diffuse."""
        friction = [self._handle._species[i].friction for i in way.reactants]
        if min(friction) == 0.0:
            raise ParameterError(f"{self._jump.name}: macroscopic_rate needs friction of {way.text.split(' -> ')[0]}")
        density = self._ground.density(self._jump.name, self._jump._numbers.get("density"), way.reactants)
        if kT is None:
            return k / self._ground.within(self._reach)
        diffusion = kT * sum(self._handle._species[i].mobility for i in way.reactants)
        return microscopic_rate(k, self._reach, diffusion, density) if isfinite(kT) else inf

    def bind(self, layout: "Layout", kT: float) -> PointReactions:
        return self.bound_by(PointReactions, layout, kT)

    def bound_by(self, kernel: Any, layout: "Layout", kT: float) -> PointReactions:
        """Return the operation of a class of kernels."""
        handle, ground = self._handle, self._ground.bind(layout)
        ground.layout = layout
        operation: PointReactions = kernel(
            self._jump.name, kT, False, self._jump.every, layout.room, layout.places_by_row(handle),
            np.array([one.mass for one in handle._species]), layout.n, ground,
            WorkSpace(layout.n, layout.momenta_sizes), None if self._pool is None else layout.pools[self._pool],
        )  # fmt: skip
        self.update(operation, kT)
        return operation

    def update(self, operation: Any, kT: float) -> None:
        layout = operation.ground.layout
        if self._meets:
            layout.expect_width(self._jump.name, self._reach)
        if any(way.kind == COME for way in self._ways):
            self._ground.expect_measure(self._jump.name, layout)
        most = self._ground.partners_expected(layout, self._reach) if self._most is None else self._most
        placement = self._jump._numbers.get("placement")
        driven, missed = self._jump.affinities(operation, kT)
        rates = self.found(kT)
        affinities = [inf if rate > 0.0 else 0.0 for rate in rates]
        for (there, back), own in zip(self._pairs(rates), missed, strict=True):
            affinities[there], affinities[back] = own, -own
        sharing, limit = self.expect_sharing()
        given = numbers_for_kernel(
            self._ways, rates, affinities, 0.5 if placement is None else float(placement), sharing,
            _LOAD_LIMIT if limit is None else float(limit),
        )  # fmt: skip
        operation.set(kT, driven, self._reach, most, self._together, given)

    def _pairs(self, rates: Sequence[float]) -> list[tuple[int, int]]:
        """Return the directions of the reactions that go both ways: there and back."""
        fixed = {} if self._pool is None else self._pool.concentrations

        def happens(i: int) -> bool:
            return rates[i] > 0.0 and fixed.get(self._molecule(self._ways[i].taken)) != 0.0

        return [(i, way.back) for i, way in enumerate(self._ways) if way.back > i and happens(i) and happens(way.back)]

    def _molecule(self, number: int) -> str:
        """Return the name of a molecule of the pool; "" of none."""
        return "" if self._pool is None or number < 0 else (*self._pool.species, *self._pool.concentrations)[number]

    @property
    def one_way(self) -> bool:
        rates = self.found(None)
        both = {i for pair in self._pairs(rates) for i in pair}
        return any(rate > 0.0 and i not in both for i, rate in enumerate(rates))

    def balances(self, kT: float | None) -> list[Balance]:
        rates, within, found = self.found(kT), self._ground.within(self._reach), []
        for i, back in self._pairs(rates):
            way, moved, fixed = self._ways[i], Counter[str](), 0.0
            makes: Counter[Any] = Counter((self._handle, s) for s in way.products)
            makes.subtract((self._handle, s) for s in way.reactants)
            if self._pool is not None:
                for molecule, n in ((way.given, 1), (way.taken, -1)):
                    if molecule >= 0:
                        moved[self._molecule(molecule)] += n
                molecules, fixed = self._pool.made(moved)
                makes.update(molecules)
            there = log(_flow(way, rates[i], within)) - log(_flow(self._ways[back], rates[back], within))
            found.append(Balance(makes, there - fixed))
        return found

    def weigh(self, operation: Any, schedule: "Schedule") -> None:
        operation.feel(forces_on(schedule, self._handle, self._ways))

    def remarks_on_cost(self, operation: Any, schedule: "Schedule") -> "list[Remark]":
        whole = operation.forces.operations
        if not whole or schedule.integrator.kT is None:
            return []
        rate = self._attempts(schedule.integrator.kT, schedule.layout)
        return self._jump._remarks_on_whole_energies(
            schedule, rate, "an event", lambda _, bound: any(bound is one for one in whole)
        )

    def _attempts(self, kT: float, layout: "Layout") -> float:
        """Return how often attempts have their reactants, 1/s, at the start and without regard to energies."""
        extent = self._ground.extent(layout)
        density = np.bincount(self._handle._of_species, minlength=len(self._handle._species)) / extent
        within, total = self._ground.within(self._reach) if self._meets else 0.0, 0.0
        for way, rate in zip(self._ways, self.found(kT), strict=True):
            if way.taken >= 0 and self._pool is not None:
                rate *= self._pool.concentration_at_start(way.taken)
            total += extent * _flow(way, rate, within) * float(density[list(way.reactants)].prod())
        return total

    def fastest(self, kT: float | None) -> float | None:
        if kT is None:
            return None
        rates = [
            rate * (1.0 if way.taken < 0 or self._pool is None else self._pool.concentration_at_start(way.taken))
            # Not that of what comes from nothing.
            for way, rate in zip(self._ways, self.found(kT), strict=True) if way.reactants
        ]  # fmt: skip
        return max(rates, default=None)

    def notes(self, look: "Look") -> list[str]:
        """Return, for each reaction of two beads, how well steps resolve it, and what follows."""
        kT, h = look.integrator.kT, look.integrator.timestep
        notes: list[str] = []
        if kT is None:
            return notes
        for way, rate in zip(self._ways, self.found(kT), strict=True):
            if way.kind not in (MEET, PASS):
                continue
            hop, inertia = self.resolved(kT, h, [self._handle._species[i] for i in way.reactants])
            often = rate * h * self._jump.every
            text = f"{self._jump.name}: {way.text}: √(4Dh)/R = {hop:.3g}, inertial length/R = {inertia:.3g}"
            text += f", λh = {often:.3g}"
            if hop > _LONGEST_HOP or inertia > _INERTIA or often > _FASTEST:
                text += (
                    f". Above {_LONGEST_HOP:g}, {_INERTIA:g} and {_FASTEST:g} it is slower than points that diffuse; "
                    "its equilibrium is the same"
                )
            notes.append(text)
        return notes

    def resolved(self, kT: float, h: float, pair: "list[Species]") -> tuple[float, float]:
        """Return the length of a step of diffusion, and the inertial length, of the relative motion of two beads, over
        the reach; without friction the first is 0, and the second infinite."""
        mass = 1.0 / sum(1.0 / one.mass for one in pair)
        if min(one.friction for one in pair) == 0.0:
            return 0.0, inf
        diffusion = kT * sum(one.mobility for one in pair)
        # Of the relative velocity √(kT/μ), which lasts for μ D/kT.
        inertia = sqrt(kT / mass) * mass * diffusion / kT
        return sqrt(4.0 * diffusion * h) / self._reach, inertia / self._reach


def _hint(reaction: Reaction) -> str:
    rates = "k_on = 2.0, k_off = 1.0" if reaction.reversible else "rate = 2.0"
    return f'"{reaction.equation}; {rates}"'
