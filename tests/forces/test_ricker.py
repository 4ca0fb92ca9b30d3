"""Ricker: values, cutoff, derivatives near zero, two beads that meet, and many on a surface of genus 2.

Energies and derivatives against an independent form, groups, exclusions and sites are in test_contract.py.
"""

import numpy as np
import pytest
from builders import look, system_with
from scipy.integrate import quad
from scipy.optimize import brentq

import medyanpy as mp
from medyanpy.forces import Ricker

DEPTH, DISTANCE = 0.5, 1.0 / 6.0


def well(r, depth=DEPTH, distance=DISTANCE, cutoff=4.0 * DISTANCE):
    def u(r):
        return 0.5 * depth * (1.0 - 3.0 * (r / distance) ** 2) * np.exp(1.5 - 1.5 * (r / distance) ** 2)

    return np.where(r < cutoff, u(r) - u(cutoff), 0.0)


def pair(r, timestep=0.01, surface=None, **options):
    """Two beads r apart along x, on the plane z = 0 if there is no other surface; mass 1 and 2."""
    topology = mp.Topology()
    x = [[-0.5 * r, 0.0, 0.0], [0.5 * r, 0.0, 0.0]]
    beads = topology.add_surface_points(surface or mp.surfaces.Plane(), x, mass=[1.0, 2.0])
    return mp.Context(system_with(topology, Ricker(beads, beads, DEPTH, DISTANCE, **options)),
                      mp.SplittingIntegrator("BAB", timestep), threads=1)  # fmt: skip


