"""Time of the letter J: what heads that hold places and walk cost beside the step of their filaments.

Run by hand: ``python tests/benchmarks/bench_heads.py [--quick]``. 10^4 filaments of 10 nodes, moved by BAOAB with
bending and constraints; lattices of 5.4 and 13.5 nm, whose places are the steps of motors; 5000 molecules hold two
places and some 4000 hold one, at rates of cells. Target, on one core: J takes at most 20 % of the step.

J is what a step takes more than that of the same filaments with as many links that stay, which takes turns with it.
"""

import argparse
import time

import numpy as np
from scipy.spatial import cKDTree

import medyanpy as mp

NODES, RISE, KT = 10, 27.0, 4.14
STIFFNESS, LENGTH = 0.3, 60.0
TURNS, STEPS = 12, 5


def filaments_in(n: int, side: float) -> tuple[mp.System, mp.beads.Filaments]:
    """Straight filaments in a cube, at random."""
    rng = np.random.default_rng(1)
    t = rng.normal(size=(n, 3))
    t /= np.linalg.norm(t, axis=1)[:, None]
    along = RISE * (np.arange(NODES) - 0.5 * (NODES - 1))
    nodes = rng.uniform(0.0, side, (n, 3))[:, None] + along[None, :, None] * t[:, None]
    topology = mp.Topology()
    actin = topology.add_filaments(list(nodes), node_mass=4e-12, node_friction=4e-6)
    system = mp.System(topology)
    system.add_force(mp.forces.FilamentBending(actin, 7e4))
    return system, actin


def context_of(system: mp.System, word: str) -> mp.Context:
    context = mp.Context(system, mp.SplittingIntegrator(word, 1e-7, kT=KT, seed=1), threads=1)
    context.set_velocities_to_temperature(kT=KT, seed=2)
    context.step(3)
    return context


def pairs_of(lattice: mp.beads.Lattice, x: np.ndarray, most: int) -> np.ndarray:
    """Pairs of places of two filaments about as far apart as links are long, each place once."""
    near = cKDTree(x).query_pairs(LENGTH + 4.0, output_type="ndarray")
    r = np.linalg.norm(x[near[:, 0]] - x[near[:, 1]], axis=1)
    near = near[(r > LENGTH - 4.0) & (lattice.filaments[near[:, 0]] != lattice.filaments[near[:, 1]])]
    used, out = set(), []
    for i, j in near.tolist():
        if len(out) < most and i not in used and j not in used:
            out.append((i, j))
            used |= {i, j}
    return np.array(out)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    n, side, molecules = (200, 1600.0, 100) if given.quick else (10_000, 6000.0, 5000)
    for spacing in (5.4, 13.5):
        system, actin = filaments_in(n, side)
        lattice = actin.lattice(spacing)
        x = lattice.positions(context_of(filaments_in(n, side)[0], "BAOAB").get_state(positions=True))
        both = pairs_of(lattice, x, molecules)
        system.add_force(mp.forces.Links(lattice[both[:, 0]], lattice[both[:, 1]], STIFFNESS, LENGTH))
        stay = context_of(system, "BAOAB")
        system, actin = filaments_in(n, side)
        lattice = actin.lattice(spacing)
        links = system.add_force(mp.forces.Links([], [], stiffness=STIFFNESS, length=LENGTH))
        pool = system.add_pool(mp.Pool(side**3, {"M": molecules}))
        alone = np.setdiff1d(np.random.default_rng(3).permutation(len(lattice))[: 4 * molecules // 5], both)
        bound = np.concatenate([both, np.column_stack([alone, np.full(len(alone), -1)])])
        motors = system.add_jump(mp.jumps.Motors(
            links, lattice, pool=pool["M"], dissociation_constants=1e-6, off_rate=1.0, step=spacing,
            unloaded_velocity=60.0, stall_force=1.0, bound=bound,
        ))  # fmt: skip
        walking, times = context_of(system, "JBAOABJ"), np.zeros(2)
        for _ in range(1 if given.quick else TURNS):
            for k, context in enumerate((stay, walking)):
                start = time.process_time()
                context.step(STEPS)
                times[k] += time.process_time() - start
        a, b = 1e3 * times / ((1 if given.quick else TURNS) * STEPS)
        print(
            f"{n * NODES} nodes, {len(lattice)} places of {spacing:g} nm, {len(both)} molecules at two and "
            f"{len(alone)} at one, {motors.counts.tried} attempts: {a:.2f} ms with links that stay, {b:.2f} ms with J: "
            f"{100.0 * (b / a - 1.0):.0f} % (at most 20)"
        )


if __name__ == "__main__":
    main()
