"""Structures of proteins: atoms with masses, residue by residue, from PDB and mmCIF files."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from medyanpy._tools.extras import needed
from medyanpy._tools.names import plainly_called
from medyanpy._tools.validation import whole_number
from medyanpy.errors import ParameterError

if TYPE_CHECKING:
    import gemmi

__all__ = ["Residue", "Structure", "read_structure"]

# g/mol of a mass of 1 pN s²/nm, which is one gram.
_AVOGADRO = 6.02214076e23
# What amino acids lose when they are joined.
_WATER = 18.015
# Å; C and N of successive residues are 1.33 apart where they are bound, their Cα 3.8 or, if cis, 2.9.
_LONGEST_BOND, _LONGEST_STEP = 2.0, 4.5
_SUFFIXES = {".pdb": "PDB", ".ent": "PDB", ".cif": "mmCIF", ".mmcif": "mmCIF"}


class Residue(NamedTuple):
    """One residue: its name, the number that its file gives it, and its chain."""

    name: str
    number: str
    chain: str

    def __str__(self) -> str:
        return f"{self.name} {self.number} of chain {self.chain}"


@dataclass(frozen=True, eq=False)
class Structure:
    """Heavy atoms of proteins, in the order of their file.

    Attributes
    ----------
    positions : (n, 3) float array, nm
    masses : (n,) float array, pN s²/nm
        Those of the elements, with the hydrogens: atoms of a residue share its mass in proportion to their own.
    elements, names : (n,) array of str
        Such as C and CA.
    residue_of : (n,) int array
        To which of `residues` an atom belongs.
    residues : tuple of Residue
    alpha : (m,) int array
        The Cα of every residue that is one of a chain: its number among the atoms.
    b_factors : (n,) float array, nm²
    breaks : (m,) bool array
        Of the residues with a Cα, those to which the one before is not bound: ends of chains, and gaps.
    """

    positions: np.ndarray
    masses: np.ndarray
    elements: np.ndarray
    names: np.ndarray
    residue_of: np.ndarray
    residues: tuple[Residue, ...]
    alpha: np.ndarray
    b_factors: np.ndarray
    breaks: np.ndarray

    @property
    def mass(self) -> float:
        """pN s²/nm."""
        return float(self.masses.sum())

    @property
    def chains(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(residue.chain for residue in self.residues))

    def __repr__(self) -> str:
        chains = ", ".join(self.chains)
        number, weight = len(self.alpha), self.mass * _AVOGADRO / 1e3
        return f"Structure({len(self.positions)} atoms, {number} residues of chains {chains}; {weight:.1f} kDa)"


@plainly_called
def read_structure(
    file: str | os.PathLike[str],
    *,
    chains: str | Sequence[str] | None = None,
    model: int | None = None,
    ligands: Literal["refuse", "leave out", "keep"] = "refuse",
    gaps: Literal["refuse", "allow"] = "refuse",
) -> Structure:
    """Read the proteins of a PDB or mmCIF file.

    What is read are heavy atoms of amino acids that make up chains. Water and hydrogens are left out; the mass of
    hydrogens is that of the table of residues, shared by the heavy atoms. Of alternative positions a residue has those
    with the highest occupancy, of equal ones the first. Chains are those of the file: no assembly is built of them.

    Parameters
    ----------
    file : path
        By its ending: .pdb or .ent, .cif or .mmcif, also with .gz.
    chains : str or sequence of str, optional
        Their names; all of the file by default.
    model : int, >= 1, optional
        Which of several models (of NMR); a file with more than one needs it.
    ligands : "refuse", "leave out" or "keep"
        What becomes of molecules beside the chains, other than water.
    gaps : "refuse" or "allow"
        Whether residues may be missing in a chain.

    Returns
    -------
    Structure

    Raises
    ------
    ParameterError
        No such file, chain or model; what is no file of this kind; a residue without Cα, or that is no amino acid; a
        ligand or gap that is refused, by the name of the residue.
    ImportError
        gemmi is not installed: ``pip install medyanpy[structures]``.
    """
    what = "read_structure"
    for name, given, known in (
        ("ligands", ligands, ("refuse", "leave out", "keep")),
        ("gaps", gaps, ("refuse", "allow")),
    ):
        if given not in known:
            raise ParameterError(f"{what}: {name} = {given!r} but must be one of {', '.join(map(repr, known))}")
    path = Path(file)
    found = _models(what, path)
    if model is None and len(found) > 1:
        raise ParameterError(f"{what}: {path} has {len(found)} models: say which, model=1 to {len(found)}")
    number = whole_number(f"{what}: model", 1 if model is None else model, at_least=1, at_most=len(found))
    there = found[number - 1]
    try:
        return _Reader(what, ligands, gaps).read(path, _chains(what, path, there, chains))
    except UnicodeDecodeError as cause:
        raise ParameterError(f"{what}: {path}: a name is no text: {cause}") from cause


def _models(what: str, path: Path) -> "gemmi.Structure":
    with needed(what, "gemmi", "structures"):
        import gemmi
    suffixes = [suffix.lower() for suffix in path.suffixes]
    kind = suffixes[-2] if suffixes[-1:] == [".gz"] and len(suffixes) > 1 else (suffixes or [""])[-1]
    if kind not in _SUFFIXES:
        known = ", ".join(_SUFFIXES)
        raise ParameterError(f"{what}: {path} must end in one of {known}, also with .gz behind")
    if not path.is_file():
        raise ParameterError(f"{what}: there is no file {path}")
    try:
        if _SUFFIXES[kind] == "mmCIF":
            structure = gemmi.read_structure(str(path))
        else:
            # Columns 73 to 80 are elements and charges by now; before 1996 they were the name of the entry.
            try:
                structure = gemmi.read_pdb(str(path))
            except (ValueError, RuntimeError):
                structure = gemmi.read_pdb(str(path), max_line_length=72)
    except (ValueError, RuntimeError, OSError, UnicodeDecodeError) as cause:
        raise ParameterError(f"{what}: {path} is no {_SUFFIXES[kind]} file: {str(cause)[:200]}") from cause
    if not len(structure) or not any(len(chain) for chain in structure[0]):
        raise ParameterError(f"{what}: {path} has no atoms")
    structure.merge_chain_parts()
    structure.setup_entities()
    return structure


def _chains(what: str, path: Path, model: "gemmi.Model", chains: Any) -> list["gemmi.Chain"]:
    """Those wanted that hold proteins, in the order of the file."""
    there = {chain.name: chain for chain in model}
    proteins = [name for name, chain in there.items() if len(chain.get_polymer())]
    if chains is None:
        wanted = proteins
    else:
        wanted = [chains] if isinstance(chains, str) and chains in there else list(chains)
        for name in wanted:
            if name not in there:
                raise ParameterError(f"{what}: {path} has no chain {name!r}, but {', '.join(map(repr, there))}")
            if name not in proteins:
                raise ParameterError(f"{what}: chain {name!r} of {path} holds no residues of a protein")
    if not wanted:
        raise ParameterError(f"{what}: {path} holds no residues of a protein")
    return [chain for name, chain in there.items() if name in wanted]


class _Reader:
    """Takes the residues of chains, one after another."""

    def __init__(self, what: str, ligands: str, gaps: str) -> None:
        self.what, self.ligands, self.gaps = what, ligands, gaps
        self.atoms: list[tuple[Any, ...]] = []
        self.residues: list[Residue] = []
        self.alpha: list[int] = []
        self.breaks: list[bool] = []

    def read(self, path: Path, chains: "list[gemmi.Chain]") -> Structure:
        for chain in chains:
            before = None
            for residue in chain.get_polymer():
                before = self._in_chain(path, chain.name, residue, before)
            for residue in chain.get_ligands():
                self._beside(path, chain.name, residue)
        x, masses, elements, names, residue_of, b = zip(*self.atoms, strict=True)
        positions = 0.1 * np.array(x)
        if not np.isfinite(positions).all():
            bad = int(np.argmin(np.isfinite(positions).all(axis=1)))
            raise ParameterError(f"{self.what}: {path}: an atom of {self.residues[residue_of[bad]]} has no position")
        return Structure(
            positions,
            np.array(masses) / _AVOGADRO,
            np.array(elements),
            np.array(names),
            np.array(residue_of),
            tuple(self.residues),
            np.array(self.alpha),
            0.01 * np.array(b),
            np.array(self.breaks),
        )

    def _in_chain(
        self, path: Path, chain: str, residue: "gemmi.Residue", before: dict[str, Any] | None
    ) -> dict[str, Any]:
        """One residue of a protein; returns its atoms by name."""
        import gemmi

        named = Residue(residue.name, str(residue.seqid), chain)
        known = gemmi.find_tabulated_residue(residue.name)
        if not known.is_amino_acid():
            raise ParameterError(f"{self.what}: {path}: {named} is no amino acid that is known")
        atoms = _heavy(residue)
        if "CA" not in atoms:
            raise ParameterError(f"{self.what}: {path}: {named} has no Cα")
        broken = before is None or not _bound(before, atoms)
        if broken and before is not None and self.gaps == "refuse":
            raise ParameterError(
                f"{self.what}: {path}: residues are missing between {self.residues[-1]} and {named}: model them, or "
                'give gaps="allow" to go without'
            )
        self.alpha.append(len(self.atoms) + list(atoms).index("CA"))
        self.breaks.append(broken)
        self._add(named, atoms, known.weight - _WATER)
        return atoms

    def _beside(self, path: Path, chain: str, residue: "gemmi.Residue") -> None:
        import gemmi

        named = Residue(residue.name, str(residue.seqid), chain)
        if residue.is_water() or self.ligands == "leave out":
            return
        if self.ligands == "refuse":
            raise ParameterError(
                f'{self.what}: {path}: {named} is no part of the protein: give ligands="leave out" or ligands="keep"'
            )
        atoms = _heavy(residue)
        own = sum(atom.element.weight for atom in atoms.values())
        # Of what the table does not know, hydrogens are left out.
        self._add(named, atoms, max(gemmi.find_tabulated_residue(residue.name).weight, own))

    def _add(self, named: Residue, atoms: "dict[str, gemmi.Atom]", weight: float) -> None:
        own = sum(atom.element.weight for atom in atoms.values())
        for name, atom in atoms.items():
            mass = atom.element.weight * weight / own
            x = (atom.pos.x, atom.pos.y, atom.pos.z)
            self.atoms.append((x, mass, atom.element.name, name, len(self.residues), atom.b_iso))
        self.residues.append(named)


def _heavy(residue: "gemmi.Residue") -> "dict[str, gemmi.Atom]":
    """Its atoms but hydrogens, by name: of alternatives those that are occupied most, all of one kind."""
    occupancy: dict[str, float] = {}
    for atom in residue:
        if atom.has_altloc():
            occupancy[atom.altloc] = occupancy.get(atom.altloc, 0.0) + atom.occ
    best = max(occupancy, key=lambda letter: occupancy[letter], default="")
    found: dict[str, gemmi.Atom] = {}
    for atom in residue:
        if atom.is_hydrogen():
            continue
        # Where the best one does not have an atom, it is that of whoever has it first.
        if atom.name not in found or (atom.has_altloc() and atom.altloc == best):
            found[atom.name] = atom
    return found


def _bound(before: "dict[str, gemmi.Atom]", after: "dict[str, gemmi.Atom]") -> bool:
    if "C" in before and "N" in after:
        return before["C"].pos.dist(after["N"].pos) < _LONGEST_BOND
    return before["CA"].pos.dist(after["CA"].pos) < _LONGEST_STEP
