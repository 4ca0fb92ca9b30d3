"""Laws of filaments that take subunits from a pool at their ends, and give them back."""

import numpy as np
import pytest
from builders import STILL, refuses, straight, system_with
from medyanpy._kernels.jumps.polymerization import log_integral_of
from scipy.special import gammaln

import medyanpy as mp
from medyanpy.errors import ParameterError, TopologyError
from medyanpy.testing import JumpCase, check_jump, check_mean

LEAST, MOST = 1, 6


def built(nodes, forces=(), z=1.1, on=5.0, copies=1, mass=1.0, timestep=0.05, seed=1, end="plus", fixed=(),
          subunits=(LEAST, MOST), threads=1, box=None, pool=None, jumps=None, hops=False, **more):  # fmt: skip
    """Copies of a filament that do not see each other: (handle, simulation). `z` is C/K_D of a reservoir."""
    nodes = np.asarray(nodes, float)
    topology = mp.Topology()
    places = [k * len(nodes) + i for k in range(copies) for i in fixed]
    handle = topology.add_filaments([nodes] * copies, mass, 1.0, rise=1.0, fixed_nodes=places)
    system = mp.System(topology, box=box)
    for force in forces:
        system.add_force(force(handle))
    pool = system.add_pool(mp.Pool(volume=1.0, concentrations={"G": z}) if pool is None else pool)
    for own in [{}] if jumps is None else jumps:
        rates = {"on_rate": on, "off_rate": on, "end": end} | own
        system.add_jump(mp.jumps.Polymerization(handle, pool["G"], subunits=subunits, **rates, **more))
    if hops:
        system.add_jump(mp.jumps.Reactions(pool, []))
    return handle, mp.Simulation(system, mp.BAGOGABIntegrator(timestep, kT=1.0, seed=seed), threads=threads)


def shares(handle, simulation, link, samples, every=4, first=300, subunits=(LEAST, MOST)):
    """How often each copy has each number of subunits in a link, (copies, numbers)."""
    simulation.context.set_velocities_to_temperature(kT=1.0, seed=3)
    simulation.step(first)
    own = handle.kind.link_starts[:-1] + link
    out = np.zeros((len(own), subunits[1] - subunits[0] + 1))
    for _ in range(samples):
        simulation.step(every)
        n = handle.kind.subunits_of_links(simulation.context.get_state(positions=True))[own]
        out[np.arange(len(own)), n - subunits[0]] += 1.0 / samples
    return out


def check_law(what, found, weights, sees=0.01, first=LEAST, time_series=False):
    """Check shares of all numbers, and their mean to 1 %."""
    expected = weights / weights.sum()
    numbers = first + np.arange(len(weights))
    mean = expected @ numbers
    check_mean(f"{what}: mean", found @ numbers, mean, sees=0.01 * mean, time_series=time_series)
    for n, own, share in zip(numbers, found.T, expected, strict=True):
        check_mean(f"{what}: {n} subunits", own, share, sees=sees, time_series=time_series)


C, W = np.polynomial.legendre.leggauss(200)


def of_directions(energy, z=1.1):
    """z^n times the integral over the direction of a link of length n, of cosine c, from a pivot."""
    return np.array([z**n * (W @ np.exp(-energy(float(n), C))) for n in range(LEAST, MOST + 1)])


def test_a_link_from_a_pivot_in_a_trap():
    """P(n) by quadrature: neither the square of the length nor anything else of the discretisation is left. The mean is
    that of an independent program, 2.7146."""
    k, place = 0.325, 3.059
    weights = of_directions(lambda r, c: 0.5 * k * (r * r - 2.0 * r * place * c))
    assert weights @ np.arange(LEAST, MOST + 1) / weights.sum() == pytest.approx(2.7146, abs=5e-4)
    handle, simulation = built(straight(3), [lambda f: mp.forces.HarmonicTrap(f, k, [0.0, 0.0, place])], fixed=[0],
                               copies=4000, on=8.0, seed=4)  # fmt: skip
    found = shares(handle, simulation, 0, 300, every=6)
    check_law("trap", found, weights)


