"""Every change of a running simulation, and every part of a run that has to follow it.

A change enters by one row of CHANGES, a part by one row of PARTS: each meets all of the others. Removals are made for
every handle of the scenes, forces that lose all that they act on are those of `medyanpy.testing`; kinds of beads and
jumps without a place here are found by a test.
"""

import csv
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from builders import line, refuses, system_with

import medyanpy as mp
from medyanpy import forces, jumps
from medyanpy.beads import Constraints, Membrane
from medyanpy.ensemble import exchange
from medyanpy.errors import MedyanError
from medyanpy.files.exports import exporting
from medyanpy.testing import installation
from medyanpy.testing.forces import add_with_pools

pytestmark = pytest.mark.frictionless


ETA = 0.06
TURN = [1.0, 0.0, 0.0, 0.0]


# What runs ---------------------------------------------------------------------------------------------------------


def open_space():
    """Something of every kind, every jump that needs no box, and a fluid."""
    topology = mp.Topology()
    bare = topology.add_beads(line(4, [0.0, 0, 0]), mass=1.0, friction=0.5, name="beads")
    balls = topology.add_balls(2.0 * line(3, [0.0, 5, 0]), 0.4, mass=1.0, friction=0.5, name="balls")
    chains = topology.add_filaments([line(4, [0.0, 10, 0]), line(4, [0.0, 12, 0])], 1.0, 0.5, name="filaments")
    twistable = topology.add_filaments([line(4, [0.0, 20, 0]), line(5, [0.0, 23, 0])], 1.0, 0.5, directors="parallel",
                                       director_mass=0.5, director_friction=0.3, name="twistable")  # fmt: skip
    uneven = topology.add_filaments([line(4, [0.0, 30, 0])], 1.0, (0.3, 0.6), name="uneven")
    bodies = topology.add_rigid_bodies(2.0 * line(3, [0.0, 40, 0]), [TURN] * 3, 1.0, [1.0, 1.5, 2.0], (0.4, 0.6),
                                       name="bodies")  # fmt: skip
    nodes, frames = mp.rods.uniform(4, 1.0)
    rod = topology.add_rods([nodes + [0.0, 50, 0], nodes + [0.0, 54, 0]], [frames, frames], 1.0, 1.0, [1.0, 1.0, 1.5],
                            1.0, rotational_friction=0.3, name="rods")  # fmt: skip
    sphere = mp.surfaces.Sphere(3.0, center=[0.0, 60.0, 0.0])
    walkers = topology.add_surface_points(sphere, [[3.0, 60, 0], [0.0, 63, 0]], 1.0, 0.4, name="walkers")
    mesh = mp.TriangleMesh.icosphere(4.0, 1).translated([0.0, 80.0, 0.0])
    vesicle = topology.add_membrane(mesh, vertex_mass=1.0, vertex_friction=0.3, name="vesicle")
    points = topology.add_intriangle_points(vesicle, 6, mass=0.7, friction=0.3, seed=5, name="points")
    tied = topology.add_beads(2.0 * line(3, [0.0, 90, 0]), mass=1.0, friction=0.5, name="tied")
    distance = "(x1-x2)^2 + (y1-y2)^2 + (z1-z2)^2 - d^2"
    topology.constrain(distance, tied.beads[[[0, 1], [1, 2]]], d=2.0, name="constraints")
    system = mp.System(topology)
    system.add_hydrodynamics(mp.hydrodynamics.RotnePrager(ETA, [balls, bodies]))
    system.add_force(forces.HarmonicTrap([bare, balls, points, bodies], 0.3, [0.0, 10.0, 0.0], name="trap"))
    system.add_force(forces.FilamentBending(chains, 3.0))
    system.add_force(forces.FilamentTwisting(twistable, 2.0))
    system.add_force(forces.FilamentBending(uneven, 3.0, name="uneven bending"))
    system.add_force(forces.RodElasticity(rod, [20.0, 20.0], 30.0, [3.0, 3.0], 3.0))
    system.add_force(forces.UniformField(walkers, [0.1, 0.0, 0.0]))
    system.add_force(forces.MembraneEdgeSprings(vesicle, 8.0, 2.4))
    system.add_force(forces.MembraneFoldRepulsion(vesicle, 20.0))
    links = system.add_force(forces.Links([], [], stiffness=1.0, length=1.5, name="links"))
    system.add_jump(jumps.LinkBinding(links, [bare, balls], off_rate=5.0, on_rate=20.0, name="binding"))
    system.add_jump(jumps.EdgeFlips(vesicle, 1.0, name="flips"))
    return mp.Simulation(system, mp.SplittingIntegrator("JBAGOGABJ", 0.02, kT=0.5, seed=3), threads=1)


