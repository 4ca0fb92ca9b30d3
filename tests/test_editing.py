"""Adding to a running simulation: what was there goes on as if nothing had happened, and what is new is as if it had
been there from the start; or all is refused and nothing has changed."""

import copy
import gc
import threading

import numpy as np
import pytest
from builders import balanced, look, orients, refuses, system_with

import medyanpy as mp
from medyanpy import forces
from medyanpy.testing import check_mean, check_variance, thermal

pytestmark = pytest.mark.frictionless


# Each adds beads of one kind to a topology, with its first bead near `x`, and returns a force on them.


def add_beads(topology, x, name):
    beads = topology.add_beads(x + np.arange(3)[:, None] * [1.0, 0.5, 0.0], mass=1.5, friction=0.4, name=name)
    return forces.HarmonicBonds([beads.beads[:2]], 2.0, 1.0, name=f"bonds of {name}")


def add_balls(topology, x, name):
    balls = topology.add_balls(x + np.arange(3)[:, None] * [0.9, 0.0, 0.0], 0.5, mass=1.0, friction=0.3, name=name)
    return forces.SoftSphere(balls, balls, 3.0, name=f"spheres of {name}")


def add_filaments(topology, x, name):
    nodes = [x + np.arange(5)[:, None] * [1.0, 0.0, 0.0] + [0.0, k, 0.0] for k in range(2)]
    chains = topology.add_filaments(nodes, node_mass=1.0, node_friction=0.5, name=name)
    return forces.FilamentBending(chains, 3.0, name=f"bending of {name}")


def add_twistable(topology, x, name):
    nodes = x + np.arange(5)[:, None] * [1.0, 0.0, 0.0]
    chain = topology.add_filament(nodes, node_mass=1.0, node_friction=0.5, directors="parallel", director_mass=0.5,
                                  director_friction=0.2, name=name)  # fmt: skip
    return forces.FilamentTwisting(chain, 2.0, 0.2, name=f"twisting of {name}")


def add_bodies(topology, x, name):
    rng = np.random.default_rng(4)
    bodies = topology.add_rigid_bodies(x + rng.normal(0.0, 1.0, (3, 3)), orients(rng, 3), 1.0, [1.0, 1.5, 2.0],
                                       (0.4, 0.6), name=name)  # fmt: skip
    return forces.HarmonicTrap(bodies, 0.3, list(x), name=f"trap of {name}")


def add_rod(topology, x, name):
    nodes, frames = mp.rods.uniform(6, 0.5, [0.0, 0.1, 0.0])
    friction = {"friction": 1.0, "rotational_friction": 1.0}
    rod = topology.add_rod(nodes + x, frames, 0.5, 2.0, [1.0, 1.0, 1.5], name=name, **friction)
    return forces.RodElasticity(rod, (3.0, 4.0), 5.0, (2.0, 1.0), 3.0, name=f"elasticity of {name}")


def add_walkers(topology, x, name):
    surface = mp.surfaces.Sphere(3.0, center=list(x))
    walkers = topology.add_surface_points(surface, x + np.array([[0.0, 0, 3.0], [3.0, 0, 0]]), 1.0, 0.4, name=name)
    return forces.UniformField(walkers, [0.3, 0.0, -0.2], name=f"field of {name}")


def add_membrane(topology, x, name):
    mesh = mp.TriangleMesh.icosphere(4.0, 1).translated(x)
    membrane = topology.add_membrane(mesh, vertex_mass=1.0, vertex_friction=0.3, name=name)
    topology.add_intriangle_points(membrane, 10, mass=0.7, friction=0.3, seed=5, name=f"points of {name}")
    return forces.MembraneEdgeSprings(membrane, 8.0, name=f"springs of {name}")


KINDS = {"beads": add_beads, "balls": add_balls, "filaments": add_filaments, "twistable": add_twistable,
         "bodies": add_bodies, "rod": add_rod, "walkers": add_walkers, "membrane": add_membrane}  # fmt: skip
WORDS = ["JBAGOGABJ", "OBAGABO", "BAGAB"]


