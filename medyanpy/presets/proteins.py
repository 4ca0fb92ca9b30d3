"""Proteins whose rigid domains have been found, so that nobody needs a file to begin with."""

import json
from pathlib import Path

import numpy as np

from medyanpy.rigid.inertia import PrincipalAxes
from medyanpy.rigid.linkers import Linkers
from medyanpy.rigid.molecules import RigidMolecule


def adenylate_kinase() -> RigidMolecule:
    """Adenylate kinase of E. coli, open: its core, the domain that binds AMP and the lid, as three rigid bodies.

    Made by `rigid.from_structure` of entry 4AKE of the Protein Data Bank, chain A (Müller, Schlauderer, Reinstein and
    Schulz, Structure 4, 147 (1996)): a network of the Cα with springs of 700 pN/nm up to 1 nm, three domains, a sphere
    of 0.484 nm for each residue in water of 20 °C. Bodies are in this order: core (120 residues), lid (49: 117 to 165),
    and the domain that binds AMP (45: 30 to 74).

    Returns
    -------
    RigidMolecule
        Without structure and labels.

    Examples
    --------
    >>> import medyanpy as mp
    >>> kinase = mp.presets.adenylate_kinase()
    >>> topology = mp.Topology()
    >>> bodies = topology.add_rigid_bodies(**kinase.arguments([[0, 0, 0], [20.0, 0, 0]]), name="kinases")
    >>> system = mp.System(topology)
    >>> linkers = system.add_force(mp.forces.Links(**kinase.links(bodies), name="linkers"))
    >>> len(bodies), len(linkers)
    (6, 244)
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
