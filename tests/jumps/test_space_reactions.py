"""Laws of species of free beads and balls, and of their reactions in space."""

import pickle

import numpy as np
import pytest
from builders import balanced, mean_of_complexes, moments, refuses
from scipy.special import gammaln

import medyanpy as mp
from medyanpy.jumps._reaction_grounds import macroscopic_rate, microscopic_rate
from medyanpy.testing import check_mean

MASSES = {"A": 1.0, "B": 2.0, "C": 3.0, "D": 2.5, "E": 1.0}
SIDE = 4.0
# What a sum over all images gives a point charge in a cubic box of side 1, with its sign turned.
MADELUNG = 2.8372974794806


def kinds(names, friction=1.0):
    return {name: {"mass": MASSES[name], "friction": friction} for name in names}


def built(counts, capacity, forces=(), species="ABC", friction=1.0, seed=1, threads=1, timestep=0.05, box=(SIDE,) * 3,
          spread=SIDE, radius=None):  # fmt: skip
    """Beads or balls at random places of a box, and a system; its simulation is made when asked for."""
    topology = mp.Topology()
    x = spread * (np.random.default_rng(seed).uniform(size=(sum(counts.values()), 3)) - 0.5)
    numbers = {"species": kinds(species, friction), "counts": counts, "capacity": capacity}
    beads = topology.add_beads(x, **numbers) if radius is None else topology.add_balls(x, radius, **numbers)
    system = mp.System(topology, box=box)
    for force in forces:
        system.add_force(force(beads))
    return beads, system, lambda: mp.Simulation(
        system, mp.BAGOGABIntegrator(timestep, kT=1.0, seed=seed), threads=threads
    )


def rates_by_energy(share, limit, w):
    """Factors of the rates there and back of an event that gains w kT, as the documentation has them."""
    if share is None:
        return min(1.0, np.exp(-w)), min(1.0, np.exp(w))
    e = np.clip(w, -limit, limit)
    there, back = np.exp(-(1.0 - share) * e), np.exp(share * e)
    # Beyond the limit the slower one has the rest.
    return (there * np.exp(e - w), back) if w > 0.0 else (there, back * np.exp(w - e))


@pytest.mark.parametrize(("share", "limit"), [(None, None), (0.3, None), (0.3, 1.0), (1.0, 2.0), (0.0, 0.5)])
@pytest.mark.parametrize("w", [1.6, -1.6])
def test_energies_are_shared_by_both_directions_as_they_are_told_to(share, limit, w):
    """A <-> B with w kT more of B: events there and numbers of B, whatever the rule the latter by exp(-w)."""
    n, on, off = 100, 4.0, 5.0
    field = "e + 1e-9*cos(pi*x/2)"
    beads, system, make = built({"A": n}, n, [lambda b: mp.forces.ExternalField(b.of("B"), field, e=w)], "AB")
    system.add_jump(mp.jumps.Reactions(
        beads, "A <-> B", on_rate=on, off_rate=off, load_sharing=share, load_limit=limit
    ))  # fmt: skip
    simulation = make()
    simulation.step(200)
    events, numbers = [], []
    for _ in range(1200):
        before = simulation.context.get_state(positions=True)
        simulation.step(4)
        state = simulation.context.get_state(positions=True)
        events.append(np.subtract(*(one.jumps["Reactions"]["events"][0] for one in (state, before))))
        numbers.append(beads.counts(before)["A"])
    there, _ = rates_by_energy(share, 5.0 if limit is None else limit, w)
    free = n / (1.0 + on / off * np.exp(-w))
    check_mean("A", np.array(numbers, float), free, time_series=True, sees=3.0)
    wanted = free * on * there * 0.2
    check_mean("events", np.array(events, float), wanted, time_series=True, sees=0.08 * wanted)


def watched(simulation, beads, samples, every):
    """Counts of the species at regular times."""
    simulation.step(400)
    out = []
    for _ in range(samples):
        simulation.step(every)
        out.append(list(beads.counts(simulation.context.get_state(positions=True)).values()))
    return np.array(out, float)


def kinetic(simulation, beads, out):
    """Add the kinetic energy of each bead beyond 3/2 kT, kT = 1, to lists by species."""
    state = simulation.context.get_state(positions=True, velocities=True)
    rows, of = state.living(beads), state.column("species")
    mass = np.array([one.mass for one in beads.species])[of[rows]]
    energy = 0.5 * mass * (state.velocities[rows] ** 2).sum(axis=1) - 1.5
    for k, own in enumerate(out):
        own += [energy[of[rows] == k].sum()]


