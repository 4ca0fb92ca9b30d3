"""Filaments whose links keep their lengths: what the laws of constrained mechanics say about them, and bad input.

False alarms: 1e-6 for each statistical check (see medyanpy.testing). Seeds are fixed, so a pass is a pass.
"""

import copy
import pickle

import numpy as np
import pytest
from builders import energies_converge, look, refuses, retraced, system_with

import medyanpy as mp
from medyanpy.testing import check_chi_square, check_mean, check_variance, thermal


def chain(rng, n, bend=0.5, origin=(0.0, 0.0, 0.0)):
    """Nodes of a chain with uneven links that turns by about `bend` at every node."""
    t = rng.normal(size=3)
    x = [np.array(origin, float)]
    for _ in range(n - 1):
        t = t / np.linalg.norm(t) + rng.normal(0.0, bend / np.sqrt(2.0), 3)
        x.append(x[-1] + rng.uniform(0.7, 1.4) * t / np.linalg.norm(t))
    return np.array(x)


def ring(rng, n, origin=(0.0, 0.0, 0.0)):
    phi = 2.0 * np.pi / n * (np.arange(n) + rng.uniform(0.0, 0.3, n))
    radius = n / 6.0
    flat = np.column_stack([radius * np.cos(phi), radius * np.sin(phi), np.zeros(n)])
    return flat + rng.normal(0.0, 0.1, (n, 3)) + origin


def zoo(word, timestep, *, tolerance=1e-10, fixed=True, trap=0.05, seed=1, kT=1.0, threads=1, long=True):
    """Chains and rings of many lengths, some held, with uneven masses and frictions 1:50 along each, in a trap and
    tied to each other by springs."""
    rng = np.random.default_rng(seed)
    topology = mp.Topology()
    chains = [chain(rng, n, origin=rng.normal(0.0, 2.0, 3)) for n in (2, 3, 5, 8, 8, 20, 33)]
    if long:
        chains.append(chain(rng, 300, 0.2))
    rings = [ring(rng, n, origin=rng.normal(0.0, 2.0, 3)) for n in (3, 4, 9, 24)]
    handles = []
    for nodes, closed in ((chains, False), (rings, True)):
        n = sum(map(len, nodes))
        first = np.cumsum([0, *map(len, nodes)])[1:-1:2]
        handles.append(topology.add_filaments(nodes, rng.uniform(0.5, 2.0, n), rng.choice([0.1, 5.0], n), closed=closed,
                                              tolerance=tolerance, fixed_nodes=first if fixed else ()))  # fmt: skip
    system = mp.System(topology)
    if trap:
        # Far from the trap, the long one would fall into it too fast.
        beads = [b for h in handles for b in h.beads[: h.starts[7] if long and not h.closed else None]]
        system.add_force(mp.forces.HarmonicTrap(beads, [trap, 0.7 * trap, 0.4 * trap], [0.3, 0.0, 0.1]))
    pairs = rng.permutation(topology.n_beads)[:20].reshape(-1, 2)
    system.add_force(mp.forces.HarmonicBonds(pairs, 0.5, 0.0))
    integrator = mp.SplittingIntegrator(word, timestep, kT=thermal(word, kT), seed=seed)
    context = mp.Context(system, integrator, threads=threads)
    context.set_velocities_to_temperature(kT=kT, seed=seed + 1)
    return context, handles


def violations(state, handles):
    """Largest relative error of a length, and largest relative speed of a link along itself in units of speeds."""
    off = stretch = 0.0
    for handle in handles:
        x, v = state.positions[handle.beads], state.velocities[handle.beads]
        i, j = handle.links.T
        D = x[j] - x[i]
        length = np.linalg.norm(D, axis=1)
        off = max(off, np.abs(length / handle.link_lengths - 1.0).max())
        stretch = max(stretch, np.abs(((v[j] - v[i]) * D).sum(axis=1) / length).max() / np.abs(v).max())
    return off, stretch


# What holds at every step ------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("word", ["BAOAB", "AGBGA", "OBABO", "BAB"])
def test_lengths_and_tangent_velocities_at_every_step(word):
    context, handles = zoo(word, 0.02)
    start = look(context)
    for _ in range(1000):
        context.step(1)
        off, stretch = violations(context.get_state(positions=True, velocities=True), handles)
        assert off < 1e-10
        assert stretch < 1e-12
    assert np.abs(look(context).positions - start.positions).max() > 1.0


def test_a_sharper_tolerance_is_kept():
    context, handles = zoo("BAOAB", 0.02, tolerance=1e-13)
    for _ in range(200):
        context.step(1)
        off, stretch = violations(context.get_state(positions=True, velocities=True), handles)
        assert off < 1.5e-13
        assert stretch < 1e-12


