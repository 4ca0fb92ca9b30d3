"""The second implementation of elastic rods is itself right: it is what the package is compared with."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
import rod_reference as reference

# Of the circle with 63 segments: computed with other programs for this project.
CIRCLE_ENERGY = 0.015177500195207
# Largest |E/E0 - 1| over every step of OSDH to 300 t0, by Δt/t0.
LARGEST_ERRORS = {0.2: 2.979e-4, 0.1: 7.333e-5, 0.05: 1.838e-5}


@pytest.fixture
def bent(rng):
    """Twelve segments, stretched, sheared, bent and twisted by much, moving; natural curvature and six moduli."""
    n = 12
    rod = reference.rod(n, length=11.0, diameter=0.8)
    rod = rod._replace(moduli=rng.uniform(0.5, 2.0, 6), rest=np.array([0.1, -0.2, 0.9, 0.3, -0.1, 0.2]),
                       inertia=np.array([0.3, 0.5, 0.7]))  # fmt: skip
    y = reference.helix(n, rod.ds, 2.0, 0.7)
    y[:7] += rng.normal(0.0, 0.15, (7, n))
    y[7:] = rng.normal(0.0, 0.2, (6, n))
    reference.rescale(y)
    return rod, y


def space(y, body):
    """Body-frame vectors (3, N) in space."""
    return np.einsum("ian,in->an", np.array(reference.directors(*y[3:7])), body)


def momenta(rod, y):
    """Momentum and angular momentum."""
    p = rod.mass * y[7:10]
    return p.sum(axis=1), (np.cross(y[:3], p, axis=0) + space(y, y[10:])).sum(axis=1)


def turned(y, n, i, angle):
    """Node n turned about its body axis i, or moved along axis i - 3."""
    y = y.copy()
    if i >= 3:
        y[i - 3, n] += angle
    else:
        e = np.array(reference.rotations(*y[3:7, n]))[i]
        y[3:7, n] = np.cos(angle / 2) * y[3:7, n] + np.sin(angle / 2) * e
    return y


def differences(rod, y, h=1e-3):
    """Minus the derivatives of the potential energy, fourth order in h."""
    out = np.zeros((6, y.shape[1]))
    for i in range(6):
        for n in range(y.shape[1]):
            u = [reference.energies(rod, turned(y, n, i, k * h))[1].sum() for k in (-2, -1, 1, 2)]
            out[(i + 3) % 6, n] = -(u[0] - 8 * u[1] + 8 * u[2] - u[3]) / (12 * h)
    return out


def test_the_basis_turns_about_body_axes(bent):
    """e_i is the change of the quaternion under half a turn's worth of rotation about d_i: d_i stays."""
    _, y = bent
    for i in range(3):
        before, after = (np.array(reference.directors(*q[3:7, 5])) for q in (y, turned(y, 5, i, 1e-6)))
        np.testing.assert_allclose((after - before) / 1e-6, np.cross(before[i], before), atol=2e-6)


def test_helix_has_its_strains():
    """Ω of chords between nodes is 4 sin(κΔs/4)/Δs along [R, 0, P]κ, and Γ tends to d3 with second order."""
    rod = reference.rod(630)
    y = reference.four_turns(630, rod.ds)
    _, _, _, gamma, omega = reference.joint(rod, y, slice(0, 629), slice(1, 630))
    expected = 4 * np.sin(0.4 * rod.ds / 4) / rod.ds * np.array([4.0, 0, 1.0]) / np.sqrt(17)
    np.testing.assert_allclose(np.array(omega), np.tile(expected[:, None], 629), rtol=0, atol=1e-12)
    np.testing.assert_allclose(np.array(gamma), np.tile([[0.0], [0.0], [1.0]], 629), atol=(0.4 * rod.ds) ** 2)
    # Four turns: ends above one another but for one segment.
    assert np.hypot(*(y[:2, 0] - y[:2, -1])) < rod.ds


