"""Work on other processes: on those of this machine, which are restarted when they end, or on any given executor."""

import multiprocessing
import os
import queue
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from typing import Any

from medyanpy._tools.extras import needed
from medyanpy._tools.threads import available_threads
from medyanpy._tools.validation import whole_number
from medyanpy.errors import ExecutorError, ParameterError, shown

__all__ = ["Died", "Workers"]

# Tasks that were under way so often when a worker ended run alone, and are given up when it happens as often again.
_TOGETHER = 3
# Times that workers may be killed while they start.
_TRIES = 20
# A worker whose parent is gone, or wants it to end, may save what it does for so long (s). When one worker ends, loky
# 3.7 kills the others at once: of two that save on SIGTERM neither did; with `ProcessPoolExecutor` both did.
_GRACE = 20.0


class Died(Exception):  # noqa: N818 - it is a result
    """Outcome of a task whose workers ended again and again, or that its executor could not run."""


_busy = threading.Lock()


def _start(parent: Any) -> None:
    """Let a worker end when the other end of a pipe is closed: by its parent, or because that is gone."""

    def watch() -> None:
        try:
            parent.recv()
        except (EOFError, OSError):
            pass
        # A run in a folder of its own saves a checkpoint.
        os.kill(os.getpid(), signal.SIGTERM)
        _busy.acquire(timeout=_GRACE)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _there() -> None:
    """Do nothing: a task by which a worker shows that it is there."""


