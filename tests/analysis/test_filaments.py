"""Analyses of filaments, against sampled chains of which everything is known."""

import numpy as np
import pytest
from builders import refuses
from scipy import stats

import medyanpy as mp
from medyanpy import analysis
from medyanpy.testing import check_mean

LINK = 2.5


def chains(rng, counts, a, frames=1, length=LINK):
    """(frames, n, 3) nodes of discrete worm-like chains of counts nodes, p(θ) ∝ exp(a cos θ) sin θ at every joint."""
    f, longest = len(counts), max(counts)
    tangent = np.empty((frames, f, longest - 1, 3))
    tangent[:, :, 0] = rng.normal(size=(frames, f, 3))
    tangent[:, :, 0] /= np.linalg.norm(tangent[:, :, 0], axis=-1, keepdims=True)
    for k in range(1, longest - 1):
        # The inverse of the distribution function of cos θ.
        c = 1.0 + np.log1p(rng.uniform(size=(frames, f)) * np.expm1(-2.0 * a)) / a
        across = np.cross(tangent[:, :, k - 1], rng.normal(size=(frames, f, 3)))
        across *= np.sqrt(np.maximum(1.0 - c * c, 0.0) / np.sum(across**2, axis=-1))[..., None]
        tangent[:, :, k] = c[..., None] * tangent[:, :, k - 1] + across
    start = np.broadcast_to(rng.normal(0.0, 30.0, (f, 1, 3)), (frames, f, 1, 3))
    nodes = np.concatenate([start, start + length * np.cumsum(tangent, axis=2)], axis=2)
    return np.concatenate([nodes[:, i, :n] for i, n in enumerate(counts)], axis=1)


def handle(x, counts, before=0, closed=False):
    topology = mp.Topology()
    if before:
        topology.add_beads(np.zeros((before, 3)), mass=1.0)
    starts = np.concatenate([[0], np.cumsum(counts)])
    return topology.add_filaments(x, node_mass=1.0, starts=starts, closed=closed)


def u_of(a):
    return 1.0 / np.tanh(a) - 1.0 / a


# Persistence length ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("a", [0.7, 4.0, 100.0, 1e4])
def test_persistence_length_of_many_filaments(a, rng):
    """Of different lengths; false alarms 1e-6. An error of the value by 5 standard errors is seen, here of 1 to 4 %."""
    counts = rng.integers(2, 60, 150)
    x = chains(rng, counts, a, frames=5)
    estimate = analysis.persistence_length(x, handle(x[0], counts))
    expected = -LINK / np.log(u_of(a))
    assert abs(estimate.value - expected) < 5.1 * estimate.error
    assert estimate.error < 0.04 * expected


@pytest.mark.slow
@pytest.mark.parametrize(("a", "links"), [(2.0, 2), (50.0, 8)])
@pytest.mark.parametrize(("counts", "frames"), [([25] * 40, 1), ([200], 40), ([9, 30, 60], 30)])
def test_errors_are_those_of_repeated_experiments(a, links, counts, frames, rng):
    """Deviations in units of the error have the variance of Student's t; 1e-6. Errors wrong by 40 % would be seen,
    and a bias of 1.6 of them."""
    experiments = 60
    expected = -LINK / np.log(u_of(a))
    z = []
    for _ in range(experiments):
        x = chains(rng, counts, a, frames)
        estimate = analysis.persistence_length(x if frames > 1 else x[0], handle(x[0], counts), links * LINK)
        z.append((estimate.value - expected) / estimate.error)
    check_mean("bias of the persistence length", z, 0.0, sees=1.6)
    # 18 degrees of freedom at least, of Student's t: variance 18/16.
    q = np.sum(np.square(z)) / (18 / 16)
    assert stats.chi2.sf(q, experiments) > 1e-6
    assert stats.chi2.cdf(q, experiments) > 1e-6


def test_correlations_are_powers_of_u(rng):
    counts = [40] * 400
    x = chains(rng, counts, 3.0)
    result = analysis.tangent_correlation(x[0], handle(x[0], counts), 10 * LINK)
    np.testing.assert_allclose(result.separation, LINK * np.arange(11))
    assert result.pairs.tolist() == [400 * (39 - k) for k in range(11)]
    assert result.value[0] == 1.0
    z = (result.value - u_of(3.0) ** np.arange(11))[1:] / result.error[1:]
    # 5.1 standard errors of normal numbers: 3e-7 each.
    assert (np.abs(z) < 5.1).all()
    assert (result.error[1:] < 0.01).all()


def test_correlations_by_hand():
    """Two filaments of unequal lengths and links."""
    x = np.array([[0.0, 0, 0], [2, 0, 0], [2, 4, 0], [2, 4, 3], [5, 5, 5], [6, 5, 5], [9, 5, 5]])
    result = analysis.tangent_correlation(x, handle(x, [4, 3]))
    assert result.pairs.tolist() == [5, 3, 1]
    np.testing.assert_allclose(result.separation, [0.0, (3.0 + 3.5 + 2.0) / 3, 6.5])
    np.testing.assert_allclose(result.value, [1.0, 1.0 / 3, 0.0], atol=1e-15)
    # The mean over both without either: 1 and 0.
    assert result.error[1] == pytest.approx(0.5)
    assert np.isnan(result.error[2])


