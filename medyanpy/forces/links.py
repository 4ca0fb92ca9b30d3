"""Springs and ropes between sites, which may be added and removed in a run."""

import weakref
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np

from medyanpy._kernels.core.program import Operation
from medyanpy._kernels.core.sites import SiteTable
from medyanpy._kernels.forces.radial import Radial
from medyanpy._tools.images import displacement
from medyanpy._tools.types import Numbers
from medyanpy._tools.validation import array, one_or_many, several, whole_number
from medyanpy._tools.validation import number as one_number
from medyanpy.core.sites import Sites, as_sites, joined_beads
from medyanpy.errors import ParameterError, TopologyError, shown
from medyanpy.forces._arguments import Beads, Ids
from medyanpy.forces._base import Each, Force, Given, argument, declared, number
from medyanpy.forces._stiffness import Start
from medyanpy.forces.bonds import bind_rows

if TYPE_CHECKING:
    from medyanpy.core.handles import Handle
    from medyanpy.core.layout import Layout
    from medyanpy.state import State
    from medyanpy.topology import Topology

__all__ = ["LinkEnds", "Links"]

SITES = "Sites, handle, list of handles, or (n,) int"


@declared
class SiteTerms(Force):
    """Terms between sites, which may be added, removed and moved while a simulation runs.

    Each term has a number, given when it is added and never used for another. Sites, numbers and parameters are kept
    in their order.

    Raises
    ------
    TopologyError
        Ends of different number, a link or a direction from a bead to itself, handles of different topologies, or (when
        bound) a bead that does not exist.
    ParameterError
        A number outside its domain.
    """

    a: Given["Beads", Sites] = argument(SITES, attribute="The first site of each term.")
    b: Given["Beads", Sites] = argument(SITES, attribute="The second site of each term.")
    _ids: Given[Any, np.ndarray] = argument(default=None, kw_only=True)
    _next_id: Given[int | None, int] = argument(default=None, kw_only=True)

    #: Names of the sites of a term, which are arguments and attributes of the force.
    ends: ClassVar[tuple[str, ...]] = ()
    #: Pairs of ends that must not be one bead.
    apart: ClassVar[tuple[tuple[int, int], ...]] = ()
    #: Name of a term in messages.
    noun = "term"

    def _take(self, given: dict[str, Any]) -> None:
        super()._take(given)
        #: Topologies of the contexts that use this force: later ends are checked against them.
        self._topologies: weakref.WeakSet[Topology] = weakref.WeakSet()
        #: Value of a term where `add` is given no number; None if there is no single value.
        self._defaults: dict[str, float | None] = dict.fromkeys(self.changeable)
        self._sites: tuple[Sites, ...] = ()
        self._keep(self._checked_ends([given[name] for name in self.ends]))
        n, ids = len(self._a), given["_ids"]
        self._ids = _frozen(np.arange(n))
        self._next_id = n
        if ids is not None:
            ids = array(f"{self.name}: _ids", ids, (n,), dtype=np.int64)
            if (ids < 0).any() or (np.diff(ids) <= 0).any():
                raise ParameterError(f"{self.name}: _ids must ascend from 0 or more")
            self._ids = _frozen(ids.copy())
            lowest = int(ids[-1]) + 1 if n else 0
            self._next_id = whole_number(f"{self.name}: _next_id", given["_next_id"], at_least=lowest)

    def _keep(self, sites: Sequence[Sites]) -> None:
        self._a, self._b = sites[:2]
        self._sites = tuple(sites)
        vars(self).update({f"_{name}": end for name, end in zip(self.ends, sites, strict=True)})

    def __len__(self) -> int:
        return len(self._ids)

    def __bool__(self) -> bool:
        # A force without terms is a force nonetheless.
        return True

    def __repr__(self) -> str:
        return super().__repr__().replace("(", f"({len(self)}: ", 1)

    @property
    def ids(self) -> np.ndarray:
        """Numbers (n,) of the terms, ascending; sites and parameters are in this order."""
        return self._ids

    @property
    def conserves_momentum(self) -> bool:  # type: ignore[override]
        """True if no term has an end at an anchor."""
        return not any(len(sites.anchor_positions) for sites in self._sites)

    @property
    def handles(self) -> "tuple[Handle, ...]":
        return tuple(handle for sites in self._sites for handle in sites.handles)

    def _add(self, ends: tuple[Any, ...], **given: Any) -> np.ndarray:
        new = self._checked_ends(ends)
        m = len(new[0])
        numbers = {}
        for name, value in given.items():
            if value is None and self._defaults[name] is None:
                raise ParameterError(f"{self.name}: give {name}=, because the {self.noun}s do not all have the same")
            rows = self._in_domain(name, self._defaults[name] if value is None else value, m)
            numbers[name] = np.concatenate([self._numbers[name], rows])
        ids = np.arange(self._next_id, self._next_id + m)
        sites = [old + more for old, more in zip(self._sites, new, strict=True)]
        self._become(np.concatenate([self._ids, ids]), sites, numbers)
        self._next_id += m
        return ids

    def remove(self, ids: "Ids") -> None:
        """Remove terms, given by their numbers.

        Raises
        ------
        ParameterError
            No such term, one that was removed before, or one that is named twice; then nothing changes.
        """
        keep = np.ones(len(self), bool)
        keep[self._rows(ids)] = False
        numbers = {name: value[keep] for name, value in self._numbers.items()}
        self._become(self._ids[keep], [sites[keep] for sites in self._sites], numbers)

    def _move(self, ids: Any, ends: tuple[Any, ...]) -> None:
        if all(end is None for end in ends):
            names = ", ".join(f"{name}=" for name in self.ends)
            raise ParameterError(f"{self.name}: move needs new ends: {names} or several of them")
        rows = self._rows(ids)
        given = [sites[rows] if end is None else end for sites, end in zip(self._sites, ends, strict=True)]
        new = self._checked_ends(given, self._ids[rows], len(rows))
        order = np.arange(len(self))
        order[rows] = len(self) + np.arange(len(rows))
        moved = [(old + more)[order] for old, more in zip(self._sites, new, strict=True)]
        self._become(self._ids, moved, self._numbers)

    def naming(self, gone: np.ndarray) -> dict[str, np.ndarray]:
        return {self.noun: np.any([sites.naming(gone) for sites in self._sites], axis=0)}

    def without(self, terms: dict[str, np.ndarray]) -> None:
        self.remove(self._ids[terms[self.noun]])

    def _become(self, ids: np.ndarray, sites: list[Sites], numbers: dict[str, np.ndarray]) -> None:
        self._ids = _frozen(ids)
        self._keep(sites)
        self._declare(**numbers)
        self._version += 1

    def _rows(self, ids: Any) -> np.ndarray:
        """Return rows of terms given by their numbers."""
        what, noun = f"{self.name}: ids", self.noun
        wanted = one_or_many(what, ids, dtype=np.int64)
        rows = np.searchsorted(self._ids, wanted)
        unknown = np.append(self._ids, -1)[rows] != wanted
        if unknown.any():
            i = int(np.argmax(unknown))
            there = f"{self._ids[0]} to {self._ids[-1]}" if len(self) else "none"
            was = 0 <= wanted[i] < self._next_id
            why = f"{noun} {wanted[i]} was removed" if was else f"there is no such {noun}"
            hint = "; those that a jump has bound are changed by context.set_links" if self.has_links else ""
            raise ParameterError(f"{what}[{i}] = {wanted[i]}, but {why} ({len(self)} {noun}s: {there}{hint})")
        in_order = np.sort(wanted)
        twice = np.flatnonzero(in_order[1:] == in_order[:-1])
        if len(twice):
            raise ParameterError(f"{what}: {noun} {in_order[twice[0]]} is named twice")
        return rows

    def _checked_ends(self, ends: Any, ids: Any = None, n: int | None = None) -> tuple[Sites, ...]:
        """Return all ends as sites, of equal number, checked against each other and every known topology."""
        sites = tuple(as_sites(f"{self.name}: {name}", end) for name, end in zip(self.ends, ends, strict=True))
        counts = [len(s) for s in sites]
        if n is not None and any(count != n for count in counts):
            given = ", ".join(f"{name}: {count}" for name, count in zip(self.ends, counts, strict=True))
            raise TopologyError(f"{self.name}: {n} {self.noun}s need as many ends, not {given}")
        if len(set(counts)) > 1:
            names, lengths = " and ".join(self.ends), " and ".join(map(str, counts))
            raise TopologyError(f"{self.name}: {names} must have the same length, not {lengths}")
        known = [*self._topologies, *(h.topology for h in (*self.handles, *(h for s in sites for h in s.handles)))]
        for topology in dict.fromkeys(known):
            for name, s in zip(self.ends, sites, strict=True):
                s.check(f"{self.name}: {name}", topology)
        for i, j in self.apart:
            bead = sites[i].single_beads
            loop = (bead >= 0) & (bead == sites[j].single_beads)
            if loop.any():
                k = int(np.argmax(loop))
                term = k if ids is None else ids[k]
                raise TopologyError(f"{self.name}: {self.noun} {term} joins bead {bead[k]} to itself")
        return sites

    def _checked(self, **given: Any) -> dict[str, Any]:
        numbers = super()._checked(**given)
        for name, value in given.items():
            if np.ndim(value) == 0:
                self._defaults[name] = float(value)
            elif len(self):
                first = numbers[name][0]
                self._defaults[name] = float(first) if (numbers[name] == first).all() else None
        return numbers

    def _arguments_now(self) -> dict[str, Any]:
        now = {k: self._numbers[k] if self._defaults[k] is None else self._defaults[k] for k in self.changeable}
        ends = dict(zip(self.ends, self._sites, strict=True))
        return {**super()._arguments_now(), **ends, **now, "_ids": self._ids, "_next_id": self._next_id}

    def bind(self, layout: "Layout") -> Operation:
        self._ends_in(layout)
        self._topologies.add(layout.topology)
        operation = self._operation(layout)
        operation.acts_on_points = any(sites.on_points(layout) for sites in self._sites)
        return operation

    def _ends_in(self, start: "Start | Layout") -> tuple[Sites, ...]:
        for name, sites in zip(self.ends, self._sites, strict=True):
            sites.check(f"{self.name}: {name}", start.topology)
        return self._sites

    @abstractmethod
    def _operation(self, layout: "Layout") -> Operation:
        """Return the operation on the arrays of one Context."""

    def _table(self, layout: "Layout") -> SiteTable:
        """Return a table of all sites, in the order of terms, so that a bead adds up its terms in this order."""
        n = len(self)
        order = np.arange(len(self.ends) * n).reshape(len(self.ends), n).T.ravel()
        return Sites.concatenate(self._sites)[order].bind(layout)


