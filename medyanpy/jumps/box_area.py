"""A periodic box whose lengths follow a tension or a pressure."""

from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from medyanpy._kernels.jumps.box_area import BoxArea as BoxAreaOperation
from medyanpy._tools.images import box_lengths
from medyanpy.beads.units import FixedBeads, fixed_beads_given, units_of
from medyanpy.errors import ParameterError
from medyanpy.jumps._base import Given, Jump, argument, declared, number

if TYPE_CHECKING:
    from medyanpy._kernels.jumps.jump import JumpOperation
    from medyanpy.core.layout import Layout
    from medyanpy.engine.schedule import Schedule
    from medyanpy.state import State

__all__ = ["BoxArea"]

# A length that a box may come to have, over that of now: with which no function repeats that does with the box.
_ANOTHER = 1.0173
_Coupling = Literal["area", "isotropic", "semi-isotropic", "anisotropic", "x", "y", "z"]
# Which directions change together, as bits.
_MOVES = {"area": (0b011,), "isotropic": (0b111,), "semi-isotropic": (0b011, 0b100), "anisotropic": (1, 2, 4),
          "x": (1,), "y": (2,), "z": (4,)}  # fmt: skip


@declared
class BoxArea(Jump):
    r"""Changes of the lengths of a periodic box at constant tension or pressure.

    For a patch of membrane at constant frame tension, or a fluid of beads at constant pressure. The target distribution
    is

    .. math:: e^{-(U + K + P V - \tau A)/kT}

    with the area A = Lx Ly and the volume V = Lx Ly Lz of the box, uniform in A (or V, or single lengths, as they are
    coupled). Trials change the coupled lengths by one factor, and the box contents with it: free beads and vertices
    each, filaments, rods and bodies as wholes, with their centres of mass, in-triangle points with their triangles. See
    :doc:`/theory/boxes`.

    Raises
    ------
    ParameterError
        A number outside its domain, or another coupling; and (by a Context) a system that is not periodic in these
        directions, or in all where there is a pressure.
    TopologyError
        (By a Context) fixed beads, unless these scale; constraints, or a surface, that change where their beads move
        alike along directions that change.

    Notes
    -----
    ``counts`` has trials and those accepted; ``state.box`` is the box of a state. A box smaller than twice the range of
    a force in it is not accepted. The energy that a trial changes is counted as heat, the work of tension and pressure
    included. Momenta of beads stay as they are; those of in-triangle points relative to their triangles, so that their
    kinetic energy changes. n points in a membrane of the area A weigh it with Aⁿ.

    References
    ----------
    W. W. Wood, J. Chem. Phys. 48, 415 (1968), I. R. McDonald, Mol. Phys. 23, 41 (1972): constant pressure by trials.
    O. Farago, P. Pincus, J. Chem. Phys. 120, 2934 (2004): frame tension of membranes.
    """

    kinds: ClassVar[tuple[str, ...]] = ("resize",)
    tension: Given[float | None, float] = number(
        "pN/nm", "τ, the frame tension, a force per length of the frame. Negative ones compress.",
        default=None, kw_only=True, optional=False,
    )  # fmt: skip
    pressure: Given[float | None, float] = number(
        "pN/nm²", "P, of a box that is periodic in all directions. 1 bar is 1e-4 pN/nm². Without either, both are 0.",
        default=None, kw_only=True, optional=False,
    )  # fmt: skip
    rate: float = number(
        "1/s", "Of trials. Each costs an evaluation of the whole energy; one for 10 to 100 timesteps is usual.",
        kw_only=True, at_least=0.0,
    )  # fmt: skip
    step: float = number(
        "", "The largest change of a trial, as a share of the area (volume, length) at the start. Take one that "
        "accepts a third to a half.", default=0.01, kw_only=True, above=0.0, below=1.0,
    )  # fmt: skip
    coupling: Given[_Coupling | None, str] = argument(
        '"area", "isotropic", "semi-isotropic", "anisotropic", "x", "y" or "z", optional', '"area": Lx and Ly by one '
        'factor, Lz not; the default with a tension. "isotropic": all three by one factor; the default with a pressure '
        'alone. "semi-isotropic": Lx and Ly by one factor, and Lz by another. "anisotropic": each by its own. "x", '
        '"y", "z": that length alone.',
        default=None, kw_only=True, attribute="The directions that change by one factor.",
    )  # fmt: skip
    fixed_beads: FixedBeads = argument(
        '"refuse" or "scale"', "Refuse fixed beads, or let them move with the box as parameters, which weigh nothing; "
        "what is joined to them goes the same way.", default="refuse", kw_only=True,
        attribute="What becomes of fixed beads.",
    )  # fmt: skip

    def _take(self, given: dict[str, Any]) -> None:
        super()._take(given)
        coupling, tension, pressure = (given[name] for name in ("coupling", "tension", "pressure"))
        if coupling is None:
            coupling = "isotropic" if not tension and pressure is not None else "area"
        if not isinstance(coupling, str) or coupling not in _MOVES:
            known = ", ".join(map(repr, _MOVES))
            raise ParameterError(f"{self.name}: coupling = {coupling!r} but must be one of {known}")
        self._coupling = coupling
        self._fixed_beads = fixed_beads_given(self.name, given["fixed_beads"])
        given["tension"] = 0.0 if tension is None else tension
        given["pressure"] = 0.0 if pressure is None else pressure

    def _arguments_now(self) -> dict[str, Any]:
        # Not as given: the default follows from the other arguments, which present numbers do not show.
        return super()._arguments_now() | {"coupling": self._coupling}

    @property
    def directions(self) -> tuple[bool, bool, bool]:
        """Directions, x, y and z, in which the length of the box changes."""
        x, y, z = (any(move >> c & 1 for move in _MOVES[self._coupling]) for c in range(3))
        return x, y, z

    def changed_box(self, box: np.ndarray) -> np.ndarray:
        return np.where(self.directions, _ANOTHER * box, box)

    def bind(self, layout: "Layout", kT: float) -> "JumpOperation":
        units = units_of(self.name, layout, np.array(self.directions), self._fixed_beads)
        sizes, n_fixed = np.concatenate([np.empty((0, 2), int), *(
            np.tile([one.places.shape[1], one.n_fixed], (len(one.places), 1)) for one in units
        )]).T  # fmt: skip
        starts = np.append(0, np.cumsum(sizes)).astype(np.int32)
        beads = np.concatenate([np.empty(0, np.int32), *(one.places.ravel() for one in units)]).astype(np.int32)
        of = layout.n, layout.momenta_sizes, layout.least_width
        operation = BoxAreaOperation(self.name, kT, self.every, starts, beads, n_fixed.astype(np.int32), *of)
        operation.start = layout.box.copy()
        self.update(operation, kT)
        return operation

    def update(self, operation: Any, kT: float) -> None:
        moves = _MOVES[self._coupling]
        tension, pressure, rate, step = self._named("tension", "pressure", "rate", "step")
        for c, changes in enumerate(self.directions):
            if (changes or pressure != 0.0) and not operation.start[c] > 0.0:
                why = "under pressure" if pressure != 0.0 else f"with coupling={self._coupling!r}"
                raise ParameterError(
                    f"{self.name}: the box must be periodic along {'xyz'[c]} {why}: System(topology, box=(Lx, Ly, Lz))"
                )
        measures = [np.prod([operation.start[c] for c in range(3) if move >> c & 1]) for move in moves]
        operation.set(kT, rate, tension, pressure, moves, [step * measure for measure in measures])

    def log_weight(self, operation: "JumpOperation", state: "State", kT: float) -> float:
        lengths = box_lengths(state.box)
        return float(self.tension * lengths[0] * lengths[1] - self.pressure * lengths.prod()) / kT

    def weigh(self, operation: Any, schedule: "Schedule") -> None:
        operation.take_forces(schedule.bound, list(schedule.force_sums.values()))
