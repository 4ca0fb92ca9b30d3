"""Transport of a user's functions to other processes, and of what they return back and into files."""

import functools
import json
import pickle
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from medyanpy._tools.validation import plain_name
from medyanpy.errors import ParameterError, shortened, shown
from medyanpy.files.trees import DTYPES

__all__ = ["Shipped", "name_of", "source_of", "text_of_values", "values_of_text"]


def name_of(function: Any) -> str:
    """Return the name of a function, with its module."""
    inner = function
    while isinstance(inner, functools.partial):
        inner = inner.func
    inner = inner if hasattr(inner, "__qualname__") else type(inner)
    return f"{inner.__module__}:{inner.__qualname__}"


class Shipped:
    """A function, or anything else that can be pickled, to be sent to other processes; `what` names it in messages.

    It goes by its name, if it can be imported by it; else with its code, by cloudpickle. Those of the script or
    notebook itself (``__main__``), which workers of a cluster do not have, go with their code too. In the process that
    it comes from it is the function itself, which threads share.
    """

    def __init__(self, what: str, function: Any) -> None:
        self._what = what
        self._function = function

    def pack(self, main_is_there: bool) -> None:
        """Prepare to be sent, to workers that import the script or do not; ParameterError tells what to do where that
        fails."""
        self._packed = _packed(self._what, self._function, main_is_there)

    def get(self) -> Any:
        return self._function

    def __reduce__(self) -> tuple[Any, ...]:
        return _Arrived, (f"{self._what} ({name_of(self._function)})", self._packed)


class _Arrived:
    """A function in another process: made from its bytes where its errors can be told."""

    def __init__(self, what: str, packed: bytes) -> None:
        self._what = what
        self._packed = packed

    def get(self) -> Any:
        try:
            return _unpacked(self._packed)
        except Exception as cause:
            raise ParameterError(
                f"{self._what} cannot be made in the worker: {type(cause).__name__}: {cause}. Workers need the "
                "packages and files that it is defined in, by the same names"
            ) from cause


@functools.lru_cache(maxsize=8)
def _unpacked(packed: bytes) -> Any:
    return pickle.loads(packed)


def _packed(what: str, function: Any, main_is_there: bool) -> bytes:
    failure: Exception | None = None
    plain = b""
    try:
        plain = pickle.dumps(function)
    except Exception as cause:
        failure = cause
    if plain and b"__main__" not in plain:
        return plain
    try:
        import cloudpickle
    except ImportError:
        if plain and main_is_there and hasattr(sys.modules["__main__"], "__file__"):
            return plain
        where = f"pickle says: {shortened(str(failure))}" if failure else "it is defined in the notebook or script"
        raise ParameterError(
            f"{what} ({name_of(function)}) cannot be sent to other processes: {where}. Define it with `def` in a file "
            "of its own, and import it; or have it sent with its code: pip install 'medyanpy[dask]'; or run in "
            "threads: executor=concurrent.futures.ThreadPoolExecutor()"
        ) from failure
    try:
        packed: bytes = cloudpickle.dumps(function)
    except Exception as cause:
        raise ParameterError(
            f"{what} ({name_of(function)}) cannot be sent to other processes: it uses something that cannot be "
            f"({shortened(str(cause))}). Make that inside the function, or run in threads: "
            "executor=concurrent.futures.ThreadPoolExecutor()"
        ) from cause
    return packed


def text_of_values(what: str, value: Any) -> str:
    """Return JSON of numbers, text, arrays, and lists and dicts of these, to the last bit; refuse anything else."""
    return json.dumps(_tree(what, value))


def _tree(what: str, value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str):
        return plain_name(what, value)
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, np.ndarray) and value.dtype.name in DTYPES:
        return {"dtype": value.dtype.name, "shape": list(value.shape), "values": value.ravel().tolist()}
    if isinstance(value, list | tuple):
        return [_tree(what, part) for part in value]
    if isinstance(value, dict) and all(isinstance(name, str) for name in value) and set(value) != _ARRAY:
        return {plain_name(what, name): _tree(what, part) for name, part in value.items()}
    raise ParameterError(
        f"{what} {shown(value)}, which is not a number, text or array of numbers, nor a list or dict of these"
    )


_ARRAY = {"dtype", "shape", "values"}


def values_of_text(text: str) -> Any:
    """Return what `text_of_values` was given, tuples as lists."""

    def array(tree: dict[str, Any]) -> Any:
        if set(tree) == _ARRAY and tree["dtype"] in DTYPES:
            return np.array(tree["values"], tree["dtype"]).reshape(tree["shape"])
        return tree

    return json.loads(text, object_hook=array)


def source_of(function: Callable[..., Any] | None) -> str | None:
    """Return a function by its name and, where there is one, its text: another text is another function."""
    if function is None:
        return None
    import hashlib
    import inspect

    try:
        text = inspect.getsource(function)
    except (OSError, TypeError):
        text = ""
    return f"{name_of(function)} {hashlib.sha256(text.encode()).hexdigest()[:16]}"
