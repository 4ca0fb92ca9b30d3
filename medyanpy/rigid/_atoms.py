"""Atoms of PDB and mmCIF files, one by one, each with its place in the file.

Every line or row of an atom becomes one `Atom`, or the file is refused with that line: none is skipped here.
"""

import codecs
import gzip
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from medyanpy._tools.extras import needed
from medyanpy.errors import ParameterError, foreign_errors, shortened, shown

if TYPE_CHECKING:
    from gemmi import cif

__all__ = ["Atom", "File", "read_file"]

_SUFFIXES = {".pdb": "PDB", ".ent": "PDB", ".cif": "mmCIF", ".mmcif": "mmCIF"}
# The largest factor by which a zipped file may expand: structures expand by 3 to 10.
_MOST_UNPACKED, _ALWAYS_UNPACKED = 32, 4_000_000
# Å; the widest column of a PDB file holds less.
_FARTHEST = 1e7
_RECORDS = re.compile(r"^[ \t]*(ATOM|HETATM|MODEL|ENDMDL|TER|END)(?![A-Z])[^\n]*", re.MULTILINE | re.IGNORECASE)
_PREDICTED = re.compile(r"^(?:TITLE|HEADER)[^\n]*(?:ALPHAFOLD|ESMFOLD)|^[^\n]*\bPLDDT\b", re.MULTILINE | re.IGNORECASE)
_MEASURED = re.compile(r"^EXPDTA[^\n]*(?:DIFFRACTION|NMR|MICROSCOPY|SCATTERING)", re.MULTILINE | re.IGNORECASE)


class Atom(NamedTuple):
    """One atom, as a file has it.

    `where` is its line or row, in words. `field` are the four columns of its name, empty in mmCIF. `part` changes where
    the file ends a molecule. `entity` is polymer, non-polymer, branched or water, or empty where the file does not have
    it.
    """

    where: str
    het: bool
    name: str
    field: str
    alt: str
    residue: str
    chain: str
    number: str
    position: tuple[float, float, float]
    occupancy: float
    b_factor: float
    element: str
    model: int
    part: str
    entity: str


class File(NamedTuple):
    """All atoms of a file, and whether it has a confidence (pLDDT) in place of B factors."""

    atoms: list[Atom]
    confidences: bool


def read_file(what: str, path: Path) -> File:
    """Read all atoms of a PDB or mmCIF file, zipped or not.

    Raises
    ------
    ParameterError
        No such file. A file of another kind, with the line. A file without atoms.
    ImportError
        gemmi is not installed.
    """
    with needed(what, "gemmi", "structures"):
        import gemmi  # noqa: F401
    suffixes = [suffix.lower() for suffix in path.suffixes]
    ending = suffixes[-2] if suffixes[-1:] == [".gz"] and len(suffixes) > 1 else (suffixes or [""])[-1]
    if ending not in _SUFFIXES:
        known = ", ".join(_SUFFIXES)
        raise ParameterError(f"{what}: {shown(str(path))} must end in one of {known}, also with .gz behind")
    with foreign_errors(f"{what}: {shown(str(path))} cannot be read"):
        if not path.is_file():
            raise ParameterError(f"{what}: there is no file {path}")
        data = path.read_bytes()
    where = f"{what}: {path}"
    text = _text(where, _unzipped(where, data))
    found = (_pdb if _SUFFIXES[ending] == "PDB" else _mmcif)(where, text)
    if not found.atoms:
        raise ParameterError(f"{where} has no atoms")
    return found


def _unzipped(where: str, data: bytes) -> bytes:
    if data[:2] != b"\x1f\x8b":
        return data
    most = _MOST_UNPACKED * len(data) + _ALWAYS_UNPACKED
    with foreign_errors(f"{where} is not a gzip file, or is cut short"), gzip.open(io.BytesIO(data)) as file:
        out = file.read(most + 1)
    if len(out) > most:
        raise ParameterError(f"{where} is zipped to less than 1/{_MOST_UNPACKED} of its size: no structure is")
    return out


