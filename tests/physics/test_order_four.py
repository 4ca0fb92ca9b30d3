"""Order 4 for every kind of bead, alone and tied to all others: slopes, reversal, in-triangle points, equilibrium.

Of its three steps the one in the middle goes back in time, so this is also where every letter does. False alarms of the
statistical check: 1e-6 (see medyanpy.testing). Seeds are fixed.
"""

import itertools

import numpy as np
import pytest
from builders import look, orients, system_with

import medyanpy as mp
from medyanpy import forces
from medyanpy.testing import check_chi_square

# Kinds of beads: each adds some to a topology and returns places on them that can be tied, and forces that are smooth.


def chains_of(rng, count, n):
    return [np.cumsum(rng.normal(0.0, 0.3, (n, 3)) + [1.0, 0.0, 0.0], axis=0) + rng.normal(0.0, 2.0, 3)
            for _ in range(count)]  # fmt: skip


def rings_of(rng, count, n):
    phi = 2.0 * np.pi / n * np.arange(n)
    flat = 0.5 / np.sin(np.pi / n) * np.column_stack([np.cos(phi), np.sin(phi), 0.0 * phi])
    return [flat + rng.normal(0.0, 0.1, (n, 3)) for _ in range(count)]


def beads(topology, rng):
    """In a quartic well."""
    handle = topology.add_beads(rng.normal(0.0, 1.0, (8, 3)), mass=rng.uniform(1.0, 2.0, 8))
    return mp.Sites.beads(handle), [forces.ExternalField(handle, "a*(x^4 + y^4 + z^4)", a=0.05)]


def filaments(topology, rng, closed=False):
    nodes = (rings_of if closed else chains_of)(rng, 3, 6)
    fixed = () if closed else (0, 8)
    handle = topology.add_filaments(nodes, rng.uniform(0.5, 2.0, 18), closed=closed, tolerance=1e-14, fixed_nodes=fixed)
    sites = handle.sites([0, 1, 2], [1, 0, 3], [0.3, 0.5, 0.8])
    return sites, [forces.FilamentBending(handle, 2.0, name=f"bending {handle.name}")]


def rings(topology, rng):
    return filaments(topology, rng, closed=True)


def twistable(topology, rng):
    handle = topology.add_filaments(chains_of(rng, 2, 5), rng.uniform(0.5, 2.0, 10), directors="parallel",
                                    director_mass=rng.uniform(0.5, 2.0, 8), tolerance=1e-14)  # fmt: skip
    return mp.Sites.beads(handle.beads[[1, 6]]), [
        forces.FilamentBending(handle, 2.0, name="bending of twistable ones"),
        forces.FilamentTwisting(handle, 2.0, 0.3),
    ]


def bodies(topology, rng):
    """Asymmetric ones."""
    handle = topology.add_rigid_bodies(rng.normal(0.0, 2.0, (4, 3)), orients(rng, 4), 1.5, [1.0, 1.4, 1.9])
    return mp.Sites.concatenate([handle.sites([[1.0, -0.5, 0.8]]), handle.sites([[-0.6, 0.9, 0.4]])]), []


def rods(topology, rng):
    """A helix, not at rest, one end held."""
    nodes, orientations = mp.rods.uniform(12, 1.0, [0.3, 0.0, 0.1])
    handle = topology.add_rod(nodes, orientations, 1.0, 1.0, [1.0, 1.0, 1.5], ends=("clamped", "free"))
    force = forces.RodElasticity(handle, shear=20.0, extension=30.0, bending=20.0, twist=15.0)
    return handle.sites([[0.3, 0.1, 0.0]])[[4, 11]], [force]


def surface_points(topology, rng):
    surface = mp.surfaces.Torus(3.0, 1.0)
    handle = topology.add_surface_points(surface, surface.sample(5, 3), rng.uniform(1.0, 2.0, 5), tolerance=1e-14)
    return mp.Sites.beads(handle), [forces.UniformField(handle, [0.3, -0.2, 0.5])]


