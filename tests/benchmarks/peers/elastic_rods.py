"""The same elastic rods here and in PyElastica: a circle of L = 20πd is let go (Ladd and Misra, section V.A).

    python tests/benchmarks/peers/elastic_rods.py [--quick] [--no-energy]

PyElastica (``pip install pyelastica``) is not needed by anything else. One thread each; rates and energies are those
of this run, each program in turn, and times are those of the processor, so that other work on the machine does not
count. Section, moduli and timestep are the same: d = ρ = Y = 1, Poisson's ratio 0.3, Δt = 0.2 t_C; PyElastica's factor
27/28 on the shear modulus is taken out. Both step by position Verlet. PyElastica has its nodes at the ends of
segments, one more of them; a node-step is that of a segment, in both.

Energies are of the whole state at the end of a step, by each program's own functions.
"""

import argparse
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import medyanpy as mp

LENGTH, DIAMETER, YOUNG, POISSON = 20.0 * np.pi, 1.0, 1.0, 0.3
SHEAR, AREA, SECOND_MOMENT = YOUNG / (2 * (1 + POISSON)), np.pi * DIAMETER**2 / 4, np.pi * DIAMETER**4 / 64


@dataclass(frozen=True)
class Case:
    rods: int
    segments: int

    @property
    def dt(self):
        """A fifth of the time in which a longitudinal wave crosses a segment or the diameter."""
        return 0.2 * min(1.0, 63 / self.segments)

    def __str__(self):
        return f"{self.rods} x {self.segments} segments, dt = {self.dt:.3g} t0"


def around(angle):
    """Places at angles of the circle (n, 3)."""
    return LENGTH / (2 * np.pi) * np.stack([np.cos(angle), np.sin(angle), np.zeros_like(angle)], axis=1)


class Ours:
    """Here: RodElasticity and the word ABA."""

    name = f"medyanpy {mp.__version__}"

    def __init__(self, case):
        n = case.segments
        ds, angle = LENGTH / n, 2 * np.pi * (np.arange(n) + 0.5) / n
        # About z by the angle, after d1, d2, d3 were turned to z, x, y.
        w, z = np.cos(angle / 2), np.sin(angle / 2)
        orientations = 0.5 * np.stack([w + z, z - w, -w - z, z - w], axis=1)
        nodes = [around(angle) + [0.0, 0.0, 10.0 * k] for k in range(case.rods)]
        topology = mp.Topology()
        rods = topology.add_rods(nodes, [orientations] * case.rods, segment_length=ds, linear_density=AREA,
                                 inertia_density=SECOND_MOMENT * np.array([1.0, 1.0, 2.0]))  # fmt: skip
        system = mp.System(topology)
        system.add_force(mp.forces.RodElasticity(rods, shear=(SHEAR * AREA, SHEAR * AREA), extension=YOUNG * AREA,
                                                 bending=(YOUNG * SECOND_MOMENT, YOUNG * SECOND_MOMENT),
                                                 twist=2 * SHEAR * SECOND_MOMENT))  # fmt: skip
        self._context = mp.Context(system, mp.SplittingIntegrator("ABA", case.dt), threads=1)

    def step(self, n):
        self._context.step(n)

    def energy(self):
        state = self._context.get_state(energy=True)
        return state.potential_energy + state.kinetic_energy


class PyElastica:
    """PositionVerlet on one block of Cosserat rods, no damping."""

    def __init__(self, case):
        import elastica
        from elastica.version import VERSION

        self.name = f"PyElastica {VERSION}"

        class Rods(elastica.BaseSystemCollection):
            pass

        n, self._system = case.segments, Rods()
        nodes = around(2 * np.pi * np.arange(n + 1) / n).T
        d3 = np.diff(nodes, axis=1)
        d3 /= np.linalg.norm(d3, axis=0)
        d1 = np.tile([[0.0], [0.0], [1.0]], n)
        self._rods = []
        for k in range(case.rods):
            rod = elastica.CosseratRod.straight_rod(n, start=np.array([0.0, 0.0, 10.0 * k]),
                                                    direction=np.array([0.0, 1.0, 0.0]),
                                                    normal=np.array([0.0, 0.0, 1.0]), base_length=LENGTH,
                                                    base_radius=DIAMETER / 2, density=1.0, youngs_modulus=YOUNG,
                                                    shear_modulus=SHEAR)  # fmt: skip
            rod.shear_matrix[:2, :2] *= 28.0 / 27.0
            rod.position_collection[:] = nodes + [[0.0], [0.0], [10.0 * k]]
            rod.director_collection[:] = np.stack([d1, np.cross(d3, d1, axis=0), d3])
            self._system.append(rod)
            self._rods.append(rod)
        self._system.finalize()
        self._stepper, self._t, self._dt = elastica.PositionVerlet(), 0.0, case.dt

    def step(self, n):
        for _ in range(n):
            self._t = self._stepper.step(self._system, self._t, self._dt)

    def energy(self):
        # The strains are those of the middle of the step until they are asked for.
        for system in self._system.final_systems():
            system.compute_internal_forces_and_torques(self._t)
        return sum(
            r.compute_translational_energy()
            + r.compute_rotational_energy()
            + r.compute_bending_energy()
            + r.compute_shear_energy()
            for r in self._rods
        )


