"""Laws of species, and of reactions of points in the triangles of a membrane."""

import pickle

import numpy as np
import pytest
from builders import balanced, mean_of_complexes, moments, octahedron, refuses, uneven_sheet
from scipy.special import gammaln

import medyanpy as mp
from medyanpy.jumps._reaction_grounds import macroscopic_rate, microscopic_rate
from medyanpy.testing import check_mean

MASSES = {"A": 1.0, "B": 2.0, "C": 3.0, "D": 2.5}


def torus(n=14, m=7, radius=2.0, tube=0.8):
    """Vertices with saddles inside and cones outside."""
    i, j = np.meshgrid(np.arange(n), np.arange(m), indexing="ij")
    a, b = 2.0 * np.pi * i / n, 2.0 * np.pi * j / m
    x = np.stack([(radius + tube * np.cos(b)) * np.cos(a), (radius + tube * np.cos(b)) * np.sin(a), tube * np.sin(b)],
                 axis=-1).reshape(-1, 3)  # fmt: skip
    at = lambda k, q: (k % n) * m + q % m  # noqa: E731
    faces = [[at(k, q), at(k + 1, q), at(k + 1, q + 1)] for k in range(n) for q in range(m)]
    faces += [[at(k, q), at(k + 1, q + 1), at(k, q + 1)] for k in range(n) for q in range(m)]
    return mp.TriangleMesh(x, np.array(faces))


MESHES = {"octahedron": octahedron, "torus": torus, "sheet": uneven_sheet}


def built(mesh, counts, capacity, forces=(), species=("A", "B", "C"), friction=1.0, seed=1, threads=1, timestep=0.05,
          fixed=True, integrator=mp.BAGOGABIntegrator):  # fmt: skip
    topology = mp.Topology()
    membrane = topology.add_membrane(mesh, vertex_mass=50.0, vertex_friction=0.0 if fixed else 5.0, fixed=fixed)
    numbers = {name: {"mass": MASSES[name], "friction": friction} for name in species}
    points = topology.add_intriangle_points(membrane, species=numbers, counts=counts, capacity=capacity, seed=seed)
    system = mp.System(topology)
    for force in forces:
        system.add_force(force(points))
    return points, system, lambda: mp.Simulation(system, integrator(timestep, kT=1.0, seed=seed), threads=threads)


def operation_of(simulation):
    schedule = simulation.context._schedule
    return schedule.jumping.operations[0], simulation.context._store


@pytest.mark.parametrize("name", MESHES)
def test_straight_lines_have_the_area_of_a_disc_and_are_the_same_from_both_ends(name):
    """The number of straight lines from a place, integrated over all others, is π R² at cones, saddles and borders."""
    mesh, reach = MESHES[name](), 1.1
    points, system, make = built(mesh, {"A": 2000, "B": 2000}, 4001)
    system.add_jump(mp.jumps.Reactions(points, "A + B <-> C; k_on = 1, k_off = 1", reach=reach))
    operation, store = operation_of(make())
    rank, of = store.layout.rank, store.arrays["species"]
    places = rank[points.beads]
    found, pairs = [], {0: [], 1: []}
    for place in places[::4]:
        ends, lines = operation.lines(store.program, int(place), 1 - int(of[place]))
        assert (np.hypot(*lines.T) < reach).all()
        found.append(len(ends) * mesh.area / 2000)
        pairs[int(of[place])] += [(min(place, end), max(place, end)) for end in ends]
    check_mean(f"area of a disc on a {name}", np.array(found), np.pi * reach**2, sees=0.05 * np.pi * reach**2)
    chosen = set(places[::4].tolist())
    inside = [sorted(pair for pair in own if set(pair) <= chosen) for own in pairs.values()]
    assert inside[0] == inside[1]
    assert len(inside[0]) > 1000
    if name == "octahedron":
        # Several lines between two points are common there: this is not the shortest distance.
        assert len(inside[0]) > 1.05 * len(set(inside[0]))


