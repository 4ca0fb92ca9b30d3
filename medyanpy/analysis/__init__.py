"""What is computed from states and trajectories."""

from medyanpy.analysis.filaments import (
    Estimate,
    TangentCorrelation,
    contour_curvature,
    end_to_end,
    persistence_length,
    tangent_correlation,
)

__all__ = [
    "Estimate",
    "TangentCorrelation",
    "contour_curvature",
    "end_to_end",
    "persistence_length",
    "tangent_correlation",
]
