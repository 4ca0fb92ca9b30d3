"""Consistency of the numbers of a simulation: the worksheet of `Simulation.check`, and warnings made of it.

One Context is looked at once, where its beads start: what each kind diffuses and how far it moves in a step, which
timestep each force bears, and what cannot have been meant. The same remarks are warnings when a Context is made.
"""

from dataclasses import dataclass, field
from math import inf, isinf, nan
from typing import TYPE_CHECKING, Any, TypeAlias, cast
from weakref import WeakKeyDictionary

import numpy as np

from medyanpy import units
from medyanpy._tools.images import box_lengths, box_shown, displacement
from medyanpy._tools.tables import aligned
from medyanpy.beads import Constraints, Membrane
from medyanpy.engine.mesh_quality import flattest
from medyanpy.engine.overlaps import MINIMISE
from medyanpy.errors import (
    BoxWarning,
    MeshQualityWarning,
    OverlapWarning,
    ThermostatWarning,
    TimestepWarning,
    UnitsWarning,
    warn_outside,
)
from medyanpy.forces import ExternalField, MembraneBending, MembraneFoldRepulsion
from medyanpy.forces._stiffness import Start, longest_timestep
from medyanpy.jumps import BoxArea, EdgeFlips
from medyanpy.mesh.geometry import NEEDLE_STEPS, heights

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from medyanpy.engine.overlaps import Overlap
    from medyanpy.forces import Force
    from medyanpy.handles import Handle
    from medyanpy.integrators import SplittingIntegrator
    from medyanpy.system import System

__all__ = ["BeadRow", "ForceRow", "Worksheet"]

#: A force, and the squared frequencies that it has, 1/s²; see `Force.squared_frequencies`.
_Rate: TypeAlias = "tuple[Force, np.ndarray | None]"
#: A class of warnings, and a message.
_Remark: TypeAlias = tuple[type[Warning], str]

# Bounds of what can be meant, each far beyond what is done on purpose. In units of a step: velocities that are never
# forgotten within a run, or are forgotten at once.
_NEVER_FORGOTTEN = 1e10
_FORGOTTEN_AT_ONCE = 1e4
# Thermal steps, in units of the lengths that are there.
_TOO_FAR = 1.0
_NOT_AT_ALL = 1e-10
# Stars of triangles are crumpled by heat where their flatness is less than the first, and crumpled ones of the vertex
# form are not resolved by more than the second part of the longest timestep; by the third they are.
_SHARP = 0.7
_CRUMPLED = 0.12
_RESOLVED = 0.05
# A place is worth naming if half of the beads bear so many times its squared frequency less.
_STIFFER = 4.0
# Limits of timesteps are bounds up to twice; this changes them by a hundredth where stiffness is a number of its own.
_LITTLE = 0.02
# Bounds far above masses (pN s²/nm) and timesteps (s) of cells, but not above those of work without units; and the kT
# that is a temperature of anything there (pN nm).
_SMALL = 1e-4
_COLDEST = 1e-3
_HOTTEST = 50.0
# An energy across the whole system, in kT, that nothing feels.
_NOTHING = 1e-9
# Rounding of an energy that is the same at both ends of a box.
_ROUNDING = 1e-9
# Text on fields that do not repeat with the box, after their names.
_JUMPS = ": its energies differ by up to "
# A length that a box may come to have, over that of now: with which no function repeats that does with the box.
_ANOTHER = 1.0173


@dataclass(frozen=True)
class BeadRow:
    """The beads of one handle. Ranges are from the least to the largest of its beads that move.

    Attributes
    ----------
    name, kind : str
    n : int
    moving : bool
        Whether any of them does.
    diffusion : (float, float), nm²/s
        D = kT/γ; nan without temperature or friction. Of bodies with the mean γ of three directions.
    relaxation : (float, float), s
        m/γ, for which velocities are remembered; inf without friction.
    damping : (float, float)
        γΔt/m
    step : (float, float), nm
        What a bead moves in a timestep along each axis, as the square root of the mean square: √(kT/m) Δt, without
        velocities √(2kTΔt/γ).
    length : float, nm
        The shortest edge or link where they start; nan where there is none.
    """

    name: str
    kind: str
    n: int
    moving: bool
    diffusion: tuple[float, float]
    relaxation: tuple[float, float]
    damping: tuple[float, float]
    step: tuple[float, float]
    length: float


