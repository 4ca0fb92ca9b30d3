"""Integrators: words of letters, with their timestep and temperature."""

import weakref
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from medyanpy import units
from medyanpy._tools.described import Described
from medyanpy._tools.names import Guarded, look_up
from medyanpy._tools.validation import number, thermal_energy, whole_number
from medyanpy._tools.validation import seed as check_seed
from medyanpy.core.letters import LETTERS
from medyanpy.core.words import Letter, compose, highest_stable, in_parts, parse_word, weights_of
from medyanpy.errors import ParameterError
from medyanpy.kicks import Explicit, Kick
from medyanpy.steps import AdaptiveSteps

if TYPE_CHECKING:
    from medyanpy.context import Context

__all__ = ["BAGOGABIntegrator", "BrownianIntegrator", "Letter", "SplittingIntegrator", "VerletIntegrator"]


class SplittingIntegrator(Described, Guarded):
    """A word: letters from left to right, each for the timestep divided by how often it occurs.

    ======  ================================================================================================
    letter  flow
    ======  ================================================================================================
    B       kick of all velocities by the forces; ``B0``, ``B1``, ... by the forces of one group
    A       free flight of beads and vertices; in-triangle points ride along
    G       geodesic flight of in-triangle points over the mesh, with recoil on its vertices
    O       Ornstein-Uhlenbeck: friction and noise
    J       jumps (`System.add_jump`): at both ends of the word, where positions are nearest to their distribution
    D       displacement without velocities, a word of its own but for J around it; see `BrownianIntegrator`
    M( )    block of letters that are accepted or rejected together by their change of the energy; momenta are
            reversed on rejection. ``"M(BAGAB) O"`` has no bias of the timestep: :doc:`/theory/metropolis`
    ======  ================================================================================================

    Parameters
    ----------
    word : str
        Compact or spaced, of either case.
    timestep : float, s, > 0
    temperature : float, kelvin, > 0
        Needed, this or `kT`, if the word has an O or is D; refused with other words.
    kT : float, pN nm, > 0
        Instead of `temperature`, also for dimensionless work.
    seed : int, 0 to 2^64 - 1
        Of the noise. The same seed gives the same trajectory, bit for bit, on any number of threads.
    symmetric : bool
        Refuse words that are not palindromes. Blocks must be; words of blocks, O and J need not.
    kick : Kick, optional
        Force rule of B; by default the forces themselves.
    order : int, 2, 4, 6 or 8
        Above 2 a step is composed of copies of the word, some of them back in time: of words with O at both ends only
        or not at all; of blocks M( ), each by itself. Errors fall as timestep^order where forces are smooth. Where
        their second derivatives jump (soft contacts, cutoffs), or points cross edges, they are as of order 2, at the
        cost of all copies.
    parts : int, optional
        How many copies: of order 4 3 (Yoshida) or 5 (Suzuki), of order 6 9 (Kahan and Li) or 7 (Yoshida), of order 8 17
        (Kahan and Li) or 15 (McLachlan). The first of each by default.
    steps : AdaptiveSteps, optional
        Control that shortens steps; all are `timestep` where none is given. For words of A, B and G.
    rotation : str
        How A turns rigid bodies and nodes of rods: ``"split"``, about one axis after the other in their
        `rotation_parts`, with an error of timestep²; or ``"exact"``, at once and to rounding. The latter costs as much
        as 15 to 100 parts, and is for flights that are long beside the time of a turn (:doc:`/theory/rotation`).

    Raises
    ------
    ParameterError
        A word that cannot be read, or a number outside its domain.

    Notes
    -----
    `timestep`, `temperature` and `kT` may change between steps: by `set`, or by assignment.

    Examples
    --------
    >>> import medyanpy as mp
    >>> mp.SplittingIntegrator("BAGOGAB", 2e-7, temperature=300.0)
    SplittingIntegrator('B A G O G A B', timestep=2e-07, kT=4.14195)
    >>> mp.SplittingIntegrator("BAXAB", 1e-7)
    Traceback (most recent call last):
      ...
    medyanpy.errors.ParameterError: 'X' is not a letter of a word: A, B (or B0 to B31), G, J and O are
        BAXAB
          ^
    """

    changeable: tuple[str, ...] = ("timestep", "temperature", "kT")
    _remedy = "make a new integrator, and a new Simulation with it; only timestep, temperature and kT can be set"

    #: True if D is two flights: the scheme of Leimkuhler and Matthews.
    _in_flights = False

    def __init__(
        self, word: str, timestep: float, *, temperature: float | None = None, kT: float | None = None, seed: int = 0,
        symmetric: bool = True, kick: Kick | None = None, order: int = 2, parts: int | None = None,
        steps: AdaptiveSteps | None = None, rotation: str = "split",
    ) -> None:  # fmt: skip
        self._base = self._letters = parse_word(word, symmetric)
        self._order = whole_number("order", order, at_least=2, at_most=8)
        weights = weights_of(self._order, None if parts is None else whole_number("parts", parts, at_least=1))
        self._parts = len(weights)
        if kick is not None and not isinstance(kick, Kick):
            raise ParameterError(f"kick must be one of medyanpy.kicks, not {kick!r}")
        self._kick = Explicit() if kick is None else kick
        if self._parts > 1:
            self._letters = compose(self._base, self.word, self._order, weights)
        self._timestep = number("timestep", timestep, above=0.0)
        self._kT = thermal_energy(temperature, kT)
        self._in_kelvin = temperature is not None
        noise = next((letter.kind for letter in self._letters if LETTERS[letter.kind].thermal), None)
        if self._kT is None and noise is not None:
            has = "has an O" if noise == "O" else "has noise"
            raise ParameterError(f"the word {self.word!r} {has}: it needs temperature= (kelvin) or kT= (pN nm)")
        if self.blocks and noise != "O":
            raise ParameterError(
                f"the word {self.word!r} has a block M( ), which is accepted or rejected by the temperature, and no O, "
                f"which keeps one: put O behind it, '{self.word} O'"
            )
        if self._kT is not None and noise is None:
            raise self._no_thermostat(temperature, kT)
        self._seed = check_seed("seed", seed)
        self._kick.check_word(self)
        if steps is not None:
            if not isinstance(steps, AdaptiveSteps):
                raise ParameterError(f"steps must be AdaptiveSteps, not {steps!r}")
            steps.check_word(self)
        self._steps = steps
        if rotation not in ("split", "exact"):
            raise ParameterError(f'rotation must be "split" or "exact", not {rotation!r}')
        self._rotation = rotation
        if rotation == "exact" and all(letter.kind != "A" for letter in self._letters):
            raise ParameterError(
                f'rotation="exact" is a way to do A, and the word {self.word!r} has none: leave it out'
            )
        self._context: weakref.ref[Context] | None = None
        #: Timestep and kT, where they are not what the constructor was given.
        self._changed: dict[str, float] = {}
        self._version = 0

    def set(
        self, *, timestep: float | None = None, temperature: float | None = None, kT: float | None = None
    ) -> None:
        """Change the timestep, the temperature, or both; the Context follows at its next step or state.

        Positions, velocities and the time of the Context stay: ``context.set_velocities_to_temperature`` draws
        velocities again. Setting the present value changes nothing.

        Parameters
        ----------
        timestep : float, s, > 0
        temperature : float, kelvin, > 0
        kT : float, pN nm, > 0
            Instead of `temperature`.

        Raises
        ------
        ParameterError
            A number outside its domain, both temperature and kT, or a temperature for a word without O or D; then
            nothing changes.

        Notes
        -----
        Under linearly implicit kicks x stays, and the physical positions x + β h² a(x) move. The kT of a
        `FixmanPotential` is set apart (a `ThermostatWarning` reminds of it).

        Examples
        --------
        >>> import medyanpy as mp
        >>> integrator = mp.BAGOGABIntegrator(2e-7, temperature=300.0)
        >>> integrator.set(temperature=310.0)
        >>> integrator
        BAGOGABIntegrator('J B A G O G A B J', timestep=2e-07, kT=4.28001)
        """
        energy = thermal_energy(temperature, kT)
        if energy is not None and not any(LETTERS[letter.kind].thermal for letter in self._letters):
            raise self._no_thermostat(temperature, kT)
        changed = {} if timestep is None else {"timestep": number("timestep", timestep, above=0.0)}
        changed |= {} if energy is None else {"kT": energy}
        changed = {name: value for name, value in changed.items() if value != getattr(self, name)}
        if not changed:
            return
        self._timestep = changed.get("timestep", self._timestep)
        self._kT = changed.get("kT", self._kT)
        if "kT" in changed:
            self._in_kelvin = temperature is not None
        self._changed |= changed
        self._version += 1
        if "timestep" in changed:
            self._kick.check_word(self)

    def _no_thermostat(self, temperature: float | None, kT: float | None) -> ParameterError:
        given, value = ("kT", kT) if temperature is None else ("temperature", temperature)
        return ParameterError(
            f"the word {self.word!r} has no O (friction and noise), so that nothing keeps beads at {given} = "
            f"{value:g}: add O, as in 'BAOAB', or leave {given}= out; set_velocities_to_temperature starts a run at a "
            "temperature"
        )

    @property
    def version(self) -> int:
        """Count of the changes of timestep and kT."""
        return self._version

    @property
    def letters(self) -> tuple[Letter, ...]:
        return self._letters

    @property
    def word(self) -> str:
        """The word, spaced."""
        parts = [(block, " ".join(letter.name for letter in own)) for block, own in in_parts(self._base)]
        return " ".join(text if block is None else f"M({text})" for block, text in parts)

    @property
    def blocks(self) -> tuple[str, ...]:
        """The blocks M( ) of the word, whose letters are accepted or rejected together."""
        return tuple(
            f"M({' '.join(letter.name for letter in own)})" for block, own in in_parts(self._base)
            if block is not None
        )  # fmt: skip

    @property
    def kick(self) -> Kick:
        """Kick of the letter B."""
        return self._kick

    @property
    def order(self) -> int:
        """Order of the error in the timestep: 2, 4, 6 or 8."""
        return self._order

    @property
    def parts(self) -> int:
        """Copies of the word that a step is composed of: 1 of order 2."""
        return self._parts

    @property
    def steps(self) -> AdaptiveSteps | None:
        """Control that shortens steps; None where all are equal."""
        return self._steps

    @property
    def rotation(self) -> str:
        """Way in which A turns rigid bodies and nodes of rods: "split" or "exact"."""
        return self._rotation

    @property
    def flights(self) -> list[float]:
        """The ways of beads between successive kicks, in units of the timestep, or of a part of a composed step."""
        return self._flights(lambda letter: letter.kicks(None))

    @property
    def overdamped(self) -> bool:
        """True if beads move without velocities: if the word is D."""
        return any(letter.kind == "D" for letter in self._letters)

    @property
    def timestep(self) -> float:
        """Timestep, s."""
        return self._timestep

    @property
    def kT(self) -> float | None:  # noqa: N802 - the symbol of the papers
        """Thermal energy, pN nm; None where the word needs none and none was given."""
        return self._kT

    @property
    def temperature(self) -> float | None:
        """Temperature, kelvin: kT in units of Boltzmann's constant."""
        return None if self._kT is None else self._kT / units.boltzmann

    @property
    def in_kelvin(self) -> bool:
        """True if a temperature was given, so that numbers have units; with kT they need none."""
        return self._in_kelvin

    @property
    def seed(self) -> int:
        return self._seed

    def longest_flight(self, group: int | None = None) -> float:
        """Return the longest flight between two kicks by a group of forces (None: by any), in units of the timestep: 1
        of ABA, BAB and BAOAB, 0 of D. Harmonic modes of these forces are stable below 2 over their frequency and it; of
        higher orders it is defined by that: 1.27 of ABA and BAB of order 4."""
        longest = max(self._flights(lambda letter: letter.kicks(group)), default=0.0)
        if self._order == 2 or longest == 0.0:
            return longest
        # No part is stable beyond 2 over its own flight.
        return 2.0 / highest_stable(self._letters, group, self._parts * 2.0 / longest)

    def _flights(self, kicks: Callable[[Letter], bool]) -> list[float]:
        """Return the ways between successive kicks of some kind, around the word."""
        kicked = [kicks(letter) for letter in self._base]
        if not any(kicked):
            return []
        start = kicked.index(True) + 1
        flights, way = [], 0.0
        for i in (*range(start, len(kicked)), *range(start)):
            if kicked[i] and way > 0.0:
                flights.append(way)
                way = 0.0
            elif self._base[i].kind == "A":
                way += self._base[i].fraction
        return flights

    def step(self, n: int) -> None:
        """Advance the context of this integrator by n steps."""
        context = None if self._context is None else self._context()
        if context is None:
            raise ParameterError("this integrator drives no Context: make a Context or a Simulation with it first")
        context.step(n)

    def bind(self, context: "Context") -> None:
        """Bind this integrator to the Context that it is to drive, which calls this."""
        if self._context is not None and self._context() is not None:
            raise ParameterError("this integrator already drives a Context: make one integrator for each")
        self._context = weakref.ref(context)

    def _arguments_now(self) -> dict[str, Any]:
        """Return the arguments that make it as it is now; kT in place of the temperature, so that no rounding is
        repeated."""
        arguments = super()._arguments_now()
        arguments |= {name: value for name, value in self._changed.items() if name in arguments}
        if self._kT is not None and {"temperature", "kT"} <= arguments.keys():
            del arguments["temperature"]
            arguments["kT"] = self._kT
        return arguments

    def _rest_now(self) -> dict[str, Any]:
        """Return what was set and the constructor of this class does not take."""
        return {name: value for name, value in self._changed.items() if name not in self._arguments}

    def _take_rest(self, arguments: Mapping[str, Any], rest: Mapping[str, Any]) -> None:
        self.set(**rest)

    def __repr__(self) -> str:
        thermal = "" if self._kT is None else f", kT={self._kT:g}"
        kick = "" if isinstance(self._kick, Explicit) else f", kick={self._kick!r}"
        order = "" if self._order == 2 else f", order={self._order}"
        if self._order > 2 and self._parts != len(weights_of(self._order, None)):
            order += f", parts={self._parts}"
        steps = "" if self._steps is None else f", steps={self._steps!r}"
        rotation = "" if self._rotation == "split" else f", rotation={self._rotation!r}"
        numbers = f"timestep={self._timestep:g}{thermal}{kick}{order}{steps}{rotation}"
        return f"{type(self).__name__}({self.word!r}, {numbers})"


