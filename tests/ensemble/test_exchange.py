"""Replica exchange: rates and distributions against theory; the same bits on any executor, whoever is killed."""

import json
import multiprocessing
from concurrent.futures import ThreadPoolExecutor

import ensemble_runs as runs
import numpy as np
import pytest
from builders import refuses, system_with
from scipy import special, stats

import medyanpy as mp
from medyanpy.ensemble import exchange
from medyanpy.errors import ExecutorError, ParameterError, SimulationError
from medyanpy.testing import check_chi_square, check_variance

pytestmark = pytest.mark.slow

LADDER = [{"kT": 1.0}, {"kT": 1.5}, {"kT": 2.2}, {"kT": 3.0}]
SPRINGS = [
    {"springs.stiffness": 1.0, "kT": 1.0},
    {"springs.stiffness": 2.0, "kT": 1.2},
    {"springs.stiffness": 1.5, "kT": 1.4},
]


def swapped(make=runs.trapped, ladder=None, every=40, n_exchanges=20, **options):
    executor = options.pop("executor", None) or ThreadPoolExecutor(1)
    return mp.ensemble.replica_exchange(make, ladder=ladder or LADDER, every=every, n_exchanges=n_exchanges,
                                        executor=executor, **options)  # fmt: skip


def expected_rate(one, other, freedom):
    """docs/theory/replica_exchange.md: two states of a harmonic system, by β times the stiffness of each."""
    return 2.0 * special.betainc(0.5 * freedom, 0.5 * freedom, min(one, other) / (one + other))


@pytest.mark.parametrize(("one", "other"), [(1.0, 1.3), (0.7, 1.9)])
def test_the_closed_form_of_the_rate(rng, one, other):
    """Against Metropolis' rule itself, by draws of energies."""
    x, y = rng.gamma(7.5, 1.0 / one, 10**6), rng.gamma(7.5, 1.0 / other, 10**6)
    rate = np.minimum(1.0, np.exp((one - other) * (x - y))).mean()
    assert rate == pytest.approx(expected_rate(one, other, 15), abs=0.003)


# β times the stiffness, which is all that a harmonic system knows of its state.
STATES = {
    "temperatures": ([{"kT": 1.0}, {"kT": 1.7}], (1.0, 1.0 / 1.7)),
    "stiffnesses": ([{"trap.stiffness": 1.0}, {"trap.stiffness": 0.55}], (1.0, 0.55)),
    "both": ([{"kT": 1.0, "trap.stiffness": 1.0}, {"kT": 1.6, "trap.stiffness": 0.9}], (1.0, 0.9 / 1.6)),
}


@pytest.mark.parametrize("what", ["temperatures", "stiffnesses", pytest.param("both", marks=pytest.mark.long)])
def test_rates_and_energies_are_those_of_theory(what):
    """BAOAB has the positions of a harmonic system exactly, so that the rate is, too: at a timestep of a quarter of the
    stable one. Energies are independent: beads forget everything within 40 steps (e^-20)."""
    ladder, strengths = STATES[what]
    n, freedom = 1500, 15
    found = swapped(ladder=ladder, n_exchanges=n, seed=11)
    rate = expected_rate(*strengths, freedom)
    check_chi_square(f"{what}: exchanges", [found.accepted[0], n - found.accepted[0]], [n * rate, n * (1.0 - rate)],
                     sees=0.26)  # fmt: skip
    for k, numbers in enumerate(ladder):
        kT = numbers.get("kT", 1.0)
        twice = 2.0 * found.energies[:, k] / kT
        check_variance(f"{what}: energies in state {k}", twice.sum(), n * freedom, 1.0, sees=0.09)
        # Of the whole distribution: as many in each of ten equal parts of it.
        counts = np.bincount((10 * stats.chi2.cdf(twice, freedom)).astype(int), minlength=10)
        check_chi_square(f"{what}: distribution of energies in state {k}", counts, np.full(10, n / 10.0), sees=0.36)


