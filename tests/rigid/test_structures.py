"""Reading proteins: which atoms there are, with which masses, and what is refused by the name of the residue."""

import gzip

import numpy as np
import pytest
from builders import refuses

import medyanpy as mp
from medyanpy import rigid

# Files and their text: reaches no kernel.
pytestmark = pytest.mark.slow

gemmi = pytest.importorskip("gemmi")

DALTON = 1.0 / 6.02214076e23
# A residue along x: offsets of its atoms (Å), so that C and the next N are 1.33 apart.
BACKBONE = {
    "N": (0.0, 0.0, 0.0),
    "CA": (1.46, 0.0, 0.0),
    "C": (2.0, 1.42, 0.0),
    "O": (1.3, 2.4, 0.0),
    "CB": (2.0, -1.0, 1.0),
}
STEP = 3.3


def line(number, name, residue, chain, seq, x, *, alt=" ", occupancy=1.0, b=20.0, element=None, het=False):
    record = "HETATM" if het else "ATOM  "
    element = name[0] if element is None else element
    return (
        f"{record}{number:5d}  {name:<3s}{alt}{residue:>3s} {chain}{seq:4d}    "
        f"{x[0]:8.3f}{x[1]:8.3f}{x[2]:8.3f}{occupancy:6.2f}{b:6.2f}          {element:>2s}"
    )


def residue(name, chain, seq, at, *, without=(), number=1, **options):
    return [
        line(number + k, atom, name, chain, seq, (at + x[0], x[1], x[2]), **options)
        for k, (atom, x) in enumerate(BACKBONE.items())
        if atom not in without
    ]


def peptide(names=("ALA", "ALA", "ALA"), chain="A", y=0.0):
    lines = []
    for k, name in enumerate(names):
        # Up and down, so that C and the next N are bound: C is at (2.0, 1.42), N of the next one at (3.3, 1.1).
        own = residue(name, chain, k + 1, STEP * k)
        lines += [shifted(text, y + (0.0 if k % 2 == 0 else 1.1)) for text in own]
    return [*lines, f"TER   {99:5d}      {names[-1]} {chain}{len(names):4d}"]


def shifted(text, y):
    return f"{text[:38]}{float(text[38:46]) + y:8.3f}{text[46:]}"


def written(tmp_path, lines, name="protein.pdb"):
    path = tmp_path / name
    path.write_text("\n".join([*lines, "END", ""]))
    return path


def test_a_peptide(tmp_path):
    """Atoms, masses with hydrogens, residues and chains: three alanines of 71.08 Da in a chain."""
    found = rigid.read_structure(written(tmp_path, peptide()), gaps="allow")
    assert found.positions.shape == (15, 3)
    np.testing.assert_allclose(found.positions[0], 0.0)
    np.testing.assert_allclose(found.positions[1], [0.146, 0.0, 0.0])
    assert found.names[:5].tolist() == ["N", "CA", "C", "O", "CB"]
    assert found.elements[:5].tolist() == ["N", "C", "C", "O", "C"]
    assert found.alpha.tolist() == [1, 6, 11]
    assert found.residue_of.tolist() == np.repeat([0, 1, 2], 5).tolist()
    assert [str(r) for r in found.residues] == [f"ALA {k} of chain A" for k in (1, 2, 3)]
    np.testing.assert_allclose(found.b_factors, 0.2)
    np.testing.assert_allclose(found.mass, 3 * 71.0779 * DALTON, rtol=1e-4)
    # In proportion to the elements.
    np.testing.assert_allclose(found.masses[3] / found.masses[1], 15.9994 / 12.0107, rtol=1e-4)
    assert found.chains == ("A",)
    assert repr(found) == "Structure(15 atoms, 3 residues of chains A; 0.2 kDa)"


