r"""Elastic networks of proteins, and rigid domains found from their fluctuations.

Every Cα is tied to those within a cutoff, and to three before and behind it in its chain, by a spring at rest (Atilgan
and others 2001). With displacements u and unit vectors e along contacts, U = ½ k Σ (e·(u_j - u_i))². At kT its modes
have the variances kT/kλ, and the length of a contact fluctuates by :math:`f_{ij}^2 = kT/k \sum_m (e\cdot(v_j -
v_i))^2/\lambda_m`: little within a rigid domain, much between two. Domains are found from these by spectral clustering
(Ponzoni, Polles, Carnevale and Micheletti 2015): similarities exp(-f²/2⟨f⟩²) of contacts, the eigenvectors of the
normalised graph, and clusters of directions of their rows.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np

from medyanpy._tools.names import plainly_called
from medyanpy._tools.validation import number, whole_number
from medyanpy.errors import ParameterError
from medyanpy.rigid.structures import Structure

__all__ = ["Domains", "ElasticNetwork", "elastic_network", "rigid_domains"]

# Eigenvalues below this, relative to the largest, are motions without resistance.
_FREE = 1e-10
# Starts of the clustering, of which the best counts; random directions with which a score is compared.
_STARTS, _RANDOM = 40, 400


@dataclass(frozen=True, eq=False)
class ElasticNetwork:
    """Springs between Cα atoms, and the softest modes of the network.

    Attributes
    ----------
    positions : (n, 3) float array, nm
    contacts : (p, 2) int array
        Pairs that are tied, the lower first.
    stiffness : float, pN/nm
        Of each spring.
    eigenvalues : (m,) float array
        Of U / (k/2), ascending; those of motions as a whole are left out.
    modes : (m, n, 3) float array
        Orthonormal.
    """

    positions: np.ndarray
    contacts: np.ndarray
    stiffness: float
    eigenvalues: np.ndarray
    modes: np.ndarray

    @property
    def directions(self) -> np.ndarray:
        """Unit vectors (p, 3) along contacts."""
        return _directions(self.positions, self.contacts)

    def contact_fluctuations(self, kT: float) -> np.ndarray:
        """Return the root mean square change of the length of each contact, (p,) nm, by the modes kept."""
        i, j = self.contacts.T
        along = np.einsum("pk,mpk->mp", self.directions, self.modes[:, j] - self.modes[:, i])
        out: np.ndarray = np.sqrt(kT / self.stiffness * (along**2 / self.eigenvalues[:, None]).sum(axis=0))
        return out

    def squared_displacements(self, kT: float) -> np.ndarray:
        """Return the mean square displacement of each atom, (n,) nm²."""
        out: np.ndarray = kT / self.stiffness * ((self.modes**2).sum(axis=2) / self.eigenvalues[:, None]).sum(axis=0)
        return out

    def __repr__(self) -> str:
        springs = f"{len(self.contacts)} springs of {self.stiffness:.3g} pN/nm"
        return f"ElasticNetwork({len(self.positions)} atoms, {springs}, {len(self.modes)} modes)"


@plainly_called
def elastic_network(
    structure: Structure, *, cutoff: float = 1.0, stiffness: float | None = None, kT: float = 4.142, modes: int = 60
) -> ElasticNetwork:
    """Make the elastic network of the Cα atoms of a structure.

    Parameters
    ----------
    structure : Structure
    cutoff : float, nm, > 0
        Atoms nearer than this are tied; and those up to three apart in a chain.
    stiffness : float, pN/nm, > 0, optional
        Of each spring. By default such that fluctuations at kT are those of the B factors, in the mean over all Cα:
        8π²/3 ⟨u²⟩, which in a crystal has other causes, too.
    kT : float, pN nm, > 0
        Of the crystal.
    modes : int, >= 1
        Number of the softest modes that are kept. Stiffer ones move neighbours against each other, not domains.

    Raises
    ------
    ParameterError
        A number outside its domain. Fewer than four Cα. Parts that are not held together, named by their loosest
        residues. A structure without B factors, where no stiffness is given.
    """
    what = "elastic_network"
    if not isinstance(structure, Structure):
        raise ParameterError(f"{what}: structure must be a Structure, as read_structure makes it, not {structure!r}")
    reach = number(f"{what}: cutoff", cutoff, above=0.0)
    energy = number(f"{what}: kT", kT, above=0.0)
    wanted = whole_number(f"{what}: modes", modes, at_least=1)
    x = structure.positions[structure.alpha]
    if len(x) < 4:
        raise ParameterError(f"{what}: {len(x)} Cα are too few for a network")
    contacts = _contacts(x, reach, structure.breaks)
    wanted = min(wanted, 3 * len(x) - 6)
    values, vectors = _softest(x, contacts, wanted + 6)
    free = int((values < _FREE * 4.0 * len(contacts) / len(x)).sum())
    if free > 6:
        loose = (vectors[:, 6:free] ** 2).sum(axis=1).reshape(-1, 3).sum(axis=1)
        worst = [structure.residues[structure.residue_of[structure.alpha[k]]] for k in np.argsort(-loose)[:3]]
        raise ParameterError(
            f"{what}: {free - 6} motions of parts are resisted by nothing, most of all of {worst[0]}, {worst[1]} and "
            f"{worst[2]}: a cutoff above {reach:g} nm ties them"
        )
    found = vectors[:, 6:].T.reshape(wanted, -1, 3)
    network = ElasticNetwork(x, contacts, 1.0, values[6:], found)
    if stiffness is None:
        measured = structure.b_factors[structure.alpha].mean() * 3.0 / (8.0 * np.pi**2)
        if not measured > 0.0:
            raise ParameterError(f"{what}: the structure has no B factors: give the stiffness of the springs")
        k = float(network.squared_displacements(energy).mean() / measured)
    else:
        k = number(f"{what}: stiffness", stiffness, above=0.0)
    return ElasticNetwork(x, contacts, k, values[6:], found)


def _directions(x: np.ndarray, contacts: np.ndarray) -> np.ndarray:
    d = x[contacts[:, 1]] - x[contacts[:, 0]]
    out: np.ndarray = d / np.linalg.norm(d, axis=1)[:, None]
    return out


def _contacts(x: np.ndarray, cutoff: float, breaks: np.ndarray) -> np.ndarray:
    from scipy.spatial import cKDTree

    near = cKDTree(x).query_pairs(cutoff, output_type="ndarray").reshape(-1, 2)
    # Three neighbours along a chain hold one that has no others.
    segment = np.cumsum(breaks)
    along = [np.column_stack([np.arange(len(x) - k), np.arange(k, len(x))]) for k in (1, 2, 3)]
    chains = np.concatenate([pairs[segment[pairs[:, 0]] == segment[pairs[:, 1]]] for pairs in along])
    return np.unique(np.concatenate([near, chains]), axis=0)


def _softest(x: np.ndarray, contacts: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the n lowest eigenvalues of the network of unit springs, and eigenvectors (3 n_atoms, n)."""
    from scipy.linalg import eigh
    from scipy.sparse import coo_array
    from scipy.sparse.linalg import eigsh

    e = _directions(x, contacts)
    p = len(contacts)
    # Rows are the changes of length of contacts.
    columns = (3 * contacts[:, :, None] + np.arange(3)).reshape(p, 6)
    entries = np.concatenate([-e, e], axis=1).ravel(), (np.repeat(np.arange(p), 6), columns.ravel())
    stretch = coo_array(entries, (p, 3 * len(x))).tocsr()
    hessian = (stretch.T @ stretch).tocsc()
    size = 3 * len(x)
    if size <= 2000 or n > size // 3:
        values, vectors = eigh(hessian.toarray(), subset_by_index=(0, n - 1), driver="evr")
        return np.maximum(values, 0.0), vectors
    # A shift below all eigenvalues; the start is the same each time.
    start = np.random.default_rng(0).normal(size=size)
    values, vectors = eigsh(hessian, k=n, sigma=-1e-3, which="LM", v0=start)
    order = np.argsort(values)
    return np.maximum(values[order], 0.0), vectors[:, order]


