"""Kirchhoff's rod, which neither shears nor stretches: a twistable filament made by `CircularSection.kirchhoff`,
against elastic rods in the limit of stiff shear and extension."""

import numpy as np
import pytest
from builders import refuses, system_with
from rods_by_differences import frequencies, make
from scipy import linalg, optimize

import medyanpy as mp
from medyanpy.forces import FilamentBending, FilamentTwisting, UniformField

SECTION = mp.rods.CircularSection(radius=0.1, youngs_modulus=1.0, poisson_ratio=0.3, density=1.0)
LENGTH = 4.0
# How much stiffer shear and extension are made than those of the material, and how much lighter rotation.
STIFFER = 30.0


def kirchhoff(nodes, *loads, timestep=1e-3):
    """A simulation of a Kirchhoff rod, and its handle; `loads` are made of the handle."""
    topology = mp.Topology()
    rod = topology.add_filament(**SECTION.kirchhoff(nodes))
    bending = FilamentBending(rod, SECTION.stiffness["bending"])
    twisting = FilamentTwisting(rod, SECTION.stiffness["twist"])
    system = system_with(topology, bending, twisting, *(load(rod) for load in loads))
    return mp.Simulation(system, mp.VerletIntegrator(timestep), threads=1), rod


def positions(simulation, rod):
    return simulation.context.get_state(positions=True).positions[rod.beads]


def test_it_has_the_masses_and_moments_of_the_section():
    x = np.cumsum(np.random.default_rng(1).normal(size=(9, 3)), axis=0)
    for closed in (False, True):
        given = SECTION.kirchhoff(x, closed=closed)
        length = np.linalg.norm(np.diff(np.concatenate([x, x[:1]]) if closed else x, axis=0), axis=1)
        assert given["node_mass"].sum() == pytest.approx(SECTION.linear_density * length.sum(), rel=1e-14)
        np.testing.assert_allclose(given["director_mass"], SECTION.inertia_density[2] * length, rtol=1e-14)
        rod = mp.Topology().add_filament(**given)
        assert rod.constrained
        assert len(rod.directors.beads) == len(length)
    refuses(mp.ParameterError, "CircularSection.kirchhoff: nodes", SECTION.kirchhoff, [[0.0, 0.0]])


# Frequencies ---------------------------------------------------------------------------------------------------------


def bending_waves(n):
    """Frequencies, slowest first, and shapes of small waves across a straight Kirchhoff rod of n links: of the energy
    B/2ℓ³ Σ (y_(i-1) - 2 y_i + y_(i+1))², as of all filaments (test_filament_waves)."""
    length, share = LENGTH / n, np.ones(n + 1)
    share[[0, -1]] = 0.5
    second = np.diff(np.eye(n + 1), 2, axis=0)
    mass = np.diag(SECTION.linear_density * length * share)
    square, shapes = linalg.eigh(SECTION.stiffness["bending"] / length**3 * second.T @ second, mass)
    return np.sqrt(square[2:5]), shapes[:, 2:5]


def waves_of_rods(n):
    """Of an elastic rod of n segments with stiff shear: its three slowest of bending."""
    length = LENGTH / n
    nodes, q = mp.rods.uniform(n, length)
    s = SECTION.stiffness
    stiffness = {**s, "shear": STIFFER * s["shear"], "extension": STIFFER * s["extension"]}
    # Without the rotary inertia of sections, as that of the filament.
    inertia = np.divide(SECTION.inertia_density, STIFFER)
    context, rod = make(nodes, q, length, stiffness, mass=SECTION.linear_density, inertia=inertia)
    # Six motions at rest; then each wave of bending in two planes.
    square = frequencies(context, rod)
    return np.sqrt(square[6:12:2])


def test_bending_waves_are_those_of_rods_with_stiff_shear():
    """The three slowest: both rods are off the continuum by the square of the segments, and from each other too."""
    apart = np.array([bending_waves(n)[0] / waves_of_rods(n) - 1.0 for n in (12, 24)])
    np.testing.assert_allclose(np.log2(apart[0] / apart[1]), 2.0, atol=0.1)
    assert (np.abs(4.0 * apart[1] - apart[0]) / 3.0 < 2e-3).all()


def test_a_bending_wave_has_its_frequency():
    """After half a period it is reversed: the rod has the masses and the stiffness that it should have."""
    n, h = 12, 0.02
    frequencies, shapes = bending_waves(n)
    y = 1e-4 * shapes[:, 1] / np.abs(shapes[:, 1]).max()
    along = np.sqrt((LENGTH / n) ** 2 - np.diff(y) ** 2)
    nodes = np.column_stack([y, 0 * y, np.concatenate([[0.0], np.cumsum(along)])])
    simulation, rod = kirchhoff(nodes, timestep=h)
    steps = round(np.pi / frequencies[1] / h)
    simulation.step(steps)
    np.testing.assert_allclose(positions(simulation, rod)[:, 0], y * np.cos(frequencies[1] * steps * h), atol=2e-7)


