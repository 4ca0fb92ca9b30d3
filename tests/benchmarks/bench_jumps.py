"""Time of the letter J: what links that bind and let go cost beside the step of the filaments that they bind.

Run by hand: ``python tests/benchmarks/bench_jumps.py [--quick]``. A network of actin filaments with sites along them,
about 10^5 pairs of sites in reach and 10^4 links bound, moved by BAOAB with bending and constraints. Targets, on one
core: J takes at most 10 % of the step of the filaments at rates of cells (0.05 events a step), at most 40 % at rates
that give 41 events a step.

J is what a step takes more than that of the same filaments with as many links that stay. The three systems take turns
of a few steps, and processor time is measured: other programs on the machine disturb all three alike.
"""

import argparse
import time

import numpy as np

import medyanpy as mp

NODES, SPACING, KT = 40, 27.0, 4.14
#: Off rate and on rate, 1/s, and the share of the step of the filaments that J may take, %.
RATES = {"slow": (10.0, 100.0, 10.0), "fast": (1e4, 1e5, 40.0)}
REPEATS, TURNS, STEPS = 7, 12, 10


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


def turns(contexts: list[mp.Context], steps: int) -> np.ndarray:
    """Processor time of a step of each, ms, over many turns: pairs are listed every 50 steps."""
    out = np.zeros(len(contexts))
    for _ in range(TURNS):
        for k, context in enumerate(contexts):
            start = time.process_time()
            context.step(steps)
            out[k] += time.process_time() - start
    return 1e3 * out / (TURNS * steps)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    filaments, side = (100, 700.0) if given.quick else (2500, 3000.0)
    repeats, steps = (1, 1) if given.quick else (REPEATS, STEPS)
    bare = network(filaments, side, given.threads)
    bare.step(5)
    print(f"{filaments * NODES} nodes, {given.threads} thread(s), processor time")
    for label, (off, on, target) in RATES.items():
        context = network(filaments, side, given.threads, RATES["fast"][:2])
        binding, links = context.system["LinkBinding"], context.system["Links"]
        # To equilibrium first, as fast as it goes.
        context.step(20 if given.quick else 400)
        binding.set(off_rate=off, on_rate=on)
        bound = context.get_state(positions=True).links(links).bound[0]
        stay = network(filaments, side, given.threads, bound=bound)
        stay.set_state(context.get_state(positions=True, velocities=True))
        before, first = binding.counts, context.step_count
        times = np.array([turns([bare, stay, context], steps) for _ in range(repeats)])
        done = context.step_count - first
        tried, events = (np.array(binding.counts) - before) / done
        operation = context._schedule.jumping.operations[0]
        plain, static, j = np.median(times, axis=0)
        shares = 100.0 * (times[:, 2] - times[:, 1]) / times[:, 0]
        print(
            f"  {label} rates: {len(bound)} links, {operation.pairs_in_reach} pairs in reach, {tried:.2f} attempts and "
            f"{events:.2f} events a step: {plain:.2f} ms without links, {static:.2f} ms with links that stay, "
            f"{j:.2f} ms with J; J is {np.median(shares):.1f} % of the step of the filaments "
            f"({shares.min():.1f} to {shares.max():.1f}; at most {target:.0f})"
        )


if __name__ == "__main__":
    main()
