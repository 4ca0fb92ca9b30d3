"""Reactions of points that live in the triangles of a membrane: checks of what users give, and rates."""

from math import inf, log, pi, sqrt
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from medyanpy._kernels.core.workspace import WorkSpace
from medyanpy._kernels.jumps.point_reactions import PointReactions
from medyanpy._tools.names import look_up
from medyanpy.beads import InTrianglePoints
from medyanpy.errors import ParameterError, TopologyError
from medyanpy.jumps._reaction_texts import Reaction

if TYPE_CHECKING:
    from medyanpy.core.layout import Layout
    from medyanpy.engine.schedule import Schedule

__all__ = ["OneWay", "macroscopic_rate", "microscopic_rate", "ways_of"]

TURN, PART, MEET, PASS, COME, GO = range(6)
# Kinds by how many points there are before and after.
_KINDS = {(1, 1): TURN, (1, 2): PART, (2, 1): MEET, (2, 2): PASS, (0, 1): COME, (1, 0): GO}
# How far logarithms of rates may miss balance around a cycle: rounding of a few of them.
_BALANCED = 1e-9


class OneWay(NamedTuple):
    """One direction of a reaction: its kind, species by number (-1: none), and where its way back stands in the list,
    -1 without."""

    kind: int
    reactants: tuple[int, ...]
    products: tuple[int, ...]
    back: int
    text: str


def ways_of(what: str, handle: Any, reactions: tuple[Reaction, ...]) -> tuple[OneWay, ...]:
    """Return the directions of reactions, each reverse behind its forward one; ParameterError for what points cannot
    do."""
    if not isinstance(handle, InTrianglePoints):
        raise TopologyError(f"{what}: points must be the handle of points in a membrane, not {handle!r}")
    if not handle.species:
        raise ParameterError(
            f"{what}: {handle.name!r} has no species: give species= to add_intriangle_points"
        )
    names = {one.name: i for i, one in enumerate(handle.species)}
    ways: list[OneWay] = []
    for reaction in reactions:
        sides = [
            tuple(look_up(names, name, f"species ({what}: {reaction.equation})", ParameterError) for name in side)
            for side in (reaction.reactants, reaction.products)
        ]
        sides[1] = _stays(*sides)
        both = [sides, sides[::-1]] if reaction.reversible else [sides]
        for direction, (before, after) in enumerate(both):
            kind = _KINDS.get((len(before), len(after)))
            if kind is None:
                raise ParameterError(
                    f"{what}: {reaction.equation}: points react as A -> B, A + B -> C, C -> A + B, A + B -> C + D, "
                    "0 -> A and A -> 0; write it as steps of these"
                )
            back = -1 if not reaction.reversible else len(ways) + (-1 if direction else 1)
            arrow = [" + ".join(handle.species[i].name for i in side) or "0" for side in (before, after)]
            ways.append(OneWay(kind, before, after, back, " -> ".join(arrow)))
    return tuple(ways)


def _stays(before: tuple[int, ...], after: tuple[int, ...]) -> tuple[int, ...]:
    """Return products in the order in which one that is also a reactant stays where it is."""
    swapped = after[::-1]
    same, crossed = (sum(a == b for a, b in zip(before, one, strict=False)) for one in (after, swapped))
    return swapped if len(before) == len(after) == 2 and crossed > same else after


class Rates(NamedTuple):
    """Rates of directions, as the kernel takes them, and how far each is from balance, in kT."""

    rates: tuple[float, ...]
    affinities: tuple[float, ...]
    #: Logarithms of activities of species, up to what the reactions keep.
    activities: np.ndarray


def balanced(ways: tuple[OneWay, ...], rates: "list[float]", reach: float, n_species: int) -> Rates:
    """Return rates with the affinities that drive them: in balance where activities z of species exist with equal flows
    both ways."""
    rows, sizes, pairs = [], [], []
    for i, way in enumerate(ways):
        if way.back > i:
            row = np.zeros(n_species)
            np.add.at(row, list(way.products), 1.0)
            np.subtract.at(row, list(way.reactants), 1.0)
            back = ways[way.back]
            forth, reverse = (_flow(one, rate, reach) for one, rate in ((way, rates[i]), (back, rates[way.back])))
            if forth > 0.0 and reverse > 0.0:
                rows.append(row)
                sizes.append(log(forth / reverse))
                pairs.append(i)
    affinity = [inf if rate > 0.0 else 0.0 for rate in rates]
    activities = np.zeros(n_species)
    if rows:
        activities = np.linalg.lstsq(np.array(rows), np.array(sizes), rcond=None)[0]
        left = np.array(sizes) - np.array(rows) @ activities
        left[np.abs(left) < _BALANCED * max(1.0, float(np.abs(sizes).max()))] = 0.0
        for i, own in zip(pairs, left.tolist(), strict=True):
            affinity[i], affinity[ways[i].back] = own, -own
    return Rates(tuple(rates), tuple(affinity), activities)


