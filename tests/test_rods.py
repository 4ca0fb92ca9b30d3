"""Rods as they are added: handles, refusals, shapes, sections, documents, and warnings of long timesteps.

Their energy and forces: tests/forces/test_rods.py; what follows from them: tests/physics/test_rods.py.
"""

# ruff: noqa: E741 - l is the symbol of the papers

import copy
import pickle
import re
import warnings

import numpy as np
import pytest
from builders import quiet, refuses, system_with
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

import medyanpy as mp
from medyanpy._tools import quaternions
from medyanpy.testing import thermal

SECTION = mp.rods.CircularSection(radius=0.5, youngs_modulus=1.0, poisson_ratio=0.3, density=1.0)
INERTIA = [0.4, 0.5, 0.8]
PLAIN = {"shear": 3.0, "extension": 7.0, "bending": (11.0, 4.0), "twist": 6.0}


def add_rod(n=6, length=0.8, curvature=(0.1, 0.2, -0.1), topology=None, **kwargs):
    x, q = mp.rods.uniform(n, length, curvature)
    given = {"nodes": x, "orientations": q, "segment_length": length, "linear_density": 1.3, "inertia_density": INERTIA}
    return (topology or mp.Topology()).add_rod(**{**given, **kwargs})


def context_of(topology, *forces, word="ABA", timestep=1e-3, **how):
    system = system_with(topology, *forces)
    how["kT"] = thermal(word, how.get("kT"))
    return mp.Context(system, mp.SplittingIntegrator(word, timestep, **how), threads=1)


# What is added -------------------------------------------------------------------------------------------------


def test_a_rod():
    topology = mp.Topology()
    topology.add_beads(np.zeros((2, 3)), mass=1.0)
    topology.add_rigid_bodies(np.zeros((3, 3)), [[1.0, 0, 0, 0]] * 3, 1.0, [1.0, 1.0, 1.0])
    rod = add_rod(topology=topology, rotation_parts=2, name="whip")
    x, q = mp.rods.uniform(6, 0.8, [0.1, 0.2, -0.1])
    assert isinstance(rod, mp.topology.Rods)
    assert (rod.name, rod.kind.n_chains, rod.closed, rod.kind.rotation_parts) == ("whip", 1, False, 2)
    assert rod.kind.ends == ("free", "free")
    assert np.array_equal(rod.positions, x)
    np.testing.assert_allclose(rod.orientations, q, atol=1e-15)
    assert rod.beads.tolist() == [5, 6, 7, 8, 9, 10]
    assert rod.rows == slice(3, 9)
    assert rod.starts.tolist() == [0, 6]
    assert rod.links.tolist() == [[0, 1], [1, 2], [2, 3], [3, 4], [4, 5]]
    assert rod.kind.joint_lengths.tolist() == [0.8] * 5
    # Each node is a whole segment.
    np.testing.assert_allclose(rod.mass, 1.3 * 0.8, rtol=1e-15)
    np.testing.assert_allclose(rod.inertia, np.tile(0.8 * np.array(INERTIA), (6, 1)), rtol=1e-15)
    assert rod.degrees_of_freedom == 36
    assert not rod.kind.held.any()
    assert not rod.kind.has_friction
    assert rod.kind.describe(8) == "node 3 of rod 0"
    assert rod.kind.describe_link(4) == "link 4 of rod 0"
    assert [h.name for h in (add_rod(), add_rod(topology=topology), add_rod(topology=topology))] == [
        "rod", "rod", "rod 2",
    ]  # fmt: skip
    held = rod.kind.held
    for array in (rod.positions, rod.orientations, rod.mass, rod.inertia, held, rod.segment_length, rod.starts):
        assert not array.flags.writeable


@pytest.mark.parametrize(("ends", "held", "freedom"), [
    ("free", [[0, 0], [0, 0]], 36),
    ("pinned", [[1, 0], [1, 0]], 30),
    ("clamped", [[1, 1], [1, 1]], 24),
    (("clamped", "free"), [[1, 1], [0, 0]], 30),
    (["free", "pinned"], [[0, 0], [1, 0]], 33),
])  # fmt: skip
def test_ends(ends, held, freedom):
    """What is held stands for half a segment, as its other half is beyond the end."""
    rod = add_rod(ends=ends)
    assert rod.kind.held[[0, -1]].tolist() == np.array(held, bool).tolist()
    assert not rod.kind.held[1:-1].any()
    assert rod.degrees_of_freedom == freedom
    share = np.ones(6)
    share[[0, -1]] = np.where(rod.kind.held[[0, -1], 0], 0.5, 1.0)
    np.testing.assert_allclose(rod.mass, 1.3 * 0.8 * share, rtol=1e-15)
    np.testing.assert_allclose(rod.inertia, 0.8 * share[:, None] * INERTIA, rtol=1e-15)
    for end, node, sign in (("start", 0, -1.0), ("end", 5, 1.0)):
        nodes, arms = rod.kind.tips(end)
        assert nodes.tolist() == [node]
        np.testing.assert_allclose(arms, [[0.0, 0.0, 0.0 if rod.kind.held[node, 0] else sign * 0.4]])
    state = context_of(rod.topology, kT=1.0).get_state(energy=True)
    assert state.temperatures[rod.name] == 0.0


