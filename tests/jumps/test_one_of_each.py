"""One A, one B, one C: the probability of C in closed form, to some percent of K_D, at rest and on meshes that move.

With the area S and K_D = 1/S ideal points are as often C as A and B. In energies W_s = ∫ e^{-U_s/kT} dA takes the place
of S, and P(C)/P(A, B) = W_C/(K_D W_A W_B). Each event C -> A + B tells how long there was a C: n = μ P(C) t on average,
which needs no looks at the state. kT = 1.
"""

import numpy as np
import pytest
from builders import octahedron, uneven_sheet

import medyanpy as mp
from medyanpy.testing import check_mean

pytestmark = pytest.mark.long

OFF = 0.5
# Meshes at rest, reaches (on the octahedron as long as an edge), steps of a batch, and the error of K_D that is found.
REST = {
    "octahedron": (octahedron, 1.4, 52_000, 0.01), "sheet": (lambda: uneven_sheet(4), 1.0, 5000, 0.05),
    "torus": (lambda: mp.TriangleMesh.torus(1.2, 0.5, 10, 6), 1.0, 2000, 0.12),
}  # fmt: skip
WELLS = {"A": 0.7, "B": 1.2, "C": 0.4}


def built(meshes, reach, constant, off, timestep, word="JBAGOGABJ", forces=(), fixed=True, friction=1.0, seed=1):
    """Meshes with one A and one B each, which do not see each other."""
    topology, members = mp.Topology(), []
    for mesh in meshes:
        membrane = topology.add_membrane(mesh, vertex_mass=4.0, vertex_friction=0.0 if fixed else 8.0, fixed=fixed)
        numbers = {name: {"mass": mass, "friction": friction} for name, mass in (("A", 1.0), ("B", 2.0), ("C", 3.0))}
        members.append(topology.add_intriangle_points(
            membrane, species=numbers, counts={"A": 1, "B": 1}, capacity=2, seed=seed
        ))  # fmt: skip
    system = mp.System(topology)
    for points in members:
        for force in forces:
            system.add_force(force(points))
        system.add_jump(mp.jumps.Reactions(
            points, "A + B <-> C", reach=reach, dissociation_constant=constant, off_rate=off, most_partners=10
        ))  # fmt: skip
    return members, mp.Simulation(system, mp.SplittingIntegrator(word, timestep, kT=1.0, seed=seed), threads=1)


def shares_of_complexes(simulation, off, batches, steps):
    """P(C) in batches, by the events in which it ends."""
    simulation.step(200)
    out, before = [], 0
    for k in range(batches + 1):
        jump = simulation.context.get_state(positions=True).jumps["Reactions"]
        out.append(jump["events"][1] - before)
        before = jump["events"][1]
        if k < batches:
            simulation.step(steps)
    return np.array(out[1:]) / (off * steps * simulation.integrator.timestep)


def check_share(what, shares, ratio, sees):
    """Check P(C) against P(C)/P(A, B), of which an error of `sees` is found."""
    expected = ratio / (1.0 + ratio)
    check_mean(what, shares, expected, sees=sees * expected * (1.0 - expected))


@pytest.mark.parametrize("name", REST)
def test_ideal_points_on_a_mesh_at_rest(name):
    """Flights of about the size of the mesh in each step, and one event in two steps, which are nearly independent."""
    made, reach, steps, sees = REST[name]
    mesh = made()
    _, simulation = built([mesh], reach, 1.0 / mesh.area, OFF, 2.0)
    check_share(name, shares_of_complexes(simulation, OFF, 100, steps), 1.0, sees)


def integrals(mesh, n=60):
    """W of each species in its own field, by the midpoints of small triangles."""
    i, j = np.meshgrid(np.arange(n), np.arange(n), indexing="ij")
    up, down = i + j < n, i + j < n - 1
    at = np.concatenate([np.stack([i[up], j[up]], 1) + 1 / 3, np.stack([i[down], j[down]], 1) + 2 / 3]) / n
    a, b, c = mesh.vertices[mesh.faces].transpose(1, 0, 2)
    x = a[:, None] + at[:, :1] * (b - a)[:, None] + at[:, 1:] * (c - a)[:, None]
    areas = mesh.face_areas[:, None] / len(at)
    return {name: float((areas * np.exp(depth * np.exp(-(x[..., 0] ** 2)))).sum()) for name, depth in WELLS.items()}


def wells(name):
    return lambda points: mp.forces.ExternalField(points.of(name), "-w*exp(-x^2)", w=WELLS[name])


@pytest.mark.parametrize("word", ["JBAGOGABJ", "J M(BAGAB) O J"])
def test_points_in_wells_of_different_depths(word):
    """Frequencies of the wells times the timestep are at most 0.15."""
    mesh = octahedron()
    w = integrals(mesh)
    constant = w["C"] / (w["A"] * w["B"])
    _, simulation = built([mesh], 1.4, constant, 20.0, 0.1, word, [wells(name) for name in "ABC"])
    check_share("in wells", shares_of_complexes(simulation, 20.0, 100, 1500), 1.0, 0.1)
    # What a law without the wells would say.
    assert abs(np.log(constant * mesh.area)) > 0.2


@pytest.mark.parametrize("word", ["JBAGOGABJ", "J M(BAGAB) O J"])
def test_points_of_meshes_that_move(word):
    """The area fluctuates: <1/S> of A and B is K_D P(C), and S goes with A and B more often than with C."""
    meshes = [mp.TriangleMesh.icosphere(1.2, 0) for _ in range(20)]
    springs = lambda points: mp.forces.MembraneEdgeSprings(points.membrane, 40.0)  # noqa: E731
    area = meshes[0].area
    members, simulation = built(meshes, 1.2, 1.0 / area, 8.0, 0.03, word, [springs], fixed=False)
    simulation.step(300)
    rows = [points.membrane.beads for points in members]
    faces = meshes[0].faces
    found, areas = [], []
    for _ in range(1600):
        simulation.step(30)
        state = simulation.context.get_state(positions=True)
        x = np.stack([state.positions[own] for own in rows])[:, faces]
        s = 0.5 * np.linalg.norm(np.cross(x[:, :, 1] - x[:, :, 0], x[:, :, 2] - x[:, :, 0]), axis=2).sum(axis=1)
        bound = np.array([len(state.living(points)) == 1 for points in members])
        found.append(np.where(bound, -1.0, area / s).mean())
        areas.append(s)
    assert np.std(areas) > 0.03 * area
    check_mean("1/S of A and B less K_D of C", np.array(found), 0.0, sees=0.14, time_series=True)
