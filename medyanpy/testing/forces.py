"""The contract of a force."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from medyanpy.context import Context
from medyanpy.forces import Force
from medyanpy.integrators import VerletIntegrator
from medyanpy.state import State
from medyanpy.system import System
from medyanpy.topology import Topology

__all__ = ["ForceCase", "check_force"]


@dataclass(frozen=True)
class ForceCase:
    """A force on untidy data, and its energy written a second time.

    Attributes
    ----------
    name : str
    build : callable () -> (Topology, Force)
        Makes both anew: nothing at rest, numbers of terms and beads in no order, beads in no term and in many, a
        different parameter in every term.
    energy : callable ((n, 3) array) -> float
        The energy of the force at given 3D positions of every bead, in plain NumPy and sharing no code with it.
    length : float, nm
        Distance over which the energy changes shape: differences are taken over small parts of it.
    """

    name: str
    build: Callable[[], tuple[Topology, Force]]
    energy: Callable[[np.ndarray], float]
    length: float


def _state(case: ForceCase, threads: int = 1, copies: int = 1, energy: bool = True) -> tuple[State, np.ndarray]:
    topology, force = case.build()
    system = System(topology)
    system.add_force(force)
    for _ in range(copies - 1):
        system.add_force(_twin(force))
    context = Context(system, VerletIntegrator(1e-3), threads=threads)
    return context.get_state(positions=True, forces=True, energy=energy), context.get_state(
        positions=True
    ).positions


def _twin(force: Force) -> Force:
    """Another force of the same beads and numbers."""
    twin = object.__new__(type(force))
    twin.__dict__.update(force.__dict__)
    return twin


def check_force(case: ForceCase) -> None:
    """Check one case against the contract; an AssertionError says what is broken.

    The energy equals the independent one to 1e-12 relative. Every component of the force is minus the central
    difference of the *independent* energy, and along random directions the error falls as h². Forces have the
    same bits on 1, 2, 3 and 4 threads, and whether the energy is wanted or not; two equal forces give exactly
    twice one. A force that claims to conserve momentum has no net force and no net torque.
    """
    state, x = _state(case)
    f = state.forces
    scale = np.abs(f).max()
    assert np.isfinite(f).all(), f"{case.name}: forces are not finite"
    assert scale > 0.0, f"{case.name}: the case exerts no force, so it tests nothing"

    energy, expected = state.potential_energy, case.energy(x)
    assert abs(energy - expected) <= 1e-12 * max(abs(expected), scale * case.length), (
        f"{case.name}: energy {energy!r}, independently {expected!r}"
    )

    def slope(direction: np.ndarray, h: float) -> float:
        return (case.energy(x + h * direction) - case.energy(x - h * direction)) / (2.0 * h)

    h = 1e-5 * case.length
    for i, c in np.ndindex(x.shape):
        unit = np.zeros_like(x)
        unit[i, c] = 1.0
        assert abs(slope(unit, h) + f[i, c]) <= 2e-6 * scale, (
            f"{case.name}: force on bead {i}, component {c} is {f[i, c]!r}, by differences {-slope(unit, h)!r}"
        )

    rng = np.random.default_rng(0)
    for _ in range(3):
        direction = rng.normal(size=x.shape)
        exact = -float(np.vdot(f, direction))
        steps = case.length * np.array([8e-3, 4e-3, 2e-3])
        error = np.abs([slope(direction, s) - exact for s in steps])
        floor = 1e-9 * np.linalg.norm(f) * np.linalg.norm(direction)
        if error[0] > 100.0 * floor:
            order = np.log2(error[:-1] / error[1:])
            assert (np.abs(order - 2.0) < 0.4).all(), f"{case.name}: error falls as h^{order}, not h²"

    for threads in (2, 3, 4):
        other = _state(case, threads=threads)[0]
        assert (other.forces == f).all(), f"{case.name}: forces differ between 1 and {threads} threads"
        assert other.energies == state.energies, f"{case.name}: energy differs between 1 and {threads} threads"
    bare = _state(case, energy=False)[0]
    assert (bare.forces == f).all(), f"{case.name}: forces depend on whether the energy is wanted"
    twice = _state(case, copies=2)[0]
    assert (twice.forces == 2.0 * f).all(), f"{case.name}: two equal forces do not give twice one"

    if case.build()[1].conserves_momentum:
        assert np.abs(f.sum(axis=0)).max() <= 1e-10 * scale, f"{case.name}: there is a net force"
        centred = x - x.mean(axis=0)
        torque = np.cross(centred, f).sum(axis=0)
        assert np.abs(torque).max() <= 1e-10 * scale * np.abs(centred).max(), f"{case.name}: there is a net torque"
