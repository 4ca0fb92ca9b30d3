"""In-triangle points by Leimkuhler and Matthews' scheme of Brownian motion. False alarms: 1e-6 for each check.

Membranes that move with points in them: test_equilibrium.py.
"""

import numpy as np
import pytest
from builders import refuses

import medyanpy as mp
from medyanpy.errors import ParameterError
from medyanpy.testing import check_mean, check_variance

SCHEME = "Leimkuhler-Matthews"


def brownian(h, seed=1, kT=1.0):
    return mp.BrownianIntegrator(h, kT=kT, seed=seed, scheme=SCHEME)


def flat(n=12, side=12.0):
    """A sheet of 2 n² triangles around the origin."""
    x = np.linspace(-0.5 * side, 0.5 * side, n + 1)
    vertices = np.array([[a, b, 0.0] for a in x for b in x])
    at = np.arange(n)[:, None] * (n + 1) + np.arange(n)
    corners = ([at, at + n + 1, at + n + 2], [at, at + n + 2, at + 1])
    return mp.TriangleMesh(vertices, np.concatenate([np.stack(one, axis=2).reshape(-1, 3) for one in corners]))


def in_the_middle(membrane, n, **numbers):
    """Points near the origin of a sheet, in its triangles there."""
    middle = np.argmin(np.linalg.norm(membrane.mesh.vertices[membrane.mesh.faces].mean(axis=1), axis=1))
    return membrane.topology.add_intriangle_points(
        membrane, triangles=np.full(n, middle), barycentric=np.full((n, 3), 1 / 3), **numbers
    )


def test_a_harmonic_trap_has_its_variance_at_any_stable_step():
    """kT/k along each axis of a flat sheet, at three quarters of the longest step, across triangles. Detects 2 %."""
    n, k, friction = 4000, 8.0, 0.5
    topology = mp.Topology()
    sheet = topology.add_membrane(flat(), vertex_mass=1.0, fixed=True)
    points = in_the_middle(sheet, n, mass=3.0, friction=friction)
    system = mp.System(topology)
    system.add_force(mp.forces.HarmonicTrap(points, k, np.zeros(3)))
    context = mp.Context(system, brownian(1.5 * friction / k), threads=1)
    context.step(60)
    x, faces = [], set()
    for _ in range(10):
        context.step(40)
        state = context.get_state(positions=True)
        x.append(state.positions[points.beads][:, :2].ravel())
        faces |= set(state.intriangle.triangles.tolist())
    assert len(faces) > 6
    check_mean("square of a coordinate", (np.array(x) ** 2).mean(axis=0), 1.0 / k, sees=0.025)


def test_free_points_diffuse_by_their_friction():
    """⟨Δx²⟩ = 2kT t/γ along each axis of a flat sheet. Detects 17 %."""
    n, h, steps, friction = 3000, 0.01, 50, 0.7
    topology = mp.Topology()
    sheet = topology.add_membrane(flat(side=40.0), vertex_mass=1.0, fixed=True)
    points = in_the_middle(sheet, n, mass=1.0, friction=friction)
    context = mp.Context(mp.System(topology), brownian(h), threads=1)
    context.step(1)
    before = context.get_state(positions=True).positions[points.beads]
    context.step(steps)
    moved = (context.get_state(positions=True).positions[points.beads] - before)[:, :2].ravel()
    check_variance("displacements", float(moved @ moved), len(moved), 2.0 * h * steps / friction, sees=0.17)


def test_points_are_uniform_by_area_at_any_step():
    """20 000 points on a box of unequal sides that start in one triangle, by flights of half its length: each share is
    that of the area. Detects 0.02 of each share."""
    n = 20_000
    corners = np.array([[x, y, z] for x in (0.0, 2.0) for y in (0.0, 1.0) for z in (0.0, 0.6)])
    faces = [[0, 1, 3], [0, 3, 2], [4, 7, 5], [4, 6, 7], [0, 5, 1], [0, 4, 5], [2, 3, 7], [2, 7, 6], [0, 2, 6],
             [0, 6, 4], [1, 5, 7], [1, 7, 3]]  # fmt: skip
    topology = mp.Topology()
    box = topology.add_membrane(mp.TriangleMesh(corners, faces), vertex_mass=1.0, fixed=True)
    points = topology.add_intriangle_points(
        box, triangles=np.zeros(n, int), barycentric=np.full((n, 3), 1 / 3), mass=1.0, friction=1.0
    )
    context = mp.Context(mp.System(topology), brownian(0.5), threads=1)
    context.step(60)
    found = context.get_state(positions=True).intriangle.triangles
    assert len(found) == len(points)
    areas = box.mesh.face_areas / box.mesh.face_areas.sum()
    for face, area in enumerate(areas):
        check_mean(f"share of face {face}", (found == face).astype(float), area, sees=0.02)


