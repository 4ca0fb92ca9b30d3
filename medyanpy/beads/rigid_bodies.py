"""Rigid molecules: oriented beads at their centres of mass."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast, overload

import numpy as np

from medyanpy._tools.types import Numbers
from medyanpy._tools.validation import number, per_item, whole_number
from medyanpy.beads.adding import fixed_of, moments_of, positions_of, row_if_one, species_given, species_needed
from medyanpy.beads.oriented import OrientedBeads, OrientedKind, friction_tensors, unit_quaternions
from medyanpy.core.columns import ORIENTATIONS, POSITIONS, SPECIES, Column
from medyanpy.core.handles import HandleOfSpecies
from medyanpy.core.species import Species, of_species, species_of
from medyanpy.errors import ParameterError

if TYPE_CHECKING:
    from medyanpy.topology import Topology


# They are drawn no thinner than this, relative to their length.
THINNEST = 0.05


def solid_semi_axes(mass: np.ndarray, inertia: np.ndarray) -> np.ndarray:
    """Return semi-axes (n, 3) of solid ellipsoids of masses (n,) and principal moments (n, 3).

    I1 = m(a2² + a3²)/5 and so on.
    """
    square = 2.5 * (inertia.sum(axis=1)[:, None] - 2.0 * inertia) / mass[:, None]
    a = np.sqrt(np.maximum(square, 0.0))
    axes: np.ndarray = np.maximum(a, THINNEST * a.max(axis=1)[:, None])
    return axes


class RigidKind(OrientedKind):
    """Rigid bodies."""

    name = "rigid bodies"
    takes_constraints = True

    def of_species(self, numbers: np.ndarray) -> dict[str, Any]:
        species = self.handle._species
        moments = np.array([one.inertia for one in species])[numbers]
        tensors = np.array([one.friction_tensor for one in species])[numbers]
        return self.handle._with_friction({**super().of_species(numbers), "inertia": moments}, tensors)

    def created(self, columns: dict[Column, np.ndarray]) -> "RigidBodiesOfSpecies":
        numbers = columns[SPECIES]
        handle = cast(RigidBodies, self.handle)
        return _bodies_of_species(handle, columns[POSITIONS], columns[ORIENTATIONS], numbers)

    def beside_frames(self) -> dict[str, Any]:
        beside, axes = super().beside_frames(), solid_semi_axes(self.handle.mass, self.handle.inertia)
        beside["semi_axes"] = axes, "nm"
        # What a body is may change from frame to frame: see `told_by_species`.
        for k, one in enumerate(self.handle._species):
            moments = np.array([one.inertia])
            own = {"inertia": moments, "semi_axes": solid_semi_axes(np.array([one.mass]), moments)}
            for name, row in own.items():
                beside[of_species(name, k)] = np.broadcast_to(row, (len(self.handle), 3)), beside[name][1]
        return beside


class RigidBodies(OrientedBeads, kind=RigidKind):
    """Rigid molecules: oriented beads at their centres of mass."""

    _added_by = "add_rigid_bodies"

    def add(  # type: ignore[override]
        self,
        positions: Numbers,
        orientations: Numbers,
        mass: Numbers | None = None,
        inertia: Numbers | None = None,
        friction: Numbers | None = None,
        *,
        friction_point: Numbers | None = None,
        fixed: Numbers = False,
        species: str | Sequence[str] | np.ndarray | None = None,
    ) -> np.ndarray:
        """Add bodies to these: to a running simulation inside ``with topology.edit():``.

        Parameters
        ----------
        positions, orientations, friction_point, fixed
            As of `Topology.add_rigid_bodies`.
        mass, inertia, friction : optional
            Likewise; by default those of the present bodies, which must then have the same.
        species : str, or (k,) str or int
            Where these have species: of the new bodies, in place of all numbers.

        Returns
        -------
        (k,) int array
            Their rows: inactive rows first.

        Raises
        ------
        TopologyError, ParameterError
            As `Topology.add_rigid_bodies`; a topology in use outside of an edit.
        """
        what = f"{self.name}.add"
        self.topology._refuse_if_in_use(what)
        if self._species:
            _expect_no_numbers(what, mass, inertia, friction, friction_point, fixed)
            x = positions_of(what, positions)
            q = unit_quaternions(f"{what}: orientations", orientations, len(x))
            numbers = species_needed(what, self._species, species, len(x))
            return self.topology._grow(self, _bodies_of_species(self, x, q, numbers))
        if species is not None:
            raise ParameterError(f"{what}: species = {species!r}, but {self.name!r} was added without any")
        if friction is None:
            # A number may be zero, a tensor not: these have been checked.
            tensors = self._friction_tensors
            if len(tensors) > 1 and not (tensors == tensors[0]).all():
                raise ParameterError(f"{what}: give friction=, because the bodies of {self.name!r} differ in it")
        other = _rigid_bodies(
            self.topology, what, positions, orientations, self._number_for(what, "mass", mass),
            self._number_for(what, "inertia", inertia), 0.0 if friction is None else friction, friction_point, fixed,
            self._rotation_parts,
        )  # fmt: skip
        if friction is None:
            other._complete(**self._with_friction({"mass": other.mass}, tensors[:1]))
        return self.topology._grow(self, other)

    def _arguments_now(self) -> dict[str, Any]:
        at = {"positions": self.positions, "orientations": self.orientations}
        end = {"rotation_parts": self._rotation_parts, "name": self.name, **self._room_now()}
        if self._species:
            table = {
                one.name: {"mass": one.mass, "inertia": list(one.inertia), "friction": _as_given(one.friction_tensor)}
                for one in self._species
            }
            return {**at, "species": table, "of_species": self._of_species, **end}
        tensors = self._friction_tensors
        t, r = tensors[0, [0, 3], [0, 3]]
        plain = len(tensors) == 1 and (tensors[0] == np.diag([t, t, t, r, r, r])).all()
        fixed = self._held[:, 0]
        return {
            **at,
            **self._numbers_now("mass"),
            "inertia": row_if_one(self.inertia) if len(self) else self._of_all.get("inertia", self.inertia),
            # Numbers may be zero, tensors must be positive definite.
            "friction": tensors[0, [0, 3], [0, 3]] if plain else tensors[0] if len(tensors) == 1 else tensors,
            "fixed": bool(fixed.any()) if fixed.all() or not fixed.any() else fixed,
            **end,
        }


class RigidBodiesOfSpecies(HandleOfSpecies, RigidBodies, kind=RigidKind):
    """Rigid molecules that are of species, each with a mass, moments of inertia and friction of its own."""

    _added_by = "add_rigid_bodies"


@overload
def add_rigid_bodies(
    topology: "Topology", positions: Numbers, orientations: Numbers, mass: Numbers, inertia: Numbers,
    friction: Numbers | None = None, *, friction_point: Numbers | None = None, fixed: Numbers = False,
    rotation_parts: int = 1, name: str | None = None, capacity: int | None = None,
) -> RigidBodies: ...  # fmt: skip
@overload
def add_rigid_bodies(
    topology: "Topology", positions: Numbers, orientations: Numbers, *, rotation_parts: int = 1,
    name: str | None = None, capacity: int | None = None, species: Mapping[str, Mapping[str, Any]],
    counts: Mapping[str, int] | None = None, of_species: Sequence[str] | Numbers | None = None,
) -> RigidBodiesOfSpecies: ...  # fmt: skip
def add_rigid_bodies(
    topology: "Topology", positions: Numbers, orientations: Numbers, mass: Numbers | None = None,
    inertia: Numbers | None = None, friction: Numbers | None = None, *, friction_point: Numbers | None = None,
    fixed: Numbers = False, rotation_parts: int = 1, name: str | None = None, capacity: int | None = None,
    species: Mapping[str, Mapping[str, Any]] | None = None, counts: Mapping[str, int] | None = None,
    of_species: Sequence[str] | Numbers | None = None,
) -> RigidBodies:  # fmt: skip
    """Add rigid bodies.

    Parameters
    ----------
    positions : (n, 3) float, nm
        Of the centres of mass.
    orientations : (n, 4) float, dimensionless
        Unit quaternions, scalar first, that turn vectors of the body frame (the principal axes of inertia) into
        space. Within 1e-6 of length 1; they are scaled to it.
    mass : float or (n,) float, pN s²/nm, > 0
        Of each; this and the other numbers of bodies not with `species`.
    inertia : (3,) or (n, 3) float, pN s² nm, > 0
        Principal moments of inertia; none may exceed the sum of the other two.
    friction : float, (float, float), or (6, 6) or (n, 6, 6) float, pN s/nm and pN s nm, >= 0
        0 where none is given. One number is the friction of translation, pN s/nm, two are those of translation and
        rotation (pN s nm). A tensor is in the body frame, translation first, symmetric and positive definite; see
        `medyanpy.rigid`.
    friction_point : (3,) float, nm, optional
        The reference point of the tensor, in the body frame; by default the centre of mass.
    fixed : bool or (n,) bool
        True for bodies that do not move.
    rotation_parts : int, >= 1
        Parts into which the free rotation of each A is cut: the error of its energy falls as the square of it.
    name : str, optional
    capacity : int, >= n, optional
        As `add_beads`.
    species : dict of str to dict, optional
        Species that they may be of, with ``"mass"``, ``"inertia"`` and ``"friction"`` of each, as above: a tensor is
        about the centre of mass. Jumps may change what a body is, and create and remove bodies of species.
    counts, of_species
        As `add_beads`.

    Raises
    ------
    TopologyError
        As `add_beads`; orientations that are not unit quaternions.
    ParameterError
        A mass, inertia or friction outside its domain.

    Examples
    --------
    >>> import medyanpy as mp
    >>> topology = mp.Topology()
    >>> rods = topology.add_rigid_bodies(
    ...     [[0, 0, 0], [30, 0, 0]], [[1, 0, 0, 0], [0.6, 0.8, 0, 0]], mass=1e-12, inertia=[2e-11, 2e-11, 4e-12]
    ... )
    >>> rods.degrees_of_freedom
    12
    """
    what = "add_rigid_bodies"
    made: RigidBodies
    if species is not None or counts is not None or of_species is not None:
        _expect_no_numbers(what, mass, inertia, friction, friction_point, fixed)
        x = positions_of(what, positions)
        q = unit_quaternions(f"{what}: orientations", orientations, len(x))
        kinds, numbers = species_given(what, species, counts, of_species, _species_of_bodies)
        parts = whole_number(f"{what}: rotation_parts", rotation_parts, at_least=1, at_most=1000)
        made = _of_species(topology, kinds, x, q, species_needed(what, kinds, numbers, len(x)), parts)
    elif mass is None or inertia is None:
        raise ParameterError(f"{what}: give mass= and inertia=, or species= with those of each")
    else:
        friction = 0.0 if friction is None else friction
        made = _rigid_bodies(
            topology, what, positions, orientations, mass, inertia, friction, friction_point, fixed, rotation_parts
        )
    room = topology._capacity(what, len(made), capacity)
    first, name = topology._room(what, room, name, "rigid bodies")
    made._complete(_first=first, name=name)
    if made._species:
        return topology._keep(made, room)
    if not len(made) and np.ndim(cast(Any, inertia)) == 1:
        made._of_all["inertia"] = moments_of(f"{what}: inertia", inertia, 1)[0]
    return topology._keep(made, room, mass=mass)


def _rigid_bodies(
    topology: "Topology", what: str, positions: Any, orientations: Any, mass: Any, inertia: Any, friction: Any,
    friction_point: Any, fixed: Any, parts: int,
) -> RigidBodies:  # fmt: skip
    """Make a handle in no topology of bodies from user input, checked."""
    x = positions_of(what, positions)
    n = len(x)
    q = unit_quaternions(f"{what}: orientations", orientations, n)
    mass = per_item(f"{what}: mass", mass, n, above=0.0)
    moments = moments_of(f"{what}: inertia", inertia, n)
    tensors = friction_tensors(f"{what}: friction", friction, n, friction_point)
    parts = whole_number(f"{what}: rotation_parts", parts, at_least=1, at_most=1000)
    held = np.repeat(fixed_of(what, n, fixed)[:, None], 2, axis=1)
    return RigidBodies(topology, "", 0, x, mass, q, moments, tensors, parts, held)


def _expect_no_numbers(what: str, mass: Any, inertia: Any, friction: Any, point: Any, fixed: Any) -> None:
    """Refuse numbers of bodies that have species; ParameterError."""
    given = {"mass": mass, "inertia": inertia, "friction": friction, "friction_point": point}
    for name, value in given.items():
        if value is not None:
            raise ParameterError(f"{what}: {name}= is a number of the species: write it there")
    if np.any(fixed):
        raise ParameterError(f"{what}: bodies of species cannot be fixed: they may become others")


def _species_of_bodies(what: str, given: Any) -> tuple[Species, ...]:
    """Return the species that a user gives; ParameterError."""

    def made(where: str, name: str, numbers: Mapping[str, Any]) -> Species:
        mass = number(f"{where}: mass", numbers["mass"], above=0.0)
        moments = moments_of(f"{where}: inertia", numbers["inertia"], 1)[0]
        tensor = friction_tensors(f"{where}: friction", numbers.get("friction", 0.0), 1)[0]
        friction = float(np.trace(tensor[:3, :3])) / 3.0
        return Species(name, mass, friction, tuple(moments.tolist()), tuple(map(tuple, tensor.tolist())))

    return species_of(what, given, made, ("mass", "inertia"))


def _as_given(tensor: tuple[tuple[float, ...], ...]) -> Any:
    """Return friction as a user may give it: numbers may be zero, tensors must be positive definite."""
    t, r = tensor[0][0], tensor[3][3]
    return [t, r] if np.array_equal(tensor, np.diag([t, t, t, r, r, r])) else [list(row) for row in tensor]


def _of_species(
    topology: "Topology", kinds: tuple[Species, ...], x: np.ndarray, q: np.ndarray, numbers: np.ndarray, parts: int
) -> RigidBodiesOfSpecies:
    """Make a handle in no topology of bodies of species (n,)."""
    n = len(x)
    tensors = np.zeros((n, 6, 6))
    made = RigidBodiesOfSpecies(
        topology, "", 0, x, np.ones(n), q, np.ones((n, 3)), tensors, parts, np.zeros((n, 2), bool)
    )
    made._take_species(kinds, numbers)
    made._complete(**made.kind.of_species(numbers))
    made.kind._complete(comes_and_goes=True)
    return made


def _bodies_of_species(
    handle: RigidBodies, x: np.ndarray, q: np.ndarray, numbers: np.ndarray
) -> RigidBodiesOfSpecies:
    """Make a handle in no topology of more bodies like those of a handle."""
    return _of_species(handle.topology, handle._species, x, q, numbers, handle._rotation_parts)
