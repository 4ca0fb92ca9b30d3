"""Rigid models of water."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from medyanpy import units
from medyanpy._tools.quaternions import turned
from medyanpy._tools.sums import total
from medyanpy._tools.types import Numbers
from medyanpy._tools.validation import array, number
from medyanpy._tools.validation import seed as check_seed

#: Viscosity of water at 20 °C, pN s/nm². Cytoplasm is several to a thousand times more viscous, more for larger
#: objects.
WATER = 1e-3 * units.pascal_second


@dataclass(frozen=True)
class RigidWater:
    """A model of water: rigid molecules of three atoms H, O, H with charges, and a Lennard-Jones energy of oxygens.

    Attributes
    ----------
    name, source : str
    oxygen_mass, hydrogen_mass : float, pN s²/nm
    oxygen_charge : float, elementary charges, finite
        Each hydrogen has minus half of it.
    bond : float, nm
        Between oxygen and hydrogen.
    angle : float, radians, > 0 and < π
        Between the two bonds.
    epsilon, sigma : float, pN nm and nm
        Of `LennardJones`, of oxygens.
    """

    name: str
    oxygen_mass: float
    hydrogen_mass: float
    oxygen_charge: float
    bond: float
    angle: float
    epsilon: float
    sigma: float
    source: str

    @property
    def masses(self) -> np.ndarray:
        """Masses (3,) of H, O, H, pN s²/nm."""
        return np.array([self.hydrogen_mass, self.oxygen_mass, self.hydrogen_mass])

    @property
    def charges(self) -> np.ndarray:
        """Charges (3,) of H, O, H, elementary charges."""
        return self.oxygen_charge * np.array([-0.5, 1.0, -0.5])

    @property
    def lengths(self) -> np.ndarray:
        """Lengths (3,) from H to O, from O to H and from H to H, nm, for `RigidTrianglePenalty`."""
        return np.array([self.bond, self.bond, 2.0 * self.bond * np.sin(0.5 * self.angle)])

    @property
    def molecule(self) -> np.ndarray:
        """Positions (3, 3) of H, O, H in the plane y = 0 about their centre of mass, oxygen on the z axis, nm."""
        across, along = self.bond * np.sin(0.5 * self.angle), self.bond * np.cos(0.5 * self.angle)
        x = np.array([[across, 0.0, along], [0.0, 0.0, 0.0], [-across, 0.0, along]])
        return np.asarray(x - np.array([total(self.masses * column) for column in x.T]) / total(self.masses))

    def arguments(self, centers: "Numbers", *, seed: int = 0, friction: float = 0.0) -> dict[str, Any]:
        """Return the arguments of ``add_filaments`` of a topology for molecules with three constrained lengths.

        Each molecule is a ring of three nodes, H, O, H.

        Parameters
        ----------
        centers : (n, 3) float, nm
            Centres of mass. Orientations are random.
        seed : int
            Of the orientations.
        friction : float, pN s/nm, >= 0
            Of every atom.

        Returns
        -------
        dict
            ``nodes``, ``starts``, ``node_mass``, ``node_friction``, ``closed``, ``link_lengths``.
        """
        centers = array(f"{self.name}: centers", centers, (None, 3))
        n = len(centers)
        q = np.random.default_rng(check_seed(f"{self.name}: seed", seed)).normal(size=(n, 4))
        q /= np.linalg.norm(q, axis=1)[:, None]
        return {
            "nodes": turned(np.repeat(q, 3, axis=0), np.tile(self.molecule, (n, 1))) + np.repeat(centers, 3, axis=0),
            "starts": np.arange(0, 3 * n + 1, 3),
            "node_mass": np.tile(self.masses, n),
            "node_friction": number(f"{self.name}: friction", friction, at_least=0.0),
            "closed": True,
            "link_lengths": np.tile(self.lengths, n),
        }


def tip3p() -> RigidWater:
    """Return TIP3P water, for which force fields of proteins were made.

    A = 582 000 kcal Å¹²/mol, C = 595 kcal Å⁶/mol: ε = C²/4A = 0.1521 kcal/mol, σ = (A/C)^(1/6) = 3.1506 Å, of oxygens.
    Charges are -0.834 and 0.417, O-H 0.9572 Å, H-O-H 104.52 degrees (Jorgensen et al. 1983). Hydrogens have no
    Lennard-Jones energy: that of CHARMM's TIPS3P is another model. Source: W. L. Jorgensen, J. Chandrasekhar, J. D.
    Madura, R. W. Impey, M. L. Klein, J. Chem. Phys. 79, 926 (1983).

    Examples
    --------
    Two molecules, rigid by constraints, 0.28 nm apart:

    >>> import medyanpy as mp
    >>> water = mp.presets.tip3p()
    >>> topology = mp.Topology()
    >>> molecules = topology.add_filaments(**water.arguments([[0.0, 0, 0], [0.28, 0, 0]], seed=3))
    >>> system = mp.System(topology)
    >>> oxygens, within = molecules.beads[1::3], molecules.beads[molecules.links]
    >>> system.add_force(mp.forces.Coulomb(molecules, np.tile(water.charges, 2), exclusions=within))
    Coulomb(charges=array of 6, constant=230.708, cutoff=None, tolerance=1e-05, skin=None)
    >>> system.add_force(mp.forces.LennardJones(oxygens, oxygens, water.epsilon, water.sigma))
    LennardJones(epsilon=1.05655, sigma=0.315066, cutoff=None, switch=None, skin=None)
    >>> simulation = mp.Simulation(system, mp.SplittingIntegrator("BAB", 1e-15))
    >>> largest_force = simulation.minimize_energy()
    >>> energy = simulation.context.get_state(energy=True).potential_energy
    >>> round(energy / mp.units.kilocalorie_per_mole, 2)
    -6.54
    """
    a = 582e3 * units.kilocalorie_per_mole * units.angstrom**12
    c = 595.0 * units.kilocalorie_per_mole * units.angstrom**6
    return RigidWater(
        name="TIP3P", oxygen_mass=15.999 * units.dalton, hydrogen_mass=1.008 * units.dalton, oxygen_charge=-0.834,
        bond=0.9572 * units.angstrom, angle=float(np.deg2rad(104.52)), epsilon=c**2 / (4.0 * a),
        sigma=(a / c) ** (1.0 / 6.0), source="Jorgensen 1983",
    )
