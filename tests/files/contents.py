"""Runs with all that a file can hold."""

import builders
import numpy as np
from builders import orients, system_with

import medyanpy as mp

COLUMNS = ("positions", "velocities", "orientations", "angular_momenta", "triangles", "barycentric")


def everything(word="J B A G O G A B J", **integrator):
    """Every kind of bead, links of forces and of a jump, bonds, and a membrane whose edges may be flipped."""
    rng = np.random.default_rng(7)
    turn = 2 * np.pi * np.arange(6) / 6
    line = np.column_stack([30 + np.arange(5.0), np.zeros(5), np.zeros(5)])
    ring = np.column_stack([40 + 3 * np.cos(turn), 3 * np.sin(turn), np.zeros(6)])
    t, F = mp.Topology(), mp.forces
    beads = t.add_beads(rng.normal(0, 3, (4, 3)), mass=1.0, friction=0.5, name="beads", capacity=6)
    balls = t.add_balls(rng.normal(0, 3, (3, 3)) + 10, [1.0, 1.5, 0.8], mass=2.0, friction=0.3, name="balls")
    m = t.add_membrane(mp.TriangleMesh.icosphere(10.0, 1), vertex_mass=1.0, vertex_friction=0.4, name="vesicle")
    points = t.add_intriangle_points(m, 9, mass=0.7, friction=0.2, seed=3, name="points", capacity=12)
    t.add_membrane(mp.TriangleMesh.flat_sheet(3, 3, 4.0), vertex_mass=1.0, fixed=True, name="sheet")
    t.add_filaments([line, line[:3] + [0, 5, 0]], 1.0, 0.5, name="filaments")
    t.add_filament(ring, 1.0, 0.5, closed=True, directors="parallel", director_mass=0.1, name="twistable")
    t.add_filaments([line + [0, 15, 0]], 1.0, 0.5, constrained=False, name="springs", capacity=10)
    sphere = mp.surfaces.Sphere(9.0)
    t.add_surface_points(sphere, sphere.sample(7, 1), mass=1.0, friction=0.5, name="walkers")
    bodies = t.add_rigid_bodies(rng.normal(0, 3, (3, 3)) - 20, orients(rng, 3), 1.0, (1.0, 1.5, 2.0), (0.4, 0.6),
                                name="bodies")  # fmt: skip
    x, q = mp.rods.uniform(5, 2.0, curvature=[0.0, 0.05, 0.02])
    t.add_rod(x + [0, 0, 50], q, 2.0, 1.0, [1.0, 1.0, 1.5], friction=(0.5, 1.0), rotational_friction=0.3, name="rod")
    system = system_with(t, F.HarmonicBonds([beads.beads[:2], beads.beads[1:3]], 3.0, 2.0),
                         F.MembraneEdgeSprings(m, 0.3, 3.0))  # fmt: skip
    ends = [balls.beads[0], points.beads[0]]
    system.add_force(F.Links(bodies.sites([[0, 0, 1.0]])[:2], ends, 0.2, 3.0, name="ropes"))
    links = system.add_force(F.Links([], [], stiffness=1.0, length=2.0, name="bridges"))
    system.add_jump(mp.jumps.LinkBinding(links, bodies.sites([[0, 1.0, 0]]), mp.Sites.beads(balls.beads), off_rate=1.0,
                                         on_rate=0.1, name="binding", bound=[[0, 1], [2, 0]]))  # fmt: skip
    made = mp.SplittingIntegrator(word, 0.002, kT=1.0, seed=5, **integrator)
    simulation = mp.Simulation(system, made, threads=1)
    simulation.context.set_velocities_to_temperature(kT=1.0, seed=6)
    return simulation


class Recorder(builders.Recorder):
    def __init__(self, interval):
        super().__init__(interval)
        self.links = []

    def report(self, simulation, state):
        super().report(simulation, state)
        found = [force for force in simulation.system.forces if isinstance(force, mp.forces.Links)]
        self.links.append([state.links(force) for force in found])


def recorded(simulation, path, interval=2, **options):
    recorder = Recorder(interval)
    simulation.reporters += [mp.reporters.TrajectoryReporter(path, interval, **options), recorder]
    return recorder


def pairs_of(rows):
    return {tuple(sorted(pair)) for pair in np.asarray(rows).tolist()}


def expected_bonds(topology, links, more=()):
    """Pairs of rows, of handles and of the links of forces in a state."""
    out = pairs_of(more)
    for handle in topology.handles:
        if hasattr(handle, "links"):
            out |= pairs_of(handle.beads[handle.links])
    for ends in links:
        out |= pairs_of(np.column_stack([ends.a.single_beads, ends.b.single_beads]))
    return out
