"""Where beads react: on a membrane or in space. What depends on the geometry is here."""

from math import inf, log, pi, sqrt, tanh
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from medyanpy._kernels.jumps.grounds import BodiesInSpace, Ground
from medyanpy._kernels.jumps.grounds import InSpace as BeadsInSpace
from medyanpy._kernels.jumps.grounds import OnMembrane as PointsOnMembrane
from medyanpy.beads import InTrianglePoints, Membrane, OrientedBeads
from medyanpy.core.handles import Handle
from medyanpy.errors import ParameterError, TopologyError

if TYPE_CHECKING:
    from medyanpy.core.layout import Layout

__all__ = ["InSpace", "OnMembrane", "ground_of", "macroscopic_rate", "microscopic_rate", "on_membrane"]


def ground_of(what: str, handle: Handle) -> "OnMembrane | InSpace":
    """Return where the beads of a handle with species react; TopologyError, ParameterError for others."""
    if isinstance(handle, InTrianglePoints):
        ground: OnMembrane | InSpace = OnMembrane(handle)
    elif handle.kind.comes_and_goes:
        ground = InSpace(handle)
    else:
        raise TopologyError(
            f"{what}: beads that react must be points in a membrane, free beads, balls, or rigid bodies with species, "
            f"not {handle!r}"
        )
    if not handle._species:
        raise ParameterError(f"{what}: {handle.name!r} has no species: give species= when these beads are added")
    return ground


class OnMembrane:
    """Points in the triangles of a membrane, which react by straight lines of the surface."""

    measure = "area"
    unit = "nm²"

    def __init__(self, handle: InTrianglePoints) -> None:
        self._handle = handle

    def within(self, reach: float) -> float:
        """Return the area of the ends of all straight lines up to the reach, nm²."""
        return pi * reach**2

    def extent(self, layout: "Layout") -> float:
        """Return the area of the membrane at the start, nm²."""
        return float(self._handle.membrane.mesh.area)

    def density(self, what: str, given: float | None, species: tuple[int, ...]) -> float:
        """Return the density at which a macroscopic rate holds, 1/nm²."""
        if given is not None:
            return given
        most = max(int(np.count_nonzero(self._handle._of_species == i)) for i in species)
        if most == 0:
            raise ParameterError(f"{what}: give density=: there are no points at the start")
        return float(most / self._handle.membrane.mesh.area)

    def partners_expected(self, layout: "Layout", reach: float) -> int:
        """Return how many partners a bead may be allowed to have: more than any has, where beads are spread as they
        come by chance."""
        return _expected(self._handle.capacity * self.within(reach) / self._handle.membrane.mesh.area)

    def expect_measure(self, what: str, layout: "Layout") -> None:
        """Refuse to create beads uniformly where there is no end of places; ParameterError."""

    def bind(self, layout: "Layout") -> Ground:
        return on_membrane(self._handle.membrane, layout)



def on_membrane(membrane: Membrane, layout: "Layout") -> Ground:
    """Return what kernels know of a membrane on which beads react."""
    faces = membrane.first_face, membrane.first_face + len(membrane.mesh.faces)
    return PointsOnMembrane(faces, len(layout.triangulation.faces), layout.n_cartesian, layout.n_points)


class InSpace:
    """Beads in space, which react by the straight line to the nearest image."""

    measure = "volume"
    unit = "nm³"

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        #: Whether they are bodies, which react by their centres.
        self.turns: bool = isinstance(handle, OrientedBeads)

    def within(self, reach: float) -> float:
        """Return the volume of a ball, nm³."""
        return 4.0 / 3.0 * pi * reach**3

    def extent(self, layout: "Layout") -> float:
        """Return the volume in which the beads are at the start, nm³: of the box, in open directions of a block around
        them."""
        x = cast(Any, self._handle).positions
        block = np.ptp(x, axis=0) if len(x) else np.zeros(3)
        sides = np.where(layout.box > 0.0, layout.box, np.maximum(block, 1.0))
        return float(sides.prod())

    def density(self, what: str, given: float | None, species: tuple[int, ...]) -> float | None:
        """Return None: in space a macroscopic rate depends on no density; ParameterError where one is given."""
        if given is not None:
            raise ParameterError(f"{what}: density= is of points in a membrane: in space rates do not depend on it")
        return None

    def partners_expected(self, layout: "Layout", reach: float) -> int:
        """Return the same: in open space all beads may be near each other."""
        most = self._handle.capacity
        if layout.box.all():
            most = min(most, _expected(most * self.within(reach) / float(layout.box.prod())))
        return most

    def expect_measure(self, what: str, layout: "Layout") -> None:
        """Refuse to create beads uniformly where no box states a volume; ParameterError."""
        if not layout.box.all():
            raise ParameterError(
                f"{what}: beads are created uniformly in the volume of a box, and this one is not periodic in all "
                "directions: give System(box=) three lengths"
            )

    def bind(self, layout: "Layout") -> Ground:
        places = layout.block_of(self._handle)
        kernel = BodiesInSpace if self.turns else BeadsInSpace
        return kernel(places.start, places.stop - places.start)


