"""A table of numbers, a row at a time: OpenMM's columns, in this package's units."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from medyanpy._tools.images import box_lengths
from medyanpy._tools.names import look_up
from medyanpy._tools.sums import total
from medyanpy._tools.validation import whole_number, words
from medyanpy.beads import Membrane
from medyanpy.core.species import OfSpecies
from medyanpy.errors import MeshQualityWarning, ParameterError, shown, warn_outside
from medyanpy.mesh import geometry
from medyanpy.reporters._base import APPENDED
from medyanpy.reporters._table import TableReporter
from medyanpy.topology import Topology

if TYPE_CHECKING:
    from medyanpy.core.handles import Handle
    from medyanpy.pools import MoleculePool
    from medyanpy.simulation import Simulation
    from medyanpy.state import State

__all__ = ["Column", "StateDataReporter"]


@dataclass(frozen=True)
class Row:
    """Data that a column may use."""

    state: "State"
    topology: Topology
    total_steps: int
    #: Steps per second of wall clock since the last row, and since the first report was described.
    speed: float
    mean_speed: float
    elapsed: float


@dataclass(frozen=True)
class Column:
    """Column of the table: the option of `StateDataReporter` that switches it on, its title, the number of a `Row`, the
    keyword of ``Context.get_state`` whose content it needs, and its format (all digits where empty)."""

    keyword: str
    name: str
    unit: str
    value: Callable[[Row], float]
    needs: str = ""
    form: str = ""

    def text(self, row: Row) -> str:
        value = self.value(row)
        if self.form:
            return format(value, self.form)
        # All digits: differences of energies are what one looks at.
        return str(value) if isinstance(value, int) else repr(float(value))

    @property
    def title(self) -> str:
        return f"{self.name} ({self.unit})" if self.unit else self.name


# Numbers whose squares add up to numbers.
_SQUARED = 1e150


def _area(row: Row) -> float:
    x, faces, box = row.state.positions, row.state.faces, row.state.box
    lengths = None if box is None else box_lengths(box)
    area = 0.0
    for membrane in row.topology.membranes:
        vectors = geometry.area_vectors(x[membrane.beads], faces[membrane.name], lengths)
        # In a run that has gone astray squares may be too large for numbers, where areas are not.
        scale = max(1.0, float(np.abs(vectors).max(initial=0.0)) / _SQUARED)
        area += 0.5 * scale * total(np.sqrt(geometry.squared_lengths(vectors / scale)))
    return area


def _has_volume(membrane: Membrane) -> bool:
    return membrane.mesh.is_closed and not membrane.mesh.closes_through_the_box


def _volume(row: Row) -> float:
    x, faces = row.state.positions, row.state.faces
    return sum(
        total(geometry.signed_volumes(x[m.beads], faces[m.name])) for m in row.topology.membranes if _has_volume(m)
    )


def _length(c: int) -> Callable[[Row], float]:
    """Return a function for the length of the box along an axis; nan in open directions."""

    def value(row: Row) -> float:
        return (row.state.box or (None, None, None))[c] or float("nan")

    return value


def _remaining(row: Row) -> float:
    left = max(0, row.total_steps - row.state.step)
    return left / row.mean_speed if row.mean_speed > 0.0 else float("nan")


def _temperature_of(handle: str) -> Column:
    def value(row: Row) -> float:
        # Handles without beads have no temperature.
        return row.state.temperatures.get(handle, float("nan"))

    return Column("temperatures", f"Temperature of {handle}", "K", value, "energy")


def _molecules_of(pool: str, species: str) -> Column:
    def value(row: Row) -> float:
        # An edit may have removed the pool.
        return int(np.sum(row.state.pools[pool][species])) if pool in row.state.pools else float("nan")

    return Column("molecules", f"{species} of {pool}", "", value)


def _beads_of(handle: "Handle", species: str) -> Column:
    of = OfSpecies(handle, species)

    def value(row: Row) -> float:
        return len(of.rows(row.state))

    return Column("molecules", f"{species} of {handle.name}", "", value, "positions")


# In this order, which is OpenMM's. In the place of that of `temperatures` there is one for each handle, in that of
# `molecules` one for each species of each pool.
COLUMNS = (
    Column("progress", "Progress", "%", lambda row: 100.0 * row.state.step / row.total_steps, form=".2f"),
    Column("step", "Step", "", lambda row: row.state.step),
    Column("time", "Time", "s", lambda row: row.state.time),
    Column("potential_energy", "Potential Energy", "pN nm", lambda row: row.state.potential_energy, "energy"),
    Column("kinetic_energy", "Kinetic Energy", "pN nm", lambda row: row.state.kinetic_energy, "energy"),
    Column("total_energy", "Total Energy", "pN nm", lambda row: row.state.total_energy, "energy"),
    Column("temperature", "Temperature", "K", lambda row: row.state.temperature, "energy"),
    _temperature_of(""),
    Column("work", "Heat", "pN nm", lambda row: row.state.heat, "energy"),
    Column("work", "Shadow Work", "pN nm", lambda row: row.state.shadow_work, "energy"),
    Column("work", "Protocol Work", "pN nm", lambda row: row.state.protocol_work, "energy"),
    Column("chemical_work", "Chemical Work", "pN nm", lambda row: row.state.chemical_work, "energy"),
    Column("entropy_production", "Entropy Production", "k_B", lambda row: row.state.entropy_production),
    _molecules_of("", ""),
    Column("acceptance", "Acceptance", "", lambda row: row.state.acceptance, form=".6f"),
    Column("area", "Area", "nm^2", _area, "positions"),
    Column("volume", "Volume", "nm^3", _volume, "positions"),
    *(Column("box", f"Box {axis}", "nm", _length(c)) for c, axis in enumerate("XYZ")),
    Column("speed", "Speed", "steps/s", lambda row: row.speed, form=".6g"),
    Column("elapsed_time", "Elapsed Time", "s", lambda row: row.elapsed, form=".3f"),
    Column("remaining_time", "Time Remaining", "s", _remaining, form=".1f"),
)


class StateDataReporter(TableReporter):
    """Writes a row of numbers every `interval` steps, to a file or a stream such as ``sys.stdout``.

    Parameters
    ----------
    file : path or open text stream
        A stream is written to and flushed, and never closed.
    interval : int, >= 1
        Steps between rows; rows are at multiples of it, never at step 0.
    step : bool
        Steps taken.
    time : bool
        Simulated time, s.
    potential_energy, kinetic_energy, total_energy : bool
        pN nm.
    temperature : bool
        Of everything, K; see `State.temperature`.
    temperatures : bool
        A column for each handle that can move, K: ``state.temperatures`` under the handle's name; nan while it has no
        beads.
    work : bool
        Heat, shadow work and protocol work so far, pN nm; switches `Simulation.report_work` on where it is off.
    chemical_work : bool
        What driven jumps have done, pN nm; likewise.
    entropy_production : bool
        What has driven the events of jumps so far, in units of Boltzmann's constant: see `State.entropy_production`.
    molecules : bool or list of str
        A column for each species of each pool and of each handle with species, or for those of these names: all
        molecules of a pool together.
    acceptance : bool
        Of all tries of blocks M( ) so far those accepted; needs a word with one.
    area, volume : bool
        Of all membranes together, nm^2; of closed ones, not through the sides of a box, nm^3.
    box : bool
        Lengths of the periodic box along x, y and z, nm; nan in open directions.
    speed : bool
        Steps per second of wall clock, since the row before.
    progress : bool
        Step in percent of `total_steps`.
    remaining_time, elapsed_time : bool
        Wall clock, s. The time that has elapsed counts on from the last row of a file that is appended to.
    total_steps : int, >= 1
        Step number at which the work will be done; counts from step 0 also in a run that resumes from a checkpoint.
    separator : str
        Between columns.
    comment : str
        Before the titles: ``"#"`` for `numpy.loadtxt`, or ``""`` for pandas and spreadsheets.
    append : bool
        Continue an existing file of the same titles; with a Step column, without rows of steps still to come.
    overwrite : bool
        Replace an existing file.

    Raises
    ------
    ParameterError
        No columns; progress or remaining time without `total_steps`. A file that exists and has rows, that another
        process is writing, or one to append to that has other columns. Area without a membrane, volume without a closed
        one, box without a periodic box, acceptance with a word without M( ).
    OutputError
        From ``Simulation.step`` or `flush`: the file cannot be written; the row waits until it can.

    Notes
    -----
    The table starts with one line of titles, quoted as CSV has it (RFC 4180); everything below is numbers.

    Examples
    --------
    >>> import sys
    >>> import medyanpy as mp
    >>> topology = mp.Topology()
    >>> beads = topology.add_beads([[0.0, 0, 0]], mass=1.0)
    >>> simulation = mp.Simulation(mp.System(topology), mp.VerletIntegrator(0.5))
    >>> simulation.reporters.append(mp.reporters.StateDataReporter(sys.stdout, 2, step=True, time=True))
    >>> simulation.step(4)
    #"Step","Time (s)"
    2,1.0
    4,2.0
    """

    goes_on: Mapping[str, Any] | None = APPENDED

    def __init__(
        self, file: Any, interval: int, *, step: bool = False, time: bool = False, potential_energy: bool = False,
        kinetic_energy: bool = False, total_energy: bool = False, temperature: bool = False, temperatures: bool = False,
        work: bool = False, chemical_work: bool = False, entropy_production: bool = False,
        molecules: bool | list[str] = False, acceptance: bool = False, area: bool = False, volume: bool = False,
        box: bool = False, speed: bool = False,
        progress: bool = False, remaining_time: bool = False, elapsed_time: bool = False,
        total_steps: int | None = None, separator: str = ",",
        comment: Literal["#", ""] = "#", append: bool = False, overwrite: bool = False,
    ) -> None:  # fmt: skip
        if comment not in ("#", ""):
            raise ParameterError(f"StateDataReporter: comment = {shown(comment)} but must be '#' or ''")
        given, options = locals(), [*dict.fromkeys(column.keyword for column in COLUMNS)]
        wanted = {name for name in options if given[name]}
        if not wanted:
            raise ParameterError(f"StateDataReporter: nothing to report; switch on some of {', '.join(options)}")
        if total_steps is None and (progress or remaining_time):
            raise ParameterError("StateDataReporter: progress and remaining_time need total_steps")
        self._wanted = wanted
        self._species = None if molecules in (True, False) else words("StateDataReporter: molecules", molecules)
        total = 1 if total_steps is None else total_steps
        self._total = whole_number("StateDataReporter: total_steps", total, at_least=1)
        self._columns: list[Column] | None = None
        self._pools: dict[str, MoleculePool] = {}
        self._clock: _Clock | None = None
        # Last: it opens the file.
        super().__init__(file, interval, separator=separator, append=append, overwrite=overwrite, comment=comment)

    def report(self, simulation: "Simulation", state: "State") -> None:
        self._attach(simulation)
        assert self._clock is not None
        assert self._columns is not None
        speed, mean_speed, elapsed = self._clock.read(state.step)
        row = Row(state, simulation.topology, self._total, speed, mean_speed, elapsed)
        self._put(self._separator.join(column.text(row) for column in self._columns))
        self._last_step = state.step
        self._wrote(1)

    def _follow(self, simulation: "Simulation") -> None:
        step = simulation.current_step
        if self._clock is None:
            if "acceptance" in self._wanted and not simulation.integrator.blocks:
                raise ParameterError(
                    f"StateDataReporter: acceptance is asked for, but the word {simulation.integrator.word!r} has no "
                    "block M( )"
                )
            if {"work", "chemical_work"} & self._wanted:
                simulation.report_work = True
            if "box" in self._wanted and simulation.system.box is None:
                raise ParameterError("StateDataReporter: box is asked for, but the system has none")
            self._pools = simulation.system.pools
            self._columns = self._columns_for(simulation.topology)
            self.include: tuple[str, ...] = tuple(sorted({column.needs for column in self._columns} - {""}))
            last, elapsed, before = self._begin(simulation.topology), "Elapsed Time (s)", 0.0
            if last and elapsed in self._titles:
                before = self._number_in(last, self._titles.index(elapsed), float)
            self._clock = _Clock(step, before)
        self._clock.start_again(step)
        if self._last_step > step:
            self._cut(step)

    def _columns_for(self, topology: Topology) -> list[Column]:
        if "area" in self._wanted and not topology.membranes:
            raise ParameterError("StateDataReporter: area is asked for, but there is no membrane")
        if "volume" in self._wanted and not any(_has_volume(m) for m in topology.membranes):
            raise ParameterError("StateDataReporter: volume is asked for, but there is no closed membrane")
        for membrane in topology.membranes if "volume" in self._wanted else ():
            if _has_volume(membrane) and membrane.mesh.inside_out:
                k = membrane.mesh.inside_out[0]
                warn_outside(
                    f"StateDataReporter: {membrane.mesh._described_part(k)} of {membrane.name!r} is turned inside out, "
                    f"so that its volume counts as negative; {membrane.mesh._remedy([k])}",
                    MeshQualityWarning,
                )
        molecules = [_molecules_of(name, s) for name, pool in self._pools.items() for s in pool.species]
        molecules += [_beads_of(handle, one.name) for handle in topology.handles for one in handle._species]
        if self._species is not None:
            known = [column.title.rpartition(" of ")[0] for column in molecules]
            for species in self._species:
                look_up(dict.fromkeys(known), species, "species in pools or of beads", ParameterError)
            molecules = [column for column in molecules if column.title.rpartition(" of ")[0] in self._species]
        if "molecules" in self._wanted and not molecules:
            raise ParameterError(
                "StateDataReporter: molecules are asked for, but there are none in pools, and no beads with species"
            )
        columns: list[Column] = []
        for column in COLUMNS:
            if column.keyword not in self._wanted:
                continue
            # Of what may move, also without beads yet; not of what has its temperature with another.
            own = [h for h in topology.handles if h.kind.measured_with is h and (h.degrees_of_freedom or not len(h))]
            several = {"temperatures": [_temperature_of(h.name) for h in own], "molecules": molecules}
            columns += several.get(column.keyword, [column])
        return columns

    def _titles_for(self, topology: Topology) -> list[str]:
        return [column.title for column in self._columns_for(topology)]


class _Clock:
    """Wall clock of the steps, not of the pauses between calls of ``Simulation.step``."""

    def __init__(self, step: int, elapsed: float = 0.0) -> None:
        self._marked = time.perf_counter()
        # Where seconds that have elapsed before count.
        self._first = self._marked - elapsed
        self._step = step
        self._steps = 0
        self._seconds = 0.0

    def start_again(self, step: int) -> None:
        """Leave out the time since the last row, a pause, where no step was taken in it."""
        if step <= self._step:
            self._step, self._marked = step, time.perf_counter()

    def read(self, step: int) -> tuple[float, float, float]:
        """Return steps/s since the last row, steps/s in all, seconds since the start."""
        now = time.perf_counter()
        steps, seconds = step - self._step, now - self._marked
        self._steps += steps
        self._seconds += seconds
        self._step, self._marked = step, now
        return _ratio(steps, seconds), _ratio(self._steps, self._seconds), now - self._first


def _ratio(steps: int, seconds: float) -> float:
    return steps / seconds if seconds > 0.0 else float("nan")
