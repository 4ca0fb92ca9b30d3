"""Reports of faults in kernels, in the user's words: step, bead, object, force, and the likely cause."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from medyanpy._kernels.core.program import ProgramFault
from medyanpy._kernels.core.program import Sequence as Operations
from medyanpy._kernels.letters.kick import Kick
from medyanpy._tools.locking import Turn
from medyanpy.engine.mesh_quality import keepers_at
from medyanpy.engine.overlaps import MINIMISE, Overlap, overlaps_now
from medyanpy.engine.schedule import Schedule
from medyanpy.engine.store import Store
from medyanpy.errors import SimulationError
from medyanpy.mesh.geometry import flattest, heights

if TYPE_CHECKING:
    from medyanpy.core.handles import Handle

__all__ = ["Faults"]

_CAUSES = {
    "not finite": "the velocity or force is no longer a finite number. The timestep is too large for the "
    "stiffest force, or beads start on top of each other: try a smaller timestep or minimize_energy() first",
    "too many crossings": "an in-triangle point crosses edges without end. Its speed times the timestep is far "
    "larger than a triangle: try a smaller timestep, or a larger mass",
    "degenerate triangle": "a triangle here has lost its area. The membrane needs {keep} or a smaller timestep",
    "not solved": "the equations of a linearly implicit kick have no solution here, or Newton's method does not find "
    "it. The timestep is too large, or the stiff forces push outwards: try a smaller timestep or another kick "
    "(positive_definite=True)",
    "not converged": "its links cannot keep their lengths: the constraint solve did not converge (relative residual "
    "{value:.1e}). The timestep is too large for the forces or velocities here, or the filament is folded onto itself",
    "lost surface": "it does not come back to its surface (distance {value:.1e} nm): Newton's method finds no root "
    "near by, the gradient vanishes there, or another sheet was reached. The timestep is too large for the forces or "
    "velocities here and for the curvature of the surface; or positions from outside were too far from it, and must "
    "be brought onto it first: surface.project(positions)",
    "constraints lost": "{row} cannot be kept: the joint solve did not converge ({value:.1e} times its tolerance is "
    "left), another sheet was reached, or it depends on others here. The timestep is too large for the forces or "
    "velocities here, or constraints lock: they leave no way to move",
    "runaway": "it has run away: its kinetic energy, {energy}, is more than the thermostat, the start of the run and "
    "the forces can have given it. ",
    "too many jumps": "its rates ask for more than {value:.0f} attempts in one step: they are far too high for the "
    "timestep, or their unit is another (1/s)",
    "no room": "a bead{species} cannot be created: {full}. The state is from before",
    "in wall": "its sphere overlaps the wall of the hydrodynamic interactions: its centre is {value:.3g} nm from it. "
    "No force keeps it away, or the timestep is too large for that force",
    "no root": "Lanczos' method does not settle for the hydrodynamic interactions (last change {value:.1e}): friction "
    "over mass differs by too much between beads, or positions are not what they should be. A larger tolerance= may do",
    "lines wind": "straight lines of a reaction wind around the mesh: more than 4096 edges open from one point to "
    "places within its reach, which is many times the edges of the triangles here, or triangles have become slivers. "
    "Give a shorter reach=, or a coarser mesh",
    "too far": "looking for what is near it along the surface does not end: the range of the force is more than a "
    "hundred times the edges of the triangles here, or triangles have become slivers. Try a shorter range or a coarser "
    "mesh",
    "no geodesic": "no shortest way along the surface to {row} was found, {value:.3g} nm away through space, nor a "
    "reason why there is none within the range of the force. They may be on two sheets of the surface, or far apart "
    "along one: a range below the smallest radius of curvature tells these apart",
    "too curved": "the radius of curvature of its surface here is {value:.3g} nm, less than the range of the force "
    "over π, or than any that was found when the Context was made: shortest ways along it need not be unique. Give a "
    "shorter range, keep beads away from here, or give the surface a bounding_box, in which it is looked at beforehand",
    "out of tether": "its edge to {row} is longer or shorter than its tether allows: it was carried across the wall of "
    "the tether in one step. Try a smaller timestep, or a larger mass",
    "too wide": "its edge to {row} is {value:.4g} nm long along {axis}, more than half of the box there, {half:.4g} "
    "nm: nearest images would take it for another edge, and the sheet would be torn. Hold edges shorter "
    "(MembraneTether, stiffer MembraneEdgeSprings), take finer triangles or a larger box, or a smaller timestep",
    "too crowded": "{value:.0f} straight lines to partners of a reaction are within its reach, or triangles below it "
    "in a layer, more than the jump allows for: give most_partners= or most_feet=, twice that or more, or a shorter "
    "reach or layer",
    "rate above bound": "the rate of a transition is {value:.6g} 1/s here, but must be from 0 to at_most; where it "
    "creates beads, by area or volume, to at_most_created. Give a larger bound, or write min(..., bound) where that is "
    "meant",
    "no density": "the density of adaptive steps is not positive; 1 + the control is {value:.3g} here. If that is not "
    "positive either, the text of AdaptiveSteps must be another. Otherwise the timestep is too long for how fast the "
    "control changes",
    "lost count": "a walk over what it has listed has not ended where the sums of the list say. This is a fault of "
    "medyanpy: please report it, with the script",
    "python": "Python code called from the step raised {error}",
    "out of memory": "no memory for the neighbour list, paths along a surface, the Hessian or the events of jumps: are "
    "the beads far denser than the cutoff suggests?",
}

#: Faults that beads which overlap can end as.
_OF_OVERLAPS = {
    "not finite", "too many crossings", "degenerate triangle", "not converged", "lost surface", "constraints lost",
    "runaway", "out of tether", "not solved",
}  # fmt: skip
_INFINITE = (
    "this force is not a finite number where the bead is: its energy or its slope is infinite there, or has no value"
)

#: Likely causes where a bead has run away: by whether it was a force, and whether it has a triangle.
_SMALLER = "The timestep is too large for the stiffest force here: try a smaller one"
_MEANT = ". If it is meant to be so fast, simulation.context.runaway = None lets it"
_RUNAWAYS = {
    (False, False): f"{_SMALLER}, a larger mass, or {{keep}}{_MEANT}",
    (False, True): f"{_SMALLER}, or minimize_energy() first{_MEANT}",
    (True, False): "No force gave it that but the flight of points in a triangle that has become flat: its height is "
    f"not large against speeds times the timestep. Try a smaller timestep, a larger mass, or {{keep}}{_MEANT}",
    (True, True): f"{_SMALLER}{_MEANT}",
}


class Faults:
    """Faults of the program of one Context. The schedule gives itself when it is made."""

    def __init__(self, store: Store, turn: Turn) -> None:
        self.store = store
        self.turn = turn
        self.schedule: Schedule
        #: Whether pairs overlapped when the run started; None after a change, when that is not known.
        self.overlapping: bool | None = None

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Turn faults of kernels into SimulationError, with the exception of Python code as their cause."""
        try:
            with self.turn.running():
                yield
        except ProgramFault as fault:
            if isinstance(fault.cause, KeyboardInterrupt):
                raise fault.cause from None
            raise self._explain(fault, self._culprits(fault)[:1]) from fault.cause

    def recovered(self, fault: ProgramFault) -> BaseException:
        """Go back to the last good state, and report what happened. An interrupt in Python code is one of the run."""
        culprits = self._culprits(fault)
        repeatable = all(operation.repeatable for operation in self.schedule.bound)
        try:
            self.store.program.recover(repeatable)
        except ProgramFault as another:
            # Forces bound again for the triangles of that state may be Python code, which may raise.
            if isinstance(another.cause, KeyboardInterrupt):
                return another.cause
            back = f". The simulation is back at step {self.store.step}, the last state that was kept"
            raise self._explain(another, [], back) from another.cause
        finally:
            self.schedule.jumping.rewound()
        if isinstance(fault.cause, KeyboardInterrupt):
            return fault.cause
        if fault.kind == "runaway":
            culprits = self._accelerated_by(fault) if repeatable else []
        elif len(culprits) > 1:
            # Numbers that overflow spread within one step. One step earlier the cause is the strongest.
            culprits = [self._strongest(culprits, fault.bead)]
        back = f". The simulation is back at step {self.store.step}, "
        back += "the last good state" if repeatable else "the last state that was kept"
        return self._explain(fault, culprits, back, self._overlap(fault))

    def _overlap(self, fault: ProgramFault) -> Overlap | None:
        """Return the pair that overlaps at the last good state, if what failed can come of it."""
        if fault.kind not in _OF_OVERLAPS:
            return None
        try:
            found = overlaps_now(self.schedule)
        except (SimulationError, ProgramFault, MemoryError):
            return None
        concerned = [one for one in found if self._concerns(one, fault.bead)]
        # If the run did not start with any, overlaps elsewhere are not the cause.
        told = concerned if concerned or self.overlapping is False else found
        return told[0] if told else None

    def _concerns(self, one: Overlap, place: int) -> bool:
        """Tell whether a bead overlaps another, or carries a point that does."""
        layout = self.store.layout
        places = layout.rank[one.all_beads]
        riders = places[places >= layout.n_cartesian] - layout.n_cartesian
        if len(riders) and len(self.store.faces):
            riders = riders[riders < len(self.store.triangle)]
            places = np.concatenate([places, self.store.faces[self.store.triangle[riders]].ravel()])
        return bool((places == place).any())

    def _explain(
        self, fault: ProgramFault, culprits: list[str], back: str = "", overlap: Overlap | None = None
    ) -> SimulationError:
        """Return the fault of a kernel in the user's words."""
        force = culprits[0] if culprits else None
        bead: int | None = None
        handle: Handle | None = None
        triangle: int | None = None
        row = fault.operation.names(fault.triangle) if fault.kind == "constraints lost" else ""
        axis, half = "", np.nan
        if fault.kind == "too wide":
            edges = fault.operation.edges
            axis, half = "xyz"[edges.axis], edges.half
        if fault.kind in ("no geodesic", "out of tether", "too wide"):
            row = f"bead {self.store.layout.order[fault.triangle]}"
        if fault.bead >= 0:
            bead = int(self.store.layout.order[fault.bead])
            handle = self.store.layout.topology.handle_of(bead)
        where = ""
        if bead is not None and handle is not None:
            where = f", bead {bead} ({handle.name!r}, {handle.kind.describe(bead) or handle.kind})"
        jump = self.schedule.jumping.name_of(fault.operation)
        of_force = "" if force is None else f", force {force}"
        of_jump = "" if jump is None else f", jump {jump}"
        error = f"{type(fault.cause).__name__}: {fault.cause}"
        started = overlap is not None and (self.overlapping or (self.overlapping is None and self._first))
        if overlap is not None:
            force = overlap.force
            of_force = f", force {force}"
        if fault.kind == "runaway" and not started:
            layout = self.store.layout
            box = layout.box if layout.is_periodic else None
            point = fault.bead - layout.n_cartesian
            if point >= 0:
                face = int(self.store.triangle[point])
                found: tuple[int, float] | None = face, float(heights(self.store.x, self.store.faces[[face]], box)[0])
            else:
                found = flattest(self.store.x, self.store.faces, fault.bead, box)
            if found is not None:
                face, height = found
                membranes = layout.topology.membranes
                triangle = face - max(m.first_face for m in membranes if m.first_face <= face)
                where += f", triangle {triangle} (height {height:.3g} nm)"
        energy = self._in_words(fault.value)
        species = full = ""
        if fault.kind == "no room" and handle is not None:
            full = handle.kind.no_room(int(self.store.next_id[0]))
            if 0 < fault.value <= len(handle._species):
                species = f" of species {handle._species[int(fault.value) - 1].name!r}"
        of_shape = fault.kind == "degenerate triangle"
        keep = self._keep(fault.bead).replace("keeps", "keeps its") if of_shape else ""
        kind = "lines wind" if fault.kind == "too far" and jump is not None else fault.kind
        cause = _CAUSES.get(kind, kind).format(
            value=fault.value, error=error, energy=energy, row=row, keep=keep, axis=axis, half=half,
            species=species, full=full,
        )
        if started and overlap is not None:
            cause = f"{overlap.text}: {MINIMISE}"
        elif fault.kind == "runaway":
            cause += _RUNAWAYS[force is None, triangle is None].format(keep=self._keep(fault.bead))
        elif fault.kind == "not finite" and back and force is not None and overlap is None and fault.bead >= 0:
            of = dict(zip(self.schedule.bound_forces, self.schedule.system.forces, strict=True))
            written = hasattr(of[force], "energy")  # the text
            cause = _INFINITE if written and np.isinf(self._strength(force, fault.bead)) else cause
        if overlap is not None and not started:
            cause += f". They have come too near each other: {overlap.text}"
        message = f"step {fault.step}{where}{of_force}{of_jump}: {cause}{back}"
        return SimulationError(
            message, step=fault.step, bead=bead, object=None if handle is None else handle.name, force=force,
            triangle=triangle, jump=jump,
        )  # fmt: skip

    def _keep(self, place: int) -> str:
        """Name the forces that would hold the triangles at a bead in shape."""
        layout = self.store.layout
        handle = layout.topology.handle_of(int(layout.order[place])) if place >= 0 else None
        return keepers_at(self.schedule.system, handle)

    @property
    def _first(self) -> bool:
        """True if no step has been taken since the last change from outside."""
        return self.store.step == self.schedule.started

    def _in_words(self, energy: float) -> str:
        kT = self.schedule.integrator.kT
        return f"{energy:.3g} pN nm" + ("" if kT is None else f" = {energy / kT:.3g} kT")

    def _accelerated_by(self, fault: ProgramFault) -> list[str]:
        """Return the strongest force on a bead that has run away; none where it was a flight that gave it its energy.

        From the last good state on, the step that failed is taken again, letter by letter; then the state is put back.
        """
        program, operations = self.store.program, self.store.program.operations
        program.keep()
        try:
            gained = np.diff(program.trace(fault.bead))
            most = int(np.argmax(gained)) if gained.max(initial=0.0) > 0.0 else None
            if most is None or not isinstance(operations[most], Kick):
                return []
            # Where beads were at that kick.
            program.restore()
            program.perform(Operations(operations[:most]), changes_state=False)
            return [self._strongest(list(self.schedule.bound_forces), fault.bead)]
        finally:
            program.restore()

    def _strongest(self, names: list[str], place: int) -> str:
        return max(names, key=lambda name: self._strength(name, place))

    def strongest(self, bead: int) -> str | None:
        """Return the force that alone pulls most at a bead, by its number in the topology."""
        names = list(self.schedule.bound_forces)
        return self._strongest(names, int(self.store.layout.rank[bead])) if names else None

    def _culprits(self, fault: ProgramFault) -> list[str]:
        """Return the force that failed; or those that, computed alone, give the bead a force that is not finite."""
        # An operation that collects derivatives of a force fails for that force.
        failed = getattr(fault.operation, "force", fault.operation)
        names = [name for name, operation in self.schedule.bound_forces.items() if operation is failed]
        if names or fault.kind != "not finite" or fault.bead < 0:
            return names
        return [name for name in self.schedule.bound_forces if not np.isfinite(self._strength(name, fault.bead))]

    def _strength(self, name: str, place: int) -> float:
        """Return the size of one force on a bead, pN, or of its torque, pN nm; inf where that is not a number, or
        cannot be computed."""
        operation = self.schedule.bound_forces[name]
        if not operation.repeatable:
            return 0.0
        force_sum = self.schedule.force_sum_of(operation)
        try:
            force_sum.alone(self.store.program, operation)
        except ProgramFault:
            return np.inf
        with np.errstate(over="ignore"):
            strength = float(np.linalg.norm(force_sum.f_array[place]))
            for momenta, drive in zip(self.store.momenta.values(), force_sum.drive_arrays, strict=True):
                if momenta.places.start <= place < momenta.places.stop:
                    strength += float(np.linalg.norm(drive[place - momenta.places.start]))
        return strength if np.isfinite(strength) else np.inf
