"""Packages that only some of what this one does needs."""

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["needed"]


@contextmanager
def needed(what: str, package: str, extra: str) -> Iterator[None]:
    """Guard imports of what comes with an extra; without it, the error tells how to get it.

    Parameters
    ----------
    what : str
        What is to be done, for the message.
    package : str
        As people call it.
    extra : str
        Of this package.

    Raises
    ------
    ImportError
    """
    try:
        yield
    except ImportError as cause:
        why = "" if isinstance(cause, ModuleNotFoundError) else f" ({cause})"
        raise ImportError(f"{what} needs {package}{why}: pip install 'medyanpy[{extra}]'") from cause
