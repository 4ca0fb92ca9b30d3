"""Every exception of the package.

Each also derives from the built-in that it specialises, so that ``except ValueError`` keeps its meaning.
"""

__all__ = ["MedyanError", "MeshError", "ParameterError", "SimulationError", "TimestepWarning", "TopologyError"]


class MedyanError(Exception):
    """Base of every exception raised on purpose by this package."""


class MeshError(MedyanError, ValueError):
    """Triangles that cannot carry a surface, or a file that holds none.

    Attributes
    ----------
    defects : tuple
        What is wrong, one entry per kind of defect; empty where the file could not be read at all.
    """

    def __init__(self, message: str, defects: tuple = ()) -> None:
        super().__init__(message)
        self.defects = tuple(defects)


class TopologyError(MedyanError, ValueError):
    """Objects that do not fit together: wrong shapes, foreign handles, beads that do not exist."""


class ParameterError(MedyanError, ValueError):
    """A number or option outside its domain."""


class SimulationError(MedyanError, RuntimeError):
    """A run that cannot go on.

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
    ) -> None:
        super().__init__(message)
        self.step = step
        self.object = object
        self.bead = bead
        self.force = force
        self.triangle = triangle


class TimestepWarning(UserWarning):
    """A timestep at which a force is known to be unstable; the message names the force and its limit."""
