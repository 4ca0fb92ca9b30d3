"""The same worm-like chains here and in OpenMM: links as constraints, bending, Langevin dynamics, no other force.

    python tests/benchmarks/peers/worm_like_chains.py [--quick] [--no-distribution]

OpenMM (``pip install openmm``) is not needed by anything else. One thread each; rates, link errors and temperatures
are those of this run, each program in turn, and times are those of the processor, so that other work on the machine
does not count. Chains start from the same places.

OpenMM has the bending energy as a CustomAngleForce: with a HarmonicAngleForce its constraint solver takes the rest
angles for the angles there are, and diverges.
"""

import argparse
import time
from dataclasses import dataclass

import numpy as np

import medyanpy as mp
from medyanpy import units

# A bead of 100 u every 0.38 nm.
LINK, MASS, TEMPERATURE, TIMESTEP = 0.38, 100.0 * units.dalton, 300.0, 0.02e-12
KT = TEMPERATURE * units.boltzmann
PICOSECOND = 1e-12


@dataclass(frozen=True)
class Case:
    """n chains of `beads` beads; `persistence` in links is the stiffness of a joint over kT."""

    chains: int
    beads: int
    persistence: float
    friction: float = 1.0 / PICOSECOND

    def __str__(self):
        return f"{self.chains} x {self.beads} beads, persistence {self.persistence:g} links"


def places(case, seed=1, straight=False):
    """(chains, beads, 3) nm: sampled joint by joint, or straight rods."""
    rng = np.random.default_rng(seed)
    t = np.empty((case.chains, case.beads - 1, 3))
    t[:, 0] = rng.normal(size=(case.chains, 3))
    t[:, 0] /= np.linalg.norm(t[:, 0], axis=1, keepdims=True)
    for k in range(1, case.beads - 1):
        a = case.persistence
        c = 1.0 + np.log1p(rng.uniform(size=case.chains) * np.expm1(-2.0 * a)) / a
        c = np.ones(case.chains) if straight else c
        across = np.cross(t[:, k - 1], rng.normal(size=(case.chains, 3)))
        across *= np.sqrt(np.maximum(1.0 - c * c, 0.0) / np.sum(across**2, axis=1))[:, None]
        t[:, k] = c[:, None] * t[:, k - 1] + across
        t[:, k] /= np.linalg.norm(t[:, k], axis=1, keepdims=True)
    return np.concatenate([np.zeros((case.chains, 1, 3)), LINK * np.cumsum(t, axis=1)], axis=1)


def link_errors(x):
    """Relative errors of all lengths of (chains, beads, 3)."""
    return np.abs(np.linalg.norm(np.diff(x, axis=1), axis=2) / LINK - 1.0)


class Ours:
    """Here: BAOAB, links to 1e-10."""

    name = f"medyanpy {mp.__version__}"

    def __init__(self, case, x, threads=1, seed=1):
        topology = mp.Topology()
        chains = topology.add_filaments(list(x), node_mass=MASS, node_friction=MASS * case.friction, link_lengths=LINK)
        system = mp.System(topology)
        system.add_force(mp.forces.FilamentBending(chains, case.persistence * KT * LINK))
        integrator = mp.SplittingIntegrator("BAOAB", TIMESTEP, temperature=TEMPERATURE, seed=seed)
        self._context, self._shape = mp.Context(system, integrator, threads=threads), x.shape
        self._context.set_velocities_to_temperature(TEMPERATURE, seed=seed)

    def step(self, n):
        self._context.step(n)

    def look(self):
        """Places and temperature."""
        state = self._context.get_state(positions=True, energy=True)
        return state.positions.reshape(self._shape), state.temperature


class OpenMM:
    """LangevinMiddleIntegrator (BAOAB with one kick a step), distance constraints to 1e-5, platform CPU."""

    def __init__(self, case, x, threads=1, seed=1, tolerance=1e-5):
        import openmm
        from openmm import unit

        self.name = f"OpenMM {openmm.version.short_version}"
        self._unit, n = unit, case.chains * case.beads
        system = openmm.System()
        for _ in range(n):
            system.addParticle(MASS / units.dalton)
        number = np.arange(n).reshape(case.chains, case.beads)
        for a, b in zip(number[:, :-1].ravel().tolist(), number[:, 1:].ravel().tolist(), strict=True):
            system.addConstraint(a, b, LINK)
        # Of the angle at the middle bead, which is π where the chain is straight.
        bending = openmm.CustomAngleForce("k*(1 + cos(theta))")
        bending.addGlobalParameter("k", case.persistence * KT / units.kilojoule_per_mole)
        triples = (number[:, k : case.beads - 2 + k].ravel().tolist() for k in range(3))
        for a, b, c in zip(*triples, strict=True):
            bending.addAngle(a, b, c, [])
        system.addForce(bending)
        friction, timestep = case.friction * PICOSECOND / unit.picosecond, TIMESTEP / PICOSECOND * unit.picosecond
        integrator = openmm.LangevinMiddleIntegrator(TEMPERATURE * unit.kelvin, friction, timestep)
        integrator.setConstraintTolerance(tolerance)
        integrator.setRandomNumberSeed(seed)
        platform = openmm.Platform.getPlatformByName("CPU")
        self._context = openmm.Context(system, integrator, platform, {"Threads": str(threads)})
        self._context.setPositions(x.reshape(-1, 3) * unit.nanometer)
        self._context.setVelocitiesToTemperature(TEMPERATURE * unit.kelvin, seed)
        self._integrator, self._shape = integrator, x.shape
        self._freedom = 3 * n - case.chains * (case.beads - 1)

    def step(self, n):
        self._integrator.step(n)

    def look(self):
        state = self._context.getState(getPositions=True, getEnergy=True)
        x = state.getPositions(asNumpy=True).value_in_unit(self._unit.nanometer)
        energy = state.getKineticEnergy().value_in_unit(self._unit.kilojoule_per_mole) * units.kilojoule_per_mole
        return np.asarray(x).reshape(self._shape), 2.0 * energy / (self._freedom * units.boltzmann)


