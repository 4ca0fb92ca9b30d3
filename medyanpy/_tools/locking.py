"""Turns: one user of a context at a time.

A step runs on arrays that every look and every change uses too. A call in the middle of one, from another thread or a
function that the step itself calls, would see half a step, or leave one. So what a user may ask of a context takes a
turn first, and is refused while another has it.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import wraps
from typing import Any, TypeVar, cast, overload

from medyanpy.errors import ContextInUseError

__all__ = ["EDIT", "Turn", "one_at_a_time"]

_Method = TypeVar("_Method", bound=Callable[..., Any])

#: Name of the use while a topology is edited.
EDIT = "topology.edit"


class Turn:
    """Turn of using a context; `requests` are questions of other threads, to be answered between two steps."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._depth = 0
        # The call that has the turn; whether operations are under way for it; whether it reports.
        self._called = "a look"
        self._running: str | None = None
        self._reporting = False
        # The thread that takes a snapshot while no other has a turn.
        self._server: int | None = None
        self.requests: deque[Any] = deque()

    def take(self, name: str, *, in_reports: bool = True) -> None:
        """Begin `name`, or raise ContextInUseError."""
        if not self._lock.acquire(blocking=False) and not self._waited():
            raise ContextInUseError(
                f"{name}: another thread is inside {self._called} of this context, which has one user at a time. "
                "Wait until that is done; or look from here with context.snapshot(), which is served between two steps"
            )
        refused = ""
        if self._running == EDIT:
            refused = (
                f"{name} was called inside `with {EDIT}():`, where beads and forces are not yet those of the context: "
                "look before the block, and run after it"
            )
        elif self._running is not None:
            refused = (
                f"{name} was called from inside {self._running} of the same context, by the function of a PythonForce "
                "or by a signal handler. A PythonForce is given the positions as its argument; what else looks at a "
                "context or changes it belongs between two calls of step, or in a reporter"
            )
        elif self._reporting and not in_reports:
            refused = (
                f"{name} was called by a reporter, between two steps of the run that it reports on. A reporter may "
                "look, and change numbers of forces and links; to run differently, call step for fewer steps"
            )
        if refused:
            self._lock.release()
            raise ContextInUseError(refused)
        if self._depth == 0:
            self._called = name
        self._depth += 1

    def _waited(self) -> bool:
        """Tell whether the lock was held by a snapshot of another thread, which is short, and wait for it."""
        if self._server is None and self.requests:
            # It may be about to begin.
            return self._lock.acquire(timeout=1e-3) or (self._server is not None and self._lock.acquire())
        return self._server is not None and self._lock.acquire()

    def leave(self) -> None:
        """End what `take` began."""
        self._depth -= 1
        self._lock.release()

    @contextmanager
    def taken(self, name: str, *, in_reports: bool = True) -> Iterator[None]:
        """Surround a block that is one turn."""
        self.take(name, in_reports=in_reports)
        try:
            yield
        finally:
            self.leave()

    def running(self, name: str | None = None) -> AbstractContextManager[None]:
        """Surround a block in which operations are under way: nothing else has its turn, not even in this thread."""
        return self._while("_running", name or self._called)

    def pausing(self) -> AbstractContextManager[None]:
        """Surround a block between two steps: this thread may look."""
        return self._while("_running", None)

    def reporting(self) -> AbstractContextManager[None]:
        """Surround a block in which reporters are asked and report."""
        return self._while("_reporting", True)

    @contextmanager
    def _while(self, name: str, value: Any) -> Iterator[None]:
        before = getattr(self, name)
        setattr(self, name, value)
        try:
            yield
        finally:
            setattr(self, name, before)

    def ask(self, answer: Callable[[], Any]) -> Any:
        """Return what `answer` returns, called while nothing is under way: now, or by the thread that has the turn."""
        request = _Request(answer)
        self.requests.append(request)
        while not request.done.is_set():
            if self._lock.acquire(blocking=False):
                me = threading.get_ident()
                if self._depth == 0:
                    self._server = me
                try:
                    if self._running is not None:
                        self.requests.remove(request)
                        self.take("snapshot")  # Raises the error that tells why not.
                    self.serve()
                finally:
                    self._lock.release()
                    # Afterwards, so that no thread finds the lock taken and no reason to wait.
                    if self._server == me:
                        self._server = None
            else:
                request.done.wait(0.01)
        if request.error is not None:
            raise request.error
        return request.value

    def serve(self) -> None:
        """Answer what has been asked."""
        while self.requests:
            with self.pausing():
                self.requests.popleft().answer()


class _Request:
    def __init__(self, answer: Callable[[], Any]) -> None:
        self._answer = answer
        self.done = threading.Event()
        self.value: Any = None
        self.error: BaseException | None = None

    def answer(self) -> None:
        try:
            self.value = self._answer()
        except Exception as error:
            self.error = error
        finally:
            self.done.set()


@overload
def one_at_a_time(method: _Method) -> _Method: ...


@overload
def one_at_a_time(*, in_reports: bool = True) -> Callable[[_Method], _Method]: ...


def one_at_a_time(method: Any = None, *, in_reports: bool = True) -> Callable[..., Any]:
    """Call a method of something with a `turn`, by one user at a time."""
    if method is None:
        return lambda method: cast(Any, one_at_a_time)(method, in_reports=in_reports)
    whole, name = method, method.__name__

    @wraps(whole)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        self.turn.take(name, in_reports=in_reports)
        try:
            return whole(self, *args, **kwargs)
        finally:
            self.turn.leave()

    return call
