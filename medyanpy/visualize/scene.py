"""Objects to be drawn: sheets of triangles and solids, found in simulations, states, frames and handles."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from medyanpy._tools.images import box_lengths, displacement
from medyanpy._tools.names import look_up
from medyanpy._tools.quaternions import matrices
from medyanpy._tools.validation import array
from medyanpy.context import Context
from medyanpy.core.columns import SPECIES
from medyanpy.core.sites import Sites, ends_of, joined_beads
from medyanpy.core.species import names_of_species, told_by_species
from medyanpy.errors import MedyanError, ParameterError
from medyanpy.files.trajectory import Frame
from medyanpy.mesh import TriangleMesh, geometry
from medyanpy.mesh.images import Part, shown_positions, with_images
from medyanpy.simulation import Simulation
from medyanpy.surfaces import Surface

MEMBRANE_COLOR = (0.86, 0.50, 0.46)
INSIDE_COLOR = (0.62, 0.50, 0.58)  # The side that the normals do not point to, seen on open surfaces.
# Surfaces that beads are held to: drawn, but not part of the simulation.
SURFACE_COLOR = (0.80, 0.80, 0.78)
SURFACE_INSIDE_COLOR = (0.64, 0.64, 0.66)
BOX_COLOR = (0.45, 0.45, 0.48)  #: Of the lines of a periodic box.
# The corners of a box, and its edges.
_CORNERS = np.stack(np.meshgrid([0, 1], [0, 1], [0, 1], indexing="ij"), -1).reshape(-1, 3)
_EDGES = np.array([(a, b) for a in range(8) for b in range(a) if np.abs(_CORNERS[a] - _CORNERS[b]).sum() == 1])
# Cubes along the longest side of the box in which the mesh of a surface is made: so many of them over its `length`,
# but no fewer or more than this.
CUBES_PER_LENGTH, LEAST_CUBES, MOST_CUBES = 3.0, 72, 128
BONDS = "bonds"  #: Name in legends of pairs that are joined by forces other than links.
_NO_PAIRS = np.empty((0, 2), np.int64)
# The last mesh of each surface, and the box it was made in.
_meshes: WeakKeyDictionary[Surface, tuple[bytes, tuple[TriangleMesh, float] | None]] = WeakKeyDictionary()


@dataclass
class Sheet:
    vertices: np.ndarray
    faces: np.ndarray
    closed: bool
    values: np.ndarray | None = None  #: (F, 3) of each corner of each face; nan where there is none.
    color: tuple[float, float, float] = MEMBRANE_COLOR
    inside_color: tuple[float, float, float] = INSIDE_COLOR
    normals: np.ndarray | None = None  #: Of vertices, where they are known better than from the triangles.
    is_membrane: bool = True  #: True if it is simulated and can have values.
    name: str = "surface"
    #: (V,) of a membrane that closes through the sides of a box: which vertex each is, or is an image of, the images
    #: behind all others; and the lengths of the box.
    source: np.ndarray | None = None
    box: np.ndarray | None = None

    @property
    def own(self) -> tuple[np.ndarray, np.ndarray]:
        """Vertices that are not images, and triangles by these."""
        if self.source is None:
            return self.vertices, self.faces
        return self.vertices[: int(self.source.max()) + 1], self.source[self.faces]

    def without_faces(self) -> "Sheet":
        """Return a sheet without faces, so that a picture is laid out as with it but does not show it."""
        return replace(self, faces=self.faces[:0])

    def smooth_normals(self) -> np.ndarray:
        """Return unit normals (V, 3) of vertices: without better ones, the mean of their faces by area."""
        if self.normals is not None:
            return self.normals
        vectors = geometry.area_vectors(self.vertices, self.faces)
        normals = unit(geometry.corner_sums(*self.own, np.repeat(vectors[:, None], 3, axis=1)))
        return normals if self.source is None else normals[self.source]


@dataclass
class Solids:
    name: str
    centers: np.ndarray
    radius: np.ndarray | None
    links: np.ndarray | None  #: Pairs of them with a tube between: filaments.
    normals: np.ndarray | None = None  #: Normals of the surface they are on; and True if it shows its other side too.
    two_sided: bool = False
    #: (T, n, 3) where they were, the oldest first; and the normals of their surface there.
    past: np.ndarray | None = None
    past_normals: np.ndarray | None = None
    are_beads: bool = True  #: Links that jumps have bound are lines between places that are not beads.
    #: (n, 3, 3) of ellipsoids: half axes in space, as columns. They are in no surface.
    half_axes: np.ndarray | None = None
    #: Spheres that are drawn instead of these ellipsoids: centres (k, 3) in space, and radii (k,).
    instead: tuple[np.ndarray, np.ndarray] | None = None
    is_constant: bool = True  #: True if there are as many of them in every frame of a movie.
    #: True if these are the lines of a periodic box, which have their own colour and are not in the legend.
    is_box: bool = False
    color: tuple[float, float, float] | None = None  #: A colour other than that of its number.
    of: str = ""  #: Of beads of a species: their handle.

    @property
    def legend(self) -> str:
        """Text of the legend; for filaments without the number of nodes."""
        if self.links is not None or not self.is_constant:
            return self.name
        number = f"{len(self.centers):,}".replace(",", "\u2009")
        return f"{number} {self.name}"


class BeadModel(NamedTuple):
    """Spheres of one body, in its frame."""

    centers: np.ndarray  #: (k, 3), nm
    radii: np.ndarray  #: (k,), nm

    @property
    def reach(self) -> float:
        """Largest distance from the centre of the body, nm."""
        return float((np.linalg.norm(self.centers, axis=1) + self.radii).max())


class _Part(NamedTuple):
    """Some beads to be drawn."""

    name: str
    beads: np.ndarray
    faces: np.ndarray | None = None
    on: tuple[str, np.ndarray] | None = None  # Of in-triangle points: the membrane, and their faces.
    radius: np.ndarray | None = None
    links: np.ndarray | None = None
    surface: Surface | None = None
    # Of rigid bodies: (n, 3), and unit quaternions (n, 4); and spheres that stand for them.
    semi_axes: np.ndarray | None = None
    orientations: np.ndarray | None = None
    spheres: list[BeadModel] | None = None
    # Numbers (n,) and names of species; and the handle whose species this is.
    species: tuple[np.ndarray, list[str]] | None = None
    of: str = ""

    def by_species(self, names: list[str]) -> "list[_Part]":
        """Return parts of each species, by these names."""
        assert self.species is not None
        parts = []
        for k, name in enumerate(names):
            own = self.species[0] == k
            chosen: dict[str, Any] = {
                key: value[own] for key in ("beads", "radius", "semi_axes", "orientations")
                if (value := getattr(self, key)) is not None
            }  # fmt: skip
            on = None if self.on is None else (self.on[0], self.on[1][own])
            parts.append(self._replace(name=name, of=self.name, species=None, on=on, **chosen))
        return parts

    @property
    def reach(self) -> np.ndarray | float | None:
        """Extent from its beads, nm; None where it is not given."""
        if self.spheres is not None:
            return max(model.reach for model in self.spheres)
        return self.radius if self.semi_axes is None else self.semi_axes


class Scene(NamedTuple):
    """Objects at one moment; in a periodic box, where they are shown."""

    positions: np.ndarray
    parts: list[_Part]
    #: (k, 2, 3) both ends of each link, by the name of the jump that has bound it or the force that has it; and bonds
    #: of other forces.
    links: dict[str, np.ndarray]
    ids: np.ndarray | None = None  #: Permanent ids of beads, -1 in rows without a bead; None where all rows have beads.
    box: np.ndarray | None = None  #: (3,) lengths of the periodic box (nm), 0 in open directions; None without one.

    def sheet(self, part: "_Part") -> Sheet:
        """Return a membrane, its triangles whole."""
        assert part.faces is not None
        x, faces, source = with_images(self.positions[part.beads], part.faces, self.box)
        cut = source if len(x) > len(part.beads) else None
        return Sheet(x, faces, not geometry.unpaired(faces).any(), name=part.name, source=cut, box=self.box)

    @property
    def corners(self) -> np.ndarray:
        """Corners (8, 3) of the box, nm; in open directions it reaches as far as beads."""
        assert self.box is not None
        rows = np.concatenate([np.empty(0, np.int64), *(part.beads for part in self.parts)])
        low, high = np.zeros(3), self.box.copy()
        if len(rows):
            x, is_open = self.positions[rows], self.box == 0.0
            low[is_open], high[is_open] = x.min(axis=0)[is_open], x.max(axis=0)[is_open]
        return np.asarray(np.where(_CORNERS, high, low))

    def led_here(self, past: np.ndarray) -> np.ndarray:
        """Return places (T, n, 3) of beads, the oldest first, by the images that lead to where they are shown."""
        if self.box is None:
            return past
        out, later = past.copy(), self.positions
        for k in reversed(range(len(past))):
            out[k] = later + displacement(later, past[k], self.box)
            later = np.where(np.isfinite(out[k]), out[k], later)
        return out

    def past(self, earlier: "list[Scene]") -> np.ndarray | None:
        """Return places (T, n, 3) of the beads here in earlier scenes, nan where they were not there yet."""
        if not earlier:
            return None
        out = np.full((len(earlier), len(self.positions), 3), np.nan)
        for k, scene in enumerate(earlier):
            n = len(scene.positions)
            same = np.ones(n, bool) if self.ids is None else scene.ids == self.ids[:n]
            out[k, :n][same] = scene.positions[same]
        return self.led_here(out)

    def numbers(self) -> dict[tuple[bool, str], int]:
        """Count the solids by whether they are beads, and by name."""
        found = {(True, p.name): len(p.beads) for p in self.parts if p.faces is None}
        return found | {(False, name): len(ends) for name, ends in self.links.items()}


def scene_of(
    what: Any, semi_axes: Mapping[str, np.ndarray], spheres: Mapping[str, list[BeadModel]] | None = None
) -> Scene:
    """Find the objects to draw, with semi-axes or spheres given for some rigid bodies."""
    scene = _found(what)
    bodies = {p.name: p for p in scene.parts if p.semi_axes is not None}
    for given, names in (("semi_axes", semi_axes), ("spheres", spheres or {})):
        for name in names:
            if name not in bodies:
                there = f"only {', '.join(bodies)} are" if bodies else "there are none"
                raise ParameterError(f"draw: {given}: {name!r} are not rigid bodies, {there}")
    for name, models in (spheres or {}).items():
        n = len(bodies[name].beads)
        if n % len(models):
            said = f"has {len(models)} bead models, of which {n} bodies are not copies"
            raise ParameterError(f"draw: spheres[{name!r}] {said}")
        bodies[name] = bodies[name]._replace(spheres=models)
    for name, a in semi_axes.items():
        n = len(bodies[name].beads)
        if a.shape not in ((3,), (n, 3)):
            raise ParameterError(f"draw: semi_axes[{name!r}] must have shape (3,) or ({n}, 3), not {a.shape}")
        bodies[name] = bodies[name]._replace(semi_axes=np.broadcast_to(a, (n, 3)))
    parts = [bodies.get(p.name, p) for p in scene.parts]
    called = names_of_species({p.name: [] if p.species is None else p.species[1] for p in parts})
    # Models stand for bodies one after the other, whatever these are.
    split = [p.by_species(called[p.name]) if p.species is not None and p.spheres is None else [p] for p in parts]
    return scene._replace(parts=[one for own in split for one in own])


def _part(
    name: str, rows: np.ndarray, alive: np.ndarray, own: slice | np.ndarray | None, beside: Mapping[str, Any],
    drawn: Mapping[str, str], column: Any,
) -> _Part:
    """Return the beads of one handle that are there, from data beside frames; `column` reads those in frames, where
    rows are `own`."""
    there = alive[rows]

    def of(key: str) -> Any:
        value = beside.get(key)
        value = value[0] if isinstance(value, tuple) else value
        return np.ma.getdata(value)[there] if key in ("radius", "semi_axes") and value is not None else value

    links = of("links")
    if links is not None:
        number = np.where(there, np.cumsum(there) - 1, -1)[links]
        links = number[(number >= 0).all(axis=1)]
    radius = next((column(key)[own][there] for key, as_what in drawn.items() if as_what == "radius"), of("radius"))
    on = (of("membrane"), column("triangles")[own][there]) if "membrane" in beside else None
    body = (of("semi_axes"), column("orientations")[own][there]) if "semi_axes" in beside else ()
    part = _Part(name, rows[there], of("faces"), on, radius, links, of("surface"), *body)
    if "species" not in beside:
        return part
    return part._replace(species=(column(SPECIES.name)[part.beads], beside["species"]))


def _found(what: Any) -> Scene:
    if isinstance(what, Simulation):
        what = what.context
    if isinstance(what, Context):
        state = what.get_state(positions=True)
        parts, shown = [], []
        topology = what.system.topology
        for h in topology.handles:
            beside = h.kind.beside_rows()
            beside |= {"faces": state.faces[h.name]} if h.name in state.faces else {}
            drawn = {c.name: c.drawn for c in h.kind.columns if c.drawn}
            if h.kind.in_space:
                rows = h.kind.all_rows
                own = topology.rows_in(h.kind.rows_of, rows)
                if h._species:
                    beside = told_by_species(beside, state.column(SPECIES.name)[rows])
                parts.append(_part(h.name, rows, state.alive, own, beside, drawn, state.column))
                shown += [rows[beside["links"]]] if "links" in beside else []
        system: Any = what.system
        ends: dict[str, Sequence[Sites]] = {}
        for name, jump in zip(system.jump_names, system.jumps, strict=True):
            if (held := jump.in_frames()) is not None:
                rows = state.jumps[name][held[0][0]]
                ends[name] = ends_of(rows, [sites.as_in(state) for sites in jump.beside_frames().values()])
                shown.append(joined_beads(*ends[name]))
        pairs = [_NO_PAIRS]
        for name, force in zip(system.force_names, system.forces, strict=True):
            if force.has_links:
                sides = force.sites_in(state)
                shown.append(joined_beads(*sides))
                ends |= {name: sides} if len(sides[0]) else {}
            else:
                pairs.append(force.joined)
        links = {name: np.stack([sites.positions(state) for sites in sides], axis=1) for name, sides in ends.items()}
        beads = {name: np.column_stack([sites.main_beads for sites in sides]) for name, sides in ends.items()}
        beads |= _bonds(state.positions, np.concatenate(pairs), shown, links)
        return _in_its_box(Scene(state.positions, parts, links, state.ids), beads, state.box)
    if isinstance(what, Frame):
        handles = [(h, what.beside(h)) for h in what.handles.values()]
        parts = [
            _part(h.name, h.beads, what.alive, h.rows, beside, what.drawn_of(h), what.column)
            for h, beside in handles if h.in_space
        ]  # fmt: skip
        x = np.asarray(what.positions, float)
        shown = [h.beads[beside["links"]] for h, beside in handles if "links" in beside]
        links = {name: np.asarray(what.link_ends(name), float) for name in what.jumps}
        beads = {}
        for name in what.jumps:
            rows = what.links(name)
            sides = ends_of(rows, what._sites_of(name))
            beads[name] = np.column_stack([sites.main_beads for sites in sides])
            shown.append(joined_beads(*sides))
        for name in what.link_forces:
            own = what.links(name)
            shown.append(own[(own >= 0).all(axis=1)])
            if len(own):
                links[name] = np.asarray(what.link_ends(name), float)
                beads[name] = own
        beads |= _bonds(x, what.bonds, shown, links)
        return _in_its_box(Scene(x, parts, links, what.ids), beads, what.box)
    if isinstance(what, Surface):
        # Here missing scikit-image or bounds are an error.
        _meshed(what, None)
        return Scene(np.empty((0, 3)), [_Part("surface", np.empty(0, int), surface=what)], {})
    if isinstance(what, TriangleMesh):
        scene = Scene(what.vertices, [_Part("mesh", np.arange(len(what.vertices)), what.faces)], {})
        return _in_its_box(scene, {}, what.box)
    things = "a Simulation, a Context, a Frame of a Trajectory, a TriangleMesh or a Surface"
    raise ParameterError(f"draw: cannot draw {type(what).__name__}: give {things}")


def _bonds(
    positions: np.ndarray, pairs: np.ndarray, shown: list[np.ndarray], links: dict[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Add both ends of bonds to links, if there are any, and return the beads (k, 2) at them; pairs that are `shown` by
    another name are left out."""
    key = np.array([len(positions), 1])
    numbers, others = (np.sort(p, axis=1) @ key for p in (pairs, np.concatenate([_NO_PAIRS, *shown])))
    numbers = np.setdiff1d(numbers, others)
    beads = np.column_stack([numbers // len(positions), numbers % len(positions)])
    beads = beads[np.isfinite(positions[beads]).all(axis=(1, 2))]  # Rows without a bead have no places.
    if not len(beads):
        return {}
    name = BONDS if BONDS not in links else f"other {BONDS}"
    links[name] = positions[beads]
    return {name: beads}


def _in_its_box(scene: Scene, beads: Mapping[str, np.ndarray], box: Any) -> Scene:
    """Move a scene to where it is shown in a box; `beads` (k, 2) are at the ends of links, -1 where there is none."""
    if box is None:
        return scene
    lengths = box_lengths(box)
    there = {p.name: Part(p.beads, p.faces, p.links, p.on, p.surface is not None) for p in scene.parts}
    x = shown_positions(scene.positions, there, lengths)
    links = {}
    for name, ends in scene.links.items():
        # From the end at a bead, where that is shown, to the nearest image of the other.
        own, k = beads[name], np.arange(len(ends))
        one = np.where(own[:, 0] >= 0, 0, 1)
        bead = own[k, one]
        moved = np.where(bead[:, None] >= 0, (x - scene.positions)[bead], 0.0)
        shown = np.empty_like(ends)
        shown[k, one] = ends[k, one] + moved
        shown[k, 1 - one] = shown[k, one] + displacement(ends[k, one], ends[k, 1 - one], lengths)
        links[name] = shown
    return scene._replace(positions=x, links=links, box=lengths)


def objects_of(
    scene: Scene, past: np.ndarray | None = None, boxes: dict[Surface, np.ndarray] | None = None,
    constant: Mapping[tuple[bool, str], bool] | None = None,
) -> tuple[list[Sheet], list[Solids]]:
    """Return the sheets and solids of a scene. In a movie these are all of its solids, by their names in
    `Scene.numbers`, and whether their numbers are constant: each keeps its colour."""
    x, parts, links = scene.positions, scene.parts, scene.links
    membranes = {p.name: scene.sheet(p) for p in parts if p.faces is not None}
    meshes = {surface: _mesh_of(surface, box) for surface, box in (boxes or regions_of(scene)).items()}
    spheres = []
    for part in parts:
        if part.faces is not None:
            continue
        drawn = Solids(part.name, x[part.beads], part.radius, part.links, of=part.of)
        if part.semi_axes is not None and part.orientations is not None:
            drawn.radius = part.semi_axes.max(axis=1)
            turn = matrices(part.orientations)
            drawn.half_axes = turn * part.semi_axes[:, None]
            if part.spheres is not None:
                drawn.instead, drawn.radius = _spheres_of(part.spheres, drawn.centers, turn)
        if past is not None and part.links is None:
            drawn.past = past[:, part.beads]
        if part.on is not None:
            membrane = membranes[part.on[0]]
            drawn.normals = unit(geometry.area_vectors(membrane.vertices, membrane.faces[part.on[1]]))
            drawn.two_sided = not membrane.closed
            if drawn.past is not None:
                # An approximation: the triangles of that time are not known.
                drawn.past_normals = np.broadcast_to(drawn.normals, drawn.past.shape)
        elif part.surface is not None and (found := meshes[part.surface]) is not None:
            mesh, sign = found
            drawn.normals = sign * unit(part.surface.gradient(drawn.centers))
            drawn.two_sided = not mesh.is_closed
            if drawn.past is not None:
                known = np.isfinite(drawn.past).all(axis=2)
                drawn.past_normals = np.zeros_like(drawn.past)
                drawn.past_normals[known] = sign * unit(part.surface.gradient(drawn.past[known]))
        spheres.append(drawn)
    for name, ends in links.items():
        # Also where there are none now: each name keeps its colour.
        pairs = np.arange(2 * len(ends)).reshape(-1, 2)
        spheres.append(Solids(name, ends.reshape(-1, 3), None, pairs, are_beads=False))
    if constant is not None:
        there = {(s.are_beads, s.name): s for s in spheres}
        none = np.empty((0, 3))
        spheres = [there.get(key, Solids(key[1], none, None, None, are_beads=key[0])) for key in constant]
        for one, stays in zip(spheres, constant.values(), strict=True):
            one.is_constant = stays
    if scene.box is not None and (membranes or spheres):
        spheres.append(Solids("box", scene.corners, None, _EDGES, are_beads=False, is_box=True))
    backdrops = [
        Sheet(
            mesh.vertices, mesh.faces, mesh.is_closed, color=SURFACE_COLOR, inside_color=SURFACE_INSIDE_COLOR,
            normals=sign * unit(surface.gradient(mesh.vertices)), is_membrane=False,
        )
        for surface, found in meshes.items() if found is not None for mesh, sign in [found]
    ]  # fmt: skip
    return [*membranes.values(), *backdrops], spheres


def _spheres_of(
    models: list[BeadModel], centers: np.ndarray, turn: np.ndarray
) -> tuple[tuple[np.ndarray, np.ndarray], np.ndarray]:
    """Return places and radii of the spheres of bodies, and their extent from the centre of each body."""
    reach, places, radii = np.zeros(len(centers)), [np.empty((0, 3))], [np.empty(0)]
    for k, model in enumerate(models):
        own = slice(k, None, len(models))
        x = np.einsum("nij,kj->nki", turn[own], model.centers)
        places.append((centers[own, None] + x).reshape(-1, 3))
        radii.append(np.tile(model.radii, len(x)))
        reach[own] = model.reach
    return (np.concatenate(places), np.concatenate(radii)), reach


def unit(vectors: np.ndarray) -> np.ndarray:
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=1), 1e-300)[:, None])


