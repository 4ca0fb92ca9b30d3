"""Consistency of the numbers of a simulation: the worksheet of `Simulation.check`, and warnings made of it.

One Context is looked at once, where its beads start: what each kind diffuses and how far it moves in a step, which
timestep each force bears, and what cannot have been meant. The same remarks are warnings when a Context is made.
"""

from dataclasses import dataclass, field
from functools import cached_property
from math import inf, isfinite, isinf, nan
from typing import TYPE_CHECKING, Any, TypeAlias, cast
from weakref import WeakKeyDictionary

import numpy as np

from medyanpy import units
from medyanpy._tools.images import box_lengths, box_shown, displacement
from medyanpy._tools.tables import aligned
from medyanpy.core.kinds import Block
from medyanpy.engine.overlaps import MINIMISE
from medyanpy.errors import BoxWarning, OverlapWarning, ThermostatWarning, TimestepWarning, UnitsWarning, warn_outside
from medyanpy.forces._stiffness import Start, longest_timestep

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from medyanpy.core.handles import Handle
    from medyanpy.engine.overlaps import Overlap
    from medyanpy.forces import Force
    from medyanpy.integrators import SplittingIntegrator
    from medyanpy.system import System

__all__ = ["BeadRow", "ForceRow", "Look", "Remark", "Worksheet"]

#: A force, and the squared frequencies that it has, 1/s²; see `Force.squared_frequencies`.
_Rate: TypeAlias = "tuple[Force, np.ndarray | None]"
#: A class of warnings, and a message.
Remark: TypeAlias = tuple[type[Warning], str]

