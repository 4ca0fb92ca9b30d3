"""Quantities computed from states and trajectories."""

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
from medyanpy.analysis.paths import SurfaceDistances, surface_distances, surface_radial_distribution
from medyanpy.analysis.penalties import constraint_multipliers
from medyanpy.analysis.rolling import surface_mean_square_displacement
from medyanpy.analysis.shapes import gyration_tensor, radius_of_gyration
from medyanpy.analysis.spectra import (
    PatchSpectrum,
    SpectrumFit,
    VesicleSpectrum,
    discrete_wave_number,
    fit_spectrum,
    patch_spectrum,
    vesicle_spectrum,
)
from medyanpy.analysis.stress import SurfaceTension, VirialStress, surface_tension, tether_force, virial_stress
from medyanpy.analysis.structure import StructureFactor, structure_factor
from medyanpy.analysis.surfaces import Curvatures, MeshOrder, curvatures, mesh_order, reduced_volume

__all__ = [
    "ClusterSizes", "Clusters", "ContactTimes", "Contacts", "Curvatures", "Estimate", "MeanSquareDisplacement",
    "MeshOrder", "PatchSpectrum", "RadialDistribution", "SpectrumFit", "StructureFactor", "SurfaceDistances",
    "SurfaceTension", "TangentCorrelation", "VesicleSpectrum", "VirialStress", "autocorrelation", "average",
    "cluster_sizes", "clusters", "constraint_multipliers", "contact_counts", "contact_times", "contour_curvature",
    "curvatures", "diffusion_coefficient", "discrete_wave_number", "end_to_end", "fit_spectrum", "gyration_tensor",
    "mean_square_displacement", "mesh_order", "patch_spectrum", "persistence_length", "radial_distribution",
    "radius_of_gyration", "reduced_volume", "statistical_inefficiency", "structure_factor", "surface_distances",
    "surface_mean_square_displacement", "surface_radial_distribution", "surface_tension", "tangent_correlation",
    "tether_force", "vesicle_spectrum", "virial_stress",
]