@declared
class Links(SiteTerms):
    r"""Springs between pairs of sites, which may be added, removed and moved while a simulation runs.

    .. math:: U = \sum_l \tfrac12 k_l (r_l - \ell_l)^2, \quad r_l = |X_{b_l} - X_{a_l}|

    or, with `one_sided`, only over links with :math:`r_l > \ell_l`: ropes, which pull when taut and do not push.

    Parameters
    ----------
    a, b
        The two ends of each link: as many in `a` as in `b`, and 0 is allowed. See `Sites`: beads of any kind, weighted
        means of beads, places that do not move.

    Raises
    ------
    TopologyError
        Ends of different number, a link from a bead to itself, handles of different topologies, or (when bound) a bead
        that does not exist.
    ParameterError
        A number outside its domain; (by a Context) a link that is longer than half of the periodic box.

    Notes
    -----
    Coincident ends do not push each other: the mean over all directions. The force of a rope is continuous, its
    derivative jumps where the rope becomes taut. Each link has a number, given when it is added and never used for
    another. Forces on a bead are summed in their order, so that bits do not depend on the history of the links.

    Examples
    --------
    >>> import medyanpy as mp
    >>> topology = mp.Topology()
    >>> beads = topology.add_beads([[0.0, 0, 0], [3.0, 0, 0], [3.0, 4, 0]], mass=1.0)
    >>> system = mp.System(topology)
    >>> links = system.add_force(mp.forces.Links([0], [1], stiffness=2.0))
    >>> links.add([0], [2])
    array([1])
    >>> links.remove(0)
    >>> links.move(1, b=mp.Sites.anchors([[0.0, 0, 1]]))
    >>> mp.Context(system, mp.VerletIntegrator(0.01)).get_state(energy=True).potential_energy
    1.0
    """

    has_links = True
    of_positions_alone = True
    ends: ClassVar[tuple[str, ...]] = ("a", "b")
    apart: ClassVar[tuple[tuple[int, int], ...]] = ((0, 1),)
    noun = "link"
    stiffness: Each = number("pN/nm", "The k of the energy.", at_least=0.0, per="ids")
    length: Each = number(
        "nm", "ℓ, where a spring is relaxed and a rope is taut.", default=0.0, at_least=0.0, per="ids"
    )
    one_sided: bool = argument(
        "bool", "Ropes instead of springs.", default=False, kw_only=True,
        attribute="True if the links are ropes, which pull but do not push.",
    )  # fmt: skip
    states: Given["Mapping[str, Mapping[str, float]] | Sequence[str]", tuple[str, ...]] = argument(
        "list of str, or dict of dicts, optional", "Names of the states of links that a `LinkBinding` binds, in the "
        'first of which they bind: ``["weak", "strong"]``. Stiffness and length are those of the force; others than '
        'the first may have their own, ``{"weak": {}, "strong": {"length": 20.0}}``. `CustomTransitions` changes them.',
        default=(), kw_only=True, attribute="Names of the states of links that a `LinkBinding` binds.",
    )  # fmt: skip

    def _take(self, given: dict[str, Any]) -> None:
        self._one_sided = bool(given["one_sided"])
        super()._take(given)
        self._own_numbers = _states(self.name, given["states"])
        self._states = tuple(self._own_numbers)

    def add(
        self, a: "Beads", b: "Beads", stiffness: "Numbers | None" = None, length: "Numbers | None" = None
    ) -> np.ndarray:
        """Add links and return their numbers, (m,) int; contexts follow at their next step or state.

        Parameters
        ----------
        a, b : Sites, handle, list of handles, (m,) int, or int
        stiffness, length : float or (m,) float, pN/nm and nm, >= 0, optional
            By default that of the present links, which must then all have the same.

        Raises
        ------
        TopologyError, ParameterError
            As for the force itself; then nothing changes.
        """
        return self._add((a, b), stiffness=stiffness, length=length)

    def move(self, ids: "Ids", a: "Beads | None" = None, b: "Beads | None" = None) -> None:
        """Move one or both ends of links. The links keep numbers, stiffness and length.

        Parameters
        ----------
        ids : (m,) int, or int
        a, b : Sites, handle, list of handles, (m,) int, or int, optional
            m new ends; where none are given, the end stays.

        Raises
        ------
        ParameterError
            No such link, one that was removed, one that is named twice, or no new end; then nothing changes.
        TopologyError
            As for the force itself; then nothing changes.
        """
        self._move(ids, (a, b))

    @property
    def sites(self) -> tuple[Sites, ...]:
        """Sites `a` and `b`, which never change: new sites replace them."""
        return self._sites

    @property
    def joined(self) -> np.ndarray:
        return joined_beads(*self._sites)

    def joined_in(self, state: "State") -> np.ndarray:
        return joined_beads(*self.sites_in(state))

    def sites_in(self, state: "State") -> tuple[Sites, ...]:
        """Return `a` and `b` of the links that it was given, as they were in a state."""
        return state.links(self)._given

    def lengths(self, state: "State") -> np.ndarray:
        """Return the lengths of the links in a state, (n,) nm, in the order of ``state.links(self)``.

        In a periodic box a link runs to the nearest image of its other end.

        Raises
        ------
        ParameterError
            A state of another system, or without positions.
        """
        ends = state.links(self)
        between = displacement(ends.a.positions(state), ends.b.positions(state), state.box)
        out: np.ndarray = np.linalg.norm(between, axis=1)
        return out

    def _state_numbers(self, what: str, given: Any, n: int) -> np.ndarray:
        """Return the numbers of states of n links: of their names, or of numbers as states of a context hold them; or
        of one for all. ParameterError, of which `what` is the beginning."""
        if not self._states:
            raise ParameterError(f"{what}: the links of {self.name} have no states")
        wanted = [given] * n if isinstance(given, str) else list(given)
        if len(wanted) != n:
            raise ParameterError(f"{what} must have one for each of {n} links, not {len(wanted)}")
        out = np.zeros(n, np.int32)
        for i, one in enumerate(wanted):
            known = one in self._states if isinstance(one, str) else one in range(len(self._states))
            if not known:
                raise ParameterError(f"{what}[{i}] = {one!r} but must be one of {', '.join(map(repr, self._states))}")
            out[i] = self._states.index(one) if isinstance(one, str) else one
        return out

    def states_in(self, state: "State") -> np.ndarray:
        """Return the names of the states of the links in a state, (n,) str, in the order of ``state.links(self)``; of
        links that were given, "".

        Raises
        ------
        ParameterError
            A state of another system, or without positions.
        """
        numbers = state.links(self).states
        out: np.ndarray = np.array([*self._states, ""])[numbers]
        return out

    def _springs(self, stiffness: float, length: float) -> np.ndarray:
        """Return the stiffness and length of links in each state, (states, 2), from those of the force."""
        own = self._own_numbers.values() if self._states else [{}]
        return np.array([[one.get("stiffness", stiffness), one.get("length", length)] for one in own])

    def link_ends(self, bound: "list[Bound]") -> "LinkEnds":
        return LinkEnds(self, bound)

    def tensions(self, state: "State") -> np.ndarray:
        """Return the tensions of the links in a state, (n,) pN, as `lengths`; negative of springs that push."""
        ends = state.links(self)
        stretch = self.lengths(state) - ends.length
        out: np.ndarray = ends.stiffness * (np.maximum(stretch, 0.0) if self._one_sided else stretch)
        return out

    def squared_frequencies(self, start: Start) -> np.ndarray | None:
        a, b = self._ends_in(start)
        return start.springs(start.sites(a) + start.sites(b), self._numbers["stiffness"])

    def _operation(self, layout: "Layout") -> Operation:
        layout.expect_lengths(self.name, self.noun, self._numbers["length"], self.ids)
        kind = Radial.ROPE if self._one_sided else Radial.HARMONIC
        beads = np.column_stack([sites.single_beads for sites in self._sites])
        if (beads >= 0).all():
            table, ends = SiteTable(), layout.internal(beads)
        else:
            table, ends = self._table(layout), np.arange(2 * len(self)).reshape(-1, 2)
        return bind_rows(self.name, kind, table, ends, self._named("stiffness", "length"))


