"""Forces that may act on beads of one species alone, and tables of their numbers by species."""

from collections.abc import Mapping, Sequence
from itertools import combinations_with_replacement
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from medyanpy._tools.names import look_up
from medyanpy.core.handles import Handle, HandleOfSpecies
from medyanpy.core.species import selected, wholes
from medyanpy.errors import ParameterError, TopologyError, shown
from medyanpy.forces._base import Force

if TYPE_CHECKING:
    from medyanpy.core.layout import Layout

__all__ = ["OnSpecies"]


class OnSpecies(Force):
    """A force on beads that may be those of one species, whichever these are at a time."""

    #: Names of its arguments for beads.
    _group_names: ClassVar[tuple[str, ...]]

    def _take(self, given: dict[str, Any]) -> None:
        #: Of each group of beads, bits of the species that count of handles of which not all do.
        self._of_species: Sequence[dict[Handle, int]] = [selected(given[which]) for which in self._group_names]
        given.update({which: wholes(given[which]) for which in self._group_names})
        super()._take(given)

    @property
    def handles_by_species(self) -> tuple[Handle, ...]:
        return tuple(handle for chosen in self._of_species for handle in chosen)

    def _species_bits(self, layout: "Layout", rows: np.ndarray) -> np.ndarray:
        """Return for places (n,) the bits of the species that count in each group of beads, (n, groups); -1: any."""
        out = np.full((len(rows), len(self._of_species)), -1, np.int64)
        for column, chosen in enumerate(self._of_species):
            for handle, bits in chosen.items():
                places = layout.block_of(handle)
                out[(rows >= places.start) & (rows < places.stop), column] = bits
        return out

    @classmethod
    def by_species(
        cls, beads: HandleOfSpecies, table: Mapping[Any, Mapping[str, Any] | None], /, **common: Any
    ) -> list[Self]:
        """Return one force of this class for each species, or each two, from a table of numbers: add them all.

        Parameters
        ----------
        beads : handle
            With species.
        table : dict
            Of a force on single beads: by the name of each species the arguments of the force behind its beads, or None
            for no force. Of a force of pairs: by every two names, ``("A", "B")`` in either order and ``("A", "A")``.
        **common
            Arguments that are the same for all.

        Raises
        ------
        ParameterError
            A species that does not exist, is missing, or is there twice; what the force refuses.
        TopologyError
            A handle without species.

        Examples
        --------
        >>> import medyanpy as mp
        >>> topology = mp.Topology()
        >>> beads = topology.add_beads([[0.0, 0, 0]], species={"A": {"mass": 1.0}, "B": {"mass": 1.0}}, counts={"A": 1})
        >>> numbers = {("A", "A"): {"stiffness": 2.0}, ("A", "B"): {"stiffness": 5.0}, ("B", "B"): None}
        >>> [force.name for force in mp.forces.SoftSphere.by_species(beads, numbers, diameter=4.0)]
        ['SoftSphere A A', 'SoftSphere A B']
        """
        title = f"{cls.__name__}.by_species"
        if not isinstance(beads, HandleOfSpecies) or not beads.species:
            raise TopologyError(f"{title}: {shown(beads)} must be a handle with species: add it with species=")
        names, size = [one.name for one in beads.species], len(cls._group_names)
        given = _checked(title, table, {name: name for name in names}, size)
        wanted = list(combinations_with_replacement(sorted(names), size))
        if missing := [pair for pair in wanted if pair not in given]:
            told = ", ".join(" ".join(pair) for pair in missing)
            raise ParameterError(f"{title}: table has nothing of {told}: give numbers, or None where no force acts")
        out = []
        for pair in wanted:
            if (numbers := given[pair]) is not None:
                on = dict(zip(cls._group_names, (beads.of(one) for one in pair), strict=True))
                name = f"{common.get('name', cls.__name__)} {' '.join(pair)}"
                out.append(cls(**{**common, **numbers, **on, "name": name}))
        return out


def _checked(
    title: str, table: Any, names: Mapping[str, str], size: int
) -> dict[tuple[str, ...], Mapping[str, Any] | None]:
    """Return the rows of a table by sorted names of species; ParameterError."""
    if not isinstance(table, Mapping):
        raise ParameterError(f"{title}: table = {shown(table)} but must be a dict")
    out: dict[tuple[str, ...], Mapping[str, Any] | None] = {}
    for key, numbers in table.items():
        own = key if isinstance(key, tuple) else (key,)
        if len(own) != size:
            expected = 'two names, ("A", "B")' if size == 2 else "the name of a species"
            raise ParameterError(f"{title}: table has {shown(key)} but a key must be {expected}")
        pair = tuple(sorted(look_up(names, name, f"species ({title})", ParameterError) for name in own))
        if pair in out:
            raise ParameterError(f"{title}: table has {shown(key)} twice, in either order")
        if not (numbers is None or isinstance(numbers, Mapping)):
            wrong = f"table[{shown(key)}] = {shown(numbers)}"
            raise ParameterError(f"{title}: {wrong} but must be a dict of numbers, or None")
        out[pair] = numbers
    return out
