"""Filaments that begin, grow, split, merge, shrink, dissolve, are cut and join, amid all that follows their nodes."""

from collections import Counter

import numpy as np
import pytest
from builders import look, straight

import medyanpy as mp

FASTER = 40.0


def busy(threads=1):
    """Some of each: bending, collisions, pairs, links to places that ends leave."""
    topology = mp.Topology()
    nodes = [straight(4, 4, 3) + [2.0 * (k % 4), 2.0 * (k // 4 % 5), 6.0 * (k // 20)] for k in range(40)]
    actin = topology.add_filaments(nodes, 1.0, 1.0, rise=1.0, capacity_links=12, capacity_filaments=300, name="actin")
    places = np.random.default_rng(5).uniform([-2.0, -2.0, -2.0], [10.0, 10.0, 16.0], (120, 3))
    beads = topology.add_beads(places, 1.0, 1.0, name="beads")
    system = mp.System(topology)
    for force in (
        mp.forces.FixmanPotential(actin, kT=1.0), mp.forces.FilamentBending(actin, 4.0),
        mp.forces.SoftCollisions([actin, beads], stiffness=5.0, radius=[0.6, 0.4]),
        mp.forces.SoftSphere(actin, beads, 3.0, 2.0), mp.forces.SoftSphere(actin, actin, 3.0, 2.0, name="nodes"),
        mp.forces.HarmonicTrap([actin, beads], 0.05, [4.0, 4.0, 5.0]),
        links := mp.forces.Links([], [], stiffness=2.0, length=1.0),
    ):  # fmt: skip
        system.add_force(force)
    pool = system.add_pool(mp.Pool(volume=20.0**3, concentrations={"G": 0.5}))["G"]
    lattice = actin.lattice(2.0, most_subunits=60, at_end="unbind")
    rates = {"on_rate": 5.0 * FASTER, "off_rate": 2.5 * FASTER, "subunits": (2, 5)}
    for jump in (
        mp.jumps.Polymerization(actin, pool, end="both", **rates),
        mp.jumps.Nucleation(actin, pool, 3, rate=0.2 * FASTER, dissolution_rate=4.0 * FASTER,
                            region=[[-4.0] * 3, [12.0] * 3]),
        mp.jumps.Severing(actin, 0.25 * FASTER, bending_share=0.3, most_faster=5.0),
        mp.jumps.Annealing(actin, on_rate=300.0, off_rate=0.3 * FASTER, reach=2.5),
        mp.jumps.LinkBinding(links, lattice, mp.Sites.beads(beads.beads), on_rate=0.5 * FASTER, off_rate=1.0 * FASTER),
    ):  # fmt: skip
        system.add_jump(jump)
    return mp.Simulation(system, mp.BAGOGABIntegrator(0.02 / FASTER, kT=1.0, seed=2), threads=threads)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::medyanpy.PerformanceWarning")
def test_ten_thousand_events_leave_what_a_new_context_has():
    """Energies and forces to the bit, of each force; the same on three threads; and books that close."""
    simulation = busy()
    context = simulation.context
    context.set_velocities_to_temperature(kT=1.0, seed=3)
    simulation.report_work = True
    start, middle, events, looked = look(context), None, context.events(), 0
    while len(events.heard()) < 10_000:
        simulation.step(40)
        looked += 1
        middle = look(simulation) if looked == 10 else middle
        other = busy().context
        other._set_dynamical_arrays({k: a.copy() for k, a in context._dynamical_arrays().items()}, context.step_count)
        mine, theirs = (one.get_state(positions=True, forces=True, energy=True) for one in (context, other))
        assert dict(mine.energies) == dict(theirs.energies)
        np.testing.assert_array_equal(mine.forces, theirs.forces)
    kinds = Counter((event.jump, event.kind) for event in events.heard())
    assert len(kinds) == 9, kinds
    assert min(kinds.values()) > 20, kinds
    end = look(simulation)
    parts = sum(getattr(end, p) - getattr(start, p) for p in ("heat", "shadow_work", "protocol_work", "chemical_work"))
    assert parts == pytest.approx(end.total_energy - start.total_energy, abs=1e-8)
    again = busy(threads=3)
    again.context.set_velocities_to_temperature(kT=1.0, seed=3)
    again.step(400)
    assert np.array_equal(look(again).positions, middle.positions, equal_nan=True)
    assert np.array_equal(look(again).velocities, middle.velocities, equal_nan=True)