def regions_of(scene: Scene) -> dict[Surface, np.ndarray]:
    """Return for each surface a box around all of it or, where it has no bounds, around its points."""
    boxes: dict[Surface, np.ndarray] = {}
    for part in scene.parts:
        if part.surface is None:
            continue
        box = part.surface.bounding_box
        if not np.isfinite(box).all():
            x = scene.positions[part.beads]
            if not len(x):
                continue
            low, high = x.min(axis=0), x.max(axis=0)
            room = max(0.15 * float((high - low).max()), 1e-3 * part.surface.length)
            known = np.isfinite(box)  # Not cut where it has bounds.
            box = np.where(known, box, [low, high]) + [[-room] * 3, [room] * 3]
            if part.surface in boxes:
                low, high = boxes[part.surface]
                box = np.array([np.minimum(low, box[0]), np.maximum(high, box[1])])
        boxes[part.surface] = box
    return boxes


def _mesh_of(surface: Surface, box: np.ndarray) -> tuple[TriangleMesh, float] | None:
    """Return the mesh of `_meshed`; None without scikit-image, or where no mesh of a moderate size exists."""
    key = box.tobytes()
    if surface not in _meshes or _meshes[surface][0] != key:
        try:
            _meshes[surface] = key, _meshed(surface, None if (box == surface.bounding_box).all() else box)
        except (ImportError, MedyanError):
            _meshes[surface] = key, None
    return _meshes[surface][1]


