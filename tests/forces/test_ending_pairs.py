"""Pair energies that end: derivatives, ends, tables, texts, energy in runs, errors. Forces are in test_contract.py."""

import mpmath
import numpy as np
import pytest
from builders import beads_at, refuses, system_with
from medyanpy._kernels.forces.radial import Radial, ending, radial_values
from scipy.interpolate import CubicSpline

import medyanpy as mp
from medyanpy.errors import ParameterError, SimulationError, TopologyError
from medyanpy.forces import CustomPair, LennardJones, Morse, Ricker, TabulatedPair, Yukawa


def context_of(topology, *forces, threads=1, word="BAB", timestep=1e-9, **options):
    return mp.Context(system_with(topology, *forces),
                      mp.SplittingIntegrator(word, timestep, **options), threads=threads)  # fmt: skip


def look(topology, *forces, **options):
    return context_of(topology, *forces, **options).get_state(positions=True, forces=True, energy=True)


def drop(n, seed=1, spacing=1.12):
    """Beads of a cold drop in random order, near to a lattice."""
    draw = np.random.default_rng(seed)
    side = int(np.ceil(n ** (1.0 / 3.0)))
    grid = np.stack(np.unravel_index(draw.permutation(side**3)[:n], (side,) * 3), axis=1)
    return spacing * grid + draw.uniform(-0.05, 0.05, (n, 3))


# Derivatives -----------------------------------------------------------------------------------------------


def lennard_jones(r):
    return 4 * mpmath.mpf(0.7) * ((mpmath.mpf(1.3) / r) ** 12 - (mpmath.mpf(1.3) / r) ** 6)


def ricker(r):
    s = (r / mpmath.mpf(1.7)) ** 2
    return mpmath.mpf(0.9) / 2 * (1 - 3 * s) * mpmath.exp(mpmath.mpf(3) / 2 * (1 - s))


def morse(r):
    e = mpmath.exp(-mpmath.mpf(1.9) * (r - mpmath.mpf(1.4)))
    return mpmath.mpf(2.3) * (e * e - 2 * e)


def yukawa(r):
    return mpmath.mpf(-3.1) * mpmath.exp(-r / mpmath.mpf(0.8)) / r


KINDS = {
    "Lennard-Jones": (Radial.LENNARD_JONES, (0.7, 1.3), 0.0, lennard_jones),
    "Ricker": (Radial.RICKER, (0.9, 1.7), 0.0, ricker),
    "Morse": (Radial.MORSE, (2.3, 1.9), 1.4, morse),
    "Yukawa": (Radial.YUKAWA, (-3.1, 0.8), 0.0, yukawa),
}


@pytest.mark.parametrize("switch", [None, 1.5])
@pytest.mark.parametrize("kind", KINDS)
def test_derivatives_against_many_digits(kind, switch):
    """Three, before and within the range of the switch, to 1e-13 of the largest thing they are sums of."""
    number, two, third, u = KINDS[kind]
    end = 3.2
    p = ending(number, two, end, switch, True, third)

    def whole(r):
        if switch is None:
            return u(r) - u(mpmath.mpf(end))
        x = max((r - mpmath.mpf(switch)) / (mpmath.mpf(end) - mpmath.mpf(switch)), mpmath.mpf(0))
        return u(r) * (1 - 10 * x**3 + 15 * x**4 - 6 * x**5)

    distances = np.array([0.9, 1.1, 1.45, 1.55, 2.0, 2.71, 3.1])
    found = radial_values(number, p, distances)
    with mpmath.workdps(50):
        for r, row in zip(distances.tolist(), found, strict=True):
            taylor = mpmath.taylor(whole, mpmath.mpf(r), 3)
            right = np.array([float(c * mpmath.factorial(k)) for k, c in enumerate(taylor)])
            size = np.maximum(np.abs(right), float(abs(u(mpmath.mpf(r)))) * 10.0 ** np.arange(4))
            assert np.abs(row - right).max(initial=0.0, where=np.abs(row - right) > 3e-14 * size) == 0.0
    assert (radial_values(number, p, np.array([end, end + 1e-9, 7.0])) == 0.0).all()


