"""Clusters of TIP3P water (Tao and Owhadi, section 4.3): their numbers, and a table of times.

    python tests/validation/coarse/water.py [--quick] [--only ...]

Molecules are rigid by constraints (SHAKE and RATTLE: rings of three nodes) or nearly so by penalties with stiff
Zhang-Skeel kicks. A full run takes some minutes. Figures 4 to 7 are made by `tests/validation/figures --seed 001`.

Units are kcal/mol, angstrom and g/mol, which the paper does not state: then the unit of time is 48.888 fs, h = 0.05 is
2.44 fs, and kT = 1/50 is 10.06 K.
"""

import argparse
import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

import medyanpy as mp
from medyanpy import forces, kicks, presets, units
from medyanpy.context import Context
from medyanpy.integrators import SplittingIntegrator
from medyanpy.simulation import Simulation
from medyanpy.system import System
from medyanpy.topology import Topology

WATER = presets.tip3p()
LENGTH, ENERGY, MASS = units.angstrom, units.kilocalorie_per_mole, units.dalton
TIME = np.sqrt(MASS * LENGTH**2 / ENERGY)
MASSES = WATER.masses / MASS
SIDES = WATER.lengths / LENGTH
CHARGE_CONSTANT = units.coulomb_constant / (ENERGY * LENGTH)

# Of the paper, but beta, which it gives for its other examples only: 0.3 and 0.4. What it does is in `betas`.
H, KT, FRICTION, OMEGA, BETA = 0.05, 1.0 / 50.0, 0.01, 20.0, 0.3


# Clusters ----------------------------------------------------------------------------------------------------------


def system_of(x: np.ndarray, penalty: Any = None, friction: Any = FRICTION) -> Any:
    """The molecules at x (3n, 3), H, O, H of each, and their beads: rigid, or with penalties of ω = `penalty`."""
    n = len(x) // 3
    topology = Topology()
    numbers = np.arange(3 * n).reshape(n, 3)
    within = np.stack([numbers, np.roll(numbers, -1, axis=1)], axis=-1).reshape(-1, 2)
    masses = np.tile(MASSES, n)
    if penalty is None:
        starts, lengths = np.arange(0, 3 * n + 1, 3), np.tile(SIDES, n)
        atoms: Any = topology.add_filaments(exact_sides(x), masses, friction, closed=True, starts=starts,
                                            link_lengths=lengths, name="water")  # fmt: skip
    else:
        atoms = topology.add_beads(x, masses, friction, name="water")
    system = System(topology)
    oxygens = atoms.beads[1::3]
    epsilon, sigma = WATER.epsilon / ENERGY, WATER.sigma / LENGTH
    system.add_force(forces.LennardJones(oxygens, oxygens, epsilon, sigma))
    system.add_force(forces.Coulomb(atoms, np.tile(WATER.charges, n), CHARGE_CONSTANT, exclusions=within))
    if penalty is not None:
        system.add_force(forces.RigidTrianglePenalty(numbers, penalty, SIDES))
    return system


