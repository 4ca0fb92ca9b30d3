"""Letters and integrators that fail on purpose."""

import numpy as np
from builders import system_with
from faults.provoked.common import SMALLER, Scene, fault, make

import medyanpy as mp
from medyanpy import forces, kicks


@fault("kick.pyx", "_kick_beads", "NOT_FINITE", "Kick", SMALLER, unstable=True)
def a_bead_blows_up():
    topology = mp.Topology()
    x = np.column_stack([np.arange(30_000), np.zeros((30_000, 2))])
    x += np.random.default_rng(1).normal(0.0, 0.1, x.shape)
    beads = topology.add_beads(x, mass=1.0, friction=0.1, name="chain")
    system = system_with(topology, forces.HarmonicTrap(beads, 1e-3, [0.0, 0.0, 0.0]))
    pairs = np.column_stack([beads.beads[:-1], beads.beads[1:]])
    stiffness = np.ones(len(pairs))
    stiffness[20_000] = 1e6
    bonds = system.add_force(forces.HarmonicBonds(pairs, stiffness, 1.0, name="one is stiff"))
    context = make(system, "BAOAB", 0.1)

    def mend():
        bonds.set(stiffness=1.0)
        context.set_velocities_to_temperature(kT=1.0)

    return Scene(context, mend, range(19_000, 22_000), "chain", "one is stiff")


def points_on_a_sphere(fixed):
    """Points in a field, and one of them in a trap far away; both are off for five steps."""
    topology = mp.Topology()
    topology.add_beads([[40.0, 0.0, 0.0]], mass=1.0, friction=0.1)
    sphere = topology.add_membrane(mp.TriangleMesh.icosphere(10.0, 2), 1.0, 0.1, fixed=fixed, name="cell")
    points = topology.add_intriangle_points(sphere, 4000, mass=1.0, friction=0.2, seed=1, name="proteins")
    system = mp.System(topology)
    if not fixed:
        system.add_force(forces.MembraneEdgeSprings(sphere, 100.0))
    field = system.add_force(forces.UniformField(points, [0.0, 0.0, 0.0], name="field"))
    trap = system.add_force(forces.HarmonicTrap(points.beads[17:18], 0.0, [40.0, 0.0, 0.0], name="trap"))
    context = make(system, "BAGOGAB")
    context.set_velocities_to_temperature(kT=1.0, seed=2)
    context.step(5)
    return context, points, field, trap


@fault("kick.pyx", "_largest_force", "NOT_FINITE", "Kick", SMALLER, unstable=True)
def a_point_passes_on_a_force_that_is_no_number():
    context, points, _, trap = points_on_a_sphere(fixed=False)
    trap.set(stiffness=1.7e308)
    return Scene(context, lambda: trap.set(stiffness=0.0), points.beads[17], "proteins", "trap")


@fault("kick.pyx", "_kick_points", "NOT_FINITE", "Kick", SMALLER, in_triangle=True, unstable=True)
def a_point_of_a_fixed_mesh_is_kicked_by_a_force_that_is_no_number():
    context, points, _, trap = points_on_a_sphere(fixed=True)
    trap.set(stiffness=1.7e308)
    return Scene(context, lambda: trap.set(stiffness=0.0), points.beads[17], "proteins", "trap")


@fault("kinetic_watch.pyx", "_look", "RUNAWAY", "Watch", "it has run away: .*keeps triangles in shape",
       in_triangle=True)  # fmt: skip
def a_point_is_pulled_faster_than_it_can_have_come_to_be():
    context, points, _, trap = points_on_a_sphere(fixed=True)
    context.runaway = 20.0
    trap.set(stiffness=2e4)
    return Scene(context, lambda: trap.set(stiffness=0.0), points.beads[17], "proteins", "trap")


def bodies_in_a_field(torque):
    """Of which one is turned with a torque too large."""
    topology = mp.Topology()
    rng = np.random.default_rng(2)
    q = rng.normal(size=(300, 4))
    q /= np.linalg.norm(q, axis=1)[:, None]
    topology.add_beads([[0.0, 0.0, 0.0]], mass=1.0)
    bodies = topology.add_rigid_bodies(rng.normal(size=(300, 3)), q, 1.0, (1.0, 2.0, 2.5), name="molecules")
    system = mp.System(topology)
    push = np.zeros((600, 3))
    push[34], push[35] = [0.0, 0.0, torque], [0.0, 0.0, -torque]
    field = system.add_force(forces.UniformField(bodies.sites([[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]]), push, name="field"))
    return Scene(make(system, "BAB"), lambda: field.set(force=[0.0, 0.0, 0.0]), 18, "molecules", "field")


