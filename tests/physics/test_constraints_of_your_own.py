"""What constraints of a user's own sample: the target measure of each combination, against direct sampling.

The measures are derived in docs/theory/constraints_of_your_own.md. False alarms: 1e-6 for each check.
"""

import numpy as np
import pytest

import medyanpy as mp
from medyanpy.testing import check_mean, check_variance

DISTANCE = "(x1-x2)^2 + (y1-y2)^2 + (z1-z2)^2 - d^2"
KT = 1.5


def sampled(topology, fixman, h, looks, every, measured):
    """(copies,) means over time of what is measured of positions (n, 3), from runs of BAOAB."""
    system = mp.System(topology)
    if fixman:
        system.add_force(mp.forces.ConstraintFixmanPotential(topology["constraints"], kT=KT))
    context = mp.Context(system, mp.SplittingIntegrator("BAOAB", h, kT=KT, seed=11))
    context.set_velocities_to_temperature(kT=KT, seed=12)
    total, squares, n = 0.0, 0.0, 0
    for _ in range(looks):
        context.step(every)
        state = context.get_state(positions=True, energy=True)
        total = total + measured(state.positions)
        freedom = sum(h.degrees_of_freedom for h in topology.handles)
        squares, n = squares + freedom * state.temperature * mp.units.boltzmann, n + freedom
    return total / looks, squares, n


# A ring of four bars ---------------------------------------------------------------------------------------------
#
# With the lengths alone held at their values (unit gradients, infinitely stiff springs) the diagonal d and the angle φ
# between the triangles on both its sides are uniform: d² for the direction of the diagonal, and 1/d for each of the two
# nodes beside it. Constraints have the density sqrt(det T) over that.

BARS = np.array([1.0, 1.2, 0.9, 1.4])
MASSES = np.array([0.2, 4.0, 1.0, 0.5])
SHORTEST, LONGEST = 0.5, 2.2


def rings(d, phi):
    """(m, 4, 3) nodes; bars 0-1, 1-2, 2-3, 3-0, the diagonal from node 0 to node 2."""
    a, b, c, e = BARS
    x = np.zeros((len(d), 4, 3))
    x[:, 2, 0] = d
    for node, near, far, angle in ((1, a, b, np.zeros_like(phi)), (3, e, c, phi)):
        along = (near**2 - far**2 + d**2) / (2.0 * d)
        off = np.sqrt(near**2 - along**2)
        x[:, node] = np.column_stack([along, off * np.cos(angle), off * np.sin(angle)])
    return x


def root_of_metric(x):
    """(m,) sqrt(det J M⁻¹ Jᵀ) of unit vectors along the bars."""
    bars = np.roll(x, -1, axis=1) - x
    u = bars / np.linalg.norm(bars, axis=2)[:, :, None]
    j = np.zeros((len(x), 4, 4, 3))
    for k in range(4):
        j[:, k, k], j[:, k, (k + 1) % 4] = -u[:, k], u[:, k]
    return np.sqrt(np.linalg.det(np.einsum("mkic,mlic,i->mkl", j, j, 1.0 / MASSES)))


def diagonal_and_angle(x):
    x = x.reshape(-1, 4, 3)
    axis = x[:, 2] - x[:, 0]
    d = np.linalg.norm(axis, axis=1)
    arms = []
    for node in (1, 3):
        arm = x[:, node] - x[:, 0]
        arm = arm - axis * (np.sum(arm * axis, axis=1) / d**2)[:, None]
        arms.append(arm / np.linalg.norm(arm, axis=1)[:, None])
    return d, np.sum(arms[0] * arms[1], axis=1)


