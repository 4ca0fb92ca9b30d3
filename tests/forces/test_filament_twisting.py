"""Twist of filaments, and the Fixman potential of twistable ones: closed forms, places where twist is hard to tell,
shapes that constraints do not allow, and refusals. Components one by one: test_contract.py; what holds of all forces of
filaments: test_filament_batches.py."""


import numpy as np
import pytest
from builders import system_with
from medyanpy._kernels.core.derivatives import Contraction

import medyanpy as mp
from medyanpy.errors import TopologyError
from medyanpy.forces import FilamentTwisting, FixmanPotential


def twistable(counts, closed=False, seed=3, **options):
    """(topology, handle): random filaments with different masses and random directors."""
    rng = np.random.default_rng(seed)
    topology = mp.Topology()
    nodes = [np.cumsum(rng.normal(0.0, 2.0, (n, 3)), axis=0) for n in counts]
    links = [np.diff(np.vstack([x, x[:1]]) if closed else x, axis=0) for x in nodes]
    directors = [np.cross(d, rng.normal(size=d.shape)) for d in links]
    return topology, topology.add_filaments(
        nodes, rng.uniform(0.5, 3.0, sum(counts)), closed=closed, directors=directors,
        director_mass=rng.uniform(0.5, 3.0, sum(map(len, links))), **options,
    )  # fmt: skip


def one(nodes, directors="parallel", **options):
    topology = mp.Topology()
    return topology, topology.add_filament(nodes, 1.0, directors=directors, director_mass=1.0, **options)


def context_of(topology, *forces, threads=1, timestep=1e-3):
    return mp.Context(system_with(topology, *forces), mp.SplittingIntegrator("BAB", timestep), threads=threads)


def energy_and_forces(topology, *forces, threads=1):
    # Nothing moves: the timestep is one that any of these forces bears.
    state = context_of(topology, *forces, threads=threads, timestep=1e-6).get_state(energy=True, forces=True)
    return state.potential_energy, state.forces


def straight(n, turns):
    """Nodes and directors of a straight filament along z, each link turned by the next of `turns`."""
    angle = np.cumsum([0.3, *turns])
    directors = np.column_stack([np.cos(angle), np.sin(angle), np.zeros(n - 1)])
    return np.arange(n)[:, None] * [0.0, 0.0, 2.0], directors


def polygon(n, radius=1.0):
    angle = 2.0 * np.pi * np.arange(n) / n
    return radius * np.column_stack([np.cos(angle), np.sin(angle), np.zeros(n)])


def anywhere(topology, *forces):
    """f(x): energy and forces at any positions of nodes and directors, on the constraints or not, in topology order."""
    context = context_of(topology, *forces)

    def at(x):
        context._store.x[:] = x[context.layout.order]
        context._store.positions_changed()
        state = context.get_state(energy=True, forces=True)
        return state.potential_energy, state.forces

    return at, context.get_state(positions=True).positions


def slopes(at, x, h=1e-5):
    """Minus central differences of energies."""
    out = np.zeros_like(x)
    for i, c in np.ndindex(x.shape):
        step = np.zeros_like(x)
        step[i, c] = h
        out[i, c] = (at(x - step)[0] - at(x + step)[0]) / (2.0 * h)
    return out


# Twist --------------------------------------------------------------------------------------------------------


def test_straight_filaments_have_the_twist_they_were_given():
    turns = np.array([0.4, -1.1, 3.0, 0.0])
    topology, filament = one(*straight(6, turns))
    energy, forces = energy_and_forces(topology, FilamentTwisting(filament, 6.0))
    assert energy == pytest.approx(6.0 / 2.0 / 2.0 * (turns**2).sum(), rel=1e-14)
    # A straight filament is not pushed; the torque of each joint acts on the two directors, across them.
    assert np.abs(forces[:6]).max() < 1e-14
    p = filament.directors.positions
    torque = 3.0 * np.diff([0.0, *turns, 0.0])
    assert forces[6:] == pytest.approx(torque[:, None] * np.cross([0.0, 0.0, 1.0], p), abs=1e-13)


@pytest.mark.parametrize("angle", [1e-3, 1e-6, 1e-9])
def test_slight_twists_keep_their_digits(angle):
    # The director of the first link is an axis: nothing is rounded but the twist itself.
    directors = [[1.0, 0.0, 0.0], [np.cos(angle), np.sin(angle), 0.0]]
    topology, filament = one(np.arange(3)[:, None] * [0.0, 0.0, 2.0], directors)
    energy, forces = energy_and_forces(topology, FilamentTwisting(filament, 6.0))
    assert energy == pytest.approx(1.5 * angle**2, rel=1e-12)
    assert forces[3, 1] == pytest.approx(3.0 * angle, rel=1e-12)


