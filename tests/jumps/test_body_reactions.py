"""Laws of species of rigid bodies, and of their reactions by their centres."""

import pickle

import numpy as np
import pytest
from builders import balanced, mean_of_complexes, octahedron, orients, refuses

import medyanpy as mp
from medyanpy.testing import check_mean

SIDE = 4.0
COUPLED = np.diag([3.0, 4.0, 5.0, 2.0, 3.0, 2.5])
COUPLED[0, 4] = COUPLED[4, 0] = 0.7
SPECIES = {
    "A": {"mass": 1.0, "inertia": [0.8, 1.0, 1.5], "friction": [3.0, 2.0]},
    "B": {"mass": 2.0, "inertia": [2.0, 2.0, 0.5], "friction": COUPLED},
    "C": {"mass": 3.0, "inertia": [4.0, 3.0, 2.0], "friction": [6.0, 9.0]},
    "D": {"mass": 2.5, "inertia": [1.0, 1.0, 1.0], "friction": [4.0, 4.0]},
}


def built(counts, capacity, forces=(), species="ABC", seed=1, threads=1, timestep=0.05, box=(SIDE,) * 3, spread=SIDE,
          friction=None, integrator=mp.BAGOGABIntegrator):  # fmt: skip
    """Bodies at random places of a box, randomly turned, and a system; its simulation is made when asked for."""
    topology = mp.Topology()
    rng = np.random.default_rng(seed)
    n = sum(counts.values())
    x = spread * (rng.uniform(size=(n, 3)) - 0.5)
    table = {name: SPECIES[name] | ({} if friction is None else {"friction": friction}) for name in species}
    bodies = topology.add_rigid_bodies(x, orients(rng, n), species=table, counts=counts, capacity=capacity)
    system = mp.System(topology, box=box)
    for force in forces:
        system.add_force(force(bodies))
    return bodies, system, lambda: mp.Simulation(system, integrator(timestep, kT=1.0, seed=seed), threads=threads)


def numbers_of(simulation):
    state = simulation.context.get_state(positions=True, velocities=True)
    turned = state.orientations, state.angular_momenta
    has_species = any(column.name == "species" for column in simulation.topology.columns)
    species = state.column("species") if has_species else np.empty(0)
    return [state.ids, state.positions, state.velocities, species, *turned]


def same(one, other):
    return all(np.array_equal(a, b, equal_nan=True) for a, b in zip(numbers_of(one), numbers_of(other), strict=True))


def excess(simulation, bodies, out):
    """Return a state, and add the kinetic energies of translation, and of rotation about each axis, beyond those at
    kT = 1, to lists by species."""
    state = simulation.context.get_state(positions=True, velocities=True)
    rows = state.living(bodies)
    of = state.column("species")[rows]
    mass = np.array([one.mass for one in bodies.species])[of]
    inertia = np.array([one.inertia for one in bodies.species])[of]
    moving = 0.5 * mass * (state.velocities[rows] ** 2).sum(axis=1) - 1.5
    # Beads before these have no rows there.
    spin = state.angular_momenta[np.searchsorted(bodies.kind.all_rows, rows)]
    turning = 0.5 * spin**2 / inertia - 0.5
    for k, own in enumerate(out):
        own.append([moving[of == k].sum(), *turning[of == k].sum(axis=0)])
    return state


def beside_plane(semi_axes, epsilon, sigma, stiffness, place=0.0):
    """∫∫ e^{-U} dz dq over heights and rotations, of 1 together, of an ellipsoid that a soft wall at a place keeps
    above, and a trap kz²/2 near 0: by quadrature, with the direction of the wall in the body uniform on the sphere."""
    n = 24
    cos, weight = np.polynomial.legendre.leggauss(n)
    angle = 2.0 * np.pi * np.arange(2 * n) / (2 * n)
    sin = np.sqrt(1.0 - cos**2)
    u = np.stack([np.outer(sin, np.cos(angle)), np.outer(sin, np.sin(angle)), np.outer(cos, np.ones(2 * n))], axis=-1)
    reach = np.sqrt(((u * semi_axes) ** 2).sum(axis=-1))
    z = np.linspace(-6.0, 6.0, 601)
    gap = z[:, None, None] - place - reach
    energy = 0.5 * stiffness * z[:, None, None] ** 2 + epsilon * np.minimum(gap / sigma, 0.0) ** 2
    over = (np.exp(-energy) * weight[:, None]).sum(axis=(1, 2)) / (2.0 * 2 * n)
    return over.sum() * (z[1] - z[0])


