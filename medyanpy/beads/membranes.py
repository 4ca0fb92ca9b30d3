"""Membranes: the vertices of triangle meshes."""

from typing import TYPE_CHECKING, Any

import numpy as np

from medyanpy._tools.described import scalar_if_one
from medyanpy._tools.types import Numbers
from medyanpy.beads.adding import fixed_of, inertia_of
from medyanpy.core.handles import Handle
from medyanpy.core.kinds import Block, Kind
from medyanpy.errors import ParameterError, TimestepWarning, TopologyError
from medyanpy.mesh import TriangleMesh, geometry

if TYPE_CHECKING:
    from medyanpy.engine.worksheet import Look, Remark
    from medyanpy.topology import Topology


class MembraneKind(Kind):
    """Vertices of a membrane."""

    handle: "Membrane"
    name = "vertices"
    block = Block.VERTICES
    takes_constraints = True

    @property
    def fixed_beads(self) -> np.ndarray:
        return self.handle._held

    @property
    def joined(self) -> np.ndarray:
        return self.handle.mesh.edges

    def describe_start(self, bead: int) -> str:
        vertex, mesh = int(np.flatnonzero(self.handle.beads == bead)[0]), self.handle.mesh
        found = geometry.flattest(mesh.vertices, mesh.faces, vertex, mesh._lengths)
        return "" if found is None else f", triangle {found[0]} (height {found[1]:.3g} nm)"

    def remarks(self, look: "Look") -> "list[Remark]":
        """Return a remark on triangles so flat that heat turns them over in a few steps."""
        dt, kT = look.integrator.timestep, look.integrator.kT
        if kT is None or look.integrator.overdamped:
            return []
        membrane, mesh = self.handle, self.handle.mesh
        inverse_mass = np.divide(1.0, membrane.mass, out=np.zeros(len(membrane)), where=~self.fixed_beads)
        height = geometry.heights(mesh.vertices, mesh.faces, mesh._lengths)
        speed = np.sqrt(kT * inverse_mass)[mesh.faces].max(axis=1)
        enough = np.full(len(height), np.inf)
        longest = np.divide(height, geometry.NEEDLE_STEPS * speed, out=enough, where=speed > 0.0)
        needles = int(np.count_nonzero(longest < dt))
        if not needles:
            return []
        i = int(np.argmin(longest))
        others = f" (and {needles - 1} more)" if needles > 1 else ""
        return [(
            TimestepWarning,
            f"{membrane.name!r}: triangle {i}{others} has a height of {height[i]:.3g} nm, and in a timestep of {dt:g} "
            f"s heat moves its vertices by {speed[i] * dt:.3g} nm: it will be turned over, and the run gets hot or "
            f"runs away. A timestep of {longest[i]:.3g} s would do, larger vertex masses, or a mesh without needles "
            "(see mesh.quality): mesh.remesh(edge_length=...) makes one",
        )]  # fmt: skip

    def beside_frames(self) -> dict[str, Any]:
        return {**super().beside_frames(), "faces": self.handle.mesh.faces}


class Membrane(Handle, kind=MembraneKind):
    """Vertices of a triangle mesh.

    `mesh` holds the triangles and where the vertices start. `first_face` is the number of its first triangle among
    those of all membranes of the topology. `fixed` is True if all of its vertices are fixed.
    """

    _added_by = "add_membrane"

    def __init__(
        self, topology: "Topology", name: str, first: int, mesh: TriangleMesh, mass: np.ndarray, friction: np.ndarray,
        fixed: np.ndarray, first_face: int,
    ) -> None:  # fmt: skip
        super().__init__(topology, name, first, mass, friction)
        self.mesh = mesh
        self.fixed: bool = bool(fixed.all())
        self._held = fixed
        self.first_face = first_face

    def _why_whole(self) -> str:
        return "the vertices of a membrane stay for as long as it does"

    @property
    def positions(self) -> np.ndarray:
        return self.mesh.vertices

    @property
    def degrees_of_freedom(self) -> int:
        return self.kind.degrees_of_freedom_per_bead * int(np.count_nonzero(~self._held))

    def _expect_closed(self, what: str, so: str) -> None:
        """Refuse a membrane with borders, of which `so` tells what follows, or one that is turned inside out.

        Raises
        ------
        TopologyError, ParameterError
        """
        mesh, called = self.mesh, repr(self.name)
        if borders := len(mesh.borders):
            has = f"has {borders} border{'s' * (borders > 1)}"
            raise TopologyError(f"{what}: {self!r} {has}, so {so}")
        if wrong := mesh.inside_out:
            # Its volume would count as negative.
            part = f"{mesh._described_part(wrong[0])} of {called} is turned inside out"
            if len(mesh.components) == 1:
                part = f"{called} is turned inside out, with the volume {mesh.volume:g} nm³"
            raise ParameterError(f"{what}: {part}: its normals look inward; {mesh._remedy(wrong)}")

    def _arguments_now(self) -> dict[str, Any]:
        return {
            "mesh": self.mesh, "vertex_mass": scalar_if_one(self.mass), "vertex_friction": scalar_if_one(self.friction),
            "fixed": self._held if self._held.any() and not self.fixed else self.fixed, "name": self.name,
        }  # fmt: skip


def add_membrane(
    topology: "Topology", mesh: TriangleMesh, vertex_mass: Numbers, vertex_friction: Numbers = 0.0,
    fixed: Numbers = False, *, name: str | None = None,
) -> Membrane:  # fmt: skip
    """Add the vertices of a triangle mesh as beads.

    Parameters
    ----------
    mesh : TriangleMesh
        V vertices, nm.
    vertex_mass : float or (V,) float, pN s²/nm, > 0
    vertex_friction : float or (V,) float, pN s/nm, >= 0
    fixed : bool or (V,) bool
        Immobile: points move on it, and it does not move. Or a mask of its immobile vertices: ``mesh.border_vertices``
        pins a sheet to a frame. They keep their place also where edges are flipped, and have no degrees of freedom.
    name : str, optional

    Raises
    ------
    TopologyError, ParameterError
        As `add_beads`.
    """
    if not isinstance(mesh, TriangleMesh):
        raise TopologyError(f"add_membrane: mesh must be a TriangleMesh, not {type(mesh).__name__}")
    n = len(mesh.vertices)
    inertia = inertia_of("add_membrane", "vertex_", n, vertex_mass, vertex_friction)
    held = fixed_of("add_membrane", n, fixed)
    first, name = topology._room("add_membrane", n, name, "membrane")
    first_face = sum(len(m.mesh.faces) for m in topology.membranes)
    return topology._keep(Membrane(topology, name, first, mesh, *inertia, held, first_face))