def test_lines_within_a_plane_end_where_the_points_are():
    points, system, make = built(uneven_sheet(6), {"A": 300, "B": 300}, 601)
    system.add_jump(mp.jumps.Reactions(points, "A + B <-> C; k_on = 1, k_off = 1", reach=0.9))
    simulation = make()
    simulation.context.get_state(positions=True)
    operation, store = operation_of(simulation)
    x, of = store.x, store.arrays["species"]
    looked = 0
    for place in store.layout.rank[points.beads]:
        if ((x[place, :2] < 0.9) | (x[place, :2] > 4.1)).any():
            continue
        others = np.flatnonzero((of == 1 - of[place]) & (np.linalg.norm(x - x[place], axis=1) < 0.9))
        ends, lines = operation.lines(store.program, int(place), 1 - int(of[place]))
        assert sorted(ends) == others.tolist()
        assert np.allclose(np.hypot(*lines.T), np.linalg.norm(x[ends] - x[place], axis=1))
        for end, (a, b) in zip(ends, lines, strict=True):
            face, second, third = operation.ground.flown(store.program, int(place), a, b)
            corners = x[store.faces[face]]
            there = corners[0] + second * (corners[1] - corners[0]) + third * (corners[2] - corners[0])
            assert np.allclose(there, x[end], atol=1e-9)
        looked += len(ends)
    assert looked > 1000


def watched(simulation, points, samples, every):
    """Counts of the species at regular times."""
    simulation.step(400)
    out = []
    for _ in range(samples):
        simulation.step(every)
        out.append(list(points.counts(simulation.context.get_state(positions=True)).values()))
    return np.array(out, float)


@pytest.mark.parametrize(("name", "placement"), [("octahedron", 0.5), ("torus", 0.0), ("sheet", 1.0)])
def test_association_has_its_constant_on_any_mesh(name, placement):
    """A + B <-> C of ideal points: weights K_D^-c / (a! b! c!) times areas, with whole numbers of molecules."""
    mesh, n = MESHES[name](), 12
    points, system, make = built(mesh, {"A": n, "B": n}, 2 * n)
    system.add_jump(mp.jumps.Reactions(
        points, "A + B <-> C", reach=1.0, dissociation_constant=n / mesh.area, off_rate=3.0, placement=placement,
        most_partners=40,
    ))  # fmt: skip
    simulation = make()
    simulation.report_work = True
    counts = watched(simulation, points, 5500, 8)
    assert (counts[:, :2] + counts[:, 2:] == n).all()
    mean, variance = mean_of_complexes(n, 1.0 / n)
    check_mean(f"C on a {name}", counts[:, 2], mean, time_series=True, sees=0.35)
    check_mean("spread of their number", (counts[:, 2] - mean) ** 2, variance, time_series=True, sees=0.8)
    state = simulation.context.get_state(positions=True, energy=True)
    balanced(state)
    assert state.chemical_work == 0.0


