"""What is computed from states and trajectories."""

from medyanpy.analysis.clusters import Clusters, ClusterSizes, cluster_sizes, clusters
from medyanpy.analysis.diffusion import MeanSquareDisplacement, diffusion_coefficient, mean_square_displacement
from medyanpy.analysis.estimates import Estimate, autocorrelation, average, statistical_inefficiency
from medyanpy.analysis.filaments import (
    TangentCorrelation,
    contour_curvature,
    end_to_end,
    persistence_length,
    tangent_correlation,
)
from medyanpy.analysis.pairs import (
    Contacts,
    ContactTimes,
    RadialDistribution,
    contact_counts,
    contact_times,
    radial_distribution,
)
from medyanpy.analysis.penalties import constraint_multipliers
from medyanpy.analysis.shapes import gyration_tensor, radius_of_gyration
from medyanpy.analysis.stress import VirialStress, virial_stress

__all__ = [
    "ClusterSizes",
    "Clusters",
    "ContactTimes",
    "Contacts",
    "Estimate",
    "MeanSquareDisplacement",
    "RadialDistribution",
    "TangentCorrelation",
    "VirialStress",
    "autocorrelation",
    "average",
    "cluster_sizes",
    "clusters",
    "constraint_multipliers",
    "contact_counts",
    "contact_times",
    "contour_curvature",
    "diffusion_coefficient",
    "end_to_end",
    "gyration_tensor",
    "mean_square_displacement",
    "persistence_length",
    "radial_distribution",
    "radius_of_gyration",
    "statistical_inefficiency",
    "tangent_correlation",
    "virial_stress",
]
