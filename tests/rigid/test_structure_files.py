"""Every atom of a structure's file is accounted for: read, left out for a reason that is counted, or refused by name.

Files are counted by parsers of their own here, which share nothing with the package.
"""

import dataclasses
import gzip
import re
import warnings
from collections import Counter

import numpy as np
import pytest
from builders import refuses

import medyanpy as mp
from medyanpy import rigid

# Files and their text: reaches no kernel.
pytestmark = pytest.mark.slow

pytest.importorskip("gemmi")

DALTON = 1.0 / 6.02214076e23
PLACES = {"N": (0.0, 0.0), "CA": (1.2, 0.8), "C": (2.5, 0.2), "O": (2.6, -1.0), "CB": (1.2, 2.3)}
STEP = 3.8  # Å: C and the next N are 1.3 apart.


def atom(name, kind, number, x, y=0.0, z=0.0, *, chain="A", alt=" ", occupancy=1.0, element=None, het=False, code=" ",
         field=None, b=10.0):  # fmt: skip
    """One line; without element= its column is that of the first letter."""
    field = f" {name:<3}" if field is None and len(name) < 4 else field or f"{name:<4}"
    element = name.lstrip("0123456789")[:1] if element is None else element
    return (
        f"{'HETATM' if het else 'ATOM  '}{1:5d} {field}{alt}{kind:<4}{chain}{number:>4}{code}   "
        f"{x:8.3f}{y:8.3f}{z:8.3f}{occupancy:6.2f}{b:6.2f}          {element:>2}"
    )


def residue(kind, number, k=None, *, y=0.0, skip=(), **options):
    """The backbone and Cβ at the k-th place of a straight chain."""
    k = number - 1 if k is None else k
    return [atom(n, kind, number, STEP * k + px, y + py, **options) for n, (px, py) in PLACES.items() if n not in skip]


def chain(kinds=("ALA",) * 4, first=1, **options):
    return [line for k, kind in enumerate(kinds) for line in residue(kind, first + k, k, **options)]


def written(folder, lines, name="protein.pdb"):
    path = folder / name
    path.write_text("\n".join([*lines, "END", ""]))
    return path


def counted(path):
    """Lines of atoms, or rows of the table of atoms: by a parser that knows nothing else."""
    raw = path.read_bytes()
    text = (gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw).decode("latin-1")
    if ".cif" in path.name:
        rows = [line for line in text.splitlines() if re.match(r"(ATOM|HETATM)\s", line)]
    else:
        rows = [line for line in re.split(r"\r\n|\r|\n", text) if re.match(r"(ATOM|HETATM)", line, re.I)]
    return len(rows)


def read(path, **options):
    """The structure, after its books are checked."""
    found = rigid.read_structure(path, **options)
    assert found.atoms_in_file == counted(path)
    assert len(found.positions) + sum(found.left_out.values()) == found.atoms_in_file
    assert all(n > 0 for n in found.left_out.values())
    for reason, n in found.left_out.items():
        assert f"{n} {reason}" in repr(found)
    return found


def elements(found):
    return found.elements.tolist()


# Users' files --------------------------------------------------------------------------------------------------------

#: Residues, heavy atoms, and what is left out, each counted by hand or by the owners of the files.
USERS = {
    "more/proteins/3jqh.cif": (23, 185, {}),
    "more/proteins/insertions.cif": (7, 60, {}),
    "more/proteins/t4_lysozyme_amber.pdb": (162, 1298, {"ligands": "keep"}),
    "proteins/adk_closed_1ake.pdb": (214, 1656, {}),
    "proteins/adk_open_4ake.pdb": (214, 1656, {"chains": "A"}),
    "proteins/cholera_toxin_1chb.pdb": (515, 4070 + 228, {"ligands": "keep"}),
    "proteins/glyr_7tu9.pdb": (1709, 13864 + 451, {"ligands": "keep", "gaps": "allow"}),
    "proteins/lysozyme_1aki.pdb": (129, 1001, {}),
    "proteins/ubiquitin_1ubq.pdb": (76, 602, {}),
}


def pytest_generate_tests(metafunc):
    if "users_file" in metafunc.fixturenames:
        metafunc.parametrize("users_file", USERS)


def test_all_atoms_of_users_files(shared_data, users_file):
    residues, atoms, options = USERS[users_file]
    found = read(shared_data / users_file, **options)
    assert (len(found.alpha), len(found.positions)) == (residues, atoms)


def test_no_users_file_is_left_out(shared_data):
    folders = (shared_data / "proteins", shared_data / "more" / "proteins")
    there = {f"{path.relative_to(shared_data)}" for folder in folders for path in folder.glob("*.*")}
    assert {name for name in there if not name.endswith(".md")} == set(USERS)


def test_a_ligand_without_elements_has_its_mass(shared_data):
    """p-xylene, C8H10: 106.165 g/mol. Its hydrogens are in the file, and it is in no table."""
    path = shared_data / "more" / "proteins" / "t4_lysozyme_amber.pdb"
    found = rigid.read_structure(path, ligands="keep")
    np.testing.assert_allclose(found.masses[-8:].sum() / DALTON, 106.165, rtol=1e-4)
    refuses(mp.ParameterError, r"t4_lysozyme_amber\.pdb, line 2606: TMP 163 is no part of", rigid.read_structure, path)