def test_a_table_is_the_spline_through_it():
    draw = np.random.default_rng(5)
    r = np.cumsum(draw.uniform(0.05, 0.4, 25))
    u = draw.normal(size=25)
    spline = CubicSpline(r, u)
    numbers, table = (1.0, 25.0), np.append(r, spline.c[::-1].T)
    at = np.concatenate([r[:-1], draw.uniform(r[0], r[-1], 200)])
    for switch in (None, 2.0):
        p = ending(Radial.TABULATED, numbers, r[-1], switch, False, 0.0, table)
        values = radial_values(Radial.TABULATED, p, at)
        before = at < (switch or np.inf)
        for k in range(4):
            np.testing.assert_allclose(values[before, k], spline(at[before], k), rtol=1e-12, atol=1e-11 * 10**k)
    p = ending(Radial.TABULATED, numbers, r[-1], table=table)
    assert np.isnan(radial_values(Radial.TABULATED, p, r[:1] - 1e-9))[0, :3].all()


@pytest.mark.parametrize("start", [0.6, 2.0])
def test_a_switch_joins_smoothly(start):
    """Energy, force and its derivative are continuous at both its ends; a cutoff without it has a jump of the force."""
    p = ending(Radial.LENNARD_JONES, (1.0, 1.0), 2.5, start)
    plain = ending(Radial.LENNARD_JONES, (1.0, 1.0), np.inf)
    near = np.array([start - 1e-9, start + 1e-9, 2.5 - 1e-6])
    values = radial_values(Radial.LENNARD_JONES, p, near)
    np.testing.assert_allclose(values[0, :3], radial_values(Radial.LENNARD_JONES, plain, near[:1])[0, :3], rtol=0.0)
    np.testing.assert_allclose(values[1, :3], values[0, :3], rtol=1e-7)
    assert np.abs(values[2, :3]).max() < 1e-4
    shifted = radial_values(Radial.LENNARD_JONES, ending(Radial.LENNARD_JONES, (1.0, 1.0), 2.5), near[2:])[0]
    assert abs(shifted[0]) < 1e-7
    assert shifted[1] == pytest.approx(0.039, abs=1e-3)


# How they end ----------------------------------------------------------------------------------------------


def test_shift_changes_energies_and_no_force():
    x = drop(300)
    topology, beads = beads_at(x)
    shifted = look(topology, LennardJones(beads, beads, 0.7, 1.0, cutoff=2.5))
    plain = look(topology, LennardJones(beads, beads, 0.7, 1.0, cutoff=2.5, shift=False))
    assert shifted.forces.tobytes() == plain.forces.tobytes()
    i, j = np.triu_indices(300, 1)
    pairs = np.count_nonzero(np.linalg.norm(x[i] - x[j], axis=1) < 2.5)
    cut = 4.0 * 0.7 * (2.5**-12 - 2.5**-6)
    assert shifted.potential_energy == pytest.approx(plain.potential_energy - pairs * cut, rel=1e-12)


def test_a_range_that_nothing_reaches_is_all_pairs():
    topology, beads = beads_at(drop(120))
    for make in (
        lambda **k: Morse(beads, beads, 2.0, 1.5, 1.1, **k),
        lambda **k: Yukawa(beads, beads, 2.0, 1.5, **k),
        lambda **k: LennardJones(beads, beads, 2.0, 1.0, **k),
    ):
        whole, cut = look(topology, make()), look(topology, make(cutoff=1e3, shift=False))
        assert cut.potential_energy == pytest.approx(whole.potential_energy, rel=1e-12)
        np.testing.assert_allclose(cut.forces, whole.forces, rtol=1e-11, atol=1e-11 * np.abs(whole.forces).max())


R = np.linspace(0.0, 3.0, 601)


def forces(beads, **options):
    """One of each kind, with energies of the same size."""
    return {
        "Lennard-Jones": LennardJones(beads, beads, 1.0, 1.0, **options),
        "Morse": Morse(beads, beads, 1.0, 6.0, 1.12, **options),
        "Yukawa": Yukawa(beads, beads, 3.0, 1.0, **options),
        "Ricker": Ricker(beads, beads, 0.3, 1.1, **options),
        "table": TabulatedPair(beads, beads, R, 3.0 * np.exp(-(R**2)), **options),
        "text": CustomPair(beads, beads, "4*e*(r^-12 - r^-6)", e=1.0, **options),
    }


