"""Accounts of energy: heat, shadow work, protocol work and chemical energy."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from medyanpy._kernels.core.kinetic import KineticEnergies
from medyanpy._kernels.core.work import KineticChange, add_to
from medyanpy._kernels.jumps.jump import Books
from medyanpy.core.flows import Flow, Stage
from medyanpy.core.letters import LETTERS

__all__ = ["WorkMeter"]

TALLIES = 11


class WorkMeter(Flow):
    """Tells apart how the total energy of a Context changes.

    Heat is what O adds to the kinetic energy, and balanced jumps to the total energy. Chemical energy is what driven
    jumps add. Shadow work is what all other letters add; exact dynamics would add nothing. Protocol work is what
    happens outside of steps: numbers of forces, positions and velocities that are changed. They are measured apart,
    and their sum is the change of the total energy since the meter was switched on.

    Parameters
    ----------
    ranges : (h, 2) int array
        First and last + 1 place of the beads of every handle.
    overdamped : bool
        Beads move without velocities: friction and noise are in every step, and all that they do is heat.
    jumps : list of JumpOperation
    """

    def __init__(self, ranges: np.ndarray, overdamped: bool = False, jumps: Sequence[Any] = ()) -> None:
        self._overdamped = overdamped
        # Sums and their rests, then the energies as last seen, that of the potential a sum and its rest too: all that
        # the meter must not forget.
        self._tallies = np.zeros(TALLIES)
        self._heat, self._shadow, self._protocol, self._chemical = (self._tallies[i : i + 2] for i in (0, 2, 4, 9))
        self._kinetic, self._potential = self._tallies[6:7], self._tallies[7:9]
        self._books = [Books(list(jumps), self._heat, self._chemical, self._kinetic, self._potential)] if jumps else []
        energies = np.empty(len(ranges))
        measure = KineticEnergies(ranges, energies, True)
        self._after = {
            name: KineticChange(measure, energies, self._kinetic, tally)
            for name, tally in (("heat", self._heat), ("shadow", self._shadow))
        }

    def after(self, stage: Stage) -> Sequence[Any]:
        if LETTERS[stage.kind].apart:
            return self._books
        return (self._after["heat" if LETTERS[stage.kind].thermal and not self._overdamped else "shadow"],)

    def arrays(self) -> dict[str, np.ndarray]:
        return {"work": self._tallies}

    def start(self, kinetic: float, potential: float) -> None:
        """Count from zero, from these energies (pN nm) on."""
        self._tallies[:] = 0.0
        self._kinetic[0], self._potential[0] = kinetic, potential

    def take(self, tallies: np.ndarray) -> None:
        """Resume from tallies that a checkpoint holds; the work of jumps among them."""
        self._tallies[:] = 0.0
        self._tallies[: len(tallies)] = tallies

    def intervene(self, before: tuple[float, float], after: tuple[float, float]) -> None:
        """Count a change from outside of steps in kinetic and potential energy (pN nm)."""
        # Steps did all changes of the potential energy until then.
        add_to(self._shadow, before[1] - self._potential[0])
        add_to(self._shadow, -self._potential[1])
        add_to(self._protocol, after[0] - before[0])
        add_to(self._protocol, after[1] - before[1])
        self._kinetic[0], self._potential[:] = after[0], (after[1], 0.0)

    def readings(self, potential: float) -> dict[str, float]:
        """Return heat, shadow_work, protocol_work and chemical_work, pN nm, at the present potential energy. Reading
        changes nothing."""
        heat = float(self._heat.sum())
        shadow = float(self._shadow.sum() + (potential - self._potential[0] - self._potential[1]))
        if self._overdamped:
            heat, shadow = heat + shadow, 0.0
        return {
            "heat": heat, "shadow_work": shadow, "protocol_work": float(self._protocol.sum()),
            "chemical_work": float(self._chemical.sum()),
        }  # fmt: skip
