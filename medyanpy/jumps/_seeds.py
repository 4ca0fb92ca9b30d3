"""Base class of jumps that create filaments as seeds of subunits, and dissolve such seeds."""

from typing import TYPE_CHECKING, Any

from medyanpy._tools.validation import whole_number
from medyanpy.errors import ParameterError
from medyanpy.jumps._filament_ends import TurnoverJump, expect_metric, follow_places
from medyanpy.jumps.ageing import Ageing
from medyanpy.jumps.polymerization import Polymerization
from medyanpy.pools import MoleculePool, Species, pool_species

if TYPE_CHECKING:
    from medyanpy.forces import Force
    from medyanpy.topology import Topology

__all__ = ["SeedJump"]


class SeedJump(TurnoverJump):
    """Base of jumps whose filaments begin as n subunits of a pool."""

    _species: Species
    _n: int

    def _take_seeds(self, what: str, species: Any, n: Any) -> None:
        self._species = pool_species(f"{self.name}: {what} must be one", species, "G-actin")
        self._n = whole_number(f"{self.name}: n", n, at_least=1, at_most=1000)

    @property
    def pools(self) -> tuple[MoleculePool, ...]:
        return (self._species.pool,)

    def check(self, topology: "Topology", forces: "tuple[Force, ...]") -> None:
        super().check(topology, forces)
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
