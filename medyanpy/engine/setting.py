"""The part of a Context that sets its state: positions, box, columns, triangles, velocities, or all of it."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from medyanpy._tools.images import Box
from medyanpy._tools.locking import Turn, one_at_a_time
from medyanpy._tools.names import Guarded, look_up
from medyanpy._tools.validation import array, number, thermal_energy
from medyanpy._tools.validation import seed as check_seed
from medyanpy.beads.units import FixedBeads, fixed_beads_given
from medyanpy.core.columns import ANGULAR_MOMENTA, BARYCENTRIC, BEADS, ORIENTATIONS, TRIANGLES, Column
from medyanpy.core.layout import Layout
from medyanpy.engine import worksheet
from medyanpy.engine.box_changes import check_images, check_sheets, expect_lengths, expect_no_seam, moved_with
from medyanpy.engine.faults import Faults
from medyanpy.engine.measure import Measure
from medyanpy.engine.schedule import Schedule
from medyanpy.engine.store import Store
from medyanpy.errors import ParameterError, SimulationError, TopologyError, shown
from medyanpy.integrators import SplittingIntegrator
from medyanpy.state import State
from medyanpy.system import System

if TYPE_CHECKING:
    from medyanpy.beads import Membrane

__all__ = ["Settable"]


class Settable(Guarded):
    """Methods of a Context that set its state; each counts what it does to the energy as protocol work."""

    turn: Turn
    system: System
    integrator: SplittingIntegrator
    _store: Store
    _faults: Faults
    _schedule: Schedule
    _measure: Measure
    _said: set[worksheet.Remark]

    @property
    def layout(self) -> Layout:
        """Place in memory of each bead."""
        return self._store.layout

    @property
    def step_count(self) -> int:
        """Number of steps taken so far."""
        return self._store.step

    def _refresh(self) -> None:
        """Follow changes of forces and of the integrator."""
        raise NotImplementedError

    @one_at_a_time
    def set_positions(self, positions: Any) -> None:
        """Move all Cartesian beads; in-triangle points follow their triangles. Rows of points and inactive rows are
        ignored.

        Parameters
        ----------
        positions : (n, 3) float, nm
            In topology order.

        Raises
        ------
        TopologyError
            Wrong shape, or a coordinate that is not finite. In a periodic box: joined beads whose images are not next
            to each other, or edges of a membrane longer than half of the box.
        SimulationError
            Positions that a kind of bead cannot have, such as links of other lengths; then nothing changes.
        """
        x = self._store.awake(positions)
        x = array("set_positions: positions", x, (self.layout.n, 3), error=TopologyError)
        if self.layout.is_periodic:
            for handle in self.layout.handles:
                check_images("set_positions", handle, x[handle.beads], self.layout.box)
        rows = slice(0, self.layout.n_cartesian)
        places = self._store.x.copy()
        places[rows] = x[self.layout.order[rows]]
        check_sheets("set_positions", self._store, places, self.layout.box)
        self._place(places, self.layout.box)

    def _place(self, x: np.ndarray, box: np.ndarray) -> None:
        """Put beads at (n, 3) x, by place, in a box of these lengths; where they cannot be, all is as it was."""
        kept = {c.array: self._store.arrays[c.array].copy() for c in (TRIANGLES, BARYCENTRIC) if self.layout.n_points}
        before = self._store.x.copy(), self.layout.box.copy()
        with self._counted_as_protocol():
            self._store.x[:], self.layout.box[:] = x, box
            self._store.program.changed()
            try:
                self._schedule.settle()
                # Velocities belonged to the old triangles and links.
                self._schedule.admit_velocities()
            except SimulationError:
                self._store.x[:], self.layout.box[:] = before
                for name, values in kept.items():
                    self._store.arrays[name][:] = values
                raise
            finally:
                self._store.positions_changed()

    @one_at_a_time
    def set_box(self, box: Sequence[float | None], *, scale: bool = True, fixed_beads: FixedBeads = "refuse") -> None:
        """Change the lengths of the periodic box; the difference of energy is protocol work.

        Parameters
        ----------
        box : (3,) of float, nm, > 0, or None
            None in the directions that are open, which stay open.
        scale : bool
            Move beads with the box: free beads and vertices each, and by their centre of mass filaments, rods, bodies
            and what constraints join. In-triangle points go with their triangles. Otherwise beads stay, and meshes that
            close through the sides are refused.
        fixed_beads : "refuse" or "scale"
            Refuse fixed beads, or move them with the box, and all that is joined to them by the same way.

        Raises
        ------
        ParameterError
            A value that is not a box. Another set of open directions. A box smaller than twice the range of what acts
            in it, or the length of what joins beads in it. Another word for `fixed_beads`.
        TopologyError
            Fixed beads, unless these scale. Constraints and surfaces that change where their beads move alike along
            directions that change. With ``scale=False`` a mesh that closes through the sides, or an edge longer than
            half of the new box.
        SimulationError
            Beads that would be where they cannot be, as in `set_positions`.
        """
        self._refresh()
        lengths, x = self._check_box("set_box", box, scale, fixed_beads_given("set_box", fixed_beads))
        # First: warnings may be errors.
        self._warn_of_box(lengths)
        self._place(x, lengths)

    def _check_box(
        self, what: str, box: Any, scale: bool = True, fixed: FixedBeads = "refuse"
    ) -> tuple[np.ndarray, np.ndarray]:
        """Check a box and return its lengths (3,) and places in it (n, 3), as `set_box` takes them; nothing changes."""
        lengths = expect_lengths(what, box, self._store)
        self.layout.check_widths(lengths)
        if scale:
            return lengths, moved_with(what, self._store, lengths, fixed)
        expect_no_seam(what, self._store)
        # Scaled with the box, edges are the same part of it as before.
        check_sheets(what, self._store, self._store.x, lengths)
        return lengths, self._store.x.copy()

    def _warn_of_box(self, lengths: np.ndarray | None = None) -> None:
        """Warn of fields that do not repeat with the box, which may have changed, or with one of these lengths."""
        box = self.layout.box if lengths is None else lengths
        worksheet.warn_of_box(self.system, self.integrator, self._said, box)

    def _take_box(self, what: str, box: Box | None) -> None:
        """Take the box of a state."""
        if box is not None or self.layout.is_periodic:
            lengths = expect_lengths(what, (None, None, None) if box is None else box, self._store)
            self.layout.check_widths(lengths)
            self.layout.box[:] = lengths
            self._store.program.changed()

    @one_at_a_time
    def set_intriangle(self, triangles: Any, barycentric: Any) -> None:
        """Move the in-triangle points.

        Parameters
        ----------
        triangles : (n,) int
            Faces, numbered as in the mesh of each point's own membrane; all points of the topology, in its order.
        barycentric : (n, 3) float, >= 0, sum 1

        Raises
        ------
        TopologyError
            Wrong shapes, a triangle that does not exist, a point outside its triangle.
        """
        self._set_columns("set_intriangle", {TRIANGLES: triangles, BARYCENTRIC: barycentric})

    @one_at_a_time(in_reports=False)
    def flip_edges(self, membrane: "Membrane", edges: Any) -> np.ndarray:
        """Flip edges of a membrane: remove each, and join the corners across it instead.

        Vertices keep positions and velocities. In-triangle points of the two triangles keep their place in the
        quadrilateral, mapped to a square piece by piece, and the momentum of that place. The change of the energy is
        protocol work. The new triangles take the numbers of the old pair; flipping the new edge restores the old ones.

        Forces, pictures, states (`State.faces`) and checkpoints follow. The mesh of the handle, documents and other
        contexts of the system keep the start. A `PythonForce` knows positions only.

        Parameters
        ----------
        membrane : Membrane
            Of the topology.
        edges : (k, 2) int
            Both ends of each edge, numbered as in the mesh. Flipped one after the other; all or none.

        Returns
        -------
        (k, 2) int32 array
            The new edges, lower number first.

        Raises
        ------
        TopologyError
            A handle that is not a membrane of this topology. Vertices that do not exist or have no edge. An edge on a
            border, whose other corners are joined already, or whose successor would exceed half of the box.
        ParameterError
            A force with numbers for each triangle or edge of the membrane.
        ContextInUseError
            Called from inside a step or by a reporter.

        Examples
        --------
        >>> import medyanpy as mp
        >>> topology = mp.Topology()
        >>> vesicle = topology.add_membrane(mp.TriangleMesh.icosphere(500.0, 1), vertex_mass=4e-12)
        >>> context = mp.Context(mp.System(topology), mp.VerletIntegrator(1e-7))
        >>> edge = vesicle.mesh.edges[0]
        >>> made = context.flip_edges(vesicle, [edge])
        >>> bool((context.flip_edges(vesicle, made) == edge).all())
        True
        """
        what = "flip_edges"
        if membrane not in self.system.topology.membranes:
            raise TopologyError(f"{what}: membrane must be the handle of a membrane of this topology, not {membrane!r}")
        ends = array(f"{what}: edges", edges, (None, 2), dtype=np.int64, error=TopologyError)
        outside = (ends < 0) | (ends >= len(membrane))
        if outside.any():
            i, k = (int(a) for a in np.argwhere(outside)[0])
            raise TopologyError(
                f"{what}: edges[{i}, {k}] = {ends[i, k]} does not exist: {membrane.name!r} has vertices 0 to "
                f"{len(membrane) - 1}"
            )
        for name, force in zip(self.system.force_names, self.system.forces, strict=True):
            if membrane in force.handles and (obstacle := force.obstacle_to_flips()):
                raise ParameterError(f"{what}: {name} does not allow it: {obstacle}")
        self._refresh()
        if not len(ends):
            return np.empty((0, 2), np.int32)
        with self._counted_as_protocol():
            made = self._schedule.flipping.flip(what, membrane, ends)
            self._store.positions_changed()
        return made

    @one_at_a_time
    def set_velocities(self, velocities: Any, *, angular_momenta: Any = None) -> None:
        """Set the velocity of every bead.

        Rows of in-triangle points are velocities relative to their triangles and are projected into their planes; rows
        of fixed beads are taken as zero, and inactive rows are ignored. What constraints do not allow is taken away.

        Parameters
        ----------
        velocities : (n, 3) float, nm/s
            In topology order.
        angular_momenta : (m, 3) float, pN nm s, optional
            As of `set_angular_momenta`, set at the same time: where joints hold bodies, both are projected together.

        Raises
        ------
        TopologyError
            Wrong shape, or a number that is not finite.
        """
        v = self._store.awake(velocities)
        v = array("set_velocities: velocities", v, (self.layout.n, 3), error=TopologyError)
        turning = {} if angular_momenta is None else {ANGULAR_MOMENTA: angular_momenta}
        rows = self._store.checked("set_velocities", turning) if turning else {}
        with self._counted_as_protocol():
            self._write(rows)
            self._store.v[:] = v[self.layout.order]
            self._schedule.admit_velocities()

    @one_at_a_time
    def set_orientations(self, orientations: Any) -> None:
        """Turn the oriented beads.

        Parameters
        ----------
        orientations : (m, 4) float, dimensionless
            Unit quaternions to 1e-6, scalar first, body to space, of all oriented beads of the topology in its order.

        Raises
        ------
        TopologyError
            Wrong shape, or a quaternion that is not of length 1.
        """
        self._set_columns("set_orientations", {ORIENTATIONS: orientations})

    @one_at_a_time
    def set_angular_momenta(self, angular_momenta: Any) -> None:
        """Set the angular momenta of the oriented beads about their centres.

        Parameters
        ----------
        angular_momenta : (m, 3) float, pN nm s
            In the frame of each body, in topology order; rows of fixed beads are taken as zero.

        Raises
        ------
        TopologyError
            Wrong shape, or a number that is not finite.
        """
        self._set_columns("set_angular_momenta", {ANGULAR_MOMENTA: angular_momenta})

    @one_at_a_time
    def set_column(self, name: str, values: Any) -> None:
        """Set one of the columns that a kind of bead declares.

        Parameters
        ----------
        name : str
            One of ``topology.columns`` without a method of its own.
        values : (m, ...) array
            In its unit, of all beads with a row, in topology order. Momenta of what does not move are taken as zero.

        Raises
        ------
        ParameterError
            An unknown name.
        TopologyError
            Wrong shape, or a number that is not finite or that the kind refuses.
        """
        own = {c.name: c for c in self.layout.topology.columns if c.of not in (BEADS, TRIANGLES.of)}
        self._set_columns("set_column", {look_up(own, name, "column to set", ParameterError): values})

    def _write(self, rows: dict[Column, np.ndarray]) -> None:
        for column, values in rows.items():
            self._store.arrays[column.array][:] = values

    def _set_columns(self, what: str, given: dict[Column, Any]) -> None:
        """Set columns of one role and `of`, which not all beads have."""
        rows = self._store.checked(what, given)
        joint, before = self.layout.topology.joint, {c: self._store.arrays[c.array].copy() for c in rows}
        with self._counted_as_protocol():
            self._write(rows)
            asked = ORIENTATIONS if joint is not None and joint.has_arms else None
            asked = TRIANGLES if TRIANGLES in rows and joint is not None and joint.has_points else asked
            if asked in rows:
                try:
                    self._place(self._store.x.copy(), self.layout.box.copy())
                except SimulationError:
                    self._write(before)
                    raise
                return
            if any(column.is_momentum for column in rows):
                self._schedule.admit_velocities()
                return
            self._store.positions_changed()
            if TRIANGLES in rows:
                # Velocities belonged to the old ones.
                self._schedule.flatten()

    @one_at_a_time
    def set_pools(self, pools: Mapping[str, Any]) -> None:
        """Set how many molecules are in pools.

        Parameters
        ----------
        pools : dict of dict of int, or of int arrays
            Counts by the names of pools and of species, as in `State.pools`; of `Compartments` one for each cell, in
            the shape of the grid. What is not named stays as it is.

        Raises
        ------
        UnknownNameError
            There is no pool of this name.
        ParameterError
            Counts that are negative or not whole, a reservoir, or another species.
        TopologyError
            Arrays of another shape.
        """
        self._store.take_molecules(self._store.checked_molecules("set_pools", pools))

    @one_at_a_time
    def set_velocities_to_temperature(
        self, temperature: float | None = None, seed: int = 0, *, kT: float | None = None
    ) -> None:
        """Draw velocities and angular momenta from the Maxwell distribution; of in-triangle points, in their planes.

        Parameters
        ----------
        temperature : float, kelvin, > 0
        seed : int
        kT : float, pN nm, > 0
            Instead of `temperature`.

        Raises
        ------
        ParameterError
            A number outside its domain, or neither or both of temperature and kT.
        """
        energy = thermal_energy(temperature, kT)
        if energy is None:
            raise ParameterError("set_velocities_to_temperature: give temperature= (kelvin) or kT= (pN nm)")
        seed = check_seed("seed", seed)
        with self._counted_as_protocol():
            self._store.draw_momenta(energy, seed)
            self._schedule.admit_velocities()

    @one_at_a_time
    def scale_velocities(self, factor: float) -> None:
        """Multiply all velocities and momenta by a number; the change of the kinetic energy is protocol work.

        Parameters
        ----------
        factor : float, > 0
            √(T'/T) takes a Maxwell distribution of temperature T to one of T', as replica exchange does.

        Raises
        ------
        ParameterError
            A number outside its domain.
        """
        factor = number("scale_velocities: factor", factor, above=0.0)
        with self._counted_as_protocol():
            self._store.v *= factor
            for momenta in self._store.momenta.values():
                p = momenta.p
                p *= factor
            self._schedule.admit_velocities()

    @one_at_a_time(in_reports=False)
    def set_state(self, state: State) -> None:
        """Set step, time and all content of a state with positions and velocities: columns, triangles, living beads,
        what jumps of the same names have bound, molecules in pools, and counts of jumps and of blocks M( ).

        Jumps and pools that the state does not know stay as they are.

        Raises
        ------
        ParameterError
            A value that is not a State, or one without positions or velocities.
        TopologyError
            A state of another topology, or of a jump of the same name between other sites.
        After an error all is as it was.
        """
        if not isinstance(state, State):
            made = "a State, as get_state(positions=True, velocities=True) gives"
            raise ParameterError(f"set_state: state must be {made}, not {shown(state)}")
        x, v = state.positions, state.velocities
        self._store.check_living("set_state", state.ids, state.alive)
        together = self._store.set_together()
        groups = [{c: state.column(c.name) for c in group} for group in together if group[0].of != BEADS]
        # Joints hold places and orientations together, and velocities and angular momenta.
        momenta = [given for given in groups if next(iter(given)).is_momentum]
        # Likewise triangles of points, in which joints hold these.
        turning = [given for given in groups if ORIENTATIONS in given or TRIANGLES in given]
        of_all = [{c: state.column(c.name) for c in group} for group in together if group[0].of == BEADS]
        discrete = self._schedule.jumping.with_shown(state._part("discrete", "positions"), state.jumps)
        self._schedule.jumping.check_shown("set_state", discrete)
        known = {name: own for name, own in state.pools.items() if name in self._store.pools}
        molecules = self._store.checked_molecules("set_state", known)
        schedule, step = self._schedule, self.step_count
        before, since = {name: array.copy() for name, array in schedule.dynamical_arrays().items()}, schedule.since
        try:
            with self._counted_as_protocol(), schedule.flipping.joined_as("set_state", state.faces):
                self._store.take_living(state.ids, state.alive, state.next_id)
                self._take_box("set_state", state.box)
                # First, since they say how long links are.
                for given in of_all:
                    self._set_columns("set_state", given)
                for given in turning:
                    self._write(self._store.checked("set_state", given))
                self.set_positions(x)
                if self.layout.is_periodic:
                    # The images that points are to be next to.
                    points = slice(self.layout.n_cartesian, None)
                    self._store.x[points] = self._store.awake(x)[self.layout.order[points]]
                for given in groups:
                    if not any(given is other for other in (*momenta, *turning)):
                        self._set_columns("set_state", given)
                for given in momenta:
                    self._write(self._store.checked("set_state", given))
                self.set_velocities(v)
                schedule.jumping.take(discrete)
                schedule.proposing.take(state.blocks)
                self._store.take_molecules(molecules)
                self._store.program.changed()
        except BaseException:
            schedule.take_arrays(before, step, since)
            raise
        self._store.program.step = state.step
        self._schedule.set_time(state.time)
        self._warn_of_box()

    @one_at_a_time
    def set_links(self, jump: str, links: Any, states: Any = None) -> None:
        """Move and remove links that a jump has bound, or bind others; the energy is protocol work.

        Pairs that stay keep what is known of them, such as the state; others are new links. Molecules with heads that
        hold nothing any more go to the pool, at the cell of their place, and those that are new come from there. A
        molecule that still holds a place by the same head is the same, and keeps its heads of a bundle there.

        Parameters
        ----------
        jump : str
            Name of a `LinkBinding`, `CrosslinkerBinding` or `Motors` in the system.
        links : (k, 2) int
            All that are to be bound, whatever their lengths: rows of its sites, as in ``state.jumps[jump]["links"]``;
            of molecules -1 where a head is free. None, ``[]``, removes all.
        states : (k,) str or int, or str, optional
            Of links with states: the state of each, or of all.

        Raises
        ------
        ParameterError
            A name of no jump, or of one without links. A state that the links have not. More new molecules than there
            are in the pool.
        TopologyError
            Sites that do not exist, or that may not be bound to each other. After an error all is as it was.
        """
        self._refresh()
        jumping = self._schedule.jumping
        names = {name: k for k, name in enumerate(jumping.names) if hasattr(jumping.jumps[k], "take_links")}
        k = look_up(names, jump, "jump with links", ParameterError)
        own: Any = jumping.jumps[k]
        look = partial(self._measure.look, True, *6 * (False,))
        with self._counted_as_protocol():
            own.take_links(jumping.operations[k], links, states, look)
            self._store.program.changed()

    @contextmanager
    def _counted_as_protocol(self) -> Iterator[None]:
        """Count what the block does to the energy as protocol work; steps start from another account of it."""
        self._schedule.account.close()
        self._faults.overlapping = None
        if self._schedule.meter is None:
            yield
            return
        before = self._measure.energies()
        try:
            yield
        finally:
            self._schedule.meter.intervene(before, self._measure.energies())
