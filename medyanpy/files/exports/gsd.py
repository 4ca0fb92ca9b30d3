"""GSD, the files of HOOMD-blue: particles, bonds and angles, as many in each frame as there are.

Lengths are nm, masses pN s²/nm, velocities nm/s: the format has no units. It has boxes, periodic ones; here a cube four
times as wide as the run reaches from the origin, so that no distance between two particles is shorter across it.
"""

from pathlib import Path
from typing import Any

import numpy as np

from medyanpy._tools.extras import needed
from medyanpy.files.exports._format import Format
from medyanpy.files.hdf5 import ENERGIES
from medyanpy.files.particles import Particles, edges_of

__all__ = ["FORMAT"]


def _import_gsd() -> Any:
    with needed("export: a GSD file", "gsd", "viewers"):
        import gsd.hoomd
    return gsd.hoomd


class _Gsd(Format):
    title = "GSD"
    holds = frozenset({
        "triangles", "flips", "bonds", "bound", "velocities", "radii", "masses", "ids", "orientations", "semi-axes",
        "energies", "times",
    })  # fmt: skip

    @classmethod
    def check_installed(cls) -> None:
        _import_gsd()

    def write(self, made: list[Path]) -> None:
        hoomd = _import_gsd()
        trajectory = self.contents.trajectory
        reach = max((float(np.abs(there.positions).max(initial=0.0)) for there in self.each()), default=0.0)
        with hoomd.open(name=str(made[0]), mode="w") as file:
            for k, there in zip(self.frames, self.each(), strict=True):
                frame = hoomd.Frame()
                frame.configuration.step = there.step
                frame.configuration.dimensions = 3
                frame.configuration.box = [4.0 * reach or 1.0] * 3 + [0.0] * 3
                self._fill(frame, there)
                frame.log["time"] = np.array([there.time])
                for name in ENERGIES:
                    frame.log[name] = np.array([getattr(trajectory[k], name)])
                frame.log["particles/id"] = there.ids
                file.append(frame)

    def _fill(self, frame: Any, there: Particles) -> None:
        particles, bonds, angles = frame.particles, frame.bonds, frame.angles
        particles.N, particles.types, particles.typeid = len(there), self.contents.types, there.types
        particles.type_shapes = self._shapes(there)
        particles.position = there.positions
        particles.mass = there.masses
        # 0 is no radius.
        particles.diameter = 2.0 * np.nan_to_num(there.radii)
        particles.orientation = there.orientations
        if there.velocities is not None:
            particles.velocity = there.velocities
        membranes = self.contents.membranes
        edges = [edges_of(there.faces[name]) for name in membranes if name in there.faces]
        names = [len(self.contents.bond_types) + k for k, name in enumerate(membranes) if name in there.faces]
        bonds.group = np.concatenate([there.bonds, *edges])
        bonds.types = [*self.contents.bond_types, *membranes]
        bonds.typeid = np.concatenate([there.bond_types, *map(np.full, map(len, edges), names)]).astype(np.uint32)
        bonds.N = len(bonds.group)
        faces = [there.faces[name] for name in membranes if name in there.faces]
        kinds = [k for k, name in enumerate(membranes) if name in there.faces]
        angles.group = np.concatenate([np.empty((0, 3), np.int64), *faces])
        angles.types = membranes
        angles.typeid = np.concatenate([np.empty(0, np.int64), *map(np.full, map(len, faces), kinds)]).astype(np.uint32)
        angles.N = len(angles.group)

    def _shapes(self, there: Particles) -> list[dict[str, Any]]:
        """The shape of each type, as the schema of GSD has it: ellipsoids, where all of a type are alike."""
        shapes: list[dict[str, Any]] = []
        for number in range(len(self.contents.types)):
            axes = there.semi_axes[there.types == number]
            alike = len(axes) > 0 and np.isfinite(axes).all() and (axes == axes[0]).all()
            shapes.append({"type": "Ellipsoid", **dict(zip("abc", axes[0].tolist(), strict=True))} if alike else {})
        return shapes


FORMAT = _Gsd
