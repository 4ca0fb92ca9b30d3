"""Laws of filaments that begin as seeds, dissolve, and are cut in two."""

import numpy as np
import pytest
from builders import STILL, look, refuses, straight, system_with
from scipy.linalg import expm
from scipy.special import gammaln

import medyanpy as mp
from medyanpy.errors import ParameterError, TopologyError
from medyanpy.testing import check_mean

SIDE = 20.0


def built(jumps, nodes=(), forces=(), pool=None, room=30, capacity_links=12, box=True, mass=1.0, timestep=0.05, seed=1,
          threads=1, bending=0.0, formins=(), bodies=()):  # fmt: skip
    """Filaments that may come: (handle, simulation). `jumps` are made of the handle and the pool."""
    topology = mp.Topology()
    handle = topology.add_filaments(list(nodes), mass, 1.0, rise=1.0, capacity_links=capacity_links,
                                    capacity_filaments=room, name="actin")  # fmt: skip
    if len(formins):
        species = {name: {"mass": 1.0, "friction": friction} for name, friction in (("active", 1.0), ("other", STILL))}
        topology.add_beads(formins, species=species, counts={"active": len(formins) - 1, "other": 1}, name="formins")
    if len(bodies):
        topology.add_rigid_bodies(bodies, [[1.0, 0, 0, 0]] * len(bodies), 1.0, [1.0] * 3, fixed=True, name="bodies")
    system = system_with(
        topology, mp.forces.FixmanPotential(handle, kT=1.0), box=(SIDE if box is True else box,) * 3 if box else None
    )
    if bending:
        system.add_force(mp.forces.FilamentBending(handle, bending))
    for force in forces:
        system.add_force(force(handle))
    pool = system.add_pool(mp.Pool(volume=SIDE**3, concentrations={"G": 0.5}) if pool is None else pool)
    for jump in jumps:
        system.add_jump(jump(handle, pool["G"]))
    return handle, mp.Simulation(system, mp.BAGOGABIntegrator(timestep, kT=1.0, seed=seed), threads=threads)


def seeds(n=3, rate=1.0, off=2.0, **more):
    def made(actin, species):
        near = {"near": actin.topology["formins"].of("active")} if "reach" in more else {}
        return mp.jumps.Nucleation(actin, species, n, rate=rate, dissolution_rate=off, **near, **more)

    return made


def growth(on, off, subunits=(2, 5), **more):
    return lambda actin, species: mp.jumps.Polymerization(actin, species, on_rate=on, off_rate=off, subunits=subunits,
                                                          end="both", **more)  # fmt: skip


def cuts(rate, **more):
    return lambda actin, species: mp.jumps.Severing(actin, rate, **more)


def series(simulation, handle, samples, every, first=100):
    simulation.step(first)
    out = []
    for _ in range(samples):
        simulation.step(every)
        out.append(handle.subunits(look(simulation)))
    return np.array(out)


def check_shares(what, seen, expected, sees=0.03):
    expected = expected / expected.sum()
    for m, share in enumerate(expected):
        if share > 0.01:
            check_mean(f"{m} {what}", seen == m, share, sees=sees, time_series=True)


