"""Figures 2 to 6 of Ladd and Misra on elastic rods, remade, and a table of what they say.

    python tests/validation/rods/elastic_rods.py [--quick] [--out DIR] [--data DIR] [--osdh package|reference]

OSDH (operator splitting, Hamiltonian forces) is run by the package, all other methods by rod_reference.py beside this
file. With numba the full set takes hours; --data keeps each series as soon as it is there, and a later call goes on
with the next one. Time is in t0 = d/c_l, energy in its start E0.
"""

import argparse
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import medyanpy as mp

sys.path.insert(0, str(Path(__file__).parent))
import rod_reference as reference

# A method is called unstable from the first look at which the energy is off by this part of it.
UNSTABLE = 0.1
STARTS = {"circle": reference.circle, "helix": reference.four_turns}
COLORS = {"OSDH": "C0", "OSDF": "C1", "RKDH": "C2", "RKDF": "C3", "MPDH": "C4", "TRDH": "C5"}


# Programs ----------------------------------------------------------------------------------------------------------


class Reference:
    """rod_reference.py."""

    def __init__(self, rod, y, method, dt):
        self._rod, self._y, self._method, self._dt = rod, y, method, dt

    def step(self, n):
        self._y = reference.advance(self._rod, self._y, self._method, self._dt, n)

    def look(self):
        """y (13, N), as in rod_reference.py."""
        return self._y


class Package:
    """The word ABA with RodElasticity."""

    def __init__(self, rod, y, dt):
        topology, c = mp.Topology(), rod.moduli
        self._handle = topology.add_rod(
            np.ascontiguousarray(y[:3].T),
            np.ascontiguousarray(y[3:7].T),
            segment_length=rod.ds,
            linear_density=rod.mass / rod.ds,
            inertia_density=rod.inertia / rod.ds,
        )
        system = mp.System(topology)
        system.add_force(
            mp.forces.RodElasticity(self._handle, shear=(c[0], c[1]), extension=c[2], bending=(c[3], c[4]), twist=c[5])
        )
        self._context = mp.Context(system, mp.SplittingIntegrator("ABA", dt), threads=1)

    def step(self, n):
        self._context.step(n)

    def look(self):
        state = self._context.get_state(positions=True, velocities=True)
        # One rod and nothing else: all rows are its own, in order.
        parts = state.positions, state.orientations, state.velocities, state.angular_momenta
        return np.concatenate([part.T for part in parts])


def program(rod, y, method, dt, osdh):
    if method == "OSDH" and osdh == "package":
        return Package(rod, y, dt)
    return Reference(rod, y, method, dt)


# Series ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Series:
    """A rod let go, and how long and how often its energy is looked at."""

    start: str
    segments: int
    method: str
    dt: float
    end: float
    every: float

    def __str__(self):
        return f"{self.start}_{self.segments}_{self.method}_{self.dt:g}"

    def run(self, osdh, shapes_at=()):
        """t, energies (k, 2, 6) of `reference.energies`, and y at the times asked for. Ends early where the energy
        has doubled or is not a number."""
        rod = reference.rod(self.segments)
        y = STARTS[self.start](self.segments, rod.ds)
        run = program(rod, y, self.method, self.dt, osdh)
        times, energies, shapes = [0.0], [reference.energies(rod, y)], [y] if 0.0 in shapes_at else []
        steps = round(self.every / self.dt)
        for k in range(1, round(self.end / self.every) + 1):
            run.step(steps)
            y = run.look()
            times.append(k * self.every)
            energies.append(reference.energies(rod, y))
            if k * self.every in shapes_at:
                shapes.append(y)
            if not abs(energies[-1].sum() / energies[0].sum() - 1.0) < 1.0:
                break
        return {"t": np.array(times), "energies": np.array(energies), "shapes": np.array(shapes)}


class Shelf:
    """Series that were run, in memory and in files."""

    def __init__(self, folder, osdh, end):
        self._folder, self._osdh, self._end, self._known = folder, osdh, end, {}

    def __call__(self, *case, shapes_at=()):
        series = Series(*case)
        if self._end is not None:
            every = min(series.every, self._end)
            series = Series(*case[:4], min(series.end, self._end), every)
            shapes_at = tuple(t for t in shapes_at if t <= self._end)
        key = f"{series}_{self._osdh if series.method == 'OSDH' else 'reference'}_{series.end:g}"
        if key not in self._known:
            file = self._folder / f"{key}.npz" if self._folder else None
            if file is not None and file.exists():
                with np.load(file) as stored:
                    self._known[key] = dict(stored)
            else:
                started = time.process_time()
                self._known[key] = series.run(self._osdh, shapes_at)
                print(f"# {key}: {time.process_time() - started:.0f} s", flush=True)
                if file is not None:
                    file.parent.mkdir(parents=True, exist_ok=True)
                    np.savez(file, **self._known[key])
        return self._known[key]


