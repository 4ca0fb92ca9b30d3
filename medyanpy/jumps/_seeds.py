"""Base class of jumps that create filaments as seeds of subunits, and dissolve such seeds."""

from typing import TYPE_CHECKING, Any

import numpy as np

from medyanpy._tools.validation import whole_number
from medyanpy.core.handles import Handle
from medyanpy.core.species import OfSpecies
from medyanpy.errors import ParameterError
from medyanpy.jumps._filament_ends import TurnoverJump, expect_metric, follow_places
from medyanpy.jumps.ageing import Ageing
from medyanpy.jumps.polymerization import Polymerization
from medyanpy.pools import MoleculePool, Species, pool_species

if TYPE_CHECKING:
    from medyanpy.core.layout import Layout
    from medyanpy.forces import Force

__all__ = ["SeedJump"]


class SeedJump(TurnoverJump):
    """Base of jumps whose filaments begin as n subunits of a pool."""

    _species: Species
    _n: int
    #: Beads near which seeds begin and dissolve, and how near; None, None where this does not matter.
    _near: Handle | OfSpecies | None
    _reach: float | None

    def _take_seeds(self, what: str, species: Any, n: Any) -> None:
        self._species = pool_species(f"{self.name}: {what} must be one", species, "G-actin")
        self._n = self.longest_link = whole_number(f"{self.name}: n", n, at_least=1, at_most=1000)

    def _take_near(self, near: Any, reach: float | None) -> None:
        if (near is None) != (reach is None):
            raise ParameterError(f"{self.name}: give near= and reach= together, or none of them")
        if near is not None and not isinstance(near, Handle | OfSpecies):
            raise ParameterError(
                f"{self.name}: near must be a handle of beads, or beads of a species as points.of(name), not {near!r}"
            )
        self._near, self._reach = near, reach

    @property
    def _activators(self) -> tuple[Any, int]:
        """Handle of these beads, None without, and their species, -1: any."""
        return (self._near.handle, self._near.number) if isinstance(self._near, OfSpecies) else (self._near, -1)

    @property
    def handles(self) -> tuple[Handle, ...]:
        near = () if self._near is None else (self._activators[0],)
        return tuple(dict.fromkeys((self._filaments, *near)))

    def _near_for_kernel(self, layout: "Layout") -> tuple[np.ndarray | None, int, float]:
        """Return places of these beads, their species and the reach."""
        near, kind = self._activators
        places = None if near is None else layout.rank[near.kind.all_rows].astype(np.int32)
        return places, kind, self._reach or 0.0

    @property
    def pools(self) -> tuple[MoleculePool, ...]:
        return (self._species.pool,)

    def check_forces(self, forces: "tuple[Force, ...]") -> None:
        expect_metric(self.name, self._filaments, forces)

    def meet(self, operation: Any, others: Any) -> None:
        follow_places(self, self._filaments, operation, others, self._n)
        for jump, own in others:
            if jump.handles == (self._filaments,) and isinstance(jump, Ageing):
                operation.ageing = own
            if isinstance(jump, Polymerization) and jump.filaments is self._filaments:
                most = jump.subunits[1]
                if self._n > most:
                    raise ParameterError(
                        f"{self.name}: n = {self._n}, but {jump.name} lets links at ends have up to {most} subunits: "
                        "give it subunits=, or smaller seeds"
                    )
                # A filament of one link shrinks to a seed.
                own.alone = min(own.alone, self._n)
