"""Constraints that share beads and are solved together: their rows, components, and order of elimination."""

import bisect
import heapq
import itertools
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from medyanpy._kernels.selected import drift, joint_constraints
from medyanpy.beads.constraint_rows import INDEPENDENT, Bodies, Feet, Rows, solved
from medyanpy.core.flows import ConstraintFlow, Stage
from medyanpy.errors import TopologyError
from medyanpy.surfaces.forms import Form

if TYPE_CHECKING:
    from medyanpy._kernels.core.program import Operation
    from medyanpy.core.handles import Handle
    from medyanpy.topology import Topology

__all__ = ["Joint", "JointFlow"]

# Rows of a block of the kernel: enough to fill its lanes.
_ROWS_IN_BLOCK = 64
# With more connected rows than this, dependence is checked by sparse elimination.
_MOST_DENSE = 600
# The most matrices that are checked together.
_MOST_ENTRIES = 1 << 21


class Joint:
    """All constraints that are connected, through beads that move, with one that a user has written.

    Attributes
    ----------
    first : Handle
        The handle of such constraints that has the flow of all.
    handles : set of Handle
        Handles with a bead or a constraint among them.
    leaders : dict of Handle to Handle
        For each of these, the one with the temperature of which it is part.
    """

    def __init__(self, topology: "Topology", written: Sequence["Handle"]) -> None:
        self.topology: Topology = topology
        self.first: Handle = written[0]
        parts = [(handle, rows) for handle in topology.handles for rows in handle.kind.constraint_rows()]
        self._movable = np.zeros(topology.n_beads, bool)
        #: Which beads have an orientation, and which may turn.
        self._oriented, self._turns = (np.zeros(topology.n_beads, bool) for _ in range(2))
        for turning in topology.oriented_handles:
            self._oriented[turning.beads] = True
            self._turns[turning.beads] = ~turning.kind.held[:, 1]
        of_bead = np.full(topology.n_beads, -1)
        for k, handle in enumerate(topology.handles):
            self._movable[handle.beads] = ~handle.kind.fixed_beads
            of_bead[handle.beads] = k
        #: In-triangle points, and of those on membranes that move the membrane.
        self._is_point = np.zeros(topology.n_beads, bool)
        self._carriers: dict[Handle, Handle] = {}
        for points in topology.point_handles:
            self._is_point[points.beads] = True
            if self._movable[points.membrane.beads].any():
                self._carriers[points] = points.membrane
        label, n_groups = self._connected(parts)
        wanted = np.unique(np.concatenate([own for (handle, _), own in zip(parts, label, strict=True)
                                           if handle in written]))  # fmt: skip
        self._taken: dict[Handle, np.ndarray] = {}
        #: Of every row: its part and number there, and its component.
        kept, numbers, component = [], [], []
        #: Handles with beads or constraints in each component.
        together: dict[int, set[Handle]] = {}
        for p, ((handle, rows), own) in enumerate(zip(parts, label, strict=True)):
            joins = np.isin(own, wanted)
            if not joins.any():
                continue
            taken = self._taken.setdefault(handle, np.zeros(n_groups[handle], bool))
            taken[rows.group[joins]] = True
            # Constraints of beads that do not move have no effect.
            joins &= self._moving(rows).any(axis=1)
            i = np.flatnonzero(joins)
            kept.append(np.full(len(i), p))
            numbers.append(i)
            component.append(own[i])
            for which in np.unique(own[i]).tolist():
                together.setdefault(which, set()).add(handle)
            moving = self._moving(rows)[i]
            owners = np.stack([np.broadcast_to(own[i][:, None], moving.shape), of_bead[rows.beads[i]]], axis=-1)
            for which, k in np.unique(owners[moving], axis=0).tolist():
                owner = topology.handles[k]
                together[which] |= {owner, self._carriers.get(owner, owner)}
        self.parts: list[tuple[Handle, Rows]] = parts
        self._part, self._number, self._component = map(np.concatenate, (kept, numbers, component))
        self.leaders: dict[Handle, Handle] = _leaders(topology, list(together.values()))
        self.handles: set[Handle] = set(self.leaders)
        self._keeps: dict[Handle, bool] = {}
        named = [bool(self._is_point[self._beads(row)].any()) for row in range(len(self._part))]
        #: Of every row, whether in-triangle points are in its component.
        self._flies = np.isin(self._component, self._component[np.array(named, bool)])

    def _moving(self, rows: Rows) -> np.ndarray:
        """Mark what of all that rows hold can move, (m, k)."""
        moves: np.ndarray = self._movable[rows.beads]
        return moves if rows.arms is None else moves | (self._turns[rows.beads] & rows.arms.any(axis=2))

    @property
    def has_points(self) -> bool:
        """True if any constraint holds in-triangle points."""
        return bool(self._flies.any())

    @property
    def points(self) -> np.ndarray:
        """The in-triangle points (k,) that constraints hold."""
        return np.intersect1d(np.flatnonzero(self._is_point), self.beads_with(self.handles))

    @property
    def has_others(self) -> bool:
        """True if there are components without in-triangle points."""
        return not self._flies.all()

    @property
    def has_arms(self) -> bool:
        """True if any row holds what is away from a bead."""
        return any(self.parts[p][1].arms is not None for p in np.unique(self._part).tolist())

    def _connected(self, parts: list[tuple["Handle", Rows]]) -> tuple[list[np.ndarray], dict["Handle", int]]:
        """Return the component (m,) of every row of every part, and how many groups each handle has."""
        from scipy import sparse
        from scipy.sparse import csgraph

        n = self.topology.n_beads
        n_groups: dict[Handle, int] = {}
        for handle, rows in parts:
            n_groups[handle] = max(n_groups.get(handle, 0), int(rows.group.max(initial=-1)) + 1)
        first = dict(zip(n_groups, np.cumsum([n, *n_groups.values()]).tolist(), strict=False))
        # Points on one membrane that moves may come to the same vertices.
        node = np.arange(n)
        named = np.unique(np.concatenate([np.empty(0, np.int64), *(rows.beads.ravel() for _, rows in parts)]))
        for points, membrane in self._carriers.items():
            if np.isin(points.beads, named).any():
                node[points.beads] = node[membrane.beads] = membrane.beads[0]
        ends = []
        for handle, rows in parts:
            moves = self._moving(rows)
            group = np.broadcast_to(first[handle] + rows.group[:, None], rows.beads.shape)
            ends.append(np.stack([group[moves], node[rows.beads[moves]]]))
        i, j = np.concatenate(ends, axis=1)
        size = n + sum(n_groups.values())
        graph = sparse.coo_array((np.ones(len(i), np.int8), (i, j)), shape=(size, size))
        _, label = csgraph.connected_components(graph, directed=False)
        return [label[first[handle] + rows.group] for handle, rows in parts], n_groups

    def taken(self, handle: "Handle", n: int) -> np.ndarray:
        """Mark groups of a handle that are among these, and not solved by the handle itself, (n,)."""
        out = np.zeros(n, bool)
        found = self._taken.get(handle, out[:0])
        out[: len(found)] = found
        return out

    def beads_with(self, handles: "Collection[Handle]") -> np.ndarray:
        """Return all beads (k,) that are solved together with a constraint of some handles."""
        own = np.array([handle in handles for handle, _ in self.parts], bool)[self._part]
        rows = np.flatnonzero(np.isin(self._component, self._component[own]))
        return np.unique(np.concatenate([np.empty(0, np.int64), *map(self._beads, rows.tolist())]))

    def __len__(self) -> int:
        return len(self._part)

    def label(self, row: int) -> str:
        """Name a row, for messages, by its number in no particular order."""
        handle, rows = self.parts[self._part[row]]
        return f"{rows.label(int(self._number[row]))} of {handle.name!r}"

    def _beads(self, row: int) -> np.ndarray:
        beads: np.ndarray = self.parts[self._part[row]][1].beads[self._number[row]]
        return beads

    def _held_by(self, row: int) -> list[tuple[int, tuple[float, ...] | None]]:
        """Return the beads of a row, with the arm to what it holds where that turns with the bead."""
        rows, number = self.parts[self._part[row]][1], self._number[row]
        beads = rows.beads[number].tolist()
        if rows.arms is None:
            return [(bead, None) for bead in beads]
        arms = map(tuple, rows.arms[number].tolist())
        return [(bead, arm if self._oriented[bead] else None) for bead, arm in zip(beads, arms, strict=True)]

    def keeps_momentum(self, handle: "Handle") -> bool:
        """Tell whether no constraint of a handle changes when all its beads move alike, by gradients at the start."""
        if handle not in self._keeps:
            self._keeps[handle] = True
            for _, rows in ((h, r) for h, r in self.parts if h is handle):
                slope = rows.form.at(self.topology.start_positions(rows.beads, rows.arms), rows.own)[1]
                whole = np.abs(slope.sum(axis=1)) > 1e-12 * np.abs(slope).sum(axis=(1, 2))[:, None]
                self._keeps[handle] &= not whole.any()
        return self._keeps[handle]

    # What must hold at the start ------------------------------------------------------------------------------

    def check(self, what: str, written: "Handle", reach: float) -> None:
        """Refuse constraints of a handle that do not hold where beads start, or that depend on each other.

        Or on other constraints of their beads.

        Raises
        ------
        TopologyError
            Names the constraint and the deviation.
        """
        x = np.zeros((self.topology.n_beads, 3))
        for handle in self.handles:
            if len(handle):
                x[handle.beads] = cast(Any, handle).positions
        bodies = Bodies.of(self.topology)
        q, radius = bodies.orientations, np.ones(self.topology.n_beads)
        for body in self.topology.oriented_handles:
            radius[body.beads] = np.sqrt(body.inertia.sum(axis=1) / (2.0 * body.mass))
        gradients: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        for p, (handle, rows) in enumerate(self.parts):
            if handle is not written and p not in self._part:
                continue
            g, slope = rows.form.at(rows.places(x, q), rows.own)
            if handle is written:
                self._check_start(what, rows, g, slope, reach)
            # Angles count as lengths that mass moves by them.
            gradients[p] = slope, rows.torques(q, slope) / radius[rows.beads][:, :, None]
        own = np.array([self.parts[p][0] is written for p in self._part])
        order = np.argsort(self._component, kind="stable")
        order = order[np.isin(self._component[order], self._component[own])]
        cuts = np.flatnonzero(np.diff(self._component[order])) + 1
        components = np.split(order, cuts)
        matrix = self._unit_rows(order, gradients)
        sizes = np.array([len(rows) for rows in components])
        starts = np.concatenate([[0], cuts])
        doubtful = np.ones(len(components), bool)
        for size in np.unique(sizes[sizes <= _MOST_DENSE]).tolist():
            # Those of one size together: 10 000 molecules are checked as fast as a few.
            all_of_size, few = np.flatnonzero(sizes == size), max(1, _MOST_ENTRIES // size**2)
            for which in np.split(all_of_size, range(few, len(all_of_size), few)):
                doubtful[which] = _least_eigenvalues(matrix, starts[which], size) < 100.0 * INDEPENDENT**2
        for k in np.flatnonzero(doubtful).tolist():
            self._check_independent(what, components[k], matrix[starts[k] : starts[k] + sizes[k]])

    def _check_start(self, what: str, rows: Rows, g: np.ndarray, slope: np.ndarray, reach: float) -> None:
        slope = np.where(self._moving(rows)[:, :, None], slope, 0.0)
        size = np.sqrt(np.sum(slope**2, axis=(1, 2)))
        for bad, problem in [
            (~self._moving(rows).any(axis=1), "names beads that are all fixed: there is nothing to hold"),
            (~(np.isfinite(g) & np.isfinite(size)), "is not a finite number where its beads start"),
            (size == 0.0, "has no gradient where its beads start (a square of what shall be zero has none): write what "
             "shall be zero, and start elsewhere where it has a tip"),
        ]:  # fmt: skip
            if bad.any():
                i = int(np.argmax(bad))
                raise TopologyError(f"{what}: {rows.label(i)}, of beads {rows.beads[i].tolist()}, {problem}")
        off, allowed = np.abs(g) / size, reach * rows.scale
        if (off > allowed).any():
            i = int(np.argmax(off > allowed))
            raise TopologyError(
                f"{what}: {rows.label(i)}, of beads {rows.beads[i].tolist()}, does not hold where they start: it is "
                f"{g[i]:.6g}, about {off[i]:.3g} nm away from zero, but must be within {allowed[i]:.3g} nm"
            )

    def _check_independent(self, what: str, rows: np.ndarray, matrix: Any) -> None:
        """Refuse rows of a component that depend on each other; a matrix (r, 6n) has their gradients of unit length."""
        matrix = matrix[:, np.unique(matrix.indices)]
        if len(rows) <= _MOST_DENSE:
            left, values, _ = np.linalg.svd(matrix.toarray(), full_matrices=False)
            least = float(values[-1]) if len(values) == len(rows) else 0.0
            if least > INDEPENDENT:
                return
            if len(values) < len(rows):
                # More rows than coordinates.
                left, *_ = np.linalg.svd(matrix.toarray())
            share = np.abs(left[:, len(rows) - 1])
        else:
            from scipy.sparse import linalg

            metric = (matrix @ matrix.T).tocsc()
            try:
                factors = linalg.splu(metric, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0)
                pivots = np.abs(factors.U.diagonal())
                least = float(np.sqrt(pivots.min()))
                if least > INDEPENDENT:
                    return
                share = np.zeros(len(rows))
                share[factors.perm_c.argsort()[int(np.argmin(pivots))]] = 1.0
            except RuntimeError:
                least, share = 0.0, np.ones(len(rows))
        among = rows[share > 0.01 * share.max()]
        last, others = among[-1], among[:-1]
        names = ", ".join(self.label(row) for row in others[:3]) + (", ..." if len(others) > 3 else "")
        raise TopologyError(
            f"{what}: {self.label(last)}, of beads {self._beads(last).tolist()}, depends where beads start on "
            f"{names or 'itself'}: {len(among)} constraints of unit gradient are within {least:.1e} of "
            f"cancelling, but must stay {INDEPENDENT:.0e} away from that. Leave one of them out, or start where they "
            "are independent"
        )

    def _unit_rows(self, rows: np.ndarray, gradients: dict[int, tuple[np.ndarray, np.ndarray]]) -> Any:
        """Return gradients of rows, of length 1, in coordinates of beads that move and turn, (r, 6n)."""
        from scipy import sparse

        feet = Feet.at_start(self.topology)
        i, j, values = [], [], []
        for p in np.unique(self._part[rows]).tolist():
            mine = np.flatnonzero(self._part[rows] == p)
            number = self._number[rows[mine]]
            beads = self.parts[p][1].beads[number]
            own = [feet.passed_on(beads, gradients[p][0][number]), (beads, gradients[p][1][number])]
            for k, moves in enumerate((self._movable, self._turns)[: 1 + (self.parts[p][1].arms is not None)]):
                beads, slopes = own[k]
                i.append(np.repeat(mine, 3 * beads.shape[1]))
                j.append((3 * (k * self.topology.n_beads + beads[:, :, None]) + np.arange(3)).ravel())
                values.append(np.where(moves[beads][:, :, None], slopes, 0.0).ravel())
        entries = np.concatenate(values), (np.concatenate(i), np.concatenate(j))
        matrix = sparse.coo_array(entries, shape=(len(rows), 6 * self.topology.n_beads)).tocsr()
        # Bodies may be in one row several times.
        size = np.sqrt(matrix.multiply(matrix).sum(axis=1))
        return (sparse.diags_array(np.divide(1.0, size, out=np.zeros_like(size), where=size > 0.0)) @ matrix).tocsr()

    # Multipliers -----------------------------------------------------------------------------------------------

    def multipliers(
        self, x: np.ndarray, v: np.ndarray, forces: np.ndarray, turning: dict[str, np.ndarray] | None,
        standing: tuple[list[tuple[np.ndarray, np.ndarray, np.ndarray]], np.ndarray] | None = None,
    ) -> "dict[Handle, list[tuple[np.ndarray, np.ndarray]]]":
        """Return the multipliers of each part of every handle: pairs of numbers (m,) within the part, and λ.

        Positions, velocities and forces are (n, 3), in topology order. Where `has_arms`, attributes of `Bodies` are
        given for oriented beads; where `has_points`, how in-triangle points stand as `Feet.standing` takes it.

        Raises
        ------
        SimulationError
            Multipliers that are not determined.
        """
        which = np.unique(self._part).tolist()
        chosen = [(self.parts[p][1], self._number[self._part == p]) for p in which]
        found: dict[Handle, list[tuple[np.ndarray, np.ndarray]]] = {}
        bodies = None if turning is None else Bodies.of(self.topology, **turning)
        feet = None if standing is None else Feet.standing(x, *standing)
        found_of = solved(self.first, chosen, x, v, forces, bodies, feet)
        for p, (_, number), values in zip(which, chosen, found_of, strict=True):
            found.setdefault(self.parts[p][0], []).append((number, values))
        return found

    # Tables of the kernel ---------------------------------------------------------------------------------------

    def tables(self, layout: Any, with_points: bool = False) -> tuple[dict[str, np.ndarray], list[Form], list[int]]:
        """Make the tables of _kernels/beads/joint_constraints.pyx, its programs, and the row here of each row there.

        Of the components with in-triangle points, or of those without.
        """
        forms = list(dict.fromkeys(rows.form for _, rows in self.parts))
        # Components in the order of their first beads.
        order = np.lexsort((self._number, self._part, self._component))
        order = order[self._flies[order] == with_points]
        cuts = np.flatnonzero(np.diff(self._component[order])) + 1
        components = sorted(np.split(order, cuts), key=lambda own: min(self._beads(row).min() for row in own))
        t: dict[str, list[Any]] = {key: [] for key in _TABLES}
        for key in ("slots", "rows", "entries", "pattern", "products", "blocks", "groups", "turns", "points"):
            t[key] = [0]
        ordered: list[int] = []
        in_block: list[int] = []
        for c, own in enumerate(components):
            rows = self._add_component(own, forms, t, ordered, layout)
            in_block += rows
            if len(in_block) >= _ROWS_IN_BLOCK or c == len(components) - 1:
                for program in sorted({t["program"][row] for row in in_block}):
                    first = len(t["lane"])
                    t["lane"] += [row for row in in_block if t["program"][row] == program]
                    t["group"].append((program, first, len(t["lane"])))
                t["groups"].append(len(t["group"]))
                t["blocks"].append(c + 1)
                in_block = []
        arrays = {
            key: np.array(value, np.float64 if key in ("scale", "number", "arm") else np.int32)
            for key, value in t.items()
        }
        arrays["place"] = layout.internal(arrays["place"]).astype(np.int32)
        arrays["product"] = arrays["product"].reshape(-1, 4)
        arrays["group"] = arrays["group"].reshape(-1, 3)
        arrays["beads"], arrays["own"] = (
            np.array([getattr(form, name) for form in forms], np.int32) for name in ("beads", "own")
        )
        return arrays, forms, ordered

    def led_by(self, written: "Handle", tables: dict[str, np.ndarray], ordered: list[int]) -> np.ndarray:
        """Mark the components (components,) of which a handle's constraints are the first written by a user."""
        rank = {handle: k for k, handle in enumerate(self.topology.handles)}
        out = []
        for first, end in zip(tables["rows"], tables["rows"][1:], strict=False):
            handles = {self.parts[self._part[row]][0] for row in ordered[first:end]}
            by_user = [handle for handle in handles if handle.kind.name == written.kind.name]
            out.append(min(by_user, key=rank.__getitem__) is written)
        return np.array(out)

    def moving(self, layout: Any, place: np.ndarray) -> np.ndarray:
        """Mark the beads at places that move."""
        moving: np.ndarray = self._movable[layout.order[place]]
        return moving

    def _add_component(
        self, own: np.ndarray, forms: list[Form], t: dict[str, list[Any]], ordered: list[int], layout: Any
    ) -> list[int]:
        """Append a component, and return the numbers of its rows in the tables."""
        # Slots: beads, points as beads in their planes, vertices under points, rotations of bodies, places fixed to
        # these, each by its bead and arm, and spots of points.
        held = [self._held_by(row) for row in own]
        points = sorted({bead for one in held for bead, _ in one if self._is_point[bead]})
        carrier = {point: self._carriers.get(cast(Any, self.topology.handle_of(point))) for point in points}
        carriers = [membrane for membrane in dict.fromkeys(carrier.values()) if membrane is not None]
        corner = {m: m.beads[np.argsort(layout.internal(m.beads))].tolist() for m in carriers}
        vertices = list(itertools.chain.from_iterable(corner.values()))
        beads = sorted({bead for one in held for bead, _ in one} - {*points, *vertices})
        bodies = sorted({bead for one in held for bead, arm in one if arm is not None})
        places = sorted({(bead, arm) for one in held for bead, arm in one if arm is not None})
        as_beads = [*beads, *(("point", p) for p in points), *vertices]
        keys = [*as_beads, *(("turn", b) for b in bodies), *places, *(("spot", p) for p in points)]
        slot: dict[Any, int] = {key: k for k, key in enumerate(keys)}
        of_slot = [*beads, *points, *vertices]
        moves = [bool(self._movable[bead]) for bead in of_slot] + [bool(self._turns[bead]) for bead in bodies]
        moves += [False] * (len(places) + len(points))
        mine, into, together, on_mesh = [], [], [], []
        for one in held:
            # Behind what a row holds: the bead and the rotation of each of its bodies, and points with their corners.
            turning = list(dict.fromkeys(bead for bead, arm in one if arm is not None))
            mine.append([slot[("spot", bead) if bead in carrier else bead if arm is None else (bead, arm)]
                         for bead, arm in one])  # fmt: skip
            mine[-1] += [slot[key] for bead in turning for key in (bead, ("turn", bead))]
            into.append([-1 if arm is None else len(one) + 2 * turning.index(bead) for bead, arm in one])
            into[-1] += [-1] * (2 * len(turning))
            for k, (bead, _) in enumerate(one):
                if bead in carrier:
                    into[-1][k] = len(mine[-1])
                    under = carrier[bead]
                    mine[-1] += [slot["point", bead], *([] if under is None else [slot[corner[under][0]]] * 3)]
                    into[-1] += [-2] * (len(mine[-1]) - len(into[-1]))
            # Any two rows on one membrane may have vertices in common.
            first, last = len(beads) + len(points), len(of_slot)
            on_mesh.append(any(first <= s < last for s in mine[-1]))
            together.append([s for s in mine[-1] if not first <= s < last])
        order, patterns = _eliminated(together, moves, on_mesh)
        base, first_slot, first_entry = t["rows"][-1], t["slots"][-1], t["entries"][-1]
        first_turn = t["turns"][-1]
        n_beads, first_point = len(of_slot), t["points"][-1]
        t["place"] += [*of_slot, *bodies, *(bead for bead, _ in places), *points]
        t["kind"] += [0] * n_beads + [1] * len(bodies) + [2] * len(places) + [3] * len(points)
        t["turn"] += [-1] * n_beads + [first_turn + bodies.index(b) for b in (*bodies, *(b for b, _ in places))]
        t["turn"] += range(first_point, first_point + len(points))
        t["arm"] += [0.0] * (3 * (n_beads + len(bodies))) + [c for _, arm in places for c in arm]
        t["arm"] += [0.0] * (3 * len(points))
        t["turns"].append(first_turn + len(bodies))
        t["first_turn"].append(first_slot + n_beads)
        t["points"].append(first_point + len(points))
        t["vertices"].append(first_slot + len(beads) + len(points))
        for point in points:
            membrane = carrier[point]
            t["motion"].append(first_slot + slot["point", point])
            t["spot"].append(first_slot + slot["spot", point])
            t["rides"].append(membrane is not None)
            vertex = None if membrane is None else corner[membrane][0]
            t["shift"].append(0 if vertex is None else first_slot + slot[vertex] - int(layout.internal(vertex)))
        t["body"] += [first_slot + slot[bead] for bead in bodies]
        t["parts"] += [cast(Any, self.topology.handle_of(bead)).kind.rotation_parts for bead in bodies]
        t["slots"].append(first_slot + len(slot))
        t["rows"].append(base + len(own))
        holders: dict[int, list[tuple[int, int]]] = {}
        entry, starts = first_entry, [len(t["column"])]
        for columns in patterns:
            starts.append(starts[-1] + len(columns))

        def at(i: int, j: int) -> int:
            return starts[i] + bisect.bisect_left(patterns[i], j)

        for i, k in enumerate(order):
            row = int(own[k])
            _, rows = self.parts[self._part[row]]
            number = self._number[row]
            ordered.append(row)
            t["program"].append(forms.index(rows.form))
            t["scale"].append(rows.scale[number])
            t["numbers"].append(len(t["number"]))
            t["number"] += rows.own[number].tolist()
            t["into"] += [e if e < 0 else entry + e for e in into[k]]
            t["row_of"] += [base + i] * len(mine[k])
            for s in mine[k]:
                # The kernel finds what rows have in common of vertices under points.
                if moves[s] and not len(beads) + len(points) <= s < n_beads:
                    holders.setdefault(s, []).append((i, entry))
                t["slot"].append(first_slot + s)
                entry += 1
            t["entries"].append(entry)
            t["column"] += [base + j for j in patterns[i]]
            t["diagonal"].append(at(i, i))
            t["pattern"].append(len(t["column"]))
        for s in sorted(holders):
            for n, (i, a) in enumerate(holders[s]):
                t["product"] += [(at(i, j), at(j, i), a, b) for j, b in holders[s][: n + 1]]
        t["products"].append(len(t["product"]))
        return list(range(base, base + len(own)))


def _least_eigenvalues(matrix: Any, starts: np.ndarray, size: int) -> np.ndarray:
    """Return the least eigenvalues (c,) of the products of rows with each other.

    For components of as many rows, from these on.
    """
    rows = (starts[:, None] + np.arange(size)).ravel()
    unit = matrix[rows]
    products = (unit @ unit.T).tocoo()
    metric = np.zeros((len(starts), size, size))
    metric[products.row // size, products.row % size, products.col % size] = products.data
    return np.linalg.eigvalsh(metric)[:, 0]


_TABLES = (
    "blocks", "slots", "rows", "place", "entries", "slot", "program", "scale", "numbers", "number", "pattern", "column",
    "diagonal", "products", "product", "groups", "group", "lane", "kind", "turn", "arm", "turns", "first_turn", "body",
    "parts", "into", "points", "motion", "spot", "rides", "shift", "vertices", "row_of",
)  # fmt: skip


def _eliminated(rows: list[list[int]], moves: list[bool], dense: list[bool]) -> tuple[list[int], list[list[int]]]:
    """Find an order of elimination with little fill, by least degree, of rows with these beads.

    Any two `dense` rows may have more in common: they come last. Also returns, in this order, the columns of every row
    of the factorised matrix, ascending.
    """
    holders: dict[int, set[int]] = {}
    for k, beads in enumerate(rows):
        for s in beads:
            if moves[s]:
                holders.setdefault(s, set()).add(k)
    beside: list[set[int]] = [set().union(*(holders[s] for s in beads if moves[s])) - {k}
                              for k, beads in enumerate(rows)]  # fmt: skip
    waiting = [(len(near), k) for k, near in enumerate(beside) if not dense[k]]
    heapq.heapify(waiting)
    order: list[int] = []
    upper: list[set[int]] = [set() for _ in rows]
    done = [False] * len(rows)
    while waiting:
        degree, k = heapq.heappop(waiting)
        if done[k] or degree != len(beside[k]):
            continue
        done[k] = True
        order.append(k)
        upper[k] = near = beside[k]
        for j in near:
            beside[j] |= near
            beside[j] -= {j, k}
            if not dense[j]:
                heapq.heappush(waiting, (len(beside[j]), j))
    first = len(order)
    order += [k for k, last in enumerate(dense) if last]
    rank = {k: i for i, k in enumerate(order)}
    columns: list[list[int]] = [[i] for i in range(len(rows))]
    for i, k in enumerate(order):
        for j in upper[k]:
            columns[i].append(rank[j])
            columns[rank[j]].append(i)
    for i in range(first, len(order)):
        columns[i] = [j for j in columns[i] if j < first] + list(range(first, len(order)))
    return order, [sorted(own) for own in columns]


def _leaders(topology: "Topology", groups: list[set["Handle"]]) -> dict["Handle", "Handle"]:
    """Find for every handle in some sets the first of all handles that the sets connect with it."""
    number = {handle: k for k, handle in enumerate(topology.handles)}
    leader = {handle: handle for group in groups for handle in group}

    def found(handle: "Handle") -> "Handle":
        while leader[handle] is not handle:
            handle = leader[handle]
        return handle

    for group in groups:
        for handle in group:
            a, b = found(handle), found(next(iter(group)))
            first, last = sorted((a, b), key=number.__getitem__)
            leader[last] = first
    return {handle: found(handle) for handle in leader}


class JointFlow(ConstraintFlow):
    """Joint solves around A, B and O of all connected constraints (_kernels/beads/joint_constraints.pyx).

    Parameters
    ----------
    joint : Joint
    layout : Layout
    """

    def __init__(self, joint: Joint, layout: Any) -> None:
        self._layout = layout
        self._joint = joint
        self._is_even = True
        #: Of the components without in-triangle points, and of those with: what makes an operation.
        self._plain, self._flying = (self._maker(with_points) for with_points in (False, True))
        if joint.has_points:
            self.asks_for_pairs = repr(joint.first)
        #: Where vertices that carry points are before they are brought to where constraints hold.
        self._before: np.ndarray | None = None
        if any(points.membrane in joint.handles for points in joint.topology.point_handles):
            self._before = np.empty((layout.n_vertices, 3))
        if any(getattr(handle, "directors", None) is not None for handle in joint.handles):
            self.obstacle = self.obstacle_to_flights = "directors are among its beads, and move with velocities"
        elif any(handle in joint.handles for handle in joint.topology.oriented_handles):
            self.obstacle = self.obstacle_to_flights = "bodies are among its beads, which turn with angular momenta"
        elif joint.has_points:
            self.obstacle = self.obstacle_to_flights = "in-triangle points among its beads fly with velocities"
        elif not self._is_even:
            self.obstacle_to_flights = self.UNEVEN

    def _maker(self, with_points: bool) -> "Callable[..., Sequence[Operation]]":
        """Return a function of an action and its numbers that makes the operation, if there are such components."""
        joint = self._joint
        if not (joint.has_points if with_points else joint.has_others):
            return lambda *_, **__: ()
        tables, forms, ordered = joint.tables(self._layout, with_points)
        system = joint_constraints.JointSystem(tables, [form.program for form in forms], self._layout.threads)
        self._is_even = self._is_even and _is_even(joint, tables, self._layout)

        def name(row: int) -> str:
            return joint.label(ordered[row])

        return lambda action, **numbers: (joint_constraints.JointConstraints(system, action, name, **numbers),)

    def before_a(self, stage: Stage) -> "Sequence[Operation]":
        numbers = {"h": stage.h, "exact": stage.rotation == "exact", "after_g": stage.of_pair == 2}
        return *self._plain("start"), *self._flying("launch", **numbers)

    def before_g(self, stage: Stage) -> "Sequence[Operation]":
        return self._flying("start") if stage.of_pair == 1 else ()

    def after_a(self, stage: Stage) -> "Sequence[Operation]":
        flight = self._plain("flight", h=stage.h, exact=stage.rotation == "exact")
        if self._before is not None and flight:
            flight = drift.NoteVertices(self._before), *flight, drift.Ride(self._before)
        return *flight, *self._after_pair(stage)

    def after_g(self, stage: Stage) -> "Sequence[Operation]":
        # Vertices have felt the recoil of points.
        return *(() if self._before is None else self._plain("tangent")), *self._after_pair(stage)

    def _after_pair(self, stage: Stage) -> "Sequence[Operation]":
        return self._flying("tangent") if stage.of_pair == 2 else ()

    def after_b(self, _: Stage) -> "Sequence[Operation]":
        return *self._plain("tangent"), *self._flying("tangent")

    def before_o(self, stage: Stage) -> "Sequence[Operation]":
        if self._is_even and not self.mixed:
            return ()
        return tuple(operation for make in (self._plain, self._flying)
                     for operation in make("normal", kT=stage.kT, letter=stage.index))  # fmt: skip

    def after_o(self, stage: Stage) -> "Sequence[Operation]":
        return self.after_b(stage)

    def tangent(self) -> "Sequence[Operation]":
        return *self._plain("admit"), *self._flying("admit")

    def settle(self) -> "Sequence[Operation]":
        return *self._plain("settle"), *self._flying("settle")


def _is_even(joint: Joint, tables: dict[str, np.ndarray], layout: Any) -> bool:
    """Tell whether friction over mass is one number in each component.

    O then takes nothing from normal parts to tangent ones; see `FilamentFlow`.
    """
    mass, friction = layout.gather(lambda h: h.mass), layout.gather(lambda h: h.friction)
    if any(getattr(handle, "friction_along", None) is not None for handle in joint.handles):
        return False
    if any(handle in joint.handles and handle.kind.has_friction for handle in joint.topology.oriented_handles):
        # Tensors mix directions.
        return False
    moving = joint.moving(layout, tables["place"])
    place = tables["place"][moving]
    component = np.repeat(np.arange(len(tables["slots"]) - 1), np.diff(tables["slots"]))[moving]
    rate = friction[place] / mass[place]
    first = np.zeros(len(tables["slots"]) - 1)
    first[component] = rate
    # Up to the rounding of products in user input.
    return bool((np.abs(rate - first[component]) <= 1e-14 * rate).all())