# Who is near --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("box", "reach", "spread", "far"), [
    ((4.0, 4.0, 4.0), 1.3, 12.0, 0.0), ((4.0, 4.0, 4.0), 1.999, 4.0, 0.0), ((4.0, 7.0, 5.0), 2.0, 30.0, 1e3),
    ((5.0, None, None), 1.2, 5.0, 0.0), (None, 1.2, 6.0, 1e6), (None, 0.01, 0.05, -3e5),
])  # fmt: skip
def test_lines_lead_to_the_nearest_images_within_reach(box, reach, spread, far):
    """Against all pairs: in boxes of two cells and more, open in some directions, far from the origin."""
    beads, system, make = built({"A": 150, "B": 150}, 300, box=box, spread=spread)
    system.add_jump(mp.jumps.Reactions(beads, "A + B <-> C; k_on = 1, k_off = 1", reach=reach, most_partners=200))
    simulation = make()
    simulation.context.set_positions(beads.positions.tolist() + np.array([far, 0.0, -2.0 * far]))
    simulation.context.get_state(positions=True)
    operation, store = simulation.context._schedule.jumping.operations[0], simulation.context._store
    of, x = store.arrays["species"], store.x
    d = x - x[:, None]
    length = np.array([side or np.inf for side in (box or (None,) * 3)])
    with np.errstate(invalid="ignore"):
        d -= np.where(np.isfinite(length), length * np.round(d / length), 0.0)
    near = np.linalg.norm(d, axis=-1) < reach
    looked = 0
    for place in store.layout.rank[beads.beads]:
        ends, lines = operation.lines(store.program, int(place), 1 - int(of[place]))
        assert sorted(ends) == np.flatnonzero(near[place] & (of == 1 - of[place])).tolist()
        assert np.allclose(lines, d[place, ends], atol=1e-9)
        looked += len(ends)
    assert looked > 300


# Balance ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("box", "reach", "placement", "momenta"), [
    ((SIDE,) * 3, 1.0, 0.3, "maxwell"), ((SIDE,) * 3, 1.9, 1.0, "center_of_mass"),
])  # fmt: skip
def test_association_has_its_constant(box, reach, placement, momenta):
    """A + B <-> C of ideal beads: weights K_D^-c / (a! b! c!) times volumes, with whole numbers of molecules; kinetic
    energies of all three are those of the temperature."""
    n = 12
    beads, system, make = built({"A": n, "B": n}, 2 * n, box=box, friction=3.0)
    system.add_jump(mp.jumps.Reactions(
        beads, "A + B <-> C", reach=reach, dissociation_constant=n / SIDE**3, off_rate=8.0, placement=placement,
        momenta=momenta,
    ))  # fmt: skip
    simulation = make()
    simulation.report_work = True
    counts, energies = [], [[], [], []]
    simulation.step(400)
    for _ in range(7500):
        simulation.step(6)
        counts.append(list(beads.counts(simulation.context.get_state(positions=True)).values()))
        kinetic(simulation, beads, energies)
    counts = np.array(counts, float)
    assert (counts[:, :2] + counts[:, 2:] == n).all()
    mean, variance = mean_of_complexes(n, 1.0 / n)
    check_mean("C", counts[:, 2], mean, time_series=True, sees=0.3)
    check_mean("spread of their number", (counts[:, 2] - mean) ** 2, variance, time_series=True, sees=0.8)
    for name, own, there in zip("ABC", energies, counts.T, strict=True):
        scale = there.mean()
        check_mean(f"kinetic energy of {name}", np.array(own) / scale, 0.0, time_series=True, sees=0.07)
    state = simulation.context.get_state(positions=True, energy=True)
    balanced(state)
    assert state.chemical_work == 0.0


