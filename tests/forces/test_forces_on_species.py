"""Forces on single beads that act on beads of one species, whichever these are at a time."""

import numpy as np
import pytest
from builders import octahedron, uneven_sheet

import medyanpy as mp
from medyanpy.testing import ForceCase, check_flips, check_force, check_mean

SPECIES = {"A": {"mass": 1.0, "friction": 1.0}, "B": {"mass": 2.0, "friction": 1.0}}
WALL = mp.boundaries.Plane((0.0, 0.0, -0.2), (0.0, 0.0, 1.0))

# Of beads in space, or points: name, and force on what it is given.
IN_SPACE = {
    "UniformField": lambda on: mp.forces.UniformField(on, [0.3, -1.0, 2.0]),
    "HarmonicTrap": lambda on: mp.forces.HarmonicTrap(on, [1.0, 2.0, 3.0], [0.5, 0.0, 0.0]),
    "ExternalField": lambda on: mp.forces.ExternalField(on, "k*x^2*y + z", k=0.7),
    "WallRepulsion": lambda on: mp.forces.WallRepulsion(WALL, on, 2.0, 1.0, form="soft"),
}


def values(points):
    return np.linspace(-1.0, 2.0, len(points.membrane))


def python_field(on):
    return mp.forces.PythonMembraneField(
        on, lambda corners, w: (w[:, 0] ** 2, 2.0 * w * [1.0, 0.0, 0.0]), corners=True, replay=False
    )


ON_MEMBRANE = {
    "MembraneField": lambda on, p: mp.forces.MembraneField(on, values(p)),
    "CustomMembraneField": lambda on, p: mp.forces.CustomMembraneField(on, "sin(a) + a*b", a=values(p), b=0.4),
    "PointCurvature": lambda on, p: mp.forces.PointCurvature(on, 8.0, 0.3, 0.5),
    "DirectedPointCurvature": lambda on, p: mp.forces.DirectedPointCurvature(on, 8.0, 0.3, 0.5, 1.0),
    "PythonMembraneField": lambda on, p: python_field(on),
}
ALL = [*IN_SPACE, *ON_MEMBRANE]


def scene(name, of, which):
    """Five beads or points of these species, and a system with a force on `which`."""
    topology = mp.Topology()
    if name in IN_SPACE:
        x = np.random.default_rng(3).normal(size=(5, 3))
        beads = topology.add_beads(x, species=SPECIES, of_species=list(of))
        force = IN_SPACE[name](which(beads))
    else:
        mesh = mp.TriangleMesh.icosphere(1.0, 1)
        membrane = topology.add_membrane(mesh, vertex_mass=1.0, vertex_friction=1.0)
        beads = topology.add_intriangle_points(
            membrane, triangles=[3, 8, 3, 20, 60], barycentric=np.full((5, 3), 1 / 3) + [0.1, 0.0, -0.1],
            species=SPECIES, of_species=list(of),
        )  # fmt: skip
        force = ON_MEMBRANE[name](which(beads), beads)
    system = mp.System(topology)
    system.add_force(force)
    return beads, system


def running(system):
    return mp.Context(system, mp.VerletIntegrator(1e-3), threads=1)


def seen(context):
    state = context.get_state(positions=True, forces=True, energy=True)
    return state.potential_energy, state.forces


@pytest.mark.parametrize("name", ALL)
def test_beads_of_a_species_feel_what_all_feel_and_others_nothing(name):
    whole, system = scene(name, "ABABB", lambda beads: beads)
    energy, forces = seen(running(system))
    parts = [seen(running(scene(name, "ABABB", lambda beads, one=one: beads.of(one))[1])) for one in "AB"]
    assert parts[0][0] != 0.0
    assert parts[1][0] != 0.0
    assert sum(u for u, _ in parts) == pytest.approx(energy, rel=1e-14)
    rows = whole.beads
    for (_, f), own in zip(parts, ([0, 2], [1, 3, 4]), strict=True):
        assert (f[rows[own]] == forces[rows[own]]).all()
        assert (np.delete(f[rows], own, axis=0) == 0.0).all()
    assert parts[0][1] + parts[1][1] == pytest.approx(forces, abs=1e-13 * abs(forces).max())


@pytest.mark.parametrize("name", ALL)
def test_both_species_together_are_the_handle(name):
    both = lambda beads: [beads.of("A"), beads.of("B")]  # noqa: E731
    if name in ON_MEMBRANE:
        with pytest.raises(mp.TopologyError, match="points must be the handle of in-triangle points"):
            scene(name, "ABABB", both)
        return
    whole, parts = (running(scene(name, "ABABB", which)[1]) for which in (lambda beads: beads, both))
    assert seen(parts)[0] == seen(whole)[0]


