"""Groups of beads that move as one where a periodic box changes its lengths."""

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from medyanpy.beads.chains import Chains
from medyanpy.beads.directors import Directors
from medyanpy.beads.intriangle_points import InTrianglePoints
from medyanpy.errors import ParameterError, TopologyError

if TYPE_CHECKING:
    from medyanpy.beads.constraint_rows import Rows
    from medyanpy.core.layout import Layout

__all__ = ["FixedBeads", "Units", "fixed_beads_given", "units_of"]

#: What a user may ask for where there are fixed beads.
FixedBeads = Literal["refuse", "scale"]
# How far constraints are moved to see whether that changes them, and how far their beads from where they start before,
# in lengths of the box: pieces of functions, and waves in the box, may be alike near by and not elsewhere.
_SHIFTS, _SPREADS = (0.1, 1.0, 10.0, 100.0), (0.0, 0.1)
# Change of a function, over that of a function with its gradient: what is less is rounding.
_ALIKE = 1e-9


class Units(NamedTuple):
    """Units of as many beads each.

    Attributes
    ----------
    places : (k, b) int array
        Of the beads of each unit.
    n_fixed : int
        How many beads, the first of each row, are fixed. A unit goes with their centre, or without any with that of its
        mass; the place of a unit is a coordinate only where this is 0.
    """

    places: np.ndarray
    n_fixed: int


def fixed_beads_given(what: str, fixed: Any) -> FixedBeads:
    """Return what a user wants of fixed beads; ParameterError for anything else."""
    if fixed == "refuse":
        return "refuse"
    if fixed == "scale":
        return "scale"
    raise ParameterError(f'{what}: fixed_beads = {fixed!r} but must be "refuse" or "scale"')


def units_of(what: str, layout: "Layout", directions: np.ndarray, fixed: FixedBeads) -> list[Units]:
    """Return the units that move as one where the box changes in some directions, (3,) bool.

    Free beads, vertices and bodies are one each, filaments and rods are wholes, and so are all beads that constraints
    join; in-triangle points and directors are in none. Inactive rows are units of their own.

    Raises
    ------
    TopologyError
        Fixed beads, unless these are to scale; constraints and surfaces that change where their beads move alike, and
        constraints on in-triangle points.
    """
    if not np.any(directions):
        return []
    kept: dict[Any, list[Units]] = vars(layout).setdefault("_units", {})
    key = tuple(np.asarray(directions).tolist()), fixed
    if key not in kept:
        kept[key] = _units_of(what, layout, directions, fixed)
    return kept[key]


def _units_of(what: str, layout: "Layout", directions: np.ndarray, fixed: FixedBeads) -> list[Units]:
    from scipy import sparse
    from scipy.sparse import csgraph

    n = layout.topology.n_beads
    moved, immobile, pairs = [np.empty(0, np.int64)], np.zeros(n, bool), [np.empty((0, 2), np.int64)]
    for handle in layout.handles:
        pairs += [rows.beads[:, k : k + 2] for rows in handle.kind.constraint_rows()
                  for k in range(rows.beads.shape[1] - 1)]  # fmt: skip
        if isinstance(handle, InTrianglePoints | Directors):
            continue
        moved.append(handle.kind.with_room)
        if isinstance(handle, Chains):
            moved[-1] = handle.beads
            pairs.append(handle.beads[handle.links])
        immobile[handle.beads] = handle.kind.fixed_beads
    beads = np.concatenate(moved)
    if fixed == "refuse" and immobile[beads].any():
        bead = int(beads[np.argmax(immobile[beads])])
        name = layout.topology.handle_of(bead).name
        raise TopologyError(
            f'{what}: bead {bead} ({name!r}) is fixed: fixed_beads="scale" moves it, and what is joined to it, with '
            "the box"
        )
    joint = layout.topology.joint
    if joint is not None and joint.has_points:
        point = int(joint.points[0])
        raise TopologyError(
            f"{what}: constraints hold in-triangle point {point} of {layout.topology.handle_of(point).name!r}, which "
            "goes with the corners of its triangle, each on its own: leave the box as it is"
        )
    expect_alike(what, layout, directions, beads)
    i, j = np.concatenate(pairs).T
    _, label = csgraph.connected_components(sparse.coo_array((np.ones(len(i), np.int8), (i, j)), shape=(n, n)), False)
    # Of each unit the fixed ones first; else as they are in memory.
    beads = beads[np.lexsort((~immobile[beads], label[beads]))]
    _, starts, sizes = np.unique(label[beads], return_index=True, return_counts=True)
    n_fixed = np.add.reduceat(immobile[beads], starts, dtype=np.int64) if len(beads) else sizes
    kinds, which = np.unique(np.stack([sizes, n_fixed]), axis=1, return_inverse=True)
    return [
        Units(layout.internal(beads[starts[which.ravel() == k][:, None] + np.arange(size)]), int(held))
        for k, (size, held) in enumerate(kinds.T.tolist())
    ]


def expect_alike(what: str, layout: "Layout", directions: np.ndarray, moved: np.ndarray) -> None:
    """Refuse constraints that change where all their beads, of those that are moved, move alike along directions of the
    box; TopologyError."""
    rng = np.random.default_rng(0)
    goes = np.zeros(layout.topology.n_beads, bool)
    goes[moved] = True
    for handle in layout.handles:
        rows = handle.kind.constraint_rows()
        if handle.kind.is_on_surface and len(handle) and not rows:
            raise TopologyError(
                f"{what}: {handle.name!r} is on a surface of Python functions, and it cannot be told whether these "
                "stay the same when the box changes: give the surface as an expression"
            )
        for one in rows:
            start = layout.topology.start_positions(one.beads, one.arms)
            changed = _changed(one, start, goes[one.beads], layout.box, directions, rng)
            if changed.any():
                i, c = (int(k) for k in np.argwhere(changed)[0])
                raise TopologyError(
                    f"{what}: {one.label(i)} of {handle.name!r}, of beads {one.beads[i].tolist()}, changes where these "
                    f"move alike along {'xyz'[c]}, so that they cannot follow the box along it: let that length of the "
                    "box stay as it is, or hold them by what does not depend on where they are along it"
                )


def _changed(
    rows: "Rows", start: np.ndarray, goes: np.ndarray, box: np.ndarray, directions: np.ndarray,
    rng: "np.random.Generator",
) -> np.ndarray:  # fmt: skip
    """Tell which constraints change along which directions, (m, 3), from where beads start (m, k, 3); of these those
    that go (m, k) are moved."""
    changed = np.zeros((len(start), 3), bool)
    with np.errstate(all="ignore"):
        for spread in _SPREADS:
            x = start + spread * box[directions].min() * rng.normal(size=start.shape)
            g, slope = rows.form.at(x, rows.own)
            slope = np.abs(slope).sum(axis=(1, 2))
            # Functions may have no value everywhere.
            known = np.isfinite(g) & np.isfinite(slope)
            for shift in _SHIFTS:
                for c in np.flatnonzero(directions):
                    y = x.copy()
                    by = shift * box[c] * rng.uniform(0.5, 1.0, len(x)) * rng.choice([-1.0, 1.0], len(x))
                    y[:, :, c] += np.where(goes, by[:, None], 0.0)
                    size = slope * (np.abs(by) + np.abs(x).max(axis=(1, 2)))
                    # Not the other way round: what has no value there has changed.
                    changed[:, c] |= known & ~(np.abs(rows.form.at(y, rows.own)[0] - g) <= _ALIKE * size)
    return changed
