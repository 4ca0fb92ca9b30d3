"""Constraints written by a user that are added to a running simulation."""

import copy

import numpy as np
import pytest
from builders import look, refuses, system_with

import medyanpy as mp
from medyanpy.errors import TopologyError

DISTANCE = "(x1-x2)^2 + (y1-y2)^2 + (z1-z2)^2 - d^2"


def scene(**box):
    """Beads, twistable filaments, and walkers on a sphere, of which some are held from the start."""
    rng, topology = np.random.default_rng(2), mp.Topology()
    beads = topology.add_beads(rng.normal(0.0, 3.0, (8, 3)), mass=np.linspace(1.0, 3.0, 8), friction=0.5, name="beads")
    line = np.arange(4)[:, None] * [1.0, 0.0, 0.0]
    topology.add_filaments([line + [0, 6.0, 0], line + [0, 9.0, 0]], 1.0, 0.5, directors="parallel", director_mass=0.5,
                           director_friction=0.3, name="chains")  # fmt: skip
    surface = mp.surfaces.Sphere(3.0, center=[0.0, 30.0, 0.0])
    topology.add_surface_points(surface, surface.sample(3, seed=1), mass=1.0, friction=0.4, name="walkers")
    sheet = mp.TriangleMesh.icosphere(4.0, 1).translated([0.0, 60.0, 0.0])
    vesicle = topology.add_membrane(sheet, vertex_mass=1.0, vertex_friction=0.3, name="vesicle")
    d = np.linalg.norm(beads.positions[0] - beads.positions[1])
    topology.constrain(DISTANCE, beads.beads[[0, 1]], d=d, name="first")
    system = system_with(topology, mp.forces.HarmonicTrap(beads, 0.3, [0.0, 0.0, 0.0]),
                         mp.forces.MembraneEdgeSprings(vesicle, 8.0, 2.4), **box)  # fmt: skip
    simulation = mp.Simulation(system, mp.SplittingIntegrator("BAOAB", 0.02, kT=0.5, seed=3), threads=1)
    simulation.report_work = True
    simulation.context.set_velocities_to_temperature(kT=0.5, seed=5)
    simulation.step(20)
    return simulation


def reach(x, i, j):
    return float(np.linalg.norm(x[i] - x[j]))


def tie(simulation, *names, name="tie"):
    """A rod between the first two beads of one name, or the first of several, at their distance of now."""
    topology, x = simulation.topology, look(simulation).positions
    ends = topology[names[0]].beads[2:4] if len(names) == 1 else [topology[one].beads[0] for one in names]
    with topology.edit():
        return topology.constrain(DISTANCE, [ends], d=reach(x, *ends), name=name)


PAIRS = [("beads",), ("beads", "chains"), ("chains", "walkers"), ("beads", "walkers")]


@pytest.mark.parametrize("names", PAIRS)
def test_they_hold_from_then_on(names):
    """Positions, and velocities at once; what is not joined keeps its bits, the momentum is the same."""
    simulation = scene()
    before = look(simulation)
    made = tie(simulation, *names)
    after = look(simulation)
    i, j = made.members[0]
    d, topology = made.parameters["d"], simulation.topology
    one, slope = after.positions[i] - after.positions[j], after.velocities[i] - after.velocities[j]
    assert abs(one @ slope) < 1e-9 * d
    joined = topology.joint.beads_with({made})
    rest = np.setdiff1d(np.arange(topology.n_beads), joined)
    assert {i, j} <= set(joined.tolist())
    assert len(rest) >= 40
    for part in ("positions", "velocities"):
        assert (getattr(after, part)[rest] == getattr(before, part)[rest]).all()
    np.testing.assert_allclose(after.positions, before.positions, atol=1e-9)
    if names == ("beads",):
        mass = topology["beads"].mass
        p, q = (mass @ state.velocities[topology["beads"].beads] for state in (before, after))
        np.testing.assert_allclose(q, p, atol=1e-12)
    assert after.energies == pytest.approx(before.energies, rel=1e-12)
    lost = after.kinetic_energy - before.kinetic_energy
    assert lost < 0.0
    assert after.protocol_work - before.protocol_work == pytest.approx(lost, rel=1e-9)
    for _ in range(30):
        simulation.step(5)
        assert reach(look(simulation).positions, i, j) == pytest.approx(d, rel=1e-9)


