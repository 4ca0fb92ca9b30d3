"""Reporters: what a Simulation writes while it runs."""

import typing as _typing

from medyanpy._tools.names import module_names as _module_names
from medyanpy.reporters._base import Reporter
from medyanpy.reporters.callback import Callback
from medyanpy.reporters.checkpoint import CheckpointReporter
from medyanpy.reporters.events import EventReporter
from medyanpy.reporters.ramp import Ramp
from medyanpy.reporters.state_data import StateDataReporter
from medyanpy.reporters.trajectory import TrajectoryReporter

__all__ = [
    "Callback", "CheckpointReporter", "EventReporter", "Ramp", "Reporter", "StateDataReporter", "TrajectoryReporter",
]  # fmt: skip

if not _typing.TYPE_CHECKING:
    # Type checkers are to see that a name is not there.
    __getattr__ = _module_names(__name__, lambda: __all__)
