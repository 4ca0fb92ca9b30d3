"""Forces that belong to constraints written by a user: their penalty form, and their Fixman potential."""

import collections.abc
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from medyanpy._kernels.core.program import Sequence
from medyanpy._kernels.selected import joint_constraints, terms
from medyanpy._tools.described import scalar_if_one
from medyanpy._tools.domains import Domain, domain_table
from medyanpy._tools.images import expect_near
from medyanpy._tools.types import Numbers
from medyanpy.beads import Constraints
from medyanpy.core.handles import bead_numbers, handles_in
from medyanpy.errors import TopologyError
from medyanpy.forces._arguments import Beads
from medyanpy.forces._base import AtTemperature, NamedTerms, OnHandle, argument, bead_rows, check_beads, declared
from medyanpy.forces._stiffness import Start
from medyanpy.surfaces.expressions import Graph, check_names
from medyanpy.surfaces.forms import Form, as_texts, of_text

if TYPE_CHECKING:
    from medyanpy._kernels.core.program import Operation
    from medyanpy.core.layout import Layout

__all__ = ["ConstraintFixmanPotential", "ConstraintPenalty"]


class ConstraintPenalty(NamedTerms):
    r"""Holds functions of the coordinates of beads near zero: a stiff potential in place of `Topology.constrain`.

    .. math:: U = \sum_m \tfrac12 \omega_m^2 \sum_t g_t(x_{m1}, ..., x_{mk})^2

    Parameters
    ----------
    constraints : str, SymPy expression, or list of such
        The g, as of `Topology.constrain`.
    beads : (m, k) int, (k,) int, or handle
        The k beads of each of m rows, as of `Topology.constrain`; any kind of bead.
    omega : float or (m,) float, >= 0
        ω; its square times that of g is an energy, pN nm. For a g in nm² it is in pN^½ nm^(-3/2).
    name, group
        See `Force`.
    **parameters : float or (m,) float, finite
        The numbers that the texts name. Change them with `set`.

    Raises
    ------
    ParameterError
        As `Topology.constrain`; an ω outside its domain.
    TopologyError
        A row that names a bead twice or a bead on which no text depends, or (when added to a system) a bead that does
        not exist. (By a Context) beads of a row that start more than half of the periodic box apart, along a direction
        that counts: texts are functions of unwrapped positions.

    Notes
    -----
    From rest where g = 0, constrained values are off by O(ω⁻²), and the motion is that with constraints up to O(ω⁻²).
    With a thermostat the limit of large ω is the distribution of constraints with another density, see
    :doc:`/constraints_of_your_own`. Texts are read, never run; second and third derivatives are offered.

    References
    ----------
    M. Tao, H. Owhadi, "Variational and linearly-implicit integrators, with applications", section 1.1.

    Examples
    --------
    >>> import medyanpy as mp
    >>> mp.forces.ConstraintPenalty("(x1-x2)^2 + (y1-y2)^2 + (z1-z2)^2 - d^2", [0, 1], omega=20.0, d=1.0)
    ConstraintPenalty(omega=20, d=1)
    """

    noun = "row"
    terms = "_members"
    terms_argument = "beads"
    #: And those that the texts name.
    domains: Mapping[str, Domain] = domain_table(omega=Domain(at_least=0.0, per="members"))
    omega: float | np.ndarray

    def __init__(
        self, constraints: Any, beads: "Beads", omega: "Numbers", *, name: str | None = None, group: int = 0,
        **parameters: "Numbers",
    ) -> None:  # fmt: skip
        super().__init__(name=name, group=group)
        self._texts = as_texts(self.name, constraints)
        given: Any = bead_numbers(beads)[:, None] if handles_in(beads) else beads
        given = [given] if np.ndim(given) == 1 else given
        self._members = bead_rows(f"{self.name}: beads", given, (None, None))
        in_order = np.sort(self._members, axis=1)
        twice = (in_order[:, 1:] == in_order[:, :-1]).any(axis=1)
        if twice.any():
            i = int(np.argmax(twice))
            raise TopologyError(f"{self.name}: row {i} names a bead twice: {self._members[i].tolist()}")
        own = dict.fromkeys(parameters, Domain(per="members"))
        self.domains: Mapping[str, Domain] = domain_table(**type(self).domains, **own)
        self.changeable: tuple[str, ...] = tuple(self.domains)
        self._declare(omega=omega, **parameters)
        k = self._members.shape[1]
        names = [f"{c}{j + 1}" for j in range(k) for c in "xyz"] + ["x", "y", "z"] * (k == 1)
        check_names(self.name, " ".join(self._texts), names, tuple(parameters))
        uses = np.any([form.uses() for form in self._forms(tuple(parameters))], axis=0)
        if not uses.all():
            raise TopologyError(f"{self.name}: no text depends on bead {int(np.argmin(uses)) + 1} of the {k} in a row")

    @property
    def members(self) -> np.ndarray:
        """Bead numbers (m, k)."""
        return self._members

    @property
    def texts(self) -> tuple[str, ...]:
        """Texts of the functions that are held near zero."""
        return self._texts

    def _forms(self, own: collections.abc.Sequence[str]) -> list[Form]:
        """Return g of every text, with some parameters as numbers of each row, and the rest as constants."""
        constants = {p: scalar_if_one(v) for p, v in self._numbers.items() if p not in own and p != "omega"}
        return [of_text(self.name, text, self._members.shape[1], constants, own) for text in self._texts]

    def _at(self, x: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Return g (m,) and gradients (m, k, 3) of every text at positions (n, 3) of all beads."""
        own = tuple(p for p in self._numbers if p != "omega")
        numbers = np.column_stack([np.empty((len(self._members), 0)), *(self._numbers[p] for p in own)])
        return tuple(zip(*(form.at(x[self._members], numbers) for form in self._forms(own)), strict=True))

    def multipliers(self, positions: "Numbers") -> np.ndarray:
        """Return ω² g of each row and text, (..., m, t), at positions (..., n, 3) of all beads.

        It replaces the multiplier λ of a constraint, whose force is -λ ∇g. `analysis.constraint_multipliers` averages
        over its oscillations.
        """
        x = np.asarray(positions, float)
        frames = x.reshape(-1, *x.shape[-2:])
        g = np.stack([np.stack(self._at(frame)[0], axis=-1) for frame in frames])
        out: np.ndarray = np.asarray(self._numbers["omega"])[:, None] ** 2 * g.reshape(*x.shape[:-2], *g.shape[1:])
        return out

    def squared_frequencies(self, start: Start) -> np.ndarray | None:
        check_beads(self.name, self._members, start.topology)
        total = np.zeros(start.n_rows)
        for slope in self._at(start.positions)[1]:
            if not np.isfinite(slope).all():
                return None
            size = np.linalg.norm(slope, axis=2)
            parts = [start.coordinates(beads).times(c) for beads, c in zip(self._members.T, size.T, strict=True)]
            total += start.springs(sum(parts[1:], parts[0]), self._numbers["omega"] ** 2)
        return total

    def bind(self, layout: "Layout") -> "Operation":
        check_beads(self.name, self._members, layout.topology)
        if layout.is_periodic:
            x = Start(layout.topology).positions
            for slopes in self._at(x)[1]:
                expect_near(self.name, x[self._members], slopes, layout.box)
        own = [p for p, v in self._numbers.items() if isinstance(scalar_if_one(v), np.ndarray)]
        omega = scalar_if_one(self._numbers["omega"])
        forms = self._forms([p for p in own if p != "omega"])
        place = layout.internal(self._members)
        entry = np.argsort(place.ravel(), kind="stable")
        owner, start = np.unique(place.ravel()[entry], return_index=True)

        def write(graph: Graph, nodes: collections.abc.Sequence[int]) -> int:
            inputs = dict(zip(own, nodes[place.shape[1] * 3 :], strict=True))
            w = inputs.pop("omega") if "omega" in inputs else graph.number(omega)
            g = [form.write(graph, [*nodes[: place.shape[1] * 3], *inputs.values()]) for form in forms]
            half = graph.multiply(graph.number(0.5), graph.power(w, 2))
            return graph.multiply(half, graph.add(*(graph.power(one, 2) for one in g)))

        energy = Form(write, place.shape[1], len(own))
        each = np.column_stack([np.empty((len(place), 0)), *(self._numbers[p] for p in own)])
        operation = terms.Terms(
            self.name, place.astype(np.int32), each, owner.astype(np.int32),
            np.append(start, place.size).astype(np.int32), entry.astype(np.int32),
            [energy.program, energy.second, energy.third],
        )  # fmt: skip
        operation.acts_on_points = bool((place >= layout.n_cartesian).any())
        return operation


@declared
class _OfConstraints(OnHandle):
    """A force that belongs to constraints."""

    _on = ("constraints", Constraints, "constraints")
    constraints: Constraints = argument("Constraints", attribute="The constraints that it belongs to.")


@declared
class ConstraintFixmanPotential(AtTemperature, _OfConstraints):
    r"""Fixman potential of constraints written by a user: beads sample as infinitely stiff springs would let them.

    .. math:: U = \frac{kT}{2} \ln\det T, \qquad
              T_{rs} = \sum_i \frac1{m_i} \frac{\partial n_r}{\partial x_i}\cdot\frac{\partial n_s}{\partial x_i}

    of all constraints that are solved together with these, links of filaments and surfaces included, each with a
    gradient of unit length: n is g over the length of its gradient, by the coordinates of the beads that move. So it
    does not depend on the form in which g = 0 is written. Time: the square of the number of connected constraints.

    Parameters
    ----------
    constraints
        The result of `Topology.constrain`. Where several are solved together, the first of them.

    Raises
    ------
    TopologyError
        No such handle; (when a Context is made) one whose constraints are all solved together with those of an earlier
        one.
    ParameterError
        A number outside its domain, or neither or both of temperature and kT.
    """

    @property
    def conserves_momentum(self) -> bool:  # type: ignore[override]
        """True if all constraints that are solved together with these conserve momentum."""
        joint = self.constraints.topology.joint
        return joint is None or all(handle.kind.keeps_momentum for handle in joint.handles)

    def bind(self, layout: "Layout") -> "Operation":
        joint: Any = layout.topology.joint
        if not self.constraints.count:
            # All have been removed.
            return Sequence([])
        if joint.has_arms:
            raise TopologyError(
                f"{self.name}: joints hold bodies by places away from their centres, whose metric turns with them: "
                "this potential is not offered for these. Leave it out: their density is on the page of constraints"
            )
        if joint.has_points:
            raise TopologyError(
                f"{self.name}: constraints hold in-triangle points, whose metric turns with their triangles: this "
                "potential is not offered for these. Leave it out: their density is on the page of constraints"
            )
        tables, forms, ordered = joint.tables(layout)
        counts = joint.led_by(self.constraints, tables, ordered)
        if not counts.any():
            raise TopologyError(
                f"{self.name}: the constraints of {self.constraints.name!r} are all solved together with earlier "
                "ones: give it the first of them, whose potential is that of all"
            )
        system = joint_constraints.JointSystem(tables, [form.program for form in forms], layout.threads)
        still = np.flatnonzero(~joint.moving(layout, tables["place"]))
        still = still[np.argsort(tables["place"][still], kind="stable")].astype(np.int32)
        return joint_constraints.JointMetric(
            self.name, system, [form.bent for form in forms], counts.astype(np.uint8), still, self._numbers["kT"],
            layout.threads, lambda row: joint.label(ordered[row]),
        )  # fmt: skip
