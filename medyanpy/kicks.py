"""Kicks: what the letter B makes of the forces; linearly implicit ones are not bounded by stiff forces."""

import re
import warnings
from collections.abc import Sequence
from dataclasses import InitVar
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from medyanpy._kernels.selected import implicit_kicks
from medyanpy._tools.declared import argument, declared, number
from medyanpy._tools.described import Described
from medyanpy._tools.names import Guarded
from medyanpy._tools.validation import several, words
from medyanpy.core.flows import Flow, Stage
from medyanpy.core.kick_flows import Conjugation, Damping, OneStep, OnTheGroup
from medyanpy.core.letters import LETTERS
from medyanpy.errors import ParameterError, TimestepWarning, shown

if TYPE_CHECKING:
    from medyanpy.engine.schedule import Schedule
    from medyanpy.integrators import SplittingIntegrator

__all__ = [
    "Explicit", "HamiltonPontryagin", "Kick", "Newmark", "PushForwardNewmark", "ZhangSkeel", "ZhangSkeelSimplified",
    "ZhangSkeelStiff",
]  # fmt: skip

# Up to this many beads before it may the equations of a bead reach, before conjugate gradients are faster.
_WIDEST_BAND = 24
# Tolerance of kicks found by conjugate gradients, relative to them: docs/theory/implicit.md.
_TOLERANCE = 1e-10
_OF_TOLERANCE = "Tolerance of a kick that conjugate gradients find, relative to it."
# Below this friction * timestep / mass, kicks that are not gradients were seen to lose runs (docs/theory/implicit.md).
_LEAST_DAMPING = 1e-3
# Bound of √(βh²kT/m) over the length of a stiff link, below which runs of ZhangSkeel lasted (docs/theory/implicit.md).
_FURTHEST = 0.01


class Kick(Described, Guarded):
    """Rule by which the letter B kicks: a function of where beads are; of some, of more than that.

    Attributes
    ----------
    coordinates : bool
        Whether the positions of a state are coordinates of the method, not positions of particles.
    """

    coordinates = False
    #: Number of the method in the kernel.
    scheme: int
    _remedy = "make a new kick, and a new integrator with it"

    def check_word(self, integrator: "SplittingIntegrator") -> None:
        """Refuse a word that this kick has no meaning in, with a ParameterError."""
        depends = self._beyond_positions()
        if depends is None:
            return
        on, word, instead = depends
        kinds = [letter.kind for letter in integrator.letters]
        # G does nothing here, and flights that meet are one.
        plain = re.sub("A+", "A", "".join(kinds).replace("G", ""))
        if integrator.order != 2:
            problem = f"cannot be composed: order = {integrator.order}"
        elif integrator.blocks:
            problem = f"leaves the phase volume that blocks keep: the word has a block {integrator.blocks[0]}"
        elif any(LETTERS[kind].thermal or LETTERS[kind].apart for kind in kinds):
            kind = next(kind for kind in kinds if LETTERS[kind].thermal or LETTERS[kind].apart)
            problem = f"leaves no known distribution: the word has {kind}"
        elif plain != word:
            problem = f"has a meaning in one word: it must be {' '.join(word)}, not {integrator.word!r}"
        else:
            return
        raise ParameterError(f"{type(self).__name__}: this kick depends on {on}, and {problem}; take {instead}")

    def _beyond_positions(self) -> tuple[str, str, str] | None:
        """Return what the kick depends on but where beads are, the one word that it has a meaning in, and what to take
        instead; None if on nothing."""
        return None

    def check_context(self, schedule: "Schedule") -> None:
        """Warn, when a Context is made, of what is known to go wrong in it."""

    def softens(self, force: str) -> bool:
        """Tell whether the force of this name, however stiff, sets the timestep no limit."""
        return False

    def bind(self, schedule: "Schedule", h: float) -> Any:
        """Return the rule that turns the forces of a Context into the force of kicks that are h apart; None for
        explicit kicks."""
        return None

    def flows(self, schedule: "Schedule", word: Sequence[Stage]) -> list[Flow]:
        """Return what runs around the letters of a word."""
        return []


class Explicit(Kick):
    """The forces as they are: velocity Verlet and its kin."""

    def __repr__(self) -> str:
        return "Explicit()"


