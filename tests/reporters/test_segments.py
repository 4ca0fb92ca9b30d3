"""Trajectories of what comes and goes: rows in which nobody is, ids, and files that go on from each other."""

import itertools
import os
import shutil
import signal

import builders
import h5py
import numpy as np
import pytest
from builders import assert_killed, content, refuses, system_with
from test_coming_and_going import FAR, comes, goes
from test_editing import ALL, KINDS, simulation_of

import medyanpy as mp
from medyanpy.files import writer
from medyanpy.files.hdf5 import later_parts

# Files, and processes that are killed: no kernel that other tests do not reach.
pytestmark = [pytest.mark.slow, pytest.mark.frictionless]

KT = 4.0


def at(k):
    return FAR + [0.0, 50.0 * k, 0.0]


def add(simulation, kind, k=0):
    comes(simulation, kind, at(k))


def chains(capacity=None, **options):
    """Two filaments in a row of their own, bonds between all of them, beads beside them."""
    topology = mp.Topology()
    nodes = np.arange(4)[:, None] * [1.0, 0.0, 0.0]
    filaments = topology.add_filaments([nodes, nodes + [0.0, 5.0, 0.0]], node_mass=1.0, node_friction=1.0,
                                       capacity=capacity)  # fmt: skip
    topology.add_beads(np.eye(3), mass=1.0, friction=1.0, capacity=capacity, name="beads")
    system = system_with(topology, mp.forces.FilamentBending(filaments, bending_modulus=3.0))
    return mp.Simulation(system, mp.SplittingIntegrator("JBAOABJ", 0.01, kT=KT, seed=4), threads=1)


def new_filament(simulation, y, n=3):
    with simulation.topology.edit():
        simulation.topology["filaments"].add([np.arange(n)[:, None] * [1.0, 0, 0] + [0.0, y, 0.0]])


def links_now(simulation):
    """Pairs of rows that are joined, as the topology says."""
    filaments = simulation.topology["filaments"]
    return {tuple(pair) for pair in filaments.beads[filaments.links].tolist()}


class Recorder(builders.Recorder):
    """States, and which rows were linked."""

    def __init__(self, interval):
        super().__init__(interval)
        self.links = []

    def report(self, simulation, state):
        super().report(simulation, state)
        self.links.append(links_now(simulation) if "filaments" in simulation.topology else None)


def same_numbers(a, b):
    """Arrays of the same rows, the second widened by rows in which nobody is."""
    n = len(a)
    empty = np.isnan(b[n:]) if b.dtype.kind == "f" else b[n:] == -1
    return np.array_equal(a, b[:n], equal_nan=a.dtype.kind == "f") and bool(empty.all())


def check(path, states, links=None, columns=("positions", "velocities"), parts=1):
    """All frames are the states, in all rows."""
    with mp.Trajectory(path) as trajectory:
        assert [p.name for p in trajectory.paths] == [
            path.name, *(f"{path.stem}.part{k:04d}.h5" for k in range(2, parts + 1))
        ]  # fmt: skip
        assert trajectory.steps.tolist() == [s.step for s in states]
        assert trajectory.times.tolist() == [s.time for s in states]
        assert trajectory.n_beads == len(states[-1].positions)
        for k, (frame, state) in enumerate(zip(trajectory, states, strict=True)):
            assert same_numbers(state.ids, frame.ids)
            assert np.array_equal(frame.alive[: len(state.alive)], state.alive)
            for name in columns:
                assert same_numbers(state.column(name), frame.column(name)), (k, name)
            assert frame.potential_energy == state.potential_energy
            assert frame.temperature == state.temperature
            for handle in frame.handles.values():
                rows = frame.living(handle)
                assert np.isfinite(handle.mass[np.isin(handle.beads, rows)]).all()
            if links is not None:
                handle = frame.handles["filaments"]
                found = handle.beads[frame.beside(handle)["links"]]
                assert {tuple(pair) for pair in found.tolist()} == links[k], k
        # Many at once, forwards, backwards and by rows.
        n = len(states)
        for name in (*columns, "ids", "temperature"):
            frames = [frame.column(name) for frame in trajectory]
            for s in (slice(None), slice(None, None, -1), slice(1, n, 3), slice(n - 2, 0, -2), slice(2, 2)):
                read = trajectory.read(name, s)
                assert len(read) == len(frames[s])
                assert all(np.array_equal(a, b, equal_nan=True) for a, b in zip(read, frames[s], strict=True))
        for handle in trajectory.handles.values():
            of_handle = trajectory.read("positions", slice(0, n, 2), beads=handle)
            assert np.array_equal(of_handle, trajectory.read("positions", slice(0, n, 2))[:, handle.beads],
                                  equal_nan=True)  # fmt: skip


