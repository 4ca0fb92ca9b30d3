"""Adsorption: molecules of a pool, or beads near a membrane, land on it and leave it; absorption."""

from typing import Any, Literal

from medyanpy._tools.declared import declared
from medyanpy.beads import InTrianglePoints, Membrane
from medyanpy.core.species import OfSpecies
from medyanpy.errors import ParameterError, TopologyError, shown
from medyanpy.jumps._base import argument, number
from medyanpy.jumps._exchange import ExchangeForm
from medyanpy.jumps._formed import FormedJump
from medyanpy.jumps._point_reactions import COME, GO, OneWay, PointForm
from medyanpy.jumps._reaction_texts import Reaction
from medyanpy.pools import Species

__all__ = ["Absorption", "Adsorption"]


@declared
class Adsorption(FormedJump):
    r"""Adsorption to a membrane, in which molecules of a pool or beads in space become points, and desorption.

    Of a concentration C they land at the rate :math:`k_\mathrm{on} C` per area, uniform by area, and each point leaves
    at the rate :math:`k_\mathrm{off}`. In balance ideal points have the density
    :math:`C\,k_\mathrm{on}/k_\mathrm{off}`.

    Parameters
    ----------
    molecules : Species of a pool, or OfSpecies of beads
        ``pool["Arp2/3"]``: counted ones are used up, those of a reservoir are not. Of Compartments, those of the cell
        in which the place is. The membrane does not divide cells: water on both of its sides is one. Or
        ``beads.of("A")``: those that are within the layer over a triangle.
    points : OfSpecies
        ``points.of("A")``: what they are in the membrane.

    Raises
    ------
    ParameterError
        Molecules that are not a species of a pool or of beads, points that are not one species of points in a membrane,
        rates below 0. Beads without a layer, and a layer of molecules of a pool.
    TopologyError
        Beads that do not move in space. Corners that take no momentum, since they are fixed.

    Notes
    -----
    A landed point draws its velocity from Maxwell's distribution in its triangle, and a bead that leaves one in space.
    Momenta of vertices stay: what a bead had is heat. With ``momenta="conserved"`` the corners of its triangle take its
    momentum, each by its weight, and give that of a bead that leaves. Events that change the energy of forces on them,
    or of these corners, are accepted with :math:`\min\{1, e^{-\Delta E/kT}\}`. The jump is balanced; without
    desorption it is driven.

    A bead lands at the rate :math:`k_\mathrm{on}/d` for each triangle over which it hangs at a height below the layer d
    on the given side; a point leaves to a height that is uniform in the layer. So the balance is exact at edges too,
    where prisms over triangles leave gaps or overlap. ``state.jumps[name]["events"]`` counts by side, in the order of
    `kinds`.

    `on_rate` counts molecules from all sides that the membrane is met from: of a surface met from one side it is that
    of this side, of a sheet in water on both sides the sum of both. Between two members of the membrane that react
    within a layer of the thickness σ on each side, :math:`k_\mathrm{2D} = k_\mathrm{3D}/2\sigma` and
    :math:`K_\mathrm{2D} = 2\sigma K_\mathrm{3D}`.

    ``Reactions(points, "A <-> P", pool=pool)`` is the same of a pool, with other reactions on the same clock.

    Examples
    --------
    >>> import medyanpy as mp
    >>> topology = mp.Topology()
    >>> membrane = topology.add_membrane(mp.TriangleMesh.icosphere(50.0, 3), vertex_mass=1e-7, fixed=True)
    >>> proteins = topology.add_intriangle_points(
    ...     membrane, species={"Arp": {"mass": 4e-12, "friction": 4e-6}}, counts={}, capacity=200, seed=1
    ... )
    >>> system = mp.System(topology)
    >>> pool = system.add_pool(mp.Pool(volume=1.1e9, counts={"Arp": 200}))
    >>> landing = system.add_jump(mp.jumps.Adsorption(pool["Arp"], proteins.of("Arp"), on_rate=1e5, off_rate=1.0))
    >>> landing.kinds
    ('adsorb: Arp -> Arp', 'desorb: Arp -> Arp')
    """

    molecules: Species | OfSpecies = argument(
        "Species of a pool, or OfSpecies of beads", "``pool[name]``, or ``beads.of(name)``.", attribute="What lands."
    )
    points: OfSpecies = argument("OfSpecies", "``points.of(name)``.", attribute="What it is in the membrane.")
    on_rate: float = number("nm/s", "Landings per area and concentration.", kw_only=True, at_least=0.0)
    off_rate: float = number("1/s", "Rate at which a point leaves.", kw_only=True, at_least=0.0)
    layer: float | None = number(
        "nm", "Of beads: height up to which they land.", default=None, above=0.0, kw_only=True
    )
    side: Literal["outside", "inside", "both"] | None = argument(
        '"outside", "inside" or "both", optional', "Of beads: the side of the layer; that to which normals point where "
        "none is given.", default=None, kw_only=True,
    )  # fmt: skip
    most_feet: int | None = argument(
        "int, optional", "Of beads: most triangles over which one may hang; more are a fault. 8 where none is given.",
        default=None, kw_only=True,
    )  # fmt: skip
    momenta: Literal["maxwell", "conserved"] | None = argument(
        '"maxwell" or "conserved", optional', "Of beads: corners keep their velocities, or take the momentum of what "
        'lands and give it back. "maxwell" where none is given.', default=None, kw_only=True,
    )  # fmt: skip

    def _take(self, given: dict[str, Any]) -> None:
        super()._take(given)
        molecules, points = given["molecules"], given["points"]
        if not isinstance(molecules, Species | OfSpecies):
            wanted = 'a species of a pool, pool["A"], or of beads, beads.of("A")'
            raise ParameterError(f"{self.name}: molecules must be {wanted}, not {shown(molecules)}")
        if not isinstance(points, OfSpecies):
            raise ParameterError(f'{self.name}: points must be of one species, points.of("A"), not {shown(points)}')
        if not isinstance(points.handle, InTrianglePoints):
            raise ParameterError(
                f"{self.name}: points must be of points in a membrane, not {points!r}: into the volume of a box "
                'molecules come by Reactions(beads, "A <-> B", pool=...)'
            )
        self._molecules, self._points = molecules, points
        of_beads = {name: given[name] for name in ("layer", "side", "most_feet", "momenta")}
        if isinstance(molecules, OfSpecies):
            if of_beads["layer"] is None:
                raise ParameterError(f"{self.name}: give layer=, the height in nm up to which {molecules!r} land")
            side = of_beads["side"] or "outside"
            words = "adsorb", "desorb"
            self._form = ExchangeForm(
                self, molecules, points, points.handle.membrane, words, side, of_beads["most_feet"],
                of_beads["momenta"],
            )  # fmt: skip
            return
        for name, value in of_beads.items():
            if value is not None:
                raise ParameterError(f"{self.name}: {name} is of beads, and not of {molecules!r}, which has no places")
        ways = (
            OneWay(COME, (), (points.number,), 1, f"adsorb: {molecules.name} -> {points.name}", molecules.number),
            OneWay(GO, (points.number,), (), 0, f"desorb: {points.name} -> {molecules.name}", given=molecules.number),
        )
        reaction = Reaction((), (points.name,), reversible=True)
        self._form = PointForm(self, points.handle, (reaction,), pool=molecules.pool, ways=ways)

    def _acts_on(self) -> str:
        return f"{self._molecules!r}, {self._points!r}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._acts_on()})"


