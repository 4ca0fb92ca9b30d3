"""Filaments: chains and rings of beads with links of constant length, with or without material directions."""

from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np

from medyanpy._tools.types import Numbers
from medyanpy._tools.validation import one_or_many
from medyanpy.beads.adding import chains_of, joined
from medyanpy.beads.chains import Chains, ChainsKind
from medyanpy.beads.constraint_rows import solved
from medyanpy.beads.directors import Directors
from medyanpy.beads.filament_constraints import AlongAcrossFlow, FilamentFlow, filament_rows
from medyanpy.beads.free import Beads, BeadsKind
from medyanpy.beads.lattice import Lattice, lattice_of
from medyanpy.core.columns import CAPS, MATERIAL, SUBUNITS, Column
from medyanpy.core.flows import Flow
from medyanpy.core.handles import Handle
from medyanpy.core.sites import Sites
from medyanpy.errors import ParameterError, SimulationError, TopologyError

if TYPE_CHECKING:
    from medyanpy.beads.constraint_rows import Rows
    from medyanpy.core.layout import Layout
    from medyanpy.state import State
    from medyanpy.topology import Topology


class FilamentsKind(ChainsKind, BeadsKind):
    """Nodes of filaments.

    Attributes
    ----------
    tolerance : float
        Relative tolerance of the lengths of links.
    """

    handle: "Filaments"
    name = "filament nodes"
    chain = "filament"
    per_bead: tuple[str, ...] = (*BeadsKind.per_bead, "friction_along")
    per_link: tuple[str, ...] = ("link_lengths",)
    takes_constraints = True

    @property
    def tolerance(self) -> float:
        return self.handle._tolerance

    @property
    def obstacle_to_constraints(self) -> str:
        if self.handle._rise is not None:
            return "whose links change their lengths as they grow: leave out rise=, and constraints can join them"
        return super().obstacle_to_constraints

    @property
    def full(self) -> str:
        if self.handle._rise is None:
            return super().full
        return "the room of a filament ends here. Give more: capacity_links= or capacity_filaments="

    def start_of(self, column: Column) -> np.ndarray:
        if column not in (SUBUNITS, CAPS, MATERIAL):
            return super().start_of(column)
        out = np.zeros(len(self.handle), np.int32)
        if column is SUBUNITS:
            out[self.handle.links[:, 0]] = self.subunits
        elif column is MATERIAL:
            out[self.handle.links[:, 1]] = self.subunits
            out = np.cumsum(out, dtype=np.int32)
            out -= np.repeat(out[self.handle.starts[:-1]], np.diff(self.handle.starts))
        return out

    @property
    def subunits(self) -> np.ndarray:
        """Subunits of all links at the start, (l,) int, of filaments that grow."""
        out: np.ndarray = (self.handle.link_lengths / cast(float, self.handle._rise)).round().astype(np.int64)
        return out

    def subunits_of_links(self, state: "State") -> np.ndarray:
        """Return the numbers of subunits of all links in a state, (l,) int, filament after filament.

        Raises
        ------
        TopologyError
            Filaments without subunits: they were added without ``rise=``.
        """
        if self.handle._rise is None:
            raise TopologyError(f"{self.handle.name}: these filaments have no subunits: add them with rise=, nm")
        column, slots = state.column(SUBUNITS.name), self.slots
        found: np.ndarray = column[self.handle.beads[self.handle.links[:, 0]] if slots is None else slots.ravel()]
        return found[found > 0].astype(np.int64)

    def ends_of(self, state: "State") -> np.ndarray:
        """Return rows of the first and the last node of each filament in a state, (f, 2)."""
        slots = self.slots
        if slots is None:
            ends: np.ndarray = np.column_stack([self.handle.starts[:-1], self.handle.starts[1:] - 1])
            rows: np.ndarray = self.handle.beads[ends]
            return rows
        there = state.column(SUBUNITS.name)[slots] > 0
        # Behind the last link is the last node; without a filament any two rows will do.
        last = there.shape[1] - np.argmax(there[:, ::-1], axis=1) - ~there.any(axis=1)
        return np.column_stack([slots[np.arange(len(slots)), at] for at in (np.argmax(there, axis=1), last)])

    def caps_of(self, state: "State") -> np.ndarray:
        """Return what caps the first and the last node of each filament in a state, (f, 2) int: 0 nothing, else the
        number of a `jumps.Capping` among those of these filaments, from 1 on; -1 without a filament."""
        out: np.ndarray = state.column(CAPS.name)[self.ends_of(state)].astype(np.int64)
        return out

    def links_of(self, state: "State") -> np.ndarray:
        """Return how many links each filament has in a state, (f,) int."""
        slots = self.slots
        if slots is None:
            return np.diff(self.link_starts)
        out: np.ndarray = np.count_nonzero(state.column(SUBUNITS.name)[slots] > 0, axis=1)
        return out

    @property
    def slots(self) -> np.ndarray | None:
        """Rows (f, l + 1) that the nodes of each filament may have, in the order in which links join them; None where
        nodes do not come and go."""
        if self.handle._capacity_links is None:
            return None
        return self.all_rows.reshape(-1, self.handle._capacity_links + 1)

    @property
    def node_rows(self) -> np.ndarray:
        """Rows (f, n) that the nodes of each filament may have, as `slots`, or that they have, -1 beyond."""
        if (slots := self.slots) is None:
            n = np.diff(self.handle.starts)
            slots = np.full((len(n), n.max(initial=1)), -1)
            slots[np.arange(slots.shape[1]) < n[:, None]] = self.handle.beads
        return slots

    @property
    def n_room(self) -> int:
        """Most filaments that there may be."""
        slots = self.slots
        return self.n_chains if slots is None else len(slots)

    def degrees_of_freedom_of(self, n: int, columns: dict[Column, np.ndarray]) -> int:
        return 3 * n - int(np.count_nonzero(columns[SUBUNITS] > 0))

    def describe(self, bead: int) -> str:
        slots = self.slots
        if slots is None:
            return super().describe(bead)
        return f"a node of {self.chain} {int(np.argmax((slots == bead).any(axis=1)))}"

    def beside_one(self) -> dict[str, Any]:
        return {"mass": (np.full(1, self.of_all("mass")), "pN s+2 nm-1")}

    def created(self, columns: dict[Column, np.ndarray]) -> "Filaments":
        raise TopologyError(
            f"edit: nodes of {self.handle.name!r} have come or gone, and filaments with capacity_links= cannot be "
            "edited after that"
        )

    def expect_rows(self, what: str, rows: np.ndarray, given: dict[Column, np.ndarray]) -> None:
        if SUBUNITS not in given or not len(rows):
            return
        slots = self.node_rows
        at = np.searchsorted(rows, slots)
        there = np.isin(slots, rows)
        at = np.where(there, at, 0)
        subunits, caps = (np.where(there, given[column][at], 0) for column in (SUBUNITS, CAPS))
        leads = there & np.pad(there[:, 1:], ((0, 0), (0, 1)))
        alone = there & ~leads & ~np.pad(there[:, :-1], ((0, 0), (1, 0)))
        begins = there & ~np.pad(there[:, :-1], ((0, 0), (1, 0)))
        for bad, why in (
            (np.where(leads, subunits < 1, subunits != 0) & there,
             "has {n} subunits in the link that leads on from it, but a link has 1 or more, and the last node 0"),
            (alone | (begins & (np.cumsum(begins, axis=1) > 1)), "is apart from the other nodes of its filament"),
            ((caps < 0) | ((caps != 0) & leads & ~begins),
             "has {c} in caps, but must have 0, or, of an end that is capped, the number of the jump, from 1 on"),
        ):  # fmt: skip
            if bad.any():
                where = tuple(np.argwhere(bad)[0])
                why = why.format(n=subunits[where], c=caps[where])
                raise TopologyError(f"{what}: row {slots[where]}, {self.describe(int(slots[where]))}, {why}")

    def demand_box(self, layout: "Layout") -> None:
        layout.expect_lengths(repr(self.handle.name), "link", self.handle.link_lengths)

    @property
    def joints(self) -> np.ndarray:
        """Nodes (J,) between two links: of rings all, else all but the ends."""
        nodes, starts = np.arange(len(self.handle)), self.handle.starts
        return nodes if self.handle.closed else np.delete(nodes, np.r_[starts[:-1], starts[1:] - 1])

    @property
    def links_at_joints(self) -> tuple[np.ndarray, np.ndarray]:
        """Links before and after each joint, (J,) and (J,)."""
        joints = self.joints
        which = self.node_chains[joints]
        if not self.handle.closed:
            # Each filament before has one link less than nodes.
            return joints - which - 1, joints - which
        first = joints == self.handle.starts[which]
        return np.where(first, self.handle.starts[which + 1], joints) - 1, joints

    @property
    def fixed_beads(self) -> np.ndarray:
        out = np.zeros(len(self.handle), bool)
        out[self.handle.fixed_nodes] = True
        return out

    def constraint_rows(self) -> "list[Rows]":
        return filament_rows(self.handle) if self.handle.constrained else []

    def multipliers(self, positions: np.ndarray, velocities: np.ndarray, forces: np.ndarray) -> np.ndarray | None:
        # With directors there are more constraints than those of links, and other beads take part.
        if not self.handle.constrained or self.handle.directors is not None or not len(self.handle):
            return None
        from scipy import sparse
        from scipy.sparse import linalg

        first, second = self.handle.links.T
        d = positions[second] - positions[first]
        links = np.repeat(np.arange(len(d)), 3)
        place = [(3 * node[:, None] + np.arange(3)).ravel() for node in (first, second)]
        n = positions.size
        # g = |d|^2 - L^2 of every link; d^2g/dt^2 = 0.
        gradient = sum(
            sparse.coo_array((sign * 2.0 * d.ravel(), (links, where)), shape=(len(d), n))
            for sign, where in zip((-1.0, 1.0), place, strict=True)
        )
        weight = np.repeat(np.where(self.fixed_beads, 0.0, 1.0 / self.handle.mass), 3)
        bends = 2.0 * np.sum((velocities[second] - velocities[first]) ** 2, axis=1)
        right = gradient @ (weight * forces.ravel()) + bends
        try:
            factors = linalg.splu((gradient @ sparse.diags_array(weight) @ gradient.T).tocsc())
            pivots = np.abs(factors.U.diagonal())
            if pivots.min() > 1e-13 * pivots.max():
                solved: np.ndarray = factors.solve(right)
                return solved
        except RuntimeError:
            # Exactly singular.
            pass
        raise SimulationError(
            f"{self.handle!r}: the multipliers of its links are not determined: a filament is taut between fixed nodes",
            object=self.handle.name,
        )

    def multipliers_among(self, positions: np.ndarray, velocities: np.ndarray, forces: np.ndarray) -> np.ndarray | None:
        rows = self.constraint_rows()
        if len(rows) < 2:
            return super().multipliers_among(positions, velocities, forces)
        parts = [(one, np.arange(len(one.beads))) for one in rows]
        return np.stack(solved(self.handle, parts, positions, velocities, forces), axis=-1)

    def bind(self, layout: "Layout") -> Flow | None:
        if not len(self.handle) and self.handle._capacity_links is None:
            return None
        if self.handle.friction_along is not None:
            return AlongAcrossFlow(self.handle, layout)
        return FilamentFlow(self.handle, layout) if self.handle.constrained else None

    @property
    def has_friction(self) -> bool:
        along = self.handle.friction_along
        return super().has_friction or (along is not None and bool(along.any()))


