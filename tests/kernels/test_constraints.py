"""The constraint solves of filaments against general sparse ones, which know nothing of chains, lanes or batches."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass

import numpy as np
import pytest
from builders import system_with
from scipy import sparse
from scipy.sparse import linalg

import medyanpy as mp
from medyanpy._kernels import selected
from medyanpy._kernels.selected import constraints, constraints_twistable, drift
from medyanpy.core.flows import Stage
from medyanpy.testing import check_mean, check_variance, thermal

TINY = 1e-14


# References --------------------------------------------------------------------------------------------------


@dataclass
class Chain:
    """One filament: beads (n, 3), which are its nodes and then its directors, if any; their inverse masses (n,), links
    (l, 2) and their lengths (l,)."""

    x: np.ndarray
    w: np.ndarray
    links: np.ndarray
    lengths: np.ndarray
    twistable: bool = False

    @property
    def n_nodes(self):
        return len(self.x) - (len(self.links) if self.twistable else 0)

    def split(self, x):
        """Links and directors."""
        return x[self.links[:, 1]] - x[self.links[:, 0]], x[self.n_nodes :]

    def jacobian(self, x):
        """(l or 3 l, 3 n) of the constraints (|D|² - L²) / 2, then D.p, then (|p|² - 1) / 2; sparse for the sake of
        multiplications."""
        i, j = self.links.T
        D, p = self.split(x)
        of = np.arange(len(D))
        k = self.n_nodes + of
        blocks = [(of, i, -D), (of, j, D)]
        if self.twistable:
            right, unit = len(D) + of, 2 * len(D) + of
            blocks += [(right, i, -p), (right, j, p), (right, k, D), (unit, k, p)]
        rows = np.concatenate([np.repeat(row, 3) for row, _, _ in blocks])
        columns = np.concatenate([(3 * bead[:, None] + np.arange(3)).ravel() for _, bead, _ in blocks])
        values = np.concatenate([value.ravel() for _, _, value in blocks])
        return sparse.csr_array((values, (rows, columns)), shape=(rows.max() + 1, x.size))

    @property
    def inverse_mass(self):
        """(3 n,)"""
        return np.repeat(self.w, 3)

    def back(self, x):
        """(3 n, l): M⁻¹Jᵀ"""
        return sparse.diags_array(self.inverse_mass) @ self.jacobian(x).T

    def sigma(self, x):
        D, p = self.split(x)
        length = 0.5 * ((D**2).sum(axis=1) - self.lengths**2)
        if not self.twistable:
            return length
        return np.concatenate([length, (D * p).sum(axis=1), 0.5 * ((p**2).sum(axis=1) - 1.0)])

    def off(self, x):
        """Relative errors of lengths; of directors, the cosine of their angle with the link and the error of length."""
        D, p = self.split(x)
        parts = [np.linalg.norm(D, axis=1) / self.lengths - 1.0]
        if self.twistable:
            parts += [(D * p).sum(axis=1) / self.lengths, np.linalg.norm(p, axis=1) - 1.0]
        return np.abs(np.concatenate(parts))

    def normal(self, x, v):
        """The part of v that impulses along the links at x take out."""
        J, back = self.jacobian(x), self.back(x)
        return (back @ linalg.spsolve((J @ back).tocsc(), J @ v.ravel())).reshape(v.shape)

    def tangent(self, x, v):
        """Twice, for the last digit."""
        v = v - self.normal(x, v)
        return v - self.normal(x, v)

    def flight(self, x, v, h):
        """A: SHAKE by Newton's method with the full Jacobian, then RATTLE."""
        back = self.back(x)
        y = x + h * v
        mu = np.zeros(back.shape[1])
        z = y
        for _ in range(30):
            step = linalg.spsolve((self.jacobian(z) @ back).tocsc(), self.sigma(z))
            mu += step
            z = y - (back @ mu).reshape(x.shape)
            if np.abs(step).max() < 1e-14 * np.abs(mu).max():
                break
        # As near as positions so far from the origin can be.
        assert self.off(z).max() < 2e-15 * (1.0 + np.abs(z).max() / self.lengths.min())
        return z, self.tangent(z, v - (back @ mu).reshape(x.shape) / h)


