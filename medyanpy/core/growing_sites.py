"""Sites on filaments that grow: which beads they lie between follows from how these have grown."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from medyanpy._kernels.core.sites import MARGIN_OF_PLACES, Places
from medyanpy.core.columns import MATERIAL, SUBUNITS
from medyanpy.errors import TopologyError

if TYPE_CHECKING:
    from medyanpy.core.handles import Handle
    from medyanpy.core.layout import Layout

__all__ = [
    "COLUMNS", "FILAMENT", "HANDLE", "ROW", "SPACING", "UNBINDS", "WIDTH", "at_start", "bound", "checked",
    "counted_from", "expect_counted", "nodes_in", "now", "of_one", "room_in", "rows_of", "unbinding", "width_for",
]  # fmt: skip

# Columns of `Sites.growth`: number of the handle among those of the sites, -1 of sites that stay what they are;
# subunits from each place to the next; filament; number of the place modulo the next, for how many there is room; and
# whether an end that leaves a place lets go what is held there.
HANDLE, SPACING, FILAMENT, ROW, WIDTH, UNBINDS = range(6)
#: Numbers of a row.
COLUMNS = 6


def width_for(subunits: int, spacing: int) -> int:
    """Return for how many places filaments of up to so many subunits need room."""
    width: int = -(-(subunits + 2 * MARGIN_OF_PLACES) // spacing) + 3
    return width


def room_in(width: int, spacing: int) -> int:
    """Return up to how many subunits filaments may have."""
    most: int = (width - 3) * spacing - 2 * MARGIN_OF_PLACES
    return most


def checked(what: str, growth: np.ndarray, handles: "Sequence[Handle]") -> np.ndarray:
    """Refuse rows of `Sites.growth` that name what there is not; TopologyError."""
    grows = growth[:, HANDLE] >= 0
    rooms = np.array([getattr(h.kind, "n_room", 0) if getattr(h, "_rise", None) else 0 for h in handles], np.int64)
    ok = (growth[:, HANDLE] < len(handles)) & (growth[:, SPACING] >= 1) & (growth[:, FILAMENT] >= 0)
    ok &= (growth[:, ROW] >= 0) & (growth[:, ROW] < growth[:, WIDTH])
    if len(handles):
        ok &= growth[:, FILAMENT] < rooms[np.clip(growth[:, HANDLE], 0, len(handles) - 1)]
    if not ok[grows].all():
        i = int(np.flatnonzero(grows)[np.argmin(ok[grows])])
        raise TopologyError(f"{what}: growth[{i}] = {growth[i].tolist()} is not a place on filaments that grow")
    return growth


def _groups(growth: np.ndarray) -> Iterator[tuple[int, int, int, int, np.ndarray]]:
    """Give the number of a handle, spacing, width, whether ends unbind, and sites of each lattice."""
    grows = np.flatnonzero(growth[:, HANDLE] >= 0)
    kinds, which = np.unique(growth[grows][:, [HANDLE, SPACING, WIDTH, UNBINDS]], axis=0, return_inverse=True)
    for k, (handle, spacing, width, unbinds) in enumerate(kinds.tolist()):
        yield handle, spacing, width, unbinds, grows[which.ravel() == k]


def counted_from(*groups: Any) -> "dict[Handle, np.ndarray]":
    """Return ids of the nodes by which places of these sites are counted."""
    return {h: h.ids.copy() for sites in groups if sites.growth is not None for h in sites.handles}


def expect_counted(what: str, counted: "dict[Handle, np.ndarray]") -> None:
    """Refuse filaments that have been removed, from which places are counted; TopologyError."""
    for handle, ids in counted.items():
        if not np.array_equal(handle.ids[: len(ids)], ids):
            raise TopologyError(
                f"{what}: filaments of {handle.name!r} have been removed, on which it has places that follow growth: "
                "remove the jump first"
            )


def bound(growth: np.ndarray, handles: "Sequence[Handle]", layout: "Layout") -> list[Places]:
    """Return these places on the arrays of one Context."""
    out = []
    for number, spacing, width, _, sites in _groups(growth):
        nodes = nodes_in(handles[number], layout)
        site = np.full((len(nodes), width), -1, np.int32)
        site[growth[sites, FILAMENT], growth[sites, ROW]] = sites
        out.append(Places(nodes, site, spacing, layout.n))
    return out


def unbinding(growth: np.ndarray) -> list[bool]:
    """Tell of all that `bound` returns whether ends that leave places let go what is held there."""
    return [bool(unbinds) for *_, unbinds, _ in _groups(growth)]


def nodes_in(handle: Any, layout: "Layout") -> np.ndarray:
    """Return the places of the beads that may be nodes of each filament, (filaments, n) int32; -1 beyond."""
    rows = handle.kind.node_rows
    return np.where(rows < 0, -1, layout.rank[rows]).astype(np.int32)


def at_start(growth: np.ndarray, handles: "Sequence[Handle]") -> np.ndarray:
    """Tell which of these places, (n,), there are at the start."""
    there = np.zeros(len(growth), bool)
    for number, spacing, _, _, sites in _groups(growth):
        kind: Any = handles[number].kind
        length = np.full(kind.n_room, -1, np.int64)
        length[: kind.n_chains] = np.add.reduceat(kind.subunits, kind.link_starts[:-1]) if kind.n_chains else 0
        there[sites] = growth[sites, ROW] * spacing <= length[growth[sites, FILAMENT]]
    return there


def rows_of(handles: "Sequence[Handle]") -> list[np.ndarray]:
    """Return rows (f, n) that the nodes of each filament of each handle may have, -1 beyond; none of other handles."""
    return [h.kind.node_rows if hasattr(h.kind, "node_rows") else np.empty((0, 1), np.int64) for h in handles]


def of_one(growth: np.ndarray, rows: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return the same as if all filaments were of one handle, and its rows."""
    before = np.cumsum([0, *map(len, rows)])
    out, grows = growth.copy(), growth[:, HANDLE] >= 0
    out[grows, FILAMENT] += before[growth[grows, HANDLE]]
    out[grows, HANDLE] = 0
    width = max((own.shape[1] for own in rows), default=1)
    padded = [np.pad(own, ((0, 0), (0, width - own.shape[1])), constant_values=-1) for own in rows]
    return out, np.concatenate([np.empty((0, width), np.int64), *padded])