def periodic_box():
    """Kinds that a box takes along, at constant tension: fixed beads, molecules and beads on a plane among them."""
    topology = mp.Topology()
    mesh = mp.TriangleMesh.flat_sheet(4, 4, 5.0, periodic=True)
    patch = topology.add_membrane(mesh, vertex_mass=1.0, vertex_friction=0.3, name="patch")
    points = topology.add_intriangle_points(patch, 5, mass=0.7, friction=0.3, seed=5, name="points")
    rng = np.random.default_rng(4)
    beads = topology.add_beads(rng.uniform(0.0, 20.0, (8, 3)), mass=1.0, friction=0.5, name="beads")
    chains = topology.add_filaments([line(4, [0.0, 3, 5]), line(4, [0.0, 6, 5])], 1.0, 0.5, name="filaments")
    topology.add_filaments([line(3, [9.0, 3, 9])], 1.0, 0.5, fixed_nodes=[0], name="anchored")
    tied = topology.add_beads(2.0 * line(3, [0.0, 9, 9]), mass=1.0, friction=0.5, name="tied")
    distance = "(x1-x2)^2 + (y1-y2)^2 + (z1-z2)^2 - d^2"
    topology.constrain(distance, tied.beads[[[0, 1], [1, 2]]], d=2.0, name="constraints")
    plane = mp.surfaces.Polynomial("z - 12")
    topology.add_surface_points(plane, [[3.0, 1, 12], [0.0, 8, 12]], 1.0, 0.4, name="walkers")
    system = system_with(topology, forces.MembraneEdgeSprings(patch, 8.0, 5.0),
                         forces.SoftSphere(beads, [beads, points], 2.0, 1.5, name="spheres"),
                         forces.FilamentBending(chains, 3.0), box=(*mesh.box[:2], 20.0))  # fmt: skip
    links = system.add_force(forces.Links([], [], stiffness=6.0, length=1.5, name="links"))
    system.add_jump(jumps.LinkBinding(links, beads, off_rate=5.0, on_rate=20.0, name="binding"))
    system.add_jump(jumps.EdgeFlips(patch, 0.5, name="flips"))
    system.add_jump(jumps.BoxArea(tension=0.1, rate=20.0, step=0.05, fixed_beads="scale", name="barostat"))
    return mp.Simulation(system, mp.SplittingIntegrator("JBAGOGABJ", 0.02, kT=0.5, seed=3), threads=1)


