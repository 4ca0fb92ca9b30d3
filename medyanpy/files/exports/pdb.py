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
from medyanpy.files.exports._format import FormatOfEqualFrames
from medyanpy.files.particles import Particles, chain_numbers, edges_of

__all__ = ["FORMAT"]

# Numbers of atoms have five columns, coordinates eight: of large ones fewer decimals are left, here at least one.
_MOST_ATOMS = 99_999
_LEAST_X, _MOST_X = -99_999.9, 999_999.9
# Sides have nine columns, with three decimals; numbers of residues four.
_MOST_SIDE = 99_999.999 * units.angstrom
_MOST_RESIDUES = 9_999
_CHAINS = ascii_letters + digits
# Names of residues that the Chemical Component Dictionary of the wwPDB never gives to a molecule ("Ligand codes 01 to
# 99", reserved 2023): others are amino acids, nucleotides or water for readers.
_RESIDUES = [f"{k:02d}" for k in range(1, 100)]


class _Pdb(FormatOfEqualFrames):
    title = "PDB"
    #: The box, where it is periodic in all directions; see `left_out`.
    holds: ClassVar[frozenset[str]] = frozenset({"bonds", "force bonds", "box"})

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
        heads, tails = self._records()
        has_box = bool(self.boxes.any()) and not self.box_left_out(_MOST_SIDE)
        with open(made[0], "w", encoding="ascii", newline="\n") as file:
            file.write("REMARK   1 WRITTEN BY MEDYANPY; LENGTHS ARE ANGSTROM\n")
            for k, (name, word) in enumerate(_short(list(self.contents.handles)).items()):
                residue = _RESIDUES[k % len(_RESIDUES)]
                file.write(f"REMARK   1 RESIDUE {residue}, SEGMENT {word:<4s}: {_ascii(name, 45)}\n")
            for k, (_, places, alive) in enumerate(self.each_in_full()):
                file.write(f"MODEL     {(k + 1) % 10_000:4d}\n")
                if has_box:
                    # In each model: readers take that of the first for no other.
                    sides = "".join(f"{side:9.3f}" for side in self.boxes[k] / units.angstrom)
                    file.write(f"CRYST1{sides}  90.00  90.00  90.00 P 1           1\n")
                for head, x, is_there, tail in zip(heads, places.tolist(), alive.tolist(), tails, strict=True):
                    occupancy = "  1.00" if is_there else "  0.00"
                    file.write(f"{head}{''.join(map(_eight_columns, x))}{occupancy}  0.00{tail}\n")
                file.write("ENDMDL\n")
            # END would be a frame without atoms for chemfiles.
            file.writelines(self._bonds())

    def _records(self) -> tuple[list[str], list[str]]:
        """Return the text before the coordinates of every atom, and the text behind."""
        heads, tails = [""] * len(self._rows), [""] * len(self._rows)
        used = dict.fromkeys(_CHAINS, 0)
        words = _short(list(self.contents.handles))
        for k, handle in enumerate(self.contents.handles.values()):
            own = np.arange(len(handle))
            if handle.links is not None:
                own = chain_numbers(len(handle), handle.links)
            elif handle.faces is not None:
                own = np.zeros_like(own)
            # Rows that never have a bead are not atoms.
            place = np.searchsorted(self._rows, handle.beads)
            there = np.isin(handle.beads, self._rows)
            _, own = np.unique(own[there], return_inverse=True)
            labels = _residues(k, int(own.max(initial=-1)) + 1, used)
            name, word = words[handle.name], _RESIDUES[k % len(_RESIDUES)]
            for row, residue in zip(place[there].tolist(), own.tolist(), strict=True):
                heads[row] = f"ATOM  {row + 1:5d} {name:<4s} {word:>3s} {labels[residue]}    "
                tails[row] = f"      {name:<4s}"
        return heads, tails

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
        out = [*super().left_out(), *self.box_left_out(_MOST_SIDE)]
        out.append("PDB files have coordinates in eight columns: rounded to 0.001 Å, large ones to 0.01 or 0.1 Å.")
        if self.contents.comes_and_goes:
            out.append("PDB files have the same atoms in every model: in rows without a bead the occupancy is 0.")
        return out


def _residues(first: int, n: int, used: dict[str, int]) -> list[str]:
    """Return the chain and the number of n residues of a handle, none of which another has: in the chain of this
    number, and in the next where it has no number left. `used` counts the residues of each chain, and is brought up to
    date."""
    out = []
    for _ in range(n):
        while used[_CHAINS[first % len(_CHAINS)]] == _MOST_RESIDUES:
            first += 1
        chain = _CHAINS[first % len(_CHAINS)]
        used[chain] += 1
        out.append(f"{chain}{used[chain]:4d}")
    return out


def _short(names: list[str]) -> dict[str, str]:
    """Return four letters for each name, no two the same."""
    out: dict[str, str] = {}
    for name in names:
        word, number = _ascii(name, 4), 1
        while word in out.values():
            number += 1
            word = f"{_ascii(name, 4)[: 4 - len(str(number))]}{number}"
        out[name] = word
    return out


def _eight_columns(x: float) -> str:
    text = f"{x:8.3f}"
    return text if len(text) == 8 else f"{x:8.{max(0, 3 - (len(text) - 8))}f}"


def _ascii(name: str, length: int) -> str:
    """Return the beginning of a name, of letters and digits."""
    return "".join(c for c in name if c.isascii() and c.isalnum())[:length] or "X"


FORMAT = _Pdb