# Chains and molecules ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("between", [["TER"], [], chain(y=60.0, chain="B")])
@pytest.mark.parametrize("gaps", ["refuse", "allow"])
def test_copies_under_one_letter_are_molecules_of_their_own(tmp_path, between, gaps):
    other = 20 if len(between) > 1 else 0
    path = written(tmp_path, [*chain(), *between, *chain(y=30.0)])
    found = read(path, gaps=gaps)
    assert len(found.positions) == 40 + other
    assert set(found.chains) == {"A-1", "A-2"} | ({"B"} if other else set())
    second = read(path, gaps=gaps, chains="A-2")
    assert second.chains == ("A-2",)
    assert second.positions[:, 1].min() > 2.0
    assert second.left_out == {"of chains not asked for": 20 + other}
    assert len(read(path, gaps=gaps, chains="A").positions) == 40
    refuses(mp.ParameterError, "has no chain 'A-3'", rigid.read_structure, path, chains="A-3")


def test_a_chain_that_has_its_last_oxygen_is_followed_by_another(tmp_path):
    """AMBER numbers all chains through, without letters."""
    last = atom("OXT", "ALA", 2, 7.0, -1.0, chain=" ")
    lines = [*chain(("ALA", "ALA"), chain=" "), last, "TER", *chain(("ALA", "ALA"), first=3, y=30.0, chain=" ")]
    found = read(written(tmp_path, lines))
    assert found.breaks.tolist() == [True, False, True, False]
    assert found.chains == ("-1", "-2")
    with pytest.raises(mp.ParameterError, match=r"line 12: residues are missing between ALA 2 and ALA 3 \(the"):
        rigid.read_structure(written(tmp_path, lines[:10] + lines[11:]))


def test_two_residues_in_one_place_are_refused(tmp_path):
    lines = [*chain(), "TER", *chain()]
    with pytest.raises(mp.ParameterError, match=r"line 22: ALA 1 of chain A-2 is where ALA 1 of chain A-1 \(line 1"):
        rigid.read_structure(written(tmp_path, lines))


def test_an_atom_that_stands_twice_is_refused_or_an_alternative(tmp_path):
    lines = chain()
    twice = [*lines[:10], atom("CB", "ALA", 2, 5.5, 2.5), *lines[10:]]
    with pytest.raises(mp.ParameterError, match="line 11: atom CB of ALA 2 of chain A stands twice, first at line 10"):
        rigid.read_structure(written(tmp_path, twice))
    shares = [lines[9].replace("  1.00 10", "  0.40 10"), atom("CB", "ALA", 2, 5.5, 2.5, occupancy=0.6)]
    found = read(written(tmp_path, [*lines[:9], *shares, *lines[10:]]))
    assert found.left_out == {"in alternative positions": 1}
    np.testing.assert_allclose(found.positions[9], [0.55, 0.25, 0.0])
    other = [*lines[:10], atom("CA", "GLY", 2, 5.5, 2.5), *lines[10:]]
    with pytest.raises(mp.ParameterError, match="line 11: GLY 2 of chain A has the number of ALA, without letters"):
        rigid.read_structure(written(tmp_path, other))


@pytest.mark.parametrize("given", [{}, {"ligands": "leave out"}, {"ligands": "keep", "gaps": "allow"}])
@pytest.mark.parametrize("het", [False, True])
def test_residues_behind_ter_are_of_the_protein(tmp_path, given, het):
    lines = [*chain(("ALA", "ALA")), "TER", *residue("MSE" if het else "ALA", 3, het=het), *residue("ALA", 4)]
    assert len(read(written(tmp_path, lines), **given).alpha) == 4


def test_a_free_amino_acid_is_a_ligand(tmp_path):
    """HETATM behind TER, bound to nothing."""
    path = written(tmp_path, [*chain(), "TER", *residue("GLY", 301, 0, y=20.0, skip=("CB",), het=True)])
    refuses(mp.ParameterError, "line 22: GLY 301 of chain A is no part of the protein", rigid.read_structure, path)
    assert read(path, ligands="leave out").left_out == {"of ligands": 4}
    assert len(read(path, ligands="keep").alpha) == 4


LIGANDS = {
    "in its chain": ("A", 99), "in a chain of its own": ("B", 1), "without a letter": (" ", 1),
    "with the number of a residue": ("A", 4),
}  # fmt: skip


