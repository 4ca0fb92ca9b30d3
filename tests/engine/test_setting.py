"""Timestep and temperature may change while a simulation runs; nothing of what was made of them is left behind.

False alarms of the statistical test: 1e-6.
"""

import json
import warnings

import numpy as np
import pytest
from builders import refuses, system_with

import medyanpy as mp


def beads(n=1, friction=2.0, mass=1.0):
    topology = mp.Topology()
    return topology.add_beads(np.zeros((n, 3)), mass=mass, friction=friction)


def running(handle, integrator, *forces):
    return mp.Context(system_with(handle.topology, *forces), integrator, threads=1)


# Everything that keeps something made of timestep or temperature, for each letter ---------------------------------


def everything_with_velocities():
    rng = np.random.default_rng(5)
    topology = mp.Topology()
    vesicle = topology.add_membrane(mp.TriangleMesh.icosphere(20.0, 2), vertex_mass=1.0, vertex_friction=0.5)
    topology.add_intriangle_points(vesicle, 30, mass=0.5, friction=0.7, seed=1)
    nodes = 5.0 * np.arange(6)[:, None] * [1.0, 0.0, 0.0]
    topology.add_filament(nodes + 40.0, node_mass=rng.uniform(1, 2, 6), node_friction=rng.uniform(0, 2, 6))
    topology.add_filament(nodes + 50.0, node_mass=1.0, node_friction=(0.5, 1.5))
    topology.add_filament(nodes + 60.0, node_mass=1.0, node_friction=0.4, directors="parallel", director_mass=3.0,
                          director_friction=4.0)  # fmt: skip
    a = rng.normal(size=(6, 6))
    x, q = rng.normal(size=(3, 3)) + 80.0, rng.normal(size=(3, 4))
    q /= np.linalg.norm(q, axis=1)[:, None]
    topology.add_rigid_bodies(x, q, mass=1.0, inertia=[1.0, 1.2, 1.5], friction=a @ a.T + np.eye(6))
    frame = np.tile(mp.rods.uniform(5, 4.0)[1][0], (5, 1))
    along = 4.0 * np.arange(5)[:, None] * [0.0, 0.0, 1.0]
    topology.add_rod(along + 90.0, frame, 4.0, linear_density=1.0, inertia_density=[1.0, 1.0, 2.0], friction=1.0)
    on_sphere = [[7.0, 0.0, 0.0], [0.0, 7.0, 0.0]]
    topology.add_surface_points(mp.surfaces.Sphere(7.0), on_sphere, mass=1.0, friction=0.3)
    system = system_with(topology, mp.forces.MembraneEdgeSprings(vesicle, 2.0))
    return system


def everything_without_velocities():
    rng = np.random.default_rng(6)
    topology = mp.Topology()
    plain = topology.add_beads(rng.normal(size=(20, 3)), mass=1.0, friction=rng.uniform(1, 2, 20))
    a = rng.normal(size=(6, 6))
    q = np.tile([1.0, 0.0, 0.0, 0.0], (4, 1))
    topology.add_rigid_bodies(rng.normal(size=(4, 3)), q, mass=1.0, inertia=[1.0, 1.0, 1.0],
                              friction=a @ a.T + np.eye(6))  # fmt: skip
    system = system_with(topology, mp.forces.HarmonicTrap(plain, 0.3, [0.0, 0.0, 0.0]))
    return system


def chain():
    topology = mp.Topology()
    nodes = topology.add_beads(np.arange(30.0).reshape(10, 3), mass=1.0, friction=0.5)
    system = mp.System(topology)
    pairs = np.column_stack([nodes.beads[:-1], nodes.beads[1:]])
    system.add_force(mp.forces.HarmonicBonds(pairs, 50.0, 4.0))
    return system


SCENES = {
    "BAGOGAB": (everything_with_velocities, {}),
    "OBAGABO": (everything_with_velocities, {}),
    "D": (everything_without_velocities, {}),
    "BAOAB": (chain, {"kick": mp.kicks.ZhangSkeel(0.4)}),
    "OBABO": (chain, {"kick": mp.kicks.Newmark(0.3), "order": 2}),
    "O BAB O": (chain, {"order": 4}),
}


def everything_in(context):
    state = context.get_state(positions=True, velocities=True)
    parts = [state.positions, state.velocities, state.orientations, state.angular_momenta]
    return [*parts, state.intriangle.triangles, state.intriangle.barycentric]


