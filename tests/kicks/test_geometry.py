"""Linearly implicit kicks: order, reversal, two-form, momenta and conserved energies, as the sources have them."""

import numpy as np
import pytest
from builders import system_with
from kicks.scenes import ORDERS, RULES, coil, dense, heats, jacobian, network, one_kick, run, vesicle

import medyanpy as mp
from medyanpy.kicks import Explicit, PushForwardNewmark, ZhangSkeel, ZhangSkeelSimplified


@heats
@pytest.mark.parametrize(("rule", "order"), [*ORDERS, ("explicit", 2), ("explicit", 4)])
def test_order(rule, order):
    """Errors at a fixed time fall as dt^order, from a step at which nothing is stiff."""
    _, system = network()
    make = RULES.get(rule, lambda _: Explicit())
    v = np.random.default_rng(5).normal(0.0, 0.3, (6, 3))
    exact, _ = run(system, Explicit(), 2.0 / 4000, 4000, v, order=4)
    errors = [np.abs(run(system, make(0.3), 2.0 / n, n, v, order=order)[0] - exact).max() for n in (40, 80)]
    assert errors[0] / errors[1] == pytest.approx(2.0**order, rel=0.06 if order == 2 else 0.12)
    assert errors[1] < 1e-2


@heats
@pytest.mark.parametrize(("rule", "order"), ORDERS)
def test_reversible(rule, order):
    """(Theorem 2.4) Back to the start after reversing velocities, at steps of 2 to 6 over the highest frequency."""
    _, system = network(stiffness=100.0, relaxed=True)
    v = np.random.default_rng(6).normal(0.0, 0.05, (6, 3))
    x0, dt = system.topology.handles[0].positions, 0.3 if order == 2 else 0.1
    there, w = run(system, RULES[rule](0.3), dt, 25, v, order=order)
    x, w = run(system, RULES[rule](0.3), dt, 25, -w, there, order=order)
    assert np.abs(there - x0).max() > 0.01
    assert np.abs(x - x0).max() < 1e-9
    assert np.abs(w + v).max() < 1e-9


@heats
@pytest.mark.parametrize(("rule", "symplectic"), [
    ("Zhang-Skeel", True), ("Newmark", True), ("positive gradient", True), ("simplified", False), ("one step", False),
    ("stiff", False), ("positive", False),
])  # fmt: skip
def test_symplectic(rule, symplectic):
    """(Theorem 2.5) The Jacobian of one step keeps the two-form to 1e-8; that of the simplified rules does not, at a
    step where what they leave out is seen (Theorem 2.1: V'' has other eigenvectors elsewhere)."""
    _, system = network(3, 5.0)
    x = system.topology.handles[0].positions
    v = np.random.default_rng(7).normal(0.0, 0.2, (3, 3))
    J = jacobian(system, RULES[rule](0.3), 0.5, x, v)
    n = len(J) // 2
    form = np.block([[np.zeros((n, n)), np.eye(n)], [-np.eye(n), np.zeros((n, n))]])
    broken = np.abs(J.T @ form @ J - form).max()
    assert broken < 1e-8 if symplectic else broken > 1e-4


def test_simplified_is_symplectic_with_one_degree_of_freedom():
    """(Remark 2.2) A bead bound along x to a fixed place by a bond that is not harmonic in x."""
    topology = mp.Topology()
    topology.add_beads([[1.7, 0.0, 0.0], [0.0, 0.0, 0.0]], [1.0, 1e12])
    system = system_with(topology, mp.forces.WCA([0], [1], epsilon=1.0, sigma=2.0))
    x = topology.handles[0].positions
    J = jacobian(system, ZhangSkeelSimplified(0.3), 0.2, x, np.zeros((2, 3)))
    sub = J[np.ix_([0, 6], [0, 6])]
    assert np.linalg.det(sub) == pytest.approx(1.0, abs=1e-7)


