"""Filaments that begin as seeds of subunits of a pool, and end as such."""

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from medyanpy._kernels.jumps.nucleation import Nucleation as Kernel
from medyanpy._tools.types import Numbers
from medyanpy._tools.validation import array
from medyanpy.beads import GrowingFilaments
from medyanpy.core.handles import Handle
from medyanpy.core.species import OfSpecies
from medyanpy.errors import ParameterError
from medyanpy.jumps._base import Given, argument, declared, number
from medyanpy.jumps._filament_ends import bound_ends, most_at_start
from medyanpy.jumps._seeds import SeedJump
from medyanpy.pools import Species

if TYPE_CHECKING:
    from medyanpy.core.layout import Layout
    from medyanpy.engine.schedule import Schedule

__all__ = ["Nucleation"]


@declared
class Nucleation(SeedJump):
    r"""Creation of filaments from n subunits of a pool, and dissolution of filaments of n subunits.

    Seeds of one link are created at the rates :math:`k C^n` for each volume, and each dissolves at
    :math:`k_\mathrm{off}`; both are multiplied by :math:`\min\{1, e^{-\Delta U/kT}\}`, with the energy ΔU that all
    forces gain. The first node of a seed is at a uniform place of a region, its direction is uniform. Without growth M
    seeds that do not see each other have the weight :math:`(k V C^n/k_\mathrm{off})^M/M!` in a volume V.

    Or seeds begin near beads that nucleate, such as formins: at a uniform place of a ball about each. Both rates are
    then as many times these as there are such beads within reach of the first node.

    Parameters
    ----------
    filaments : GrowingFilaments
        Added with ``rise=``, ``capacity_links=`` and ``capacity_filaments=``.
    species : species of a pool
        What seeds are made of, counted or a reservoir.

    Raises
    ------
    TopologyError
        Not the handle of filaments with subunits and room for others.
    ParameterError
        A number outside its domain, what is not a species of a pool, or a region without a volume. Neither region nor
        beads in a box that is not periodic in all directions; both of them, or one of near and reach without the other.
        More subunits than `Polymerization` of these filaments lets a link have. No `FixmanPotential` on them.

    Notes
    -----
    Of a pool that counts, :math:`C^n` is :math:`N!/(N - n)!/V^n`: no molecule is taken twice. A filament dissolves
    while it has exactly n subunits, one link, no cap, and its first node in the region. It is balanced, also beside
    growth of one K_D at all ends, and driven where one of the rates is 0. A run ends with an error where there is no
    room for another filament.

    Velocities of seeds are drawn from Maxwell's distribution, tangent to their link; they, and those that are lost,
    are heat. Subunits of seeds come in the first state of `jumps.Ageing`.

    References
    ----------
    D. Sept, J. A. McCammon, Biophys. J. 81, 667 (2001): nuclei of actin have three subunits.

    Examples
    --------
    >>> import medyanpy as mp
    >>> topology = mp.Topology()
    >>> nodes = [[[0.0, 0, 0], [27.0, 0, 0], [54.0, 0, 0]]]
    >>> room = {"rise": 2.7, "capacity_links": 8, "capacity_filaments": 40}
    >>> actin = topology.add_filaments(nodes, 4e-12, 1e-6, **room)
    >>> system = mp.System(topology, box=(1000.0, 1000.0, 1000.0))
    >>> fixman = system.add_force(mp.forces.FixmanPotential(actin, temperature=300.0))
    >>> pool = system.add_pool(mp.Pool(volume=1e9, counts={"G-actin": 6022}))
    >>> seeds = mp.jumps.Nucleation(actin, pool["G-actin"], 5, rate=1e13, dissolution_rate=1.0)
    >>> _ = system.add_jump(seeds)
    """

    kinds: ClassVar[tuple[str, ...]] = ("nucleation", "dissolution")
    filaments: GrowingFilaments = argument(attribute="Filaments that begin and end.")
    species: Species = argument(attribute="What seeds are made of.")
    n: int = argument("int, >= 1", "Subunits of a seed.", attribute="Subunits of a seed.")
    rate: float = number("nm³⁽ⁿ⁻¹⁾/s", "k: seeds for each volume and time, per concentration to the power n.",
                         at_least=0.0, kw_only=True)  # fmt: skip
    dissolution_rate: float = number(
        "1/s", "Of a filament of n subunits; at 0 seeds stay.", default=0.0, at_least=0.0, kw_only=True
    )
    region: Given["Numbers | None", np.ndarray | None] = argument(
        "(2, 3) float, nm, optional", "Lower and upper corner of where first nodes are created; the periodic box where "
        "none is given.", default=None, kw_only=True, attribute="Corners of where first nodes are created.",
    )  # fmt: skip
    near: Handle | OfSpecies | None = argument(
        "handle, or beads of a species, optional", "Beads near which seeds begin and dissolve.", default=None,
        kw_only=True, attribute="Beads near which seeds begin.",
    )  # fmt: skip
    reach: float | None = number("nm", "How near.", default=None, above=0.0, kw_only=True, fixed=True)

    def _take(self, given: dict[str, Any]) -> None:
        super()._take(given)
        self._take_seeds("species", given["species"], given["n"])
        self._take_near(given["near"], given["reach"])
        if self._near is not None and given["region"] is not None:
            raise ParameterError(f"{self.name}: give region= or near=, not both")
        self._region = None
        if given["region"] is not None:
            region = array(f"{self.name}: region", given["region"], (2, 3))
            if not (region[1] > region[0]).all():
                c = int(np.argmin(region[1] > region[0]))
                raise ParameterError(
                    f"{self.name}: region goes from {region[0, c]:g} to {region[1, c]:g} nm along {'xyz'[c]}, but must "
                    "have a volume"
                )
            region.flags.writeable = False
            self._region = region

    @property
    def driven(self) -> bool:  # type: ignore[override]
        """True if a rate is 0, so that there is no way back."""
        return 0.0 in (self.rate, self.dissolution_rate)

    def bind(self, layout: "Layout", kT: float) -> Kernel:
        handle, region, pool = self._filaments, self._region, layout.pools[self._species.pool]
        whole = layout.is_periodic and (np.isfinite(layout.box) & (layout.box > 0.0)).all()
        if region is None and self._near is None and not whole:
            raise ParameterError(
                f"{self.name}: give region=, two corners, or near=: without them filaments begin anywhere in a box "
                "that is periodic in x, y and z"
            )
        layout.expect_width(self.name, self._n * handle.rise, f"{self.name}: a seed has")
        low, lengths = ((0.0, 0.0, 0.0), None) if region is None else (region[0], region[1] - region[0])
        operation = Kernel(
            self.name, self.every, bound_ends(handle, "both", layout), handle.rise, self._n, pool, self._species.number,
            low, lengths, layout.n, layout.momenta_sizes, *self._near_for_kernel(layout),
        )  # fmt: skip
        self.update(operation, kT)
        return operation

    def update(self, operation: Any, kT: float) -> None:
        operation.set(kT, self.driven, self.rate, self.dissolution_rate)

    def _trials(self, operation: Any, schedule: "Schedule") -> float:
        volume = schedule.layout.box if self._region is None else self._region[1] - self._region[0]
        if self._reach is not None:
            volume = np.array([4.0 / 3.0 * np.pi * self._reach**3, float(len(self._activators[0])), 1.0])
        begun = self.rate * most_at_start(self._species) ** self._n * float(np.prod(volume))
        return begun + self.dissolution_rate * len(self._filaments.starts)
