"""Numbers of actin and of pools that are used up: stall forces, critical concentrations, laws of lengths.

Filaments that do not move grow here in the units of the package, at 300 K.
"""

import numpy as np
import pytest
from builders import STILL, look, straight
from scipy.special import gammaln

import medyanpy as mp
from medyanpy.testing import check_mean

RISE, KT = 2.7, 300.0 * mp.units.boltzmann
UNIT, MICROMOLAR = mp.units.per_micromolar_second, mp.units.micromolar
BARBED, POINTED = (11.6, 1.4), (1.3, 0.8)


def still(pools, ends, copies, loads=None, counts=(4000, 4000), timestep=0.5, subunits=(1, 10000)):
    """Filaments along z that do not move, in one handle for each pool, of which loads push plus ends back: (handles,
    simulation). `ends` are rates by end, /(µM s) and /s."""
    topology = mp.Topology()
    nodes = RISE * straight(*counts)
    handles = [topology.add_filaments([nodes] * copies, STILL, 1.0, rise=RISE) for _ in pools]
    system = mp.System(topology)
    for handle, pool in zip(handles, pools, strict=True):
        species = system.add_pool(pool)["G"]
        for end, (on, off) in ends.items():
            rates = {"end": end, "on_rate": on * UNIT, "off_rate": off, "subunits": subunits}
            system.add_jump(mp.jumps.Polymerization(handle, species, **rates))
    if loads is not None:
        last = np.concatenate([handle.beads[len(counts) :: len(nodes)] for handle in handles])
        system.add_force(mp.forces.UniformField(last, np.outer(np.ravel(loads), [0.0, 0.0, -1.0])))
    return handles, mp.Simulation(system, mp.BAGOGABIntegrator(timestep, kT=KT, seed=3), threads=1)


def reservoir(concentration):
    return mp.Pool(volume=1e9, concentrations={"G": concentration * MICROMOLAR})


def gained(handles, simulation, steps):
    """Subunits in a second that each filament has gained at its plus and at its minus end, (2, handles, copies)."""

    def ends():
        state = look(simulation)
        links = [handle.kind.subunits_of_links(state).reshape(len(handle.starts) - 1, -1) for handle in handles]
        return np.array([[own[:, k] for own in links] for k in (-1, 0)])

    before = ends()
    simulation.step(steps)
    return (ends() - before) / (steps * simulation.integrator.timestep)


def test_the_plus_end_of_actin_stalls():
    """At kT/δ ln(k_on C/k_off): 3.244, 5.713, 6.776 and 7.839 pN at 1, 5, 10 and 20 µM, on average it neither grows nor
    shrinks. It takes subunits e times less often with each 1.534 pN more."""
    concentrations, stalls, fold, half = (1.0, 5.0, 10.0, 20.0), (3.244, 5.713, 6.776, 7.839), 1.534, 120
    assert fold == pytest.approx(KT / RISE, abs=5e-4)
    loads = [np.repeat([stall, stall + fold], half) for stall in stalls]
    handles, simulation = still([*map(reservoir, concentrations)], {"plus": BARBED}, 2 * half, loads)
    for c, own in zip(concentrations, gained(handles, simulation, 80)[0], strict=True):
        check_mean(f"velocity at stall, {c:g} µM", own[:half], 0.0, sees=0.23)
        check_mean(f"velocity beyond, {c:g} µM", own[half:], 1.4 * (np.exp(-1.0) - 1.0), sees=0.2)


def test_where_actin_neither_grows_nor_shrinks():
    """The concentration at which its length stays is found at 0.17054 µM, and 0.57829 subunits a second go through."""
    low, high, critical, copies = 0.08, 0.3, 0.17054, 600
    ends = {"plus": BARBED, "minus": POINTED}
    handles, simulation = still([*map(reservoir, (low, critical, high))], ends, copies)
    plus, minus = gained(handles, simulation, 200)
    v = plus + minus
    check_mean("there", v[1], 0.0, sees=0.08)
    check_mean("through", 0.5 * (plus[1] - minus[1]), 0.57829, sees=0.04)
    # The straight line between the other two crosses 0 there: what its error is in the concentration.
    crossing = v[0] * (high - critical) + v[2] * (critical - low)
    slope = (v[2] - v[0]).mean()
    check_mean("where velocities cross 0", critical - crossing / slope, critical, sees=0.006)


