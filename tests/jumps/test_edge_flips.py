"""Edges that flip by themselves: exact distributions of triangulations, with energies and with points; books, bits."""

import time

import numpy as np
import pytest
from builders import balanced, refuses, system_with
from jumps.flipping import rough
from medyanpy._kernels.core.program import Program

import medyanpy as mp
from medyanpy.errors import ParameterError, SimulationError, TopologyError
from medyanpy.testing import JumpCase, check_chi_square, check_jump, check_mean
from medyanpy.testing.jumps import check_bits, check_time

KT = 4.14


# Triangulations -------------------------------------------------------------------------------------------------------

# Scenes with all forces have some that evaluate their whole energy.
pytestmark = pytest.mark.filterwarnings("ignore::medyanpy.errors.PerformanceWarning")


def turned(triangle):
    """The same triangle, from its lowest corner on."""
    i = triangle.index(min(triangle))
    return triangle[i:] + triangle[:i]


def key_of(faces):
    return frozenset(turned(tuple(t)) for t in faces.tolist())


def neighbours(faces):
    """(old pair, new pair, triangulation) of each edge that can be flipped."""
    across = {(t[i], t[(i + 1) % 3]): t[(i + 2) % 3] for t in faces for i in range(3)}
    for (c, d), a in across.items():
        b = across.get((d, c))
        if c < d and b is not None and (a, b) not in across and (b, a) not in across:
            old = turned((a, c, d)), turned((b, d, c))
            new = turned((d, a, b)), turned((c, b, a))
            yield old, new, (faces - set(old)) | set(new)


def all_from(faces, allowed=lambda old, new: True):
    """Every triangulation that flips lead to, with its number."""
    found = {faces: 0}
    todo = [faces]
    while todo:
        for old, new, other in neighbours(todo.pop()):
            if allowed(old, new) and other not in found:
                found[other] = len(found)
                todo.append(other)
    return found


def ball(n, size=10.0, seed=0, spread=0.25):
    """n vertices in general position, as two fans about a ring."""
    k = n - 2
    angle = 2.0 * np.pi * np.arange(k) / k
    ring = np.column_stack([np.cos(angle), np.sin(angle), np.zeros(k)])
    x = np.concatenate([[[0.0, 0, 1], [0.0, 0, -1]], ring])
    x += np.random.default_rng(seed).normal(0.0, spread, (n, 3))
    faces = [t for i in range(k) for t in ([0, 2 + i, 2 + (i + 1) % k], [1, 2 + (i + 1) % k, 2 + i])]
    return mp.TriangleMesh(size * x, faces)


def frozen(mesh, forces=lambda sheet: (), rate=8.0, points=0, word="JBAOABJ", timestep=1.0, seed=3, **options):
    """A context of a membrane whose vertices stay, with kT = 1."""
    topology = mp.Topology()
    sheet = topology.add_membrane(mesh, vertex_mass=1.0, fixed=True, name="sheet")
    if points:
        topology.add_intriangle_points(sheet, points, mass=1.0, friction=2.0, seed=1)
    system = system_with(topology, *forces(sheet))
    system.add_jump(mp.jumps.EdgeFlips(sheet, rate, **options))
    context = mp.Context(system, mp.SplittingIntegrator(word, timestep, kT=1.0, seed=seed), threads=1)
    context.set_velocities_to_temperature(kT=1.0, seed=seed)
    return context


def seen(context, found, n, steps=1):
    """How often each triangulation was met, in n looks."""
    faces = context.layout.triangulation.faces
    counts = np.zeros(len(found))
    context.step(20)
    for _ in range(n):
        context.step(steps)
        counts[found[key_of(faces)]] += 1
    return counts


def check_counts(what, counts, weights, sees=None):
    """Chi-square; those that are hardly ever met are taken together."""
    expected = weights / weights.sum() * counts.sum()
    rare = expected < 8.0
    if rare.any():
        counts, expected = (np.append(a[~rare], a[rare].sum()) for a in (counts, expected))
        if expected[-1] < 8.0:
            least = int(np.argmin(expected[:-1]))
            for a in (counts, expected):
                a[least] += a[-1]
            counts, expected = counts[:-1], expected[:-1]
    return check_chi_square(what, counts, expected, sees=sees)