def test_an_end_at_a_wall():
    """Beyond a wall that is soft, an end is as rare as its energy says."""
    k = 2.0
    wall = lambda f: mp.forces.ExternalField(f, "0.5*k*max(z - w, 0)^2", k=k, w=2.2)  # noqa: E731
    handle, simulation = built(straight(2), [wall], fixed=[0], copies=4000, on=8.0, z=1.3, timestep=0.03, seed=5)
    found = shares(handle, simulation, 0, 300, every=6)
    check_law("wall", found, of_directions(lambda r, c: 0.5 * k * np.maximum(r * c - 2.2, 0.0) ** 2, z=1.3))


@pytest.mark.parametrize(("bending", "rest", "fixman", "counts", "fixed"), [
    (9.0, 0.0, False, (3, 3), [0]), (9.0, 0.8, False, (3, 3), []), (6.0, 0.0, True, (3, 3), []),
    (6.0, 0.0, True, (2, 4, 3, 3), []),
])  # fmt: skip
def test_free_filaments_have_the_weight_of_their_number_however_stiff(bending, rest, fixman, counts, fixed):
    """P(n) of the last link is flat at C = K_D: the joint, softer with a longer link, is divided out."""
    forces = [lambda f: mp.forces.FilamentBending(f, bending, rest)]
    forces += [lambda f: mp.forces.FixmanPotential(f, kT=1.0)] if fixman else []
    handle, simulation = built(straight(*counts), forces, z=1.0, on=16.0, copies=2000, fixed=fixed, timestep=0.04,
                               seed=6)  # fmt: skip
    found = shares(handle, simulation, len(counts) - 1, 400, every=6)
    check_law(f"joint of {bending:g} at {rest:g}", found, np.ones(MOST))


def test_the_integral_of_a_joint():
    edge = np.linspace(0.0, np.pi, 101)
    theta = (0.5 * (edge[1:] + edge[:-1])[:, None] + 0.5 * edge[1] * C).ravel()
    weight = np.tile(0.5 * edge[1] * W, 100)
    cases = [(5.0, 0.0, 2.0, 0.0), (5.0, 0.7, 2.0, 0.25), (7e4, 0.0, 27.0, 0.4), (2.0, 3.0, 4.0, 0.3)]
    cases.append((300.0, 1.5, 1.0, 0.0))
    for modulus, rest, length, q in cases:
        energy = modulus * (1.0 - np.cos(theta - rest)) / (length * 4.1)
        exact = np.log(weight @ (np.exp(-energy) * np.sqrt(1.0 - q * np.cos(theta) ** 2) * np.sin(theta)))
        found = log_integral_of(modulus, modulus * np.cos(rest), modulus * np.sin(rest), length, 4.1, q)
        assert found == pytest.approx(exact, abs=2e-8)
    a = 5.0 / (2.0 * 4.1)
    closed = np.log((1.0 - np.exp(-2.0 * a)) / a)
    assert log_integral_of(5.0, 5.0, 0.0, 2.0, 4.1, 0.0) == pytest.approx(closed, abs=1e-8)


@pytest.mark.parametrize(("counts", "fixed", "q"), [((3, 3), [], 0.25), ((3, 3), [0], 0.5), ((3, 3, 3), [], 1.0 / 3.0)])
def test_rates_divide_by_joints_with_their_metric(counts, fixed, q):
    """The part of sqrt(det Z) that a joint has is 1 - q cos², with the last pivot of the rest, and 1 beside the Fixman
    force: of (3, 3, 3) q = 1/(2 · 3/2), since pivots of equal masses are 2, 2 - 1/2, ... from the far end."""
    bend = lambda f: mp.forces.FilamentBending(f, 6.0)  # noqa: E731
    for fixman in (False, True):
        forces = [bend] + [lambda f: mp.forces.FixmanPotential(f, kT=1.0)] * fixman
        _, simulation = built(straight(*counts), forces, fixed=fixed)
        operation = simulation.context._schedule.jumping.operations[0]
        for both in (4, 6, 9):
            exact = log_integral_of(6.0, 6.0, 0.0, 0.5 * both, 1.0, 0.0 if fixman else q)
            assert operation.log_joint_of(0, both) == pytest.approx(exact, abs=1e-12)


