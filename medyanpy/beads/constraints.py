"""Constraints between beads, written by a user."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from medyanpy._tools.described import scalar_if_one
from medyanpy._tools.types import Numbers
from medyanpy._tools.validation import array, dimensions, number, one_or_many, per_item
from medyanpy.beads.constraint_rows import Rows
from medyanpy.beads.joint import Joint, JointFlow
from medyanpy.core.handles import Handle, bead_numbers, handles_in
from medyanpy.core.kinds import Block, Kind
from medyanpy.errors import ParameterError, TopologyError, shortened
from medyanpy.surfaces.expressions import check_names
from medyanpy.surfaces.forms import Form, as_texts, of_text

if TYPE_CHECKING:
    from medyanpy.core.flows import Flow
    from medyanpy.core.layout import Layout
    from medyanpy.topology import Topology

# The largest distance from where a constraint holds at which beads may start, relative to its length: they are moved
# there.
REACH = 1e-3


class ConstraintsKind(Kind):
    """Constraints of a user's own."""

    handle: "Constraints"
    name = "constraints"
    block = Block.NONE
    degrees_of_freedom_per_bead = 0
    # It has no places: pictures leave it out.
    in_space = False

    @property
    def contents(self) -> str:
        return f"{self.handle.count} {self.name}"

    @property
    def keeps_momentum(self) -> bool:
        """True if no constraint changes when all its beads move alike, by the gradients at the start."""
        joint = self.handle.topology.joint
        return joint is None or self.handle not in joint.handles or joint.keeps_momentum(self.handle)

    def with_joint_multipliers(
        self, own: np.ndarray | None, parts: list[tuple[np.ndarray, np.ndarray]]
    ) -> np.ndarray:
        return np.stack([values for _, values in parts], axis=-1)

    def constraint_rows(self) -> list[Rows]:
        written, members = self.handle, self.handle.members
        one = {name: value for name, value in written.parameters.items() if not isinstance(value, np.ndarray)}
        each = [name for name in written.parameters if name not in one]
        own = np.column_stack([np.empty((len(members), 0)), *(written.parameters[name] for name in each)])
        found = []
        for t, text in enumerate(written.texts):
            form, used = _form(written.name, text, members.shape[1], one, each)
            # Each of several texts has its own groups: only beads connect them.
            group = t * len(members) + np.arange(len(members))
            scale = written.tolerance * written.length
            arms = None if written.arms is None else np.ascontiguousarray(written.arms[:, used])
            arms = arms if arms is not None and arms.any() else None
            found.append(Rows(form, members[:, used], own, scale, group, _label(text), arms=arms))
        return found if len(members) else []

    def bind(self, layout: "Layout") -> "Flow | None":
        joint = layout.topology.joint
        return JointFlow(joint, layout) if joint is not None and joint.first is self.handle else None

    def naming(self, gone: np.ndarray) -> dict[str, np.ndarray]:
        """Return the terms that name removed beads; see `Parameterized.naming`."""
        return {"constraint": gone[self.handle.members].any(axis=1)}

    def without(self, terms: dict[str, np.ndarray]) -> None:
        """Remove terms; see `Parameterized.without`."""
        self.handle._keep(~terms["constraint"])

    def renumbered(self, rows: np.ndarray) -> None:
        """Update rows of beads: the bead that had row i has row rows[i] now, (n,)."""
        self.handle._take(members=rows[self.handle.members])


def _label(text: str) -> Callable[[int], str]:
    return lambda i: f"constraint {i} ({shortened(text, 60)!r})"