@heats
@pytest.mark.parametrize(("rule", "angular"), [
    ("Zhang-Skeel", True), ("Newmark", True), ("positive gradient", True), ("simplified", False), ("one step", False),
    ("stiff", False), ("positive", False),
])  # fmt: skip
def test_momentum_maps(rule, angular):
    """Noether: momentum and angular momentum to round-off by rules that come from a discrete action. The simplified
    ones keep momentum, but not angular momentum: in 50 steps beyond the explicit limit it changes by more than a
    hundredth; `test_torque_of_a_simplified_kick` says by how much."""
    rng = np.random.default_rng(9)
    topology = mp.Topology()
    mass = rng.uniform(0.5, 2.0, 5)
    topology.add_beads(np.cumsum(rng.normal(0.0, 0.7, (5, 3)), axis=0), mass)
    system = system_with(topology, mp.forces.HarmonicBonds([[i, i + 1] for i in range(4)], 30.0, 1.0))
    v = rng.normal(0.0, 0.2, (5, 3))
    before = mass @ v, mass @ np.cross(topology.handles[0].positions, v)
    x, w = run(system, RULES[rule](0.3), 0.3, 50, v)
    assert np.abs(mass @ w - before[0]).max() < 1e-12
    lost = np.abs(mass @ np.cross(x, w) - before[1]).max()
    share = lost / np.abs(before[1]).max()
    assert share < 1e-11 if angular else share > 0.01


@pytest.mark.parametrize(("name", "order"), [("simplified", 4), ("one step", 4), ("stiff", 2)])
def test_torque_of_a_simplified_kick(name, order):
    """A kick by Ma has the torque βh² Σ a_i × V₁'_i, with the forces of V₁ that are in the equations: from equations
    solved by NumPy here, to 1e-9. Between two timesteps, a half, it falls by 2⁴ where all of V is in them, and by 2²
    where a part is missing, to 5 %."""
    rng = np.random.default_rng(9)
    topology = mp.Topology()
    x = np.cumsum(rng.normal(0.0, 0.7, (5, 3)), axis=0)
    mass = rng.uniform(0.5, 2.0, 5)
    topology.add_beads(x, mass)
    system = system_with(topology, mp.forces.HarmonicBonds([[i, i + 1] for i in range(4)], 30.0, 1.0),
                         mp.forces.HarmonicBonds([[i, i + 2] for i in range(3)], 5.0, 1.0, name="others"))  # fmt: skip
    torques = []
    for dt in (0.02, 0.01):
        _, before, acceleration = one_kick(system, RULES[name](0.3), dt)
        a, _ = dense(before, 0.3, dt, ["HarmonicBonds"] if name == "stiff" else None)
        gradient = -before.get_state(forces=True).forces
        if name == "stiff":
            alone = system_with(topology, mp.forces.HarmonicBonds([[i, i + 1] for i in range(4)], 30.0, 1.0))
            plain = mp.Context(alone, mp.SplittingIntegrator("BAB", dt), threads=1)
            gradient = -plain.get_state(forces=True).forces
        expected = 0.3 * dt**2 * np.cross(a, gradient).sum(axis=0)
        torques.append(mass @ np.cross(x, acceleration))
        np.testing.assert_allclose(torques[-1], expected, rtol=1e-6, atol=1e-9 * mass.max())
        assert np.abs(torques[-1]).max() > 1e-6
    ratio = np.linalg.norm(torques[0]) / np.linalg.norm(torques[1])
    assert ratio == pytest.approx(2.0**order, rel=0.05)


def derivative(function, x, h=1e-4):
    """Of a number, in all components of x (n, 3), by differences of order 4."""
    out = np.empty_like(x)
    for k in np.ndindex(x.shape):
        e = np.zeros_like(x)
        e[k] = h
        out[k] = (8.0 * (function(x + e) - function(x - e)) - (function(x + 2 * e) - function(x - 2 * e))) / (12.0 * h)
    return out


