"""Blocks M( ) of the word of one Context: compiled, and how often they were accepted."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from medyanpy._kernels.core.kinetic import KineticEnergies
from medyanpy._kernels.letters.metropolis import Copies, Metropolis, ThereAndBack
from medyanpy.core.flows import Flow, Stage
from medyanpy.core.letters import LETTERS
from medyanpy.errors import ParameterError, TimestepWarning, warn_outside
from medyanpy.state import BlockCounts

if TYPE_CHECKING:
    from medyanpy.engine.schedule import Schedule

__all__ = ["Proposing"]

# A letter counts as back where it started within this part of the shortest length: constraints are kept to 1e-10 or so.
_NEARNESS = 1e-8
# Rejections in a row that are not by chance where a timestep is of any use.
_IN_VAIN = 100


class Proposing:
    """Blocks M( ) of one Context, for its schedule and its states.

    Attributes
    ----------
    counts : (b, 3) int64 array
        Of every block: how often it was tried, accepted, and could not be carried out.
    """

    def __init__(self, blocks: Sequence[str]) -> None:
        self.blocks: tuple[str, ...] = tuple(blocks)
        self.counts: np.ndarray = np.zeros((len(self.blocks), 3), np.int64)
        #: Tries when something was last accepted, as far as that was looked at; and whether users have been warned.
        self._tried_then: np.ndarray = np.zeros(len(self.blocks), np.int64)
        self._accepted_then: np.ndarray = np.zeros(len(self.blocks), np.int64)
        self._said = False

    def arrays(self) -> dict[str, np.ndarray]:
        """Return what steps change: part of the state of words with blocks."""
        return {"blocks": self.counts} if self.blocks else {}

    def said(self) -> tuple[BlockCounts, ...]:
        """Return the counts of every block, for states."""
        return tuple(BlockCounts(block, *own) for block, own in zip(self.blocks, self.counts.tolist(), strict=True))

    def take(self, said: Sequence[BlockCounts]) -> None:
        """Resume from the counts of a state, if it is of the same blocks."""
        if tuple(own.block for own in said) == self.blocks:
            self.counts[...] = np.array([own[1:] for own in said], np.int64).reshape(self.counts.shape)

    def look(self, timestep: float) -> None:
        """Warn, once, of a block that is never accepted: its run stands still."""
        tried, accepted, _ = self.counts.T
        anew = (accepted != self._accepted_then) | (tried < self._tried_then)
        self._tried_then = np.where(anew, tried, self._tried_then)
        self._accepted_then = accepted.copy()
        in_vain = tried - self._tried_then
        if not self._said and (in_vain >= _IN_VAIN).any():
            self._said = True
            k = int(np.argmax(in_vain))
            warn_outside(
                f"none of {in_vain[k]} blocks {self.blocks[k]} in a row was accepted at the timestep {timestep:g} s: "
                "take a shorter one, at least until a start far from equilibrium has relaxed (minimize_energy, or a "
                "plain word)",
                TimestepWarning,
            )

    def check_force(self, name: str, force: Any) -> None:
        """Refuse forces that are not those of their energy: blocks would take their work back; ParameterError."""
        if self.blocks and not force.energy_tells_work and not force.calls_python:
            raise ParameterError(
                f"{name}: its energy does not tell the work of its couples or of what turns with the rod, and "
                f"{self.blocks[0]} accepts by energies: use a word without M( )"
            )

    def compile(
        self, schedule: "Schedule", block: int, letters: Iterable[tuple[Stage, list[Any]]], flows: Sequence[Flow]
    ) -> list[Any]:
        """Make one operation of the letters of a block, each with its operations."""
        store = schedule.store
        held = [flow for flow in flows if flow.tangent()]
        room = [self._copies(schedule) for _ in range(2 if held else 0)]
        moving: list[Any] = []
        kicks: list[Any] = []
        first = 0
        kT: float | None = None
        before: tuple[Stage, list[Any]] | None = None
        for k, (stage, operations) in enumerate(letters):
            if k == 0:
                first, kT = stage.index, stage.kT
            if LETTERS[stage.kind].forces:
                kicks += operations
                continue
            moving += kicks
            kicks = []
            if stage.of_pair == 1:
                before = stage, operations
                continue
            solved = any(flow.before(stage) or flow.after(stage) for flow in held)
            mirrored = operations
            if stage.of_pair == 2 and before is not None:
                other = before[0]
                operations = [*before[1], *operations]
                mirrored = schedule.operations(replace(stage, of_pair=1), flows=flows)
                mirrored += schedule.operations(replace(other, of_pair=2), flows=flows)
            if solved:
                operations = [ThereAndBack(operations, mirrored, *room, abs(stage.h), _NEARNESS * schedule.length)]
            moving += operations
        sums = [force_sum for force_sum in schedule.force_sums.values() if force_sum.forces.operations]
        arrays = [a for force_sum in sums for a in force_sum.arrays]
        energies = np.empty(len(store.ranges))
        return [
            Metropolis(
                moving, kicks, sums, KineticEnergies(store.ranges, energies, True, store.by_row),
                energies, self._copies(schedule),
                Copies(arrays, [False] * len(arrays)), kT, first, self.counts[block],
            )
        ]  # fmt: skip

    def _copies(self, schedule: "Schedule") -> Any:
        """Return room for all that letters change: positions first, then velocities."""
        store = schedule.store
        columns = {column.array: column for column in store.layout.topology.columns}
        names = ["x", "v", *(name for name in columns if name not in ("x", "v"))]
        arrays, momenta = [store.arrays[name] for name in names], [columns[name].is_momentum for name in names]
        others = [array for flow in schedule._all_flows() for array in flow.arrays().values()]
        return Copies(arrays + others, momenta + [False] * len(others))
