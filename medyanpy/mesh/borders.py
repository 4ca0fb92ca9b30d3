"""Ordered loops of border edges, by networkx: borders are short even where meshes are large."""

import numpy as np


def border_loops(tails: np.ndarray, heads: np.ndarray) -> list[np.ndarray]:
    """Join directed border edges into closed vertex loops.

    Parameters
    ----------
    tails, heads : (B,) int
        Vertices where each border edge starts and ends. The caller guarantees that every vertex starts
        exactly one border edge and ends exactly one (no bow-ties, consistent orientation).

    Returns
    -------
    list of (n,) int32
        Loops in the direction of the edges, each from its lowest vertex, sorted by that vertex.
    """
    if len(tails) == 0:
        return []
    import networkx as nx

    graph = nx.DiGraph()
    graph.add_edges_from(zip(tails.tolist(), heads.tolist(), strict=True))
    starts = sorted(min(loop) for loop in nx.weakly_connected_components(graph))
    # On a directed cycle a depth-first walk visits the vertices in the order of the cycle.
    return [np.fromiter(nx.dfs_preorder_nodes(graph, start), dtype=np.int32) for start in starts]
