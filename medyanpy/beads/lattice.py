"""Lattices: places at equal distances along filaments."""

from typing import TYPE_CHECKING, Any

import numpy as np

from medyanpy._tools.types import Numbers
from medyanpy._tools.validation import array, number
from medyanpy.core.sites import Sites
from medyanpy.errors import ParameterError, TopologyError

if TYPE_CHECKING:
    from medyanpy.beads.filaments import Filaments

__all__ = ["Lattice", "lattice_of"]

# How much longer a filament may seem than it is, relative to the spacing: links are sums that round.
_ROUNDING = 1e-9


class Lattice(Sites):
    """Places at equal distances along filaments, in their order: sites that know who is beside whom.

    Made by ``filaments.lattice``. Forces and jumps take it as they take other `Sites`. Jumps whose molecules walk need
    it. A part of it, such as ``lattice[mask]``, is a lattice too: molecules do not walk past a place left out.

    Attributes
    ----------
    spacing : float, nm
        From each place to the next, along the filament.
    filaments : (n,) int
        Filament of each place, as counted when the lattice was made.
    numbers : (n,) int
        Of each place on its filament: it is ``numbers * spacing`` from the first node, along links at rest.

    Examples
    --------
    >>> import medyanpy as mp
    >>> topology = mp.Topology()
    >>> actin = topology.add_filaments([[[0.0, 0, 0], [27.0, 0, 0]], [[0.0, 9, 0], [8.1, 9, 0]]], node_mass=4e-12)
    >>> lattice = actin.lattice(spacing=2.7)
    >>> lattice
    Lattice(15: 2.7 nm apart on 2 filaments)
    >>> lattice.abscissas[lattice.filaments == 1].round(1).tolist()
    [0.0, 2.7, 5.4, 8.1]
    """

    __slots__ = ("_filaments", "_numbers", "_spacing")

    _filaments: np.ndarray
    _numbers: np.ndarray
    _spacing: float

    @classmethod
    def _on(cls, sites: Sites, spacing: float, filaments: np.ndarray, numbers: np.ndarray) -> "Lattice":
        self = object.__new__(cls)
        for name in Sites.__slots__:
            setattr(self, name, getattr(sites, name))
        self._spacing, self._filaments, self._numbers = spacing, filaments, numbers
        for a in (filaments, numbers):
            a.flags.writeable = False
        return self

    @classmethod
    def from_arrays(  # type: ignore[override]
        cls, *, spacing: float, filaments: Numbers, numbers: Numbers, **arrays: Any
    ) -> "Lattice":
        """Make a lattice from the arrays that describe it, as documents keep them.

        Parameters
        ----------
        spacing : float, nm, > 0
        filaments, numbers : (n,) int
        **arrays
            Those of `Sites.from_arrays`.

        Raises
        ------
        TopologyError, ParameterError
            Arrays that do not fit together, or one place twice. As `Sites.from_arrays`.
        """
        what, sites = "Lattice.from_arrays", Sites.from_arrays(**arrays)
        two = [
            array(f"{what}: {name}", value, (len(sites),), dtype=np.int64, error=TopologyError).copy()
            for name, value in (("filaments", filaments), ("numbers", numbers))
        ]
        places = np.column_stack(two)
        if len(np.unique(places, axis=0)) < len(places):
            raise TopologyError(f"{what}: a place of a filament is there twice")
        return cls._on(sites, number(f"{what}: spacing", spacing, above=0.0), *two)

    @property
    def spacing(self) -> float:
        return self._spacing

    @property
    def filaments(self) -> np.ndarray:
        return self._filaments

    @property
    def numbers(self) -> np.ndarray:
        return self._numbers

    @property
    def abscissas(self) -> np.ndarray:
        """Distance of each place from the first node of its filament, (n,) nm, along links at rest."""
        out: np.ndarray = self._numbers * self._spacing
        return out

    def __getitem__(self, index: Any) -> "Lattice":
        """Return some of these places: by an int, a slice, an array of ints or a mask."""
        chosen = np.atleast_1d(np.arange(len(self))[index]) if len(self) else np.zeros(0, np.int64)
        return Lattice._on(super().__getitem__(index), self._spacing, self._filaments[chosen], self._numbers[chosen])

    def __repr__(self) -> str:
        n = len(np.unique(self._filaments))
        return f"Lattice({len(self)}: {self._spacing:g} nm apart on {n} filament{'s' * (n != 1)})"

    def __reduce__(self) -> tuple[Any, ...]:
        of, arrays = super().__reduce__()
        return _again, (of(*arrays), self._spacing, self._filaments, self._numbers)

    def beside(self, steps: int) -> np.ndarray:
        """Find the place so many places further along the filament of each, or back where negative, (n,); -1 where
        there is none."""
        # All filaments one behind another, too far apart for a step from one to the next.
        width = int(np.ptp(self._numbers)) + abs(steps) + 1 if len(self) else 1
        place = self._filaments * width + self._numbers
        order = np.argsort(place, kind="stable")
        at = np.searchsorted(place[order], place + steps)
        found = order[np.minimum(at, len(order) - 1)]
        out: np.ndarray = np.where(place[found] == place + steps, found, -1)
        return out


def _again(sites: Sites, spacing: float, filaments: np.ndarray, numbers: np.ndarray) -> Lattice:
    return Lattice._on(sites, spacing, filaments, numbers)


def lattice_of(filaments: "Filaments", spacing: float) -> Lattice:
    """Return the places of ``filaments.lattice``, after the checks that it promises."""
    what = f"lattice of {filaments.name!r}"
    spacing = number(f"{what}: spacing", spacing, above=0.0)
    if filaments.closed:
        raise TopologyError(f"{what}: rings have no ends to count places from: filaments.sites_along gives sites")
    if filaments._rise is not None:
        raise TopologyError(
            f"{what}: filaments with rise= may grow, and places do not follow that yet: leave out rise=, or take "
            "filaments.sites"
        )
    lengths = np.zeros(0)
    if len(filaments):
        lengths = np.add.reduceat(filaments.link_lengths, filaments.kind.link_starts[:-1])
    counts = (lengths / spacing + _ROUNDING).astype(np.int64) + 1
    short = counts < 2
    if short.any():
        i = int(np.argmax(short))
        raise ParameterError(
            f"{what}: spacing = {spacing:g} nm but must be <= the length of each filament, of which filament {i} has "
            f"{lengths[i]:g} nm"
        )
    own = np.repeat(np.arange(len(counts)), counts)
    numbers = np.arange(len(own)) - np.repeat(np.cumsum(counts) - counts, counts)
    sites = filaments.sites_along(own, np.minimum(numbers * spacing, lengths[own]))
    return Lattice._on(sites, spacing, own, numbers)
