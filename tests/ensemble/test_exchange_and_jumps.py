"""Replica exchange of systems with jumps: a swap compares all that the target distribution weighs states by."""

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from builders import system_with
from scipy import integrate

import medyanpy as mp
from medyanpy import forces, jumps
from medyanpy.ensemble import exchange
from medyanpy.errors import ParameterError, SimulationError
from medyanpy.testing import check_mean

KT, STIFFNESS, LENGTH, DISTANCE = 1.3, 1.0, 10.0, 10.2
PAIRS, BEADS, SIDE = 6, 6, 9.0
SHEETS = 2
PENTAGON = np.array([[10.0, 0, 0], [3.0, 9.5, 6.0], [-8.0, 6.0, -4.0], [-8.0, -6.0, 7.0], [3.0, -9.5, 0.0]])


def simulation_of(topology, system, seed, timestep=20.0):
    """Beads that stay where they are: what is exchanged is what jumps change, which act in every second step, and for
    so long that nothing is left of what was before."""
    return mp.Simulation(system, mp.BrownianIntegrator(timestep, kT=KT, seed=seed), threads=1)


# Systems whose laws are known. Each is made by numbers of its jump ---------------------------------------------------


def pairs(seed=1, pool=None, **numbers):
    """Sites that stay, each with one that it may be bound to."""
    topology = mp.Topology()
    topology.add_beads([[-1e6, 0.0, 0.0]], mass=1.0, friction=1e30)
    system = mp.System(topology)
    links = system.add_force(forces.Links([], [], stiffness=STIFFNESS, length=LENGTH, name="links"))
    a = 1000.0 * np.arange(PAIRS)[:, None] * [0.0, 1.0, 0.0]
    sides = mp.Sites.anchors(a), mp.Sites.anchors(a + [DISTANCE, 0.0, 0.0])
    system.add_jump(jumps.LinkBinding(links, *sides, pool=pool, every=2, name="jump", **({"off_rate": 1.0} | numbers)))
    return simulation_of(topology, system, seed)


def bound(simulation):
    return len(simulation.context.get_state(positions=True).jumps["jump"]["links"]) / PAIRS


def share_bound(kT=KT, pool=None, off_rate=1.0, on_rate=None, dissociation_constant=None, stiffness=STIFFNESS):
    """The mean over all numbers of links: w^n each, and N!/[(N-n)! N^n] of a pool of N."""
    if on_rate is None:
        volume, _ = integrate.quad(lambda r: 4.0 * np.pi * r**2 * np.exp(-0.5 * stiffness * (r - LENGTH) ** 2 / kT),
                                   0.0, 40.0, points=[LENGTH])  # fmt: skip
        on_rate = off_rate / (dissociation_constant * volume)
    w = on_rate / off_rate * np.exp(-0.5 * stiffness * (DISTANCE - LENGTH) ** 2 / kT)
    n = np.arange(PAIRS + 1 if pool is None else min(PAIRS, pool) + 1)
    weights = np.array([math.comb(PAIRS, k) * w**k for k in n])
    if pool is not None:
        weights *= [math.perm(pool, k) / pool**k for k in n]
    return float(weights @ n / weights.sum() / PAIRS)


def box_of(seed=1, **numbers):
    """Ideal beads: the volume, or area, is Gamma distributed."""
    topology = mp.Topology()
    places = np.random.default_rng(seed).uniform(0.0, SIDE, (BEADS, 3))
    topology.add_beads(places, mass=1.0, friction=1e30)
    system = mp.System(topology, box=(SIDE,) * 3)
    system.add_jump(jumps.BoxArea(rate=6.0, step=0.9, every=2, name="jump", **numbers))
    return simulation_of(topology, system, seed)


def volume(simulation):
    return float(np.prod(simulation.context.get_state().box))


def area(simulation):
    return float(np.prod(simulation.context.get_state().box[:2]))


