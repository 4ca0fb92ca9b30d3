"""medyanpy: the mechanics of cells, by structure-preserving integrators.

>>> import medyanpy as mp
>>> mesh = mp.TriangleMesh.icosphere(radius=500.0, subdivisions=2)
>>> mesh.genus
0
"""

import typing as _typing

from medyanpy import (
    analysis,
    boundaries,
    forces,
    hydrodynamics,
    jumps,
    kicks,
    presets,
    reporters,
    rigid,
    rods,
    runs,
    surfaces,
    units,
    visualize,
)
from medyanpy._tools.names import module_names as _module_names
from medyanpy._version import __version__
from medyanpy.context import Context
from medyanpy.core.sites import Sites
from medyanpy.errors import (
    BoxWarning,
    ContextInUseError,
    ConvergenceWarning,
    ExecutorError,
    MedyanError,
    MeshError,
    MeshQualityWarning,
    OutputError,
    OverlapWarning,
    ParameterError,
    PerformanceWarning,
    ReporterWarning,
    SimulationError,
    SitesWarning,
    StatisticsWarning,
    StructureWarning,
    ThermostatWarning,
    TimestepWarning,
    TopologyError,
    TrajectoryWarning,
    UnitsWarning,
    WalltimeError,
)  # fmt: skip
from medyanpy.files.documents import deserialize, serialize
from medyanpy.files.exports import ExportReport, export
from medyanpy.files.trajectory import Trajectory
from medyanpy.integrators import BAGOGABIntegrator, BrownianIntegrator, SplittingIntegrator, VerletIntegrator
from medyanpy.mesh import TriangleMesh
from medyanpy.pools import Compartments, Pool
from medyanpy.runs import RunOutcome, run
from medyanpy.simulation import Simulation
from medyanpy.state import State
from medyanpy.steps import AdaptiveSteps
from medyanpy.system import System
from medyanpy.topology import Topology
from medyanpy.visualize.plots import plot

if _typing.TYPE_CHECKING:
    from medyanpy import ensemble

__all__ = [
    "AdaptiveSteps",
    "BAGOGABIntegrator",
    "BoxWarning",
    "BrownianIntegrator",
    "Compartments",
    "Context",
    "ContextInUseError",
    "ConvergenceWarning",
    "ExecutorError",
    "ExportReport",
    "MedyanError",
    "MeshError",
    "MeshQualityWarning",
    "OutputError",
    "OverlapWarning",
    "ParameterError",
    "PerformanceWarning",
    "Pool",
    "ReporterWarning",
    "RunOutcome",
    "Simulation",
    "SimulationError",
    "Sites",
    "SitesWarning",
    "SplittingIntegrator",
    "State",
    "StatisticsWarning",
    "StructureWarning",
    "System",
    "ThermostatWarning",
    "TimestepWarning",
    "Topology",
    "TopologyError",
    "Trajectory",
    "TrajectoryWarning",
    "TriangleMesh",
    "UnitsWarning",
    "VerletIntegrator",
    "WalltimeError",
    "__version__",
    "analysis",
    "boundaries",
    "deserialize",
    "ensemble",
    "export",
    "forces",
    "hydrodynamics",
    "jumps",
    "kicks",
    "plot",
    "presets",
    "reporters",
    "rigid",
    "rods",
    "run",
    "runs",
    "serialize",
    "surfaces",
    "units",
    "visualize",
]



def _names() -> list[str]:
    below = {"forces": forces, "jumps": jumps, "kicks": kicks, "reporters": reporters}
    return [*(f"{place}.{name}" for place, module in below.items() for name in module.__all__), *__all__]


# Tells what a name that is not here probably means.
_missing = _module_names(__name__, _names)

#: Modules that bring much of the standard library with them, and are imported when they are asked for.
_LATE = ("ensemble",)


if not _typing.TYPE_CHECKING:
    # Type checkers are to see that a name is not there.

    def __getattr__(name: str) -> _typing.Any:
        if name in _LATE:
            from importlib import import_module

            return import_module(f"{__name__}.{name}")
        return _missing(name)
