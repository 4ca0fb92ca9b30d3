"""Jumps: sudden changes of state, made by the letter J of a word. One file per family."""

from typing import TYPE_CHECKING

from medyanpy._tools.names import module_names as _module_names
from medyanpy.jumps._base import Jump
from medyanpy.jumps._reaction_texts import Reaction
from medyanpy.jumps.adsorption import Absorption, Adsorption
from medyanpy.jumps.ageing import Ageing
from medyanpy.jumps.annealing import Annealing
from medyanpy.jumps.box_area import BoxArea
from medyanpy.jumps.branching import Branching
from medyanpy.jumps.capping import Capping
from medyanpy.jumps.crosslinkers import CrosslinkerBinding
from medyanpy.jumps.custom_transitions import CustomTransitions
from medyanpy.jumps.edge_flips import EdgeFlips
from medyanpy.jumps.link_binding import LinkBinding
from medyanpy.jumps.motors import Motors
from medyanpy.jumps.network_files import Network, read_network
from medyanpy.jumps.nucleation import Nucleation
from medyanpy.jumps.polymerization import Polymerization
from medyanpy.jumps.rates import Bell, CatchSlip, CytosimGrowth, CytosimMotor, FlatWindow, MedyanMotor, MedyanRatchet
from medyanpy.jumps.reactions import Reactions
from medyanpy.jumps.severing import Severing
from medyanpy.jumps.trials import TrialMoves

__all__ = [
    "Absorption", "Adsorption", "Ageing", "Annealing", "Bell", "BoxArea", "Branching", "Capping", "CatchSlip",
    "CrosslinkerBinding", "CustomTransitions", "CytosimGrowth", "CytosimMotor", "EdgeFlips", "FlatWindow", "Jump",
    "LinkBinding", "MedyanMotor", "MedyanRatchet", "Motors", "Network", "Nucleation", "Polymerization", "Reaction",
    "Reactions", "Severing", "TrialMoves", "read_network",
]  # fmt: skip

if not TYPE_CHECKING:
    __getattr__ = _module_names(__name__, lambda: __all__)