@pytest.mark.parametrize("where", LIGANDS)
@pytest.mark.parametrize("record", [True, False])
def test_ligands_wherever_they_are(tmp_path, where, record):
    letter, number = LIGANDS[where]
    heme = [atom("FE", "HEM", number, 0.0, 6.0, field="FE  ", element="FE", chain=letter, het=record)]
    heme += [atom(n, "HEM", number, x, 6.0, chain=letter, het=record) for n, x in (("NA", 2.0), ("NB", 4.0))]
    water = [atom("O", kind, 7 + k, 0.0, 30.0 + k, chain="W") for k, kind in enumerate(("HOH", "TIP3", "WAT", "SOL"))]
    path = written(tmp_path, [*chain(), "TER", *heme, *water])
    refuses(mp.ParameterError, f"line 22: HEM {number}.* is no part of the protein", rigid.read_structure, path)
    kept = read(path, ligands="keep")
    assert elements(kept)[-3:] == ["Fe", "N", "N"]
    assert kept.left_out == {"of water": 4}
    assert read(path, ligands="leave out").left_out == {"of ligands": 3, "of water": 4}
    if letter == "B":
        # A chain of ligands may be asked for beside one with a protein, not alone.
        assert len(read(path, ligands="keep", chains=["A", "B"]).positions) == 23
        with pytest.raises(mp.ParameterError, match="holds no residues of a protein in chain 'B'"):
            rigid.read_structure(path, ligands="keep", chains="B")


def test_ions_and_waters_whose_numbers_repeat(tmp_path):
    water = [atom("O", "HOH", 9999, 0.0, 50.0 + k, chain="W", het=True) for k in range(30)]
    ions = [
        atom(name, kind, 5, 3.0 * k, 40.0, field=f"{name:<4}", chain="I", element="", het=True)
        for k, (name, kind) in enumerate((("SOD", "SOD"), ("CLA", "CLA"), ("ZN", "ZN"), ("CA", "CA"), ("Na+", "Na+")))
    ]
    found = read(written(tmp_path, [*chain(), *water, *ions]), ligands="keep")
    assert found.left_out == {"of water": 30}
    assert elements(found)[20:] == ["Na", "Cl", "Zn", "Ca", "Na"]


@pytest.mark.parametrize(("lines", "options", "text"), [
    ([atom("P", "DA", 9, 0.0, chain="B"), atom("C1'", "DA", 9, 4.0, chain="B")], {}, "DA 9 .* is not a known"),
    ([atom("P", "ADE", 9, 0.0, chain="B")], {"ligands": "leave out"}, "ADE 9 of chain B is not a known amino acid"),
    (residue("XYZ", 5), {"ligands": "leave out"}, "line 21: XYZ 5 of chain A is not a known amino acid"),
    (residue("XYZ", 5, het=True), {"ligands": "leave out"}, "XYZ 5 of chain A is not a known amino acid"),
    (residue("ALA", 5, skip=("CA",)), {}, "line 21: ALA 5 of chain A has no Cα"),
])  # fmt: skip
def test_residues_in_a_chain_are_never_ligands(tmp_path, lines, options, text):
    refuses(mp.ParameterError, text, rigid.read_structure, written(tmp_path, [*chain(), *lines]), **options)


# Names ---------------------------------------------------------------------------------------------------------------

NAMES = {"HIS": "HIE HID HIP HSD HSE HSP HISA HISB HISD HISE HISH HIS1 HIS2", "CYS": "CYX CYM CYSH CYS1 CYS2",
         "ASP": "ASH ASPH ASPP", "GLU": "GLH GLUH GLUP", "LYS": "LYN LSN LYSH LYP", "ARG": "ARGN"}  # fmt: skip


@pytest.mark.parametrize(
    ("given", "usual"),
    [(other, name) for name, others in NAMES.items() for other in others.split()]
    + [(f"{end}{name}", name) for end in "NC" for name in ("ALA", "GLY", "MET", "TRP")]
    + [("NHIE", "HIS"), ("CHIP", "HIS"), ("NCYX", "CYS"), ("CASH", "ASP"), ("hsd", "HIS"), ("S2P", "SEP")],
)
def test_names_of_force_fields_are_amino_acids(tmp_path, given, usual):
    """To a proton; the name stays as the file has it."""
    one, other = (read(written(tmp_path, chain(("ALA", kind, "ALA")))) for kind in (given, usual))
    assert one.residues[1].name == given.upper()
    np.testing.assert_allclose(one.masses, other.masses)
    assert one.alpha.tolist() == other.alpha.tolist()


@pytest.mark.parametrize(("kind", "name"), [("HSE", "OG"), ("HIP", "P"), ("LYN", "NT1")])
def test_components_with_a_name_of_force_fields_are_not_taken_for_theirs(tmp_path, kind, name):
    """HSE of the PDB is homoserine, HIP a phosphohistidine: their atoms tell."""
    lines = [*residue("ALA", 1), *residue(kind, 2), atom(name, kind, 2, 5.0, 3.5), *residue("ALA", 3)]
    with pytest.raises(mp.ParameterError, match=f"{kind} 2 of chain A is not a known amino acid"):
        rigid.read_structure(written(tmp_path, lines))


CAPS = {"ACE": ("C CH3 O", 43.045), "FOR": ("C O", 29.018), "NME": ("N CH3", 30.05), "NH2": ("N", 16.023),
        "NMA": ("N CA", 30.05), "NHE": ("N", 16.023)}  # fmt: skip


