"""Free rotation at once, ``rotation="exact"``: against Jacobi's elliptic functions, and the laws of a flow."""

import itertools

import numpy as np
import pytest
from builders import orients, refuses, system_with
from mpmath import mp as big

import medyanpy as mp
from medyanpy import forces
from medyanpy._tools import quaternions

ASYMMETRIC = (1.0, 2.0, 2.6)
NEAR = (1e-3, 1e-7, 1e-12)


def turning(h, inertia, spin, q, *, word="BAB", rotation="exact", threads=1, **how):
    """A context of bodies with these moments, angular momenta and orientations."""
    topology = mp.Topology()
    n = len(spin)
    bodies = topology.add_rigid_bodies(np.zeros((n, 3)), q, 1.0, inertia)
    integrator = mp.SplittingIntegrator(word, h, rotation=rotation, **how)
    context = mp.Context(mp.System(topology), integrator, threads=threads)
    context.set_angular_momenta(spin)
    return context, bodies


def ends(*arguments, steps=1, **how):
    """Quaternions and angular momenta after some steps."""
    context, _ = turning(*arguments, **how)
    context.step(steps)
    state = context.get_state(positions=True, velocities=True)
    return state.orientations, state.angular_momenta


def apart(q, p):
    """The largest difference of two arrays of quaternions, each of either sign."""
    return np.minimum(np.abs(q - p).max(axis=1), np.abs(q + p).max(axis=1)).max()


# A reference of its own ----------------------------------------------------------------------------------------------


def elliptic(inertia, spin, t):
    """The rotation R(0)^T R(t) (3, 3) and L(t) of a free body whose moments ascend, in 40 digits.

    Landau and Lifshitz, Mechanics, section 37: the axis that the momentum stays on one side of is the third if |L|² >
    2 E I2, and else the first, whose angle with L is cos θ = L_axis/|L|. About L it goes round at |L| (2E - L_axis
    ω_axis)/(|L|² - L_axis²), whose integral is one of the third kind, taken by quadrature here.
    """
    i, l = [big.mpf(float(x)) for x in inertia], [big.mpf(float(x)) for x in spin]  # noqa: E741
    t = big.mpf(float(t))
    energy, square = sum(a * a / b for a, b in zip(l, i, strict=True)) / 2, sum(a * a for a in l)
    first, last = (0, 2) if square > 2 * energy * i[1] else (2, 0)
    # `last` is the axis beside which the momentum stays; signs are those of the one or the other cycle.
    side = 1 if l[last] > 0 else -1
    up, down = 2 * energy * i[last] - square, square - 2 * energy * i[first]
    size = [None, big.sqrt(i[1] * up / (i[last] - i[1])), None]
    size[first] = big.sqrt(i[first] * up / (i[last] - i[first]))
    size[last] = side * big.sqrt(i[last] * down / (i[last] - i[first]))
    rate = big.sqrt((i[last] - i[1]) * down / (i[0] * i[1] * i[2]))
    m = (i[1] - i[first]) * up / ((i[last] - i[1]) * down)
    start = big.ellipf(big.atan2(side * l[1] / size[1], l[first] / size[first]), m)

    def at(time):
        u = start + rate * time
        out = [None, side * size[1] * big.ellipfun("sn", u, m=m), None]
        out[first] = size[first] * big.ellipfun("cn", u, m=m)
        out[last] = size[last] * big.ellipfun("dn", u, m=m)
        return out

    total = big.sqrt(square)

    def precession(time):
        along = at(time)[last]
        return total * (2 * energy - along * along / i[last]) / (square - along * along)

    pieces = 1 + int(abs(t) * max(rate, total / i[0]) / 3)
    angle = big.quad(precession, big.linspace(0, t, pieces + 1), method="gauss-legendre", maxdegree=5)
    # A proper frame (a, b, last), with the azimuth of the body about its own axis.
    a, b = ((0, 1) if last == 2 else (1, 2))

    def frame(momentum, azimuth):
        across, along = big.sqrt(momentum[a] ** 2 + momentum[b] ** 2), momentum[last]
        ct, st = along / total, across / total
        cp, sp = momentum[b] / across, momentum[a] / across
        cf, sf = big.cos(azimuth), big.sin(azimuth)
        euler = [  # Rz(azimuth) Rx(θ) Rz(ψ)
            [cf * cp - sf * ct * sp, -cf * sp - sf * ct * cp, sf * st],
            [sf * cp + cf * ct * sp, -sf * sp + cf * ct * cp, -cf * st],
            [st * sp, st * cp, ct],
        ]
        out = big.matrix(3, 3)
        for row, column in itertools.product(range(3), range(3)):
            out[row, (a, b, last)[column]] = euler[row][column]
        return out

    then = at(t)
    return frame(l, 0).T * frame(then, angle), then


