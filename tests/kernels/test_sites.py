"""The table of sites: gathering, scattering, arms on bodies that turn; and the sites of users."""

import copy
import pickle
from types import SimpleNamespace

import numpy as np
import pytest
from builders import refuses, system_with
from medyanpy._kernels.core.accumulate import Accumulator
from medyanpy._kernels.core.program import Program
from medyanpy._kernels.core.sites import SiteTable
from medyanpy._kernels.letters.kick import ForceSum

import medyanpy as mp
from medyanpy._kernels.selected import bonds

I = np.int32  # noqa: E741


# Bodies ------------------------------------------------------------------------------------------------------
# There is no public bead that turns yet: a Program is made by hand.

N, FIRST, BODIES = 9, 3, 4


def random_bodies(rng):
    q = rng.normal(size=(BODIES, 4))
    return rng.normal(0.0, 5.0, (N, 3)), q / np.linalg.norm(q, axis=1)[:, None]


def rotation(q):
    """Of a unit quaternion, scalar first: body to space, written as a matrix."""
    w, x, y, z = q
    return np.array([
        [w * w + x * x - y * y - z * z, 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), w * w - x * x + y * y - z * z, 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), w * w - x * x - y * y + z * z],
    ])  # fmt: skip


def turned(q, phi):
    """q followed by a turn by the vector phi in the frame of the body."""
    angle = np.linalg.norm(phi)
    p = np.append(np.cos(angle / 2), np.sin(angle / 2) * phi / angle)
    w = q[0] * p[0] - q[1:] @ p[1:]
    return np.append(w, q[0] * p[1:] + p[0] * q[1:] + np.cross(q[1:], p[1:]))


# Sites: a bead, an arm, an arm on a mean, two arms on one body, an anchor, a mean.
START = np.array([0, 1, 2, 4, 5, 6, 6, 9], I)
BEAD = np.array([8, 4, 5, 0, 4, 6, 1, 6, 2], I)
WEIGHT = np.array([1.0, 1.0, 0.6, 0.4, 1.0, 1.0, -0.5, 0.7, 0.8])
ANCHORS = np.array([[1.0, -2.0, 0.5]])
ORIENTED = np.array([-1, 1, 2, 1, 3, -1, -1], I)
ARM = np.where(ORIENTED[:, None] >= 0, np.random.default_rng(3).normal(0.0, 2.0, (7, 3)), 0.0)
PAIRS = np.array([[0, 1], [1, 3], [2, 5], [4, 6], [3, 6], [0, 4]])
K, LENGTH = np.linspace(1.0, 2.0, 6), np.linspace(0.0, 4.0, 6)


def site_positions(x, q):
    """By the definition, all weights alike."""
    out = []
    for s in range(7):
        entries = range(START[s], START[s + 1])
        place = sum((WEIGHT[k] * x[BEAD[k]] for k in entries), np.zeros(3)) if entries else ANCHORS[0]
        out.append(place + (rotation(q[ORIENTED[s]]) @ ARM[s] if ORIENTED[s] >= 0 else 0.0))
    return np.array(out)


def energy(x, q):
    places = site_positions(x, q)
    i, j = PAIRS.T
    return 0.5 * np.sum(K * (np.linalg.norm(places[j] - places[i], axis=1) - LENGTH) ** 2)


def evaluate(x, q, threads=1, copies=1):
    """(table, bonds, forces, torques) of the springs between the sites."""
    table = SiteTable(START, BEAD, WEIGHT, ANCHORS, ORIENTED, ARM)
    owner = PAIRS.T.ravel()
    order = np.argsort(owner, kind="stable")
    rows, counts = np.unique(owner, return_counts=True)
    terms = np.tile(np.arange(6), 2)[order]
    operation = bonds.Bonds("springs", 0, rows.astype(I), np.append(0, np.cumsum(counts)).astype(I),
                            PAIRS[:, ::-1].T.ravel()[order].astype(I), terms.astype(I), np.column_stack([K, LENGTH]),
                            table)  # fmt: skip
    program = Program(x=x.copy(), v=np.zeros((N, 3)), mass=np.ones(N), inverse_mass=np.ones(N),
                      bead=np.arange(N, dtype=I), n_vertices=0, faces=np.empty((0, 3), I), opposite=np.empty((0, 3), I),
                      triangle=np.empty(0, I), barycentric=np.empty((0, 2)), membranes_move=False, seed=0,
                      threads=threads, first_oriented=FIRST, orientation=q.copy())  # fmt: skip
    force_sum = ForceSum([operation] * copies, np.zeros((N, 3)), [np.zeros((BODIES, 3))], np.zeros((0, 3)),
                         Accumulator(0, threads))  # fmt: skip
    force_sum.refresh(program, True)
    return table, operation, force_sum.f_array, force_sum.drive_arrays[0]


