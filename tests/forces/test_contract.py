"""Every force keeps the contract of `medyanpy.testing`. A new force adds one row to CASES.

Two scenes are shared: loose beads, and a lumpy open membrane with points in it among other objects, so that
no bead number, face number or parameter is what it would be in a tidy system.
"""

import copy
import functools
import itertools
import math
import pickle
import sys
from pathlib import Path

import numpy as np
import pytest
from builders import refuses
from scipy.interpolate import CubicSpline
from scipy.spatial.transform import Rotation

import medyanpy as mp
from medyanpy._tools.described import made_anew
from medyanpy.testing import ForceCase, check_box, check_force

sys.path.insert(0, str(Path(__file__).parent))
from along_surface import shortest, way_in_strip, weights_of
from point_curvature import curvature_between, free_energy_of_directions, missing_angles, with_borders

RNG = np.random.default_rng(7)
N = 40
LOOSE = RNG.uniform(0.0, 100.0, (N, 3))
PAIRS = np.array([RNG.choice(N - 5, 2, replace=False) for _ in range(60)])
K = RNG.uniform(10.0, 90.0, 60)
R0 = RNG.uniform(20.0, 40.0, 60)


def loose_beads():
    topology = mp.Topology()
    return topology, topology.add_beads(LOOSE, mass=1.0)


def lumpy_scene():
    """Two beads, a small closed membrane, points, an open membrane, balls: (topology, handles by name)."""
    rng = np.random.default_rng(11)
    topology = mp.Topology()
    handles = {"beads": topology.add_beads(rng.normal(0.0, 10.0, (2, 3)), mass=1.0)}
    ball = mp.TriangleMesh.icosphere(10.0, 1)
    ball = ball.with_vertices(ball.vertices + rng.normal(0.0, 0.6, ball.vertices.shape) + [3.0, -2.0, 5.0])
    handles["closed"] = topology.add_membrane(ball, vertex_mass=1.0)
    handles["points"] = topology.add_intriangle_points(handles["closed"], 7, mass=0.5, seed=3)
    sheet = mp.TriangleMesh.flat_sheet(4, 5, 4.0)
    bump = np.column_stack([np.zeros((len(sheet.vertices), 2)), 2.0 * np.sin(0.4 * sheet.vertices[:, 0])])
    sheet = sheet.with_vertices(sheet.vertices + bump + rng.normal(0.0, 0.4, bump.shape))
    handles["open"] = topology.add_membrane(sheet, vertex_mass=2.0)
    handles["balls"] = topology.add_balls(rng.normal(0.0, 8.0, (5, 3)), rng.uniform(3.0, 6.0, 5), mass=1.0)
    return topology, handles


@functools.cache
def lumpy_handles():
    """The handles of one such scene, for energies that are asked for hundreds of times; nobody changes them."""
    return lumpy_scene()[1]


# Harmonic bonds --------------------------------------------------------------------------------------------


def bonds():
    topology, _ = loose_beads()
    return topology, mp.forces.HarmonicBonds(PAIRS, K, R0)


def bonds_energy(x):
    i, j = PAIRS.T
    return 0.5 * np.sum(K * (np.linalg.norm(x[j] - x[i], axis=1) - R0) ** 2)


def edge_springs():
    topology, handles = lumpy_scene()
    n = len(handles["open"].mesh.edges)
    return topology, mp.forces.MembraneEdgeSprings(handles["open"], np.linspace(1.0, 3.0, n), np.linspace(2.0, 5.0, n))


def edge_springs_energy(x):
    membrane = lumpy_handles()["open"]
    x = x[membrane.beads]
    edges = {tuple(sorted(e)) for f in membrane.mesh.faces.tolist() for e in zip(f, f[1:] + f[:1], strict=True)}
    length = [np.linalg.norm(x[a] - x[b]) for a, b in sorted(edges)]
    n = len(length)
    return 0.5 * np.sum(np.linspace(1.0, 3.0, n) * (np.array(length) - np.linspace(2.0, 5.0, n)) ** 2)


def mixed_bonds():
    """Bonds between every kind of bead, in-triangle points among them."""
    topology, h = lumpy_scene()
    return topology, mp.forces.HarmonicBonds(mixed_pairs(h), np.linspace(1.0, 2.0, 5), 1.5)


def mixed_pairs(h):
    return np.array([
        [h["points"].beads[4], h["beads"].beads[1]],
        [h["points"].beads[0], h["points"].beads[6]],
        [h["closed"].beads[30], h["points"].beads[4]],
        [h["balls"].beads[2], h["open"].beads[7]],
        [h["beads"].beads[0], h["balls"].beads[2]],
    ])  # fmt: skip


def mixed_bonds_energy(x):
    i, j = mixed_pairs(lumpy_handles()).T
    return 0.5 * np.sum(np.linspace(1.0, 2.0, 5) * (np.linalg.norm(x[j] - x[i], axis=1) - 1.5) ** 2)


BOND_TEXT = "depth*(1 - exp(-(r - r0)/8))^2 + b*atan2(r, 20) + max(r - 30, 0)^2.5/900"


def custom_bonds():
    topology, _ = loose_beads()
    return topology, mp.forces.CustomBonds(PAIRS, BOND_TEXT, depth=K, r0=R0, b=7.0)


def custom_bonds_energy(x):
    i, j = PAIRS.T
    return of_bond_text(np.linalg.norm(x[j] - x[i], axis=1), K, R0, 7.0)


def of_bond_text(r, depth, r0, b):
    assert (r > 30.0).any()
    assert np.abs(r - 30.0).min() > 1e-3
    morse = depth * (1.0 - np.exp(-(r - r0) / 8.0)) ** 2
    return np.sum(morse + b * np.arctan2(r, 20.0) + np.maximum(r - 30.0, 0.0) ** 2.5 / 900.0)


def mixed_custom_bonds():
    """Between every kind of bead, in-triangle points among them."""
    topology, h = lumpy_scene()
    text = "k*sinh(r/9)^2 + l*erf(r/6)"
    return topology, mp.forces.CustomBonds(mixed_pairs(h), text, k=np.linspace(1.0, 2.0, 5), l=1.5)


def mixed_custom_bonds_energy(x):
    i, j = mixed_pairs(lumpy_handles()).T
    r = np.linalg.norm(x[j] - x[i], axis=1)
    error = np.array([math.erf(d / 6.0) for d in r])
    return np.sum(np.linspace(1.0, 2.0, 5) * np.sinh(r / 9.0) ** 2 + 1.5 * error)


# Penalties in place of constraints ---------------------------------------------------------------------------


OMEGA = np.linspace(0.02, 0.05, 60)[::-1]


def length_penalty():
    topology, _ = loose_beads()
    return topology, mp.forces.LinkLengthPenalty(PAIRS, OMEGA, R0)


def length_penalty_energy(x):
    i, j = PAIRS.T
    return 0.5 * np.sum(OMEGA**2 * (np.sum((x[j] - x[i]) ** 2, axis=1) - R0**2) ** 2)


def mixed_length_penalty():
    topology, h = lumpy_scene()
    return topology, mp.forces.LinkLengthPenalty(mixed_pairs(h), np.linspace(1.0, 2.0, 5), 1.5)


def mixed_length_penalty_energy(x):
    i, j = mixed_pairs(lumpy_handles()).T
    return 0.5 * np.sum(np.linspace(1.0, 2.0, 5) ** 2 * (np.sum((x[j] - x[i]) ** 2, axis=1) - 1.5**2) ** 2)


def mixed_triples(h):
    """Of every kind of bead; no bead twice."""
    points, balls, closed = h["points"].beads, h["balls"].beads, h["closed"].beads
    return np.array([
        [points[4], balls[2], h["beads"].beads[1]],
        [closed[30], points[0], points[6]],
        [h["open"].beads[7], h["beads"].beads[0], closed[3]],
        [balls[4], balls[0], h["open"].beads[2]],
    ])  # fmt: skip


SIDES = np.array([[3.0, 4.0, 5.0], [2.0, 2.0, 1.0], [7.0, 6.0, 5.5], [4.0, 3.0, 2.0]])


def triangle_penalty():
    topology, h = lumpy_scene()
    return topology, mp.forces.RigidTrianglePenalty(mixed_triples(h), [0.3, 0.1, 0.2, 0.4], SIDES)


def triangle_penalty_energy(x):
    a, b, c = x[mixed_triples(lumpy_handles())].transpose(1, 0, 2)
    out = 0.0
    for (p, q), side in zip(((a, b), (b, c), (c, a)), SIDES.T, strict=True):
        out += 0.5 * np.sum(np.array([0.3, 0.1, 0.2, 0.4]) ** 2 * (np.sum((p - q) ** 2, axis=1) - side**2) ** 2)
    return out


def frame_penalty():
    topology, h = lumpy_scene()
    return topology, mp.forces.OrthonormalFramePenalty(mixed_triples(h), [0.3, 0.1, 0.2, 0.4], [5.0, 6.0, 9.0, 7.0])


def frame_penalty_energy(x):
    out = 0.0
    for triple, omega, length in zip(mixed_triples(lumpy_handles()), (0.3, 0.1, 0.2, 0.4), (5.0, 6.0, 9.0, 7.0),
                                     strict=True):  # fmt: skip
        q = x[triple].T
        out += 0.5 * omega**2 * np.sum((q.T @ q - length**2 * np.eye(3)) ** 2)
    return out


# Texts over three beads, a row of which has numbers of its own.
TEXTS = ["sin((x1 - x2)*a) + z3*y1/9 - b", "exp(-(x2 - x3)^2/50) + log(a + z1^2/400)"]
A, B = np.array([0.3, 0.2, 0.5, 0.4]), np.array([0.2, 0.1, -0.7, 0.5])


def text_penalty():
    """Of every kind of bead; some are in several rows."""
    topology, h = lumpy_scene()
    rows = mixed_triples(h)
    rows[1, 2], rows[3, 0] = rows[0, 0], rows[2, 1]
    return topology, mp.forces.ConstraintPenalty(TEXTS, rows, [0.3, 0.1, 0.2, 0.4], a=A, b=B)


def text_penalty_energy(x):
    rows = mixed_triples(lumpy_handles())
    rows[1, 2], rows[3, 0] = rows[0, 0], rows[2, 1]
    p, q, r = x[rows].transpose(1, 0, 2)
    one = np.sin((p[:, 0] - q[:, 0]) * A) + r[:, 2] * p[:, 1] / 9.0 - B
    other = np.exp(-((q[:, 0] - r[:, 0]) ** 2) / 50.0) + np.log(A + p[:, 2] ** 2 / 400.0)
    return 0.5 * np.sum(np.array([0.3, 0.1, 0.2, 0.4]) ** 2 * (one**2 + other**2))


METRIC_MASSES = np.array([1.0, 2.0, 3.0, 0.5, 1.0, 2.0, 0.7])