@pytest.mark.parametrize("name", CAPS)
@pytest.mark.parametrize("het", [True, False])
def test_caps_are_kept_or_refused(tmp_path, name, het):
    atoms, mass = CAPS[name]
    first = name in ("ACE", "FOR")
    x = -3.0 if first else 15.0
    cap = [atom(n, name, 0 if first else 5, x + 0.8 * k, het=het) for k, n in enumerate(atoms.split())]
    cap.append(atom("1H", name, 0 if first else 5, x, 1.0, field="1H  ", element="", het=het))
    path = written(tmp_path, [*cap, *chain()] if first else [*chain(), *cap])
    kept = read(path)
    assert len(kept.alpha) == 4
    assert len(kept.positions) == 20 + len(cap) - 1
    np.testing.assert_allclose((kept.mass - 4 * 71.0779 * DALTON) / DALTON, mass, rtol=2e-3)
    assert read(path, caps="leave out").left_out == {"in caps": len(cap)}
    with pytest.raises(mp.ParameterError, match=f"{name} . of chain A is a cap of the chain: give caps="):
        rigid.read_structure(path, caps="refuse")


def test_caps_that_are_part_of_residues(tmp_path):
    """CHARMM's patches: acetyl and N-methylamide have the names of the first and last residue."""
    first = [atom(n, "ALA", 1, -3.0 + k) for k, n in enumerate(("CAY", "CY", "OY"))]
    last = [atom("NT", "ALA", 4, 15.0), atom("CAT", "ALA", 4, 16.4)]
    found = read(written(tmp_path, [*first, *chain(), *last]))
    assert [r.name for r in found.residues] == ["ACE", "ALA", "ALA", "ALA", "ALA", "NME"]
    np.testing.assert_allclose((found.mass / DALTON - 4 * 71.0779), 43.045 + 30.05, rtol=2e-3)
    amide = read(written(tmp_path, [*chain(), last[0]]))
    np.testing.assert_allclose(amide.masses[-1] / DALTON, 16.023)


# Elements ------------------------------------------------------------------------------------------------------------

VALINE = ["N", "CA", "CB", "CG1", "CG2", "C", "O"]
HYDROGENS = ["H", "HA", "HB", "HG11", "1HG1", "2HG2", "HG13", "D", "DA", "DG21", "1DG2", "H1", "HN", "1H", "HE2"]


@pytest.mark.parametrize("column", ["", "right", "wrong"])
@pytest.mark.parametrize("aligned", [True, False])
def test_elements_of_amino_acids_follow_from_names(tmp_path, aligned, column):
    """Also where the file says that Cα is calcium."""
    lines = []
    for k, name in enumerate([*VALINE, *HYDROGENS]):
        field = f"{name:<4}" if not aligned or len(name) == 4 or name[0].isdigit() else f" {name:<3}"
        letter = name.lstrip("0123456789")[0]
        element = {"": "", "right": letter, "wrong": name.strip("0123456789")[:2]}[column]
        x = (PLACES.get(name) or (1.2, 3.0 + 0.5 * k)) if name != "CB" else (1.2, 2.3)
        lines.append(atom(name, "VAL", 1, *x, field=field, element=element))
    found = read(written(tmp_path, lines))
    assert found.names.tolist() == VALINE
    assert elements(found) == ["N", "C", "C", "C", "C", "C", "O"]
    assert found.left_out == {"hydrogens": len(HYDROGENS)}
    np.testing.assert_allclose(found.mass / DALTON, 99.13, rtol=1e-3)


def test_elements_of_modified_amino_acids(tmp_path):
    lines = [*residue("MSE", 1, het=True), atom("SE", "MSE", 1, 1.2, 4.0, field="SE  ", element=""),
             *residue("SEP", 2), atom("P", "SEP", 2, 5.0, 4.0, element=""), *residue("CYS", 3),
             atom("SG", "CYS", 3, 8.8, 4.0, field="SG  ", element="SG")]  # fmt: skip
    found = read(written(tmp_path, lines))
    assert elements(found)[5::6] == ["Se", "P", "S"]


@pytest.mark.parametrize(("name", "element"), [("ZN", ""), ("ZN", "ZN"), ("CU", "CU"), ("FE", ""), ("X1", "")])
def test_metals_in_amino_acids_are_refused(tmp_path, name, element):
    lines = [*chain(), atom(name, "ALA", 4, 11.0, 4.0, field=f"{name:<4}", element=element)]
    with pytest.raises(mp.ParameterError, match=f"line 21: atom {name} of ALA 4 of chain A is not an atom of an"):
        rigid.read_structure(written(tmp_path, lines))


def test_pseudo_atoms_are_left_out(tmp_path):
    lines = [*chain(), atom("QB", "ALA", 4, 11.0, 4.0, element="")]
    assert read(written(tmp_path, lines)).left_out == {"that stand for none": 1}