def measure(program, case, steps, repeats):
    """Node-steps/s: the median over repeats, and their spread (largest less least over the median)."""
    run = program(case)
    run.step(20)
    rates = []
    for _ in range(repeats):
        started = time.process_time()
        run.step(steps)
        rates.append(steps * case.rods * case.segments / (time.process_time() - started))
    return run.name, float(np.median(rates)), float(np.ptp(rates) / np.median(rates))


def drift(program, case, times):
    """E/E0 - 1 at the given times in t0, and the largest of |E/E0 - 1| until then, looked at every 100 t0."""
    run = program(case)
    start, t, largest, out = run.energy(), 0.0, 0.0, []
    for end in times:
        while t < end - 1e-6:
            # Looks are at multiples of 100 and at the times themselves.
            stop = min(end, 100.0 * np.floor(t / 100.0 + 1.0))
            run.step(round((stop - t) / case.dt))
            t, e = stop, run.energy() / start - 1.0
            largest = max(largest, abs(e))
        out.append((end, e, largest))
    return run.name, start, out


def draw_drifts(programs, end, path):
    """Energies of one rod of 63 segments against time, a point every hundredth of it."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(5.5, 3.0), layout="constrained")
    for program in programs:
        name, _, out = drift(program, Case(1, 63), np.linspace(0.01, 1.0, 100) * end)
        t, e, _ = np.transpose(out)
        axis.plot(t, 1.0 + e, linewidth=1, label=name)
    axis.set(xlabel="$t/t_0$", ylabel="$E/E_0$")
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend(frameon=False, fontsize=8)
    figure.savefig(path, dpi=100)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--quick", action="store_true", help="small numbers: does it run?")
    parser.add_argument("--no-energy", action="store_true", help="rates only")
    parser.add_argument("--only", choices=("Ours", "PyElastica"), help="one of the programs")
    parser.add_argument("--figure", type=Path, help="draw energies against time into this file, and no more")
    options = parser.parse_args()
    programs = [p for p in (Ours, PyElastica) if options.only in (None, p.__name__)]
    if options.figure is not None:
        draw_drifts(programs, 1e4 if options.quick else 3e5, options.figure)
        return
    few = 50 if options.quick else 1
    print(f"{'':42s}{'':18s} node-steps/s   spread   us/step")
    for case in (Case(1, 63), Case(1, 630), Case(100, 63)):
        for program in programs:
            steps = max(2, 1_000_000 // (case.rods * case.segments * few))
            name, rate, spread = measure(program, case, steps, 3 if options.quick else 15)
            per_step = 1e6 * case.rods * case.segments / rate
            print(f"{case!s:42s}{name:18s} {rate:12.3g} {spread:8.0%} {per_step:9.1f}", flush=True)
    if options.no_energy:
        return
    times = [100.0, 200.0] if options.quick else [1e3, 1e4, 2e4, 3e4, 1e5, 2e5, 3e5]
    print(f"\n{Case(1, 63)}: E/E0 - 1 (largest until then)")
    for program in programs:
        name, start, out = drift(program, Case(1, 63), times)
        print(f"    {name:18s} E0 = {start:.6g}")
        for t, e, largest in out:
            print(f"        {t:8.0f} t0  {e:+.2e}  ({largest:.2e})", flush=True)


if __name__ == "__main__":
    main()
