"""Reactions: of molecules in pools, by mass action, and of beads on membranes and in space, along straight lines."""

from typing import Any, Literal

from medyanpy._tools.declared import declared
from medyanpy.core.handles import Handle
from medyanpy.errors import ParameterError, shown
from medyanpy.jumps._base import argument, number
from medyanpy.jumps._formed import FormedJump
from medyanpy.jumps._networks import NetworkForm
from medyanpy.jumps._point_reactions import PointForm
from medyanpy.jumps._reaction_texts import Reaction, read_reactions
from medyanpy.pools import MoleculePool

__all__ = ["Reactions"]

# Arguments that pools do not have.
_OF_POINTS = ("reach", "dissociation_constant", "macroscopic_rate", "density", "placement", "most_partners",
              "pool", "momenta", "load_sharing", "load_limit")  # fmt: skip


def _names(reaction: Reaction) -> tuple[str, ...]:
    """Return the names of its rates in texts."""
    return ("k_on", "k_off") if reaction.reversible else ("rate",)


@declared
class Reactions(FormedJump):
    r"""Reactions of molecules in a pool or grid, with hops between the cells of a grid; or of beads with species.

    *In a pool*, with :math:`n` molecules of its reactants in a volume V, a reaction happens at the rate

    .. math:: k\, V\, \frac{n_A}{V} \frac{n_B}{V} \cdots

    where the second of two molecules of one species counts as :math:`n_A - 1`: ``2 A -> D`` happens at
    :math:`k\, n_A (n_A - 1)/V`. So :math:`K_D = k_\mathrm{off}/k_\mathrm{on} = [A]^2/[D]`, as in textbooks. Each event
    uses up two, so that :math:`d[A]/dt = -2k[A]^2`.

    *Of points* with species, two react at the rate λ for each straight line between them that is shorter than R, and
    one comes apart at the rate μ, along a line of uniform direction and of length :math:`R\sqrt{\xi}`. In balance

    .. math:: \frac{\rho_A \rho_B}{\rho_C} = K_D = \frac{\mu}{\lambda \pi R^2}

    of ideal points on any mesh, and twice that of A + A <-> D. *Free beads and balls* with species react likewise in
    space: :math:`\lambda` for each pair of which the nearest images are closer than R, and products uniform in a ball,

    .. math:: K_D = \frac{\mu}{\lambda\, 4\pi R^3/3} .

    *Rigid bodies* with species react so by their centres, and created ones are turned uniformly.

    Reactions among any number of species have an exact clock of their own within each letter J.

    Raises
    ------
    TopologyError
        Beads that are neither points in a membrane nor free beads, balls or rigid bodies with species.
    ParameterError
        Texts that cannot be read, species that the pool or the beads have not, a reaction that is written twice,
        reactions that beads cannot do, rates that are missing, given twice or below 0. A reach of more than half of
        a periodic box; production in space without a box that is periodic in all directions.

    Notes
    -----
    Rates in pools of reactions of order n, with n molecules on the left, are in nm^(3(n-1))/s: per concentration in
    1/nm³.
    Numbers behind a semicolon are ``rate`` of one-way reactions, ``k_on`` and ``k_off`` of others.

    If each reaction goes both ways, and rates multiply to the same in both directions around each cycle, also one that
    jumps of the system make together, numbers of molecules are distributed as :math:`\prod (V z)^n/n!`, and the jump is
    balanced. Otherwise it is driven. Events of pools change no energy of forces; their ``chemical_energy`` is kT times
    the logarithm of the rates there and back, inf where there is no way back. Its sum along a cycle is what drives the
    cycle.

    ``state.jumps[name]`` holds ``"events"``, (n,) numbers of events in the order of `kinds`, and ``"hops"``.

    Beads react as A -> B, A + B -> C, C -> A + B, A + B -> C + D, 0 -> A and A -> 0, and both ways of these. In
    A -> B and A + B -> C + D places stay. Velocities are scaled by :math:`\sqrt{m_A/m_B}` there, and created beads
    draw theirs from Maxwell's distribution. So it is with angular momenta and moments of inertia, about each axis. One
    molecule of `pool` may stand on a side of A -> B, 0 -> A and A -> 0. M + A <-> MA binds it to a bead. A <-> P
    brings it to the membrane, uniform by area, or into the box, by volume.

    Events that change the energy of forces on the beads are accepted with
    :math:`\min\{1, e^{-\Delta U/kT}\}`. With `load_sharing` λ, rates there have the
    factor :math:`e^{-(1-\lambda)\Delta U/kT}` instead, and rates back :math:`e^{\lambda\Delta U/kT}`, with the ΔU of
    the way there. Beyond a ΔU of `load_limit` in size the faster of both stays as it is. Where such forces are, each
    attempt takes one or two evaluations of their whole energy.

    Texts may have ``K_D`` and ``k_macro``, too, for `dissociation_constant` and `macroscopic_rate`.

    References
    ----------
    D. T. Gillespie, J. Phys. Chem. 81, 2340 (1977). M. Doi, J. Phys. A 9, 1479 (1976): a rate within a distance.

    Examples
    --------
    >>> import medyanpy as mp
    >>> topology = mp.Topology()
    >>> beads = topology.add_beads([[0.0, 0, 0]], mass=1.0, friction=1.0)
    >>> system = mp.System(topology)
    >>> pool = system.add_pool(mp.Pool(volume=1e6, counts={"A": 100, "B": 80, "C": 0}))
    >>> bind = system.add_jump(mp.jumps.Reactions(pool, "A + B <-> C; k_on = 2e4, k_off = 1.0"))
    >>> simulation = mp.Simulation(system, mp.BrownianIntegrator(0.01, kT=4.1, seed=1))
    >>> simulation.step(1000)
    >>> molecules = simulation.context.get_state().pools
    >>> molecules["A"] + molecules["C"], molecules["B"] + molecules["C"]
    (100, 80)
    """

    subject: MoleculePool | Handle = argument(
        "Pool, Compartments, or handle of beads with species", "Of the system.", attribute="What reacts."
    )
    reactions: Any = argument(
        "str, Reaction, or a list of these",
        '``"A + B <-> C; k_on = 2.0, k_off = 1.0"``, one on each line. See `Reaction`; none, ``[]``, for hops alone.',
        attribute="Reactions as they were read.",
    )
    on_rate: float | None = number(
        "nm^(3(n-1))/s", "Rate there of the one reaction, in place of `k_on` or `rate` in its text. Of beads 1/s: "
        "for each one, or each line between two; 1/(nm² s) or 1/(nm³ s) of 0 -> A.", default=None, at_least=0.0,
        kw_only=True,
    )  # fmt: skip
    off_rate: float | None = number(
        "nm^(3(n-1))/s", "Rate back of the one reaction, in place of `k_off`; of beads 1/s.", default=None,
        at_least=0.0, kw_only=True,
    )  # fmt: skip
    reach: float | None = number("nm", "R of reactions of two beads.", default=None, above=0.0, kw_only=True)
    dissociation_constant: float | None = number(
        "1/nm² or 1/nm³", "K_D of A + B <-> C of beads, in place of one of the two rates.", default=None, above=0.0,
        kw_only=True,
    )  # fmt: skip
    macroscopic_rate: float | None = number(
        "nm²/s or nm³/s", "Of two beads, in place of the rate there: the rate constant, of points at `density`, for "
        "which λ is found.",
        default=None, above=0.0, kw_only=True,
    )  # fmt: skip
    density: float | None = number(
        "1/nm²", "At which `macroscopic_rate` holds, of either species; that of the more frequent one at the start "
        "where none is given. Not in space.", default=None, above=0.0, kw_only=True,
    )  # fmt: skip
    placement: float | None = number(
        "", "Of beads: where C stands on the line from A to B, 0 at A and 1 at B; 0.5 where none is given.",
        default=None, at_least=0.0, at_most=1.0, kw_only=True,
    )  # fmt: skip
    pool: MoleculePool | None = argument(
        "Pool or Compartments, optional", "Of beads: its molecules take part, as A in M + A <-> MA or in A <-> P, "
        "those of the cell in which the bead is. Rates are per concentration there, in 1/nm³.", default=None,
        kw_only=True,
    )  # fmt: skip
    most_partners: int | None = argument(
        "int, optional", "Most lines to partners that a bead may have: more are a fault. From the number of beads "
        "where none is given; a smaller number saves attempts.", default=None, kw_only=True,
    )  # fmt: skip
    load_sharing: float | None = number(
        "", "Of beads: λ, the share of ΔU that speeds up the way back; the rest slows down the way there. None: "
        "attempts are accepted as above.", default=None, at_least=0.0, at_most=1.0, kw_only=True,
    )  # fmt: skip
    load_limit: float | None = number(
        "kT", "E, size of ΔU up to which it is shared; 5 where none is given. Attempts come exp(λE) and exp((1 - λ)E) "
        "times as often.", default=None, at_least=0.0, at_most=30.0, kw_only=True,
    )  # fmt: skip
    momenta: Literal["maxwell", "center_of_mass"] | None = argument(
        '"maxwell" or "center_of_mass", optional', "Of created beads: drawn from Maxwell's distribution, which is so "
        "where nothing is given; or in space, A + B <-> C with masses that add up, C takes the momentum of both and "
        "hands it on.", default=None, kw_only=True,
    )  # fmt: skip

    def _take(self, given: dict[str, Any]) -> None:
        super()._take(given)
        self._subject = given["subject"]
        nothing = isinstance(given["reactions"], list | tuple) and not len(given["reactions"])
        self._reactions: tuple[Reaction, ...] = () if nothing else read_reactions(self.name, given["reactions"])
        if isinstance(self._subject, Handle):
            own = (given[name] for name in ("most_partners", "pool", "momenta"))
            self._form = PointForm(self, self._subject, self._reactions, *own)
            return
        for name in _OF_POINTS:
            if given[name] is not None:
                raise ParameterError(f"{self.name}: {name} is of beads with species, and not of {self._subject!r}")
        for k, reaction in enumerate(self._reactions):
            self._check_rates(k, reaction, given["on_rate"], given["off_rate"])
        if not isinstance(self._subject, MoleculePool):
            wanted = "a Pool, Compartments, or the handle of beads with species"
            raise ParameterError(f"{self.name}: subject must be {wanted}, not {shown(self._subject)}")
        self._form = NetworkForm(self, self._subject, self._reactions)

    def _check_rates(self, k: int, reaction: Reaction, on_rate: Any, off_rate: Any) -> None:
        wanted, given = _names(reaction), reaction.numbers
        where = f"{self.name}: {reaction.equation}"
        for name in given:
            if name not in wanted:
                raise ParameterError(f"{where}: {name!r} is not one of its numbers: {' and '.join(wanted)}")
        for name, keyword, value in zip(wanted, ("on_rate", "off_rate"), (on_rate, off_rate), strict=False):
            if value is not None and len(self._reactions) > 1:
                raise ParameterError(f"{self.name}: {keyword} is of one reaction: of several, write {name} in each")
            if (value is None) == (name not in given):
                problem = "is given twice" if value is not None else "is missing"
                raise ParameterError(f"{where}: its rate {problem}: give '; {name} = ...' or {keyword}=")
            if given.get(name, 0.0) < 0.0:
                raise ParameterError(f"{where}: {name} = {given[name]:g} but must be >= 0")
        if off_rate is not None and not reaction.reversible:
            raise ParameterError(f"{where}: off_rate is of reactions '<->' that go back")

    def _declare(self, **numbers: Any) -> None:
        for name in ("on_rate", "off_rate"):
            # Where texts have them, they stay there.
            was = self._values.get(name, ...)
            if was is not ... and (was is None) != (numbers.get(name, was) is None):
                raise ParameterError(f"{self.name}: {name} can be set where it was given, and rates of texts cannot")
        super()._declare(**numbers)
        if isinstance(self._form, PointForm):
            # Everything but kT is known now: what is missing or twice is told at once.
            self._form.balances(None)
            self._form.expect_sharing()

    def rates_of(self, k: int) -> tuple[float, float]:
        """Return the rates there and back of a reaction by its number, as they are now; back 0 where there is none."""
        reaction, numbers = self._reactions[k], self._numbers
        found = [
            reaction.numbers.get(name, numbers[keyword])
            for name, keyword in zip(_names(reaction), ("on_rate", "off_rate"), strict=False)
        ]
        return float(found[0]), float(found[1]) if reaction.reversible else 0.0

    def _acts_on(self) -> str:
        return str(self._subject.name)

    def _row(self) -> tuple[str, str]:
        """Return what it acts on, and its reactions."""
        return self._acts_on(), ", ".join(map(str, self._reactions)) or "–"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._acts_on()}: {'; '.join(r.equation for r in self._reactions) or 'hops'})"