KIND = tuple(forces([0, 1], cutoff=1.0))


@pytest.mark.parametrize("kind", KIND)
def test_energy_is_kept_where_they_end_smoothly(kind):
    """Two hundred beads that move through the end of the range thousands of times: with a switch the energy is off by
    what falls as the square of the timestep; truncated it jumps."""
    wander = {}
    for name, timestep, options in (
        ("switched", 4e-3, {"switch": 1.4}),
        ("half", 2e-3, {"switch": 1.4}),
        ("truncated", 2e-3, {"shift": False}),
    ):
        topology, beads = beads_at(drop(200))
        context = context_of(topology, forces(beads, cutoff=2.0, **options)[kind], word="ABA", timestep=timestep)
        context.set_velocities(np.random.default_rng(3).normal(0.0, 0.8, (200, 3)))
        energy = []
        for _ in range(20):
            context.step(round(0.06 / timestep))
            energy.append(context.get_state(energy=True).total_energy)
        wander[name] = np.ptp(energy)
    assert wander["half"] < 0.4 * wander["switched"]
    assert wander["half"] < 0.05
    if kind != "Ricker":
        # Whose energy is -0.02 there.
        assert wander["truncated"] > 5.0 * wander["half"]


# Tables ----------------------------------------------------------------------------------------------------


def test_a_table_that_is_fine_enough_is_the_energy():
    topology, beads = beads_at(drop(200))
    r = np.linspace(0.8, 2.5, 1500)
    right = look(topology, LennardJones(beads, beads, 1.0, 1.0, cutoff=2.5))
    made = look(topology, TabulatedPair(beads, beads, r, 4.0 * (r**-12 - r**-6)))
    assert made.potential_energy == pytest.approx(right.potential_energy, rel=1e-9)
    np.testing.assert_allclose(made.forces, right.forces, atol=1e-6 * np.abs(right.forces).max())


def test_a_table_says_nothing_below_its_first_distance():
    topology, _ = beads_at([[0.0, 0, 0], [5.0, 0, 0], [5.0, 0.5, 0], [9.0, 0, 0]])
    r = np.linspace(1.0, 3.0, 20)
    context = context_of(topology, TabulatedPair([0, 1, 2, 3], [0, 1, 2, 3], r, 1.0 / r, name="table"))
    with pytest.raises(SimulationError) as caught:
        context.step(1)
    assert caught.value.bead in (1, 2)
    assert caught.value.force == "table"


def test_a_table_from_zero_has_no_force_between_beads_in_one_place():
    topology, _ = beads_at([[1.0, 2, 3], [1.0, 2, 3]])
    state = look(topology, TabulatedPair([0], [1], R, 2.0 - R, cutoff=2.0))
    assert (state.potential_energy, np.abs(state.forces).max()) == (2.0, 0.0)


def test_the_scale_of_a_table_can_be_set():
    topology, beads = beads_at(drop(50))
    force = TabulatedPair(beads, beads, R, np.exp(-R))
    context = context_of(topology, force)
    once = context.get_state(energy=True).potential_energy
    force.scale = -2.0
    assert context.get_state(energy=True).potential_energy == pytest.approx(-2.0 * once, rel=1e-13)
    assert force.distances.tolist() == R.tolist()
    assert force.energies.tolist() == np.exp(-R).tolist()


# Texts -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"switch": 1.6}, {"shift": False}])
def test_a_text_is_the_force_that_it_writes(options):
    topology, beads = beads_at(drop(150))
    a = np.random.default_rng(2).normal(size=(150, 3))
    options |= {"cutoff": 2.2, "exclusions": [[3, 8]]}
    mine = CustomPair(beads, beads, "4*e*(s^12/r^12 - s^6/r^6)", e=0.8, s=1.05, **options)
    right = LennardJones(beads, beads, 0.8, 1.05, **options)
    mine, right = context_of(topology, mine), context_of(topology, right)
    for what in (
        lambda c: c.get_state(forces=True).forces,
        lambda c: c.get_state(energy=True).potential_energy,
        lambda c: c.hessian().toarray(),
        lambda c: c.third_derivative(a),
    ):
        found, expected = what(mine), what(right)
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-11 * np.abs(expected).max())