def walk(rng, n, lengths, bend=0.7):
    """Nodes of a chain that turns by about `bend` at every node."""
    t = rng.normal(size=3)
    x = [rng.normal(0.0, 3.0, 3)]
    for length in lengths:
        t = t / np.linalg.norm(t) + rng.normal(0.0, bend / np.sqrt(2.0), 3)
        x.append(x[-1] + length * t / np.linalg.norm(t))
    return np.array(x[:n])


def polygon(rng, n):
    """Nodes of an uneven ring that does not lie in a plane."""
    phi = np.sort(rng.uniform(0.0, 0.3, n) + np.arange(n)) * (2.0 * np.pi / n)
    radius = max(n, 3) / 6.0 * rng.uniform(0.8, 1.2, n)
    return np.column_stack([radius * np.cos(phi), radius * np.sin(phi), rng.normal(0.0, 0.3, n)]) + rng.normal(size=3)


def nodes_of(rng, n, closed):
    return polygon(rng, n) if closed else walk(rng, n, rng.uniform(0.5, 2.0, n - 1))


class Bundle:
    """Filaments of the given numbers of nodes, with masses, lengths and velocities in no order, in one handle."""

    def __init__(self, counts, closed=False, fixed="none", twistable=False, seed=1, word="BA", h=0.02, tolerance=TINY,
                 threads=1):  # fmt: skip
        rng = np.random.default_rng(seed)
        topology = mp.Topology()
        # The handle does not start at bead 0.
        topology.add_beads(rng.normal(size=(5, 3)), mass=1.0, friction=1.0)
        nodes = [nodes_of(rng, n, closed) for n in counts]
        starts = np.cumsum([0, *counts])
        n = int(starts[-1])
        still = {
            "none": [],
            "first": starts[:-1],
            "ends": np.concatenate([starts[:-1], starts[1:] - 1]),
            "some": [s for s, m in zip(starts[:-1], counts, strict=True) for s in range(s + 1, s + m - 1, 3)],
        }[fixed]
        mass = rng.uniform(0.3, 3.0, n)
        n_links = n if closed else n - len(counts)
        turning = rng.uniform(0.3, 3.0, n_links)
        directors = None
        if twistable:
            directors = [twisted(rng, x, closed) for x in nodes]
        self.handle = topology.add_filaments(
            nodes, mass, friction(rng, n), closed=closed, fixed_nodes=np.sort(np.array(still, int)),
            tolerance=tolerance, directors=directors, director_mass=turning if twistable else None,
            director_friction=friction(rng, n_links) if twistable else 0.0,
        )  # fmt: skip
        self.h = h
        system = mp.System(topology)
        system.add_force(mp.forces.HarmonicTrap(self.handle, [0.1, 0.07, 0.04], rng.normal(0.0, 3.0, (n, 3))))
        if twistable:
            # Any force on them.
            goals = rng.normal(0.0, 3.0, (n_links, 3))
            system.add_force(mp.forces.HarmonicTrap(self.handle.directors, [0.5, 0.3, 0.2], goals))
        integrator = mp.SplittingIntegrator(word, h, kT=thermal(word, 1.0), seed=4, symmetric=False)
        self.context = mp.Context(system, integrator, threads=threads)
        w = np.where(self.handle.kind.fixed_beads, 0.0, 1.0 / mass)
        self.v = np.zeros((topology.n_beads, 3))
        self.v[5:] = rng.normal(0.0, 1.0, (topology.n_beads - 5, 3))
        self.chains = []
        #: Numbers of the beads of each chain.
        self.own = []
        for i in range(len(counts)):
            rows = slice(self.handle.kind.link_starts[i], self.handle.kind.link_starts[i + 1])
            nodes_i = np.arange(starts[i], starts[i + 1])
            own, start, inverse = 5 + nodes_i, nodes[i], w[nodes_i]
            if twistable:
                d = self.handle.directors
                own = np.concatenate([own, d.beads[rows]])
                start = np.concatenate([start, d.positions[rows]])
                inverse = np.concatenate([inverse, 1.0 / turning[rows]])
            links = self.handle.links[rows] - starts[i]
            self.chains.append(Chain(start, inverse, links, self.handle.link_lengths[rows], twistable))
            self.own.append(own)

    def look(self):
        state = self.context.get_state(positions=True, velocities=True, forces=True)
        return state.positions, state.velocities, state.forces

    def perform(self, kind, h=0.0, kT=0.0, letter=0):
        """What these filaments do after a letter A or before a letter O, by itself; "" for the tangent projection."""
        flow, stage = self.handle.kind.bind(self.context.layout), Stage(letter, kind, h, kT)
        for operation in {"A": flow.after, "O": flow.before, "": lambda _: flow.tangent()}[kind](stage):
            self.context._schedule.perform(operation)