def metric_of_constraints():
    """A filament with a fixed node, tied to a bead on an ellipsoid, with an angle and a text that is no distance; a
    bead on a text of its own, which is another component."""
    topology = mp.Topology()
    ellipsoid = mp.surfaces.Ellipsoid([3.0, 2.0, 3.0])
    walker = topology.add_surface_points(ellipsoid, ellipsoid.project([[2.0, 1.0, 1.0]]), METRIC_MASSES[:1])
    nodes = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [1.5, 1.0, 0.0], [2.0, 1.0, 1.0], [2.5, 1.9, 1.2]])
    topology.add_filament(nodes, METRIC_MASSES[1:6], fixed_nodes=[0])
    free = topology.add_beads([[1.0, 1.0, 0.8]], METRIC_MASSES[6:])
    d = np.sum((walker.positions[0] - nodes[4]) ** 2)
    first = topology.constrain("(x1-x2)^2 + (y1-y2)^2 + (z1-z2)^2 - c", [[0, 5]], c=d)
    topology.constrain("(x1-x2)*(x3-x2) + (y1-y2)*(y3-y2) - c", [[1, 2, 3]], c=-0.5)
    topology.constrain("sin(x1*y2) - c", [[4, 3]], c=np.sin(2.0), length=1.0)
    text = "exp(x)*y + z^4 - c"
    alone = topology.constrain(text, free, c=np.exp(1.0) + 0.8**4, name="alone")
    assert len({h for h in topology.joint.leaders.values()}) == 2
    del alone
    return topology, mp.forces.ConstraintFixmanPotential(first, kT=2.5)


def metric_of_constraints_energy(x):
    rows = []

    def row(**of):
        rows.append(np.zeros((7, 3)))
        for bead, slope in of.items():
            rows[-1][int(bead[1:])] = slope

    row(b0=x[0] / [9.0, 4.0, 9.0])
    for i in range(1, 5):
        row(**{f"b{i}": x[i] - x[i + 1], f"b{i + 1}": x[i + 1] - x[i]})
    row(b0=x[0] - x[5], b5=x[5] - x[0])
    flat = np.array([1.0, 1.0, 0.0])
    row(b1=flat * (x[3] - x[2]), b3=flat * (x[1] - x[2]), b2=flat * (2.0 * x[2] - x[1] - x[3]))
    cosine = np.cos(x[4, 0] * x[3, 1])
    row(b4=[cosine * x[3, 1], 0.0, 0.0], b3=[0.0, cosine * x[4, 0], 0.0])
    j = np.array(rows)
    j[:, 1] = 0.0  # The fixed node.
    j /= np.sqrt(np.sum(j**2, axis=(1, 2)))[:, None, None]
    return 0.5 * 2.5 * np.linalg.slogdet(np.einsum("kic,lic,i->kl", j, j, 1.0 / METRIC_MASSES))[1]


PENALTIES = [
    ForceCase("penalty of texts", text_penalty, text_penalty_energy, 1.0),
    ForceCase("metric of constraints", metric_of_constraints, metric_of_constraints_energy, 0.5),
    ForceCase("length penalty", length_penalty, length_penalty_energy, 27.0),
    ForceCase("length penalty of all kinds", mixed_length_penalty, mixed_length_penalty_energy, 3.0),
    ForceCase("triangle penalty", triangle_penalty, triangle_penalty_energy, 3.0),
    ForceCase("frame penalty", frame_penalty, frame_penalty_energy, 3.0),
]


# Links -----------------------------------------------------------------------------------------------------


def mixed_ends(h):
    """Beads, balls, vertices, points, anchors and weighted means of them, some outside their beads."""
    points, balls, closed = h["points"].beads, h["balls"].beads, h["closed"].beads
    a = (
        mp.Sites.beads([points[4], balls[1], closed[30], points[0]])
        + mp.Sites.weighted([[balls[0], points[2]], [closed[7], h["beads"].beads[1]]], [[0.3, 0.7], [1.75, -0.75]])
        + mp.Sites.beads(h["beads"])
        + mp.Sites.anchors([[2.0, -3.0, 4.0]])
    )
    b = (
        mp.Sites.weighted(
            [[points[6], points[1], closed[3]], [balls[2], h["open"].beads[5], points[4]]],
            [[0.25, 0.25, 0.5], [-0.5, 0.7, 0.8]],
        )
        + mp.Sites.anchors([[0.0, 5.0, 1.0], [-4.0, 1.0, 2.0]])
        # The same beads at both ends, and a vertex under a point.
        + mp.Sites.weighted([[points[2], balls[0], points[4]]], [[0.2, 0.5, 0.3]])
        + mp.Sites.beads([balls[1], points[4], closed[30], closed[7]])
    )
    return a, b


@functools.cache
def lumpy_ends():
    return mixed_ends(lumpy_handles())


def places(sites, x):
    """Of sites, by the definition; anchors in their order."""
    anchors = iter(sites.anchor_positions)
    out = []
    for first, last in zip(sites.start, sites.start[1:], strict=False):
        beads, weights = sites.bead_numbers[first:last], sites.weights[first:last]
        out.append(sum(w * x[i] for i, w in zip(beads, weights, strict=True)) if last > first else next(anchors))
    return np.array(out)


LINK_K, LINK_LENGTH = np.linspace(1.0, 2.5, 9), np.linspace(20.0, 12.0, 9)


def links(one_sided):
    def build():
        topology, h = lumpy_scene()
        return topology, mp.forces.Links(*mixed_ends(h), LINK_K, LINK_LENGTH, one_sided=one_sided)

    def energy(x):
        a, b = lumpy_ends()
        r = np.linalg.norm(places(b, x) - places(a, x), axis=1)
        # Slack and taut ones, and none that is about to change.
        assert (r > LINK_LENGTH).sum() == 4
        assert np.abs(r - LINK_LENGTH).min() > 0.2
        counts = r > LINK_LENGTH if one_sided else np.full(9, True)
        return 0.5 * np.sum((LINK_K * (r - LINK_LENGTH) ** 2)[counts])

    return ForceCase("ropes" if one_sided else "links", build, energy, 5.0)


def links_of_beads():
    topology, h = lumpy_scene()
    i, j = mixed_pairs(h).T
    return topology, mp.forces.Links(i, j, np.linspace(1.0, 2.0, 5), 1.5)


def links_of_means():
    """Without anchors: momentum is conserved."""
    topology, h = lumpy_scene()
    a, b = mixed_ends(h)
    keep = [0, 1, 4, 5, 7]
    return topology, mp.forces.Links(a[keep], b[[0, 1, 4, 6, 8]], LINK_K[keep])


def links_of_means_energy(x):
    a, b = lumpy_ends()
    keep = [0, 1, 4, 5, 7]
    return 0.5 * np.sum(LINK_K[keep, None] * (places(b, x)[[0, 1, 4, 6, 8]] - places(a, x)[keep]) ** 2)


LINKS = [
    links(one_sided=False),
    links(one_sided=True),
    ForceCase("links of beads", links_of_beads, mixed_bonds_energy, 1.5),
    ForceCase("links of means", links_of_means, links_of_means_energy, 5.0),
]


# Angles between sites: of every kind, with sites in several terms.


def angle_ends(h, n_ends, anchored):
    a, b = mixed_ends(h)
    keep = np.arange(9) if anchored else np.array([0, 1, 4, 5, 7])
    mates = np.arange(9) if anchored else np.array([0, 1, 4, 6, 8])
    a, b = a[keep], b[mates]
    n = len(a)
    return (a, b, a[np.roll(np.arange(n), 2)], b[np.roll(np.arange(n), -1 if anchored else -3)])[:n_ends]


@functools.cache
def lumpy_angle_ends(n_ends, anchored):
    return angle_ends(lumpy_handles(), n_ends, anchored)


def angles(n_ends, anchored):
    kind = mp.forces.AngleLinks if n_ends == 3 else mp.forces.DirectionLinks
    n = 9 if anchored else 5
    k, rest = np.linspace(20.0, 50.0, n), np.linspace(0.0, 2.8, n)

    def build():
        topology, h = lumpy_scene()
        return topology, kind(*angle_ends(h, n_ends, anchored), k, rest)

    def energy(x):
        places_of = [places(sites, x) for sites in lumpy_angle_ends(n_ends, anchored)]
        first, second, third, fourth = places_of if n_ends == 4 else [places_of[i] for i in (1, 0, 1, 2)]
        p, q = second - first, fourth - third
        assert min(np.linalg.norm(d, axis=1).min() for d in (p, q)) > 1.0
        theta = np.arctan2(np.linalg.norm(np.cross(p, q), axis=1), np.sum(p * q, axis=1))
        assert theta.min() > 0.1
        assert theta.max() < 3.0
        return np.sum(k * (1.0 - np.cos(theta - rest)))

    what = "angles" if n_ends == 3 else "directions"
    return ForceCase(what + (" with anchors" if anchored else ""), build, energy, 2.0)


ANGLES = [angles(n_ends, anchored) for n_ends in (3, 4) for anchored in (False, True)]


# Membranes --------------------------------------------------------------------------------------------------


def corners_and_areas(x, faces):
    a, b, c = x[faces].transpose(1, 0, 2)
    return a, b, c, 0.5 * np.linalg.norm(np.cross(b - a, c - a), axis=1)


def vertex_gradients(x, faces):
    """Gradients of area and volume at every vertex; nonsense on borders."""
    grad_area, grad_volume = np.zeros(x.shape), np.zeros(x.shape)
    for k in range(3):
        v, i, j = (faces[:, (k + c) % 3] for c in range(3))
        normal = np.cross(x[i] - x[v], x[j] - x[v])
        # A triangle grows fastest along the height on the side opposite the vertex.
        side = x[j] - x[i]
        foot = x[i] + side * (np.sum((x[v] - x[i]) * side, 1) / np.sum(side * side, 1))[:, None]
        height = x[v] - foot
        slope = 0.5 * np.linalg.norm(side, axis=1) / np.linalg.norm(height, axis=1)
        np.add.at(grad_area, v, height * slope[:, None])
        np.add.at(grad_volume, v, normal / 6.0)
    return grad_area, grad_volume


def mean_curvature(x, faces, form):
    """Mean curvature and a third of the ring's area of every vertex; nonsense on borders."""
    n = len(x)
    area = np.zeros(n)
    np.add.at(area, faces.ravel(), np.repeat(corners_and_areas(x, faces)[3] / 3.0, 3))
    if form != "dihedral":
        grad_area, grad_volume = vertex_gradients(x, faces)
        return 0.5 * np.sum(grad_area * grad_volume, 1) / np.sum(grad_volume**2, 1), area
    third = {(f[k], f[(k + 1) % 3]): f[(k + 2) % 3] for f in faces.tolist() for k in range(3)}
    hinges = [(i, j, k, third[j, i]) for (i, j), k in third.items() if i < j and (j, i) in third]
    i, j, k, m = np.transpose(hinges)
    n1, n2 = np.cross(x[j] - x[i], x[k] - x[i]), np.cross(x[m] - x[i], x[j] - x[i])
    angle = np.arctan2(np.linalg.norm(np.cross(n1, n2), axis=1), np.sum(n1 * n2, 1))
    angle *= -np.sign(np.sum(n1 * (x[m] - x[i]), 1))
    turn = np.zeros(n)
    for end in (i, j):
        np.add.at(turn, end, angle * np.linalg.norm(x[i] - x[j], axis=1))
    return turn / (4.0 * area), area