class Filaments(Chains, Beads, kind=FilamentsKind):
    """The nodes of filaments: chains or rings of beads, one filament after another.

    Attributes
    ----------
    starts : (f + 1,) int array
        Where the nodes of each filament start, among the handle's nodes.
    closed : bool
        True for rings: then a link joins the last node to the first.
    constrained : bool
        True if links keep their lengths.
    link_lengths : (l,) float array, nm
        Of all links, filament after filament; the last of a ring leads back to its first node.
    fixed_nodes : (k,) int array
        Nodes that do not move, among the handle's nodes.
    friction_along : (n,) float array or None, pN s/nm
        Along the filament, where it differs from `friction` across it.
    directors : Directors or None
        The material directions of the links, where the filaments are twistable.
    """

    kind: FilamentsKind
    _added_by = "add_filaments"
    directors: "Directors | None" = None

    def __init__(
        self, topology: "Topology", name: str, first: int, positions: np.ndarray, mass: np.ndarray,
        friction: np.ndarray, starts: np.ndarray, closed: bool, constrained: bool, link_lengths: np.ndarray,
        fixed_nodes: np.ndarray, tolerance: float,
    ) -> None:  # fmt: skip
        super().__init__(topology, name, first, positions, mass, friction)
        self.starts = starts
        self.closed = closed
        self.constrained = constrained
        self.link_lengths = link_lengths
        self.fixed_nodes = fixed_nodes
        self._tolerance = tolerance
        self.friction_along: np.ndarray | None = None
        self._rise: float | None = None
        self._capacity_links: int | None = None

    def _chains_of_links(self, state: "State") -> np.ndarray:
        return np.repeat(np.arange(self.kind.n_room), self.kind.links_of(state))

    def add(  # type: ignore[override]
        self,
        nodes: Numbers,
        node_mass: Numbers | None = None,
        node_friction: Numbers | None = None,
        directors: Numbers | None = None,
        *,
        starts: Numbers | None = None,
        director_mass: Numbers | None = None,
        director_friction: Numbers | None = None,
        node_friction_along: Numbers | None = None,
        link_lengths: Numbers | None = None,
        fixed_nodes: Numbers = (),
        constrained: bool | None = None,
        closed: bool | None = None,
    ) -> np.ndarray:
        """Add filaments to these: to a running simulation inside ``with topology.edit():``.

        They are constrained, closed and twistable as the present ones. Forces that name the handle act on them too;
        where such a force has a number for each joint or link, give it those of the new ones with ``force.set`` inside
        the block.

        Parameters
        ----------
        nodes : (n, 3) float, or list of (n_i, 3) float, nm
            Of one filament; or of each of several, or of all together with `starts`.
        directors
            As of `Topology.add_filaments`; of twistable filaments without twist where none are given.
        node_mass, node_friction, node_friction_along, director_mass, director_friction : optional
            As of `Topology.add_filaments`; by default those of the present nodes and links, which must then have the
            same.
        starts, link_lengths, fixed_nodes
            As of `Topology.add_filaments`, of the new filaments alone.
        constrained, closed : bool, optional
            As of the present ones: for ``add(**actin.arguments(...))``.

        Returns
        -------
        (k,) int array
            The numbers of the new filaments within the handle; they come last. ``filaments.beads`` has the rows of
            their nodes from ``filaments.starts[k]`` on.

        Raises
        ------
        TopologyError, ParameterError
            As `Topology.add_filaments`; a topology in use outside of an edit.
        """
        from medyanpy.beads.adding_filaments import FilamentSpec, expect_nodes

        what = f"{self.name}.add"
        self.topology._refuse_if_in_use(what)
        if self._why_whole():
            raise TopologyError(f"{what}: {self._why_whole()}")
        for name, given, own in (
            ("constrained", constrained, self.constrained), ("closed", closed, self.closed),
        ):  # fmt: skip
            if given is not None and bool(given) != own:
                raise ParameterError(f"{what}: {name} = {given}, but those of {self.name!r} have {name} = {own}")
        if starts is None and isinstance(nodes, np.ndarray | list | tuple) and len(nodes) and np.ndim(nodes[0]) == 1:
            nodes = [nodes]
        x, starts = chains_of(what, nodes, starts)
        turning, along_links = self.directors, None
        if turning is not None:
            along_links = "parallel" if directors is None else joined(f"{what}: directors", directors, 3)
            director_mass = turning._number_for(what, "mass", director_mass, "director_")
            director_friction = turning._number_for(what, "friction", director_friction, "director_")
        elif directors is not None:
            raise TopologyError(f"{what}: directors are given, but the filaments of {self.name!r} have none")
        if isinstance(node_friction, tuple):
            node_friction_along, node_friction = node_friction
        if self.friction_along is not None:
            node_friction_along = self._number_for(what, "friction_along", node_friction_along, "node_")
        elif node_friction_along is not None:
            raise ParameterError(f"{what}: the nodes of {self.name!r} have one friction, along and across")
        spec = FilamentSpec(
            what, x, starts, self._number_for(what, "mass", node_mass, "node_"),
            self._number_for(what, "friction", node_friction, "node_"), node_friction_along,
            constrained=self.constrained, closed=self.closed, link_lengths=link_lengths,
            fixed=expect_nodes(what, fixed_nodes, len(x), 0), tolerance=self._tolerance, directors=along_links,
            director_mass=director_mass, director_friction=director_friction, rise=self._rise,
        )  # fmt: skip
        other, its_directors = spec.make(self.topology)
        new = np.arange(self.kind.n_chains, self.kind.n_chains + other.kind.n_chains)
        self.topology._grow(self, other)
        if turning is not None and its_directors is not None:
            self.topology._grow(turning, Directors(self, turning.name, 0, *its_directors))
        return new

    def _why_whole(self) -> str:
        if self._capacity_links is None:
            return ""
        return "filaments with capacity_links= have rows in an order that edits do not keep: add a handle of others"

    def remove(self, which: Numbers, *, terms: Literal["refuse", "remove"] = "refuse") -> None:  # type: ignore[override]
        if self._why_whole():
            raise TopologyError(f"{self.name}.remove: {self._why_whole()}")
        super().remove(which, terms=terms)

    def reserve(self, capacity: int) -> None:
        if self._why_whole():
            raise TopologyError(f"{self.name}.reserve: {self._why_whole()}")
        super().reserve(capacity)
        if self.directors is not None and self.directors.capacity < self.capacity:
            self.topology._reserve(f"{self.name}.reserve", self.directors, self.capacity)

    def _kept_of(self, chains: np.ndarray) -> dict[Handle, np.ndarray]:
        kept = super()._kept_of(chains)
        return kept if self.directors is None else {**kept, self.directors: chains[self.kind.link_chains]}

    def _merged(self, other: Handle) -> dict[str, Any]:
        fixed = np.append(self.fixed_nodes, len(self) + cast(Any, other).fixed_nodes)
        return {**super()._merged(other), "fixed_nodes": fixed}

    def _chosen(self, keep: np.ndarray) -> dict[str, Any]:
        fixed = np.zeros(len(self), bool)
        fixed[self.fixed_nodes] = True
        return {**super()._chosen(keep), "fixed_nodes": np.flatnonzero(fixed[keep])}

    @property
    def degrees_of_freedom(self) -> int:
        """Degrees of freedom, directors included, since constraints join the two."""
        free = 3 * (len(self) - len(self.fixed_nodes))
        if self.directors is not None:
            # Three each, less unit length and right angle.
            free += len(self.directors)
        return free - len(self.link_lengths) if self.constrained else free

    def sites(self, filament: Numbers, link: Numbers, fraction: Numbers = 0.5) -> Sites:
        """Return places on links, as links and other forces between sites take them.

        Parameters
        ----------
        filament : int or (n,) int
            Counted from 0 within the handle.
        link : int or (n,) int
            Counted from 0 within the filament; the last of a ring leads back to its first node.
        fraction : float or (n,) float, 0 to 1
            0 is the node at which the link starts, 1 the one at which it ends.

        Returns
        -------
        Sites
            n weighted means of two nodes; 1 where all three are scalars.

        Raises
        ------
        TopologyError
            No such filament or link, or arrays of different length.
        ParameterError
            A fraction outside [0, 1].

        Examples
        --------
        >>> import medyanpy as mp
        >>> topology = mp.Topology()
        >>> actin = topology.add_filament([[0.0, 0, 0], [27.0, 0, 0], [54.0, 0, 0]], node_mass=4e-12)
        >>> actin.sites(0, [0, 1], [0.5, 1.0])
        Sites(2: 2 weighted)
        >>> actin.sites_along(0, 40.5).weights.tolist()
        [0.5, 0.5]
        """
        what = f"sites of {self.name!r}"
        filament, link, fraction = self._together(what, filament=filament, link=link, fraction=fraction)
        counts = np.diff(self.kind.link_starts)
        bad = (link < 0) | (link >= counts[filament])
        if bad.any():
            i = int(np.argmax(bad))
            raise TopologyError(
                f"{what}: link[{i}] = {link[i]}, but filament {filament[i]} has links 0 to {counts[filament[i]] - 1}"
            )
        bad = ~((fraction >= 0.0) & (fraction <= 1.0))
        if bad.any():
            i = int(np.argmax(bad))
            raise ParameterError(
                f"{what}: fraction[{i}] = {fraction[i]} on link {link[i]} of filament {filament[i]}, "
                "but must be from 0 to 1"
            )
        return self._on_links(self.kind.link_starts[filament] + link, fraction)

    def sites_along(self, filament: Numbers, distance: Numbers) -> Sites:
        """Return places at distances along filaments from their first nodes, by the lengths of links at rest.

        Parameters
        ----------
        filament : int or (n,) int
            Counted from 0 within the handle.
        distance : float or (n,) float, nm, 0 to the length of the filament

        Returns
        -------
        Sites
            As of `sites`.

        Raises
        ------
        TopologyError
            No such filament, or arrays of different length.
        ParameterError
            A distance outside the filament.
        """
        what = f"sites of {self.name!r}"
        filament, distance = self._together(what, filament=filament, distance=distance)
        end = np.concatenate([[0.0], np.cumsum(self.link_lengths)])
        first, last = self.kind.link_starts[filament], self.kind.link_starts[filament + 1]
        length = end[last] - end[first]
        bad = ~((distance >= 0.0) & (distance <= length * (1.0 + 1e-12)))
        if bad.any():
            i = int(np.argmax(bad))
            raise ParameterError(
                f"{what}: distance[{i}] = {distance[i]} nm, but must be from 0 to the length of filament "
                f"{filament[i]}, {length[i]:g} nm"
            )
        along = end[first] + distance
        link = np.clip(np.searchsorted(end, along, side="right") - 1, first, last - 1)
        return self._on_links(link, np.clip((along - end[link]) / self.link_lengths[link], 0.0, 1.0))

    def lattice(
        self, spacing: float, *, at_end: Literal["block", "unbind"] = "block", most_subunits: int | None = None
    ) -> Lattice:
        """Return places at equal distances along all filaments, from their first nodes on.

        A filament that grows has those from end to end. They keep their numbers and what is held there as it grows,
        shrinks, gets and loses nodes, or is cut.

        Parameters
        ----------
        spacing : float, nm, > 0
            From each place to the next, along links at rest: 2.7 for the subunits of actin, 8 for those of a
            protofilament of a microtubule. On filaments that grow, a multiple of the rise.
        at_end : str
            Of filaments that grow: ``"block"``, ends do not leave places that are held, in balance; ``"unbind"``, they
            let go what is held there, so that growth is driven. Filaments dissolve only where nothing is held.
        most_subunits : int, optional
            There are places for so many of a filament that grows; by default for what `jumps.Polymerization` allows.

        Returns
        -------
        Lattice
            Sites of all filaments, one after another.

        Raises
        ------
        ParameterError
            A spacing not > 0, longer than a filament, or not a multiple of the rise; too few `most_subunits`.
        TopologyError
            Rings.
        """
        return lattice_of(self, spacing, at_end, most_subunits)

    def _together(self, what: str, **given: Any) -> list[np.ndarray]:
        """Return one-dimensional arrays of equal length, the first of which numbers filaments that exist."""
        arrays = []
        for key, value in given.items():
            dtype, error = (np.int64, TopologyError) if key in ("filament", "link") else (np.float64, ParameterError)
            arrays.append(one_or_many(f"{what}: {key}", value, dtype=dtype, error=error))
        lengths = {len(a) for a, v in zip(arrays, given.values(), strict=True) if np.ndim(v)}
        n = min(lengths, default=1)
        if len(lengths) > 1:
            sizes = ", ".join(f"{key}: {len(a)}" for key, a in zip(given, arrays, strict=True))
            raise TopologyError(f"{what}: give numbers, or arrays of equal length, not {sizes}")
        arrays = [np.broadcast_to(a, (n,)) for a in arrays]
        bad = (arrays[0] < 0) | (arrays[0] >= self.kind.n_chains)
        if bad.any():
            i = int(np.argmax(bad))
            raise TopologyError(
                f"{what}: filament[{i}] = {arrays[0][i]}, but there are filaments 0 to {self.kind.n_chains - 1}"
            )
        return arrays

    def _on_links(self, link: np.ndarray, fraction: np.ndarray) -> Sites:
        """Return sites at fractions of links that are numbered through all filaments."""
        nodes = self.beads[self.links[link]]
        weights = np.column_stack([1.0 - fraction, fraction])
        start = 2 * np.arange(len(link) + 1)
        return Sites.from_arrays(start, nodes.ravel(), weights.ravel(), np.empty((0, 3)), handles=(self,))

    def _growth_now(self) -> dict[str, Any]:
        """Return the arguments of an adder for growth and room."""
        if self._rise is None:
            return self._room_now()
        if self._capacity_links is None:
            return {"rise": self._rise, **self._room_now()}
        room = {"capacity_links": self._capacity_links, "capacity_filaments": self.kind.n_room}
        return {"rise": self._rise, **room}

    def _arguments_now(self) -> dict[str, Any]:
        d, own = self.directors, self._numbers_now("mass", "friction", "friction_along")
        twistable = {} if d is None else {
            "directors": d.positions, **{f"director_{k}": v for k, v in d._numbers_now("mass", "friction").items()},
        }  # fmt: skip
        return {
            "nodes": self.positions, "starts": self.starts, "node_mass": own["mass"], "node_friction": own["friction"],
            "node_friction_along": own["friction_along"], "constrained": self.constrained, "closed": self.closed,
            "link_lengths": self.link_lengths, "fixed_nodes": self.fixed_nodes, "tolerance": self._tolerance,
            "name": self.name, **twistable, **self._growth_now(),
        }  # fmt: skip