def test_two_of_one_kind_have_twice_the_constant():
    """A + A <-> D: each pair once. Weights z_D^d z_A^a / (a! d!), with ρ_A²/ρ_D = K_D."""
    n = 16
    beads, system, make = built({"A": n}, n, species="AD")
    system.add_jump(mp.jumps.Reactions(
        beads, "A + A <-> D", reach=1.0, dissociation_constant=n / SIDE**3, off_rate=3.0
    ))  # fmt: skip
    counts = watched(make(), beads, 4000, 8)
    d = np.arange(n // 2 + 1)
    mean, _ = moments(-d * np.log(n) - gammaln(n - 2 * d + 1) - gammaln(d + 1))
    check_mean("D", counts[:, 1], mean, time_series=True, sees=0.3)


@pytest.mark.parametrize("radius", [None, 0.6])
def test_repelling_partners_have_the_second_virial_in_their_constant(radius):
    """P(C)/P(AB) = 1/(K_D ∫e^{-U_AB} d³d): of one pair with SoftSphere in a periodic box, by quadrature; of beads, and
    of balls that touch at the sum of their radii."""
    strength, diameter, reach = 6.0, 1.2, 1.6
    r = (np.arange(4000) + 0.5) * diameter / 4000
    inside = 4.0 * np.pi * (r**2 * np.exp(-0.5 * strength * (diameter - r) ** 2)).sum() * diameter / 4000
    weight = SIDE**3 - 4.0 / 3.0 * np.pi * diameter**3 + inside
    size = {"diameter": diameter} if radius is None else {}
    beads, system, make = built(
        {"A": 1, "B": 1}, 2, [lambda p: mp.forces.SoftSphere(p.of("A"), p.of("B"), strength, **size)],
        radius=radius,
    )  # fmt: skip
    system.add_jump(mp.jumps.Reactions(
        beads, "A + B <-> C", reach=reach, dissociation_constant=1.0 / weight, off_rate=4.0, most_partners=1
    ))  # fmt: skip
    counts = watched(make(), beads, 24_000, 10)
    check_mean("C of a pair that repels", counts[:, 2], 0.5, time_series=True, sees=0.06)


def test_a_field_in_open_space_shifts_the_constant_as_its_integrals_do():
    """C in a trap is one bead, A and B are two: P(C)/P(AB) = ∫e^{-U}dV / (K_D (∫e^{-U}dV)²) for one pair."""
    strength, n = 1.5, 6
    beads, system, make = built(
        {"A": n, "B": n}, 2 * n, [lambda p: mp.forces.HarmonicTrap(p, strength, (0.0, 0.0, 0.0))], box=None,
        spread=1.5,
    )  # fmt: skip
    system.add_jump(mp.jumps.Reactions(
        beads, "A + B <-> C", reach=0.8, dissociation_constant=n / (2.0 * np.pi / strength) ** 1.5, off_rate=6.0
    ))  # fmt: skip
    counts = watched(make(), beads, 6000, 8)
    mean, _ = mean_of_complexes(n, 1.0 / n)
    check_mean("C in a trap", counts[:, 2], mean, time_series=True, sees=0.3)


def test_momentum_stays_with_the_centre_of_mass():
    """With hardly any friction nothing but reactions changes momentum, and these keep it; places of the centre of mass,
    too, with C there."""
    beads, system, make = built({"A": 30, "B": 30}, 60, friction=1e-32)
    share = MASSES["B"] / MASSES["C"]
    system.add_jump(mp.jumps.Reactions(
        beads, "A + B <-> C", reach=1.5, on_rate=3.0, off_rate=3.0, momenta="center_of_mass", placement=share
    ))  # fmt: skip
    simulation = make()
    simulation.context.set_velocities_to_temperature(kT=1.0, seed=3)

    def sums():
        state = simulation.context.get_state(positions=True, velocities=True)
        rows = state.living(beads)
        mass = np.array([one.mass for one in beads.species])[state.column("species")[rows]]
        return mass @ state.velocities[rows], mass @ state.positions[rows]

    before, places = sums()
    simulation.step(200)
    after, there = sums()
    assert simulation.context.get_state().counts["Reactions"].accepted > 300
    assert np.allclose(after, before, rtol=0.0, atol=1e-12 * 90)
    # Of other images, whole boxes away.
    turns = (there - places - 200 * 0.05 * before) / SIDE
    assert np.allclose(turns, np.round(turns), rtol=0.0, atol=1e-9)


# Creation, decay and pools ------------------------------------------------------------------------------------------


def test_production_and_decay_are_poisson_and_created_beads_are_thermal():
    """Without friction nothing but their creation gives beads their velocities."""
    beads, system, make = built({}, 80, species="C", friction=0.0)
    system.add_jump(mp.jumps.Reactions(beads, f"0 <-> C; k_on = {27.0 / SIDE**3}, k_off = 3.0"))
    simulation = make()
    counts, energies, places = [], [[]], []
    for _ in range(5000):
        simulation.step(5)
        state = simulation.context.get_state(positions=True)
        counts.append(len(state.living(beads)))
        places.append(np.cos(2.0 * np.pi / SIDE * state.positions[state.living(beads)]).sum(axis=0))
        kinetic(simulation, beads, energies)
    counts = np.array(counts, float)
    check_mean("C", counts, 9.0, time_series=True, sees=0.8)
    check_mean("spread of C", (counts - 9.0) ** 2, 9.0, time_series=True, sees=3.0)
    check_mean("kinetic energy beyond 3/2 kT each", np.array(energies[0]), 0.0, time_series=True, sees=1.2)
    for wave in np.array(places).T:
        check_mean("waves of the density", wave, 0.0, time_series=True, sees=0.8)


@pytest.mark.parametrize("text", ["M + A <-> MA", "A <-> MA"])
def test_molecules_of_a_pool_bind_to_beads_and_come_into_the_box(text):
    """Of 30 molecules in V: binomial sites 20!/(n! (20-n)!), or a box 1/n!, times 30!/(30-n)! (k_on/(k_off V))^n, and
    the volume of the box."""
    total, sites, volume = 30, 20, 50.0
    on_beads = text.startswith("M")
    topology = mp.Topology()
    x = SIDE * np.random.default_rng(1).uniform(size=(sites if on_beads else 0, 3))
    numbers = {name: {"mass": mass, "friction": 1.0} for name, mass in (("M", 1.0), ("MA", 2.0))}
    beads = topology.add_beads(x, species=numbers, counts={"M": len(x)}, capacity=40)
    system = mp.System(topology, box=(SIDE,) * 3)
    pool = system.add_pool(mp.Pool(volume=volume, counts={"A": total}))
    on = 2.0 * volume / 30.0 / (1.0 if on_beads else SIDE**3 / 30.0)
    system.add_jump(mp.jumps.Reactions(beads, text, on_rate=on, off_rate=2.0, pool=pool))
    simulation = mp.Simulation(system, mp.BAGOGABIntegrator(0.05, kT=1.0, seed=1))
    seen = []
    for _ in range(4000):
        simulation.step(10)
        state = simulation.context.get_state(positions=True)
        seen.append([beads.counts(state)["MA"], state.pools["A"]])
    bound, free = np.array(seen, float).T
    assert (bound + free == total).all()
    n = np.arange((sites if on_beads else total) + 1)
    weight = n * np.log(1.0 / 30.0 if on_beads else 1.0) - gammaln(total - n + 1) - gammaln(n + 1)
    weight = weight - gammaln(sites - n + 1) if on_beads else weight
    mean, variance = moments(weight)
    check_mean("bound", bound, mean, time_series=True, sees=0.5)
    check_mean("spread of bound", (bound - mean) ** 2, variance, time_series=True, sees=2.0)


# Rates --------------------------------------------------------------------------------------------------------------


def test_rates_from_a_macroscopic_constant():
    """The flux of Doi's equation, D (r c)'' = λ [r < R] r c with c = 1 far away, solved by finite differences."""
    diffusion, reach = 2.0, 1.5
    for rate in (0.01, 1.0, 5.0, 200.0):
        # r c = sinh within, and a straight line outside, matched at R on a grid.
        n = 20_000
        h = reach / n
        y = np.zeros(n + 2)
        y[1] = 1.0
        for i in range(1, n + 1):
            y[i + 1] = 2.0 * y[i] - y[i - 1] + h * h * rate / diffusion * y[i]
        slope = (y[n + 1] - y[n - 1]) / (2.0 * h)
        # r c = slope r + b outside: c = 1 far away for slope 1, and 4 π D times minus b is the flux.
        flux = -4.0 * np.pi * diffusion * (y[n] / slope - reach)
        found = macroscopic_rate(rate, reach, diffusion)
        assert found == pytest.approx(flux, rel=1e-6)
        assert microscopic_rate(found, reach, diffusion) == pytest.approx(rate, rel=1e-9)
    assert macroscopic_rate(np.inf, reach, diffusion) == 4.0 * np.pi * diffusion * reach
    # Slow reactions take each encounter: λ 4πR³/3.
    for rate in (1e-9, 1e-6):
        slow = rate * 4.0 / 3.0 * np.pi * reach**3
        share = 1.0 - 0.4 * reach**2 * rate / diffusion
        assert macroscopic_rate(rate, reach, diffusion) == pytest.approx(slow * share, rel=2e-9)
    with pytest.raises(mp.ParameterError, match=r"nm³/s but must be between 0 and .* how often beads meet"):
        microscopic_rate(1e9, reach, diffusion)


def test_beads_react_at_the_macroscopic_rate():
    """A that diffuse find one E that rests, of which they are turned to B: from a uniform start in a periodic box after
    V/k less V ξ/(4πDL), which its images take, up to terms of (R/L)³."""
    n, side, reach, friction, timestep = 4000, 8.0, 1.0, 1.0, 0.02
    topology = mp.Topology()
    x = side * np.random.default_rng(1).uniform(size=(n + 1, 3))
    species = {"A": {"mass": 1.0, "friction": friction}, "B": {"mass": 1.0, "friction": friction},
               "E": {"mass": 1.0, "friction": 1e9}}  # fmt: skip
    beads = topology.add_beads(x, species=species, counts={"A": n, "E": 1})
    system = mp.System(topology, box=(side,) * 3)
    k = 0.5 * 4.0 * np.pi * reach / friction
    system.add_jump(mp.jumps.Reactions(
        beads, "A + E -> B + E", reach=reach, macroscopic_rate=k, most_partners=1, name="react"
    ))  # fmt: skip
    simulation = mp.Simulation(system, mp.BrownianIntegrator(timestep, kT=1.0, seed=2), threads=1)
    events = simulation.context.events()
    mean = side**3 / k - side**2 * MADELUNG / (4.0 * np.pi / friction)
    end = 3.0 * mean
    simulation.step(round(end / timestep))
    times = np.array([event.time for event in events.heard()])
    left = beads.counts(simulation.context.get_state(positions=True))["A"]
    assert len(times) + left == n
    # Times are exponential but for the first meetings; those that have not met by the end have a mean time to go.
    times = np.append(times, np.full(left, end + mean))
    # Events come in the order of time.
    check_mean("time until they meet", np.random.default_rng(1).permutation(times), mean, sees=0.15 * mean)


# Forces -------------------------------------------------------------------------------------------------------------


def test_pair_forces_act_between_the_species_they_name():
    """The energy of SoftSphere between A and B against a sum over all pairs, while beads switch."""
    beads, system, make = built(
        {"A": 60, "B": 60}, 120, [lambda p: mp.forces.SoftSphere(p.of("A"), p.of("B"), 5.0, diameter=0.5)],
        species="AB", friction=2.0,
    )  # fmt: skip
    system.add_jump(mp.jumps.Reactions(beads, "A <-> B", on_rate=3.0, off_rate=3.0))
    simulation = make()
    touched = 0
    for _ in range(40):
        simulation.step(5)
        state = simulation.context.get_state(positions=True, energy=True)
        x, of = state.positions[beads.beads], state.column("species")[beads.beads]
        d = x[of == 0][:, None] - x[of == 1]
        gap = 0.5 - np.linalg.norm(d - SIDE * np.round(d / SIDE), axis=-1)
        wanted = 0.5 * 5.0 * (np.maximum(gap, 0.0) ** 2).sum()
        assert state.energies["SoftSphere"] == pytest.approx(wanted, rel=1e-12)
        touched += (gap > 0.0).sum()
    assert touched > 100
    assert simulation.context.get_state().counts["Reactions"].accepted > 100


@pytest.mark.parametrize("integrator", [mp.BAGOGABIntegrator, mp.BrownianIntegrator])
def test_switches_are_binomial_and_each_species_has_its_friction(integrator):
    beads, system, _ = built({"A": 60}, 60, species="AB", box=None)
    system.add_jump(mp.jumps.Reactions(beads, "A <-> B", on_rate=2.0, off_rate=1.0))
    simulation = mp.Simulation(system, integrator(0.05, kT=1.0, seed=1))
    numbers = []
    for _ in range(3000):
        simulation.step(10)
        numbers.append(beads.counts(simulation.context.get_state(positions=True))["B"])
    numbers = np.array(numbers, float)
    check_mean("B", numbers, 40.0, time_series=True, sees=1.0)
    check_mean("spread of B", (numbers - 40.0) ** 2, 40.0 / 3.0, time_series=True, sees=4.0)


def test_beads_diffuse_as_their_species_of_now():
    """Without momenta, and all turned to B at once: 6Dt with the friction of B."""
    topology = mp.Topology()
    species = {"A": {"mass": 1.0, "friction": 1.0}, "B": {"mass": 1.0, "friction": 5.0}}
    beads = topology.add_beads(np.zeros((2000, 3)), species=species, counts={"A": 2000})
    system = mp.System(topology)
    jump = system.add_jump(mp.jumps.Reactions(beads, "A -> B", on_rate=1e9))
    simulation = mp.Simulation(system, mp.BrownianIntegrator(0.1, kT=1.0, seed=3))
    simulation.step(1)
    jump.set(on_rate=0.0)
    before = simulation.context.get_state(positions=True)
    assert beads.counts(before) == {"A": 0, "B": 2000}
    simulation.step(20)
    moved = simulation.context.get_state(positions=True).positions - before.positions
    check_mean("squares of steps", (moved**2).sum(axis=1), 6.0 * 2.0 / 5.0, sees=0.4)


@pytest.mark.parametrize(("text", "start"), [("A + B -> C", {"A": 5, "B": 5}), ("C -> A + B", {"C": 8})])
def test_refused_attempts_leave_all_as_it_was(text, start):
    """What each of them would make overlaps with E, at any place of the box; nothing else moves."""
    beads, system, _ = built(
        {**start, "E": 1}, 20, [lambda p: mp.forces.SoftSphere(p.of(text[-1]), p.of("E"), 1e9, diameter=2.0)],
        species="ABCE", friction=1e300, spread=0.5, box=None,
    )  # fmt: skip
    system.add_jump(mp.jumps.Reactions(beads, text, reach=0.5, on_rate=20.0, most_partners=10))
    simulation = mp.Simulation(system, mp.BrownianIntegrator(0.05, kT=1.0, seed=1))
    before = numbers_of(simulation)
    simulation.step(50)
    counts = simulation.context.get_state().counts["Reactions"]
    assert counts.tried > 100
    assert counts.accepted == 0
    for then, now in zip(before, numbers_of(simulation), strict=True):
        assert np.array_equal(then, now, equal_nan=True)


# Bits, files and errors ---------------------------------------------------------------------------------------------


def numbers_of(simulation):
    state = simulation.context.get_state(positions=True, velocities=True)
    return [state.ids, state.positions, state.velocities, state.column("species")]


def same(one, other):
    return all(np.array_equal(a, b, equal_nan=True) for a, b in zip(numbers_of(one), numbers_of(other), strict=True))


def reacting(threads=1):
    beads, system, make = built(
        {"A": 60, "B": 60}, 160, [lambda p: mp.forces.SoftSphere(p.of("A"), p.of("C"), 5.0, diameter=0.8)],
        threads=threads,
    )  # fmt: skip
    system.add_jump(mp.jumps.Reactions(beads, "A + B <-> C", reach=0.7, on_rate=0.4, off_rate=0.5, name="bind"))
    system.add_jump(mp.jumps.Reactions(beads, "A <-> B", on_rate=0.5, off_rate=0.5, name="switch"))
    return beads, make()


def test_same_bits_on_two_threads_after_a_restart_and_after_an_edit(tmp_path):
    _, one = reacting()
    beads, other = reacting(threads=2)
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
        beads.reserve(170)
    assert beads.counts(one.context.get_state(positions=True)) == beads.counts(other.context.get_state(positions=True))
    assert beads.mass.tolist() == [MASSES["ABC"[k]] for k in beads._of_species]
    for simulation in (one, third, fourth, fifth):
        simulation.step(25)
    assert same(one, third)
    assert same(one, fourth)
    assert same(one, fifth)
    assert all(count.accepted > 20 for count in one.context.get_state().counts.values())


def test_edits_add_and_remove_beads_of_species():
    beads, simulation = reacting()
    simulation.step(30)
    before = beads.counts(simulation.context.get_state(positions=True))
    with simulation.topology.edit():
        rows = beads.add([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0]], species=["A", "C"])
    after = beads.counts(simulation.context.get_state(positions=True))
    assert after == {"A": before["A"] + 1, "B": before["B"], "C": before["C"] + 1}
    with simulation.topology.edit():
        beads.remove(rows)
    assert beads.counts(simulation.context.get_state(positions=True)) == before
    simulation.step(10)


