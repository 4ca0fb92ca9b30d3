"""M. Tao, H. Owhadi, Variational and linearly-implicit integrators, with applications (2016): figures 1 to 10.

The folder `coarse` beside this one has what they run, and the methods that the package does not have. The paper tells
of regular and chaotic regions without a figure. Figure 11 is a drawing without data.
"""

import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from coarse import dna, pendula, poincare, water
from coarse import magnetised_body as magnet

from medyanpy import kicks
from medyanpy.demo.report import bound_line, near_line
from medyanpy.errors import TimestepWarning

from .plates import PUBLISHED, Made, Plate, Row, Work, above_line, letters, order_line, panels

COMPILED = "the paper's programs are MATLAB, where an iteration costs more beside a linear solve than in compiled code"


# Figure 1 ---------------------------------------------------------------------------------------------------

STEP, SUBSTEPS = 0.1, 20
# Seconds that the paper gives for the runs of figure 1, over that of Zhang and Skeel's method.
SECONDS = {"SHAKE": 3.8, "variational Euler": 1.0, "Newmark": 5.3, "Zhang-Skeel": 0.4}


def double_pendulum(work: Work) -> Made:
    """Errors of x2 and y2 by each method."""
    end = work.of(25.0, 50.0)
    steps = round(end / STEP)
    times = STEP * np.arange(steps + 1)
    truth = pendula.Package(pendula.BOBS, "SHAKE", 1e-3).path(steps, 100)
    finer = pendula.Package(pendula.BOBS, "SHAKE", 2e-3).path(steps, 50)
    paths = {"SHAKE": pendula.Package(pendula.BOBS, "SHAKE", STEP).path(steps)}
    paths["variational Euler"] = pendula.Package(pendula.BOBS, "variational Euler", STEP / SUBSTEPS,
                                                 pendula.OMEGA).path(steps, SUBSTEPS)  # fmt: skip
    paths["Newmark"] = pendula.Package(pendula.BOBS, "Newmark", STEP, pendula.OMEGA).path(steps)
    for method in ("one-step Newmark", "Zhang-Skeel"):
        paths[method] = pendula.Package(pendula.BOBS, method, STEP, pendula.OMEGA).path(steps)
    figure, axes = panels(len(paths) + 1, 1, (7.0, 1.35 * (len(paths) + 1)), sharex=True)
    for c, name in ((2, "$x_2$"), (3, "$y_2$")):
        axes[0].plot(times, truth[:, c], linewidth=0.8, label=name)
    axes[0].set(ylabel="place", ylim=(-3.0, 4.2))
    axes[0].legend(ncols=2, loc="upper right")
    largest = {}
    for axis, (method, path) in zip(axes[1:], paths.items(), strict=True):
        off = path - truth
        axis.plot(times, off[:, 2:], linewidth=0.8)
        axis.set_ylabel("error")
        largest[method] = float(np.abs(off[:, 2:]).max())
    axes[-1].set_xlabel("$t$")
    steps_of = {"variational Euler": STEP / SUBSTEPS}
    letters(axes, ["constrained motion", *(f"{m}, $h$ = {steps_of.get(m, STEP):g}" for m in paths)])
    rows = [
        Row(bound_line("benchmark: SHAKE with h = 0.001 against 0.002", float(np.abs(finer - truth).max()), 1e-4),
            "benchmark: small steps (there variational Euler, in angles)"),
        Row(near_line("largest error: Zhang-Skeel over Newmark", largest["Zhang-Skeel"] / largest["Newmark"], 1.0, 0.1),
            "almost identical"),
        Row(above_line("largest error: Zhang-Skeel over SHAKE", largest["Zhang-Skeel"] / largest["SHAKE"], 1.0),
            "larger: there is the error of finite ω besides"),
        Row(above_line("largest error: Zhang-Skeel over variational Euler",
                       largest["Zhang-Skeel"] / largest["variational Euler"], 1.0),
            "row 3 is the error of ω = 20 itself"),
        Row(above_line("largest error: one-step Newmark over Zhang-Skeel",
                       largest["one-step Newmark"] / largest["Zhang-Skeel"], 3.0), "a large error"),
    ]  # fmt: skip
    costs = {}
    for method, every in (("SHAKE", 1), ("variational Euler", SUBSTEPS), ("Newmark", 1), ("Zhang-Skeel", 1)):
        run = pendula.Package(pendula.BOBS, method, STEP / every, pendula.OMEGA)
        costs[method] = every * run.seconds_a_step(500 * every, work.of(0.02, 0.2))
    for method in ("SHAKE", "variational Euler", "Newmark"):
        known = SECONDS[method] / SECONDS["Zhang-Skeel"]
        line = order_line(f"time: {method} over Zhang-Skeel", costs[method] / costs["Zhang-Skeel"], known, 2.0)
        rows.append(Row(line, f"{SECONDS[method]} s and 0.4 s").but(COMPILED))
    return Made(figure, rows, f"ω = {pendula.OMEGA:g}, β = {pendula.BETA:g}, to t = {end:g} (paper: 50)")