# Balance ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("momenta", ["maxwell", "center_of_mass"])
def test_association_has_its_constant_and_bodies_move_and_turn_at_the_temperature(momenta):
    """A + B <-> C of ideal bodies: weights K_D^-c / (a! b! c!) times volumes, as of beads. All four kinetic energies of
    each species are those of the temperature, with hardly any friction of rotation, so that nothing else gives them."""
    n = 12
    bodies, system, make = built({"A": n, "B": n}, 2 * n, friction=[3.0, 1e-30])
    system.add_jump(mp.jumps.Reactions(
        bodies, "A + B <-> C", reach=1.2, dissociation_constant=n / SIDE**3, off_rate=8.0, placement=0.3,
        momenta=momenta,
    ))  # fmt: skip
    simulation = make()
    simulation.context.set_velocities_to_temperature(kT=1.0, seed=3)
    simulation.report_work = True
    start = simulation.context.get_state(energy=True)
    counts, energies = [], [[], [], []]
    simulation.step(400)
    for _ in range(4000):
        simulation.step(8)
        counts.append(list(bodies.counts(excess(simulation, bodies, energies)).values()))
    counts = np.array(counts, float)
    assert (counts[:, :2] + counts[:, 2:] == n).all()
    mean, _ = mean_of_complexes(n, 1.0 / n)
    check_mean("C", counts[:, 2], mean, time_series=True, sees=0.3)
    for name, own, there in zip("ABC", energies, counts.T, strict=True):
        for what, energy in zip(("of translation", "about 1", "about 2", "about 3"), np.array(own).T, strict=True):
            least = 0.1 if what == "of translation" else 0.07
            check_mean(f"energy of {name} {what}", energy / there.mean(), 0.0, time_series=True, sees=least)
    state = simulation.context.get_state(positions=True, energy=True)
    balanced(state, start)
    # What events change of rotation is heat, and not taken for an error of the letters.
    assert abs(state.shadow_work) < 1.0
    assert state.chemical_work == 0.0


def test_a_wall_that_ellipsoids_touch_shifts_the_constant_by_integrals_over_rotations():
    """P(C)/P(AB) of one pair in a trap before a wall: W_C/(K_D W_A W_B), where W are integrals of e^{-U} over heights
    and rotations. Products that are not turned uniformly, or accepted without the wall, have another one."""
    stiffness, n = 1.0, 8
    axes = {"A": [0.3, 0.3, 2.4], "B": [0.4, 1.2, 0.8], "C": [2.0, 0.3, 0.3]}
    law = {"epsilon": 6.0, "sigma": 1.0}
    weights = {name: SIDE**2 * beside_plane(axes[name], **law, stiffness=stiffness, place=-0.5) for name in "ABC"}
    walls = [
        lambda b, name=name: mp.forces.WallRepulsion(
            mp.boundaries.Plane((0.0, 0.0, -0.5), (0.0, 0.0, 1.0)), b.of(name), **law, form="soft",
            semi_axes=axes[name], name=f"wall of {name}")
        for name in "ABC"
    ]  # fmt: skip
    trap = "0.5*k*z^2"
    bodies, system, make = built(
        {"A": n, "B": n}, 2 * n, [lambda b: mp.forces.ExternalField(b, trap, k=stiffness), *walls],
        box=(SIDE, SIDE, None), spread=2.0,
    )  # fmt: skip
    k_d = n * weights["C"] / (weights["A"] * weights["B"])
    system.add_jump(mp.jumps.Reactions(
        bodies, "A + B <-> C", reach=1.5, dissociation_constant=k_d, off_rate=6.0
    ))  # fmt: skip
    simulation = make()
    simulation.step(400)
    counts = []
    for _ in range(6000):
        simulation.step(6)
        counts.append(bodies.counts(simulation.context.get_state(positions=True))["C"])
    mean, _ = mean_of_complexes(n, 1.0 / n)
    check_mean("C before the wall", np.array(counts, float), mean, time_series=True, sees=0.25)


