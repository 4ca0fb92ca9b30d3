"""Laws of the exchange of beads with a membrane: landing and leaving, absorption, a clamped concentration.

Units: kT = 1. False alarms: 1e-6 for each check; `sees` is an effect found with probability 0.999.
"""

import numpy as np
import pytest
from builders import balanced, moments, octahedron, refuses, uneven_sheet
from scipy.special import gammaln

import medyanpy as mp
from medyanpy.testing import check_mean

MASS = {"A": 0.02, "P": 0.04}
CORNER = 0.05


def built(
    mesh, n, capacity=60, forces=(), friction=0.3, box=None, seed=1, fixed=True, spread=1.0, vertex_mass=20.0,
    vertex_friction=2.0,
):  # fmt: skip
    topology = mp.Topology()
    resistance = 0.0 if fixed else vertex_friction
    membrane = topology.add_membrane(mesh, vertex_mass=vertex_mass, vertex_friction=resistance, fixed=fixed)
    x = mesh.vertices.mean(axis=0) + spread * np.random.default_rng(seed).uniform(-0.5, 0.5, (n, 3))
    beads = topology.add_beads(
        x, species={"A": {"mass": MASS["A"], "friction": friction}}, of_species="A", capacity=capacity
    )
    points = topology.add_intriangle_points(
        membrane, species={"P": {"mass": MASS["P"], "friction": friction}}, counts={}, capacity=capacity
    )
    system = mp.System(topology, box=box)
    for force in forces:
        system.add_force(force(beads, points))
    return membrane, beads, points, system


def simulation_of(system, timestep=0.05, seed=1, threads=1):
    return mp.Simulation(system, mp.BAGOGABIntegrator(timestep, kT=1.0, seed=seed), threads=threads)


def landed(simulation, points, samples=4000, every=8):
    simulation.step(400)
    out = []
    for _ in range(samples):
        simulation.step(every)
        out.append(len(simulation.context.get_state(positions=True).living(points)))
    return np.array(out, float)


def of_each(n, ratio):
    """Mean and variance of the number of n that have landed, each by itself, of one with these odds."""
    k = np.arange(n + 1)
    return moments(k * np.log(ratio) - gammaln(k + 1) - gammaln(n - k + 1))


@pytest.mark.parametrize("side", ["outside", "inside", "both"])
def test_beads_land_in_balance_where_prisms_overlap_and_leave_gaps(side):
    """Each bead is in the membrane with the odds K A/V, K = k_on/k_off, whatever the layer: here it is 0.6 deep over
    an octahedron of radius 1, where a bead has up to eight feet inside, and gaps outside."""
    mesh, n, width = octahedron(), 24, 3.4
    _, beads, points, system = built(mesh, n, box=[width] * 3, spread=width)
    off = 4.0
    on = off * width**3 / mesh.area
    system.add_jump(mp.jumps.Adsorption(
        beads.of("A"), points.of("P"), on_rate=on, off_rate=off, layer=0.6, side=side, most_feet=16
    ))  # fmt: skip
    simulation = simulation_of(system)
    simulation.report_work = True
    counts = landed(simulation, points)
    mean, variance = of_each(n, 1.0)
    check_mean(f"landed, {side}", counts, mean, time_series=True, sees=1.0)
    check_mean("their spread", (counts - mean) ** 2, variance, time_series=True, sees=3.5)
    state = simulation.context.get_state(positions=True, energy=True)
    balanced(state)
    assert state.chemical_work == state.entropy_production == 0.0
    events = dict(zip(system["Adsorption"].kinds, state.jumps["Adsorption"]["events"], strict=True))
    assert sum(events.values()) == state.counts["Adsorption"].accepted > 1000
    for one in ("outside", "inside"):
        assert (events[f"adsorb {one}: A -> P"] > 100) == (side in (one, "both"))
        assert (events[f"desorb {one}: P -> A"] > 100) == (side in (one, "both"))