@dataclass(frozen=True)
class ForceRow:
    """Row of the worksheet for one force.

    Attributes
    ----------
    name : str
    limit : float or None, s
        The longest timestep with this word that the force bears; inf where it sets none, None where it cannot tell.
    share : float or None
        The timestep, in units of the limit.
    stiffest : int or None
        The bead that sets the limit, if half of the beads that the force acts on would bear twice as long a timestep.
    """

    name: str
    limit: float | None
    share: float | None
    stiffest: int | None = None


@dataclass(frozen=True)
class Worksheet:
    """Table of what the numbers of a simulation mean for each other, made by `Simulation.check`; its text is a table.

    Attributes
    ----------
    timestep : float, s
    kT : float or None, pN nm
    beads : tuple of BeadRow
    forces : tuple of ForceRow
    together : ForceRow
        All forces that can tell, on the same beads.
    remarks : tuple of (type, str)
        What is wrong or unlikely: the warnings of the Context, by their classes.
    """

    timestep: float
    kT: float | None  # noqa: N815 - the symbol of the papers
    word: str
    beads: tuple[BeadRow, ...]
    forces: tuple[ForceRow, ...]
    together: ForceRow
    remarks: tuple[tuple[type[Warning], str], ...] = field(repr=False)

    @property
    def ok(self) -> bool:
        """True if there are no remarks."""
        return not self.remarks

    def __str__(self) -> str:
        thermal = "no temperature" if self.kT is None else f"kT = {self.kT:.4g} pN nm"
        lines = [f"word {self.word}, timestep {self.timestep:g} s, {thermal}", ""]
        head = ("beads", "", "D (nm²/s)", "m/γ (s)", "γΔt/m", "thermal step (nm)", "edge or link (nm)")
        rows = [
            (
                b.name, f"{b.n} {b.kind}", *map(_range, (b.diffusion, b.relaxation, b.damping, b.step)),
                _number(b.length),
            ) if b.moving else (b.name, f"{b.n} {b.kind}", "fixed", "", "", "", _number(b.length))
            for b in self.beads
        ]  # fmt: skip
        lines += aligned([head, *rows])
        lines += ["", *aligned([
            ("forces", "longest timestep (s)", "timestep / longest"),
            *((f.name, *_limit(f)) for f in (*self.forces, *([self.together] if len(self.forces) > 1 else []))),
        ])]  # fmt: skip
        lines += ["", *([f"{kind.__name__}: {text}" for kind, text in self.remarks] or [self._verdict()])]
        return "\n".join(lines)

    def _verdict(self) -> str:
        share = self.together.share
        if share is None:
            return "Nothing is wrong that can be told."
        if share <= 0.3:
            return f"All is well: the timestep is {share:.2g} of what is stable."
        return (
            f"Stable, but the timestep is {share:.2g} of what is: run at half of it too, and compare what you are "
            "interested in."
        )

    __repr__ = __str__


def look(
    system: "System",
    integrator: "SplittingIntegrator",
    box: np.ndarray | None = None,
    found: "Sequence[Overlap]" = (),
) -> Worksheet:
    """Return the worksheet of a system under an integrator, with what overlaps; of a box that has changed with its
    lengths now, (3,) nm."""
    start = Start(system.topology, integrator.overdamped, system.box if box is None else box_shown(box))
    rates = [force.squared_frequencies(start) for force in system.forces]
    handles = [handle for handle in system.topology.handles if not isinstance(handle, Constraints)]
    beads = tuple(_bead_row(system, integrator, handle) for handle in handles)
    forces = tuple(
        _force_row(system, integrator, start, name, [(force, rate)])
        for name, force, rate in zip(system.force_names, system.forces, rates, strict=True)
    )
    together = _force_row(system, integrator, start, "all together", list(zip(system.forces, rates, strict=True)))
    remarks = [
        *_remarks_of_overlaps(found),
        *(
            _remarks_of_timesteps(system, integrator, system.forces, forces)
            or _remarks_of_their_sum(system, integrator, together)
        ),
        *_remarks_of_needles(system, integrator),
        *_remarks_of_folds(system, integrator, forces),
        *_remarks_of_fluids(system),
        *_remarks_of_fields(system, start, box_lengths(system.box) if box is None else box),
        *_remarks_of_friction(system, integrator),
        *_remarks_of_temperatures(system, integrator),
        *_remarks_of_units(system, integrator, start, rates, beads),
    ]
    return Worksheet(
        integrator.timestep, integrator.kT, integrator.word, beads, forces, together, tuple(remarks)
    )