@pytest.mark.parametrize("as_list", [True, False], ids=["list", "starts"])
@pytest.mark.parametrize("closed", [False, True], ids=["open", "rings"])
def test_many_rods(as_list, closed):
    counts, lengths = [4, 3, 5], np.array([0.5, 1.0, 2.0])
    angle = 2.0 * np.pi / np.array(counts) if closed else np.full(3, 0.2)
    parts = [mp.rods.uniform(n, l, [0.0, a / l, 0.0]) for n, l, a in zip(counts, lengths, angle, strict=True)]
    x, q = [x for x, _ in parts], [q for _, q in parts]
    starts = None if as_list else [0, 4, 7, 12]
    if not as_list:
        x, q = np.concatenate(x), np.concatenate(q)
    rods = mp.Topology().add_rods(x, q, lengths, np.arange(1.0, 13.0), INERTIA, starts=starts, closed=closed,
                                  ends="free")  # fmt: skip
    assert rods.name == "rods"
    assert rods.starts.tolist() == [0, 4, 7, 12]
    assert rods.kind.n_chains == 3
    each = np.repeat(lengths, counts)
    np.testing.assert_allclose(rods.mass, np.arange(1.0, 13.0) * each, rtol=1e-15)
    links = []
    for first, n in zip([0, 4, 7], counts, strict=True):
        links += [[first + k, first + (k + 1) % n] for k in range(n if closed else n - 1)]
    assert rods.links.tolist() == links
    assert rods.kind.joint_lengths.tolist() == [lengths[0 if a < 4 else 1 if a < 7 else 2] for a, _ in links]
    assert [rods.kind.describe(k) for k in (0, 4, 11)] == ["node 0 of rod 0", "node 0 of rod 1", "node 4 of rod 2"]
    if closed:
        assert rods.kind.describe_link(6) == "link 2 of rod 1"
        refuses(mp.TopologyError, r"rods: rings have no start", rods.kind.tips, "start")
        # All strains of a ring are those between its neighbours.
        np.testing.assert_allclose(np.diff(rods.strains()[1][:4], axis=0), 0.0, atol=1e-14)
    else:
        nodes, arms = rods.kind.tips("end")
        assert nodes.tolist() == [3, 6, 11]
        np.testing.assert_allclose(arms[:, 2], 0.5 * lengths)
        nodes, arms = rods.kind.tips("start")
        assert nodes.tolist() == [0, 4, 7]
        np.testing.assert_allclose(arms[:, 2], -0.5 * lengths)


def tensor(seed=1, n=None):
    root = np.random.default_rng(seed).normal(size=(*([n] if n else []), 6, 6))
    t = root @ np.swapaxes(root, -1, -2) + np.eye(6)
    return 0.5 * (t + np.swapaxes(t, -1, -2))


@pytest.mark.parametrize(
    ("friction", "rotational", "expected"),
    [
        (0.0, 0.0, np.zeros((1, 6, 6))),
        (2.0, 0.0, np.diag([2.0, 2, 2, 0, 0, 0])[None]),
        ((1.0, 2.0), 0.0, np.diag([2.0, 2, 1, 0, 0, 0])[None]),
        ((1.0, 2.0), 3.0, np.diag([2.0, 2, 1, 3, 3, 3])[None]),
        (0.5, (3.0, 4.0), np.diag([0.5, 0.5, 0.5, 4, 4, 3])[None]),
        (tensor(), 0.0, tensor()[None]),
        (tensor(n=6), 0.0, tensor(n=6)),
    ],
    ids=["none", "number", "along, across", "and of rotation", "rotation along, across", "tensor", "tensors"],
)
def test_friction(friction, rotational, expected):
    rod = add_rod(friction=friction, rotational_friction=rotational)
    np.testing.assert_allclose(rod.kind.friction_tensors, expected, rtol=1e-15)
    assert rod.kind.has_friction == bool(expected.any())


# Refusals ------------------------------------------------------------------------------------------------------

