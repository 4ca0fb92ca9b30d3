"""Springs, ropes and angles between sites, which may be added and removed in a run."""

import weakref
from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np

from medyanpy._kernels.core import numerics
from medyanpy._kernels.core.program import Operation
from medyanpy._kernels.core.sites import SiteTable
from medyanpy._kernels.forces.normal_links import NormalLinks as NormalLinksOperation
from medyanpy._kernels.forces.radial import Radial
from medyanpy._kernels.selected import angles
from medyanpy._tools.images import displacement
from medyanpy._tools.types import Numbers
from medyanpy._tools.validation import array, one_or_many, whole_number
from medyanpy.beads import InTrianglePoints
from medyanpy.errors import ParameterError, TopologyError
from medyanpy.forces._arguments import Beads, Ids
from medyanpy.forces._base import Domain, Force, domain_table
from medyanpy.forces._stiffness import Coordinates, Start
from medyanpy.forces.bonds import bind_rows
from medyanpy.forces.membrane import warn_inside_out
from medyanpy.mesh.geometry import corners_of
from medyanpy.sites import Sites, as_sites, joined_beads

if TYPE_CHECKING:
    from medyanpy.handles import Handle
    from medyanpy.layout import Layout
    from medyanpy.state import State
    from medyanpy.topology import Topology

__all__ = ["AngleLinks", "DirectionLinks", "LinkEnds", "Links", "NormalLinks"]


class _SiteTerms(Force):
    """Terms between sites, which may be added, removed and moved while a simulation runs.

    Each term has a number, given when it is added and never used for another. Sites, numbers and parameters are kept
    in their order.
    """

    #: Names of the sites of a term, which are arguments and attributes of the force.
    ends: ClassVar[tuple[str, ...]] = ()
    #: Pairs of ends that must not be one bead.
    apart: ClassVar[tuple[tuple[int, int], ...]] = ()
    #: Name of a term in messages.
    noun = "term"

    def __init__(
        self,
        sites: tuple[Any, ...],
        numbers: dict[str, Any],
        ids: Any,
        next_id: int | None,
        *,
        name: str | None,
        group: int,
    ) -> None:
        super().__init__(name=name, group=group)
        #: Topologies of the contexts that use this force: later ends are checked against them.
        self._topologies: weakref.WeakSet[Topology] = weakref.WeakSet()
        #: Value of a term where `add` is given no number; None if there is no single value.
        self._defaults: dict[str, float | None] = dict.fromkeys(self.changeable)
        self._sites: tuple[Sites, ...] = ()
        self._ids = _frozen(np.arange(0))
        self._sites = self._checked_ends(sites)
        n = len(self._sites[0])
        self._ids = _frozen(np.arange(n))
        self._next_id = n
        if ids is not None:
            ids = array(f"{self.name}: _ids", ids, (n,), dtype=np.int64)
            if (ids < 0).any() or (np.diff(ids) <= 0).any():
                raise ParameterError(f"{self.name}: _ids must ascend from 0 or more")
            self._ids = _frozen(ids.copy())
            lowest = int(ids[-1]) + 1 if n else 0
            self._next_id = whole_number(f"{self.name}: _next_id", next_id, at_least=lowest)
        self._declare(**numbers)

    # Looking ------------------------------------------------------------------------------------------------

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
    def a(self) -> Sites:
        """The first site of each term."""
        return self._sites[0]

    @property
    def b(self) -> Sites:
        """The second site of each term."""
        return self._sites[1]

    @property
    def conserves_momentum(self) -> bool:  # type: ignore[override]
        """True if no term has an end at an anchor."""
        return not any(len(sites.anchor_positions) for sites in self._sites)

    @property
    def handles(self) -> "tuple[Handle, ...]":
        return tuple(handle for sites in self._sites for handle in sites.handles)

    # Changing -----------------------------------------------------------------------------------------------

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
        self._become(
            np.concatenate([self._ids, ids]), [old + more for old, more in zip(self._sites, new, strict=True)], numbers
        )
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
        self._become(
            self._ids[keep], [sites[keep] for sites in self._sites], {k: v[keep] for k, v in self._numbers.items()}
        )

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
        self._ids, self._sites = _frozen(ids), tuple(sites)
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
            raise ParameterError(f"{what}[{i}] = {wanted[i]}, but {why} ({len(self)} {noun}s: {there})")
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
                raise TopologyError(
                    f"{self.name}: {self.noun} {k if ids is None else ids[k]} joins bead {bead[k]} to itself"
                )
        return sites

    # For the frame ------------------------------------------------------------------------------------------

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
        """Return arguments that make this force again as it is now, its numbers of terms included."""
        now = {
            name: self._numbers[name] if self._defaults[name] is None else self._defaults[name]
            for name in self.changeable
        }
        ends = dict(zip(self.ends, self._sites, strict=True))
        return {**super()._arguments_now(), **ends, **now, "_ids": self._ids, "_next_id": self._next_id}

    def bind(self, layout: "Layout") -> Operation:
        for name, sites in zip(self.ends, self._sites, strict=True):
            sites.check(f"{self.name}: {name}", layout.topology)
        self._topologies.add(layout.topology)
        operation = self._operation(layout)
        operation.acts_on_points = any(sites.on_points(layout) for sites in self._sites)
        return operation

    def _ends_in(self, start: Start) -> tuple[Sites, ...]:
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