@pytest.mark.parametrize(
    ("names", "aligned", "expected"),
    [
        ("C1 O2 N3 S4 F5 P6 CL1 BR2 H7", True, "C O N S F P Cl Br"),
        ("C1 O2 N3 S4 F5 CL1 BR2 H7 HO1", False, "C O N S F Cl Br"),
        ("CA CB NE", True, "C C N"), ("CA", False, None), ("NE", False, None), ("XX", False, None),
    ],
)  # fmt: skip
def test_elements_of_ligands_without_a_column(tmp_path, names, aligned, expected):
    """Where names are not aligned and could be of two elements, the file must tell."""
    names = names.split()
    fields = [f" {n:<3}" if aligned and n not in ("CL1", "BR2") else f"{n:<4}" for n in names]
    lines = [
        atom(n, "LIG", 9, 2.0 * k, 9.0, element="", het=True, field=field)
        for k, (n, field) in enumerate(zip(names, fields, strict=True))
    ]
    others = [line if aligned else f"{line[:12]}{line[13:16]} {line[16:]}" for line in chain(element="")]
    path = written(tmp_path, [*others, *lines])
    if expected is None:
        with pytest.raises(mp.ParameterError, match=r"line 21: atom .* of LIG 9 of chain A may be of more than"):
            rigid.read_structure(path, ligands="keep")
        assert len(read(path, ligands="leave out").positions) == 20
    else:
        assert elements(read(path, ligands="keep"))[20:] == expected.split()


# Alternatives --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("interleaved", [False, True, "apart"])
@pytest.mark.parametrize(("kinds", "expected"), [
    ([("PRO", "A", 0.6), ("SER", "B", 0.4)], "PRO"),
    ([("PRO", "A", 0.4), ("SER", "B", 0.6)], "SER"),
    ([("PRO", "A", 0.5), ("SER", "B", 0.5)], "PRO"),
    ([("SER", "A", 0.5), ("PRO", "B", 0.5)], "SER"),
    ([("ARG", "A", 0.3), ("GLN", "B", 0.4), ("GLU", "C", 0.3)], "GLN"),
    ([("ARG", "A", 0.3), ("GLN", "B", 0.4), ("ARG", "C", 0.3)], "ARG"),
    ([("ARG", " ", 0.3), ("GLN", " ", 0.7)], "GLN"),
])  # fmt: skip
@pytest.mark.parametrize("gaps", ["refuse", "allow"])
def test_kinds_that_take_turns_in_one_place(tmp_path, kinds, expected, interleaved, gaps):
    """One residue of the kind that is there most; of a kind with alternatives, all of them count."""
    turns = [residue(kind, 2, y=0.01 * k, alt=alt, occupancy=q) for k, (kind, alt, q) in enumerate(kinds)]
    if interleaved == "apart" and kinds[0][1] == " ":
        interleaved = False  # Without letters, they must stand together.
    together = [line for rows in zip(*turns, strict=True) for line in rows]
    middle = together if interleaved is True else turns[0] if interleaved else [line for rows in turns for line in rows]
    behind = [line for rows in turns[1:] for line in rows] if interleaved == "apart" else []
    path = written(tmp_path, [*residue("ALA", 1), *middle, *residue("ALA", 3), *residue("ALA", 4), *behind])
    found = read(path, gaps=gaps)
    assert [r.name for r in found.residues] == ["ALA", expected, "ALA", "ALA"]
    assert len(found.positions) == 20
    assert sum(found.left_out.values()) == 5 * (len(kinds) - 1)
    assert found.breaks.tolist() == [True, False, False, False]


def test_the_alternative_that_is_there_most_is_not_that_with_most_atoms(tmp_path):
    """A has five atoms at 0.4, B two at 0.6; of atoms that B lacks, those of A."""
    lines = [*residue("ALA", 1), *residue("ALA", 2, alt="A", occupancy=0.4),
             *residue("ALA", 2, y=0.3, alt="B", occupancy=0.6, skip=("N", "CA", "C"))]  # fmt: skip
    found = read(written(tmp_path, [*lines, *residue("ALA", 3)]))
    own = found.residue_of == 1
    np.testing.assert_allclose(found.positions[own, 1], [0.0, 0.08, 0.02, -0.07, 0.26], atol=1e-12)
    assert found.left_out == {"in alternative positions": 2}


# Forms of files ------------------------------------------------------------------------------------------------------


FORMS = {
    "byte order mark": lambda text: b"\xef\xbb\xbf" + text.encode(),
    "UTF-16": lambda text: text.encode("utf-16"),
    "line ends of Windows": lambda text: text.replace("\n", "\r\n").encode(),
    "line ends of old Macs": lambda text: text.replace("\n", "\r").encode(),
    "no last line end": lambda text: text.removesuffix("END\n").rstrip("\n").encode(),
    "lower case": lambda text: text.replace(" A", "\0").lower().replace("\0", " A").encode(),
    "an author beyond ASCII": lambda text: f"AUTHOR    J. MÜLLER\n{text}".encode("latin-1"),
    "zipped": lambda text: gzip.compress(text.encode()),
    "zipped in parts": lambda text: gzip.compress(text[:405].encode()) + gzip.compress(text[405:].encode()),
    "no columns behind the coordinates": lambda text: "\n".join(line[:54] for line in text.split("\n")).encode(),
    "numbers of six digits": lambda text: text.replace("ATOM      1 ", "ATOM  100000 ").encode(),
    "numbers of hybrid-36": lambda text: text.replace("ATOM      1 ", "ATOM  A000Z ").encode(),
    "numbers that do not fit": lambda text: text.replace("ATOM      1 ", "ATOM  ***** ").encode(),
    "identifiers of old entries": lambda text: re.sub(r"(?m)^(ATOM.{62}).*", r"\1      1ABC 123", text).encode(),
}


