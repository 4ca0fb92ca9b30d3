"""Laws of force that read the exponential mean of a tension: its course, what thermal motion makes of it, its state."""

import math

import numpy as np
import pytest
from builders import averaged_tensions, linked_beads, refuses

import medyanpy as mp
from medyanpy.files.documents import deserialize, serialize
from medyanpy.testing import JumpCase, check_chi_square, check_mean
from medyanpy.testing.jumps import check_bits

KT = 4.141947


@pytest.mark.parametrize("every", [1, 5])
def test_the_mean_of_a_constant_tension_comes_in_exponentially(every):
    stretch = np.array([1.0, 3.0, -2.0])
    simulation, _ = linked_beads(3, stretch, mp.jumps.Bell(5.0, average=0.8), every=every)
    for _ in range(4):
        simulation.step(5)
        passed = 1.0 - math.exp(-simulation.context.time / 0.8)
        np.testing.assert_allclose(averaged_tensions(simulation), 2.0 * stretch * passed, rtol=1e-9)


def test_links_let_go_by_their_mean():
    """Under a load that is there from the time on when they bind, the rate comes in with the mean."""
    force, time, n = 8.0, 1.0, 7000
    simulation, _ = linked_beads(n, 4.0, mp.jumps.Bell(4.0, average=0.7), 0.02, off_rate=0.3)
    simulation.step(50)
    t = (np.arange(4000) + 0.5) * time / 4000
    rate = 0.3 * np.exp(force * (1.0 - np.exp(-t / 0.7)) / 4.0)
    left = len(simulation.context.get_state(positions=True).jumps["binding"]["links"])
    bound = math.exp(-rate.mean() * time)
    check_chi_square("bound", [left, n - left], n * np.array([bound, 1.0 - bound]), sees=0.1)


def test_links_that_push_let_go_as_relaxed_ones():
    simulation, _ = linked_beads(7000, -4.0, mp.jumps.CatchSlip(0.5, 2.0, 3.0, average=0.1), off_rate=1.0)
    simulation.step(20)
    left = len(simulation.context.get_state(positions=True).jumps["binding"]["links"])
    bound = math.exp(-1.0)
    check_chi_square("bound", [left, 7000 - left], 7000 * np.array([bound, 1.0 - bound]), sees=0.1)


def closed_form(ratio, stiffness=8.0, force=4.0):
    """Of a relaxed link, over the rate without a load; ratio: the time of the mean over that of the link."""
    s = math.sqrt(stiffness * KT / (1.0 + ratio)) / force
    return 0.5 + math.exp(0.5 * s * s) * 0.5 * math.erfc(-s / math.sqrt(2.0))


def test_the_closed_form_has_the_values_that_are_told():
    told = [closed_form(ratio) for ratio in (0.0, 10.0, 100.0, 1000.0)]
    np.testing.assert_allclose(told, [3.105, 1.234, 1.063, 1.019], atol=6e-4)
    text = mp.jumps.Bell.__doc__
    assert "1.234, 1.063 and 1.019" in text


@pytest.mark.parametrize(("force", "told", "off", "timestep", "steps", "n", "sees"), [
    (17.3, 1.166, 0.02, 0.1, 400, 15_000, 0.037), (4.0, 3.105, 0.002, 0.05, 2000, 6000, 0.063),
])  # fmt: skip
def test_relaxed_links_that_read_the_force_of_the_moment_let_go_more_often(force, told, off, timestep, steps, n, sees):
    """Of many links the share that is left: it would see a factor that is off by 10 % or 20 %."""
    assert closed_form(0.0, force=force) == pytest.approx(told, abs=6e-4)
    simulation, _ = linked_beads(n, 0.0, mp.jumps.Bell(force), timestep, off, stiffness=8.0, friction=8.0)
    simulation.step(steps)
    left = np.zeros(n)
    left[simulation.context.get_state(positions=True).jumps["binding"]["links"][:, 0]] = 1.0
    check_mean("links that are left", left, math.exp(-told * off * timestep * steps), sees=sees)


@pytest.mark.parametrize("ratio", [10.0, 3.0, 100.0])
def test_relaxed_links_let_go_as_often_as_the_closed_form_says(ratio):
    """Factors of rates, of many links in a row of times that forget."""
    tau, n = 1.0, 1500
    rates = mp.jumps.Bell(4.0, average=ratio * tau)
    simulation, _ = linked_beads(n, 0.0, rates, 0.05 * tau, stiffness=8.0, friction=8.0 * tau)
    simulation.step(round(6.0 * ratio / 0.05))
    seen = np.exp(np.maximum(averaged_tensions(simulation), 0.0) / 4.0)
    expected = closed_form(ratio)
    check_mean(f"at {ratio} τ", seen, expected, sees=0.5 * (closed_form(0.8 * ratio) - 1.0))


def case_of(average):
    """One link under a load: its rate is that of the mean, which is not that of the moment."""
    rates = [[0.0, 1.0], [1.0, 0.0]]

    def make(copies, seed, threads, timestep):
        make.copies = copies
        bell, numbers = mp.jumps.Bell(2.0, average=average), {"off_rate": 1.0, "on_rate": 1.0, "bound": False}
        return linked_beads(copies, 1.0, bell, timestep, seed=seed, threads=threads, **numbers)[0]

    def states(state):
        bound = np.zeros(make.copies, int)
        bound[state.jumps["binding"]["links"][:, 0]] = 1
        return bound

    return JumpCase("binding", make, states, rates, np.array([0.0, 1.0]), KT, None, 0, True)


def test_averages_have_the_same_bits_however_a_run_is_cut_and_saved():
    check_bits(case_of(0.5))


def test_averages_are_in_checkpoints(tmp_path):
    simulation, _ = linked_beads(4, 1.5, mp.jumps.Bell(5.0, average=0.8))
    simulation.step(7)
    simulation.save_checkpoint(tmp_path / "saved")
    resumed = mp.Simulation.resume(tmp_path / "saved")
    assert np.array_equal(averaged_tensions(resumed), averaged_tensions(simulation))
    assert averaged_tensions(simulation).min() > 0.5


def test_averages_stay_with_their_links_in_edits():
    stretch = np.array([1.0, 2.0, 3.0, 4.0])
    simulation, beads = linked_beads(4, stretch, mp.jumps.Bell(5.0, average=0.8))
    simulation.step(7)
    before = averaged_tensions(simulation)
    with simulation.topology.edit():
        beads.remove(beads.beads[[1]], terms="remove")
    after = averaged_tensions(simulation)
    assert np.array_equal(after, before[[0, 2, 3]])


def test_a_link_that_binds_again_begins_without_a_load():
    simulation, _ = linked_beads(1, 1.0, mp.jumps.Bell(50.0, average=1e6), 0.05, off_rate=40.0, on_rate=40.0)
    passed = []
    for _ in range(200):
        simulation.step(1)
        passed += averaged_tensions(simulation).tolist()
    # Bound at most some tenths of a second of a million.
    assert 0.0 < max(passed) < 2.0 * 1.0 / 1e6


def test_documents_hold_averages():
    for rates in (mp.jumps.Bell(5.0, average=0.8), mp.jumps.CatchSlip(0.5, 2.0, 3.0, average=2.0)):
        simulation, _ = linked_beads(2, 1.5, rates)
        again, _ = deserialize(serialize(simulation))
        assert repr(again["binding"]._rates) == repr(rates)
        assert again["binding"]._rates.average == rates.average
    refuses(mp.ParameterError, "average = 0", mp.jumps.Bell, 5.0, average=0.0)
