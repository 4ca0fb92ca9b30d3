"""Forces: terms of the potential energy."""

from medyanpy.forces._base import Force
from medyanpy.forces.bonds import HarmonicBonds, MembraneEdgeSprings

__all__ = [
    "Force",
    "HarmonicBonds",
    "MembraneEdgeSprings",
]
