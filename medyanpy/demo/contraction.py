"""Actin network that contracts: motors walk on filaments that crosslinkers hold together, and pull plus ends together.

α-Actinin and minifilaments of myosin come from a pool, and hold filaments by two heads each (docs/theory/motors.md).
Rates are ten thousand times those of cells, and velocities too, so that a millisecond sees ten seconds of a cell. What
balances, stalls and costs energy does not depend on that. Without motors the network does not contract; nor
does a much denser one with them.
"""

from pathlib import Path
from typing import Any

import numpy as np

import medyanpy as mp
from medyanpy.demo.pictures import draw_contraction
from medyanpy.demo.registry import Option, demo
from medyanpy.demo.report import (
    KT,
    TEMPERATURE,
    Demo,
    Line,
    Report,
    bound_line,
    energy_missing,
    not_measured,
    sampling_interval,
)
from medyanpy.demo.vesicle import ACTIN, N_LINKS, link_error

RADIUS = 350.0  # nm, of the ball that the middles of filaments are in.
# A cytoplasm three times more viscous than water; s, in which nodes forget velocities; s.
VISCOSITY, RELAXATION, TIMESTEP = 3.0 * mp.presets.WATER, 2e-5, 2e-7
FASTER = 1e4
# pN/nm and nm; 1/nm³ and 1/s; nm between places.
LINKERS, LINKER_STIFFNESS, LINKER_LENGTH, LINKER_K, LINKER_OFF, LINKER_SPACING = 500, 2.0, 35.0, 1.0, 0.3, 27.0
# Heads at each end; pN/nm and nm; nm, nm/s and pN; µM and 1/s.
MOTORS, HEADS, MOTOR_STIFFNESS, MOTOR_LENGTH = 100, 10, 1.0, 175.0
STEP, VELOCITY, STALL, MOTOR_K, MOTOR_ON, MOTOR_OFF = 5.4, 120.0, 2.0, 0.3, 0.2, 0.2
ATP = 20.0  # kT.
TABLE = "contraction.csv"
FEWEST_STEPS, SMALLER, ROUNDING = 5000, 0.97, 1e-9
MICROMOLAR = mp.units.micromolar