def valences(faces):
    return tuple(sorted(np.bincount(np.array(sorted(faces)).ravel()).tolist()))


@pytest.mark.parametrize(("n", "number"), [(5, 20), (6, 390)])
def test_all_triangulations_of_a_sphere_are_equally_likely(n, number):
    """10 and 195 without regard to inside and outside; flips turn a sphere inside out. 15 of 195 are octahedra."""
    mesh = ball(n)
    found = all_from(key_of(mesh.faces))
    assert len(found) == number
    assert len({frozenset(map(frozenset, faces)) for faces in found}) == number // 2
    counts = seen(frozen(mesh), found, 6_000 if n == 6 else 3_000)
    assert (counts > 0).all()
    check_counts(f"{n} vertices", counts, np.ones(number), sees=0.3)
    if n == 6:
        octahedra = np.array([valences(faces) == (4,) * 6 for faces in found])
        assert octahedra.sum() == 30
        check_counts("octahedra", np.array([counts[octahedra].sum(), counts[~octahedra].sum()]), np.array([1.0, 12.0]))


@pytest.mark.slow
def test_seven_vertices():
    """11 424, twice 840 + 1260 + 2520 + 840 + 252 by their numbers of triangles at vertices."""
    mesh = ball(7)
    found = all_from(key_of(mesh.faces))
    assert len(found) == 11_424
    kinds = np.unique([str(valences(faces)) for faces in found], return_inverse=True)[1]
    assert sorted(np.bincount(kinds).tolist()) == sorted(2 * k for k in (840, 1260, 2520, 840, 252))
    counts = seen(frozen(mesh), found, 14_000)
    assert (counts > 0).sum() > 0.6 * len(found)
    check_counts("7 vertices", np.bincount(kinds, counts), np.bincount(kinds), sees=0.08)


@pytest.mark.long
def test_all_of_seven_vertices():
    mesh = ball(7)
    found = all_from(key_of(mesh.faces))
    counts = seen(frozen(mesh), found, 350_000)
    assert (counts > 0).all()
    print(f"p = {check_counts('7 vertices', counts, np.ones(len(found)), sees=0.06):.3g}, {counts.min():.0f} at least")


def measured(mesh, found):
    """(m,) areas and volumes of each triangulation."""
    x = mesh.vertices
    faces = np.array([sorted(one) for one in found])
    a, b, c = (x[faces[:, :, k]] for k in range(3))
    area = 0.5 * np.linalg.norm(np.cross(b - a, c - a), axis=2).sum(axis=1)
    volume = np.linalg.det(np.stack([a, b, c], axis=2)).sum(axis=1) / 6.0
    return area, volume


def test_energies_weigh_triangulations():
    """Tension, area, and volume, which is negative inside out."""
    mesh = ball(6)
    found = all_from(key_of(mesh.faces))
    area, volume = measured(mesh, found)
    middle = float(np.median(area))
    energy = 0.012 * area + 0.5 * 0.2 * (area - middle) ** 2 / middle
    energy += 0.5 * 6e-4 * (volume - 500.0) ** 2 / 500.0
    assert 1.0 < np.ptp(energy) < 8.0

    def forces(sheet):
        yield mp.forces.MembraneTension(sheet, 0.012)
        yield mp.forces.MembraneArea(sheet, 0.2, middle)
        yield mp.forces.MembraneVolume(sheet, 6e-4, 500.0)

    counts = seen(frozen(mesh, forces), found, 6000)
    check_counts("energies", counts, np.exp(energy.min() - energy), sees=0.35)