def curvature(x, faces, c0, form):
    """(H - c)², and the area of every vertex, as bending has them; nonsense on borders."""
    if form == "vertex":
        grad_area, grad_volume = vertex_gradients(x, faces)
        area = np.linalg.norm(grad_volume, axis=1)
        return np.sum((0.5 * grad_area - c0[:, None] * grad_volume) ** 2, 1) / area**2, area
    h, area = mean_curvature(x, faces, form)
    return (h - c0) ** 2, area


def membrane_bending(which, form):
    def numbers(n):
        return np.linspace(10.0, 50.0, n), np.linspace(-0.2, 0.3, n)

    def build():
        topology, handles = lumpy_scene()
        how = {"projected": True} if form == "projected" else {"discretization": form}
        force = mp.forces.MembraneBending(handles[which], *numbers(len(handles[which])), **how)
        return topology, force

    membrane = lumpy_handles()[which]

    def energy(x):
        kappa, c0 = numbers(len(membrane.beads))
        square, area = curvature(x[membrane.beads], membrane.mesh.faces, c0, form)
        inside = np.ones(len(area), bool)
        for loop in membrane.mesh.borders:
            inside[loop] = False
        return np.sum((2.0 * kappa * square * area)[inside])

    return ForceCase(f"bending, {form}, {which}", build, energy, 4.0)


def membrane_measure(name, which, make, energy):
    """A force that depends on the areas of the faces and on the volume (about the mean of the vertices)."""

    def build():
        topology, handles = lumpy_scene()
        return topology, make(handles[which])

    membrane = lumpy_handles()[which]

    def of_positions(x):
        x = x[membrane.beads]
        a, b, c, areas = corners_and_areas(x - x.mean(axis=0), membrane.mesh.faces)
        return energy(areas, np.linalg.det(np.stack([a, b, c], axis=1)).sum() / 6.0)

    return ForceCase(name, build, of_positions, 4.0)