def test_created_bodies_are_turned_uniformly_and_are_thermal():
    """Without friction nothing but their creation gives bodies their velocities and angular momenta; products of a
    rotation matrix with itself have the means of the invariant measure, δ_ik δ_jl/3."""
    bodies, system, make = built({}, 90, species="C", friction=0.0)
    system.add_jump(mp.jumps.Reactions(bodies, f"0 <-> C; k_on = {27.0 / SIDE**3}, k_off = 3.0"))
    simulation = make()
    counts, energies, turned = [], [[]], []
    for _ in range(2500):
        simulation.step(5)
        state = excess(simulation, bodies, energies)
        rows = state.living(bodies)
        counts.append(len(rows))
        w, x, y, z = state.orientations[rows].T
        # Of the first column: what the first axis of the body is in space; and fourth powers, of a uniform direction.
        one = np.array([w * w + x * x - y * y - z * z, 2.0 * (x * y + w * z), 2.0 * (x * z - w * y)])
        third = np.array([2.0 * (x * z + w * y), 2.0 * (y * z - w * x), w * w - x * x - y * y + z * z])
        turned.append(np.concatenate([
            one.sum(axis=1), third.sum(axis=1), (one**2 - 1.0 / 3.0).sum(axis=1), (third**2 - 1.0 / 3.0).sum(axis=1),
            (one**4 - 0.2).sum(axis=1), (one * third).sum(axis=1),
        ]))  # fmt: skip
    check_mean("C", np.array(counts, float), 9.0, time_series=True, sees=0.9)
    for energy in np.array(energies[0]).T:
        check_mean("energy beyond its mean, of nine bodies", energy, 0.0, time_series=True, sees=1.2)
    for mean in np.array(turned).T:
        check_mean("moment of rotations of nine bodies", mean, 0.0, time_series=True, sees=0.8)


def test_a_body_that_is_there_has_six_degrees_of_freedom():
    _, _, make = built({"A": 5}, 9)
    simulation = make()
    simulation.context.set_velocities_to_temperature(kT=1.0, seed=3)
    state = simulation.context.get_state(energy=True)
    wanted = 2.0 * state.kinetic_energy / (6.0 * 5.0 * mp.units.boltzmann)
    assert state.temperatures["rigid bodies"] == pytest.approx(wanted)


def test_a_body_that_becomes_another_stays_as_it_is_turned_and_keeps_its_kinetic_energies():
    """All four of them, about each axis too: A -> B scales velocities by √(m_A/m_B), and momenta by √(I_B/I_A)."""
    bodies, system, make = built({"A": 20}, 20, species="AB", friction=[1e-9, 1e-9], timestep=1e-12)
    jump = system.add_jump(mp.jumps.Reactions(bodies, "A -> B", on_rate=0.0))
    simulation = make()
    simulation.context.set_velocities_to_temperature(kT=1.0, seed=3)
    simulation.step(1)
    before = numbers_of(simulation)
    jump.set(on_rate=1e15)
    simulation.step(1)
    after = numbers_of(simulation)
    assert (after[3] == 1).all()
    mass, inertia = (np.array([one[k] for one in bodies.species]) for k in (1, 3))
    assert np.allclose(after[2], before[2] * np.sqrt(mass[0] / mass[1]), rtol=1e-9)
    assert np.allclose(after[5], before[5] * np.sqrt(inertia[1] / inertia[0]), rtol=1e-9)
    assert np.allclose(after[4], before[4], atol=1e-9)


@pytest.mark.parametrize("friction", [None, [2.0, 1e-30]])
def test_switches_are_binomial_and_each_species_has_its_friction_and_inertia(friction):
    """With tensors of A and B, or friction of translation alone: numbers, and all kinetic energies of both."""
    bodies, system, make = built({"A": 40}, 40, species="AB", friction=friction)
    system.add_jump(mp.jumps.Reactions(bodies, "A <-> B", on_rate=2.0, off_rate=1.0))
    simulation = make()
    simulation.context.set_velocities_to_temperature(kT=1.0, seed=3)
    numbers, energies = [], [[], []]
    for _ in range(2000):
        simulation.step(10)
        numbers.append(bodies.counts(excess(simulation, bodies, energies))["B"])
    check_mean("B", np.array(numbers, float), 80.0 / 3.0, time_series=True, sees=1.0)
    if friction is None:
        for own in energies:
            for energy in np.array(own).T:
                check_mean("energy beyond its mean, of all of a species", energy, 0.0, time_series=True, sees=1.6)