@pytest.mark.slow
@pytest.mark.parametrize("fixman", [False, True])
def test_a_ring_of_four_bars_has_the_measure_of_its_metric(fixman):
    """Mean diagonal and mean cosine between its two triangles, with and without Fixman's potential, by quadrature; with
    masses 1:20 and frictions 1:50. Between the two the means are 0.06 and 0.17 apart."""
    middle = np.linspace(SHORTEST, LONGEST, 401)
    middle = 0.5 * (middle[1:] + middle[:-1])
    turn = (np.arange(400) + 0.5) * np.pi / 200.0
    d, phi = (a.ravel() for a in np.meshgrid(middle, turn, indexing="ij"))
    weight = np.ones_like(d) if fixman else root_of_metric(rings(d, phi))
    expected = np.average(d, weights=weight), np.average(np.cos(phi), weights=weight)
    # Starts are drawn from what is to stay.
    copies, rng = 1500, np.random.default_rng(6)
    chosen = rng.choice(len(d), copies, p=weight / weight.sum())
    x = rings(d[chosen], phi[chosen])
    topology = mp.Topology()
    friction = np.array([0.2, 1.0, 10.0, 0.5])
    beads = topology.add_beads(x.reshape(-1, 3), np.tile(MASSES, copies), np.tile(friction, copies))
    nodes = beads.beads.reshape(-1, 4)
    pairs = np.stack([nodes, np.roll(nodes, -1, axis=1)], axis=-1).reshape(-1, 2)
    topology.constrain(DISTANCE, pairs, d=np.tile(BARS, copies))
    means, squares, n = sampled(topology, fixman, 0.02, 25, 40, lambda x: np.array(diagonal_and_angle(x)))
    check_mean("diagonal", means[0], expected[0], sees=0.06)
    check_mean("cosine", means[1], expected[1], sees=0.15)
    check_variance("temperature", squares, n, KT, sees=0.03)


@pytest.mark.slow
def test_filaments_whose_end_stays_in_a_plane_have_the_measure_of_both():
    """Trimers of constrained filaments, the first node of which a text keeps at z = 0: the height of the first link and
    the angle between the two, against direct sampling of links in all directions, weighted by the root of the metric of
    links and plane together. Without the row of the plane, or that of the other link, means are those below."""
    rng, masses, copies = np.random.default_rng(3), np.array([0.3, 1.0, 3.0]), 3000
    u, w = rng.normal(size=(2, 300_000, 3))
    u, w = (v / np.linalg.norm(v, axis=1)[:, None] for v in (u, w))
    j = np.zeros((len(u), 3, 3, 3))
    j[:, 0, 0], j[:, 0, 1], j[:, 1, 1], j[:, 1, 2] = -u, u, -w, w
    j[:, 2, 0, 2] = 1.0
    metric = np.einsum("mkic,mlic,i->mkl", j, j, 1.0 / masses)
    looked_at = np.array([u[:, 2] ** 2, np.sum(u * w, axis=1) ** 2])
    weight = np.sqrt(np.linalg.det(metric))
    expected = np.average(looked_at, axis=1, weights=weight)
    without = np.average(looked_at, axis=1, weights=np.sqrt(np.linalg.det(metric[:, :2, :2])))
    assert abs(expected[0] - without[0]) > 0.05
    chosen = rng.choice(len(u), copies, p=weight / weight.sum())
    x = np.cumsum(np.stack([np.zeros((copies, 3)), u[chosen], w[chosen]], axis=1), axis=1)
    topology = mp.Topology()
    chains = topology.add_filaments(x, np.tile(masses, copies), np.tile([0.2, 5.0, 1.0], copies))
    topology.constrain("z", chains.beads.reshape(-1, 3)[:, :1], length=1.0)

    def measured(x):
        t = np.diff(x.reshape(-1, 3, 3), axis=1)
        return np.array([t[:, 0, 2] ** 2, np.sum(t[:, 0] * t[:, 1], axis=1) ** 2])

    means, squares, n = sampled(topology, False, 0.03, 25, 40, measured)
    check_mean("height", means[0], expected[0], sees=0.05)
    check_mean("angle", means[1], expected[1], sees=0.03)
    check_variance("temperature", squares, n, KT, sees=0.03)


# Two texts of one torus ------------------------------------------------------------------------------------------

