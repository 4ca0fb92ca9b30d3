"""Driven rates of links, not in balance with their energy, by their authors' names."""

from typing import Any

from medyanpy._tools.declared import declared, number
from medyanpy._tools.described import Described
from medyanpy.errors import ParameterError

__all__ = [
    "Bell", "CatchSlip", "CytosimGrowth", "CytosimMotor", "DrivenRates", "FlatWindow", "GrowthLaw", "MedyanMotor",
    "MedyanRatchet", "MotorRates",
]  # fmt: skip


@declared
class _Averaging(Described):
    """Base of laws that may read the mean of a tension."""

    average: float | None = number(
        "s", "T, over which the tension is averaged; that of the moment where none is given. See `DrivenRates`.",
        default=None, kw_only=True, above=0.0, fixed=True,
    )  # fmt: skip


class DrivenRates(_Averaging):
    r"""Rates of binding and unbinding of links without detailed balance.

    A link under the tension F unbinds at :math:`k_0 [(1-w) e^{F/F_s} + w e^{-F/F_c}]`. Such rates, with those of
    binding, describe molecules that consume energy, or models that do not count it. In a stationary system heat then
    flows all the time, which is reported as chemical energy (`Simulation.report_work`).

    Attributes
    ----------
    window : (float, float) or None, nm
        The lengths at which links bind, at a rate that is the same for all; None: as balanced links do, at
        exp(-ΔU/kT) of the rate of a relaxed link.
    catch_share : float
        w
    slip, catch : float, pN
        The forces of the two pathways; inf where the tension has no effect.

    Notes
    -----
    With `average`, T, the rate takes max(m, 0) in place of F, with the mean :math:`dm/dt = (F - m)/T` of the
    pull, which is below 0 where a spring pushes. It begins with m = 0 when a link binds. In each letter J all links are
    measured.
    """

    window: tuple[float, float] | None = None
    catch_share: float = 0.0
    slip: float = float("inf")
    catch: float = float("inf")

    def _take(self, given: dict[str, Any]) -> None:
        super()._take(given)
        vars(self).update(given)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v:g}' for k, v in self._arguments.items() if v is not None)})"


@declared
class Bell(DrivenRates):
    r"""Slip bonds: a link under the tension F unbinds at :math:`k_0 e^{F/F_s}`.

    F is that of the moment. With thermal motion a link that is relaxed on average lets go
    :math:`\tfrac12 + e^{s^2/2}\Phi(s)` times as often as :math:`k_0` says, :math:`s = \sqrt{\kappa kT}/F_s`: 1.166 and
    3.105 times for 8 pN/nm at 300 K and F_s of 17.3 and 4 pN. With `average`, T, of a link that relaxes within τ, it is
    :math:`s = \sqrt{\kappa kT\, \tau/(\tau + T)}/F_s`: 1.234, 1.063 and 1.019 times at T = 10, 100 and 1000 τ for 4 pN.

    References
    ----------
    G. I. Bell, Science 200, 618 (1978).
    """

    force: float = number(
        "pN", "F_s, which is kT over the distance to the transition state: 4 to 20 pN of most crosslinkers.",
        above=0.0, fixed=True,
    )  # fmt: skip

    def _take(self, given: dict[str, Any]) -> None:
        super()._take(given)
        self.slip: float = self.force


@declared
class CatchSlip(DrivenRates):
    r"""Catch-slip bonds: a link under the tension F unbinds more slowly at first, and faster at larger F.

    The rate is :math:`k_0 [(1-w) e^{F/F_s} + w e^{-F/F_c}]`. F is that of the moment without `average`, see `Bell`.

    References
    ----------
    Y. V. Pereverzev, O. V. Prezhdo, M. Forero, E. V. Sokurenko, W. E. Thomas, Biophys. J. 89, 1446 (2005).
    """

    catch_share: float = number("", "w, the share of the catch pathway in k0.", at_least=0.0, at_most=1.0, fixed=True)
    catch: float = number("pN", "F_c.", above=0.0, fixed=True)
    slip: float = number("pN", "F_s.", above=0.0, fixed=True)


@declared
class FlatWindow(DrivenRates):
    r"""Rates of MEDYAN's crosslinkers: sites at a distance within a window bind, all at the same rate.

    A link under the tension F unbinds at :math:`k_0 e^{F/F_s}`. F is that of the moment without `average`, see `Bell`.

    References
    ----------
    K. Popov, J. Komianos, G. A. Papoian, PLoS Comput. Biol. 12, e1004877 (2016).
    """

    lower: float = number("nm", "The window, lower < upper.", at_least=0.0, fixed=True)
    upper: float = number("nm", "The window, lower < upper.", above=0.0, fixed=True)
    force: float | None = number(
        "pN", "F_s; where none is given the tension has no effect.", default=None, above=0.0, fixed=True
    )

    def _take(self, given: dict[str, Any]) -> None:
        super()._take(given)
        if not self.lower < self.upper:
            raise ParameterError(f"FlatWindow: lower = {self.lower:g} but must be < upper = {self.upper:g}")
        self.window: tuple[float, float] = (self.lower, self.upper)
        if self.force is not None:
            self.slip: float = self.force


class MotorRates(DrivenRates):
    """Velocities of motors by the force of the moment, without a way back."""

    #: As the kernel of `Motors` knows them: 1 linear, 2 as of Hill.
    law = 0
    alpha: float = 1.0
    #: Whether a bundle is one head with a rate of its own.
    lumped = False


