"""Laws of proteins that cap the ends of filaments."""

import numpy as np
import pytest
from builders import STILL, look, refuses, straight
from scipy.special import gammaln

import medyanpy as mp
from medyanpy.errors import ParameterError, TopologyError
from medyanpy.testing import JumpCase, check_jump, check_mean

Z, Y, MOST = 1.1, 0.6, 6
THREE = straight(3)


def built(growth=(), caps=({},), nodes=THREE, forces=(), copies=1, fixed=(0,), seed=1, timestep=0.05, mass=1.0,
          threads=1, pool=None, capacity_links=None, subunits=(1, MOST), hops=False):  # fmt: skip
    """Copies of a filament that do not see each other, whose ends grow and are capped: (handle, simulation)."""
    topology = mp.Topology()
    places = [k * len(nodes) + i for k in range(copies) for i in fixed]
    handle = topology.add_filaments([nodes] * copies, mass, 1.0, rise=1.0, fixed_nodes=places,
                                    capacity_links=capacity_links)  # fmt: skip
    system = mp.System(topology)
    for force in forces:
        system.add_force(force(handle))
    pool = system.add_pool(mp.Pool(volume=1.0, concentrations={"G": Z, "Cap": Y}) if pool is None else pool)
    for own in growth:
        system.add_jump(mp.jumps.Polymerization(handle, pool["G"], **{"on_rate": 8.0, "off_rate": 8.0, "end": "plus",
                                                                      "subunits": subunits} | own))  # fmt: skip
    for own in caps:
        system.add_jump(mp.jumps.Capping(handle, pool["Cap"], **{"on_rate": 5.0, "off_rate": 5.0} | own))
    if hops:
        system.add_jump(mp.jumps.Reactions(pool, []))
    integrator = mp.BAGOGABIntegrator(timestep, kT=1.0, seed=seed)
    return handle, mp.Simulation(system, integrator, threads=threads)


@pytest.mark.slow
def test_contract():
    rates = np.array([[0.0, 5.0 * Y], [2.0, 0.0]])

    def make(copies, seed, threads, timestep):
        return built(caps=[{"off_rate": 2.0}], copies=copies, seed=seed, threads=threads, timestep=timestep,
                     mass=STILL)[1]  # fmt: skip

    check_jump(JumpCase("Capping", make, lambda state: state.column("caps")[1::2], rates, np.zeros(2),
                        weights=np.array([1.0, 2.5 * Y])), copies=20000)  # fmt: skip


def test_bound_share_beside_growth():
    """C/(C + K_D) of the ends are capped, and how long they are does not depend on whether they are: all P(n, cap)."""
    k, place = 0.2, 2.5
    handle, simulation = built([{}], forces=[lambda f: mp.forces.HarmonicTrap(f, k, [0.0, 0.0, place])], copies=4000)
    simulation.context.set_velocities_to_temperature(kT=1.0, seed=3)
    simulation.step(300)
    samples, found = 300, np.zeros((4000, 2, MOST))
    for _ in range(samples):
        simulation.step(6)
        state = look(simulation)
        caps = handle.kind.caps_of(state)
        assert (caps[:, 0] == 0).all()
        found[np.arange(4000), caps[:, 1], handle.subunits(state) - 1] += 1.0 / samples
    cosine, weight = np.polynomial.legendre.leggauss(200)
    n = np.arange(1, MOST + 1)
    energy = 0.5 * k * (n[:, None] ** 2 - 2.0 * n[:, None] * place * cosine)
    of_numbers = Z**n * (np.exp(-energy) @ weight)
    expected = np.outer([1.0, Y], of_numbers / of_numbers.sum()) / (1.0 + Y)
    for capped in (0, 1):
        for m in n:
            share = expected[capped, m - 1]
            check_mean(f"{m} subunits, {capped} caps", found[:, capped, m - 1], share, sees=0.01)
    check_mean("capped", found[:, 1].sum(axis=1), Y / (1.0 + Y), sees=0.01)


@pytest.mark.parametrize("capacity_links", [None, 30])
def test_a_capped_end_neither_grows_nor_shrinks(capacity_links):
    """Between the events that cap and free an end it has none of growth; the other end goes on."""
    forces = [lambda f: mp.forces.FixmanPotential(f, kT=1.0)] if capacity_links else []
    growth = [{"end": "both", "on_rate": 8.0 / Z, "subunits": (2, 5)}]
    handle, simulation = built(growth, [{}, {"end": "minus", "on_rate": 9.0}], straight(4, 4, 4), forces, copies=20,
                               fixed=(), capacity_links=capacity_links)  # fmt: skip
    heard = simulation.context.events()
    capped, grown, freed, seen = {}, 0, 0, 0
    for _ in range(600):
        before = set(capped)
        simulation.step(1)
        # Jumps act one after another in a letter, so that times of two of them say nothing about their order.
        events = heard.heard()[seen:]
        seen += len(events)
        for event in events:
            if event.kind == "cap":
                capped[event.a] = event.jump
            elif event.kind == "uncap":
                assert capped.pop(event.a) == event.jump
                freed += 1
        # Of a split or a merge this is the node that stays.
        touched = {event.a for event in events if event.kind in ("on", "off")}
        grown += len(touched)
        assert not touched & (before - {event.a for event in events if event.kind == "uncap"})
    ends = handle.kind.ends_of(look(simulation))
    caps = handle.kind.caps_of(look(simulation))
    assert (ends[caps > 0].size, set(ends[caps > 0].tolist())) == (len(capped), set(capped))
    assert set(caps[:, 0]) <= {0, 2}
    assert set(caps[:, 1]) <= {0, 1}


