"""Twistable filaments: directors as beads of their own kind, in every place that beads have."""

import pickle

import numpy as np
import pytest
from builders import refuses, system_with

import medyanpy as mp
from medyanpy import forces
from medyanpy.beads.filament_constraints import parallel_directors

NODES = np.array([[0.0, 0, 0], [2.0, 0, 0], [3.0, 1.5, 0], [3.5, 2.0, 2.0], [2.0, 3.0, 2.5]])


def twisted(x, closed=False, seed=0):
    t = np.roll(x, -1, axis=0) - x if closed else np.diff(x, axis=0)
    p = np.cross(t, np.random.default_rng(seed).normal(size=t.shape))
    return p / np.linalg.norm(p, axis=1)[:, None]


def system_of(**more):
    """Beads before and after, so that no number is right by chance."""
    topology = mp.Topology()
    topology.add_beads([[9.0, 9, 9]], mass=1.0, friction=0.3)
    handle = topology.add_filament(NODES, 0.8, 0.3, directors=twisted(NODES), director_mass=[0.2, 0.3, 0.4, 0.5],
                                   director_friction=0.1, **more)  # fmt: skip
    topology.add_beads([[-9.0, 9, 9], [4.0, -9, 9]], mass=2.0, friction=0.3)
    return mp.System(topology), handle


def test_beads_follow_each_other():
    system, handle = system_of(name="actin")
    d = handle.directors
    assert handle.beads.tolist() == [1, 2, 3, 4, 5]
    assert d.beads.tolist() == [6, 7, 8, 9]
    assert (d.name, d.kind.name, d.filaments) == ("directors of actin", "directors", handle)
    assert np.array_equal(d.positions, twisted(NODES))
    context = mp.Context(system, mp.VerletIntegrator(0.01))
    state = context.get_state(positions=True)
    assert np.abs(state.positions[d.beads] - d.positions).max() < 1e-15
    assert np.array_equal(state.positions[handle.beads], NODES)
    assert system.topology.handle_of(10).positions[0].tolist() == [-9.0, 9, 9]


@pytest.mark.parametrize("closed", [False, True])
def test_parallel_directors_have_no_twist(closed):
    rng = np.random.default_rng(3)
    topology = mp.Topology()
    filaments = [np.cumsum(rng.normal(size=(n, 3)), axis=0) for n in (3, 40, 4, 129)]
    handle = topology.add_filaments(filaments, 1.0, directors="parallel", director_mass=1.0, closed=closed)
    p = handle.directors.positions
    assert np.array_equal(p, parallel_directors(handle))
    for i in range(4):
        rows = slice(*handle.kind.link_starts[i : i + 2])
        x = filaments[i]
        t = np.roll(x, -1, axis=0) - x if closed else np.diff(x, axis=0)
        t /= np.linalg.norm(t, axis=1)[:, None]
        twists = []
        q = p[rows]
        for a in range(len(t) if closed else len(t) - 1):
            b = (a + 1) % len(t)
            # Rodrigues' rotation that takes one link to the next.
            axis = np.cross(t[a], t[b])
            carried = q[a] * (t[a] @ t[b]) + np.cross(axis, q[a]) + axis * (axis @ q[a]) / (1.0 + t[a] @ t[b])
            twists.append(np.arctan2(np.cross(carried, q[b]) @ t[b], carried @ q[b]))
        assert np.abs((q * t).sum(axis=1)).max() < 1e-14
        assert np.ptp(twists) < 1e-9
        if not closed:
            assert np.abs(twists).max() < 1e-9