def pentagon(seed=1, tension=0.03, rate=2.0):
    """Pentagons that stay, apart: each has five triangulations."""
    topology = mp.Topology()
    apart = np.arange(SHEETS)[:, None, None]
    x, faces = PENTAGON + 1000.0 * apart * [1.0, 0.0, 0.0], [[0, 1, 2], [0, 2, 3], [0, 3, 4]] + 5 * apart
    mesh = mp.TriangleMesh(x.reshape(-1, 3), faces.reshape(-1, 3))
    sheet = topology.add_membrane(mesh, vertex_mass=1.0, vertex_friction=1e30, name="sheet")
    system = system_with(topology, forces.MembraneTension(sheet, tension, name="tension"))
    system.add_jump(jumps.EdgeFlips(sheet, rate, every=2, name="jump"))
    return simulation_of(topology, system, seed)


def area_of_sheet(simulation):
    faces = simulation.context.get_state(positions=True).faces["sheet"]
    a, b, c = PENTAGON[faces % 5].transpose(1, 0, 2)
    return float(0.5 * np.linalg.norm(np.cross(b - a, c - a), axis=1).sum())


def mean_area(kT=KT, tension=0.03):
    """Over the five of each: all fans, from one corner."""
    fans = [[[k, (k + i) % 5, (k + i + 1) % 5] for i in (1, 2, 3)] for k in range(5)]
    a, b, c = PENTAGON[np.array(fans)].transpose(2, 0, 1, 3)
    areas = 0.5 * np.linalg.norm(np.cross(b - a, c - a), axis=2).sum(axis=1)
    weights = np.exp(-tension * (areas - areas.min()) / kT)
    return float(SHEETS * (weights @ areas) / weights.sum())


@dataclass
class Law:
    """A ladder, and what the mean of something is in each state."""

    make: Any
    numbers: dict
    ladder: list
    observed: Any
    expected: Any
    #: Of the expected values, what the test finds.
    sees: float
    n: int = 500


def gamma(measure):
    """<V> = (N + 1) kT / P, and <A> = (N + 1) kT / |τ|."""
    return lambda kT=KT, **numbers: (BEADS + 1) * kT / abs(numbers[measure])


LAWS = {
    "temperature, pressure": Law(
        box_of, {"pressure": 0.01}, [{"kT": 1.0}, {"kT": 2.0}], volume, gamma("pressure"), 0.27
    ),
    "tension": Law(
        box_of, {"tension": -0.1}, [{"jump.tension": -0.1}, {"jump.tension": -0.2}], area, gamma("tension"), 0.27
    ),
    "on_rate, a pool": Law(
        pairs, {"on_rate": 1.0, "pool": 4}, [{"jump.on_rate": 0.5}, {"jump.on_rate": 3.0}], bound, share_bound, 0.5, 300
    ),
    "off_rate": Law(
        pairs, {"on_rate": 1.0}, [{"jump.off_rate": 0.4}, {"jump.off_rate": 2.0}], bound, share_bound, 0.5, 300
    ),
    "temperature, dissociation_constant": Law(
        pairs, {"dissociation_constant": 2e-4}, [{"kT": 0.2}, {"kT": 9.0}], bound, share_bound, 0.5, 300
    ),
    "temperature, triangulations": Law(
        pentagon, {"tension": 0.3}, [{"kT": 1.0}, {"kT": 9.0}], area_of_sheet, mean_area, 0.004
    ),
}


def run_of(law, n=None, **options):
    def make(seed):
        return law.make(seed, **law.numbers)

    return mp.ensemble.replica_exchange(make, ladder=law.ladder, every=1, n_exchanges=n or law.n, seed=3,
                                        executor=ThreadPoolExecutor(1), observe=law.observed, progress=False,
                                        **options)  # fmt: skip


def expected(law, state):
    own = {name.removeprefix("jump."): value for name, value in state.items()}
    return law.expected(**(law.numbers | own))


@pytest.mark.slow
@pytest.mark.parametrize("name", LAWS)
def test_every_state_keeps_its_law(name):
    """Jumps act in every second step: at every second exchange walkers are as the one before has left them, which is as
    the law has it, and independent of those before."""
    law = LAWS[name]
    swaps = run_of(law)
    seen = np.array(swaps.observed, float)[1::2]
    assert 0.05 < swaps.acceptance[0] < 0.99
    for k, state in enumerate(law.ladder):
        value = expected(law, state)
        check_mean(f"{name}, {state}", seen[:, k], value, sees=law.sees * value)


