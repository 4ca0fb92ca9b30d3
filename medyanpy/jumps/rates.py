"""Driven rates of links, not in balance with their energy, by their authors' names."""

from medyanpy._tools.described import Described
from medyanpy._tools.validation import number
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

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v:g}' for k, v in self._arguments.items() if v is not None)})"


class Bell(DrivenRates):
    r"""Slip bonds: a link under the tension F unbinds at :math:`k_0 e^{F/F_s}`.

    Parameters
    ----------
    force : float, pN, > 0
        F_s, which is kT over the distance to the transition state: 4 to 20 pN of most crosslinkers.

    References
    ----------
    G. I. Bell, Science 200, 618 (1978).
    """

    def __init__(self, force: float) -> None:
        self.slip: float = number("Bell: force", force, above=0.0)


class CatchSlip(DrivenRates):
    r"""Catch-slip bonds: a link under the tension F unbinds more slowly at first, and faster at larger F.

    The rate is :math:`k_0 [(1-w) e^{F/F_s} + w e^{-F/F_c}]`.

    Parameters
    ----------
    catch_share : float, 0 to 1
        w, the share of the catch pathway in k0.
    catch, slip : float, pN, > 0
        F_c and F_s.

    References
    ----------
    Y. V. Pereverzev, O. V. Prezhdo, M. Forero, E. V. Sokurenko, W. E. Thomas, Biophys. J. 89, 1446 (2005).
    """

    def __init__(self, catch_share: float, catch: float, slip: float) -> None:
        self.catch_share: float = number("CatchSlip: catch_share", catch_share, at_least=0.0, at_most=1.0)
        self.catch: float = number("CatchSlip: catch", catch, above=0.0)
        self.slip: float = number("CatchSlip: slip", slip, above=0.0)


class FlatWindow(DrivenRates):
    r"""Rates of MEDYAN's crosslinkers: sites at a distance within a window bind, all at the same rate.

    A link under the tension F unbinds at :math:`k_0 e^{F/F_s}`.

    Parameters
    ----------
    lower, upper : float, nm, 0 <= lower < upper
    force : float, pN, > 0, optional
        F_s; where none is given the tension has no effect.

    References
    ----------
    K. Popov, J. Komianos, G. A. Papoian, PLoS Comput. Biol. 12, e1004877 (2016).
    """

    def __init__(self, lower: float, upper: float, force: float | None = None) -> None:
        lower = number("FlatWindow: lower", lower, at_least=0.0)
        upper = number("FlatWindow: upper", upper, above=0.0)
        if not lower < upper:
            raise ParameterError(f"FlatWindow: lower = {lower:g} but must be < upper = {upper:g}")
        self.window: tuple[float, float] = (lower, upper)
        if force is not None:
            self.slip: float = number("FlatWindow: force", force, above=0.0)