def simulation_of(kinds, word="JBAGOGABJ", threads=1, timestep=0.02, draw=True):
    """All these kinds, 100 nm apart."""
    topology = mp.Topology()
    system = mp.System(topology)
    for k, kind in enumerate(kinds):
        system.add_force(KINDS[kind](topology, np.array([100.0 * k, 0.0, 0.0]), kind))
    integrator = mp.SplittingIntegrator(word, timestep, kT=thermal(word, 1.0), seed=6)
    simulation = mp.Simulation(system, integrator, threads=threads)
    if draw:
        simulation.context.set_velocities_to_temperature(kT=1.0, seed=2)
    return simulation


def grow(simulation, kind, where=(0.0, 500.0, 0.0)):
    number = sum(h.name.startswith(f"new {kind}") for h in simulation.topology.handles)
    with simulation.topology.edit():
        name = f"new {kind}" + (f" {number}" if number else "")
        simulation.system.add_force(KINDS[kind](simulation.topology, np.array(where), name))


def parts(state, topology, handles):
    """Everything of some handles."""
    for handle in handles:
        for column in handle.kind.columns:
            rows = handle.beads if column.of == "beads" else handle.rows
            yield f"{handle.name}: {column.name}", state.column(column.name)[rows]
        yield f"{handle.name}: forces", state.forces[handle.beads]


def assert_same(one, other, names):
    a, b = ({n: v for n, v in parts(look(s), s.topology, [s.topology[n] for n in names])} for s in (one, other))
    assert a.keys() == b.keys()
    assert [n for n in a if not np.array_equal(a[n], b[n])] == []


ALL = list(KINDS)


@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("new", ALL)
def test_existing_beads_keep_their_bits(new, word):
    """Whatever is added, which shifts places in memory; before the first step, in the middle, and twice."""
    names = [h.name for h in simulation_of(ALL).topology.handles]
    alone, edited = simulation_of(ALL, word), simulation_of(ALL, word, threads=2)
    for n, edits in ((0, 1), (7, 1), (5, 0), (3, 2)):
        for one in (alone, edited):
            one.step(n)
        for k in range(edits):
            grow(edited, new, (0.0, 1000.0 * (n + 1) + 200.0 * k, 0.0))
        assert_same(alone, edited, names)
        # Temperatures are those of the last O, also for who looks between.
        theirs = look(edited).temperatures
        assert look(alone).temperatures.items() <= theirs.items()
    for one in (alone, edited):
        one.step(10)
    assert_same(alone, edited, names)
    assert edited.current_step == alone.current_step == 25
    assert edited.context.time == alone.context.time
    assert edited.topology.n_beads > alone.topology.n_beads


@pytest.mark.parametrize("new", ALL)
def test_new_beads_are_as_if_present_before(new):
    """Energies, forces and what follows are those of a simulation made at once, from the same state."""
    edited = simulation_of(ALL)
    edited.step(9)
    grow(edited, new)
    state = look(edited)
    assert len(state.positions) == edited.topology.n_beads
    whole = mp.Simulation(copy.deepcopy(edited.system), mp.SplittingIntegrator("JBAGOGABJ", 0.02, kT=1.0, seed=6))
    whole.context.set_state(state)
    same = look(whole)
    assert state.energies == same.energies
    assert np.array_equal(state.forces, same.forces)
    assert f"new {new}" in state.temperatures
    for one in (edited, whole):
        one.step(20)
    # Set from outside, velocities are projected onto what constraints leave once more.
    for part in ("positions", "velocities"):
        np.testing.assert_allclose(getattr(look(edited), part), getattr(look(whole), part), rtol=1e-9, atol=1e-9)
    moved = np.abs(look(edited).positions - state.positions)[edited.topology[f"new {new}"].beads]
    assert (moved > 0.0).any(axis=1).all()


