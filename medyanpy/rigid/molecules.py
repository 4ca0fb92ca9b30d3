"""Molecules as rigid bodies: from structures to arguments of `Topology.add_rigid_bodies`."""

import os
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from medyanpy._tools.names import plainly_called
from medyanpy._tools.quaternions import product, turned
from medyanpy._tools.types import Numbers
from medyanpy._tools.validation import array, number
from medyanpy.errors import ParameterError
from medyanpy.rigid.bead_models import bead_model_friction
from medyanpy.rigid.ellipsoids import ellipsoid_friction
from medyanpy.rigid.inertia import PrincipalAxes, principal_axes
from medyanpy.rigid.linkers import Linkers, fitted_linkers
from medyanpy.rigid.networks import Domains, ElasticNetwork
from medyanpy.rigid.structures import Structure, read_structure
from medyanpy.rigid.tensors import center_of_diffusion, friction_to_diffusion, move_diffusion, rotate_tensor

__all__ = ["RigidMolecule", "enclosing_ellipsoid", "from_structure"]

MODELS = ("atoms", "residues", "ellipsoid", "sphere")
# nm: spheres that stand for an atom or a residue with the water that it holds (Ortega, Amorós and García de la Torre
# 2011, fitted to the diffusion of some thirty proteins).
ATOM_RADIUS, RESIDUE_RADIUS = 0.29, 0.484
# nm: two heavy atoms are never so close; the shortest bonds between them have 0.11.
_CLASH = 0.09


@dataclass(frozen=True, eq=False)
class RigidMolecule:
    """A molecule as one rigid body, or as several that linkers join.

    Attributes
    ----------
    structure : Structure or None
        None for molecules of presets.
    bodies : tuple of PrincipalAxes
        Mass, centre, moments and axes of each, at its place in the structure.
    friction : (n, 6, 6) float array
        In the frame of each body, about its centre of mass: pN s/nm, pN s and pN nm s in its blocks.
    labels : (m,) int array
        The body of each Cα of the structure.
    linkers : Linkers or None
        Springs between bodies; None of a single one.
    """

    structure: Structure | None
    bodies: tuple[PrincipalAxes, ...]
    friction: np.ndarray
    labels: np.ndarray
    linkers: Linkers | None

    @property
    def mass(self) -> np.ndarray:
        """Masses (n,), pN s²/nm."""
        return np.array([body.mass for body in self.bodies])

    @property
    def inertia(self) -> np.ndarray:
        """Principal moments of inertia (n, 3), pN nm s²."""
        return np.array([body.inertia for body in self.bodies])

    @property
    def center_of_mass(self) -> np.ndarray:
        """Centre of mass (3,) in the structure, nm."""
        out: np.ndarray = self.mass @ np.array([body.center_of_mass for body in self.bodies]) / self.mass.sum()
        return out

    def arguments(
        self, positions: "Numbers" = ((0.0, 0.0, 0.0),), orientations: "Numbers | None" = None, *,
        mass_scale: float = 1.0,
    ) -> dict[str, Any]:  # fmt: skip
        """Return arguments of `Topology.add_rigid_bodies` for k copies of the molecule of n bodies, one after another.

        Parameters
        ----------
        positions : (k, 3) float, nm
            Of the centre of mass of each copy.
        orientations : (k, 4) float, optional
            Unit quaternions, scalar first, that turn the structure as its file has it; as it is by default.
        mass_scale : float, > 0
            Factor of masses and moments of inertia. Those of proteins are so small that their velocities relax in
            picoseconds; neither equilibrium nor diffusion depends on it.

        Raises
        ------
        ParameterError
            A number outside its domain, or a quaternion without unit length.
        """
        x = array("arguments: positions", positions, (None, 3))
        scale = number("arguments: mass_scale", mass_scale, above=0.0)
        turns = [[1.0, 0.0, 0.0, 0.0]] * len(x) if orientations is None else orientations
        q = array("arguments: orientations", turns, (len(x), 4))
        length = np.linalg.norm(q, axis=1)
        if not (np.abs(length - 1.0) < 1e-6).all():
            i = int(np.argmax(np.abs(length - 1.0)))
            what = f"arguments: orientations[{i}]"
            raise ParameterError(f"{what} has length {length[i]:.6g} but must be a unit quaternion")
        n, middle = len(self.bodies), self.center_of_mass
        turn = np.repeat(q / length[:, None], n, axis=0)
        arms = np.array([body.center_of_mass - middle for body in self.bodies])
        facing = np.array([body.orientation for body in self.bodies])
        return {
            "positions": np.repeat(x, n, axis=0) + turned(turn, np.tile(arms, (len(x), 1))),
            "orientations": product(turn, np.tile(facing, (len(x), 1))),
            "mass": np.tile(scale * self.mass, len(x)),
            "inertia": np.tile(scale * self.inertia, (len(x), 1)),
            "friction": np.tile(self.friction, (len(x), 1, 1)),
        }

    @plainly_called
    def spheres(self, model: Literal["atoms", "residues"] = "atoms") -> list[tuple[np.ndarray, np.ndarray]]:
        """Return the spheres of its bodies, for pictures: ``draw(simulation, spheres={"kinase": molecule.spheres()})``.

        Parameters
        ----------
        model : "atoms" or "residues"
            A sphere for each heavy atom (of the radius 0.29 nm) or for each residue (0.484 nm), as in `from_structure`.

        Returns
        -------
        list of ((k, 3) float array, (k,) float array), nm
            Of each body the centres in its frame, and the radii.

        Raises
        ------
        ParameterError
            Another model, or a molecule of a preset, which holds no structure.
        """
        if model not in MODELS[:2]:
            raise ParameterError(f"spheres: model = {model!r} but must be one of {', '.join(map(repr, MODELS[:2]))}")
        structure = self.structure
        if structure is None:
            raise ParameterError("spheres: the molecule of a preset holds no structure")
        members = _members(_body_of_atoms(structure, self.labels), len(self.bodies))
        radius = ATOM_RADIUS if model == "atoms" else RESIDUE_RADIUS
        found = (_spheres(structure, own, model, radius) for own in members)
        return [(body.to_body(x), radii) for body, (x, radii) in zip(self.bodies, found, strict=True)]

    def links(self, bodies: Any) -> dict[str, Any]:
        """Return arguments of `forces.Links` for the linkers of all copies.

        Parameters
        ----------
        bodies : RigidBodies
            As `arguments` has made them.

        Raises
        ------
        ParameterError
            A molecule of a single body, or bodies that are not copies of it.
        """
        if self.linkers is None:
            raise ParameterError("links: a molecule of one body has no linkers")
        n, springs = len(self.bodies), self.linkers
        copies, rest = divmod(len(bodies), n)
        if rest or not copies:
            raise ParameterError(f"links: {len(bodies)} bodies are not copies of a molecule of {n}")
        each = np.empty((len(springs.stiffness), 2, 3))
        for end in (0, 1):
            for body in range(n):
                own = springs.bodies[:, end] == body
                each[own, end] = self.bodies[body].to_body(springs.ends[own, end])
        every = bodies.sites(each.reshape(-1, 3))
        m = each.shape[0]
        first = n * np.arange(copies)[:, None]
        rows = [(first + springs.bodies[:, end]) * 2 * m + 2 * np.arange(m) + end for end in (0, 1)]
        a, b = (every[row.ravel()] for row in rows)
        stiffness, length = (np.tile(number, copies) for number in (springs.stiffness, springs.lengths))
        return {"a": a, "b": b, "stiffness": stiffness, "length": length}

    def __repr__(self) -> str:
        parts = "" if self.linkers is None else f" of {len(self.bodies)} domains, {len(self.linkers.stiffness)} linkers"
        return f"RigidMolecule({self.structure or 'preset'!r}{parts})"


