"""Sites: places that forces act on, made of beads."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from medyanpy._kernels.core.sites import SiteTable
from medyanpy._tools.images import images_between
from medyanpy._tools.quaternions import turned
from medyanpy._tools.types import Numbers
from medyanpy._tools.validation import array, dimensions, several
from medyanpy.core import growing_sites
from medyanpy.core.handles import Handle, bead_numbers, handles_in
from medyanpy.errors import ParameterError, TopologyError, foreign_errors, shown

if TYPE_CHECKING:
    from medyanpy.core.layout import Layout
    from medyanpy.state import State
    from medyanpy.topology import Topology

__all__ = ["Sites"]

# Calls of Sites.anchors, in this process.
_CALLS = itertools.count()
# Bound of how far the weights of a site may miss their sum 1, relative to the sum of their sizes.
_SUM_TOLERANCE = 1e-12


class Sites:
    """Places that forces act on: beads, weighted means of beads, places that do not move.

    Made by `Sites.beads`, `Sites.weighted`, `Sites.anchors` and ``filaments.sites``, and joined by ``+``. They cannot
    be changed; one object may serve many forces. Forces on a site go to its beads in proportion to the weights.

    Attributes
    ----------
    start : (n + 1,) int
        Where the beads of each site start in the next two.
    bead_numbers : (m,) int
        Beads, site after site, in topology order.
    weights : (m,) float, sum 1 over each site
    anchor_positions : (a, 3) float, nm
        Places of the sites that have no beads, in their order.
    arms : (n, 3) float or None, nm
        Where a site is away from its first bead, in the frame of that oriented bead; None where no site is.
    handles : tuple of Handle
        The handles that the sites were made from, if any.
    growth : (n, 6) int or None
        Of places of lattices on filaments that grow: number in `handles`, subunits from place to place, filament,
        number of the place modulo the next, that, and 1 where ends unbind; -1 in rows of other sites. None where no
        sites are.

    Examples
    --------
    >>> import medyanpy as mp
    >>> topology = mp.Topology()
    >>> beads = topology.add_beads([[0.0, 0, 0], [4.0, 0, 0], [9.0, 0, 0]], mass=1.0)
    >>> quarter = mp.Sites.weighted([[0, 1]], [[0.75, 0.25]])  # a quarter of the way from bead 0 to bead 1
    >>> sites = mp.Sites.beads(beads) + quarter + mp.Sites.anchors([[0.0, 5, 0]])
    >>> sites
    Sites(5: 3 beads, 1 weighted, 1 anchor)
    >>> sites[2:4]
    Sites(2: 1 bead, 1 weighted)
    """

    __slots__ = ("_anchors", "_arms", "_beads", "_growth", "_handles", "_made", "_start", "_weights")

    _start: np.ndarray
    _beads: np.ndarray
    _weights: np.ndarray
    _anchors: np.ndarray
    _arms: np.ndarray | None
    _growth: np.ndarray | None
    _handles: tuple[Handle, ...]
    #: (a,) of anchors, which call of `Sites.anchors` made each; -1 where that is not known.
    _made: np.ndarray

    def __init__(self) -> None:
        raise ParameterError("Sites: make them by Sites.beads, Sites.weighted or Sites.anchors")

    @classmethod
    def _of(
        cls, start: np.ndarray, beads: np.ndarray, weights: np.ndarray, anchors: np.ndarray,
        handles: Sequence[Handle] = (), arms: np.ndarray | None = None, made: np.ndarray | None = None,
        growth: np.ndarray | None = None,
    ) -> "Sites":  # fmt: skip
        """Make sites from arrays that are right. `arms` (n, 3): in the frame of a site's first bead, oriented; 0 where
        none."""
        self = object.__new__(cls)
        self._handles = tuple(dict.fromkeys(handles))
        topologies = list(dict.fromkeys(h.topology for h in self._handles))
        if len(topologies) > 1:
            other = next(h for h in self._handles if h.topology is not topologies[0])
            raise TopologyError(f"Sites: {self._handles[0]!r} and {other!r} belong to different topologies")
        self._start, self._beads = (np.ascontiguousarray(a, dtype=np.int64) for a in (start, beads))
        self._weights, self._anchors = (np.ascontiguousarray(a, dtype=np.float64) for a in (weights, anchors))
        self._arms = arms if arms is None or arms.any() else None
        self._growth = growth if growth is None or (growth[:, growing_sites.HANDLE] >= 0).any() else None
        self._made = np.full(len(self._anchors), -1) if made is None else made
        for a in (self._start, self._beads, self._weights, self._anchors):
            a.flags.writeable = False
        return self

    # Making -------------------------------------------------------------------------------------------------

    @classmethod
    def beads(cls, beads: Numbers | Handle | Sequence[Handle]) -> "Sites":
        """Make a site at each of some beads.

        Parameters
        ----------
        beads : handle, list of handles, (n,) int or int
            Beads of any kind, in the order given; a bead may occur more than once. The place of an in-triangle point
            is its place in space.

        Raises
        ------
        TopologyError
            Not beads, a negative number, or handles of different topologies. Whether numbers exist is seen when a
            force with the sites is bound.
        """
        what, given = "Sites.beads: beads", bead_numbers(beads)
        one = not isinstance(given, str) and dimensions(what, given, "() or (n,)", error=TopologyError) == 0
        number = array(what, [given] if one else given, (None,), dtype=np.int64, error=TopologyError).copy()
        _not_negative(what, number)
        n = len(number)
        return cls._of(np.arange(n + 1), number, np.ones(n), np.zeros((0, 3)), handles_in(beads))

    @classmethod
    def weighted(cls, beads: Numbers, weights: Numbers) -> "Sites":
        """Make sites at weighted means of beads: x = Σ w_k x_k.

        Parameters
        ----------
        beads : (n, k) int
            The k >= 1 beads of each site, in topology order: ``handle.beads`` gives them; each once in a site.
        weights : (n, k) float, sum 1 over each site
            The w of the mean. They may be negative: the site then lies beyond its beads.

        Raises
        ------
        TopologyError
            Wrong shapes, a negative bead number, a bead twice in one site.
        ParameterError
            Weights that are not finite, or whose sum misses 1 by more than 1e-12 of the sum of their sizes: forces
            would depend on the origin.
        """
        what = "Sites.weighted"
        number = array(f"{what}: beads", beads, (None, None), dtype=np.int64, error=TopologyError)
        n, k = number.shape
        if n and not k:
            raise TopologyError(f"{what}: beads must name at least 1 bead a site; Sites.anchors are fixed places")
        _not_negative(f"{what}: beads", number)
        in_order = np.sort(number, axis=1)
        twice = np.argwhere(in_order[:, 1:] == in_order[:, :-1])
        if len(twice):
            i, j = twice[0]
            raise TopologyError(f"{what}: beads[{i}] names bead {in_order[i, j]} twice")
        w = array(f"{what}: weights", weights, (n, k))
        _sum_to_one(f"{what}: weights", w.ravel(), np.arange(0, n * k + 1, k) if k else np.zeros(n + 1, np.int64))
        return cls._of(np.arange(n + 1) * k, number.ravel().copy(), w.ravel().copy(), np.zeros((0, 3)))

    @classmethod
    def anchors(cls, positions: Numbers) -> "Sites":
        """Make sites at places that do not move.

        Parameters
        ----------
        positions : (n, 3) float, nm

        Raises
        ------
        ParameterError
            Wrong shape, or coordinates that are not finite.

        Notes
        -----
        For jumps, anchors with equal coordinates are one site, whose partners are counted together; put other sites
        0.001 nm apart. `LinkBinding` warns (`SitesWarning`) of a shared anchor that different calls made.
        """
        x = array("Sites.anchors: positions", positions, (None, 3)).copy()
        made = np.full(len(x), next(_CALLS))
        return cls._of(np.zeros(len(x) + 1), np.zeros(0), np.zeros(0), x, made=made)

    @classmethod
    def from_arrays(
        cls, start: Numbers, bead_numbers: Numbers, weights: Numbers, anchor_positions: Numbers,
        arms: Numbers | None = None, handles: Sequence[Handle] = (), growth: Numbers | None = None,
    ) -> "Sites":  # fmt: skip
        """Make sites from the arrays that describe them, as documents keep them.

        Parameters
        ----------
        start : (n + 1,) int
        bead_numbers : (m,) int
        weights : (m,) float, sum 1 over each site
        anchor_positions : (a, 3) float, nm
        arms : (n, 3) float, nm, optional
            In the frame of each site's first bead, which is an oriented one where the arm is not zero.
        handles : list of Handle
            Where the beads are from.
        growth : (n, 6) int, optional

        Raises
        ------
        TopologyError, ParameterError
            Arrays that do not fit together, or as `Sites.weighted`.
        """
        what = "Sites.from_arrays"
        first = array(f"{what}: start", start, (None,), dtype=np.int64, error=TopologyError)
        number = array(f"{what}: bead_numbers", bead_numbers, (None,), dtype=np.int64, error=TopologyError).copy()
        w = array(f"{what}: weights", weights, (len(number),)).copy()
        if not len(first) or first[0] != 0 or first[-1] != len(number) or (np.diff(first) < 0).any():
            raise TopologyError(f"{what}: start must ascend from 0 to the number of beads, {len(number)}")
        n_anchors = int((np.diff(first) == 0).sum())
        with foreign_errors(f"{what}: anchor_positions must have shape ({n_anchors}, 3)"):
            x = np.reshape(cast(Any, anchor_positions), (-1, 3))  # An empty list has lost its shape.
        x = array(f"{what}: anchor_positions", x, (n_anchors, 3)).copy()
        _not_negative(f"{what}: bead_numbers", number)
        site = np.repeat(np.arange(len(first) - 1), np.diff(first))
        order = np.lexsort((number, site))
        twice = np.flatnonzero((np.diff(site[order]) == 0) & (np.diff(number[order]) == 0))
        if len(twice):
            k = order[twice[0]]
            raise TopologyError(f"{what}: site {site[k]} names bead {number[k]} twice")
        _sum_to_one(f"{what}: weights", w, first)
        handles = several(f"{what}: handles", handles, error=TopologyError)
        if not all(isinstance(h, Handle) for h in handles):
            raise TopologyError(f"{what}: handles must be handles, not {shown(handles)}")
        if arms is not None:
            arms = array(f"{what}: arms", arms, (len(first) - 1, 3)).copy()
            bare = arms.any(axis=1) & (np.diff(first) == 0)
            if bare.any():
                raise TopologyError(f"{what}: site {int(np.argmax(bare))} has an arm but no bead")
        rings = None
        if growth is not None:
            shape = len(first) - 1, growing_sites.COLUMNS
            rings = array(f"{what}: growth", growth, shape, dtype=np.int64, error=TopologyError).copy()
            growing_sites.checked(what, rings, handles)
        return cls._of(first.copy(), number, w, x, handles, arms, growth=rings)

    @classmethod
    def concatenate(cls, parts: Sequence["Sites"]) -> "Sites":
        """Join the sites of several objects, one after another; ``a + b`` is ``Sites.concatenate([a, b])``.

        Raises
        ------
        TopologyError
            Something that is not Sites, or handles of different topologies.
        """
        parts = several("Sites.concatenate: parts", parts, error=TopologyError)
        for part in parts:
            if not isinstance(part, Sites):
                what = f"Sites.concatenate: {shown(part)} is not Sites"
                raise TopologyError(f"{what}; Sites.beads(...) makes them of beads")
        counts = np.concatenate([np.zeros(0, np.int64), *(np.diff(p._start) for p in parts)])
        arms = None
        if any(p._arms is not None for p in parts):
            arms = np.concatenate([np.zeros((len(p), 3)) if p._arms is None else p._arms for p in parts])
        handles = list(dict.fromkeys(handle for p in parts for handle in p._handles))
        growth = None
        if any(p._growth is not None for p in parts):
            growth = np.concatenate([p._growth_among(handles) for p in parts])
        return cls._of(
            _starts(counts), np.concatenate([np.zeros(0, np.int64), *(p._beads for p in parts)]),
            np.concatenate([np.zeros(0), *(p._weights for p in parts)]),
            np.concatenate([np.zeros((0, 3)), *(p._anchors for p in parts)]),
            handles, arms, np.concatenate([np.zeros(0, np.int64), *(p._made for p in parts)]), growth,
        )  # fmt: skip

    def _growth_among(self, handles: list[Handle]) -> np.ndarray:
        """Return `growth` with numbers of these handles."""
        if self._growth is None:
            return np.full((len(self), growing_sites.COLUMNS), -1)
        out, own = self._growth.copy(), np.array([*map(handles.index, self._handles), -1])
        out[:, growing_sites.HANDLE] = own[out[:, growing_sites.HANDLE]]
        return out

    def __add__(self, other: "Sites") -> "Sites":
        return Sites.concatenate([self, other]) if isinstance(other, Sites) else NotImplemented

    # Looking ------------------------------------------------------------------------------------------------

    @property
    def start(self) -> np.ndarray:
        return self._start

    @property
    def bead_numbers(self) -> np.ndarray:
        return self._beads

    @property
    def weights(self) -> np.ndarray:
        return self._weights

    @property
    def anchor_positions(self) -> np.ndarray:
        return self._anchors

    @property
    def arms(self) -> np.ndarray | None:
        return self._arms

    @property
    def handles(self) -> tuple[Handle, ...]:
        return self._handles

    @property
    def growth(self) -> np.ndarray | None:
        return self._growth

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """Arrays of which `from_arrays` makes these sites again, but for handles."""
        names = ("start", "bead_numbers", "weights", "anchor_positions", "arms", "growth")
        found = {name: getattr(self, name) for name in names}
        return {name: value for name, value in found.items() if value is not None}

    def __len__(self) -> int:
        return len(self._start) - 1

    def __getitem__(self, index: Any) -> "Sites":
        """Return some of these sites: by an int, a slice, an array of ints or a mask."""
        try:
            chosen = np.atleast_1d(np.arange(len(self))[index])
        except IndexError as cause:
            raise IndexError(f"Sites: there are {len(self)} sites, which the index {index!r} does not fit") from cause
        counts = np.diff(self._start)
        start = _starts(counts[chosen])
        row = np.repeat(self._start[:-1][chosen] - start[:-1], counts[chosen]) + np.arange(start[-1])
        anchor = (np.cumsum(counts == 0) - 1)[chosen[counts[chosen] == 0]]
        return Sites._of(
            start, self._beads[row], self._weights[row], self._anchors[anchor], self._handles,
            None if self._arms is None else self._arms[chosen], self._made[anchor],
            None if self._growth is None else self._growth[chosen],
        )  # fmt: skip

    def __iter__(self) -> Iterator["Sites"]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        beads, anchors = int((self.single_beads >= 0).sum()), len(self._anchors)
        parts = [
            f"{n} {noun if n == 1 else plural}"
            for n, noun, plural in (
                (beads, "bead", "beads"),
                (len(self) - beads - anchors, "weighted", "weighted"),
                (anchors, "anchor", "anchors"),
            )
            if n
        ]
        return f"Sites({len(self)}{': ' if parts else ''}{', '.join(parts)})"

    def __reduce__(self) -> tuple[Any, ...]:
        arrays = self._start, self._beads, self._weights, self._anchors, self._handles, self._arms
        return Sites._of, (*arrays, self._made, self._growth)

    def positions(self, state: "State") -> np.ndarray:
        """Return the positions of the sites in a state.

        Parameters
        ----------
        state : State
            Of a context of their topology, with positions.

        Returns
        -------
        (n, 3) float array
            nm; in a periodic box next to the first bead of each site, as forces have it. nan where a filament that
            grows does not have the place now.

        Raises
        ------
        ParameterError
            A state without positions.
        TopologyError
            Beads that the state does not have; sites with arms that were not made from a handle.
        """
        row = np.full(len(state.positions), -1)
        for handle in self._handles:
            if handle.kind.rows_of == "oriented":
                row[handle.beads] = handle.kind.row_numbers
        return self.places(state, row)

    def places(self, state: Any, row: np.ndarray) -> np.ndarray:
        """Return `positions` for anything with positions, orientations and a box; `row` is that of each bead in the
        orientations."""
        x, counts = state.positions, np.diff(self._start)
        if self._growth is not None:
            return self.as_in(state).places(state, row)
        if len(self._beads) and self._beads.max() >= len(x):
            raise TopologyError(f"Sites: bead {self._beads.max()} does not exist; the state has 0 to {len(x) - 1}")
        out, at = np.zeros((len(self), 3)), x[self._beads]
        if getattr(state, "box", None) is not None:
            first = x[self._beads[np.repeat(self._start[:-1], counts)]]
            at = at - images_between(at - first, state.box)
        np.add.at(out, np.repeat(np.arange(len(self)), counts), self._weights[:, None] * at)
        out[counts == 0] = self._anchors
        if self._arms is not None:
            with_arm = np.flatnonzero(self._arms.any(axis=1))
            rows = row[self._beads[self._start[:-1][with_arm]]]
            if (rows < 0).any():
                i = int(with_arm[np.argmax(rows < 0)])
                raise TopologyError(f"Sites: site {i} has an arm, and was not made from the handle of its body")
            out[with_arm] += turned(state.orientations[rows], self._arms[with_arm])
        return out

    def as_in(self, state: Any) -> "Sites":
        """Return sites that are where these are in a state, at nan where a filament does not have them."""
        if self._growth is None:
            return self
        return self.on_growing(self._growth, growing_sites.rows_of(self._handles), state)

    def on_growing(self, growth: np.ndarray, nodes: list[np.ndarray], state: Any) -> "Sites":
        """Return those of which these rows of `growth` say where they are in a state, on filaments with these `nodes`;
        see `growing_sites.now`."""
        grows = growth[:, growing_sites.HANDLE] >= 0
        pairs, share, _ = growing_sites.now(growth, nodes, state)
        beads, weights = self._beads.copy(), self._weights.copy()
        for k, own in enumerate((1.0 - share, share)):
            at = self._start[:-1][grows] + k
            beads[at], weights[at] = pairs[grows, k], own[grows]
        return Sites._of(self._start, beads, weights, self._anchors, self._handles, self._arms, self._made)

    # Methods for forces -------------------------------------------------------------------------------------

    @property
    def single_beads(self) -> np.ndarray:
        """Bead of each site, (n,); -1 where it is not a single bead, but a mean or an anchor."""
        alone = np.diff(self._start) == 1
        if self._arms is not None:
            alone &= ~self._arms.any(axis=1)
        out = np.full(len(self), -1)
        out[alone] = self._beads[self._start[:-1][alone]]
        return out

    @property
    def main_beads(self) -> np.ndarray:
        """Bead, (n,), of each site with the greatest weight, the first of equal ones; -1 of anchors."""
        counts = np.diff(self._start)
        order = np.lexsort((-self._weights, np.repeat(np.arange(len(self)), counts)))
        out = np.full(len(self), -1)
        out[counts > 0] = self._beads[order[self._start[:-1][counts > 0]]]
        return out

    def is_same(self, arrays: Mapping[str, np.ndarray]) -> bool:
        """Tell whether `from_arrays` makes the same sites of these."""
        return self.arrays.keys() == arrays.keys() and all(np.array_equal(a, arrays[k]) for k, a in self.arrays.items())

    def naming(self, gone: np.ndarray) -> np.ndarray:
        """Tell which sites name a bead of some, (n,); these beads are given as (rows,) bool."""
        out = np.zeros(len(self), bool)
        np.logical_or.at(out, np.repeat(np.arange(len(self)), np.diff(self._start)), gone[self._beads])
        if self._growth is not None:
            # They follow filaments, whichever beads these have.
            out &= self._growth[:, growing_sites.HANDLE] < 0
        return out

    def check(self, what: str, topology: "Topology", *, grows: bool = False) -> None:
        """Refuse sites of another topology, beads that do not exist in this one, and arms on beads that have no
        orientation; and places on filaments that grow, unless what asks follows these."""
        if self._growth is not None and not grows:
            i = int(np.argmax(self._growth[:, growing_sites.HANDLE] >= 0))
            raise TopologyError(
                f"{what}[{i}] is a place of a lattice on filaments that grow, which LinkBinding, CrosslinkerBinding "
                "and Motors follow: give one of these, or beads"
            )
        for handle in self._handles:
            if handle.topology is not topology:
                raise TopologyError(f"{what}: {handle!r} belongs to another topology")
        bad = self._beads >= topology.n_beads
        if bad.any():
            k = int(np.argmax(bad))
            raise TopologyError(
                f"{what}[{np.searchsorted(self._start, k, side='right') - 1}] names bead {self._beads[k]}, "
                f"but the topology has beads 0 to {topology.n_beads - 1}"
            )
        beads = self._beads
        if self._growth is not None:
            beads = beads[np.repeat(self._growth[:, growing_sites.HANDLE] < 0, np.diff(self._start))]
        topology.expect_awake(what, beads)
        topology.expect_places(what, beads)
        if self._arms is not None:
            with_arm = np.flatnonzero(self._arms.any(axis=1))
            body = self._beads[self._start[:-1][with_arm]]
            turning = [handle.beads for handle in topology.oriented_handles]
            bare = ~np.isin(body, np.concatenate([np.empty(0, np.int64), *turning]))
            if bare.any():
                k = int(np.argmax(bare))
                raise TopologyError(f"{what}[{with_arm[k]}] has an arm on bead {body[k]}, which has no orientation")

    def bind(self, layout: "Layout") -> SiteTable:
        """Return the table of these sites on the arrays of one Context; `check` has been passed."""
        counts = np.diff(self._start)
        has_beads = counts > 0
        weights = self._weights.copy()
        # Positions are taken from the first bead of each site. Its weight is what the others leave, to the last
        # bit, so that forces are the derivative of the energy and sum to zero.
        weights[self._start[:-1][has_beads]] = 0.0
        if len(weights):
            others = _over_sites(weights, counts[has_beads])
            weights[self._start[:-1][has_beads]] = 1.0 - others
        place = layout.internal(self._beads).astype(np.int32)
        oriented = arms = None
        if self._arms is not None:
            with_arm = self._arms.any(axis=1)
            oriented, arms = np.full(len(self), -1, np.int32), np.ascontiguousarray(self._arms)
            oriented[with_arm] = place[self._start[:-1][with_arm]] - layout.first_oriented
        places = [] if self._growth is None else growing_sites.bound(self._growth, self._handles, layout)
        return SiteTable(self._start.astype(np.int32), place, weights, self._anchors, oriented, arms, places)

    def on_points(self, layout: "Layout") -> bool:
        """Tell whether any in-triangle point takes part."""
        return bool((layout.internal(self._beads) >= layout.n_cartesian).any())


def joined_beads(a: Sites, b: Sites) -> np.ndarray:
    """Return the beads (k, 2) that links between sites (n,) join, each the main one of its site; without those between
    a site and an anchor, or sites with the same main bead."""
    pairs = np.column_stack([a.main_beads, b.main_beads])
    joined: np.ndarray = pairs[(pairs >= 0).all(axis=1) & (pairs[:, 0] != pairs[:, 1])]
    return joined


def ends_of(rows: np.ndarray, sides: Sequence[Sites]) -> tuple[Sites, Sites]:
    """Return the two ends of rows (k, 2) of two groups of sites; an end that holds nothing, -1, is where the other
    is."""
    n, (a, b) = len(sides[0]), np.asarray(rows, np.int64).T
    both = Sites.concatenate(sides)
    return both[np.where(a >= 0, a, n + b)], both[np.where(b >= 0, n + b, a)]


def as_sites(what: str, value: Any) -> Sites:
    """Return sites as they are; anything else names beads."""
    if isinstance(value, Sites):
        return value
    try:
        return Sites.beads(value)
    except TopologyError as error:
        raise TopologyError(f"{what}: {error}") from error


def _starts(counts: np.ndarray) -> np.ndarray:
    start = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=start[1:])
    return start


def _not_negative(what: str, number: np.ndarray) -> None:
    bad = np.argwhere(number < 0)
    if len(bad):
        place = ", ".join(map(str, bad[0]))
        raise TopologyError(f"{what}[{place}] = {number[tuple(bad[0])]} but must be >= 0")


def _over_sites(values: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return sums of the values of each site, one after another; sites have so many each."""
    return np.bincount(np.repeat(np.arange(len(counts)), counts), values, len(counts))


def _sum_to_one(what: str, weights: np.ndarray, start: np.ndarray) -> None:
    """Refuse weights that do not sum to 1 over each site that has beads."""
    has_beads = np.flatnonzero(np.diff(start))
    if not len(has_beads):
        return
    total, size = (_over_sites(w, np.diff(start)[has_beads]) for w in (weights, np.abs(weights)))
    bad = np.abs(total - 1.0) > _SUM_TOLERANCE * size
    if bad.any():
        i = int(np.argmax(bad))
        raise ParameterError(
            f"{what} of site {has_beads[i]} sum to {float(total[i])!r} but must sum to 1: a site moves with its beads "
            "when they all move alike"
        )