def test_sites_are_where_they_should_be(rng):
    x, q = random_bodies(rng)
    table, operation, _, _ = evaluate(x, q)
    np.testing.assert_allclose(table.positions, site_positions(x, q), rtol=0, atol=1e-14)
    assert operation.energy == pytest.approx(energy(x, q), rel=1e-14)


def test_forces_are_minus_the_gradient(rng):
    x, q = random_bodies(rng)
    _, _, f, _ = evaluate(x, q)
    h, scale = 1e-5, np.abs(f).max()
    for i, c in np.ndindex(x.shape):
        up, down = x.copy(), x.copy()
        up[i, c] += h
        down[i, c] -= h
        slope = (energy(up, q) - energy(down, q)) / (2 * h)
        assert abs(f[i, c] + slope) < 1e-9 * scale, (i, c)


def test_torques_are_minus_the_derivative_in_a_turn_of_the_body(rng):
    x, q = random_bodies(rng)
    _, _, _, torque = evaluate(x, q)
    h, scale = 1e-5, np.abs(torque).max()
    for b, c in np.ndindex(torque.shape):
        sides = []
        for sign in (1, -1):
            there = q.copy()
            there[b] = turned(q[b], sign * h * np.eye(3)[c])
            sides.append(energy(x, there))
        assert abs(torque[b, c] + (sides[0] - sides[1]) / (2 * h)) < 1e-9 * scale, (b, c)
    assert (torque[0] == 0.0).all()
    assert (np.abs(torque[1:]) > 0.01).any(axis=1).all()


def test_total_torque_is_that_of_the_anchor_alone(rng):
    """In space, about the origin, torques on bodies are part of it."""
    x, q = random_bodies(rng)
    _, _, f, torque = evaluate(x, q)
    total = np.cross(x, f).sum(axis=0) + sum(rotation(q[b]) @ torque[b] for b in range(BODIES))
    # The anchor's end of link 2 pulls at the anchor's place with minus the net force.
    np.testing.assert_allclose(total, np.cross(ANCHORS[0], f.sum(axis=0)), atol=1e-12)


def test_two_equal_forces_are_twice_one_and_derivatives_are_not_offered_for_arms(rng):
    x, q = random_bodies(rng)
    _, operation, f, torque = evaluate(x, q)
    _, _, f2, torque2 = evaluate(x, q, copies=2)
    assert (f2 == 2.0 * f).all()
    assert (torque2 == 2.0 * torque).all()
    assert operation.derivatives == 1


def test_arms_of_users_reach_the_table(rng):
    """The private constructor, for the handle of bodies to come."""
    x, q = random_bodies(rng)
    arms = np.array([[1.0, 2.0, 3.0], [0.0, 0.0, 0.0], [-1.0, 0.0, 2.0]])
    sites = mp.Sites._of(np.arange(4), np.array([6, 0, 4]), np.ones(3), np.zeros((0, 3)), arms=arms)
    sites = (mp.Sites.anchors([[9.0, 9.0, 9.0]]) + sites + mp.Sites.beads([1]))[[4, 3, 1, 2, 0]]
    assert sites.single_beads.tolist() == [1, -1, -1, 0, -1]
    layout = SimpleNamespace(internal=lambda beads: beads, n=N, n_cartesian=N, first_oriented=FIRST)
    table = sites.bind(layout)
    program_positions = run_gather(table, x, q)
    expected = [x[1], x[4] + rotation(q[1]) @ arms[2], x[6] + rotation(q[3]) @ arms[0], x[0], [9.0, 9.0, 9.0]]
    np.testing.assert_allclose(program_positions, expected, atol=1e-14)
    assert sites[3:4]._arms is None


