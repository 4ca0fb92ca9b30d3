"""How stiff forces say they are, against the largest eigenvalue of the matrix of second derivatives.

Law: with ω the highest frequency of the mass-weighted matrix of second derivatives where beads start (of central
differences of the forces), the longest timestep is at most 1.0001 · 2/ω (0.01 % for the differences) and at least
half of it.
"""

import numpy as np
import pytest
from builders import system_with

import medyanpy as mp

RNG = np.random.default_rng(20261122)


def longest(system, step=1e-5):
    """2 over the highest frequency, from forces on Cartesian beads."""
    context = mp.Context(system, mp.VerletIntegrator(1e-12), threads=1)
    x = np.array(context.get_state(positions=True).positions)
    matrix = np.empty((x.size, x.size))
    for i in range(x.size):
        forces = []
        for sign in (1.0, -1.0):
            moved = x.copy()
            moved.flat[i] += sign * step
            context.set_positions(moved)
            forces.append(context.get_state(forces=True).forces.ravel())
        matrix[i] = (forces[1] - forces[0]) / (2.0 * step)
    handles = system.topology.handles
    mass = np.concatenate([h.mass for h in handles])
    fixed = np.concatenate([h.kind.fixed_beads for h in handles])
    scale = np.repeat(np.where(fixed, 0.0, 1.0 / np.sqrt(mass)), 3)
    return 2.0 / np.sqrt(np.linalg.eigvalsh(scale[:, None] * 0.5 * (matrix + matrix.T) * scale)[-1])


def holds(topology, force, least=0.5, most=1.0001):
    system = system_with(topology, force)
    exact = longest(system)
    said = force.longest_timestep(topology)
    assert least * exact <= said <= most * exact, (said, exact, said / exact)


def uneven(n):
    return RNG.uniform(1.0, 4.0, n)


MESHES = {
    "sphere": mp.TriangleMesh.icosphere(10.0, 1),
    "cell": mp.TriangleMesh.red_blood_cell(20.0, 1),
    "sheet": mp.TriangleMesh.flat_sheet(5, 5, 3.0),
    "untidy": mp.TriangleMesh.icosphere(10.0, 1).with_vertices(
        mp.TriangleMesh.icosphere(10.0, 1).vertices + RNG.normal(0.0, 0.5, (42, 3))
    ),
}
MEMBRANE_FORCES = {
    "springs": lambda v: mp.forces.MembraneEdgeSprings(v, 1.3),
    "bending": lambda v: mp.forces.MembraneBending(v, 20.0),
    "dihedral": lambda v: mp.forces.MembraneBending(v, 20.0, discretization="dihedral"),
    "curved": lambda v: mp.forces.MembraneBending(v, 20.0, 0.1),
    "area": lambda v: mp.forces.MembraneArea(v, 1.3),
    "stretched area": lambda v: mp.forces.MembraneArea(v, 1.3, 0.8 * v.mesh.area),
    "triangles": lambda v: mp.forces.MembraneArea(v, 1.3, per_triangle=True),
    "stretched triangles": lambda v: mp.forces.MembraneArea(v, 1.3, 0.8 * v.mesh.face_areas, per_triangle=True),
    "tension": lambda v: mp.forces.MembraneTension(v, 0.3),
    "tether": lambda v: mp.forces.MembraneTether(v, 5.0, 0.8 * float(v.mesh.edge_lengths.mean()), l_min=0.01, l_c1=0.95,
                                                 l_c0=0.95, l_max=5.0),
    "folds": lambda v: mp.forces.MembraneFoldRepulsion(v, 5.0, 0.1),
    "volume": lambda v: mp.forces.MembraneVolume(v, 1.3),
    "blown volume": lambda v: mp.forces.MembraneVolume(v, 1.3, 0.8 * v.mesh.volume),
    "osmotic volume": lambda v: mp.forces.MembraneOsmoticPressure(v, 1.1 * v.mesh.volume, 1.0, kT=2.0),
    "phases": lambda v: mp.forces.MembraneLineTension(v, v.mesh.vertices[:, 0] > 1.0, 2.0),
    "borders": lambda v: mp.forces.BorderTension(v, 2.0),
}  # fmt: skip


