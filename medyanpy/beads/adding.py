"""Checks of arguments that add beads of any kind."""

from collections.abc import Callable
from typing import Any

import numpy as np

from medyanpy._tools.validation import array, per_item, several, vectors
from medyanpy.core.handles import Handle
from medyanpy.core.species import Species, by_species, counted, numbers_of, species_of
from medyanpy.errors import ParameterError, TopologyError, foreign_errors, shown

# A principal moment below this, relative to the largest, is that of a line.
_LINE_TOLERANCE = 1e-12
# How far a principal moment may exceed the sum of the others, relative: rounding of flat bodies.
_FLAT_TOLERANCE = 1e-6


def positions_of(what: str, positions: Any) -> np.ndarray:
    """Return a copy of positions (n, 3), read-only."""
    x = array(f"{what}: positions", positions, (None, 3), error=TopologyError).copy()
    x.flags.writeable = False
    return x


def inertia_of(what: str, prefix: str, n: int, mass: Any, friction: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return mass and friction of n beads; `prefix` comes before these words in the names of the arguments."""
    return (
        per_item(f"{what}: {prefix}mass", mass, n, above=0.0),
        per_item(f"{what}: {prefix}friction", friction, n, at_least=0.0),
    )


def inertia_by_species(
    what: str, species: tuple[Species, ...], given: Any, n: int, mass: Any, friction: Any
) -> tuple[tuple[np.ndarray, np.ndarray], np.ndarray]:
    """Return mass and friction of n beads, and their species (n,) int32."""
    if mass is not None or friction is not None:
        raise ParameterError(f"{what}: mass= and friction= are those of the species")
    numbers = species_needed(what, species, given, n)
    return by_species(species, numbers), numbers


def species_needed(what: str, species: tuple[Species, ...], given: Any, n: int) -> np.ndarray:
    """Return of which species each of n beads is, (n,) int32."""
    if given is None:
        raise ParameterError(f"{what}: give the species of each: {', '.join(one.name for one in species)}")
    return numbers_of(f"{what}: species", species, given, n)


def species_given(
    what: str, species: Any, counts: Any, of_species: Any,
    read: Callable[[str, Any], tuple[Species, ...]] = species_of,
) -> tuple[tuple[Species, ...], Any]:  # fmt: skip
    """Return the species that a user gives for a handle, as they are `read`, and of which each bead is: by names or
    numbers, or by counts, one species after the other."""
    if species is None:
        if counts is not None or of_species is not None:
            raise ParameterError(f"{what}: counts= and of_species= are of species: give species=")
        return (), None
    kinds = read(what, species)
    if counts is None:
        return kinds, of_species
    if of_species is not None:
        raise ParameterError(f"{what}: counts= is in place of of_species=")
    return kinds, counted(what, kinds, counts)


def inertia_given(
    what: str, kinds: tuple[Species, ...], of_species: Any, n: int, mass: Any, friction: Any
) -> tuple[tuple[np.ndarray, np.ndarray], np.ndarray]:
    """Return mass and friction of n beads of a new handle, and their species (n,) int32, of none (0,)."""
    if kinds:
        return inertia_by_species(what, kinds, of_species, n, mass, friction)
    if mass is None:
        raise ParameterError(f"{what}: give mass=, or species= with that of each")
    return inertia_of(what, "", n, mass, 0.0 if friction is None else friction), np.empty(0, np.int32)


def inertia_of_more(
    what: str, handle: Handle, species: Any, n: int, mass: Any, friction: Any
) -> tuple[tuple[np.ndarray, np.ndarray], np.ndarray]:
    """Return the same of n more beads of a handle."""
    if handle._species:
        return inertia_by_species(what, handle._species, species, n, mass, friction)
    if species is not None:
        raise ParameterError(f"{what}: species = {shown(species)}, but {handle.name!r} was added without any")
    numbers = (handle._number_for(what, name, given) for name, given in (("mass", mass), ("friction", friction)))
    return inertia_of(what, "", n, *numbers), handle._of_species


def fixed_of(what: str, n: int, fixed: Any) -> np.ndarray:
    """Return which of n beads are fixed, (n,) bool; read-only."""
    with foreign_errors(f"{what}: fixed", TopologyError):
        given = np.asarray(fixed)
    if given.dtype != bool or given.shape not in ((), (n,)):
        raise TopologyError(f"{what}: fixed must be True or False, or {n} of these, not {shown(fixed)}")
    out = np.broadcast_to(given, (n,)).copy()
    out.flags.writeable = False
    return out


def chains_of(what: str, nodes: Any, starts: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the nodes of all chains, and where those of each start, from either form of the arguments."""
    if starts is None:
        nodes = several(f"{what}: nodes", nodes, error=TopologyError)
        parts = [array(f"{what}: nodes[{i}]", p, (None, 3), error=TopologyError) for i, p in enumerate(nodes)]
        starts = np.cumsum([0, *map(len, parts)])
        nodes = np.concatenate([np.empty((0, 3)), *parts])
    x = positions_of(f"{what}: nodes", nodes)
    starts = array(f"{what}: starts", starts, (None,), dtype=np.int64, error=TopologyError)
    if len(starts) == 0 or starts[0] != 0 or starts[-1] != len(x) or (np.diff(starts) < 0).any():
        raise TopologyError(f"{what}: starts must ascend from 0 to the number of nodes, {len(x)}")
    return x, starts


def joined(what: str, given: Any, columns: int) -> Any:
    """Join arrays (n_i, columns) of each chain, one after the other; return anything but a list of such as it is."""
    if isinstance(given, list) and given and np.ndim(given[0]) == 2:
        return np.concatenate(
            [array(f"{what}[{i}]", p, (None, columns), error=TopologyError) for i, p in enumerate(given)]
        )
    return given


def enough_nodes(what: str, chain: str, starts: np.ndarray, closed: bool) -> None:
    """Refuse chains with less than two nodes, rings with less than three."""
    fewest = 3 if closed else 2
    short = np.diff(starts) < fewest
    if short.any():
        i = int(np.argmax(short))
        kind = "ring" if closed else chain
        raise TopologyError(f"{what}: {chain} {i} has {np.diff(starts)[i]} nodes, but a {kind} needs {fewest}")


def moments_of(what: str, inertia: Any, n: int) -> np.ndarray:
    """Return principal moments of inertia (n, 3), checked."""
    given = vectors(what, inertia, n)
    moments = np.broadcast_to(given, (n, 3)).copy()
    for wrong, bound in [
        # Rounding changes the zero of a line.
        (moments <= _LINE_TOLERANCE * np.maximum(moments.max(axis=1), 0.0)[:, None], "> 0 (a body on a line has none)"),
        (moments > (1.0 + _FLAT_TOLERANCE) * (moments.sum(axis=1)[:, None] - moments), "at most the sum of the others"),
    ]:
        if wrong.any():
            i, k = (int(a) for a in np.argwhere(wrong)[0])
            where = f"[{k}]" if given.ndim == 1 else f"[{i}, {k}]"
            raise ParameterError(f"{what}{where} = {moments[i, k]:g} but must be {bound}: {moments[i].tolist()}")
    moments.flags.writeable = False
    return moments


def row_if_one(rows: np.ndarray) -> np.ndarray:
    """Return the row of an array that repeats one, else the array."""
    return rows[0] if (rows == rows[0]).all() else rows