SLOWER = "it has run away: .*a smaller one, or minimize_energy"


@fault("kinetic_watch.pyx", "_look_at_rotation", "RUNAWAY", "Watch", SLOWER)
def a_body_is_turned_faster_than_it_can_have_come_to_be():
    scene = bodies_in_a_field(1e5)
    scene.context.runaway = 20.0
    scene.context.set_velocities_to_temperature(kT=1.0)
    return scene


@fault("kick.pyx", "_kick_momenta", "NOT_FINITE", "Kick", SMALLER)
def a_torque_overflows():
    return bodies_in_a_field(1.7e308)


@fault("rotation.pyx", "_rotate", "NOT_FINITE", "Rotation", SMALLER)
def a_body_turns_too_fast():
    return bodies_in_a_field(1e200)


def displaced(bead, name):
    """Beads and bodies without velocities, of which one is pulled too strongly from step 5 on."""
    topology = mp.Topology()
    topology.add_beads(np.random.default_rng(3).normal(size=(3000, 3)), mass=1.0, friction=1e-3, name="solvent")
    q = np.tile([0.6, 0.0, 0.8, 0.0], (2000, 1))
    topology.add_rigid_bodies(np.zeros((2000, 3)), q, 1.0, (1.0, 2.0, 2.5), (1e-3, 1.0), name="molecules")
    system = mp.System(topology)
    field = system.add_force(forces.UniformField([0, bead], [0.0, 0.0, 0.0], name="field"))
    context = make(system, "D")
    context.step(5)
    field.set(force=[[0.0, 0.0, 0.0], [0.0, 1.7e308, 0.0]])
    return Scene(context, lambda: field.set(force=[0.0, 0.0, 0.0]), bead, name, "field")


@fault("brownian.pyx", "_displace", "NOT_FINITE", "Displacement", SMALLER)
def a_bead_is_displaced_to_nowhere():
    return displaced(2345, "solvent")


@fault("brownian.pyx", "_keep", "NOT_FINITE", "Keep", SMALLER)
def a_bead_flies_to_nowhere():
    topology = mp.Topology()
    topology.add_beads(np.random.default_rng(3).normal(size=(3000, 3)), mass=1.0, friction=1e-3, name="solvent")
    system = mp.System(topology)
    field = system.add_force(forces.UniformField([0, 2345], [0.0, 0.0, 0.0], name="field"))
    # Velocities are numbers, and places are not.
    integrator = mp.BrownianIntegrator(10.0, kT=1.0, seed=3, scheme="Leimkuhler-Matthews")
    context = mp.Context(system, integrator, threads=2)
    context.step(5)
    field.set(force=[[0.0, 0.0, 0.0], [0.0, 5e304, 0.0]])
    return Scene(context, lambda: field.set(force=[0.0, 0.0, 0.0]), 2345, "solvent", "field")


@fault("brownian.pyx", "_displace_and_turn", "NOT_FINITE", "TensorDisplacement", SMALLER)
def a_body_is_displaced_to_nowhere():
    return displaced(4321, "molecules")


@fault("geodesic.pyx", "_largest_momentum", "NOT_FINITE", "Geodesic", SMALLER, in_triangle=True)
def a_point_is_so_fast_that_its_energy_overflows():
    context, points, field, _ = points_on_a_sphere(fixed=True)
    push = np.zeros((4000, 3))
    push[23] = 1e160
    field.set(force=push)
    return Scene(context, lambda: field.set(force=[0.0, 0.0, 0.0]), points.beads[23], "proteins", "field")


@fault("flight.pxd", "fly", "TOO_MANY_CROSSINGS", "Geodesic", "crosses edges without end.*try", in_triangle=True)
def a_point_circles_without_end():
    context, points, field, _ = points_on_a_sphere(fixed=True)
    push = np.zeros((4000, 3))
    push[23] = 5e9
    field.set(force=push)

    def mend():
        field.set(force=[0.0, 0.0, 0.0])
        context.set_velocities_to_temperature(kT=1.0)

    return Scene(context, mend, points.beads[23], "proteins")


@fault("flight.pxd", "fly", "DEGENERATE_TRIANGLE", "Geodesic", "lost its area.*keeps its triangles in shape",
       in_triangle=True)  # fmt: skip