def measure(program, case, steps, frames, x):
    """Rate in bead-steps/s (median over frames), largest and rms link error, mean temperature and its error."""
    run = program(case, x)
    run.step(2)
    rates, errors, temperatures = [], [], []
    for _ in range(frames):
        started = time.process_time()
        run.step(steps)
        rates.append(steps * case.chains * case.beads / (time.process_time() - started))
        x, temperature = run.look()
        errors.append(link_errors(x))
        temperatures.append(temperature)
    # The first third of the frames is left to forget the start.
    late = np.array(temperatures[frames // 3 :])
    return {
        "program": run.name,
        "case": str(case),
        "rate": float(np.median(rates)),
        "largest": float(np.max(errors)),
        "rms": float(np.sqrt(np.mean(np.square(errors)))),
        "temperature": float(late.mean()),
        "error": float(late.std(ddof=1) / np.sqrt(len(late))),
    }


def end_to_end_squares(program, case, steps, frames, seed=1):
    """(frames, chains) R² of straight rods that were let go, every `steps` steps."""
    run = program(case, places(case, seed, straight=True), seed=seed)
    out = []
    for _ in range(frames):
        run.step(steps)
        x, _ = run.look()
        out.append(np.sum((x[:, -1] - x[:, 0]) ** 2, axis=1))
    return np.array(out)


def exact_end_to_end_squares(case, n, seed=3):
    """R² of n chains under e^{-E/kT} √det C, C the metric of the lengths: chosen by the root among ten times as many
    that were sampled joint by joint."""
    x = places(Case(10 * n, case.beads, case.persistence), seed)
    t = np.diff(x, axis=1) / LINK
    c = np.sum(t[:, 1:] * t[:, :-1], axis=2)
    # The determinant of a tridiagonal matrix with 1 on the diagonal and -c/2 beside it.
    before, now = np.ones((2, len(x)))
    for k in range(c.shape[1]):
        before, now = now, now - 0.25 * c[:, k] ** 2 * before
    weight = np.sqrt(now)
    chosen = np.random.default_rng(seed).choice(len(x), n, p=weight / weight.sum())
    return np.sum((x[chosen, -1] - x[chosen, 0]) ** 2, axis=1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--quick", action="store_true", help="small numbers: does it run?")
    parser.add_argument("--no-distribution", action="store_true", help="rates, link errors and temperatures only")
    options = parser.parse_args()
    few = 20 if options.quick else 1
    cases = [Case(1000 // few, 32, 10.0), Case(1000 // few, 32, 300.0), Case(1, 10000 // few, 300.0)]
    print(f"{'':46s}{'':16s} bead-steps/s  link error: largest      rms   temperature (K)")
    for case in cases:
        x = places(case)
        for program in (Ours, OpenMM):
            steps = max(1, (2_000_000 if program is Ours else 500_000) // (case.chains * case.beads * few))
            m = measure(program, case, steps, 30, x)
            print(
                f"{m['case']:46s}{m['program']:16s} {m['rate']:12.3g} {m['largest']:20.1e} {m['rms']:8.1e} "
                f"{m['temperature']:9.2f} ± {m['error']:.2f}",
                flush=True,
            )
    if options.no_distribution:
        return
    from scipy import stats

    case = Case(200 // few, 32, 10.0, friction=0.05 / PICOSECOND)
    print(f"\nend to end, {case}, friction 0.05/ps, straight at first, from 180 ps on every 60 ps:")
    steps, skip = 3000 // few, 3
    squares = {}
    for program in (Ours, OpenMM):
        squares[program.__name__] = end_to_end_squares(program, case, steps, skip + 2)[skip - 1 :]
    squares["sampled directly"] = exact_end_to_end_squares(case, 20_000)[None]
    for name, r2 in squares.items():
        of_chain = r2.mean(axis=0)
        print(
            f"    {name:18s} ⟨R²⟩ = {r2.mean():.4f} ± {of_chain.std(ddof=1) / np.sqrt(len(of_chain)):.4f} nm², "
            f"standard deviation of R² {r2.std():.4f}"
        )
    for a, b in (("Ours", "OpenMM"), ("Ours", "sampled directly"), ("OpenMM", "sampled directly")):
        # Of the last frame: independent chains.
        test = stats.ks_2samp(squares[a][-1], squares[b][-1])
        print(f"    {a} and {b}: Kolmogorov-Smirnov distance {test.statistic:.3f}, p = {test.pvalue:.2g}")


if __name__ == "__main__":
    main()
