"""Ramps and callbacks: numbers that change in a run, the work that this does, and runs that go on in the middle."""

import numpy as np
import pytest
from builders import look, refuses

import medyanpy as mp
from medyanpy.errors import TopologyError
from medyanpy.reporters import Callback, CheckpointReporter, Ramp
from medyanpy.testing import check_mean, check_same_mean

KT = 1.0


def trapped(n=5, stiffness=1.0, seed=3, word="BAOAB", timestep=0.1):
    """Beads in a trap, in equilibrium with it."""
    rng = np.random.default_rng(seed)
    topology = mp.Topology()
    beads = topology.add_beads(rng.normal(0.0, np.sqrt(KT / stiffness), (n, 3)), mass=1.0, friction=2.0)
    system = mp.System(topology)
    trap = system.add_force(mp.forces.HarmonicTrap(beads, stiffness, [0.0, 0.0, 0.0]))
    integrator = mp.SplittingIntegrator(word, timestep, **({"kT": KT} if "O" in word else {}), seed=seed)
    simulation = mp.Simulation(system, integrator, threads=1)
    simulation.context.set_velocities_to_temperature(kT=KT, seed=seed + 1)
    return simulation, trap


def ramped(a, b, steps, every=1, n=4, seed=3):
    """A ramp of the stiffness, with the work of each coordinate by hand, from where beads are: at the end of a block of
    steps the stiffness becomes that of the next."""
    simulation, trap = trapped(n, a, seed)
    starts = range(0, steps, every)
    stiffness = {s: a + (b - a) * 0.5 * (s + min(s + every, steps)) / steps for s in starts} | {steps: b}
    last, work = a, 0.0

    def add(_, state):
        nonlocal last, work
        if state.step in stiffness:
            work = work + 0.5 * (stiffness[state.step] - last) * state.positions**2
            last = stiffness[state.step]

    add(None, look(simulation))
    simulation.reporters.append(Callback(1, add, include="positions"))
    ramp = simulation.ramp(trap, stiffness=(a, b), steps=steps, every=every)
    return simulation, trap, ramp, work


@pytest.mark.parametrize("every", [1, 4])
def test_work_is_what_each_change_costs_where_beads_are(every):
    simulation, trap, ramp, work = ramped(1.0, 2.5, steps=42, every=every)
    assert ramp.work == pytest.approx(work.sum(), rel=1e-12)
    assert ramp.work > 0.1
    assert trap.stiffness[0] == 2.5
    assert simulation.current_step == ramp.end == 42
    state = look(simulation)
    assert state.protocol_work == pytest.approx(ramp.work, rel=1e-12)
    # After its end it changes nothing.
    trap.set(stiffness=1.0)
    simulation.step(10)
    assert trap.stiffness[0] == 1.0
    assert ramp.work == pytest.approx(work.sum(), rel=1e-12)


def test_books_close_over_a_ramp_of_several_numbers():
    simulation, trap = trapped(20)
    simulation.report_work = True
    before = look(simulation)
    ramp = simulation.ramp({trap: {"stiffness": (1.0, 3.0, 0.5), "center": ([0.0, 0.0, 0.0], [1.0, -2.0, 0.0])},
                            simulation.integrator: {"kT": lambda f: 1.0 + f * f}}, steps=30)  # fmt: skip
    after = look(simulation)
    change = after.total_energy - before.total_energy
    assert change == pytest.approx(after.heat + after.shadow_work + after.protocol_work, rel=1e-12)
    assert ramp.work == pytest.approx(after.protocol_work, rel=1e-12)
    assert trap.stiffness[0] == 0.5
    np.testing.assert_array_equal(trap.center, [1.0, -2.0, 0.0])
    assert simulation.integrator.kT == 2.0


def test_numbers_follow_the_steps():
    simulation, trap = trapped()
    seen = []
    simulation.reporters.append(Callback(1, lambda s, state: seen.append(trap.stiffness[0])))
    simulation.step(3)
    simulation.ramp(trap, stiffness=(1.0, 2.0, 4.0), steps=8, every=2, start=5)
    # The callback comes first: it sees what the step that has just been taken was made with.
    assert seen == [1.0] * 5 + [1.25] * 2 + [1.75] * 2 + [2.5] * 2 + [3.5] * 2
    assert trap.stiffness[0] == 4.0