# Domains ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Domains:
    """Residues that move as rigid domains.

    Attributes
    ----------
    labels : (m,) int array
        The domain of each Cα: 0 is the largest.
    scores : dict of int to float
        For each number of domains that was tried, how much more compact its clusters are than those of random
        directions: higher is better, and peaks are natural divisions of the molecule.
    """

    labels: np.ndarray
    scores: dict[int, float]

    @property
    def n(self) -> int:
        return int(self.labels.max()) + 1

    @property
    def sizes(self) -> np.ndarray:
        """Number of Cα of each domain, (n,)."""
        return np.bincount(self.labels)

    def __repr__(self) -> str:
        scores = ", ".join(f"{n}: {score:.1f}" for n, score in self.scores.items())
        return f"Domains({self.n} of {', '.join(map(str, self.sizes))} residues; scores {scores})"


@plainly_called
def rigid_domains(network: ElasticNetwork, n: int | None = None, *, most: int = 10) -> Domains:
    """Divide a protein into domains that stay rigid in its fluctuations.

    Parameters
    ----------
    network : ElasticNetwork
    n : int, >= 2, optional
        Number of domains. By default the one with the highest score; a molecule may have other divisions, at other
        peaks of the scores, such as the layers and the subunits of a channel.
    most : int, >= 2
        Numbers up to this are scored.

    Raises
    ------
    ParameterError
        A number outside its domain, or more domains than a fourth of the residues.

    References
    ----------
    L. Ponzoni, G. Polles, V. Carnevale, C. Micheletti, Structure 23, 1516 (2015): the method. Scores here compare mean
    square distances from the middle of clusters with those of random directions.
    """
    what = "rigid_domains"
    if not isinstance(network, ElasticNetwork):
        raise ParameterError(f"{what}: network must be an ElasticNetwork, as elastic_network makes it")
    limit = len(network.positions) // 4
    most = whole_number(f"{what}: most", most, at_least=2)
    if n is not None:
        n = whole_number(f"{what}: n", n, at_least=2, at_most=limit)
    numbers = range(2, max(n or 2, min(most, limit)) + 1)
    rows = _spectrum(network, numbers[-1])
    scores, labels = {}, {}
    for k in numbers:
        spread, labels[k] = _clusters(rows[:, :k])
        scores[k] = _spread_of_random(k) / max(spread, 1e-12)
    best = max(scores, key=lambda k: scores[k]) if n is None else n
    found = labels[best]
    # The largest first; of equal ones the one that comes first.
    order = np.lexsort((np.array([np.argmax(found == k) for k in range(best)]), -np.bincount(found, minlength=best)))
    return Domains(np.argsort(order)[found], scores)


