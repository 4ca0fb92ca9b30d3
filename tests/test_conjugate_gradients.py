"""Linearly implicit kicks of nets and membranes, whose equations have no narrow band: conjugate gradients."""

import numpy as np
import pytest
from builders import refuses, retraced, system_with
from scipy import sparse
from scipy.sparse import linalg

import medyanpy as mp
from medyanpy.kicks import Newmark, PushForwardNewmark, ZhangSkeel, ZhangSkeelSimplified, ZhangSkeelStiff

STIFFNESS = 1e4
BETA = 0.35
RULES = {
    "Zhang-Skeel": lambda **o: ZhangSkeel(BETA, True, **o),
    "simplified": lambda **o: ZhangSkeelSimplified(BETA, True, **o),
    "stiff": lambda **o: ZhangSkeelStiff(BETA, ["HarmonicBonds"], True, **o),
    "Newmark": lambda **o: PushForwardNewmark(BETA, **o),
    "classical": lambda **o: Newmark(BETA, **o),
}
# On tests of rules that are not the gradient of a potential where nothing takes out their heat.
heats = pytest.mark.filterwarnings(
    "ignore:.* is not the gradient of a potential and heats:medyanpy.errors.TimestepWarning"
)


@pytest.fixture(autouse=True)
def no_bands(monkeypatch):
    """Nets need not be large here to be solved by conjugate gradients; chains stay in their bands."""
    monkeypatch.setattr("medyanpy.kicks._WIDEST_BAND", 2)


