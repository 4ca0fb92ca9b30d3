"""Limits on the time of work, as schedulers and people write them, and when they are over."""

import math
import re
import time

from medyanpy._tools.validation import number
from medyanpy.errors import ParameterError, shown

__all__ = ["Deadline", "in_words", "seconds_of"]

_SECONDS = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0}
_UNITS = re.compile("".join(rf"(?:(?P<{unit}>\d+(?:\.\d*)?){unit})?" for unit in _SECONDS))
# As schedulers write it.
_CLOCK = re.compile(r"(?:(?P<d>\d+)-)?(?P<h>\d+):(?P<m>[0-5]\d):(?P<s>[0-5]\d)")


def seconds_of(what: str, value: float | str) -> float:
    """Read a time, s, > 0: a number of seconds, or text such as ``"90"``, ``"50m"``, ``"1h30m"`` or
    ``"1-02:30:00"``."""
    if not isinstance(value, str):
        return number(what, value, above=0.0)
    text = value.replace(" ", "")
    found = (text and _UNITS.fullmatch(text)) or _CLOCK.fullmatch(text)
    if found:
        parts = found.groupdict()
        out = sum(_SECONDS[unit] * float(parts[unit]) for unit in _SECONDS if parts[unit])
    else:
        try:
            out = float(text)
        except ValueError:
            raise ParameterError(
                f"{what} = {shown(value)} but must be seconds, or text such as '50m', '1h30m' or '1-02:30:00'"
            ) from None
    return number(what, out, above=0.0)


def in_words(seconds: float) -> str:
    """Return a time for a message."""
    return f"{seconds:.3g} s" if seconds < 1000.0 else f"{round(seconds)} s"


class Deadline:
    """Moment at which work is to be over: so many seconds from now, when told to stop, or at that of `outer`."""

    def __init__(self, seconds: float | None = None, outer: "Deadline | None" = None) -> None:
        self.seconds = math.inf if seconds is None else seconds
        self._begun = time.perf_counter()
        self._outer = outer
        self._stopped = False

    def stop(self) -> None:
        """End the time now; may be called by a signal handler."""
        self._stopped = True

    @property
    def stopped(self) -> bool:
        return self._stopped or (self._outer is not None and self._outer.stopped)

    @property
    def elapsed(self) -> float:
        """Time since it was set, s."""
        return time.perf_counter() - self._begun

    @property
    def left(self) -> float:
        """Time until then, s; negative afterwards, and infinite for as long as it takes."""
        if self.stopped:
            return -math.inf
        own = self.seconds - self.elapsed
        return own if self._outer is None else min(own, self._outer.left)