@pytest.mark.parametrize("names", PAIRS)
def test_a_simulation_made_at_once_goes_the_same_way(names):
    edited = scene()
    tie(edited, *names)
    state = look(edited)
    whole = mp.Simulation(copy.deepcopy(edited.system), mp.SplittingIntegrator("BAOAB", 0.02, kT=0.5, seed=3))
    whole.context.set_state(state)
    for one in (edited, whole):
        one.step(20)
    for part in ("positions", "velocities"):
        np.testing.assert_allclose(getattr(look(edited), part), getattr(look(whole), part), rtol=1e-8, atol=1e-8)


def test_checkpoints_and_documents_have_them(tmp_path):
    """After two edits, in one of which beads come and go too; the same bits as without the restart."""
    simulation = scene()
    tie(simulation, "beads", "chains")
    simulation.step(10)
    topology, x = simulation.topology, look(simulation).positions
    beads, walkers = topology["beads"], topology["walkers"]
    with topology.edit():
        new = beads.add(x[walkers.beads[1:2]] + [0.0, 4.0, 0.0], 1.0, 0.5)
        topology.constrain(DISTANCE, [[new[0], walkers.beads[1]], [beads.beads[5], beads.beads[6]]],
                           d=[4.0, reach(x, *beads.beads[5:7])], name="late")  # fmt: skip
        beads.remove(2)
    simulation.step(10)
    simulation.save_checkpoint(tmp_path / "run.checkpoint")
    again = mp.Simulation.resume(tmp_path / "run.checkpoint", threads=2)
    assert [handle.count for handle in again.topology.handles if handle.name in ("first", "tie", "late")] == [1, 1, 2]
    copied = mp.deserialize(mp.serialize(simulation.system)).topology
    for name in ("first", "tie", "late"):
        assert copied[name].members.tolist() == topology[name].members.tolist()
    for one in (simulation, again):
        one.step(20)
    one, other = look(simulation), look(again)
    for part in ("positions", "velocities", "forces"):
        assert np.array_equal(getattr(one, part), getattr(other, part), equal_nan=True)


def test_in_a_box_that_has_changed():
    simulation = scene(box=(200.0,) * 3)
    simulation.context.set_box((190.0, 205.0, 200.0), scale=False)
    tie(simulation, "beads", "chains")
    simulation.context.set_box((180.0, 200.0, 200.0), scale=False)
    simulation.step(10)
    again = mp.deserialize(mp.serialize(simulation.system))
    mp.Context(again, mp.SplittingIntegrator("BAOAB", 0.02, kT=0.5, seed=3))


def test_they_have_to_hold_where_beads_are_now():
    """Not where they started; and a refused edit leaves nothing behind."""
    simulation = scene()
    topology = simulation.topology
    ends = topology["beads"].beads[2:4]
    start = topology["beads"].positions
    d = reach(start, 2, 3)
    before = look(simulation)
    assert abs(reach(before.positions, *ends) - d) > 0.1

    def constrained(**more):
        with topology.edit():
            topology.constrain(DISTANCE, [ends], **more)
            if "length" in more:
                raise mp.ParameterError("changed my mind")

    refuses(TopologyError, "does not hold where they start", constrained, d=d)
    now = reach(before.positions, *ends)
    refuses(mp.ParameterError, "changed my mind", constrained, d=now, length=1.0)
    assert (topology["beads"].positions == start).all()
    assert "constraints" not in topology
    after = look(simulation)
    assert (after.positions == before.positions).all()
    assert (after.velocities == before.velocities).all()
    refuses(TopologyError, r"in use by a Context; .* inside `with topology\.edit", topology.constrain, DISTANCE, [ends],
            d=now)  # fmt: skip
    # Where they nearly hold beads are moved.
    constrained(d=now * (1.0 + 5e-4))
    assert reach(look(simulation).positions, *ends) == pytest.approx(now * (1.0 + 5e-4), rel=1e-10)
    refuses(TopologyError, "depends where beads start on", constrained, d=now)
    simulation.step(5)


def test_beads_can_be_tied_loose_and_tied_again():
    simulation = scene()
    for k in range(3):
        made = tie(simulation, "beads", name=f"tie {k}")
        d = made.parameters["d"]
        simulation.step(5)
        assert reach(look(simulation).positions, 2, 3) == pytest.approx(d, rel=1e-10)
        with simulation.topology.edit():
            made.remove(0)
        simulation.step(5)
        assert abs(reach(look(simulation).positions, 2, 3) - d) > 1e-3
