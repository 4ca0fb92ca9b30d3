"""Linearly implicit kicks: timesteps that they bear, what they sample, and the same bits."""

import re
import warnings

import numpy as np
import pytest
from builders import refuses, system_with
from kicks.scenes import RULES, coil, network, run, springs

import medyanpy as mp
from medyanpy.kicks import Explicit, Newmark, PushForwardNewmark, ZhangSkeel, ZhangSkeelSimplified, ZhangSkeelStiff
from medyanpy.testing import check_mean


@pytest.mark.parametrize("rule", ["Zhang-Skeel", "simplified", "Newmark", "one step"])
@pytest.mark.parametrize("beta", [0.25, 0.4])
def test_harmonic_modes_of_any_frequency_are_stable(rule, beta):
    """(Theorem 2.2) x_(k+1) - 2 x_k + x_(k-1) = -z x_k with z = (ωh)²/(1 + β(ωh)²) < 4: the mode turns by the angle
    acos(1 - z/2) in a step."""
    omega = np.array([0.1, 1.0, 2.5, 10.0, 1000.0])
    _, system = springs(1.0, 1.0 / omega**2)
    n = 2000
    x, _ = run(system, RULES[rule](beta), 1.0, n)
    z = omega**2 / (1.0 + beta * omega**2)
    np.testing.assert_allclose(x[:, 0], np.cos(n * np.arccos(1.0 - 0.5 * z)), atol=1e-6)


@pytest.mark.parametrize("rule", ["Zhang-Skeel", "simplified", "Newmark", "one step", "classical"])
def test_smaller_beta_is_stable_up_to_the_limit_that_the_warning_tells(rule):
    """(Theorem 2.2) z < 4 where ωh < 2/sqrt(1 - 4β) = 3.1623 for β = 0.15."""
    beta, dt = 0.15, 0.5
    with pytest.warns(mp.TimestepWarning, match=r"beta = 0.15 .* frequency above 6.325 .* 0.5 s .* 'B A B'"):
        mp.SplittingIntegrator("BAB", dt, kick=RULES[rule](beta))
    omega = 2.0 / np.sqrt(1.0 - 4.0 * beta) / dt * np.array([0.99, 1.01])
    _, system = springs(1.0, 1.0 / omega**2)
    with pytest.warns(mp.TimestepWarning):
        x, _ = run(system, RULES[rule](beta), dt, 200, runaway=None)
    assert abs(x[0, 0]) < 100.0 < 1e6 < abs(x[1, 0])
    refuses(mp.ParameterError, r"beta = 0.0 but must be finite and > 0", RULES[rule], 0.0)


@pytest.mark.parametrize("word", ["BAB", "ABA", "BAOAB", "OBABO"])
def test_classical_newmark_is_the_push_forward_one_seen_in_places(word):
    """(13): x = q - βh² a(q) before, q = x + βh² a(x) afterwards; and a state tells q."""
    topology, system = network(9, 40.0, relaxed=True)
    beta, dt, kT = 0.3, 0.3, 0.01 if "O" in word else None
    q0, mass = topology.handles[0].positions, topology.handles[0].mass[:, None]
    # Only looked at.
    plain = mp.Context(system, mp.SplittingIntegrator("BAB", 1e-3), threads=1)
    x0 = q0 - beta * dt**2 * plain.get_state(forces=True).forces / mass
    contexts = []
    for kick, start in ((Newmark(beta), q0), (PushForwardNewmark(beta), x0)):
        context = mp.Context(system, mp.SplittingIntegrator(word, dt, kick=kick, kT=kT, seed=4), threads=1)
        context.set_positions(start)
        np.testing.assert_allclose(context.physical_positions(), q0, rtol=1e-12, atol=1e-13)
        context.step(20)
        contexts.append(context)
    ours, other = contexts
    np.testing.assert_allclose(ours.physical_positions(), other.physical_positions(), rtol=1e-9, atol=1e-9)
    state, plainly = (c.get_state(positions=True, energy=True, forces=True) for c in (ours, plain))
    assert np.array_equal(state.positions, ours.physical_positions())
    plain.set_positions(state.positions)
    plainly = plain.get_state(energy=True, forces=True)
    assert plainly.potential_energy == state.potential_energy
    assert np.array_equal(plainly.forces, state.forces)


def test_classical_newmark_is_not_composed():
    with pytest.raises(mp.ParameterError, match="Newmark is of order 2, but order = 4: PushForwardNewmark"):
        mp.SplittingIntegrator("BAB", 0.1, kick=Newmark(), order=4)


