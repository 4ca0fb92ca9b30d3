"""The contract of a force."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from operator import attrgetter
from typing import Any

import numpy as np

from medyanpy._kernels.core.derivatives import Contraction, DiagonalBlocks, HessianBlocks, Multiplication
from medyanpy._tools import quaternions
from medyanpy._tools.described import made_anew
from medyanpy._tools.domains import Domain
from medyanpy.beads import Directors, InTrianglePoints, Membrane, SurfacePoints
from medyanpy.beads.chains import Chains
from medyanpy.context import Context
from medyanpy.errors import BoxWarning, ParameterError, TopologyError
from medyanpy.forces import Force
from medyanpy.integrators import SplittingIntegrator, VerletIntegrator
from medyanpy.state import State
from medyanpy.system import System
from medyanpy.topology import Topology

__all__ = ["ForceCase", "check_box", "check_flips", "check_force"]


@dataclass(frozen=True)
class ForceCase:
    """A force on untidy data, and its energy written a second time.

    Attributes
    ----------
    name : str
    build : callable () -> (Topology, Force)
        Makes both, new at each call: nothing at rest, numbers of terms and beads in no order, beads in no term and in
        many, a different parameter in every term.
    energy : callable ((n, 3) array) -> float
        The energy of the force at given 3D positions of every bead, in plain NumPy and sharing no code with it. Where
        the topology has m oriented beads it is called with their (m, 4) unit quaternions, body to space, as well.
    length : float, nm
        Distance over which the energy changes shape: differences are taken over small parts of it.
    """

    name: str
    build: Callable[[], tuple[Topology, Force]]
    energy: Callable[..., float]
    length: float


def add_with_pools(system: System, force: Force) -> None:
    """Add a force to a system, and first the pools that it needs."""
    for pool in force.pools:
        if pool not in system:
            system.add_pool(pool)
    system.add_force(force)


def _context(
    topology: Topology, *forces: Force, threads: int = 1, box: tuple[float, float, float] | None = None
) -> Context:
    system = System(topology, box)
    for force in forces:
        add_with_pools(system, force)
    return Context(system, VerletIntegrator(1e-3), threads=threads)


def _state(case: ForceCase, threads: int = 1, copies: int = 1, energy: bool = True) -> tuple[State, np.ndarray]:
    topology, force = case.build()
    context = _context(topology, force, *(_twin(force) for _ in range(copies - 1)), threads=threads)
    state = context.get_state(positions=True, forces=True, energy=energy, virial=energy)
    return state, state.positions


def _rotations(vectors: np.ndarray) -> np.ndarray:
    """Return the unit quaternions (m, 4) of rotation vectors (m, 3), radians."""
    half = 0.5 * np.linalg.norm(vectors, axis=1)[:, None]
    return np.column_stack([np.cos(half), 0.5 * np.sinc(half / np.pi) * vectors])


def _twin(force: Force) -> Force:
    """Make another force of the same beads and numbers."""
    twin = object.__new__(type(force))
    twin.__dict__.update(force.__dict__)
    return twin


def check_force(case: ForceCase) -> None:
    """Check one case against the contract; an AssertionError tells what is broken.

    The energy equals the independent one to 1e-12 relative. Every component of the force is minus the central
    difference of the *independent* energy, and along random directions the error falls as h²; the virial is minus
    its difference in a strain of space, which leaves directors and orientations alone. Every component of the torque
    on an oriented bead is minus the difference in turning it about that axis of its body frame. Forces and torques have
    the same bits on 1, 2, 3 and 4 threads, and whether the energy is wanted or not; two equal forces give exactly twice
    one. A force that claims to conserve momentum has no net force and no net torque; directors and torques on oriented
    beads have a part in the latter only.

    Second derivatives of the energy, where a force offers them, are symmetric and equal central differences of the
    force; third ones equal differences of the second. No term of the case may be near a place where they jump.

    Its numbers are attributes; assigning to one that can be set does what `set` does, all else is refused. Values just
    outside the domain of a number, nan, infinities, other shapes and types are refused by `set` and by the constructor,
    which name number, place and bound, and change nothing. Made again from its arguments it has the same numbers, to
    the bit. Numbers set while a context runs have there the results of a force made with them.
    """
    check_numbers(case)
    check_domains(case)
    check_changes(case)
    state, x = _state(case)
    f, q, torques = state.forces, state.orientations, state.torques
    turns = len(q) > 0
    # Torques are compared as forces at this distance.
    scale = max(np.abs(f).max(), np.abs(torques).max(initial=0.0) / case.length)
    assert np.isfinite(f).all(), f"{case.name}: forces are not finite"
    assert np.isfinite(torques).all(), f"{case.name}: torques are not finite"
    assert scale > 0.0, f"{case.name}: the case exerts no force, so it tests nothing"

    def energy_at(x: np.ndarray, turn: np.ndarray | float = 0.0) -> float:
        """Return the energy with oriented beads turned by rotation vectors (m, 3) in their body frames."""
        if not turns:
            return case.energy(x)
        return case.energy(x, quaternions.product(q, _rotations(np.broadcast_to(turn, (len(q), 3)))))

    energy, expected = state.potential_energy, energy_at(x)
    assert abs(energy - expected) <= 1e-12 * max(abs(expected), scale * case.length), (
        f"{case.name}: energy {energy!r}, independently {expected!r}"
    )

    def slope(direction: np.ndarray, h: float, about: np.ndarray | float = 0.0) -> float:
        return (energy_at(x + h * direction, h * about) - energy_at(x - h * direction, -h * about)) / (2.0 * h)

    h = 1e-5 * case.length
    for i, c in np.ndindex(x.shape):
        unit = np.zeros_like(x)
        unit[i, c] = 1.0
        assert abs(slope(unit, h) + f[i, c]) <= 2e-6 * scale, (
            f"{case.name}: force on bead {i}, component {c} is {f[i, c]!r}, by differences {-slope(unit, h)!r}"
        )

    for i, c in np.ndindex(torques.shape):
        about = np.zeros_like(torques)
        about[i, c] = 1.0
        by_differences = -slope(np.zeros_like(x), 1e-5, about)
        assert abs(torques[i, c] - by_differences) <= 2e-6 * scale * case.length, (
            f"{case.name}: torque on oriented bead {i}, component {c} is {torques[i, c]!r}, by differences "
            f"{by_differences!r}"
        )

    topology = case.build()[0]
    placed = np.full(len(x), True)
    for handle in topology.handles:
        placed[handle.beads] = not isinstance(handle, Directors)
    largest = np.abs(x).max()
    for a, b in np.ndindex(3, 3):
        strain = np.zeros_like(x)
        strain[placed, b] = x[placed, a]
        by_differences = -slope(strain, h / largest)
        assert abs(state.virial[a, b] - by_differences) <= 2e-6 * scale * np.abs(x).sum(), (
            f"{case.name}: virial[{a}, {b}] is {state.virial[a, b]!r}, by differences {by_differences!r}"
        )

    rng = np.random.default_rng(0)
    for _ in range(3):
        direction, about = rng.normal(size=x.shape), rng.normal(size=torques.shape) / case.length
        exact = -float(np.vdot(f, direction) + np.vdot(torques, about))
        steps = case.length * np.array([8e-3, 4e-3, 2e-3])
        error = np.abs([slope(direction, s, about) - exact for s in steps])
        floor = 1e-9 * np.linalg.norm(f) * np.linalg.norm(direction)
        if error[0] > 100.0 * floor:
            order = np.log2(error[:-1] / error[1:])
            assert (np.abs(order - 2.0) < 0.4).all(), f"{case.name}: error falls as h^{order}, not h²"

    check_bits(case)
    if case.build()[1].conserves_momentum:
        assert np.abs(f[placed].sum(axis=0)).max() <= 1e-10 * scale, f"{case.name}: there is a net force"
        centred = np.where(placed[:, None], x - x[placed].mean(axis=0), x)
        torque = np.cross(centred, f).sum(axis=0) + quaternions.turned(q, torques).sum(axis=0)
        assert np.abs(torque).max() <= 1e-10 * scale * np.abs(centred).max(), f"{case.name}: there is a net torque"

    check_higher_derivatives(case)


def check_box(case: ForceCase) -> None:
    """Check a force in a periodic box; an AssertionError tells what is broken.

    In a box far wider than what is in it, energy and forces are those of open space. Where the force keeps momentum,
    they are the same again with other images of the beads: of each free bead and body, of each chain and membrane as a
    whole. And the virial of the box is that of open space, to 1e-8.

    Forces that refuse a box, since they act at any distance, are not for this.
    """
    state, x = _state(case)
    box = 10.0 * float(np.ptp(x, axis=0).max()) * np.array([1.0, 1.3, 1.7])
    topology, force = case.build()
    with warnings.catch_warnings():
        # A field's jump at sides that nothing comes near to does not matter.
        warnings.simplefilter("ignore", BoxWarning)
        context = _context(topology, force, box=tuple(box.tolist()))
    rng = np.random.default_rng(1)
    scale = max(np.abs(state.forces).max(), np.abs(state.torques).max(initial=0.0) / case.length)

    def compare(what: str, shift: np.ndarray) -> None:
        context.set_positions(x + shift)
        here = context.get_state(positions=True, forces=True, energy=True, virial=not shift.any())
        near = 1e-9 * max(abs(state.potential_energy), scale * case.length)
        assert abs(here.potential_energy - state.potential_energy) <= near, (
            f"{case.name}: energy {here.potential_energy!r} {what}, in open space {state.potential_energy!r}"
        )
        assert np.abs(here.forces - state.forces).max() <= 1e-8 * scale, f"{case.name}: other forces {what}"
        assert np.abs(here.torques - state.torques).max(initial=0.0) <= 1e-8 * scale * case.length, (
            f"{case.name}: other torques {what}"
        )
        if here.has("virials"):
            # As far as energies have digits.
            near = 1e-8 * (scale * np.abs(x).sum() + abs(state.potential_energy))
            off = np.abs(np.diag(here.virial) - np.diag(state.virial)).max()
            on_surface = any(isinstance(handle, SurfacePoints) for handle in topology.handles)
            assert np.isnan(off) if on_surface else off <= near, f"{case.name}: another virial {what}"

    compare("in a box", np.zeros_like(x))
    if force.conserves_momentum:
        shift = np.zeros_like(x)
        for handle in topology.handles:
            if isinstance(handle, InTrianglePoints | SurfacePoints | Directors):
                # Points go where their triangles do, and a surface has no images.
                continue
            parts = list(handle.beads[:, None])
            if isinstance(handle, Chains):
                parts = [handle.beads[a:b] for a, b in pairwise(handle.starts)]
            elif isinstance(handle, Membrane):
                parts = [handle.beads]
            for part in parts:
                shift[part] = box * rng.integers(-2, 3, 3)
        compare("of other images", shift)


def check_bits(case: ForceCase) -> None:
    """Check for the same bits on any number of threads, with and without the energy, and with lists of any age; two
    equal forces are twice one."""
    state = _state(case)[0]

    def same(other: State, factor: float = 1.0) -> bool:
        return bool((other.forces == factor * state.forces).all() and (other.torques == factor * state.torques).all())

    for threads in (2, 3, 4):
        other = _state(case, threads=threads)[0]
        assert same(other), f"{case.name}: forces differ between 1 and {threads} threads"
        assert other.energies == state.energies, f"{case.name}: energy differs between 1 and {threads} threads"
    bare = _state(case, energy=False)[0]
    assert same(bare), f"{case.name}: forces depend on whether the energy is wanted"
    twice = _state(case, copies=2)[0]
    assert same(twice, 2.0), f"{case.name}: two equal forces do not give twice one"
    if "skin" in case.build()[1].domains:
        once = _moving(case, 0.0, 1)
        for skin, threads in ((0.3 * case.length, 1), (0.3 * case.length, 2), (5.0 * case.length, 3)):
            assert _moving(case, skin, threads) == once, f"{case.name}: bits depend on the skin, {skin:g} nm"


def _moving(case: ForceCase, skin: float, threads: int) -> list[tuple[bytes, bytes, float]]:
    """Return forces, torques and energies while beads move by about 0.3 lengths, and lists age by as much."""
    topology, force = case.build()
    force.set(skin=skin)
    context = _context(topology, force, threads=threads)
    context.runaway = None
    mass = np.mean(np.concatenate([handle.mass for handle in topology.handles if len(handle)]))
    context.set_velocities_to_temperature(kT=mass * (25.0 * case.length) ** 2, seed=1)
    found = []
    for _ in range(12):
        context.step(1)
        state = context.get_state(forces=True, energy=True)
        found.append((state.forces.tobytes(), state.torques.tobytes(), state.potential_energy))
    return found


def check_numbers(case: ForceCase) -> None:
    """Check the numbers of a force as attributes: what can be read, and what assigning to them does."""
    _, force = case.build()
    for name, value in force.parameters.items():
        read = getattr(force, name)
        assert np.array_equal(np.broadcast_to(read, np.shape(value)), value), f"{case.name}: {name} reads {read!r}"
        frozen = not isinstance(value, np.ndarray) or not value.flags.writeable
        assert frozen, f"{case.name}: {name} is an array that can be written to, which nothing would follow"
    for name in force.changeable:
        before, version = force.parameters, force.version
        setattr(force, name, getattr(force, name))
        assert force.version > version, f"{case.name}: assigning to {name} is not noticed"
        for other, value in force.parameters.items():
            # A check may round again, as where a vector is brought to length 1.
            same = np.array_equal(value, before[other]) or np.allclose(value, before[other], rtol=1e-12, atol=0.0)
            assert same, f"{case.name}: assigning {name} to itself changes {other}"
    for name in dir(force):
        if not name.startswith("_") and name not in force.changeable:
            try:
                setattr(force, name, None)
            except ParameterError:
                continue
            raise AssertionError(f"{case.name}: {name} can be assigned to, and nothing follows")


def check_domains(case: ForceCase) -> None:
    """Check that a force takes exactly the numbers in `force.domains`, and that a refused number changes nothing."""
    _, force = case.build()
    again = made_anew(type(force), force._arguments_now(), force._rest_now())
    for name, value in force.parameters.items():
        same = np.array_equal(np.broadcast_to(again.parameters[name], np.shape(value)), value)
        assert same, f"{case.name}: made again from its arguments it has another {name}"
    unknown = _refusal(_set, force, "no_such_number", 1.0)
    assert "'no_such_number' cannot be set" in unknown, f"{case.name}: any name can be set"
    for name, domain in force.domains.items():
        n = _count(force, domain)
        for value in _inside(domain):
            try:
                force._in_domain(name, value)
            except ParameterError as error:
                raise AssertionError(f"{case.name}: {value!r} is in the domain of {name}, but: {error}") from error
        for value, said, shape in _outside(domain, n):
            numbers, version = force._numbers, force.version
            for done in (_set, _made_with):
                refusal = _refusal(done, force, name, value)
                assert refusal, f"{case.name}: {name} = {value!r} is not refused"
                wanted = f"{force.name}: {name}{said}"
                assert refusal.startswith(wanted), f"{case.name}: {refusal!r} should begin with {wanted!r}"
                assert shape in refusal, f"{case.name}: {refusal!r} should name {shape!r}"
            unchanged = force._numbers is numbers and force.version == version
            assert unchanged, f"{case.name}: {name} = {value!r} is refused and changes something"


def check_changes(case: ForceCase) -> None:
    """Check that a number set while a context runs gives the results of a force that was made with it."""
    topology, force = case.build()
    running, followed = _context(topology, force), 0
    for name in force.domains:
        given = getattr(force, name)
        for value in _others(force, name, case.length):
            try:
                force.set(**{name: value})
                fresh = _context(topology, made_anew(type(force), force._arguments_now(), force._rest_now()))
            except ParameterError:
                # It does not go with the other numbers, or what None stands for is not there.
                force.set(**{name: given})
                continue
            followed += 1
            a, b = (context.get_state(energy=True, forces=True) for context in (running, fresh))
            same = (a.forces == b.forces).all() and (a.torques == b.torques).all() and a.energies == b.energies
            assert same, f"{case.name}: a run does not follow where {name} is set"
    assert followed >= len(force.domains) / 2, f"{case.name}: most numbers cannot be set one by one"


def _others(force: Force, name: str, length: float) -> list[Any]:
    """Return values that a number has not: nearer to zero, where few domains end, and in every form it may have."""
    value, domain = getattr(force, name), force.domains[name]
    if value is None:
        return [length if domain.size is None else [length] * domain.size, None]
    if isinstance(value, tuple) and None in value:
        return [tuple(None if v is None else 0.75 * v for v in value)]
    near = 0.75 * np.asarray(value)
    out: list[Any] = [near if near.ndim else float(near)]
    n = _count(force, domain)
    if n:
        # One for each in place of one for all, or the other way round.
        all_of_them = near.ndim == (1 if domain.size is None else 2)
        smaller = np.linspace(0.5, 1.0, n) if domain.size is None else np.linspace(0.5, 1.0, n)[:, None]
        out.append(near[0] if all_of_them else near * smaller)
    return [*out, None] if domain.optional else out


def _count(force: Force, domain: Domain) -> int | None:
    """Return how many items a number may be given for, one by one."""
    return None if domain.per is None else len(attrgetter(domain.per)(force))


def _set(force: Force, name: str, value: Any) -> None:
    force.set(**{name: value})


def _made_with(force: Force, name: str, value: Any) -> None:
    """The constructor, where it takes this number; None may be what it has a number of its own for."""
    arguments = force._arguments_now()
    takes = [place for place in force._places(arguments) if name in place]
    parameter = type(force).__signature__.parameters.get(name)
    if not takes or (value is None and parameter is not None and parameter.default is None):
        _set(force, name, value)
        return
    for place in takes:
        place[name] = value
    made_anew(type(force), arguments, {})


def _refusal(done: Callable[..., None], *given: Any) -> str:
    """Return the message of an error; empty where there is none."""
    try:
        done(*given)
    except ParameterError as error:
        return str(error)
    return ""


def _inside(domain: Domain) -> list[Any]:
    """Return the outermost values that a number may have, all components the same, one for all."""
    lowest = domain.at_least if domain.above is None else np.nextafter(domain.above, np.inf)
    highest = domain.at_most if domain.below is None else np.nextafter(domain.below, -np.inf)
    ends = [-1e300 if lowest is None else lowest, 1e300 if highest is None else highest]
    values = [float(end) if domain.size is None else [float(end)] * domain.size for end in ends]
    return [*values, None] if domain.optional else values


def _outside(domain: Domain, n: int | None) -> list[tuple[Any, str, str]]:
    """Return values to be refused, just outside and of every wrong kind, with words that messages have of them."""
    bad = [np.nan, np.inf, -np.inf]
    bad += [b for b in (domain.above, domain.below) if b is not None]
    bad += [np.nextafter(b, far) for b, far in ((domain.at_least, -np.inf), (domain.at_most, np.inf)) if b is not None]
    good = float(np.ravel(_inside(domain)[0])[0])
    shapes: list[tuple[int, ...]] = [] if domain.size else [()]
    shapes += [()] if domain.or_number else []
    shapes += [(domain.size,)] if domain.size else []
    # With no items, an array of one for each is empty.
    shapes += [(n, domain.size) if domain.size else (n,)] if n else []
    out: list[tuple[Any, str, str]] = []
    for shape in shapes:
        last = tuple(k - 1 for k in shape)
        place = f"[{', '.join(map(str, last))}]" if shape else ""
        for value in map(float, bad):
            given = np.full(shape, good)
            given[last] = value
            out.append((given if shape else value, f"{place} = {value} but must be finite", ""))
        more = np.full([k + 1 for k in (shape or (1, 1))], good)
        # One number more in each direction, and one direction more.
        out += [(more, "", f"shape {shape}" if shape else "must"), (more[None, None, None], "", "must")]
    out += [(value, "", "must") for value in ("text", object(), 1j, [1.0, [2.0]])]
    return out if domain.optional else [*out, (None, "", "must")]


class _Anywhere:
    """A force alone, at any 3D positions (n, 3) in topology order: in-triangle points may leave their triangles."""

    def __init__(self, case: ForceCase) -> None:
        topology, force = case.build()
        system = System(topology)
        add_with_pools(system, force)
        word = "BAGAB" if topology.point_handles else "BAB"
        self.context = context = Context(system, SplittingIntegrator(word, 1e-3), threads=1)
        self.x = context.get_state(positions=True).positions
        self.operation = context._schedule.bound_forces[system.force_names[0]]
        self.sum = context._schedule.make_force_sum([self.operation])

    def go(self, x: np.ndarray) -> None:
        self.context._store.x[:] = x[self.context.layout.order]
        self.context._store.positions_changed()

    def forces(self, x: np.ndarray) -> np.ndarray:
        self.go(x)
        self.sum.alone(self.context._store.program, self.operation)
        return np.asarray(self.sum.f_array[self.context.layout.rank])

    def hessian(self, x: np.ndarray, positive: bool = False) -> np.ndarray:
        """Return the Hessian (3n, 3n), or that of the stiffness, as it comes: each block with its mirror."""
        self.go(x)
        collected = HessianBlocks(self.operation, positive)
        self.context._schedule.perform(collected, changes_state=False)
        out = np.zeros((len(x), len(x), 3, 3))
        order = self.context.layout.order
        for i, j, block in zip(*collected.blocks(), strict=True):
            out[order[i], order[j]] += block
            if i != j:
                out[order[j], order[i]] += block.T
        return out.transpose(0, 2, 1, 3).reshape(x.size, x.size)

    def third(self, x: np.ndarray, a: np.ndarray, positive: bool = False) -> np.ndarray:
        return self._along(Contraction, x, a, positive)

    def product(self, x: np.ndarray, a: np.ndarray, positive: bool) -> np.ndarray:
        return self._along(Multiplication, x, a, positive)

    def _along(self, operation: Callable[..., Any], x: np.ndarray, a: np.ndarray, positive: bool) -> np.ndarray:
        self.go(x)
        layout = self.context.layout
        out = np.zeros_like(x)
        asked = operation(self.operation, np.ascontiguousarray(a[layout.order]), out, positive)
        self.context._schedule.perform(asked, changes_state=False)
        return np.asarray(out[layout.rank])

    def diagonal(self, x: np.ndarray) -> np.ndarray:
        """Return the diagonal blocks (n, 3, 3) of the stiffness."""
        self.go(x)
        out = np.zeros((len(x), 3, 3))
        self.context._schedule.perform(DiagonalBlocks(self.operation, out), changes_state=False)
        return np.asarray(out[self.context.layout.rank])


def check_higher_derivatives(case: ForceCase) -> None:
    """Check second and third derivatives, as far as the force offers them, against differences of those one below;
    those of its stiffness likewise, and products with both against their blocks."""
    force = _Anywhere(case)
    offered, x = force.operation.derivatives, force.x
    if offered < 2:
        return
    h = 1e-5 * case.length
    hessian = force.hessian(x)
    # An energy with straight slopes has no second derivative to compare with.
    scale = max(np.abs(hessian).max(), np.abs(force.forces(x)).max() / case.length)
    assert np.abs(hessian - hessian.T).max() <= 1e-14 * scale, f"{case.name}: the Hessian is not symmetric"
    for k in range(x.size):
        unit = np.zeros(x.shape)
        unit.flat[k] = h
        column = (force.forces(x - unit) - force.forces(x + unit)).ravel() / (2.0 * h)
        worst = int(np.abs(hessian[:, k] - column).argmax())
        assert abs(hessian[worst, k] - column[worst]) <= 1e-6 * scale, (
            f"{case.name}: second derivative in component {worst % 3} of bead {worst // 3} and component {k % 3} of "
            f"bead {k // 3} is {hessian[worst, k]!r}, by differences {column[worst]!r}"
        )
    stiffness = force.hessian(x, True)
    assert np.abs(stiffness - stiffness.T).max() <= 1e-14 * scale, f"{case.name}: the stiffness is not symmetric"
    blocks = stiffness.reshape(len(x), 3, len(x), 3)[np.arange(len(x)), :, np.arange(len(x))]
    assert np.abs(force.diagonal(x) - blocks).max() <= 1e-14 * scale, f"{case.name}: other diagonal blocks alone"
    rng = np.random.default_rng(1)
    for matrix, positive in ((hessian, False), (stiffness, True)):
        a = rng.normal(size=x.shape)
        wrong = np.abs(force.product(x, a, positive).ravel() - matrix @ a.ravel()).max()
        what = "stiffness" if positive else "Hessian"
        assert wrong <= 1e-13 * scale * np.abs(a).sum(), f"{case.name}: a product with the {what} is not its blocks'"
    if offered < 3:
        return
    for _ in range(3):
        a = rng.normal(size=x.shape)
        third = force.third(x, a)
        slope = (force.hessian(x + h * a) - force.hessian(x - h * a)) @ a.ravel() / (2.0 * h)
        wrong = np.abs(third - slope.reshape(x.shape))
        place = np.unravel_index(int(wrong.argmax()), x.shape)
        assert wrong.max() <= 1e-6 * max(np.abs(slope).max(), scale / case.length), (
            f"{case.name}: third derivative along a direction, component {place[1]} of bead {place[0]}, is "
            f"{third[place]!r}, by differences {slope.reshape(x.shape)[place]!r}"
        )
        other = rng.normal(size=x.shape)
        found = np.vdot(other, force.third(x, a, True))
        slope = (force.hessian(x + h * other, True) - force.hessian(x - h * other, True)) / (2.0 * h)
        by_differences = a.ravel() @ slope @ a.ravel()
        assert abs(found - by_differences) <= 1e-6 * max(np.abs(slope).sum(), scale / case.length), (
            f"{case.name}: the derivative of the stiffness along a direction is {found!r}, by differences "
            f"{by_differences!r}"
        )


def check_flips(
    case: ForceCase, flips: int = 60, seed: int = 1, box: tuple[float, float, float] | None = None
) -> None:
    """Check what a force does where edges of the membranes of a case are flipped; AssertionErrors tell what is broken.

    For changes that move a few beads, flip a few edges, or both, `Operation.difference` is what the whole energy gains,
    to 1e-12 of its size; asking leaves all as it was, to the bit. After all of the flips have been made one by one,
    energies, forces and second derivatives, if the force offers any, are those of a context that is given the triangles
    at once, to the bit. The energy of the case is not used.

    Parameters
    ----------
    case : ForceCase
        Whose force allows flips.
    flips : int
        Changes that are tried.
    seed : int
    box : tuple of three floats, optional, nm
        Lengths of the periodic box in which the case is.
    """
    topology, force = case.build()
    context = _context(topology, force, box=box)
    flipping, layout = context._schedule.flipping, context.layout
    rng = np.random.default_rng(seed)
    free = np.setdiff1d(np.arange(layout.n_cartesian), np.arange(layout.n)[layout.directors])
    asked = 0
    for k in range(flips):
        membrane = topology.membranes[rng.integers(len(topology.membranes))]
        # One edge, several, or none but beads.
        edges = rng.choice(layout.connectivity(membrane).edges, (1, 3, 0)[k % 3], replace=False)
        beads = rng.choice(free, min(len(free), (0, 1, 4)[k // 3 % 3] + (k % 3 == 2)), replace=False)
        x = context._store.x[beads] + rng.normal(0.0, 0.02 * case.length, (len(beads), 3))
        try:
            change = flipping.proposal("check_flips", membrane, edges, beads, x)
        except TopologyError:
            continue
        before = context.get_state(positions=True, energy=True)
        gained = flipping.difference(0, membrane, change)
        after = context.get_state(positions=True, energy=True)
        same = (before.positions == after.positions).all() and before.potential_energy == after.potential_energy
        same &= all((before.faces[name] == after.faces[name]).all() for name in before.faces)
        assert same, f"{case.name}: asking what change {k} would do has changed the state"
        flipping.swap(membrane, change)
        flipping.follow([membrane], change)
        whole = context.get_state(energy=True).potential_energy - before.potential_energy
        size = abs(before.potential_energy) + abs(whole)
        assert abs(gained - whole) <= 1e-12 * size, (
            f"{case.name}: change {k} gains {gained!r} by itself, and {whole!r} by the whole energy"
        )
        asked += whole != 0.0
    assert asked, f"{case.name}: no change did anything to the energy, so this tests nothing"
    other = _context(topology, force, box=box)
    other._set_dynamical_arrays({name: a.copy() for name, a in context._dynamical_arrays().items()}, 0)
    mended, rebuilt = (one.get_state(forces=True, energy=True) for one in (context, other))
    assert mended.potential_energy == rebuilt.potential_energy, f"{case.name}: mended and rebuilt energies differ"
    assert (mended.forces == rebuilt.forces).all(), f"{case.name}: mended and rebuilt forces differ"
    if all(operation.derivatives >= 2 for operation in context._schedule.bound_forces.values()):
        same = (context.hessian() != other.hessian()).nnz == 0
        assert same, f"{case.name}: mended and rebuilt second derivatives differ"