def block_net(n):
    """Places (n³, 3) on a cubic lattice, and pairs of tetrahedra: along edges and diagonals in one sense."""
    places = np.stack(np.meshgrid(*[np.arange(n)] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
    number = {tuple(place): i for i, place in enumerate(places)}
    ways = [(1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 0), (0, 1, 1), (1, 0, 1), (1, 1, 1)]
    pairs = [
        (i, number[other]) for place, i in number.items() for way in ways
        if (other := tuple(np.add(place, way))) in number
    ]  # fmt: skip
    return places.astype(float), np.array(pairs)


def sheet_net(n, wide=None):
    """Places (n * wide, 3) of a triangular net that is not flat, and its pairs."""
    rows, columns = (a.ravel() for a in np.meshgrid(np.arange(n), np.arange(wide or n), indexing="ij"))
    x, y = rows + 0.5 * columns, 0.5 * np.sqrt(3.0) * columns
    number = {(i, j): k for k, (i, j) in enumerate(zip(rows.tolist(), columns.tolist(), strict=True))}
    pairs = [
        (k, number[i + a, j + b]) for (i, j), k in number.items() for a, b in ((1, 0), (0, 1), (-1, 1))
        if (i + a, j + b) in number
    ]  # fmt: skip
    return np.column_stack([x, y, 0.4 * np.sin(0.7 * x) * np.cos(0.5 * y)]), np.array(pairs)


def of_springs(nets, masses=1.0, friction=1.0, lengths=1.0):
    """A system of such nets side by side, with bonds at rest (times `lengths`): explicit kicks bear timesteps up to
    about 0.0057 for masses of 1."""
    topology = mp.Topology()
    pairs, rest = [], []
    for k, (x, links) in enumerate(nets):
        n = topology.n_beads
        mass = masses if np.ndim(masses) == 0 else masses[n : n + len(x)]
        topology.add_beads(x + [0.0, 0.0, 50.0 * k], mass, friction)
        pairs.append(links + n)
        rest.append(lengths * np.linalg.norm(x[links[:, 0]] - x[links[:, 1]], axis=1))
    system = system_with(topology, mp.forces.HarmonicBonds(np.concatenate(pairs), STIFFNESS, np.concatenate(rest)))
    return system


def context_of(system, kick, dt, word="BAB", threads=1, **options):
    context = mp.Context(system, mp.SplittingIntegrator(word, dt, kick=kick, **options), threads=threads)
    context.runaway = None
    return context


def expected_kick(system, x, dt, stiff=None):
    """a, by the sparse LU factorisation of SciPy, and the masses (3n,)."""
    plain = context_of(system, None, 1e-5)
    plain.set_positions(x)
    mass = np.repeat(np.concatenate([h.mass for h in system.topology.handles]), 3)
    stiffness = plain.hessian(stiff, positive=True).tocsc()
    matrix = (sparse.diags_array(mass) + BETA * dt * dt * stiffness).tocsc()
    force = plain.get_state(forces=True).forces.ravel()
    return linalg.spsolve(matrix, force), mass


def stretched(system, by, seed=1):
    """Places of all beads, moved at random."""
    x = np.concatenate([handle.positions for handle in system.topology.handles])
    return x + np.random.default_rng(seed).normal(0.0, by, x.shape)


# The equations ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dt", [0.02, 0.06, 0.6])
@pytest.mark.parametrize("net", ["sheet", "block", "uneven"])
def test_kicks_are_right_to_their_tolerance(net, dt):
    """|δa| <= tolerance |a|, in the norm of kinetic energy, at 3, 10 and 100 times the explicit timestep, against
    SciPy; nets of several parallel blocks, and masses that differ by 1e4. Twice that is what the last look at the
    residual allows. A looser tolerance takes fewer products with the matrix, and errs more."""
    x, pairs = block_net(9) if net == "block" else sheet_net(30)
    masses = 10.0 ** np.random.default_rng(3).uniform(-2.0, 2.0, len(x)) if net == "uneven" else 1.0
    system = of_springs([(x, pairs)], masses, friction=100.0)
    x = stretched(system, 0.01)
    a, mass = expected_kick(system, x, dt)
    before, errors = 0, []
    for tolerance in (1e-3, 1e-6, 1e-10):
        context = context_of(system, ZhangSkeelStiff(BETA, ["HarmonicBonds"], True, tolerance=tolerance), dt,
                             word="BAOAB", kT=1.0)  # fmt: skip
        context.set_positions(x)
        ours = (context.physical_positions() - x).ravel() / (BETA * dt * dt)
        # SciPy's own error, and what the difference of places loses.
        rounding = 1e-11 * np.sqrt(np.sum(mass * a**2)) + 1e-15 * np.sqrt(np.sum(mass * x.ravel() ** 2)) / dt**2
        errors.append(np.sqrt(np.sum(mass * (ours - a) ** 2)))
        assert errors[-1] < 2.0 * tolerance * np.sqrt(np.sum(mass * a**2)) + rounding
        products = context._schedule.kicks()[1].products
        assert products > before
        before = products
    assert errors[0] > 10.0 * errors[1] > 100.0 * errors[2]


@heats
@pytest.mark.parametrize("rule", RULES)
def test_every_rule_gives_what_bands_give(rule, monkeypatch):
    """A net that fits into a band, solved in it and by conjugate gradients: 20 steps at ten times the explicit one."""
    system = of_springs([block_net(3)], np.random.default_rng(5).uniform(0.5, 2.0, 27))
    v = np.random.default_rng(6).normal(0.0, 0.02, (27, 3))
    results = []
    for wide in (24, 0):
        monkeypatch.setattr("medyanpy.kicks._WIDEST_BAND", wide)
        context = context_of(system, RULES[rule](), 0.05)
        context.set_velocities(v)
        context.step(20)
        assert (context._schedule.kicks()[1].products > 0) == (wide == 0)
        results.append(context.get_state(positions=True).positions)
    assert np.abs(results[0] - system.topology.handles[0].positions).max() > 0.01
    np.testing.assert_allclose(results[1], results[0], atol=1e-7)
    assert not np.array_equal(*results)


def test_molecules_do_not_feel_each_other():
    """Nets, large and small, a chain and beads alone in one system: where one of them is moved at random the bits of
    all others stay, solved by one thread or by all, in a band or not."""
    rng = np.random.default_rng(9)
    chain = np.cumsum(rng.normal(0.0, 0.6, (40, 3)), axis=0), np.column_stack([np.arange(39), np.arange(1, 40)])
    alone = rng.normal(0.0, 5.0, (3, 3)), np.array([[0, 1]])
    system = of_springs([sheet_net(30), chain, block_net(5), alone, sheet_net(27)])
    handles = [handle.beads for handle in system.topology.handles]
    start = stretched(system, 0.01)

    def run(x, threads):
        context = context_of(system, ZhangSkeel(BETA, True), 0.05, threads=threads)
        context.set_positions(x)
        context.step(5)
        return context.get_state(positions=True).positions

    ours = run(start, 1)
    for moved in range(len(handles)):
        x = start.copy()
        x[handles[moved]] += rng.normal(0.0, 0.05, (len(handles[moved]), 3))
        there = run(x, 2)
        same = [np.array_equal(there[beads], ours[beads]) for beads in handles]
        assert same == [k != moved for k in range(len(handles))]


def test_pairs_that_meet_join_what_was_apart():
    """A chain in a band, a net without one, and balls that repel both: all are one system of equations where they
    touch; against SciPy. What is coupled changes on the way, and with it the places of blocks."""
    topology = mp.Topology()
    x, pairs = block_net(6)
    net = topology.add_balls(x, 0.4, mass=1.0, friction=1.0)
    balls = topology.add_balls(np.arange(30.0)[:, None] * [3.0, 0, 0] - [0, 9.0, 0], 0.4, mass=0.7, friction=1.0)
    system = mp.System(topology)
    system.add_force(mp.forces.HarmonicBonds(pairs, STIFFNESS, np.linalg.norm(x[pairs[:, 0]] - x[pairs[:, 1]], axis=1)))
    system.add_force(mp.forces.SoftSphere(net, balls, 3e3, 1.0))
    rng = np.random.default_rng(10)
    kick, dt = ZhangSkeelSimplified(BETA, True), 0.05
    context = context_of(system, kick, dt, word="BAOAB", kT=1.0)
    for touching in (True, False, True):
        places = np.concatenate([x, rng.uniform(0.0, 5.0, (30, 3)) if touching else balls.positions])
        places += rng.normal(0.0, 0.01, places.shape)
        context.set_positions(places)
        a, mass = expected_kick(system, places, dt)
        ours = (context.physical_positions() - places).ravel() / (BETA * dt * dt)
        assert np.sqrt(np.sum(mass * (ours - a) ** 2)) < 1e-8 * np.sqrt(np.sum(mass * a**2))
        context.step(2)


# The theorems ----------------------------------------------------------------------------------------------------


@heats
@pytest.mark.parametrize("tolerance", [1e-4, 1e-10])
@pytest.mark.parametrize("rule", RULES)
def test_reversible(rule, tolerance):
    """A kick found from a = 0 is a function of x alone, however loosely it is found: back at the start to 1e-10 after
    20 steps at ten times the explicit timestep, velocities reversed, and 20 more."""
    system = of_springs([block_net(5)])
    context = context_of(system, RULES[rule](tolerance=tolerance), 0.05)
    context.set_velocities(np.random.default_rng(7).normal(0.0, 0.03, (system.topology.n_beads, 3)))
    retraced(context, 20, atol=1e-10, least=0.005)


@pytest.mark.parametrize("positive_definite", [False, True])
def test_symplectic(positive_definite, monkeypatch):
    """The Jacobian of a step at five times the explicit one keeps the two-form to 1e-7."""
    monkeypatch.setattr("medyanpy.kicks._WIDEST_BAND", 0)
    system = of_springs([block_net(2)], np.random.default_rng(8).uniform(0.5, 2.0, 8))
    mass = np.repeat(system.topology.handles[0].mass, 3)
    n, h = 24, 1e-5
    context = context_of(system, ZhangSkeel(BETA, positive_definite, tolerance=1e-14), 0.03)

    def step(z):
        context.set_positions(z[:n].reshape(-1, 3))
        context.set_velocities((z[n:] / mass).reshape(-1, 3))
        context.step(1)
        state = context.get_state(positions=True, velocities=True)
        return np.concatenate([state.positions.ravel(), mass * state.velocities.ravel()])

    z = np.concatenate([stretched(system, 0.003).ravel(), np.random.default_rng(9).normal(0.0, 0.2, n)])
    columns = []
    for k in range(2 * n):
        e = np.zeros(2 * n)
        e[k] = h
        columns.append((8.0 * (step(z + e) - step(z - e)) - (step(z + 2 * e) - step(z - 2 * e))) / (12.0 * h))
    jacobian = np.array(columns).T
    form = np.block([[np.zeros((n, n)), np.eye(n)], [-np.eye(n), np.zeros((n, n))]])
    assert np.abs(jacobian.T @ form @ jacobian - form).max() < 1e-7
    assert context._schedule.kicks()[1].products > 0


@heats
@pytest.mark.parametrize("rule", RULES)
def test_order(rule):
    """The largest error of the energy of a net falls as dt², where nothing is stiff yet: by 4 for a half, within 6 %;
    and at ten times the explicit timestep kinetic energy stays within the tenth that bonds give and take."""
    system = of_springs([block_net(4)])
    v = np.random.default_rng(7).normal(0.0, 0.02, (64, 3))
    errors = []
    for n in (50, 100):
        context = context_of(system, RULES[rule](), 0.04 / n)
        context.set_velocities(v)
        energies = []
        for _ in range(n):
            context.step(1)
            state = context.get_state(energy=True)
            energies.append(state.potential_energy + state.kinetic_energy)
        errors.append(np.abs(np.subtract(energies, 0.5 * np.sum(v * v))).max())
    assert context._schedule.kicks()[1].products > 0
    assert errors[0] / errors[1] == pytest.approx(4.0, rel=0.06)
    assert errors[1] < 0.02 * 0.5 * np.sum(v * v)


@pytest.mark.parametrize("tolerance", [1e-6, 1e-10])
def test_energy_stays_at_ten_times_the_explicit_timestep(tolerance):
    """A net without friction, 2000 steps: mean kinetic energies of the four quarters of the run agree within 3 %."""
    system = of_springs([block_net(4)])
    context = context_of(system, ZhangSkeel(BETA, True, tolerance=tolerance), 0.05)
    context.set_velocities_to_temperature(kT=1e-3, seed=2)
    kinetic = []
    for _ in range(400):
        context.step(5)
        kinetic.append(context.get_state(energy=True).kinetic_energy)
    quarters = np.mean(np.reshape(kinetic[40:], (4, 90)), axis=1)
    print(quarters / quarters[0])
    assert quarters.max() < 1.03 * quarters.min()


@pytest.mark.parametrize("rule", ["Zhang-Skeel", "Newmark"])
def test_bits(rule):
    """The same on any number of threads, however steps are cut, and from a state."""
    system = of_springs([sheet_net(48), block_net(4)])
    x = stretched(system, 0.005)

    def make(threads):
        context = context_of(system, RULES[rule](), 0.03, "BAOAB", threads, kT=1e-4, seed=5)
        context.set_positions(x)
        return context

    one = make(1)
    one.step(4)
    expected = one.get_state(positions=True).positions
    for threads in (2, 3):
        other = make(threads)
        other.step(1)
        other.physical_positions()
        middle = other.get_state(positions=True, velocities=True)
        other.step(3)
        assert np.array_equal(other.get_state(positions=True).positions, expected)
        again = make(threads)
        again.set_state(middle)
        again.step(3)
        assert np.array_equal(again.get_state(positions=True).positions, expected)


# What is refused -------------------------------------------------------------------------------------------------


def test_equations_without_a_minimum_are_told():
    """A net whose bonds are compressed: across them second derivatives are negative, and M + βh²V'' is not positive
    definite. The run ends, a bead and the remedy are named, and the remedy helps."""
    context_of(of_springs([block_net(4)]), ZhangSkeelSimplified(BETA), 0.05).step(1)
    system = of_springs([block_net(4)], lengths=1.3)
    context = context_of(system, ZhangSkeelSimplified(BETA), 0.05)
    with pytest.raises(mp.SimulationError, match=r"no solution here.*smaller timestep.*positive_definite=True") as told:
        context.step(1)
    assert 0 <= told.value.bead < 64
    assert context.get_state().step == 0
    context_of(system, ZhangSkeel(BETA, True), 0.05).step(1)


def test_a_direction_without_a_minimum_is_found():
    """A flat net under pressure. Each bead alone would resist, and has a diagonal block that is positive definite; but
    short waves across the net would not, by -0.15 of the masses."""
    system = of_springs([sheet_net(30)], lengths=1.015)
    flat = system.topology.handles[0].positions * [1.0, 1.0, 0.0]
    # Bonds of the flat net are at rest but for the factor.
    pairs = sheet_net(30)[1]
    system.forces[0].set(length=1.015 * np.linalg.norm(flat[pairs[:, 0]] - flat[pairs[:, 1]], axis=1))
    x = flat + np.random.default_rng(4).normal(0.0, 1e-4, flat.shape)
    context = context_of(system, ZhangSkeelSimplified(BETA), 0.05)
    context.set_positions(x)
    matrix = (sparse.eye_array(3 * len(x)) + BETA * 0.05**2 * context.hessian()).tocsr()
    blocks = np.array([matrix[3 * i : 3 * i + 3, 3 * i : 3 * i + 3].toarray() for i in range(len(x))])
    assert np.linalg.eigvalsh(blocks).min() > 0.1
    lowest = linalg.eigsh(matrix, 1, which="SA", return_eigenvectors=False)[0]
    assert lowest == pytest.approx(-0.15, abs=0.05)
    refuses(mp.SimulationError, r"no solution here.*positive_definite=True", context.step, 1)
    context = context_of(system, ZhangSkeelSimplified(BETA, True), 0.05, word="BAOAB", kT=1.0)
    context.set_positions(x)
    context.step(1)


def test_tolerances():
    """Their domain, how they are shown, and documents with and without them."""
    for kind in (ZhangSkeel, ZhangSkeelSimplified, PushForwardNewmark, Newmark):
        for wrong in (0.0, -1e-9, 0.02, np.nan, "1e-9"):
            refuses(mp.ParameterError, f"{kind.__name__}: tolerance", kind, 0.3, tolerance=wrong)
        assert kind(0.3).tolerance == 1e-10
        kick = kind(0.3, tolerance=1e-7)
        assert "tolerance=1e-07" in repr(kick)
        assert "tolerance" not in repr(kind(0.3))
        written = mp.serialize(mp.SplittingIntegrator("BAB", 0.1, kick=kick))
        assert mp.deserialize(written).kick.tolerance == 1e-7
        older = written.replace(', "tolerance": 1e-07', "").replace('"tolerance": 1e-07, ', "")
        assert older != written
        assert mp.deserialize(older).kick.tolerance == 1e-10