def twisted(rng, x, closed):
    """Directors of the links of a chain or ring with nodes x, at any angles."""
    t = np.roll(x, -1, axis=0) - x if closed else np.diff(x, axis=0)
    p = np.cross(t, rng.normal(size=t.shape))
    return p / np.linalg.norm(p, axis=1)[:, None]


def friction(rng, n):
    """1:50 along a filament."""
    return rng.choice([0.2, 10.0], n)


CHAINS = [2, 3, 4, 2, 9, 17, 5, 33, 8, 2, 2, 65, 12, 3, 4, 30, 7]
RINGS = [3, 4, 5, 3, 16, 31, 8, 9, 3, 100]
# Lanes are cut above 256 links; the segments are of equal length, or not.
LONG = {"255 links": [256], "256 links": [257], "257 links": [258], "258 links": [259], "600 links": [601]}
LONG_RINGS = {"256 links": [256], "257 links": [257], "258 links": [258], "600 links": [600]}
CASES = {
    "chains": (CHAINS, False, "none"),
    "chains, first node fixed": (CHAINS, False, "first"),
    "chains, ends fixed": ([m for m in CHAINS if m > 3], False, "ends"),
    "chains, nodes within fixed": ([m for m in CHAINS if m > 2], False, "some"),
    "rings": (RINGS, True, "none"),
    "rings, first node fixed": (RINGS, True, "first"),
    "rings, nodes fixed": ([m for m in RINGS if m > 5], True, "some"),
    **{f"chain of {name}": (counts, False, "none") for name, counts in LONG.items()},
    **{f"ring of {name}": (counts, True, "none") for name, counts in LONG_RINGS.items()},
    "chain of 600 links, ends fixed": ([601], False, "ends"),
    "chain of 600 links, nodes within fixed": ([601], False, "some"),
    "ring of 600 links, nodes within fixed": ([600], True, "some"),
    "long and short ones": ([4, 301, 2, 280, 33], False, "first"),
}
CASES = {
    **{name: (*case, False) for name, case in CASES.items()},
    **{f"twistable {name}": (*case, True) for name, case in CASES.items()},
}


def assert_near(got, expected, scale):
    worst = np.abs(got - expected).max()
    assert worst < 1e-12 * scale, f"{worst:.1e}"


@pytest.mark.parametrize("case", CASES)
def test_one_step_is_that_of_the_dense_solve(case):
    bundle = Bundle(*CASES[case])
    bundle.context.set_velocities(bundle.v)
    x, v, f = bundle.look()
    for chain, own in zip(bundle.chains, bundle.own, strict=True):
        moving = np.where(chain.w[:, None] > 0.0, bundle.v[own], 0.0)
        assert_near(x[own], chain.x, 1.0)
        assert_near(v[own], chain.tangent(chain.x, moving), np.abs(bundle.v).max())
    bundle.context.step(1)
    y, u, _ = bundle.look()
    h = bundle.h
    for chain, own in zip(bundle.chains, bundle.own, strict=True):
        kicked = chain.tangent(x[own], v[own] + h * chain.w[:, None] * f[own])
        there, speed = chain.flight(x[own], kicked, h)
        assert np.abs(there - x[own]).max() > 1e-3
        assert_near(y[own], there, chain.lengths.min())
        # An error of a position is one of a velocity through h.
        assert_near(u[own], speed, chain.lengths.min() / h)


