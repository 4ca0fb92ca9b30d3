"""CheckpointReporter and checkpoints: going on gives the same bits, and nothing else is loaded."""

import os

import numpy as np
import pytest

import medyanpy as mp


def make(threads=1, seed=1, n_points=600, timestep=1e-7, stiffness=0.01):
    mesh = mp.TriangleMesh.icosphere(radius=100.0, subdivisions=2)
    topology = mp.Topology()
    vesicle = topology.add_membrane(mesh, vertex_mass=4e-12, vertex_friction=4e-6)
    topology.add_intriangle_points(vesicle, n_points, mass=4e-12, friction=4e-6, seed=3)
    system = mp.System(topology)
    system.add_force(mp.forces.MembraneEdgeSprings(vesicle, stiffness=stiffness))
    return mp.Simulation(system, mp.BAGOGABIntegrator(timestep, temperature=300.0, seed=seed), threads=threads)


def content(simulation):
    state = simulation.context.get_state(positions=True, velocities=True, energy=True)
    return (
        state.step,
        state.positions.tobytes(),
        state.velocities.tobytes(),
        state.intriangle.triangles.tobytes(),
        state.intriangle.barycentric.tobytes(),
        state.total_energy,
        state.temperature,
    )


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_going_on_gives_the_same_bits_on_any_number_of_threads(tmp_path, threads):
    through = make(threads=1)
    through.context.set_velocities_to_temperature(300.0, seed=5)
    through.reporters.append(mp.reporters.CheckpointReporter(tmp_path / "c", 10))
    through.step(17)
    at_17 = content(through)
    through.step(12)
    again = make(threads=threads)
    # Only the newest is kept: that of step 20.
    again.load_checkpoint(tmp_path / "c")
    assert again.current_step == 20
    again.step(9)
    assert content(again) == content(through)
    assert at_17 != content(through)


def test_every_step_has_its_file_if_the_name_asks_for_it(tmp_path):
    simulation = make()
    simulation.reporters.append(mp.reporters.CheckpointReporter(tmp_path / "run-{step}.checkpoint", 4))
    simulation.step(9)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["run-4.checkpoint", "run-8.checkpoint"]
    other = make()
    other.load_checkpoint(tmp_path / "run-4.checkpoint")
    other.step(5)
    assert content(other) == content(simulation)
    with pytest.raises(mp.ParameterError, match=r"run-\d\.checkpoint exists; give overwrite=True"):
        mp.reporters.CheckpointReporter(tmp_path / "run-{step}.checkpoint", 4)
    mp.reporters.CheckpointReporter(tmp_path / "run-{step}.checkpoint", 4, overwrite=True)
    with pytest.raises(mp.ParameterError, match="in the name of the file only"):
        mp.reporters.CheckpointReporter(tmp_path / "{step}" / "a", 4)


def test_existing_files_are_refused(tmp_path):
    (tmp_path / "c").write_text("precious")
    with pytest.raises(mp.ParameterError, match=r"c exists; give overwrite=True to replace it$"):
        mp.reporters.CheckpointReporter(tmp_path / "c", 1)
    with pytest.raises(mp.ParameterError, match="is a folder"):
        mp.reporters.CheckpointReporter(tmp_path, 1)
    with pytest.raises(mp.ParameterError, match="does not exist"):
        mp.reporters.CheckpointReporter(tmp_path / "nowhere" / "c", 1)
    assert (tmp_path / "c").read_text() == "precious"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_points": 601}, "object 'points'"),
        ({"timestep": 2e-7}, "timestep"),
        ({"seed": 2}, "seed"),
        ({"stiffness": 0.02}, "force 'MembraneEdgeSprings'"),
    ],
)
def test_another_simulation_is_refused_and_left_as_it_was(tmp_path, options, message):
    simulation = make()
    simulation.step(3)
    simulation.save_checkpoint(tmp_path / "c")
    other = make(**options)
    before = content(other)
    with pytest.raises(mp.ParameterError, match="belongs to another simulation") as caught:
        other.load_checkpoint(tmp_path / "c")
    assert message in str(caught.value)
    assert content(other) == before


def test_damaged_files_are_refused(tmp_path):
    simulation = make()
    simulation.step(3)
    before = content(simulation)
    path = tmp_path / "c"
    simulation.save_checkpoint(path)
    whole = path.read_bytes()
    rng = np.random.default_rng(1)
    damages = [b"", whole[: len(whole) // 2], b"hello"]
    for _ in range(20):
        flipped = bytearray(whole)
        flipped[int(rng.integers(len(whole)))] ^= 255
        damages.append(bytes(flipped))
    refused = 0
    for damage in damages:
        path.write_bytes(damage)
        try:
            simulation.load_checkpoint(path)
        except mp.ParameterError:
            refused += 1
        # Bytes between the arrays of a zip file mean nothing: a flip there does no harm.
        assert content(simulation) == before
    assert refused >= 20
    with pytest.raises(mp.ParameterError, match="does not exist"):
        simulation.load_checkpoint(tmp_path / "nowhere")


def test_a_checkpoint_is_replaced_in_one_move(tmp_path, monkeypatch):
    """A crash while writing leaves the old one whole, and nothing beside it."""
    simulation = make()
    path = tmp_path / "c"
    simulation.save_checkpoint(path)
    old = path.read_bytes()
    simulation.step(1)

    def fail(*_):
        assert path.read_bytes() == old
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="no space"):
        simulation.save_checkpoint(path)
    assert path.read_bytes() == old
    assert [p.name for p in tmp_path.iterdir()] == ["c"]


def test_what_others_wrote_reaches_as_far_as_the_checkpoint(tmp_path):
    simulation = make()
    simulation.reporters += [
        mp.reporters.TrajectoryReporter(tmp_path / "run.h5", 1),
        mp.reporters.CheckpointReporter(tmp_path / "c", 5),
    ]
    simulation.step(7)
    from medyanpy.trajectory import Trajectory

    with Trajectory(tmp_path / "run.h5") as trajectory:
        assert trajectory.steps.tolist() == [1, 2, 3, 4, 5]
    simulation.close()
