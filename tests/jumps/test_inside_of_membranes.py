"""Laws of pools that are the inside of a membrane: one joint distribution of mesh and molecules.

An octahedron of which one vertex moves, along z in a trap: V = 2 (1 + z)/3 is linear in z, and so the law of z and of
the numbers of molecules is one sum of integrals.
"""

import pickle

import numpy as np
import pytest
from builders import balanced, refuses
from jumps.test_edge_flips import all_from, ball, check_counts, key_of, measured
from scipy.special import gammaln

import medyanpy as mp
from medyanpy.testing import check_mean

STIFFNESS = 6.0
X = np.vstack([np.eye(3), -np.eye(3)])
FACES = [[0, 1, 2], [1, 3, 2], [3, 4, 2], [4, 0, 2], [1, 0, 5], [3, 1, 5], [4, 3, 5], [0, 4, 5]]
Z = np.linspace(-1.0, 6.0, 14_001)[1:]


def build(counts, concentrations=None, presses=True, points=None):
    topology = mp.Topology()
    fixed = np.arange(6) != 2
    vesicle = topology.add_membrane(mp.TriangleMesh(X, FACES), 1.0, 2.0, fixed=fixed, name="vesicle")
    if points is not None:
        topology.add_intriangle_points(vesicle, **points, seed=1, name="points")
    system = mp.System(topology)
    pool = system.add_pool(mp.Pool(inside=vesicle, counts=counts, concentrations=concentrations))
    if presses:
        system.add_force(mp.forces.MembranePoolPressure(vesicle, pool, kT=1.0))
    system.add_force(mp.forces.HarmonicTrap([2], STIFFNESS, [0.0, 0.0, 1.0]))
    return vesicle, pool, system


def simulation_of(system):
    return mp.Simulation(system, mp.SplittingIntegrator("JBAGOGABJ", 0.05, kT=1.0, seed=2), threads=1)


def volume(z):
    return 2.0 * (1.0 + z) / 3.0


def watched(simulation, name, samples, every=20):
    """Heights of the vertex, and numbers of a species."""
    simulation.step(500)
    out = []
    for _ in range(samples):
        simulation.step(every)
        state = simulation.context.get_state(positions=True)
        out.append([state.positions[2, 2], state.pools[name]])
    return np.array(out).T


def means(log_weights):
    """Means of z, of the number and of their product from logarithms of weights (number, z) beside the trap."""
    weight = log_weights - 0.5 * STIFFNESS * (Z - 1.0) ** 2
    weight = np.exp(weight - weight.max())
    weight /= weight.sum()
    n = np.arange(len(weight))[:, None]
    return [(weight * value).sum() for value in (Z, n, n * Z)]


def check(names, z, n, wanted, sees):
    for name, seen, mean, effect in zip(names, (z, n, n * z), wanted, sees, strict=True):
        check_mean(name, seen, mean, time_series=True, sees=effect)