def _flow(way: OneWay, rate: float, reach: float) -> float:
    """Return events per area at activities 1, of ideal points on a plane."""
    if way.kind in (MEET, PASS):
        rate *= pi * reach**2 * (0.5 if way.reactants[0] == way.reactants[1] else 1.0)
    return rate


def macroscopic_rate(rate: float, reach: float, diffusion: float, density: float) -> float:
    r"""Return the rate constant k, nm²/s, of two points that meet.

    One point moves with the diffusion constant D of both together in a reflecting disc of radius
    :math:`b = 2/\sqrt{\pi\rho}`, and reacts at the rate λ within R of the middle:
    :math:`k = \pi b^2/\langle\tau\rangle`, with the mean time ⟨τ⟩ from a uniform start.

    Parameters
    ----------
    rate : float, 1/s, > 0
        λ; infinity for the limit where they react as they meet.
    reach : float, nm, > 0
    diffusion : float, nm²/s, > 0
    density : float, 1/nm², > 0
        Of either species, so that b is twice the radius of the area that one point of it has.
    """
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


def microscopic_rate(k: float, reach: float, diffusion: float, density: float) -> float:
    """Return the rate λ, 1/s, with which `macroscopic_rate` is k, nm²/s; the others as there.

    Raises
    ------
    ParameterError
        A k that no rate reaches, because points do not meet as often.
    """
    from scipy.optimize import brentq

    most = macroscopic_rate(inf, reach, diffusion, density)
    if not 0.0 < k < most:
        raise ParameterError(
            f"macroscopic_rate = {k:g} nm²/s but must be between 0 and {most:g}, how often points meet within "
            f"reach = {reach:g} nm with a diffusion constant of {diffusion:g} nm²/s: a longer reach allows more"
        )
    # From the rate without depletion up to where meeting is what takes time.
    low = log(k / (pi * reach**2))
    high = low + 1.0
    while macroscopic_rate(np.exp(high), reach, diffusion, density) < k:
        high += 2.0
    found = brentq(lambda x: macroscopic_rate(np.exp(x), reach, diffusion, density) - k, low - 1e-6, high, xtol=1e-14)
    return float(np.exp(found))


def bind(name: str, kT: float, driven: bool, every: int, handle: InTrianglePoints, layout: "Layout") -> PointReactions:
    """Make the operation of one Context."""
    membrane = handle.membrane
    faces = membrane.first_face, membrane.first_face + len(membrane.mesh.faces)
    masses = np.array([one.mass for one in handle.species])
    return PointReactions(
        name, kT, driven, every, layout.room, layout.places_by_row(handle), masses, faces,
        len(layout.triangulation.faces), layout.n_cartesian, layout.n, WorkSpace(layout.n, layout.momenta_sizes),
    )  # fmt: skip


def numbers_for_kernel(
    ways: tuple[OneWay, ...], rates: Rates, fraction: float
) -> list[tuple[float, ...]]:
    """Return what the kernel takes of each direction."""
    out: list[tuple[float, ...]] = []
    for way, rate, affinity in zip(ways, rates.rates, rates.affinities, strict=True):
        before, after = ((*side, -1, -1)[:2] for side in (way.reactants, way.products))
        out.append((way.kind, *before, *after, rate, fraction, affinity))
    return out


def forces_on(schedule: "Schedule", handle: InTrianglePoints, ways: tuple[OneWay, ...]) -> list[Any]:
    """Return the bound forces whose energy events change: those on points, or where none is created or removed, those
    that tell species apart."""
    stay = all(way.kind in (TURN, PASS) for way in ways)
    named = zip(schedule.system.forces, schedule.bound, strict=True)
    return [bound for force, bound in named if handle in (force.handles_by_species if stay else force.handles)]


def partners_expected(handle: InTrianglePoints, reach: float) -> int:
    """Return how many partners a point may be allowed to have: more than any has, where points are spread as they come
    by chance."""
    mean = handle.capacity * pi * reach**2 / handle.membrane.mesh.area
    return 32 + int(np.ceil(2.0 * mean + 10.0 * sqrt(mean)))