def _spectrum(network: ElasticNetwork, n: int) -> np.ndarray:
    """Return eigenvectors (m, n) of the graph of similarities, the most common first."""
    from scipy.sparse import coo_array
    from scipy.sparse.linalg import eigsh

    f = network.contact_fluctuations(network.stiffness)
    similarity = np.exp(-0.5 * (f / f.mean()) ** 2)
    i, j = network.contacts.T
    m = len(network.positions)
    total = np.bincount(i, similarity, m) + np.bincount(j, similarity, m)
    scaled = similarity / np.sqrt(total[i] * total[j])
    graph = coo_array((np.concatenate([scaled, scaled]), (np.append(i, j), np.append(j, i))), (m, m)).tocsr()
    values, vectors = eigsh(graph, k=n, which="LA", v0=np.random.default_rng(0).normal(size=m))
    out: np.ndarray = vectors[:, np.argsort(-values)]
    return out


def _clusters(rows: np.ndarray) -> tuple[float, np.ndarray]:
    """Cluster directions, as many as components: the mean square distance from the middles, and the clusters (m,)."""
    from scipy.cluster.vq import ClusterError, kmeans2

    k = rows.shape[1]
    length = np.linalg.norm(rows, axis=1)
    y = rows / np.where(length > 0.0, length, 1.0)[:, None]
    best = np.inf, np.zeros(len(rows), np.int64)
    for seed in range(_STARTS):
        try:
            _, labels = kmeans2(y, k, minit="++", seed=seed, missing="raise")
        except ClusterError:
            continue  # a cluster is empty
        middles = np.array([y[labels == c].sum(axis=0) for c in range(k)])
        middles /= np.linalg.norm(middles, axis=1)[:, None]
        spread = float(((y - middles[labels]) ** 2).sum() / len(y))
        if spread < best[0]:
            best = spread, labels
    return best


@cache
def _spread_of_random(k: int) -> float:
    """Return the spread that `_clusters` finds for random directions."""
    return _clusters(np.random.default_rng(k).normal(size=(_RANDOM, k)))[0]
