"""Pools: molecules that are counted, not placed, and reservoirs of fixed concentration."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from math import log, prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from medyanpy._kernels.jumps.pools import PoolCounts
from medyanpy._tools.described import Described
from medyanpy._tools.names import Guarded, look_up
from medyanpy._tools.species import check_species
from medyanpy._tools.tables import amount
from medyanpy._tools.validation import array, number, plain_name, several, vector, whole_number
from medyanpy.beads import Membrane
from medyanpy.errors import ParameterError, TopologyError, UnknownNameError, shown

if TYPE_CHECKING:
    from medyanpy.core.layout import Layout
    from medyanpy.forces import Force
    from medyanpy.jumps import Jump

__all__ = ["Compartments", "MoleculePool", "Molecules", "Pool", "PoolStates", "Species"]

# Counts that floats hold exactly, and cells for which there is memory.
_MOST, _MOST_CELLS = 2**53, 10**6


class Species(NamedTuple):
    """Species of a pool, as jumps take it: ``pool["Arp2/3"]``."""

    pool: "MoleculePool"
    name: str

    @property
    def number(self) -> int:
        """Its number in `PoolCounts`: reservoirs come after what is counted."""
        return (*self.pool.species, *self.pool.concentrations).index(self.name)

    def __repr__(self) -> str:
        return f"{self.pool.name}[{self.name!r}]"


def pool_species(what: str, given: Any, example: str) -> Species:
    """Return a species of a pool; for anything else a ParameterError, of which `what` is the beginning."""
    if not isinstance(given, Species) or not isinstance(given.pool, MoleculePool):
        raise ParameterError(f'{what} of a pool, as pool["{example}"] gives it, not {shown(given)}')
    return given


class Molecules(Mapping[str, Any]):
    """Molecules in a pool by species: whole numbers, or one for each cell as a read-only array of the grid's shape."""

    def __init__(self, species: Sequence[str], shape: tuple[int, ...], counts: np.ndarray) -> None:
        self._species, self._shape = tuple(species), shape
        #: (cells, species), in the order of the pool.
        self._counts = counts

    def __getitem__(self, name: str) -> Any:
        look_up(dict.fromkeys(self._species), name, "species", UnknownNameError)
        own = self._counts[:, self._species.index(name)].reshape(self._shape)
        if not self._shape:
            return int(own)
        own.flags.writeable = False
        return own

    def __iter__(self) -> Iterator[str]:
        return iter(self._species)

    def __len__(self) -> int:
        return len(self._species)

    def __repr__(self) -> str:
        return f"Molecules({', '.join(f'{name}: {np.sum(n)}' for name, n in self.items())})"


class PoolStates(Mapping[str, Any]):
    """Pools of a state by name; the name of a species that one pool alone has gives its molecules at once."""

    def __init__(self, pools: Mapping[str, Molecules]) -> None:
        self._pools = dict(pools)

    def __getitem__(self, name: str) -> Any:
        if name in self._pools:
            return self._pools[name]
        having = [pool for pool, own in self._pools.items() if name in own]
        if len(having) > 1:
            raise ParameterError(f"pools: {', '.join(having)} have {name!r}: pools[{having[0]!r}][{name!r}] is of one")
        if having:
            return self._pools[having[0]][name]
        species = [s for own in self._pools.values() for s in own]
        return look_up(dict.fromkeys([*self._pools, *species]), name, "pool or species", UnknownNameError)

    def __iter__(self) -> Iterator[str]:
        return iter(self._pools)

    def __len__(self) -> int:
        return len(self._pools)

    def __repr__(self) -> str:
        return f"PoolStates({self._pools})"


