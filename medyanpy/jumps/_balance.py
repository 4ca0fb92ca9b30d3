"""Detailed balance of reactions: activities with which flows both ways are equal."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
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
    from medyanpy.state import State

__all__ = ["Balance", "SpeciesForm", "log_activities_of"]

# Logarithms of rates, which users give with some digits, may miss balance around a cycle by so much.
_SAME = 1e-9


class Balance(NamedTuple):
    """Reaction that goes both ways: how much it makes of each species, and the logarithm of the flow there over that
    back, at activities of 1."""

    makes: Mapping[Any, float]
    log_ratio: float


def log_activities_of(balances: Sequence[Balance]) -> tuple[dict[Any, float], np.ndarray]:
    """Return ln z by species, and what each reaction misses balance by, (r,), 0 within rounding.

    What reactions conserve leaves factors of z open that change no ratio of probabilities.
    """
    species = {one: k for k, one in enumerate(dict.fromkeys(one for balance in balances for one in balance.makes))}
    rows, logs = np.zeros((len(balances), len(species))), np.array([balance.log_ratio for balance in balances])
    for row, balance in zip(rows, balances, strict=True):
        for one, n in balance.makes.items():
            row[species[one]] = n
    if not rows.size:
        return dict.fromkeys(species, 0.0), logs
    z = np.linalg.lstsq(rows, logs, rcond=None)[0]
    left = logs - rows @ z
    left[np.abs(left) <= _SAME * max(1.0, float(np.abs(logs).max()))] = 0.0
    return dict(zip(species, z.tolist(), strict=True)), left


class SpeciesForm:
    """Base class of forms of jumps that create, remove or change beads with species, or change states of links."""

    needs_temperature = True
    stirs: tuple[MoleculePool, ...] = ()
    _jump: "Jump"

    @abstractmethod
    def balances(self, kT: float) -> "list[Balance] | None":
        """Return what goes both ways, by handle and number of the species, or links and number of the state; None where
        something goes one way, or molecules of a pool take part."""

    def remarks_on_cost(self, operation: Any, schedule: "Schedule") -> "list[Remark]":
        """Return remarks on forces whose whole energy each attempt takes."""
        return []

    def meet(self, operation: Any, others: "list[tuple[Jump, Any]]") -> None:
        """Know all jumps on beads with species: a state has one weight for all."""
        forms = (getattr(jump, "_form", None) for jump, _ in others)
        operation.company = [form for form in forms if isinstance(form, SpeciesForm)]

    def log_weight(self, operation: Any, state: "State", kT: float) -> float | None:
        """Return that of all these jumps together, which the first of them tells."""
        if operation.company[0] is not self:
            return 0.0
        balances: list[Balance] = []
        for form in operation.company:
            own = form.balances(kT)
            if own is None:
                return None
            balances += own
        z, left = log_activities_of(balances)
        if left.any():
            return None
        total = 0.0
        for (subject, number), own in z.items():
            if isinstance(subject, Links):
                # How many there are, those who bind them weigh: in the first state, which has the factor 1.
                numbers, own = state.links(subject).states, own - z.get((subject, 0), 0.0)
            else:
                numbers = state.column(SPECIES.name)[state.living(subject)]
            total += own * np.count_nonzero(numbers == number)
        return total

    def shown(self, operation: Any) -> dict[str, Any]:
        return {"events": operation.done_so_far()}

    def check_state(self, operation: Any, arrays: Mapping[str, np.ndarray]) -> None:
        """Refuse counts of events below 0; ParameterError."""
        if (arrays["done"] < 0).any():
            raise ParameterError(f"{self._jump.name}: numbers of events must be >= 0")
