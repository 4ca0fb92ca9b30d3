"""DCD, the files of CHARMM, NAMD and VMD: coordinates and boxes alone, for atoms that another file names.

The atoms are those of the PDB file of the same frames, in the same order. Lengths are Å, times ps in equal steps,
numbers in single precision. Written by MDAnalysis.
"""

import warnings
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from medyanpy import units
from medyanpy._tools.extras import needed
from medyanpy.files.exports._format import FormatOfEqualFrames

__all__ = ["FORMAT"]

_PICOSECOND = 1e-3 * units.nanosecond
# Numbers of steps have four bytes.
_MOST_STEPS = 2**31 - 1


def _import_mdanalysis() -> Any:
    with needed("export: a DCD file", "MDAnalysis", "viewers"):
        import MDAnalysis
        import MDAnalysis.coordinates.DCD
    return MDAnalysis


class _Dcd(FormatOfEqualFrames):
    title = "DCD"
    #: The box, where it is periodic in all directions; see `left_out`.
    holds: ClassVar[frozenset[str]] = frozenset({"times", "box"})

    @classmethod
    def check_installed(cls) -> None:
        _import_mdanalysis()

    def write(self, made: list[Path]) -> None:
        mda = _import_mdanalysis()
        atoms = mda.Universe.empty(len(self._rows), trajectory=True).atoms
        steps = self.contents.trajectory.steps[list(self.frames)].tolist()
        # A single frame does not tell the distance to others: one interval, which the run has taken up to it, is used.
        every = steps[1] - steps[0] if len(steps) > 1 else steps[0]
        time = self.times[1] - self.times[0] if len(steps) > 1 else self.times[0]
        if every < 1 or steps[-1] > _MOST_STEPS:
            every, steps = 1, [round(self.times[0] / time) if time else 0]
        with warnings.catch_warnings():
            # The warnings are on frames without a box, which are meant.
            warnings.simplefilter("ignore")
            with mda.coordinates.DCD.DCDWriter(
                str(made[0]), len(atoms), dt=float(time) / _PICOSECOND, nsavc=every, istart=steps[0],
                remarks="WRITTEN BY MEDYANPY",
            ) as writer:  # fmt: skip
                for k, (_, places, _) in enumerate(self.each_in_full()):
                    atoms.positions = places
                    box = self.boxes[k] / units.angstrom
                    atoms.dimensions = [*box, 90.0, 90.0, 90.0] if self.is_closed else None
                    writer.write(atoms)

    def left_out(self) -> list[str]:
        out = [*super().left_out(), *self.box_left_out()]
        steps = np.diff(self.times)
        if len(steps) and np.ptp(steps) > 1e-6 * steps[0]:
            out.append("DCD files have equal times between frames, here that between the first two.")
        out.append("DCD files have no names: the PDB file of the same frames has the same atoms.")
        return out


FORMAT = _Dcd
