"""Multipliers of twistable filaments: of the lengths of links, of right angles and of the lengths of directors."""

import numpy as np
import pytest
from builders import system_with

import medyanpy as mp

NODES = np.array([[0.0, 0.0, 0.0], [1.0, 0.2, 0.0], [1.7, -0.3, 0.6], [2.0, 0.4, 1.3], [2.9, 0.5, 1.0]])


def twisted(closed=False, fixed=(), seed=4, joined=False):
    """A filament that bends, twists and moves; its nodes and directors have unequal masses."""
    rng = np.random.default_rng(seed)
    topology = mp.Topology()
    n = len(NODES) if closed else len(NODES) - 1
    one = topology.add_filament(
        NODES, node_mass=rng.uniform(0.5, 2.0, len(NODES)), directors="parallel",
        director_mass=rng.uniform(0.2, 0.6, n), closed=closed, fixed_nodes=list(fixed),
    )  # fmt: skip
    if joined:
        topology.constrain("(x1-x2)^2 + (y1-y2)^2 + (z1-z2)^2 - L^2", [[one.beads[0], one.beads[2]]],
                           L=float(np.linalg.norm(NODES[2] - NODES[0])))  # fmt: skip
    system = system_with(
        topology, mp.forces.FilamentBending(one, 3.0), mp.forces.FilamentTwisting(one, 2.0),
        mp.forces.UniformField(one, [0.3, 0.0, -1.0]), mp.forces.HarmonicTrap([1], 1.0, [0.0, 0.0, 0.0]),
    )  # fmt: skip
    context = mp.Context(system, mp.SplittingIntegrator("BAB", 1e-4), threads=1)
    context.set_velocities(rng.normal(0.0, 0.7, (topology.n_beads, 3)))
    return one, context


def whole(context):
    return context.get_state(positions=True, velocities=True, forces=True, multipliers=True)


def with_accelerations(context, steps, look=whole):
    """What is seen after some steps, and the accelerations (n, 3) there: central differences of velocities."""
    context.step(steps)
    before = context.get_state(velocities=True).velocities
    context.step(1)
    found = look(context)
    context.step(1)
    return found, (context.get_state(velocities=True).velocities - before) / (2.0 * context.integrator.timestep)


def held(one, state):
    """Forces and constraint forces (n, 3) of all beads, by gradients that are written out here."""
    x, d = state.positions, state.positions[one.directors.beads]
    a, b = one.beads[one.links].T
    e, found = x[b] - x[a], state.multipliers[one.name]
    assert found.shape == (len(one.links), 3)
    out = np.zeros_like(x)
    # g = |e|² - ℓ², e·d and (|d|² - 1)/2.
    along = 2.0 * found[:, :1] * e + found[:, 1:2] * d
    np.add.at(out, b, -along)
    np.add.at(out, a, along)
    out[one.directors.beads] -= found[:, 1:2] * e + found[:, 2:] * d
    return out


@pytest.mark.parametrize(("closed", "fixed"), [(False, ()), (True, ()), (False, (0,)), (False, (0, 4))])
def test_forces_of_constraints_are_what_accelerations_show(closed, fixed):
    """M x'' = F - J^T λ of nodes and directors, accelerations by central differences of velocities over a step."""
    one, context = twisted(closed, fixed)
    state, acceleration = with_accelerations(context, 500)
    mass = np.concatenate([one.mass, one.directors.mass])
    moves = np.ones(len(mass), bool)
    moves[one.beads[list(fixed)]] = False
    own = state.forces + held(one, state)
    np.testing.assert_allclose((own / mass[:, None])[moves], acceleration[moves], atol=2e-5)
    assert np.abs(state.multipliers[one.name]).min(axis=0).max() > 1e-3


def test_second_derivatives_of_all_constraints_are_nothing():
    """Along x + v t + a t²/2, with the a that multipliers give; g by its definition, to rounding of differences."""
    one, context = twisted()
    context.step(100)
    state = whole(context)
    mass = np.concatenate([one.mass, one.directors.mass])
    x, v, a = state.positions, state.velocities, (state.forces + held(one, state)) / mass[:, None]
    first, second = one.beads[one.links].T

    def g(t):
        p = x + t * v + 0.5 * t * t * a
        e, d = p[second] - p[first], p[one.directors.beads]
        return np.concatenate([np.sum(e * e, axis=1), np.sum(e * d, axis=1), 0.5 * np.sum(d * d, axis=1)])

    h = 1e-4
    assert np.abs((g(h) - 2.0 * g(0.0) + g(-h)) / h**2).max() < 1e-6


def test_multipliers_of_what_is_solved_together_with_others():
    """A filament that a constraint of one's own joins: its links have the multipliers of the joint solve."""
    one, context = twisted(joined=True)
    state, acceleration = with_accelerations(context, 200)
    force, x = state.forces + held(one, state), state.positions
    pull = 2.0 * state.multipliers["constraints"][0, 0] * (x[0] - x[2])
    force[0] -= pull
    force[2] += pull
    np.testing.assert_allclose(force / np.concatenate([one.mass, one.directors.mass])[:, None], acceleration, atol=2e-5)
    assert np.linalg.norm(pull) > 0.1


def test_without_twist_multipliers_of_links_are_those_of_a_plain_filament():
    """Nothing turns directors: right angles pull at nothing, and the first column is what filaments without have."""
    found = []
    for directors in (None, "parallel"):
        topology = mp.Topology()
        chain = topology.add_filament(NODES, node_mass=1.0, directors=directors,
                                      director_mass=None if directors is None else 1e-9)  # fmt: skip
        system = system_with(topology, mp.forces.UniformField(chain, np.outer(range(5), [0.3, 0.0, -1.0])))
        state = mp.Context(system, mp.VerletIntegrator(1e-3)).get_state(multipliers=True)
        found.append(state.multipliers[chain.name])
    np.testing.assert_allclose(found[1][:, 0], found[0], rtol=1e-6)
    assert np.abs(found[1][:, 1:]).max() < 1e-6 * np.abs(found[0]).max()


def test_stress_knows_what_holds_twistable_filaments():
    """The virial of constraints is that of the forces on nodes that accelerations show: Σ x ⊗ (m a - F)."""
    one, context = twisted()
    (state, stress), acceleration = with_accelerations(
        context, 500, lambda context: (whole(context), mp.analysis.virial_stress(context, 2.0))
    )  # fmt: skip
    rest = one.mass[:, None] * acceleration[one.beads] - state.forces[one.beads]
    expected = -state.positions[one.beads].T @ rest / 2.0
    np.testing.assert_allclose(stress.constraints[one.name], expected, atol=1e-4)
    assert np.abs(expected).max() > 0.1


def test_multipliers_that_are_not_determined():
    """A filament that is taut between fixed nodes."""
    topology = mp.Topology()
    taut = np.outer(np.arange(5), [0.3, 0.1, -0.7])
    one = topology.add_filament(NODES, node_mass=1.0, directors="parallel", director_mass=1.0, fixed_nodes=[0, 4])
    x = np.concatenate([taut, np.tile([1.0, 0.0, 0.0], (4, 1))])
    with pytest.raises(mp.SimulationError, match="multipliers of its constraints are not determined") as caught:
        one.kind.multipliers_among(x, 0.0 * x, 0.0 * x + 1.0)
    assert caught.value.object == one.name