@pytest.mark.filterwarnings("ignore:.*nothing keeps triangles:medyanpy.errors.MeshQualityWarning")
@pytest.mark.filterwarnings("ignore:.*turned inside out:medyanpy.errors.MeshQualityWarning")
def test_lengths_forbidden_by_a_tether_never_occur():
    """The others that flips lead to are weighed with it; bending is in it too, by the whole energy of a context."""
    mesh = ball(6)
    ends = {"l_min": 0.2, "l_c1": 0.9, "l_c0": 1.2, "l_max": 2.2}

    def forces(sheet):
        yield mp.forces.MembraneTether(sheet, 0.1, 10.0, **ends)
        yield mp.forces.MembraneBending(sheet, 0.02, 0.02)

    def inside(old, new):
        x = mesh.vertices / 10.0
        return all(ends["l_min"] < np.linalg.norm(x[t[i]] - x[t[i - 1]]) < ends["l_max"] for t in new for i in range(3))

    every = all_from(key_of(mesh.faces))
    found = all_from(key_of(mesh.faces), inside)
    assert 50 < len(found) < 0.8 * len(every)
    context = frozen(mesh, forces, rate=8.0)
    energy = []
    for faces in found:
        other = mp.TriangleMesh(mesh.vertices, sorted(faces))
        topology = mp.Topology()
        sheet = topology.add_membrane(other, vertex_mass=1.0)
        energy.append(mp.Context(system_with(topology, *forces(sheet)),
                                 mp.VerletIntegrator(1e-9)).get_state(energy=True).potential_energy)  # fmt: skip
    energy = np.array(energy)
    assert 3.0 < np.ptp(energy) < 12.0
    check_counts("tether", seen(context, found, 4000), np.exp(energy.min() - energy), sees=0.3)


def smallest_angles(x, triangles):
    out = []
    for t in triangles:
        for i in range(3):
            e, f = x[t[(i + 1) % 3]] - x[t[i]], x[t[(i + 2) % 3]] - x[t[i]]
            out.append(np.arccos(e @ f / np.linalg.norm(e) / np.linalg.norm(f)))
    return min(out)


LEAST = 0.5


def test_the_guard_leaves_the_distribution_as_it_is():
    """From all triangulations alike, those with slivers too, to all alike: a flip with a sliver before or after never
    happens, there or back. A guard that looks at the new pair alone would empty those with slivers, which would be
    seen."""
    mesh = ball(6, seed=4)
    found = all_from(key_of(mesh.faces))
    every = [np.array(sorted(faces), np.int32) for faces in found]
    context = frozen(mesh, rate=0.5, min_angle=LEAST)
    triangulation = context.layout.triangulation
    counts, never = np.zeros(len(found)), 0
    for k in np.random.default_rng(5).permutation(np.tile(np.arange(len(found)), 12)):
        triangulation.take(every[k])
        context.step(1)
        now = found[key_of(triangulation.faces)]
        counts[now] += 1
        never += now == k
    assert 0.02 < never / counts.sum() < 0.9
    check_counts("guard", counts, np.ones(len(found)), sees=0.3)
    rates = np.zeros((len(found), len(found)))
    for faces, i in found.items():
        for _, new, other in neighbours(faces):
            rates[i, found[other]] += 0.5 * (smallest_angles(mesh.vertices, new) >= LEAST)
    after = np.linalg.matrix_power(np.eye(len(found)) + (rates - np.diag(rates.sum(axis=1))) / 64, 64).mean(axis=0)
    assert np.sqrt(np.mean((after * len(found) - 1.0) ** 2)) > 0.35


# Points ---------------------------------------------------------------------------------------------------------------


def looks_apart(context, found, n, steps):
    """The triangulations of n looks, in order."""
    faces = context.layout.triangulation.faces
    out = np.empty(n, int)
    context.step(200)
    for i in range(n):
        context.step(steps)
        out[i] = found[key_of(faces)]
    return out


@pytest.mark.slow
def test_ideal_points_weigh_triangulations_with_their_area():
    """A^n exp(-U/kT): what is left of n points is a pressure, also of those that nobody looks at."""
    mesh = ball(5, size=1.5, seed=2, spread=0.5)
    found = all_from(key_of(mesh.faces))
    area, _ = measured(mesh, found)
    n = 3
    weights = area**n * np.exp(-0.2 * area)
    assert area.max() / area.min() > 1.3
    context = frozen(mesh, lambda sheet: [mp.forces.MembraneTension(sheet, 0.2)], rate=4.0, points=n, word="JBAGOGABJ",
                     timestep=0.25)  # fmt: skip
    states = looks_apart(context, found, 20_000, 4)
    mean = weights @ area / weights.sum()
    flat = np.exp(-0.2 * area) @ area / np.exp(-0.2 * area).sum()
    check_mean("area", area[states], mean, time_series=True, sees=0.5 * abs(mean - flat))
    # Looks are correlated: a third of them hardly is.
    check_counts("with points", np.bincount(states[::3], minlength=len(found)).astype(float), weights, sees=0.14)


