"""Proteins that cap the ends of filaments."""

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from medyanpy._kernels.jumps.capping import Capping as Kernel
from medyanpy.jumps._base import declared
from medyanpy.jumps._filament_ends import EndJump

if TYPE_CHECKING:
    from medyanpy.core.layout import Layout
    from medyanpy.state import State

__all__ = ["Capping"]


@declared
class Capping(EndJump):
    r"""Capping of the ends of filaments by proteins of a pool: a capped end neither grows nor shrinks.

    A free end is capped at the rate :math:`k_\mathrm{on} C`, with the concentration C of the protein, and a capped one
    is freed at :math:`k_\mathrm{off}`. Caps have no energy and no size. Alone they hold the share
    :math:`C/(C + K_D)` of the ends, with :math:`K_D = k_\mathrm{off}/k_\mathrm{on}`, also while ends grow.

    Parameters
    ----------
    filaments : GrowingFilaments
        Added with ``rise=``.
    species : species of a pool
        The protein: ``pool["CapZ"]``, of a `Pool` or of `Compartments`, counted or a reservoir.

    Raises
    ------
    TopologyError
        Not the handle of filaments with subunits.
    ParameterError
        A number outside its domain. Other than two of on_rate, off_rate and dissociation_constant. What is not a
        species of a pool.

    Notes
    -----
    The plus end is that of the last node. An end has one cap at most, also of several jumps: each frees its own.
    ``capping.caps(state)`` tells which ends are capped; they are a column of the state, ``"caps"``, which checkpoints
    and trajectories hold. In `Compartments` caps come from the cell where the end is.

    The jump is balanced, and driven only where one of the rates is 0: its events have no energy.

    References
    ----------
    T. D. Pollard, J. A. Cooper, Science 326, 1208 (2009): capping protein binds barbed ends at 3.5 /(µM s) and leaves
    them at 4e-4 /s.

    Examples
    --------
    >>> import medyanpy as mp
    >>> topology = mp.Topology()
    >>> actin = topology.add_filaments([[[0.0, 0, 0], [27.0, 0, 0], [54.0, 0, 0]]], 4e-12, 1e-6, rise=2.7)
    >>> system = mp.System(topology)
    >>> pool = system.add_pool(mp.Pool(volume=1e9, counts={"CapZ": 60}))
    >>> rates = {"on_rate": 3.5 * mp.units.per_micromolar_second, "off_rate": 4e-4}
    >>> capping = system.add_jump(mp.jumps.Capping(actin, pool["CapZ"], **rates))
    >>> context = mp.Context(system, mp.BAGOGABIntegrator(1e-7, temperature=300.0))
    >>> capping.caps(context.get_state(positions=True))
    array([[0, 0]])
    """

    kinds: ClassVar[tuple[str, ...]] = ("cap", "uncap")

    @property
    def driven(self) -> bool:  # type: ignore[override]
        """True if a rate is 0, so that there is no way back."""
        return 0.0 in self.rates

    def caps(self, state: "State") -> np.ndarray:
        """Return which ends are capped in a state, (f, 2) int: the minus end and the plus end of each filament.

        0 is an end that grows, -1 that of no filament where there is room for one. Other numbers are those of the
        `jumps.Capping` that has capped it, counted from 1 among those of these filaments in their system, and behind
        them of the `jumps.Branching` whose branch it is.
        """
        return self._filaments.kind.caps_of(state)

    def bind(self, layout: "Layout", kT: float) -> Kernel:
        ends, species = self.bind_ends(layout), self._species
        operation = Kernel(self.name, self.every, ends, layout.pools[species.pool], species.number)
        self.update(operation, kT)
        return operation

    def meet(self, operation: Any, others: Any) -> None:
        own = [jump for jump, _ in others if isinstance(jump, Capping) and jump.filaments is self._filaments]
        operation.number = 1 + next(i for i, jump in enumerate(own) if jump is self)

    def update(self, operation: Any, kT: float) -> None:
        operation.set(kT, self.driven, *self.rates)

    def log_weight(self, operation: Any, state: "State", kT: float) -> float | None:
        if self.driven:
            return None
        on, off = self.rates
        capped = np.count_nonzero(self.caps(state) == operation.number)
        return float(capped * np.log(on / off))