def _work(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    with _busy:
        return function(*arguments)


class Workers:
    """Processes, threads or cluster on which work is done.

    `executor` is an Executor, a Client or the address of a scheduler of Dask, or a number of processes; None for as
    many as there are processors for, by the `threads` of each piece of work. Processes of our own, `most` as there are
    pieces, are spawned; what is given stays open.
    """

    def __init__(self, what: str, executor: Any, threads: int, most: int) -> None:
        self._what = what
        self._pool: ProcessPoolExecutor | None = None
        self._given: Executor | None = None
        self._client: Any = None
        self._n = 0
        if getattr(multiprocessing.current_process(), "_inheriting", False):
            raise ExecutorError(
                f"{what}: it is called while a worker process starts, which imports the script: put what the script "
                'does under  if __name__ == "__main__":'
            )
        if isinstance(executor, str):
            executor = self._client = _connected(what, executor)
        if executor is None:
            self._n = max(1, available_threads() // threads)
        elif isinstance(executor, int) and not isinstance(executor, bool):
            self._n = whole_number(f"{what}: executor", executor, at_least=1, at_most=1024)
        elif hasattr(executor, "get_executor"):
            if getattr(executor, "asynchronous", False):
                raise ParameterError(f"{what}: executor is an asynchronous Client: make one with asynchronous=False")
            # Not pure: the same call again is work again.
            self._given = executor.get_executor(pure=False)
        elif isinstance(executor, Executor) or (hasattr(executor, "submit") and hasattr(executor, "shutdown")):
            self._given = executor
        else:
            raise ParameterError(
                f"{what}: executor must be a concurrent.futures.Executor, a Client of dask.distributed, its "
                f"scheduler's address, or a number of processes, not {shown(executor)}"
            )
        self._n = min(self._n, max(1, most))

    @property
    def in_threads(self) -> bool:
        """True if workers are threads of this process."""
        return isinstance(self._given, ThreadPoolExecutor)

    @property
    def import_main(self) -> bool:
        """True if workers have the script that runs here."""
        return self._given is None or isinstance(self._given, ProcessPoolExecutor)

    def __enter__(self) -> "Workers":
        if self._given is None:
            try:
                for _ in range(_TRIES):
                    if self._come_up():
                        break
                    self.close()
                else:
                    raise ExecutorError(f"{self._what}: worker processes are killed before they have started")
            except BaseException:
                self.close()
                raise
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        self.close(wait=kind is None)

    def _come_up(self) -> bool:
        """Start workers, and wait for the first; False if one was killed meanwhile. ExecutorError where one has ended
        by itself: a script without the guard would have one pool after the other do so."""
        self._begin()
        assert self._pool is not None
        first: queue.SimpleQueue[Future[None]] = queue.SimpleQueue()
        processes: list[Any] = []
        try:
            for _ in range(self._n):
                self._pool.submit(_there).add_done_callback(first.put)
            processes = list(self._pool._processes.values())
            first.get().result()
        except BrokenExecutor as cause:
            until = time.perf_counter() + 2.0
            while all(process.exitcode is None for process in processes) and time.perf_counter() < until:
                time.sleep(0.01)
            # Processes that are killed have the negative number of a signal.
            if any((process.exitcode or 0) > 0 for process in processes):
                raise ExecutorError(
                    f"{self._what}: worker processes end as soon as they start; what they said is above. They import "
                    'the script: what it does must stand under  if __name__ == "__main__":'
                ) from cause
            return False
        return True

    def _begin(self) -> None:
        context = multiprocessing.get_context("spawn")
        mine, theirs = context.Pipe()
        self._pipe = mine, theirs
        self._pool = ProcessPoolExecutor(self._n, context, _start, (theirs,))

    def close(self, wait: bool = False) -> None:
        """End workers of our own: at once, or when they are done with what they do."""
        if self._client is not None:
            self._client.close()
        if self._pool is None:
            return
        if wait:
            self._pool.shutdown(cancel_futures=True)
        for end in self._pipe:
            end.close()
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._pool = None

    @property
    def window(self) -> int | None:
        """Number of pieces of work to have on their way, so that no worker waits; None where that is not known."""
        n = self._n if self._given is None else getattr(self._given, "_max_workers", None)
        return 2 * n if isinstance(n, int) else None

    def each(
        self, function: Callable[..., list[Any]], common: Any, pieces: Iterable[list[Any]]
    ) -> Iterator[tuple[Any, Any]]:
        """Call ``function(common, units)`` for each piece of work, a list of units, which gives an outcome for each:
        (unit, outcome), as they come.

        Pieces are asked for when a worker is free. Those whose worker ended are begun again, unit by unit; `Died` is
        the outcome of one for which that does not help. ExecutorError where an executor that was given has ended.
        """
        done: queue.SimpleQueue[Future[Any]] = queue.SimpleQueue()
        flying: dict[Future[Any], tuple[list[Any], int]] = {}
        again: deque[tuple[list[Any], int]] = deque()
        suspects: deque[tuple[list[Any], int]] = deque()
        coming = iter(pieces)
        window = self.window

        def following() -> tuple[list[Any], int] | None:
            if again:
                return again.popleft()
            units = next(coming, None)
            if units is not None:
                return units, 0
            return suspects.popleft() if suspects and not flying else None

        try:
            while True:
                while window is None or len(flying) < window:
                    piece = following()
                    if piece is None:
                        break
                    try:
                        future = self._submit(function, (common, piece[0]))
                    except BrokenExecutor:
                        # The pool is our own: another worker has ended since. Pieces that were under way are handled
                        # below.
                        again.appendleft(piece)
                        if flying:
                            break
                        self.close()
                        self._begin()
                        continue
                    flying[future] = piece
                    future.add_done_callback(done.put)
                if not flying:
                    return
                future = done.get()
                units, deaths = flying.pop(future)
                try:
                    outcomes = future.result()
                except (BrokenExecutor, CancelledError) as cause:
                    if self._given is not None:
                        raise self._gone(cause) from cause
                    failure: BaseException = cause
                except Exception as cause:
                    if self._given is not None and len(units) == 1:
                        # As Dask's, which has tried several workers.
                        yield units[0], Died(f"the executor could not do it: {type(cause).__name__}: {cause}")
                        continue
                    failure = cause
                else:
                    yield from zip(units, outcomes, strict=True)
                    continue
                deaths += 1
                if deaths == 2 * _TOGETHER:
                    yield units[0], Died(f"its worker ended {deaths} times: {type(failure).__name__}: {failure}")
                else:
                    (again if deaths < _TOGETHER else suspects).extend(([unit], deaths) for unit in units)
        finally:
            for future in flying:
                future.cancel()

    def _submit(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Future[Any]:
        if self._given is None:
            assert self._pool is not None
            return self._pool.submit(_work, function, arguments)
        try:
            return self._given.submit(function, *arguments)
        except Exception as cause:
            raise self._gone(cause) from cause

    def _gone(self, cause: BaseException) -> ExecutorError:
        said = f"{type(cause).__name__}: {cause}" if str(cause) else type(cause).__name__
        return ExecutorError(
            f"{self._what}: the executor has ended or was shut down ({said}). What is done is kept in the directory, "
            "if there is one: call again with another executor"
        )


def _connected(what: str, address: str) -> Any:
    with needed(f"{what}: executor = {address!r}, the address of a scheduler,", "Dask", "dask"):
        from distributed import Client
    connect: Any = Client
    try:
        return connect(address, timeout=10.0)
    except Exception as cause:
        raise ExecutorError(f"{what}: no scheduler of Dask answers at {address!r}: {cause}") from cause