def warn(
    system: "System",
    integrator: "SplittingIntegrator",
    said: set[str],
    box: np.ndarray,
    found: "Sequence[Overlap]" = (),
) -> None:
    """Warn of everything that a worksheet remarks and that has not been reported yet."""
    _warn_once(look(system, integrator, box, found).remarks, said)


def _warn_once(remarks: "Iterable[_Remark]", said: set[str]) -> None:
    """Warn of what has not been reported yet: of a field that does not repeat with the box once, whatever the box was,
    and of pairs that overlap once for each force."""
    for kind, text in remarks:
        field, jumps, _ = text.partition(_JUMPS)
        about = text.partition(":")[0] if kind is OverlapWarning else field + jumps
        if not any(before.startswith(about) for before in said):
            said.add(about if kind is OverlapWarning else text)
            warn_outside(text, kind)


def warn_of_fields(system: "System", overdamped: bool, said: set[str], box: np.ndarray) -> None:
    """Warn of fields that do not repeat with a box, (3,) nm, that has changed; once of each."""
    if not box.any() or not any(isinstance(force, ExternalField) for force in system.forces):
        return
    _warn_once(_remarks_of_fields(system, Start(system.topology, overdamped), box), said)


class Looked:
    """Numbers that forces had when their timesteps were last examined. Of ramps, most steps change next to nothing, and
    an examination costs as much as tens of steps."""

    def __init__(self) -> None:
        self._seen: WeakKeyDictionary[Force, tuple[int, dict[str, Any]]] = WeakKeyDictionary()

    def anew(self, forces: "Sequence[Force]") -> "list[Force]":
        """Return, of forces that have changed, those to be examined again; they count as examined."""
        out = []
        for force in forces:
            terms, numbers = force._version - force._sets, force._numbers
            seen = self._seen.get(force)
            if seen is None or seen[0] != terms or any(_has_moved(seen[1].get(k), v) for k, v in numbers.items()):
                self._seen[force] = terms, numbers
                out.append(force)
        return out


def _has_moved(before: Any, now: Any) -> bool:
    """Tell whether a number has changed by more than a little of what it was; anything else has moved as soon as it is
    another."""
    if now is before:
        return False
    if not isinstance(before, int | float | np.ndarray) or not isinstance(now, int | float | np.ndarray):
        return True
    if np.shape(before) != np.shape(now):
        return True
    with np.errstate(invalid="ignore", over="ignore"):
        return not bool(np.all(np.abs(np.subtract(now, before)) <= _LITTLE * np.abs(before)))


def warn_of_timesteps(system: "System", integrator: "SplittingIntegrator", forces: "Sequence[Force]") -> None:
    """Warn of forces that have become too stiff for the time between their kicks."""
    if not forces:
        return
    start = Start(system.topology, integrator.overdamped, system.box)
    rows = [
        _force_row(system, integrator, start, force.name, [(force, force.squared_frequencies(start))])
        for force in forces
    ]
    for kind, text in _remarks_of_timesteps(system, integrator, forces, rows):
        warn_outside(text, kind)


def warn_of_integrator(system: "System", integrator: "SplittingIntegrator", longer: bool) -> None:
    """Warn after a change of its temperature, or of its timestep, which may be longer now."""
    timesteps = [r for r in look(system, integrator).remarks if r[0] is TimestepWarning] if longer else []
    for kind, text in [*timesteps, *_remarks_of_temperatures(system, integrator)]:
        warn_outside(text, kind)


# Rows -----------------------------------------------------------------------------------------------------------


