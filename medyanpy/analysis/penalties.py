"""Lagrange multipliers estimated from penalties that replace constraints."""

from typing import Any

import numpy as np

from medyanpy._tools.validation import array, whole_number
from medyanpy.errors import ParameterError
from medyanpy.forces import ConstraintPenalty, LinkLengthPenalty, OrthonormalFramePenalty, RigidTrianglePenalty

__all__ = ["constraint_multipliers"]


def constraint_multipliers(
    positions: Any,
    penalty: LinkLengthPenalty | RigidTrianglePenalty | OrthonormalFramePenalty | ConstraintPenalty,
    window: int = 1,
    *,
    box: Any = None,
) -> np.ndarray:
    r"""Return Lagrange multipliers of the constraints that a penalty replaces.

    .. math:: \lambda(t) = \lim_{T \to 0} \lim_{\omega \to \infty} \frac1T \int_t^{t+T} \omega^2 g(q(s))\,ds

    For a stiff penalty ω²g continues to oscillate. Its means over a time much longer than 1/ω have the limit λ: the
    multiplier of the constraints g = 0 in place of the penalty, on which -λ ∇g acts, with the sign of
    ``get_state(multipliers=True).multipliers``. Source: M. Tao, H. Owhadi, "Variational and linearly-implicit
    integrators, with applications", Theorem 1.2; their λ has the other sign.

    Parameters
    ----------
    positions : (m, n, 3) float, nm
        Of all beads of the topology in frames at equal distances in time: `State.physical_positions`, with linearly
        implicit kicks.
    penalty : LinkLengthPenalty, RigidTrianglePenalty, OrthonormalFramePenalty or ConstraintPenalty
    window : int, >= 1
        Frames in each mean.
    box : (3,) of float, nm, > 0, or None, optional
        Of a `LinkLengthPenalty` or a `RigidTrianglePenalty` in a periodic box, whose distances are those of nearest
        images. The other two are functions of positions as they are, whatever the box.

    Returns
    -------
    (m - window + 1, ...) float, pN/nm
        Means over successive windows, in the shapes of the penalty's own ``multipliers``.

    Raises
    ------
    ParameterError
        Not a penalty, positions of another shape, fewer frames than a window; a box outside its domain, or for a
        penalty that does not take one.
    """
    what = "constraint_multipliers"
    if isinstance(penalty, LinkLengthPenalty):
        beads = penalty.pairs
    elif isinstance(penalty, RigidTrianglePenalty | OrthonormalFramePenalty):
        beads = penalty.triples
    elif isinstance(penalty, ConstraintPenalty):
        beads = penalty.members
    else:
        raise ParameterError(f"{what}: penalty must be one of the penalties of medyanpy.forces, not {penalty!r}")
    x = array(f"{what}: positions", positions, (None, None, 3))
    window = whole_number(f"{what}: window", window, at_least=1)
    if len(x) < window:
        raise ParameterError(f"{what}: window = {window} but there are {len(x)} frames")
    last = int(beads.max(initial=0))
    if last >= x.shape[1]:
        raise ParameterError(f"{what}: positions have {x.shape[1]} rows, but {penalty.name} acts on bead {last}")
    if box is None:
        values = penalty.multipliers(x)
    elif isinstance(penalty, LinkLengthPenalty | RigidTrianglePenalty):
        values = penalty.multipliers(x, box)
    else:
        raise ParameterError(f"{what}: {penalty.name} is a function of unwrapped positions: leave the box out")
    return np.asarray(np.lib.stride_tricks.sliding_window_view(values, window, axis=0).mean(axis=-1))
