"""Species: what a bead of a handle is now, and may become."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from medyanpy._tools.names import look_up
from medyanpy._tools.validation import array, number, plain_name, whole_number
from medyanpy.core.columns import SPECIES
from medyanpy.errors import ParameterError, shown

if TYPE_CHECKING:
    from medyanpy.core.handles import Handle
    from medyanpy.state import State

__all__ = [
    "OfSpecies", "Species", "by_species", "counted", "counts_in", "names_of_species", "numbers_of", "of_species",
    "selected", "species_of", "told_by_species", "wholes",
]  # fmt: skip

# What species have by forces on them, and how it is given.
_OF_FORCES = {
    "curvature": 'PointCurvature.by_species(points, {"A": {"curvature": ...}}, bending_modulus=..., area=...)',
    "radius": 'SoftSphere.by_species(beads, {("A", "A"): {"diameter": ...}}, stiffness=...), and pair forces alike',
}
#: Groups of pair forces hold the species that count in the bits of a whole number.
MOST = 63


class Species(NamedTuple):
    """Numbers of the beads of one species: mass, pN s²/nm, and friction, pN s/nm. Bodies have more."""

    name: str
    mass: float
    #: Of bodies the mean of three directions, of translation.
    friction: float
    #: Of bodies: three principal moments, pN s² nm, and the rows of the friction tensor in the body frame.
    inertia: tuple[float, ...] = ()
    friction_tensor: tuple[tuple[float, ...], ...] = ()

    @property
    def mobility(self) -> float:
        """Diffusion constant of the centre over kT, nm/(pN s): of bodies that of long times, when they have turned."""
        if not self.friction_tensor:
            return 1.0 / self.friction
        return float(np.trace(np.linalg.inv(self.friction_tensor)[:3, :3])) / 3.0


def _of_beads(where: str, name: str, numbers: Mapping[str, Any]) -> Species:
    mass = number(f"{where}: mass", numbers["mass"], above=0.0)
    return Species(name, mass, number(f"{where}: friction", numbers.get("friction", 0.0), at_least=0.0))


def species_of(
    what: str, given: Any, made: Callable[[str, str, Mapping[str, Any]], Species] = _of_beads,
    needed: tuple[str, ...] = ("mass",),
) -> tuple[Species, ...]:  # fmt: skip
    """Return the species that a user gives as ``{name: {"mass": …, "friction": …}}``; ParameterError. Each is `made`
    where it is, of its name, and of its numbers, which are those `needed` and perhaps friction."""
    if not isinstance(given, Mapping) or not given:
        raise ParameterError(f'{what}: species = {shown(given)} but must be a dict such as {{"A": {{"mass": 1.0}}}}')
    if len(given) > MOST:
        raise ParameterError(f"{what}: {len(given)} species but must be at most {MOST}")
    found = []
    for name, numbers in given.items():
        where = f"{what}: species[{name!r}]"
        plain_name(f"{what}: name of a species", name)
        if not isinstance(numbers, Mapping) or any(key not in numbers for key in needed):
            keys = ", ".join(f'"{key}"' for key in needed)
            raise ParameterError(f'{where} = {shown(numbers)} but must be a dict with {keys}, and "friction" if any')
        for key in numbers:
            if key in _OF_FORCES:
                raise ParameterError(f"{where}: {key} is a number of forces: give it to {_OF_FORCES[key]}")
            look_up(dict.fromkeys((*needed, "friction")), key, f"number of a species ({where})", ParameterError)
        found.append(made(where, name, numbers))
    return tuple(found)


def numbers_of(what: str, species: tuple[Species, ...], given: Any, n: int | None = None) -> np.ndarray:
    """Return which species beads are of, (n,) int32, from a name, or from names or numbers of all; ParameterError."""
    names = {one.name: i for i, one in enumerate(species)}
    if isinstance(given, str):
        return np.full(1 if n is None else n, look_up(names, given, f"species ({what})", ParameterError), np.int32)
    values = list(given)
    if values and isinstance(values[0], str):
        values = [look_up(names, name, f"species ({what})", ParameterError) for name in values]
    numbers = array(what, values, (n,), dtype=np.int64, error=ParameterError)
    wrong = (numbers < 0) | (numbers >= len(species))
    if wrong.any():
        i = int(np.argmax(wrong))
        raise ParameterError(f"{what}[{i}] = {numbers[i]}, but species are 0 to {len(species) - 1}: {', '.join(names)}")
    return numbers.astype(np.int32)


def by_species(species: tuple[Species, ...], numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return mass and friction of beads of these species, (n,) each."""
    return np.array([one.mass for one in species])[numbers], np.array([one.friction for one in species])[numbers]