def reacting():
    """Points, beads and bodies with species, and molecules, that react."""
    topology = mp.Topology()
    vesicle = topology.add_membrane(mp.TriangleMesh.icosphere(4.0, 1), 1.0, 0.3, name="vesicle")
    numbers = {"A": (0.7, 0.3), "B": (0.9, 0.4), "C": (1.5, 0.5)}
    species = {name: {"mass": mass, "friction": friction} for name, (mass, friction) in numbers.items()}
    proteins = topology.add_intriangle_points(
        vesicle, species=species, counts={"A": 8, "B": 8}, capacity=30, seed=5, name="proteins"
    )  # fmt: skip
    beads = topology.add_beads(2.0 * line(4, [0.0, 9, 9]), mass=1.0, friction=0.5, name="beads")
    solved = topology.add_beads(
        np.random.default_rng(6).uniform([0.0, 12.0, 0.0], [3.0, 15.0, 3.0], (12, 3)), species=species,
        counts={"A": 6, "B": 6}, capacity=40, name="solved",
    )  # fmt: skip
    kinds = {
        name: {"mass": mass, "inertia": [i * mass for i in (1.0, 1.2, 1.6)], "friction": (friction, 0.4)}
        for name, (mass, friction) in numbers.items()
    }
    bodies = topology.add_rigid_bodies(
        np.random.default_rng(7).uniform([8.0, 12.0, 0.0], [11.0, 15.0, 3.0], (12, 3)), [TURN] * 12, species=kinds,
        counts={"A": 6, "B": 6}, capacity=40, name="bodies",
    )  # fmt: skip
    shape = {"semi_axes": [0.3, 0.3, 0.9], "semi_axes_b": [0.6, 0.4, 0.4], "form": "soft", "name": "ellipsoids"}
    system = system_with(topology, forces.MembraneEdgeSprings(vesicle, 8.0, 2.4),
                         forces.HarmonicTrap(beads, 0.3, [0.0, 9.0, 9.0], name="trap"),
                         forces.HarmonicTrap(bodies, 0.3, [9.0, 14.0, 1.0], name="pocket of bodies"),
                         forces.EllipsoidRepulsion(bodies.of("A"), bodies.of("B"), 2.0, **shape),
                         forces.HarmonicTrap(solved, 0.3, [1.0, 14.0, 1.0], name="pocket"),
                         forces.SoftSphere(solved.of("A"), solved.of("B"), 2.0, 1.0, name="apart"),
                         forces.SoftSphere(proteins.of("A"), proteins.of("C"), 2.0, 1.5, name="spheres"))  # fmt: skip
    rates = {"reach": 1.5, "on_rate": 1.0, "off_rate": 2.0, "most_partners": 40}
    system.add_jump(jumps.Reactions(proteins, "A + B <-> C", name="react", **rates))
    system.add_jump(jumps.Reactions(solved, "A + B <-> C", name="react in space", **rates | {"most_partners": 20}))
    system.add_jump(jumps.Reactions(bodies, "A + B <-> C", name="react by centres", **rates | {"most_partners": 20}))
    layer = {"layer": 1.0, "side": "both", "most_feet": 20}
    system.add_jump(jumps.Adsorption(
        solved.of("A"), proteins.of("A"), on_rate=1.0, off_rate=0.5, name="landing", **layer))  # fmt: skip
    system.add_jump(jumps.Absorption(solved.of("B"), vesicle, rate=1.0, concentration=0.01, name="clamp", **layer))
    pool = system.add_pool(mp.Pool(volume=100.0, counts={"D": 20, "E": 0}))
    system.add_jump(jumps.Reactions(pool, "D <-> E; k_on = 4, k_off = 2", name="molecules"))
    return mp.Simulation(system, mp.SplittingIntegrator("JBAGOGABJ", 0.02, kT=0.5, seed=3), threads=1)


def on_lattices():
    """Filaments, a pool, and a lattice: (system, pool, lattice)."""
    topology = mp.Topology()
    nodes = [line(5, [0.0, 0.8 * k, 0.0]) for k in range(4)]
    actin = topology.add_filaments(nodes, 1.0, 0.5, name="filaments")
    beads = topology.add_beads(line(3, [0.0, 4, 0]), mass=1.0, friction=0.5, name="beads")
    system = system_with(topology, forces.FilamentBending(actin, 3.0),
                         forces.HarmonicTrap([actin, beads], 0.3, [2.0, 1.0, 0.0], name="trap"))  # fmt: skip
    pool = system.add_pool(mp.Pool(volume=100.0, counts={"X": 12, "M": 8}))
    lattice = actin.lattice(0.5)
    return system, pool, lattice


def holding():
    """Crosslinkers that hold one place or two."""
    system, pool, lattice = on_lattices()
    links = system.add_force(forces.Links([], [], stiffness=4.0, length=0.8, name="links"))
    numbers = {"dissociation_constants": 0.1, "off_rates": 5.0, "name": "crosslinkers"}
    system.add_jump(jumps.CrosslinkerBinding(links, lattice, pool=pool["X"], **numbers))
    return mp.Simulation(system, mp.SplittingIntegrator("JBAGOGABJ", 0.02, kT=0.5, seed=3), threads=1)


def walking():
    """Motors, which are driven: replica exchange refuses them."""
    system, pool, lattice = on_lattices()
    arms = system.add_force(forces.Links([], [], stiffness=4.0, length=0.8, name="arms"))
    numbers = {"dissociation_constants": 0.1, "off_rate": 5.0, "on_rate": 3.0, "heads": 3, "name": "motors"}
    walk = {"step": 0.5, "unloaded_velocity": 4.0, "stall_force": 1.0}
    system.add_jump(jumps.Motors(arms, lattice, pool=pool["M"], **numbers, **walk))
    return mp.Simulation(system, mp.SplittingIntegrator("JBAGOGABJ", 0.02, kT=0.5, seed=3), threads=1)


