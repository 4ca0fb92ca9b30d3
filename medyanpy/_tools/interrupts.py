"""Ctrl-C and SIGTERM come between two steps, and not while something is being written."""

import signal
import threading
from typing import Any

__all__ = ["Interrupts"]

# In this order: the one that raises by default is taken first and given back last, so that nothing raises in between.
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupts:
    """Holds SIGINT and SIGTERM back, except where they are let through; none is lost.

    Within the ``with`` statement a signal is noted. The handlers of before get it as soon as it is let through, or at
    the end, when they are back in their places. Handlers belong to the main thread: in others, where no signal arrives,
    nothing is done. The signal mask would not do: a signal that this thread does not take goes to another, whose
    handler runs here all the same. With `wanted` False nothing is done, as changing handlers takes longer than many a
    step.
    """

    def __init__(self, wanted: bool = True) -> None:
        self._wanted = wanted

    def __enter__(self) -> "Interrupts":
        self._before: dict[int, Any] = {}
        self._noted: set[int] = set()
        self._through = False
        if self._wanted and threading.current_thread() is threading.main_thread():
            try:
                for number in _SIGNALS:
                    before = signal.getsignal(number)
                    # One that was not installed by Python (None) could not be put back.
                    if before not in (None, signal.SIG_IGN):
                        self._before[number] = before
                        signal.signal(number, self._take)
            except BaseException:
                self._put_back()
                raise
        return self

    def let_through(self) -> None:
        """Pass signals on to the handlers of before from now on, starting with those that were noted."""
        self._through = True
        noted, self._noted = self._noted, set()
        for number in sorted(noted, reverse=True):
            self._take(number, None)

    def hold(self) -> None:
        """Note signals from now on, without passing them on."""
        self._through = False

    def _take(self, number: int, frame: Any) -> None:
        before = self._before[number]
        if not self._through:
            self._noted.add(number)
        elif callable(before):
            before(number, frame)
        else:
            signal.signal(number, before)
            signal.raise_signal(number)

    def _put_back(self) -> None:
        for number, before in reversed(self._before.items()):
            signal.signal(number, before)

    def __exit__(self, *exception: object) -> None:
        self._through = False
        self._put_back()
        # Signals that end the process come before those that raise.
        for number in sorted(self._noted, reverse=True):
            signal.raise_signal(number)
