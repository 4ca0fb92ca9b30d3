"""The store: every array of one Context, by place in memory, and the program that runs on them. It knows no forces."""


import numpy as np

from medyanpy._kernels.accumulate import Accumulator
from medyanpy._kernels.program import Program
from medyanpy.beads import InTrianglePoints
from medyanpy.layout import Layout
from medyanpy.state import InTriangle
from medyanpy.topology import Topology

__all__ = ["Store", "frozen"]


class Store:
    """Positions, velocities, masses and all else that a bead has.

    Attributes
    ----------
    layout : Layout
        Which place in memory a bead has.
    x, v : (n, 3) float arrays, nm and nm/s
        Of in-triangle points x is derived, and v in their plane.
    mass, inverse_mass : (n,) float arrays, pN s²/nm and its inverse
        The inverse is 0 of beads that are fixed.
    orientation : (m, 4) float array
        Unit quaternions of the oriented beads.
    spin, inertia, inverse_inertia : (m, 3) float arrays
        Angular momenta and moments in the body frames.
    triangle, barycentric : (p,) int32 and (p, 2) float arrays
        Of the in-triangle points: faces of all membranes together, and the weights of their second and third corners.
    faces, opposite : (F, 3) int32 arrays
        Of all membranes: corners by place, and the corner opposite each across an edge.
    program : Program
        Runs operations on these arrays; it knows the step.
    """

    def __init__(self, topology: Topology, threads: int, seed: int) -> None:
        self.threads = threads
        self.seed = seed
        self.layout = layout = Layout(topology, threads)
        n = layout.n
        self.x = np.zeros((n, 3))
        self.v = np.zeros((n, 3))
        self.mass = layout.gather("mass")
        self.inverse_mass = 1.0 / self.mass
        for handle in layout.handles:
            self.inverse_mass[layout.slice_of(handle)][layout.in_order(handle, handle.fixed_beads)] = 0.0
        self.orientation = np.empty((layout.n_oriented, 4))
        self.spin = np.zeros((layout.n_oriented, 3))
        self.inertia = np.ones((layout.n_oriented, 3))
        self.inverse_inertia = np.empty((layout.n_oriented, 3))
        for handle in layout.oriented:
            self.orientation[handle.rows] = handle.orientations
            self.inertia[handle.rows] = handle.inertia
            self.inverse_inertia[handle.rows] = np.where(handle.held[:, 1:], 0.0, 1.0 / handle.inertia)
        self.triangle = np.empty(layout.n_points, np.int32)
        self.barycentric = np.empty((layout.n_points, 2))
        self.faces, self.opposite = self._join_meshes()
        self.membranes_move = moving = any(not p.membrane.fixed for p in topology.point_handles)
        self.program = self.make_program(
            self.v, self.mass, self.inverse_mass, self.spin, self.inverse_inertia
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

    def _join_meshes(self) -> tuple[np.ndarray, np.ndarray]:
        """Faces and opposite corners of all membranes together."""
        faces = [np.empty((0, 3), np.int32)]
        opposite = [np.empty((0, 3), np.int32)]
        for membrane in self.layout.topology.membranes:
            faces.append(self.layout.faces(membrane))
            corners = membrane.mesh.opposite_corners
            opposite.append(np.where(corners < 0, corners, corners + 3 * membrane.first_face).astype(np.int32))
        return np.concatenate(faces), np.concatenate(opposite)

    def _place_initially(self) -> None:
        for handle in self.layout.handles:
            rows = self.layout.slice_of(handle)
            if isinstance(handle, InTrianglePoints):
                self.put_points(handle, handle.triangles, handle._weights)
            else:
                self.x[rows] = handle.positions

    def put_points(self, handle: InTrianglePoints, triangles: np.ndarray, weights: np.ndarray) -> None:
        """Write faces (n,) of the handle's own mesh and the weights (n, 2) of their second and third corners."""
        rows = self.layout.points_of(handle)
        self.triangle[rows] = triangles + handle.membrane.first_face
        self.barycentric[rows] = weights

    def make_program(
        self,
        v: np.ndarray,
        mass: np.ndarray,
        inverse_mass: np.ndarray,
        spin: np.ndarray,
        inverse_inertia: np.ndarray,
    ) -> Program:
        """A program that moves the beads of this context, with velocities, angular momenta and masses of its own."""
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

    def turning_axes(self) -> np.ndarray:
        """(m, 3) whether each oriented bead is free to turn about each of its axes."""
        return self.inverse_inertia > 0.0

    def step_lengths(self) -> np.ndarray:
        """(n,) nm; how far each bead, by place, moves while its coordinates change by 1."""
        return self.layout.gather("step_lengths")

    def gyration_radii(self) -> np.ndarray:
        """(m, 3) nm; how far mass is from each axis of the oriented beads: what turning by 1 radian moves it."""
        return np.sqrt(self.inertia / self.mass[self.layout.oriented_places, None])

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

    def intriangle(self) -> InTriangle:
        triangles = np.empty(self.layout.n_points, np.int32)
        barycentric = np.empty((self.layout.n_points, 3))
        for handle in self.layout.topology.point_handles:
            rows = self.layout.points_of(handle)
            triangles[handle.points] = self.triangle[rows] - handle.membrane.first_face
            barycentric[handle.points, 1:] = self.barycentric[rows]
        barycentric[:, 0] = (1.0 - barycentric[:, 1]) - barycentric[:, 2]
        return InTriangle(frozen(triangles), frozen(barycentric))


def frozen(a: np.ndarray) -> np.ndarray:
    """An array that nobody can write to any more."""
    a.flags.writeable = False
    return a
