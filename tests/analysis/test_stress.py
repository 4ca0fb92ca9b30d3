"""The virial stress, against sums of NumPy, laws of symmetry, and Clausius' theorem where all of it is known."""

import numpy as np
import pytest
from builders import refuses, system_with

import medyanpy as mp
from medyanpy import analysis
from medyanpy._tools.quaternions import turned
from medyanpy.testing import check_mean

VOLUME = 700.0


def rotation(rng):
    q, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    return q * np.sign(np.linalg.det(q))


def springs(x, v, trap=False, mass=None):
    """Beads joined by springs that are not relaxed, each with a mass of its own."""
    topology = mp.Topology()
    n = len(x)
    topology.add_beads(x, mass=np.linspace(1.0, 3.0, n) if mass is None else mass, name="beads")
    system = mp.System(topology)
    pairs = [[i, (3 * i + 1) % n] for i in range(n) if (3 * i + 1) % n != i]
    system.add_force(mp.forces.HarmonicBonds(pairs, stiffness=2.0, length=1.0))
    if trap:
        system.add_force(mp.forces.HarmonicTrap(topology["beads"], 0.5, [1.0, 2.0, 3.0]))
    context = mp.Context(system, mp.VerletIntegrator(1e-3))
    context.set_velocities(v)
    return context, np.array(pairs)


