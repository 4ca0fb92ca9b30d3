"""Structures of proteins: atoms with masses, residue by residue, from PDB and mmCIF files."""

import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import dist, fsum
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import numpy as np

from medyanpy._tools.names import plainly_called
from medyanpy._tools.validation import file_path, whole_number, words
from medyanpy.errors import ParameterError, StructureWarning, warn_outside
from medyanpy.rigid._atoms import Atom, read_file
from medyanpy.rigid._residues import CAPS, CHAIN_ENDS, PATCHES, Kind, NoElementError, element_of, kind_of

__all__ = ["Residue", "Structure", "read_structure"]

# g/mol of a mass of 1 pN s²/nm, which is one gram.
_AVOGADRO = 6.02214076e23
# Mass that amino acids lose when they are joined, and the mass of a hydrogen.
_WATER, _HYDROGEN = 18.015, 1.008
# Å; C and N of successive residues are 1.33 apart where they are bound, their Cα 3.8 or, if cis, 2.9.
_LONGEST_BOND, _LONGEST_STEP = 2.0, 4.5
# nm: two Cα are never so close.
_ONE_PLACE = 0.1
_CHOICES = ("refuse", "leave out", "keep")


class Residue(NamedTuple):
    """One residue: its name, its number in the file, and its chain."""

    name: str
    number: str
    chain: str

    def __str__(self) -> str:
        return f"{self.name} {self.number}" + (f" of chain {self.chain}" if self.chain else "")


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
        The number of the atom's residue in `residues`.
    residues : tuple of Residue
    alpha : (m,) int array
        The number among the atoms of the Cα of every residue of a chain.
    b_factors : (n,) float array, nm²
    breaks : (m,) bool array
        True for residues with a Cα that are not bound to the one before: ends of chains, and gaps.
    left_out : mapping of str to int
        Numbers of atoms of the file that are not among these, by the reason.
    atoms_in_file : int
        Of all models, hydrogens included: those read and those left out.
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
    left_out: Mapping[str, int] = field(default_factory=dict)
    atoms_in_file: int = 0

    @property
    def mass(self) -> float:
        """Total mass, pN s²/nm."""
        return float(self.masses.sum())

    @property
    def chains(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(residue.chain for residue in self.residues))

    def __repr__(self) -> str:
        chains = ", ".join(self.chains)
        number, weight = len(self.alpha), self.mass * _AVOGADRO / 1e3
        without = ", ".join(f"{n} {reason}" for reason, n in self.left_out.items())
        told = f"; left out: {without}" if without else ""
        return f"Structure({len(self.positions)} atoms, {number} residues of chains {chains}; {weight:.1f} kDa{told})"


@plainly_called
def read_structure(
    file: str | os.PathLike[str], *, chains: str | Sequence[str] | None = None, model: int | None = None,
    ligands: Literal["refuse", "leave out", "keep"] = "refuse", gaps: Literal["refuse", "allow"] = "refuse",
    caps: Literal["refuse", "leave out", "keep"] = "keep",
) -> Structure:  # fmt: skip
    """Read the proteins of a PDB or mmCIF file.

    The result holds the heavy atoms of amino acids that make up chains. Water and hydrogens are left out; the mass of
    hydrogens is that of the table of residues, shared by the heavy atoms. Of alternative positions a residue has those
    with the highest occupancy, of equal ones the first; likewise of two kinds of residue in one place. Chains are those
    of the file; assemblies are not built. `left_out` of the result counts the atoms that were not read, by the reason.

    Parameters
    ----------
    file : path
        By its ending: .pdb or .ent, .cif or .mmcif, also with .gz.
    chains : str or sequence of str, optional
        Their names; all of the file by default. With several molecules under one letter A, "A" means all, "A-2" the
        second.
    model : int, optional
        The one of several models (of NMR), by its number in the file; a file with more than one needs it.
    ligands : "refuse", "leave out" or "keep"
        Treatment of molecules beside the chains, other than water, in the chain of a protein or in one of their own.
    gaps : "refuse" or "allow"
        Treatment of residues missing in a chain.
    caps : "refuse", "leave out" or "keep"
        Treatment of the groups ACE, FOR, NME and NH2 at the ends of chains.

    Raises
    ------
    ParameterError
        No such file, chain or model. A file of another kind, with the line. A residue without Cα, or that is not an
        amino acid. An atom without a known element. Two residues in one place. A ligand, gap or cap that is refused, by
        the name of the residue.
    ImportError
        gemmi is not installed: ``pip install medyanpy[structures]``.

    Warns
    -----
    StructureWarning
        The file has confidences (pLDDT) where B factors are: `b_factors` are 0.
    """
    what = "read_structure"
    for name, given, known in (
        ("ligands", ligands, _CHOICES), ("gaps", gaps, ("refuse", "allow")), ("caps", caps, _CHOICES)
    ):  # fmt: skip
        if given not in known:
            raise ParameterError(f"{what}: {name} = {given!r} but must be one of {', '.join(map(repr, known))}")
    path = file_path(f"{what}: file", file)
    found = read_file(what, path)
    atoms = _of_model(what, path, found.atoms, model)
    reader = _Reader(what, path, ligands, gaps, caps)
    if len(atoms) < len(found.atoms):
        reader.left_out["of models not asked for"] = len(found.atoms) - len(atoms)
    structure = reader.read(atoms, chains, len(found.atoms), found.confidences)
    if found.confidences:
        warn_outside(
            f"{what}: {path} has confidences (pLDDT) where B factors are: b_factors of the structure are 0, and "
            "elastic_network needs stiffness=",
            StructureWarning,
        )
    return structure


