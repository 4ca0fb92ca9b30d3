"""Filaments that are cut in two."""

from typing import TYPE_CHECKING, Any, ClassVar

from medyanpy._kernels.jumps.severing import Severing as Kernel
from medyanpy.beads import GrowingFilaments
from medyanpy.errors import ParameterError
from medyanpy.jumps._base import argument, declared, number
from medyanpy.jumps._filament_ends import TurnoverJump, bound_ends, follow_places, joint_of, longest_link
from medyanpy.jumps.ageing import Ageing

if TYPE_CHECKING:
    from medyanpy.core.layout import Layout
    from medyanpy.engine.schedule import Schedule
    from medyanpy.forces import Force

__all__ = ["Severing"]


@declared
class Severing(TurnoverJump):
    r"""Cuts of filaments in two, at a rate for each subunit, or for each in one state of `jumps.Ageing`.

    A filament parts at the node that is nearest to the subunit and not an end. The part behind it, towards the plus
    end, becomes a filament of its own, with its ids, caps and the states of its subunits. No subunit is lost.

    With `bending_share` σ a cut at a node of bending energy E is :math:`e^{\sigma E/kT}` times as fast, up to
    `most_faster`.

    Parameters
    ----------
    filaments : GrowingFilaments
        Added with ``rise=``, ``capacity_links=`` and ``capacity_filaments=``.

    Raises
    ------
    TopologyError
        Not the handle of filaments with subunits and room for others.
    ParameterError
        A number outside its domain. A state that no `jumps.Ageing` of these filaments has. A share of bending without
        `FilamentBending`.

    Notes
    -----
    Filaments of one link are not cut, and fragments have whole links. Where they part, a node is created half a rise
    beside the present one. Velocities of both fragments are drawn from Maxwell's distribution. It is driven:
    ``chemical_energy`` is inf, and changes of the energy are chemical work. `Annealing` parts filaments in balance.

    A run ends with an error where there is no room for another filament.

    References
    ----------
    E. M. De La Cruz, Biophys. Rev. 1, 51 (2009): cofilin cuts aged actin. E. M. De La Cruz, J.-L. Martiel, L.
    Blanchoin, Biophys. J. 108, 2270 (2015): bending does.

    Examples
    --------
    >>> import medyanpy as mp
    >>> topology = mp.Topology()
    >>> nodes = [[[0.0, 0, 0], [27.0, 0, 0], [54.0, 0, 0]]]
    >>> room = {"rise": 2.7, "capacity_links": 8, "capacity_filaments": 4}
    >>> actin = topology.add_filaments(nodes, 4e-12, 1e-6, **room)
    >>> system = mp.System(topology)
    >>> cuts = system.add_jump(mp.jumps.Severing(actin, rate_per_subunit=2e-3))
    >>> context = mp.Context(system, mp.BAGOGABIntegrator(1e-7, temperature=300.0))
    >>> actin.subunits(context.get_state(positions=True))
    array([20,  0,  0,  0])
    """

    kinds: ClassVar[tuple[str, ...]] = ("cut",)
    driven = True
    filaments: GrowingFilaments = argument(attribute="Filaments that are cut.")
    rate_per_subunit: float = number("1/s", "Of each subunit that can be cut.", at_least=0.0)
    bending_share: float = number(
        "", "σ: share of the energy of bending at a node that speeds cuts there; it needs `FilamentBending`.",
        default=0.0, at_least=0.0, kw_only=True, attribute="Share of the energy of bending that speeds cuts.",
    )  # fmt: skip
    most_faster: float = number(
        "", "By how many times bending may speed cuts at most. Attempts are as many times more frequent.",
        default=1000.0, at_least=1.0, at_most=1e9, kw_only=True,
        attribute="By how many times bending may speed cuts at most.",
    )  # fmt: skip
    of: str | None = argument(
        "str, optional", "State of `jumps.Ageing` that subunits must have; any where none is given.", default=None,
        kw_only=True, attribute="State that subunits must have.",
    )  # fmt: skip

    def _take(self, given: dict[str, Any]) -> None:
        super()._take(given)
        self._of = given["of"]

    def check_forces(self, forces: "tuple[Force, ...]") -> None:
        if self.bending_share > 0.0 and not any(joint_of(self._filaments, forces)):
            raise ParameterError(
                f"{self.name}: bending_share = {self.bending_share:g}, but no FilamentBending acts on "
                f"{self._filaments!r}"
            )

    def bind(self, layout: "Layout", kT: float) -> Kernel:
        handle = self._filaments
        ends = bound_ends(handle, "plus", layout)
        operation = Kernel(self.name, self.every, ends, handle.rise, layout.n, layout.momenta_sizes)
        self.update(operation, kT)
        return operation

    def meet(self, operation: Any, others: Any) -> None:
        follow_places(self, self._filaments, operation, others, 0)
        beside = [(jump, own) for jump, own in others if jump.handles == (self._filaments,)]
        ageing = next(((jump, own) for jump, own in beside if isinstance(jump, Ageing)), None)
        if ageing is None and self._of is not None:
            raise ParameterError(
                f"{self.name}: of = {self._of!r} is a state of subunits: add a jumps.Ageing of {self._filaments!r}"
            )
        operation.ageing = None if ageing is None else ageing[1]
        operation.state = -1 if ageing is None or self._of is None else ageing[0].state_of("of", self._of)
        operation.most = longest_link(self._filaments, [jump for jump, _ in beside])

    def update(self, operation: Any, kT: float) -> None:
        operation.set(kT, self.rate_per_subunit, self.bending_share, self.most_faster)

    def _trials(self, operation: Any, schedule: "Schedule") -> float:
        return self.rate_per_subunit * float(self._filaments.kind.subunits.sum())

    def weigh(self, operation: Any, schedule: "Schedule") -> None:
        super().weigh(operation, schedule)
        operation.bend(*joint_of(self._filaments, schedule.system.forces))