class MoleculePool(Described, Guarded):
    """Base class of pools: species that are counted, and reservoirs.

    A pool describes the start. How many molecules there are is state of each Context: ``state.pools``.

    Attributes
    ----------
    name : str
    species : tuple of str
        Those that are counted.
    concentrations : dict of float, 1/nm³
        Those of reservoirs.
    inside : Membrane or None
        The membrane of which it is the inside.
    """

    inside: Membrane | None = None
    _remedy = "make a new pool, and a new System with it; Context.set_pools changes counts"

    def _take_pool(self, name: str | None, counts: Any, concentrations: Any) -> None:
        self.name: str = type(self).__name__
        if name is not None:
            self.name = plain_name(f"{self.name}: name", name)
        self._start = _by_species(f"{self.name}: counts", counts)
        self.species: tuple[str, ...] = tuple(self._start)
        fixed = _by_species(f"{self.name}: concentrations", concentrations)
        self.concentrations: Mapping[str, float] = {
            one: number(f"{self.name}: concentrations[{one!r}]", value, at_least=0.0) for one, value in fixed.items()
        }
        for one in self.concentrations:
            if one in self._start:
                raise ParameterError(
                    f"{self.name}: {one!r} has counts and a concentration: a reservoir, of fixed concentration, is not "
                    "counted"
                )
        if not self._start and not fixed:
            raise ParameterError(f"{self.name}: there are no species: give counts= or concentrations=")

    def __getitem__(self, name: str) -> Species:
        """Return a species of this pool, for jumps.

        Raises
        ------
        UnknownNameError
            It has no such species; the message lists those it has.
        """
        look_up(dict.fromkeys((*self.species, *self.concentrations)), name, "species", UnknownNameError)
        return Species(self, name)

    def made(self, change: Mapping[str, int]) -> tuple[dict[tuple["MoleculePool", str], int], float]:
        """Return how many molecules of each counted species are made, and the logarithm of the concentrations of the
        reservoirs whose molecules are made, > 0."""
        fixed = (n * log(self.concentrations[name]) for name, n in change.items() if name in self.concentrations)
        return {(self, name): n for name, n in change.items() if name in self.species}, sum(fixed)

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """Numbers of cells along the axes; () of a pool that is well mixed."""

    @property
    @abstractmethod
    def cell_volume(self) -> float:
        """Volume of a cell, nm³; all of a pool that is well mixed."""

    @property
    def n_cells(self) -> int:
        """Number of cells."""
        return prod(self.shape)

    def concentration_at_start(self, which: int) -> float:
        """Return the mean concentration, 1/nm³, of one of its species, counted from 0; reservoirs come last."""
        name = (*self.species, *self.concentrations)[which]
        if name in self.concentrations:
            return self.concentrations[name]
        return float(np.sum(self._start[name])) / (self.n_cells * self.cell_volume)

    @property
    def diffuses(self) -> bool:
        """True if molecules hop between cells."""
        return False

    def check_membranes(self, name: str, membranes: "Sequence[Membrane]") -> None:
        """Refuse membranes with which its volume makes no sense, when a Context is made; ParameterError."""

    def check_use(self, name: str, jumps: "Sequence[Jump]", forces: "Sequence[Force]") -> None:
        """Refuse jumps and forces under which it would silently not do what it describes; ParameterError."""
        if self.inside is not None and not any(self is pool for force in forces for pool in force.pools):
            raise ParameterError(
                f"{name}: it is the inside of {self.inside.name!r}, but its molecules do not press on that: "
                "add_force(forces.MembranePoolPressure(membrane, pool, temperature=...))"
            )
        if self.diffuses and not any(self is pool for jump in jumps for pool in jump.stirs):
            raise ParameterError(
                f"{name}: its molecules diffuse, but nothing moves them: add_jump(jumps.Reactions(pool, [])), which "
                "may have no reactions"
            )

    def bind(self, seed: int, k: int, layout: "Layout | None" = None) -> PoolCounts:
        """Return the counts at the start of a Context, for its k-th pool; the layout is needed inside of membranes."""
        counts = np.zeros((self.n_cells, len(self.species)), np.int64)
        random = np.random.default_rng((seed, k))
        for s, name in enumerate(self.species):
            counts[:, s] = self._spread(self._start[name], random)
        bound = self._bound(counts)
        if self.inside is not None and layout is not None:
            bound.enclose(layout.geometry(self.inside), list(self.concentrations.values()))
        return bound

    @abstractmethod
    def _spread(self, given: Any, random: np.random.Generator) -> np.ndarray:
        """Return the molecules of one species in each cell, (n_cells,)."""

    @abstractmethod
    def _bound(self, counts: np.ndarray) -> PoolCounts: ...

    def molecules(self, counts: np.ndarray) -> Molecules:
        """Return counts (n_cells, n_species) as a State shows them."""
        return Molecules(self.species, self.shape, counts)

    def checked(self, what: str, given: Any, now: np.ndarray) -> np.ndarray:
        """Return counts (n_cells, n_species) with what a user gives by species; others as they are now.

        Raises
        ------
        ParameterError
            Numbers that are not whole or negative, or species that are not counted.
        TopologyError
            Arrays of another shape.
        """
        out = now.copy()
        for name, value in _by_species(what, given).items():
            if name in self.concentrations:
                raise ParameterError(f"{what}: {name!r} is a reservoir of fixed concentration, which is not counted")
            look_up(dict.fromkeys(self.species), name, f"species of {self.name!r}", ParameterError)
            out[:, self.species.index(name)] = _counts(f"{what}[{name!r}]", value, self.shape, TopologyError).ravel()
        return out

    def _row(self) -> tuple[str, str]:
        """Return what it is, and what is in it at the start, for tables of many."""
        counted = [f"{name} {amount(int(np.sum(n)))}" for name, n in self._start.items()]
        fixed = [f"{name} {amount(c)} 1/nm³" for name, c in self.concentrations.items()]
        return self._said(), ", ".join([*counted, *fixed])

    @abstractmethod
    def _said(self) -> str: ...