X, Q = mp.rods.uniform(6, 0.8)
BACKWARDS = Q.copy()
BACKWARDS[3] = [0.0, 1.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("change", "error", "match"),
    [
        ({"nodes": np.where(np.arange(6)[:, None] == 3, X[2], X)}, mp.TopologyError,
         r"add_rod: link 2 of rod 0 has both nodes in one place: its length is 0"),
        ({"orientations": BACKWARDS}, mp.TopologyError,
         r"add_rod: link 2 of rod 0 runs against the third axis of node 3: the cosine of the angle between them is -1, "
         r"but must be > 0"),
        ({"nodes": X[::-1]}, mp.TopologyError, r"link 0 of rod 0 runs against the third axis of node 0"),
        ({"segment_length": 0.0}, mp.ParameterError, r"add_rod: segment_length = 0.0 but must be finite and > 0"),
        ({"segment_length": -1.0}, mp.ParameterError, r"segment_length = -1.0 but must be"),
        ({"segment_length": np.inf}, mp.ParameterError, r"segment_length = inf but must be"),
        ({"ends": "glued"}, mp.ParameterError, r"ends must be \"free\", \"pinned\" or \"clamped\", or two of these, "
                                               r"not 'glued'"),
        ({"ends": None}, mp.ParameterError, r"ends must be .* not None"),
        ({"ends": ("free",)}, mp.ParameterError, r"ends must be .* not \('free',\)"),
        ({"ends": ("free", "free", "free")}, mp.ParameterError, r"ends must be"),
        ({"ends": "pinned", "closed": True}, mp.TopologyError, r"a ring has no ends that could be pinned or pinned"),
        ({"ends": ("free", "clamped"), "closed": True}, mp.TopologyError, r"no ends that could be free or clamped"),
        ({"nodes": X[:1], "orientations": Q[:1]}, mp.TopologyError, r"rod 0 has 1 nodes, but a rod needs 2"),
        ({"nodes": X[:2], "orientations": Q[:2], "closed": True}, mp.TopologyError,
         r"rod 0 has 2 nodes, but a ring needs 3"),
        ({"nodes": X[:0], "orientations": Q[:0]}, mp.TopologyError, r"rod 0 has 0 nodes"),
        ({"orientations": Q[:5]}, mp.TopologyError, r"add_rod: orientations must have shape \(6, 4\), not \(5, 4\)"),
        ({"orientations": np.where(np.arange(6)[:, None] == 4, 1.001 * Q, Q)}, mp.TopologyError,
         r"add_rod: orientations\[4\] = .* has length 1.001, but a unit quaternion must have length 1 to 1e-06"),
        ({"linear_density": 0.0}, mp.ParameterError, r"linear_density = 0.0 but must be"),
        ({"linear_density": [1.0, 1.0]}, mp.ParameterError, r"linear_density must be a number or have shape \(6,\)"),
        ({"inertia_density": [1.0, 1.0, 0.0]}, mp.ParameterError, r"inertia_density\[2\] = 0 but must be > 0"),
        ({"inertia_density": [1.0, 1.0, 2.5]}, mp.ParameterError,
         r"inertia_density\[2\] = 2.5 but must be at most the sum of the others"),
        ({"inertia_density": 1.0}, mp.ParameterError, r"inertia_density must"),
        ({"friction": -1.0}, mp.ParameterError, r"add_rod: friction = -1.0 but must be finite and >= 0"),
        ({"friction": (1.0, -1.0)}, mp.ParameterError, r"friction across = -1.0 but must be"),
        ({"friction": (1.0, 2.0, 3.0)}, mp.ParameterError, r"friction must have shape \(2,\), not \(3,\)"),
        ({"rotational_friction": (-1.0, 1.0)}, mp.ParameterError, r"rotational_friction along = -1.0 but must be"),
        ({"friction": tensor(), "rotational_friction": 1.0}, mp.ParameterError,
         r"friction is a tensor: rotational_friction is part of it"),
        ({"friction": np.zeros((6, 6))}, mp.ParameterError, r"friction"),
        ({"friction": tensor(n=5)}, mp.ParameterError, r"friction must have shape \(6, 6, 6\), not \(5, 6, 6\)"),
        ({"rotation_parts": 0}, mp.ParameterError, r"add_rod: rotation_parts = 0 but must be"),
        ({"nodes": "line"}, mp.TopologyError, r"add_rod: nodes"),
    ],
)  # fmt: skip
def test_refusals(change, error, match):
    topology = mp.Topology()
    given = {"nodes": X, "orientations": Q, "segment_length": 0.8, "linear_density": 1.3, "inertia_density": INERTIA}
    refuses(error, match, topology.add_rod, **{**given, **change})
    assert topology.handles == ()
    assert topology.n_beads == 0


@pytest.mark.parametrize(("change", "error", "match"), [
    ({"nodes": [X, X[:, :2]]}, mp.TopologyError, r"add_rods: nodes\[1\] must have shape \(n, 3\), not \(6, 2\)"),
    ({"orientations": [Q, Q[:, :3]]}, mp.TopologyError, r"add_rods: orientations\[1\] must have shape \(n, 4\)"),
    ({"orientations": [Q, Q[:5]]}, mp.TopologyError, r"orientations must have shape \(12, 4\), not \(11, 4\)"),
    ({"orientations": [Q, BACKWARDS]}, mp.TopologyError,
     r"add_rods: link 2 of rod 1 runs against the third axis of node 9"),
    ({"segment_length": [1.0, -1.0]}, mp.ParameterError, r"add_rods: segment_length\[1\] = -1.0 but must be"),
    ({"segment_length": [1.0, 1.0, 1.0]}, mp.ParameterError, r"segment_length must be .*\(2,\)"),
    ({"nodes": np.concatenate([X, X]), "starts": [0, 7]}, mp.TopologyError,
     r"starts must ascend from 0 to the number of nodes, 12"),
    ({"nodes": np.concatenate([X, X]), "orientations": np.concatenate([Q, Q]), "starts": [0, 11, 12]}, mp.TopologyError,
     r"rod 1 has 1 nodes, but a rod needs 2"),
    ({"nodes": [X, np.where(np.arange(6)[:, None] == 5, X[4], X)]}, mp.TopologyError,
     r"link 4 of rod 1 has both nodes in one place"),
])  # fmt: skip
def test_refusals_of_many(change, error, match):
    topology = mp.Topology()
    given = {"nodes": [X, X], "orientations": [Q, Q], "segment_length": 0.8, "linear_density": 1.3,
             "inertia_density": INERTIA}  # fmt: skip
    refuses(error, match, topology.add_rods, **{**given, **change})
    assert topology.handles == ()


