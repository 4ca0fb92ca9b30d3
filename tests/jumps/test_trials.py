"""Moves of beads that a Python function proposes: a Markov chain on positions, beside flights and alone."""

import re

import numpy as np
import pytest
from builders import refuses, system_with

import medyanpy as mp
from medyanpy.errors import ParameterError, SimulationError, TopologyError
from medyanpy.testing import check_mean

KT = 2.0


def anywhere_near(x, uniform):
    row = int(uniform[0] * len(x))
    return [row], [x[row] + 3.0 * (uniform[1:] - 0.5)]


def farther_out(x, uniform):
    """Along x alone, by a factor: the density of proposals is not that of the way back."""
    row = int(uniform[0] * len(x))
    factor = np.exp(0.8 * (uniform[1] - 0.5))
    to = x[row].copy()
    to[0] *= factor
    # a(x -> x') is 1/(0.8 x'): b/a = x'/x.
    return [row], [to], np.log(factor)


def run(propose=anywhere_near, rate=100.0, n=400, friction=1e30, threads=1, seed=1, forces=None, **bead):
    """Beads each in a trap, at rest but for trial moves where friction is this large."""
    topology = mp.Topology()
    start = np.random.default_rng(3).normal(1.0, 0.5, (n, 3))
    beads = topology.add_beads(start, mass=1.0, friction=friction, name="beads", **bead)
    trap = mp.forces.HarmonicTrap(beads, 1.5, (0.0, 0.0, 0.0))
    system = system_with(topology, trap, *([] if forces is None else forces(beads)))
    system.add_jump(mp.jumps.TrialMoves(beads, propose, rate=rate * n, name="moves"))
    return mp.Simulation(system, mp.BrownianIntegrator(0.05, kT=KT, seed=seed), threads=threads)


def squares_of(simulation, steps=20, looks=60):
    simulation.step(4 * steps)
    out = []
    for _ in range(looks):
        simulation.step(steps)
        out.append(simulation.context.get_state(positions=True).positions ** 2)
    return np.array(out)


def test_beads_in_traps_have_their_temperature():
    """kT/k of each coordinate, at 20 trials a bead and step, and with a flight between."""
    for friction in (1e30, 3.0):
        squares = squares_of(run(friction=friction, rate=20.0, n=200), looks=30)
        check_mean(f"squares at friction {friction:g}", squares.mean(axis=(1, 2)), KT / 1.5, sees=0.2)


def test_the_ratio_of_proposals_counts():
    """A move by a factor has another density of the way back; without the ratio the mean square would be 0.63 of it."""
    squares = squares_of(run(farther_out, rate=20.0, n=200), looks=40)[:, :, 0]
    check_mean("squares along x", squares.mean(axis=1), KT / 1.5, sees=0.3)


def test_events_have_the_energy_and_bits_are_those_of_any_threads():
    simulations = [run(threads=threads, n=50) for threads in (1, 2)]
    energies = []
    for simulation in simulations:
        context = simulation.context
        events = context.events()
        before = context.get_state(energy=True).potential_energy
        simulation.step(20)
        after = context.get_state(energy=True, positions=True)
        heard = events.heard()
        assert len(heard) > 500
        assert abs(sum(event.energy for event in heard) - (after.potential_energy - before)) < 1e-9 * len(heard)
        energies.append(after)
    assert (energies[0].positions == energies[1].positions).all()


def test_events_name_the_bead_by_its_number():
    """Vertices of a membrane come first in the arrays of a Context, and last in this topology."""
    topology = mp.Topology()
    beads = topology.add_beads(np.zeros((3, 3)), mass=1.0, friction=1.0)
    topology.add_membrane(mp.TriangleMesh.icosphere(10.0, 1), vertex_mass=1.0, vertex_friction=1.0)
    system = mp.System(topology)
    system.add_jump(mp.jumps.TrialMoves(beads, lambda x, u: ([2], [x[2] + 1.0]), rate=100.0))
    context = mp.Context(system, mp.BrownianIntegrator(0.05, kT=KT, seed=1), threads=1)
    events = context.events()
    context.step(2)
    assert {event.a for event in events.heard()} == {beads.beads[2]}


