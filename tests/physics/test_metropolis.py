"""Words with a block M( ): the distribution without a bias of the timestep, where plain words have one.

Units: kT = 1. False alarms: 1e-6 for each check; `sees` is an effect found with probability 0.999. A block is accepted
or rejected as a whole, so that many copies cannot run in one context: looks at few objects, one after another, are the
samples (`time_series`).
"""

import numpy as np
import pytest

import medyanpy as mp
from medyanpy.testing import check_mean, statistical_inefficiency


def run(system, word, timestep, looks, every, observe, seed=1, start=200, **options):
    """(looks, ...) of what `observe` makes of states, every so many steps; and the context."""
    integrator = mp.SplittingIntegrator(word, timestep, kT=1.0, seed=seed, **options)
    context = mp.Context(system, integrator, threads=1)
    context.set_velocities_to_temperature(kT=1.0, seed=seed + 1)
    context.step(start)
    seen = []
    for _ in range(looks):
        context.step(every)
        seen.append(observe(context.get_state(positions=True)))
    return np.array(seen), context


def error_of(samples):
    """Of the mean of a time series."""
    return samples.std() * np.sqrt(statistical_inefficiency(samples) / len(samples))


# --- harmonic wells ---------------------------------------------------------------------------------------------------


def oscillator(word, timestep, looks, kick=None):
    """x² of one bead in a well of frequency 1."""
    topology = mp.Topology()
    bead = topology.add_beads([[0.0, 0, 0]], mass=1.0, friction=0.7)
    system = mp.System(topology)
    system.add_force(mp.forces.HarmonicTrap(bead, 1.0, [0.0, 0.0, 0.0]))
    x, context = run(system, word, timestep, looks, 2, lambda state: state.positions[0], kick=kick)
    return (x**2).mean(axis=1), context.get_state()


@pytest.mark.parametrize(
    ("word", "timestep", "plain", "plainly"),
    [
        ("M(BAB) O", 1.0, "OBABO", 1.0 / (1.0 - 0.25)),
        ("M(BAB) O", 1.5, "OBABO", 1.0 / (1.0 - 1.5**2 / 4.0)),
        ("O M(ABA) O", 1.0, "OABAO", 1.0 - 0.25),
    ],
)
def test_wells_have_the_right_width_at_any_timestep(word, timestep, plain, plainly):
    """<x²> = kT/k at ωh = 1 and 1.5, where OBABO has 1/(1 - (ωh)²/4) of it, 1.33 and 2.29, and
    OABAO 1 - (ωh)²/4. Sees 10 %."""
    squares, state = oscillator(word, timestep, 20_000)
    check_mean("<x²>", squares, 1.0, sees=0.1, time_series=True)
    assert 0.3 < state.acceptance < 0.95
    squares, _ = oscillator(plain, timestep, 4_000)
    assert abs(squares.mean() - plainly) < 5.0 * error_of(squares)


@pytest.mark.unstable
def test_wells_have_the_right_width_with_implicit_kicks():
    """Of Zhang and Skeel's kicks positions are those of particles in a block: <x²> = kT/k at ωh = 2, where plain
    words have 1 + β(ωh)² = 2.2 of it in x. Sees 12 %."""
    kick = mp.kicks.ZhangSkeel(0.3)
    squares, state = oscillator("M(BAB) O", 2.0, 16_000, kick=kick)
    check_mean("<x²>", squares, 1.0, sees=0.12, time_series=True)
    assert 0.2 < state.acceptance < 0.6


# --- a smooth problem: the bias of BAGOGAB ----------------------------------------------------------------------------


def stationary_mean(word, h, friction, nodes=40, momenta=144, reach=9.0):
    """<cos x> of one coordinate with U = cos x, m = kT = 1, under a word of A, B and O: the stationary density by
    spectral quadrature, with nothing of the program. Flights and kicks are shifts, exact in Fourier space; O is a
    convolution with a Gaussian."""
    x = 2.0 * np.pi * np.arange(nodes) / nodes
    p = np.linspace(-reach, reach, momenta, endpoint=False)
    k, s = np.fft.fftfreq(nodes, 1.0 / nodes), 2.0 * np.pi * np.fft.fftfreq(momenta, p[1] - p[0])
    flight = np.exp(-1j * np.outer(k, p) * h / word.count("A"))
    kick = np.exp(-1j * np.outer(np.sin(x), s) * h / word.count("B"))
    c = np.exp(-friction * h / word.count("O"))
    mix = np.exp(-((p[:, None] - c * p) ** 2) / (2.0 * (1.0 - c * c)))
    mix /= mix.sum(axis=0)
    density, last = np.exp(-np.cos(x))[:, None] * np.exp(-(p**2) / 2.0), np.inf
    for step in range(100_000):
        for letter in word:
            if letter == "A":
                density = np.fft.ifft(np.fft.fft(density, axis=0) * flight, axis=0).real
            elif letter == "B":
                density = np.fft.ifft(np.fft.fft(density, axis=1) * kick, axis=1).real
            else:
                density = density @ mix.T
        if step % 20 == 0:
            density /= density.sum()
            mean = density.sum(axis=1) @ np.cos(x)
            if abs(mean - last) < 1e-11:
                break
            last = mean
    return mean


