"""Hydrodynamic interactions in one Context: the letters D and O of all beads that take part, at once."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from medyanpy._kernels.selected import hydrodynamics
from medyanpy.beads import OrientedBeads
from medyanpy.beads.oriented import mean_drift
from medyanpy.core.flows import Flow, Stage

if TYPE_CHECKING:
    from medyanpy._kernels.letters.kick import ForceSum
    from medyanpy.core.layout import Layout
    from medyanpy.hydrodynamics.rotne_prager import RotnePrager

__all__ = ["HydrodynamicFlow"]

#: The most vectors of Lanczos' method; beads that need more are outside its range.
_MOST = 150


class HydrodynamicFlow(Flow):
    """D and O of spheres and bodies with hydrodynamic interactions, with origin and axes of the wall."""

    obstacle = ""

    def __init__(self, interactions: "RotnePrager", layout: "Layout", origin: np.ndarray, axes: np.ndarray) -> None:
        self.interactions = interactions
        #: Handles with beads that this moves, those that turn first.
        self.handles: list[Any] = sorted(interactions.handles, key=lambda h: not isinstance(h, OrientedBeads))
        self._layout = layout
        self._wall = np.ascontiguousarray(axes), np.ascontiguousarray(origin)
        self._turning = turning = [h for h in self.handles if isinstance(h, OrientedBeads)]
        slices = [layout.slice_of(h) for h in self.handles]
        self._place = np.concatenate([np.arange(s.start, s.stop) for s in slices]).astype(np.int32)
        rows = [layout.rows_of(h) for h in turning]
        self._row = np.concatenate([np.arange(s.start, s.stop) for s in rows] or [np.empty(0)]).astype(np.int32)
        self._radius = np.concatenate([interactions.radius(h) for h in self.handles])
        #: The row of numbers of each body that turns. None before a letter needs them.
        self._species: np.ndarray | None = None
        self._numbers: np.ndarray
        self._plain: np.ndarray
        self._operations: dict[Stage, hydrodynamics.Thermostat | hydrodynamics.Displacement] = {}

    def in_place_of_o(self, stage: Stage) -> Any:
        return self._made(stage, False, hydrodynamics.Thermostat)

    def in_place_of_d(self, stage: Stage, forces: "ForceSum") -> Any:
        return self._made(stage, True, partial(hydrodynamics.Displacement, forces))

    def _made(self, stage: Stage, overdamped: bool, make: Callable[..., Any]) -> Any:
        if not len(self._place):
            return ()
        if self._species is None:
            self._make_numbers(overdamped)
        if stage not in self._operations:
            self._operations[stage] = make(*self._arguments(stage))
        return (self._operations[stage],)

    def arrays(self) -> dict[str, np.ndarray]:
        # Factors and inverses may differ in their last bits where a run is resumed.
        if self._species is None:
            return {}
        kept = {"radius": self._radius, "numbers": self._numbers, "plain": self._plain}
        return {f"hydrodynamics: {name}": array for name, array in kept.items()}

    def carry(self, before: Flow, then: np.ndarray, now: np.ndarray) -> None:
        """Copy the numbers of beads at places `then` before an edit and `now` after it."""
        if not isinstance(before, HydrodynamicFlow) or self._species is None or before._species is None:
            return
        theirs = {int(place): k for k, place in enumerate(before._place)}
        place_before = dict(zip(now.tolist(), then.tolist(), strict=True))
        n_own, n_their = len(self._row), len(before._row)
        same_fluid = self.interactions.viscosity == before.interactions.viscosity
        for k, place in enumerate(self._place.tolist()):
            other = theirs.get(place_before.get(place, -1))
            if other is None:
                continue
            if same_fluid:
                self._radius[k] = before._radius[other]
            if k < n_own:
                self._numbers[self._species[k]] = before._numbers[before._species[other]]
            else:
                self._plain[k - n_own] = before._plain[other - n_their]

    def _arguments(self, stage: Stage) -> tuple[Any, ...]:
        if len(self._operations) > 8:
            # Of timesteps and temperatures that are not used any more.
            self._operations.clear()
        its = self.interactions
        return (
            stage.index, stage.h, stage.kT, self._place, self._row, self._radius, self._species, self._numbers,
            self._plain, its.viscosity, its.wall is not None, *self._wall, its.velocity_gradient, its.velocity,
            its.tolerance, _MOST,
        )  # fmt: skip

    def _make_numbers(self, overdamped: bool) -> None:
        """Make the numbers of each body and bead that the kernel reads (documented there)."""
        layout, plain = self._layout, []
        for handle in self.handles[len(self._turning) :]:
            friction = np.array(layout.in_order(handle, np.broadcast_to(handle.friction, len(handle))))
            mass = np.array(layout.in_order(handle, np.broadcast_to(handle.mass, len(handle))))
            weight = np.sqrt(friction if overdamped else mass)
            plain.append(np.column_stack([weight, weight**2 / friction, 1.0 / weight]))
        self._plain = np.concatenate(plain or [np.empty((0, 3))])
        bodies = [
            np.column_stack([np.broadcast_to(h.kind.friction_tensors.reshape(-1, 36), (len(h), 36)),
                             np.repeat(h.mass[:, None], 3, axis=1), h.inertia])
            for h in self._turning
        ]  # fmt: skip
        rows = np.concatenate(bodies or [np.empty((0, 42))])
        if overdamped:
            rows[:, 36:] = 0.0
        kinds, species = np.unique(rows, axis=0, return_inverse=True)
        self._species = species.reshape(-1).astype(np.int32)
        self._numbers = np.zeros((len(kinds), 4 * 36))
        for numbers, kind in zip(self._numbers, kinds, strict=True):
            mobility = np.linalg.inv(kind[:36].reshape(6, 6))
            weight = np.linalg.cholesky(kind[:36].reshape(6, 6)) if overdamped else np.diag(np.sqrt(kind[36:]))
            own = weight.T @ mobility @ weight
            numbers[:108] = np.concatenate([weight, 0.5 * (own + own.T), np.linalg.inv(weight).T]).ravel()
            numbers[108:111] = mean_drift(mobility)