@pytest.mark.slow
def test_forces_on_points_weigh_triangulations():
    """A point in a trap: each triangulation weighs as much as its surface has of exp(-U/kT)."""
    mesh = ball(5, size=1.5, seed=2, spread=0.5)
    found = all_from(key_of(mesh.faces))
    center, stiffness = np.array([1.0, 0.5, 0.3]), 1.2
    # Middles of many small triangles of each.
    k = 60
    i, j = (a.ravel() for a in np.mgrid[0:k, 0:k])
    up, down = i + j < k, i + j < k - 1
    places = np.concatenate([np.column_stack([i, j])[up] + 1 / 3, np.column_stack([i, j])[down] + 2 / 3]) / k
    weights = []
    for faces in found:
        total = 0.0
        for t in faces:
            a, b, c = mesh.vertices[list(t)]
            r = a + places[:, :1] * (b - a) + places[:, 1:] * (c - a)
            share = 0.5 * np.linalg.norm(np.cross(b - a, c - a)) / len(places)
            total += share * np.exp(-0.5 * stiffness * ((r - center) ** 2).sum(axis=1)).sum()
        weights.append(total)
    weights = np.array(weights)
    assert weights.max() / weights.min() > 1.6
    context = frozen(mesh, lambda sheet: [mp.forces.HarmonicTrap(sheet.topology.point_handles[0], stiffness, center)],
                     rate=4.0, points=1, word="JBAGOGABJ", timestep=0.2)  # fmt: skip
    states = looks_apart(context, found, 20_000, 4)
    check_counts("in a trap", np.bincount(states[::3], minlength=len(found)).astype(float), weights, sees=0.14)


# The contract of jumps ------------------------------------------------------------------------------------------------

TENSION = 0.4
PENTAGON = np.array([[10.0, 0, 0], [3.0, 9.5, 6.0], [-8.0, 6.0, -4.0], [-8.0, -6.0, 7.0], [3.0, -9.5, 0.0]])


def pentagon_case(cls=mp.jumps.EdgeFlips, tension=TENSION, **options):
    """A pentagon has five triangulations, each with two neighbours."""
    found = all_from(frozenset([(0, 1, 2), (0, 2, 3), (0, 3, 4)]))
    assert len(found) == 5
    energies = TENSION * measured_areas(PENTAGON, found)
    rates = np.zeros((5, 5))
    for faces, i in found.items():
        for _, _, other in neighbours(faces):
            j = found[other]
            rates[i, j] = 2.0 * min(1.0, np.exp(energies[i] - energies[j]))
    codes = {}

    def make(copies, seed, threads, timestep):
        make.copies = copies
        topology = mp.Topology()
        apart = 1000.0 * np.arange(copies)[:, None, None] * np.array([1.0, 0, 0])
        faces = np.array([[0, 1, 2], [0, 2, 3], [0, 3, 4]]) + 5 * np.arange(copies)[:, None, None]
        mesh = mp.TriangleMesh((PENTAGON + apart).reshape(-1, 3), faces.reshape(-1, 3))
        sheet = topology.add_membrane(mesh, vertex_mass=1.0, vertex_friction=1e30, name="sheet")
        system = system_with(topology, mp.forces.MembraneTension(sheet, tension))
        system.add_jump(cls(sheet, 2.0, name="flips", **options))
        return mp.Simulation(system, mp.BrownianIntegrator(timestep, kT=1.0, seed=seed), threads=threads)

    def states(state):
        faces = state.faces["sheet"].reshape(make.copies, 3, 3) - 5 * np.arange(make.copies)[:, None, None]
        out = np.empty(make.copies, int)
        for i, own in enumerate(faces):
            text = own.tobytes()
            if text not in codes:
                codes[text] = found[key_of(own)]
            out[i] = codes[text]
        return out

    return JumpCase("EdgeFlips", make, states, rates, energies)


def measured_areas(x, found):
    faces = np.array([sorted(one) for one in found])
    a, b, c = (x[faces[:, :, k]] for k in range(3))
    return 0.5 * np.linalg.norm(np.cross(b - a, c - a), axis=2).sum(axis=1)