TUBE = "(sqrt(x^2 + y^2) - R)^2 + z^2 - r^2"
# Its other form, times what changes by a factor of 50 from one side to the other.
QUARTIC = "((x^2 + y^2 + z^2 + R^2 - r^2)^2 - 4*R^2*(x^2 + y^2))*exp(x)"


def on_a_torus(text, fixman, tied, copies=1500):
    surface = mp.surfaces.Torus(2.0, 1.0)
    x = surface.sample(copies, seed=4)
    topology = mp.Topology()
    beads = topology.add_beads(x, 1.0, 2.0)
    topology.constrain(text, beads, R=2.0, r=1.0, length=1.0, tolerance=1e-13)
    if tied:
        pairs = beads.beads.reshape(-1, 2)
        d = np.linalg.norm(x[pairs[:, 0]] - x[pairs[:, 1]], axis=1)
        topology.constrain(DISTANCE, pairs, d=d, tolerance=1e-13, name="ties")
    return topology


@pytest.mark.slow
@pytest.mark.parametrize("text", [TUBE, QUARTIC])
@pytest.mark.parametrize("fixman", [False, True])
def test_two_texts_of_one_torus_give_the_same_density(text, fixman):
    """Per area, whatever the gradient: with the angle ψ around the tube ⟨cos ψ⟩ = r/2R (0 of δ(g) of the first text,
    0.2 off of the second), and the two sides of the exponential are alike."""

    def measured(x):
        rim = np.hypot(x[:, 0], x[:, 1]) - 2.0
        return np.array([rim / np.hypot(rim, x[:, 2]), x[:, 0]])

    means, squares, n = sampled(on_a_torus(text, fixman, False), fixman, 0.05, 25, 40, measured)
    check_mean("cos ψ", means[0], 0.25, sees=0.1)
    check_mean("x", means[1], 0.0, sees=0.3)
    check_variance("temperature", squares, n, KT, sees=0.05)


@pytest.mark.parametrize("fixman", [False, True])
def test_two_texts_of_one_torus_give_the_same_path(fixman):
    """Pairs of beads on it, tied by distances: friction, noise and Fixman's potential are the same to rounding."""

    def run(text):
        found = []
        sampled(on_a_torus(text, fixman, True, 40), fixman, 0.02, 10, 15, lambda x: found.append(x.copy()) or 0.0)
        return np.array(found)

    one, other = run(TUBE), run(QUARTIC)
    assert np.abs(one[-1] - one[0]).max() > 1.0
    np.testing.assert_allclose(one, other, rtol=0, atol=1e-8)


def test_soft_penalties_tend_to_the_measure_with_fixmans_potential():
    """Stiff springs on lengths in place of the ring's four constraints: what they sample is that of unit gradients."""
    copies, rng = 800, np.random.default_rng(8)
    x = rings(rng.uniform(SHORTEST, LONGEST, copies), rng.uniform(0.0, 2.0 * np.pi, copies))
    topology = mp.Topology()
    beads = topology.add_beads(x.reshape(-1, 3), np.tile(MASSES, copies), 1.0)
    nodes = beads.beads.reshape(-1, 4)
    pairs = np.stack([nodes, np.roll(nodes, -1, axis=1)], axis=-1).reshape(-1, 2)
    system = mp.System(topology)
    # Of unit gradient, each bar by 2 % of its length.
    text = "sqrt((x1-x2)^2 + (y1-y2)^2 + (z1-z2)^2) - d"
    system.add_force(mp.forces.ConstraintPenalty(text, pairs, 60.0, d=np.tile(BARS, copies)))
    context = mp.Context(system, mp.SplittingIntegrator("BAOAB", 0.004, kT=KT, seed=3))
    context.set_velocities_to_temperature(kT=KT, seed=4)
    total = 0.0
    for _ in range(40):
        context.step(80)
        total = total + diagonal_and_angle(context.get_state(positions=True).positions)[0]
    check_mean("diagonal", total / 40, 0.5 * (SHORTEST + LONGEST), sees=0.06)
