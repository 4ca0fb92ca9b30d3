"""Clusters of rigid water: against an independent SHAKE and RATTLE, conservation, penalties against constraints, and
temperatures. False alarms of the statistical checks: 1e-6 each."""

import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import medyanpy as mp
from medyanpy.testing import check_mean

sys.path.insert(0, str(Path(__file__).parent))
import water

MASS = np.tile(water.MASSES, 7)[:, None]


@cache
def cluster():
    """Positions and velocities of seven molecules at kT, and nothing special about them."""
    x = water.start(7, steps=4000)
    return x, water.velocities(x, 3, water.KT)


# An independent program: TIP3P, SHAKE and RATTLE in plain NumPy, in kcal/mol, angstrom and g/mol -------------------


def potential_and_forces(x):
    n = len(x) // 3
    q, k = np.tile([0.417, -0.834, 0.417], n), 332.0637
    molecule = np.arange(3 * n) // 3
    d = x[None] - x[:, None]
    r = np.linalg.norm(d, axis=-1)
    apart = molecule[:, None] != molecule[None]
    r[~apart] = 1.0
    charge = np.where(apart, k * q[:, None] * q[None], 0.0)
    oxygen = np.arange(3 * n) % 3 == 1
    both = np.where(apart & oxygen[:, None] & oxygen[None], 1.0, 0.0)
    energy = charge / r + both * (582e3 / r**12 - 595.0 / r**6)
    pull = -charge / r**3 - both * (12.0 * 582e3 / r**14 - 6.0 * 595.0 / r**8)
    return 0.5 * energy.sum(), np.einsum("ij,ijc->ic", pull, d)


def gradients(molecule):
    """(3, 9) of the halved squares of the three sides."""
    out = np.zeros((3, 3, 3))
    for k in range(3):
        i, j = k, (k + 1) % 3
        out[k, j], out[k, i] = molecule[j] - molecule[i], molecule[i] - molecule[j]
    return out.reshape(3, 9)


def rattle(x, v):
    """Velocities along which sides keep their lengths."""
    w = np.repeat(1.0 / water.MASSES, 3)
    out = np.empty_like(v)
    for m in range(len(x) // 3):
        own = slice(3 * m, 3 * m + 3)
        J, u = gradients(x[own]), v[own].ravel()
        out[own] = (u - w * (J.T @ np.linalg.solve((J * w) @ J.T, J @ u))).reshape(3, 3)
    return out


def shake(x, y, sides):
    """y moved along the sides at x until they have their lengths."""
    w = np.repeat(1.0 / water.MASSES, 3)
    out = np.empty_like(y)
    for m in range(len(x) // 3):
        own = slice(3 * m, 3 * m + 3)
        J, z = gradients(x[own]), y[own].ravel()
        for _ in range(30):
            at = z.reshape(3, 3)
            left = 0.5 * (np.sum((np.roll(at, -1, axis=0) - at) ** 2, axis=1) - sides**2)
            step = np.linalg.solve((gradients(at) * w) @ J.T, left)
            z = z - w * (J.T @ step)
        out[own] = z.reshape(3, 3)
    return out


def independent(x, v, h, steps):
    sides = np.array([0.9572, 0.9572, 2.0 * 0.9572 * np.sin(np.deg2rad(52.26))])
    v = rattle(x, v)
    for _ in range(steps):
        v = rattle(x, v + 0.5 * h * potential_and_forces(x)[1] / MASS)
        y = shake(x, x + h * v, sides)
        v = rattle(y, (y - x) / h)
        x = y
        v = rattle(x, v + 0.5 * h * potential_and_forces(x)[1] / MASS)
    return x, v


def test_units_are_those_of_chemistry():
    assert water.TIME == pytest.approx(48.888e-15, rel=1e-4)
    assert water.CHARGE_CONSTANT == pytest.approx(332.0637, rel=1e-6)
    np.testing.assert_allclose(water.MASSES, [1.008, 15.999, 1.008], rtol=1e-12)
    np.testing.assert_allclose(water.SIDES, [0.9572, 0.9572, 1.513901], rtol=1e-6)


@pytest.mark.parametrize("steps", [1, 40])
def test_same_path_as_the_independent_program(steps):
    """A turn of molecules by up to half a radian; the constant of charges is known there to seven digits."""
    x, v = cluster()
    run = water.Shake(x, v)
    start = run.physical()
    assert run.context.get_state(energy=True).potential_energy == pytest.approx(
        potential_and_forces(start)[0], rel=1e-7
    )
    run.step(steps)
    theirs, speed = independent(start, v, water.H, steps)
    assert np.abs(run.physical() - start).max() > 3e-3
    np.testing.assert_allclose(run.physical(), theirs, rtol=0, atol=1e-8 * steps)
    np.testing.assert_allclose(run.velocities(), speed, rtol=0, atol=2e-7 * steps)


def test_rigid_water_is_reversible_and_rigid():
    x, v = cluster()
    run = water.Shake(x, v)
    start = run.physical()
    for back in (False, True):
        run.step(100)
        off = np.linalg.norm(water.sides(run.physical()), axis=2) / water.SIDES - 1.0
        assert np.abs(off).max() < 1e-10
        if not back:
            assert np.abs(run.physical() - start).max() > 0.1
            run.context.set_velocities(-run.velocities())
    # What the tolerance of lengths leaves, 1e-10 in each of 200 steps, as neighbours amplify it.
    assert np.abs(run.physical() - start).max() < 1e-6


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "energy", "angular"),
    [(water.Shake, 0.02, 1e-10), (water.ZhangSkeel, 0.02, 0.02), (water.ZhangSkeelStiff, 0.06, 3.0)],
)
def test_invariants_without_noise(kind, energy, angular):
    """To T = 100, of a kinetic energy of 0.4 and an angular momentum of 8; what stiff Zhang-Skeel kicks keep least is
    the angular momentum. The symplectic ones keep it to round-off in x, and here it is that of q."""
    x, _ = cluster()
    x = water.rest(x, kind.penalty)
    v = water.velocities(x, 3)
    kept = water.Conserved.of(kind(x, v), water.Penalised(x, kind.penalty), x, 100.0)
    changes = kept.changes()
    assert np.ptp(kept.momentum[:, 0]) < 1e-12
    assert changes[0] < energy
    assert changes[1] < 1e-12
    assert changes[2] < angular