def switching():
    """Beads that switch, and links that let go, at rates written as text."""
    topology = mp.Topology()
    species = {name: {"mass": 1.0, "friction": 0.5} for name in "AB"}
    solved = topology.add_beads(line(6, [0.0, 0.0, 0.0]), species=species, of_species="A", name="solved")
    beads = topology.add_beads(line(6, [0.0, 1.0, 0.0]), mass=1.0, friction=0.5, name="beads")
    system = system_with(topology, forces.HarmonicTrap([solved, beads], 0.3, [2.0, 1.0, 0.0], name="trap"))
    text = "A <-> B; rate = k*exp(-x^2), energy = 0.2"
    system.add_jump(jumps.CustomTransitions(solved, text, at_most=20.0, k=10.0, name="switch"))
    states = {"weak": {}, "strong": {"length": 0.8}}
    links = system.add_force(forces.Links([], [], stiffness=4.0, length=1.0, states=states, name="links"))
    system.add_jump(jumps.LinkBinding(links, solved, beads, off_rate=2.0, on_rate=40.0, name="bind"))
    text = "unbind; rate = 5*length/(1 + length)\nweak <-> strong; rate = 3, energy = 0.3"
    system.add_jump(jumps.CustomTransitions(links, text, at_most=5.0, name="unbind"))
    return mp.Simulation(system, mp.SplittingIntegrator("JBAGOGABJ", 0.02, kT=0.5, seed=3), threads=1)


def growing():
    """Filaments that take subunits from a pool, and a bead in front of them."""
    topology = mp.Topology()
    nodes = [line(4, [0.0, 3.0 * i, 0.0]) for i in range(3)]
    actin = topology.add_filaments(nodes, 1.0, 0.5, rise=0.2, name="actin")
    beads = topology.add_beads([[4.0, 0, 0], [4.0, 3, 0], [4.0, 6, 0]], mass=1.0, friction=0.5, name="beads")
    system = system_with(topology, forces.FilamentBending(actin, 3.0),
                         forces.SoftSphere(actin, beads, 5.0, 1.0, name="spheres"),
                         forces.HarmonicTrap([actin, beads], 0.3, [2.0, 3.0, 0.0], name="trap"))  # fmt: skip
    pool = system.add_pool(mp.Pool(volume=10.0, counts={"G": 20, "cap": 2}))
    system.add_jump(jumps.Ageing(actin, [5.0], states=("new", "old"), name="ageing"))
    system.add_jump(jumps.Polymerization(actin, pool["G"], end="both", on_rate=10.0, off_rate=20.0, name="growth"))
    system.add_jump(jumps.Capping(actin, pool["cap"], on_rate=5.0, off_rate=20.0, name="caps"))
    return mp.Simulation(system, mp.SplittingIntegrator("JBAGOGABJ", 0.02, kT=0.5, seed=3), threads=1)


def overdamped():
    """Without velocities, in a fluid."""
    topology = mp.Topology()
    beads = topology.add_beads(2.0 * line(5, [0.0, 0, 0]), mass=1.0, friction=0.5, name="beads")
    bodies = topology.add_rigid_bodies(2.0 * line(3, [0.0, 8, 0]), [TURN] * 3, 1.0, [1.0, 1.5, 2.0], (0.4, 0.6),
                                       name="bodies")  # fmt: skip
    system = mp.System(topology)
    system.add_hydrodynamics(mp.hydrodynamics.RotnePrager(ETA, [beads, bodies]))
    system.add_force(forces.HarmonicTrap([beads, bodies], 0.3, [0.0, 4.0, 0.0], name="trap"))
    return mp.Simulation(system, mp.BrownianIntegrator(0.02, kT=0.5, seed=3), threads=1)


ALL = open_space, periodic_box, reacting, holding, walking, switching, growing, overdamped
SCENES = {scene.__name__: scene for scene in ALL}


# What changes --------------------------------------------------------------------------------------------------------

CHANGES = {}


def change(*scenes):
    def kept(function):
        for scene in scenes or SCENES:
            CHANGES[f"{scene}: {function.__name__.replace('_', ' ')}"] = scene, function
        return function

    return kept


def in_an_edit(function):
    def edited(simulation):
        with simulation.topology.edit():
            function(simulation, simulation.topology, simulation.system)

    edited.__name__ = function.__name__
    return edited


def removable(handle):
    return not isinstance(handle, Membrane) and handle.kind.moves_with is handle


def remove(handle, n=None):
    """The first n of its beads, chains or constraints, or all."""
    if isinstance(handle, Constraints):
        handle.remove(np.arange(len(handle.members))[:n])
    elif hasattr(handle.kind, "n_chains"):
        handle.remove(np.arange(handle.kind.n_chains)[:n], terms="remove")
    else:
        handle.remove(handle.beads[:n], terms="remove")


def all_of(name):
    def removal(simulation):
        with simulation.topology.edit():
            remove(simulation.topology[name])

    return removal


