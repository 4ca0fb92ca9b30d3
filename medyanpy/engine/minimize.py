"""Energy minimisation by FIRE, made of the letters that the integrators are made of."""

from math import sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from medyanpy._kernels.beads.points import Place
from medyanpy._kernels.core.program import Program, Sequence
from medyanpy._kernels.letters.kick import ForceSum, Kick
from medyanpy._tools.images import displacement
from medyanpy._tools.progress import Bar
from medyanpy._tools.validation import number, whole_number
from medyanpy.core.flows import Stage
from medyanpy.engine.overlaps import contact, overlaps_now
from medyanpy.engine.schedule import Schedule
from medyanpy.errors import ConvergenceWarning, warn_outside

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
# Points at kinks: the share of their drive grows back by this in a move; they are held at an edge below a share, for so
# many moves, so far inside of a triangle.
_GROW_BACK = 1.02
_HELD = 0.1
_RECENT = 50
_INSIDE = 1e-9
# Beads in one place are put so far apart, in units of what they need, with so many tries.
_APART = 0.05
_TRIES = 30


class Kinks:
    """Points of triangles at edges, where the energy has kinks. A point that is pushed onto an edge from both of its
    triangles is at rest across it, whatever the forces there are.

    A point that crosses an edge and is pushed back stops, and is driven by half. When that has happened some times, it
    is put onto the edge and slides along it, up to a vertex, where it is at rest if no edge pulls. Now and then it is
    let go, so that it can leave.

    Attributes
    ----------
    rows : slice
        The points, by place.
    share : (p,) float
        By what each is driven less than its force.
    held : (p,) bool
        At an edge, or a vertex.
    at : (p,) int
        The vertex, by place; -1 of others.
    """

    def __init__(self, store: Any) -> None:
        first, p = store.layout.n_cartesian, len(store.triangle)
        self._store = store
        self.rows: slice = slice(first, first + p)
        self.triangle: np.ndarray = store.triangle
        self.share: np.ndarray = np.ones(p)
        self.held: np.ndarray = np.zeros(p, bool)
        self.at: np.ndarray = np.full(p, -1)
        self._since = np.zeros(p, np.int64)
        self._edge = np.zeros((p, 2), np.int64)
        self._around: dict[int, np.ndarray] = {}
        joint, self._free = store.layout.topology.joint, np.ones(p, bool)
        if joint is not None:
            self._free[store.layout.internal(joint.points) - first] = False

    def look(self, before: np.ndarray, drive: np.ndarray, force: np.ndarray) -> np.ndarray:
        """Find the points (p,) that have crossed an edge and are pushed back, from their triangles and drives before a
        move, and the forces after it. Those that are held from now on are on their edges then."""
        faces = self._store.faces
        crossed = np.flatnonzero(self.triangle != before)
        # A point that left its edge is free.
        self.held[crossed], self.at[crossed] = False, -1
        # Points that constraints hold would not stay where they are put.
        crossed = crossed[self._free[crossed] & (np.einsum("ij,ij->i", drive[crossed], force[crossed]) < 0.0)]
        back = np.zeros(len(before), bool)
        back[crossed] = True
        self.share[back] = np.maximum(0.5 * self.share[back], 0.5 * _HELD)
        self.share[~back] = np.minimum(1.0, _GROW_BACK * self.share[~back])
        shared = (faces[before[crossed]][:, :, None] == faces[self.triangle[crossed]][:, None, :]).any(axis=2)
        ready = (shared.sum(axis=1) == 2) & (self.share[crossed] < _HELD)
        here = crossed[ready]
        self._edge[here] = faces[before[here]][shared[ready]].reshape(-1, 2)
        self.held[here], self._since[here] = True, 0
        weights, on_edge = self._weights(here)
        weights[~on_edge.any(axis=2)] = _INSIDE
        self._put(here, weights)
        # A point that crosses to a triangle which shares only a vertex is held at that vertex.
        round_one = (shared.sum(axis=1) == 1) & (self.share[crossed] < _HELD)
        there = crossed[round_one]
        self.at[there] = faces[before[there]][shared[round_one]]
        self.held[there] = True
        self._put(there, np.where(faces[self.triangle[there]] == self.at[there][:, None], 1.0, _INSIDE))
        self._edge[there] = faces[self.triangle[there]][:, :2]
        self._since += 1
        let_go = self.held & (self.at < 0) & (self._since > _RECENT)
        self.held[let_go], self.share[let_go] = False, 0.5 * _HELD
        return back

    def _weights(self, which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the weights of some points, (k, 3), and which corners are which ends of their edges, (k, 3, 2)."""
        inner = self._store.barycentric[which]
        corners = self._store.faces[self.triangle[which]]
        weights = np.column_stack([1.0 - inner.sum(axis=1), inner])
        return weights, corners[:, :, None] == self._edge[which][:, None, :]

    def _put(self, which: np.ndarray, weights: np.ndarray) -> None:
        self._store.barycentric[which] = weights[:, 1:] / weights.sum(axis=1)[:, None]

    def _ways(self, which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return unit vectors along edges, (k, 3), and their lengths, (k,)."""
        x = self._store.x
        a, b = self._edge[which].T
        way = displacement(x[a], x[b], self._store.layout.box)
        length = np.linalg.norm(way, axis=1)
        return way / length[:, None], length

    def along(self, force: np.ndarray) -> np.ndarray:
        """Return the parts of forces (p, 3) along the edges of points that are held, (h, 3); none at vertices."""
        way, _ = self._ways(self.held)
        out: np.ndarray = np.einsum("ij,ij->i", force[self.held], way)[:, None] * way
        out[self.at[self.held] >= 0] = 0.0
        return out

    def limit(self, v: np.ndarray, h: float) -> None:
        """Stop points that slide at the ends of their edges, in velocities (p, 3)."""
        which = np.flatnonzero(self.held & (self.at < 0))
        way, length = self._ways(which)
        weights, ends = self._weights(which)
        step = h * np.einsum("ij,ij->i", v[which], way)
        of_ends = np.einsum("ki,kij->kj", weights, ends)
        left = np.where(step > 0.0, of_ends[:, 0], of_ends[:, 1]) * length
        over = np.abs(step) >= (1.0 - _INSIDE) * left
        stopped = which[over]
        self.at[stopped] = np.where(step > 0.0, self._edge[which, 1], self._edge[which, 0])[over]
        v[stopped] = 0.0
        corners = self._store.faces[self.triangle[stopped]]
        self._put(stopped, np.where(corners == self.at[stopped][:, None], 1.0, _INSIDE))

    def pulls(self, force: np.ndarray, least: float) -> np.ndarray:
        """Return the pull of the edge that pulls most at points at vertices, (p,), by forces in space (p, 3); those
        that are pulled by more than `least` go that way."""
        out = np.zeros(len(self.at))
        x, faces = self._store.x, self._store.faces
        for p in np.flatnonzero(self.at >= 0).tolist():
            w = int(self.at[p])
            if w not in self._around:
                ring = faces[(faces == w).any(axis=1)]
                self._around[w] = np.setdiff1d(ring, [w])
            others = self._around[w]
            way = displacement(x[w], x[others], self._store.layout.box)
            pull = way @ force[p] / np.linalg.norm(way, axis=1)
            k = int(np.argmax(pull))
            out[p] = max(float(pull[k]), 0.0)
            if out[p] > least:
                corners = (faces == w) | (faces == others[k])
                self.triangle[p] = int(np.argmax(corners.sum(axis=1) == 2))
                self._edge[p], self.at[p], self._since[p] = (w, others[k]), -1, 0
                row = faces[self.triangle[p]]
                self._put(np.array([p]), np.where(row == w, 1.0, np.where(row == others[k], 1e-6, _INSIDE))[None])
        return out


class Relaxation:
    """The beads of a store with unit masses and momenta of their own: the store keeps its own.

    Every coordinate is measured as a length. Directors as the lengths of their links, so that turning one by an angle
    and moving a node as far as that carries the link's end are alike. Coordinates with momenta beside m v count as how
    far they move mass, orientations as the distance of mass from the axes. The square of that length is their mass, and
    `v` and `force` are as of such coordinates: (k,) numbers, those of the velocities first.
    """

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        store = schedule.store
        length = store.step_lengths()
        #: Velocities of beads, and what a length is of their coordinates; the same of other momenta.
        self._v, self._length = np.zeros((len(length), 3)), np.repeat(length[:, None], 3, axis=1)
        others = list(store.momenta.values())
        self._momenta, self._radii = [np.zeros(m.p.shape) for m in others], [store.radii(m) for m in others]
        #: Where each part of `v` begins and ends, and its shape.
        self._spans: list[tuple[int, int, tuple[int, ...]]] = []
        first = 0
        for part in (self._v, *self._momenta):
            self._spans.append((first, first + part.size, part.shape))
            first += part.size
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
        joined = any(len(handle.kind.joined) for handle in store.layout.handles)
        self.contact: float | None = contact(schedule)
        self.shortest_length: float = (None if joined else self.contact) or store.shortest_length()
        self.largest_move: float = _LARGEST_MOVE * self.shortest_length
        self.overlapping: bool = self._part()
        self.kinks: Kinks = Kinks(store)
        #: pN; of points at vertices, what pulls them into an edge, and how much it takes.
        self.pulled: np.ndarray = np.zeros(len(self.kinks.at))
        self.least: float = 0.0
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
        """Put beads apart that are in one place, which leaves no direction to push in; tell whether any overlap."""
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
        """Return the bound beyond which forces on single beads are cut, pN."""
        kT = self.schedule.integrator.kT
        if kT is not None:
            return _MOST * _SHARE_OF_HEAT * kT / self.shortest_length
        size = np.concatenate([np.linalg.norm(part, axis=1) for part in self._parts(self.force)])
        size = size[size > 0.0]
        return _MOST_OF_THEM * float(np.median(size)) if len(size) else np.inf

    @property
    def left(self) -> np.ndarray:
        """The forces that keep beads from being at rest: of points that are held at an edge, those along it."""
        if not self.kinks.held.any():
            return self.force
        out = self.force.copy()
        rows = self._parts(out)[0][self.kinks.rows]
        rows[self.kinks.held] = self.kinks.along(rows)
        rows[self.kinks.at >= 0, 0] = self.pulled[self.kinks.at >= 0]
        return out

    def _drive(self) -> np.ndarray:
        """Return the forces, cut on beads on which they are so large that they tell a direction only, and on points at
        kinks."""
        kinks = self.kinks
        if not self.overlapping and not kinks.held.any() and not (kinks.share < 1.0).any():
            return self.force
        out = self.force.copy()
        rows = self._parts(out)[0][kinks.rows]
        slides = kinks.along(rows)
        rows *= kinks.share[:, None]
        rows[kinks.held] = slides
        if not self.overlapping:
            return out
        for part in self._parts(out):
            size = np.linalg.norm(part, axis=1)
            part *= np.divide(self.most, size, out=np.ones_like(size), where=size > self.most)[:, None]
        return out

    def _parts(self, v: np.ndarray) -> list[np.ndarray]:
        """Return rows of each bead: of velocities, and of other momenta."""
        return [v[first:last].reshape(shape) for first, last, shape in self._spans]

    def _force(self) -> np.ndarray:
        """Return generalised forces: with what points pass on to vertices, and in the plane of their triangles."""
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
        if len(self.kinks.at):
            self._move_with_points(h)
        else:
            self._move(h)
            self.force = self._force()
        self.drive = self._drive()

    def _move_with_points(self, h: float) -> None:
        """Move, and hold points at the edges that they are pushed onto."""
        kinks = self.kinks
        before, drive = kinks.triangle.copy(), self._parts(self.drive)[0][kinks.rows].copy()
        v = self.v
        rows = self._parts(v)[0][kinks.rows]
        rows[kinks.held] = kinks.along(rows)
        kinks.limit(rows, h)
        self.v = v
        self._move(h)
        self.force = self._force()
        held = kinks.held.copy()
        back = kinks.look(before, drive, self._parts(self.force)[0][kinks.rows])
        self.pulled = kinks.pulls(np.asarray(self.forces.f_array)[kinks.rows], self.least)
        if back.any() or (held != kinks.held).any() or (kinks.at >= 0).any():
            v = self.v
            self._parts(v)[0][kinks.rows][back | (held != kinks.held)] = 0.0
            self.v = v
            self._perform(Place())
            self.program.changed()
            self.force = self._force()

    def _move(self, h: float) -> None:
        move = self.schedule.operations(Stage(0, "A", h, None, of_pair=1))
        fly = self.schedule.operations(Stage(1, "G", h, None, of_pair=2))
        self._perform(Sequence([*move, *fly]))


class Minimization(float):
    """Result of a minimisation: the largest force component that is left, pN, as a number.

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
        relaxation.least = 0.5 * tolerance
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
    """Name the bead with the largest force that is left, and the force that is the strongest there."""
    parts = r._parts(r.left)
    k = int(np.argmax([float(np.abs(part).max(initial=0.0)) for part in parts]))
    place = int(np.argmax(np.abs(parts[k]).max(axis=1)))
    layout = context.layout
    if k:
        place += list(r.schedule.store.momenta.values())[k - 1].places.start
    bead = int(layout.order[place])
    strongest = context._faults.strongest(bead)
    of = "" if strongest is None else f" (strongest there: {strongest})"
    return f" on bead {bead} of {layout.topology.handle_of(bead).name!r}{of}"


def _default_tolerance(r: Relaxation) -> float:
    """Return the default tolerance, pN, which heat exceeds a hundred times over the shortest length. Without a
    temperature, a part of the forces at the start, if these mean something."""
    force, kT = r.force, r.schedule.integrator.kT
    if kT is not None:
        return _SHARE_OF_HEAT * kT / r.shortest_length
    if r.contact is not None:
        inverse = r.schedule.store.inverse_mass
        lightest = 1.0 / float(inverse.max()) if (inverse > 0.0).any() else 1.0
        return _SHARE_OF_LENGTH * lightest * r.shortest_length / r.schedule.integrator.timestep**2
    return _SHARE_OF_FORCE * sqrt(float(np.mean(force**2))) if force.any() else _SHARE_OF_FORCE


def _relax(r: Relaxation, tolerance: float, bound: int, bar: Bar) -> tuple[float, int]:
    """Minimise by FIRE. If a force fails, positions go back to the last for which all forces could be computed."""
    largest = float(np.abs(r.left).max(initial=0.0))
    strongest = float(np.abs(r.drive).max(initial=0.0))
    h = first = 0.1 * sqrt(r.largest_move / strongest) if strongest > 0.0 else 0.0
    alpha, downhill, iterations = _ALPHA, 0, 0
    # Where steps have shrunk to nothing, rounding decides which way is down.
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
        largest = float(np.abs(r.left).max())
        iterations += 1
        bar.say("largest force {:.3g} of {:.3g} pN", largest, tolerance)
        bar.update()
    return largest, iterations