def test_a_pool_that_is_used_up():
    """m of the four ends of two filaments, and N caps: 4!/(4 - m)!/m! N!/(N - m)! (k_on/(k_off V))^m, to the last."""
    total = 3
    pool = mp.Pool(volume=0.5, counts={"Cap": total, "G": 0})
    handle, simulation = built([], [{"end": "both", "on_rate": 1.0}], pool=pool, copies=2, timestep=1.0, mass=STILL)
    seen = []
    for _ in range(8000):
        simulation.step(1)
        state = simulation.context.get_state(positions=True)
        seen.append(np.count_nonzero(handle.kind.caps_of(state)))
        assert seen[-1] + state.pools["Cap"] == total
    m = np.arange(total + 1)
    logs = gammaln(5) - gammaln(5 - m) - gammaln(m + 1) - gammaln(total - m + 1) + m * np.log(1.0 / (5.0 * 0.5))
    expected = np.exp(logs) / np.exp(logs).sum()
    for number, share in zip(m, expected, strict=True):
        check_mean(f"{number} caps", np.array(seen) == number, share, sees=0.06, time_series=True)


def test_compartments_give_caps_where_the_end_is():
    """A link that reaches into a second cell: every state of the link, the cap and both cells has its weight."""
    total = 3
    counts = {"Cap": np.array([[[2, 1]]]), "G": np.array([[[2, 2]]])}
    grid = mp.Compartments((1, 1, 2), (10.0, 10.0, 2.5), counts, {"Cap": 3.0, "G": 3.0}, origin=(-5.0, -5.0, 0.0))
    handle, simulation = built([{"on_rate": 200.0, "subunits": (1, 4)}], [{"on_rate": 3.0 * grid.cell_volume}],
                               straight(1), pool=grid, timestep=1.0, mass=STILL, seed=2, hops=True)  # fmt: skip
    seen = []
    for _ in range(12000):
        simulation.step(1)
        state = simulation.context.get_state(positions=True)
        n, capped = int(handle.subunits(state)[0]), int(handle.kind.caps_of(state)[0, 1])
        first = int(state.pools["Cap"][0, 0, 0])
        assert capped + state.pools["Cap"].sum() == total
        seen.append((n, capped, first))
    seen = np.array(seen)
    for capped in (0, 1):
        left = total - capped
        inside = seen[:, 1] == capped
        # The others are binomial in two cells, wherever the end is.
        for n in range(1, 5):
            own = inside & (seen[:, 0] == n)
            if own.mean() < 0.05:
                continue
            check_mean(f"caps beside {n} subunits, {capped} bound", np.where(own, seen[:, 2] - 0.5 * left, 0.0), 0.0,
                       sees=0.08, time_series=True)  # fmt: skip
    # One bound has 3 cap molecules to choose from, in the half of the volume where the end is.
    ratio = 3.0 / 5.0 * total * 0.5
    check_mean("bound", seen[:, 1], ratio / (1.0 + ratio), sees=0.06, time_series=True)


def test_state_is_kept(tmp_path):
    """Checkpoint, restart, set_state, document, threads and trajectory."""
    def made(threads=1):
        return built([{"end": "both", "subunits": (2, 5)}], [{"end": "both"}], straight(4, 4, 4),
                     [lambda f: mp.forces.FixmanPotential(f, kT=1.0)], copies=20, fixed=(), capacity_links=30,
                     threads=threads)  # fmt: skip

    handle, simulation = made()
    simulation.reporters.append(mp.reporters.TrajectoryReporter(tmp_path / "run.h5", 20))
    simulation.step(60)
    simulation.save_checkpoint(tmp_path / "here.npz")
    middle = look(simulation)
    simulation.step(60)
    end = look(simulation)
    simulation.close()
    frames = list(mp.Trajectory(tmp_path / "run.h5").read("caps"))
    assert (frames[-1] == end.column("caps")).all()
    assert any((frame != frames[-1]).any() for frame in frames)
    loaded = made(threads=3)[1]
    loaded.load_checkpoint(tmp_path / "here.npz")
    for one in (mp.Simulation.resume(tmp_path / "here.npz"), loaded):
        one.step(60)
        assert (look(one).column("caps") == end.column("caps")).all()
        assert np.array_equal(look(one).positions, end.positions, equal_nan=True)
    other_handle, other = made()
    other.context.set_state(middle)
    assert (other_handle.kind.caps_of(look(other)) == handle.kind.caps_of(middle)).all()
    assert handle.kind.caps_of(middle).any()
    again = mp.deserialize(mp.serialize(simulation.system))["Capping"]
    assert (again.end, again.rates) == ("both", (5.0, 5.0))


