"""What the file of a run holds of links and beads that come and go, and how runs with them resume."""

import h5py
import numpy as np
import pytest
from builders import content, refuses
from files.contents import everything, pairs_of, recorded

import medyanpy as mp

# Files, and processes that are killed: no kernel that other tests do not reach.
pytestmark = pytest.mark.slow


def network(n=6):
    """Beads in a row, joined by links that scripts change."""
    topology = mp.Topology()
    topology.add_beads(np.column_stack([np.arange(float(n)), np.zeros((n, 2))]), mass=1.0)
    system = mp.System(topology)
    links = system.add_force(mp.forces.Links([0, 1], [1, 2], stiffness=1.0, length=1.0))
    return mp.Simulation(system, mp.VerletIntegrator(0.01), threads=1), links


def check_links(path, recorder, parts):
    with mp.Trajectory(path) as trajectory:
        assert len(trajectory.paths) == parts
        assert len(trajectory) == len(recorder.states)
        for frame, (ends,) in zip(trajectory, recorder.links, strict=True):
            assert frame.step == recorder.states[trajectory.steps.tolist().index(frame.step)].step
            expected = pairs_of(np.column_stack([ends.a.single_beads, ends.b.single_beads]))
            assert pairs_of(frame.bonds) == expected


def test_links_of_forces_come_and_go(tmp_path):
    """The first change begins a segment, in which there is room for more; further ones none until it is full."""
    simulation, links = network()
    recorder = recorded(simulation, tmp_path / "run.h5", 1)
    simulation.step(2)
    links.set(stiffness=2.0)
    simulation.step(1)
    check(tmp_path, simulation, recorder, 1)
    links.add([3], [4])
    simulation.step(2)
    check(tmp_path, simulation, recorder, 2)
    links.remove(0)
    simulation.step(1)
    links.move(1, b=[5])
    simulation.step(1)
    check(tmp_path, simulation, recorder, 2)
    links.add(*np.triu_indices(6, 1))
    links.add(*np.triu_indices(6, 1))
    links.add(*np.triu_indices(6, 1))
    simulation.step(1)
    check(tmp_path, simulation, recorder, 2)
    links.add(*np.triu_indices(6, 1))
    links.add(*np.triu_indices(6, 1))
    simulation.step(1)
    check(tmp_path, simulation, recorder, 3)
    simulation.close()


def check(folder, simulation, recorder, parts):
    simulation.reporters[0].flush()
    check_links(folder / "run.h5", recorder, parts)


def test_bonds_follow_beads_that_take_rows_of_others(tmp_path):
    """H5MD's tuples are of ids; those of frames are of rows."""
    topology = mp.Topology()
    line = np.column_stack([np.arange(3.0), np.zeros((3, 2))])
    topology.add_beads([[0.0, 9.0, 0.0]], mass=1.0)
    actin = topology.add_filaments([line, line + [0, 2, 0]], 1.0, 0.5, constrained=False, name="actin", capacity=8)
    simulation = mp.Simulation(mp.System(topology), mp.VerletIntegrator(0.01), threads=1)
    reporter = mp.reporters.TrajectoryReporter(tmp_path / "run.h5", 1)
    simulation.reporters.append(reporter)
    expected = []

    def go():
        simulation.step(1)
        expected.append((pairs_of(actin.beads[actin.links]), pairs_of(actin.ids[actin.links])))

    go()
    with topology.edit():
        actin.remove(0)
    go()
    with topology.edit():
        actin.add(np.column_stack([np.arange(4.0), np.full((4, 2), 5.0)]))
    go()
    simulation.close()
    assert expected[-1][0] != expected[-1][1]
    with mp.Trajectory(tmp_path / "run.h5") as trajectory, h5py.File(tmp_path / "run.h5") as file:
        assert len(trajectory.paths) == 1
        for k, (rows, ids) in enumerate(expected):
            assert pairs_of(trajectory[k].bonds) == rows
            tuples = file["connectivity/bonds/value"][k]
            assert pairs_of(tuples[(tuples >= 0).all(axis=1)]) == ids
            chains = trajectory[k].chains(trajectory.handles["actin"])
            assert sorted(map(len, chains)) == [[3, 3], [3], [3, 4]][k]
            assert set().union(*(pairs_of(np.column_stack([c[:-1], c[1:]])) for c in chains)) == rows


def test_links_that_change_before_the_first_frame_need_no_segment(tmp_path):
    simulation, links = network()
    recorder = recorded(simulation, tmp_path / "run.h5", 2)
    simulation.step(1)
    links.add([3], [4])
    simulation.step(3)
    simulation.close()
    check_links(tmp_path / "run.h5", recorder, 1)


