"""Forces from outside: each bead on its own."""

from typing import Any

import numpy as np

from medyanpy._kernels.external import Field
from medyanpy._kernels.sites import SiteTable
from medyanpy.errors import ParameterError, TopologyError
from medyanpy.forces._base import Force
from medyanpy.handles import bead_numbers, handles_in
from medyanpy.sites import Sites
from medyanpy.validation import array, dimensions, vectors

__all__ = ["HarmonicTrap", "UniformField"]

_NOTHING = np.zeros((1, 3))


class _SingleBeadForce(Force):
    """An energy of single beads, quadratic and linear in their positions."""

    def __init__(self, beads: Any, *, name: str | None, group: int, **numbers: Any) -> None:
        super().__init__(name=name, group=group)
        # Sites, or bead numbers in the order given: rows of numbers that differ from bead to bead are in it.
        if isinstance(beads, Sites):
            self._beads, self._handles = beads, beads.handles
        else:
            self._handles = handles_in(beads)
            given = bead_numbers(beads)
            self._beads = array(f"{self.name}: beads", given, (None,), dtype=np.int64, error=TopologyError).copy()
            self._beads.flags.writeable = False
        self._declare(**numbers)

    @property
    def handles(self):
        return self._handles

    @property
    def beads(self) -> "np.ndarray | Sites":
        """(n,) bead numbers, in the order of rows of numbers; the sites, where it acts on such."""
        return self._beads

    def _bind(self, layout, stiffness: np.ndarray, center: np.ndarray, force: np.ndarray) -> Field:
        beads = self._beads
        if isinstance(beads, Sites):
            beads.check(f"{self.name}: beads", layout.topology)
            table, place = beads.bind(layout), np.arange(len(beads))
            on_points = beads.on_points(layout)
        else:
            layout.topology.bead_indices(f"{self.name}: beads", beads)
            table, place = SiteTable(), layout.internal(beads)
            on_points = bool((place >= layout.n_cartesian).any())
        order = np.argsort(place)
        rows = [
            np.ascontiguousarray(np.atleast_2d(v)[order] if v.ndim == 2 and len(v) == len(order) else np.atleast_2d(v))
            for v in (center, force)
        ]
        operation = Field(self.name, table, place[order].astype(np.int32), stiffness, *rows)
        operation.acts_on_points = on_points
        return operation


class UniformField(_SingleBeadForce):
    r"""A constant force on each of some beads.

    .. math:: U = -\sum_i F_i \cdot x_i

    Parameters
    ----------
    beads : handle, list of handles, (n,) int, or Sites
        Of any kind.
    force : (3,) or (n, 3) float, pN
        F: the same for all, or one row for each bead, in the order in which the beads are given.
    name, group
        See `Force`.

    Raises
    ------
    ParameterError
        A force of another shape or not finite.
    TopologyError
        A handle of another topology, beads that do not exist or are named twice.

    Notes
    -----
    The energy has no bound: without friction or walls beads accelerate for ever.

    Examples
    --------
    >>> import medyanpy as mp
    >>> topology = mp.Topology()
    >>> beads = topology.add_beads([[0.0, 0, 1], [0, 0, 2]], mass=1.0)
    >>> system = mp.System(topology)
    >>> field = system.add_force(mp.forces.UniformField(beads, [0.0, 0.0, -0.5]))
    >>> mp.Context(system, mp.VerletIntegrator(0.01)).get_state(energy=True).potential_energy
    1.5
    """

    changeable = ("force",)

    def __init__(self, beads: Any, force: Any, *, name: str | None = None, group: int = 0) -> None:
        super().__init__(beads, name=name, group=group, force=force)

    def _checked(self, *, force: Any) -> dict[str, Any]:
        return {"force": vectors(f"{self.name}: force", force, len(self._beads))}

    def bind(self, layout):
        return self._bind(layout, np.zeros(3), _NOTHING, self._numbers["force"])


class HarmonicTrap(_SingleBeadForce):
    r"""A spring from each of some beads to a place that does not move.

    .. math:: U = \sum_i \sum_{c = x, y, z} \tfrac12 k_c (x_{ic} - o_{ic})^2

    Parameters
    ----------
    beads : handle, list of handles, (n,) int, or Sites
        Of any kind.
    stiffness : float or (3,) float, pN/nm, >= 0
        k, the same in all directions or one along each axis: 0 along x and y makes a trap in z alone.
    center : (3,) or (n, 3) float, nm
        o: the same for all, or one row for each bead, in the order in which the beads are given.
    name, group
        See `Force`.

    Raises
    ------
    ParameterError
        A number of another shape or outside its domain.
    TopologyError
        A handle of another topology, beads that do not exist or are named twice.

    Examples
    --------
    >>> import medyanpy as mp
    >>> topology = mp.Topology()
    >>> bead = topology.add_beads([[3.0, 0, 4]], mass=1.0)
    >>> system = mp.System(topology)
    >>> trap = system.add_force(mp.forces.HarmonicTrap(bead, stiffness=2.0, center=[0.0, 0.0, 0.0]))
    >>> mp.Context(system, mp.VerletIntegrator(0.01)).get_state(energy=True).potential_energy
    25.0
    """

    changeable = ("stiffness", "center")

    def __init__(self, beads: Any, stiffness: Any, center: Any, *, name: str | None = None, group: int = 0) -> None:
        super().__init__(beads, name=name, group=group, stiffness=stiffness, center=center)

    def _checked(self, *, stiffness: Any, center: Any) -> dict[str, Any]:
        what = f"{self.name}: stiffness"
        one = dimensions(what, stiffness, "() or (3,)") == 0
        k = array(what, np.broadcast_to(stiffness, (3,)) if one else stiffness, (3,)).copy()
        if (k < 0.0).any():
            c = int(np.argmax(k < 0.0))
            raise ParameterError(f"{what}[{c}] = {k[c]} but must be >= 0")
        k.flags.writeable = False
        return {"stiffness": k, "center": vectors(f"{self.name}: center", center, len(self._beads))}

    def bind(self, layout):
        return self._bind(layout, self._numbers["stiffness"], self._numbers["center"], _NOTHING)
