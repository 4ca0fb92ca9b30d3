"""One step of D and of O against matrices, with roots and exponentials of their eigenvalues; what flows do."""

import numpy as np
import pytest
from builders import system_with
from scipy.spatial.transform import Rotation

import medyanpy as mp
from medyanpy import forces
from medyanpy._kernels.core import numerics
from medyanpy._tools import quaternions
from medyanpy.beads.oriented import mean_drift
from medyanpy.core.flows import Stage
from medyanpy.hydrodynamics import mobility_matrix

ETA, KT = 0.07, 1.3
WALL = mp.boundaries.Plane((0.3, -1.0, -7.0), (0.2, -0.3, 1.0))
#: Open space, a wall, a periodic box.
SPACES = {"open": {}, "wall": {"wall": WALL}, "box": {"box": (41.0, 36.0, 44.0)}}
#: Shear and rotation.
GRADIENT = np.array([[0.2, 1.0, 0.0], [-0.4, -0.3, 0.7], [0.1, 0.0, 0.1]])


def coupled(rng, size):
    """A friction tensor with all couplings."""
    a = rng.normal(size=(6, 6))
    root = np.sqrt(np.repeat([1.0, 1.4], 3))
    return size * (a @ a.T / 12.0 + np.eye(6)) * root[:, None] * root


class Crowd:
    """Bodies of two species, a ball, beads and a filament, some of them overlapping."""

    def __init__(self, integrator, *, round_=False, tolerance=1e-12, threads=1, fluid=True, box=None, **flow):
        rng = np.random.default_rng(3)
        self.topology = topology = mp.Topology()
        self.n_bodies = n = 5
        q = rng.normal(size=(n, 4))
        q /= np.linalg.norm(q, axis=1)[:, None]
        if round_:
            both = [[6 * np.pi * ETA * a, 8 * np.pi * ETA * a**3] for a in (0.9, 1.1)]
            tensors = np.array([np.diag(np.repeat(one, 3)) for one in both])
        else:
            tensors = np.array([coupled(rng, s) for s in (2.0, 3.0)])
        self.friction = tensors[[0, 1, 1, 0, 1]]
        self.inertia = np.array([[1.0, 2.0, 2.5]] * 3 + [[2.0, 2.0, 2.0]] * 2)
        balls = topology.add_balls(rng.uniform(0, 6, (2, 3)), 0.5, mass=[2.0, 3.0], friction=[0.8, 1.4])
        self.bodies = topology.add_rigid_bodies(rng.uniform(0, 6, (n, 3)), q, 1.5, self.inertia, self.friction)
        bystander = topology.add_beads(rng.uniform(0, 6, (3, 3)), mass=1.0, friction=0.5)
        beads = topology.add_beads(rng.uniform(0, 6, (4, 3)), mass=0.7, friction=1.1)
        self.bystander = bystander
        self.handles = [balls, self.bodies, beads]
        self.box = box
        system = mp.System(topology, box=box)
        everyone = np.arange(topology.n_beads)
        system.add_force(forces.UniformField(everyone, (0.3, -0.5, 0.2)))
        system.add_force(forces.UniformField(self.bodies.sites([[0.4, -0.2, 0.7]]), (-1.0, 0.4, 0.3)))
        if fluid:
            self.fluid = system.add_hydrodynamics(
                mp.hydrodynamics.RotnePrager(ETA, self.handles, tolerance=tolerance, **flow)
            )
        self.system = system
        self.context = mp.Context(system, integrator, threads=threads)

    def look(self):
        return self.context.get_state(positions=True, velocities=True, forces=True)

    @property
    def order(self):
        """Rows of those that take part, those that turn first: three numbers of each, six of those that turn."""
        return np.concatenate([self.bodies.beads, self.handles[0].beads, self.handles[2].beads])

    def mobility(self, state):
        """Of all that take part, in space: 6 of each body, then 3 of each bead; in the frame of bodies by R."""
        order, n = self.order, self.n_bodies
        radius = np.concatenate([self.fluid.radius(h) for h in (self.bodies, self.handles[0], self.handles[2])])
        m = mobility_matrix(state.positions[order], radius, ETA, rotation=True, wall=self.fluid.wall, box=self.box)
        open_space = [np.repeat([1 / (6 * np.pi * ETA * a), 1 / (8 * np.pi * ETA * a**3)], 3) for a in radius]
        rotations = quaternions_to_matrices(state.orientations)
        for i in range(n):
            own = np.kron(np.eye(2), rotations[i])
            block = slice(6 * i, 6 * i + 6)
            m[block, block] += own @ np.linalg.inv(self.friction[i]) @ own.T - np.diag(open_space[i])
        keep = np.concatenate([np.arange(6 * n), *(6 * i + np.arange(3) for i in range(n, len(order)))])
        return m[np.ix_(keep, keep)]

    def noise(self, step, seed=1, letter=0):
        """The normal numbers of a step in the frame of each body."""
        ids = self.order.astype(np.int64)
        g = np.empty((2, len(ids), 3))
        for k, purpose in enumerate(("thermostat", "rotation")):
            numerics.normals(g[k], ids, seed, step, letter, 0, numerics.PURPOSES[purpose])
        n = self.n_bodies
        return np.concatenate([np.hstack([g[0, :n], g[1, :n]]).ravel(), g[0, n:].ravel()])