def test_numbers_of_beads_follow_the_order_in_which_these_are_given():
    x = drop(40, spacing=1.5)
    topology, _ = beads_at(x)
    draw = np.random.default_rng(8)
    order = draw.permutation(40)
    q = draw.normal(size=40)
    state = look(topology, CustomPair(order, order, "q1*q2*exp(-r)/r", cutoff=20.0, shift=False, q=q))
    of = np.empty(40)
    of[order] = q
    i, j = np.triu_indices(40, 1)
    r = np.linalg.norm(x[i] - x[j], axis=1)
    assert state.potential_energy == pytest.approx(np.sum(of[i] * of[j] * np.exp(-r) / r), rel=1e-12)


def test_numbers_of_beads_can_be_set_and_one_for_all_given():
    topology, beads = beads_at([[0.0, 0, 0], [1.0, 0, 0], [0, 2.0, 0]])
    force = CustomPair(beads, beads, "q1*q2*(3 - r)", cutoff=2.9, shift=False, q=1.0)
    context = context_of(topology, force)
    assert context.get_state(energy=True).potential_energy == pytest.approx(6.0 - np.sqrt(5.0) + 0.0, rel=1e-13)
    force.set(q=[1.0, 0.0, 2.0])
    assert context.get_state(energy=True).potential_energy == pytest.approx(2.0, rel=1e-13)
    assert force.changeable == ("q", "cutoff", "switch", "skin")
    force.cutoff = 1.5
    assert context.get_state(energy=True).potential_energy == 0.0


def test_numbers_of_two_groups_are_those_of_either():
    x = drop(30, spacing=1.4)
    topology, _ = beads_at(x)
    a, b = np.arange(3, 12), np.arange(29, 15, -1)
    k1, k2 = np.linspace(1.0, 2.0, len(a)), np.linspace(-1.0, 3.0, len(b))
    state = look(topology, CustomPair(b, a, "(2*k1 + k2)/r", cutoff=30.0, shift=False, k1=k2, k2=k1))
    r = np.linalg.norm(x[b][:, None] - x[a][None], axis=-1)
    assert state.potential_energy == pytest.approx(np.sum((2.0 * k2[:, None] + k1[None]) / r), rel=1e-12)
    np.testing.assert_allclose(state.forces.sum(axis=0), 0.0, atol=1e-12)


def test_energy_that_is_not_a_number_stops_the_run():
    topology, _ = beads_at([[0.0, 0, 0], [5.0, 0, 0], [5.0, 0.5, 0]])
    context = context_of(topology, CustomPair([0, 1, 2], [0, 1, 2], "log(r - a)", cutoff=2.0, a=1.0, name="written"))
    with pytest.raises(SimulationError) as caught:
        context.step(1)
    assert caught.value.force == "written"
    assert caught.value.bead in (1, 2)


def test_linearly_implicit_kicks_solve_with_them():
    """Stiffer than an explicit step could bear."""
    for make in (
        lambda b: Morse(b, b, 1e3, 2.0, 1.0, cutoff=4.0, switch=3.0),
        lambda b: CustomPair(b, b, "d*((exp(-2*(r - 1)) - 1)^2 - 1)", cutoff=4.0, switch=3.0, d=1e3),
    ):
        topology, beads = beads_at([[0.0, 0, 0], [1.0, 0, 0]])
        context = context_of(topology, make(beads), timestep=0.05, kick=mp.kicks.ZhangSkeel(beta=0.4))
        context.set_velocities([[0.0, 0.5, 0.0], [0.0, -0.5, 0.0]])
        before = context.get_state(energy=True).total_energy
        context.step(400)
        state = context.get_state(energy=True, physical_positions=True)
        assert np.linalg.norm(np.diff(state.physical_positions, axis=0)) == pytest.approx(1.0, abs=0.01)
        assert state.total_energy == pytest.approx(before, rel=0.05)


