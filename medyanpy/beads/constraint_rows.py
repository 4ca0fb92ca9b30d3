"""Rows of constraints: what they hold, and their Lagrange multipliers."""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from medyanpy._tools.images import displacement
from medyanpy._tools.quaternions import turned
from medyanpy.errors import SimulationError
from medyanpy.surfaces.forms import Form

if TYPE_CHECKING:
    from medyanpy.core.handles import Handle
    from medyanpy.topology import Topology

__all__ = ["INDEPENDENT", "Bodies", "Feet", "Rows", "solved"]

#: Rows of unit length with a least singular value below this depend on each other.
INDEPENDENT = 1e-6


class Rows(NamedTuple):
    """Constraints g = 0 of one form, of one handle.

    Attributes
    ----------
    form : Form
    beads : (m, k) int
        Rows of the topology.
    own : (m, q) float
        Numbers of each.
    scale : (m,) float, nm
        Largest deviation of a constraint.
    group : (m,) int
        Numbers, within the handle, of groups that it solves together, or would solve.
    label : callable (i) -> str
        Name of the i-th in messages.
    share : float
        The handle's multipliers are those of this form times it.
    arms : (m, k, 3) float or None, nm
        What it holds is so far away from each bead, in the frame of the bead, which is an oriented one where the arm
        is not zero; None where it holds the beads themselves.
    """

    form: Form
    beads: np.ndarray
    own: np.ndarray
    scale: np.ndarray
    group: np.ndarray
    label: Callable[[int], str]
    share: float = 1.0
    arms: np.ndarray | None = None

    def places(self, x: np.ndarray, q: np.ndarray) -> np.ndarray:
        """Return what it holds, (m, k, 3) nm, with positions (n, 3) and orientations (n, 4) of all beads."""
        out: np.ndarray = x[self.beads] + self.in_space(q, self.arms)
        return out

    def in_space(self, q: np.ndarray, vectors: np.ndarray | None) -> np.ndarray | float:
        """Return vectors (m, k, 3) of the frames of its beads in space; 0 for None."""
        if vectors is None:
            return 0.0
        out: np.ndarray = turned(q[self.beads].reshape(-1, 4), vectors.reshape(-1, 3)).reshape(vectors.shape)
        return out

    def torques(self, q: np.ndarray, slopes: np.ndarray) -> np.ndarray:
        """Return the torques (m, k, 3), in the frames of the beads, of gradients (m, k, 3) at what it holds."""
        if self.arms is None:
            return np.zeros_like(slopes)
        back = q * [1.0, -1.0, -1.0, -1.0]
        return np.cross(self.arms, self.in_space(back, slopes))


class Bodies(NamedTuple):
    """Orientations, momenta and torques of what turns, in rows for all beads (n, ...): others have 0, and the
    orientation 1."""

    orientations: np.ndarray
    momenta: np.ndarray
    torques: np.ndarray
    rates: np.ndarray

    @classmethod
    def of(cls, topology: "Topology", orientations: np.ndarray | None = None, **rows: np.ndarray) -> "Bodies":
        """Return them from rows of the oriented beads of a topology, as its states have these; orientations are those
        of the start where none are given."""
        n = topology.n_beads
        out = cls(np.tile([1.0, 0.0, 0.0, 0.0], (n, 1)), *(np.zeros((n, 3)) for _ in range(3)))
        for handle in topology.oriented_handles:
            if len(handle):
                out.orientations[handle.beads] = handle.orientations
                out.rates[handle.beads] = np.where(handle.kind.held[:, 1:], 0.0, 1.0 / handle.inertia)
        if orientations is not None:
            out.orientations[topology.beads_with("oriented")] = orientations
        for name, values in rows.items():
            getattr(out, name)[topology.beads_with("oriented")] = values
        return out


