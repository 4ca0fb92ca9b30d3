"""Forces: terms of the potential energy."""

from typing import TYPE_CHECKING

from medyanpy._tools.names import module_names as _module_names
from medyanpy.forces._base import Force
from medyanpy.forces.angles import AngleLinks, DirectionLinks, NormalLinks
from medyanpy.forces.bonds import CustomBonds, HarmonicBonds, MembraneEdgeSprings
from medyanpy.forces.collisions import SoftCollisions
from medyanpy.forces.constraints import ConstraintFixmanPotential, ConstraintPenalty
from medyanpy.forces.custom_pairs import CustomPair, TabulatedPair
from medyanpy.forces.ellipsoid_collisions import EllipsoidCollisions
from medyanpy.forces.ellipsoids import EllipsoidRepulsion
from medyanpy.forces.external import ExternalField, HarmonicTrap, UniformField
from medyanpy.forces.filaments import FilamentBending, FilamentStretching, FilamentTwisting, FixmanPotential
from medyanpy.forces.links import Links
from medyanpy.forces.membrane import (
    MembraneArea,
    MembraneBending,
    MembraneOsmoticPressure,
    MembranePoolPressure,
    MembranePressure,
    MembraneTension,
    MembraneVolume,
)
from medyanpy.forces.membrane_adhesion import MembraneAdhesion
from medyanpy.forces.membrane_curvatures import MembraneAreaDifference, MembraneGaussianCurvature
from medyanpy.forces.membrane_fields import (
    CustomMembraneField,
    DirectedPointCurvature,
    MembraneField,
    PointCurvature,
    PythonMembraneField,
)
from medyanpy.forces.membrane_folds import MembraneFoldRepulsion
from medyanpy.forces.membrane_lines import BorderTension, MembraneLineTension
from medyanpy.forces.membrane_tether import MembraneTether
from medyanpy.forces.pairs import WCA, Coulomb, LennardJones, Morse, Ricker, SoftSphere, Yukawa
from medyanpy.forces.penalties import LinkLengthPenalty, OrthonormalFramePenalty, RigidTrianglePenalty
from medyanpy.forces.python import PythonForce
from medyanpy.forces.rods import RodCollision, RodElasticity, RodLoad
from medyanpy.forces.walls import WallRepulsion

__all__ = [
    "WCA", "AngleLinks", "BorderTension", "ConstraintFixmanPotential", "ConstraintPenalty", "Coulomb", "CustomBonds",
    "CustomMembraneField", "CustomPair", "DirectedPointCurvature", "DirectionLinks", "EllipsoidCollisions",
    "EllipsoidRepulsion", "ExternalField", "FilamentBending", "FilamentStretching", "FilamentTwisting",
    "FixmanPotential", "Force", "HarmonicBonds", "HarmonicTrap", "LennardJones", "LinkLengthPenalty", "Links",
    "MembraneAdhesion", "MembraneArea", "MembraneAreaDifference", "MembraneBending", "MembraneEdgeSprings",
    "MembraneField", "MembraneFoldRepulsion", "MembraneGaussianCurvature", "MembraneLineTension",
    "MembraneOsmoticPressure", "MembranePoolPressure", "MembranePressure", "MembraneTension", "MembraneTether",
    "MembraneVolume", "Morse", "NormalLinks", "OrthonormalFramePenalty", "PointCurvature", "PythonForce",
    "PythonMembraneField", "Ricker", "RigidTrianglePenalty", "RodCollision", "RodElasticity", "RodLoad",
    "SoftCollisions", "SoftSphere", "TabulatedPair", "UniformField", "WallRepulsion", "Yukawa",
]  # fmt: skip

if not TYPE_CHECKING:
    __getattr__ = _module_names(__name__, lambda: __all__)