def test_fixed_nodes_stay_to_the_bit():
    context, handles = zoo("BAOAB", 0.02)
    start = look(context)
    context.step(300)
    end = look(context)
    for handle in handles:
        still = handle.beads[handle.fixed_nodes]
        assert len(still)
        assert (end.positions[still] == start.positions[still]).all()
        assert (end.velocities[still] == 0.0).all()
        others = np.delete(handle.beads, handle.fixed_nodes)
        assert (end.positions[others] != start.positions[others]).any(axis=1).all()


@pytest.mark.parametrize("word", ["BAB", "ABA", "AGBGA", "BAABAAB"])
def test_time_reversal(word):
    context, _ = zoo(word, 0.02, tolerance=2e-14, long=False)
    retraced(context, 150)


@pytest.mark.parametrize("closed", [False, True])
def test_time_reversal_of_a_long_filament(closed):
    rng = np.random.default_rng(4)
    topology = mp.Topology()
    nodes = ring(rng, 400) if closed else chain(rng, 400, 0.2)
    filament = topology.add_filament(nodes, rng.uniform(0.5, 2.0, 400), closed=closed, tolerance=2e-14,
                                     fixed_nodes=[0, 200])  # fmt: skip
    context = mp.Context(system_with(topology, mp.forces.HarmonicTrap(filament, 0.01, [0.0, 0.0, 0.0])),
                         mp.VerletIntegrator(0.02))  # fmt: skip
    context.set_velocities_to_temperature(kT=1.0, seed=2)
    retraced(context, 150)


@pytest.mark.parametrize("word", ["BAB", "ABA"])
def test_energy_error_falls_as_the_square_of_the_timestep(word):
    energies_converge(lambda h: zoo(word, h, trap=1.0, long=False, kT=0.3)[0])


@pytest.mark.parametrize("long", [False, True])
def test_momentum_and_angular_momentum_of_free_filaments(long):
    context, handles = zoo("BAB", 0.02, fixed=False, trap=0.0, long=long)
    mass = np.concatenate([h.mass for h in handles])[:, None]

    def momenta():
        state = look(context)
        p = mass * state.velocities
        x = state.positions
        return p.sum(axis=0), np.cross(x, p).sum(axis=0), np.abs(p).sum(), (np.abs(x) * np.abs(p)).sum()

    p0, l0, p_scale, l_scale = momenta()
    context.step(300)
    p1, l1, *_ = momenta()
    assert np.abs(p1 - p0).max() < 1e-12 * p_scale
    assert np.abs(l1 - l0).max() < 1e-11 * l_scale