class Constraints(Handle, kind=ConstraintsKind):
    """Constraints between beads of other handles; it has no beads of its own.

    Attributes
    ----------
    texts : tuple of str
        Functions that are zero.
    members : (m, k) int array
        Rows of the beads of each of the m constraints, or sets of constraints with several texts.
    arms : (m, k, 3) float array or None, nm
        What is held is so far away from each bead, in its frame; None where that is the beads themselves.
    parameters : dict of str to float or (m,) float
        Numbers that the texts name.
    length : (m,) float array, nm
        Scale of the tolerance.
    tolerance : float
    """

    kind: ConstraintsKind
    _added_by = "constrain"

    def __init__(
        self, topology: "Topology", name: str, texts: tuple[str, ...], members: np.ndarray, parameters: dict[str, Any],
        length: np.ndarray, tolerance: float, arms: np.ndarray | None = None,
    ) -> None:  # fmt: skip
        nobody = np.empty(0)
        super().__init__(topology, name, topology.n_beads, nobody, nobody)
        self.positions: np.ndarray = np.empty((0, 3))
        self.texts = texts
        self.members = members
        self.arms = arms
        self.parameters = parameters
        self.length = length
        self.tolerance = tolerance

    @property
    def count(self) -> int:
        """Number of constraints: for every text one for each row of `members`."""
        return len(self.texts) * len(self.members)

    @property
    def degrees_of_freedom(self) -> int:
        """Degrees of freedom, -1 for each constraint, to be added to those of the beads."""
        return -self.count

    def _keep(self, keep: np.ndarray) -> None:
        own = {n: v[keep] if isinstance(v, np.ndarray) else v for n, v in self.parameters.items()}
        arms = None if self.arms is None else self.arms[keep]
        self._take(members=self.members[keep], length=self.length[keep], parameters=own, arms=arms)

    def remove(self, which: Numbers) -> None:  # type: ignore[override]
        """Remove constraints: their beads are free of them from then on.

        Of a running simulation, inside ``with topology.edit():``.

        Parameters
        ----------
        which : (k,) int or int
            Rows of `members`.

        Raises
        ------
        TopologyError
            A number of no row; a topology in use outside of an edit.
        """
        what = f"{self.name}.remove"
        self.topology._refuse_if_in_use(what)
        wanted = one_or_many(f"{what}: which", which, dtype=np.int64, error=TopologyError)
        bad = (wanted < 0) | (wanted >= len(self.members))
        if bad.any():
            i = int(np.argmax(bad))
            raise TopologyError(f"{what}: which[{i}] = {wanted[i]}, but there are {len(self.members)} constraints")
        keep = np.ones(len(self.members), bool)
        keep[wanted] = False
        self._keep(keep)

    def reserve(self, capacity: int) -> None:
        """Refuse to reserve rows: constraints have no room for more.

        Raises
        ------
        TopologyError
            Always.
        """
        raise TopologyError(f"{self.name}.reserve: constraints have no beads of their own: there is no room to make")

    def _arguments_now(self) -> dict[str, Any]:
        texts = self.texts[0] if len(self.texts) == 1 else list(self.texts)
        return {
            "constraints": texts, "beads": self.topology.plain_rows(self.members), "length": self.length,
            "tolerance": self.tolerance, "name": self.name, **({} if self.arms is None else {"arms": self.arms}),
            **self.parameters,
        }  # fmt: skip


def _form(what: str, text: str, beads: int, one: dict[str, float], each: list[str]) -> tuple[Form, np.ndarray]:
    """Return the function of a text, of those of so many beads that it depends on, and the numbers of these."""
    uses = of_text(what, text, beads, one, each).uses()
    used = np.flatnonzero(uses)

    return of_text(what, text, beads, one, each, used.tolist()), used


