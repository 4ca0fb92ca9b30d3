"""Oriented beads: rotation in A, friction and noise of all six momenta in O, displacement in D."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from medyanpy._kernels.selected import brownian, rotation
from medyanpy._tools.types import Numbers
from medyanpy._tools.validation import array, dimensions, number, vector
from medyanpy.beads.free import Beads, BeadsKind
from medyanpy.core.columns import ANGULAR_MOMENTA, ORIENTATIONS, Column
from medyanpy.core.flows import Flow, Stage
from medyanpy.core.handles import Handle
from medyanpy.core.kinds import Block
from medyanpy.core.sites import Sites
from medyanpy.errors import ParameterError, TopologyError
from medyanpy.rigid.tensors import check_tensor, check_tensors, friction_to_diffusion, move_friction

if TYPE_CHECKING:
    from medyanpy._kernels.core.program import Operation
    from medyanpy._kernels.letters.kick import ForceSum
    from medyanpy.core.layout import Layout
    from medyanpy.topology import Topology

__all__ = [
    "OrientedBeads", "OrientedFlow", "friction_tensors", "mean_drift", "rod_friction", "unit_quaternions",
]  # fmt: skip


# The largest deviation of the length of a given quaternion from 1 without an error (it is corrected).
_UNIT_TOLERANCE = 1e-6
# Columns of the kernel's matrices: 6, padded to whole vectors.
_PADDED = 8


def unit_quaternions(what: str, orientations: Any, n: int) -> np.ndarray:
    """Return quaternions (n, 4) scaled to length 1; TopologyError names the first one off by more than 1e-6."""
    q = array(what, orientations, (n, 4), error=TopologyError)
    length = np.linalg.norm(q, axis=1)
    wrong = np.abs(length - 1.0) > _UNIT_TOLERANCE
    if wrong.any():
        i = int(np.argmax(wrong))
        raise TopologyError(
            f"{what}[{i}] = {q[i].tolist()} has length {length[i]:.9g}, but a unit quaternion must have length 1 to "
            f"{_UNIT_TOLERANCE:g}"
        )
    # Quaternions that have been scaled before do not change, to the last bit.
    return np.where(np.abs(length - 1.0)[:, None] > 1e-15, q / length[:, None], q)


def friction_tensors(what: str, friction: Any, n: int, point: Any = None) -> np.ndarray:
    """Return friction tensors (1 or n, 6, 6) about the centre of mass, in the body frame; zeros without friction.

    A user gives a number (translation alone), two (translation, rotation), or 6×6 tensors about `point`.
    """
    try:
        given = np.asarray(friction, dtype=float)
    except (TypeError, ValueError) as cause:
        raise ParameterError(f"{what} = {friction!r} but must be numbers") from cause
    if given.ndim < 2:
        if given.shape not in ((), (2,)):
            raise ParameterError(
                f"{what} must be a number, (translational, rotational), or a tensor of shape (6, 6) or ({n}, 6, 6), "
                f"not of shape {given.shape}"
            )
        if point is not None:
            raise ParameterError(f"{what}: only a 6×6 tensor has a reference point")
        t, r = (given, 0.0) if given.ndim == 0 else given
        t = number(f"{what} of translation", float(t), at_least=0.0)
        r = number(f"{what} of rotation", float(r), at_least=0.0)
        return np.diag([t, t, t, r, r, r])[None]
    tensors = array(what, given, (6, 6) if given.ndim == 2 else (n, 6, 6))
    several = tensors.ndim == 3
    tensors = check_tensors(tensors.reshape(-1, 6, 6), lambda i: f"{what}[{i}]" if several else what)
    if point is not None:
        shift = -vector(f"{what}: reference point", point)
        tensors = np.stack([move_friction(t, shift) for t in tensors])
    return tensors


def rod_friction(what: str, friction: Any, rotational: Any, n: int) -> np.ndarray:
    """Return friction tensors (1 or n, 6, 6) of the nodes of rods, with the third axis along them.

    A user gives a number or (along, across), of translation and of rotation; or tensors.
    """
    if dimensions(f"{what}: friction", friction, "(), (2,), (6, 6) or (n, 6, 6)") >= 2:
        if np.any(rotational):
            raise ParameterError(f"{what}: friction is a tensor: rotational_friction is part of it")
        return friction_tensors(f"{what}: friction", friction, n)
    diagonal = []
    for name, given in (("friction", friction), ("rotational_friction", rotational)):
        pair = dimensions(f"{what}: {name}", given, "() or (2,)") > 0
        along, across = array(f"{what}: {name}", given, (2,)) if pair else (given, given)
        along = number(f"{what}: {name}{' along' if pair else ''}", along, at_least=0.0)
        across = number(f"{what}: {name}{' across' if pair else ''}", across, at_least=0.0)
        diagonal += [across, across, along]
    return np.diag(diagonal)[None]


class OrientedKind(BeadsKind):
    """Beads that turn.

    Attributes
    ----------
    friction_tensors : (1 or n, 6, 6) float array
        Friction about the centre of mass in the body frame, translation first: pN s/nm, pN s and pN s nm in its blocks.
    rotation_parts : int
        Parts into which the rotation of each A is cut.
    held : (n, 2) bool array
        True for beads with a fixed position, and a fixed orientation.
    """

    handle: "OrientedBeads"
    name = "oriented beads"
    block = Block.ORIENTED
    degrees_of_freedom_per_bead = 6
    per_bead: tuple[str, ...] = ("mass", "positions", "orientations", "inertia", "_held")
    columns: tuple[Column, ...] = (*BeadsKind.columns, ORIENTATIONS, ANGULAR_MOMENTA)
    takes_constraints = True

    @property
    def friction_tensors(self) -> np.ndarray:
        return self.handle._friction_tensors

    @property
    def rotation_parts(self) -> int:
        return self.handle._rotation_parts

    @property
    def held(self) -> np.ndarray:
        return self.handle._held

    @property
    def fixed_beads(self) -> np.ndarray:
        fixed: np.ndarray = self.held[:, 0]
        return fixed

    @property
    def has_friction(self) -> bool:
        return bool(self.friction_tensors.any()) or any(np.any(one.friction_tensor) for one in self.handle._species)

    def moves(self, column: Column) -> np.ndarray:
        return ~self.held[:, 1:]

    def inactive(self, column: Column) -> Any:
        return [1.0, 0.0, 0.0, 0.0] if column is ORIENTATIONS else 0.0

    def taken(self, what: str, given: dict[Column, np.ndarray]) -> dict[Column, np.ndarray]:
        out = dict(given)
        if ORIENTATIONS in given:
            rows = given[ORIENTATIONS]
            out[ORIENTATIONS] = unit_quaternions(f"{what}: orientations", rows, len(rows))
        return out

    def beside_frames(self) -> dict[str, Any]:
        # For readers of files.
        return {**super().beside_frames(), "inertia": (self.handle.inertia, "pN s+2 nm")}

    def bind(self, layout: "Layout") -> Flow | None:
        n = self.handle.capacity if self.comes_and_goes else len(self.handle)
        return OrientedFlow(self.handle, layout) if n else None


class OrientedBeads(Beads, kind=OrientedKind):
    """Beads that also turn: each carries a frame of its own, the body frame, along its principal axes of inertia.

    Attributes
    ----------
    orientations : (n, 4) float array, dimensionless
        Unit quaternions, scalar first, that turn vectors of the body frame into space.
    inertia : (n, 3) float array, pN s² nm
        Principal moments of inertia.
    friction : (n,) float array, pN s/nm
        Of translation, the mean of three directions; the thermostat uses the tensors.
    rows : slice or (n,) int
        Its rows among all oriented beads of the topology: ``state.orientations[handle.rows]``.
    """

    kind: OrientedKind

    def __init__(
        self, topology: "Topology", name: str, first: int, positions: np.ndarray, mass: np.ndarray,
        orientations: np.ndarray, inertia: np.ndarray, friction: np.ndarray, parts: int, held: np.ndarray,
    ) -> None:  # fmt: skip
        super().__init__(topology, name, first, positions, mass, _mean_friction(friction, len(mass)))
        self.orientations = orientations
        self.inertia = inertia
        self._friction_tensors = friction
        self._rotation_parts = parts
        self._held = held
        for given in (friction, held):
            given.flags.writeable = False

    def _merged(self, other: Handle) -> dict[str, Any]:
        a, b = self._friction_tensors, cast(Any, other)._friction_tensors
        if not len(self):
            tensors = b
        elif len(a) == len(b) == 1 and np.array_equal(a, b):
            tensors = a
        else:
            tensors = np.concatenate([np.broadcast_to(t, (len(h), 6, 6)) for t, h in ((a, self), (b, other))])
        return self._with_friction(super()._merged(other), tensors)

    def _chosen(self, keep: np.ndarray) -> dict[str, Any]:
        tensors = self._friction_tensors
        return self._with_friction(super()._chosen(keep), tensors if len(tensors) == 1 else tensors[keep])

    @staticmethod
    def _with_friction(attributes: dict[str, Any], tensors: np.ndarray) -> dict[str, Any]:
        mean = _mean_friction(tensors, len(attributes["mass"]))
        return {**attributes, "_friction_tensors": tensors, "friction": mean}

    @property
    def degrees_of_freedom(self) -> int:
        return 3 * int(np.count_nonzero(~self._held))

    def sites(self, arms: Numbers) -> Sites:
        """Return points fixed to the bodies: forces on them also turn the bodies.

        Parameters
        ----------
        arms : (k, 3) or (n, k, 3) float, nm
            From the centre of mass to k points, in the body frame: the same for all bodies, or for each.

        Returns
        -------
        Sites
            n k of them, body by body.

        Raises
        ------
        ParameterError
            A wrong shape, or a number that is not finite.

        Examples
        --------
        >>> import medyanpy as mp
        >>> topology = mp.Topology()
        >>> rods = topology.add_rigid_bodies([[0, 0, 0]], [[1, 0, 0, 0]], mass=1.0, inertia=[2.0, 2.0, 1.0])
        >>> ends = rods.sites([[0, 0, -5.0], [0, 0, 5.0]])
        >>> len(ends)
        2
        """
        n, what = len(self), f"{self.name}.sites: arms"
        each = dimensions(what, arms, f"(k, 3) or ({n}, k, 3)") > 2
        arms = array(what, arms, (n, None, 3) if each else (None, 3))
        arms = np.broadcast_to(arms, (n, *arms.shape[-2:])).reshape(-1, 3)
        k = len(arms) // n
        return Sites.from_arrays(
            np.arange(n * k + 1), np.repeat(self.beads, k), np.ones(n * k), np.empty((0, 3)), arms, [self]
        )


def _mean_friction(tensors: np.ndarray, n: int) -> np.ndarray:
    """Return friction of translation, the mean of three directions, of tensors (1 or n, 6, 6), (n,)."""
    mean = np.trace(tensors[:, :3, :3], axis1=1, axis2=2) / 3.0
    return np.broadcast_to(mean if len(mean) == n else mean[0], (n,))


class OrientedFlow(Flow):
    """Beads that turn (_kernels/letters/rotation.pyx, _kernels/letters/brownian.pyx).

    Parameters
    ----------
    beads : OrientedBeads
    layout : Layout
    """

    obstacle = ""
    obstacle_to_flights = "it turns: give scheme='Euler-Maruyama'"

    def __init__(self, beads: OrientedBeads, layout: "Layout") -> None:
        self._beads = beads
        self._first: int = layout.rows_of(beads).start
        block = layout.block_of(beads) if beads.kind.comes_and_goes else layout.slice_of(beads)
        self._n: int = block.stop - block.start
        #: Matrices of all that beads may be, and the time and kT of the O or D that they are for.
        self._matrices: np.ndarray | None = None
        self._made_for: tuple[float | None, ...] = ()
        #: (n,) which of these beads have; None where that of their species now.
        self._kinds: np.ndarray | None = None

    def after_a(self, stage: Stage) -> "Sequence[Operation]":
        parts = 0 if stage.rotation == "exact" else self._beads.kind.rotation_parts
        return (rotation.Rotation(self._first, self._n, stage.h, parts),)

    def in_place_of_o(self, stage: Stage) -> "Sequence[Operation]":
        return (self._stir(stage),) if self._beads.kind.has_friction else ()

    def in_place_of_d(self, stage: Stage, forces: "ForceSum") -> "Sequence[Operation]":
        # Nothing that has noise is compiled without a temperature.
        beads, h, kT = self._beads, stage.h, cast(float, stage.kT)

        def rows(first: int, numbers: np.ndarray) -> np.ndarray:
            of_species = [f"species {one.name!r} of {beads.name!r}" for one in beads._species]
            who = of_species[first] if of_species else f"bead {beads.beads[first]} ({beads.name!r})"
            free = _free(numbers[:2])
            # A fixed body is one of those that do not move.
            friction = np.where(free, numbers[8:].reshape(6, 6), np.eye(6))
            made = _brownian(check_tensor(friction, f"BrownianIntegrator: {who}: friction"), h, kT)
            made[:12] *= np.concatenate([free, free])
            return made

        self._make(stage, rows, inertia=False)
        kinds, matrices = self._kinds, self._matrices
        return (brownian.TensorDisplacement(stage.index, forces, self._first, self._n, kinds, matrices),)

    def carry(self, before: Flow, then: np.ndarray, now: np.ndarray) -> None:
        old = cast(OrientedFlow, before)
        if self._matrices is None or old._matrices is None or self._made_for != old._made_for:
            return
        if self._kinds is None or old._kinds is None:
            self._matrices[:] = old._matrices
        else:
            self._matrices[self._kinds[now]] = old._matrices[old._kinds[then]]

    def arrays(self) -> dict[str, np.ndarray]:
        # Eigenvectors and factors may differ in their last bits where a run is resumed.
        return {} if self._matrices is None else {f"friction of {self._beads.name}": self._matrices}

    def _stir(self, stage: Stage) -> "Operation":
        # Nothing that has noise is compiled without a temperature.
        h, kT = stage.h, cast(float, stage.kT)

        def rows(_: int, numbers: np.ndarray) -> np.ndarray:
            free = _free(numbers[:2])
            # C1 keeps momenta of 0, and no noise is added to them.
            made: np.ndarray = _exact(numbers[8:].reshape(6, 6) * free, numbers[2:8], h, kT) * free
            return made

        self._make(stage, rows, inertia=True)
        return rotation.TensorThermostat(stage.index, self._first, self._n, self._kinds, self._matrices)

    def _numbers(self) -> np.ndarray:
        """Return what is held, masses of six momenta, and friction tensors as rows, (n, 44), of all beads, or of the
        species that they may be of."""
        beads = self._beads
        if species := beads._species:
            numbers = [[0.0, 0.0, *3 * [one.mass], *one.inertia, *np.ravel(one.friction_tensor)] for one in species]
            return np.array(numbers)
        tensors = np.broadcast_to(beads.kind.friction_tensors.reshape(-1, 36), (len(beads), 36))
        return np.column_stack([beads.kind.held, beads.mass, beads.mass, beads.mass, beads.inertia, tensors])

    def _make(self, stage: Stage, rows: Callable[[int, np.ndarray], np.ndarray], *, inertia: bool) -> None:
        """Make the matrices of all kinds of beads, `rows` of the first of each and of its numbers, when they are first
        needed for a time and kT, and keep them. Beads with equal numbers are of one kind, perhaps without `inertia`."""
        kinds, first = self._numbers(), np.arange(len(self._beads._species))
        if not inertia:
            kinds[:, 2:8] = 0.0
        if not self._beads._species:
            kinds, first, own = np.unique(kinds, axis=0, return_index=True, return_inverse=True)
            self._kinds = own.reshape(-1).astype(np.int32)
        if self._made_for != (stage.h, stage.kT):
            self._made_for = stage.h, stage.kT
            made = np.array([rows(int(i), kind) for i, kind in zip(first, kinds, strict=True)])
            self._matrices = np.zeros((*made.shape[:-1], _PADDED))
            self._matrices[..., :6] = made


def _free(held: np.ndarray) -> np.ndarray:
    """Return which pairs of momenta are free (6, 6), given whether position and orientation are fixed."""
    free = np.repeat(held == 0.0, 3)
    both: np.ndarray = free[:, None] & free
    return both


def _exact(friction: np.ndarray, mass: np.ndarray, h: float, kT: float) -> np.ndarray:
    """Return the columns of C1, and of C2, (2, 6, 6), of the exact step of momenta for a time h.

    The step is p <- C1 p + C2 xi, for masses (6,).
    """
    # With p = M^(1/2) u the friction is symmetric, and its eigenvectors relax one by one.
    root = np.sqrt(mass)
    rate, axes = np.linalg.eigh(friction / root[:, None] / root)
    rate = np.maximum(rate, 0.0)
    c1 = root[:, None] * (axes * np.exp(-rate * h)) @ axes.T / root
    c2 = root[:, None] * (axes * np.sqrt(-kT * np.expm1(-2.0 * rate * h))) @ axes.T
    return np.stack([c1.T, c2.T])


def _brownian(friction: np.ndarray, h: float, kT: float) -> np.ndarray:
    """Return the columns of h D / kT, those of a root of 2 h D, and the mean step h b, (13, 6), for a time h."""
    step = h * friction_to_diffusion(friction, kT=kT)
    mean = [*mean_drift(step), 0.0, 0.0, 0.0]
    return np.concatenate([step / kT, np.linalg.cholesky(2.0 * step).T, [mean]])


def mean_drift(diffusion: np.ndarray) -> np.ndarray:
    """Return the mean velocity b_k = sum_ij eps_kji D_ij (3,) of a body with a diffusion tensor (6, 6).

    It comes from the skew part of its coupling block, since the body turns while it moves.
    """
    skew = diffusion[:3, 3:].T - diffusion[:3, 3:]
    return np.array([skew[1, 2], skew[2, 0], skew[0, 1]])