class Feet(NamedTuple):
    """Where in-triangle points stand: rows (p, ...) for all in a topology.

    Attributes
    ----------
    of : (n,) int
        The row of each bead, -1 of those that are no points.
    beads : (p,) int
    corners : (p, 3) int
        Beads of the topology.
    weights : (p, 3) float
    edges : (p, 2, 3) float, nm
        From the first corner to the others: the columns of A.
    normals : (p, 3) float
        Of unit length, of their triangles.
    """

    of: np.ndarray
    beads: np.ndarray
    corners: np.ndarray
    weights: np.ndarray
    edges: np.ndarray
    normals: np.ndarray

    @classmethod
    def at_start(cls, topology: "Topology") -> "Feet":
        """Return where they start."""
        x, given = np.zeros((topology.n_beads, 3)), []
        for points in topology.point_handles:
            membrane = points.membrane
            x[membrane.beads] = membrane.mesh.vertices
            given.append((points.beads, membrane.beads[membrane.mesh.faces[points.triangles]], points.barycentric))
        return cls.standing(x, given, np.zeros(3))

    @classmethod
    def standing(
        cls, x: np.ndarray, given: list[tuple[np.ndarray, np.ndarray, np.ndarray]], box: np.ndarray
    ) -> "Feet":
        """Return them from positions (n, 3), and of each handle beads (k,), corners (k, 3) and weights (k, 3), in a box
        of these lengths, 0 in open directions."""
        parts = [(np.empty(0, np.int64), np.empty((0, 3), np.int64), np.empty((0, 3))), *given]
        beads, corners, weights = (np.concatenate(values) for values in zip(*parts, strict=True))
        of = np.full(len(x), -1)
        of[beads] = np.arange(len(beads))
        edges = displacement(x[corners[:, :1]], x[corners[:, 1:]], box)
        normals = np.cross(edges[:, 0], edges[:, 1])
        return cls(of, beads, corners, weights, edges, normals / np.linalg.norm(normals, axis=1)[:, None])

    def passed_on(self, beads: np.ndarray, slopes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return beads (m, 4k) and gradients (m, 4k, 3) by their own coordinates, of gradients (m, k, 3) at beads.

        Of points those in their planes, and those of the corners, which they ride on."""
        if not len(self.beads):
            return beads, slopes
        row = self.of[beads]
        stands = (row >= 0)[:, :, None]
        mine = np.repeat(beads[:, :, None], 4, axis=2)
        out = np.zeros((*mine.shape, 3))
        normal = np.where(stands, self.normals[row], 0.0)
        out[:, :, 0] = slopes - normal * np.sum(normal * slopes, axis=-1)[:, :, None]
        mine[:, :, 1:] = np.where(stands, self.corners[row], mine[:, :, 1:])
        out[:, :, 1:] = np.where(stands, self.weights[row], 0.0)[..., None] * slopes[:, :, None]
        m = len(beads)
        return mine.reshape(m, -1), out.reshape(m, -1, 3)

    def motion(
        self, v: np.ndarray, forces: np.ndarray, mass: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return velocities in space (n, 3) of all beads, accelerations (n, 3) that points have without any forces, and
        forces (n, 3) with what points pass on to corners, and with their recoils.

        With λ' = G⁻¹Aᵀv and u = A'λ', from x' = v + Σ λ_i V_i and (G λ')' = Aᵀf/m follows
        x'' = P f/m - A G⁻¹A'ᵀv - P u + 2u + Σ λ_i V_i'.
        """
        A = np.swapaxes(self.edges, 1, 2)
        inverse = np.linalg.inv(self.edges @ A)
        own, corners = v[self.beads], v[self.corners]
        rates = np.einsum("pij,pjc,pc->pi", inverse, self.edges, own)
        bent = corners[:, 1:] - corners[:, :1]
        u = np.einsum("pi,pic->pc", rates, bent)
        back = np.einsum("pci,pij,pjd,pd->pc", A, inverse, bent, own)
        flat = u - self.normals * np.sum(self.normals * u, axis=1)[:, None]
        speeds, more, pushes = v.copy(), np.zeros_like(v), forces.copy()
        speeds[self.beads] += np.einsum("pi,pic->pc", self.weights, corners)
        more[self.beads] = 2.0 * u - flat - back
        all_rates = np.column_stack([-rates.sum(axis=1), rates])
        np.add.at(pushes, self.corners, self.weights[:, :, None] * forces[self.beads][:, None])
        np.add.at(pushes, self.corners, mass[self.beads][:, None, None] * all_rates[:, :, None] * own[:, None])
        return speeds, more, pushes


def solved(
    handle: "Handle", parts: list[tuple[Rows, np.ndarray]], x: np.ndarray, v: np.ndarray, forces: np.ndarray,
    bodies: Bodies | None = None, feet: Feet | None = None,
) -> list[np.ndarray]:  # fmt: skip
    """Return the multipliers, as handles give them, of the numbers (m,) in each part of constraints: those with which
    the second derivatives of all are 0. Positions, velocities and forces are (n, 3), in topology order; bodies are
    there where any part has arms, and in-triangle points as they stand where any part holds such points.

    Raises
    ------
    SimulationError
        Multipliers that are not determined; it names the handle.
    """
    from scipy import sparse
    from scipy.sparse import linalg

    weight, mass, more = np.zeros(len(x)), np.zeros(len(x)), np.zeros_like(x)
    for other in handle.topology.handles:
        if len(other):
            mass[other.beads] = other.mass
            weight[other.beads] = np.where(other.kind.fixed_beads, 0.0, 1.0 / other.mass)
    if feet is not None:
        v, more, forces = feet.motion(v, forces, mass)
    ends = np.cumsum([len(number) for _, number in parts])
    at, columns, values, bends = [], [], [], []
    w, push, size = np.repeat(weight, 3), forces.ravel(), x.size
    if bodies is not None:
        # Behind positions there are angles, in the frames of bodies.
        spin = bodies.rates * bodies.momenta
        w = np.append(w, bodies.rates)
        push = np.append(push, bodies.torques + np.cross(bodies.momenta, spin))
        size *= 2
    for end, (rows, number) in zip(ends, parts, strict=True):
        rows = rows._replace(
            beads=rows.beads[number], own=rows.own[number], arms=None if rows.arms is None else rows.arms[number]
        )
        beads = rows.beads
        places, speeds = x[beads], v[beads]
        if bodies is not None and rows.arms is not None:
            places, turns = rows.places(x, bodies.orientations), np.cross(spin[beads], rows.arms)
            speeds = speeds + rows.in_space(bodies.orientations, turns)
        slopes = rows.form.at(places, rows.own)[1]
        bends.append(rows.form.bends(places, rows.own, speeds) + np.einsum("mkc,mkc->m", slopes, more[beads]))
        row, column = np.arange(end - len(number), end), (3 * beads[:, :, None] + np.arange(3)).ravel()
        mine, own = (beads, slopes) if feet is None else feet.passed_on(beads, slopes)
        at.append(np.repeat(row, 3 * mine.shape[1]))
        columns.append((3 * mine[:, :, None] + np.arange(3)).ravel())
        values.append(own.ravel())
        if bodies is not None and rows.arms is not None:
            inward = rows.in_space(bodies.orientations, np.cross(spin[beads], turns))
            bends[-1] = bends[-1] + np.einsum("mkc,mkc->m", slopes, inward)
            at.append(np.repeat(row, 3 * rows.form.beads))
            columns.append(x.size + column)
            values.append(rows.torques(bodies.orientations, slopes).ravel())
    entries = np.concatenate(values), (np.concatenate(at), np.concatenate(columns))
    gradient = sparse.coo_array(entries, shape=(int(ends[-1]), size)).tocsr()
    right = gradient @ (w * push) + np.concatenate(bends)
    # Rows of unit length, so that pivots can be compared.
    size = np.sqrt(gradient.multiply(gradient) @ w)
    unit = sparse.diags_array(1.0 / size) @ gradient
    try:
        factors = linalg.splu((unit @ sparse.diags_array(w) @ unit.T).tocsc())
        determined = np.abs(factors.U.diagonal()).min() > INDEPENDENT**2
    except RuntimeError:
        # Exactly singular.
        determined = False
    if not determined:
        raise SimulationError(
            f"{handle!r}: the multipliers of its constraints are not determined: they depend on others here",
            object=handle.name,
        )
    found = np.split(factors.solve(right / size) / size, ends[:-1])
    return [rows.share * own for (rows, _), own in zip(parts, found, strict=True)]
