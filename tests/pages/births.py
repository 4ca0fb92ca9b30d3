"""Further laws of the reservoir of docs/births.md, whose script is the module `page`."""

import pathlib
import tempfile
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from page import TrapReservoir, balls, simulation

import medyanpy as mp


def make(activity, pairs=False, seed=1, capacity=80, threads=1, **options):
    """The page's system, with forces between beads, capacity, threads and arguments of the jump."""
    topology = mp.Topology()
    balls = topology.add_balls(np.empty((0, 3)), 0.4, mass=2.0, friction=1.0, capacity=capacity)
    system = mp.System(topology)
    trap = system.add_force(mp.forces.HarmonicTrap(balls, 1.0, [0.0, 0.0, 0.0]))
    if pairs:
        system.add_force(mp.forces.SoftSphere(balls, balls, 20.0))
        system.add_force(mp.forces.SoftCollisions(balls, 10.0))
        system.add_force(mp.forces.Coulomb(balls, 1.0, constant=0.1))
    system.add_jump(TrapReservoir(balls, trap, activity, rate=2.0, box=[[-6.0] * 3, [6.0] * 3], **options))
    return balls, mp.Simulation(system, mp.BAGOGABIntegrator(0.1, kT=1.0, seed=seed), threads=threads)


# Replica exchange, in temperature and activity: swaps compare the weights z^n, too.
jump, state = simulation.system["TrapReservoir"], simulation.context.get_state(positions=True)
assert jump.log_weight(None, state, 1.0) == len(state.living(balls)) * np.log(jump.activity)
ladder = [{"kT": 1.0, "TrapReservoir.activity": 0.4}, {"kT": 1.5, "TrapReservoir.activity": 0.3}]
swaps = mp.ensemble.replica_exchange(
    lambda seed: make(0.4, seed=seed)[1], ladder=ladder, every=10, n_exchanges=40, seed=1,
    executor=ThreadPoolExecutor(1),
)
assert 0.0 < swaps.acceptance[0] < 1.0

# The energy of created and removed beads is heat, and the balance closes.
end = simulation.context.get_state(energy=True, positions=True)
works = [end.heat, end.shadow_work, end.protocol_work, end.chemical_work]
largest = max(map(abs, [*works, end.total_energy]))
assert abs(end.total_energy - sum(works)) < 1e-12 * largest
assert end.counts["TrapReservoir"].accepted > 10_000
# Ids are unique.
assert end.next_id > 5_000
assert len(np.unique(end.ids[end.alive])) == end.alive.sum()

# Forces are those of a new context with the present beads.
balls, simulation = make(0.3, pairs=True, threads=2)
touching = 0.0
for _ in range(30):
    simulation.step(7)
    state = simulation.context.get_state(positions=True, velocities=True, forces=True, energy=True)
    _, fresh = make(0.3, pairs=True)
    fresh.context.set_state(state)
    again = fresh.context.get_state(positions=True, forces=True, energy=True)
    assert again.energies == state.energies
    assert (again.ids == state.ids).all()
    assert np.array_equal(again.forces, state.forces, equal_nan=True)
    kinetic = again.temperature * 3 * again.alive.sum() * mp.units.boltzmann / 2.0
    assert not again.alive.any() or np.isclose(kinetic, state.kinetic_energy)
    touching += min(state.energies["SoftSphere"], state.energies["SoftCollisions"])
assert touching > 0.0


def numbers_of(simulation):
    state = simulation.context.get_state(positions=True, velocities=True, forces=True)
    return [state.ids, state.positions, state.velocities, state.forces, state.step]


def same(one, other):
    return all(np.array_equal(a, b, equal_nan=True) for a, b in zip(numbers_of(one), numbers_of(other), strict=True))


folder = pathlib.Path(tempfile.mkdtemp())
_, one = make(0.3, pairs=True)
_, other = make(0.3, pairs=True, threads=2)
one.step(60)
for n in (20, 1, 39):
    other.step(n)