def test_new_and_old_act_on_each_other():
    """Links from what was there to what is new; momentum is conserved, and energy by a word without a thermostat."""
    simulation = simulation_of(["filaments"], "BAB", timestep=0.005)
    simulation.step(20)
    before = look(simulation)
    old = simulation.topology["filaments"]
    with simulation.topology.edit():
        new = simulation.topology.add_filament(before.positions[old.beads[:5]] + [0.0, -1.0, 0.0], node_mass=1.0,
                                               node_friction=0.5, name="new")  # fmt: skip
        simulation.system.add_force(forces.FilamentBending(new, 3.0))
        links = simulation.system.add_force(forces.Links(old.beads[:5], new.beads, stiffness=2.0, length=0.7))
    start = look(simulation)
    assert start.energies["Links"] == pytest.approx(5 * 0.5 * 2.0 * 0.3**2, rel=1e-9)
    assert (start.velocities[new.beads] == 0.0).all()
    simulation.step(2000)
    end = look(simulation)
    assert np.ptp(links.lengths(end)) > 0.01
    np.testing.assert_allclose(end.velocities.sum(axis=0), start.velocities.sum(axis=0), atol=1e-11)
    assert end.total_energy == pytest.approx(start.total_energy, abs=2e-3 * start.kinetic_energy)


def test_velocities_of_what_is_new_are_thermal():
    """Maxwell's distribution, its variance to 9 %; in the planes of triangles and along what constraints leave."""
    simulation = simulation_of(["membrane", "filaments"], threads=2)
    simulation.step(50)
    membrane = simulation.topology["membrane"]
    with simulation.topology.edit():
        beads = simulation.topology.add_beads(np.zeros((7000, 3)), mass=2.0, friction=1.0)
        points = simulation.topology.add_intriangle_points(membrane, 3000, mass=0.5, friction=1.0, seed=8, name="more")
        nodes = [[[k, 0.0, 0.0], [k, 1.0, 0.0]] for k in range(2000)]
        rods = simulation.topology.add_filaments(nodes, node_mass=1.0, node_friction=1.0, name="rods")
    state = look(simulation)
    v = state.velocities[beads.beads]
    check_variance("beads", float((v**2).sum()), v.size, 0.5, sees=0.085)
    check_mean("beads", v.ravel(), 0.0, sees=0.04)
    triangles = state.intriangle.triangles[points.rows]
    corners = state.positions[membrane.beads][membrane.mesh.faces[triangles]]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normals /= np.linalg.norm(normals, axis=1)[:, None]
    v = state.velocities[points.beads]
    assert np.abs(np.sum(normals * v, axis=1)).max() < 1e-12
    check_variance("points", float((v**2).sum()), 2 * len(v), 2.0, sees=0.16)
    v = state.velocities[rods.beads].reshape(-1, 2, 3)
    assert np.abs(v[:, 1, 1] - v[:, 0, 1]).max() < 1e-9
    check_variance("rods", float((v**2).sum()), 5 * len(v), 1.0, sees=0.12)


def test_links_events_and_work_resume():
    """What a jump has bound stays bound, who listens hears on, and the books close over the edit."""

    def run(edit, tmp=None):
        rng = np.random.default_rng(2)
        topology = mp.Topology()
        beads = topology.add_beads(rng.normal(0.0, 3.0, (40, 3)), mass=1.0, friction=1.0, name="beads")
        system = system_with(topology, forces.HarmonicTrap(beads, 0.05, [0.0, 0.0, 0.0]))
        links = system.add_force(forces.Links([], [], stiffness=2.0, length=1.5))
        system.add_jump(mp.jumps.LinkBinding(links, beads, off_rate=1.0, on_rate=3.0, rates=mp.jumps.Bell(2.0)))
        simulation = mp.Simulation(system, mp.BAGOGABIntegrator(0.02, kT=1.0, seed=3), threads=1)
        simulation.context.runaway = 25.0
        simulation.report_work = True
        heard = simulation.context.events()
        start = look(simulation)
        simulation.step(300)
        before = look(simulation)
        if edit:
            with topology.edit():
                more = topology.add_beads(rng.normal(0.0, 3.0, (15, 3)) + [0.0, 900.0, 0.0], 1.0, friction=1.0)
                other = system.add_force(forces.Links([], [], stiffness=1.0, length=1.0, name="others"))
                system.add_jump(mp.jumps.LinkBinding(other, more, off_rate=1.0, on_rate=5.0, name="new"))
            now = look(simulation)
            assert np.array_equal(now.links(links).bound[0], before.links(links).bound[0])
            assert now.heat == before.heat
            assert now.protocol_work - before.protocol_work == pytest.approx(
                now.total_energy - before.total_energy, rel=1e-12
            )
        simulation.step(300)
        end = look(simulation)
        balanced(end, start)
        assert simulation.context.runaway == 25.0
        return simulation, links, [e for e in heard.heard() if e[2] == "LinkBinding"]

    (alone, links, events), (edited, others, more) = run(False), run(True)
    assert len(events) > 100
    assert events == more
    one, other = look(alone), look(edited)
    assert one.chemical_work != 0.0
    assert np.array_equal(one.links(links).bound[0], other.links(others).bound[0])
    assert one.counts["LinkBinding"] == other.counts["LinkBinding"]
    assert other.counts["new"].accepted > 0
    # Nobody holds what the first context made of them; who stops to listen is not served.
    gc.collect()
    assert not any(o.recording for o in edited.context._schedule.jumping.operations)


