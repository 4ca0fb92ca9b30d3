"""Energies of in-triangle points in their weights: fields given at vertices, and functions of Python.

Every component of the force against an independent energy, momentum, threads and numbers are in test_contract.py.
"""

import numpy as np
import pytest
from builders import energy_converges_within_triangles, midpoints, refuses, retraced_across_edges, system_with

import medyanpy as mp
from medyanpy.testing.statistics import check_chi_square


def lumpy(seed=1, subdivisions=1):
    rng = np.random.default_rng(seed)
    mesh = mp.TriangleMesh.icosphere(3.0, subdivisions)
    return mesh.with_vertices(mesh.vertices + rng.normal(0.0, 0.2, mesh.vertices.shape))


def field(points, values):
    return mp.forces.MembraneField(points, values)


def written(points, values):
    """The same field as a function."""
    corners = values[points.membrane.mesh.faces]

    def function(triangles, weights):
        return np.sum(weights * corners[triangles], axis=1), corners[triangles]

    return mp.forces.PythonMembraneField(points, function)


BOTH = pytest.mark.parametrize("law", [field, written])


def scene(law, mesh, n, *, fixed=False, values=None, springs=0.0, threads=1, integrator=None, **options):
    topology = mp.Topology()
    topology.add_beads([[20.0, 0.0, 0.0]], mass=1.0, friction=1.0)
    first = topology.add_membrane(mp.TriangleMesh.icosphere(1.0, 0), vertex_mass=1.0, vertex_friction=0.1)
    topology.add_intriangle_points(first, 2, mass=1.0, friction=0.1, seed=5)
    membrane = topology.add_membrane(mesh, vertex_mass=2.0, vertex_friction=0.5, fixed=fixed)
    seed = None if n is None else 2
    points = topology.add_intriangle_points(membrane, n, mass=0.5, friction=0.5, seed=seed, **options)
    system = mp.System(topology)
    if values is None:
        values = np.random.default_rng(3).normal(0.0, 1.0, len(mesh.vertices))
    system.add_force(law(points, values))
    if springs:
        system.add_force(mp.forces.MembraneEdgeSprings(membrane, springs))
    context = mp.Context(system, integrator or mp.SplittingIntegrator("BAGAB", 1e-3), threads=threads)
    return context, membrane, points, values


@BOTH
@pytest.mark.parametrize("fixed", [False, True])
def test_a_kick_changes_the_momenta_of_weights_alone(law, fixed):
    """p_lambda' = -dU/dlambda by differences of an energy of its own; vertices are not kicked."""
    context, membrane, points, values = scene(law, lumpy(), 40, fixed=fixed)
    state = context.get_state(positions=True, forces=True, energy=True)
    place = state.intriangle.triangles[points.points], state.intriangle.barycentric[points.points]
    corners = membrane.mesh.faces[place[0]]

    def energy(weights):
        return np.sum(weights * values[corners])

    assert state.potential_energy == pytest.approx(energy(place[1]), rel=1e-13)
    x = membrane.mesh.vertices[corners]
    edges = np.stack([x[:, 1] - x[:, 0], x[:, 2] - x[:, 0]], axis=1)
    f = state.forces[points.beads]
    drive = np.einsum("pij,pj->pi", edges, f)
    h = 1e-6
    for p in range(len(points)):
        for k in range(2):
            step = np.zeros((len(points), 3))
            step[p, [0, k + 1]] = -h, h
            slope = (energy(place[1] + step) - energy(place[1] - step)) / (2.0 * h)
            assert drive[p, k] == pytest.approx(-slope, abs=1e-8)
    # In the plane; what it gives to the corners of its triangle is there already, the other way round.
    assert np.abs(np.einsum("pi,pi->p", f, np.cross(edges[:, 0], edges[:, 1]))).max() < 1e-12
    given = state.forces[membrane.beads].copy()
    np.add.at(given, corners, place[1][:, :, None] * f[:, None, :])
    assert np.abs(given).max() < 1e-14 * len(points)
    assert np.abs(np.delete(state.forces, np.append(points.beads, membrane.beads), axis=0)).max() == 0.0


@BOTH
def test_vertices_are_not_moved(law):
    """From rest points fall; vertices have the recoil of their flight and nothing else, which is of third order."""
    moved = []
    for timestep in (1e-2, 5e-3):
        integrator = mp.SplittingIntegrator("BAGAB", timestep)
        context, membrane, points, _ = scene(law, lumpy(), 60, integrator=integrator)
        context.set_velocities(np.zeros((context.system.topology.n_beads, 3)))
        context.step(1)
        v = context.get_state(velocities=True).velocities
        assert np.abs(v[points.beads]).max() > 0.5 * timestep
        moved.append(np.abs(v[membrane.beads]).max())
        assert np.abs(v[membrane.beads].sum(axis=0)).max() < 1e-15
    assert moved[0] < 1e-3 * 1e-2
    assert moved[0] / moved[1] == pytest.approx(8.0, rel=0.1)