def recorded(simulation, path, **options):
    recorder = Recorder(1)
    options = {"velocities": True} | options
    simulation.reporters = [mp.reporters.TrajectoryReporter(path, 1, **options), recorder]
    return recorder


# One file ------------------------------------------------------------------------------------------------------------


def test_where_there_is_room_one_file_serves(tmp_path):
    """Filaments and beads come, go, and take the rows of others."""
    path, simulation = tmp_path / "run.h5", chains(capacity=20)
    recorder = recorded(simulation, path)
    beads = simulation.topology["beads"]
    simulation.step(3)
    new_filament(simulation, 20.0)
    simulation.step(2)
    with simulation.topology.edit():
        simulation.topology["filaments"].remove(0)
        beads.remove(ids=beads.ids[1])
    simulation.step(2)
    new_filament(simulation, 40.0, n=6)
    with simulation.topology.edit():
        beads.add([[9.0, 9, 9], [8.0, 8, 8]])
    simulation.step(70)
    simulation.close()
    check(path, recorder.states, recorder.links)
    assert len({len(links) for links in recorder.links}) == 4
    with h5py.File(path) as file:
        ids = file["particles/all/id/value"]
        assert (ids.fillvalue, ids.dtype) == (-1, np.int64)
        assert (ids[0] == -1).sum() == 40 - 11
        assert np.isnan(file["particles/all/position/value"][0][ids[0] == -1]).all()
        assert file["particles/all/mass"][()].tolist() == [1.0] * 40
        assert file["medyanpy"].attrs["format"] == 3


def test_lookup_by_id(tmp_path):
    path, simulation = tmp_path / "run.h5", chains(capacity=20)
    recorded(simulation, path)
    filaments, beads = simulation.topology["filaments"], simulation.topology["beads"]
    simulation.step(1)
    new_filament(simulation, 20.0)
    newcomers = filaments.ids[-3:]
    with simulation.topology.edit():
        beads.remove(beads.beads[0])
    simulation.step(1)
    simulation.close()
    with mp.Trajectory(path) as trajectory:
        first, last = trajectory
        assert last.rows_of_ids(newcomers).tolist() == filaments.beads[-3:].tolist()
        assert last.living(last.handles["beads"]).tolist() == beads.beads.tolist()
        assert len(last.handles["beads"]) == beads.capacity
        with pytest.raises(mp.TopologyError, match=rf"ids\[1\] = {newcomers[0]}, but no bead has it then"):
            first.rows_of_ids([0, newcomers[0]])
        refuses(mp.TopologyError, "no bead has it then", last.rows_of_ids, -1)


def test_files_of_what_stays_are_as_they_were(tmp_path):
    path, simulation = tmp_path / "run.h5", chains()
    recorder = recorded(simulation, path)
    simulation.step(3)
    simulation.close()
    check(path, recorder.states, recorder.links)
    with h5py.File(path) as file:
        assert file["medyanpy"].attrs["format"] == 3
        assert file["particles/all/id"][()].tolist() == list(range(11))
        assert "first_bead" in file["medyanpy/handles/1"].attrs


def test_capacity_of_one_handle_is_not_that_of_another(tmp_path):
    """Their rows do not follow each other then."""
    path, simulation = tmp_path / "run.h5", chains(capacity=12)
    recorder = recorded(simulation, path)
    simulation.step(1)
    with simulation.topology.edit():
        simulation.topology["filaments"].reserve(20)
        simulation.topology["beads"].reserve(15)
    simulation.step(2)
    new_filament(simulation, 20.0, n=11)
    simulation.step(2)
    simulation.close()
    check(path, recorder.states, recorder.links, parts=2)
    with mp.Trajectory(path) as trajectory:
        assert trajectory.handles["filaments"].beads.tolist() == [*range(12), *range(24, 32)]
        assert trajectory.handles["beads"].beads.tolist() == [*range(12, 24), *range(32, 35)]


