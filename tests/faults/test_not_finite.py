"""No output takes numbers that are not finite, and no good checkpoint gives way to one that is not."""

import numpy as np
import pytest
from builders import refuses, system_with
from fault_runs import make

import medyanpy as mp


@pytest.fixture(scope="module")
def vesicle():
    """A timestep far beyond the stable limit; points on the mesh, whose velocities overflow a step before others."""
    topology = mp.Topology()
    membrane = topology.add_membrane(mp.TriangleMesh.icosphere(10.0, 1), 1.0, 0.1)
    topology.add_intriangle_points(membrane, 20, mass=1.0, friction=0.1, seed=1)
    system = system_with(topology, mp.forces.MembraneEdgeSprings(membrane, 100.0))
    return system


@pytest.mark.filterwarnings("ignore::medyanpy.errors.TimestepWarning")
@pytest.mark.parametrize("energies", [False, True])
def test_a_run_that_blows_up(tmp_path, vesicle, energies):
    simulation = mp.Simulation(vesicle, mp.BAGOGABIntegrator(0.3, kT=1.0, seed=1), threads=1)
    simulation.context.runaway = None
    simulation.context.set_velocities_to_temperature(kT=1.0, seed=1)
    table, trajectory, checkpoint = (tmp_path / name for name in ("a.csv", "a.h5", "a.cp"))
    simulation.reporters.append(mp.reporters.CheckpointReporter(checkpoint, 1))
    if energies:
        simulation.reporters += [
            mp.reporters.StateDataReporter(table, 1, step=True, kinetic_energy=True, work=True),
            mp.reporters.TrajectoryReporter(trajectory, 1, velocities=True),
        ]
    with pytest.raises(mp.SimulationError) as caught:
        simulation.step(1000)
    now = simulation.context.get_state(positions=True, velocities=True)
    assert np.isfinite(now.positions).all()
    assert np.isfinite(now.velocities).all()
    assert caught.value.step is not None
    simulation.close()
    good = mp.Simulation.resume(checkpoint, threads=1, reporters=False)
    good = good.context.get_state(positions=True, velocities=True)
    assert good.step >= now.step - 1 > 0
    assert np.isfinite(good.positions).all()
    assert np.isfinite(good.velocities).all()
    if energies:
        numbers = np.loadtxt(table, delimiter=",")
        assert np.isfinite(numbers).all()
        assert numbers[:, 0].tolist() == list(range(1, good.step + 1))
        with mp.Trajectory(trajectory) as frames:
            assert frames.steps.tolist() == numbers[:, 0].tolist()
            assert np.isfinite(frames.read("velocities")).all()


@pytest.mark.parametrize("name", ["x", "v"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_good_checkpoint_stays(tmp_path, name, value):
    simulation, path = make(), tmp_path / "run.cp"
    simulation.step(3)
    simulation.save_checkpoint(path)
    before = path.read_bytes()
    simulation.step(3)
    getattr(simulation.context._store, name)[1, 2] = value
    with pytest.raises(mp.SimulationError, match=r"step 6: bead 1 \('beads'\) has numbers that are not") as caught:
        simulation.save_checkpoint(path)
    assert (caught.value.step, caught.value.object, caught.value.bead) == (6, "beads", 1)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["run.cp"]
    simulation.load_checkpoint(path)
    simulation.step(1)


def test_bodies_and_points_are_named(tmp_path, vesicle):
    points = mp.Simulation(vesicle, mp.BAGOGABIntegrator(0.001, kT=1.0, seed=1), threads=1)
    points.context._store.barycentric[3] = np.nan
    refuses(mp.SimulationError, r"bead \d+ .'points'. has", points.save_checkpoint, tmp_path / "points")
    topology = mp.Topology()
    topology.add_beads([[0.0, 0.0, 0.0]], mass=1.0)
    topology.add_rigid_bodies(np.ones((3, 3)), [[1.0, 0, 0, 0]] * 3, 1.0, [1.0, 2.0, 2.5], name="rods")
    for name in ("orientation", "spin"):
        bodies = mp.Simulation(mp.System(topology), mp.VerletIntegrator(0.1), threads=1)
        getattr(bodies.context._store, name)[1, 0] = np.inf
        refuses(mp.SimulationError, r"bead 2 .'rods'. has", bodies.save_checkpoint, tmp_path / "bodies")
    assert not list(tmp_path.iterdir())
