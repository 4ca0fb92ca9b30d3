"""Crosslinkers of two heads, which come from a pool and hold one place, or two."""

from dataclasses import InitVar
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from medyanpy.beads import Lattice
from medyanpy.core.sites import Sites
from medyanpy.errors import ParameterError, TopologyError
from medyanpy.forces._arguments import Beads, Rows
from medyanpy.forces.links import Links
from medyanpy.jumps._base import Given, argument, declared, number
from medyanpy.jumps._heads import HeadsJump
from medyanpy.pools import Species

if TYPE_CHECKING:
    from medyanpy._kernels.jumps.jump import JumpOperation

__all__ = ["CrosslinkerBinding"]


@declared
class CrosslinkerBinding(HeadsJump):
    r"""Molecules of a pool that hold a place by one head, and then another one by the second: crosslinkers.

    With head 1 or 2, h, of the dissociation constant :math:`K_h`, a molecule takes hold of a free place and lets go at
    the rates

    .. math:: k_h C, \quad k_h = k_{\mathrm{off},h} / K_h, \qquad k_{\mathrm{off},h},

    and the head of a molecule that is still free takes hold of a second place, and lets go of it, at

    .. math:: \frac{k_{\mathrm{off},h}}{K_h V_0}\, e^{-(1-\lambda) U/kT}, \qquad k_{\mathrm{off},h}\, e^{\lambda U/kT},
        \qquad V_0 = \int e^{-U/kT}\, d^3r

    with the energy U of a link between the two, which is added to `links`. A molecule has the weight :math:`C/K_h` at a
    place, and :math:`C\, e^{-U/kT} / (K_1 K_2 V_0)` at two, for every λ. A place has room for one head, those of other
    jumps counted.

    With `diffusion` heads slide: each goes to the next free place, ahead or behind at the distance d, at
    :math:`(D/d^2)\, e^{-\Delta U/2kT}`, with the gain ΔU of its link's energy, which changes no weight.

    Parameters
    ----------
    lattice_a, lattice_b : Lattice, or as of LinkBinding
        Places of head 1 and of head 2: ``filaments.lattice(spacing=...)``, or other sites. Where no `lattice_b` is
        given, both heads hold those of `lattice_a`.
    pool : species of a pool
        Molecules that hold nothing: ``pool["alpha-actinin"]``, counted or a reservoir.
    bound : (k, 2) int
        Molecules that hold places at the start, beside those in the pool: rows of `lattice_a` and `lattice_b`, -1 where
        a head holds nothing.

    Raises
    ------
    TopologyError
        Places of several topologies; or (by a Context) beads that do not exist.
    ParameterError
        A number outside its domain. What is not a species of a pool. One place twice. Links of different stiffness or
        length, or of stiffness 0. Molecules at the start that are not allowed.

    Notes
    -----
    ``state.jumps[name]["links"]`` has a row for each molecule that holds something, (k, 2): the place of head 1 and of
    head 2, -1 where that one is free. ``state.links(links)`` has those that hold two. Molecules of the pool, and with
    one head, and with two are conserved together. In `Compartments` they come from the cell where the place is.

    λ is in both rates alike and not in V_0, unlike in the scheme of the paper below, whose dissociation constant
    depends on it.

    References
    ----------
    W. Yan et al., eLife 11, e74160 (2022): aLENS, the scheme.

    Examples
    --------
    >>> import medyanpy as mp
    >>> topology = mp.Topology()
    >>> nodes = [[[0.0, y, 0], [27.0, y, 0], [54.0, y, 0]] for y in (0.0, 35.0)]
    >>> actin = topology.add_filaments(nodes, node_mass=4e-12, node_friction=1e-6)
    >>> system = mp.System(topology)
    >>> pool = system.add_pool(mp.Pool(volume=1e9, counts={"alpha-actinin": 600}))
    >>> links = system.add_force(mp.forces.Links([], [], stiffness=0.5, length=35.0))
    >>> numbers = {"dissociation_constants": 2.0 * mp.units.micromolar, "off_rates": 0.3}
    >>> lattice = actin.lattice(spacing=2.7)
    >>> binding = system.add_jump(mp.jumps.CrosslinkerBinding(links, lattice, pool=pool["alpha-actinin"], **numbers))
    >>> context = mp.Context(system, mp.BAGOGABIntegrator(1e-7, temperature=300.0))
    >>> context.step(10)
    >>> context.get_state().pools["alpha-actinin"]
    600
    """

    links: Links = argument(
        "Links", "The force of the links: springs or ropes, of one stiffness > 0 and one length. It must be in the "
        "system.", attribute="The force of the links.",
    )  # fmt: skip
    lattice_a: Given["Beads", Sites] = argument(attribute="Places of head 1.")
    lattice_b: Given["Beads | None", Sites] = argument(default=None, attribute="Places of head 2.")
    pool: Species = argument(kw_only=True, attribute="Molecules that hold nothing.")
    dissociation_constants: Given["float | tuple[float, float]", np.ndarray] = number(
        "1/nm³", "K_1 and K_2 of the two heads, or one number for both: ``2.0 * mp.units.micromolar``.",
        kw_only=True, above=0.0, size=2, or_number=True,
    )  # fmt: skip
    off_rates: Given["float | tuple[float, float]", np.ndarray] = number(
        "1/s", "At which head 1 and head 2 let go, where U = 0.", kw_only=True, above=0.0, size=2, or_number=True
    )
    load_sharing: float = number(
        "", "λ: the share of the energy that speeds up letting go; the rest slows down taking hold.",
        default=0.5, kw_only=True, at_least=0.0, at_most=1.0,
    )  # fmt: skip
    diffusion: float = number(
        "nm²/s", "D, of a head along its filament: where it is > 0 heads slide from place to place; lattices of one "
        "spacing.", default=0.0, kw_only=True, at_least=0.0,
    )  # fmt: skip
    reach: InitVar[float] = number(
        "kT", "Places that a link of more energy would join are not tried, and such links do not let go.",
        default=25.0, kw_only=True, at_least=10.0, at_most=200.0, fixed=True,
    )  # fmt: skip
    same_filament: InitVar[bool] = argument(
        "bool", "Allow links between two places of one filament.", default=False, kw_only=True
    )
    bound: InitVar["Rows"] = argument(default=(), kw_only=True)

    def _take(self, given: dict[str, Any]) -> None:
        super()._take(given)
        self._species = self._take_species(given["pool"])
        self._take_sites(given)

    def _checked(self, **given: Any) -> dict[str, Any]:
        numbers = super()._checked(**given)
        if numbers["diffusion"] > 0.0:
            sides = dict(zip(self.sides, (self._a, self._b), strict=True))
            for side, sites in sides.items():
                if not isinstance(sites, Lattice):
                    raise TopologyError(
                        f"{self.name}: diffusion is that of heads along lattices, but {side} is not a lattice, as "
                        "filaments.lattice(spacing=...) makes it"
                    )
            one, other = (cast(Lattice, sites).spacing for sites in sides.values())
            if abs(one - other) > 1e-9 * one:
                raise ParameterError(
                    f"{self.name}: diffusion of heads needs lattices of one spacing, not {one:g} and {other:g} nm"
                )
        return numbers

    def _steps_on(self, lattice: Lattice) -> int:
        return 1

    def _sliding(self) -> tuple[float, float]:
        """Return the spacing, nm, and the rate, 1/s, at which a head goes either way without a load."""
        spacing = self._a.spacing if isinstance(self._a, Lattice) else 1.0
        return spacing, self._numbers["diffusion"] / spacing**2

    def fastest(self, kT: float | None) -> float | None:
        if kT is None:
            return None
        off = tuple(self._numbers["off_rates"].tolist())
        closing = self._closing(kT, off, self._numbers["dissociation_constants"], 0.0)
        return float(max(*off, *closing, self._sliding()[1]))

    def update(self, operation: "JumpOperation", kT: float) -> None:
        numbers, share = self._numbers, self._numbers["load_sharing"]
        off, law = tuple(numbers["off_rates"].tolist()), (1.0 - share, share, 0.0, 0.0, 0.0)
        rates = self._set_rates(operation, kT, off, numbers["dissociation_constants"], 0.0)
        slack, (spacing, rate) = self._slack(kT, *law[1:]), self._sliding()
        if rate > 0.0 or cast(Any, operation).walking:
            cast(Any, operation).set_walk(kT, spacing, rate * spacing, 0.0, 0.5, 0.0, 0.0, False, 0, 1.0)
            slack = min(slack, self._slack_of_walks(kT, 0.5, spacing))
        self._follow_links(operation, kT, *rates, law, slack, False)