@BOTH
def test_energy_of_points_that_stay_in_their_triangles(law):
    energy_converges_within_triangles(
        lambda integrator, **places: scene(law, lumpy(), None, springs=30.0, integrator=integrator, **places)[0]
    )


@BOTH
def test_runs_retrace_themselves(law):
    integrator = mp.SplittingIntegrator("BAGAB", 0.01)
    retraced_across_edges(scene(law, lumpy(), 30, springs=30.0, integrator=integrator)[0])


def share_of(values, corners):
    """The mean of exp(-u) over triangles, u linear; by the midpoint rule on 40² parts."""
    return np.exp(-values[corners] @ midpoints(40).T).mean(axis=1)


@pytest.mark.parametrize(("law", "fixed"), [(field, True), (field, False), (written, False)])
def test_points_have_the_density_of_the_field(law, fixed):
    """exp(-u/kT) per area of the triangles as they are: counts in eight classes of triangles by their share, of a
    membrane that stands or moves."""
    mesh = lumpy(subdivisions=1)
    values = 1.5 * np.sin(1.3 * mesh.vertices[:, 0]) + 0.4 * mesh.vertices[:, 2]
    context, membrane, points, _ = scene(law, mesh, 400, fixed=fixed, values=values, springs=30.0 * (not fixed),
                                         integrator=mp.BAGOGABIntegrator(0.03, kT=1.0, seed=4))  # fmt: skip
    context.set_velocities_to_temperature(kT=1.0, seed=5)
    context.step(600)
    means = share_of(values, mesh.faces)
    group = np.argsort(np.argsort(means)) * 8 // len(means)
    counts, expected = np.zeros(8), np.zeros(8)
    areas = []
    for _ in range(40):
        context.step(100)
        state = context.get_state(positions=True)
        x = state.positions[membrane.beads][mesh.faces]
        area = 0.5 * np.linalg.norm(np.cross(x[:, 1] - x[:, 0], x[:, 2] - x[:, 0]), axis=1)
        share = np.bincount(group, area * means)
        expected += len(points) * share / share.sum()
        counts += np.bincount(group[state.intriangle.triangles[points.points]], minlength=8)
        areas.append(area)
    assert np.ptp(means) > 2.0
    assert fixed or np.std(areas, axis=0).mean() > 0.05
    check_chi_square("classes of triangles", counts, expected, sees=0.075)


@BOTH
def test_inactive_rows_and_flips(law):
    mesh = lumpy()
    context, membrane, points, values = scene(law, mesh, 25)
    roomy, *_ = scene(law, mesh, 25, capacity=60)
    state, other = (c.get_state(positions=True, forces=True, energy=True) for c in (context, roomy))
    assert state.potential_energy == other.potential_energy
    assert (state.forces == other.forces[: len(state.forces)]).all()
    if law is written:
        return  # Its function knows triangles by the mesh.
    context.flip_edges(membrane, mesh.edges[[3, 40]])
    flipped = context.get_state(positions=True, forces=True, energy=True)
    faces = flipped.faces[membrane.name][flipped.intriangle.triangles[points.points]]
    expected = np.sum(flipped.intriangle.barycentric[points.points] * values[faces])
    assert flipped.potential_energy == pytest.approx(expected, rel=1e-13)


def test_values_can_be_set_and_one_for_all_gives_zero_force():
    context, *_ = scene(field, lumpy(), 25)
    (force,) = (f for f in context.system.forces if isinstance(f, mp.forces.MembraneField))
    force.set(values=0.75)
    state = context.get_state(forces=True, energy=True)
    assert state.potential_energy == 25 * 0.75
    assert not state.forces.any()


def test_bad_input():
    topology = mp.Topology()
    cell = topology.add_membrane(mp.TriangleMesh.icosphere(3.0, 0), vertex_mass=1.0)
    points = topology.add_intriangle_points(cell, 4, mass=1.0)
    with pytest.raises(mp.errors.TopologyError, match="MembraneField: points must be the handle of in-triangle points"):
        mp.forces.MembraneField(cell, np.zeros(12))
    refuses(mp.errors.ParameterError, "function must be callable, not 3", mp.forces.PythonMembraneField, points, 3)


