"""Poincaré sections of the double pendulum: the package with constraints and with penalties, Euler's method, DOP853.

The paper says that none of its symplectic simulations "led to numerical leakage between regular and chaotic regions",
and shows no picture. Here several pendula of one energy run at once, some on invariant curves, some between them; where
the upper link hangs and swings to the right, the angle of the lower link and its momentum are a point of the section.
"""

from typing import Any

import numpy as np

from medyanpy import forces, kicks
from medyanpy.context import Context
from medyanpy.integrators import SplittingIntegrator
from medyanpy.system import System
from medyanpy.topology import Topology

# Of the links of `pendula.BOBS`; masses and gravity are 1. At rest, hanging, the energy is -3.414.
UPPER, LOWER = 1.0, np.sqrt(2.0)
ENERGY = -1.0
# (angle, angular velocity) of the lower link at the start. On curves around islands; between islands.
REGULAR = np.array([[-0.8, -1.0], [-0.4, -1.5], [0.0, -1.0], [1.2, 0.0], [0.0, 1.5]])
CHAOTIC = np.array([[-1.2, -0.5], [0.4, -1.0], [0.8, -1.5]])
ORBITS = np.concatenate([REGULAR, CHAOTIC])


def accelerations(q: Any, w: Any) -> Any:
    """Angular accelerations of both links, (2, n), from angles and angular velocities."""
    c, s = np.cos(q[0] - q[1]), UPPER * LOWER * np.sin(q[0] - q[1])
    a, b, d = 2.0 * UPPER**2, UPPER * LOWER * c, LOWER**2
    first = -s * w[1] ** 2 - 2.0 * UPPER * np.sin(q[0])
    second = s * w[0] ** 2 - LOWER * np.sin(q[1])
    return np.array([d * first - b * second, a * second - b * first]) / (a * d - b * b)


def energy(q: Any, w: Any) -> Any:
    """Energy (n,) of angles and angular velocities."""
    kinetic = UPPER**2 * w[0] ** 2 + 0.5 * LOWER**2 * w[1] ** 2 + UPPER * LOWER * w[0] * w[1] * np.cos(q[0] - q[1])
    return kinetic - 2.0 * UPPER * np.cos(q[0]) - LOWER * np.cos(q[1])


def start(orbits: Any) -> Any:
    """Angles and angular velocities, (2, n) each, on the section."""
    angle, rate = np.asarray(orbits).T
    half = 0.5 * UPPER * LOWER * rate * np.cos(angle)
    rest = 0.5 * LOWER**2 * rate**2 - 2.0 * UPPER - LOWER * np.cos(angle) - ENERGY
    first = (np.sqrt(half**2 - UPPER**2 * rest) - half) / UPPER**2
    return np.array([0.0 * angle, angle]), np.array([first, rate])


# Paths: angles and angular velocities, (k, 2, n) each, at steps -------------------------------------------------


def package(orbits: Any, h: float, looks: int, every: int = 1, omega: float | None = None) -> Any:
    """A look every so many steps: by constraints, or by Zhang-Skeel with penalties of the stiffness ω², from x on the
    constraints."""
    q, w = start(orbits)
    n = q.shape[1]
    out = np.array([np.sin(q), -np.cos(q), np.zeros_like(q)])
    turn = np.array([np.cos(q), np.sin(q), np.zeros_like(q)]) * w
    scale = np.array([UPPER, LOWER])[:, None]
    x, v = (np.cumsum(part * scale, axis=1).transpose(2, 1, 0) for part in (out, turn))
    nodes = np.concatenate([np.zeros((n, 1, 3)), x], axis=1)
    topology = Topology()
    ropes = topology.add_filaments(list(nodes), 1.0, constrained=omega is None, fixed_nodes=list(range(0, 3 * n, 3)))
    system = System(topology)
    system.add_force(forces.UniformField(ropes, [0.0, -1.0, 0.0]))
    kick = None
    if omega is not None:
        system.add_force(forces.LinkLengthPenalty(ropes, omega))
        kick = kicks.ZhangSkeel(0.4)
    context = Context(system, SplittingIntegrator("BAB", h, kick=kick), threads=1)
    context.set_velocities(np.concatenate([np.zeros((n, 1, 3)), v], axis=1).reshape(-1, 3))
    rows = np.empty((2, looks + 1, 2, n))
    for k in range(looks + 1):
        if k:
            context.step(every)
        state = context.get_state(positions=True, velocities=True, physical_positions=omega is not None)
        places = state.positions if omega is None else state.physical_positions
        e, u = (np.diff(a.reshape(n, 3, 3), axis=1) for a in (places, state.velocities))
        rows[0, k] = np.arctan2(e[:, :, 0], -e[:, :, 1]).T
        rows[1, k] = ((e[:, :, 0] * u[:, :, 1] - e[:, :, 1] * u[:, :, 0]) / (e**2).sum(axis=2)).T
    return rows


