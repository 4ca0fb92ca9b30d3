"""Angles between sites: what they are by hand, at the ends of their domain, and how they come and go.
Forces: test_contract.py."""

import numpy as np
import pytest
from builders import refuses, system_with

import medyanpy as mp
from medyanpy.forces import AngleLinks, DirectionLinks

N = 120
X = np.random.default_rng(8).normal(0.0, 10.0, (N, 3))


def context_of(x, force, timestep=1e-3, threads=1, **inertia):
    topology = mp.Topology()
    topology.add_beads(x, **{"mass": 1.0, **inertia})
    return mp.Context(system_with(topology, force), mp.VerletIntegrator(timestep), threads=threads)


def evaluate(x, force):
    state = context_of(x, force).get_state(forces=True, energy=True)
    return state.potential_energy, state.forces


def corner(theta, first=2.0, second=3.0):
    """Three beads with an angle at the second, in no particular direction."""
    p, q = np.linalg.qr(np.random.default_rng(4).normal(size=(3, 3)))[0][:2]
    b = np.array([0.3, -0.2, 0.1])
    return np.array([b + first * p, b, b + second * (np.cos(theta) * p + np.sin(theta) * q)])


# By hand ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rest", [0.0, 0.4, 1.5, 3.0, np.pi])
@pytest.mark.parametrize("theta", [0.1, 1.0, 1.6, 3.0])
def test_torque_about_the_corner(theta, rest):
    """The end at distance r feels k sin(θ - θ0)/r across its direction, in the plane; nothing else."""
    x = corner(theta)
    energy, f = evaluate(x, AngleLinks([0], [1], [2], 7.0, rest))
    assert energy == pytest.approx(7.0 * (1.0 - np.cos(theta - rest)), rel=1e-12, abs=1e-14)
    for end, other, r in ((0, 2, 2.0), (2, 0, 3.0)):
        along = (x[end] - x[1]) / r
        to_other = (x[other] - x[1]) / np.linalg.norm(x[other] - x[1])
        across = to_other - (to_other @ along) * along
        # Pushed towards the other end when the angle is too wide.
        expected = 7.0 * np.sin(theta - rest) / r * across / np.linalg.norm(across)
        np.testing.assert_allclose(f[end], expected, atol=1e-13)
    np.testing.assert_allclose(f[1], -f[0] - f[2], atol=1e-14)


def test_angle_of_three_is_that_of_two_directions():
    rng = np.random.default_rng(2)
    a, b, c = (rng.permutation(N)[:30] for _ in range(3))
    keep = (a != b) & (b != c)
    a, b, c = a[keep], b[keep], c[keep]
    k, angle = rng.uniform(1.0, 2.0, len(a)), rng.uniform(0.0, np.pi, len(a))
    three = evaluate(X, AngleLinks(a, b, c, k, angle))
    four = evaluate(X, DirectionLinks(b, a, b, c, k, angle))
    assert three[0] == pytest.approx(four[0], rel=1e-14)
    np.testing.assert_allclose(three[1], four[1], rtol=0.0, atol=1e-14)


def test_only_directions_matter():
    x = np.random.default_rng(3).normal(size=(4, 3))
    force = DirectionLinks([0], [1], [2], [3], 3.0, 0.7)
    energy, f = evaluate(x, force)
    moved = x + np.array([[0.0, 0, 0], [0.0, 0, 0], [9.0, -4, 2], [9.0, -4, 2]])
    again, g = evaluate(moved, force)
    assert again == pytest.approx(energy, rel=1e-13)
    np.testing.assert_allclose(g, f, atol=1e-12)
    np.testing.assert_allclose(f[0] + f[1], 0.0, atol=1e-15)
    np.testing.assert_allclose(f[2] + f[3], 0.0, atol=1e-15)


