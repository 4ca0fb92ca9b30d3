"""Every exception of the package.

Each also derives from the built-in that it specialises, so that ``except ValueError`` keeps its meaning.
"""

import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

__all__ = [
    "ArgumentError", "BoxWarning", "ContextInUseError", "ConvergenceWarning", "ExecutorError", "MedyanError",
    "MeshError", "MeshQualityWarning", "OutputError", "OverlapWarning", "ParameterError", "PerformanceWarning",
    "PublicNameError", "ReporterWarning", "SimulationError", "SitesWarning", "StatisticsWarning", "StructureWarning",
    "ThermostatWarning", "TimestepWarning", "TopologyError", "TrajectoryWarning", "UnitsWarning", "UnknownNameError",
    "WalltimeError",
]  # fmt: skip


class MedyanError(Exception):
    """Base of every exception raised on purpose by this package."""


class MeshError(MedyanError, ValueError):
    """Triangles that cannot carry a surface, or a file that holds none.

    Attributes
    ----------
    defects : tuple
        What is wrong, one entry per kind of defect; empty where the file could not be read at all.
    """

    def __init__(self, message: str, defects: Iterable[Any] = ()) -> None:
        super().__init__(message)
        self.defects: tuple[Any, ...] = tuple(defects)


class TopologyError(MedyanError, ValueError):
    """Objects that do not fit together: wrong shapes, foreign handles, beads that do not exist."""


class ParameterError(MedyanError, ValueError):
    """A number or option outside its domain."""

    #: Whether a number was refused that is not finite: in a block M( ), a rejection.
    not_finite: bool = False


class ArgumentError(ParameterError, TypeError):
    """A call with arguments that are not those of the function; the message shows the call, or what was meant."""


class WalltimeError(ParameterError):
    """A walltime shorter than a single step, which has been taken, and saved where a checkpoint is."""


class PublicNameError(ParameterError, AttributeError):
    """Error of an attribute that does not exist, or that cannot be assigned to; the message tells what to do
    instead."""


class UnknownNameError(TopologyError, KeyError):
    """A handle or force looked up by a name that none has; the message lists those there are."""

    # Not that of KeyError, which quotes the message.
    def __str__(self) -> str:
        return Exception.__str__(self)


class SimulationError(MedyanError, RuntimeError):
    """Error of a run that cannot continue.

    Attributes
    ----------
    step : int or None
        The step that failed, counted from 0: the state before it has this step number.
    object : str or None
        The object concerned, as the topology names it.
    bead : int or None
        The bead concerned, in topology order.
    force : str or None
        Name of the force concerned.
    triangle : int or None
        The triangle concerned, as the mesh of its membrane numbers it: of a bead that has run away.
    jump : str or None
        Name of the jump concerned.
    """

    def __init__(
        self,
        message: str,
        *,
        step: int | None = None,
        object: str | None = None,
        bead: int | None = None,
        force: str | None = None,
        triangle: int | None = None,
        jump: str | None = None,
    ) -> None:
        super().__init__(message)
        self.step = step
        self.object = object
        self.bead = bead
        self.force = force
        self.triangle = triangle
        self.jump = jump


class ContextInUseError(MedyanError, RuntimeError):
    """Error of a context that is in use, by another thread or further out in this one; the message names the user."""


class ExecutorError(MedyanError, RuntimeError):
    """Error of an executor that cannot do the work of an ensemble: its processes do not start, it has ended or was shut
    down.
    """


class OutputError(MedyanError, OSError):
    """Error of a file that cannot be written during a run: a full disk, a folder that is gone.

    What was to be written is kept unless the message tells otherwise: with the cause mended, the run can continue.

    Attributes
    ----------
    errno : int or None
        Of the system, such as ``errno.ENOSPC``.
    filename : str or None
    """

    def __init__(self, message: str, *, errno: int | None = None, filename: str | None = None) -> None:
        super().__init__(message)
        self.errno = errno
        self.filename = filename

    # Not that of OSError, which is made of number and file.
    def __str__(self) -> str:
        return Exception.__str__(self)


class BoxWarning(UserWarning):
    """A field that is not the same at both ends of a periodic direction; the message names it, and what would be."""


class TimestepWarning(UserWarning):
    """A timestep at which a force or a mesh is known to be unstable; the message names it, and what would do."""


class ConvergenceWarning(UserWarning):
    """Warning of a minimisation that stopped before forces were as small as asked; the message tells how far and
    why."""


class SitesWarning(UserWarning):
    """Anchors that different calls made at one place, and that are one site of several jumps; the message names them.
    """


class StatisticsWarning(UserWarning):
    """Warning of an estimate whose error is not a number, as of a run that is too short; the message tells why."""


class ThermostatWarning(UserWarning):
    """Beads without friction under a word with O, which therefore does nothing to them; the message names them."""


class StructureWarning(UserWarning):
    """Warning of a structure file with other numbers than its columns promise; the message tells which, and what
    follows."""


class UnitsWarning(UserWarning):
    """Warning of numbers that cannot be meant together, as after a slip of units; the message tells what was probably
    meant."""


class MeshQualityWarning(UserWarning):
    """Warning of triangles of a membrane that are or have become needles, are too large for what they are to show, may
    fold onto each other, or have normals that look inward. The message names them, and what would help."""


class OverlapWarning(UserWarning):
    """Beads that start nearer to each other than a pair force and the timestep allow; the message names the worst pair.
    """


class PerformanceWarning(UserWarning):
    """Warning of a run that is much slower than it could be; the message tells by how much, and the remedy."""


class ReporterWarning(UserWarning):
    """Warning of reporters that a checkpoint does not bring back; the message names them, and tells why."""


class TrajectoryWarning(UserWarning):
    """A trajectory of which a file is missing; the message names it."""


def warn_outside(text: str, kind: type[Warning]) -> None:
    """Warn at the line of the first caller outside this package."""
    level = 1
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == __package__:
        level, frame = level + 1, frame.f_back
    warnings.warn(text, kind, stacklevel=level)


@contextmanager
def foreign_errors(problem: str, kind: type[MedyanError] = ParameterError) -> Iterator[None]:
    """Turn whatever Python and libraries raise inside into one error of ours: the problem, and their message.

    For what reads files and texts of others, where anything can be wrong. Errors of ours pass as they are.
    """
    try:
        yield
    except MedyanError:
        raise
    except Exception as cause:
        raise kind(f"{problem}: {shortened(str(cause) or type(cause).__name__)}") from cause


def shortened(text: str, most: int = 200) -> str:
    """Return text for a message: the beginning of it, where it is long."""
    return text if len(text) <= most else f"{text[: most - 3]}..."


def shown(value: Any) -> str:
    """Return a value for a message: what Python shows of it, on one line and not at length."""
    try:
        return shortened(repr(value).replace("\n", ""), 80)
    except Exception:  # Whole numbers of thousands of digits, and objects of others.
        return f"a {type(value).__qualname__}"