def _meshed(surface: Surface, box: np.ndarray | None) -> tuple[TriangleMesh, float]:
    """Mesh a surface, in a box if one is given, turned outwards; also return the sign of the gradient there."""
    longest = np.ptp(surface.bounding_box if box is None else box, axis=0).max()
    cubes = CUBES_PER_LENGTH * longest / surface.length if np.isfinite(longest) else 0.0
    mesh = surface.mesh(int(np.clip(cubes, LEAST_CUBES, MOST_CUBES)), box=box)
    if mesh.is_closed and mesh.volume < 0.0:
        return TriangleMesh(mesh.vertices, mesh.faces[:, ::-1]), -1.0
    return mesh, 1.0


#: Values by name: of vertices, from positions and faces; and the label of their colour bar.
NAMED_VALUES: dict[str, tuple[Callable[[np.ndarray, np.ndarray, np.ndarray | None], np.ndarray], str, int]] = {
    "mean_curvature": (geometry.mean_curvatures, "mean curvature", -1),
    "gaussian_curvature": (geometry.gaussian_curvatures, "Gaussian curvature", -2),
}


def label_of(values: Any, label: str, unit: str) -> str:
    """Return the label of the colour bar, by default that of named values."""
    if label or not isinstance(values, str) or values not in NAMED_VALUES:
        return label
    _, said, power = NAMED_VALUES[values]
    per = f" (1/{unit}{'' if power == -1 else '²'})" if unit else ""
    return said + per