@pytest.mark.parametrize("near", [False, True])
def test_energies_of_beads_and_points_are_weighed(near):
    """Beads in a well around a sheet, of the volume (2π kT/k)^1.5, and points in a weaker one, by its integral."""
    mesh, n = uneven_sheet(), 12
    stiff, weak = 2.0, 0.4
    traps = [lambda b, p: mp.forces.HarmonicTrap(b, stiff, (2.0, 2.0, 0.0)),
             lambda b, p: mp.forces.HarmonicTrap(p, weak, (2.0, 2.0, 0.0))]  # fmt: skip
    if near:
        # An energy that no force tells of one bead: the same well again, as a sum over all.
        traps[0] = lambda b, p: mp.forces.PythonForce(Well(stiff), beads=b)
    _, beads, points, system = built(mesh, n, forces=traps)
    side = np.linspace(0.0, 4.0, 4001)
    area = np.trapezoid(np.exp(-0.5 * weak * (side - 2.0) ** 2), side) ** 2
    ratio = 0.8
    off = 4.0
    on = off * ratio * (2.0 * np.pi / stiff) ** 1.5 / area
    system.add_jump(mp.jumps.Adsorption(
        beads.of("A"), points.of("P"), on_rate=on, off_rate=off, layer=0.5, side="both"
    ))  # fmt: skip
    counts = landed(simulation_of(system), points)
    mean, _ = of_each(n, ratio)
    check_mean("landed in wells", counts, mean, time_series=True, sees=0.4)


@pytest.mark.filterwarnings("ignore:.*has no friction")
def test_created_beads_and_points_are_thermal():
    """Without friction nothing but their creation gives them their velocities."""
    mesh, n, width = octahedron(), 40, 3.4
    _, beads, points, system = built(mesh, n, box=[width] * 3, spread=width, friction=0.0)
    system.add_jump(mp.jumps.Adsorption(
        beads.of("A"), points.of("P"), on_rate=20.0, off_rate=4.0, layer=0.4, side="both", most_feet=12
    ))  # fmt: skip
    simulation = simulation_of(system)
    simulation.context.set_velocities_to_temperature(kT=1.0, seed=5)
    simulation.step(400)
    excess = []
    for _ in range(4000):
        simulation.step(10)
        state = simulation.context.get_state(positions=True, velocities=True)
        row = []
        for handle, name, freedom in ((beads, "A", 3), (points, "P", 2)):
            there = state.living(handle)
            row.append(0.5 * MASS[name] * (state.velocities[there] ** 2).sum() - 0.5 * freedom * len(there))
        excess.append(row)
    for k, name in enumerate(("beads", "points")):
        check_mean(f"kinetic energy of {name} beyond kT/2", np.array(excess)[:, k], 0.0, time_series=True, sees=2.0)


def still(momenta, seed=1, n=10, steps=20):
    """Beads that land and leave so fast that nothing else happens, some times each: (membrane, beads, simulation)."""
    mesh, width, fast = octahedron(), 3.4, 1e9
    membrane, beads, points, system = built(
        mesh, n, box=[width] * 3, spread=1.6, seed=seed, friction=0.0, fixed=False, vertex_mass=CORNER,
        vertex_friction=0.0,
    )  # fmt: skip
    system.add_jump(mp.jumps.Adsorption(
        beads.of("A"), points.of("P"), on_rate=2.0 * fast, off_rate=2.0 * fast, layer=0.4, side="both", momenta=momenta,
        most_feet=12,
    ))  # fmt: skip
    simulation = simulation_of(system, timestep=0.25 / fast, seed=seed)
    simulation.context.set_velocities_to_temperature(kT=1.0, seed=seed)
    return membrane, beads, simulation