@plainly_called
def from_structure(
    structure: Structure | str | os.PathLike[str], viscosity: float, *,
    model: Literal["atoms", "residues", "ellipsoid", "sphere"] = "atoms", domains: Domains | Any = None,
    network: ElasticNetwork | None = None, radius: float | None = None, **reading: Any,
) -> RigidMolecule:  # fmt: skip
    """Make a protein one rigid body, or several rigid domains with linkers.

    Parameters
    ----------
    structure : Structure or path
        A file is read by `read_structure`.
    viscosity : float, pN s/nm², > 0
        Of the fluid, such as `presets.WATER`.
    model : "atoms", "residues", "ellipsoid" or "sphere"
        Model of the friction: a sphere for each heavy atom or residue, which include the water that moves with the
        protein, or the smallest ellipsoid that encloses the atoms. ``"sphere"`` is the one that diffuses as residues do
        about their centre of diffusion. Masses and moments of inertia are always those of the atoms.
    domains : Domains or (m,) int, optional
        The rigid body of each Cα, as `rigid_domains` finds it; by default one for all. Atoms go with the Cα of their
        residue, ligands with the nearest.
    network : ElasticNetwork, optional
        Network with the relative motions that the linkers reproduce; domains need it.
    radius : float, nm, > 0, optional
        Of the spheres of "atoms" (0.29 by default) and of "residues" and "sphere" (0.484); or the margin of the
        ellipsoid around the centres of atoms (0).
    **reading
        Other arguments of `read_structure`, for a file.

    Raises
    ------
    ParameterError
        A number outside its domain, labels of another number of residues, domains with too few atoms, without contacts
        between them or with atoms in one place; and as `read_structure`.

    Notes
    -----
    The friction of domains is that of each by itself in the fluid. Without `hydrodynamics.RotnePrager` a molecule of
    several has the sum of them, about twice its friction as one body.
    """
    what = "from_structure"
    if not isinstance(structure, Structure):
        structure = read_structure(structure, **reading)
    elif reading:
        raise ParameterError(f"{what}: {', '.join(reading)} belong to the reading of a file")
    eta = number(f"{what}: viscosity", viscosity, above=0.0)
    if model not in MODELS:
        raise ParameterError(f"{what}: model = {model!r} but must be one of {', '.join(map(repr, MODELS))}")
    usual = {"atoms": ATOM_RADIUS, "ellipsoid": 0.0}.get(model, RESIDUE_RADIUS)
    a = usual if radius is None else number(f"{what}: radius", radius, at_least=0.0)
    if a == 0.0 and model != "ellipsoid":
        raise ParameterError(f"{what}: radius = 0 but must be > 0")
    labels = _labels(what, structure, domains)
    body_of = _body_of_atoms(structure, labels)
    _check_clashes(what, structure, body_of)
    members = _members(body_of, int(labels.max()) + 1)
    bodies = [_axes(what, structure, own, k) for k, own in enumerate(members)]
    linkers = None
    if len(bodies) > 1:
        if not isinstance(network, ElasticNetwork) or len(network.positions) != len(labels):
            raise ParameterError(f"{what}: domains need network=, the ElasticNetwork of this structure")
        linkers = fitted_linkers(what, network, labels)
    # Last: it takes the longest.
    friction = [_friction(structure, own, body, model, a, eta) for own, body in zip(members, bodies, strict=True)]
    return RigidMolecule(structure, tuple(bodies), np.array(friction), labels, linkers)


