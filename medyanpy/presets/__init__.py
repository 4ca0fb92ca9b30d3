"""Filaments and crosslinkers of the cell, and water, as numbers with their sources.

>>> import numpy as np
>>> import medyanpy as mp
>>> actin = mp.presets.actin()
>>> round(actin.persistence_length(300.0) / mp.units.micrometer, 1)
17.6
>>> topology = mp.Topology()
>>> nodes = np.linspace([0.0, 0.0, 0.0], [540.0, 0.0, 0.0], 21)
>>> filament = topology.add_filament(**actin.arguments(nodes, relaxation_time=1e-7))
>>> system = mp.System(topology)
>>> system.add_force(mp.forces.FilamentBending(filament, actin.bending_modulus))
FilamentBending(bending_modulus=73000, rest_angle=0)
"""

from medyanpy.presets.filaments import (
    Brancher,
    Crosslinker,
    FilamentMaterial,
    actin,
    alpha_actinin,
    arp23,
    microtubule,
)
from medyanpy.presets.proteins import adenylate_kinase, transmembrane_protein
from medyanpy.presets.water import WATER, RigidWater, tip3p

__all__ = [
    "WATER", "Brancher", "Crosslinker", "FilamentMaterial", "RigidWater", "actin", "adenylate_kinase", "alpha_actinin",
    "arp23", "microtubule", "tip3p", "transmembrane_protein",
]
