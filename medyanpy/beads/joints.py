"""Joints of bodies and rods: constraints between places that are fixed to them."""

from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

import numpy as np

from medyanpy._tools.quaternions import turned
from medyanpy._tools.types import Numbers
from medyanpy._tools.validation import array, dimensions, per_item
from medyanpy.beads.constraint_rows import Bodies
from medyanpy.beads.constraints import Constraints, constrain
from medyanpy.core.handles import Handle
from medyanpy.core.sites import Sites, as_sites
from medyanpy.errors import ParameterError, TopologyError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from medyanpy.topology import Topology

_KINDS = ("ball", "hinge", "fixed")


class _Side(NamedTuple):
    """One side of m joints: means of k beads each, (m, k), or places in space (m, 3).

    Where k is 1, with arms (m, 3) and orientations (m, 4) of the beads. Radii (m,) are 0 of what does not turn.
    """

    beads: np.ndarray | None
    weights: np.ndarray
    arms: np.ndarray
    orientations: np.ndarray
    places: np.ndarray
    radii: np.ndarray


def join(
    topology: "Topology", first: "Sites | Handle | Sequence[Handle] | Numbers",
    second: "Sites | Handle | Sequence[Handle] | Numbers", kind: Literal["ball", "hinge", "fixed"] = "ball", *,
    axes: Numbers | None = None, length: Numbers | None = None, tolerance: float = 1e-10, name: str | None = None,
) -> Constraints:  # fmt: skip
    """Join places of bodies, rods and beads in pairs, or to places in space, by constraints.

    A ball joint keeps two places together, and all else may turn. A hinge also keeps an axis that both bodies have,
    and a fixed joint the whole orientation of one body to the other. Joints are solved jointly with each other and with
    other constraints; see "Constraints of your own" in the documentation.

    Parameters
    ----------
    first, second : Sites, handle or (m,) int
        The two places of each of m joints, which are together where beads start, to 1e-3 of `length`. Places of bodies
        are ``bodies.sites(arms)``, ends of rods ``rods.tips("end")``; beads and handles mean the beads themselves.
        ``Sites.weighted`` are places between beads: on links of filaments, in triangles of membranes; all of one side
        of as many beads. The second may be ``Sites.anchors(places)``, which do not move. Hinges and fixed joints need
        bodies or nodes of rods, or a body and a place in space.
    kind : "ball", "hinge" or "fixed"
        Which removes 3, 5 or 6 degrees of freedom.
    axes : (3,) or (m, 3) float, dimensionless, not zero
        Of hinges: their directions in space at the start, of any length.
    length : float or (m,) float, nm, > 0, optional
        Scale of tolerances. By default the largest of the arms and of the radii of gyration of both sides; without
        bodies it has to be given.
    tolerance : float, > 0
        How far apart the places may be, relative to `length`; of angles, in rad.
    name : str, optional

    Returns
    -------
    Constraints

    Raises
    ------
    ParameterError
        Another kind. Axes that are missing or zero, or given without a hinge. A length outside its domain.
    TopologyError
        As `constrain`. Numbers of places that differ; places of one side of different numbers of beads, or on filaments
        that grow. Sides of hinges and fixed joints that do not turn.

    Examples
    --------
    A rod that hangs by a ball joint from a place in space, and a body at a hinge at its other end:

    >>> import medyanpy as mp
    >>> nodes, orientations = mp.rods.uniform(10, 1.0)
    >>> topology = mp.Topology()
    >>> rod = topology.add_rod(nodes, orientations, 1.0, linear_density=1.0, inertia_density=[1.0, 1.0, 2.0])
    >>> end = nodes[-1] + [0.0, 0.0, 0.5]
    >>> body = topology.add_rigid_bodies([end + [0.0, 2.0, 0.0]], [[1, 0, 0, 0]], mass=1.0, inertia=[2.0, 1.0, 2.0])
    >>> topology.join(rod.tips("start"), mp.Sites.anchors([nodes[0] - [0.0, 0.0, 0.5]]))
    Constraints('joints', 3 constraints)
    >>> topology.join(rod.tips("end"), body.sites([[0.0, -2.0, 0.0]]), "hinge", axes=[1.0, 0.0, 0.0])
    Constraints('joints 2', 5 constraints)
    """
    what = "join"
    topology._refuse_if_in_use(what)
    topology._start_from_now()
    if kind not in _KINDS:
        raise ParameterError(f'{what}: kind = {kind!r} but must be "ball", "hinge" or "fixed"')
    one, other = (_side(topology, f"{what}: {side}", given) for side, given in (("first", first), ("second", second)))
    m = len(one.arms)
    if len(other.arms) != m:
        raise TopologyError(f"{what}: first has {m} places and second {len(other.arms)}: they are joined in pairs")
    if one.beads is None:
        raise TopologyError(f"{what}: first must be places of beads; only the second may be anchors")
    if (axes is None) == (kind == "hinge"):
        raise ParameterError(f"{what}: axes are the directions of hinges: give them with kind=\"hinge\", and not else")
    if kind != "ball":
        for side, found in (("first", one), ("second", other)):
            still = found.radii == 0.0
            if found.beads is not None and still.any():
                i = int(np.argmax(still))
                bead = int(found.beads[i, 0])
                place = f"bead {bead}" if found.beads.shape[1] == 1 else f"a mean of beads {found.beads[i].tolist()}"
                raise TopologyError(
                    f"{what}: {side}[{i}] is {place} of {topology.handle_of(bead).name!r}, which has no orientation "
                    f"for a {kind} joint"
                )
    if length is None:
        lengths = np.maximum.reduce([np.linalg.norm(s.arms, axis=1) for s in (one, other)] + [one.radii, other.radii])
        if not lengths.all():
            raise ParameterError(f"{what}: joints of beads that do not turn: give length=, which tolerances relate to")
    else:
        lengths = np.array(per_item(f"{what}: length", length, m, above=0.0))
    name = topology._name(what, name, "joints")
    texts, beads, arms, numbers = _rows(kind, one, other, _directions(what, kind, axes, m), lengths)
    return constrain(topology, texts, beads, arms=arms, length=lengths, tolerance=tolerance, name=name, **numbers)


