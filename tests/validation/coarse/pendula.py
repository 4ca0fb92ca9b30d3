"""Pendula as the package runs them: by constraints, or with a penalty on the lengths of links and any kick."""

import time
from typing import Any

import numpy as np

from medyanpy import forces, kicks
from medyanpy.analysis import constraint_multipliers
from medyanpy.beads import Filaments
from medyanpy.context import Context
from medyanpy.integrators import SplittingIntegrator
from medyanpy.system import System
from medyanpy.topology import Topology

BETA = 0.4
# The double pendulum of section 4.1; of a chain, section 4.2, see `chain`.
BOBS = np.array([[0.0, -1.0], [1.0, -2.0]])
OMEGA = 20.0
# Methods of the paper that are kicks of the package.
KICKS: dict[Any, Any] = {"Newmark": kicks.Newmark, "push-forward Newmark": kicks.PushForwardNewmark,
                         "one-step Newmark": lambda beta: kicks.Newmark(beta, solver="one-step"),
                         "Zhang-Skeel": kicks.ZhangSkeel, "simplified": kicks.ZhangSkeelSimplified}  # fmt: skip


class Package:
    """Bobs (n, 2) of mass 1 below the origin, from rest, with the links that they have at the start; gravity is 1.

    "SHAKE" keeps the links' lengths. All others have penalties: "variational Euler" (kick, flight), "explicit"
    (velocity Verlet) and the names of KICKS. Those that have coordinates of their own begin where beads are at the
    bobs, in the physical sense; with at="coordinates" they begin with these there.
    """

    def __init__(self, bobs: np.ndarray, method: str, h: float, omega: float | None = None, beta: float = BETA,
                 at: str = "places") -> None:  # fmt: skip
        bobs = np.asarray(bobs, float)
        nodes = np.zeros((len(bobs) + 1, 3))
        nodes[1:, :2] = bobs
        topology = Topology()
        self.rope: Filaments = topology.add_filament(nodes, 1.0, constrained=method == "SHAKE", fixed_nodes=[0])
        self.system: System = System(topology)
        self.system.add_force(forces.UniformField(self.rope, [0.0, -1.0, 0.0]))
        if method != "SHAKE":
            assert omega is not None
            self.penalty: forces.LinkLengthPenalty = self.system.add_force(forces.LinkLengthPenalty(self.rope, omega))
        if method == "variational Euler":
            integrator = SplittingIntegrator("BA", h, symmetric=False)
        else:
            kick = KICKS[method](beta) if method in KICKS else None
            integrator = SplittingIntegrator("BAB", h, kick=kick)
        self.context: Context = Context(self.system, integrator, threads=1)
        if at == "places" and integrator.kick.coordinates:
            # x = q - βh²a with the forces at q (docs/kicks.md); the node that is held stays.
            force = self.context.get_state(forces=True).forces.copy()
            force[0] = 0.0
            self.context.set_positions(nodes - beta * h * h * force)

    def look(self, physical: bool = True) -> Any:
        """(2n,) where the bobs are, in the physical sense or in the coordinates of the method."""
        x = self.context.physical_positions() if physical else self.context.get_state(positions=True).positions
        return x[1:, :2].ravel()

    def path(self, looks: int, every: int = 1, physical: bool = True) -> Any:
        """(looks + 1, 2n) from here on, a row every so many steps."""
        rows = [self.look(physical)]
        for _ in range(looks):
            self.context.step(every)
            rows.append(self.look(physical))
        return np.array(rows)

    def seconds_a_step(self, steps: int, least: int) -> Any:
        """CPU time: the shortest of runs of so many steps from the start, for so long, three at least. What else runs
        on the machine only adds."""
        start = self.context.get_state(positions=True, velocities=True)
        times: list[float] = []
        while sum(times) < least or len(times) < 3:
            self.context.set_state(start)
            self.context.step(1)
            started = time.process_time()
            self.context.step(steps)
            times.append(time.process_time() - started)
        self.context.set_state(start)
        return min(times) / steps


def chain(n: int) -> Any:
    """(n, 2) bobs of a chain in a straight line."""
    return np.arange(1, n + 1)[:, None] * [1.0, -2.0]


def constraints(places: Any) -> Any:
    """(..., n) squares of lengths less those at the start, of the double pendulum at (..., 4)."""
    nodes = np.concatenate([np.zeros((*places.shape[:-1], 1, 2)), places.reshape(*places.shape[:-1], -1, 2)], axis=-2)
    return (np.diff(nodes, axis=-2) ** 2).sum(axis=-1) - [1.0, 2.0]


def constraint_errors(omega: Any, end: float, h: float = 0.01, window: float = 5.0) -> Any:
    """|g| at the end, and the largest in a window before it, by Zhang-Skeel: (2,) in q and (2,) in x."""
    run = Package(BOBS, "Zhang-Skeel", h, omega)
    run.context.step(round((end - window) / h))
    found = []
    for _ in range(round(window / h)):
        run.context.step(1)
        found.append([np.linalg.norm(constraints(run.look(physical))) for physical in (True, False)])
    return found[-1], np.max(found, axis=0)


def averaged_multipliers(end: float, omega: Any = OMEGA, h: float = 0.01, window: float = 0.2) -> Any:
    """(8) by the package: the middles of windows (k,), multipliers (k, 2), and ω²g itself at the steps nearest to
    those (k, 2). The sign is that of the package, opposite to the paper's: taut links have λ > 0."""
    width = round(window / h)
    run = Package(BOBS, "Zhang-Skeel", h, omega)
    frames = [run.context.physical_positions()]
    for _ in range(round(end / h) + width):
        run.context.step(1)
        frames.append(run.context.physical_positions())
    mean, each = (constraint_multipliers(frames, run.penalty, size) for size in (width, 1))
    return h * (np.arange(len(mean)) + 0.5 * (width - 1)), mean, each[width // 2 :][: len(mean)]


def shake_multipliers(end: float, h: float = 0.01) -> Any:
    """By the package's SHAKE: times (k,), and (k, 2) λ in its state."""
    run, found = Package(BOBS, "SHAKE", h), []
    for _ in range(round(end / h)):
        run.context.step(1)
        found.append(run.context.get_state(multipliers=True).multipliers[run.rope.name])
    return h * np.arange(1, len(found) + 1), np.array(found)


# Times and figures ----------------------------------------------------------------------------------------------


def seconds_a_step(cases, rounds, least=0.05):
    """{key: s} of {key: (run, steps)}, in turns, so that a busy time does not meet one of them alone."""
    found = dict.fromkeys(cases, np.inf)
    for _ in range(rounds):
        for key, (run, steps) in cases.items():
            found[key] = min(found[key], run.seconds_a_step(steps, least))
    return found


def figure(plt, shape, size, **options):
    """A figure and its axes in a row."""
    fig, axes = plt.subplots(*shape, figsize=size, layout="constrained", squeeze=False, **options)
    for axis in axes.flat:
        axis.spines[["top", "right"]].set_visible(False)
    return fig, axes.ravel()
