"""Penalties in place of constraints: what they hold, how stiffly, and what is refused. Forces: test_contract.py."""


import numpy as np
import pytest
from builders import refuses, system_with

import medyanpy as mp
from medyanpy.errors import ParameterError, TopologyError
from medyanpy.forces import LinkLengthPenalty, OrthonormalFramePenalty, RigidTrianglePenalty


def context_of(x, *forces):
    topology = mp.Topology()
    topology.add_beads(x, mass=1.0)
    return mp.Context(system_with(topology, *forces), mp.VerletIntegrator(1e-3))


def evaluate(x, *forces):
    state = context_of(x, *forces).get_state(energy=True, forces=True)
    return state.potential_energy, state.forces


def rotation(seed=3):
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(3, 3)))[0]


WATER = 0.09572 * np.array(
    [[np.sin(0.9121), np.cos(0.9121), 0.0], [0.0, 0.0, 0.0], [-np.sin(0.9121), np.cos(0.9121), 0.0]]
)


# Lengths ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0.0, 1e-300, 1e-160, 1e-12, 1e-9, 1e-8, 3e-8, 1e-4, 0.5, 3.0])
def test_a_polynomial_has_all_derivatives_everywhere(size):
    """At r = 0, where other bonds have a cusp, and however short r is."""
    omega, length, n = 1.3, 1.7, 40
    # Many of a size, with all kinds of roundings.
    rng = np.random.default_rng(1)
    d = size * rng.normal(size=(n, 3))
    pairs = np.arange(2 * n).reshape(2, n).T
    context = context_of(np.vstack([np.zeros_like(d), d]), LinkLengthPenalty(pairs, omega, length))
    a = rng.normal(size=(2 * n, 3))
    hessian, third = context.hessian().toarray().reshape(2, n, 3, 2, n, 3), context.third_derivative(a)
    k, b = 2.0 * omega**2, a[n:] - a[:n]
    for i in range(n):
        s, scale = d[i] @ d[i] - length**2, k * max(length, np.linalg.norm(d[i]))
        block = k * (s * np.eye(3) + 2.0 * np.outer(d[i], d[i]))
        expected = np.einsum("ij,kl->ikjl", [[1, -1], [-1, 1]], block)
        np.testing.assert_allclose(hessian[:, i, :, :, i], expected, rtol=0.0, atol=1e-14 * scale * scale / k)
        # Where 4 r^2 is a rounding of l^2, r is 1e-8 l, and so is what can be seen of these.
        expected = k * (4.0 * (d[i] @ b[i]) * b[i] + 2.0 * (b[i] @ b[i]) * d[i])
        allowed = (4e-8 if size < 1e-6 else 1e-11) * scale * (b[i] @ b[i])
        np.testing.assert_allclose(third[n + i], expected, rtol=0.0, atol=allowed)
        assert (third[i] == -third[n + i]).all()


def test_near_its_length_a_term_is_a_spring():
    x = np.array([[0.0, 0, 0], [0.0, 3.0, 0]])
    context = context_of(x, LinkLengthPenalty([[0, 1]], 0.7, 3.0))
    spring = context_of(x, mp.forces.HarmonicBonds([[0, 1]], 4.0 * 0.7**2 * 3.0**2, 3.0))
    np.testing.assert_allclose(context.hessian().toarray(), spring.hessian().toarray(), atol=1e-13)
    assert context.get_state(energy=True).potential_energy == 0.0


@pytest.mark.parametrize("closed", [False, True])
def test_links_of_filaments(closed):
    rng = np.random.default_rng(4)
    topology = mp.Topology()
    topology.add_beads(rng.normal(size=(2, 3)), mass=1.0)
    nodes = [rng.normal(0.0, 2.0, (n, 3)) for n in (4, 6)]
    filaments = topology.add_filaments(nodes, 1.0, constrained=False, closed=closed)
    own = LinkLengthPenalty(filaments, 0.2)
    assert own.handles == (filaments,)
    system = system_with(topology, own)
    # At their own lengths there is nothing; at others what pairs say.
    assert mp.Context(system, mp.VerletIntegrator(1e-3)).get_state(energy=True).potential_energy < 1e-28
    system = mp.System(topology)
    names = [
        system.add_force(force).name
        for force in (
            LinkLengthPenalty(filaments, 0.2, 1.5, name="links"),
            LinkLengthPenalty(filaments.links + filaments.kind.first_bead, 0.2, 1.5, name="pairs"),
        )
    ]
    energies = mp.Context(system, mp.VerletIntegrator(1e-3)).get_state(energy=True).energies
    assert energies[names[0]] == energies[names[1]] > 1.0


