"""Flows around the letters of a word that kicks of some kinds need."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from medyanpy._kernels.letters.cayley import AfterFlight, BeforeFlight, BeforeKick
from medyanpy._kernels.selected import implicit_kicks
from medyanpy.core.flows import Flow, Stage

__all__ = ["Conjugation", "Damping", "OnTheGroup", "OneStep"]


class OnTheGroup(Flow):
    """Does kicks and flights of rotations by equations for angular velocities."""

    def __init__(self, h: float, n: int) -> None:
        self._h, self._spin = h, np.zeros((n, 3))

    def before_b(self, stage: Stage) -> list[Any]:
        return [BeforeKick(self._h)]

    def before_a(self, stage: Stage) -> list[Any]:
        return [BeforeFlight(self._h, self._spin)]

    def after_a(self, stage: Stage) -> list[Any]:
        return [AfterFlight(self._h, self._spin)]


class Damping(Flow):
    """Adds to the last kick of a step what γ other than ½ asks for: it damps by how much forces have changed."""

    def __init__(self, forces: Any, rule: Any, gamma: float, word: Sequence[Stage]) -> None:
        first, *_, last = [stage for stage in word if stage.kind == "B"]
        self._given, self._kept = (forces, rule), np.zeros(forces.f_array.shape)
        self._first = first.index
        self._h = (gamma - 0.5) * (first.h + last.h)

    def after_b(self, stage: Stage) -> list[Any]:
        if stage.index == self._first:
            return [implicit_kicks.KeepForce(*self._given, self._kept)]
        return [implicit_kicks.KickByChange(*self._given, self._kept, self._h)]


class OneStep(Flow):
    """Does the flight of a step by one step of Newton's method."""

    def __init__(self, forces: Any, rule: Any, n: int) -> None:
        self._forces, self._rule, self._v = forces, rule, np.zeros((n, 3))

    def before_a(self, stage: Stage) -> list[Any]:
        return [implicit_kicks.OneNewtonStep(self._forces, self._rule, stage.h, self._v)]

    def after_a(self, stage: Stage) -> list[Any]:
        return [implicit_kicks.AfterOneNewtonStep(self._rule, self._v)]


class Conjugation(Flow):
    """Runs a word in the coordinates of an implicit kick, from positions of particles to positions of particles."""

    def __init__(self, forces: Any, rule: Any, first: int, last: int) -> None:
        self._forces, self._rule, self._first, self._last = forces, rule, first, last

    def before(self, stage: Stage) -> list[Any]:
        return [implicit_kicks.ToCoordinates(self._forces, self._rule)] if stage.index == self._first else []

    def after(self, stage: Stage) -> list[Any]:
        return [implicit_kicks.ToPlaces(self._forces, self._rule)] if stage.index == self._last else []
