"""Friction along and across filaments: exact in O, and the right equilibrium with constraints."""

import numpy as np
import pytest
from builders import refuses

import medyanpy as mp
from medyanpy.testing import check_mean, check_variance, thermal


def straight(n, direction, **keywords):
    d = np.asarray(direction) / np.linalg.norm(direction)
    return 2.0 * np.arange(n)[:, None] * d, d, keywords


def context_of(nodes, kT, timestep=0.3, threads=1, word="BAOAB", **keywords):
    topology = mp.Topology()
    topology.add_beads([[0.0, 0, 9]], mass=1.0, friction=0.7)
    filament = topology.add_filament(nodes, **keywords)
    integrator = mp.SplittingIntegrator(word, timestep, kT=thermal(word, kT), seed=5)
    return mp.Context(mp.System(topology), integrator, threads=threads), filament


@pytest.mark.parametrize("direction", [(1.0, 0, 0), (1.0, 2.0, -0.5)])
def test_velocities_decay_along_and_across_as_they_should(direction):
    nodes, t, _ = straight(50, direction)
    mass = np.linspace(1.0, 2.0, 50)
    along, across = np.linspace(0.1, 3.0, 50), np.linspace(2.0, 0.5, 50)
    context, filament = context_of(nodes, 1e-300, node_mass=mass, node_friction=(along, across), constrained=False,
                                   word="BAOAB")  # fmt: skip
    # All nodes move alike, so the tangent stays as it is.
    v = np.array([0.3, -0.2, 1.0])
    context.set_velocities(np.tile(v, (51, 1)))
    context.step(1)
    now = context.get_state(velocities=True).velocities[filament.beads]
    parallel = (v @ t) * t
    expected = np.exp(-along * 0.3 / mass)[:, None] * parallel
    expected = expected + np.exp(-across * 0.3 / mass)[:, None] * (v - parallel)
    np.testing.assert_allclose(now, expected, rtol=1e-13, atol=1e-15)


def test_noise_has_the_variance_that_belongs_to_each_friction():
    """One O from rest, 20 000 nodes: 1 - exp(-2 g h / m) of kT/m along and across; an error of 10 percent is seen."""
    n, h, m = 20_000, 0.3, 1.5
    nodes, t, _ = straight(n, (1.0, 2.0, -0.5))
    context, filament = context_of(nodes, 2.0, h, node_mass=m, node_friction=(0.4, 2.5), constrained=False,
                                   word="BAOAB", threads=2)  # fmt: skip
    context.step(1)
    v = context.get_state(velocities=True).velocities[filament.beads]
    # The tangent is read after half a flight, which from rest is none.
    along = v @ t
    across = v - along[:, None] * t
    check_variance("along", (along**2).sum(), n, 2.0 / m * -np.expm1(-2.0 * 0.4 * h / m), sees=0.085)
    check_variance("across", (across**2).sum(), 2 * n, 2.0 / m * -np.expm1(-2.0 * 2.5 * h / m), sees=0.06)
    # No velocity of one component tells anything about another.
    normal = np.cross(t, [0.0, 0.0, 1.0])
    normal /= np.linalg.norm(normal)
    check_mean("correlation", along * (v @ normal), 0.0, sees=0.024)


def test_equal_frictions_are_one_friction():
    """The tensor is then a number; bits differ by the rounding of adding nothing along the tangent."""
    nodes = np.cumsum(np.random.default_rng(1).normal(size=(40, 3)), axis=0)
    both = [context_of(nodes, 1.0, 0.01, node_mass=1.0, node_friction=friction) for friction in (0.8, (0.8, 0.8))]
    for context, _ in both:
        context.step(20)
    a, b = (c.get_state(positions=True, velocities=True) for c, _ in both)
    np.testing.assert_allclose(a.positions, b.positions, rtol=0, atol=1e-9)
    np.testing.assert_allclose(a.velocities, b.velocities, rtol=0, atol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("friction", [(1.0, 2.0), (0.05, 2.5), (2.5, 0.05)])
def test_constrained_filaments_keep_their_temperature(friction):
    """600 filaments of 6 nodes, friction 1:2 and 1:50. An error of 4.7 percent of kT is seen (13 degrees x 600 x 8)."""
    rng = np.random.default_rng(2)
    steps = rng.normal(size=(600, 5, 3)) + [1.0, 0, 0]
    steps /= np.linalg.norm(steps, axis=2)[:, :, None]
    nodes = [np.concatenate([np.zeros((1, 3)), np.cumsum(s, axis=0)]) for s in steps]
    topology = mp.Topology()
    filaments = topology.add_filaments(nodes, node_mass=rng.uniform(0.5, 2.0, 3600), node_friction=friction)
    context = mp.Context(mp.System(topology), mp.SplittingIntegrator("BAOAB", 0.1, kT=1.0, seed=4), threads=2)
    context.set_velocities_to_temperature(kT=1.0, seed=7)
    kinetic = []
    for _ in range(8):
        context.step(60)
        kinetic.append(context.get_state(energy=True).kT)
    freedom = filaments.degrees_of_freedom
    assert freedom == 600 * 13
    check_variance("kT", float(np.sum(kinetic)) * freedom, 8 * freedom, 1.0, sees=0.048)


def test_the_two_ways_of_saying_it_and_what_is_refused():
    topology = mp.Topology()
    nodes = [[0.0, 0, 0], [1.0, 0, 0], [2.0, 0, 0]]
    a = topology.add_filament(nodes, 1.0, (0.5, [1.0, 2.0, 3.0]))
    b = topology.add_filament(nodes, 1.0, [1.0, 2.0, 3.0], node_friction_along=0.5)
    for handle in (a, b):
        assert handle.friction.tolist() == [1.0, 2.0, 3.0]
        assert handle.friction_along.tolist() == [0.5, 0.5, 0.5]
    refuses(mp.ParameterError, "not both", topology.add_filament, nodes, 1.0, (0.5, 1.0), node_friction_along=0.5)
    with pytest.raises(mp.ParameterError, match=r"add_filament: node_friction along the filament = -1\.0 but must"):
        topology.add_filament(nodes, 1.0, (-1.0, 1.0))
    again = mp.deserialize(mp.serialize(topology))
    assert again.handles[0].friction_along.tolist() == [0.5, 0.5, 0.5]
    assert again.handles[1].friction.tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize("threads", [1, 3])
def test_checkpoint_resumes_with_the_same_bits(threads, tmp_path):
    def make():
        topology = mp.Topology()
        topology.add_filament(np.cumsum(np.random.default_rng(1).normal(size=(3000, 3)), 0), 1.0, (0.5, 1.0))
        return mp.Simulation(mp.System(topology), mp.SplittingIntegrator("BAOAB", 0.01, kT=1.0), threads=threads)

    one, two = make(), make()
    one.step(10)
    two.step(4)
    two.save_checkpoint(tmp_path / "a")
    two = mp.Simulation.resume(tmp_path / "a", threads=2)
    two.step(6)
    a, b = (s.context.get_state(positions=True, velocities=True) for s in (one, two))
    assert (a.positions == b.positions).all()
    assert (a.velocities == b.velocities).all()