def exact_sides(x: np.ndarray) -> Any:
    """Sides to round-off, about the centre of mass of each molecule: what add_filaments asks for."""
    out = np.empty((len(x) // 3, 3, 3))
    for m, (h1, o, h2) in enumerate(x.reshape(-1, 3, 3)):
        along = 0.5 * (h1 + h2) - o
        along /= np.linalg.norm(along)
        across = h1 - h2 - along * ((h1 - h2) @ along)
        across *= 0.5 * SIDES[2] / np.linalg.norm(across)
        along = along * np.sqrt(SIDES[0] ** 2 - 0.25 * SIDES[2] ** 2)
        body = np.array([along + across, np.zeros(3), along - across])
        out[m] = body + (MASSES @ np.array([h1, o, h2]) - MASSES @ body) / MASSES.sum()
    return out.reshape(-1, 3)


def start(n: int, seed: int = 1, steps: int = 20_000) -> Any:
    """(3n, 3) a cluster: molecules at random, minimised, then cooled from kT = 0.4 to 0.02 under strong friction."""
    rng = np.random.default_rng(seed)
    centers: list[Any] = []
    radius = 1.1 * (n * 30.0 * 3.0 / (4.0 * np.pi)) ** (1.0 / 3.0)
    while len(centers) < n:
        new = rng.uniform(-radius, radius, 3)
        if new @ new < radius**2 and all(np.linalg.norm(new - old) > 2.5 for old in centers):
            centers.append(new)
    nodes = WATER.arguments(np.array(centers) * LENGTH, seed=seed)["nodes"] / LENGTH
    system = system_of(nodes, friction=10.0)
    x = None
    for k, kT in enumerate(np.geomspace(0.4, KT, 8)):
        simulation = Simulation(system, SplittingIntegrator("BAOAB", H, kT=kT, seed=seed), threads=1)
        if x is None:
            simulation.minimize_energy(tolerance=1.0)
        else:
            simulation.context.set_positions(x)
        simulation.context.set_velocities_to_temperature(kT=kT, seed=100 * seed + k)
        simulation.step(steps // 8)
        x = simulation.context.get_state(positions=True).positions
    return np.array(x)


def rest(x: np.ndarray, penalty: Any = None, tolerance: float = 1e-2) -> Any:
    """(3n, 3) where forces vanish, near x: there q and x of linearly implicit kicks are the same."""
    # Its integrator only minimises, which takes no timestep; this is one that the penalties bear.
    simulation = Simulation(system_of(x, penalty), SplittingIntegrator("BAB", 1e-3), threads=1)
    simulation.minimize_energy(tolerance=tolerance, max_iterations=0)
    return np.array(simulation.context.get_state(positions=True).positions)


def velocities(x: np.ndarray, seed: int, kT: Any = 2.0 * KT) -> Any:
    """(3n, 3) of rigid molecules; at twice the temperature where they start at rest, which takes half."""
    context = Context(system_of(x), SplittingIntegrator("BAB", H), threads=1)
    context.set_velocities_to_temperature(kT=kT, seed=seed)
    return np.array(context.get_state(velocities=True).velocities)


# Methods -----------------------------------------------------------------------------------------------------------


class Shake:
    """Constraints: the word OBABO with noise, BAB without."""

    name = "SHAKE"
    penalty: float | None = None

    def __init__(self, x: np.ndarray, v: np.ndarray, kT: float | None = None, h: float = H, seed: int = 1,
                 threads: int = 1) -> None:  # fmt: skip
        word = "BAB" if kT is None else "OBABO"
        integrator = SplittingIntegrator(word, h, kT=kT, seed=seed)
        self.context: Context = Context(system_of(x), integrator, threads=threads)
        self.context.set_velocities(v)

    def step(self, n: int) -> None:
        self.context.step(n)

    def physical(self) -> Any:
        """(3n, 3) where atoms are."""
        return self.context.get_state(positions=True).positions

    def velocities(self) -> Any:
        return self.context.get_state(velocities=True).velocities

    def kinetic_energy(self) -> Any:
        return self.context.get_state(energy=True).kinetic_energy


class ZhangSkeelStiff(Shake):
    """Penalties, with their second derivatives alone in the equations: (19) of the paper, and its GLA, OBABO."""

    name = "Z&S, stiff"
    penalty: float | None = OMEGA

    def __init__(self, x: np.ndarray, v: np.ndarray, kT: float | None = None, h: float = H, seed: int = 1,
                 threads: int = 1, omega: float = OMEGA, beta: float = BETA,
                 positive: bool = False) -> None:  # fmt: skip
        system = system_of(x, omega)
        kick = kicks.ZhangSkeelStiff(beta, stiff=["RigidTrianglePenalty"], positive_definite=positive)
        word = "BAB" if kT is None else "OBABO"
        integrator = SplittingIntegrator(word, h, kT=kT, seed=seed, kick=kick)
        self.context: Context = Context(system, integrator, threads=threads)
        # Where x is no place of rest, coordinates and not atoms have their sides at first: with x - beta h^2 a of
        # atoms, sides would be off by beta h^2 times what other forces alone accelerate them by, which is not stable.
        self.context.set_velocities(v)

    def physical(self) -> Any:
        return self.context.physical_positions()


class ZhangSkeel(ZhangSkeelStiff):
    """All second and third derivatives, (3) of the paper: symplectic."""

    name = "Z&S, symplectic"

    def __init__(self, x: np.ndarray, v: np.ndarray, h: Any = H, omega: Any = OMEGA, beta: Any = BETA) -> None:
        integrator = SplittingIntegrator("BAB", h, kick=kicks.ZhangSkeel(beta))
        self.context: Context = Context(system_of(x, omega), integrator, threads=1)
        self.context.set_velocities(v)


class SmallSteps(Shake):
    """The same penalties with explicit kicks, as many times smaller steps as they need: what Z&S approximates."""

    name = "penalties, h = 0.01"
    penalty: float | None = OMEGA
    parts = 5

    def __init__(self, x: np.ndarray, v: np.ndarray, kT: float | None = None, seed: int = 1, threads: int = 1,
                 omega: float = OMEGA) -> None:  # fmt: skip
        word = "BAB" if kT is None else "BAOAB"
        integrator = SplittingIntegrator(word, H / self.parts, kT=kT, seed=seed)
        self.context: Context = Context(system_of(x, omega), integrator, threads=threads)
        self.context.set_velocities(v)

    def step(self, n: int) -> None:
        self.context.step(n * self.parts)


class NewmarkPartly:
    """Newmark's method in q, (12), whose equation for q is given one Newton step, from the q before: not symplectic."""

    name = "Newmark, one Newton step"
    penalty: float | None = OMEGA

    def __init__(self, x: np.ndarray, v: np.ndarray, h: Any = H, omega: Any = OMEGA, beta: Any = BETA) -> None:
        self._law = Penalised(x, omega)
        self._mass = np.repeat(np.tile(MASSES, len(x) // 3), 3)
        self._q, self._v, self._h, self._beta = x.ravel().copy(), v.ravel().copy(), h, beta
        self._a = self._law.force(self._q) / self._mass

    def step(self, n: int) -> None:
        h, scale = self._h, self._beta * self._h**2
        for _ in range(n):
            ahead = self._q + h * self._v + (0.5 - self._beta) * h * h * self._a
            matrix = scale * self._law.hessian(self._q) + np.diag(self._mass)
            rest = self._mass * (ahead - self._q) + scale * self._law.force(self._q)
            q = self._q + np.linalg.solve(matrix, rest)
            a = (q - ahead) / scale
            self._v = self._v + 0.5 * h * (self._a + a)
            self._q, self._a = q, a

    def physical(self) -> Any:
        return self._q.reshape(-1, 3)

    def velocities(self) -> Any:
        return self._v.reshape(-1, 3)


class Penalised:
    """Energy, force and Hessian at given positions."""

    def __init__(self, x: np.ndarray, omega: Any) -> None:
        integrator = SplittingIntegrator("BAB", 1e-3)
        self._context = Context(system_of(x) if omega is None else system_of(x, omega), integrator, threads=1)

    def _at(self, q: np.ndarray, **wanted: Any) -> Any:
        self._context.set_positions(q.reshape(-1, 3))
        return self._context.get_state(**wanted)

    def energy(self, q: np.ndarray) -> Any:
        return self._at(q, energy=True).potential_energy

    def force(self, q: np.ndarray) -> Any:
        return self._at(q, forces=True).forces.reshape(q.shape)

    def hessian(self, q: np.ndarray) -> Any:
        self._context.set_positions(q.reshape(-1, 3))
        return self._context.hessian().toarray()


# What is measured --------------------------------------------------------------------------------------------------


def oxygen_distances(x: np.ndarray) -> Any:
    o = x[1::3]
    i, j = np.triu_indices(len(o), 1)
    return np.linalg.norm(o[i] - o[j], axis=1)


def sampled(method: Any, t_end: float, bins: Any, every: int = 10, burn: float = 0.1) -> Any:
    """Histogram of distances between oxygens, as a density over all pairs, in ten parts of the run; the mean kinetic
    energy; and seconds."""
    began = time.perf_counter()
    parts = np.zeros((10, len(bins) - 1))
    n = round(t_end / H)
    method.step(round(burn * n))
    looks, kinetic = round((1.0 - burn) * n) // every, 0.0
    for k in range(looks):
        method.step(every)
        parts[10 * k // looks] += np.histogram(oxygen_distances(method.physical()), bins)[0]
        kinetic += method.kinetic_energy()
    seconds = time.perf_counter() - began
    return parts / (parts.sum(axis=1, keepdims=True) * np.diff(bins)), kinetic / looks, seconds


def unlike(p: Any, q: np.ndarray, bins: Any) -> Any:
    """Half the integral of |p - q|: 0 for equal densities, 1 for ones that do not overlap."""
    return 0.5 * np.sum(np.abs(p - q) * np.diff(bins))


def sides(x: np.ndarray) -> Any:
    """(n, 3) differences between the atoms of each side."""
    molecule = x.reshape(-1, 3, 3)
    return np.roll(molecule, -1, axis=1) - molecule


def exact_multipliers(x: np.ndarray, v: np.ndarray, f: Any) -> Any:
    """(n, 3) λ of M a = f + Σ λ ∇g with g = r² - ℓ² of the three sides of rigid molecules: d²g/dt² = 0."""
    d, w = sides(x), sides(v)
    gradient = np.zeros((len(d), 3, 3, 3))
    for k in range(3):
        gradient[:, k, k] = -2.0 * d[:, k]
        gradient[:, k, (k + 1) % 3] = 2.0 * d[:, k]
    by_mass = gradient / MASSES[:, None]
    matrix = np.einsum("mkac,mlac->mkl", gradient, by_mass)
    right = np.einsum("mkac,mac->mk", by_mass, f.reshape(-1, 3, 3)) + 2.0 * np.einsum("mkc,mkc->mk", w, w)
    return -np.linalg.solve(matrix, right[..., None])[..., 0]


@dataclass
class Conserved:
    """Of a run without noise, at times t: energy, momentum and angular momentum about the origin."""

    t: np.ndarray
    energy: np.ndarray
    momentum: np.ndarray
    angular: np.ndarray

    @classmethod
    def of(cls, run: Any, law: Any, x: np.ndarray, t_end: Any, every: int = 20, h: Any = H) -> Any:
        mass = np.tile(MASSES, len(x) // 3)[:, None]
        rows: Any = []
        for k in range(round(t_end / h / every) + 1):
            if k:
                run.step(every)
            q, v = run.physical(), run.velocities()
            energy = law.energy(q) + 0.5 * np.sum(mass * v * v)
            rows.append([k * every * h, energy, *(mass * v).sum(axis=0), *np.cross(q, mass * v).sum(axis=0)])
            if not np.isfinite(energy) or abs(energy - rows[0][1]) > 10.0 * abs(rows[0][1]):
                break
        rows = np.array(rows)
        return cls(rows[:, 0], rows[:, 1], rows[:, 2:5], rows[:, 5:8])

    def changes(self) -> Any:
        """The largest of each, of any component."""
        of = [self.energy[:, None], self.momentum, self.angular]
        return [float(np.abs(a - a[0]).max()) for a in of]


# Times ---------------------------------------------------------------------------------------------------------

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
