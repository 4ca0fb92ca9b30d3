"""Networks of stiff links, and runs of them with linearly implicit kicks."""

import numpy as np
import pytest
from builders import system_with

import medyanpy as mp
from medyanpy.kicks import Newmark, PushForwardNewmark, ZhangSkeel, ZhangSkeelSimplified, ZhangSkeelStiff
from medyanpy.testing import thermal

# On tests that run, or look at, rules which are not the gradient of a potential where nothing takes out their heat.
heats = pytest.mark.filterwarnings(
    "ignore:.* is not the gradient of a potential and heats:medyanpy.errors.TimestepWarning"
)

RULES = {
    "Zhang-Skeel": ZhangSkeel,
    "simplified": ZhangSkeelSimplified,
    "stiff": lambda beta: ZhangSkeelStiff(beta, ["HarmonicBonds"]),
    "Newmark": PushForwardNewmark,
    "one step": lambda beta: PushForwardNewmark(beta, "one-step"),
    "classical": Newmark,
    "positive": lambda beta: ZhangSkeelSimplified(beta, positive_definite=True),
    "positive gradient": lambda beta: ZhangSkeel(beta, positive_definite=True),
}
# Rules and orders: the classical method is not composed.
ORDERS = [(rule, order) for rule in RULES for order in (2, 4) if (rule, order) != ("classical", 4)]


def springs(stiffness, masses):
    """Beads of these masses in one trap, at 1 along x; the topology and system."""
    topology = mp.Topology()
    n = len(masses)
    beads = topology.add_beads(np.column_stack([np.ones(n), np.zeros((n, 2))]), masses, 1.0)
    system = system_with(topology, mp.forces.HarmonicTrap(beads, stiffness, [0.0, 0.0, 0.0]))
    return topology, system


def network(n=6, stiffness=1.0, seed=3, closed=False, relaxed=False):
    """A crumpled chain with bonds that want to be 1 long, or are as long as they want to be, in a trap: nonlinear, and
    bounded."""
    rng = np.random.default_rng(seed)
    topology = mp.Topology()
    x = np.cumsum(rng.normal(0.0, 0.7, (n, 3)), axis=0)
    beads = topology.add_beads(x, rng.uniform(0.5, 2.0, n), 0.5)
    system = mp.System(topology)
    pairs = [[i, i + 1] for i in range(n - 1)] + ([[n - 1, 0]] if closed else [])
    length = np.linalg.norm(np.subtract(*x[np.transpose(pairs)]), axis=1) if relaxed else 1.0
    system.add_force(mp.forces.HarmonicBonds(pairs, stiffness, length))
    system.add_force(mp.forces.HarmonicTrap(beads, 0.05, [0.0, 0.0, 0.0]))
    return topology, system


def run(system, kick, dt, n, v=None, x=None, word="BAB", order=2, threads=1, seed=0, kT=None, runaway=20.0):
    integrator = mp.SplittingIntegrator(word, dt, kick=kick, order=order, seed=seed, kT=thermal(word, kT))
    context = mp.Context(system, integrator, threads=threads)
    context.runaway = runaway
    if x is not None:
        context.set_positions(x)
    if v is not None:
        context.set_velocities(v)
    context.step(n)
    state = context.get_state(positions=True, velocities=True)
    return state.positions.copy(), state.velocities.copy()


# The equations ---------------------------------------------------------------------------------------------------


def dense(context, beta, h, stiff=None, positive=False):
    """a, and the force of the symplectic kick, by NumPy."""
    state = context.get_state(positions=True, forces=True)
    mass = np.repeat(np.concatenate([handle.mass for handle in context.layout.topology.handles]), 3)
    H = context.hessian(stiff, positive=positive).toarray()
    a = np.linalg.solve(np.diag(mass) + beta * h * h * H, state.forces.ravel())
    if stiff is not None or positive:
        return a.reshape(-1, 3), None
    third = context.third_derivative(a.reshape(-1, 3))
    return a.reshape(-1, 3), (mass * a).reshape(-1, 3) - 0.5 * beta**2 * h**4 * third


def one_kick(system, kick, dt):
    """What B adds to velocities over dt/2, times 2/dt."""
    context = mp.Context(system, mp.SplittingIntegrator("BAB", dt, kick=kick), threads=1)
    # Only looked at.
    before = mp.Context(system, mp.SplittingIntegrator("BAB", 1e-3), threads=1)
    x = before.get_state(positions=True).positions
    context.step(1)
    return context, before, (context.get_state(positions=True).positions - x) * 2.0 / dt**2


def assembled(x, pairs, along, across):
    """(3n, 3n) from numbers of pairs."""
    out = np.zeros((len(x), 3, len(x), 3))
    for (a, b), u, v in zip(pairs, along, across, strict=True):
        d = (x[b] - x[a]) / np.linalg.norm(x[b] - x[a])
        block = v * np.eye(3) + (u - v) * np.outer(d, d)
        for i, j, sign in ((a, a, 1.0), (b, b, 1.0), (a, b, -1.0), (b, a, -1.0)):
            out[i, :, j, :] += sign * block
    return out.reshape(3 * len(x), 3 * len(x))


def jacobian(system, kick, dt, x, v):
    """(6n, 6n) derivatives of positions and momenta after one step, by differences of order 4."""
    mass = np.repeat(system.topology.handles[0].mass, 3)
    n = len(mass)

    def step(z):
        x, v = run(system, kick, dt, 1, (z[n:] / mass).reshape(-1, 3), z[:n].reshape(-1, 3))
        return np.concatenate([x.ravel(), mass * v.ravel()])

    z, h = np.concatenate([x.ravel(), mass * v.ravel()]), 1e-4
    columns = []
    for k in range(2 * n):
        e = np.zeros(2 * n)
        e[k] = h
        columns.append((8.0 * (step(z + e) - step(z - e)) - (step(z + 2 * e) - step(z - 2 * e))) / (12.0 * h))
    return np.array(columns).T


def vesicle(friction=0.0, subdivisions=1):
    """A crooked vesicle with bending, total area, volume, an osmotic pressure and a tension; and its places."""
    rng = np.random.default_rng(23)
    mesh = mp.TriangleMesh.icosphere(3.0, subdivisions)
    mesh = mesh.with_vertices(mesh.vertices + rng.normal(0.0, 0.1, mesh.vertices.shape))
    topology, forces = mp.Topology(), mp.forces
    masses = rng.uniform(0.5, 2.0, len(mesh.vertices))
    membrane = topology.add_membrane(mesh, vertex_mass=masses, vertex_friction=friction)
    system = system_with(topology, forces.MembraneBending(membrane, 20.0),
                         forces.MembraneArea(membrane, 300.0, 0.95 * mesh.area),
                         forces.MembraneVolume(membrane, 200.0, 1.03 * mesh.volume),
                         forces.MembraneOsmoticPressure(membrane, 40.0, 0.4, kT=1.0),
                         forces.MembraneTension(membrane, 0.5))  # fmt: skip
    return system, mesh.vertices


def coil(n, friction=0.0, stiffness=1e4, seed=1):
    """Beads of mass 1 whose links of length 1 point anywhere; explicit kicks are stable up to a timestep of 0.01."""
    steps = np.random.default_rng(seed).normal(size=(n, 3))
    topology = mp.Topology()
    beads = topology.add_beads(np.cumsum(steps / np.linalg.norm(steps, axis=1)[:, None], axis=0), 1.0, friction)
    system = mp.System(topology)
    links = np.column_stack([beads.beads[:-1], beads.beads[1:]])
    system.add_force(mp.forces.HarmonicBonds(links, stiffness, 1.0))
    return system