def give_colors(surfaces: list[Sheet], solids: list[Solids], colors: Mapping[str, Any]) -> None:
    """Set the colours of objects, by their names."""
    named: dict[str, list[Sheet | Solids]] = {}
    everything: list[Sheet | Solids] = [*surfaces, *solids]
    for one in everything:
        named.setdefault(one.name, []).append(one)
        if isinstance(one, Solids) and one.of:
            named.setdefault(one.of, []).append(one)
    for name, color in colors.items():
        for one in look_up(named, name, "drawn object", ParameterError):
            one.color = color
            if isinstance(one, Sheet):
                # The other side is a little darker and grayer.
                one.inside_color = tuple(0.7 * c + 0.1 for c in color)


def give_values(surfaces: list[Sheet], values: Any) -> None:
    """Set the values of membranes: given ones, of all vertices or all faces one after the other, or named ones."""
    if values is None:
        return
    of_vertices = sum(len(s.own[0]) for s in surfaces)
    of_faces = sum(len(s.faces) for s in surfaces)
    if isinstance(values, str):
        if not surfaces:
            raise ParameterError(f"draw: values = {values!r}, but there is no membrane")
        value_of, *_ = look_up(NAMED_VALUES, values, "name of values", ParameterError)
        v = np.concatenate([value_of(*s.own, s.box if s.source is not None else None) for s in surfaces])
    else:
        v = array("draw: values", values, (None,))
        if len(v) not in (of_vertices, of_faces):
            there = f"there are {of_vertices} vertices and {of_faces} faces"
            raise ParameterError(f"draw: values has {len(v)} numbers, but {there}")
    start = 0
    for s in surfaces:
        vertices, faces = s.own  # To each corner of each face.
        n = len(vertices) if len(v) == of_vertices else len(faces)
        own = v[start : start + n]
        s.values = own[faces] if len(v) == of_vertices else np.repeat(own[:, None], 3, axis=1)
        start += n
