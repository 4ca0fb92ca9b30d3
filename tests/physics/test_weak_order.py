"""Averages of words with O: how large the error of the timestep is, and that it is of second order.

The law that a word leaves in a well of one dimension is computed here without noise and without the package: each
letter moves a density over position and velocity exactly, A and B as shears (by Fourier's shift theorem), O by its
kernel. False alarms: 1e-6 for each check (see medyanpy.testing). Seeds are fixed.
"""

import functools

import numpy as np
import pytest
from builders import system_with

import medyanpy as mp
from medyanpy import forces
from medyanpy._tools import quaternions
from medyanpy.testing import check_mean, statistical_inefficiency

# The well: curved by 6 at most, so that words are stable below a timestep of 0.8. kT = m = 1.
WELL = "x^2 + cos(2*x + 1) + y^2 + cos(2*y + 1) + z^2 + cos(2*z + 1)"
FRICTION = 0.5
# Beyond 6 the density is below 1e-15.
X = np.linspace(-6.0, 6.0, 96, endpoint=False)


def boltzmann(x):
    density = np.exp(-(x**2) - np.cos(2.0 * x + 1.0))
    return density / density.sum()


def seen(x):
    """What is averaged."""
    return np.cos(2.0 * x)


EXACT = boltzmann(X) @ seen(X)


@functools.cache
def law(word, h):
    """<cos 2x> and <v²> at the ends of steps of a word, to about 1e-7."""
    v = np.linspace(-7.0, 7.0, 96, endpoint=False)
    kx, kv = (2.0 * np.pi * np.fft.rfftfreq(a.size, a[1] - a[0]) for a in (X, v))
    share = {letter: h / word.count(letter) for letter in word}
    shift = {
        "A": np.exp(-1j * np.outer(kx, share["A"] * v)),
        "B": np.exp(1j * np.outer(share["B"] * (2.0 * X - 2.0 * np.sin(2.0 * X + 1.0)), kv)),
    }
    c = np.exp(-FRICTION * share["O"])
    kernel = np.exp(-0.5 * (v - c * v[:, None]) ** 2 / (1.0 - c * c))
    kernel /= kernel.sum(axis=1)[:, None]
    density = boltzmann(X)[:, None] * np.exp(-0.5 * v**2)
    density /= density.sum()
    for _ in range(round(30.0 / h)):
        for letter in word:
            if letter == "O":
                density = density @ kernel
            else:
                axis = "AB".index(letter)
                density = np.fft.irfft(np.fft.rfft(density, axis=axis) * shift[letter], X.size, axis=axis)
    assert density.sum() == pytest.approx(1.0, abs=1e-9)
    return density.sum(axis=1) @ seen(X), density.sum(axis=0) @ v**2


def test_theory_of_the_bias():
    """Words are of second order, each with a bias of its own: at kT = m = 1 and friction 0.5, BAOAB's is 0.061 h² and
    OBABO's -0.061 h², of a standard deviation of 0.65; ABOBA's of this observable is a twentieth of it."""
    for word, size in {"BAOAB": 0.061, "OBABO": -0.061}.items():
        bias = np.array([law(word, h)[0] - EXACT for h in (0.2, 0.4)])
        assert bias[0] == pytest.approx(0.04 * size, rel=0.03)
        assert bias[1] / bias[0] == pytest.approx(4.0, rel=0.12)
    assert abs(law("ABOBA", 0.4)[0] - EXACT) < 0.1 * abs(law("BAOAB", 0.4)[0] - EXACT)


def from_boltzmann(rng, n):
    x = np.linspace(-6.0, 6.0, 20_001)
    return np.interp(rng.uniform(size=n), np.cumsum(boltzmann(x)), x)