@pytest.mark.slow
def test_flips_keep_the_contract():
    check_jump(pentagon_case(), copies=12_000, sees=0.11)


@pytest.mark.slow
def test_every_few_steps():
    check_bits(pentagon_case(every=5))


@pytest.mark.slow
def test_a_wrong_energy_would_be_seen():
    refuses(AssertionError, r"chi-square|events per copy", check_time, pentagon_case(tension=1.5 * TENSION), 12_000)


# A vesicle ------------------------------------------------------------------------------------------------------------


def local_forces(sheet):
    yield mp.forces.MembraneBending(sheet, 0.5 * KT, np.linspace(-1e-3, 2e-3, len(sheet)))
    yield mp.forces.MembraneArea(sheet, 20.0)
    yield mp.forces.MembraneArea(sheet, 0.03, sheet.mesh.face_areas.mean(), per_triangle=True, name="triangles")
    yield mp.forces.MembraneTension(sheet, 0.02)
    yield mp.forces.MembraneVolume(sheet, 0.1)
    yield mp.forces.MembraneTether(sheet, 20.0 * KT, l_min=0.3, l_c1=0.7, l_c0=1.3, l_max=2.2)
    yield mp.forces.MembraneFoldRepulsion(sheet, 2.0 * KT, 0.3)
    yield mp.forces.MembraneBending(sheet, 0.1 * KT, discretization="dihedral", name="dihedral")
    yield mp.forces.MembraneEdgeSprings(sheet, 0.003, length=float(sheet.mesh.edge_lengths.mean()))


def all_forces(sheet):
    yield from local_forces(sheet)
    points, other = sheet.topology.point_handles[0], sheet.topology["other"]
    yield mp.forces.SoftCollisions([sheet, other], stiffness=0.05, radius=15.2)
    yield mp.forces.SoftSphere(points, points, 0.05, 12.0)
    yield mp.forces.SoftSphere(points, points, 0.05, 16.0, along_surface=True, name="along")
    yield mp.forces.HarmonicTrap(points, 1e-4, [0.0, 0.0, 60.0])
    yield mp.forces.HarmonicBonds(sheet.mesh.edges[:40] + sheet.kind.first_bead, 0.003, 11.0)


def shaping_forces(sheet):
    n, mesh = len(sheet), sheet.mesh
    points, beads = sheet.topology.point_handles[0], sheet.topology.handles[0]
    yield mp.forces.MembranePressure(sheet, 1e-3)
    yield mp.forces.MembraneOsmoticPressure(sheet, 0.011 * mesh.volume, 0.01, kT=KT)
    yield mp.forces.MembraneGaussianCurvature(sheet, KT * np.linspace(-2.0, 3.0, n))
    yield mp.forces.MembraneAreaDifference(sheet, KT, 3.0, 1.1 * 24.0 * np.pi * 50.0)
    yield mp.forces.MembraneAreaDifference(sheet, KT, 3.0, discretization="dihedral", name="dihedral")
    yield mp.forces.MembraneLineTension(sheet, np.arange(n) % 3 / 2.0, 0.3)
    yield mp.forces.MembraneAdhesion(sheet, mp.boundaries.Capsule([9.0, 0, 0], [0, 5.0, 9.0], 55.0), 1e-3, 5.0, 3.0)
    yield mp.forces.MembraneAdhesion(sheet, beads, 1e-3, 150.0, 3.0, name="beads")
    yield mp.forces.MembraneField(points, np.linspace(-KT, KT, n))
    yield mp.forces.CustomMembraneField(points, "tanh(a) + a^2", a=np.cos(np.arange(n)))
    yield mp.forces.PointCurvature(points, 0.5 * KT, 0.01, 50.0)


TIMESTEP = 1e-9


