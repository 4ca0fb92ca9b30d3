"""100 filaments in solution that crosslinkers tie in pairs, against the master equation of the numbers of molecules.

Each filament has one place. It diffuses far in the time of an event, so that all pairs are equal, and loops there are
none: then the numbers of molecules that hold by one head or by both are a Markov chain. Its law at rest is exact at any
density, and written down here; in time it is sampled by Gillespie's method.
"""

import math

import numpy as np
import pytest

import medyanpy as mp
from medyanpy.testing import check_mean, check_same_mean

KT = 4.0
FILAMENTS, MOLECULES, SIDE = 100, 60, 400.0
VOLUME = SIDE**3
#: Of the places for the first head and the second, 1/nm³, and 1/s.
CONSTANTS, OFF = (2e-7, 4e-7), (3.0, 2.0)


def solution(seed):
    topology = mp.Topology()
    rng = np.random.default_rng(seed)
    ends = rng.uniform(0.0, SIDE, (FILAMENTS, 1, 3)) + np.array([[0.0, 0.0, 0.0], [10.0, 0.0, 0.0]])
    filaments = topology.add_filaments(ends, 1.0, KT / 1e6, constrained=False, name="filaments")
    system = mp.System(topology, box=[SIDE] * 3)
    system.add_force(mp.forces.FilamentStretching(filaments, 0.5))
    links = system.add_force(mp.forces.Links([], [], stiffness=0.05, length=0.0))
    pool = system.add_pool(mp.Pool(volume=VOLUME, counts={"X": MOLECULES}))
    places = filaments.sites(np.arange(FILAMENTS), 0, 0.5)
    system.add_jump(mp.jumps.CrosslinkerBinding(
        links, places, pool=pool["X"], dissociation_constants=CONSTANTS, off_rates=OFF, load_sharing=0.0,
        name="linkers"))  # fmt: skip
    return mp.Simulation(system, mp.BrownianIntegrator(2e-5, kT=KT, seed=seed), threads=1)


def numbers(simulation):
    """Molecules that hold by the first head alone, by the second alone, and by both."""
    rows = simulation.context.get_state(positions=True).jumps["linkers"]["links"] >= 0
    return [np.count_nonzero(rows[:, 0] & ~rows[:, 1]), np.count_nonzero(~rows[:, 0] & rows[:, 1]),
            np.count_nonzero(rows.all(axis=1))]  # fmt: skip


def at_rest():
    """Means of these numbers, of all weights."""
    total, means = 0.0, np.zeros(3)
    logs = {}
    for one in range(MOLECULES + 1):
        for other in range(MOLECULES + 1 - one):
            for both in range(MOLECULES + 1 - one - other):
                places = FILAMENTS - one - other - 2 * both
                if places < 0:
                    continue
                free = MOLECULES - one - other - both
                counts = -sum(map(math.lgamma, (free + 1, places + 1, one + 1, other + 1, both + 1)))
                held = np.array([one + both, other + both]) @ np.log(VOLUME * np.array(CONSTANTS))
                logs[one, other, both] = counts - held
    most = max(logs.values())
    for state, log in logs.items():
        weight = math.exp(log - most)
        total += weight
        means += weight * np.array(state)
    return means / total


def gillespie(times, runs, seed=5):
    """The same numbers at times, (runs, times, 3)."""
    rng = np.random.default_rng(seed)
    on = np.array(OFF) / np.array(CONSTANTS) / VOLUME
    # From nothing to each head; from one head, by the other; and back.
    steps = [(1, 0, 0), (0, 1, 0), (-1, 0, 1), (0, -1, 1), (-1, 0, 0), (0, -1, 0), (1, 0, -1), (0, 1, -1)]
    out = np.zeros((runs, len(times), 3))
    for run in range(runs):
        t, n, k = 0.0, [0, 0, 0], 0
        while k < len(times):
            one, other, both = n
            places, free = FILAMENTS - one - other - 2 * both, MOLECULES - one - other - both
            rates = [on[0] * free * places, on[1] * free * places, on[1] * one * places, on[0] * other * places,
                     OFF[0] * one, OFF[1] * other, OFF[1] * both, OFF[0] * both]  # fmt: skip
            t += rng.exponential(1.0 / sum(rates))
            while k < len(times) and times[k] < t:
                out[run, k] = n
                k += 1
            n = np.add(n, steps[rng.choice(8, p=np.divide(rates, sum(rates)))]).tolist()
    return out


@pytest.mark.long
def test_filaments_are_tied_in_the_course_of_time_and_at_rest_as_the_master_equation_says():
    # The last is at rest, to 1 %.
    times, found = (0.05, 0.2, 1.2), []
    for seed in range(24):
        simulation = solution(seed)
        found.append([])
        for before, time in zip((0.0, *times), times, strict=False):
            simulation.step(round((time - before) / 2e-5))
            found[-1].append(numbers(simulation))
    wanted, rest = gillespie(times[:2], 150), at_rest()
    for what, sums in (("by one head", [1, 1, 0]), ("by both heads", [0, 0, 1])):
        own, law = np.array(found, float) @ sums, rest @ sums
        for k, time in enumerate(times[:2]):
            other = wanted[:, k] @ sums
            check_same_mean(f"held {what} after {time} s", own[:, k], other, sees=0.2 * other.mean() + 3.5)
        check_mean(f"held {what} at rest", own[:, 2], law, sees=0.2 * law + 3.5)
