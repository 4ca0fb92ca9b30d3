"""Charges with a cutoff, written as a `CustomPair`, in a periodic box: against the sum over all images."""

import functools

import numpy as np
import pytest
from builders import system_with
from lattice_energies import ewald
from scipy.special import erfc

import medyanpy as mp

# Energy and force are 0 at the cutoff c; with a damping a > 0 charges far away count less.
SHIFTED = "k*q1*q2*(1/r - 1/c + (r - c)/c^2)"
DAMPED = "k*q1*q2*(erfc(a*r)/r - e/c + (e/c^2 + 2*a/sqrt(pi)*exp(-(a*c)^2)/c)*(r - c)); e = erfc(a*c)"
# Of rock salt: energy of an ion with all others over k q²/(distance of neighbours).
MADELUNG = 1.7475645946331822


def rock_salt(cells, moved=0.0, seed=1):
    """Places and charges of (2 cells)³ ions at the distance 1, moved at random; and the side of the box."""
    grid = np.stack(np.unravel_index(np.arange(8 * cells**3), (2 * cells,) * 3), axis=1)
    rng = np.random.default_rng(seed)
    return grid + rng.normal(0.0, moved, grid.shape), (-1.0) ** grid.sum(axis=1), 2.0 * cells


def cut(x, q, side, text, cutoff, **numbers):
    topology = mp.Topology()
    ions = topology.add_beads(x, mass=1.0)
    force = mp.forces.CustomPair(ions, ions, text, cutoff=cutoff, c=cutoff, k=1.0, q=q, **numbers)
    system = system_with(topology, force, box=[side] * 3)
    state = mp.Context(system, mp.VerletIntegrator(1e-3), threads=1).get_state(energy=True, forces=True)
    return state.potential_energy, state.forces


def own(q, cutoff, a):
    """What charges have with their own images at the cutoff and their own screens: no part of the forces."""
    e = erfc(a * cutoff)
    slope = e / cutoff**2 + 2.0 * a / np.sqrt(np.pi) * np.exp(-((a * cutoff) ** 2)) / cutoff
    return -np.sum(q**2) * (0.5 * e / cutoff + 0.5 * slope * cutoff + a / np.sqrt(np.pi))


def test_the_sum_over_images_has_the_constant_of_rock_salt():
    """To 1e-9, at two splittings; and forces are its derivatives."""
    x, q, side = rock_salt(1)
    for a in (None, 5.0 / side):
        energy, _ = ewald(x, q, side, a)
        assert -2.0 * energy / len(x) == pytest.approx(MADELUNG, abs=1e-9)
    x, q, side = rock_salt(1, 0.1)
    energy, force = ewald(x, q, side)
    h = 1e-4
    for i, c in ((0, 0), (5, 2)):
        ends = []
        for s in (h, -h):
            moved = x.copy()
            moved[i, c] += s
            ends.append(ewald(moved, q, side)[0])
        assert -(ends[0] - ends[1]) / (2.0 * h) == pytest.approx(force[i, c], abs=1e-6)
    assert np.abs(force.sum(axis=0)).max() < 1e-9


def test_the_text_is_continuous_with_its_derivative_at_the_cutoff():
    x = np.array([[0.0, 0.0, 0.0], [0.0, 0.0, 2.0]])
    for text, numbers in ((SHIFTED, {}), (DAMPED, {"a": 0.4})):
        for r, small in ((3.9999, 1e-3), (4.0001, 0.0)):
            x[1, 2] = r
            energy, force = cut(x, np.array([1.0, -1.0]), 20.0, text, 4.0, **numbers)
            assert abs(energy) <= small**2
            assert np.abs(force).max() <= small


@functools.cache
def exactly():
    return ewald(*rock_salt(3, 0.1))[1]


@pytest.mark.parametrize(("text", "a", "crystal", "forces"), [
    (SHIFTED, 0.0, 0.068, 0.115), (DAMPED, 0.3, 0.054, 0.112), (DAMPED, 0.5, 0.026, 0.12),
])  # fmt: skip
def test_errors_of_a_cutoff_are_those_of_the_page(text, a, crystal, forces):
    """Rock salt of 216 ions, cutoff 2.95 distances: the constant of the crystal, and forces of ions moved by 0.1, as
    the page has them, to a tenth."""
    numbers = {} if text is SHIFTED else {"a": a}
    x, q, side = rock_salt(3)
    energy, force = cut(x, q, side, text, 2.95, **numbers)
    found = -2.0 * (energy + own(q, 2.95, a)) / len(x)
    assert found - MADELUNG == pytest.approx(crystal, rel=0.1)
    assert np.abs(force).max() < 1e-12
    x, q, side = rock_salt(3, 0.1)
    force, exact = cut(x, q, side, text, 2.95, **numbers)[1], exactly()
    assert np.sqrt(np.mean((force - exact) ** 2) / np.mean(exact**2)) == pytest.approx(forces, rel=0.1)