def tops(n, seed=4):
    """Moments that ascend (n, 3), momenta, and times: a quarter near the separatrix, a quarter nearly symmetric."""
    rng = np.random.default_rng(seed)
    inertia = np.sort(rng.uniform(1.0, 1.9, (n, 3)), axis=1)
    spin, t = rng.normal(size=(n, 3)), rng.choice([-1.0, 1.0], n) * 10.0 ** rng.uniform(-2.0, 1.0, n)
    for k in range(n):
        off = NEAR[k % 3]
        if k % 4 == 1:
            # |L|² = 2 E I2 but for a part of it: L3 from L1.
            i1, i2, i3 = inertia[k]
            spin[k, 2] = (1.0 + off) * abs(spin[k, 0]) * np.sqrt(i3 * (i2 - i1) / (i1 * (i3 - i2)))
        elif k % 8 == 2:
            inertia[k, 1] = inertia[k, 0] * (1.0 + off)
        elif k % 8 == 6:
            inertia[k, 1] = inertia[k, 2] * (1.0 - off)
    return inertia, spin, t


@pytest.mark.parametrize("n", [16, pytest.param(1000, marks=pytest.mark.long)])
def test_against_elliptic_functions(n):
    """Of 1000 tops the turn and the momentum to 1e-12, in times in which they turn by 0.01 to 20. From beside the
    separatrix differences grow as the exponential of the time, for up to 1e4 times rounding here."""
    inertia, spin, t = tops(n)
    worst = np.zeros(2)
    with big.workdps(40):
        for k in range(n):
            turn, momentum = elliptic(inertia[k], spin[k], t[k])
            # Axis j of the body that is simulated is axis j + 1 of the one above.
            order = [0, 1, 2] if k % 2 else [1, 2, 0]
            h = abs(t[k])
            sign = np.sign(t[k])
            q, found = ends(h, inertia[k][order], sign * spin[k][order][None], [[1.0, 0.0, 0.0, 0.0]])
            exact = np.array([[float(turn[i, j]) for j in range(3)] for i in range(3)])
            exact = exact[np.ix_(order, order)]
            worst[0] = max(worst[0], np.abs(quaternions.matrices(q)[0] - exact).max())
            worst[1] = max(worst[1], np.abs(sign * found[0] - [float(momentum[j]) for j in order]).max())
    print(f"{n} tops: turns {worst[0]:.1e}, momenta {worst[1]:.1e}")
    assert (worst < 1e-12).all()


def test_the_reference_is_a_solution():
    """Its momenta obey Euler's equations, and its turns are those of the rate L/I, by differences."""
    inertia, spin, t = tops(8)
    with big.workdps(40):
        for k in range(8):
            low, high = elliptic(inertia[k], spin[k], t[k] - 1e-6), elliptic(inertia[k], spin[k], t[k] + 1e-6)
            turn, momentum = elliptic(inertia[k], spin[k], t[k])
            middle = np.array([float(x) for x in momentum])
            rate = middle / inertia[k]
            slope = np.array([float((b - a) / 2e-6) for a, b in zip(low[1], high[1], strict=True)])
            np.testing.assert_allclose(slope, np.cross(middle, rate), atol=1e-9)
            change = (turn.T * (high[0] - low[0])) / 2e-6
            found = [float(change[2, 1]), float(change[0, 2]), float(change[1, 0])]
            np.testing.assert_allclose(found, rate, atol=1e-9)


# Laws ---------------------------------------------------------------------------------------------------------------


def of_all_kinds(n, seed=3):
    """Moments, momenta and orientations; among them spheres, symmetric tops and bodies at rest."""
    inertia, spin, _ = tops(n, seed)
    inertia[3::8, :] = inertia[3::8, :1]
    inertia[5::8, 1] = inertia[5::8, 0]
    inertia[7::8, 1] = inertia[7::8, 2]
    spin[11::16] = 0.0
    return inertia, spin, orients(np.random.default_rng(seed), n)


