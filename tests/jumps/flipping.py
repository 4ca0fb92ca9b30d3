"""Membranes whose edges are flipped at random, and what is compared of them."""

import numpy as np
import pytest
from builders import look, refuses, system_with

import medyanpy as mp
from medyanpy.errors import TopologyError

KT = 4.14


def rough(mesh, seed=1, by=0.02):
    """A mesh without two lengths that are the same."""
    spread = by * float(mesh.edge_lengths.mean())
    return mesh.with_vertices(mesh.vertices + np.random.default_rng(seed).normal(0.0, spread, mesh.vertices.shape))


def built(mesh, *, points=60, forces=None, mass=4e-12, friction=4e-6, before=True):
    """A membrane with points after another one and some beads, so that no number is counted from 0."""
    topology = mp.Topology()
    if before:
        topology.add_beads(np.random.default_rng(5).normal(0.0, 300.0, (5, 3)), mass=mass, friction=friction)
        topology.add_membrane(mp.TriangleMesh.icosphere(20.0, 1), vertex_mass=mass, vertex_friction=friction,
                              name="other")  # fmt: skip
    sheet = topology.add_membrane(mesh, vertex_mass=mass, vertex_friction=friction, name="sheet")
    if points:
        topology.add_intriangle_points(sheet, points, mass=mass, friction=friction, seed=3)
    system = system_with(topology, *(all_forces if forces is None else forces)(sheet))
    return system, sheet


def all_forces(sheet):
    yield mp.forces.MembraneBending(sheet, 80.0, spontaneous_curvature=1e-3)
    yield mp.forces.MembraneBending(sheet, 40.0, discretization="dihedral", name="dihedral")
    yield mp.forces.MembraneArea(sheet, 200.0, area=0.9 * sheet.mesh.area)
    yield mp.forces.MembraneArea(sheet, 100.0, area=sheet.mesh.face_areas.mean(), per_triangle=True, name="triangles")
    yield mp.forces.MembraneTension(sheet, 0.1)
    if sheet.mesh.is_closed:
        yield mp.forces.MembraneVolume(sheet, 0.1, volume=1.1 * sheet.mesh.volume)
    yield mp.forces.MembraneEdgeSprings(sheet, 0.5, length=float(sheet.mesh.edge_lengths.mean()))
    others = [handle for handle in sheet.topology.membranes if handle is not sheet]
    yield mp.forces.SoftCollisions([sheet, *others], stiffness=5.0, radius=20.0)


def context_of(system, threads=1, seed=2, **integrator):
    integrator = mp.BAGOGABIntegrator(1e-9, **{"kT": KT, "seed": seed, **integrator})
    context = mp.Context(system, integrator, threads=threads)
    context.set_velocities_to_temperature(kT=KT, seed=seed)
    return context


def same(a, b):
    """Two states, to the bit."""
    return (
        all((getattr(a, name) == getattr(b, name)).all() for name in ("positions", "velocities", "forces"))
        and (a.intriangle.triangles == b.intriangle.triangles).all()
        and (a.intriangle.barycentric == b.intriangle.barycentric).all()
        and all((a.faces[name] == b.faces[name]).all() for name in a.faces)
        and a.energies == b.energies
    )


def edges_of(faces):
    return sorted({(min(e), max(e)) for a, b, c in faces.tolist() for e in ((a, b), (b, c), (c, a))})


def flip_at_random(context, sheet, n, seed=4, at_once=1):
    """Try so many edges; those that can be are flipped, and returned with those in their places."""
    rng = np.random.default_rng(seed)
    edges = edges_of(context.get_state(positions=True).faces[sheet.name])
    done = []
    for _ in range(n):
        chosen = rng.choice(len(edges), at_once, replace=False)
        try:
            made = context.flip_edges(sheet, [edges[i] for i in chosen])
        except TopologyError:
            continue
        for i, edge in zip(chosen, made.tolist(), strict=True):
            done.append((edges[i], tuple(edge)))
            edges[i] = tuple(edge)
    return done


def copied(context, system, **given):
    """Another context that is given all that this one has, and mends nothing."""
    other = context_of(system, **given)
    other._set_dynamical_arrays({k: a.copy() for k, a in context._dynamical_arrays().items()}, context.step_count)
    return other


MESHES = {
    "closed": mp.TriangleMesh.icosphere(50.0, 2),
    "torus": mp.TriangleMesh.torus(60.0, 25.0, 14, 9),
    "with borders": mp.TriangleMesh.cylinder(30.0, 90.0, 14, 9),
}


# Some seconds each, ten times as many in a debug or sanitizer run, which sees collisions on one surface.
SLOW = pytest.mark.slow


# Points ---------------------------------------------------------------------------------------------------------------


def square(x, corners, s):
    """Where a place of the unit square is, with the diagonal from (0, 0) to (1, 1), or the other one."""
    a, c, b, d = (x[k] for k in corners)
    u, w = s
    return a + u * (c - a) + w * (b - c) if u >= w else a + w * (d - a) + u * (b - d)


def crossed(x, corners, s):
    a, c, b, d = (x[k] for k in corners)
    u, w = s
    return a + u * (c - a) + w * (d - a) if u + w <= 1.0 else b + (1.0 - u) * (d - b) + (1.0 - w) * (c - b)


# What is refused ------------------------------------------------------------------------------------------------------


def refused(context, sheet, edges, kind, text):
    before = look(context)
    refuses(kind, text, context.flip_edges, sheet, edges)
    assert same(before, look(context))