def test_trajectories_documents_and_pickles_hold_species(tmp_path):
    beads, simulation = reacting()
    simulation.reporters.append(mp.reporters.TrajectoryReporter(tmp_path / "run.h5", 5))
    simulation.step(30)
    simulation.reporters[0].flush()
    state = simulation.context.get_state(positions=True)
    with mp.Trajectory(tmp_path / "run.h5") as trajectory:
        assert np.array_equal(trajectory[-1].column("species"), state.column("species"))
        assert (np.diff(trajectory.read("species"), axis=0) != 0).any()
    for system in (mp.deserialize(mp.serialize(simulation.system)), pickle.loads(pickle.dumps(simulation.system))):
        again = system.topology.handles[0]
        assert type(again) is type(beads)
        assert again.species == beads.species
        assert np.array_equal(again._of_species, beads._of_species)
        assert str(system["bind"]) == str(simulation.system["bind"])
        assert system["SoftSphere"].handles_by_species == (again, again)
    assert repr(beads.of("A")) == "beads.of('A')"


def test_beads_without_species_are_of_their_own_class():
    topology = mp.Topology()
    plain = mp.Topology().add_beads([[0.0, 0, 0]], mass=1.0)
    balls = topology.add_balls([[0.0, 0, 0]], 1.0, species=kinds("AB"), of_species=["B"])
    assert type(plain) is mp.beads.Beads
    assert not hasattr(plain, "of")
    assert plain.friction.tolist() == [0.0]
    assert isinstance(balls, mp.beads.Balls)
    assert balls.mass.tolist() == [2.0]
    state = mp.Context(mp.System(topology), mp.BAGOGABIntegrator(0.1, kT=1.0)).get_state(positions=True)
    assert balls.counts(state) == {"A": 0, "B": 1}
    refuses(mp.ParameterError, "was added without any", plain.add, [[1.0, 0, 0]], species="A")