def test_bodies_diffuse_and_turn_as_their_species_of_now():
    """Without momenta, and all turned to D at once: 6Dt and, of a direction, 1 - 2 D_r t with the friction of D."""
    topology = mp.Topology()
    n, friction = 2000, [5.0, 40.0]
    species = {"A": SPECIES["A"], "D": SPECIES["D"] | {"friction": friction}}
    bodies = topology.add_rigid_bodies(
        np.zeros((n, 3)), np.tile([1.0, 0.0, 0.0, 0.0], (n, 1)), species=species, counts={"A": n}
    )
    system = mp.System(topology)
    jump = system.add_jump(mp.jumps.Reactions(bodies, "A -> D", on_rate=1e9))
    simulation = mp.Simulation(system, mp.BrownianIntegrator(0.05, kT=1.0, seed=3))
    simulation.step(1)
    jump.set(on_rate=0.0)
    before = simulation.context.get_state(positions=True)
    assert bodies.counts(before) == {"A": 0, "D": n}
    simulation.step(40)
    after = simulation.context.get_state(positions=True)
    moved = ((after.positions - before.positions) ** 2).sum(axis=1)
    check_mean("squares of steps", moved, 6.0 * 2.0 / friction[0], sees=0.4)
    # Of the rotation between the two, from its scalar: the third axis decays as e^{-2 D t}.
    a, b = before.orientations, after.orientations
    w, x, y, z = (np.array([1, -1, -1, -1]) * a).T
    c = np.stack([w * b.T[0] - x * b.T[1] - y * b.T[2] - z * b.T[3], w * b.T[1] + x * b.T[0] + y * b.T[3] - z * b.T[2],
                  w * b.T[2] - x * b.T[3] + y * b.T[0] + z * b.T[1]])  # fmt: skip
    cosine = 1.0 - 2.0 * (c[1] ** 2 + c[2] ** 2)
    check_mean("1 - cos of its angle", 1.0 - cosine, 1.0 - np.exp(-2.0 * 2.0 / friction[1]), sees=0.02)


@pytest.mark.parametrize("momenta", ["maxwell", "conserved"])
def test_bodies_land_on_a_membrane_and_leave_it_turned_and_thermal(momenta):
    """Each with the odds K A/V, as beads do; energies of those that are in space are those of the temperature, with
    hardly any friction of rotation, so that nothing but leaving gives them angular momenta."""
    mesh, n, width, off = octahedron(), 16, 3.4, 4.0
    topology, rng = mp.Topology(), np.random.default_rng(3)
    membrane = topology.add_membrane(mesh, vertex_mass=50.0, vertex_friction=1e4)
    species = {"A": {"mass": 0.05, "inertia": [0.05, 0.03, 0.04], "friction": [0.3, 1e-30]}}
    x = mesh.vertices.mean(axis=0) + width * rng.uniform(-0.5, 0.5, (n, 3))
    bodies = topology.add_rigid_bodies(x, orients(rng, n), species=species, of_species="A", capacity=30)
    points = topology.add_intriangle_points(
        membrane, species={"P": {"mass": 0.04, "friction": 0.3}}, counts={}, capacity=30
    )
    system = mp.System(topology, box=(width,) * 3)
    system.add_force(mp.forces.HarmonicTrap(membrane, 1e4, mesh.vertices))
    system.add_jump(mp.jumps.Adsorption(
        bodies.of("A"), points.of("P"), on_rate=off * width**3 / mesh.area, off_rate=off, layer=0.6, side="both",
        most_feet=16, momenta=momenta,
    ))  # fmt: skip
    simulation = mp.Simulation(system, mp.BAGOGABIntegrator(0.02, kT=1.0, seed=1), threads=1)
    simulation.context.set_velocities_to_temperature(kT=1.0, seed=3)
    simulation.step(600)
    counts, energies = [], [[]]
    for _ in range(2000):
        simulation.step(40)
        state = excess(simulation, bodies, energies)
        counts.append(n - len(state.living(bodies)))
    check_mean("landed", np.array(counts, float), 0.5 * n, time_series=True, sees=1.2)
    for energy in np.array(energies[0]).T:
        check_mean("energy beyond its mean, of all in space", energy, 0.0, time_series=True, sees=1.0)