def test_mmcif_and_gzip_are_the_same(tmp_path):
    path = written(tmp_path, peptide())
    one = rigid.read_structure(path, gaps="allow")
    gemmi.read_structure(str(path)).make_mmcif_document().write_file(str(tmp_path / "protein.cif"))
    (tmp_path / "zipped.pdb.gz").write_bytes(gzip.compress(path.read_bytes()))
    for name in ("protein.cif", "zipped.pdb.gz"):
        other = rigid.read_structure(tmp_path / name, gaps="allow")
        assert np.array_equal(one.positions, other.positions)
        assert np.array_equal(one.masses, other.masses)
        assert one.residues == other.residues


def test_water_and_hydrogens_are_left_out(tmp_path):
    lines = peptide()
    lines.insert(5, line(50, "HA", "ALA", "A", 1, (1.5, -1.0, 0.5), element="H"))
    lines.append(line(60, "O", "HOH", "W", 1, (9.0, 9.0, 9.0), het=True))
    found = rigid.read_structure(written(tmp_path, lines), gaps="allow")
    assert len(found.positions) == 15
    assert "H" not in found.elements


@pytest.mark.parametrize(("a", "b", "z"), [(0.6, 0.4, 1.0), (0.4, 0.6, 3.0), (0.5, 0.5, 1.0)])
def test_alternative_of_highest_occupancy_is_taken(tmp_path, a, b, z):
    """All atoms of one kind: not some of either."""
    lines = [text for text in peptide() if not (text[12:16].strip() in ("CB", "O") and text[22:26].strip() == "2")]
    for alt, occupancy, height in (("A", a, 1.0), ("B", b, 3.0)):
        lines.insert(-1, line(70, "CB", "ALA", "A", 2, (5.0, 0.0, height), alt=alt, occupancy=occupancy))
        lines.insert(-1, line(71, "O", "ALA", "A", 2, (5.0, 3.0, height), alt=alt, occupancy=occupancy))
    found = rigid.read_structure(written(tmp_path, sorted(lines, key=lambda t: int(t[22:26]))), gaps="allow")
    own = (found.residue_of == 1) & np.isin(found.names, ["CB", "O"])
    assert own.sum() == 2
    np.testing.assert_allclose(found.positions[own, 2], 0.1 * z)


def test_models_and_chains_are_chosen(tmp_path):
    models = []
    for k in (1, 2):
        models += [f"MODEL     {k:4d}", *peptide(y=20.0 * k), *peptide(("GLY", "ALA"), "B", y=40.0), "ENDMDL"]
    path = written(tmp_path, models)
    refuses(mp.ParameterError, "has 2 models: say which, model=1 to 2", rigid.read_structure, path, gaps="allow")
    second = rigid.read_structure(path, model=2, chains="A", gaps="allow")
    np.testing.assert_allclose(second.positions[0], [0.0, 4.0, 0.0])
    assert second.chains == ("A",)
    assert rigid.read_structure(path, model=1, gaps="allow").chains == ("A", "B")
    assert rigid.read_structure(path, model=1, chains=["B"], gaps="allow").chains == ("B",)
    # Ends of chains, and where residues are not bound.
    assert rigid.read_structure(path, model=1, gaps="allow").breaks[[0, 3]].all()
    refuses(mp.ParameterError, "model = 3", rigid.read_structure, path, model=3)
    refuses(mp.ParameterError, "has no chain 'C', but 'A', 'B'", rigid.read_structure, path, model=1, chains="C")


def test_ligands_are_refused_by_name_or_treated_as_said(tmp_path):
    lines = [*peptide(), line(80, "C1", "GLC", "A", 901, (5.0, 5.0, 5.0), het=True, element="C")]
    path = written(tmp_path, lines)
    with pytest.raises(mp.ParameterError, match="GLC 901 of chain A is no part of the protein: give ligands="):
        rigid.read_structure(path, gaps="allow")
    assert len(rigid.read_structure(path, gaps="allow", ligands="leave out").positions) == 15
    kept = rigid.read_structure(path, gaps="allow", ligands="keep")
    assert len(kept.positions) == 16
    assert len(kept.alpha) == 3
    assert str(kept.residues[-1]) == "GLC 901 of chain A"


