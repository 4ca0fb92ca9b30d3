"""Species in trajectories, in files for other programs, and in pictures."""

import h5py
import numpy as np
import pytest
from builders import octahedron, refuses

import medyanpy as mp
from medyanpy.visualize.scene import give_colors, objects_of, scene_of


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Points that turn, and beads with a species of the same name; and what each frame should hold."""
    path = tmp_path_factory.mktemp("species") / "run.h5"
    topology = mp.Topology()
    membrane = topology.add_membrane(octahedron(), vertex_mass=50.0, fixed=True, name="membrane")
    numbers = {name: {"mass": 1.0, "friction": 1.0} for name in "ABC"}
    points = topology.add_intriangle_points(
        membrane, species=numbers, counts={"A": 12, "B": 12}, capacity=24, seed=1, name="proteins"
    )
    ions = topology.add_beads(
        np.eye(3), species={"A": numbers["A"], "Ca": numbers["A"]}, counts={"A": 1, "Ca": 2}, name="ions"
    )
    system = mp.System(topology)
    system.add_jump(mp.jumps.Reactions(points, "A + B <-> C; k_on = 9, k_off = 2", reach=0.8))
    simulation = mp.Simulation(system, mp.BAGOGABIntegrator(0.05, kT=1.0, seed=1), threads=1)
    wanted = []
    with mp.reporters.TrajectoryReporter(path, 10) as reporter:
        simulation.reporters.append(reporter)
        for _ in range(6):
            simulation.step(10)
            state = simulation.context.get_state(positions=True)
            wanted.append((points.counts(state), points.of("C").rows(state).tolist()))
    return simulation, path, points, ions, wanted


def test_frames_know_species_by_name(run):
    """By the handles of the file, and by those of the topology that was simulated."""
    _, path, points, ions, wanted = run
    with mp.Trajectory(path) as trajectory:
        for frame, (counts, rows) in zip(trajectory[-6:], wanted, strict=True):
            own = frame.handles["proteins"]
            assert own.species == ("A", "B", "C")
            assert own.counts(frame) == points.counts(frame) == counts
            assert own.of("C").rows(frame).tolist() == points.of("C").rows(frame).tolist() == rows
            assert ions.counts(frame) == {"A": 1, "Ca": 2}
            # All rows were taken at the start.
            assert np.count_nonzero(frame.alive) == sum(counts.values()) + 6 + 3
        assert len({counts["C"] for counts, _ in wanted}) > 2
        refuses(mp.ParameterError, "no species of 'proteins' 'D'", own.of, "D")
        refuses(mp.ParameterError, "'membrane' has no species", frame.handles["membrane"].counts, frame)


def test_other_handles_are_not_those_of_a_file(run):
    _, path, *_ = run
    topology = mp.Topology()
    other = topology.add_beads([[0.0, 0, 0]], species={"X": {"mass": 1.0}}, counts={"X": 1}, name="ions")
    with mp.Trajectory(path) as trajectory:
        refuses(mp.TopologyError, "is another in this trajectory", other.counts, trajectory[-1])


def test_files_of_before_have_numbers_without_names(run, tmp_path):
    _, path, *_ = run
    old = tmp_path / "old.h5"
    old.write_bytes(path.read_bytes())
    with h5py.File(old, "r+") as file:
        for group in file["medyanpy/handles"].values():
            group.attrs.pop("species", None)
    with mp.Trajectory(old) as trajectory:
        frame = trajectory[-1]
        handle = frame.handles["proteins"]
        assert handle.species == ()
        refuses(mp.ParameterError, "they have no names in this file", handle.counts, frame)
        assert len(frame.living(handle)) > 0


def test_a_file_is_continued_only_by_the_same_species(run):
    simulation, path, *_ = run
    simulation.reporters.clear()
    with mp.reporters.TrajectoryReporter(path, 10, append=True) as reporter:
        simulation.reporters.append(reporter)
        simulation.step(10)
    simulation.reporters.clear()
    with mp.Trajectory(path) as trajectory:
        assert trajectory[-1].step == simulation.current_step


def test_other_programs_get_types_by_species(run, tmp_path):
    """A name that two handles have is told with its handle."""
    _, path, points, _, _ = run
    mp.export(path, tmp_path / "out.xyz")
    with mp.Trajectory(path) as trajectory:
        frame = trajectory[-1]
        counts = points.counts(frame)
    lines = (tmp_path / "out.xyz").read_text().splitlines()
    begins = max(k for k, line in enumerate(lines) if line.isdecimal())
    last = [line.split()[0] for line in lines[begins + 2 :]]
    assert len(last) == len(lines[begins + 2 :]) == int(lines[begins])
    assert {line.split()[-1] for line in lines[begins + 2 :]} == {"membrane", "proteins", "ions"}
    names = ["A_of_proteins", "B", "C"]
    assert [last.count(name) for name in names] == list(counts.values())
    assert (last.count("A_of_ions"), last.count("Ca"), last.count("membrane")) == (1, 2, len(points.membrane))


def test_pictures_have_a_part_for_each_species(run):
    """Also one that is empty, so that colours stay the same in movies; of simulations and of frames."""
    simulation, path, points, _, _ = run
    with mp.Trajectory(path) as trajectory:
        for what in (simulation, trajectory[-1]):
            state = trajectory[-1] if what is not simulation else simulation.context.get_state(positions=True)
            surfaces, solids = objects_of(scene_of(what, {}))
            found = {one.name: len(one.centers) for one in solids}
            counts = points.counts(state)
            assert found == {"A of proteins": counts["A"], "B": counts["B"], "C": counts["C"], "A of ions": 1, "Ca": 2}
            x = state.positions[points.of("C").rows(state)]
            np.testing.assert_allclose(next(one.centers for one in solids if one.name == "C"), x, rtol=1e-6)
            give_colors(surfaces, solids, {"proteins": (0.0, 1.0, 0.0), "C": (1.0, 0.0, 0.0)})
            colors = {one.name: one.color for one in solids}
            assert colors["B"] == (0.0, 1.0, 0.0)
            assert colors["C"] == (1.0, 0.0, 0.0)
            assert colors["Ca"] is None


def test_handles_tell_their_species(run):
    _, _, points, ions, _ = run
    assert repr(points).endswith("points of A, B, C)")
    assert repr(ions).endswith("beads of A, Ca)")