@pytest.mark.filterwarnings("ignore:Reactions. PythonMembraneField:medyanpy.PerformanceWarning")
@pytest.mark.parametrize("name", ALL)
def test_a_bead_that_changes_its_species_takes_its_force_along(name):
    """After all have switched, energies and forces are those of a system that starts so."""
    beads, system = scene(name, "AAAAA", lambda beads: beads.of("B"))
    system.add_jump(mp.jumps.Reactions(beads, "A -> B; rate = 1e12"))
    context = mp.Context(system, mp.BAGOGABIntegrator(1e-12, kT=1.0, seed=1), threads=1)
    assert seen(context)[0] == 0.0
    context.step(3000)
    assert beads.counts(context.get_state(positions=True)) == {"A": 0, "B": 5}
    other = running(scene(name, "BBBBB", lambda beads: beads.of("B"))[1])
    energy, forces = seen(context)
    expected, theirs = seen(other)
    assert energy == pytest.approx(expected, rel=1e-6)
    assert forces == pytest.approx(theirs, rel=1e-6, abs=1e-6 * abs(theirs).max())


def soft_wall(x):
    gap = np.minimum(x[:, 2] + 0.2, 0.0)
    return (2.0 * gap**2).sum()


# What they are, written a second time.
ENERGIES = {
    "UniformField": lambda x: -(x @ [0.3, -1.0, 2.0]).sum(),
    "HarmonicTrap": lambda x: 0.5 * ((x - [0.5, 0.0, 0.0]) ** 2 @ [1.0, 2.0, 3.0]).sum(),
    "ExternalField": lambda x: (0.7 * x[:, 0] ** 2 * x[:, 1] + x[:, 2]).sum(),
    "WallRepulsion": soft_wall,
}


@pytest.mark.parametrize("name", IN_SPACE)
def test_the_contract_of_forces_holds_for_one_species(name):
    """Derivatives of all orders, threads, numbers that are set, refusals."""

    def build():
        _, system = scene(name, "ABABA", lambda beads: beads.of("A"))
        return system.topology, system.forces[0]

    check_force(ForceCase(name, build, lambda x: ENERGIES[name](x[[0, 2, 4]]), length=0.3))


@pytest.mark.parametrize("name", [one for one in ON_MEMBRANE if one != "PythonMembraneField"])
def test_flips_and_moved_beads_change_what_points_of_a_species_feel(name):
    def build():
        _, system = scene(name, "ABABA", lambda beads: beads.of("A"))
        return system.topology, system.forces[0]

    check_flips(ForceCase(name, build, lambda x: 0.0, length=0.3))


def constant_curvature(points):
    """By symmetry H is the same at all vertices of an octahedron, and so is the energy of all points."""
    return mp.forces.PointCurvature(points, 0.9, 0.2, 1.0)


# Mesh, force on points, and the mean of exp(-U) over the area.
def on_a_sheet():
    side = np.linspace(0.0, 4.0, 4001)
    one = np.trapezoid(np.exp(-0.75 * (side - 2.0) ** 2), side)
    return uneven_sheet(), lambda points: mp.forces.HarmonicTrap(points, 1.5, (2.0, 2.0, 0.0)), (one / 4.0) ** 2


def on_an_octahedron():
    mesh = octahedron(0.0)
    u = 2.0 * 0.9 * (mesh.mean_curvatures[0] - 0.2) ** 2
    assert np.ptp(mesh.mean_curvatures) < 1e-12
    return mesh, constant_curvature, np.exp(-u)


def with_values():
    """Linear in each triangle: exp(-u) at the middles of many small ones."""
    mesh, n = octahedron(), 200
    u = np.array([0.0, 2.0, -1.0, 0.5, 1.0, -0.5])
    i, j = np.meshgrid(np.arange(n), np.arange(n), indexing="ij")
    i, j = i[i + j < n], j[i + j < n]
    ups = np.column_stack([i + 1 / 3, j + 1 / 3])
    downs = np.column_stack([i + 2 / 3, j + 2 / 3])[i + j < n - 1]
    w = np.concatenate([ups, downs]) / n
    corners = u[mesh.faces]
    inside = corners[:, :1] + (corners[:, 1:] - corners[:, :1]) @ w.T
    factor = np.average(np.exp(-inside).mean(axis=1), weights=mesh.face_areas)
    return mesh, lambda points: mp.forces.MembraneField(points, u), factor


@pytest.mark.parametrize("made", [on_a_sheet, on_an_octahedron, with_values])
def test_switches_are_shifted_by_the_energy_of_one_species(made):
    """Points alone: A has the odds k_off/k_on times the mean of exp(-U) of B's. Detects 1 of 60 points."""
    mesh, force, factor = made()
    topology = mp.Topology()
    membrane = topology.add_membrane(mesh, vertex_mass=50.0, fixed=True)
    numbers = {"A": {"mass": 1.0, "friction": 3.0}, "B": {"mass": 1.0, "friction": 3.0}}
    points = topology.add_intriangle_points(membrane, species=numbers, counts={"A": 60}, seed=1)
    system = mp.System(topology)
    system.add_force(force(points.of("A")))
    system.add_jump(mp.jumps.Reactions(points, "A <-> B", on_rate=2.0, off_rate=1.0))
    simulation = mp.Simulation(system, mp.BAGOGABIntegrator(0.05, kT=1.0, seed=1), threads=1)
    simulation.step(400)
    found = []
    for _ in range(2500):
        simulation.step(10)
        found.append(points.counts(simulation.context.get_state(positions=True))["A"])
    expected = 60.0 * factor / (factor + 2.0)
    assert abs(expected - 20.0) > 2.0
    check_mean("A", np.array(found, float), expected, time_series=True, sees=1.0)


