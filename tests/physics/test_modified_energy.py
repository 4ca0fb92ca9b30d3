r"""The energy that RATTLE keeps, to the next order, which the essay on billiards finds "pretty rough in the presence
of constraints".

Without forces a step is stationary for the squared chord over 2h, as the flight along the surface is for the squared
length: chord² = s² (1 - κ² s²/12 + ...), with the curvature κ of the way in space. With the Lie brackets of kick and
flight, which on a surface are its covariant derivatives, of the word B A B

    H + h² [ II(v, v)²/24 + Hess U(v, v)/12 - |grad U|²/24 ] + O(h⁴)

is conserved, per mass: II(v, v) = vᵀHv/|∇g| the curvature times v², grad U the part of ∇U along the surface, and
Hess U(v, v) = vᵀU"v - (∇U·∇g/|∇g|²) vᵀHv.
"""

import numpy as np
import pytest
from builders import system_with

import medyanpy as mp

PULL, STIFFNESS = np.array([0.3, -0.2, -1.0]), 0.7
SURFACES = {
    "sphere": mp.surfaces.Sphere(1.0),
    "torus": mp.surfaces.Torus(1.0, 0.4),
    "ellipsoid": mp.surfaces.Ellipsoid([1.0, 0.8, 0.6]),
    "lemniscate": mp.surfaces.Lemniscate(2, 1.0, 1.0 / 6.0),
}


def context_on(surface, h, by_constraints, word="BAB"):
    topology = mp.Topology()
    start = surface.sample(12, seed=4)
    if by_constraints:
        beads = topology.add_beads(start, mass=1.0)
        topology.constrain("(x^2 + y^2 + z^2 - 1)/2", beads)
    else:
        beads = topology.add_surface_points(surface, start, mass=1.0)
    system = system_with(
        topology, mp.forces.UniformField(beads, PULL), mp.forces.HarmonicTrap(beads, STIFFNESS, center=[0.0, 0, 0])
    )
    context = mp.Context(system, mp.SplittingIntegrator(word, h), threads=1)
    context.set_velocities_to_temperature(kT=0.3, seed=7)
    return context


def terms(surface, x, v):
    """(12,) energies, and the sum of the three terms of h²."""
    gradient, hessian = surface.gradient(x), surface.hessian(x)
    square = (gradient**2).sum(axis=1)
    bend = np.einsum("ni,nij,nj->n", v, hessian, v)
    slope = STIFFNESS * x - PULL
    energy = 0.5 * (v**2).sum(axis=1) + 0.5 * STIFFNESS * (x**2).sum(axis=1) - x @ PULL
    across = (slope * gradient).sum(axis=1)
    along = (slope**2).sum(axis=1) - across**2 / square
    second = STIFFNESS * (v**2).sum(axis=1) - across / square * bend
    return energy, bend**2 / square / 24.0 + second / 12.0 - along / 24.0


def off(surface, h, by_constraints=False):
    """Return the rms changes of both energies over a time, of all beads."""
    context, plain, modified = context_on(surface, h, by_constraints), [], []
    for _ in range(round(0.8 / h) + 1):
        state = context.get_state(positions=True, velocities=True)
        energy, more = terms(surface, state.positions, state.velocities)
        plain.append(energy)
        modified.append(energy + h**2 * more)
        context.step(1)
    return [float(np.sqrt(np.mean((np.array(e) - e[0]) ** 2))) for e in (plain, modified)]


@pytest.mark.parametrize(("name", "h"), [("sphere", 0.04), ("torus", 0.02), ("ellipsoid", 0.02), ("lemniscate", 0.004)])
def test_the_next_term_leaves_errors_of_the_fourth_order(name, h):
    """Halving the step divides the change of the energy by 4, and with the next term that of the sum by 16."""
    plain, modified = np.array([off(SURFACES[name], h / n) for n in (1, 2)]).T
    assert plain[0] / plain[1] == pytest.approx(4.0, rel=0.05)
    assert modified[0] / modified[1] == pytest.approx(16.0, rel=0.1)
    assert modified[0] < 0.1 * plain[0]


def test_constraints_of_your_own_have_the_same_next_term():
    plain, modified = np.array([off(SURFACES["sphere"], h, by_constraints=True) for h in (0.04, 0.02)]).T
    assert plain[0] / plain[1] == pytest.approx(4.0, rel=0.05)
    assert modified[0] / modified[1] == pytest.approx(16.0, rel=0.1)


def test_a_free_bead_on_a_circle_turns_by_the_arc_sine():
    """All orders at once: R sin Δφ = h v, which is the flow of ∫ asin(h p/R²)/h dp."""
    radius, v, h = 2.0, 1.5, 0.4
    topology = mp.Topology()
    bead = topology.add_surface_points(mp.surfaces.Sphere(radius), [[radius, 0.0, 0.0]], mass=1.0)
    context = mp.Context(mp.System(topology), mp.SplittingIntegrator("BAB", h), threads=1)
    context.set_velocities([[0.0, v, 0.0]])
    context.step(7)
    state = context.get_state(positions=True, velocities=True)
    angle = 7.0 * np.arcsin(h * v / radius)
    np.testing.assert_allclose(state.positions[bead.beads[0]], [radius * np.cos(angle), radius * np.sin(angle), 0.0],
                               atol=1e-11)  # fmt: skip
    np.testing.assert_allclose(state.velocities[0], [-v * np.sin(angle), v * np.cos(angle), 0.0], atol=1e-11)