def _text(where: str, data: bytes) -> str:
    """Decode a file, with line ends of one character, whatever system wrote them."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        with foreign_errors(f"{where} is not text"):
            text = data.decode("utf-16")
    else:
        # Only names of authors are beyond ASCII, never atoms; one byte stays one column.
        text = data.removeprefix(codecs.BOM_UTF8).decode("latin-1")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _numbers(where: str, words: list[str], called: tuple[str, ...]) -> list[float]:
    out = []
    for word, name in zip(words, called, strict=True):
        try:
            out.append(float(word))
        except ValueError:
            raise ParameterError(f"{where}: {name} = {shown(word.strip())} is not a number") from None
        if not abs(out[-1]) < _FARTHEST:
            raise ParameterError(f"{where}: {name} = {out[-1]:g} but must be finite and below {_FARTHEST:g}")
    return out


_CALLED = ("x", "y", "z", "occupancy", "B factor")


# PDB -----------------------------------------------------------------------------------------------------------------


def _pdb(path: str, text: str) -> File:
    atoms: list[Atom] = []
    first_lines: dict[int, int] = {}
    model, part, line, at = 1, 0, 1, 0
    inside = False  # True while a model is open: atoms behind its end are of another.
    for found in _RECORDS.finditer(text):
        line, at = line + text.count("\n", at, found.start()), found.start()
        record, row = found[1].upper(), found[0]
        where = f"{path}, line {line}"
        if record in ("ATOM", "HETATM"):
            if not inside:
                model, inside = max(first_lines) + 1 if first_lines else model, True
            first_lines.setdefault(model, line)
            atoms.append(_pdb_atom(where, record, row, model, part))
        elif record == "MODEL":
            model, inside, part = _pdb_model(where, row, max(first_lines, default=0) + 1), True, part + 1
            if model in first_lines:
                raise ParameterError(f"{where}: model {model} stands twice, first from line {first_lines[model]}")
        elif record == "TER":
            part += 1
        else:  # END and ENDMDL
            inside, part = False, part + 1
    head = text[: text.find("\nATOM")]
    confidences = bool(_PREDICTED.search(head)) and not _MEASURED.search(head)
    return File(atoms, confidences)


def _pdb_model(where: str, row: str, following: int) -> int:
    word = row.strip()[5:].split()
    if not word:
        return following
    if not re.fullmatch(r"-?\d{1,9}", word[0]):
        raise ParameterError(f"{where}: MODEL {shown(word[0])} has no number")
    return int(word[0])


def _pdb_atom(where: str, record: str, row: str, model: int, part: int) -> Atom:
    if not row.isascii() or not row.isprintable():
        raise ParameterError(f"{where}: a name is not text, {shown(row[:27])}")
    if row[:1].isspace():
        raise ParameterError(f"{where}: an atom must begin in the first column")
    # In the files of some programs, numbers of six digits move the columns behind them.
    if row[11:12].isdigit() and row[34:35] != "." and row[35:36] == ".":
        row = row[:6] + row[7:]
    if len(row) < 54:
        raise ParameterError(f"{where}: the line of an atom ends at column {len(row)}, before its coordinates do")
    row = row.ljust(80)
    words = [row[30:38], row[38:46], row[46:54], row[54:60].strip() or "1", row[60:66].strip() or "0"]
    x, y, z, occupancy, b = _numbers(where, words, _CALLED)
    residue, chain = row[17:21].strip().upper(), row[21].strip()
    if row[20] != " " and _two_letters_of_a_chain(row):
        residue, chain = row[17:20].strip().upper(), row[20:22].strip()
    return Atom(
        where, record == "HETATM", row[12:16].strip().upper(), row[12:16].upper(), row[16].strip(), residue, chain,
        _decimal(row[22:26].strip()) + row[26].strip(), (x, y, z), occupancy, b, row[76:78].strip(), model, str(part),
        "",
    )  # fmt: skip


def _two_letters_of_a_chain(row: str) -> bool:
    """Tell whether column 21 belongs to a chain, and not to a residue's name, which is then a known one."""
    from medyanpy.rigid._residues import kind_of

    four, three = (kind_of(row[17:end].strip().upper()).what for end in (21, 20))
    return four == "other" and three != "other"


def _decimal(number: str) -> str:
    """Return numbers of residues above 9999, which hybrid-36 writes with letters, as decimals; others unchanged."""
    if not re.fullmatch(r"[A-Z][A-Z0-9]{3}|[a-z][a-z0-9]{3}", number):
        return number
    above = 10_000 - 10 * 36**3 + (26 * 36**3 if number.islower() else 0)
    return str(int(number, 36) + above)


