"""The engine under a Context: who owns which array, and who knows whom."""

import ast
import warnings
from pathlib import Path

import numpy as np
import pytest

import medyanpy as mp
from medyanpy.engine.store import Store

ENGINE = Path(mp.__file__).parent / "engine"


@pytest.fixture
def simulation():
    """Every kind of bead."""
    rng = np.random.default_rng(7)
    topology = mp.Topology()
    beads = topology.add_beads(rng.normal(0, 3, (4, 3)), mass=1.0, friction=0.5)
    topology.add_balls(rng.normal(0, 3, (3, 3)) + 10, [1.0, 1.2, 0.8], mass=2.0, friction=0.3)
    vesicle = topology.add_membrane(mp.TriangleMesh.icosphere(10.0, 1), vertex_mass=1.0, vertex_friction=0.4)
    topology.add_intriangle_points(vesicle, 9, mass=0.7, friction=0.2, seed=3)
    line = np.column_stack([30 + np.arange(5.0), np.zeros((5, 2))])
    topology.add_filament(line, 1.0, 0.5, directors="parallel", director_mass=0.1, director_friction=0.05,
                          name="twistable")  # fmt: skip
    torus = mp.surfaces.Torus(9.0, 2.0)
    topology.add_surface_points(torus, torus.sample(7, 1), mass=1.0, friction=0.5)
    turns = rng.normal(size=(3, 4))
    turns /= np.linalg.norm(turns, axis=1)[:, None]
    topology.add_rigid_bodies(rng.normal(0, 3, (3, 3)) - 20, turns, 1.0, (1.0, 1.5, 2.0), (0.4, 0.6))
    x, q = mp.rods.uniform(5, 2.0, curvature=[0.0, 0.05, 0.02])
    rod = topology.add_rod(x + [0, 0, 50], q, 2.0, 1.0, [1.0, 1.0, 1.5], friction=(0.5, 1.0), rotational_friction=0.3)
    system = mp.System(topology)
    for force in (
        mp.forces.HarmonicTrap(beads, 0.3, [0.0, 0, 0]),
        mp.forces.MembraneEdgeSprings(vesicle, 3.0),
        mp.forces.RodElasticity(rod, shear=20.0, extension=20.0, bending=5.0, twist=5.0),
    ):
        system.add_force(force)
    simulation = mp.Simulation(system, mp.BAGOGABIntegrator(0.005, kT=1.0, seed=5), threads=1)
    simulation.context.set_velocities_to_temperature(kT=1.0, seed=6)
    return simulation


def pointers(store):
    arrays = {name: a for name, a in vars(store).items() if isinstance(a, np.ndarray)} | store.arrays
    return {name: a.__array_interface__["data"][0] for name, a in arrays.items()}


def test_arrays_stay_where_the_program_points_to(simulation, tmp_path):
    """Whatever is set, loaded, minimised or restored: kernels hold addresses."""
    context, store = simulation.context, simulation.context._store
    before = pointers(store)
    assert {"x", "v", "mass", "inverse_mass", "orientation", "spin", "triangle", "barycentric", "faces"} <= set(before)
    state = context.get_state(positions=True, velocities=True)
    simulation.save_checkpoint(tmp_path / "checkpoint")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mp.ConvergenceWarning)
        simulation.minimize_energy(max_iterations=3)
    context.set_positions(state.positions)
    context.set_velocities(state.velocities)
    context.set_orientations(state.orientations)
    context.set_angular_momenta(state.angular_momenta)
    context.set_intriangle(state.intriangle.triangles, state.intriangle.barycentric)
    context.set_velocities_to_temperature(kT=1.0, seed=1)
    context.set_state(state)
    simulation.load_checkpoint(tmp_path / "checkpoint")
    context.integrator.set(timestep=0.004)
    simulation.report_work = True
    simulation.step(2)
    store.v[0] = np.nan
    store.program.changed()
    with pytest.raises(mp.SimulationError):
        simulation.step(1)
    assert pointers(store) == before
    # And the program moves these arrays, not copies of them.
    context.set_state(state)
    x = store.x.copy()
    simulation.step(1)
    assert (store.x != x).any()


def test_a_store_needs_a_topology_alone(simulation):
    store = Store(simulation.topology, 1, seed=3)
    assert store.step == 0
    assert pointers(store).keys() == pointers(simulation.context._store).keys()
    np.testing.assert_array_equal(store.mass, simulation.context._store.mass)


# What each part may know, beside NumPy and kernels. The store knows no forces, the schedule no users.
MAY_KNOW = {
    "store": {"_tools", "beads", "core.columns", "core.handles", "core.kinds", "core.layout", "core.species", "errors",
              "pools", "topology"},
    "flipping": {"_tools", "core.kinds", "engine", "errors"},
    "schedule": {"core.flows", "core.kinds", "core.layout", "core.letters", "core.words", "engine", "errors",
                 "integrators", "system"},
    "measure": {"_tools", "core.columns", "engine", "errors", "kicks", "core.letters", "state", "units"},
    "faults": {"_tools", "engine", "errors", "mesh"},
}


@pytest.mark.parametrize("part", MAY_KNOW)
def test_parts_of_the_engine_know_only_what_they_may(part):
    found = set()
    tree = ast.parse((ENGINE / f"{part}.py").read_text())
    # What only checkers of types read is no knowledge.
    tree.body = [n for n in tree.body if not (isinstance(n, ast.If) and "TYPE_CHECKING" in ast.dump(n.test))]
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("medyanpy"):
            modules = [node.module] if node.module != "medyanpy" else [f"medyanpy.{a.name}" for a in node.names]
            parts = [module.split(".")[1:] for module in modules]
            found |= {".".join(names[: 2 if names[0] == "core" else 1]) for names in parts}
    assert found - {"_kernels"} <= MAY_KNOW[part]