@pytest.mark.parametrize("step", [4, 6, 8])
def test_runs_whose_links_changed_resume_with_the_same_files(tmp_path, step):
    def go(simulation, links, until):
        while simulation.current_step < until:
            if simulation.current_step == 4 and len(links) == 2:
                links.add([3], [4])
            if simulation.current_step == 6:
                links.remove(0)
            simulation.step(1)

    for name in ("whole", "resumed"):
        (tmp_path / name).mkdir()
    simulation, links = network()
    recorder = recorded(simulation, tmp_path / "whole/run.h5", 1)
    go(simulation, links, 10)
    simulation.close()
    check_links(tmp_path / "whole/run.h5", recorder, 2)

    simulation, links = network()
    simulation.reporters.append(mp.reporters.TrajectoryReporter(tmp_path / "resumed/run.h5", 1))
    go(simulation, links, step)
    simulation.save_checkpoint(tmp_path / "run.checkpoint")
    simulation.close()
    simulation = mp.Simulation.resume(tmp_path / "run.checkpoint", reporters=True)
    go(simulation, simulation.system["Links"], 10)
    simulation.close()
    for name in ("run.h5", "run.part0002.h5"):
        assert content(tmp_path / "whole" / name) == content(tmp_path / "resumed" / name)


def test_run_of_everything_resumes_with_the_same_file(tmp_path):
    for name in ("whole", "resumed"):
        (tmp_path / name).mkdir()
    simulation = everything()
    recorded(simulation, tmp_path / "whole/run.h5")
    simulation.step(8)
    simulation.close()
    simulation = everything()
    simulation.reporters.append(mp.reporters.TrajectoryReporter(tmp_path / "resumed/run.h5", 2))
    simulation.step(4)
    simulation.save_checkpoint(tmp_path / "run.checkpoint")
    simulation.step(2)
    simulation.close()
    simulation = mp.Simulation.resume(tmp_path / "run.checkpoint", reporters=True)
    simulation.step(4)
    simulation.close()
    assert content(tmp_path / "whole/run.h5") == content(tmp_path / "resumed/run.h5")


def test_files_with_other_links_are_not_appended_to(tmp_path):
    simulation, _ = network()
    recorded(simulation, tmp_path / "run.h5", 1)
    simulation.step(2)
    simulation.close()
    simulation, links = network()
    simulation.step(2)
    # Sites with the same main beads are other sites all the same.
    links.move(0, b=mp.Sites.weighted([[1, 2]], [[0.75, 0.25]]))
    simulation.reporters.append(mp.reporters.TrajectoryReporter(tmp_path / "run.h5", 1, append=True))
    refuses(mp.ParameterError, "the links of Links are others", simulation.step, 1)


def test_going_back_with_other_links_begins_a_segment(tmp_path):
    simulation, links = network()
    recorder = recorded(simulation, tmp_path / "run.h5", 1)
    simulation.step(2)
    state = simulation.context.get_state(positions=True, velocities=True)
    simulation.step(2)
    links.move(0, b=[5])
    simulation.context.set_state(state)
    simulation.step(3)
    simulation.close()
    del recorder.states[2:4], recorder.links[2:4]
    check_links(tmp_path / "run.h5", recorder, 2)


def test_a_force_that_is_added_begins_a_segment(tmp_path):
    simulation, _ = network()
    recorder = recorded(simulation, tmp_path / "run.h5", 1)
    simulation.step(2)
    with simulation.topology.edit():
        simulation.system.add_force(mp.forces.HarmonicTrap(simulation.topology["beads"], 1.0, [0.0, 0, 0]))
    simulation.step(2)
    simulation.close()
    with mp.Trajectory(tmp_path / "run.h5") as trajectory:
        assert len(trajectory.paths) == 2
        assert [f.energies for f in trajectory] == [s.energies for s in recorder.states]
        assert len(trajectory[0].system()[0].forces) == 1
        assert len(trajectory.system()[0].forces) == 2


def test_appending_with_other_forces_keeps_to_the_file(tmp_path):
    """Energies of forces that the file knows; of one that is not there any more nan."""

    def simulation(*names):
        topology = mp.Topology()
        beads = topology.add_beads([[1.0, 0.0, 0.0]], mass=1.0)
        system = mp.System(topology)
        for name in names:
            system.add_force(mp.forces.HarmonicTrap(beads, 1.0, [0.0, 0, 0], name=name))
        return mp.Simulation(system, mp.VerletIntegrator(0.1), threads=1)

    first = simulation("a", "b")
    recorded(first, tmp_path / "run.h5", 1)
    first.step(1)
    first.close()
    second = simulation("b", "c")
    second.step(1)
    second.reporters.append(mp.reporters.TrajectoryReporter(tmp_path / "run.h5", 1, append=True))
    second.step(1)
    energies = second.context.get_state(energy=True).energies
    second.close()
    with mp.Trajectory(tmp_path / "run.h5") as trajectory:
        assert list(trajectory[1].energies) == ["a", "b"]
        assert np.isnan(trajectory[1].energies["a"])
        assert trajectory[1].energies["b"] == energies["b"]
        assert [force.name for force in trajectory.system()[0].forces] == ["a", "b"]
