"""Terms longer than half of a periodic box are refused, and those that fit are not."""

import numpy as np
import pytest
from builders import refuses, system_with

import medyanpy as mp

F = mp.forces


def two_beads(force, box=(20.0, 20.0, 20.0)):
    topology = mp.Topology()
    topology.add_beads([[0.0, 0.0, 0.0], [8.0, 0.0, 0.0], [0.0, 8.0, 0.0]], mass=1e-9, friction=1e-5)
    system = system_with(topology, force, box=box)
    return system


def membrane_of(force, edge=3.0):
    """A patch of 30 x 31 nm."""
    mesh = mp.TriangleMesh.flat_sheet(10, 12, edge, periodic=True)
    topology = mp.Topology()
    system = mp.System(topology, box=(mesh.box[0], mesh.box[1], None))
    system.add_force(force(topology.add_membrane(mesh, vertex_mass=1e-9, vertex_friction=1e-5)))
    return system


def chain(box=(20.0, None, None), **options):
    """A link of 15 nm that fits as it lies."""
    topology = mp.Topology()
    nodes = [[0.0, 0, 0], [0.0, 0, 15.0], [0.0, 0, 20.0]]
    topology.add_filament(nodes, node_mass=1e-9, node_friction=1e-5, name="chain", **options)
    return mp.System(topology, box=box)


def rod():
    topology = mp.Topology()
    nodes, orientations = mp.rods.uniform(3, 15.0)
    topology.add_rod(nodes, orientations, 15.0, linear_density=1e-6, inertia_density=[1e-6, 1e-6, 2e-6], friction=1e-3,
                     rotational_friction=1e-2, name="rod")  # fmt: skip
    return mp.System(topology, box=(20.0, 20.0, None))


#: The system, what its refusal says, and a box that is wide enough.
TOO_LONG = {
    "springs": (lambda: two_beads(F.HarmonicBonds([[1, 2], [0, 1]], 1.0, [5.0, 15.0])), "HarmonicBonds: bond 1 .* 15"),
    "links": (lambda: two_beads(F.Links([0, 0], [1, 2], 1.0, [3.0, 15.0])), "Links: link 1 has a length of 15 nm"),
    "ropes": (lambda: two_beads(F.Links([0], [1], 1.0, 15.0, one_sided=True, name="ropes")), "ropes: link 0 .* 15 nm"),
    "links to places": (lambda: two_beads(F.Links([0], mp.Sites.anchors([[1.0, 0, 0]]), 1.0, 15.0)),
                        "Links: link 0 .* 15 nm"),
    "written springs": (lambda: two_beads(F.CustomBonds([[1, 2], [0, 1]], "k*(r - r0)^2", k=1.0, r0=[3.0, 15.0])),
                        "CustomBonds: bond 1 has a length of 15 nm"),
    "fene": (lambda: two_beads(F.CustomBonds([[0, 1]], "-k/2*R^2*log(1 - (r/R)^2)", k=1.0, R=15.0)),
             "CustomBonds: bond 0 has a length of 15 nm"),
    "fene with a core": (lambda: two_beads(F.CustomBonds([[0, 1]],
                                                         "-k/2*R^2*log(1 - (r/R)^2) + 4*e*((s/r)^12 - (s/r)^6)", k=1.0,
                                                         R=15.0, e=4.0, s=4.0)),
                         "CustomBonds: bond 0 has a length of 15 nm"),
    "morse": (lambda: two_beads(F.CustomBonds([[0, 1]], "e*(1 - exp(-a*(r - r0)))^2", e=9.0, a=0.5, r0=15.0)),
              "CustomBonds: bond 0 has a length of 15 nm"),
    "penalties": (lambda: two_beads(F.LinkLengthPenalty([[0, 1]], 1.0, 15.0)), "LinkLengthPenalty: pair 0 .* 15 nm"),
    "triangles": (lambda: two_beads(F.RigidTrianglePenalty([[0, 1, 2]], 1.0, [8.0, 15.0, 8.0])),
                  "Penalty: side 1 .* 15 nm"),
    "edges": (lambda: membrane_of(lambda m: F.MembraneEdgeSprings(m, 1.0, length=16.0)),
              "EdgeSprings: bond 0 .* 16 nm"),
    "tethered edges": (lambda: membrane_of(lambda m: F.MembraneTether(m, 300.0, 3.2, l_max=5.0)),
                       "MembraneTether reaches 16 nm"),
    "constrained links": (chain, "'chain': link 0 has a length of 15 nm"),
    "free links": (lambda: chain(constrained=False), "'chain': link 0 has a length of 15 nm"),
    "rods": (rod, "'rod': the segment of rod 0 has a length of 15 nm"),
    "containers": (lambda: two_beads(F.WallRepulsion(mp.boundaries.Sphere((4.0, 4.0, 0.0), 15.0), [0, 1, 2], 1.0, 1.0)),
                   "WallRepulsion reaches 16 nm"),
}  # fmt: skip