CASES = [
    (shape, force) for shape in MESHES for force in MEMBRANE_FORCES
    if ("volume" not in force and force != "folds" if shape == "sheet" else force != "borders")
]  # fmt: skip


@pytest.mark.parametrize(("shape", "force"), CASES)
def test_membranes(shape, force):
    mesh = MESHES[shape]
    topology = mp.Topology()
    topology.add_beads([[50.0, 0, 0]], mass=1e-3)  # numbers of vertices are not those of beads
    membrane = topology.add_membrane(mesh, vertex_mass=uneven(len(mesh.vertices)))
    holds(topology, MEMBRANE_FORCES[force](membrane))


def spiked(length):
    """A sphere of which one vertex is drawn out and one pushed in: triangles round them turn away from each other."""
    mesh = mp.TriangleMesh.icosphere(10.0, 1)
    x = np.array(mesh.vertices)
    x[0] *= length
    x[20] *= 0.6
    return mesh.with_vertices(x)


CUBE = mp.TriangleMesh(
    10.0 * np.array([[i, j, k] for i in (0, 1) for j in (0, 1) for k in (0, 1)], float),
    [[0, 1, 3], [0, 3, 2], [4, 6, 7], [4, 7, 5], [0, 4, 5], [0, 5, 1],
     [2, 3, 7], [2, 7, 6], [0, 2, 6], [0, 6, 4], [1, 5, 7], [1, 7, 3]],
)  # fmt: skip


@pytest.mark.parametrize("mesh", [spiked(1.6), spiked(2.5), spiked(6.0), CUBE], ids=["tip", "spike", "thorn", "cube"])
def test_repulsion_of_folds_that_are_there(mesh):
    topology = mp.Topology()
    topology.add_beads([[50.0, 0, 0]], mass=1e-3)
    membrane = topology.add_membrane(mesh, vertex_mass=uneven(len(mesh.vertices)))
    holds(topology, mp.forces.MembraneFoldRepulsion(membrane, 5.0, 0.8), least=0.4)


@pytest.mark.parametrize("curvature", [0.0, 0.3])
@pytest.mark.parametrize("mesh", [spiked(1.6), spiked(2.5), spiked(6.0), CUBE], ids=["tip", "spike", "thorn", "cube"])
def test_vertices_where_a_membrane_is_folded(mesh, curvature):
    """There the vertex form is stiffer than where it is flat, without bound: limits were up to 30 times too long."""
    topology = mp.Topology()
    topology.add_beads([[50.0, 0, 0]], mass=1e-3)
    membrane = topology.add_membrane(mesh, vertex_mass=uneven(len(mesh.vertices)))
    holds(topology, mp.forces.MembraneBending(membrane, uneven(len(mesh.vertices)), curvature), least=0.4)


def test_strong_spontaneous_curvature_of_a_flat_membrane():
    """No fold, but the membrane would have one: 1/c is a tenth of an edge. The vertex form itself is softer there than
    the projected form, whose stiffness it takes."""
    topology = mp.Topology()
    membrane = topology.add_membrane(MESHES["sheet"], vertex_mass=1.0)
    holds(topology, mp.forces.MembraneBending(membrane, 20.0, 3.0), least=0.39)


def test_more_vertices_than_the_root_of_32_bits():
    """Terms are numbered by vertex times vertices: with 32 bits that was wrong beyond 46 340 of them."""
    limits = []
    for side in (20, 220):
        topology = mp.Topology()
        membrane = topology.add_membrane(mp.TriangleMesh.flat_sheet(side, side, 2.0), vertex_mass=1.0)
        limits.append(mp.forces.MembraneBending(membrane, 20.0).longest_timestep(topology))
    assert limits[1] == pytest.approx(limits[0], rel=1e-9)