for _name, _scene in SCENES.items():
    for _handle in filter(removable, _scene().topology.handles):
        CHANGES[f"{_name}: all of {_handle.name} removed"] = _name, all_of(_handle.name)


@change()
@in_an_edit
def one_of_every_handle_removed(simulation, topology, system):
    for handle in filter(removable, topology.handles):
        remove(handle, 1)


@change()
@in_an_edit
def nothing(simulation, topology, system):
    pass


@change()
@in_an_edit
def a_new_handle(simulation, topology, system):
    beads = topology.add_beads(line(2, [0.0, 0, 15]), mass=2.0, friction=1.0, name="new")
    system.add_force(forces.HarmonicBonds([beads.beads], 1.0, 1.2, name="bond"))


@change()
@in_an_edit
def more_beads(simulation, topology, system):
    topology["beads"].add(line(2, [0.0, 0, 8]))


@change("open_space")
@in_an_edit
def more_of_several_kinds(simulation, topology, system):
    topology["filaments"].add(line(4, [0.0, 14, 0]))
    topology["twistable"].add(line(4, [0.0, 26, 0]))
    topology["bodies"].add([[9.0, 40, 0]], [TURN])
    nodes, frames = mp.rods.uniform(4, 1.0)
    topology["rods"].add(nodes + [0.0, 58, 0], frames)
    topology["walkers"].add([[0.0, 57, 0]])
    topology["points"].add(2, seed=9)


@change("open_space", "periodic_box")
def constraints_added(simulation):
    x = simulation.context.get_state(positions=True).positions
    topology = simulation.topology
    ends = [topology["filaments"].beads[0], topology["walkers"].beads[0]]
    distance = topology["constraints"].texts[0]
    with topology.edit():
        topology.constrain(distance, [ends], d=np.linalg.norm(x[ends[0]] - x[ends[1]]), name="tie")


@change()
@in_an_edit
def room_is_made(simulation, topology, system):
    topology["beads"].reserve(12)


@change("open_space", "overdamped")
@in_an_edit
def hydrodynamics_removed(simulation, topology, system):
    system.remove_hydrodynamics()


@change("open_space", "overdamped")
@in_an_edit
def hydrodynamics_of_fewer(simulation, topology, system):
    system.remove_hydrodynamics()
    system.add_hydrodynamics(mp.hydrodynamics.RotnePrager(ETA, [topology["bodies"]]))


@change("open_space", "overdamped")
@in_an_edit
def hydrodynamics_of_more_in_another_fluid(simulation, topology, system):
    system.remove_hydrodynamics()
    system.add_hydrodynamics(mp.hydrodynamics.RotnePrager(2.0 * ETA, [topology["bodies"], topology["beads"]]))


@change("open_space", "overdamped")
def hydrodynamics_removed_and_added_again(simulation):
    with simulation.topology.edit():
        simulation.system.remove_hydrodynamics()
    simulation.step(2)
    with simulation.topology.edit():
        beads = simulation.topology["beads"]
        simulation.system.add_hydrodynamics(mp.hydrodynamics.RotnePrager(ETA, [beads]))


@change("open_space")
@in_an_edit
def filaments_into_the_fluid(simulation, topology, system):
    fluid = [topology[name] for name in ("balls", "bodies", "filaments", "twistable", "rods")]
    system.remove_hydrodynamics()
    system.add_hydrodynamics(mp.hydrodynamics.RotnePrager(ETA, fluid))


@change()
@in_an_edit
def all_forces_removed(simulation, topology, system):
    for jump in system.jumps:
        system.remove_jump(jump)
    for force in system.forces:
        system.remove_force(force)


@change("open_space", "periodic_box")
@in_an_edit
def a_jump_removed(simulation, topology, system):
    system.remove_jump(system["flips"])


@change("open_space", "periodic_box")
@in_an_edit
def a_jump_added(simulation, topology, system):
    others = system.add_force(forces.Links([], [], stiffness=6.0, length=1.2, name="others"))
    sites = mp.Sites.beads(topology["filaments"].beads)
    system.add_jump(jumps.LinkBinding(others, topology["beads"], sites, off_rate=1.0, on_rate=9.0, name="more"))


@change()
def numbers_set(simulation):
    simulation.integrator.set(timestep=0.015, kT=0.8)
    if "trap" in simulation.system:
        simulation.system["trap"].set(stiffness=0.5)


@change()
@in_an_edit
def numbers_set_in_an_edit(simulation, topology, system):
    simulation.integrator.set(timestep=0.015, kT=0.8)