def in_the_well(word, h, n, points, seed):
    """A context of n beads, or in-triangle points, in the well, and their handle."""
    rng = np.random.default_rng(seed)
    topology = mp.Topology()
    if points:
        # In a flat square of four triangles around an inner vertex: straight on across edges, and far from the border.
        corner = np.array([[8.0, 8, 0], [-8, 8, 0], [-8, -8, 0], [8, -8, 0], [0.4, -0.3, 0]])
        faces = np.array([[4, k, (k + 1) % 4] for k in range(4)])
        membrane = topology.add_membrane(mp.TriangleMesh(corner, faces), vertex_mass=1.0, fixed=True)
        flat = np.column_stack([from_boltzmann(rng, 2 * n).reshape(n, 2), np.ones(n)])
        corners = np.stack([np.where([True, True, False], corner[f], 1.0).T for f in faces])
        weights = np.einsum("fij,nj->nfi", np.linalg.inv(corners), flat)
        inside = weights.min(axis=2).argmax(axis=1)
        handle = topology.add_intriangle_points(membrane, triangles=inside, barycentric=weights[np.arange(n), inside],
                                                mass=1.0, friction=FRICTION)  # fmt: skip
    else:
        handle = topology.add_beads(from_boltzmann(rng, 3 * n).reshape(n, 3), mass=1.0, friction=FRICTION)
    system = system_with(topology, forces.ExternalField(handle, WELL))
    context = mp.Context(system, mp.SplittingIntegrator(word, h, kT=1.0, seed=seed), threads=1)
    context.set_velocities_to_temperature(kT=1.0, seed=seed + 1)
    context.step(round(12.0 / h))
    return context, handle


def means(word, h, n, looks, points=False, seed=1):
    """(samples,), (samples,) of cos 2x and v², each the mean over the looks at one coordinate of one bead."""
    context, handle = in_the_well(word, h, n, points, seed)
    sums = 0.0
    for _ in range(looks):
        context.step(round(4.0 / h))
        state = context.get_state(positions=True, velocities=True)
        sums = sums + np.stack([seen(state.positions[handle.beads]), state.velocities[handle.beads] ** 2])
    return (sums[:, :, : 2 if points else 3] / looks).reshape(2, -1)


@pytest.mark.parametrize(
    ("word", "like", "points", "n"),
    [("BAOAB", "BAOAB", False, 20_000), ("ABOBA", "ABOBA", False, 20_000), ("BAGOGAB", "BAOAB", True, 20_000)],
)
def test_the_bias_of_averages(word, like, points, n):
    """<cos 2x> and <v²> are those of the word's own law at a timestep of 0.4, of beads and of in-triangle points, which
    G moves as A does beads. The sample would tell the law from Boltzmann's, and from that of another word, by more
    than 8 standard errors."""
    x, v = means(word, 0.4, n, looks=6, points=points)
    expected = law(like, 0.4)
    others = {"BAOAB", "ABOBA", "OBABO"} - {like}
    check_mean("<cos 2x>", x, expected[0], sees=min(abs(expected[0] - law(other, 0.4)[0]) for other in others))
    check_mean("<v²>", v, expected[1], sees=0.025)


@pytest.mark.long
def test_the_bias_falls_as_the_square_of_the_timestep():
    """Measured at timesteps of 0.2 and 0.4 and compared with Boltzmann's law by quadrature."""
    bias = []
    for h in (0.2, 0.4):
        x, _ = means("BAOAB", h, 60_000, looks=40)
        check_mean(f"<cos 2x> at {h}", x, law("BAOAB", h)[0], sees=law("BAOAB", h)[0] - EXACT)
        bias.append(x.mean() - EXACT)
    assert bias[1] / bias[0] == pytest.approx(4.0, abs=1.0)


@pytest.mark.parametrize(
    ("looks", "sees"),
    [pytest.param(6_000, 0.1, marks=pytest.mark.slow), pytest.param(150_000, 0.02, marks=pytest.mark.long)],
)
@pytest.mark.parametrize(("word", "points"), [("M(BAB) O", False), ("M(BAGAB) O", True)])
def test_blocks_have_no_bias(word, points, looks, sees):
    """<cos 2x> under a block is Boltzmann's at a timestep of 0.6, where BAOAB is off by 0.026, in a run of a few beads,
    which is accepted or rejected as a whole. The long run sees 0.02."""
    assert law("BAOAB", 0.6)[0] - EXACT > 0.024
    context, handle = in_the_well(word, 0.6, 4, points, seed=1)
    x = []
    for _ in range(looks):
        context.step(3)
        x.append(seen(context.get_state(positions=True).positions[handle.beads, : 2 if points else 3]).mean())
    x = np.array(x)
    error = x.std() * np.sqrt(statistical_inefficiency(x) / looks)
    acceptance = context.get_state().acceptance
    print(f"{word}: <cos 2x> = {x.mean():.5f} ± {error:.5f}, exact {EXACT:.5f}, acceptance {acceptance:.3f}")
    check_mean("<cos 2x>", x, EXACT, sees=sees, time_series=True)
    assert 0.25 < acceptance < 0.9


