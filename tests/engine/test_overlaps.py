"""Starts in which beads overlap: what says so, and what relaxes them."""

import warnings

import numpy as np
import pytest
from builders import system_with

import medyanpy as mp

KT = 4.14
FORCES = mp.forces
TABLE = np.linspace(2.0, 25.0, 400)

#: Pair forces between beads of a size of about 10 nm, and a distance at which a pair of them overlaps, None where none
#: does: the soft ones.
PAIRS = {
    "LennardJones": (lambda a: FORCES.LennardJones(a, a, KT, 10.0, cutoff=25.0, switch=20.0), 0.2),
    "LennardJones without end": (lambda a: FORCES.LennardJones(a, a, KT, 10.0), 3.0),
    "WCA": (lambda a: FORCES.WCA(a, a, KT, 10.0), 0.2),
    "Coulomb": (lambda a: FORCES.Coulomb(a, 20.0, 230.7 / 78.5), 0.01),
    "Yukawa": (lambda a: FORCES.Yukawa(a, a, 1000.0, 2.0, cutoff=20.0, switch=16.0), 0.01),
    "Morse": (lambda a: FORCES.Morse(a, a, KT, 1.5, 10.0, cutoff=20.0, switch=16.0), 0.2),
    "EllipsoidRepulsion": (lambda a: FORCES.EllipsoidRepulsion(a, a, KT, [5.0, 5.0, 5.0]), 0.2),
    "CustomPair": (lambda a: FORCES.CustomPair(a, a, "e*(s/r)^12", cutoff=20.0, switch=16.0, e=KT, s=10.0), 0.2),
    "CustomPair of beads": (lambda a: FORCES.CustomPair(a, a, "sqrt(e1*e2)*(s/r)^12", cutoff=20.0, switch=16.0, s=10.0,
                                                        e=np.full(len(a), KT)), 0.2),
    "TabulatedPair": (lambda a: FORCES.TabulatedPair(a, a, TABLE, KT * (10.0 / TABLE) ** 12, switch=20.0), 2.2),
    "below its table": (lambda a: FORCES.TabulatedPair(a, a, TABLE, KT * (10.0 / TABLE) ** 12, switch=20.0), 0.2),
    "SoftSphere": (lambda a: FORCES.SoftSphere(a, a, 10.0, 10.0), None),
    "Ricker": (lambda a: FORCES.Ricker(a, a, KT, 10.0), None),
    "EllipsoidRepulsion, soft": (lambda a: FORCES.EllipsoidRepulsion(a, a, KT, [5.0, 5.0, 5.0], form="soft"), None),
}  # fmt: skip


def simulation_of(beads_of, force_of, *, word="BAOAB", timestep=1e-9, kT=KT, box=None):
    """And what it warned of."""
    topology = mp.Topology()
    system = mp.System(topology, box=box)
    handles = beads_of(topology)
    system.add_force(force_of(handles))
    integrator = mp.SplittingIntegrator(word, timestep, kT=kT, seed=1) if kT else mp.SplittingIntegrator(word, timestep)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        simulation = mp.Simulation(system, integrator, threads=1)
    return simulation, [str(w.message) for w in caught if issubclass(w.category, mp.OverlapWarning)]


def two(distance):
    return lambda topology: topology.add_beads([[1.0, 2.0, 3.0], [1.0 + distance, 2.0, 3.0]], mass=1e-9, friction=1e-5)


@pytest.mark.parametrize("name", PAIRS)
def test_a_pair_that_overlaps_is_named_from_the_start_to_the_end(name):
    force, distance = PAIRS[name]
    simulation, said = simulation_of(two(0.2 if distance is None else distance), force, timestep=1e-7)
    if distance is None:
        assert said == []
        simulation.step(10)
        return
    right = rf"beads 0 and 1 of 'beads' are {distance:g} nm apart \(.*\), where {simulation.system.force_names[0]} has "
    assert len(said) == 1
    for text in (said[0], str(simulation.check())):
        with pytest.raises(AssertionError, match=right + ".*minimise first"):
            raise AssertionError(text)
    with pytest.raises(mp.SimulationError, match=right + ".*minimise first") as caught:
        simulation.step(100)
    assert caught.value.force == simulation.system.force_names[0]
    assert "timestep" not in str(caught.value)
    # And no more once they have been parted.
    simulation.minimize_energy()
    assert "OverlapWarning" not in str(simulation.check())
    simulation.integrator.set(timestep=1e-9)
    simulation.step(10)


@pytest.mark.parametrize("name", [name for name, (_, distance) in PAIRS.items() if distance is not None])
def test_beads_that_heat_brings_together_do_not_overlap(name):
    """Where a pair has 5 kT, at a timestep that it bears."""
    force, _ = PAIRS[name]
    context = simulation_of(two(20.0), force)[0].context
    for distance in np.linspace(20.0, 0.3, 400):
        context.set_positions([[1.0, 2.0, 3.0], [1.0 + distance, 2.0, 3.0]])
        if context.get_state(energy=True).potential_energy > 5.0 * KT:
            break
    assert simulation_of(two(distance), force)[1] == []


