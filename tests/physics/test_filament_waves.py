"""Waves along filaments whose links keep their lengths, and the limit of stiff springs."""

import numpy as np
import pytest
from builders import system_with
from scipy import integrate, linalg

import medyanpy as mp
from medyanpy.forces import FilamentBending, FilamentStretching, FixmanPotential
from medyanpy.testing import check_mean

# Bending waves ---------------------------------------------------------------------------------------------------

# βL of the free-free Euler-Bernoulli beam: roots of cos x cosh x = 1.
FREE_BEAM = [4.730040744862704, 7.853204624095838, 10.995607838001671]
BENDING_MODULUS, LENGTH, MASS = 7.0, 5.0, 3.0


def chain(n):
    """Masses of the nodes and the length of a link of a rod of n links; each node has half of its links."""
    mass = np.full(n + 1, MASS / n)
    mass[[0, -1]] *= 0.5
    return mass, LENGTH / n


def linear_modes(n):
    """Frequencies and shapes of small transverse motion of the straight chain, apart from its rigid motion.

    E = B/ℓ Σ (1 - cos θ) = B/2ℓ³ Σ (y_(i-1) - 2 y_i + y_(i+1))² to second order; lengths are kept to that order.
    """
    mass, length = chain(n)
    second = np.diff(np.eye(n + 1), 2, axis=0)
    square, shapes = linalg.eigh(BENDING_MODULUS / length**3 * second.T @ second, np.diag(mass))
    assert np.abs(square[:2]).max() < 1e-9 * square[-1]
    return np.sqrt(square[2:]), shapes[:, 2:]


def measured_frequency(n, mode, word="BAGAB"):
    """Of a small wave in the shape of a linear mode, in the plane and about the axis at random."""
    frequencies, shapes = linear_modes(n)
    mass, length = chain(n)
    shape = shapes[:, mode]
    y = 1e-5 * LENGTH * shape / np.abs(shape).max()
    x = np.concatenate([[0.0], np.cumsum(np.sqrt(length**2 - np.diff(y) ** 2))])
    frame = np.linalg.qr(np.random.default_rng(n + mode).normal(size=(3, 3)))[0]
    nodes = np.outer(x, frame[0]) + np.outer(y, frame[1])
    topology = mp.Topology()
    rod = topology.add_filament(nodes, node_mass=mass, link_lengths=length)
    system = system_with(topology, FilamentBending(rod, BENDING_MODULUS))
    h = 0.5 / frequencies[-1]
    context = mp.Context(system, mp.SplittingIntegrator(word, h))
    every = max(1, int(2.0 * np.pi / frequencies[mode] / h / 20))
    q = []
    for _ in range(120):
        x = context.get_state(positions=True).positions
        q.append(shape @ (mass * (x @ frame[1])))
        # The other modes stay at rest.
        others = np.delete(shapes, mode, axis=1).T @ (mass * (x @ frame[1]))
        assert np.abs(others).max() < 1e-6 * np.abs(shape @ (mass * y))
        assert np.abs(x @ frame[2]).max() < 1e-6 * np.abs(y).max()
        context.step(every)
    # A cosine sampled at equal times t obeys q(k+1) + q(k-1) = 2 cos(ω t) q(k).
    q = np.array(q)
    cosine = 0.5 * q[1:-1] @ (q[2:] + q[:-2]) / (q[1:-1] @ q[1:-1])
    seen = np.arccos(cosine) / (every * h)
    # Verlet moves a harmonic mode of frequency ω at the frequency ω' with sin(ω' h/2) = ω h/2.
    return 2.0 / h * np.sin(0.5 * seen * h)


@pytest.mark.parametrize("n", [4, 7, 30])
@pytest.mark.parametrize("mode", [0, 1, 2])
def test_waves_have_the_frequencies_of_the_linear_chain(n, mode):
    assert measured_frequency(n, mode) == pytest.approx(linear_modes(n)[0][mode], rel=1e-7)


@pytest.mark.parametrize("mode", [0, 1, 2])
def test_waves_converge_to_beam_theory(mode):
    """ω = (βL)² √(EI / ρL⁴); the error of n links falls as 1/n²."""
    beam = FREE_BEAM[mode] ** 2 * np.sqrt(BENDING_MODULUS / (MASS / LENGTH * LENGTH**4))
    error = np.array([measured_frequency(n, mode) / beam - 1.0 for n in (10, 20, 40)])
    assert np.abs(error[-1]) < 0.01 * (mode + 1)
    order = np.log2(error[:-1] / error[1:])
    assert (np.abs(order - 2.0) < [0.25, 0.1]).all()


# Stiff springs -----------------------------------------------------------------------------------------------------

STIFFNESS = 1.5
# Of a worm-like chain of independent joints.
U = 1.0 / np.tanh(STIFFNESS) - 1.0 / STIFFNESS
# Heavy ends and light nodes between them, where the constraint metric varies most.
NODE_MASS = np.array([10.0, 1.0, 1.0, 10.0])