def scene(threads=1, seed=5, **numbers):
    topology = mp.Topology()
    sheet = topology.add_membrane(mp.TriangleMesh.icosphere(4.0, 2), vertex_mass=2.0, vertex_friction=2.0)
    points = topology.add_intriangle_points(sheet, 200, mass=0.5, friction=0.5, seed=3)
    system = mp.System(topology)
    system.add_force(mp.forces.MembraneEdgeSprings(sheet, 20.0))
    system.add_force(mp.forces.SoftSphere(points, points, 2.0, 1.0))
    return mp.Simulation(system, brownian(0.002, seed), threads=threads)


def test_steps_are_the_same_after_a_checkpoint_and_on_two_threads(tmp_path):
    one, two = scene(), scene(threads=2)
    one.step(40)
    two.step(15)
    two.save_checkpoint(tmp_path / "half.chk")
    two = scene(threads=2)
    two.load_checkpoint(tmp_path / "half.chk")
    two.step(25)
    a, b = (simulation.context.get_state(positions=True, velocities=True) for simulation in (one, two))
    np.testing.assert_array_equal(a.positions, b.positions)
    np.testing.assert_array_equal(a.intriangle.barycentric, b.intriangle.barycentric)
    assert not a.velocities.any()


def test_masses_have_no_effect_beyond_their_ratio():
    found = []
    for factor in (1.0, 4.0):
        topology = mp.Topology()
        sheet = topology.add_membrane(mp.TriangleMesh.icosphere(4.0, 1), vertex_mass=2.0 * factor, vertex_friction=2.0)
        topology.add_intriangle_points(sheet, 30, mass=0.5 * factor, friction=0.5, seed=3)
        system = mp.System(topology)
        system.add_force(mp.forces.MembraneEdgeSprings(sheet, 20.0))
        context = mp.Context(system, brownian(0.01), threads=1)
        context.step(50)
        found.append(context.get_state(positions=True).positions)
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize(
    ("phrase", "build"),
    [
        ("its points fly over triangles: give scheme='Leimkuhler-Matthews'", {"scheme": "Euler-Maruyama"}),
        ("friction over mass is from 0.5 to 1 1/s among these points and the vertices", {"mass": 2.0}),
        ("friction over mass is from 0.5 to 1 1/s", {"species": True}),
        ("flips flips edges of", {"flips": True}),
        ("in-triangle points among its beads fly with velocities", {"held": True}),
        (r"friction\[0\] = 0 but must be > 0", {"friction": 0.0, "fixed": True}),
    ],
)
def test_refusals(phrase, build):
    topology = mp.Topology()
    sheet = topology.add_membrane(
        mp.TriangleMesh.icosphere(4.0, 1), vertex_mass=2.0, vertex_friction=2.0, fixed=build.get("fixed", False)
    )
    numbers = {"mass": build.get("mass", 1.0), "friction": build.get("friction", 1.0)}
    if "species" in build:
        kinds = {"A": numbers, "B": {"mass": 1.0, "friction": 0.5}}
        points = topology.add_intriangle_points(sheet, species=kinds, counts={"A": 5, "B": 5}, seed=1)
    else:
        points = topology.add_intriangle_points(sheet, 10, seed=1, **numbers)
    if "held" in build:
        topology.join(points.beads[:1], mp.Sites.anchors(points.positions[:1]), length=1.0)
    system = mp.System(topology)
    if "flips" in build:
        system.add_jump(mp.jumps.EdgeFlips(sheet, 1.0, name="flips"))
    integrator = mp.BrownianIntegrator(0.01, kT=1.0, scheme=build.get("scheme", SCHEME))
    refuses(ParameterError, phrase, mp.Context, system, integrator)
