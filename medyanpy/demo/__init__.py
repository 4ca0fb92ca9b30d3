"""The demos: cells at work, and what theory says about them."""

from medyanpy.demo.filaments import run_filament_demo
from medyanpy.demo.points import run_demo
from medyanpy.demo.report import Demo, Line

__all__ = ["Demo", "Line", "run_demo", "run_filament_demo"]
