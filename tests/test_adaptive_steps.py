"""Adaptive steps: reversible, of order 2, without drift, the same bits after a checkpoint, and what they refuse."""

import numpy as np
import pytest
from builders import refuses, retraced, system_with

import medyanpy as mp

# Of the way from one bead to the other: eccentricity 0.9, semi-major axis 1, period 2π, in the centre of mass.
START, SPEED = 1.9, np.sqrt(0.1 / 1.9)
NAMES = "sun", "planet"
PLACES, VELOCITIES = [[-START / 2, 0.0, 0.0], [START / 2, 0.0, 0.0]], [[0.0, -SPEED / 2, 0.0], [0.0, SPEED / 2, 0.0]]


def steps(power=0.5):
    return mp.AdaptiveSteps(pairs="1/r^3", cutoff=40.0, beads=NAMES, power=power)


def kepler(h, adaptive=True, word="BAB"):
    topology = mp.Topology()
    sun, planet = (topology.add_beads([x], mass=1.0, name=name) for x, name in zip(PLACES, NAMES, strict=True))
    pull = mp.forces.CustomPair(sun, planet, "-0.5/r", cutoff=40.0)
    system = system_with(topology, pull)
    context = mp.Context(system, mp.SplittingIntegrator(word, h, steps=steps() if adaptive else None), threads=1)
    context.set_velocities(VELOCITIES)
    return context


def energy(context):
    return context.get_state(energy=True).total_energy


def apart(context):
    return float(np.linalg.norm(np.diff(context.get_state(positions=True).positions, axis=0)))


def run_to(context, time, before=None):
    """Run to a time at least; return the largest error of the energy on the way, from that at the start or another."""
    before, worst = energy(context) if before is None else before, 0.0
    while context.time < time:
        context.step(1)
        worst = max(worst, abs(energy(context) - before))
    return worst


def on_surface(word="BAB", h=0.05):
    """Return a context of six walkers on the inflated lemniscate, whose steps are shorter where its tips are."""
    topology = mp.Topology()
    surface = mp.surfaces.Lemniscate(2, 1.0, 1.0 / 6.0)
    rng = np.random.default_rng(5)
    beads = topology.add_surface_points(surface, surface.sample(6, seed=5), mass=1.0, name="walkers")
    system = system_with(topology, mp.forces.UniformField(beads, [0.0, 0, -1.0]))
    adaptive = mp.AdaptiveSteps(field="10*exp(-20*(y*y + z*z))*x^2", beads="walkers")
    context = mp.Context(system, mp.SplittingIntegrator(word, h, steps=adaptive), threads=1)
    context.set_velocities(rng.normal(size=(6, 3)))
    return context


@pytest.mark.parametrize("word", ["BAB", "ABA"])
def test_reversed_velocities_lead_back_through_close_encounters(word):
    context = kepler(0.05, word=word)
    start = context.get_state(positions=True, velocities=True)
    context.step(700)
    time = context.time
    assert time > 2.0 * np.pi  # an encounter
    context.set_velocities(-context.get_state(velocities=True).velocities)
    context.step(700)
    back = context.get_state(positions=True, velocities=True)
    np.testing.assert_allclose(back.positions, start.positions, rtol=0.0, atol=1e-11)
    np.testing.assert_allclose(-back.velocities, start.velocities, rtol=0.0, atol=1e-11)
    assert context.time == pytest.approx(2.0 * time, rel=1e-12)


def test_reversed_velocities_lead_back_on_a_surface():
    retraced(on_surface(), 100, atol=1e-10, least=0.3)


def everything(h, adaptive):
    """Return a context of links of fixed length, bodies that turn, constraints of one's own, beads on a surface, and
    points that cross edges."""
    topology = mp.Topology()
    mesh = mp.TriangleMesh.icosphere(subdivisions=2, radius=4.0)
    membrane = topology.add_membrane(mesh, 5.0)
    topology.add_intriangle_points(membrane, 40, mass=0.05, seed=2)
    rows = np.arange(5)[:, None] * [1.0, 0, 0]
    chain = topology.add_filament(rows + [12.0, 0, 0], node_mass=1.0)
    topology.add_filament(rows + [12.0, 5, 0], node_mass=1.0, directors="parallel", director_mass=0.5)
    body = topology.add_rigid_bodies([[0.0, 14.0, 0]], [[1.0, 0, 0, 0]], mass=1.0, inertia=[1.0, 2.0, 3.0])
    ends = topology.add_beads([[0.0, 0, 13.0], [2.0, 0, 13.0]], mass=1.0)
    topology.constrain("(x1-x2)^2 + (y1-y2)^2 + (z1-z2)^2 - 4", ends.beads[None])
    sphere = mp.surfaces.Sphere(20.0)
    topology.add_surface_points(sphere, sphere.sample(5, seed=1), mass=1.0)
    topology.add_beads([[0.0, 0, 0]], mass=1.0, name="alone")
    system = system_with(
        topology, mp.forces.MembraneEdgeSprings(membrane, stiffness=20.0),
        mp.forces.HarmonicTrap([chain, ends], 2.0, center=[12.0, 1.0, 0]),
        mp.forces.ExternalField(body, "x^2 + (y - 14)^2 + 2*z^2"),
    )  # fmt: skip
    context = mp.Context(system, mp.VerletIntegrator(h, steps=adaptive), threads=1)
    context.set_velocities_to_temperature(kT=1.0, seed=4)
    return context


