"""Places on filaments that grow: they keep their numbers and what is held there, and ends do not leave what is held."""

import itertools

import numpy as np
import pytest
from builders import STILL, straight

import medyanpy as mp
from medyanpy.testing import check_chi_square, check_mean
from medyanpy.visualize.scene import scene_of

LEAST, MOST = 1, 6
OF_ONE = {"dissociation_constants": (1.0, 1e9), "off_rates": (1.0, 1.0)}


def built(nodes, spacing=1.0, z=0.9, on=4.0, x=0.5, copies=1, apart=60.0, jumps=None, heads=None, fixed=(), mass=1.0,
          timestep=0.05, seed=1, threads=1, subunits=(LEAST, MOST), capacity=None, room=None, molecules=None, forces=(),
          box=None, pool=None, **options):  # fmt: skip
    """Filaments of a rise of 1 nm, and what binds to places along them: (handle, lattice, simulation). `z` and `x` are
    C/K_D of subunits and of head 1 of crosslinkers, of a reservoir, or of so many `molecules`."""
    nodes = np.asarray(nodes, float)
    topology = mp.Topology()
    places = [k * len(nodes) + i for k in range(copies) for i in fixed]
    more = {} if capacity is None else {"capacity_links": capacity}
    more |= {} if room is None else {"capacity_filaments": room}
    shifts = apart * np.arange(copies)[:, None, None] * np.array([1.0, 0.0, 0.0])
    handle = topology.add_filaments(nodes + shifts, mass, 1.0, rise=1.0, fixed_nodes=places, name="actin", **more)
    system = mp.System(topology, box=box)
    for force in forces:
        system.add_force(force(handle))
    if capacity is not None:
        system.add_force(mp.forces.FixmanPotential(handle, kT=1.0))
    most = None if capacity else int(handle.kind.subunits.sum() // copies) + 2 * subunits[1]
    lattice = handle.lattice(spacing, most_subunits=most)
    if pool is None:
        pool = mp.Pool(volume=1.0, concentrations={"G": z} | ({} if molecules else {"X": x}),
                       counts={"X": molecules} if molecules else {})  # fmt: skip
    pool = system.add_pool(pool)
    links = system.add_force(mp.forces.Links([], [], stiffness=2.0, length=0.0, name="links"))
    if heads is None:
        numbers = OF_ONE | options
        system.add_jump(mp.jumps.CrosslinkerBinding(links, lattice, pool=pool["X"], name="heads", **numbers))
    else:
        system.add_jump(heads(links, lattice))
    for own in [{}] if jumps is None else jumps:
        rates = {"on_rate": on, "off_rate": on, "end": "plus", "subunits": subunits} | own
        system.add_jump(mp.jumps.Polymerization(handle, pool["G"], **rates))
    integrator = mp.BAGOGABIntegrator(timestep, kT=1.0, seed=seed)
    return handle, lattice, mp.Simulation(system, integrator, threads=threads)


def look(simulation):
    return simulation.context.get_state(positions=True, velocities=True, energy=True)


def ends(handle, state):
    """Where filaments begin and end, in subunits from where they began, (f, 2)."""
    return state.column("material")[handle.kind.ends_of(state)]


def held(lattice, state, name="heads"):
    """Filaments and numbers of the places that are held, (k, 2), by their first head."""
    rows = state.jumps[name]["links"]
    rows = rows[rows[:, 0] >= 0, 0]
    numbers, there = lattice.numbers_in(state)
    assert there[rows].all(), "a head holds a place that its filament does not have"
    return np.column_stack([lattice.filaments[rows], numbers[rows]])


# Laws in balance -----------------------------------------------------------------------------------------------------


def test_an_end_blocked_by_heads_is_as_long_as_all_states_say():
    """P(n, number of heads) of one link by exact enumeration: z^n times x for each head, at 1 + n places."""
    z, x, copies = 0.9, 0.5, 60
    handle, lattice, simulation = built(straight(3), z=z, x=x, copies=copies, fixed=[0], seed=2)
    weights = {}
    for n in range(LEAST, MOST + 1):
        for k in range(n + 2):
            weights[n, k] = z**n * x**k * len(list(itertools.combinations(range(n + 1), k)))
    total = sum(weights.values())
    simulation.step(300)
    found = []
    for _ in range(150):
        simulation.step(12)
        state = look(simulation)
        heads = np.bincount(held(lattice, state)[:, 0], minlength=copies)
        found.append(np.column_stack([handle.subunits(state), heads]))
    found = np.array(found)
    for (n, k), weight in weights.items():
        if weight > 0.01 * total:
            own = (found == [n, k]).all(axis=2).mean(axis=0)
            check_mean(f"{n} subunits, {k} heads", own, weight / total, sees=0.04)


@pytest.mark.slow
@pytest.mark.parametrize("spacing", [1, 2])
def test_one_molecule_at_two_growing_ends(spacing):
    """Ends, and the place held, of one filament: z^n, and x for each place that it has, 0 mod the spacing from where it
    began. All subunits of the start come to be gone."""
    z, x = 0.9, 1.5
    handle, lattice, simulation = built(straight(3), float(spacing), z=z, molecules=1, jumps=[{"end": "both"}], on=8.0,
                                        dissociation_constants=(1.0 / x, 1e9), timestep=0.2, seed=3,
                                        mass=STILL)  # fmt: skip
    weights = {}
    for low in range(spacing):
        for n in range(LEAST, MOST + 1):
            weights[low, n, -1] = z**n
            for c in range(n + 1):
                if (low + c) % spacing == 0:
                    weights[low, n, c] = x * z**n
    counts = dict.fromkeys(weights, 0)
    lowest = highest = 0
    for _ in range(14_000):
        simulation.step(10)
        state = look(simulation)
        (low, high), places = ends(handle, state)[0], held(lattice, state)
        assert high - low == handle.subunits(state)[0]
        lowest, highest = min(lowest, low), max(highest, low)
        assert state.pools["X"] + len(places) == 1
        counts[low % spacing, high - low, spacing * places[0, 1] - low if len(places) else -1] += 1
    assert lowest < -20 or highest > 20
    expected = np.array(list(weights.values()))
    expected *= 14_000 / expected.sum()
    # Every tenth of a second at rates of 8 and 1.5 per second: samples do not remember.
    check_chi_square(f"spacing {spacing}", np.array(list(counts.values())), expected, sees=0.1)


@pytest.mark.slow
def test_a_link_to_a_place_on_a_link_that_grows():
    """Place m of a link of n subunits from a pivot, bound to an anchor: z^n r ∫ exp(-U_m) over directions."""
    z, r, k, at, copies = 1.1, 0.4, 2.0, np.array([0.0, 0.0, 2.5]), 150
    on, off = r * 3.0, 3.0
    anchors = at + 60.0 * np.arange(copies)[:, None] * [1.0, 0.0, 0.0]
    heads = lambda links, lattice: mp.jumps.LinkBinding(  # noqa: E731
        links, lattice, mp.Sites.anchors(anchors), on_rate=on, off_rate=off, reach=40.0, name="heads")  # fmt: skip
    handle, lattice, simulation = built(straight(3), z=z, copies=copies, fixed=[0], heads=heads, on=8.0, seed=5)
    c, w = np.polynomial.legendre.leggauss(200)
    weights = {}
    for n in range(LEAST, MOST + 1):
        weights[n, -1] = 2.0 * z**n
        for m in range(n + 1):
            weights[n, m] = z**n * r * (w @ np.exp(-0.5 * k * (m * m - 2 * m * at[2] * c + at[2] ** 2)))
    total = sum(weights.values())
    simulation.context.set_velocities_to_temperature(kT=1.0, seed=3)
    simulation.step(400)
    found = []
    for _ in range(160):
        simulation.step(6)
        state = look(simulation)
        own = np.column_stack([handle.subunits(state), np.full(copies, -1)])
        places = held(lattice, state)
        own[places[:, 0], 1] = places[:, 1]
        found.append(own)
    found = np.array(found)
    for (n, m), weight in weights.items():
        if weight > 0.01 * total:
            own = (found == [n, m]).all(axis=2).mean(axis=0)
            check_mean(f"{n} subunits, place {m}", own, weight / total, sees=0.03)


@pytest.mark.slow
@pytest.mark.parametrize("place", [3, 9])
def test_splits_and_merges_count_the_energy_of_links(place):
    """A filament without a pivot, bound at one place for ever to an anchor: z^n from there on, and 3/2 kT in the link,
    wherever nodes come and go."""
    z, copies, capacity = 0.8, 48, 24
    anchors = np.array([0.0, 0.0, place]) + 150.0 * np.arange(copies)[:, None] * [1.0, 0.0, 0.0]
    heads = lambda links, lattice: mp.jumps.LinkBinding(  # noqa: E731
        links, lattice, mp.Sites.anchors(anchors), on_rate=0.0, off_rate=1e-9, name="heads",
        bound=[[i * (len(lattice) // copies) + place, i] for i in range(copies)])  # fmt: skip
    handle, lattice, simulation = built(straight(4, 4, 4), z=z, copies=copies, apart=150.0, heads=heads, on=40.0,
                                        seed=7, subunits=(2, 5), capacity=capacity)  # fmt: skip
    simulation.context.set_velocities_to_temperature(kT=1.0, seed=3)
    simulation.step(1200)
    found, energies, links = [], [], set()
    for _ in range(150):
        simulation.step(25)
        state = look(simulation)
        assert held(lattice, state)[:, 1].tolist() == [place] * copies
        found.append(handle.subunits(state))
        _, there = lattice.numbers_in(state)
        bound = state.jumps["heads"]["links"]
        assert there[bound[:, 0]].all()
        apart = lattice.positions(state)[bound[:, 0]] - anchors[bound[:, 1]]
        energies.append((apart**2).sum(axis=1))
        assert state.energies["links"] == pytest.approx(energies[-1].sum(), rel=1e-6)
        links |= set(handle.kind.links_of(state).tolist())
    assert len(links) >= 3
    found = np.array(found)
    assert found.min() == max(place, 2)
    shares = z ** np.arange(max(place, 2), 90)
    shares /= shares.sum()
    for n in range(max(place, 2), max(place, 2) + 8):
        check_mean(f"{n} subunits", (found == n).mean(axis=0), shares[n - max(place, 2)], sees=0.14)
    check_mean("energy of links", np.mean(energies, axis=0), 1.5, sees=0.35)


# What places are ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("capacity", [None, 8])
def test_a_treadmilling_filament_keeps_the_numbers_of_what_is_held(capacity):
    """A filament that grows at its plus end and shrinks at the other one goes past what it holds, which stays at its
    subunit: nodes are created and removed, and move within their room. It stops where its minus end is blocked."""
    nodes, subunits, place = (straight(5), (1, 9), 3) if capacity is None else (straight(4, 4, 4), (2, 5), 11)
    jumps = [{"end": "plus", "off_rate": 0.0}, {"end": "minus", "on_rate": 0.0}]
    handle, lattice, simulation = built(nodes, z=1.0, on=5.0, jumps=jumps, x=0.0, bound=[[place, -1]],
                                        subunits=subunits, off_rates=(1e-9, 1.0), capacity=capacity,
                                        box=(80.0,) * 3)  # fmt: skip
    first = look(simulation)
    assert held(lattice, first).tolist() == [[0, place]]
    seen = []
    for _ in range(160):
        simulation.step(10)
        state = look(simulation)
        low, high = ends(handle, state)[0]
        numbers, there = lattice.numbers_in(state)
        assert sorted(numbers[there]) == list(range(low, high + 1))
        assert held(lattice, state).tolist() == [[0, place]]
        x = lattice.positions(state)
        assert np.array_equal(np.isfinite(x).all(axis=1), there)
        # Ends are at the nodes, and neighbours a rise apart along a link.
        both = x[there][np.argsort(numbers[there])]
        at = state.positions[handle.kind.ends_of(state)[0]]
        np.testing.assert_allclose(both[[0, -1]], at, atol=1e-9)
        gaps = np.linalg.norm(np.diff(both, axis=0), axis=1)
        assert gaps.max() < 1.0 + 1e-6
        seen.append((low, high))
        if high - low >= (8 if capacity is None else 20):
            break
    assert seen[-1][0] == place
    assert first.jumps["heads"]["links"].tolist() == [[place, -1]]


@pytest.mark.parametrize("at_end", ["block", "unbind"])
def test_ends_block_or_unbind(at_end):
    """Pool, heads that hold one place, and two, are constant together; an end that unbinds has no way back."""
    topology = mp.Topology()
    nodes = np.array([straight(4, 4), straight(4, 4) + [1.5, 0.0, 0.0]])
    handle = topology.add_filaments(nodes, 1.0, 1.0, rise=1.0, capacity_links=22, name="actin")
    system = mp.System(topology, box=(70.0,) * 3)
    system.add_force(mp.forces.FixmanPotential(handle, kT=1.0))
    system.add_force(mp.forces.HarmonicTrap(handle, 0.3, [0.0, 0.0, 0.0]))
    lattice = handle.lattice(1.0, at_end=at_end)
    pool = system.add_pool(mp.Pool(50.0, {"G": 30, "X": 12}))
    links = system.add_force(mp.forces.Links([], [], stiffness=3.0, length=1.2, name="links"))
    numbers = {"dissociation_constants": (0.05, 0.1), "off_rates": (3.0, 2.0), "name": "heads"}
    system.add_jump(mp.jumps.CrosslinkerBinding(links, lattice, pool=pool["X"], **numbers))
    growth = system.add_jump(mp.jumps.Polymerization(
        handle, pool["G"], on_rate=20.0, off_rate=8.0, end="both", subunits=(2, 5)))  # fmt: skip
    simulation = mp.Simulation(system, mp.BAGOGABIntegrator(0.02, kT=1.0, seed=4))
    assert growth.driven == (at_end == "unbind")
    doubly = 0
    for _ in range(400):
        simulation.step(10)
        state = look(simulation)
        rows = state.jumps["heads"]["links"]
        _, there = lattice.numbers_in(state)
        assert there[rows[rows >= 0]].all()
        assert state.pools["X"] + len(rows) == 12
        assert state.pools["G"] + handle.subunits(state).sum() == 46
        doubly += (rows >= 0).all(axis=1).sum()
    assert doubly > 50


@pytest.mark.parametrize("capacity", [None, 12])
def test_frames_and_pictures_show_heads_where_they_are(capacity, tmp_path):
    """Also once filaments have grown, split and merged: the places in states, and the beads next to them in files."""
    nodes = straight(3, 3) if capacity is None else straight(4, 4, 4)
    subunits = (LEAST, MOST) if capacity is None else (2, 5)
    _, lattice, simulation = built(nodes, x=2.0, copies=4, capacity=capacity, on=20.0, subunits=subunits,
                                   jumps=[{}, {"end": "minus", "name": "minus"}], timestep=0.02)  # fmt: skip
    simulation.reporters.append(mp.reporters.TrajectoryReporter(tmp_path / "run.h5", 20))
    states = []
    for _ in range(4):
        simulation.step(20)
        states.append(look(simulation))
    simulation.reporters[0].flush()
    shown = scene_of(simulation, {})
    with mp.Trajectory(tmp_path / "run.h5") as trajectory:
        moved = 0
        for frame, state in zip(trajectory, states, strict=True):
            rows = state.jumps["heads"]["links"]
            assert np.array_equal(frame.links("heads"), rows)
            where = lattice[rows.max(axis=1)].positions(state)
            assert not np.isnan(where).any()
            np.testing.assert_allclose(frame.link_ends("heads")[:, 0], where, atol=1e-12)
            moved += np.count_nonzero(lattice.numbers_in(state)[0] != lattice.numbers)
            # Beads that are joined in files are those at the links.
            near = lattice[rows.max(axis=1)].as_in(state).main_beads
            assert np.linalg.norm(state.positions[near] - where, axis=1).max() < 3.01
        assert capacity is None or moved > 0
        np.testing.assert_allclose(shown.links["heads"], frame.link_ends("heads"))
        np.testing.assert_allclose(scene_of(frame, {}).links["heads"], shown.links["heads"])