@pytest.mark.frictionless
@pytest.mark.parametrize("momenta", ["conserved", "maxwell", None])
def test_corners_take_the_momentum_of_what_lands(momenta):
    """Momentum of beads and vertices stays to rounding, event by event, or that of vertices alone."""
    membrane, beads, simulation = still(momenta, n=40)

    def momentum():
        state = simulation.context.get_state(positions=True, velocities=True, energy=True)
        of_beads = MASS["A"] * state.velocities[state.living(beads)].sum(axis=0)
        return of_beads, CORNER * state.velocities[membrane.beads], state

    simulation.report_work = True
    before, corners, start = momentum()
    simulation.step(100)
    after, others, state = momentum()
    assert state.counts["Adsorption"].accepted > 500
    if momenta == "conserved":
        # Of some thousand impulses of size 0.1.
        assert np.abs(before + corners.sum(axis=0) - after - others.sum(axis=0)).max() < 1e-12
        assert (np.abs(others - corners).max(axis=1) > 1e-3).all()
    else:
        assert np.abs(others - corners).max() < 1e-6
        assert np.abs(before - after).max() > 1e-3
    works = [getattr(state, w) - getattr(start, w) for w in ("heat", "shadow_work", "protocol_work", "chemical_work")]
    assert state.total_energy - start.total_energy == pytest.approx(sum(works), abs=1e-11)


@pytest.mark.frictionless
def test_corners_that_take_momentum_and_give_it_back_stay_thermal():
    """Corners keep Maxwell's distribution through a hundred events: given on landing alone, momentum heats them.

    Places come from a run with the other choice, so that all is in equilibrium from the start: of beads that are all
    outside of the membrane, those would land first whose momentum corners can take.
    """
    kinetic, events = [], 0
    for seed in range(250):
        _, _, first = still("maxwell", seed=seed + 1)
        first.step(60)
        membrane, _, simulation = still("conserved", seed=seed + 1001)
        simulation.context.set_state(first.context.get_state(positions=True, velocities=True))
        simulation.context.set_velocities_to_temperature(kT=1.0, seed=seed + 2001)
        before = first.context.get_state().counts["Adsorption"].accepted
        simulation.step(60)
        state = simulation.context.get_state(velocities=True)
        kinetic.append(CORNER * (state.velocities[membrane.beads] ** 2).mean())
        events += state.counts["Adsorption"].accepted - before
    assert events > 100 * 250
    check_mean("kinetic energy of corners", np.array(kinetic), 1.0, sees=0.2)


def test_momenta_that_nothing_can_take_are_refused():
    for change, error, match in (
        ({"momenta": "lost"}, mp.ParameterError, "momenta"),
        ({}, mp.TopologyError, 'vertex 0 of .* is fixed and takes none: leave momenta= out'),
    ):
        _, beads, points, _ = built(octahedron(), 3)
        given = {"on_rate": 1.0, "off_rate": 1.0, "layer": 0.4, "momenta": "conserved", **change}
        with pytest.raises(error, match=match):
            mp.jumps.Adsorption(beads.of("A"), points.of("P"), **given)
    pool = mp.Pool(volume=1.0, counts={"M": 1})
    with pytest.raises(mp.ParameterError, match="momenta is of beads"):
        mp.jumps.Adsorption(pool["M"], points.of("P"), on_rate=1.0, off_rate=1.0, momenta="maxwell")


def test_a_clamped_concentration_fills_a_box_with_a_poisson_distribution():
    mesh, width, c = octahedron(), 3.4, 0.3
    membrane, beads, _, system = built(mesh, 0, box=[width] * 3)
    system.add_jump(mp.jumps.Absorption(
        beads.of("A"), membrane, rate=12.0, layer=0.5, side="both", concentration=c, most_feet=12
    ))  # fmt: skip
    simulation = simulation_of(system)
    assert not system["Absorption"].driven
    counts = landed(simulation, beads)
    mean = c * width**3
    check_mean("beads", counts, mean, time_series=True, sees=1.9)
    check_mean("their spread", (counts - mean) ** 2, mean, time_series=True, sees=9.0)


