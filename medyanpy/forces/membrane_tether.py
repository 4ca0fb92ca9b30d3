"""Energy that keeps the lengths of the edges of a fluid membrane in bounds."""

from typing import TYPE_CHECKING, Any

import numpy as np

from medyanpy._kernels.forces.membrane_edges import EdgeTether
from medyanpy._tools.sums import mean
from medyanpy.errors import ParameterError
from medyanpy.forces._base import declared, number
from medyanpy.forces._stiffness import Start
from medyanpy.forces.membrane import _MembraneForce

if TYPE_CHECKING:
    from medyanpy._kernels.core.program import Operation
    from medyanpy.core.layout import Layout

__all__ = ["MembraneTether"]

_LIMITS = ("l_min", "l_c1", "l_c0", "l_max")


@declared
class MembraneTether(_MembraneForce):
    r"""A smooth tether along every edge of a membrane: lengths stay between two walls, and are free in between.

    .. math:: U = \sum_e b \left[\frac{e^{1/(l_{c0} - l)}}{l_{max} - l}\Big|_{l > l_{c0}}
                  + \frac{e^{1/(l - l_{c1})}}{l - l_{min}}\Big|_{l < l_{c1}}\right], \qquad l = |e|/\ell

    It grows without bound towards l_min and l_max, and is zero, with all of its derivatives, between l_c1 and l_c0. So
    it has no elasticity of its own, and with `jumps.EdgeFlips` a membrane is a fluid.

    Raises
    ------
    TopologyError
        Not the handle of a membrane.
    ParameterError
        A number outside its domain, limits out of order, or an edge of the mesh that is not between l_min and l_max:
        also where limits are set later, since saved documents hold the mesh that the membrane started with.

    Notes
    -----
    A flip that would make an edge outside of the limits never happens. A timestep that carries an edge across a wall
    ends the run, since no force would bring it back. Edges of an icosphere of 2 to 4 subdivisions have 0.92 to 1.09 of
    their mean length. A flip of two triangles with equal sides turns an edge ℓ into √3 ℓ: with l_max below that, flips
    wait until the triangles are narrow enough, as with the published numbers. A larger l_max makes flips more frequent,
    and triangles more uneven. Cost: O(V). One flip costs the lengths of two edges.

    References
    ----------
    H. Noguchi, G. Gompper, Phys. Rev. E 72, 011901 (2005): both forms, and their numbers
    b = 80 kT, l_min = 0.67, l_c1 = 0.85, l_c0 = 1.15, l_max = 1.33.
    """

    strength: float = number("pN nm", "b; 80 kT in the source.", above=0.0)
    length: float | None = number(
        "nm", "ℓ, the unit of all lengths here; the mean length of the mesh's edges where none is given.",
        default=None, above=0.0,
    )  # fmt: skip
    l_min: float = number(
        "", "In units of ℓ, as the others; l_min < l_c1 <= l_c0 < l_max.", default=0.67, kw_only=True, at_least=0.0
    )
    l_c1: float = number("", "", default=0.85, kw_only=True, above=0.0)
    l_c0: float = number("", "", default=1.15, kw_only=True, above=0.0)
    l_max: float = number("", "", default=1.33, kw_only=True, above=0.0)

    def _checked(self, **numbers: Any) -> dict[str, Any]:
        if numbers["length"] is None:
            numbers["length"] = mean(self.membrane.mesh.edge_lengths)
        out = super()._checked(**numbers)
        least, repelled, attracted, most = (out[name] for name in _LIMITS)
        if not least < repelled <= attracted < most:
            given = ", ".join(f"{name} = {out[name]:g}" for name in _LIMITS)
            raise ParameterError(f"{self.name}: {given} but must be l_min < l_c1 <= l_c0 < l_max")
        lengths = self.membrane.mesh.edge_lengths / out["length"]
        outside = (lengths <= least) | (lengths >= most)
        if outside.any():
            e = int(np.argmax(outside))
            i, j = self.membrane.mesh.edges[e].tolist()
            raise ParameterError(
                f"{self.name}: edge {e} of {self.membrane.name!r}, from vertex {i} to {j}, starts with "
                f"{lengths[e]:.4g} of the length {out['length']:.6g} nm, but must be between l_min = {least:g} and "
                f"l_max = {most:g}"
            )
        return out

    def squared_frequencies(self, start: Start) -> np.ndarray | None:
        mesh = self.membrane.mesh
        b, length, least, repelled, attracted, most = self._named("strength", "length", *_LIMITS)
        x = mesh.edge_lengths / length
        first, second = np.zeros(len(x)), np.zeros(len(x))
        for s, w, sign in ((x - attracted, most - x, 1.0), (repelled - x, x - least, -1.0)):
            there = s > 0.0
            q, v = 1.0 / s[there], 1.0 / w[there]
            u, slope = b * np.exp(-q) * v, q**2 + v
            first[there] += sign * u * slope
            second[there] += u * (slope**2 - 2.0 * q**3 + v**2)
        stiffness = np.maximum(np.abs(second), np.abs(first) / x) / length**2
        out: np.ndarray = start.bonds(self.membrane.beads[mesh.edges], stiffness)
        return out

    @property
    def keeps_triangles(self) -> str:
        return "MembraneTether"

    def bind(self, layout: "Layout") -> "Operation":
        # Edges do not get longer than this.
        layout.expect_width(self.name, self._numbers["length"] * self._numbers["l_max"])
        return EdgeTether(*self._place(layout), *self._named("strength", "length", *_LIMITS))