def test_a_pendulum_on_a_stiff_link_swings_as_on_a_rigid_one():
    """Lengths are off by O(1/ω²) when started cold; the period is that of a rigid link of length 1."""
    worst = []
    for omega in (50.0, 100.0):
        topology = mp.Topology()
        pendulum = topology.add_filament([[0.0, 0, 0], [1.0, 0, 0]], 1.0, constrained=False, fixed_nodes=[0])
        system = system_with(topology, LinkLengthPenalty(pendulum, omega),
                             mp.forces.UniformField(pendulum, [0.0, -1.0, 0.0]))  # fmt: skip
        context = mp.Context(system, mp.VerletIntegrator(1e-4))
        lengths = []
        # From the side to the other and back: 4 K(sin 45°) for gravity 1 and length 1.
        for _ in range(100):
            context.step(742)
            lengths.append(np.linalg.norm(context.get_state(positions=True).positions[1]))
        worst.append(np.abs(np.array(lengths) - 1.0).max())
        np.testing.assert_allclose(context.get_state(positions=True).positions[1], [1.0, 0.0, 0.0], atol=2e-3)
    # The pull is at most 3, the stiffness 4 ω²: twice 3/(4 ω²), where it overshoots.
    assert worst[0] < 2.0 * 0.75 / 50.0**2
    assert 3.2 < worst[0] / worst[1] < 4.8


# Triangles ----------------------------------------------------------------------------------------------------


def test_a_triangle_is_three_lengths():
    rng = np.random.default_rng(5)
    x = rng.normal(size=(7, 3))
    triples, omega = np.array([[5, 0, 3], [1, 6, 2]]), np.array([1.3, 0.6])
    lengths = np.array([[1.0, 1.1, 1.9], [2.0, 1.5, 0.6]])
    pairs = [[5, 0], [0, 3], [3, 5], [1, 6], [6, 2], [2, 1]]
    of_triples = evaluate(x, RigidTrianglePenalty(triples, omega, lengths))
    of_pairs = evaluate(x, LinkLengthPenalty(pairs, np.repeat(omega, 3), lengths.ravel()))
    assert of_triples[0] == of_pairs[0]
    assert (of_triples[1] == of_pairs[1]).all()


def test_a_molecule_has_three_stiff_modes():
    side = np.linalg.norm(WATER[0] - WATER[2])
    x = WATER @ rotation().T + [3.0, -1.0, 0.5]
    context = context_of(x, RigidTrianglePenalty([[0, 1, 2]], 2e3, [0.09572, 0.09572, side]))
    modes = np.linalg.eigvalsh(context.hessian().toarray())
    assert (np.abs(modes) > 1e-9 * modes.max()).sum() == 3
    assert modes.max() > 4.0 * 2e3**2 * 0.09572**2


# Frames -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [1.0, 2.5])
@pytest.mark.parametrize("handed", [1.0, -1.0])
def test_rotations_and_reflections_are_at_rest(length, handed):
    q = rotation() * [handed, 1.0, 1.0] * length
    context = context_of(q.T, OrthonormalFramePenalty([[0, 1, 2]], 10.0, length))
    state = context.get_state(energy=True, forces=True)
    assert state.potential_energy < 1e-26 * length**4
    assert np.abs(state.forces).max() < 1e-11 * length**3
    # Three rotations are free; three stretches and three shears have the stiffness 4 ω² l² each.
    modes = np.linalg.eigvalsh(context.hessian().toarray())
    np.testing.assert_allclose(modes, np.repeat([0.0, 400.0 * length**2], [3, 6]), atol=1e-10 * length**2)


def test_a_frame_keeps_the_angular_momentum():
    x = np.random.default_rng(6).normal(size=(6, 3))
    _, f = evaluate(x, OrthonormalFramePenalty([[0, 4, 2], [5, 1, 3]], [1.0, 3.0], [1.2, 0.7]))
    assert np.abs(np.cross(x, f).sum(axis=0)).max() < 1e-12 * np.abs(f).max()
    assert np.abs(f.sum(axis=0)).max() > 1.0


def test_the_force_of_a_matrix():
    """-2 ω² Q (QᵀQ - 1), as the paper has it."""
    q = np.random.default_rng(7).normal(size=(3, 3))
    energy, f = evaluate(q.T, OrthonormalFramePenalty([[0, 1, 2]], 3.0))
    e = q.T @ q - np.eye(3)
    assert energy == pytest.approx(0.5 * 9.0 * np.trace(e @ e), rel=1e-14)
    np.testing.assert_allclose(f.T, -2.0 * 9.0 * q @ e, rtol=1e-13, atol=1e-12)


# What they have in common -------------------------------------------------------------------------------------


def all_of_them():
    return (
        LinkLengthPenalty([[0, 1], [4, 3]], [1.0 / 3.0, 2.0], 1.0, group=2),
        RigidTrianglePenalty([[0, 1, 2], [5, 4, 3]], 0.3, [1.0, 1.1, 0.9]),
        OrthonormalFramePenalty([[2, 1, 5]], 0.1),
    )


