"""Branches: filaments that begin at places of others."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from medyanpy._kernels.forces.radial import Radial
from medyanpy._kernels.jumps.branching import Branching as Kernel
from medyanpy._kernels.jumps.link_binding import Joined
from medyanpy._kernels.selected import angles as angle_kernels
from medyanpy._kernels.selected import bonds
from medyanpy.beads import GrowingFilaments
from medyanpy.core import growing_sites
from medyanpy.core.handles import Handle
from medyanpy.core.sites import Sites
from medyanpy.core.species import OfSpecies
from medyanpy.errors import ParameterError, TopologyError
from medyanpy.forces.angles import DirectionLinks
from medyanpy.forces.links import Links
from medyanpy.jumps._base import argument, declared, number
from medyanpy.jumps._filament_ends import bound_ends, most_at_start
from medyanpy.jumps._seeds import SeedJump
from medyanpy.jumps.capping import Capping
from medyanpy.pools import Species, pool_species

if TYPE_CHECKING:
    from medyanpy._kernels.core.program import Operation
    from medyanpy._kernels.jumps.jump import JumpOperation
    from medyanpy.core.layout import Layout
    from medyanpy.engine.schedule import Schedule
    from medyanpy.forces import Force
    from medyanpy.topology import Topology

__all__ = ["Branching"]


@declared
class Branching(SeedJump):
    r"""Branches of filaments: seeds that begin at places of other filaments, and are held there at an angle.

    A molecule, such as Arp2/3, and n subunits of a pool become a branch at a free place at the rate :math:`k\,C_m C^n`,
    and a branch that is a seed dissolves at :math:`k_\mathrm{off}`. Both are multiplied by
    :math:`\min\{1, e^{-\Delta U/kT}\}` with the energy ΔU that all other forces gain. A spring of `links` holds the
    first node of the branch at the place, and a term of `angles` its first link at an angle to the link of the mother.
    Seeds begin where these two put them: the distance has the density :math:`r^2 e^{-U/kT}`, the angle
    :math:`\sin\theta\, e^{-U/kT}`, and the turn about the mother is uniform. M branches of P places, which others do
    not see, have the weight :math:`(k\,C_m C^n/k_\mathrm{off})^M P!/(M!\,(P-M)!)`.

    Parameters
    ----------
    links : Links
        The springs, of one stiffness > 0 and one length, without terms of its own. It must be in the system.
    angles : DirectionLinks
        The angles, of one stiffness and one angle, without terms of its own. It must be in the system.
    mothers : Sites
        Places on links where branches may begin, one at each: ``filaments.lattice(spacing=...)``, or
        ``filaments.sites``. Filaments may grow, and be `daughters`, whose branches then have branches.
    daughters : GrowingFilaments
        Added with ``rise=``, ``capacity_links=`` and ``capacity_filaments=``.
    molecule : species of a pool
        What holds a branch: ``pool["Arp2/3"]``.
    species : species of a pool
        What branches are made of, in the same pool.
    near : handle, or beads of a species, optional
        Beads that activate: rates there and back are multiplied by how many of them are within reach of the place.
        ``points.of("NPF")``. Where none are given, all places are active.

    Raises
    ------
    TopologyError
        Not the handle of filaments with subunits and room for others. Places that are not on links. On filaments that
        grow, sites that are not those of a lattice, or of one with ``at_end="unbind"``.
    ParameterError
        A number outside its domain, what is not a species of one pool, or one species twice. Forces with terms of
        their own, of different numbers, ropes, or which another jump uses. One of near and reach without the other.
        As of `Nucleation`: more subunits than `Polymerization` lets a link have, or no `FixmanPotential`.

    Notes
    -----
    Of a pool that counts, :math:`C_m C^n` is :math:`N_m N!/(N-n)!/V^{n+1}`: molecules, free or in branches, are
    conserved. The minus end of a branch is capped, as by a number of its own in `Capping.caps`; the plus end grows by
    `Polymerization`, of which ``end="plus"`` keeps the law of lengths exact (:doc:`/theory/growth`). A branch dissolves
    while it has exactly n subunits, one link, and no cap at its plus end.

    At `release_rate` a branch of any length lets go: its molecule goes back to the pool, its filament stays, free, with
    a minus end that is not capped. That is not undone. So with a `release_rate`, or where one of the other rates is
    0, the jump is driven; else it is balanced. Beads that activate are catalysts, and do not shift the balance.

    ``state.links(links)`` has the branches, and ``state.jumps[name]["links"]`` the place of each, and its first node
    among all rows of the daughters. A run ends with an error where there is no room for another filament. Attempts cost
    0.1 µs each, and come as if every place were near every bead of `near`. A letter in which these would be more than 4
    for each place and bead counts the beads near each place first, and takes as long as it has places and beads.

    References
    ----------
    R. D. Mullins, J. A. Heuser, T. D. Pollard, Proc. Natl. Acad. Sci. USA 95, 6181 (1998): 70°, and caps. K. Popov,
    J. Komianos, G. A. Papoian, PLoS Comput. Biol. 12, e1004877 (2016): MEDYAN, the energy of the angle.

    Examples
    --------
    >>> import medyanpy as mp
    >>> topology = mp.Topology()
    >>> mother = topology.add_filaments([[[0.0, 0, 0], [54.0, 0, 0], [108.0, 0, 0]]], 4e-12, 1e-6)
    >>> room = {"rise": 2.7, "capacity_links": 8, "capacity_filaments": 40}
    >>> branches = topology.add_filaments([], 4e-12, 1e-6, **room)
    >>> system = mp.System(topology)
    >>> fixman = system.add_force(mp.forces.FixmanPotential(branches, temperature=300.0))
    >>> arp = mp.presets.arp23()
    >>> springs = system.add_force(mp.forces.Links([], [], **arp.links))
    >>> angles = system.add_force(mp.forces.DirectionLinks([], [], [], [], **arp.angles))
    >>> pool = system.add_pool(mp.Pool(volume=1e9, counts={"G-actin": 6022, "Arp2/3": 60}))
    >>> who = mother.lattice(spacing=2.7), branches, pool["Arp2/3"], pool["G-actin"]
    >>> _ = system.add_jump(mp.jumps.Branching(springs, angles, *who, n=5, rate=1e30, dissolution_rate=1.0))
    """

    kinds: ClassVar[tuple[str, ...]] = ("branch", "dissolution", "release")
    _argument: ClassVar[str] = "daughters"
    links: Links = argument(attribute="The springs that hold branches.")
    angles: DirectionLinks = argument(attribute="The angles at which they are held.")
    mothers: Sites = argument(attribute="Places where branches may begin.")
    daughters: GrowingFilaments = argument(attribute="Filaments that begin as branches.")
    molecule: Species = argument(attribute="What holds a branch.")
    species: Species = argument(attribute="What branches are made of.")
    n: int = argument("int, >= 1", "Subunits of a branch when it begins.", attribute="Subunits of a seed.")
    rate: float = number("nm³⁽ⁿ⁺¹⁾/s", "k: branches for each place and time, per concentrations.", at_least=0.0,
                         kw_only=True)  # fmt: skip
    dissolution_rate: float = number("1/s", "Of a branch of n subunits.", default=0.0, at_least=0.0, kw_only=True)
    release_rate: float = number("1/s", "At which a branch lets go.", default=0.0, at_least=0.0, kw_only=True)
    near: Handle | OfSpecies | None = argument(default=None, kw_only=True, attribute="Beads that activate.")
    reach: float | None = number("nm", "How near such a bead must be.", default=None, above=0.0, kw_only=True,
                                 fixed=True)  # fmt: skip

    def _take(self, given: dict[str, Any]) -> None:
        super()._take(given)
        for name, kind in (("links", Links), ("angles", DirectionLinks)):
            if not isinstance(given[name], kind):
                raise ParameterError(f"{self.name}: {name} must be a {kind.__name__} force, not {given[name]!r}")
        self._links: Links = given["links"]
        self._angles: DirectionLinks = given["angles"]
        self._take_seeds("species", given["species"], given["n"])
        self._molecule = pool_species(f"{self.name}: molecule must be one", given["molecule"], "Arp2/3")
        for wrong, why in (
            (self._molecule.pool is not self._species.pool, "must be of one pool"),
            (self._molecule == self._species, "must be two species"),
        ):
            if wrong:
                raise ParameterError(f"{self.name}: molecule {self._molecule!r} and species {self._species!r} {why}")
        self._mothers = self._places_on_links(given["mothers"])
        self._nodes_counted = growing_sites.counted_from(self._mothers)
        self._take_near(given["near"], given["reach"])

    def _places_on_links(self, given: Any) -> Sites:
        """Return places on links: two nodes each."""
        if not isinstance(given, Sites) or given.arms is not None or (np.diff(given.start) != 2).any():
            raise TopologyError(
                f"{self.name}: mothers must be places on links, as filaments.lattice(spacing=...) or "
                f"filaments.sites(...) gives them, not {given!r}"
            )
        if given.growth is None:
            grow = [handle.name for handle in given.handles if isinstance(handle, GrowingFilaments)]
            if grow:
                raise TopologyError(
                    f"{self.name}: mothers are places on links of {grow[0]!r}, which grow, and do not follow them: "
                    f"take places of its lattice, {grow[0]}.lattice(spacing=...)"
                )
        elif given.growth[:, growing_sites.UNBINDS].any():
            raise TopologyError(
                f'{self.name}: mothers have at_end="unbind", but what an end leaves may not let a branch go: give the '
                'lattice at_end="block"'
            )
        return given

    @property
    def handles(self) -> tuple[Handle, ...]:
        return tuple(dict.fromkeys((*self._mothers.handles, *super().handles)))

    @property
    def _held_places(self) -> Sites:
        return self._mothers

    @property
    def forces(self) -> "tuple[Force, ...]":
        return (self._links, self._angles)

    @property
    def driven(self) -> bool:  # type: ignore[override]
        """True if branches let go, or one of the other rates is 0: what they do is not undone."""
        return 0.0 in (self.rate, self.dissolution_rate) or self.release_rate > 0.0

    @property
    def _nodes(self) -> Sites:
        """All nodes that daughters may have."""
        return Sites.beads(self._filaments.kind.all_rows)

    def check(self, topology: "Topology", forces: "tuple[Force, ...]") -> None:
        super().check(topology, forces)
        growing_sites.expect_counted(self.name, self._nodes_counted)
        self._mothers.check(f"{self.name}: mothers", topology, grows=True)
        self._numbers_of_forces()

    def _numbers_of_forces(self) -> tuple[tuple[float, float], np.ndarray]:
        """Return stiffness and length of the springs, and the coefficients of the angles."""
        for force in (self._links, self._angles):
            if len(force):
                raise ParameterError(
                    f"{self.name}: {force.name} has {len(force)} terms of its own, but branches need a force with "
                    "none: their energies are not in its rates"
                )
        spring: dict[str, Any] = self._links._defaults
        angle = self._angles.one_for_all
        if None in spring.values() or angle is None or not spring["stiffness"]:
            raise ParameterError(
                f"{self.name}: {self._links.name} and {self._angles.name} need one stiffness, and one length or angle, "
                f"for all branches, and springs a stiffness > 0, not {spring}, {self._angles._defaults}"
            )
        if self._links.one_sided or self._links.states:
            wrong = "ropes (one_sided=True)" if self._links.one_sided else "with states"
            raise ParameterError(f"{self.name}: {self._links.name} must be springs, not {wrong}")
        return (float(spring["stiffness"]), float(spring["length"])), angle

    def fastest(self, kT: float | None) -> float:
        on = self.rate * most_at_start(self._molecule) * most_at_start(self._species) ** self._n
        return max(on, self.dissolution_rate, self.release_rate)

    def _trials(self, operation: Any, schedule: "Schedule") -> float:
        return self.fastest(None) * (len(self._mothers) + len(self._filaments.starts))

    def bind(self, layout: "Layout", kT: float) -> Kernel:
        handle, pool, places = self._filaments, layout.pools[self._species.pool], self._mothers
        layout.expect_width(self.name, self._n * handle.rise, f"{self.name}: a seed has")
        nodes = places.bead_numbers.reshape(-1, 2)
        whole = Sites.concatenate([places, *(Sites.beads(side) for side in nodes.T), self._nodes])
        operation = Kernel(
            self.name, self.every, bound_ends(handle, "both", layout), handle.rise, self._n, pool,
            self._species.number, self._molecule.number, whole.bind(layout), len(places),
            *self._near_for_kernel(layout), layout.n, layout.momenta_sizes,
        )  # fmt: skip
        operation.layout = layout
        self.update(operation, kT)
        return operation

    def update(self, operation: Any, kT: float) -> None:
        rates = self.rate, self.dissolution_rate, self.release_rate
        operation.set(kT, self.driven, *rates, *self._numbers_of_forces())

    def joined(self, operation: Any, force: "Force", bound: "Operation", layout: "Layout") -> "Operation":
        spring, angle = self._numbers_of_forces()
        coming: Operation
        if force is self._links:
            coming = bonds.PassingBonds(force.name, int(Radial.HARMONIC), np.array([spring]), operation.held)
        else:
            coming = angle_kernels.PassingAngles(force.name, 4, angle, operation.turned, self._filaments.kind.n_room)
        return Joined(force.name, bound, coming)

    def meet(self, operation: Any, others: Any) -> None:
        super().meet(operation, others)
        for jump, _ in others:
            shared = [force for force in self.forces if jump is not self and any(force is f for f in jump.forces)]
            if shared:
                raise ParameterError(
                    f"{self.name}: {shared[0].name} is also that of {jump.name}, but branches need a force of their own"
                )
        caps = [jump for jump, _ in others if isinstance(jump, Capping | Branching) and self._caps(jump)]
        # Behind the numbers of those that cap ends as their event.
        caps.sort(key=lambda jump: isinstance(jump, Branching))
        operation.number = 1 + next(i for i, jump in enumerate(caps) if jump is self)

    def _caps(self, jump: "Capping | Branching") -> bool:
        return jump._filaments is self._filaments

    def shown(self, operation: Any) -> Mapping[str, Any]:
        rows = operation.rows()
        rows.flags.writeable = False
        return {"links": rows}

    def arrays_shown(self, operation: "JumpOperation", shown: Mapping[str, Any]) -> Mapping[str, np.ndarray]:
        arrays = {name: array.copy() for name, array in operation.arrays().items()}
        rows = np.asarray(shown["links"], np.int64).reshape(-1, 2)
        slots = self._filaments.kind.slots
        assert slots is not None
        n, width = slots.shape
        filament = rows[:, 1] // width
        if ((filament < 0) | (filament >= n)).any():
            raise TopologyError(f"{self.name}: branches are said to be rows of daughters that there is no room for")
        if len(np.unique(rows[:, 0])) < len(rows) or (rows[:, 0] < 0).any() or (rows[:, 0] >= len(self._mothers)).any():
            raise TopologyError(f"{self.name}: branches are said to be at places that there are not, or two at one")
        arrays["branch"][...] = -1
        arrays["branch"][rows[:, 0]] = filament
        self.check_state(operation, arrays)
        return arrays

    def check_state(self, operation: "JumpOperation", arrays: Mapping[str, np.ndarray]) -> None:
        branch = arrays["branch"]
        held = branch[branch >= 0]
        if (branch < -1).any() or (branch >= self._filaments.kind.n_room).any() or len(np.unique(held)) < len(held):
            raise ParameterError(f"{self.name}: the places that branches are said to hold cannot be")

    def in_frames(self) -> tuple[tuple[str, ...], int]:
        return ("links",), max(1, min(len(self._mothers), self._filaments.kind.n_room))

    def beside_frames(self) -> Mapping[str, Sites]:
        return {"a": self._mothers, "b": self._nodes}