def vesicle(forces=all_forces, points=25, subdivisions=1, rate=0.02, **options):
    """After another membrane and some beads, so that no number is counted from 0; rate: tries for each edge and
    step."""
    topology = mp.Topology()
    numbers = {"mass": 4e-12, "friction": 4e-6}
    topology.add_beads(np.random.default_rng(5).normal(0.0, 300.0, (5, 3)), **numbers)
    ends = {"vertex_mass": 4e-12, "vertex_friction": 4e-6}
    topology.add_membrane(mp.TriangleMesh.icosphere(20.0, 0), name="other", **ends)
    sheet = topology.add_membrane(rough(mp.TriangleMesh.icosphere(50.0, subdivisions)), name="sheet", **ends)
    if points:
        topology.add_intriangle_points(sheet, points, mass=4e-12, friction=4e-6, seed=3)
    system = system_with(topology, *forces(sheet))
    system.add_jump(mp.jumps.EdgeFlips(sheet, rate / TIMESTEP, name="flips", **options))
    word = "JBAGOGABJ" if points else "JBAOABJ"
    return system, lambda: mp.SplittingIntegrator(word, TIMESTEP, kT=KT, seed=2)


def made(system, integrator, threads=1):
    simulation = mp.Simulation(system, integrator(), threads=threads)
    simulation.context.set_velocities_to_temperature(kT=KT, seed=4)
    return simulation


def look(context):
    context = getattr(context, "context", context)
    return context.get_state(positions=True, velocities=True, forces=True, energy=True)


def same(a, b):
    return (
        all((getattr(a, name) == getattr(b, name)).all() for name in ("positions", "velocities", "forces"))
        and all((a.faces[name] == b.faces[name]).all() for name in a.faces)
        and a.energies == b.energies
        and a.counts == b.counts
    )


def letter(context):
    """The first letter J."""
    return context._store.program.operations[0]


@pytest.mark.parametrize("forces", [local_forces, shaping_forces, all_forces])
def test_each_flip_gains_what_the_energies_do(forces):
    """Heat of a letter with many flips, added up from what single forces said, is the change of the total energy."""
    points, subdivisions = (0, 2) if forces is local_forces else (25, 1)
    system, integrator = vesicle(forces, points=points, subdivisions=subdivisions)
    context = made(system, integrator).context
    context.report_work = True
    flips = system["flips"]
    flips.set(rate=(1.0 if forces is all_forces else 5.0) / TIMESTEP)
    start = look(context)
    heard = context.events()
    context._store.program.perform(letter(context))
    end = look(context)
    n = end.counts["flips"].accepted
    assert n > {local_forces: 100, shaping_forces: 20, all_forces: 2}[forces]
    events = heard.heard()
    gained = end.total_energy - start.total_energy
    largest = max(abs(a) for a in (start.total_energy, end.total_energy, *end.energies.values()))
    assert abs(sum(event[6] for event in events) - gained) <= 1e-12 * largest
    assert abs(gained) > 1e-6 * largest
    # Mended by so many flips, or made anew: to the bit.
    other = mp.Context(system, integrator(), threads=1)
    other._set_dynamical_arrays({k: a.copy() for k, a in context._dynamical_arrays().items()}, 0)
    assert same(look(other), end)


def test_momenta_stay():
    """Of each vertex, so of all: linear and angular."""
    system, integrator = vesicle(local_forces, rate=5.0)
    context = made(system, integrator).context
    before = look(context)
    context._store.program.perform(letter(context))
    after = look(context)
    points = system.topology.point_handles[0].beads
    rest = np.setdiff1d(np.arange(len(before.positions)), points)
    assert (before.faces["sheet"] != after.faces["sheet"]).any()
    assert (before.velocities[rest] == after.velocities[rest]).all()
    assert (before.positions[rest] == after.positions[rest]).all()
    assert (before.velocities[points] != after.velocities[points]).any()


@pytest.mark.slow
def test_books_close():
    system, integrator = vesicle(rate=0.05)
    simulation = made(system, integrator)
    simulation.report_work = True
    start = look(simulation)
    simulation.step(60)
    end = look(simulation)
    assert end.counts["flips"].accepted > 5
    balanced(end, start)
    assert end.chemical_work == end.protocol_work == 0.0


