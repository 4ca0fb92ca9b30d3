"""Free beads, with and without a radius, and the method that adds kinds of beads defined elsewhere."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, overload

import numpy as np

from medyanpy._tools.described import kept
from medyanpy._tools.names import did_you_mean
from medyanpy._tools.types import Numbers
from medyanpy._tools.validation import per_item
from medyanpy.beads.adding import inertia_given, inertia_of, inertia_of_more, positions_of, species_given
from medyanpy.core.columns import POSITIONS, SPECIES, Column
from medyanpy.core.handles import Handle, HandleOfSpecies, chosen, together
from medyanpy.core.kinds import Kind
from medyanpy.errors import ParameterError, TopologyError

if TYPE_CHECKING:
    from medyanpy.topology import Topology


class BeadsKind(Kind):
    """Free beads."""

    handle: "Beads"
    per_bead: tuple[str, ...] = ("mass", "friction", "positions")
    comes_and_goes = True
    takes_constraints = True

    def created(self, columns: dict[Column, np.ndarray]) -> "Beads":
        x = columns[POSITIONS]
        made = self.handle._more(self.handle.name, x, *self.inertia_of_created(columns, len(x)))
        made._take_species(self.handle._species, columns.get(SPECIES, self.handle._of_species))
        return made


class Beads(Handle, kind=BeadsKind):
    """Free beads. `positions` (n, 3), nm, are where they start."""

    _added_by = "add_beads"

    def __init__(
        self, topology: "Topology", name: str, first: int, positions: np.ndarray, mass: np.ndarray, friction: np.ndarray
    ) -> None:
        super().__init__(topology, name, first, mass, friction)
        self.positions = positions

    def add(
        self, positions: Numbers, mass: Numbers | None = None, friction: Numbers | None = None, *,
        species: str | Sequence[str] | np.ndarray | None = None, **own: Any,
    ) -> np.ndarray:  # fmt: skip
        """Add beads to these: to a running simulation inside ``with topology.edit():``.

        Forces that name the handle act on them too; where such a force has a number for each bead, give it those of the
        new ones with ``force.set`` inside the block.

        Parameters
        ----------
        positions : (k, 3) float, nm
        mass, friction : float or (k,) float, pN s²/nm, > 0, and pN s/nm, >= 0, optional
            By default that of the present beads, which must then have the same.
        species : str, or (k,) str or int
            Where these have species: of the new beads. Mass and friction are those of the species.
        **own : optional
            Further arguments of the kind; see `Topology.add_balls`, and for kinds from elsewhere their own page.

        Returns
        -------
        (k,) int array
            Their rows: inactive rows first.

        Raises
        ------
        TopologyError, ParameterError
            As the method that added the first of them; a topology in use outside of an edit.
        """
        what = f"{self.name}.add"
        self.topology._refuse_if_in_use(what)
        x = positions_of(what, positions)
        inertia, numbers = inertia_of_more(what, self, species, len(x), mass, friction)
        more = self._more(what, x, *inertia, **own)
        more._take_species(self._species, numbers)
        return self.topology._grow(self, more)

    def _more(self, what: str, positions: np.ndarray, mass: np.ndarray, friction: np.ndarray, **own: Any) -> "Beads":
        """Make a handle in no topology of more beads like these."""
        self._expect_own(what, own)
        for name in self._own:
            if name in self.kind.per_bead and name not in own:
                raise ParameterError(f"{what}: give {name}=")
        self._expect_said(what)
        other = type(self)(self.topology, self.name, 0, positions, mass, friction, **{**self._own, **own})
        other._own = {**self._own, **own}
        return other

    def _expect_own(self, what: str, own: dict[str, Any]) -> None:
        """Refuse arguments that this kind does not have."""
        for name in own:
            if name not in self._own:
                raise ParameterError(f"{what}: these beads have no {name}{did_you_mean(name, self._own)}")

    def _expect_said(self, what: str) -> None:
        """Refuse arrays of a kind from elsewhere that may or may not have a value for each bead."""
        for name, value in self._own.items():
            if name not in self.kind.per_bead and isinstance(value, np.ndarray) and value.shape[:1] == (len(self),):
                raise TopologyError(
                    f"{what}: {type(self.kind).__name__}.per_bead does not say whether {name} is something of each bead"
                )

    # A kind that is defined elsewhere may have changed its arguments: it is made again from all of them.

    @property
    def _is_from_elsewhere(self) -> bool:
        return "_added_by" not in vars(type(self))

    def _merged(self, other: Handle) -> dict[str, Any]:
        if not self._is_from_elsewhere:
            return super()._merged(other)
        own = dict(self._own)
        for name in own:
            if name in self.kind.per_bead:
                own[name] = np.concatenate([_each(one, name) for one in (self, other)])
        names = BeadsKind.per_bead
        return self._remade(own, {name: together(getattr(self, name), getattr(other, name)) for name in names})

    def _chosen(self, keep: np.ndarray) -> dict[str, Any]:
        if not self._is_from_elsewhere:
            return super()._chosen(keep)
        self._expect_said(f"{self.name}.remove")
        own = {k: _each(self, k)[keep] if k in self.kind.per_bead else v for k, v in self._own.items()}
        return self._remade(own, {name: chosen(getattr(self, name), keep) for name in BeadsKind.per_bead})

    def _remade(self, own: dict[str, Any], given: dict[str, np.ndarray]) -> dict[str, Any]:
        made = type(self)(self.topology, self.name, 0, given["positions"], given["mass"], given["friction"], **own)
        made._own = own
        apart = "topology name kind fixed _made _first _rows _ids _inactive _of_all _version".split()
        return {name: value for name, value in vars(made).items() if name not in apart}

    def _arguments_now(self) -> dict[str, Any]:
        return {"positions": self.positions, **super()._arguments_now()}


def _each(handle: Handle, name: str) -> np.ndarray:
    """Return an argument with its own value for each of the beads."""
    value = np.asarray(handle._own[name])
    return np.broadcast_to(value, (len(handle), *value.shape)) if value.shape[:1] != (len(handle),) else value


class BallsKind(BeadsKind):
    """Balls."""

    handle: "Balls"
    name = "balls"
    per_bead: tuple[str, ...] = (*BeadsKind.per_bead, "radius")
    comes_and_goes = True
    takes_constraints = True

    def beside_frames(self) -> dict[str, Any]:
        return {**super().beside_frames(), "radius": (self.handle.radius, "nm")}


class Balls(Beads, kind=BallsKind):
    """Free beads with a radius (n,), nm, which pair forces may use."""

    _added_by = "add_balls"

    def __init__(
        self, topology: "Topology", name: str, first: int, positions: np.ndarray, radius: np.ndarray, mass: np.ndarray,
        friction: np.ndarray,
    ) -> None:  # fmt: skip
        super().__init__(topology, name, first, positions, mass, friction)
        self.radius = radius

    def _more(
        self, what: str, positions: np.ndarray, mass: np.ndarray, friction: np.ndarray, radius: Any = None, **own: Any
    ) -> "Balls":
        self._expect_own(what, own)
        r = per_item(f"{what}: radius", self._number_for(what, "radius", radius), len(positions), above=0.0)
        return Balls(self.topology, self.name, 0, positions, r, mass, friction)

    def _arguments_now(self) -> dict[str, Any]:
        return {**super()._arguments_now(), **self._numbers_now("radius")}


class BeadsOfSpecies(HandleOfSpecies, Beads, kind=BeadsKind):
    """Free beads that are of species. `positions` (n, 3), nm, are where they start."""

    _added_by = "add_beads"


class BallsOfSpecies(HandleOfSpecies, Balls, kind=BallsKind):
    """Balls that are of species, all with one radius if any are created. `radius` is (n,), nm."""

    _added_by = "add_balls"


_Beads = TypeVar("_Beads", bound=Beads)


@overload
def add_beads(
    topology: "Topology", positions: Numbers, mass: Numbers, friction: Numbers | None = None, *,
    name: str | None = None, capacity: int | None = None,
) -> Beads: ...  # fmt: skip
@overload
def add_beads(
    topology: "Topology", positions: Numbers, *, name: str | None = None, capacity: int | None = None,
    species: Mapping[str, Mapping[str, float]], counts: Mapping[str, int] | None = None,
    of_species: Sequence[str] | Numbers | None = None,
) -> BeadsOfSpecies: ...  # fmt: skip
def add_beads(
    topology: "Topology", positions: Numbers, mass: Numbers | None = None, friction: Numbers | None = None, *,
    name: str | None = None, capacity: int | None = None, species: Mapping[str, Mapping[str, float]] | None = None,
    counts: Mapping[str, int] | None = None, of_species: Sequence[str] | Numbers | None = None,
) -> Beads:  # fmt: skip
    """Add free beads.

    Parameters
    ----------
    positions : (n, 3) float, nm
    mass : float or (n,) float, pN s²/nm, > 0
        Of each; not with `species`.
    friction : float or (n,) float, pN s/nm, >= 0
        Used by the letter O; a bead without friction is not thermostatted. 0 where none is given. Not with `species`.
    name : str, optional
    capacity : int, >= n, optional
        Rows for so many beads in all. Rows without a bead are inactive: not part of the system, and nan in states.
    species : dict of str to dict, optional
        Species that they may be of, with ``"mass"`` and ``"friction"`` of each: ``{"A": {"mass": 1e-12}}``. What a
        bead is belongs to the state, ``state.column("species")``; jumps may change it.
    counts : dict of str to int
        With `species`: how many of the positions are of each, one species after the other.
    of_species : (n,) str or int
        With `species`, in place of counts: of which each is.

    Raises
    ------
    TopologyError
        Wrong shapes, coordinates that are not finite, a name in use, or a topology already in use.
    ParameterError
        A mass or friction outside its domain.
    """
    what = "add_beads"
    x = positions_of(what, positions)
    kinds, of_species = species_given(what, species, counts, of_species)
    inertia, numbers = inertia_given(what, kinds, of_species, len(x), mass, friction)
    room = topology._capacity(what, len(x), capacity)
    first, name = topology._room(what, room, name, "beads")
    made = (BeadsOfSpecies if kinds else Beads)(topology, name, first, x, *inertia)
    made._take_species(kinds, numbers)
    return topology._keep(made, room, mass=mass, friction=0.0 if friction is None else friction)


def add(
    topology: "Topology", kind: type[_Beads], positions: Numbers, mass: Numbers, friction: Numbers = 0.0, *,
    name: str | None = None, capacity: int | None = None, **own: Any,
) -> _Beads:  # fmt: skip
    """Add beads of a kind that is defined elsewhere; see "How to give letters a meaning for a new kind of bead".

    Parameters
    ----------
    kind : subclass of `Beads`
        Called as ``kind(topology, name, first_bead, positions, mass, friction, **own)``.
    positions : (n, 3) float, nm
    mass : float or (n,) float, pN s²/nm, > 0
    friction : float or (n,) float, pN s/nm, >= 0
    name : str, optional
        By default the name of its kind.
    capacity : int, >= n, optional
        As `add_beads`.
    own
        Further arguments of the kind, which checks them itself.

    Raises
    ------
    TopologyError, ParameterError
        As `add_beads`.
    """
    if not (isinstance(kind, type) and issubclass(kind, Beads)):
        raise TopologyError(f"add: kind must be a class of beads, not {kind!r}")
    x = positions_of("add", positions)
    inertia = inertia_of("add", "", len(x), mass, friction)
    room = topology._capacity("add", len(x), capacity)
    first, name = topology._room("add", room, name, kind._kind.name)
    own = {key: kept(value) for key, value in own.items()}
    handle = kind(topology, name, first, x, *inertia, **own)
    handle._own = own
    return topology._keep(handle, room, mass=mass, friction=friction)


@overload
def add_balls(
    topology: "Topology", positions: Numbers, radius: Numbers, mass: Numbers, friction: Numbers | None = None, *,
    name: str | None = None, capacity: int | None = None,
) -> Balls: ...  # fmt: skip
@overload
def add_balls(
    topology: "Topology", positions: Numbers, radius: Numbers, *, name: str | None = None,
    capacity: int | None = None, species: Mapping[str, Mapping[str, float]],
    counts: Mapping[str, int] | None = None, of_species: Sequence[str] | Numbers | None = None,
) -> BallsOfSpecies: ...  # fmt: skip
def add_balls(
    topology: "Topology", positions: Numbers, radius: Numbers, mass: Numbers | None = None,
    friction: Numbers | None = None, *, name: str | None = None, capacity: int | None = None,
    species: Mapping[str, Mapping[str, float]] | None = None, counts: Mapping[str, int] | None = None,
    of_species: Sequence[str] | Numbers | None = None,
) -> Balls:  # fmt: skip
    """Add free beads that have a radius.

    Parameters
    ----------
    positions : (n, 3) float, nm
    radius : float or (n,) float, nm, > 0
        Pair forces without a diameter of their own let balls touch at the sum of their radii. In a fluid of
        viscosity η the friction of a ball is 6πηr (Stokes).
    mass : float or (n,) float, pN s²/nm, > 0
    friction : float or (n,) float, pN s/nm, >= 0
    name : str, optional
    capacity : int, >= n, optional
    species, counts, of_species
        As `add_beads`.

    Raises
    ------
    TopologyError, ParameterError
        As `add_beads`.
    """
    what = "add_balls"
    x = positions_of(what, positions)
    r = per_item(f"{what}: radius", radius, len(x), above=0.0)
    kinds, of_species = species_given(what, species, counts, of_species)
    inertia, numbers = inertia_given(what, kinds, of_species, len(x), mass, friction)
    room = topology._capacity(what, len(x), capacity)
    first, name = topology._room(what, room, name, "balls")
    made = (BallsOfSpecies if kinds else Balls)(topology, name, first, x, r, *inertia)
    made._take_species(kinds, numbers)
    friction = 0.0 if friction is None else friction
    return topology._keep(made, room, radius=radius, mass=mass, friction=friction)
