"""Description of the fluid: beads that interact through it, its viscosity, its wall and its flow."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from medyanpy._tools.declared import Given, argument, declared, number
from medyanpy._tools.described import Described
from medyanpy._tools.images import in_words
from medyanpy._tools.names import Guarded
from medyanpy._tools.types import Numbers
from medyanpy._tools.validation import array, vector
from medyanpy.beads import Beads, Directors, Filaments, OrientedBeads, SurfacePoints
from medyanpy.boundaries import Plane
from medyanpy.core.handles import Handle
from medyanpy.errors import ParameterError, TopologyError
from medyanpy.hydrodynamics.flow import HydrodynamicFlow
from medyanpy.hydrodynamics.mobilities import expect_lattice, radius_of_bodies, refuse_overlap, wall_frame

if TYPE_CHECKING:
    from medyanpy.core.layout import Layout

__all__ = ["RotnePrager"]


@declared
class RotnePrager(Described, Guarded):
    r"""Hydrodynamic interactions: beads that move drag others along through the fluid.

    Friction and noise of all beads named here follow from one matrix, the mobility of all of them. Pairs have the
    tensor of Rotne, Prager and Yamakawa, each bead by itself the inverse of its own friction. It acts where friction
    acts: in D of `BrownianIntegrator` (Ermak and McCammon's step) and in O of words with velocities, with the positions
    at that moment. Equilibrium is the same as without it.

    A bead counts as the sphere that its friction γ belongs to: of radius :math:`\gamma/6\pi\eta`. Balls, free beads,
    and nodes of filaments are such spheres; their rotation does not matter. A rigid body and a node of a rod keep their
    own 6×6 tensor. With others they interact as the smallest sphere around their centre of mass that is not more mobile
    than they are in any of the six motions (`radius`). Lubrication is missing. Membranes, in-triangle points, beads on
    surfaces and all beads that are not named do not take part: they neither move the fluid nor are moved by it.

    In a box that is periodic along all three directions the tensor is that of all images, by Ewald's sum. The average
    velocity of the box, fluid and beads, is zero: a force on beads is balanced by a pressure. Boxes may change.

    Raises
    ------
    ParameterError
        Numbers outside of their domain, a flow that has sources, a flow through the wall.
    TopologyError
        Something else than handles, handles of several topologies, the same one twice, kinds that cannot take part.

    References
    ----------
    Ermak and McCammon, J. Chem. Phys. 69, 1352 (1978). See :doc:`/hydrodynamic_interactions`.
    """

    _remedy = "make a new one, and a new System with it"

    viscosity: float = number("pN s/nm²", "Of water `presets.WATER`.", above=0.0, fixed=True)
    handles: Given[Handle | Iterable[Handle], tuple[Handle, ...]] = argument(
        "a handle, or several", "Free beads, balls, filaments with one friction for each node, rigid bodies, rods: "
        "with friction > 0 (of rotation too where they turn), none of them fixed. Jumps must not add or remove them.",
    )  # fmt: skip
    wall: Plane | None = argument(
        "boundaries.Plane, optional", "A wall without slip: Blake's images of all spheres. They must not touch it: let "
        "a force keep them away.", default=None, kw_only=True,
    )  # fmt: skip
    velocity_gradient: Given["Numbers | None", np.ndarray] = argument(
        "(3, 3) float, 1/s, optional", "The fluid flows without beads, with velocity ``velocity + velocity_gradient @ "
        "x``. Beads are carried along, and turn with half of its vorticity. Bodies that are not spheres are refused "
        "where the flow has shear.", default=None, kw_only=True,
    )  # fmt: skip
    velocity: Given["Numbers | None", np.ndarray] = argument(
        "(3,) float, nm/s, optional", "See `velocity_gradient`.", default=None, kw_only=True
    )
    tolerance: float = number(
        "", "Bound of the error of Lanczos' method, relative to the slowest motion of the beads in D, to an average "
        "one in O: the temperature of a motion is off by at most about twice this part.",
        default=0.02, kw_only=True, above=0.0, at_most=0.1, fixed=True,
    )  # fmt: skip

    def _take(self, given: dict[str, Any]) -> None:
        super()._take(given)
        what = type(self).__name__
        self.viscosity, self.tolerance, self.wall = given["viscosity"], given["tolerance"], given["wall"]
        self.handles = _handles(what, given["handles"])
        self._frame = wall_frame(what, self.wall)
        self.velocity_gradient = _kept(f"{what}: velocity_gradient", given["velocity_gradient"], (3, 3))
        self.velocity = _kept(f"{what}: velocity", given["velocity"], (3,))
        self._check_flow(what)
        self.check()

    def __repr__(self) -> str:
        wall = "" if self.wall is None else f", wall={self.wall!r}"
        return f"RotnePrager({', '.join(h.name for h in self.handles)}; viscosity={self.viscosity:g}{wall})"

    @property
    def flows(self) -> bool:
        """True if the fluid moves without beads."""
        return bool(self.velocity.any() or self.velocity_gradient.any())

    def radius(self, handle: Handle) -> np.ndarray:
        """Return the radii of the spheres that stand for beads of a handle, (n,) nm; TopologyError if it does not take
        part."""
        if not any(handle is one for one in self.handles):
            named = ", ".join(h.name for h in self.handles)
            raise TopologyError(f"RotnePrager: {handle!r} does not take part: {named} do")
        if not isinstance(handle, OrientedBeads):
            return np.array(handle.friction) / (6.0 * np.pi * self.viscosity)
        tensors = handle.kind.friction_tensors
        kinds, which = np.unique(tensors.reshape(-1, 36), axis=0, return_inverse=True)
        radius = radius_of_bodies(kinds.reshape(-1, 6, 6), self.viscosity)[which.reshape(-1)]
        return np.broadcast_to(radius, (len(handle),)).copy()

    def check(self) -> None:
        """Raise a ParameterError or TopologyError, with the bead, for beads that cannot take part as they are now."""
        for handle in self.handles:
            self._check_beads(handle)

    def bind(self, layout: "Layout") -> HydrodynamicFlow:
        """Return the flow that moves the beads of one Context; ParameterError for a box that it cannot have."""
        self.check()
        if layout.is_periodic:
            expect_lattice("RotnePrager", layout.box, self.wall)
            if self.velocity_gradient.any():
                raise ParameterError(
                    "RotnePrager: velocity_gradient has no meaning among the images of a box of "
                    f"{in_words(tuple(layout.box.tolist()))} nm: leave one of them out"
                )
            largest = max(float(self.radius(handle).max(initial=0.0)) for handle in self.handles)
            layout.expect_width("RotnePrager", 2.0 * largest, "RotnePrager: its largest spheres touch at")
        return HydrodynamicFlow(self, layout, *self._frame)

    def _check_flow(self, what: str) -> None:
        gradient = self.velocity_gradient
        sources = float(np.trace(gradient))
        if abs(sources) > 1e-9 * np.abs(gradient).max():
            raise ParameterError(
                f"{what}: velocity_gradient has trace {sources:.6g} /s but must have 0: the fluid is incompressible"
            )
        if self.wall is None or not self.flows:
            return
        point, axes = self._frame
        # No slip: at the wall nothing moves.
        along = (gradient @ axes[:2].T).T * np.abs(point).max(initial=1.0)
        there = np.vstack([self.velocity + gradient @ point, along])
        if np.abs(there).max() > 1e-9 * max(np.abs(self.velocity).max(), np.abs(gradient).max()):
            raise ParameterError(
                f"{what}: velocity and velocity_gradient must vanish on the wall, where the fluid sticks; at its "
                f"point {point.tolist()} the fluid would move with {there[0].tolist()} nm/s"
            )

    def _check_beads(self, handle: Any) -> None:
        name = f"RotnePrager: {handle.name!r}"

        def first(wrong: np.ndarray) -> str:
            return f"bead {handle.beads[int(np.argmax(wrong))]}"

        held: Any = handle.kind.held.any(axis=1) if isinstance(handle, OrientedBeads) else handle.kind.fixed_beads
        if np.any(held):
            raise ParameterError(f"{name}: {first(held)} is fixed, or held; what does not move cannot take part yet")
        if isinstance(handle, Filaments) and handle.friction_along is not None:
            why = "the fluid between its nodes makes that; give the nodes one friction"
            raise ParameterError(f"{name} has another friction along than across: {why}")
        if isinstance(handle, OrientedBeads):
            tensors = handle.kind.friction_tensors
            still = np.linalg.eigvalsh(_scaled(tensors))[:, 0] <= 1e-12
            if len(handle) and still.any():
                raise ParameterError(
                    f"{name}: {first(still)} needs friction > 0 of translation and of rotation: without it the "
                    "mobility is infinite"
                )
            if len(handle):
                self._check_shapes(name, first, tensors)
        elif not (handle.friction > 0.0).all():
            raise ParameterError(
                f"{name}: {first(~(handle.friction > 0.0))} has friction 0 but must have more: it says how large it is"
            )
        if self.wall is not None and len(handle):
            refuse_overlap("RotnePrager", self.wall, handle.positions, self.radius(handle),
                           lambda i: f"of bead {handle.beads[i]} ({handle.name!r})")  # fmt: skip

    def _check_shapes(self, name: str, first: Any, tensors: np.ndarray) -> None:
        """Refuse bodies that are not spheres in shear: their friction does not determine how it turns them."""
        shear = self.velocity_gradient + self.velocity_gradient.T
        if not np.abs(shear).max() > 1e-9 * np.abs(self.velocity_gradient).max(initial=0.0):
            return
        mean = [np.trace(tensors[:, s, s], axis1=1, axis2=2) / 3.0 for s in (slice(3), slice(3, 6))]
        scale = np.sqrt(np.repeat(np.stack(mean, axis=1), 3, axis=1))
        round_ = np.abs(tensors / scale[:, :, None] / scale[:, None, :] - np.eye(6)).max(axis=(1, 2)) <= 1e-6
        if not round_.all():
            raise ParameterError(
                f"{name}: {first(~round_)} is not a sphere, and how shear turns it is not known by its friction"
            )


def _scaled(tensors: np.ndarray) -> np.ndarray:
    """Return tensors (k, 6, 6) scaled to 1 on the diagonals, or 0."""
    root = np.sqrt(np.maximum(np.diagonal(tensors, axis1=1, axis2=2), 0.0))
    root = np.where(root > 0.0, root, 1.0)
    return tensors / root[:, :, None] / root[:, None, :]


def _kept(what: str, given: Any, shape: tuple[int, ...]) -> np.ndarray:
    given = np.zeros(shape) if given is None else given
    out = vector(what, given).copy() if shape == (3,) else array(what, given, shape).copy()
    out.flags.writeable = False
    return out


def _handles(what: str, given: Any) -> tuple[Handle, ...]:
    handles = (given,) if isinstance(given, Handle) else tuple(given) if isinstance(given, Iterable) else (given,)
    if not handles:
        raise TopologyError(f"{what}: handles is empty: name the beads that feel the fluid move")
    for k, handle in enumerate(handles):
        if not isinstance(handle, Handle):
            raise TopologyError(f"{what}: handles[{k}] is not a handle of beads but {type(handle).__name__}")
        if not isinstance(handle, Beads) or isinstance(handle, Directors | SurfacePoints):
            raise TopologyError(
                f"{what}: {handle!r} cannot take part: free beads, balls, filaments, rigid bodies and rods can"
            )
        if handle.topology is not handles[0].topology:
            raise TopologyError(f"{what}: {handle!r} belongs to another topology than {handles[0]!r}")
        if any(handle is other for other in handles[:k]):
            raise TopologyError(f"{what}: {handle!r} is named twice")
    return handles