@pytest.mark.parametrize(("options", "match"), [
    ({}, "give mass="),
    ({"mass": 1.0, "species": kinds("AB"), "counts": {"A": 2}}, "are those of the species"),
    ({"species": kinds("AB"), "counts": {"A": 3}}, "species"),
    ({"species": kinds("AB"), "counts": {"X": 2}}, "there is no species"),
    ({"species": kinds("AB"), "of_species": ["A", "X"]}, "there is no species"),
    ({"species": kinds("AB"), "counts": {"A": 2}, "of_species": ["A", "A"]}, "in place of of_species="),
    ({"mass": 1.0, "counts": {"A": 2}}, "give species="),
    ({"species": kinds("AB")}, "give the species of each: A, B"),
])  # fmt: skip
def test_species_without_a_meaning_are_refused(options, match):
    refuses(mp.ParameterError, match, mp.Topology().add_beads, np.zeros((2, 3)), **options)


ALL = {"reach": 1.0, "on_rate": 1.0, "off_rate": 1.0}


@pytest.mark.parametrize(("text", "options", "match"), [
    ("A + B <-> C", {"on_rate": 1.0, "off_rate": 1.0}, "give reach="),
    ("A + B <-> C", {"reach": 1.0, "off_rate": 1.0, "macroscopic_rate": 1.0, "density": 1.0}, "density= is of points"),
    ("A + B <-> D", {**ALL, "momenta": "center_of_mass"}, "masses are 3 before and 2.5 .* after"),
    ("A + B <-> C", {**ALL, "momenta": "mine"}, "momenta = 'mine' but must be"),
    ("A <-> E", {"on_rate": 1.0, "off_rate": 1.0}, "there is no species .* 'E'"),
    ("A + B + C -> D", {"on_rate": 1.0, "reach": 1.0}, "beads react as"),
])  # fmt: skip
def test_texts_and_numbers_without_a_meaning_are_refused_before_the_first_step(text, options, match):
    beads, _, _ = built({"A": 1}, 4, species="ABCD")
    refuses(mp.ParameterError, match, mp.jumps.Reactions, beads, text, **options)