@pytest.mark.parametrize(("n", "coil"), [(3, 0.0), (7, 0.0), (60, 0.4)])
def test_parallel_directors_spread_evenly_what_closes_a_ring(n, coil):
    """That is minus the angle by which a vector turns when it is carried around: the area inside the tangents."""
    phi = 2.0 * np.pi * np.arange(n) / n
    x = polygon(n) * (1.0 + coil * np.cos(3.0 * phi))[:, None] + np.outer(coil * np.sin(3.0 * phi), [0.0, 0.0, 1.0])
    topology, ring = one(x, closed=True)
    t = np.diff(np.vstack([x, x[:1]]), axis=0)
    t /= np.linalg.norm(t, axis=1)[:, None]
    area, pole = 0.0, np.array([0.0, 0.0, 1.0])
    for a, b in zip(t, np.roll(t, -1, axis=0), strict=True):
        area += 2.0 * np.arctan2(a @ np.cross(b, pole), 1.0 + a @ b + b @ pole + pole @ a)
    area -= 2.0 * np.pi * np.round(area / (2.0 * np.pi))
    assert (abs(area) > 0.1) == (coil > 0.0)
    energy, forces = energy_and_forces(topology, FilamentTwisting(ring, 5.0, -area / n))
    assert energy < 1e-24
    assert np.abs(forces).max() < 1e-10


@pytest.mark.parametrize("turn", [3.1415, -3.1415, 3.2, 2.0])
def test_twist_is_that_of_the_shorter_way(turn):
    topology, filament = one(*straight(3, [turn]))
    for rest in (0.0, 0.2, -100.0, 3e6):
        off = turn - rest
        off -= 2.0 * np.pi * np.round(off / (2.0 * np.pi))
        energy, forces = energy_and_forces(topology, FilamentTwisting(filament, 6.0, rest))
        assert energy == pytest.approx(1.5 * off**2, rel=1e-8)
        assert np.linalg.norm(forces[3]) == pytest.approx(3.0 * abs(off), rel=1e-8)


def test_half_a_turn_is_the_kink():
    for rest, sign in ((1e-9, 1.0), (-1e-9, -1.0)):
        topology, filament = one(np.arange(3)[:, None] * [0.0, 0.0, 2.0], [[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]])
        energy, forces = energy_and_forces(topology, FilamentTwisting(filament, 6.0, rest))
        assert energy == pytest.approx(1.5 * np.pi**2, rel=1e-8)
        assert forces[3] == pytest.approx([0.0, 3.0 * np.pi * sign, 0.0], rel=1e-8, abs=1e-8)


def turned(p, a, b):
    """p after the smallest rotation from a to b, by quaternions."""
    q = np.array([1.0 + a @ b, *np.cross(a, b)])
    q /= np.linalg.norm(q)
    scalar, axis = q[0], q[1:]
    return p + 2.0 * np.cross(axis, np.cross(axis, p) + scalar * p)


@pytest.mark.parametrize("bend", [0.0, 1e-7, 0.5, 1.5, 2.8, 3.1])
@pytest.mark.parametrize("twist", [-2.9, -1e-6, 0.7, 3.1])
def test_bends_of_any_size(bend, twist):
    """Against directors made by turning, and forces against differences, where a joint is nearly folded too."""
    rng = np.random.default_rng(int(100 * bend + 10 * twist) + 100)
    frame = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    a, b = frame[0], np.cos(bend) * frame[0] + np.sin(bend) * frame[1]
    p = np.cos(1.1) * frame[1] + np.sin(1.1) * frame[2]
    q = turned(p, a, b)
    q = np.cos(twist) * q + np.sin(twist) * np.cross(b, q)
    topology, filament = one(np.array([-1.5 * a, [0.0, 0.0, 0.0], 2.5 * b]), [p, q])
    at, x = anywhere(topology, FilamentTwisting(filament, 4.0))
    energy, forces = at(x)
    assert energy == pytest.approx(4.0 / 2.0 / 2.0 * twist**2, rel=1e-9, abs=1e-14)
    scale = max(np.abs(forces).max(), 1e-3 / np.cos(bend / 2.0))
    assert np.abs(forces - slopes(at, x, 1e-6)).max() < 1e-6 * scale
    assert np.abs(forces[:3].sum(axis=0)).max() < 1e-13 * scale
    assert np.abs(np.cross(x, forces).sum(axis=0)).max() < 1e-12 * scale