# Figure 2 ---------------------------------------------------------------------------------------------------


def multipliers(work: Work) -> Made:
    """How constraints hold as the penalty gets stiffer, and its multipliers."""
    end, window = work.of(10.0, 50.0), work.of(3.0, 5.0)
    omegas = np.array([5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0])
    found = np.array([pendula.constraint_errors(w, end, window=window) for w in omegas])
    figure, axes = panels(1, 2, (8.0, 3.1))
    for k, name in enumerate(("q", "x")):
        axes[0].loglog(omegas, omegas**2 * found[:, 0, k], "o", color=f"C{k}", label=f"${name}$, at $T$ = {end:g}")
        axes[0].loglog(omegas, omegas**2 * found[:, 1, k], color=f"C{k}", linewidth=0.8,
                       label=f"${name}$, largest in {window:g} before")  # fmt: skip
    axes[0].set(xlabel="ω", ylabel="$\\omega^2\\,\\|g\\|$")
    axes[0].legend()
    stop = 10.0
    when, mean, each = pendula.averaged_multipliers(stop)
    shaken, known = pendula.shake_multipliers(stop)
    between = np.column_stack([np.interp(when, shaken, known[:, k]) for k in range(2)])
    for k in range(2):
        axes[1].plot(when, each[:, k], color="0.8", linewidth=0.6, label=None if k else "$\\omega^2 g$ itself")
    for k in range(2):
        axes[1].plot(shaken, known[:, k], **PUBLISHED, label=None if k else "SHAKE")
        axes[1].plot(when, mean[:, k], color=f"C{k}", linewidth=0.9, label=f"$\\lambda_{k + 1}$ by (8)")
    axes[1].set(xlabel="$t$", ylabel="λ", ylim=(1.3 * min(0.0, known.min()) - 1.0, 1.7 * known.max()))
    axes[1].legend(ncols=2)
    letters(axes, ("satisfaction of constraints", "multipliers, ω = 20"))

    def off(a: Any) -> Any:
        inside = when <= shaken[-1]
        return float(np.sqrt(np.mean((a - between)[inside] ** 2) / np.mean(between[inside] ** 2)))

    power = [float(np.polyfit(np.log(omegas), np.log(found[:, 1, k]), 1)[0]) for k in range(2)]
    rows = [
        Row(near_line("power of ω in the largest ‖g(q)‖", power[0], -2.0, 0.05), "O(ω⁻²)"),
        Row(near_line("power of ω in the largest ‖g(x)‖", power[1], -2.0, 0.05), "O(ω⁻²)").but(
            "of the coordinates x, which differ from places q by βh²a whatever ω is; the paper does not say which"
        ),
        Row(bound_line("means by (8) against SHAKE, rms, relative", off(mean), 0.15), "2-scale convergence"),
        Row(above_line("ω²g itself against SHAKE, rms, relative", off(each), 0.25), "no strong convergence"),
    ]  # fmt: skip
    return Made(figure, rows, f"Zhang-Skeel, h = 0.01, β = {pendula.BETA:g}, T = {end:g} (paper: 50), window 0.2")


# Regular and chaotic regions, section 4.1 ---------------------------------------------------------------------


