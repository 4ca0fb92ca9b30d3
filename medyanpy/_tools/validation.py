"""Checks of what users pass in. Each returns a clean value, or an error with what, where, which and the bound."""

import errno
import operator
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from medyanpy import units
from medyanpy.errors import ParameterError, shown

__all__ = [
    "array", "bounds_in_words", "dimensions", "file_path", "number", "one_or_many", "per_item", "plain_name", "seed",
    "several", "thermal_energy", "vector", "vectors", "whole_number", "words",
]  # fmt: skip


def _refuse(what: str, problem: str, error: type[Exception], value: float = 0.0) -> Exception:
    refusal = error(f"{what} {problem}")
    if isinstance(refusal, ParameterError):
        refusal.not_finite = not np.isfinite(value)
    return refusal


def array(
    what: str, value: Any, shape: Sequence[int | None], *, dtype: type = np.float64,
    error: type[Exception] = ParameterError, nan: bool = False
) -> np.ndarray:  # fmt: skip
    """Return a C-contiguous array of a shape (None: any length), finite if it holds floats; nan where it may be."""
    wanted = "(" + ", ".join("n" if s is None else str(s) for s in shape) + ("," if len(shape) == 1 else "") + ")"
    try:
        raw = _real(np.asarray(value))
        if dtype is not np.float64 and raw.size and not np.issubdtype(raw.dtype, np.integer):
            raise _refuse(what, f"must hold integers, not {raw.dtype}", error)
        out: np.ndarray = np.ascontiguousarray(raw, dtype=dtype) if raw.size else np.zeros(raw.shape, dtype)
    except Exception as cause:  # Objects of others may raise anything.
        if isinstance(cause, error):
            raise
        raise _refuse(what, f"must be an array of shape {wanted}: {cause}", error) from cause
    if out.ndim != len(shape) or any(s is not None and s != n for s, n in zip(shape, out.shape, strict=False)):
        raise _refuse(what, f"must have shape {wanted}, not {raw.shape}", error)
    fine = np.isfinite(out)
    if nan:
        fine |= np.isnan(out)
    if dtype is np.float64 and not fine.all():
        index = tuple(int(i) for i in np.argwhere(~fine)[0])
        place = ", ".join(map(str, index))
        raise _refuse(f"{what}[{place}]", f"= {out[index]} but must be finite", error, out[index])
    return out


def _real(raw: np.ndarray) -> np.ndarray:
    """Refuse text that reads as numbers, complex numbers, of which NumPy drops a half, and dates."""
    if raw.dtype.kind in "SU":
        raise TypeError(f"text, not numbers: {raw.ravel().tolist()[0]!r}" if raw.size else "text, not numbers")
    if raw.dtype.kind not in "biufO":
        raise TypeError(f"{raw.dtype}, not real numbers")
    return raw


def dimensions(what: str, value: Any, wanted: str, *, error: type[Exception] = ParameterError) -> int:
    """Return the number of dimensions of an array; rows of different lengths have none of the shapes `wanted`."""
    try:
        return np.ndim(value)
    except Exception as cause:
        raise _refuse(what, f"must have shape {wanted}: {cause}", error) from cause


def one_or_many(
    what: str, value: Any, *, dtype: type = np.float64, error: type[Exception] = ParameterError
) -> np.ndarray:
    """Return numbers (n,); of one number, n is 1."""
    many = value if dimensions(what, value, "(n,)", error=error) else [value]
    return array(what, many, (None,), dtype=dtype, error=error)


def several(what: str, value: Any, *, error: type[Exception] = ParameterError) -> list[Any]:
    """Return the items given, as a list."""
    try:
        return list(value)
    except Exception as cause:
        raise _refuse(what, f"= {shown(value)} but must be a list", error) from cause


def words(what: str, value: Any, *, error: type[Exception] = ParameterError) -> list[str]:
    """Return names, or one name."""
    out = [value] if isinstance(value, str) else several(what, value, error=error)
    for i, word in enumerate(out):
        if not isinstance(word, str):
            raise _refuse(f"{what}[{i}]", f"= {shown(word)} but must be text", error)
    return out


#: Comparison and text of each bound, by the names of its arguments.
_BOUNDS = {
    "above": (operator.gt, ">"),
    "at_least": (operator.ge, ">="),
    "below": (operator.lt, "<"),
    "at_most": (operator.le, "<="),
}


def bounds_in_words(bounds: Mapping[str, float]) -> str:
    """Return bounds as text, ``">= 0 and < π"``; empty where there are none."""
    return " and ".join(f"{_BOUNDS[k][1]} {'π' if b == np.pi else f'{b:g}'}" for k, b in bounds.items())


def _outside(x: Any, bounds: Mapping[str, float]) -> Any:
    """Tell where numbers are not finite, or do not keep a bound."""
    bad = ~np.isfinite(x)
    for key, bound in bounds.items():
        bad = bad | np.logical_not(_BOUNDS[key][0](x, bound))
    return bad


def _refuse_outside(what: str, x: Any, bounds: Mapping[str, float], error: type[Exception]) -> None:
    """Refuse numbers with one of them outside; the first is named by its place."""
    bad = _outside(x, bounds)
    if np.any(bad):
        index = tuple(map(int, np.argwhere(bad)[0])) if np.ndim(x) else ()
        place = f"[{', '.join(map(str, index))}]" if index else ""
        kept = " and ".join(filter(None, ("finite", bounds_in_words(bounds))))
        radians = " (radians)" if "π" in kept else ""
        value = x[index] if index else x
        raise _refuse(f"{what}{place}", f"= {value} but must be {kept}{radians}", error, value)