# -I1(1)/I0(1).
EXACT_COSINE = -0.4463899659
BIAS_OF_BAOAB = {(0.2, 0.8): 0.009310, (0.2, 0.4): 0.002223, (1.0, 0.8): 0.004210, (1.0, 0.4): 0.000942}


def test_the_bias_of_baoab_in_a_smooth_well_falls_as_the_square_of_the_timestep():
    """By quadrature, in U = kT cos x: 0.0138 h² at friction 0.2 m ω, 0.0058 h² at 1; what the program has, the next
    test says. OBABO has 15 times as much."""
    from scipy.special import iv

    assert pytest.approx(-iv(1, 1.0) / iv(0, 1.0), abs=1e-8) == EXACT_COSINE
    for friction in (0.2, 1.0):
        biases = [stationary_mean("BAOAB", h, friction) - EXACT_COSINE for h in (0.8, 0.4, 0.2)]
        for h, bias in zip((0.8, 0.4), biases, strict=False):
            assert bias == pytest.approx(BIAS_OF_BAOAB[friction, h], abs=2e-6)
        assert np.log2(biases[0] / biases[1]) == pytest.approx(2.0, abs=0.2)
        assert np.log2(biases[1] / biases[2]) == pytest.approx(2.0, abs=0.04)
    assert stationary_mean("OBABO", 0.4, 1.0) - EXACT_COSINE > 0.014


def points_on_a_sheet(n, friction):
    """In-triangle points on a fixed flat square of side 2 π in the field U = cos x: they cross edges, but there are no
    kinks. At both ends they are reflected where the field is symmetric."""
    m = 9
    x, y = np.meshgrid(np.linspace(0.0, 2.0 * np.pi, m), np.linspace(0.0, 2.0 * np.pi, m))
    corner = (m * np.arange(m - 1)[:, None] + np.arange(m - 1)).ravel()
    faces = np.concatenate([np.stack([corner, corner + 1, corner + m], 1), np.stack([corner + 1, corner + m + 1, corner + m], 1)])
    topology = mp.Topology()
    mesh = mp.TriangleMesh(np.stack([x.ravel(), y.ravel(), np.zeros(m * m)], axis=1), faces)
    membrane = topology.add_membrane(mesh, vertex_mass=1.0, fixed=True)
    points = topology.add_intriangle_points(membrane, n, mass=1.0, friction=friction, seed=4)
    system = mp.System(topology)
    system.add_force(mp.forces.ExternalField(points, "cos(x)"))
    return system, points


@pytest.mark.slow
def test_the_bias_of_bagogab_in_a_smooth_well_is_that_of_the_quadrature():
    """Points that cross edges of a flat sheet, at h = 0.8: their <cos x> is off by 0.0093, as the quadrature says of
    BAOAB. Sees 0.0025."""
    system, points = points_on_a_sheet(20_000, 0.2)
    cosines, _ = run(
        system, "BAGOGAB", 0.8, 60, 6, lambda state: np.cos(state.positions[points.beads, 0]), start=60
    )
    samples = cosines.mean(axis=0)
    check_mean("<cos x> of BAGOGAB", samples, EXACT_COSINE + BIAS_OF_BAOAB[0.2, 0.8], sees=0.01)
    assert samples.mean() - EXACT_COSINE > 4.0 * samples.std() / np.sqrt(len(samples))


# --- kinks and triangles that collapse --------------------------------------------------------------------------------

OCTAHEDRON = mp.TriangleMesh(
    np.sqrt(0.5) * np.array([[1.0, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1]]),
    [[0, 2, 4], [2, 1, 4], [1, 3, 4], [3, 0, 4], [2, 0, 5], [1, 2, 5], [3, 1, 5], [0, 3, 5]],
)


def areas(x):
    """(m,) of octahedra with vertices (m, 6, 3)."""
    corners = x[:, OCTAHEDRON.faces]
    return 0.5 * np.linalg.norm(
        np.cross(corners[:, :, 1] - corners[:, :, 0], corners[:, :, 2] - corners[:, :, 0]), axis=2
    ).sum(axis=1)


def octahedron_in_traps(stiffness, n):
    """A moving mesh of large triangles, with n ideal points, which weigh it with A^n."""
    topology = mp.Topology()
    membrane = topology.add_membrane(OCTAHEDRON, vertex_mass=1.0, vertex_friction=0.5)
    topology.add_intriangle_points(membrane, n, mass=1.0, friction=0.5, seed=1)
    system = mp.System(topology)
    system.add_force(mp.forces.HarmonicTrap(membrane, stiffness, OCTAHEDRON.vertices))
    return system, membrane