def same(a, b):
    return all(np.array_equal(p, q, equal_nan=True) for p, q in zip(a, b, strict=True))


@pytest.mark.parametrize("word", SCENES)
def test_after_a_change_steps_are_those_of_an_integrator_made_with_the_new_numbers(word):
    """Bit for bit, for every kind of bead and letter that keeps coefficients: whatever was made of the old numbers
    and is not made anew shows here. And the numbers of before are not enough: both of them matter to the result."""
    scene, options = SCENES[word]

    def make(timestep, kT):
        return mp.Context(scene(), mp.SplittingIntegrator(word, timestep, kT=kT, seed=3, **options), threads=1)

    def on_from(context, other):
        """`other`, where `context` is: without what either has made of the numbers of its integrator."""
        mine, theirs = context._schedule.moving_arrays(), other._schedule.moving_arrays()
        for name in mine:
            if not name.startswith("friction of"):
                theirs[name][...] = mine[name]
        other._store.program.step = context.step_count
        other._store.positions_changed()
        other.step(4)
        return everything_in(other)

    context = make(2e-3, 1.0)
    if word != "D":
        context.set_velocities_to_temperature(kT=1.0, seed=1)
    context.step(4)
    expected = on_from(context, make(5e-3, 0.3))
    either = [on_from(context, make(5e-3, 1.0)), on_from(context, make(2e-3, 0.3))]
    context.integrator.set(timestep=5e-3, kT=0.3)
    context.step(4)
    got = everything_in(context)
    assert same(got, expected)
    assert not any(same(got, other) for other in either)


@pytest.mark.parametrize("word", SCENES)
def test_run_with_changes_resumes_with_the_same_bits(word, tmp_path):
    """Also where it was taken between the change and the first step with it; and time goes on with the same bits."""
    scene, options = SCENES[word]
    simulation = mp.Simulation(scene(), mp.SplittingIntegrator(word, 2e-3, kT=1.0, seed=3, **options), threads=1)
    simulation.step(3)
    simulation.integrator.set(timestep=0.7e-3, kT=0.9)
    simulation.save_checkpoint(tmp_path / "now")
    simulation.step(3)
    simulation.save_checkpoint(tmp_path / "later")
    simulation.integrator.set(timestep=1.1e-3, kT=2.0)
    simulation.step(3)
    for name, steps in (("now", 3), ("later", 0)):
        resumed = mp.Simulation.resume(tmp_path / name, threads=1)
        assert (resumed.integrator.timestep, resumed.integrator.kT) == (0.7e-3, 0.9)
        resumed.step(steps)
        resumed.integrator.set(timestep=1.1e-3, kT=2.0)
        resumed.step(3)
        assert same(everything_in(resumed.context), everything_in(simulation.context))
        assert resumed.context.time == simulation.context.time


def test_numbers_that_come_back_leave_no_trace():
    """To the last bit, and also where the temperature is given in kelvin: nothing is rounded twice."""
    runs = []
    for changes in ((), ((310.0, 3e-3), (300.0, 2e-3)), ((300.0, 2e-3),)):
        integrator = mp.BAGOGABIntegrator(2e-3, temperature=300.0, seed=3)
        context = mp.Context(everything_with_velocities(), integrator, threads=1)
        context.step(3)
        for temperature, timestep in changes:
            integrator.set(temperature=temperature, timestep=timestep)
            context.get_state(energy=True)
        context.step(3)
        runs.append((everything_in(context), context.time))
    assert all(same(run, runs[0][0]) and time == runs[0][1] for run, time in runs)


# Physics ----------------------------------------------------------------------------------------------------------


def test_without_forces_velocities_decay_by_the_friction_and_the_time_that_has_passed():
    """v(t) = v(0) exp(-γ t/m), exactly for any steps: with noise of kT = 1e-40 to 1e-14. Wrong by 1e-2 if a timestep
    or the time were those of before."""
    handle = beads(friction=0.8, mass=2.0)
    integrator = mp.BAGOGABIntegrator(0.1, kT=1e-40)
    context = running(handle, integrator)
    context.set_velocities([[1.0, -2.0, 3.0]])
    for timestep, steps in ((0.1, 5), (0.03, 7), (0.2, 2), (0.1, 3)):
        integrator.set(timestep=timestep)
        context.step(steps)
        v = context.get_state(velocities=True).velocities
        decay = np.exp(-0.4 * context.time)
        np.testing.assert_allclose(v, [[decay, -2.0 * decay, 3.0 * decay]], rtol=1e-14)
    assert context.time == pytest.approx(5 * 0.1 + 7 * 0.03 + 2 * 0.2 + 3 * 0.1, rel=1e-15)


