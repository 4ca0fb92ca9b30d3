"""Detection of runaways: the account of how much kinetic energy a bead can have."""

import numpy as np

from medyanpy._tools.validation import number
from medyanpy.errors import ParameterError

__all__ = ["SLOW", "Account"]

#: A bead that moves by less than this part of the shortest length in a step, or turns by fewer radians, has not run
#: away: beads at rest move by round-off.
SLOW = 1e-6
#: A bead may have so many times the potential energy that has been released: splittings conserve energy to a factor of
#: order 1 where the timestep is still stable.
_RELEASED = 4.0
#: A bead that was looked into and had come by its energy is looked into again at so many times of it.
_AGAIN = 8.0
_CLOSED, _NO_HEAT = -2.0, -1.0


class Account:
    """Account of the kinetic energy that a bead may have.

    A bead with mass m at temperature T that is `factor` times as fast as :math:`\\sqrt{kT/m}` has a kinetic energy of
    ``factor² / 2`` kT. As much is admitted; with the largest kinetic energy that any bead had when the account was
    opened in place of kT, if that is larger or if there is no thermostat. Four times the potential energy that has been
    released since is admitted beyond that. Linearly implicit kicks conserve another energy: with them, what one step
    under the forces at the opening would give a bead counts as a kinetic energy that it had.

    An account is opened by the first step after anything was changed from outside: numbers of forces, positions,
    velocities, the temperature. It is part of the state.

    Attributes
    ----------
    array : (5,) float array
        The bound beyond which a bead is looked into, pN nm (negative: there is none). The potential energy at the
        opening, and what a bead may have without any being released. kT (-1: no thermostat, -2: not open), and the
        factor, 0 where nothing shall be looked for.
    """

    def __init__(self) -> None:
        self.array: np.ndarray = np.array([-1.0, 0.0, 0.0, _CLOSED, 20.0])

    @property
    def factor(self) -> float | None:
        """Times the thermal speed; None where nothing is looked for."""
        return float(self.array[4]) or None

    @factor.setter
    def factor(self, factor: float | None) -> None:
        if factor is not None and number("runaway", factor, above=0.0) < 1.0:
            raise ParameterError(f"runaway = {factor:g} but must be >= 1 thermal speeds, or None for no bound")
        self.array[4] = 0.0 if factor is None else factor
        self.close()

    @property
    def bound(self) -> np.ndarray:
        """Bound beyond which a bead is looked into, (1,); followed when it changes."""
        return self.array[:1]

    def close(self) -> None:
        """Close the account after a change from outside; the next step opens another."""
        self.array[0], self.array[3] = -1.0, _CLOSED

    def is_open(self, kT: float | None) -> bool:
        """Tell whether the account holds for this temperature."""
        return bool(self.array[3] == (_NO_HEAT if kT is None else kT))

    def open(self, kT: float | None, kinetic: float, potential: float) -> None:
        """Open the account with the largest kinetic energy of a bead, and the potential energy of all (pN nm)."""
        own, bound = 0.0, -1.0
        # A start that is not finite is not a measure of anything: what comes of it, other faults tell.
        if self.factor and np.isfinite(kinetic * self.factor**2 + potential):
            own = bound = 0.5 * self.factor**2 * max(kT or 0.0, kinetic)
        self.array[:4] = bound, potential if bound >= 0.0 else 0.0, own, _NO_HEAT if kT is None else kT

    def admits(self, kinetic: float, potential: float) -> bool:
        """Tell whether a bead can have a kinetic energy beyond the bound, at this potential energy."""
        released = self.array[1] - potential
        admitted = bool(kinetic <= self.array[2] + _RELEASED * max(released, 0.0))
        if admitted:
            self.array[0] = _AGAIN * kinetic
        return admitted