def test_reactions_without_a_meaning_in_space_are_refused():
    beads, system, make = built({"A": 1, "B": 1}, 4)
    jump = system.add_jump(mp.jumps.Reactions(beads, "A + B <-> C", **ALL | {"reach": 2.1}))
    refuses(mp.ParameterError, "Reactions reaches 2.1 nm, and the box is 4 nm long .* must be >= 4.2", make)
    jump.set(reach=1.5)
    simulation = make()
    simulation.step(1)
    jump.set(reach=2.1)
    refuses(mp.ParameterError, "Reactions reaches 2.1 nm, and the box is 4 nm long", simulation.step, 1)
    jump.set(reach=1.9)
    simulation.step(1)
    refuses(mp.ParameterError, "Reactions reaches 1.9 nm", simulation.context.set_box, (3.5, 4.0, 4.0))
    for box in (None, (4.0, 4.0, None)):
        beads, system, make = built({"A": 1}, 4, box=box)
        system.add_jump(mp.jumps.Reactions(beads, "0 <-> A", on_rate=1.0, off_rate=1.0))
        refuses(mp.ParameterError, "not periodic in all directions", make)
    beads, system, _ = built({"A": 1}, 4)
    pool = system.add_pool(mp.Pool(volume=1.0, counts={"X": 1}))
    refuses(mp.ParameterError, "must be of points in a membrane, not beads.of", mp.jumps.Adsorption, pool["X"],
            beads.of("A"), on_rate=1.0, off_rate=1.0)  # fmt: skip
    topology = mp.Topology()
    bodies = topology.add_rigid_bodies([[0.0, 0, 0]], [[1.0, 0, 0, 0]], mass=1.0, inertia=[1.0, 1.0, 1.0])
    vesicle = topology.add_membrane(mp.TriangleMesh.icosphere(5.0, 0), 1.0, fixed=True)
    plain = topology.add_beads([[0.0, 0, 0]], mass=1.0)
    for handle in (bodies, vesicle):
        refuses(mp.TopologyError, "free beads, balls, or rigid bodies with", mp.jumps.Reactions, handle,
                "A -> B", on_rate=1.0)  # fmt: skip
    refuses(mp.ParameterError, "has no species: give species=", mp.jumps.Reactions, plain, "A -> B", on_rate=1.0)
    points = topology.add_intriangle_points(vesicle, species=kinds("ABC"), counts={"A": 1}, capacity=4)
    refuses(mp.ParameterError, 'momenta="center_of_mass" is of beads in space', mp.jumps.Reactions, points,
            "A + B <-> C", **ALL, momenta="center_of_mass")  # fmt: skip