def test_twisting_waves_have_the_law_of_rods():
    """Standing waves of twist, ω = 2 √(C/Iℓ²) sin(kℓ/2): in a chain of n links as of n nodes of rods, to rounding."""
    n, mode = 16, 3
    length = LENGTH / n
    simulation, rod = kirchhoff(np.outer(length * np.arange(n + 1), [0.0, 0.0, 1.0]), timestep=1e-4)
    inertia, twist = SECTION.inertia_density[2], SECTION.stiffness["twist"]
    k = np.pi * mode / LENGTH
    omega = 2.0 * np.sqrt(twist / inertia) / length * np.sin(0.5 * k * length)
    shape = np.cos(k * length * (np.arange(n) + 0.5))
    director = positions(simulation, rod.directors)
    turned = 1e-4 * shape
    about = np.cross([0.0, 0.0, 1.0], director)
    x = simulation.context.get_state(positions=True).positions.copy()
    x[rod.directors.beads] = np.cos(turned)[:, None] * director + np.sin(turned)[:, None] * about
    simulation.context.set_positions(x)
    steps = round(np.pi / omega / 1e-4)
    simulation.step(steps)
    found = (positions(simulation, rod.directors) * about).sum(axis=1)
    # After half a period the wave is reversed.
    np.testing.assert_allclose(found, turned * np.cos(omega * steps * 1e-4), atol=1e-8)


# Shapes --------------------------------------------------------------------------------------------------------------


def bent_rod(n, force):
    """The ends (x, z) from the middle, in the rod's limit without shear and stretch: the least energy of n nodes whose
    frames turn by α in a plane, the next node a segment on along the mean frame. What RodElasticity says of it is
    compared."""
    length, stiffness = LENGTH / n, SECTION.stiffness["bending"]

    def shape(angle):
        mean = 0.5 * (angle[1:] + angle[:-1])
        steps = length * np.column_stack([np.sin(mean), np.cos(mean)])
        x = np.concatenate([np.zeros((1, 2)), np.cumsum(steps, axis=0)])
        half = 0.5 * length * np.column_stack([np.sin(angle), np.cos(angle)])
        return x, x[0] - half[0] - x[n // 2], x[-1] + half[-1] - x[n // 2]

    def elastic(angle):
        return 0.5 * length * stiffness * ((4.0 * np.sin(0.25 * np.diff(angle)) / length) ** 2).sum()

    def total(angle):
        _, start, end = shape(angle)
        return (elastic(angle) - force * (start[0] + end[0])) / (force * LENGTH)

    angle = optimize.minimize(total, np.linspace(-0.5, 0.5, n), tol=1e-9).x
    places, start, end = shape(angle)
    q = np.column_stack([np.cos(0.5 * angle), 0.0 * angle, np.sin(0.5 * angle), 0.0 * angle])
    nodes = np.column_stack([places[:, 0], np.zeros(n), places[:, 1]])
    context, _ = make(nodes, q, length, SECTION.stiffness)
    assert context.get_state(energy=True).potential_energy == pytest.approx(elastic(angle), rel=1e-10)
    return np.array([start, end])


def test_a_rod_that_is_bent_at_three_points_has_the_shape_of_a_rod():
    """Its middle is pushed one way and its ends the other, so that each half turns by more than a radian. Links have
    the places of the rod's segments, and joints differ in the fourth power of their angle: shapes differ as the square
    of segments."""
    force, apart = 3.0 * SECTION.stiffness["bending"] / (0.5 * LENGTH) ** 2, []
    for n in (7, 15, 31):
        length, middle = LENGTH / n, n // 2
        pulls = np.zeros((n + 1, 3))
        pulls[[0, -1, middle, middle + 1], 0] = force * np.array([1.0, 1.0, -1.0, -1.0])
        corners = np.outer(length * np.arange(n + 1), [0.0, 0.0, 1.0])
        simulation, rod = kirchhoff(corners, lambda rod, pulls=pulls: UniformField(rod, pulls))
        simulation.minimize_energy(1e-6 * force)
        x = positions(simulation, rod)[:, [0, 2]]
        ends = x[[0, -1]] - 0.5 * (x[middle] + x[middle + 1])
        assert ends[1, 0] > 0.58 * 0.5 * LENGTH
        apart.append(np.abs(ends - bent_rod(n, force)).max() / LENGTH)
    assert apart[-1] < 1e-3
    np.testing.assert_allclose(np.log2(np.divide(apart[:-1], apart[1:])), 2.0, atol=0.3)
