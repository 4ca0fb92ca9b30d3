"""Energies of all pairs of beads, or of those that come near each other."""

import functools
from collections.abc import Callable, Mapping
from dataclasses import InitVar
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from medyanpy import units
from medyanpy._kernels.forces.radial import Radial, ending, radial_values
from medyanpy.beads import Balls
from medyanpy.core.handles import handles_in
from medyanpy.core.sites import Sites
from medyanpy.errors import ParameterError
from medyanpy.forces._arguments import Beads
from medyanpy.forces._base import Each, argument, declared, number
from medyanpy.forces._ewald import bind_ewald, expect_lattice
from medyanpy.forces._pair_force import PairForce, Profile, TwoGroups
from medyanpy.topology import Topology

if TYPE_CHECKING:
    from medyanpy._kernels.core.program import Operation
    from medyanpy.core.layout import Layout
    from medyanpy.forces._stiffness import Start

__all__ = ["WCA", "Coulomb", "LennardJones", "Morse", "Ricker", "SoftSphere", "Yukawa"]

#: A function of _kernels/forces/radial.pxd, its first two numbers, the third and a table.
Kernel: TypeAlias = tuple[Radial, tuple[Any, ...], float, Any]

# Where WCA ends, in units of sigma.
_WCA_END = 2.0 ** (1.0 / 6.0)
# Where Ricker ends, in units of the distance of its minimum: the energy there is 4e-9 of the depth.
_RICKER_END = 4.0
# The largest second derivative of Ricker's well, in U_e/r_e²: at ρ² = (5 - √10)/3, where the third is zero.
_RICKER_STEEPEST = 12.4695


@declared
class SoftSphere(TwoGroups):
    r"""Soft repulsion: beads of two groups push each other apart when they overlap.

    .. math:: U = \sum_{(i, j)} \tfrac12 k (d_{ij} - r_{ij})^2 \quad\text{for}\; r_{ij} = |x_j - x_i| < d_{ij}

    over all pairs with one bead in each group, each pair once.

    Parameters
    ----------
    group_a, group_b
        Beads of any kind. The groups may be the same, overlap, or have nothing in common; a bead in both interacts with
        all of both. Where one group is `Sites`, both are, and are taken for different sites unless they are one object;
        no bead may then be two of the sites.
    exclusions
        Pairs of bead numbers that do not interact, such as the pairs of a bond force.
    skin
        Distance beyond touching up to which neighbours are listed: for speed only, results are the same to the bit. 0.4
        times the largest d where none is given.
    along_surface
        Take for r the length of the shortest path along the surface on which beads live. Both groups are then
        in-triangle points, of which those of different membranes do not interact (:doc:`/forces/along_surfaces`); or
        surface points of one surface, and the range is below π times its smallest radius of curvature
        (:doc:`/surfaces`).

    Notes
    -----
    Two beads in one place do not push each other: the mean over all directions. The force is continuous, its derivative
    jumps where beads touch: energies of a run fall as dt² nonetheless, but higher orders cannot be reached. Cells are
    as wide as the largest d plus skin: put few large balls among many small ones into a group, and a force, of their
    own.

    Examples
    --------
    >>> import medyanpy as mp
    >>> topology = mp.Topology()
    >>> balls = topology.add_balls([[0.0, 0, 0], [8.0, 0, 0]], radius=5.0, mass=1.0)
    >>> system = mp.System(topology)
    >>> system.add_force(mp.forces.SoftSphere(balls, balls, stiffness=3.0))
    SoftSphere(stiffness=3, diameter=None, skin=None)
    >>> mp.Context(system, mp.VerletIntegrator(0.01)).get_state(energy=True).potential_energy
    6.0
    """

    stiffness: float = number("pN/nm", "The k of the energy.", at_least=0.0)
    diameter: float | None = number(
        "nm", "d, the distance at which two beads touch. Where none is given, the sum of their radii; then all beads "
        "(or sites) of both groups must be balls.", default=None, above=0.0,
    )  # fmt: skip

    def _checked(self, **numbers: Any) -> dict[str, Any]:
        checked = super()._checked(**numbers)
        if checked["diameter"] is None:
            for group in self._groups:
                if isinstance(group, Sites):
                    if ((beads := group.single_beads) < 0).any():
                        raise self._no_radius(f"site {int(np.argmax(beads < 0))}, which is not a single bead,")
                elif other := next((h for h in handles_in(group) if not isinstance(h, Balls)), None):
                    raise self._no_radius(repr(other))
        return checked

    def _no_radius(self, what: str) -> ParameterError:
        return ParameterError(f"{self.name}: give diameter=, because {what} has no radius: only balls have")

    def _radii(self, topology: Topology, beads: np.ndarray) -> np.ndarray:
        """Return half of d of each of some beads, nm."""
        d = self._numbers["diameter"]
        if d is not None:
            return np.full(len(beads), 0.5 * d)
        out: np.ndarray = np.full(topology.n_beads, np.nan)
        for handle in topology.handles:
            if isinstance(handle, Balls):
                out[handle.beads] = handle.radius
                # Rows without a bead have the radius of balls that jumps may add; where balls differ none can be added.
                out[handle._inactive] = handle.kind.of_all("radius") or handle.radius.max()
        out = out[beads]
        if np.isnan(out).any():
            raise self._no_radius(repr(topology.handle_of(int(beads[np.argmax(np.isnan(out))]))))
        return out

    def squared_frequencies(self, start: "Start") -> np.ndarray | None:
        k = self._numbers["stiffness"]

        def stiffness(distance: np.ndarray, beads: np.ndarray) -> np.ndarray:
            return np.where(distance < self._radii(start.topology, beads.ravel()).reshape(-1, 2).sum(axis=1), k, 0.0)

        beads = self._members(start.layout).bead
        reach = 2.0 * self._radii(start.topology, beads).max(initial=0.0)
        return self._frequencies(start, reach, stiffness, k)

    def bind(self, layout: "Layout") -> "Operation":
        k, d = self._named("stiffness", "diameter")
        numbers = (k, 0.0 if d is None else d)
        return self._bind(layout, Radial.SOFT_SPHERE, numbers, lambda beads: self._radii(layout.topology, beads))

    def _profile(self, layout: "Layout", members: Any) -> "Profile | None":
        k, radii = self._numbers["stiffness"], self._radii(layout.topology, members.bead)

        def values(r: np.ndarray, pairs: np.ndarray) -> np.ndarray:
            gap = np.minimum(r - radii[pairs].sum(axis=1), 0.0)
            return np.column_stack([0.5 * k * gap**2, k * gap, np.where(gap < 0.0, k, 0.0)])

        return Profile(values, 2.0 * radii.max(initial=0.0), int(np.argmax(radii)) if len(radii) else 0)