# Bounds of what can be meant, each far beyond what is done on purpose. In units of a step: velocities that are never
# forgotten within a run, or are forgotten at once.
_NEVER_FORGOTTEN = 1e10
_FORGOTTEN_AT_ONCE = 1e4
# Thermal steps, in units of the lengths that are there.
_TOO_FAR = 1.0
_NOT_AT_ALL = 1e-10
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
class JumpRow:
    """Row of the worksheet for one jump that acts on beads.

    Attributes
    ----------
    name : str
    rate : float, 1/s
        Of the fastest event or attempt of one bead, pair, site or end.
    steps : float
        Between two of these: 1/(rate Δt).
    relaxation : float, s
        The longest time of its beads to forget a velocity, m/γ, or to diffuse over their shortest edge or link ℓ,
        ℓ²/2D; nan where none is known.
    slowest : str
        The handle with that time.
    room : float
        By how much rates may be raised before they are as fast as that, 1/(rate · relaxation). Below 1 beads are not at
        rest between events.
    """

    name: str
    rate: float
    steps: float
    relaxation: float
    slowest: str
    room: float

    @property
    def cells(self) -> tuple[str, ...]:
        return self.name, *map(_number, (self.rate, self.steps, self.relaxation)), self.slowest, _number(self.room)


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
    notes : tuple of str
        Numbers of jumps that are no warnings, such as how well steps resolve a reaction.
    jumps : tuple of JumpRow
        How often jumps act on one bead, pair, site or end, beside how fast beads relax.
    """

    timestep: float
    kT: float | None  # noqa: N815 - the symbol of the papers
    word: str
    beads: tuple[BeadRow, ...]
    forces: tuple[ForceRow, ...]
    together: ForceRow
    remarks: tuple[tuple[type[Warning], str], ...] = field(repr=False)
    notes: tuple[str, ...] = field(default=(), repr=False)
    jumps: tuple[JumpRow, ...] = ()

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
        if self.jumps:
            titles = ("fastest event (1/s)", "steps to it", "relaxation (s)", "slowest beads", "rates may rise by")
            lines += ["", *aligned([("jumps", *titles), *(j.cells for j in self.jumps)])]
        lines += ["", *self.notes] if self.notes else []
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


class Look:
    """System under an integrator, for `remarks` of forces, jumps and kinds of beads.

    Attributes
    ----------
    system : System
    integrator : SplittingIntegrator
    start : Start
        Where its beads start, in the box of now.
    boxes : list of ((3,) float array, str)
        Lengths of the box, nm, and those that jumps may give it, with a text for messages; empty without a box.
    """

    def __init__(self, system: "System", integrator: "SplittingIntegrator", box: np.ndarray | None = None) -> None:
        self.system: System = system
        self.integrator: SplittingIntegrator = integrator
        lengths = box_lengths(system.box) if box is None else box
        self.start: Start = Start(system.topology, integrator.overdamped, box_shown(lengths))
        self.boxes: list[tuple[np.ndarray, str]] = [(lengths, "")] if lengths.any() else []
        for name, jump in zip(system.jump_names, system.jumps, strict=True) if self.boxes else ():
            if (changed := jump.changed_box(lengths)) is not None:
                self.boxes.append((changed, f" when {name} has changed the box so far"))

    @cached_property
    def rates(self) -> "list[np.ndarray | None]":
        """Squared frequencies of all forces, 1/s²; see `Force.squared_frequencies`."""
        return [force.squared_frequencies(self.start) for force in self.system.forces]

    @cached_property
    def rows(self) -> "tuple[ForceRow, ...]":
        """Row of the worksheet of each force."""
        everything = zip(self.system.force_names, self.system.forces, self.rates, strict=True)
        return tuple(self.row_of(name, [(force, rate)]) for name, force, rate in everything)

    def row(self, force: "Force") -> ForceRow:
        """Return the row of a force of the system."""
        return next(row for one, row in zip(self.system.forces, self.rows, strict=True) if one is force)

    def row_of(self, name: str, parts: list[_Rate]) -> ForceRow:
        """Return the timestep that some forces together bear: each by the way that beads go between its kicks."""
        total: np.ndarray | None = None
        overdamped = self.integrator.overdamped
        for force, rate in parts:
            if rate is None or self.integrator.kick.softens(force.name):
                continue
            way = 1.0 if overdamped else self.integrator.longest_flight(force.group) ** 2
            total = rate * way if total is None else total + rate * way
        limit = longest_timestep(total, overdamped)
        if total is None or limit is None:
            return ForceRow(name, None, None)
        acts = total[total > 0.0]
        alone = 2 * np.count_nonzero(acts < acts.max(initial=0.0) / _STIFFER) > len(acts)
        stiffest = self.start.bead_of(int(np.argmax(total))) if alone else None
        return ForceRow(name, limit, self.integrator.timestep / limit if limit > 0.0 else inf, stiffest)


def look(
    system: "System", integrator: "SplittingIntegrator", box: np.ndarray | None = None, found: "Sequence[Overlap]" = ()
) -> Worksheet:
    """Return the worksheet of a system under an integrator, with what overlaps; of a box that has changed with its
    lengths now, (3,) nm."""
    own = Look(system, integrator, box)
    handles = [handle for handle in system.topology.handles if handle.kind.block is not Block.NONE]
    beads = tuple(_bead_row(system, integrator, handle) for handle in handles)
    together = own.row_of("all together", list(zip(system.forces, own.rates, strict=True)))
    objects: tuple[Any, ...] = (*(h.kind for h in handles), *system.forces, *system.jumps)
    remarks = [
        *_remarks_of_overlaps(found),
        *(
            _remarks_of_timesteps(system, integrator, system.forces, own.rows)
            or _remarks_of_their_sum(system, integrator, together)
        ),
        *(remark for one in objects for remark in one.remarks(own)),
        *_remarks_on_box(own),
        *_remarks_of_friction(system, integrator),
        *_remarks_of_temperatures(system, integrator),
        *_remarks_of_units(own, beads),
    ]
    notes = tuple(note for jump in system.jumps for note in jump.notes(own))
    return Worksheet(
        integrator.timestep, integrator.kT, integrator.word, beads, own.rows, together, tuple(remarks), notes,
        tuple(_jump_rows(own, beads)),
    )  # fmt: skip


def warn(
    system: "System", integrator: "SplittingIntegrator", said: set[Remark], box: np.ndarray,
    found: "Sequence[Overlap]" = (),
) -> None:  # fmt: skip
    """Warn of everything that a worksheet remarks and that has not been reported yet."""
    warn_once(look(system, integrator, box, found).remarks, said)


def warn_once(remarks: "Iterable[Remark]", said: set[Remark]) -> None:
    """Warn of what has not been reported yet; of boxes and of pairs that overlap once for each force."""
    for kind, text in remarks:
        about = text.partition(":")[0] if kind in (BoxWarning, OverlapWarning) else text
        if (kind, about) not in said:
            said.add((kind, about))
            warn_outside(text, kind)


def warn_of_box(system: "System", integrator: "SplittingIntegrator", said: set[Remark], box: np.ndarray) -> None:
    """Warn of forces that do not suit a box, (3,) nm, that has changed; once of each."""
    if box.any():
        warn_once(_remarks_on_box(Look(system, integrator, box)), said)


def _remarks_on_box(own: Look) -> list[Remark]:
    return [remark for force in own.system.forces for remark in force.remarks_on_box(own)]


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
    own = Look(system, integrator)
    rows = [own.row_of(force.name, [(force, force.squared_frequencies(own.start))]) for force in forces]
    for kind, text in _remarks_of_timesteps(system, integrator, forces, rows):
        warn_outside(text, kind)


def warn_of_integrator(system: "System", integrator: "SplittingIntegrator", longer: bool) -> None:
    """Warn after a change of its temperature, or of its timestep, which may be longer now."""
    timesteps = [r for r in look(system, integrator).remarks if r[0] is TimestepWarning] if longer else []
    for kind, text in [*timesteps, *_remarks_of_temperatures(system, integrator)]:
        warn_outside(text, kind)


# Rows -----------------------------------------------------------------------------------------------------------


def _bead_row(system: "System", integrator: "SplittingIntegrator", handle: "Handle") -> BeadRow:
    moves = ~handle.kind.fixed_beads
    mass, friction = (np.broadcast_to(values, (len(handle),))[moves] for values in (handle.mass, handle.friction))
    dt, kT = integrator.timestep, nan if integrator.kT is None else integrator.kT
    x, joined = cast(Any, handle).positions, handle.kind.joined
    links = displacement(x[joined[:, 0]], x[joined[:, 1]], system.box)
    length = float(np.linalg.norm(links, axis=1).min()) if len(joined) else nan
    with np.errstate(divide="ignore", invalid="ignore"):
        step = np.sqrt(2.0 * kT * dt / friction) if integrator.overdamped else np.sqrt(kT / mass) * dt
        diffusion, relaxation, damping = kT / friction, mass / friction, friction * dt / mass
    return BeadRow(
        handle.name, handle.kind.name, len(handle), bool(moves.any()),
        _least_and_largest(np.where(np.isinf(diffusion), nan, diffusion)), _least_and_largest(relaxation),
        _least_and_largest(damping), _least_and_largest(step), length,
    )  # fmt: skip


def _jump_rows(own: Look, beads: "tuple[BeadRow, ...]") -> "Iterable[JumpRow]":
    by_name = {row.name: row for row in beads if row.moving}
    for name, jump in zip(own.system.jump_names, own.system.jumps, strict=True):
        rate = jump.fastest(own.integrator.kT)
        if rate is None or not rate > 0.0:
            continue
        times = [
            (time, row.name)
            for row in (by_name[h.name] for h in dict.fromkeys(jump.handles) if h.name in by_name)
            for time in (row.relaxation[1], row.length**2 / (2.0 * row.diffusion[0]))
            if isfinite(time)
        ]
        time, slowest = max(times, default=(nan, ""))
        steps = 1.0 / (rate * own.integrator.timestep)
        yield JumpRow(name, rate, steps, time, slowest, 1.0 / (rate * time) if time > 0.0 else nan)


def _least_and_largest(values: np.ndarray) -> tuple[float, float]:
    return (float(values.min()), float(values.max())) if len(values) else (nan, nan)


# Remarks ----------------------------------------------------------------------------------------------------------


def _remarks_of_overlaps(found: "Sequence[Overlap]") -> list[Remark]:
    return [(OverlapWarning, f"{one.force}: {one.text}: {MINIMISE}") for one in found]


def _remarks_of_timesteps(
    system: "System", integrator: "SplittingIntegrator", forces: "Sequence[Force]", rows: "Sequence[ForceRow]"
) -> list[Remark]:
    if integrator.steps is not None:
        # Steps are shorter where forces are stiff: the user's control says how much.
        return []
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


def _remarks_of_their_sum(system: "System", integrator: "SplittingIntegrator", together: ForceRow) -> list[Remark]:
    """Return remarks on forces each of which bears the timestep alone, and which act on the same beads."""
    if together.limit is None or together.share is None or together.share <= 1.0 or integrator.steps is not None:
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
    which = handle.kind.describe(row.stiffest) or handle.kind
    text = f". The stiffest is bead {row.stiffest} ({handle.name!r}, {which}){handle.kind.describe_start(row.stiffest)}"
    return text + "; half of the others bear twice as long a timestep"


def _remarks_of_friction(system: "System", integrator: "SplittingIntegrator") -> list[Remark]:
    """Return remarks on handles that a thermostat does not reach. Beads that constraints join have one temperature."""
    handles = system.topology.handles
    if integrator.overdamped or not any(letter.kind == "O" for letter in integrator.letters):
        return []
    remarks: list[Remark] = []
    for handle in handles:
        together = [h for h in handles if h.kind.measured_with is handle]
        if sum(h.degrees_of_freedom for h in together) > 0 and not any(h.kind.has_friction for h in together):
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


def _remarks_of_temperatures(system: "System", integrator: "SplittingIntegrator") -> list[Remark]:
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


def _remarks_of_units(own: Look, beads: tuple[BeadRow, ...]) -> list[Remark]:
    """Return remarks on slips of units. Where a temperature was given in kelvin numbers are in units; where a kT was
    given, they are if masses and timesteps are as small as only pN s²/nm and s make them."""
    system, integrator, start = own.system, own.integrator, own.start
    dt, kT = integrator.timestep, integrator.kT
    if kT is None:
        return []
    if not integrator.in_kelvin:
        handles = system.topology.handles
        masses = [float(np.median(h.mass)) for h in handles if len(h.mass) and not h.kind.fixed_beads.all()]
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
    places = np.concatenate([cast(Any, h).positions for h in system.topology.handles if h.kind.in_space])
    # All beads may be still to come.
    size = float(np.ptp(places, axis=0).max()) if len(places) else 0.0
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
    for name, rate in zip(system.force_names, own.rates, strict=True):
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
