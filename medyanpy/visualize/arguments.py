"""Checks of arguments of functions that make pictures."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from medyanpy._tools.validation import array, number, per_item, several, whole_number
from medyanpy.errors import ParameterError, shown
from medyanpy.visualize.scene import BeadModel


def checked_size(what: str, size: Any, point_radius: Any) -> tuple[tuple[int, int], float | None]:
    pair = several(f"{what}: size", size)
    if len(pair) != 2:
        raise ParameterError(f"{what}: size = {shown(size)} but must be two whole numbers, (width, height)")
    width, height = (whole_number(f"{what}: size", s, at_least=100, at_most=20_000) for s in pair)
    if point_radius is not None:
        point_radius = number(f"{what}: point_radius", point_radius, above=0.0)
    return (width, height), point_radius


def checked_looks(
    what: str, opacity: Any, semi_axes: Any, spheres: Any, colors: Any
) -> tuple[float, tuple[dict[str, np.ndarray], dict[str, list[BeadModel]]], dict[str, tuple[float, float, float]]]:
    """Check what pictures, movies and scenes share: the opacity, semi-axes and spheres of bodies, and colours."""
    opacity = number(f"{what}: opacity", opacity, at_least=0.0, at_most=1.0)
    bodies = checked_axes(what, semi_axes), checked_spheres(what, spheres)
    need_matplotlib()
    return opacity, bodies, checked_colors(what, colors)


def _by_name(what: str, name: str, given: Any) -> Mapping[str, Any]:
    """Check a dict by names of handles."""
    if given is not None and not isinstance(given, Mapping):
        raise ParameterError(f"{what}: {name} must be a dict of names of handles, not {type(given).__name__}")
    return given or {}


def checked_axes(what: str, semi_axes: Any) -> dict[str, np.ndarray]:
    """Check semi-axes by names of handles; how many there must be is known later."""
    checked: dict[str, np.ndarray] = {}
    for name, given in _by_name(what, "semi_axes", semi_axes).items():
        label = f"{what}: semi_axes[{name!r}]"
        a = array(label, given, (3,) if np.ndim(given) < 2 else (None, 3))
        if not (a > 0.0).all():
            raise ParameterError(f"{label} = {a.min():g} but must be > 0")
        checked[name] = a
    return checked


def checked_spheres(what: str, spheres: Any) -> dict[str, list[BeadModel]]:
    """Check bead models by names of handles; how many bodies there must be is known later."""
    checked: dict[str, list[BeadModel]] = {}
    for name, given in _by_name(what, "spheres", spheres).items():
        label = f"{what}: spheres[{name!r}]"
        models = given if isinstance(given, list) else [given]
        if not models or not all(isinstance(model, tuple) and len(model) == 2 for model in models):
            raise ParameterError(f"{label} must be (centers, radii), or a list of these, not {shown(given)}")
        checked[name] = []
        for centers, radii in models:
            x = array(f"{label}: centers", centers, (None, 3))
            if not len(x):
                raise ParameterError(f"{label}: centers must hold at least one sphere")
            checked[name].append(BeadModel(x, per_item(f"{label}: radii", radii, len(x), above=0.0)))
    return checked


def checked_colors(what: str, colors: Any) -> dict[str, tuple[float, float, float]]:
    """Check colours by names of handles, forces and jumps; which there are is known later."""
    from matplotlib.colors import to_rgb

    checked: dict[str, tuple[float, float, float]] = {}
    for name, color in _by_name(what, "colors", colors).items():
        try:
            checked[name] = to_rgb(color)
        except (ValueError, TypeError) as cause:
            raise ParameterError(
                f"{what}: colors[{name!r}] = {shown(color)} but must be a colour of Matplotlib"
            ) from cause
    return checked


def need_matplotlib() -> None:
    try:
        import matplotlib  # noqa: F401
    except ImportError as cause:
        raise ImportError("pictures need matplotlib, which comes with medyanpy: pip install matplotlib") from cause
