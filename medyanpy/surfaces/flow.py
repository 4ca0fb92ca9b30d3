"""The flow of beads on a surface."""

from functools import partial

from medyanpy._kernels.selected import surface_constraints
from medyanpy.flows import Flow, Stage

__all__ = ["REACH", "SurfaceFlow"]

# How far from their surface beads that come from outside may be, relative to its size: they are brought onto it.
REACH = 1e-3


class SurfaceFlow(Flow):
    """Beads that stay on a surface: one scalar constraint each (_kernels/surface_constraints.pyx).

    Parameters
    ----------
    points : SurfacePoints
    layout : Layout
    """

    obstacle = "constraints keep it on its surface"

    def __init__(self, points, layout) -> None:
        surface = points.surface
        evaluator = surface.evaluator
        gradients = surface_constraints.Gradients(evaluator, len(points), layout.threads)
        self._make = partial(
            surface_constraints.SurfaceConstraints, evaluator, gradients, layout.slice_of(points).start, len(points),
            tolerance=points.tolerance, length=surface.length, reach=REACH * surface.length,
        )  # fmt: skip

    def before(self, stage: Stage):
        return (self._make("start"),) if stage.kind == "A" else ()

    def after(self, stage: Stage):
        if stage.kind == "A":
            return (self._make("flight", h=stage.h),)
        return (self._make("tangent"),) if stage.kind in "BO" else ()

    def tangent(self):
        return (self._make("admit"),)

    def settle(self):
        return (self._make("settle"),)