# Forces -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("text", "start"), [("A + B -> C", {"A": 5, "B": 5}), ("C -> A + B", {"C": 8})])
def test_refused_attempts_leave_all_as_it_was(text, start):
    """What each of them would make overlaps with D, however it is turned; nothing else moves."""
    bodies, system, make = built(
        {**start, "D": 1}, 20, [lambda b: mp.forces.EllipsoidRepulsion(
            b.of(text[-1]), b.of("D"), 1e9, [0.6, 0.8, 2.0], [1.5, 2.0, 1.5], form="soft")],
        species="ABCD", spread=0.5, box=None, friction=[1e300, 1e300], integrator=mp.BrownianIntegrator,
    )  # fmt: skip
    system.add_jump(mp.jumps.Reactions(bodies, text, reach=0.5, on_rate=20.0, most_partners=10))
    simulation = make()
    simulation.step(1)
    before = numbers_of(simulation)
    simulation.step(50)
    counts = simulation.context.get_state().counts["Reactions"]
    assert counts.tried > 100
    assert counts.accepted == 0
    for then, now in zip(before, numbers_of(simulation), strict=True):
        assert np.array_equal(then, now, equal_nan=True)


def reacting(threads=1, seed=1):
    axes = {"semi_axes": [0.3, 0.5, 0.9], "semi_axes_b": [0.4, 0.4, 0.8], "form": "soft"}
    bodies, system, make = built(
        {"A": 40, "B": 40}, 110, [
            lambda b: mp.forces.EllipsoidRepulsion(b.of("A"), b.of("C"), 3.0, **axes),
            lambda b: mp.forces.SoftSphere(b.of("A"), b.of("B"), 2.0, diameter=0.5),
        ], threads=threads, seed=seed,
    )  # fmt: skip
    system.add_jump(mp.jumps.Reactions(bodies, "A + B <-> C", reach=0.8, on_rate=0.4, off_rate=0.5, name="bind"))
    system.add_jump(mp.jumps.Reactions(bodies, "A <-> B", on_rate=0.5, off_rate=0.5, name="switch"))
    return bodies, make()


def test_ellipsoids_have_the_semi_axes_of_their_species():
    """Energies and torques of the force between A and C are those of two handles of plain bodies, whatever has
    happened."""
    bodies, simulation = reacting()
    axes = {"semi_axes": [0.3, 0.5, 0.9], "semi_axes_b": [0.4, 0.4, 0.8], "form": "soft"}
    touched = 0
    for _ in range(6):
        simulation.step(10)
        state = simulation.context.get_state(positions=True, energy=True)
        rows = [bodies.of(name).rows(state) for name in "AC"]
        topology = mp.Topology()
        plain = [
            topology.add_rigid_bodies(state.positions[own], state.orientations[own], 1.0, [1.0, 1.0, 1.0])
            for own in rows
        ]
        system = mp.System(topology, box=(SIDE,) * 3)
        system.add_force(mp.forces.EllipsoidRepulsion(*plain, 3.0, **axes))
        wanted = mp.Context(system, mp.VerletIntegrator(0.05)).get_state(energy=True).potential_energy
        assert state.energies["EllipsoidRepulsion"] == pytest.approx(wanted, rel=1e-10)
        touched += wanted > 0.1
    assert touched > 3


def test_a_species_has_one_shape():
    """In both groups, with other semi-axes in each."""
    bodies, system, make = built({"A": 2}, 4)
    system.add_force(mp.forces.EllipsoidRepulsion(bodies.of("A"), bodies, 1.0, [1.0, 1.0, 2.0], [1.0, 1.0, 1.0]))
    refuses(mp.ParameterError, "species 'A' of 'rigid bodies' is in both groups, with the semi-axes", make)


