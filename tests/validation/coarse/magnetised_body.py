"""Numbers of section 4.5 of Tao and Owhadi: a magnetised rigid body whose orientation is a matrix.

    python tests/validation/coarse/magnetised_body.py [--quick]

The body has moments of inertia 1 about all axes, its dipole is R e3 in a field along e3: V = Bμ R33. The package holds
R near rotations by a penalty: columns of R are beads of mass 1/2. Beside it the paper's method on the group, (34) and
(35), and Euler's equations at 12 digits, both here in NumPy. The paper does not state Bμ, nor how long its runs are.
"""

import argparse
import time
import warnings
from typing import Any

import numpy as np

import medyanpy as mp
from medyanpy import forces
from medyanpy._tools.quaternions import matrices
from medyanpy.context import Context
from medyanpy.errors import TimestepWarning
from medyanpy.integrators import SplittingIntegrator
from medyanpy.system import System
from medyanpy.topology import Topology

OMEGA_0 = np.array([1.0, 0.2, 0.1])
FIELD, STIFFNESS, H = 1.0, 10.0, 0.1
E3 = np.array([0.0, 0.0, 1.0])
# Seconds of the paper, of whole runs.
PAPER = {"Zhang & Skeel": 0.03, "Lie group": 1.45}


# The body by the package ----------------------------------------------------------------------------------------


def hat(w: Any) -> Any:
    return np.array([[0.0, -w[2], w[1]], [w[2], 0.0, -w[0]], [-w[1], w[0], 0.0]])


def energy(r: np.ndarray, velocity: np.ndarray, field: Any = FIELD) -> Any:
    """¼ tr(ṘᵀṘ) + Bμ R33 of matrices (k, 3, 3): the penalty, which is the method's, is left out."""
    return 0.25 * np.sum(velocity**2, axis=(1, 2)) + field * r[:, 2, 2]


def off_orthogonal(r: np.ndarray) -> Any:
    """Frobenius norm of RᵀR - 1."""
    return np.linalg.norm(np.swapaxes(r, 1, 2) @ r - np.eye(3), axis=(1, 2))


def body(kick: Any, h: Any = H, word: str = "BAB", omega: Any = STIFFNESS, field: Any = FIELD) -> Any:
    """A Context with the three columns of R as beads."""
    topology = Topology()
    columns = topology.add_beads(np.eye(3), mass=0.5)
    system = System(topology)
    system.add_force(forces.OrthonormalFramePenalty([columns.beads], omega=omega))
    # R33 is the z of the third column.
    system.add_force(forces.UniformField(columns.beads[2:], [0.0, 0.0, -field]))
    with warnings.catch_warnings():
        # β below 1/4: the paper's, and stable for the stiffest mode here.
        warnings.filterwarnings("ignore", ".* is below 1/4", TimestepWarning)
        integrator = SplittingIntegrator(word, h, kick=kick, symmetric=word != "BA")
        context = Context(system, integrator, threads=1)
    # Rows of a state are columns of R.
    context.set_velocities(hat(OMEGA_0).T)
    return context


