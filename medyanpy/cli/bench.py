"""``medyanpy bench``."""

import argparse
import json
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from medyanpy.cli.codes import DONE

if TYPE_CHECKING:
    from medyanpy.simulation import Simulation

__all__ = ["SYSTEMS", "add", "measure", "run"]

# Seconds that each measurement takes: one is not enough on a machine that does something else now and then.
_LONG, _QUICK = 2.0, 0.2
_REPEATS = 3


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> argparse.ArgumentParser:
    """Add the command and its options."""
    parser = commands.add_parser(
        "bench",
        help="measure steps per second of standard systems on this machine",
        description="Measures steps per second of four standard systems, on one thread and on all: "
        + "; ".join(f"{name}: {make.__doc__}" for name, make in SYSTEMS.items())
        + ". Of three measurements the fastest counts. Takes under a minute.",
    )
    parser.add_argument("--only", nargs="+", choices=list(SYSTEMS), metavar="NAME", help=", ".join(SYSTEMS))
    parser.add_argument("--threads", type=int, metavar="N", help="default: as many as the machine offers")
    parser.add_argument("--quick", action="store_true", help="a tenth of the time, and less to be trusted")
    parser.add_argument("--json", action="store_true", help="for programs")
    return parser


def run(options: argparse.Namespace) -> int:
    """Run the command; return the exit code."""
    from medyanpy._tools.info import information
    from medyanpy._tools.threads import choose_threads

    most = choose_threads(options.threads)
    found = []
    if not options.json:
        print(f"{'':<10}{'beads':>8}{'threads':>9}{'steps/s':>10}{'ns per step and bead':>22}", flush=True)
    for name in options.only or SYSTEMS:
        for threads in sorted({1, most}):
            row = measure(name, threads, _QUICK if options.quick else _LONG)
            found.append(row)
            if not options.json:
                speed, each = f"{row['steps_per_second']:.4g}", f"{row['ns_per_step_and_bead']:.3g}"
                print(f"{name:<10}{row['beads']:>8}{threads:>9}{speed:>10}{each:>22}", flush=True)
    if options.json:
        print(json.dumps({"machine": information(), "results": found}, indent=2))
    return DONE


def measure(name: str, threads: int, seconds: float) -> dict[str, Any]:
    """Measure steps per second of a standard system; the fastest of a few measurements of so many seconds in all."""
    simulation = SYSTEMS[name](threads)
    steps = 1
    # Also lists of neighbours are there before it counts.
    while (took := _timed(simulation, steps)) <= 0.2 * seconds / _REPEATS:
        steps *= 2
    steps = max(1, int(steps * seconds / _REPEATS / took))
    fastest = max(steps / _timed(simulation, steps) for _ in range(_REPEATS))
    beads = simulation.topology.n_beads
    each = 1e9 / fastest / beads
    return {
        "system": name, "beads": beads, "threads": threads, "steps_per_second": fastest, "ns_per_step_and_bead": each
    }  # fmt: skip


def _timed(simulation: "Simulation", steps: int) -> float:
    begin = time.perf_counter()
    simulation.context.step(steps)
    return time.perf_counter() - begin


def _membrane(threads: int) -> "Simulation":
    """the red blood cell of `medyanpy demo`, 4842 vertices, with 2000 proteins that move in it (BAGOGAB)"""
    import medyanpy as mp
    from medyanpy.demo import points

    system, _ = points._build(points._load(None)[0], 2000, 1)
    integrator = mp.BAGOGABIntegrator(points.TIMESTEP, temperature=300.0, seed=1)
    return _warm(mp.Simulation(system, integrator, threads))


def _filaments(threads: int) -> "Simulation":
    """300 actin filaments of 20 nodes, links of constant length (BAOAB)"""
    import numpy as np

    import medyanpy as mp

    actin = mp.presets.actin()
    topology, rng = mp.Topology(), np.random.default_rng(1)
    n, nodes, link = 300, 20, 27.0
    starts = rng.uniform(-800.0, 800.0, (n, 1, 3))
    along = rng.normal(size=(n, 1, 3))
    along /= np.linalg.norm(along, axis=2, keepdims=True)
    x = starts + link * np.arange(nodes)[:, None] * along
    filaments = topology.add_filaments(
        x.reshape(-1, 3), starts=nodes * np.arange(n + 1), node_mass=4e-12, node_friction=4e-6
    )
    system = mp.System(topology)
    system.add_force(mp.forces.FilamentBending(filaments, actin.bending_modulus))
    return _warm(mp.Simulation(system, mp.SplittingIntegrator("BAOAB", 5e-8, temperature=300.0, seed=1), threads))


def _fluid(threads: int) -> "Simulation":
    """8000 beads that repel each other, WCA at a density of 0.7 (BAOAB)"""
    import numpy as np

    import medyanpy as mp

    topology = mp.Topology()
    side, spacing = 20, 0.7 ** (-1.0 / 3.0)
    x = spacing * np.stack(np.unravel_index(np.arange(side**3), (side,) * 3), 1)
    beads = topology.add_beads(x - x.mean(axis=0), mass=1.0, friction=1.0)
    system = mp.System(topology)
    system.add_force(mp.forces.WCA(beads, beads, 1.0, 1.0))
    system.add_force(mp.forces.HarmonicTrap(beads, 0.05, [0.0, 0.0, 0.0]))
    return _warm(mp.Simulation(system, mp.SplittingIntegrator("BAOAB", 2e-3, kT=1.0, seed=1), threads))


def _bodies(threads: int) -> "Simulation":
    """4000 rigid bodies in a trap (BAOAB)"""
    import numpy as np

    import medyanpy as mp

    topology, rng = mp.Topology(), np.random.default_rng(1)
    n = 4000
    q = rng.normal(size=(n, 4))
    q /= np.linalg.norm(q, axis=1, keepdims=True)
    bodies = topology.add_rigid_bodies(rng.normal(0.0, 5.0, (n, 3)), q, 1.0, (1.0, 2.0, 2.5), friction=0.5)
    system = mp.System(topology)
    system.add_force(mp.forces.HarmonicTrap(bodies, 0.05, [0.0, 0.0, 0.0]))
    return _warm(mp.Simulation(system, mp.SplittingIntegrator("BAOAB", 1e-2, kT=1.0, seed=1), threads))


def _warm(simulation: "Simulation") -> "Simulation":
    """Draw the velocities of a simulation at the temperature of its thermostat."""
    simulation.context.set_velocities_to_temperature(kT=simulation.integrator.kT, seed=2)
    return simulation


SYSTEMS: dict[str, Callable[[int], "Simulation"]] = {
    "membrane": _membrane, "filaments": _filaments, "fluid": _fluid, "bodies": _bodies,
}  # fmt: skip