def test_circle_has_its_energy():
    rod = reference.rod(63)
    y = reference.circle(63, rod.ds)
    energy = reference.energies(rod, y)
    assert energy.sum() == pytest.approx(CIRCLE_ENERGY, rel=1e-13)
    # B L/2R² of the continuum, without the missing ends, to second order in Δs; no shear, no twist.
    assert energy[1, 3] == pytest.approx(np.pi / 64 * 20 * np.pi / 200 * 62 / 63, rel=(0.1 * rod.ds) ** 2 / 40)
    assert np.all(np.abs(energy[1, [0, 1, 4, 5]]) < 1e-25)


def test_straight_rods_are_at_rest():
    rod = reference.rod(9)
    y, f = reference.straight(9, rod.ds), np.ones((6, 9))
    for hamiltonian in (True, False):
        reference.forces(rod, y, f, hamiltonian)
        assert np.all(np.abs(f) < 1e-14)


def test_kinetic_energy_by_components(bent):
    rod, y = bent
    kinetic = reference.energies(rod, y)[0]
    along = np.einsum("ian,an->in", np.array(reference.directors(*y[3:7])), y[7:10])
    np.testing.assert_allclose(kinetic[:3], rod.mass / 2 * np.sum(along**2, axis=1), rtol=1e-13)
    np.testing.assert_allclose(kinetic[3:], np.sum(y[10:] ** 2, axis=1) / (2 * rod.inertia), rtol=1e-13)
    assert kinetic[:3].sum() == pytest.approx(rod.mass / 2 * np.sum(y[7:10] ** 2), rel=1e-13)


def test_forces_and_torques_are_derivatives_of_the_energy(bent):
    rod, y = bent
    f = np.zeros((6, y.shape[1]))
    reference.hamiltonian_forces(rod, y, f)
    np.testing.assert_allclose(f, differences(rod, y), rtol=0, atol=2e-10)
    assert np.abs(f).max() > 0.5


def test_torques_in_closed_form(bent):
    """With u = ΔsΩ/4 and c = |q_a + q_b|/2 the torques of a joint on its nodes are c b ± u×b, b = ±F^Ω +
    Δs/4c (Ω×F^Ω + 2 Γ×F^Γ): (54) in the nodes' own frames without a quaternion."""
    rod, y = bent
    f = np.zeros((6, y.shape[1]))
    reference.hamiltonian_forces(rod, y, f)
    a, b = slice(0, y.shape[1] - 1), slice(1, y.shape[1])
    size, _, _, gamma, omega = reference.joint(rod, y, a, b)
    gamma, omega, c = np.array(gamma), np.array(omega), size / 2
    fg, fo = (np.array(s) for s in reference.stresses(rod, gamma, omega))
    same = rod.ds / (4 * c) * (np.cross(omega, fo, axis=0) + 2 * np.cross(gamma, fg, axis=0))
    torque, u = np.zeros((3, y.shape[1])), rod.ds * omega / 4
    torque[:, a] += c * (fo + same) + np.cross(u, fo + same, axis=0)
    torque[:, b] += c * (same - fo) - np.cross(u, same - fo, axis=0)
    np.testing.assert_allclose(f[3:], torque, rtol=0, atol=1e-14)


def test_difference_forces_tend_to_the_others():
    """With second order, at the interior nodes of a smooth rod; and no energy has them."""
    errors = []
    for n in (100, 200):
        rod = reference.rod(n, length=10.0)
        y = reference.four_turns(n, rod.ds)
        s = np.linspace(0.0, 1.0, n)
        y[0] += 0.3 * np.sin(5 * s)
        h, d = np.zeros((2, 6, n))
        reference.hamiltonian_forces(rod, y, h)
        reference.difference_forces(rod, y, d)
        np.testing.assert_allclose(d[:3], h[:3], atol=1e-15)
        errors.append(np.abs((h - d)[3:, 2:-2]).max() / rod.ds)
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2.0, abs=0.1)


