"""A magnetised body whose orientation is a matrix, held near rotations by a penalty: section 4.5 of Tao and Owhadi."""

import time
import warnings
from typing import Any

import numpy as np

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


def rigid_body(h: float, n: int, every: int = 1, field: Any = FIELD) -> Any:
    """The same body as one that turns, by the package: R (k, 3, 3) and its rates of every `every`-th step.

    Its orientation is a unit quaternion at every step: a method on the group, though not the paper's.
    """
    topology = Topology()
    one = topology.add_rigid_bodies([[0.0, 0.0, 0.0]], [[1.0, 0.0, 0.0, 0.0]], 1.0, [1.0, 1.0, 1.0])
    system = System(topology)
    # A dipole of the moment 1 along its third axis.
    poles = one.sites([[0.0, 0.0, 0.5], [0.0, 0.0, -0.5]])
    system.add_force(forces.UniformField(poles, [[0.0, 0.0, -field], [0.0, 0.0, field]]))
    context = Context(system, SplittingIntegrator("BAB", h), threads=1)
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