@pytest.mark.parametrize("place", [0, 37, 38, 39, 75, 150, 299])
@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize("tolerance", [1e-10, TINY])
@pytest.mark.parametrize("twistable", [False, True])
def test_a_long_filament_that_moves_in_one_place(place, closed, tolerance, twistable):
    """Segments far from there have their lengths at once, those near it not."""
    bundle = Bundle([300 if closed else 301], closed, twistable=twistable, tolerance=tolerance, h=0.2)
    chain, own = bundle.chains[0], bundle.own[0]
    v = np.zeros_like(bundle.v)
    v[own[place]] = [1.5, -1.0, 2.0]
    bundle.context.set_velocities(v)
    start, v, _ = bundle.look()
    fly(bundle, 0.2)
    x, u, _ = bundle.look()
    there, speed = chain.flight(start[own], v[own], 0.2)
    allowed = 20.0 * tolerance + 1e-13
    assert chain.off(x[own]).max() < tolerance + 1e-13
    assert np.abs(x[own] - there).max() < 10.0 * allowed
    assert np.abs(u[own] - speed).max() < 100.0 * allowed
    m = 1.0 / chain.w[:, None]
    assert np.abs((m * (u[own] - v[own]))[: chain.n_nodes].sum(axis=0)).max() < 1e-12
    moved = np.cross(x[own], m * u[own]).sum(axis=0) - np.cross(start[own], m * v[own]).sum(axis=0)
    assert np.abs(moved).max() < 1e-11 * np.abs(np.cross(x[own], m * u[own])).sum()


def fly(bundle, h):
    """One A of a time h, and nothing else."""
    bundle.context._schedule.perform(drift.Drift(h, bundle.context._store.before))
    bundle.perform("A", h=h)


FREE = ["chains", "rings", "chain of 257 links", "ring of 600 links"]


@pytest.mark.parametrize("case", [*FREE, *(f"twistable {case}" for case in FREE)])
def test_a_alone_keeps_momentum_and_angular_momentum(case):
    """Directors have angular momentum, d x p_d, and no momentum."""
    bundle = Bundle(*CASES[case], tolerance=1e-10)
    bundle.context.set_velocities(bundle.v)
    x0, v0, _ = bundle.look()
    fly(bundle, 0.05)
    x1, v1, _ = bundle.look()
    for chain, own in zip(bundle.chains, bundle.own, strict=True):
        p0, p1 = v0[own] / chain.w[:, None], v1[own] / chain.w[:, None]
        assert np.abs((p1 - p0)[: chain.n_nodes].sum(axis=0)).max() < 1e-13 * np.abs(p0).sum()
        turn = np.cross(x1[own], p1).sum(axis=0) - np.cross(x0[own], p0).sum(axis=0)
        assert np.abs(turn).max() < 1e-12 * (np.abs(x0[own]) * np.abs(p0)).sum()


@pytest.mark.parametrize("tolerance", [1e-6, 1e-10, 1e-13])
@pytest.mark.parametrize("twistable", [False, True])
def test_constraints_hold_as_the_tolerance_says(tolerance, twistable):
    bundle = Bundle([*CHAINS, 400], twistable=twistable, tolerance=tolerance)
    worst = 0.0
    for seed in range(5):
        bundle.context.set_velocities(np.random.default_rng(seed).normal(size=bundle.v.shape))
        fly(bundle, 0.03)
        x, v, _ = bundle.look()
        for chain, own in zip(bundle.chains, bundle.own, strict=True):
            worst = max(worst, chain.off(x[own]).max())
            rate = chain.jacobian(x[own]) @ v[own].ravel()
            assert np.abs(rate).max() < 2e-13 * np.abs(v[own]).max() * len(chain.links)
    assert worst < tolerance
    # And not by doing more than was asked: the smallest tolerance leaves room for nothing but roundings.
    assert worst > 1e-5 * tolerance


@pytest.mark.parametrize("case", CASES)
def test_noise_added_before_o_is_normal(case):
    """The tangent space is orthogonal to it in the metric of the masses; what was there stays."""
    bundle = Bundle(*CASES[case], word="BAO")
    bundle.context.set_velocities(bundle.v)
    x, v, _ = bundle.look()
    bundle.perform("O", kT=2.0, letter=2)
    _, u, _ = bundle.look()
    added = u - v
    assert (added[:5] == 0.0).all()
    for chain, own in zip(bundle.chains, bundle.own, strict=True):
        assert_near(chain.normal(x[own], added[own]), added[own], 10.0)
        assert (added[own][chain.w == 0.0] == 0.0).all()
        assert (np.abs(added[own][chain.w > 0.0]).max(axis=1) > 0.0).all()
    # Taken out again by the tangent projection, whatever it was.
    bundle.perform("")
    assert_near(bundle.look()[1], v, 10.0)