def _bead_row(system: "System", integrator: "SplittingIntegrator", handle: "Handle") -> BeadRow:
    moves = ~handle.fixed_beads
    mass, friction = (np.broadcast_to(values, (len(handle),))[moves] for values in (handle.mass, handle.friction))
    dt, kT = integrator.timestep, nan if integrator.kT is None else integrator.kT
    x, joined = cast(Any, handle).positions, handle.joined
    links = displacement(x[joined[:, 0]], x[joined[:, 1]], system.box)
    length = float(np.linalg.norm(links, axis=1).min()) if len(joined) else nan
    with np.errstate(divide="ignore", invalid="ignore"):
        step = np.sqrt(2.0 * kT * dt / friction) if integrator.overdamped else np.sqrt(kT / mass) * dt
        diffusion, relaxation, damping = kT / friction, mass / friction, friction * dt / mass
    return BeadRow(
        handle.name, handle.kind, len(handle), bool(moves.any()),
        _least_and_largest(np.where(np.isinf(diffusion), nan, diffusion)), _least_and_largest(relaxation),
        _least_and_largest(damping), _least_and_largest(step), length,
    )  # fmt: skip


def _force_row(
    system: "System", integrator: "SplittingIntegrator", start: Start, name: str, parts: list[_Rate]
) -> ForceRow:
    """Return the timestep that some forces together bear: each by the way that beads go between its kicks."""
    total: np.ndarray | None = None
    for force, rate in parts:
        if rate is None or integrator.kick.softens(force.name):
            continue
        way = 1.0 if integrator.overdamped else integrator.longest_flight(force.group) ** 2
        total = rate * way if total is None else total + rate * way
    limit = longest_timestep(total, integrator.overdamped)
    if total is None or limit is None:
        return ForceRow(name, None, None)
    acts = total[total > 0.0]
    alone = 2 * np.count_nonzero(acts < acts.max(initial=0.0) / _STIFFER) > len(acts)
    stiffest = start.bead_of(int(np.argmax(total))) if alone else None
    return ForceRow(name, limit, integrator.timestep / limit if limit > 0.0 else inf, stiffest)


def _least_and_largest(values: np.ndarray) -> tuple[float, float]:
    return (float(values.min()), float(values.max())) if len(values) else (nan, nan)


# Remarks ----------------------------------------------------------------------------------------------------------


def _remarks_of_overlaps(found: "Sequence[Overlap]") -> list[_Remark]:
    return [(OverlapWarning, f"{one.force}: {one.text}: {MINIMISE}") for one in found]


def _remarks_of_timesteps(
    system: "System", integrator: "SplittingIntegrator", forces: "Sequence[Force]", rows: "Sequence[ForceRow]"
) -> list[_Remark]:
    return [
        (
            TimestepWarning,
            f"{force.name}: the timestep {integrator.timestep:g} s is beyond the stability limit of this force, "
            f"{row.limit:g} s with the word {integrator.word!r} "
            + ("(2 over its highest rate): " if integrator.overdamped else
               "(2 over its highest frequency): " if force.exact_frequencies else
               "(2 over a bound of its highest frequency): ")
            + ("the energy will blow up" if force.exact_frequencies else "the energy will be wrong, or blow up")
            + f". Take about {0.25 * row.limit:.2g} s, heavier beads, or a softer force"
            + _place(system, integrator, row)
        )
        for force, row in zip(forces, rows, strict=True)
        if row.limit is not None and row.share is not None and row.share > 1.0
    ]  # fmt: skip


def _remarks_of_their_sum(system: "System", integrator: "SplittingIntegrator", together: ForceRow) -> list[_Remark]:
    """Return remarks on forces each of which bears the timestep alone, and which act on the same beads."""
    if together.limit is None or together.share is None or together.share <= 1.0:
        return []
    return [(
        TimestepWarning,
        f"the timestep {integrator.timestep:g} s is beyond the stability limit of all forces together, "
        f"{together.limit:g} s with the word {integrator.word!r}, though each alone bears it: the energy will "
        f"be wrong, or blow up. Take about {0.25 * together.limit:.2g} s, heavier beads, or softer forces"
        + _place(system, integrator, together),
    )]  # fmt: skip