def counted(what: str, species: tuple[Species, ...], counts: Any) -> np.ndarray:
    """Return the species (n,) int32 of beads of which a user gives the counts by name, one species after the other."""
    names = {one.name: i for i, one in enumerate(species)}
    if not isinstance(counts, Mapping):
        raise ParameterError(f'{what}: counts = {shown(counts)} but must be a dict such as {{"A": 500}}')
    found = [np.empty(0, np.int32)]
    for name, count in counts.items():
        which = look_up(names, name, f"species ({what}: counts)", ParameterError)
        n = whole_number(f"{what}: counts[{name!r}]", count, at_least=0, at_most=2**31 - 1)
        found.append(np.full(n, which, np.int32))
    return np.concatenate(found)


def of_species(name: str, k: int) -> str:
    """Return the name beside frames of what is told of each species of a handle, here the k-th, with equal rows."""
    return f"{name} of species {k}"


def told_by_species(beside: Mapping[str, Any], numbers: Any) -> dict[str, Any]:
    """Return data beside frames, of which those that are told of each species are those of what beads are: `numbers` of
    species (n,), in the order of rows, -1 where there is no bead."""
    out = dict(beside)
    for name in [key for key in beside if of_species(key, 0) in beside]:
        own: list[Any] = []
        unit: list[Any] = []
        while (key := of_species(name, len(own))) in beside:
            value, *unit = found if isinstance(found := beside[key], tuple) else (found,)
            own.append(value)
        rows = np.stack(own)[numbers, np.arange(len(numbers))]
        out[name] = (rows, *unit) if unit else rows
    return out


def counts_in(handle: Any, state: Any) -> dict[str, int]:
    """Return the number of beads of each species of a handle in a state or frame, by name."""
    now = state.column(SPECIES.name)[state.living(handle)]
    return {one.name: int(np.count_nonzero(now == i)) for i, one in enumerate(handle._species)}


def names_of_species(handles: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Return, for each handle with species by its name, names of these: with that of the handle where another handle
    has the same, or is called so."""
    several = Counter([*handles, *(one for names in handles.values() for one in names)])
    return {
        handle: [one if several[one] == 1 else f"{one} of {handle}" for one in names]
        for handle, names in handles.items() if names
    }  # fmt: skip


class OfSpecies:
    """Beads of a handle that are of one species, whichever these are at a time; made by ``handle.of(name)``.

    Attributes
    ----------
    handle : Handle
    name : str
    number : int
        Of the species in ``handle.species``.
    """

    def __init__(self, handle: Any, name: str) -> None:
        names = {one.name: i for i, one in enumerate(handle._species)}
        self.number: int = look_up(names, name, f"species of {handle.name!r}", ParameterError)
        self.handle: Handle = handle
        self.name = name

    def __repr__(self) -> str:
        return f"{self.handle.name}.of({self.name!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OfSpecies) and (self.handle, self.number) == (other.handle, other.number)

    def __hash__(self) -> int:
        return hash((self.handle, self.number))

    def rows(self, state: "State") -> np.ndarray:
        """Return the rows of these beads in a state, or a frame of a trajectory, (k,) int, ascending."""
        rows = state.living(self.handle)
        return np.asarray(rows[state.column(SPECIES.name)[rows] == self.number])


def selected(beads: Any) -> dict["Handle", int]:
    """Return bits of the species that count of each handle of which only beads of some species are given."""
    given = beads if isinstance(beads, list | tuple) else (beads,)
    bits: dict[Handle, int] = {}
    for one in given:
        if isinstance(one, OfSpecies):
            bits[one.handle] = bits.get(one.handle, 0) | 1 << one.number
    # A handle that is given as a whole, too, counts as a whole.
    return {handle: own for handle, own in bits.items() if not any(one is handle for one in given)}


def wholes(beads: Any) -> Any:
    """Return handles in place of their beads of some species; what else names beads as it is."""
    if isinstance(beads, OfSpecies):
        return beads.handle
    if isinstance(beads, list | tuple) and any(isinstance(one, OfSpecies) for one in beads):
        return list(dict.fromkeys(one.handle if isinstance(one, OfSpecies) else one for one in beads))
    return beads
