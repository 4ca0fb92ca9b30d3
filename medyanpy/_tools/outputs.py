"""Files that are written while the process may be killed, the disk may fill up, and others may write them too.

A file is made beside the place it is for, under a hidden name, and renamed when it is whole: at any moment there is the
old file, the new one, or none.
"""

import errno
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from medyanpy._tools.validation import file_path
from medyanpy.errors import MedyanError, OutputError, ParameterError

__all__ = [
    "Lock", "check_in_place", "check_replaceable", "folder_path", "hold", "holds_no_file", "in_place", "is_lock",
    "let_go", "made_beside", "new_file", "opened_beside", "remove_left_over", "reserve", "unwritable",
    "write_atomically", "writing",
]  # fmt: skip

_REMEDIES = {
    errno.ENOSPC: "make room on the disk", errno.EDQUOT: "make room in your quota",
    errno.EMFILE: "close files that this process holds open", errno.ENOENT: "its folder is not there",
}  # fmt: skip
# Ending of the names of locks.
_LOCK = ".lock"
_CANNOT_ALLOCATE = (errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)


def unwritable(what: str, path: Path, cause: Exception, then: str = "") -> OutputError:
    """Return the error of a file that cannot be written, from that of the system."""
    number = getattr(cause, "errno", None)
    reason = getattr(cause, "strerror", None) or str(cause)
    remedy = "".join(f"; {text}" for text in ("" if number is None else _REMEDIES.get(number), then) if text)
    return OutputError(f"{what}: cannot write {path}: {reason}{remedy}", errno=number, filename=str(path))


@contextmanager
def writing(what: str, path: Path, then: str = "") -> Iterator[None]:
    """Turn whatever the system, or HDF5, does not do inside into an OutputError that names the file."""
    try:
        yield
    except MedyanError:
        raise
    except (OSError, RuntimeError) as cause:
        raise unwritable(what, path, cause, then) from cause


def _unforeseen() -> str:
    return os.urandom(8).hex()


def opened_beside(path: Path) -> tuple[Path, int]:
    """Open a new file beside `path`, of a name that others cannot foresee; return its name and its descriptor."""
    made = path.with_name(f".{path.name}.{os.getpid()}.{_unforeseen()}.tmp")
    return made, os.open(made, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)


def holds_no_file(path: Path) -> bool:
    """Tell whether a folder, a device, a pipe or a link in a circle has the name: a file cannot take its place."""
    place = os.path.realpath(path)
    return os.path.lexists(place) and not os.path.isfile(place)


@contextmanager
def made_beside(what: str, paths: Sequence[Path], *, links: bool = True) -> Iterator[list[Path]]:
    """Make empty files to be written inside, beside those that are meant: once all are whole they are made safe on
    disk, and given these names. Until then what was there is as it was. Without `links`, one that has such a name is
    replaced instead of followed."""
    # A link stays a link.
    places = [Path(os.path.realpath(path)) for path in paths] if links else list(paths)
    temporary: list[Path] = []
    try:
        with writing(what, paths[0], "what was there before is as it was"):
            for place in places:
                if holds_no_file(place):
                    # The superuser's rename would take a device away from the whole machine.
                    raise OSError(errno.EINVAL, "there is something else than a file, which no file can replace")
                made, file = opened_beside(place)
                temporary.append(made)
                os.close(file)
            yield temporary
            for made in temporary:
                with open(made, "rb") as whole:
                    os.fsync(whole.fileno())
            for made, place in zip(temporary, places, strict=True):
                os.replace(made, place)
    finally:
        for made in temporary:
            with suppress(OSError):
                made.unlink(missing_ok=True)


def write_atomically(what: str, path: Path, write: Callable[[Any], Any], *, links: bool = True) -> None:
    """Call write(file) on a file beside `path`, make it safe on disk, and give it the name, as `made_beside`."""
    with made_beside(what, [path], links=links) as (made,), open(made, "w+b") as file:
        write(file)


def folder_path(what: str, directory: Any, called: str = "a folder") -> Path:
    """Return the absolute path of a folder that may be made; refuse a file, or a link that leads nowhere."""
    folder = Path(os.path.abspath(file_path(f"{what}: directory", directory)))
    if os.path.lexists(folder) and not folder.is_dir():
        raise ParameterError(f"{what}: {folder} is a file, not {called}")
    return folder


def new_file(
    what: str, path: Any, *, overwrite: bool = False, append: bool | None = None,
    holds_nothing: Callable[[Path], bool] = lambda path: False
) -> Path:  # fmt: skip
    """Return a path that may be written to, refused now rather than after the work; `append` is None where no file can
    be appended to. A file that is empty, or `holds_nothing`, is as good as none: runs killed at their start leave such
    files."""
    target = file_path(f"{what}: path", path)
    if overwrite and append:
        raise ParameterError(f"{what}: give overwrite=True or append=True, not both")
    try:
        os.stat(target)
    except FileNotFoundError:
        pass
    except OSError as cause:  # Names too long, and links that go round.
        raise ParameterError(f"{what}: cannot write {target}: {cause.strerror}") from cause
    if target.is_dir():
        raise ParameterError(f"{what}: {target} is a folder")
    if target.exists() and not (overwrite or append or (target.is_file() and _is_empty(target, holds_nothing))):
        or_append = "" if append is None else " or append=True to continue"
        raise ParameterError(f"{what}: {target} exists; give overwrite=True to replace it{or_append}")
    if not target.parent.is_dir():
        raise ParameterError(f"{what}: the folder {target.parent} does not exist")
    return target