def _place(system: "System", integrator: "SplittingIntegrator", row: ForceRow) -> str:
    """Name the place where a force is much stiffer than elsewhere: there the mesh is to be mended, not the force."""
    if row.stiffest is None:
        return ""
    handle = system.topology.handle_of(row.stiffest)
    text = f". The stiffest is bead {row.stiffest} ({handle.name!r}, {handle.describe(row.stiffest) or handle.kind})"
    if isinstance(handle, Membrane):
        vertex = int(np.flatnonzero(handle.beads == row.stiffest)[0])
        if (found := flattest(handle.mesh.vertices, handle.mesh.faces, vertex, handle.mesh._lengths)) is not None:
            text += f", triangle {found[0]} (height {found[1]:.3g} nm)"
    return text + "; half of the others bear twice as long a timestep"


def _remarks_of_needles(system: "System", integrator: "SplittingIntegrator") -> list[_Remark]:
    """Return remarks on triangles so flat that heat turns them over in a few steps: forces and flights there are not
    resolved."""
    if integrator.kT is None or integrator.overdamped:
        return []
    remarks: list[_Remark] = []
    for membrane in system.topology.membranes:
        mesh, moves = membrane.mesh, ~membrane.fixed_beads
        inverse_mass = np.divide(1.0, membrane.mass, out=np.zeros(len(membrane)), where=moves)
        height = heights(mesh.vertices, mesh.faces, mesh._lengths)
        speed = np.sqrt(integrator.kT * inverse_mass)[mesh.faces].max(axis=1)
        longest = np.divide(height, NEEDLE_STEPS * speed, out=np.full(len(height), inf), where=speed > 0.0)
        needles = int(np.count_nonzero(longest < integrator.timestep))
        if needles:
            i = int(np.argmin(longest))
            others = f" (and {needles - 1} more)" if needles > 1 else ""
            remarks.append((
                TimestepWarning,
                f"{membrane.name!r}: triangle {i}{others} has a height of {height[i]:.3g} nm, and in a timestep of "
                f"{integrator.timestep:g} s heat moves its vertices by {speed[i] * integrator.timestep:.3g} nm: it "
                f"will be turned over, and the run gets hot or runs away. A timestep of {longest[i]:.3g} s would do, "
                "larger vertex masses, or a mesh without needles (see mesh.quality): mesh.remesh(edge_length=...) "
                "makes one",
            ))  # fmt: skip
    return remarks


def _remarks_of_folds(
    system: "System", integrator: "SplittingIntegrator", rows: "Sequence[ForceRow]"
) -> list[_Remark]:
    """Return remarks on stars of triangles so sharply bent that heat crumples them, where bending energies are not
    smooth."""
    remarks: list[_Remark] = []
    if integrator.kT is None or integrator.overdamped:
        return []
    for force, row in zip(system.forces, rows, strict=True):
        if not isinstance(force, MembraneBending) or row.limit is None or row.share is None:
            continue
        membrane, flatness, vertex = force.membrane, force.flatness(), force.discretization == "vertex"
        if vertex and not force.projected:
            # It costs the more the sharper it is bent.
            continue
        i, n = int(np.argmin(flatness)), int(np.count_nonzero(flatness < _SHARP))
        if not n or (vertex and row.share <= _CRUMPLED):
            continue
        if (found := flattest(membrane.mesh.vertices, membrane.mesh.faces, i, membrane.mesh._lengths)) is None:
            continue
        others = f" and {n - 1} more" if n > 1 else ""
        remarks.append((
            TimestepWarning,
            f"{force.name}: {membrane.name!r} is bent too sharply for its mesh at vertex {i}{others} (triangle "
            f"{found[0]}; the area vectors of the triangles round it add up to {flatness[i]:.2g} of their areas). "
            "Heat crumples such places, and "
            + (f"the projected form is stiffer there without bound: at {integrator.timestep:g} s single vertices get "
               f"hot. A finer or smoother mesh would do, or a timestep of {_RESOLVED * row.limit:.2g} s" if vertex else
               "where an edge is folded past 180° the dihedral form jumps: single vertices get hot, at any timestep. "
               "A finer or smoother mesh would do"),
        ))  # fmt: skip
    return remarks


