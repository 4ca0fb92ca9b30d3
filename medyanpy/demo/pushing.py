"""Filament that grows against a vesicle, and pushes it into a tube.

A long tube of radius R = √(κ/2σ) pulls with 2π√(2κσ), whatever its length. Against a force F the filament grows by
k_on C exp(-F δ/kT) - k_off subunits in a second, where the membrane moves faster than it grows; no force enters its
rates. Chemistry is faster than in cells, so that this holds nearly.
"""

from math import log, pi, sqrt
from typing import Any

import numpy as np

import medyanpy as mp
from medyanpy.analysis.estimates import mean_of
from medyanpy.demo.report import KT, Line, not_measured, z_line

MICROMOLAR = mp.units.micromolar
RISE, ON, OFF, MICROMOLES = 2.7, 11.6, 1.4, 5.0  # nm; 1/(µM s), 1/s: actin's plus end (Pollard 1986); µM.
FASTER = 2e4  # Times the rates of cells.
BENDING_MODULUS, TUBE = 5.0 * KT, 30.0  # pN nm: a soft bilayer; nm, of the tube that the tension is chosen for.
TENSION = BENDING_MODULUS / (2.0 * TUBE**2)  # pN/nm.
FREQUENCY, EDGE, START = 8, 20.0, 18.6  # 642 vertices; nm: of edges where nothing pulls at them, and at the start.
SHORTEST, LONGEST, MIN_ANGLE, FLIPS = 0.67, 1.36, 0.3, 0.1  # Walls of edges, in units of EDGE; flips of each in a step.
VOLUME_MODULUS, SWOLLEN = 0.02, 0.02  # pN/nm², and by how much of the start the volume is to be larger.
FOOT, HELD = -0.6, 0.02  # Share of the radius below which vertices are held along z, and how stiffly, pN/nm.
MASS, FRICTION, TIMESTEP = 2e-12, 5e-9, 4e-8  # pN s²/nm, pN s/nm and s.
STIFFNESS, REACH, GUIDE = 3.0, 26.0, 2.0  # pN/nm and nm: of the filament's nodes on vertices; pN/nm: towards the axis.
SUBUNITS, MOST = 28, 400  # Of each of both links at the start, and of the last one.
LOOK, COUNT, FEWEST_STEPS = 40, 0.4, 20_000  # Steps between looks; share of steps until looks count.
WITHIN = 0.2
STALL = KT / RISE * log(MICROMOLES * ON / OFF)  # pN.


