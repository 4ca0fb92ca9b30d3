"""Tether that is pulled from a fluid vesicle, with curved proteins that gather on it.

The mesh is fluid, as its edges flip. Its volume is kept, and a tension draws on a reservoir of area. The mechanical
tension is less than that, as edges resist being short: it is what Laplace's law makes of the pressure. A soft trap
pulls at a few vertices at the top, others are held at the bottom. A tube of radius √(κ/2σ) comes out, and pulls at the
trap with 2π√(2κσ). So small a vesicle is under a pressure that widens the tube, and on a mesh of few edges around it
bends with more energy, which widens it, too: the radius is compared with both.
"""

from math import pi, sqrt
from typing import Any

import numpy as np

from medyanpy import forces, units
from medyanpy.analysis.estimates import mean_of
from medyanpy.demo.membrane import BENDING_MODULUS
from medyanpy.demo.report import (
    LARGEST_Z,
    TEMPERATURE,
    Demo,
    Line,
    Option,
    Page,
    Report,
    demo,
    facts_of,
    not_measured,
    size_of,
)  # fmt: skip
from medyanpy.integrators import SplittingIntegrator
from medyanpy.jumps import EdgeFlips
from medyanpy.mesh import TriangleMesh
from medyanpy.reporters import Ramp, Reporter
from medyanpy.simulation import Simulation
from medyanpy.state import State
from medyanpy.system import System
from medyanpy.topology import Topology
from medyanpy.visualize import draw

# nm: of edges where nothing pulls or pushes, and at the start; of the tube that the tension is chosen for.
EDGE, START, TUBE = 10.0, 9.5, 16.0
# Way of the trap, and the vertices it pulls at and those that are held: nm from the pole, share of the radius.
WAY, PATCH, FOOT = 220.0, 13.0, -0.6
# pN/nm: so that a tube would have that radius.
TENSION = BENDING_MODULUS / (2.0 * TUBE**2)
# pN/nm: of the trap, all vertices together, and of each vertex that is held.
STIFFNESS, HELD = 1.24, 0.02
# pN/nm², and by how much of the start the volume is to be larger: about as much as the tension presses it together.
VOLUME_MODULUS, SWOLLEN = 0.083, 0.02
# Walls of edges, in units of EDGE, and the least angle of triangles that flips make.
SHORTEST, LONGEST, MIN_ANGLE = 0.67, 1.36, 0.3
# In a step of each edge.
FLIPS = 0.1
# pN s²/nm, pN s/nm and s.
MASS, FRICTION, TIMESTEP = 4e-12, 6e-8, 2.8e-8
PROTEIN_MASS, PROTEIN_FRICTION = 2e-13, 1e-8
# 1/nm of the mean curvature, nm², pN nm: a tube of 14 nm would suit them best, which is more than this mesh bends.
CURVATURE, PATCH_AREA, PROTEIN_MODULUS = 0.035, 50.0, 164.0
# The tube that is looked at, from its end: its cap is left out, and the neck is farther off.
CAP, LONG = 30.0, 60.0
# Part of it where the neck is not felt: the radius is measured there.
EVEN = 40.0
# Tubes of regular triangles have 1 + STIFFER (edge/R)² of the bending energy of round ones.
STIFFER = 0.104
# Shares of the steps: until the trap begins to move, until it stands still, until looks count.
BEGIN, ARRIVE, COUNT = 0.03, 0.31, 0.5
LOOK, RAMP, FRAMES, MOVIE_FRAMES = 40, 125, 60, 30
# Below so many steps the tube is not at rest, and there is no verdict.
FEWEST_STEPS = 20_000
WITHIN = 0.15
VIEW = (0.0, 0.0)