REFUSED = {
    "of length 0": ({"directors": [[0, 1, 0], [0, 0, 0.0], [0, 0, 1], [1, 0, 0]]},
                    "link 1 of filament 0 has a director of length 0"),
    "not perpendicular": ({"directors": np.diff(NODES, axis=0) + 0.3},
                          r"link \d of filament 0 .* cosine .* within 0.001 of 0"),
    "too few": ({"directors": twisted(NODES)[:3]}, r"directors.*\(4, 3\)"),
    "not finite": ({"directors": twisted(NODES) * [np.nan, 1, 1]}, "directors"),
    "of what is not constrained": ({"constrained": False}, "constrained=True"),
    "without mass": ({"director_mass": None}, "director_mass="),
    "of negative mass": ({"director_mass": -1.0}, "director_mass"),
    "of negative friction": ({"director_friction": [0.0, 0, -2, 0]}, r"director_friction\[2\]"),
    "unknown word": ({"directors": "straight"}, "parallel"),
    "mass alone": ({"directors": None}, "no directors"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_bad_directors_are_refused(case):
    changed, message = REFUSED[case]
    topology = mp.Topology()
    given = {"directors": twisted(NODES), "director_mass": 1.0, **changed}
    refuses((mp.TopologyError, mp.ParameterError), message, topology.add_filament, NODES, 1.0, **given)
    assert topology.n_beads == 0


def test_directors_nearly_right_are_put_right():
    rough = twisted(NODES)
    rough = 3.0 * (rough + 0.8e-3 * np.diff(NODES, axis=0) / np.linalg.norm(np.diff(NODES, axis=0), axis=1)[:, None])
    handle = mp.Topology().add_filament(NODES, 1.0, directors=rough, director_mass=1.0)
    assert np.abs(handle.directors.positions - twisted(NODES)).max() < 1e-12


def test_pickles_and_documents_hold_them():
    system, handle = system_of(fixed_nodes=[0])
    system.add_force(forces.HarmonicTrap(handle.directors, 0.5, [1.0, 0, 0]))
    for again in (pickle.loads(pickle.dumps(system)), mp.deserialize(mp.serialize(system))):
        other = again.topology.handles[1]
        assert [h.name for h in again.topology.handles] == [h.name for h in system.topology.handles]
        assert other.directors is again.topology.handles[2]
        for a, b in ((handle, other), (handle.directors, other.directors)):
            for name in ("positions", "mass", "friction", "beads"):
                assert getattr(a, name).tobytes() == getattr(b, name).tobytes()
        assert again.forces[0].handles == (other.directors,)


BETWEEN_PLACES = {
    "pairs": lambda h: forces.SoftSphere(h, h.directors, 1.0, 1.0),
    "pairs by number": lambda h: forces.WCA(h.directors.beads, h.beads, 1.0, 1.0),
    "links": lambda h: forces.Links(h.directors, h.beads[:4], 1.0),
    "links by number": lambda h: forces.Links(h.beads[:4], h.directors.beads, 1.0),
    "weighted sites": lambda h: forces.SoftSphere(mp.Sites.weighted([[1, h.directors.beads[0]]], [[0.5, 0.5]]),
                                                  mp.Sites.beads(h), 1.0, 1.0),
}  # fmt: skip


@pytest.mark.parametrize("case", BETWEEN_PLACES)
def test_forces_between_places_refuse_them(case):
    system, handle = system_of()

    def use():
        system.add_force(BETWEEN_PLACES[case](handle))
        mp.Context(system, mp.VerletIntegrator(0.01))

    refuses(mp.TopologyError, r"bead 6 belongs to .*directions without a place in space", use)


def test_temperature_counts_them_with_their_filaments():
    """Three degrees of freedom a director, less unit length and right angle. 4 000 filaments find 1.6 %."""
    n = 4000
    x = np.array([[0.0, 0, 0], [1.0, 0, 0], [1.0, 1.0, 0]])
    topology = mp.Topology()
    handle = topology.add_filaments(np.tile(x, (n, 1)), 1.0, 0.3, starts=3 * np.arange(n + 1), directors="parallel",
                                    director_mass=0.4)  # fmt: skip
    assert handle.degrees_of_freedom + handle.directors.degrees_of_freedom == n * (9 - 2 + 2 * (3 - 2))
    context = mp.Context(mp.System(topology), mp.SplittingIntegrator("BAOAB", 0.01, kT=1.0))
    context.set_velocities_to_temperature(kT=2.5, seed=1)
    state = context.get_state(velocities=True, energy=True)
    assert set(state.temperatures) == {"filaments"}
    freedom = handle.degrees_of_freedom
    measured = 2.0 * state.kinetic_energy / freedom
    assert abs(measured / 2.5 - 1.0) < 4.9 * np.sqrt(2.0 / freedom)
    assert state.temperatures["filaments"] == pytest.approx(measured / mp.units.boltzmann)


def test_momentum_leaves_them_out():
    """In a run without friction, the temperature is that of motion relative to the centre of mass."""
    topology = mp.Topology()
    handle = topology.add_filament(NODES, 1.0, directors="parallel", director_mass=5.0)
    context = mp.Context(mp.System(topology), mp.VerletIntegrator(0.01))
    v = np.zeros((topology.n_beads, 3))
    v[handle.beads] = [3.0, -4.0, 5.0]
    context.set_velocities(v)
    assert abs(context.get_state(energy=True).temperature) < 1e-9 * 50.0 / mp.units.boltzmann
    turning = np.cross(NODES - NODES.mean(axis=0), [0.3, 0.2, 0.1])
    v[handle.beads] += turning - turning.mean(axis=0)
    v[handle.directors.beads] = np.cross(handle.directors.positions, [0.3, 0.2, 0.1])
    context.set_velocities(v)
    energy = 0.5 * (turning**2).sum() + 2.5 * (v[handle.directors.beads] ** 2).sum()
    state = context.get_state(energy=True)
    freedom = 3 * 5 - 4 + 4 - 3
    assert state.temperature == pytest.approx(2.0 * energy / freedom / mp.units.boltzmann)


def test_a_strain_leaves_them_alone():
    """The virial has no part from forces on directors, wherever the origin of forces on places."""
    system, handle = system_of()
    system.add_force(forces.HarmonicTrap(handle.directors, 3.0, [1.0, 2.0, 3.0]))
    context = mp.Context(system, mp.VerletIntegrator(0.01))
    state = context.get_state(virial=True, forces=True)
    assert np.abs(state.forces).max() > 1.0
    assert not state.virials["HarmonicTrap"].any()


def test_minimisation_turns_directors_and_moves_nodes_alike():
    """Whatever the unit of length: of a filament a thousand times as large it takes the same iterations."""
    ends = []
    for scale in (1.0, 1000.0):
        topology = mp.Topology()
        handle = topology.add_filament(scale * NODES, 1.0, directors=twisted(NODES), director_mass=scale**2)
        system = system_with(topology, forces.HarmonicTrap(handle.directors, 5.0, [0.0, 0.0, 1.0]))
        goal = scale * (NODES + [[0.0, 0, 0], [0, 0.2, 0], [0, 0, 0.3], [0.1, 0, 0], [0, 0.5, 0]])
        system.add_force(forces.HarmonicTrap(handle, 1.0 / scale**2, goal))
        simulation = mp.Simulation(system, mp.VerletIntegrator(0.01))
        simulation.minimize_energy(tolerance=1e-6 / scale)
        x = simulation.context.get_state(positions=True, energy=True)
        nodes, p = x.positions[handle.beads], x.positions[handle.directors.beads]
        d = np.diff(nodes, axis=0)
        assert np.abs(np.linalg.norm(d, axis=1) / handle.link_lengths - 1.0).max() < 1e-9
        assert np.abs(np.linalg.norm(p, axis=1) - 1.0).max() < 1e-9
        assert np.abs((d * p).sum(axis=1) / handle.link_lengths).max() < 1e-9
        # No step along the constraints is left to take: directors are as near to z as right angles allow.
        t = d / handle.link_lengths[:, None]
        best = np.array([0.0, 0, 1.0]) - t * t[:, 2:]
        assert np.abs(p - best / np.linalg.norm(best, axis=1)[:, None]).max() < 0.2
        ends.append((x.potential_energy, nodes / scale, p))
    assert ends[0][0] == pytest.approx(ends[1][0], rel=1e-6)
    assert np.abs(ends[0][1] - ends[1][1]).max() < 1e-3
    assert np.abs(ends[0][2] - ends[1][2]).max() < 1e-3


def test_positions_are_settled_and_velocities_made_tangent():
    system, handle = system_of()
    context = mp.Context(system, mp.VerletIntegrator(0.01))
    x = context.get_state(positions=True).positions.copy()
    rng = np.random.default_rng(1)
    x[handle.beads] += rng.normal(0.0, 1e-3, (5, 3))
    x[handle.directors.beads] += rng.normal(0.0, 1e-3, (4, 3))
    context.set_positions(x)
    context.set_velocities(rng.normal(size=x.shape))
    state = context.get_state(positions=True, velocities=True)
    d, p = np.diff(state.positions[handle.beads], axis=0), state.positions[handle.directors.beads]
    u, w = np.diff(state.velocities[handle.beads], axis=0), state.velocities[handle.directors.beads]
    assert np.abs(np.linalg.norm(d, axis=1) - handle.link_lengths).max() < 1e-9
    assert np.abs(np.linalg.norm(p, axis=1) - 1.0).max() < 1e-9
    assert np.abs((d * p).sum(axis=1)).max() < 1e-9
    assert np.abs((p * w).sum(axis=1)).max() < 1e-9
    assert np.abs((d * u).sum(axis=1)).max() < 1e-9
    assert np.abs((d * w + u * p).sum(axis=1)).max() < 1e-9


@pytest.mark.unstable
def test_a_fault_names_link_and_filament():
    system, handle = system_of(name="actin")
    system.add_force(forces.HarmonicTrap(handle.directors, 1.0, [0.0, 0.0, 1e300]))
    context = mp.Context(system, mp.VerletIntegrator(1e160))
    with pytest.raises(mp.SimulationError) as caught:
        context.step(5)
    assert caught.value.object in ("actin", "directors of actin")
    assert handle.directors.kind.describe(8) == "link 2 of filament 0"


def test_pictures_and_trajectories_leave_them_out(tmp_path):
    system, handle = system_of()
    simulation = mp.Simulation(system, mp.SplittingIntegrator("BAOAB", 0.01, kT=1.0))
    simulation.reporters.append(mp.reporters.TrajectoryReporter(tmp_path / "run.h5", 1))
    simulation.step(2)
    del simulation.reporters[:]
    with mp.Trajectory(tmp_path / "run.h5") as trajectory:
        kept = trajectory.handles["filament"]
        assert np.array_equal(kept.links, handle.links)
        assert not trajectory.handles["directors of filament"].in_space
        assert kept.in_space
        frame = trajectory[-1]
        x = simulation.context.get_state(positions=True).positions
        assert np.array_equal(frame.positions, x)
        drawn = mp.visualize.draw(frame, size=(150, 120))
        assert [a.get_label() for a in drawn.axes[0].get_children() if a.get_label() == "directors of filament"] == []
