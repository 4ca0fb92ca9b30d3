"""UniformField and HarmonicTrap."""

import numpy as np
import pytest
from builders import refuses, system_with

import medyanpy as mp
from medyanpy.forces import HarmonicTrap, UniformField


def scene():
    rng = np.random.default_rng(3)
    topology = mp.Topology()
    handles = {"beads": topology.add_beads(rng.normal(0.0, 5.0, (6, 3)), mass=1.0)}
    handles["membrane"] = topology.add_membrane(mp.TriangleMesh.icosphere(4.0, 0), vertex_mass=1.0)
    handles["points"] = topology.add_intriangle_points(handles["membrane"], 8, mass=1.0, seed=1)
    handles["balls"] = topology.add_balls(rng.normal(0.0, 5.0, (5, 3)), radius=1.0, mass=1.0)
    return topology, handles


def look(topology, force, threads=1, energy=True):
    context = mp.Context(system_with(topology, force), mp.VerletIntegrator(1e-3), threads=threads)
    return context.get_state(positions=True, forces=True, energy=energy)


# The order of these is neither that of the topology nor that of places.
def choices(handles):
    numbers = np.random.default_rng(8).permutation(31)[:17]
    return {
        "handle": (handles["points"], handles["points"].beads),
        "handles": ([handles["balls"], handles["membrane"], handles["beads"]],
                    np.concatenate([handles[k].beads for k in ("balls", "membrane", "beads")])),
        "numbers": (numbers, numbers),
    }  # fmt: skip


@pytest.mark.parametrize("choice", ["handle", "handles", "numbers"])
@pytest.mark.parametrize("each", [False, True])
def test_uniform_field(choice, each):
    topology, handles = scene()
    beads, numbers = choices(handles)[choice]
    force = np.random.default_rng(4).normal(size=(len(numbers), 3) if each else 3)
    state = look(topology, UniformField(beads, force))
    expected = np.zeros((topology.n_beads, 3))
    expected[numbers] = force
    np.testing.assert_array_equal(state.forces, expected)
    assert state.potential_energy == pytest.approx(-np.sum(expected * state.positions), rel=1e-13)


@pytest.mark.parametrize("choice", ["handle", "handles", "numbers"])
@pytest.mark.parametrize("each", [False, True])
@pytest.mark.parametrize("stiffness", [2.5, [1.0, 0.0, 3.0]])
def test_harmonic_trap(choice, each, stiffness):
    topology, handles = scene()
    beads, numbers = choices(handles)[choice]
    center = np.random.default_rng(5).normal(size=(len(numbers), 3) if each else 3)
    state = look(topology, HarmonicTrap(beads, stiffness, center))
    k = np.broadcast_to(stiffness, 3)
    away = state.positions[numbers] - center
    expected = np.zeros((topology.n_beads, 3))
    expected[numbers] = -k * away
    np.testing.assert_allclose(state.forces, expected, rtol=1e-14)
    assert state.potential_energy == pytest.approx(0.5 * np.sum(k * away**2), rel=1e-13)


def test_a_body_falls_as_it_should():
    topology = mp.Topology()
    bead = topology.add_beads([[0.0, 0, 0]], mass=2.0)
    system = mp.System(topology)
    field = system.add_force(UniformField(bead, [0.0, 0, -3.0]))
    context = mp.Context(system, mp.VerletIntegrator(0.01))
    context.step(100)
    np.testing.assert_allclose(context.get_state(positions=True).positions, [[0, 0, -0.75]], rtol=1e-12)
    field.set(force=[1.0, 0, 0])
    context.step(100)
    state = context.get_state(positions=True, velocities=True)
    np.testing.assert_allclose(state.velocities, [[0.5, 0, -1.5]], rtol=1e-12)
    assert not context._measure._momentum_is_conserved()


def test_a_moving_membrane_takes_over_the_force_on_its_points():
    topology, handles = scene()
    context = mp.Context(system_with(topology, UniformField(handles["points"], [0.0, 0.0, 7.0])),
                         mp.VerletIntegrator(1e-6))  # fmt: skip
    context.step(1)
    state = context.get_state(velocities=True)
    momentum = state.velocities[handles["membrane"].beads].sum(axis=0)
    np.testing.assert_allclose(momentum, [0, 0, 8 * 7.0 * 1e-6], rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize(("make", "message"), [
    (lambda h: HarmonicTrap([0, 31], 1.0, [0, 0, 0]), "bead 31 does not exist"),
    (lambda h: HarmonicTrap([4, 4], 1.0, [0, 0, 0]), "bead 4 is named twice"),
    (lambda h: HarmonicTrap([0.5], 1.0, [0, 0, 0]), "beads must hold integers"),
    (lambda h: HarmonicTrap(scene()[1]["balls"], 1.0, [0, 0, 0]), "another topology"),
])  # fmt: skip
def test_beads_that_do_not_fit_are_refused(make, message):
    topology, handles = scene()
    refuses(mp.TopologyError, message, lambda: look(topology, make(handles)))
