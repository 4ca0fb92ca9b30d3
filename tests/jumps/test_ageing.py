"""Laws of subunits that age, and of ends that lose them by their states."""

from itertools import product

import numpy as np
import pytest
from builders import STILL, look, refuses, straight

import medyanpy as mp
from medyanpy.errors import ParameterError, TopologyError
from medyanpy.testing import JumpCase, check_chi_square, check_mean
from medyanpy.testing.jumps import check_bits, check_books

K1, K2 = 3.0, 1.2
THREE = straight(3)


def built(growth=(), ageing=({},), nodes=THREE, forces=(), copies=1, fixed=(0,), seed=1, timestep=0.05,
          mass=STILL, threads=1, z=1.0, subunits=(1, 6), capacity_links=None,
          names=("ATP", "ADP-Pi", "ADP")):  # fmt: skip
    """Copies of a filament that do not see each other, whose ends grow and whose subunits age: (handle, simulation)."""
    topology = mp.Topology()
    places = [k * len(nodes) + i for k in range(copies) for i in fixed]
    handle = topology.add_filaments([nodes] * copies, mass, 1.0, rise=1.0, fixed_nodes=places,
                                    capacity_links=capacity_links)  # fmt: skip
    system = mp.System(topology)
    for force in forces:
        system.add_force(force(handle))
    pool = system.add_pool(mp.Pool(volume=1.0, concentrations={"G": z}))
    for own in growth:
        system.add_jump(mp.jumps.Polymerization(handle, pool["G"], **{"on_rate": 4.0, "off_rate": 4.0, "end": "plus",
                                                                      "subunits": subunits} | own))  # fmt: skip
    for own in ageing:
        rates = (K1, K2)[: len(names) - 1]
        system.add_jump(mp.jumps.Ageing(handle, **{"rates": rates, "states": names, "start": names[0]} | own))
    integrator = mp.BAGOGABIntegrator(timestep, kT=1.0, seed=seed)
    return handle, mp.Simulation(system, integrator, threads=threads)


@pytest.mark.slow
def test_contract():
    """Books, events and bits of a subunit alone, and the chain of its states in time: at rest it is in the last."""
    rates = np.zeros((3, 3))
    rates[0, 1], rates[1, 2] = K1, K2

    def make(copies, seed, threads, timestep):
        return built(nodes=straight(1), copies=copies, seed=seed, threads=threads, timestep=timestep)[1]

    case = JumpCase("Ageing", make, lambda state: state.jumps["Ageing"]["states"][:, 0].astype(int), rates,
                    np.zeros(3), driven=True)  # fmt: skip
    check_books(case)
    check_bits(case)
    for time, steps in ((0.3, 1), (0.3, 5), (1.2, 3)):
        simulation = make(20000, 7, 1, time / steps)
        simulation.step(steps)
        counts = np.bincount(case.states(look(simulation)), minlength=3)
        check_chi_square(f"states after {time} s", counts, 20000 * case.after(time))


def test_states_by_age():
    """Closed form of the chain for all subunits of long filaments, which do not see each other."""
    _, simulation = built(nodes=straight(400, 600), copies=20, timestep=0.1)
    for step in (3, 4, 8):
        simulation.step(step)
        t = look(simulation).time
        own = simulation.system["Ageing"].ages(look(simulation)) / 1000.0
        first = np.exp(-K1 * t)
        second = K1 / (K2 - K1) * (np.exp(-K1 * t) - np.exp(-K2 * t))
        for found, expected in zip(own.T, (first, second, 1.0 - first - second), strict=True):
            check_mean(f"after {t:g} s", found, expected, sees=0.06)


def test_cap_of_a_filament_that_grows():
    """Without losses subunits with ATP are a queue: Poisson with the mean a/k_1 at any filament, ADP-Pi a/k_2."""
    a, copies = 8.0, 3000
    handle, simulation = built([{"on_rate": a, "off_rate": 0.0}], nodes=straight(2), copies=copies, subunits=(1, 400),
                               timestep=0.1, ageing=[{"start": "ADP"}])  # fmt: skip
    simulation.step(100)
    ages = simulation.system["Ageing"].ages(look(simulation))
    assert (ages.sum(axis=1) == handle.subunits(look(simulation))).all()
    for found, mean in ((ages[:, 0], a / K1), (ages[:, 1], a / K2)):
        check_mean("mean", found, mean, sees=0.4)
        check_mean("square", (found - mean) ** 2, mean, sees=1.5)
    check_mean("together", (ages[:, 0] - a / K1) * (ages[:, 1] - a / K2), 0.0, sees=0.8)


