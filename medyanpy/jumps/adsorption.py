"""Adsorption: molecules of a pool land on a membrane, and leave it."""

from typing import Any

from medyanpy._tools.declared import declared
from medyanpy.beads import InTrianglePoints
from medyanpy.core.species import OfSpecies
from medyanpy.errors import ParameterError, shown
from medyanpy.jumps._base import argument, number
from medyanpy.jumps._formed import FormedJump
from medyanpy.jumps._point_reactions import COME, GO, OneWay, PointForm
from medyanpy.jumps._reaction_texts import Reaction
from medyanpy.pools import Species

__all__ = ["Adsorption"]


@declared
class Adsorption(FormedJump):
    r"""Adsorption of molecules of a pool to a membrane, in which they are points, and desorption.

    Molecules of concentration C land at the rate :math:`k_\mathrm{on} C` per area, uniform by area, and each point
    leaves at the rate :math:`k_\mathrm{off}`. In balance ideal points have the density
    :math:`C\,k_\mathrm{on}/k_\mathrm{off}`.

    Parameters
    ----------
    molecules : Species of a pool
        ``pool["Arp2/3"]``: counted ones are used up, those of a reservoir are not. Of Compartments, those of the cell
        in which the place is. The membrane does not divide cells: water on both of its sides is one.
    points : OfSpecies
        ``points.of("A")``: what they are in the membrane.

    Raises
    ------
    ParameterError
        Molecules that are not a species of a pool, points that are not one species of points in a membrane, rates below
        0.

    Notes
    -----
    A landed point draws its velocity from Maxwell's distribution in its triangle. Events that change the energy of
    forces on the points are accepted with :math:`\min\{1, e^{-\Delta U/kT}\}`. The jump is balanced; without desorption
    it is driven.

    `on_rate` counts molecules from all sides that the membrane is met from: of a surface met from one side it is that
    of this side, of a sheet in water on both sides the sum of both. Between two members of the membrane that react
    within a layer of the thickness σ on each side, :math:`k_\mathrm{2D} = k_\mathrm{3D}/2\sigma` and
    :math:`K_\mathrm{2D} = 2\sigma K_\mathrm{3D}`.

    ``Reactions(points, "A <-> P", pool=pool)`` is the same, with other reactions on the same clock.

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
    ('adsorb', 'desorb')
    """

    molecules: Species = argument("Species of a pool", "``pool[name]``.", attribute="What lands.")
    points: OfSpecies = argument("OfSpecies", "``points.of(name)``.", attribute="What it is in the membrane.")
    on_rate: float = number("nm/s", "Landings per area and concentration.", kw_only=True, at_least=0.0)
    off_rate: float = number("1/s", "Rate at which a point leaves.", kw_only=True, at_least=0.0)

    def _take(self, given: dict[str, Any]) -> None:
        super()._take(given)
        molecules, points = given["molecules"], given["points"]
        if not isinstance(molecules, Species):
            wanted = 'a species of a pool, pool["A"]'
            raise ParameterError(f"{self.name}: molecules must be {wanted}, not {shown(molecules)}")
        if not isinstance(points, OfSpecies):
            raise ParameterError(f'{self.name}: points must be of one species, points.of("A"), not {shown(points)}')
        if not isinstance(points.handle, InTrianglePoints):
            raise ParameterError(
                f"{self.name}: points must be of points in a membrane, not {points!r}: into the volume of a box "
                'molecules come by Reactions(beads, "A <-> B", pool=...)'
            )
        self._molecules, self._points = molecules, points
        ways = (
            OneWay(COME, (), (points.number,), 1, "adsorb", taken=molecules.number),
            OneWay(GO, (points.number,), (), 0, "desorb", given=molecules.number),
        )
        reaction = Reaction((), (points.name,), reversible=True)
        self._form = PointForm(self, points.handle, (reaction,), pool=molecules.pool, ways=ways)

    def _acts_on(self) -> str:
        return f"{self._molecules!r}, {self._points!r}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._acts_on()})"