def test_a_real_mesh_with_folds(shared_data):
    """The limit was 33 times too long, and runs at a quarter of it ran away without a warning."""
    mesh = mp.TriangleMesh.from_file(shared_data / "meshes" / "thin" / "fox.ply")
    topology = mp.Topology()
    membrane = topology.add_membrane(mesh, vertex_mass=1.0)
    holds(topology, mp.forces.MembraneBending(membrane, 20.0))


def bond(topology):
    beads = topology.add_beads(3.0 * RNG.normal(size=(2, 3)), mass=[1.0, 7.0])
    return mp.forces.HarmonicBonds([beads.beads], 5.0, np.linalg.norm(np.subtract(*beads.positions)))


def star(topology):
    x = np.concatenate([np.zeros((1, 3)), RNG.normal(size=(8, 3))])
    beads = topology.add_beads(x, mass=[20.0, *[1.0] * 8])
    pairs = [[0, k] for k in range(1, 9)]
    return mp.forces.HarmonicBonds(pairs, uneven(8), np.linalg.norm(beads.positions[1:], axis=1))


def chain(topology):
    topology.add_beads(2.0 * np.arange(18.0).reshape(6, 3), mass=uneven(6))
    return mp.forces.HarmonicBonds([[k, k + 1] for k in range(5)], 5.0, 6.0 * np.sqrt(3.0))


def fixed_partner(topology):
    filament = topology.add_filament([[0.0, 0, 0], [3.0, 0, 0], [6.0, 0, 0]], 2.0, constrained=False,
                                     fixed_nodes=[0, 2])  # fmt: skip
    return mp.forces.FilamentStretching(filament, 12.0)


def trap(topology):
    beads = topology.add_beads(RNG.normal(size=(3, 3)), mass=[3.0, 1.0, 2.0])
    return mp.forces.HarmonicTrap(beads, [1.0, 4.0, 0.0], [0.0, 0, 0])


def trapped_mean(topology):
    topology.add_beads(RNG.normal(size=(3, 3)), mass=[3.0, 1.0, 2.0])
    return mp.forces.HarmonicTrap(mp.Sites.weighted([[0, 1, 2]], [[0.5, 0.3, 0.2]]), 4.0, [0.0, 0, 0])


def field(topology):
    beads = topology.add_beads(RNG.normal(size=(3, 3)), mass=[3.0, 1.0, 2.0])
    return mp.forces.ExternalField(beads, "a*(x^2 + x*y + 3*y^2) + 2*sin(z)", a=[1.0, 2.0, 3.0])


def links(topology):
    topology.add_beads(3.0 * RNG.normal(size=(5, 3)), mass=uneven(5))
    a = mp.Sites.beads([0, 1]) + mp.Sites.weighted([[1, 2]], [[0.7, 0.3]])
    b = mp.Sites.weighted([[3, 4]], [[0.5, 0.5]]) + mp.Sites.anchors([[9.0, 9, 9]]) + mp.Sites.beads([4])
    return mp.forces.Links(a, b, [2.0, 3.0, 4.0])


def angle(topology):
    x = np.array([[3.0, 0, 0], [0.0, 0, 0], [0.0, 2, 0]])
    topology.add_beads(x, mass=uneven(3))
    return mp.forces.AngleLinks([0], [1], [2], 5.0, 0.5 * np.pi)


def direction(topology):
    topology.add_beads([[0.0, 0, 0], [2.0, 0, 0], [0.0, 5, 0], [3.0, 5, 0]], mass=uneven(4))
    return mp.forces.DirectionLinks([0], [1], [2], [3], 5.0, 0.0)


def custom(topology):
    topology.add_beads([[0.0, 0, 0], [2.0, 0, 0], [4.0, 0, 0], [4.0, 3.0, 0]], mass=uneven(4))
    return mp.forces.CustomBonds([[0, 1], [1, 2], [2, 3]], "k*cosh(r/2) + b*(r - 2)^2", k=0.5, b=[3.0, 4.0, 5.0])


