"""Tables of residues and names of atoms: force fields' names of amino acids, caps of chains, waters, ions, elements."""

import re
from functools import lru_cache

__all__ = ["CAPS", "CHAIN_ENDS", "PATCHES", "Kind", "NoElementError", "element_of", "kind_of"]

#: Heavy atoms of side chains. Both names of the last carbon of isoleucine are in use.
_SIDE_CHAINS = {
    "ALA": "CB", "ARG": "CB CG CD NE CZ NH1 NH2", "ASN": "CB CG OD1 ND2", "ASP": "CB CG OD1 OD2", "CYS": "CB SG",
    "GLN": "CB CG CD OE1 NE2", "GLU": "CB CG CD OE1 OE2", "GLY": "", "HIS": "CB CG ND1 CD2 CE1 NE2",
    "ILE": "CB CG1 CG2 CD1 CD", "LEU": "CB CG CD1 CD2", "LYS": "CB CG CD CE NZ", "MET": "CB CG SD CE",
    "PHE": "CB CG CD1 CD2 CE1 CE2 CZ", "PRO": "CB CG CD", "SER": "CB OG", "THR": "CB OG1 CG2",
    "TRP": "CB CG CD1 CD2 NE1 CE2 CE3 CZ2 CZ3 CH2", "TYR": "CB CG CD1 CD2 CE1 CE2 CZ OH", "VAL": "CB CG1 CG2",
    "MSE": "CB CG SE CE", "SEC": "CB SE", "HYP": "CB CG CD OD1", "SEP": "CB OG P O1P O2P O3P",
    "TPO": "CB OG1 CG2 P O1P O2P O3P", "PTR": "CB CG CD1 CD2 CE1 CE2 CZ OH P O1P O2P O3P",
}  # fmt: skip
#: The second oxygen of the last residue of a chain, as programs call it.
CHAIN_ENDS = frozenset("OXT OT2 OC2 O2 O''".split())
_BACKBONE = frozenset("N CA C O OT OT1 OC1 O1 O'".split()) | CHAIN_ENDS

#: Names of amino acids in force fields: AMBER, CHARMM, GROMOS and OPLS as GROMACS writes them.
_OTHER_NAMES = {
    "HIS": "HIE HID HIP HIN HSD HSE HSP HISA HISB HISD HISE HISH HISP HIS1 HIS2",
    "CYS": "CYX CYM CYN CYSH CYSF CYSP CYS1 CYS2",
    "ASP": "ASH ASPH ASPP", "GLU": "GLH GLUH GLUP", "LYS": "LYN LYP LSN LYSH", "ARG": "ARGN ARN", "TYR": "TYM",
    "ASN": "ASN1", "GLN": "QLN", "SEP": "S1P S2P", "TPO": "T1P T2P", "PTR": "Y1P Y2P",
}  # fmt: skip
_CALLED = {other: name for name, others in _OTHER_NAMES.items() for other in others.split()}

#: Groups at the ends of chains: mass in g/mol of the bound group.
CAPS = {"ACE": 43.045, "FOR": 29.018, "NME": 30.050, "NH2": 16.023}
_CAPS_CALLED = {"NMA": "NME", "NHE": "NH2"}
#: Atoms of caps, which CHARMM makes part of the first and last residue.
PATCHES = {"CAY": "ACE", "CY": "ACE", "OY": "ACE", "NT": "NME", "CAT": "NME"}

_WATERS = frozenset("HOH DOD WAT H2O TIP TIP2 TIP3 TIP4 TIP5 TP3 TP4 TP5 T3P T4P T5P SPC SPCE SOL OH2".split())
_NUCLEIC = re.compile(r"(D[ACGTUI]|[ACGUI]|[DR][ACGTU])[35N]?|ADE|CYT|GUA|THY|URA")
_IONS = {"SOD": "NA", "CLA": "CL", "POT": "K", "CAL": "CA", "CES": "CS", "LIT": "LI", "RUB": "RB", "BAR": "BA",
         "CAD": "CD", "ZN2": "ZN", "MG2": "MG", "CA2": "CA", "CIM": "CL", "CIO": "CS"}  # fmt: skip
_OF_AMINO_ACIDS = ("C", "N", "O", "S", "P")
#: Names in amino acids of pseudo-atoms of NMR, and of masses and charges beside atoms.
_NO_ATOMS = ("Q", "M", "EP", "LP")