def error(data):
    """E/E0 - 1."""
    energy = data["energies"].sum(axis=(1, 2))
    return energy / energy[0] - 1.0


def unstable_from(data):
    """Time of the first look at which the energy is off; None if it never is."""
    off = np.nonzero(~(np.abs(error(data)) < UNSTABLE))[0]
    return data["t"][off[0]] if len(off) else None


def fluctuation(method, dt, end, osdh, segments=63):
    """Largest |E/E0 - 1| over every step."""
    rod = reference.rod(segments)
    y = reference.circle(segments, rod.ds)
    run, start, largest = program(rod, y, method, dt, osdh), reference.energies(rod, y).sum(), 0.0
    for _ in range(round(end / dt)):
        run.step(1)
        largest = max(largest, abs(reference.energies(rod, run.look()).sum() / start - 1.0))
    return largest


# Figures -----------------------------------------------------------------------------------------------------------

SHAPE_TIMES = (0.0, 300.0, 600.0, 900.0, 1200.0, 1500.0)
HELIX_TIMES = (0.0, 100.0, 200.0, 300.0, 400.0, 500.0)
# Method, end; each panel of figure 3.
PANELS = {
    "a": (63, 0.2, (("OSDF", 1e6), ("RKDF", 1e6), ("RKDH", 1e6), ("MPDH", 2e5), ("OSDH", 1e6))),
    "b": (63, 0.02, (("OSDF", 3e5), ("RKDF", 3e5), ("RKDH", 2e5), ("OSDH", 1e6))),
    "c": (127, 0.1, (("OSDF", 1e6), ("OSDH", 1e6))),
}
EVERY = 100.0
# Method, timestep, end; each panel of figure 4.
DRIFTS = (
    (0.2, (("OSDH", 1e6),)),
    (0.2, (("MPDH", 2e5), ("TRDH", 2e5))),
    (0.02, (("OSDH", 1e6),)),
    (0.02, (("MPDH", 2e4),)),
)


def figure(plt, shape, size):
    fig, axes = plt.subplots(*shape, figsize=size, layout="constrained", squeeze=False)
    for axis in axes.flat:
        axis.spines[["top", "right"]].set_visible(False)
    return fig, axes.ravel()