class _ThermalIntegrator(SplittingIntegrator):
    """An integrator whose arguments OpenMM has in another order."""

    @classmethod
    def _call_hint(cls, given: tuple[Any, ...]) -> str:
        if len(given) not in (2, 3):
            return ""
        return (
            f"OpenMM's order is the temperature first; here the timestep is, and the temperature goes by its name: "
            f"{cls.__name__}({given[-1]!r}, temperature={given[0]!r}). Friction belongs to beads"
        )


class BAGOGABIntegrator(_ThermalIntegrator):
    """Langevin dynamics of everything: B A G O G A B, which is BAOAB where there are no in-triangle points, with J
    around it for systems with jumps.

    Parameters
    ----------
    timestep, temperature, kT, seed, kick
        As `SplittingIntegrator`.

    Notes
    -----
    Averages have errors of timestep²; those of in-triangle points that cross edges are in docs/parameters.md, "Points
    that cross edges".
    """

    def __init__(
        self, timestep: float, *, temperature: float | None = None, kT: float | None = None, seed: int = 0,
        kick: Kick | None = None,
    ) -> None:  # fmt: skip
        super().__init__("JBAGOGABJ", timestep, temperature=temperature, kT=kT, seed=seed, kick=kick)


class BrownianIntegrator(_ThermalIntegrator):
    r"""Brownian dynamics, without velocities, of plain and oriented beads: the word D, with J around it for systems
    with jumps.

    A plain bead moves by :math:`h F/\gamma + \sqrt{2kTh/\gamma}\,\xi` (Euler and Maruyama). An oriented bead moves in
    its frame before the step, by the diffusion tensor D about its centre of mass,

    .. math:: d = \tfrac{h}{kT}\, D\,(F, T) + h\,b + (2hD)^{1/2}\,\xi, \qquad b_k = \sum_{ij}\epsilon_{kji}D_{ij}

    with i the translations and j the rotations: its centre by the first three components, its orientation exactly by
    the rotation vector of the last three. The mean step h b is not 0 where the centre of mass is not the centre of
    diffusion. Steps are of weak order 1; forces and mobilities must hardly change within one.

    In the scheme of Leimkuhler and Matthews the noise of a plain bead is the mean of that of this step and the one
    before. Averages over equilibrium are of order 2, exact where forces are linear. Constraints may hold the beads:
    links of filaments, surfaces, constraints of your own. In-triangle points fly over their membrane
    (:doc:`/theory/brownian`).

    It replaces words with friction where velocities relax much faster (m/γ) than forces change; the timestep is then
    bounded by the stiffness k: :math:`h \ll \gamma/k`. Masses and inertias have no effect, velocities and kinetic
    energies are 0, temperatures nan. Forces of all groups act in every step. All work of steps is heat.

    Every moving bead needs friction, an oriented one of rotation too. Filaments with directors or with frictions along
    and across are refused. Euler and Maruyama's scheme refuses constraints and in-triangle points. The other one
    refuses bodies that turn, hydrodynamic interactions, constraints and flips of edges with in-triangle points, and
    frictions over masses that differ among connected beads, or among points and a membrane that moves.

    Parameters
    ----------
    timestep, temperature, kT, seed
        As `SplittingIntegrator`; one of `temperature` and `kT` is needed.
    scheme : "Euler-Maruyama" or "Leimkuhler-Matthews"

    Raises
    ------
    ParameterError
        A number outside its domain; by the Context: beads that cannot move like this, or have no friction.

    References
    ----------
    H. Brenner, J. Colloid Interface Sci. 23, 407 (1967): diffusion about any point of a body.
    M. X. Fernandes, J. Garcia de la Torre, Biophys. J. 83, 3039 (2002): steps in the frame of the body.
    R. L. Davidchack, T. E. Ouldridge, M. V. Tretyakov, J. Chem. Phys. 147, 224103 (2017): the limit of Langevin
    equations with full tensors, and other methods for it.
    B. Leimkuhler, C. Matthews, Appl. Math. Res. Express 2013, 34 (2013): the mean of two noises; Proc. R. Soc. A 472,
    20160138 (2016): BAOAB with constraints, of which the other scheme is the limit.

    Examples
    --------
    >>> import medyanpy as mp
    >>> topology = mp.Topology()
    >>> beads = topology.add_beads([[0.0, 0, 0]], mass=1.0, friction=2.0)
    >>> system = mp.System(topology)
    >>> _ = system.add_force(mp.forces.UniformField(beads, [4.0, 0, 0]))
    >>> context = mp.Context(system, mp.BrownianIntegrator(0.1, kT=1e-12), threads=1)
    >>> context.step(10)
    >>> context.get_state(positions=True).positions.round(3)
    array([[2., 0., 0.]])
    """

    def __init__(
        self, timestep: float, *, temperature: float | None = None, kT: float | None = None, seed: int = 0,
        scheme: Literal["Euler-Maruyama", "Leimkuhler-Matthews"] = "Euler-Maruyama",
    ) -> None:  # fmt: skip
        schemes = {"Euler-Maruyama": False, "Leimkuhler-Matthews": True}
        self._in_flights = look_up(schemes, scheme, "scheme of BrownianIntegrator", ParameterError)
        super().__init__("JDJ", timestep, temperature=temperature, kT=kT, seed=seed)

    @property
    def scheme(self) -> str:
        """Scheme of its steps."""
        return "Leimkuhler-Matthews" if self._in_flights else "Euler-Maruyama"


class VerletIntegrator(SplittingIntegrator):
    """Constant energy: B A G A B; where there are no in-triangle points B A B, which is velocity Verlet (RATTLE where
    there are constraints).

    Parameters
    ----------
    timestep : float, s, > 0
    kick, order, parts, steps, rotation
        As `SplittingIntegrator`.

    Notes
    -----
    The energy error is bounded, of order timestep², where forces are smooth. In-triangle points that cross edges of a
    moving mesh, or of a bent one under a force, add a random walk with steps of order timestep, which climbs as
    timestep² (docs/parameters.md, "Points that cross edges"). With a thermostat this is a small rise of
    temperature.
    """

    def __init__(
        self, timestep: float, *, kick: Kick | None = None, order: int = 2, parts: int | None = None,
        steps: AdaptiveSteps | None = None, rotation: str = "split",
    ) -> None:  # fmt: skip
        super().__init__("BAGAB", timestep, kick=kick, order=order, parts=parts, steps=steps, rotation=rotation)
