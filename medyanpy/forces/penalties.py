"""Stiff potentials in place of constraints: squares of the functions that a constraint holds at zero.

All are polynomials of degree 4 in the positions, smooth everywhere, with the second and third derivatives for linearly
implicit kicks. Source: M. Tao, H. Owhadi, "Variational and linearly-implicit integrators, with applications".
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from medyanpy._kernels.beads.frames import Frames
from medyanpy._kernels.forces.radial import Radial
from medyanpy._tools.images import Box, checked_box, displacement
from medyanpy._tools.types import Numbers
from medyanpy.beads import Filaments
from medyanpy.errors import ParameterError, TopologyError
from medyanpy.forces._arguments import Rows
from medyanpy.forces._base import Each, Given, NamedTerms, argument, bead_rows, check_beads, declared, number
from medyanpy.forces.bonds import bind_pairs, check_pairs
from medyanpy.forces.filaments import refuse_constrained

if TYPE_CHECKING:
    from medyanpy._kernels.core.program import Operation
    from medyanpy.core.handles import Handle
    from medyanpy.core.layout import Layout
    from medyanpy.forces._stiffness import Start

__all__ = ["LinkLengthPenalty", "OrthonormalFramePenalty", "RigidTrianglePenalty"]


@declared
class LinkLengthPenalty(NamedTerms):
    r"""Holds distances between beads, the more closely the larger ω: a stiff potential in place of constraints.

    .. math:: U = \sum_b \tfrac12 \omega_b^2\, (|x_{j_b} - x_{i_b}|^2 - \ell_b^2)^2

    Parameters
    ----------
    length : float or (B,) float, nm, >= 0

    Raises
    ------
    TopologyError
        A term from a bead to itself, constrained filaments, or (when added to a system) a bead that does not exist.
    ParameterError
        A number outside its domain, or no length.

    Notes
    -----
    From rest on the constraints (cold), lengths are off by O(ω⁻²), and the motion is that with constraints up to
    O(ω⁻²). Second and third derivatives are offered; being a polynomial, U has all of them at r = 0 too.

    References
    ----------
    M. Tao, H. Owhadi, "Variational and linearly-implicit integrators, with applications", sections 1.1 and 4.1-4.3.
    """

    conserves_momentum = True
    noun = "pair"
    terms = "_named_pairs"
    terms_argument = "pairs"
    pairs: Given["Rows | Filaments", np.ndarray] = argument(
        "(B, 2) int, or Filaments", "The two beads of each term, in topology order: ``handle.beads`` gives them. Any "
        "kind of bead; a pair may occur more than once. Or filaments added with ``constrained=False``: a term for each "
        "of their links.", attribute="Bead numbers (B, 2).",
    )  # fmt: skip
    omega: Each = number(
        "pN^½ nm^(-3/2)", "ω. Near its length a term is a spring of stiffness 4ω²ℓ².",
        at_least=0.0, per="pairs", many="(B,)",
    )  # fmt: skip
    length: Given["Numbers | None", float | np.ndarray] = number(
        "nm", "ℓ; ``filaments.link_lengths`` where none is given for filaments.",
        default=None, at_least=0.0, per="pairs", optional=False, many="(B,)",
    )  # fmt: skip

    def _take(self, given: dict[str, Any]) -> None:
        super()._take(given)
        pairs, length = given["pairs"], given["length"]
        self._filaments: Filaments | None = pairs if isinstance(pairs, Filaments) else None
        # True if links have the lengths of the filaments.
        self._of_links = self._filaments is not None and length is None
        if self._filaments is not None:
            refuse_constrained(self.name, self._filaments)
            length = self._filaments.link_lengths if length is None else length
        elif length is None:
            raise ParameterError(f"{self.name}: give length=, which beads do not have of their own")
        given["length"] = length
        none = np.empty((0, 2), np.int64)
        self._named_pairs: np.ndarray = none if self._filaments is not None else check_pairs(self.name, pairs)

    @property
    def _pairs(self) -> np.ndarray:
        return self._named_pairs if self._filaments is None else self._filaments.beads[self._filaments.links]

    @property
    def joined(self) -> np.ndarray:
        # Links of filaments are joined already.
        return super().joined if self.handles else self._named_pairs

    def _keys(self, per: str) -> np.ndarray | None:
        return None if self._filaments is None else self._filaments.ids[self._filaments.links[:, 0]]

    def _number_of_new(self, name: str) -> np.ndarray | None:
        known = self._filaments is not None and name == "length" and self._of_links
        return cast(Filaments, self._filaments).link_lengths if known else None

    @property
    def handles(self) -> "tuple[Handle, ...]":
        return () if self._filaments is None else (self._filaments,)

    def multipliers(self, positions: "Numbers", box: "Sequence[float | None] | None" = None) -> np.ndarray:
        """Return ω² g with g = r² - ℓ² of each pair, (..., B) pN/nm, at positions (..., n, 3) of all beads.

        It replaces the multiplier λ of a constraint, whose force is -λ ∇g. In a periodic box, (3,) nm, distances r are
        those of nearest images. `analysis.constraint_multipliers` averages over its oscillations.
        """
        omega, length = self._named("omega", "length")
        return _multipliers(positions, self.pairs, omega, length, checked_box(f"{self.name}: multipliers", box))

    def squared_frequencies(self, start: "Start") -> np.ndarray | None:
        check_beads(self.name, self.pairs, start.topology)
        omega, length = self._named("omega", "length")
        return start.bonds(self.pairs, 4.0 * (omega * length) ** 2)

    def bind(self, layout: "Layout") -> "Operation":
        check_beads(self.name, self.pairs, layout.topology)
        omega, length = self._named("omega", "length")
        layout.expect_lengths(self.name, self.noun, np.broadcast_to(length, (len(self.pairs),)))
        return bind_pairs(self.name, Radial.PENALTY, layout, self.pairs, (omega * omega, length))


def _multipliers(
    positions: Any, pairs: np.ndarray, omega: np.ndarray, length: np.ndarray, box: Box | None
) -> np.ndarray:
    """Return ω² (r² - ℓ²), (..., B)."""
    x = np.asarray(positions, float)
    r = displacement(x[..., pairs[:, 0], :], x[..., pairs[:, 1], :], box)
    out: np.ndarray = omega**2 * (np.sum(r * r, axis=-1) - length**2)
    return out


@declared
class _TriplePenalty(NamedTerms):
    """A penalty on three beads."""

    noun = "triple"
    terms = "_triples"

    triples: Given["Rows", np.ndarray] = argument("(M, 3) int", attribute="(M, 3) bead numbers.")

    def _take(self, given: dict[str, Any]) -> None:
        super()._take(given)
        self._triples = bead_rows(f"{self.name}: triples", given["triples"], (None, 3))
        a, b, c = self._triples.T
        twice = (a == b) | (b == c) | (c == a)
        if twice.any():
            m = int(np.argmax(twice))
            raise TopologyError(f"{self.name}: triple {m} names a bead twice: {self._triples[m].tolist()}")


@declared
class RigidTrianglePenalty(_TriplePenalty):
    r"""Holds the three distances within each of some triples of beads: rigid molecules such as water.

    .. math:: U = \sum_m \tfrac12 \omega_m^2 \bigl[(r_{12}^2 - \ell_{12}^2)^2 + (r_{23}^2 - \ell_{23}^2)^2
              + (r_{31}^2 - \ell_{31}^2)^2\bigr]_m

    Parameters
    ----------
    triples
        The three beads of each, in topology order; for water H, O, H.

    Raises
    ------
    TopologyError
        A triple that names a bead twice, or (when added to a system) a bead that does not exist.
    ParameterError
        A number outside its domain, or lengths that do not make a triangle.

    References
    ----------
    M. Tao, H. Owhadi, "Variational and linearly-implicit integrators, with applications", equation (26).
    """

    conserves_momentum = True
    omega: Each = number(
        "pN^½ nm^(-3/2)", "ω, as of `LinkLengthPenalty`, which this is of three pairs a triple.",
        at_least=0.0, per="triples", many="(M,)",
    )  # fmt: skip
    lengths: Given["Numbers", np.ndarray] = number(
        "nm", "Distances from the first bead to the second, from the second to the third, and from the third to the "
        "first; none longer than the two others together.", at_least=0.0, per="triples", size=3, many="(M,)",
    )  # fmt: skip

    def _checked(self, **numbers: Any) -> dict[str, Any]:
        checked = super()._checked(**numbers)
        rows = np.atleast_2d(checked["lengths"])
        bad = 2.0 * rows.max(axis=1) > rows.sum(axis=1)
        if bad.any():
            m = int(np.argmax(bad))
            where = f"[{m}]" if checked["lengths"].ndim == 2 else ""
            raise ParameterError(
                f"{self.name}: lengths{where} = {rows[m].tolist()} but none may be longer than the two others together"
            )
        return checked

    def _terms(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return pairs of beads (3M, 2), their ω (3M,) or (), and lengths (3M,)."""
        omega, lengths = self._named("omega", "lengths")
        pairs = np.stack([self._triples, np.roll(self._triples, -1, axis=1)], axis=-1).reshape(-1, 2)
        return pairs, np.repeat(omega, 3), np.broadcast_to(lengths, self._triples.shape).ravel()

    def multipliers(self, positions: "Numbers", box: "Sequence[float | None] | None" = None) -> np.ndarray:
        """Return multipliers of the sides 1-2, 2-3 and 3-1, (..., M, 3) pN/nm, as `LinkLengthPenalty.multipliers`."""
        found = _multipliers(positions, *self._terms(), checked_box(f"{self.name}: multipliers", box))
        return found.reshape(*found.shape[:-1], -1, 3)

    def squared_frequencies(self, start: "Start") -> np.ndarray | None:
        check_beads(self.name, self._triples, start.topology)
        pairs, omega, lengths = self._terms()
        return start.bonds(pairs, 4.0 * (omega * lengths) ** 2)

    def bind(self, layout: "Layout") -> "Operation":
        check_beads(self.name, self._triples, layout.topology)
        pairs, omega, lengths = self._terms()
        layout.expect_lengths(self.name, "side", lengths)
        return bind_pairs(self.name, Radial.PENALTY, layout, pairs, (omega * omega, lengths))


