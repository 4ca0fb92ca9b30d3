"""Forces from outside on single beads."""

from typing import TYPE_CHECKING, Any

import numpy as np

from medyanpy._kernels.core.sites import SiteTable
from medyanpy._kernels.forces.external import Field
from medyanpy._kernels.selected import fields
from medyanpy._tools.images import nearest_image
from medyanpy._tools.types import Numbers
from medyanpy.core.handles import bead_numbers, handles_in
from medyanpy.core.sites import Sites
from medyanpy.errors import BoxWarning
from medyanpy.forces._arguments import Beads
from medyanpy.forces._base import Given, argument, bead_rows, declared, number
from medyanpy.forces._expressions import WrittenForce
from medyanpy.forces._on_species import OnSpecies
from medyanpy.forces._stiffness import Coordinates, Start

if TYPE_CHECKING:
    from medyanpy._kernels.core.program import Operation
    from medyanpy.core.handles import Handle
    from medyanpy.core.layout import Layout
    from medyanpy.engine.worksheet import Look, Remark

__all__ = ["ExternalField", "HarmonicTrap", "UniformField"]

# Rounding of an energy that is the same at both ends of a box.
_ROUNDING = 1e-9


class _SingleBeadForce(OnSpecies):
    """An energy of single beads.

    Raises
    ------
    ParameterError
        A number of another shape or outside its domain.
    TopologyError
        A handle of another topology, beads that do not exist or are named twice.
    """

    _group_names = ("beads",)
    of_positions_alone = True

    def _take(self, given: dict[str, Any]) -> None:
        super()._take(given)
        beads = given["beads"]
        self._handles: tuple[Handle, ...]
        self._given: np.ndarray | Sites
        # Sites, handles, or bead numbers in the order given: rows of numbers that differ from bead to bead are in it.
        if isinstance(beads, Sites):
            self._handles = beads.handles
            self._given = beads
        else:
            self._handles = handles_in(beads)
            self._given = bead_rows(f"{self.name}: beads", () if self._handles else beads, (None,))

    @property
    def handles(self) -> "tuple[Handle, ...]":
        return self._handles

    @property
    def beads(self) -> "np.ndarray | Sites":
        """Bead numbers (n,), in the order of rows of numbers; the sites, where it acts on sites."""
        return self._given if self._is_named else bead_numbers(self._handles)

    @property
    def _is_named(self) -> bool:
        """True if it acts on sites or beads that a user has named, and not on all beads of some handles."""
        return isinstance(self._given, Sites) or not self._handles

    def _keys(self, per: str) -> np.ndarray | None:
        if per != "beads" or self._is_named:
            return None
        return np.concatenate([handle.ids for handle in self._handles])

    def naming(self, gone: np.ndarray) -> dict[str, np.ndarray]:
        if not self._is_named:
            return {}
        given = self._given
        return {"site": given.naming(gone)} if isinstance(given, Sites) else {"bead": gone[given]}

    def without(self, terms: dict[str, np.ndarray]) -> None:
        (mask,) = terms.values()
        numbers, self._given = self._numbers_of(~mask), self._given[~mask]
        self._was_cut = True
        self._declare(**numbers)
        self._version += 1

    def _arguments_now(self) -> dict[str, Any]:
        return super()._arguments_now() | ({"beads": self._given} if self._was_cut else {})

    def _place(self, layout: "Layout") -> tuple[SiteTable, np.ndarray, np.ndarray, bool]:
        """Return a table, its rows ascending, the given number of the bead in each, and whether one may be a point."""
        beads = self.beads
        if isinstance(beads, Sites):
            beads.check(f"{self.name}: beads", layout.topology)
            table, place, on_points = beads.bind(layout), np.arange(len(beads)), beads.on_points(layout)
        else:
            layout.topology.bead_indices(f"{self.name}: beads", self._handles or beads)
            if self._handles:
                beads = np.concatenate([beads, *(handle.kind.with_room[len(handle) :] for handle in self._handles)])
            table, place = SiteTable(), layout.internal(beads)
            if any(self._of_species):
                table.choose(self._species_bits(layout, np.arange(layout.n))[:, 0].copy())
            on_points = bool((place >= layout.n_cartesian).any())
        order = np.argsort(place)
        return table, place[order].astype(np.int32), order, on_points

    def _in_order(self, name: str, order: np.ndarray) -> np.ndarray:
        """Return rows of a number as `_place` orders beads; rows without a bead have the values that jumps may give."""
        values, born = self._numbers[name], self._number_of_all(name)
        rows = np.zeros((len(order), *values.shape[1:]))
        rows[: len(values)] = values
        rows[len(values) :] = 0.0 if born is None else born
        return np.ascontiguousarray(rows[order])

    def _coordinates(self, start: Start) -> Coordinates:
        beads = self.beads
        if isinstance(beads, Sites):
            beads.check(f"{self.name}: beads", start.topology)
            return start.sites(beads)
        start.topology.bead_indices(f"{self.name}: beads", beads)
        return start.coordinates(beads)

    def _quadratic(self, layout: "Layout", stiffness: np.ndarray, center: str = "", force: str = "") -> Field:
        """Make a quadratic field; `center` and `force` are names of numbers, empty for a term that is not there."""
        table, place, order, on_points = self._place(layout)

        def rows(name: str) -> np.ndarray:
            given: np.ndarray = self._numbers[name] if name else np.zeros(3)
            return self._in_order(name, order) if given.ndim == 2 else given.reshape(1, 3)

        operation = Field(self.name, table, place, stiffness, rows(center), rows(force))
        operation.acts_on_points = on_points
        return operation


