"""Lists of neighbours while beads come, go, and become others: against lists of their own, and what is looked at."""

import numpy as np
import pytest
from builders import look

import medyanpy as mp

MASSES = {"A": 1.0, "B": 2.0, "C": 3.0}
# Reactions of each kind: two meet, one parts; one becomes another; one is created, one removed.
MEET = "A + B <-> C; k_on = 400, k_off = 400 \n A <-> B; k_on = 150, k_off = 150"
TEXTS = f"{MEET} \n 0 -> A; rate = 20 \n A -> 0; rate = 250"
# In open space nothing can be created anywhere.
OPEN = f"{MEET} \n B <-> C; k_on = 90, k_off = 90"
TABLE = np.linspace(0.0, 2.0, 9), np.linspace(1.5, 0.0, 9) ** 2

FORCES = {
    "soft spheres": lambda b: mp.forces.SoftSphere(b, b, stiffness=4.0, diameter=1.6),
    "no skin": lambda b: mp.forces.SoftSphere(b, b, stiffness=4.0, diameter=1.6, skin=0.0),
    "A with all": lambda b: mp.forces.SoftSphere(b.of("A"), b, stiffness=4.0, diameter=1.6),
    "A with C": lambda b: mp.forces.SoftSphere(b.of("A"), b.of("C"), stiffness=4.0, diameter=2.0),
    "A and B with B and C": lambda b: mp.forces.Ricker(
        [b.of("A"), b.of("B")], [b.of("B"), b.of("C")], 1.0, 1.0, cutoff=2.0
    ),
    "Lennard-Jones": lambda b: mp.forces.LennardJones(b, b, 1e-4, 0.3, cutoff=1.8, switch=1.4),
    "table": lambda b: mp.forces.TabulatedPair(b, b, *TABLE),
    "written": lambda b: mp.forces.CustomPair(b, b, "2*exp(-r/0.4)", cutoff=2.0),
    "written, A with B": lambda b: mp.forces.CustomPair(b.of("A"), b.of("B"), "2*exp(-r/0.4)", cutoff=2.0),
}  # fmt: skip
OTHERS = {
    "collisions": lambda b: mp.forces.SoftCollisions(b, 4.0, radius=0.8),
    "a wall": lambda b: mp.forces.WallRepulsion(
        mp.surfaces.Sphere(5.0), b, 1.0, 3.0, radius=0.5, form="soft"
    ),
    "a field": lambda b: mp.forces.ExternalField(b, "cos(x)*sin(y)"),
    "a field of A": lambda b: mp.forces.ExternalField(b.of("A"), "cos(x)*sin(y)"),
    "Yukawa": lambda b: mp.forces.Yukawa(b, b, 2.0, 1.0, cutoff=3.0),
}  # fmt: skip
BOX = (8.0, 7.0, 9.0)


def scene(force, box=BOX, times=1.0, texts=TEXTS, timestep=0.002):
    """Some 250 beads of 3 species, ten within range of each, and reactions of 30 to 50 events in 0.001."""
    side = np.array(BOX) * times ** (1.0 / 3.0)
    n = round(250 * times)
    topology = mp.Topology()
    x = side * (np.random.default_rng(3).uniform(size=(n, 3)) - 0.5)
    third = n // 3
    kinds = {name: {"mass": mass, "friction": 1.0} for name, mass in MASSES.items()}
    others = topology.add_beads(side * (np.random.default_rng(4).uniform(size=(20, 3)) - 0.5), mass=1.0, friction=1.0)
    beads = topology.add_beads(
        x, species=kinds, counts={"A": third, "B": third, "C": n - 2 * third}, capacity=2 * n + 50, name="reacting"
    )
    system = mp.System(topology, box=None if box is None else tuple(side))
    system.add_force(mp.forces.HarmonicTrap([beads, others], 0.1, [0.0, 0.0, 0.0]))
    system.add_force(force(beads))
    system.add_jump(mp.jumps.Reactions(beads, texts, reach=0.8, most_partners=100))
    integrator = mp.SplittingIntegrator("JBAOABJ", timestep, kT=1.0, seed=2)
    return mp.Context(system, integrator, threads=1), beads


ROWS = [pytest.param(force, box, id=f"{force}, {'open' if box is None else 'periodic'}")
        for force in FORCES for box in (None, BOX)]  # fmt: skip


@pytest.mark.parametrize(("force", "box"), ROWS)
def test_lists_that_follow_are_those_of_a_new_context(force, box):
    """In a run of steps with some events each: forces and energies to the bit; few lists have been built."""
    numbers = {"texts": TEXTS if box is not None else OPEN, "timestep": 1e-4}
    context, _ = scene(FORCES[force], box, **numbers)
    neighbors = context._schedule.bound[1].neighbors
    events = context.events()
    for _ in range(30):
        context.step(3)
        other, _ = scene(FORCES[force], box, **numbers)
        other._set_dynamical_arrays({k: a.copy() for k, a in context._dynamical_arrays().items()}, context.step_count)
        mine, theirs = (one.get_state(positions=True, forces=True, energy=True) for one in (context, other))
        assert mine.potential_energy == theirs.potential_energy
        np.testing.assert_array_equal(mine.forces, theirs.forces)
    assert len(events.heard()) > 120
    # Where there is no skin, each step builds one.
    assert neighbors.builds < (130 if force == "no skin" else 40)