def test_two_of_one_kind_have_twice_the_constant():
    """A + A <-> D: each pair once. Weights z_D^d z_A^a / (a! d!), with ρ_A²/ρ_D = K_D."""
    mesh, n = octahedron(), 16
    points, system, make = built(mesh, {"A": n}, n, species=("A", "D"))
    system.add_jump(mp.jumps.Reactions(
        points, "A + A <-> D", reach=1.0, dissociation_constant=n / mesh.area, off_rate=3.0
    ))  # fmt: skip
    counts = watched(make(), points, 4000, 8)
    d = np.arange(n // 2 + 1)
    weight = -d * np.log(n) - gammaln(n - 2 * d + 1) - gammaln(d + 1)
    weight = np.exp(weight - weight.max())
    weight /= weight.sum()
    check_mean("D", counts[:, 1], weight @ d, time_series=True, sees=0.3)


@pytest.mark.parametrize("sharing", [{}, {"load_sharing": 0.4, "load_limit": 2.0}])
def test_a_field_on_all_points_shifts_the_constant_as_its_integrals_do(sharing):
    """C in a field is one point, A and B are two: P(C)/P(AB) = ∫e^{-U}dA / (K_D (∫e^{-U}dA)²) for one pair."""
    mesh, strength = uneven_sheet(), 1.5
    points, system, make = built(
        mesh, {"A": 6, "B": 6}, 12, [lambda p: mp.forces.HarmonicTrap(p, strength, (2.0, 2.0, 0.0))], friction=3.0
    )
    side = np.linspace(0.0, 4.0, 4001)
    one = np.trapezoid(np.exp(-0.5 * strength * (side - 2.0) ** 2), side)
    system.add_jump(mp.jumps.Reactions(
        points, "A + B <-> C", reach=0.8, dissociation_constant=6.0 / one**2, off_rate=3.0, most_partners=24,
        **sharing,
    ))  # fmt: skip
    counts = watched(make(), points, 4000, 8)
    mean, _ = mean_of_complexes(6, 1.0 / 6.0)
    check_mean("C in a field", counts[:, 2], mean, time_series=True, sees=0.3)


def test_switches_are_binomial_and_keep_maxwells_distribution():
    points, system, make = built(octahedron(), {"A": 60}, 60, species=("A", "B"), friction=2.0)
    system.add_jump(mp.jumps.Reactions(points, "A <-> B", on_rate=2.0, off_rate=1.0))
    simulation = make()
    numbers, energies = [], []
    for _ in range(3000):
        simulation.step(10)
        state = simulation.context.get_state(positions=True, velocities=True)
        rows, of = state.living(points), state.column("species")
        mass = np.array([1.0, 2.0])[of[rows]]
        energy = 0.5 * mass * (state.velocities[rows] ** 2).sum(axis=1)
        numbers.append((of[rows] == 1).sum())
        energies.append([energy[of[rows] == k].mean() for k in range(2)])
    numbers = np.array(numbers, float)
    check_mean("B", numbers, 40.0, time_series=True, sees=1.0)
    check_mean("spread of B", (numbers - 40.0) ** 2, 40.0 / 3.0, time_series=True, sees=4.0)
    for k, name in enumerate("AB"):
        check_mean(f"kinetic energy of {name}", np.array(energies)[:, k], 1.0, time_series=True, sees=0.06)


def test_production_and_decay_are_poisson_and_created_points_are_thermal():
    """Without friction nothing but their creation gives points their velocities."""
    mesh = torus()
    points, system, make = built(mesh, {}, 80, species=("C",), friction=0.0)
    system.add_jump(mp.jumps.Reactions(points, f"0 <-> C; k_on = {9.0 / mesh.area}, k_off = 1.0"))
    simulation = make()
    counts, energies = [], []
    for _ in range(4000):
        simulation.step(10)
        state = simulation.context.get_state(positions=True, velocities=True)
        there = state.living(points)
        counts.append(len(there))
        energies.append(0.5 * MASSES["C"] * (state.velocities[there] ** 2).sum() - len(there))
    counts = np.array(counts, float)
    check_mean("C", counts, 9.0, time_series=True, sees=0.8)
    check_mean("spread of C", (counts - 9.0) ** 2, 9.0, time_series=True, sees=3.0)
    check_mean("kinetic energy beyond kT each", np.array(energies), 0.0, time_series=True, sees=1.2)


@pytest.mark.parametrize("text", ["M + A <-> MA", "A <-> MA"])
def test_molecules_of_a_pool_bind_to_points_and_to_the_membrane(text):
    """Of 30 molecules in V: binomial sites 20!/(n! (20-n)!), or a membrane 1/n!, times 30!/(30-n)! (k_on/(k_off V))^n,
    and the area for a membrane. A second jump shares the pool and changes nothing of the balance."""
    mesh, total, sites, volume = octahedron(), 30, 20, 50.0
    on_points = text.startswith("M")
    numbers = {name: {"mass": mass, "friction": 1.0} for name, mass in (("M", 1.0), ("MA", 2.0))}
    topology = mp.Topology()
    membrane = topology.add_membrane(mesh, vertex_mass=1.0, fixed=True)
    counts = {"M": sites if on_points else 0}
    points = topology.add_intriangle_points(membrane, species=numbers, counts=counts, capacity=40, seed=1)
    system = mp.System(topology)
    pool = system.add_pool(mp.Pool(volume=volume, counts={"A": total, "X": 0}))
    on = 2.0 * volume / 30.0 if on_points else 2.0 * volume / mesh.area
    system.add_jump(mp.jumps.Reactions(points, text, on_rate=on, off_rate=2.0, pool=pool))
    simulation = mp.Simulation(system, mp.BAGOGABIntegrator(0.05, kT=1.0, seed=1))
    seen = []
    for _ in range(4000):
        simulation.step(10)
        state = simulation.context.get_state(positions=True)
        seen.append([points.counts(state)["MA"], state.pools["A"]])
    bound, free = np.array(seen, float).T
    assert (bound + free == total).all()
    n = np.arange((sites if on_points else total) + 1)
    weight = n * np.log(1.0 / 30.0 if on_points else 1.0) - gammaln(total - n + 1) - gammaln(n + 1)
    weight = weight - gammaln(sites - n + 1) if on_points else weight
    mean, variance = moments(weight)
    check_mean("bound", bound, mean, time_series=True, sees=0.5)
    check_mean("spread of bound", (bound - mean) ** 2, variance, time_series=True, sees=2.0)
    assert not system["Reactions"].driven


@pytest.mark.parametrize("jump", ["Adsorption", "Reactions"])
def test_molecules_of_compartments_are_those_of_the_place(jump):
    """Two cells, a sheet across both, one species alike on both sides. Molecules neither diffuse nor hop, points do not
    leave their cell: N_c of each cell by N!/(N-n)! (k/k' V_c)^n 1/n! A_c^n, apart from the other's."""
    mesh, total, size = uneven_sheet(), (24, 6), 5.0
    topology = mp.Topology()
    membrane = topology.add_membrane(mesh, vertex_mass=1.0, fixed=True)
    points = topology.add_intriangle_points(
        membrane, species={"A": {"mass": 1.0}}, counts={}, capacity=40, seed=1
    )
    system = mp.System(topology)
    # The trap holds each point where it lands: none passes x = 2 within its life.
    grid = system.add_pool(mp.Compartments(
        (2, 1, 1), size=size, counts={"A" if jump == "Adsorption" else "P": np.array(total).reshape(2, 1, 1)},
        origin=(2.0 - size, -1.0, -1.0),
    ))  # fmt: skip
    on, off = 0.02 * size**3, 300.0
    if jump == "Adsorption":
        made = system.add_jump(mp.jumps.Adsorption(grid["A"], points.of("A"), on_rate=on * off, off_rate=off))
    else:
        made = system.add_jump(mp.jumps.Reactions(points, f"P <-> A; k_on = {on * off}, k_off = {off}", pool=grid))
    assert not made.driven
    simulation = mp.Simulation(system, mp.BAGOGABIntegrator(0.01, kT=1e-8, seed=1))
    counts, sides = [], []
    for _ in range(6000):
        simulation.step(1)
        state = simulation.context.get_state(positions=True)
        x = state.positions[state.living(points)][:, 0]
        counts.append(state.pools["A" if jump == "Adsorption" else "P"].ravel())
        sides.append([np.sum(x < 2.0), np.sum(x >= 2.0)])
    counts, sides = np.array(counts, float), np.array(sides, float)
    assert (counts + sides == total).all()
    for c in range(2):
        n = np.arange(total[c] + 1)
        weight = n * np.log(0.02 * 8.0) - gammaln(total[c] - n + 1) - gammaln(n + 1)
        mean, variance = moments(weight)
        check_mean(f"points in cell {c}", sides[:, c], mean, time_series=True, sees=0.3)
        check_mean("their spread", (sides[:, c] - mean) ** 2, variance, time_series=True, sees=0.6)


def test_tables_have_columns_for_molecules_points_and_entropy(tmp_path):
    points, system, make = built(octahedron(), {"A": 12}, 20)
    pool = system.add_pool(mp.Pool(volume=10.0, counts={"P": 5}))
    system.add_jump(mp.jumps.Adsorption(pool["P"], points.of("B"), on_rate=1.0, off_rate=1.0))
    system.add_jump(mp.jumps.Reactions(points, "A -> B", on_rate=1e-3))
    reporter = mp.reporters.StateDataReporter
    simulation = make()
    simulation.reporters.append(reporter(tmp_path / "all", 10, molecules=True, entropy_production=True, comment=""))
    simulation.reporters.append(reporter(tmp_path / "some", 10, molecules=["B", "P"], comment=""))
    simulation.step(200)
    state = simulation.context.get_state(positions=True)
    with open(tmp_path / "none", "w") as stream:
        simulation.reporters.append(reporter(stream, 10, molecules=["Q"]))
        refuses(mp.ParameterError, "no species in pools or of beads 'Q'", simulation.step, 10)
    simulation.close()
    rows = [line.split(",") for line in (tmp_path / "all").read_text().splitlines()]
    name = points.name
    assert rows[0] == ['"Entropy Production (k_B)"', '"P of Pool"', *(f'"{one} of {name}"' for one in "ABC")]
    of = points.counts(state)
    assert rows[-1] == [str(state.entropy_production), str(state.pools["P"]), *(str(of[one]) for one in "ABC")]
    assert state.entropy_production == (np.inf if of["A"] < 12 else 0.0)
    assert (tmp_path / "some").read_text().splitlines()[0] == f'"P of Pool","B of {name}"'


def test_adsorption_refuses_what_is_not_a_species_of_a_pool_or_of_points():
    points, system, _ = built(octahedron(), {"A": 3}, 9)
    pool = system.add_pool(mp.Pool(volume=1.0, counts={"A": 3}))
    with pytest.raises(mp.ParameterError, match=r'molecules must be a species of a pool, pool\["A"\]'):
        mp.jumps.Adsorption(pool, points.of("A"), on_rate=1.0, off_rate=1.0)
    with pytest.raises(mp.ParameterError, match=r'points must be of one species, points.of\("A"\)'):
        mp.jumps.Adsorption(pool["A"], points, on_rate=1.0, off_rate=1.0)
    with pytest.raises(mp.ParameterError, match=r"on_rate = -1\.0 but must be finite and >= 0"):
        mp.jumps.Adsorption(pool["A"], points.of("A"), on_rate=-1.0, off_rate=1.0)
    one_way = mp.jumps.Adsorption(pool["A"], points.of("A"), on_rate=1.0, off_rate=0.0)
    assert one_way.driven


def test_a_cycle_out_of_balance_does_work_and_one_in_balance_does_none():
    """Three species in a circle: kT ln of the product of rates per turn, which is ln 8 here."""
    turns = "A <-> B; k_on = 2, k_off = 1\nB <-> C; k_on = 2, k_off = 1\nC <-> A; k_on = {}, k_off = {}"
    for on, off, driven in ((2.0, 1.0, True), (1.0, 4.0, False)):
        points, system, make = built(octahedron(), {"A": 30}, 30)
        jump = system.add_jump(mp.jumps.Reactions(points, turns.format(on, off)))
        assert jump.driven is driven
        simulation = make()
        events = simulation.context.events()
        simulation.step(400)
        heard = events.heard()
        assert len(heard) > 500
        chemical = sum(event.chemical_energy for event in heard)
        forward = sum(event.kind in ("A -> B", "B -> C", "C -> A") for event in heard)
        expected = (2 * forward - len(heard)) * np.log(2.0) if driven else 0.0
        assert chemical == pytest.approx(expected, abs=1e-9)
        assert simulation.context.get_state().entropy_production == pytest.approx(expected, abs=1e-9)


def test_rates_from_a_macroscopic_constant():
    """Values of a radiation boundary's discs: k_a = 1, 10, 100 for 1000 of each per µm², D = 2 µm²/s (kinetics of
    Yogurtcu and Johnson 2015), in nm²/s and nm."""
    density, kT = 4.0 / (np.pi * 35.738**2), 4.14
    points, *_ = built(octahedron(), {"A": 3}, 9, friction=kT / 1e6)
    table = {
        0.81611e6: (3.246e5, 7.684e4, 1.1492e4), 3.07391e6: (3.885e6, 5.832e5, 6.1097e4),
        4.24955e6: (1.343e8, 1.664e6, 1.0717e5),
    }  # fmt: skip
    for k, row in table.items():
        for reach, rate in zip((1.0, 2.0, 5.0), row, strict=True):
            jump = mp.jumps.Reactions(
                points, "A + B <-> C", reach=reach, macroscopic_rate=k, density=density, dissociation_constant=1e-6
            )
            found, back = jump._form.found(kT)
            # The table has k with five digits, of which the fastest rates magnify the last.
            assert found == pytest.approx(rate, rel=2e-3 if rate > 1e8 else 3e-4)
            assert back == pytest.approx(1e-6 * np.pi * reach**2 * found, rel=1e-12)
            assert macroscopic_rate(found, reach, 2e6, density) == pytest.approx(k, rel=1e-9)
    # Slow reactions take each encounter: λπR².
    assert macroscopic_rate(1e-3, 5.0, 2e6, density) == pytest.approx(np.pi * 25e-3, rel=1e-6)
    refuses(mp.ParameterError, "how often points meet", microscopic_rate, 1e9, 5.0, 2e6, density)


@pytest.mark.parametrize("kT", [4.14, 0.1])
def test_a_macroscopic_rate_is_that_of_the_temperature_of_the_run(kT):
    """Of points that diffuse with kT/γ each; what they cannot reach is refused before the first step, and not before
    the temperature is known."""
    mesh, reach = octahedron(), 0.1
    points, system, _ = built(mesh, {"A": 6, "B": 4}, 12)
    most = macroscopic_rate(np.inf, reach, 2.0 * kT, 6 / mesh.area)
    jump = system.add_jump(mp.jumps.Reactions(
        points, "A + B <-> C", reach=reach, macroscopic_rate=0.9 * most, dissociation_constant=0.3
    ))  # fmt: skip
    mp.Simulation(system, mp.BAGOGABIntegrator(0.05, kT=kT, seed=1), threads=1).step(1)
    forth, back = jump._form.found(kT)
    assert macroscopic_rate(forth, reach, 2.0 * kT, 6 / mesh.area) == pytest.approx(0.9 * most, rel=1e-9)
    assert back == pytest.approx(0.3 * forth * np.pi * reach**2, rel=1e-12)
    assert not jump.driven
    with pytest.raises(mp.ParameterError, match="how often points meet"):
        mp.Simulation(system, mp.BAGOGABIntegrator(0.05, kT=0.8 * kT, seed=1), threads=1)


def test_pair_forces_act_between_the_species_they_name():
    """The energy of SoftSphere between A and B against a sum over all pairs, while points switch."""
    points, system, make = built(
        octahedron(), {"A": 40, "B": 40}, 80, [lambda p: mp.forces.SoftSphere(p.of("A"), p.of("B"), 5.0, diameter=0.5)],
        species=("A", "B"), friction=2.0,
    )  # fmt: skip
    system.add_jump(mp.jumps.Reactions(points, "A <-> B", on_rate=3.0, off_rate=3.0))
    simulation = make()
    touched = 0
    for _ in range(40):
        simulation.step(5)
        state = simulation.context.get_state(positions=True, energy=True)
        x, of = state.positions[points.beads], state.column("species")[points.beads]
        gap = 0.5 - np.linalg.norm(x[of == 0][:, None] - x[of == 1], axis=-1)
        wanted = 0.5 * 5.0 * (np.maximum(gap, 0.0) ** 2).sum()
        assert state.energies["SoftSphere"] == pytest.approx(wanted, rel=1e-12)
        touched += (gap > 0.0).sum()
    assert touched > 100
    assert simulation.context.get_state().counts["Reactions"].accepted > 100
    again = pickle.loads(pickle.dumps(system))
    assert again["SoftSphere"].handles_by_species == again.topology.point_handles * 2


def test_repelling_partners_have_the_second_virial_in_their_constant():
    """P(C)/P(AB) = Area/(K_D ∫∫e^{-U_AB} dA dA): of one pair with SoftSphere in a plane, by quadrature on the same
    sheet."""
    side, strength, diameter, reach = 4.0, 6.0, 1.2, 1.6
    n = 240
    x = (np.arange(n) + 0.5) * side / n
    d = np.abs(x[:, None] - x)
    # The density of distances along one axis, and pairs of both axes.
    values, weights = np.unique(np.round(d, 9), return_counts=True)
    r = np.hypot(values[:, None], values)
    gap = np.maximum(diameter - r, 0.0)
    pairs = (weights[:, None] * weights * np.exp(-0.5 * strength * gap**2)).sum() / n**4 * side**4
    points, system, make = built(
        uneven_sheet(), {"A": 1, "B": 1}, 2,
        [lambda p: mp.forces.SoftSphere(p.of("A"), p.of("B"), strength, diameter=diameter)], friction=0.5,
    )  # fmt: skip
    k_d = side**2 / pairs
    system.add_jump(mp.jumps.Reactions(
        points, "A + B <-> C", reach=reach, dissociation_constant=k_d, off_rate=1.0, most_partners=6
    ))  # fmt: skip
    counts = watched(make(), points, 14_000, 20)
    check_mean("C of a pair that repels", counts[:, 2], 0.5, time_series=True, sees=0.08)


def numbers_of(simulation):
    state = simulation.context.get_state(positions=True, velocities=True)
    return [state.ids, state.positions, state.velocities, state.column("species"), state.intriangle.triangles]


def same(one, other):
    return all(np.array_equal(a, b, equal_nan=True) for a, b in zip(numbers_of(one), numbers_of(other), strict=True))


def reacting(threads=1):
    points, system, make = built(
        torus(), {"A": 60, "B": 60}, 160, [lambda p: mp.forces.SoftSphere(p.of("A"), p.of("C"), 5.0, diameter=0.4)],
        threads=threads, fixed=False,
    )  # fmt: skip
    system.add_force(mp.forces.MembraneEdgeSprings(points.membrane, 20.0))
    system.add_jump(mp.jumps.Reactions(points, "A + B <-> C", reach=0.7, on_rate=0.4, off_rate=0.5, name="bind"))
    system.add_jump(mp.jumps.Reactions(points, "A <-> B", on_rate=0.5, off_rate=0.5, name="switch"))
    return points, make()


def test_same_bits_on_two_threads_after_a_restart_and_after_an_edit(tmp_path):
    _, one = reacting()
    points, other = reacting(threads=2)
    one.step(60)
    for n in (20, 1, 39):
        other.step(n)
    assert same(one, other)
    one.save_checkpoint(tmp_path / "run")
    third = mp.Simulation.resume(tmp_path / "run", threads=2)
    _, fourth = reacting()
    fourth.load_checkpoint(tmp_path / "run")
    with other.topology.edit():
        points.reserve(170)
    of_one, of_other = (points.counts(s.context.get_state(positions=True)) for s in (one, other))
    assert of_one == of_other
    assert points.mass.tolist() == [MASSES["ABC"[k]] for k in points._of_species]
    for simulation in (one, third, fourth):
        simulation.step(25)
    assert same(one, third)
    assert same(one, fourth)
    state = one.context.get_state(positions=True, velocities=True)
    _, fifth = reacting()
    fifth.context.set_state(state)
    # Velocities are brought into the planes of triangles again, which may change their last digits.
    for now, given in zip(numbers_of(fifth), numbers_of(one), strict=True):
        assert np.allclose(now, given, rtol=0.0, atol=1e-14, equal_nan=True)
    assert all(count.accepted > 20 for count in one.context.get_state().counts.values())


@pytest.mark.parametrize(("text", "options", "match"), [
    ("A + B <-> C", {"reach": 1.0}, "give on_rate"),
    ("A + B <-> C", {"on_rate": 1.0, "off_rate": 1.0}, "give reach="),
    ("A + B -> C", {"reach": 1.0, "on_rate": 1.0, "off_rate": 1.0}, "goes one way"),
    ("A <-> B", {"on_rate": 1.0, "dissociation_constant": 1.0}, "dissociation_constant is that of A"),
    ("A + B + C -> D", {"on_rate": 1.0, "reach": 1.0}, "beads react as"),
    ("A <-> E", {"on_rate": 1.0, "off_rate": 1.0}, "E"),
    ("A <-> B; k_on = 1\nB <-> C; k_on = 1", {"off_rate": 1.0}, "one number for 2 reactions"),
    ("A <-> B; k_on = -1, k_off = 1", {}, "must be >= 0"),
    ("A <-> B; speed = 1, k_off = 1", {}, "a number is one of"),
    ("A <-> B", {"on_rate": 1.0, "off_rate": 1.0, "pool": {"X": 1}}, "pool must be a Pool or Compartments"),
    ("A <-> B", {"on_rate": 1.0, "off_rate": 1.0, "pool": mp.Pool(volume=1.0, counts={"A": 1})}, "and of the pool"),
    ("A <-> B", {"on_rate": 1.0, "off_rate": 1.0, "load_sharing": 1.5}, "load_sharing = 1.5 but must be"),
    ("A <-> B", {"on_rate": 1.0, "off_rate": 1.0, "load_limit": 2.0}, "give load_sharing=, too"),
    ("A + B + X -> C", {"on_rate": 1.0, "reach": 1.0, "pool": mp.Pool(volume=1.0, counts={"X": 1})}, "beads react as"),
])  # fmt: skip
def test_texts_and_numbers_without_a_meaning_are_refused_before_the_first_step(text, options, match):
    points, _, _ = built(octahedron(), {"A": 1}, 4, species=("A", "B", "C", "D"))
    refuses(mp.ParameterError, match, mp.jumps.Reactions, points, text, **options)


@pytest.mark.parametrize(("key", "match"), [
    ("curvature", "is a number of forces: give it to PointCurvature.by_species"),
    ("radius", "is a number of forces: give it to SoftSphere.by_species"),
    ("speed", "number of a species"),
])  # fmt: skip
def test_numbers_that_species_do_not_have_are_refused_with_what_takes_them(key, match):
    membrane = mp.Topology().add_membrane(octahedron(), 1.0)
    refuses(mp.ParameterError, match, membrane.topology.add_intriangle_points, membrane,
            species={"A": {"mass": 1.0, key: 1.0}}, counts={"A": 1})  # fmt: skip


def test_too_many_partners_and_no_room_end_the_run_by_name():
    points, system, make = built(octahedron(), {"A": 40, "B": 40}, 90)
    system.add_jump(mp.jumps.Reactions(points, "A + B <-> C", reach=1.0, on_rate=1.0, off_rate=1.0, most_partners=3))
    with pytest.raises(mp.SimulationError, match="most_partners"):
        make().step(100)
    points, system, make = built(octahedron(), {"C": 4}, 4)
    system.add_jump(mp.jumps.Reactions(points, "A + B <-> C", reach=1.0, on_rate=0.0, off_rate=5.0))
    with pytest.raises(mp.SimulationError, match="all 4 rows of these beads are taken"):
        make().step(100)


def test_check_tells_how_well_steps_resolve_a_reaction():
    """Of A and B with m = 1, 2 and γ = 100: D = 0.02, reduced mass 2/3, inertial length √(μ/kT) D."""
    points, system, make = built(octahedron(), {"A": 3, "B": 3}, 8, friction=100.0, timestep=0.05)
    system.add_jump(mp.jumps.Reactions(points, "A + B <-> C", reach=0.5, on_rate=0.6, off_rate=1.0))
    text = str(make().check())
    hop, inertia = np.sqrt(4 * 0.02 * 0.05) / 0.5, np.sqrt(2 / 3) * 0.02 / 0.5
    assert f"A + B -> C: √(4Dh)/R = {hop:.3g}, inertial length/R = {inertia:.3g}, λh = 0.03" in text
    assert "slower than points that diffuse" not in text
    points, system, make = built(octahedron(), {"A": 3, "B": 3}, 8)
    system.add_jump(mp.jumps.Reactions(points, "A + B <-> C", reach=0.5, on_rate=0.6, off_rate=1.0))
    assert "slower than points that diffuse" in str(make().check())


def test_trajectories_and_documents_hold_species(tmp_path):
    points, simulation = reacting()
    simulation.reporters.append(mp.reporters.TrajectoryReporter(tmp_path / "run.h5", 5))
    simulation.step(30)
    simulation.reporters[0].flush()
    state = simulation.context.get_state(positions=True)
    with mp.Trajectory(tmp_path / "run.h5") as trajectory:
        assert np.array_equal(trajectory[-1].column("species"), state.column("species"))
        assert (np.diff(trajectory.read("species"), axis=0) != 0).any()
    system = mp.deserialize(mp.serialize(simulation.system))
    assert system.topology.point_handles[0].species == points.species
    assert str(system["bind"]) == str(simulation.system["bind"])
    assert repr(points.of("A")) == "points.of('A')"
    refuses(mp.ParameterError, "did you mean 'A'", points.of, "a")


@pytest.mark.parametrize("options", [{}, {"cutoff": 2.0, "tolerance": 1e-3}])
def test_forces_at_any_distance_refuse_beads_of_one_species(options):
    """Waves of Ewald's sum, and sums over all pairs, have no way to leave the other species out."""
    topology = mp.Topology()
    mesh = mp.TriangleMesh.flat_sheet(4, 4, 2.0, periodic=True) if options else octahedron()
    membrane = topology.add_membrane(mesh, 1.0, fixed=True)
    numbers = {name: {"mass": 1.0, "friction": 1.0} for name in "AB"}
    points = topology.add_intriangle_points(membrane, species=numbers, counts={"A": 3, "B": 3}, seed=1)
    system = mp.System(topology, box=(*mesh.box[:2], 20.0) if options else None)
    system.add_force(mp.forces.Coulomb(points.of("A"), 1.0, **options))
    with pytest.raises(mp.ParameterError, match="cannot tell species apart"):
        mp.Context(system, mp.BAGOGABIntegrator(0.01, kT=1.0))


def test_events_tell_all_that_meet_and_come_and_their_energies():
    """Ids in the order of the kind; the kinetic energy of created points less that of removed ones is all there is."""
    points, system, make = built(octahedron(), {"A": 12, "B": 12}, 24)
    system.add_jump(mp.jumps.Reactions(points, "A + B <-> C; k_on = 3, k_off = 3", reach=0.8))
    simulation = make()
    heard = simulation.context.events()
    before, met, came = {}, 0, 0
    for _ in range(200):
        was = simulation.context.get_state(positions=True)
        before = dict(zip(was.ids[points.kind.all_rows].tolist(), was.column("species")[points.kind.all_rows].tolist(),
                          strict=True))  # fmt: skip
        simulation.step(1)
        now = simulation.context.get_state(positions=True)
        after = dict(zip(now.ids[points.kind.all_rows].tolist(), now.column("species")[points.kind.all_rows].tolist(),
                         strict=True))  # fmt: skip
        events = heard.heard()
        heard.forget(len(events))
        if len(events) != 1:
            continue
        (event,) = events
        assert event.energy == event.kinetic_energy != 0.0
        gone, new = ((event.a, event.b), (event.c,)) if event.kind == "A + B -> C" else ((event.a,), (event.b, event.c))
        assert [before[one] for one in gone] == ([0, 1] if len(gone) == 2 else [2])
        assert [after[one] for one in new] == ([0, 1] if len(new) == 2 else [2])
        assert not set(gone) & set(after)
        assert not set(new) & set(before)
        met, came = met + (len(gone) == 2), came + (len(new) == 2)
    assert min(met, came) > 10
