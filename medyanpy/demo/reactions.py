"""Points that bind in pairs and come apart on a fluid vesicle, A + B <-> C.

Numbers of molecules have an exact law, whatever the rates, the mesh and its motion (docs/theory/reactions.md): with the
constant of dissociation K_D and the area S, c complexes have the weight 1/[(K_D S)^c a! b! c!]. Then
<a b / S> = K_D <c>, also where the area fluctuates.
"""

from typing import Any

import numpy as np

import medyanpy as mp
from medyanpy.analysis.estimates import mean_of
from medyanpy.demo.membrane import AREA_MODULUS, BENDING_MODULUS, facts_of, size_of
from medyanpy.demo.registry import Option, demo
from medyanpy.demo.report import KT, TEMPERATURE, Demo, Line, Report, bound_line, energy_missing, not_measured, z_line

FREQUENCY, START, EDGE = 8, 9.5, 10.0  # 642 vertices; nm: of edges at the start, and where nothing pulls at them.
VOLUME_MODULUS = 0.083  # pN/nm²
# Walls of edges, in units of EDGE, the least angle of triangles that flips make, and flips in a step of each edge.
SHORTEST, LONGEST, MIN_ANGLE, FLIPS = 0.67, 1.36, 0.3, 0.1
MASS, FRICTION, TIMESTEP = 4e-12, 6e-8, 2.8e-8  # pN s²/nm, pN s/nm and s.
# nm²/s: many encounters in a short run; nm; 1/s. √(4 D dt) of two points is a fifth of the reach.
DIFFUSION, REACH, OFF = 7e7, 20.0, 4.7e5
PARTNERS = 20  # Points have one partner within the reach on average.
COLORS = {"A": "tab:blue", "B": "tab:orange", "C": "tab:red"}
LOOK, SKIP, FEWEST_STEPS = 10, 0.1, 2000  # Steps between looks; share of looks until the counts have settled.
ROUNDING = 1e-9


class Watch:
    """Counts of species, area and energy, look by look."""

    def __init__(self, points: Any) -> None:
        self._points = points
        self.rows: list[list[float]] = []
        self._before: mp.State | None = None
        self.missing = self.chemical = 0.0  # pN nm

    def look(self, simulation: mp.Simulation, state: mp.State) -> None:
        membrane = self._points.membrane
        a, b, c = (state.positions[membrane.beads][k] for k in state.faces[membrane.name].T)
        area = 0.5 * float(np.linalg.norm(np.cross(b - a, c - a), axis=1).sum())
        self.rows.append([*self._points.counts(state).values(), area])
        if not simulation.report_work:
            # From here on.
            simulation.report_work = True
            self._before = simulation.context.get_state(energy=True)
            return
        assert self._before is not None
        self.chemical = state.chemical_work
        self.missing = energy_missing(self._before, state)

    def lines(self, pairs: int, wanted: float) -> list[Line]:
        """Compare with the law of whole numbers, and the energy with its books."""
        a, b, c, area = np.array(self.rows[round(SKIP * len(self.rows)) :]).T
        expected, per_area = mean_of_complexes(pairs, wanted * float(area.mean())), mp.units.micrometer**2
        names = [("complexes C", ""), ("K_D", "1/µm²")]
        count, off = (mean_of(x, warn=False) for x in (c, per_area * (a * b / area - wanted * c)))
        known = LOOK * len(self.rows) >= FEWEST_STEPS and bool(np.isfinite(count.error + off.error))
        if known:
            found = per_area * wanted + off.value / count.value
            numbers = [(count.value, count.error, expected), (found, off.error / count.value, per_area * wanted)]
            lines = [z_line(name, *three, unit) for (name, unit), three in zip(names, numbers, strict=True)]
        else:
            wants = (expected, per_area * wanted)
            why = "too few independent samples: more --steps"
            lines = [not_measured(name, one, unit, why) for (name, unit), one in zip(names, wants, strict=True)]
        return [
            *lines,
            bound_line("energy change without heat and work, relative", self.missing, ROUNDING),
            bound_line("chemical work", abs(self.chemical), ROUNDING, "pN nm"),
        ]


def mean_of_complexes(pairs: int, constant: float) -> float:
    """Return the mean number of C of as many A as B, `constant` being K_D times the area."""
    from scipy.special import gammaln

    c = np.arange(pairs + 1)
    weight = -c * np.log(constant) - gammaln(c + 1) - 2.0 * gammaln(pairs - c + 1)
    weight = np.exp(weight - weight.max())
    return float(weight @ c / weight.sum())


@demo(
    "reactions",
    "points that bind in pairs and come apart on a fluid vesicle, A + B <-> C",
    pairs=Option(60, "points A, and as many B", 10, 200),
    steps=Option(20_000, "time steps"),
)
def run_reactions_demo(report: Report, pairs: int) -> Demo:
    mesh = mp.TriangleMesh.icosphere(1.0, frequency=FREQUENCY)
    mesh = mesh.scaled(START / float(mesh.edge_lengths.mean()))
    report.begin(f"vesicle: {size_of(mesh)}")
    wanted = pairs / mesh.area
    points, system = _build(mesh, pairs, wanted, report.seed)
    notes = [
        f"bending {BENDING_MODULUS:g} pN nm, area and volume kept; edges flip",
        f"{pairs} A and {pairs} B: K_D = {wanted * 1e6:.4g} /µm², within {REACH:g} nm",
    ]
    report.note(*notes)
    watch = Watch(points)
    look = mp.reporters.Callback(LOOK, watch.look, include=("positions", "energy"))
    integrator = mp.SplittingIntegrator("JBAGOGABJ", TIMESTEP, temperature=TEMPERATURE, seed=report.seed)
    _, state = report.run(system, integrator, reporters=[look], colors=COLORS)
    end = mp.TriangleMesh(state.positions[points.membrane.beads], state.faces[points.membrane.name])
    return report.finish(
        end, system.topology, watch.lines(pairs, wanted), mesh=facts_of(mesh, "vesicle"), notes=notes, pairs=pairs,
        counts=points.counts(state),
    )  # fmt: skip


def _build(mesh: mp.TriangleMesh, pairs: int, wanted: float, seed: int) -> tuple[Any, mp.System]:
    """Build topology, forces and jumps."""
    topology = mp.Topology()
    vesicle = topology.add_membrane(mesh, MASS, FRICTION, name="vesicle")
    friction = KT / DIFFUSION
    kind = {"mass": friction * TIMESTEP, "friction": friction}
    points = topology.add_intriangle_points(
        vesicle, species=dict.fromkeys(COLORS, kind), counts={"A": pairs, "B": pairs}, capacity=2 * pairs, seed=seed,
        name="proteins",
    )  # fmt: skip
    system = mp.System(topology)
    system.add_force(mp.forces.MembraneBending(vesicle, BENDING_MODULUS))
    system.add_force(mp.forces.MembraneArea(vesicle, AREA_MODULUS))
    system.add_force(mp.forces.MembraneVolume(vesicle, VOLUME_MODULUS))
    system.add_force(mp.forces.MembraneTether(vesicle, 80.0 * KT, EDGE, l_min=SHORTEST, l_max=LONGEST))
    system.add_force(mp.forces.MembraneFoldRepulsion(vesicle, 20.0 * KT))
    system.add_jump(mp.jumps.EdgeFlips(vesicle, FLIPS / TIMESTEP, min_angle=MIN_ANGLE))
    system.add_jump(
        mp.jumps.Reactions(
            points, "A + B <-> C", reach=REACH, dissociation_constant=wanted, off_rate=OFF, most_partners=PARTNERS
        )
    )
    return points, system