def run_gather(table, x, q):
    """Positions of a table; by a bond that joins nothing of weight."""
    operation = bonds.Bonds("nothing", 0, np.array([0, 1], I), np.array([0, 1, 2], I), np.array([1, 0], I),
                            np.zeros(2, I), np.zeros((1, 2)), table)  # fmt: skip
    program = Program(x=x, v=np.zeros((N, 3)), mass=np.ones(N), inverse_mass=np.ones(N), bead=np.arange(N, dtype=I),
                      n_vertices=0, faces=np.empty((0, 3), I), opposite=np.empty((0, 3), I), triangle=np.empty(0, I),
                      barycentric=np.empty((0, 2)), membranes_move=False, seed=0, threads=1, first_oriented=FIRST,
                      orientation=q)  # fmt: skip
    ForceSum([operation], np.zeros((N, 3)), [np.zeros((BODIES, 3))], np.zeros((0, 3)),
             Accumulator(0, 1)).refresh(program, False)  # fmt: skip
    return table.positions


# Many blocks, many threads -----------------------------------------------------------------------------------


def many_links(n_beads, n, rng):
    """Weighted ends that share beads, so that the order of sums shows."""
    def ends():
        beads = np.stack([rng.permutation(n_beads)[:3] for _ in range(n)])
        w = rng.uniform(-1.0, 1.0, (n, 2))
        return mp.Sites.weighted(beads, np.column_stack([w, 1.0 - w.sum(axis=1)]))

    return mp.forces.Links(ends(), ends(), rng.uniform(1.0, 2.0, n), rng.uniform(0.0, 3.0, n))


def test_bits_do_not_depend_on_threads(rng):
    x = rng.normal(0.0, 10.0, (5000, 3))
    topology = mp.Topology()
    topology.add_beads(x, mass=1.0)
    system = mp.System(topology)
    # Enough for several blocks of sites, of owners and of rows.
    system.add_force(many_links(5000, 6000, rng))
    states = [
        mp.Context(system, mp.VerletIntegrator(1e-3), threads=t).get_state(forces=True, energy=True) for t in (1, 2, 3)
    ]
    for state in states[1:]:
        assert (state.forces == states[0].forces).all()
        assert state.energies == states[0].energies
    # Against the definition, with sums in another order.
    force = system.forces[0]
    ends = [(s.weights[:, None] * x[s.bead_numbers]).reshape(-1, 3, 3).sum(axis=1) for s in (force.a, force.b)]
    d = ends[1] - ends[0]
    r = np.linalg.norm(d, axis=1)
    pull = (force.parameters["stiffness"] * (r - force.parameters["length"]) / r)[:, None] * d
    f = np.zeros_like(x)
    for s, sign in ((force.a, 1.0), (force.b, -1.0)):
        np.add.at(f, s.bead_numbers, sign * s.weights[:, None] * np.repeat(pull, 3, axis=0))
    np.testing.assert_allclose(states[0].forces, f, atol=1e-11)


# What users make ---------------------------------------------------------------------------------------------


@pytest.fixture
def scene():
    topology = mp.Topology()
    return topology, topology.add_beads(np.eye(3), 1.0), topology.add_balls(np.zeros((2, 3)), radius=1.0, mass=1.0)


def content(sites):
    return [a.tolist() for a in (sites.start, sites.bead_numbers, sites.weights, sites.anchor_positions)]


def test_beads_in_the_order_given(scene):
    _, beads, balls = scene
    assert mp.Sites.beads([balls, beads]).single_beads.tolist() == [3, 4, 0, 1, 2]
    assert mp.Sites.beads(balls).handles == (balls,)
    assert mp.Sites.beads([7, 1, 7]).single_beads.tolist() == [7, 1, 7]
    assert mp.Sites.beads(5).single_beads.tolist() == [5]
    assert len(mp.Sites.beads([])) == 0