def test_momentum_energy_and_length_are_kept():
    """Momentum in space, energy and the length of quaternions to rounding, with any step."""
    inertia, spin, q = of_all_kinds(64)
    for h, steps in ((0.01, 300), (1.0, 30), (30.0, 3)):
        found, momenta = ends(h, inertia, spin, q, steps=steps)
        assert np.abs(np.linalg.norm(found, axis=1) - 1.0).max() < 1e-15
        space = quaternions.turned(q, spin)
        np.testing.assert_allclose(quaternions.turned(found, momenta), space, rtol=0.0, atol=1e-13)
        before, after = ((s**2 / inertia).sum(axis=1) for s in (spin, momenta))
        np.testing.assert_allclose(after, before, rtol=1e-13, atol=1e-30)


def test_steps_add_up():
    """G(s) G(t) = G(s + t), of which splitting has only the second order; also with a word of order 6, whose weights
    add up to 1, some of them negative."""
    inertia, spin, q = of_all_kinds(64)
    one = ends(1.5, inertia, spin, q)
    for h, steps, how in ((0.5, 3, {}), (0.1, 15, {}), (1.5, 1, {"order": 6}), (0.5, 3, {"word": "ABA"})):
        other = ends(h, inertia, spin, q, steps=steps, **how)
        assert apart(one[0], other[0]) < 2e-14
        np.testing.assert_allclose(one[1], other[1], rtol=0.0, atol=2e-14)
    split = ends(0.5, inertia, spin, q, steps=3, rotation="split")
    assert apart(one[0], split[0]) > 1e-2


def test_it_leads_back():
    inertia, spin, q = of_all_kinds(64)
    there, momenta = ends(2.0, inertia, spin, q)
    back, last = ends(2.0, inertia, -momenta, there)
    assert apart(back, q) < 1e-13
    np.testing.assert_allclose(-last, spin, rtol=0.0, atol=1e-13)


def test_spheres_and_symmetric_tops_turn_in_closed_form():
    """About L at |L|/I1, and about their own axis at (1/I3 - 1/I1) L3."""
    rng = np.random.default_rng(8)
    spin, q, h = rng.normal(size=(20, 3)), orients(rng, 20), 4.0
    for inertia in ((1.5, 1.5, 1.5), (1.5, 1.5, 0.7), (1.5, 1.5, 2.8)):
        found, _ = ends(h, inertia, spin, q)
        size = np.linalg.norm(spin, axis=1)
        half = 0.5 * h * size / inertia[0]
        about_l = np.column_stack([np.cos(half), np.sin(half)[:, None] * spin / size[:, None]])
        own = 0.5 * h * (1.0 / inertia[2] - 1.0 / inertia[0]) * spin[:, 2]
        about_axis = np.column_stack([np.cos(own), 0 * own, 0 * own, np.sin(own)])
        exact = quaternions.product(q, quaternions.product(about_l, about_axis))
        assert apart(found, exact) < 5e-15


def test_a_body_has_the_same_bits_beside_others_and_alone():
    """Slow and fast ones share vectors, and each takes as many pieces and orders as it needs."""
    inertia, spin, q = of_all_kinds(40)
    spin *= 10.0 ** np.random.default_rng(1).uniform(-8.0, 1.0, (40, 1))
    together = ends(1.0, inertia, spin, q, steps=3)
    for k in range(40):
        alone = ends(1.0, inertia[k : k + 1], spin[k : k + 1], q[k : k + 1], steps=3)
        assert np.array_equal(alone[0][0], together[0][k])
        assert np.array_equal(alone[1][0], together[1][k])


def test_a_field_gives_the_same_motion_to_second_order():
    """With forces both ways of A are of order 2 and meet; the exact one has the smaller error for fast tops."""
    rng = np.random.default_rng(2)
    q, spin = orients(rng, 12), 3.0 * rng.normal(size=(12, 3))

    def at_end(h, rotation, order=2):
        topology = mp.Topology()
        bodies = topology.add_rigid_bodies(np.zeros((12, 3)), q, 1.0, ASYMMETRIC)
        pull = forces.UniformField(bodies.sites([[0.7, 0.0, 0.0]]), [0.0, 0.0, 0.1])
        integrator = mp.VerletIntegrator(h, rotation=rotation, order=order)
        context = mp.Context(system_with(topology, pull), integrator, threads=1)
        context.set_angular_momenta(spin)
        context.step(round(1.6 / h))
        return context.get_state(positions=True).orientations

    exact = at_end(0.01, "exact", order=6)
    assert apart(at_end(0.02, "split", order=6), exact) < 1e-9
    errors = {rotation: [apart(at_end(h, rotation), exact) for h in (0.08, 0.04)] for rotation in ("split", "exact")}
    for pair in errors.values():
        assert np.log2(pair[0] / pair[1]) == pytest.approx(2.0, abs=0.1)
    assert errors["exact"][0] < 0.1 * errors["split"][0]


