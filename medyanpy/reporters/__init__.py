"""Reporters: what a Simulation writes while it runs."""

from medyanpy.reporters._base import Reporter
from medyanpy.reporters.checkpoint import CheckpointReporter
from medyanpy.reporters.state_data import StateDataReporter
from medyanpy.reporters.trajectory import TrajectoryReporter

__all__ = ["CheckpointReporter", "Reporter", "StateDataReporter", "TrajectoryReporter"]
