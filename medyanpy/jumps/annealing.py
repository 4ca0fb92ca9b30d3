"""Filaments that join end to end, and part again."""

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from medyanpy._kernels.jumps.annealing import Annealing as Kernel
from medyanpy._kernels.jumps.grounds import InSpace
from medyanpy.beads import GrowingFilaments
from medyanpy.errors import TopologyError
from medyanpy.jumps._base import Jump, argument, declared, number
from medyanpy.jumps._filament_ends import (
    TurnoverJump,
    TwoRates,
    bound_ends,
    expect_metric,
    follow_places,
    joint_of,
    longest_filament,
    longest_link,
)  # fmt: skip
from medyanpy.jumps.ageing import Ageing
from medyanpy.jumps.nucleation import Nucleation
from medyanpy.jumps.polymerization import Polymerization, ends_that_grow, ways_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from medyanpy.core.layout import Layout
    from medyanpy.engine.schedule import Schedule
    from medyanpy.forces import Force
    from medyanpy.topology import Topology

__all__ = ["Annealing"]

# Logarithms of constants, which users give with some digits, may differ by so much in balance.
_SAME = 1e-9


@declared
class Annealing(TwoRates, TurnoverJump):
    r"""Filaments that join end to end, the plus end of one with the minus end of the other, and part again.

    With the dissociation constant :math:`K = k_\mathrm{off}/k_\mathrm{on}` free filaments that do not see each other
    have the weight K V each in a volume V, whatever their lengths, their stiffness and where their nodes are.

    A filament parts at a node that is not an end, at `off_rate` for each subunit that is nearest to it. One of the two,
    with fewer links, moves by a vector that is uniform in a ball of the radius `reach`. Two free ends within reach join
    at the rate which is the reverse, by the law of bending of their joint: straight on where filaments are stiff. Both
    are multiplied by :math:`\min\{1, e^{-\Delta U/kT}\}`, with the energy that all other forces gain.

    Parameters
    ----------
    filaments : GrowingFilaments
        Added with ``rise=``, ``capacity_links=`` and ``capacity_filaments=``.

    Raises
    ------
    TopologyError
        Not the handle of filaments with subunits and room for others, or with fixed nodes.
    ParameterError
        A number outside its domain, or not two of the rates and their constant. No `FixmanPotential` on the filaments.
        A lattice without room for the longest filament.

    Notes
    -----
    Filaments that would have more links than ``capacity_links=`` do not join. Beside `Polymerization` only full links
    may be on both sides of a joint, so that ends join while their link is full. Over the subunits that a link at an end
    may have, the mean rate is `on_rate`. Filaments that do not grow part where links meet, N times as fast for N
    subunits in a link, and join N times as fast.

    The part at the minus end keeps its ids, rows and numbers of places, and those of the other continue them. So both
    join where the places of all lattices are in step, nothing is held at the first place of the other, and no link
    that may not have both ends on one filament holds both.

    Velocities of both are drawn from Maxwell's distribution, which is heat. It is balanced, and driven where a rate is
    0. It is driven, too, where `Nucleation` beside growth of one K_D gives free filaments another weight.

    References
    ----------
    D. Sept, J. Xu, T. D. Pollard, J. A. McCammon, Biophys. J. 77, 2911 (1999): annealing of actin and its lengths.

    Examples
    --------
    >>> import medyanpy as mp
    >>> topology = mp.Topology()
    >>> nodes = [[[0.0, 0, 0], [27.0, 0, 0], [54.0, 0, 0]]]
    >>> room = {"rise": 2.7, "capacity_links": 8, "capacity_filaments": 4}
    >>> actin = topology.add_filaments(nodes, 4e-12, 1e-6, **room)
    >>> system = mp.System(topology)
    >>> fixman = system.add_force(mp.forces.FixmanPotential(actin, temperature=300.0))
    >>> rates = {"on_rate": 10.0 * mp.units.per_micromolar_second, "off_rate": 1e-7}
    >>> ends = system.add_jump(mp.jumps.Annealing(actin, reach=5.0, **rates))
    """

    kinds: ClassVar[tuple[str, ...]] = ("part", "join")
    joins = True
    filaments: GrowingFilaments = argument(attribute="Filaments that join and part.")
    on_rate: float | None = number(
        "nm³/s", "Of a plus end and a minus end, per concentration: ``mp.units.per_micromolar_second`` is 1.66e6.",
        default=None, at_least=0.0, kw_only=True,
    )  # fmt: skip
    off_rate: float | None = number("1/s", "Of each subunit.", default=None, at_least=0.0, kw_only=True)
    dissociation_constant: float | None = number(
        "1/nm³", "K, in place of one of the two rates.", default=None, above=0.0, kw_only=True
    )
    reach: float = number("nm", "How near two ends must be to join.", above=0.0, kw_only=True, fixed=True)

    def _take(self, given: dict[str, Any]) -> None:
        super()._take(given)
        self._reach: float = given["reach"]
        #: Jumps beside it, of growth and of seeds.
        self._mates: tuple[list[Polymerization], list[Nucleation]] = ([], [])

    @property
    def driven(self) -> bool:  # type: ignore[override]
        """True if a rate is 0, so that there is no way back, or where free filaments have another weight by other jumps
        of its system."""
        return 0.0 in self.rates or self._excess() != 0.0

    def check(self, topology: "Topology", forces: "tuple[Force, ...]") -> None:
        super().check(topology, forces)
        handle = self._filaments
        if handle.kind.fixed_beads.any():
            node = int(handle.beads[int(np.argmax(handle.kind.fixed_beads))])
            raise TopologyError(
                f"{self.name}: {handle.kind.describe(node)} is fixed, but filaments that join move as a whole"
            )

    def check_forces(self, forces: "tuple[Force, ...]") -> None:
        expect_metric(self.name, self._filaments, forces)

    def beside(self, jumps: "Sequence[Jump]") -> None:
        own = [jump for jump in jumps if jump.handles[:1] == (self._filaments,)]
        growing = [jump for jump in own if isinstance(jump, Polymerization)]
        self._mates = growing, [jump for jump in own if isinstance(jump, Nucleation)]
        super().beside(jumps)

    def bind(self, layout: "Layout", kT: float) -> Kernel:
        handle = self._filaments
        layout.expect_width(self.name, self._reach)
        places = layout.block_of(handle)
        ground = InSpace(places.start, places.stop - places.start, 2 * handle.kind.n_room)
        operation = Kernel(
            self.name, self.every, bound_ends(handle, "both", layout), handle.rise, layout.n, layout.momenta_sizes,
            ground,
        )  # fmt: skip
        self.update(operation, kT)
        return operation

    def meet(self, operation: Any, others: Any) -> None:
        handle = self._filaments
        beside = [jump for jump, _ in others if jump.handles[:1] == (handle,)]
        growing = self._mates[0]
        follow_places(self, handle, operation, others, longest_filament(handle, beside))
        operation.ageing = next((own for jump, own in others if jump in beside and isinstance(jump, Ageing)), None)
        operation.most = longest_link(handle, beside)
        if growing:
            least, last = growing[0].subunits
            ends = ends_that_grow(growing)
            operation.links_are(last - least + 1, least, last, "plus" in ends, "minus" in ends, ways_of(growing))
        self.update(operation, operation.temperature)

    def _excess(self) -> float:
        """Return ln of the weight of a free filament that seeds and growth in balance give, over its own: what drives
        two ends to join. 0 where these give none."""
        growing, seeds = self._mates
        constants = [on / off for on, off in (jump.rates for jump in growing) if on > 0.0 and off > 0.0]
        pairs = [jump for jump in seeds if jump.rate > 0.0 and jump.dissolution_rate > 0.0]
        if 0.0 in self.rates or not constants or not pairs or max(constants) > min(constants) * (1.0 + _SAME):
            return 0.0
        on, off = self.rates
        own = np.log(pairs[0].rate / pairs[0].dissolution_rate) - pairs[0].n * np.log(constants[0])
        excess = float(own + np.log(on / off))
        return excess if abs(excess) > _SAME else 0.0

    def update(self, operation: Any, kT: float) -> None:
        on, off = self.rates
        operation.set_rates(kT, on, off, self._reach, np.inf if 0.0 in (on, off) else self._excess() * kT)

    def weigh(self, operation: Any, schedule: "Schedule") -> None:
        super().weigh(operation, schedule)
        operation.bend(*joint_of(self._filaments, schedule.system.forces))

    def _trials(self, operation: Any, schedule: "Schedule") -> float:
        on, off = self.rates
        ball = 4.0 / 3.0 * np.pi * self._reach**3
        return off * float(self._filaments.kind.subunits.sum()) + on * len(self._filaments.starts) / ball