def _of_model(what: str, path: Path, atoms: list[Atom], model: int | None) -> list[Atom]:
    numbers = list(dict.fromkeys(atom.model for atom in atoms))
    all_of = range(numbers[0], numbers[0] + len(numbers))
    there = f"{numbers[0]} to {numbers[-1]}" if numbers == list(all_of) and len(numbers) > 1 else ", ".join(
        map(str, numbers[:12])) + (", ..." if len(numbers) > 12 else "")  # fmt: skip
    if model is None:
        if len(numbers) > 1:
            second = next(atom.where for atom in atoms if atom.model == numbers[1])
            place = second.rpartition(", ")[2]
            raise ParameterError(
                f"{what}: {path} has {len(numbers)} models: say which, model={there} (the second begins at {place})"
            )
        wanted = numbers[0]
    else:
        wanted = whole_number(f"{what}: model", model)
    if wanted not in numbers:
        raise ParameterError(f"{what}: model = {wanted} but {path} has {there}")
    return [atom for atom in atoms if atom.model == wanted]


# Residues ------------------------------------------------------------------------------------------------------------


class _Place:
    """Atoms of one residue: with one number, of one kind or of alternative kinds."""

    def __init__(self, atom: Atom) -> None:
        self.number, self.part, self.entity = atom.number, atom.part, atom.entity
        self.kinds: dict[str, list[Atom]] = {}
        self.het = True
        self.last: dict[tuple[str, str, str], Atom] = {}

    def takes(self, atom: Atom) -> bool:
        if self.part != atom.part:
            return False
        if atom.residue in self.kinds:
            # A name may occur again where occupancies mark alternatives.
            same = self.last.get((atom.residue, atom.name, atom.alt))
            return same is None or (same.occupancy < 1.0 and atom.occupancy < 1.0)
        # Alternative kinds have letters, or occupancies below 1.
        others = [other for rows in self.kinds.values() for other in rows]
        lettered = atom.alt and any(other.alt for other in others)
        return bool(lettered) or (atom.occupancy < 1.0 and all(other.occupancy < 1.0 for other in others))

    def add(self, atom: Atom) -> None:
        self.kinds.setdefault(atom.residue, []).append(atom)
        self.last[atom.residue, atom.name, atom.alt] = atom
        self.het = self.het and atom.het

    def choose(self) -> None:
        """Take the kind with the highest occupancy, and its alternative with the highest; of equal ones the first."""
        self.name = next(iter(self.kinds))
        if len(self.kinds) > 1:
            self.name = max(self.kinds, key=lambda name: _occupied(self.kinds[name]))
        rows = _lettered(self.kinds.pop(self.name))
        self.others = sum(map(len, self.kinds.values()))
        letters = dict.fromkeys(row.alt for row in rows if row.alt)
        best = max(letters, key=lambda letter: _mean_occupancy([r for r in rows if r.alt == letter]), default="")
        self.rows: dict[str, Atom] = {}
        for row in rows:
            there = self.rows.get(row.name)
            if there is None or _order(row, best) > _order(there, best):
                self.rows[row.name] = row
        self.alternatives = [row for row in rows if self.rows[row.name] is not row]
        heavy = frozenset(name for name in self.rows if name.lstrip("0123456789'")[:1] not in ("H", "D"))
        self.kind, self.has_heavy = kind_of(self.name, heavy), bool(heavy)
        self.where, self.count = rows[0].where, len(rows) + self.others