def test_longest_timesteps_are_those_of_the_well():
    """ω² = 2 U''/m of two alone, of whatever kind: 4 D a²/m of Morse."""
    for make in (
        lambda b: Morse(b, b, 3.0, 2.0, 1.1, cutoff=5.0),
        lambda b: CustomPair(b, b, "d*((exp(-2*(r - 1.1)) - 1)^2 - 1)", cutoff=5.0, d=3.0),
        lambda b: TabulatedPair(b, b, R + 0.3, 3.0 * ((np.exp(-2.0 * (R - 0.8)) - 1.0) ** 2 - 1.0)),
    ):
        topology, beads = beads_at([[0.0, 0, 0], [9.0, 0, 0]])
        assert make(beads).longest_timestep(topology) == pytest.approx(2.0 / np.sqrt(48.0), rel=0.02)
    topology, beads = beads_at([[0.0, 0, 0], [9.0, 0, 0]])
    for force in (
        Yukawa(beads, beads, 1.0, 1.0, cutoff=3.0),
        CustomPair(beads, beads, "1/r", cutoff=3.0),
        CustomPair(beads, beads, "q1*q2*(r - 1)^2", cutoff=3.0, q=[1.0, 2.0]),
        TabulatedPair(beads, beads, R, -R),
    ):
        assert force.longest_timestep(topology) is None


# What is refused -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("make", "message"), [
    (lambda b: LennardJones(b, b, 1.0, 1.0, switch=2.0), "switch = 2 nm, but without cutoff="),
    (lambda b: LennardJones(b, b, 1.0, 1.0, cutoff=2.0, switch=2.0), "switch = 2 nm but must be below the cutoff"),
    (lambda b: Ricker(b, b, 1.0, 1.0, switch=4.0), "switch = 4 nm but must be below the cutoff, 4 nm"),
    (lambda b: TabulatedPair(b, b, [0.0, 1, 2], [1.0, 1, 1]), "3 distances and 3 energies.*at least 4"),
    (lambda b: TabulatedPair(b, b, [0.0, 1, 2, 3], [1.0, 1, 1]), "4 distances and 3 energies"),
    (lambda b: TabulatedPair(b, b, [0.0, 1, 1, 3], [1.0, 1, 1, 0]), r"distances\[2\] = 1 nm but must be above"),
    (lambda b: TabulatedPair(b, b, [-1.0, 1, 2, 3], [1.0, 1, 1, 0]), r"distances\[0\] = -1 nm but must be >= 0"),
    (lambda b: TabulatedPair(b, b, [0.0, 1, 2, 3], [1.0, np.nan, 1, 0]), "energies"),
    (lambda b: TabulatedPair(b, b, R, R, cutoff=3.1), "must be within the table, above 0 and up to 3 nm"),
    (lambda b: CustomPair(b, b, "k*r", cutoff=2.0), "k"),
    (lambda b: CustomPair(b, b, "k*r", cutoff=2.0, k=1.0, m=2.0), "the parameter m is not in"),
    (lambda b: CustomPair(b, b, "k", cutoff=2.0, k=1.0), "does not depend on r"),
    (lambda b: CustomPair(b, b, "q1*r", cutoff=2.0, q=[1.0, 2, 3]), "change places"),
    (lambda b: CustomPair(b, b, "(q1 - q2)*r", cutoff=2.0, q=1.0), "change places"),
    (lambda b: CustomPair(b, b, "q*r", cutoff=2.0, q=[1.0, 2, 3]), "name them q1 and q2"),
    (lambda b: CustomPair([0], [1, 2], "q*r", cutoff=2.0, q=[1.0, 2]), "give q1= for the beads of group_a"),
    (lambda b: CustomPair(b, b, "q1*q2*r", cutoff=2.0, q=[1.0, 2]), "q"),
    (lambda b: CustomPair(b, b, "1/(r - 2)", cutoff=2.0), "not a number at the cutoff, 2 nm"),
    (lambda b: CustomPair(b, b, "cutoff*r", cutoff=2.0), "cutoff"),
])  # fmt: skip
def test_refusals(make, message):
    topology, beads = beads_at([[0.0, 0, 0], [1.0, 0, 0], [0, 2.0, 0]])
    refuses(ParameterError, message, lambda: look(topology, make(beads)))


def test_numbers_of_groups_that_share_beads_are_refused():
    topology, _ = beads_at([[0.0, 0, 0], [1.0, 0, 0], [0, 2.0, 0]])
    force = CustomPair([0, 1], [1, 2], "q1*r", cutoff=2.0, q1=[1.0, 2.0])
    refuses(TopologyError, "q1 has one number for each bead of a group, but bead 1 is in both", look, topology, force)