def _side(topology: "Topology", what: str, given: Any) -> _Side:
    """Return one side of joints, checked."""
    sites = as_sites(what, given)
    sites.check(what, topology)
    n = len(sites)
    counts = np.diff(sites.start)
    arms = np.zeros((n, 3)) if sites.arms is None else sites.arms
    if not counts.any():
        identity = np.tile([1.0, 0.0, 0.0, 0.0], (n, 1))
        return _Side(None, np.zeros((n, 0)), arms, identity, sites.anchor_positions, np.zeros(n))
    most = int(counts.max())
    if (counts != most).any():
        i = int(np.argmax(counts != most))
        has = "an anchor among beads" if counts[i] == 0 else f"of {counts[i]} beads, and others are of {most}"
        raise TopologyError(f"{what}[{i}] is {has}: join places of each number of beads in a call of their own")
    beads, weights = (values.reshape(n, most) for values in (sites.bead_numbers, sites.weights))
    radii = np.zeros(topology.n_beads)
    if most == 1:
        # Means of bodies do not turn.
        for body in topology.oriented_handles:
            radii[body.beads] = np.sqrt(body.inertia.sum(axis=1) / (2.0 * body.mass))
    orientations = Bodies.of(topology).orientations[beads[:, 0]]
    return _Side(beads, weights, arms, orientations, np.zeros((n, 3)), radii[beads[:, 0]])


def _directions(what: str, kind: str, axes: Any, m: int) -> np.ndarray:
    """Return directions (m, 3, 3) in space that joints hold: of a hinge the axis first, and others across it."""
    if kind == "hinge":
        each = dimensions(f"{what}: axes", axes, f"(3,) or ({m}, 3)") > 1
        a = np.array(np.broadcast_to(array(f"{what}: axes", axes, (m, 3) if each else (3,)), (m, 3)))
        size = np.linalg.norm(a, axis=1)
        if not size.all():
            raise ParameterError(f"{what}: axes[{int(np.argmin(size))}] is 0: it has no direction")
        a /= size[:, None]
    else:
        a = np.tile([1.0, 0.0, 0.0], (m, 1))
    u = np.cross(a, np.eye(3)[np.argmin(np.abs(a), axis=1)])
    u /= np.linalg.norm(u, axis=1)[:, None]
    return np.stack([a, u, np.cross(a, u)], axis=1)


def _rows(
    kind: str, one: _Side, other: _Side, directions: np.ndarray, lengths: np.ndarray
) -> tuple[list[str], np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    """Return texts, beads (m, k), arms (m, k, 3) and numbers of joints."""
    # Which directions of the first side are right angles to which of the second.
    pairs = {"ball": [], "hinge": [(0, 1), (0, 2)], "fixed": [(0, 1), (1, 2), (2, 0)]}[kind]
    mine, theirs = sorted({i for i, _ in pairs}), sorted({j for _, j in pairs})
    columns: list[tuple[np.ndarray, np.ndarray]] = []
    numbers: dict[str, np.ndarray] = {}

    def place(side: _Side) -> dict[str, str]:
        """Append the beads of a side, and return its coordinates."""
        assert side.beads is not None
        terms = []
        for k, beads in enumerate(side.beads.T):
            columns.append((beads, side.arms))
            terms.append(f"{{c}}{len(columns)}")
            if side.beads.shape[1] > 1:
                numbers[f"w{len(columns)}"] = side.weights[:, k]
                terms[-1] = f"w{len(columns)}*{terms[-1]}"
        return {c: " + ".join(terms).format(c=c) for c in "xyz"}

    def directed(side: _Side, which: list[int]) -> dict[int, int]:
        """Append places ahead in these directions, and return their columns."""
        for i in which:
            arms = side.arms + _within(side, directions[:, i] * lengths[:, None])
            columns.append((cast(np.ndarray, side.beads)[:, 0], arms))
        return {i: len(columns) - len(which) + 1 + k for k, i in enumerate(which)}

    here = place(one)
    first = directed(one, mine)
    if other.beads is None:
        numbers |= {f"a{c}": other.places[:, k] for k, c in enumerate("xyz")}
        numbers |= {f"u{j + 1}{c}": directions[:, j, k] * lengths for j in theirs for k, c in enumerate("xyz")}
        there = {c: f"a{c}" for c in "xyz"}
        second = {j: {c: f"u{j + 1}{c}" for c in "xyz"} for j in theirs}
    else:
        there = place(other)
        ahead = directed(other, theirs)
        second = {j: {c: f"({c}{ahead[j]} - {there[c]})" for c in "xyz"} for j in theirs}
    texts = [f"{here[c]} - ({there[c]})" if " " in there[c] else f"{here[c]} - {there[c]}" for c in "xyz"]
    texts += [" + ".join(f"({c}{first[i]} - {c}1)*{second[j][c]}" for c in "xyz") for i, j in pairs]
    beads, arms = (np.stack(values, axis=1) for values in zip(*columns, strict=True))
    return texts, beads, arms, numbers


def _within(side: _Side, vectors: np.ndarray) -> np.ndarray:
    """Return vectors (m, 3) in the frames of bodies."""
    out: np.ndarray = turned(side.orientations * [1.0, -1.0, -1.0, -1.0], vectors)
    return out