# Segments ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ALL)
def test_each_kind_of_bead_grows_and_shrinks_in_files(tmp_path, kind):
    path, simulation = tmp_path / "run.h5", simulation_of(ALL)
    recorder = recorded(simulation, path)
    simulation.step(2)
    add(simulation, kind)
    simulation.step(2)
    goes(simulation, kind)
    simulation.step(2)
    add(simulation, kind, 1)
    simulation.step(2)
    simulation.close()
    columns = [c.name for c in simulation.topology.columns if c.in_trajectory]
    parts = 1 + len(later_parts(path))
    assert parts >= 2
    check(path, recorder.states, columns=columns, parts=parts)


@pytest.mark.parametrize("kind", KINDS)
def test_handles_that_are_new_are_in_the_next_segment(tmp_path, kind):
    first = "beads" if kind != "beads" else "balls"
    path, simulation = tmp_path / "run.h5", simulation_of([first])
    recorder = recorded(simulation, path)
    simulation.step(2)
    with simulation.topology.edit():
        KINDS[kind](simulation.topology, at(1), kind)
    simulation.step(2)
    simulation.close()
    check(path, recorder.states, parts=2)
    with mp.Trajectory(path) as trajectory:
        assert kind not in trajectory[0].handles
        assert kind in trajectory[-1].handles
        for column in simulation.topology[kind].kind.columns:
            if column.in_trajectory:
                read = trajectory.read(column.name)
                assert len(read) == 4
                assert np.array_equal(read[3], recorder.states[3].column(column.name))