def the_triangle_under_a_point_vanishes():
    """All exact: a right triangle shrinks to where one over its squared area overflows, the point at rest in it."""
    topology = mp.Topology()
    corners = np.array([[0.0, 0, 0], [1.0, 0, 0], [0, 1.0, 0]])
    membrane = topology.add_membrane(mp.TriangleMesh(corners, [[0, 1, 2]]), vertex_mass=1.0)
    topology.add_intriangle_points(membrane, triangles=[0], barycentric=[[0.25, 0.25, 0.5]], mass=1.0, name="proteins")
    context = make(mp.System(topology), timestep=1.0)
    x = np.zeros((4, 3))
    x[:3] = corners * 2.0**-254
    context.set_positions(x)
    context.set_velocities(-x / 8.0)

    def mend():
        context.set_velocities(np.zeros((4, 3)))
        context.set_positions(x * 2.0**254)

    return Scene(context, mend, 3, "proteins")


@fault("drift.pyx", "_ride", "DEGENERATE_TRIANGLE", "Drift", "lost its area.*keeps its triangles in shape",
       in_triangle=True)  # fmt: skip
def a_triangle_collapses_under_the_point_that_rides_on_it():
    """All exact: one corner of a right triangle walks into another in sixteen steps of 1/16."""
    topology = mp.Topology()
    corners = np.array([[0.0, 0, 0], [1.0, 0, 0], [0, 1.0, 0]])
    membrane = topology.add_membrane(mp.TriangleMesh(corners, [[0, 1, 2]]), vertex_mass=1.0)
    topology.add_intriangle_points(membrane, triangles=[0], barycentric=[[0.25, 0.25, 0.5]], mass=1.0, name="proteins")
    context = make(mp.System(topology), timestep=1.0)
    v = np.zeros((4, 3))
    v[2, 1] = -0.125
    context.set_velocities(v)
    return Scene(context, lambda: context.set_velocities(np.zeros((4, 3))), 3, "proteins")


@fault("pace.pyx", "fail", "NO_DENSITY", "Pace", "the density of adaptive steps is not positive; 1 . the control is "
       "-?0[.].* here.*the text of AdaptiveSteps must be another.*timestep is too long")  # fmt: skip
def a_bead_flies_to_where_steps_would_have_no_length():
    topology = mp.Topology()
    topology.add_beads([[0.0, 0, 0]], mass=1.0)
    steps = mp.AdaptiveSteps(field="-0.1*x")
    context = mp.Context(mp.System(topology), mp.SplittingIntegrator("BAB", 0.01, steps=steps))
    context.set_velocities([[3.0, 0, 0]])
    context.step(4)
    return Scene(context, lambda: context.set_velocities([[-3.0, 0, 0]]))


@fault("metropolis.pyx", "is_not_finite", "NOT_FINITE", "", SMALLER)
def a_block_starts_where_there_is_no_energy():
    """Squares of positions overflow, but forces do not."""
    topology = mp.Topology()
    beads = topology.add_beads(np.ones((100, 3)), mass=1.0, friction=1.0)
    system = mp.System(topology)
    trap = system.add_force(forces.HarmonicTrap(beads, 0.0, [0.0, 0.0, 0.0], name="trap"))
    context = make(system, "M(BAB) O")
    context.step(3)
    x = np.ones((100, 3))
    x[42] = 1e200
    context.set_positions(x)
    trap.set(stiffness=1.0)
    return Scene(context, lambda: context.set_positions(np.ones((100, 3))))


UNSOLVED = "equations of a linearly implicit kick have no solution here.*try a smaller timestep or another kick"


def coarse(system, kick, timestep=2.0):
    """βh² = 1 with this timestep and β = 1/4."""
    return mp.Context(system, mp.SplittingIntegrator("BAB", timestep, kick=kick), threads=2)


def pair(distance, mass=2.0):
    """Two beads along x among others, and the system."""
    topology = mp.Topology()
    topology.add_beads(np.random.default_rng(5).uniform(50.0, 90.0, (700, 3)), mass=1.0, name="solvent")
    beads = topology.add_beads([[0.0, 0, 0], [distance, 0, 0]], mass, name="pair")
    return beads, mp.System(topology)


@fault("implicit_kicks.pyx", "_solve", "NOT_SOLVED", "Kick", UNSOLVED)
def a_compressed_bond_turns_the_equations_singular():
    """All exact: across a bond of stiffness 1, half as long as it wants to be, M + βh²H is [[1, 1], [1, 1]]."""
    beads, system = pair(1.0)
    bond = system.add_force(forces.HarmonicBonds([beads.beads], 1.0, 2.0))
    return Scene(coarse(system, kicks.ZhangSkeel()), lambda: bond.set(length=1.0), {700, 701}, "pair")