def test_difference_torque_of_a_free_end(bent):
    """(35) of the first node: beyond it there is no force, and Γ is that of no force."""
    rod, y = bent
    f = np.zeros((6, y.shape[1]))
    reference.difference_forces(rod, y, f)
    _, d, _, gamma, omega = reference.joint(rod, y, 0, 1)
    fg, fo = reference.stresses(rod, gamma, omega)
    own = np.array(reference.directors(*y[3:7, 0]))
    expected = own @ np.array(d).T @ np.array(fo) + rod.ds / 4 * np.cross(np.array(gamma) + rod.rest[:3], fg)
    np.testing.assert_allclose(f[3:, 0], expected, rtol=0, atol=1e-14)


def test_a_node_at_a_time_and_all_at_once(bent):
    """What numba compiles, and what runs without it."""
    rod, y = bent
    n = y.shape[1]
    other = rod._replace(first=np.arange(n - 1), second=np.arange(1, n), nodes=np.arange(n))
    if reference.COMPILED:
        pytest.skip("only one of them can be compiled")
    for method in reference.METHODS:
        a, b = (reference.advance(r, y, method, 0.02, 3) for r in (rod, other))
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-13)


@pytest.mark.parametrize(("method", "order"), [("OSDH", 2), ("OSDF", 2), ("RKDH", 4), ("MPDH", 2), ("TRDH", 2)])
def test_order(method, order, bent):
    """All integrators solve the same equations: against RK with small steps. One step halved."""
    rod, y = bent
    exact = reference.advance(rod, y, "RK" + method[2:], 0.001, 400)
    errors = [np.abs(reference.advance(rod, y, method, h, round(0.4 / h)) - exact).max() for h in (0.04, 0.02)]
    assert np.log2(errors[0] / errors[1]) == pytest.approx(order, abs=0.25)


@pytest.mark.parametrize("method", ["OSDH", "OSDF", "MPDH"])
def test_reversible(method, bent):
    """TR is not: it changes the lengths of quaternions, and rescaling them forgets by how much."""
    rod, y = bent
    z = reference.advance(rod, y, method, 0.05, 40)
    assert np.abs(z - y).max() > 0.3
    z[7:] *= -1.0
    z = reference.advance(rod, z, method, 0.05, 40)
    z[7:] *= -1.0
    np.testing.assert_allclose(z, y, rtol=0, atol=1e-10)


@pytest.mark.parametrize("method", reference.METHODS)
def test_quaternions_keep_their_length(method, bent):
    y = reference.advance(*bent, method, 0.05, 20)
    assert np.abs(np.sum(y[3:7] ** 2, axis=0) - 1.0).max() < 1e-13


def test_splitting_keeps_momenta(bent):
    rod, y = bent
    z = reference.advance(rod, y, "OSDH", 0.05, 200)
    for before, after in zip(momenta(rod, y), momenta(rod, z), strict=True):
        np.testing.assert_allclose(after, before, rtol=0, atol=1e-12)


def largest_error(dt, end):
    rod = reference.rod(63)
    y = reference.circle(63, rod.ds)
    start, largest = reference.energies(rod, y).sum(), 0.0
    for _ in range(round(end / dt)):
        y = reference.advance(rod, y, "OSDH", dt, 1)
        largest = max(largest, abs(reference.energies(rod, y).sum() / start - 1.0))
    return largest


@pytest.mark.parametrize(
    "dt", [0.2, pytest.param(0.1, marks=pytest.mark.slow), pytest.param(0.05, marks=pytest.mark.slow)]
)
def test_energy_of_the_circle_let_go(dt):
    """The error made in 300 t0, which another implementation has too."""
    assert largest_error(dt, 300.0) == pytest.approx(LARGEST_ERRORS[dt], rel=2e-4)
