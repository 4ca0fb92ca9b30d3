"""Proteins with known rigid domains, which need no file."""

import json
from pathlib import Path

import numpy as np

from medyanpy import units
from medyanpy._tools.validation import number
from medyanpy.presets.water import WATER
from medyanpy.rigid.ellipsoids import ellipsoid_inertia
from medyanpy.rigid.inertia import PrincipalAxes
from medyanpy.rigid.linkers import Linkers
from medyanpy.rigid.membranes import transmembrane_friction
from medyanpy.rigid.molecules import RigidMolecule


def adenylate_kinase() -> RigidMolecule:
    """Return adenylate kinase of E. coli, open: its core, the domain that binds AMP and the lid, as three rigid bodies.

    Made by `rigid.from_structure` of entry 4AKE of the Protein Data Bank, chain A (Müller, Schlauderer, Reinstein and
    Schulz, Structure 4, 147 (1996)). It has a network of the Cα with springs of 700 pN/nm up to 1 nm, three domains,
    and a sphere of 0.484 nm for each residue in water of 20 °C. Bodies are in this order: core (120
    residues), lid (49: 117 to 165), and the domain that binds AMP (45: 30 to 74). It has no structure and labels.
    """
    data = json.loads(Path(__file__).with_name("adenylate_kinase.json").read_text(encoding="utf-8"))
    bodies = tuple(
        PrincipalAxes(body["mass"], np.array(body["center_of_mass"]), np.array(body["inertia"]), np.array(body["axes"]))
        for body in data["bodies"]
    )
    ends = [np.array(pair["ends"]).reshape(-1, 2, 3) for pair in data["linkers"]]
    every = np.concatenate(ends)
    linkers = Linkers(
        np.concatenate([np.tile(pair["bodies"], (len(e), 1)) for pair, e in zip(data["linkers"], ends, strict=True)]),
        every,
        np.linalg.norm(every[:, 1] - every[:, 0], axis=1),
        np.concatenate([np.full(len(e), pair["stiffness"]) for pair, e in zip(data["linkers"], ends, strict=True)]),
    )
    friction = np.array([body["friction"] for body in data["bodies"]])
    return RigidMolecule(None, bodies, friction, np.empty(0, int), linkers)


_DENSITY = units.gram / 0.73 / (1e7 * units.nanometer) ** 3  # Partial specific volume of proteins, 0.73 cm³/g.


def transmembrane_protein(
    radius: float = 2.5, height: float = 10.0, *, surface_viscosity: float, viscosity: float = WATER
) -> RigidMolecule:
    """Return a protein across a fluid membrane as one rigid body: an ellipsoid that stands upright in it.

    `rigid.upright` turns it, `forces.Links` of length 0 tie its centre to an in-triangle point, and
    `forces.NormalLinks` hold it to the normal there. Its friction is `rigid.transmembrane_friction`; the friction of
    the point is added to it, so give the point little. Source: P. G. Saffman, M. Delbrück, Proc. Natl. Acad. Sci. 72,
    3111 (1975).

    Parameters
    ----------
    radius : float, nm, > 0
        In the plane of the membrane. 2.5 nm and a height of 10 nm are about those of pentameric ligand-gated channels
        without the domain inside the cell.
    height : float, nm, > 0
    surface_viscosity : float, pN s/nm, > 0
        Of the membrane; see `rigid.transmembrane_friction`. There is no default: published values differ a hundredfold.
    viscosity : float, pN s/nm², > 0
        Of the water.

    Returns
    -------
    RigidMolecule
        Without structure and labels; the third axis is its own, the mass that of protein of 0.73 cm³/g.

    Raises
    ------
    ParameterError
        A number outside its domain, or a body so large that water slows it more than the membrane.
    """
    what = "transmembrane_protein"
    a, half = number(f"{what}: radius", radius, above=0.0), 0.5 * number(f"{what}: height", height, above=0.0)
    mass = _DENSITY * 4.0 / 3.0 * np.pi * a * a * half
    body = PrincipalAxes(mass, np.zeros(3), ellipsoid_inertia((a, a, half), mass), np.eye(3))
    friction = transmembrane_friction(a, height, surface_viscosity, viscosity)
    return RigidMolecule(None, (body,), friction[None], np.empty(0, int), None)
