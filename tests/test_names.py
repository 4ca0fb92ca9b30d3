"""Public names: what can be read and assigned to, and what wrong names and calls are told."""

import copy
import inspect
import io
import pickle
import re
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from builders import refuses, system_with

import medyanpy as mp
from medyanpy._tools import names
from medyanpy.errors import ArgumentError, PublicNameError, UnknownNameError

DOCS = Path(__file__).parents[1] / "docs"


def build():
    """A simulation with a handle of every kind."""
    topology = mp.Topology()
    mesh = mp.TriangleMesh.icosphere(20.0, 1)
    vesicle = topology.add_membrane(mesh, vertex_mass=1.0, vertex_friction=1.0, name="vesicle")
    topology.add_intriangle_points(vesicle, 3, mass=0.5, friction=1.0, seed=1, name="proteins")
    beads = topology.add_beads([[0.0, 0, 0], [1.5, 0, 0]], mass=1.0, friction=1.0)
    topology.add_balls([[3.0, 0, 0]], 1.0, mass=1.0, friction=1.0)
    nodes = 5.0 * np.arange(4)[:, None] * [1.0, 0.0, 0.0]
    topology.add_filaments([nodes], node_mass=1.0, node_friction=1.0, fixed_nodes=[0], link_lengths=[5.0, 5.0, 5.0])
    topology.add_filament(nodes, node_mass=1.0, node_friction=(1.0, 2.0), directors="parallel", director_mass=1.0)
    topology.add_rigid_bodies([[0.0, 0, 0]], [[1.0, 0, 0, 0]], mass=1.0, inertia=[1.0, 1.0, 1.0], friction=(1.0, 1.0))
    shape, frames = mp.rods.uniform(5, 4.0)
    topology.add_rod(shape, frames, 4.0, linear_density=1.0, inertia_density=[1.0, 1.0, 2.0], friction=1.0)
    topology.add_surface_points(mp.surfaces.Sphere(7.0), [[7.0, 0.0, 0.0]], mass=1.0, friction=1.0)
    system = system_with(topology, mp.forces.HarmonicBonds([beads.beads], stiffness=1.0, length=1.0))
    return mp.Simulation(system, mp.BAGOGABIntegrator(0.01, kT=1.0), threads=1)


def parts():
    """Everything whose public names nothing would follow if they were assigned to."""
    simulation = build()
    kick = mp.kicks.ZhangSkeelStiff(0.3, stiff=["springs"])
    return [simulation, simulation.context, simulation.integrator, simulation.integrator.kick, kick, simulation.system,
            simulation.topology, *simulation.topology, *simulation.system]  # fmt: skip


def public(what):
    return [name for name in dir(what) if not name.startswith("_")]


# What may be assigned to --------------------------------------------------------------------------------------------


def followed(what, name):
    """Whether it is a property that does something when it is assigned to."""
    own = getattr(type(what), name, None)
    return isinstance(own, property) and own.fset is not None


@pytest.mark.parametrize("number", range(len(parts())), ids=lambda i: repr(parts()[i]).split(" object")[0][:40])
def test_assigning_to_a_public_name_sets_or_is_refused(number):
    """And so is deleting; what is refused stays as it is."""
    what = parts()[number]
    for name in public(what):
        if name in getattr(what, "changeable", ()) or followed(what, name):
            continue
        # The class's own, where asking would have to measure.
        before = what.__dict__.get(name)
        refuses(PublicNameError, rf"{name} cannot be assigned to, nothing would follow: .", setattr, what, name, 3)
        refuses(PublicNameError, f"{name} cannot be deleted", delattr, what, name)
        assert what.__dict__.get(name) is before
    refuses(PublicNameError, "has no attribute 'colour' to assign to", setattr, what, "colour", "red")


def test_assigning_to_a_number_is_setting_it():
    simulation = build()
    force, context = simulation.system["HarmonicBonds"], simulation.context
    before = context.get_state(energy=True).energies["HarmonicBonds"]
    assert (force.stiffness, force.length) == (1.0, 1.0)
    force.stiffness = 5.0
    force.length *= 0.5
    assert (force.stiffness, force.length) == (5.0, 0.5)
    assert context.get_state(energy=True).energies["HarmonicBonds"] == pytest.approx(20.0 * before, rel=1e-15)
    # One number for all, or one for each.
    two = mp.forces.HarmonicBonds([[0, 1], [1, 0]], stiffness=[2.0, 3.0], length=1.0)
    assert two.stiffness.tolist() == [2.0, 3.0]
    with pytest.raises(mp.ParameterError, match=r"HarmonicBonds: stiffness = -1.0 but must be finite and >= 0"):
        force.stiffness = -1.0
    with pytest.raises(PublicNameError, match=r"no attribute 'stifness' to assign to: did you mean 'stiffness'\?"):
        force.stifness = 5
    with pytest.raises(ValueError, match="read-only"):
        two.stiffness[0] = 5.0
    assert {"stiffness", "length", "set"} <= set(dir(force))

    simulation.integrator.temperature = 310.0
    simulation.integrator.timestep *= 2
    simulation.step(3)
    assert simulation.integrator.temperature == pytest.approx(310.0, rel=1e-15)
    assert simulation.context.time == 0.06