#: Sites `a` and `b` of a jump, rows of both of its links, (k, 2), and the number of the state of each, (k,).
Bound: TypeAlias = tuple[Sites, Sites, np.ndarray, np.ndarray]


class LinkEnds:
    """The links of one force in one state: those that it was given, in their order, then those that jumps have bound.

    Attributes
    ----------
    a, b : Sites
        The ends of each.
    ids : (m,) int
        The numbers of the m links that the force was given.
    bound : list of (k, 2) int arrays
        For each jump that binds links of this force, rows of its sites `a` and `b`.
    states : (n,) int
        The number of the state of each among those of the force; -1 of links that it was given.
    stiffness, length : (n,) float, pN/nm and nm
    """

    def __init__(self, force: Links, coming: list[Bound]) -> None:
        # Sites never change: they are put together on demand.
        self._given, self._coming = force._sites, coming
        self.ids: np.ndarray = force.ids
        self.bound: list[np.ndarray] = [rows for _, _, rows, _ in coming]
        given = np.full(len(force), -1)
        self.states: np.ndarray = np.concatenate([given, *(states for *_, states in coming)])
        self._numbers, defaults = force._numbers, force._defaults
        self._springs = force._springs(*(np.nan if v is None else v for v in defaults.values()))

    def __len__(self) -> int:
        return len(self.states)

    def __repr__(self) -> str:
        return f"LinkEnds({len(self)}: {len(self.ids)} given, {len(self) - len(self.ids)} bound)"

    @property
    def a(self) -> Sites:
        return Sites.concatenate([self._given[0], *(a[rows[:, 0]] for a, _, rows, _ in self._coming)])

    @property
    def b(self) -> Sites:
        return Sites.concatenate([self._given[1], *(b[rows[:, 1]] for _, b, rows, _ in self._coming)])

    @property
    def stiffness(self) -> np.ndarray:
        return self._of_each("stiffness", 0)

    @property
    def length(self) -> np.ndarray:
        return self._of_each("length", 1)

    def _of_each(self, name: str, column: int) -> np.ndarray:
        return np.concatenate([self._numbers[name], self._springs[self.states[len(self.ids) :], column]])