def modes(chain):
    """Rows that map √M v to its normal and to its tangent coordinates, orthonormal."""
    weighted = chain.jacobian(chain.x).toarray() * np.sqrt(chain.inverse_mass)
    free = np.repeat(chain.w > 0.0, 3)
    _, s, rows = np.linalg.svd(weighted[:, free])
    full = np.zeros((len(rows), len(free)))
    full[:, free] = rows
    return full[: len(s)], full[len(s) :]


def copies(n, closed, fixed, n_nodes, twistable, kT, timestep, friction, seed, even=False):
    """n equal filaments of uneven masses, lengths and, unless `even`, frictions over mass: their beads differ in their
    noise alone."""
    rng = np.random.default_rng(seed)
    x = nodes_of(rng, n_nodes, closed)
    mass = np.array([1.0, 0.3, 2.5, 0.8, 1.7])[:n_nodes]
    n_links = n_nodes if closed else n_nodes - 1
    turning = np.array([0.6, 1.4, 0.4, 2.0])[:n_links]
    frictions = friction * np.array([1.0, 50.0, 1.0, 20.0, 5.0])
    turning_frictions = friction * np.array([50.0, 1.0, 20.0, 5.0])
    if even:
        frictions, turning_frictions = 4.0 * friction * mass, 4.0 * friction * turning
    twist = {}
    if twistable:
        p = twisted(rng, x, closed)
        twist = {
            "directors": np.tile(p, (n, 1)), "director_mass": np.tile(turning, n),
            "director_friction": np.tile(turning_frictions[:n_links], n),
        }  # fmt: skip
    topology = mp.Topology()
    handle = topology.add_filaments(np.tile(x, (n, 1)), np.tile(mass, n), np.tile(frictions[:n_nodes], n),
                                    starts=n_nodes * np.arange(n + 1), closed=closed,
                                    fixed_nodes=n_nodes * np.arange(n) + 1 if fixed else (), **twist)  # fmt: skip
    integrator = mp.SplittingIntegrator("BAO", timestep, kT=kT, seed=seed, symmetric=False)
    context = mp.Context(mp.System(topology), integrator, threads=1)
    w = 1.0 / mass
    if fixed:
        w[1] = 0.0
    root = np.where(w > 0.0, np.sqrt(mass), 0.0)
    own = [handle.beads.reshape(n, -1)]
    if twistable:
        x, w = np.concatenate([x, p]), np.concatenate([w, 1.0 / turning])
        root = np.concatenate([root, np.sqrt(turning)])
        own.append(handle.directors.beads.reshape(n, -1))
    chain = Chain(x, w, handle.links[:n_links], handle.link_lengths[:n_links], twistable)
    return context, np.concatenate(own, axis=1), chain, np.repeat(root, 3)


def check_law(what, q, kT):
    """Rows of q are normal, independent and of variance kT in every component."""
    for i in range(q.shape[1]):
        check_variance(f"{what}, mode {i}", q[:, i] @ q[:, i], len(q), kT, sees=0.14)
        check_mean(f"{what}, mode {i}", q[:, i], 0.0, sees=0.12)
        for j in range(i):
            check_mean(f"{what}, modes {i} and {j}", q[:, i] * q[:, j], 0.0, sees=0.17)


GEOMETRIES = {
    "chain": (False, False, 5, False),
    "ring": (True, False, 4, False),
    "chain, a node fixed": (False, True, 4, False),
    "twistable chain": (False, False, 4, True),
    "twistable ring": (True, False, 4, True),
}


