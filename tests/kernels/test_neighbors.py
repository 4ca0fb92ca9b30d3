"""Neighbour lists against brute force, on every kind of configuration; and what they cost."""

import numpy as np
import pytest
from builders import refuses, system_with
from medyanpy._kernels.core.neighbors import near_pairs

import medyanpy as mp
from medyanpy._tools.images import nearest_image

SKIN = 0.4


def context_of(x, group_a=None, group_b=None, *, diameter=1.0, skin=SKIN, exclusions=None, threads=1, radius=None,
               box=None):  # fmt: skip
    topology = mp.Topology()
    if radius is None:
        everything = topology.add_beads(x, mass=1.0)
    else:
        everything = topology.add_balls(x, radius=radius, mass=1.0)
        diameter = None
    group_a = everything if group_a is None else group_a
    group_b = everything if group_b is None else group_b
    system = mp.System(topology, box=box)
    if diameter is None and not (group_a is everything and group_b is everything):
        raise NotImplementedError
    system.add_force(mp.forces.SoftSphere(group_a, group_b, 1.0, diameter, skin=skin, exclusions=exclusions,
                                          name="pairs"))  # fmt: skip
    return mp.Context(system, mp.VerletIntegrator(1e-3), threads=threads)


def neighbors_of(context):
    context.get_state(forces=True)
    return context._schedule.bound_forces["pairs"].neighbors


def brute(x, a, b, reach, exclusions=(), box=None):
    """{bead: sorted beads closer than reach[bead, other]} by comparing all pairs."""
    n = len(x)
    in_a, in_b = np.isin(np.arange(n), a), np.isin(np.arange(n), b)
    with np.errstate(over="ignore"):
        d = x[:, None] - x[None]
        r = np.sqrt(((d if box is None else nearest_image(d, box)) ** 2).sum(axis=-1))
    near = (r < reach) & ((in_a[:, None] & in_b[None]) | (in_b[:, None] & in_a[None]))
    np.fill_diagonal(near, False)
    for i, j in exclusions:
        near[i, j] = near[j, i] = False
    return {i: np.flatnonzero(near[i]).tolist() for i in range(n) if in_a[i] or in_b[i]}


