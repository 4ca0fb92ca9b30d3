"""Reactions among the molecules of a pool or a grid: the form of `Reactions` for these."""

from collections.abc import Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from medyanpy._kernels.jumps.networks import Network
from medyanpy._tools.names import did_you_mean
from medyanpy.errors import ParameterError
from medyanpy.jumps._balance import Balance
from medyanpy.jumps._reaction_texts import Reaction, ways_back
from medyanpy.pools import Compartments, MoleculePool

if TYPE_CHECKING:
    from medyanpy.core.layout import Layout
    from medyanpy.jumps.reactions import Reactions

__all__ = ["NetworkForm"]

class Channel:
    """One reaction in one direction.

    Attributes
    ----------
    reactants, products : tuple of str
    title : str
        Name of its events.
    of : (int, bool)
        Number of the reaction that it is of, and whether it is its way back.
    """

    def __init__(self, k: int, reaction: Reaction, back: bool) -> None:
        sides = reaction.reactants, reaction.products
        self.reactants, self.products = sides[::-1] if back else sides
        self.title: str = Reaction(self.reactants, self.products).equation
        self.of: tuple[int, bool] = (k, back)

    @property
    def change(self) -> dict[str, int]:
        """Molecules that it makes, by species, without those of which as many are used up."""
        made = Reaction(self.reactants, self.products).changes()
        return {name: n for name, n in made.items() if n}