def test_penalties_come_near_constraints_as_the_square_of_omega():
    """The same start, to T = 1; steps of 0.01, which change as much as ω = 500 does."""
    x, v = cluster()
    rigid = water.Shake(x, v, h=0.01)
    rigid.step(100)
    apart = []
    for omega in (25.0, 50.0, 100.0):
        run = water.ZhangSkeelStiff(x, v, h=0.01, omega=omega)
        run.step(100)
        apart.append(np.abs(run.physical() - rigid.physical()).max())
    assert apart[0] < 0.1
    assert apart[0] > 2.5 * apart[1] > 6.0 * apart[2]


def test_multipliers_of_penalties_are_those_of_constraints():
    """ω = 500 at h = 0.05, 57 times the explicit limit. Multipliers are about -17 and change by 1 within T = 2."""
    x, v = cluster()
    rigid, stiff, force = water.Shake(x, v), water.ZhangSkeelStiff(x, v, omega=500.0), water.Penalised(x, None)
    found = []
    for _ in range(40):
        p, q = rigid.physical(), stiff.physical()
        exact = water.exact_multipliers(p, rigid.velocities(), force.force(p))
        soft = -(500.0**2) * (np.sum(water.sides(q) ** 2, axis=2) - water.SIDES**2)
        found.append([exact, soft])
        rigid.step(1)
        stiff.step(1)
    exact, soft = np.array(found).reshape(10, 4, 2, 7, 3).mean(axis=1).transpose(1, 0, 2, 3)
    assert np.ptp(exact) > 10.0
    assert np.abs(exact - soft).max() < 0.1 * np.ptp(exact)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [water.Shake, water.ZhangSkeelStiff])
def test_temperature(kind):
    """A look every 100 steps: an error of 6 % would be found."""
    x, _ = cluster()
    x = water.rest(x, kind.penalty)
    kT, h = water.KT, water.H
    system = water.system_of(x, kind.penalty, friction=5.0)
    kick = None if kind.penalty is None else mp.kicks.ZhangSkeelStiff(water.BETA, stiff=["RigidTrianglePenalty"])
    simulation = mp.Simulation(system, mp.SplittingIntegrator("OBABO", h, kT=kT, seed=4, kick=kick), threads=1)
    simulation.context.set_velocities_to_temperature(kT=kT, seed=5)
    measured = []
    for _ in range(1200 if kind.penalty is None else 800):
        simulation.step(100)
        measured.append(simulation.context.get_state(energy=True).kT)
    check_mean(kind.name, measured, kT, sees=0.06 * kT, time_series=True)
