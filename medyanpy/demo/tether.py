"""Tether that is pulled from a fluid vesicle, with curved proteins that gather on it.

The mesh is fluid, as its edges flip. Its volume is kept, and a tension draws on a reservoir of area; the mechanical
tension is less than that, as edges resist being short. A soft trap pulls at a few vertices at the top, others are held
at the bottom. `medyanpy.demo.tube` compares the tube with theory.
"""

from typing import Any

import numpy as np

import medyanpy as mp
from medyanpy.demo.membrane import BENDING_MODULUS, facts_of, size_of
from medyanpy.demo.pictures import draw_tether
from medyanpy.demo.registry import Option, demo
from medyanpy.demo.report import KT, TEMPERATURE, Demo, Report
from medyanpy.demo.tube import EDGE, Tube, compared, force_expected, tension_of

START, TUBE = 9.5, 16.0  # nm: of edges at the start; of the tube that the tension is chosen for.
# Way of the trap, and the vertices it pulls at and those that are held: nm from the pole, share of the radius.
WAY, PATCH, FOOT = 220.0, 13.0, -0.6
TENSION = BENDING_MODULUS / (2.0 * TUBE**2)  # pN/nm: so that a tube would have that radius.
STIFFNESS, HELD = 1.24, 0.02  # pN/nm: of the trap, all vertices together, and of each vertex that is held.
# pN/nm², and by how much of the start the volume is to be larger: about as much as the tension presses it together.
VOLUME_MODULUS, SWOLLEN = 0.083, 0.02
# Walls of edges, in units of EDGE, and the least angle of triangles that flips make.
SHORTEST, LONGEST, MIN_ANGLE = 0.67, 1.36, 0.3
FLIPS = 0.1  # In a step of each edge.
# pN s²/nm, pN s/nm and s.
MASS, FRICTION, TIMESTEP = 4e-12, 6e-8, 2.8e-8
PROTEIN_MASS, PROTEIN_FRICTION = 2e-13, 1e-8
# 1/nm of the mean curvature, nm², pN nm: a tube of 14 nm would suit them best, which is more than this mesh bends.
CURVATURE, PATCH_AREA, PROTEIN_MODULUS = 0.035, 50.0, 164.0
# Shares of the steps: until the trap begins to move, until it stands still.
BEGIN, ARRIVE = 0.03, 0.31
LOOK, RAMP, FRAMES, MOVIE_FRAMES = 40, 125, 60, 30
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
    mesh = mp.TriangleMesh.icosphere(1.0, frequency=frequency)
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
    tube = Tube(mesh, VOLUME_MODULUS, (1.0 + SWOLLEN) * mesh.volume)
    watch = mp.reporters.Callback(LOOK, tube.look, include="positions")
    start = np.array(tip.center)
    begin, arrive = round(BEGIN * report.steps), round(ARRIVE * report.steps)
    way = {"tip": {"center": (start, start + [0.0, 0.0, WAY])}}
    pull = mp.reporters.Ramp(way, steps=max(1, arrive - begin), start=begin, every=RAMP)
    integrator = mp.SplittingIntegrator("JBAGOGABJ", TIMESTEP, temperature=TEMPERATURE, seed=report.seed)
    _, state = report.run(
        system, integrator, reporters=[pull, watch], frames=FRAMES,
        drawn_by=lambda simulation, path, **_: _picture(tube, simulation, path),
    )  # fmt: skip
    report.movie(lambda f: f[:: max(1, len(f) // MOVIE_FRAMES)], fps=12, size=(320, 480), view=VIEW)
    end = mp.TriangleMesh(state.positions[vesicle.beads], state.faces[vesicle.name])
    lines, facts = compared(tube, report.steps)
    return report.finish(
        end, system.topology, lines, mesh=facts_of(mesh, "vesicle"), notes=notes, frequency=frequency, curved=curved,
        **facts,
    )  # fmt: skip


def _build(mesh: mp.TriangleMesh, curved: int, seed: int) -> mp.System:
    """Build topology and forces."""
    radius = float(np.linalg.norm(mesh.vertices, axis=1).mean())
    topology = mp.Topology()
    vesicle = topology.add_membrane(mesh, MASS, FRICTION, name="vesicle")
    proteins = topology.add_intriangle_points(
        vesicle, curved, mass=PROTEIN_MASS, friction=PROTEIN_FRICTION, seed=seed, name="proteins"
    )
    system = mp.System(topology)
    system.add_force(mp.forces.MembraneBending(vesicle, BENDING_MODULUS))
    system.add_force(mp.forces.MembraneTension(vesicle, TENSION))
    system.add_force(mp.forces.MembraneVolume(vesicle, VOLUME_MODULUS, (1.0 + SWOLLEN) * mesh.volume))
    system.add_force(mp.forces.MembraneTether(vesicle, 80.0 * KT, EDGE, l_min=SHORTEST, l_max=LONGEST))
    system.add_force(mp.forces.MembraneFoldRepulsion(vesicle, 20.0 * KT))
    system.add_force(mp.forces.PointCurvature(proteins, PROTEIN_MODULUS, CURVATURE, PATCH_AREA))
    # The vertices at the foot and the tip stay what they are, whatever flips around them.
    foot = np.flatnonzero(mesh.vertices[:, 2] < FOOT * radius)
    system.add_force(mp.forces.HarmonicTrap(vesicle.beads[foot], [0.0, 0.0, HELD], mesh.vertices[foot], name="foot"))
    top = mesh.vertices[:, 2].argmax()
    tip = np.flatnonzero(np.linalg.norm(mesh.vertices - mesh.vertices[top], axis=1) < PATCH)
    system.add_force(mp.forces.HarmonicTrap(vesicle.beads[tip], STIFFNESS / len(tip), mesh.vertices[tip], name="tip"))
    system.add_jump(mp.jumps.EdgeFlips(vesicle, FLIPS / TIMESTEP, min_angle=MIN_ANGLE))
    return system


def _picture(tube: Tube, simulation: mp.Simulation, path: Any) -> None:
    table = tube.table()
    last = {name: values[len(values) // 2 :] for name, values in table.items()}
    force = force_expected(max(0.0, tension_of(last))) if len(tube.steps) else None
    draw_tether(simulation, path, TIMESTEP * np.array(tube.steps), table, force, VIEW)