def test_choosing_and_joining(scene):
    beads = scene[1]
    sites = (
        mp.Sites.anchors([[1.0, 0, 0], [2.0, 0, 0]])
        + mp.Sites.weighted([[0, 4], [2, 3]], [[0.5, 0.5], [2.0, -1.0]])
        + mp.Sites.beads(beads)
        + mp.Sites.anchors([[3.0, 0, 0]])
    )
    assert len(sites) == 8
    assert repr(sites) == "Sites(8: 3 beads, 2 weighted, 3 anchors)"
    chosen = sites[[7, 3, 5, 0, 3]]
    assert content(
        chosen
    ) == [[0, 0, 2, 3, 3, 5], [2, 3, 1, 2, 3], [2.0, -1.0, 1.0, 2.0, -1.0], [[3.0, 0, 0], [1.0, 0, 0]]]  # fmt: skip
    assert content(sites[-1]) == [[0, 0], [], [], [[3.0, 0, 0]]]
    assert content(sites[4:6]) == content(mp.Sites.beads([0, 1]))
    assert content(sites[np.arange(8) == 2]) == content(mp.Sites.weighted([[0, 4]], [[0.5, 0.5]]))
    assert content(mp.Sites.concatenate(list(sites))) == content(sites)
    assert len(sites[[]]) == 0
    assert len(mp.Sites.concatenate([])) == 0
    assert chosen.handles == (beads,)
    with pytest.raises(IndexError, match="there are 8 sites, which the index 8 does not fit"):
        sites[8]
    with pytest.raises(TypeError, match="unsupported operand"):
        sites + 3


def test_copies_and_documents_have_the_same_content():
    sites = mp.Sites.weighted([[0, 4], [2, 3]], [[0.1, 0.9], [2.0, -1.0]]) + mp.Sites.anchors([[1.0, 2, 3]])
    arrays = content(sites)
    for again in (mp.Sites.from_arrays(*arrays), pickle.loads(pickle.dumps(sites)), copy.deepcopy(sites)):
        assert content(again) == arrays
    assert len(mp.Sites.from_arrays([0], [], [], [])) == 0


def test_arms_are_carried_by_copies_and_documents():
    arms = [[1.0, 2, 3], [0.0, 0, 0]]
    sites = mp.Sites.from_arrays([0, 1, 2], [0, 1], [1.0, 1.0], [], arms=arms)
    links = mp.forces.Links(sites, mp.Sites.anchors(np.zeros((2, 3))), 1.0)
    for again in (sites[:], pickle.loads(pickle.dumps(sites)), mp.deserialize(mp.serialize(links)).a):
        assert again.arms.tolist() == arms
        assert again.single_beads.tolist() == [-1, 1]
    with pytest.raises(mp.TopologyError, match="site 0 has an arm but no bead"):
        mp.Sites.from_arrays([0, 0], [], [], [[0.0, 0, 0]], arms=[[1.0, 0, 0]])


def test_sites_cannot_be_changed():
    sites = mp.Sites.beads([0, 1])
    for a in (sites.start, sites.bead_numbers, sites.weights, sites.anchor_positions):
        assert not a.flags.writeable
    given = np.array([3, 4])
    sites = mp.Sites.beads(given)
    given[0] = 7
    assert sites.bead_numbers.tolist() == [3, 4]
    with pytest.raises(AttributeError):
        sites.weights = None
    refuses(mp.ParameterError, r"make them by Sites\.beads", mp.Sites)