# What a swap compares ------------------------------------------------------------------------------------------------


def log_volume(kT, stiffness=STIFFNESS):
    volume, _ = integrate.quad(lambda r: 4.0 * np.pi * r**2 * np.exp(-0.5 * stiffness * (r - LENGTH) ** 2 / kT), 0.0,
                               40.0, points=[LENGTH])  # fmt: skip
    return np.log(volume)


def of_links(n, kT, off_rate=1.0, on_rate=None, dissociation_constant=None, stiffness=STIFFNESS):
    """ln W - U/kT."""
    each = np.log(on_rate / off_rate) if on_rate else -np.log(dissociation_constant) - log_volume(kT, stiffness)
    return n * each - n * 0.5 * stiffness * (DISTANCE - LENGTH) ** 2 / kT


def of_a_box(simulation, kT, tension=0.0, pressure=0.0):
    return (tension * area(simulation) - pressure * volume(simulation)) / kT


#: Systems, the state that they are in, another one, and by how much its target distribution weighs them more.
WEIGHTS = {
    "on_rate": (pairs, {"on_rate": 2.0}, {"jump.on_rate": 0.3}),
    "off_rate": (pairs, {"on_rate": 2.0}, {"jump.off_rate": 0.3}),
    "dissociation_constant": (pairs, {"dissociation_constant": 1e-4}, {"jump.dissociation_constant": 3e-4}),
    "off_rate beside a dissociation_constant": (pairs, {"dissociation_constant": 1e-4}, {"jump.off_rate": 7.0}),
    "temperature": (pairs, {"on_rate": 2.0}, {"kT": 0.7}),
    "temperature and a dissociation_constant": (pairs, {"dissociation_constant": 1e-4}, {"kT": 0.7}),
    "stiffness and a dissociation_constant": (pairs, {"dissociation_constant": 1e-4}, {"links.stiffness": 0.6}),
    "a pool": (pairs, {"on_rate": 2.0, "pool": 5}, {"jump.on_rate": 0.3}),
    "load_sharing": (pairs, {"on_rate": 2.0}, {"jump.load_sharing": 0.1}),
    "pressure": (box_of, {"pressure": 0.01}, {"jump.pressure": 0.02}),
    "tension": (box_of, {"tension": -0.1}, {"jump.tension": 0.2}),
    "tension, pressure, temperature": (
        box_of, {"tension": -0.1, "pressure": 0.01},
        {"jump.tension": 0.2, "jump.pressure": 0.03, "temperature": 0.9 / mp.units.boltzmann},
    ),
    "step": (box_of, {"pressure": 0.01}, {"jump.step": 0.5}),
    "rate of flips": (pentagon, {}, {"jump.rate": 3.0}),
    "tension of a sheet": (pentagon, {}, {"tension.tension": 0.5}),
}


def number_of(simulation, name):
    what, _, key = name.rpartition(".")
    return getattr(simulation.system[what], key) if what else simulation.integrator.kT


@pytest.mark.parametrize("name", WEIGHTS)
def test_weights_are_those_of_the_target(name):
    make, numbers, other = WEIGHTS[name]
    simulation = make(**numbers)
    simulation.step(6)
    state = {key: number_of(simulation, key) if key != "temperature" else KT / mp.units.boltzmann for key in other}
    found = exchange.weights(simulation, state, other)
    there = {key.rpartition(".")[2]: value for key, value in other.items()}
    kT = there.pop("kT", there.pop("temperature", KT / mp.units.boltzmann) * mp.units.boltzmann)
    change = found["other weight"] - found["own weight"] - found["other"] / kT + found["own"] / KT
    if make is pairs:
        n, numbers = round(bound(simulation) * PAIRS), {key: v for key, v in numbers.items() if key != "pool"}
        assert n > 1
        there.pop("load_sharing", None)
        expected = of_links(n, kT, **(numbers | there)) - of_links(n, KT, **numbers)
    elif make is box_of:
        assert simulation.context.get_state().box != (SIDE,) * 3
        there.pop("step", None)
        expected = of_a_box(simulation, kT, **(numbers | there)) - of_a_box(simulation, KT, **numbers)
    else:
        expected = -(there.get("tension", 0.03) - 0.03) * area_of_sheet(simulation) / KT
    assert change == pytest.approx(expected, rel=1e-8, abs=1e-9)
    # It has its own numbers again.
    assert {key: number_of(simulation, key) for key in state if key != "temperature"} == {
        key: value for key, value in state.items() if key != "temperature"
    }


