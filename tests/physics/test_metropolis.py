"""Words with a block M( ): the distribution without a bias of the timestep, where plain words have one.

Units: kT = 1. False alarms: 1e-6 for each check; `sees` is an effect found with probability 0.999. A block is accepted
or rejected as a whole, so that many copies cannot run in one context: looks at few objects, one after another, are the
samples (`time_series`).
"""

import numpy as np
import pytest
from builders import system_with

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
    system = system_with(topology, mp.forces.HarmonicTrap(bead, 1.0, [0.0, 0.0, 0.0]))
    x, context = run(system, word, timestep, looks, 2, lambda state: state.positions[0], kick=kick)
    return (x**2).mean(axis=1), context.get_state()


@pytest.mark.parametrize(("word", "timestep", "plain", "plainly"), [
    ("M(BAB) O", 1.0, "OBABO", 1.0 / (1.0 - 0.25)),
    ("M(BAB) O", 1.5, "OBABO", 1.0 / (1.0 - 1.5**2 / 4.0)),
    ("O M(ABA) O", 1.0, "OABAO", 1.0 - 0.25),
])  # fmt: skip
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


# --- kinks and triangles that collapse --------------------------------------------------------------------------------

OCTAHEDRON = mp.TriangleMesh(
    np.sqrt(0.5) * np.array([[1.0, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1]]),
    [[0, 2, 4], [2, 1, 4], [1, 3, 4], [3, 0, 4], [2, 0, 5], [1, 2, 5], [3, 1, 5], [0, 3, 5]],
)


def areas(x):
    """(m,) of octahedra with vertices (m, 6, 3)."""
    corners = x[:, OCTAHEDRON.faces]
    return 0.5 * np.linalg.norm(np.cross(corners[:, :, 1] - corners[:, :, 0], corners[:, :, 2] - corners[:, :, 0]),
                                axis=2).sum(axis=1)  # fmt: skip


def octahedron_in_traps(stiffness, n):
    """A moving mesh of large triangles, with n ideal points, which weigh it with A^n."""
    topology = mp.Topology()
    membrane = topology.add_membrane(OCTAHEDRON, vertex_mass=1.0, vertex_friction=0.5)
    topology.add_intriangle_points(membrane, n, mass=1.0, friction=0.5, seed=1)
    system = system_with(topology, mp.forces.HarmonicTrap(membrane, stiffness, OCTAHEDRON.vertices))
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
    weighed = areas(OCTAHEDRON.vertices + rng.normal(0.0, 1.0 / np.sqrt(stiffness), (100_000, 6, 3)))
    # Of 10⁷ draws: ± 0.0013.
    exact = 6.4157
    assert (weighed ** (n + 1)).mean() / (weighed**n).mean() == pytest.approx(exact, abs=0.08)
    system, membrane = octahedron_in_traps(stiffness, n)
    with pytest.raises(mp.SimulationError, match=r"it has run away|degenerate|crosses edges without end"):
        run(system, "BAGOGAB", timestep, 1, 20_000, lambda state: 0)
    system, membrane = octahedron_in_traps(stiffness, n)
    x, context = run(system, "M(BAGAB) O", timestep, looks, 4, lambda state: state.positions[membrane.beads])
    a = areas(x)
    assert exact - weighed.mean() > 0.5
    acceptance = context.get_state().acceptance
    print(f"<A> = {a.mean():.4f} ± {error_of(a):.4f}, exact {exact:.4f}, acceptance {acceptance:.4f}")
    check_mean("<A>", a, exact, sees=sees, time_series=True)
    assert 0.6 < acceptance < 0.9


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
