"""Section 4.1 of Tao and Owhadi, the double pendulum: tables of what it says. `tests/validation/figures --seed 001`
has figures 1 and 2.

    python tests/validation/coarse/double_pendulum.py [--quick] [--only ...]

SHAKE, variational Euler, Newmark and Zhang-Skeel are run by the package; one-step Newmark and the implicit midpoint
rule, which it does not have, by coarse_reference.py beside this file, which also has the constrained motion itself, in
angles. Takes about a minute.
"""

import argparse
import functools
import sys
import time
import warnings
from pathlib import Path

import numpy as np

import medyanpy as mp

sys.path.insert(0, str(Path(__file__).parent))
import coarse_reference as reference
from pendula import (
    BETA,
    BOBS,
    OMEGA,
    Package,
    averaged_multipliers,
    constraint_errors,
    seconds_a_step,
    shake_multipliers,
)  # fmt: skip

LENGTHS = np.array([1.0, np.sqrt(2.0)])
PENDULA = reference.Pendula(LENGTHS)
STEP, END = 0.1, 50.0
# Variational Euler is explicit: this many steps for one of the others.
SUBSTEPS = 20
# Names, and seconds that the paper gives for the run of figure 1.
METHODS = {"SHAKE": 3.8, "variational Euler": 1.0, "Newmark": 5.3, "one-step Newmark": 0.2, "Zhang-Skeel": 0.4,
           "simplified": None}  # fmt: skip
START = BOBS.ravel(), np.zeros(4)


# Runs --------------------------------------------------------------------------------------------------------------


def path(method, steps, h=STEP, omega=OMEGA, beta=BETA):
    """(steps + 1, 4) bobs in the physical sense every h."""
    if method == "one-step Newmark":
        return reference.newmark(PENDULA.penalised(omega), *START, h, steps, beta, "linear")[0]
    every = SUBSTEPS if method == "variational Euler" else 1
    return Package(BOBS, method, h / every, omega, beta).path(steps, every)


@functools.cache
def exact(steps, h=STEP):
    """(steps + 1, 4) positions and velocities of the constrained motion."""
    return PENDULA.exact(START[0], h * np.arange(steps + 1))


def errors(method, steps, **options):
    """(steps + 1,) the larger of the errors of x2 and y2, as the paper shows."""
    return np.abs(path(method, steps, **options) - exact(steps, options.get("h", STEP))[0])[:, 2:].max(axis=1)


def exact_multipliers(times):
    """(k, 2) λ of the constrained motion."""
    q, v = PENDULA.exact(START[0], np.concatenate([[0.0], times]))
    return np.array([PENDULA.multipliers(*z) for z in zip(q[1:], v[1:], strict=True)])


def lost_at(method, omega, end, beta=BETA, h=STEP):
    """When the bobs are first more than 1 from the constrained motion, and why; None if they never are."""
    steps = round(end / h)
    potential = PENDULA.penalised(omega)
    try:
        with warnings.catch_warnings():
            # A run that is lost overflows.
            warnings.simplefilter("ignore", RuntimeWarning)
            if method == "one-step Newmark":
                q = reference.newmark(potential, *START, h, steps, beta, "linear")[0]
            elif method == "one-step Newmark, forces anew":
                q = reference.newmark(potential, *START, h, steps, beta, "one")[0]
            elif method == "Newmark":
                q = reference.newmark(potential, *START, h, steps, beta)[0]
            elif method == "implicit midpoint":
                q = reference.midpoint(potential, *START, h, steps)[0]
            else:
                q = path(method, steps, h, omega, beta)
    except reference.NoSolutionError:
        return "ends"
    except mp.SimulationError as error:
        return f"{h * error.step:.1f}, ends"
    off = np.nonzero(~(np.abs(q - exact(steps, h)[0]).max(axis=1) < 1.0))[0]
    return f"{h * off[0]:.1f}" if len(off) else "no"


# Numbers -----------------------------------------------------------------------------------------------------------


def print_errors(end):
    steps = round(end / STEP)
    spans = sorted({min(t, end) for t in (10.0, 25.0, 50.0)})
    print(f"\nlargest error of x2, y2 up to t = {', '.join(f'{t:g}' for t in spans)}; rms to the end:")
    for method in METHODS:
        off = errors(method, steps)
        largest = "".join(f"{off[: round(t / STEP) + 1].max():10.4f}" for t in spans)
        print(f"    {method:20s}{largest}   {np.sqrt(np.mean(off**2)):.4f}")
    # What the penalty itself does, apart from any timestep.
    fine = Package(BOBS, "explicit", STEP / 200, OMEGA).path(steps, 200)
    off = np.abs(fine - exact(steps)[0])[:, 2:].max(axis=1)
    largest = "".join(f"{off[: round(t / STEP) + 1].max():10.4f}" for t in spans)
    print(f"    {'penalty, h = 0.0005':20s}{largest}   {np.sqrt(np.mean(off**2)):.4f}")