assert same(one, other)
one.save_checkpoint(folder / "run")
third = mp.Simulation.resume(folder / "run", threads=2)
_, fourth = make(0.3, pairs=True)
fourth.load_checkpoint(folder / "run")
for simulation in (one, third, fourth):
    simulation.step(25)
assert same(one, third)
assert same(one, fourth)

# A fault: back at the last good state, with its step and beads, and on to the same results.
def breaks(x):
    if len(x) > 9:
        raise ValueError("enough")
    return 0.0, np.zeros_like(x)


balls, faulty = make(0.3, pairs=True)
with faulty.topology.edit():
    force = faulty.system.add_force(mp.forces.PythonForce(breaks, beads=balls))
_, twin = make(0.3, pairs=True)
with pytest.raises(mp.SimulationError, match="enough") as caught:
    faulty.step(10_000)
assert faulty.current_step == caught.value.step > 20
twin.step(faulty.current_step)
assert same(faulty, twin)
with faulty.topology.edit():
    faulty.system.remove_force(force)
for simulation in (faulty, twin):
    simulation.step(30)
assert same(faulty, twin)

# No free row: the message gives the capacity and the remedy, with which the run continues.
balls, small = make(0.3, capacity=3, name="reservoir")
with pytest.raises(mp.SimulationError, match=r"all 3 rows of these beads are taken.*reserve") as caught:
    small.step(2000)
assert caught.value.jump == "reservoir"
assert caught.value.object == "balls"
assert small.context.get_state().alive.sum() <= 3
with small.topology.edit():
    # The handle has the present beads.
    assert len(balls) == small.topology.n_beads - len(balls._inactive) > 0
    balls.reserve(50)
small.step(200)

# Ids are never reused: after the last of them no bead is created.
last, source = make(0.3)
topology = source.topology
numbering = {"n_beads": 80, "next_id": 2**48 - 4, "handles": {"balls": {"beads": [], "ids": [], "asleep": range(80)}}}
del source
topology.number(numbering)
system = mp.System(topology)
trap = system.add_force(mp.forces.HarmonicTrap(last, 1.0, [0.0, 0.0, 0.0]))
system.add_jump(TrapReservoir(last, trap, 0.3, 2.0, [[-6.0] * 3, [6.0] * 3]))
source = mp.Simulation(system, mp.BAGOGABIntegrator(0.1, kT=1.0, seed=1))
with pytest.raises(mp.SimulationError, match=r"all 2\*\*48 ids"):
    source.step(2000)
assert source.context.get_state().ids.max() == 2**48 - 1

# An edit keeps created beads.
before = small.context.get_state(positions=True, velocities=True)
with small.topology.edit():
    more = small.topology.add_beads([[50.0, 0.0, 0.0]], mass=1.0, friction=1.0)
after = small.context.get_state(positions=True, velocities=True)
n = len(before.ids)
assert np.array_equal(after.ids[:n], before.ids)
assert np.array_equal(after.positions[:n], before.positions, equal_nan=True)
assert balls.beads.tolist() == after.living(balls).tolist() or set(balls.beads) == set(after.living(balls))

two = [[0.0, 0, 0], [1.0, 0, 0]]
for add, center, text in [
    (lambda t: t.add_filament(two, 1.0, 1.0, capacity=9), two[0], "whose beads are joined"),
    (lambda t: t.add_beads(two, [1.0, 2.0], 1.0, capacity=9), two[0], "do not all have the same mass"),
    (lambda t: t.add_beads(two, 1.0, 1.0, capacity=9), two, "its center is not the same for all"),
]:
    topology = mp.Topology()
    beads = add(topology)
    system = mp.System(topology)
    trap = system.add_force(mp.forces.HarmonicTrap(beads, 1.0, center))
    system.add_jump(TrapReservoir(beads, trap, 0.3, 1.0, [[-6.0] * 3, [6.0] * 3]))
    with pytest.raises(mp.MedyanError, match=text):
        mp.Context(system, mp.BAGOGABIntegrator(0.1, kT=1.0))