@pytest.mark.filterwarnings("ignore:.*has no friction")
def test_absorption_takes_the_concentration_of_the_layer_times_its_rate():
    """Of beads that stand still and fill a slab evenly, those over a flat sheet within the layer die out at k/d."""
    mesh, n, layer, rate = uneven_sheet(), 4000, 0.5, 0.6
    topology = mp.Topology()
    membrane = topology.add_membrane(mesh, vertex_mass=1.0, fixed=True)
    random = np.random.default_rng(4)
    x = np.c_[random.uniform(0.0, 4.0, (n, 2)), random.uniform(-1.0, 1.0, n)]
    beads = topology.add_beads(x, species={"A": {"mass": 1.0}}, of_species="A", capacity=n)
    system = mp.System(topology)
    jump = system.add_jump(mp.jumps.Absorption(beads.of("A"), membrane, rate=rate, layer=layer))
    assert jump.driven
    context = mp.Context(system, mp.SplittingIntegrator("JBAOABJ", 0.01, kT=1e-12, seed=3), threads=1)
    context.step(100)
    state = context.get_state(positions=True)
    z = x[:, 2] * np.sign(np.cross(*(mesh.vertices[mesh.faces[0, 1:]] - mesh.vertices[mesh.faces[0, 0]]))[2])
    inside = (z > 0.0) & (z < layer)
    left = state.alive[beads.beads]
    assert left[~inside].all()
    check_mean("share that is left", left[inside].astype(float), np.exp(-rate / layer), sees=0.15)
    assert state.entropy_production == np.inf


class Well:
    """An energy of all beads together."""

    def __init__(self, stiffness):
        self.stiffness = stiffness

    def __call__(self, x):
        d = x - np.array([2.0, 2.0, 0.0])
        return 0.5 * self.stiffness * (d**2).sum(), -self.stiffness * d


def exchanging(threads=1):
    membrane, beads, points, system = built(
        octahedron(), 30, fixed=False, box=[5.0] * 3, spread=4.0,
        forces=[lambda b, p: mp.forces.SoftSphere(b, p, 4.0, diameter=0.4)],
    )  # fmt: skip
    system.add_force(mp.forces.MembraneEdgeSprings(membrane, 20.0))
    system.add_jump(mp.jumps.Adsorption(
        beads.of("A"), points.of("P"), on_rate=50.0, off_rate=10.0, layer=0.5, side="both", most_feet=16
    ))  # fmt: skip
    return simulation_of(system, threads=threads)


def numbers_of(simulation):
    state = simulation.context.get_state(positions=True, velocities=True)
    return [state.ids, state.positions, state.velocities, state.column("species"), state.jumps["Adsorption"]["events"]]


def same(one, other):
    return all(np.array_equal(a, b, equal_nan=True) for a, b in zip(numbers_of(one), numbers_of(other), strict=True))


def test_same_bits_on_two_threads_and_after_a_restart(tmp_path):
    one, other = exchanging(), exchanging(threads=2)
    one.step(80)
    for n in (30, 1, 49):
        other.step(n)
    assert same(one, other)
    one.save_checkpoint(tmp_path / "run")
    third = mp.Simulation.resume(tmp_path / "run", threads=2)
    for simulation in (one, third):
        simulation.step(40)
    assert same(one, third)
    assert one.context.get_state().counts["Adsorption"].accepted > 60


@pytest.mark.parametrize(("options", "match"), [
    ({}, "give layer="),
    ({"layer": 0.0}, "layer = 0"),
    ({"layer": 1.0, "side": "up"}, "side"),
    ({"layer": 1.0, "most_feet": 0}, "most_feet"),
    ({"layer": -1.0}, "layer = -1"),
])  # fmt: skip
def test_layers_that_mean_nothing_are_refused(options, match):
    _, beads, points, _ = built(octahedron(), 3)
    with pytest.raises(mp.ParameterError, match=match):
        mp.jumps.Adsorption(beads.of("A"), points.of("P"), on_rate=1.0, off_rate=1.0, **options)