@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_the_normal_part_has_the_maxwell_law(geometry):
    """Covariance kT M⁻¹Jᵀ(J M⁻¹Jᵀ)⁻¹J M⁻¹. 8 000 filaments find 15 % in any mode, and correlations of 0.1."""
    kT, n = 1.7, 8000
    context, own, chain, root = copies(n, *GEOMETRIES[geometry], kT, 1e-3, 1.0, seed=5)
    handle = context.system.topology.handles[0]
    for operation in handle.kind.bind(context.layout).before(Stage(2, "O", 1e-3, kT)):
        context._schedule.perform(operation)
    v = context.get_state(velocities=True).velocities[own].reshape(n, -1)
    normal, tangent = modes(chain)
    check_law("normal part", v * root @ normal.T, kT)
    assert np.abs(v * root @ tangent.T).max() < 1e-12


@pytest.mark.slow
@pytest.mark.slow
@pytest.mark.parametrize(
    ("geometry", "even"),
    [(geometry, False) for geometry in [*GEOMETRIES, "three nodes"]]
    + [(geometry, True) for geometry in ("chain, a node fixed", "twistable chain")],
)
def test_velocities_after_o_have_the_constrained_maxwell_law(geometry, even):
    """kT (M⁻¹ - M⁻¹Jᵀ(J M⁻¹Jᵀ)⁻¹J M⁻¹) at a configuration that does not move: the timestep is tiny and the friction,
    1:50 along a filament, huge. From rest; 8 000 filaments find 15 % in any mode, and correlations of 0.1. If friction
    is even along a filament, nothing is added before O."""
    kT, n, dt = 1.3, 8000, 1e-7
    geometry = GEOMETRIES.get(geometry, (False, False, 3, False))
    # A step of O is 0.04 to 17 relaxation times long.
    context, own, chain, root = copies(n, *geometry, kT, dt, 0.1 / dt, seed=6, even=even)
    handle = context.system.topology.handles[0]
    assert len(handle.kind.bind(context.layout).before(Stage(2, "O", dt, kT))) == (0 if even else 1)
    context.step(120)
    state = context.get_state(positions=True, velocities=True)
    assert np.abs(state.positions[own] - chain.x).max() < 1e-3
    normal, tangent = modes(chain)
    v = state.velocities[own].reshape(n, -1) * root
    check_law("tangent part", v @ tangent.T, kT)
    assert np.abs(v @ normal.T).max() < 1e-3


def test_the_normal_noise_is_not_that_of_o():
    """Nor that of another step or letter."""
    bundle = Bundle(CHAINS, word="BAO")
    drawn = []
    for letter, step in ((2, 0), (3, 0), (2, 1)):
        bundle.context.set_velocities(np.zeros_like(bundle.v))
        bundle.context._store.program.step = step
        bundle.perform("O", kT=1.0, letter=letter)
        drawn.append(bundle.look()[1][5:])
    bundle.context.set_velocities(np.zeros_like(bundle.v))
    for a in range(3):
        for b in range(a):
            assert not np.isclose(drawn[a], drawn[b], rtol=1e-3).any()


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize("n", [3, 8, 20, 400])
@pytest.mark.parametrize("twistable", [False, True])
def test_others_in_a_batch_change_no_bit(n, closed, twistable):
    """A filament alone and among others, of which some move so fast that they need more turns of Newton's method."""
    runs = []
    for others in ([], [3, 20, 8, 8, 9, 21, 19, 5, 8, 20, 33, 3, 4]):
        rng = np.random.default_rng(3)
        topology = mp.Topology()
        x = nodes_of(rng, n, closed)
        mass = rng.uniform(0.5, 2.0, n)
        v = rng.normal(0.0, 1.0, (n, 3))
        rest = [nodes_of(rng, m, closed) for m in others]
        mass = np.concatenate([mass, rng.uniform(0.5, 2.0, sum(others))])
        twist = {"directors": "parallel", "director_mass": 0.7} if twistable else {}
        handle = topology.add_filaments([x, *rest], mass, closed=closed, **twist)
        system = system_with(topology, mp.forces.HarmonicTrap(handle, 0.3, [0.1, 0.2, 0.3]))
        context = mp.Context(system, mp.SplittingIntegrator("BAB", 0.01), threads=1)
        fast = rng.normal(0.0, 3.0, (sum(others), 3))
        links = np.random.default_rng(4).normal(size=(len(handle.link_lengths) if twistable else 0, 3))
        context.set_velocities(np.concatenate([v, fast, links]))
        context.step(40)
        state = context.get_state(positions=True, velocities=True)
        own = handle.beads[:n]
        if twistable:
            own = np.concatenate([own, handle.directors.beads[: handle.kind.link_starts[1]]])
        runs.append((state.positions[own].tobytes(), state.velocities[own].tobytes()))
    assert runs[0] == runs[1]