def test_both_ends_of_a_filament_in_a_trap():
    """Ends that push against one potential: the joint law of both last links."""
    k = 0.15
    handle, simulation = built(straight(2, 2), [lambda f: mp.forces.HarmonicTrap(f, k, [0.0, 0.0, 2.0])], fixed=[1],
                               z=1.2, copies=2000, end="both", subunits=(1, 4), seed=7)  # fmt: skip
    found = shares(handle, simulation, 0, 300, subunits=(1, 4))
    # Links at a fixed node do not see each other.
    check_law("both ends", found, np.array([1.2**n * np.exp(-0.5 * k * n * n) for n in range(1, 5)]))


def test_a_pool_that_is_used_up():
    """Two filaments and N subunits: N!/(N - n)! z^n, for the sum of both."""
    total, z, most = 9, 0.35, 6
    pool = mp.Pool(volume=1.0 / z, counts={"G": total - 2})
    handle, simulation = built(straight(1), copies=2, pool=pool, on=5.0, fixed=[0], timestep=2.0, mass=STILL)
    seen = []
    for _ in range(30000):
        simulation.step(1)
        state = simulation.context.get_state(positions=True)
        own = handle.subunits(state)
        assert own.sum() + state.pools["G"] == total
        seen.append(own.sum())
    numbers = np.arange(2, total + 1)
    ways = np.array([sum(1 <= n - m <= most for m in range(1, most + 1)) for n in numbers])
    weights = ways * np.exp(gammaln(total + 1) - gammaln(total - numbers + 1) + numbers * np.log(z))
    found = np.eye(total + 1)[np.array(seen)][:, 2:]
    check_law("pool", found, weights, first=2, sees=0.03, time_series=True)


def test_compartments_take_and_give_in_the_cell_of_the_shorter_filament():
    """A link that reaches into a second cell: every state of the link and of both cells has its weight."""
    total, ratio = 6, 60.0
    counts = {"G": np.array([[[3, 2]]])}
    grid = mp.Compartments((1, 1, 2), (10.0, 10.0, 2.5), counts, {"G": 3.0}, origin=(-5.0, -5.0, 0.0))
    handle, simulation = built(straight(1), pool=grid, fixed=[0], timestep=1.0, subunits=(1, 5), seed=2, mass=STILL,
                               jumps=[{"on_rate": ratio, "off_rate": 1.0}], hops=True)  # fmt: skip
    states = [(n, a) for n in range(1, 6) for a in range(total - n + 1)]
    seen = []
    for _ in range(40000):
        simulation.step(1)
        state = simulation.context.get_state(positions=True)
        own = int(handle.subunits(state)[0]), int(state.pools["G"][0, 0, 0])
        assert own[0] + state.pools["G"].sum() == total
        seen.append(states.index(own))
    volume = grid.cell_volume
    logs = [n * np.log(ratio / volume) - gammaln(a + 1) - gammaln(total - n - a + 1) for n, a in states]
    weights = np.exp(logs)
    weights /= weights.sum()
    found = np.eye(len(states))[seen]
    for k, share in enumerate(weights):
        if share > 0.02:
            check_mean(f"state {states[k]}", found[:, k], share, sees=0.02, time_series=True)
    # The sharpest sign of a way without a way back: molecules in the first cell, as the end is in the second.
    for n in range(1, 6):
        inside = [i for i, (m, _) in enumerate(states) if m == n]
        expected = sum(weights[i] * states[i][1] for i in inside)
        check_mean(f"molecules beside {n} subunits", found[:, inside] @ [states[i][1] for i in inside], expected,
                   sees=0.1, time_series=True)  # fmt: skip


def case(z=1.3, on=3.0, off=3.0, k=0.4, place=2.6):
    """Links that do not move, in a trap: rates of all states."""
    energies = 0.5 * k * (np.arange(LEAST, MOST + 1) - place) ** 2
    rates = np.zeros((MOST, MOST))
    for i in range(MOST - 1):
        gain = energies[i + 1] - energies[i]
        rates[i, i + 1] = on * z * min(1.0, np.exp(-gain))
        rates[i + 1, i] = off * min(1.0, np.exp(gain))
    trap = [lambda f: mp.forces.HarmonicTrap(f, [0.0, 0.0, k], [0.0, 0.0, place])]

    def make(copies, seed, threads, timestep):
        return built(straight(2), trap, z=z, copies=copies, fixed=[0], mass=STILL, timestep=timestep, seed=seed,
                     threads=threads, jumps=[{"on_rate": on, "off_rate": off}])[1]  # fmt: skip

    # Nodes of each copy follow each other.
    return JumpCase("Polymerization", make, lambda state: state.column("subunits")[::2] - LEAST, rates, energies,
                    weights=(on * z / off) ** np.arange(MOST), start=1)  # fmt: skip


