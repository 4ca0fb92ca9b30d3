"""Pairs of beads that are nearer to each other than a run can take: where starts overlap.

Every pair force tells its energies at a distance; what a run takes is measured by the temperature and the timestep.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from medyanpy._kernels.beads.points import Place
from medyanpy._kernels.core.neighbors import near_pairs
from medyanpy._tools.images import displacement
from medyanpy._tools.quaternions import turned
from medyanpy.core.columns import ORIENTATIONS
from medyanpy.core.sites import Sites
from medyanpy.forces._pair_force import PairForce, Profile
from medyanpy.forces._stiffness import Start

if TYPE_CHECKING:
    from medyanpy.core.layout import Layout
    from medyanpy.engine.schedule import Schedule
    from medyanpy.integrators import SplittingIntegrator
    from medyanpy.system import System

__all__ = ["MINIMISE", "Overlap", "contact", "overlaps", "overlaps_now"]

MINIMISE = "minimise first, simulation.minimize_energy()"

# In kT. A pair of a hard core that has the first in it makes its beads 20 times as fast as heat does; from the second
# on a pair overlaps if the timestep cannot follow it there, as no pair comes by heat.
_VIOLENT = 200.0
_NOT_BY_HEAT = 20.0
_HARD = 1e7
# Without a temperature: the factor by which the timestep is too long for a pair.
_MUCH_TOO_LONG = 10.0
# Distances at which energies are looked at, and how many neighbours of a bead: of a heap the nearest tell.
_GRID = 1024
_SPAN = 1e-9
_NEIGHBORS = 64
# pN, pN nm: beyond it numbers overflow within a few steps.
_LOST = 1e100
# Maxima of the contact function of two ellipsoids are looked for at so many places.
_PLACES = 33


@dataclass(frozen=True)
class Overlap:
    """The nearest pair of a force that overlaps.

    Attributes
    ----------
    force : str
    beads : (int, int)
        Beads in topology order, -1 of sites that are not single beads.
    distance : float, nm
    energy : float, pN nm
        Of the pair; inf or nan where it has none.
    bound : float, nm
        The distance up to which pairs of this force overlap (of ellipsoids as they are turned).
    pairs : int
        How many do.
    all_beads : (k,) int
        Beads of all these pairs; of sites the one that weighs most.
    in_one_place : (k,) int
        Those of them whose force is too large for a number, or none.
    text : str
        The pair in words.
    """

    force: str
    beads: tuple[int, int]
    distance: float
    energy: float
    bound: float
    pairs: int
    all_beads: np.ndarray
    in_one_place: np.ndarray
    text: str


class _Places:
    """Positions and orientations, as `Sites.places` takes them from a state."""

    def __init__(self, positions: np.ndarray, orientations: np.ndarray) -> None:
        self.positions, self.orientations = positions, orientations


def overlaps(
    system: "System", integrator: "SplittingIntegrator", layout: "Layout", positions: np.ndarray,
    orientations: np.ndarray,
) -> list[Overlap]:
    """Find the worst overlapping pair of each pair force, the worst force first.

    Parameters
    ----------
    positions : (n, 3) float, nm
        In topology order; nan in inactive rows.
    orientations : (m, 4) float
    """
    forces = [force for force in system.forces if isinstance(force, PairForce)]
    if not forces:
        return []
    start = Start(system.topology, integrator.overdamped)
    with np.errstate(all="ignore"):
        found = [_worst(force, integrator, start, layout, _Places(positions, orientations)) for force in forces]
    return sorted((one for one in found if one is not None), key=lambda one: -_size(one.energy))


def overlaps_now(schedule: "Schedule") -> list[Overlap]:
    """Find the worst overlapping pair of each pair force in the present state of a Context."""
    store = schedule.store
    if not any(isinstance(force, PairForce) for force in schedule.system.forces):
        return []
    schedule.perform(Place(), changes_state=False)
    layout = store.layout
    x, there = store.x[layout.rank], store.there()
    if there is not None:
        x = np.where(there[:, None], x, np.nan)
    own = [store.shown(column) for column in layout.topology.columns if column is ORIENTATIONS]
    return overlaps(schedule.system, schedule.integrator, layout, x, own[0] if own else np.empty((0, 4)))


def _size(energy: float) -> float:
    return energy if np.isfinite(energy) else np.inf


def _worst(
    force: PairForce, integrator: "SplittingIntegrator", start: Start, layout: "Layout", at: _Places
) -> Overlap | None:
    members = force._members(layout)
    profile = force._profile(layout, members) if len(members.row) else None
    if profile is None:
        return None
    x, coordinates = _members_at(force, members, start, at)
    size = coordinates.sums(start.lightness)
    there = np.flatnonzero(np.isfinite(x).all(axis=1) & (np.abs(x) < 1e100).all(axis=1))
    if len(there) < 2:
        return None
    box = layout.box if layout.is_periodic else None
    judge = _Judge(force, integrator, profile)
    reach = judge.reach(x[there], size[there], members.group)
    if not reach > 0.0:
        return None
    pairs = force._that_meet(members, there[near_pairs(np.ascontiguousarray(x[there]), reach, box)])
    main = _main_beads(force, members)
    pairs = pairs[~_rigid(layout, main[pairs])]
    d = displacement(x[pairs[:, 0]], x[pairs[:, 1]], box)
    apart = np.linalg.norm(d, axis=1)
    r = apart if profile.axes is None else _grown(d, profile.axes[pairs], *_frames(layout, members, pairs, at))
    u = profile.values(r, pairs)
    bad = np.flatnonzero(judge.overlapping(r, u, size[pairs].sum(axis=1), size[pairs].max(axis=1)))
    # Pairs of beads that stay where they are cannot be moved apart.
    bad = bad[size[pairs[bad]].max(axis=1, initial=0.0) > 0.0]
    if not len(bad):
        return None
    worst = bad[np.lexsort((apart[bad], -np.where(np.isfinite(u[bad, 0]), u[bad, 0], np.inf)))[0]]
    i, j = members.bead[pairs[worst]].tolist()
    lost = bad[~(np.abs(u[bad, :2]) < _LOST).all(axis=1)]
    bound = float(apart[worst] / r[worst] * judge.bound(pairs[worst], size)) if r[worst] > 0.0 else judge.bound(
        pairs[worst], size
    )
    distance, energy = float(apart[worst]), float(u[worst, 0])
    text = _in_words(force, integrator, layout, (i, j), members.number[pairs[worst]], distance, energy, bound, len(bad))
    every, in_one_place = (np.unique(main[pairs[rows]]) for rows in (bad, lost))
    return Overlap(
        force.name, (i, j), distance, energy, bound, len(bad), every[every >= 0], in_one_place[in_one_place >= 0], text
    )


def contact(schedule: "Schedule") -> float | None:
    """Return how near pairs of pair forces come by heat, nm, the least of all forces, wherever beads are; None where no
    pair force keeps beads apart."""
    system, integrator, layout = schedule.system, schedule.integrator, schedule.store.layout
    start = Start(system.topology, integrator.overdamped)
    found = []
    for force in system.forces:
        if not isinstance(force, PairForce):
            continue
        members = force._members(layout)
        profile = force._profile(layout, members) if len(members.row) else None
        if profile is None or profile.strongest is None:
            continue
        size = np.full(len(members.row), start.lightness.max(initial=0.0))
        k = profile.strongest
        if profile.axes is None:
            with np.errstate(all="ignore"):
                found.append(_Judge(force, integrator, profile).bound(np.array([k, k]), size, by_heat=True))
        else:
            found.append(2.0 * float(profile.axes.min()))
    return min((one for one in found if one > 0.0), default=None)


def _rigid(layout: "Layout", pairs: np.ndarray) -> np.ndarray:
    """Tell which pairs of beads are one, or joined by a link that keeps its length, (P,): nothing can part them."""
    links = [np.empty((0, 2), np.int64)]
    for handle in layout.topology.handles:
        if getattr(handle, "constrained", False) and len(handle.kind.joined):
            links.append(handle.beads[handle.kind.joined])
    n = layout.n
    kept = np.sort(np.concatenate(links), axis=1) @ [n, 1]
    own = np.sort(pairs, axis=1) @ [n, 1]
    out: np.ndarray = (pairs[:, 0] >= 0) & ((pairs[:, 0] == pairs[:, 1]) | np.isin(own, kept))
    return out


def _main_beads(force: PairForce, members: Any) -> np.ndarray:
    a, b = force._groups
    if not isinstance(a, Sites):
        out: np.ndarray = members.bead
        return out
    sites = a if a is b else a + b
    found: np.ndarray = sites.main_beads[members.row]
    return found


def _members_at(force: PairForce, members: Any, start: Start, at: _Places) -> tuple[np.ndarray, Any]:
    """Return the places of members, (members, 3), and their coordinates."""
    a, b = force._groups
    if not isinstance(a, Sites):
        return at.positions[members.bead], start.coordinates(members.bead)
    sites = a if a is b else a + b
    row = np.full(len(at.positions), -1)
    for handle in start.topology.oriented_handles:
        row[handle.beads] = handle.kind.row_numbers
    return sites.places(at, row)[members.row], start.sites(sites)[members.row]


class _Judge:
    """Test of which pairs of a force overlap."""

    def __init__(self, force: PairForce, integrator: "SplittingIntegrator", profile: Profile) -> None:
        self.kT, self.profile = integrator.kT, profile
        self.timestep, self.overdamped = integrator.timestep, integrator.overdamped
        softened = integrator.kick.softens(force.name)
        self.way = 0.0 if softened else 1.0 if integrator.overdamped else integrator.longest_flight(force.group) ** 2

    def overlapping(self, r: np.ndarray, u: np.ndarray, together: np.ndarray, larger: np.ndarray) -> np.ndarray:
        """Tell which pairs overlap at these distances. Given are energies and derivatives, and the sum and the larger
        of the sizes of both (`Coordinates.sums`)."""
        with np.errstate(all="ignore"):
            energy, slope = u[:, 0], u[:, 1]
            rate = np.maximum(u[:, 2], 0.0) * together * larger * self.way
            share = 0.5 * self.timestep * (rate if self.overdamped else np.sqrt(rate))
            none = ~np.isfinite(u[:, :2]).all(axis=1)
            repels = (slope < 0.0) | ((r == 0.0) & (energy > 0.0))
            if self.kT is None:
                found = repels & (share > _MUCH_TOO_LONG)
            else:
                found = repels & (energy >= _NOT_BY_HEAT * self.kT) & (share > 1.0)
                found |= repels & (energy >= _VIOLENT * self.kT) & self._hard()
        out: np.ndarray = (none | found) & self._has_numbers()
        return out

    def _has_numbers(self) -> bool:
        """Tell whether pairs that are apart have finite energies: a force with absurd numbers tells nothing of
        distances."""
        end = 1.0 if self.profile.axes is not None else self.profile.end or 1.0
        k = self.profile.strongest or 0
        u = self.profile.values(np.array([0.5, 0.9]) * end, np.array([[k, k], [k, k]]))
        return bool((np.abs(u[:, 0]) < _LOST).any())

    def _hard(self) -> bool:
        """Tell whether energies grow beyond all that heat gives, as beads come together. Forces of infinite range do
        not count: the energy of one pair may be outweighed by those of others."""
        k = self.profile.strongest
        if self.profile.end is None:
            return False
        if k is None:
            return True
        with np.errstate(all="ignore"):
            most = float(self.profile.values(np.array([1e-9]), np.array([[k, k]]))[0, 0])
        return self.kT is not None and not most < _HARD * self.kT

    def bound(self, pair: np.ndarray, size: np.ndarray, span: float = 0.0, by_heat: bool = False) -> float:
        """Return the largest distance at which a pair overlaps; or at which it has kT, if there is a temperature."""
        end = self.profile.end
        if self.profile.axes is not None:
            end = 2.0
        longest = end if end is not None else span or 1e6
        r = np.geomspace(_SPAN * longest, longest, _GRID)
        pairs = np.broadcast_to(pair, (_GRID, 2))
        with np.errstate(all="ignore"):
            u = self.profile.values(r, pairs)
        sizes = np.broadcast_to(size[pair], (_GRID, 2))
        if by_heat and self.kT is not None:
            bad = np.flatnonzero((u[:, 1] < 0.0) & (u[:, 0] >= self.kT))
        else:
            bad = np.flatnonzero(self.overlapping(r, u, sizes.sum(axis=1), sizes.max(axis=1)))
        return float(r[min(bad[-1] + 1, _GRID - 1)]) if len(bad) else 0.0

    def reach(self, x: np.ndarray, size: np.ndarray, groups: np.ndarray) -> float:
        """Return the distance up to which pairs are to be looked at."""
        extent = float(np.linalg.norm(np.ptp(x, axis=0)))
        end, k = self.profile.end, self.profile.strongest
        if k is None or self.profile.axes is not None:
            reach = end or extent
        else:
            # As if the lightest were there twice.
            most = np.full(max(k + 1, len(size)), size.max())
            reach = self.bound(np.array([k, k]), most, extent or 1.0)
        # Two in one place overlap where they have no energy.
        reach = max(reach, _SPAN * (end or extent or 1.0))
        if len(x) > _NEIGHBORS and extent > 0.0:
            reach = min(reach, extent * (_NEIGHBORS / len(x)) ** (1.0 / 3.0))
        return reach


def _frames(layout: "Layout", members: Any, pairs: np.ndarray, at: _Places) -> tuple[np.ndarray, np.ndarray]:
    """Return the axes in space of both bodies of each pair, as rows, (P, 3, 3) each; those of space of what does not
    turn."""
    row = np.full(layout.n, -1)
    for handle in layout.topology.oriented_handles:
        row[handle.beads] = handle.kind.row_numbers
    out = []
    for side in pairs.T:
        own = row[members.bead[side]]
        frame = np.broadcast_to(np.eye(3), (len(side), 3, 3)).copy()
        turning = np.flatnonzero(own >= 0)
        for c in range(3):
            axis = np.broadcast_to(np.eye(3)[c], (len(turning), 3))
            frame[turning, c] = turned(at.orientations[own[turning]], axis)
        out.append(frame)
    return out[0], out[1]


def _grown(d: np.ndarray, axes: np.ndarray, frame_a: np.ndarray, frame_b: np.ndarray) -> np.ndarray:
    """Return by how much pairs of ellipsoids, d (P, 3) apart, have to grow to touch, (P,): Perram and Wertheim's
    function."""
    squares = [
        np.einsum("pki,pk,pkj->pij", frame, axes[:, k] ** 2, frame) for k, frame in enumerate((frame_a, frame_b))
    ]
    best = np.zeros(len(d))
    for s in np.linspace(0.0, 1.0, _PLACES)[1:-1] if len(d) else ():
        matrix = (1.0 - s) * squares[0] + s * squares[1]
        solved = np.linalg.solve(matrix, d[:, :, None])[:, :, 0]
        best = np.maximum(best, s * (1.0 - s) * np.einsum("pi,pi->p", d, solved))
    return np.sqrt(best)


def _in_words(
    force: PairForce, integrator: "SplittingIntegrator", layout: "Layout", beads: tuple[int, int], numbers: np.ndarray,
    distance: float, energy: float, bound: float, n: int,
) -> str:
    if min(beads) < 0:
        who = f"sites {numbers[0]} and {numbers[1]}"
    else:
        one, other = (layout.topology.handle_of(bead).name for bead in beads)
        who = f"beads {beads[0]} and {beads[1]} of {one!r}"
        if one != other:
            who = f"bead {beads[0]} of {one!r} and bead {beads[1]} of {other!r}"
    unit, kT = "pN nm", integrator.kT
    if kT is not None:
        energy, unit = energy / kT, "kT"
    value = f"an energy of {energy:.3g} {unit}" if np.isfinite(energy) else "no finite energy"
    size = getattr(force, "sigma", None) if "sigma" in force.changeable else None
    told = f"sigma {size:g} nm" if isinstance(size, float) else f"they overlap below {bound:.3g} nm"
    more = f", and {n - 1} more pairs overlap" if n > 1 else ""
    return f"{who} are {distance:.3g} nm apart ({told}), where {force.name} has {value}{more}"
