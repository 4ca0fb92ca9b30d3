"""A progress bar for work that a person watches, on a terminal or in a notebook; silence in a pipe. And work that is to
end in time."""

import math
import sys
import time
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Self

from medyanpy._tools.deadlines import Deadline

if TYPE_CHECKING:
    from medyanpy.context import Context

__all__ = ["Bar", "Progress", "in_notebook"]

# Steps are taken in pieces of about this long (s) while a bar is shown, or a time limit is to be kept.
_REFRESH = 0.2
# Work that takes less time than this (s) shows no bar, and makes none: as a widget it costs more than a step.
_DELAY = 1.0


def in_notebook() -> bool:
    """Tell whether this is the kernel of a notebook: its standard error is not a terminal, and yet it is watched."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None


class Bar:
    """Counter of work, on standard error or as a widget of a notebook.

    `total` is None where it is not known, `unit` what is counted; `show` None: in a notebook, or if standard error is a
    terminal.
    """

    def __init__(self, total: int | None, unit: str, show: bool | None = None) -> None:
        if show is None:
            show = in_notebook() or (sys.stderr is not None and sys.stderr.isatty())
        self._show = show and total != 0
        self._total, self._unit = total, unit
        self._started, self._done = time.time(), 0
        self._bar: Any = None

    def update(self, n: int = 1) -> None:
        """Count so much more as done."""
        self._done += n
        if self._bar is not None:
            self._bar.update(n)
        elif self._show and time.time() - self._started >= _DELAY:
            bar = _tqdm()(total=self._total, unit=self._unit, initial=self._done, leave=False, file=sys.stderr)
            # tqdm can be told to show none (TQDM_DISABLE=1).
            self._show = not bar.disable
            if self._show:
                bar.start_t, bar.initial = self._started, 0
                self._bar = bar

    def say(self, form: str, *numbers: float) -> None:
        """Show some numbers behind the bar."""
        if self._bar is not None:
            self._bar.set_postfix_str(form.format(*numbers), refresh=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._bar is not None:
            self._bar.close()


def _tqdm() -> Any:
    """Return the bar for where this runs."""
    if in_notebook() and find_spec("ipywidgets") is None:
        # tqdm.auto would find that out by a warning, and take this one as well.
        from tqdm.std import tqdm
    else:
        from tqdm.auto import tqdm
    return tqdm


class Progress(Bar):
    """Steps a context and counts the steps, of which `total` are to come if that is known; within a deadline, if there
    is one."""

    def __init__(self, total: int | None, show: bool | None, deadline: Deadline | None = None) -> None:
        super().__init__(total, "step", show)
        self.within(deadline)
        self._piece = 1
        # Time of each of the last steps (s).
        self._each = 0.0

    def within(self, deadline: Deadline | None) -> None:
        """Set another deadline from now on."""
        self.deadline = deadline
        self._taken = 0

    @property
    def time_is_up(self) -> bool:
        """True if another step would come too late. The first never does unless told to stop: repeated calls end."""
        return self.deadline is not None and self.late_for(self.deadline)

    def late_for(self, deadline: Deadline) -> bool:
        """Tell whether another step would come too late for another deadline."""
        return (self._taken > 0 or deadline.stopped) and deadline.left < self._each

    def advance(self, context: "Context", steps: int) -> None:
        """Take `steps` steps, or fewer where time is up before."""
        if not self._show and self.deadline is None:
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
            self.update(n)
            steps -= n