@pytest.mark.slow
def test_contract():
    """Rates, waiting times, books, events and bits of links that do not move."""
    check_jump(case(), copies=20000)


def pushing(force, copies, on, off, subunits, seed):
    """Filaments that point along z, whatever their length, each below a bead that a force pushes down: (handle,
    simulation)."""
    across = 40.0 * np.arange(copies)[:, None] * [1.0, 0.0, 0.0]
    topology = mp.Topology()
    actin = topology.add_filaments(list(across[:, None] + straight(3)), 1.0, 1.0, rise=1.0,
                                   fixed_nodes=2 * np.arange(copies))  # fmt: skip
    beads = topology.add_beads(across + [0.0, 0.0, 9.5], 1.0, 1.0)
    system = mp.System(topology)
    direction = "0.5*k*((x - a)^2 + y^2)/((x - a)^2 + y^2 + z^2)"
    system.add_force(mp.forces.ExternalField(actin.beads[1::2], direction, k=1000.0, a=across[:, 0]))
    system.add_force(mp.forces.HarmonicTrap(beads, [60.0, 60.0, 0.0], across))
    system.add_force(mp.forces.UniformField(beads, [0.0, 0.0, -force]))
    system.add_force(mp.forces.SoftSphere(actin, beads, 20.0, 6.0))
    pool = system.add_pool(mp.Pool(volume=1.0, concentrations={"G": 1.0}))
    system.add_jump(mp.jumps.Polymerization(actin, pool["G"], on_rate=on, off_rate=off, subunits=subunits))
    return actin, mp.Simulation(system, mp.BAGOGABIntegrator(0.03, kT=1.0, seed=seed), threads=1)


def test_an_end_that_pushes_is_as_long_as_its_work_allows():
    """P(n) falls by exp(-F δ/kT) for each subunit, against a bead that a force F pushes back."""
    force = 1.2
    actin, simulation = pushing(force, 2000, 4.0 * np.exp(force), 4.0, (2, 4), seed=8)
    found = shares(actin, simulation, 0, 800, every=8, first=600, subunits=(2, 4))
    check_law("work", found, np.ones(3), first=2, sees=0.02)


def test_a_ratchet_grows_as_its_load_says():
    """V = δ (k_on C exp(-F δ/kT) - k_off), where the obstacle moves faster than the filament grows; a rate that reads
    the force of the moment is three times too fast."""
    force, on, off, time = 1.0, 0.05, 0.005, 600.0
    actin, simulation = pushing(force, 800, on, off, (1, 10000), seed=5)
    simulation.context.set_velocities_to_temperature(kT=1.0, seed=3)
    simulation.step(400)
    start = actin.subunits(simulation.context.get_state(positions=True))
    simulation.step(round(time / 0.03))
    grown = actin.subunits(simulation.context.get_state(positions=True)) - start
    check_mean("velocity", grown / time, on * np.exp(-force) - off, sees=0.002)