def _remarks_of_fluids(system: "System") -> list[_Remark]:
    """Return remarks on membranes that flow into folds whose bending energy is lower than that of a surface."""
    kept = {force.membrane for force in system.forces if isinstance(force, MembraneFoldRepulsion)}
    flow = [jump for jump in system.jumps if isinstance(jump, EdgeFlips) and jump.rate > 0.0]
    return [
        (
            MeshQualityWarning,
            f"{jump.name}: nothing keeps triangles of {jump.membrane.name!r} from folding onto each other as its edges "
            f"flip, and {force.name} has less energy where they do: areas, volumes and spectra will be those of a "
            "crumpled membrane, sooner or later. Add forces.MembraneFoldRepulsion(membrane, 20 * kT)",
        )
        for jump in flow
        for force in system.forces
        if isinstance(force, MembraneBending) and force.membrane is jump.membrane and jump.membrane not in kept
    ]


def _remarks_of_fields(system: "System", start: Start, box: np.ndarray) -> list[_Remark]:
    """Return remarks on energies that jump where a bead crosses from one end of the box, (3,) nm, to the other."""
    if not box.any():
        return []
    remarks: list[_Remark] = []
    for force in system.forces:
        if not isinstance(force, ExternalField):
            continue
        for own, when in _boxes(system, box):
            jumps = force.jumps_at_sides(start, own)
            c = int(np.argmax(jumps))
            if jumps[c] > _ROUNDING:
                x = "xyz"[c]
                remarks.append((
                    BoxWarning,
                    f"{force.name}{_JUMPS}{jumps[c]:.2g} of themselves between {x} = {-0.5 * own[c]:.6g} and "
                    f"{0.5 * own[c]:.6g} nm, one and the same place{when}: in a box {x} is that of the image nearest "
                    "to the origin, and beads that cross there gain or lose the difference. Write a function that is "
                    "the same at both ends, or take HarmonicTrap for beads that are held each at its place, and "
                    "UniformField for a force that is the same everywhere",
                ))  # fmt: skip
                break
    return remarks


def _boxes(system: "System", box: np.ndarray) -> list[tuple[np.ndarray, str]]:
    """Return the lengths of a box, and others that jumps may give it, with how messages describe them."""
    changed = [
        (np.where(jump.directions, _ANOTHER * box, box), f" when {name} has changed the box so far")
        for name, jump in zip(system.jump_names, system.jumps, strict=True)
        if isinstance(jump, BoxArea)
    ]
    return [(box, ""), *changed]


def _remarks_of_friction(system: "System", integrator: "SplittingIntegrator") -> list[_Remark]:
    """Return remarks on handles that a thermostat does not reach. Beads that constraints join have one temperature."""
    handles = system.topology.handles
    if integrator.overdamped or not any(letter.kind == "O" for letter in integrator.letters):
        return []
    remarks: list[_Remark] = []
    for handle in handles:
        together = [h for h in handles if h.measured_with is handle]
        if sum(h.degrees_of_freedom for h in together) > 0 and not any(h.has_friction for h in together):
            typical = float(np.median(handle.mass)) / (10.0 * integrator.timestep)
            remarks.append((
                ThermostatWarning,
                f"{handle!r} has no friction, so that the thermostat does not act on it: the O of the word "
                f"{integrator.word!r} is friction and noise, and nothing else keeps it at kT = {integrator.kT:.4g} "
                f"pN nm. Give it a friction when it is added (of the order of mass/(10 timesteps) = {typical:.2g} "
                "pN s/nm), or run without O for constant energy",
            ))  # fmt: skip
    return remarks


def _made_for(force: "Force") -> float | None:
    """Return the kT that all of a force is made for, where there is one."""
    kT = getattr(force, "kT", None) if "kT" in force.changeable else None
    return None if kT is None or np.ndim(kT) else float(kT)


def _remarks_of_temperatures(system: "System", integrator: "SplittingIntegrator") -> list[_Remark]:
    """Return remarks on forces made for another temperature than the thermostat's, such as `FixmanPotential`."""
    kT = integrator.kT
    return [
        (
            ThermostatWarning,
            f"{force.name} is made for kT = {made_for:.6g} pN nm, and the thermostat keeps {kT:.6g}: "
            f"set it too, force.set(kT={kT:.6g})",
        )
        for force in system.forces
        if kT is not None and (made_for := _made_for(force)) is not None and abs(made_for - kT) > 1e-6 * kT
    ]