#: Words of `CustomTransitions`, which are no names of states.
_TAKEN = frozenset(("bind", "unbind", "step", "back", "create", "remove", "change", "kT"))
# As many as the kernel has room for.
_MOST_STATES = 32


def _states(force: str, given: Any) -> dict[str, dict[str, float]]:
    """Return the numbers that links in each state have of their own, by the names of states."""
    what = f"{force}: states"
    if isinstance(given, str):
        raise ParameterError(f"{what} = {shown(given)} but must be names, such as ['weak', 'strong']")
    names = several(what, given) if not isinstance(given, Mapping) else list(given)
    out: dict[str, dict[str, float]] = {}
    for i, name in enumerate(names):
        if not isinstance(name, str) or not name.isidentifier() or name in _TAKEN or name in out:
            raise ParameterError(
                f"{what}[{i}] = {shown(name)} but must be a name that no other has, of letters, digits and _, and "
                "not a word of transitions, such as bind"
            )
        own = given[name] if isinstance(given, Mapping) else {}
        if not isinstance(own, Mapping) or set(own) - {"stiffness", "length"} or (own and i == 0):
            raise ParameterError(
                f"{what}: {name}: {shown(own)} but must be a dict of stiffness and length, and empty for the first "
                "state, which has those of the force"
            )
        out[name] = {key: one_number(f"{what}: {name}: {key}", value, at_least=0.0) for key, value in own.items()}
    if len(out) == 1 or len(out) > _MOST_STATES:
        raise ParameterError(f"{what}: {len(out)} given, but there are from 2 to {_MOST_STATES}, or none")
    return out


def _frozen(a: np.ndarray) -> np.ndarray:
    a.flags.writeable = False
    return a
