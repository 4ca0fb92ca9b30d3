"""Section 4.2 of Tao and Owhadi, a chain of pendula: errors, longer chains, and what a step costs.
`tests/validation/figures --seed 001` has figure 3.

    python tests/validation/coarse/chain_of_pendula.py [--quick] [--out DIR] [--only ...]

SHAKE and linearly implicit kicks by the package; the constrained motion itself, in angles, and the same methods with
dense matrices by coarse_reference.py beside this file. Takes two minutes.
"""

import argparse
import sys
import time
from pathlib import Path

import numpy as np

import medyanpy as mp

sys.path.insert(0, str(Path(__file__).parent))
import coarse_reference as reference
from pendula import BETA, OMEGA, Package, figure, seconds_a_step
from pendula import chain as bobs

STEP, END = 0.05, 100.0
LINK = np.sqrt(5.0)
# Seconds that the paper gives for the run of figure 3, of a length it does not tell.
PAPER = {("SHAKE", 0.025): 16.5, ("SHAKE", 0.05): 8.1, ("Zhang-Skeel", 0.05): 1.1}


def swings(n, method, h, omega, looks, apart=1.0):
    """(k, 2n) places every so much time, as far as the run goes: k - 1 <= looks."""
    run = Package(bobs(n), method, h, omega)
    rows = [run.look()]
    try:
        for _ in range(looks):
            run.context.step(round(apart / h))
            rows.append(run.look())
    except mp.SimulationError as error:
        print(f"# n = {n}, {method}, h = {h:g}, ω = {omega:g}: lost at t = {h * error.step:.4g}")
    return np.array(rows)


def truth(n, looks, apart=1.0):
    """(looks + 1, 2n): in angles up to 10 pendula; SHAKE with short steps beyond, where the work in angles is n³."""
    if n <= 10:
        pendula = reference.Pendula(np.full(n, LINK))
        return pendula.exact(bobs(n).ravel(), apart * np.arange(looks + 1))[0]
    return swings(n, "SHAKE", 1.0 / 160.0, OMEGA, looks, apart)


def longest_step(n):
    """Of SHAKE: waves across links under the tension n cos α at the top have the frequency 2 sqrt(n cos α/ℓ) at most,
    which the timestep must resolve, h < 2/frequency, though links keep their lengths."""
    return np.sqrt(LINK / (n * 2.0 / LINK))


# Figures -----------------------------------------------------------------------------------------------------------


def figure_costs(plt, costs):
    fig, (axis,) = figure(plt, (1, 1), (4.5, 3.2))
    for method, column in costs.items():
        n = np.array(list(column))
        axis.loglog(n, 1e6 * np.array(list(column.values())), "o-", markersize=3, linewidth=0.8, label=method)
    axis.set(xlabel="pendula", ylabel="µs a step")
    axis.legend(frameon=False, fontsize=7)
    return fig


# Numbers -----------------------------------------------------------------------------------------------------------