class Pool(MoleculePool):
    """Volume that is well mixed, with molecules that are counted.

    Parameters
    ----------
    volume : float, nm³, > 0
        Or `inside` in its place.
    counts : dict of int, optional
        Molecules of each species at the start; 0 of those that reactions are to make.
    concentrations : dict of float, 1/nm³, >= 0, optional
        Of reservoirs, which are never used up: ``2.0 * mp.units.micromolar``.
    inside : Membrane, optional
        A closed membrane: the volume is that inside of it, as it moves. Molecules press on it by
        `forces.MembranePoolPressure`, which the system must have. `volume` is then that of its mesh.
    name : str, optional
        In states; the class name where none is given.

    Raises
    ------
    ParameterError
        Counts that are not whole, or negative; a species in both. No species at all. Neither or both of `volume` and
        `inside`; a membrane that is turned inside out.
    TopologyError
        An `inside` that is not the handle of a membrane, or of one with borders.

    Examples
    --------
    >>> import medyanpy as mp
    >>> pool = mp.Pool(volume=1.1e9, counts={"G-actin": 1200, "Arp2/3": 20})
    >>> pool["Arp2/3"]
    Pool['Arp2/3']
    """

    def __init__(
        self, volume: float | None = None, counts: Mapping[str, int] | None = None,
        concentrations: Mapping[str, float] | None = None, *, inside: Membrane | None = None, name: str | None = None,
    ) -> None:  # fmt: skip
        self._take_pool(name, counts, concentrations)
        if (volume is None) == (inside is None):
            raise ParameterError(f"{self.name}: give either volume=, or inside= a closed membrane")
        if inside is not None:
            self.inside = inside
            volume = _enclosed(self.name, inside)
        self.volume: float = number(f"{self.name}: volume", volume, above=0.0)
        for one, value in self._start.items():
            self._start[one] = int(_counts(f"{self.name}: counts[{one!r}]", value, (), ParameterError))

    @property
    def shape(self) -> tuple[int, ...]:
        return ()

    @property
    def cell_volume(self) -> float:
        return self.volume

    def _spread(self, given: Any, random: np.random.Generator) -> np.ndarray:
        return np.array([given], np.int64)

    def _bound(self, counts: np.ndarray) -> PoolCounts:
        return PoolCounts(counts, self.volume, list(self.concentrations.values()))

    def _said(self) -> str:
        where = "" if self.inside is None else f"inside of {self.inside.name}, at first "
        return f"{where}{amount(self.volume)} nm³"