def regions(work: Work) -> Made:
    """Poincaré sections of the double pendulum: curves stay curves, or dissolve."""
    end, apart, soon = work.of(120.0, 1000.0), 0.05, work.of(120.0, 300.0)
    looks = round(end / apart)
    stiff, soft = 200.0, pendula.OMEGA
    sections = {
        "benchmark": poincare.section(poincare.reference(poincare.ORBITS, apart, looks)),
        f"SHAKE, $h$ = {2.0 * apart:g}": poincare.section(poincare.package(poincare.ORBITS, 2.0 * apart, looks // 2)),
        f"Z&S, ω = {stiff:g}, $h$ = 0.005":
            poincare.section(poincare.package(poincare.ORBITS, 0.005, looks, 10, stiff)),
        f"Z&S, ω = {soft:g}, $h$ = 0.025":
            poincare.section(poincare.package(poincare.ORBITS, 0.025, looks, 2, soft)),
        f"Z&S, ω = {soft:g}, $h$ = 0.005":
            poincare.section(poincare.package(poincare.ORBITS, 0.005, looks, 10, soft)),
        f"Euler, $h$ = 0.005, to $t$ = {soon:g}":
            poincare.section(poincare.euler(poincare.ORBITS, 0.005, round(soon / 0.005), 10)),
    }  # fmt: skip
    figure, axes = panels(2, 3, (8.6, 6.0), sharex=True, sharey=True)
    regular = len(poincare.REGULAR)
    for axis, points in zip(axes, sections.values(), strict=False):
        for k, own in enumerate(points):
            axis.plot(*own.T, ".", markersize=1.5, color=f"C{k}" if k < regular else "0.65")
    axes[0].set(xlim=(-2.6, 2.6), ylim=(-3.4, 3.4))
    for axis in (axes[0], axes[3]):
        axis.set_ylabel("$p_2$")
    for axis in axes[3:]:
        axis.set_xlabel("$\\theta_2$")
    letters(axes, list(sections))
    true, shaken, stiffly, softly, finely, lost = sections.values()
    off = [
        max(poincare.farthest(own, curve) for own, curve in zip(found[:regular], true, strict=False))
        for found in (shaken, stiffly, softly, finely, lost)
    ]
    entered = [sum(poincare.inside(own, true[0]) for own in found[regular:]) for found in (true, shaken, stiffly)]
    says = "none of our symplectic simulations led to numerical leakage"
    rows = [
        Row(bound_line("SHAKE: farthest point of a regular pendulum from its curve", off[0], 0.15), says),
        Row(bound_line(f"Z&S, ω = {stiff:g}: the same", off[1], 0.15), says),
        Row(bound_line(f"Z&S, ω = {soft:g}: the same", off[2], 0.15), says).but(
            "links are soft and swing; with h = 0.005 too: it is the penalised pendulum that leaves the curves"),
        Row(above_line(f"Z&S, ω = {soft:g}, h = 0.005: the same", off[3], 0.15), "not said: of the penalty, not of h"),
        Row(above_line("Euler: the same", off[4], 1.0), "variational integrators are desired"),
        Row(bound_line("points of chaotic pendula on an island: benchmark, SHAKE and stiff Z&S", float(sum(entered)),
                       0.5), says),
    ]  # fmt: skip
    sample = f"energy -1, {regular} regular (coloured) and {len(poincare.CHAOTIC)} chaotic (grey) pendula"
    return Made(figure, rows, f"{sample}, to t = {end:g} (paper: no figure)")


# Figure 3 ---------------------------------------------------------------------------------------------------


def chain(work: Work) -> Made:
    """Ten pendula by SHAKE and by Zhang-Skeel."""
    end, apart = work.of(30.0, 100.0), 0.25
    looks = round(end / apart)
    times = apart * np.arange(looks + 1)
    # Wide and pale below what hides it.
    cases: dict[tuple[str, float], dict[str, Any]] = {
        ("SHAKE", 0.05): {"color": "C0", "linewidth": 4.0, "alpha": 0.4},
        ("SHAKE", 0.025): {"color": "C2", "linewidth": 1.0},
        ("Zhang-Skeel", 0.05): {"color": "k", "linewidth": 1.0, "linestyle": ":"},
    }
    runs = {case: pendula.Package(pendula.chain(10), case[0], case[1], pendula.OMEGA) for case in cases}
    paths = {case: run.path(looks, round(apart / case[1])) for case, run in runs.items()}
    truth = pendula.Package(pendula.chain(10), "SHAKE", 1.0 / 400.0).path(looks, 100)
    figure, axes = panels(3, 1, (7.0, 5.6), sharex=True)
    for axis, bob in zip(axes, (10, 5), strict=False):
        for (method, h), line in cases.items():
            for c in range(2):
                axis.plot(times, paths[method, h][:, 2 * bob - 2 + c], **line,
                          label=None if c else f"{method}, $h$ = {h:g}")  # fmt: skip
        axis.set_ylabel(f"$x_{{{bob}}}$ and $y_{{{bob}}}$")
    axes[0].set_ylim(-26.0, 22.0)
    axes[0].legend(ncols=3, loc="upper right")
    off = {case: np.abs(path - truth).max(axis=1) for case, path in paths.items()}
    for case, line in cases.items():
        axes[2].semilogy(times[1:], off[case][1:], **line)
    axes[2].set(xlabel="$t$", ylabel="largest error of a bob")
    letters(axes, ("the last bob", "the fifth bob", "against SHAKE with $h$ = 0.0025"))
    rows = [
        Row(bound_line(f"{method}, h = {h:g}: largest error of a bob over the length 22.4", float(off[method, h].max())
                       / 22.36, 0.01), "good agreement")
        for method, h in cases
    ]  # fmt: skip
    base = runs["Zhang-Skeel", 0.05].seconds_a_step(500, work.of(0.02, 0.2)) / 0.05
    for (method, h), known in ((("SHAKE", 0.025), 16.5 / 1.1), (("SHAKE", 0.05), 8.1 / 1.1)):
        cost = runs[method, h].seconds_a_step(500, work.of(0.02, 0.2)) / h
        line = order_line(f"time: {method}, h = {h:g}, over Zhang-Skeel", cost / base, known, 2.0)
        rows.append(Row(line, "16.5 s, 8.1 s and 1.1 s").but(COMPILED))
    sample = f"10 pendula, ω = {pendula.OMEGA:g}, β = {pendula.BETA:g}, to t = {end:g} (paper: not said)"
    return Made(figure, rows, sample)


# Figures 4 and 7 --------------------------------------------------------------------------------------------


@cache
def _cluster(n: int, steps: int) -> np.ndarray:
    return np.asarray(water.start(n, steps=steps))


def _distances(work: Work, n: int, t_end: float, steps: int, times: str, peaks_near: float) -> Made:
    x = _cluster(n, steps)
    v = water.velocities(x, 3)
    bins = np.linspace(2.0, 7.0, 126) if n < 20 else np.linspace(2.0, 20.0, 181)
    middle = 0.5 * (bins[1:] + bins[:-1])
    figure, (axis,) = panels(1, 1, (6.4, 3.2))
    found, seconds, spread = {}, {}, {}
    # Large clusters take long to come to rest to all digits.
    places = {penalty: water.rest(x, penalty, work.of(1.0, 1e-2)) for penalty in (None, water.OMEGA)}
    for kind, color in ((water.Shake, "C0"), (water.ZhangSkeelStiff, "C1"), (water.SmallSteps, "0.4")):
        run = kind(places[kind.penalty], v, kT=water.KT, seed=2)
        parts, _, seconds[kind] = water.sampled(run, t_end, bins)
        found[kind] = parts.mean(axis=0)
        spread[kind] = water.unlike(parts[:5].mean(axis=0), parts[5:].mean(axis=0), bins)
        # Dashed over what it hardly differs from.
        line = "--" if color == "0.4" else "-"
        name = kind.name.replace("Z&S, stiff", "Z&Ss")
        axis.plot(middle, found[kind], line, linewidth=1.0, color=color, label=name)
    axis.set(xlabel="distance of two oxygens, Å", ylabel="density", xlim=(bins[0], bins[-1]))
    axis.legend()
    own, theirs, small = (found[kind] for kind in (water.Shake, water.ZhangSkeelStiff, water.SmallSteps))
    first = [float(middle[np.argmax(np.where(middle < peaks_near, density, 0.0))]) for density in (own, theirs)]
    # Two halves of one run differ by as much as two runs of half the length do.
    noise = max(spread.values())
    rows = [
        Row(near_line("first peak of Z&Ss over that of SHAKE", first[1] / first[0], 1.0, 0.02), "agreement of both"),
        Row(bound_line("Z&Ss against SHAKE, half of ∫|p - q|", water.unlike(own, theirs, bins), max(0.1, 2.0 * noise)),
            "a good approximation of the distribution").but(
            "of that of the penalised system, next row; with ω = 20 molecules are stretched, and rigid ones are not"),
        Row(bound_line("Z&Ss against the same penalties at small steps", water.unlike(theirs, small, bins),
                       max(0.1, 2.0 * noise)), "not shown: what Z&Ss approximates"),
    ]  # fmt: skip
    known = (13472, 1549) if n < 20 else (42234, 30059)
    ratio = seconds[water.Shake] / seconds[water.ZhangSkeelStiff]
    line = order_line("time: SHAKE over Z&Ss", ratio, known[0] / known[1], 2.0)
    rows.append(Row(line, f"{known[0]} s and {known[1]} s").but(COMPILED))
    sample = f"{n} molecules to T = {t_end:g} (paper: {times}), h = {water.H:g}, ω = {water.OMEGA:g}, γ = 0.01, "
    return Made(figure, rows, sample + "kT = 1/50; kcal/mol, Å, g/mol (not said)")


def water_7(work: Work) -> Made:
    """Distances of oxygens in a cluster of seven molecules."""
    return _distances(work, 7, work.of(300.0, 10_000.0), 20_000, "10000", 3.2)


def water_100(work: Work) -> Made:
    """Distances of oxygens in a cluster of a hundred molecules."""
    return _distances(work, 100, work.of(10.0, 1000.0), work.of(1600, 20_000), "1000", 3.4)


# Figures 5 and 6 --------------------------------------------------------------------------------------------


def water_multipliers(work: Work) -> Made:
    """Multipliers of the sides of the first molecule, from penalties and from constraints."""
    t_end, omega, h = 3.0, 500.0, water.H
    x = _cluster(7, 20_000)
    v = water.velocities(x, 3, water.KT)
    rigid, stiff, force = water.Shake(x, v), water.ZhangSkeelStiff(x, v, omega=omega), water.Penalised(x, None)
    n, window = round(t_end / h), round(0.2 / h)
    exact, raw, apart = np.empty((n + 1, 3)), np.empty((n + 1, 3)), 0.0
    for k in range(n + 1):
        if k:
            rigid.step(1)
            stiff.step(1)
        q, p = stiff.physical(), rigid.physical()
        exact[k] = water.exact_multipliers(p, rigid.velocities(), force.force(p))[0]
        raw[k] = -(omega**2) * ((water.sides(q)[0] ** 2).sum(axis=1) - water.SIDES**2)
        apart = max(apart, float(np.abs(q - p).max()))
    kernel = np.ones(window) / window
    mean = np.stack([np.convolve(raw[:, k], kernel, "valid") for k in range(3)], axis=1)
    t, when = h * np.arange(n + 1), h * (np.arange(len(mean)) + 0.5 * (window - 1))
    between = np.stack([np.interp(when, t, exact[:, k]) for k in range(3)], axis=1)
    figure, axes = panels(1, 2, (7.6, 3.0))
    for axis, k in ((axes[0], 0), (axes[1], 2)):
        axis.plot(t, raw[:, k], color="0.8", linewidth=0.8, label="$-\\omega^2 g(q)$")
        axis.plot(when, mean[:, k], color="C1", label="its mean over 0.2")
        axis.plot(t, exact[:, k], "--", color="C0", label="SHAKE")
        span = np.ptp(exact[:, k])
        axis.set(xlabel="$t$", ylabel="multiplier", ylim=(exact[:, k].min() - span, exact[:, k].max() + 1.7 * span))
        axis.legend(ncols=2)
    letters(axes, ("the side H–O of the first molecule", "the side H–H"))
    scale = exact.std(axis=0)
    around = [float(((a - b).std(axis=0) / scale).max()) for a, b in ((mean, between), (raw, exact))]
    rows = [
        Row(bound_line("means around SHAKE, rms over the spread of λ", around[0], 0.5), "averages agree (Theorem 11)"),
        Row(above_line("-ω²g itself around SHAKE, over that of the means", around[1] / around[0], 1.0),
            "there is no strong convergence"),
        Row(bound_line("mean difference over the mean of λ", float((np.abs(mean - between).mean(axis=0)
                       / np.abs(between).mean(axis=0)).max()), 0.1), "of the order h²"),
        Row(bound_line("largest distance of atoms, Å", apart, 0.05), "terminated before chaos"),
    ]  # fmt: skip
    return Made(figure, rows, f"7 molecules, ω = {omega:g}, h = {h:g}, without noise, to t = {t_end:g}")


def water_conservation(work: Work) -> Made:
    """Energy and momenta without noise, by four methods."""
    t_end = work.of(50.0, 1000.0)
    begun = _cluster(7, 20_000)
    v = water.velocities(begun, 3)
    figure, axes = panels(1, 3, (8.2, 2.9))
    kept = {}
    for kind in (water.Shake, water.ZhangSkeelStiff, water.ZhangSkeel, water.NewmarkPartly):
        x = water.rest(begun, kind.penalty)
        with warnings.catch_warnings():
            # How much it heats is what is looked at.
            warnings.filterwarnings("ignore", ".* is not the gradient of a potential and heats", TimestepWarning)
            run = kind(x, v)
        if hasattr(run, "context"):
            run.context.runaway = None
        kept[kind] = water.Conserved.of(run, water.Penalised(x, kind.penalty), x, t_end)
        name = kind.name.replace("Z&S, stiff", "Z&Ss")
        # The first pale and wide, below what hides it.
        width, alpha = (3.0, 0.4) if kind is water.Shake else (0.8, 1.0)
        for axis, y in zip(axes, (kept[kind].energy, kept[kind].momentum[:, 0], kept[kind].angular[:, 0]), strict=True):
            axis.plot(kept[kind].t, y - y[0], linewidth=width, alpha=alpha, label=name)
    for axis, what in zip(axes, ("E - E_0$, kcal/mol", "P_x - P_{x0}$", "L_x - L_{x0}$"), strict=True):
        axis.set(xlabel="$t$", ylabel=f"${what}")
    letters(axes, ("energy", "momentum", "angular momentum"))
    figure.legend(*axes[0].get_legend_handles_labels(), ncols=4, loc="outside upper center")
    changes = {kind: run.changes() for kind, run in kept.items()}
    shake, ours = changes[water.Shake], changes[water.ZhangSkeelStiff]
    newmark = changes[water.NewmarkPartly]
    rows = [
        Row(bound_line("SHAKE: change of the energy, kcal/mol", shake[0], 0.05), "preserved"),
        Row(bound_line("SHAKE: change of the angular momentum", shake[2], 1e-6), "preserved"),
        Row(bound_line("Z&Ss: change of the momentum", ours[1], 1e-8), "preserved"),
        Row(above_line("change of the energy: partly solved Newmark over Z&Ss", newmark[0] / ours[0], 1.0),
            "Z&Ss exhibits improved preservation").but(
            "in this run the drift of partly solved Newmark is the smaller one"),
        Row(above_line("change of the angular momentum: partly solved Newmark over Z&Ss", newmark[2] / ours[2], 1.0),
            "Z&Ss exhibits improved preservation").but(
            "Z&Ss is no gradient either, and keeps angular momentum to its order in h only"),
    ]  # fmt: skip
    sample = f"7 molecules, h = {water.H:g}, ω = {water.OMEGA:g}, β = {water.BETA:g}, to t = {t_end:g}, each 20th step"
    return Made(figure, rows, sample)


# Figure 8 ---------------------------------------------------------------------------------------------------


def opening(work: Work) -> Made:
    """DNA that opens and closes: mean angle, phase portrait, energies."""
    end = work.of(400.0, 3000.0)
    figure, axes = panels(3, 3, (8.4, 6.2), sharex="row", sharey="row")
    first, energies, costs = {}, {}, {}
    for k, method in enumerate(dna.FIGURE):
        run = dna.run(method, 0, end, every=2.0)
        ours = np.abs(run["energies"]).max(axis=1) < 10.0
        axes[k].plot(run["t"], run["mean"], linewidth=0.7)
        for angle in (dna.CLOSED, 2.0 * np.pi - dna.CLOSED):
            axes[k].axhline(angle, color="0.6", linewidth=0.6)
        axes[k].set(title=method, xlabel="$t$", xlim=(0.0, end))
        axes[3 + k].plot(run["mean"], run["velocity"], linewidth=0.4)
        axes[3 + k].set(xlabel="$\\bar\\theta$", ylim=(-0.04, 0.04))
        axes[6 + k].plot(run["t"][ours], run["energies"][ours, 0], linewidth=0.7, label="$H$")
        if "Verlet" not in method:
            modified = run["energies"][ours, 1]
            axes[6 + k].plot(run["t"][ours], modified, linewidth=0.7, label="$H$ with $\\tilde W_*$ for $V$")
            axes[6 + k].legend()
        axes[6 + k].set(xlabel="$t$", xlim=(0.0, end), ylim=(0.0, 4.0))
        changes = dna.changes(run["mean"])
        first[method] = float(run["t"][changes[0]]) if len(changes) else np.nan
        energies[method] = float(run["energies"][run["t"] < 400.0, 0].mean())
        costs[method] = dna.microseconds(method, repeats=work.of(3, 15))
    for k, label in enumerate(("$\\bar\\theta$", "$d\\bar\\theta/dt$", "energy")):
        axes[3 * k].set_ylabel(label)
    benchmark, ours = dna.FIGURE[0], dna.FIGURE[2]
    stiffest = 2.0 / np.sqrt(dna.highest_stiffness(np.full(dna.N, dna.CLOSED)))
    rows = [
        Row(near_line("angle of lowest energy", dna.closed_angle(), 0.795, 1e-3), "arccos(0.7) ≈ 0.795"),
        Row(near_line(f"first change of state: {ours}, over {benchmark}", first[ours] / first[benchmark], 1.0, 0.3),
            "transits between metastable states"),
        Row(bound_line(f"mean energy to t = 400: {ours}, over {benchmark}", energies[ours] / energies[benchmark], 1.0),
            "lower, as fast oscillations are damped"),
        Row(near_line("limit of velocity Verlet, h", stiffest, 0.2, 0.5)).but(
            "h = 0.2 is said to be near the limit, but the stiffest mode has 2/ω of five times that"),
        Row(order_line(f"time: {benchmark} over {ours}", costs[benchmark] / costs[ours], 23.26 / 3.24, 2.0),
            "23.26 s and 3.24 s").but(COMPILED),
    ]  # fmt: skip
    return Made(figure, rows, f"N = {dna.N} in a ring, β = 0.3, one start, to t = {end:g} (paper: not said)")


# Figures 9 and 10 -------------------------------------------------------------------------------------------


def _body_paths(end: float) -> dict[str, Any]:
    """R (k, 3, 3) at every step of h = 0.1: benchmark, Zhang-Skeel, and the paper's method on the group."""
    n = round(end / magnet.H)
    benchmark, _ = magnet.rigid_body(1e-4, 1000 * n, 1000)
    _, r, v, _ = magnet.package(kicks.ZhangSkeel(0.2), n)
    group, rate = magnet.rigid_body(magnet.H, n, word="BA", kick=kicks.HamiltonPontryagin())
    t = magnet.H * np.arange(n + 1)
    return {"t": t, "benchmark": benchmark, "r": r, "v": v, "group": group, "rate": rate}


_CORNERS = np.array([[i, j, k] for i in (-1, 1) for j in (-1, 1) for k in (-1, 1)]) * [0.5, 0.35, 0.2]
_EDGES = [(a, b) for a in range(8) for b in range(a) if (np.abs(_CORNERS[a] - _CORNERS[b]) > 0).sum() == 1]


def _draw_body(axis: Any, r: np.ndarray) -> list[Any]:
    """A box turned by r, its dipole in black, and the field in red."""
    box = _CORNERS @ r.T
    lines = [axis.plot(*box[[a, b]].T, color="C0", linewidth=0.8)[0] for a, b in _EDGES]
    dipole = np.array([np.zeros(3), 0.95 * r[:, 2]])
    lines += axis.plot(*dipole.T, color="k", linewidth=2.0)
    lines += axis.plot(*dipole[1:].T, "o", color="k", markersize=3.5)
    lines += axis.plot([-0.62, -0.62], [-0.62, -0.62], [-0.6, 0.5], color="C3", linewidth=2.0)
    lines += axis.plot([-0.62], [-0.62], [0.5], "^", color="C3", markersize=5)
    return lines


def _stage(axis: Any, title: str) -> None:
    axis.set(xlim=(-1.0, 1.0), ylim=(-1.0, 1.0), zlim=(-1.0, 1.1))
    axis.set_box_aspect((1, 1, 1), zoom=1.6)
    axis.set_axis_off()
    axis.set_title(title, loc="center", fontsize=8, y=1.02)


def body_snapshots(work: Work) -> Made:
    """Snapshots of the body, by the benchmark and by Zhang-Skeel."""
    from matplotlib.figure import Figure

    paths, shown = _body_paths(10.0), (0.0, 1.0, 2.0, 3.0, 4.0, 5.0)
    figure = Figure(figsize=(8.0, 3.2), layout="constrained")
    axes = figure.subplots(2, len(shown), subplot_kw={"projection": "3d"})
    for row, name in zip(axes, ("benchmark", "r"), strict=True):
        for axis, t in zip(row, shown, strict=True):
            _draw_body(axis, paths[name][round(t / magnet.H)])
            _stage(axis, f"$t$ = {t:g}" if name == "benchmark" else "")
    for row, text in zip(axes, ("benchmark", "Zhang-Skeel"), strict=True):
        row[0].text2D(-0.08, 0.5, text, transform=row[0].transAxes, rotation=90, va="center", fontsize=8)
    early = paths["t"] <= 5.0
    tip = np.linalg.norm(paths["r"][early, :, 2] - paths["benchmark"][early, :, 2], axis=1)
    rows = [
        Row(bound_line("tip of the dipole: Zhang-Skeel from the benchmark to t = 5", float(tip.max()), 0.1),
            "the two look alike"),
        Row(bound_line("least R33 of the benchmark", float(paths["benchmark"][:, 2, 2].min()), -0.9),
            "the dipole swings to the other side"),
    ]  # fmt: skip
    sample = "red: field, black: dipole; Zhang-Skeel with h = 0.1, ω = 10 (β = 0.4 of the paper is 0.2 here), Bμ = 1"
    return Made(figure, rows, sample + " (not said)")


def body_film(work: Work) -> Made:
    """The movie of the body, the benchmark beside Zhang-Skeel."""
    frames = work.of(30, 200)
    paths = _body_paths(frames * 0.1)

    def write(path: Path) -> None:
        from matplotlib.animation import PillowWriter
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        figure = Figure(figsize=(4.0, 2.2))
        FigureCanvasAgg(figure)
        axes = figure.subplots(1, 2, subplot_kw={"projection": "3d"})
        figure.subplots_adjust(0.0, 0.0, 1.0, 0.92, 0.0)
        for axis, title in zip(axes, ("benchmark", "Zhang-Skeel"), strict=True):
            _stage(axis, title)
        writer = PillowWriter(fps=15)
        with writer.saving(figure, path, 80):
            for k in range(frames):
                drawn = [
                    line for axis, name in zip(axes, ("benchmark", "r"), strict=True)
                    for line in _draw_body(axis, paths[name][k])
                ]  # fmt: skip
                writer.grab_frame()
                for line in drawn:
                    line.remove()

    return Made(write, [], f"{frames} steps of h = 0.1 (paper: a film of its own)")


def body_errors(work: Work) -> Made:
    """Energy, distance from rotations and from the benchmark, of both methods."""
    end = work.of(10.0, 50.0)
    paths = _body_paths(end)
    figure, axes = panels(3, 2, (7.6, 5.4), sharex=True, sharey="row")
    largest = {}
    for column, (name, r, v) in enumerate(
        (("Zhang-Skeel", paths["r"], paths["v"]), ("group", paths["group"], paths["rate"]))
    ):
        e, off = magnet.energy(r, v), magnet.off_orthogonal(r)
        distance = np.linalg.norm(r - paths["benchmark"], axis=(1, 2))
        axes[column].plot(paths["t"], e - e[0], linewidth=0.8)
        axes[2 + column].semilogy(paths["t"], np.maximum(off, 1e-16), linewidth=0.8)
        axes[4 + column].plot(paths["t"], distance, linewidth=0.8)
        axes[4 + column].set_xlabel("$t$")
        largest[name] = [float(a.max()) for a in (np.abs(e - e[0]), off, distance)]
    for k, label in enumerate(("energy − first", "$\\|R^T R - 1\\|$", "$\\|R - R'\\|$")):
        axes[2 * k].set_ylabel(label)
    letters(axes[:2], ("Zhang-Skeel, $h$ = 0.1", "method on the group, $h$ = 0.1"))
    ours, group = largest["Zhang-Skeel"], largest["group"]
    rows = [
        Row(bound_line("Zhang-Skeel: change of the energy", ours[0], 0.1), "no drift: moderately accurate"),
        Row(bound_line("Zhang-Skeel: ‖RᵀR - 1‖", ours[1], 0.05), "held by ω = 10 only"),
        Row(bound_line(f"Zhang-Skeel: ‖R - R'‖ to t = {end:g}", ours[2], 2.0), "its error, of both ω and h"),
        Row(bound_line("on the group: ‖RᵀR - 1‖", group[1], 1e-13), "much better at preserving the group"),
        Row(bound_line("on the group: change of the energy", group[0], 0.2), "no drift"),
        Row(bound_line(f"on the group: ‖R - R'‖ to t = {end:g}", group[2], 2.0), "compared in figure 10(b)"),
    ]  # fmt: skip
    return Made(figure, rows, f"to t = {end:g}; on the group: (34) of the paper; R': rigid body, h = 0.0001")


FIGURES: tuple[Plate, ...] = (
    Plate("001_1.png", "figure 1", "errors of five methods, double pendulum", double_pendulum, (3.0, 6.0)),
    Plate("001_2.png", "figure 2", "constraints and multipliers", multipliers, (2.0, 10.0)),
    Plate("001_regions.png", "section 4.1", "regular and chaotic regions", regions, (8.0, 70.0)),
    Plate("001_3.png", "figure 3", "a chain of ten pendula", chain, (1.0, 5.0)),
    Plate("001_4.png", "figure 4", "distances of oxygens, 7 molecules", water_7, (3.0, 90.0)),
    Plate("001_5.png", "figure 5", "multipliers of water", water_multipliers, (1.0, 2.0)),
    Plate("001_6.png", "figure 6", "conservation of energy and momenta", water_conservation, (7.0, 120.0)),
    Plate("001_7.png", "figure 7", "distances of oxygens, 100 molecules", water_100, (2.0, 250.0)),
    Plate("001_8.png", "figure 8", "opening of DNA", opening, (2.0, 10.0)),
    Plate("001_9.png", "figure 9", "snapshots of a magnetised body", body_snapshots, (1.0, 2.0)),
    Plate("001_9_film.gif", "figure 9, the film", "a magnetised body", body_film, (2.0, 15.0)),
    Plate("001_10.png", "figure 10", "energy, group and path of the body", body_errors, (1.0, 2.0)),
)
