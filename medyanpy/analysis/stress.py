"""The stress of a system, from the virials of its forces."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from medyanpy._tools.images import displacement
from medyanpy._tools.names import look_up
from medyanpy._tools.validation import number, vector, words
from medyanpy.analysis.frames import Source, lengths_of
from medyanpy.analysis.surfaces import Surfaces
from medyanpy.beads import Membrane
from medyanpy.context import Context
from medyanpy.core.handles import Handle
from medyanpy.errors import ParameterError
from medyanpy.forces import HarmonicTrap
from medyanpy.simulation import Simulation
from medyanpy.state import State

__all__ = ["SurfaceTension", "VirialStress", "surface_tension", "tether_force", "virial_stress"]


@dataclass(frozen=True)
class VirialStress:
    """Stress at one moment; tension is positive. 1 pN/nm² is 1 MPa.

    Attributes
    ----------
    forces : dict of str to (3, 3) float array, pN/nm²
        Of every force, by its name: -W/V with the virial W = Σ x_i ⊗ F_i.
    constraints : dict of str to (3, 3) float array, pN/nm²
        Of the forces with which constraints hold beads, by the handles that have them.
    kinetic : (3, 3) float array, pN/nm²
        -Σ m_i v_i ⊗ v_i/V.
    volume : float, nm³, > 0
    """

    forces: dict[str, np.ndarray]
    constraints: dict[str, np.ndarray]
    kinetic: np.ndarray
    volume: float

    @property
    def total(self) -> np.ndarray:
        """Sum of all parts, (3, 3) pN/nm²."""
        return sum([*self.forces.values(), *self.constraints.values()], self.kinetic)

    @property
    def pressure(self) -> float:
        """Pressure, -tr/3 of the sum, pN/nm²."""
        return -float(np.trace(self.total)) / 3.0


def virial_stress(source: Simulation | Context, volume: float | None = None) -> VirialStress:
    r"""Return the stress of a system, by force, and of the motion of its beads.

    .. math:: \sigma = -\frac1V \Bigl(\sum_i m_i\,v_i \otimes v_i + \sum_i x_i \otimes F_i\Bigr)

    F are the forces of the system, with those of constraints. In a homogeneous strain x → x + εᵀx, the energy changes
    by Vσ : ε.

    Parameters
    ----------
    source : Simulation or Context
        As it is now. The stress of one moment is mostly noise: call this at regular intervals, and `average`.
    volume : float, nm³, > 0, optional
        Volume under stress: the content of a vesicle, a cell. With 1 the numbers are the virials themselves, in pN nm.
        By default that of a box that is periodic in three directions.

    Raises
    ------
    ParameterError
        Neither a simulation nor a context. No volume. An integrator without velocities (for n free beads at kT add -n
        kT/V to the diagonal). Beads held by constraints with unknown forces: surfaces that are
        Python functions.

    Notes
    -----
    The virial of internal forces does not depend on the origin of space; that of traps, walls and other forces from
    outside does. Over a long time the whole stress of beads that stay in one place is zero in all its components
    (Clausius): the pressure on walls is that of the other parts, whose sum is -P V.

    The tensor is symmetric where the torques of all forces on the places of beads add up to zero. Forces with arms on
    rigid bodies and rods turn these, and their antisymmetric part is minus that torque, since a strain moves a body by
    its centre. Directors of twistable filaments are not changed by it. In-triangle points count with their force and
    their velocity in the triangle where they are; the forces that they pass on to corners are left out. Source: R.
    Clausius, Ann. Phys. 217, 124 (1870).
    """
    what = "virial_stress"
    context = source.context if isinstance(source, Simulation) else source
    if not isinstance(context, Context):
        raise ParameterError(
            f"{what}: source must be a Simulation or a Context, not {source!r}: states and trajectories hold neither "
            "forces by name nor masses; set_state puts a state into a context"
        )
    if volume is None:
        cell = lengths_of(what, getattr(context.get_state(), "box", None))
        if cell is None or not cell.all():
            raise ParameterError(f"{what}: give volume=, because only a box that is periodic in all directions has one")
        size = float(np.prod(cell))
    else:
        size = number(f"{what}: volume", volume, above=0.0)
    if context.integrator.overdamped:
        raise ParameterError(
            f"{what}: beads of {context.integrator!r} move without velocities: for the virials alone see "
            "get_state(virial=True), and the motion of n free beads adds -n kT/V to each element of the diagonal"
        )
    state = context.get_state(positions=True, velocities=True, virial=True, multipliers=True)
    handles = [h for h in context.system.topology.handles if h.kind.in_space or h.kind.constraint_rows()]
    found = {handle.name: _of_constraints(what, handle, state) for handle in handles}
    constraints = {name: -virial / size for name, virial in found.items() if virial is not None}
    kinetic = np.zeros((3, 3))
    for handle in handles:
        rows, mass = state.living(handle), np.full(len(state.velocities), handle.kind.of_all("mass") or np.nan)
        mass[handle.beads] = handle.mass
        v = state.velocities[rows]
        kinetic -= (mass[rows] * v.T) @ v / size
    forces = {name: -virial / size for name, virial in state.virials.items()}
    return VirialStress(forces, constraints, kinetic, size)


@dataclass(frozen=True)
class SurfaceTension:
    """Mechanical tension of a membrane at one moment.

    Attributes
    ----------
    forces : dict of str to float, pN/nm
        Of every force that counts, by its name.
    constraints : dict of str to float, pN/nm
        Of the forces with which constraints hold beads, by the handles that have them.
    kinetic : float, pN/nm
        Of the motion of beads.
    area : float, nm²
        Of the frame, or of the closed membrane.
    """

    forces: dict[str, float]
    constraints: dict[str, float]
    kinetic: float
    area: float

    @property
    def total(self) -> float:
        """Sum of all parts, pN/nm."""
        return sum([*self.forces.values(), *self.constraints.values()], self.kinetic)


def surface_tension(
    source: Simulation | Context, membrane: Membrane | None = None, *, box: Any = None, without: Any = ()
) -> SurfaceTension:
    r"""Return the mechanical tension of a membrane, from the virials of its forces and the motion of its beads.

    Of a patch in a frame of :math:`A = L_x L_y`, and of a closed membrane of the area A,

    .. math:: \tau = \frac1{2A} \Bigl(\Pi_{xx} + \Pi_{yy}\Bigr), \qquad \sigma = \frac1{2A} \operatorname{tr} \Pi,
              \qquad \Pi = -\sum_i m_i\,v_i \otimes v_i - \sum_i x_i \otimes F_i

    The first is the frame tension: the mean force per length that pulls the frame wider. The second is that of
    Laplace's law, :math:`2\sigma/R = \Delta p`, on a sphere.

    Parameters
    ----------
    source : Simulation or Context
        As it is now: see `virial_stress`. The mean over a run is the tension.
    membrane : Membrane, optional
        A closed membrane; None for a patch.
    box : (2,) or (3,) float, nm, optional
        Lx and Ly of the frame; that of the system where none is given.
    without : str or sequence of str
        Names of forces that do not count: those that press on the membrane, such as a `MembraneVolume` or an osmotic
        pressure. With them a closed membrane has no tension at all, in the mean (Clausius).

    Raises
    ------
    ParameterError
        No frame and no membrane, a membrane with borders, names that no force has; and as `virial_stress`.

    Notes
    -----
    This is not the coefficient of `MembraneTension`: bending, the motion of vertices, and forces that keep their
    distances, contribute too. To τ of n free beads without velocities, which are refused, motion adds :math:`-n kT/A`.
    Source: H. Shiba, H. Noguchi, J.-B. Fournier, Soft Matter 12, 2373 (2016).
    """
    what = "surface_tension"
    stress = virial_stress(source, 1.0)
    left_out = [without] if isinstance(without, str) else words(f"{what}: without", without)
    for name in left_out:
        look_up(stress.forces, name, "force", ParameterError)
    state = (source.context if isinstance(source, Simulation) else source).get_state(positions=True)
    axes = [0, 1]
    if membrane is not None:
        if not isinstance(membrane, Membrane):
            raise ParameterError(f"{what}: membrane must be the handle of a membrane, not {membrane!r}")
        patch = next(iter(Surfaces(what, state, membrane, None, None)))
        patch.expect_closed()
        area, axes = float(patch.face_areas.sum()), [0, 1, 2]
    else:
        cell = lengths_of(what, getattr(state, "box", None) if box is None else box)
        if cell is None or not cell[:2].all():
            raise ParameterError(f"{what}: give box=(Lx, Ly), the frame of a patch, or membrane=, a closed one")
        area = float(cell[0] * cell[1])

    def part(pi: np.ndarray) -> float:
        return float(pi[axes, axes].sum()) / (2.0 * area)

    forces = {name: part(pi) for name, pi in stress.forces.items() if name not in left_out}
    constraints = {name: part(pi) for name, pi in stress.constraints.items()}
    return SurfaceTension(forces, constraints, part(stress.kinetic), area)


def tether_force(source: Any, held: Any, direction: Any = None, *, box: Any = None) -> np.ndarray:
    """Return the force that holds a tether, from its trap or from fixed beads.

    Parameters
    ----------
    source : frames; see `radial_distribution`
        For beads that are fixed, a state or a list of states with ``forces=True``.
    held : HarmonicTrap, or a handle, (k,) int or int
        The trap that holds: its force on all of its beads, k (center - x); or fixed beads, which are held against the
        forces of all others.
    direction : (3,) float, not zero, optional
        Direction of the component that is wanted, of any length. Along the direction of the pull, a pull is positive.
    box : (3,) float or None, nm, or one for each frame, optional
        As of `radial_distribution`: a trap holds the nearest image.

    Returns
    -------
    (m, 3) or (3,) float, pN; with a direction (m,) or ()
        With one frame there is no axis of frames. Of one moment it is mostly noise: `average` gives the mean and its
        error.

    Raises
    ------
    ParameterError, TopologyError
        As `mean_square_displacement`; a direction that is zero or of another shape, states without forces.

    Examples
    --------
    >>> import medyanpy as mp
    >>> topology = mp.Topology()
    >>> beads = topology.add_beads([[0.0, 0, 0], [3.0, 0, 0]], mass=1.0)
    >>> trap = mp.forces.HarmonicTrap([1], 2.0, [3.5, 0.0, 0.0])
    >>> mp.analysis.tether_force([[0.0, 0, 0], [3.0, 0, 0]], trap, direction=[1, 0, 0]).item()
    1.0
    """
    what = "tether_force"
    frames = Source(what, source)
    if isinstance(held, HarmonicTrap):
        rows = frames.rows("held", held.beads)
        found = np.array([
            (held.stiffness * displacement(x, held.center, cell)).sum(axis=0)
            for x, cell in zip(frames.each(rows), frames.boxes(box), strict=True)
        ])  # fmt: skip
    else:
        rows = frames.rows("held", held)
        states = frames.states()
        if states is None:
            raise ParameterError(f"{what}: give states with forces=True, or the HarmonicTrap that holds")
        found = np.array([-state.forces[rows].sum(axis=0) for state in states])
    if direction is not None:
        along = vector(f"{what}: direction", direction)
        if not along.any():
            raise ParameterError(f"{what}: direction must not be 0")
        found = found @ (along / np.linalg.norm(along))
    return np.asarray(found[0] if frames.one else found)


def _of_constraints(what: str, handle: Handle, state: State) -> np.ndarray | None:
    """Return Σ x ⊗ F of the forces -λ∇g of a handle's constraints; None where it has none."""
    rows, multipliers = handle.kind.constraint_rows(), state.multipliers.get(handle.name)
    if not rows and multipliers is None:
        return None
    if not rows or multipliers is None:
        raise ParameterError(
            f"{what}: the forces that hold the {handle.kind} of {handle.name!r} are not known, and without them there "
            "is no stress"
        )
    virial = np.zeros((3, 3))
    in_space = np.ones(len(state.positions), bool)
    for other in handle.topology.handles:
        in_space[other.beads] = other.kind.in_space
    for one, values in zip(rows, multipliers.reshape(-1, len(rows)).T, strict=True):
        x = state.positions[one.beads]
        _, slope = one.form.at(x, one.own)
        # Directors have no place: what a constraint does to them moves no momentum.
        force = -(values / one.share)[:, None, None] * slope * in_space[one.beads][:, :, None]
        # About a bead of each, so that places far from the origin keep their digits.
        virial += np.einsum("mka,mkb->ab", x - x[:, :1], force)
        virial += np.einsum("ma,mkb->ab", x[:, 0], force)
    return virial