class GrowingFilaments(Filaments, kind=FilamentsKind):
    """The nodes of filaments whose links have subunits, so that their ends may grow and shrink.

    Attributes
    ----------
    rise : float, nm
        Length of a subunit; `link_lengths` are those at the start.
    capacity_links : int or None
        Room for links of each filament, where nodes come and go; `starts` and `links` are those at the start.
    """

    _added_by = "add_filaments"

    @property
    def rise(self) -> float:
        return cast(float, self._rise)

    @property
    def capacity_links(self) -> int | None:
        return self._capacity_links

    def subunits(self, state: "State") -> np.ndarray:
        """Return how many subunits each filament has in a state, (f,) int; f with those that there is room for."""
        own = self.kind.subunits_of_links(state)
        return np.bincount(self._chains_of_links(state), own, self.kind.n_room).astype(np.int64)

    def lengths(self, state: "State") -> np.ndarray:
        """Return the length of each filament in a state, (f,) nm: of its links, as constraints hold them."""
        own = self.rise * self.kind.subunits_of_links(state)
        return np.bincount(self._chains_of_links(state), own, self.kind.n_room)

    def ages(self, state: "State") -> np.ndarray:
        """Return how many subunits of each filament are in each state of `jumps.Ageing` in a State, (f, s) int.

        Names of the s states are ``state.jumps[name]["names"]``, with the name of the jump.

        Raises
        ------
        TopologyError
            A State of a system without jumps.Ageing of these filaments.
        """
        own = next((one for one in state.jumps.values() if one.get("filaments") == self.name and "names" in one), None)
        if own is None:
            raise TopologyError(f"{self.name}.ages: the state is of a system without jumps.Ageing of {self.name!r}")
        return np.stack([np.count_nonzero(own["states"] == k, axis=1) for k in range(len(own["names"]))], axis=1)