@demo(
    "membrane",
    "a tether that is pulled from a fluid vesicle, with curved proteins that gather on it",
    frequency=Option(12, "parts of an edge of the icosahedron: 10 times its square and 2 vertices", 8, 40),
    curved=Option(200, "curved proteins", 20),
    steps=Option(30_000, "time steps"),
    more_outputs=["movie.gif"],
)
def run_membrane_demo(report: Report, frequency: int, curved: int) -> Demo:
    mesh = TriangleMesh.icosphere(1.0, frequency=frequency)
    mesh = mesh.scaled(START / float(mesh.edge_lengths.mean()))
    report.begin(f"vesicle: {size_of(mesh)}")
    system = _build(mesh, curved, report.seed)
    vesicle: Any = system.topology.handles[0]
    tip: Any = system["tip"]
    notes = [
        f"bending {BENDING_MODULUS:g} pN nm, tension {TENSION:.3g} pN/nm, volume kept; edges flip",
        f"{curved} proteins of {PATCH_AREA:g} nm² with a mean curvature of {CURVATURE:g}/nm",
        f"a trap of {STIFFNESS:g} pN/nm on {len(tip.beads)} vertices moves up by {WAY:g} nm",
    ]
    report.note(*notes)
    watch = _Watch(mesh)
    start = np.array(tip.center)
    begin, arrive = round(BEGIN * report.steps), round(ARRIVE * report.steps)
    way = {"tip": {"center": (start, start + [0.0, 0.0, WAY])}}
    pull = Ramp(way, steps=max(1, arrive - begin), start=begin, every=RAMP)
    integrator = SplittingIntegrator("JBAGOGABJ", TIMESTEP, temperature=TEMPERATURE, seed=report.seed)
    _, state = report.run(
        system, integrator, reporters=[pull, watch], frames=FRAMES,
        drawn_by=lambda *given, **_: _picture(watch, *given),
    )  # fmt: skip
    report.movie(lambda f: f[:: max(1, len(f) // MOVIE_FRAMES)], fps=12, size=(320, 480), view=VIEW)
    end = TriangleMesh(state.positions[vesicle.beads], state.faces[vesicle.name])
    lines, facts = _compared(watch, report.steps)
    return report.finish(
        end, system.topology, lines, mesh=facts_of(mesh, "vesicle"), notes=notes, frequency=frequency, curved=curved,
        **facts,
    )  # fmt: skip


def _build(mesh: TriangleMesh, curved: int, seed: int) -> System:
    """Build topology and forces."""
    radius = float(np.linalg.norm(mesh.vertices, axis=1).mean())
    topology = Topology()
    vesicle = topology.add_membrane(mesh, MASS, FRICTION, name="vesicle")
    proteins = topology.add_intriangle_points(
        vesicle, curved, mass=PROTEIN_MASS, friction=PROTEIN_FRICTION, seed=seed, name="proteins"
    )
    system = System(topology)
    system.add_force(forces.MembraneBending(vesicle, BENDING_MODULUS))
    system.add_force(forces.MembraneTension(vesicle, TENSION))
    system.add_force(forces.MembraneVolume(vesicle, VOLUME_MODULUS, (1.0 + SWOLLEN) * mesh.volume))
    thermal_energy = TEMPERATURE * units.boltzmann
    system.add_force(forces.MembraneTether(vesicle, 80.0 * thermal_energy, EDGE, l_min=SHORTEST, l_max=LONGEST))
    system.add_force(forces.MembraneFoldRepulsion(vesicle, 20.0 * thermal_energy))
    system.add_force(forces.PointCurvature(proteins, PROTEIN_MODULUS, CURVATURE, PATCH_AREA))
    # The vertices at the foot and the tip stay what they are, whatever flips around them.
    foot = np.flatnonzero(mesh.vertices[:, 2] < FOOT * radius)
    system.add_force(forces.HarmonicTrap(vesicle.beads[foot], [0.0, 0.0, HELD], mesh.vertices[foot], name="foot"))
    top = mesh.vertices[:, 2].argmax()
    tip = np.flatnonzero(np.linalg.norm(mesh.vertices - mesh.vertices[top], axis=1) < PATCH)
    system.add_force(forces.HarmonicTrap(vesicle.beads[tip], STIFFNESS / len(tip), mesh.vertices[tip], name="tip"))
    system.add_jump(EdgeFlips(vesicle, FLIPS / TIMESTEP, min_angle=MIN_ANGLE))
    return system


class _Watch(Reporter):
    """Looks at the force of the trap, the shape of the tube and of the body, and where proteins are."""

    include = ("positions",)

    def __init__(self, mesh: TriangleMesh) -> None:
        super().__init__(LOOK)
        self.radius = float(np.linalg.norm(mesh.vertices, axis=1).mean())
        self.volume = (1.0 + SWOLLEN) * mesh.volume
        self.steps: list[int] = []
        self.rows: list[tuple[float, ...]] = []

    #: Columns of a row: force (pN) and place (nm) of the tip, pressure (pN/nm²); of the body area (nm²), integral of H
    #: (nm), and proteins; of the tube area, proteins and radius (nm).
    names = ("force", "tip", "pressure", "body", "bent", "on_body", "tube", "on_tube", "radius")

    def report(self, simulation: Simulation, state: State) -> None:
        system = simulation.system
        vesicle: Any = system.topology.handles[0]
        tip: Any = system["tip"]
        x, faces = state.positions[vesicle.beads], state.faces[vesicle.name]
        held = state.positions[tip.beads]
        force = float((tip.stiffness * (tip.center - held)).sum(axis=0)[2])
        now = TriangleMesh(x, faces)
        height = x[faces].mean(axis=1)[:, 2]
        # Not the foot, nor the neck.
        body = np.abs(height) < 0.4 * self.radius
        high = float(x[:, 2].max()) - CAP
        tube = (height > high - LONG) & (height < high)
        H = now.mean_curvatures[faces].mean(axis=1)
        area = now.face_areas
        there = state.intriangle.triangles
        self.steps.append(state.step)
        self.rows.append((
            force, float(held[:, 2].mean()), -VOLUME_MODULUS * (now.volume / self.volume - 1.0),
            float(area[body].sum()), float((H * area)[body].sum()), float(body[there].sum()),
            float(area[tube].sum()), float(tube[there].sum()),
            _radius(x[faces].mean(axis=1)[:, :2], area * ((height > high - EVEN) & (height < high))),
        ))  # fmt: skip

    def table(self) -> dict[str, np.ndarray]:
        """Return the columns by name, (T,) each."""
        return dict(zip(self.names, np.array(self.rows).reshape(-1, len(self.names)).T, strict=True))


# Measured against expected ----------------------------------------------------------------------------------


def _compared(watch: _Watch, steps: int) -> tuple[list[Line], dict[str, Any]]:
    kept = np.array(watch.steps) > COUNT * steps
    t = {name: values[kept] for name, values in watch.table().items()}
    names = ("force of the tether", "radius of the tether", "proteins per area, tube over body")
    if steps < FEWEST_STEPS or not (t["tube"] > 0.0).all():
        why = f"the tether is at rest after some {FEWEST_STEPS} steps: more --steps"
        return [not_measured(name, None, unit, why) for name, unit in zip(names, ("pN", "nm", ""), strict=True)], {}
    tension = _tension(t)
    # Lines without an error warn of it themselves.
    force = mean_of(t["force"], warn=False)
    radius = mean_of(t["radius"], warn=False)
    # Errors of ratios of means to first order, sample by sample.
    parts = {name: t[name] / t[name].mean() for name in ("on_tube", "tube", "on_body", "body")}
    ratio = float(t["on_tube"].mean() / t["tube"].mean() / (t["on_body"].mean() / t["body"].mean()))
    gathered = mean_of(ratio * (1.0 + parts["on_tube"] - parts["tube"] - parts["on_body"] + parts["body"]), warn=False)
    above = bool(gathered.value - 1.0 > LARGEST_Z * gathered.error)
    pressure = float(t["pressure"].mean())
    expected = 2.0 * pi * sqrt(2.0 * BENDING_MODULUS * tension)
    lines = [
        _within(names[0], force, expected, "pN"),
        _within(names[1], radius, _tube(tension, pressure), "nm"),
        Line(
            names[2], gathered.value, _known(gathered.error), None, "",
            f"above 1 by {LARGEST_Z:g} standard errors", "OK" if above else "CHECK",
        ),
    ]  # fmt: skip
    largest = float(watch.table()["force"].max())
    return lines, {"tension": tension, "pressure": pressure, "largest_force": largest}


def _radius(places: np.ndarray, weights: np.ndarray) -> float:
    """Return the mean distance from the middle, in the plane, nm; nan where nothing is."""
    if not weights.any():
        return float("nan")
    middle = np.average(places, axis=0, weights=weights)
    return float(np.average(np.linalg.norm(places - middle, axis=1), weights=weights))


def _tube(tension: float, pressure: float) -> float | None:
    """Return the radius R of a long tube on this mesh and under a pressure, nm, where πκ/R (1 + s (a/R)²) + 2πσR - πR²p
    is least, that is κ/2R² (1 + 3s (a/R)²) = σ - pR. None beyond the pressure that widens it without end."""
    roots = np.roots([pressure, -tension, 0.0, 0.5 * BENDING_MODULUS, 0.0, 1.5 * BENDING_MODULUS * STIFFER * EDGE**2])
    positive = roots[np.isreal(roots)].real
    positive = positive[positive > 0.0]
    return float(positive.min()) if len(positive) else None


def _tension(t: dict[str, np.ndarray]) -> float:
    """Return the tension, pN/nm, by Laplace's law p = 2σH where the body is; H is the same all over it, if tension and
    pressure are."""
    return float(t["pressure"].mean() * t["body"].sum() / (2.0 * t["bent"].sum()))


def _known(error: float) -> float | None:
    return error if np.isfinite(error) else None


def _within(quantity: str, found: Any, expected: float | None, unit: str) -> Line:
    """Compare with theory, which is that of a long tube without fluctuations."""
    verdict = "OK" if expected is not None and abs(found.value / expected - 1.0) < WITHIN else "CHECK"
    error = _known(found.error)
    criterion = f"within {100 * WITHIN:g} %" + ("" if error is not None else "; too short a run for an error")
    return Line(quantity, found.value, error, expected, unit, criterion, verdict)


def _picture(watch: _Watch, simulation: Simulation, path: Any) -> None:
    """Draw the tether at the end; the force and how proteins gather, in time."""
    size, beside = (800, 1000), 700
    share = size[0] / (size[0] + beside)
    page = Page(draw(simulation, view=VIEW, size=size), size, beside)
    upper = page.panel((share + 0.07, 0.58, 0.9 - share, 0.34), "time (µs)", "force (pN)")
    lower = page.panel((share + 0.07, 0.11, 0.9 - share, 0.34), "time (µs)", "proteins per 1000 nm²")
    t = watch.table()
    time = np.array(watch.steps) * TIMESTEP / units.microsecond
    if len(time):
        last = {name: values[len(time) // 2 :] for name, values in t.items()}
        upper.plot(time, t["force"], lw=0.4, color="0.7")
        upper.plot(time, _smooth(t["force"]), lw=1.0, label="of the trap")
        expected = 2.0 * pi * sqrt(2.0 * BENDING_MODULUS * max(0.0, _tension(last)))
        upper.axhline(expected, color="k", ls="--", lw=0.8, label="2π√(2κσ)")
        for name, area, label in (("on_tube", "tube", "tube"), ("on_body", "body", "body")):
            with np.errstate(divide="ignore", invalid="ignore"):
                # Before there is a tube this is the top of the vesicle.
                density = 1e3 * t[name] / t[area]
            lower.plot(time, _smooth(density), lw=1.0, label=label)
    page.save(path)


def _smooth(values: np.ndarray, over: int = 40) -> np.ndarray:
    """Return running means, (n,), of fewer at the ends."""
    n = max(1, min(over, len(values)))
    ones = np.ones(n)
    mean: np.ndarray = np.convolve(values, ones, "same") / np.convolve(np.ones(len(values)), ones, "same")
    return mean