def points(topology, rng, fixed=False):
    """Slow ones in the middle of large triangles, where they stay: crossings are not smooth."""
    membrane = topology.add_membrane(mp.TriangleMesh.icosphere(10.0, 0), vertex_mass=4.0, fixed=fixed)
    handle = topology.add_intriangle_points(membrane, triangles=[0, 3, 7, 12, 19], barycentric=np.full((5, 3), 1 / 3),
                                            mass=rng.uniform(2.0, 4.0, 5))  # fmt: skip
    return mp.Sites.beads(handle), [] if fixed else [forces.MembraneEdgeSprings(membrane, 4.0, 10.0)]


def points_on_a_frozen_mesh(topology, rng):
    return points(topology, rng, fixed=True)


def crossing_points(topology, rng):
    """Many on a small bumpy mesh, which they push about."""
    mesh = mp.TriangleMesh.icosphere(5.0, 1)
    mesh = mesh.with_vertices(mesh.vertices + rng.normal(0.0, 0.2, mesh.vertices.shape))
    membrane = topology.add_membrane(mesh, vertex_mass=rng.uniform(3.0, 5.0, len(mesh.vertices)))
    handle = topology.add_intriangle_points(membrane, 80, mass=rng.uniform(0.5, 1.0, 80), seed=2)
    return mp.Sites.beads(handle.beads[::4]), [forces.MembraneEdgeSprings(membrane, 20.0)]


ALL = (beads, filaments, rings, twistable, bodies, rods, surface_points, points)
KINDS = {
    "beads": (beads,),
    "filaments": (filaments,),
    "rings": (rings,),
    "twistable filaments": (twistable,),
    "rigid bodies": (bodies,),
    "rods": (rods,),
    "surface points": (surface_points,),
    "in-triangle points": (points,),
    "in-triangle points on a frozen mesh": (points_on_a_frozen_mesh,),
    "all tied together": ALL,
}


def scene(makers, word, timestep, order=4, kT=0.3):
    """What the makers make; places on one kind are tied to the next one's, and each of them to a place in space."""
    rng = np.random.default_rng(11)
    topology = mp.Topology()
    sites, own = zip(*(make(topology, rng) for make in makers), strict=True)
    every = mp.Sites.concatenate(list(sites))
    system = system_with(topology, *itertools.chain(*own))
    anchors = mp.Sites.anchors(rng.normal(0.0, 3.0, (len(every), 3)))
    system.add_force(forces.Links(every, anchors, 0.4, 2.0, name="to space"))
    if len(makers) > 1:
        step = [0] + list(np.cumsum([len(s) for s in sites]))
        ends = [every[int(a)] for a in step[:-1]]
        system.add_force(forces.Links(mp.Sites.concatenate(ends), mp.Sites.concatenate(ends[1:] + ends[:1]), 0.3, 3.0,
                                      name="among them"))  # fmt: skip
    context = mp.Context(system, mp.SplittingIntegrator(word, timestep, order=order), threads=1)
    context.set_velocities_to_temperature(kT=kT, seed=5)
    return context