def test_reporters_are_a_list():
    simulation = build()
    reporter = mp.reporters.StateDataReporter(io.StringIO(), 1, step=True)
    with pytest.raises(mp.ParameterError, match=r"must be a list, not StateDataReporter: simulation.reporters.append"):
        simulation.reporters = reporter
    simulation.reporters = [reporter]
    simulation.step(1)
    assert simulation.reporters == [reporter]
    simulation.reporters = []
    assert simulation.reporters == []


def test_arrays_that_are_handed_out_are_read_only_or_copies():
    """Of handles, states and forces: writing into one raises, or changes nothing that is asked for again."""
    simulation = build()
    state = simulation.context.get_state(positions=True, velocities=True, forces=True, energy=True, virial=True,
                                         physical_positions=True)  # fmt: skip
    found = 0
    for what in (*simulation.topology, *simulation.system, state, state.intriangle, simulation.context):
        properties = public(what) if what is not simulation.context else ["time", "step_count", "threads"]
        for name in properties:
            try:
                value = getattr(what, name)
            except mp.ParameterError:
                continue
            if isinstance(value, np.ndarray) and value.size:
                found += 1
                before = value.copy()
                try:
                    value[...] = 1 - value if value.dtype == bool else value + 1
                except ValueError:
                    continue
                assert np.array_equal(getattr(what, name), before), f"{what!r}: {name} can be written to"
    assert found > 60


def test_results_of_a_context_are_in_topology_order():
    """Here beads follow points in the topology, and come before them in the arrays that kernels work on."""
    simulation = build()
    context, topology = simulation.context, simulation.topology
    for name in ("positions", "masses", "movable_beads", "step_lengths", "coupled_places", "dynamical_arrays"):
        assert not hasattr(context, name), f"{name} is in internal order, or live: it is not a public name"
    beads = topology["beads"]
    assert context.get_state(positions=True).positions[beads.beads[1]].tolist() == [1.5, 0.0, 0.0]


# Look-up by name ----------------------------------------------------------------------------------------------------


def test_handles_and_forces_are_found_by_name():
    simulation = build()
    topology, system = simulation.topology, simulation.system
    assert topology["proteins"] is topology.point_handles[0]
    assert [topology[h.name] for h in topology] == list(topology.handles)
    assert system["HarmonicBonds"] is system.forces[0]
    second = mp.System(topology)
    forces = [second.add_force(mp.forces.HarmonicBonds([[0, 1]], 1.0, 1.0)) for _ in range(2)]
    assert [second[name] for name in second.force_names] == forces == list(second)
    there = [("proteins", topology), (topology["proteins"], topology), ("HarmonicBonds 2", second), (forces[1], second)]
    assert all(what in whole for what, whole in there)
    elsewhere = [("protein", topology), (3, topology), ("HarmonicBonds 2", system), (forces[1], system)]
    assert not any(what in whole for what, whole in elsewhere)
    for error in (KeyError, mp.TopologyError, UnknownNameError):
        with pytest.raises(error) as caught:
            topology["protein"]
        expected = r"there is no handle 'protein': did you mean 'proteins'\? There are: 'vesicle', 'proteins', 'beads'"
        assert re.match(expected, str(caught.value))
    with pytest.raises(UnknownNameError, match=r"no force 'MembraneBending'.*here are: 'HarmonicBonds'"):
        system["MembraneBending"]
    with pytest.raises(UnknownNameError, match=r"no handle 0; there are: 'vesicle'"):
        topology[0]
    with pytest.raises(UnknownNameError, match="there are: none"):
        mp.Topology()["beads"]


# Calls --------------------------------------------------------------------------------------------------------------


