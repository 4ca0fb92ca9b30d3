"""Words without O: reversible, of second order, conserving; and the letters A and B one by one."""

import numpy as np
import pytest
from builders import look, system_with

import medyanpy as mp
from medyanpy._kernels.selected import drift


def vesicle(word, timestep, *, points=150, threads=1, subdivisions=1, kT=2.0, spring=True, order=2):
    """A small elastic vesicle with points tied to beads and to vertices: every letter has something to do.

    An integrator may take the place of the word."""
    rng = np.random.default_rng(12)
    topology = mp.Topology()
    mesh = mp.TriangleMesh.icosphere(10.0, subdivisions)
    mesh = mesh.with_vertices(mesh.vertices + rng.normal(0.0, 0.2, mesh.vertices.shape))
    membrane = topology.add_membrane(mesh, vertex_mass=rng.uniform(3.0, 5.0, len(mesh.vertices)))
    beads = topology.add_beads(rng.normal(0.0, 4.0, (5, 3)), mass=2.0)
    system = system_with(topology, mp.forces.MembraneEdgeSprings(membrane, 20.0))
    if points:
        intri = topology.add_intriangle_points(membrane, points, mass=rng.uniform(0.5, 1.0, points), seed=2)
        if spring:
            pairs = np.column_stack([rng.choice(intri.beads, 30), rng.choice(beads.beads, 30)])
            system.add_force(mp.forces.HarmonicBonds(pairs, 0.3, 6.0))
    integrator = mp.SplittingIntegrator(word, timestep, order=order) if isinstance(word, str) else word
    context = mp.Context(system, integrator, threads=threads)
    context.set_velocities_to_temperature(kT=kT, seed=5)
    return context


@pytest.mark.parametrize("word", ["BAGAB", "AGBGA", "GABAG", "BGAGB", "ABGBA", "BAGGAB"])
def test_time_reversal_through_crossings(word):
    n, timestep = 150, 0.02
    context = vesicle(word, timestep)
    before = look(context)
    crossings = 0
    previous = before.intriangle.triangles
    for _ in range(n):
        context.step(1)
        now = look(context).intriangle.triangles
        crossings += int((now != previous).sum())
        previous = now
    assert crossings > 300
    there = look(context)
    context.set_velocities(-there.velocities)
    context.step(n)
    after = look(context)
    assert np.abs(there.positions - before.positions).max() > 1.0
    np.testing.assert_allclose(after.positions, before.positions, atol=1e-9)
    np.testing.assert_allclose(-after.velocities, before.velocities, atol=1e-9)


@pytest.mark.frictionless
def test_the_letters_of_bagogab():
    """Without friction O does nothing, and what is left is B A G G A B. A and G exchanged would make another word of
    second order, and another path."""
    ends = []
    for word in (mp.BAGOGABIntegrator(0.02, kT=1.0), "BAGGAB", "BGAAGB"):
        context = vesicle(word, 0.02)
        context.step(20)
        ends.append(look(context).positions)
    assert (ends[0] == ends[1]).all()
    assert np.abs(ends[0] - ends[2]).max() > 1e-5


def energy_error(word, timestep, time, **options):
    context = vesicle(word, timestep, **options)
    start = context.get_state(energy=True).total_energy
    errors = []
    for _ in range(8):
        context.step(round(time / timestep / 8))
        errors.append(context.get_state(energy=True).total_energy - start)
    return np.sqrt(np.mean(np.square(errors)))


@pytest.mark.parametrize("word", ["BAB", "ABA"])
def test_energy_error_falls_as_the_square_of_the_timestep(word):
    errors = [energy_error(word, h, 2.0, points=0) for h in (0.04, 0.02, 0.01)]
    order = np.log2(np.array(errors[:-1]) / errors[1:])
    assert (np.abs(order - 2.0) < 0.15).all(), (errors, order)