def test_reversed_velocities_lead_back_with_everything_that_letters_move():
    context = everything(0.2, mp.AdaptiveSteps(field="1e-3*(x*x + y*y + z*z)"))
    retraced(context, 100, atol=1e-7, least=1.0)


def test_all_letters_act_for_the_step_that_is_taken():
    """A control of 3 makes all steps half as long."""
    half = everything(0.01, None)
    context = everything(0.02, mp.AdaptiveSteps(field="3 + step(x - 1000)*x", beads="alone"))
    for one in (half, context):
        one.step(40)
    a, b = (one.get_state(positions=True, velocities=True) for one in (half, context))
    for name in ("positions", "velocities", "orientations", "angular_momenta"):
        np.testing.assert_allclose(getattr(b, name), getattr(a, name), rtol=0.0, atol=1e-10)
    assert context.time == pytest.approx(0.4, rel=1e-14)


def test_the_step_is_what_the_control_says():
    """The mean of 1/ρ in close steps follows (1 + 1/r³)^-1/2, and the time is the sum of the steps."""
    context, h = kepler(0.01), 0.01
    before = total = 0.0
    for _ in range(2000):
        r = apart(context)
        context.step(1)
        after = apart(context)
        step = context.time - before
        total, before = total + step, context.time
        assert step == pytest.approx(h / np.sqrt(1.0 + (0.5 * (r + after)) ** -3), rel=0.02)
    assert context.time == pytest.approx(total, rel=1e-13)
    assert context.get_state().time == context.time


def test_energy_does_not_drift_over_many_close_encounters():
    """400 encounters of eccentricity 0.9: the errors of the last thirty are those of the first."""
    context, period = kepler(0.08), 2.0 * np.pi
    start = energy(context)
    first = run_to(context, 30 * period, start)
    while context.time < 370 * period:
        context.step(2000)
    assert run_to(context, 400 * period, start) == pytest.approx(first, rel=0.02)
    assert first == pytest.approx(0.0073, rel=0.03)


def test_errors_fall_as_the_square_of_the_mean_step():
    errors = [run_to(kepler(h), 4.0 * np.pi) for h in (0.04, 0.02, 0.01)]
    np.testing.assert_allclose(np.log2(np.divide(errors[:-1], errors[1:])), 2.0, atol=0.1)


def test_fewer_evaluations_of_forces_than_equal_steps_at_equal_error():
    """Twelve times fewer, at largest errors of the energy from 5e-4 to 7e-3 over two orbits; six where the control
    costs what the force does."""
    adaptive, time = kepler(0.08), 4.0 * np.pi
    bound = run_to(adaptive, time)
    equal = [kepler(time / (factor * adaptive.step_count), adaptive=False) for factor in (11, 13)]
    more, less = (run_to(context, time) for context in equal)
    assert less < bound < more


def test_a_density_that_never_changes_gives_the_bits_of_equal_steps():
    """A control that is 0 where beads are leaves every step as long as it is without."""
    plain = kepler(0.02, adaptive=False)
    far = mp.AdaptiveSteps(pairs="1/r", cutoff=0.01)
    topology = plain.system.topology
    context = mp.Context(plain.system, mp.SplittingIntegrator("BAB", 0.02, steps=far), threads=1)
    context.set_velocities(VELOCITIES)
    assert topology is context.system.topology
    for one in (plain, context):
        one.step(300)
    a, b = (one.get_state(positions=True, velocities=True) for one in (plain, context))
    assert np.array_equal(a.positions, b.positions)
    assert np.array_equal(a.velocities, b.velocities)
    assert context.time == pytest.approx(plain.time, rel=1e-14)