def test_numbers_of_membranes():
    topology = mp.Topology()
    membrane = topology.add_membrane(mp.TriangleMesh.icosphere(10.0, 2), vertex_mass=1.0, vertex_friction=1.0)
    system = mp.System(topology)
    v0 = membrane.mesh.volume
    volume = system.add_force(mp.forces.MembraneVolume(membrane, 1.0, v0))
    area = system.add_force(mp.forces.MembraneArea(membrane, 1.0, membrane.mesh.area))
    tension = system.add_force(mp.forces.MembraneTension(membrane, 0.1))
    simulation = mp.Simulation(system, mp.SplittingIntegrator("BAOAB", 1e-3, kT=1.0), threads=1)
    simulation.ramp(
        {
            volume: {"volume": (v0, 0.9 * v0)},
            area: {"area": (area.area, 1.1 * area.area)},
            tension: {"tension": (0.1, 0.2)},
        },
        steps=10,
        every=5,
    )
    assert (volume.volume, tension.tension) == (0.9 * v0, 0.2)
    assert area.area == pytest.approx(1.1 * membrane.mesh.area, rel=1e-15)


def in_a_box():
    """Springs through the sides of a box."""
    rng = np.random.default_rng(4)
    topology = mp.Topology()
    topology.add_beads(rng.uniform(0.0, 10.0, (12, 3)), mass=1.0, friction=1.0)
    system = mp.System(topology, box=(10.0, 12.0, None))
    system.add_force(mp.forces.SoftSphere(topology.handles, topology.handles, stiffness=2.0, diameter=4.0))
    return mp.Simulation(system, mp.SplittingIntegrator("BAOAB", 0.05, kT=KT, seed=6), threads=1)


def test_numbers_of_jumps():
    topology = mp.Topology()
    topology.add_beads(np.random.default_rng(1).uniform(0.0, 10.0, (20, 3)), mass=1.0, friction=1.0)
    system = mp.System(topology, box=(10.0, 10.0, 10.0))
    jump = system.add_jump(mp.jumps.BoxArea(pressure=0.02, rate=2.0, step=0.1))
    simulation = mp.Simulation(system, mp.SplittingIntegrator("JBAOABJ", 0.1, kT=KT, seed=6), threads=1)
    ramp = simulation.ramp(jump, pressure=(0.02, 0.1), rate=(2.0, 4.0), steps=20, every=4)
    assert (jump.pressure, jump.rate) == (0.1, 4.0)
    assert ramp.work == 0.0
    refuses(mp.ParameterError, "rate = -1", simulation.ramp, "BoxArea", rate=(-1.0, 4.0), steps=20)


def test_a_box_that_is_squeezed(tmp_path):
    """Work is what each change costs, beads scaled with it; and a cut changes nothing."""
    simulation = in_a_box()
    simulation.report_work = True
    start = look(simulation)
    ramp = simulation.ramp("box", x=(10.0, 8.5), y=lambda f: 12.0 - f, steps=20, every=5)
    end = look(simulation)
    assert end.box == (8.5, 11.0, None)
    assert ramp.work == pytest.approx(end.protocol_work, rel=1e-12)
    assert ramp.work > 0.5
    change = end.total_energy - start.total_energy
    assert change == pytest.approx(end.heat + end.shadow_work + end.protocol_work, rel=1e-11)
    again = in_a_box()
    again.reporters.append(Ramp({"box": {"x": (10.0, 8.5), "y": (12.0, 11.0)}}, steps=20, every=5))
    again.step(8)
    assert look(again).box == (10.0 - 0.375 * 1.5, 12.0 - 0.375, None)
    again.save_checkpoint(tmp_path / "a.checkpoint")
    resumed = mp.Simulation.resume(tmp_path / "a.checkpoint")
    resumed.step(12)
    assert look(resumed).positions.tobytes() == end.positions.tobytes()
    assert resumed.reporters[0].work == pytest.approx(ramp.work, rel=1e-12)
    for match, sides in (
        ("'z' is not a closed side of the box; x, y can be set", {"z": (10.0, 9.0)}),
        ("x = -1.0 but must be finite and > 0", {"x": (-1.0, 10.0)}),
        ("reaches 4 nm, and the box is", {"x": (10.0, 7.0)}),
    ):
        refuses(mp.ParameterError, match, simulation.ramp, "box", steps=5, **sides)
    open_space, _ = trapped()
    refuses(TopologyError, "'box'", open_space.ramp, "box", x=(1.0, 2.0), steps=5)


# Free energies -------------------------------------------------------------------------------------------------


def works(a, b, steps, every, seed, n=20_000):
    """(3n,) of a trap that becomes stiffer or softer, from equilibrium: each coordinate is a system of its own."""
    _, _, ramp, work = ramped(a, b, steps, every, n, seed)
    assert ramp.work == pytest.approx(work.sum(), rel=1e-10)
    return work.ravel()


