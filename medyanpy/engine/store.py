"""The store: every array of one Context, by place in memory, and the program that runs on them. It knows no forces."""

from itertools import count
from typing import NamedTuple

import numpy as np

from medyanpy._kernels.accumulate import Accumulator
from medyanpy._kernels.numerics import PURPOSES, normals
from medyanpy._kernels.program import Program
from medyanpy._tools.validation import array
from medyanpy.beads import InTrianglePoints
from medyanpy.columns import BEADS, Column
from medyanpy.errors import TopologyError
from medyanpy.handles import Handle
from medyanpy.layout import Layout
from medyanpy.topology import Topology

__all__ = ["Momenta", "Store", "frozen"]


class Momenta(NamedTuple):
    """Momenta beside m v: whose they are, by place, and (n, width) arrays."""

    places: slice
    p: np.ndarray
    mass: np.ndarray
    #: 0 where nothing moves.
    inverse_mass: np.ndarray


class Store:
    """Positions, velocities, masses and all else that a bead has.

    Attributes
    ----------
    layout : Layout
        Which place in memory a bead has.
    arrays : dict of str to array
        All columns, by their names in memory; those that kernels know have attributes too.
    x, v : (n, 3) float arrays, nm and nm/s
        Of in-triangle points x is derived, and v in their plane.
    mass, inverse_mass : (n,) float arrays, pN s²/nm and its inverse
        The inverse is 0 of beads that are fixed.
    orientation : (m, 4) float array
        Unit quaternions of the oriented beads.
    spin : (m, 3) float arrays
        Angular momenta in the body frames.
    triangle, barycentric : (p,) int32 and (p, 2) float arrays
        Of the in-triangle points: faces of all membranes together, and the weights of their second and third corners.
    momenta : dict of Column to Momenta
        All momenta beside m v.
    faces, opposite : (F, 3) int32 arrays
        Of all membranes: corners by place, and the corner opposite each across an edge.
    program : Program
        Runs operations on these arrays; it knows the step.
    """

    def __init__(self, topology: Topology, threads: int, seed: int) -> None:
        self.threads = threads
        self.seed = seed
        self.layout = layout = Layout(topology, threads)
        self.arrays = {c.array: c.empty(topology.n_rows(c.of)) for c in topology.columns}
        layout.arrays = self.arrays
        #: Handles with each of the columns that not all beads have.
        self._having: dict[Column, list[Handle]] = {c: [] for c in topology.columns}
        for handle in layout.handles:
            for column in handle.columns:
                if column.of != BEADS:
                    self._having[column].append(handle)
        self.x, self.v, self.orientation, self.spin, self.triangle, self.barycentric = (
            self.arrays[name] for name in ("x", "v", "orientation", "spin", "triangle", "barycentric")
        )
        self.mass = layout.gather("mass")
        self.inverse_mass = 1.0 / self.mass
        for handle in layout.handles:
            self.inverse_mass[layout.slice_of(handle)][layout.in_order(handle, handle.fixed_beads)] = 0.0
        self.momenta = {column: self._momenta(column) for column in layout.momenta}
        self.faces, self.opposite = layout.triangulation.faces, layout.triangulation.opposite
        self.membranes_move = moving = any(not p.membrane.fixed for p in topology.point_handles)
        self.program = self.make_program(
            self.v, self.mass, self.inverse_mass, [(m.p, m.inverse_mass) for m in self.momenta.values()]
        )
        #: What points push on the corners of their triangles is added up here.
        self.corners = Accumulator(layout.n_vertices if moving else 0, self.threads)
        self.before = np.empty((layout.n_vertices if moving else 0, 3))
        self._place_initially()

        self.ranges = np.array(
            [(layout.slice_of(h).start, layout.slice_of(h).stop) for h in layout.handles], np.int64
        )
        #: Kinetic energies by handle after the word's last O in the last step of a run; nan if not measured.
        self.after_o = np.full(len(layout.handles), np.nan)

    def _momenta(self, column: Column) -> Momenta:
        """As (n, width), with the masses that handles give."""
        n, first = self.layout.topology.n_rows(column.of), self.layout.first_place(column.of)
        mass, inverse = np.ones((n, *column.shape)), np.zeros((n, *column.shape))
        for handle in self._having[column]:
            rows = self.layout.rows_of(handle)
            own = np.broadcast_to(getattr(handle, column.mass), (len(handle), *column.shape))
            mass[rows] = self.layout.in_order(handle, own)
            moves = np.broadcast_to(handle.moves(column), own.shape)
            inverse[rows] = self.layout.in_order(handle, np.where(moves, 1.0 / own, 0.0))
        flat = (a.reshape(n, column.width) for a in (self.arrays[column.array], mass, inverse))
        return Momenta(slice(first, first + n), *flat)

    def _place_initially(self) -> None:
        for column, handles in self._having.items():
            for handle in handles:
                start = np.broadcast_to(handle.start_of(column), (len(handle), *column.shape))
                rows = self.layout.rows_of(handle)
                self.arrays[column.array][rows] = self.layout.in_order(handle, start)
        self.place_at_start()

    def place_at_start(self) -> None:
        """Put the beads that have positions of their own where they were when they were added."""
        for handle in self.layout.handles:
            if not isinstance(handle, InTrianglePoints):
                self.x[self.layout.slice_of(handle)] = handle.positions

    def moving(self) -> dict[str, np.ndarray]:
        """What steps change, by the names that checkpoints use; positions of in-triangle points are derived."""
        faces = {"faces": self.faces} if self.layout.triangulation.may_change else {}
        return self.arrays | {"x": self.x[: self.layout.n_cartesian]} | faces

    def places(self) -> list[np.ndarray]:
        """The arrays that say where everything is."""
        moving = self.moving()
        return [moving[column.array] for column in self.layout.topology.columns if not column.is_momentum]

    def set_together(self) -> list[list[Column]]:
        """The columns that not all beads have, in groups as `checked` takes them; of those that have rows."""
        groups: dict[tuple[str, str], list[Column]] = {}
        for column, handles in self._having.items():
            if handles:
                groups.setdefault((column.of, column.role), []).append(column)
        return list(groups.values())

    def shown(self, column: Column, held: np.ndarray | None = None) -> np.ndarray:
        """The rows of a column, or of another array of its kind, in topology order, as users see them."""
        rows = (self.arrays[column.array] if held is None else held)[self.layout.shown_rows(column.of)]
        if column.shown is None:
            return frozen(rows)
        out = np.empty((len(rows), *column.shown), column.dtype)
        for handle in self._having[column]:
            out[handle.rows] = handle.shown(column, rows[handle.rows])
        return frozen(out)

    def checked(self, what: str, given: dict[Column, np.ndarray]) -> dict[Column, np.ndarray]:
        """Rows that users give for columns of one role and `of`, as memory is to hold them; TopologyError naming the
        first bad one."""
        of = next(iter(given)).of
        n, rows = self.layout.topology.n_rows(of), self.layout.shown_rows(of)
        given = {
            c: array(
                f"{what}: {c.name}",
                values,
                (n, *c.shown_shape),
                dtype=np.float64 if c.dtype is np.float64 else np.int64,
                error=TopologyError,
            )
            for c, values in given.items()
        }
        out = {c: c.empty(n) for c in given}
        for handle in dict.fromkeys(handle for c in given for handle in self._having[c]):
            own = {c: values[handle.rows] for c, values in given.items() if c in handle.columns}
            for c, taken in handle.taken(f"{what}: {handle.name}", own).items():
                out[c][rows[handle.rows]] = taken
        return out

    def draw_momenta(self, kT: float, seed: int, since: int = 0) -> None:
        """Velocities and other momenta from Maxwell's distribution, also of what does not move; of beads from number
        `since` on."""
        # Three numbers at a time, each with a counter of its own.
        counter = count(0)
        spread = np.sqrt(kT / self.mass)[:, None]
        others = [(m.p, m.places, np.sqrt(kT * m.mass)) for m in self.momenta.values()]
        for p, places, scale in [(self.v, slice(None), spread), *others]:
            rows = np.flatnonzero(self.layout.order[places] >= since)
            beads, three = self.layout.order[places][rows], np.empty((len(rows), 3))
            for first in range(0, p.shape[1], 3):
                normals(three, beads, seed, 0, 0, next(counter), PURPOSES["velocities"])
                own = slice(first, min(first + 3, p.shape[1]))
                p[rows, own] = three[:, : own.stop - first] * scale[rows, own]

    def make_program(
        self, v: np.ndarray, mass: np.ndarray, inverse_mass: np.ndarray, momenta: list[tuple[np.ndarray, np.ndarray]]
    ) -> Program:
        """A program that moves the beads of this context, with velocities, momenta and masses of its own."""
        oriented = self.layout.n_oriented > 0
        spin, inverse_inertia = momenta[0] if oriented else (None, None)
        others = list(zip(self.layout.momenta, momenta, strict=True))[oriented:]
        return Program(
            x=self.x,
            v=v,
            mass=mass,
            inverse_mass=inverse_mass,
            id=self.layout.order,
            n_vertices=self.layout.n_vertices,
            faces=self.faces,
            opposite=self.opposite,
            triangle=self.triangle,
            barycentric=self.barycentric,
            membranes_move=self.membranes_move,
            seed=self.seed,
            threads=self.threads,
            first_oriented=self.layout.first_oriented,
            orientation=self.orientation,
            spin=spin,
            inverse_inertia=inverse_inertia,
            momenta=[(self.layout.first_place(column.of), *own) for column, own in others],
        )

    @property
    def step(self) -> int:
        """Steps taken so far."""
        return self.program.step

    def positions_changed(self) -> None:
        """Positions have been set from outside."""
        self.program.changed()
        self.after_o[:] = np.nan

    def movable_beads(self) -> np.ndarray:
        """(n,) whether each bead, by place, is free to move."""
        return self.inverse_mass > 0.0

    def masses(self) -> np.ndarray:
        """(n,) pN s²/nm; by place."""
        return self.mass.copy()

    def step_lengths(self) -> np.ndarray:
        """(n,) nm; how far each bead, by place, moves while its coordinates change by 1."""
        return self.layout.gather("step_lengths")

    def radii(self, momenta: "Momenta") -> np.ndarray:
        """(n, width) nm per unit of the coordinates that belong to momenta: how far they move mass, by the ratio of
        generalised and plain masses; of rotations the radii of gyration."""
        return np.sqrt(momenta.mass / self.mass[momenta.places, None])

    def shortest_length(self) -> float:
        """nm; the shortest edge of meshes and link of filaments, or, without any, roughly the distance of beads."""
        edges = []
        for handle in self.layout.handles:
            joined = handle.joined
            if len(joined):
                x = self.x[self.layout.slice_of(handle)]
                edges.append(np.linalg.norm(x[joined[:, 1]] - x[joined[:, 0]], axis=1).min())
        if edges:
            return float(min(edges))
        with np.errstate(over="ignore"):
            extent = float(np.linalg.norm(np.ptp(self.x, axis=0)))
        return extent / self.layout.n ** (1 / 3) if 0.0 < extent < np.inf else 1.0


def frozen(a: np.ndarray) -> np.ndarray:
    """An array that nobody can write to any more."""
    a.flags.writeable = False
    return a