def test_annealing_the_temperature_follows():
    """5000 beads in traps, cooled, heated and cooled: read after 20 relaxation times, 15 000 degrees of freedom, so
    that the standard error is 1.2 %, and the interval of the false-alarm rate 5.7 %. The temperatures differ by half
    and more."""
    rng = np.random.default_rng(1)
    topology = mp.Topology()
    handle = topology.add_beads(rng.normal(size=(5000, 3)), mass=1.0, friction=2.0)
    integrator = mp.BAGOGABIntegrator(0.1, kT=1.0, seed=2)
    context = running(handle, integrator, mp.forces.HarmonicTrap(handle, 1.0, [0.0, 0.0, 0.0]))
    context.report_work = True
    start = context.get_state(energy=True).total_energy
    for kT in (1.0, 0.5, 2.0, 0.01):
        integrator.kT = kT
        context.step(200)
        state = context.get_state(energy=True)
        assert state.kT == pytest.approx(kT, rel=4.9 * np.sqrt(2.0 / 15000))
    # Setting a temperature moves nothing: no energy goes anywhere but by steps.
    assert state.protocol_work == 0.0
    assert state.heat + state.shadow_work == pytest.approx(state.total_energy - start, abs=1e-9 * start)


# Time -------------------------------------------------------------------------------------------------------------


def test_time_is_the_sum_of_what_steps_lasted(tmp_path):
    """In contexts, states, tables, trajectories; the step number counts on."""
    handle = beads(3)
    simulation = mp.Simulation(mp.System(handle.topology), mp.BAGOGABIntegrator(0.5, kT=1.0))
    simulation.reporters.append(mp.reporters.StateDataReporter(tmp_path / "t.csv", 1, step=True, time=True))
    simulation.reporters.append(mp.reporters.TrajectoryReporter(tmp_path / "t.h5", 1))
    simulation.step(2)
    simulation.integrator.timestep = 0.25
    assert simulation.context.time == 1.0
    simulation.step(2)
    simulation.integrator.set(timestep=2.0)
    simulation.step(1)
    simulation.close()
    expected = [0.5, 1.0, 1.25, 1.5, 3.5]
    table = np.loadtxt(tmp_path / "t.csv", delimiter=",")
    assert table.tolist() == [[i + 1, time] for i, time in enumerate(expected)]
    with mp.Trajectory(tmp_path / "t.h5") as trajectory:
        assert list(trajectory.times) == expected
    state = simulation.context.get_state(positions=True, velocities=True)
    assert (state.time, state.step) == (3.5, 5)
    other = running(beads(3), mp.BAGOGABIntegrator(0.5, kT=1.0))
    other.set_state(state)
    assert (other.time, other.step_count) == (3.5, 5)
    other.step(1)
    assert other.time == 4.0


def test_without_changes_time_is_the_number_of_steps_times_the_timestep():
    """To the last bit, as files of before have it, also where a state is taken over."""
    context, other = (running(beads(), mp.BAGOGABIntegrator(0.1, kT=1.0)) for _ in range(2))
    context.step(3)
    other.set_state(context.get_state(positions=True, velocities=True))
    other.step(6)
    assert other.time == 9 * 0.1 != 3 * 0.1 + 6 * 0.1
    other.integrator.set(kT=2.0)
    other.step(1)
    assert other.time == 10 * 0.1


# Files ------------------------------------------------------------------------------------------------------------