@pytest.mark.parametrize("word", ["BAGAB", "AGBGA"])
@pytest.mark.parametrize("kind", KINDS)
def test_errors_fall_as_the_fourth_power_of_the_timestep(kind, word):
    """Of the energy, and of places at a fixed time, by halving; no point crosses an edge here.

    Words that end with A have flights of two parts that meet: constrained beads and beads that turn must not take
    them as one.
    """
    energy, place = [], []
    for n in (32, 64, 128):
        context = scene(KINDS[kind], word, 1.0 / n)
        start, errors = look(context), []
        for _ in range(4):
            context.step(n // 4)
            errors.append(look(context).total_energy - start.total_energy)
        end = look(context)
        if end.intriangle is not None:
            assert (end.intriangle.triangles == start.intriangle.triangles).all()
        energy.append(np.sqrt(np.mean(np.square(errors))))
        place.append(end.positions)
    energy, place = np.array(energy), np.abs(np.diff(place, axis=0)).max(axis=(1, 2))
    slopes = np.log2([*(energy[:-1] / energy[1:]), place[0] / place[1]])
    # The coarsest are still on their way to it.
    assert (np.abs(slopes - 4.0) < [0.25, 0.1, 0.5]).all(), (slopes, energy, place)


def reverse(context):
    state = look(context)
    context.set_velocities(-state.velocities)
    if state.angular_momenta is not None:
        context.set_angular_momenta(-state.angular_momenta)


def check_reversal(context, n, atol):
    """n steps there and back; returns how far beads had moved, and in how many steps points had changed triangles."""
    before, crossings = look(context), 0
    faces = None if before.intriangle is None else before.intriangle.triangles
    for _ in range(n):
        context.step(1)
        if faces is not None:
            now = look(context).intriangle.triangles
            crossings += int((now != faces).sum())
            faces = now
    there = look(context)
    reverse(context)
    context.step(n)
    after = look(context)
    np.testing.assert_allclose(after.positions, before.positions, rtol=0.0, atol=atol)
    np.testing.assert_allclose(-after.velocities, before.velocities, rtol=0.0, atol=atol)
    if before.orientations is not None:
        same = np.sign(np.einsum("ij,ij->i", after.orientations, before.orientations))[:, None]
        np.testing.assert_allclose(same * after.orientations, before.orientations, rtol=0.0, atol=atol)
        np.testing.assert_allclose(-after.angular_momenta, before.angular_momenta, rtol=0.0, atol=atol)
    return np.abs(there.positions - before.positions).max(), crossings


@pytest.mark.parametrize("word", ["BAGAB", "AGBGA", "GABAG"])
@pytest.mark.parametrize("kind", KINDS)
def test_reversal_of_each_kind(kind, word):
    moved, _ = check_reversal(scene(KINDS[kind], word, 0.02), 60, 1e-10)
    assert moved > 0.3


@pytest.mark.parametrize("order", [2, 4])
@pytest.mark.parametrize("word", ["BAGAB", "AGBGA", "GABAG"])
def test_reversal_of_all_kinds_tied_together_through_crossings(word, order):
    context = scene((*ALL[:-1], crossing_points), word, 0.02, order, kT=1.0)
    moved, crossings = check_reversal(context, 80, 1e-9)
    assert moved > 1.0
    assert crossings > 100


# In-triangle points ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("timestep", [0.1, 1.0, 3.0, 10.0])
def test_one_step_on_a_frozen_sphere_is_the_geodesic(timestep):
    """Without forces all that a step does is G, three times: forth, back and forth again along one geodesic."""
    mesh = mp.TriangleMesh.icosphere(10.0, 2)
    rng = np.random.default_rng(1)
    faces, weights = rng.integers(len(mesh.faces), size=200), rng.dirichlet([1, 1, 1], size=200)
    ends = []
    for order in (2, 4):
        topology = mp.Topology()
        membrane = topology.add_membrane(mesh, vertex_mass=1.0, fixed=True)
        points = topology.add_intriangle_points(membrane, triangles=faces, barycentric=weights, mass=1.0)
        integrator = mp.SplittingIntegrator("BAGAB", timestep, order=order)
        context = mp.Context(mp.System(topology), integrator, threads=1)
        context.set_velocities_to_temperature(kT=1.0, seed=3)
        start = look(context).positions[points.beads]
        context.step(1)
        ends.append(look(context).positions[points.beads])
    assert np.abs(ends[0] - start).max() > timestep
    assert np.abs(ends[1] - ends[0]).max() < 1e-12


@pytest.mark.parametrize("fixed", [True, False])
def test_places_within_triangles_in_equilibrium(fixed):
    """Points without forces are uniform over the triangle that they are in, whatever moves it.

    8000 points, 20 classes of equal area for each corner: deviations of 12 % in a class would be found. Points
    that stopped at the first edge on their way back would all lie on edges.
    """
    mesh = mp.TriangleMesh.icosphere(10.0, 1)
    topology = mp.Topology()
    membrane = topology.add_membrane(mesh, vertex_mass=50.0, vertex_friction=20.0, fixed=fixed)
    points = topology.add_intriangle_points(membrane, 8000, mass=1.0, friction=1.0, seed=2)
    system = mp.System(topology)
    if not fixed:
        system.add_force(forces.MembraneEdgeSprings(membrane, 200.0))
    context = mp.Context(system, mp.SplittingIntegrator("OBAGABO", 0.2, kT=1.0, seed=4, order=4), threads=1)
    context.set_velocities_to_temperature(kT=1.0, seed=5)
    context.step(60)
    number = (1.0 - look(context).intriangle.barycentric) ** 2
    for corner in range(3):
        counts, _ = np.histogram(number[:, corner], bins=20, range=(0.0, 1.0))
        check_chi_square(f"weight of corner {corner}", counts, np.full(20, len(points) / 20), sees=0.12)


# Where it gains nothing ------------------------------------------------------------------------------------------


def pairs_in_traps(timestep, order, soft):
    """300 pairs of balls that meet in a trap each: (context, energies of the pairs)."""
    n = 300
    centre = np.arange(n)[:, None] * [30.0, 0.0, 0.0]
    topology = mp.Topology()
    start = np.random.default_rng(2).normal(0.0, 1.0, (n, 2, 3)) + centre[:, None]
    balls = topology.add_balls(start.reshape(-1, 3), 0.5, mass=1.0)
    system = mp.System(topology)
    system.add_force(forces.Links(mp.Sites.beads(balls), mp.Sites.anchors(np.repeat(centre, 2, axis=0)), 1.0))
    if soft:
        system.add_force(forces.SoftSphere(balls, balls, 20.0))
    context = mp.Context(system, mp.SplittingIntegrator("BAGAB", timestep, order=order), threads=1)

    def energies():
        state = look(context)
        x, v = (a.reshape(n, 2, 3) for a in (state.positions, state.velocities))
        overlap = np.maximum(1.0 - np.linalg.norm(x[:, 1] - x[:, 0], axis=1), 0.0)
        apart = ((x - centre[:, None]) ** 2).sum(axis=(1, 2))
        return 0.5 * ((v**2).sum(axis=(1, 2)) + apart) + (10.0 * overlap**2 if soft else 0.0)

    return context, energies


def points_in_a_field(timestep, order):
    """2000 points on a frozen sphere of 80 triangles: (context, their energies)."""
    topology = mp.Topology()
    membrane = topology.add_membrane(mp.TriangleMesh.icosphere(10.0, 1), vertex_mass=1.0, fixed=True)
    points = topology.add_intriangle_points(membrane, 2000, mass=1.0, seed=3)
    context = mp.Context(system_with(topology, forces.UniformField(points, [0.0, 0.0, -2.0])),
                         mp.SplittingIntegrator("BAGAB", timestep, order=order), threads=1)  # fmt: skip

    def energies():
        state = look(context)
        return 0.5 * (state.velocities[points.beads] ** 2).sum(axis=1) + 2.0 * state.positions[points.beads, 2]

    return context, energies


@pytest.mark.parametrize(("make", "options", "slope", "gain"), [
    (pairs_in_traps, {"soft": False}, (3.9, 4.1), (50.0, 1e4)),
    (pairs_in_traps, {"soft": True}, (1.0, 3.0), (0.0, 0.3)),
    (points_in_a_field, {}, (0.85, 1.15), (0.0, 0.4)),
])  # fmt: skip
def test_gain_of_order_four(make, options, slope, gain):
    """At timesteps of 0.06 and 0.03, against order 2 at a third of that, which costs the same: errors per pair or point
    in traps, with soft contacts, and at edges; the figures are those of docs/kicks.md."""
    rms = []
    for order, timestep in ((4, 0.06), (4, 0.03), (2, 0.01)):
        context, energies = make(timestep, order, **options)
        context.set_velocities_to_temperature(kT=2.0, seed=1)
        start, errors = energies(), []
        for _ in range(4):
            context.step(round(1.5 / timestep))
            errors.append(energies() - start)
        rms.append(np.sqrt(np.mean(np.square(errors))))
    assert slope[0] < np.log2(rms[0] / rms[1]) < slope[1], rms
    assert gain[0] < rms[2] / rms[1] < gain[1], rms
