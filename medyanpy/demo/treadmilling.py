"""Filaments that treadmill in a box with a finite pool of subunits, and one that pushes a membrane into a tube.

Where the plus end has another dissociation constant than the minus end, subunits flow through a filament. Each end
gains k_on C subunits in a second and loses k_off, whatever the length. So the number of free subunits has a Poisson
distribution about V Σk_off/Σk_on, exactly. Fluxes and affinities are sums over it. `medyanpy.demo.pushing` has the
filament that pushes.
"""

from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np

import medyanpy as mp
from medyanpy.demo.membrane import facts_of, size_of
from medyanpy.demo.pushing import LOOK as LOOK_AT_TUBE
from medyanpy.demo.pushing import MICROMOLES, STALL, Watch, build, compared
from medyanpy.demo.pushing import TIMESTEP as STEP
from medyanpy.demo.registry import Option, demo
from medyanpy.demo.report import TEMPERATURE, Demo, Line, Report, bound_line, energy_missing, not_measured, z_line

MICROMOLAR = mp.units.micromolar
#: On, 1/(µM s), and off, 1/s: T. D. Pollard, J. Cell Biol. 103, 2747 (1986).
ENDS = {"plus": (11.6, 1.4), "minus": (1.3, 0.8)}
RISE = 2.7  # nm
# In cells these are events of seconds; here all rates are faster, so that a millisecond sees as many. Numbers of
# molecules, forces and energies do not depend on that.
FASTER = 2e4
SIDE, LINKS, SUBUNITS = 1000.0, 4, 37  # nm: of the box; links of 100 nm.
ROOM = 24  # Links.
MASS, FRICTION, TIMESTEP = 5e-13, 3e-7, 1e-7  # pN s²/nm, pN s/nm, s.
BOX_STEPS, LOOK, SETTLE = 5000, 25, 0.2  # Steps in the box; between looks; share of steps before them.
FEWEST_STEPS = 5000
ROUNDING = 1e-9


@dataclass(frozen=True)
class Flow:
    """Averages over the number of free subunits, of each filament in a second: events, subunits that go through it, and
    the entropy produced, in kT; and that number, with the time of its fluctuations, s."""

    free: float
    memory: float
    events: float
    through: float
    entropy: float


def flow(volume: float, filaments: int) -> Flow:
    """Sum over the Poisson distribution of free subunits in a volume, nm³."""
    from scipy.special import gammaln

    on = np.array([rate for rate, _ in ENDS.values()]) / (MICROMOLAR * volume)  # 1/s for each molecule.
    off = np.array([rate for _, rate in ENDS.values()])
    mean = float(off.sum() / on.sum())
    free = np.arange(mean + 12.0 * np.sqrt(mean) + 20.0)
    weight = np.exp(free * np.log(mean) - mean - gammaln(free + 1.0))
    gained = on * free[:, None]
    # An event there takes one of the free; one back leaves one more.
    affinity = np.log(on / off * (free[:, None] + 1.0))
    entropy = float(weight[1:] @ (gained[1:] * affinity[:-1]).sum(axis=1) - weight @ (off * affinity).sum(axis=1))
    through = 0.5 * float((on[0] - on[1]) * mean - off[0] + off[1])
    return Flow(mean, 1.0 / (filaments * float(on.sum())), 2.0 * float(off.sum()), through, entropy)