def build() -> tuple[mp.System, mp.TriangleMesh]:
    """Build the vesicle, and the filament in it that is fixed at one end."""
    mesh = mp.TriangleMesh.icosphere(1.0, frequency=FREQUENCY)
    mesh = mesh.scaled(START / float(mesh.edge_lengths.mean()))
    topology = mp.Topology()
    vesicle = topology.add_membrane(mesh, MASS, FRICTION, name="vesicle")
    top, radius = float(mesh.vertices[:, 2].max()) - EDGE, float(np.linalg.norm(mesh.vertices, axis=1).mean())
    heights = top - RISE * SUBUNITS * np.array([2.0, 1.0, 0.0])
    nodes = np.column_stack([np.zeros((3, 2)), heights])
    actin: Any = topology.add_filaments([nodes], MASS, FRICTION, rise=RISE, fixed_nodes=[0], name="actin")
    system = mp.System(topology)
    system.add_force(mp.forces.MembraneBending(vesicle, BENDING_MODULUS))
    system.add_force(mp.forces.MembraneTension(vesicle, TENSION))
    system.add_force(mp.forces.MembraneVolume(vesicle, VOLUME_MODULUS, (1.0 + SWOLLEN) * mesh.volume))
    system.add_force(mp.forces.MembraneTether(vesicle, 80.0 * KT, EDGE, l_min=SHORTEST, l_max=LONGEST))
    system.add_force(mp.forces.MembraneFoldRepulsion(vesicle, 20.0 * KT))
    foot = np.flatnonzero(mesh.vertices[:, 2] < FOOT * radius)
    system.add_force(mp.forces.HarmonicTrap(vesicle.beads[foot], [0.0, 0.0, HELD], mesh.vertices[foot], name="foot"))
    system.add_force(mp.forces.FilamentBending(actin, mp.presets.actin().bending_modulus))
    # Neighbours in a bundle keep a filament straight.
    system.add_force(mp.forces.ExternalField(actin, "0.5*k*(x^2 + y^2)", k=GUIDE, name="guide"))
    system.add_force(mp.forces.SoftSphere(actin, vesicle, STIFFNESS, REACH))
    system.add_jump(mp.jumps.EdgeFlips(vesicle, FLIPS / TIMESTEP, min_angle=MIN_ANGLE))
    pool = system.add_pool(mp.Pool(volume=1e9, concentrations={"G-actin": MICROMOLES * MICROMOLAR}))
    rates: Any = {"on_rate": FASTER * ON / MICROMOLAR, "off_rate": FASTER * OFF}
    system.add_jump(
        mp.jumps.Polymerization(actin, pool["G-actin"], **rates, subunits=(SUBUNITS // 2, MOST), name="growth")
    )
    return system, mesh


class Watch:
    """Force on the membrane (pN), subunits, pressure (pN/nm²), and of the body the area (nm²) and the integral of the
    mean curvature (nm), look by look."""

    def __init__(self, mesh: mp.TriangleMesh) -> None:
        self._volume = (1.0 + SWOLLEN) * mesh.volume
        self._radius = float(np.linalg.norm(mesh.vertices, axis=1).mean())
        self.rows: list[tuple[float, ...]] = []

    def look(self, simulation: mp.Simulation, state: mp.State) -> None:
        vesicle: Any = simulation.topology["vesicle"]
        actin: Any = simulation.topology["actin"]
        x, faces = state.positions[vesicle.beads], state.faces["vesicle"]
        apart = x - state.positions[actin.beads[-1]]
        length = np.linalg.norm(apart, axis=1)
        force = (STIFFNESS * np.maximum(REACH - length, 0.0) * apart[:, 2] / length).sum()
        now = mp.TriangleMesh(x, faces)
        body = np.abs(x[faces][:, :, 2].mean(axis=1)) < 0.4 * self._radius
        bent = (now.mean_curvatures[faces].mean(axis=1) * now.face_areas)[body].sum()
        pressure = -VOLUME_MODULUS * (now.volume / self._volume - 1.0)
        row = (force, actin.subunits(state)[0], pressure, now.face_areas[body].sum(), bent)
        self.rows.append(tuple(float(x) for x in row))


def compared(watch: Watch, steps: int) -> tuple[list[Line], dict[str, float]]:
    """Compare the force with that of a tube, and growth with what it allows."""
    names = (("force on the tube", "pN"), ("growth against it", "1/s"))
    if steps < FEWEST_STEPS:
        why = f"the tube is at rest after some {FEWEST_STEPS} steps: more --steps"
        return [not_measured(name, None, unit, why) for name, unit in names], {}
    all_of = np.array(watch.rows)
    force, subunits, pressure, area, bent = all_of[round(COUNT * len(all_of)) :].T
    tension = float(pressure.mean() * area.sum() / (2.0 * bent.sum()))  # Laplace: p = 2σH.
    found, expected = mean_of(force, warn=False), 2.0 * pi * sqrt(2.0 * BENDING_MODULUS * max(0.0, tension))
    seconds = FASTER * TIMESTEP * LOOK * (len(force) - 1)
    grown = float(subunits[-1] - subunits[0]) / seconds
    on = ON * MICROMOLES * float(np.exp(-found.value * RISE / KT))
    # Of whole numbers of events there and back, and of the force.
    error = sqrt((on + OFF) / seconds + (on * found.error * RISE / KT) ** 2)
    verdict = "OK" if abs(found.value - expected) < WITHIN * expected else "CHECK"
    lines = [
        Line(names[0][0], found.value, found.error, expected, "pN", f"within {100 * WITHIN:g} %", verdict),
        z_line(names[1][0], grown, error, on - OFF, "1/s"),
    ]
    facts = {
        "tension": tension, "force": found.value, "grown": float(all_of[-1, 1] - all_of[0, 1]),
        "chemical_energy_of_a_subunit": STALL * RISE, "work_of_a_subunit": found.value * RISE,
        "stall_force": STALL,
    }  # fmt: skip
    return lines, facts
