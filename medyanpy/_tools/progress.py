"""A progress bar for work that a person watches; silence in a pipe. And work that is to end in time."""

import math
import sys
import time
from typing import Any

from medyanpy._tools.deadlines import Deadline

__all__ = ["Progress"]

# Steps are taken in pieces of about this long (s) while a bar is shown, or a time limit is to be kept.
_REFRESH = 0.2


class Progress:
    """Steps a context, showing a bar on standard error if asked to, or if it is a terminal; within a time, if there is
    one.

    Parameters
    ----------
    total : int or None
        Steps to come; None where nobody knows.
    show : bool or None
    deadline : Deadline, optional
        Without it, all steps are taken at once.
    """

    def __init__(self, total: int | None, show: bool | None, deadline: Deadline | None = None) -> None:
        if show is None:
            show = sys.stderr is not None and sys.stderr.isatty()
        self.within(deadline)
        self._bar = None
        self._piece = 1
        # How long the last steps took each (s).
        self._each = 0.0
        if show and total != 0:
            from tqdm import tqdm

            # Short work shows nothing: a bar appears after a second.
            self._bar = tqdm(total=total, unit="step", delay=1.0, leave=False, file=sys.stderr)

    def within(self, deadline: Deadline | None) -> None:
        """From now on another deadline holds."""
        self.deadline = deadline
        self._taken = 0

    @property
    def time_is_up(self) -> bool:
        """Whether another step would come too late. The first never does, so that whoever calls again and again comes
        to the end; unless somebody has said to stop."""
        return self.deadline is not None and self.late_for(self.deadline)

    def late_for(self, deadline: Deadline) -> bool:
        """The same, by another deadline."""
        return (self._taken > 0 or deadline.stopped) and deadline.left < self._each

    def advance(self, context: Any, steps: int) -> None:
        """Take `steps` steps, or fewer where time is up before."""
        if self._bar is None and self.deadline is None:
            context.step(steps)
            return
        while steps and not self.time_is_up:
            n = min(steps, self._piece)
            if self.deadline is not None and self._each > 0.0 and math.isfinite(self.deadline.left):
                n = max(1, min(n, int(self.deadline.left / self._each)))
            started = time.perf_counter()
            context.step(n)
            took = time.perf_counter() - started
            self._taken += n
            self._each = took / n
            self._piece = max(1, 2 * n if took < 0.5 * _REFRESH else n // 2 if took > _REFRESH else self._piece)
            if self._bar is not None:
                self._bar.update(n)
            steps -= n

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *exception: object) -> None:
        if self._bar is not None:
            self._bar.close()
