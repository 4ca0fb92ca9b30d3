"""Protein Data Bank files: what nearly every program of molecules opens.

Format: wwPDB, "Atomic Coordinate Entry Format Description", version 3.3: CRYST1, ATOM, MODEL and CONECT
records. Lengths are Å.
"""

from collections.abc import Iterator
from pathlib import Path
from string import ascii_letters, digits
from typing import ClassVar

import numpy as np

from medyanpy import units
from medyanpy.files.exports._format import Format, features
from medyanpy.files.particles import Contents, Particles, chain_numbers, edges_of

__all__ = ["FORMAT"]

# Numbers of atoms have five columns, coordinates eight: of large ones fewer decimals are left, here at least one.
_MOST_ATOMS = 99_999
_LEAST_X, _MOST_X = -99_999.9, 999_999.9
# Nine, with three decimals.
_MOST_SIDE = 99_999.999
_CHAINS = ascii_letters + digits


class _Pdb(Format):
    title = "PDB"
    #: The box, where it is periodic in all directions; see `left_out`.
    holds: ClassVar[frozenset[str]] = frozenset({"bonds", "box"})

    def __init__(self, contents: Contents, frames: range, out: Path) -> None:
        super().__init__(contents, frames, out)
        # Readers want the same atoms in every model: all that are there in any.
        there = np.zeros(contents.trajectory.n_beads, bool)
        low, high = np.inf, -np.inf
        for one in self.each():
            there[one.rows] = True
            low, high = min(low, one.positions.min(initial=np.inf)), max(high, one.positions.max(initial=-np.inf))
        self._rows, self._reach = np.flatnonzero(there), (low, high)

    def check(self) -> None:
        if len(self._rows) > _MOST_ATOMS:
            raise self.refuse(
                f"has {len(self._rows)} beads, and PDB files hold at most {_MOST_ATOMS}; .gsd and .xyz hold any number"
            )
        low, high = (x / units.angstrom for x in self._reach)
        if low < _LEAST_X or high > _MOST_X:
            raise self.refuse(
                f"has coordinates from {self._reach[0]:g} to {self._reach[1]:g} nm, and PDB files hold "
                f"{_LEAST_X * units.angstrom:g} to {_MOST_X * units.angstrom:g}; .gsd and .xyz hold any"
            )

    def write(self, made: list[Path]) -> None:
        places, heads, tails = self._first_places(), *self._records()
        with open(made[0], "w", encoding="ascii", newline="\n") as file:
            file.write("REMARK   1 WRITTEN BY MEDYANPY; LENGTHS ARE ANGSTROM\n")
            if self._has_box:
                sides = "".join(f"{side:9.3f}" for side in self.boxes[0] / units.angstrom)
                file.write(f"CRYST1{sides}  90.00  90.00  90.00 P 1           1\n")
            for k, there in enumerate(self.each(), start=1):
                own = np.searchsorted(self._rows, there.rows)
                places[own] = there.positions / units.angstrom
                alive = np.zeros(len(places), bool)
                alive[own] = True
                file.write(f"MODEL     {k % 10_000:4d}\n")
                for head, x, is_there, tail in zip(heads, places.tolist(), alive.tolist(), tails, strict=True):
                    occupancy = "  1.00" if is_there else "  0.00"
                    file.write(f"{head}{''.join(map(_eight_columns, x))}{occupancy}  0.00{tail}\n")
                file.write("ENDMDL\n")
            file.writelines(self._bonds())
            file.write("END\n")

    @property
    def _has_box(self) -> bool:
        """Whether there is one, periodic in all directions, that nine columns hold."""
        sides = self.boxes[0] / units.angstrom
        return bool((sides > 0.0).all() and (sides <= _MOST_SIDE).all())

    def _first_places(self) -> np.ndarray:
        """(n, 3) Å, where those that are there later are first seen."""
        places = np.full((len(self._rows), 3), np.nan)
        for there in self.each():
            own = np.searchsorted(self._rows, there.rows)
            new = np.isnan(places[own, 0])
            places[own[new]] = there.positions[new] / units.angstrom
            if not np.isnan(places).any():
                break
        return places

    def _records(self) -> tuple[list[str], list[str]]:
        """What stands before the coordinates of every atom, and behind."""
        heads, tails = {}, {}
        residue = 0
        for k, handle in enumerate(self.contents.handles.values()):
            chain = _CHAINS[k % len(_CHAINS)]
            own = np.arange(len(handle))
            if handle.links is not None:
                own = chain_numbers(len(handle), handle.links)
            elif handle.faces is not None:
                own = np.zeros_like(own)
            name, word = _ascii(handle.name, 4), _ascii(handle.name, 3).upper()
            for row, number in zip(handle.beads.tolist(), own.tolist(), strict=True):
                resid = (residue + number + 1) % 10_000
                heads[row] = f"{name:<4s} {word:>3s} {chain}{resid:4d}    "
                tails[row] = f"      {name:<4s}"
            residue += int(own.max(initial=-1)) + 1
        serials = enumerate(self._rows.tolist(), start=1)
        return [f"ATOM  {k:5d} {heads[row]}" for k, row in serials], [tails[row] for row in self._rows.tolist()]

    def _bonds(self) -> Iterator[str]:
        first: Particles = next(self.each())
        pairs = np.concatenate([
            first.bonds[~np.isin(first.bond_types, self.contents.numbers_of_jumps)],
            *(edges_of(faces) for faces in first.faces.values()),
        ])  # fmt: skip
        serial = np.searchsorted(self._rows, first.rows[pairs]) + 1
        # Each bond from both of its atoms, four to a record.
        both = np.concatenate([serial, serial[:, ::-1]])
        both = both[np.lexsort((both[:, 1], both[:, 0]))]
        for own in np.split(both, np.flatnonzero(np.diff(both[:, 0])) + 1):
            for start in range(0, len(own), 4):
                others = "".join(f"{other:5d}" for other in own[start : start + 4, 1].tolist())
                yield f"CONECT{int(own[0, 0]):5d}{others}\n"

    def left_out(self) -> list[str]:
        out = super().left_out()
        if self.boxes.any():
            if not self._has_box:
                box = features(self.contents)["box"]
                out.append(
                    f"PDB files are written without {box}: they hold those that are periodic in all directions, at "
                    f"most {_MOST_SIDE * units.angstrom:g} nm wide."
                )
            elif self.box_changes:
                out.append("PDB files have one box, here that of the first frame.")
        out.append("PDB files have coordinates in eight columns: rounded to 0.001 Å, large ones to 0.01 or 0.1 Å.")
        if self.contents.comes_and_goes:
            out.append("PDB files have the same atoms in every model: where nobody is, the occupancy is 0.")
        return out


def _eight_columns(x: float) -> str:
    text = f"{x:8.3f}"
    return text if len(text) == 8 else f"{x:8.{max(0, 3 - (len(text) - 8))}f}"


def _ascii(name: str, length: int) -> str:
    """The beginning of a name, of letters and digits."""
    return "".join(c for c in name if c.isascii() and c.isalnum())[:length] or "X"


FORMAT = _Pdb
