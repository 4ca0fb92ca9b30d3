"""System: a topology and the forces on it."""

import weakref
from collections.abc import Iterator
from typing import Any

from medyanpy._tools.names import Guarded, look_up
from medyanpy.errors import ParameterError, TopologyError, UnknownNameError
from medyanpy.forces import Force
from medyanpy.topology import Topology

__all__ = ["System"]


class System(Guarded):
    """A topology together with the forces that act on it.

    Parameters
    ----------
    topology : Topology

    Attributes
    ----------
    topology : Topology
    forces : tuple of Force
        In the order added, which is the order in which they are summed.

    Examples
    --------
    >>> import medyanpy as mp
    >>> topology = mp.Topology()
    >>> pair = topology.add_beads([[0.0, 0, 0], [1.0, 0, 0]], mass=1.0)
    >>> system = mp.System(topology)
    >>> spring = system.add_force(mp.forces.HarmonicBonds([pair.beads], stiffness=1.0, length=1.0))
    >>> system
    System(2 beads, forces: HarmonicBonds)
    """

    _remedy = "make a new System; forces are added with add_force and taken away with remove_force"

    def __init__(self, topology: Topology) -> None:
        if not isinstance(topology, Topology):
            raise TopologyError(f"System: topology must be a Topology, not {type(topology).__name__}")
        self.topology = topology
        self._forces: list[Force] = []
        self._names: list[str] = []
        self._contexts: weakref.WeakSet = weakref.WeakSet()

    @property
    def forces(self) -> tuple[Force, ...]:
        return tuple(self._forces)

    @property
    def force_names(self) -> tuple[str, ...]:
        """Names of the forces, made unique by a number where several share one."""
        return tuple(self._names)

    def __getitem__(self, name: str) -> Force:
        """The force of a name, as in `force_names` and ``state.energies``: ``system["MembraneBending"]``.

        Raises
        ------
        UnknownNameError
            A `TopologyError` and a `KeyError`: no force has this name; the message lists those there are.
        """
        return look_up(dict(zip(self._names, self._forces, strict=True)), name, "force", UnknownNameError)

    def __iter__(self) -> Iterator[Force]:
        return iter(self.forces)

    def __contains__(self, what: Any) -> bool:
        """Whether a force, or one of this name, is part of it."""
        return what in self._names or any(what is force for force in self._forces)

    def add_force(self, force: Force) -> Force:
        """Let a force act, and return it.

        Raises
        ------
        ParameterError
            Not a Force, or added before.
        TopologyError
            A handle of another topology, or a system that a Context already uses.
        """
        if not isinstance(force, Force):
            raise ParameterError(f"add_force: {force!r} is not a Force")
        if any(force is f for f in self._forces):
            raise ParameterError(f"add_force: {force!r} is in this system already")
        return self._add(force, None)

    def _add(self, force: Force, unique_name: str | None) -> Force:
        """Add a force, under the name it had in the system this one is made after."""
        self._refuse_if_in_use("add_force")
        for handle in force.handles:
            if handle.topology is not self.topology:
                raise TopologyError(f"{force.name}: {handle!r} belongs to another topology")
        if unique_name in self._names:
            raise ParameterError(f"two forces have the name {unique_name!r}")
        name, k = force.name if unique_name is None else unique_name, 1
        while name in self._names:
            k += 1
            name = f"{force.name} {k}"
        self._forces.append(force)
        self._names.append(name)
        return force

    def remove_force(self, force: Force) -> None:
        """Take a force away again.

        Raises
        ------
        ParameterError
            A force that is not in this system.
        TopologyError
            A system that a Context already uses.
        """
        self._refuse_if_in_use("remove_force")
        for i, f in enumerate(self._forces):
            if f is force:
                del self._forces[i], self._names[i]
                return
        raise ParameterError(f"remove_force: {force!r} is not in this system")

    def _refuse_if_in_use(self, what: str) -> None:
        if len(self._contexts):
            raise TopologyError(
                f"{what}: this system is in use by a Context, which would not notice; change forces before making "
                "it, or make a new Context. Numbers of a force may change at any time with force.set(...)"
            )

    def __reduce__(self):
        """A pickle or copy is in use by no Context."""
        return _made_anew, (type(self), self.topology, tuple(self._forces), tuple(self._names))

    def __repr__(self) -> str:
        return f"System({self.topology.n_beads} beads, forces: {', '.join(self._names) or 'none'})"


def _made_anew(cls: type[System], topology: Topology, forces: tuple[Force, ...], names: tuple[str, ...]) -> System:
    system = cls(topology)
    for force, name in zip(forces, names, strict=True):
        system._add(force, name)
    return system
