"""Packages that only some of what this one does needs."""

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["needed"]


@contextmanager
def needed(what: str, package: str, extra: str) -> Iterator[None]:
    """Guard imports of a package that comes with an extra of this one; without it, the error tells how to get it."""
    try:
        yield
    except ImportError as cause:
        why = "" if isinstance(cause, ModuleNotFoundError) else f" ({cause})"
        raise ImportError(f"{what} needs {package}{why}: pip install 'medyanpy[{extra}]'") from cause