@declared
class UniformField(_SingleBeadForce):
    r"""A constant force on each of some beads.

    .. math:: U = -\sum_i F_i \cdot x_i

    The energy has no bound: without friction or walls beads accelerate without end.
    """

    beads: Given["Beads", np.ndarray | Sites] = argument(
        "handle, list of handles, (n,) int, or Sites", "Of any kind; ``handle.of(name)`` for one species."
    )
    force: Given["Numbers", np.ndarray] = number(
        "pN", "F: the same for all, or one row for each bead, in the order in which the beads are given.",
        per="beads", size=3,
    )  # fmt: skip

    def squared_frequencies(self, start: Start) -> np.ndarray | None:
        return np.zeros(start.n_rows)

    def bind(self, layout: "Layout") -> "Operation":
        return self._quadratic(layout, np.zeros(3), force="force")


@declared
class HarmonicTrap(_SingleBeadForce):
    r"""A spring from each of some beads to a place that does not move.

    .. math:: U = \sum_i \sum_{c = x, y, z} \tfrac12 k_c (x_{ic} - o_{ic})^2
    """

    beads: Given["Beads", np.ndarray | Sites] = argument(
        "handle, list of handles, (n,) int, or Sites", "Of any kind; ``handle.of(name)`` for one species."
    )
    stiffness: Given["Numbers", np.ndarray] = number(
        "pN/nm", "k, the same in all directions or one along each axis: 0 along x and y makes a trap in z alone.",
        at_least=0.0, size=3, or_number=True,
    )  # fmt: skip
    center: Given["Numbers", np.ndarray] = number(
        "nm", "o: the same for all, or one row for each bead, in the order in which the beads are given.",
        per="beads", size=3,
    )  # fmt: skip

    def squared_frequencies(self, start: Start) -> np.ndarray | None:
        return start.springs(self._coordinates(start), self._numbers["stiffness"].max())

    def bind(self, layout: "Layout") -> "Operation":
        return self._quadratic(layout, self._numbers["stiffness"], center="center")