@declared
class OrthonormalFramePenalty(_TriplePenalty):
    r"""Holds three beads, as the columns of a matrix Q, at right angles and at one distance from the origin.

    .. math:: U = \sum_m \tfrac12 \omega_m^2\, \|Q^T Q - \ell^2 1\|_F^2
              = \sum_m \tfrac12 \omega_m^2 \Bigl[\sum_i (q_i \cdot q_i - \ell^2)^2
              + 2 \sum_{i<j} (q_i \cdot q_j)^2\Bigr]_m

    so that a matrix of positions stays near a rotation (or reflection): the configuration of a rigid body, whose other
    energies are functions of Q.

    Parameters
    ----------
    triples
        The three columns of each matrix, beads in topology order; no bead in two.

    Notes
    -----
    Columns are positions from the origin, whatever the box: angular momentum about it is kept, momentum is not. Where
    Q/ℓ is a rotation, stretching a column has the stiffness 4ω²ℓ², moving two towards each other the same, and turning
    all none. Second and third derivatives are offered.

    References
    ----------
    M. Tao, H. Owhadi, "Variational and linearly-implicit integrators, with applications", section 4.5, equation (36);
    their kinetic term, ¼ tr(ṘᵀṘ), is that of columns with the mass ½.
    """

    omega: Each = number("pN^½ nm^(-3/2)", "ω.", at_least=0.0, per="triples", many="(M,)")
    length: Each = number(
        "nm", "ℓ; 1 where none is given, which makes Q itself near a rotation.",
        default=1.0, at_least=0.0, per="triples", many="(M,)",
    )  # fmt: skip

    def _take(self, given: dict[str, Any]) -> None:
        super()._take(given)
        bead, count = np.unique(self._triples, return_counts=True)
        if (count > 1).any():
            b = bead[np.argmax(count > 1)]
            first, second = np.flatnonzero((self._triples == b).any(axis=1))[:2]
            raise TopologyError(f"{self.name}: bead {b} is a column of triple {first} and of triple {second}")

    def multipliers(self, positions: "Numbers") -> np.ndarray:
        """Return Λ = ω² (QᵀQ - ℓ² 1), (..., M, 3, 3) pN/nm, at positions (..., n, 3) of all beads.

        It replaces the symmetric matrix of multipliers of the constraints QᵀQ = ℓ² 1, whose force is -2 QΛ.
        """
        omega, length = (np.asarray(v)[..., None, None] for v in self._named("omega", "length"))
        # A column of Q in each row.
        rows = np.asarray(positions, float)[..., self._triples, :]
        out: np.ndarray = omega**2 * (rows @ np.swapaxes(rows, -1, -2) - length**2 * np.eye(3))
        return out

    def squared_frequencies(self, start: "Start") -> np.ndarray | None:
        check_beads(self.name, self._triples, start.topology)
        omega, length = (np.broadcast_to(v, (len(self._triples),)) for v in self._named("omega", "length"))
        k = 2.0 * (omega * length) ** 2
        # Stretching a column and moving it towards either of the others are at right angles: none adds to another.
        parts = [start.springs(start.coordinates(column), 2.0 * k) for column in self._triples.T]
        parts += [start.bonds(np.delete(self._triples, i, axis=1), k) for i in range(3)]
        out: np.ndarray = np.max(parts, axis=0)
        return out

    def bind(self, layout: "Layout") -> "Operation":
        check_beads(self.name, self._triples, layout.topology)
        place = layout.internal(self._triples)
        numbers = np.column_stack([v * v for v in self._named("omega", "length")])
        operation = Frames(self.name, place.astype(np.int32), numbers)
        operation.acts_on_points = bool((place >= layout.n_cartesian).any())
        return operation