def test_the_work_of_events_is_the_change_of_all_energies():
    """Of ellipsoids and balls, translation and rotation."""
    _, simulation = reacting()
    simulation.report_work = True
    start = simulation.context.get_state(energy=True)
    simulation.step(150)
    state = simulation.context.get_state(positions=True, energy=True)
    assert state.counts["bind"].accepted > 30
    balanced(state, start)


# Bits, files and errors ---------------------------------------------------------------------------------------------


def test_same_bits_on_two_threads_after_a_restart_and_after_an_edit(tmp_path):
    _, one = reacting()
    bodies, other = reacting(threads=2)
    one.step(60)
    for n in (20, 1, 39):
        other.step(n)
    assert same(one, other)
    one.save_checkpoint(tmp_path / "run")
    third = mp.Simulation.resume(tmp_path / "run", threads=2)
    _, fourth = reacting()
    fourth.load_checkpoint(tmp_path / "run")
    _, fifth = reacting()
    fifth.context.set_state(one.context.get_state(positions=True, velocities=True))
    with other.topology.edit():
        bodies.reserve(130)
    states = [run.context.get_state(positions=True) for run in (one, other)]
    assert bodies.counts(states[0]) == bodies.counts(states[1])
    wanted = [SPECIES["ABC"[k]] for k in bodies._of_species]
    assert bodies.mass.tolist() == [one["mass"] for one in wanted]
    assert bodies.inertia.tolist() == [one["inertia"] for one in wanted]
    for simulation in (one, third, fourth, fifth):
        simulation.step(25)
    assert same(one, third)
    assert same(one, fourth)
    assert same(one, fifth)
    assert all(count.accepted > 15 for count in one.context.get_state().counts.values())


@pytest.mark.parametrize("integrator", [mp.BAGOGABIntegrator, mp.BrownianIntegrator])
def test_bodies_of_one_species_move_as_bodies_without(integrator):
    """To the bit, with room behind them: friction acts once, and on those that are there."""
    rng = np.random.default_rng(2)
    x, q, runs = SIDE * rng.uniform(size=(7, 3)), orients(rng, 7), []
    for given in (SPECIES["B"], {"species": {"B": SPECIES["B"]}, "of_species": "B", "capacity": 12}):
        topology = mp.Topology()
        bodies = topology.add_rigid_bodies(x, q, **given)
        system = mp.System(topology)
        system.add_force(mp.forces.HarmonicTrap(bodies, 1.0, (0.0, 0.0, 0.0)))
        simulation = mp.Simulation(system, integrator(0.02, kT=1.0, seed=4), threads=1)
        simulation.step(40)
        runs.append([array[:7] for array in numbers_of(simulation)[1:3] + numbers_of(simulation)[4:]])
    assert all(np.array_equal(a, b) for a, b in zip(*runs, strict=True))


@pytest.mark.parametrize("integrator", [mp.BAGOGABIntegrator, mp.BrownianIntegrator])
def test_other_bodies_and_rods_do_not_notice(integrator):
    """Their rows among all oriented beads are before and behind those that come and go: the same bits as alone."""
    runs = []
    for beside in (True, False):
        topology, rng = mp.Topology(), np.random.default_rng(2)
        q = orients(rng, 60)
        first = topology.add_rigid_bodies(SIDE * rng.uniform(size=(5, 3)), q[:5], 2.0, [1.0, 1.5, 2.0], COUPLED)
        if beside:
            bodies = topology.add_rigid_bodies(
                SIDE * rng.uniform(size=(50, 3)), q[5:55], species={name: SPECIES[name] for name in "ABC"},
                counts={"A": 25, "B": 25}, capacity=80,
            )  # fmt: skip
        system = mp.System(topology, box=(SIDE,) * 3)
        system.add_force(mp.forces.ExternalField(first, "cos(pi*x/2)"))
        if beside:
            system.add_jump(mp.jumps.Reactions(bodies, "A + B <-> C", reach=1.0, on_rate=2.0, off_rate=2.0))
        simulation = mp.Simulation(system, integrator(0.02, kT=1.0, seed=4), threads=1)
        simulation.step(80)
        state = simulation.context.get_state(positions=True, velocities=True)
        turned = [array[first.rows] for array in (state.orientations, state.angular_momenta)]
        runs.append([state.positions[first.beads], state.velocities[first.beads], *turned])
    assert all(np.array_equal(a, b) for a, b in zip(*runs, strict=True))