def package(kick: Any, n: int, every: int = 1, **options: Any) -> Any:
    """Coordinates X and places R = X + βh²a, (k, 3, 3) each, velocities, and seconds without looks in between."""
    context, rows = body(kick, **options), []
    for k in range(n // every + 1):
        if k:
            context.step(every)
        state = context.get_state(positions=True, velocities=True)
        rows.append((state.positions.T, context.physical_positions().T, state.velocities.T))
    x, r, v = (np.array(part) for part in zip(*rows, strict=True))
    context = body(kick, **options)
    began = time.perf_counter()
    context.step(n)
    return x, r, v, time.perf_counter() - began


def rigid_body(h: float, n: int, every: int = 1, field: Any = FIELD, word: str = "BAB", kick: Any = None) -> Any:
    """The same body as one that turns, by the package: R (k, 3, 3) and its rates of every `every`-th step.

    Its orientation is a unit quaternion at every step: a method on the group. With the word "BA" and the kick
    `HamiltonPontryagin` it is the paper's, (34).
    """
    topology = Topology()
    one = topology.add_rigid_bodies([[0.0, 0.0, 0.0]], [[1.0, 0.0, 0.0, 0.0]], 1.0, [1.0, 1.0, 1.0])
    system = System(topology)
    # A dipole of the moment 1 along its third axis.
    poles = one.sites([[0.0, 0.0, 0.5], [0.0, 0.0, -0.5]])
    system.add_force(forces.UniformField(poles, [[0.0, 0.0, -field], [0.0, 0.0, field]]))
    context = Context(system, SplittingIntegrator(word, h, kick=kick, symmetric=word != "BA"), threads=1)
    context.set_angular_momenta([OMEGA_0])
    found, spins = [], []
    for k in range(n // every + 1):
        if k:
            context.step(every)
        state = context.get_state(positions=True, velocities=True)
        found.append(state.orientations[0])
        spins.append(state.angular_momenta[0])
    r = matrices(np.array(found))
    return r, r @ np.array([hat(w) for w in spins])


# Independent programs ----------------------------------------------------------------------------------------------


def exact(times, field=FIELD):
    """R (k, 3, 3) and Ω (k, 3) of Ṙ = R Ω̂, Ω̇ = Bμ Rᵀe3 × e3, to 12 digits."""
    from scipy.integrate import solve_ivp

    def rate(_, y):
        r, w = y[:9].reshape(3, 3), y[9:]
        return np.concatenate([(r @ hat(w)).ravel(), field * np.cross(r.T @ E3, E3)])

    y0 = np.concatenate([np.eye(3).ravel(), OMEGA_0])
    found = solve_ivp(rate, (0.0, times[-1]), y0, method="DOP853", rtol=1e-13, atol=1e-13, t_eval=times)
    return found.y[:9].T.reshape(-1, 3, 3), found.y[9:].T


def lie_group(h, n, every=1, field=FIELD):
    """(34) with (35): R (k, 3, 3) and Ω (k, 3) of every `every`-th step, and the seconds it took.

    Ω̂ᵀΩ̂Ω̂ᵀ is Ω̂³ = -|Ω|²Ω̂, so that (34) is an equation for (1 + h²|Ω|²/4) Ω; solved by Newton's method for |Ω|.
    """
    r, w = np.eye(3), OMEGA_0.copy()
    one, kept = np.eye(3), [(np.eye(3), OMEGA_0)]
    began = time.perf_counter()
    for k in range(1, n + 1):
        p = (1.0 + 0.25 * h * h * (w @ w)) * w + h * field * np.cross(r[2], E3)
        size = np.sqrt(p @ p)
        s = size
        while True:
            step = (s + 0.25 * h * h * s**3 - size) / (1.0 + 0.75 * h * h * s * s)
            s -= step
            if abs(step) <= 1e-15 * size:
                break
        w = p / (1.0 + 0.25 * h * h * s * s)
        turn = 0.5 * h * hat(w)
        r = r @ np.linalg.solve(one - turn, one + turn)
        if k % every == 0:
            kept.append((r, w))
    seconds = time.perf_counter() - began
    return np.array([a for a, _ in kept]), np.array([b for _, b in kept]), seconds


def printed_kick(r, beta, h, omega=STIFFNESS, field=FIELD):
    """a of (37), and f_k as the paper prints it and as it follows from (36), for matrices R (3, 3)."""
    bare = -field * np.outer(E3, E3) - 2.0 * omega**2 * (r @ r.T @ r - r)
    rows = []
    for unit in np.eye(9).reshape(9, 3, 3):
        rows.append(
            (unit + 2.0 * omega**2 * beta * h * h * (unit @ r.T @ r + r @ unit.T @ r + r @ r.T @ unit - unit)).ravel()
        )
    a = np.linalg.solve(np.array(rows).T, bare.ravel()).reshape(3, 3)
    last = 2.0 * omega**2 * beta**2 * h**4
    printed = a + last * (a.T @ a @ r.T + a.T @ r @ a.T + r.T @ a @ a.T)
    right = a - last * (r @ a.T @ a + a @ r.T @ a + a @ a.T @ r)
    return a, printed, right


def action(r, a, beta, h, omega=STIFFNESS, field=FIELD):
    """What (36), cut after second order in a, subtracts from the kinetic term, by differences of traces alone."""

    def potential(q):
        e = q.T @ q - np.eye(3)
        return field * q[2, 2] + 0.5 * omega**2 * np.trace(e @ e)

    # A polynomial of degree 4 in s: its first three coefficients.
    s = np.arange(-2, 3)
    c = np.linalg.solve(np.vander(s, increasing=True).astype(float), [potential(r + k * beta * h * h * a) for k in s])
    return 0.5 * beta * h * h * np.sum(a * a) + c[:3].sum()


METHODS = {
    "Zhang & Skeel, β = 0.2": (mp.kicks.ZhangSkeel, 0.2, "BAB"),
    "Zhang & Skeel, β = 0.25": (mp.kicks.ZhangSkeel, 0.25, "BAB"),
    "Zhang & Skeel, β = 0.3": (mp.kicks.ZhangSkeel, 0.3, "BAB"),
    "Zhang & Skeel, β = 0.2, BA": (mp.kicks.ZhangSkeel, 0.2, "BA"),
    "Newmark, β = 0.25": (mp.kicks.PushForwardNewmark, 0.25, "BAB"),
}


# Figures and tables ------------------------------------------------------------------------------------------------


def all_runs(end):
    """By name: t, and of each method energy, distance from rotations, and distance from the path; and seconds."""
    n = round(end / H)
    times = H * np.arange(n + 1)
    true, _ = exact(times)
    runs = {}
    for name, (kind, beta, word) in METHODS.items():
        x, r, v, seconds = package(kind(beta), n, word=word)
        distance = np.linalg.norm(r - true, axis=(1, 2))
        runs[name] = (energy(r, v), off_orthogonal(r), distance, seconds, off_orthogonal(x))
    # Explicit kicks: below h = 2/√800 = 0.0707, and so short that what is left is the penalty's.
    for parts in (2, 200):
        x, r, v, seconds = package(mp.kicks.Explicit(), parts * n, every=parts, h=H / parts)
        off = off_orthogonal(x)
        runs[f"Verlet, h = {H / parts:g}"] = (energy(x, v), off, np.linalg.norm(x - true, axis=(1, 2)), seconds, off)
    for h in (H, 1e-4):
        every = round(H / h)
        r, w, seconds = lie_group(h, n * every, every)
        v = r @ np.array([hat(a) for a in w])
        off = off_orthogonal(r)
        runs[f"Lie group, h = {h:g}"] = (energy(r, v), off, np.linalg.norm(r - true, axis=(1, 2)), seconds, off)
    return times, runs


def table(times, runs):
    """What figure 10 shows, as largest values, and times."""
    print(f"Bμ = {FIELD:g}, ω = {STIFFNESS:g}, to t = {times[-1]:g}; distances in the Frobenius norm")
    print(f"{'method':28s} {'energy':>8s} {'|RᵀR - 1|':>10s} {'of X':>8s} {'|R - path|':>10s} {'at t = 5':>9s} "
          f"{'µs per unit time':>16s}")  # fmt: skip
    for name, (e, o, d, seconds, coordinates) in runs.items():
        print(f"{name:28s} {np.abs(e - e[0]).max():8.1e} {o.max():10.1e} {coordinates.max():8.1e} {d.max():10.1e} "
              f"{d[times <= 5.0].max():9.1e} {1e6 * seconds / times[-1]:16.1f}")  # fmt: skip


STIFFER = {
    "Zhang & Skeel": mp.kicks.ZhangSkeel,
    "simplified": mp.kicks.ZhangSkeelSimplified,
    "Newmark": mp.kicks.PushForwardNewmark,
}


def stiffer(end, beta=0.3):
    """What stiffness each kick bears: largest distances from rotations and from the path, or when it was lost. Of a
    stiff mode ωₛ² = 4ω²/½."""
    print(f"to t = {end:g}, β = {beta:g}: |RᵀR - 1|, |R - path|")
    names = " ".join(f"{name:>18s}" for name in STIFFER)
    print(f"{'h':>5s} {'ω':>6s} {'ωₛh':>6s} {names} {'Verlet needs h <':>17s}")
    found = {}
    for h in (H, H / 2.0):
        n = round(end / h)
        true, _ = exact(h * np.arange(n + 1))
        for omega in (10.0, 20.0, 30.0, 50.0, 100.0, 1000.0):
            cells, stiff = [], np.sqrt(8.0) * omega
            for name, kind in STIFFER.items():
                context = body(kind(beta), h=h, omega=omega)
                off = []
                try:
                    for k in range(n + 1):
                        context.step(min(k, 1))
                        r = context.physical_positions().T[None]
                        off.append((off_orthogonal(r)[0], np.linalg.norm(r[0] - true[k])))
                    found[h, omega, name] = np.max(off, axis=0)
                    cells.append("{:8.1e}, {:8.1e}".format(*found[h, omega, name]))
                except mp.SimulationError:
                    found[h, omega, name] = None
                    cells.append(f"lost at {h * context.step_count:.1f}")
            row = " ".join(f"{c:>18s}" for c in cells)
            print(f"{h:5g} {omega:6g} {stiff * h:6.1f} {row} {2.0 / stiff:17.1e}")
    return found


def formulas():
    """How far the paper's formulas are from each other, at a random matrix near the identity."""
    rng = np.random.default_rng(4)
    r, beta, h = np.eye(3) + 0.1 * rng.normal(size=(3, 3)), 0.4, H
    a, printed, right = printed_kick(r, beta, h)
    step = 1e-5

    def slope(at):
        out = np.empty(9)
        for i, d in enumerate(step * np.eye(9).reshape(9, 3, 3)):
            out[i] = (at(d) - at(-d)) / (2.0 * step)
        return out.reshape(3, 3)

    in_a = slope(lambda d: action(r, a + d, beta, h))
    in_r = -slope(lambda d: action(r + d, a, beta, h))
    print(f"(37) makes the action stationary in a to {np.abs(in_a).max():.1e}")
    off, size = np.abs(printed - in_r).max(), np.abs(in_r).max()
    print(f"f_k as printed is off minus its derivative in R by {off:.3g}, of {size:.3g}")
    print(f"a - 2ω²β²h⁴(R aᵀa + a Rᵀa + a aᵀR) by {np.abs(right - in_r).max():.1e}")
    return in_a, printed - in_r, right - in_r


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="short runs")
    options = parser.parse_args()
    formulas()
    times, runs = all_runs(5.0 if options.quick else 50.0)
    table(times, runs)
    stiffer(5.0)


if __name__ == "__main__":
    main()
