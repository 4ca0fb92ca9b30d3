"""Energies that a change of a few beads gains, from the terms that it concerns: against the whole energy.

Forces on points in the triangles of a membrane, on its vertices and on beads near it, in open space and in a box whose
sides cut the membrane; `tests/jumps/test_flips.py` has forces on membranes themselves.
"""

import numpy as np
import pytest
from builders import look, system_with

import medyanpy as mp
from medyanpy.errors import TopologyError

KT = 4.14
RADIUS = 50.0
BOX = (130.0, 118.0, 145.0)
SHIFT = np.array([55.0, -40.0, 66.0])


def scene(force, subdivisions=2, box=None, jump=None):
    """A context of a vesicle with points (one for two triangles) and beads at it, and the force."""
    mesh = mp.TriangleMesh.icosphere(RADIUS * 2 ** (subdivisions - 2), subdivisions)
    rng = np.random.default_rng(7)
    mesh = mesh.with_vertices(mesh.vertices + rng.normal(0.0, 0.5, mesh.vertices.shape) + (SHIFT if box else 0.0))
    topology = mp.Topology()
    at_it = mesh.vertices[:: len(mesh.vertices) // 60] * 1.02
    beads = topology.add_beads(at_it, mass=4e-12, friction=4e-6, name="beads")
    sheet = topology.add_membrane(mesh, vertex_mass=4e-12, vertex_friction=4e-6, name="sheet")
    half = len(mesh.faces) // 2
    points = topology.add_intriangle_points(sheet, half, mass=4e-12, friction=4e-6, seed=3, name="points")
    system = system_with(topology, force(points, sheet, beads), box=None if box is None else np.multiply(box, 1.0))
    if jump is not None:
        system.add_jump(jump(sheet))
    word = "BAGOGAB" if jump is None else "JBAGOGABJ"
    context = mp.Context(system, mp.SplittingIntegrator(word, 1e-9, kT=KT, seed=2), threads=1)
    context.set_velocities_to_temperature(kT=KT, seed=2)
    return context, sheet


def two_of(points, beads):
    """Sites between a point and a bead, and points themselves."""
    a, b = points.beads[:40], beads.beads[:40]
    return mp.Sites.weighted(np.stack([a, b], axis=1), np.tile([0.6, 0.4], (40, 1)))


def exclusions_of(points):
    return np.stack([points.beads[:-1:2], points.beads[1::2]], axis=1)


FORCES = {
    "soft spheres": lambda p, m, b: mp.forces.SoftSphere(p, p, 1.0, 12.0),
    "with exclusions": lambda p, m, b: mp.forces.SoftSphere(p, p, 1.0, 30.0, exclusions=exclusions_of(p)),
    "two groups": lambda p, m, b: mp.forces.SoftSphere(p, [b, m], 1.0, 14.0, skin=0.0),
    "one group in another": lambda p, m, b: mp.forces.SoftSphere([p, b], p, 1.0, 14.0),
    "Lennard-Jones": lambda p, m, b: mp.forces.LennardJones(p, p, 1e-9, 9.0, cutoff=20.0),
    "switched": lambda p, m, b: mp.forces.LennardJones(p, [p, m], 1e-9, 9.0, cutoff=20.0, switch=15.0),
    "Yukawa": lambda p, m, b: mp.forces.Yukawa([p, m], [p, m], 5.0, 6.0, cutoff=25.0),
    "Ricker": lambda p, m, b: mp.forces.Ricker(p, p, 4.0, 10.0),
    "table": lambda p, m, b: mp.forces.TabulatedPair(p, p, np.linspace(0.0, 16.0, 9), np.linspace(3.0, 0.0, 9) ** 2),
    "written": lambda p, m, b: mp.forces.CustomPair(
        p, p, "a1*a2*exp(-r/8)", cutoff=20.0, a=np.linspace(1.0, 2.0, len(p))
    ),
    "of sites": lambda p, m, b: mp.forces.SoftSphere(two_of(p, b), two_of(p, b), 1.0, 30.0),
    "Coulomb": lambda p, m, b: mp.forces.Coulomb([p, b], np.linspace(-1.0, 1.0, len(p) + len(b))),
    "bonds": lambda p, m, b: mp.forces.HarmonicBonds(
        np.stack([p.beads[: len(b)], b.beads], axis=1), np.linspace(0.1, 0.3, len(b)), 5.0
    ),
    "written bonds": lambda p, m, b: mp.forces.CustomBonds(
        np.stack([p.beads[: len(b)], b.beads], axis=1), "k*(r - 4)^4", k=np.linspace(1e-5, 3e-5, len(b))
    ),
    "links": lambda p, m, b: mp.forces.Links(p.beads[: len(b)], b.beads, np.linspace(0.1, 0.3, len(b)), 5.0),
    "angles": lambda p, m, b: mp.forces.AngleLinks(p.beads[:40], b.beads[:40], p.beads[41:81], 3.0, 1.0),
    "trap": lambda p, m, b: mp.forces.HarmonicTrap([p, m], 0.01, [40.0, 30.0, 20.0]),
    "field": lambda p, m, b: mp.forces.ExternalField(
        [p, b], "a*sin(x/9)*cos(y/7)", a=np.linspace(0.1, 0.2, len(p) + len(b))
    ),
    "wall": lambda p, m, b: mp.forces.WallRepulsion(
        mp.surfaces.Sphere(2.0 * np.ptp(m.mesh.vertices), center=np.zeros(3)), p, 3.0, 200.0, radius=1.0, form="soft"
    ),
}


# A box allows neither energies at any distance, nor fields that differ from side to side, nor walls as large as this.
ROWS = [
    pytest.param(force, box, id=f"{force}, {'open' if box is None else 'periodic'}")
    for force in FORCES for box in (None, BOX) if box is None or force not in ("Coulomb", "field", "wall")
]  # fmt: skip


def proposals(context, sheet, n, seed=1):
    """Flips, moved beads, vertices and both; a change each, with what is moved where."""
    rng = np.random.default_rng(seed)
    flipping, layout = context._schedule.flipping, context.layout
    for k in range(n):
        edges = rng.choice(layout.connectivity(sheet).edges, (1, 3, 0)[k % 3], replace=False)
        beads = rng.choice(layout.n_cartesian, (0, 1, 4)[k // 3 % 3] + (k % 3 == 2), replace=False).astype(np.int32)
        x = context._store.x[beads] + rng.normal(0.0, 1.0, (len(beads), 3))
        try:
            yield flipping.proposal("test", sheet, edges, beads, x)
        except TopologyError:
            continue


@pytest.mark.parametrize(("force", "box"), ROWS)
def test_the_gain_is_that_of_the_whole_energy(force, box):
    context, sheet = scene(FORCES[force], box=box)
    flipping, changed = context._schedule.flipping, 0
    for change in proposals(context, sheet, 60):
        before = context.get_state(positions=True, energy=True)
        gained = flipping.difference(0, sheet, change)
        after = context.get_state(positions=True, energy=True)
        assert (before.positions == after.positions).all()
        assert before.potential_energy == after.potential_energy
        flipping.swap(sheet, change)
        flipping.follow([sheet], change)
        whole = context.get_state(energy=True).potential_energy - before.potential_energy
        size = abs(before.potential_energy) + abs(whole)
        assert abs(gained - whole) <= 1e-12 * size, f"gains {gained!r}, the whole energy {whole!r}"
        changed += whole != 0.0
    assert changed > 20


@pytest.mark.parametrize("force", FORCES)
def test_as_much_is_looked_at_in_a_larger_system(force):
    """Vesicles of one density of points: 4 times as many terms in all, as many for a change."""
    found = []
    for subdivisions in (2, 3):
        context, sheet = scene(FORCES[force], subdivisions)
        operation = context._schedule.bound[0]
        context.get_state(energy=True)
        before, asked = operation.examined, 0
        for change in proposals(context, sheet, 60):
            context._schedule.flipping.difference(0, sheet, change)
            asked += 1
        found.append((operation.examined - before) / asked)
    assert found[0] > 0.0
    # All pairs of charges are looked at: O(n) for a bead that moves.
    assert found[1] < (6.0 if force == "Coulomb" else 2.0) * found[0]


@pytest.mark.parametrize(("force", "box"), ROWS)
def test_gains_of_a_letter_add_up(force, box):
    """A hundred flips in one letter, each from what those before have left: their heat is the change of the energy, and
    no force has been bound again."""
    context, _ = scene(FORCES[force], box=box, jump=lambda sheet: mp.jumps.EdgeFlips(sheet, 0.0))
    schedule, jump = context._schedule, context.system.jumps[0]
    jump.set(rate=30.0 / 0.5e-9)
    context.step(1)
    letter = context._store.program.operations[0]
    bound = list(schedule.bound)
    for _ in range(3):
        before, tried, events = look(context), jump.counts, context.events()
        context._store.program.perform(letter)
        after, heat = look(context), sum(event.energy for event in events.heard())
        assert jump.counts.accepted - tried.accepted > 100
        gained = after.potential_energy - before.potential_energy + after.kinetic_energy - before.kinetic_energy
        size = abs(before.potential_energy) + abs(after.potential_energy) + after.kinetic_energy
        assert abs(heat - gained) < 1e-11 * size
        # Beads move, and lists are those of before.
        context.step(1)
    assert list(schedule.bound) == bound


@pytest.mark.parametrize("box", [None, BOX], ids=["open", "periodic"])
@pytest.mark.parametrize("force", ["soft spheres", "with exclusions", "two groups", "table", "written"])
def test_rows_that_are_mended_are_those_of_a_new_list(force, box):
    """After each of 60 steps with some flips: forces and energies to the bit, and few lists have been built."""
    flips = {"jump": lambda sheet: mp.jumps.EdgeFlips(sheet, 0.01 / 0.5e-9)}
    context, _ = scene(FORCES[force], 3, box=box, **flips)
    neighbors = context._schedule.bound[0].neighbors
    for _ in range(60):
        context.step(1)
        other, _ = scene(FORCES[force], 3, box=box, **flips)
        other._set_dynamical_arrays({k: a.copy() for k, a in context._dynamical_arrays().items()}, context.step_count)
        mine, theirs = (one.get_state(positions=True, forces=True, energy=True) for one in (context, other))
        assert mine.potential_energy == theirs.potential_energy
        assert (mine.forces == theirs.forces).all()
    if force != "two groups":  # that has no skin
        assert neighbors.mended > 10
        assert neighbors.builds < 10


def of_points(points):
    return mp.forces.PythonForce(lambda x: (0.0, np.zeros_like(x)), beads=points)


def test_a_force_without_a_local_difference_is_named():
    """With the number of evaluations, once; none where flips are rare, or the force has one."""
    flips = {"jump": lambda sheet: mp.jumps.EdgeFlips(sheet, 0.1 / 1e-9)}
    with pytest.warns(mp.PerformanceWarning, match=r"PythonForce cannot tell .* 48 trials a step evaluate it 96 times"):
        scene(lambda p, m, b: of_points(p), **flips)
    scene(lambda p, m, b: of_points(p), jump=lambda sheet: mp.jumps.EdgeFlips(sheet, 1e-4 / 1e-9))
    scene(FORCES["Coulomb"], **flips)