@pytest.mark.parametrize("form", FORMS)
def test_forms_of_files(tmp_path, form):
    path = written(tmp_path, chain())
    expected = read(path)
    other = tmp_path / ("other.pdb.gz" if "zipped" in form else "other.pdb")
    other.write_bytes(FORMS[form](path.read_text()))
    found = rigid.read_structure(other)
    assert found.atoms_in_file == 20
    for name in ("positions", "masses", "elements", "names", "alpha", "residues"):
        assert np.array_equal(getattr(found, name), getattr(expected, name)), name


def test_numbers_of_residues(tmp_path):
    """Insertion codes make others of them; above 9999 they are those of hybrid-36."""
    kinds = [(52, " "), (52, "A"), (52, "B"), (53, " "), ("A000", " "), ("A00Z", " "), ("a000", " ")]
    lines = [line for k, (number, code) in enumerate(kinds) for line in residue("ALA", number, k, code=code)]
    found = read(written(tmp_path, lines))
    assert [r.number for r in found.residues] == ["52", "52A", "52B", "53", "10000", "10035", "1223056"]


def test_names_of_two_letters_and_of_four(tmp_path):
    """Column 21 is of a residue where that makes one that is known, else of a chain."""
    lines = [line.replace("ALA A", "ALAXY") for line in chain()]
    assert read(written(tmp_path, lines)).chains == ("XY",)
    assert read(written(tmp_path, chain(("NALA", "HISD", "CYS2", "CALA")))).chains == ("A",)


@pytest.mark.parametrize("ends", ["MODEL", "END", "ENDMDL"])
def test_models_by_the_numbers_of_the_file(tmp_path, ends):
    for numbers in ((1, 2, 3), (2, 3, 4), (0, 1, 2), (7, 3, 5)) if ends == "MODEL" else ((1, 2, 3),):
        lines = []
        for number in numbers:
            lines += [f"MODEL     {number:4d}", *chain(y=10.0 * number), "ENDMDL"] if ends == "MODEL" else [
                *chain(y=10.0 * number), ends]  # fmt: skip
        path = written(tmp_path, lines)
        for number in numbers:
            found = read(path, model=number)
            np.testing.assert_allclose(found.positions[0, 1], float(number))
            assert found.left_out == {"of models not asked for": 40}
        with pytest.raises(mp.ParameterError, match=r"has 3 models: say which, model=.* \(the second begins at line 2"):
            rigid.read_structure(path)
        refuses(mp.ParameterError, "model = 9 but", rigid.read_structure, path, model=9)
    one = written(tmp_path, ["MODEL        4", *chain(), "ENDMDL"])
    assert len(read(one).positions) == len(read(one, model=4).positions) == 20
    refuses(mp.ParameterError, r"model = 1 but .* has 4", rigid.read_structure, one, model=1)
    twice = written(tmp_path, 2 * ["MODEL        1", *chain(), "ENDMDL"])
    refuses(mp.ParameterError, "line 23: model 1 stands twice, first from line 2", rigid.read_structure, twice, model=1)


def broken(k, change):
    lines = chain()
    lines[k] = change(lines[k])
    return lines


BROKEN = {
    "line 4: the line of an atom ends at column 40": broken(3, lambda t: t[:40]),
    "line 4: x = '\\*\\*\\*\\*\\*\\*\\*\\*' is not a number": broken(3, lambda t: f"{t[:30]}********{t[38:]}"),
    "line 4: x = nan but must be finite": broken(3, lambda t: f"{t[:30]}     nan{t[38:]}"),
    "line 4: z = 1e\\+99 but must be finite and below": broken(3, lambda t: f"{t[:46]}   1e+99{t[54:]}"),
    "line 4: occupancy = 'a lot' is not a number": broken(3, lambda t: f"{t[:54]} a lot{t[60:]}"),
    "line 4: an atom must begin in the first column": broken(3, lambda t: f" {t}"),
    "line 4: a name is not text": broken(3, lambda t: f"{t[:17]}ÄLA{t[20:]}"),
    "line 4: a name is not text, ": broken(3, lambda t: f"{t[:17]}\0LA{t[20:]}"),
    "line 1: MODEL 'one' has no number": ["MODEL one", *chain()],
    "has no atoms": ["REMARK nothing"],
}


@pytest.mark.parametrize("text", BROKEN)
def test_errors_name_the_line(tmp_path, text):
    refuses(mp.ParameterError, text, rigid.read_structure, written(tmp_path, BROKEN[text]))


@pytest.mark.parametrize("file", [None, 1, b"\xff", "a\0.pdb", "\ud800.pdb", 300 * "x" + ".pdb", "no.pdb", [], ""])
def test_names_of_files_that_are_none(file):
    refuses(mp.ParameterError, "read_structure", rigid.read_structure, file)


@pytest.mark.parametrize("name", ["a.cif", "a.mmcif", "a.pdb", "a.ent", "a.cif.gz", "a.pdb.gz"])
@pytest.mark.parametrize("data", [b"", b"\n\n", b"# a comment\n", b"data_x\n", b"\xef\xbb\xbf", b"\x1f\x8b\x08"])
def test_files_that_hold_nothing(tmp_path, name, data):
    path = tmp_path / name
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") and data[:1] != b"\x1f" else data)
    refuses(mp.ParameterError, re.escape(str(path)), rigid.read_structure, path)


