"""What users may give to functions that make pictures."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from medyanpy._tools.validation import array, number, whole_number
from medyanpy.errors import ParameterError


def checked_size(what: str, size: Any, point_radius: Any) -> tuple[tuple[int, int], float | None]:
    width, height = (whole_number(f"{what}: size", s, at_least=100, at_most=20_000) for s in size)
    if point_radius is not None:
        point_radius = number(f"{what}: point_radius", point_radius, above=0.0)
    return (width, height), point_radius


def checked_axes(what: str, semi_axes: Any) -> dict[str, np.ndarray]:
    """Semi-axes by names of handles; how many there must be is known later."""
    if semi_axes is None:
        return {}
    if not isinstance(semi_axes, Mapping):
        raise ParameterError(f"{what}: semi_axes must be a dict of names of handles, not {type(semi_axes).__name__}")
    checked = {}
    for name, given in semi_axes.items():
        label = f"{what}: semi_axes[{name!r}]"
        a = array(label, given, (3,) if np.ndim(given) < 2 else (None, 3))
        if not (a > 0.0).all():
            raise ParameterError(f"{label} = {a.min():g} but must be > 0")
        checked[name] = a
    return checked


def need_matplotlib() -> None:
    try:
        import matplotlib  # noqa: F401
    except ImportError as cause:
        raise ImportError("pictures need matplotlib, which comes with medyanpy: pip install matplotlib") from cause
