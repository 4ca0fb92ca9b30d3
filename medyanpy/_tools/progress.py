"""A progress bar for work that a person watches; silence in a pipe."""

import sys
import time

__all__ = ["Progress"]

# Steps are taken in pieces of about this long (s) while a bar is shown.
_REFRESH = 0.2


class Progress:
    """Steps a context, showing a bar on standard error if asked to, or if it is a terminal."""

    def __init__(self, total: int, show: bool | None) -> None:
        if show is None:
            show = sys.stderr is not None and sys.stderr.isatty()
        self._bar = None
        self._piece = 1
        if show and total:
            from tqdm import tqdm

            # Short work shows nothing: a bar appears after a second.
            self._bar = tqdm(total=total, unit="step", delay=1.0, leave=False, file=sys.stderr)

    def advance(self, context, steps: int) -> None:
        """Take `steps` steps."""
        if self._bar is None:
            context.step(steps)
            return
        while steps:
            n = min(steps, self._piece)
            started = time.perf_counter()
            context.step(n)
            took = time.perf_counter() - started
            self._piece = max(1, 2 * n if took < 0.5 * _REFRESH else n // 2 if took > _REFRESH else self._piece)
            self._bar.update(n)
            steps -= n

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *exception: object) -> None:
        if self._bar is not None:
            self._bar.close()