# Values ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("rho", "energy", "force"), [
    (0.0, 0.5 * np.exp(1.5), 0.0),
    (np.sqrt(1.0 / 3.0), 0.0, 3.0 * np.sqrt(1.0 / 3.0) * np.e),
    (1.0, -1.0, 0.0),
    (2.0, -5.5 * np.exp(-4.5), -27.0 * np.exp(-4.5)),
])  # fmt: skip
def test_derivation_by_hand(rho, energy, force):
    """Within what is taken off at 4 r_e; positive forces push apart."""
    state = look(pair(rho * DISTANCE))
    assert state.potential_energy == pytest.approx(DEPTH * energy, abs=4.1e-9 * DEPTH)
    expected = np.zeros((2, 3))
    expected[:, 0] = np.array([-1.0, 1.0]) * force * DEPTH / DISTANCE
    np.testing.assert_allclose(state.forces, expected, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize(("cutoff", "jump"), [(None, 4.568e-8), (3.0, 6.636e-4), (2.0, 0.29994), (1.0, 0.0)])
def test_ends_at_the_cutoff(cutoff, jump):
    """The energy is continuous there, the force jumps by what the documentation says, nothing acts beyond."""
    end = (cutoff or 4.0) * DISTANCE
    given = None if cutoff is None else end
    inside = look(pair(end * (1.0 - 1e-9), cutoff=given))
    outside = look(pair(end * (1.0 + 1e-9), cutoff=given))
    assert outside.potential_energy == 0.0
    assert not outside.forces.any()
    assert abs(inside.potential_energy) < 1e-9 * DEPTH
    assert inside.forces[0, 0] * DISTANCE / DEPTH == pytest.approx(jump, rel=1e-3, abs=2e-8)


def test_forces_are_smooth_where_beads_meet():
    """Through zero distance: force and second derivative are even series, the third derivative is odd and small.

    (U'/r)' would be rounding errors of U'' over r, 1e-3 U''/r_e at 1e-13, were U'' not made of U'/r."""
    a = np.array([[0.3, -0.2, 0.7], [0.1, 0.5, -0.4]])
    b = a[1] - a[0]
    stiff = -4.5 * np.exp(1.5) * DEPTH / DISTANCE**2
    for r in (0.0, 1e-160, *np.linspace(1e-13, 3e-13, 20), 1e-9, 1e-7, 1e-5):
        context = pair(r)
        np.testing.assert_allclose(look(context).forces[1], [-stiff * r, 0.0, 0.0], rtol=1e-7, atol=1e-300)
        hessian = context.hessian().toarray()
        np.testing.assert_allclose(hessian[3:, 3:], stiff * np.eye(3), rtol=1e-7, atol=1e-6 * abs(stiff))
        # (U'/r)'/r at 0 is 5 times stiff / r_e^2 times -1.
        bend = -5.0 * stiff / DISTANCE**2 * r
        expected = bend * np.array([2.0 * b[0] ** 2 + b @ b, 2.0 * b[0] * b[1], 2.0 * b[0] * b[2]])
        found = context.third_derivative(a)
        np.testing.assert_allclose(found[1], expected, rtol=1e-6, atol=1e-6 * abs(stiff) / DISTANCE)
        np.testing.assert_array_equal(found[0], -found[1])


# Two beads on a plane ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("normal", [[0.0, 0.0, 1.0], [0.0, 3.0, 4.0]])
def test_a_bound_pair_oscillates_with_the_frequency_of_the_well(normal):
    """U''(r_e) = 9 U_e/r_e²; velocity Verlet turns ω into 2 asin(ω h/2)/h; the amplitude shifts it by its square."""
    amplitude, n = 1e-4, 4000
    context = pair((1.0 + amplitude) * DISTANCE, 0.005, mp.surfaces.Plane(normal=normal))
    stretch = []
    for _ in range(n):
        x = context.get_state(positions=True).positions
        stretch.append(np.linalg.norm(x[1] - x[0]) / DISTANCE - 1.0)
        context.step(1)
    stretch = np.array(stretch)
    omega = np.sqrt(9.0 * DEPTH / DISTANCE**2 * 1.5)  # 1/m = 1 + 1/2
    expected = 2.0 * np.arcsin(0.5 * omega * 0.005) / 0.005
    # Where it passes the mean upwards.
    up = np.flatnonzero((stretch[:-1] < 0.0) & (stretch[1:] >= 0.0))
    at = up - stretch[up] / (stretch[up + 1] - stretch[up])
    assert len(at) > 40
    assert 2.0 * np.pi * (len(at) - 1) / ((at[-1] - at[0]) * 0.005) == pytest.approx(expected, rel=1e-5)
    assert np.abs(stretch).max() == pytest.approx(amplitude, rel=1e-3)


def collision(speed, impact, timestep):
    """Two beads that meet at this relative speed and impact parameter, until they are apart again, or for 20 time
    units: (largest and last distance, angle by which their relative velocity was turned, last relative speed)."""
    topology = mp.Topology()
    x = np.array([[-2.0, 0.0, 0.0], [2.0, impact, 0.0]]) * DISTANCE * [[2.5, 1.0, 1.0]]
    beads = topology.add_surface_points(mp.surfaces.Plane(), x, mass=1.0)
    context = mp.Context(system_with(topology, Ricker(beads, beads, DEPTH, DISTANCE)),
                         mp.SplittingIntegrator("BAB", timestep), threads=1)  # fmt: skip
    context.set_velocities([[0.5 * speed, 0.0, 0.0], [-0.5 * speed, 0.0, 0.0]])
    context.step(round(20.0 * DISTANCE / speed / timestep))
    state = context.get_state(positions=True, velocities=True)
    d, v = state.positions[1] - state.positions[0], state.velocities[1] - state.velocities[0]
    return np.linalg.norm(d), np.arctan2(v[1], -v[0]), np.linalg.norm(v)


@pytest.mark.parametrize(("speed", "impact"), [(2.5, 0.4), (2.0, 0.8), (1.5, 1.7), (3.5, 0.3)])
def test_fast_pairs_scatter(speed, impact):
    """They separate with the speed they came with, turned by the angle of the classical integral
    π - 2b ∫ dr / (r² √(1 - b²/r² - U/E)); the last pair passes over the core."""
    energy, b = 0.25 * speed**2, impact * DISTANCE

    def radial(r):
        return 1.0 - b * b / (r * r) - well(r) / energy

    # The outermost root; with r = r_min / (1 - t²) the integrand is finite.
    grid = np.linspace(4.0 * DISTANCE, 1e-3 * DISTANCE, 4000)
    inner = np.flatnonzero(radial(grid) < 0.0)[0]
    r_min = brentq(radial, grid[inner], grid[inner - 1], xtol=1e-16)
    integral = quad(lambda t: 2.0 * t / np.sqrt(radial(r_min / (1.0 - t * t))) / r_min, 0.0, 1.0, epsabs=1e-10)[0]
    expected = np.pi - 2.0 * b * integral
    errors = []
    for timestep in (0.004, 0.002):
        apart, angle, after = collision(speed, impact, timestep)
        assert apart > 5.0 * DISTANCE
        assert after == pytest.approx(speed, rel=2e-4)
        errors.append(abs(angle - expected))
    assert errors[1] < 1e-3
    assert 3.0 < errors[0] / errors[1] < 5.0


def test_slow_pairs_stay_bound():
    """Between the turning points of their energy, for 200 periods and more."""
    start = 1.5 * DISTANCE
    context = pair(start, 0.005)
    inner = brentq(lambda r: well(r) - well(start), 0.1 * DISTANCE, DISTANCE)
    distances = []
    for _ in range(15_000):
        context.step(1)
        x = context.get_state(positions=True).positions
        distances.append(np.linalg.norm(x[1] - x[0]))
    assert np.max(distances) == pytest.approx(start, rel=0.01)
    assert np.min(distances) == pytest.approx(inner, rel=0.01)


# Many on a surface of genus 2 --------------------------------------------------------------------------------------


def test_many_on_a_surface_of_genus_2():
    """Every 100th place of a trajectory under gravity, at rest, for 2000 steps of 0.01: the rms energy error falls
    as the timestep squared; pairs bind for many periods (0.35 each) and others fly free.

    Paths are chaotic: after a few time units those of two timesteps are different runs, so ratios scatter."""
    surface = mp.surfaces.Lemniscate(2, a=1.0, r=1.0 / 6.0)
    angle = 2.0 * np.pi * 3 / 24
    topology = mp.Topology()
    bead = topology.add_surface_points(surface, [[0.0, 0.0, 1.0 / 6.0]], mass=1.0)
    system = system_with(topology, mp.forces.UniformField([bead], [0.0, 0.0, -1.0]))
    context = mp.Context(system, mp.SplittingIntegrator("BAB", 0.01), threads=1)
    context.set_velocities([[np.cos(angle), np.sin(angle), 0.0]])
    places = []
    for _ in range(21):
        places.append(context.get_state(positions=True).positions[0])
        context.step(100)

    i, j = np.triu_indices(21, 1)
    errors = []
    for steps in (1, 2, 4):
        topology = mp.Topology()
        beads = topology.add_surface_points(surface, places, mass=1.0)
        system = system_with(topology, Ricker(beads, beads, DEPTH, DISTANCE))
        context = mp.Context(system, mp.SplittingIntegrator("BAB", 0.01 / steps), threads=1)
        energies, distances = [], []
        for _ in range(2001):
            state = context.get_state(positions=True, velocities=True, energy=True)
            energies.append(state.total_energy)
            distances.append(np.linalg.norm(state.positions[i] - state.positions[j], axis=1))
            context.step(steps)
        errors.append(np.sqrt(np.mean((np.array(energies) - energies[0]) ** 2)) / DEPTH)
        # What each has, and what it would take to remove it from all others.
        own = 0.5 * (state.velocities**2).sum(axis=1)
        np.add.at(own, i, well(distances[-1]))
        np.add.at(own, j, well(distances[-1]))
        assert (own < 0.0).sum() >= 10
        assert (own > 0.0).sum() >= 2
        # Steps of 0.01 in a row in which some pair is within reach of its well: more than ten periods.
        lasting = longest = np.zeros(len(i), int)
        for near in np.array(distances) < 2.0 * DISTANCE:
            lasting = np.where(near, lasting + 1, 0)
            longest = np.maximum(longest, lasting)
        assert longest.max() > 400
    assert errors[0] < 0.06
    assert 3.0 < errors[0] / errors[1] < 5.0
    assert 3.0 < errors[1] / errors[2] < 5.0


def test_many_collapse():
    """The energy per bead of a hexagonal lattice, as docstring and docs/forces/pairs.md have it: that of the bead in
    the middle of a patch with all others, by half. Lower and lower as the lattice shrinks."""
    i, j = np.meshgrid(np.arange(-12, 13), np.arange(-12, 13))
    sites = np.column_stack([(i + 0.5 * j).ravel(), (np.sqrt(0.75) * j).ravel(), np.zeros(i.size)])
    middle = int(np.argmin(np.linalg.norm(sites, axis=1)))
    for spacing, expected in ((1.0, -3.79), (0.8, -5.35), (0.6, -8.65), (0.4, -18.06)):
        topology = mp.Topology()
        topology.add_beads(spacing * sites, mass=1.0)
        others = np.delete(np.arange(len(sites)), middle)
        energy = mp.Context(system_with(topology, Ricker([middle], others, depth=1.0, distance=1.0)),
                            mp.VerletIntegrator(1e-3), threads=1).get_state(energy=True).potential_energy  # fmt: skip
        assert 0.5 * energy == pytest.approx(expected, abs=0.005)