class NoElementError(ValueError):
    """Error of an atom without a known element."""


class Kind:
    """Kind of residue, as in the tables.

    Attributes
    ----------
    name : str
        Of the table; of force fields' names, that of the amino acid.
    what : "amino acid", "cap", "water", "nucleic acid" or "other"
    weight : float, g/mol
        Of the free molecule, with hydrogens; of caps, of the bound group. 0 where it is not known.
    standard : bool
        True if elements follow from the names of atoms.
    """

    def __init__(self, name: str, what: str, weight: float = 0.0, hydrogens: int = 0, standard: bool = False) -> None:
        self.name, self.what, self.weight, self.hydrogens, self.standard = name, what, weight, hydrogens, standard


@lru_cache(4096)
def kind_of(given: str, heavy: frozenset[str] = frozenset()) -> Kind:
    """Return the kind of residue with a name.

    `heavy` are names of its atoms, which distinguish force fields' names from components of the same name.
    """
    import gemmi

    cap = _CAPS_CALLED.get(given, given)
    if cap in CAPS:
        return Kind(cap, "cap", CAPS[cap])
    if given in _WATERS:
        return Kind(given, "water")
    name = _CALLED.get(given, given)
    if len(given) == 4 and given[0] in "NC" and name == given:
        # AMBER's first and last residues of chains.
        end = _CALLED.get(given[1:], given[1:])
        name = end if end in _SIDE_CHAINS else given
    # Names of three letters are also those of components.
    if name != given and len(given) == 3 and heavy - _BACKBONE - frozenset(_SIDE_CHAINS[name].split()):
        name = given
    known = gemmi.find_tabulated_residue(name)
    kinds = gemmi.ResidueKind
    if known.kind in (kinds.AA, kinds.AAD, kinds.PAA, kinds.MAA):
        standard = name in _SIDE_CHAINS or name in ("PYL", "UNK", "ASX", "GLX")
        return Kind(name, "amino acid", known.weight, known.hydrogen_count, standard)
    if known.is_water():
        return Kind(name, "water")
    if _NUCLEIC.fullmatch(name):
        return Kind(name, "nucleic acid")
    return Kind(name, "other", known.weight, known.hydrogen_count)


@lru_cache(4096)
def element_of(kind: Kind, name: str, column: str, field: str | None) -> str:
    """Return the element of an atom, such as C or SE; X of a pseudo-atom.

    Parameters
    ----------
    kind : Kind
        Of its residue.
    name : str
    column : str
        The element column of the file; may be empty.
    field : str or None
        The four columns of the name, where the first two of a file hold elements at the right; None where they do not.

    Raises
    ------
    NoElementError
        The name of the atom has two meanings, or none.
    """
    bare = re.sub(r"[^A-Z]", "", name.lstrip("0123456789'\"*"))
    one, two = bare[:1], bare[:2]
    given = re.sub(r"[^A-Z]", "", column.upper())
    own = _BACKBONE | {"CB"} | frozenset(_SIDE_CHAINS.get(kind.name, "").split())
    if kind.standard or kind.what == "cap" or (kind.what == "amino acid" and name in own):
        if two == "SE" and kind.name in ("MSE", "SEC"):
            return "SE"
        if one in ("H", "D"):
            return one
        if bare.startswith(_NO_ATOMS):
            return "X"
        # Of kinds between two: O or N at the places AD1, AE2.
        letter = "O" if one == "A" and kind.name in ("ASN", "GLN", "ASX", "GLX") else one
        if letter not in _OF_AMINO_ACIDS or (name not in own and _is_element(given) and given != letter):
            raise NoElementError("is not an atom of an amino acid")
        return letter
    if _is_element(given):
        return given
    ion = _IONS.get(kind.name, re.sub(r"[^A-Z]", "", kind.name))
    if _is_element(ion) and (name == kind.name or bare == ion):
        return ion
    if field is not None and len(name) < 4:
        found = two if field[:2].isalpha() else one
    elif one in ("H", "D") or len(two) < 2 or not _is_element(two):
        found = one
    else:
        found = two if two in ("CL", "BR") or not _is_element(one) else ""
    if not _is_element(found):
        raise NoElementError("may be of more than one element, or of none: the file must have the column of elements")
    return found


def _is_element(symbol: str) -> bool:
    import gemmi

    return bool(symbol) and symbol != "X" and gemmi.Element(symbol).name.upper() == symbol