def quaternions_to_matrices(q):
    return np.array([quaternions.turned(np.tile(one, (3, 1)), np.eye(3)).T for one in q])


def block_diagonal(blocks, n_beads, of_bead):
    """Of bodies (6, 6), then of beads: numbers."""
    n = 6 * len(blocks) + 3 * n_beads
    out = np.zeros((n, n))
    for i, block in enumerate(blocks):
        out[6 * i : 6 * i + 6, 6 * i : 6 * i + 6] = block
    out[range(6 * len(blocks), n), range(6 * len(blocks), n)] = np.repeat(of_bead, 3)
    return out


def only_o(context, h, letter=0):
    """The letter O by itself, which is no word."""
    schedule = context._schedule
    for operation in schedule.operations(Stage(letter, "O", h, schedule.integrator.kT)):
        schedule.perform(operation)


def root(m):
    values, vectors = np.linalg.eigh(m)
    return (vectors * np.sqrt(values)) @ vectors.T


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("flows", [False, True], ids=["still", "flow"])
def test_one_step_of_d(space, flows):
    """x <- x + h M F + h kT div M + noise, all of it in one matrix; R M^(1/2) of the kernel is E^-T B^(1/2)."""
    h = 1e-3
    flow = {}
    wall = SPACES[space].get("wall")
    if flows and space == "box":
        flow = {"velocity_gradient": np.zeros((3, 3)), "velocity": np.array([0.4, -0.1, 0.9])}
    elif flows:
        gradient = GRADIENT - np.diag(np.diag(GRADIENT))
        if wall is not None:
            # What sticks to the wall: shear along it.
            gradient = np.outer([1.0, 0.0, -0.2 / 1.0], wall.normal)
        velocity = np.array([0.4, -0.1, 0.9]) if wall is None else -gradient @ wall.point
        flow = {"velocity_gradient": gradient, "velocity": velocity}
    crowd = Crowd(mp.BrownianIntegrator(h, kT=KT, seed=1), round_=flows, **SPACES[space], **flow)
    before = crowd.look()
    crowd.context.step(1)
    after = crowd.look()
    n, order = crowd.n_bodies, crowd.order
    rotations = quaternions_to_matrices(before.orientations)
    frames = block_diagonal([np.kron(np.eye(2), r) for r in rotations], len(order) - n, np.ones(len(order) - n))
    m = frames.T @ crowd.mobility(before) @ frames
    friction = np.concatenate([crowd.handles[0].friction, crowd.handles[2].friction])
    e = block_diagonal([np.linalg.cholesky(f) for f in crowd.friction], len(friction), np.sqrt(friction))
    force = before.forces[order]
    load = np.concatenate(
        [np.hstack([np.einsum("nji,nj->ni", rotations, force[:n]), before.torques]).ravel(), force[n:].ravel()]
    )
    moved = h * m @ load + np.sqrt(2 * KT * h) * np.linalg.solve(e.T, root(e.T @ m @ e) @ crowd.noise(0))
    translation = np.zeros((len(order), 3))
    turn = np.zeros((n, 3))
    for i in range(n):
        own = moved[6 * i : 6 * i + 3] + h * KT * mean_drift(np.linalg.inv(crowd.friction[i]))
        translation[i] = rotations[i] @ own
        turn[i] = moved[6 * i + 3 : 6 * i + 6]
    translation[n:] = moved[6 * n :].reshape(-1, 3)
    if wall is not None:
        radius = np.concatenate([crowd.fluid.radius(b) for b in (crowd.bodies, crowd.handles[0], crowd.handles[2])])
        z = wall.distance(before.positions[order])
        drift = (1.5 / z**2 - 2 * radius**2 / z**4 + 5 / 6 * radius**4 / z**6) / (8 * np.pi * ETA)
        translation += h * KT * drift[:, None] * wall.normal
    if flows:
        translation += h * (before.positions[order] @ flow["velocity_gradient"].T + flow["velocity"])
        g = flow["velocity_gradient"]
        vorticity = 0.5 * np.array([g[2, 1] - g[1, 2], g[0, 2] - g[2, 0], g[1, 0] - g[0, 1]])
        turn += h * np.einsum("nji,j->ni", rotations, vorticity)
    np.testing.assert_allclose((after.positions - before.positions)[order], translation, rtol=0, atol=3e-12)
    back = before.orientations * [1.0, -1.0, -1.0, -1.0]
    turned = Rotation.from_quat(quaternions.product(back, after.orientations), scalar_first=True).as_rotvec()
    np.testing.assert_allclose(turned, turn, rtol=0, atol=3e-12)
    assert (after.positions != before.positions)[crowd.bystander.beads].all()


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("flows", [False, True], ids=["still", "flow"])
@pytest.mark.parametrize("h", [1e-4, 0.3, 300.0])
def test_one_step_of_o(h, flows, space):
    """u <- c1 u + sqrt(kT (1 - c1^2)) xi with c1 = exp(-h m^-1/2 zeta m^-1/2), zeta the inverse of M."""
    flow = {}
    wall = SPACES[space].get("wall")
    if flows and space == "box":
        flow = {"velocity_gradient": np.zeros((3, 3)), "velocity": np.array([0.4, -0.1, 0.9])}
    elif flows:
        gradient = GRADIENT - np.diag(np.diag(GRADIENT)) if wall is None else np.outer([1.0, 0.0, -0.2], wall.normal)
        flow = {"velocity_gradient": gradient, "velocity": np.zeros(3) if wall is None else -gradient @ wall.point}
    crowd = Crowd(mp.SplittingIntegrator("BAOAB", 1e-3, kT=KT, seed=1), round_=flows, **SPACES[space], **flow)
    rng = np.random.default_rng(4)
    crowd.context.set_velocities(rng.normal(size=(crowd.topology.n_beads, 3)))
    crowd.context.set_angular_momenta(rng.normal(size=(crowd.n_bodies, 3)))
    before = crowd.look()
    only_o(crowd.context, h)
    after = crowd.look()
    n, order = crowd.n_bodies, crowd.order
    rotations = quaternions_to_matrices(before.orientations)
    frames = block_diagonal([np.kron(np.eye(2), r) for r in rotations], len(order) - n, np.ones(len(order) - n))
    mass = np.concatenate([crowd.bodies.mass, crowd.handles[0].mass, crowd.handles[2].mass])
    weight = np.sqrt(block_diagonal(
        [np.diag([m, m, m, *inertia]) for m, inertia in zip(mass[:n], crowd.inertia, strict=True)],
        len(order) - n, mass[n:],
    ))  # fmt: skip
    values, vectors = np.linalg.eigh(weight @ frames.T @ crowd.mobility(before) @ frames @ weight)
    c1 = (vectors * np.exp(-h / values)) @ vectors.T
    c2 = (vectors * np.sqrt(-np.expm1(-2 * h / values))) @ vectors.T
    wind, vorticity = np.zeros((len(order), 3)), np.zeros(3)
    if flows:
        g = flow["velocity_gradient"]
        wind = before.positions[order] @ g.T + flow["velocity"]
        vorticity = 0.5 * np.array([g[2, 1] - g[1, 2], g[0, 2] - g[2, 0], g[1, 0] - g[0, 1]])

    def scaled(state):
        v = state.velocities[order] - wind
        in_body = np.einsum("nji,nj->ni", rotations, v[:n])
        spin = state.angular_momenta / crowd.inertia - np.einsum("nji,j->ni", rotations, vorticity)
        return weight @ np.concatenate([np.hstack([in_body, spin]).ravel(), v[n:].ravel()])

    expected = c1 @ scaled(before) + np.sqrt(KT) * c2 @ crowd.noise(0)
    np.testing.assert_allclose(scaled(after), expected, rtol=0, atol=1e-10)
    # Others have friction of their own.
    alone = Crowd(mp.SplittingIntegrator("BAOAB", 1e-3, kT=KT, seed=1), fluid=False)
    alone.context.set_velocities(before.velocities)
    only_o(alone.context, h)
    rows = crowd.bystander.beads
    assert (alone.look().velocities[rows] == after.velocities[rows]).all()