def test_folded_joints_have_no_twist():
    rng = np.random.default_rng(1)
    for _ in range(10):
        d = rng.normal(size=3)
        directors = np.cross(d, rng.normal(size=(2, 3)))
        topology, filament = one([[0.0, 0.0, 0.0], d, [0.0, 0.0, 0.0]], directors)
        energy, forces = energy_and_forces(topology, FilamentTwisting(filament, 4.0, 0.3))
        assert energy == 0.0
        assert (forces == 0.0).all()


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize("kind", ["twist", "fixman"])
def test_forces_are_slopes_off_the_constraints_too(closed, kind):
    """Nodes pulled apart, directors of any length and at any angle to their links."""
    topology, filaments = twistable([3, 6, 4] if closed else [2, 6, 3], closed)
    joints = len(FilamentTwisting(filaments, 1.0).joints)
    force = FilamentTwisting(filaments, np.linspace(2.0, 5.0, joints), np.linspace(-1.0, 1.0, joints))
    force = force if kind == "twist" else FixmanPotential(filaments, kT=2.0)
    at, x = anywhere(topology, force)
    rng = np.random.default_rng(9)
    size = 0.1 if kind == "fixman" else 0.4
    x = x + rng.normal(0.0, size, x.shape)
    energy, forces = at(x)
    assert np.abs(forces - slopes(at, x)).max() < 1e-7 * np.abs(forces).max()
    # Lengths do not matter, nor does turning and moving it all.
    nodes = len(filaments)
    turn, away = np.linalg.qr(rng.normal(size=(3, 3)))[0], rng.normal(0.0, 5.0, 3)
    turn *= np.linalg.det(turn)
    other = x @ turn.T
    other[:nodes] = 3.0 * other[:nodes] + away
    if kind == "twist":
        other[nodes:] *= rng.uniform(0.5, 2.0, len(x) - nodes)[:, None]
    assert at(other)[0] == pytest.approx(energy, rel=1e-12)
    assert np.abs(forces[:nodes].sum(axis=0)).max() < 1e-12 * np.abs(forces).max()
    assert np.abs(np.cross(x, forces).sum(axis=0)).max() < 1e-12 * np.abs(forces).max() * np.abs(x).max()


def test_a_mirror_changes_the_sign_of_twist():
    topology, filaments = twistable([7, 4])
    at, x = anywhere(topology, FilamentTwisting(filaments, 2.0, 0.4))
    opposite, _ = anywhere(topology, FilamentTwisting(filaments, 2.0, -0.4))
    assert at(x * [1.0, -1.0, 1.0])[0] == pytest.approx(opposite(x)[0], rel=1e-13)
    assert abs(at(x)[0] / opposite(x)[0] - 1.0) > 0.01


def test_joints_are_the_inner_nodes_in_order():
    assert FilamentTwisting(twistable([2, 4, 3])[1], 1.0).joints.tolist() == [3, 4, 7]
    assert FilamentTwisting(twistable([3, 4], closed=True)[1], 1.0).joints.tolist() == list(range(7))
    topology, filaments = twistable([2, 4, 3])
    # Only the joint that is stiff: nodes 6, 7, 8 and links 4, 5.
    forces = energy_and_forces(topology, FilamentTwisting(filaments, [0.0, 0.0, 6.0]))[1]
    assert np.flatnonzero(forces.any(axis=1)).tolist() == [6, 7, 8, 9 + 4, 9 + 5]


# Higher derivatives; against differences: test_contract.py ----------------------------------------------------------