def test_a_checkpoint_keeps_the_bits(tmp_path):
    topology = kepler(0.05).system.topology
    sun, planet = topology.handles
    system = system_with(topology, mp.forces.CustomPair(sun, planet, "-0.5/r", cutoff=40.0))
    simulation = mp.Simulation(system, mp.VerletIntegrator(0.05, steps=steps()))
    simulation.context.set_velocities(VELOCITIES)
    simulation.step(333)
    simulation.save_checkpoint(tmp_path / "half")
    simulation.step(333)
    resumed = mp.Simulation.resume(tmp_path / "half")
    assert resumed.context.time > 0.0
    resumed.step(333)
    a, b = (s.context.get_state(positions=True, velocities=True) for s in (simulation, resumed))
    assert np.array_equal(a.positions, b.positions)
    assert np.array_equal(a.velocities, b.velocities)
    assert a.time == b.time


@pytest.mark.parametrize(("there", "here"), [(0.5, 0.25), (0.5, None), (None, 0.5)])
def test_a_checkpoint_of_other_steps_is_refused(there, here, tmp_path):
    def build(power):
        own = None if power is None else steps(power)
        return mp.Simulation(kepler(0.05).system, mp.VerletIntegrator(0.05, steps=own))

    build(there).save_checkpoint(tmp_path / "other")
    refuses(mp.errors.ParameterError, "belongs to another simulation:\n  steps", build(here).load_checkpoint,
            tmp_path / "other")  # fmt: skip


def test_bits_do_not_depend_on_how_steps_are_cut():
    one, two = kepler(0.05), kepler(0.05)
    one.step(200)
    for n in (1, 70, 29, 100):
        two.step(n)
        two.get_state(positions=True, energy=True, forces=True)
    a, b = (c.get_state(positions=True, velocities=True) for c in (one, two))
    assert np.array_equal(a.positions, b.positions)
    assert a.time == b.time


def test_positions_from_outside_start_the_density_again():
    """Steps are then as long as the place says, not as where the bead has been."""
    context = kepler(0.01)
    context.step(400)
    context.set_positions([[0.0, 0, 0], [0.1, 0, 0]])
    context.set_velocities(np.zeros((2, 3)))
    before = context.time
    context.step(1)
    assert context.time - before == pytest.approx(0.01 / np.sqrt(1.0 + 1e3), rel=1e-2)


def test_documents_hold_them():
    integrator = mp.VerletIntegrator(0.05, steps=steps(power=0.75))
    again = mp.deserialize(mp.serialize(integrator))
    assert repr(again) == repr(integrator)
    assert "AdaptiveSteps(pairs='1/r^3', cutoff=40, beads=('sun', 'planet'), power=0.75)" in repr(integrator)


@pytest.mark.parametrize(
    ("word", "options", "phrase"),
    [
        ("BAOAB", {"kT": 1.0}, r"the word 'B A O A B' has O"),
        ("JBABJ", {}, r"the word 'J B A B J' has J"),
        ("M(BAB) O", {"kT": 1.0}, r"has a block M\(B A B\)"),
        ("BAB", {"order": 4}, "order = 4"),
        ("BAB", {"kick": mp.kicks.ZhangSkeel()}, r"kick = ZhangSkeel\(beta=0.25\)"),
        ("AB", {"symmetric": False}, "'A B' is not a palindrome"),
        ("D", {"kT": 1.0}, "the word 'D' has D"),
    ],
)
def test_words_that_cannot_go_back_are_refused(word, options, phrase):
    refuses(
        mp.errors.ParameterError, f"AdaptiveSteps: .*{phrase}", mp.SplittingIntegrator, word, 0.1, steps=steps(),
        **options,
    )  # fmt: skip


def test_arguments_outside_their_domain_are_refused():
    wrong, make = mp.errors.ParameterError, mp.AdaptiveSteps
    refuses(wrong, "AdaptiveSteps: give pairs= or field=", make)
    refuses(wrong, "AdaptiveSteps: pairs= needs cutoff=", make, pairs="1/r")
    refuses(wrong, "AdaptiveSteps: cutoff= belongs to pairs=", make, field="x", cutoff=1.0)
    refuses(wrong, "AdaptiveSteps: power = 0", make, field="x", power=0.0)
    refuses(wrong, "AdaptiveSteps: cutoff = -1", make, pairs="1/r", cutoff=-1.0)
    refuses(wrong, "AdaptiveSteps: beads", make, field="x", beads=3)
    refuses(wrong, "steps must be AdaptiveSteps, not 3", mp.VerletIntegrator, 0.1, steps=3)
    topology = kepler(0.1).system.topology
    system = mp.System(topology)
    refuses(
        wrong, "handle of AdaptiveSteps 'moon'", mp.Context, system,
        mp.VerletIntegrator(0.1, steps=make(field="x*x", beads="moon")),
    )  # fmt: skip
    strange = mp.VerletIntegrator(0.1, steps=make(field="x*q"))
    refuses(wrong, "AdaptiveSteps: field: 'q' at column 3", mp.Context, system, strange)