@declared
class CytosimMotor(MotorRates):
    r"""Velocity of Cytosim's motors: :math:`v_0 (1 - F/F_s)` under a load F, from 0 to v_0, with the stall force F_s.

    The load is the pull of the link backwards along the filament, at the moment. Thermal motion makes it fluctuate by
    :math:`\sqrt{\kappa kT}`, and the velocity is 0 beyond stall, and v_0 where the link pulls forth. So at stall
    motors still walk: at 0.030, 0.074, 0.135 and 0.309 v_0 with springs of 0.05, 0.3, 1 and 8 pN/nm, at 300 K and F_s
    of 6 pN. Under the tension T it lets go at :math:`k_\mathrm{off} e^{T/F_u}`.

    References
    ----------
    F. Nedelec, D. Foethke, New J. Phys. 9, 427 (2007).
    """

    unbinding_force: float | None = number(
        "pN", "F_u; where none is given the tension does not matter.", default=None, above=0.0, fixed=True
    )
    law = 1

    def _take(self, given: dict[str, Any]) -> None:
        super()._take(given)
        if self.unbinding_force is not None:
            self.slip: float = self.unbinding_force


@declared
class MedyanMotor(MotorRates):
    r"""Rates of MEDYAN's motors, whose bundles of heads are one: of velocity, of catch bonds, of letting go.

    The velocity under a load F is :math:`v_0 (F_s - F)/(F_s + F/\alpha)`, from 0 to v_0, with the stall force F_s, and
    under the tension T a bundle lets go at :math:`k_0 e^{-T/F_c}`,

    .. math:: k_0 = \frac{N k_\mathrm{on}}{[(k_\mathrm{on} + k_\mathrm{off})/k_\mathrm{off}]^N - 1},

    which is the inverse of the mean time from one bound head of N to none, while heads bind and let go one by one.

    The stall force is that of the bundle: N heads use up N ATP over a step, which bounds it.

    MEDYAN reads forces where the energy is least. Here the load is that of the moment, which thermal motion makes
    fluctuate by :math:`\sqrt{\kappa kT}`. At half of the stall force motors are then 1.03, 1.22, 1.72 and 2.74 times as
    fast, with springs of 0.05, 0.3, 1 and 8 pN/nm, at 300 K and F_s = 6 pN.

    References
    ----------
    K. Popov, J. Komianos, G. A. Papoian, PLoS Comput. Biol. 12, e1004877 (2016). T. Erdmann, U. S. Schwarz, Phys. Rev.
    Lett. 92, 108102 (2004): the mean time.
    """

    catch_force: float | None = number(
        "pN", "F_c; where none is given the tension does not matter.", default=None, above=0.0, fixed=True
    )
    alpha: float = number("", "α of the velocity.", default=0.2, above=0.0, fixed=True)
    law = 2
    lumped = True

    def _take(self, given: dict[str, Any]) -> None:
        super()._take(given)
        if self.catch_force is not None:
            self.catch_share: float = 1.0
            self.catch: float = self.catch_force


@declared
class GrowthLaw(Described):
    r"""Rates of growth that read a force, without detailed balance: those of other programs, by their names.

    An end that is pushed back with the force f, averaged over a time τ, takes subunits at
    :math:`k_\mathrm{on} C e^{-f/F}` and loses them at :math:`k_\mathrm{off}`. Where f pulls, as at f = 0. The force is
    that of all forces on the end along its link. Its mean moves towards the force of the moment by
    :math:`1 - e^{-h/\tau}` in each letter of duration h, and begins at 0.

    Attributes
    ----------
    force : float or None, pN
        F; None: kT over the length of a subunit.
    """

    force: float | None = None
    average: float = number(
        "s", "τ: long beside the time between knocks, some µs at a bead or a membrane, and short beside that of a "
        "subunit, 9 ms of actin at 10 µM.", default=1e-3, at_least=0.0, kw_only=True, fixed=True,
    )  # fmt: skip

    def _take(self, given: dict[str, Any]) -> None:
        super()._take(given)
        vars(self).update(given)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v:g}' for k, v in self._arguments.items())})"


@declared
class MedyanRatchet(GrowthLaw):
    r"""MEDYAN's ratchet: ends grow at :math:`k_\mathrm{on} C e^{-f\delta/kT}`, with the length δ of a subunit.

    MEDYAN takes f where the energy is least, without thermal motion. Here an end knocks at what it pushes, and f has to
    be averaged over many knocks. With the force of the moment, ``average=0``, growth is 5.9 times too fast at 3 pN
    against a wall of 100 pN/nm.

    References
    ----------
    C. S. Peskin, G. M. Odell, G. F. Oster, Biophys. J. 65, 316 (1993). K. Popov, J. Komianos, G. A. Papoian, PLoS
    Comput. Biol. 12, e1004877 (2016).
    """


@declared
class CytosimGrowth(GrowthLaw):
    r"""Cytosim's growing force: ends grow at :math:`k_\mathrm{on} C e^{-f/F}`.

    References
    ----------
    F. Nedelec, D. Foethke, New J. Phys. 9, 427 (2007).
    """

    force: float = number("pN", "F, the growing force.", above=0.0, fixed=True)