def test_the_two_ends_of_actin_drive_subunits_through_a_filament():
    """Treadmilling: 1.629 kT for each subunit, at a flux of 0.578 /s at the critical concentration; all booked."""
    unit = mp.units.per_micromolar_second
    critical = (1.4 + 0.8) / (11.6 + 1.3) * mp.units.micromolar
    jumps = [{"end": "plus", "on_rate": 11.6 * unit, "off_rate": 1.4},
             {"end": "minus", "on_rate": 1.3 * unit, "off_rate": 0.8}]  # fmt: skip
    pool = mp.Pool(volume=1e9, concentrations={"G": critical})
    n, time = 400, 60.0
    handle, simulation = built(straight(4000, 4000), copies=n, pool=pool, jumps=jumps, subunits=(1, 9000),
                               mass=STILL, timestep=1.0, seed=9)  # fmt: skip
    simulation.report_work = True
    heard = simulation.context.events()
    simulation.step(int(time))
    state = simulation.context.get_state(positions=True, energy=True)
    events = heard.heard()
    through, chemical = np.zeros(n), 0.0
    net = {}
    for name in ("Polymerization", "Polymerization 2"):
        own = [e for e in events if e.jump == name]
        net[name] = sum(1 if e.kind == "on" else -1 for e in own)
        chemical += sum(e.chemical_energy for e in own)
    assert net["Polymerization"] > 0 > net["Polymerization 2"]
    links = handle.kind.subunits_of_links(state).reshape(n, 2) - 4000
    assert links.sum() == sum(net.values())
    through = 0.5 * (links[:, 1] - links[:, 0]) / time
    check_mean("flux", through, 0.57829, sees=0.06)
    # Each event has kT ln(C/K_D) of its own end: together those of the flux, and of the change in length.
    plus, minus = (np.log(critical / (j["off_rate"] / j["on_rate"])) for j in jumps)
    expected = net["Polymerization"] * plus + net["Polymerization 2"] * minus
    assert chemical == pytest.approx(expected, rel=1e-9)
    # Half of the difference each, whatever the concentration.
    through = 0.5 * (plus - minus) * (net["Polymerization"] - net["Polymerization 2"])
    assert state.entropy_production == pytest.approx(through, rel=1e-9)
    assert plus - minus == pytest.approx(1.62903, abs=1e-5)


def test_balanced_ends_are_not_driven_and_close_their_books():
    _, simulation = built(straight(3, 3, 3), [lambda f: mp.forces.HarmonicTrap(f, 0.1, [0.0, 0.0, 2.0]),
                                                   lambda f: mp.forces.FilamentBending(f, 6.0)],
                               copies=50, end="both", on=5.0)  # fmt: skip
    simulation.report_work = True
    start = simulation.context.get_state(positions=True, energy=True, velocities=True)
    simulation.step(400)
    end = simulation.context.get_state(positions=True, energy=True, velocities=True)
    assert simulation.system["Polymerization"].counts.accepted > 1000
    assert end.chemical_work == 0.0
    parts = sum(getattr(end, n) - getattr(start, n) for n in ("heat", "shadow_work", "protocol_work", "chemical_work"))
    assert parts == pytest.approx(end.total_energy - start.total_energy, abs=1e-10)


def test_velocities_and_directions_stay():
    handle, simulation = built(straight(3, 3), [lambda f: mp.forces.FilamentBending(f, 6.0)], copies=30, timestep=1e-9)
    context = simulation.context
    context.set_velocities_to_temperature(kT=1.0, seed=1)
    before = context.get_state(positions=True, velocities=True)
    simulation.system["Polymerization"].set(on_rate=2e8, off_rate=2e8)
    simulation.step(3)
    after = context.get_state(positions=True, velocities=True)
    moved = handle.subunits(before) != handle.subunits(after)
    assert moved.sum() > 10
    np.testing.assert_allclose(after.velocities, before.velocities, atol=1e-3)
    x = [s.positions[handle.beads].reshape(30, 3, 3) for s in (before, after)]
    ends = [(y[:, 2] - y[:, 1]) / np.linalg.norm(y[:, 2] - y[:, 1], axis=1)[:, None] for y in x]
    np.testing.assert_allclose(ends[0], ends[1], atol=1e-6)