def test_gaps_are_refused_by_name_or_allowed(tmp_path):
    lines = peptide(("ALA", "GLY", "SER", "VAL"))
    without = [text for text in lines if text[22:26].strip() != "2"]
    path = written(tmp_path, without)
    with pytest.raises(mp.ParameterError, match="missing between ALA 1 of chain A and SER 3 of chain A: model them"):
        rigid.read_structure(path)
    found = rigid.read_structure(path, gaps="allow")
    assert found.breaks[:2].tolist() == [True, True]


@pytest.mark.parametrize(("lines", "text"), [
    ([*residue("ALA", "A", 1, 0.0), *residue("VAL", "A", 2, STEP, without=("CA",)), "TER"],
     "VAL 2 of chain A has no Cα"),
    ([line(1, "P", "DA", "A", 1, (0, 0, 0)), line(2, "P", "DA", "A", 2, (6, 0, 0)), "TER"],
     "DA 1 of chain A is not a known amino"),
    ([line(1, "O", "HOH", "A", 1, (0, 0, 0), het=True)], "holds no residues of a protein"),
    ([], "has no atoms"),
])  # fmt: skip
def test_structures_without_protein(tmp_path, lines, text):
    refuses(mp.ParameterError, text, rigid.read_structure, written(tmp_path, lines), gaps="allow")


def test_files_that_are_none(tmp_path):
    refuses(mp.ParameterError, "there is no file", rigid.read_structure, tmp_path / "nothing.pdb")
    refuses(mp.ParameterError, r"must end in one of \.pdb", rigid.read_structure, tmp_path / "protein.xyz")
    (tmp_path / "text.cif").write_text("this is a letter\n")
    refuses(mp.ParameterError, "is not an mmCIF file", rigid.read_structure, tmp_path / "text.cif")
    (tmp_path / "broken.pdb").write_bytes(b"ATOM  \xff\xfe\x00 nothing here\n" * 20)
    refuses(mp.ParameterError, r"broken\.pdb", rigid.read_structure, tmp_path / "broken.pdb")
    name = written(tmp_path, peptide(), "name.pdb")
    name.write_bytes(name.read_bytes().replace(b"ALA A   2", b"A\xd2A A   2"))
    refuses(mp.ParameterError, r"a name is not text|is no PDB file", rigid.read_structure, name, gaps="allow")
    for name, value in (("ligands", "burn"), ("gaps", "fill")):
        with pytest.raises(mp.ParameterError, match=f"{name} = '{value}' but must be one of"):
            rigid.read_structure(tmp_path / "x.pdb", **{name: value})


def test_entries_of_old_files(tmp_path):
    """Columns 73 to 80 were the name of the entry and the number of the line, where charges are now."""
    lines = [f"{text[:66]:<66s}      1ABC{k:4d}" for k, text in enumerate(peptide())]
    found = rigid.read_structure(written(tmp_path, lines), gaps="allow")
    assert len(found.positions) == 15


@pytest.mark.parametrize(("name", "options", "atoms", "residues", "kilodalton"), [
    ("ubiquitin_1ubq", {}, 602, 76, 8.565),
    ("lysozyme_1aki", {}, 1001, 129, 14.31),
    ("adk_open_4ake", {}, 1656, 214, 23.59),
    ("cholera_toxin_1chb", {"ligands": "leave out"}, None, 515, None),
    ("glyr_7tu9", {"ligands": "leave out", "gaps": "allow"}, None, 1709, None),
])  # fmt: skip
def test_real_ones(shared_data, name, options, atoms, residues, kilodalton):
    """Masses are those of the chains (UniProt, SWISS-PROT): hydrogens count."""
    found = rigid.read_structure(shared_data / "proteins" / f"{name}.pdb", **options)
    assert len(found.alpha) == residues
    if atoms is not None:
        assert len(found.positions) == atoms
        np.testing.assert_allclose(found.mass / DALTON / 1e3, kilodalton, rtol=3e-3)