def test_dimers_and_the_volume_have_their_joint_distribution():
    """2 A <-> D of 12 A: V^(a + d) K_D^-d/(a! d!) times the trap. Without the pressure, or with rates by the volume at
    the start, each of three means would be off by more than what is seen."""
    total, k_d = 12, 8.0
    _, pool, system = build({"A": total, "D": 0})
    jump = system.add_jump(mp.jumps.Reactions(pool, f"2 A <-> D; k_on = {1.0 / k_d}, k_off = 1.0"))
    assert not jump.driven
    simulation = simulation_of(system)
    simulation.report_work = True
    z, d = watched(simulation, "D", 12_000)
    n = np.arange(total // 2 + 1)[:, None]
    own = -n * np.log(k_d) - gammaln(total - 2 * n + 1) - gammaln(n + 1)
    wanted = means(own + (total - n) * np.log(volume(Z)))
    sees = (0.06, 0.16, 0.35)
    check(("z", "D", "z D"), z, d, wanted, sees)
    at_rest = own - n * np.log(volume(Z))
    at_rest = at_rest - np.log(np.exp(at_rest).sum(axis=0))
    for wrong in (means(at_rest), means(own - n * np.log(volume(1.0)) + total * np.log(volume(Z)))):
        off = np.abs(np.subtract(wrong, wanted))
        assert (off > sees).any()
    balanced(simulation.context.get_state(energy=True))


def test_a_reservoir_inside_presses_by_what_it_fills_in():
    """0 <-> A: N is Poisson with the mean c V, so that z has its distribution in the trap under the pressure c kT,
    which is that of the trap moved by 2c/3k."""
    c = 9.0
    _, pool, system = build({"A": 12})
    system.add_jump(mp.jumps.Reactions(pool, f"0 <-> A; k_on = {2.0 * c}, k_off = 2.0"))
    simulation = simulation_of(system)
    simulation.report_work = True
    z, n = watched(simulation, "A", 10_000)
    mean = 1.0 + 2.0 * c / (3.0 * STIFFNESS)
    check_mean("z", z, mean, time_series=True, sees=0.06)
    check_mean("spread of z", (z - mean) ** 2, 1.0 / STIFFNESS, time_series=True, sees=0.03)
    check_mean("N", n, c * volume(mean), time_series=True, sees=0.7)
    state = simulation.context.get_state(energy=True)
    balanced(state)
    assert state.chemical_work == 0.0


def test_molecules_that_bind_to_points_leave_the_inside():
    """M + A <-> MA: binomial sites times N!/(N - n)! (k/k')^n V^(N - n), and the area for each point."""
    total, sites, ratio = 16, 6, 0.25
    species = {name: {"mass": 1.0, "friction": 1.0} for name in ("M", "MA")}
    given = {"species": species, "counts": {"M": sites}}
    _, pool, system = build({"A": total}, points=given)
    points = system.topology["points"]
    system.add_jump(mp.jumps.Reactions(points, "M + A <-> MA", on_rate=ratio, off_rate=1.0, pool=pool))
    simulation = simulation_of(system)
    simulation.report_work = True
    z, free = watched(simulation, "A", 12_000)
    n = np.arange(sites + 1)[:, None]
    own = n * np.log(ratio) - gammaln(n + 1) - gammaln(sites - n + 1) - gammaln(total - n + 1)
    area = np.sqrt(8.0) * (np.sqrt(Z**2 + 0.5) + np.sqrt(1.5))
    wanted = means(own + (total - n) * np.log(volume(Z)) + sites * np.log(area))
    check(("z", "bound", "z bound"), z, total - free, wanted, (0.06, 0.16, 0.35))
    balanced(simulation.context.get_state(energy=True))


def frozen(mesh, jump, k_d, total, box=None):
    """Molecules with 2 A <-> D inside of a membrane whose vertices no force moves, and a jump that changes its
    volume."""
    topology = mp.Topology()
    vesicle = topology.add_membrane(mesh, 1.0, fixed=True, name="vesicle")
    system = mp.System(topology, box=box)
    pool = system.add_pool(mp.Pool(inside=vesicle, counts={"A": total, "D": 0}))
    system.add_force(mp.forces.MembranePoolPressure(vesicle, pool, kT=1.0))
    system.add_jump(mp.jumps.Reactions(pool, f"2 A <-> D; k_on = {1.0 / k_d}, k_off = 1.0"))
    system.add_jump(jump(vesicle))
    return mp.Simulation(system, mp.SplittingIntegrator("JBAOABJ", 0.5, kT=1.0, seed=3), threads=1)


def dimers(volumes, k_d, total):
    """Weights of numbers of D and volumes, (numbers, volumes): V^(a + d) K_D^-d/(a! d!)."""
    n = np.arange(total // 2 + 1)[:, None]
    log = -n * np.log(k_d) - gammaln(total - 2 * n + 1) - gammaln(n + 1) + (total - n) * np.log(volumes)
    return np.exp(log - log.max())


def test_flips_and_molecules_inside_have_their_joint_distribution():
    """Of the 20 triangulations of five vertices the 10 that are not inside out, each with a volume of its own: with
    dimers by their number. Without the pressure, or with rates at the volume of the start, it would be another."""
    k_d, total = 0.4, 6
    mesh = ball(5, size=1.0)
    found = all_from(key_of(mesh.faces))
    volumes = measured(mesh, found)[1]
    simulation = frozen(mesh, lambda vesicle: mp.jumps.EdgeFlips(vesicle, 4.0), k_d, total)
    faces = simulation.context.layout.triangulation.faces
    seen = np.zeros((total // 2 + 1, len(found)))
    simulation.step(20)
    for _ in range(6000):
        simulation.step(5)
        seen[simulation.context.get_state().pools["D"], found[key_of(faces)]] += 1
    there = volumes > 0.0
    assert there.sum() == 10
    assert not seen[:, ~there].any()
    weights = dimers(volumes[there], k_d, total)
    check_counts("triangulations and dimers", seen[:, there].ravel(), weights.ravel(), sees=0.35)
    for wrong in (dimers(np.full(10, volumes[there].mean()), k_d, total),
                  weights / weights.sum(axis=0) * weights.sum() / 10.0):  # fmt: skip
        assert 0.5 * np.abs(wrong / wrong.sum() - weights / weights.sum()).sum() > 0.05


def test_a_box_that_scales_the_inside_weighs_it_by_all_molecules():
    """Vertices that move with the box: V is proportional to its area A, of which tension alone would make e^(τA)."""
    k_d, total, tension, side = 2.0, 8, -0.15, 8.0
    mesh = mp.TriangleMesh(X, FACES)
    simulation = frozen(
        mesh, lambda _: mp.jumps.BoxArea(tension=tension, rate=6.0, step=0.5, fixed_beads="scale"), k_d, total,
        box=(side,) * 3,
    )  # fmt: skip
    area, number = [], []
    simulation.step(100)
    for _ in range(5000):
        simulation.step(5)
        state = simulation.context.get_state()
        area.append(state.box[0] * state.box[1])
        number.append(state.pools["D"])
    grid = np.linspace(0.01, 400.0, 20_001)
    weights = dimers(mesh.volume * grid / side**2, k_d, total) * np.exp(tension * grid)
    weights /= weights.sum()
    n = np.arange(total // 2 + 1)[:, None]
    area, number = np.array(area), np.array(number, float)
    check_mean("area", area, (weights * grid).sum(), time_series=True, sees=4.0)
    check_mean("D", number, (weights * n).sum(), time_series=True, sees=0.15)
    check_mean("area times D", area * number, (weights * n * grid).sum(), time_series=True, sees=7.0)


def test_the_pressure_is_that_of_all_molecules_and_follows_what_is_set():
    _, pool, system = build({"A": 5, "B": 2}, {"R": 3.0})
    system.add_jump(mp.jumps.Reactions(pool, "A + R -> B; rate = 0.0"))
    context = simulation_of(system).context
    up = np.array([0.0, 0.0, 2.0 / 3.0])                           # dV/dx of the vertex
    for counts, n in (({}, 7), ({"A": 0}, 2), ({"B": 40}, 40), ({"B": 0}, 0)):
        context.set_pools({"Pool": counts})
        state = context.get_state(positions=True, forces=True, energy=True)
        v = volume(state.positions[2, 2])
        assert np.allclose(state.forces[2], n / v * up)
        assert state.energies["MembranePoolPressure"] == pytest.approx(-n * np.log(v / volume(1.0)), abs=1e-12)


def test_the_inside_goes_through_pickles_checkpoints_and_edits(tmp_path):
    _, pool, system = build({"A": 12, "D": 0})
    system.add_jump(mp.jumps.Reactions(pool, "2 A <-> D; k_on = 0.1, k_off = 1.0"))
    simulation = simulation_of(pickle.loads(pickle.dumps(system)))
    topology = simulation.system.topology
    assert simulation.system.pools["Pool"].inside is topology["vesicle"]
    assert "inside of vesicle, at first 1.33333 nm³" in str(simulation.system)
    simulation.step(40)
    with topology.edit():
        topology.add_beads([[9.0, 0.0, 0.0]], mass=1.0, friction=1.0)
    simulation.save_checkpoint(tmp_path / "c")
    simulation.step(200)
    other = mp.Simulation.resume(tmp_path / "c", threads=2)
    document = mp.deserialize(mp.serialize(simulation.system))
    assert document.pools["Pool"].inside is document.topology["vesicle"]
    other.step(200)
    a, b = (one.context.get_state(positions=True, energy=True) for one in (simulation, other))
    assert np.array_equal(a.positions, b.positions)
    assert a.pools["D"] == b.pools["D"]
    assert a.total_energy == b.total_energy
    v = volume(a.positions[2, 2])
    n = sum(a.pools["Pool"].values())
    assert a.energies["MembranePoolPressure"] == pytest.approx(-n * np.log(v / volume(1.0)), abs=1e-12)


def test_pools_refuse_membranes_that_enclose_nothing():
    vesicle, pool, system = build({"A": 3}, presses=False)
    sheet = mp.Topology().add_membrane(mp.TriangleMesh.flat_sheet(3, 3, 1.0), 1.0)
    turned = mp.Topology().add_membrane(mp.TriangleMesh(X, np.array(FACES)[:, ::-1]), 1.0)
    for given, error, match in (
        ({}, mp.ParameterError, "give either volume=, or inside="),
        ({"volume": 1.0, "inside": vesicle}, mp.ParameterError, "give either volume=, or inside="),
        ({"inside": sheet}, mp.TopologyError, "has 1 border, so it encloses no volume: give volume="),
        ({"inside": turned}, mp.ParameterError, "turned inside out, with the volume"),
        ({"inside": "vesicle"}, mp.TopologyError, "must be the handle of a membrane, not 'vesicle'"),
    ):
        refuses(error, match, mp.Pool, counts={"A": 1}, **given)
    refuses(mp.ParameterError, r"do not press on that: add_force\(forces.MembranePoolPressure", simulation_of, system)
    other = mp.Pool(volume=1.0, counts={"A": 1})
    press = mp.forces.MembranePoolPressure
    refuses(mp.ParameterError, "pool must be the inside of 'vesicle'", press, vesicle, other, kT=1.0)
    force = press(vesicle, mp.Pool(inside=vesicle, counts={"A": 1}), kT=1.0)
    refuses(mp.ParameterError, "must be in the system first", system.add_force, force)
    elsewhere = mp.System(mp.Topology())
    refuses(mp.TopologyError, "belongs to another topology", elsewhere.add_pool, pool)
    system.add_force(press(vesicle, pool, kT=1.0))
    refuses(mp.ParameterError, "MembranePoolPressure uses .*: remove_force it first", system.remove_pool, pool)
    system.add_jump(mp.jumps.Reactions(pool, "A -> 0; rate = 1.0"))
    implicit = mp.SplittingIntegrator("JBABJ", 0.01, kick=mp.kicks.ZhangSkeelSimplified())
    refuses(mp.ParameterError, "it changes forces between kicks", mp.Simulation, system, implicit)