def test_seeds_of_a_pool_that_is_used_up():
    """M seeds of three of N subunits: (k V/(k_off V^3))^M/M! N!/(N - 3M)!, and every subunit is counted."""
    total, volume, off = 11, SIDE**3, 2.0
    k = 0.03 * off * volume**2
    pool = mp.Pool(volume=volume, counts={"G": total})
    handle, simulation = built([seeds(rate=k, off=off)], pool=pool, timestep=0.5, mass=STILL)
    simulation.step(50)
    seen = []
    for _ in range(5000):
        simulation.step(2)
        state = simulation.context.get_state(positions=True)
        own = handle.subunits(state)
        assert own.sum() + state.pools["G"] == total
        assert set(own.tolist()) <= {0, 3}
        seen.append(np.count_nonzero(own))
    m = np.arange(total // 3 + 1)
    logs = m * np.log(0.03) + gammaln(total + 1) - gammaln(total - 3 * m + 1) - gammaln(m + 1)
    check_shares("seeds", np.array(seen), np.exp(logs), sees=0.06)


@pytest.mark.parametrize("formins", [0, 3])
def test_seeds_in_a_trap(formins):
    """The mean number is k C^n/k_off times the integral of exp(-U/kT) over places and directions.

    So it is where they begin and dissolve only near beads that move in the trap too, as often as there are such beads.
    """
    k, length, wanted = 0.3, 3.0, 4.0
    room = np.array([[-6.0] * 3, [6.0] * 3])
    integral = (np.pi / k) ** 1.5 * np.exp(-0.25 * k * length**2)
    trap = [lambda f: mp.forces.HarmonicTrap(f, k, [0.0, 0.0, 0.0])]
    off, where = 2.0, {"region": room}
    if formins:
        trap.append(lambda f: mp.forces.HarmonicTrap(f.topology["formins"], k, [0.0, 0.0, 0.0], name="other trap"))
        off, where = 6.0, {"reach": 4.5}
    handle, simulation = built(
        [seeds(rate=wanted * off / integral / 0.5**3, off=off, **where)], forces=trap, box=False, timestep=0.05,
        formins=np.zeros((formins + 1, 3)) if formins else ())  # fmt: skip
    seen, kinetic = [], []
    simulation.step(200)
    for _ in range(4000):
        simulation.step(4)
        state = look(simulation)
        seen.append(np.count_nonzero(handle.subunits(state)))
        # Five degrees of freedom each, whatever their number.
        kinetic.append(state.kinetic_energy - 2.5 * seen[-1] - (1.5 * (formins + 1) if formins else 0.0))
    seen = np.array(seen)
    check_mean("seeds", seen, wanted, sees=0.8, time_series=True)
    check_mean("square", (seen - wanted) ** 2, wanted, sees=3.0, time_series=True)
    check_mean("kinetic energy", np.array(kinetic), 0.0, sees=1.0, time_series=True)


def test_seeds_begin_anywhere_and_point_anywhere():
    handle, simulation = built([seeds(rate=0.0, off=0.0)], timestep=1e-3, room=600)
    simulation.step(1)
    simulation.context.system["Nucleation"].set(rate=450.0)
    heard = simulation.context.events()
    simulation.step(1)
    n = len(heard.heard())
    assert 300 < n < 600
    state = look(simulation)
    x = state.positions[handle.kind.ends_of(state)[handle.subunits(state) > 0]]
    assert ((x[:, 0] >= -0.1) & (x[:, 0] < SIDE + 0.1)).all()
    place, direction = x[:, 0] / SIDE, (x[:, 1] - x[:, 0]) / 3.0
    np.testing.assert_allclose(np.linalg.norm(direction, axis=1), 1.0, rtol=1e-9)
    for c in range(3):
        check_mean("place", place[:, c], 0.5, sees=0.12)
        check_mean("place squared", place[:, c] ** 2, 1.0 / 3.0, sees=0.12)
        check_mean("direction", direction[:, c], 0.0, sees=0.25)
        check_mean("direction squared", direction[:, c] ** 2, 1.0 / 3.0, sees=0.12)
    v = state.velocities[handle.kind.ends_of(state)[handle.subunits(state) > 0]]
    along = np.einsum("ij,ij->i", v[:, 1] - v[:, 0], direction)
    assert np.abs(along).max() < 1e-9
    check_mean("kinetic energy", 0.5 * (v**2).sum(axis=(1, 2)), 2.5, sees=0.6)


@pytest.mark.parametrize("apart", [1.5, 6.0])
def test_seeds_begin_in_balls_about_beads(apart):
    """As many as the volume of two, uniform in each, where they overlap too; none near a bead of another species."""
    formins = [[1.0, 1.0, 1.0], [1.0 + apart, 1.0, 1.0], [10.0, 10.0, 10.0]]
    handle, simulation = built([seeds(rate=0.0, off=0.0, reach=2.0)], timestep=1e-4, room=3000, formins=formins)
    simulation.step(1)
    ball = 4.0 / 3.0 * np.pi * 2.0**3
    simulation.context.system["Nucleation"].set(rate=600.0 / (2.0 * ball) / 0.5**3 / 1e-4)
    heard = simulation.context.events()
    simulation.step(1)
    assert abs(len(heard.heard()) - 600.0) < 4.9 * np.sqrt(600.0)
    state = look(simulation)
    x = state.positions[handle.kind.ends_of(state)[handle.subunits(state) > 0]][:, 0]
    far = np.array([np.linalg.norm((d := x - place) - SIDE * np.round(d / SIDE), axis=1) for place in formins[:2]])
    # Beads and seeds move by a little in the step.
    assert (far.min(axis=0) < 2.01).all()
    height = max(0.0, 2.0 - 0.5 * apart)
    lens = 2.0 * np.pi * height**2 * (6.0 - height) / 3.0
    check_mean("in the first ball alone", (far[1] > 2.0).astype(float), 0.5 * (1.0 - lens / ball), sees=0.17)
    if apart > 4.0:
        cubed = (far.min(axis=0) / 2.0) ** 3
        check_mean("radius cubed", cubed, 0.5, sees=0.1)
        check_mean("its square", cubed**2, 1.0 / 3.0, sees=0.11)


@pytest.mark.parametrize("n", [2, 1])
def test_lengths_of_filaments_that_begin_grow_and_dissolve(n):
    """In balance: of m subunits, in any number of links, there are k V C^n/k_off (C/K_D)^(m-n) on average, Poisson;
    also where seeds are smaller than the last link of others may be, 2."""
    z, wanted, c = 0.7, 1.2, 0.5
    rate = wanted * 3.0 / (SIDE**3 * c**n)
    handle, simulation = built([seeds(n, rate, 3.0), growth(8.0, 8.0 * c / z)], timestep=0.05, bending=5.0, room=40,
                               capacity_links=16)  # fmt: skip
    seen = series(simulation, handle, 5000, 6, 600)
    for m in range(n, n + 6):
        count = np.count_nonzero(seen == m, axis=1)
        mean = wanted * z ** (m - n)
        check_mean(f"filaments of {m}", count, mean, sees=0.3, time_series=True)
        if mean > 0.5:
            # Squares of what is rare are few large ones.
            check_mean(f"square of filaments of {m}", (count - mean) ** 2, mean, sees=1.0, time_series=True)


def fragments(links, rate):
    """Generator of the mean numbers of fragments of 1 to `links` links: f' = f G."""
    out = np.zeros((links, links))
    for m in range(2, links + 1):
        for i in range(1, m):
            # Halves of both links beside a node, and of the last link all.
            own = rate * (1.0 + 0.5 * (i == 1) + 0.5 * (i == m - 1))
            out[m - 1, m - 1] -= own
            out[m - 1, i - 1] += own
            out[m - 1, m - i - 1] += own
    return out


def test_numbers_of_fragments():
    """Mean numbers of fragments of each length follow their linear equations, which are exact."""
    links, copies, full, rate = 6, 600, 4, 0.05
    handle, simulation = built([cuts(rate)], [straight(*[full] * links)] * copies, room=copies * links, mass=STILL,
                               timestep=0.25, box=False, capacity_links=links + 1)  # fmt: skip
    generator = fragments(links, rate * full)
    start = np.eye(links)[-1]
    for steps in (4, 8, 16):
        simulation.step(steps)
        state = look(simulation)
        own = handle.subunits(state)
        assert own.sum() == copies * links * full
        found = np.bincount(own[own > 0] // full, minlength=links + 1)[1:]
        expected = copies * start @ expm(generator * state.time)
        for m in range(links):
            # Of independent filaments: the variance is at most the number of links times the mean.
            assert abs(found[m] - expected[m]) < 5.0 * np.sqrt(expected[m] * (links / (m + 1)) + 1.0), (m, state.time)
    assert simulation.system["Severing"].counts.accepted == np.count_nonzero(own) - copies


def test_only_old_subunits_are_cut():
    """A filament is whole with the probability prod E exp(-s T), T how long each subunit has been old."""
    s, k, n, copies = 0.15, 0.8, 8, 1500
    age = lambda actin, _: mp.jumps.Ageing(actin, (k,), states=("T", "D"), start="T")  # noqa: E731
    handle, simulation = built([age, cuts(s, of="D")], [straight(4, 4)] * copies, room=2 * copies, mass=STILL,
                               timestep=0.1, box=False, capacity_links=3)  # fmt: skip
    for steps in (8, 12):
        simulation.step(steps)
        state = look(simulation)
        t = state.time
        one = np.exp(-k * t) + k / (k - s) * (np.exp(-s * t) - np.exp(-k * t))
        check_mean(f"whole after {t:g} s", handle.subunits(state)[:copies] == n, one**n, sees=0.1)


def test_fragments_of_filaments_that_age():
    """Their mean number follows the equations of cuts in the time -ln(E)/s of subunits that have not cut yet."""
    s, k, links, full, copies = 0.05, 0.8, 6, 4, 1500
    age = lambda actin, _: mp.jumps.Ageing(actin, (k,), states=("T", "D"), start="T")  # noqa: E731
    nodes = straight(*[full] * links)
    handle, simulation = built([age, cuts(s, of="D")], [nodes + [5.0 * i, 0.0, 0.0] for i in range(copies)], mass=STILL,
                               room=copies * links, timestep=0.25, box=False, capacity_links=links + 1)  # fmt: skip
    generator = fragments(links, full)
    for steps in (8, 12, 20):
        simulation.step(steps)
        state = look(simulation)
        there = handle.subunits(state) > 0
        of = np.rint(state.positions[handle.kind.ends_of(state)[there]][:, 0, 0] / 5.0).astype(int)
        t = state.time
        whole = np.exp(-k * t) + k / (k - s) * (np.exp(-s * t) - np.exp(-k * t))
        expected = expm(-np.log(whole) * generator)[-1].sum()
        check_mean(f"fragments after {t:g} s", np.bincount(of, minlength=copies), expected, sees=0.27)


@pytest.mark.parametrize(("share", "most"), [(0.5, 1000.0), (1.0, 1000.0), (1.0, 5.0)])
def test_bent_filaments_are_cut_faster(share, most):
    """By exp(σE/kT) with the energy of the bent node, up to the most; a straight one beside it stays as it was."""
    s, copies, modulus, angle = 0.02, 800, 6.0, 2.0
    corner = np.array([[-4.0, 0.0, 0.0], [0.0, 0.0, 0.0], [4.0 * np.cos(angle), 4.0 * np.sin(angle), 0.0]])
    handle, simulation = built([cuts(s, bending_share=share, most_faster=most)], [corner] * copies
                               + [straight(4, 4)] * copies, room=4 * copies, mass=STILL, timestep=0.05, box=False,
                               bending=modulus, capacity_links=3)  # fmt: skip
    simulation.step(20)
    state = look(simulation)
    faster = min(most, np.exp(share * modulus / 4.0 * (1.0 - np.cos(angle))))
    whole = handle.subunits(state)[: 2 * copies].reshape(2, copies) == 8
    for own, rate in zip(whole, (8.0 * s * faster, 8.0 * s), strict=True):
        check_mean("whole", own, np.exp(-rate * state.time), sees=0.15)


def test_cuts_of_filaments_that_bend_by_heat():
    """Their rate has the mean of exp(σE/kT) over the joint's law: (1 - e^(-2κ(1-σ)))/((1 - σ)(1 - e^(-2κ)))."""
    s, share, copies, modulus = 2e-4, 0.5, 3000, 12.0
    handle, simulation = built([cuts(s, bending_share=share)], [straight(4, 4)] * copies, room=2 * copies,
                               bending=modulus, timestep=0.05, box=False, capacity_links=3, seed=4)  # fmt: skip
    simulation.context.set_velocities_to_temperature(kT=1.0, seed=3)
    simulation.step(200)
    before = look(simulation)
    simulation.step(1200)
    after = look(simulation)
    kappa = modulus / 4.0
    faster = (1.0 - np.exp(-2.0 * kappa * (1.0 - share))) / ((1.0 - share) * (1.0 - np.exp(-2.0 * kappa)))
    whole = [handle.subunits(state)[:copies] == 8 for state in (before, after)]
    expected = np.exp(-8.0 * s * faster * (after.time - before.time))
    check_mean("whole", whole[1][whole[0]], expected, sees=0.06)


def test_fragments_keep_what_they_have():
    """Subunits and their states, in order; ids, caps and places of nodes; lengths, and the books."""
    age = lambda actin, _: mp.jumps.Ageing(actin, (2.0, 1.0), start="ATP")  # noqa: E731
    results = []
    for threads in (1, 3):
        handle, simulation = built([age, cuts(0.0)], [straight(4, 4, 4, 4, 4)] * 6, room=40, box=False, bending=5.0,
                                   timestep=0.02, threads=threads, capacity_links=7)  # fmt: skip
        simulation.context.set_velocities_to_temperature(kT=1.0, seed=3)
        simulation.report_work = True
        store = simulation.context._store
        store.arrays["caps"][store.layout.rank[handle.kind.ends_of(look(simulation))[:6]]] = [1, 2]
        simulation.step(20)
        before = look(simulation)
        simulation.system["Severing"].set(rate_per_subunit=0.8)
        simulation.step(10)
        after = look(simulation)
        n = np.count_nonzero(handle.subunits(after))
        assert n > 12
        caps = handle.kind.caps_of(after)
        assert (caps == 1).sum() == (caps == 2).sum() == 6
        assert (caps[:, 0] != 2).all()
        assert (caps[:, 1] != 1).all()
        there = after.alive[handle.kind.slots]
        assert there.sum() == 6 * 6 + n - 6
        ids = after.ids[handle.kind.all_rows]
        assert set(before.ids[before.ids >= 0].tolist()) <= set(ids.tolist())
        x = after.positions[handle.kind.slots]
        length = np.linalg.norm(x[:, 1:] - x[:, :-1], axis=2)[there[:, 1:] & there[:, :-1]]
        np.testing.assert_allclose(length, handle.kind.subunits_of_links(after), rtol=1e-8)
        parts = sum(getattr(after, p) - getattr(before, p)
                    for p in ("heat", "shadow_work", "protocol_work", "chemical_work"))  # fmt: skip
        assert parts == pytest.approx(after.total_energy - before.total_energy, abs=1e-9)
        assert after.chemical_work != before.chemical_work
        results.append(after)
    assert np.array_equal(results[0].positions, results[1].positions, equal_nan=True)
    assert np.array_equal(results[0].velocities, results[1].velocities, equal_nan=True)


def test_states_of_subunits_stay_in_order_through_cuts():
    age = lambda actin, _: mp.jumps.Ageing(actin, (2.0, 1.0), start="ATP")  # noqa: E731
    handle, simulation = built([age, cuts(0.0)], [straight(4, 4, 4, 4, 4)], room=8, mass=STILL, box=False)
    simulation.step(12)
    before = look(simulation).jumps["Ageing"]["states"][0]
    assert len(set(before.tolist())) == 3
    simulation.integrator.set(timestep=1e-9)
    simulation.system["Severing"].set(rate_per_subunit=4e8)
    simulation.step(1)
    state = look(simulation)
    assert np.count_nonzero(handle.subunits(state)) > 2
    ends = state.positions[handle.kind.ends_of(state)]
    there = handle.subunits(state) > 0
    rows = state.jumps["Ageing"]["states"][there][np.argsort(ends[there][:, 0, 2])]
    assert np.concatenate([row[row >= 0] for row in rows]).tolist() == before.tolist()


def test_a_filament_that_treads_through_its_room():
    """Ends that have used up their room go on: the filament is moved within it, and nothing else is changed."""
    pool = mp.Pool(volume=1.0, concentrations={"G": 1.0})
    jumps = [lambda a, g: mp.jumps.Polymerization(a, g, end="plus", on_rate=20.0, off_rate=2.0, subunits=(2, 5)),
             lambda a, g: mp.jumps.Polymerization(a, g, end="minus", on_rate=2.0, off_rate=20.0, subunits=(2, 5),
                                                  name="minus")]  # fmt: skip
    states = []
    for threads in (1, 3):
        handle, simulation = built(jumps, [straight(*[4] * 10)] * 8, pool=pool, box=False, bending=20.0, room=8,
                                   timestep=0.02, threads=threads, capacity_links=40)  # fmt: skip
        start = look(simulation)
        simulation.context.set_velocities_to_temperature(kT=1.0, seed=3)
        simulation.report_work = True
        begun = look(simulation)
        for _ in range(20):
            simulation.step(50)
            state = look(simulation)
            there = state.alive[handle.kind.slots]
            x = state.positions[handle.kind.slots]
            length = np.linalg.norm(x[:, 1:] - x[:, :-1], axis=2)[there[:, 1:] & there[:, :-1]]
            np.testing.assert_allclose(length, handle.kind.subunits_of_links(state), rtol=1e-8)
        # Further than there is room for links.
        moved = np.linalg.norm(state.positions[handle.kind.ends_of(state)[:, 1]]
                               - start.positions[handle.kind.ends_of(start)[:, 1]], axis=1)  # fmt: skip
        assert moved.max() > 150.0
        parts = sum(getattr(state, p) - getattr(begun, p)
                    for p in ("heat", "shadow_work", "protocol_work", "chemical_work"))  # fmt: skip
        assert parts == pytest.approx(state.total_energy - begun.total_energy, rel=1e-9)
        states.append(state)
    assert np.array_equal(states[0].positions, states[1].positions, equal_nan=True)
    assert (states[0].column("subunits") == states[1].column("subunits")).all()


def test_state_is_kept(tmp_path):
    def made():
        c = 0.5
        age = lambda actin, _: mp.jumps.Ageing(actin, (1.0, 0.5))  # noqa: E731
        grow = growth(8.0, 4.0, off_rates={"ADP": 6.0})
        return built([age, seeds(2, 20.0 / (SIDE**3 * c**2), 1.0), grow, cuts(0.01)],
                     [straight(4, 4, 4)] * 3, room=300, capacity_links=24, bending=5.0, seed=4)  # fmt: skip

    handle, simulation = made()
    simulation.step(60)
    simulation.save_checkpoint(tmp_path / "here.npz")
    middle = look(simulation)
    simulation.step(60)
    end = look(simulation)
    assert {name: counts.accepted > 5 for name, counts in end.counts.items()} == dict.fromkeys(end.counts, True)
    loaded = made()[1]
    loaded.load_checkpoint(tmp_path / "here.npz")
    for one in (mp.Simulation.resume(tmp_path / "here.npz"), loaded):
        one.step(60)
        there = look(one)
        assert np.array_equal(there.positions, end.positions, equal_nan=True)
        assert (there.column("subunits") == end.column("subunits")).all()
        assert (there.jumps["Ageing"]["states"] == end.jumps["Ageing"]["states"]).all()
    other_handle, other = made()
    other.context.set_state(middle)
    state = look(other)
    assert (other_handle.subunits(state) == handle.subunits(middle)).all()
    np.testing.assert_allclose(state.positions, middle.positions, atol=1e-8)
    again = mp.deserialize(mp.serialize(simulation.system))
    assert again.topology["actin"].kind.n_room == 300
    assert (again["Nucleation"].n, again["Severing"].rate_per_subunit, again["Severing"].of) == (2, 0.01, None)


@pytest.mark.parametrize(
    ("error", "phrase", "jumps", "given"),
    [
        (ParameterError, "give region=, two corners, or near=", [seeds()], {"box": False}),
        (ParameterError, "give near= and reach= together",
         [lambda f, g: mp.jumps.Nucleation(f, g, 3, rate=1.0, reach=2.0)], {}),
        (ParameterError, "give region= or near=, not both", [seeds(reach=1.0, region=[[0.0] * 3, [1.0] * 3])],
         {"formins": np.zeros((2, 3))}),
        (ParameterError, "region goes from 1 to 1 nm along y", [seeds(region=[[0.0, 1.0, 0.0], [1.0, 1.0, 1.0]])], {}),
        (ParameterError, r"region must have shape \(2, 3\)", [seeds(region=[0.0, 1.0])], {}),
        (ParameterError, "n = 0", [seeds(0)], {}),
        (ParameterError, "rate", [seeds(rate=-1.0)], {}),
        (ParameterError, "n = 6, but Polymerization lets links at ends have up to 5", [seeds(6), growth(1.0, 1.0)], {}),
        (ParameterError, "is a state of subunits: add a jumps.Ageing", [cuts(1.0, of="ADP")], {}),
        (ParameterError, "rate_per_subunit", [cuts(-1.0)], {}),
        (ParameterError, "bending_share = 0.5, but no FilamentBending acts on", [cuts(1.0, bending_share=0.5)], {}),
        (ParameterError, "most_faster = 0.5", [cuts(1.0, most_faster=0.5)], {}),
        (TopologyError, "add 'actin' with capacity_links= and capacity_filaments=", [cuts(1.0)],
         {"capacity_links": None, "room": None, "nodes": [straight(4)]}),
        (ParameterError, "capacity_filaments= is of filaments with capacity_links=", [], {"capacity_links": None}),
        (ParameterError, "capacity_filaments = 1", [], {"room": 1, "nodes": [straight(4)] * 2}),
    ],
)  # fmt: skip
def test_refusals(error, phrase, jumps, given):
    refuses(error, phrase, lambda: built(jumps, **given))


def collisions(actin):
    return mp.forces.SoftCollisions(actin, stiffness=5.0, radius=0.6, neighbors=1)


BODIES = [[2.0 * i, 2.0 * j, 4.0 * k - 2.0] for i in range(4) for j in range(3) for k in range(5)]


def ellipsoids(actin):
    bodies = actin.topology["bodies"]
    return mp.forces.EllipsoidCollisions(bodies, actin, 0.5, [1.0, 1.2, 1.6], radius=0.4, form="soft")


ON_CHAINS = {
    "collisions": collisions,
    "ellipsoids": ellipsoids,
    "pairs": lambda actin: mp.forces.SoftSphere(actin, actin, stiffness=3.0, diameter=2.0),
    "any function of distance": lambda actin: mp.forces.CustomPair(actin, actin, "2*exp(-r)", cutoff=4.0),
    "a field": lambda actin: mp.forces.ExternalField(actin, "cos(2*pi*x/20)*sin(2*pi*y/20)"),
    "a function in Python": lambda actin: mp.forces.PythonForce(
        lambda x: (np.cos(0.1 * np.pi * x).sum(), 0.1 * np.pi * np.sin(0.1 * np.pi * x)), beads=actin
    ),
}  # fmt: skip


def turnover(*forces, room=300, threads=1, faster=1.0, n=12, box=False, join=True):
    """Some filaments that begin, grow, split and merge, shrink, dissolve, are cut, and join."""
    region = [[-10.0] * 3, [10.0] * 3]
    jumps = [
        seeds(3, 0.03 * faster, 4.0 * faster, region=region),
        growth(3.0 * faster, 2.5 * faster),
        cuts(0.25 * faster),
    ]
    if join:
        jumps.append(lambda actin, _: mp.jumps.Annealing(actin, on_rate=300.0, off_rate=0.3, reach=2.5))
    nodes = [straight(4, 4, 3) + [2.0 * (k % 4), 2.0 * (k // 4 % 5), 6.0 * (k // 20)] for k in range(n)]
    options = {"room": room, "timestep": 0.02 / faster, "threads": threads, "box": box, "bodies": BODIES}
    return built(jumps, nodes, forces, bending=4.0, **options)


@pytest.mark.filterwarnings("ignore::medyanpy.PerformanceWarning")
@pytest.mark.parametrize("force", ON_CHAINS)
def test_energies_of_chains_are_those_of_the_places_that_change(force):
    """Seeds, splits, merges and cuts: heat and chemical work are what the whole energy gains."""
    _, simulation = turnover(ON_CHAINS[force])
    context, kinds = simulation.context, set()
    for _ in range(25):
        simulation.step(4)
        before, events = look(context), context.events()
        context._store.program.perform(context._store.program.operations[0])
        after, heard = look(context), events.heard()
        kinds |= {(event.jump, event.kind) for event in heard}
        gained = after.potential_energy - before.potential_energy + after.kinetic_energy - before.kinetic_energy
        size = abs(before.potential_energy) + abs(after.potential_energy) + after.kinetic_energy
        assert abs(sum(event.energy for event in heard) - gained) < 1e-11 * size
    assert len(kinds) == 7


def filaments_of(state, handle):
    """Nodes (n, 3) of each filament that there is."""
    slots = handle.kind.slots
    subunits = state.column("subunits")[slots]
    for rows, own in zip(slots, subunits, strict=True):
        links = np.flatnonzero(own > 0)
        if len(links):
            yield rows[links[0] : links[-1] + 2]


@pytest.mark.filterwarnings("ignore::medyanpy.PerformanceWarning")
@pytest.mark.parametrize(("force", "threads"), [(collisions, 1), (collisions, 2), (ellipsoids, 1), (ellipsoids, 2)])
def test_collisions_follow_links_that_come_and_go(force, threads):
    """Energies and forces are those of the same filaments in a system in which they stay."""
    handle, simulation = turnover(force, threads=threads)
    numbers, collided = set(), 0.0
    for _ in range(12):
        simulation.step(20)
        state = simulation.context.get_state(positions=True, forces=True, energy=True)
        rows = list(filaments_of(state, handle))
        numbers.add((len(rows), sum(map(len, rows))))
        topology = mp.Topology()
        still = topology.add_filaments([state.positions[own] for own in rows], 1.0, 1.0)
        others = mp.forces.FixmanPotential(still, kT=1.0), mp.forces.FilamentBending(still, 4.0)
        topology.add_rigid_bodies(BODIES, [[1.0, 0, 0, 0]] * len(BODIES), 1.0, [1.0] * 3, fixed=True, name="bodies")
        system = system_with(topology, force(still), *others)
        other = mp.Context(system, mp.VerletIntegrator(0.1)).get_state(forces=True, energy=True)
        mine, theirs = (one.energies[system.force_names[0]] for one in (state, other))
        assert mine == pytest.approx(theirs, rel=1e-9)
        np.testing.assert_allclose(state.forces[np.concatenate(rows)], other.forces[: len(still)], rtol=1e-9, atol=1e-9)
        collided += theirs
    assert len(numbers) > 8
    assert collided > 10.0


@pytest.mark.filterwarnings("ignore::medyanpy.PerformanceWarning")
@pytest.mark.parametrize("box", [False, 28.0], ids=["open", "periodic"])
@pytest.mark.parametrize("force", [collisions, ellipsoids])
def test_lists_of_links_that_come_and_go_are_those_of_a_new_context(force, box):
    """Hundreds of changes: forces and energies to the bit; few lists have been built."""
    # Filaments that join move as a whole, and lists are then better made again.
    options = {"faster": 100.0, "n": 60, "box": box, "join": False}
    _, simulation = turnover(force, **options)
    context = simulation.context
    shapes, events = context._schedule.bound[-1], context.events()
    for _ in range(30):
        simulation.step(4)
        other = turnover(force, **options)[1].context
        other._set_dynamical_arrays({k: a.copy() for k, a in context._dynamical_arrays().items()}, context.step_count)
        mine, theirs = (one.get_state(positions=True, forces=True, energy=True) for one in (context, other))
        assert mine.potential_energy == theirs.potential_energy
        np.testing.assert_array_equal(mine.forces, theirs.forces)
    # So they are where an eighth has changed.
    n = len(events.heard())
    assert n > 800
    assert shapes.mended > 80
    assert shapes.builds < 0.1 * n


def test_boxes_have_room_for_collisions_of_the_longest_links():
    """Links of at most 5 nm: two of them with a radius of 1 nm reach 12 nm."""
    options = {"nodes": [straight(2, 2)], "forces": [lambda actin: mp.forces.SoftCollisions(actin, 1.0, 1.0)]}
    phrase = "with the longest link, SoftCollisions reaches 12 nm"
    refuses(ParameterError, phrase, lambda: built([growth(1.0, 1.0)], **options))


@pytest.mark.parametrize(
    ("force", "jump", "trials"),
    [
        # In steps of 0.05: 11 subunits of each of 12 filaments; seeds at k C³ in a box.
        ("a function in Python", cuts(1.0), 0.05 * 12 * 11),
        ("ellipsoids", seeds(3, 1.0, 0.0), 0.05 * 0.5**3 * 28.0**3),
        ("collisions", cuts(1.0), None),
    ],
)
def test_forces_without_a_local_energy_are_named(force, jump, trials):
    """With the number of evaluations a step; of the rest nothing is said, and warnings are errors."""
    nodes = [straight(4, 4, 3) + [2.0 * (k % 4), 2.0 * (k // 4), 0.0] for k in range(12)]
    options = {"bodies": BODIES, "box": 28.0}
    if trials is None:
        built([jump], nodes, [ON_CHAINS[force]], **options)
        return
    match = f"cannot tell what an event changes .*: {trials:.3g} trials"
    with pytest.warns(mp.PerformanceWarning, match=match):
        built([jump], nodes, [ON_CHAINS[force]], **options)