# mmCIF ---------------------------------------------------------------------------------------------------------------

_COLUMNS = (
    "Cartn_x", "Cartn_y", "Cartn_z", "?occupancy", "?B_iso_or_equiv", "?group_PDB", "?label_atom_id", "?auth_atom_id",
    "?label_alt_id", "?label_comp_id", "?auth_comp_id", "?auth_asym_id", "?label_asym_id", "?auth_seq_id",
    "?label_seq_id", "?pdbx_PDB_ins_code", "?type_symbol", "?pdbx_PDB_model_num", "?label_entity_id",
)  # fmt: skip


def _mmcif(path: str, text: str) -> File:
    from gemmi import cif

    try:
        blocks = list(cif.read_string(text))
        holding = [block for block in blocks if block.find(["_atom_site.Cartn_x"])]
    except Exception as cause:  # gemmi raises any.
        said = re.sub(r"^\w+:(\d+)\S*", r"line \1", str(cause))
        raise ParameterError(f"{path} is not an mmCIF file: {shortened(said)}") from cause
    if len(holding) > 1:
        names = " and ".join(block.name for block in holding[:2])
        raise ParameterError(f"{path} has atoms in {len(holding)} blocks, such as {names}: one file must hold one")
    if not holding:
        return File([], False)
    with foreign_errors(f"{path} is not an mmCIF file"):
        return File(list(_mmcif_atoms(path, holding[0])), _tells_confidences(holding[0]))


def _mmcif_atoms(path: str, block: "cif.Block") -> Iterator[Atom]:
    from gemmi import cif

    table = block.find("_atom_site.", list(_COLUMNS))
    if not len(table):
        missing = [name for name in _COLUMNS[:3] if not block.find([f"_atom_site.{name}"])]
        raise ParameterError(f"{path}: the table of atoms has no column {missing[0] if missing else 'of coordinates'}")
    names = [name.removeprefix("?") for name in _COLUMNS]
    n = len(table)
    columns: dict[str, list[str]] = {}
    for k, name in enumerate(names):
        columns[name] = [cif.as_string(row[k]) for row in table] if table.has_column(k) else [""] * n
    for first, other in (
        ("label_atom_id", "auth_atom_id"), ("label_comp_id", "auth_comp_id"),
        ("auth_asym_id", "label_asym_id"), ("auth_seq_id", "label_seq_id"),
    ):  # fmt: skip
        columns[first] = [a or b for a, b in zip(columns[first], columns[other], strict=True)]
    told = block.find("_entity.", ["id", "type"])
    entities = {cif.as_string(row[0]): cif.as_string(row[1]).lower() for row in told}
    begin = next(
        (item.line_number for item in block if item.loop and item.loop.tags[0].lower().startswith("_atom_site.")), 1
    )
    for k, row in enumerate(zip(*(columns[name] for name in names), strict=True), 1):
        where = f"{path}, atom {k} of the table at line {begin}"
        x, y, z, occupancy, b, group, atom, _, alt, comp, _, chain, asym, number, _, code, symbol, model, entity = row
        if not "".join(row).isascii():
            raise ParameterError(f"{where}: a name is not text, {shown(' '.join(row[6:16]))}")
        if not atom or not comp:
            raise ParameterError(f"{where}: has no name of an atom, or of a residue")
        if model and not re.fullmatch(r"-?\d{1,9}", model):
            raise ParameterError(f"{where}: model {shown(model)} has no number")
        # Standard uncertainties stand in brackets behind numbers.
        words = [re.sub(r"\(\d+\)$", "", word) for word in (x, y, z, occupancy or "1", b or "0")]
        px, py, pz, share, spread = _numbers(where, words, _CALLED)
        yield Atom(
            where, group.upper() == "HETATM", atom.upper(), "", alt, comp.upper(), chain, number + code, (px, py, pz),
            share, spread, symbol, int(model or 1), asym, entities.get(entity, ""),
        )  # fmt: skip


def _tells_confidences(block: "cif.Block") -> bool:
    from gemmi import cif

    told = [cif.as_string(v) for tag in ("name", "type") for v in block.find_values(f"_ma_qa_metric.{tag}")]
    return any("plddt" in value.lower() for value in told)