@pytest.mark.parametrize("straight", [False, True])
@pytest.mark.parametrize("off", [1e-3, 1e-6, 1e-9])
def test_digits_near_both_ends_of_the_domain(straight, off):
    """Forces and energy to full relative precision, with the rest angle at that end: nothing cancels."""
    x = corner(np.pi - off if straight else off)
    # One site at the origin, so that differences of positions are exact.
    x -= x[1]
    energy, f = evaluate(x, AngleLinks([0], [1], [2], 5.0, np.pi if straight else 0.0))
    p, q = x[0].astype(np.longdouble), x[2].astype(np.longdouble)
    lengths = [np.sqrt((d * d).sum()) for d in (p, q)]
    sine = np.sqrt((np.cross(p, q) ** 2).sum()) / (lengths[0] * lengths[1])
    assert energy == pytest.approx(float(5.0 * sine**2 / (1.0 + np.sqrt(1.0 - sine**2))), rel=1e-6, abs=0.0)
    # Unit vectors are rounded: 1e-16 of the sine's 1.
    for end, length in zip((0, 2), lengths, strict=True):
        assert np.linalg.norm(f[end]) == pytest.approx(float(5.0 * sine / length), rel=1e-15 / off + 1e-14, abs=0.0)


@pytest.mark.parametrize(("side", "rest"), [(3.0, 0.0), (-3.0, np.pi)])
def test_a_straight_angle_is_exactly_that(side, rest):
    """The number nearest to π has a sine of 1e-16, which must not be taken for a rest angle beside π."""
    x = np.array([[side, 0, 0], [0.0, 0, 0], [2.0, 2e-15, 0]])
    energy, f = evaluate(x, AngleLinks([0], [1], [2], 5.0, rest))
    assert energy == pytest.approx(2.5e-30, rel=1e-6)
    np.testing.assert_allclose(f[[0, 2], 1], [5e-15 / side, -2.5e-15], rtol=1e-12)


@pytest.mark.parametrize("rest", [0.0, 1.0, np.pi])
@pytest.mark.parametrize("theta", [0.0, np.pi])
def test_no_direction_to_bend_in(theta, rest):
    x = np.array([[4.0, 0, 0], [0.0, 0, 0], [2.0 if theta == 0.0 else -2.0, 0, 0]])
    energy, f = evaluate(x, AngleLinks([0], [1], [2], 5.0, rest))
    assert energy == pytest.approx(5.0 * (1.0 - np.cos(theta - rest)), abs=1e-14)
    assert (f == 0.0).all()


@pytest.mark.parametrize("rest", [0.0, 1.0, np.pi])
def test_sites_in_one_place_have_no_angle(rest):
    x = np.array([[1.0, 2, 3], [1.0, 2, 3], [5.0, 6, 7]])
    for force in (AngleLinks([0], [1], [2], 5.0, rest), DirectionLinks([2], [1], [0], [1], 5.0, rest)):
        energy, f = evaluate(x, force)
        assert energy == 5.0
        assert (f == 0.0).all()


@pytest.mark.filterwarnings("ignore:kT = 1e-09 pN nm:medyanpy.errors.UnitsWarning")
def test_a_crosslinker_aligns_two_filaments():
    """Two filaments crossing at right angles turn until they are parallel, with friction and nothing else."""
    topology = mp.Topology()
    t = np.linspace(-40.0, 40.0, 5)
    zero = np.zeros(5)
    nodes = [np.column_stack([t, zero, zero]), np.column_stack([0.2 * t, t * np.sqrt(0.96), zero + 5.0])]
    actin = topology.add_filaments(nodes, node_mass=1e-6, node_friction=1e-4)
    system = mp.System(topology)
    start, end = actin.sites([0, 1], 1, 0.0), actin.sites([0, 1], 2, 1.0)
    force = system.add_force(DirectionLinks(start[0], end[0], start[1], end[1], 1000.0, 0.0))
    system.add_force(mp.forces.FilamentBending(actin, 7e4))
    context = mp.Context(system, mp.SplittingIntegrator("BAOAB", 1e-5, kT=1e-9))
    before = context.get_state(energy=True).energies[force.name]
    assert before == pytest.approx(1000.0 * (1.0 - 0.2), rel=1e-3)
    context.step(20000)
    assert context.get_state(energy=True).energies[force.name] < 1e-3 * before


# Coming and going -----------------------------------------------------------------------------------------------