@pytest.mark.parametrize("end", ["plus", "minus"])
def test_ends_lose_subunits_by_the_state_of_the_outermost(end):
    """A filament of one to three subunits of two states: all 14 states, against the master equation at rest."""
    on, off, aged, copies = 2.0, 1.0, 5.0, 4000
    _, simulation = built([{"end": end, "on_rate": on, "off_rate": off, "off_rates": {"D": aged}}],
                               nodes=straight(1), subunits=(1, 3), copies=copies, names=("T", "D"), timestep=0.05,
                               ageing=[{"rates": (1.5,)}], fixed=(0 if end == "plus" else 1,))  # fmt: skip
    states = [s for n in (1, 2, 3) for s in product((0, 1), repeat=n)]
    rates = np.zeros((len(states), len(states)))
    for i, s in enumerate(states):
        # Written with the end that grows last.
        if len(s) < 3:
            rates[i, states.index((*s, 0))] += on
        if len(s) > 1:
            rates[i, states.index(s[:-1])] += aged if s[-1] else off
        for k, one in enumerate(s):
            if one == 0:
                rates[i, states.index((*s[:k], 1, *s[k + 1 :]))] += 1.5
    rest = JumpCase("", lambda *_: simulation, lambda _: np.zeros(0), rates, np.zeros(len(states)), driven=True).at_rest
    simulation.step(200)
    found = np.zeros((copies, len(states)))
    samples = 40
    for _ in range(samples):
        simulation.step(20)
        rows = look(simulation).jumps["Ageing"]["states"]
        for copy, row in enumerate(rows):
            own = tuple(row[row >= 0].tolist())
            found[copy, states.index(own if end == "plus" else own[::-1])] += 1.0 / samples
    for s, own, share in zip(states, found.T, rest, strict=True):
        if share > 1e-9:
            check_mean(f"state {s}", own, share, sees=0.01)
        else:
            # The innermost stays, and grows old.
            assert s[0] == 0
            assert own.max() == 0.0


def test_states_stay_with_subunits_through_splits_and_merges():
    """Without steps from state to state the origin of every subunit is known: those of the start in the middle."""
    fixman = [lambda f: mp.forces.FixmanPotential(f, kT=1.0)]
    handle, simulation = built([{"end": "both", "subunits": (2, 5)}], nodes=straight(4, 4, 4), forces=fixman, copies=20,
                               ageing=[{"rates": (0.0, 0.0), "start": "ADP"}], fixed=(), capacity_links=30,
                               mass=1.0)  # fmt: skip
    lost = np.full(20, 12)
    for _ in range(60):
        simulation.step(5)
        state = look(simulation)
        rows = state.jumps["Ageing"]["states"]
        assert (np.count_nonzero(rows >= 0, axis=1) == handle.subunits(state)).all()
        ages = simulation.system["Ageing"].ages(state)
        assert (ages[:, 1] == 0).all()
        assert (ages[:, 2] <= lost).all()
        lost = ages[:, 2]
        for row in rows:
            old = np.flatnonzero(row == 2)
            assert len(old) == 0 or old[-1] - old[0] + 1 == len(old)
    assert (lost < 12).sum() > 5
    assert len(np.unique(handle.kind.links_of(state))) > 2


