"""Proteins: tensors of other programs, and measured diffusion."""

import csv
import re

import numpy as np
import pytest

import medyanpy as mp
from medyanpy import rigid

WATER = mp.presets.WATER
TEMPERATURE = 293.15
#: From nm²/s, nm/s and 1/s to the cm²/s, cm/s and 1/s of the files.
CENTIMETERS = np.outer(*[np.repeat([1e-7, 1.0], 3)] * 2)
NUMBER = re.compile(r"[-+]?\d\.\d+E[-+]\d+")


def matrix_in(lines):
    """The first 6×6 matrix, its rows being the lines that hold six numbers."""
    rows = [[float(n) for n in NUMBER.findall(line)] for line in lines]
    return np.array([row for row in rows if len(row) == 6][:6])


def value_of(name, lines):
    return float(NUMBER.search(next(line for line in lines if name in line))[0])


def as_printed(got, printed):
    """Largest difference in units of the last of four digits; half of one is rounding."""
    printed = np.asarray(printed)
    unit = 10.0 ** (np.floor(np.log10(np.abs(printed))) - 3.0)
    return np.abs(np.asarray(got) - printed) / unit


def grpy(folder, name):
    """Beads (nm) and the lines of the result."""
    lines = (folder / f"{name}_grpy_beads.txt").read_text().splitlines()
    n = int(lines[7].split()[0])
    # 20 °C, 0.01 poise, and lengths in Å.
    assert [float(lines[k].split()[0]) for k in (1, 2, 6)] == [20.0, 0.01, 1e-8]
    beads = np.array([[float(v) for v in line.split()[:4]] for line in lines[8 : 8 + n]]) * mp.units.angstrom
    assert len(beads) == n
    return beads, (folder / f"{name}_grpy_result.txt").read_text().splitlines()


def atoms(path):
    """(n, 3) nm: all atoms of the protein but hydrogens."""
    lines = [line for line in path.read_text().splitlines() if line.startswith("ATOM") and line[12:14].strip() != "H"]
    return np.array([[float(line[k : k + 8]) for k in (30, 38, 46)] for line in lines]) * mp.units.angstrom


class Model:
    """A protein of beads, in water at 20 °C."""

    def __init__(self, centers, radii, stresslets=True):
        friction = rigid.bead_model_friction(centers, radii, WATER, stresslets=stresslets)
        self.diffusion = rigid.friction_to_diffusion(friction, TEMPERATURE)
        self.center = rigid.center_of_diffusion(self.diffusion)
        self.there = rigid.move_diffusion(self.diffusion, self.center)
        self.translation, self.rotation = (np.trace(self.there[b, b]) / 3.0 for b in (slice(0, 3), slice(3, 6)))


@pytest.fixture(scope="module")
def zinc_finger(shared_data):
    beads, lines = grpy(shared_data / "hydrodynamics", "zincfinger_1znf")
    return Model(beads[:, :3], beads[:, 3]), lines


@pytest.fixture(scope="module")
def lysozyme(shared_data):
    beads, lines = grpy(shared_data / "hydrodynamics", "lysozyme_1aki")
    return Model(beads[:, :3], beads[:, 3]), lines


def of_atoms(folder, name):
    """Atoms of 2.9 Å: no layer of water is added, the radius is meant to have it."""
    lines = (folder / "hydrodynamics" / f"{name}_hydropro.txt").read_text().splitlines()
    return Model(atoms(folder / "proteins" / f"{name}.pdb"), 0.29), lines


@pytest.fixture(scope="module")
def ubiquitin_atoms(shared_data):
    return of_atoms(shared_data, "ubiquitin_1ubq")


@pytest.fixture(scope="module")
def lysozyme_atoms(shared_data):
    return of_atoms(shared_data, "lysozyme_1aki")


