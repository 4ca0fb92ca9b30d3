"""Laws of all forces that need no energy written twice: bits where there are many blocks, forces on nobody, and who
asks for the pass over in-triangle points. Each force that is tested is a row."""

import numpy as np
import pytest
from builders import system_with

import medyanpy as mp
from medyanpy.testing import ForceCase
from medyanpy.testing.forces import check_bits

F = mp.forces
RNG = np.random.default_rng(5)


# Bits: with more beads than in the contract, so that several blocks and threads have some of them ------------------


def beads(n, make):
    x = np.stack(np.unravel_index(RNG.permutation(n), (21,) * 3), 1) * 2.1
    x += RNG.uniform(-0.2, 0.2, x.shape)

    def build():
        topology = mp.Topology()
        return topology, make(topology.add_beads(x, mass=1.0))

    return build


def membrane(make):
    """With vertices and faces in no order."""
    mesh = mp.TriangleMesh.icosphere(10.0, 4)
    order = RNG.permutation(len(mesh.vertices))
    x = mesh.vertices + RNG.normal(0.0, 0.05, mesh.vertices.shape)
    mesh = mp.TriangleMesh(x[order], RNG.permutation(np.argsort(order)[mesh.faces]))

    def build():
        topology = mp.Topology()
        return topology, make(topology.add_membrane(mesh, vertex_mass=1.0))

    return build


def curved_points():
    topology = mp.Topology()
    mesh = mp.TriangleMesh.icosphere(10.0, 4)
    x = mesh.vertices + 0.05 * np.sin(3.0 * mesh.vertices[:, ::-1])
    membrane = topology.add_membrane(mesh.with_vertices(x), vertex_mass=1.0)
    points = topology.add_intriangle_points(membrane, 5000, mass=1.0, seed=1)
    return topology, F.PointCurvature(points, 82.0, 0.2, 3.0)


CHARGES, SOME = RNG.normal(size=700), np.linspace(-1.0, 2.0, 1500)
MANY = {
    "charges": beads(700, lambda b: F.Coulomb(b, CHARGES)),
    "Lennard-Jones of all pairs": beads(700, lambda b: F.LennardJones(b, b, 1.0, 1.9)),
    "Yukawa of all pairs": beads(700, lambda b: F.Yukawa(b, b, 1.0, 1.9)),
    "Morse, switched": beads(1500, lambda b: F.Morse(b, b, 1.0, 0.3, 9.0, cutoff=12.0, switch=10.0)),
    "custom pairs": beads(1500, lambda b: F.CustomPair(b, b, "q1*q2*exp(-r/9)", cutoff=12.0, q=SOME)),
    "custom bonds": beads(9000, lambda b: F.CustomBonds(np.column_stack([b.beads[:-1], b.beads[1:]]), "tanh(r/9)^1.3")),
    "uniform field": beads(9000, lambda b: F.UniformField(b.beads[:-1], [1.0, 2.0, 3.0])),
    "harmonic trap": beads(9000, lambda b: F.HarmonicTrap(b.beads[:-1], 2.0, [1.0, 2.0, 3.0])),
    "bending, vertex": membrane(lambda m: F.MembraneBending(m, 82.0, 0.01, "vertex")),
    "bending, dihedral": membrane(lambda m: F.MembraneBending(m, 82.0, 0.01, "dihedral")),
    "area": membrane(lambda m: F.MembraneArea(m, 200.0, 1200.0)),
    "area of each triangle": membrane(lambda m: F.MembraneArea(m, 200.0, 0.2, per_triangle=True)),
    "tension": membrane(lambda m: F.MembraneTension(m, 0.02)),
    "tether": membrane(lambda m: F.MembraneTether(m, 50.0, l_min=0.2, l_c1=1.0, l_c0=1.0, l_max=3.0)),
    "folds": membrane(lambda m: F.MembraneFoldRepulsion(m, 50.0, 0.02)),
    "volume": membrane(lambda m: F.MembraneVolume(m, 0.8, 4000.0)),
    "pressure": membrane(lambda m: F.MembranePressure(m, 0.8)),
    "osmotic pressure": membrane(lambda m: F.MembraneOsmoticPressure(m, 4000.0, 0.9, kT=2.0)),
    "Gaussian curvature": membrane(lambda m: F.MembraneGaussianCurvature(m, np.linspace(-9.0, 5.0, len(m)))),
    "area difference, vertex": membrane(lambda m: F.MembraneAreaDifference(m, 80.0, 1.0, 300.0)),
    "area difference, dihedral": membrane(lambda m: F.MembraneAreaDifference(m, 80.0, 1.0, 300.0, None, "dihedral")),
    "two phases": membrane(lambda m: F.MembraneLineTension(m, np.arange(len(m)) % 3 == 0, 2.0)),
    "adhesion": membrane(lambda m: F.MembraneAdhesion(m, mp.surfaces.Sphere(9.0), 2.0, 1.0)),
    "curved points": curved_points,
}


