"""Numbers of reactions in membranes that others have published or that are known exactly: minutes to hours.

The scenes are those of the figures, tests/validation/figures/reactions.py. False alarms: 1e-6 for each check; `sees` is
an effect found with probability 0.999.
"""

import sys
from pathlib import Path

import numpy as np
import pytest

import medyanpy as mp
from medyanpy.testing import check_mean

sys.path.insert(0, str(Path(__file__).parents[1] / "validation"))
from figures import reaction_laws as laws
from figures import reactions as scenes
from figures.reactions import RATE, REACH, UM2

pytestmark = pytest.mark.long


@pytest.mark.parametrize("shape", ["sheet", "sphere", "fluid"])
def test_a_thousand_and_a_thousand_leave_30_884(shape):
    """1000 A, 1000 B, 1 µm², K_D = 1 /µm²: ⟨A⟩ = 30.884 of whole numbers, 31.127 by mass action."""
    mean, spread = laws.mean_of_free(1000, 1.0)
    assert (mean, spread) == (pytest.approx(30.884, abs=5e-4), pytest.approx(3.914, abs=5e-4))
    membrane, points, simulation = scenes.a_thousand(shape)
    fluid = shape == "fluid"
    simulation.step(1000)
    free, areas = [], []
    for _ in range(30_000):
        simulation.step(4)
        state = simulation.context.get_state(positions=True)
        free.append(points.counts(state)["A"])
        if fluid:
            areas.append(mp.TriangleMesh(state.positions[membrane.beads], state.faces[membrane.name]).area)
    free = np.array(free, float)
    if fluid:
        # ⟨ab/area⟩ = K_D ⟨c⟩ whatever the area does; here it hardly moves.
        assert np.std(areas) < 2e-3 * UM2
        assert np.mean(areas) == pytest.approx(UM2, rel=2e-3)
        check_mean("⟨ab/area⟩ − K_D ⟨c⟩", free**2 / areas - (1000.0 - free) / UM2, 0.0, time_series=True,
                   sees=16.0 / UM2)  # fmt: skip
        mean = laws.mean_of_free(1000, np.mean(areas) / UM2)[0]
    print(f"free A on a {shape}: {mp.analysis.average(free)}, exactly {mean:.3f}")
    check_mean(f"free A on a {shape}", free, mean, time_series=True, sees=0.24)
    check_mean("their variance", (free - mean) ** 2, spread**2, time_series=True, sees=1.5)


def test_one_pair_on_a_sphere_of_50_nm_meets_after_13_400_ms():
    """D_A + D_B = 2 µm²/s, R = 5 nm, λ = 61 097 /s, from uniform places: 13.400 ms by finite volumes. Points forget
    their velocities in each step, so that the inertial length √(Dh/2) of the relative motion is R/16."""
    h = 1e-7
    mesh, kind = scenes.sphere(4.0 * np.pi * 50.0**2, 16), scenes.numbers_that_move(h, 1e6, 8.0)
    assert laws.time_on_a_sphere(50.0, RATE, REACH, 2e6) == pytest.approx(13.4e-3, abs=5e-7)
    mean, error = scenes.mean_time(mesh, kind, h, RATE, REACH, 13.4e-3, 20_000_000)
    print(f"mean time {1e3 * mean:.3f} ± {1e3 * error:.3f} ms")
    assert error < 0.006 * mean
    assert abs(mean - 13.4e-3) < max(0.01 * 13.4e-3, 5.0 * error)


@pytest.mark.parametrize(("length", "fall"), scenes.SLOWER.items())
def test_inertia_makes_reactions_slower(length, fall):
    """λR²/D = 4 in a disc of b = 4R: k falls with the inertial length √(m kT)/γ over R. Values by an independent
    program, known to 1.4 %."""
    found, error = scenes.slower(length, steps=3_000_000)
    print(f"inertial length/R = {length}: slower by {found:.2f} ± {error:.2f} %")
    assert error < 0.6
    assert abs(found - fall) < 4.0


def test_a_thousand_and_a_thousand_decay_as_points_without_momenta_do():
    """A + B -> C, 1 µm², D = 1 µm²/s each, R = 5 nm, λ = 61 097 /s: A at 0.1, 0.325 and 1 ms within 2 % of plain
    overdamped runs. Read as 1000/(1 + 1000 k t) its k falls, from λπR² = 4.8 to 2.4 to 2.6 µm²/s."""
    h, runs = 1e-7, 24
    at = np.array([1000, 3250, 10_000])
    plain = scenes.overdamped(1000, 1000.0, 2e-7, 40, 125, runs, 100)[:, at // 250]
    found = np.array([scenes.decayed(1000, at, seed, h) for seed in range(runs)], float)
    for k, step in enumerate(at):
        both = np.hypot(*(x[:, k].std(ddof=1) / np.sqrt(runs) for x in (found, plain)))
        mean = plain[:, k].mean()
        # Five of its errors, all of which must be less than the claim.
        assert 5.0 * both < 0.03 * mean
        assert abs(found[:, k].mean() - mean) < 5.0 * both, f"{found[:, k].mean()} for {mean} at {step * h}"
        k_read = laws.rate_read(1e-3 * found[:, k].mean(), step * h)
        said = f"{found[:, k].mean():.1f}, without momenta {mean:.1f} ± {both:.1f}; k {k_read:.3f}"
        print(f"A({1e3 * step * h:g} ms) {said}")
        low, high = [(2.8, 3.5), (2.6, 2.9), (2.3, 2.65)][k]
        assert low < k_read < high


def test_a_membrane_gathers_what_binds_to_it():
    """665 A and 665 B in 0.47 × 0.47 × 5 µm, 3755 lipids M; A and B bind M with 0.5 µM and each other with 20 µM,
    between two members of the membrane with K_3D 2σ, σ = 1 nm. By mass action M 2440.5, MA and MB 56.5, MABM 600.7; of
    whole numbers 2440.42, 56.34 and 600.92, since 7.7 A are free."""
    means, _, _ = laws.gathered(laws.PROTEINS, laws.LIPIDS, laws.SIDE**2, laws.SIDE**2 * laws.DEEP)
    assert means == pytest.approx([2440.423, 56.338, 600.918], abs=1e-3)
    seen = scenes.numbers_of(*scenes.lipids_and_proteins(1.0, laws.PROTEINS, laws.LIPIDS), 5000, 4000)
    m, ma, mabm = means
    wanted = {"M": (m, 4.0), "MA": (ma, 1.5), "MB": (ma, 1.5), "MABM": (mabm, 2.5)}
    print({name: mp.analysis.average(seen[name]) for name in wanted})
    for name, (mean, sees) in wanted.items():
        check_mean(name, seen[name], mean, time_series=True, sees=sees)
