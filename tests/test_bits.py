"""The same bits, always: for any number of threads, way of cutting step(n), look in between, and restart.

One row per kind of bead and one per word; later kinds enter by one row.
"""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import medyanpy as mp
from medyanpy._kernels import selected


def vesicle():
    """Everything of this release at once: enough beads that every loop really runs in parallel."""
    rng = np.random.default_rng(1)
    topology = mp.Topology()
    topology.add_beads(rng.normal(0.0, 2.0, (3000, 3)), mass=1.0, friction=0.3, name="solvent")
    mesh = mp.TriangleMesh.icosphere(10.0, 4)
    membrane = topology.add_membrane(mesh, vertex_mass=1.0, vertex_friction=0.5)
    points = topology.add_intriangle_points(
        membrane, 5000, mass=rng.uniform(0.5, 1.0, 5000), friction=rng.uniform(0.0, 1.0, 5000), seed=3
    )
    topology.add_balls(rng.normal(0.0, 3.0, (50, 3)), 0.5, mass=2.0, friction=1.0)
    system = mp.System(topology)
    system.add_force(mp.forces.MembraneEdgeSprings(membrane, 30.0))
    pairs = np.column_stack([points.beads[:2000], rng.choice(3000, 2000)])
    system.add_force(mp.forces.HarmonicBonds(pairs, 0.1, 8.0, group=0))
    return system


def points_on_a_fixed_mesh():
    topology = mp.Topology()
    membrane = topology.add_membrane(mp.TriangleMesh.torus(10.0, 4.0, 30, 15), vertex_mass=1.0, fixed=True)
    topology.add_intriangle_points(membrane, 5000, mass=1.0, friction=0.4, seed=2)
    return mp.System(topology)


def free_beads():
    rng = np.random.default_rng(2)
    topology = mp.Topology()
    beads = topology.add_beads(rng.normal(0.0, 5.0, (40000, 3)), mass=rng.uniform(1.0, 2.0, 40000), friction=0.2)
    system = mp.System(topology)
    system.add_force(mp.forces.HarmonicBonds(np.column_stack([beads.beads[:-1], beads.beads[1:]]), 1.0, 1.0))
    return system


SYSTEMS = {"vesicle": vesicle, "points on a fixed mesh": points_on_a_fixed_mesh, "free beads": free_beads}
WORDS = ["BAGOGAB", "BAGAB", "AGBOBGA", "OGABAGO"]
STEPS = 12


def run(make, word, threads=1, cuts=(STEPS,), look=False, restart=None):
    simulation = None
    for i, n in enumerate(cuts):
        if simulation is None or restart is not None:
            fresh = mp.Simulation(make(), mp.SplittingIntegrator(word, 0.01, kT=1.0, seed=9), threads=threads)
            if simulation is None:
                fresh.context.set_velocities_to_temperature(kT=1.0, seed=4)
            else:
                simulation.save_checkpoint(restart / f"{i}.chk")
                fresh.load_checkpoint(restart / f"{i}.chk")
            simulation = fresh
        simulation.step(n)
        if look:
            simulation.context.get_state(positions=True, velocities=True, forces=True, energy=True)
    state = simulation.context.get_state(positions=True, velocities=True, forces=True, energy=True)
    return state


def assert_same(a, b):
    assert a.step == b.step
    assert a.time == b.time
    for name in ("positions", "velocities", "forces"):
        assert (getattr(a, name) == getattr(b, name)).all(), name
    assert (a.intriangle.triangles == b.intriangle.triangles).all()
    assert (a.intriangle.barycentric == b.intriangle.barycentric).all()
    assert a.energies == b.energies
    assert a.kinetic_energies == b.kinetic_energies
    assert a.temperatures == b.temperatures


@pytest.fixture(scope="module", params=[(s, w) for s in SYSTEMS for w in WORDS], ids=lambda p: f"{p[0]}-{p[1]}")
def once(request):
    name, word = request.param
    return SYSTEMS[name], word, run(SYSTEMS[name], word)


@pytest.mark.parametrize("threads", [2, 3, 4])
def test_threads(once, threads):
    make, word, reference = once
    assert_same(run(make, word, threads=threads), reference)


@pytest.mark.parametrize("cuts", [(1,) * STEPS, (5, 7), (0, 11, 1)])
def test_ways_of_cutting_the_run(once, cuts):
    make, word, reference = once
    assert_same(run(make, word, cuts=cuts), reference)


def test_looking_changes_nothing(once):
    make, word, reference = once
    assert_same(run(make, word, cuts=(1,) * STEPS, look=True), reference)


def test_restart_on_another_number_of_threads(once, tmp_path):
    make, word, reference = once
    assert_same(run(make, word, cuts=(4, 4, 4), threads=2, restart=tmp_path), reference)


def test_the_runs_are_not_trivially_equal(once):
    make, word, reference = once
    start = run(make, word, cuts=(0,))
    assert (start.positions != reference.positions).mean() > 0.3
    crossed = (start.intriangle.triangles != reference.intriangle.triangles).mean() if make is not free_beads else 1.0
    assert crossed > 0.02


ON_ANY_PROCESSOR = """
import hashlib, sys
sys.path.insert(0, {folder!r})
import test_bits
state = test_bits.run(test_bits.SYSTEMS[{name!r}], {word!r}, threads={threads})
content = [state.positions, state.velocities, state.forces, state.intriangle.barycentric]
print(hashlib.sha256(b"".join(a.tobytes() for a in content)).hexdigest(), sorted(state.energies.items()))
"""


@pytest.mark.parametrize("word", ["BAGOGAB"])
@pytest.mark.parametrize("name", SYSTEMS)
def test_instruction_sets(name, word):
    """Every variant that this processor can run, each in a process of its own, on two threads."""
    printed = {}
    for isa in selected.built:
        code = ON_ANY_PROCESSOR.format(folder=str(Path(__file__).parent), name=name, word=word, threads=2)
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "MEDYANPY_ISA": isa},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        printed[isa] = done.stdout
    assert len(set(printed.values())) == 1, printed