@declared
class WCA(TwoGroups):
    r"""The repulsive part of the Lennard-Jones energy (Weeks, Chandler & Andersen).

    .. math:: U = \sum_{(i, j)} 4 \varepsilon \left[(\sigma/r)^{12} - (\sigma/r)^6\right] + \varepsilon
              \quad\text{for}\; r = |x_j - x_i| < 2^{1/6} \sigma

    over all pairs with one bead in each group, each pair once.

    Parameters
    ----------
    skin
        As in `SoftSphere`; 0.4 times the range 2^(1/6) σ where none is given.

    Notes
    -----
    Two beads in one place have no finite force: the run ends and names the bead. Separate beads that may start on top
    of each other with `SoftSphere` and `Simulation.minimize_energy`.

    References
    ----------
    J. D. Weeks, D. Chandler, H. C. Andersen, J. Chem. Phys. 54, 5237 (1971).
    """

    epsilon: float = number("pN nm", "ε, the energy of two beads at distance σ.", at_least=0.0)
    sigma: float = number("nm", "σ.", above=0.0)

    def squared_frequencies(self, start: "Start") -> np.ndarray | None:
        epsilon, sigma = self._named("epsilon", "sigma")
        # Two that meet with the energy ε come as near as σ.
        least = _lennard_jones(1.0) * epsilon / sigma**2
        end = _WCA_END * sigma
        return self._frequencies(start, end, lambda r, _: _lennard_jones(r / sigma) * epsilon / sigma**2, least)

    def bind(self, layout: "Layout") -> "Operation":
        numbers = self._named("epsilon", "sigma")
        return self._bind(layout, Radial.WCA, numbers, lambda beads: np.full(len(beads), 0.5 * _WCA_END * numbers[1]))

    def _profile(self, layout: "Layout", members: Any) -> "Profile | None":
        numbers = self._named("epsilon", "sigma")
        return Profile(lambda r, _: radial_values(Radial.WCA, numbers, r), _WCA_END * numbers[1])