# A wall and a field differ from side to side of a box.
ALL = [pytest.param(force, None, id=f"{force}, open") for force in OTHERS]
ALL += [pytest.param(force, BOX, id=f"{force}, periodic") for force in ("collisions", "Yukawa")]


@pytest.mark.parametrize(("force", "box"), ROWS + ALL)
def test_energies_of_events_add_up_to_what_the_whole_energy_changes(force, box):
    """Hundreds of events in one letter: beads that others have come and gone around."""
    texts = TEXTS if box is not None else OPEN
    context, _ = scene({**FORCES, **OTHERS}[force], box, texts=texts, timestep=0.016)
    before, events = look(context), context.events()
    context._store.program.perform(context._store.program.operations[0])
    after, heard = look(context), events.heard()
    assert len(heard) > 120
    gained = after.potential_energy - before.potential_energy + after.kinetic_energy - before.kinetic_energy
    size = abs(before.potential_energy) + abs(after.potential_energy) + after.kinetic_energy
    assert abs(sum(event.energy for event in heard) - gained) < 1e-11 * size


@pytest.mark.parametrize("force", ["A with all", "A with C", "written, A with B"])
def test_as_much_is_looked_at_in_a_larger_system(force):
    """Eight times as many beads: as many pairs for each attempt."""
    found = []
    for times in (1.0, 8.0):
        context, _ = scene(FORCES[force], times=times, texts="A <-> B; k_on = 100, k_off = 100")
        operation, jump = context._schedule.bound[1], context.system.jumps[0]
        context.step(1)
        letter = context._store.program.operations[0]
        before, tried = operation.examined, jump.counts.tried
        context._store.program.perform(letter)
        assert jump.counts.tried - tried > 10
        found.append((operation.examined - before) / (jump.counts.tried - tried))
    assert found[0] > 0.5
    assert found[1] < 1.5 * found[0]


MESH = mp.TriangleMesh.icosphere(4.0, 2)
ON_POINTS = {
    "curvature": lambda p: mp.forces.PointCurvature(p, 3.0, 0.3, 2.0),
    "curvature of A": lambda p: mp.forces.PointCurvature(p.of("A"), 3.0, 0.3, 2.0),
    "a field at vertices": lambda p: mp.forces.MembraneField(p, np.linspace(-1.0, 1.0, len(MESH.vertices))),
    "a field of A": lambda p: mp.forces.MembraneField(p.of("A"), np.linspace(-1.0, 1.0, len(MESH.vertices))),
    "along the surface": lambda p: mp.forces.SoftSphere(p, p, 3.0, 1.6, along_surface=True),
    "A with B along the surface": lambda p: mp.forces.SoftSphere(p.of("A"), p.of("B"), 3.0, 1.6, along_surface=True),
    "in space": lambda p: mp.forces.SoftSphere(p, p, 3.0, 1.6),
    "written": lambda p: mp.forces.CustomPair(p.of("A"), p, "exp(-r)", cutoff=2.0),
}  # fmt: skip


@pytest.mark.parametrize("force", ON_POINTS)
def test_energies_of_points_that_react_add_up_too(force):
    """Each force tells the energy of one point, and none is evaluated as a whole."""
    topology = mp.Topology()
    sheet = topology.add_membrane(MESH, vertex_mass=1.0, vertex_friction=1.0)
    kinds = {name: {"mass": mass, "friction": 1.0} for name, mass in MASSES.items()}
    points = topology.add_intriangle_points(
        sheet, species=kinds, counts={"A": 60, "B": 60, "C": 30}, capacity=400, seed=2
    )  # fmt: skip
    system = mp.System(topology)
    system.add_force(mp.forces.MembraneEdgeSprings(sheet, 5.0))
    system.add_force(ON_POINTS[force](points))
    system.add_jump(mp.jumps.Reactions(points, TEXTS, reach=0.8, most_partners=100))
    integrator = mp.SplittingIntegrator("JBAGOGABJ", 0.01, kT=1.0, seed=2)
    context = mp.Context(system, integrator, threads=1)
    assert context._schedule.jumping.operations[0].forces.operations == []
    before, events = look(context), context.events()
    context._store.program.perform(context._store.program.operations[0])
    after, heard = look(context), events.heard()
    assert len(heard) > 60
    gained = after.potential_energy - before.potential_energy + after.kinetic_energy - before.kinetic_energy
    size = abs(before.potential_energy) + abs(after.potential_energy) + after.kinetic_energy
    assert abs(sum(event.energy for event in heard) - gained) < 1e-11 * size
    assert after.potential_energy != before.potential_energy