class Watch:
    """Radius of gyration (nm), molecules, links, and what motors use up and give, look by look; and times (s)."""

    def __init__(self, actin: Any) -> None:
        self._actin = actin
        self.rows: list[tuple[float, ...]] = []
        self.times: list[float] = []
        self.errors: list[float] = []
        self._start: mp.State | None = None
        self.missing = 0.0

    def look(self, simulation: mp.Simulation, state: mp.State) -> None:
        x = state.positions[self._actin.beads]
        self.errors.append(link_error(self._actin, state))
        if not simulation.report_work:
            simulation.report_work = True
            self._start = simulation.context.get_state(energy=True)
            state = simulation.context.get_state(positions=True, energy=True)
        assert self._start is not None
        self.missing = energy_missing(self._start, state)
        held = [(np.asarray(state.jumps[name]["links"]) >= 0).sum(axis=1) for name in ("crosslinkers", "motors")]
        molecules = [state.pools[name] + len(one) for name, one in zip(_SPECIES, held, strict=True)]
        gyration = float(np.sqrt(((x - x.mean(axis=0)) ** 2).sum(axis=1).mean()))
        self.times.append(state.time)
        self.rows.append((
            gyration, *molecules, *(int((one == 2).sum()) for one in held), state.heat - self._start.heat,
            state.chemical_work - self._start.chemical_work, KT * state.entropy_production,
        ))  # fmt: skip


    def write(self, path: Path) -> None:
        """Write what `draw_contraction` draws as a table."""
        _, columns = self.curves()
        rows = np.column_stack([self.times, *columns.values()])
        lines = [",".join(f"{value:.9g}" for value in row) for row in rows]
        path.write_text("\n".join([",".join(["time (s)", *columns]), *lines]) + "\n", encoding="utf-8")

    def curves(self) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Return times (s), and by what and its unit the radius of gyration, and the heat and the ATP so far."""
        gyration, *_, heat, _, driven = np.array(self.rows).reshape(len(self.times), -1).T
        names = ("radius of gyration (nm)", "heat (pN nm)", "ATP (pN nm)")
        return np.array(self.times), dict(zip(names, (gyration, 0.0 - heat, driven), strict=True))


_SPECIES = ("alpha-actinin", "minifilaments")


@demo(
    "contraction",
    "an actin network that contracts, since motors walk on filaments that crosslinkers hold",
    network=Option(120, "filaments of the network", 10, 300),
    steps=Option(6_000, "time steps"),
    more_outputs=[TABLE],
)
def run_contraction_demo(report: Report, network: int) -> Demo:
    system, actin, myosin = build(network, report.seed)
    length = N_LINKS * ACTIN.link_length
    report.begin(f"{network} filaments of {length:.0f} nm, their middles in a ball of {2 * RADIUS:g} nm", "network")
    notes = [
        f"{LINKERS} crosslinkers of {LINKER_LENGTH:g} nm, {MOTORS} motors of {MOTOR_LENGTH:g} nm with {HEADS} heads at "
        "each end",
        f"heads walk {VELOCITY:g} nm/s and stall at {STALL:g} pN; rates and velocities are {FASTER:g} times as fast",
    ]
    report.note(*notes)
    watch = Watch(actin)
    interval = 10 * sampling_interval(report.steps)
    look = mp.reporters.Callback(interval, watch.look, include=("positions", "energy"))
    integrator = mp.SplittingIntegrator("JBAGOGABJ", TIMESTEP, temperature=TEMPERATURE, seed=report.seed)
    temperatures, state = report.run(
        system, integrator, reporters=[look],
        drawn_by=lambda simulation, path, **_: draw_contraction(simulation, path, *watch.curves()),
    )  # fmt: skip
    watch.write(report.out / TABLE)
    lines, facts = compared(watch, report.steps)
    tensions = myosin.tensions(state)
    report.say(
        f"motors    {facts['walking']} of {MOTORS} between two filaments, which they pull or push with "
        f"{np.abs(tensions).mean() if len(tensions) else 0.0:.1f} pN"
    )
    warm = temperatures["actin"].measured
    report.say(
        f"energy    {facts['ATP']:.3g} pN nm of ATP; {facts['work']:.3g} of it went into links, of which "
        f"{facts['heat']:.3g} became heat as the network yielded"
    )
    if warm is not None:
        # So fast they give more than friction takes at once.
        report.note(f"filaments are at {warm:.0f} K: motors warm them")
    return report.finish(
        None, system.topology, lines, notes=notes, network=network, filament_temperature=warm, **facts
    )  # fmt: skip


def compared(watch: Watch, steps: int) -> tuple[list[Line], dict[str, Any]]:
    """Compare what was seen with what must be: molecules are counted, energies add up, and the network is smaller."""
    gyration, linkers, motors, both, walking, heat, work, driven = np.array(watch.rows).T
    shrunk = float(gyration[-max(1, len(gyration) // 20) :].mean() / gyration[0])
    name = "radius of gyration, end over start"
    lost = float(np.abs(linkers - LINKERS).max() + np.abs(motors - MOTORS).max())
    lines = [
        bound_line(name, shrunk, SMALLER) if steps >= FEWEST_STEPS
        else not_measured(name, None, "", f"fewer than {FEWEST_STEPS} steps"),
        Line("molecules lost", lost, None, 0.0, "", "none", "OK" if lost == 0.0 else "CHECK"),
        bound_line("largest error of filament links, relative", max(watch.errors), ROUNDING),
        bound_line("energy change without heat and work, relative", watch.missing, ROUNDING),
    ]  # fmt: skip
    facts = {
        "radius_of_gyration": [float(gyration[0]), float(gyration[-1])], "crosslinks": int(both[-1]),
        "walking": int(walking[-1]), "ATP": float(driven[-1]), "work": float(work[-1]),
        "heat": float(-heat[-1]),
    }  # fmt: skip
    return lines, facts


def build(
    filaments: int, seed: int, linkers: int = LINKERS, motors: int = MOTORS
) -> tuple[mp.System, Any, Any]:
    """Build the network with so many molecules in its pool: (system, filaments, links of motors)."""
    rng = np.random.default_rng(seed)
    along = rng.normal(size=(filaments, 3))
    along /= np.linalg.norm(along, axis=1)[:, None]
    middles = rng.normal(size=(filaments, 3))
    middles *= RADIUS * (rng.random(filaments) ** (1.0 / 3.0) / np.linalg.norm(middles, axis=1))[:, None]
    steps = ACTIN.link_length * (np.arange(N_LINKS + 1.0) - 0.5 * N_LINKS)[:, None]
    nodes = [middle + steps * u for middle, u in zip(middles, along, strict=True)]
    topology = mp.Topology()
    arguments = ACTIN.arguments(nodes, viscosity=VISCOSITY, relaxation_time=RELAXATION)
    actin: Any = topology.add_filaments(**arguments, name="actin")
    system = mp.System(topology)
    system.add_force(mp.forces.FilamentBending(actin, ACTIN.bending_modulus))
    system.add_force(mp.forces.FixmanPotential(actin, temperature=TEMPERATURE))
    volume = 4.0 / 3.0 * np.pi * RADIUS**3
    pool = system.add_pool(mp.Pool(volume=volume, counts=dict(zip(_SPECIES, (linkers, motors), strict=True))))
    short = system.add_force(mp.forces.Links([], [], LINKER_STIFFNESS, LINKER_LENGTH, name="crosslinks"))
    long = system.add_force(mp.forces.Links([], [], MOTOR_STIFFNESS, MOTOR_LENGTH, name="myosin"))
    system.add_jump(mp.jumps.CrosslinkerBinding(
        short, actin.lattice(spacing=LINKER_SPACING), pool=pool[_SPECIES[0]], off_rates=FASTER * LINKER_OFF,
        dissociation_constants=LINKER_K * MICROMOLAR, name="crosslinkers",
    ))  # fmt: skip
    system.add_jump(mp.jumps.Motors(
        long, actin.lattice(spacing=STEP), pool=pool[_SPECIES[1]], heads=HEADS, step=STEP,
        unloaded_velocity=FASTER * VELOCITY, stall_force=STALL, on_rate=FASTER * MOTOR_ON, off_rate=FASTER * MOTOR_OFF,
        dissociation_constants=MOTOR_K * MICROMOLAR, atp=ATP * KT, name="motors",
    ))  # fmt: skip
    return system, actin, long