# Rigid bodies ----------------------------------------------------------------------------------------------------


def expectations(word, h, n, seed, symmetric, kT=0.2):
    """Means (k,) of what n bodies do that start alike, at a fixed time, and their standard errors.

    Asymmetric bodies with coupled friction that turn fast in a field and a trap.
    """
    rng = np.random.default_rng(1)
    root = rng.normal(size=(6, 6))
    topology = mp.Topology()
    start = np.array([0.8, 0.3, -0.4, 0.3])
    bodies = topology.add_rigid_bodies(np.zeros((n, 3)), np.tile(start / np.linalg.norm(start), (n, 1)), 1.5,
                                       [1.0, 1.4, 1.9], 0.1 * root @ root.T + 0.2 * np.eye(6))  # fmt: skip
    system = mp.System(topology)
    up = np.tile([[0.0, 0.0, 6.0], [0.0, 0.0, -6.0]], (n, 1))
    system.add_force(forces.UniformField(bodies.sites([[0.7, 0.3, 0.2], [-0.7, -0.1, 0.4]]), up))
    system.add_force(forces.HarmonicTrap(bodies, 4.0, [0.0, 0.0, 0.0]))
    integrator = mp.SplittingIntegrator(word, h, kT=kT, seed=seed, symmetric=symmetric)
    context = mp.Context(system, integrator, threads=1)
    context.set_velocities(np.tile([1.0, -0.5, 0.3], (n, 1)))
    context.set_angular_momenta(np.tile([1.5, 1.0, -2.0], (n, 1)))
    context.step(round(1.6 / h))
    state = context.get_state(positions=True, velocities=True)
    axes = quaternions.matrices(state.orientations).reshape(n, 9)
    all_of_it = [axes, state.angular_momenta, state.angular_momenta**2, state.positions, state.velocities]
    all_of_it = np.column_stack(all_of_it)
    return all_of_it.mean(axis=0), all_of_it.std(axis=0) / np.sqrt(n)


@pytest.mark.parametrize(("word", "order"), [("BAOAB", 2), ("ABOBA", 2), ("OBABO", 2), ("BAO", 1)])
def test_order_of_rigid_bodies_with_friction_alone(word, order):
    """The same without noise, where differences are exact: sharp, also on an error of the first power in one flow."""
    a, b, c = (expectations(word, h, 1, 0, order == 2, kT=1e-30)[0] for h in (0.05, 0.025, 0.0125))
    # Components that hardly change, or change sign, show no power.
    clear = np.abs(b - c) > 0.1 * np.abs(b - c).max()
    assert clear.sum() > 6
    np.testing.assert_allclose(np.log2((a - b) / (b - c))[clear], order, rtol=0.0, atol=0.03 if order == 2 else 0.15)


@pytest.mark.slow
@pytest.mark.parametrize(("word", "order", "n"), [("BAOAB", 2, 60_000), ("BAO", 1, 15_000)])
def test_weak_order_of_rigid_bodies_with_noise(word, order, n):
    """Expectations at a fixed time, of steps of 0.4, 0.2 and 0.1: differences of successive ones fall as h^order.

    All observables vote, each with the weight of its precision. The estimate of the order has a standard error below
    0.05, and is 0.1 to 0.2 too high by what the next powers contribute: a leading order that is off by half would be
    seen (small admixtures of another are found without noise, above). A word that is not a palindrome is of order 1,
    and seen to be.
    """
    runs = [expectations(word, h, n, seed, order == 2) for seed, h in enumerate((0.4, 0.2, 0.1))]
    (a, _), (b, of_b), (c, of_c) = runs
    weight = 1.0 / (of_b**2 + of_c**2)
    fine = (weight * (b - c) ** 2).sum()
    ratio = (weight * (a - b) * (b - c)).sum() / fine
    # The noise of the finest difference, of which `fine` holds one for every observable.
    error = np.sqrt((1.0 + ratio**2) / (fine - len(a))) / ratio / np.log(2.0)
    assert error < 0.05
    assert np.log2(ratio) == pytest.approx(order, abs=0.48)