def _is_empty(path: Path, holds_nothing: Callable[[Path], bool]) -> bool:
    try:
        return path.stat().st_size == 0 or holds_nothing(path)
    except OSError:
        return False


def check_replaceable(what: str, path: Path) -> None:
    """Refuse a file whose place no other may take: it is written beside it, and renamed."""
    if not all(os.access(there, os.W_OK) for there in (path, path.parent) if there.exists()):
        raise ParameterError(f"{what}: no permission to write {path}, and beside it")
    if holds_no_file(path):
        raise ParameterError(f"{what}: {path} is something else than a file, which no file can replace")


def remove_left_over(path: Path) -> None:
    """Remove what processes that were killed have left beside a file; a * in its name stands for any text."""
    name = re.compile(r"\.{}\.(\d+)(?:\.[0-9a-f]+)?\.tmp".format(".*".join(map(re.escape, path.name.split("*")))))
    with suppress(OSError):
        for file in path.parent.iterdir():
            found = name.fullmatch(file.name)
            if found and not _alive(int(found.group(1))):
                file.unlink(missing_ok=True)


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return True


def reserve(file: int, start: int, end: int) -> None:
    """Have the disk keep room for the bytes from start to end of an open file; without room (OSError) nothing changes.

    Room is allocated rather than asked for: others may fill the disk before the write, and quotas do not show in free
    space. File systems that cannot allocate are asked.
    """
    if start >= end:
        return
    size = os.fstat(file).st_size
    try:
        os.posix_fallocate(file, start, end - start)
        return
    except AttributeError:  # macOS
        pass
    except OSError as cause:
        # It may have got a part.
        os.ftruncate(file, size)
        if cause.errno not in _CANNOT_ALLOCATE:
            raise
    free = os.fstatvfs(file)
    if free.f_bavail * free.f_frsize < end - size:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def in_place(path: Path, file: int) -> bool:
    """Tell whether an open file is the one that has this name."""
    with suppress(OSError):
        return os.path.samestat(os.stat(path), os.fstat(file))
    return False


def check_in_place(what: str, path: Path, file: int) -> None:
    """Refuse to write to an open file which has lost its name."""
    if not in_place(path, file):
        raise OutputError(
            f"{what}: {path} was moved, removed or replaced while it was written; put it back, or take this reporter "
            "off the list and continue with a new one",
            errno=errno.ENOENT,
            filename=str(path),
        )


class Lock:
    """Exclusive right to write a file, which one writer has at a time; ParameterError where another has it.

    It is the lock of an empty file ``.NAME.lock`` beside it, which the system releases however a process ends. The file
    itself is not locked: others take its place while it is written, and programs that read HDF5 lock what they read.
    Where the file system has no locks, every writer has the right.
    """

    def __init__(self, what: str, path: Path) -> None:
        self._path = path.with_name(f".{path.name}{_LOCK}")
        self._process = os.getpid()
        self._file = None
        with writing(what, path):
            while self._file is None:
                file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
                try:
                    hold(what, path, file)
                    # The holder before may have removed the file in between: then its lock is worth nothing.
                    if os.path.samestat(os.stat(self._path), os.fstat(file)):
                        self._file = file
                except FileNotFoundError:
                    pass
                finally:
                    if self._file is None:
                        os.close(file)

    def release(self) -> None:
        """Let others have it; twice is allowed. A forked child has no part in it."""
        file, self._file = self._file, None
        if file is not None and self._process == os.getpid():
            with suppress(OSError):
                self._path.unlink(missing_ok=True)
            # Forked children hold the file open: closing alone would leave it locked.
            let_go(file)
            os.close(file)


def is_lock(path: str) -> bool:
    """Tell whether a file has the name of a `Lock`: of a writer at work, or of one that was killed."""
    name = os.path.basename(path)
    return name.startswith(".") and name.endswith(_LOCK)


def hold(what: str, path: Path, file: int) -> None:
    """Take the lock of an open file, the right to write `path`; closing it, also in forked children, gives it back."""
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise ParameterError(
            f"{what}: {path} is being written by another process, or by another reporter of this one that is not closed"
        ) from None
    except OSError:
        # The file system knows no locks.
        pass


def let_go(file: int) -> None:
    """Give back the lock of an open file, also where other processes hold the file open."""
    import fcntl

    with suppress(OSError):
        fcntl.flock(file, fcntl.LOCK_UN)
