"""Mobility of several rigid bodies, each a cluster of beads."""

from collections.abc import Sequence

import numpy as np

from medyanpy._tools.names import plainly_called
from medyanpy._tools.types import Numbers
from medyanpy._tools.validation import array
from medyanpy.errors import ParameterError
from medyanpy.rigid.bead_models import friction_of_clusters, spheres_of

__all__ = ["cluster_mobility_matrix"]


@plainly_called
def cluster_mobility_matrix(
    clusters: "Sequence[tuple[Numbers, Numbers]]", viscosity: float, *, points: "Numbers | None" = None,
    stresslets: bool = True, max_memory: float = 4e9,
) -> np.ndarray:  # fmt: skip
    """Return the mobility of rigid bodies that are clusters of spheres: their motions by forces and torques on any.

    Spheres of all bodies interact by the tensors of `rigid.bead_model_friction`, and move as their body does: with the
    mobility M of spheres and the motions K of spheres by those of bodies it is (Kᵀ M⁻¹ K)⁻¹. Positive definite for any
    places.

    Parameters
    ----------
    clusters : m pairs of centers (n, 3) and radii, float or (n,) float, nm, > 0
        Where the spheres of each body are, in space.
    viscosity : float, pN s/nm², > 0
        Of water `presets.WATER`.
    points : (m, 3) float, nm, optional
        A point of each body that forces act at, and whose velocity is meant. By default the mean of its centres.
    stresslets, max_memory
        As in `rigid.bead_model_friction`, of all spheres together.

    Returns
    -------
    (6m, 6m) float array
        Six numbers of each body, translation first, in the axes of space: nm/(pN s), 1/(pN s) and 1/(pN nm s) in its
        blocks.

    Raises
    ------
    ParameterError
        Numbers outside of their domain, more spheres than `max_memory` holds, spheres too similar to be told apart.

    Notes
    -----
    The friction of all bodies is never above that of the bodies which the spheres make, in any motion. Surfaces closer
    than the radius of a sphere need smaller ones there. Steps of `RotnePrager` do not use this matrix: there each body
    acts on others as one sphere.

    References
    ----------
    Those of `rigid.bead_model_friction`; J. W. Swan, J. F. Brady, R. S. Moore, Phys. Fluids 23, 071901 (2011), and
    F. Balboa Usabiaga and others, Commun. Appl. Math. Comput. Sci. 11, 217 (2016): rigid clusters. See
    :doc:`/theory/hydrodynamics`.

    Examples
    --------
    Two dumbbells side by side: pushed along their axes together, they move faster than one alone.

    >>> import numpy as np
    >>> import medyanpy as mp
    >>> dumbbell = np.array([[0, 0, -1.0], [0, 0, 1.0]])
    >>> clusters = [(dumbbell, 1.0), (dumbbell + [4.0, 0, 0], 1.0)]
    >>> m = mp.hydrodynamics.cluster_mobility_matrix(clusters, 1 / (6 * np.pi))
    >>> m.shape, (m[2, 2] + m[2, 8] > 1.2 * m[2, 2]).item()
    ((12, 12), True)
    """
    what = "cluster_mobility_matrix"
    if not len(clusters):
        raise ParameterError(f"{what}: clusters must hold at least one body")
    spheres = []
    for k, cluster in enumerate(clusters):
        if not isinstance(cluster, Sequence) or len(cluster) != 2:
            raise ParameterError(f"{what}: clusters[{k}] must be a pair of centers and radii")
        spheres.append(spheres_of(what, f"clusters[{k}]: ", *cluster))
    middles = np.array([x.mean(axis=0) for x, _ in spheres])
    about = middles if points is None else array(f"{what}: points", points, (len(spheres), 3))
    body = np.repeat(np.arange(len(spheres)), [len(x) for x, _ in spheres])
    x, a = (np.concatenate([one[k] for one in spheres]) for k in range(2))
    friction = friction_of_clusters(what, x, a, body, about, viscosity, stresslets, max_memory)
    scale = np.sqrt(np.diagonal(friction))
    # Of like size, before it is inverted.
    inverse = np.linalg.inv(friction / scale[:, None] / scale) / scale[:, None] / scale
    out: np.ndarray = 0.5 * (inverse + inverse.T)
    return out
