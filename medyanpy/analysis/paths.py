"""Distances of in-triangle points along their membrane, and their pair correlation."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from medyanpy._tools.images import box_shown
from medyanpy._tools.names import look_up
from medyanpy._tools.validation import number, whole_number
from medyanpy._tools.validation import seed as checked_seed
from medyanpy.analysis.estimates import PARTS, cuts, jackknife
from medyanpy.analysis.frames import Source
from medyanpy.analysis.pairs import RadialDistribution
from medyanpy.analysis.surfaces import Patch, Surfaces
from medyanpy.beads import InTrianglePoints, Membrane
from medyanpy.context import Context
from medyanpy.errors import ParameterError, TopologyError
from medyanpy.files.segments import TrajectoryHandle
from medyanpy.files.trajectory import Frames
from medyanpy.forces import SoftSphere
from medyanpy.integrators import SplittingIntegrator
from medyanpy.mesh import TriangleMesh
from medyanpy.system import System
from medyanpy.topology import Topology

__all__ = ["Look", "Places", "Points", "SurfaceDistances", "surface_distances", "surface_radial_distribution"]

#: Triangles (n,) and weights of their corners (n, 3).
Places = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class SurfaceDistances:
    """Distances of points from each other along their membrane, in one frame.

    Attributes
    ----------
    pairs : (k, 2) int array
        Rows of beads of each pair within the reach, the lower first; in ascending order.
    distance : (k,) float array, nm
        Length of the shortest path over the triangles.
    """

    pairs: np.ndarray
    distance: np.ndarray


def surface_distances(source: Any, points: Any, *, reach: float) -> SurfaceDistances | list[SurfaceDistances]:
    """Return distances of in-triangle points from each other along their membrane.

    Exact: lengths of the shortest paths over the triangles as they are in each frame, as pair forces with
    ``along_surface=True`` have them.

    Parameters
    ----------
    source : State or Frame, list of these, Trajectory or slice of one
    points : handle or its name
        In-triangle points.
    reach : float, nm, > 0
        The largest distance. Time is proportional to the number of points and to the square of the reach in edges.

    Returns
    -------
    SurfaceDistances, or a list of them
        A list, unless one frame is given.

    Raises
    ------
    ParameterError
        Arrays of positions, which do not have triangles; a reach beyond half of the box.
    TopologyError
        Points that are not in-triangle points.
    SimulationError
        A reach of more than about a hundred edges, or triangles without area.

    Examples
    --------
    >>> import medyanpy as mp
    >>> topology = mp.Topology()
    >>> vesicle = topology.add_membrane(mp.TriangleMesh.icosphere(10.0, 3), vertex_mass=1.0)
    >>> points = topology.add_intriangle_points(vesicle, 3, mass=1.0, seed=4)
    >>> state = mp.Context(mp.System(topology), mp.SplittingIntegrator("AGBGA", 0.01)).get_state(positions=True)
    >>> found = mp.analysis.surface_distances(state, points, reach=40.0)
    >>> (found.pairs - points.beads[0]).tolist(), found.distance.round(1).tolist()
    ([[0, 1], [0, 2], [1, 2]], [19.1, 12.5, 12.8])
    """
    what = "surface_distances"
    frames = Points(what, source, points)
    far = number(f"{what}: reach", reach, above=0.0)
    found = [frames.distances(one, far)[0] for one in frames]
    return found[0] if frames.one else found


def surface_radial_distribution(
    source: Any, points: Any, *, r_max: float, bins: int = 100, seed: int = 0
) -> RadialDistribution:
    r"""Return the pair correlation g(r) of in-triangle points by their distance along the membrane.

    .. math:: g(r) = \frac{\text{pairs at the distance } r}{\text{pairs at the distance } r \text{ of an ideal gas}}

    The ideal gas is as many points, drawn evenly over the triangles of each frame. This is right on any membrane,
    curved, closed or with borders.

    Parameters
    ----------
    source, points
        As of `surface_distances`.
    r_max : float, nm, > 0
        The largest distance; see `surface_distances` for the cost.
    bins : int, >= 1
        Of equal width.
    seed : int, >= 0
        Of the gas.

    Returns
    -------
    RadialDistribution
        Errors are those of the jackknife over 20 blocks of frames, or single frames, where there are fewer, and include
        that of the gas; nan of one frame.

    Raises
    ------
    ParameterError, TopologyError, SimulationError
        As `surface_distances`; no frame with a pair of points.
    """
    what = "surface_radial_distribution"
    frames = Points(what, source, points)
    far = number(f"{what}: r_max", r_max, above=0.0)
    edges = np.linspace(0.0, far, whole_number(f"{what}: bins", bins, at_least=1) + 1)
    rng = np.random.default_rng(checked_seed(f"{what}: seed", seed))
    counts = []
    for one in frames:
        own, gas = frames.distances(one, far, rng)
        counts.append([np.histogram(found.distance, edges)[0] for found in (own, gas)])
    blocks = cuts(len(counts), PARTS)
    sums, ideal = (
        np.array([np.sum([c[k] for c in counts[i:j]], axis=0) for i, j in blocks], float) for k in (0, 1)
    )
    if not ideal.any():
        raise ParameterError(f"{what}: no frame has a pair of points within r_max = {far:g} nm")
    with np.errstate(invalid="ignore", divide="ignore"):
        value, error = jackknife(sums, ideal, lambda total, n: total / n)
    some = ideal.sum(axis=0) > 0.0
    value, error = (np.where(some, one, np.nan) for one in (value, error))
    # From either end, as of other distances.
    both = 2 * sums.sum(axis=0).astype(np.int64)
    return RadialDistribution(edges, 0.5 * (edges[1:] + edges[:-1]), value, error, both)


# How it is done -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Look:
    """Membrane and points in one frame.

    Of the points that are there: rows, numbers among `Points.rows`, permanent ids, triangles and weights.
    """

    patch: Patch
    rows: np.ndarray
    numbers: np.ndarray
    ids: np.ndarray
    triangles: np.ndarray
    weights: np.ndarray


class _Paths(SoftSphere):
    """Pair force that only provides its shortest paths.

    No step is made, so that no timestep is estimated, which would take most of the time.
    """

    def squared_frequencies(self, start: Any) -> None:
        return None


class Points:
    """Points of a membrane in all frames; iterate over it.

    Attributes
    ----------
    frames : Source
    rows : (n,) int array
        Of all beads that may be there, ascending.
    """

    def __init__(self, what: str, source: Any, points: Any) -> None:
        self.what = what
        named = source._trajectory if isinstance(source, Frames) else source
        if isinstance(points, str) and hasattr(named, "handles"):
            points = look_up(named.handles, points, "handle", TopologyError)
        on = getattr(points, "membrane", None)
        if not isinstance(points, InTrianglePoints | TrajectoryHandle) or on is None:
            raise TopologyError(f"{what}: points must be the handle of in-triangle points, not {points!r}")
        self._surfaces = Surfaces(what, source, on if isinstance(on, Membrane | str) else on.name, None, None)
        self.frames: Source = self._surfaces.frames
        self.one: bool = self._surfaces.one
        if self.frames.times is None:
            raise ParameterError(f"{what}: positions have no triangles: give states, frames or a trajectory")
        # Also rows that points may get later.
        self.rows: np.ndarray = points.beads if isinstance(points, TrajectoryHandle) else points.kind.all_rows
        rows: Any = points.points
        if not isinstance(points, TrajectoryHandle):
            rows = points.topology.rows_in(points.kind.rows_of, self.rows)
        self._points = np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows
        self._mesh: TriangleMesh | None = None

    def __iter__(self) -> Iterator[Look]:
        frames: Any = self.frames._trajectory if self.frames._trajectory is not None else self.frames._frames
        for frame, patch in zip(frames, self._surfaces, strict=True):
            held = getattr(frame, "intriangle", frame)
            triangles, weights, ids = held.triangles, held.barycentric, frame.ids
            # States of before an edit may have fewer rows.
            known = np.flatnonzero((self._points < len(triangles)) & (self.rows < len(ids)))
            rows = self._points[known]
            triangles, weights, ids = triangles[rows], weights[rows], ids[self.rows[known]]
            there = (triangles >= 0) & ~np.isnan(weights).any(axis=1) & (ids >= 0)
            known = known[there]
            yield Look(patch, self.rows[known], known, ids[there], triangles[there], weights[there])

    def distances(self, look: Look, reach: float, rng: Any = None) -> list[SurfaceDistances]:
        """Return distances of the points and, with a generator, of as many random points."""
        places = [(look.triangles, look.weights)]
        if rng is not None:
            places.append(self._mesh_of(look.patch).sample(len(look.rows), rng))
        found = []
        forces = [(k, k) for k in range(len(places))]
        for first, ends, distance, _, _ in self._searched(look.patch, places, forces, reach):
            ends = np.sort(ends, axis=1) - first
            order = np.lexsort((ends[:, 1], ends[:, 0]))
            found.append(SurfaceDistances(look.rows[ends[order]], distance[order]))
        return found

    def hops(self, patch: Patch, start: Places, end: Places, reach: float) -> tuple[np.ndarray, ...]:
        """Find shortest paths from each of n places to its own one of n others, on the mesh of one frame.

        Returns the numbers (k,) of those found, and (k, 2, 3) and (k, 2) as of `MeshPairs.paths`.
        """
        n = len(start[0])
        ((first, ends, _, axes, hops),) = self._searched(patch, [start, end], [(0, 1)], reach, paired=True)
        assert (ends[:, 1] == ends[:, 0] + n).all()
        return ends[:, 0] - first, axes, hops

    def _mesh_of(self, patch: Patch) -> TriangleMesh:
        box = None if patch.box is None else box_shown(patch.box)
        mesh = self._mesh
        if mesh is not None and mesh.box == box and np.array_equal(mesh.faces, patch.faces):
            mesh = mesh if np.array_equal(mesh.vertices, patch.x) else mesh.with_vertices(patch.x)
        else:
            mesh = TriangleMesh(patch.x, patch.faces, box=box)
        self._mesh = mesh
        return mesh

    def _searched(
        self, patch: Patch, places: list[Places], forces: list[tuple[int, int]], reach: float, paired: bool = False
    ) -> list[tuple[Any, ...]]:
        """Find shortest paths between places for each pair of groups; if `paired`, from each place to its own one.

        Returns for each pair the first bead of its first group, beads (k, 2) at both ends, and the arrays of
        `MeshPairs.paths`.
        """
        mesh = self._mesh_of(patch)
        topology = Topology()
        membrane = topology.add_membrane(mesh, 1.0, fixed=True)
        groups = [
            topology.add_intriangle_points(
                membrane, triangles=triangles, barycentric=weights / weights.sum(axis=1)[:, None], mass=1.0
            )
            for triangles, weights in places
        ]
        system = System(topology, box=mesh.box)
        for a, b in forces:
            system.add_force(_Paths(groups[a], groups[b], 1e-12, reach, along_surface=True))
        context = Context(system, SplittingIntegrator("AGBGA", 1e-3), threads=1)
        bound, order = context._schedule.bound, context.layout.order
        for operation in bound:
            operation.keeps_lengths = True
            if paired:
                # Points are last in memory, in an order of its own.
                n = len(groups[0])
                own = order[-2 * n :]
                other = np.where(own < groups[1].beads[0], own + n, own - n)
                operation.partners = context.layout.rank[other] - (len(order) - 2 * n)
        context.get_state(energy=True)
        found = []
        for (a, _), operation in zip(forces, bound, strict=True):
            ends, distance, axes, hops = operation.paths()
            found.append((groups[a].beads[0], order[ends], distance, axes, hops))
        return found