def test_rings_go_round():
    """A regular polygon: ⟨t_i·t_(i+k)⟩ = cos 2πk/n."""
    rings = []
    for n, r in ((8, 5.0), (8, 9.0)):
        phi = 2.0 * np.pi * np.arange(n) / n
        rings.append(r * np.column_stack([np.cos(phi), np.sin(phi), 0.0 * phi]))
    x = np.concatenate(rings)
    filaments = handle(x, [8, 8], closed=True)
    result = analysis.tangent_correlation(x, filaments)
    np.testing.assert_allclose(result.value, np.cos(2.0 * np.pi * np.arange(5) / 8), atol=1e-14)
    assert result.pairs.tolist() == [16] * 5
    np.testing.assert_allclose(result.separation, np.arange(5) * filaments.link_lengths.mean())
    np.testing.assert_allclose(analysis.contour_curvature(x, filaments), 2 * np.sin(np.pi / 8) / filaments.link_lengths)


# Curvature, ends, and where frames come from -------------------------------------------------------------------------


@pytest.mark.parametrize("closed", [False, True])
def test_curvature_gives_the_bending_energy(closed, rng):
    counts = [3, 12, 5]
    nodes = np.concatenate([np.cumsum(rng.normal(0.0, 2.0, (n, 3)), axis=0) for n in counts])
    filaments = handle(nodes, counts, before=4, closed=closed)
    system = mp.System(filaments.topology)
    bending = system.add_force(mp.forces.FilamentBending(filaments, 1.0))
    modulus = rng.uniform(1.0, 9.0, len(bending.joints))
    bending.set(bending_modulus=modulus)
    state = mp.Context(system, mp.VerletIntegrator(1e-3)).get_state(positions=True, energy=True)
    kappa = analysis.contour_curvature(state, filaments)
    edges = filaments.link_lengths
    pairs = [
        (edges[a:b], np.roll(edges[a:b], 1)) if closed else (edges[a + 1 : b], edges[a : b - 1])
        for a, b in zip(filaments.kind.link_starts, filaments.kind.link_starts[1:], strict=False)
    ]
    length = np.concatenate([0.5 * (p + q) for p, q in pairs])
    assert np.sum(0.5 * modulus * kappa**2 * length) == pytest.approx(state.potential_energy, rel=1e-12)


def test_sources_of_frames(tmp_path, rng):
    counts = [2, 7, 4]
    nodes = np.concatenate([np.cumsum(rng.normal(0.0, 2.0, (n, 3)), axis=0) for n in counts])
    filaments = handle(nodes, counts, before=3)
    simulation = mp.Simulation(mp.System(filaments.topology), mp.VerletIntegrator(1e-2))
    simulation.context.set_velocities(rng.normal(size=(16, 3)))
    states = []
    with mp.reporters.TrajectoryReporter(tmp_path / "run.h5", 4) as reporter:
        simulation.reporters.append(reporter)
        for _ in range(3):
            simulation.step(4)
            states.append(simulation.context.get_state(positions=True))
    x = np.stack([state.positions for state in states])
    expected = np.stack([x[:, 4] - x[:, 3], x[:, 11] - x[:, 5], x[:, 15] - x[:, 12]], axis=1)
    with mp.Trajectory(tmp_path / "run.h5") as trajectory:
        for source in (states, x, x[:, 3:], list(trajectory), trajectory):
            assert (analysis.end_to_end(source, filaments) == expected).all()
            assert analysis.contour_curvature(source, filaments).shape == (3, 7)
        for source in (states[1], x[1], x[1, 3:], trajectory[1]):
            assert (analysis.end_to_end(source, filaments) == expected[1]).all()
            assert analysis.contour_curvature(source, filaments).shape == (7,)
        assert analysis.persistence_length(trajectory, filaments) == analysis.persistence_length(x, filaments)


def test_one_frame_of_one_filament_tells_no_error(rng):
    x = chains(rng, [50], 5.0)[0]
    with pytest.warns(mp.StatisticsWarning, match="persistence_length: the error of .* is not a number"):
        estimate = analysis.persistence_length(x, handle(x, [50]))
    assert np.isnan(estimate.error)
    cosine = np.sum(np.diff(x[:-1], axis=0) * np.diff(x[1:], axis=0), axis=1).mean() / LINK**2
    assert estimate.value == pytest.approx(-LINK / np.log(cosine))


# What is refused -----------------------------------------------------------------------------------------------------


def test_refused(rng):
    x = chains(rng, [5, 5], 3.0)[0]
    filaments = handle(x, [5, 5], before=2)
    ring = handle(x, [5, 5], closed=True)
    for function in (analysis.end_to_end, analysis.persistence_length):
        refuses(mp.TopologyError, r"are rings, which have no ends", function, x, ring)
    refuses(mp.TopologyError, "filaments must be the handle of filaments, not 3", analysis.contour_curvature, x, 3)
    with pytest.raises(mp.ParameterError, match=r"positions have 7 rows, .* 12 beads and .* 10 nodes"):
        analysis.end_to_end(x[:7], filaments)
    refuses(mp.ParameterError, "end_to_end: there are no frames", analysis.end_to_end, np.empty((0, 10, 3)), filaments)
    with pytest.raises(mp.ParameterError, match=r"tangent_correlation: max_separation = -1.0 but must be"):
        analysis.tangent_correlation(x, filaments, -1.0)
    with pytest.raises(mp.ParameterError, match="no filament has two links within the longest separation"):
        analysis.persistence_length(x, filaments, 0.5 * LINK)
    straight = np.linspace([0.0, 0, 0], [9.0, 0, 0], 10)
    with pytest.raises(mp.ParameterError, match="the filaments are straight in all frames"):
        analysis.persistence_length(straight, handle(straight, [5, 5]))
    folded = np.array([[0.0, 0, 0], [1, 0, 0], [0, 0.1, 0], [1, 0.2, 0]])
    with pytest.raises(mp.ParameterError, match=r"correlation at 1.0\d* nm is -0.98\d*, not positive"):
        analysis.persistence_length(folded, handle(folded, [4]))