def test_time_continues_where_steps_have_changed_and_coefficients_are_kept():
    """Those of friction may have been computed elsewhere, where last bits differ: a checkpoint holds them."""
    simulation = simulation_of(["beads", "filaments"])
    simulation.step(5)
    simulation.integrator.set(timestep=0.01)
    simulation.step(5)
    before = simulation.context._schedule.coefficient_arrays()
    order = simulation.context.layout.order.copy()
    for c in before.values():
        c *= 1.0 - 2.0**-50
    grow(simulation, "membrane")
    assert simulation.context.time == pytest.approx(0.15, rel=1e-15)
    now, rank = simulation.context._schedule.coefficient_arrays(), simulation.context.layout.rank
    assert list(now) == list(before)
    for name, c in before.items():
        assert np.array_equal(now[name][rank[order]], c)
    simulation.step(2)
    assert simulation.context.time == pytest.approx(0.17, rel=1e-15)


def test_energy_of_new_beads_is_not_a_runaway():
    """A spring of 5000 kT is let go, where thermal beads may have 200."""
    simulation = simulation_of(["beads"], timestep=0.001)
    simulation.step(20)
    with simulation.topology.edit():
        pair = simulation.topology.add_beads([[0.0, 99.0, 0.0], [1.0, 99.0, 0.0]], mass=1.0, friction=0.1)
        simulation.system.add_force(forces.HarmonicBonds([pair.beads], 100.0, 11.0))
    simulation.step(300)
    assert look(simulation).temperatures[pair.name] > 100.0


def test_forces_and_jumps_come_and_go():
    simulation = simulation_of(["beads", "balls"])
    system = simulation.system
    bonds = system["bonds of beads"]
    links = forces.Links([], [], stiffness=1.0, length=1.0)
    jump = mp.jumps.LinkBinding(links, simulation.topology["balls"], off_rate=1e-3, on_rate=1e3, name="jump")
    with simulation.topology.edit():
        system.add_force(links)
        system.add_jump(jump)
    simulation.step(200)
    bound = look(simulation).links(links)
    assert len(bound) > 0
    assert jump.counts.accepted > 0
    with simulation.topology.edit():
        system.remove_jump(jump)
        system.remove_force(bonds)
    assert "bonds of beads" not in look(simulation).energies
    assert look(simulation).counts == {}
    with pytest.raises(mp.ParameterError, match="none use it"):
        jump.counts  # noqa: B018
    # A jump of the same name is another one: it starts without links.
    balls = simulation.topology["balls"]
    for on_rate in (1e3, 0.0):
        with simulation.topology.edit():
            if "jump" in system:
                system.remove_jump(system["jump"])
            system.add_jump(mp.jumps.LinkBinding(links, balls, off_rate=1e-3, on_rate=on_rate, name="jump"))
        assert len(look(simulation).links(links)) == 0
        simulation.step(200)
        assert (len(look(simulation).links(links)) > 0) == (on_rate > 0.0)


