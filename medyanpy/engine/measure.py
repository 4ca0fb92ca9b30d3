"""Measurements on a Context: states, energies, temperatures, virials and derivatives, of store and schedule."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from medyanpy import units
from medyanpy._kernels.beads.points import Place
from medyanpy._kernels.core.derivatives import Contraction, HessianBlocks
from medyanpy._kernels.core.kinetic import KineticEnergies
from medyanpy._kernels.core.virial import Virial
from medyanpy._kernels.letters.kick import KickForce
from medyanpy._tools.hessians import entries
from medyanpy._tools.images import box_shown
from medyanpy._tools.validation import words
from medyanpy.core.columns import ANGULAR_MOMENTA, BARYCENTRIC, ORIENTATIONS, TRIANGLES, Column
from medyanpy.core.letters import LETTERS
from medyanpy.engine.schedule import Schedule
from medyanpy.engine.store import Store, frozen
from medyanpy.errors import ParameterError, SimulationError
from medyanpy.kicks import Explicit
from medyanpy.state import State

__all__ = ["Measure"]

# Rounding is 1e-10 of the energies at this strain, what the sixth-order formula leaves out far less. At larger ones,
# more pairs would pass a cutoff where the force jumps.
_STRAIN = 1e-6
# Beads of one force that all feel each other, of which a Hessian is made: 1 GB.
_MOST_DENSE = 1500


class Measure:
    """Measurements on a store through the forces of a schedule; nothing here changes a later step by a bit."""

    def __init__(self, store: Store, schedule: Schedule) -> None:
        self.store = store
        self.schedule = schedule
        self._now = np.empty(len(store.layout.handles))
        self._kinetic_now = KineticEnergies(store.ranges, self._now, True, store.by_row)
        self._place = Place()

    def look(
        self, positions: bool, velocities: bool, forces: bool, energy: bool, virial: bool, multipliers: bool,
        physical_positions: bool,
    ) -> State:  # fmt: skip
        """Return the state as `get_state` does, with forces as they are bound."""
        parts: dict[str, Any] = {}
        layout = self.store.layout
        if positions:
            self.schedule.perform(self._place, changes_state=False)
        for column in layout.topology.columns:
            if velocities if column.is_momentum else positions:
                parts[column.name] = self.store.shown(column)
        parts["counts"] = self.schedule.jumping.counts()
        parts["entropy_production"] = self.schedule.jumping.entropy_production()
        parts["blocks"] = self.schedule.proposing.said()
        parts["who"] = self._who_is_there()
        parts["box"] = box_shown(self.store.layout.box)
        if self.store.pools:
            parts["pools"] = self.store.molecules()
        if positions:
            parts["jumps"] = self.schedule.jumping.shown()
            parts["discrete"] = {key: frozen(own.copy()) for key, own in self.schedule.jumping.arrays().items()}
            parts["faces"] = {m.name: layout.connectivity(m).faces for m in layout.topology.membranes}
            parts["links"] = self.schedule.jumping.links(self.schedule.system.forces, parts["jumps"])
        if physical_positions:
            parts["physical_positions"] = self.physical_positions()
        if virial:
            # Before forces: it leaves those of single forces where their sum belongs.
            parts["virials"] = self._virials()
        if forces or energy or multipliers:
            for force_sum in self.schedule.force_sums.values():
                with self.schedule.explained():
                    force_sum.refresh(self.store.program, energy)
        if forces or multipliers:
            total, drives = self._added()
            total = total[layout.rank]
            if forces:
                there = self.store.there()
                parts["forces"] = frozen(total if there is None else np.where(there[:, None], total, np.nan))
                for column in layout.topology.columns:
                    if column.drive:
                        added = drives.get(column, column.empty(0)).reshape(-1, *column.shape)
                        parts[column.drive] = self.store.shown(column, added)
            if multipliers:
                parts["multipliers"] = self._multipliers(total)
        if energy:
            parts["energies"] = {name: operation.energy for name, operation in self.schedule.bound_forces.items()}
            self.schedule.perform(self._kinetic_now, changes_state=False)
            names = [handle.name for handle in layout.handles]
            parts["kinetic_energies"] = dict(zip(names, self._now.tolist(), strict=True))
            parts.update(self._temperatures())
            if self.schedule.meter is not None:
                parts.update(self.schedule.meter.readings(sum(parts["energies"].values())))
        return State(self.store.step, self.schedule.time, parts)

    def _who_is_there(self) -> tuple[int, np.ndarray | None, np.ndarray | None, int]:
        """Return the number of rows, ids and a mask of beads that are there (None where all are), and the next id,
        as `State` keeps them."""
        store, n, rank = self.store, self.store.layout.n, self.store.layout.rank
        if store.room is None:
            return n, None, None, n
        return n, frozen(store.ids_in_rows()), frozen(store.alive[rank] != 0), int(store.next_id[0])

    def _multipliers(self, forces: np.ndarray) -> dict[str, np.ndarray]:
        """Return the Lagrange multipliers of every handle that has any; `forces` in topology order."""
        x, v = self.store.x[self.store.layout.rank], self.store.v[self.store.layout.rank]
        topology = self.store.layout.topology
        found = {h.name: h.kind.multipliers_among(x, v, forces) for h in topology.handles}
        joint = topology.joint
        if joint is not None:
            # Parts that are solved jointly have the multipliers of the joint solve in place of their own.
            turning = self._turning() if joint.has_arms else None
            standing = (self._standing(), self.store.layout.box) if joint.has_points else None
            for handle, parts in joint.multipliers(x, v, forces, turning, standing).items():
                found[handle.name] = handle.kind.with_joint_multipliers(found[handle.name], parts)
        return {name: frozen(values) for name, values in found.items() if values is not None}

    def _standing(self) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Return of each handle of in-triangle points beads (k,), the corners (k, 3) and the weights (k, 3)."""
        triangles, weights = (self.store.shown(column) for column in (TRIANGLES, BARYCENTRIC))
        given = []
        for points in self.store.layout.topology.point_handles:
            corners = self.store.layout.connectivity(points.membrane).faces[triangles[points.points]]
            given.append((points.beads, points.membrane.beads[corners], weights[points.points]))
        return given

    def _turning(self) -> dict[str, np.ndarray]:
        """Return orientations, angular momenta and torques of what turns."""
        arrays, shown = self.store.arrays, self.store.shown
        torques = self._added()[1].get(ANGULAR_MOMENTA, ANGULAR_MOMENTA.empty(0))
        return {"orientations": shown(ORIENTATIONS, arrays[ORIENTATIONS.array]),
                "momenta": shown(ANGULAR_MOMENTA, arrays[ANGULAR_MOMENTA.array]),
                "torques": shown(ANGULAR_MOMENTA, torques)}  # fmt: skip

    def _virials(self) -> dict[str, np.ndarray]:
        """Return the virial of every force."""
        self.schedule.perform(self._place, changes_state=False)
        # About a bead, since places far from the origin would cost digits; then moved to the origin.
        origin = self.store.x[0].copy()
        tensor = np.empty((3, 3))
        directors = self.store.layout.directors
        measure = Virial(origin, tensor, self.store.layout.n, directors.start, directors.stop)
        virials = {}
        bound, forces = self.schedule.bound_forces, self.schedule.system.forces
        for (name, operation), force in zip(bound.items(), forces, strict=True):
            force_sum = self.schedule.force_sum_of(operation)
            with self.schedule.explained():
                force_sum.alone(self.store.program, operation)
            self.schedule.perform(measure, changes_state=False)
            out = tensor.copy()
            if not force.conserves_momentum:
                f = np.asarray(force_sum.f_array)
                out += np.outer(origin, f[: directors.start].sum(axis=0) + f[directors.stop :].sum(axis=0))
            virials[name] = out
        periodic = np.flatnonzero(self.store.layout.box)
        for c in periodic:
            for name, along in zip(virials, self._strained(int(c)), strict=True):
                # Elements of two directions, one of them periodic, would be those of a sheared box.
                virials[name][c, :] = virials[name][:, c] = np.nan
                virials[name][c, c] = along
        return {name: frozen(out) for name, out in virials.items()}

    def _strained(self, c: int) -> np.ndarray:
        """Return minus the derivative of every energy as the box and all that is in it is stretched along c; (forces,)
        pN nm.

        From energies, to 1e-9 of them: what meets across the sides of the box is in no sum over places.
        """
        store, schedule = self.store, self.schedule
        if store.layout.is_on_surfaces:
            # No box strains their surfaces.
            return np.full(len(schedule.bound), np.nan)
        where, side = store.x[:, c].copy(), float(store.layout.box[c])
        directors = store.layout.directors
        slope = np.zeros(len(schedule.bound))
        try:
            for steps, weight in zip((-3, -2, -1, 1, 2, 3), (-1.0, 9.0, -45.0, 45.0, -9.0, 1.0), strict=True):
                factor = 1.0 + steps * _STRAIN
                store.x[:, c] = factor * where
                store.x[directors, c] = where[directors]
                store.layout.box[c] = factor * side
                store.program.changed()
                for force_sum in schedule.force_sums.values():
                    with schedule.explained():
                        force_sum.refresh(store.program, True)
                slope += weight * np.array([operation.energy for operation in schedule.bound])
        finally:
            store.x[:, c], store.layout.box[c] = where, side
            store.program.changed()
        return -slope / (60.0 * _STRAIN)

    def _differentiable(self, names: Iterable[str] | None, derivatives: int) -> list[Any]:
        """Return bound forces by name, if they offer so many derivatives."""
        bound = self.schedule.bound_forces
        names = list(bound) if names is None else words("forces", names)
        for name in names:
            if name not in bound:
                raise ParameterError(f"there is no force {name!r}; there are: {', '.join(bound) or 'none'}")
            if bound[name].derivatives < derivatives:
                which = {2: "second", 3: "third"}[derivatives]
                raise ParameterError(f"{name} offers no {which} derivatives of its energy")
        return [bound[name] for name in names]

    def _temperatures(self) -> dict[str, Any]:
        handles = self.store.layout.handles
        # Beads that have just been added have had no last O.
        measured = np.where(np.isnan(self.store.after_o), self._now, self.store.after_o)
        energies, freedom = np.zeros(len(handles)), np.zeros(len(handles), np.int64)
        for handle, energy in zip(handles, measured, strict=True):
            leader = handles.index(handle.kind.measured_with)
            energies[leader] += energy
            freedom[leader] += self.store.degrees_of_freedom(handle)
        by_handle = {
            handle.name: float(2.0 * e / (f * units.boltzmann))
            for handle, e, f in zip(handles, energies, freedom, strict=True)
            if f
        }
        total, energy = freedom.sum(), energies.sum()
        if total > 0 and self._momentum_is_conserved():
            # Three degrees of freedom are frozen at what they started with: neither they nor their energy count.
            rows = slice(0, self.store.layout.directors.start)
            momentum = self.store.mass[rows] @ self.store.v[rows]
            total -= 3
            energy -= 0.5 * float(momentum @ momentum) / float(self.store.mass[rows].sum())
        mean = float(2.0 * energy / (total * units.boltzmann)) if total > 0 else float("nan")
        if self.schedule.integrator.overdamped:
            # There are no velocities to measure it by.
            mean, by_handle = float("nan"), dict.fromkeys(by_handle, float("nan"))
        return {"temperature": mean, "temperatures": by_handle}

    def _momentum_is_conserved(self) -> bool:
        """True if nothing changes the total momentum of the Cartesian beads."""
        thermal = any(LETTERS[letter.kind].thermal for letter in self.schedule.integrator.letters)
        frictionless = not thermal or not any(h.kind.has_friction for h in self.store.layout.handles)
        return (
            frictionless
            and self.store.layout.n_cartesian > 0
            and not any(handle.kind.fixed_beads.any() for handle in self.store.layout.handles)
            and all(handle.kind.keeps_momentum for handle in self.store.layout.handles)
            and all(force.conserves_momentum for force in self.schedule.system.forces)
        )

    def energies(self) -> tuple[float, float]:
        """Return kinetic and potential energy, pN nm, by the forces as they are bound now."""
        for force_sum in self.schedule.force_sums.values():
            with self.schedule.explained():
                force_sum.refresh(self.store.program, True)
        self.schedule.perform(self._kinetic_now, changes_state=False)
        return sum(self._now.tolist()), sum(operation.energy for operation in self.schedule.bound)

    def open_account(self) -> None:
        """Note what beads and forces have before the first step after a change, for the watch."""
        if not self.schedule.account.is_open(self.schedule.integrator.kT):
            self.schedule.started = self.store.step
        if self.schedule.integrator.overdamped or self.schedule.account.is_open(self.schedule.integrator.kT):
            return
        told = all(force.energy_tells_work for force in self.schedule.system.forces)
        if not self.schedule.account.factor or not told:
            self.schedule.account.open(self.schedule.integrator.kT, np.inf, 0.0)  # no bound
            return
        try:
            _, potential = self.energies()
            added = 0.0 if isinstance(self.schedule.integrator.kick, Explicit) else self._added()[0]
        except (SimulationError, MemoryError) as error:
            # A function of Python may fail at its first call alone.
            if error.__cause__ is not None or any(hasattr(force, "replay") for force in self.schedule.system.forces):
                raise
            return  # The step will fail likewise, and report what it was doing.
        with np.errstate(over="ignore"):
            speed = np.einsum("ij,ij->i", self.store.v, self.store.v)
            others = [0.5 * np.einsum("ij,ij,ij->i", m.inverse_mass, m.p, m.p) for m in self.store.momenta.values()]
            # Linearly implicit kicks conserve another energy: a step under the forces here is admitted.
            kick = self.schedule.integrator.timestep * self.store.inverse_mass[:, None] * added
            speed = np.maximum(speed, np.einsum("ij,ij->i", kick, kick))
            kinetic = max(float(energies.max()) for energies in [0.5 * self.store.mass * speed, *others])
        self.schedule.account.open(self.schedule.integrator.kT, kinetic, potential)

    def _added(self) -> tuple[np.ndarray, dict[Column, np.ndarray]]:
        """Return the sum of the forces of all groups, as last evaluated, (n, 3) pN, by place; and what drives other
        momenta."""
        total = np.zeros((self.store.layout.n, 3))
        drives = {column: np.zeros(momenta.p.shape) for column, momenta in self.store.momenta.items()}
        for force_sum in self.schedule.force_sums.values():
            if force_sum.forces.operations:
                total += force_sum.f_array
                for drive, added in zip(drives.values(), force_sum.drive_arrays, strict=True):
                    drive += added
        return total, drives

    def admit(self, bead: int, kinetic: float) -> bool:
        """Tell whether the run continues after the watch has found this kinetic energy in a bead."""
        try:
            _, potential = self.energies()
        except SimulationError:
            return False
        return self.schedule.account.admits(kinetic, potential)

    def check_finite(self) -> None:
        """Refuse a state that no file is to hold.

        Raises
        ------
        SimulationError
            A number of it is not finite.
        """
        moving = self.store.moving()
        for column in self.store.layout.topology.columns:
            numbers = moving[column.array].reshape(-1, column.width)
            if not np.isfinite(numbers).all():
                row = int(np.argmin(np.isfinite(numbers).all(axis=1)))
                place = self.store.layout.first_place(column.of) + row
                bead = int(self.store.layout.order[place])
                handle = self.store.layout.topology.handle_of(bead)
                raise SimulationError(
                    f"step {self.store.step}: bead {bead} ({handle.name!r}) has numbers that are not finite; no file "
                    "is written of this state",
                    step=self.store.step,
                    object=handle.name,
                    bead=bead,
                )

    def hessian(self, forces: Iterable[str] | None, positive: bool) -> Any:
        """Return `Context.hessian`."""
        from scipy import sparse

        self.schedule.perform(self._place, changes_state=False)
        n = self.store.layout.n
        parts = [(np.empty(0), np.empty(0, np.int64), np.empty(0, np.int64))]
        for operation in self._differentiable(forces, 2):
            if operation.dense > _MOST_DENSE:
                raise ParameterError(
                    f"{operation.name}: its Hessian couples all {operation.dense} vertices with each other, and full "
                    f"ones are made of up to {_MOST_DENSE}: give forces= without it"
                )
            collected = HessianBlocks(operation, positive)
            self.schedule.perform(collected, changes_state=False)
            i, j, h = collected.blocks()
            parts.append(entries(self.store.layout.order[i], self.store.layout.order[j], h))
        values, rows, columns = (np.concatenate(part) for part in zip(*parts, strict=True))
        return sparse.coo_array((values, (rows, columns)), shape=(3 * n, 3 * n)).tocsr()

    def third_derivative(self, a: np.ndarray, forces: Iterable[str] | None) -> np.ndarray:
        """Return `Context.third_derivative`."""
        self.schedule.perform(self._place, changes_state=False)
        out = np.zeros((self.store.layout.n, 3))
        by_place = np.ascontiguousarray(a[self.store.layout.order])
        for operation in self._differentiable(forces, 3):
            self.schedule.perform(Contraction(operation, by_place, out), changes_state=False)
        rows: np.ndarray = out[self.store.layout.rank]
        return rows

    def physical_positions(self) -> np.ndarray:
        """Return `State.physical_positions`."""
        kicks = self.schedule.kicks()
        self.schedule.perform(self._place, changes_state=False)
        x = self.store.x
        # Blocks M( ) make positions those of the particles.
        shifted = self.schedule.integrator.kick.coordinates and not self.schedule.proposing.blocks
        if shifted and kicks is not None:
            self.schedule.perform(KickForce(*kicks), changes_state=False)
            x = x + kicks[1].scale * kicks[1].acceleration
        there, shown = self.store.there(), x[self.store.layout.rank]
        return frozen(shown if there is None else np.where(there[:, None], shown, np.nan))