@pytest.mark.slow
@pytest.mark.parametrize("forces", [local_forces, all_forces])
def test_bits(forces, tmp_path):
    """Any number of threads, any cut, a replay from the last good state, a checkpoint, and the document."""
    # Velocities of points are projected when they are set, to last bits: not of all can a document be tested.
    local = forces is local_forces
    system, integrator = vesicle(forces, subdivisions=3 if local else 1, points=0 if local else 25,
                                 rate=0.02 if local else 0.1)  # fmt: skip
    whole = made(system, integrator)
    whole.step(24)
    expected = look(whole)
    assert expected.counts["flips"].accepted > 2
    threaded = made(system, integrator, threads=3)
    for n in (1, 4, 7):
        threaded.step(n)
    threaded.save_checkpoint(tmp_path / "run.checkpoint")
    threaded.step(12)
    assert same(look(threaded), expected)
    replayed = made(system, integrator)
    replayed.step(8)
    program: Program = replayed.context._store.program
    program.keep()
    replayed.context.step(9)
    program.restore()
    replayed.context._schedule.jumping.rewound()
    # Slow steps are copied in between.
    assert replayed.context.step_count < 17
    replayed.step(24 - replayed.context.step_count)
    assert same(look(replayed), expected)
    resumed = mp.Simulation.resume(tmp_path / "run.checkpoint", threads=2)
    resumed.step(12)
    assert same(look(resumed), expected)
    loaded = made(system, integrator)
    loaded.step(5)
    loaded.load_checkpoint(tmp_path / "run.checkpoint")
    loaded.step(12)
    assert same(look(loaded), expected)
    if not local:
        return
    other = mp.Simulation(*mp.deserialize(mp.serialize(whole)), threads=1)
    other.context.set_state(look(made(system, integrator)))
    other.step(24)
    assert same(look(other), expected)


def test_a_run_that_fails_goes_back_with_its_triangles():
    """The last good state has the triangles of its step, for kernels and forces alike."""

    def burst(x):
        # States are kept every 50 ms.
        time.sleep(0.005)
        burst.calls += 1
        if burst.calls == 40:
            raise ValueError
        return 0.0, np.zeros_like(x)

    burst.calls = 0

    def forces(sheet):
        yield from local_forces(sheet)
        yield mp.forces.MembraneEdgeSprings(sheet, 0.003, length=float(sheet.mesh.edge_lengths.mean()))
        yield mp.forces.PythonForce(burst, replay=False)

    system, integrator = vesicle(forces, points=0, rate=0.05)
    simulation = made(system, integrator)
    refuses(SimulationError, "the last state that was kept", simulation.step, 200)
    state = look(simulation)
    again = made(system, integrator)
    again.step(simulation.context.step_count)
    assert same(look(again), state)
    assert (state.faces["sheet"] != system.topology["sheet"].mesh.faces).any()


def test_states_files_and_tables_have_the_triangles_of_now(tmp_path):
    system, integrator = vesicle(local_forces, points=0, rate=0.3)
    simulation = made(system, integrator)
    simulation.reporters.append(mp.reporters.TrajectoryReporter(tmp_path / "run.h5", 5))
    simulation.reporters.append(mp.reporters.EventReporter(tmp_path / "events.csv", 10))
    simulation.step(10)
    simulation.close()
    state = look(simulation)
    now = mp.TriangleMesh(state.positions[system.topology["sheet"].beads], state.faces["sheet"])
    assert now.genus == 0
    with mp.Trajectory(tmp_path / "run.h5") as trajectory:
        assert (trajectory[-1].faces["sheet"] == state.faces["sheet"]).all()
        assert (trajectory[-1].faces["sheet"] != trajectory[0].faces["sheet"]).any()
    rows = (tmp_path / "events.csv").read_text().splitlines()
    assert len(rows) == 1 + state.counts["flips"].accepted
    last = rows[-1].split(",")
    assert "flip" in last
    # The edge that it made is one of now.
    ends = {int(a) for a in last[4:6]}
    assert any(ends == set(edge) for edge in now.edges.tolist())


# What is refused ------------------------------------------------------------------------------------------------------


def sheet_of(mesh=None):
    topology = mp.Topology()
    mesh = mp.TriangleMesh.icosphere(50.0, 1) if mesh is None else mesh
    return topology.add_membrane(mesh, vertex_mass=1.0, vertex_friction=1.0)