def _expected(mean: float) -> int:
    """Return a number that a Poisson distribution of this mean does not reach: 13 standard deviations away or more."""
    return 24 + int(np.ceil(1.5 * mean + 6.0 * sqrt(mean)))


def macroscopic_rate(rate: float, reach: float, diffusion: float, density: float | None = None) -> float:
    r"""Return the rate constant k of two beads that meet: nm²/s on a surface, nm³/s in space.

    One bead moves with the diffusion constant D of both together, and reacts at the rate λ within R of the other. On a
    surface it does so in a reflecting disc of radius :math:`b = 2/\sqrt{\pi\rho}` around that, where
    :math:`k = \pi b^2/\langle\tau\rangle` with the mean time ⟨τ⟩ from a uniform start. In space k is the flux from a
    fixed concentration far away, :math:`4\pi D R (1 - \tanh(\kappa R)/(\kappa R))` with
    :math:`\kappa = \sqrt{\lambda/D}`.

    Parameters
    ----------
    rate : float, 1/s, > 0
        λ; infinity for the limit where they react as they meet.
    reach : float, nm, > 0
    diffusion : float, nm²/s, > 0
    density : float, 1/nm², > 0, optional
        Of either species on a surface, so that b is twice the radius of the area that one point of it has. None: in
        space.
    """
    if density is None:
        y = reach * sqrt(rate / diffusion)
        # 1 - tanh(y)/y by its series, where the difference would cancel.
        share = y**2 / 3.0 * (1.0 - 0.4 * y**2 + 17.0 / 105.0 * y**4) if y < 0.01 else 1.0 - tanh(y) / y
        return 4.0 * pi * diffusion * reach * share
    from scipy.special import ive

    b = 2.0 / sqrt(pi * density)
    if not b > reach:
        raise ParameterError(f"macroscopic_rate: reach = {reach:g} nm but must be below {b:g}, 2/√(π density)")
    outer = (b**2 - reach**2) / (2.0 * diffusion)
    if rate == inf:
        inside, at_edge = 0.0, 0.0
    else:
        k = sqrt(rate / diffusion)
        inside = b**2 / (2.0 * rate)
        at_edge = 1.0 / rate + outer / (reach * k) * float(ive(0, k * reach) / ive(1, k * reach))
    # The integrals of r τ(r), from 0 to R and from R to b.
    c = at_edge + reach**2 / (4.0 * diffusion) - b**2 / (2.0 * diffusion) * log(reach)
    outside = -(b**4 - reach**4) / (16.0 * diffusion)
    outside += b**2 / (2.0 * diffusion) * (0.5 * b**2 * log(b) - 0.5 * reach**2 * log(reach) - 0.25 * (b**2 - reach**2))
    outside += 0.5 * c * (b**2 - reach**2)
    return pi * b**2 / (2.0 / b**2 * (inside + outside))


def microscopic_rate(k: float, reach: float, diffusion: float, density: float | None = None) -> float:
    """Return the rate λ, 1/s, with which `macroscopic_rate` is k; the others as there.

    Raises
    ------
    ParameterError
        A k that no rate reaches, because beads do not meet as often.
    """
    from scipy.optimize import brentq

    most = macroscopic_rate(inf, reach, diffusion, density)
    within, unit, who = pi * reach**2, "nm²/s", "points"
    if density is None:
        within, unit, who = 4.0 / 3.0 * pi * reach**3, "nm³/s", "beads"
    if not 0.0 < k < most:
        raise ParameterError(
            f"macroscopic_rate = {k:g} {unit} but must be between 0 and {most:g}, how often {who} meet within "
            f"reach = {reach:g} nm with a diffusion constant of {diffusion:g} nm²/s: a longer reach allows more"
        )
    # From the rate without depletion up to where meeting is what takes time.
    low = log(k / within)
    high = low + 1.0
    while macroscopic_rate(np.exp(high), reach, diffusion, density) < k:
        high += 2.0
    found = brentq(lambda x: macroscopic_rate(np.exp(x), reach, diffusion, density) - k, low - 1e-6, high, xtol=1e-14)
    return float(np.exp(found))
