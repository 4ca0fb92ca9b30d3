"""The chain of angles of a double strand of DNA: (31) of Tao and Owhadi."""

import time
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from medyanpy import forces, kicks
from medyanpy.context import Context
from medyanpy.errors import SimulationError
from medyanpy.integrators import SplittingIntegrator
from medyanpy.system import System
from medyanpy.topology import Topology

N, A, X0, DEPTH = 200, 7.0, 0.3, 1.0 / 1400.0
CLOSED = np.arccos(1.0 - X0)
# The mean angle has come to a closed state within this distance of one of the two, and belongs to it until it comes
# as near to the other.
NEAR = 0.7
METHODS: dict[Any, Any] = {
    "Verlet, h = 0.2": (0.2, None),
    "Verlet, h = 0.8": (0.8, None),
    "Zhang & Skeel, h = 1": (1.0, kicks.ZhangSkeel(beta=0.3)),
    "Zhang & Skeel, h = 1.5": (1.5, kicks.ZhangSkeel(beta=0.3)),
    "Zhang & Skeel, h = 2": (2.0, kicks.ZhangSkeel(beta=0.3)),
    "simplified, h = 2": (2.0, kicks.ZhangSkeelSimplified(beta=0.3)),
    "Newmark, h = 2": (2.0, kicks.PushForwardNewmark(beta=0.3)),
}
FIGURE = ("Verlet, h = 0.2", "Verlet, h = 0.8", "Zhang & Skeel, h = 2")


# The chain ---------------------------------------------------------------------------------------------------------


def start(seed: int, n: Any = N) -> Any:
    """Angles 0.8 + 0.1 ξ and momenta cos(4πk/N)/√N, k = 1 to N."""
    k = np.arange(1, n + 1)
    return 0.8 + 0.1 * np.random.default_rng(seed).normal(size=n), np.cos(4.0 * np.pi * k / n) / np.sqrt(n)


def chain(theta: np.ndarray, momenta: np.ndarray, h: float, kick: Any = None) -> Any:
    """A Context of velocity Verlet, with one kick or another."""
    topology = Topology()
    angles = topology.add_beads(np.column_stack([theta, np.zeros((len(theta), 2))]), mass=1.0)
    system = System(topology)
    ring = np.column_stack([angles.beads, np.roll(angles.beads, -1)])
    system.add_force(forces.HarmonicBonds(ring, stiffness=1.0, length=0.0, name="neighbours"))
    pairing = forces.ExternalField(
        angles, "depth*(exp(-a*(1 - cos(x) - x0)) - 1)^2", depth=DEPTH, a=A, x0=X0, name="pairing"
    )
    system.add_force(pairing)
    context = Context(system, SplittingIntegrator("BAB", h, kick=kick), threads=1)
    context.set_velocities(np.column_stack([momenta, np.zeros((len(theta), 2))]))
    return context


def closed_angle() -> Any:
    """Where a chain of equal angles has the least energy, below π."""
    context = chain(np.zeros(3), np.zeros(3), 0.1)

    def energy(theta: np.ndarray) -> Any:
        context.set_positions([[theta, 0.0, 0.0]] * 3)
        return context.get_state(energy=True).potential_energy

    return float(minimize_scalar(energy, bounds=(0.1, 3.0), method="bounded", options={"xatol": 1e-8}).x)


def energies(context: Any) -> Any:
    """H, and what Zhang and Skeel's method keeps nearly in its place: with V - (q - x).F/2 for V."""
    state = context.get_state(positions=True, velocities=True, forces=True, energy=True)
    shift = context.physical_positions() - state.positions
    return state.total_energy, state.total_energy - 0.5 * np.sum(shift * state.forces)


def highest_stiffness(theta: np.ndarray) -> Any:
    """The largest eigenvalue of V'' (mass 1): ω² of the stiffest mode."""
    context = chain(theta, np.zeros_like(theta), 0.1)
    return float(np.linalg.eigvalsh(context.hessian().toarray()[::3, ::3]).max())


# Runs --------------------------------------------------------------------------------------------------------------


def run(method: str, seed: int, end: float, every: float = 10.0) -> Any:
    """t, mean angle, its velocity, and energies (k, 2); ends early where the run is lost."""
    h, kick = METHODS[method]
    theta, momenta = start(seed)
    context = chain(theta, momenta, h, kick)
    steps = max(1, round(every / h))
    rows: Any = []
    for k in range(int(end / (steps * h)) + 1):
        try:
            context.step(steps if k else 0)
        except SimulationError:
            break
        state = context.get_state(positions=True, velocities=True)
        theta, v = state.positions[:, 0].mean(), state.velocities[:, 0].mean()
        rows.append((k * steps * h, theta, v, *energies(context)))
    rows = np.array(rows)
    return {"t": rows[:, 0], "mean": rows[:, 1], "velocity": rows[:, 2], "energies": rows[:, 3:]}


def changes(mean: Any) -> Any:
    """Numbers of the rows at which the mean angle has come from one closed state to the other."""
    state = np.where(np.abs(mean - CLOSED) < NEAR, -1, np.where(np.abs(mean - (2.0 * np.pi - CLOSED)) < NEAR, 1, 0))
    visits = np.flatnonzero(state)
    return visits[1:][np.diff(state[visits]) != 0]


def microseconds(method: str, span: float = 40.0, repeats: int = 15) -> Any:
    """What a unit of time costs: the least of repeated spans, others on the machine only add."""
    h, kick = METHODS[method]
    theta, momenta = start(0)
    context = chain(theta, momenta, h, kick)
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        context.step(round(span / h))
        times.append(time.perf_counter() - began)
    return 1e6 * min(times) / span
