"""What is computed from states and trajectories."""

from medyanpy.analysis.filaments import (
    Estimate,
    TangentCorrelation,
    contour_curvature,
    end_to_end,
    persistence_length,
    tangent_correlation,
)
from medyanpy.analysis.penalties import constraint_multipliers

__all__ = [
    "Estimate",
    "TangentCorrelation",
    "constraint_multipliers",
    "contour_curvature",
    "end_to_end",
    "persistence_length",
    "tangent_correlation",
]
