"""Motors: heads that hold places on filaments and walk along these."""

import math
from dataclasses import InitVar
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from medyanpy._tools.validation import whole_number
from medyanpy.beads import Lattice
from medyanpy.core.sites import Sites
from medyanpy.errors import ParameterError, TopologyError, UnitsWarning
from medyanpy.forces._arguments import Beads, Rows
from medyanpy.forces.links import Links
from medyanpy.jumps._base import Given, argument, declared, number
from medyanpy.jumps._heads import HeadsJump, check_lattices
from medyanpy.jumps.rates import MotorRates
from medyanpy.pools import Species

if TYPE_CHECKING:
    from medyanpy._kernels.jumps.jump import JumpOperation
    from medyanpy.core.layout import Layout
    from medyanpy.engine.worksheet import Look, Remark

__all__ = ["Motors"]

# What the hydrolysis of ATP gives in cells, kT.
_ATP = 20.0
# kT of a step against stall beyond which heads that share no load with their step forth do not slow down before stall.
_LONG = 5.0


@declared
class Motors(HeadsJump):
    r"""Heads that walk along filaments, at the ends of molecules of a pool or carried by beads: myosins, kinesins.

    A head takes hold of a free place, and lets go, as those of `CrosslinkerBinding`, or, carried by a site, as
    `LinkBinding` says. It steps by d to the next place, and back, where there is room, at the rates

    .. math:: k\, e^{-\theta\, \Delta U/kT}, \qquad k\, e^{-[\varepsilon + (1-\theta)\, \Delta U]/kT},
        \qquad \varepsilon = F_s d

    with the gain ΔU of its link's energy: in local balance with ε, so that a load of the stall force F_s stalls it
    whatever the link and θ are. The velocity without a load is :math:`v_0 = kd\,(1 - e^{-\varepsilon/kT})`; for heads
    that a link pulls k is larger by :math:`e^{\theta(1-\theta)\kappa d^2/2kT}`, with the stiffness κ: so much does
    thermal motion of the other end take, where that is fast. Under a constant load F along the filament

    .. math:: v = v_0\, \frac{e^{-\theta Fd/kT} - e^{-[\varepsilon - (1-\theta) Fd]/kT}}{1 - e^{-\varepsilon/kT}} .

    Parameters
    ----------
    lattice_a : Lattice
        Places that heads hold: ``filaments.lattice(spacing=...)``.
    lattice_b : Lattice or Sites, optional
        With a pool: places of the second head of each molecule; where none are given, those of `lattice_a`. Without:
        the sites that carry heads, one each, such as beads, or places on the arms of rigid bodies.
    pool : species of a pool, optional
        Molecules that hold nothing, of two heads each, or of two bundles.
    bound : (k, 2) int
        Molecules that hold places at the start, beside those in the pool: rows of `lattice_a` and `lattice_b`, -1 where
        a head holds nothing.

    Raises
    ------
    TopologyError
        Places of several topologies, or what is not a lattice.
    ParameterError
        A number outside its domain. A step that is not a multiple of the spacing. A stall force that ATP cannot give.
        Neither or both of on_rate and dissociation_constants. As `CrosslinkerBinding`.

    Warns
    -----
    UnitsWarning
        θ = 0 and a long step, with which heads do not slow down before stall.

    Notes
    -----
    The jump is driven. A step has ``atp`` as its ``chemical_energy``, of each head of a bundle that holds, a step back
    the negative; ``state.entropy_production`` has their sum over kT. Of these ε can reach the load; the rest is futile.
    Per net step under a load F, ``atp`` - Fd becomes heat. Energies of links that events change are chemical work.

    A bundle of N heads, b of which hold, takes one more at :math:`k_\mathrm{on}(N - b)` and loses one at
    :math:`k_\mathrm{off}\, b`; the last one as a head alone. Heads that hold step together, with b times ε and b times
    the ATP. Heads of one bundle are at one place.

    Examples
    --------
    >>> import medyanpy as mp
    >>> topology = mp.Topology()
    >>> track = topology.add_filament([[0.0, 0, 0], [400.0, 0, 0]], node_mass=1e-9, node_friction=1e-4)
    >>> cargo = topology.add_beads([[0.0, 0, 10]], mass=1e-12, friction=1e-6)
    >>> system = mp.System(topology)
    >>> arms = system.add_force(mp.forces.Links([], [], stiffness=0.3, length=10.0))
    >>> numbers = {"step": 8.0, "unloaded_velocity": 800.0, "stall_force": 6.0, "on_rate": 5.0, "off_rate": 1.0}
    >>> lattice = track.lattice(spacing=8.0)
    >>> kinesin = system.add_jump(mp.jumps.Motors(arms, lattice, mp.Sites.beads(cargo), bound=[[0, 0]], **numbers))
    >>> context = mp.Context(system, mp.BAGOGABIntegrator(1e-6, temperature=300.0))
    >>> context.get_state(positions=True).jumps["Motors"]["links"].tolist()
    [[0, 0]]
    """

    links: Links = argument(
        "Links", "The force of the links: springs or ropes, of one stiffness > 0 and one length. It must be in the "
        "system.", attribute="The force of the links.",
    )  # fmt: skip
    lattice_a: Given["Lattice", Lattice] = argument(attribute="Places that heads hold.")
    lattice_b: Given["Beads | None", Sites] = argument(
        default=None, attribute="Places of the second head, or the sites that carry heads."
    )
    pool: Species | None = argument(default=None, kw_only=True, attribute="Molecules that hold nothing.")
    step: InitVar[float] = number(
        "nm", "d, a multiple of the spacing: forth is towards the last node, or, where it is negative, the first.",
        kw_only=True, fixed=True,
    )  # fmt: skip
    unloaded_velocity: float = number("nm/s", "v_0.", kw_only=True, above=0.0)
    stall_force: float = number(
        "pN", "F_s, of one head; of `MedyanMotor` of the whole bundle. No more than ATP can give over a step.",
        kw_only=True, above=0.0,
    )  # fmt: skip
    load_sharing: float = number(
        "", "θ: the share of ΔU that slows down steps forth; the rest speeds up steps back.", default=0.2, kw_only=True,
        at_least=0.0, at_most=1.0,
    )  # fmt: skip
    off_rate: float = number("1/s", "At which a head lets go, where U = 0.", kw_only=True, above=0.0)
    on_rate: float | None = number(
        "1/s", "At which each head takes hold of a place where a link would be relaxed, and at which the others of a "
        "bundle do.", default=None, kw_only=True, at_least=0.0,
    )  # fmt: skip
    dissociation_constants: Given["float | tuple[float, float] | None", "np.ndarray | None"] = number(
        "1/nm³", "With a pool: K_1 and K_2 of both ends of a molecule, or one number for both; where none are given, "
        r"those of `on_rate`, :math:`k_\mathrm{off} / (N k_\mathrm{on} V_0)`.", default=None,
        kw_only=True, above=0.0, size=2, or_number=True,
    )  # fmt: skip
    unbinding_share: float = number(
        "", "λ: the share of a link's energy that speeds up letting go; the rest slows down taking hold.",
        default=0.5, kw_only=True, at_least=0.0, at_most=1.0,
    )  # fmt: skip
    heads: int = argument(
        "int, >= 1", "N, of the bundle at each end.", default=1, kw_only=True, attribute="Heads of a bundle."
    )
    atp: float | None = number(
        "pN nm", "Free energy that a step uses up; 20 kT where none is given.", default=None, kw_only=True, above=0.0
    )
    leaves_end: bool = argument(
        "bool", "Whether a head that would step beyond the last place lets go instead of waiting there.",
        default=False, kw_only=True, attribute="True if heads let go beyond the last place.",
    )  # fmt: skip
    rates: InitVar[MotorRates | None] = argument(
        "MedyanMotor or CytosimMotor, optional", "Velocities by the force of the moment, by their authors' names, "
        "instead of θ; steps have no way back.", default=None, kw_only=True,
    )  # fmt: skip
    reach: InitVar[float] = number(
        "kT", "Places that a link of more energy would join are not tried, and such links do not let go.",
        default=25.0, kw_only=True, at_least=10.0, at_most=200.0, fixed=True,
    )  # fmt: skip
    same_filament: InitVar[bool] = argument(
        "bool", "Allow links between two places of one filament.", default=False, kw_only=True
    )
    bound: InitVar["Rows"] = argument(default=(), kw_only=True)

    driven = True

    def _take(self, given: dict[str, Any]) -> None:
        super()._take(given)
        rates = given["rates"]
        if rates is not None and not isinstance(rates, MotorRates):
            raise ParameterError(f"{self.name}: rates must be MedyanMotor or CytosimMotor, not {rates!r}")
        self._rates = rates
        self._species = None if given["pool"] is None else self._take_species(given["pool"])
        self._all_heads = whole_number(f"{self.name}: heads", given["heads"], at_least=1, at_most=10_000)
        self._heads = 1 if rates is not None and rates.lumped else self._all_heads
        self._leaves_end = bool(given["leaves_end"])
        self._step: float = given["step"]
        sides = {"lattice_a": given["lattice_a"]}
        if self._species is None:
            if given["lattice_b"] is None or isinstance(given["lattice_b"], Lattice):
                raise TopologyError(
                    f"{self.name}: without a pool lattice_b has the sites that carry heads, such as beads, not "
                    f"{given['lattice_b']!r}: give them, or pool="
                )
        elif given["lattice_b"] is not None:
            sides["lattice_b"] = given["lattice_b"]
        check_lattices(self.name, sides, self._step)
        self._take_sites(given)

    def _checked(self, **given: Any) -> dict[str, Any]:
        numbers = super()._checked(**given)
        has_pool, many = self._arguments["pool"] is not None, self._all_heads > 1
        on, constants = numbers["on_rate"], numbers["dissociation_constants"]
        if constants is not None and not has_pool:
            raise ParameterError(f"{self.name}: dissociation_constants= are those of molecules of a pool: give pool=")
        if on is None and (many or constants is None):
            what = "of bundles" if many else "or dissociation_constants= of molecules of a pool"
            raise ParameterError(f"{self.name}: give on_rate= (1/s), {what}")
        if on is not None and constants is not None and not many:
            raise ParameterError(
                f"{self.name}: give on_rate= (1/s) or dissociation_constants= (1/nm³), one of the two; both for bundles"
            )
        return numbers

    def _fuel(self, kT: float) -> float:
        """Return what a step uses up, pN nm, after a check that it is enough."""
        fuel, stall = self._numbers["atp"], self._numbers["stall_force"]
        fuel = _ATP * kT if fuel is None else fuel
        if self._heads < self._all_heads:
            # The stall force of a lumped law is that of all heads, which use up one each.
            fuel *= self._all_heads
        most = fuel / abs(self._step)
        if stall > most * (1.0 + 1e-9):
            raise ParameterError(
                f"{self.name}: stall_force = {stall:g} pN but must be <= {most:.4g} pN: {abs(self._step):g} nm "
                f"use up {fuel:.4g} pN nm, {fuel / kT:.3g} kT"
            )
        return cast(float, fuel)

    def remarks(self, look: "Look") -> "list[Remark]":
        found, kT = super().remarks(look), look.integrator.kT
        # Heads of a bundle step together.
        energy = self._numbers["stall_force"] * abs(self._step) * self._heads
        if kT and self._rates is None and self._numbers["load_sharing"] == 0.0 and energy > _LONG * kT:
            text = (
                f"{self.name}: load_sharing = 0 with a step of {abs(self._step):g} nm, {energy / kT:.3g} kT "
                f"at the stall force{' of all heads' * (self._heads > 1)}: heads do not slow down before stall: take "
                "0.1 to 0.3, or shorter steps"
            )
            found.append((UnitsWarning, text))
        return found

    def _steps_on(self, lattice: Lattice) -> int:
        return round(self._step / lattice.spacing)

    def bind(self, layout: "Layout", kT: float) -> "JumpOperation":
        self._fuel(kT)
        return super().bind(layout, kT)

    def _off_rate(self) -> float:
        """Return the rate at which a head, or a bundle that is one, lets go without a load, 1/s."""
        off, on, n, rates = self._numbers["off_rate"], self._numbers["on_rate"], self._all_heads, self._rates
        if rates is not None and rates.lumped and n > 1 and on > 0.0:
            return float(n * on / math.expm1(n * math.log1p(on / off)))
        return float(off)

    def fastest(self, kT: float | None) -> float | None:
        if kT is None:
            return None
        numbers, off, step = self._numbers, self._off_rate(), abs(self._step)
        ahead, theta, (_, stiffness, _) = numbers["unloaded_velocity"] / step, numbers["load_sharing"], self._spring()
        if self._rates is None:
            # As in the kernel: faster by what thermal motion of a spring takes.
            ahead *= math.exp(0.5 * theta * (1.0 - theta) * float(stiffness) * step**2 / kT)
            ahead /= -math.expm1(-numbers["stall_force"] * step / kT)
        first = self._all_heads * (numbers["on_rate"] or 0.0)
        return float(max(off, ahead, *self._closing(kT, (off, off), numbers["dissociation_constants"], first)))

    def update(self, operation: "JumpOperation", kT: float) -> None:
        numbers, rates, n = self._numbers, self._rates, self._all_heads
        off, share, theta = self._off_rate(), numbers["unbinding_share"], numbers["load_sharing"]
        on, step, (_, stiffness, _) = numbers["on_rate"], abs(self._step), self._spring()
        walk = step, numbers["unloaded_velocity"], numbers["stall_force"], theta, float(stiffness), self._fuel(kT)
        law = (1.0 - share, share, 0.0, 0.0, 0.0)
        if rates is not None:
            law = 1.0, 0.0, rates.catch_share, 1.0 / rates.slip, 1.0 / rates.catch
        named = (0, 1.0) if rates is None else (rates.law, rates.alpha)
        cast(Any, operation).set_walk(kT, *walk, self._leaves_end, *named)
        # Any of a bundle may be the first to take hold.
        first, more = n * (on or 0.0), (on or 0.0) if self._heads > 1 else 0.0
        pairs = self._set_rates(operation, kT, (off, off), numbers["dissociation_constants"], first, more)
        slack = min(self._slack(kT, *law[1:]), self._slack_of_walks(kT, theta, step))
        average = None if rates is None else rates.average
        self._follow_links(operation, kT, *pairs, law, slack, rates is not None, average)