@pytest.mark.parametrize("positive_definite", [False, True])
def test_stiff_modes_do_not_resonate_from_a_third_on(positive_definite):
    """Three modes that turn by 2π/3 in a step excite each other: below β = 1/3 that is a frequency which a coil at
    five times the explicit timestep has, and no harmonic theory tells that it is lost. At 0.35 its kinetic energy
    stays; NVE, kT = 0.001 at the start, 4000 steps."""
    def kinetic(beta):
        kick = ZhangSkeel(beta, positive_definite=positive_definite)
        context = mp.Context(coil(60), mp.SplittingIntegrator("BAB", 0.05, kick=kick), threads=1)
        context.set_velocities_to_temperature(kT=0.001 if not positive_definite else 0.1, seed=2)
        before = context.get_state(energy=True).kinetic_energy
        for _ in range(40):
            context.step(100)
            now = context.get_state(energy=True).kinetic_energy / before
            if not now < 10.0:
                return np.inf
        return now

    assert 0.6 < kinetic(0.35) < 1.0
    try:
        assert kinetic(0.3) == np.inf
    except mp.SimulationError:
        pass


@pytest.mark.frictionless
@pytest.mark.parametrize(("word", "friction", "says"), [
    ("BAB", 1.0, "the word 'B A B' has no O"),
    ("BAOAB", 0.0, "friction * timestep / mass = 0 of 'beads' is below 0.001"),
    ("BAOAB", 0.015, "friction * timestep / mass = 0.00075 of 'beads' is below 0.001"),
    ("BAOAB", 0.021, None),
])  # fmt: skip
def test_warning_of_kicks_that_heat(word, friction, says):
    """Where nothing takes out the heat of a kick that is not a gradient, a Context says so; once."""
    kT = 0.1 if "O" in word else None
    for kick in (ZhangSkeelSimplified(0.3, True), ZhangSkeelStiff(0.3, ["HarmonicBonds"], True)):
        integrator = mp.SplittingIntegrator(word, 0.05, kick=kick, kT=kT)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            system = coil(5, friction)
            context = mp.Context(system, integrator, threads=1)
            system.forces[0].set(stiffness=3.0)
            context.step(2)
        told = [str(w.message) for w in caught if issubclass(w.category, mp.TimestepWarning)]
        if says is None:
            assert not told
        else:
            assert len(told) == 1
            assert f"{type(kick).__name__}(positive_definite=True) is not the gradient of a potential" in told[0]
            assert says in told[0]
    for kick in (ZhangSkeel(0.3, True), ZhangSkeelSimplified(0.3), PushForwardNewmark(0.3)):
        with warnings.catch_warnings():
            warnings.simplefilter("error", mp.TimestepWarning)
            mp.Context(coil(5, friction), mp.SplittingIntegrator(word, 0.05, kick=kick, kT=kT), threads=1)


@pytest.mark.parametrize(("dt", "kT", "warns"),
                         [(0.05, 0.1, False), (0.06, 0.1, True), (0.2, 0.007, False), (0.2, 0.01, True)])  # fmt: skip