def wrong_calls():
    simulation = build()
    topology, context, force = simulation.topology, simulation.context, simulation.system.forces[0]
    vesicle = topology["vesicle"]
    return [
        (lambda: mp.forces.HarmonicBonds([[0, 1]], stifness=1.0, length=1.0),
         r"HarmonicBonds has no argument 'stifness': did you mean 'stiffness'\? The call is HarmonicBonds\(pairs, "),
        (lambda: mp.forces.MembraneBending(vesicle, bending_modulos=1.0), r"did you mean 'bending_modulus'\?"),
        (lambda: mp.forces.HarmonicBonds([[0, 1]], 1.0), r"HarmonicBonds needs the argument 'length'. The call is"),
        (lambda: mp.forces.HarmonicBonds([[0, 1]], 1.0, 1.0, pairs=1), "was given the argument 'pairs' twice"),
        (lambda: mp.Topology().add_beads([[0, 0, 0]], mas=1.0), r"add_beads has no .* 'mas': did you mean 'mass'"),
        (lambda: context.get_state(position=True), r"get_state has no argument 'position': did you mean 'positions'"),
        (lambda: context.get_state(getEnergy=True), r"get_state has no argument 'getEnergy': did you mean 'energy'"),
        (lambda: context.get_state(colour=True), r"get_state has no argument 'colour'. The call is get_state\(posit"),
        (lambda: simulation.minimize_energy(max_iteration=3), r"did you mean 'max_iterations'"),
        (lambda: simulation.step(1, True), r"step was given 2 arguments without a name, but only these go without: n"),
        (lambda: mp.reporters.StateDataReporter("x", 1, potentialEnergy=True), "did you mean 'potential_energy'"),
        (lambda: mp.VerletIntegrator(timstep=1.0), "did you mean 'timestep'"),
        (lambda: mp.kicks.ZhangSkeel(bet=0.3), "did you mean 'beta'"),
        (lambda: mp.Topology(3), "Topology was given 1 arguments without a name, but only these go without: none"),
        # OpenMM's order
        (lambda: mp.BAGOGABIntegrator(300, 1e-7), r"BAGOGABIntegrator\(1e-07, temperature=300\)\. Friction belongs to"),
        (lambda: mp.BrownianIntegrator(300, 1.0, 1e-7), r"BrownianIntegrator\(1e-07, temperature=300\)\. Friction"),
        (lambda: force.set(stifness=2.0), r"'stifness' cannot be set; stiffness, length can: did you mean 'stiffness'"),
    ]  # fmt: skip


@pytest.mark.parametrize("number", range(len(wrong_calls())))
def test_wrong_calls_are_told_what_was_probably_meant(number):
    call, message = wrong_calls()[number]
    with pytest.raises(mp.ParameterError, match=message) as caught:
        call()
    # Python's own exception is still what it is, and its text is not in the way.
    assert isinstance(caught.value, TypeError) or "cannot be set" in message
    assert caught.value.__cause__ is None


def test_errors_of_what_is_called_are_not_taken_for_wrong_calls():
    def fails(*_):
        raise TypeError("of my own")

    class Own(mp.forces.HarmonicBonds):
        def bind(self, layout):
            fails(layout)

    class Refuses(mp.forces.HarmonicBonds):
        def __init__(self, pairs):
            fails()

    with pytest.raises(TypeError, match="of my own") as caught:
        Own([[0, 1]], 1.0, 1.0).bind(None)
    assert not isinstance(caught.value, ArgumentError)
    with pytest.raises(TypeError, match="of my own") as caught:
        Refuses([[0, 1]])
    assert not isinstance(caught.value, ArgumentError)


def test_signatures_are_still_those_of_the_constructors_and_methods():
    assert list(inspect.signature(mp.Simulation).parameters) == ["system", "integrator", "threads"]
    assert list(inspect.signature(mp.BAGOGABIntegrator).parameters)[:2] == ["timestep", "temperature"]
    parameters = list(inspect.signature(mp.Topology().add_beads).parameters)
    assert parameters == ["positions", "mass", "friction", "name", "capacity", "species", "counts", "of_species"]
    assert [f.name for f in fields(mp.State)] == ["step", "time", "_parts"]


# Names that do not exist --------------------------------------------------------------------------------------------


