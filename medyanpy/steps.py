"""Adaptive steps: timesteps that follow what beads are near, and lead back when momenta are reversed."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from medyanpy._kernels.letters.pace import Pace
from medyanpy._tools.described import Described
from medyanpy._tools.names import Guarded, look_up
from medyanpy._tools.validation import number
from medyanpy.beads import Directors
from medyanpy.core.letters import LETTERS
from medyanpy.errors import ParameterError, shown
from medyanpy.forces import CustomPair, ExternalField, Force
from medyanpy.kicks import Explicit

if TYPE_CHECKING:
    import numpy as np

    from medyanpy.core.layout import Layout
    from medyanpy.integrators import SplittingIntegrator

__all__ = ["AdaptiveSteps"]


class AdaptiveSteps(Described, Guarded):
    r"""Steps of the length :math:`\Delta t\,(1 + c)^{-p}`, with a control c that users write as an energy of beads.

    A density of steps ρ, which is part of the state, follows :math:`(1 + c)^p`; each step lasts Δt/ρ:

    .. math:: \rho_{n+1/2} = \rho_n + \tfrac{\Delta t}{2}\,G(x_n, v_n),\qquad
              \rho_{n+1} = \rho_{n+1/2} + \tfrac{\Delta t}{2}\,G(x_{n+1}, v_{n+1}),\qquad
              G = p\,\frac{\mathrm d}{\mathrm dt}\ln(1 + c)

    Reversed velocities lead back. The map is not symplectic: a step of varying length cannot be, and keeps phase volume
    only with ρ counted in.

    Parameters
    ----------
    pairs : str, optional
        Term of c for each pair of beads, a function of their distance r (nm), such as ``"(2/r)^3"``; as the energy of
        `forces.CustomPair`, but without a unit.
    cutoff : float, nm, > 0, optional
        Distance beyond which pairs count nothing; needed with `pairs`. The term at the cutoff is subtracted.
    field : str, optional
        Term of c for each bead, a function of x, y, z (nm); as the energy of `forces.ExternalField`.
    beads : str or sequence of str, optional
        Names of the handles whose beads count; all but directors where none are given.
    power : float, > 0
        p. With 1/2, and a c that grows like the square of the highest frequency, steps are as long as a fixed part of
        its period.

    Raises
    ------
    ParameterError
        Neither `pairs` nor `field`, a cutoff without pairs or pairs without one, a number outside its domain. By the
        integrator: a word with O, J, D or M( ), or that is not a palindrome. An order above 2, or a linearly implicit
        kick. By the Context: a name that is not that of a handle, or text that is not an energy.

    Notes
    -----
    Each step costs one more evaluation of c and of its slope. ``set_positions`` and ``set_state`` start the density
    again at :math:`(1 + c)^p`; velocities that are set leave it. Where 1 + c or ρ is not positive, the run stops.

    References
    ----------
    E. Hairer, G. Söderlind, SIAM J. Sci. Comput. 26, 1838 (2005).

    Examples
    --------
    A comet: steps are short near the sun.

    >>> import medyanpy as mp
    >>> steps = mp.AdaptiveSteps(pairs="1/r^3", cutoff=100.0)
    >>> mp.VerletIntegrator(0.05, steps=steps)
    VerletIntegrator('B A G A B', timestep=0.05, steps=AdaptiveSteps(pairs='1/r^3', cutoff=100, power=0.5))
    """

    _remedy = "make new AdaptiveSteps, and a new integrator with them"

    def __init__(
        self, *, pairs: str | None = None, cutoff: float | None = None, field: str | None = None,
        beads: str | Sequence[str] | None = None, power: float = 0.5,
    ) -> None:  # fmt: skip
        if pairs is None and field is None:
            raise ParameterError("AdaptiveSteps: give pairs= or field=, by which steps are shortened")
        for name, text in (("pairs", pairs), ("field", field)):
            if text is not None and not isinstance(text, str):
                raise ParameterError(f"AdaptiveSteps: {name} must be text, not {shown(text)}")
        if pairs is not None and cutoff is None:
            raise ParameterError("AdaptiveSteps: pairs= needs cutoff=, beyond which they count nothing")
        if pairs is None and cutoff is not None:
            raise ParameterError("AdaptiveSteps: cutoff= belongs to pairs=, which are not given")
        names = (beads,) if isinstance(beads, str) else beads
        if names is not None and not (
            isinstance(names, Sequence) and len(names) and all(isinstance(name, str) for name in names)
        ):
            raise ParameterError(f"AdaptiveSteps: beads must be names of handles, not {shown(beads)}")
        self._pairs, self._field = pairs, field
        self._beads = None if names is None else tuple(names)
        self._cutoff = None if cutoff is None else number("AdaptiveSteps: cutoff", cutoff, above=0.0)
        self._power = number("AdaptiveSteps: power", power, above=0.0)

    @property
    def power(self) -> float:
        """p"""
        return self._power

    def check_word(self, integrator: "SplittingIntegrator") -> None:
        """Refuse, with a ParameterError, a word that does not lead back when velocities are reversed."""
        own = f"AdaptiveSteps: the word {integrator.word!r}"
        need = "they keep no temperature, and need a palindrome of A, B and G, such as BAGAB"
        if integrator.blocks:
            raise ParameterError(f"{own} has a block {integrator.blocks[0]}: {need}")
        for letter in integrator.letters:
            if not LETTERS[letter.kind].reversible:
                raise ParameterError(f"{own} has {letter.kind} ({LETTERS[letter.kind].does}): {need}")
        names = [letter.name for letter in integrator.letters]
        if names != names[::-1]:
            raise ParameterError(f"{own} is not a palindrome: {need}")
        if integrator.order != 2:
            raise ParameterError(
                f"AdaptiveSteps: order = {integrator.order} but must be 2: a composition needs the same step in all of "
                "its parts"
            )
        if not isinstance(integrator.kick, Explicit):
            raise ParameterError(
                f"AdaptiveSteps: kick = {integrator.kick!r} but must be Explicit(): its function of x is another for "
                "each length of the step"
            )

    def bind(self, layout: "Layout") -> list[Any]:
        """Return the operations whose energies add up to c."""
        # Directors are directions, not places.
        handles = [handle for handle in layout.handles if not isinstance(handle, Directors)]
        if self._beads is not None:
            known = {handle.name: handle for handle in handles}
            handles = [look_up(known, name, "handle of AdaptiveSteps", ParameterError) for name in self._beads]
        forces: list[Force] = []
        if self._pairs is not None and self._cutoff is not None:
            forces.append(CustomPair(handles, handles, self._pairs, cutoff=self._cutoff, name="AdaptiveSteps: pairs"))
        if self._field is not None:
            forces.append(ExternalField(handles, self._field, name="AdaptiveSteps: field"))
        return [force.bind(layout) for force in forces]

    def around(self, control: Any, state: "np.ndarray", timestep: float) -> tuple[Any, Any]:
        """Return the operations before and after the letters of a step: with the sum of what `bind` gives, and the
        (3,) array of density and time."""
        first, last = (Pace(control, state, timestep, self._power, begins) for begins in (True, False))
        return first, last

    def __repr__(self) -> str:
        said = [f"pairs={self._pairs!r}, cutoff={self._cutoff:g}"] if self._pairs is not None else []
        said += [f"field={self._field!r}"] if self._field is not None else []
        said += [f"beads={self._beads!r}"] if self._beads is not None else []
        return f"AdaptiveSteps({', '.join(said)}, power={self._power:g})"
