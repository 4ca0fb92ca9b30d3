"""Snapshots: a Context, or a frame of a file, at one step."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from medyanpy import units
from medyanpy._tools.images import Box, in_words, wrapped
from medyanpy._tools.names import Named
from medyanpy._tools.tables import Displayed, Page, Table, amount, quantity
from medyanpy._tools.validation import one_or_many
from medyanpy.core.handles import found_ids
from medyanpy.errors import ParameterError, TopologyError
from medyanpy.pools import PoolStates

if TYPE_CHECKING:
    from medyanpy.core.handles import Handle
    from medyanpy.forces.links import LinkEnds, Links
    from medyanpy.jumps._base import Counts

__all__ = ["BlockCounts", "InTriangle", "Snapshot", "State"]

_WORK = ("heat", "shadow_work", "protocol_work", "chemical_work")


class BlockCounts(NamedTuple):
    """Counts of a block M( ) of the word: how often it was tried, accepted, and could not be carried out, which is a
    rejection too: a triangle was lost, or constraints were not found."""

    block: str
    tried: int
    accepted: int
    failed: int


@dataclass(frozen=True)
class InTriangle:
    """Places of the in-triangle points of all handles, in topology order; ``handle.rows`` are the rows of one handle.

    Attributes
    ----------
    triangles : (n,) int32 array
        Faces, numbered as in the mesh of the point's own membrane; -1 in inactive rows. Those of one handle:
        ``triangles[proteins.rows]``.
    barycentric : (n, 3) float array
        Weights of the face's corners: all >= 0, sum 1; nan in inactive rows.
    """

    triangles: np.ndarray
    barycentric: np.ndarray


class Snapshot(Named, ABC):
    """Beads at one step: base class of `State` and of `Frame`, and the attributes that they share."""

    step: int
    time: float

    @property
    @abstractmethod
    def ids(self) -> np.ndarray: ...

    @property
    @abstractmethod
    def box(self) -> Box | None: ...

    @property
    def next_id(self) -> int | None:
        """Id of the next bead that is added; None where it is not known."""
        return None

    @abstractmethod
    def _array(self, name: str, keyword: str) -> np.ndarray:
        """Return what kinds of beads declare under a name, and `Context.get_state` gives for a keyword."""

    @property
    def positions(self) -> np.ndarray:
        return self._array("positions", "positions")

    @property
    def wrapped_positions(self) -> np.ndarray:
        return wrapped(self.positions, self.box)

    @property
    def velocities(self) -> np.ndarray:
        return self._array("velocities", "velocities")

    @property
    def orientations(self) -> np.ndarray:
        return self._array("orientations", "positions")

    @property
    def angular_momenta(self) -> np.ndarray:
        return self._array("angular_momenta", "velocities")

    def rows_of_ids(self, ids: Any) -> np.ndarray:
        """Return rows of beads by their permanent ids.

        Parameters
        ----------
        ids : (k,) int or int

        Returns
        -------
        (k,) int array

        Raises
        ------
        TopologyError
            An id that no bead has had, or whose bead is gone.
        """
        wanted = one_or_many("rows_of_ids: ids", ids, dtype=np.int64, error=TopologyError)
        rows: np.ndarray = found_ids("rows_of_ids", wanted, self.ids, self.next_id)
        return rows


@dataclass(frozen=True)
class State(Displayed, Snapshot):
    """Snapshot of a context; its arrays are read-only and have a row per bead, in topology order.

    Reading an attribute that `Context.get_state` was not asked for raises ParameterError.

    Attributes
    ----------
    step : int
    time : float, s
    ids : (n,) int64 array
        Permanent ids of beads; -1 in rows without a bead. `rows_of_ids` is the inverse.
    alive : (n,) bool array
        True in rows with a bead; other rows are inactive, and nan in all arrays of numbers.
    box : (3,) tuple of float, nm, or None; or None
        Lengths of the periodic box, None in open directions; None where space is open.
    positions : (n, 3) float array, nm
        Unwrapped: they do not jump where a bead crosses the box.
    wrapped_positions : (n, 3) float array, nm
        The images in the box, from 0 to its length; in open directions as they are.
    physical_positions : (n, 3) float array, nm
        Positions of the particles: `positions`, but with linearly implicit kicks x + β h² a(x), with h of the first
        kick of a step.
    velocities : (n, 3) float array, nm/s
        Of in-triangle points: in-plane, relative to the triangle.
    orientations : (m, 4) float array, dimensionless
        With `positions`: unit quaternions of the oriented beads, scalar first, that turn vectors of the body frame into
        space. Rows of one handle: ``state.orientations[handle.rows]``.
    angular_momenta : (m, 3) float array, pN nm s
        With `velocities`: of the oriented beads about their centres, in the frame of each body.
    torques : (m, 3) float array, pN nm
        With `forces`: on the oriented beads, in the frame of each body.
    forces : (n, 3) float array, pN
        -∂PE/∂(3D position) of each bead; rows of vertices without what points pass on to them.
    energies : dict of str to float, pN nm
        Potential energy of every force, by its name.
    potential_energy, kinetic_energy, total_energy : float, pN nm
    kinetic_energies : dict of str to float, pN nm
        By handle name.
    temperature : float, kelvin
        2 KE / (degrees of freedom · k_B), with velocities after the word's last O: exactly Maxwell's in harmonic wells
        and for points on a frozen mesh, nearly elsewhere. (At the end of a step a harmonic well of frequency ω reads
        1 - (ω dt)²/4 of it.) Without O, and before the first step, with velocities as they are; nan for
        `BrownianIntegrator`.
    virials : dict of str to (3, 3) float array, pN nm
        Of every force, by its name: -∂U/∂ε in a homogeneous strain x → x + εᵀ x of space, Σ x_i ⊗ F_i over all beads.
        In a periodic direction the box is strained too: only the diagonal is known, from differences of energies (to
        1e-9 of these); other elements with that direction are nan, and all where beads are on surfaces.
    virial : (3, 3) float array, pN nm
        Sum of `virials`.
    multipliers : dict of str to (n,) float array, pN over the unit of ∇g
        Lagrange multipliers λ of constraints g = 0, by handle name: with these velocities and forces, -λ ∇g are the
        forces of constraints. One for each bead on a surface, for each link of filaments (g = r² - ℓ²; its tension is
        2 λ ℓ), and (m, t) for each row and text of constraints of a user's own. Of filaments with directors d (l, 3):
        of the links e, of e·d and of (d² - 1)/2, which act on directors too.
    counts : dict of str to (int, int)
        Numbers of tries and of events of every jump, by its name.
    entropy_production : float, in units of Boltzmann's constant
        Sum of the driving energies of all events so far over kT, see `EventReporter`: in a steady state the entropy
        that the jumps produce. 0 of balanced jumps, inf once an event had no way back.
    blocks : tuple of BlockCounts
        Counts of every block M( ) of the word; see :doc:`/theory/metropolis`.
    acceptance : float, 0 to 1
        Fraction of accepted tries of blocks so far; nan before the first.
    jumps : dict of str to dict
        With `positions`: the discrete states of jumps, by the names of the jumps; of `LinkBinding` ``"links"``, (k, 2)
        rows of its sites, and of links with states ``"states"``, (k,) their numbers.
    faces : dict of str to (F, 3) int32 array
        With `positions`: the triangles of every membrane by handle name, of numbers of its own vertices.
    heat, shadow_work, protocol_work, chemical_work : float, pN nm
        With ``energy=True`` while work is measured, see `Simulation.report_work`.
    pools : PoolStates
        Molecules in pools by the names of pool and species, whole numbers: ``state.pools["Pool"]["G-actin"]``, or
        ``state.pools["G-actin"]`` where one pool alone has it. Of `Compartments` arrays of the shape of the grid.
    kT : float, pN nm
        Temperature as an energy: 2 KE / degrees of freedom, for work without units.
    temperatures : dict of str to float, kelvin
        The temperature by handle name; handles that cannot move are left out.
    intriangle : InTriangle
        With `positions`.

    Further columns of kinds of beads: ``state.column(name)``; ``topology.columns`` lists all.
    """

    step: int
    time: float
    _parts: dict[str, Any] = field(repr=False)

    def _part(self, name: str, keyword: str) -> Any:
        if name not in self._parts:
            raise ParameterError(f"this State holds no {name}: ask for them with get_state({keyword}=True)")
        return self._parts[name]

    def _array(self, name: str, keyword: str) -> np.ndarray:
        held: np.ndarray = self._part(name, keyword)
        return held

    @property
    def _who(self) -> tuple[int, np.ndarray | None, np.ndarray | None, int]:
        """Number of rows, ids and a mask of beads that are there (None where all are under the numbers of their
        rows), and the next id."""
        who: tuple[int, np.ndarray | None, np.ndarray | None, int] = self._parts["who"]
        return who

    @property
    def ids(self) -> np.ndarray:
        n, ids, _, _ = self._who
        return _frozen(np.arange(n)) if ids is None else ids

    @property
    def alive(self) -> np.ndarray:
        n, _, alive, _ = self._who
        return _frozen(np.ones(n, bool)) if alive is None else alive

    @property
    def next_id(self) -> int:
        """Id of the next bead that is added."""
        return self._who[3]

    def living(self, handle: "Handle") -> np.ndarray:
        """Return the rows of the beads of a handle that are there, (k,), ascending. Where jumps add and remove beads
        these differ from ``handle.beads``: ``state.positions[state.living(handle)]``."""
        rows = handle.kind.all_rows
        rows = rows[rows < self._who[0]]
        return np.asarray(rows[self.alive[rows]])

    def column(self, name: str) -> np.ndarray:
        """Return what a kind of bead declares under a name, a row for each bead that has it, in topology order.

        Raises
        ------
        ParameterError
            An unknown name, or one that `get_state` was not asked for: positions or velocities (momenta).
        """
        held = self._parts.get(name)
        if not isinstance(held, np.ndarray):
            known = ", ".join(key for key, value in self._parts.items() if isinstance(value, np.ndarray)) or "none"
            raise ParameterError(
                f"this State holds no column {name!r}, only {known}: places come with get_state(positions=True), "
                "momenta with velocities=True"
            )
        return held

    @property
    def box(self) -> Box | None:
        box: Box | None = self._parts.get("box")
        return box

    @property
    def wrapped_positions(self) -> np.ndarray:
        return _frozen(super().wrapped_positions)

    @property
    def intriangle(self) -> InTriangle:
        if "triangles" not in self._parts:
            self._part("intriangle", "positions")
        return InTriangle(self._parts["triangles"], self._parts["barycentric"])

    @property
    def forces(self) -> np.ndarray:
        return self._array("forces", "forces")

    @property
    def torques(self) -> np.ndarray:
        return self._array("torques", "forces")

    @property
    def energies(self) -> dict[str, float]:
        return dict(self._part("energies", "energy"))

    @property
    def virials(self) -> dict[str, np.ndarray]:
        return dict(self._part("virials", "virial"))

    @property
    def virial(self) -> np.ndarray:
        return sum(self.virials.values(), np.zeros((3, 3)))

    @property
    def physical_positions(self) -> np.ndarray:
        return self._array("physical_positions", "physical_positions")

    @property
    def multipliers(self) -> dict[str, np.ndarray]:
        return dict(self._part("multipliers", "multipliers"))

    @property
    def counts(self) -> "dict[str, Counts]":
        return dict(self._parts["counts"])

    @property
    def entropy_production(self) -> float:
        return float(self._parts.get("entropy_production", 0.0))

    @property
    def blocks(self) -> tuple[BlockCounts, ...]:
        return tuple(self._parts.get("blocks", ()))

    @property
    def acceptance(self) -> float:
        if not self.blocks:
            raise ParameterError("this State holds no acceptance: the word of its run has no block M( )")
        tried = sum(block.tried for block in self.blocks)
        return sum(block.accepted for block in self.blocks) / tried if tried else float("nan")

    @property
    def jumps(self) -> dict[str, Any]:
        return dict(self._part("jumps", "positions"))

    @property
    def pools(self) -> PoolStates:
        return PoolStates(self._parts.get("pools", {}))

    @property
    def faces(self) -> dict[str, np.ndarray]:
        return dict(self._part("faces", "positions"))

    def links(self, force: "Links") -> "LinkEnds":
        """Return the links of a force as they are here: those that it was given, and those that jumps have bound.

        Raises
        ------
        ParameterError
            A force without links, or of another system; or `get_state` was not asked for positions.
        """
        found: dict[Links, LinkEnds] = self._part("links", "positions")
        for one, ends in found.items():
            if one is force:
                return ends
        known = ", ".join(one.name for one in found) or "none"
        raise ParameterError(
            f"links: {force!r} is not a force with links of the system of this State; there are: {known}"
        )

    @property
    def chemical_work(self) -> float:
        return self._work("chemical_work")

    @property
    def heat(self) -> float:
        return self._work("heat")

    @property
    def shadow_work(self) -> float:
        return self._work("shadow_work")

    @property
    def protocol_work(self) -> float:
        return self._work("protocol_work")

    def _work(self, name: str) -> float:
        if "energies" in self._parts and name not in self._parts:
            raise ParameterError(f"this State holds no {name}: set simulation.report_work = True before the run")
        work: float = self._part(name, "energy")
        return work

    @property
    def potential_energy(self) -> float:
        return sum(self.energies.values())

    @property
    def kinetic_energies(self) -> dict[str, float]:
        return dict(self._part("kinetic_energies", "energy"))

    @property
    def kinetic_energy(self) -> float:
        if "kinetic_energy" in self._parts:
            # A frame holds the sum alone.
            return float(self._parts["kinetic_energy"])
        return sum(self.kinetic_energies.values())

    @property
    def total_energy(self) -> float:
        return self.potential_energy + self.kinetic_energy

    @property
    def temperature(self) -> float:
        temperature: float = self._part("temperature", "energy")
        return temperature

    @property
    def kT(self) -> float:  # noqa: N802 - the symbol that integrators take
        return units.boltzmann * self.temperature

    @property
    def temperatures(self) -> dict[str, float]:
        return dict(self._part("temperatures", "energy"))

    def __repr__(self) -> str:
        # Times are products of steps: of these all digits but the last two are meant.
        return f"State(step={self.step}, time={self.time:.15g})"

    def _page(self) -> Page:
        parts = self._parts
        tables = []
        if self.has("energies"):
            tables.append(Table("", [
                ("temperature", quantity(self.temperature, "K")),
                ("potential energy", quantity(self.potential_energy, "pN nm")),
                ("kinetic energy", quantity(self.kinetic_energy, "pN nm")),
                ("total energy", quantity(self.total_energy, "pN nm")),
                *((name.replace("_", " "), quantity(parts[name], "pN nm")) for name in _WORK if name in parts),
            ]))  # fmt: skip
            energies = [(name, amount(energy)) for name, energy in self.energies.items()]
            tables.append(Table("forces", energies, ("forces", "energy (pN nm)")))
        if self.has("kinetic_energies"):
            temperatures = self.temperatures
            kinetic = [(n, amount(e), amount(temperatures.get(n))) for n, e in self.kinetic_energies.items()]
            tables.append(Table("beads", kinetic, ("beads", "kinetic energy (pN nm)", "temperature (K)")))
        jumps = [(name, amount(tried), amount(happened)) for name, (tried, happened) in self.counts.items()]
        tables.append(Table("jumps", jumps, ("jumps", "tried", "happened")))
        blocks = [(block, *map(amount, counts)) for block, *counts in self.blocks]
        tables.append(Table("blocks", blocks, ("blocks", "tried", "accepted", "failed")))
        molecules = [
            (f"{pool}, {name}", amount(int(np.sum(n)))) for pool, own in self.pools.items() for name, n in own.items()
        ]
        tables.append(Table("pools", molecules, ("pools", "molecules")))
        arrays = [(name, _shape(value)) for name, value in parts.items() if isinstance(value, np.ndarray)]
        arrays += [(f"faces[{name!r}]", _shape(value)) for name, value in parts.get("faces", {}).items()]
        tables.append(Table("arrays", arrays))
        box = "" if self.box is None else f", in a box of {in_words(self.box)} nm"
        return Page("State", f"step {self.step:,}, {self.time:.6g} s, {self._who[0]:,} beads{box}", tables)

    def has(self, name: str) -> bool:
        """Tell whether `name` (positions, velocities, forces, energies) was asked for."""
        return name in self._parts


def _shape(a: np.ndarray) -> str:
    return " × ".join(f"{n:,}" for n in a.shape)


def _frozen(a: np.ndarray) -> np.ndarray:
    a.flags.writeable = False
    return a