def straddling(rng, n):
    """Pairs of beads on both sides of where cells repeat, over far more cells than a key has room for."""
    edge = (1.0 + SKIN) * (1.0 + 1e-9)
    period = edge * 2**20
    corner = np.zeros((1, 3))
    centers = period * rng.integers(0, 4, (n // 2, 3)) - edge * rng.integers(0, 3, (n // 2, 3))
    pairs = np.concatenate([centers + rng.uniform(0, 0.6, centers.shape) for _ in range(2)])
    return np.concatenate([corner, np.clip(pairs, 0.0, None)])


def rounded_apart(rng, n):
    """Seen from the corner of the bounding box, places have steps of 1/4: the cells of a pair are rounded apart."""
    return np.vstack([rng.uniform(0.0, 6.0, (n - 1, 3)), [[-1.5e15, -1.4e15, -1.5e15]]])


CONFIGURATIONS = {
    "sparse": lambda rng, n: rng.uniform(0.0, 300.0, (n, 3)),
    "dilute": lambda rng, n: rng.uniform(0.0, 9.0, (n, 3)),
    "dense": lambda rng, n: rng.uniform(-4.0, 4.0, (n, 3)),
    "crowded": lambda rng, n: rng.uniform(0.0, 2.0, (n, 3)),
    "one cell": lambda rng, n: rng.uniform(0.0, 0.5, (n, 3)),
    "one place": lambda rng, n: np.full((n, 3), 0.1),
    "plane": lambda rng, n: rng.uniform(0.0, 12.0, (n, 3)) * [1.0, 1.0, 0.0] + [0.0, 0.0, 7.0],
    "tilted plane": lambda rng, n: rng.uniform(0.0, 12.0, (n, 2)) @ [[0.6, 0.8, 0.0], [0.0, 0.6, 0.8]],
    "line": lambda rng, n: rng.uniform(0.0, 90.0, (n, 1)) * [[0.0, 1.0, 0.0]],
    "diagonal": lambda rng, n: rng.uniform(0.0, 90.0, (n, 1)) * [[1.0, -1.0, 1.0]],
    "lattice": lambda rng, n: np.stack(np.unravel_index(np.arange(n), (8, 9, 100)), 1) * 1.39,
    "far away": lambda rng, n: np.vstack([rng.uniform(0.0, 6.0, (n - 1, 3)), [[1e6, -3e6, 2e6]]]),
    "very far away": lambda rng, n: np.vstack([rng.uniform(0.0, 6.0, (n - 1, 3)), [[1e14, 0.0, -1e13]]]),
    "out of the world": lambda rng, n: np.vstack(
        [
            rng.uniform(0.0, 6.0, (n - 3, 3)),
            [[1e300, 0, 0], [1.7e308, -1.7e308, 1.7e308], [-1.7e308, 1e308, -1e308]],
        ]
    ),
    "clusters": lambda rng, n: rng.uniform(-1e5, 1e5, (8, 3))[rng.integers(0, 8, n)] + rng.normal(0.0, 1.0, (n, 3)),
    "far clusters": lambda rng, n: (
        1e9 * rng.integers(-3, 3, (6, 3))[rng.integers(0, 6, n)] + rng.uniform(0.0, 3.0, (n, 3))
    ),
    "repeating cells": straddling,
    "rounded apart": rounded_apart,
}


@pytest.mark.parametrize("shape", CONFIGURATIONS)
@pytest.mark.parametrize("n", [5, 60, 700])
def test_rows_are_those_of_brute_force(shape, n):
    rng = np.random.default_rng(n)
    x = CONFIGURATIONS[shape](rng, n)
    n = len(x)
    rows = neighbors_of(context_of(x)).rows()
    everybody = np.arange(n)
    assert rows == brute(x, everybody, everybody, 1.0 + SKIN)
    if n > 50 and shape != "sparse":
        assert sum(map(len, rows.values())) > 10, "a test of empty rows tests nothing"


@pytest.mark.parametrize("shape", CONFIGURATIONS)
def test_pairs_that_are_near_are_those_of_brute_force(shape):
    """To 1e-8 of the reach: nothing here is that near to it."""
    x = CONFIGURATIONS[shape](np.random.default_rng(7), 300)
    near = brute(x, np.arange(len(x)), np.arange(len(x)), 0.97)
    pairs = near_pairs(np.ascontiguousarray(x), 0.97)
    assert len(pairs) == len(np.unique(pairs, axis=0))
    assert set(map(tuple, pairs.tolist())) == {(i, j) for i, row in near.items() for j in row if i < j}


@pytest.mark.parametrize("balls", [False, True])
@pytest.mark.parametrize(
    "box",
    [
        # Of the reach, 1.4: one cell along each axis, or two; just three, and just not; four; many; and mixtures.
        (2.1, 2.2, 2.7),
        (3.0, 3.5, 4.1),
        (4.2 * (1.0 + 1e-8), 4.2 * (1.0 - 1e-8), 4.2),
        (5.8, 6.5, 5.7),
        (21.0, 14.9, 9.8),
        (2.5, 4.3, 30.0),
        (None, 4.3, 2.5),
        (9.0, None, None),
    ],
)
def test_rows_in_a_box_are_those_of_brute_force(box, balls):
    """Wherever beads have gone: within the box, on its sides, and many boxes away."""
    rng = np.random.default_rng(11)
    n = 400
    sides = np.array([12.0 if side is None else side for side in box])
    periodic = np.array([side is not None for side in box])
    x = sides * rng.uniform(-0.5, 0.5, (n, 3))
    on_a_side = (rng.random((n, 3)) < 0.1) & periodic
    x = np.where(on_a_side, sides * (rng.integers(0, 2, (n, 3)) - 0.5), x)
    x += np.where(periodic, sides * rng.choice([0, 0, 1, -1, 2, -7, 1000], (n, 3)), 0.0)
    radius = rng.choice([0.1, 0.3, 0.5], n) if balls else np.full(n, 0.5)
    rows = neighbors_of(context_of(x, radius=radius, box=box)).rows()
    assert rows == brute(x, np.arange(n), np.arange(n), radius[:, None] + radius + SKIN, box=box)
    assert sum(map(len, rows.values())) > 50


def test_pairs_of_no_beads():
    assert near_pairs(np.empty((0, 3)), 1.0).shape == (0, 2)
    refuses(ValueError, "row 1 is not finite", near_pairs, np.array([[0.0, 0, 0], [np.nan, 0, 0]]), 1.0)


def test_lattice_with_a_skin_that_just_reaches_the_next_site():
    """Distances that equal the reach: what is in a row may go either way there, what is in range may not."""
    x = np.stack(np.unravel_index(np.arange(900), (9, 10, 10)), 1) * 1.4
    rows = neighbors_of(context_of(x, diameter=1.4 * (1.0 + 1e-12))).rows()
    inner = brute(x, np.arange(900), np.arange(900), 1.4 * (1.0 + 1e-13))
    assert all(set(inner[i]) <= set(rows[i]) for i in inner)
    assert sum(map(len, inner.values())) > 2000


@pytest.mark.parametrize("seed", range(6))
def test_groups_and_exclusions(seed):
    """Disjoint, overlapping, nested and unequal groups, given in any order."""
    rng = np.random.default_rng(seed)
    n = 300
    x = rng.uniform(0.0, 5.0, (n, 3))
    shuffled = rng.permutation(n)
    groups = [
        (shuffled[:100], shuffled[100:200]),
        (shuffled[:180], shuffled[90:250]),
        (shuffled[:3], shuffled),
        (shuffled[:200], shuffled[:200]),
        (shuffled[:1], shuffled[1:]),
        (shuffled[:40], shuffled[20:30]),
    ]
    a, b = groups[seed]
    near = brute(x, a, b, 1.0 + SKIN)
    exclusions = [rng.choice(n, 2, replace=False) for _ in range(2000)]
    exclusions += [(i, j) if j % 2 else (j, i) for i in near for j in near[i] if (i * j) % 7 < 2]
    rows = neighbors_of(context_of(x, a, b, exclusions=exclusions)).rows()
    expected = brute(x, a, b, 1.0 + SKIN, exclusions)
    assert rows == expected
    assert 10 < sum(map(len, rows.values())) < 0.9 * sum(map(len, near.values()))


def test_unequal_radii_have_ranges_of_their_own():
    rng = np.random.default_rng(5)
    x = rng.uniform(0.0, 20.0, (400, 3))
    radius = rng.choice([0.3, 0.7, 2.0], 400)
    rows = neighbors_of(context_of(x, radius=radius)).rows()
    everybody = np.arange(400)
    assert rows == brute(x, everybody, everybody, radius[:, None] + radius[None] + SKIN)


def test_radii_that_differ_between_groups():
    """The reach is that of a pair of both groups, not of the two largest balls."""
    rng = np.random.default_rng(6)
    topology = mp.Topology()
    x = rng.uniform(0.0, 8.0, (300, 3))
    large = topology.add_balls(x[:20], radius=rng.uniform(1.5, 2.0, 20), mass=1.0)
    small = topology.add_balls(x[20:], radius=rng.uniform(0.1, 0.3, 280), mass=1.0)
    system = system_with(topology, mp.forces.SoftSphere(large, small, 1.0, skin=SKIN, name="pairs"))
    rows = neighbors_of(mp.Context(system, mp.VerletIntegrator(1e-3))).rows()
    radius = np.concatenate([large.radius, small.radius])
    assert rows == brute(x, np.arange(20), np.arange(20, 300), radius[:, None] + radius[None] + SKIN)


@pytest.mark.parametrize(("n_a", "n_b"), [(0, 0), (0, 10), (10, 0), (1, 0)])
def test_empty_groups_have_no_neighbours(n_a, n_b):
    x = np.zeros((10, 3))
    context = context_of(x, np.arange(n_a), np.arange(n_b))
    assert (context.get_state(forces=True).forces == 0.0).all()
    assert context._schedule.bound_forces["pairs"].neighbors.rows() == {}


def test_one_bead_alone():
    context = context_of([[3.0, 4.0, 5.0]])
    assert neighbors_of(context).rows() == {0: []}


def test_long_rows_are_sorted():
    """Beyond the length up to which rows are sorted by counting."""
    x = np.random.default_rng(3).uniform(0.0, 0.4, (1500, 3))
    rows = neighbors_of(context_of(x)).rows()
    assert rows == {i: [j for j in range(1500) if j != i] for i in range(1500)}


def test_rows_do_not_depend_on_threads():
    x = np.random.default_rng(4).uniform(0.0, 12.0, (3000, 3))
    rows = [neighbors_of(context_of(x, threads=threads)).rows() for threads in (1, 2, 3, 4)]
    assert rows[1:] == rows[:-1]
    # The order of slots, too: it is the order in which memory is walked.
    assert [list(r) for r in rows[1:]] == [list(r) for r in rows[:-1]]


def test_list_is_kept_until_a_bead_has_moved_by_half_the_skin():
    rng = np.random.default_rng(7)
    x = rng.uniform(0.0, 6.0, (200, 3))
    context = context_of(x)
    neighbors = neighbors_of(context)
    assert neighbors.builds == 1
    direction = np.array([0.48, 0.6, 0.64])
    for step, builds in [(0.49, 1), (-0.49, 1), (0.499999, 1), (0.500001, 2), (0.0, 3), (0.2, 3)]:
        moved = x.copy()
        moved[17] += step * SKIN * direction
        context.set_positions(moved)
        assert neighbors_of(context).builds == builds, step
        near = brute(moved, np.arange(200), np.arange(200), 1.0)
        rows = neighbors.rows()
        assert all(set(near[i]) <= set(rows[i]) for i in near)


def test_two_beads_that_approach_by_half_the_skin_each():
    """The worst that a list has to stand: it is complete to the last moment, and then built again."""
    gap = 1.0 + 1.0000001 * SKIN
    x = np.array([[0.0, 0.0, 0.0], [gap, 0.0, 0.0]])
    context = context_of(x)
    assert neighbors_of(context).rows() == {0: [], 1: []}
    context.set_positions(x + 0.49999999 * SKIN * np.array([[1.0, 0, 0], [-1.0, 0, 0]]))
    assert neighbors_of(context).builds == 1
    assert (context.get_state(forces=True).forces == 0.0).all()
    context.set_positions(x + 0.5001 * SKIN * np.array([[1.0, 0, 0], [-1.0, 0, 0]]))
    assert neighbors_of(context).rows() == {0: [1], 1: [0]}
    assert (context.get_state(forces=True).forces != 0.0).any()


def test_two_beads_that_the_box_brings_together():
    """A pair that is not listed meets exactly where the box has used up the skin: there the list is built again."""
    gap = 1.0 + 1.0000001 * SKIN
    context = context_of(np.array([[0.0, 0.0, 0.0], [gap, 0.0, 0.0]]), box=(8.0, 8.0, 8.0))
    assert neighbors_of(context).rows() == {0: [], 1: []}
    for least, builds in ((1.0001, 1), (1.3, 1), (0.9999, 2)):
        context.set_box((8.0 * least / gap, 8.0, 8.0))
        assert neighbors_of(context).builds == builds, least
        assert (context.get_state(forces=True).forces != 0.0).any() == (builds == 2)


@pytest.mark.parametrize("images", [False, True])
def test_list_in_a_box_that_changes_is_kept_while_it_is_complete(images):
    """Boxes between 0.65 and 1.25 of that of the list, and beads that go as far as the rest of the skin lets them: the
    list is kept, has all pairs in range, and gives the forces of a new one to the bit."""
    rng = np.random.default_rng(12)
    n = 300
    sides = np.array([7.0, 8.0, 9.0])
    radius = rng.choice([0.2, 0.3, 0.5], n)
    x = sides * (rng.uniform(-0.5, 0.5, (n, 3)) + rng.integers(-2, 3, (n, 3)) * images)
    kept = near = 0
    for trial in range(60):
        context = context_of(x, radius=radius, box=sides)
        assert neighbors_of(context).builds == 1
        stretch = rng.uniform(0.65, 1.25, 3) if trial % 3 == 0 else rng.uniform(0.95, 1.05, 3)
        # In the frame of the list, a bead may go half of what the longest range leaves of the skin.
        left = SKIN - 1.0 * max(0.0, 1.0 / stretch.min() - 1.0)
        d = rng.normal(size=(n, 3))
        d *= 0.5 * 0.999 * max(left, 0.0) / np.linalg.norm(d, axis=1)[:, None]
        moved, lengths = stretch * (x + d), stretch * sides
        context.set_box(lengths)
        context.set_positions(moved)
        forces = context.get_state(forces=True).forces
        rows = neighbors_of(context).rows()
        wanted = brute(moved, np.arange(n), np.arange(n), radius[:, None] + radius, box=lengths)
        assert all(set(wanted[i]) <= set(rows[i]) for i in wanted)
        assert (context_of(moved, radius=radius, box=lengths).get_state(forces=True).forces == forces).all()
        assert neighbors_of(context).builds == (1 if left > 0.0 else 2)
        kept += left > 0.0
        near += sum(map(len, wanted.values()))
    assert 40 < kept < 60
    assert near > 10_000


def test_no_skin_is_a_list_built_whenever_something_moves():
    rng = np.random.default_rng(8)
    x = rng.uniform(0.0, 4.0, (100, 3))
    context = context_of(x, skin=0.0)
    assert neighbors_of(context).rows() == brute(x, np.arange(100), np.arange(100), 1.0)
    assert neighbors_of(context).builds == 1
    x[3, 1] += 1e-9
    context.set_positions(x)
    assert neighbors_of(context).builds == 2


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("built", [False, True])
def test_position_that_is_not_a_number_is_reported_with_its_bead(bad, built):
    rng = np.random.default_rng(9)
    topology = mp.Topology()
    mesh = mp.TriangleMesh.icosphere(3.0, 1)
    first = topology.add_beads(rng.uniform(0.0, 4.0, (600, 3)), mass=1.0)
    topology.add_membrane(mesh, vertex_mass=1.0)
    context = mp.Context(system_with(topology, mp.forces.SoftSphere(first, first, 1.0, 1.0, name="pairs")),
                         mp.VerletIntegrator(1e-3), threads=2)  # fmt: skip
    if built:
        context.get_state(forces=True)
    # No public call lets such a number in; a run that blows up does.
    context._store.x[context.layout.rank[[77, 431]], 1] = bad
    context._store.positions_changed()
    with pytest.raises(mp.SimulationError, match=r"bead 77 .*force pairs: .*finite") as caught:
        context.get_state(forces=True)
    assert (caught.value.bead, caught.value.force) == (77, "pairs")
    # And the list is none the worse for it.
    context.set_positions(np.concatenate([first.positions, mesh.vertices]))
    assert len(neighbors_of(context).rows()) == 600


DENSITIES = {"fluid": 0.9, "gas": 1e-3, "nearly nothing": 1e-12}


@pytest.mark.parametrize("density", DENSITIES)
def test_work_and_memory_are_linear_in_the_number_of_beads(density):
    examined, held = [], []
    sizes = [2000, 8000, 32000]
    for n in sizes:
        x = np.random.default_rng(n).uniform(0.0, (n / DENSITIES[density]) ** (1.0 / 3.0), (n, 3))
        neighbors = neighbors_of(context_of(x))
        examined.append(neighbors.examined / n)
        held.append(neighbors.bytes / n)
    # Per bead: itself, and the others in 27 cells that are a little wider than range plus skin.
    expected = 1.0 + 27.0 * DENSITIES[density] * (1.0 + SKIN) ** 3
    assert all(e < 1.02 * expected + 0.1 for e in examined), examined
    assert examined[2] < 1.2 * examined[0]
    # Room for the rows (4.2 of the 27 cells), a block's last candidates, and a quarter more.
    assert all(h < 4.0 * (2.0 + 0.4 * expected) for h in held), held


def test_work_is_linear_on_a_sphere_and_with_a_bead_far_away():
    """A membrane fills hardly any of its bounding box, and a lost bead makes the box as empty as can be."""
    for far in (None, 1e6, 1e12):
        examined = []
        for n in (4000, 16000):
            v = np.random.default_rng(n).normal(size=(n, 3))
            x = v / np.linalg.norm(v, axis=1)[:, None] * np.sqrt(n / 4.0 / np.pi)
            if far is not None:
                x[17] = far
            examined.append(neighbors_of(context_of(x)).examined / n)
        assert max(examined) < 25.0, (far, examined)
        assert examined[1] < 1.1 * examined[0], (far, examined)


def test_few_against_many_costs_what_they_have_in_common():
    """Beads of one group do not look at each other: ten large balls among many beads are cheap."""
    rng = np.random.default_rng(10)
    n = 20000
    x = rng.uniform(0.0, 20.0, (n, 3))
    context = context_of(x, np.arange(10), np.arange(10, n), diameter=10.0)
    neighbors = neighbors_of(context)
    assert neighbors.examined <= 2 * 10 * n