def bundle(state=None):
    """Filaments so close that their ends meet each other, beads, a membrane and links."""
    topology = mp.Topology()
    mesh = mp.TriangleMesh.flat_sheet(6, 6, 2.0).translated([-1.0, -1.0, 9.0])
    sheet = topology.add_membrane(mesh, 1.0, 1.0)
    rng = np.random.default_rng(3)
    nodes = [straight(3, 2, 2) + [2.0 * (i % 4), 2.0 * (i // 4), 0.0] for i in range(12)]
    actin = topology.add_filaments(nodes, 1.0, 1.0, rise=1.0, name="actin")
    beads = topology.add_beads(rng.uniform([0.0, 0.0, 0.0], [6.0, 4.0, 8.0], (40, 3)), 1.0, 1.0)
    system = system_with(topology, mp.forces.MembraneEdgeSprings(sheet, 5.0, 2.0),
                         mp.forces.FilamentBending(actin, 8.0),
                         mp.forces.SoftCollisions([actin, beads, sheet], 10.0, [0.6, 0.5, 0.1]),
                         mp.forces.SoftSphere(actin, beads, 6.0, 1.3))  # fmt: skip
    ends = actin.sites(np.arange(12), 2, 0.7)
    system.add_force(mp.forces.Links(ends, mp.Sites.beads(beads.beads[:12]), stiffness=0.5, length=2.0))
    system.add_force(mp.forces.HarmonicTrap([actin, beads], 0.05, [3.0, 2.0, 4.0]))
    pool = system.add_pool(mp.Pool(volume=1.0, concentrations={"G": 2.0}))
    system.add_jump(mp.jumps.Polymerization(actin, pool["G"], end="both", on_rate=30.0, off_rate=30.0, subunits=(1, 8)))
    simulation = mp.Simulation(system, mp.BAGOGABIntegrator(0.01, kT=1.0, seed=2), threads=1)
    if state is not None:
        simulation.context.set_state(state)
    return simulation


def test_lists_of_forces_follow_ends_that_jump():
    """Energies and forces are those of a context made anew; so is what each event says that it gains."""
    simulation = bundle()
    simulation.report_work = True
    start = simulation.context.get_state(positions=True, energy=True)
    for _ in range(5):
        simulation.step(40)
        state = simulation.context.get_state(positions=True, velocities=True, forces=True, energy=True)
        other = bundle(state).context.get_state(positions=True, forces=True, energy=True)
        assert other.energies == pytest.approx(state.energies, rel=1e-8, abs=1e-8)
        np.testing.assert_allclose(other.forces, state.forces, atol=1e-6)
    assert simulation.system["Polymerization"].counts.accepted > 1000
    parts = sum(getattr(state, n) for n in ("heat", "shadow_work", "protocol_work", "chemical_work"))
    assert parts == pytest.approx(state.total_energy - start.total_energy, abs=1e-9)


@pytest.mark.parametrize(
    ("error", "phrase", "given"),
    [
        (ParameterError, "give two of on_rate=", {"off_rate": None}),
        (ParameterError, "give two of on_rate=", {"dissociation_constant": 1.0}),
        (ParameterError, 'end must be "plus", "minus" or "both", not \'barbed\'', {"end": "barbed"}),
        (ParameterError, "on_rate", {"on_rate": -1.0}),
        (ParameterError, r"subunits\[0\]", {"subunits": (0, 3)}),
        (ParameterError, r"subunits\[1\]", {"subunits": (4, 3)}),
        (ParameterError, "must be two, fewest and most", {"subunits": (4, 3, 2)}),
        (ParameterError, r'species must be one of a pool, as pool\["G-actin"\]', {"species": "G"}),
        (TopologyError, "added with rise=", {"filaments": "plain"}),
        (TopologyError, "link 1 of filament 0 has 3 subunits, .* has 4 to 8: .* give subunits=", {"subunits": (4, 8)}),
        (TopologyError, "node 2 of filament 1 is fixed", {"filaments": "fixed"}),
    ],
)
def test_refusals(error, phrase, given):
    topology = mp.Topology()
    nodes = [straight(3, 3), straight(3, 3)]
    made = {"good": topology.add_filaments(nodes, 1.0, 1.0, rise=1.0), "plain": topology.add_filaments(nodes, 1.0, 1.0),
            "fixed": topology.add_filaments(nodes, 1.0, 1.0, rise=1.0, fixed_nodes=[5])}  # fmt: skip
    system = mp.System(topology)
    pool = system.add_pool(mp.Pool(volume=1.0, concentrations={"G": 1.0}))
    given = {"filaments": "good", "species": pool["G"], "on_rate": 1.0, "off_rate": 1.0} | given

    def add():
        rest = {name: value for name, value in given.items() if name not in ("filaments", "species")}
        system.add_jump(mp.jumps.Polymerization(made[given["filaments"]], given["species"], **rest))
        mp.Context(system, mp.BAGOGABIntegrator(0.01, kT=1.0))

    refuses(error, phrase, add)


def test_refusal_of_moduli_of_their_own():
    refuses(ParameterError, "bending_modulus of FilamentBending differs between joints", built, straight(3, 3, 3),
            [lambda f: mp.forces.FilamentBending(f, [1.0, 2.0])])  # fmt: skip


def test_rates_and_constants():
    handle, simulation = built(straight(3), jumps=[{"on_rate": 4.0, "off_rate": None, "dissociation_constant": 0.5}])
    jump = simulation.system["Polymerization"]
    assert jump.rates == (4.0, 2.0)
    jump.set(off_rate=3.0)
    assert jump.rates == (4.0, 3.0)
    jump.set(dissociation_constant=0.25)
    assert jump.rates == (4.0, 1.0)
    jump.set(on_rate=None, off_rate=2.0)
    assert jump.rates == (8.0, 2.0)
    assert (jump.end, jump.subunits, jump.filaments) == ("plus", (LEAST, MOST), handle)


def test_weights_of_states_for_replica_exchange():
    """Subunits and joints are weighed once, whether one jump has both ends or each has its own."""
    for jumps in ([{"end": "both"}], [{"end": "plus"}, {"end": "minus"}]):
        handle, simulation = built(straight(3, 2), [lambda f: mp.forces.FilamentBending(f, 6.0)], copies=3,
                                   jumps=[{"on_rate": 3.0, "off_rate": 2.0} | own for own in jumps])  # fmt: skip
        simulation.step(40)
        state = simulation.context.get_state(positions=True, energy=True)
        jumping = simulation.context._schedule.jumping
        pairs = list(zip(jumping.jumps, jumping.operations, strict=True))
        for kT in (1.0, 1.3):
            both = handle.subunits(state)
            joints = [log_integral_of(6.0, 6.0, 0.0, 0.5 * n, kT, 0.25) for n in both.tolist()]
            # The reservoir has 1.1/nm³.
            expected = both.sum() * np.log(1.1 * 1.5) - sum(joints)
            assert sum(jump.log_weight(own, state, kT) for jump, own in pairs) == pytest.approx(expected)


def knocking(law, force, stiffness, first=600, steps=2400, seed=5, copies=500, on=0.2, off=0.0, timestep=0.02):
    """Velocity of filaments below beads that a force pushes down: kT = 1, a rise of 1."""
    across = 40.0 * np.arange(copies)[:, None] * [1.0, 0.0, 0.0]
    topology = mp.Topology()
    actin = topology.add_filaments(list(across[:, None] + straight(3)), 1e9, 1.0, rise=1.0,
                                   fixed_nodes=2 * np.arange(copies))  # fmt: skip
    beads = topology.add_beads(across + [0.0, 0.0, 8.9], 0.1, 0.3)
    system = system_with(topology, mp.forces.HarmonicTrap(beads, [800.0, 800.0, 0.0], across),
                         mp.forces.UniformField(beads, [0.0, 0.0, -force]),
                         mp.forces.SoftSphere(actin, beads, stiffness, 6.0))  # fmt: skip
    pool = system.add_pool(mp.Pool(volume=1.0, concentrations={"G": 1.0}))
    system.add_jump(mp.jumps.Polymerization(actin, pool["G"], on_rate=on, off_rate=off, subunits=(1, 10000),
                                            rates=law))  # fmt: skip
    simulation = mp.Simulation(system, mp.BAGOGABIntegrator(timestep, kT=1.0, seed=seed), threads=1)
    simulation.context.set_velocities_to_temperature(kT=1.0, seed=3)
    simulation.step(first)
    start = actin.subunits(simulation.context.get_state(positions=True))
    simulation.step(steps)
    grown = actin.subunits(simulation.context.get_state(positions=True)) - start
    return grown / (steps * timestep)


FEW_STEPS = pytest.mark.filterwarnings("ignore:.* reads nearly the force of the moment:medyanpy.UnitsWarning")


@FEW_STEPS
def test_rates_that_read_a_force_need_its_average():
    """Of 3 pN on 100 pN/nm, subunits of 2.7 nm, 300 K: averaged, the law has exp(-Fδ/kT), and the force of the moment
    <exp(-fδ/kT)>, which is 5.9 times as much."""
    kT, rise, free = 4.141947, 2.7, 0.2
    force, k = 3.0 * rise / kT, 100.0 * rise**2 / kT
    # How far the bead is into the contact: p(s) ~ exp(-ks²/2 + ...) beyond 0, exp(-F|s|) before it.
    s = np.linspace(0.0, 2.0, 200001)
    inside = np.exp(force * s - 0.5 * k * s**2)
    weight = np.trapezoid(inside, s) + 1.0 / force
    moment = (np.trapezoid(inside * np.exp(-k * s), s) + 1.0 / force) / weight
    assert moment / np.exp(-force) == pytest.approx(5.9, abs=0.05)
    found = knocking(mp.jumps.MedyanRatchet(average=0.0), force, k, copies=600, timestep=0.015, steps=2400)
    check_mean("force of the moment", found, free * moment, sees=0.025)
    found = knocking(mp.jumps.MedyanRatchet(average=20.0), force, 80.0, first=5000, steps=5000, copies=300)
    check_mean("averaged", found, free * np.exp(-force), sees=0.01)


@FEW_STEPS
def test_a_growing_force_of_its_own():
    """CytosimGrowth: exp(-f/F) of a load that does not fluctuate, both ways; a force that pulls changes nothing."""
    pull = lambda f: mp.forces.UniformField(f, [0.0, 0.0, -1.5])  # noqa: E731
    push = lambda f: mp.forces.UniformField(f, [0.0, 0.0, 1.5])  # noqa: E731
    for force, factor in ((pull, np.exp(-1.5 / 0.9)), (push, 1.0)):
        for links in (None, 40):
            # New links go on straight.
            fixman = [lambda f: mp.forces.FilamentBending(f, 5e4), lambda f: mp.forces.FixmanPotential(f, kT=1.0)]
            fixman = fixman if links else []
            topology = mp.Topology()
            handle = topology.add_filaments([straight(6, 5)] * 300, STILL, 1.0, rise=1.0, capacity_links=links)
            system = mp.System(topology)
            for one in (force, *fixman):
                system.add_force(one(handle))
            pool = system.add_pool(mp.Pool(volume=1.0, concentrations={"G": 1.0}))
            most = (2, 10000) if links is None else (3, 8)
            system.add_jump(mp.jumps.Polymerization(handle, pool["G"], on_rate=3.0, off_rate=0.3, subunits=most,
                                                    rates=mp.jumps.CytosimGrowth(0.9, average=0.0)))  # fmt: skip
            simulation = mp.Simulation(system, mp.BAGOGABIntegrator(0.5, kT=1.0, seed=2), threads=1)
            simulation.report_work = True
            heard = simulation.context.events()
            simulation.step(20)
            n = handle.subunits(simulation.context.get_state(positions=True)) - 11
            check_mean("velocity", n / 10.0, 3.0 * factor - 0.3, sees=0.3)
            if links is None:
                # kT ln(there/back) + dU.
                for event in heard.heard()[:50]:
                    up = np.log(10.0 * factor) * (1.0 if event.kind == "on" else -1.0)
                    assert event.chemical_energy == pytest.approx(up + event.energy, abs=1e-6)


def test_averaged_forces_are_state(tmp_path):
    def made():
        law = mp.jumps.MedyanRatchet(average=0.5)
        return built(straight(3, 3), [lambda f: mp.forces.FilamentBending(f, 6.0),
                                      lambda f: mp.forces.HarmonicTrap(f, 0.5, [0.0, 0.0, 3.0])], copies=20, fixed=[0],
                     rates=law)  # fmt: skip

    handle, simulation = made()
    simulation.step(40)
    simulation.save_checkpoint(tmp_path / "here.npz")
    simulation.step(40)
    end = simulation.context.get_state(positions=True)
    one = mp.Simulation.resume(tmp_path / "here.npz")
    one.step(40)
    assert (one.context.get_state(positions=True).positions == end.positions).all()
    jump = simulation.system["Polymerization"]
    assert jump.driven
    refuses(ParameterError, "average", mp.jumps.MedyanRatchet, average=-1.0)
    jumping = simulation.context._schedule.jumping
    arrays = {name: array.copy() for name, array in jumping.operations[0].arrays().items()}
    arrays["load"][3] = np.inf
    refuses(ParameterError, "averaged forces must be finite", jump.check_state, jumping.operations[0], arrays)
    assert handle.subunits(end).min() > 3