@pytest.mark.parametrize("name", TOO_LONG)
def test_terms_longer_than_half_of_the_box_are_refused(name):
    """When a Context is made, by `set_box`, and by ramps of the box, which then leave nothing behind."""
    make, message = TOO_LONG[name]
    system = make()
    integrator = mp.BAGOGABIntegrator(1e-9, kT=4.14, seed=1)
    refuses(mp.ParameterError, message, mp.Context, system, integrator)
    if system.topology.membranes:
        return
    wide = system_with(system.topology, *system.forces, box=tuple(side and 40.0 for side in system.box))
    simulation = mp.Simulation(wide, mp.BAGOGABIntegrator(1e-9, kT=4.14, seed=1), threads=1)
    context = simulation.context
    for box in (system.box, tuple(side and 29.9 for side in system.box)):
        refuses(mp.ParameterError, message, context.set_box, box)
    refuses(mp.ParameterError, message, simulation.ramp, "box", x=(40.0, 25.0), steps=10)
    assert simulation.reporters == []
    assert context.get_state().box == wide.box
    context.set_box(tuple(side and 33.0 for side in system.box))


@pytest.mark.parametrize("place", [[13.0, 0.0, 0.0], [-93.0, 0.0, 0.0]])
def test_texts_of_beads_that_are_not_next_to_each_other_are_refused(place):
    """They are functions of positions as they are, along the directions that they depend on."""
    distance = "(x1-x2)^2 + (y1-y2)^2 + (z1-z2)^2 - d^2"

    def make(text, constrained, box, **numbers):
        topology = mp.Topology()
        topology.add_beads([[0.0, 0.0, 0.0], place], mass=1e-9, friction=1e-5)
        if constrained:
            topology.constrain(text, [[0, 1]], **numbers)
        system = mp.System(topology, box=box)
        if not constrained:
            system.add_force(F.ConstraintPenalty(text, [0, 1], 1.0, **numbers))
        return mp.Context(system, mp.VerletIntegrator(1e-12))

    for constrained in (False, True):
        with pytest.raises(mp.TopologyError, match="apart along x, more than half of the box of 20 nm"):
            make(distance, constrained, (20.0, 20.0, 20.0), d=abs(place[0]))
        make(distance, constrained, (None, 20.0, 20.0), d=abs(place[0]))
        make("z1 - z2 + y1 - y2", constrained, (20.0, 20.0, 20.0))


def test_bonds_that_fit_are_not_refused():
    """With energies that end, end beyond a well, are flat, or overflow far away."""
    texts = [
        ("-k/2*R^2*log(1 - (r/R)^2)", {"k": 1.0, "R": 9.9}), ("k*(r - 9.5)^4", {"k": 1.0}), ("k*r", {"k": 2.0}),
        ("4*e*((s/r)^12 - (s/r)^6)", {"e": 1.0, "s": 8.0}), ("e*max(0, 1 - r/9)^2", {"e": 1.0}),
        ("e*exp(r/5)", {"e": 0.1}), ("k*r^2", {"k": 0.0}),
    ]  # fmt: skip
    for text, numbers in texts:
        mp.Context(two_beads(F.CustomBonds([[0, 1], [1, 2]], text, **numbers)), mp.VerletIntegrator(1e-12))


def test_numbers_that_are_set_and_links_that_are_added_are_looked_at():
    system = two_beads(F.Links([0], [1], 1.0, 8.0))
    links = system.forces[0]
    context = mp.Context(system, mp.VerletIntegrator(1e-12))
    links.set(length=10.5)
    refuses(mp.ParameterError, r"link 0 has a length of 10\.5", context.step, 1)
    links.set(length=9.0)
    context.step(1)
    added = links.add([0], [2], length=12.0)
    refuses(mp.ParameterError, "link 1 has a length of 12", context.step, 1)
    links.remove(added)
    context.set_box((18.5, 20.0, 20.0))
    links.remove(0)
    context.set_box((4.0, 4.0, 4.0))


def test_a_barostat_stops_at_twice_the_longest_link():
    """A pressure presses a box of ideal beads together, with one link of 6 nm: no side gets below 12."""
    rng = np.random.default_rng(1)
    topology = mp.Topology()
    topology.add_beads(rng.uniform(0.0, 20.0, (5, 3)), mass=1.0, friction=1.0)
    system = system_with(topology, F.Links([0], [1], 1e-6, 6.0), box=(20.0, 20.0, 20.0))
    system.add_jump(mp.jumps.BoxArea(pressure=1.0, rate=1e3, step=0.05))
    context = mp.Context(system, mp.SplittingIntegrator("JBAOABJ", 1e-3, kT=1.0, seed=1), threads=1)
    least = 20.0
    for _ in range(300):
        context.step(10)
        least = min(least, *context.get_state().box)
    assert 12.0 <= least < 12.5


def test_beads_start_in_a_container_at_any_image():
    topology = mp.Topology()
    topology.add_beads([[1.0, 2.0, 103.0], [-99.0, 0.0, 0.0]], mass=1e-9)
    system = mp.System(topology, box=(100.0, 100.0, 100.0))
    system.add_force(F.WallRepulsion(mp.boundaries.Sphere((0.0, 0.0, 0.0), 10.0), [0, 1], 1.0, 1.0))
    assert mp.Context(system, mp.VerletIntegrator(1e-12)).get_state(energy=True).potential_energy == 0.0


def test_half_of_the_box_is_not_enough():
    """Rounding would choose between two images of what is held at just half of the box."""
    for box in (30.0, 30.0 * (1.0 + 1e-8)):
        refuses(mp.ParameterError, "link 0 has a length of 15 nm", mp.Context, chain((box, None, None)),
                mp.VerletIntegrator(1e-12))  # fmt: skip
    mp.Context(chain((30.0 * (1.0 + 1e-6), None, None)), mp.VerletIntegrator(1e-12))