def test_rods_turn_exactly():
    """The energy of a rod that is let go, on the way: a smaller error, as sections that turn fast have none."""
    nodes, q = mp.rods.uniform(12, 1.0, [0.3, 0.0, 0.1])
    found = {}
    for rotation in ("split", "exact"):
        topology = mp.Topology()
        rod = topology.add_rod(nodes, q, 1.0, 1.0, [0.05, 0.06, 0.11], ends=("clamped", "free"))
        elasticity = forces.RodElasticity(rod, shear=1.0, extension=2.0, bending=0.3, twist=0.2)
        integrator = mp.SplittingIntegrator("ABA", 0.1, rotation=rotation)
        context = mp.Context(system_with(topology, elasticity), integrator, threads=1)
        context.step(200)
        state = context.get_state(positions=True, energy=True)
        found[rotation] = state
        assert np.array_equal(state.orientations[0], rod.orientations[0])
    split, exact = found.values()
    assert not np.array_equal(split.orientations, exact.orientations)
    assert exact.total_energy == pytest.approx(split.total_energy, rel=1e-2)


def test_it_is_refused_where_it_has_no_meaning():
    topology = mp.Topology()
    topology.add_beads([[0.0, 0, 0]], 1.0)
    exact = mp.VerletIntegrator(0.1, rotation="exact")
    refuses(mp.ParameterError, "rotation='exact' is for rigid bodies and nodes of rods, of which there are none",
            mp.Context, mp.System(topology), exact)  # fmt: skip
    refuses(mp.ParameterError, 'rotation must be "split" or "exact", not \'elliptic\'', mp.VerletIntegrator, 0.1,
            rotation="elliptic")  # fmt: skip
    refuses(mp.ParameterError, "the word 'D' has none", mp.SplittingIntegrator, "D", 0.1, kT=1.0, rotation="exact")
    bodies = topology.add_rigid_bodies([[0.0, 0, 0]], [[1.0, 0, 0, 0]], 1.0, ASYMMETRIC, rotation_parts=3)
    refuses(mp.ParameterError, "rotation_parts = 3, into which rotation='exact' need not be cut", mp.Context,
            mp.System(bodies.topology), exact)  # fmt: skip


def test_it_is_kept_by_documents_and_checkpoints(tmp_path):
    def simulation(rotation):
        topology = mp.Topology()
        topology.add_rigid_bodies(np.zeros((3, 3)), orients(np.random.default_rng(1), 3), 1.0, ASYMMETRIC)
        integrator = mp.SplittingIntegrator("BAB", 0.3, rotation=rotation)
        made = mp.Simulation(mp.System(topology), integrator, threads=1)
        made.context.set_velocities_to_temperature(kT=1.0, seed=1)
        return made

    run = simulation("exact")
    again = mp.deserialize(mp.serialize(run.integrator))
    assert again.rotation == "exact"
    assert repr(again) == "SplittingIntegrator('B A B', timestep=0.3, rotation='exact')"
    run.step(3)
    run.save_checkpoint(tmp_path / "a.chk")
    run.step(4)
    other = mp.Simulation.resume(tmp_path / "a.chk", threads=2)
    other.step(4)
    a, b = (one.context.get_state(positions=True, velocities=True) for one in (run, other))
    assert np.array_equal(a.orientations, b.orientations)
    assert np.array_equal(a.angular_momenta, b.angular_momenta)
    refuses(mp.ParameterError, "rotation: 'exact' in the file, 'split' here", simulation("split").load_checkpoint,
            tmp_path / "a.chk")  # fmt: skip


def test_a_rate_that_is_not_finite_is_a_fault():
    context, _ = turning(1.0, ASYMMETRIC, [[1e200, 1e200, 1e200]], [[1.0, 0.0, 0.0, 0.0]])
    with pytest.raises(mp.SimulationError):
        context.step(1)
