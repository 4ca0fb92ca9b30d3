"""Tables of what Ladd and Misra say of elastic rods. `tests/validation/figures --seed 004` has their figures.

    python tests/validation/rods/elastic_rods.py [--quick] [--data DIR] [--osdh package|reference]

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
        self._handle = topology.add_rod(np.ascontiguousarray(y[:3].T), np.ascontiguousarray(y[3:7].T),
                                        segment_length=rod.ds, linear_density=rod.mass / rod.ds,
                                        inertia_density=rod.inertia / rod.ds)  # fmt: skip
        system = mp.System(topology)
        system.add_force(mp.forces.RodElasticity(self._handle, shear=(c[0], c[1]), extension=c[2], bending=(c[3], c[4]),
                                                 twist=c[5]))  # fmt: skip
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


# Runs of figures 3 and 4 --------------------------------------------------------------------------------------------

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
    parser.add_argument("--data", type=Path, help="where series are kept")
    parser.add_argument("--osdh", choices=("package", "reference"), default="package", help="what runs OSDH")
    options = parser.parse_args()

    shelf = Shelf(options.data, options.osdh, 10.0 if options.quick else None)
    print(f"# medyanpy {mp.__version__}; the reference is {'compiled' if reference.COMPILED else 'not compiled'}")
    print_stability(shelf)
    print_fluctuations(options.osdh, 4.0 if options.quick else 300.0, options.quick)
    print_drifts(shelf)
    print_equipartition(shelf)


if __name__ == "__main__":
    main()