#: Doubles in a vector of each instruction set.
WIDTHS = {"baseline": 2, "avx2": 4, "avx512": 8}


@pytest.mark.parametrize("isa", selected.built)
def test_vectors_are_as_wide_as_the_instruction_set(isa):
    """Not wider, for then they go through memory. Where a long filament is cut does not depend on it."""
    code = (
        "import json; from medyanpy._kernels.selected import constraints as a, constraints_twistable as b; "
        "print(json.dumps([[k.LANE_COUNT, k.SEGMENT_COUNT, k.LINKS_IN_ONE_PIECE] for k in (a, b)]))"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], env={**os.environ, "MEDYANPY_ISA": isa},
                          capture_output=True, text=True, check=True, cwd="/")  # fmt: skip
    assert json.loads(done.stdout) == [[WIDTHS[isa], 8, 256]] * 2


def run_of(counts, twistable, closed):
    """What filaments of `counts` nodes come to: bytes of each. Shape, masses and velocities of a filament depend on
    its number alone, and so does its noise. Directors are numbered after all nodes: no noise where there are any."""
    topology = mp.Topology()
    rngs = [np.random.default_rng([7, i]) for i in range(len(counts))]
    nodes = [nodes_of(rng, n, closed) for rng, n in zip(rngs, counts, strict=True)]
    mass, across = (
        np.concatenate([rng.uniform(*bounds, n) for rng, n in zip(rngs, counts, strict=True)])
        for bounds in ((0.5, 2.0), (1.0, 3.0))
    )
    v = [rng.normal(0.0, 1.5, (n, 3)) for rng, n in zip(rngs, counts, strict=True)]
    twist = {}
    if twistable:
        twist = {"directors": "parallel", "director_mass": 0.7}
        v += [rng.normal(size=(n if closed else n - 1, 3)) for rng, n in zip(rngs, counts, strict=True)]
    handle = topology.add_filaments(nodes, mass, across, closed=closed, **twist)
    word = "BAB" if twistable else "BAOAB"
    integrator = mp.SplittingIntegrator(word, 0.02, kT=thermal(word, 1.0), seed=5)
    context = mp.Context(mp.System(topology), integrator, threads=1)
    context.set_velocities(np.concatenate(v))
    context.step(6)
    state = context.get_state(positions=True, velocities=True)
    own = np.split(handle.beads, handle.starts[1:-1])
    if twistable:
        links = np.split(handle.directors.beads, handle.kind.link_starts[1:-1])
        own = [np.concatenate(both) for both in zip(own, links, strict=True)]
    return [(state.positions[beads].tobytes(), state.velocities[beads].tobytes()) for beads in own]


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize("twistable", [False, True])
def test_number_of_filaments_changes_no_bit_of_any(twistable, closed):
    """From none in company to more than two vectors full, so that every number is left over once; their lengths are no
    multiples of what a vector holds, and the fast ones take more turns of Newton's method."""
    kernel = constraints_twistable if twistable else constraints
    counts = [17, 4, 23, 9, 16, 5, 18, 3, 12, 30, 7, 21, 6, 11, 3, 26, 8][: 2 * kernel.LANE_COUNT + 1]
    alone = [run_of(counts[: i + 1], twistable, closed)[i] for i in range(len(counts))]
    for n in range(1, len(counts) + 1):
        assert run_of(counts[:n], twistable, closed) == alone[:n]


@pytest.mark.parametrize("counts", [[3], [256], [257], [9, 256], [14, 13], [5, 6, 7]])
@pytest.mark.parametrize("twistable", [False, True])
def test_a_filament_without_company_against_a_vector_of_them(counts, twistable):
    """Whether links or filaments share a vector. In company it is the same filament."""
    kernel = constraints_twistable if twistable else constraints
    company = [max(counts)] * (kernel.LANE_COUNT * 2)
    few = run_of(counts, twistable, False)
    assert run_of(counts + company, twistable, False)[: len(counts)] == few
