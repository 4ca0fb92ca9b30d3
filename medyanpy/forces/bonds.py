"""Springs, and energies of any other shape, between fixed pairs of beads."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from medyanpy._kernels.core.program import Operation
from medyanpy._kernels.core.sites import SiteTable
from medyanpy._kernels.forces.radial import Radial
from medyanpy._kernels.selected import bonds
from medyanpy._tools.declared import number
from medyanpy._tools.domains import Domain, domain_table
from medyanpy._tools.images import displacement
from medyanpy._tools.types import Numbers
from medyanpy.beads import Membrane
from medyanpy.errors import TopologyError
from medyanpy.forces._arguments import Rows
from medyanpy.forces._base import Each, Given, NamedTerms, argument, bead_rows, check_beads, declared, expect_handle
from medyanpy.forces._expressions import WrittenForce
from medyanpy.forces._stiffness import Start

if TYPE_CHECKING:
    from medyanpy.core.handles import Handle
    from medyanpy.core.layout import Layout

__all__ = ["CustomBonds", "HarmonicBonds", "MembraneEdgeSprings"]

# Distances at which a written bond is evaluated, in lengths of the box; and the largest fall of its energy from one to
# the next, relative to the energy at the start.
_LOOKED_AT = np.geomspace(1e-4, 1e3, 281)
_SLIGHT = 1e-6


@declared
class HarmonicBonds(NamedTerms):
    r"""Springs between pairs of beads.

    .. math:: U = \sum_b \tfrac12 k_b (|x_{j_b} - x_{i_b}| - \ell_b)^2

    Two beads in one place do not push each other: the mean over all directions.

    Raises
    ------
    TopologyError
        A bond from a bead to itself, or (when added to a system) to a bead that does not exist.
    ParameterError
        A number outside its domain; (by a Context) a bond that is longer at rest than half of the periodic box.

    Examples
    --------
    >>> import medyanpy as mp
    >>> mp.forces.HarmonicBonds([[0, 1], [1, 2]], stiffness=100.0, length=27.0)
    HarmonicBonds(stiffness=100, length=27)
    """

    of_positions_alone = True
    conserves_momentum = True
    noun = "bond"
    terms = "_pairs"
    pairs: Given["Rows", np.ndarray] = argument(
        "(B, 2) int", "The two beads of each bond, in topology order: ``handle.beads`` gives them. Any kind of bead; a "
        "pair may occur more than once.", attribute="(B, 2) bead numbers.",
    )  # fmt: skip
    stiffness: Each = number("pN/nm", "The k of the energy.", at_least=0.0, per="pairs", many="(B,)")
    length: Each = number("nm", "ℓ, where the bond is relaxed.", at_least=0.0, per="pairs", many="(B,)")

    def _take(self, given: dict[str, Any]) -> None:
        super()._take(given)
        self._pairs = check_pairs(self.name, given["pairs"])

    @property
    def joined(self) -> np.ndarray:
        # Edges of a mesh are shown as such.
        return super().joined if self.handles else self._pairs

    def squared_frequencies(self, start: Start) -> np.ndarray | None:
        check_beads(self.name, self._pairs, start.topology)
        return start.bonds(self._pairs, self._numbers["stiffness"])

    def bind(self, layout: "Layout") -> Operation:
        check_beads(self.name, self._pairs, layout.topology)
        return bind_springs(self, layout, self._pairs)


class CustomBonds(WrittenForce, NamedTerms):
    r"""Bonds between pairs of beads, with an energy written as an expression of their distance and named parameters.

    .. math:: U = \sum_b u(r_b;\ p_b), \quad r_b = |x_{j_b} - x_{i_b}|

    Parameters
    ----------
    pairs : (B, 2) int
        The two beads of each bond, as of `HarmonicBonds`.
    energy : str or SymPy expression
        u, pN nm, of r (nm) and parameters, with the grammar and functions of :doc:`/forces/fields`.
    name, group
        See `Force`.
    **parameters : float or (B,) float, finite
        The numbers that the expression names: one for all, or one for each bond. Change them with `set`.

    Raises
    ------
    ParameterError
        Text that is not such an expression (the message names the place), or one that does not depend on r. A parameter
        that is missing, is not in the expression, has a name with another meaning, or is not finite. (By a Context) a
        bond that is longer at rest, or can get longer before its energy ends, than half of the periodic box.
    TopologyError
        A bond from a bead to itself, or (when added to a system) to a bead that does not exist.

    Notes
    -----
    The expression is read, never run. Its first three derivatives are exact to rounding. Where u is not a number, or
    infinite, the run stops. Two beads in one place do not push each other.

    Examples
    --------
    Finitely extensible springs (Kremer & Grest, J. Chem. Phys. 92, 5057 (1990)):

    >>> import medyanpy as mp
    >>> mp.forces.CustomBonds([[0, 1], [1, 2]], "-k/2*R^2*log(1 - (r/R)^2)", k=2.0, R=[6.0, 5.0])
    CustomBonds('-k/2*R^2*log(1 - (r/R)^2)', k=2, R=[6, 5])
    """

    of_positions_alone = True
    conserves_momentum = True
    noun = "bond"
    terms = "_pairs"
    _coordinate_names = ("r",)

    def __init__(
        self, pairs: "Rows", energy: Any, *, name: str | None = None, group: int = 0, **parameters: "Numbers"
    ) -> None:
        self._read(energy, "pairs", name, parameters)
        super().__init__(name=name, group=group)
        self._pairs = check_pairs(self.name, pairs)
        self._declare(**parameters)
        self._check_text()

    @property
    def pairs(self) -> np.ndarray:
        """Bead numbers (B, 2)."""
        return self._pairs

    @property
    def joined(self) -> np.ndarray:
        return self._pairs

    def _numbers_of_bonds(self, names: Any) -> list[np.ndarray]:
        return [np.broadcast_to(np.asarray(value, float), (len(self._pairs),)) for value in self._named(*names)]

    def squared_frequencies(self, start: Start) -> np.ndarray | None:
        check_beads(self.name, self._pairs, start.topology)
        graph, u, _ = self._graph(self.changeable)
        i, j = self._pairs.T
        r = np.linalg.norm(displacement(start.positions[i], start.positions[j], start.box), axis=1)
        nodes = [graph.along(u, 0), graph.along(u, 0, 0)]
        first, second = graph.evaluate(nodes, [r, *self._numbers_of_bonds(self.changeable)])
        if not (np.isfinite(first).all() and np.isfinite(second).all()):
            return None
        # Along the bond, and across it.
        across = np.divide(first, r, out=np.zeros_like(r), where=r > 0.0)
        return start.bonds(self._pairs, np.maximum(np.maximum(second, across), 0.0))

    def _lengths(self, layout: "Layout") -> np.ndarray:
        """Return for each bond the distance at which its energy ends (is nan), or else is at rest, (B,) nm."""
        graph, u, _ = self._graph(self.changeable)
        slope = graph.derivative(u, 0)
        x = Start(layout.topology).positions[self._pairs]
        now = np.linalg.norm(displacement(x[:, 0], x[:, 1], layout.box), axis=1)
        each = np.column_stack([np.zeros(len(now)), *self._numbers_of_bonds(self.changeable)])
        alike, first, which = np.unique(each, axis=0, return_index=True, return_inverse=True)

        def at(node: int, r: np.ndarray) -> np.ndarray:
            numbers = [np.repeat(column, r.shape[1]) for column in alike.T[1:]]
            out: np.ndarray = graph.evaluate([node], [r.ravel(), *numbers])[0].reshape(r.shape)
            return out

        with np.errstate(all="ignore"):
            scale = np.abs(at(u, now[first][:, None]))
            r = float(layout.box.max()) * np.broadcast_to(_LOOKED_AT, (len(alike), len(_LOOKED_AT)))
            energy = at(u, r)
            falls = energy[:, :-1] - energy[:, 1:] > _SLIGHT * scale
            ends = np.isfinite(energy[:, :-1]) & np.isnan(energy[:, 1:])
            # The last of the steps in which it falls, or the first in which it ends.
            is_end = ends.any(axis=1)[:, None]
            last = falls.shape[1] - 1 - falls[:, ::-1].argmax(axis=1)
            k = np.where(is_end, ends.argmax(axis=1)[:, None], last[:, None])
            # It is lowest in that step or in the next.
            beyond = np.minimum(k + np.where(is_end, 1, 2), r.shape[1] - 1)
            low, high = np.take_along_axis(r, k, axis=1), np.take_along_axis(r, beyond, axis=1)
            for _ in range(50):
                middle = 0.5 * (low + high)
                below = np.where(is_end, ~np.isnan(at(u, middle)), at(slope, middle) < 0.0)
                low, high = np.where(below, middle, low), np.where(below, high, middle)
        there = (is_end | falls.any(axis=1)[:, None])[:, 0]
        return np.asarray(np.where(there, high[:, 0], 0.0)[which.ravel()])

    def bind(self, layout: "Layout") -> Operation:
        check_beads(self.name, self._pairs, layout.topology)
        if layout.is_periodic:
            layout.expect_lengths(self.name, self.noun, self._lengths(layout))
        others = self._own()
        graph, u, _ = self._graph(others)
        derivatives = [u, *(graph.along(u, *[0] * k) for k in (1, 2, 3))]
        programs = [graph.program(derivatives[:2]), graph.program(derivatives)]
        own = np.ascontiguousarray(np.column_stack([np.empty((len(self._pairs), 0)), *self._numbers_of_bonds(others)]))

        def make(owner: Any, offset: Any, other: Any, term: Any, table: SiteTable, ends: np.ndarray) -> Operation:
            values = np.zeros((len(ends), 4))
            places = ends.astype(np.int32)
            return bonds.WrittenBonds(self.name, owner, offset, other, term, values, table, places, own, programs)

        return bind_places(layout, self._pairs, make)


class MembraneEdgeSprings(HarmonicBonds):
    r"""A spring along every edge of a membrane: the simplest in-plane elasticity.

    .. math:: U = \sum_e \tfrac12 k_e (|e| - \ell_e)^2

    Parameters
    ----------
    membrane : Membrane
    stiffness : float or (E,) float, pN/nm, >= 0
        The k of the energy. A triangulated sheet of equal springs has the area modulus √3 k/2 and the shear modulus √3
        k/4 (Seung & Nelson, Phys. Rev. A 38, 1005 (1988)).
    length : float or (E,) float, nm, >= 0, optional
        ℓ in the order of ``mesh.edges``; the length each edge starts with where none is given.
    name, group
        See `Force`.

    Raises
    ------
    TopologyError, ParameterError
        As `HarmonicBonds`.

    Notes
    -----
    Springs make a closed membrane a solid shell of Young's modulus Y = 2k/√3. The apparent bending modulus of the mode
    l of a sphere is κ (1 + Y R²/[κ (l - 1) l (l + 1) (l + 2)]), several times κ for l = 2; for a bilayer take
    ``MembraneArea(per_triangle=True)``, which does not change κ. With one stiffness and one length for all, springs
    follow edges that are flipped; numbers for each edge refuse that.
    """

    of_positions_alone = False
    domains: Mapping[str, Domain] = domain_table(
        **{name: replace(domain, per="membrane.mesh.edges") for name, domain in HarmonicBonds.domains.items()}
    )

    def __init__(
        self, membrane: Membrane, stiffness: "Numbers", length: "Numbers | None" = None, *, name: str | None = None,
        group: int = 0,
    ) -> None:  # fmt: skip
        self._membrane = expect_handle("MembraneEdgeSprings: membrane", membrane, Membrane, "a membrane")
        mesh = membrane.mesh
        length = mesh.edge_lengths if length is None else length
        super().__init__(membrane.beads[mesh.edges], stiffness, length, name=name, group=group)

    @property
    def membrane(self) -> Membrane:
        """Membrane on which it acts."""
        return self._membrane

    @property
    def handles(self) -> "tuple[Handle, ...]":
        return (self._membrane,)

    @property
    def keeps_triangles(self) -> str:
        return "MembraneEdgeSprings"

    def bind(self, layout: "Layout") -> Operation:
        edges = layout.connectivity(self._membrane).edges
        if self.obstacle_to_flips():
            return bind_springs(self, layout, self._membrane.beads[edges])
        stiffness, length = (np.ravel(numbers)[0] for numbers in self._named("stiffness", "length"))
        layout.expect_lengths(self.name, self.noun, np.full(len(edges), length))
        one = np.array([[stiffness, length]])
        return bonds.EdgeSprings(self.name, Radial.HARMONIC, one, layout.geometry(self._membrane), len(edges))


def bind_springs(force: HarmonicBonds, layout: "Layout", pairs: np.ndarray) -> Operation:
    """Make the operation for its springs, by topology number; refuse a box that is too small for their lengths."""
    stiffness, length = force._named("stiffness", "length")
    layout.expect_lengths(force.name, force.noun, np.broadcast_to(length, (len(pairs),)))
    return bind_pairs(force.name, Radial.HARMONIC, layout, pairs, (stiffness, length))


def check_pairs(force: str, pairs: "Rows") -> np.ndarray:
    """Return bead numbers (B, 2) of bonds, none from a bead to itself; a copy, read-only."""
    out = bead_rows(f"{force}: pairs", pairs, (None, 2))
    loops = out[:, 0] == out[:, 1]
    if loops.any():
        b = int(np.argmax(loops))
        raise TopologyError(f"{force}: bond {b} joins bead {out[b, 0]} to itself")
    return out


def bind_pairs(name: str, kind: Radial, layout: "Layout", pairs: np.ndarray, parameters: "Numbers") -> Operation:
    """Make the operation for one radial function over fixed pairs of beads, by topology number."""
    return bind_places(layout, pairs, _of_kind(name, kind, parameters))


def bind_rows(name: str, kind: Radial, table: SiteTable, ends: np.ndarray, parameters: "Numbers") -> Operation:
    """Make the operation of a radial force over pairs (n, 2) of rows of a table."""
    return _bind_ends(table, ends, _of_kind(name, kind, parameters))


def bind_places(layout: "Layout", pairs: np.ndarray, make: Callable[..., Operation]) -> Operation:
    """Call `make` for fixed pairs of beads, given by topology number."""
    place = layout.internal(pairs)
    operation = _bind_ends(SiteTable(), place, make)
    operation.acts_on_points = bool((place >= layout.n_cartesian).any())
    return operation


def _of_kind(name: str, kind: Radial, parameters: Any) -> Callable[..., Operation]:
    columns = np.column_stack([np.asarray(p, dtype=float) for p in parameters])
    return lambda owner, offset, other, term, table, ends: bonds.Bonds(
        name, kind, owner, offset, other, term, columns, table
    )


def _bind_ends(table: SiteTable, ends: np.ndarray, make: Callable[..., Operation]) -> Operation:
    """Call `make` for pairs (n, 2) of rows of a table; each row has a list of its bonds, in the order given."""
    owner_of = ends.T.ravel()
    # Stable, so that a site adds up its bonds in the order in which they were given; both ends of a bond have one rank.
    rank = np.tile(np.arange(len(ends), dtype=np.int32), 2)
    order = np.lexsort((rank, owner_of))
    owner, counts = np.unique(owner_of, return_counts=True)
    start, other = np.concatenate([[0], np.cumsum(counts)]), ends[:, ::-1].T.ravel()[order]
    return make(owner.astype(np.int32), start.astype(np.int32), other.astype(np.int32), rank[order], table, ends)