class NetworkForm:
    """Mass-action reactions of a pool: what `Reactions` does where its subject is one.

    Parameters
    ----------
    jump : Reactions
    pool : MoleculePool
    reactions : sequence of Reaction
    """

    handles: tuple[Any, ...] = ()
    births: tuple[Any, ...] = ()
    remakes: tuple[Any, ...] = ()
    needs_temperature = False

    def __init__(self, jump: "Reactions", pool: MoleculePool, reactions: Sequence[Reaction]) -> None:
        self.jump = jump
        self.pool = pool
        known = (*pool.species, *pool.concentrations)
        for reaction in reactions:
            for name in reaction.species:
                if name not in known:
                    raise ParameterError(
                        f"{jump.name}: {reaction.equation}: {pool.name} has no species {name!r}"
                        f"{did_you_mean(name, known)} It has {', '.join(known)}; one that reactions make needs "
                        f"counts={{{name!r}: 0}}"
                    )
        self.channels: list[Channel] = [
            Channel(k, reaction, back)
            for k, reaction in enumerate(reactions)
            for back in ((False, True) if reaction.reversible else (False,))
        ]
        self.kinds: tuple[str, ...] = tuple(channel.title for channel in self.channels)
        sides = [(tuple(sorted(c.reactants)), tuple(sorted(c.products))) for c in self.channels]
        self.reverse: list[int] = ways_back(jump.name, self.kinds, sides, [own[::-1] for own in sides])

    @property
    def pools(self) -> tuple[MoleculePool, ...]:
        return (self.pool,)

    @property
    def stirs(self) -> tuple[MoleculePool, ...]:
        return (self.pool,)

    @property
    def rates(self) -> np.ndarray:
        """Rates of the channels, (n,), in units of nm³ and s, as they are now."""
        return np.array([self.jump.rates_of(k)[back] for k, back in (channel.of for channel in self.channels)])

    def bind(self, layout: "Layout", kT: float) -> Network:
        pool, counts = self.pool, layout.pools[self.pool]
        at = {name: s for s, name in enumerate(pool.species)}
        factors = np.full((len(self.channels), 3), -1, np.int32)
        minus = np.zeros((len(self.channels), 3), np.int32)
        changes = []
        for r, channel in enumerate(self.channels):
            counted = [name for name in channel.reactants if name in at]
            factors[r, : len(counted)] = [at[name] for name in counted]
            minus[r, : len(counted)] = [counted[:i].count(name) for i, name in enumerate(counted)]
            change = {at[name]: n for name, n in channel.change.items() if name in at}
            changes.append((np.array([*change], np.int32), np.array([*change.values()], np.int32)))
        reverse = np.array(self.reverse, np.int32)
        operation = Network(self.jump.name, self.jump.every, counts, factors, minus, changes, reverse)
        self.update(operation, kT)
        return operation

    def update(self, operation: Network, kT: float) -> None:
        volume, fixed = self.pool.cell_volume, self.pool.concentrations
        rates, powers = self.rates, np.ones(len(self.channels), np.int32)
        for r, channel in enumerate(self.channels):
            # k V^(1 - order), in an order in which nothing leaves the range of numbers.
            for i, name in enumerate(channel.reactants):
                rates[r] *= fixed[name] if name in fixed else 1.0 / volume if i else 1.0
                powers[r] -= name not in fixed
            if not channel.reactants or channel.reactants[0] in fixed:
                rates[r] *= volume
        driven, affinities = self.jump.affinities(operation, kT)
        of_channels = np.where(self.rates > 0.0, np.inf, 0.0)
        for (there, back), own in zip(self._pairs(), affinities, strict=True):
            of_channels[[there, back]] = own, -own
        operation.set(kT, driven, rates, powers, of_channels)

    def meet(self, operation: Network, others: "list[tuple[Any, Any]]") -> None:
        """Let molecules hop in the first of the jumps on a grid."""
        same = [own for jump, own in others if isinstance(own, Network) and jump.pools == self.pools]
        if same[0] is operation and isinstance(self.pool, Compartments) and self.pool.diffuses:
            operation.hop(*self.pool.hops())

    def _pairs(self) -> list[tuple[int, int]]:
        """Return the channels that go both ways: there and back."""
        rates, fixed = self.rates, self.pool.concentrations
        return [
            (r, back) for r, (channel, back) in enumerate(zip(self.channels, self.reverse, strict=True))
            if back > r and rates[r] > 0.0 and rates[back] > 0.0 and 0.0 not in map(fixed.get, channel.change)
        ]  # fmt: skip

    @property
    def one_way(self) -> bool:
        both = {r for pair in self._pairs() for r in pair}
        return any(rate > 0.0 and r not in both for r, rate in enumerate(self.rates))

    def balances(self, kT: float | None) -> list[Balance]:
        rates, found = self.rates, []
        for there, back in self._pairs():
            makes, fixed = self.pool.made(self.channels[there].change)
            found.append(Balance(makes, np.log(rates[there]) - np.log(rates[back]) - fixed))
        return found

    def weigh(self, operation: Network, schedule: Any) -> None:
        """Feel no forces."""

    def fastest(self, kT: float | None) -> float | None:
        """Return the rate of the fastest event of one molecule at the start; None where one clock has all of the pool,
        so that cutting its time changes nothing."""
        if not any(jump is not self.jump and self.pool in jump.pools for jump in self.jump._together()):
            return None
        known = (*self.pool.species, *self.pool.concentrations)
        out: float = 0.0
        for channel, rate in zip(self.channels, self.rates.tolist(), strict=True):
            of = [self.pool.concentration_at_start(known.index(name)) for name in channel.reactants]
            # Of each of those that meet, by the others.
            out = max(out, *(rate * prod(of[:i] + of[i + 1 :]) for i in range(len(of))), 0.0)
        return out

    def notes(self, look: Any) -> list[str]:
        return []

    def shown(self, operation: Network) -> dict[str, Any]:
        fired = operation.arrays()["fired"].copy()
        fired.flags.writeable = False
        return {"events": fired[:-1], "hops": int(fired[-1])}

    def check_state(self, operation: Network, arrays: Mapping[str, np.ndarray]) -> None:
        if "fired" in arrays and (arrays["fired"] < 0).any():
            raise ParameterError(f"{self.jump.name}: numbers of events must be >= 0")
