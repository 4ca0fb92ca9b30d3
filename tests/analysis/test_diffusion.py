"""Mean-square displacements, against all pairs of frames one by one; diffusion coefficients, against known motions."""

import numpy as np
import pytest
from builders import refuses
from scipy import stats

import medyanpy as mp
from medyanpy import analysis
from medyanpy.testing import check_mean


def by_hand(x, ids=None, axes=(0, 1, 2)):
    """(m,) sums and (m,) numbers over all pairs of frames of one and the same bead, (m, n, 3)."""
    m, n, _ = x.shape
    ids = np.tile(np.arange(n), (m, 1)) if ids is None else ids
    sums, counts = np.zeros(m), np.zeros(m)
    for s in range(m):
        for e in range(s, m):
            for i in range(n):
                if ids[s, i] == ids[e, i] >= 0 and not np.isnan(x[[s, e], i]).any():
                    sums[e - s] += sum((x[e, i, k] - x[s, i, k]) ** 2 for k in axes)
                    counts[e - s] += 1
    return sums, counts


def paths(rng, m, n, step=1.0):
    """Random walks, far from the origin."""
    return np.cumsum(rng.normal(0.0, step, (m, n, 3)), axis=0) + [5e3, -2e3, 1e3]


# Against all pairs of frames ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("m", "n"), [(2, 3), (7, 1), (30, 2), (31, 5), (24, 21), (9, 70)])
@pytest.mark.parametrize("axes", ["xyz", "zx", "y"])
def test_all_pairs_of_frames(m, n, axes, rng):
    """Of few beads in blocks of origins, of many in groups: the means are the same."""
    x = paths(rng, m, n)
    sums, counts = by_hand(x, axes=["xyz".index(a) for a in axes])
    found = analysis.mean_square_displacement(x, lags=range(m), axes=axes, interval=0.25)
    assert found.lags.tolist() == list(range(m))
    np.testing.assert_allclose(found.time, 0.25 * np.arange(m), rtol=1e-15)
    assert found.pairs.tolist() == counts.tolist()
    expected = sums / counts
    np.testing.assert_allclose(found.value, expected, rtol=1e-12, atol=1e-12 * expected.max())
    some = analysis.mean_square_displacement(x, lags=[m - 1, 1], axes=axes, interval=0.25)
    np.testing.assert_allclose(some.value, expected[[m - 1, 1]], rtol=1e-12, atol=1e-12 * expected.max())
    half = analysis.mean_square_displacement(x, axes=axes, interval=0.25)
    assert half.lags.tolist() == list(range(1, m // 2 + 1))


@pytest.mark.parametrize("n", [1, 3, 40])
def test_beads_that_are_not_always_there(n, rng):
    m = 26
    x = paths(rng, m, n)
    x[rng.random((m, n)) < 0.3] = np.nan
    x[:4, 0] = np.nan
    sums, counts = by_hand(x)
    found = analysis.mean_square_displacement(x, lags=range(m), interval=1.0)
    assert found.pairs.tolist() == counts.tolist()
    there = counts > 0
    np.testing.assert_allclose(found.value[there], (sums / np.maximum(counts, 1))[there], rtol=1e-12, atol=1e-10)
    assert np.isnan(found.value[~there]).all()
    assert np.isnan(found.error[~there]).all()


def test_no_bead_at_both_ends_of_a_lag():
    x = np.full((6, 1, 3), np.nan)
    x[[0, 4], 0] = [[1.0, 2.0, 3.0], [1.0, 5.0, 7.0]]
    found = analysis.mean_square_displacement(x, lags=range(6), interval=1.0)
    assert found.pairs.tolist() == [2, 0, 0, 0, 1, 0]
    np.testing.assert_allclose(found.value[[0, 4]], [0.0, 25.0], atol=1e-12)
    assert np.isnan(found.value[[1, 2, 3, 5]]).all()


class Look:
    """What analyses ask of a state or frame."""

    def __init__(self, time, positions, ids):
        self.time, self.positions, self.ids = time, positions, ids


@pytest.mark.parametrize("gap", [False, True])
def test_bead_that_reuses_a_row_is_a_new_bead(gap, rng):
    """From one frame to the next, and with nobody in between."""
    m, n = 20, 4
    x = paths(rng, m, n)
    ids = np.tile(np.arange(n), (m, 1))
    ids[8:, 1] = 4
    if gap:
        ids[12:, 2], x[12:, 2] = -1, np.nan
    ids[15:, 2], x[15:, 2] = 5, paths(rng, 5, 1)[:, 0]
    looks = [Look(0.5 * k, x[k], ids[k]) for k in range(m)]
    sums, counts = by_hand(x, ids)
    found = analysis.mean_square_displacement(looks, lags=range(m))
    assert found.pairs.tolist() == counts.tolist()
    np.testing.assert_allclose(found.value, sums / counts, rtol=1e-12, atol=1e-10)
    np.testing.assert_allclose(found.time, 0.5 * np.arange(m))


def test_frames_with_fewer_rows(rng):
    """Of before beads were added."""
    x = paths(rng, 6, 5)
    looks = [Look(1.0 * k, x[k, : 3 if k < 2 else 5], np.arange(3 if k < 2 else 5)) for k in range(6)]
    x[:2, 3:] = np.nan
    sums, counts = by_hand(x)
    found = analysis.mean_square_displacement(looks, lags=range(6))
    assert found.pairs.tolist() == counts.tolist()
    np.testing.assert_allclose(found.value, sums / counts, rtol=1e-12, atol=1e-10)


def test_parts_that_do_not_fit_into_memory_at_once(rng, monkeypatch):
    x = paths(rng, 12, 50)
    whole = analysis.mean_square_displacement(x, interval=1.0)
    monkeypatch.setattr("medyanpy.analysis.frames._AT_ONCE_OF_ALL_FRAMES", 12 * 3 * 7)
    monkeypatch.setattr("medyanpy.analysis.diffusion._AT_ONCE", 12 * 3)
    parts = analysis.mean_square_displacement(x, interval=1.0)
    np.testing.assert_allclose(parts.value, whole.value, rtol=1e-13)
    np.testing.assert_allclose(parts.error, whole.error, rtol=1e-10)


def test_sources(tmp_path, rng):
    """States, frames, a trajectory and arrays give the same, with the times of the run; handles of either."""
    topology = mp.Topology()
    topology.add_beads(rng.normal(size=(3, 3)), mass=1.0)
    movers = topology.add_beads(rng.normal(size=(4, 3)), mass=1.0, name="movers")
    simulation = mp.Simulation(mp.System(topology), mp.VerletIntegrator(1e-2))
    simulation.context.set_velocities(rng.normal(size=(7, 3)))
    states = []
    with mp.reporters.TrajectoryReporter(tmp_path / "run.h5", 5) as reporter:
        simulation.reporters.append(reporter)
        for _ in range(8):
            simulation.step(5)
            states.append(simulation.context.get_state(positions=True))
    x = np.stack([state.positions for state in states])
    expected = analysis.mean_square_displacement(x, movers, interval=0.05)
    # What flies straight on: v²t².
    v = simulation.context.get_state(velocities=True).velocities[movers.beads]
    np.testing.assert_allclose(expected.value, (v**2).sum(axis=1).mean() * expected.time**2, rtol=1e-11)
    with mp.Trajectory(tmp_path / "run.h5") as trajectory:
        for source in (states, list(trajectory), trajectory):
            for beads in (movers, [3, 4, 5, 6], trajectory.handles["movers"], [movers]):
                found = analysis.mean_square_displacement(source, beads)
                np.testing.assert_allclose(found.value, expected.value, rtol=1e-13)
                np.testing.assert_allclose(found.time, expected.time, rtol=1e-12)
        for beads in ("movers", ["movers"]):
            np.testing.assert_allclose(analysis.mean_square_displacement(trajectory, beads).value, expected.value,
                                       rtol=1e-13)  # fmt: skip
        assert analysis.mean_square_displacement(trajectory).pairs[0] == 7 * 7
        for part in (slice(1, 7, 2), slice(None, None, 3)):
            found = analysis.mean_square_displacement(trajectory[part], "movers")
            wanted = analysis.mean_square_displacement(x[part], movers, interval=0.05 * part.step)
            np.testing.assert_allclose(found.value, wanted.value, rtol=1e-13)
            np.testing.assert_allclose(found.time, wanted.time, rtol=1e-12)
        refuses(mp.TopologyError, "did you mean 'movers'", analysis.mean_square_displacement, trajectory, "mover")
    with pytest.raises(mp.TopologyError, match="beads have names in trajectories only"):
        analysis.mean_square_displacement(states, "movers")


def test_a_run_that_is_edited(tmp_path, rng):
    """Beads taken away, others added, in their rows too: in states, and in the segments of a trajectory."""
    topology = mp.Topology()
    beads = topology.add_beads(rng.normal(size=(5, 3)), mass=1.0, name="movers")
    simulation = mp.Simulation(mp.System(topology), mp.VerletIntegrator(1e-2))
    simulation.context.set_velocities(rng.normal(size=(5, 3)))
    states = []

    def run(frames):
        for _ in range(frames):
            simulation.step(5)
            states.append(simulation.context.get_state(positions=True))

    with mp.reporters.TrajectoryReporter(tmp_path / "run.h5", 5) as reporter:
        simulation.reporters.append(reporter)
        run(4)
        with topology.edit():
            beads.remove([1, 3])
        run(3)
        with topology.edit():
            beads.add(rng.normal(size=(4, 3)))
        simulation.context.set_velocities(rng.normal(size=(topology.n_beads, 3)))
        run(5)
    n, m = len(states[-1].positions), len(states)
    x, ids = np.full((m, n, 3), np.nan), np.full((m, n), -1)
    for k, state in enumerate(states):
        x[k, : len(state.positions)], ids[k, : len(state.ids)] = state.positions, state.ids
    assert any(len(np.unique(column[column >= 0])) > 1 for column in ids.T)
    sums, counts = by_hand(x, ids)
    there = counts > 0
    with mp.Trajectory(tmp_path / "run.h5") as trajectory:
        assert len(trajectory.paths) > 1
        for source, own in ((states, beads), (trajectory, "movers"), (list(trajectory), trajectory.handles["movers"])):
            found = analysis.mean_square_displacement(source, own, lags=range(m))
            assert found.pairs.tolist() == counts.tolist()
            expected = sums[there] / counts[there]
            np.testing.assert_allclose(found.value[there], expected, rtol=1e-11, atol=1e-11)
            sizes = [one.sizes.sum() for one in analysis.clusters(source, own, cutoff=1.0)]
            assert sizes == (ids >= 0).sum(axis=1).tolist()
            contacts = analysis.contact_counts(source, own, cutoff=1e9)
            assert contacts.total.tolist() == [k * (k - 1) // 2 for k in sizes]
            assert ((contacts.per_bead >= 0).sum(axis=1) == sizes).all()


# Errors ------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("beads", "frames"), [(100, 20), (24, 60), (1, 640), (5, 160)])
def test_errors_are_those_of_repeated_experiments(beads, frames, rng):
    """Brownian motion, 1e-6: deviations in units of the errors have the variance of Student's t, for a lag, and for
    the diffusion coefficient. Errors wrong by 40 % would be seen, and a bias of 0.8 of them."""
    experiments, lag = 150, 4
    z, slopes = [], []
    for _ in range(experiments):
        x = np.cumsum(rng.normal(size=(frames, beads, 3)), axis=0)
        found = analysis.mean_square_displacement(x, lags=[1, 2, 3, lag], interval=1.0)
        z.append((found.value[-1] - 3.0 * lag) / found.error[-1])
        estimate = analysis.diffusion_coefficient(found)
        slopes.append((estimate.value - 0.5) / estimate.error)
    parts = min(beads, 64) if beads >= 20 else 20
    freedom = parts - 1
    for what, values in (("a displacement", z), ("a diffusion coefficient", slopes)):
        check_mean(f"bias of {what}", values, 0.0, sees=0.8)
        q = np.sum(np.square(values)) / (freedom / (freedom - 2))
        # Squares of Student's t spread more than those of normal numbers, with few parts.
        spread = np.sqrt(1.0 + 3.0 / (freedom - 4))
        z_of_q = (q - experiments) / (np.sqrt(2.0 * experiments) * spread)
        assert abs(z_of_q) < 4.9, (what, q / experiments)
    assert stats.norm.sf(4.9) < 0.5e-6


def test_long_lags_of_few_beads_have_no_error(rng):
    """Blocks of origins that are twice as long as the lag, and at least four of them."""
    found = analysis.mean_square_displacement(paths(rng, 64, 1), lags=range(1, 64), interval=1.0)
    assert np.isfinite(found.error[:8]).all()
    assert np.isnan(found.error[8:]).all()
    assert np.isfinite(found.value).all()


# Diffusion coefficients ----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_brownian_motion_of_the_integrator(tmp_path):
    """D = kT/γ from a trajectory. Each bead is an independent experiment, and a mean-square displacement is the mean
    over beads: a D that is wrong by 2 to 8 % is seen, from the shortest lag to the longest."""
    n, gamma, dt, every = 1500, 2e-6, 1e-7, 5
    topology = mp.Topology()
    beads = topology.add_beads(np.zeros((n, 3)), mass=4e-12, friction=gamma)
    simulation = mp.Simulation(mp.System(topology), mp.BrownianIntegrator(dt, temperature=300.0, seed=5))
    with mp.reporters.TrajectoryReporter(tmp_path / "run.h5", every) as reporter:
        simulation.reporters.append(reporter)
        simulation.step(100 * every)
    expected = mp.units.boltzmann * 300.0 / gamma
    with mp.Trajectory(tmp_path / "run.h5") as trajectory:
        moved = analysis.mean_square_displacement(trajectory, beads, lags=[1, 5, 20])
        assert moved.time[0] == pytest.approx(every * dt, rel=1e-12)
        x = trajectory.read("positions")
    each = np.stack([((x[lag:] - x[:-lag]) ** 2).sum(axis=2).mean(axis=0) for lag in (1, 5, 20)], axis=1)
    np.testing.assert_allclose(each.mean(axis=0), moved.value, rtol=1e-12)
    for k, sees in enumerate((0.02, 0.04, 0.08)):
        check_mean(f"⟨r²⟩ at {moved.time[k]:g} s", each[:, k] / (6.0 * expected * moved.time[k]), 1.0, sees=sees)
    estimate = analysis.diffusion_coefficient(moved, offset=False)
    # 4.9 standard errors, of 64 parts.
    assert abs(estimate.value - expected) < 5.4 * estimate.error
    assert estimate.error < 0.01 * expected


def test_a_line_is_fitted_exactly():
    """Sums that are those of a line, c + 2dDt, in place of what was summed."""
    lags = np.arange(1, 30)
    rng = np.random.default_rng(3)
    x = np.cumsum(rng.normal(size=(60, 40, 3)), axis=0)
    found = analysis.mean_square_displacement(x, lags=lags, interval=0.1)
    put_in = 7.0 + 12.0 * found.time
    counts = found._parts.counts
    object.__setattr__(found._parts, "sums", counts * put_in)
    estimate = analysis.diffusion_coefficient(found)
    assert estimate.value == pytest.approx(2.0, rel=1e-12)
    assert estimate.error < 1e-12
    assert analysis.diffusion_coefficient(found, dimensions=2).value == pytest.approx(3.0, rel=1e-12)
    assert analysis.diffusion_coefficient(found, 0.5, 1.0).value == pytest.approx(2.0, rel=1e-12)
    object.__setattr__(found._parts, "sums", counts * (put_in - 7.0))
    assert analysis.diffusion_coefficient(found, offset=False).value == pytest.approx(2.0, rel=1e-12)
    assert analysis.diffusion_coefficient(found, 0.1, 0.1, offset=False).value == pytest.approx(2.0, rel=1e-12)


def test_one_bead_in_few_frames_tells_no_error():
    x = np.arange(5.0)[:, None, None] * [[1.0, 0.0, 0.0]]
    found = analysis.mean_square_displacement(x, interval=1.0)
    with pytest.warns(mp.StatisticsWarning, match="diffusion_coefficient: the error of 0.3 is not a number"):
        estimate = analysis.diffusion_coefficient(found, offset=False)
    assert np.isnan(found.error).all()
    # Equal weights: Σ t r²/Σ t² = 9/5, over 6.
    assert estimate.value == pytest.approx(0.3)
    assert np.isnan(estimate.error)


# What is refused -----------------------------------------------------------------------------------------------------


def test_refused(rng):
    x = paths(rng, 6, 4)
    msd = analysis.mean_square_displacement
    topology = mp.Topology()
    beads = topology.add_beads(x[0], mass=1.0)
    for words, source, options in (
        ("one frame shows no motion", x[0], {}),
        ("one frame shows no motion", x[:1], {"interval": 1.0}),
        ("there are no frames", x[:0], {}),
        ("positions must have shape", np.zeros(4), {}),
        (r"give interval= \(s\)", x, {}),
        ("interval = 0.0 but must be finite and > 0", x, {"interval": 0.0}),
        (r"lags\[1\] = 6 but must be >= 0 and < 6", x, {"interval": 1.0, "lags": [1, 6]}),
        (r"lags\[0\] = -1 but", x, {"interval": 1.0, "lags": -1}),
        ("there are no lags", x, {"interval": 1.0, "lags": []}),
        ("there are no beads", x, {"interval": 1.0, "beads": np.empty(0, int)}),
        ("axes = 'xx' but must be some of", x, {"interval": 1.0, "axes": "xx"}),
        ("axes must be text, not 3", x, {"interval": 1.0, "axes": 3}),
        ("positions have 3 rows, but the topology of 'beads' has 4", x[:, :3], {"beads": beads, "interval": 1.0}),
    ):
        refuses(mp.ParameterError, words, msd, source, **options)
    for words, rows in ((r"beads\[1\] = 4, but positions have 4 rows", [0, 4]), ("bead 2 is named twice", [2, 1, 2])):
        refuses(mp.TopologyError, words, msd, x, rows, interval=1.0)
    looks = [Look(t, x[k], np.arange(4)) for k, t in enumerate([0.0, 1.0, 2.0, 4.0, 5.0])]
    refuses(mp.ParameterError, r"from frame 2 to 3 it is 2 s, and 1\.25 s on average", msd, looks)
    refuses(mp.ParameterError, "interval is for arrays of positions", msd, looks, interval=1.0)
    refuses(mp.ParameterError, "equal distances", msd, looks[:1] * 3)
    moved = msd(x, interval=0.5)
    fit = analysis.diffusion_coefficient
    refuses(mp.ParameterError, "is not a MeanSquareDisplacement", fit, x)
    refuses(mp.ParameterError, r"1 of the times are from 1\.2 to inf s, and 2 are needed", fit, moved, 1.2)
    refuses(mp.ParameterError, "dimensions = 0 but must be a whole number >= 1", fit, moved, dimensions=0)


def test_directors_have_no_places(rng):
    topology = mp.Topology()
    filament = topology.add_filament([[0.0, 0, 0], [5.0, 0, 0], [10.0, 0, 0]], node_mass=1.0, directors="parallel",
                                     director_mass=1.0)  # fmt: skip
    x = rng.normal(size=(3, topology.n_beads, 3))
    with pytest.raises(mp.TopologyError, match="which have no places in space"):
        analysis.mean_square_displacement(x, filament.directors, interval=1.0)
    assert analysis.mean_square_displacement(x, filament, interval=1.0).pairs[0] == 6


def test_arcs_on_a_sphere_by_hand_and_the_law_of_diffusion(rng):
    """⟨cos θ⟩ = exp(-2Dt/R²): squares of arcs by hand, with beads that are not there and a middle that moves."""
    m, n, radius, step = 40, 300, 50.0, 0.15
    x = rng.normal(size=(n, 3))
    frames = []
    for _ in range(m):
        # A step of Brownian motion, along the surface.
        d = step * rng.normal(size=(n, 3))
        u = x / np.linalg.norm(x, axis=1)[:, None]
        d -= (d * u).sum(axis=1)[:, None] * u
        size = np.linalg.norm(d, axis=1)[:, None]
        x = np.cos(size) * u + np.sin(size) / size * d
        frames.append(x)
    middle = rng.normal(0.0, 100.0, (m, 3))
    radii = radius * rng.uniform(0.9, 1.1, (m, n))
    places = radii[..., None] * np.array(frames) + middle[:, None]
    places[3:9, 5] = np.nan
    lags = [1, 4, 39]
    moved = mp.analysis.mean_square_displacement(places, interval=0.1, lags=lags, sphere=middle)
    for k, lag in enumerate(lags):
        cosine = (np.array(frames)[: m - lag] * np.array(frames)[lag:]).sum(axis=2)
        between = 0.5 * (radii[: m - lag] + radii[lag:])
        arcs = (between * np.arccos(np.clip(cosine, -1.0, 1.0))) ** 2
        there = ~np.isnan(places[: m - lag, :, 0]) & ~np.isnan(places[lag:, :, 0])
        assert moved.value[k] == pytest.approx(arcs[there].mean(), rel=1e-9)
        assert moved.pairs[k] == there.sum()
    # Few beads are cut into blocks of origins.
    few = mp.analysis.mean_square_displacement(places, [0, 5], lags, interval=0.1, sphere=middle)
    cosine = (np.array(frames)[:-4, [0]] * np.array(frames)[4:, [0]]).sum(axis=2)
    assert few.pairs[1] == 36 + ((~np.isnan(places[:-4, 5, 0])) & ~np.isnan(places[4:, 5, 0])).sum()
    one = mp.analysis.mean_square_displacement(places, 0, 4, interval=0.1, sphere=middle)
    between = 0.5 * (radii[:-4, [0]] + radii[4:, [0]])
    assert one.value[0] == pytest.approx(((between * np.arccos(cosine)) ** 2).mean(), rel=1e-9)
    short = mp.analysis.mean_square_displacement(places, interval=0.1, lags=1, sphere=middle)
    assert short.value[0] == pytest.approx(2.0 * (radius * step) ** 2, rel=0.03)
    with pytest.raises(mp.ParameterError, match="along a sphere all axes count"):
        mp.analysis.mean_square_displacement(places, interval=0.1, axes="xy", sphere=middle)
    refuses(mp.ParameterError, "sphere", mp.analysis.mean_square_displacement, places, interval=0.1, sphere=middle[:3])