def tetramers(k, n=2500, fixman=True):
    """⟨cos θ⟩ and ⟨R²⟩ of each of n chains of four nodes over a long run at kT = 1; links of length 1 with springs k,
    or constrained where there is none."""
    rng = np.random.default_rng(4)
    direction = np.linalg.qr(rng.normal(size=(n, 3, 3)))[0]
    nodes = np.cumsum(np.concatenate([np.zeros((n, 1, 3)), direction], axis=1), axis=1)
    topology = mp.Topology()
    mass = np.tile(NODE_MASS, n)
    chains = topology.add_filaments(list(nodes), node_mass=mass, node_friction=1.5 * mass, constrained=k is None)
    system = system_with(topology, FilamentBending(chains, STIFFNESS))
    if k is not None:
        system.add_force(FilamentStretching(chains, k))
        h, wait = 0.5 / np.sqrt(2.0 * k), 1.0
    else:
        h, wait = 0.08, 1.0
        if fixman:
            system.add_force(FixmanPotential(chains, kT=1.0))
    context = mp.Context(system, mp.SplittingIntegrator("BAOAB", h, kT=1.0, seed=5))
    context.step(round(15.0 / h))
    cosine, square = np.zeros((2, n))
    samples = 80
    for _ in range(samples):
        context.step(round(wait / h))
        x = context.get_state(positions=True).positions.reshape(n, 4, 3)
        t = np.diff(x, axis=1)
        square += np.sum(t.sum(axis=1) ** 2, axis=1) / samples
        t /= np.linalg.norm(t, axis=2, keepdims=True)
        cosine += 0.5 * (np.sum(t[:, 0] * t[:, 1], axis=1) + np.sum(t[:, 1] * t[:, 2], axis=1)) / samples
    return cosine, square


def expected_square(k):
    """⟨R²⟩ = 3⟨r²⟩ + 2⟨r⟩²(2u + u²), p(r) ∝ r² exp(-k (r - 1)²/2) of each link: bending does not depend on lengths."""
    first = second = 1.0
    if k is not None:
        moment = [
            integrate.quad(lambda r, p=p: r**p * np.exp(-0.5 * k * (r - 1.0) ** 2), 0.0, 3.0)[0] for p in (2, 3, 4)
        ]
        first, second = moment[1] / moment[0], moment[2] / moment[0]
    return 3.0 * second + 2.0 * first**2 * (2.0 * U + U * U)


def cosine_of_constraints_alone():
    """⟨cos θ⟩ under e^{-E/kT} √det C, C the metric of three lengths in terms of the two cosines."""
    c, weight = np.polynomial.legendre.leggauss(60)
    w = 1.0 / NODE_MASS
    first, second = (w[k] ** 2 / ((w[k - 1] + w[k]) * (w[k] + w[k + 1])) for k in (1, 2))
    root = np.sqrt(1.0 - first * c[:, None] ** 2 - second * c[None] ** 2)
    density = root * np.outer(weight * np.exp(STIFFNESS * c), weight * np.exp(STIFFNESS * c))
    return (density * c[:, None]).sum() / density.sum()


@pytest.mark.slow
@pytest.mark.parametrize("k", [30.0, 120.0, None])
def test_springs_converge_to_constraints_with_the_fixman_potential(k):
    """Each run has its exact means; false-alarm rate 1e-6 each. Springs of k = 30 and 120 make ⟨R²⟩ 15 and 4 % larger
    than rigid links; 2.3 % of ⟨R²⟩ would be seen, and 3.6 % of ⟨cos θ⟩: without the Fixman potential it is 8 % smaller.
    Chains are independent; the means over time of each are the samples."""
    cosine, square = tetramers(k)
    check_mean(f"cos θ, springs {k}", cosine, U, sees=0.036 * U)
    check_mean(f"R², springs {k}", square, expected_square(k), sees=0.023 * expected_square(k))


@pytest.mark.slow
def test_constraints_alone_sample_something_else():
    """Density e^{-E/kT} √det: what the Fixman potential takes away is large enough here for the test above to see."""
    cosine, _ = tetramers(None, fixman=False)
    expected = cosine_of_constraints_alone()
    check_mean("cos θ of constraints alone", cosine, expected, sees=0.036 * expected)
    assert expected < U - 8.0 * cosine.std() / np.sqrt(len(cosine))


def test_springs_come_nearer_to_constraints_as_they_get_stiffer():
    """As 1/k: what the runs above are compared with."""
    difference = [expected_square(k) / expected_square(None) - 1.0 for k in (30.0, 120.0, 480.0, 1920.0)]
    assert np.allclose(np.divide(difference[:-1], difference[1:]), 4.0, rtol=0.02)
