"""Simularium files, for the viewer in the browser: balls, fibres, and plots of energies.

Format: Allen Institute for Cell Science, Simularium file format (JSON), trajectoryInfo version 3, spatialData version
1. The viewer shows what is between 4 and 64 units wide: lengths are scaled to 64 units, and the file holds how many nm
one is. A periodic box is the viewer's; particles are where pictures show them.
"""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from medyanpy.files.exports._format import Format
from medyanpy.files.hdf5 import ENERGIES
from medyanpy.files.particles import Particles, lines_of

__all__ = ["FORMAT"]

_WIDTH = 64.0
_BALL, _FIBRE = 1000, 1001


class _Simularium(Format):
    title = "Simularium"
    holds: ClassVar[frozenset[str]] = frozenset({"bonds", "radii", "ids", "energies", "times", "box"})

    def write(self, made: list[Path]) -> None:
        centre, size, nm = self._window()
        times = self.times.tolist()
        steps = [after - before for before, after in pairwise(times)]
        info = {
            "version": 3,
            "timeUnits": {"magnitude": 1.0, "name": "s"},
            "timeStepSize": steps[0] if steps else 0.0,
            "totalSteps": len(times),
            "spatialUnits": {"magnitude": nm, "name": "nm"},
            "size": dict(zip("xyz", (size / nm).tolist(), strict=True)),
            "cameraDefault": {
                "position": {"x": 0.0, "y": 0.0, "z": 1.5 * _WIDTH},
                "lookAtPosition": dict.fromkeys("xyz", 0.0),
                "upVector": {"x": 0.0, "y": 1.0, "z": 0.0},
                "fovDegrees": 50.0,
            },
            "typeMapping": {
                str(k): {"name": name, "geometry": {"displayType": "SPHERE" if handle.links is None else "FIBER"}}
                for k, (name, handle) in enumerate(self.contents.handles.items())
            },
        }
        about = {"version": 1, "msgType": 1, "bundleStart": 0, "bundleSize": len(times)}
        with open(made[0], "w", encoding="utf-8") as file:
            file.write(f'{{"trajectoryInfo":{json.dumps(info)},\n"spatialData":{json.dumps(about)[:-1]},"bundleData":[')
            for k, there in enumerate(self.each()):
                comma = "," if k else ""
                numbers = ",".join(f"{x:.7g}" for x in self._agents(there, centre, nm))
                file.write(f'{comma}\n{{"frameNumber":{k},"time":{there.time!r},"data":[{numbers}]}}')
            file.write(f']}},\n"plotData":{json.dumps({"version": 1, "data": self._plots(times)})}}}\n')

    def _window(self) -> tuple[np.ndarray, np.ndarray, float]:
        """Return the centre of all that there is, or of the box (nm), its width (nm), and the nm of a unit."""
        low, high = np.full(3, np.inf), np.full(3, -np.inf)
        for there in self.each():
            if len(there):
                x = there.shown_positions
                low, high = np.minimum(low, x.min(axis=0)), np.maximum(high, x.max(axis=0))
        box = self.boxes.max(axis=0)
        if not np.isfinite(low).all() and not box.all():
            return np.zeros(3), np.full(3, _WIDTH), 1.0
        low, high = np.where(box > 0.0, 0.0, low), np.where(box > 0.0, box, high)
        widest = float(max((high - low).max(), 2.0 * self.contents.size))
        size = np.where(box > 0.0, box, np.maximum(high - low, 2.0 * self.contents.size))
        return 0.5 * (low + high), size if box.any() else np.full(3, widest), widest / _WIDTH

    def _agents(self, there: Particles, centre: np.ndarray, nm: float) -> list[float]:
        """Return the numbers of each agent: kind, number and type, place and rotation, radius, points of a fibre."""
        x = (there.shown_positions - centre) / nm
        radii = np.where(there.radii > 0.0, there.radii, self.contents.size) / nm
        handles = [self.contents.handles[name] for name in self.contents.handle_of]
        chained = np.array([handle.links is not None for handle in handles], bool)[there.types]
        balls = np.flatnonzero(~chained)
        table = np.zeros((len(balls), 11))
        table[:, 0], table[:, 1], table[:, 2] = _BALL, there.ids[balls], there.types[balls]
        table[:, 3:6], table[:, 9] = x[balls], radii[balls]
        out: list[float] = table.ravel().tolist()
        links = there.bonds[chained[there.bonds].all(axis=1) & (there.bond_types < len(self.contents.chains))]
        for line in lines_of(links):
            first = line[0]
            head = [_FIBRE, there.ids[first], there.types[first], 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, radii[first]]
            out += [*map(float, head), 3.0 * len(line), *x[line].ravel().tolist()]
        return out

    def _plots(self, times: list[float]) -> list[dict[str, Any]]:
        trajectory = self.contents.trajectory
        return [
            {
                "layout": {
                    "title": name.replace("_", " "),
                    "xaxis": {"title": "time (s)"},
                    "yaxis": {"title": "K" if name == "temperature" else "pN nm"},
                },
                "data": [{
                    "name": name, "type": "scatter", "mode": "lines", "x": times,
                    "y": [float(getattr(trajectory[k], name)) for k in self.frames],
                }],
            }
            for name in ENERGIES
        ]  # fmt: skip

    def left_out(self) -> list[str]:
        out = super().left_out()
        if self.box_changes:
            out.append("Simularium files have one box, here as large as it was at the most.")
        if self.open_directions:
            out.append(
                f"In open directions ({self.open_directions}) the box of Simularium files is as wide as the run."
            )
        if self.contents.membranes:
            out.append(f"Vertices of membranes are small balls ({', '.join(self.contents.membranes)}).")
        return out


FORMAT = _Simularium
