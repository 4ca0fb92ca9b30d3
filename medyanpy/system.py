"""System: a topology, the forces on it, the jumps that happen in it, pools of molecules, and the fluid."""

import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from medyanpy._tools.images import Box, checked_box, in_words
from medyanpy._tools.names import Guarded, look_up
from medyanpy._tools.tables import Displayed, Page, Table, amount, named
from medyanpy._tools.validation import plain_name
from medyanpy.errors import ParameterError, TopologyError, UnknownNameError, shown
from medyanpy.forces import Force
from medyanpy.hydrodynamics import RotnePrager
from medyanpy.jumps import Jump
from medyanpy.jumps._balance import Company
from medyanpy.pools import MoleculePool
from medyanpy.topology import Topology

__all__ = ["System"]

# The argument is returned with its own type.
_Force = TypeVar("_Force", bound=Force)
_Jump = TypeVar("_Jump", bound=Jump)
_Pool = TypeVar("_Pool", bound=MoleculePool)
_Member = TypeVar("_Member", bound=Force | Jump)

# The number of a jump is 8 bits of the counter of its random numbers.
_MOST_JUMPS = 256


class System(Displayed, Guarded):
    """A topology together with the forces that act on it, the jumps that happen in it, and the fluid between its beads.

    Parameters
    ----------
    topology : Topology
    box : (3,) of float, nm, > 0, or None, optional
        Lengths of a periodic box along x, y and z; None in open directions. Beads interact with nearest images, meshes
        may close through its sides (see `TriangleMesh`), and positions are unwrapped (`State.wrapped_positions` wraps
        them). Without, space is open.

    Raises
    ------
    ParameterError
        A value that is not a box.
    TopologyError
        No topology; or a mesh that was made for another box, or is too large for this one.

    Attributes
    ----------
    topology : Topology
    box : (3,) tuple of float, nm, or None; or None
        Its lengths at the start; `jumps.BoxArea` and `Context.set_box` change those of a context (`State.box`).
    forces : tuple of Force
        In the order added, which is the order in which they are summed.
    jumps : tuple of Jump
        In the order added, which is the order in which they act.
    pools : dict of MoleculePool
        By name, in the order added.
    hydrodynamics : RotnePrager or None
        Interactions through the fluid; without, each bead has its own friction and noise.

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

    _remedy = (
        "make a new System; forces are added with add_force and taken away with remove_force, jumps with add_jump and "
        "remove_jump, pools with add_pool and remove_pool"
    )

    def __init__(self, topology: Topology, box: Sequence[float | None] | None = None) -> None:
        if not isinstance(topology, Topology):
            raise TopologyError(f"System: topology must be a Topology, not {type(topology).__name__}")
        self.topology = topology
        self._box = checked_box("System", box)
        self._forces: list[Force] = []
        self._names: list[str] = []
        self._jumps: list[Jump] = []
        self._jump_names: list[str] = []
        self._pools: dict[str, MoleculePool] = {}
        self._hydrodynamics: RotnePrager | None = None
        self._contexts: weakref.WeakSet[Any] = weakref.WeakSet()
        topology._systems.add(self)

    @property
    def box(self) -> Box | None:
        return self._box

    @property
    def forces(self) -> tuple[Force, ...]:
        return tuple(self._forces)

    @property
    def force_names(self) -> tuple[str, ...]:
        """Names of the forces, made unique by a number where several share one."""
        return tuple(self._names)

    @property
    def jumps(self) -> tuple[Jump, ...]:
        return tuple(self._jumps)

    @property
    def jump_names(self) -> tuple[str, ...]:
        """Names of the jumps, made unique by a number where several share one."""
        return tuple(self._jump_names)

    @property
    def pools(self) -> dict[str, MoleculePool]:
        return dict(self._pools)

    @property
    def hydrodynamics(self) -> RotnePrager | None:
        return self._hydrodynamics

    def name_of(self, what: Force | Jump | MoleculePool) -> str:
        """Return the unique name of a force, jump or pool of this system.

        Raises
        ------
        ParameterError
            It is not in this system.
        """
        for name, one in self._named():
            if one is what:
                return name
        raise ParameterError(f"{what!r} is not in this system")

    def _named(self) -> list[tuple[str, Force | Jump | MoleculePool]]:
        forces, jumps = zip(self._names, self._forces, strict=True), zip(self._jump_names, self._jumps, strict=True)
        return [*forces, *jumps, *self._pools.items()]

    def __getitem__(self, name: str) -> Force | Jump | MoleculePool:
        """Return the force, jump or pool of a name, as in `force_names`, `jump_names`, `pools` and ``state.energies``:
        ``system["MembraneBending"]``.

        Raises
        ------
        UnknownNameError
            A `TopologyError` and a `KeyError`: nothing has this name; the message lists those there are.
        """
        out: Force | Jump | MoleculePool = look_up(dict(self._named()), name, "force", UnknownNameError)
        return out

    def __iter__(self) -> Iterator[Force]:
        return iter(self.forces)

    def __contains__(self, what: Any) -> bool:
        """Tell whether a force, jump or pool, or one of this name, is part of it."""
        return any(what is one or what == name for name, one in self._named())

    def add_force(self, force: _Force) -> _Force:
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
        return self._add(force)

    def _all(self, noun: str) -> tuple[list[Any], list[str]]:
        """Return all forces or jumps, and their names."""
        return (self._jumps, self._jump_names) if noun == "jump" else (self._forces, self._names)

    def _add(self, what: _Member, unique_name: str | None = None) -> _Member:
        """Add a force or jump; the unique name is that of the system which this one is made after."""
        noun = "jump" if isinstance(what, Jump) else "force"
        members, names = self._all(noun)
        if any(what is one for one in members):
            raise ParameterError(f"add_{noun}: {what!r} is in this system already")
        self._refuse_if_in_use(f"add_{noun}")
        for handle in what.handles:
            if handle.topology is not self.topology:
                raise TopologyError(f"{what.name}: {handle!r} belongs to another topology")
        for pool in what.pools:
            if not any(pool is one for one in self._pools.values()):
                raise ParameterError(f"{what.name}: {pool!r} must be in the system first: system.add_pool(...)")
        if isinstance(what, Jump):
            what.check(self.topology, self.forces)
            what.beside((*self._jumps, what))
        names.append(self._unique_name(what, unique_name))
        members.append(what)
        self._acquaint()
        return what

    def _acquaint(self) -> None:
        """Let jumps know each other."""
        together = Company(self._jumps)
        for jump in self._jumps:
            jump.beside(together)

    def _remove(self, noun: str, what: Force | Jump) -> None:
        members, names = self._all(noun)
        for i, one in enumerate(members):
            if one is what:
                del members[i], names[i]
                if isinstance(what, Jump):
                    what.beside((what,))
                    self._acquaint()
                return
        raise ParameterError(f"remove_{noun}: {what!r} is not in this system")

    def _unique_name(self, what: Force | Jump | MoleculePool, given: str | None) -> str:
        """Return a name that is unique among forces, jumps and pools."""
        taken = (*self._names, *self._jump_names, *self._pools)
        if given in taken:
            raise ParameterError(f"two forces have the name {given!r}")
        name, k = what.name if given is None else plain_name("System: name", given), 1
        while name in taken:
            k += 1
            name = f"{what.name} {k}"
        return name

    def add_jump(self, jump: _Jump) -> _Jump:
        """Let a jump happen, and return it. Words need the letter J then.

        Raises
        ------
        ParameterError
            Not a Jump, added before, or one whose force is not in this system.
        TopologyError
            A handle of another topology, or a system that a Context already uses.
        """
        if not isinstance(jump, Jump):
            raise ParameterError(f"add_jump: {jump!r} is not a Jump")
        if len(self._jumps) == _MOST_JUMPS:
            raise ParameterError(f"add_jump: a system has {_MOST_JUMPS} jumps at most")
        return self._add(jump)

    def add_pool(self, pool: _Pool) -> _Pool:
        """Let molecules of a pool take part, and return it.

        Raises
        ------
        ParameterError
            Not a `Pool` or `Compartments`, or added before.
        TopologyError
            The inside of a membrane of another topology, or a system that a Context already uses.
        """
        if not isinstance(pool, MoleculePool):
            raise ParameterError(f"add_pool: {shown(pool)} is not a Pool or Compartments")
        return self._add_pool(pool)

    def _add_pool(self, pool: _Pool, unique_name: str | None = None) -> _Pool:
        if any(pool is one for one in self._pools.values()):
            raise ParameterError(f"add_pool: {pool!r} is in this system already")
        self._refuse_if_in_use("add_pool")
        if pool.inside is not None and pool.inside.topology is not self.topology:
            raise TopologyError(f"{pool.name}: {pool.inside!r} belongs to another topology")
        self._pools[self._unique_name(pool, unique_name)] = pool
        return pool

    def remove_pool(self, pool: MoleculePool) -> None:
        """Take a pool away again, with its molecules.

        Raises
        ------
        ParameterError
            A pool that is not in this system, or that a jump or a force uses.
        TopologyError
            A system that a Context already uses.
        """
        self._refuse_if_in_use("remove_pool")
        for noun in ("force", "jump"):
            for one, name in zip(*self._all(noun), strict=True):
                if any(pool is own for own in one.pools):
                    raise ParameterError(f"remove_pool: {name} uses {pool!r}: remove_{noun} it first")
        for name, one in self._pools.items():
            if one is pool:
                del self._pools[name]
                return
        raise ParameterError(f"remove_pool: {pool!r} is not in this system")

    def add_hydrodynamics(self, interactions: RotnePrager) -> RotnePrager:
        """Let beads feel each other through the fluid, and return what was given.

        Raises
        ------
        ParameterError
            Not a `hydrodynamics.RotnePrager`, or there is one already.
        TopologyError
            A handle of another topology, or a system that a Context already uses.
        """
        if not isinstance(interactions, RotnePrager):
            raise ParameterError(f"add_hydrodynamics: {interactions!r} is not a hydrodynamics.RotnePrager")
        self._refuse_if_in_use("add_hydrodynamics")
        if self._hydrodynamics is not None:
            raise ParameterError(
                f"add_hydrodynamics: the system has {self._hydrodynamics!r} already; a fluid is one: name all beads "
                "in it"
            )
        if interactions.handles[0].topology is not self.topology:
            raise TopologyError(f"add_hydrodynamics: {interactions.handles[0]!r} belongs to another topology")
        self._hydrodynamics = interactions
        return interactions

    def remove_hydrodynamics(self) -> None:
        """Let each bead have its own friction and noise again.

        Raises
        ------
        ParameterError
            There are no hydrodynamic interactions.
        TopologyError
            A system that a Context already uses.
        """
        self._refuse_if_in_use("remove_hydrodynamics")
        if self._hydrodynamics is None:
            raise ParameterError("remove_hydrodynamics: there are none in this system")
        self._hydrodynamics = None

    def remove_jump(self, jump: Jump) -> None:
        """Take a jump away again.

        Raises
        ------
        ParameterError
            A jump that is not in this system.
        TopologyError
            A system that a Context already uses.
        """
        self._refuse_if_in_use("remove_jump")
        self._remove("jump", jump)

    def remove_force(self, force: Force) -> None:
        """Take a force away again.

        Raises
        ------
        ParameterError
            A force that is not in this system, or whose terms a jump changes.
        TopologyError
            A system that a Context already uses.
        """
        self._refuse_if_in_use("remove_force")
        for name, jump in zip(self._jump_names, self._jumps, strict=True):
            if any(force is one for one in jump.forces):
                raise ParameterError(f"remove_force: {name} changes the terms of {force!r}: remove_jump it first")
        self._remove("force", force)

    def _refuse_if_in_use(self, what: str) -> None:
        if len(self._contexts) and not self.topology.is_edited:
            raise TopologyError(
                f"{what}: this system is in use by a Context, which would not notice; change forces before making "
                "it, or inside `with topology.edit():`. Numbers of a force may change at any time with force.set(...)"
            )

    def __reduce__(self) -> tuple[Any, ...]:
        """Support pickles and copies, which are in use by no Context."""
        return _made_anew, (
            type(self), self.topology, tuple(self._forces), tuple(self._names), tuple(self._jumps),
            tuple(self._jump_names), self._hydrodynamics, self._box, dict(self._pools),
        )  # fmt: skip

    def _page(self) -> Page:
        beads = self.topology._table()
        parts: tuple[tuple[str, Iterable[str], Iterable[Any], str], ...] = (
            ("forces", self._names, self._forces, "numbers"),
            ("jumps", self._jump_names, self._jumps, "numbers"),
            ("pools", self._pools, self._pools.values(), "molecules"),
        )
        others = [
            Table(
                what,
                [(named(name, one), *one._row()) for name, one in zip(names, members, strict=True)],
                (what, "of" if what == "pools" else "on", said),
            )
            for what, names, members, said in parts
        ]
        space = [] if self._box is None else [("box (nm)", in_words(self._box))]
        fluid = [] if self._hydrodynamics is None else [("hydrodynamics", repr(self._hydrodynamics))]
        about = f"{amount(self.topology.n_beads)} beads, {amount(len(self._forces))} forces"
        return Page("System", about, [beads, *others, Table("space", space), Table("fluid", fluid)])

    def __repr__(self) -> str:
        fluid = "" if self._hydrodynamics is None else f", hydrodynamics: {self._hydrodynamics!r}"
        jumps = f", jumps: {', '.join(self._jump_names)}" if self._jumps else ""
        box = "" if self._box is None else f", box: {in_words(self._box)}"
        pools = f", pools: {', '.join(self._pools)}" if self._pools else ""
        forces = ", ".join(self._names) or "none"
        return f"System({self.topology.n_beads} beads, forces: {forces}{jumps}{pools}{fluid}{box})"


def _made_anew(
    cls: type[System], topology: Topology, forces: tuple[Force, ...], names: tuple[str, ...],
    jumps: tuple[Jump, ...] = (), jump_names: tuple[str, ...] = (), hydrodynamics: RotnePrager | None = None,
    box: Box | None = None, pools: Mapping[str, MoleculePool] | None = None,
) -> System:  # fmt: skip
    system = cls(topology) if box is None else cls(topology, box)
    for name, pool in (pools or {}).items():
        system._add_pool(pool, name)
    everything: tuple[Any, ...] = (*forces, *jumps)
    for one, name in zip(everything, (*names, *jump_names), strict=True):
        system._add(one, name)
    if hydrodynamics is not None:
        system.add_hydrodynamics(hydrodynamics)
    return system
