"""A progress bar for work that a person watches, on a terminal or in a notebook; silence in a pipe."""

import sys
import time
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from medyanpy.context import Context

__all__ = ["Bar", "Progress", "in_notebook"]

# Steps are taken in pieces of about this long (s) while a bar is shown.
_REFRESH = 0.2


def in_notebook() -> bool:
    """Whether this is the kernel of a notebook: its standard error is no terminal, and yet somebody watches."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None


class Bar:
    """Counts work, on standard error or as a widget of a notebook.

    Parameters
    ----------
    total : int or None
        How much there is to count; None where nobody knows.
    unit : str
        What is counted.
    show : bool or None
        None where somebody watches: in a notebook, or if standard error is a terminal.
    """

    def __init__(self, total: int | None, unit: str, show: bool | None = None) -> None:
        if show is None:
            show = in_notebook() or (sys.stderr is not None and sys.stderr.isatty())
        self._bar: Any = None
        if show and total != 0:
            # Short work shows nothing: a bar appears after a second.
            bar = _tqdm()(total=total, unit=unit, delay=1.0, leave=False, file=sys.stderr)
            # Who says so to tqdm (TQDM_DISABLE=1) sees none.
            self._bar = None if bar.disable else bar

    def update(self, n: int = 1) -> None:
        """So much more is done."""
        if self._bar is not None:
            self._bar.update(n)

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
    """The bar for where this runs."""
    if in_notebook() and find_spec("ipywidgets") is None:
        # tqdm.auto would find that out by a warning, and take this one as well.
        from tqdm.std import tqdm
    else:
        from tqdm.auto import tqdm
    return tqdm


class Progress(Bar):
    """Steps a context and counts the steps."""

    def __init__(self, total: int, show: bool | None) -> None:
        super().__init__(total, "step", show)
        self._piece = 1

    def advance(self, context: "Context", steps: int) -> None:
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
            self.update(n)
            steps -= n