def treadmilling(filaments: int, steps: int, seed: int, threads: int) -> list[Line]:
    """Run filaments in a box, and compare them with `flow`."""
    simulation, pool = _box(filaments, seed, threads)
    law = flow(SIDE**3, filaments)
    simulation.report_work = True
    simulation.step(round(SETTLE * steps))
    heard = simulation.context.events()
    start = simulation.context.get_state(energy=True)
    free, produced = [], [start.entropy_production]
    for _ in range(max(1, steps // LOOK)):
        simulation.step(LOOK)
        state = simulation.context.get_state(energy=True)
        free.append(state.pools[pool.name]["G-actin"])
        produced.append(state.entropy_production)
    seconds = FASTER * TIMESTEP * LOOK * len(free)
    gained = sum((1 if event.kind == "on" else -1) * (1 if event.jump == "plus" else -1) for event in heard.heard())
    entropy = np.diff(produced) * len(free) / (filaments * seconds)
    names = (("free subunits", ""), ("subunits through a filament", "1/s"), ("entropy produced by a filament", "kT/s"))
    wanted = (law.free, law.through, law.entropy)
    if steps < FEWEST_STEPS:
        lines = [
            not_measured(name, expected, unit, f"fewer than {FEWEST_STEPS} steps")
            for (name, unit), expected in zip(names, wanted, strict=True)
        ]
    else:
        # Poisson distributions have these errors.
        found = (
            (float(np.mean(free)), sqrt(2.0 * law.free * law.memory / seconds)),
            (0.5 * gained / (filaments * seconds), 0.5 * sqrt(law.events / (filaments * seconds))),
            (float(entropy.mean()), float(entropy.std()) / sqrt(len(entropy))),
        )
        lines = [
            z_line(name, *measured, expected, unit)
            for (name, unit), measured, expected in zip(names, found, wanted, strict=True)
        ]
    missing = energy_missing(start, state)
    return [*lines, bound_line("energy change without heat and work, relative", missing, ROUNDING)]


def _box(filaments: int, seed: int, threads: int) -> tuple[mp.Simulation, Any]:
    rng = np.random.default_rng(seed)
    along = rng.normal(size=(filaments, 3))
    along /= np.linalg.norm(along, axis=1)[:, None]
    steps = RISE * SUBUNITS * np.arange(LINKS + 1)[:, None]
    nodes = [x + steps * u for x, u in zip(rng.uniform(0.0, SIDE, (filaments, 3)), along, strict=True)]
    topology = mp.Topology()
    actin: Any = topology.add_filaments(nodes, MASS, FRICTION, rise=RISE, capacity_links=ROOM, name="actin")
    system = mp.System(topology, box=[SIDE] * 3)
    system.add_force(mp.forces.FilamentBending(actin, mp.presets.actin().bending_modulus))
    system.add_force(mp.forces.FixmanPotential(actin, temperature=TEMPERATURE))
    pool = system.add_pool(mp.Pool(volume=SIDE**3, counts={"G-actin": round(flow(SIDE**3, filaments).free)}))
    for end, (on, off) in ENDS.items():
        rates: Any = {"on_rate": FASTER * on / MICROMOLAR, "off_rate": FASTER * off}
        system.add_jump(mp.jumps.Polymerization(actin, pool["G-actin"], end=end, **rates, name=end))
    integrator = mp.SplittingIntegrator("JBAGOGABJ", TIMESTEP, temperature=TEMPERATURE, seed=seed)
    simulation = mp.Simulation(system, integrator, threads)
    simulation.context.set_velocities_to_temperature(kT=integrator.kT, seed=seed)
    return simulation, pool


@demo(
    "treadmilling",
    "filaments that grow and shrink in a box, and one that pushes a membrane into a tube",
    growing=Option(150, "filaments in the box", 10, 1000),
    steps=Option(30_000, "time steps of the one that pushes"),
)
def run_treadmilling_demo(report: Report, growing: int) -> Demo:
    system, mesh = build()
    report.begin(f"vesicle: {size_of(mesh)}")
    notes = [
        f"{growing} filaments in a box of 1 µm³ with a pool of actin, {FASTER:g} times as fast as in cells",
        f"one in the vesicle, at {MICROMOLES:g} µM; it would stall at {STALL:.2f} pN",
    ]
    report.note(*notes)
    lines = treadmilling(growing, min(BOX_STEPS, report.steps), report.seed, report.threads)
    watch = Watch(mesh)
    look = mp.reporters.Callback(LOOK_AT_TUBE, watch.look, include="positions")
    integrator = mp.SplittingIntegrator("JBAGOGABJ", STEP, temperature=TEMPERATURE, seed=report.seed)
    _, state = report.run(system, integrator, reporters=[look], view=(0.0, 0.0), opacity=0.5)
    more, facts = compared(watch, report.steps)
    if facts:
        report.say(
            f"growth    {facts['grown']:.0f} subunits; each brings {facts['chemical_energy_of_a_subunit']:.1f} pN nm, "
            f"and works {facts['work_of_a_subunit']:.1f} pN nm on the tube"
        )
    vesicle: Any = system.topology.handles[0]
    end = mp.TriangleMesh(state.positions[vesicle.beads], state.faces[vesicle.name])
    return report.finish(
        end, system.topology, [*lines, *more], mesh=facts_of(mesh, "vesicle"), notes=notes, growing=growing, **facts
    )