def test_checkpoints_hold_what_was_added(tmp_path):
    simulation = simulation_of(ALL)
    simulation.step(4)
    simulation.save_checkpoint(tmp_path / "before")
    for kind in ("filaments", "membrane"):
        grow(simulation, kind)
        simulation.step(3)
    simulation.save_checkpoint(tmp_path / "after")
    simulation.step(6)
    again = mp.Simulation.resume(tmp_path / "after", threads=3)
    assert again.current_step == 10
    again.step(6)
    assert np.array_equal(look(again).positions, look(simulation).positions)
    assert np.array_equal(look(again).velocities, look(simulation).velocities)
    here = look(simulation)
    refuses(mp.MedyanError, "checkpoint", simulation.load_checkpoint, tmp_path / "before")
    assert np.array_equal(look(simulation).positions, here.positions)


def test_after_a_fault_the_run_is_at_its_last_good_step():
    """Steps before the edit are not taken again."""
    simulation = simulation_of(["beads"])

    def wall(positions):
        if simulation_step[0] > 12:
            raise ValueError("enough")
        simulation_step[0] += 1
        return 0.0, np.zeros_like(positions)

    simulation_step = [0]
    simulation.step(10)
    with simulation.topology.edit():
        simulation.system.add_force(forces.PythonForce(wall))
    refuses(mp.SimulationError, "enough", simulation.step, 50)
    assert simulation.current_step >= 10
    assert np.isfinite(look_without_forces(simulation).positions).all()


def look_without_forces(simulation):
    return simulation.context.get_state(positions=True, velocities=True)


# What is refused, with nothing changed -----------------------------------------------------------------------------


def untouched(simulation):
    """Everything that a failed edit must leave as it is."""
    topology, system, context = simulation.topology, simulation.system, simulation.context
    return (topology.handles, topology.n_beads, topology.columns, dict(topology.row_counts), system.forces,
            system.force_names, system.jumps, system.jump_names, context._store, context._schedule,
            topology.is_edited)  # fmt: skip


def fails(simulation, kind, text, block):
    before, twin = untouched(simulation), simulation_of(ALL)
    twin.step(simulation.current_step)
    with pytest.raises(kind, match=text), simulation.topology.edit():
        block(simulation.topology, simulation.system)
    assert untouched(simulation) == before
    for one in (simulation, twin):
        one.step(3)
    assert_same(simulation, twin, [h.name for h in twin.topology.handles])


def interrupted(topology, system):
    topology.add_beads([[0.0, 0, 0]], mass=1.0)
    topology.add_rigid_bodies([[0.0, 0, 0]], [[1.0, 0, 0, 0]], 1.0, [1.0, 1.0, 1.0])
    system.add_force(forces.UniformField(topology["beads 2"], [1.0, 0.0, 0.0]))
    raise KeyError("half way")


def foreign_jump(topology, system):
    beads = topology.add_beads([[0.0, 0, 0]], mass=1.0, friction=1.0)
    links = system.add_force(forces.Links([], [], stiffness=1.0, length=1.0))
    system.add_jump(mp.jumps.LinkBinding(links, beads, [0], off_rate=1.0, on_rate=1.0, bound=[[0, 0], [0, 0]]))


def bad_mass(topology, system):
    topology.add_beads([[0.0, 0, 0]], mass=1.0)
    topology.add_beads([[0.0, 0, 0]], mass=-1.0)


def unknown_group(topology, system):
    beads = topology.add_beads([[0.0, 0, 0]], mass=1.0)
    system.remove_force(system["bonds of beads"])
    system.add_force(forces.UniformField(beads, [1.0, 0.0, 0.0], name="field"))
    system.add_force(forces.HarmonicBonds([[0, 100_000]], 1.0, 1.0))


@pytest.mark.parametrize(("kind", "text", "block"), [
    (KeyError, "half way", interrupted),
    (mp.ParameterError, r"mass\[0\] = -1|mass = -1", bad_mass),
    (mp.MedyanError, "bound", foreign_jump),
    (mp.TopologyError, "bead 100000 does not exist|100000", unknown_group),
])  # fmt: skip
def test_an_edit_that_fails_has_changed_nothing(kind, text, block):
    simulation = simulation_of(ALL)
    simulation.step(6)
    fails(simulation, kind, text, block)
    grow(simulation, "bodies")
    simulation.step(1)


def test_a_word_that_cannot_move_what_is_new_is_refused():
    simulation = simulation_of(["beads"], "BAOAB")
    refuses(mp.ParameterError, "has no G, but", grow, simulation, "membrane")
    assert len(simulation.topology.handles) == 1
    simulation.step(1)