def precise(x, a, k, rest):
    """H and K (15, 15), D3U[a, a] and a.K'.a (5, 3) of one joint with k (phi - rest)^2/2, from differences of angles
    found by turning, in 60 digits."""
    mpmath = pytest.importorskip("mpmath")

    def dot(p, q):
        return p[0] * q[0] + p[1] * q[1] + p[2] * q[2]

    def cross(p, q):
        return [p[1] * q[2] - p[2] * q[1], p[2] * q[0] - p[0] * q[2], p[0] * q[1] - p[1] * q[0]]

    def unit(p):
        length = mpmath.sqrt(dot(p, p))
        return [v / length for v in p]

    def off(y):
        x0, x1, x2, p, q = (y[3 * i : 3 * i + 3] for i in range(5))
        u, v = unit([s - t for s, t in zip(x1, x0, strict=True)]), unit([s - t for s, t in zip(x2, x1, strict=True)])
        # p after the smallest rotation from u to v: 1 + w + w^2/(1 + c) with w p = (u x v) x p.
        about = cross(u, v)
        once = cross(about, p)
        twice = cross(about, once)
        carried = [r + s + t / (1 + dot(u, v)) for r, s, t in zip(p, once, twice, strict=True)]
        carried, other = ([s - dot(r, v) * t for s, t in zip(r, v, strict=True)] for r in (carried, q))
        phi = mpmath.atan2(dot(v, cross(carried, other)), dot(carried, other))
        return phi - rest - 2 * mpmath.pi * mpmath.nint((phi - rest) / (2 * mpmath.pi))

    with mpmath.workdps(60):
        start, along = ([mpmath.mpf(float(v)) for v in w.ravel()] for w in (x, a))
        h = mpmath.mpf(10) ** -12
        k, rest = mpmath.mpf(k), mpmath.mpf(rest)
        here = off(start)

        def at(*steps):
            y = [v + sum(s * h * d[i] for s, d in steps) for i, v in enumerate(start)]
            return off(y)

        units = [[int(i == j) for j in range(15)] for i in range(15)]

        def slope(i, *steps):
            return (at(*steps, (1, units[i])) - at(*steps, (-1, units[i]))) / (2 * h)

        def mixed(i, d):
            return (slope(i, (1, d)) - slope(i, (-1, d))) / (2 * h)

        g = [slope(i) for i in range(15)]
        first, second = mpmath.fdot(g, along), [mixed(i, along) for i in range(15)]
        hessian = [[k * (g[i] * g[j] + here * mixed(i, units[j])) for j in range(15)] for i in range(15)]
        third = [
            k * (here * (slope(i, (1, along)) - 2 * g[i] + slope(i, (-1, along))) / h**2
                 + 2 * first * second[i] + mpmath.fdot(second, along) * g[i])
            for i in range(15)
        ]
        slopes_of_stiffness = [2 * k * first * v for v in second]
        stiffness = [[k * p * q for q in g] for p in g]
        return tuple(np.array(m, float) for m in (hessian, stiffness, third, slopes_of_stiffness))


@pytest.mark.parametrize(("bend", "twist"), [(0.0, 0.4), (1e-7, -2.0), (0.6, 3.0), (2.0, -1e-6), (2.8, 1.2)])
def test_higher_derivatives_have_their_digits(bend, twist):
    """Directors may be off their links, and of any length."""
    rng = np.random.default_rng(int(100 * bend + 10 * twist) + 100)
    frame = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    u, v = frame[0], np.cos(bend) * frame[0] + np.sin(bend) * frame[1]
    p = np.cos(1.1) * frame[1] + np.sin(1.1) * frame[2]
    q = turned(p, u, v)
    q = np.cos(twist) * q + np.sin(twist) * np.cross(v, q)
    topology, filament = one(np.array([-1.5 * u, [0.0, 0.0, 0.0], 2.5 * v]), [p, q])
    context = context_of(topology, FilamentTwisting(filament, 4.0, 0.25))
    x = context.get_state(positions=True).positions
    x = x + np.vstack([np.zeros((3, 3)), [0.3 * u + 0.2 * p, 0.5 * q - 0.2 * v]])
    context._store.x[:] = x[context.layout.order]
    context._store.positions_changed()
    a = rng.normal(size=x.shape)
    hessian, stiffness, third, slope = precise(x, a, 4.0 / 2.0, 0.25)
    # Near a fold 1 + cos bend = |u + v|^2/2 has lost digits, and each derivative loses as many again.
    allowed = 1e-13 / np.cos(bend / 2.0) ** 2
    np.testing.assert_allclose(context.hessian().toarray(), hessian, rtol=0.0, atol=allowed * np.abs(hessian).max())
    found = context.hessian(positive=True).toarray()
    np.testing.assert_allclose(found, stiffness, rtol=0.0, atol=allowed * np.abs(stiffness).max())
    assert np.linalg.eigvalsh(found)[0] >= -1e-13 * np.abs(stiffness).max()
    found = context.third_derivative(a).ravel()
    np.testing.assert_allclose(found, third, rtol=0.0, atol=allowed * np.abs(third).max())
    out = np.zeros_like(x)
    (force,) = context._schedule.bound_forces.values()
    contraction = Contraction(force, np.ascontiguousarray(a[context.layout.order]), out, True)
    context._schedule.perform(contraction, changes_state=False)
    np.testing.assert_allclose(out[context.layout.rank].ravel(), slope, rtol=0.0, atol=allowed * np.abs(slope).max())