# mmCIF ---------------------------------------------------------------------------------------------------------------

TABLE = ("group_PDB", "id", "type_symbol", "label_atom_id", "label_alt_id", "label_comp_id", "label_asym_id",
         "label_entity_id", "label_seq_id", "pdbx_PDB_ins_code", "Cartn_x", "Cartn_y", "Cartn_z", "occupancy",
         "B_iso_or_equiv", "auth_seq_id", "auth_asym_id", "pdbx_PDB_model_num")  # fmt: skip


def rows(**changes):
    """Four alanines of chain X (label A), a heme of the same chain (label B) and a water (label C)."""
    out = []
    for k in range(4):
        for name, (x, y) in PLACES.items():
            out.append(["ATOM", "1", name[0], name, ".", "ALA", "A", "1", str(k + 1), "?", f"{x + STEP * k:.3f}",
                        f"{y:.3f}", "0.0", "1.00", "10.0", str(k + 101), "X", "1"])  # fmt: skip
    for name, element, kind, asym, entity, number in (
        ("FE", "FE", "HEM", "B", "2", "201"), ('"N A"', "N", "HEM", "B", "2", "201"),
        ("O", "O", "HOH", "C", "3", "301"),
    ):  # fmt: skip
        out.append(["HETATM", "1", element, name, ".", kind, asym, entity, ".", "?", str(2.0 * len(out)), "9.0", "0.0",
                    "1.00", "10.0", number, "X", "1"])  # fmt: skip
    for column, change in changes.items():
        for row in out:
            row[TABLE.index(column)] = change(row[TABLE.index(column)])
    return out


def cif(folder, table, columns=TABLE, more="", name="protein.cif"):
    path = folder / name
    kept = [TABLE.index(column) for column in columns]
    text = "\n".join(" ".join(row[k] for k in kept) for row in table)
    tags = "\n".join(f"_atom_site.{column}" for column in columns)
    path.write_text(f"data_test\n{more}loop_\n{tags}\n{text}\n#\n")
    return path


ENTITIES = "loop_\n_entity.id\n_entity.type\n1 polymer\n2 non-polymer\n3 water\n"


def test_an_mmcif_file(tmp_path):
    for more in ("", ENTITIES):
        path = cif(tmp_path, rows(), more=more)
        kept = read(path, ligands="keep")
        assert kept.chains == ("X",)
        assert [r.number for r in kept.residues] == ["101", "102", "103", "104", "201"]
        assert kept.names.tolist()[-2:] == ["FE", "N A"]
        assert read(path, ligands="leave out").left_out == {"of ligands": 2, "of water": 1}
        with pytest.raises(mp.ParameterError, match=r"atom 21 of the table at line .*: HEM 201 of chain X is no"):
            rigid.read_structure(path)


@pytest.mark.parametrize(
    "missing", ["group_PDB", "id", "type_symbol", "label_alt_id", "label_asym_id", "label_entity_id", "label_seq_id",
                "pdbx_PDB_ins_code", "occupancy", "B_iso_or_equiv", "auth_seq_id", "auth_asym_id", "pdbx_PDB_model_num"]
)  # fmt: skip
def test_columns_that_are_missing(tmp_path, missing):
    """Names of one kind stand for those of the other; elements follow from names."""
    table = rows()[:20]
    found = rigid.read_structure(cif(tmp_path, table, [column for column in TABLE if column != missing]))
    assert elements(found) == 4 * ["N", "C", "C", "O", "C"]
    assert found.chains == ("A" if missing == "auth_asym_id" else "X",)
    assert found.residues[0].number == ("1" if missing == "auth_seq_id" else "101")
    np.testing.assert_allclose(found.b_factors, 0.0 if missing == "B_iso_or_equiv" else 0.1)


def test_free_amino_acids_and_unknown_residues_of_entities(tmp_path):
    """What the file calls non-polymer is a ligand, what it calls polymer is of a chain, whatever their names are."""
    table = rows()[:20]
    for row in table[15:]:
        row[TABLE.index("label_entity_id")] = "2"
    assert read(cif(tmp_path, table, more=ENTITIES), ligands="leave out").left_out == {"of ligands": 5}
    table = rows()[:20]
    for row in table[15:]:
        row[TABLE.index("label_comp_id")] = "ZZZ"
    with pytest.raises(mp.ParameterError, match="ZZZ 104 of chain X is not a known amino acid"):
        rigid.read_structure(cif(tmp_path, table, more=ENTITIES), ligands="leave out")