@pytest.mark.parametrize("word", ["O", "D"])
def test_no_motion_has_another_temperature(word):
    """Motion by motion, as eigenvectors of the mobility: a chain of touching balls has some that the fluid makes slow.

    Noise at a tolerance, against the same at a tolerance that is a billion times smaller."""
    x = touching_balls(40)
    basis = np.linalg.eigh(mp.hydrodynamics.mobility_matrix(x, 1.0, ETA))[1]
    found = {}
    for tolerance in (1e-12, 1e-2, 0.1):
        integrator = (
            mp.SplittingIntegrator("BAOAB", 0.3, kT=KT, seed=1)
            if word == "O"
            else mp.BrownianIntegrator(1e-3, kT=KT, seed=1)
        )
        topology = mp.Topology()
        balls = topology.add_balls(x, 1.0, mass=1.0, friction=6 * np.pi * ETA)
        system = mp.System(topology)
        system.add_hydrodynamics(mp.hydrodynamics.RotnePrager(ETA, balls, tolerance=tolerance))
        context = mp.Context(system, integrator, threads=1)
        rows = []
        for k in range(20):
            context.set_positions(x)
            context.set_velocities(np.zeros_like(x))
            if word == "D":
                context.step(1)
            else:
                only_o(context, 0.3, letter=k)
            state = context.get_state(positions=True, velocities=True)
            rows.append((state.velocities if word == "O" else state.positions - x).ravel() @ basis)
        found[tolerance] = np.array(rows)
    exact = found[1e-12]
    size = np.sqrt((exact**2).mean(axis=0))
    for tolerance in (1e-2, 0.1):
        off = np.sqrt(((found[tolerance] - exact) ** 2).mean(axis=0)) / size
        assert 1e-3 * tolerance < off.max() < tolerance


