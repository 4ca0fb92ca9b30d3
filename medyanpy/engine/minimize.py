"""Energy minimisation by FIRE, made of the letters that the integrators are made of."""

from math import sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from medyanpy._kernels.kick import ForceSum, Kick
from medyanpy._kernels.program import Program, Sequence
from medyanpy._tools.progress import Bar
from medyanpy._tools.validation import number, whole_number
from medyanpy.engine.overlaps import contact, overlaps_now
from medyanpy.engine.schedule import Schedule
from medyanpy.errors import ConvergenceWarning, warn_outside
from medyanpy.flows import Stage

if TYPE_CHECKING:
    from medyanpy.context import Context

__all__ = ["Minimization", "minimize"]

# FIRE's own numbers: Bitzek et al., Phys. Rev. Lett. 97, 170201 (2006).
_DOWNHILL_BEFORE_GROWTH = 5
_GROW = 1.1
_SHRINK = 0.5
_ALPHA = 0.1
_ALPHA_SHRINK = 0.99
# No bead moves further in one iteration than this share of the shortest edge of a mesh (without meshes: of the
# mean distance of beads).
_LARGEST_MOVE = 0.1
# The default tolerance: shares of kT over the shortest length; without a temperature of the root mean square force at
# the start or, where pairs of beads may overlap, of what moves the lightest bead by that length in a timestep.
_SHARE_OF_HEAT = 0.01
_SHARE_OF_FORCE = 1e-3
_SHARE_OF_LENGTH = 1e-7
_ROUNDING = 1e-10
# Forces on single beads count no more than so many times the tolerance that heat gives; without a temperature, so many
# times those on most beads: where beads overlap, all are parted at once.
_MOST = 1e5
_MOST_OF_THEM = 1e2
# Beads in one place are put so far apart, in units of what they need, with so many tries.
_APART = 0.05
_TRIES = 30


