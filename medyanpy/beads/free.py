"""Free beads, with and without a radius; and how kinds of beads that are defined elsewhere are added."""

from typing import TYPE_CHECKING, Any

from medyanpy._tools.described import kept, scalar_if_one
from medyanpy._tools.validation import per_item
from medyanpy.beads.adding import inertia_of, positions_of
from medyanpy.errors import TopologyError
from medyanpy.handles import Handle

if TYPE_CHECKING:
    from medyanpy.topology import Topology


class Beads(Handle):
    """Free beads. `positions` (n, 3), nm, are where they start."""

    added_by = "add_beads"

    def __init__(self, topology, name, first, positions, mass, friction) -> None:
        super().__init__(topology, name, first, mass, friction)
        self.positions = positions

    def _arguments_now(self) -> dict[str, Any]:
        return {"positions": self.positions, **super()._arguments_now()}


class Balls(Beads):
    """Free beads with a radius (n,), nm, which pair forces may use."""

    kind = "balls"
    added_by = "add_balls"

    def __init__(self, topology, name, first, positions, radius, mass, friction) -> None:
        super().__init__(topology, name, first, positions, mass, friction)
        self.radius = radius

    def beside_frames(self) -> dict[str, Any]:
        return {**super().beside_frames(), "radius": (self.radius, "nm")}

    def _arguments_now(self) -> dict[str, Any]:
        return {**super()._arguments_now(), "radius": scalar_if_one(self.radius)}


def add_beads(
    topology: "Topology", positions: Any, mass: Any, friction: Any = 0.0, *, name: str | None = None
) -> Beads:
    """Add free beads.

    Parameters
    ----------
    positions : (n, 3) float, nm
    mass : float or (n,) float, pN s²/nm, > 0
    friction : float or (n,) float, pN s/nm, >= 0
        Used by the letter O; a bead without friction is not thermostatted.
    name : str, optional

    Raises
    ------
    TopologyError
        Wrong shapes, coordinates that are not finite, a name in use, or a topology already in use.
    ParameterError
        A mass or friction outside its domain.
    """
    x = positions_of("add_beads", positions)
    first, name = topology._room("add_beads", len(x), name, "beads")
    return topology._keep(Beads(topology, name, first, x, *inertia_of("add_beads", "", len(x), mass, friction)))


def add(
    topology: "Topology",
    kind: type[Beads],
    positions: Any,
    mass: Any,
    friction: Any = 0.0,
    *,
    name: str | None = None,
    **own: Any,
) -> Beads:
    """Add beads of a kind that is defined elsewhere; see "How to give letters a meaning for a new kind of bead".

    Parameters
    ----------
    kind : subclass of `Beads`
        Called as ``kind(topology, name, first_bead, positions, mass, friction, **own)``.
    positions : (n, 3) float, nm
    mass : float or (n,) float, pN s²/nm, > 0
    friction : float or (n,) float, pN s/nm, >= 0
    name : str, optional
        ``kind.kind`` where none is given.
    own
        What the kind needs besides; it checks that itself.

    Raises
    ------
    TopologyError, ParameterError
        As `add_beads`.
    """
    if not (isinstance(kind, type) and issubclass(kind, Beads)):
        raise TopologyError(f"add: kind must be a class of beads, not {kind!r}")
    x = positions_of("add", positions)
    inertia = inertia_of("add", "", len(x), mass, friction)
    first, name = topology._room("add", len(x), name, kind.kind)
    own = {key: kept(value) for key, value in own.items()}
    handle = kind(topology, name, first, x, *inertia, **own)
    handle._own = own
    return topology._keep(handle)


def add_balls(
    topology: "Topology", positions: Any, radius: Any, mass: Any, friction: Any = 0.0, *, name: str | None = None
) -> Balls:
    """Add free beads that have a radius.

    Parameters
    ----------
    positions : (n, 3) float, nm
    radius : float or (n,) float, nm, > 0
        Pair forces without a diameter of their own let balls touch at the sum of their radii. In a fluid of
        viscosity η the friction of a ball is 6πηr (Stokes).
    mass : float or (n,) float, pN s²/nm, > 0
    friction : float or (n,) float, pN s/nm, >= 0
    name : str, optional

    Raises
    ------
    TopologyError, ParameterError
        As `add_beads`.
    """
    x = positions_of("add_balls", positions)
    r = per_item("add_balls: radius", radius, len(x), above=0.0)
    inertia = inertia_of("add_balls", "", len(x), mass, friction)
    first, name = topology._room("add_balls", len(x), name, "balls")
    return topology._keep(Balls(topology, name, first, x, r, *inertia))
