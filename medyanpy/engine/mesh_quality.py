"""Triangles without height: where they are, and when those of a running membrane become such."""

from typing import TYPE_CHECKING

import numpy as np

from medyanpy.errors import MeshQualityWarning, warn_outside
from medyanpy.mesh.geometry import radius_ratios

if TYPE_CHECKING:
    from medyanpy.core.handles import Handle
    from medyanpy.core.layout import Layout
    from medyanpy.system import System

__all__ = ["Degradation", "keepers_at"]

#: The lowest quality of a triangle whose energies mean something. Vesicles that are held well stay above 0.14.
_NEEDLE = 0.05
#: Shapes change slowly: steps between two looks.
_EVERY = 10_000


def keepers(system: "System", membrane: "Handle | None") -> str:
    """Name forces, for messages, that would hold the triangles of a membrane in shape and that it does not have yet."""
    there = {force.keeps_triangles for force in system.forces if membrane is None or membrane in force.handles}
    flows = membrane is not None and any(jump.flips_edges_of is membrane for jump in system.jumps)
    kinds = ("MembraneTether",) if flows else ("MembraneEdgeSprings", "MembraneArea(per_triangle=True)")
    if lacking := [kind for kind in kinds if kind not in there]:
        return f"a force that keeps triangles in shape ({', '.join(lacking)})"
    narrower = ", a MembraneTether with a smaller l_max / l_min" if flows else ""
    return f"triangles held more tightly than by its {' and '.join(kinds)}{narrower}"


def keepers_at(system: "System", handle: "Handle | None") -> str:
    """Return `keepers` of the membrane whose vertices these beads are, or on which they are."""
    membrane = getattr(handle, "membrane", handle)
    return keepers(system, membrane if membrane in system.topology.membranes else None)


class Degradation:
    """Looks at the triangles of membranes that move, and warns once of each whose triangles have become needles.

    Neither areas nor bending hold a triangle in shape, and nothing else of a run shows it: temperatures, areas and
    volumes stay right while the bending energy of needles falls below that of any closed surface.
    """

    def __init__(self, layout: "Layout", system: "System") -> None:
        #: Membranes not yet warned of, and the places of their vertices.
        self._watched = {m: layout.rank[m.beads] for m in layout.topology.membranes if not m.kind.fixed_beads.all()}
        self._layout, self._looked, self._system = layout, 0, system

    def look(self, step: int, x: np.ndarray) -> None:
        """Look for degraded triangles at places x of the beads in internal order, after so many steps.

        Warns
        -----
        MeshQualityWarning
            A triangle has a quality below 0.05, and less than half of the lowest of the mesh that the membrane was
            made of.
        """
        if not self._watched or 0 <= step - self._looked < _EVERY:
            return
        self._looked = step
        box = self._layout.box if self._layout.is_periodic else None
        for membrane, places in list(self._watched.items()):
            quality = radius_ratios(x[places], self._layout.connectivity(membrane).faces, box)
            worst = int(np.argmin(quality))
            first = float(membrane.mesh.quality.min())
            if quality[worst] >= min(_NEEDLE, 0.5 * first):
                continue
            del self._watched[membrane]
            warn_outside(
                f"{membrane.name!r}: triangle {worst} has become a needle of quality {quality[worst]:.2g} "
                f"(equilateral: 1; the lowest of its mesh was {first:.2g}) by step {step}. Bending energies of such "
                "triangles, and shapes made of them, mean nothing. It needs "
                f"{keepers(self._system, membrane)}; start again from where they were good",
                MeshQualityWarning,
            )