@declared
class _Implicit(Kick):
    """A kick by the solution of linear equations."""

    coordinates = True
    _positive_definite = False
    _gamma = 0.5
    beta: float = number(
        "", "β; below 1/4 integrators give a `TimestepWarning`.",
        default=0.25, above=0.0, fixed=True, attribute="Parameter β of the method.",
    )  # fmt: skip

    def _take(self, given: dict[str, Any]) -> None:
        super()._take(given)
        self._beta: float = given["beta"]
        self._tolerance: float = given["tolerance"]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self._said())})"

    def _said(self) -> list[str]:
        """Return arguments, as they are written in a call; tolerances if another one is asked for."""
        return [f"beta={self._beta:g}"] + [f"tolerance={self._tolerance:g}"] * (self._tolerance != _TOLERANCE)

    def softens(self, force: str) -> bool:
        return True

    def check_word(self, integrator: "SplittingIntegrator") -> None:
        super().check_word(integrator)
        name = type(self).__name__
        if any(letter.kind == "D" or letter.group is not None for letter in integrator.letters):
            raise ParameterError(f"{name}: the word {integrator.word!r} must kick by all forces: B, not B0, B1 or D")
        flights = integrator.flights
        if max(flights) - min(flights) > 1e-12:
            raise ParameterError(
                f"{name}: the kicks of the word {integrator.word!r} must be equally far apart: all are for one h"
            )
        if self._beta < 0.5 * self._gamma:
            limit = np.sqrt(2.0 / (self._gamma - 2.0 * self._beta))
            limit /= integrator.longest_flight() * integrator.timestep
            least = "1/4" if self._gamma == 0.5 else f"gamma/2 = {0.5 * self._gamma:g}"
            warnings.warn(
                f"{name}: beta = {self._beta:g} is below {least}: modes of a frequency above {limit:.4g} are unstable "
                f"at the timestep {integrator.timestep:g} s of the word {integrator.word!r}",
                TimestepWarning,
                stacklevel=5,
            )

    def _scale(self, integrator: "SplittingIntegrator", h: float) -> float:
        """Return the βh² of kicks, s², where the letters B share h."""
        return self._beta * (min(integrator.flights) * h) ** 2

    # Equations to solve -------------------------------------------------------------------------------------

    def _solved(self, schedule: "Schedule") -> np.ndarray:
        """Return the places of plain beads that move, (m,); others are refused."""
        refused = [h for h, plain in zip(schedule.layout.handles, _plain(schedule), strict=True) if not plain]
        if refused:
            raise ParameterError(
                f"{type(self).__name__} kicks plain beads, and {refused[0]!r} are others: use ZhangSkeelStiff with the "
                "forces that are stiff and act on plain beads alone"
            )
        return np.flatnonzero(schedule.store.movable_beads())

    def _stiff(self, schedule: "Schedule") -> list[Any]:
        """Return the operations whose second derivatives go into the equations."""
        return list(schedule.bound_forces.values())

    def bind(self, schedule: "Schedule", h: float) -> Any:
        place = self._solved(schedule)
        if not len(place):
            return None
        stiff = self._stiff(schedule)
        wanted = 3 if self.scheme == implicit_kicks.Scheme.SYMPLECTIC else 2
        for operation in stiff:
            if operation.derivatives < wanted:
                which = "third" if operation.derivatives == 2 else "second"
                raise ParameterError(
                    f"{type(self).__name__}: the force {operation.name!r} offers no {which} derivatives: "
                    + ("use ZhangSkeelSimplified or " if which == "third" else "use ")
                    + "ZhangSkeelStiff with the forces that do, if those are the stiff ones"
                )
        i, j = schedule.coupled_places(stiff)
        order, start, width = _band(place, i, j, len(schedule.store.movable_beads()))
        scale = self._scale(schedule.integrator, h)

        return implicit_kicks.CoarseForces(
            stiff, self.scheme, scale, schedule.layout.n, order, start, width, self._tolerance, self._positive_definite
        )