def test_caps_of_users_hold_where_no_jump_knows_them():
    handle, simulation = built([{}], [], copies=2)
    store = simulation.context._store
    store.arrays["caps"][store.layout.rank[handle.beads[1]]] = 7
    simulation.step(50)
    state = look(simulation)
    assert handle.kind.caps_of(state).tolist() == [[0, 7], [0, 0]]
    assert handle.subunits(state)[0] == 3


@pytest.mark.parametrize("capacity_links", [None, 30])
def test_hostile_columns_are_refused(capacity_links, tmp_path):
    forces = [lambda f: mp.forces.FixmanPotential(f, kT=1.0)] if capacity_links else []
    handle, simulation = built([{"subunits": (2, 5)}], [{}], straight(4, 4), forces, copies=3, fixed=(),
                               capacity_links=capacity_links)  # fmt: skip
    store = simulation.context._store
    places = store.layout.rank[handle.beads]
    good = {name: store.arrays[name].copy() for name in ("caps", "subunits")}
    for name, at, value, phrase in (
        ("caps", 0, -1, "has -1 in caps"), ("caps", 4, 5, "has 5 in caps"),
        ("subunits", 1, 0, "has 0 subunits in the link"), ("subunits", 1, -3, "has -3 subunits in the link"),
        ("subunits", 2, 7, "has 7 subunits in the link"),
    ):  # fmt: skip
        for key, array in good.items():
            store.arrays[key][:] = array
        store.arrays[name][places[at]] = value
        simulation.save_checkpoint(tmp_path / "bad.npz")
        for key, array in good.items():
            store.arrays[key][:] = array
        refuses((TopologyError, ParameterError), phrase, simulation.load_checkpoint, tmp_path / "bad.npz")
    if capacity_links:
        # A node in the middle of a filament that is not there.
        alive, ids = store.alive.copy(), store.ids.copy()
        store.alive[places[1]], store.ids[places[1]] = 0, -1
        simulation.save_checkpoint(tmp_path / "bad.npz")
        store.alive[:], store.ids[:] = alive, ids
        phrase = r"apart from the other nodes|has 4 subunits|c1\[1\]"
        refuses((TopologyError, ParameterError), phrase, simulation.load_checkpoint, tmp_path / "bad.npz")  # fmt: skip
    simulation.step(20)


def test_weights_and_books():
    handle, simulation = built([], [{"on_rate": 3.0, "off_rate": 2.0, "end": "both"}], copies=30)
    simulation.report_work = True
    simulation.step(40)
    state = look(simulation)
    jumping = simulation.context._schedule.jumping
    weight = jumping.jumps[0].log_weight(jumping.operations[0], state, 1.0)
    assert weight == pytest.approx(np.count_nonzero(handle.kind.caps_of(state)) * np.log(1.5))
    assert weight > 0.0
    assert (state.chemical_work, state.entropy_production) == (0.0, 0.0)
    jumping.jumps[0].set(off_rate=0.0)
    assert jumping.jumps[0].driven
    assert jumping.jumps[0].log_weight(jumping.operations[0], state, 1.0) is None


@pytest.mark.parametrize(
    ("error", "phrase", "given"),
    [
        (ParameterError, "give two of on_rate=", {"off_rate": None}),
        (ParameterError, 'end must be "plus", "minus" or "both"', {"end": "pointed"}),
        (ParameterError, "on_rate", {"on_rate": -1.0}),
        (ParameterError, "dissociation_constant", {"off_rate": None, "dissociation_constant": 0.0}),
    ],
)
def test_refusals(error, phrase, given):
    refuses(error, phrase, built, [], [given])


def test_refusals_of_what_is_capped():
    topology = mp.Topology()
    plain = topology.add_filament(straight(3), 1.0, 1.0)
    growing = topology.add_filament(straight(3), 1.0, 1.0, rise=1.0)
    pool = mp.Pool(volume=1.0, concentrations={"Cap": 1.0})
    refuses(TopologyError, "added with rise=", mp.jumps.Capping, plain, pool["Cap"], on_rate=1.0, off_rate=1.0)
    refuses(ParameterError, "species must be one of a pool", mp.jumps.Capping, growing, "Cap", on_rate=1.0,
            off_rate=1.0)  # fmt: skip