@pytest.mark.parametrize("fixed", [1, "yes", [True], [[True, False]], [0, 1], None])
def test_fixed_bodies_are_named_by_booleans(fixed):
    with pytest.raises(mp.TopologyError, match=r"add_rigid_bodies: fixed must be True or False, or 2 of these, not"):
        mp.Topology().add_rigid_bodies(X[:2], Q[:2], 1.0, [1.0, 1.0, 1.0], fixed=fixed)


def test_fixed_bodies():
    topology = mp.Topology()
    some = topology.add_rigid_bodies(X[:3], Q[:3], 1.0, [1.0, 1.5, 2.0], 1.0, fixed=[True, False, True])
    every = topology.add_rigid_bodies(X[:2], Q[:2], 1.0, [1.0, 1.5, 2.0], (1.0, 1.0), fixed=True)
    assert (some.degrees_of_freedom, every.degrees_of_freedom) == (6, 0)
    context = context_of(topology, mp.forces.UniformField(some.sites([[1.0, 0, 0]]), [0.0, 1.0, 0.0]),
                         word="BAOAB", timestep=0.1, kT=1.0)  # fmt: skip
    context.set_velocities_to_temperature(kT=1.0, seed=1)
    before = context.get_state(positions=True, velocities=True)
    context.step(20)
    after = context.get_state(positions=True, velocities=True)
    still = [0, 2, 3, 4]
    for name in ("positions", "orientations", "velocities", "angular_momenta"):
        a, b = getattr(before, name), getattr(after, name)
        assert np.array_equal(a[still], b[still]), name
        assert not np.array_equal(a[1], b[1]), name
    assert not after.velocities[still].any()
    again = mp.deserialize(mp.serialize(topology))
    assert [h.kind.held.tolist() for h in again.handles] == [h.kind.held.tolist() for h in topology.handles]


# Shapes --------------------------------------------------------------------------------------------------------


def test_a_round_section():
    """Ladd & Misra (5), with I = A r²/4, and the inertias of a disc: about a diameter half of that about its axis."""
    section = mp.rods.CircularSection(radius=3.0, youngs_modulus=10.0, poisson_ratio=0.25, density=2.0,
                                      shear_correction=0.9)  # fmt: skip
    area, G = np.pi * 9.0, 4.0
    assert section.area == pytest.approx(area, rel=1e-15)
    assert section.second_moment == pytest.approx(area * 9.0 / 4.0, rel=1e-15)
    assert section.stiffness == pytest.approx({"shear": 0.9 * G * area, "extension": 10.0 * area,
                                               "bending": 10.0 * area * 2.25, "twist": G * area * 4.5},
                                              rel=1e-15)  # fmt: skip
    assert section.linear_density == pytest.approx(2.0 * area, rel=1e-15)
    assert section.inertia_density == pytest.approx([2.0 * area * 2.25] * 2 + [2.0 * area * 4.5], rel=1e-15)
    for change, match in [
        ({"radius": 0.0}, "CircularSection: radius = 0.0 but must be finite and > 0"),
        ({"youngs_modulus": -1.0}, "youngs_modulus = -1.0"),
        ({"density": np.nan}, "density = nan"),
        ({"shear_correction": 0.0}, "shear_correction = 0.0"),
        ({"poisson_ratio": 0.51}, "poisson_ratio = 0.51 but must be > -1 and <= 0.5"),
        ({"poisson_ratio": -1.0}, "poisson_ratio = -1.0 but must be > -1 and <= 0.5"),
    ]:
        with pytest.raises(mp.ParameterError, match=re.escape(match)):
            mp.rods.CircularSection(**{**{"radius": 1.0, "youngs_modulus": 1.0, "poisson_ratio": 0.3, "density": 1.0},
                                       **change})  # fmt: skip


def test_uniform_rods_are_circles_and_helices():
    """Ladd & Misra (2), moved and turned so that it starts at the origin in the standard frame."""
    for R, P in ((10.0, 0.0), (3.0, 1.2), (0.5, -4.0)):
        k = 1.0 / np.hypot(P, R)
        n, l = 57, 0.31
        s = l * np.arange(n)
        zero, c, d = np.zeros(n), np.cos(k * s), np.sin(k * s)
        r = np.column_stack([R * c, R * d, P * k * s])
        d1 = np.column_stack([P * k * d, -P * k * c, zero + R * k])
        d2 = np.column_stack([c, d, zero])
        d3 = np.column_stack([-R * k * d, R * k * c, zero + P * k])
        frame = np.stack([d1, d2, d3], axis=2)
        x, q = mp.rods.uniform(n, l, [R * k * k, 0.0, P * k * k])
        np.testing.assert_allclose(x, (r - r[0]) @ frame[0], atol=1e-12)
        np.testing.assert_allclose(quaternions.matrices(q), frame[0].T @ frame, atol=1e-13)


def test_uniform_rods_against_their_equations():
    """r' = R Γ, R' = R [Ω]x with shear and stretch, by another integrator."""
    curvature, strain = np.array([0.4, -0.3, 0.7]), np.array([0.1, -0.2, 1.2])

    a, b, c = curvature
    skew = np.array([[0.0, -c, b], [c, 0.0, -a], [-b, a, 0.0]])

    def right(s, y):
        R = y[3:].reshape(3, 3)
        return np.concatenate([R @ strain, (R @ skew).ravel()])

    x, q = mp.rods.uniform(21, 0.5, curvature, strain)
    done = solve_ivp(right, (0.0, 10.0), np.concatenate([np.zeros(3), np.eye(3).ravel()]), rtol=1e-12, atol=1e-13,
                     t_eval=0.5 * np.arange(21))  # fmt: skip
    np.testing.assert_allclose(x, done.y[:3].T, atol=1e-10)
    np.testing.assert_allclose(quaternions.matrices(q), done.y[3:].T.reshape(-1, 3, 3), atol=1e-10)