@pytest.mark.parametrize(("make", "error", "message"), [
    (lambda: LinkLengthPenalty([[0, 1], [2, 2]], 1.0, 1.0), TopologyError, "bond 1 joins bead 2 to itself"),
    (lambda: LinkLengthPenalty([[0, 1]], 1.0), ParameterError, "LinkLengthPenalty: give length="),
    (lambda: RigidTrianglePenalty([[0, 1, 0]], 1.0, [1.0, 1.0, 1.0]), TopologyError, "triple 0 names a bead twice"),
    (lambda: RigidTrianglePenalty([[0, 1, 2]], 1.0, [1.0, 3.0, 1.0]), ParameterError, "lengths = .* may be longer"),
    (lambda: OrthonormalFramePenalty([[0, 1, 2], [3, 4, 5], [6, 7, 4]], 1.0), TopologyError,
     "bead 4 is a column of triple 1 and of triple 2"),
    (lambda: OrthonormalFramePenalty([[0, 1]], 1.0), TopologyError, "triples"),
])  # fmt: skip
def test_refusals(make, error, message):
    refuses(error, message, make)


@pytest.mark.parametrize("force", all_of_them(), ids=lambda force: force.name)
def test_beads_that_do_not_exist_are_refused(force):
    with pytest.raises(TopologyError, match=rf"{force.name}: term \d names beads .* has beads 0 to 1"):
        context_of(np.zeros((2, 3)), force)


def test_constrained_filaments_are_refused():
    filament = mp.Topology().add_filament([[0.0, 0, 0], [1.0, 0, 0]], 1.0)
    refuses(TopologyError, r"LinkLengthPenalty: the links of .* are constrained", LinkLengthPenalty, filament, 1.0)


# Stiffnesses --------------------------------------------------------------------------------------------------


PAIRS = np.array([[0, 4], [4, 7], [8, 1], [2, 5], [5, 3]])
POSITIVE = {
    "bonds": lambda: mp.forces.HarmonicBonds(PAIRS, 3.0, 1.4),
    "springs without length": lambda: mp.forces.HarmonicBonds(PAIRS, 3.0, 0.0),
    "links": lambda: mp.forces.Links(PAIRS[:, 0], PAIRS[:, 1], stiffness=2.0, length=1.5),
    "lengths": lambda: LinkLengthPenalty(PAIRS, 1.5, 1.4),
    "triangles": lambda: RigidTrianglePenalty([[5, 0, 3], [2, 8, 1]], 2.0, [1.0, 1.2, 0.9]),
    "frames": lambda: OrthonormalFramePenalty([[5, 0, 3], [2, 8, 1]], 2.0, 1.3),
    "soft spheres": lambda: mp.forces.SoftSphere(np.arange(9), np.arange(9), 3.0, 2.0),
    "Lennard-Jones": lambda: mp.forces.LennardJones(np.arange(9), np.arange(9), 1.0, 1.0, cutoff=4.0),
    "all pairs": lambda: mp.forces.LennardJones(np.arange(9), np.arange(9), 1.0, 1.0),
    "charges": lambda: mp.forces.Coulomb(np.arange(9), [1.0, -1.0, 1.0] * 3, 1.0),
}


@pytest.mark.parametrize("name", POSITIVE)
def test_stiffnesses_have_no_negative_part(name):
    """Where second derivatives have one, but for springs without length, whose stiffness they are."""
    rng = np.random.default_rng(21)
    lowest = []
    for _ in range(5):
        context = context_of(rng.normal(0.0, 0.8, (9, 3)), POSITIVE[name]())
        second, stiffness = (context.hessian(positive=positive).toarray() for positive in (False, True))
        np.testing.assert_allclose(stiffness, stiffness.T, rtol=0.0, atol=1e-12 * np.abs(stiffness).max())
        assert np.linalg.eigvalsh(stiffness).min() > -1e-12 * np.abs(stiffness).max()
        if name == "springs without length":
            np.testing.assert_allclose(stiffness, second, rtol=0.0, atol=1e-13 * np.abs(second).max())
        lowest.append(np.linalg.eigvalsh(second).min())
        assert np.abs(stiffness).max() > 0.0
    assert min(lowest) < -1e-3 or name == "springs without length"


def test_stiffnesses_at_rest_are_second_derivatives():
    q = rotation() * 1.3
    side = np.linalg.norm(WATER[0] - WATER[2])
    for x, force in (
        (q.T, OrthonormalFramePenalty([[0, 1, 2]], 2.0, 1.3)),
        (WATER, RigidTrianglePenalty([[0, 1, 2]], 2e3, [0.09572, 0.09572, side])),
        (np.eye(3)[:2], mp.forces.HarmonicBonds([[0, 1]], 3.0, np.sqrt(2.0))),
    ):
        context = context_of(x, force)
        second, stiffness = (context.hessian(positive=positive).toarray() for positive in (False, True))
        np.testing.assert_allclose(stiffness, second, rtol=0.0, atol=1e-9 * np.abs(second).max())