def euler(orbits: Any, h: float, steps: int, every: int) -> Any:
    """Euler's method in angles: not symplectic, of order 1."""
    q, w = start(orbits)
    rows = [(q, w)]
    for k in range(1, steps + 1):
        q, w = q + h * w, w + h * accelerations(q, w)
        if k % every == 0:
            rows.append((q, w))
    return np.array(rows).transpose(1, 0, 2, 3)


def reference(orbits: Any, h: float, steps: int) -> Any:
    """By a Runge-Kutta method of order 8 in angles, to 1e-11."""
    from scipy.integrate import solve_ivp

    begin = np.array(start(orbits))
    n = begin.shape[2]

    def rate(_: float, y: Any) -> Any:
        q, w = y.reshape(2, 2, n)
        return np.array([w, accelerations(q, w)]).ravel()

    times = h * np.arange(steps + 1)
    found = solve_ivp(rate, (0.0, times[-1]), begin.ravel(), method="DOP853", rtol=1e-11, atol=1e-11, t_eval=times)
    return found.y.reshape(2, 2, n, -1).transpose(0, 3, 1, 2)


# Sections -----------------------------------------------------------------------------------------------------------


def section(path: Any) -> list[Any]:
    """(m, 2) of each pendulum: angle and momentum of the lower link, where the upper one hangs and swings to the right;
    by cubic interpolation in time."""
    q, w = path
    found = []
    for i in range(q.shape[2]):
        y = np.sin(q[:, 0, i])
        at = np.flatnonzero((y[:-1] < 0.0) & (y[1:] >= 0.0) & (np.cos(q[:-1, 0, i]) > 0.0))
        at = at[(at >= 1) & (at < len(y) - 2)]
        around = at[:, None] + np.arange(-1, 3)
        t = y[at] / (y[at] - y[at + 1])
        for _ in range(8):
            wrong = (_weights(t) * y[around]).sum(axis=1)
            slope = ((_weights(t + 1e-6) - _weights(t - 1e-6)) * y[around]).sum(axis=1) / 2e-6
            t = t - wrong / slope
        angle = (_weights(t) * np.unwrap(q[around, 1, i], axis=1)).sum(axis=1)
        first, second = ((_weights(t) * w[around, c, i]).sum(axis=1) for c in range(2))
        momentum = LOWER**2 * second + UPPER * LOWER * first * np.cos(angle)
        found.append(np.column_stack([(angle + np.pi) % (2.0 * np.pi) - np.pi, momentum]))
    return found


def _weights(t: Any) -> Any:
    """Weights (m, 4) of values at -1, 0, 1 and 2 for that at t."""
    return np.stack([
        -t * (t - 1.0) * (t - 2.0) / 6.0, (t + 1.0) * (t - 1.0) * (t - 2.0) / 2.0,
        -(t + 1.0) * t * (t - 2.0) / 2.0, (t + 1.0) * t * (t - 1.0) / 6.0,
    ], axis=1)  # fmt: skip


def farthest(points: Any, curve: Any) -> Any:
    """Largest distance of points from the nearest of a curve."""
    from scipy.spatial import cKDTree

    return float(cKDTree(curve).query(points)[0].max())


def inside(points: Any, curve: Any) -> Any:
    """How many points are within a curve around one island, given in any order, by 3 %."""
    from matplotlib.path import Path

    middle = 0.5 * (curve.min(axis=0) + curve.max(axis=0))
    around = curve - middle
    ring = around[np.argsort(np.arctan2(around[:, 1], around[:, 0]))]
    return int(Path(middle + 0.97 * ring).contains_points(points).sum())