def test_warning_where_heat_moves_stiff_links_too_far(dt, kT, warns):
    """√(βh²kT/m) against a hundredth of the length, beyond which `ZhangSkeel` loses runs and the others do not."""
    kicks = [ZhangSkeel(0.35, True), ZhangSkeelSimplified(0.35, True), PushForwardNewmark(0.35), Explicit()]
    for kick in kicks:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            integrator = mp.SplittingIntegrator("BAOAB", dt, kT=kT, seed=3, kick=kick)
            mp.Context(coil(60, friction=0.2), integrator, threads=1)
        told = [str(w.message) for w in caught if "ZhangSkeel: √(βh²kT/m)" in str(w.message)]
        assert len(told) == (warns and kick is kicks[0])
        for text in told:
            assert re.search(r"beads \d+ and \d+, which 'HarmonicBonds' joins", text)
            longest = float(re.search(r"timestep below ([\d.e-]+) s", text)[1])
            assert longest == pytest.approx(0.01 / np.sqrt(0.35 * kT), rel=0.01)
    # Of soft links the method changes little, and none has a length in a word without temperature.
    with warnings.catch_warnings():
        warnings.simplefilter("error", mp.TimestepWarning)
        soft = coil(60, friction=0.2, stiffness=1.0)
        mp.Context(soft, mp.SplittingIntegrator("BAOAB", dt, kT=kT, kick=kicks[0]), threads=1)
        mp.Context(coil(60), mp.SplittingIntegrator("BAB", dt, kick=kicks[0]), threads=1)


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["Zhang-Skeel", "simplified", "Newmark"])
def test_stationary_laws(rule):
    """⟨x²⟩ = (kT/k)(1 + β(ωh)²) and ⟨q²⟩ = (kT/k)/(1 + β(ωh)²) under BAOAB, of a stiff mode and a slow one.

    BAOAB samples the harmonic mode of the effective stiffness k/(1 + β(ωh)²) exactly. 400 independent beads, each
    of which counts with its mean over 200 times: deviations of 3 % would be seen; false alarms 1e-6 each."""
    k, beta, h = 1.0, 0.3, 1.0
    for omega in (0.3, 5.0):
        n = 400
        topology = mp.Topology()
        beads = topology.add_beads(np.zeros((n, 3)), 1.0 / omega**2, 1.0 / omega)
        system = system_with(topology, mp.forces.HarmonicTrap(beads, k, [0.0, 0.0, 0.0]))
        context = mp.Context(system, mp.SplittingIntegrator("BAOAB", h, kT=2.0, seed=4, kick=RULES[rule](beta)),
                             threads=1)  # fmt: skip
        context.step(200)
        x2, q2 = np.zeros((2, n))
        for _ in range(200):
            context.step(40)
            x2 += np.mean(context.get_state(positions=True).positions ** 2, axis=1) / 200
            q2 += np.mean(context.physical_positions() ** 2, axis=1) / 200
        for name, square, kT in (("x", x2, 2.0 * (1.0 + beta * (omega * h) ** 2)),
                                 ("q", q2, 2.0 / (1.0 + beta * (omega * h) ** 2))):  # fmt: skip
            check_mean(f"<{name}²>, ω = {omega}", square, kT / k, sees=0.03 * kT / k)


def expectation(density, observable, to):
    """By quadrature over (-to, to)."""
    x = np.linspace(-to, to, 20001)
    p = np.exp(-density(x))
    return (p * observable(x)).sum() / p.sum()


