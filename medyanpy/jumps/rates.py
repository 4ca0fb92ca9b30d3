"""Driven rates of links, not in balance with their energy, by their authors' names."""

from typing import Any

from medyanpy._tools.declared import declared, number
from medyanpy._tools.described import Described
from medyanpy.errors import ParameterError

__all__ = ["Bell", "CatchSlip", "DrivenRates", "FlatWindow"]


class DrivenRates(Described):
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

    The rate is :math:`k_0 [(1-w) e^{F/F_s} + w e^{-F/F_c}]`.

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

    A link under the tension F unbinds at :math:`k_0 e^{F/F_s}`.

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