def test_walls_that_have_no_energy_behind_them_refuse_one_species():
    topology = mp.Topology()
    beads = topology.add_beads(np.ones((2, 3)), species=SPECIES, counts={"A": 2})
    with pytest.raises(mp.ParameterError, match=r'WallRepulsion: beads of one species: .* give form="soft"'):
        mp.forces.WallRepulsion(WALL, beads.of("A"), 1.0, 1.0)


@pytest.mark.parametrize("name", [one for one in ALL if one != "PythonMembraneField"])
def test_documents_hold_the_species_of_a_force(name):
    _, system = scene(name, "ABABB", lambda beads: beads.of("B"))
    again, context = running(mp.deserialize(mp.serialize(system))), running(system)
    assert seen(again)[0] == seen(context)[0]
    assert (seen(again)[1] == seen(context)[1]).all()


# Tables ----------------------------------------------------------------------------------------------------------


PAIRS = {("A", "A"): {"stiffness": 2.0}, ("B", "A"): {"stiffness": 5.0, "diameter": 3.0}, ("B", "B"): None}


def some_beads():
    topology = mp.Topology()
    x = np.random.default_rng(3).uniform(0.0, 4.0, (12, 3))
    return topology.add_beads(x, species=SPECIES, of_species=list("ABABBAABBABA"))


def test_a_table_of_pairs_makes_the_forces_of_each_two_species():
    beads = some_beads()
    made = mp.forces.SoftSphere.by_species(beads, PAIRS, diameter=4.0)
    assert [force.name for force in made] == ["SoftSphere A A", "SoftSphere A B"]
    a, b = beads.of("A"), beads.of("B")
    by_hand = [mp.forces.SoftSphere(a, a, 2.0, diameter=4.0), mp.forces.SoftSphere(a, b, 5.0, diameter=3.0)]
    found = []
    for forces in (made, by_hand):
        system = mp.System(beads.topology)
        for force in forces:
            system.add_force(force)
        found.append(seen(running(system)))
    assert found[0][0] == found[1][0] > 0.0
    assert (found[0][1] == found[1][1]).all()


def test_a_table_of_single_beads_takes_what_all_have_in_common():
    beads = some_beads()
    plane = {"A": {"epsilon": 2.0}, "B": {"epsilon": 3.0}}
    same = {"wall": WALL, "sigma": 1.0, "form": "soft", "name": "floor"}
    walls = mp.forces.WallRepulsion.by_species(beads, plane, **same)
    assert [(force.name, force.epsilon) for force in walls] == [("floor A", 2.0), ("floor B", 3.0)]
    above = {"A": None, "B": {"center": [0.0, 0.0, 1.0]}}
    (trap,) = mp.forces.HarmonicTrap.by_species(beads, above, stiffness=1.0)
    assert trap.handles_by_species == (beads,)


@pytest.mark.parametrize(("force", "table", "match"), [
    (mp.forces.SoftSphere, {("A", "A"): None}, "table has nothing of A B, B B: give numbers, or None"),
    (mp.forces.SoftSphere, {**PAIRS, ("A", "B"): None}, r"table has \('A', 'B'\) twice"),
    (mp.forces.SoftSphere, {"A": None, "B": None}, r"table has 'A' but a key must be two names"),
    (mp.forces.SoftSphere, {("A", "C"): None}, "there is no species .* 'C'"),
    (mp.forces.SoftSphere, {**PAIRS, ("B", "B"): 3.0}, r"table\[\('B', 'B'\)\] = 3.0 but must be a dict"),
    (mp.forces.SoftSphere, [1], r"table = \[1\] but must be a dict"),
    (mp.forces.HarmonicTrap, {("A", "B"): None}, r"table has \('A', 'B'\) but a key must be the name of a species"),
])  # fmt: skip
def test_tables_that_say_too_little_or_too_much_are_refused(force, table, match):
    with pytest.raises(mp.ParameterError, match=match):
        force.by_species(some_beads(), table)


def test_a_table_needs_a_handle_with_species():
    beads = mp.Topology().add_beads(np.zeros((1, 3)), mass=1.0)
    with pytest.raises(mp.TopologyError, match="must be a handle with species"):
        mp.forces.SoftSphere.by_species(beads, PAIRS)