def _lettered(rows: list[Atom]) -> list[Atom]:
    """Give letters to alternatives without one: names that occur again."""
    times = Counter((row.name, row.alt) for row in rows)
    if len(times) == len(rows):
        return rows
    count, out = Counter[tuple[str, str]](), []
    for row in rows:
        key = (row.name, row.alt)
        count[key] += 1
        out.append(row._replace(alt=f"{row.alt} {count[key]}") if times[key] > 1 else row)
    return out


def _order(row: Atom, best: str) -> tuple[bool, bool, float]:
    # Where the best one does not have an atom: one without a letter, or the one with the highest occupancy.
    return row.alt == best, not row.alt, row.occupancy


def _mean_occupancy(rows: list[Atom]) -> float:
    # Rounded, so that the order of a sum does not decide.
    return round(fsum(row.occupancy for row in rows) / len(rows), 6)


def _occupied(rows: list[Atom]) -> float:
    """Return the occupancy of a kind: that of all its alternatives."""
    letters = dict.fromkeys(row.alt for row in rows)
    if len(letters) > 1:
        letters.pop("", None)
    return round(fsum(_mean_occupancy([row for row in rows if row.alt == letter]) for letter in letters), 6)


def _is_amino(atom: Atom) -> bool:
    return kind_of(atom.residue).what == "amino acid"


def _places(chain: str, atoms: list[Atom]) -> list[_Place]:
    """Return the residues of a chain, in the order of the file."""
    places: list[_Place] = []
    latest: dict[str, _Place] = {}
    for given in atoms:
        amino = _is_amino(given)
        atom = given._replace(residue=PATCHES[given.name]) if amino and given.name in PATCHES else given
        here = places[-1] if places else None
        if here is None or here.number != atom.number or not here.takes(atom):
            if amino and atom is given and here is not None and (here.number, here.part) == (atom.number, atom.part):
                _check_numbers(chain, here, atom)
            # Alternatives may be listed one after another.
            here = latest.get(atom.number)
            if here is None or not atom.alt or not here.takes(atom):
                here = latest[atom.number] = _Place(atom)
                places.append(here)
        here.add(atom)
    for place in places:
        place.choose()
    return places


def _check_numbers(chain: str, here: _Place, atom: Atom) -> None:
    """Refuse two amino acids with one number, one behind the other."""
    named = Residue(atom.residue, atom.number, chain)
    for name, rows in here.kinds.items():
        if name == atom.residue:
            first = next(row.where.rpartition(", ")[2] for row in rows if row.name == atom.name)
            raise ParameterError(
                f"{atom.where}: atom {atom.name} of {named} stands twice, first at {first}, without letters of "
                "alternatives"
            )
        if kind_of(name).what == "amino acid":
            raise ParameterError(f"{atom.where}: {named} has the number of {name}, without letters of alternatives")