def test_momentum_and_energy_are_kept_while_angles_come_and_go(rng):
    mass = rng.uniform(1.0, 2.0, N)
    angles = AngleLinks([], [], [], 5.0, 1.2)
    context = context_of(X, angles, timestep=2e-3, mass=mass)
    context.set_velocities(rng.normal(size=(N, 3)))

    def momentum():
        state = context.get_state(positions=True, velocities=True)
        p = mass[:, None] * state.velocities
        return np.concatenate([p.sum(axis=0), np.cross(state.positions, p).sum(axis=0)])

    start = momentum()
    for _ in range(5):
        w = rng.uniform(-0.5, 1.0, (20, 1))
        means = mp.Sites.weighted([rng.choice(N, 2, replace=False) for _ in range(20)], np.hstack([w, 1.0 - w]))
        b = rng.permutation(N)
        ids = angles.add(means, b[:20], b[20:40], angle=rng.uniform(0.0, np.pi, 20))
        context.step(20)
        angles.remove(ids[::2])
        angles.move(ids[1::2], c=b[40:50])
    assert angles.conserves_momentum
    np.testing.assert_allclose(momentum(), start, rtol=0.0, atol=1e-9)
    ids = angles.add([3], [4], mp.Sites.anchors([[0.0, 0, 0]]), angle=1.0)
    assert not angles.conserves_momentum
    angles.move(ids, c=[5])
    assert angles.conserves_momentum


@pytest.mark.parametrize("kind", [AngleLinks, DirectionLinks])
def test_energy_is_conserved(kind, rng):
    """The energy error of Verlet falls as the square of the timestep: forces are the gradient of the energy."""
    x = 3.0 * np.stack(np.unravel_index(np.arange(8), (2, 2, 2)), axis=1) + rng.normal(0.0, 0.2, (8, 3))
    ends = np.array([[0, 1, 3, 2], [4, 6, 7, 5], [2, 6, 5, 1], [0, 4, 3, 7]])[:, : len(kind.ends)]
    error = []
    for h in (0.02, 0.01):
        context = context_of(x, kind(*ends.T, 5.0, [1.0, 2.0, 0.0, np.pi]), timestep=h)
        context.set_velocities(np.random.default_rng(1).normal(0.0, 0.3, (8, 3)))
        energies = []
        for _ in range(100):
            context.step(round(0.02 / h))
            state = context.get_state(energy=True)
            energies.append(state.potential_energy + state.kinetic_energy)
        error.append(np.ptp(energies))
    assert 3.0 < error[0] / error[1] < 5.0


def test_context_after_changes_steps_like_a_new_one(rng):
    """And what is added last comes last, whatever happened before: the same bits, on any number of threads."""
    p = np.stack([rng.choice(N, 4, replace=False) for _ in range(40)])
    force = DirectionLinks(*p[:25].T, 2.0, 1.0)
    context = context_of(X, force)
    context.step(3)
    force.add(*p[25:].T, stiffness=3.0)
    force.remove([3, 7, 30])
    force.move([0, 39], b=p[[5, 6], 1] * 0 + [90, 91], d=mp.Sites.anchors([[1.0, 2, 3], [4.0, 5, 6]]))
    force.set(angle=np.linspace(0.0, np.pi, len(force)))
    state = context.get_state(positions=True, velocities=True)
    again = DirectionLinks(**force._arguments_now())
    assert again.ids.tolist() == force.ids.tolist()
    fresh = context_of(X, again, threads=3)
    fresh.set_state(state)
    for c in (context, fresh):
        c.step(20)
    a, b = (c.get_state(positions=True, forces=True, energy=True) for c in (context, fresh))
    assert (a.positions == b.positions).all()
    assert (a.forces == b.forces).all()
    assert a.energies == b.energies


def test_a_copy_by_way_of_a_document():
    topology = mp.Topology()
    topology.add_beads(X, mass=1.0)
    system = mp.System(topology)
    angles = system.add_force(AngleLinks([0, 1, 2], [3, 4, 5], [6, 7, 8], [1.0, 2.0, 3.0], np.pi, name="corners"))
    angles.remove(1)
    again = mp.deserialize(mp.serialize(system)).forces[0]
    assert (again.name, again.ids.tolist(), again.c.single_beads.tolist()) == ("corners", [0, 2], [6, 8])
    assert again.parameters["angle"].tolist() == [np.pi, np.pi]
    assert repr(again) == "AngleLinks(2: stiffness=[1, 3], angle=3.14159)"
    assert again.add([9], [10], [11], 1.0).tolist() == [3]