@pytest.mark.slow
@pytest.mark.parametrize(("rule", "h", "a", "b", "contrast"), [
    ("Newmark", 0.4, 2.0, 2.0, 0.1), ("Newmark", 0.2, 50.0, 1000.0, 0.3), ("Zhang-Skeel", 0.15, 2.0, 2.0, 0.03),
])  # fmt: skip
def test_stationary_laws_of_anharmonic_wells(rule, h, a, b, contrast):
    """V = a x² + b x⁴ under BAOAB. Of push-forward Newmark q has the density exp(-[V + βh²V'²/2m]/kT)(1 + βh²V''/m),
    and x of Zhang and Skeel's exp(-W/kT) with W = V - βh²V'²/2(m + βh²V''): means of the square of 3000 independent
    beads, 40 times each (false alarm 1e-6; standard error below 1 % of the mean, so 8 % would be found surely), up to
    the error of BAOAB itself in wells that are not harmonic, for which 4 % are allowed. The law without what the kick
    does is farther away than that: by `contrast`."""
    beta, n = 0.3, 3000
    s = beta * h * h
    topology = mp.Topology()
    beads = topology.add_beads(np.zeros((n, 3)), 1.0, 1.0)
    system = system_with(topology, mp.forces.ExternalField(beads, "a*x^2 + b*x^4", a=a, b=b))
    integrator = mp.SplittingIntegrator("BAOAB", h, kT=1.0, seed=4, kick=RULES[rule](beta))
    context = mp.Context(system, integrator, threads=1)
    context.step(60)
    squares = []
    for _ in range(40):
        context.step(8)
        state = context.get_state(positions=True, physical_positions=True)
        x = state.positions if rule == "Zhang-Skeel" else state.physical_positions
        squares.append(x[:, 0] ** 2)

    def v(x):
        return a * x**2 + b * x**4

    def v1(x):
        return 2.0 * a * x + 4.0 * b * x**3

    def v2(x):
        return 2.0 * a + 12.0 * b * x**2

    laws = {
        "Newmark": lambda q: v(q) + 0.5 * s * v1(q) ** 2 - np.log(1.0 + s * v2(q)),
        "Zhang-Skeel": lambda x: v(x) - 0.5 * s * v1(x) ** 2 / (1.0 + s * v2(x)),
    }
    law = expectation(laws[rule], np.square, 3.0 if rule == "Newmark" else 2.0)
    plain = expectation(v, np.square, 3.0)
    # Beads are independent, looks at one of them are not.
    each = np.mean(squares, axis=0)
    error = each.std(ddof=1) / np.sqrt(n)
    print(rule, h, each.mean() / law, error / law, plain / law)
    assert error < 0.01 * law
    assert abs(each.mean() - law) < 4.9 * error + 0.04 * law
    assert abs(plain / law - 1.0) > contrast


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Newmark", "explicit"])
def test_slow_modes(name):
    """The angle of trimers with stiff links and a light middle, a slow mode. With explicit kicks at a tenth of the
    timestep cos² has the mean 1/3, as of free angles between springs. Newmark's at five times the explicit limit
    hold links by masses over βh² rather than by their stiffness: the weight sqrt(det(1 + βh²k J M⁻¹Jᵀ)) of the stiff
    modes comes in, and the mean is 0.296, by quadrature. 600 trimers, whose mean over 16 looks is one sample each: the
    standard error is below 0.0035, so that the two laws are 10 of them apart, and a false alarm has the rate 1e-6."""
    n, k, beta, h = 600, 1e4, 0.35, 0.03
    kick, timestep = (None, 0.1 * h) if name == "explicit" else (RULES[name](beta), h)
    directions = np.random.default_rng(3).normal(size=(n, 2, 3))
    directions /= np.linalg.norm(directions, axis=2)[:, :, None]
    x = np.stack([directions[:, 0], np.zeros((n, 3)), directions[:, 1]], axis=1)
    topology = mp.Topology()
    mass = np.tile([1.0, 0.2, 1.0], n)
    beads = topology.add_beads(x.reshape(-1, 3), mass, mass).beads.reshape(n, 3)
    system = system_with(topology, mp.forces.HarmonicBonds(np.concatenate([beads[:, :2], beads[:, 1:]]), k, 1.0))
    context = mp.Context(system, mp.SplittingIntegrator("BAOAB", timestep, kT=1.0, seed=5, kick=kick), threads=1)
    context.set_velocities_to_temperature(kT=1.0, seed=6)
    looks = []
    for _ in range(20):
        context.step(round(0.75 / timestep))
        q = context.get_state(physical_positions=True).physical_positions.reshape(n, 3, 3)
        u, w = q[:, 0] - q[:, 1], q[:, 2] - q[:, 1]
        looks.append((u * w).sum(axis=1) ** 2 / ((u * u).sum(axis=1) * (w * w).sum(axis=1)))
    each = np.mean(looks[4:], axis=0)
    c = np.linspace(-1.0, 1.0, 4001)
    b = 0.0 if name == "explicit" else beta * h * h * k
    weight = np.sqrt((1.0 + 6.0 * b) ** 2 - (5.0 * b * c) ** 2)
    law = (weight * c * c).sum() / weight.sum()
    print(name, law, each.mean(), each.std() / np.sqrt(n))
    check_mean("cos²", each, law, sees=0.028)


@pytest.mark.filterwarnings("ignore:ZhangSkeel. √:medyanpy.errors.TimestepWarning")
def test_bits():
    """The same on any number of threads, through a checkpoint, and however steps are cut."""
    _, system = network(7, 60.0)
    v = np.random.default_rng(6).normal(0.0, 0.1, (7, 3))
    # Some rules are beyond their condition here: bits are compared all the same.
    for rule in RULES:
        one = run(system, RULES[rule](0.3), 0.4, 30, v, word="BAOAB", kT=0.1, seed=5, runaway=None)
        for threads in (2, 3):
            again = run(system, RULES[rule](0.3), 0.4, 30, v, word="BAOAB", kT=0.1, seed=5, threads=threads,
                        runaway=None)  # fmt: skip
            assert all(np.array_equal(a, b) for a, b in zip(one, again, strict=True))
        context = mp.Context(system, mp.SplittingIntegrator("BAOAB", 0.4, kT=0.1, seed=5, kick=RULES[rule](0.3)),
                             threads=1)  # fmt: skip
        context.runaway = None
        context.set_velocities(v)
        context.step(11)
        context.get_state(forces=True, energy=True)
        context.physical_positions()
        middle = context.get_state(positions=True, velocities=True)
        context.step(19)
        assert np.array_equal(context.get_state(positions=True).positions, one[0])
        other = mp.Context(system, mp.SplittingIntegrator("BAOAB", 0.4, kT=0.1, seed=5, kick=RULES[rule](0.3)),
                           threads=2)  # fmt: skip
        other.runaway = None
        other.set_state(middle)
        other.step(19)
        assert np.array_equal(other.get_state(positions=True).positions, one[0])