class _Reader:
    """Reader of the residues of chains, one after another."""

    def __init__(self, what: str, path: Path, ligands: str, gaps: str, caps: str) -> None:
        self.what, self.path, self.ligands, self.gaps, self.caps = what, path, ligands, gaps, caps
        self.left_out: Counter[str] = Counter()
        self.aligned = True
        self.atoms: list[tuple[Any, ...]] = []
        self.wheres: list[str] = []
        self.residues: list[Residue] = []
        self.alpha: list[int] = []
        self.breaks: list[bool] = []

    def read(self, atoms: list[Atom], chains: Any, in_file: int, confidences: bool) -> Structure:
        # Where Cα begins in the second column of names, the first is of elements with two letters.
        self.aligned = not any(atom.name == "CA" and atom.field[:2] == "CA" and _is_amino(atom) for atom in atoms)
        by_chain: dict[str, list[Atom]] = {}
        for atom in atoms:
            by_chain.setdefault(atom.chain, []).append(atom)
        wanted = _wanted(self.what, self.path, by_chain, chains)
        for name, own in by_chain.items():
            if name in wanted:
                self._chain(name, _places(name, own), wanted[name])
            else:
                self.left_out["of chains not asked for"] += len(own)
        if not self.alpha:
            which = "" if chains is None else f" in chain {', '.join(map(repr, wanted))}"
            raise ParameterError(f"{self.what}: {self.path} holds no residues of a protein{which}")
        self._check_places()
        x, masses, elements, names, residue_of, b = zip(*self.atoms, strict=True)
        # In single precision, which is more than files have.
        b_factors = np.zeros(len(b)) if confidences else 0.01 * np.array(b, np.float32).astype(float)
        return Structure(
            0.1 * np.array(x), np.array(masses) / _AVOGADRO, np.array(elements), np.array(names), np.array(residue_of),
            tuple(self.residues), np.array(self.alpha), b_factors, np.array(self.breaks),
            MappingProxyType(dict(self.left_out)), in_file,
        )  # fmt: skip

    def _chain(self, chain: str, places: list[_Place], copies: set[int] | None) -> None:
        strand = _strand(places)
        numbers, broken = self._molecules(chain, strand)
        several, of_chains = max(numbers, default=1) > 1, {id(place) for place in strand}
        for copy in sorted((copies or set()) - set(numbers)):
            raise ParameterError(f"{self.what}: {self.path} has no chain '{chain}-{copy}'")
        for place, copy in zip(strand, numbers, strict=True):
            named = Residue(place.name, place.number, f"{chain}-{copy}" if several else chain)
            if copies is not None and copy not in copies:
                self.left_out["of chains not asked for"] += place.count
            elif place.kind.what == "cap":
                self._choose(place, named, self.caps, "caps", "a cap of the chain", "in caps")
            else:
                if "CA" not in place.rows:
                    raise ParameterError(f"{place.where}: {named} has no Cα")
                self.alpha.append(len(self.atoms))
                self.breaks.append(broken[id(place)])
                self._add(place, named)
                self.alpha[-1] = next(k for k in range(self.alpha[-1], len(self.atoms)) if self.atoms[k][3] == "CA")
        for place in places:
            if id(place) in of_chains:
                continue
            if not place.has_heavy:
                self.left_out["hydrogens"] += place.count
                continue
            named = Residue(place.name, place.number, chain)
            if place.kind.what == "water" or place.entity == "water":
                self.left_out["of water"] += place.count
            else:
                self._choose(place, named, self.ligands, "ligands", "no part of the protein", "of ligands")

    def _molecules(self, chain: str, strand: list[_Place]) -> tuple[list[int], dict[int, bool]]:
        """Number the molecule of each residue of a chain, from 1, and mark residues not bound to the one before.

        Where a residue is not bound to the one before, another molecule begins if that one is the last of a chain, or
        if the number has occurred; else residues are missing.
        """
        numbers, broken = [], {}
        number, seen, before, ended = 1, set[str](), None, False
        for place in strand:
            if place.kind.what == "cap":
                # The first group of a chain counts to the residue behind it.
                starts = place.kind.name in ("ACE", "FOR") and before is not None
                numbers.append(number + starts)
                ended = True
                continue
            if place.kind.what != "amino acid":
                named = Residue(place.name, place.number, chain)
                raise ParameterError(f"{place.where}: {named} is not a known amino acid")
            broken[id(place)] = before is None or not _bound(before.rows, place.rows)
            if before is not None and broken[id(place)]:
                if ended or place.number in seen:
                    number, seen = number + 1, set()
                elif self.gaps == "refuse":
                    a, b = (Residue(one.name, one.number, chain) for one in (before, place))
                    ter = " (the file ends a molecule there)" if before.part != place.part else ""
                    raise ParameterError(
                        f"{place.where}: residues are missing between {a} and {b}{ter}: model them, or give "
                        'gaps="allow" to go without'
                    )
            numbers.append(number)
            seen.add(place.number)
            before, ended = place, place.kind.standard and bool(CHAIN_ENDS & place.rows.keys())
        return numbers, broken

    def _choose(self, place: _Place, named: Residue, choice: str, option: str, noun: str, reason: str) -> None:
        """Keep, leave out or refuse a residue that is not an amino acid."""
        if choice == "refuse":
            raise ParameterError(f'{place.where}: {named} is {noun}: give {option}="leave out" or {option}="keep"')
        if choice == "keep":
            self._add(place, named)
        else:
            self.left_out[reason] += place.count

    def _add(self, place: _Place, named: Residue) -> None:
        """Add the heavy atoms of a residue, with the mass of the whole."""
        import gemmi

        elements = {row: self._element(place.kind, row, named) for row in [*place.rows.values(), *place.alternatives]}
        reasons = [
            "hydrogens" if element in ("H", "D") else "that stand for none" if element == "X"
            else "in alternative positions" if row in place.alternatives else ""
            for row, element in elements.items()
        ]  # fmt: skip
        heavy = [row for row, reason in zip(elements, reasons, strict=True) if not reason]
        self.left_out.update(reason for reason in reasons if reason)
        if place.others:
            self.left_out["of kinds that are there less in their place"] += place.others
        if not heavy:
            return
        weights = [gemmi.Element(elements[row]).weight for row in heavy]
        own = sum(weights)
        hydrogens = [row for row in place.rows.values() if elements[row] in ("H", "D")]
        mass = _mass(place.kind, own, sum(gemmi.Element(elements[row]).weight for row in hydrogens), len(heavy))
        for row, weight in zip(heavy, weights, strict=True):
            element = gemmi.Element(elements[row]).name
            self.atoms.append((row.position, weight * mass / own, element, row.name, len(self.residues), row.b_factor))
        self.residues.append(named)
        self.wheres.append(place.where)

    def _element(self, kind: Kind, row: Atom, named: Residue) -> str:
        try:
            return element_of(kind, row.name, row.element, row.field if self.aligned and row.field else None)
        except NoElementError as cause:
            raise ParameterError(f"{row.where}: atom {row.name} of {named} {cause}") from None

    def _check_places(self) -> None:
        """Refuse residues in one place, such as two copies of one molecule."""
        from scipy.spatial import cKDTree

        x = 0.1 * np.array([self.atoms[k][0] for k in self.alpha])
        pairs = cKDTree(x).query_pairs(_ONE_PLACE, output_type="ndarray")
        if len(pairs):
            i, j = (self.atoms[self.alpha[k]][4] for k in pairs[np.lexsort(pairs.T[::-1])][0])
            place = self.wheres[i].rpartition(", ")[2]
            raise ParameterError(
                f"{self.wheres[j]}: {self.residues[j]} is where {self.residues[i]} ({place}) is: Cα must be "
                f">= {_ONE_PLACE:g} nm apart"
            )