def print_agreement(quick):
    cases = {
        10: (END, [("SHAKE", 0.05, 0), ("SHAKE", 0.025, 0), ("Zhang-Skeel", 0.05, 20), ("simplified", 0.05, 20),
                   ("Newmark", 0.05, 20), ("Zhang-Skeel", 0.01, 50), ("Zhang-Skeel", 0.01, 100)]),
        100: (200.0, [("SHAKE", 0.05, 0), ("SHAKE", 0.025, 0), ("Zhang-Skeel", 0.05, 20), ("simplified", 0.05, 20),
                      ("Newmark", 0.05, 20), ("Zhang-Skeel", 0.05, 50), ("Zhang-Skeel", 0.025, 100),
                      ("Newmark", 0.05, 400)]),
        1000: (100.0, [("SHAKE", 0.05, 0), ("SHAKE", 0.04, 0), ("SHAKE", 0.025, 0), ("Zhang-Skeel", 0.05, 20),
                       ("Zhang-Skeel", 0.025, 20), ("simplified", 0.05, 20), ("simplified", 0.025, 20),
                       ("Newmark", 0.05, 20), ("Zhang-Skeel", 0.0125, 100), ("Newmark", 0.05, 400)]),
    }  # fmt: skip
    for n, (end, runs) in cases.items():
        looks = round(5.0 if quick else end)
        exact = truth(n, looks)
        print(f"\nn = {n}: largest error of a bob to t = {looks / 4:g}, {looks / 2:g}, {looks:g}; "
              f"first whole t at which it is over ℓ/10, over ℓ; links, over ℓ")  # fmt: skip
        for method, h, omega in runs:
            q = swings(n, method, h, omega, looks)
            off = np.abs(q - exact[: len(q)]).max(axis=1)
            parts = [off[: looks // k + 1].max() if len(q) > looks // k else np.nan for k in (4, 2, 1)]
            over = [next((f"{t:g}" for t in np.flatnonzero(off > bound)), "-") for bound in (LINK / 10, LINK)]
            places = np.concatenate([np.zeros((len(q), 1, 2)), q.reshape(len(q), n, 2)], axis=1)
            links = np.linalg.norm(np.diff(places, axis=1), axis=2) / LINK
            name = method if method == "SHAKE" else f"{method}, ω = {omega:g}"
            print(f"    {name:24s} h = {h:<7g}" + "".join(f"{v:11.3g}" for v in parts) + f"{over[0]:>7s}{over[1]:>7s}"
                  f"   {links.min():.4f} to {links.max():.4f}")  # fmt: skip


def step_costs(quick):
    """{method: {n: seconds}} from the start, where all hang straight."""
    sizes = (10, 30, 100) if quick else (10, 30, 100, 300, 1000, 3000, 10_000)
    cases = {}
    for method in ("explicit", "simplified", "Zhang-Skeel", "Newmark", "SHAKE"):
        for n in sizes:
            # Short enough for waves across the links; the explicit one for those along them.
            h = 0.005 if method == "explicit" else min(STEP, 0.6 * longest_step(n))
            cases[method, n] = Package(bobs(n), method, h, OMEGA), max(10, min(1000, 100_000 // n))
    found = seconds_a_step(cases, 1 if quick else 8)
    return {method: {n: found[method, n] for n in sizes} for method, _ in cases}


def print_costs(costs):
    print("\nµs a step, and ns a step and node:")
    sizes = list(next(iter(costs.values())))
    print(f"{'':20s}" + "".join(f"{f'n = {n}':>18s}" for n in sizes) + "   power of n from 100 on   µs = a + b n")
    for method, column in costs.items():
        seconds = np.array([column[n] for n in sizes])
        large = np.array(sizes) >= 100
        power = np.polyfit(np.log(np.array(sizes)[large]), np.log(seconds[large]), 1)[0] if large.sum() > 1 else np.nan
        # Relative errors are what counts over three decades.
        design = np.column_stack([np.ones(len(sizes)), sizes]) / seconds[:, None]
        a, b = np.linalg.lstsq(design, np.ones(len(sizes)), rcond=None)[0]
        row = "".join(f"{1e6 * s:11.4g}{1e9 * s / n:7.0f}" for s, n in zip(seconds, sizes, strict=True))
        print(f"    {method:16s}{row}      {power:.3f}      {1e6 * a:.3g} + {1e6 * b:.3g} n")


def print_times(quick):
    print("\nms for a time of 100, and over Zhang-Skeel; of the paper, its seconds")
    runs = [("SHAKE", 0.025), ("SHAKE", 0.05), ("Newmark", 0.05), ("Zhang-Skeel", 0.05), ("simplified", 0.05),
            ("explicit", 0.005)]  # fmt: skip
    cases = {(n, *run): (Package(bobs(n), *run, OMEGA), round(100.0 / run[1])) for n in (10, 100) for run in runs}
    ours = {key: cost * cases[key][1] for key, cost in seconds_a_step(cases, 1 if quick else 8).items()}
    pendula, start = reference.Pendula(np.full(10, LINK)), (bobs(10).ravel(), np.zeros(20))
    kick = reference.zhang_skeel(pendula.penalised(OMEGA), BETA * STEP**2)
    dense = dict.fromkeys(PAPER, np.inf)
    for _ in range(3):
        for method, h in dense:
            steps = round(10.0 / h)
            started = time.process_time()
            if method == "SHAKE":
                reference.shake(pendula, *start, h, steps)
            else:
                reference.verlet(kick, *start, h, steps)
            dense[method, h] = min(dense[method, h], 10.0 * (time.process_time() - started))
    base = "Zhang-Skeel", 0.05
    for (n, *run), cost in ours.items():
        run = tuple(run)
        line = f"    n = {n:<4d} {run[0]:12s} h = {run[1]:<6g} package {1e3 * cost:9.4g} {cost / ours[n, *base]:7.2f}"
        if n == 10 and run in PAPER:
            line += f"   NumPy, dense {1e3 * dense[run]:9.4g} {dense[run] / dense[base]:7.2f}"
            line += f"   paper {PAPER[run]:5.1f} {PAPER[run] / PAPER[base]:7.2f}"
        print(line)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--quick", action="store_true", help="everything to t = 5, and short chains: does it run?")
    parser.add_argument("--out", type=Path, default=Path("."), help="where figures go")
    parser.add_argument("--only", nargs="*", choices=["agreement", "costs", "times"], help="a part of it")
    options = parser.parse_args()
    wanted = options.only or ["agreement", "costs", "times"]

    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    def keep(name, fig):
        options.out.mkdir(parents=True, exist_ok=True)
        fig.savefig(options.out / f"{name}.png", dpi=80)
        plt.close(fig)

    print(f"# medyanpy {mp.__version__}")
    if "agreement" in wanted:
        print_agreement(options.quick)
    if "costs" in wanted:
        costs = step_costs(options.quick)
        print_costs(costs)
        keep("coarse_pendula_4", figure_costs(plt, costs))
    if "times" in wanted:
        print_times(options.quick)


if __name__ == "__main__":
    main()