@pytest.mark.parametrize(("text", "make"), [
    ("atom 4 of the table at line 2: y = '' is not a number",
     lambda f: cif(f, rows(Cartn_y=lambda v: "?" if v == "-1.000" else v))),
    ("has no column Cartn_z", lambda f: cif(f, rows(), [c for c in TABLE if c != "Cartn_z"])),
    ("has no name of an atom", lambda f: cif(f, rows(label_atom_id=lambda v: "?"))),
    ("model 'x' has no number", lambda f: cif(f, rows(pdbx_PDB_model_num=lambda v: "x"))),
    ("has atoms in 2 blocks, such as test and test", lambda f: twice(cif(f, rows()))),
    ("is not an mmCIF file: line 2 .*rong number of values", lambda f: cif(f, rows(Cartn_x=lambda v: ""))),
    ("is not an mmCIF file|a name is not text", lambda f: cif(f, rows(label_atom_id=lambda v: "Ä"))),
])  # fmt: skip
def test_errors_in_mmcif_files(tmp_path, text, make):
    refuses(mp.ParameterError, text, rigid.read_structure, make(tmp_path), ligands="keep")


def twice(path):
    text = path.read_text()
    path.write_text(text + text.replace("data_test", "data_test2"))
    return path


def test_models_and_uncertainties_of_mmcif(tmp_path):
    table = [*rows()[:20], *rows(pdbx_PDB_model_num=lambda v: "5", Cartn_y=lambda v: f"{float(v) + 10:.3f}(12)")[:20]]
    path = cif(tmp_path, table)
    np.testing.assert_allclose(read(path, model=5).positions[0, 1], 1.0)
    refuses(mp.ParameterError, "has 2 models: say which, model=1, 5", rigid.read_structure, path)


# B factors -----------------------------------------------------------------------------------------------------------


def predicted(folder, kind):
    if kind == "mmCIF":
        metric = "loop_\n_ma_qa_metric.id\n_ma_qa_metric.mode\n_ma_qa_metric.name\n_ma_qa_metric.type\n"
        return cif(folder, rows()[:20], more=f"{metric}1 global pLDDT pLDDT\n2 local pLDDT pLDDT\n")
    title = {"AlphaFold": "TITLE     ALPHAFOLD MONOMER V2.0 PREDICTION FOR UBIQUITIN",
             "ESMFold": "TITLE     ESMFOLD V1", "remark": "REMARK 250 B-FACTORS ARE PLDDT"}[kind]  # fmt: skip
    return written(folder, [title, *chain()])


@pytest.mark.parametrize("kind", ["mmCIF", "AlphaFold", "ESMFold", "remark"])
def test_confidences_are_not_taken_for_b_factors(tmp_path, kind):
    path = predicted(tmp_path, kind)
    with pytest.warns(mp.StructureWarning, match=r"has confidences \(pLDDT\) where B factors are"):
        found = rigid.read_structure(path)
    assert not found.b_factors.any()
    somewhere = np.random.default_rng(1).normal(0.0, 0.4, found.positions.shape)
    with pytest.raises(mp.ParameterError, match="has no B factors: give the stiffness"):
        rigid.elastic_network(dataclasses.replace(found, positions=somewhere))


def test_a_crystal_that_mentions_alphafold_has_b_factors(tmp_path):
    title = ["TITLE     STRUCTURE OF A PROTEIN COMPARED TO ALPHAFOLD", "EXPDTA    X-RAY DIFFRACTION"]
    remark = ["REMARK 200 STARTING MODEL: ALPHAFOLD"]
    for head in ([*title, *remark], remark):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            np.testing.assert_allclose(read(written(tmp_path, [*head, *chain()])).b_factors, 0.1)


# Hostile files -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("content", [b"\n", b"TER\n", b"ATOM\n", b"\0"])
def test_files_that_unpack_to_a_thousand_times_their_size(tmp_path, content):
    path = tmp_path / "bomb.pdb.gz"
    path.write_bytes(gzip.compress(content * (30_000_000 // len(content))))
    refuses(mp.ParameterError, "is zipped to less than 1/32 of its size", rigid.read_structure, path)


def test_mutated_files_are_read_or_refused(tmp_path):
    """Bits, bytes, lines and numbers: no error of another kind, and no atom that is not accounted for."""
    rng = np.random.default_rng(20261125)
    one = written(tmp_path, ["MODEL        1", *chain(), "TER", *[atom("FE", "HEM", 9, 1.0, het=True)], "ENDMDL"])
    files = [one.read_bytes(), cif(tmp_path, rows(), more=ENTITIES).read_bytes()]
    ends, tried = Counter(), 600
    for k in range(tried):
        data = bytearray(files[k % 2])
        for _ in range(int(rng.integers(1, 3))):
            i = int(rng.integers(len(data)))
            j = min(len(data), i + int(rng.integers(1, 90)))
            word = [b"", b"\0", b"\xff", b"nan", b"1e307", b"'", b";", b"loop_", b"?", bytes(data[j : j + 90])][
                int(rng.integers(10))]  # fmt: skip
            data[i : i + int(rng.integers(0, 6)) if rng.random() < 0.7 else j] = word
        path = tmp_path / ("x.cif" if k % 2 else "x.pdb")
        path.write_bytes(bytes(data))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", mp.StructureWarning)
                found = rigid.read_structure(path, ligands="keep", gaps="allow")
            assert len(found.positions) + sum(found.left_out.values()) == found.atoms_in_file
            ends["read"] += 1
        except mp.MedyanError as error:
            assert len(str(error)) < 600  # noqa: PT017
            ends["refused"] += 1
    assert min(ends["read"], ends["refused"]) > 0.05 * tried