@declared
class _Choice(_Implicit):
    """Kicks with second derivatives in the equations, or with stiffnesses without negative eigenvalues."""

    positive_definite: bool = argument(
        "bool", default=False,
        attribute="True if stiffnesses without negative eigenvalues are used in place of second derivatives.",
    )  # fmt: skip
    tolerance: float = number(
        "",
        "Of kicks that conjugate gradients find (nets, membranes): their error relative to them, as momenta weighted "
        "by masses, is not larger.",
        default=_TOLERANCE, above=0.0, at_most=1e-2, fixed=True, attribute=_OF_TOLERANCE,
    )  # fmt: skip

    def _take(self, given: dict[str, Any]) -> None:
        super()._take(given)
        self._positive_definite = bool(given["positive_definite"])

    def _said(self) -> list[str]:
        return super()._said() + ["positive_definite=True"] * self._positive_definite


class ZhangSkeel(_Choice):
    r"""The symplectic method of Zhang and Skeel: one linear solve, and the third derivatives.

    .. math:: (M + \beta h^2 V'')\,a = -V',\qquad v \leftarrow v + \tfrac h2
              \Bigl(a - \tfrac12 \beta^2 h^4 M^{-1}\, a\cdot V'''\cdot a\Bigr)

    The kick is the gradient of a function of x alone: words stay symplectic, time-reversible and of second order.
    Momentum and angular momentum are kept to the tolerance of the solves. Harmonic modes of any frequency are stable
    for β >= 1/4. Heat must move links of length l by less than a hundredth of it in x,
    :math:`\sqrt{\beta h^2 kT/m} < 0.01\,l`; beyond, runs were lost.

    Particles are at :math:`q = x + \beta h^2 a(x)` (``physical_positions`` of a state): of a stiff mode of frequency ω,
    x is larger by :math:`1 + \beta(\omega h)^2`.

    Parameters
    ----------
    beta : float, > 0
        β; below 1/4 integrators give a `TimestepWarning`. From 1/3 on (0.35) stiff modes cannot excite each other by
        resonance, and much larger timesteps and temperatures are stable.
    positive_definite : bool
        Use of bonds, links, pair forces and penalties a stiffness K without negative eigenvalues in place of V'': the
        same at rest. The kick is then the gradient of

        .. math:: \tilde W_K = V - \tfrac12\beta h^2\, V'\cdot(M + \beta h^2 K)^{-1} V'

        which is never negative for harmonic bonds and penalties. With beta = 0.35 runs bear many times the temperature
        (:doc:`/theory/implicit`).

    Raises
    ------
    ParameterError
        A number outside its domain. By a Context: beads that are not plain (constrained, on surfaces, in triangles,
        oriented, membranes that carry points), a force without second and third derivatives.
    SimulationError
        In a run, without `positive_definite`: equations without a solution.

    References
    ----------
    M. Zhang, R. D. Skeel, Appl. Numer. Math. 25, 297 (1997). M. Tao, H. Owhadi (2016): (3).
    """

    scheme: int = implicit_kicks.Scheme.SYMPLECTIC

    def check_context(self, schedule: "Schedule") -> None:
        integrator = schedule.integrator
        if integrator.kT is None:
            return
        scale = self._scale(integrator, integrator.timestep)
        for force in schedule.system.forces:
            # The method changes little for soft links.
            pairs, nearness = force.stiff_links(schedule.layout.topology, schedule.layout.box, 1.0 / scale)
            moved = np.sqrt(scale * integrator.kT) * nearness
            if not (moved > _FURTHEST).any():
                continue
            worst = int(np.argmax(moved))
            i, j = pairs[worst]
            warnings.warn(
                f"ZhangSkeel: √(βh²kT/m) is {moved[worst]:.2g} of the distance of beads {i} and {j}, which "
                f"{force.name!r} joins, but should be below {_FURTHEST:g}: the run may be lost. Take a timestep below "
                f"{integrator.timestep * _FURTHEST / moved[worst]:.2g} s or heavier beads, or use PushForwardNewmark, "
                "or ZhangSkeelSimplified(positive_definite=True) with friction",
                TimestepWarning,
                stacklevel=4,
            )