def test_a_checkpoint_with_other_numbers_is_refused_and_the_message_says_what_to_set(tmp_path):
    simulation = mp.Simulation(mp.System(beads().topology), mp.BAGOGABIntegrator(0.1, kT=1.0))
    simulation.step(2)
    simulation.save_checkpoint(tmp_path / "c")
    simulation.integrator.set(timestep=0.25, kT=2.0)
    simulation.step(2)
    before = everything_in(simulation.context)
    with pytest.raises(mp.ParameterError, match=r"timestep: 0.1 in the file, 0.25 here(.|\n)*kT: 1.0 in the file") as e:
        simulation.load_checkpoint(tmp_path / "c")
    assert "integrator.set(timestep=0.1, kT=1.0)" in str(e.value)
    assert same(before, everything_in(simulation.context))
    assert simulation.context.time == 0.7
    simulation.integrator.set(timestep=0.1, kT=1.0)
    simulation.load_checkpoint(tmp_path / "c")
    assert simulation.context.time == 0.2


class Heated(mp.SplittingIntegrator):
    """An integrator of another package, with arguments of its own."""

    def __init__(self, dt, degrees):
        super().__init__("BAOAB", dt, temperature=degrees)


def test_documents_and_copies_have_the_numbers_as_they_are(monkeypatch):
    import copy
    import pickle

    integrators = [mp.BAGOGABIntegrator(0.1, temperature=300.0), mp.VerletIntegrator(0.1), Heated(0.1, 300.0)]
    for integrator in integrators:
        integrator.set(timestep=0.2)
        if integrator.kT is not None:
            integrator.set(temperature=310.0)
        copies = [copy.deepcopy(integrator), pickle.loads(pickle.dumps(integrator))]
        if type(integrator) is not Heated:
            copies.append(mp.deserialize(mp.serialize(integrator)))
            assert "numbers" not in json.loads(mp.serialize(integrator))["content"]
        for other in copies:
            assert type(other) is type(integrator)
            assert (other.timestep, other.kT) == (0.2, integrator.kT)
    assert integrators[0].kT == 310.0 * mp.units.boltzmann


# Refusals and warnings --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("numbers", "message"), [
    ({"timestep": 0.0}, r"timestep = 0.0 but must be finite and > 0"),
    ({"timestep": np.nan, "kT": 2.0}, r"timestep = nan"),
    ({"kT": 2.0, "timestep": -1.0}, r"timestep = -1.0"),
    ({"temperature": "warm", "timestep": 0.2}, r"temperature = 'warm' but must be a number"),
    ({"kT": -1.0}, r"kT = -1.0"),
    ({"kT": 1.0, "temperature": 300.0}, r"not both"),
    ({"seed": 2}, r"set has no argument 'seed'.*set\(\*, timestep=None, temperature=None, kT=None\)"),
    ({"temprature": 2}, r"did you mean 'temperature'"),
])  # fmt: skip
def test_refusals_change_nothing(numbers, message):
    integrator = mp.BAGOGABIntegrator(0.1, kT=1.0)
    context = running(beads(), integrator)
    refuses(mp.ParameterError, message, integrator.set, **numbers)
    assert (integrator.timestep, integrator.kT, integrator.version) == (0.1, 1.0, 0)
    context.step(1)
    assert context.time == 0.1


def test_a_word_without_noise_has_no_temperature_to_set():
    integrator = mp.VerletIntegrator(0.1)
    for change in (lambda: integrator.set(kT=1.0), lambda: setattr(integrator, "temperature", 300.0)):
        refuses(mp.ParameterError, r"the word 'B A G A B' has no O", change)


def test_timesteps_that_are_too_long_are_warned_of_when_they_are_set():
    """As when a Context, or an integrator with a kick, is made; not again where a timestep becomes shorter."""
    handle = beads()
    integrator = mp.BAGOGABIntegrator(0.1, kT=1.0)
    context = running(handle, integrator, mp.forces.HarmonicTrap(handle, 100.0, [0.0, 0.0, 0.0]))
    integrator.set(timestep=0.25)
    with pytest.warns(mp.TimestepWarning, match=r"HarmonicTrap: the timestep 0.25 s is beyond .* 0.2 s"):
        context.get_state()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        context.get_state()
        integrator.set(kT=2.0)
        context.get_state()
        integrator.set(timestep=0.1)
        context.get_state()
    with pytest.warns(mp.TimestepWarning, match=r"ZhangSkeel: beta = 0.1 .* at the timestep 0.1 s"):
        integrator = mp.BAGOGABIntegrator(0.1, kT=1.0, kick=mp.kicks.ZhangSkeel(0.1))
    with pytest.warns(mp.TimestepWarning, match=r"ZhangSkeel: beta = 0.1 .* at the timestep 0.3 s"):
        integrator.set(timestep=0.3)