@pytest.mark.parametrize("distance", [5.0, 3.0, 1.0, 0.3, 0.1, 1e-9, 1e-40, 0.0])
@pytest.mark.parametrize("kT", [KT, None])
def test_the_tolerance_does_not_depend_on_the_start(distance, kT):
    """And the pair ends in its well, from wherever it started."""
    word = "BAOAB" if kT else "BAB"
    simulation, _ = simulation_of(two(distance), PAIRS["LennardJones without end"][0], word=word, timestep=1e-7, kT=kT)
    other, _ = simulation_of(two(11.0), PAIRS["LennardJones without end"][0], word=word, timestep=1e-7, kT=kT)
    report = simulation.minimize_energy()
    assert report.tolerance == other.minimize_energy().tolerance
    assert report <= report.tolerance < 0.1
    x = simulation.context.get_state(positions=True).positions
    assert np.linalg.norm(x[1] - x[0]) == pytest.approx(2.0 ** (1.0 / 6.0) * 10.0, abs=0.05)


def test_the_tolerance_is_what_help_promises():
    """0.01 kT over the shortest edge, however large the forces are at the start."""
    topology, report = proteins(60), None
    edges = topology.membranes[0].mesh.edge_lengths.min()
    system = system_with(topology, mp.forces.WCA(topology["proteins"], topology["proteins"], KT, 30.0))
    with pytest.warns(mp.OverlapWarning):
        simulation = mp.Simulation(system, mp.BAGOGABIntegrator(1e-9, kT=KT), threads=1)
    report = simulation.minimize_energy()
    assert report.converged
    assert report.tolerance == pytest.approx(0.01 * KT / edges, rel=1e-12)


def proteins(n, seed=1):
    topology = mp.Topology()
    cell = topology.add_membrane(mp.TriangleMesh.icosphere(250.0, 2), 4e-12, 4e-6, fixed=True)
    topology.add_intriangle_points(cell, n, mass=4e-12, friction=4e-6, seed=seed, name="proteins")
    return topology


def free(topology, x):
    return topology.add_beads(x, mass=1e-9, friction=1e-5)


def nodes(topology, x):
    return topology.add_filaments([[p, p + [3.0, 0, 0]] for p in x[::2]], node_mass=1e-9, node_friction=1e-5)


def bodies(topology, x):
    turn = np.random.default_rng(2).normal(size=(len(x), 4))
    turn /= np.linalg.norm(turn, axis=1)[:, None]
    return topology.add_rigid_bodies(x, turn, 1e-9, [1e-8, 1e-8, 1e-8], 1e-5)


def on_a_sphere(topology, x):
    surface = mp.surfaces.Sphere(60.0)
    return topology.add_surface_points(surface, surface.project(x - x.mean(axis=0)), mass=1e-9, friction=1e-5)


def on_a_membrane(topology, x):
    cell = topology.add_membrane(mp.TriangleMesh.icosphere(60.0, 2), 4e-9, 4e-6, fixed=True)
    return topology.add_intriangle_points(cell, len(x), mass=1e-9, friction=1e-5, seed=1)


KINDS = {"beads": free, "balls": lambda t, x: t.add_balls(x, radius=5.0, mass=1e-9, friction=1e-5), "filaments": nodes,
         "bodies": bodies, "surface points": on_a_sphere, "points": on_a_membrane}  # fmt: skip


@pytest.mark.parametrize("box", [None, (80.0, 80.0, 80.0)])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["WCA", "LennardJones"])
def test_random_starts_of_every_kind_end_relaxed(kind, name, box):
    """Two of them in one place; within 10 000 evaluations."""
    if box and kind in ("surface points", "points"):
        pytest.skip("a closed surface of that size does not fit the box")
    x = np.random.default_rng(3).uniform(0.0, 80.0, (40, 3))
    x[1] = x[0]
    simulation, said = simulation_of(lambda t: KINDS[kind](t, x), PAIRS[name][0], word="BAGOGAB", box=box)
    assert len(said) == 1
    report = simulation.minimize_energy()
    assert report.converged
    assert "OverlapWarning" not in str(simulation.check())
    simulation.context.set_velocities_to_temperature(kT=KT, seed=1)
    simulation.step(20)


def test_failed_relaxation_names_bead_force_value_and_bound():
    """Charges that attract each other without bound."""
    simulation, _ = simulation_of(two(0.05), lambda a: FORCES.Coulomb(a, [1.0, -1.0]))
    said = r"a force of \S+ pN is left on bead [01] of 'beads' \(strongest there: Coulomb\), above the tolerance of"
    with pytest.warns(mp.ConvergenceWarning, match=said):
        assert not simulation.minimize_energy(max_iterations=200).converged


def test_soft_and_separate_starts_say_nothing():
    x = np.random.default_rng(3).uniform(0.0, 80.0, (40, 3))
    for force in (lambda a: FORCES.SoftSphere(a, a, 10.0, 10.0), lambda a: FORCES.WCA(a, a, KT, 0.5)):
        assert simulation_of(lambda t: free(t, x), force)[1] == []


def test_excluded_pairs_and_other_groups_do_not_overlap():
    topology = mp.Topology()
    one, other = (topology.add_beads([[0.0, 0, 0], [0.1, 0, 0]], mass=1e-9) for _ in range(2))
    system = system_with(topology, FORCES.WCA(one, one, KT, 10.0, exclusions=[[0, 1]]))
    apart = topology.add_beads([[50.0, 0, 0]], mass=1e-9)
    system.add_force(FORCES.WCA(other, apart, KT, 10.0, name="other"))
    mp.Context(system, mp.VerletIntegrator(1e-9))


def test_a_pair_across_the_sides_of_a_box_overlaps():
    simulation, said = simulation_of(lambda t: free(t, np.array([[0.1, 5.0, 5.0], [49.9, 5.0, 5.0]])), PAIRS["WCA"][0],
                                     box=(50.0, 50.0, 50.0))  # fmt: skip
    assert "are 0.2 nm apart" in said[0]
    assert simulation.minimize_energy().converged
