"""Penalties in place of constraints and potentials of their metric, and their energies written again."""

import numpy as np
from references.scenes import PAIRS, R0, loose_beads, lumpy_handles, lumpy_scene, mixed_pairs, mixed_triples

import medyanpy as mp
from medyanpy.testing import ForceCase

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