@pytest.mark.parametrize(("numbers", "text"), [
    ({"rate": -1.0}, r"rate = -1"),
    ({"rate": np.inf}, "rate"),
    ({"rate": 1.0, "min_angle": 1.1}, r"min_angle = 1.1"),
    ({"rate": 1.0, "min_angle": -0.1}, r"min_angle = -0.1"),
    ({"rate": 1.0, "every": 0}, "every"),
])  # fmt: skip
def test_numbers_outside_of_their_domains(numbers, text):
    refuses(ParameterError, text, mp.jumps.EdgeFlips, sheet_of(), **numbers)


def test_meshes_that_cannot_flip():
    square = mp.TriangleMesh([[0.0, 0, 0], [9, 0, 0], [9, 9, 0], [0, 9, 0]], [[0, 1, 2], [0, 2, 3]])
    refuses(TopologyError, "has 2 triangles, and flips need 4 or more", mp.jumps.EdgeFlips, sheet_of(square), 1.0)
    refuses(TopologyError, "must be the handle of a membrane", mp.jumps.EdgeFlips, "sheet", 1.0)


def test_forces_with_numbers_for_each_edge_refuse():
    sheet = sheet_of()
    system = mp.System(sheet.topology)
    springs = system.add_force(mp.forces.MembraneEdgeSprings(sheet, 1.0))
    text = "EdgeFlips: MembraneEdgeSprings does not allow edges to flip: its length is another for each edge"
    refuses(ParameterError, text, system.add_jump, mp.jumps.EdgeFlips(sheet, 1.0))
    springs.set(length=20.0)
    system.add_jump(mp.jumps.EdgeFlips(sheet, 1.0))
    context = mp.Context(system, mp.SplittingIntegrator("JBAOABJ", 1e-3, kT=1.0, seed=1))
    context.step(1)
    springs.set(length=np.linspace(20.0, 21.0, len(sheet.mesh.edges)))
    refuses(ParameterError, text, context.step, 1)
    # Added after the jump.
    system = mp.System(sheet.topology)
    system.add_jump(mp.jumps.EdgeFlips(sheet, 1.0))
    system.add_force(mp.forces.MembraneEdgeSprings(sheet, 1.0))
    refuses(ParameterError, text, mp.Context, system, mp.SplittingIntegrator("JBAOABJ", 1e-3, kT=1.0, seed=1))


def test_words_without_a_temperature_or_j():
    sheet = sheet_of()
    system = mp.System(sheet.topology)
    system.add_jump(mp.jumps.EdgeFlips(sheet, 1.0))
    refuses(ParameterError, "has no J", mp.Context, system, mp.SplittingIntegrator("BAOAB", 1e-3, kT=1.0, seed=1))
    refuses(ParameterError, "EdgeFlips needs a temperature", mp.Context, system, mp.SplittingIntegrator("JBABJ", 1e-3))


def test_tethers_are_checked():
    sheet = sheet_of()
    with pytest.raises(ParameterError, match=r"l_c1 = 1.2, l_c0 = 1.1, .*l_min < l_c1 <= l_c0 < l_max"):
        mp.forces.MembraneTether(sheet, 1.0, l_c1=1.2, l_c0=1.1)
    with pytest.raises(ParameterError, match=r"edge \d+ of 'membrane', from vertex \d+ to \d+, starts with .* of"):
        mp.forces.MembraneTether(sheet, 1.0, 20.0)
    refuses(ParameterError, "strength", mp.forces.MembraneTether, sheet, 0.0)
    tether = mp.forces.MembraneTether(sheet, 1.0)
    assert tether.length == pytest.approx(sheet.mesh.edge_lengths.mean())
    refuses(ParameterError, "must be between", tether.set, length=20.0)


def test_an_edge_beyond_its_tether_says_so():
    sheet = sheet_of()
    context = mp.Context(system_with(sheet.topology, mp.forces.MembraneTether(sheet, 1.0)), mp.VerletIntegrator(1e-3))
    a, b = sheet.mesh.edges[7].tolist()
    v = np.zeros((len(sheet), 3))
    v[a] = 3e4 * (sheet.mesh.vertices[a] - sheet.mesh.vertices[b]) / 27.0
    context.runaway = None
    context.set_velocities(v)
    refuses(SimulationError, rf"bead {min(a, b)} .*MembraneTether: its edge to bead \d+ is longer or", context.step, 1)