def constrain(
    topology: "Topology", constraints: Any, beads: Numbers | Handle | Sequence[Handle], *,
    arms: Numbers | None = None, length: Numbers | None = None, tolerance: float = 1e-10, name: str | None = None,
    **parameters: Numbers,
) -> Constraints:  # fmt: skip
    """Hold functions of the coordinates of beads, and of places fixed to bodies, at zero.

    They are solved jointly with each other and with other constraints of the beads: the links of their filaments, the
    surface that they are on. `join` makes joints of bodies and rods. See "Constraints of your own" in the
    documentation.

    Of a running simulation, inside ``with topology.edit():``. They then have to hold where beads are now, which is
    where documents let beads that take constraints start from then on. Velocities lose what would break them.

    Parameters
    ----------
    constraints : str, SymPy expression, or list of such
        Functions that are zero: of coordinates x1, y1, z1, x2, ... (nm) of the beads of a row (of one bead also x, y,
        z), numbers and parameters, with ``+ - * /``, powers ``**`` or ``^``, parentheses, and the functions of
        :doc:`/forces/fields`. Several texts are several constraints for each row.
    beads : (m, k) int, (k,) int, or handle
        The k >= 1 beads of each of m constraints, rows as in ``handle.beads``: free beads, balls, nodes of filaments,
        beads on surfaces, vertices, in-triangle points, bodies and nodes of rods. Of a handle each bead alone.
    arms : (k, 3) or (m, k, 3) float, nm, optional
        From each bead to the place that the text means, in the frame of the bead, which must then be a body or a node
        of a rod; 0 where it means the bead.
    length : float or (m,) float, nm, > 0, optional
        Scale of tolerances. By default the largest distance between the beads of a row at the start (of one bead: from
        the origin) over √k, which keeps a distance of two beads to `tolerance` relative.
    tolerance : float, > 0
        Largest deviation of a constraint, g over the length of its gradient, relative to `length`.
    name : str, optional
    **parameters : float or (m,) float, finite
        The numbers that the texts name: one for all, or one for each row.

    Returns
    -------
    Constraints

    Raises
    ------
    ParameterError
        Text that is not such an expression, unknown names, a parameter that is missing, not in the texts, not finite or
        named as something else; a length or tolerance outside its domain.
    TopologyError
        Beads that do not exist, are inactive, named twice in a row, in no text, or of another kind: directors, kinds
        defined elsewhere, surfaces of Python functions. An arm on a bead without orientation. Vertices, and points on
        membranes that move, in an edit of a running simulation. A constraint that does not hold at the start within
        1e-3 of its length (beads are moved to where it does), or depends on others. A topology in use outside of an
        edit.

    Examples
    --------
    A pendulum whose bob is two beads at a distance of 3 nm:

    >>> import medyanpy as mp
    >>> topology = mp.Topology()
    >>> bob = topology.add_beads([[5.0, 0, 0], [5.0, 3.0, 0]], mass=1.0)
    >>> topology.constrain("x^2 + y^2 + z^2 - L^2", bob.beads[:1], L=5.0)
    Constraints('constraints', 1 constraints)
    >>> stick = topology.constrain("(x1-x2)^2 + (y1-y2)^2 + (z1-z2)^2 - d^2", bob.beads, d=3.0)
    >>> bob.degrees_of_freedom + stick.degrees_of_freedom
    5
    """
    what = "constrain"
    topology._refuse_if_in_use(what)
    topology._start_from_now()
    texts = as_texts(what, constraints)
    members, reach = _members(topology, what, beads, arms)
    _refuse_vertices(topology, what, members)
    m, k = members.shape
    given = {key: scalar_if_one(per_item(f"{what}: {key}", value, m)) for key, value in parameters.items()}
    check_names(what, " ".join(texts), [f"{c}{j + 1}" for j in range(k) for c in "xyz"] + ["x", "y", "z"] * (k == 1),
                tuple(given))  # fmt: skip
    _check_use(what, texts, members, given)
    tolerance = number(f"{what}: tolerance", tolerance, above=0.0)
    lengths = _lengths(topology, what, members, reach, length)
    name = topology._name(what, name, "constraints")
    made = Constraints(topology, name, texts, members, given, lengths, tolerance, reach)
    topology._keep(made)
    if not made.count:
        return made
    try:
        cast(Joint, topology.joint).check(what, made, REACH / tolerance)
    except BaseException:
        topology._forget(made)
        raise
    return made