@declared
class EndingPair(TwoGroups):
    """A radial energy that may end at a distance, `cutoff`, where it is made continuous by `shift` or `switch`."""

    cutoff: float | None = number("nm", "As in `LennardJones`.", default=None, kw_only=True, above=0.0)
    switch: float | None = number("nm", "As in `LennardJones`.", default=None, kw_only=True, above=0.0)
    shift: bool = argument(
        "bool", "As in `LennardJones`.", default=True, kw_only=True,
        attribute="Whether the energy is less what it would be at the cutoff, where it is not switched off.",
    )  # fmt: skip

    def _take(self, given: dict[str, Any]) -> None:
        self._shift = bool(given["shift"])
        super()._take(given)

    def _end(self, numbers: Mapping[str, Any]) -> float | None:
        """Return the distance beyond which the force is zero, for these numbers; None if there is no such distance."""
        end: float | None = numbers["cutoff"]
        return end

    def _checked(self, **numbers: Any) -> dict[str, Any]:
        checked = super()._checked(**numbers)
        end, switch = self._end(checked), checked["switch"]
        if end is None and self._along_surface:
            raise ParameterError(f"{self.name}: give cutoff=, up to which distances along the surface are looked for")
        if end is None and switch is not None:
            raise ParameterError(f"{self.name}: switch = {switch:g} nm, but without cutoff= there is nothing to end")
        if end is not None and switch is not None and not switch < end:
            raise ParameterError(f"{self.name}: switch = {switch:g} nm but must be below the cutoff, {end:g} nm")
        return checked

    def _kernel(self) -> Kernel:
        raise NotImplementedError

    def bind(self, layout: "Layout") -> "Operation":
        kind, end, parameters = self._ending()
        if end is None:
            return self._bind_all(layout, kind, parameters)
        return self._bind(layout, kind, parameters, lambda beads: np.full(len(beads), 0.5 * end))

    def _profile(self, layout: "Layout", members: Any) -> "Profile | None":
        kind, end, parameters = self._ending()
        return Profile(lambda r, _: radial_values(kind, parameters, r), end)

    def _ending(self) -> tuple[Radial, float | None, tuple[float, ...]]:
        """Return the radial function, where it ends, and the numbers of the kernel."""
        (kind, numbers, third, table), end = self._kernel(), self._end(self._numbers)
        made = ending(kind, numbers, np.inf if end is None else end, self._numbers["switch"], self._shift, third, table)
        return kind, end, tuple(made)

    def _steepness(self) -> "Callable[[Any], np.ndarray]":
        """Return the stiffness of a pair at some distances: along it or, where it is larger, across."""
        kind, _, p = self._ending()
        return lambda r: steepest(radial_values(kind, p, np.asarray(r, float)), r)


