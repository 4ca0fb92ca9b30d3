"""BrownianIntegrator: one step to the letter, reference points, plain beads, what it refuses, and how it runs."""

import numpy as np
import pytest
from builders import look, refuses, system_with
from scipy.spatial.transform import Rotation

import medyanpy as mp
from medyanpy import forces
from medyanpy._tools import quaternions
from medyanpy.testing import check_mean, check_variance


def coupled(seed, size=0.4):
    """A diffusion tensor with all couplings, those of translation and rotation not symmetric."""
    a = np.random.default_rng(seed).normal(size=(6, 6))
    return size * a @ a.T / 6.0 + 0.5 * np.eye(6)


def free(n, tensors, h, *, q=None, kT=1.0, threads=1, seed=3, **how):
    """A context with n bodies at the origin whose diffusion tensor is given; all turned by q."""
    tensors = np.asarray(tensors)
    friction = [kT * np.linalg.inv(d) for d in tensors.reshape(-1, 6, 6)]
    friction = friction[0] if tensors.ndim == 2 else np.array(friction)[np.arange(n) % len(tensors)]
    topology = mp.Topology()
    q = np.tile([1.0, 0, 0, 0] if q is None else q, (n, 1))
    handle = topology.add_rigid_bodies(np.zeros((n, 3)), q, 1.0, (1.0, 2.0, 2.5), friction, **how)
    system = mp.System(topology)
    integrator = mp.BrownianIntegrator(h, kT=kT, seed=seed)
    return system, handle, lambda: mp.Context(system, integrator, threads=threads)


def steps_in_body(q, state):
    """(n, 6) what bodies that started at the origin with the orientation q have done in one step, in their frames."""
    n = len(state.positions)
    back = np.tile(q * [1.0, -1.0, -1.0, -1.0], (n, 1))
    turn = quaternions.product(back, state.orientations)
    vector = Rotation.from_quat(turn, scalar_first=True).as_rotvec()
    return np.column_stack([quaternions.turned(back, state.positions), vector])