@pytest.mark.parametrize("name", ["zinc_finger", pytest.param("lysozyme", marks=pytest.mark.slow)])
def test_grpy(name, request):
    """The same beads and the same approximation: every printed digit of all 36 elements, the centre and the means."""
    model, lines = request.getfixturevalue(name)
    assert as_printed(model.diffusion * CENTIMETERS, matrix_in(lines)).max() < 0.51
    center = next(k for k, line in enumerate(lines) if "mobility center" in line) + 2
    assert as_printed(model.center * 1e-7, [float(n) for n in NUMBER.findall(lines[center])]).max() < 0.51
    # In the frame of the axes of rotational diffusion, which it takes in the same order for both proteins.
    expected = np.diag(matrix_in(lines[center:]))
    turns, axes = np.linalg.eigh(model.there[3:, 3:])
    assert as_printed(turns, expected[3:]).max() < 0.51
    assert as_printed(np.diag(axes.T @ model.there[:3, :3] @ axes) * 1e-14, expected[:3]).max() < 0.51
    assert as_printed(model.rotation, value_of("Rotational diffusion", lines)) < 0.51
    assert as_printed(model.translation * 1e-14, value_of("Translational diffusion", lines[center:])) < 0.51


def test_without_stresslets(shared_data, zinc_finger):
    """One and two percent more diffusion: what stresslets add to a protein of 273 beads."""
    beads, _ = grpy(shared_data / "hydrodynamics", "zincfinger_1znf")
    less = Model(beads[:, :3], beads[:, 3], stresslets=False)
    assert less.translation / zinc_finger[0].translation == pytest.approx(1.0091, abs=0.0002)
    assert less.rotation / zinc_finger[0].rotation == pytest.approx(1.0239, abs=0.0002)


@pytest.mark.parametrize(("name", "translation", "rotation"), [
    pytest.param("ubiquitin_atoms", -0.006, -0.015, marks=pytest.mark.slow),
    pytest.param("lysozyme_atoms", 0.000, 0.004, marks=pytest.mark.long),
])  # fmt: skip
def test_hydropro(name, translation, rotation, request):
    """The same atoms by another method, so that a percent is left between them; which one, is recorded here.

    HYDROPRO covers the body by small beads and extrapolates to none of their size. It tells a volume 3.5 % above that
    of the atoms. Its coefficient of translation is 1.2 % below the mean of its own tensor; the tensor is compared.
    """
    model, lines = request.getfixturevalue(name)
    # About its centre of diffusion; symmetric to the digits that it prints.
    expected = rigid.check_tensor(matrix_in(lines) / CENTIMETERS, "HYDROPRO", tolerance=1e-3)
    for block, mean, deviation in (
        (slice(0, 3), model.translation, translation),
        (slice(3, 6), model.rotation, rotation),
    ):
        theirs = np.trace(expected[block, block]) / 3.0
        assert mean / theirs - 1.0 == pytest.approx(deviation, abs=0.001)
        # Shapes, with that taken out.
        np.testing.assert_allclose(model.there[block, block] / mean, expected[block, block] / theirs, atol=0.004)


@pytest.mark.slow
def test_measured(shared_data, lysozyme, ubiquitin_atoms):
    """Lysozyme and ubiquitin in water: not further off than measurements of one protein from each other."""
    with (shared_data / "hydrodynamics" / "protein_diffusion_reference.csv").open(newline="") as file:
        rows = {row["key"]: row for row in csv.DictReader(file)}

    def deviation(value, key, column):
        values = [float(v) for v in rows[key][column].split(";")]
        return value / np.mean(values) - 1.0, (max(values) - min(values)) / np.mean(values)

    for value, spread in (
        deviation(lysozyme[0].translation * 1e-7, "1aki", "D_exp_20w_1e-7cm2_s"),
        # The mean correlation time is 1/6 of the inverse of the mean coefficient.
        deviation(1e9 / (6.0 * lysozyme[0].rotation), "1aki", "tau_exp_ns"),
        deviation(1e9 / (6.0 * ubiquitin_atoms[0].rotation), "1ubq", "tau_exp_ns"),
    ):
        assert abs(value) < spread