def kick_is_a_gradient(system, x, mass, beta, dt):
    """Of W = V - βh²/2 V'·(M + βh²K)⁻¹V', whose V, V' and K are asked of a plain Context; to 1e-7 of the largest. A
    simplified kick is not."""
    # Only looked at.
    plain = mp.Context(system, mp.SplittingIntegrator("BAB", 1e-3), threads=1)

    def w(places):
        plain.set_positions(places)
        state = plain.get_state(forces=True, energy=True)
        f = state.forces.ravel()
        matrix = np.diag(np.repeat(mass, 3)) + beta * dt**2 * plain.hessian(positive=True).toarray()
        return state.potential_energy - 0.5 * beta * dt**2 * f @ np.linalg.solve(matrix, f)

    _, _, acceleration = one_kick(system, ZhangSkeel(beta, positive_definite=True), dt)
    expected = -derivative(w, x)
    force = mass[:, None] * acceleration
    np.testing.assert_allclose(force, expected, atol=1e-7 * np.abs(expected).max())
    _, _, simplified = one_kick(system, ZhangSkeelSimplified(beta, positive_definite=True), dt)
    assert np.abs(mass[:, None] * simplified - expected).max() > 1e-3 * np.abs(expected).max()


@heats
@pytest.mark.parametrize("wide", [24, 0])
@pytest.mark.parametrize("beta", [0.25, 0.35])
def test_positive_definite_gradient(beta, wide, monkeypatch):
    """For all that has a stiffness of its own (bonds that are long and short and have no length, ropes, pairs that push
    and pull, penalties on links, triangles and frames) and what has none (angles, a field)."""
    monkeypatch.setattr("medyanpy.kicks._WIDEST_BAND", wide)
    rng = np.random.default_rng(21)
    topology = mp.Topology()
    x = np.cumsum(rng.normal(0.0, 0.7, (9, 3)), axis=0)
    beads = topology.add_beads(x, rng.uniform(0.5, 2.0, 9))
    system, forces = mp.System(topology), mp.forces
    r = np.linalg.norm(x[1:] - x[:-1], axis=1)
    system.add_force(forces.HarmonicBonds([[i, i + 1] for i in range(8)], 30.0, r * np.tile([0.6, 1.4, 0.0, 1.1], 2)))
    system.add_force(forces.Links([0, 3], [4, 8], 7.0, 0.3, one_sided=True))
    system.add_force(forces.LinkLengthPenalty([[0, 2], [5, 7]], 2.0, [0.7, 2.0]))
    system.add_force(forces.RigidTrianglePenalty([[1, 3, 6]], 1.5, [1.0, 1.3, 1.1]))
    system.add_force(forces.OrthonormalFramePenalty([[2, 4, 5]], 1.2, 0.9))
    system.add_force(forces.LennardJones([0, 1, 2], [6, 7, 8], 2.0, 1.3))
    system.add_force(forces.ExternalField(beads, "0.3*x^4 + cos(y)*z^2"))
    kick_is_a_gradient(system, x, beads.mass, beta, 0.4)


@heats
@pytest.mark.parametrize("form", ["vertex", "dihedral"])
def test_positive_definite_gradient_of_a_membrane(form):
    """Bent, stretched and under tension, with a border; by conjugate gradients, to their tolerance."""
    rng = np.random.default_rng(22)
    mesh = mp.TriangleMesh.flat_sheet(5, 5, 2.0)
    x = mesh.vertices + rng.normal(0.0, 0.25, mesh.vertices.shape)
    mesh = mesh.with_vertices(x)
    topology, forces = mp.Topology(), mp.forces
    sheet = topology.add_membrane(mesh, vertex_mass=rng.uniform(0.5, 2.0, len(x)))
    system = system_with(topology, forces.MembraneBending(sheet, 20.0, 0.1, discretization=form),
                         forces.MembraneArea(sheet, 3.0, rng.uniform(1.5, 2.5, len(mesh.faces)), per_triangle=True),
                         forces.MembraneTension(sheet, 0.5))  # fmt: skip
    kick_is_a_gradient(system, x, sheet.mass, 0.35, 0.4)