def number(what: str, value: Any, *, error: type[Exception] = ParameterError, **bounds: float) -> float:
    """Return a finite float within its bounds: ``above=``, ``at_least=``, ``below=``, ``at_most=``."""
    try:
        if isinstance(value, str | bytes):
            raise TypeError
        out = float(value)
    except OverflowError as cause:
        raise _refuse(what, f"= {shown(value)} but must be below 1.8e308", error) from cause
    except Exception as cause:
        raise _refuse(what, f"= {shown(value)} but must be a number", error) from cause
    _refuse_outside(what, out, bounds, error)
    return out


def per_item(what: str, value: Any, n: int, *, error: type[Exception] = ParameterError, **bounds: float) -> np.ndarray:
    """Return one float for each of n items: a scalar for all (a view without memory of its own) or n of them."""
    try:
        raw = _real(np.asarray(value)).astype(np.float64)
    except Exception as cause:
        raise _refuse(what, f"must be a number or {n} numbers: {cause}", error) from cause
    if raw.ndim > 1 or (raw.ndim == 1 and len(raw) != n):
        raise _refuse(what, f"must be a number or have shape ({n},), not {raw.shape}", error)
    _refuse_outside(what, raw, bounds, error)
    out = np.broadcast_to(raw if raw.ndim == 0 else raw.copy(), (n,))
    out.flags.writeable = False
    return out


def vector(what: str, value: Any, *, error: type[Exception] = ParameterError) -> np.ndarray:
    """Return three finite floats."""
    return array(what, value, (3,), error=error)


def vectors(
    what: str, value: Any, n: int | None, *, size: int = 3, or_number: bool = False,
    error: type[Exception] = ParameterError, **bounds: float
) -> np.ndarray:  # fmt: skip
    """Return floats, a read-only copy: one vector for all of n items, (size,), or one for each, (n, size); n None: one
    vector. With `or_number` one number stands for all components of one vector. Bounds as of `number`."""
    shapes = ["()"] * or_number + [f"({size},)"] + ([] if n is None else [f"({n}, {size})"])
    depth = dimensions(what, value, " or ".join(shapes), error=error)
    if or_number and depth == 0:
        out = np.full(size, number(what, value, error=error, **bounds))
    else:
        out = array(what, value, (size,) if n is None or depth < 2 else (n, size), error=error).copy()
        _refuse_outside(what, out, bounds, error)
    out.flags.writeable = False
    return out


def whole_number(
    what: str, value: Any, *, at_least: int = 0, at_most: int | None = None, error: type[Exception] = ParameterError
) -> int:
    """Return an integer within its bounds; 3.0 is one, 3.5 and True are not."""
    ok = not isinstance(value, bool | np.bool_)
    try:
        out = int(value)
        ok = bool(ok and out == value)
    except Exception:
        ok, out = False, 0
    if not ok or out < at_least or (at_most is not None and out > at_most):
        bound = f">= {at_least}" + ("" if at_most is None else f" and <= {at_most}")
        raise _refuse(what, f"= {shown(value)} but must be a whole number {bound}", error)
    return out


def file_path(what: str, value: Any, *, error: type[Exception] = ParameterError) -> Path:
    """Return the path of a file, which need not be there: text, or what ``os.fspath`` makes text of."""
    try:
        out = Path(value)
        name = str(out).encode()
    except Exception as cause:  # Objects of others may raise anything.
        raise _refuse(what, f"must be a path, not {shown(value)}", error) from cause
    if b"\0" in name or not out.name:
        raise _refuse(what, f"= {shown(value)} but must name a file", error)
    try:
        os.lstat(out)
    except OSError as cause:
        if cause.errno == errno.ENAMETOOLONG:
            raise _refuse(what, f"= {shown(value)} is too long a name", error) from cause
    return out


def plain_name(what: str, value: Any, *, error: type[Exception] = ParameterError) -> str:
    """Return a name that every file can hold: text without the character NUL, and without halves of characters."""
    try:
        if isinstance(value, str) and b"\0" not in value.encode():
            return str(value)
    except UnicodeEncodeError:
        pass
    raise _refuse(what, f"= {shown(value)} but must be text that UTF-8 can hold, without NUL", error)


def thermal_energy(temperature: float | None, kT: float | None, what: str = "") -> float | None:
    """Return kT in pN nm from one of the two ways of giving it; None if neither is."""
    before = f"{what}: " if what else ""
    if temperature is not None and kT is not None:
        raise ParameterError(f"{before}give temperature= (kelvin) or kT= (pN nm), not both")
    if temperature is not None:
        return units.boltzmann * number(f"{before}temperature", temperature, above=0.0)
    return None if kT is None else number(f"{before}kT", kT, above=0.0)


def required_thermal_energy(what: str, temperature: float | None, kT: float | None) -> float:
    """Return kT in pN nm from one of the two ways of giving it."""
    energy = thermal_energy(temperature, kT, what)
    if energy is None:
        raise ParameterError(f"{what}: give temperature= (kelvin) or kT= (pN nm)")
    return energy


def seed(what: str, value: Any) -> int:
    """Return a seed of the counter-based generator: any whole number of 64 bits."""
    return whole_number(what, value, at_least=0, at_most=2**64 - 1)
