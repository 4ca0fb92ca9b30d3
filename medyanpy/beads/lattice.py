"""Lattices: places at equal distances along filaments."""

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from medyanpy._tools.types import Numbers
from medyanpy._tools.validation import array, number, whole_number
from medyanpy.core import growing_sites
from medyanpy.core.sites import Sites
from medyanpy.errors import ParameterError, TopologyError, shown

if TYPE_CHECKING:
    from medyanpy.beads.filaments import Filaments
    from medyanpy.state import State

__all__ = ["Lattice", "lattice_of"]

# How much longer a filament may seem than it is, relative to the spacing: links are sums that round.
_ROUNDING = 1e-9
_AT_END = ("block", "unbind")
# Of one filament: a thousand times as many as the longest of a cell has.
_MOST_SUBUNITS = 10**7


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
        Of each place on its filament: it is ``numbers * spacing`` from the first node, along links at rest. On
        filaments that grow that is where the first node was at the start, and numbers are those of the first turn of a
        ring: see `numbers_in`.

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

    def numbers_in(self, state: "State") -> tuple[np.ndarray, np.ndarray]:
        """Return the numbers of all places in a state, (n,) int, and which of them there are, (n,) bool.

        Places keep their numbers as ends grow and shrink, also where all subunits of the start are gone. A place of a
        lattice on filaments that grow is one of a ring of n for each filament. It stands for its number of `numbers`
        and for all that differ from it by a multiple of n, of which its filament has one at most.

        Raises
        ------
        TopologyError
            What is not a State, of filaments that grow.
        """
        if self._growth is None:
            return self._numbers, np.ones(len(self), bool)
        _, share, numbers = growing_sites.now(self._growth, growing_sites.rows_of(self._handles), state)
        return numbers, ~np.isnan(share)

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
        further = self._numbers + steps
        if self._growth is not None:
            # Around a ring of each.
            further %= np.maximum(self._growth[:, growing_sites.WIDTH], 1)
        place = self._filaments * width + self._numbers
        order = np.argsort(place, kind="stable")
        wanted = self._filaments * width + further
        at = np.searchsorted(place[order], wanted)
        found = order[np.minimum(at, len(order) - 1)]
        out: np.ndarray = np.where(place[found] == wanted, found, -1)
        return out


def _again(sites: Sites, spacing: float, filaments: np.ndarray, numbers: np.ndarray) -> Lattice:
    return Lattice._on(sites, spacing, filaments, numbers)


def lattice_of(filaments: "Filaments", spacing: float, at_end: str, most_subunits: int | None) -> Lattice:
    """Return the places of ``filaments.lattice``, after the checks that it promises."""
    what = f"lattice of {filaments.name!r}"
    spacing = number(f"{what}: spacing", spacing, above=0.0)
    if filaments.closed:
        raise TopologyError(f"{what}: rings have no ends to count places from: filaments.sites_along gives sites")
    if filaments._rise is not None:
        if at_end not in _AT_END:
            raise ParameterError(f'{what}: at_end must be "block" or "unbind", not {shown(at_end)}')
        return _on_growing(what, filaments, spacing, _AT_END.index(at_end), most_subunits)
    if most_subunits is not None:
        raise ParameterError(f"{what}: most_subunits = {most_subunits} is for filaments that grow, added with rise=")
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


def _on_growing(what: str, filaments: "Filaments", spacing: float, unbinds: int, most: int | None) -> Lattice:
    """Return a ring of places for each filament that there is room for, of which it has those that it is long enough
    for."""
    kind, rise = filaments.kind, cast(float, filaments._rise)
    each = round(spacing / rise)
    if each < 1 or abs(spacing / rise - each) > _ROUNDING * each:
        raise ParameterError(
            f"{what}: spacing = {spacing:g} nm but must be a multiple of the rise of these filaments, {rise:g} nm"
        )
    now = np.add.reduceat(kind.subunits, kind.link_starts[:-1]) if len(filaments) else np.zeros(0, np.int64)
    longest = int(kind.subunits.max(initial=1))
    # As jumps.Polymerization lets them grow unless told.
    ends = 2 * (longest + max(0, longest // 2 - 1))
    links = filaments._capacity_links
    usual = ends + (int(now.max(initial=1)) if links is None else links * longest)
    if most is not None:
        least = int(now.max(initial=1))
        usual = whole_number(f"{what}: most_subunits", most, at_least=least, at_most=_MOST_SUBUNITS)
    width = growing_sites.width_for(usual, each)
    n = kind.n_room
    own, row = np.repeat(np.arange(n), width), np.tile(np.arange(width), n)
    growth = np.empty((len(own), growing_sites.COLUMNS), np.int64)
    growth[:] = 0, each, 0, 0, width, unbinds
    growth[:, growing_sites.FILAMENT], growth[:, growing_sites.ROW] = own, row
    # Any two of its nodes, and weights that tell sites apart: those of now follow from its subunits.
    beads = kind.node_rows[own][:, :2]
    weights = np.tile([0.5, 0.5], (len(own), 1))
    arrays = 2 * np.arange(len(own) + 1), beads.ravel(), weights.ravel(), np.empty((0, 3))
    sites = Sites.from_arrays(*arrays, handles=(filaments,), growth=growth)
    return Lattice._on(sites, each * rise, own, row)
