"""Numbers of Tao and Owhadi on clusters of TIP3P water, and a table of times. `medyanpy figures --seed 001` has their
figures 4 to 7.

    python tests/validation/coarse/water.py [--quick] [--only ...]

Molecules are rigid by constraints (SHAKE and RATTLE: rings of three nodes) or nearly
so by penalties with stiff Zhang-Skeel kicks. A full run takes some minutes.
"""

import argparse
import time
import warnings

import numpy as np

import medyanpy as mp
from medyanpy.figures.coarse.water import (
    CHARGE_CONSTANT,
    ENERGY,
    KT,
    OMEGA,
    SIDES,
    TIME,
    Conserved,
    H,
    NewmarkPartly,
    Penalised,
    Shake,
    SmallSteps,
    ZhangSkeel,
    ZhangSkeelStiff,
    exact_multipliers,
    rest,
    sampled,
    sides,
    start,
    unlike,
    velocities,
)  # fmt: skip

PAPER_SECONDS = {("SHAKE", 7): 13472, ("Z&S, stiff", 7): 1549, ("SHAKE", 100): 42234, ("Z&S, stiff", 100): 30059}


def speed(kind, x, steps, **options):
    """Seconds per step, without looks; the best of three."""
    v = velocities(x, 5)
    run = kind(x, v, kT=KT, **options)
    run.step(steps // 10)
    best = np.inf
    for _ in range(3):
        began = time.perf_counter()
        run.step(steps)
        best = min(best, (time.perf_counter() - began) / steps)
    return best


# Figures -----------------------------------------------------------------------------------------------------------


def distances(n, t_end):
    """Figures 4 and 7: distances between oxygens, by both methods."""
    x = start(n)
    v = velocities(x, 3)
    bins = np.linspace(2.0, 7.0, 126) if n < 20 else np.linspace(2.0, 20.0, 181)
    middle = 0.5 * (bins[1:] + bins[:-1])
    found = {}
    for kind in (Shake, ZhangSkeelStiff, SmallSteps):
        run = kind(rest(x, kind.penalty), v, kT=KT, seed=2)
        parts, kinetic, seconds = sampled(run, t_end, bins)
        found[kind.name] = parts.mean(axis=0)
        halves = unlike(parts[:5].mean(axis=0), parts[5:].mean(axis=0), bins)
        paper = PAPER_SECONDS.get((kind.name, n), "-")
        degrees = run.context.layout.topology.handles[0].degrees_of_freedom
        of = 10000 if n == 7 else 1000
        print(
            f"N = {n}, T = {t_end:g}: {kind.name:11s} {seconds:7.1f} s (paper {paper} s of T = {of}), halves"
            f" of the run differ by {halves:.3f}; kT {2.0 * kinetic / degrees:.5f} of {degrees} velocities"
        )
        peaks = [k for k in range(1, len(middle) - 1) if found[kind.name][k] == found[kind.name][k - 1 : k + 2].max()]
        peaks = sorted(sorted(peaks, key=lambda k: -found[kind.name][k])[:5])
        print("  peaks at", ", ".join(f"{middle[k]:.2f}" for k in peaks if found[kind.name][k] > 0.02))
    a, b, c = found.values()
    means = [float(f @ middle * np.diff(bins)[0]) for f in (a, b, c)]
    print(f"  Z&S differs from SHAKE by {unlike(a, b, bins):.3f}, from the same penalties at small steps by "
          f"{unlike(b, c, bins):.3f}; these from SHAKE by {unlike(a, c, bins):.3f}; means {np.round(means, 4)}")


def multipliers(t_end=3.0, omega=500.0):
    """Figure 5: multipliers of the three sides of the first molecule, from penalties and exactly."""
    x = start(7)
    v = velocities(x, 3, KT)
    rigid, stiff, force = Shake(x, v), ZhangSkeelStiff(x, v, omega=omega), Penalised(x, None)
    n, window = round(t_end / H), round(0.2 / H)
    exact, raw = np.empty((n + 1, 3)), np.empty((n + 1, 3))
    apart = np.empty(n + 1)
    for k in range(n + 1):
        if k:
            rigid.step(1)
            stiff.step(1)
        q, p = stiff.physical(), rigid.physical()
        exact[k] = exact_multipliers(p, rigid.velocities(), force.force(p))[0]
        raw[k] = -(omega**2) * (np.sum(sides(q)[0] ** 2, axis=1) - SIDES**2)
        apart[k] = np.abs(q - p).max()
    kernel = np.ones(window) / window
    mean = np.stack([np.convolve(raw[:, k], kernel, "valid") for k in range(3)], axis=1)
    # Means over an even number of steps lie between two of them.
    t, t_mean = H * np.arange(n + 1), H * (np.arange(len(mean)) + 0.5 * (window - 1))
    between = np.stack([np.interp(t_mean, t, exact[:, k]) for k in range(3)], axis=1)
    print(f"multipliers, ω = {omega:g}, T = {t_end:g}: exact ones vary by {exact.std(axis=0)}, ")
    print(f"  raw ones differ from them by {(raw - exact).std(axis=0)} (rms), means by {(mean - between).std(axis=0)}, "
          f"mean of the difference {(mean - between).mean(axis=0)}; atoms apart {apart.max():.2e}")


def conservation(t_end):
    """Figure 6: energy, momentum and angular momentum without noise."""
    start_x = start(7)
    v = velocities(start_x, 3)
    for kind in (Shake, ZhangSkeelStiff, ZhangSkeel, NewmarkPartly):
        x = rest(start_x, kind.penalty)
        run, law = kind(x, v), Penalised(x, kind.penalty)
        kept = Conserved.of(run, law, x, t_end)
        energy, momentum, angular = kept.changes()
        slope = np.polyfit(kept.t, kept.energy, 1)[0]
        print(
            f"{kind.name:26s} to T = {kept.t[-1]:g}: energy {kept.energy[0]:.4f}, changes by {energy:.2e} at most, "
            f"{slope:.1e} per unit of time; momentum by {momentum:.1e}, angular momentum by {angular:.1e} "
            f"of {np.linalg.norm(kept.angular[0]):.3f}"
        )


def betas(t_end):
    """What noise and time leave of a cluster of 100 with stiff Z&S: the temperature of the last half, or the end."""
    x = start(100)
    v, y = velocities(x, 3), rest(x, OMEGA)
    cases = [(beta, False) for beta in (0.25, 0.275, 0.3, 0.35, 0.4)] + [(beta, True) for beta in (0.25, 0.3, 0.4)]
    for beta, positive in cases:
        for seed in (2, 3):
            with warnings.catch_warnings():
                # How much it heats is what is looked at.
                warnings.filterwarnings("ignore", ".* is not the gradient of a potential and heats", mp.TimestepWarning)
                run = ZhangSkeelStiff(y, v, kT=KT, seed=seed, beta=beta, positive=positive)
            # And when it is lost, which the bound below says.
            run.context.runaway = None
            name, n, kinetic = f"N = 100, β = {beta:g}, seed {seed}", round(t_end / H / 100), []
            name += ", positive" * positive
            for k in range(n):
                run.step(100)
                kinetic.append(run.kinetic_energy() * 2.0 / v.size)
                if kinetic[-1] > 5.0 * KT:
                    print(f"{name}: lost at T = {100 * (k + 1) * H:g}")
                    break
            else:
                print(f"{name}: kT of the last half {np.mean(kinetic[n // 2 :]):.5f}")


def speeds(quick):
    """Time per unit of simulated time, beside the paper's."""
    print("seconds for the paper's runs, noise included, without looks; one thread")
    for n, t_end in ((7, 10000), (100, 1000)):
        x = start(n, steps=800)
        for kind in (Shake, ZhangSkeelStiff):
            each = speed(kind, x, 200 if quick else 20_000 * 7 // n)
            total, paper = each * t_end / H, PAPER_SECONDS[kind.name, n]
            print(f"N = {n:3d} {kind.name:11s} {1e6 * each:7.1f} µs a step, {total:7.2f} s; paper {paper} s, "
                  f"{paper / total:.0f} times")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="short runs: whether all works, not what comes out")
    parser.add_argument("--only", nargs="*", default=["speeds", "4", "5", "6", "7", "betas"], help="figures")
    options = parser.parse_args()
    kelvin = KT * ENERGY / mp.units.boltzmann
    print(f"unit of time {TIME * 1e15:.3f} fs; kT is {kelvin:.2f} K; e²/4πε₀ = {CHARGE_CONSTANT:.3f}")
    part = 0.01 if options.quick else 1.0
    figures = {
        "4": lambda: distances(7, 10_000.0 * part),
        "5": lambda: multipliers(),
        "6": lambda: conservation(1000.0 * part),
        "7": lambda: distances(100, 1000.0 * part),
        "betas": lambda: betas(1000.0 * part),
        "speeds": lambda: speeds(options.quick),
    }
    for name in options.only:
        figures[name]()


if __name__ == "__main__":
    main()