def figure_2(plt, shelf):
    shapes = shelf("circle", 63, "OSDH", 0.2, 1500.0, 100.0, shapes_at=SHAPE_TIMES)["shapes"]
    fig, (axis,) = figure(plt, (1, 1), (6.0, 3.0))
    # The gap of the circle is to the right: turned, it is below, as in the paper.
    styles = "-", "-", (0, (8, 3)), "--", "-.", ":"
    for t, y, style in zip(SHAPE_TIMES, shapes, styles, strict=False):
        axis.plot(y[1], -y[0], color="k" if t else "0.7", linestyle=style, linewidth=1, label=f"{t:g}")
    axis.set(xlabel="y/d", ylabel="−x/d", aspect="equal")
    axis.legend(title="$t/t_0$", frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return fig


def figure_3(plt, shelf):
    fig, axes = figure(plt, (3, 1), (5.5, 7.5))
    for axis, (letter, (segments, dt, runs)) in zip(axes, PANELS.items(), strict=True):
        for method, end in runs:
            data = shelf("circle", segments, method, dt, end, EVERY)
            t, e = data["t"][1:], 1.0 + error(data)[1:]
            # A point a pixel: what is between them does not show.
            thin = np.unique(np.searchsorted(t, np.geomspace(t[0], t[-1], 800)).clip(0, len(t) - 1))
            axis.plot(t[thin], e[thin], color=COLORS[method], linewidth=1, label=method)
        axis.set(xscale="log", ylim=(0.85, 1.15), ylabel="$E/E_0$")
        axis.set_title(f"{letter}) {segments} segments, Δt = {dt:g} $t_0$", fontsize=9, loc="left")
        axis.legend(frameon=False, fontsize=7, ncols=len(runs), loc="lower left")
    axes[-1].set_xlabel("$t/t_0$")
    return fig


def figure_4(plt, shelf):
    fig, axes = figure(plt, (2, 2), (7.0, 5.0))
    for axis, (dt, runs) in zip(axes, DRIFTS, strict=True):
        for method, end in runs:
            data = shelf("circle", 63, method, dt, end, EVERY)
            keep = data["t"] <= 2e5
            name = {"TRDH": "trapezoidal rule (57)", "MPDH": "implicit midpoint"}.get(method, method)
            axis.plot(data["t"][keep], error(data)[keep], color=COLORS[method], linewidth=0.6, label=name)
        axis.ticklabel_format(style="sci", scilimits=(-2, 3), useMathText=True)
        axis.set(xlabel="$t/t_0$", ylabel="$E/E_0 - 1$")
        axis.set_title(f"{runs[0][0]}, Δt = {dt:g} $t_0$", fontsize=9, loc="left")
        if len(runs) > 1:
            axis.legend(frameon=False, fontsize=7)
    return fig


def figure_5(plt, shelf):
    coarse = shelf("helix", 63, "OSDH", 0.1, 500.0, 100.0, shapes_at=HELIX_TIMES)["shapes"]
    fine = shelf("helix", 630, "OSDH", 0.02, 500.0, 100.0, shapes_at=HELIX_TIMES)["shapes"]
    fig, axes = figure(plt, (2, 3), (7.5, 5.5))
    for axis, t, a, b in zip(axes, HELIX_TIMES, coarse, fine, strict=False):
        axis.plot(b[2], b[0], color="k", linewidth=1.5, label="630")
        axis.plot(a[2], a[0], "o", color="C0", markersize=3, markerfacecolor="none", label="63")
        axis.set(xlabel="z/d", ylabel="x/d", aspect="equal")
        axis.set_title(f"t = {t:g} $t_0$", fontsize=9, loc="left")
        axis.set_adjustable("datalim")
    axes[0].legend(title="segments", frameon=False, fontsize=7, title_fontsize=7)
    return fig


def figure_6(plt, shelf):
    data = shelf("helix", 63, "OSDH", 0.1, 1e5, 10.0)
    t, energies = data["t"], data["energies"] / data["energies"][0].sum()
    fig, axes = figure(plt, (2, 3), (7.8, 4.2))
    for axis, end, letter in zip(axes[[0, 3]], (1e5, 4000.0), "ab", strict=True):
        keep = np.nonzero(t <= end)[0]
        keep = keep[:: max(1, len(keep) // 250)]
        for label, e in (
            ("total", energies.sum(axis=(1, 2))),
            ("potential", energies[:, 1].sum(axis=1)),
            ("kinetic", energies[:, 0].sum(axis=1)),
        ):
            axis.plot(t[keep], e[keep], linewidth=0.7, label=label)
        axis.set(xlabel="$t/t_0$", ylabel="$E/E_0$", ylim=(0, 1.1))
        axis.set_title(f"{letter})", fontsize=9, loc="left")
    axes[0].legend(frameon=False, fontsize=7)
    # Means over 2000 t0.
    width = max(1, min(200, len(t) // 5))
    blocks = (len(t) - 1) // width
    mean = energies[1 : 1 + blocks * width].reshape(blocks, width, 2, 6).mean(axis=1)
    middle = t[1 : 1 + blocks * width].reshape(blocks, width).mean(axis=1)
    for axis, kind, part, what in zip(
        axes[[1, 2, 4, 5]], (0, 0, 1, 1), (0, 3, 0, 3), ("c) kinetic", "d) kinetic", *2 * ["potential"]), strict=True
    ):
        for k in range(part, part + 3):
            axis.plot(middle, mean[:, kind, k], linewidth=0.8, label=reference.COMPONENTS[k])
        axis.set(xlabel="$t/t_0$", ylabel="mean over 2000 $t_0$ / $E_0$", ylim=(0, None))
        axis.set_title(what, fontsize=9, loc="left")
        axis.legend(frameon=False, fontsize=7)
    return fig


FIGURES = {f"rods_{k}": f for k, f in enumerate((figure_2, figure_3, figure_4, figure_5, figure_6), 2)}


# Numbers -----------------------------------------------------------------------------------------------------------


def print_stability(shelf):
    print("\nfirst time at which the energy is off by 10 % (circle):")
    for segments, dt, runs in PANELS.values():
        for method, end in runs:
            data = shelf("circle", segments, method, dt, end, EVERY)
            when = unstable_from(data)
            what = f"stable to {data['t'][-1]:.3g} t0" if when is None else f"{when:.3g} t0"
            print(f"    {segments:4d} segments, dt = {dt:<5g} {method}   {what}")


def print_fluctuations(osdh, end, quick):
    print(f"\nlargest |E/E0 - 1| over every step to {end:g} t0 (circle, 63 segments), and over (dt/t0)^2:")
    for method, steps in (("OSDH", (0.4, 0.2, 0.1, 0.05)), ("MPDH", (0.4, 0.2, 0.1)), ("TRDH", (0.4, 0.2, 0.1))):
        steps = steps[:2] if quick else steps
        largest = [fluctuation(method, dt, end, osdh) for dt in steps]
        power = np.polyfit(np.log(steps), np.log(largest), 1)[0]
        for dt, e in zip(steps, largest, strict=True):
            print(f"    {method}  dt = {dt:<5g} {e:.4g}   {e / dt**2:.3g}")
        print(f"    {method}  power of dt: {power:.3f}")


def print_drifts(shelf):
    print("\nlargest |E/E0 - 1|/(dt/t0)^2 up to a time, and the slope of E/E0 - 1 by least squares to 2e5 t0:")
    runs = [(63, method, dt, end) for dt, methods in DRIFTS for method, end in methods]
    for segments, method, dt, end in (*runs, (127, "OSDH", 0.1, 1e6)):
        data = shelf("circle", segments, method, dt, end, EVERY)
        t, e = data["t"], error(data)
        limits = [limit for limit in (1e4, 1e5, 2e5, 1e6) if limit <= t[-1]]
        bounds = ", ".join(f"{np.abs(e[t <= limit]).max() / dt**2:.3g} to {limit:.0e}" for limit in limits)
        early = t <= 2e5
        slope = np.polyfit(t[early], e[early], 1)[0]
        last = e[early][-20:].mean()
        print(
            f"    {segments:4d} segments, {method}, dt = {dt:<5g} {bounds}; slope {1e5 * slope:+.2e} per 1e5 t0 "
            f"({1e5 * slope / dt**2:+.2e} (dt/t0)^2), at the end of it {last:+.2e}"
        )


def print_equipartition(shelf):
    data = shelf("helix", 63, "OSDH", 0.1, 1e5, 10.0)
    t, energies = data["t"], data["energies"]
    mean = energies[t >= 0.4 * t[-1]].mean(axis=0)
    # 63 nodes of six velocities less six conserved momenta; 62 joints of six strains.
    kt = 2.0 * mean[0].sum() / (6 * 63 - 6)
    print(f"\nhelix, 63 segments, dt = 0.1 t0: mean energy from {0.4 * t[-1]:g} to {t[-1]:g} t0 over that of kT/2 each")
    print(f"{'':14s}{''.join(f'{c:>11s}' for c in reference.COMPONENTS)}")
    for name, row, n in (("kinetic", mean[0], 63), ("potential", mean[1], 62)):
        print(f"    {name:10s}" + "".join(f"{2 * e / (n * kt):11.3f}" for e in row))
    print(f"    largest |E/E0 - 1| {np.abs(error(data)).max():.2e}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--quick", action="store_true", help="everything to 10 t0 at most: does it run?")
    parser.add_argument("--out", type=Path, default=Path("."), help="where figures go")
    parser.add_argument("--data", type=Path, help="where series are kept")
    parser.add_argument("--osdh", choices=("package", "reference"), default="package", help="what runs OSDH")
    parser.add_argument("--only", nargs="*", choices=[*FIGURES, "table"], help="a part of it")
    options = parser.parse_args()

    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    options.out.mkdir(parents=True, exist_ok=True)
    shelf = Shelf(options.data, options.osdh, 10.0 if options.quick else None)
    print(f"# medyanpy {mp.__version__}; the reference is {'compiled' if reference.COMPILED else 'not compiled'}")
    for name, draw in FIGURES.items():
        if options.only is None or name in options.only:
            fig = draw(plt, shelf)
            fig.savefig(options.out / f"{name}.png", dpi=80)
            plt.close(fig)
    if options.only is None or "table" in options.only:
        print_stability(shelf)
        print_fluctuations(options.osdh, 4.0 if options.quick else 300.0, options.quick)
        print_drifts(shelf)
        print_equipartition(shelf)


if __name__ == "__main__":
    main()