@pytest.mark.parametrize("word", ["BAGAB", "AGBGA", "BGAGB"])
def test_energy_error_with_points_that_cross_no_edge(word):
    """One point in the middle of each of five large, moving triangles, slow enough to stay there."""

    def error(timestep):
        topology = mp.Topology()
        mesh = mp.TriangleMesh.icosphere(10.0, 0)
        membrane = topology.add_membrane(mesh, vertex_mass=4.0)
        faces = [0, 3, 7, 12, 19]
        points = topology.add_intriangle_points(membrane, triangles=faces, barycentric=np.full((5, 3), 1 / 3), mass=3.0)
        beads = topology.add_beads(1.4 * points.positions + [0.3, 0.1, -0.2], mass=2.0)
        system = mp.System(topology)
        system.add_force(mp.forces.MembraneEdgeSprings(membrane, 20.0, 9.0))
        system.add_force(mp.forces.HarmonicBonds(np.column_stack([points.beads, beads.beads]), 3.0, 3.0))
        context = mp.Context(system, mp.SplittingIntegrator(word, timestep), threads=1)
        rng = np.random.default_rng(3)
        context.set_velocities(rng.normal(0.0, 0.5, (topology.n_beads, 3)))
        start = context.get_state(energy=True).total_energy
        errors = []
        for _ in range(8):
            context.step(round(1.0 / timestep / 8))
            state = context.get_state(energy=True, positions=True)
            errors.append(state.total_energy - start)
            assert (state.intriangle.triangles == faces).all()
        return np.sqrt(np.mean(np.square(errors)))

    errors = [error(h) for h in (1 / 64, 1 / 128, 1 / 256)]
    order = np.log2(np.array(errors[:-1]) / errors[1:])
    assert (np.abs(order - 2.0) < 0.15).all(), (errors, order)


@pytest.mark.parametrize("order", [2, 4])
def test_momentum_and_angular_momentum_of_the_cartesian_beads_are_conserved(order):
    """Points carry none of their own: recoil and chain rule hand on exactly what they take."""
    context = vesicle("BAGAB", 0.01, order=order)
    n = context.layout.n_cartesian
    mass = context._store.mass[:n, None]

    def momenta():
        state = look(context)
        x, p = state.positions[context.layout.order[:n]], mass * state.velocities[context.layout.order[:n]]
        return p.sum(axis=0), np.cross(x, p).sum(axis=0), np.abs(p).sum(), (np.abs(x) * np.abs(p)).sum()

    p0, l0, p_scale, l_scale = momenta()
    context.step(300)
    p1, l1, *_ = momenta()
    assert np.abs(p1 - p0).max() < 1e-13 * p_scale
    assert np.abs(l1 - l0).max() < 1e-13 * l_scale


def test_flight_of_vertices_keeps_lambda_and_its_momentum():
    context = vesicle("BAGAB", 0.01)
    layout = context.layout

    def p_lambda():
        place, v = context._store.x, context._store.v[layout.n_cartesian :]
        corners = context._store.faces[context._store.triangle]
        e1, e2 = place[corners[:, 1]] - place[corners[:, 0]], place[corners[:, 2]] - place[corners[:, 0]]
        normal = np.cross(e1, e2)
        off_plane = np.abs(np.einsum("ij,ij->i", normal, v)).max()
        return np.column_stack([np.einsum("ij,ij->i", e1, v), np.einsum("ij,ij->i", e2, v)]), off_plane

    before, _ = p_lambda()
    places = (context._store.triangle.copy(), context._store.barycentric.copy())
    x, v = context._store.x.copy(), context._store.v.copy()
    context._schedule.perform(drift.Drift(0.3, context._store.before))
    after, off_plane = p_lambda()
    n = layout.n_cartesian
    assert (context._store.x[:n] == x[:n] + 0.3 * v[:n]).all()
    assert (context._store.triangle == places[0]).all()
    assert (context._store.barycentric == places[1]).all()
    np.testing.assert_allclose(after, before, atol=1e-12 * np.abs(before).max())
    assert off_plane < 1e-11
    assert np.abs(context._store.v[n:] - v[n:]).max() > 0.1