def touching_balls(n):
    """A compact chain of balls of radius 1 that touch and do not overlap."""
    rng = np.random.default_rng(3)
    x = [np.zeros(3)]
    while len(x) < n:
        u = rng.standard_normal(3) - 0.6 * x[-1] / max(1.0, np.linalg.norm(x[-1]))
        new = x[-1] + 2.0 * u / np.linalg.norm(u)
        if min(np.linalg.norm(new - other) for other in x) > 1.999:
            x.append(new)
    return np.array(x)


def test_alone_it_is_what_it_was():
    """One ball feels nobody: its steps are those of its own friction, but for rounding."""
    for integrator in (mp.BrownianIntegrator(1e-3, kT=KT, seed=4), mp.SplittingIntegrator("BAOAB", 0.1, kT=KT, seed=4)):
        found = []
        for fluid in (False, True):
            topology = mp.Topology()
            ball = topology.add_balls([[0, 0, 0]], 1.0, mass=1.0, friction=2.0)
            system = system_with(topology, forces.HarmonicTrap(ball, 1.0, (0, 0, 0.3)))
            if fluid:
                system.add_hydrodynamics(mp.hydrodynamics.RotnePrager(ETA, ball))
            fresh = mp.deserialize(mp.serialize(integrator))
            context = mp.Context(system, fresh)
            context.step(30)
            found.append(context.get_state(positions=True).positions)
        np.testing.assert_allclose(*found, rtol=1e-13)


def test_friction_says_how_large_a_body_is():
    """A sphere is itself; an ellipsoid the smallest sphere that is no more mobile in any direction."""
    topology = mp.Topology()
    a, eta = 2.5, 1e-9
    sphere = np.diag(np.repeat([6 * np.pi * eta * a, 8 * np.pi * eta * a**3], 3))
    long = mp.rigid.ellipsoid_friction((1.0, 2.0, 6.0), eta)
    rng = np.random.default_rng(1)
    skew = coupled(rng, 1e-8)
    tensors = np.array([sphere, long, mp.rigid.move_friction(skew, [0.5, 0.2, -0.4])])
    bodies = topology.add_rigid_bodies(np.arange(9.0).reshape(3, 3) * 10, np.tile([1.0, 0, 0, 0], (3, 1)), 1e-12,
                                       (1e-12,) * 3, tensors)  # fmt: skip
    radius = mp.hydrodynamics.RotnePrager(eta, bodies).radius(bodies)
    assert radius[0] == pytest.approx(a, rel=1e-12)
    for tensor, r in zip(tensors, radius, strict=True):
        least = []
        for part in (1.0, 1.0 - 1e-6):
            own = np.repeat([1 / (6 * np.pi * eta * r * part), 1 / (8 * np.pi * eta * (r * part) ** 3)], 3)
            mobility = np.linalg.inv(tensor)
            scale = np.sqrt(np.diagonal(mobility))
            least.append(np.linalg.eigvalsh((mobility - np.diag(own)) / scale[:, None] / scale)[0])
        assert least[0] > -1e-10
        assert least[1] < -1e-10
    assert 1.0 < radius[1] < 6.0