def _mass(kind: Kind, heavy: float, hydrogens: float, n: int) -> float:
    """Return the mass of a residue or another molecule with its hydrogens, g/mol."""
    if kind.what == "amino acid":
        return kind.weight - _WATER
    if kind.what == "cap":
        # CHARMM's amide is the first atom of its N-methylamide.
        return CAPS["NH2"] if n == 1 else kind.weight
    # The table may have another molecule of this name: one of more than twice the atoms.
    tabulated = kind.weight if kind.weight - kind.hydrogens * _HYDROGEN < 2.0 * heavy else 0.0
    # Hydrogens that neither table nor file has are left out.
    return max(tabulated, heavy + hydrogens)


def _strand(places: list[_Place]) -> list[_Place]:
    """Return the residues that make up chains, and caps: those that are known, bound, or listed as part of one."""
    with_atoms = {place.part for place in places if place.kind.what == "amino acid" and not place.het}
    out = []
    for k, place in enumerate(places):
        what, entity = place.kind.what, place.entity
        if what == "water" or entity in ("water", "non-polymer", "branched") or not place.has_heavy:
            continue
        near = [_bound(a.rows, b.rows) for a, b in ((places[k - 1], place), (place, places[(k + 1) % len(places)]))]
        bound = (k > 0 and near[0]) or (k + 1 < len(places) and near[1])
        if (
            entity == "polymer"
            or what == "cap"
            or (what == "amino acid" and (not place.het or bound or place.part in with_atoms))
            or (what == "nucleic acid" and not place.het)
            or (what == "other" and {"N", "CA", "C"} <= place.rows.keys() and (bound or not place.het))
        ):
            out.append(place)
    return out if any(place.kind.what != "cap" for place in out) else []


def _wanted(what: str, path: Path, there: Mapping[str, Any], chains: Any) -> dict[str, set[int] | None]:
    """Return chains to be read; for those of which only some molecules are, their numbers."""
    if chains is None:
        return dict.fromkeys(there)
    given = [chains] if isinstance(chains, str) and (chains in there or "-" in chains) else words(
        f"{what}: chains", list(chains) if isinstance(chains, str) else chains)  # fmt: skip
    out: dict[str, set[int] | None] = {}
    for name in given:
        one = re.fullmatch(r"(.*)-([1-9]\d{0,5})", name, re.DOTALL)
        if name in there:
            out[name] = None
        elif one and one[1] in there:
            copies = out.setdefault(one[1], set())
            if copies is not None:
                copies.add(int(one[2]))
        else:
            raise ParameterError(f"{what}: {path} has no chain {name!r}, but {', '.join(map(repr, there))}")
    return out


def _bound(before: Mapping[str, Atom], after: Mapping[str, Atom]) -> bool:
    if "C" in before and "N" in after:
        return _distance(before["C"], after["N"]) < _LONGEST_BOND
    return "CA" in before and "CA" in after and _distance(before["CA"], after["CA"]) < _LONGEST_STEP


def _distance(a: Atom, b: Atom) -> float:
    return dist(a.position, b.position)
