"""Rows of constraints: what they hold, and their Lagrange multipliers."""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from medyanpy._tools.quaternions import turned
from medyanpy.errors import SimulationError
from medyanpy.surfaces.forms import Form

if TYPE_CHECKING:
    from medyanpy.core.handles import Handle
    from medyanpy.topology import Topology

__all__ = ["INDEPENDENT", "Bodies", "Rows", "solved"]

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


def solved(
    handle: "Handle", parts: list[tuple[Rows, np.ndarray]], x: np.ndarray, v: np.ndarray, forces: np.ndarray,
    bodies: Bodies | None = None,
) -> list[np.ndarray]:  # fmt: skip
    """Return the multipliers, as handles give them, of the numbers (m,) in each part of constraints: those with which
    the second derivatives of all are 0. Positions, velocities and forces are (n, 3), in topology order; bodies are
    there where any part has arms.

    Raises
    ------
    SimulationError
        Multipliers that are not determined; it names the handle.
    """
    from scipy import sparse
    from scipy.sparse import linalg

    weight = np.zeros(len(x))
    for other in handle.topology.handles:
        if len(other):
            weight[other.beads] = np.where(other.kind.fixed_beads, 0.0, 1.0 / other.mass)
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
        bends.append(rows.form.bends(places, rows.own, speeds))
        row, column = np.arange(end - len(number), end), (3 * beads[:, :, None] + np.arange(3)).ravel()
        at.append(np.repeat(row, 3 * rows.form.beads))
        columns.append(column)
        values.append(slopes.ravel())
        if bodies is not None and rows.arms is not None:
            inward = rows.in_space(bodies.orientations, np.cross(spin[beads], turns))
            bends[-1] = bends[-1] + np.einsum("mkc,mkc->m", slopes, inward)
            at.append(at[-1])
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
