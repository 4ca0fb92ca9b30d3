"""Stanford PLY: the triangles of a membrane in a frame, a file for each.

In a periodic box they are where pictures show them; those across its sides have images of their vertices, behind all
others. A comment has the lengths of the box.
"""

from pathlib import Path
from typing import ClassVar

import numpy as np

from medyanpy._tools.images import box_lengths
from medyanpy.files.exports._format import Format, in_file_names, words_of
from medyanpy.mesh.images import Part, shown_positions, with_images
from medyanpy.mesh.ply import write_ply

__all__ = ["FORMAT"]


class _Ply(Format):
    title = "PLY"
    holds: ClassVar[frozenset[str]] = frozenset({"triangles", "flips", "precision"})

    def check(self) -> None:
        if not self.contents.membranes:
            raise self.refuse("has no membrane, and PLY files hold nothing else")
        if not self._wanted():
            raise self.refuse("has no membrane in these frames, and PLY files hold nothing else")

    def _wanted(self) -> list[tuple[int, str]]:
        """Return a frame and a membrane for each file."""
        trajectory = self.contents.trajectory
        return [(k, name) for k in self.frames for name in self.contents.membranes if name in trajectory[k].handles]

    def paths(self) -> list[Path]:
        wanted = self._wanted()
        several, series = len({name for _, name in wanted}) > 1, len(self.frames) > 1
        words = words_of(self.contents.membranes, in_file_names)
        digits = max(4, len(str(self.frames[-1])))
        stem, suffix = self.out.stem, self.out.suffix
        return [
            self.out.with_name(f"{stem}{f'.{words[name]}' * several}{f'.{k:0{digits}d}' * series}{suffix}")
            for k, name in wanted
        ]

    def write(self, made: list[Path]) -> None:
        trajectory = self.contents.trajectory
        for path, (k, name) in zip(made, self._wanted(), strict=True):
            frame = trajectory[k]
            handle = frame.handles[name]
            vertices = np.asarray(frame.positions, np.float64)[handle.beads]
            faces, comments = np.asarray(frame.beside(handle)["faces"], np.int32), []
            if frame.box is not None:
                box = box_lengths(frame.box)
                vertices = shown_positions(vertices, {name: Part(np.arange(len(vertices)), faces)}, box)
                vertices, faces, _ = with_images(vertices, faces, box)
                comments = [f"periodic box {' '.join('open' if s is None else repr(s) for s in frame.box)}"]
            path.write_bytes(write_ply(vertices, faces, comments))

    def left_out(self) -> list[str]:
        others = [name for name in self.contents.handles if name not in self.contents.membranes]
        there = f" ({', '.join(others)})" if others else ""
        out = [f"PLY files are written without beads that are not vertices{there}, and without numbers and times."]
        if self.boxes.any():
            out.append(
                "PLY files have vertices by their images in the periodic box; where triangles lie across its sides, "
                "images of vertices are behind all others."
            )
        return out


FORMAT = _Ply
