"""Chains and rings: how beads that follow each other are joined."""

from typing import Any

import numpy as np

from medyanpy._tools.quaternions import product, smallest_turn, turned

__all__ = ["Chains", "carried_along"]


class Chains:
    """What handles of chains or rings of beads, one after another, have in common.

    Attributes
    ----------
    starts : (f + 1,) int array
        Where the nodes of each chain start, among the handle's nodes.
    closed : bool
        Whether the chains are rings: then a link joins the last node to the first.
    """

    #: What one of them is called in messages.
    chain = "chain"
    starts: np.ndarray
    closed: bool

    @property
    def links(self) -> np.ndarray:
        """(l, 2) the two nodes of every link, among the handle's nodes, chain after chain; the last of a ring leads
        back to its first node."""
        if "_links" not in vars(self):
            # Asked for by every force and every report.
            vars(self)["_links"] = self._made_links()
            vars(self)["_links"].flags.writeable = False
        return vars(self)["_links"]

    def _made_links(self) -> np.ndarray:
        nodes = np.arange(self.starts[-1])
        following = nodes + 1
        if self.closed:
            following[self.starts[1:] - 1] = self.starts[:-1]
            return np.column_stack([nodes, following])
        return np.delete(np.column_stack([nodes, following]), self.starts[1:] - 1, axis=0)

    @property
    def joined(self) -> np.ndarray:
        return self.links

    def beside_frames(self) -> dict[str, Any]:
        return {**super().beside_frames(), "links": self.links}

    @property
    def link_starts(self) -> np.ndarray:
        """(f + 1,) where the links of each chain start."""
        return self.starts if self.closed else self.starts - np.arange(len(self.starts))

    @property
    def n_chains(self) -> int:
        return len(self.starts) - 1

    @property
    def node_chains(self) -> np.ndarray:
        """(n,) the chain of every node."""
        return np.repeat(np.arange(self.n_chains), np.diff(self.starts))

    @property
    def link_chains(self) -> np.ndarray:
        """(l,) the chain of every link."""
        return np.repeat(np.arange(self.n_chains), np.diff(self.link_starts))

    def chain_of(self, bead: int) -> int:
        """The chain that a bead of the topology belongs to."""
        return int(np.searchsorted(self.starts, bead - self.first_bead, side="right")) - 1

    def describe(self, bead: int) -> str:
        i = self.chain_of(bead)
        return f"node {bead - self.first_bead - self.starts[i]} of {self.chain} {i}"

    def describe_link(self, link: int) -> str:
        """Which link of which chain one of the handle's links is, for messages."""
        i = int(np.searchsorted(self.link_starts, link, side="right")) - 1
        return f"link {link - self.link_starts[i]} of {self.chain} {i}"

    def chain_rows(self, repeats: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """A row for every node, chain after chain, with `repeats` more at both ends of a ring, which repeat the nodes
        found there: the node of each row among the handle's, its chain, and where it is in that, from -repeats on."""
        repeats = repeats if self.closed else 0
        n = np.diff(self.starts)
        rows = n + 2 * repeats
        which = np.repeat(np.arange(len(n)), rows)
        k = np.arange(rows.sum()) - (np.cumsum(rows) - rows)[which] - repeats
        return self.starts[which] + k % n[which], which, k


def carried_along(t: np.ndarray, starts: np.ndarray, closed: bool) -> np.ndarray:
    """(n, 3) unit vectors perpendicular to unit tangents (n, 3) of chains, without twist.

    The first of each chain is carried along it by the smallest rotations that take each tangent to the next. What a
    ring needs to close is spread evenly.
    """
    starts, counts = starts[:-1], np.diff(starts)
    since = np.arange(len(t)) - np.repeat(starts, counts)
    turns = smallest_turn(np.roll(t, 1, axis=0), t)
    turns[starts] = [1.0, 0.0, 0.0, 0.0]
    # Products of all turns since the first link: of 1, 2, 4, ... of them.
    reach = 1
    while reach < counts.max(initial=0):
        late = np.flatnonzero(since >= reach)
        longer = product(turns[late], turns[late - reach])
        turns[late] = longer / np.linalg.norm(longer, axis=1)[:, None]
        reach *= 2
    first = np.eye(3)[np.argmin(np.abs(t[starts]), axis=1)]
    first -= np.einsum("ij,ij->i", first, t[starts])[:, None] * t[starts]
    p = turned(turns, np.repeat(first, counts, axis=0))
    if closed:
        last = starts + counts - 1
        arrived = turned(smallest_turn(t[last], t[starts]), p[last])
        across = np.cross(t[starts], first)
        missing = -np.arctan2(np.einsum("ij,ij->i", arrived, across), np.einsum("ij,ij->i", arrived, first))
        angle = (since * np.repeat(missing / counts, counts))[:, None]
        p = np.cos(angle) * p + np.sin(angle) * np.cross(t, p)
    p -= np.einsum("ij,ij->i", p, t)[:, None] * t
    return p / np.linalg.norm(p, axis=1)[:, None]
