"""Time of the letter J: what links that bind and let go cost beside the step of the filaments that they bind.

Run by hand: ``python tests/benchmarks/bench_jumps.py [--quick]``. A network of actin filaments with sites along them,
about 10^5 pairs of sites in reach and 10^4 links bound, moved by BAOAB with bending and constraints. Bounds: 10 ms for
a step and core with 10^5 pairs, and J at most 15 % of the step of its filaments.
"""

import argparse
import functools
import time

import numpy as np

import medyanpy as mp

NODES, SPACING, KT = 40, 27.0, 4.14
REPEATS = 7


def network(filaments: int, side: float, jumps: bool, rates: tuple[float, float], threads: int) -> mp.Context:
    """Straight filaments in a cube, sites on every link; timestep 1e-7 s."""
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
    if jumps:
        which = np.repeat(np.arange(filaments), NODES - 1)
        sites = actin.sites(which, np.tile(np.arange(NODES - 1), filaments), 0.5)
        links = system.add_force(mp.forces.Links([], [], stiffness=0.3, length=30.0))
        off, on = rates
        system.add_jump(mp.jumps.LinkBinding(links, sites, off_rate=off, on_rate=on))
    word = "JBAOABJ" if jumps else "BAOAB"
    context = mp.Context(system, mp.SplittingIntegrator(word, 1e-7, kT=KT, seed=1), threads=threads)
    context.set_velocities_to_temperature(kT=KT, seed=2)
    return context


def seconds(action) -> float:
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    filaments, side = (100, 700.0) if given.quick else (2500, 3000.0)
    steps = 3 if given.quick else 10
    bare = network(filaments, side, False, (0, 0), given.threads)
    bare.step(5)
    step = seconds(lambda: bare.step(steps)) / steps
    print(f"{filaments * NODES} nodes, {given.threads} thread(s): a step without jumps {1e3 * step:.3f} ms")
    # Rates of cells, at which hardly a letter has an event; and so fast that each has hundreds.
    for label, off, on in (("slow", 10.0, 100.0), ("fast", 1e4, 1e5)):
        context = network(filaments, side, True, (1e4, 1e5), given.threads)
        binding, links = context.system["LinkBinding"], context.system["Links"]
        # To equilibrium first, as fast as it goes.
        context.step(20 if given.quick else 400)
        binding.set(off_rate=off, on_rate=on)
        context.step(5)
        before = binding.counts.accepted
        j = seconds(functools.partial(context.step, steps)) / steps
        events = (binding.counts.accepted - before) / (REPEATS * steps)
        operation = context._schedule.jumping.operations[0]
        bound = len(context.get_state(positions=True).links(links))
        print(
            f"  {label} rates: {bound} links, {operation.pairs_in_reach} pairs in reach, {events:.2f} events a step: "
            f"{1e3 * j:.3f} ms, {100.0 * (j / step - 1.0):.1f} % more"
        )


if __name__ == "__main__":
    main()