@pytest.mark.parametrize(("make", "error", "text"), [
    (lambda: mp.Sites.beads([0, -2]), mp.TopologyError, r"Sites.beads: beads\[1\] = -2 but must be >= 0"),
    (lambda: mp.Sites.beads([0.5]), mp.TopologyError, "must hold integers"),
    (lambda: mp.Sites.beads([0, [1]]), mp.TopologyError, r"Sites.beads: beads must have shape \(\) or \(n,\): "),
    (lambda: mp.Sites.beads("beads"), mp.TopologyError, "Sites.beads: beads must be .*: text, not numbers"),
    (lambda: mp.Sites.weighted([0, 1], [0.5, 0.5]), mp.TopologyError, r"must have shape \(n, n\), not \(2,\)"),
    (lambda: mp.Sites.weighted(np.zeros((2, 0), int), np.zeros((2, 0))), mp.TopologyError, "at least 1 bead"),
    (lambda: mp.Sites.weighted([[0, 1], [3, -1]], np.ones((2, 2)) / 2), mp.TopologyError, r"beads\[1, 1\] = -1"),
    (lambda: mp.Sites.weighted([[0, 1], [3, 3]], np.ones((2, 2)) / 2), mp.TopologyError, r"\[1\] names bead 3 twi"),
    (lambda: mp.Sites.weighted([[0, 1]], [[1.0]]), mp.ParameterError, r"weights must have shape \(1, 2\)"),
    (lambda: mp.Sites.weighted([[0, 1]], [[np.nan, 1.0]]), mp.ParameterError, r"weights\[0, 0\] = nan"),
    (lambda: mp.Sites.weighted([[0, 1], [2, 5]], [[0.5, 0.5], [0.5, 0.5 + 4e-12]]), mp.ParameterError,
     "weights of site 1 sum to 1.000000000004 but must sum to 1: a site moves with its beads"),
    (lambda: mp.Sites.anchors([[0.0, np.inf, 0.0]]), mp.ParameterError, r"positions\[0, 1\] = inf"),
    (lambda: mp.Sites.anchors([0.0, 1.0, 2.0]), mp.ParameterError, r"must have shape \(n, 3\)"),
    (lambda: mp.Sites.concatenate([mp.Sites.beads([0]), 3]), mp.TopologyError, "3 is not Sites"),
    (lambda: mp.Sites.from_arrays([0, 2], [1], [1.0], []), mp.TopologyError, "start must ascend from 0 to .* 1"),
    (lambda: mp.Sites.from_arrays([0, 2], [1, 1], [0.5, 0.5], []), mp.TopologyError, "site 0 names bead 1 twice"),
    (lambda: mp.Sites.from_arrays([0, 0, 1], [1], [0.5], [[0, 0, 0]]), mp.ParameterError, "of site 1 sum to 0.5"),
    (lambda: mp.Sites.from_arrays([0, 0, 1], [1], [1.0], []), mp.ParameterError, r"must have shape \(1, 3\)"),
])  # fmt: skip
def test_refusals(make, error, text):
    refuses(error, text, make)


def test_rounding_of_weights_is_not_an_error():
    third = 1.0 / 3.0
    assert len(mp.Sites.weighted([[0, 1, 2]], [[third, third, third]])) == 1
    large = 1e6 / 3.0
    assert len(mp.Sites.weighted([[0, 1, 2]], [[large, -large + 0.1, 0.9]])) == 1


def test_handles_of_two_topologies_do_not_mix(scene):
    _, beads, _ = scene
    other = mp.Topology().add_beads([[0.0, 0, 0]], mass=1.0)
    for make in (lambda: mp.Sites.beads([beads, other]), lambda: mp.Sites.beads(beads) + mp.Sites.beads(other)):
        refuses(mp.TopologyError, "belong to different topologies", make)


def test_weights_that_miss_their_sum_push_nothing_away():
    """The first weight is what the others leave: the net force is zero to round-off though the sum is off by 1e-13."""
    topology = mp.Topology()
    topology.add_beads([[0.0, 0, 0], [5.0, 1, 2], [1.0, 8, -3]], mass=1.0)
    system = system_with(topology, mp.forces.Links([0], mp.Sites.weighted([[1, 2]], [[0.25 + 8e-13, 0.75]]), 1e3))
    f = mp.Context(system, mp.VerletIntegrator(1e-3)).get_state(forces=True).forces
    assert np.abs(f).max() > 1e3
    assert np.abs(f.sum(axis=0)).max() <= 1e-15 * np.abs(f).max() * 4
