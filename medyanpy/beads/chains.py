"""Chains and rings of beads, and the links between them."""

from typing import Any, Literal, cast

import numpy as np

from medyanpy._tools.quaternions import product, smallest_turn, turned
from medyanpy._tools.types import Numbers
from medyanpy._tools.validation import one_or_many
from medyanpy.core.handles import Handle, chosen, together
from medyanpy.core.kinds import Kind
from medyanpy.errors import TopologyError

__all__ = ["Chains", "carried_along", "shares_of_links", "with_edges"]


def shares_of_links(x: np.ndarray, closed: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return lengths (l,) of the links of a chain of nodes (n, 3), and what each node has of them, (n,): a half of
    each."""
    # The last node of an open chain has no link after it.
    link = np.linalg.norm(np.diff(x, axis=0, append=x[:1] if closed else x[-1:]), axis=1)
    return (link if closed else link[:-1]), 0.5 * (link + np.roll(link, 1))


class ChainsKind(Kind):
    """Base of kinds of chains or rings of beads."""

    handle: "Chains"
    #: Name of one chain in messages.
    chain = "chain"
    #: Attributes with a value for every link, and for every chain.
    per_link: tuple[str, ...] = ()
    per_chain: tuple[str, ...] = ()

    @property
    def joined(self) -> np.ndarray:
        return self.handle.links

    def beside_frames(self) -> dict[str, Any]:
        chains = self.handle
        return {**super().beside_frames(), "links": chains.links, "starts": chains.starts, "closed": chains.closed}

    @property
    def link_starts(self) -> np.ndarray:
        """Number of the first link of each chain, (f + 1,)."""
        return self.handle.starts if self.handle.closed else self.handle.starts - np.arange(len(self.handle.starts))

    @property
    def slots(self) -> np.ndarray | None:
        """Rows of the nodes that each chain may have, where these come and go; None elsewhere."""
        return None

    @property
    def n_chains(self) -> int:
        return len(self.handle.starts) - 1

    @property
    def node_chains(self) -> np.ndarray:
        """Chain of every node, (n,)."""
        return np.repeat(np.arange(self.n_chains), np.diff(self.handle.starts))

    @property
    def link_chains(self) -> np.ndarray:
        """Chain of every link, (l,)."""
        return np.repeat(np.arange(self.n_chains), np.diff(self.link_starts))

    def chain_of(self, bead: int) -> int:
        """Return the chain of a bead of the topology."""
        return int(np.searchsorted(self.handle.starts, self._node(bead), side="right")) - 1

    def _node(self, bead: int) -> int:
        """Return the number of a bead among the handle's nodes."""
        return int(np.flatnonzero(self.handle.beads == bead)[0])

    def describe(self, bead: int) -> str:
        i = self.chain_of(bead)
        return f"node {self._node(bead) - self.handle.starts[i]} of {self.chain} {i}"

    def describe_link(self, link: int) -> str:
        """Name one of the handle's links by its chain and its number there, for messages."""
        i = int(np.searchsorted(self.link_starts, link, side="right")) - 1
        return f"link {link - self.link_starts[i]} of {self.chain} {i}"

    def chain_rows(self, repeats: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return a row for every node, chain after chain, with `repeats` more at both ends of a ring.

        These repeat the nodes there. Returns the node of each row among the handle's, its chain, and its place in that,
        from -repeats on.
        """
        repeats = repeats if self.handle.closed else 0
        n = np.diff(self.handle.starts)
        rows = n + 2 * repeats
        which = np.repeat(np.arange(len(n)), rows)
        k = np.arange(rows.sum()) - (np.cumsum(rows) - rows)[which] - repeats
        return self.handle.starts[which] + k % n[which], which, k


class Chains(Handle, kind=ChainsKind):
    """Base of handles of chains or rings of beads, one after another.

    Attributes
    ----------
    starts : (f + 1,) int array
        Where the nodes of each chain start, among the handle's nodes.
    closed : bool
        True for rings: then a link joins the last node to the first.
    """

    kind: ChainsKind
    starts: np.ndarray
    closed: bool

    # Coming and going ----------------------------------------------------------------------------------------

    def remove(  # type: ignore[override]
        self, which: Numbers, *, terms: Literal["refuse", "remove"] = "refuse"
    ) -> None:
        """Remove whole chains.

        The rows of their nodes are inactive afterwards, until others take them. Chains behind them get new numbers;
        nodes keep their rows.

        Of a running simulation, inside ``with topology.edit():``. Forces that name the handle act on the remaining
        chains.

        Parameters
        ----------
        which : (k,) int or int
            Numbers of chains, counted from 0 within the handle.
        terms : "refuse" or "remove"
            As of `Handle.remove`.

        Raises
        ------
        TopologyError
            A number of no chain, or one named twice. Terms that name a node that would be removed. A topology in use
            outside of an edit.
        """
        what, chain, n = f"{self.name}.remove", self.kind.chain, self.kind.n_chains
        wanted = one_or_many(f"{what}: {chain}s", which, dtype=np.int64, error=TopologyError)
        bad = (wanted < 0) | (wanted >= n)
        if bad.any():
            i = int(np.argmax(bad))
            there = f"there are {chain}s 0 to {n - 1}" if n else "there are none"
            raise TopologyError(f"{what}: {chain}s[{i}] = {wanted[i]}, but {there}")
        if len(np.unique(wanted)) < len(wanted):
            twice = np.sort(wanted)
            raise TopologyError(f"{what}: {chain} {twice[1:][twice[1:] == twice[:-1]][0]} is named twice")
        keep = np.ones(n, bool)
        keep[wanted] = False
        self.topology._shrink(what, self._kept_of(keep), terms)

    def _kept_of(self, chains: np.ndarray) -> dict[Handle, np.ndarray]:
        """Mark the beads that stay with these chains (f,): of this handle, and of handles that have beads on them."""
        return {self: chains[self.kind.node_chains]}

    def _merged(self, other: Handle) -> dict[str, Any]:
        names = (*self.kind.per_link, *self.kind.per_chain)
        parts = {name: together(getattr(self, name), getattr(other, name)) for name in names}
        starts = np.concatenate([self.starts, self.starts[-1] + cast(Any, other).starts[1:]])
        return {**super()._merged(other), **parts, "starts": starts}

    def _chosen(self, keep: np.ndarray) -> dict[str, Any]:
        # A chain is kept whole.
        chains = keep[self.starts[:-1]]
        links = chains[self.kind.link_chains]
        parts = {name: chosen(getattr(self, name), links) for name in self.kind.per_link}
        parts |= {name: chosen(getattr(self, name), chains) for name in self.kind.per_chain}
        starts = np.cumsum(np.append(0, np.diff(self.starts)[chains]))
        return {**super()._chosen(keep), **parts, "starts": starts}

    @property
    def links(self) -> np.ndarray:
        """Nodes of every link, (l, 2), among the handle's nodes; the last of a ring leads to its first node."""
        if "_links" not in vars(self):
            # Used by every force and every report.
            vars(self)["_links"] = self._made_links()
            vars(self)["_links"].flags.writeable = False
        links: np.ndarray = vars(self)["_links"]
        return links

    def _made_links(self) -> np.ndarray:
        nodes = np.arange(self.starts[-1])
        following = nodes + 1
        if self.closed:
            following[self.starts[1:] - 1] = self.starts[:-1]
            return np.column_stack([nodes, following])
        return np.delete(np.column_stack([nodes, following]), self.starts[1:] - 1, axis=0)


def with_edges(node: np.ndarray, repeats: int) -> np.ndarray:
    """Repeat the first and the last of the rows of `ChainsKind.chain_rows`; return as many zeros without chains."""
    return np.pad(node, repeats, mode="edge" if len(node) else "constant")


def carried_along(t: np.ndarray, starts: np.ndarray, closed: bool) -> np.ndarray:
    """Return unit vectors (n, 3) perpendicular to unit tangents (n, 3) of chains, without twist.

    The first of each chain is carried along it by the smallest rotations that take each tangent to the next. The twist
    that a ring needs to close is spread evenly.
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
    out: np.ndarray = p / np.linalg.norm(p, axis=1)[:, None]
    return out