@pytest.mark.parametrize(("function", "says"), [
    (lambda t, w: w, r"must return \(energies, derivatives\), not ndarray"),
    (lambda t, w: (w[:, 0], w[:, :2]), r"derivatives returned.*\(4, 2\)"),
    (lambda t, w: (w[:3, 0], w), r"energies returned.*\(3,\)"),
    (lambda t, w: (np.full(4, np.inf), w), r"energies returned.*not finite|energies returned\[0\]"),
    (lambda t, w: 1 / 0, "ZeroDivisionError"),
    (lambda t, w: w.__setitem__(0, 0.0), "read-only"),
])  # fmt: skip
def test_errors_of_functions(function, says):
    topology = mp.Topology()
    cell = topology.add_membrane(mp.TriangleMesh.icosphere(3.0, 0), vertex_mass=1.0)
    points = topology.add_intriangle_points(cell, 4, mass=1.0)
    system = system_with(topology, mp.forces.PythonMembraneField(points, function, name="mine"))
    context = mp.Context(system, mp.SplittingIntegrator("BAGAB", 1e-3))
    with pytest.raises(mp.SimulationError, match=says) as caught:
        context.step(1)
    assert caught.value.force == "mine"


# Written as text ------------------------------------------------------------------------------------------------------


def quadratic(points, values):
    return mp.forces.CustomMembraneField(points, "a*a/2 + k*a", a=values, k=0.3)


def test_a_text_is_what_python_computes():
    """To the bit of the sum, on many points, of which the last do not fill a register."""
    context, membrane, points, values = scene(quadratic, lumpy(), 2500)
    state = context.get_state(positions=True, energy=True)
    corners = membrane.mesh.faces[state.intriangle.triangles[points.points]]
    a = np.sum(state.intriangle.barycentric[points.points] * values[corners], axis=1)
    assert state.potential_energy == pytest.approx(np.sum(a * a / 2.0 + 0.3 * a), rel=1e-13)


def test_a_linear_text_is_the_field():
    forces = []
    for law in (field, lambda points, values: mp.forces.CustomMembraneField(points, "a", a=values)):
        context, *_ = scene(law, lumpy(), 300)
        forces.append(context.get_state(forces=True).forces)
    assert np.abs(forces[0] - forces[1]).max() < 1e-14 * np.abs(forces[0]).max()


@pytest.mark.parametrize(("text", "given", "match"), [
    ("a + ", {"a": 1.0}, "CustomMembraneField"),
    ("a + c", {"a": 1.0}, "c"),
    ("a", {"a": 1.0, "b": 2.0}, "the parameter b is not in 'a'"),
    ("3", {}, "'3' is the same everywhere"),
    ("a", {"a": np.ones(5)}, r"a must"),
    ("a", {"a": np.nan}, r"a = nan but must be finite"),
])  # fmt: skip
def test_texts_that_are_none(text, given, match):
    topology = mp.Topology()
    membrane = topology.add_membrane(lumpy(), vertex_mass=1.0)
    points = topology.add_intriangle_points(membrane, 5, mass=1.0, seed=1)
    refuses(mp.ParameterError, match, mp.forces.CustomMembraneField, points, text, **given)


def test_run_ends_where_the_energy_is_not_a_number():
    def law(points, values):
        return mp.forces.CustomMembraneField(points, "log(a)", a=values)

    refuses(mp.SimulationError, "CustomMembraneField", scene(law, lumpy(), 40)[0].get_state, energy=True)


def test_a_function_of_triangles_by_number_does_not_allow_flips():
    context, membrane, *_ = scene(written, lumpy(), 5)
    with pytest.raises(mp.ParameterError, match=r"PythonMembraneField does not allow it: .* let it take corners=True"):
        context.flip_edges(membrane, membrane.mesh.edges[:1])


def test_a_function_of_corners_follows_flips():
    """Compared with the field of the same values, before and after."""

    def of_corners(points, values):
        return mp.forces.PythonMembraneField(
            points, lambda corners, weights: (np.sum(weights * values[corners], axis=1), values[corners]), corners=True
        )

    contexts = []
    for law in (field, of_corners):
        context, membrane, *_ = scene(law, lumpy(), 60)
        rng = np.random.default_rng(1)
        for edge in rng.permutation(membrane.mesh.edges)[:20]:
            try:
                context.flip_edges(membrane, [edge])
            except mp.TopologyError:
                continue
        contexts.append(context)
    one, other = (context.get_state(forces=True, energy=True) for context in contexts)
    assert other.potential_energy == pytest.approx(one.potential_energy, rel=1e-13)
    assert np.abs(one.forces - other.forces).max() < 1e-13 * np.abs(one.forces).max()