def test_uniform_refusals():
    for arguments, match in [
        ((1, 1.0), "uniform: n = 1 but must be"),
        ((2, 0.0), "uniform: segment_length = 0.0 but must be"),
        ((2, 1.0, [1.0]), "uniform: curvature must have shape"),
        ((2, 1.0, [0.0, 0.0, 0.0], [1.0]), "uniform: strain must have shape"),
        ((2, 1.0, [0.0, np.inf, 0.0]), "uniform: curvature"),
    ]:
        refuses(mp.ParameterError, match, mp.rods.uniform, *arguments)


def helix(s, R=3.0, P=1.0):
    k = 1.0 / np.hypot(R, P)
    return np.column_stack([R * np.cos(k * s), R * np.sin(k * s), P * k * s])


def test_frames_follow_a_curve_without_twist():
    """Along a helix the frame that does not twist turns against the Frenet frame by the torsion P k² per length:
    integrated finely it is d' = -(d.t') t. The third axis is along the tangent to second order."""
    R, P = 3.0, 1.0
    k = 1.0 / np.hypot(R, P)
    errors = []
    for n in (101, 201):
        s = np.linspace(0.0, 20.0, n)
        q = mp.rods.frames(helix(s))
        A = quaternions.matrices(q)
        np.testing.assert_allclose(np.linalg.det(A), 1.0, rtol=1e-12)
        tangent = np.column_stack([-R * k * np.sin(k * s), R * k * np.cos(k * s), np.full(n, P * k)])
        normal = np.column_stack([-np.cos(k * s), -np.sin(k * s), np.zeros(n)])
        binormal = np.cross(tangent, normal)
        phase = np.unwrap(np.arctan2(np.einsum("ij,ij->i", A[:, :, 0], binormal),
                                     np.einsum("ij,ij->i", A[:, :, 0], normal)))  # fmt: skip
        # Inner nodes: the halved last tangents are of first order.
        turned = phase[1:-1] - phase[1] + P * k * k * (s[1:-1] - s[1])
        errors.append([np.abs(turned).max(), np.abs(A[1:-1, :, 2] - tangent[1:-1]).max()])
        assert (np.einsum("ij,ij->i", q[1:], q[:-1]) > 0.0).all()
    assert errors[1][0] < 1e-3
    np.testing.assert_allclose(np.divide(*errors), 4.0, rtol=0.1)


def test_frames_twist_nothing():
    """The curvature of a rod with such frames has no third component but what three nodes say about torsion: of the
    third order in the angle of a joint."""
    x = helix(np.linspace(0.0, 20.0, 201))
    length = np.linalg.norm(x[1] - x[0])
    rod = mp.Topology().add_rod(x, mp.rods.frames(x), length, 1.0, INERTIA)
    strain, curvature = rod.strains()
    k2 = 3.0 / 10.0
    np.testing.assert_allclose(np.hypot(*curvature[1:-1, :2].T), k2, rtol=1e-3)
    assert np.abs(curvature[1:-1, 2]).max() < 1e-12
    np.testing.assert_allclose(strain[:, 2], 1.0, atol=1e-3)


def test_frames_of_a_ring_close_evenly():
    """A closed curve that is not plane: the twist needed to close is the same in all links, up to second order in
    their length. That of a plane curve is none."""
    uneven = []
    for n in (80, 160):
        phi = 2.0 * np.pi * np.arange(n) / n
        x = np.column_stack([10.0 * np.cos(phi), 10.0 * np.sin(phi), 2.0 * np.sin(2.0 * phi)])
        x[:, 2] += 1.5 * np.cos(3.0 * phi + 0.4)
        length = np.linalg.norm(np.roll(x, -1, axis=0) - x, axis=1).mean()
        rod = mp.Topology().add_rod(x, mp.rods.frames(x, closed=True), length, 1.0, INERTIA, closed=True)
        twist = rod.strains()[1][:, 2]
        assert np.abs(twist).min() > 8e-5
        uneven.append(np.ptp(twist))
    assert uneven[1] < 1e-3 * np.abs(twist).max()
    assert uneven[0] / uneven[1] == pytest.approx(4.0, rel=0.1)
    flat = np.column_stack([10.0 * np.cos(phi), 7.0 * np.sin(phi), np.zeros(160)])
    rod = mp.Topology().add_rod(flat, mp.rods.frames(flat, closed=True), length, 1.0, INERTIA, closed=True)
    assert np.abs(rod.strains()[1][:, 2]).max() < 1e-14


