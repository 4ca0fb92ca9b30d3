"""Demos: cells at work, compared with theory."""

from medyanpy.demo.contraction import run_contraction_demo
from medyanpy.demo.filaments import run_filament_demo
from medyanpy.demo.network import run_network_demo
from medyanpy.demo.points import run_demo
from medyanpy.demo.protein import run_protein_demo
from medyanpy.demo.reactions import run_reactions_demo
from medyanpy.demo.registry import DEMOS
from medyanpy.demo.report import Demo, Line
from medyanpy.demo.rigid import run_rigid_demo
from medyanpy.demo.rod import run_rod_demo
from medyanpy.demo.surface import run_surface_demo
from medyanpy.demo.tether import run_membrane_demo
from medyanpy.demo.treadmilling import run_treadmilling_demo

__all__ = [
    "DEMOS", "Demo", "Line", "run_contraction_demo", "run_demo", "run_filament_demo", "run_membrane_demo",
    "run_network_demo", "run_protein_demo", "run_reactions_demo", "run_rigid_demo", "run_rod_demo",
    "run_surface_demo", "run_treadmilling_demo",
]
