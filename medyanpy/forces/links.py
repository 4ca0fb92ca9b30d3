"""Springs and ropes between sites, that come and go."""

import weakref
from typing import Any

import numpy as np

from medyanpy._kernels.sites import SiteTable
from medyanpy.errors import ParameterError, TopologyError
from medyanpy.forces._base import Force
from medyanpy.forces.bonds import bind_rows
from medyanpy.sites import Sites, as_sites
from medyanpy.validation import array, per_item, whole_number

__all__ = ["Links"]

# Numbers of the radial functions in _kernels/radial.pxd.
_HARMONIC = 0
_ROPE = 3


class Links(Force):
    r"""Springs between pairs of sites, which may be added, removed and moved while a simulation runs.

    .. math:: U = \sum_l \tfrac12 k_l (r_l - \ell_l)^2, \quad r_l = |X_{b_l} - X_{a_l}|

    or, with `one_sided`, only over links with :math:`r_l > \ell_l`: ropes, which pull when taut and do not push.

    Parameters
    ----------
    a, b : Sites, handle, list of handles, or (n,) int
        The two ends of each link: as many in `a` as in `b`, and 0 is allowed. See `Sites`: beads of any kind,
        weighted means of beads, places that do not move.
    stiffness : float or (n,) float, pN/nm, >= 0
        k.
    length : float or (n,) float, nm, >= 0
        ℓ, where a spring is relaxed and a rope is taut.
    one_sided : bool
        Ropes instead of springs.
    name, group
        See `Force`.

    Raises
    ------
    TopologyError
        Ends of different number, a link from a bead to itself, handles of different topologies, or (when bound) a
        bead that does not exist.
    ParameterError
        A number outside its domain.

    Notes
    -----
    Ends in one place have no direction to pull in; the force is then zero, the mean over all directions. The force of
    a rope is continuous, its derivative jumps where the rope becomes taut.

    Each link has a number, given when it is added and never used for another. Forces on a bead are summed in the
    order of these numbers: links added later come last, and the bits of a run do not depend on what happened before
    to the links that are there.

    Examples
    --------
    >>> import medyanpy as mp
    >>> topology = mp.Topology()
    >>> beads = topology.add_beads([[0.0, 0, 0], [3.0, 0, 0], [3.0, 4, 0]], mass=1.0)
    >>> system = mp.System(topology)
    >>> links = system.add_force(mp.forces.Links([0], [1], stiffness=2.0))
    >>> context = mp.Context(system, mp.VerletIntegrator(0.01))
    >>> context.get_state(energy=True).potential_energy
    9.0
    >>> links.add([0], [2])
    array([1])
    >>> context.get_state(energy=True).potential_energy
    34.0
    >>> links.remove(0)
    >>> links.move(1, b=mp.Sites.anchors([[0.0, 0, 1]]))
    >>> context.get_state(energy=True).potential_energy
    1.0
    """

    changeable = ("stiffness", "length")

    def __init__(
        self,
        a: Any,
        b: Any,
        stiffness: Any,
        length: Any = 0.0,
        *,
        one_sided: bool = False,
        name: str | None = None,
        group: int = 0,
        _ids: Any = None,
        _next_id: int | None = None,
    ) -> None:
        super().__init__(name=name, group=group)
        #: Topologies of the contexts that use this force: later ends are checked against them.
        self._topologies: weakref.WeakSet = weakref.WeakSet()
        self._one_sided = bool(one_sided)
        #: What a link gets where `add` is given no number; None: there is no one value.
        self._defaults: dict[str, float | None] = {"stiffness": None, "length": None}
        self._a = self._b = Sites.beads([])
        self._a, self._b = self._ends(a, b)
        self._ids = _frozen(np.arange(len(self._a)))
        self._next_id = len(self._a)
        if _ids is not None:
            ids = array(f"{self.name}: _ids", _ids, (len(self._a),), dtype=np.int64)
            if (ids < 0).any() or (np.diff(ids) <= 0).any():
                raise ParameterError(f"{self.name}: _ids must ascend from 0 or more")
            self._ids = _frozen(ids.copy())
            lowest = int(ids[-1]) + 1 if len(ids) else 0
            self._next_id = whole_number(f"{self.name}: _next_id", _next_id, at_least=lowest)
        self._declare(stiffness=stiffness, length=length)

    # Looking ------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._ids)

    def __bool__(self) -> bool:
        # A force without links is a force nonetheless.
        return True

    def __repr__(self) -> str:
        return super().__repr__().replace("(", f"({len(self)}: ", 1)

    @property
    def ids(self) -> np.ndarray:
        """(n,) numbers of the links, ascending; `a`, `b` and the parameters are in this order."""
        return self._ids

    @property
    def a(self) -> Sites:
        """One end of each link."""
        return self._a

    @property
    def b(self) -> Sites:
        """The other end of each link."""
        return self._b

    @property
    def one_sided(self) -> bool:
        """Whether the links are ropes."""
        return self._one_sided

    @property
    def conserves_momentum(self) -> bool:
        """Whether no link has an end at an anchor."""
        return not (len(self._a.anchor_positions) or len(self._b.anchor_positions))

    @property
    def handles(self):
        return self._a.handles + self._b.handles

    # Changing -----------------------------------------------------------------------------------------------

    def add(self, a: Any, b: Any, stiffness: Any = None, length: Any = None) -> np.ndarray:
        """Add links; every context that uses this force follows at its next step or state.

        Parameters
        ----------
        a, b : Sites, handle, list of handles, (m,) int, or int
        stiffness, length : float or (m,) float, pN/nm and nm, >= 0, optional
            That of the links that are there where none is given; they must then all have the same.

        Returns
        -------
        (m,) int
            The numbers of the new links.

        Raises
        ------
        TopologyError, ParameterError
            As for the force itself; then nothing changes.
        """
        new_a, new_b = self._ends(a, b)
        m = len(new_a)
        numbers = {}
        for name, value in (("stiffness", stiffness), ("length", length)):
            if value is None and self._defaults[name] is None:
                raise ParameterError(f"{self.name}: give {name}=, because the links do not all have the same")
            rows = per_item(f"{self.name}: {name}", self._defaults[name] if value is None else value, m, at_least=0.0)
            numbers[name] = np.concatenate([self._numbers[name], rows])
        ids = np.arange(self._next_id, self._next_id + m)
        self._become(np.concatenate([self._ids, ids]), self._a + new_a, self._b + new_b, numbers)
        self._next_id += m
        return ids

    def remove(self, ids: Any) -> None:
        """Remove links, given by their numbers.

        Raises
        ------
        ParameterError
            No such link, or one that is named twice; then nothing changes.
        """
        keep = np.ones(len(self), bool)
        keep[self._rows(ids)] = False
        self._become(
            self._ids[keep], self._a[keep], self._b[keep], {k: v[keep] for k, v in self._numbers.items()}
        )

    def move(self, ids: Any, a: Any = None, b: Any = None) -> None:
        """Put one or both ends of links elsewhere. The links keep numbers, stiffness and length.

        Parameters
        ----------
        ids : (m,) int, or int
        a, b : Sites, handle, list of handles, (m,) int, or int, optional
            m new ends; where none are given, the end stays.

        Raises
        ------
        ParameterError
            No such link, one that is named twice, or no new end.
        TopologyError
            As for the force itself; in all cases nothing changes.
        """
        if a is None and b is None:
            raise ParameterError(f"{self.name}: move needs new ends: a=, b=, or both")
        rows = self._rows(ids)
        new_a, new_b = self._ends(
            self._a[rows] if a is None else a, self._b[rows] if b is None else b, self._ids[rows], len(rows)
        )
        order = np.arange(len(self))
        order[rows] = len(self) + np.arange(len(rows))
        self._become(self._ids, (self._a + new_a)[order], (self._b + new_b)[order], self._numbers)

    def _become(self, ids: np.ndarray, a: Sites, b: Sites, numbers: dict[str, np.ndarray]) -> None:
        self._ids, self._a, self._b = _frozen(ids), a, b
        self._numbers = self._checked(**numbers)
        self._version += 1

    def _rows(self, ids: Any) -> np.ndarray:
        """Rows of links given by their numbers."""
        what = f"{self.name}: ids"
        wanted = array(what, [ids] if np.ndim(ids) == 0 else ids, (None,), dtype=np.int64)
        rows = np.searchsorted(self._ids, wanted)
        unknown = np.append(self._ids, -1)[rows] != wanted
        if unknown.any():
            i = int(np.argmax(unknown))
            there = f"{self._ids[0]} to {self._ids[-1]}" if len(self) else "none"
            raise ParameterError(f"{what}[{i}] = {wanted[i]}, but there is no such link ({len(self)} links: {there})")
        in_order = np.sort(wanted)
        twice = np.flatnonzero(in_order[1:] == in_order[:-1])
        if len(twice):
            raise ParameterError(f"{what}: link {in_order[twice[0]]} is named twice")
        return rows

    def _ends(self, a: Any, b: Any, ids: Any = None, n: int | None = None) -> tuple[Sites, Sites]:
        """Both ends as sites, of equal number, checked against each other and every topology that is known."""
        a, b = as_sites(f"{self.name}: a", a), as_sites(f"{self.name}: b", b)
        if n is not None and not len(a) == len(b) == n:
            raise TopologyError(f"{self.name}: {n} links need as many ends, not a: {len(a)}, b: {len(b)}")
        if len(a) != len(b):
            raise TopologyError(f"{self.name}: a and b must have the same length, not {len(a)} and {len(b)}")
        known = [*self._topologies, *(h.topology for h in (*self.handles, *a.handles, *b.handles))]
        for topology in dict.fromkeys(known):
            a.check(f"{self.name}: a", topology)
            b.check(f"{self.name}: b", topology)
        bead = a.single_beads
        loop = (bead >= 0) & (bead == b.single_beads)
        if loop.any():
            k = int(np.argmax(loop))
            raise TopologyError(f"{self.name}: link {k if ids is None else ids[k]} joins bead {bead[k]} to itself")
        return a, b

    # For the frame ------------------------------------------------------------------------------------------

    def _checked(self, *, stiffness: Any, length: Any) -> dict[str, Any]:
        given = {"stiffness": stiffness, "length": length}
        numbers = {k: per_item(f"{self.name}: {k}", v, len(self), at_least=0.0) for k, v in given.items()}
        for name, value in given.items():
            if np.ndim(value) == 0:
                self._defaults[name] = float(value)
            elif len(self):
                first = numbers[name][0]
                self._defaults[name] = float(first) if (numbers[name] == first).all() else None
        return numbers

    def _arguments_now(self) -> dict[str, Any]:
        """Arguments that make this force again as it is now, its numbers of links included."""
        now = {
            name: self._numbers[name] if self._defaults[name] is None else self._defaults[name]
            for name in self.changeable
        }
        return {
            "a": self._a,
            "b": self._b,
            **now,
            "one_sided": self._one_sided,
            "name": self.name,
            "group": self.group,
            "_ids": self._ids,
            "_next_id": self._next_id,
        }

    def bind(self, layout):
        for which, sites in (("a", self._a), ("b", self._b)):
            sites.check(f"{self.name}: {which}", layout.topology)
        self._topologies.add(layout.topology)
        kind = _ROPE if self._one_sided else _HARMONIC
        n = len(self)
        beads = np.column_stack([self._a.single_beads, self._b.single_beads])
        if (beads >= 0).all():
            table, ends = SiteTable(), layout.internal(beads)
        else:
            # Both ends of a link follow each other, so that a bead adds up its links in their order.
            ends = np.arange(2 * n).reshape(n, 2)
            table = (self._a + self._b)[np.arange(2 * n).reshape(2, n).T.ravel()].bind(layout)
        operation = bind_rows(self.name, kind, table, ends, self._numbers.values())
        operation.acts_on_points = self._a.on_points(layout) or self._b.on_points(layout)
        return operation


def _frozen(a: np.ndarray) -> np.ndarray:
    a.flags.writeable = False
    return a