def test_sums_by_hand(rng):
    x, v = rng.normal(0.0, 3.0, (12, 3)), rng.normal(size=(12, 3))
    context, pairs = springs(x, v, trap=True)
    found = analysis.virial_stress(context, VOLUME)
    bonds, kinetic = np.zeros((3, 3)), np.zeros((3, 3))
    for i, j in pairs:
        d = x[j] - x[i]
        bonds += 2.0 * (np.linalg.norm(d) - 1.0) * np.outer(d, d) / np.linalg.norm(d)
    for m, one in zip(np.linspace(1.0, 3.0, 12), v, strict=True):
        kinetic += m * np.outer(one, one)
    trap = sum(np.outer(one, -0.5 * (one - [1.0, 2.0, 3.0])) for one in x)
    assert set(found.forces) == {"HarmonicBonds", "HarmonicTrap"}
    np.testing.assert_allclose(found.forces["HarmonicBonds"], bonds / VOLUME, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(found.forces["HarmonicTrap"], -trap / VOLUME, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(found.kinetic, -kinetic / VOLUME, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(found.total, (bonds - trap - kinetic) / VOLUME, rtol=1e-11, atol=1e-13)
    assert found.pressure == pytest.approx(-np.trace(bonds - trap - kinetic) / VOLUME / 3.0)
    assert found.constraints == {}
    assert found.volume == VOLUME
    # Of a simulation as of its context.
    simulation = mp.Simulation(context.system, mp.VerletIntegrator(1e-3))
    np.testing.assert_array_equal(analysis.virial_stress(simulation, VOLUME).forces["HarmonicBonds"],
                                  found.forces["HarmonicBonds"])  # fmt: skip


def test_translation_and_rotation(rng):
    """Internal forces: wherever the origin is; all: turned with the beads."""
    x, v = rng.normal(0.0, 3.0, (12, 3)), rng.normal(size=(12, 3))
    before = analysis.virial_stress(springs(x, v)[0], VOLUME).total
    moved = analysis.virial_stress(springs(x + [1e4, -2e4, 3e4], v)[0], VOLUME).total
    np.testing.assert_allclose(moved, before, atol=1e-9 * np.abs(before).max())
    q = rotation(rng)
    after = analysis.virial_stress(springs(x @ q.T, v @ q.T)[0], VOLUME).total
    np.testing.assert_allclose(after, q @ before @ q.T, atol=1e-12 * np.abs(before).max())
    np.testing.assert_allclose(before, before.T, atol=1e-13 * np.abs(before).max())


def test_stress_is_what_a_strain_costs(rng):
    """V σ : ε is the change of the energy of springs; by differences."""
    x = rng.normal(0.0, 3.0, (12, 3))
    rest = np.zeros((12, 3))
    sigma = analysis.virial_stress(springs(x, rest)[0], VOLUME).total
    for a, b in ((0, 0), (0, 1), (2, 1)):
        strain = np.zeros((3, 3))
        strain[a, b] = 1e-5
        up, down = (
            springs(x @ (np.eye(3) + s * strain), rest)[0].get_state(energy=True).potential_energy for s in (1, -1)
        )
        assert VOLUME * sigma[a, b] == pytest.approx((up - down) / 2e-5, rel=1e-6, abs=1e-5)


def test_membranes_with_points_are_symmetric(rng):
    """Forces on points count where these are: what they pass on to corners is no force of its own."""
    topology = mp.Topology()
    mesh = mp.TriangleMesh.icosphere(radius=10.0, subdivisions=1)
    membrane = topology.add_membrane(mesh, vertex_mass=2.0)
    triangles = np.arange(12)
    weights = rng.dirichlet(np.ones(3), 12)
    points = topology.add_intriangle_points(membrane, triangles=triangles, barycentric=weights, mass=1.0)
    anchor = topology.add_beads(rng.normal(0.0, 4.0, (12, 3)), mass=1.0)
    system = system_with(topology, mp.forces.HarmonicBonds(np.column_stack([points.beads, anchor.beads]), 3.0, 2.0),
                         mp.forces.MembraneTension(membrane, 0.7))  # fmt: skip
    context = mp.Context(system, mp.SplittingIntegrator("BAGAB", 1e-3))
    context.set_velocities_to_temperature(kT=1.0, seed=4)
    found = analysis.virial_stress(context, VOLUME)
    for one in (*found.forces.values(), found.kinetic):
        np.testing.assert_allclose(one, one.T, atol=1e-12 * np.abs(one).max())
    state = context.get_state(positions=True, velocities=True)
    # A tension pulls inwards with its area: -tr W is 2 γ A.
    area = mp.TriangleMesh(state.positions[membrane.beads], mesh.faces).area
    assert np.trace(found.forces["MembraneTension"]) == pytest.approx(2.0 * 0.7 * area / VOLUME, rel=1e-12)
    mass = np.concatenate([np.full(len(membrane), 2.0), np.ones(24)])
    np.testing.assert_allclose(found.kinetic, -(mass * state.velocities.T) @ state.velocities / VOLUME, rtol=1e-12)


def test_bodies_turn_what_is_not_symmetric(rng):
    """Springs on arms: the antisymmetric part of the virial is the torque on the places, minus that on the bodies."""
    topology = mp.Topology()
    turns = rng.normal(size=(4, 4))
    turns /= np.linalg.norm(turns, axis=1)[:, None]
    bodies = topology.add_rigid_bodies(rng.normal(0.0, 5.0, (4, 3)), turns, mass=1.0, inertia=[1.0, 2.0, 2.5])
    system = mp.System(topology)
    sites = bodies.sites(rng.normal(size=(4, 1, 3)))
    system.add_force(mp.forces.Links(sites[:2], sites[2:], stiffness=2.0, length=0.5))
    context = mp.Context(system, mp.SplittingIntegrator("BAB", 1e-4))
    virial = -analysis.virial_stress(context, 1.0).forces["Links"]
    state = context.get_state(positions=True, forces=True)
    of_places = np.cross(state.positions, state.forces).sum(axis=0)
    antisymmetric = np.array([virial[1, 2] - virial[2, 1], virial[2, 0] - virial[0, 2], virial[0, 1] - virial[1, 0]])
    np.testing.assert_allclose(antisymmetric, of_places, rtol=1e-12)
    of_bodies = turned(state.orientations, state.torques).sum(axis=0)
    np.testing.assert_allclose(of_places, -of_bodies, rtol=1e-10)
    assert np.abs(antisymmetric).max() > 1e-3


# Clausius -----------------------------------------------------------------------------------------------------------


def test_a_spring_that_turns_steadily():
    """Two beads that go round each other: centripetal forces balance what moves, at every moment."""
    length, k, m = 3.0, 2.0, 1.5
    speed = np.sqrt(k * (length - 1.0) * (length / 2.0) / m)
    topology = mp.Topology()
    topology.add_beads([[-length / 2, 0, 0], [length / 2, 0, 0]], mass=m)
    context = mp.Context(system_with(topology, mp.forces.HarmonicBonds([[0, 1]], k, 1.0)), mp.VerletIntegrator(1e-3))
    context.set_velocities([[0.0, -speed, 0], [0.0, speed, 0]])
    found = analysis.virial_stress(context, VOLUME)
    assert np.trace(found.total) == pytest.approx(0.0, abs=1e-15)
    assert found.pressure == pytest.approx(0.0, abs=1e-15)
    assert np.abs(found.kinetic).max() > 1e-3


@pytest.mark.parametrize("closed", [False, True])
def test_forces_of_constraints(closed):
    """A stiff polygon that turns about its centre: the tension of its links is all that holds it, whether links are of
    a ring or of a rod of two nodes."""
    n, m, rate = (6, 1.5, 0.7) if closed else (2, 1.5, 0.7)
    angle = 2.0 * np.pi * np.arange(n) / n
    x = 4.0 * np.column_stack([np.cos(angle), np.sin(angle), 0.0 * angle])
    topology = mp.Topology()
    topology.add_filament(x, node_mass=m, closed=closed, name="ring")
    context = mp.Context(mp.System(topology), mp.VerletIntegrator(1e-3))
    context.set_velocities(rate * np.cross([0.0, 0.0, 1.0], x))
    found = analysis.virial_stress(context, VOLUME)
    assert list(found.constraints) == ["ring"]
    assert np.trace(found.kinetic) == pytest.approx(-n * m * (4.0 * rate) ** 2 / VOLUME, rel=1e-12)
    assert np.trace(found.total) == pytest.approx(0.0, abs=1e-14)
    if closed:
        # Of six, every second moment in the plane is the same.
        np.testing.assert_allclose(found.total, 0.0, atol=1e-14)


def test_constraints_of_a_users_own_and_surfaces():
    """The same rod, its length a text; and a bead on a sphere, which presses on it with m v²/R."""
    topology = mp.Topology()
    beads = topology.add_beads([[-2.0, 0, 0], [2.0, 0, 0]], mass=1.5)
    topology.constrain("(x1 - x2)^2 + (y1 - y2)^2 + (z1 - z2)^2 - 16", [beads.beads], name="rod", length=4.0)
    topology.add_surface_points(mp.surfaces.Sphere(radius=5.0), [[0.0, 0, 5.0]], mass=2.0, name="marble")
    context = mp.Context(mp.System(topology), mp.VerletIntegrator(1e-3))
    context.set_velocities([[0.0, -1.0, 0], [0.0, 1.0, 0], [3.0, 0, 0]])
    found = analysis.virial_stress(context, VOLUME)
    assert set(found.constraints) == {"rod", "marble"}
    assert np.trace(found.constraints["rod"]) == pytest.approx(2 * 1.5 / VOLUME, rel=1e-10)
    assert np.trace(found.constraints["marble"]) == pytest.approx(2.0 * 9.0 / VOLUME, rel=1e-10)
    assert np.trace(found.total) == pytest.approx(0.0, abs=1e-12)


def test_a_trap_over_whole_periods():
    """Leapfrog with N steps in a period: mean of m v⊗v is that of k x⊗x times 1 - (ω dt)²/4, to rounding."""
    steps, k, m = 40, 2.0, 3.0
    omega = np.sqrt(k / m)
    dt = 2.0 * np.sin(np.pi / steps) / omega
    topology = mp.Topology()
    beads = topology.add_beads([[1.0, 0.5, -2.0]], mass=m)
    context = mp.Context(system_with(topology, mp.forces.HarmonicTrap(beads, k, [0.0, 0.0, 0.0])),
                         mp.VerletIntegrator(dt))  # fmt: skip
    context.set_velocities([[0.3, -1.0, 0.2]])
    forces, kinetic = [], []
    for _ in range(steps):
        context.step(1)
        found = analysis.virial_stress(context, 1.0)
        forces.append(found.forces["HarmonicTrap"])
        kinetic.append(found.kinetic)
    shrunk = (1.0 - (omega * dt) ** 2 / 4.0) * np.mean(forces, axis=0)
    np.testing.assert_allclose(np.mean(kinetic, axis=0), -shrunk, rtol=1e-11, atol=1e-12)


@pytest.mark.slow
def test_an_ideal_gas_in_a_trap():
    """Clausius: in equilibrium the trap's part is +n kT/V in each direction, that of the motion is -n kT/V, and nothing
    is off the diagonal; 1e-6. 400 beads in 250 looks, each of which has forgotten the last: an error of 4 % is seen."""
    n, kT, k = 400, 4.0, 0.1
    topology = mp.Topology()
    beads = topology.add_beads(np.random.default_rng(5).normal(0.0, np.sqrt(kT / k), (n, 3)), mass=1.0, friction=1.0)
    simulation = mp.Simulation(system_with(topology, mp.forces.HarmonicTrap(beads, k, [0.0, 0.0, 0.0])),
                               mp.SplittingIntegrator("BAOAB", 0.5, kT=kT, seed=2))  # fmt: skip
    simulation.context.set_velocities_to_temperature(kT=kT, seed=3)
    looks = []
    for _ in range(250):
        simulation.step(80)
        found = analysis.virial_stress(simulation, VOLUME)
        looks.append([found.forces["HarmonicTrap"], found.kinetic])
    looks = np.array(looks) * VOLUME / (n * kT)
    # At the end of a step velocities in a trap are too cold by (ω dt)²/4: 0.625 %.
    for part, expected in ((0, 1.0), (1, -(1.0 - 0.1 * 0.25 / 4.0))):
        for a in range(3):
            check_mean(f"part {part}, {a}", looks[:, part, a, a], expected, sees=0.045)
        check_mean(f"part {part}, off the diagonal", looks[:, part, 0, 1], 0.0, sees=0.04)


# What is refused -----------------------------------------------------------------------------------------------------


def test_refused(rng):
    x = rng.normal(size=(4, 3))
    context, _ = springs(x, 0.0 * x)
    for volume in (0.0, -1.0, np.nan, "much"):
        refuses(mp.ParameterError, "virial_stress: volume", analysis.virial_stress, context, volume)
    with pytest.raises(mp.ParameterError, match="source must be a Simulation or a Context, not State"):
        analysis.virial_stress(context.get_state(virial=True), 1.0)
    topology = mp.Topology()
    topology.add_beads(x, mass=1.0, friction=1.0)
    brownian = mp.Context(mp.System(topology), mp.BrownianIntegrator(1e-3, kT=1.0))
    refuses(mp.ParameterError, "move without velocities", analysis.virial_stress, brownian, 1.0)


def test_beads_that_come_and_go():
    """Who is not there does not move."""
    topology = mp.Topology()
    beads = topology.add_beads(np.zeros((3, 3)), mass=[1.0, 2.0, 4.0])
    context = mp.Context(mp.System(topology), mp.VerletIntegrator(1e-3))
    context.set_velocities([[1.0, 0, 0], [0, 1.0, 0], [0, 0, 1.0]])
    np.testing.assert_allclose(analysis.virial_stress(context, 1.0).kinetic.diagonal(), [-1.0, -2.0, -4.0])
    with topology.edit():
        beads.remove([1])
    np.testing.assert_allclose(analysis.virial_stress(context, 1.0).kinetic.diagonal(), [-1.0, 0.0, -4.0])


# Membranes ------------------------------------------------------------------------------------------------------


def test_tension_of_a_sphere_is_that_of_laplace():
    """Under the pressure that balances it: σ from the virial is the coefficient of the area, and ΔpR/2."""
    topology = mp.Topology()
    mesh = mp.TriangleMesh.icosphere(100.0, 3)
    vesicle = topology.add_membrane(mesh, vertex_mass=1e-12)
    system = mp.System(topology)
    sigma, modulus = 0.05, 2.0
    pressure = 2.0 * sigma * mesh.area / (3.0 * mesh.volume)
    system.add_force(mp.forces.MembraneTension(vesicle, sigma))
    system.add_force(mp.forces.MembraneVolume(vesicle, modulus, mesh.volume / (1.0 - pressure / modulus)))
    system.add_force(mp.forces.MembraneBending(vesicle, 80.0))
    context = mp.Context(system, mp.VerletIntegrator(1e-9))
    found = analysis.surface_tension(context, vesicle, without="MembraneVolume")
    # Bending does not know the scale of a sphere: it has no tension.
    assert set(found.forces) == {"MembraneTension", "MembraneBending"}
    assert found.forces["MembraneTension"] == pytest.approx(sigma, rel=1e-12)
    assert abs(found.forces["MembraneBending"]) < 1e-9
    assert found.area == pytest.approx(mesh.area, rel=1e-12)
    assert found.total == pytest.approx(0.5 * pressure * 3.0 * mesh.volume / mesh.area, rel=1e-7)
    assert found.total == pytest.approx(0.5 * pressure * 100.0, rel=0.01)
    whole = analysis.surface_tension(context, vesicle)
    assert abs(whole.total) < 1e-9
    assert whole.kinetic == 0.0


def test_tension_of_a_frame():
    """A flat sheet: minus what vertices' motion and forces press outwards; what acts across it counts nothing."""
    topology = mp.Topology()
    sheet = topology.add_membrane(mp.TriangleMesh.flat_sheet(9, 8, 2.0), vertex_mass=0.5)
    gas = topology.add_beads(np.random.default_rng(1).normal(size=(30, 3)), mass=2.0)
    system = system_with(topology, mp.forces.MembraneTension(sheet, 0.3),
                         mp.forces.HarmonicTrap(gas, [0.0, 0.0, 5.0], [0.0, 0.0, 0.0], name="across"))  # fmt: skip
    context = mp.Context(system, mp.VerletIntegrator(1e-3))
    context.set_velocities_to_temperature(kT=1.0, seed=3)
    v = context.get_state(velocities=True).velocities
    area = sheet.mesh.area
    found = analysis.surface_tension(context, box=(area / 10.0, 10.0))
    assert found.area == pytest.approx(area)
    assert found.forces == {"MembraneTension": pytest.approx(0.3, rel=1e-12), "across": pytest.approx(0.0, abs=1e-15)}
    mass = np.concatenate([np.full(72, 0.5), np.full(30, 2.0)])
    kinetic = -(mass[:, None] * v[:, :2] ** 2).sum() / (2.0 * area)
    assert found.kinetic == pytest.approx(kinetic, rel=1e-12)
    assert found.total == pytest.approx(0.3 + kinetic, rel=1e-12)
    for match, call in (
        ("give box=", lambda: analysis.surface_tension(context)),
        ("the membrane has borders", lambda: analysis.surface_tension(context, sheet)),
        ("there is no force 'acros'", lambda: analysis.surface_tension(context, box=(1, 1), without=["acros"])),
        ("must be the handle of a membrane", lambda: analysis.surface_tension(context, gas)),
        ("give volume=", lambda: analysis.virial_stress(context)),
    ):
        refuses(mp.ParameterError, match, call)


def test_force_of_a_tether(rng):
    """A spring between a trapped bead and one that is held: both holders bear it, with opposite signs."""
    topology = mp.Topology()
    ends = topology.add_beads([[0.0, 0, 0], [4.0, 0, 0]], mass=1.0)
    vertices = topology.add_membrane(mp.TriangleMesh.icosphere(1.0, 0), vertex_mass=1.0, fixed=True)
    system = mp.System(topology)
    trap = system.add_force(mp.forces.HarmonicTrap([1], [4.0, 5.0, 6.0], [4.5, 0.2, 0.1]))
    system.add_force(mp.forces.HarmonicBonds([[0, 1], [0, vertices.beads[3]]], stiffness=3.0, length=1.0))
    context = mp.Context(system, mp.VerletIntegrator(0.01))
    states = []
    for _ in range(3):
        context.step(2)
        states.append(context.get_state(positions=True, forces=True))
    x = np.array([one.positions for one in states])
    expected = [4.0, 5.0, 6.0] * ([4.5, 0.2, 0.1] - x[:, 1])
    np.testing.assert_allclose(analysis.tether_force(states, trap), expected, rtol=1e-12)
    np.testing.assert_allclose(analysis.tether_force(x, trap, [0.0, 0.0, 2.0]), expected[:, 2], rtol=1e-12)
    assert analysis.tether_force(states[0], trap).shape == (3,)
    d = x[:, 0] - x[:, vertices.beads[3]]
    length = np.linalg.norm(d, axis=1)[:, None]
    pull = -3.0 * (length - 1.0) * d / length
    np.testing.assert_allclose(analysis.tether_force(states, vertices), pull, rtol=1e-9)
    np.testing.assert_allclose(analysis.tether_force(states, vertices, [1, 0, 0]), pull[:, 0], rtol=1e-9)
    refuses(mp.ParameterError, "direction must not be 0", analysis.tether_force, x, trap, [0, 0, 0])
    refuses(mp.ParameterError, "give states with forces=True", analysis.tether_force, x, vertices)
    with pytest.raises(mp.ParameterError, match=r"get_state\(forces=True\)"):
        analysis.tether_force(context.get_state(positions=True), vertices)
    assert ends.topology is topology


def test_a_pull_is_positive_from_what_is_held_towards_where_it_is_pulled():
    """By a trap above a bead, and by what fixes a bead to which a spring pulls down."""
    trap = mp.forces.HarmonicTrap([0], 1.0, [0.0, 0.0, 10.0])
    assert analysis.tether_force([[0.0, 0, 0]], trap, [0, 0, 1]).item() == 10.0
    topology = mp.Topology()
    mesh = mp.TriangleMesh.icosphere(1.0, 0).translated([0, 0, 10.0])
    cell = topology.add_membrane(mesh, vertex_mass=1.0, fixed=True)
    bead = topology.add_beads([[0.0, 0, 0]], mass=1.0)
    system = mp.System(topology)
    top = int(cell.beads[np.argmax(cell.positions[:, 2])])
    system.add_force(mp.forces.HarmonicBonds([[top, int(bead.beads[0])]], stiffness=3.0, length=0.0))
    state = mp.Context(system, mp.VerletIntegrator(0.01)).get_state(positions=True, forces=True)
    assert analysis.tether_force(state, [top], [0, 0, 1]) > 0.0


@pytest.mark.long
def test_tension_of_a_box_is_the_one_imposed():
    """`BoxArea` holds a patch at a frame tension, which virials have in the mean. Without the motion of beads it were
    1.2 higher."""
    tension = 0.5
    mesh = mp.TriangleMesh.flat_sheet(6, 6, 1.0, periodic=True)
    topology = mp.Topology()
    patch = topology.add_membrane(mesh, vertex_mass=1.0, vertex_friction=1.0)
    system = system_with(topology, mp.forces.MembraneBending(patch, 20.0), mp.forces.MembraneEdgeSprings(patch, 100.0),
                         box=mesh.box)  # fmt: skip
    system.add_jump(mp.jumps.BoxArea(tension=tension, rate=4.0, step=0.04))
    simulation = mp.Simulation(system, mp.SplittingIntegrator("JBAOABJ", 0.01, kT=1.0, seed=3), threads=1)
    simulation.context.set_velocities_to_temperature(kT=1.0, seed=4)
    simulation.step(1000)
    found = []
    for _ in range(6000):
        simulation.step(40)
        found.append(analysis.surface_tension(simulation).total)
    check_mean("frame tension", np.array(found), tension, sees=0.4, time_series=True)
