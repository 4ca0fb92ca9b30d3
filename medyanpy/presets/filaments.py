"""Actin, microtubules, and their crosslinkers."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from medyanpy import units
from medyanpy._tools.names import plainly_called
from medyanpy._tools.sums import total
from medyanpy._tools.types import Numbers
from medyanpy._tools.validation import array, number
from medyanpy.beads.chains import shares_of_links
from medyanpy.errors import ParameterError
from medyanpy.presets.water import WATER


@dataclass(frozen=True)
class FilamentMaterial:
    """Mechanical properties of a filament.

    Attributes
    ----------
    name, source : str
    radius : float, nm
    bending_modulus : float, pN nm²
        B = EI. The persistence length is B/kT.
    twist_modulus : float or None, pN nm²
        C; None where it has not been measured.
    stretching_modulus : float, pN
        Y, Young's modulus times cross-section; of use for filaments that are not constrained.
    mass_per_length : float, pN s²/nm²
        Of the protein alone.
    collision_stiffness : float, pN/nm
        Of the soft repulsion between two of these: a numerical choice, not a measurement.
    link_length : float, nm
        A common choice of the distance between nodes.
    """

    name: str
    radius: float
    bending_modulus: float
    twist_modulus: float | None
    stretching_modulus: float
    mass_per_length: float
    collision_stiffness: float
    link_length: float
    source: str

    def persistence_length(self, temperature: float) -> float:
        """Return B/kT, nm, the decay length of tangent correlations at a temperature in kelvin."""
        return self.bending_modulus / (units.boltzmann * number(f"{self.name}: temperature", temperature, above=0.0))

    def friction_per_length(self, length: float, viscosity: float = WATER) -> tuple[float, float]:
        r"""Return friction along and across a straight rod of this material, per length.

        .. math:: \frac{\zeta_\parallel}{L} = \frac{2\pi\eta}{\ln p + \nu_\parallel}, \quad
                  \nu_\parallel = -0.207 + \frac{0.980}{p} - \frac{0.133}{p^2}, \qquad
                  \frac{\zeta_\perp}{L} = \frac{4\pi\eta}{\ln p + \nu_\perp}, \quad
                  \nu_\perp = 0.839 + \frac{0.185}{p} + \frac{0.233}{p^2}

        with p = L/2r and the viscosity η; ParameterError for numbers outside their domain. Source: M. M. Tirado, C.
        López Martínez, J. García de la Torre, J. Chem. Phys. 81, 2047 (1984): cylinders with 2 <= p <= 30, to which the
        end corrections are fitted; for longer ones they are nearly constant.

        Parameters
        ----------
        length : float, nm
            L, >= 4 r: of the whole filament; in a network the distance to the next one, which screens the flow.
        viscosity : float, pN s/nm²

        Returns
        -------
        (along, across) : float, pN s/nm²
        """
        eta = number(f"{self.name}: viscosity", viscosity, above=0.0)
        p = number(f"{self.name}: length", length, above=0.0) / (2.0 * self.radius)
        if p < 2.0:
            raise ParameterError(
                f"{self.name}: length = {length:g} nm but must be >= {4.0 * self.radius:g} nm, twice the diameter: the "
                "formula is of rods"
            )
        along = np.log(p) - 0.207 + 0.980 / p - 0.133 / p**2
        across = np.log(p) + 0.839 + 0.185 / p + 0.233 / p**2
        return float(2.0 * np.pi * eta / along), float(4.0 * np.pi * eta / across)

    def rotational_friction_per_length(self, viscosity: float = WATER) -> float:
        """Return 4πηr², pN s: friction per length against turning of a long rod about its axis."""
        return 4.0 * np.pi * number(f"{self.name}: viscosity", viscosity, above=0.0) * self.radius**2

    @plainly_called
    def arguments(
        self, nodes: "Numbers", *, viscosity: float = WATER, relaxation_time: float | None = None,
        screening_length: float | None = None, closed: bool = False, directors: "Numbers | None" = None,
        growing: bool = False,
    ) -> dict[str, Any]:
        """Return the arguments of ``add_filament`` (one filament) or ``add_filaments`` (a list) of a topology.

        Parameters
        ----------
        nodes : (n, 3) float, or list of (n_i, 3) float, nm
            Each node has half of the links that meet in it: mass and friction of inner nodes are those of one link,
            of end nodes half of it.
        viscosity : float, pN s/nm²
        relaxation_time : float, s, optional
            Mass of a node divided by its friction across, instead of the real mass, see Notes.
        screening_length : float, nm, optional
            L of `friction_per_length`; the length of each filament where none is given.
        closed : bool
            Make the filaments rings.
        directors : optional
            As ``add_filament`` takes them, for twistable filaments: ``"parallel"``, or one direction for each link.
        growing : bool
            For filaments with ``rise=``: all nodes have one mass and one friction, those of a link of mean length. The
            friction is that of a filament of mean length in all directions on average: :math:`3/(1/ζ_∥ + 2/ζ_⊥)`.

        Returns
        -------
        dict
            ``nodes``, ``node_mass``, ``node_friction`` (along, across), or of growing ones one number, ``closed``; with
            directors ``directors``, ``director_mass``, the moment of inertia of each link as a solid cylinder (or by
            the relaxation time), and ``director_friction``.

        Raises
        ------
        ParameterError
            A number outside its domain, or nodes of wrong shape. Rings or directors that are growing.

        Notes
        -----
        Velocities of the real mass of 27 nm of actin in water relax within picoseconds. A larger mass, up to a
        relaxation time well below the times of interest, allows timesteps larger by its square root. It changes neither
        equilibrium (with the Fixman potential) nor processes slower than the relaxation time.
        """
        name = self.name
        one = not isinstance(nodes, list | tuple) or (len(nodes) > 0 and np.ndim(nodes[0]) == 1)
        given: Any = [nodes] if one else nodes
        parts = [array(f"{name}: nodes of filament {i}", x, (None, 3)) for i, x in enumerate(given)]
        if relaxation_time is not None:
            number(f"{name}: relaxation_time", relaxation_time, above=0.0)
        if growing and (closed or directors is not None):
            raise ParameterError(f"{name}: growing = True, but rings and filaments with directors do not grow")
        shares, along, across, links = [np.empty(0)], [np.empty(0)], [np.empty(0)], [np.empty(0)]
        mean = np.concatenate([shares_of_links(x, closed)[0] for x in parts] if growing else [np.empty(0)])
        if growing and screening_length is None:
            screening_length = total(mean) / len(parts)
        for x in parts:
            link, share = shares_of_links(x, closed)
            if growing:
                share = np.full(len(x), total(mean) / len(mean))
            links.append(link)
            shares.append(share)
            zeta = self.friction_per_length(total(link) if screening_length is None else screening_length, viscosity)
            along.append(zeta[0] * shares[-1])
            across.append(zeta[1] * shares[-1])
        friction: Any = (np.concatenate(along), np.concatenate(across))
        mass: Any = self.mass_per_length * np.concatenate(shares)
        slowest: Any = friction[1]
        if growing:
            # All nodes are alike. A rod that turns diffuses with the mean of its three mobilities.
            friction = slowest = float(3.0 / (1.0 / friction[0][0] + 2.0 / friction[1][0]))
            mass = float(mass[0])
        if relaxation_time is not None:
            mass = relaxation_time * slowest
        nodes = parts[0] if one else parts
        arguments = {"nodes": nodes, "node_mass": mass, "node_friction": friction, "closed": bool(closed)}
        if directors is None:
            return arguments
        turning = self.rotational_friction_per_length(viscosity) * np.concatenate(links)
        inertia = 0.5 * self.mass_per_length * self.radius**2 * np.concatenate(links)
        if relaxation_time is not None:
            inertia = relaxation_time * turning
        return {**arguments, "directors": directors, "director_mass": inertia, "director_friction": turning}

    def longest_timestep(self, node_mass: float, link_length: float | None = None) -> float:
        r"""Return the timestep at which bending becomes unstable, s: stay below half of it.

        .. math:: \Delta t = \frac{2}{\omega}, \qquad \omega^2 = \frac{16 B}{\ell^3 m}

        with the frequency ω of the zigzag in which each node moves against its neighbours, in a straight filament with
        links of constant length.

        Parameters
        ----------
        node_mass : float, pN s²/nm
        link_length : float, nm, optional
            The material's own where none is given.
        """
        m = number(f"{self.name}: node_mass", node_mass, above=0.0)
        length = self.link_length if link_length is None else link_length
        length = number(f"{self.name}: link_length", length, above=0.0)
        # Products, since powers and quotients of numbers near the ends of their range raise errors in Python.
        return 0.5 * math.sqrt(length * length * length * m / self.bending_modulus)


@dataclass(frozen=True)
class Crosslinker:
    """A protein that ties two filaments together.

    Attributes
    ----------
    name, source : str
    stiffness : float, pN/nm
    length : float, nm
        Between the axes of the filaments, relaxed.
    """

    name: str
    stiffness: float
    length: float
    source: str

    @property
    def arguments(self) -> dict[str, Any]:
        """Arguments of `Links` besides its ends: ``Links(a, b, **alpha_actinin().arguments)``."""
        return {"stiffness": self.stiffness, "length": self.length}


def actin() -> FilamentMaterial:
    """Return the material of an actin filament (F-actin).

    Bending: 7.3e-26 N m², stabilised by phalloidin (Gittes et al. 1993): a persistence length of 17.7 µm at 298 K; 17 ±
    2 µm in van Mameren et al. (2009). Filaments without phalloidin are about half as stiff (Isambert et al. 1995).
    Twist: (8.0 ± 1.2)e-26 N m² (Tsuda et al. 1996). Stretching: 43.7 pN/nm of 1 µm (Kojima et al. 1994). Mass: one
    monomer of 42 kDa for every 2.75 nm. Radius and collision stiffness as in MEDYAN, radius 3 nm, 750 pN/nm. Link
    length: ten monomers. Source: F. Gittes, B. Mickey, J. Nettleton, J. Howard, J. Cell Biol. 120, 923 (1993). H.
    Isambert et al., J. Biol. Chem. 270, 11437 (1995). H. Kojima, A. Ishijima, T. Yanagida, Proc. Natl. Acad. Sci. USA
    91, 12962 (1994). J. van Mameren, K. C. Vermeulen, F. Gittes, C. F. Schmidt, J. Phys. Chem. B 113, 3837 (2009). Y.
    Tsuda, H. Yasutake, A. Ishijima, T. Yanagida, Proc. Natl. Acad. Sci. USA 93, 12937 (1996).
    """
    return FilamentMaterial(
        name="actin", radius=3.0, bending_modulus=7.3e4, twist_modulus=8.0e4, stretching_modulus=4.37e4,
        mass_per_length=42e3 * units.dalton / 2.75, collision_stiffness=750.0, link_length=27.5,
        source="Gittes 1993, Tsuda 1996, Kojima 1994",
    )


def microtubule() -> FilamentMaterial:
    """Return the material of a microtubule of 13 protofilaments.

    Bending: 2.2e-23 N m², stabilised by taxol (Gittes et al. 1993): a persistence length of 5.2 mm at 298 K. Short
    microtubules are softer, by more than a factor of 20 between lengths of 2.6 and 48 µm, because protofilaments shear
    against each other (Pampaloni et al. 2006): a rod of one modulus is a model of long ones. Twist: None, not reliably
    measured. Stretching: derived, of a homogeneous tube with this bending modulus, radii 8.5 and 12.5 nm, Y = 4B/(12.5²
    + 8.5²). Mass: 13 dimers of 110 kDa for every 8 nm. Collision stiffness: as actin. Link length: one hundredth of a
    typical length of 10 µm. Source: F. Gittes, B. Mickey, J. Nettleton, J. Howard, J. Cell Biol. 120, 923 (1993). F.
    Pampaloni et al., Proc. Natl. Acad. Sci. USA 103, 10248 (2006).
    """
    outer, inner, modulus = 12.5, 8.5, 2.2e7
    return FilamentMaterial(
        name="microtubule", radius=outer, bending_modulus=modulus, twist_modulus=None,
        stretching_modulus=4.0 * modulus / (outer**2 + inner**2), mass_per_length=13 * 110e3 * units.dalton / 8.0,
        collision_stiffness=750.0, link_length=100.0, source="Gittes 1993",
    )


@dataclass(frozen=True)
class Brancher:
    """A protein complex that begins a filament at the side of another one, and holds it there.

    Attributes
    ----------
    name, source : str
    stiffness : float, pN/nm
        Of the spring between the mother and the first node of the branch.
    length : float, nm
        Of that spring, relaxed.
    angle : float, radians, > 0 and < π
        Between the mother and the branch.
    angle_stiffness : float, pN nm
    release_rate : float, 1/s
        At which a branch lets go that nothing pulls.
    """

    name: str
    stiffness: float
    length: float
    angle: float
    angle_stiffness: float
    release_rate: float
    source: str

    @property
    def links(self) -> dict[str, Any]:
        """Arguments of `Links` besides its ends: ``Links([], [], **arp23().links)``."""
        return {"stiffness": self.stiffness, "length": self.length}

    @property
    def angles(self) -> dict[str, Any]:
        """Arguments of `DirectionLinks` besides its ends: ``DirectionLinks([], [], [], [], **arp23().angles)``."""
        return {"stiffness": self.angle_stiffness, "angle": self.angle}


def arp23() -> Brancher:
    """Return the Arp2/3 complex between an actin filament and its branch, for `Branching`.

    Angle: 70 ± 7° (Mullins et al. 1998). Its stiffness: 100 pN nm, ± 12° at 300 K, an estimate between the 10 pN nm of
    MEDYAN, ± 37°, and the 280 pN nm of which all of the measured spread would be thermal. Spring: 100 pN/nm and 6 nm,
    numbers of MEDYAN, not measurements. Release: 0.014 per minute, of aged branches of ADP-Arp2/3 without a force
    (Pandit et al. 2020); 2 pN make it two orders of magnitude faster. How fast branches begin depends on activators,
    and there is no number for it here. Source: R. D. Mullins, J. A. Heuser, T. D. Pollard, Proc. Natl. Acad. Sci. USA
    95, 6181 (1998). N. G. Pandit et al., Proc. Natl. Acad. Sci. USA 117, 13519 (2020). K. Popov, J. Komianos, G. A.
    Papoian, PLoS Comput. Biol. 12, e1004877 (2016): MEDYAN, and input files of its version 5.
    """
    return Brancher(
        name="Arp2/3", stiffness=100.0, length=6.0, angle=math.radians(70.0), angle_stiffness=100.0,
        release_rate=0.014 / 60.0, source="Mullins 1998, Pandit 2020, MEDYAN (Popov 2016)",
    )  # fmt: skip


def alpha_actinin() -> Crosslinker:
    """Return α-actinin between two actin filaments, with the numbers used in MEDYAN: 8 pN/nm and 35 nm.

    The protein is a rod about 35 nm long; the stiffness is an estimate that models of actin networks share, not a
    measurement. Source: K. Popov, J. Komianos, G. A. Papoian, PLoS Comput. Biol. 12, e1004877 (2016): MEDYAN.
    """
    return Crosslinker(name="α-actinin", stiffness=8.0, length=35.0, source="MEDYAN (Popov 2016)")
