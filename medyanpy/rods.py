"""Shapes and sections of elastic rods: what `Topology.add_rod` and `forces.RodElasticity` are given."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from medyanpy._tools.names import plainly_called
from medyanpy._tools.quaternions import from_matrices
from medyanpy._tools.sums import lengths, row_products
from medyanpy._tools.types import Numbers
from medyanpy._tools.validation import array, number, vector, whole_number
from medyanpy.beads.chains import carried_along, shares_of_links
from medyanpy.errors import ParameterError, TopologyError

__all__ = ["CircularSection", "frames", "uniform"]


@dataclass(frozen=True)
class CircularSection:
    r"""A round cross-section of an isotropic material: what a rod of it resists, and what it weighs.

    .. math:: C_1 = C_2 = \kappa G A,\quad C_3 = Y A,\quad B_1 = B_2 = Y I,\quad B_3 = 2 G I,
              \qquad A = \pi r^2,\ I = \pi r^4/4,\ G = \frac{Y}{2(1 + \nu)}

    Parameters
    ----------
    radius, youngs_modulus, poisson_ratio : float, nm, > 0; pN/nm² (MPa), > 0; > -1 and <= 0.5
        r, Y and ν.
    density : float, pN s²/nm⁴, > 0
        Mass per volume; water has 1e-21.
    shear_correction : float, > 0
        κ; 1 as in the source, 6(1 + ν)/(7 + 6ν) after Timoshenko and Cowper.

    Raises
    ------
    ParameterError
        A number outside its domain.

    References
    ----------
    Ladd & Misra (2009), (5) and (8).

    Examples
    --------
    >>> import medyanpy as mp
    >>> section = mp.rods.CircularSection(radius=12.0, youngs_modulus=1200.0, poisson_ratio=0.3, density=1.4e-21)
    >>> round(section.stiffness["bending"] / 1e7, 3)  # pN nm²: as stiff as a microtubule
    1.954
    """

    radius: float
    youngs_modulus: float
    poisson_ratio: float
    density: float
    shear_correction: float = 1.0

    def __post_init__(self) -> None:
        for name in ("radius", "youngs_modulus", "density", "shear_correction"):
            number(f"CircularSection: {name}", getattr(self, name), above=0.0)
        ratio = number("CircularSection: poisson_ratio", self.poisson_ratio)
        if not -1.0 < ratio <= 0.5:
            raise ParameterError(f"CircularSection: poisson_ratio = {ratio} but must be > -1 and <= 0.5")

    @property
    def area(self) -> float:
        """Area, nm²."""
        return np.pi * self.radius**2

    @property
    def second_moment(self) -> float:
        """Second moment of area about a diameter, nm⁴."""
        return 0.25 * np.pi * self.radius**4

    @property
    def stiffness(self) -> dict[str, Any]:
        """Shear and extension (pN), bending and twist (pN nm²), by the names of `forces.RodElasticity`."""
        Y, A, I = self.youngs_modulus, self.area, self.second_moment  # noqa: E741 - the symbol of the papers
        G = Y / (2.0 * (1.0 + self.poisson_ratio))
        return {"shear": self.shear_correction * G * A, "extension": Y * A, "bending": Y * I, "twist": 2.0 * G * I}

    @property
    def linear_density(self) -> float:
        """Mass per length, pN s²/nm²."""
        return self.density * self.area

    @property
    def inertia_density(self) -> tuple[float, float, float]:
        """Moments of inertia per length, pN s², about the principal axes of the section."""
        moment = self.density * self.second_moment
        return moment, moment, 2.0 * moment

    def kirchhoff(
        self, nodes: Numbers, *, closed: bool = False, directors: Numbers | Literal["parallel"] = "parallel"
    ) -> dict[str, Any]:
        """Return the arguments of `Topology.add_filament` for a Kirchhoff rod: one that neither shears nor stretches.

        It is a twistable filament: links keep their lengths and their right angles to directors by constraints, whose
        forces are the shear forces of the rod. `forces.FilamentBending` and `forces.FilamentTwisting` with
        ``stiffness["bending"]`` and ``stiffness["twist"]`` are its elasticity, which is straight at rest.

        Parameters
        ----------
        nodes : (n, 3) float, nm
            Ends of links, unlike those of `Topology.add_rod`, which are the middles of segments. The mass of a node is
            that of half of each of its links, and all rotary inertia across the rod is that of these masses.
        closed : bool
            Make it a ring.
        directors : (l, 3) float, or "parallel"
            As of `Topology.add_filament`.

        Raises
        ------
        ParameterError
            Nodes of wrong shape, or a number that is not finite.

        References
        ----------
        Ladd & Misra (2009), (13) to (16): shear forces that keep r' = d3, without the angular momentum across d3.
        J. Langer, D. A. Singer, SIAM Rev. 38, 605 (1996): Kirchhoff's rod with an isotropic section.

        Examples
        --------
        >>> import numpy as np
        >>> import medyanpy as mp
        >>> section = mp.rods.CircularSection(radius=0.5, youngs_modulus=1.0, poisson_ratio=0.3, density=1.0)
        >>> topology = mp.Topology()
        >>> rod = topology.add_filament(**section.kirchhoff(np.outer(np.arange(20.0), [1.0, 0.0, 0.0])))
        >>> system = mp.System(topology)
        >>> _ = system.add_force(mp.forces.FilamentBending(rod, section.stiffness["bending"]))
        >>> _ = system.add_force(mp.forces.FilamentTwisting(rod, section.stiffness["twist"]))
        """
        x = array("CircularSection.kirchhoff: nodes", nodes, (None, 3))
        links, shares = shares_of_links(x, closed)
        return {
            "nodes": x, "node_mass": self.linear_density * shares, "closed": bool(closed), "directors": directors,
            "director_mass": self.inertia_density[2] * links,
        }  # fmt: skip


@plainly_called
def frames(nodes: Numbers, closed: bool = False) -> np.ndarray:
    """Return orientations of the nodes of a rod along a curve, without twist: (n, 4) unit quaternions, scalar first.

    The third axis is along the curve, halfway between the two segments that meet; the first is carried along by the
    smallest rotations. Of a ring, what is needed to close it is spread evenly.

    Parameters
    ----------
    nodes : (n, 3) float, nm
        n >= 2, no two successive ones in one place.
    closed : bool
        Whether the last is followed by the first.

    Raises
    ------
    TopologyError
        Nodes that follow each other in one place, or a curve that turns back on itself.
    """
    x = array("frames: nodes", nodes, (None, 3), error=TopologyError)
    if len(x) < 2:
        raise TopologyError(f"frames: {len(x)} nodes have no direction: 2 are needed")
    d = np.roll(x, -1, axis=0) - x if closed else np.diff(x, axis=0)
    length = np.linalg.norm(d, axis=1)
    if not length.all():
        i = int(np.argmin(length))
        raise TopologyError(f"frames: nodes {i} and {(i + 1) % len(x)} are in one place")
    d /= length[:, None]
    t = d + np.roll(d, 1, axis=0) if closed else np.concatenate([d[:1], d[1:] + d[:-1], d[-1:]])
    size = np.linalg.norm(t, axis=1)
    if (size < 1e-6).any():
        raise TopologyError(f"frames: the curve turns back on itself at node {np.argmin(size)}")
    t /= size[:, None]
    first = carried_along(t, np.array([0, len(x)]), closed)
    return from_matrices(np.stack([first, np.cross(t, first), t], axis=2))


def uniform(
    n: int, segment_length: float, curvature: Numbers = (0.0, 0.0, 0.0), strain: Numbers = (0.0, 0.0, 1.0)
) -> tuple[np.ndarray, np.ndarray]:
    r"""Return nodes and orientations of a rod whose strains are the same everywhere: a line, a circle or a helix.

    .. math:: R' = R\,[\Omega]_\times,\quad r' = R\,\Gamma,\qquad R(0) = 1,\ r(0) = 0

    at the places 0, ℓ, 2ℓ, ... along it; (n, 3) nm and unit quaternions (n, 4).

    Parameters
    ----------
    n : int, >= 2
    segment_length : float, nm, > 0
        ℓ
    curvature : (3,) float, 1/nm
        Ω: bending about the first two axes, and twist. (0, 1/R, 0) is a circle; (R κ², 0, P κ²), with
        κ² = 1/(R² + P²), a helix of the radius R and the pitch 2πP.
    strain : (3,) float, dimensionless
        Γ: shear, and stretch; (0, 0, 1) without either.

    Raises
    ------
    ParameterError
        A number outside its domain.

    Examples
    --------
    >>> import numpy as np
    >>> import medyanpy as mp
    >>> nodes, orientations = mp.rods.uniform(101, 0.01, curvature=(0.0, 2 * np.pi, 0.0))
    >>> bool(np.allclose(nodes[-1], 0.0))  # once around
    True
    """
    n = whole_number("uniform: n", n, at_least=2)
    s = number("uniform: segment_length", segment_length, above=0.0) * np.arange(n)[:, None]
    curvature, strain = vector("uniform: curvature", curvature), vector("uniform: strain", strain)
    rate = lengths(curvature)
    axis = curvature / rate if rate > 0.0 else np.array([0.0, 0.0, 1.0])
    along = row_products(axis, strain) * axis
    around = np.cross(axis, strain)
    if rate > 0.0:
        turn = rate * s
        nodes = s * along + (np.sin(turn) * (strain - along) + 2.0 * np.sin(0.5 * turn) ** 2 * around) / rate
    else:
        nodes = s * strain
    return nodes, np.column_stack([np.cos(0.5 * rate * s), np.sin(0.5 * rate * s) * axis])