def steepest(u: np.ndarray, r: Any) -> np.ndarray:
    """Return the stiffness of pairs at the distances r (n,), the larger of that along and that across.

    The energy and its derivatives are (n, 3).
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        out: np.ndarray = np.nan_to_num(np.maximum(u[:, 2], u[:, 1] / np.asarray(r, float)), nan=np.inf)
    return out


@declared
class LennardJones(EndingPair):
    r"""Lennard-Jones energy: repulsion of beads below 2^(1/6) σ, attraction beyond.

    .. math:: U = \sum_{(i, j)} 4 \varepsilon \left[(\sigma/r)^{12} - (\sigma/r)^6\right] - U_c
              \quad\text{for}\; r = |x_j - x_i| < r_c

    over all pairs with one bead in each group, each pair once. U_c is the energy of a pair at the cutoff;
    it is 0 without a cutoff, with `switch`, and with ``shift=False``.

    Parameters
    ----------
    cutoff
        r_c, beyond which beads do not interact; fluids commonly use 2.5 σ. By default all pairs interact, however far
        apart: a cluster in empty space, with a time of a step that grows as the square of the number of beads.
    switch
        From here to the cutoff the energy is switched off (:doc:`/forces/pairs`), with two continuous derivatives.
    shift
        Subtract U_c, so that the energy is continuous at the cutoff. Forces are the same either way.
    skin
        As in `SoftSphere`; 0.4 times the cutoff where none is given. Without cutoff there is no list.

    Notes
    -----
    With C₁₂/r¹² - C₆/r⁶ given, ε = C₆²/4C₁₂ and σ = (C₁₂/C₆)^(1/6). At the cutoff the force jumps, by 0.039 ε/σ at 2.5
    σ, unless it is switched off. Two beads in one place have no finite force: the run ends and names the bead.

    References
    ----------
    J. E. Lennard-Jones, Proc. Phys. Soc. 43, 461 (1931).

    Examples
    --------
    >>> import medyanpy as mp
    >>> topology = mp.Topology()
    >>> beads = topology.add_beads([[0.0, 0, 0], [2.0, 0, 0], [0, 4.0, 0]], mass=1.0)
    >>> mp.forces.LennardJones(beads, beads, epsilon=4.0, sigma=2.0, cutoff=5.0)
    LennardJones(epsilon=4, sigma=2, cutoff=5, switch=None, skin=None)
    """

    epsilon: float = number("pN nm", "ε: the energy is lowest, -ε, at the distance 2^(1/6) σ.", at_least=0.0)
    sigma: float = number("nm", "σ.", above=0.0)

    def squared_frequencies(self, start: "Start") -> np.ndarray | None:
        epsilon, sigma, cutoff = self._named("epsilon", "sigma", "cutoff")
        least = _lennard_jones(_WCA_END) * epsilon / sigma**2
        end = 2.5 * sigma if cutoff is None else min(cutoff, 2.5 * sigma)
        return self._frequencies(start, end, lambda r, _: _lennard_jones(r / sigma) * epsilon / sigma**2, least)

    def _kernel(self) -> Kernel:
        return Radial.LENNARD_JONES, self._named("epsilon", "sigma"), 0.0, ()


@declared
class Coulomb(PairForce):
    r"""Electrostatics of charges in empty space, or in a uniform medium.

    .. math:: U = \sum_{(i, j)} \frac{k\, q_i q_j}{r}, \qquad r = |x_j - x_i|

    over all pairs of beads, each pair once, however far apart; in a box that is periodic along all three directions
    over all of their images, by Ewald's sum.

    Parameters
    ----------
    exclusions
        As in `SoftSphere`: pairs within one molecule. In a box the nearest images of a pair are excluded.

    Raises
    ------
    ParameterError
        A number outside its domain; and (by a Context) a box that is open along some direction or smaller than twice
        the cutoff, a box without a cutoff, a cutoff without a box.
    TopologyError
        As `SoftSphere`.

    Notes
    -----
    In open space there is no cutoff: a truncated 1/r is another energy, with apparent charges at the cutoff. The time
    of a step grows as the square of the number of beads, in a box, with the best cutoff, as the power 3/2
    (:doc:`/forces/pairs`). Another force, such as `LennardJones`, has to keep charges of opposite sign apart: two in
    one place have no finite force, and the run ends and names the bead.

    In a box the medium beyond all images conducts, and the charge of a box that is not neutral is balanced by an even
    background; the energy then has a part that depends on the volume alone. Second derivatives are not offered there.

    References
    ----------
    P. P. Ewald, Ann. Phys. 369, 253 (1921). See :doc:`/theory/lattice_sums`.
    """

    _group_names = ("beads", "beads")
    beads: InitVar["Beads"] = argument(
        "handle, list of handles, (n,) int, or Sites", "Those with charges, of any kind."
    )
    charges: Each = number(
        "elementary charges", "q, of the beads in the order in which they are given.", per="_beads_a"
    )
    constant: float = number(
        "pN nm²", "k, of two charges of 1; e²/4πε₀, which it is where none is given, is that of two elementary charges "
        "in empty space. Divide it by the relative permittivity of a medium. With ions in water the energy falls "
        "faster than this beyond the Debye length: not offered.", default=units.coulomb_constant, above=0.0,
    )  # fmt: skip
    cutoff: float | None = number(
        "nm", "In a periodic box: up to here pairs are summed one by one, the rest by waves. It decides how fast a "
        "step is, and changes results by less than the tolerance. Not in open space.", default=None, kw_only=True,
        above=0.0,
    )  # fmt: skip
    tolerance: float = number(
        "", "In a periodic box: bound of the error of a force, root mean square over all charges, relative to that of "
        "two typical charges at the cutoff.", default=1e-5, kw_only=True, at_least=1e-14, at_most=0.01,
    )  # fmt: skip
    skin: float | None = number(
        "nm", "In a periodic box, as in `SoftSphere`; 0.4 times the cutoff where none is given.", default=None,
        kw_only=True, at_least=0.0,
    )  # fmt: skip

    def _charges(self, layout: "Layout", row: np.ndarray, bead: np.ndarray) -> np.ndarray:
        """Return charges of members by their rows and bead numbers."""
        beads, charges = self._beads_a, self._numbers["charges"]
        if isinstance(beads, Sites):
            of, at = np.broadcast_to(charges, (len(beads),)), row
        else:
            # Rows without a bead have the charge of beads that jumps may add.
            of, at = np.full(layout.n, self._number_of_all("charges") or 0.0), bead
            of[beads] = charges
        out: np.ndarray = of[at]
        return out

    def bind(self, layout: "Layout") -> "Operation":
        constant, cutoff, tolerance = self._named("constant", "cutoff", "tolerance")
        expect_lattice(self.name, layout, cutoff)
        if cutoff is None:
            of = functools.partial(self._charges, layout)
            return self._bind_all(layout, Radial.COULOMB, (constant,), of)
        self._expect_wholes("give the handle")
        members = self._members(layout)
        neighbors = self._neighbors(layout, members, np.full(len(members.row), 0.5 * cutoff))
        charges, excluded = self._charges(layout, members.row, members.bead), self._excluded(members)
        return bind_ewald(self.name, layout, members, charges, neighbors, excluded, constant, cutoff, tolerance)

    def _profile(self, layout: "Layout", members: Any) -> "Profile | None":
        if self._numbers["cutoff"] is not None:
            # Images of the opposite sign are as near: a pair by itself says nothing of what overlaps.
            return None
        constant, charges = self._numbers["constant"], self._charges(layout, members.row, members.bead)

        def values(r: np.ndarray, pairs: np.ndarray) -> np.ndarray:
            product = charges[pairs].prod(axis=1)[:, None]
            u = radial_values(Radial.COULOMB, (constant,), r)
            return np.where(product == 0.0, 0.0, product * u)

        return Profile(values, None, int(np.argmax(np.abs(charges))) if len(charges) else 0)


@declared
class Ricker(EndingPair):
    r"""A soft well: beads of two groups repel each other below a distance and attract each other beyond it.

    .. math:: U = \sum_{(i, j)} \tfrac12 U_e (1 - 3 \rho^2)\, e^{3/2\, (1 - \rho^2)} - U_c
              \quad\text{for}\; \rho = |x_j - x_i| / r_e < r_c / r_e

    over all pairs with one bead in each group, each pair once. U_c is the energy of a pair at the cutoff.

    Parameters
    ----------
    cutoff
        r_c, beyond which beads do not interact; 4 r_e where none is given. At 3 r_e the force jumps by 7e-4 U_e/r_e.

    Notes
    -----
    Many beads collapse: the integral of U over the plane, and over space, is negative. Use it for pairs; for clusters
    take `LennardJones` with a cutoff, or add a `SoftSphere` that keeps beads apart. :doc:`/forces/pairs` has the
    numbers.

    Beads pass through each other over a barrier of e^(3/2) U_e/2 = 2.24 U_e, with zero force where they are in one
    place. The well has the stiffness 9 U_e/r_e²: two beads of mass m oscillate with ω² = 18 U_e/(m r_e²). The force is
    largest at 0.43 r_e (repulsion) and 1.35 r_e (attraction).

    References
    ----------
    The profile of N. Ricker, Geophysics 18, 10 (1953), with the side lobe as a well.
    """

    depth: float = number("pN nm", "U_e: the energy is lowest, -U_e, at the distance r_e.", at_least=0.0)
    distance: float = number("nm", "r_e.", above=0.0)

    def squared_frequencies(self, start: "Start") -> np.ndarray | None:
        depth, distance, cutoff = self._named("depth", "distance", "cutoff")

        def stiffness(r: np.ndarray, _: Any) -> np.ndarray:
            square = (r / distance) ** 2
            steep = 4.5 * np.exp(1.5 * (1.0 - square)) * depth / distance**2
            out: np.ndarray = steep * np.maximum(6.0 * square - 1.0 - 3.0 * square**2, square - 1.0)
            return out

        end = 3.0 * distance if cutoff is None else min(cutoff, 3.0 * distance)
        return self._frequencies(start, end, stiffness, _RICKER_STEEPEST * depth / distance**2)

    def _end(self, numbers: Mapping[str, Any]) -> float | None:
        cutoff: float | None = numbers["cutoff"]
        return _RICKER_END * numbers["distance"] if cutoff is None else cutoff

    def _kernel(self) -> Kernel:
        return Radial.RICKER, self._named("depth", "distance"), 0.0, ()


@declared
class Morse(EndingPair):
    r"""A well between a soft hill and a short-ranged attraction: the energy of Morse.

    .. math:: U = \sum_{(i, j)} D \left[e^{-2 a (r - r_0)} - 2 e^{-a (r - r_0)}\right] - U_c
              \quad\text{for}\; r = |x_j - x_i| < r_c

    over all pairs with one bead in each group, each pair once. U_c is the energy of a pair at the cutoff;
    it is 0 without a cutoff, with `switch`, and with ``shift=False``.

    Parameters
    ----------
    cutoff
        r_c, beyond which beads do not interact. Where none is given all pairs do, as of `LennardJones`. At r_0 + 7/a
        the energy is -0.0018 D.

    Notes
    -----
    The hill is finite: beads pass through each other over a barrier of D (e^(2 a r_0) - 2 e^(a r_0)), with zero force
    where they are in one place. Two beads of mass m oscillate with ω² = 4 D a²/m, bound states up to the edge with ω
    √(-E/D).

    References
    ----------
    P. M. Morse, Phys. Rev. 34, 57 (1929).
    """

    depth: float = number("pN nm", "D: the energy is lowest, -D, at the distance r_0.", at_least=0.0)
    steepness: float = number(
        "1/nm", "a: the well is about 1/a wide, and has the stiffness 2 D a² at its bottom.", above=0.0
    )
    distance: float = number("nm", "r_0.", at_least=0.0)

    def squared_frequencies(self, start: "Start") -> np.ndarray | None:
        depth, steepness, distance, cutoff = self._named("depth", "steepness", "distance", "cutoff")
        stiffness, end = self._steepness(), distance + 7.0 / steepness
        end = end if cutoff is None else min(cutoff, end)
        return self._frequencies(start, end, lambda r, _: stiffness(r), 2.0 * depth * steepness**2)

    def _kernel(self) -> Kernel:
        return Radial.MORSE, self._named("depth", "steepness"), self._numbers["distance"], ()


@declared
class Yukawa(EndingPair):
    r"""Screened electrostatics: the energy of Yukawa, or of Debye and Hückel.

    .. math:: U = \sum_{(i, j)} A \frac{e^{-r/\lambda}}{r} - U_c \quad\text{for}\; r = |x_j - x_i| < r_c

    over all pairs with one bead in each group, each pair once. U_c is the energy of a pair at the cutoff;
    it is 0 without a cutoff, with `switch`, and with ``shift=False``.

    Parameters
    ----------
    cutoff
        r_c, beyond which beads do not interact. Where none is given all pairs do, as of `LennardJones`. At 10 λ the
        first term is 5e-6 A/λ.

    Notes
    -----
    Beads with charges that differ: `CustomPair` with ``"k*q1*q2*exp(-r/l)/r"``. Two beads in one place have no finite
    force: the run ends and names the bead. The longest timestep depends on how near beads come, and is not known.

    References
    ----------
    H. Yukawa, Proc. Phys.-Math. Soc. Japan 17, 48 (1935). P. Debye, E. Hückel, Phys. Z. 24, 185 (1923).
    """

    strength: float = number(
        "pN nm²", "A: repulsion where positive. Of two point charges q₁ and q₂ in water, in elementary charges, "
        "``units.coulomb_constant / 78.5 * q1 * q2``.",
    )  # fmt: skip
    screening_length: float = number(
        "nm", "λ: in a solution of a salt of singly charged ions at 25 °C 0.304/√c for a concentration of c mol/l.",
        above=0.0,
    )  # fmt: skip

    def _kernel(self) -> Kernel:
        return Radial.YUKAWA, self._named("strength", "screening_length"), 0.0, ()


def _lennard_jones(r: Any) -> Any:
    """Return the stiffness of a pair at the distance r, in units of ε/σ² and σ, the larger of that along and across."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        along = 4.0 * (156.0 * np.asarray(r) ** -14.0 - 42.0 * np.asarray(r) ** -8.0)
        across = 4.0 * (6.0 * np.asarray(r) ** -8.0 - 12.0 * np.asarray(r) ** -14.0)
    return np.nan_to_num(np.maximum(along, across), nan=np.inf)