def _labels(what: str, structure: Structure, domains: Any) -> np.ndarray:
    m = len(structure.alpha)
    if domains is None:
        return np.zeros(m, np.int64)
    given = domains.labels if isinstance(domains, Domains) else domains
    labels = array(f"{what}: domains", given, (m,), dtype=np.int64)
    n = int(labels.max(initial=-1)) + 1
    missing = np.setdiff1d(np.arange(n), labels)
    if labels.min(initial=0) < 0 or len(missing):
        wrong = f"none is {missing[0]}" if len(missing) else f"domains[{labels.argmin()}] = {labels.min()}"
        raise ParameterError(f"{what}: domains must be numbered from 0 without a gap, but {wrong}")
    return labels


def _body_of_atoms(structure: Structure, labels: np.ndarray) -> np.ndarray:
    """Return the body of each atom, (n,)."""
    from scipy.spatial import cKDTree

    of_residue = np.full(len(structure.residues), -1)
    of_residue[structure.residue_of[structure.alpha]] = labels
    body_of: np.ndarray = of_residue[structure.residue_of]
    beside = np.flatnonzero(body_of < 0)
    if len(beside):
        near = cKDTree(structure.positions[structure.alpha]).query(structure.positions[beside])[1]
        # A ligand is one piece: it goes where most of its atoms are near.
        for residue in np.unique(structure.residue_of[beside]):
            own = structure.residue_of[beside] == residue
            body_of[beside[own]] = np.bincount(labels[near[own]]).argmax()
    return body_of


def _members(body_of: np.ndarray, n: int) -> list[np.ndarray]:
    """Return the atoms of each of n bodies."""
    return [np.flatnonzero(body_of == k) for k in range(n)]


def _spheres(structure: Structure, own: np.ndarray, model: str, radius: float) -> tuple[np.ndarray, np.ndarray]:
    """Return centres and radii of spheres for some atoms: one for each, or for each residue and each atom in none."""
    x, radii = structure.positions[own], np.full(len(own), radius)
    if model == "atoms":
        return x, radii
    is_alpha = np.isin(own, structure.alpha)
    beside = ~np.isin(structure.residue_of[own], structure.residue_of[structure.alpha])
    radii[beside] = ATOM_RADIUS
    return x[is_alpha | beside], radii[is_alpha | beside]