def test_edits_add_and_remove_bodies_of_species():
    bodies, simulation = reacting()
    simulation.step(30)
    before = bodies.counts(simulation.context.get_state(positions=True))
    with simulation.topology.edit():
        rows = bodies.add([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0]], orients(np.random.default_rng(1), 2), species=["A", "C"])
    after = bodies.counts(simulation.context.get_state(positions=True))
    assert after == {"A": before["A"] + 1, "B": before["B"], "C": before["C"] + 1}
    with simulation.topology.edit():
        bodies.remove(rows)
    assert bodies.counts(simulation.context.get_state(positions=True)) == before
    simulation.step(10)


def test_trajectories_documents_pickles_and_pictures_hold_species(tmp_path):
    bodies, simulation = reacting()
    simulation.reporters.append(mp.reporters.TrajectoryReporter(tmp_path / "run.h5", 5, velocities=True))
    simulation.step(30)
    simulation.reporters[0].flush()
    state = simulation.context.get_state(positions=True)
    of = state.column("species")[state.living(bodies)]
    with mp.Trajectory(tmp_path / "run.h5") as trajectory:
        frame = trajectory[-1]
        assert np.array_equal(frame.column("species"), state.column("species"))
        assert np.array_equal(frame.orientations, state.orientations, equal_nan=True)
        beside = frame.beside(frame.handles["rigid bodies"])
        wanted = np.array([one.inertia for one in bodies.species])[of]
        assert beside["inertia"][np.isin(frame.handles["rigid bodies"].beads, state.living(bodies))].tolist() == (
            wanted.tolist())  # fmt: skip
        from medyanpy.visualize.scene import _found

        for what in (simulation, frame):
            (part,) = _found(what).parts
            m, (i, j, k) = np.array([one.mass for one in bodies.species])[of], wanted.T
            assert np.allclose(part.semi_axes[:, 0] ** 2, 2.5 * (j + k - i) / m)
            assert np.allclose(part.semi_axes[:, 2] ** 2, 2.5 * (i + j - k) / m)
    for system in (mp.deserialize(mp.serialize(simulation.system)), pickle.loads(pickle.dumps(simulation.system))):
        again = system.topology.handles[0]
        assert type(again) is type(bodies)
        assert again.species == bodies.species
        assert np.array_equal(again._of_species, bodies._of_species)
        assert np.array_equal(again.inertia, bodies.inertia)
        assert np.array_equal(again.kind.friction_tensors, bodies.kind.friction_tensors)
    assert repr(bodies.of("A")) == "rigid bodies.of('A')"


@pytest.mark.parametrize(("options", "match"), [
    ({"mass": 1.0}, "give mass= and inertia="),
    ({"mass": 1.0, "species": SPECIES, "counts": {"A": 2}}, "mass= is a number of the species"),
    ({"friction": 0.0, "species": SPECIES, "counts": {"A": 2}}, "friction= is a number of the species"),
    ({"fixed": True, "species": SPECIES, "counts": {"A": 2}}, "bodies of species cannot be fixed"),
    ({"species": SPECIES, "counts": {"A": 3}}, "species"),
    ({"species": SPECIES, "counts": {"X": 2}}, "there is no species"),
    ({"counts": {"A": 2}}, "give species="),
    ({"species": SPECIES}, "give the species of each: A, B, C, D"),
    ({"species": {"A": {"mass": 1.0}}, "counts": {"A": 2}}, 'must be a dict with "mass", "inertia"'),
    ({"species": {"A": {"mass": 1.0, "inertia": [1.0, 1.0, 3.0]}}, "counts": {"A": 2}}, r"'A'\]: inertia\[2\] = 3 but"),
    ({"species": {"A": SPECIES["A"] | {"friction": -np.eye(6)}}, "counts": {"A": 2}}, r"'A'\]: friction"),
    ({"species": {"A": SPECIES["A"] | {"radius": 1.0}}, "counts": {"A": 2}}, "radius is a number of forces"),
    ({"species": {"A": SPECIES["A"] | {"size": 1.0}}, "counts": {"A": 2}}, "there is no number of a species"),
])  # fmt: skip
def test_species_without_a_meaning_are_refused(options, match):
    turned = np.tile([1.0, 0.0, 0.0, 0.0], (2, 1))
    refuses(mp.ParameterError, match, mp.Topology().add_rigid_bodies, np.zeros((2, 3)), turned, **options)