@fault("conjugate_gradients.pxi", "_not_solved", "NOT_SOLVED", "Kick", UNSOLVED)
def conjugate_gradients_meet_a_direction_that_costs_nothing():
    """By soft spheres that were apart when they were added: outside of the band. Pulled across, the two have the
    curvature M - 2 (2 - r)/r < 0 there, with r = 0.9."""
    beads, system = pair(9.0)
    spheres = system.add_force(forces.SoftSphere(beads, beads, 1.0, 2.0))
    system.add_force(forces.UniformField(beads.beads[:1], [0.0, 1.0, 0.0]))
    context = coarse(system, kicks.ZhangSkeelSimplified())
    x = context.get_state(positions=True).positions.copy()
    x[701] = [0.9, 0.0, 0.0]
    context.set_positions(x)
    return Scene(context, lambda: spheres.set(stiffness=0.0), {700, 701}, "pair")


@fault("conjugate_gradients.pxi", "_invert_diagonal", "NOT_SOLVED", "Kick", UNSOLVED)
def a_bead_alone_has_no_minimum():
    """Across a bond of stiffness 8, a tenth as long as it wants to be, βh²H of each end is -72 across it; M is 2."""
    beads, system = pair(9.0)
    spheres = system.add_force(forces.SoftSphere(beads, beads, 8.0, 2.0))
    context = coarse(system, kicks.ZhangSkeelSimplified())
    x = context.get_state(positions=True).positions.copy()
    x[701] = [0.2, 0.0, 0.0]
    context.set_positions(x)
    return Scene(context, lambda: spheres.set(stiffness=0.0), {700, 701}, "pair")


@fault("implicit_kicks.pyx", "newton", "NOT_SOLVED", "Kick", UNSOLVED)
def newton_jumps_to_and_fro():
    """y³ - 2y + 2 = 0 for where a bead is to be: Newton's method goes from 0 to 1 and back."""
    beads, system = pair(9.0)
    # With m = 2, h = 2 and β = 1/4: y = x - V'(y)/2.
    field = system.add_force(forces.ExternalField(beads.beads[:1], "u*(x^4/2 - 3*x^2 + 4*x)", u=1.0))
    return Scene(coarse(system, kicks.PushForwardNewmark()), lambda: field.set(u=0.0), 700, "pair")


def balls_in_water(x, word, h, tolerance=1e-4, wall=None):
    """With a field that can be set, and that leaves them alone at first."""
    topology = mp.Topology()
    balls = topology.add_balls(x, 1.0, mass=1.0, friction=1.0, name="balls")
    system = mp.System(topology)
    field = system.add_force(forces.UniformField(balls, [0.0, 0.0, 0.0]))
    system.add_hydrodynamics(mp.hydrodynamics.RotnePrager(1.0 / (6.0 * np.pi), balls, wall=wall, tolerance=tolerance))
    return make(system, word, h), field


@fault("hydrodynamics.pyx", "_take_places", "IN_WALL", "Displacement", "overlaps the wall .* its centre is 0.[0-9]* nm")
def a_ball_falls_into_the_wall():
    context, field = balls_in_water([[9.0, 0, 90.0], [0, 0, 3.0]], "D", 1e-3, wall=mp.boundaries.Plane())
    context.step(5)
    field.set(force=[0.0, 0.0, -100.0])

    def mend():
        context.set_positions([[9.0, 0, 90.0], [0, 0, 3.0]])
        field.set(force=[0.0, 0.0, 0.0])

    return Scene(context, mend, 1, "balls")


@fault("hydrodynamics.pyx", "move", "NOT_FINITE", "Displacement", SMALLER)
def a_ball_is_pushed_out_of_all_numbers():
    context, field = balls_in_water([[0, 0, 0], [0, 0, 3.0]], "D", 1.0)
    context.step(5)
    field.set(force=[0.0, 0.0, 1.5e308])
    return Scene(context, lambda: field.set(force=[0.0, 0.0, 0.0]), {0, 1}, "balls", "UniformField")


@fault("hydrodynamics.pyx", "give_velocities", "NOT_FINITE", "Thermostat", SMALLER)
def velocities_whose_squares_are_no_numbers():
    context, field = balls_in_water([[0, 0, 0], [0, 0, 3.0]], "BAOAB", 1.0)
    context.step(5)
    field.set(force=[0.0, 0.0, 1e200])
    return Scene(context, lambda: field.set(force=[0.0, 0.0, 0.0]), {0, 1}, "balls", "UniformField")


@fault("hydrodynamics.pyx", "_unsettled", "NO_ROOT", "Displacement",
       r"Lanczos' method does not settle .*last change [0-9.]+e-1")  # fmt: skip
def more_digits_are_asked_for_than_there_are():
    x = np.random.default_rng(1).uniform(0.0, 9.0, (80, 3))
    context, _ = balls_in_water(x, "D", 1e-9, tolerance=1e-18)
    return Scene(context, lambda: context.set_positions(1e20 * x))