CHANGES = {
    "other masses": lambda s: s.topology["beads"].add([[9.0, 9, 9]], mass=2.0),
    "a jump": lambda s: s.system.add_jump(
        mp.jumps.LinkBinding(
            s.system.add_force(mp.forces.Links([], [], stiffness=1.0, length=1.0)),
            mp.Sites.beads(s.topology["beads"]), on_rate=1.0, off_rate=1.0,
        )
    ),
    "a name": lambda s: s.topology.add_beads([[1.0, 1, 1]], mass=1.0, friction=1.0),
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_data_beside_frames_changes_with_a_segment(tmp_path, change):
    path, simulation = tmp_path / "run.h5", chains(capacity=20)
    recorder = recorded(simulation, path)
    simulation.step(2)
    with simulation.topology.edit():
        CHANGES[change](simulation)
    simulation.step(2)
    simulation.close()
    check(path, recorder.states, recorder.links, parts=2)
    with mp.Trajectory(path) as trajectory:
        if change == "other masses":
            beads = trajectory[-1].handles["beads"]
            assert np.sort(beads.mass[np.isin(beads.beads, trajectory[-1].living(beads))]).tolist() == [1, 1, 1, 2]
        if change == "a jump":
            assert trajectory[0].jumps == []
            assert trajectory[-1].jumps == ["LinkBinding"]
            assert trajectory[-1].link_ends("LinkBinding").shape[1:] == (2, 3)
            assert (trajectory.read("LinkBinding")[:2] == -1).all()


def test_a_jump_that_is_taken_away_is_in_frames_no_more(tmp_path):
    path, simulation = tmp_path / "run.h5", chains(capacity=20)
    with simulation.topology.edit():
        CHANGES["a jump"](simulation)
    recorder = recorded(simulation, path)
    simulation.step(2)
    with simulation.topology.edit():
        simulation.system.remove_jump(simulation.system["LinkBinding"])
    simulation.step(2)
    simulation.close()
    check(path, recorder.states, recorder.links, parts=2)
    with mp.Trajectory(path) as trajectory:
        assert [frame.jumps for frame in trajectory] == [["LinkBinding"]] * 2 + [[]] * 2
        with pytest.raises(mp.ParameterError, match="'LinkBinding' is not a jump that binds links; those are: none"):
            trajectory[-1].links("LinkBinding")


def test_edits_without_frames_between_them_begin_one_segment(tmp_path):
    path, simulation = tmp_path / "run.h5", chains()
    recorder = recorded(simulation, path)
    simulation.reporters[0].interval = recorder.interval = 4
    for k in range(3):
        simulation.step(1)
        new_filament(simulation, 20.0 * k + 20.0)
    simulation.step(5)
    for k in range(3, 5):
        new_filament(simulation, 20.0 * k + 20.0)
        simulation.step(1)
    simulation.step(4)
    simulation.close()
    assert [s.step for s in recorder.states] == [4, 8, 12]
    check(path, recorder.states, recorder.links, parts=2)


def test_a_file_that_was_begun_empty_is_begun_again(tmp_path):
    """An edit before the first frame leaves no segment without frames."""
    path, simulation = tmp_path / "run.h5", chains()
    recorder = recorded(simulation, path)
    simulation.step(0)
    simulation.reporters[0].flush()
    simulation.reporters[0].describe_next_report(simulation)
    new_filament(simulation, 20.0)
    simulation.step(2)
    simulation.close()
    check(path, recorder.states, recorder.links)


# Going on ------------------------------------------------------------------------------------------------------------

STEPS = 18


def edited(simulation, change):
    with simulation.topology.edit():
        change(simulation.topology)


# Within the room, beyond it, and where one follows another with and without a frame between them.
EDITS = {
    3: [lambda s: new_filament(s, 20.0)],
    6: [lambda s: edited(s, lambda t: t["beads"].add([[3.0, 9, 9]]))],
    7: [lambda s: new_filament(s, 40.0, n=9), lambda s: edited(s, lambda t: t["filaments"].remove(1))],
    9: [lambda s: edited(s, lambda t: t["filaments"].remove(1))],
    12: [lambda s: new_filament(s, 60.0, n=12)],
    14: [lambda s: edited(s, lambda t: t["beads"].add([[5.0, 9, 9]], mass=3.0))],
}


def run_on(simulation, done=-1, checkpoints=None):
    """To the end, with the edits of steps after `done`; returns the states on the way."""
    states = []
    for step in range(simulation.current_step, STEPS):
        for edit in EDITS.get(step, ()) if step > done else ():
            edit(simulation)
        if checkpoints is not None:
            simulation.save_checkpoint(checkpoints / f"{step}.checkpoint")
        simulation.step(1)
        states.append(simulation.context.get_state(positions=True, velocities=True, energy=True))
    simulation.close()
    return states


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run without a break, and a checkpoint of every step, after the edits there."""
    folder, simulation = tmp_path_factory.mktemp("whole"), chains(capacity=12)
    simulation.reporters.append(mp.reporters.TrajectoryReporter(folder / "run.h5", 1, velocities=True))
    states = run_on(simulation, checkpoints=folder)
    check(folder / "run.h5", states, parts=4)
    return folder, states, [content(folder / file) for file in FILES]


FILES = ["run.h5", *(f"run.part000{k}.h5" for k in (2, 3, 4))]


def files_of(folder):
    return sorted(p.name for p in folder.iterdir() if "checkpoint" not in p.name)


def assert_whole(folder, whole):
    """All files are those of the run without a break, bit for bit."""
    assert files_of(folder) == FILES
    assert [content(folder / file) for file in FILES] == whole[2]


@pytest.mark.parametrize("step", range(STEPS))
def test_run_resumes_from_any_checkpoint_in_existing_files(tmp_path, whole, step):
    """What was written since is cut off, and segments that were begun are gone."""
    folder, *_ = whole
    for file in [*FILES, f"{step}.checkpoint"]:
        shutil.copy(folder / file, tmp_path / file)
    simulation = mp.Simulation.resume(tmp_path / f"{step}.checkpoint")
    with mp.Trajectory(tmp_path / "run.h5") as trajectory:
        assert trajectory.steps.tolist() == list(range(1, step + 1))
    run_on(simulation, done=step)
    assert_whole(tmp_path, whole)


@pytest.mark.parametrize("step", [2, 5, 8, 11, 13, 16])
def test_appending_without_a_checkpoint_goes_by_the_step(tmp_path, whole, step):
    """To a segment of the same topology: of another it is refused, and says so."""
    folder, *_ = whole
    for file in FILES:
        shutil.copy(folder / file, tmp_path / file)
    simulation = mp.Simulation.resume(folder / f"{step}.checkpoint", reporters=False)
    reporter = mp.reporters.TrajectoryReporter(tmp_path / "run.h5", 1, velocities=True, append=True)
    simulation.reporters.append(reporter)
    run_on(simulation, done=step)
    assert_whole(tmp_path, whole)
    other = chains(capacity=13)
    other.reporters.append(mp.reporters.TrajectoryReporter(tmp_path / "run.h5", 1, velocities=True, append=True))
    refuses(mp.ParameterError, r"cannot append to .*run.h5: it holds 12 .* the simulation 13", other.step, 1)
    other.close()
    assert files_of(tmp_path) == FILES


def test_going_back_in_a_run_goes_back_over_segments(tmp_path):
    """Flips begin a segment, and a state from before them ends it; the file of before is cut."""
    mesh, topology = mp.TriangleMesh.icosphere(1.0, 1), mp.Topology()
    sheet = topology.add_membrane(mesh, vertex_mass=1.0, vertex_friction=1.0, name="sheet")
    simulation = mp.Simulation(mp.System(topology), mp.BAGOGABIntegrator(0.001, kT=1.0, seed=3), threads=1)
    path = tmp_path / "run.h5"
    recorder = recorded(simulation, path)
    simulation.step(6)
    simulation.save_checkpoint(tmp_path / "before")
    simulation.step(3)
    simulation.context.flip_edges(sheet, [mesh.edges[0]])
    simulation.step(3)
    assert len(later_parts(path)) == 1
    simulation.load_checkpoint(tmp_path / "before")
    simulation.step(2)
    simulation.close()
    with mp.Trajectory(path) as trajectory:
        assert trajectory.steps.tolist() == list(range(1, 9))
        for frame, state in zip(trajectory, [*recorder.states[:6], *recorder.states[-2:]], strict=True):
            assert np.array_equal(frame.positions, state.positions)
            assert np.array_equal(frame.faces["sheet"], mesh.faces)


def test_a_reader_follows_a_run_from_segment_to_segment(tmp_path):
    path, simulation = tmp_path / "run.h5", chains(capacity=12)
    reporter = mp.reporters.TrajectoryReporter(path, 1)
    simulation.reporters.append(reporter)
    simulation.step(1)
    reporter.flush()
    states = []
    with mp.Trajectory(path) as trajectory:
        for step in range(1, STEPS):
            for edit in EDITS.get(step, ()):
                edit(simulation)
            simulation.step(1)
            states.append(simulation.context.get_state(positions=True))
            reporter.flush()
            assert trajectory.refresh() == step + 1
            assert trajectory.n_beads == len(states[-1].positions)
            assert same_numbers(states[-1].positions, trajectory[-1].positions)
        assert len(trajectory.paths) == 4
    simulation.close()
    refuses(mp.ParameterError, "is closed", trajectory.refresh)
    refuses(mp.ParameterError, "is closed", trajectory.read, "positions")


def killed_at(path, owner, name, call, before):
    """Run, and kill this process when it calls a function for the so-manieth time, before or after it is done."""
    keep, calls = getattr(owner, name), itertools.count(1)

    def killed(*arguments, **options):
        last = next(calls) == call
        out = None if last and before else keep(*arguments, **options)
        if last:
            os.kill(os.getpid(), signal.SIGKILL)
        return out

    simulation = chains(capacity=12)
    simulation.reporters += [mp.reporters.TrajectoryReporter(path, 1, velocities=True),
                             mp.reporters.CheckpointReporter(f"{path}.checkpoint", 1)]  # fmt: skip
    setattr(owner, name, killed)
    run_on(simulation)


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("call", [2, 3])
@pytest.mark.parametrize(
    ("owner", "name"), [(writer.File, "__init__"), (writer.File, "publish"), (writer.Writer, "go_on_in")]
)
def test_run_killed_while_a_segment_begins_resumes(tmp_path, whole, owner, name, call, before):
    path = tmp_path / "run.h5"
    assert_killed(killed_at, path, owner, name, call, before)
    simulation = mp.Simulation.resume(f"{path}.checkpoint")
    step = simulation.current_step
    # The edits of a step are made before it; those of this one have not been.
    run_on(simulation, done=step - 1)
    assert_whole(tmp_path, whole)


# What is wrong speaks ------------------------------------------------------------------------------------------------


def test_old_segments_are_replaced_with_their_run(tmp_path, whole):
    folder, *_ = whole
    for file in FILES:
        shutil.copy(folder / file, tmp_path / file)
    simulation = chains(capacity=12)
    with pytest.raises(mp.ParameterError, match=r"run.h5 exists; give overwrite=True"):
        mp.reporters.TrajectoryReporter(tmp_path / "run.h5", 1)
    simulation.reporters.append(mp.reporters.TrajectoryReporter(tmp_path / "run.h5", 1, overwrite=True))
    simulation.step(2)
    simulation.close()
    assert files_of(tmp_path) == ["run.h5"]


def test_segments_without_their_first_are_refused(tmp_path, whole):
    folder, *_ = whole
    shutil.copy(folder / FILES[1], tmp_path / FILES[1])
    for options in ({}, {"append": True}):
        simulation = chains(capacity=12)
        simulation.reporters.append(mp.reporters.TrajectoryReporter(tmp_path / "run.h5", 1, **options))
        refuses(mp.ParameterError, r"run.part0002.h5 exists.*give overwrite=True", simulation.step, 1)
    assert files_of(tmp_path) == [FILES[1]]


def test_segments_of_another_run_are_refused(tmp_path, whole):
    folder, states, _ = whole
    ends = []
    for name in FILES:
        with h5py.File(folder / name) as file:
            ends.append(len(file["particles/all/position/step"]))
    for file in FILES:
        shutil.copy(folder / file, tmp_path / file)
    # One alone is a trajectory too.
    with mp.Trajectory(tmp_path / FILES[2]) as trajectory:
        assert trajectory.steps.tolist() == [s.step for s in states[sum(ends[:2]) : sum(ends[:3])]]
    shutil.copy(folder / FILES[2], tmp_path / FILES[1])
    wrong = rf"part0002.h5 continues from {sum(ends[:2])} frames, the last of step {sum(ends[:2])}, but .* {ends[0]}"
    refuses(mp.ParameterError, wrong, mp.Trajectory, tmp_path / "run.h5")
    simulation = mp.Simulation.resume(folder / f"{STEPS - 1}.checkpoint", reporters=False)
    simulation.reporters.append(mp.reporters.TrajectoryReporter(tmp_path / "run.h5", 1, velocities=True, append=True))
    refuses(mp.ParameterError, wrong, simulation.step, 1)
    simulation.close()
    shutil.copy(folder / FILES[0], tmp_path / FILES[1])
    with pytest.raises(mp.ParameterError, match="name of a segment of a trajectory, and is a trajectory of its own"):
        mp.Trajectory(tmp_path / "run.h5")


def test_other_files_than_segments_are_not_removed(tmp_path):
    path, simulation = tmp_path / "run.h5", chains()
    recorded(simulation, path)
    simulation.step(2)
    (tmp_path / "run.part0002.h5").write_text("precious")
    new_filament(simulation, 20.0)
    refuses(mp.ParameterError, r"0002.h5 exists by now, and would be the next segment: move it", simulation.step, 1)
    assert simulation.current_step == 2
    simulation.close()
    for options in ({"overwrite": True}, {"append": True}):
        other = chains()
        other.reporters.append(mp.reporters.TrajectoryReporter(path, 1, velocities=True, **options))
        refuses(mp.ParameterError, r"part0002\.h5", other.step, 1)
        other.close()
    assert (tmp_path / "run.part0002.h5").read_text() == "precious"
    (tmp_path / "run.part0002.h5").unlink()
    simulation = chains()
    recorder = recorded(simulation, path, overwrite=True)
    simulation.step(2)
    new_filament(simulation, 20.0)
    simulation.step(2)
    simulation.close()
    check(path, recorder.states, recorder.links, parts=2)


def test_states_from_before_an_edit_are_in_no_frame(tmp_path):
    simulation = chains()
    reporter = mp.reporters.TrajectoryReporter(tmp_path / "run.h5", 1)
    before = simulation.context.get_state(positions=True, energy=True)
    reporter.report(simulation, before)
    new_filament(simulation, 20.0)
    with pytest.raises(mp.ParameterError, match="has 11 rows of beads, the topology 14: it is from before an"):
        reporter.report(simulation, before)
    reporter.close()


def test_analysis_knows_who_was_there(tmp_path):
    """Numbers of filaments whose rows were others' are not made up."""
    path, simulation = tmp_path / "run.h5", chains(capacity=8)
    recorder = recorded(simulation, path)
    filaments = simulation.topology["filaments"]
    simulation.step(2)
    edited(simulation, lambda t: t["filaments"].remove(1))
    new_filament(simulation, 20.0, n=4)
    simulation.step(2)
    simulation.close()
    with mp.Trajectory(path) as trajectory:
        frames = trajectory[2:]
        ends = mp.analysis.end_to_end(frames, filaments)
        assert np.array_equal(ends, mp.analysis.end_to_end(recorder.states[2:], filaments))
        assert np.isfinite(ends).all()
        for analysis in (mp.analysis.end_to_end, mp.analysis.contour_curvature, mp.analysis.tangent_correlation):
            for source in (trajectory, trajectory[0], recorder.states[:2], recorder.states[1]):
                with pytest.raises(mp.TopologyError, match=r"at step [12] node 0 of filament 1 of 'filaments' was not"):
                    analysis(source, filaments)


# Others read them ----------------------------------------------------------------------------------------------------


def test_mdanalysis_reads_a_run_of_fixed_capacity(tmp_path):
    mda = pytest.importorskip("MDAnalysis", reason="MDAnalysis is not installed: pip install 'medyanpy[viewers]'")
    path, simulation = tmp_path / "run.h5", chains(capacity=20)
    recorder = recorded(simulation, path, velocities=False)
    simulation.step(2)
    new_filament(simulation, 20.0)
    simulation.step(2)
    edited(simulation, lambda t: t["filaments"].remove(0))
    simulation.step(2)
    simulation.close()
    assert files_of(tmp_path) == ["run.h5"]
    universe = mda.Universe.empty(simulation.topology.n_beads, trajectory=False)
    universe.load_new(str(path), format="H5MD", convert_units=False)
    assert universe.trajectory.n_frames == 6
    for frame, state in zip(universe.trajectory, recorder.states, strict=True):
        np.testing.assert_allclose(frame.positions, state.positions, rtol=1e-6, atol=1e-4)
        assert (np.isnan(frame.positions).any(axis=1) == ~state.alive).all()


# Pictures ------------------------------------------------------------------------------------------------------------


def test_pictures_show_who_is_there(tmp_path):
    from medyanpy.visualize.scene import scene_of

    path, simulation = tmp_path / "run.h5", simulation_of(ALL)
    with simulation.topology.edit():
        for handle in simulation.topology.handles:
            if handle.name not in ("membrane", "directors of twistable"):
                handle.reserve(2 * handle.capacity + 20)
    recorded(simulation, path)
    simulation.step(1)
    for kind in ALL:
        goes(simulation, kind)
    simulation.step(1)
    for kind in ALL:
        comes(simulation, kind, np.array([0.0, 30.0, 0.0]))
    simulation.step(1)
    simulation.reporters[0].flush()
    live = scene_of(simulation, {})
    with mp.Trajectory(path) as trajectory:
        counts = [{p.name: len(p.beads) for p in scene_of(frame, {}).parts} for frame in trajectory]
        last = scene_of(trajectory[-1], {})
        for part, other in zip(live.parts, last.parts, strict=True):
            handle = simulation.topology[part.name]
            assert part.name == other.name
            for mine, theirs in zip(part[1:], other[1:], strict=True):
                pairs = zip(mine, theirs, strict=True) if isinstance(mine, tuple) else [(mine, theirs)]
                for one, two in pairs:
                    same = one == two if isinstance(one, str) or one is None else None
                    if same is None and isinstance(one, np.ndarray):
                        same = np.array_equal(one, two)
                    assert same or isinstance(one, mp.surfaces.Surface), part.name
            assert set(part.beads) == set(handle.beads)
            if part.radius is not None:
                assert np.isfinite(part.radius).all()
            if part.links is not None:
                pairs = {tuple(p) for p in part.beads[part.links].tolist()}
                assert pairs == {tuple(p) for p in handle.beads[handle.links].tolist()}
        mp.visualize.draw(simulation, tmp_path / "live.png", size=(200, 150))
        mp.visualize.draw(trajectory[1], tmp_path / "frame.png", size=(200, 150), trails=trajectory.read("positions"))
        mp.visualize.movie(trajectory, tmp_path / "run.gif", size=(200, 150), trail=2)
    simulation.close()
    assert all(counts[1][kind] < counts[0][kind] for kind in ALL if kind not in ("membrane",))
    assert all(counts[2][kind] > counts[1][kind] for kind in ALL if kind not in ("membrane",))


def test_movies_of_runs_with_segments(tmp_path):
    path, simulation = tmp_path / "run.h5", chains(capacity=12)
    simulation.reporters.append(mp.reporters.TrajectoryReporter(path, 1))
    run_on(simulation)
    with mp.Trajectory(path) as trajectory:
        mp.visualize.movie(trajectory, tmp_path / "run.gif", size=(200, 150), trail=3)

    simulation = chains(capacity=12)

    def grown():
        for step in range(8):
            for edit in EDITS.get(step, ()):
                edit(simulation)
            simulation.step(1)
            yield simulation

    mp.visualize.movie(grown(), tmp_path / "live.gif", size=(200, 150), trail=3)
    assert (tmp_path / "live.gif").stat().st_size > 1000