class Links(_SiteTerms):
    r"""Springs between pairs of sites, which may be added, removed and moved while a simulation runs.

    .. math:: U = \sum_l \tfrac12 k_l (r_l - \ell_l)^2, \quad r_l = |X_{b_l} - X_{a_l}|

    or, with `one_sided`, only over links with :math:`r_l > \ell_l`: ropes, which pull when taut and do not push.

    Parameters
    ----------
    a, b : Sites, handle, list of handles, or (n,) int
        The two ends of each link: as many in `a` as in `b`, and 0 is allowed. See `Sites`: beads of any kind,
        weighted means of beads, places that do not move.
    stiffness : float or (n,) float, pN/nm, >= 0
        The k of the energy.
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
        A number outside its domain; (by a Context) a link that is longer than half of the periodic box.

    Notes
    -----
    For coincident ends the direction is undefined; the force is set to zero, the mean over all directions. The force of
    a rope is continuous, its derivative jumps where the rope becomes taut.

    Each link has a number, given when it is added and never used for another. Forces on a bead are summed in the order
    of these numbers: links added later come last, and the bits of a run do not depend on the history of the links.

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

    of_positions_alone = True
    domains: Mapping[str, Domain] = domain_table(
        stiffness=Domain("pN/nm", at_least=0.0, per="ids"),
        length=Domain("nm", at_least=0.0, per="ids"),
    )
    stiffness: float | np.ndarray
    length: float | np.ndarray
    ends: ClassVar[tuple[str, ...]] = ("a", "b")
    apart: ClassVar[tuple[tuple[int, int], ...]] = ((0, 1),)
    noun = "link"

    def __init__(
        self,
        a: "Beads",
        b: "Beads",
        stiffness: "Numbers",
        length: "Numbers" = 0.0,
        *,
        one_sided: bool = False,
        name: str | None = None,
        group: int = 0,
        _ids: Any = None,
        _next_id: int | None = None,
    ) -> None:
        self._one_sided = bool(one_sided)
        super().__init__((a, b), {"stiffness": stiffness, "length": length}, _ids, _next_id, name=name, group=group)

    @property
    def one_sided(self) -> bool:
        """True if the links are ropes, which pull but do not push."""
        return self._one_sided

    def add(
        self, a: "Beads", b: "Beads", stiffness: "Numbers | None" = None, length: "Numbers | None" = None
    ) -> np.ndarray:
        """Add links; every context that uses this force follows at its next step or state.

        Parameters
        ----------
        a, b : Sites, handle, list of handles, (m,) int, or int
        stiffness, length : float or (m,) float, pN/nm and nm, >= 0, optional
            By default that of the present links, which must then all have the same.

        Returns
        -------
        (m,) int
            The numbers of the new links.

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
            No such link, one that was removed, one that is named twice, or no new end.
        TopologyError
            As for the force itself; in all cases nothing changes.
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
        """Return the lengths of the links in a state, in the order of ``state.links(self)``.

        In a periodic box a link runs to the nearest image of its other end.

        Returns
        -------
        (n,) float array
            nm

        Raises
        ------
        ParameterError
            A state of another system, or without positions.
        """
        ends = state.links(self)
        between = displacement(ends.a.positions(state), ends.b.positions(state), state.box)
        out: np.ndarray = np.linalg.norm(between, axis=1)
        return out

    def tensions(self, state: "State") -> np.ndarray:
        """Return the tensions of the links in a state, in the order of ``state.links(self)``.

        Returns
        -------
        (n,) float array
            pN; negative of springs that push.

        Raises
        ------
        ParameterError
            A state of another system, or without positions.
        """
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
    stiffness, length : (n,) float, pN/nm and nm
    """

    def __init__(self, force: Links, coming: list[tuple[Sites, Sites, np.ndarray]]) -> None:
        # Sites never change: they are put together on demand.
        self._given, self._coming = force._sites, coming
        self.ids: np.ndarray = force.ids
        self.bound: list[np.ndarray] = [rows for _, _, rows in coming]
        self._numbers, self._defaults = force._numbers, dict(force._defaults)

    def __len__(self) -> int:
        return len(self.ids) + sum(map(len, self.bound))

    def __repr__(self) -> str:
        return f"LinkEnds({len(self)}: {len(self.ids)} given, {len(self) - len(self.ids)} bound)"

    @property
    def a(self) -> Sites:
        return Sites.concatenate([self._given[0], *(a[rows[:, 0]] for a, _, rows in self._coming)])

    @property
    def b(self) -> Sites:
        return Sites.concatenate([self._given[1], *(b[rows[:, 1]] for _, b, rows in self._coming)])

    @property
    def stiffness(self) -> np.ndarray:
        return self._of_each("stiffness")

    @property
    def length(self) -> np.ndarray:
        return self._of_each("length")

    def _of_each(self, name: str) -> np.ndarray:
        more = len(self) - len(self.ids)
        bound = np.full(more, self._defaults[name] if more else 0.0)
        return np.concatenate([self._numbers[name], bound])


class _Angles(_SiteTerms):
    """Base of both kinds of angles, which differ in the sites that make the two directions."""

    of_positions_alone = True
    domains: Mapping[str, Domain] = domain_table(
        stiffness=Domain("pN nm", at_least=0.0, per="ids"),
        angle=Domain("radians", at_least=0.0, at_most=np.pi, per="ids"),
    )
    noun = "angle"
    #: The ends of the two directions, by their numbers.
    directions: ClassVar[tuple[tuple[int, int], tuple[int, int]]]

    def squared_frequencies(self, start: Start) -> np.ndarray | None:
        ends = self._ends_in(start)
        places, coordinates = [start.site_positions(s) for s in ends], [start.sites(s) for s in ends]
        parts = []
        for i, j in self.directions:
            length = np.linalg.norm(displacement(places[i], places[j], start.box), axis=1)
            # Where two sites meet there is no angle, and no force.
            over = np.divide(1.0, length, out=np.zeros(len(self)), where=length > 0.0)
            parts.append((coordinates[i] + coordinates[j]).times(over))
        return start.springs(parts[0] + parts[1], self._numbers["stiffness"])

    def _operation(self, layout: "Layout") -> Operation:
        k, angle = (np.ascontiguousarray(self._numbers[name]) for name in self.changeable)
        sine, cosine = np.empty(len(self)), np.empty(len(self))
        numerics.sincos(angle, sine, cosine)
        # π is not a floating-point number; the angle that is meant has no sine.
        sine[angle == np.pi] = 0.0
        return angles.Angles(self.name, self._table(layout), len(self.ends), np.column_stack([k, k * cosine, k * sine]))


class AngleLinks(_Angles):
    r"""Angles at one site between two others, which may be added, removed and moved while a simulation runs.

    .. math:: U = \sum_t k_t \bigl(1 - \cos(\theta_t - \theta_{0t})\bigr)
              \approx \sum_t \tfrac12 k_t (\theta_t - \theta_{0t})^2

    with the angle θ, from 0 to π, at site b between the directions to a and to c: π where the three are on one line
    in the order a, b, c.

    Parameters
    ----------
    a, b, c : Sites, handle, list of handles, or (n,) int
        The three sites of each angle, as many of each; 0 are allowed. See `Sites`: beads of any kind, places on the
        links of filaments (``filaments.sites``), in-triangle points, weighted means, places that do not move.
    stiffness : float or (n,) float, pN nm, >= 0
        k, per square of radians for small changes of the angle.
    angle : float or (n,) float, radians, >= 0 and <= π
        θ0.
    name, group
        See `Force`.

    Raises
    ------
    TopologyError
        Sites of different number, b the same bead as a or c, handles of different topologies, or (when bound) a bead
        that does not exist.
    ParameterError
        A number outside its domain.

    Notes
    -----
    With θ0 = 0 or π the energy is smooth everywhere but where two sites of a term meet. With θ0 between them the force
    has no limit as θ goes to 0 or π, where all directions of bending are equivalent; it is zero there, the mean over
    all. Where b meets a or c there is no angle: the term has the energy k and no force. The angle's sign and the plane
    it lies in are free.

    Each angle has a number, as each of `Links` has; forces on a bead are summed in the order of these numbers.
    Momentum and angular momentum are kept where no site is an anchor. Second and third derivatives are offered where no
    site is on an oriented bead, with an arm.

    References
    ----------
    Cosine form: O. Kratky, G. Porod, Recl. Trav. Chim. Pays-Bas 68, 1106 (1949). For ½k(θ-θ0)² (OpenMM's
    HarmonicAngleForce) it has the same curvature at θ0, but a finite force at 0 and π.

    Examples
    --------
    >>> import numpy as np
    >>> import medyanpy as mp
    >>> topology = mp.Topology()
    >>> mother = topology.add_filament([[0.0, 0, 0], [50.0, 0, 0], [100.0, 0, 0]], node_mass=4e-12)
    >>> branch = topology.add_filament([[50.0, 6, 0], [50.0, 40, 0]], node_mass=4e-12)
    >>> system = mp.System(topology)
    >>> sites = mother.sites(0, 1), mother.sites(0, 1, 0.0), branch.sites(0, 0)
    >>> system.add_force(mp.forces.AngleLinks(*sites, 10.0, np.deg2rad(70)))
    AngleLinks(1: stiffness=10, angle=1.22173)
    >>> state = mp.Context(system, mp.VerletIntegrator(1e-9)).get_state(energy=True)
    >>> bool(np.isclose(state.potential_energy, 10.0 * (1.0 - np.cos(np.deg2rad(20)))))
    True
    """

    stiffness: float | np.ndarray
    angle: float | np.ndarray
    ends: ClassVar[tuple[str, ...]] = ("a", "b", "c")
    directions: ClassVar[tuple[tuple[int, int], tuple[int, int]]] = ((1, 0), (1, 2))
    apart: ClassVar[tuple[tuple[int, int], ...]] = ((0, 1), (1, 2))

    def __init__(
        self,
        a: "Beads",
        b: "Beads",
        c: "Beads",
        stiffness: "Numbers",
        angle: "Numbers",
        *,
        name: str | None = None,
        group: int = 0,
        _ids: Any = None,
        _next_id: int | None = None,
    ) -> None:
        super().__init__((a, b, c), {"stiffness": stiffness, "angle": angle}, _ids, _next_id, name=name, group=group)

    @property
    def c(self) -> Sites:
        """The third site of each angle."""
        return self._sites[2]

    def add(
        self, a: "Beads", b: "Beads", c: "Beads", stiffness: "Numbers | None" = None, angle: "Numbers | None" = None
    ) -> np.ndarray:
        """Add angles, as `Links.add`."""
        return self._add((a, b, c), stiffness=stiffness, angle=angle)

    def move(self, ids: "Ids", a: "Beads | None" = None, b: "Beads | None" = None, c: "Beads | None" = None) -> None:
        """Move sites of angles, as `Links.move`."""
        self._move(ids, (a, b, c))


class DirectionLinks(_Angles):
    r"""Angles between two directions, which may be added, removed and moved while a simulation runs.

    .. math:: U = \sum_t k_t \bigl(1 - \cos(\theta_t - \theta_{0t})\bigr)

    with the angle θ, from 0 to π, between the direction from site a to b and that from c to d: of a link of one
    filament and a link of another, where a crosslinker holds them at an angle.

    Parameters
    ----------
    a, b, c, d : Sites, handle, list of handles, or (n,) int
        The four sites of each term, as many of each; 0 are allowed. The two directions may share sites.
    stiffness : float or (n,) float, pN nm, >= 0
        The k of the energy.
    angle : float or (n,) float, radians, >= 0 and <= π
        θ0: 0 for parallel, π for antiparallel directions.
    name, group
        See `Force`.

    Raises
    ------
    TopologyError
        Sites of different number, a the same bead as b or c as d, handles of different topologies, or (when bound) a
        bead that does not exist.
    ParameterError
        A number outside its domain.

    Notes
    -----
    As of `AngleLinks`, which has this term with the directions from b to a and from b to c. Only directions matter, not
    places: the force is a pair of couples.

    Examples
    --------
    >>> import medyanpy as mp
    >>> topology = mp.Topology()
    >>> nodes = [[0.0, 0, 0], [27.0, 0, 0]], [[0.0, 5, 0], [0.0, 32, 0]]
    >>> actin = topology.add_filaments(nodes, node_mass=4e-12)
    >>> start, end = (actin.sites([0, 1], 0, fraction) for fraction in (0.0, 1.0))
    >>> system = mp.System(topology)
    >>> bundle = system.add_force(mp.forces.DirectionLinks(start[0], end[0], start[1], end[1], 40.0, angle=0.0))
    >>> mp.Context(system, mp.VerletIntegrator(1e-9)).get_state(energy=True).potential_energy
    40.0
    """

    stiffness: float | np.ndarray
    angle: float | np.ndarray
    ends: ClassVar[tuple[str, ...]] = ("a", "b", "c", "d")
    directions: ClassVar[tuple[tuple[int, int], tuple[int, int]]] = ((0, 1), (2, 3))
    apart: ClassVar[tuple[tuple[int, int], ...]] = ((0, 1), (2, 3))

    def __init__(
        self,
        a: "Beads",
        b: "Beads",
        c: "Beads",
        d: "Beads",
        stiffness: "Numbers",
        angle: "Numbers",
        *,
        name: str | None = None,
        group: int = 0,
        _ids: Any = None,
        _next_id: int | None = None,
    ) -> None:
        super().__init__((a, b, c, d), {"stiffness": stiffness, "angle": angle}, _ids, _next_id, name=name, group=group)

    @property
    def c(self) -> Sites:
        """The third site of each term."""
        return self._sites[2]

    @property
    def d(self) -> Sites:
        """The fourth site of each term."""
        return self._sites[3]

    def add(
        self,
        a: "Beads",
        b: "Beads",
        c: "Beads",
        d: "Beads",
        stiffness: "Numbers | None" = None,
        angle: "Numbers | None" = None,
    ) -> np.ndarray:
        """Add terms, as `Links.add`."""
        return self._add((a, b, c, d), stiffness=stiffness, angle=angle)

    def move(
        self,
        ids: "Ids",
        a: "Beads | None" = None,
        b: "Beads | None" = None,
        c: "Beads | None" = None,
        d: "Beads | None" = None,
    ) -> None:
        """Move sites of terms, as `Links.move`."""
        self._move(ids, (a, b, c, d))


class NormalLinks(_SiteTerms):
    r"""Energies that hold directions to the normal of a membrane: proteins that stand upright in it, filaments on it.

    .. math:: U = \sum_t k_t (1 - \cos\theta_t) \approx \sum_t \tfrac12 k_t \theta_t^2

    with the angle θ between the direction from site a to site b and the normal at an in-triangle point; 0 where the
    direction leads to the side that normals point to.

    Parameters
    ----------
    a, b : Sites, handle, list of handles, or (n,) int
        Ends of the directions, such as ``bodies.sites([[0, 0, -2.0]])`` and ``bodies.sites([[0, 0, 2.0]])``.
    point : handle or (n,) int
        In-triangle points with the normals: one for each direction.
    stiffness : float or (n,) float, pN nm, >= 0
        k, per square of radians for small angles.
    name, group
        See `Force`.

    Raises
    ------
    TopologyError
        Ends of different number, a bead that is not an in-triangle point, a the same bead as b, handles of different
        topologies, or (when bound) a bead that does not exist.
    ParameterError
        A number outside its domain.

    Notes
    -----
    The normal at a point with the weights λ (``normals`` of in-triangle points, where they start) is that of
    :math:`\sum_i \lambda_i G_i` over the corners of its triangle; G sums the area vectors of the triangles round a
    vertex. It is continuous over the whole membrane, with a kink at edges, as the energy is; the normal of the triangle
    itself would jump there. Turned about the normal, and moved along or away from the membrane, directions are free:
    `Links` of length 0 between a site and the point keep them in place.

    The forces are exact derivatives: a couple turns the direction, its opposite turns the triangles round the three
    corners, and the point moves towards a normal along the direction: `ṗ_λ = -∂U/∂λ`. Momentum and angular momentum are
    kept where no site is an anchor. A direction without length, and a point whose triangles have area vectors that
    cancel, have the energy k and no force. Second derivatives are not offered. Cost: 3 µs a term, on one thread.

    Each term has a number, as each of `Links` has.

    Examples
    --------
    >>> import medyanpy as mp
    >>> topology = mp.Topology()
    >>> sheet = topology.add_membrane(mp.TriangleMesh.flat_sheet(4, 4, 10.0), vertex_mass=1.0)
    >>> foot = topology.add_intriangle_points(sheet, triangles=[8], barycentric=[[0.2, 0.3, 0.5]], mass=1.0)
    >>> tilted = [[0.6, 0.8, 0, 0]]
    >>> body = topology.add_rigid_bodies([[20.0, 20, 0]], tilted, mass=1.0, inertia=(1, 1, 1))
    >>> system = mp.System(topology)
    >>> ends = body.sites([[0.0, 0, 0]]), body.sites([[0.0, 0, 1]])
    >>> system.add_force(mp.forces.NormalLinks(*ends, foot, stiffness=100.0))
    NormalLinks(1: stiffness=100)
    >>> energy = mp.Context(system, mp.VerletIntegrator(1e-3)).get_state(energy=True).potential_energy
    >>> print(f"{energy:.6f}")                              # the third axis has the z component 1 - 2 * 0.8²
    128.000000
    """

    domains: Mapping[str, Domain] = domain_table(stiffness=Domain("pN nm", at_least=0.0, per="ids"))
    stiffness: float | np.ndarray
    ends: ClassVar[tuple[str, ...]] = ("a", "b", "point")
    apart: ClassVar[tuple[tuple[int, int], ...]] = ((0, 1),)
    noun = "direction"

    def __init__(
        self,
        a: "Beads",
        b: "Beads",
        point: "Beads",
        stiffness: "Numbers",
        *,
        name: str | None = None,
        group: int = 0,
        _ids: Any = None,
        _next_id: int | None = None,
    ) -> None:
        super().__init__((a, b, point), {"stiffness": stiffness}, _ids, _next_id, name=name, group=group)

    @property
    def point(self) -> Sites:
        """The in-triangle point of each term."""
        return self._sites[2]

    def add(self, a: "Beads", b: "Beads", point: "Beads", stiffness: "Numbers | None" = None) -> np.ndarray:
        """Add terms, as `Links.add`."""
        return self._add((a, b, point), stiffness=stiffness)

    def move(
        self, ids: "Ids", a: "Beads | None" = None, b: "Beads | None" = None, point: "Beads | None" = None
    ) -> None:
        """Move sites of terms, as `Links.move`."""
        self._move(ids, (a, b, point))

    def _checked_ends(self, ends: Any, ids: Any = None, n: int | None = None) -> tuple[Sites, ...]:
        sites = super()._checked_ends(ends, ids, n)
        self._expect_points(sites[2], sites[2].handles)
        for handle in sites[2].handles:
            warn_inside_out(self.name, cast(InTrianglePoints, handle).membrane, 1.0, "normals point into it")
        return sites

    def _expect_points(self, points: Sites, handles: Any) -> None:
        beads = points.single_beads
        known = [handle for handle in handles if not isinstance(handle, InTrianglePoints)]
        wrong = beads < 0
        for handle in known:
            wrong |= np.isin(beads, handle.beads)
        if wrong.any():
            t = int(np.argmax(wrong))
            what = "a site that is not a single bead" if beads[t] < 0 else f"bead {beads[t]}"
            raise TopologyError(f"{self.name}: the normal of {self.noun} {t} is asked at {what}, no in-triangle point")

    def squared_frequencies(self, start: Start) -> np.ndarray | None:
        a, b, points = self._ends_in(start)
        self._expect_points(points, start.topology.handles)
        length = np.linalg.norm(displacement(start.site_positions(a), start.site_positions(b), start.box), axis=1)
        over = np.divide(1.0, length, out=np.zeros(len(self)), where=length > 0.0)
        turning = (start.sites(a) + start.sites(b)).times(over) + self._normals(start, points.single_beads)
        return start.springs(turning, self._numbers["stiffness"])

    def _normals(self, start: Start, beads: np.ndarray) -> Coordinates:
        """Bound the turn of each point's normal per displacement of each vertex and of the point, 1/nm."""
        term, row, size = [np.empty(0, int)], [np.empty(0, int)], [np.empty(0)]
        for handle in start.topology.point_handles:
            number = np.full(start.n, -1)
            number[handle.beads] = np.arange(len(handle))
            own = np.flatnonzero(number[beads] >= 0)
            mesh, at = handle.membrane.mesh, number[beads[own]]
            triangles, weights = handle.triangles[at], handle.barycentric[at]
            vectors = 2.0 * handle.area_vectors()[at]
            places = corners_of(mesh.vertices, mesh.faces, mesh._lengths)
            edges = np.roll(places, 1, axis=1) - np.roll(places, -1, axis=1)
            lengths = np.linalg.norm(edges, axis=2)
            offsets, ring = mesh.vertex_faces
            for t, triangle, weight, sums in zip(own, triangles, weights, vectors, strict=True):
                whole = np.linalg.norm(weight @ sums)
                if whole == 0.0:
                    continue
                for v, w in zip(mesh.faces[triangle], weight, strict=True):
                    faces = ring[offsets[v] : offsets[v + 1]] // 3
                    row.append(handle.membrane.beads[mesh.faces[faces].ravel()])
                    size.append(w * lengths[faces].ravel() / whole)
                    term.append(np.full(len(row[-1]), t))
                # Moved in its triangle: by the difference of normals over the least height.
                spread = np.linalg.norm(sums - np.roll(sums, 1, axis=0), axis=1).max()
                side, area = lengths[triangle], mesh.face_areas[triangle]
                row.append(beads[[t]])
                size.append(np.array([spread / whole * side.max() / (2.0 * area)]))
                term.append(np.array([t]))
        return Coordinates(len(beads), *(np.concatenate(part) for part in (term, row, size)))

    def _operation(self, layout: "Layout") -> Operation:
        self._expect_points(self._sites[2], layout.topology.handles)
        places = layout.internal(self._sites[2].single_beads).astype(np.int32)
        stiffness = np.ascontiguousarray(self._numbers["stiffness"])
        return NormalLinksOperation(
            self.name, self._table(layout), layout.triangulation.triangles, places, stiffness
        )


def _frozen(a: np.ndarray) -> np.ndarray:
    a.flags.writeable = False
    return a