def test_a_dumbbell_turns_as_a_rigid_body_does():
    """Two nodes, masses 1 and 3, at 2 rad per unit of time: back after a turn, up to the phase error of a step."""
    errors = []
    for n in (100, 200):
        topology = mp.Topology()
        topology.add_filament([[0.75, 0.0, 0.0], [-0.25, 0.0, 0.0]], [1.0, 3.0])
        context = mp.Context(mp.System(topology), mp.VerletIntegrator(np.pi / n))
        context.set_velocities([[0.0, 1.5, 0.0], [0.0, -0.5, 0.0]])
        context.step(n // 4)
        x = look(context).positions
        np.testing.assert_allclose(np.hypot(x[:, 0], x[:, 1]), [0.75, 0.25], rtol=1e-9)
        errors.append(abs(np.arctan2(x[0, 1], x[0, 0]) - np.pi / 2))
    # A flight along the tangent turns by asin(hω), which is (hω)³/6 more than hω.
    assert errors[0] == pytest.approx(np.pi / 2 * (2.0 * np.pi / 100) ** 2 / 6.0, rel=0.01)
    assert errors[0] / errors[1] == pytest.approx(4.0, rel=0.01)


def test_a_hanging_chain_is_pulled_at_its_fixed_end_alone():
    """A pendulum of one link swings with the period of elliptic integrals: 2.1 % longer at 33 degrees."""
    from scipy.special import ellipk

    theta, length, g, h = 0.58, 2.0, 3.0, 0.002
    topology = mp.Topology()
    bob = np.array([[0.0, 0.0, 0.0], [length * np.sin(theta), 0.0, -length * np.cos(theta)]])
    filament = topology.add_filament(bob, [1.0, 0.7], fixed_nodes=[0])
    context = mp.Context(system_with(topology, mp.forces.UniformField(filament, [0.0, 0.0, -0.7 * g])),
                         mp.VerletIntegrator(h))  # fmt: skip
    period = 4.0 * np.sqrt(length / g) * ellipk(np.sin(theta / 2.0) ** 2)
    context.step(int(period / 4.0 / h) - 3)
    before = look(context)
    x = before.positions[1, 0]
    while x > 0.0:
        last = x
        context.step(1)
        x = look(context).positions[1, 0]
    crossing = context.time - h * x / (x - last)
    assert crossing == pytest.approx(period / 4.0, rel=2e-6)


# What holds in the mean --------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("closed", [False, True])
def test_temperature_counts_the_constraints(closed):
    """3 n - rank(J) degrees of freedom, and none of a fixed node; frictions 1:50 along each filament. 10 000 and more
    degrees of freedom find 11 %; links counted as free would change it by 24 to 50 %."""
    rng = np.random.default_rng(8)
    topology = mp.Topology()
    counts = [3, 4, 9] if closed else [2, 3, 9]
    nodes = [(ring if closed else chain)(rng, n) for n in counts]
    for n, x in zip(counts, nodes, strict=True):
        k = 1500
        topology.add_filaments(np.tile(x, (k, 1)), np.tile(rng.uniform(0.5, 2.0, n), k),
                               np.tile(rng.choice([0.4, 20.0], n), k), starts=n * np.arange(k + 1), closed=closed,
                               fixed_nodes=n * np.arange(k) if n == 9 else (), name=f"of {n}")  # fmt: skip
    context = mp.Context(mp.System(topology), mp.SplittingIntegrator("BAOAB", 0.02, kT=1.5, seed=3), threads=1)
    context.step(400)
    state = context.get_state(energy=True, velocities=True)
    for handle, n in zip(topology.handles, counts, strict=True):
        links = n if closed else n - 1
        free = 1500 * (3 * n - links - (3 if n == 9 else 0))
        assert handle.degrees_of_freedom == free
        measured = state.temperatures[handle.name] * mp.units.boltzmann
        check_variance(f"temperature {handle.name}", measured * free, free, 1.5, sees=0.15)


TRIMER_FRICTIONS = {"equal": [1.0, 1.0, 1.0], "1:50": [0.2, 10.0, 0.2], "1:50 at an end": [10.0, 0.2, 0.2]}


def trimers(n, friction, fixman, looks, every):
    """(looks, n) cosines of the angle between the links of rigid trimers at kT = 1, every so many steps of 0.1."""
    topology = mp.Topology()
    first, second = np.random.default_rng(9).normal(size=(2, n, 3))
    first /= np.linalg.norm(first, axis=1)[:, None]
    second /= np.linalg.norm(second, axis=1)[:, None]
    x = np.stack([-first, np.zeros((n, 3)), second], axis=1).reshape(-1, 3)
    chains = topology.add_filaments(x, 1.0, np.tile(friction, n), starts=3 * np.arange(n + 1))
    system = mp.System(topology)
    if fixman:
        system.add_force(mp.forces.FixmanPotential(chains, kT=1.0))
    context = mp.Context(system, mp.SplittingIntegrator("BAOAB", 0.1, kT=1.0, seed=10), threads=1)
    context.set_velocities_to_temperature(kT=1.0, seed=11)
    context.step(100)
    cosines = []
    for _ in range(looks):
        context.step(every)
        nodes = context.get_state(positions=True).positions.reshape(n, 3, 3)
        cosines.append(((nodes[:, 1] - nodes[:, 0]) * (nodes[:, 2] - nodes[:, 1])).sum(axis=1))
    return np.array(cosines)


@pytest.mark.slow
@pytest.mark.parametrize("friction", TRIMER_FRICTIONS)
def test_a_rigid_trimer_prefers_right_angles(friction):
    """Two rigid links of equal masses: p(cos θ) ~ √(4 - cos²θ), <cos²θ> = 0.32102. Without the metric of the
    constraints it is 1/3, 0.0123 more; 0.005 would be seen."""
    cosines = trimers(6000, TRIMER_FRICTIONS[friction], False, 40, 15)
    # Trimers are independent, times of one of them are not.
    check_mean("<cos²θ>", (cosines**2).mean(axis=0), 0.3210212, sees=0.005)
    check_mean("<cos θ>", cosines.mean(axis=0), 0.0, sees=0.011)
    edges = np.linspace(-1.0, 1.0, 11)
    counts, _ = np.histogram(cosines[::10], edges)
    primitive = 0.5 * edges * np.sqrt(4.0 - edges**2) + 2.0 * np.arcsin(edges / 2.0)
    share = np.diff(primitive) / (primitive[-1] - primitive[0])
    check_chi_square("p(cos θ)", counts, share * counts.sum(), sees=0.06)


@pytest.mark.slow
def test_a_rigid_trimer_with_fixman_has_no_preference():
    """With the Fixman potential the angle is uniform on the sphere: <cos²θ> = 1/3; without it 0.0123 less. 0.006 would
    be seen."""
    cosines = trimers(4000, TRIMER_FRICTIONS["equal"], True, 40, 15)
    check_mean("<cos²θ>", (cosines**2).mean(axis=0), 1.0 / 3.0, sees=0.006)


@pytest.mark.slow
def test_worm_like_chains_with_fixman_are_those_of_the_textbook():
    """p ~ e^(a cos θ) for each joint: <cos θ> = u = coth a - 1/a, and <R²> follows. Chains start in equilibrium, drawn
    from these densities, and must stay there. Unequal masses, which matter without the potential: there <1 - cos θ>
    is 4.5 % larger. 2.6 % would be seen, and 5.4 % of <R²>."""
    n, links, a = 1500, 9, 3.0
    rng = np.random.default_rng(4)
    cosine = np.log(np.exp(-a) + rng.uniform(size=(n, links - 1)) * (np.exp(a) - np.exp(-a))) / a
    turn = rng.uniform(0.0, 2.0 * np.pi, (n, links - 1))
    d = rng.normal(size=(n, 3))
    d /= np.linalg.norm(d, axis=1)[:, None]
    chain = [np.zeros((n, 3)), d]
    for j in range(links - 1):
        side = np.cross(d, rng.normal(size=(n, 3)))
        side /= np.linalg.norm(side, axis=1)[:, None]
        other = np.cross(d, side)
        c, s = cosine[:, j, None], np.sqrt(1.0 - cosine[:, j, None] ** 2)
        d = c * d + s * (np.cos(turn[:, j, None]) * side + np.sin(turn[:, j, None]) * other)
        chain.append(chain[-1] + d)
    topology = mp.Topology()
    mass = np.tile(np.linspace(0.5, 2.0, links + 1), n)
    filaments = topology.add_filaments(list(np.stack(chain, axis=1)), mass, 2.0)
    system = system_with(topology, mp.forces.FilamentBending(filaments, a),
                         mp.forces.FixmanPotential(filaments, kT=1.0))  # fmt: skip
    context = mp.Context(system, mp.SplittingIntegrator("BAOAB", 0.05, kT=1.0, seed=10), threads=1)
    context.set_velocities_to_temperature(kT=1.0, seed=11)
    cosines, squares = [], []
    for _ in range(30):
        context.step(20)
        nodes = context.get_state(positions=True).positions.reshape(n, links + 1, 3)
        d = np.diff(nodes, axis=1)
        cosines.append((d[:, 1:] * d[:, :-1]).sum(axis=2).mean(axis=1))
        squares.append(((nodes[:, -1] - nodes[:, 0]) ** 2).sum(axis=1))
    u = 1.0 / np.tanh(a) - 1.0 / a
    check_mean("<cos θ>", np.mean(cosines, axis=0), u, sees=0.026 * (1.0 - u))
    expected = links * ((1 + u) / (1 - u) - 2 * u * (1 - u**links) / (links * (1 - u) ** 2))
    check_mean("<R²>", np.mean(squares, axis=0), expected, sees=0.054 * expected)


# Threads and neighbours --------------------------------------------------------------------------------------


# Filaments without constraints -------------------------------------------------------------------------------


def test_unconstrained_filaments_are_a_row_of_beads():
    """To the bit; and lengths may be anything."""
    rng = np.random.default_rng(2)
    x = chain(rng, 12)
    runs = []
    for filament in (False, True):
        topology = mp.Topology()
        if filament:
            handle = topology.add_filament(x, 1.5, 0.3, constrained=False, link_lengths=0.3, name="row")
            assert handle.degrees_of_freedom == 36
        else:
            handle = topology.add_beads(x, 1.5, 0.3, name="row")
        system = mp.System(topology)
        system.add_force(mp.forces.HarmonicBonds(np.column_stack([np.arange(11), np.arange(1, 12)]), 20.0, 0.3))
        context = mp.Context(system, mp.SplittingIntegrator("BAOAB", 0.05, kT=1.0, seed=5))
        context.step(100)
        runs.append(look(context))
    assert runs[0].positions.tobytes() == runs[1].positions.tobytes()
    assert runs[0].temperatures == runs[1].temperatures


# Topology ----------------------------------------------------------------------------------------------------


LINE = np.column_stack([np.arange(5.0), np.zeros((5, 2))])
BENT = np.array([[0.0, 0, 0], [1.0, 0, 0], [1.0, 1.5, 0], [1.0, 1.5, 0.5], [2.0, 2.0, 1.0]])


def test_links_lengths_and_degrees_of_freedom():
    topology = mp.Topology()
    topology.add_beads([[0.0, 0, 0]], 1.0)
    one = topology.add_filament(BENT, 1.0, fixed_nodes=[-1])
    assert one.beads.tolist() == [1, 2, 3, 4, 5]
    assert one.links.tolist() == [[0, 1], [1, 2], [2, 3], [3, 4]]
    np.testing.assert_allclose(one.link_lengths, [1.0, 1.5, 0.5, 1.5**0.5], rtol=1e-15)
    assert one.fixed_nodes.tolist() == [4]
    assert one.kind.fixed_beads.tolist() == [False, False, False, False, True]
    assert one.degrees_of_freedom == 3 * 4 - 4
    rings = topology.add_filaments([BENT[:3], BENT, BENT[1:]], [1.0] * 12, closed=True)
    assert rings.kind.n_chains == 3
    assert rings.links.tolist() == [[0, 1], [1, 2], [2, 0], [3, 4], [4, 5], [5, 6], [6, 7], [7, 3], [8, 9], [9, 10],
                                    [10, 11], [11, 8]]  # fmt: skip
    x = rings.positions
    np.testing.assert_allclose(rings.link_lengths, np.linalg.norm(np.diff(x[rings.links], axis=1)[:, 0], axis=1))
    assert rings.degrees_of_freedom == 36 - 12
    assert [rings.kind.chain_of(b) for b in rings.beads] == [0] * 3 + [1] * 5 + [2] * 4
    assert rings.kind.describe(int(rings.beads[4])) == "node 1 of filament 1"
    assert (one.name, rings.name) == ("filament", "filaments")
    loose = topology.add_filaments([LINE, BENT], 1.0, constrained=False, fixed_nodes=[3])
    assert loose.degrees_of_freedom == 27
    assert loose.links.tolist() == [[0, 1], [1, 2], [2, 3], [3, 4], [5, 6], [6, 7], [7, 8], [8, 9]]


T, P = mp.TopologyError, mp.ParameterError
BAD_ONE = {
    "one node": (T, r"filament 0 has 1 nodes, but a filament needs 2", {"nodes": LINE[:1]}),
    "a ring of two": (T, r"filament 0 has 2 nodes, but a ring needs 3", {"nodes": LINE[:2], "closed": True}),
    "nodes of wrong shape": (T, r"nodes.*shape", {"nodes": LINE[:, :2]}),
    "a node that is not a number": (T, r"nodes.*\[2, 1\] = nan but must be finite", {"nodes": np.where(
        (np.arange(5) == 2)[:, None] & (np.arange(3) == 1), np.nan, LINE)}),
    "nodes in one place": (T, r"link 1 of filament 0 has both nodes in one place", {"nodes": LINE[[0, 1, 1, 2]]}),
    "a ring that closes in one place": (
        T, r"link 4 of filament 0 has both nodes in one place", {"nodes": BENT[[0, 1, 2, 3, 0]], "closed": True}),
    "lengths that do not fit": (
        T, r"link 2 of filament 0 is 1 nm long in the nodes given, but its length shall be 1.002 nm.*0.001",
        {"link_lengths": [1.0, 1.0, 1.002, 1.0]}),
    "a length too many": (P, r"link_lengths", {"link_lengths": [1.0] * 5}),
    "a length of zero": (P, r"link_lengths.*> 0", {"link_lengths": [1.0, 0.0, 1.0, 1.0]}),
    "a length that is not a number": (P, r"link_lengths.*finite", {"link_lengths": [1.0, np.nan, 1.0, 1.0]}),
    "both nodes of a link fixed": (
        T, r"link 1 of filament 0 has both nodes fixed", {"nodes": BENT, "fixed_nodes": [2, 1]}),
    "first and last of a ring fixed": (
        T, r"link 4 of filament 0 has both nodes fixed", {"nodes": BENT, "closed": True, "fixed_nodes": [0, -1]}),
    "held at full length": (
        T, r"filament 0 is held straight at its full length between its fixed nodes 0 and 4.*slack",
        {"fixed_nodes": [0, -1]}),
    "held at full length in its middle": (
        T, r"between its fixed nodes 1 and 3", {"nodes": np.vstack([LINE, [3.0, 1.0, 0.0]]), "fixed_nodes": [1, 3, 5]}),
    "a fixed node that is not there": (T, r"node 5 is fixed, but nodes are 0 to 4", {"fixed_nodes": [5]}),
    "a fixed node before the first": (T, r"node -6 is fixed, but nodes are 0 to 4", {"fixed_nodes": [-6]}),
    "fixed nodes that are not integers": (T, r"fixed_nodes must hold integers", {"fixed_nodes": [0.5]}),
    "a mass of zero": (P, r"node_mass.*> 0", {"node_mass": 0.0}),
    "masses of wrong number": (P, r"node_mass", {"node_mass": [1.0, 2.0]}),
    "a negative friction": (P, r"node_friction.*>= 0", {"node_friction": [0.0, 0.0, -1.0, 0.0, 0.0]}),
    "a tolerance of zero": (P, r"tolerance.*> 0", {"tolerance": 0.0}),
    "a name in use": (T, r"the name 'taken' is in use", {"name": "taken"}),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_ONE)
def test_bad_filament(case):
    error, says, arguments = BAD_ONE[case]
    topology = mp.Topology()
    topology.add_beads([[0.0, 0, 0]], 1.0, name="taken")
    with pytest.raises(error, match=f"(?s)add_filament: .*{says}|add_filament: {says}"):
        topology.add_filament(**{"nodes": LINE, "node_mass": 1.0, **arguments})
    assert len(topology.handles) == 1
    topology.add_filament(LINE, 1.0)


TWO = {"nodes": [BENT, LINE]}
BAD_MANY = {
    "a short one": (T, r"filament 1 has 1 nodes", {"nodes": [BENT, LINE[:1], LINE]}),
    "one of wrong shape": (T, r"nodes\[1\].*shape", {"nodes": [BENT, LINE[:, :2]]}),
    "none": (T, r"nothing to add", {"nodes": []}),
    "an empty one": (T, r"filament 1 has 0 nodes", {"nodes": [BENT, np.zeros((0, 3))]}),
    "starts that do not begin at 0": (T, r"starts must ascend from 0 to the number of nodes, 5",
                                      {"nodes": LINE, "starts": [1, 5]}),
    "starts that do not end": (T, r"starts must ascend from 0 to the number of nodes, 5",
                               {"nodes": LINE, "starts": [0, 3]}),
    "starts that descend": (T, r"starts must ascend", {"nodes": LINE, "starts": [0, 4, 2, 5]}),
    "no starts": (T, r"starts must ascend|nothing to add", {"nodes": LINE, "starts": []}),
    "a start of a single node": (T, r"filament 1 has 1 nodes", {"nodes": LINE, "starts": [0, 4, 5]}),
    "coincident": (T, r"link 3 of filament 1 has both nodes in one place", {"nodes": [BENT, LINE[[0, 1, 2, 3, 3]]]}),
    "lengths": (T, r"link 0 of filament 1 is 1 nm", {**TWO, "link_lengths": [1.0, 1.5, 0.5, 1.5**0.5, 1.1, 1, 1, 1]}),
    "both fixed": (T, r"link 2 of filament 1 has both nodes fixed", {**TWO, "fixed_nodes": [0, 7, 8]}),
    "held at full length": (T, r"filament 1 is held straight.*fixed nodes 0 and 4", {**TWO, "fixed_nodes": [5, 9]}),
    "a fixed node that is not there": (T, r"node 10 is fixed, but nodes are 0 to 9", {**TWO, "fixed_nodes": [10]}),
    "a fixed node before the first": (T, r"node -1 is fixed", {**TWO, "fixed_nodes": [-1]}),
    "a mass": (P, r"node_mass\[7\].*> 0", {**TWO, "node_mass": [1.0] * 7 + [-1.0] + [1.0] * 2}),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_MANY)
def test_bad_filaments(case):
    error, says, arguments = BAD_MANY[case]
    topology = mp.Topology()
    with pytest.raises(error, match=f"(?s)add_filaments: .*({says})|add_filaments: {says}"):
        topology.add_filaments(**{"node_mass": 1.0, **arguments})
    assert topology.handles == ()


def test_kinds_that_constraints_can_hold():
    """Slack between fixed nodes, fixed nodes of different filaments, links in a straight line with one end free."""
    topology = mp.Topology()
    topology.add_filament(BENT, 1.0, fixed_nodes=[0, -1])
    topology.add_filaments([LINE, LINE + 1.0], 1.0, fixed_nodes=[4, 5])
    topology.add_filament(LINE, 1.0, constrained=False, fixed_nodes=[0, 1, 4])
    topology.add_filament(LINE, 1.0, link_lengths=[1.0009, 0.9991, 1.0, 1.0])
    mp.Context(mp.System(topology), mp.VerletIntegrator(0.01)).step(10)


def test_a_topology_in_use_takes_no_filament():
    topology = mp.Topology()
    topology.add_filament(LINE, 1.0)
    context = mp.Context(mp.System(topology), mp.VerletIntegrator(0.01))
    refuses(mp.TopologyError, "in use", topology.add_filament, LINE, 1.0)
    context.step(1)


def all_kinds():
    rng = np.random.default_rng(1)
    topology = mp.Topology()
    topology.add_beads(rng.normal(size=(3, 3)), 1.0, 0.3)
    lengths = np.linalg.norm(np.diff(BENT, axis=0), axis=1) * 1.0005
    topology.add_filament(BENT, 1.0, 0.5, link_lengths=lengths, fixed_nodes=[-1], tolerance=1e-12, name="one")
    nodes = [chain(rng, n) for n in (2, 7, 280)]
    topology.add_filaments(nodes, rng.uniform(0.5, 2.0, 289), rng.uniform(0.0, 1.0, 289))
    topology.add_filaments([ring(rng, 3), ring(rng, 12)], 2.0, 0.1, closed=True, fixed_nodes=[3, 8])
    topology.add_filaments([LINE], 1.0, 0.2, constrained=False, name="loose")
    system = system_with(topology, mp.forces.HarmonicTrap(list(topology.handles), 0.2, [0.0, 0.0, 0.0]))
    return system


@pytest.mark.parametrize("way", [lambda s: mp.deserialize(mp.serialize(s)), lambda s: pickle.loads(pickle.dumps(s)),
                                 copy.deepcopy], ids=["document", "pickle", "copy"])  # fmt: skip
def test_filaments_come_back_to_the_bit(way):
    system = all_kinds()
    again = way(system)
    runs = []
    for one in (system, again):
        context = mp.Context(one, mp.SplittingIntegrator("BAOAB", 0.01, kT=1.0, seed=2))
        context.step(20)
        runs.append(look(context))
    assert runs[0].positions.tobytes() == runs[1].positions.tobytes()
    assert mp.serialize(again) == mp.serialize(system)
    for a, b in zip(again.topology.handles[1:], system.topology.handles[1:], strict=True):
        assert isinstance(a, mp.topology.Filaments)
        assert (a.name, a.closed, a.constrained, a.kind.tolerance, a.kind.n_chains) == (
            b.name, b.closed, b.constrained, b.kind.tolerance, b.kind.n_chains)  # fmt: skip
        for key in ("positions", "mass", "friction", "starts", "link_lengths", "fixed_nodes"):
            assert getattr(a, key).tobytes() == getattr(b, key).tobytes(), key


def test_arrays_of_a_handle_are_read_only():
    for handle in all_kinds().topology.handles[1:]:
        for key in ("positions", "starts", "link_lengths", "fixed_nodes"):
            with pytest.raises(ValueError, match="read-only"):
                getattr(handle, key)[:] = 0


# Positions and velocities from outside -----------------------------------------------------------------------


def test_nodes_given_slightly_off_are_brought_to_their_lengths():
    """By the least motion weighted with the masses: that of impulses along the links."""
    topology = mp.Topology()
    lengths = np.linalg.norm(np.diff(BENT, axis=0), axis=1) * [1.0009, 0.9992, 1.0, 1.0005]
    filament = topology.add_filament(BENT, [1.0, 2.0, 3.0, 1.0, 5.0], link_lengths=lengths, fixed_nodes=[2])
    context = mp.Context(mp.System(topology), mp.VerletIntegrator(0.01))
    state = look(context)
    assert violations_of(state, filament) < 1e-10
    assert 1e-5 < np.abs(state.positions - BENT).max() < 2e-3
    assert (state.positions[2] == BENT[2]).all()


def violations_of(state, handle):
    i, j = handle.links.T
    x = state.positions[handle.beads]
    return np.abs(np.linalg.norm(x[j] - x[i], axis=1) / handle.link_lengths - 1.0).max()


def test_set_positions_settles():
    context, handles = zoo("BAB", 0.01)
    rng = np.random.default_rng(3)
    start = look(context).positions
    wanted = start + [5.0, -3.0, 2.0] + rng.normal(0.0, 0.01, start.shape)
    context.set_positions(wanted)
    now = look(context)
    assert max(violations_of(now, h) for h in handles) < 1e-10
    assert 1e-3 < np.abs(now.positions - wanted).max() < 0.1
    context.set_positions(now.positions)
    # What is right already keeps its bits.
    assert look(context).positions.tobytes() == now.positions.tobytes()
    # Velocities belonged to the old links.
    context.set_velocities(rng.normal(size=start.shape))
    context.set_positions(wanted)
    assert violations(look(context), handles)[1] < 1e-12


def test_positions_without_hope_are_refused():
    context, handles = zoo("BAB", 0.01)
    rings = handles[1]
    x = look(context).positions.copy()
    x[rings.beads[7:16]] = [1.0, 2.0, 3.0]
    with pytest.raises(mp.SimulationError, match=r"node \d of filament 2.*cannot keep their lengths") as caught:
        context.set_positions(x)
    assert caught.value.object == rings.name
    assert caught.value.bead in rings.beads[7:16]
    now = look(context)
    x = now.positions.copy()
    context.set_positions(x)
    assert (look(context).positions == x).all()
    context.step(2)


def test_a_start_without_hope_is_refused():
    """Straight between fixed ends, and to be made longer: links along the line push no node sideways."""
    topology = mp.Topology()
    nodes = [[0.0, 0, 0], [1.0, 0, 0], [2.0, 0, 0]]
    topology.add_filament(nodes, 1.0, link_lengths=1.0005, fixed_nodes=[0, -1], name="taut")
    why = r"node 0 of filament 0\): its links cannot keep their lengths"
    with pytest.raises(mp.SimulationError, match=why) as caught:
        mp.Context(mp.System(topology), mp.VerletIntegrator(0.01))
    assert caught.value.object == "taut"


def test_minimisation_keeps_lengths_and_fixed_nodes():
    nodes = np.cumsum(np.random.default_rng(1).normal(size=(20, 3)), axis=0)
    topology = mp.Topology()
    filaments = topology.add_filaments([nodes, nodes + [5.0, 0, 0], nodes[:4]], 1.0, fixed_nodes=[0])
    simulation = mp.Simulation(system_with(topology, mp.forces.HarmonicTrap(filaments, [0.1, 1.0, 1.0], [0.0, 0, 0])),
                               mp.VerletIntegrator(0.01))  # fmt: skip
    before = simulation.context.get_state(positions=True, energy=True)
    assert simulation.minimize_energy(1e-4) <= 1e-4
    after = simulation.context.get_state(positions=True, energy=True)
    assert after.potential_energy < 0.1 * before.potential_energy
    d = after.positions[filaments.links[:, 1]] - after.positions[filaments.links[:, 0]]
    np.testing.assert_allclose(np.linalg.norm(d, axis=1), filaments.link_lengths, rtol=1e-9)
    assert (after.positions[0] == nodes[0]).all()


def test_velocities_from_outside_are_made_tangent():
    context, handles = zoo("BAOAB", 0.01)
    v = np.random.default_rng(5).normal(size=look(context).velocities.shape)
    context.set_velocities(v)
    state = look(context)
    assert violations(state, handles)[1] < 1e-13
    mass = np.concatenate([h.mass for h in handles])
    # A projection: what was taken out is orthogonal to what is left, in the metric of the masses.
    left, out = state.velocities, v - state.velocities
    moving = ~np.concatenate([h.kind.fixed_beads for h in handles])
    assert abs((mass[moving, None] * left[moving] * out[moving]).sum()) < 1e-12 * (mass[:, None] * v**2).sum()


# Failure -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [9, 600])
@pytest.mark.parametrize("threads", [1, 3])
def test_a_flight_too_far_is_refused(n, threads):
    """The message names filament, node, step and residual; the state is finite, on the manifold, and can be used."""
    rng = np.random.default_rng(7)
    topology = mp.Topology()
    topology.add_beads([[0.0, 0, 0]], 1.0, 0.1)
    handle = topology.add_filaments([chain(rng, m) for m in (4, 9, n, 2, *[6] * 30)], 1.0, 0.1, name="actin")
    context = mp.Context(mp.System(topology), mp.SplittingIntegrator("BAOAB", 0.02, kT=1.0, seed=2), threads=threads)
    context.set_velocities_to_temperature(kT=1.0, seed=1)
    context.step(5)
    good = look(context)
    v = good.velocities.copy()
    node = 4 + 9 + 4
    v[handle.beads[node]] = [300.0, -200.0, 100.0]
    context.set_velocities(v)
    with pytest.raises(
        mp.SimulationError,
        match=r"step 5, bead \d+ \('actin', node \d+ of filament 2\): its links cannot keep.*residual \d\.\de[+-]\d+\)",
    ) as caught:
        context.step(10)
    assert caught.value.object == "actin"
    assert caught.value.step == context.step_count == 5
    assert handle.kind.chain_of(caught.value.bead) == 2
    after = look(context)
    assert (after.positions == good.positions).all()
    assert violations(after, [handle])[0] < 1e-10
    context.set_velocities(good.velocities)
    context.step(20)
    assert violations(look(context), [handle])[0] < 1e-10


def test_messages_do_not_depend_on_threads():
    """Of several filaments that fail, the one with the lowest bead is named, with its own residual."""
    messages = set()
    for threads, among in ((1, True), (2, True), (3, True), (4, True), (1, False)):
        topology = mp.Topology()
        x = np.cumsum(np.random.default_rng(1).normal(0.0, 0.3, (90, 7, 3)) + [1.0, 0.0, 0.0], axis=1)
        topology.add_filaments(x, 1.0, name="actin")
        context = mp.Context(mp.System(topology), mp.VerletIntegrator(0.02), threads=threads)
        v = np.random.default_rng(2).normal(size=(90, 7, 3))
        v[3] *= 60.0
        if among:
            v[[17, 40, 77]] *= [[[90.0]], [[120.0]], [[200.0]]]
        context.set_velocities(v.reshape(-1, 3))
        with pytest.raises(mp.SimulationError, match=r"of filament 3\)") as caught:
            context.step(1)
        messages.add(str(caught.value))
    assert len(messages) == 1
    assert "residual 0.0e+00" not in messages.pop()
