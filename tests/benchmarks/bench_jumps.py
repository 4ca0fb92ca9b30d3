"""Time of the letter J: what links that bind and let go cost beside the step of the filaments that they bind.

Run by hand: ``python tests/benchmarks/bench_jumps.py [--quick]``. A network of actin filaments with sites along them,
about 10^5 pairs of sites in reach and 10^4 links bound, moved by BAOAB with bending and constraints. Bounds: 10 ms for
a step and core with 10^5 pairs, and J at most 15 % of the step of its filaments.

J is what a step takes more than that of the same filaments with as many links that stay.
"""

import argparse
import time
from collections.abc import Callable

import numpy as np

import medyanpy as mp

NODES, SPACING, KT = 40, 27.0, 4.14
REPEATS = 5


def network(filaments: int, side: float, threads: int, rates: tuple[float, float] | None = None,
            bound: np.ndarray | None = None) -> mp.Context:  # fmt: skip
    """Straight filaments in a cube, sites on every link; timestep 1e-7 s. Links at these rates, or that stay."""
    rng = np.random.default_rng(1)
    t = rng.normal(size=(filaments, 3))
    t /= np.linalg.norm(t, axis=1)[:, None]
    middle = rng.uniform(0.0, side, (filaments, 3))
    along = SPACING * (np.arange(NODES) - 0.5 * (NODES - 1))
    nodes = middle[:, None] + along[None, :, None] * t[:, None]
    topology = mp.Topology()
    actin = topology.add_filaments(list(nodes), node_mass=4e-12, node_friction=4e-6)
    system = mp.System(topology)
    system.add_force(mp.forces.FilamentBending(actin, 7e4))
    if rates is not None or bound is not None:
        which = np.repeat(np.arange(filaments), NODES - 1)
        sites = actin.sites(which, np.tile(np.arange(NODES - 1), filaments), 0.5)
        ends = ([], []) if bound is None else (sites[bound[:, 0]], sites[bound[:, 1]])
        links = system.add_force(mp.forces.Links(*ends, stiffness=0.3, length=30.0))
        if rates is not None:
            system.add_jump(mp.jumps.LinkBinding(links, sites, off_rate=rates[0], on_rate=rates[1]))
    word = "BAOAB" if rates is None else "JBAOABJ"
    context = mp.Context(system, mp.SplittingIntegrator(word, 1e-7, kT=KT, seed=1), threads=threads)
    context.set_velocities_to_temperature(kT=KT, seed=2)
    return context


def seconds(step: Callable[[int], None], steps: int) -> float:
    start = time.perf_counter()
    step(steps)
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    filaments, side = (100, 700.0) if given.quick else (2500, 3000.0)
    # Pairs are listed every 40 steps: each repeat has its share.
    steps = 3 if given.quick else 120
    bare = network(filaments, side, given.threads)
    bare.step(5)
    step = np.median([seconds(bare.step, steps) / steps for _ in range(REPEATS)])
    print(f"{filaments * NODES} nodes, {given.threads} thread(s): a step without jumps {1e3 * step:.3f} ms")
    # Rates of cells, at which hardly a letter has an event; and so fast that each has hundreds.
    for label, off, on in (("slow", 10.0, 100.0), ("fast", 1e4, 1e5)):
        context = network(filaments, side, given.threads, (1e4, 1e5))
        binding, links = context.system["LinkBinding"], context.system["Links"]
        # To equilibrium first, as fast as it goes.
        context.step(20 if given.quick else 400)
        binding.set(off_rate=off, on_rate=on)
        bound = context.get_state(positions=True).links(links).bound[0]
        stay = network(filaments, side, given.threads, bound=bound)
        stay.set_state(context.get_state(positions=True, velocities=True))
        before, first = binding.counts.accepted, context.step_count
        times = [(seconds(stay.step, steps) / steps, seconds(context.step, steps) / steps) for _ in range(REPEATS)]
        events = (binding.counts.accepted - before) / (context.step_count - first)
        operation = context._schedule.jumping.operations[0]
        static, j = np.median(times, axis=0)
        print(
            f"  {label} rates: {len(bound)} links, {operation.pairs_in_reach} pairs in reach, {events:.2f} events a "
            f"step: with links that stay {1e3 * static:.3f} ms, with J {1e3 * j:.3f} ms, J is "
            f"{100.0 * np.median([(b - a) / step for a, b in times]):.1f} % of the step of the filaments"
        )


if __name__ == "__main__":
    main()