@declared
class Absorption(FormedJump):
    r"""Absorption of beads by a membrane, or a reservoir of fixed concentration on its side.

    A bead is removed at the rate :math:`k/d` for each triangle over which it hangs, at a height below the layer d on
    the given side. So :math:`k\,C` are absorbed per area and time, with the concentration C in the layer. With a
    `concentration` c the membrane clamps it: beads are created there at the rate :math:`k\,c` per area, and in balance
    those of the layer are those of a reservoir, a Poisson distribution of the mean c times its volume.

    Parameters
    ----------
    beads : OfSpecies
        ``beads.of("A")``, beads that move in space.
    membrane : Membrane

    Raises
    ------
    ParameterError
        Beads that are not one species, numbers outside their domain.
    TopologyError
        Beads that do not move in space; not the handle of a membrane.

    Notes
    -----
    Without `concentration` it is driven: nothing leads back. These are the surface classes of MCell: ``ABSORPTIVE``,
    and ``CLAMP_CONC``. ``REFLECTIVE`` is a force between beads and triangles, and ``TRANSPARENT`` needs neither
    jump nor force. ``state.jumps[name]["events"]`` counts beads by side, in the order of `kinds`.

    Examples
    --------
    >>> import medyanpy as mp
    >>> topology = mp.Topology()
    >>> membrane = topology.add_membrane(mp.TriangleMesh.icosphere(50.0, 3), vertex_mass=1e-7, fixed=True)
    >>> ions = topology.add_beads(
    ...     [[0.0, 0, 60]], species={"Ca": {"mass": 1e-12, "friction": 1e-6}}, of_species="Ca", capacity=100
    ... )
    >>> system = mp.System(topology)
    >>> sink = system.add_jump(mp.jumps.Absorption(ions.of("Ca"), membrane, rate=1e4, layer=5.0))
    >>> sink.driven
    True
    """

    beads: OfSpecies = argument("OfSpecies", "``beads.of(name)``.", attribute="What is absorbed.")
    membrane: Membrane = argument("Membrane", "The membrane.", attribute="What absorbs.")
    rate: float = number("nm/s", "k: absorbed per area and concentration.", kw_only=True, at_least=0.0)
    layer: float = number("nm", "d: height up to which beads are absorbed.", kw_only=True, above=0.0)
    side: Literal["outside", "inside", "both"] = argument(
        '"outside", "inside" or "both"', "The side of the layer; outside is that to which normals point.",
        default="outside", kw_only=True,
    )  # fmt: skip
    concentration: float | None = number(
        "1/nm³", "c, which the layer is clamped to; none: nothing comes back.", default=None, at_least=0.0,
        kw_only=True,
    )  # fmt: skip
    most_feet: int | None = argument(
        "int, optional", "Most triangles over which a bead may hang; more are a fault. 8 where none is given.",
        default=None, kw_only=True,
    )  # fmt: skip

    def _take(self, given: dict[str, Any]) -> None:
        super()._take(given)
        beads, membrane = given["beads"], given["membrane"]
        if not isinstance(beads, OfSpecies):
            raise ParameterError(f'{self.name}: beads must be of one species, beads.of("A"), not {shown(beads)}')
        if not isinstance(membrane, Membrane):
            raise TopologyError(f"{self.name}: membrane must be the handle of a membrane, not {membrane!r}")
        self._beads, self._membrane = beads, membrane
        self._form = ExchangeForm(
            self, beads, None, membrane, ("absorb", "create"), given["side"], given["most_feet"]
        )

    def _acts_on(self) -> str:
        return f"{self._beads!r}, {self._membrane.name}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._acts_on()})"