@pytest.mark.filterwarnings("ignore:.*has become a needle:medyanpy.errors.MeshQualityWarning")
@pytest.mark.parametrize(("looks", "sees"), [
    pytest.param(10_000, 0.25, marks=pytest.mark.slow),
    pytest.param(400_000, 0.045, marks=pytest.mark.long),
])  # fmt: skip
def test_points_on_a_moving_octahedron_weigh_it_with_its_area(looks, sees):
    """Four points, kinks everywhere, and triangles that lose their area: BAGOGAB runs away within some hundred steps of
    this length, and is hot before. In the block these are rejections, and <A> is E[A⁵]/E[A⁴]; without points it is 0.53
    less."""
    stiffness, n, timestep = 8.0, 4, 0.2
    rng = np.random.default_rng(5)
    weighed = areas(OCTAHEDRON.vertices + rng.normal(0.0, 1.0 / np.sqrt(stiffness), (400_000, 6, 3)))
    exact = (weighed ** (n + 1)).mean() / (weighed**n).mean()
    system, membrane = octahedron_in_traps(stiffness, n)
    with pytest.raises(mp.SimulationError, match="it has run away|degenerate|crosses edges without end"):
        run(system, "BAGOGAB", timestep, 1, 20_000, lambda state: 0)
    system, membrane = octahedron_in_traps(stiffness, n)
    x, context = run(
        system, "M(BAGAB) O", timestep, looks, 4, lambda state: state.positions[membrane.beads]
    )
    a = areas(x)
    assert exact - weighed.mean() > 0.5
    print(f"<A> = {a.mean():.4f} ± {error_of(a):.4f}, exact {exact:.4f}, acceptance {context.get_state().acceptance:.4f}")
    check_mean("<A>", a, exact, sees=sees, time_series=True)
    assert 0.6 < context.get_state().acceptance < 0.9


# --- constraints and rotations ----------------------------------------------------------------------------------------


def trimer_cosines(word, timestep, looks, every=3):
    """Of the angle between the two rigid links of a trimer."""
    topology = mp.Topology()
    topology.add_filaments([[[-1.0, 0, 0], [0, 0, 0], [0, 1.0, 0]]], 1.0, [0.4, 1.5, 0.4])
    x, context = run(mp.System(topology), word, timestep, looks, every, lambda state: state.positions)
    return ((x[:, 1] - x[:, 0]) * (x[:, 2] - x[:, 1])).sum(axis=1), context.get_state().blocks[0]


@pytest.mark.parametrize(("looks", "sees"), [
    pytest.param(30_000, 0.03, marks=pytest.mark.slow),
    pytest.param(2_000_000, 0.004, marks=pytest.mark.long),
])  # fmt: skip
def test_a_rigid_trimer_prefers_right_angles_at_any_timestep(looks, sees):
    """p(cos θ) ~ √(4 - cos²θ), <cos²θ> = 0.32102, at a timestep at which plain words do not find the constraints in
    every other step."""
    cosines, block = trimer_cosines("M(BAB) O", 0.5, looks)
    squares = cosines**2
    print(f"<cos²θ> = {squares.mean():.5f} ± {error_of(squares):.5f}, {block}")
    check_mean("<cos²θ>", squares, 0.3210212, sees=sees, time_series=True)
    assert 0.3 < block.accepted / block.tried < 0.6
    assert block.failed > 0.4 * block.tried


@pytest.mark.parametrize(("word", "sees"), [("M(BAB) O", 0.035)])
def test_dipoles_turn_as_langevin_says_at_any_timestep(word, sees):
    """A body of three moments of inertia in a field: <cos θ> = coth a - 1/a, a = 4, at a timestep at which OBABO has
    0.096 less."""
    topology = mp.Topology()
    body = topology.add_rigid_bodies([[0.0, 0, 0]], [[1.0, 0, 0, 0]], 1.0, (1.0, 1.4, 0.6), 0.7 * np.eye(6))
    system = mp.System(topology)
    for sign in (1.0, -1.0):
        sites = body.sites([[0.0, 0.0, sign]])
        system.add_force(mp.forces.UniformField(sites, [0.0, 0.0, 2.0 * sign], name=f"at {sign:g}"))

    def cosine(state):
        q = state.orientations[0]
        return 1.0 - 2.0 * (q[1] ** 2 + q[2] ** 2)

    cosines, context = run(system, word, 0.65, 20_000, 2, cosine)
    check_mean("<cos θ>", cosines, 1.0 / np.tanh(4.0) - 0.25, sees=sees, time_series=True)
    assert 0.6 < context.get_state().acceptance < 0.95
