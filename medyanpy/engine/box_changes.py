"""The space that a system is in: whether its beads can be in its box."""

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from medyanpy._tools.images import box_lengths, checked_box, displacement, expect_near, images_between, in_words
from medyanpy.beads.units import FixedBeads, units_of
from medyanpy.core.handles import Handle
from medyanpy.core.kinds import Block
from medyanpy.engine.store import Store
from medyanpy.errors import ParameterError, TopologyError
from medyanpy.system import System

if TYPE_CHECKING:
    from medyanpy.beads import Membrane

__all__ = [
    "check_images", "check_sheet", "check_sheets", "check_space", "expect_lengths", "expect_no_seam",
    "moved_with",
]  # fmt: skip

# Relative: lengths of the boxes of meshes and systems that are the same.
_SAME = 1e-9


def check_space(system: System) -> None:
    """Refuse a system whose box and beads do not fit.

    Raises
    ------
    TopologyError
        A mesh that was made for another box, or beads that are joined and given as images that are not next to each
        other.
    """
    lengths = box_lengths(system.box)
    for membrane in system.topology.membranes:
        if membrane.mesh.box is not None:
            own = box_lengths(membrane.mesh.box)
            if (np.abs(own - lengths) > _SAME * own)[own > 0.0].any():
                has = "has none" if system.box is None else f"is {in_words(system.box)} nm"
                raise TopologyError(
                    f"{membrane.name}: its mesh was made for a box of {in_words(membrane.mesh.box)} nm, and that of "
                    f"the system {has}: System(topology, box=...) with its lengths, as mesh.box"
                )
    if system.box is None:
        return
    for handle in system.topology.handles:
        check_images("System", handle, cast(Any, handle).positions, lengths)
        if handle.kind.block is Block.NONE:
            for one in handle.kind.constraint_rows():
                x = system.topology.start_positions(one.beads, one.arms)
                expect_near(f"System: {handle.name!r}", x, one.form.at(x, one.own)[1], lengths)
    for membrane in system.topology.membranes:
        check_sheet("System", membrane, membrane.mesh.faces, membrane.positions, lengths)


def check_sheets(what: str, store: Store, x: np.ndarray, lengths: np.ndarray) -> None:
    """Refuse positions (n, 3) by place, in a box of these lengths, at which the membranes of a context would be torn;
    TopologyError."""
    for membrane in store.layout.topology.membranes:
        faces = store.layout.triangulation.connectivity(membrane).faces
        check_sheet(what, membrane, faces, x[store.layout.slice_of(membrane)], lengths)


def check_sheet(what: str, membrane: "Membrane", faces: np.ndarray, x: np.ndarray, lengths: np.ndarray) -> None:
    """Refuse positions (V, 3) of the vertices of a membrane at which an edge of a triangle (F, 3) is longer than half
    of the box: it would be taken for another one; TopologyError.

    Where a mesh closes through the sides of the box vertices may be any of their images: then what tells is a triangle
    whose edges, between nearest images, do not add up to nothing.
    """
    d = x[np.roll(faces, -1, axis=1)] - x[faces]
    near = displacement(x[faces], x[np.roll(faces, -1, axis=1)], lengths)
    if membrane.mesh.closes_through_the_box:
        torn = np.abs(near.sum(axis=1))[:, None] > 0.5 * np.where(lengths > 0.0, lengths, np.inf)
        torn, d = np.broadcast_to(torn, d.shape), near
    else:
        torn = np.abs(near - d) > 0.25 * np.where(lengths > 0.0, lengths, np.inf)
    if torn.any():
        share = np.where(torn, np.abs(d) / np.where(lengths > 0.0, lengths, np.inf), -1.0)
        f, k, c = (int(i) for i in np.unravel_index(np.argmax(share), share.shape))
        a, b = membrane.beads[np.sort(faces[f, [k, (k + 1) % 3]])]
        raise TopologyError(
            f"{what}: {membrane.name!r}: the edge of beads {a} and {b}, in triangle {f}, is {abs(d[f, k, c]):.6g} nm "
            f"long along {'xyz'[c]}, more than half of the box of {lengths[c]:.6g} nm, or its triangle does not close: "
            "nearest images would take the edge for another one, and the sheet would be torn. Give images that are "
            "next to each other, a larger box, or a finer mesh"
        )


def check_images(what: str, handle: Handle, x: np.ndarray, lengths: np.ndarray) -> None:
    """Refuse positions (n, 3) of beads of a handle of which two are joined and not next to each other: what is not
    meant to close through the sides of the box is given as one image, not wrapped; TopologyError."""
    joined = handle.kind.joined
    if not len(joined) or handle.kind.block is Block.VERTICES:
        # Membranes, whose edges may have flipped, are checked by `check_sheet`.
        return
    d = x[joined[:, 1]] - x[joined[:, 0]]
    far = np.abs(images_between(d, lengths)) > 0.25 * np.where(lengths > 0.0, lengths, np.inf)
    if far.any():
        i, c = (int(a) for a in np.argwhere(far)[0])
        a, b = handle.beads[joined[i]]
        raise TopologyError(
            f"{what}: {handle.name!r}: beads {a} and {b} are joined, and {abs(d[i, c]):.6g} nm apart along "
            f"{'xyz'[c]}, more than half the box of {lengths[c]:.6g} nm: give images that are next to each other, not "
            "positions wrapped into the box (a mesh that closes through its sides is made with box=)"
        )


def expect_lengths(what: str, box: Any, store: Store) -> np.ndarray:
    """Return a box for a context that is periodic in the same directions, (3,) nm, 0 in open ones; ParameterError."""
    given, here = box_lengths(checked_box(what, box)), store.layout.box
    if ((given > 0.0) != (here > 0.0)).any():
        c = int(np.argmax((given > 0.0) != (here > 0.0)))
        raise ParameterError(
            f"{what}: the system is {'periodic' if here[c] else 'open'} along {'xyz'[c]}, and the box given "
            f"{'periodic' if given[c] else 'open'}: make a new System"
        )
    return given


def expect_no_seam(what: str, store: Store) -> None:
    """Refuse membranes that would be torn; TopologyError."""
    for membrane in store.layout.topology.membranes:
        if membrane.mesh.closes_through_the_box:
            raise TopologyError(
                f"{what}: {membrane.name!r} closes through the sides of the box, and has to be scaled with it"
            )


def moved_with(what: str, store: Store, lengths: np.ndarray, fixed: FixedBeads) -> np.ndarray:
    """Return where beads are in a box of other lengths, (n, 3) nm by place, each unit by its centre; TopologyError of
    what cannot be moved."""
    before = store.layout.box
    growth = np.divide(lengths, before, out=np.ones(3), where=before > 0.0)
    x: np.ndarray = store.x.copy()
    # In-triangle points follow their triangles, at the images that they are at.
    x[store.layout.n_cartesian :] *= growth
    for places, n_fixed in units_of(what, store.layout, growth != 1.0, fixed):
        lead = places[:, : n_fixed or None]
        mass = store.mass[lead][..., None]
        total = mass.sum(axis=1)
        # Positions of inactive rows are not defined, and not used.
        centre = np.divide((mass * x[lead]).sum(axis=1), total, out=np.zeros((len(places), 3)), where=total > 0.0)
        x[places] += ((growth - 1.0) * centre)[:, None]
    return x