def test_all_pairs_of_a_ladder_have_the_rates_of_theory():
    n = 2400
    found = swapped(n_exchanges=n, seed=12)
    assert found.attempted.tolist() == [n // 2] * 3
    for k in range(3):
        rate = expected_rate(1.0 / LADDER[k]["kT"], 1.0 / LADDER[k + 1]["kT"], 15)
        tried = n // 2
        check_chi_square(f"states {k} and {k + 1}", [found.accepted[k], tried - found.accepted[k]],
                         [tried * rate, tried * (1 - rate)], sees=0.3)  # fmt: skip
    # Every walker has been everywhere.
    assert (found.round_trips > 10).all()


def test_velocities_are_those_of_the_new_temperature():
    """Kinetic energy over kT stays, to rounding, and the change is protocol work."""
    simulation = runs.linked(1)
    before = runs.kinetic(simulation)[0]
    exchange.enter(simulation, {"kT": 2.5, "springs.stiffness": 1.0})
    after, work = runs.kinetic(simulation)
    assert after == pytest.approx(2.5 * before, rel=1e-13)
    assert work == pytest.approx(1.5 * before, rel=1e-12)
    # The state it has already.
    exchange.enter(simulation, {"kT": 2.5, "springs.stiffness": 1.0})
    assert runs.kinetic(simulation) == [after, work]


def test_all_kinds_of_momenta_are_scaled():
    topology = mp.Topology()
    vesicle = topology.add_membrane(mp.TriangleMesh.icosphere(10.0, 1), vertex_mass=1.0, vertex_friction=0.5)
    topology.add_intriangle_points(vesicle, 10, mass=1.0, friction=0.2, seed=1)
    topology.add_filament(np.column_stack([np.arange(6.0), np.zeros((6, 2))]), node_mass=1.0, node_friction=1.0)
    topology.add_rigid_bodies(np.full((1, 3), 40.0), [[1.0, 0, 0, 0]], 1.0, (1.0, 2.0, 2.5), friction=0.4)
    context = mp.Context(mp.System(topology), mp.BAGOGABIntegrator(1e-3, kT=1.0, seed=1))
    context.set_velocities_to_temperature(kT=1.0, seed=2)
    before = context.get_state(velocities=True, energy=True)
    context.scale_velocities(1.5)
    after = context.get_state(velocities=True, energy=True)
    assert after.kinetic_energy == pytest.approx(2.25 * before.kinetic_energy, rel=1e-13)
    np.testing.assert_allclose(after.velocities, 1.5 * before.velocities, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(after.angular_momenta, 1.5 * before.angular_momenta, rtol=1e-14)
    for factor in (0.0, -1.0, float("nan")):
        refuses(ParameterError, "scale_velocities: factor", context.scale_velocities, factor)


def test_energies_by_other_numbers_are_those_of_the_other_state():
    """And looking leaves no trace: neither in the numbers, nor in the account of work, nor in what comes."""
    simulation, other = runs.linked(1), runs.linked(1)
    for one in (simulation, other):
        one.step(30)
    found = exchange.weights(simulation, SPRINGS[0], SPRINGS[1])
    own, there = found["own"], found["other"]
    assert (found["own weight"], found["other weight"]) == (0.0, 0.0)
    assert own == other.context.get_state(energy=True).potential_energy
    for k in range(20):
        simulation.step(3)
        exchange.weights(simulation, SPRINGS[0], {"springs.stiffness": 1.0 + 0.37 * k, "kT": 1.0})
    other.step(60)
    a, b = (one.context.get_state(energy=True, positions=True) for one in (simulation, other))
    assert (a.positions == b.positions).all()
    assert (a.heat, a.shadow_work, a.protocol_work) == (b.heat, b.shadow_work, b.protocol_work)
    # At the same place.
    simulation = runs.linked(1)
    simulation.step(30)
    simulation.system["springs"].set(stiffness=2.0)
    assert there == simulation.context.get_state(energy=True).potential_energy


def same(one, other):
    for name in ("states", "energies", "attempted", "accepted"):
        assert np.array_equal(getattr(one, name), getattr(other, name)), name
    assert one.observed == other.observed
    assert one.done == other.done


@pytest.fixture(scope="module")
def reference():
    """In threads, where simulations stay in memory."""
    return swapped(runs.linked, SPRINGS, n_exchanges=12, seed=5, observe=runs.kinetic)


@pytest.mark.parametrize("place", ["threads", "process", "threads, folder", "processes, folder", "killed",
                                   "killed, folder"])  # fmt: skip
def test_bits_are_equal_everywhere(reference, tmp_path, place):
    assert (reference.states != np.arange(3)).any()
    assert np.shape(reference.observed) == (12, 3, 2)
    executor = ThreadPoolExecutor(3) if "threads" in place else 1 if place == "process" else 2
    folder = tmp_path / "x" if "folder" in place else None
    options = {"n_exchanges": 12, "seed": 5, "observe": runs.kinetic, "executor": executor, "directory": folder}
    if "killed" in place:
        with runs.Killer(lambda: [child.pid for child in multiprocessing.active_children()], 2, 3, 0.8) as killer:
            found = swapped(runs.linked, SPRINGS, **options)
        assert killer.killed >= 1
    else:
        found = swapped(runs.linked, SPRINGS, **options)
    same(found, reference)
    if folder:
        assert [walker.name for walker in found.directories] == ["0000", "0001", "0002"]
        assert all((walker / "run.csv").exists() for walker in found.directories)


def test_resuming(reference, tmp_path):
    """After time is up; with more exchanges; after a line was cut; and a walker that is a cycle ahead."""
    options = {"seed": 5, "observe": runs.kinetic, "directory": tmp_path / "x"}
    nothing = swapped(runs.linked, SPRINGS, n_exchanges=12, walltime=1e-9, **options)
    assert not nothing.done
    assert nothing.states.tolist() == [[0, 1, 2]]
    assert np.isnan(nothing.acceptance).all()
    swapped(runs.linked, SPRINGS, n_exchanges=5, **options)
    history = tmp_path / "x" / "history.jsonl"
    lines = history.read_bytes().splitlines(keepends=True)
    assert len(lines) == 5
    # Killed while it wrote the fifth: all walkers are beyond it.
    history.write_bytes(b"".join(lines[:4]) + lines[4][:30])
    found = swapped(runs.linked, SPRINGS, n_exchanges=12, **options)
    same(found, reference)
    short = swapped(runs.linked, SPRINGS, n_exchanges=3, **options)
    assert (short.states == reference.states[:4]).all()
    history.write_bytes(b"".join(lines[:2]))
    with pytest.raises(ParameterError, match=r"it is at step 480 already, beyond 120: history\.jsonl has lost its end"):
        swapped(runs.linked, SPRINGS, n_exchanges=12, **options)
    for wrong in (b"{}\n", b"[1\n", lines[1], lines[0].replace(b'"pairs": [0]', b'"pairs": [1]')):
        history.write_bytes(wrong)
        with pytest.raises(ParameterError, match=r"history\.jsonl, line 1, is not of this exchange, or damaged"):
            swapped(runs.linked, SPRINGS, n_exchanges=12, **options)


def test_documents(tmp_path):
    simulation = runs.trapped(1)
    text = mp.serialize((simulation.system, simulation.integrator))
    same(swapped(text, n_exchanges=4), swapped(runs.trapped, n_exchanges=4))


def exchange_of(*paths):
    states = np.array([*paths, *[[0] * len(paths[0])] * (3 - len(paths))]).T
    return exchange.Exchanges([{}] * 3, True, states, None, None, None, [], None)


def test_results(reference):
    n, K = reference.energies.shape
    assert (n, K) == (12, 3)
    assert (np.take_along_axis(reference.walkers, reference.states, 1) == np.arange(3)).all()
    assert reference.attempted.tolist() == [6, 6]
    changes = (np.diff(reference.states, axis=0) != 0).sum()
    assert changes == 2 * reference.accepted.sum() > 0
    assert "acceptance" in repr(reference)
    assert reference._repr_html_().count("<tr>") == 4
    # 0 to 2 and back once each.
    paths = [2, 2, 1, 0, 0, 1, 2, 2, 1, 0], [1, 0, 0, 1, 2, 2, 1, 0, 0, 1], [0, 1, 2, 2, 1, 0, 0, 1, 2, 2]
    there = exchange_of(*paths)
    assert there.round_trips.tolist() == [1, 1, 1]
    assert [exchange_of(path).round_trips[0] for path in ([0, 1, 2, 1], [2, 0], [2, 0, 2, 1, 0, 0, 2, 0])] == [0, 0, 2]


REFUSED = [
    ({"ladder": [{"kT": 1.0}]}, "ladder has one state"),
    ({"ladder": [{"kT": 1.0}, {"temperature": 1.0}]}, r"ladder\[1\] has the names temperature, ladder\[0\] kT"),
    ({"ladder": [{"timestep": 1.0}, {"timestep": 2.0}]}, r"ladder\[0\] sets a timestep"),
    ({"ladder": [{"kT": 1.0}, {"kT": 1.0}]}, r"ladder\[1\] is the same as ladder\[0\]"),
    ({"ladder": [3, 4]}, r"ladder\[0\] must be a dict"),
    ({"ladder": [{"kT": -1.0}, {"kT": 1.0}]}, "walker 0 in state 0, before exchange 0: ParameterError: kT = -1"),
    ({"ladder": [{"trop.stiffness": 1.0}, {"trop.stiffness": 2.0}]}, "trop"),
    ({"every": 0}, "every = 0"),
    ({"n_exchanges": -1}, "n_exchanges = -1"),
    ({"observe": 3}, "observe must be a function"),
]


@pytest.mark.parametrize(("given", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_refused(given, message):
    refuses((ParameterError, SimulationError), message, swapped, **{"n_exchanges": 3, **given})


def without_thermostat(seed):
    topology = mp.Topology()
    topology.add_beads([[0.0, 0, 0]], mass=1.0)
    return mp.Simulation(mp.System(topology), mp.VerletIntegrator(0.01))


def implicitly_kicked(seed):
    simulation = runs.trapped(seed)
    word = mp.SplittingIntegrator("BAOAB", 0.1, kT=1.0, seed=seed, kick=mp.kicks.ZhangSkeel(beta=0.25))
    return mp.Simulation(simulation.system, word)


def driven(seed):
    simulation = runs.trapped(seed)
    beads = simulation.topology.handles[0]
    system = system_with(simulation.topology, mp.forces.HarmonicTrap(beads, 1.0, [0.0, 0, 0], name="trap"))
    links = system.add_force(mp.forces.Links([], [], stiffness=2.0, length=1.5))
    system.add_jump(mp.jumps.LinkBinding(links, beads, off_rate=1.0, on_rate=3.0, rates=mp.jumps.Bell(2.0)))
    return mp.Simulation(system, mp.BAGOGABIntegrator(0.1, kT=1.0, seed=seed))


@pytest.mark.parametrize(
    ("make", "message"),
    [(without_thermostat, "keeps no temperature: add O"), (implicitly_kicked, "ZhangSkeel moves beads by other forces"),
     (driven, "LinkBinding is driven, and keeps no canonical distribution")],
)  # fmt: skip
def test_no_canonical_distribution(make, message):
    refuses(ParameterError, message, swapped, make, [{"trap.stiffness": 1.0}, {"trap.stiffness": 2.0}])


def test_walker_that_cannot_move():
    with pytest.raises(SimulationError, match="walker 1 in state 1, before exchange 0: SimulationError") as caught:
        swapped(runs.fails_later)
    assert "Traceback" in caught.value.__notes__[0]
    refuses(ExecutorError, r"walker 0.*its worker ended", swapped, runs.always_killed, LADDER[:2], executor=1)


def test_the_folder_of_another_ladder(tmp_path):
    swapped(n_exchanges=1, directory=tmp_path / "x")
    text = json.loads((tmp_path / "x" / "ensemble.json").read_text())
    assert text["ladder"] == LADDER
    with pytest.raises(ParameterError, match="is of another ensemble, whose every is 40, not 41"):
        swapped(n_exchanges=1, directory=tmp_path / "x", every=41)
    with pytest.raises(ParameterError, match="is of another ensemble, whose kind is 'replica_exchange'"):
        mp.ensemble.run(runs.bead, until=10, directory=tmp_path / "x", executor=ThreadPoolExecutor(1))