def test_reactions_without_a_meaning_are_refused():
    topology = mp.Topology()
    plain = topology.add_rigid_bodies([[0.0, 0, 0]], [[1.0, 0, 0, 0]], mass=1.0, inertia=[1.0, 1.0, 1.0], capacity=4)
    refuses(mp.TopologyError, "rigid bodies with species, not", mp.jumps.Reactions, plain, "A -> B", on_rate=1.0)
    refuses(mp.ParameterError, "was added without any", plain.add, [[1.0, 0, 0]], [[1.0, 0, 0, 0]], species="A")
    bodies, _, _ = built({"A": 2}, 4)
    refuses(mp.ParameterError, "mass= is a number of the species", bodies.add, [[1.0, 0, 0]], [[1.0, 0, 0, 0]], 1.0)
    bodies, system, make = built({"A": 2}, 4, box=None)
    system.add_force(mp.forces.UniformField(bodies.sites([[0.0, 0.0, 1.0]]), [0.0, 0.0, 1.0]))
    system.add_jump(mp.jumps.Reactions(bodies, "A + B <-> C", on_rate=1.0, off_rate=1.0, reach=1.0))
    refuses(mp.ParameterError, "names one by its row", make)


def test_bodies_that_constraints_hold_and_that_feel_the_fluid_do_not_change():
    bodies, system, make = built({"A": 2}, 4, box=None)
    bodies.topology.constrain("(x1-x2)^2 + (y1-y2)^2 + (z1-z2)^2 - d^2", [bodies.beads[:2]],
                              d=float(np.linalg.norm(np.subtract(*bodies.positions))))  # fmt: skip
    system.add_jump(mp.jumps.Reactions(bodies, "A <-> B", on_rate=1.0, off_rate=1.0))
    refuses(mp.TopologyError, "jumps cannot create, remove or change RigidBodiesOfSpecies", make)
    bodies, system, make = built({"A": 2}, 4, box=None)
    system.add_hydrodynamics(mp.hydrodynamics.RotnePrager(1.0, bodies))
    system.add_jump(mp.jumps.Reactions(bodies, "A <-> B", on_rate=1.0, off_rate=1.0))
    refuses(mp.ParameterError, "creates, removes or changes beads of 'rigid bodies'", make)
    bodies, system, make = built({"A": 2}, 4, box=None, friction=[1.0, 0.0], integrator=mp.BrownianIntegrator)
    refuses(mp.ParameterError, "species 'A' of 'rigid bodies': friction", make)


def test_a_fault_without_room_names_the_species_and_more_room_helps():
    bodies, system, make = built({"C": 4}, 4)
    system.add_jump(mp.jumps.Reactions(bodies, "C -> A + B", reach=1.0, on_rate=5.0))
    simulation = make()
    refuses(mp.SimulationError, r"a bead of species 'B' cannot be created: all 4 rows.*reserve", simulation.step, 100)
    with simulation.topology.edit():
        bodies.reserve(8)
    simulation.step(100)
    assert bodies.counts(simulation.context.get_state(positions=True)) == {"A": 4, "B": 4, "C": 0}


def test_rates_from_a_macroscopic_constant_use_the_mean_mobility_of_bodies():
    """D over kT of a tensor is a third of the trace of the block of translation of its inverse."""
    bodies, _, _ = built({"A": 2}, 4)
    a, b, _ = bodies.species
    assert a.mobility == pytest.approx(1.0 / 3.0)
    assert b.mobility == pytest.approx(np.trace(np.linalg.inv(COUPLED)[:3, :3]) / 3.0)
    assert b.friction == pytest.approx(4.0)