def print_upright(end):
    """The potential as printed, -g y, in which these bobs stand: mirrored here, for gravity to point down."""
    up = BOBS * [1.0, -1.0]
    truth = PENDULA.exact(up.ravel(), STEP * np.arange(round(end / STEP) + 1))[0]
    print("\nthe same bobs as the potential -g y has them, upright: t at which x2 or y2 is first off by 0.1, by 1")
    for method in ("SHAKE", "variational Euler", "Newmark", "Zhang-Skeel"):
        every = SUBSTEPS if method == "variational Euler" else 1
        run = Package(up, method, STEP / every, OMEGA)
        found, ending = [], ""
        for k in range(1, len(truth)):
            try:
                run.context.step(every)
            except mp.SimulationError:
                ending = f", ends at {STEP * k:.1f}"
                break
            found.append(np.abs(run.look() - truth[k])[2:].max())
        times = [next((f"{STEP * (k + 1):.1f}" for k in np.flatnonzero(np.array(found) > bound)), "-")
                 for bound in (0.1, 1.0)]  # fmt: skip
        print(f"    {method:20s}{times[0]:>6s}{times[1]:>6s}{ending}")


def print_energies(end):
    """Of the physical places and velocities, by coarse_reference.py; the package's paths are the same."""
    end = 10.0 * end
    steps = round(end / STEP)
    potential, scale = PENDULA.penalised(OMEGA), BETA * STEP**2

    def verlet(kick):
        # x is at the bobs at first, which is what lasts (print_endurance).
        _, v, q = reference.verlet(kick(potential, scale), *START, STEP, steps)
        return q, v

    paths = {
        "Newmark": lambda: reference.newmark(potential, *START, STEP, steps, BETA),
        "one-step Newmark": lambda: reference.newmark(potential, *START, STEP, steps, BETA, "linear"),
        "Zhang-Skeel": lambda: verlet(reference.zhang_skeel),
        "simplified": lambda: verlet(reference.simplified),
    }
    looks = [end / 50.0, end / 10.0, end / 2.5, end]
    print(f"\nmean energy in a time of 5 before t = {', '.join(f'{t:g}' for t in looks)}; at rest, hanging, it is "
          f"{-PENDULA.gravity @ PENDULA.positions(np.zeros(2)):.3f}, at the start -3")  # fmt: skip
    for method, run in paths.items():
        q, v = run()
        kinetic = 0.5 * np.sum(v**2, axis=1)
        row = []
        for t in looks:
            k = round(t / STEP)
            window = slice(max(0, k - round(5.0 / STEP)), k + 1)
            row.append(np.mean(kinetic[window] + [potential.energy(place) for place in q[window]]))
        print(f"    {method:20s}" + "".join(f"{e:10.4f}" for e in row))


def print_constraints(end):
    omegas = np.array([10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0])
    window = min(5.0, end)
    print(f"\nZhang-Skeel, h = 0.01: ω²|g(T)| at T = {end:g}, and ω² times the largest |g| in {window:g} before it")
    print("    omega      in q                in x")
    rows = []
    for omega in omegas:
        try:
            last, largest = constraint_errors(omega, end, window=window)
        except mp.SimulationError as error:
            print(f"    {omega:5g}   lost at t = {0.01 * error.step:g}")
            continue
        rows.append(largest)
        print(f"    {omega:5g}" + "".join(f"{omega**2 * v:10.3f}" for k in (0, 1) for v in (last[k], largest[k])))
    power = [np.polyfit(np.log(omegas[: len(rows)]), np.log(column), 1)[0] for column in np.transpose(rows)]
    print(f"    power of ω in the largest |g|: {power[0]:.3f} in q, {power[1]:.3f} in x")


def print_multipliers(end):
    print("\nmultipliers by (8), window 0.2, against the constrained motion: rms of the difference over rms of λ")

    def off(found, truth):
        return np.sqrt(np.mean((found - truth) ** 2, axis=0) / np.mean(truth**2, axis=0))

    for omega, h in ((20.0, 0.01), (50.0, 0.01), (100.0, 0.01), (100.0, 0.002), (200.0, 0.002)):
        when, mean, each = averaged_multipliers(end, omega, h)
        truth = exact_multipliers(when)
        rows = off(mean, truth), off(each, truth)
        print(f"    ω = {omega:<4g} h = {h:<6g} averaged {rows[0][0]:.3f} {rows[0][1]:.3f}   "
              f"ω²g itself {rows[1][0]:.3f} {rows[1][1]:.3f}")  # fmt: skip
    when, shaken = shake_multipliers(end)
    kept = off(shaken, exact_multipliers(when))
    path = Package(BOBS, "SHAKE", 0.01).path(len(when))
    steps = off(PENDULA.multipliers_of_steps(path, 0.01), shaken[:-1])
    print(f"    SHAKE, h = 0.01, in its state {kept[0]:.5f} {kept[1]:.5f}   those of its steps against these "
          f"{steps[0]:.5f} {steps[1]:.5f}")  # fmt: skip