class Relaxation:
    """The beads of a store with unit masses and momenta of their own: the store keeps its own.

    Every coordinate is measured as a length. Directors as the lengths of their links, so that turning one by an angle
    and moving a node as far as that carries the link's end are alike; coordinates with momenta beside m v as how far
    they move mass, orientations as the distance of mass from the axes. The square of that length is their mass, and `v`
    and `force` are as of such coordinates: (k,) numbers, those of the velocities first.
    """

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        store = schedule.store
        length = store.step_lengths()
        #: Velocities of beads, and what a length is of their coordinates; the same of other momenta.
        self._v, self._length = np.zeros((len(length), 3)), np.repeat(length[:, None], 3, axis=1)
        others = list(store.momenta.values())
        self._momenta, self._radii = [np.zeros(m.p.shape) for m in others], [store.radii(m) for m in others]
        self.program: Program = store.make_program(
            self._v,
            length**2,
            np.where(store.movable_beads(), 1.0 / length**2, 0.0),
            [
                (p, np.where(m.inverse_mass > 0.0, 1.0 / radius**2, 0.0))
                for m, p, radius in zip(others, self._momenta, self._radii, strict=True)
            ],
        )
        self.forces: ForceSum = schedule.make_force_sum(list(schedule.bound))
        self.kick: Sequence = Sequence(schedule.around(Stage(0, "B", 1.0, None), [Kick(self.forces, 1.0)]))
        self.program.remember(store.places())
        joined = any(len(handle.joined) for handle in store.layout.handles)
        self.contact: float | None = contact(schedule)
        self.shortest_length: float = (None if joined else self.contact) or store.shortest_length()
        self.largest_move: float = _LARGEST_MOVE * self.shortest_length
        self.overlapping: bool = self._part()
        self.force: np.ndarray = self._force()
        self.most: float = self._most()
        self.drive: np.ndarray = self._drive()

    def _perform(self, operation: Any) -> None:
        # The copy made before is the state to go back to, whatever the operation does.
        self.schedule.perform(operation, self.program, changes_state=False)

    @property
    def v(self) -> np.ndarray:
        others = [(p / radius).ravel() for p, radius in zip(self._momenta, self._radii, strict=True)]
        return np.concatenate([(self._v * self._length).ravel(), *others])

    @v.setter
    def v(self, v: np.ndarray) -> None:
        of_beads, *others = self._parts(v)
        np.divide(of_beads, self._length, out=self._v)
        for own, p, radius in zip(others, self._momenta, self._radii, strict=True):
            np.multiply(own, radius, out=p)

    def _part(self) -> bool:
        """Put beads apart that are in one place, where there is no direction to push in; whether any overlap."""
        store = self.schedule.store
        overlapping = False
        for k in range(_TRIES):
            found = overlaps_now(self.schedule)
            overlapping |= bool(found)
            lost = [one for one in found if len(one.in_one_place)]
            if not lost:
                break
            v = np.zeros_like(self.v)
            rows = self._parts(v)[0]
            for one in lost:
                # Farther at each try, in directions that stay for some tries.
                direction = np.random.default_rng(k // 4).normal(size=(store.layout.n, 3))
                direction /= np.linalg.norm(direction, axis=1)[:, None]
                place = store.layout.rank[one.in_one_place]
                rows[place] = (1 + k) * _APART * one.bound * direction[place]
            self.v = v
            self._move(1.0)
            store.positions_changed()
        self.v = np.zeros_like(self.v)
        return overlapping

    def _most(self) -> float:
        """pN; beyond which forces on single beads are cut."""
        kT = self.schedule.integrator.kT
        if kT is not None:
            return _MOST * _SHARE_OF_HEAT * kT / self.shortest_length
        size = np.concatenate([np.linalg.norm(part, axis=1) for part in self._parts(self.force)])
        size = size[size > 0.0]
        return _MOST_OF_THEM * float(np.median(size)) if len(size) else np.inf

    def _drive(self) -> np.ndarray:
        """The forces, cut on beads on which they are too large to say more than where to."""
        if not self.overlapping:
            return self.force
        out = self.force.copy()
        for part in self._parts(out):
            size = np.linalg.norm(part, axis=1)
            part *= np.divide(self.most, size, out=np.ones_like(size), where=size > self.most)[:, None]
        return out

    def _parts(self, v: np.ndarray) -> list[np.ndarray]:
        """Rows of each bead: of velocities, and of other momenta."""
        shapes = [self._v.shape, *(p.shape for p in self._momenta)]
        ends = np.cumsum([n * width for n, width in shapes])
        return [part.reshape(shape) for part, shape in zip(np.split(v, ends[:-1]), shapes, strict=True)]

    def _force(self) -> np.ndarray:
        """Generalised forces: with what points pass on to vertices, and in the plane of their triangles."""
        kept = self.v
        self.v = np.zeros_like(kept)
        self._perform(self.kick)
        out = self.v
        self.v = kept
        return out

    def advance(self, h: float) -> None:
        v = self.v + h * self.drive
        fastest = sqrt(max(float(np.einsum("ij,ij->i", p, p).max(initial=0.0)) for p in self._parts(v)))
        self.v = v * min(1.0, self.largest_move / (fastest * h)) if fastest > 0.0 else v
        self._move(h)
        self.force = self._force()
        self.drive = self._drive()

    def _move(self, h: float) -> None:
        move = self.schedule.operations(Stage(0, "A", h, None))
        fly = self.schedule.operations(Stage(1, "G", h, None))
        self._perform(Sequence([*move, *fly]))


class Minimization(float):
    """What a minimisation reached: the largest force component that is left, pN, as a number.

    Attributes
    ----------
    converged : bool
        Whether it is at most the tolerance.
    tolerance : float, pN
    iterations : int
    energy_before, energy_after : float, pN nm
        The potential energy.
    """

    tolerance: float
    iterations: int
    energy_before: float
    energy_after: float

    def __new__(
        cls, largest: float, tolerance: float, iterations: int, energy_before: float, energy_after: float
    ) -> "Minimization":
        self = super().__new__(cls, largest)
        self.tolerance, self.iterations = tolerance, iterations
        self.energy_before, self.energy_after = energy_before, energy_after
        return self

    @property
    def converged(self) -> bool:
        return bool(self <= self.tolerance)

    def __getnewargs__(self) -> tuple[float, float, int, float, float]:  # type: ignore[override]
        return float(self), self.tolerance, self.iterations, self.energy_before, self.energy_after

    def __repr__(self) -> str:
        return (
            f"Minimization({'converged' if self.converged else 'not converged'} after {self.iterations} iterations: "
            f"largest force {float(self):.3g} pN, tolerance {self.tolerance:.3g} pN; energy {self.energy_before:.6g} "
            f"to {self.energy_after:.6g} pN nm)"
        )

    __str__ = __repr__


def minimize(
    context: "Context", tolerance: float | None, max_iterations: int, progress: bool | None = None
) -> Minimization:
    """Run FIRE on a context; see `Simulation.minimize_energy`."""
    if tolerance is not None:
        tolerance = number("minimize_energy: tolerance", tolerance, above=0.0)
    bound = whole_number("minimize_energy: max_iterations", max_iterations)
    before = context.get_state(energy=True).potential_energy
    with context._counted_as_protocol():
        relaxation = Relaxation(context._schedule)
        if tolerance is None:
            tolerance = _default_tolerance(relaxation)
        with Bar(None, "iteration", progress) as bar:
            largest, iterations = _relax(relaxation, tolerance, bound, bar)
    after = context.get_state(energy=True).potential_energy
    report = Minimization(largest, tolerance, iterations, before, after)
    found = overlaps_now(context._schedule)
    context._faults.overlapping = bool(found)
    if not report.converged:
        why = f"max_iterations = {bound} were not enough" if bound and iterations >= bound else (
            "the forces there are within rounding, or have no minimum"
        )
        if found:
            why += f", and {found[0].text}"
        warn_outside(
            f"minimize_energy: a force of {largest:.3g} pN is left{_where(relaxation, context)}, above the tolerance "
            f"of {tolerance:.3g} pN: {why}. Allow more iterations, or give the tolerance (pN) that you need",
            ConvergenceWarning,
        )
    return report


def _where(r: Relaxation, context: "Context") -> str:
    """On which bead the largest force is left, and which force is the strongest there."""
    largest = [float(np.abs(part).max(initial=0.0)) for part in r._parts(r.force)]
    k = int(np.argmax(largest))
    place = int(np.argmax(np.abs(r._parts(r.force)[k]).max(axis=1)))
    layout = context.layout
    if k:
        place += list(r.schedule.store.momenta.values())[k - 1].places.start
    bead = int(layout.order[place])
    strongest = context._faults.strongest(bead)
    of = "" if strongest is None else f" (strongest there: {strongest})"
    return f" on bead {bead} of {layout.topology.handle_of(bead).name!r}{of}"


def _default_tolerance(r: Relaxation) -> float:
    """pN; what heat exceeds a hundred times over the shortest length. Without a temperature, a part of the forces at
    the start, if these mean something."""
    force, kT = r.force, r.schedule.integrator.kT
    if kT is not None:
        return _SHARE_OF_HEAT * kT / r.shortest_length
    if r.contact is not None:
        inverse = r.schedule.store.inverse_mass
        lightest = 1.0 / float(inverse.max()) if (inverse > 0.0).any() else 1.0
        return _SHARE_OF_LENGTH * lightest * r.shortest_length / r.schedule.integrator.timestep**2
    return _SHARE_OF_FORCE * sqrt(float(np.mean(force**2))) if force.any() else _SHARE_OF_FORCE


def _relax(r: Relaxation, tolerance: float, bound: int, bar: Bar) -> tuple[float, int]:
    """FIRE. If a force fails, positions go back to the last for which all forces could be computed."""
    largest = float(np.abs(r.force).max(initial=0.0))
    strongest = float(np.abs(r.drive).max(initial=0.0))
    h = first = 0.1 * sqrt(r.largest_move / strongest) if strongest > 0.0 else 0.0
    alpha, downhill, iterations = _ALPHA, 0, 0
    # Where steps have shrunk to nothing, rounding says which way is down.
    while largest > tolerance and h > _ROUNDING * first and not (bound and iterations >= bound):
        power = float(np.vdot(r.drive, r.v))
        if power >= 0.0:
            v = r.v
            r.v = v + alpha * (np.linalg.norm(v) / np.linalg.norm(r.drive) * r.drive - v)
            downhill += 1
            if downhill > _DOWNHILL_BEFORE_GROWTH:
                h *= _GROW
                alpha *= _ALPHA_SHRINK
        else:
            r.v = np.zeros_like(r.force)
            h *= _SHRINK
            alpha, downhill = _ALPHA, 0
        r.program.keep()
        try:
            r.advance(h)
        except BaseException:
            r.program.restore()
            raise
        finally:
            r.schedule.store.positions_changed()
        largest = float(np.abs(r.force).max())
        iterations += 1
        bar.say("largest force {:.3g} of {:.3g} pN", largest, tolerance)
        bar.update()
    return largest, iterations