def wrong_names():
    simulation = build()
    return [
        (mp, "LangevinMiddleIntegrator", r"OpenMM's name; here it is mp.BAGOGABIntegrator\(timestep, temperature="),
        (mp, "HarmonicBondForce", r"OpenMM's name; here it is mp.forces.HarmonicBonds\(pairs, stiffness, length\)"),
        (mp.forces, "HarmonicBondForce", r"module 'medyanpy.forces' has no .*mp.forces.HarmonicBonds"),
        (mp, "HarmonicBonds", r"did you mean 'forces.HarmonicBonds'\?"),
        (mp, "Simulations", r"did you mean 'Simulation'\?"),
        (mp, "unit", r"did you mean 'units'\?"),
        (mp.reporters, "DCDReporter", r"here it is mp.reporters.TrajectoryReporter"),
        (mp, "quux", r"module 'medyanpy' has no attribute 'quux'$"),
        (simulation.system, "addForce", r"System has no attribute 'addForce': did you mean 'add_force'\?"),
        (simulation.system, "addParticle", r"here it is topology.add_beads"),
        (simulation.context, "getState", r"did you mean 'get_state'\?"),
        (simulation.context, "setVelocitiesToTemperature", r"did you mean 'set_velocities_to_temperature'\?"),
        (simulation.integrator, "setTemperature", r"here it is integrator.set\(temperature=...\)"),
        (simulation.integrator, "setStepSize", r"here it is integrator.set\(timestep=...\)"),
        (simulation, "minimizeEnergy", r"did you mean 'minimize_energy'\?"),
        (simulation.context.get_state(energy=True), "getPotentialEnergy", r"did you mean 'potential_energy'\?"),
        (simulation.topology["vesicle"], "bead", r"Membrane has no attribute 'bead': did you mean 'beads'\?"),
        (simulation.system["HarmonicBonds"], "stifness", r"did you mean 'stiffness'\?"),
    ]


@pytest.mark.parametrize("number", range(len(wrong_names())))
def test_names_that_do_not_exist_are_told_what_was_probably_meant(number):
    what, name, message = wrong_names()[number]
    with pytest.raises(AttributeError, match=message) as caught:
        getattr(what, name)
    assert isinstance(caught.value, mp.ParameterError)
    assert not hasattr(what, name)
    assert getattr(what, name, 3) == 3
    # Names that Python looks for everywhere are not for people.
    for protocol in ("__array_interface__", "_repr_latex_", "__deepcopy__"):
        assert not hasattr(what, protocol)


def test_an_attribute_that_fails_says_why_itself():
    class Broken(mp.forces.HarmonicBonds):
        @property
        def depth(self):
            return self._depth

    with pytest.raises(AttributeError, match="has no attribute '_depth'"):
        _ = Broken([[0, 1]], 1.0, 1.0).depth


def test_copies_and_pickles_work_as_before():
    simulation = build()
    state = simulation.context.get_state(positions=True, energy=True)
    for make in (copy.copy, copy.deepcopy, lambda what: pickle.loads(pickle.dumps(what))):
        other = make(simulation.system)
        assert [h.name for h in other.topology] == [h.name for h in simulation.topology]
        with pytest.raises(PublicNameError):
            other.topology["vesicle"].friction = 3.0
        assert np.array_equal(make(state).positions, state.positions)
        assert make(mp.kicks.ZhangSkeel(0.3)).beta == 0.3


def test_every_name_of_openmm_is_in_the_table_of_the_documentation_and_back():
    """The dictionary of hints and the page "Coming from OpenMM" say the same: every name that has a hint stands in
    the page, and every name of the page's first column either has one or is like ours but for its spelling."""
    page = (DOCS / "coming_from_openmm.md").read_text()
    missing = [name for name in names.OPENMM if not re.search(rf"\b{name}\b", page)]
    assert not missing
    rows = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `")]
    codes = [code for row in rows for code in re.findall("`(.*?)`", row)]
    theirs = {word for code in codes for word in re.findall(r"[A-Za-z]\w+(?=\(|$)", code)}
    assert {"addForce", "LangevinMiddleIntegrator", "setTemperature", "getForces"} <= theirs
    simulation = build()
    places = (mp, mp.forces, mp.reporters, *parts(), simulation.context.get_state())
    ours = {name for what in places for name in dir(what)}
    unknown = [name for name in theirs if name not in ours and not names.did_you_mean(name, ours)]
    assert not unknown
    # What hints point to exists.
    for hint in names.OPENMM.values():
        for path in re.findall(r"\bmp((?:\.\w+)+)", hint):
            what = mp
            for name in path[1:].split("."):
                what = getattr(what, name)


def test_words_of_a_literal_are_text_like_others():
    """Which words there are, callees say themselves; lists and arrays of words never reach them."""
    beads = mp.Topology().add_beads([[0.0, 0, 0]], mass=1.0)
    for form in (["WCA"], np.array(["WCA", "soft"]), 1):
        with pytest.raises(mp.ParameterError, match="WallRepulsion: form must be text, not "):
            mp.forces.WallRepulsion(mp.boundaries.Plane(), beads, 1.0, 1.0, form=form)
    refuses(mp.ParameterError, "gaps must be text, not 1", mp.rigid.read_structure, "a.pdb", gaps=1)


def test_pair_forces_go_by_their_names_in_messages():
    beads = mp.Topology().add_beads([[0.0, 0, 0]], mass=1.0)
    with pytest.raises(PublicNameError, match=r"^WCA 'mine': handles cannot be assigned to"):
        mp.forces.WCA(beads, beads, 1.0, 1.0, name="mine").handles = ()