def print_stiff(end, quick):
    omegas = (20.0, 2000.0) if quick else (20.0, 35.0, 50.0, 100.0, 200.0, 300.0, 500.0, 1000.0, 2000.0, 5000.0)
    cases = [
        ("Zhang-Skeel", 0.4), ("simplified", 0.4), ("Newmark", 0.4), ("Newmark", 0.25),
        ("one-step Newmark", 0.4), ("one-step Newmark, forces anew", 0.4), ("implicit midpoint", 0.25),
    ]  # fmt: skip
    print(f"\nh = 0.1: time at which a bob is first more than 1 off, or what ended the run, to {end:g}")
    print(f"{'':38s}ω" + "".join(f"{omega:>12g}" for omega in omegas))
    for method, beta in cases:
        label = method if method == "implicit midpoint" else f"{method}, β = {beta:g}"
        print(f"    {label:35s}" + "".join(f"{lost_at(method, omega, end, beta):>12s}" for omega in omegas), flush=True)


def print_endurance(end, quick):
    end = end if quick else 10_000.0
    print(f"\nω = 20: until when Zhang-Skeel goes on, to {end:g}")
    for h in (0.1, 0.09, 0.08, 0.07, 0.06, 0.05):
        row = []
        for at in ("places", "coordinates"):
            try:
                Package(BOBS, "Zhang-Skeel", h, OMEGA, at=at).context.step(round(end / h))
                row.append("to the end")
            except mp.SimulationError as error:
                row.append(f"to {h * error.step:.4g}")
        print(f"    h = {h:<5g} q at the bobs at first: {row[0]:12s} x there: {row[1]}")


def print_times(end, quick):
    steps, rounds = round(end / STEP), 1 if quick else 10
    print(f"\ntime of a run to {end:g}: paper s, over Zhang-Skeel; this package ms, over Z-S; NumPy ms, over Z-S")
    potential, scale = PENDULA.penalised(OMEGA), BETA * STEP**2
    programs = {
        "SHAKE": lambda: reference.shake(PENDULA, *START, STEP, steps),
        "variational Euler": lambda: reference.variational_euler(potential, *START, STEP / SUBSTEPS, steps * SUBSTEPS),
        "Newmark": lambda: reference.newmark(potential, *START, STEP, steps, BETA),
        "one-step Newmark": lambda: reference.newmark(potential, *START, STEP, steps, BETA, "linear"),
        "Zhang-Skeel": lambda: reference.verlet(reference.zhang_skeel(potential, scale), *START, STEP, steps),
        "simplified": lambda: reference.verlet(reference.simplified(potential, scale), *START, STEP, steps),
    }  # fmt: skip
    cases = {}
    for method in programs.keys() - {"one-step Newmark"}:
        every = SUBSTEPS if method == "variational Euler" else 1
        cases[method] = Package(BOBS, method, STEP / every, OMEGA), every * steps
    ours = {method: cost * cases[method][1] for method, cost in seconds_a_step(cases, rounds).items()}
    plain = dict.fromkeys(programs, np.inf)
    for _ in range(3):
        for method, run in programs.items():
            started = time.process_time()
            run()
            plain[method] = min(plain[method], time.process_time() - started)
    for method, paper in METHODS.items():
        row = ""
        for value, base, unit in (
            (paper, METHODS["Zhang-Skeel"], 1.0),
            (ours.get(method), ours["Zhang-Skeel"], 1e3),
            (plain[method], plain["Zhang-Skeel"], 1e3),
        ):
            row += f"{'-':>10s}{'-':>8s}" if value is None else f"{unit * value:10.3g}{value / base:8.2f}"
        print(f"    {method:20s}{row}")
    started = time.process_time()
    exact.__wrapped__(steps)
    print(f"    in angles, by Runge-Kutta of order 8 to 1e-13, NumPy: {1e3 * (time.process_time() - started):.0f} ms")


TABLES = {
    "errors": lambda end, _: print_errors(end),
    "upright": lambda end, _: print_upright(end),
    "energies": lambda end, _: print_energies(end),
    "constraints": lambda end, _: print_constraints(end),
    "multipliers": lambda end, _: print_multipliers(end),
    "stiff": print_stiff,
    "endurance": print_endurance,
    "times": print_times,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--quick", action="store_true", help="everything to t = 5: does it run?")
    parser.add_argument("--only", nargs="*", choices=[*TABLES], help="a part of it")
    options = parser.parse_args()

    end = 5.0 if options.quick else END
    print(f"# medyanpy {mp.__version__}")
    for name, show in TABLES.items():
        if options.only is None or name in options.only:
            show(end, options.quick)


if __name__ == "__main__":
    main()
