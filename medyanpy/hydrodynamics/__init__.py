"""Hydrodynamic interactions: beads that move drag others along through the fluid.

>>> import medyanpy as mp
>>> topology = mp.Topology()
>>> pair = topology.add_balls([[0, 0, 0], [3.0, 0, 0]], radius=1.0, mass=1e-9, friction=6 * 3.141592653589793 * 1e-9)
>>> system = mp.System(topology)
>>> water = system.add_hydrodynamics(mp.hydrodynamics.RotnePrager(viscosity=1e-9, handles=[pair]))
>>> water.radius(pair).round(12).tolist()
[1.0, 1.0]
"""

from medyanpy.hydrodynamics.clusters import cluster_mobility_matrix
from medyanpy.hydrodynamics.mobilities import mobility_matrix
from medyanpy.hydrodynamics.rotne_prager import RotnePrager

__all__ = ["RotnePrager", "cluster_mobility_matrix", "mobility_matrix"]