def test_beads_that_constraints_hold_and_that_feel_the_fluid_do_not_change():
    topology = mp.Topology()
    beads = topology.add_beads([[0.0, 0, 0], [2.0, 0, 0]], species=kinds("AB"), counts={"A": 2})
    topology.constrain("(x1-x2)^2 + (y1-y2)^2 + (z1-z2)^2 - d^2", [beads.beads[:2]], d=2.0)
    system = mp.System(topology)
    system.add_jump(mp.jumps.Reactions(beads, "A <-> B", on_rate=1.0, off_rate=1.0))
    refuses(mp.TopologyError, "jumps cannot create, remove or change BeadsOfSpecies", mp.Context, system,
            mp.BAGOGABIntegrator(0.1, kT=1.0))  # fmt: skip
    topology = mp.Topology()
    balls = topology.add_balls([[0.0, 0, 0], [4.0, 0, 0]], 1.0, species=kinds("AB"), counts={"A": 2})
    system = mp.System(topology)
    system.add_hydrodynamics(mp.hydrodynamics.RotnePrager(1.0, balls))
    system.add_jump(mp.jumps.Reactions(balls, "A <-> B", on_rate=1.0, off_rate=1.0))
    refuses(mp.ParameterError, "creates, removes or changes beads of 'balls'", mp.Context, system,
            mp.BAGOGABIntegrator(0.1, kT=1.0))  # fmt: skip
    topology = mp.Topology()
    species = {"A": {"mass": 1.0, "friction": 1.0}, "B": {"mass": 1.0}}
    beads = topology.add_beads([[0.0, 0, 0]], species=species, counts={"A": 1})
    refuses(mp.ParameterError, "species 'B' of 'beads': friction = 0 but must be > 0", mp.Context,
            mp.System(topology), mp.BrownianIntegrator(0.1, kT=1.0))  # fmt: skip