class ZhangSkeelSimplified(_Choice):
    r"""Zhang and Skeel's method without third derivatives: :math:`(M + \beta h^2 V'')\,a = -V'`.

    Time-reversible and of second order, stable for harmonic modes as `ZhangSkeel`; symplectic only where V'' has the
    same eigenvectors everywhere, or with one degree of freedom.

    Parameters
    ----------
    positive_definite : bool
        Use of bonds, links, pair forces and penalties a stiffness without negative eigenvalues in place of V'': the
        same at rest, 0 across a bond that is too short. There is always a solution, but the kick is not a gradient, and
        heats: at 5 to 10 times the explicit timestep by 0.01 to 0.04 kT a step for 60 beads. Below friction * timestep
        / mass = 0.001, or without O, a Context gives a `TimestepWarning`. `ZhangSkeel` does not heat.

    Raises
    ------
    ParameterError
        As `ZhangSkeel`; of a force, second derivatives are asked.
    SimulationError
        In a run: equations without a solution.

    References
    ----------
    Tao & Owhadi (2016): (18).
    """

    scheme: int = implicit_kicks.Scheme.SIMPLIFIED

    def check_context(self, schedule: "Schedule") -> None:
        if not self._positive_definite:
            return
        solved = self._solved(schedule)
        if not len(solved):
            return
        if any(letter.kind == "O" for letter in schedule.integrator.letters):
            damping = schedule.layout.gather(lambda h: h.friction)[solved] * schedule.integrator.timestep
            damping /= schedule.store.masses()[solved]
            least = int(np.argmin(damping))
            if damping[least] >= _LEAST_DAMPING:
                return
            handle = schedule.layout.topology.handle_of(int(schedule.layout.order[solved[least]]))
            what = f"friction * timestep / mass = {damping[least]:.2g} of {handle.name!r} is below {_LEAST_DAMPING:g}"
        else:
            what = f"the word {schedule.integrator.word!r} has no O"
        warnings.warn(
            f"{type(self).__name__}(positive_definite=True) is not the gradient of a potential and heats, and {what}: "
            "the run may be lost within thousands of steps. ZhangSkeel(positive_definite=True) and PushForwardNewmark "
            "are gradients; or take more friction",
            TimestepWarning,
            stacklevel=4,
        )


class ZhangSkeelStiff(ZhangSkeelSimplified):
    r"""Zhang and Skeel's simplified method with the second derivatives of the stiff forces alone:
    :math:`(M + \beta h^2 V_1'')\,a = -V_0' - V_1'`.

    Other kinds of beads may be there, if the stiff forces do not act on them: they are kicked explicitly.

    Parameters
    ----------
    beta : float, > 0
        β; below 1/4 integrators give a `TimestepWarning`.
    stiff : list of names of forces
        Those whose second derivatives are used.
    positive_definite : bool
        As of `ZhangSkeelSimplified`.
    tolerance : float, > 0, <= 0.01
        Of kicks that conjugate gradients find (nets, membranes): their error relative to them, as momenta weighted by
        masses, is not larger.

    Raises
    ------
    ParameterError
        As `ZhangSkeelSimplified`; a name that is not that of a force, or a force that acts on beads that are not plain.

    References
    ----------
    Tao & Owhadi (2016): (19).
    """

    def __init__(
        self, beta: float = 0.25, stiff: Any = (), positive_definite: bool = False, tolerance: float = _TOLERANCE
    ) -> None:
        super().__init__(beta, positive_definite, tolerance)
        what = "ZhangSkeelStiff: stiff"
        given = [stiff] if isinstance(stiff, str) else several(what, stiff)
        self._names = tuple(words(what, [getattr(force, "name", force) for force in given]))
        if not self._names:
            raise ParameterError(f"{what} must be names of forces, or forces, not {shown(stiff)}")

    def _arguments_now(self) -> dict[str, Any]:
        return {**super()._arguments_now(), "stiff": list(self._names)}

    def softens(self, force: str) -> bool:
        return force in self._names

    @property
    def stiff(self) -> tuple[str, ...]:
        """Names of the forces whose second derivatives are used."""
        return self._names

    def _solved(self, schedule: "Schedule") -> np.ndarray:
        keep = np.zeros(schedule.layout.n, bool)
        for handle, plain in zip(schedule.layout.handles, _plain(schedule), strict=True):
            keep[schedule.layout.slice_of(handle)] = plain
        return np.flatnonzero(keep & schedule.store.movable_beads())

    def _stiff(self, schedule: "Schedule") -> list[Any]:
        bound = schedule.bound_forces
        for name in self._names:
            if name not in bound:
                raise ParameterError(f"ZhangSkeelStiff: there is no force {name!r}; there are {', '.join(bound)}")
        solved = np.zeros(schedule.layout.n, bool)
        solved[self._solved(schedule)] = True
        chosen = [bound[name] for name in self._names]
        for operation in chosen:
            if operation.derivatives >= 2:
                places = np.concatenate(schedule.coupled_places([operation]))
                other = places[schedule.store.movable_beads()[places] & ~solved[places]]
                if len(other):
                    handle = schedule.layout.topology.handle_of(int(schedule.layout.order[other[0]]))
                    raise ParameterError(
                        f"ZhangSkeelStiff: the stiff force {operation.name!r} acts on {handle!r}, which are not "
                        "plain beads"
                    )
        return chosen