# What is refused, and then leaves all as it was -------------------------------------------------------------------


@pytest.mark.parametrize(("act", "error", "text"), [
    (lambda f: f.remove(1), mp.ParameterError, r"ids\[0\] = 1, but angle 1 was removed \(2 angles: 0 to 2\)"),
    (lambda f: f.remove(3), mp.ParameterError, r"ids\[0\] = 3, but there is no such angle"),
    (lambda f: f.move(0), mp.ParameterError, "move needs new ends: a=, b=, c= or several of them"),
    (lambda f: f.move(2, c=[8, 9]), mp.TopologyError, "1 angles need as many ends, not a: 1, b: 1, c: 2"),
    (lambda f: f.move(2, c=[5]), mp.TopologyError, "angle 2 joins bead 5 to itself"),
    (lambda f: f.add([0], [0], [1]), mp.TopologyError, "angle 0 joins bead 0 to itself"),
    (lambda f: f.add([0], [1, 2], [1]), mp.TopologyError, "a and b and c must have the same length, not 1 and 2"),
    (lambda f: f.add([0], [1], [N]), mp.TopologyError, r"c\[0\] names bead 120, but the topology has beads 0 to"),
    (lambda f: f.add([0], [1], [2], -1.0), mp.ParameterError, "stiffness = -1.0 but must be finite and >= 0"),
    (lambda f: f.add([0], [1], [2], 1.0, 3.2), mp.ParameterError, "angle = 3.2 but must be .* <= π"),
])  # fmt: skip
def test_refusals_change_nothing(act, error, text):
    angles = AngleLinks([0, 1, 2], [3, 4, 5], [6, 7, 8], 1.0, 1.0)
    context = context_of(X, angles)
    angles.remove(1)
    before = angles.version, context.get_state(energy=True).potential_energy
    refuses(error, text, act, angles)
    assert (angles.version, context.get_state(energy=True).potential_energy) == before
    assert angles.ids.tolist() == [0, 2]


def test_ends_of_one_direction_differ():
    with pytest.raises(mp.TopologyError, match="angle 1 joins bead 3 to itself"):
        DirectionLinks([0, 1], [4, 5], [2, 3], [0, 3], 1.0, 1.0)
    # Directions may share sites.
    assert len(DirectionLinks([0], [1], [0], [1], 1.0, 1.0)) == 1


# Higher derivatives; against differences: test_contract.py ---------------------------------------------------------


def precise(x, a, k, rest, directions):
    """H (3n, 3n) and D3U[a, a] (n, 3) of one angle, from differences of its energy in 60 digits."""
    mpmath = pytest.importorskip("mpmath")
    with mpmath.workdps(60):
        start = [mpmath.mpf(float(v)) for v in x.ravel()]
        along = [mpmath.mpf(float(v)) for v in a.ravel()]
        rest = mpmath.pi if rest == np.pi else mpmath.mpf(rest)

        def energy(y):
            d, e = ([y[3 * j + c] - y[3 * i + c] for c in range(3)] for i, j in directions)
            c = mpmath.fdot(d, e)
            s = mpmath.sqrt(mpmath.fdot(d, d) * mpmath.fdot(e, e) - c * c)
            return -k * mpmath.cos(mpmath.atan2(s, c) - rest)

        n, h = len(start), mpmath.mpf(10) ** -9

        def slope(y, i):
            out = 0
            # Of order 6: the error is 1e-54 and the loss of digits 9.
            for j, w in ((1, 45), (2, -9), (3, 1)):
                for sign in (1, -1):
                    out += sign * w * energy([v + sign * j * h * (m == i) for m, v in enumerate(y)])
            return out / (60 * h)

        def gradient(y):
            return [slope(y, i) for i in range(n)]

        h2 = mpmath.mpf(10) ** -8

        def moved(t, direction):
            return gradient([v + t * d for v, d in zip(start, direction, strict=True)])

        units = [[int(i == j) for j in range(n)] for i in range(n)]
        columns = [
            [(p - q) / (2 * h2) for p, q in zip(moved(h2, unit), moved(-h2, unit), strict=True)] for unit in units
        ]
        here = gradient(start)
        third = [(p - 2 * o + q) / h2**2 for p, o, q in zip(moved(h2, along), here, moved(-h2, along), strict=True)]
        return np.array(columns, float), np.array(third, float).reshape(-1, 3)