def _remarks_of_units(
    system: "System",
    integrator: "SplittingIntegrator",
    start: Start,
    rates: "Sequence[np.ndarray | None]",
    beads: tuple[BeadRow, ...],
) -> list[_Remark]:
    """Return remarks on slips of units. Where a temperature was given in kelvin numbers are in units; where a kT was
    given, they are if masses and timesteps are as small as only pN s²/nm and s make them."""
    dt, kT = integrator.timestep, integrator.kT
    if kT is None:
        return []
    if not integrator.in_kelvin:
        masses = [float(np.median(h.mass)) for h in system.topology.handles if len(h.mass) and not h.fixed_beads.all()]
        in_units = bool(masses) and max(masses) < _SMALL and dt < _SMALL
        if not in_units or _COLDEST <= kT <= _HOTTEST:
            return []
        kelvin = kT / units.boltzmann
        meant = f"temperature={kT:g} is what gives a temperature in kelvin" if kT > _HOTTEST else (
            "1 J is 1e21 pN nm (units.joule)"
        )
        text = (
            f"kT = {kT:g} pN nm is a temperature of {kelvin:.3g} K, beside masses of {max(masses):.3g} pN s²/nm and a "
            f"timestep of {dt:g} s: at 300 K it is 4.14 pN nm. {meant}"
        )
        return [(UnitsWarning, text)]
    remarks: list[str] = []
    places = [cast(Any, h).positions for h in system.topology.handles if h.in_space]
    size = float(np.ptp(np.concatenate(places), axis=0).max())
    for row in beads:
        if not row.moving:
            continue
        who = f"{row.name!r} ({row.n} {row.kind})"
        step, lengths = row.step, [s for s in (row.length, size) if s > 0.0]
        if row.length > 0.0 and _TOO_FAR * row.length < step[1] < inf:
            remarks.append(
                f"{who}: heat moves a bead by {step[1]:.3g} nm in one timestep of {dt:g} s, farther than from one "
                f"neighbour to the next ({row.length:.3g} nm). Timesteps are in s, lengths in nm "
                "(units.micrometer), masses in pN s²/nm, which is 1 g"
            )
        elif lengths and step[1] < _NOT_AT_ALL * min(lengths):
            remarks.append(
                f"{who}: heat moves a bead by {step[1]:.3g} nm in one timestep of {dt:g} s, so that nothing will "
                f"happen on the scale of {min(lengths):.3g} nm. Masses are in pN s²/nm, which is 1 g "
                "(units.dalton), and timesteps in s"
            )
        if row.damping[1] > _FORGOTTEN_AT_ONCE and not integrator.overdamped:
            remarks.append(
                f"{who}: velocities are forgotten in m/γ = {row.relaxation[0]:.3g} s, and one timestep is {dt:g} s. "
                "Timesteps are in s; a larger mass makes m/γ longer, and BrownianIntegrator needs no velocities"
            )
        elif 0.0 < row.damping[1] < 1.0 / _NEVER_FORGOTTEN and not integrator.overdamped:
            remarks.append(
                f"{who}: velocities are remembered for m/γ = {row.relaxation[1]:.3g} s, {1.0 / row.damping[1]:.2g} "
                "timesteps: no run brings it to its temperature. Masses are in pN s²/nm, which is 1 g "
                "(units.dalton), frictions in pN s/nm"
            )
    for name, rate in zip(system.force_names, rates, strict=True):
        if rate is None or not rate.any() or not size > 0.0:
            continue
        acts = (rate > 0.0) & (start.lightness > 0.0)
        stiffest = float((rate[acts] / start.lightness[acts] ** 2).max())
        energy = stiffest * size**2
        if energy < _NOTHING * kT:
            remarks.append(
                f"{name}: across the whole system ({size:.3g} nm) this force costs {energy:.2g} pN nm, and kT is "
                f"{kT:.3g} pN nm: it does nothing. Energies are in pN nm; 1 J is 1e21 (units.joule)"
            )
    return [(UnitsWarning, text) for text in remarks]


# Text -------------------------------------------------------------------------------------------------------------


def _number(value: float | None) -> str:
    if value is None or value != value:
        return "-"
    return "∞" if isinf(value) else f"{value:.3g}"


def _range(values: tuple[float, float]) -> str:
    low, high = (_number(v) for v in values)
    return low if low == high else f"{low} to {high}"


def _limit(row: ForceRow) -> tuple[str, str]:
    return ("cannot tell", "-") if row.limit is None else (_number(row.limit), _number(row.share))