@change("open_space", "periodic_box")
def numbers_of_jumps_set(simulation):
    simulation.system["binding"].set(on_rate=50.0, off_rate=2.0)
    simulation.system["flips"].set(rate=3.0)


@change()
def a_ramp(simulation):
    simulation.ramp({"integrator": {"kT": (0.5, 0.7)}}, steps=3, progress=False)


@change("open_space")
def edges_flipped(simulation):
    vesicle = simulation.topology["vesicle"]
    faces = simulation.context.get_state(positions=True).faces["vesicle"]
    simulation.context.flip_edges(vesicle, [faces[0, :2]])


@change()
def velocities_drawn(simulation):
    simulation.context.set_velocities_to_temperature(kT=0.5, seed=9)


@change("periodic_box")
def the_box_set(simulation):
    x, y, z = simulation.context.get_state().box
    simulation.context.set_box((1.02 * x, 0.99 * y, z), fixed_beads="scale")


@change("periodic_box")
def a_ramp_of_the_box(simulation):
    y = simulation.context.get_state().box[1]
    simulation.ramp("box", y=(y, 1.05 * y), steps=3, fixed_beads="scale", progress=False)


@change("periodic_box")
def a_force_added_in_another_box(simulation):
    the_box_set(simulation)
    with simulation.topology.edit():
        beads = simulation.topology["beads"]
        simulation.system.add_force(forces.LennardJones(beads, beads, 0.01, 1.0, cutoff=4.0))


# What has to follow --------------------------------------------------------------------------------------------------


@dataclass
class Run:
    """A simulation that a change has been made to, in the middle of its steps."""

    simulation: mp.Simulation
    folder: Any

    def look(self, other=None):
        return (other or self.simulation).context.get_state(positions=True, velocities=True, forces=True, energy=True)


def columns(state):
    found = {"positions": state.positions, "velocities": state.velocities, "forces": state.forces, "ids": state.ids}
    found |= {"orientations": state.orientations, "momenta": state.angular_momenta}
    found |= {f"faces of {name}": faces for name, faces in state.faces.items()}
    found |= {f"links of {name}": shown["links"] for name, shown in state.jumps.items() if "links" in shown}
    return found | {"box": np.array(state.box or (), float), "time": np.array(state.time)}


def assert_same_bits(one, two, what):
    a, b = columns(one), columns(two)
    assert a.keys() == b.keys()
    assert [n for n in a if not np.array_equal(a[n], b[n], equal_nan=a[n].dtype.kind == "f")] == [], what
    assert one.counts == two.counts
    assert one.temperatures == pytest.approx(two.temperatures, nan_ok=True, rel=1e-14)
    for books in ("heat", "shadow_work", "protocol_work", "chemical_work"):
        assert getattr(one, books) == getattr(two, books), (what, books)


def a_run_made_afresh_goes_the_same_way(run):
    """Of the document and the state: coefficients, tables and lists are none of what was there before."""
    fresh = mp.Simulation(*mp.deserialize(mp.serialize(run.simulation)), threads=1)
    fresh.context.set_state(run.look())
    there, here = (one.context._schedule.coefficient_arrays() for one in (fresh, run.simulation))
    ranks = [one.context.layout.rank for one in (fresh, run.simulation)]
    assert there.keys() == here.keys()
    for name in here:
        np.testing.assert_allclose(here[name][ranks[1]], there[name][ranks[0]], rtol=1e-14, err_msg=name)
    energies = run.look(fresh).energies
    assert energies == pytest.approx(run.look().energies, rel=1e-9, abs=1e-9)
    run.fresh = fresh


def a_checkpoint_goes_on_with_the_same_bits(run):
    path = run.folder / "run.checkpoint"
    run.simulation.save_checkpoint(path)
    resumed = mp.Simulation.resume(path, threads=2, reporters=False)
    assert_same_bits(run.look(), run.look(resumed), "resumed")
    run.simulation.step(3)
    resumed.step(3)
    run.fresh.step(3)
    assert_same_bits(run.look(), run.look(resumed), "resumed, and three steps")
    resumed.step(2)
    resumed.load_checkpoint(path)
    resumed.step(3)
    assert_same_bits(run.look(), run.look(resumed), "loaded, and three steps")
    for name in ("positions", "velocities"):
        one, two = (getattr(run.look(each), name) for each in (run.simulation, run.fresh))
        np.testing.assert_allclose(one, two, rtol=1e-6, atol=1e-6, err_msg=f"made afresh, and three steps: {name}")