@pytest.mark.parametrize("name", ["on_rate", "tension, pressure, temperature", "stiffness and a dissociation_constant"])
def test_looking_leaves_no_trace(name):
    make, numbers, other = WEIGHTS[name]
    looked, left = make(**numbers), make(**numbers)
    state = {key: number_of(looked, key) if key != "temperature" else KT / mp.units.boltzmann for key in other}
    for _ in range(12):
        looked.step(2)
        left.step(2)
        exchange.weights(looked, state, other)
    one, two = (each.context.get_state(positions=True, energy=True) for each in (looked, left))
    assert one.box == two.box
    assert one.counts == two.counts
    assert np.array_equal(one.positions, two.positions)


def test_a_state_that_cannot_be_there_is_never_swapped_into():
    """Bound links where none can bind."""
    simulation = pairs(on_rate=2.0)
    simulation.step(6)
    found = exchange.weights(simulation, {"jump.on_rate": 2.0}, {"jump.on_rate": 0.0})
    assert found["other weight"] == -math.inf
    law = Law(pairs, {"on_rate": 2.0}, [{"jump.on_rate": 2.0}, {"jump.on_rate": 0.0}], bound, None, 0.0)
    assert np.array(run_of(law, 30).observed)[:, 1].max() == 0.0


# Refusals ------------------------------------------------------------------------------------------------------------


class Quiet(jumps.BoxArea):
    """A jump of another package, which says nothing of weights."""

    log_weight = jumps.Jump.log_weight


def quiet(seed):
    simulation = box_of(seed, pressure=0.01)
    system = mp.System(simulation.topology, box=(SIDE,) * 3)
    system.add_jump(Quiet(pressure=0.01, rate=1.0, name="barostat"))
    return simulation_of(simulation.topology, system, seed)


def sheared(seed):
    topology = mp.Topology()
    beads = topology.add_beads([[0.0, 0, 0], [9.0, 0, 0]], mass=1.0, friction=1.0)
    system = mp.System(topology)
    gradient = np.zeros((3, 3))
    gradient[0, 1] = 1.0
    system.add_hydrodynamics(mp.hydrodynamics.RotnePrager(0.06, [beads], velocity_gradient=gradient))
    return simulation_of(topology, system, seed)


def twirled(seed):
    topology = mp.Topology()
    nodes, frames = mp.rods.uniform(5, 1.0)
    rod = topology.add_rod(nodes, frames, 1.0, 1.0, [1.0, 1.0, 1.5], 1.0, rotational_friction=1.0)
    system = system_with(topology, forces.RodElasticity(rod, 20.0, 15.0, 5.0, 4.0),
                         forces.RodLoad(rod, "end", [0.0, 0, 0], couple=[0.0, 0.0, 1.0], name="motor"))  # fmt: skip
    return mp.Simulation(system, mp.SplittingIntegrator("BAOAB", 0.01, kT=KT, seed=seed), threads=1)


@pytest.mark.parametrize(
    ("make", "message"),
    [(quiet, "barostat: Quiet does not tell what it weighs states by"), (sheared, "flows, and keeps no canonical"),
     (twirled, r"motor \(RodLoad\) does work that its energy does not tell")],
)  # fmt: skip
def test_unknown_distributions_are_refused_by_name(make, message):
    with pytest.raises((ParameterError, SimulationError), match=message):
        mp.ensemble.replica_exchange(make, ladder=[{"kT": 1.0}, {"kT": 2.0}], every=1, n_exchanges=3,
                                     executor=ThreadPoolExecutor(1))  # fmt: skip