def test_one_step():
    """Mean and covariance of one step of 10 000 bodies of two species, under force and torque.

    One standard error is 0.014 standard deviations in means, 2 % in variances, 0.014 in correlations; the mean step of
    the coupling is 0.15 standard deviations and more. No turn comes near π, beyond which it is seen as another."""
    n, h, kT = 10_000, 0.12, 1.7
    q = np.array([0.5, -0.5, 0.1, 0.7])
    q /= np.linalg.norm(q)
    two = np.array([mp.rigid.move_diffusion(coupled(i), v) for i, v in ((1, [0.8, -0.5, 0.6]), (2, [-0.3, 0.9, 0.1]))])
    system, handle, make = free(n, two, h, q=q, kT=kT, threads=2)
    arm, f = np.array([0.3, -0.8, 0.5]), np.array([1.0, 2.0, -0.7])
    system.add_force(forces.UniformField(handle.sites([arm]), f, group=5))
    context = make()
    context.step(1)
    d = steps_in_body(q, look(context))
    in_body = quaternions.turned(np.array([q * [1, -1, -1, -1]]), np.array([f]))[0]
    load = np.concatenate([in_body, np.cross(arm, in_body)])
    eps = np.zeros((3, 3, 3))
    eps[[0, 1, 2], [1, 2, 0], [2, 0, 1]], eps[[0, 2, 1], [2, 1, 0], [1, 0, 2]] = 1.0, -1.0
    for s, D in enumerate(two):
        mean = h * D @ load / kT
        drift = h * np.einsum("kji,ij->k", eps, D[:3, 3:])
        assert np.abs(drift / np.sqrt(2.0 * h * np.diag(D)[:3])).max() > 0.13
        mean[:3] += drift
        white = np.linalg.solve(np.linalg.cholesky(2.0 * h * D), (d[s::2] - mean).T)
        for i in range(6):
            check_mean(f"component {i}", white[i], 0.0, sees=0.12)
            check_variance(f"component {i}", (white[i] ** 2).sum(), n // 2, 1.0, sees=0.18)
            for j in range(i):
                check_mean(f"components {i}, {j}", white[i] * white[j], 0.0, sees=0.14)


def test_rotations_are_exact():
    """A sphere under a constant torque in its frame turns by h T/γ in every step; unit quaternions stay so."""
    n, h, angle = 5, 0.1, 0.7
    gamma = 2.0
    topology = mp.Topology()
    q = np.random.default_rng(1).normal(size=(n, 4))
    q /= np.linalg.norm(q, axis=1)[:, None]
    handle = topology.add_rigid_bodies(np.zeros((n, 3)), q, 1.0, (1.0, 1.0, 1.0), (1.0, gamma))
    system = mp.System(topology)
    axis = np.array([0.36, 0.48, 0.8])
    torques = np.tile(gamma / h * angle * axis, (n, 1))
    system.add_force(forces.PythonForce(lambda x, q: (0.0, np.zeros_like(x), torques), orientations=True))
    context = mp.Context(system, mp.BrownianIntegrator(h, kT=1e-30), threads=1)
    steps = 200
    for _ in range(steps):
        context.step(1)
        state = look(context)
        assert np.abs(np.linalg.norm(state.orientations, axis=1) - 1.0).max() < 5e-16
    turn = np.tile([np.cos(0.5 * steps * angle), *(np.sin(0.5 * steps * angle) * axis)], (n, 1))
    np.testing.assert_allclose(state.orientations, quaternions.product(q, turn), rtol=0.0, atol=1e-13)
    assert len(handle) == n
    assert np.abs(state.positions).max() < 1e-13


def test_the_reference_point_does_not_matter():
    """One body described about its centre of diffusion and about a point 1.3 nm away: the same displacement of the same
    point, the same orientations, and the same correlation of both, from 2 x 20 000 bodies.

    Mean displacements have a standard error of 0.008. Without the mean step they would differ by up to 0.6."""
    n, h, steps = 20_000, 0.005, 100
    D = coupled(4)
    D = mp.rigid.move_diffusion(D, mp.rigid.center_of_diffusion(D))
    assert np.abs(D[:3, 3:] - D[:3, 3:].T).max() < 1e-12
    away = np.array([0.9, -0.7, 0.6])
    seen = []
    for shift, seed in ((np.zeros(3), 1), (away, 2)):
        _, _, make = free(n, D, h, seed=seed, friction_point=-shift)
        context = make()
        context.step(steps)
        state = look(context)
        R = quaternions.matrices(state.orientations)
        # Where the centre of diffusion has gone: it was at -shift.
        x = state.positions - R @ shift + shift
        seen.append(np.column_stack([x, R.reshape(n, 9), (x[:, :, None] * x[:, None]).reshape(n, 9),
                                     (x[:, :, None] * R.reshape(n, 1, 9)).reshape(n, 27)]))  # fmt: skip
    for k, (a, b) in enumerate(zip(seen[0].T, seen[1].T, strict=True)):
        check_mean(f"moment {k}", a - b, 0.0, sees=0.13)
    for k in range(3):
        check_mean(f"centre of diffusion, {k}", seen[0][:, k], 0.0, sees=0.059)


def test_plain_beads_in_a_trap():
    """x <- (1 - h k/γ) x + noise: after any number of steps, exactly normal with a known variance; no masses in it."""
    n, h, kT, k = 6000, 0.3, 1.4, np.array([1.0, 2.0, 0.5])
    gamma = np.random.default_rng(1).uniform(0.5, 2.0, n)
    topology = mp.Topology()
    half = n // 2
    start = np.tile([1.0, -2.0, 0.5], (half, 1))
    beads = topology.add_beads(start, np.full(half, 1e-9), gamma[:half])
    balls = topology.add_balls(start, 1.0, 1e6, gamma[half:])
    context = mp.Context(system_with(topology, forces.HarmonicTrap([beads, balls], k, [0.0, 0, 0])),
                         mp.BrownianIntegrator(h, kT=kT, seed=5), threads=2)  # fmt: skip
    for steps, done in ((1, 1), (2, 3), (37, 40)):
        context.step(steps)
        x = look(context).positions
        keep = 1.0 - h * k / gamma[:, None]
        variance = kT / k * (1.0 - keep ** (2 * done)) / (1.0 - 0.5 * h * k / gamma[:, None])
        z = (x - start[0] * keep**done) / np.sqrt(variance)
        for c in range(3):
            check_mean(f"mean {c} after {done}", z[:, c], 0.0, sees=0.11)
            check_variance(f"variance {c} after {done}", (z[:, c] ** 2).sum(), n, 1.0, sees=0.16)
    assert context.time == pytest.approx(40 * h)


def mixture(threads, integrator=None):
    """Beads, balls, bodies of two species of different sizes, tied by bonds, a membrane that moves and one that does
    not, filaments of springs."""
    rng = np.random.default_rng(7)
    topology = mp.Topology()
    beads = topology.add_beads(rng.normal(0.0, 3.0, (700, 3)), 1.0, rng.uniform(1.0, 2.0, 700))
    q = rng.normal(size=(1500, 4))
    q /= np.linalg.norm(q, axis=1)[:, None]
    tensors = np.array([np.linalg.inv(coupled(s)) for s in (1, 2)])[np.arange(1500) % 2]
    a = topology.add_rigid_bodies(rng.normal(0.0, 3.0, (1500, 3)), q, 1.0, (1.0, 1.0, 1.0), tensors, name="a")
    b = topology.add_rigid_bodies(rng.normal(0.0, 3.0, (300, 3)), q[:300], 1.0, (1.0, 2.0, 2.5), (1.0, 2.0), name="b")
    vesicle = topology.add_membrane(mp.TriangleMesh.icosphere(8.0, 2), vertex_mass=1.0, vertex_friction=1.0)
    topology.add_membrane(mp.TriangleMesh.icosphere(12.0, 1), vertex_mass=1.0, vertex_friction=1.0, fixed=True,
                          name="wall")  # fmt: skip
    chain = topology.add_filament(np.arange(30)[:, None] * [1.0, 0, 0], 1.0, 2.0, constrained=False)
    system = system_with(topology, forces.MembraneEdgeSprings(vesicle, 3.0), forces.FilamentStretching(chain, 5.0))
    ends = a.sites([[0.0, 0, 1.0]])
    system.add_force(forces.Links(ends[:700], beads.beads, 0.5, 1.0))
    system.add_force(forces.Links(ends[700:1000], b.sites([[1.0, 0, 0]]), 0.5, 1.0, group=3, name="pairs"))
    integrator = integrator or mp.BrownianIntegrator(0.01, kT=1.0, seed=2)
    return mp.Simulation(system, integrator, threads=threads)


def test_same_bits(tmp_path):
    """Any number of threads, cuts, restarts, looks, and documents; fixed beads stay."""
    ends = []
    for threads, cuts in [(1, [30]), (3, [30]), (2, [1, 9, 20])]:
        s = mixture(threads)
        start = look(s.context)
        for k in cuts:
            s.step(k)
            look(s.context)
        ends.append(look(s.context))
    s = mixture(2)
    s.step(10)
    s.save_checkpoint(tmp_path / "a.checkpoint")
    for again in (
        mixture(1), mp.Simulation(*mp.deserialize(mp.serialize(s)), threads=3),
        mp.Simulation.resume(tmp_path / "a.checkpoint", threads=2),
    ):  # fmt: skip
        again.load_checkpoint(tmp_path / "a.checkpoint")
        again.step(20)
        ends.append(look(again.context))
    for end in ends[1:]:
        for part in ("positions", "orientations"):
            assert (getattr(end, part) == getattr(ends[0], part)).all()
    wall = s.system.topology.handles[-2]
    assert wall.name == "wall"
    moved = (ends[0].positions != start.positions).any(axis=1)
    assert not moved[wall.beads].any()
    assert np.delete(moved, wall.beads).all()
    assert (ends[0].orientations != start.orientations).any(axis=1).all()


def test_there_are_no_velocities():
    s = mixture(1)
    twin = mixture(1)
    s.report_work = True
    s.context.set_velocities_to_temperature(kT=1.0)
    s.context.set_velocities(np.ones((s.context.layout.n, 3)))
    s.context.set_angular_momenta(np.ones((1800, 3)))
    before = look(s.context)
    s.step(5)
    twin.step(5)
    state = look(s.context)
    assert (state.positions == look(twin.context).positions).all()
    assert not state.velocities.any()
    assert not state.angular_momenta.any()
    assert state.kinetic_energy == 0.0
    assert np.isnan(state.temperature)
    assert all(np.isnan(t) for t in state.temperatures.values())
    assert state.heat == pytest.approx(state.potential_energy - before.potential_energy, rel=1e-12)
    assert state.shadow_work == 0.0
    s.system.forces[0].set(stiffness=4.0)
    more = look(s.context)
    assert more.protocol_work == pytest.approx(more.potential_energy - state.potential_energy, rel=1e-9)
    assert more.heat == pytest.approx(state.heat, rel=1e-12)


@pytest.mark.unstable
@pytest.mark.parametrize("kind", ["beads", "rigid bodies"])
def test_a_fault_leads_back(kind):
    """A timestep that is far too long for a spring: positions grow without end, and the last finite ones are kept."""
    topology = mp.Topology()
    topology.add_beads([[5.0, 0, 0], [8.0, 0, 0]], 1.0, 1.0)
    topology.add_rigid_bodies([[1.0, 0, 0]], [[1.0, 0, 0, 0]], 1.0, (1.0, 1.0, 1.0), (1.0, 1.0))
    system = mp.System(topology)
    pulled = {"beads": 1, "rigid bodies": 2}[kind]
    system.add_force(forces.HarmonicTrap([pulled], 1e100, [0.0, 0, 0], name="trap"))
    context = mp.Context(system, mp.BrownianIntegrator(1.0, kT=1.0), threads=1)
    refuses(mp.SimulationError, rf"step \d, bead {pulled} \('{kind}', {kind}\), force trap", context.step, 100)
    assert 1 <= context.step_count <= 4
    assert np.isfinite(look(context).positions).all()


def one_body(friction):
    topology = mp.Topology()
    topology.add_beads([[0.0, 0, 0]], 1.0, 1.0)
    topology.add_rigid_bodies(np.eye(3), np.tile([1.0, 0, 0, 0], (3, 1)), 1.0, (1.0, 1.0, 1.0), friction, name="rods")
    return topology


def still_bead():
    topology = mp.Topology()
    topology.add_beads([[0.0, 0, 0]], 1.0, 1.0)
    topology.add_beads(np.eye(3), 1.0, [1.0, 0.0, 1.0], name="tracers")
    return topology


def filament(**how):
    topology = mp.Topology()
    topology.add_filament(np.arange(4)[:, None] * [1.0, 0, 0], 1.0, name="actin", **how)
    return topology


def on_a_sphere():
    topology = mp.Topology()
    topology.add_surface_points(mp.surfaces.Sphere(1.0), np.eye(3), 1.0, 1.0, name="walkers")
    return topology


def in_triangles(fixed):
    topology = mp.Topology()
    sphere = mp.TriangleMesh.icosphere(1.0, 1)
    membrane = topology.add_membrane(sphere, vertex_mass=1.0, vertex_friction=1.0, fixed=fixed)
    topology.add_intriangle_points(membrane, 3, mass=1.0, friction=1.0, name="proteins")
    return topology


def bare_membrane():
    topology = mp.Topology()
    topology.add_membrane(mp.TriangleMesh.icosphere(1.0, 1), vertex_mass=1.0, name="vesicle")
    return topology


@pytest.mark.parametrize(("topology", "message"), [
    (one_body(2.0), r"bead 1 \('rods'\): friction\[3, 3\] = 0 but must be > 0"),
    (one_body(0.0), r"bead 1 \('rods'\): friction\[0, 0\] = 0 but must be > 0"),
    (still_bead(), r"bead 2 \('tracers'\): friction\[1\] = 0 but must be > 0"),
    (bare_membrane(), r"bead 0 \('vesicle'\): friction\[0\] = 0 but must be > 0"),
    (filament(node_friction=1.0), r"cannot move Filaments\('actin', 4 filament nodes\): its links are constraints"),
    (filament(node_friction=(1.0, 2.0), constrained=False),
     r"cannot move Filaments\('actin', 4 filament nodes\): its frictions along and across"),
    (on_a_sphere(), r"cannot move SurfacePoints\('walkers', .*\): constraints keep it on its surface"),
    (in_triangles(False), r"cannot move InTrianglePoints\('proteins', 3 points\): its points fly over triangles"),
    (in_triangles(True), r"cannot move InTrianglePoints\('proteins', 3 points\): its points fly over triangles"),
])  # fmt: skip
def test_refused_beads(topology, message):
    with pytest.raises(mp.ParameterError, match=f"BrownianIntegrator.*{message}"):
        mp.Context(mp.System(topology), mp.BrownianIntegrator(0.1, kT=1.0))


def test_refused_integrators():
    refuses(mp.ParameterError, "'J D J' has noise: it needs temperature=", mp.BrownianIntegrator, 0.1)
    refuses(mp.ParameterError, "timestep", mp.BrownianIntegrator, 0.0, kT=1.0)
    with pytest.raises(mp.ParameterError, match=r"D moves beads without velocities: .*\n    BAD\n      \^"):
        mp.SplittingIntegrator("BAD", 0.1, kT=1.0)
    assert mp.SplittingIntegrator(" d", 0.1, kT=1.0).overdamped
    again = mp.deserialize(mp.serialize(mp.BrownianIntegrator(0.1, temperature=300.0, seed=4)))
    assert repr(again) == "BrownianIntegrator('J D J', timestep=0.1, kT=4.14195)"
    assert again.seed == 4
