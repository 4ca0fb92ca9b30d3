"""Types of the beads, handles and pairs that users give to forces and jumps."""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from medyanpy.core.handles import Handle
from medyanpy.core.sites import Sites
from medyanpy.core.species import OfSpecies

__all__ = ["Beads", "Handles", "Ids", "Rows"]

#: A handle, or several.
Handles: TypeAlias = Handle | Sequence[Handle]
#: Beads of a handle while they are of one species, or several.
OneSpecies: TypeAlias = OfSpecies | Sequence[OfSpecies | Handle]
#: Numbers of beads, or of other objects with permanent ids.
Ids: TypeAlias = int | np.integer | np.ndarray | Sequence[int] | Sequence[np.integer]
#: Places that a force acts on: handles, sites, or numbers of beads.
Beads: TypeAlias = Handles | OneSpecies | Sites | Ids
#: Numbers of beads in rows, as those of pairs.
Rows: TypeAlias = np.ndarray | Sequence[Sequence[int]] | Sequence[np.ndarray] | Sequence[int]
