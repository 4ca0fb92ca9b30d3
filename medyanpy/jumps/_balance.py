"""Detailed balance of reactions: activities with which flows both ways are equal."""

from typing import TYPE_CHECKING, Any

import numpy as np

from medyanpy.core.columns import SPECIES

if TYPE_CHECKING:
    from medyanpy.core.handles import Handle
    from medyanpy.state import State

__all__ = ["company_of", "log_activities_of", "log_weight_of"]

# Logarithms of rates, which users give with some digits, may miss balance around a cycle by so much.
_SAME = 1e-9


def log_activities_of(rows: np.ndarray, logs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return ln z (s,) of species, and what each reaction misses balance by, (r,), 0 within rounding.

    Parameters
    ----------
    rows : (r, s) float
        Molecules of each species that a reaction makes.
    logs : (r,) float
        Logarithms of the flows there over those back, at activities of 1.
    """
    z = np.linalg.lstsq(rows, logs, rcond=None)[0]
    left = logs - rows @ z
    left[np.abs(left) <= _SAME * max(1.0, float(np.abs(logs).max()))] = 0.0
    return z, left


def company_of(others: "list[tuple[Any, Any]]") -> list[Any]:
    """Return the forms of all jumps of a context that create, remove or change beads with species."""
    forms = (getattr(jump, "_form", None) for jump, _ in others)
    return [form for form in forms if hasattr(form, "balances")]


def log_weight_of(form: Any, company: list[Any], state: "State", kT: float) -> float | None:
    """Return the logarithm of the weight of a state for all forms together, which the first of them tells; None where
    rates are not in balance, or molecules of a pool take part."""
    if form is not company[0]:
        return 0.0
    found = [one.balances(kT) for one in company]
    if any(own is None for own in found):
        return None
    balances = [balance for own in found for balance in own]
    species: dict[tuple[Handle, int], int] = {}
    for change, _ in balances:
        for one in change:
            species.setdefault(one, len(species))
    rows = np.zeros((len(balances), len(species)))
    for row, (change, _) in zip(rows, balances, strict=True):
        for one, n in change.items():
            row[species[one]] += n
    z, left = log_activities_of(rows, np.array([size for _, size in balances]))
    if left.any():
        return None
    numbers = state.column(SPECIES.name)
    counts = [np.count_nonzero(numbers[state.living(handle)] == number) for handle, number in species]
    return float(np.array(counts) @ z)