def test_jarzynski_and_crooks_of_a_stiffening_trap():
    """Over a quarter of the trap's relaxation time, far from equilibrium: the mean work is well above ΔF."""
    a, b = 1.0, 1.6
    forth, back = works(a, b, 8, 2, seed=5), works(b, a, 8, 2, seed=6)
    free_energy = 0.5 * KT * np.log(b / a)
    check_mean("exp(-W/kT)", np.exp(-forth / KT), np.sqrt(a / b), sees=0.01)
    check_same_mean("Crooks", np.exp(-0.5 * forth / KT), np.exp(-0.5 * back / KT - free_energy / KT), sees=0.008)
    assert forth.mean() - free_energy > 10 * forth.std() / np.sqrt(len(forth))


def test_slow_ramps_do_the_free_energy():
    a, b = 1.0, 1.6
    free_energy = 0.5 * KT * np.log(b / a)
    excess = [(w := works(a, b, steps, steps // 20, seed=7, n=10_000)).mean() - free_energy for steps in (20, 80, 320)]
    # Falling as 1/time from where friction is what holds beads back.
    assert excess[0] > 2.0 * excess[1] > 4.0 * excess[2]
    error = w.std() / np.sqrt(len(w))
    assert abs(excess[2]) < 5 * error + 0.03 * free_energy


# Runs that go on -----------------------------------------------------------------------------------------------


def in_a_folder(folder):
    simulation, _ = trapped()
    simulation.reporters.append(mp.reporters.TrajectoryReporter(folder / "run.h5", 5))
    simulation.reporters.append(Ramp({"HarmonicTrap": {"stiffness": (1.0, 2.0)}}, 60, start=7, every=4))
    simulation.reporters.append(CheckpointReporter(folder / "run.checkpoint", 10))
    return simulation


def end_of(folder):
    simulation = mp.Simulation.resume(folder / "run.checkpoint")
    with simulation:
        [ramp] = [one for one in simulation.reporters if isinstance(one, Ramp)]
        state = look(simulation)
        return state.positions.tobytes(), state.protocol_work, state.heat, ramp.work


def test_run_resumed_in_the_middle_has_the_same_bits_and_work(tmp_path):
    mp.run(tmp_path / "once", in_a_folder, until=80)
    for until in (3, 7, 9, 11, 30, 66, 67, 70, 80):
        mp.run(tmp_path / "often", in_a_folder, until=until)
    once, often = end_of(tmp_path / "once"), end_of(tmp_path / "often")
    assert once == often
    assert np.isfinite(once[3])
    assert once[3] == once[1]


@pytest.mark.parametrize("cut", [7, 20, 33, 67])
def test_repeated_call_takes_the_remaining_steps(tmp_path, cut):
    simulation, trap = trapped()
    simulation.step(7)
    whole = simulation.ramp(trap, stiffness=(1.0, 2.0), steps=60, every=4)
    end = look(simulation)
    assert simulation.ramp(trap, stiffness=(1.0, 2.0), steps=60, every=4, start=7) is whole
    assert simulation.current_step == 67

    again, trap = trapped()
    again.step(7)
    ramp = Ramp({"HarmonicTrap": {"stiffness": (1.0, 2.0)}}, 60, start=7, every=4)
    again.reporters.append(ramp)
    again.step(cut - 7)
    again.save_checkpoint(tmp_path / "a.checkpoint")
    resumed = mp.Simulation.resume(tmp_path / "a.checkpoint")
    ramp = resumed.ramp("HarmonicTrap", stiffness=(1.0, 2.0), steps=60, every=4, start=7)
    state = look(resumed)
    assert state.positions.tobytes() == end.positions.tobytes()
    assert ramp.work == whole.work
    assert (state.heat, state.protocol_work) == (end.heat, end.protocol_work)
    resumed.step(5)
    assert resumed.system["HarmonicTrap"].stiffness[0] == 2.0
    # Past its end the call does nothing.
    resumed.system["HarmonicTrap"].set(stiffness=1.5)
    assert resumed.ramp("HarmonicTrap", stiffness=(1.0, 2.0), steps=60, every=4, start=7).work == whole.work
    assert (resumed.current_step, resumed.system["HarmonicTrap"].stiffness[0]) == (72, 1.5)


def test_interrupted_ramp_resumes_with_the_same_call():
    simulation, trap = trapped()
    whole = simulation.ramp(trap, stiffness=(1.0, 2.0), steps=30, every=4)
    end = look(simulation)
    again, trap = trapped()

    def fail(simulation, state):
        raise KeyboardInterrupt

    again.reporters.append(Callback(13, fail))
    with pytest.raises(KeyboardInterrupt):
        again.ramp(trap, stiffness=(1.0, 2.0), steps=30, every=4)
    assert again.current_step == 13
    assert trap.stiffness[0] < 2.0
    del again.reporters[0]
    ramp = again.ramp(trap, stiffness=(1.0, 2.0), steps=30, every=4, start=0)
    assert again.current_step == 30
    assert ramp.work == whole.work
    assert look(again).positions.tobytes() == end.positions.tobytes()


def test_work_of_a_ramp_that_was_not_seen_from_its_start_is_not_known(tmp_path):
    simulation, _ = trapped()
    simulation.step(20)
    ramp = simulation.ramp("HarmonicTrap", stiffness=(1.0, 2.0), steps=40, start=0)
    assert np.isnan(ramp.work)
    assert simulation.system["HarmonicTrap"].stiffness[0] == 2.0


# Callbacks -----------------------------------------------------------------------------------------------------


def test_a_callback_changes_numbers_and_that_is_protocol_work():
    simulation, trap = trapped()
    simulation.report_work = True
    expected = 0.0

    def soften(one, state):
        nonlocal expected
        assert one is simulation
        expected -= 0.1 * 0.5 * (state.positions**2).sum()
        trap.set(stiffness=trap.stiffness - 0.1)

    simulation.reporters.append(Callback(10, soften, include=["positions"]))
    simulation.step(55)
    assert trap.stiffness[0] == pytest.approx(0.5)
    assert look(simulation).protocol_work == pytest.approx(expected, rel=1e-12)


def test_a_callback_may_not_step_and_what_it_raises_ends_the_run(tmp_path):
    simulation, _ = trapped()
    simulation.reporters.append(Callback(4, lambda one, state: one.step(1)))
    refuses(mp.ContextInUseError, "was called by a reporter", simulation.step, 10)
    assert simulation.current_step == 4
    simulation.reporters.clear()
    simulation.reporters.append(Callback(4, lambda one, state: None))
    simulation.save_checkpoint(tmp_path / "a.checkpoint")
    with pytest.warns(mp.ReporterWarning, match="Callback"):
        mp.Simulation.resume(tmp_path / "a.checkpoint")


REFUSED = {
    "'stifness' cannot be set; stiffness, center can": {"stifness": (1, 2)},
    "HarmonicTrap: stiffness = -0.0": {"stiffness": (1, -1)},
    "stiffness must be two finite values or more": {"stiffness": 2.0},
    "stiffness must be two finite values or more, from": {"stiffness": (1.0, np.inf)},
    "HarmonicTrap: stiffness = -0.00": {"stiffness": lambda f: 0.5 - f},
    "must be a dict of numbers by their names": {},
    "Ramp: steps = 0": {"stiffness": (1, 2), "steps": 0},
    "Ramp: every = 0": {"stiffness": (1, 2), "every": 0},
    "Ramp: start = -1": {"stiffness": (1, 2), "start": -1},
    "is not a force or jump of this system": {"target": "another"},
    "there is no force 'HarmonicTrp': did you mean": {"target": "HarmonicTrp", "stiffness": (1, 2)},
    "'seed' cannot be set; timestep, temperature, kT can": {"target": "integrator", "seed": (1, 2)},
    "kT = 0.0 but": {"target": "integrator", "kT": (1, 0)},
    "numbers of several targets are in the dict": {"target": {"HarmonicTrap": {}}, "kT": (1, 2)},
}


@pytest.mark.parametrize(("match", "call"), REFUSED.items())
def test_ramps_are_refused_before_any_step(match, call):
    simulation, trap = trapped()
    call = {"target": trap, "steps": 5, **call}
    if call["target"] == "another":
        call |= {"target": mp.forces.HarmonicTrap(trap.handles[0], 1.0, [0, 0, 0]), "stiffness": (1, 2)}
    refuses((mp.ParameterError, TopologyError), match, simulation.ramp, **call)
    assert simulation.current_step == 0
    assert simulation.reporters == []


def test_other_refusals():
    for match, call in (
        ("Ramp: numbers must be such as", lambda: Ramp(3.0, 5)),
        ("Callback: function must be callable", lambda: Callback(1, 3)),
        ("include has 'energies', which is none of positions", lambda: Callback(1, print, include="energies")),
    ):
        refuses(mp.ParameterError, match, call)
    cold, _ = trapped(word="BAB")
    refuses(mp.ParameterError, "has no O", cold.ramp, "integrator", temperature=(300, 310), steps=5)
    simulation, _ = trapped()
    # One that is appended is looked at before the next step.
    simulation.reporters.append(Ramp({"Trap": {"stiffness": (1, 2)}}, 5))
    refuses(TopologyError, "'Trap'", simulation.step, 1)
    assert simulation.current_step == 0
    for mark in (3, {"before": 1.0}, {"before": "x", "work": None, "ended": False}):
        refuses(mp.ParameterError, "Ramp: mark", simulation.reporters[0].check_mark, simulation, mark)