def test_a_run_resumes_from_a_checkpoint(tmp_path):
    whole = run(n=30)
    whole.step(10)
    whole.save_checkpoint(tmp_path / "half.npz")
    whole.step(10)
    other = run(n=30)
    other.load_checkpoint(tmp_path / "half.npz")
    other.step(10)
    mine, theirs = (one.context.get_state(positions=True) for one in (whole, other))
    assert (mine.positions == theirs.positions).all()


def test_no_move_is_none():
    simulation = run(lambda x, uniform: None, n=5)
    before = simulation.context.get_state(positions=True).positions
    simulation.step(3)
    assert np.abs(simulation.context.get_state(positions=True).positions - before).max() < 1e-12
    assert simulation.system.jumps[0].counts.tried > 10
    assert simulation.system.jumps[0].counts.accepted == 0


def raises(x, uniform):
    raise ValueError("no such move")


@pytest.mark.parametrize(
    ("propose", "text"),
    [
        (raises, "no such move"),
        (lambda x, u: 3, "must return None"),
        (lambda x, u: ([7], [[0.0, 0.0, 0.0]]), r"different numbers from 0 to 4, not \[7\]"),
        (lambda x, u: ([1, 1], np.zeros((2, 3))), r"not \[1, 1\]"),
        (lambda x, u: ([1], np.zeros((2, 3))), "x must have shape"),
        (lambda x, u: ([1], [[np.nan, 0.0, 0.0]]), "x"),
        (lambda x, u: ([1], np.zeros((1, 3)), np.inf), "log_ratio"),
        (lambda x, u: x.__setitem__(0, 1.0), "read-only"),
    ],
)
def test_errors_of_the_function_are_reported(propose, text):
    simulation = run(propose, n=5)
    before = simulation.context.get_state(positions=True).positions
    with pytest.raises(SimulationError, match="moves") as raised:
        simulation.step(5)
    assert re.search(text, str(raised.value))
    assert (simulation.context.get_state(positions=True).positions == before).all()


def test_beads_that_cannot_be_moved_are_refused():
    topology = mp.Topology()
    sheet = topology.add_membrane(mp.TriangleMesh.icosphere(10.0, 1), vertex_mass=1.0)
    points = topology.add_intriangle_points(sheet, 3, mass=1.0, friction=1.0, seed=1)
    free = topology.add_beads(np.zeros((2, 3)), mass=1.0, friction=1.0)
    for handle in (sheet, points):
        refuses(TopologyError, "not free to move in space", mp.jumps.TrialMoves, handle, anywhere_near, rate=1.0)
    refuses(TopologyError, "must be a handle", mp.jumps.TrialMoves, [0, 1], anywhere_near, rate=1.0)
    refuses(ParameterError, "must be callable", mp.jumps.TrialMoves, free, 3.0, rate=1.0)
    refuses(ParameterError, "rate", mp.jumps.TrialMoves, free, anywhere_near, rate=-1.0)


@pytest.mark.filterwarnings("error::medyanpy.errors.PerformanceWarning")
def test_pairs_are_looked_at_near_the_bead_alone():
    """200 and 1600 beads at one density: as many terms for a trial."""
    found = []
    for n in (200, 1600):
        apart = 0.3 * (200 / n) ** (1 / 3)
        simulation = run(n=n, rate=1000.0 / n, forces=lambda b, apart=apart: [mp.forces.SoftSphere(b, b, 1.0, apart)])
        simulation.step(5)
        operation = simulation.context._schedule.bound[1]
        found.append(operation.examined / simulation.system.jumps[0].counts.tried)
    assert 0.0 < found[1] < 2.0 * found[0]
