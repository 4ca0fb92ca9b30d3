"""Runs with every kind of object, for what other programs make of their files."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from builders import Recorder

import medyanpy as mp

N_FRAMES = 8


class Run(NamedTuple):
    path: Path
    simulation: mp.Simulation
    #: States at the steps of its frames.
    states: list


def everything(capacity: int | None = None) -> mp.Simulation:
    """A vesicle with points, filaments, balls, rigid bodies and a rod, and crosslinks that come and go."""
    rng = np.random.default_rng(5)
    topology = mp.Topology()
    vesicle = topology.add_membrane(
        mp.TriangleMesh.icosphere(300.0, 2), vertex_mass=1e-6, vertex_friction=1e-3, name="vesicle"
    )
    cup = mp.TriangleMesh.icosphere(80.0, 1).translated([0.0, 500.0, 0.0])
    patch = topology.add_membrane(cup, vertex_mass=1e-6, vertex_friction=1e-3, name="patch")
    points = topology.add_intriangle_points(
        vesicle, 50, mass=1e-7, friction=1e-4, seed=1, name="proteins", capacity=capacity
    )
    nodes = [rng.normal(0.0, 60.0, 3) + np.arange(5)[:, None] * [25.0, 0.0, 0.0] for _ in range(6)]
    actin = topology.add_filaments(nodes, node_mass=1e-7, node_friction=1e-4, name="actin", capacity=capacity)
    balls = topology.add_balls(
        rng.normal(0.0, 100.0, (10, 3)), np.repeat([20.0, 40.0], 5), mass=1e-7, friction=1e-4, name="vesicles"
    )
    turns = rng.normal(size=(6, 4))
    bodies = topology.add_rigid_bodies(
        rng.normal(0.0, 100.0, (6, 3)), turns / np.linalg.norm(turns, axis=1)[:, None], 1e-7,
        [2e-5, 1.6e-5, 0.8e-5], (1e-4, 1e-2), name="bodies",
    )  # fmt: skip
    shape, frames = mp.rods.uniform(9, 10.0, [0.0, 0.01, 0.0])
    rod = topology.add_rod(
        shape + [0.0, 0.0, 450.0], frames, 10.0, 1e-8, [1e-7, 1e-7, 1.5e-7], friction=1e-5, rotational_friction=1e-5,
        name="rod",
    )  # fmt: skip
    topology.add_beads(
        rng.normal(0.0, 100.0, (7, 3)), mass=1e-7, friction=1e-4, name="beads",
        capacity=None if capacity is None else 12,
    )  # fmt: skip
    system = mp.System(topology)
    for one in (vesicle, patch):
        system.add_force(mp.forces.MembraneEdgeSprings(one, 0.1, name=f"springs of {one.name}"))
    for one in (points, balls, bodies):
        system.add_force(mp.forces.HarmonicTrap(one, 1e-3, [0.0, 0.0, 0.0], name=f"trap of {one.name}"))
    system.add_force(mp.forces.FilamentBending(actin, 100.0))
    system.add_force(mp.forces.RodElasticity(rod, (10.0, 10.0), 10.0, (1.0, 1.0), 1.0))
    links = system.add_force(mp.forces.Links([], [], stiffness=0.01, length=30.0))
    along = actin.sites(np.repeat(np.arange(6), 4), np.tile(np.arange(4), 6), 0.3)
    system.add_jump(
        mp.jumps.LinkBinding(links, along, off_rate=1e4, on_rate=3e5, name="crosslinks", partners=2, pool=9)
    )
    integrator = mp.SplittingIntegrator("JBAGOGABJ", 1e-6, kT=4.1, seed=3)
    simulation = mp.Simulation(system, integrator, threads=1)
    simulation.context.set_velocities_to_temperature(kT=4.1, seed=2)
    return simulation


def written(folder: Path, capacity: int | None = None, change=None, name="run.h5", **options) -> Run:
    simulation, recorder = everything(capacity), Recorder(10)
    path = folder / name
    simulation.reporters.append(mp.reporters.TrajectoryReporter(path, 10, velocities=True, **options))
    simulation.reporters.append(recorder)
    for k in range(N_FRAMES):
        if change is not None:
            change(simulation, k)
        simulation.step(10)
    simulation.close()
    return Run(path, simulation, recorder.states)


@pytest.fixture(scope="session")
def run(tmp_path_factory) -> Run:
    """Everything, in the same rows throughout."""
    return written(tmp_path_factory.mktemp("run"))


def _comes_and_goes(simulation, k):
    topology = simulation.topology
    with topology.edit():
        if k == 1:
            topology["proteins"].remove(topology["proteins"].beads[3:9])
        elif k == 3:
            topology["proteins"].add(4, seed=6)
            topology["beads"].remove(topology["beads"].beads[:2])
        elif k == 4:
            topology["actin"].add([np.arange(4)[:, None] * [25.0, 0, 0] + [0.0, 0, 150.0]])
        elif k == 5:
            topology["actin"].remove(1, terms="remove")
        elif k == 6:
            # No row is left for all of these: frames go on in another file.
            topology["beads"].add(np.random.default_rng(8).normal(0.0, 50.0, (20, 3)))


@pytest.fixture(scope="session")
def changing(tmp_path_factory) -> Run:
    """Everything, and beads that come and go, so that frames go on in a second file."""
    return written(tmp_path_factory.mktemp("changing"), 60, _comes_and_goes)


def boxed(box_z: float | None = 130.0) -> mp.Simulation:
    """A patch that closes through the sides of a box with points, a vesicle cut by its corner with points, filaments
    across its sides, balls and beads far from it, and bodies; a bond and a link across sides."""
    rng = np.random.default_rng(7)
    topology = mp.Topology()
    sheet = mp.TriangleMesh.flat_sheet(14, 12, 10.0, periodic=True)
    patch = topology.add_membrane(
        sheet.translated([33.0, 21.0, 30.0]), vertex_mass=1e-6, vertex_friction=1e-3, name="patch"
    )
    sphere = mp.TriangleMesh.icosphere(20.0, 1).translated([139.0, 101.0, 80.0])
    vesicle = topology.add_membrane(sphere, vertex_mass=1e-6, vertex_friction=1e-3, name="vesicle")
    for one, n in ((patch, 40), (vesicle, 15)):
        topology.add_intriangle_points(one, n, mass=1e-6, friction=1e-3, seed=1, name=f"on {one.name}")
    nodes = [rng.uniform(0.0, 100.0, 3) + np.arange(7)[:, None] * [9.0, 3.0, 1.0] for _ in range(5)]
    topology.add_filaments(nodes, node_mass=1e-7, node_friction=1e-4, name="actin")
    balls = topology.add_balls(rng.normal(0.0, 300.0, (20, 3)), radius=4.0, mass=1e-7, friction=1e-4, name="balls")
    beads = topology.add_beads(rng.uniform(0.0, 100.0, (12, 3)), mass=1e-7, friction=1e-4, name="beads")
    turns = rng.normal(size=(4, 4))
    topology.add_rigid_bodies(
        rng.normal(0.0, 100.0, (4, 3)), turns / np.linalg.norm(turns, axis=1)[:, None], 1e-7,
        [2e-5, 1.6e-5, 0.8e-5], (1e-4, 1e-2), name="bodies",
    )  # fmt: skip
    system = mp.System(topology, box=(*sheet.box[:2], box_z))
    for one in (patch, vesicle):
        system.add_force(mp.forces.MembraneEdgeSprings(one, 0.1, name=f"springs of {one.name}"))
    system.add_force(mp.forces.Links(balls.beads[:6], balls.beads[6:12], stiffness=1e-4, length=30.0))
    system.add_force(mp.forces.HarmonicBonds(beads.beads.reshape(-1, 2), stiffness=1e-4, length=30.0))
    simulation = mp.Simulation(system, mp.BAGOGABIntegrator(1e-7, kT=4.1, seed=3), threads=1)
    simulation.context.set_velocities_to_temperature(kT=4.1, seed=2)
    return simulation


def _box_grows(simulation: mp.Simulation, k: int) -> None:
    """Between frames, along z."""
    box = simulation.context.get_state().box
    simulation.context.set_box((*box[:2], 130.0 + 2.0 * k))


def _written_in_a_box(folder: Path, box_z: float | None, change=None) -> Run:
    simulation, recorder = boxed(box_z), Recorder(5)
    path = folder / "run.h5"
    simulation.reporters.append(mp.reporters.TrajectoryReporter(path, 5, velocities=True))
    simulation.reporters.append(recorder)
    for k in range(4):
        if change is not None:
            change(simulation, k)
        simulation.step(5)
    simulation.close()
    return Run(path, simulation, recorder.states)


@pytest.fixture(scope="session")
def in_a_box(tmp_path_factory) -> Run:
    """In a box that is periodic in all directions, and grows along z."""
    return _written_in_a_box(tmp_path_factory.mktemp("box"), 130.0, _box_grows)


@pytest.fixture(scope="session")
def in_a_slab(tmp_path_factory) -> Run:
    """In a box that is open along z."""
    return _written_in_a_box(tmp_path_factory.mktemp("slab"), None)