def test_a_pool_finds_the_critical_concentration():
    """Two ends that differ use a pool up to 102.70 molecules in 1 µm³: a Poisson distribution, since subunits come at
    one rate and each goes at another. Both act one after the other in steps short beside 1/0.21 s."""
    ends = {"plus": BARBED, "minus": POINTED}
    _, simulation = still([mp.Pool(volume=1e9, counts={"G": 103})], ends, 10, counts=(9000, 900), timestep=0.25)
    mean = 2.2 / 12.9 * MICROMOLAR * 1e9
    assert mean == pytest.approx(102.70, abs=0.01)
    simulation.step(100)
    seen = []
    for _ in range(2500):
        simulation.step(12)
        seen.append(look(simulation).pools["G"])
    seen = np.array(seen, float)
    check_mean("molecules", seen, mean, sees=3.5, time_series=True)
    check_mean("their variance", (seen - mean) ** 2, mean, sees=40.0, time_series=True)


def test_balanced_ends_stand_still():
    """One K_D at both ends: at C = K_D over a million events neither length nor flux, and no heat of chemistry."""
    k_d = 1.4 / 11.6
    handles, simulation = still([reservoir(k_d)], {"plus": BARBED, "minus": (1.3, 1.3 * k_d)}, 2000, timestep=1.0)
    simulation.report_work = True
    (plus,), (minus,) = gained(handles, simulation, 330)
    assert sum(jump.counts.accepted for jump in simulation.system.jumps) > 1e6
    check_mean("length", plus + minus, 0.0, sees=0.02)
    check_mean("flux", 0.5 * (plus - minus), 0.0, sees=0.01)
    state = simulation.context.get_state(energy=True)
    assert (state.chemical_work, state.entropy_production) == (0.0, 0.0)


@pytest.mark.parametrize(("filaments", "total", "free"), [(1, 60, 20.0), (100, 700, 30.0)])
def test_lengths_in_a_pool_that_is_used_up(filaments, total, free):
    """All subunits n together have N!/(N - n)! z^n in as many ways as they can be divided; one filament of m has what
    this leaves to the others. z is 1 over the mean number of molecules that nothing would use up."""
    k_d = 0.5 * MICROMOLAR
    pool = mp.Pool(volume=free / k_d, counts={"G": total - 5 * filaments})
    ends = {"plus": (20.0, 10.0)}
    (handle,), simulation = still([pool], ends, filaments, counts=(5,), timestep=2.0)
    simulation.step(100)
    seen = []
    for _ in range(3000):
        simulation.step(1)
        state = look(simulation)
        own = handle.subunits(state)
        assert own.sum() + state.pools["G"] == total
        seen.append(own)
    seen = np.array(seen)
    n = np.arange(filaments, total + 1)
    logs = gammaln(total + 1) - gammaln(total - n + 1) - n * np.log(free)
    # In how many ways n are divided among all filaments, with 1 or more each, and among all but one of m.
    p = np.exp(logs + (log_ways := log_binomial(n - 1, filaments - 1)) - (logs + log_ways).max())
    p /= p.sum()
    check_shares("subunits in all", seen.sum(axis=1)[:, None], n, p)
    if filaments > 1:
        single = np.arange(1, 13)
        left, others = n[:, None] - single, filaments - 1
        ways = np.where(left >= others, log_binomial(np.maximum(left, others) - 1, others - 1), -np.inf)
        check_shares("subunits in one", seen, single, p @ np.exp(ways - log_ways[:, None]))


def log_binomial(n, k):
    return gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)


def check_shares(what, seen, numbers, expected):
    """Check the share of each number, of samples in time (m, k), where it is not rare."""
    for number, share in zip(numbers.tolist(), expected.tolist(), strict=True):
        if share > 0.03:
            own = (seen == number).mean(axis=1)
            check_mean(f"{number} {what}", own, share, sees=0.3 * share + 0.025, time_series=True)
