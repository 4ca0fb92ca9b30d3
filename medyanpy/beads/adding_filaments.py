"""Addition of filaments to a topology: what users give, checked."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from medyanpy._tools.types import Numbers
from medyanpy._tools.validation import array, number, per_item, whole_number
from medyanpy.beads.adding import chains_of, enough_nodes, inertia_of, joined, positions_of
from medyanpy.beads.directors import Directors
from medyanpy.beads.filament_constraints import parallel_directors
from medyanpy.beads.filaments import Filaments, GrowingFilaments
from medyanpy.core.columns import CAPS, MATERIAL, SUBUNITS
from medyanpy.errors import ParameterError, TopologyError

if TYPE_CHECKING:
    from medyanpy.topology import Topology

# The largest relative deviation of given nodes from the lengths of their links without an error (they are corrected
# when a Context is made).
_LENGTH_TOLERANCE = 1e-3
# The largest cosine of the angle of a given director with its link without an error (it is corrected).
_PERPENDICULAR_TOLERANCE = 1e-3
# Longer filaments are cut in segments by their links of the start.
_MOST_LINKS = 256


@dataclass(frozen=True)
class FilamentSpec:
    """Filaments to be added, as a user gives them; messages begin with `what`. See `add_filaments`."""

    what: str
    nodes: np.ndarray
    starts: np.ndarray
    mass: Any
    friction: Any
    friction_along: Any = None
    constrained: bool = True
    closed: bool = False
    link_lengths: Any = None
    fixed: Any = ()
    tolerance: float = 1e-10
    directors: Any = None
    director_mass: Any = None
    director_friction: Any = None
    rise: Any = None
    capacity_links: Any = None
    capacity_filaments: Any = None

    def add(self, topology: "Topology", name: str | None, capacity: int | None) -> Filaments:
        """Add the filaments, and their directors, to a topology."""
        if isinstance(self.friction, tuple) and len(self.friction) == 2:
            if self.friction_along is not None:
                raise ParameterError(
                    f"{self.what}: give node_friction=(along, across) or node_friction_along=, not both"
                )
            along, across = self.friction
            return replace(self, friction=across, friction_along=along).add(topology, name, capacity)
        handle, turning = self.make(topology)
        if self.capacity_links is not None and capacity is not None:
            raise ParameterError(
                f"{self.what}: capacity_links= is the room of each filament, and capacity_filaments= how many there "
                "may be: leave out capacity="
            )
        if self.capacity_filaments is not None and self.capacity_links is None:
            raise ParameterError(f"{self.what}: capacity_filaments= is of filaments with capacity_links=: give both")
        filaments = whole_number(
            f"{self.what}: capacity_filaments",
            handle.kind.n_chains if self.capacity_filaments is None else self.capacity_filaments,
            at_least=handle.kind.n_chains,
        )
        room = topology._capacity(self.what, len(self.nodes), capacity)
        if handle._capacity_links is not None:
            room = filaments * (handle._capacity_links + 1)
        # More filaments have at most as many links as nodes.
        n_links, links_room = len(handle.links), len(handle.links) if capacity is None else room
        default = "filament" if len(self.starts) == 2 else "filaments"
        first, own_name = topology._room(self.what, room if turning is None else room + links_room, name, default)
        handle._complete(_first=first, name=own_name)
        topology._keep(handle, room, mass=self.mass, friction=self.friction, friction_along=self.friction_along)
        if handle._capacity_links is not None:
            _spread_in_slots(handle)
        if turning is not None:
            first, own_name = topology._room(self.what, links_room, None, f"directors of {handle.name}")
            made = Directors(handle, own_name, first, *turning)
            friction = 0.0 if self.director_friction is None else self.director_friction
            handle._complete(
                directors=topology._keep(made, max(n_links, links_room), mass=self.director_mass, friction=friction)
            )
        return handle

    def make(self, topology: "Topology") -> tuple[Filaments, tuple[np.ndarray, np.ndarray, np.ndarray] | None]:
        """Make a handle in no topology, checked; also return positions, masses and frictions of its directors."""
        what, x, starts, along = self.what, self.nodes, self.starts, self.friction_along
        closed, constrained = bool(self.closed), bool(self.constrained)
        if along is not None:
            along = per_item(f"{what}: node_friction along the filament", along, len(x), at_least=0.0)
        inertia = inertia_of(what, "node_", len(x), self.mass, self.friction)
        fixed = np.unique(self.fixed)
        handle = (Filaments if self.rise is None else GrowingFilaments)(
            topology, "", 0, x, *inertia, starts.copy(), closed, constrained, np.empty(0), fixed,
            number(f"{what}: tolerance", self.tolerance, above=0.0),
        )  # fmt: skip

        def of(link: int) -> str:
            return f"{what}: {handle.kind.describe_link(link)}"

        enough_nodes(what, "filament", starts, closed)
        links = handle.links
        actual = np.linalg.norm(x[links[:, 1]] - x[links[:, 0]], axis=1)
        if not actual.all():
            raise TopologyError(f"{of(int(np.argmin(actual)))} has both nodes in one place")
        if self.link_lengths is None:
            lengths = actual
        else:
            lengths = np.array(per_item(f"{what}: link_lengths", self.link_lengths, len(links), above=0.0))
            off = np.abs(actual / lengths - 1.0)
            if constrained and (off > _LENGTH_TOLERANCE).any():
                worst = int(np.argmax(off))
                raise TopologyError(
                    f"{of(worst)} is {actual[worst]:g} nm long in the nodes given, but its length shall be "
                    f"{lengths[worst]:g} nm: nodes may miss it by {_LENGTH_TOLERANCE:g} of it"
                )
        if constrained and len(fixed):
            both = np.isin(links, fixed).all(axis=1)
            if both.any():
                raise TopologyError(f"{of(int(np.argmax(both)))} has both nodes fixed: nothing can move its length")
            _refuse_taut(what, handle, lengths)
        handle._complete(link_lengths=lengths, friction_along=along)
        if self.rise is not None:
            self._count_subunits(handle, of)
        if self.capacity_links is not None:
            self._give_slots(handle)
        return handle, self._turning(handle, links, of)

    def _count_subunits(self, handle: Filaments, of: Callable[[int], str]) -> None:
        """Let links of a handle grow: each has a whole number of subunits from now on."""
        what, rise = self.what, number(f"{self.what}: rise", self.rise, above=0.0)
        for wrong, why in (
            (not self.constrained, "links that grow keep the length of their subunits: they need constrained=True"),
            (self.closed, "a ring has no end at which it could grow"),
            (self.directors is not None, "directors do not follow links that grow: leave out directors="),
        ):
            if wrong:
                raise TopologyError(f"{what}: rise = {rise:g} nm, but {why}")
        for name, values in (
            ("node_mass", handle.mass), ("node_friction", handle.friction),
            ("node_friction along the filament", handle.friction_along),
        ):  # fmt: skip
            if values is not None and len(values) and (values != values[0]).any():
                k = int(np.argmax(values != values[0]))
                raise ParameterError(
                    f"{what}: {name} is {values[0]:g} of node 0 and {values[k]:g} of node {k}, but nodes at ends that "
                    "grow come and go, and need one mass and one friction: give one number for all, as "
                    "presets.actin().arguments(nodes, growing=True) does"
                )
        subunits = np.maximum((handle.link_lengths / rise).round(), 1.0)
        off = np.abs(handle.link_lengths / (subunits * rise) - 1.0)
        if (off > _LENGTH_TOLERANCE).any():
            worst = int(np.argmax(off))
            raise TopologyError(
                f"{of(worst)} has a length of {handle.link_lengths[worst]:g} nm, which is {subunits[worst]:g} times "
                f"the rise of {rise:g} nm but for {off[worst]:.2g} of it, and may miss a whole number of subunits by "
                f"{_LENGTH_TOLERANCE:g}"
            )
        handle._complete(_rise=rise, link_lengths=subunits * rise)
        handle.kind._complete(columns=(*handle.kind.columns, SUBUNITS, CAPS, MATERIAL))

    def _give_slots(self, handle: Filaments) -> None:
        """Let nodes of a handle come and go: each filament has room for so many links."""
        what, links = self.what, int(np.diff(handle.kind.link_starts).max(initial=1))
        for wrong, why in (
            (self.rise is None, "it is of filaments that grow: give rise="),
            (len(handle.fixed_nodes) > 0, "nodes that come and go are not fixed: leave out fixed_nodes="),
            (self.friction_along is not None, "they need one friction, the same along and across: give one number"),
        ):
            if wrong:
                raise TopologyError(f"{what}: capacity_links = {self.capacity_links}, but {why}")
        n = whole_number(f"{what}: capacity_links", self.capacity_links, at_least=links + 1, at_most=_MOST_LINKS)
        handle._complete(_capacity_links=n)
        handle.kind._complete(comes_and_goes=True)

    def _turning(
        self, filaments: Filaments, links: np.ndarray, of: Callable[[int], str]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
        what, directors, x = self.what, self.directors, self.nodes
        if directors is None:
            if self.director_mass is not None:
                raise ParameterError(f"{what}: director_mass is given, but no directors")
            return None
        if not filaments.constrained:
            raise TopologyError(
                f"{what}: directors stay perpendicular to links that keep their lengths: they need constrained=True"
            )
        if self.director_mass is None:
            raise ParameterError(f"{what}: directors need director_mass=, the moment of inertia of a link")
        if isinstance(directors, str):
            if directors != "parallel":
                raise ParameterError(f'{what}: directors must be an array or "parallel", not {directors!r}')
            directors = parallel_directors(filaments)
        friction = 0.0 if self.director_friction is None else self.director_friction
        return (
            perpendicular(f"{what}: directors", directors, x[links[:, 1]] - x[links[:, 0]], of),
            *inertia_of(what, "director_", len(links), self.director_mass, friction),
        )


@overload
def add_filament(
    topology: "Topology", nodes: Numbers, node_mass: Numbers, node_friction: Numbers = 0.0, constrained: bool = True,
    closed: bool = False, *,
    node_friction_along: Numbers | None = None, link_lengths: Numbers | None = None, fixed_nodes: Numbers = (),
    tolerance: float = 1e-10, name: str | None = None, capacity: int | None = None, rise: float,
    capacity_links: int | None = None, capacity_filaments: int | None = None,
) -> GrowingFilaments: ...  # fmt: skip
@overload
def add_filament(
    topology: "Topology", nodes: Numbers, node_mass: Numbers, node_friction: Numbers = 0.0, constrained: bool = True,
    closed: bool = False, directors: Numbers | Literal["parallel"] | None = None, *,
    director_mass: Numbers | None = None, director_friction: Numbers | None = None,
    node_friction_along: Numbers | None = None, link_lengths: Numbers | None = None, fixed_nodes: Numbers = (),
    tolerance: float = 1e-10, name: str | None = None, capacity: int | None = None, rise: float | None = None,
    capacity_links: int | None = None, capacity_filaments: int | None = None,
) -> Filaments: ...  # fmt: skip
def add_filament(
    topology: "Topology", nodes: Numbers, node_mass: Numbers, node_friction: Numbers = 0.0, constrained: bool = True,
    closed: bool = False, directors: Numbers | Literal["parallel"] | None = None, *,
    director_mass: Numbers | None = None, director_friction: Numbers | None = None,
    node_friction_along: Numbers | None = None, link_lengths: Numbers | None = None, fixed_nodes: Numbers = (),
    tolerance: float = 1e-10, name: str | None = None, capacity: int | None = None, rise: float | None = None,
    capacity_links: int | None = None, capacity_filaments: int | None = None,
) -> Filaments:  # fmt: skip
    """Add one filament: a chain or ring of beads with links of constant length.

    Parameters
    ----------
    nodes : (n, 3) float, nm
        n >= 2; for a ring n >= 3.
    node_mass : float or (n,) float, pN s²/nm, > 0
    node_friction : float or (n,) float, pN s/nm, >= 0; or a tuple (along, across) of two such
        Against motion along the tangent and across it: of a slender rod about 1 to 2.
    constrained : bool
        Keep the lengths of links. Otherwise the filament is a row of beads that a force must hold together.
    closed : bool
        Join the last node to the first.
    directors : (l, 3) float, not zero, or "parallel", optional
        Makes the filament twistable: a material direction for each of its l links, perpendicular to it to 1e-3, of any
        length. ``"parallel"``: without twist; of a ring, with the twist needed to close it spread evenly.
    director_mass : float or (l,) float, pN s² nm, > 0
        The moment of inertia of each link about its axis; needed with `directors`.
    director_friction : float or (l,) float, pN nm s, >= 0, optional
        Against rotation of each link about its axis, 0 where none is given; of a rod of radius a in a fluid of
        viscosity η, 4πηa² a length.
    node_friction_along : float or (n,) float, pN s/nm, >= 0, optional
        Alternative to the tuple: `node_friction` is then that across.
    link_lengths : float or (l,) float, nm, > 0, optional
        l = n - 1 links, n of a ring. By default the distances of nodes, which may deviate from given lengths by 1e-3.
    fixed_nodes : (k,) int
        Nodes that do not move; -1 is the last.
    tolerance : float, > 0
        Of lengths, relative.
    name : str, optional
    capacity : int, >= n, optional
        Rows for so many nodes in all, which filaments that are added later take; of twistable ones for as many links.
    rise : float, nm, > 0, optional
        Length of a subunit, for `jumps.Polymerization`: links have whole numbers of these, which their lengths may miss
        by 1e-3. Needs one mass and one friction of all nodes.
    capacity_links : int, at most 256, optional
        With a rise: room for so many links in each filament, more than it has, whose nodes come and go as ends grow.
        Filaments start in the middle of their room.
    capacity_filaments : int, optional
        With `capacity_links`: room for so many filaments in all, for `jumps.Nucleation` and `jumps.Severing`.

    Raises
    ------
    TopologyError
        Wrong shapes, too few nodes, nodes in one place, other link lengths than those of the nodes. A link with both
        ends fixed, or links held straight between fixed nodes. A director of length 0 or not perpendicular to its link,
        or of a filament that is not constrained. A rise that does not divide links; with one, rings, directors, or
        links that are not constrained. A name in use, or a topology in use.
    ParameterError
        A number outside its domain. With a rise, nodes of different mass or friction.
    """
    x = positions_of("add_filament: nodes", nodes)
    fixed = expect_nodes("add_filament", fixed_nodes, len(x), -len(x))
    spec = FilamentSpec(
        "add_filament", x, np.array([0, len(x)]), node_mass, node_friction, node_friction_along,
        constrained=constrained, closed=closed, link_lengths=link_lengths,
        fixed=np.where(fixed < 0, fixed + len(x), fixed), tolerance=tolerance, directors=directors,
        director_mass=director_mass, director_friction=director_friction, rise=rise, capacity_links=capacity_links,
        capacity_filaments=capacity_filaments,
    )  # fmt: skip
    return spec.add(topology, name, capacity)


@overload
def add_filaments(
    topology: "Topology", nodes: Numbers, node_mass: Numbers, node_friction: Numbers = 0.0, constrained: bool = True,
    closed: bool = False, *, starts: Numbers | None = None,
    node_friction_along: Numbers | None = None, link_lengths: Numbers | None = None, fixed_nodes: Numbers = (),
    tolerance: float = 1e-10, name: str | None = None, capacity: int | None = None, rise: float,
    capacity_links: int | None = None, capacity_filaments: int | None = None,
) -> GrowingFilaments: ...  # fmt: skip
@overload
def add_filaments(
    topology: "Topology", nodes: Numbers, node_mass: Numbers, node_friction: Numbers = 0.0, constrained: bool = True,
    closed: bool = False, directors: Numbers | Literal["parallel"] | None = None, *, starts: Numbers | None = None,
    director_mass: Numbers | None = None, director_friction: Numbers | None = None,
    node_friction_along: Numbers | None = None, link_lengths: Numbers | None = None, fixed_nodes: Numbers = (),
    tolerance: float = 1e-10, name: str | None = None, capacity: int | None = None, rise: float | None = None,
    capacity_links: int | None = None, capacity_filaments: int | None = None,
) -> Filaments: ...  # fmt: skip
def add_filaments(
    topology: "Topology", nodes: Numbers, node_mass: Numbers, node_friction: Numbers = 0.0, constrained: bool = True,
    closed: bool = False, directors: Numbers | Literal["parallel"] | None = None, *, starts: Numbers | None = None,
    director_mass: Numbers | None = None, director_friction: Numbers | None = None,
    node_friction_along: Numbers | None = None, link_lengths: Numbers | None = None, fixed_nodes: Numbers = (),
    tolerance: float = 1e-10, name: str | None = None, capacity: int | None = None, rise: float | None = None,
    capacity_links: int | None = None, capacity_filaments: int | None = None,
) -> Filaments:  # fmt: skip
    """Add many filaments at once, with one handle; see `add_filament`.

    Parameters
    ----------
    nodes : list of (n_i, 3) float, or (n, 3) float, nm
        Of each filament; or of all together, with `starts`.
    node_mass : float or (n,) float, pN s²/nm, > 0
        Of all nodes, filament after filament.
    node_friction, node_friction_along : float or (n,) float, pN s/nm, >= 0
        As `add_filament`, of all nodes.
    constrained, closed : bool
        Of all.
    directors : list of (l_i, 3) float, or (l, 3) float, not zero, or "parallel", optional
        Of the links of each filament, or of all together.
    director_mass, director_friction : float or (l,) float, pN s² nm, > 0, and pN nm s, >= 0, optional
        Of all links, filament after filament.
    starts : (f + 1,) int, optional
        Where the nodes of each filament start, and the number of all nodes.
    link_lengths : float or (l,) float, nm, > 0, optional
        Of all links, filament after filament.
    fixed_nodes : (k,) int
        Numbered through all nodes.
    tolerance, name, capacity, rise, capacity_links, capacity_filaments
        As `add_filament`.

    Raises
    ------
    TopologyError, ParameterError
        As `add_filament`; the message names the filament.
    """
    what = "add_filaments"
    x, starts = chains_of(what, nodes, starts)
    fixed = expect_nodes(what, fixed_nodes, len(x), 0)
    directors = joined(f"{what}: directors", directors, 3)
    spec = FilamentSpec(
        what, x, starts, node_mass, node_friction, node_friction_along, constrained=constrained, closed=closed,
        link_lengths=link_lengths, fixed=fixed, tolerance=tolerance, directors=directors, director_mass=director_mass,
        director_friction=director_friction, rise=rise, capacity_links=capacity_links,
        capacity_filaments=capacity_filaments,
    )  # fmt: skip
    return spec.add(topology, name, capacity)


def expect_nodes(what: str, nodes: Any, n: int, lowest: int) -> np.ndarray:
    """Return numbers of nodes from `lowest` to n - 1."""
    fixed = array(f"{what}: fixed_nodes", nodes, (None,), dtype=np.int64, error=TopologyError)
    bad = (fixed < lowest) | (fixed >= n)
    if bad.any():
        raise TopologyError(f"{what}: node {fixed[bad][0]} is fixed, but nodes are 0 to {n - 1}")
    return fixed


def perpendicular(what: str, directors: Any, links: np.ndarray, of: Callable[[int], str]) -> np.ndarray:
    """Return unit vectors (l, 3) perpendicular to links.

    TopologyError for directors that are too far from that.
    """
    given = array(what, directors, (len(links), 3), error=TopologyError)
    size = np.linalg.norm(given, axis=1)
    if not size.all():
        raise TopologyError(f"{of(int(np.argmin(size)))} has a director of length 0")
    along = links / np.linalg.norm(links, axis=1)[:, None]
    p = given / size[:, None]
    cosine = np.einsum("ij,ij->i", p, along)
    if (np.abs(cosine) > _PERPENDICULAR_TOLERANCE).any():
        worst = int(np.argmax(np.abs(cosine)))
        raise TopologyError(
            f"{of(worst)} has a director that is not perpendicular to it: the cosine of the angle between them is "
            f"{cosine[worst]:g}, but must be within {_PERPENDICULAR_TOLERANCE:g} of 0"
        )
    # Values that are right already keep their bits.
    off = np.maximum(np.abs(cosine), np.abs(size - 1.0)) > 1e-14
    projected = p - cosine[:, None] * along
    out = np.where(off[:, None], projected / np.linalg.norm(projected, axis=1)[:, None], given)
    out.flags.writeable = False
    return out


def _spread_in_slots(filaments: Filaments) -> None:
    """Let each filament of a handle start in the middle of its room."""
    n, slots = np.diff(filaments.starts), filaments.kind.slots
    assert slots is not None
    before = (slots.shape[1] - n) // 2
    none = np.empty(0, np.int64)
    own = np.concatenate([none, *(row[a : a + k] for row, a, k in zip(slots, before, n, strict=False))])
    filaments._complete(_rows=own, _inactive=np.setdiff1d(slots, own))


def _refuse_taut(what: str, filaments: Filaments, lengths: np.ndarray) -> None:
    """Refuse fixed nodes that hold the links between them straight.

    No impulse along the links could keep their lengths.
    """
    x, fixed = filaments.positions, filaments.fixed_nodes
    owner = np.searchsorted(filaments.starts, fixed, side="right") - 1
    for i in np.unique(owner).tolist():
        start, stop = filaments.starts[i : i + 2]
        n = stop - start
        nodes = (fixed[owner == i] - start).tolist()
        pairs = list(pairwise(nodes))
        if filaments.closed and len(nodes) > 1:
            pairs.append((nodes[-1], nodes[0] + n))
        along = np.tile(lengths[filaments.kind.link_starts[i] : filaments.kind.link_starts[i + 1]], 2)
        for a, b in pairs:
            if np.linalg.norm(x[start + b % n] - x[start + a]) > (1.0 - 1e-9) * along[a:b].sum():
                raise TopologyError(
                    f"{what}: filament {i} is held straight at its full length between its fixed nodes {a} and "
                    f"{b % n}: its links cannot keep their lengths if anything pushes a node between them. Give it "
                    "some slack, or fix one node only"
                )
