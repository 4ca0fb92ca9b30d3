"""Flips of the edges of a membrane, which make it a fluid."""

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from medyanpy._kernels.jumps.edge_flips import EdgeFlips as EdgeFlipsOperation
from medyanpy._kernels.jumps.trial import Ask
from medyanpy.beads import Membrane
from medyanpy.errors import MeshQualityWarning, ParameterError, TopologyError
from medyanpy.forces import MembraneBending, MembraneFoldRepulsion
from medyanpy.forces._base import expect_handle
from medyanpy.jumps._base import Jump, argument, declared, number

if TYPE_CHECKING:
    from medyanpy._kernels.jumps.jump import JumpOperation
    from medyanpy.core.handles import Handle
    from medyanpy.core.layout import Layout
    from medyanpy.engine.schedule import Schedule
    from medyanpy.engine.worksheet import Look, Remark
    from medyanpy.forces import Force
    from medyanpy.state import State
    from medyanpy.topology import Topology

__all__ = ["EdgeFlips"]

# A mesh of fewer triangles cannot flow.
_FEWEST = 4


@declared
class EdgeFlips(Jump):
    r"""Flips of the edges of a membrane, by which its vertices exchange neighbours: a fluid membrane.

    A trial removes an edge and joins the corners across it instead, accepted with the probability

    .. math:: \min\{1,\, e^{-(\Delta U + \Delta K)/kT}\}

    ΔU is the change of the energy of all forces of the system, ΔK that of the kinetic energy of the in-triangle points
    in the two triangles. The target distribution :math:`e^{-H/kT}`, in which n points give a mesh of the area A the
    weight :math:`A^n`, is preserved at any rate. The rate sets how fast vertices move past each other, which is the
    viscosity of the membrane. Vertices stay where they are, with their velocities. Points keep their place in the
    quadrilateral of the two triangles, and the corresponding momentum; see :doc:`/theory/flips`.

    Parameters
    ----------
    min_angle : float, radians, >= 0, < π/3

    Raises
    ------
    TopologyError
        Not the handle of a membrane, or one with fewer than four triangles.
    ParameterError
        A number outside its domain; and (by a System) a force with numbers for each triangle or edge of the membrane,
        which lose their meaning in a flip.

    Notes
    -----
    Edges are tried one after another, uniformly, at exponential times: results do not depend on how time is cut.
    ``counts.tried`` counts trials, including those on borders and between corners that have an edge already;
    ``counts.accepted`` flips. ``state.faces`` has the triangles of a state, and trajectories have them by themselves.
    In a periodic box, edges longer than 0.45 of the box along an axis are neither made nor flipped. For what each force
    costs in a trial, from below 1 µs, see :doc:`/fluid_membranes`.

    Use `MembraneFoldRepulsion` with `MembraneBending`; a Context warns without it (MeshQualityWarning). Triangles that
    lie on each other can have less bending energy than the surface, and flips find such pockets. Only `MembraneTether`
    bounds edges without a force in between.

    References
    ----------
    D. Boal, M. Rao, Phys. Rev. A 45, R6947 (1992): fluid membranes by flips. G. Gompper, D. M. Kroll, J. Phys.:
    Condens. Matter 9, 8795 (1997), a review. H. Noguchi, G. Gompper, Phys. Rev. E 72, 011901 (2005): their rate as a
    viscosity.
    """

    kinds: ClassVar[tuple[str, ...]] = ("flip",)
    membrane: Membrane = argument(
        "Membrane", "At least four triangles. Edges on its borders stay.",
        attribute="The membrane with the edges that flip.",
    )  # fmt: skip
    rate: float = number(
        "1/s", "Rate of trials of each edge. 0.01 to 1 trials for each timestep are usual.", at_least=0.0
    )
    min_angle: float = number(
        "radians", "Refuse flips with a triangle that has a smaller angle, among the two before or the two after. This "
        "rule is the same both ways, so that the distribution among meshes without such triangles does not change. 0 "
        "allows all.", default=0.0, kw_only=True, at_least=0.0, below=np.pi / 3.0,
    )  # fmt: skip

    def _take(self, given: dict[str, Any]) -> None:
        super()._take(given)
        self._membrane = expect_handle(f"{self.name}: membrane", given["membrane"], Membrane, "a membrane")
        n = len(self._membrane.mesh.faces)
        if n < _FEWEST:
            raise TopologyError(
                f"{self.name}: {self._membrane!r} has {n} triangle{'s' * (n > 1)}, and flips need {_FEWEST} or more"
            )

    @property
    def handles(self) -> "tuple[Handle, ...]":
        return (self._membrane,)

    def check(self, topology: "Topology", forces: "tuple[Force, ...]") -> None:
        super().check(topology, forces)
        for force in forces:
            self._expect_to_flip(force)

    def _expect_to_flip(self, force: "Force") -> None:
        if self._membrane in force.handles and (obstacle := force.obstacle_to_flips()):
            raise ParameterError(f"{self.name}: {force.name} does not allow edges to flip: {obstacle}")

    @property
    def flips_edges_of(self) -> Membrane:
        return self._membrane

    def fastest(self, kT: float | None) -> float:
        return self.rate

    def remarks(self, look: "Look") -> "list[Remark]":
        """Return remarks on a membrane that flows into folds, with less bending energy than a surface has."""
        own = [force for force in look.system.forces if self._membrane in force.handles]
        if not self.rate > 0.0 or any(isinstance(force, MembraneFoldRepulsion) for force in own):
            return []
        return [
            (
                MeshQualityWarning,
                f"{self.name}: nothing keeps triangles of {self._membrane.name!r} from folding onto each other as its "
                f"edges flip, and {force.name} has less energy where they do: areas, volumes and spectra will be those "
                "of a crumpled membrane, sooner or later. Add forces.MembraneFoldRepulsion(membrane, 20 * kT)",
            )
            for force in own
            if isinstance(force, MembraneBending)
        ]

    def bind(self, layout: "Layout", kT: float) -> "JumpOperation":
        mesh = self._membrane.mesh
        triangulation = layout.triangulation
        triangulation.changed(self._membrane)
        first = self._membrane.first_face, len(mesh.faces), len(mesh.edges), layout.slice_of(self._membrane).start
        joint, held = layout.topology.joint, np.zeros(layout.n, np.uint8)
        if joint is not None:
            held[layout.internal(joint.points)] = 1
        operation = EdgeFlipsOperation(self.name, kT, self.every, triangulation.triangles, *first,
                                       held[layout.n_cartesian :], layout.n, layout.momenta_sizes)  # fmt: skip
        self.update(operation, kT)
        return operation

    def update(self, operation: Any, kT: float) -> None:
        operation.set(kT, *self._named("rate", "min_angle"))

    def log_weight(self, operation: "JumpOperation", state: "State", kT: float) -> float:
        # The weight of a mesh depends on its energy alone, also where flips cannot reach it.
        return 0.0

    def weigh(self, operation: Any, schedule: "Schedule") -> None:
        forces = schedule.system.forces
        for force in forces:
            self._expect_to_flip(force)
        asks = self._asks(schedule)
        operation.weights.take(schedule.bound, asks, lambda number: schedule.bind(forces[number]), schedule.put_forces)

    def _asks(self, schedule: "Schedule") -> list[Ask]:
        pairs = zip(schedule.system.forces, schedule.bound, strict=True)
        return [schedule.flipping.ask_of(self._membrane, force, bound) for force, bound in pairs]

    def remarks_on_cost(self, operation: Any, schedule: "Schedule") -> "list[Remark]":
        """Return a remark on forces whose whole energy each trial evaluates twice."""

        def is_slow(force: "Force", bound: Any) -> bool:
            asked = schedule.flipping.ask_of(self._membrane, force, bound) != Ask.NOTHING
            return asked and not bound.has_local_difference

        rate = self.rate * len(self._membrane.mesh.edges)
        return self._remarks_on_whole_energies(schedule, rate, "a flip", is_slow)