def swaps_know_what_it_weighs(run):
    if any(jump.driven for jump in run.simulation.system.jumps):
        refuses(mp.ParameterError, "is driven, and keeps no canonical", exchange.check_canonical, run.simulation)
        return
    exchange.check_canonical(run.simulation)
    found = exchange.weights(run.simulation, {"kT": run.simulation.integrator.kT}, {"kT": 0.9})
    assert np.isfinite(list(found.values())).all()


def files_hold_it(run):
    """Trajectories with their documents, and tables."""
    run.simulation.step(2 - run.simulation.current_step % 2)
    last = run.look()
    run.simulation.close()
    with mp.Trajectory(run.folder / "run.h5") as trajectory:
        frame = trajectory[-1]
        assert frame.step == last.step
        assert np.array_equal(frame.positions, last.positions.astype(frame.positions.dtype), equal_nan=True)
        assert np.array_equal(frame.ids, last.ids)
        assert (frame.box is None) == (last.box is None)
        system, _ = frame.system()
        assert system.topology.n_beads == run.simulation.topology.n_beads
    rows = list(csv.reader((run.folder / "run.csv").read_text().splitlines()))
    assert len({len(row) for row in rows if row and not row[0].startswith("#")}) == 1


PARTS = [a_run_made_afresh_goes_the_same_way, a_checkpoint_goes_on_with_the_same_bits, swaps_know_what_it_weighs,
         files_hold_it]  # fmt: skip


def reported(simulation, folder, every=2):
    """The same, with everything that can be written down of it; a frame after so many steps."""
    simulation.report_work = True
    simulation.reporters += [
        mp.reporters.TrajectoryReporter(folder / "run.h5", every),
        mp.reporters.StateDataReporter(folder / "run.csv", 2, step=True, total_energy=True),
        mp.reporters.CheckpointReporter(folder / "auto.checkpoint", 3),
    ]
    if simulation.system.jumps:
        simulation.reporters.append(mp.reporters.EventReporter(folder / "events.csv", 2))
    return simulation


@pytest.mark.filterwarnings("ignore:.*has no sites, so that nothing binds")
@pytest.mark.parametrize("name", CHANGES)
def test_everything_follows(name, tmp_path):
    scene, changed = CHANGES[name]
    run = Run(reported(SCENES[scene](), tmp_path), tmp_path)
    run.simulation.step(4)
    changed(run.simulation)
    for part in PARTS:
        part(run)


@pytest.mark.parametrize("scene", SCENES)
def test_a_run_with_all_changes_is_exported(scene, tmp_path):
    """One after another, four to a frame, in as many segments as they make."""
    simulation = reported(SCENES[scene](), tmp_path, every=4)
    simulation.step(4)
    made, refused = 0, {}
    for name, (where, changed) in CHANGES.items():
        # What all act on stays until the end.
        if where == scene and "all" not in name:
            try:
                changed(simulation)
                made += 1
            except MedyanError as error:
                refused[name] = str(error)
            simulation.step(1)
    simulation.close()
    # What an earlier one has taken away is not there to be changed.
    assert all("there are none" in said or "there is no force" in said for said in refused.values()), refused
    assert made >= 9
    with mp.Trajectory(tmp_path / "run.h5") as trajectory:
        assert len(trajectory.paths) > 2
        n = len(trajectory)
    # All of what is open; in a box, which costs as much again, those that show the box.
    boxed = (".pdb", ".dcd", ".gsd", ".xyz", ".vtkhdf")
    for ending in exporting.FORMATS if scene == "open_space" else boxed:
        if ending == ".ply" and not simulation.topology.membranes:
            refuses(mp.ParameterError, "has no membrane", mp.export, tmp_path / "run.h5", tmp_path / "run.ply")
            continue
        try:
            found = mp.export(tmp_path / "run.h5", tmp_path / f"run{ending}")
        except ImportError:  # an extra that is missing
            continue
        assert f"{n} frames" in str(found), ending