def test_frames_refusals():
    for nodes, closed, match in [
        ([[0.0, 0, 0]], False, "frames: 1 nodes have no direction: 2 are needed"),
        ([[0.0, 0, 0], [1.0, 0, 0], [1.0, 0, 0]], False, "frames: nodes 1 and 2 are in one place"),
        ([[0.0, 0, 0], [1.0, 0, 0], [1.0, 1, 0], [0.0, 0, 0]], True, "frames: nodes 3 and 0 are in one place"),
        ([[0.0, 0, 0], [1.0, 0, 0], [0.5, 0, 0]], False, "frames: the curve turns back on itself at node 1"),
        ([[0.0, 0], [1.0, 0]], False, "frames: nodes must have shape"),
    ]:
        refuses(mp.TopologyError, match, mp.rods.frames, nodes, closed)


def test_quaternions_of_matrices():
    """Against SciPy, over all rotations and where the scalar part, or all but one component, is almost 0."""
    rng = np.random.default_rng(3)
    axis = rng.normal(size=(4000, 3))
    axis[:600] = np.eye(3)[rng.integers(0, 3, 600)] + rng.normal(0.0, 1e-9, (600, 3))
    axis /= np.linalg.norm(axis, axis=1)[:, None]
    near = rng.normal(0.0, 1e-8, 1500)
    angle = np.concatenate([np.pi + near[:1000], near[1000:], rng.uniform(0.0, np.pi, 2500)])
    rotation = Rotation.from_rotvec(angle[:, None] * axis)
    expected = np.roll(rotation.as_quat(), 1, axis=1)
    q = quaternions.from_matrices(rotation.as_matrix())
    np.testing.assert_allclose(np.linalg.norm(q, axis=1), 1.0, rtol=1e-15)
    sign = np.sign(np.einsum("ij,ij->i", q, expected))
    np.testing.assert_allclose(q * sign[:, None], expected, atol=1e-15)
    assert (np.einsum("ij,ij->i", q[1:], q[:-1]) >= 0.0).all()
    np.testing.assert_allclose(quaternions.matrices(q), rotation.as_matrix(), atol=2e-15)


def test_strains_of_other_places():
    """Of a uniform rod, at any place: Γ = (0, 0, chord/ℓ) along the mean frame, |Ω| = 4 sin(θ/4)/ℓ for the angle θ."""
    rod = add_rod(n=9)
    for curvature in ([0.3, 0.0, 0.0], [0.0, 0.5, 0.0], [0.0, 0.0, -0.4]):
        x, q = mp.rods.uniform(9, 0.8, curvature)
        turn = Rotation.from_rotvec([1.0, 2.0, -0.5])
        x = turn.apply(x) + [3.0, 0.0, 1.0]
        q = quaternions.product(np.tile(np.roll(turn.as_quat(), 1), (9, 1)), q)
        q[::2] *= -1.0
        strain, omega = rod.strains(x, q)
        rate = np.linalg.norm(curvature)
        np.testing.assert_allclose(omega, np.tile(4.0 * np.sin(0.2 * rate) / 0.8 * np.array(curvature) / rate, (8, 1)),
                                   atol=1e-14)  # fmt: skip
        chord = 1.0 if curvature[2] else 2.0 * np.sin(0.4 * rate) / (0.8 * rate)
        np.testing.assert_allclose(strain, np.tile([0.0, 0.0, chord], (8, 1)), atol=1e-14)
    refuses(mp.ParameterError, r"strains: positions must have shape \(9, 3\)", rod.strains, np.zeros((3, 3)))
    with pytest.raises(mp.ParameterError, match=r"strains: orientations must have shape \(9, 4\)"):
        rod.strains(orientations=np.zeros((9, 3)))


# Documents -----------------------------------------------------------------------------------------------------

WAYS = {
    "document": lambda system: mp.deserialize(mp.serialize(system)),
    "pickle": lambda system: pickle.loads(pickle.dumps(system)),
    "copy": copy.deepcopy,
}


def everything():
    """Rods with all options, and all forces on them."""
    topology = mp.Topology()
    topology.add_beads(np.zeros((2, 3)), mass=1.0, friction=0.3)
    rng = np.random.default_rng(4)
    x, q = mp.rods.uniform(6, 0.8, [0.1, 0.0, 0.1])
    held = topology.add_rods([x, x + 0.5], [q, -q], [0.8, 0.75], rng.uniform(1.0, 2.0, 12), [0.4, 0.5, 0.8], (0.3, 0.6),
                             rotational_friction=(0.2, 0.1), ends=("clamped", "pinned"), rotation_parts=2,
                             name="held")  # fmt: skip
    free = add_rod(topology=topology, friction=tensor(n=6), inertia_density=rng.uniform(0.9, 1.1, (6, 3)))
    loop, turns = mp.rods.uniform(7, 0.5, [0.0, 2.0 * np.pi / 3.5, 0.0])
    ring = topology.add_rod(loop, turns, 0.5, 1.0, INERTIA, 0.5, closed=True, name="ring")
    system = mp.System(topology)
    n = len(held.links)
    system.add_force(mp.forces.RodElasticity(held, rng.uniform(1.0, 2.0, (n, 2)), rng.uniform(1.0, 2.0, n), 3.0, 4.0,
                                             rest_curvature=rng.normal(size=(n, 3)), name="its own",
                                             group=1))  # fmt: skip
    system.add_force(mp.forces.RodElasticity(free, **PLAIN, rest_strain=(0.1, 0.0, 0.9)))
    system.add_force(mp.forces.RodElasticity(ring, **PLAIN, name="of the ring"))
    system.add_force(mp.forces.RodLoad(free, "start", [0.1, 0.2, 0.3], [0.3, 0.2, 0.1], follows=True))
    system.add_force(mp.forces.RodLoad(held, "end", couple=[0.3, 0.2, 0.1], name="couple"))
    system.add_force(mp.forces.RodCollision([held, free, ring], [1.0, 2.0, 3.0], [0.1, 0.2, 0.1], neighbors=2))
    return system