@declared
class PushForwardNewmark(_Implicit):
    r"""Newmark's implicit method in coordinates in which it is symplectic: :math:`M a = -V'(x + \beta h^2 a)`.

    With :math:`q = x + \beta h^2 a` (``physical_positions`` of a state) it is the classical method of Newmark, which
    is not symplectic in q. With γ other than 1/2 it is of order 1, damps, and runs under words ``"BAB"`` alone.

    Raises
    ------
    ParameterError
        As `ZhangSkeelSimplified`. Another word for the solver. With γ other than 1/2, all words but ``"BAB"``.
    SimulationError
        In a run: Newton's method does not converge.

    References
    ----------
    J. C. Simo, N. Tarnow, K. K. Wong, Comput. Methods Appl. Mech. Eng. 100, 63 (1992). Tao & Owhadi (2016): (14).
    """

    solver: InitVar[Literal["newton", "one-step"]] = argument(
        "str",
        '``"newton"``: to round-off, which is symplectic; ``"one-step"``: one step of Newton\'s method, from a = 0, '
        "which is `ZhangSkeelSimplified`.",
        default="newton",
    )  # fmt: skip
    tolerance: float = number(
        "",
        "Of what conjugate gradients find in a step of Newton's method (nets, membranes), relative to it; such steps "
        "are taken until they move beads by roundings only.",
        default=_TOLERANCE, above=0.0, at_most=1e-2, fixed=True, attribute=_OF_TOLERANCE,
    )  # fmt: skip
    gamma: float = number(
        "",
        "γ: a mode that turns by less than a half per step falls by √(1 - (γ - ½)Ω²/(1 + βΩ²)) in each, Ω = ωh. "
        "Below 1/2 modes grow, and below 2β stiff ones are unstable, of which integrators give a `TimestepWarning`.",
        default=0.5, at_least=0.0, kw_only=True, fixed=True, attribute="Parameter γ of the method.",
    )  # fmt: skip

    def _take(self, given: dict[str, Any]) -> None:
        super()._take(given)
        solver = given["solver"]
        if solver not in ("newton", "one-step"):
            raise ParameterError(f'{type(self).__name__}: solver must be "newton" or "one-step", not {solver!r}')
        self._solver = solver
        self._gamma: float = given["gamma"]
        self.scheme: int = implicit_kicks.Scheme.NEWTON if solver == "newton" else implicit_kicks.Scheme.SIMPLIFIED

    def _said(self) -> list[str]:
        gamma = [f"gamma={self._gamma:g}"] * (self._gamma != 0.5)
        return [*super()._said(), *gamma, f"solver={self._solver!r}"]

    def _beyond_positions(self) -> tuple[str, str, str] | None:
        if self._gamma == 0.5:
            return None
        return "the acceleration before the step, as gamma is not 1/2", "BAB", "gamma = 1/2 and O for friction"

    def check_word(self, integrator: "SplittingIntegrator") -> None:
        super().check_word(integrator)
        if self._gamma < 0.5:
            warnings.warn(
                f"{type(self).__name__}: gamma = {self._gamma:g} is below 1/2: modes grow by "
                "√(1 + (½ - γ)Ω²/(1 + βΩ²)) per step, Ω = ωh",
                TimestepWarning,
                stacklevel=5,
            )

    def flows(self, schedule: "Schedule", word: Sequence[Stage]) -> list[Flow]:
        kicks = schedule.kicks()
        return [Damping(*kicks, self._gamma, word)] if kicks is not None and self._gamma != 0.5 else []


