"""Base class of jumps with several forms, by what they act on."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from medyanpy.core.handles import Handle
from medyanpy.jumps._balance import Balance, SpeciesForm
from medyanpy.jumps._base import Jump
from medyanpy.jumps._networks import NetworkForm
from medyanpy.jumps._point_reactions import PointForm
from medyanpy.pools import MoleculePool

if TYPE_CHECKING:
    from medyanpy._kernels.jumps.jump import JumpOperation
    from medyanpy.core.layout import Layout
    from medyanpy.engine.schedule import Schedule
    from medyanpy.engine.worksheet import Look, Remark
    from medyanpy.jumps._exchange import ExchangeForm
    from medyanpy.jumps._written_forms import LinkForm
    from medyanpy.state import State

__all__ = ["FormedJump"]


class FormedJump(Jump):
    """Jump that hands on what it is asked to its form, which it makes of what it is given."""

    _form: "NetworkForm | PointForm | ExchangeForm | LinkForm"

    @property
    def kinds(self) -> tuple[str, ...]:  # type: ignore[override]
        return self._form.kinds

    @property
    def driven(self) -> bool:  # type: ignore[override]
        """True if it is out of balance: a rate has no way back, or those around a cycle, all jumps of its system taken
        together, do not multiply to the same in both directions."""
        return self._form.one_way or self._together(None).drives(self)

    def affinities(self, operation: Any, kT: float) -> tuple[bool, list[float]]:
        """Return whether it is driven in the context of an operation, and what drives each of its balances, kT."""
        company = self._together(operation)
        return self._form.one_way or company.drives(self), company.affinities(self, kT)

    def balances(self, kT: float | None) -> list[Balance]:
        return self._form.balances(kT)

    @property
    def moves_beads(self) -> bool:  # type: ignore[override]
        return not isinstance(self._form, NetworkForm)

    @property
    def needs_temperature(self) -> bool:  # type: ignore[override]
        return self._form.needs_temperature

    @property
    def handles(self) -> tuple[Handle, ...]:
        return self._form.handles

    @property
    def births(self) -> tuple[Handle, ...]:
        return self._form.births

    @property
    def remakes(self) -> tuple[Handle, ...]:
        return self._form.remakes

    @property
    def pools(self) -> tuple[MoleculePool, ...]:
        return self._form.pools

    @property
    def stirs(self) -> tuple[MoleculePool, ...]:
        return self._form.stirs

    def bind(self, layout: "Layout", kT: float) -> "JumpOperation":
        return self._form.bind(layout, kT)

    def update(self, operation: Any, kT: float) -> None:
        self._form.update(operation, kT)

    def meet(self, operation: Any, others: Any) -> None:
        self._form.meet(operation, others)

    def log_weight(self, operation: Any, state: "State", kT: float) -> float | None:
        company = self._together(operation)
        return None if self._form.one_way or company.drives(self) else company.log_weight(self, state, kT)

    def shown(self, operation: Any) -> Mapping[str, Any]:
        return self._form.shown(operation)

    def check_state(self, operation: Any, arrays: Mapping[str, np.ndarray]) -> None:
        self._form.check_state(operation, arrays)

    def weigh(self, operation: Any, schedule: "Schedule") -> None:
        self._form.weigh(operation, schedule)

    def remarks_on_cost(self, operation: Any, schedule: "Schedule") -> "list[Remark]":
        return self._form.remarks_on_cost(operation, schedule) if isinstance(self._form, SpeciesForm) else []

    def fastest(self, kT: float | None) -> float | None:
        return self._form.fastest(kT)

    def notes(self, look: "Look") -> list[str]:
        return self._form.notes(look)