class ExternalField(WrittenForce, _SingleBeadForce):
    r"""An energy of single beads written as an expression of x, y, z and named parameters.

    .. math:: U = \sum_i u(x_i, y_i, z_i;\ p_i)

    Parameters
    ----------
    beads : handle, list of handles, (n,) int, or Sites
        Of any kind.
    energy : str or SymPy expression
        u, pN nm, of x, y, z (nm) and parameters, with the grammar and functions of :doc:`/forces/fields`, as in
        ``"k*r^2; r = sqrt(x*x + y*y)"``.
    name, group
        See `Force`.
    **parameters : float or (n,) float, finite
        The numbers that the expression names: one for all, or one for each bead, in the order in which the beads are
        given. Change them with `set`.

    Raises
    ------
    ParameterError
        Text that is not such an expression (the message names the place), or one that depends on none of x, y, z. A
        parameter that is missing, is not in the expression, has a name with another meaning, or is not finite.
    TopologyError
        A handle of another topology, beads that do not exist or are named twice.

    Notes
    -----
    The expression is read, never run. Its first three derivatives are exact to rounding. Where u is not a number (the
    logarithm of a number that is not positive; sine and cosine beyond 2²⁰), the run stops. Where a function has no
    derivative (abs, min, max, step, floor, ceil, select), it has that of the branch taken. Where a factor that changes
    in jumps alone (``step(r - R)``) is 0, so are all derivatives of its product. Where the square root of a sum of
    squares (a distance) is 0, the parts of u that are odd in it give no force; the rest has its exact derivatives.

    In a periodic box x, y and z are those of the image that is nearest to the origin, from -L/2 to L/2. Where u is not
    the same at both ends, energies jump as beads cross there, and a Context warns (`BoxWarning`).

    Examples
    --------
    A Morse potential of an angle, which is the x of beads:

    >>> import medyanpy as mp
    >>> topology = mp.Topology()
    >>> angles = topology.add_beads([[0.0, 0, 0], [0.8, 0, 0]], mass=1.0)
    >>> mp.forces.ExternalField(angles, "depth*(exp(-a*(1 - cos(x) - x0)) - 1)^2", depth=1 / 1400, a=7.0, x0=0.3)
    ExternalField('depth*(exp(-a*(1 - cos(x) - x0)) - 1)^2', depth=0.000714286, a=7, x0=0.3)
    """

    _coordinate_names = ("x", "y", "z")

    def __init__(
        self, beads: "Beads", energy: Any, *, name: str | None = None, group: int = 0, **parameters: "Numbers"
    ) -> None:
        self._read(energy, "beads", name, parameters)
        self._take({"beads": beads, "name": name, "group": group})
        self._declare(**parameters)
        self._check_text()

    def _at(self, start: Start) -> tuple[np.ndarray, list[np.ndarray]]:
        """Return positions (n, 3) of its beads, in a box of the images nearest to the origin, and their numbers
        (n,)."""
        beads = self.beads
        x = start.site_positions(beads) if isinstance(beads, Sites) else start.positions[beads]
        x = nearest_image(x, start.box)
        return x, [np.broadcast_to(value, (len(x),)) for value in self._named(*self.changeable)]

    def jumps_at_sides(self, start: Start, box: np.ndarray) -> np.ndarray:
        """Return the largest jump (3,) of the energy of a bead between the two ends of each periodic direction.

        It is relative to the largest energy there, between the ends, or where beads are.
        """
        graph, u, _ = self._graph(self.changeable)
        x, numbers = self._at(start)

        def energies(c: int, end: Any) -> np.ndarray:
            there = x.copy()
            there[:, c] = end
            out: np.ndarray = graph.evaluate([u], [*there.T, *numbers])[0]
            return out

        out, here = np.zeros(3), np.abs(energies(0, x[:, 0])).max(initial=0.0)
        for c in np.flatnonzero(box).tolist():
            low, high = (energies(c, side * box[c]) for side in (-0.5, 0.5))
            # Where both are 0 but for rounding, as for a sine, these places give its scale.
            between = [energies(c, side * box[c]) for side in (-0.25, 0.137, 0.25)]
            largest = max(here, np.abs([low, high, *between]).max(initial=0.0))
            out[c] = np.abs(high - low).max(initial=0.0) / largest if largest > 0.0 else 0.0
        return out

    def remarks_on_box(self, look: "Look") -> "list[Remark]":
        """Return a remark on an energy that jumps where beads cross from one end of the box to the other."""
        for box, when in look.boxes:
            jumps = self.jumps_at_sides(look.start, box)
            c = int(np.argmax(jumps))
            if jumps[c] > _ROUNDING:
                x = "xyz"[c]
                return [(
                    BoxWarning,
                    f"{self.name}: its energies differ by up to {jumps[c]:.2g} of themselves between {x} = "
                    f"{-0.5 * box[c]:.6g} and {0.5 * box[c]:.6g} nm, one and the same place{when}: in a box {x} is "
                    "that of the image nearest to the origin, and beads that cross there gain or lose the difference. "
                    "Write a function that is the same at both ends, or take HarmonicTrap for beads that are held each "
                    "at its place, and UniformField for a force that is the same everywhere",
                )]  # fmt: skip
        return []

    def squared_frequencies(self, start: Start) -> np.ndarray | None:
        coordinates = self._coordinates(start)
        x, numbers = self._at(start)
        graph, u, _ = self._graph(self.changeable)
        second = np.stack(graph.evaluate(graph.hessian(u), [*x.T, *numbers]), axis=1)
        if not np.isfinite(second).all():
            return None
        # The steepest curve upwards that the energy has where each bead is.
        matrix = second[:, [0, 1, 2, 1, 3, 4, 2, 4, 5]].reshape(-1, 3, 3)
        return start.springs(coordinates, np.maximum(np.linalg.eigvalsh(matrix)[:, 2], 0.0))

    def bind(self, layout: "Layout") -> "Operation":
        table, place, order, on_points = self._place(layout)
        others = self._own()
        graph, u, _ = self._graph(others)
        wanted = [u, *graph.gradient(u)], graph.hessian(u), graph.third(u)
        each = np.column_stack([np.empty((len(order), 0)), *(self._in_order(p, order) for p in others)])
        operation = fields.ExpressionField(self.name, table, place, each, [graph.program(w) for w in wanted])
        operation.acts_on_points = on_points
        return operation