def test_points_do_not_land_and_pools_have_no_layer():
    membrane, beads, points, system = built(octahedron(), 3)
    with pytest.raises(mp.TopologyError, match="must move in space"):
        mp.jumps.Adsorption(points.of("P"), points.of("P"), on_rate=1.0, off_rate=1.0, layer=1.0)
    with pytest.raises(mp.ParameterError, match="must be of points in a membrane"):
        mp.jumps.Adsorption(beads.of("A"), beads.of("A"), on_rate=1.0, off_rate=1.0, layer=1.0)
    pool = system.add_pool(mp.Pool(volume=1.0, counts={"A": 1}))
    with pytest.raises(mp.ParameterError, match="layer is of beads"):
        mp.jumps.Adsorption(pool["A"], points.of("P"), on_rate=1.0, off_rate=1.0, layer=1.0)
    with pytest.raises(mp.ParameterError, match="beads must be of one species"):
        mp.jumps.Absorption(beads, membrane, rate=1.0, layer=1.0)
    with pytest.raises(mp.TopologyError, match="handle of a membrane"):
        mp.jumps.Absorption(beads.of("A"), points, rate=1.0, layer=1.0)
    with pytest.raises(mp.ParameterError, match="rate = -1"):
        mp.jumps.Absorption(beads.of("A"), membrane, rate=-1.0, layer=1.0)


def test_a_layer_longer_than_half_of_the_box_is_refused_whenever_it_comes():
    """Over more than that nearest images would be other beads: at the start, as the number or the box is set."""
    _, beads, points, system = built(octahedron(), 5, box=[4.0] * 3)
    jump = system.add_jump(mp.jumps.Adsorption(
        beads.of("A"), points.of("P"), on_rate=1.0, off_rate=1.0, layer=2.1, side="both"
    ))  # fmt: skip
    refuses(mp.ParameterError, "Adsorption", simulation_of, system)
    jump.set(layer=1.9)
    simulation = simulation_of(system)
    simulation.step(2)
    jump.set(layer=2.1)
    refuses(mp.ParameterError, "Adsorption", simulation.step, 1)
    jump.set(layer=1.9)
    simulation.step(1)
    refuses(mp.ParameterError, "Adsorption", simulation.context.set_box, [3.7] * 3)


@pytest.mark.parametrize(("on", "off", "expected"), [(6.0, 2.0, np.log(3.0)), (0.0, 0.0, 0.0), (6.0, 0.0, None)])
def test_the_weight_of_a_state_counts_what_has_landed(on, off, expected):
    _, beads, points, system = built(octahedron(), 9, box=[3.6] * 3, spread=3.0)
    jump = system.add_jump(mp.jumps.Adsorption(
        beads.of("A"), points.of("P"), on_rate=6.0, off_rate=2.0, layer=0.6, side="both", most_feet=16
    ))  # fmt: skip
    simulation = simulation_of(system)
    simulation.step(40)
    jump.set(on_rate=on, off_rate=off)
    state = simulation.context.get_state(positions=True, energy=True)
    landed = points.counts(state)["P"]
    assert 0 < landed < 9
    found = jump.log_weight(simulation.context._schedule.jumping.operations[0], state, 1.0)
    if expected is None:
        assert found is None
        return
    # Of one handle less, of the other more: both ends of the same ratio.
    weights = found - 0.5 * expected * (landed - (9 - landed))
    assert weights == pytest.approx(0.0, abs=1e-12)


def test_more_triangles_below_a_bead_than_it_may_have_are_a_fault():
    _, beads, points, system = built(octahedron(), 20, box=[6.0] * 3, spread=0.6)
    system.add_jump(mp.jumps.Adsorption(
        beads.of("A"), points.of("P"), on_rate=50.0, off_rate=1.0, layer=0.9, side="inside", most_feet=1
    ))  # fmt: skip
    with pytest.raises(mp.SimulationError, match="give most_partners= or most_feet="):
        simulation_of(system).step(200)