def test_a_fault_without_room_names_the_species_and_more_room_helps():
    beads, system, make = built({"C": 4}, 4)
    system.add_jump(mp.jumps.Reactions(beads, "C -> A + B", reach=1.0, on_rate=5.0))
    simulation = make()
    refuses(mp.SimulationError, r"a bead of species 'B' cannot be created: all 4 rows.*reserve", simulation.step, 100)
    with simulation.topology.edit():
        beads.reserve(8)
    simulation.step(100)
    assert beads.counts(simulation.context.get_state(positions=True)) == {"A": 4, "B": 4, "C": 0}


def test_check_tells_how_well_steps_resolve_a_reaction():
    """Of A and B with m = 1, 2 and γ = 100: D = 0.02, reduced mass 2/3, inertial length √(μ/kT) D."""
    beads, system, make = built({"A": 3, "B": 3}, 8, friction=100.0)
    system.add_jump(mp.jumps.Reactions(beads, "A + B <-> C", reach=0.5, on_rate=0.6, off_rate=1.0))
    hop, inertia = np.sqrt(4 * 0.02 * 0.05) / 0.5, np.sqrt(2 / 3) * 0.02 / 0.5
    text = str(make().check())
    assert f"A + B -> C: √(4Dh)/R = {hop:.3g}, inertial length/R = {inertia:.3g}, λh = 0.03" in text


@pytest.mark.parametrize(("text", "times"), [
    # Twice an attempt, in steps of 0.05: 60 A of rate 1; 3 600 pairs of which pi/3 nm^3 in 64 nm^3 are near each other.
    ("A -> 0; rate = 1", 6.0), ("A + B <-> C; k_on = 1, k_off = 1", 2.0 * 0.05 * 60 * 60 * (4.0 / 3.0 * np.pi) / 64.0),
])  # fmt: skip
def test_forces_that_cannot_tell_one_bead_are_named(text, times):
    """With the number of evaluations a step; the rest of the forces is not."""
    def python(beads):
        return mp.forces.PythonForce(lambda x: (0.0, np.zeros_like(x)), beads=beads)

    def soft(beads):
        return mp.forces.SoftSphere(beads.of("A"), beads.of("A"), 1.0, 1.0)

    _, system, make = built({"A": 60, "B": 60}, 200, [python, soft])
    system.add_jump(mp.jumps.Reactions(system.topology.handles[0], text, reach=1.0 if "+" in text else None))
    match = f"PythonForce cannot tell what an event changes .* {times:.3g} times"
    with pytest.warns(mp.PerformanceWarning, match=match):
        _ = make().context
    _, system, make = built({"A": 60, "B": 60}, 200, [soft])
    system.add_jump(mp.jumps.Reactions(system.topology.handles[0], "A -> 0; rate = 1"))
    _ = make().context