def test_edits_inside_of_something_else_are_refused():
    simulation = simulation_of(["beads"])
    topology, context = simulation.topology, simulation.context
    with topology.edit():
        with pytest.raises(mp.TopologyError, match="is being edited already"), topology.edit():
            pass
        for ask in (lambda: context.step(1), lambda: simulation.step(1), lambda: context.get_state(positions=True)):
            refuses(mp.ContextInUseError, r"inside `with topology.edit\(\):`", ask)
        refuses(mp.TopologyError, "make it after the block", mp.Context, simulation.system, mp.VerletIntegrator(0.1))
    simulation.step(1)
    with pytest.raises(mp.TopologyError, match="in use by a Context; add everything first, or inside"):
        topology.add_beads([[0.0, 0, 0]], mass=1.0)

    class Editor(mp.reporters.Reporter):
        def report(self, simulation, state):
            with simulation.topology.edit():
                pass

    simulation.reporters.append(Editor(1))
    refuses(mp.ContextInUseError, r"topology\.edit was called by a reporter", simulation.step, 1)
    simulation.reporters.clear()

    def edits(positions):
        with topology.edit():
            return 0.0, np.zeros_like(positions)

    with topology.edit():
        simulation.system.add_force(forces.PythonForce(edits))
    refuses(mp.SimulationError, r"topology\.edit was called from inside step", simulation.step, 1)


def test_two_contexts_are_refused_and_one_that_is_gone_is_not_counted():
    simulation = simulation_of(["beads"])
    other = mp.Context(simulation.system, mp.BAGOGABIntegrator(0.02, kT=1.0, seed=9), threads=1)
    with pytest.raises(mp.TopologyError, match="2 contexts use this topology"), simulation.topology.edit():
        pass
    # Held by nothing but itself.
    other.__dict__["_self"] = other
    del other
    grow(simulation, "beads")
    simulation.step(1)


def test_without_a_context_it_is_plain_adding():
    topology = mp.Topology()
    with topology.edit():
        topology.add_beads([[0.0, 0, 0]], mass=1.0)
    assert topology.n_beads == 1


def test_another_thread_waits_outside():
    simulation = simulation_of(["beads"])
    found = []

    def ask():
        try:
            simulation.context.get_state(positions=True)
        except mp.ContextInUseError as error:
            found.append(str(error))

    with simulation.topology.edit():
        thread = threading.Thread(target=ask)
        thread.start()
        thread.join()
    assert "another thread is inside topology.edit" in found[0]


def test_tables_say_that_their_columns_are_others(tmp_path):
    """Before a step is taken; tables whose columns stay go on."""
    simulation = simulation_of(["beads"])
    report = mp.reporters
    each = report.StateDataReporter(tmp_path / "each.csv", 2, step=True, temperatures=True)
    whole = report.StateDataReporter(tmp_path / "whole.csv", 2, step=True, potential_energy=True)
    simulation.reporters += [whole, each]
    simulation.step(4)
    grow(simulation, "balls")
    refuses(mp.ParameterError, r"has been edited since.*columns would be others.*another file", simulation.step, 2)
    assert simulation.current_step == 4
    each.close()
    simulation.reporters[:] = [whole]
    simulation.step(4)
    simulation.close()
    assert (tmp_path / "whole.csv").read_text().count("\n") == 5


def test_an_edit_warns_of_what_is_new():
    topology = mp.Topology()
    topology.add_beads([[0.0, 0, 0], [9.0, 0, 0]], mass=1.0, friction=0.0, name="old")
    topology.add_beads([[0.0, 0, 9.0]], mass=1.0, friction=0.5, name="stirred")
    with pytest.warns(mp.errors.ThermostatWarning, match="'old'"):
        simulation = mp.Simulation(mp.System(topology), mp.SplittingIntegrator("BAOAB", 0.01, kT=1.0))
    with pytest.warns(mp.errors.ThermostatWarning) as warned, topology.edit():
        topology.add_beads([[0.0, 9.0, 0]], mass=1.0, friction=0.0, name="new")
    assert ["'new'" in str(one.message) for one in warned] == [True]
    simulation.step(1)