class Newmark(PushForwardNewmark):
    r"""Newmark's classical method, for comparison.

    .. math:: q_{k+1} = q_k + h\dot q_k + \tfrac{h^2}2[(1 - 2\beta)a_k + 2\beta a_{k+1}],\qquad
              \dot q_{k+1} = \dot q_k + h[(1 - \gamma)a_k + \gamma a_{k+1}],\qquad M a_k = -V'(q_k)

    Each step is one of `PushForwardNewmark` from q to :math:`x = q - \beta h^2 a(q)` and back: states have positions,
    energies and forces of the particles. With γ = 1/2 it is not symplectic in q, but conjugate to what is.

    Parameters
    ----------
    beta : float, > 0
        β; below 1/4 integrators give a `TimestepWarning`.
    tolerance : float, > 0, <= 0.01
        As of `PushForwardNewmark`.
    gamma : float, >= 0
        As of `PushForwardNewmark`.
    solver : str
        ``"newton"``: to round-off. ``"one-step"``: one step of Newton's method from :math:`q_k`, with the acceleration
        of the linear equations, which the next step takes for its :math:`a_k`. It is of order 2, loses energy, and runs
        under words ``"BAB"`` alone. Where beads are put elsewhere it starts with the forces there.

    Raises
    ------
    ParameterError
        As `PushForwardNewmark`. ``order=4``, whose parts have coordinates of their own. A word with a block M( ).
    SimulationError
        In a run: Newton's method does not converge, or equations have no solution.

    References
    ----------
    N. M. Newmark, J. Eng. Mech. Div. ASCE 85 (EM3), 67 (1959). Tao & Owhadi (2016): (12), (13), and figure 1.
    """

    coordinates = False

    def __init__(
        self, beta: float = 0.25, tolerance: float = _TOLERANCE, *, gamma: float = 0.5,
        solver: Literal["newton", "one-step"] = "newton",
    ) -> None:  # fmt: skip
        super().__init__(beta, solver, tolerance, gamma=gamma)
        if solver == "one-step":
            self.scheme = implicit_kicks.Scheme.CARRIED

    def _said(self) -> list[str]:
        solver = super()._said()[-1:] * (self._solver != "newton")
        return [*super()._said()[:-1], *solver]

    def _beyond_positions(self) -> tuple[str, str, str] | None:
        if self._solver == "newton":
            return super()._beyond_positions()
        return "velocities and on the acceleration of the step before", "BAB", 'solver="newton"'

    def check_word(self, integrator: "SplittingIntegrator") -> None:
        super().check_word(integrator)
        if integrator.order != 2:
            raise ParameterError(
                f"Newmark is of order 2, but order = {integrator.order}: PushForwardNewmark can be composed"
            )
        if integrator.blocks:
            raise ParameterError(
                f"Newmark does not keep the volume of phase space, as {integrator.blocks[0]} asks for: "
                "PushForwardNewmark does"
            )

    def bind(self, schedule: "Schedule", h: float) -> Any:
        rule = super().bind(schedule, h)
        if rule is not None and self._solver == "one-step":
            shape, kept = (schedule.layout.n, 3), schedule.remembered
            # No bead is there: the first step takes its accelerations from the forces.
            at = kept.setdefault("accelerated at", np.full(shape, np.finfo(float).max))
            rule.carry(at, kept.setdefault("accelerations", np.zeros(shape)))
        return rule

    def flows(self, schedule: "Schedule", word: Sequence[Stage]) -> list[Flow]:
        kicks = schedule.kicks()
        if kicks is None:
            return []
        if self._solver == "one-step":
            return [*super().flows(schedule, word), OneStep(*kicks, schedule.layout.n)]
        return [*super().flows(schedule, word), Conjugation(*kicks, word[0].index, word[-1].index)]


