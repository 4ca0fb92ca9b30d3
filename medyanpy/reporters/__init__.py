"""Reporters: what a Simulation writes while it runs."""

from medyanpy.reporters._base import Reporter

__all__ = ["Reporter"]