def test_filaments_without_twist_have_no_derivatives():
    """A joint that is folded back; a director along its link."""
    along = np.array([1.0, 0.0, 0.0])
    topology, filament = one([[0.0, 0.0, 0.0], along, 0.0 * along], [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    context = context_of(topology, FilamentTwisting(filament, 4.0, 0.3), timestep=1e-6)
    assert (context.hessian().toarray() == 0.0).all()
    topology, filament = one([[0.0, 0.0, 0.0], along, 2.0 * along], [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    context = context_of(topology, FilamentTwisting(filament, 4.0, 0.3), timestep=1e-6)
    context._store.x[context.layout.rank[4]] = along
    context._store.positions_changed()
    assert (context.hessian().toarray() == 0.0).all()
    assert (context.third_derivative(np.ones((5, 3))) == 0.0).all()


# Fixman -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("closed", [False, True])
def test_fixman_potential_takes_away_the_root_of_the_metric(closed):
    """Against all three constraints of each link, with their derivatives as they are, on shapes that satisfy them."""
    rng = np.random.default_rng(8)
    n, kT, logs, alone = 7, 1.7, [], []
    m = n if closed else n - 1
    mass, moment = rng.uniform(0.5, 4.0, n), rng.uniform(0.2, 4.0, m)
    for _ in range(6):
        x = rng.normal(0.0, 1.5, (n, 3))
        d = np.roll(x, -1, axis=0)[:m] - x[:m]
        p = np.cross(d, rng.normal(size=d.shape))
        p /= np.linalg.norm(p, axis=1)[:, None]
        topology = mp.Topology()
        filament = topology.add_filament(x, mass, closed=closed, directors=p, director_mass=moment, fixed_nodes=[2])
        energy = energy_and_forces(topology, FixmanPotential(filament, kT=kT))[0]
        jacobian = np.zeros((3, m, n + m, 3))
        link, after = np.arange(m), (np.arange(m) + 1) % n
        for row, on_nodes in enumerate((d, p)):
            jacobian[row, link, link] -= on_nodes
            jacobian[row, link, after] += on_nodes
        jacobian[1, link, n + link], jacobian[2, link, n + link] = d, p
        w = np.concatenate([1.0 / mass, 1.0 / moment])
        w[2] = 0.0
        jacobian = jacobian.reshape(3 * m, n + m, 3)
        length = np.linalg.norm(d, axis=1)
        both = w[link] + w[after]
        # Lengths of links differ from shape to shape here; what U leaves out depends on them.
        constant = np.log(length**4 * both * (both / length**2 + w[n:]) * w[n:]).sum()
        alone.append(0.5 * np.linalg.slogdet(np.einsum("lnc,n,mnc->lm", jacobian, w, jacobian))[1] - 0.5 * constant)
        logs.append(alone[-1] - energy / kT)
    assert np.abs(logs).max() < 1e-11
    assert np.ptp(alone) > 0.1


def test_light_directors_leave_the_metric_of_plain_filaments():
    """They keep their right angles themselves, and nodes do nothing for it."""
    for closed in (False, True):
        _, filaments = twistable([6, 5], closed)
        plain, light = mp.Topology(), mp.Topology()
        options = {"starts": filaments.starts, "closed": closed}
        other = plain.add_filaments(filaments.positions, filaments.mass, **options)
        filaments = light.add_filaments(filaments.positions, filaments.mass, directors=filaments.directors.positions,
                                        director_mass=1e-13, **options)  # fmt: skip
        expected = energy_and_forces(plain, FixmanPotential(other, kT=2.0))
        energy, forces = energy_and_forces(light, FixmanPotential(filaments, kT=2.0))
        assert energy == pytest.approx(expected[0], rel=1e-11)
        assert np.abs(forces[: len(filaments)] - expected[1]).max() < 1e-10 * np.abs(expected[1]).max()


# Refusals ---------------------------------------------------------------------------------------------------


def test_filaments_without_directors_are_refused():
    topology = mp.Topology()
    beads = topology.add_beads([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0]], mass=1.0)
    plain = topology.add_filament(np.arange(4)[:, None] * [1.0, 0.0, 0.0], 1.0, name="actin")
    with pytest.raises(TopologyError, match=r"FilamentTwisting: filaments must be the handle of filaments, not Beads"):
        FilamentTwisting(beads, 1.0)
    with pytest.raises(TopologyError, match=r"twist: Filaments\('actin'.* has no directors.*with directors= .*mass="):
        FilamentTwisting(plain, 1.0, name="twist")