def _check_clashes(what: str, structure: Structure, body_of: np.ndarray) -> None:
    """Refuse bodies that overlap."""
    from scipy.spatial import cKDTree

    i, j = cKDTree(structure.positions).query_pairs(_CLASH, output_type="ndarray").T
    apart = np.flatnonzero(body_of[i] != body_of[j])
    if len(apart):
        distance = np.linalg.norm(structure.positions[i[apart]] - structure.positions[j[apart]], axis=1)
        k = int(np.argmin(distance))
        a, b = (
            f"{structure.names[atom]} of {structure.residues[structure.residue_of[atom]]}"
            for atom in (i[apart[k]], j[apart[k]])
        )
        raise ParameterError(
            f"{what}: domains {body_of[i[apart[k]]]} and {body_of[j[apart[k]]]} clash: {a} and {b} are "
            f"{distance[k]:.3g} nm apart but must be >= {_CLASH:g} nm, less than any bond"
        )


def _axes(what: str, structure: Structure, own: np.ndarray, k: int) -> PrincipalAxes:
    x = structure.positions[own]
    extent = np.linalg.svd(x - x.mean(axis=0), compute_uv=False)
    if len(own) < 4 or extent[1] < 0.05 * np.sqrt(len(own)):
        raise ParameterError(f"{what}: domain {k} has {len(own)} atoms in a line, or fewer than four: no rigid body")
    return principal_axes(x, structure.masses[own])


def _friction(
    structure: Structure, own: np.ndarray, body: PrincipalAxes, model: str, a: float, eta: float
) -> np.ndarray:
    """Return the 6×6 friction tensor in the frame of the body about its centre of mass."""
    x = structure.positions[own]
    if model == "ellipsoid":
        middle, semi_axes, axes = enclosing_ellipsoid(x)
        in_space = rotate_tensor(ellipsoid_friction(semi_axes + a, eta), axes.T)
        return body.friction_in_body(in_space, middle)
    friction = body.friction_in_body(bead_model_friction(*_spheres(structure, own, model, a), eta))
    if model == "sphere":
        # About the centre of diffusion: only there it is the diffusion over long times.
        mobility = friction_to_diffusion(friction, kT=1.0)
        mobility = move_diffusion(mobility, center_of_diffusion(mobility))
        r = 3.0 / np.trace(mobility[:3, :3]) / (6.0 * np.pi * eta)
        return np.diag(np.repeat([6.0 * np.pi * eta * r, 8.0 * np.pi * eta * r**3], 3))
    return friction


@plainly_called
def enclosing_ellipsoid(positions: "Numbers", *, tolerance: float = 1e-6) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the ellipsoid of least volume that encloses points.

    Parameters
    ----------
    positions : (n, 3) float, nm
        Not all in one plane.
    tolerance : float, > 0
        The largest distance of a point outside, relative to the ellipsoid's size.

    Returns
    -------
    center : (3,) float array, nm
    semi_axes : (3,) float array, nm
        Descending.
    axes : (3, 3) float array
        Rows are their directions, right-handed.

    Raises
    ------
    ParameterError
        Fewer than four points, or points in a plane.

    References
    ----------
    L. G. Khachiyan, Math. Oper. Res. 21, 307 (1996); with the away steps of M. J. Todd and E. A. Yıldırım, Discrete
    Appl. Math. 155, 1731 (2007).
    """
    from scipy.spatial import ConvexHull, QhullError

    what = "enclosing_ellipsoid"
    x = array(f"{what}: positions", positions, (None, 3))
    limit = number(f"{what}: tolerance", tolerance, above=0.0)
    try:
        x = x[ConvexHull(x).vertices]
    except (QhullError, ValueError) as cause:
        raise ParameterError(f"{what}: {len(x)} points lie in a plane, or are fewer than four") from cause
    n = len(x)
    lifted = np.column_stack([x, np.ones(n)])
    # Weights of the points that it touches: the dual of the least volume.
    u = np.full(n, 1.0 / n)
    for _ in range(100_000):
        inverse = np.linalg.inv(lifted.T @ (u[:, None] * lifted))
        distance = np.einsum("ij,jk,ik->i", lifted, inverse, lifted)
        far, near = int(np.argmax(distance)), int(np.argmin(np.where(u > 0.0, distance, np.inf)))
        above, below = distance[far] / 4.0 - 1.0, 1.0 - distance[near] / 4.0
        if max(above, below) <= limit:
            break
        k, kappa = (far, distance[far]) if above >= below else (near, distance[near])
        step = (kappa - 4.0) / (4.0 * (kappa - 1.0))
        step = max(step, -u[k] / (1.0 - u[k]))
        u *= 1.0 - step
        u[k] += step
        u[k] = max(u[k], 0.0)
    middle = u @ x
    spread = (x - middle).T @ (u[:, None] * (x - middle))
    values, vectors = np.linalg.eigh(3.0 * spread)
    axes = vectors.T[::-1].copy()
    axes[2] *= np.sign(np.linalg.det(axes))
    return middle, np.sqrt(values[::-1]), axes
