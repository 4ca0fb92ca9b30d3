"""Number of threads to use: the one place that looks at the machine."""

import math
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path

from medyanpy._tools.validation import whole_number
from medyanpy.errors import ParameterError

__all__ = ["available_threads", "choose_threads", "threads_by_default"]

_by_default: ContextVar[int | None] = ContextVar("threads", default=None)


def _cgroup_quota() -> float:
    """Return the number of processors that a container may use, or infinity."""
    base = Path("/sys/fs/cgroup/cpu")
    with suppress(OSError, ValueError):
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        if quota != "max":
            return max(1.0, float(quota) / float(period))
    with suppress(OSError, ValueError):
        quota_us = int((base / "cpu.cfs_quota_us").read_text())
        if quota_us > 0:
            return max(1.0, quota_us / int((base / "cpu.cfs_period_us").read_text()))
    return math.inf


def available_threads() -> int:
    """Return the number of threads to use by default: the least of affinity, container quota and OMP_NUM_THREADS."""
    bounds = [len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)]
    quota = _cgroup_quota()
    if math.isfinite(quota):
        bounds.append(int(quota))
    first = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    if first.isdigit() and int(first) > 0:
        bounds.append(int(first))
    return max(1, min(bounds))


def choose_threads(threads: int | None) -> int:
    """Check `threads`, or choose the default for this machine; ParameterError where the machine refuses so many."""
    threads = _by_default.get() if threads is None else threads
    if threads is None:
        return available_threads()
    threads = whole_number("threads", threads, at_least=1, at_most=1024)
    _try_out(threads)
    return threads


@contextmanager
def threads_by_default(threads: int | None) -> Iterator[None]:
    """Use `threads` in a block wherever no number is given; None changes nothing."""
    token = _by_default.set(_by_default.get() if threads is None else choose_threads(threads))
    try:
        yield
    finally:
        _by_default.reset(token)


#: Number of threads that have been there at once.
_tried = max(2, available_threads())


def _try_out(threads: int) -> None:
    """Have so many threads at once, or raise: OpenMP ends the process where it cannot."""
    global _tried
    if threads <= _tried:
        return
    done, started = threading.Event(), []
    try:
        for _ in range(threads - 1):
            thread = threading.Thread(target=done.wait)
            thread.start()
            started.append(thread)
    except (RuntimeError, MemoryError) as error:
        raise ParameterError(
            f"threads = {threads}, but the machine lets this process have {len(started) + 1} at most ({error})"
        ) from None
    finally:
        done.set()
        for thread in started:
            thread.join()
    _tried = threads