# Under sanitizers these take 20 s each; the contract has the same kernels on fewer beads.
LONG = ("Morse, switched", "custom pairs")


@pytest.mark.filterwarnings("ignore::medyanpy.TimestepWarning")  # Nothing moves.
@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * (name in LONG)) for name in MANY])
def test_bits_of_many(name):
    check_bits(ForceCase(name, MANY[name], lambda x: 0.0, 1.0))


# Nobody, and points -------------------------------------------------------------------------------------------------


def scene():
    topology = mp.Topology()
    handles = {"beads": topology.add_beads([[3.0, 0, 0], [-1.0, 6.0, 2.0]], mass=1.0)}
    handles["balls"] = topology.add_balls([[4.0, 0, 0], [0.0, 6.0, 2.0]], 2.0, mass=1.0)
    handles["vesicle"] = topology.add_membrane(mp.TriangleMesh.icosphere(4.0, 0), vertex_mass=1.0)
    handles["points"] = topology.add_intriangle_points(handles["vesicle"], 8, mass=1.0, seed=1)
    handles["bodies"] = topology.add_rigid_bodies(np.eye(3)[:2], [[1.0, 0, 0, 0]] * 2, 1.0, [1.0, 1.0, 1.0])
    return topology, handles


def context_of(topology, force):
    return mp.Context(system_with(topology, force), mp.SplittingIntegrator("BAGAB", 1e-6))


NO, NO_PAIRS, NO_TRIPLES = np.empty(0, int), np.empty((0, 2), int), np.empty((0, 3), int)
NOBODY = {
    "bonds": lambda h: F.HarmonicBonds(NO_PAIRS, 1.0, 1.0),
    "custom bonds": lambda h: F.CustomBonds(NO_PAIRS, "k*r", k=1.0),
    "links": lambda h: F.Links([], [], 1.0, 1.0),
    "angles": lambda h: F.AngleLinks([], [], [], 1.0, 1.0),
    "normals": lambda h: F.NormalLinks([], [], [], 1.0),
    "lengths": lambda h: F.LinkLengthPenalty(NO_PAIRS, 1.0, 1.0),
    "triangles": lambda h: F.RigidTrianglePenalty(NO_TRIPLES, 1.0, [1.0, 1.0, 1.0]),
    "frames": lambda h: F.OrthonormalFramePenalty(NO_TRIPLES, 1.0),
    "texts": lambda h: F.ConstraintPenalty("x1*x2 - k", NO_PAIRS, 1.0, k=1.0),
    "charges": lambda h: F.Coulomb([], 1.0),
    "Lennard-Jones": lambda h: F.LennardJones([], [0], 1.0, 1.0),
    "Morse": lambda h: F.Morse([], [0], 1.0, 1.0, 1.0, cutoff=3.0),
    "table of pairs": lambda h: F.TabulatedPair([0], [], [0.0, 1.0, 2.0, 3.0], [1.0, 0.5, 0.1, 0.0]),
    "custom pairs": lambda h: F.CustomPair([], [], "q1*q2/r", cutoff=2.0, q=1.0),
    "custom pairs of two groups": lambda h: F.CustomPair([0], [], "q1*q2/r", cutoff=2.0, q1=[1.0], q2=[]),
    "soft spheres, no sites": lambda h: F.SoftSphere(mp.Sites.beads([]), h["beads"], 1.0, 1.6),
    "soft spheres, no anchors": lambda h: F.SoftSphere(h["beads"], mp.Sites.anchors(np.zeros((0, 3))), 1.0, 1.6),
    "ellipsoids": lambda h: F.EllipsoidRepulsion(NO, h["bodies"], 1.0, [1.0, 2.0, 3.0]),
    "wall": lambda h: F.WallRepulsion(mp.boundaries.Plane(), NO, 1.0, 1.0),
    "uniform field": lambda h: F.UniformField(NO, [1.0, 0, 0]),
    "harmonic trap": lambda h: F.HarmonicTrap(NO, 1.0, [1.0, 0, 0]),
    "external field": lambda h: F.ExternalField(NO, "k*x^2", k=1.0),
}