def test_state_is_kept(tmp_path):
    fixman = [lambda f: mp.forces.FixmanPotential(f, kT=1.0)]

    def made(threads=1):
        return built([{"end": "both", "subunits": (2, 5), "off_rates": {"ADP": 6.0}}], [{"energies": (20.0, 5.0)}],
                     nodes=straight(4, 4, 4), forces=fixman, copies=20, fixed=(), capacity_links=30, mass=1.0,
                     threads=threads)  # fmt: skip

    _, simulation = made()
    simulation.report_work = True
    heard = simulation.context.events()
    simulation.step(60)
    simulation.save_checkpoint(tmp_path / "here.npz")
    middle = look(simulation)
    simulation.step(60)
    end = look(simulation)
    loaded = made(threads=3)[1]
    loaded.load_checkpoint(tmp_path / "here.npz")
    for one in (mp.Simulation.resume(tmp_path / "here.npz"), loaded):
        one.step(60)
        there = look(one)
        assert (there.jumps["Ageing"]["states"] == end.jumps["Ageing"]["states"]).all()
        assert (there.column("subunits") == end.column("subunits")).all()
    _, other = made()
    other.context.set_state(middle)
    of_other, own = (one.system["Ageing"] for one in (other, simulation))
    assert (of_other.ages(look(other)) == own.ages(middle)).all()
    again = mp.deserialize(mp.serialize(simulation.system))
    ageing, growth = again["Ageing"], again["Polymerization"]
    assert (ageing.states, ageing.start, ageing.rates.tolist()) == (("ATP", "ADP-Pi", "ADP"), "ATP", [K1, K2])
    assert (ageing.energies.tolist(), growth.off_rates) == ([20.0, 5.0], {"ADP": 6.0})
    # Chemical energy is booked event by event: what steps release, and losses of old subunits have no way back.
    events = heard.heard()
    steps = [e.chemical_energy for e in events if e.jump == "Ageing"]
    assert set(steps) == {20.0, 5.0}
    kinds = {e.kind for e in events if e.jump == "Ageing"}
    assert kinds == {"ATP to ADP-Pi", "ADP-Pi to ADP"}
    assert np.isinf([e.chemical_energy for e in events if e.kind == "off"]).any()
    assert end.entropy_production == np.inf
    parts = sum(getattr(end, n) for n in ("heat", "shadow_work", "protocol_work", "chemical_work"))
    assert np.isfinite(parts)


def test_growth_alone_has_the_bits_it_had():
    """States that no rate reads change no event of growth."""
    states = []
    for ageing in ((), ({},)):
        _, simulation = built([{}], ageing, copies=30, mass=1.0)
        simulation.step(60)
        states.append(look(simulation))
    assert (states[0].positions == states[1].positions).all()
    assert (states[0].column("subunits") == states[1].column("subunits")).all()


@pytest.mark.parametrize(
    ("error", "phrase", "ageing", "growth"),
    [
        (ParameterError, "rates has 1 numbers, but there are 2 steps", [{"rates": (1.0,)}], []),
        (ParameterError, r"rates\[1\] = -1 1/s but must be >= 0", [{"rates": (1.0, -1.0)}], []),
        (ParameterError, "energies has 3 numbers", [{"energies": (1.0, 2.0, 3.0)}], []),
        (ParameterError, "states must be 2 to 127 names", [{"states": "ATP"}], []),
        (ParameterError, "have the same name", [{"states": ("A", "B", "A")}], []),
        (ParameterError, "start = 'GTP' but must be one of ATP, ADP-Pi, ADP", [{"start": "GTP"}], []),
        (ParameterError, "two jumps of one system let the subunits", [{}, {}], []),
        (ParameterError, "off_rates= are by states of subunits: add a jumps.Ageing", [], [{"off_rates": {"ADP": 1.0}}]),
        (ParameterError, "off_rates = 'GDP' but must be one of", [{}], [{"off_rates": {"GDP": 1.0}}]),
        (ParameterError, "off_rates must be a dict", [{}], [{"off_rates": 3.0}]),
        (ParameterError, r"off_rates\['ADP'\]", [{}], [{"off_rates": {"ADP": -1.0}}]),
    ],
)  # fmt: skip
def test_refusals(error, phrase, ageing, growth):
    refuses(error, phrase, lambda: built(growth, ageing, copies=2))


def test_refusals_of_what_does_not_age():
    topology = mp.Topology()
    plain = topology.add_filament(straight(3), 1.0, 1.0)
    refuses(TopologyError, "added with rise=", mp.jumps.Ageing, plain, (1.0, 1.0))
    without, (_, simulation) = built([{}], ())[1], built([{}])
    refuses(TopologyError, "a system without jumps.Ageing", simulation.system["Ageing"].ages, look(without))


def test_refusal_of_too_many_states(monkeypatch):
    monkeypatch.setattr("medyanpy.jumps.ageing._MOST", 29)
    refuses(ParameterError, "2 filaments of up to 15 subunits would have more than 29 states",
            lambda: built([{}], [{}], copies=2))  # fmt: skip


def test_hostile_arrays_are_refused():
    _, simulation = built([{}], copies=3)
    jumping = simulation.context._schedule.jumping
    jump, operation = jumping.jumps[1], jumping.operations[1]
    for name, value, phrase in (("states", 3, r"states\[1, 0\] = 3, but states are 0 to 2"), ("states", -1, "= -1"),
                                ("first", -1, "first subunits must be at 0 to"), ("first", 10**6, "at 0 to")):
        arrays = {key: array.copy() for key, array in operation.arrays().items()}
        arrays[name][1] = value
        refuses(ParameterError, phrase, jump.check_state, operation, arrays)
