"""Detailed balance of all jumps of a system: activities with which flows both ways are equal, and what is left."""

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from medyanpy.core.columns import SPECIES
from medyanpy.errors import ParameterError
from medyanpy.forces.links import Links
from medyanpy.pools import MoleculePool

if TYPE_CHECKING:
    from medyanpy.engine.schedule import Schedule
    from medyanpy.engine.worksheet import Remark
    from medyanpy.jumps._base import Jump
    from medyanpy.jumps._formed import FormedJump
    from medyanpy.state import State

__all__ = ["Balance", "Company", "SpeciesForm"]

# Logarithms of rates, which users give with some digits, may miss balance around a cycle by so much.
_SAME = 1e-9


class Balance(NamedTuple):
    """Balance of what a jump does both ways.

    Attributes
    ----------
    makes : dict
        How much of each species it makes on the way there: by handle and number of the species, by pool and name, by
        links and number of the state. Reservoirs are in the logarithm.
    log_ratio : float
        Logarithm of the flow there over that back, at activities of 1, and where kT is not known (2,), at two
        temperatures.
    """

    makes: Mapping[Any, float]
    log_ratio: Any


class Company(tuple["Jump", ...]):
    """All jumps of a system, of which the balances are solved together.

    Parameters
    ----------
    jumps : iterable of Jump
    pools : dict, optional
        Those of the system, by name.
    """

    _pools: "Mapping[str, MoleculePool]"
    _known: dict[float | None, tuple[Any, ...]]

    def __new__(cls, jumps: "Iterable[Jump]", pools: "Mapping[str, MoleculePool] | None" = None) -> "Company":
        if isinstance(jumps, cls):
            return jumps
        self = super().__new__(cls, jumps)
        self._pools, self._known = dict(pools or {}), {}
        return self

    def _solved(self, kT: float | None) -> tuple[Mapping[Any, np.ndarray], list[np.ndarray]]:
        """Return ln z by species, and what the balances of each jump miss, both for each temperature."""
        kT = None if kT is None or np.isnan(kT) else kT
        versions = [jump.version for jump in self]
        if kT not in self._known or self._known[kT][0] != versions:
            balances = [jump.balances(kT) for jump in self]
            z, left = _log_activities([one for own in balances for one in own])
            ends = np.cumsum([len(own) for own in balances], dtype=int)
            self._known = {key: self._known[key] for key in (None,) if key in self._known}
            self._known[kT] = versions, z, np.split(left, ends[:-1]) if balances else []
        _, z, missed = self._known[kT]
        return z, missed

    def activities(self, kT: float | None) -> dict[Any, float]:
        """Return ln z by species as in `Balance`; those that nothing makes both ways are not there."""
        return {one: float(own[0]) for one, own in self._solved(kT)[0].items()}

    def affinities(self, jump: "Jump", kT: float | None) -> list[float]:
        """Return what drives each of the balances of a jump there, kT: 0 in balance."""
        missed: list[float] = self._solved(kT)[1][self._number(jump)][:, 0].tolist()
        return missed

    def drives(self, jump: "Jump") -> bool:
        """Tell whether any of the balances of a jump misses, at any temperature."""
        return bool(self._solved(None)[1][self._number(jump)].any())

    def _number(self, jump: "Jump") -> int:
        return next(i for i, one in enumerate(self) if one is jump)

    def log_weight(self, jump: "Jump", state: "State", kT: float) -> float:
        """Return the logarithm of the weight of the species of a state, but for volumes and factorials: from the first
        jump that makes any, and 0 from others."""
        if next((one for one in self if one.balances(kT)), None) is not jump:
            return 0.0
        z, total = self.activities(kT), 0.0
        names = {pool: name for name, pool in self._pools.items()}
        for (subject, one), own in z.items():
            if isinstance(subject, MoleculePool):
                # Factorials, and volumes, are the same for all numbers.
                total += own * float(np.sum(state.pools[names[subject]][one]))
                continue
            if isinstance(subject, Links):
                # How many there are, those who bind them weigh: in the first state, which has the factor 1.
                numbers, own = state.links(subject).states, own - z.get((subject, 0), 0.0)
            elif isinstance(one, int):
                numbers = state.column(SPECIES.name)[state.living(subject)]
            else:
                # Subunits, which the jumps at their ends weigh.
                continue
            total += own * np.count_nonzero(numbers == one)
        return total


def _log_activities(balances: Sequence[Balance]) -> tuple[dict[Any, np.ndarray], np.ndarray]:
    """Return ln z by species, and what each balance misses, (r, 2), 0 within rounding.

    What reactions conserve leaves factors of z open that change no ratio of probabilities.
    """
    species = {one: k for k, one in enumerate(dict.fromkeys(one for balance in balances for one in balance.makes))}
    rows, logs = np.zeros((len(balances), len(species))), np.zeros((len(balances), 2))
    for row, log, balance in zip(rows, logs, balances, strict=True):
        log[:] = balance.log_ratio
        for one, n in balance.makes.items():
            row[species[one]] = n
    if not rows.size:
        return dict.fromkeys(species, np.zeros(2)), logs
    z = np.linalg.lstsq(rows, logs, rcond=None)[0]
    left = logs - rows @ z
    left[np.abs(left) <= _SAME * max(1.0, float(np.abs(logs).max()))] = 0.0
    return dict(zip(species, z, strict=True)), left


class SpeciesForm:
    """Base class of forms of jumps that create, remove or change beads with species, or change states of links."""

    needs_temperature = True
    stirs: tuple[MoleculePool, ...] = ()
    _jump: "FormedJump"

    @abstractmethod
    def balances(self, kT: float | None) -> list[Balance]:
        """Return what goes both ways."""

    @property
    @abstractmethod
    def one_way(self) -> bool:
        """True if anything goes one way, or by rates that are in no ratio."""

    def remarks_on_cost(self, operation: Any, schedule: "Schedule") -> "list[Remark]":
        """Return remarks on forces whose whole energy each attempt takes."""
        return []

    def meet(self, operation: Any, others: "list[tuple[Jump, Any]]") -> None:
        """Meet the other jumps."""

    def shown(self, operation: Any) -> dict[str, Any]:
        return {"events": operation.done_so_far()}

    def check_state(self, operation: Any, arrays: Mapping[str, np.ndarray]) -> None:
        """Refuse counts of events below 0; ParameterError."""
        if (arrays["done"] < 0).any():
            raise ParameterError(f"{self._jump.name}: numbers of events must be >= 0")