@pytest.mark.parametrize("name", NOBODY)
def test_force_on_no_beads_is_zero(name):
    topology, handles = scene()
    force = NOBODY[name](handles)
    context = context_of(topology, force)
    state = context.get_state(energy=True, forces=True)
    assert state.potential_energy == 0.0
    assert (state.forces == 0.0).all()
    if context._schedule.bound_forces[force.name].derivatives == 3:
        assert (context.hessian().toarray() == 0.0).all()
        assert (context.third_derivative(np.ones((topology.n_beads, 3))) == 0.0).all()


@pytest.mark.parametrize(("make", "asks"), [
    (lambda h: F.HarmonicBonds([[0, 1]], 1.0, 1.0), False),
    (lambda h: F.HarmonicBonds([[0, h["points"].beads[2]]], 1.0, 1.0), True),
    (lambda h: F.CustomBonds([[0, 1]], "cosh(r)"), False),
    (lambda h: F.CustomBonds([[0, h["points"].beads[2]]], "cosh(r)"), True),
    (lambda h: F.Links(h["beads"], h["balls"], 1.0), False),
    (lambda h: F.Links(h["beads"], h["points"].beads[:2], 1.0), True),
    (lambda h: F.WCA(h["beads"], h["balls"], 1.0, 0.1), False),
    (lambda h: F.SoftSphere(h["points"], h["beads"], 1.0, 0.1), True),
    (lambda h: F.Coulomb(h["beads"], 1.0), False),
    (lambda h: F.Coulomb([h["beads"], h["points"]], 1.0), True),
    (lambda h: F.SoftCollisions(h["balls"], 1.0), False),
    (lambda h: F.SoftCollisions([h["points"], h["balls"]], 1.0, 1.0), True),
    (lambda h: F.EllipsoidCollisions(h["bodies"], h["balls"], 1.0, [1.0] * 3, form="soft"), False),
    (lambda h: F.EllipsoidCollisions(h["bodies"], h["points"], 1.0, [1.0] * 3, 0.1, form="soft"), True),
    (lambda h: F.UniformField(h["balls"], [1.0, 0, 0]), False),
    (lambda h: F.WallRepulsion(mp.boundaries.Plane(), h["balls"], 1.0, 1.0, form="soft"), False),
    (lambda h: F.WallRepulsion(mp.boundaries.Plane(), h["points"], 1.0, 1.0, form="soft"), True),
    (lambda h: F.UniformField([h["points"]], [1.0, 0, 0]), True),
    (lambda h: F.ExternalField(h["vesicle"], "x"), False),
    (lambda h: F.ExternalField(h["points"], "x"), True),
])  # fmt: skip
def test_only_forces_on_points_ask_for_the_points_pass(make, asks):
    topology, handles = scene()
    force = make(handles)
    assert context_of(topology, force)._schedule.bound_forces[force.name].acts_on_points == asks