def tether(which):
    """Its walls are near where the mesh has edges, whatever their lengths."""
    membrane = lumpy_handles()[which]
    lengths = np.linalg.norm(np.diff(membrane.mesh.vertices[membrane.mesh.edges], axis=1)[:, 0], axis=1)
    # Derivatives of exp(-1/s) are large near where walls begin: that is where no edge is.
    middle = np.sort(lengths)[len(lengths) // 3 : 2 * len(lengths) // 3]
    gap = int(np.argmax(np.diff(middle)))
    begin = middle[gap : gap + 2] @ np.array([[0.6, 0.4], [0.4, 0.6]])
    ends = np.array([0.3 * lengths.min(), *begin, 12.0 * lengths.max()])
    least, repelled, attracted, most = ends

    def build():
        topology, handles = lumpy_scene()
        limits = dict(zip(("l_min", "l_c1", "l_c0", "l_max"), ends, strict=True))
        return topology, mp.forces.MembraneTether(handles[which], 900.0, 1.0, **limits)

    def energy(x):
        x = x[membrane.beads]
        length = np.linalg.norm(x[membrane.mesh.edges[:, 1]] - x[membrane.mesh.edges[:, 0]], axis=1)
        long, short = length[length > attracted], length[length < repelled]
        above = np.exp(1.0 / (attracted - long)) / (most - long)
        return 900.0 * (above.sum() + (np.exp(1.0 / (short - repelled)) / (short - least)).sum())

    return ForceCase(f"tether, {which}", build, energy, 1.0)


def folds(which):
    """From an angle on that half of the edges have, as the lumps are."""
    membrane = lumpy_handles()[which]
    inner = [[a // 3, b // 3] for a, b in enumerate(membrane.mesh.opposite_corners.ravel()) if b > a]
    faces = membrane.mesh.faces

    def cosines(x):
        a, b, c = np.moveaxis(x[membrane.beads][faces], 1, 0)
        normals = np.cross(b - a, c - a)
        normals = normals / np.sqrt((normals**2).sum(axis=1))[:, None]
        return (normals[[i for i, _ in inner]] * normals[[j for _, j in inner]]).sum(axis=1)

    before = np.zeros((membrane.kind.first_bead, 3))
    middle = float(np.median(cosines(np.concatenate([before, membrane.mesh.vertices]))))

    def build():
        topology, handles = lumpy_scene()
        return topology, mp.forces.MembraneFoldRepulsion(handles[which], 90.0, math.acos(middle))

    def energy(x):
        cosine = cosines(x)
        folded = cosine[cosine < middle]
        return 90.0 * ((middle - folded) ** 3 / (1.0 + folded)).sum()

    return ForceCase(f"folds, {which}", build, energy, 1.0)


def own_areas(n):
    return np.linspace(1.0, 3.0, n), np.linspace(4.0, 9.0, n)


def triangles_energy(areas, _):
    k, a0 = own_areas(len(areas))
    return np.sum(0.5 * k * (areas - a0) ** 2 / a0)


MEMBRANES = [
    membrane_bending("closed", "vertex"),
    membrane_bending("closed", "projected"),
    membrane_bending("closed", "dihedral"),
    membrane_bending("open", "vertex"),
    membrane_bending("open", "projected"),
    membrane_bending("open", "dihedral"),
    membrane_measure("area", "closed", lambda m: mp.forces.MembraneArea(m, 20.0, 900.0),
                     lambda a, v: 10.0 * (a.sum() - 900.0) ** 2 / 900.0),
    membrane_measure("area of each triangle", "open",
                     lambda m: mp.forces.MembraneArea(m, *own_areas(len(m.mesh.faces)), per_triangle=True),
                     triangles_energy),
    membrane_measure("tension", "open", lambda m: mp.forces.MembraneTension(m, 0.3), lambda a, v: 0.3 * a.sum()),
    membrane_measure("volume", "closed", lambda m: mp.forces.MembraneVolume(m, 0.8, 3000.0),
                     lambda a, v: 0.4 * (v - 3000.0) ** 2 / 3000.0),
    tether("closed"),
    tether("open"),
    folds("closed"),
    folds("open"),
]  # fmt: skip


def of_membrane(name, which, make, energy, length=4.0):
    """A force on a membrane of the scene, and its energy: of the positions of all beads, the handles and the faces."""

    def build():
        topology, handles = lumpy_scene()
        return topology, make(handles[which], handles)

    return ForceCase(name, build, lambda x: energy(x[lumpy_handles()[which].beads], lumpy_handles()[which], x), length)


def angles_of(x, faces):
    """(F, 3) by the law of cosines."""
    a, b, c = (np.linalg.norm(x[faces[:, (k + 1) % 3]] - x[faces[:, (k + 2) % 3]], axis=1) for k in range(3))
    return np.arccos(
        np.column_stack([(q**2 + r**2 - p**2) / (2.0 * q * r) for p, q, r in ((a, b, c), (b, c, a), (c, a, b))])
    )


def gaussian_energy(x, membrane, _):
    faces = membrane.mesh.faces
    missing = np.full(len(x), 2.0 * np.pi)
    np.subtract.at(missing, faces, angles_of(x, faces))
    ends = np.concatenate([np.sort(faces[:, [i, i - 1]], axis=1) for i in range(3)])
    edges, counts = np.unique(ends, axis=0, return_counts=True)
    missing[edges[counts == 1]] = 0.0
    return missing @ np.linspace(-20.0, 30.0, len(x))


def border_energy(x, membrane, _):
    faces = membrane.mesh.faces
    ends = np.concatenate([np.sort(faces[:, [i, i - 1]], axis=1) for i in range(3)])
    edges, counts = np.unique(ends, axis=0, return_counts=True)
    i, j = edges[counts == 1].T
    return 3.0 * np.linalg.norm(x[i] - x[j], axis=1).sum()


def area_difference_energy(form):
    def energy(x, membrane, _):
        h, area = mean_curvature(x, membrane.mesh.faces, form)
        difference = 2.0 * 2.5 * (h @ area)
        return 0.5 * 30.0 * np.pi / (900.0 * 2.5**2) * (difference - 400.0) ** 2

    return energy


def phases_of(n):
    """Two of them, and a few between."""
    phases = 0.9 * (np.arange(n) % 5 < 2)
    phases[::7] = np.linspace(0.1, 0.8, len(phases[::7]))
    return phases


def phases_energy(x, membrane, _):
    """The gradient of phi from the plane through the three values, times the area."""
    total = 0.0
    phases = phases_of(len(x))
    for face in membrane.mesh.faces:
        p, q = x[face[1]] - x[face[0]], x[face[2]] - x[face[0]]
        metric = np.array([[p @ p, p @ q], [p @ q, q @ q]])
        rise = phases[face[1:]] - phases[face[0]]
        total += np.sqrt(rise @ np.linalg.solve(metric, rise)) * 0.5 * np.sqrt(np.linalg.det(metric))
    return 2.0 * total


def adhesion_energy(distances):
    """distances (x of all) -> (V, targets)."""

    def energy(x, membrane, all_of_them):
        *_, areas = corners_and_areas(x, membrane.mesh.faces)
        share = np.zeros(len(x))
        np.add.at(share, membrane.mesh.faces, areas[:, None] / 3.0)
        q = np.exp(-(distances(x, all_of_them) - 0.7) / 3.0)
        return np.sum(share * np.linspace(0.5, 2.0, len(x)) * np.sum((1.0 - q) ** 2 - 1.0, axis=1))

    return energy


def adheres(which, to, distances, what):
    def make(membrane, handles):
        return mp.forces.MembraneAdhesion(membrane, to(handles), np.linspace(0.5, 2.0, len(membrane)), 3.0, 0.7)

    return of_membrane(f"adhesion, {what}", which, make, adhesion_energy(distances), 2.0)


def from_balls(x, every):
    balls = lumpy_handles()["balls"]
    return np.linalg.norm(x[:, None] - every[balls.beads], axis=2) - balls.radius


def from_segment(x, start, way):
    share = np.clip((x - start) @ way / (way @ way), 0.0, 1.0)
    return np.linalg.norm(x - start - share[:, None] * way, axis=1)


WALL = mp.boundaries.Plane((1.0, 2.0, -4.0), (0.48, -0.6, 0.64))
MEMBRANES += [
    of_membrane(
        "Gaussian curvature, closed", "closed",
        lambda m, _: mp.forces.MembraneGaussianCurvature(m, np.linspace(-20.0, 30.0, len(m))), gaussian_energy,
    ),
    of_membrane(
        "Gaussian curvature, open", "open",
        lambda m, _: mp.forces.MembraneGaussianCurvature(m, np.linspace(-20.0, 30.0, len(m))), gaussian_energy,
    ),
    of_membrane("tension of borders", "open", lambda m, _: mp.forces.BorderTension(m, 3.0), border_energy),
    of_membrane(
        "two phases", "closed", lambda m, _: mp.forces.MembraneLineTension(m, phases_of(len(m)), 2.0), phases_energy
    ),
    of_membrane(
        "two phases, open", "open", lambda m, _: mp.forces.MembraneLineTension(m, phases_of(len(m)), 2.0), phases_energy
    ),
    *(
        of_membrane(
            f"difference in area, {form}", "closed",
            lambda m, _, form=form: mp.forces.MembraneAreaDifference(m, 30.0, 2.5, 400.0, 900.0, form),
            area_difference_energy(form),
        )
        for form in ("vertex", "dihedral")
    ),
    membrane_measure("pressure", "closed", lambda m: mp.forces.MembranePressure(m, 0.7), lambda a, v: -0.7 * v),
    membrane_measure(
        "osmotic pressure", "closed", lambda m: mp.forces.MembraneOsmoticPressure(m, 5000.0, 1.3, kT=0.4),
        lambda a, v: 0.4 * (1.3 * v - 5000.0 - 5000.0 * np.log(1.3 * v / 5000.0)),
    ),
    adheres("open", lambda h: WALL, lambda x, _: ((x - [1.0, 2.0, -4.0]) @ [0.48, -0.6, 0.64])[:, None], "wall"),
    adheres(
        "closed", lambda h: mp.surfaces.Sphere(9.0, (1.0, -2.0, 3.0)),
        lambda x, _: np.linalg.norm(x - [1.0, -2.0, 3.0], axis=1)[:, None] - 9.0, "sphere",
    ),
    adheres("closed", lambda h: h["balls"], from_balls, "balls"),
    adheres(
        "open", lambda h: mp.boundaries.Capsule([1.0, -2.0, 3.0], [-2.0, 4.0, 5.0], 12.0),
        lambda x, _: 12.0 - from_segment(x, np.array([1.0, -2.0, 3.0]), np.array([-3.0, 6.0, 2.0]))[:, None],
        "capsule",
    ),
]  # fmt: skip


# Repulsion and fields ---------------------------------------------------------------------------------------
# No pair is near the distance where its energy ends: differences across that are of another order.

EXCLUDED = np.array([[1, 40], [60, 2], [3, 57], [41, 62], [70, 45]])


def soft_spheres():
    """Vertices, points, beads and balls; groups that overlap in the points."""
    topology, h = lumpy_scene()
    return topology, mp.forces.SoftSphere([h["closed"], h["points"]], [h["balls"], h["points"], h["beads"]], 7.0, 4.1,
                                          exclusions=EXCLUDED)  # fmt: skip


def pairs_within(a, b, excluded=()):
    """Pairs of one bead in each group, each once."""
    excluded = {tuple(sorted(map(int, e))) for e in excluded}
    return np.array(sorted({tuple(sorted((int(i), int(j)))) for i in a for j in b if i != j} - excluded), dtype=int).T


def distances(x, pairs):
    return np.linalg.norm(x[pairs[0]] - x[pairs[1]], axis=1)


def soft_spheres_energy(x):
    h = lumpy_handles()
    a = np.concatenate([h["closed"].beads, h["points"].beads])
    b = np.concatenate([h["balls"].beads, h["points"].beads, h["beads"].beads])
    r = distances(x, pairs_within(a, b, EXCLUDED))
    return 0.5 * 7.0 * np.sum(np.maximum(4.1 - r, 0.0) ** 2)


def touching_balls():
    topology, h = lumpy_scene()
    return topology, mp.forces.SoftSphere(h["balls"].beads[::-1], h["balls"], 3.0)


def touching_balls_energy(x):
    balls = lumpy_handles()["balls"]
    i, j = pairs_within(balls.beads, balls.beads)
    radius = dict(zip(balls.beads.tolist(), balls.radius.tolist(), strict=True))
    d = np.array([radius[a] + radius[b] for a, b in zip(i.tolist(), j.tolist(), strict=True)])
    return 0.5 * 3.0 * np.sum(np.maximum(d - distances(x, (i, j)), 0.0) ** 2)


def wca():
    topology, _ = loose_beads()
    excluded = [[33, 4], [0, 20]]
    return topology, mp.forces.WCA(np.arange(30), np.arange(39, 14, -1), 0.8, 21.0, exclusions=excluded)


def wca_energy(x):
    r = distances(x, pairs_within(range(30), range(15, 40), [[33, 4], [0, 20]]))
    s = (21.0 / r[r < 2.0 ** (1 / 6) * 21.0]) ** 6
    return np.sum(4.0 * 0.8 * (s * s - s) + 0.8)


def uniform_field():
    topology, h = lumpy_scene()
    return topology, mp.forces.UniformField([h["points"], h["beads"]], np.linspace([-1, 2, 3], [2, 1, -4], 9))


def uniform_field_energy(x):
    h = lumpy_handles()
    return -np.sum(x[np.r_[h["points"].beads, h["beads"].beads]] * np.linspace([-1, 2, 3], [2, 1, -4], 9))


def harmonic_trap():
    topology, h = lumpy_scene()
    center = np.linspace(-4, 5, 27).reshape(9, 3)
    return topology, mp.forces.HarmonicTrap([h["points"], h["beads"]], [1.0, 0.0, 3.0], center)


def harmonic_trap_energy(x):
    h = lumpy_handles()
    away = x[np.r_[h["points"].beads, h["beads"].beads]] - np.linspace(-4, 5, 27).reshape(9, 3)
    return 0.5 * np.sum(np.array([1.0, 0.0, 3.0]) * away**2)


WRITTEN = "depth*exp(-(x^2 + a*y^2)/50)*cos(z/3) + k*sqrt(1 + x^2)*z/(2 + sin(y)) - log(20 + y^2)"
SHARES = {"depth": np.linspace(1.0, 3.0, 9), "a": 0.7, "k": np.linspace(0.1, -0.2, 9)}


def written(x, depth, a, k):
    x, y, z = x.T
    return (
        depth * np.exp(-(x**2 + a * y**2) / 50.0) * np.cos(z / 3.0)
        + k * np.sqrt(1.0 + x**2) * z / (2.0 + np.sin(y))
        - np.log(20.0 + y**2)
    )


def external_field():
    topology, h = lumpy_scene()
    return topology, mp.forces.ExternalField([h["points"], h["beads"]], WRITTEN, **SHARES)


def external_field_energy(x):
    h = lumpy_handles()
    return np.sum(written(x[np.r_[h["points"].beads, h["beads"].beads]], **SHARES))


def python_force():
    topology, _ = lumpy_scene()

    def function(x):
        return python_force_energy(x), -np.cos(x) - 0.5 * (np.roll(x, 1, 0) + np.roll(x, -1, 0))

    return topology, mp.forces.PythonForce(function)


def python_force_energy(x):
    return np.sum(np.sin(x)) + 0.5 * np.sum(x * np.roll(x, 1, 0))


def site_groups(h):
    a, b = mixed_ends(h)
    return a, mp.Sites.beads([h["open"].beads[3], h["open"].beads[16]]) + b[:4]


def soft_spheres_of_sites():
    topology, h = lumpy_scene()
    return topology, mp.forces.SoftSphere(*site_groups(h), 7.0, 6.1, exclusions=[[3, 9], [0, 1], [13, 4]])


def soft_spheres_of_sites_energy(x):
    a, b = (places(s, x) for s in site_groups(lumpy_handles()))
    r = np.linalg.norm(a[:, None] - b[None], axis=-1)
    # Sites 9 and 13 are the first and fifth of the second group, of two sites in the first 0 and 1 do not interact.
    r[3, 0] = r[4, 4] = np.inf
    assert np.abs(r - 6.1).min() > 0.05
    return 0.5 * 7.0 * np.sum(np.maximum(6.1 - r, 0.0) ** 2)


def wca_of_sites():
    topology, h = lumpy_scene()
    sites = mixed_ends(h)[0]
    return topology, mp.forces.WCA(sites, sites, 0.8, 9.0)


def wca_of_sites_energy(x):
    sites = places(lumpy_ends()[0], x)
    i, j = np.triu_indices(len(sites), 1)
    r = np.linalg.norm(sites[i] - sites[j], axis=1)
    assert np.abs(r - 2.0 ** (1 / 6) * 9.0).min() > 0.05
    s = (9.0 / r[r < 2.0 ** (1 / 6) * 9.0]) ** 6
    return np.sum(4.0 * 0.8 * (s * s - s) + 0.8)


def ricker():
    """Pairs in the core, in the well and beyond the cutoff, points among them."""
    topology, h = lumpy_scene()
    return topology, mp.forces.Ricker([h["closed"], h["points"]], [h["balls"], h["points"], h["beads"]], 7.0, 4.5,
                                      cutoff=8.68, exclusions=EXCLUDED)  # fmt: skip


def well(r, depth, distance, cutoff):
    def u(r):
        return 0.5 * depth * (1.0 - 3.0 * (r / distance) ** 2) * np.exp(1.5 - 1.5 * (r / distance) ** 2)

    return np.sum(np.where(r < cutoff, u(r) - u(cutoff), 0.0))


def ricker_energy(x):
    h = lumpy_handles()
    a = np.concatenate([h["closed"].beads, h["points"].beads])
    b = np.concatenate([h["balls"].beads, h["points"].beads, h["beads"].beads])
    r = distances(x, pairs_within(a, b, EXCLUDED))
    assert (r < 4.5).sum() > 10
    assert np.abs(r - 8.68).min() > 0.05
    return well(r, 7.0, 4.5, 8.68)


def ricker_of_sites():
    topology, h = lumpy_scene()
    sites = mixed_ends(h)[0]
    return topology, mp.forces.Ricker(sites, sites, 2.0, 6.0)


def ricker_of_sites_energy(x):
    sites = places(lumpy_ends()[0], x)
    i, j = np.triu_indices(len(sites), 1)
    return well(np.linalg.norm(sites[i] - sites[j], axis=1), 2.0, 6.0, 24.0)


# In a gap between distances of the pairs.
CUTOFF = 54.996


def lennard_jones(cutoff=None):
    def build():
        topology, _ = loose_beads()
        a, b = np.arange(30), np.arange(39, 14, -1)
        return topology, mp.forces.LennardJones(a, b, 0.8, 21.0, cutoff=cutoff, exclusions=[[33, 4], [0, 20]])

    return build


def lennard_jones_energy(cutoff=np.inf):
    def u(r):
        s = (21.0 / r) ** 6
        return 4.0 * 0.8 * (s * s - s)

    def energy(x):
        r = distances(x, pairs_within(range(30), range(15, 40), [[33, 4], [0, 20]]))
        assert np.abs(r - cutoff).min() > 0.05
        return np.sum(np.where(r < cutoff, u(r) - u(cutoff), 0.0))

    return energy


CHARGES = np.linspace(-2.0, 3.0, 14)


def charges():
    """Of beads of every kind, points among them."""
    topology, h = lumpy_scene()
    return topology, mp.forces.Coulomb([h["points"], h["balls"], h["beads"]], CHARGES, 5.0, exclusions=EXCLUDED)


def charges_energy(x):
    h = lumpy_handles()
    beads = np.concatenate([h[k].beads for k in ("points", "balls", "beads")])
    q = dict(zip(beads.tolist(), CHARGES.tolist(), strict=True))
    i, j = pairs_within(beads, beads, EXCLUDED)
    product = np.array([q[a] * q[b] for a, b in zip(i.tolist(), j.tolist(), strict=True)])
    return np.sum(5.0 * product / distances(x, (i, j)))


def charges_of_sites():
    topology, h = lumpy_scene()
    sites = mixed_ends(h)[0]
    return topology, mp.forces.Coulomb(sites, np.linspace(-1.0, 2.0, len(sites)), 5.0, exclusions=[[0, 2]])


def charges_of_sites_energy(x):
    sites = places(lumpy_ends()[0], x)
    q = np.linspace(-1.0, 2.0, len(sites))
    i, j = np.triu_indices(len(sites), 1)
    r = np.linalg.norm(sites[i] - sites[j], axis=1)
    return np.sum(np.where((i == 0) & (j == 2), 0.0, 5.0 * q[i] * q[j] / r))


def points_of_two_membranes():
    """The scene, and points of its open membrane beside those of the closed one."""
    topology, h = lumpy_scene()
    h["more"] = topology.add_intriangle_points(h["open"], 6, mass=0.7, seed=5)
    return topology, h


@functools.cache
def ways(reach):
    """Of all pairs of points of one membrane that are nearer than `reach` along it: (their beads, faces of the
    membrane by beads of the topology, the strip of triangles between them)."""
    topology, h = points_of_two_membranes()
    x = np.concatenate([handle.positions for handle in topology.handles])
    out = []
    for points in (h["points"], h["more"]):
        faces = [tuple(f) for f in (points.membrane.mesh.faces + points.membrane.kind.first_bead).tolist()]
        for i, j in itertools.combinations(range(len(points)), 2):
            ends = points.triangles[[i, j]].tolist()
            if np.linalg.norm(x[points.beads[i]] - x[points.beads[j]]) > reach:
                continue
            length, strip = shortest(x, faces, ends[0], points.barycentric[i], ends[1], points.barycentric[j], 8)
            assert abs(length - reach) > 0.05
            if length < reach:
                out.append((points.beads[[i, j]], faces, strip))
    return out


def along_surfaces_energy(pair, reach):
    def energy(x):
        r = []
        for (i, j), faces, strip in ways(reach):
            a, b = weights_of(x, faces, strip[0], x[i]), weights_of(x, faces, strip[-1], x[j])
            r.append(way_in_strip(x, faces, strip, a, b)[0])
        assert len(r) > 6
        return np.sum(pair(np.array(r)))

    return energy


def along_surfaces(law):
    def build():
        topology, h = points_of_two_membranes()
        groups = [h["points"], h["more"]]
        return topology, law(groups, groups, along_surface=True)

    return build


def on_membranes(law):
    """Of the points of one membrane among others: an energy of their weights."""

    def build():
        topology, h = points_of_two_membranes()
        return topology, law(h["more"], np.linspace(-3.0, 5.0, len(h["open"])))

    return build


def weights_squared(points, values):
    """Not linear, and it tells triangles apart."""

    def function(triangles, weights):
        share = (1.0 + 0.1 * triangles)[:, None] * values[:3]
        return np.sum(share * weights**2, axis=1), 2.0 * share * weights

    return mp.forces.PythonMembraneField(points, function)


def on_membranes_energy(linear):
    def energy(x):
        h = points_of_two_membranes()[1]
        values, membrane, total = np.linspace(-3.0, 5.0, len(h["open"])), h["open"], 0.0
        for bead, f in zip(h["more"].beads, h["more"].triangles.tolist(), strict=True):
            w = weights_of(x[membrane.beads], membrane.mesh.faces, f, x[bead])
            corners = values[membrane.mesh.faces[f]]
            total += w @ corners if linear else (1.0 + 0.1 * f) * np.sum(values[:3] * w**2)
        return total

    return energy


def curved_points(which, kT=None):
    """Of a membrane without borders, and of one that has borders, some of whose points are at these; with a kT, curved
    along directions that are left to chance."""
    numbers, directed = (3.0, 0.05, 17.0), () if kT is None else (kT,)
    law = mp.forces.PointCurvature if kT is None else mp.forces.DirectedPointCurvature

    def build():
        topology, h = points_of_two_membranes()
        return topology, law(h[which], *numbers, *directed)

    def energy(x):
        h = points_of_two_membranes()[1][which]
        membrane, total = h.membrane, 0.0
        x_m, mesh = x[membrane.beads], membrane.mesh
        faces = mesh.faces
        mean = with_borders(mean_curvature(x_m, faces, "vertex")[0], mesh)
        gauss = with_borders(missing_angles(x_m, faces), mesh)
        kappa, c, area = numbers
        for bead, f in zip(h.beads, h.triangles.tolist(), strict=True):
            w = weights_of(x_m, faces, f, x[bead])
            at = curvature_between(x_m, faces, mean, f, w)
            if kT is None:
                total += 2.0 * kappa * area * (at - c) ** 2
            else:
                k = curvature_between(x_m, faces, gauss, f, w)
                total += free_energy_of_directions(at, k, 0.5 * kappa * area, c, kT)
        return total

    return ForceCase(f"curved points, {which}, {kT}", build, energy, 1.0)


def written_on_membranes(points, values):
    text = "k*sin(h)^2 + h*b/3 - exp(-b)"
    return mp.forces.CustomMembraneField(points, text, k=2.0, h=values, b=np.cos(values))


def written_on_membranes_energy(x):
    h = points_of_two_membranes()[1]
    membrane, total = h["open"], 0.0
    values = np.linspace(-3.0, 5.0, len(membrane))
    for bead, f in zip(h["more"].beads, h["more"].triangles.tolist(), strict=True):
        face = membrane.mesh.faces[f]
        w = weights_of(x[membrane.beads], membrane.mesh.faces, f, x[bead])
        height, b = w @ values[face], w @ np.cos(values[face])
        total += 2.0 * np.sin(height) ** 2 + height * b / 3.0 - np.exp(-b)
    return total


ARCS, ARCS_CENTER = 3.0, np.array([5.0, -2.0, 1.0])


def along_a_sphere():
    """Beads of two kinds on one sphere, and a pair that is left out."""
    topology = mp.Topology()
    sphere = mp.surfaces.Sphere(ARCS, ARCS_CENTER)
    x = sphere.sample(14, seed=8)
    a, b = (topology.add_surface_points(sphere, part, mass=1.0) for part in (x[:8], x[8:]))
    return topology, mp.forces.Ricker([a, b], np.append(a.beads[2:], b.beads), 0.5, 2.0, cutoff=7.0,
                                      exclusions=[[9, 3]], along_surface=True)  # fmt: skip


def along_a_sphere_energy(x):
    """Of the arcs between the directions in which beads are seen from the center."""
    n = (x - ARCS_CENTER) / np.linalg.norm(x - ARCS_CENTER, axis=1)[:, None]
    i, j = pairs_within(range(14), range(2, 14), [[9, 3]])
    arc = ARCS * np.arctan2(np.linalg.norm(np.cross(n[i], n[j]), axis=1), np.einsum("ij,ij->i", n[i], n[j]))
    assert np.abs(arc - 7.0).min() > 0.01

    def u(r):
        return 0.25 * (1.0 - 3.0 * (r / 2.0) ** 2) * np.exp(1.5 - 1.5 * (r / 2.0) ** 2)

    return np.sum(np.where(arc < 7.0, u(arc) - u(7.0), 0.0))


BETWEEN_BEADS = [
    ForceCase("field on a membrane", on_membranes(mp.forces.MembraneField), on_membranes_energy(True), 1.0),
    ForceCase("written field", on_membranes(written_on_membranes), written_on_membranes_energy, 0.3),
    curved_points("points"),
    curved_points("more"),
    curved_points("points", 0.3),
    curved_points("more", 0.3),
    ForceCase("Python field on a membrane", on_membranes(weights_squared), on_membranes_energy(False), 1.0),
    ForceCase("soft spheres along surfaces",
              along_surfaces(lambda a, b, **k: mp.forces.SoftSphere(a, b, 2.0, 10.1, **k)),
              along_surfaces_energy(lambda r: (10.1 - r) ** 2, 10.1), 0.2),
    ForceCase("Ricker along surfaces",
              along_surfaces(lambda a, b, **k: mp.forces.Ricker(a, b, 2.0, 5.0, cutoff=10.1, **k)),
              along_surfaces_energy(lambda r: well(r, 2.0, 5.0, 10.1), 10.1), 0.2),
    ForceCase("Ricker along a sphere", along_a_sphere, along_a_sphere_energy, 2.0),
    ForceCase("Lennard-Jones", lennard_jones(), lennard_jones_energy(), 1.0),
    ForceCase("Lennard-Jones with a cutoff", lennard_jones(CUTOFF), lennard_jones_energy(CUTOFF), 1.0),
    ForceCase("charges", charges, charges_energy, 1.0),
    ForceCase("charges of sites", charges_of_sites, charges_of_sites_energy, 1.0),
    ForceCase("soft spheres of sites", soft_spheres_of_sites, soft_spheres_of_sites_energy, 1.0),
    ForceCase("WCA of sites", wca_of_sites, wca_of_sites_energy, 1.0),
    ForceCase("soft spheres", soft_spheres, soft_spheres_energy, 0.2),
    ForceCase("touching balls", touching_balls, touching_balls_energy, 2.0),
    ForceCase("WCA", wca, wca_energy, 1.0),
    ForceCase("Ricker of sites", ricker_of_sites, ricker_of_sites_energy, 2.0),
    ForceCase("Ricker", ricker, ricker_energy, 0.5),
    ForceCase("uniform field", uniform_field, uniform_field_energy, 5.0),
    ForceCase("harmonic trap", harmonic_trap, harmonic_trap_energy, 5.0),
    ForceCase("external field", external_field, external_field_energy, 3.0),
    ForceCase("Python force", python_force, python_force_energy, 1.0),
]  # fmt: skip


def switched(r, u, start, end):
    """An energy that is switched off from `start` to `end`, as a polynomial of five terms."""
    x = np.clip((r - start) / (end - start), 0.0, 1.0)
    return np.where(r < end, u(r) * (1.0 - 10.0 * x**3 + 15.0 * x**4 - 6.0 * x**5), 0.0)


def ending_pairs(make, energy):
    """A pair force between overlapping groups of the scene, points among them; `energy` of distances and both beads."""

    def groups(h):
        return [h["closed"], h["points"]], [h["balls"], h["points"], h["beads"]]

    def build():
        topology, h = lumpy_scene()
        return topology, make(*groups(h), exclusions=EXCLUDED)

    def total(x):
        a, b = (np.concatenate([handle.beads for handle in group]) for group in groups(lumpy_handles()))
        return np.sum(energy(distances(x, pairs_within(a, b, EXCLUDED))))

    return build, total


def morse(r):
    e = np.exp(-0.8 * (r - 4.0))
    return 3.0 * (e * e - 2.0 * e)


def yukawa(r):
    return 11.0 * np.exp(-r / 3.0) / r


TABLE = np.concatenate([[0.0], np.geomspace(0.3, 12.0, 30)])


def tabulated(r):
    return CubicSpline(TABLE, 5.0 * np.cos(0.6 * TABLE) * np.exp(-0.1 * TABLE))(r)


SIZES, CHARGED = np.linspace(1.0, 3.0, 14), np.linspace(-2.0, 2.5, 14)
TEXT = "4*e*((s/r)^6 - (s/r)^3) + c*q1*q2/r; s = (sigma1 + sigma2)/2"


def custom_pairs():
    topology, h = lumpy_scene()
    beads = [h["points"], h["balls"], h["beads"]]
    return topology, mp.forces.CustomPair(beads, beads, TEXT, cutoff=14.03, e=0.7, c=2.0, sigma=SIZES, q=CHARGED,
                                          exclusions=EXCLUDED)  # fmt: skip


def custom_pairs_energy(x):
    h = lumpy_handles()
    beads = np.concatenate([h[k].beads for k in ("points", "balls", "beads")])
    place = {bead: k for k, bead in enumerate(beads.tolist())}
    i, j = pairs_within(beads, beads, EXCLUDED)
    a, b = (np.array([place[k] for k in ends.tolist()]) for ends in (i, j))
    r, s, q = distances(x, (i, j)), 0.5 * (SIZES[a] + SIZES[b]), CHARGED[a] * CHARGED[b]
    assert np.abs(r - 14.03).min() > 0.01

    def u(r):
        return 4.0 * 0.7 * ((s / r) ** 6 - (s / r) ** 3) + 2.0 * q / r

    return np.sum(np.where(r < 14.03, u(r) - u(14.03), 0.0))


def custom_pairs_of_sites():
    """Numbers of the sites of either group, which are not those of the other."""
    topology, h = lumpy_scene()
    a, b = site_groups(h)
    return topology, mp.forces.CustomPair(a, b, "k1*exp(-r/l) + k2*r", cutoff=13.0, switch=9.0, l=3.0,
                                          k1=np.linspace(1.0, 2.0, len(a)), k2=np.linspace(-0.2, 0.4, len(b)),
                                          exclusions=[[3, 9], [0, 1], [13, 4]])  # fmt: skip


def custom_pairs_of_sites_energy(x):
    a, b = (places(s, x) for s in site_groups(lumpy_handles()))
    r = np.linalg.norm(a[:, None] - b[None], axis=-1)
    r[3, 0] = r[4, 4] = np.inf
    k1, k2 = np.linspace(1.0, 2.0, len(a))[:, None], np.linspace(-0.2, 0.4, len(b))[None]
    near = np.where(r < 13.0, r, 13.0)
    return np.sum(switched(near, lambda r: k1 * np.exp(-r / 3.0) + k2 * r, 9.0, 13.0))


ENDING = [
    ForceCase(
        "Morse, switched",
        *ending_pairs(
            lambda a, b, **k: mp.forces.Morse(a, b, 3.0, 0.8, 4.0, cutoff=10.0, switch=7.0, **k),
            lambda r: switched(r, morse, 7.0, 10.0),
        ),
        0.5,
    ),
    ForceCase(
        "Yukawa",
        *ending_pairs(
            lambda a, b, **k: mp.forces.Yukawa(a, b, 11.0, 3.0, cutoff=9.87, **k),
            lambda r: np.where(r < 9.87, yukawa(r) - yukawa(9.87), 0.0),
        ),
        0.5,
    ),
    ForceCase(
        "Yukawa of all pairs",
        *ending_pairs(lambda a, b, **k: mp.forces.Yukawa(a, b, 11.0, 3.0, **k), yukawa),
        0.5,
    ),
    ForceCase(
        "Lennard-Jones, switched",
        *ending_pairs(
            lambda a, b, **k: mp.forces.LennardJones(a, b, 0.5, 2.0, cutoff=9.0, switch=3.0, **k),
            lambda r: switched(r, lambda r: 2.0 * ((2.0 / r) ** 12 - (2.0 / r) ** 6), 3.0, 9.0),
        ),
        0.3,
    ),
    ForceCase(
        "table of pairs, switched",
        *ending_pairs(
            lambda a, b, **k: mp.forces.TabulatedPair(
                a, b, TABLE, 5.0 * np.cos(0.6 * TABLE) * np.exp(-0.1 * TABLE), 0.7, cutoff=11.5, switch=8.0, **k
            ),
            lambda r: 0.7 * switched(r, lambda r: tabulated(np.minimum(r, 12.0)), 8.0, 11.5),
        ),
        0.3,
    ),
    ForceCase("custom pairs", custom_pairs, custom_pairs_energy, 0.5),
    ForceCase("custom pairs of sites", custom_pairs_of_sites, custom_pairs_of_sites_energy, 0.5),
    ForceCase(
        "Morse along surfaces",
        along_surfaces(lambda a, b, **k: mp.forces.Morse(a, b, 2.0, 0.7, 5.0, cutoff=10.1, switch=7.0, **k)),
        along_surfaces_energy(
            lambda r: switched(r, lambda r: 2.0 * ((np.exp(-0.7 * (r - 5.0)) - 1.0) ** 2 - 1.0), 7.0, 10.1), 10.1
        ),
        0.2,
    ),
]


# Filaments --------------------------------------------------------------------------------------------------


def filament_scene(closed, constrained=True, twistable=False):
    """Filaments of several lengths among other beads, with different masses and fixed nodes: (topology, handle)."""
    rng = np.random.default_rng(23)
    topology = mp.Topology()
    topology.add_beads(rng.normal(0.0, 5.0, (3, 3)), mass=1.0)
    counts = [3, 7, 4, 12] if closed else [2, 5, 3, 2, 11, 4]
    nodes = [np.cumsum(rng.normal(0.0, 2.0, (n, 3)), axis=0) for n in counts]
    fixed = [4, 6, 17] if closed else [0, 4, 9, 15]
    mass, options = rng.uniform(0.5, 3.0, sum(counts)), {}
    if twistable:
        links = [np.diff(np.vstack([x, x[:1]]) if closed else x, axis=0) for x in nodes]
        directors = [np.cross(d, rng.normal(size=d.shape)) for d in links]
        options = {"directors": directors, "director_mass": rng.uniform(0.5, 8.0, sum(map(len, links)))}
    filaments = topology.add_filaments(nodes, mass, constrained=constrained, closed=closed, fixed_nodes=fixed,
                                       **options)  # fmt: skip
    sheet = topology.add_membrane(mp.TriangleMesh.flat_sheet(2, 2, 4.0), vertex_mass=2.0)
    topology.add_intriangle_points(sheet, 3, mass=0.5, seed=3)
    return topology, filaments


def filament_joints(closed):
    """(before, node, after) of every joint, as beads of the topology."""
    filaments, out = filament_scene(closed)[1], []
    for a, b in zip(filaments.starts.tolist(), filaments.starts.tolist()[1:], strict=False):
        beads = [filaments.kind.first_bead + i for i in range(a, b)]
        if closed:
            beads = [beads[-1], *beads, beads[0]]
        out += list(zip(beads, beads[1:], beads[2:], strict=False))
    return np.array(out)


def bending_numbers(closed, rest):
    n = len(filament_joints(closed))
    return np.linspace(3.0, 8.0, n)[::-1], np.linspace(0.0, 2.8, n) if rest else 0.0


def filament_bending(closed, rest):
    def build():
        topology, filaments = filament_scene(closed)
        return topology, mp.forces.FilamentBending(filaments, *bending_numbers(closed, rest))

    joints = filament_joints(closed)
    modulus, angle = bending_numbers(closed, rest)
    start = filament_scene(closed)[0]
    x0 = np.concatenate([handle.positions for handle in start.handles])
    length = 0.5 * sum(np.linalg.norm(x0[joints[:, k + 1]] - x0[joints[:, k]], axis=1) for k in (0, 1))

    def energy(x):
        a, b = (x[joints[:, k + 1]] - x[joints[:, k]] for k in (0, 1))
        theta = np.arctan2(np.linalg.norm(np.cross(a, b), axis=1), np.sum(a * b, axis=1))
        # Nothing near the places where rest angles leave no direction.
        assert theta.min() > 0.1
        assert theta.max() < 3.0
        return np.sum(modulus / length * (1.0 - np.cos(theta - angle)))

    kind = ("rings" if closed else "filaments") + (" with rest angles" if rest else "")
    return ForceCase(f"bending of {kind}", build, energy, 1.0)


def filament_stretching(closed):
    def build():
        topology, filaments = filament_scene(closed, constrained=False)
        moved = filaments.positions * [1.05, 0.9, 1.1]
        # The same filaments in another shape, so that nothing is at rest.
        other = mp.Topology()
        other.add_beads(topology.handles[0].positions, mass=1.0)
        strained = other.add_filaments(moved, 1.0, constrained=False, closed=closed, starts=filaments.starts,
                                       link_lengths=filaments.link_lengths)  # fmt: skip
        n = len(filaments.link_lengths)
        return other, mp.forces.FilamentStretching(strained, np.linspace(20.0, 50.0, n))

    filaments = filament_scene(closed)[1]

    def energy(x):
        out, link = 0.0, 0
        moduli = np.linspace(20.0, 50.0, len(filaments.link_lengths))
        for a, b in zip(filaments.starts.tolist(), filaments.starts.tolist()[1:], strict=False):
            nodes, first = x[filaments.kind.first_bead + a : filaments.kind.first_bead + b], filaments.positions[a:b]
            if closed:
                nodes, first = np.vstack([nodes, nodes[:1]]), np.vstack([first, first[:1]])
            for r, r0 in zip(*(np.linalg.norm(np.diff(y, axis=0), axis=1) for y in (nodes, first)), strict=True):
                out += moduli[link] / r0 * 0.5 * (r - r0) ** 2
                link += 1
        return out

    return ForceCase("stretching of " + ("rings" if closed else "filaments"), build, energy, 1.0)


def fixman(closed):
    def build():
        topology, filaments = filament_scene(closed)
        return topology, mp.forces.FixmanPotential(filaments, kT=2.5)

    filaments = filament_scene(closed)[1]
    inverse_mass = np.where(filaments.kind.fixed_beads, 0.0, 1.0 / filaments.mass)

    def energy(x):
        """From the Jacobian of all lengths, filament by filament, without what is constant."""
        out = 0.0
        for a, b in zip(filaments.starts.tolist(), filaments.starts.tolist()[1:], strict=False):
            nodes, w = x[filaments.kind.first_bead + a : filaments.kind.first_bead + b], inverse_mass[a:b]
            n = b - a
            links = [(i, (i + 1) % n) for i in range(n if closed else n - 1)]
            jacobian = np.zeros((len(links), n, 3))
            for link, (i, j) in enumerate(links):
                u = (nodes[j] - nodes[i]) / np.linalg.norm(nodes[j] - nodes[i])
                jacobian[link, i], jacobian[link, j] = -u, u
            metric = np.einsum("lnc,n,mnc->lm", jacobian, w, jacobian)
            sign, log = np.linalg.slogdet(metric)
            assert sign == 1.0
            out += 0.5 * 2.5 * (log - sum(np.log(w[i] + w[j]) for i, j in links))
        return out

    return ForceCase("Fixman potential of " + ("rings" if closed else "filaments"), build, energy, 1.0)


def filament_twisting(closed):
    joints = filament_joints(closed).tolist()
    topology, filaments = filament_scene(closed, twistable=True)
    number = {tuple(pair): link for link, pair in enumerate((filaments.kind.first_bead + filaments.links).tolist())}
    links = np.array([[number[a, b], number[b, c]] for a, b, c in joints])

    def turns(x):
        """Each director is turned with its link, by the matrix of that turn, and compared with the next."""
        out = []
        for (before, node, after), pair in zip(joints, links, strict=True):
            a, b = ((x[j] - x[i]) / np.linalg.norm(x[j] - x[i]) for i, j in ((before, node), (node, after)))
            p, q = x[filaments.directors.kind.first_bead + pair]
            p, q = p - (p @ a) * a, q - (q @ b) * b
            assert a @ b > -0.98
            axis = np.cross(a, b)
            m = np.array([[0, -axis[2], axis[1]], [axis[2], 0, -axis[0]], [-axis[1], axis[0], 0]])
            p = p + m @ p + m @ m @ p / (1.0 + a @ b)
            out.append(np.arctan2(np.cross(p, q) @ b, p @ q))
        return np.array(out)

    modulus = np.linspace(3.0, 8.0, len(joints))[::-1]
    # The kink at half a turn is far from all.
    start = np.concatenate([handle.positions for handle in topology.handles])
    rest = turns(start) + np.linspace(-2.5, 2.5, len(joints)) - 8.0 * np.pi

    def build():
        topology, filaments = filament_scene(closed, twistable=True)
        return topology, mp.forces.FilamentTwisting(filaments, modulus, rest)

    def energy(x):
        off = turns(x) - rest
        off -= 2.0 * np.pi * np.round(off / (2.0 * np.pi))
        assert np.abs(off).max() < 3.0
        return np.sum(0.5 * modulus / filaments.link_lengths[links].mean(axis=1) * off**2)

    return ForceCase("twisting of " + ("rings" if closed else "filaments"), build, energy, 1.0)


def fixman_twistable(closed):
    def build():
        topology, filaments = filament_scene(closed, twistable=True)
        return topology, mp.forces.FixmanPotential(filaments, kT=2.5)

    filaments = filament_scene(closed, twistable=True)[1]
    inverse_mass = np.where(filaments.kind.fixed_beads, 0.0, 1.0 / filaments.mass)

    def energy(x):
        """The metric of lengths and right angles, with unit vectors along links, directors as they are, and a
        diagonal that is constant."""
        links, n = filaments.links, len(filaments)
        nodes, p = x[filaments.beads], x[filaments.directors.beads]
        u = nodes[links[:, 1]] - nodes[links[:, 0]]
        u /= np.linalg.norm(u, axis=1)[:, None]
        jacobian = np.zeros((2, len(links), n, 3))
        for way, e in enumerate((u, p)):
            jacobian[way, np.arange(len(links)), links[:, 0]] = -e
            jacobian[way, np.arange(len(links)), links[:, 1]] = e
        jacobian = jacobian.reshape(2 * len(links), n, 3)
        metric = np.einsum("lnc,n,mnc->lm", jacobian, inverse_mass, jacobian)
        both = inverse_mass[links].sum(axis=1)
        diagonal = np.concatenate([both, both + filaments.link_lengths**2 / filaments.directors.mass])
        one = np.arange(2 * len(links))
        # What the right angle of a link has to do with its own length is zero where they hold.
        metric[one, np.roll(one, len(links))] = 0.0
        metric[one, one] = diagonal
        sign, log = np.linalg.slogdet(metric)
        assert sign == 1.0
        return 0.5 * 2.5 * (log - np.log(diagonal).sum())

    return ForceCase("Fixman potential of twistable " + ("rings" if closed else "filaments"), build, energy, 1.0)


FILAMENTS = [
    *[filament_bending(closed, rest) for closed in (False, True) for rest in (False, True)],
    *[filament_stretching(closed) for closed in (False, True)],
    *[fixman(closed) for closed in (False, True)],
    *[filament_twisting(closed) for closed in (False, True)],
    *[fixman_twistable(closed) for closed in (False, True)],
]


# A wall: see test_walls.py for ellipsoids. ----------------------------------------------------------------------------


LEANING = mp.boundaries.Plane([1.0, 2.0, 0.5], [3.0, 0.0, 4.0])


def wall():
    topology, h = lumpy_scene()
    return topology, mp.forces.WallRepulsion(LEANING, [h["points"], h["balls"], h["open"]], 2.0, 3.0, form="soft")


def wall_energy(x):
    h, total = lumpy_handles(), 0.0
    for name in ("points", "balls", "open"):
        depth = ([1.0, 2.0, 0.5] - x[h[name].beads]) @ [0.6, 0.0, 0.8] + getattr(h[name], "radius", 0.0)
        total += np.sum(2.0 * (np.maximum(0.0, depth) / 3.0) ** 2)
    return total


def round_wall(wall):
    """From inside and outside, for beads in front of it, at both ends, and behind it."""

    def build():
        topology, h = lumpy_scene()
        return topology, mp.forces.WallRepulsion(wall, [h["points"], h["balls"], h["open"]], 2.0, 3.0, form="soft")

    def energy(x):
        h, total = lumpy_handles(), 0.0
        a, b = (wall.center, wall.center) if isinstance(wall, mp.boundaries.Sphere) else (wall.a, wall.b)
        for name in ("points", "balls", "open"):
            # The nearest of very many places on the segment would be as good.
            s = np.clip((x[h[name].beads] - a) @ (b - a) / max(1e-9, (b - a) @ (b - a)), 0.0, 1.0)[:, None]
            out = np.linalg.norm(x[h[name].beads] - a - s * (b - a), axis=1) - wall.radius
            depth = (out if wall.inside else -out) + getattr(h[name], "radius", 0.0)
            total += np.sum(2.0 * (np.maximum(0.0, depth) / 3.0) ** 2)
        assert total > 1.0
        return total

    return build, energy


ROUND_WALLS = [
    ForceCase("wall of a cell", *round_wall(mp.boundaries.Sphere([1.0, -2.0, 3.0], 9.0)), 3.0),
    ForceCase("wall of an obstacle", *round_wall(mp.boundaries.Sphere([2.0, 1.0, 0.5], 7.0, inside=False)), 2.0),
    ForceCase("wall of a bacterium", *round_wall(mp.boundaries.Capsule([1.0, 0.0, -3.0], [5.0, 4.0, 2.0], 5.0)), 2.0),
    ForceCase("wall of a rod",
              *round_wall(mp.boundaries.Capsule([-8.0, 0.0, -3.0], [5.0, 4.0, 2.0], 4.0, inside=False)), 2.0),
]  # fmt: skip


# Collisions: see test_collisions.py for the other pairs of shapes. ----------------------------------------------------


def collisions():
    """Balls and points against each other and against the triangles of a sheet that the points do not live in."""
    topology, h = lumpy_scene()
    return topology, mp.forces.SoftCollisions([h["points"], h["open"], h["balls"]], [3.0, 5.0, 7.0], [2.0, 0.7, None])


def collisions_energy(x):
    h = lumpy_handles()
    at = np.r_[h["points"].beads, h["balls"].beads]
    radius, k = np.r_[np.full(7, 2.0), h["balls"].radius], np.r_[np.full(7, 3.0), np.full(5, 7.0)]
    i, j = np.triu_indices(12, 1)
    overlap = np.maximum(radius[i] + radius[j] - np.linalg.norm(x[at[i]] - x[at[j]], axis=1), 0.0)
    total = 0.5 * np.sum(k[i] * k[j] / (k[i] + k[j]) * overlap**2)
    corners = x[h["open"].beads][h["open"].mesh.faces]
    p = x[at][:, None, None]
    # The closest of three sides, or of the plane where its foot is inside.
    side = np.roll(corners, -1, axis=1) - corners
    along = np.clip(np.sum((p - corners) * side, -1) / np.sum(side**2, -1), 0.0, 1.0)
    r = np.linalg.norm(corners + along[..., None] * side - p, axis=-1).min(axis=-1)
    normal = np.cross(side[:, 0], side[:, 1])
    normal /= np.linalg.norm(normal, axis=1)[:, None]
    inside = (np.sum(np.cross(normal[:, None], side) * (p - corners), -1) > 0.0).all(axis=-1)
    r = np.where(inside, np.abs(np.sum(normal * (p[:, 0] - corners[:, 0]), -1)), r)
    overlap = np.maximum(radius[:, None] + 0.7 - r, 0.0)
    return total + 0.5 * np.sum((k * 5.0 / (k + 5.0))[:, None] * overlap**2)


# Oriented beads ---------------------------------------------------------------------------------------------


def rigid_scene():
    """Bodies of two handles with beads between them, in the lumpy scene."""
    rng = np.random.default_rng(31)
    topology, handles = lumpy_scene()

    def bodies(n, name):
        q = rng.normal(size=(n, 4))
        handles[name] = topology.add_rigid_bodies(rng.normal(0.0, 8.0, (n, 3)), q / np.linalg.norm(q, axis=1)[:, None],
                                                  1.0, rng.uniform(1.0, 1.9, (n, 3)))  # fmt: skip

    bodies(4, "tops")
    handles["more"] = topology.add_beads(rng.normal(0.0, 8.0, (3, 3)), mass=1.0)
    bodies(3, "rods")
    return topology, handles


def body_sites(h, anchored=True):
    """On bodies, three on each rod, one on a mean of a body and others; points, a vertex, beads."""
    arms = np.random.default_rng(32).normal(0.0, 3.0, (3, 3, 3))
    mean = mp.Sites.from_arrays(
        [0, 3, 5],
        [h["tops"].beads[2], h["points"].beads[1], h["rods"].beads[0], h["balls"].beads[0], h["tops"].beads[1]],
        [0.5, 0.2, 0.3, 1.4, -0.4], np.empty((0, 3)), [[1.0, -2.0, 0.5], [0.0, 0.0, 0.0]]
    )  # fmt: skip
    sites = h["rods"].sites(arms) + h["tops"].sites([[0.0, -1.5, 2.5]]) + mean
    sites += mp.Sites.beads([h["points"].beads[3], h["closed"].beads[5], h["tops"].beads[0], h["more"].beads[1]])
    return sites + mp.Sites.anchors([[1.0, 2.0, -3.0]]) if anchored else sites


def body_places(sites, x, q):
    tops, rods = sorted(sites.handles, key=lambda handle: handle.kind.first_bead)
    row = {bead: i for i, bead in enumerate([*tops.beads, *rods.beads])}
    out = places(sites, x)
    on_arms = np.flatnonzero(sites.arms.any(axis=1))
    rows = [row[sites.bead_numbers[sites.start[i]]] for i in on_arms]
    out[on_arms] += rotation(q[rows]).apply(sites.arms[on_arms])
    return out


def rotation(q):
    return Rotation.from_quat(np.roll(q, -1, axis=-1))


def on_bodies(name, make, energy, length, anchored=True):
    """make(sites) -> force; energy of the places of sites."""

    sites = body_sites(rigid_scene()[1], anchored)

    def build():
        topology, h = rigid_scene()
        return topology, make(body_sites(h, anchored))

    def energy_at(x, q):
        return energy(body_places(sites, x, q))

    return ForceCase(name + " on bodies" + (" with anchors" if anchored else ""), build, energy_at, length)


ENDS = {False: np.array([[0, 13], [1, 0], [4, 9], [10, 2], [15, 8], [5, 4], [16, 14], [18, 3]])}
ENDS[True] = np.array([*ENDS[False], [19, 6], [12, 19]])


def body_links(anchored):
    i, j = ENDS[anchored].T
    k, length = np.linspace(1.0, 2.5, len(i)), np.linspace(5.0, 2.0, len(i))

    def energy(x):
        r = np.linalg.norm(x[j] - x[i], axis=1)
        assert r.min() > 1.0
        return 0.5 * np.sum(k * (r - length) ** 2)

    return on_bodies("links", lambda s: mp.forces.Links(s[i], s[j], k, length), energy, 3.0, anchored)


def body_angles(n_ends):
    kind = mp.forces.AngleLinks if n_ends == 3 else mp.forces.DirectionLinks
    ends = np.array([[0, 4, 13, 1], [9, 10, 2, 17], [15, 8, 7, 1], [14, 3, 18, 16], [6, 11, 0, 2]])[:, :n_ends].T
    k, rest = np.linspace(20.0, 50.0, 5), np.linspace(0.0, 2.8, 5)

    def energy(x):
        a, b, c, d = x[ends] if n_ends == 4 else x[ends[[1, 0, 1, 2]]]
        p, q = b - a, d - c
        theta = np.arctan2(np.linalg.norm(np.cross(p, q), axis=1), np.sum(p * q, axis=1))
        assert min(np.linalg.norm(v, axis=1).min() for v in (p, q)) > 1.0
        assert theta.min() > 0.1
        assert theta.max() < 3.0
        return np.sum(k * (1.0 - np.cos(theta - rest)))

    name = "angles" if n_ends == 3 else "directions"
    return on_bodies(name, lambda s: kind(*(s[e] for e in ends), k, rest), energy, 2.0, anchored=False)


def between_sites(pair):
    def energy(x):
        i, j = np.triu_indices(len(x), 1)
        return pair(np.linalg.norm(x[j] - x[i], axis=1))

    return energy


def soft_pair(r):
    assert np.abs(r - 7.03).min() > 0.02
    assert (r < 7.03).sum() > 30
    return 0.5 * 2.0 * np.sum(np.maximum(7.03 - r, 0.0) ** 2)


def wca_pair(r):
    end = 2.0 ** (1 / 6) * 3.0
    assert np.abs(r - end).min() > 0.01
    assert (r < end).sum() > 3
    s = (3.0 / r[r < end]) ** 6
    return np.sum(4.0 * 0.8 * (s * s - s) + 0.8)


SPRING = [int(rigid_scene()[1][name].beads[i]) for name, i in (("tops", 0), ("rods", 2))]
FIELD = np.random.default_rng(33).normal(size=(20, 3))


def turning_force():
    """The axes of bodies in a field, those of the first two against each other, and a spring between."""
    topology, _ = rigid_scene()

    def function(x, q):
        a = rotation(q).apply([0.0, 0.0, 1.0])
        f = np.zeros_like(x)
        i, j = SPRING
        f[i], f[j] = 2.0 * (x[j] - x[i]), 2.0 * (x[i] - x[j])
        pull = np.zeros_like(a) + [0.3, -0.2, 1.0]
        pull[0] += a[1]
        pull[1] += a[0]
        return turning_force_energy(x, q), f, rotation(q).inv().apply(np.cross(a, pull))

    return topology, mp.forces.PythonForce(function, orientations=True)


def turning_force_energy(x, q):
    a = rotation(q).apply([0.0, 0.0, 1.0])
    return np.sum((x[SPRING[0]] - x[SPRING[1]]) ** 2) - a[0] @ a[1] - np.sum(a @ [0.3, -0.2, 1.0])


def field_on_means(kind, *numbers):
    """Sites without arms offer higher derivatives."""

    def build():
        topology, h = lumpy_scene()
        return topology, kind(mixed_ends(h)[0], *numbers)

    return build


MEANS = lumpy_ends()[0]


def trap_of_means_energy(x):
    away = places(MEANS, x) - FIELD[:9]
    return 0.5 * np.sum(np.array([1.0, 0.0, 3.0]) * away**2)


def field_of_means_energy(x):
    return -np.sum(places(MEANS, x) * FIELD[:9])


ORIENTED = [
    body_links(anchored=False),
    body_links(anchored=True),
    body_angles(3),
    body_angles(4),
    on_bodies("soft spheres", lambda s: mp.forces.SoftSphere(s, s, 2.0, 7.03), between_sites(soft_pair), 1.0, False),
    on_bodies("WCA", lambda s: mp.forces.WCA(s, s, 0.8, 3.0), between_sites(wca_pair), 0.2),
    on_bodies("charges", lambda s: mp.forces.Coulomb(s, 1.5, 3.0), between_sites(lambda r: np.sum(3.0 * 1.5**2 / r)),
              1.0, anchored=False),
    on_bodies("Ricker", lambda s: mp.forces.Ricker(s, s, 2.0, 4.0), between_sites(lambda r: well(r, 2.0, 4.0, 16.0)),
              1.0, anchored=False),
    on_bodies("uniform field", lambda s: mp.forces.UniformField(s, FIELD), lambda x: -np.sum(FIELD * x), 2.0),
    on_bodies("external field",
              lambda s: mp.forces.ExternalField(s, WRITTEN, depth=np.linspace(1.0, 3.0, 20), a=0.7, k=0.1),
              lambda x: np.sum(written(x, np.linspace(1.0, 3.0, 20), 0.7, 0.1)), 2.0),
    on_bodies("harmonic trap", lambda s: mp.forces.HarmonicTrap(s, [1.0, 0.0, 3.0], FIELD),
              lambda x: 0.5 * np.sum(np.array([1.0, 0.0, 3.0]) * (x - FIELD) ** 2), 2.0),
    ForceCase("Python force with orientations", turning_force, turning_force_energy, 1.0),
    ForceCase("trap of means", field_on_means(mp.forces.HarmonicTrap, [1.0, 0.0, 3.0], FIELD[:9]), trap_of_means_energy,
              5.0),
    ForceCase("external field of means", field_on_means(lambda s: mp.forces.ExternalField(s, WRITTEN, **SHARES)),
              lambda x: np.sum(written(places(MEANS, x), **SHARES)), 3.0),
    ForceCase("field of means", field_on_means(mp.forces.UniformField, FIELD[:9]), field_of_means_energy, 5.0),
]  # fmt: skip


CASES = [ForceCase("bonds", bonds, bonds_energy, 27.0),
         ForceCase("custom bonds", custom_bonds, custom_bonds_energy, 8.0),
         ForceCase("custom bonds of all kinds", mixed_custom_bonds, mixed_custom_bonds_energy, 4.0),
         ForceCase("edge springs", edge_springs, edge_springs_energy, 4.0),
         ForceCase("bonds of all kinds", mixed_bonds, mixed_bonds_energy, 1.5), *PENALTIES, *LINKS, *ANGLES, *MEMBRANES,
         *BETWEEN_BEADS, *ENDING, *ROUND_WALLS, *FILAMENTS, *ORIENTED,
         ForceCase("collisions", collisions, collisions_energy, 0.02),
         ForceCase("wall", wall, wall_energy, 0.05)]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_force_keeps_the_contract(case):
    check_force(case)


# What a box means nothing to, and why.
WITHOUT_BOX = {
    **dict.fromkeys(("charges", "charges of sites", "charges on bodies"), "acts at any distance"),
    **dict.fromkeys(("Lennard-Jones", "Yukawa of all pairs"), "acts at any distance"),
    **dict.fromkeys(("wall", "adhesion, wall"), "periodic along x, so that there is nothing behind a wall"),
}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_force_keeps_the_contract_in_a_box(case):
    if case.name in WITHOUT_BOX:
        refuses(mp.ParameterError, WITHOUT_BOX[case.name], check_box, case)
    else:
        check_box(case)


@pytest.mark.parametrize("case", [c for c in CASES if "Python" not in c.name], ids=lambda case: case.name)
def test_copies_and_documents_are_the_force(case):
    """With numbers that were set, name and group: the same bits. Functions of Python are in no document."""
    topology, force = case.build()
    values = {name: getattr(force, name) for name in force.changeable}
    # At once: some must stay below others.
    force.set(**{name: value / 3.0 for name, value in values.items() if isinstance(value, float | np.ndarray)})
    arguments = {**force._arguments_now(), "name": "own", "group": 3}
    force = made_anew(type(force), arguments, {})
    system = mp.System(topology)
    system.add_force(force)

    def look(system):
        context = mp.Context(system, mp.SplittingIntegrator("BAGAB" if topology.point_handles else "BAB", 1e-3))
        return context.get_state(energy=True, forces=True)

    expected, text = look(system), mp.serialize(system)
    assert mp.serialize(mp.deserialize(text)) == text
    for other in (copy.deepcopy(system), pickle.loads(pickle.dumps(system)), mp.deserialize(text)):
        again, state = other.forces[0], look(other)
        assert (again.name, again.group, repr(again)) == ("own", 3, repr(force))
        assert state.energies == expected.energies
        assert (state.forces == expected.forces).all()
        assert (state.torques == expected.torques).all()