class Compartments(MoleculePool):
    """Grid of cells, each well mixed, between which molecules hop to the next at the rate D/h² through each face.

    Hops and reactions happen in `jumps.Reactions`, which may have no reactions. The sides are closed, or lead to the
    other side. Jumps take molecules from the cell in which they happen; a place outside of a closed grid has the
    nearest cell. Cells know nothing of membranes: water on both sides of a sheet is one.

    Parameters
    ----------
    cells : (3,) of int, >= 1
        Number along x, y and z; a million in all at most.
    size : float or (3,) of float, nm, > 0
        Edges h of a cell.
    counts : dict of int, or of int arrays of the shape of the grid, optional
        Molecules of each species at the start. One number is spread at random, by the seed of the integrator.
    diffusion : dict of float, nm²/s, >= 0, optional
        D of each species; those without stay in their cells.
    periodic : bool
        Whether the sides lead to the other side.
    concentrations : dict of float, 1/nm³, >= 0, optional
        Of reservoirs, the same everywhere.
    origin : (3,) of float, nm
        The lowest corner of the grid.
    name : str, optional
        In states; the class name where none is given.

    Raises
    ------
    ParameterError
        Counts that are not whole, negative, or of another shape. Diffusion of what is not counted. No species at all.
        When a Context is made: a closed membrane that lies in several cells.

    Examples
    --------
    >>> import medyanpy as mp
    >>> grid = mp.Compartments((6, 6, 6), size=500.0, counts={"G-actin": 2000}, diffusion={"G-actin": 2e7})
    """

    def __init__(
        self, cells: Sequence[int], size: float | Sequence[float],
        counts: Mapping[str, int | np.ndarray] | None = None, diffusion: Mapping[str, float] | None = None, *,
        periodic: bool = False, concentrations: Mapping[str, float] | None = None,
        origin: Sequence[float] = (0.0, 0.0, 0.0), name: str | None = None,
    ) -> None:  # fmt: skip
        self._take_pool(name, counts, concentrations)
        given = several(f"{self.name}: cells", cells)
        if len(given) != 3:
            raise ParameterError(f"{self.name}: cells = {shown(cells)} but must be three numbers, along x, y and z")
        self.cells: tuple[int, ...] = tuple(
            whole_number(f"{self.name}: cells[{i}]", n, at_least=1, at_most=_MOST_CELLS) for i, n in enumerate(given)
        )
        if prod(self.cells) > _MOST_CELLS:
            raise ParameterError(f"{self.name}: cells: {prod(self.cells):,} are too many: at most {_MOST_CELLS:,}")
        edges = [size] * 3 if np.ndim(size) == 0 else several(f"{self.name}: size", size)
        if len(edges) != 3:
            raise ParameterError(f"{self.name}: size = {shown(size)} but must be one number, or three")
        self.size: tuple[float, ...] = tuple(
            number(f"{self.name}: size[{i}]", h, above=0.0) for i, h in enumerate(edges)
        )
        self.origin: tuple[float, ...] = tuple(vector(f"{self.name}: origin", origin).tolist())
        self.periodic: bool = bool(periodic)
        for one, value in self._start.items():
            whole = np.ndim(value) == 0
            what = f"{self.name}: counts[{one!r}]"
            self._start[one] = _counts(what, value, () if whole else self.shape, ParameterError)
        self.diffusion: Mapping[str, float] = {
            one: number(f"{self.name}: diffusion[{one!r}]", value, at_least=0.0)
            for one, value in _by_species(f"{self.name}: diffusion", diffusion).items()
        }
        for one in self.diffusion:
            if one in self.concentrations:
                raise ParameterError(f"{self.name}: diffusion: {one!r} is a reservoir, the same everywhere")
            look_up(dict.fromkeys(self.species), one, "species with counts", ParameterError)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.cells

    @property
    def cell_volume(self) -> float:
        return prod(self.size)

    @property
    def diffuses(self) -> bool:
        return self.n_cells > 1 and any(self.diffusion.values())

    def _spread(self, given: Any, random: np.random.Generator) -> np.ndarray:
        if given.ndim:
            own: np.ndarray = given.ravel()
            return own
        n = self.n_cells
        return random.multinomial(int(given), np.full(n, 1.0 / n))

    def _bound(self, counts: np.ndarray) -> PoolCounts:
        fixed = list(self.concentrations.values())
        return PoolCounts(counts, self.cell_volume, fixed, self.cells, self.size, self.origin, self.periodic)

    def check_membranes(self, name: str, membranes: "Sequence[Membrane]") -> None:
        """Refuse a closed membrane that lies in several cells: some have water of both of its sides, and molecules
        would go through it from cell to cell."""
        for membrane in membranes:
            if not membrane.mesh.is_closed or membrane.mesh.box is not None:
                continue
            at = np.floor((membrane.positions - self.origin) / self.size).astype(np.int64)
            if not self.periodic and not ((at >= 0) & (at < self.cells)).all(axis=1).any():
                continue
            own = at % self.cells if self.periodic else np.clip(at, 0, np.subtract(self.cells, 1))
            found = np.unique(own, axis=0)
            if len(found) > 1:
                raise ParameterError(
                    f"{name}: the closed membrane {membrane.name!r} cuts its cells: it lies in {len(found)} of them, "
                    f"as in {tuple(found[0].tolist())}, so that molecules would pass through it, with the water of "
                    "both sides. Give a Pool of the volume on each side, inside= for the one within, or cells of which "
                    "one holds all of it"
                )

    def hops(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return D (n_species,), 1/h² of the six faces, the cell through each (n_cells, 6) int32 or -1, and the sum of
        1/h² of each cell over those that lead somewhere."""
        at = np.arange(self.n_cells, dtype=np.int32).reshape(self.cells)
        beside = np.full((*self.cells, 6), -1, np.int32)
        for c in range(3):
            for side in range(2):
                # A ring of one cell leads nowhere else.
                if self.cells[c] == 1:
                    continue
                through = np.roll(at, 1 - 2 * side, axis=c)
                if not self.periodic:
                    end = [slice(None)] * 3
                    end[c] = slice(0, 1) if side == 0 else slice(-1, None)
                    through[tuple(end)] = -1
                beside[..., 2 * c + side] = through
        faces = np.repeat(1.0 / np.square(self.size), 2)
        beside = beside.reshape(-1, 6)
        own = np.array([self.diffusion.get(name, 0.0) for name in self.species])
        return own, faces, beside, np.where(beside >= 0, faces, 0.0).sum(axis=1)

    def _said(self) -> str:
        return f"{' × '.join(map(str, self.cells))} cells of {' × '.join(map(amount, self.size))} nm"


def _enclosed(what: str, membrane: Any) -> float:
    """Return the volume that a membrane encloses where it starts, nm³."""
    if not isinstance(membrane, Membrane):
        raise TopologyError(f"{what}: inside must be the handle of a membrane, not {membrane!r}")
    membrane._expect_closed(what, "it encloses no volume: give volume=")
    if membrane.mesh.closes_through_the_box:
        raise ParameterError(
            f"{what}: inside: {membrane.name!r} closes through the sides of the box, and has no inside: give volume="
        )
    return float(membrane.mesh.volume)


def _by_species(what: str, given: Any) -> dict[str, Any]:
    """Return values by the names of species; nothing given is none."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise ParameterError(f"{what} = {shown(given)} but must be a dict of numbers by the names of species")
    return {check_species(what, name): value for name, value in given.items()}


def _counts(what: str, value: Any, shape: tuple[int, ...], error: type[Exception]) -> np.ndarray:
    """Return whole numbers >= 0 of a shape."""
    if not shape and np.ndim(value) == 0:
        return np.array(whole_number(what, value, at_least=0, at_most=_MOST), np.int64)
    counts = array(what, value, shape, dtype=np.int64, error=error)
    wrong = (counts < 0) | (counts > _MOST)
    if wrong.any():
        index = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise ParameterError(f"{what}{list(index)} = {counts[index]} but must be >= 0 and <= {_MOST}")
    return counts
