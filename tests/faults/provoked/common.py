"""Places where kernels fail: what a test of one needs, and the list of all."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import medyanpy as mp
from medyanpy.testing import thermal


@dataclass
class Scene:
    """A simulation that will fail, made anew each time."""

    context: mp.Context
    #: Takes the cause away.
    mend: Callable[[], Any]
    #: What the error must say.
    bead: Any = None
    object: str | None = None
    force: str | None = None
    steps: int = 1000


def make(system, word="BAGAB", timestep=0.01, threads=2):
    context = mp.Context(system, mp.SplittingIntegrator(word, timestep, kT=thermal(word, 1.0), seed=3), threads=threads)
    # The watch would stop most of these before a number overflows.
    context.runaway = None
    return context


@dataclass
class Fault:
    """One place that fails: file, function and code there; the operation that runs it, and what the message says."""

    file: str
    function: str
    code: str
    operation: str
    says: str
    build: Callable[[], Scene]
    #: Whether a triangle is told, or, of constraints, a row.
    in_triangle: bool = False
    cause: type[BaseException] | None = None
    #: It fails by a timestep that is too long for a force, of which a Context warns.
    unstable: bool = False
    name: str = field(default="")


FAULTS: list[Fault] = []


def fault(file, function, code, operation, says, **options):
    def take(build):
        FAULTS.append(Fault(file, function, code, operation, says, build, name=build.__name__, **options))
        return build

    return take


SMALLER = "no longer a finite number.*try a smaller timestep or minimize_energy"