def under_tension(topology):
    """Stiff across bonds alone."""
    topology.add_beads([[0.0, 0, 0], [2.0, 0, 0], [4.0, 0, 0]], mass=uneven(3))
    return mp.forces.CustomBonds([[0, 1], [1, 2]], "k*r", k=[3.0, 5.0])


def penalty(topology):
    topology.add_beads([[0.0, 0, 0], [2.0, 0, 0], [4.0, 0, 0]], mass=uneven(3))
    return mp.forces.LinkLengthPenalty([[0, 1], [1, 2]], 3.0, 2.0)


def triangle(topology):
    topology.add_beads([[0.0, 0, 0], [2.0, 0, 0], [1.0, np.sqrt(3.0), 0]], mass=[1.0, 16.0, 1.0])
    return mp.forces.RigidTrianglePenalty([[0, 1, 2]], 3.0, [2.0, 2.0, 2.0])


def frame(topology):
    topology.add_beads(np.eye(3), mass=[1.0, 2.0, 1.5])
    return mp.forces.OrthonormalFramePenalty([[0, 1, 2]], 3.0)


def filament_bending(topology):
    x = [[3.0 * k, 0.0, 0.0] for k in range(12)]
    return mp.forces.FilamentBending(topology.add_filament(x, uneven(12)), 50.0)


def overlapping(topology):
    balls = topology.add_balls([[0.0, 0, 0], [1.7, 0, 0], [3.1, 0.5, 0], [9.0, 0, 0]], 1.0, mass=uneven(4))
    return mp.forces.SoftSphere(balls, balls, 5.0)


def touching(topology):
    balls = topology.add_balls([[0.0, 0, 0], [1.999, 0, 0]], 1.0, mass=[1.0, 5.0])
    return mp.forces.SoftCollisions(balls, 5.0)


def well(topology):
    beads = topology.add_beads([[0.0, 0, 0], [2.0 ** (1 / 6), 0, 0], [0.0, 2.0 ** (1 / 6), 0]], mass=uneven(3))
    return mp.forces.LennardJones(beads, beads, 3.0, 1.0)


def cluster(topology):
    x = np.array([[i, j, k] for i in range(2) for j in range(2) for k in range(3)], float) * 2.0 ** (1 / 6)
    beads = topology.add_beads(x, mass=1.0)
    return mp.forces.LennardJones(beads, beads, 3.0, 1.0, cutoff=2.5)


def soft_well(topology):
    beads = topology.add_beads([[0.0, 0, 0], [2.0, 0, 0]], mass=[1.0, 3.0])
    return mp.forces.Ricker(beads, beads, 3.0, 2.0)


def colliding(topology):
    beads = topology.add_beads([[0.0, 0, 0], [1.0, 0, 0]], mass=[1.0, 3.0])
    return mp.forces.WCA(beads, beads, 3.0, 1.0)


@pytest.mark.parametrize("make", [bond, star, chain, custom, under_tension, fixed_partner, trap, trapped_mean, field,
                                  links, angle, direction, penalty, triangle, frame, filament_bending, overlapping,
                                  touching, well, cluster, soft_well, colliding], ids=lambda f: f.__name__)  # fmt: skip
def test_others(make):
    topology = mp.Topology()
    holds(topology, make(topology))


@pytest.mark.parametrize("n", [12, 26, 40])
def test_neighborhoods_of_many_beads_are_as_good_as_all(n):
    """A crystal of touching spheres: from 16 384 beads on samples are looked at, and see the same coordination."""
    topology = mp.Topology()
    lattice = np.stack(np.meshgrid(*[np.arange(n)] * 3), axis=-1).reshape(-1, 3)
    beads = topology.add_beads(np.random.default_rng(3).permutation(lattice).astype(float), mass=2.0)
    # Six neighbours along the axes: the bound is that of 2 x 6 springs.
    limit = mp.forces.SoftSphere(beads, beads, 7.0, 1.2).longest_timestep(topology)
    assert limit == pytest.approx(2.0 / np.sqrt(2 * 6 * 7.0 / 2.0), rel=1e-12)