class HamiltonPontryagin(Kick):
    r"""The variational Euler method on the group of rotations, for bodies with three equal moments of inertia.

    .. math:: (1 + \tfrac14h^2\Omega_{k+1}^2)\,\Omega_{k+1} = (1 + \tfrac14h^2\Omega_k^2)\,\Omega_k + h\,T(R_k)/I,
              \qquad R_{k+1} = R_k\,\mathrm{cay}(h\Omega_{k+1})

    with the angular velocity Ω and the torque T in the frame of the body. It is the benchmark of the paper, of order 1:
    rotations stay rotations, and the momenta of symmetries are kept. Under the word ``"BA"`` (``symmetric=False``)
    alone; beads without orientation move by the explicit variational Euler method there.

    Raises
    ------
    ParameterError
        Another word, or ``order=4``. By a Context: bodies whose moments of inertia differ, and rods.

    References
    ----------
    N. Bou-Rabee, J. E. Marsden, Found. Comput. Math. 9, 197 (2009). Tao & Owhadi (2016): (34), (35).
    """

    def __repr__(self) -> str:
        return "HamiltonPontryagin()"

    def _beyond_positions(self) -> tuple[str, str, str] | None:
        return "angular velocities", "BA", "letters A and B with explicit kicks"

    def check_context(self, schedule: "Schedule") -> None:
        joint = schedule.layout.topology.joint
        if joint is not None and joint.has_arms:
            raise ParameterError(
                f"HamiltonPontryagin: {joint.first!r} joins bodies, whose flights have the impulses of joints: leave "
                "kick= out"
            )
        for handle in schedule.layout.handles:
            inertia = getattr(handle, "inertia", None)
            if inertia is None:
                continue
            unequal = np.ptp(inertia, axis=1) > 1e-12 * np.max(inertia, axis=1)
            if unequal.any():
                i = int(np.argmax(unequal))
                raise ParameterError(
                    f"HamiltonPontryagin: bead {handle.beads[i]} ({handle.name!r}): its moments of inertia are "
                    f"{', '.join(f'{value:g}' for value in inertia[i])}, but must be equal: leave kick= out"
                )

    def flows(self, schedule: "Schedule", word: Sequence[Stage]) -> list[Flow]:
        return [OnTheGroup(schedule.integrator.timestep, len(schedule.store.orientation))]


def _plain(schedule: "Schedule") -> list[bool]:
    """Tell, for the handles in internal order, whether positions, velocities and masses alone move their beads."""
    layout = schedule.layout
    carriers = {p.membrane for p in layout.topology.point_handles}
    joint = layout.topology.joint
    held = set() if joint is None else joint.handles
    return [
        handle not in schedule.flows and handle not in held and handle.kind.in_space
        and handle not in layout.topology.point_handles and not (handle in carriers and not handle.fixed)
        for handle in layout.handles
    ]  # fmt: skip


def _band(place: np.ndarray, i: np.ndarray, j: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return an order of solution of beads that are coupled in pairs (i, j): places (m,), where each molecule starts,
    and the width of its band (m,), -1 in molecules where it would be too wide."""
    from scipy import sparse
    from scipy.sparse import csgraph

    m = len(place)
    number = np.full(n, -1)
    number[place] = np.arange(m)
    i, j = number[i], number[j]
    both = (i >= 0) & (j >= 0)
    i, j = i[both], j[both]
    graph = sparse.coo_array((np.ones(len(i)), (i, j)), shape=(m, m)).tocsr()
    graph = (graph + graph.T).tocsr()
    _, molecule = csgraph.connected_components(graph, directed=False)
    rank = np.empty(m, np.int64)
    rank[csgraph.reverse_cuthill_mckee(graph, symmetric_mode=True)] = np.arange(m)
    # Molecules follow each other in the order of their first beads.
    first = np.full(molecule.max() + 1, m)
    np.minimum.at(first, molecule, np.arange(m))
    order = np.lexsort([rank, first[molecule]])
    where = np.empty(m, np.int64)
    where[order] = np.arange(m)
    starts = np.flatnonzero(np.r_[True, np.diff(first[molecule[order]]) != 0, True])
    width = np.zeros(len(starts) - 1, np.int64)
    if len(i):
        np.maximum.at(width, np.searchsorted(starts, where[i], side="right") - 1, np.abs(where[i] - where[j]))
    each = np.repeat(width, np.diff(starts))
    # The first rows of a molecule reach no further than its start.
    each = np.minimum(each, np.arange(m) - np.repeat(starts[:-1], np.diff(starts)))
    each[np.repeat(width > _WIDEST_BAND, np.diff(starts))] = -1
    return place[order].astype(np.int32), starts.astype(np.int32), each.astype(np.int32)
