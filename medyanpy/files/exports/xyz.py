"""Extended XYZ: a line of text for each particle.

Format: libAtoms/extxyz, "Extended XYZ specification"; names of properties are those that OVITO gives meaning to. A
periodic box is the lattice; in open directions, where `pbc` is F, it is as wide as particles reach, and without a box
there is none. Positions are not brought into it: they are those of one and the same image for ever. The species of a
particle is the name of its handle, which only ASE takes for an element. For ASE there are the columns `Z`, where 0 is
not an element, and `handle` with the names.
"""

from pathlib import Path
from typing import ClassVar

import numpy as np

from medyanpy.files.exports._format import Format, words_of
from medyanpy.files.hdf5 import ENERGIES
from medyanpy.files.particles import Particles

__all__ = ["FORMAT"]


class _Xyz(Format):
    title = "Extended XYZ"
    holds: ClassVar[frozenset[str]] = frozenset({
        "velocities", "radii", "masses", "ids", "orientations", "semi-axes", "energies", "times", "precision", "box",
    })  # fmt: skip

    def write(self, made: list[Path]) -> None:
        trajectory = self.contents.trajectory
        # Quotation marks and # mean something to some readers.
        known = [c for names in (self.contents.types, self.contents.handles) for c in names]
        words = words_of(list(dict.fromkeys(known)), lambda c: c.isalnum() or c in "-_+./")
        species = [words[name] for name in self.contents.types]
        handles = [words[name] for name in self.contents.handle_of]
        turns = any(handle.rows_of == "oriented" for handle in self.contents.handles.values())
        shapes = any("semi_axes" in handle.beside for handle in self.contents.handles.values())
        with open(made[0], "w", encoding="utf-8", newline="\n") as file:
            for k, there in zip(self.frames, self.each(), strict=True):
                head, columns = _columns(there, turns, shapes)
                energies = "".join(f" {name}={getattr(trajectory[k], name)!r}" for name in ENERGIES)
                about = f"Properties=species:S:1:{head}:handle:S:1 Time={there.time!r} Step={there.step}"
                file.write(f"{len(there)}\n{about}{energies}{_box(there)}\n")
                types = there.types.tolist()
                for t, *row in zip(types, *(c.tolist() for c in columns), strict=True):
                    file.write(f"{species[t]} {' '.join(map(repr, row))} {handles[t]}\n")


def _box(there: Particles) -> str:
    """Return what the head of a frame says of the box."""
    pbc = " ".join("FT"[int(side > 0.0)] for side in there.box)
    if not there.is_periodic:
        return f' pbc="{pbc}"'
    reach = np.ptp(there.positions, axis=0) if len(there) else np.zeros(3)
    wide = np.where(there.box > 0.0, there.box, np.where(reach > 0.0, reach, there.box.max()))
    lattice = " ".join(repr(float(x)) for x in np.diag(wide).ravel())
    return f' Lattice="{lattice}" pbc="{pbc}"'


def _columns(there: Particles, turns: bool, shapes: bool) -> tuple[str, list[np.ndarray]]:
    """Return the columns of the particles, and how the head of a frame describes them."""
    found: list[tuple[str, str, np.ndarray]] = [("pos", "R", there.positions)]
    if there.velocities is not None:
        found.append(("velo", "R", there.velocities))
    found += [
        # Readers make of nan what they like; 0 is not a radius.
        ("radius", "R", np.nan_to_num(there.radii)), ("mass", "R", there.masses), ("id", "I", there.ids),
        ("Z", "I", np.zeros_like(there.ids)),
    ]  # fmt: skip
    if turns:
        # The scalar last, as OVITO has it.
        found.append(("orientation", "R", there.orientations[:, [1, 2, 3, 0]]))
    if shapes:
        found.append(("aspherical_shape", "R", np.nan_to_num(there.semi_axes)))
    # Of no particles, too, whose numbers of columns nothing tells but their shapes.
    found = [(name, kind, values if values.ndim > 1 else values[:, None]) for name, kind, values in found]
    head = ":".join(f"{name}:{kind}:{values.shape[1]}" for name, kind, values in found)
    return head, [column for _, _, values in found for column in values.T]


FORMAT = _Xyz