def now(growth: np.ndarray, nodes: "Sequence[np.ndarray]", state: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return where sites are on their filaments in a state: two beads (n, 2), the share of the way between them (n,),
    and numbers (n,) int. The share is nan where there is no such place; other sites are what they are. `nodes` are
    those of `rows_of`."""
    beads, share = np.zeros((len(growth), 2), np.int64), np.full(len(growth), np.nan)
    numbers = growth[:, ROW].copy()
    if not hasattr(state, "column"):
        raise TopologyError("Sites: places on filaments that grow are those of a State, which tells their subunits")
    for number, spacing, width, _, sites in _groups(growth):
        rows = nodes[number]
        subunits, material = (np.where(rows < 0, 0, state.column(c.name)[rows]) for c in (SUBUNITS, MATERIAL))
        leads = subunits > 0
        there = np.asarray(leads.any(axis=1))
        first = np.argmax(leads, axis=1)
        last = np.where(there, leads.shape[1] - np.argmax(leads[:, ::-1], axis=1), first)
        each = np.arange(len(rows))
        # Of the first node, and of all from their subunits.
        low = material[each, first]
        ends = low[:, None] + np.cumsum(np.maximum(subunits, 0), axis=1)
        high = np.where(there, ends[:, -1], low)
        begin = (low + high) // (2 * spacing) - width // 2
        i = growth[sites, FILAMENT]
        m = begin[i] + (growth[sites, ROW] - begin[i]) % width
        c = m * spacing
        # Behind how many nodes but the first it is, on the last link at most.
        behind = ((ends[i] <= c[:, None]) & leads[i]).sum(axis=1)
        link = np.minimum(first[i] + behind, np.maximum(last[i] - 1, first[i]))
        n = np.maximum(subunits[i, link], 1)
        found = there[i] & (low[i] <= c) & (c <= high[i])
        beads[sites] = np.column_stack([rows[i, link], rows[i, np.minimum(link + 1, rows.shape[1] - 1)]])
        share[sites] = np.where(found, (c - (ends[i, link] - n)) / n, np.nan)
        numbers[sites] = m
    return beads, share, numbers