def outcome(system):
    context = mp.Context(system, mp.SplittingIntegrator("B1 B0 A O A B0 B1", 0.01, kT=1.0, seed=5), threads=1)
    context.set_velocities_to_temperature(kT=1.0, seed=6)
    context.step(20)
    state = context.get_state(positions=True, velocities=True, forces=True, energy=True)
    arrays = (state.positions, state.orientations, state.velocities, state.angular_momenta, state.forces, state.torques)
    return [a.tobytes() for a in arrays], state.energies


@pytest.mark.parametrize("way", WAYS)
def test_rods_come_back_to_the_bit(way):
    system = everything()
    again = WAYS[way](system)
    for a, b in zip(system.topology.handles[1:], again.topology.handles[1:], strict=True):
        assert (a.name, a.closed, a.rows) == (b.name, b.closed, b.rows)
        for name in ("ends", "rotation_parts", "first_bead"):
            assert getattr(a.kind, name) == getattr(b.kind, name)
        for name in ("friction_tensors", "held"):
            assert np.array_equal(getattr(a.kind, name), getattr(b.kind, name)), name
        for name in ("positions", "orientations", "mass", "inertia", "starts", "segment_length", "linear_density",
                     "inertia_density"):  # fmt: skip
            assert np.array_equal(getattr(a, name), getattr(b, name)), name
    for a, b in zip(system.forces, again.forces, strict=True):
        assert (type(a), a.name, a.group, repr(a)) == (type(b), b.name, b.group, repr(b))
    assert mp.serialize(again) == mp.serialize(system)
    assert outcome(again) == outcome(system)


@pytest.mark.parametrize("way", WAYS)
def test_values_set_are_read_back(way):
    system = everything()
    n = len(system.forces[0].rod.links)
    system.forces[0].set(shear=(2.0, 3.0), rest_curvature=np.ones((n, 3)))
    system.forces[1].set(twist=np.linspace(1.0, 2.0, 5))
    system.forces[3].set(force=[1.0, 1.0, 1.0])
    again = WAYS[way](system)
    assert again.forces[0].parameters["shear"] == (2.0, 3.0)
    assert again.forces[1].parameters["twist"].tolist() == np.linspace(1.0, 2.0, 5).tolist()
    assert outcome(again) == outcome(system)


# Timesteps -----------------------------------------------------------------------------------------------------


def straight(timestep, word, group=0, **how):
    x, q = mp.rods.uniform(20, 1.0)
    topology = mp.Topology()
    rod = topology.add_rod(x, q, 1.0, SECTION.linear_density, SECTION.inertia_density, 0.1, rotational_friction=0.1)
    force = mp.forces.RodElasticity(rod, **SECTION.stiffness, group=group)
    return context_of(topology, force, word=word, timestep=timestep, kT=0.0 if how.pop("cold", False) else 1.0,
                      **how), force  # fmt: skip


@pytest.mark.parametrize(
    ("word", "flight"),
    [("ABA", 1.0), ("BAB", 1.0), ("BAOAB", 1.0), ("BABAB", 0.5), ("ABOBA", 1.0), ("B1 B0 A O A B0 B1", 1.0),
     ("B1 B0 A B0 O B0 A B0 B1", 0.5)],
)  # fmt: skip
def test_a_warning_of_long_timesteps(word, flight):
    """The limit is 2/ω of the time between kicks; just below it there is no warning."""
    limit = straight(1e-3, "ABA")[1].longest_timestep() / flight
    quiet(lambda: straight(limit * (1.0 - 1e-12), word))
    spelled = word if " " in word else " ".join(word)
    expected = (
        f"RodElasticity: the timestep {1.001 * limit:g} s is beyond the stability limit of this force, {limit:g} s "
        f"with the word {spelled!r} (2 over its highest frequency): the energy will blow up"
    )
    with pytest.warns(mp.TimestepWarning, match=re.escape(expected)):
        straight(1.001 * limit, word)


def unstable(word, wh):
    """Whether the composition of three steps of a word makes a harmonic mode grow, step after step."""
    x = mp.Topology()
    bead = x.add_beads([[1.0, 0.5, -0.5]], mass=1.0)
    trap = mp.forces.HarmonicTrap(bead, 1.0, [0.0, 0.0, 0.0])
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".* is beyond the stability limit of this force", mp.TimestepWarning)
        context = context_of(x, trap, word=word, timestep=wh, order=4)
    context.runaway = None
    start = context.get_state(energy=True).total_energy
    for _ in range(20):
        context.step(100)
        if context.get_state(energy=True).total_energy > 1e3 * start:
            return True
    return False