def test_a_pair_and_a_ring_sediment():
    """Steady states of point-like theory: a pair side by side, a pair one behind the other, a ring of seven that falls
    along its axis; and two that fall obliquely drift to the side, at the speeds that the tensor gives."""
    def speeds(x, force):
        topology = mp.Topology()
        balls = topology.add_balls(x, 1.0, mass=1.0, friction=6 * np.pi * ETA)
        system = system_with(topology, forces.UniformField(balls, force))
        system.add_hydrodynamics(mp.hydrodynamics.RotnePrager(ETA, balls))
        h = 1e-3
        context = mp.Context(system, mp.BrownianIntegrator(h, kT=1e-30, seed=1))
        start = context.get_state(positions=True).positions
        context.step(400)
        end = context.get_state(positions=True).positions
        return (end - start) / (400 * h) * 6 * np.pi * ETA / np.linalg.norm(force), end - end[0]

    r = 3.0
    along, across = 1.5 / r - 1.0 / r**3, 0.75 / r + 0.5 / r**3
    v, shape = speeds(np.array([[0, 0, 0], [r, 0, 0.0]]), (0, 0, -1.0))
    np.testing.assert_allclose(v[:, 2], -(1.0 + across), rtol=1e-12)
    np.testing.assert_allclose(shape[1], [r, 0, 0], atol=1e-12)
    v, _ = speeds(np.array([[0, 0, 0], [0, 0, r]]), (0, 0, -1.0))
    np.testing.assert_allclose(v[:, 2], -(1.0 + along), rtol=1e-12)
    # At 45°: both fall together, and to the side.
    v, _ = speeds(np.array([[0, 0, 0], [r, 0, r]]) / np.sqrt(2.0), (0, 0, -1.0))
    np.testing.assert_allclose(v[:, 2], -(1.0 + 0.5 * (along + across)), rtol=1e-12)
    np.testing.assert_allclose(v[:, 0], -0.5 * (along - across), rtol=1e-11)
    n, radius = 7, 4.0
    angle = 2 * np.pi * np.arange(n) / n
    v, shape = speeds(np.column_stack([radius * np.cos(angle), radius * np.sin(angle), np.zeros(n)]), (0, 0, -1.0))
    d = 2 * radius * np.sin(np.pi * np.arange(1, n) / n)
    np.testing.assert_allclose(v[:, 2], -(1.0 + (0.75 / d + 0.5 / d**3).sum()), rtol=1e-12)
    np.testing.assert_allclose(v[:, :2], 0.0, atol=1e-12)


def test_the_fluid_carries_and_turns_spheres():
    """Without forces and noise a sphere is where the flow has brought it, and has turned by half of the vorticity."""
    shear, eta, a = 3.0, ETA, 1.0
    gradient = np.zeros((3, 3))
    gradient[0, 1] = shear
    friction = (6 * np.pi * eta * a, 8 * np.pi * eta * a**3)
    for integrator in (mp.BrownianIntegrator(1e-4, kT=1e-30), mp.SplittingIntegrator("BAOAB", 1e-4, kT=1e-30)):
        topology = mp.Topology()
        body = topology.add_rigid_bodies([[0.0, 2.0, 0.0]], [[1.0, 0, 0, 0]], 1e-4, (4e-5,) * 3, friction)
        system = mp.System(topology)
        system.add_hydrodynamics(mp.hydrodynamics.RotnePrager(eta, body, velocity_gradient=gradient))
        context = mp.Context(system, integrator)
        context.set_velocities([[2.0 * shear, 0, 0]])
        context.set_angular_momenta([[0, 0, -0.5 * shear * 4e-5]])
        context.step(2000)
        state = context.get_state(positions=True)
        np.testing.assert_allclose(state.positions, [[2.0 * shear * 0.2, 2.0, 0.0]], rtol=1e-9, atol=1e-9)
        turn = Rotation.from_quat(state.orientations, scalar_first=True).as_rotvec()
        np.testing.assert_allclose(turn, [[0, 0, -0.5 * shear * 0.2]], rtol=1e-9, atol=1e-12)


def test_nothing_without_friction_and_noise():
    """Words without O and D do not feel the fluid, as they do not feel friction."""
    found = []
    for fluid in (False, True):
        crowd = Crowd(mp.VerletIntegrator(1e-3), fluid=fluid)
        crowd.context.step(5)
        found.append(crowd.look())
    assert (found[0].positions == found[1].positions).all()
    assert (found[0].orientations == found[1].orientations).all()