@heats
def test_positive_definite_gradient_of_a_vesicle():
    """With parts of the stiffness that couple all vertices."""
    system, x = vesicle()
    kick_is_a_gradient(system, x, system.topology.membranes[0].mass, 0.35, 0.1)


@heats
@pytest.mark.parametrize("positive", [False, True])
def test_kicks_of_a_vesicle_solve_with_its_whole_hessian(positive):
    """Against the full matrix, to their tolerance; that of bending and tension alone is off by more than 5 %."""
    system, _ = vesicle(subdivisions=2)
    dt = 0.1 if positive else 0.03
    plain = mp.Context(system, mp.SplittingIntegrator("BAB", 1e-3), threads=1)
    force = plain.get_state(forces=True).forces.ravel()
    mass = np.repeat(system.topology.membranes[0].mass, 3)
    scale = 0.3 * dt**2
    kick = ZhangSkeelSimplified(0.3, positive_definite=positive, tolerance=1e-9)
    _, _, acceleration = one_kick(system, kick, dt)

    def missed(matrix):
        expected = np.linalg.solve(np.diag(mass) + scale * matrix.toarray(), force).reshape(-1, 3)
        return np.abs(acceleration - expected).max() / np.abs(expected).max()

    assert missed(plain.hessian(positive=positive)) < 1e-8
    local = [name for name in system.force_names if name.startswith(("MembraneBending", "MembraneTension"))]
    assert missed(plain.hessian(local, positive=positive)) > 0.05


@pytest.mark.unstable
@heats
@pytest.mark.parametrize("kick", [ZhangSkeel(0.3, positive_definite=True), PushForwardNewmark(0.3)], ids=str)
def test_a_vesicle_with_area_and_volume_runs_back_where_explicit_kicks_lose_it(kick):
    """Timestep 0.1; 100 steps and back to 1e-11. The error of the energy is of second order."""
    def context_of(dt, kick):
        context = mp.Context(vesicle()[0], mp.SplittingIntegrator("BAB", dt, kick=kick), threads=1)
        context.set_velocities_to_temperature(kT=0.3, seed=2)
        return context

    def energy(context):
        state = context.get_state(energy=True)
        return state.kinetic_energy + state.potential_energy

    with pytest.raises(mp.SimulationError):
        context_of(0.1, None).step(100)
    context = context_of(0.1, kick)
    x = context.get_state(positions=True).positions
    context.step(100)
    context.set_velocities(-context.get_state(velocities=True).velocities)
    context.step(100)
    assert np.abs(context.get_state(positions=True).positions - x).max() < 1e-11
    errors = []
    for dt in (0.01, 0.02):
        context = context_of(dt, kick)
        before = energy(context)
        context.step(round(1.0 / dt))
        errors.append(energy(context) - before)
    assert 3.0 < errors[1] / errors[0] < 5.0


@heats
def test_the_positive_definite_gradient_keeps_energy_where_others_lose_it():
    """A coil of 60 hot beads at ten times the explicit timestep, without friction, 6000 steps: kinetic energy over
    that of the start, by quarters of the run. Links take some of it; with a gradient it stays there, within 3 %."""
    def kinetic(kick):
        context = mp.Context(coil(60), mp.SplittingIntegrator("BAB", 0.1, kick=kick), threads=1)
        context.set_velocities_to_temperature(kT=0.01, seed=2)
        energies = [context.get_state(energy=True).kinetic_energy]
        for _ in range(200):
            context.step(30)
            energies.append(context.get_state(energy=True).kinetic_energy)
        return np.mean(np.reshape(energies[1:], (4, 50)), axis=1) / energies[0]

    for kick in (ZhangSkeel(0.35, positive_definite=True), PushForwardNewmark(0.35)):
        gradient = kinetic(kick)
        print(gradient)
        assert gradient.max() < 1.03 * gradient.min()
        assert 0.7 < gradient[-1] < 1.0
    other = kinetic(ZhangSkeelSimplified(0.35, positive_definite=True))
    print(other)
    assert other[-1] > 1.15 * other[0] > 1.03 * gradient[-1]