def test_vtkhdf_has_the_ids_of_segments_with_and_without_them(tmp_path):
    """Segments in which no bead comes or goes hold none: there they are the numbers of rows."""
    h5py = pytest.importorskip("h5py")
    topology = mp.Topology()
    beads = topology.add_beads(line(3, [0.0, 0, 0]), mass=1.0, friction=1.0, name="beads")
    simulation = mp.Simulation(mp.System(topology), mp.SplittingIntegrator("BAOAB", 0.01, kT=1.0, seed=1), threads=1)
    simulation.reporters.append(mp.reporters.TrajectoryReporter(tmp_path / "run.h5", 2))
    simulation.step(4)
    expected = [{0, 1, 2}] * 2
    for removed, added in ((0, 2), (1, 0)):
        with topology.edit():
            beads.remove(beads.beads[[removed]])
            if added:
                beads.add(line(added, [0.0, 5, 0]))
        simulation.step(4)
        expected += [set(beads.ids.tolist())] * 2
    simulation.close()
    mp.export(tmp_path / "run.h5", tmp_path / "run.vtkhdf")
    with h5py.File(tmp_path / "run.vtkhdf") as file:
        root = file["VTKHDF"]
        counts = root["NumberOfPoints"][()][root["Steps/PartOffsets"][()]]
        offsets = root["Steps/PointDataOffsets/ids"][()]
        found = [root["PointData/ids"][a : a + n] for a, n in zip(offsets, counts, strict=True)]
    with mp.Trajectory(tmp_path / "run.h5") as trajectory:
        for frame, own, ids in zip(trajectory, found, expected, strict=True):
            assert own.tolist() == frame.ids[frame.handles["beads"].beads].tolist()
            assert set(own.tolist()) - {-1} == ids


# Everything that a handle's beads may leave behind -------------------------------------------------------------------

FUNCTIONS = {"PythonForce": installation._pull, "PythonMembraneField": installation._share}


def forces_on(handle):
    """Names of all forces that act on beads of a handle of the scene of all kinds."""
    found = []
    for name, make in installation.FORCES.items():
        scene = installation._scene()
        force = make(scene)
        system = mp.System(scene.topology)
        add_with_pools(system, force)
        gone = np.zeros(scene.topology.n_beads, bool)
        gone[scene.topology[handle].beads] = True
        named = any(mask.any() for mask in force.naming(gone).values())
        held = isinstance(force, forces.ConstraintFixmanPotential) and handle in ("tied", "bars")
        if named or held or any(one.name == handle for one in force.handles):
            found.append(name)
    return found


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("handle", [h.name for h in installation._scene().topology.handles if removable(h)])
def test_forces_without_beads_resume_from_a_checkpoint(handle, tmp_path):
    names = forces_on(handle)
    scene = installation._scene()
    system = mp.System(scene.topology)
    for name in names:
        add_with_pools(system, installation.FORCES[name](scene))
    functions = {name: function for name, function in FUNCTIONS.items() if name in names}
    simulation = mp.Simulation(system, mp.SplittingIntegrator("BAGOGAB", 1e-4, kT=1e-3, seed=1), threads=1)
    simulation.report_work = True
    simulation.step(2)
    with scene.topology.edit():
        remove(scene.topology[handle])
    simulation.step(2)
    simulation.save_checkpoint(tmp_path / "run.checkpoint")
    resumed = mp.Simulation.resume(tmp_path / "run.checkpoint", threads=1, functions=functions)
    again, _ = mp.deserialize(mp.serialize(simulation), functions=functions)
    assert again.topology.n_beads == scene.topology.n_beads
    for one in (simulation, resumed):
        one.step(2)
    a, b = (one.context.get_state(positions=True, velocities=True, forces=True, energy=True)
            for one in (simulation, resumed))  # fmt: skip
    assert_same_bits(a, b, handle)
    assert a.energies == b.energies


def test_every_kind_of_bead_and_every_jump_has_a_place_here():
    made = [scene() for scene in SCENES.values()]
    there = {type(handle) for one in made for handle in one.topology.handles}
    there |= {type(jump) for one in made for jump in one.system.jumps}
    kinds = {getattr(mp.topology, name) for name in mp.topology.__all__}
    wanted = {kind for kind in kinds if isinstance(kind, type) and issubclass(kind, mp.topology.Handle)}
    wanted = {kind for kind in wanted if "_added_by" in vars(kind)}
    public = [vars(jumps)[name] for name in jumps.__all__]
    wanted |= {one for one in public if isinstance(one, type) and issubclass(one, jumps.Jump)}
    # The function of trial moves is in no document: tests/jumps/test_trials.py. Handles with room for filaments that
    # come and go are not edited: tests/pairs_of_jumps.py has these.
    wanted -= {jumps.Jump, jumps.TrialMoves, jumps.Nucleation, jumps.Branching, jumps.Severing, jumps.Annealing}
    assert len(wanted) > 10
    assert wanted - there == set()