@pytest.mark.parametrize(("theta", "rest"), [(1e-3, 0.0), (1.0, 2.0), (3.1, np.pi), (2.6, 0.7), (1e-2, 0.5)])
@pytest.mark.parametrize("kind", [AngleLinks, DirectionLinks])
def test_higher_derivatives_have_their_digits(kind, theta, rest):
    x = corner(theta)
    a = np.random.default_rng(5).normal(size=x.shape)
    if kind is AngleLinks:
        force, directions = AngleLinks([0], [1], [2], 7.0, rest), ((1, 0), (1, 2))
    else:
        # Of beads in both directions, and at both ends of one.
        force, directions = DirectionLinks([1], [0], [0], [2], 7.0, rest), ((1, 0), (0, 2))
    context = context_of(x, force)
    hessian, third = precise(x, a, 7.0, rest, directions)
    # Of an angle that has a rest angle, near its end, 1/sin θ of the digits are left.
    allowed = 1e-13 if rest in (0.0, np.pi) else 1e-12 / min(np.sin(theta), 1.0)
    np.testing.assert_allclose(context.hessian().toarray(), hessian, rtol=0.0, atol=allowed * np.abs(hessian).max())
    np.testing.assert_allclose(context.third_derivative(a), third, rtol=0.0, atol=allowed * np.abs(third).max())


@pytest.mark.parametrize(("side", "rest"), [(1.0, np.pi), (-1.0, 0.0), (1.0, 1.2)])
def test_second_derivatives_at_the_ends_of_the_domain(side, rest):
    """Three beads on a line: stiff across it. With a rest angle the part that has no direction is left out."""
    # Lengths of 2 and 4 in one direction: the two unit vectors have the same bits.
    line = np.array([0.3, -0.7, 0.2]) / np.sqrt(0.62)
    x = np.array([2.0, 0.0, -side * 4.0])[:, None] * line
    context = context_of(x, AngleLinks([0], [1], [2], 7.0, rest))
    # 1 - |cos θ| is half the square of how far the two unit vectors come apart across the line.
    k = 7.0 * (-side) * np.cos(rest)
    change = np.array([1.0 / 2.0, -1.0 / 2.0 - side / 4.0, side / 4.0])
    expected = np.kron(k * np.outer(change, change), np.eye(3) - np.outer(line, line))
    np.testing.assert_allclose(context.hessian().toarray(), expected, atol=1e-14)
    assert np.isfinite(context.third_derivative(np.ones((3, 3)))).all()


def test_where_two_sites_meet_there_are_no_derivatives():
    x = np.array([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0], [0.0, 1.0, 0.0]])
    context = context_of(x, AngleLinks([0], [1], [2], 7.0, 1.0))
    assert (context.hessian().toarray() == 0.0).all()
    assert (context.third_derivative(np.ones((3, 3))) == 0.0).all()


def test_angles_on_bodies_offer_no_higher_derivatives():
    """How a body turns is not among the positions that they are taken in."""
    topology = mp.Topology()
    bodies = topology.add_rigid_bodies(X[:1], [[1.0, 0, 0, 0]], 1.0, [1.0, 1.0, 1.0])
    topology.add_beads(X[1:3], mass=1.0)
    system = system_with(topology, AngleLinks(bodies.sites([[[1.0, 0.0, 0.0]]]), [1], [2], 1.0, 1.0, name="corner"))
    context = mp.Context(system, mp.VerletIntegrator(1e-3))
    for ask in (context.hessian, lambda: context.third_derivative(np.zeros((3, 3)))):
        refuses(mp.ParameterError, "corner offers no", ask)