def _members(
    topology: "Topology", what: str, beads: Any, arms: Any
) -> tuple[np.ndarray, np.ndarray | None]:  # fmt: skip
    """Return rows (m, k) and arms (m, k, 3), checked; None without any arm."""
    handles = handles_in(beads)
    for handle in handles:
        if handle.topology is not topology:
            raise TopologyError(f"{what}: {handle!r} belongs to another topology")
    given = bead_numbers(beads)[:, None] if handles else beads
    if not handles and np.ndim(given) == 1:
        given = [given]
    members = array(f"{what}: beads", given, (None, None), dtype=np.int64, error=TopologyError).copy()
    if not members.shape[1]:
        raise TopologyError(f"{what}: beads are none")
    outside = ((members < 0) | (members >= topology.n_beads)).any(axis=1)
    if outside.any():
        i = int(np.argmax(outside))
        raise TopologyError(
            f"{what}: row {i} names beads {members[i].tolist()}, but the topology has beads 0 to {topology.n_beads - 1}"
        )
    topology.expect_awake(what, members.ravel())
    m, k = members.shape
    reach = None
    if arms is not None:
        each = dimensions(f"{what}: arms", arms, f"({k}, 3) or ({m}, {k}, 3)") > 2
        given = array(f"{what}: arms", arms, (m, k, 3) if each else (k, 3))
        reach = np.array(np.broadcast_to(given, (m, k, 3))) if given.any() else None
    a, b = np.triu_indices(k, 1)
    twice = members[:, a] == members[:, b]
    if reach is not None:
        twice &= (reach[:, a] == reach[:, b]).all(axis=2)
        turning = [handle.beads for handle in topology.oriented_handles]
        bare = reach.any(axis=2) & ~np.isin(members, np.concatenate([np.empty(0, np.int64), *turning]))
        if bare.any():
            i, j = (int(n) for n in np.argwhere(bare)[0])
            raise TopologyError(
                f"{what}: arms: row {i} has an arm on bead {members[i, j]} of "
                f"{topology.handle_of(int(members[i, j])).name!r}, which has no orientation"
            )
    if twice.any():
        i = int(np.argmax(twice.any(axis=1)))
        raise TopologyError(f"{what}: row {i} names a bead twice: {members[i].tolist()}")
    for handle in topology.handles:
        among = np.isin(members, handle.beads)
        if among.any() and (obstacle := handle.kind.obstacle_to_constraints):
            i, j = np.argwhere(among)[0]
            raise TopologyError(f"{what}: bead {members[i, j]} belongs to {handle!r}, {obstacle}")
    return members, reach


def _refuse_vertices(topology: "Topology", what: str, members: np.ndarray) -> None:
    """Refuse vertices of membranes, and points on membranes that move, in an edit of a running simulation: documents
    begin with meshes as they were."""
    held = set() if topology.joint is None else topology.joint.handles
    for membrane in topology.membranes if topology._describe is not None else ():
        on = [points.beads for points in topology.point_handles if points.membrane is membrane]
        on = [] if membrane.kind.fixed_beads.all() else on
        if membrane in held or np.isin(members, np.concatenate([membrane.beads, *on])).any():
            raise TopologyError(
                f"{what}: constraints hold vertices of {membrane!r}, which documents let start where its mesh has "
                "them, and not where they are now: add all constraints before a Context is made"
            )


def _check_use(what: str, texts: tuple[str, ...], members: np.ndarray, parameters: dict[str, Any]) -> None:
    """Refuse beads that are in no text."""
    k = members.shape[1]
    one = {name: value for name, value in parameters.items() if not isinstance(value, np.ndarray)}
    each = [name for name in parameters if name not in one]
    uses = np.zeros(k, bool)
    for text in texts:
        uses |= of_text(what, text, k, one, each).uses()
    if not uses.all():
        j = int(np.argmin(uses))
        problem = "no text depends" if len(texts) > 1 else f"{shortened(texts[0], 80)!r} does not depend"
        raise TopologyError(f"{what}: {problem} on bead {j + 1} of the {k} in each row")


def _lengths(
    topology: "Topology", what: str, members: np.ndarray, arms: np.ndarray | None, length: Any
) -> np.ndarray:  # fmt: skip
    """Return lengths of constraints, (m,) nm."""
    if length is not None:
        return np.array(per_item(f"{what}: length", length, len(members), above=0.0))
    x = topology.start_positions(members, arms)
    if members.shape[1] == 1:
        found: np.ndarray = np.linalg.norm(x[:, 0], axis=1)
    else:
        between = x[:, :, None, :] - x[:, None, :, :]
        found = np.sqrt(np.sum(between**2, axis=-1).max(axis=(1, 2)) / members.shape[1])
    if not (found > 0.0).all():
        i = int(np.argmin(found))
        where = "at the origin" if members.shape[1] == 1 else "in one place"
        raise ParameterError(
            f"{what}: beads {members[i].tolist()} of row {i} start {where}: give length=, which tolerances are "
            "relative to"
        )
    return found