@pytest.mark.parametrize(
    ("word", "highest"), [("ABA", 1.5734), ("BAB", 1.5734), ("BAGAB", 1.5734), ("BABAB", 2.4210), ("BABABAB", 2.5944)]
)
def test_a_warning_of_long_timesteps_of_order_four(word, highest):
    """The limit is that of the three steps together, which runs find too: neither that of the longest of them alone,
    1.175 of BAB, nor 2."""
    integrator = mp.SplittingIntegrator(word, 1.0, order=4)
    assert 2.0 / integrator.longest_flight() == pytest.approx(highest, abs=1e-4)
    assert not unstable(word, highest - 0.004)
    assert unstable(word, highest + 0.004)
    limit = straight(1e-3, "ABA")[1].longest_timestep() * highest / 2.0
    quiet(lambda: straight((1.0 - 1e-4) * limit, word, order=4))
    with pytest.warns(mp.TimestepWarning, match="beyond the stability limit"):
        straight((1.0 + 1e-4) * limit, word, order=4)


def test_order_four_knows_groups():
    """Kicks of other groups are nothing to a force."""
    integrator = mp.SplittingIntegrator("B1 A B0 A B0 A B1", 1.0, order=4)
    outer, inner = (integrator.longest_flight(group) for group in (1, 0))
    assert 2.0 / outer == pytest.approx(1.5734, abs=1e-4)
    assert inner < outer
    assert integrator.longest_flight(2) == 0.0


def test_warnings_know_groups_and_overdamped_words():
    limit = straight(1e-3, "ABA")[1].longest_timestep()
    # The outer kicks are once in a step; the inner ones twice.
    word = "B1 A B0 A B1"
    for group in (0, 1):
        quiet(lambda group=group: straight(0.99 * limit, word, group))
        with pytest.warns(mp.TimestepWarning, match=f"{limit:g} s with"):
            straight(1.01 * limit, word, group)
    word = "B1 A B0 A B0 A B1"
    quiet(lambda: straight(1.4 * limit, word, 0))
    with pytest.warns(mp.TimestepWarning, match=re.escape(f"{limit / (2.0 / 3.0):g} s with")):
        straight(1.51 * limit, word, 0)
    with pytest.warns(mp.TimestepWarning):
        straight(1.01 * limit, word, 1)
    # D moves by forces alone and has another bound.
    quiet(lambda: straight(100.0 * limit, "D"))


def test_a_stiffer_rod_warns_at_the_next_step():
    context, force = straight(0.5, "BAB")
    quiet(lambda: context.step(2))
    force.set(extension=100.0 * SECTION.stiffness["extension"])
    with pytest.warns(mp.TimestepWarning, match="RodElasticity: the timestep 0.5 s is beyond the stability limit"):
        context.step(1)
    # Said once.
    quiet(lambda: context.step(1))


def test_other_forces_know_no_limit():
    rod = add_rod()
    assert mp.forces.RodLoad(rod, "end").longest_timestep() is None


@pytest.mark.parametrize(
    ("change", "factor"),
    [({"extension": 4.0}, 0.5), ({"linear_density": 4.0}, 2.0), ({"segment_length": 2.0}, 2.0)],
)
def test_the_limit_of_waves_of_stretch(change, factor):
    """ℓ sqrt(M/C₃), where nothing else is faster."""
    numbers = {"linear_density": 1.0, "segment_length": 1.0, "extension": 1.0, **change}
    x, q = mp.rods.uniform(5, numbers["segment_length"])
    rod = mp.Topology().add_rod(x, q, numbers["segment_length"], numbers["linear_density"], [1.0, 1.0, 1.0])
    force = mp.forces.RodElasticity(rod, 1e-3, numbers["extension"], 1e-3, 1e-3)
    length = numbers["segment_length"]
    assert force.longest_timestep() == pytest.approx(factor, rel=1e-12)
    assert factor == length * np.sqrt(numbers["linear_density"] / numbers["extension"])


def test_the_limit_is_that_of_the_worst_joint():
    """Stiffnesses of joints, densities of nodes and lengths of rods of their own."""
    parts = [mp.rods.uniform(n, l) for n, l in ((5, 1.0), (4, 0.5))]
    density = np.ones(9)
    density[3] = 0.25
    rods = mp.Topology().add_rods([x for x, _ in parts], [q for _, q in parts], [1.0, 0.5], density, [1.0, 1.0, 1.0])
    weak = np.full(7, 1.0)
    force = mp.forces.RodElasticity(rods, 1e-3, weak, 1e-3, 1e-3)
    assert force.longest_timestep() == pytest.approx(0.5)  # both the light node and the short rod
    weak[6] = 9.0
    force.set(extension=weak)
    assert force.longest_timestep() == pytest.approx(0.5 / 3.0)
    weak = np.full(7, 0.1)
    weak[2] = 1.0  # from node 2 to the light one
    force.set(extension=weak)
    assert force.longest_timestep() == pytest.approx(0.5)
    force.set(extension=1e-3, twist=np.where(np.arange(7) == 5, 4.0, 1e-3))
    assert force.longest_timestep() == pytest.approx(0.25)


def test_beyond_the_limit_a_rod_blows_up():
    """The message names the node."""
    limit = straight(1e-3, "ABA")[1].longest_timestep()
    with pytest.warns(mp.TimestepWarning):
        context, _ = straight(1.2 * limit, "ABA")
    context.set_velocities_to_temperature(kT=1e-6, seed=3)
    with pytest.raises(mp.SimulationError, match=r"node \d+ of rod 0") as caught:
        context.step(3000)
    assert caught.value.object == "rod"
    assert np.isfinite(context.get_state(positions=True).positions).all()
