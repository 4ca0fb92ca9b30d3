"""Hydrodynamic interactions in a system: documents, restarts, edits, filaments and rods, and what is refused."""

import copy
import pickle

import numpy as np
import pytest
from builders import refuses, system_with
from scipy.linalg import eigh

import medyanpy as mp
from medyanpy import forces
from medyanpy.core.flows import Stage
from medyanpy.hydrodynamics import RotnePrager, mobility_matrix
from medyanpy.testing import check_variance

ETA = 0.05
SPHERE = 6 * np.pi * ETA


def some(wall=None):
    """Balls, bodies, a filament of constrained links and a rod."""
    rng = np.random.default_rng(2)
    topology = mp.Topology()
    balls = topology.add_balls(rng.uniform(2, 9, (3, 3)), 0.5, mass=1.0, friction=[0.5, 0.6, 0.7])
    q = rng.normal(size=(4, 4))
    bodies = topology.add_rigid_bodies(rng.uniform(2, 9, (4, 3)), q / np.linalg.norm(q, axis=1)[:, None], 1.0,
                                       (1.0, 1.5, 2.0), mp.rigid.ellipsoid_friction((0.5, 0.6, 1.2), ETA))  # fmt: skip
    filament = topology.add_filament([[12.0, 3.0, k + 3.0] for k in range(5)], node_mass=1.0,
                                     node_friction=[0.3, 0.5, 0.3, 0.5, 0.3])  # fmt: skip
    rod = topology.add_rod([[-3.0, 3.0, 1.5 * k + 3.0] for k in range(4)], np.tile([1.0, 0, 0, 0], (4, 1)), 1.5, 1.0,
                           (0.1, 0.1, 0.1), friction=0.6, rotational_friction=0.3)  # fmt: skip
    system = mp.System(topology)
    system.add_force(forces.UniformField([*balls.beads, *bodies.beads], (0.1, 0.0, -0.3)))
    system.add_force(forces.RodElasticity(rod, shear=(20.0, 20.0), extension=20.0, bending=(5.0, 5.0), twist=5.0))
    handles = [filament, balls, rod, bodies]
    water = system.add_hydrodynamics(RotnePrager(ETA, handles, wall=wall))
    return system, water, handles


def run(system, n=20, seed=1):
    context = mp.Context(system, mp.SplittingIntegrator("BAOAB", 0.02, kT=1.0, seed=seed))
    context.step(n)
    return context


def state(context):
    s = context.get_state(positions=True, velocities=True)
    parts = (s.positions, s.velocities, s.orientations, s.angular_momenta)
    return np.concatenate([part.ravel() for part in parts])


def test_documents_pickles_and_copies():
    system, _, _ = some(wall=mp.boundaries.Plane())
    expected = state(run(system))
    document = mp.serialize(system)
    for other in (mp.deserialize(document), pickle.loads(pickle.dumps(system)), copy.deepcopy(system)):
        assert other.hydrodynamics.viscosity == ETA
        assert [h.name for h in other.hydrodynamics.handles] == [h.name for h in system.hydrodynamics.handles]
        assert (state(run(other)) == expected).all()
    assert mp.serialize(mp.deserialize(document)) == document


def test_checkpoints_know_the_fluid(tmp_path):
    system, _, _ = some()
    simulation = mp.Simulation(system, mp.SplittingIntegrator("BAOAB", 0.02, kT=1.0, seed=1))
    simulation.step(8)
    simulation.save_checkpoint(tmp_path / "c")
    simulation.step(12)
    resumed = mp.Simulation.resume(tmp_path / "c")
    resumed.step(12)
    assert (state(resumed.context) == state(simulation.context)).all()
    other, _, handles = some()
    other.remove_hydrodynamics()
    other.add_hydrodynamics(RotnePrager(2 * ETA, handles))
    another = mp.Simulation(other, mp.SplittingIntegrator("BAOAB", 0.02, kT=1.0, seed=1))
    with pytest.raises(mp.ParameterError, match=r"hydrodynamics: viscosity: 0.05 in the file, 0.1 here"):
        another.load_checkpoint(tmp_path / "c")
    other.topology._contexts.clear()


def test_the_numbers_of_a_checkpoint_are_those_of_steps():
    """Factors and radii may differ in their last bits elsewhere: what a file holds is what the kernel reads."""
    for name in ("radius", "numbers", "plain"):
        found = []
        for changed in (False, True):
            system, _, _ = some()
            context = mp.Context(system, mp.SplittingIntegrator("BAOAB", 0.02, kT=1.0, seed=1))
            if changed:
                context._schedule.dynamical_arrays()[f"hydrodynamics: {name}"] *= 1.0 + 1e-9
            context.step(3)
            found.append(state(context))
        assert 0.0 < abs(found[0] - found[1]).max() < 1e-5


def test_filaments_stay_as_long_as_they_are_and_tangent():
    """O mixes velocities of all nodes: what is normal to the links is filled before and taken out after."""
    system, _, (filament, *_) = some()
    context = mp.Context(system, mp.SplittingIntegrator("BAOAB", 0.02, kT=1.0, seed=1))
    for _ in range(50):
        context.step(1)
        s = context.get_state(positions=True, velocities=True)
        d = np.diff(s.positions[filament.beads], axis=0)
        assert abs(np.linalg.norm(d, axis=1) - 1.0).max() < 1e-10
        assert abs((d * np.diff(s.velocities[filament.beads], axis=0)).sum(axis=1)).max() < 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("texts", [False, True])
def test_even_friction_is_mixed_too(texts):
    """Nodes with one friction over mass need no normal part of their velocities alone; in a fluid they do. Of what O
    adds to v, the variance along the direction in which the normal part matters most, 3.5 % of it; the test sees 3.3 %.
    Links of a filament, and the same constraints as texts.
    """
    h, copies, letters = 0.2, 20, 6500
    x = np.array([[0, 0, 0], [0.2, 0, 0], [0.2, 0.2, 0], [0.2, 0.2, 0.2]])
    radius = np.array([1.0, 0.1, 1.0, 0.1])
    topology = mp.Topology()
    nodes = [x + [1e7 * k, 0, 0] for k in range(copies)]
    friction = SPHERE * np.tile(radius, copies)
    if texts:
        chains = topology.add_beads(np.concatenate(nodes), mass=friction, friction=friction)
        first = chains.beads.reshape(copies, 4)[:, :3].ravel()
        topology.constrain("(x2 - x1)^2 + (y2 - y1)^2 + (z2 - z1)^2 - l^2", np.column_stack([first, first + 1]), l=0.2)
    else:
        chains = topology.add_filaments(nodes, node_mass=friction, node_friction=friction)
    system = mp.System(topology)
    system.add_hydrodynamics(RotnePrager(ETA, chains, tolerance=1e-6))
    context = mp.Context(system, mp.SplittingIntegrator("BAOAB", 1e-3, kT=1.0, seed=1))
    schedule = context._schedule
    # In u = m^(1/2) v: P projects on velocities tangent to the constraints, O is u <- P (c1 (u + n) + c2 xi).
    weight = np.sqrt(np.repeat(SPHERE * radius, 3))
    jacobian = np.zeros((3, 12))
    for k in range(3):
        jacobian[k, 3 * k : 3 * k + 6] = np.concatenate([x[k] - x[k + 1], x[k + 1] - x[k]])
    jacobian /= weight
    normal = jacobian.T @ np.linalg.solve(jacobian @ jacobian.T, jacobian)
    values, vectors = np.linalg.eigh(weight[:, None] * mobility_matrix(x, radius, ETA) * weight)
    c1 = (vectors * np.exp(-h / values)) @ vectors.T
    tangent = np.eye(12) - normal
    by_normal = tangent @ c1 @ normal @ c1 @ tangent
    covariance = tangent @ (np.eye(12) - c1 @ c1) @ tangent + by_normal
    basis = np.linalg.svd(tangent)[0][:, :9]
    shares, directions = eigh(basis.T @ by_normal @ basis, basis.T @ covariance @ basis)
    assert shares[-1] > 0.033
    direction = basis @ directions[:, -1]
    u = np.zeros((copies, 12))
    total = 0.0
    for k in range(letters):
        schedule.store.program.step = k // 256
        for operation in schedule.operations(Stage(k % 256, "O", h, 1.0)):
            schedule.perform(operation)
        now = context.get_state(velocities=True).velocities.reshape(copies, 12) * weight
        added = (now - u @ c1 @ tangent) @ direction
        total += added @ added
        u = now
    check_variance("what O adds", total, copies * letters, direction @ covariance @ direction, sees=0.033)


def test_edits():
    """Beads come and go; those that stay go on, and who comes later has a sphere of its own."""
    system, water, (_, balls, _, bodies) = some()
    context = run(system, 10)
    with system.topology.edit():
        balls.add([[20.0, 20.0, 20.0]], mass=1.0, friction=0.9)
        bodies.remove(bodies.beads[:1], terms="remove")
    context.step(10)
    assert water.radius(balls)[-1] == pytest.approx(0.9 / SPHERE)
    assert len(water.radius(bodies)) == 3
    with pytest.raises(mp.ParameterError, match=r"bead \d+ has friction 0"), system.topology.edit():
        balls.add([[30.0, 20.0, 20.0]], mass=1.0, friction=0.0)
    before = state(context)
    with system.topology.edit():
        system.remove_hydrodynamics()
    np.testing.assert_array_equal(state(context), before)
    context.step(5)
    with system.topology.edit():
        system.add_hydrodynamics(RotnePrager(ETA, balls))
    context.step(5)


def decay(context, handles, h):
    """What is left of velocities along x after 10 steps without noise worth the name, over exp(-γt/m)."""
    v = np.zeros((context.layout.n, 3))
    v[:, 0] = 1e4
    context.set_velocities(v)
    context.step(10)
    now = context.get_state(velocities=True).velocities
    return [float(now[one.beads, 0].mean() / 1e4 / np.exp(-float(one.friction[0]) * 10 * h)) for one in handles]


@pytest.mark.parametrize("word", ["BAOAB", "OBABO"])
def test_friction_follows_the_fluid(word):
    """Of beads so far apart that each is alone: whatever is added to the fluid or taken out of it, also in another
    order and in another fluid, velocities decay by their own friction, once."""
    h = 0.05
    topology = mp.Topology()
    far = 1e7 * np.arange(4)[:, None] * [1.0, 0.0, 0.0]
    beads = topology.add_beads(far, mass=1.0, friction=1.5)
    balls = topology.add_balls(far + [0.0, 1e7, 0.0], 0.5, mass=1.0, friction=0.8)
    bodies = topology.add_rigid_bodies(far + [0.0, 2e7, 0.0], [[1.0, 0, 0, 0]] * 4, 1.0, (1.0, 1.0, 1.0), (0.9, 0.6))
    handles = [beads, balls, bodies]
    system = mp.System(topology)
    context = mp.Context(system, mp.SplittingIntegrator(word, h, kT=1.0, seed=1), threads=1)
    context.step(2)
    assert decay(context, handles, h) == pytest.approx([1.0] * 3, rel=1e-3)
    for fluid in ([balls], [balls, bodies], [bodies, beads, balls], [beads], []):
        for viscosity in (ETA, 3.0 * ETA):
            with topology.edit():
                if system.hydrodynamics is not None:
                    system.remove_hydrodynamics()
                if fluid:
                    system.add_hydrodynamics(RotnePrager(viscosity, fluid))
            assert decay(context, handles, h) == pytest.approx([1.0] * 3, rel=1e-3)


def test_brownian_beads_follow_the_fluid():
    """What is taken out of it moves by its own friction, and what is added by that of the fluid alone."""
    topology = mp.Topology()
    far = 1e7 * np.arange(60)[:, None] * [1.0, 0.0, 0.0]
    beads = topology.add_beads(far, mass=1.0, friction=2.0)
    system = system_with(topology, forces.UniformField(beads, (0.0, 1000.0, 0.0)))
    context = mp.Context(system, mp.BrownianIntegrator(0.1, kT=1.0, seed=1), threads=1)
    for fluid in (False, True, False):
        with topology.edit():
            if system.hydrodynamics is not None:
                system.remove_hydrodynamics()
            if fluid:
                system.add_hydrodynamics(RotnePrager(ETA, beads))
        before = context.get_state(positions=True).positions
        context.step(10)
        drift = (context.get_state(positions=True).positions - before)[:, 1].mean()
        assert drift == pytest.approx(500.0, rel=1e-3)


def test_no_beads_are_left():
    for integrator in (mp.SplittingIntegrator("BAOAB", 0.02, kT=1.0), mp.BrownianIntegrator(0.02, kT=1.0)):
        topology = mp.Topology()
        topology.add_beads([[0, 0, 0]], mass=1.0, friction=1.0)
        balls = topology.add_balls([[5.0, 0, 0], [9.0, 0, 0]], 1.0, mass=1.0, friction=1.0)
        system = mp.System(topology)
        system.add_hydrodynamics(RotnePrager(ETA, balls))
        context = mp.Context(system, integrator)
        context.step(3)
        with topology.edit():
            balls.remove(balls.beads)
        context.step(3)
        with topology.edit():
            balls.add([[7.0, 0, 0]], mass=1.0, friction=1.0)
        context.step(3)
        assert np.isfinite(context.get_state(positions=True).positions[balls.beads]).all()


def test_work():
    """What the letter does to the energy is heat, to the last bit of the books."""
    system, _, _ = some()
    context = mp.Context(system, mp.SplittingIntegrator("BAOAB", 0.02, kT=1.0, seed=1))
    context.set_velocities_to_temperature(kT=1.0, seed=2)
    context.report_work = True
    start = context.get_state(energy=True).total_energy
    context.step(50)
    end = context.get_state(energy=True)
    assert end.total_energy - start == pytest.approx(end.heat + end.shadow_work, abs=1e-9)
    assert abs(end.heat) > 0.1


def test_repr_and_what_a_system_tells():
    system, water, (_, balls, _, _) = some()
    assert system.hydrodynamics is water
    assert "hydrodynamics: RotnePrager(" in repr(system)
    assert "viscosity=0.05" in repr(water)
    with pytest.raises(mp.ParameterError, match=r"the system has RotnePrager.* already"):
        system.add_hydrodynamics(RotnePrager(ETA, balls))
    run(system, 1)
    refuses(mp.MedyanError, "in use by a Context", system.remove_hydrodynamics)
    refuses(mp.ParameterError, "cannot be assigned", setattr, water, "viscosity", 1.0)


TOPOLOGY = mp.Topology()
BALLS = TOPOLOGY.add_balls([[0, 0, 2.0], [5, 0, 2.0]], 1.0, mass=1.0, friction=SPHERE, name="balls")
STILL = TOPOLOGY.add_balls([[0, 0, 2.0], [5, 0, 2.0]], 1.0, mass=1.0, friction=[1.0, 0.0], name="still")
FIXED = TOPOLOGY.add_rigid_bodies([[0, 0, 2.0], [5, 0, 2.0]], [[1.0, 0, 0, 0]] * 2, 1.0, (1.0,) * 3, (SPHERE, SPHERE),
                                  fixed=[False, True], name="fixed")  # fmt: skip
SLIDING = TOPOLOGY.add_rigid_bodies([[0, 0, 2.0]], [[1.0, 0, 0, 0]], 1.0, (1.0,) * 3, SPHERE, name="sliding")
LONG = TOPOLOGY.add_rigid_bodies([[0, 0, 9.0]], [[1.0, 0, 0, 0]], 1.0, (1.0,) * 3,
                                 mp.rigid.ellipsoid_friction((0.5, 0.5, 2.0), ETA), name="long")  # fmt: skip
ALONG = TOPOLOGY.add_filament([[0.0, 0, 3], [1, 0, 3]], node_mass=1.0, node_friction=1.0, node_friction_along=0.5,
                              name="along")  # fmt: skip
VESICLE = TOPOLOGY.add_membrane(mp.TriangleMesh.icosphere(5.0, 1), vertex_mass=1.0, name="vesicle")
ELSEWHERE = mp.Topology().add_beads([[0, 0, 0]], mass=1.0, friction=1.0)
SHEAR = [[0, 1.0, 0], [0, 0, 0], [0, 0, 0]]
FLOOR = mp.boundaries.Plane()


@pytest.mark.parametrize(
    ("arguments", "error", "named"),
    [
        (dict(viscosity=-1.0), mp.ParameterError, "viscosity = -1"),
        (dict(handles=[]), mp.TopologyError, "handles is empty"),
        (dict(handles=[1, 2]), mp.TopologyError, r"handles\[0\] is not a handle of beads but int"),
        (dict(handles=3), mp.TopologyError, r"handles\[0\] is not a handle of beads but int"),
        (dict(handles=[BALLS, BALLS]), mp.TopologyError, "'balls'.* is named twice"),
        (dict(handles=[BALLS, ELSEWHERE]), mp.TopologyError, "belongs to another topology"),
        (dict(handles=[BALLS, VESICLE]), mp.TopologyError, "'vesicle'.* cannot take part: free beads, balls"),
        (dict(handles=STILL), mp.ParameterError, "'still': bead 3 has friction 0 but must have more"),
        (dict(handles=FIXED), mp.ParameterError, "'fixed': bead 5 is fixed"),
        (dict(handles=SLIDING), mp.ParameterError, "'sliding': bead 6 needs friction > 0 of translation and of rota"),
        (dict(handles=ALONG), mp.ParameterError, "'along' has another friction along than across"),
        (dict(handles=LONG, velocity_gradient=SHEAR), mp.ParameterError, "'long': bead 7 is not a sphere, and how"),
        (dict(wall=3), mp.ParameterError, "wall must be a boundaries.Plane, not int"),
        (dict(wall=mp.boundaries.Plane((0, 0, 1.5))), mp.ParameterError,
         "sphere of bead 0 .'balls'. overlaps the wall: its centre is 0.5 nm from it, but must be farther than its "
         "radius, 1 nm"),
        (dict(velocity_gradient=np.eye(3)), mp.ParameterError, "velocity_gradient has trace 3 /s but must have 0"),
        (dict(velocity_gradient=[[0, 1.0], [0, 0]]), mp.ParameterError, "velocity_gradient"),
        (dict(velocity=[1.0, 0, 0], wall=FLOOR), mp.ParameterError, "must vanish on the wall"),
        (dict(velocity_gradient=SHEAR, wall=FLOOR), mp.ParameterError, "must vanish on the wall"),
        (dict(velocity_gradient=SHEAR, wall=mp.boundaries.Plane((0, 9.0, 1.0))), mp.ParameterError, "must vanish on"),
        (dict(tolerance=0.0), mp.ParameterError, "tolerance = 0"),
        (dict(tolerance=0.5), mp.ParameterError, "tolerance = 0.5"),
    ],
)
def test_bad_input(arguments, error, named):
    given = {"viscosity": ETA, "handles": BALLS, **arguments}
    refuses(error, named, RotnePrager, given.pop("viscosity"), given.pop("handles"), **given)


def test_flows_that_stick_to_a_wall_are_taken():
    upwards = [[0, 0, 1.0], [0, 0, 0], [0, 0, 0]]
    assert RotnePrager(ETA, BALLS, wall=FLOOR, velocity_gradient=upwards).flows
    wall = mp.boundaries.Plane((3.0, -2.0, 0.5))
    assert RotnePrager(ETA, BALLS, wall=wall, velocity_gradient=upwards, velocity=[-0.5, 0, 0]).flows


def test_wrong_systems():
    system = mp.System(TOPOLOGY)
    refuses(mp.ParameterError, r"is not a hydrodynamics\.RotnePrager", system.add_hydrodynamics, 3)
    refuses(mp.TopologyError, "belongs to another topology", system.add_hydrodynamics, RotnePrager(ETA, ELSEWHERE))
    refuses(mp.ParameterError, "there are none", system.remove_hydrodynamics)
    refuses(mp.TopologyError, "does not take part", RotnePrager(ETA, BALLS).radius, LONG)


class Reservoir(mp.jumps.Jump):
    """One that would bear and kill beads."""

    def __init__(self, beads):
        super().__init__()
        self.beads = beads

    births = property(lambda self: (self.beads,))

    def bind(self, layout, kT):
        raise AssertionError("it is refused before")

    update = bind


def test_kinds_without_creation_and_removal_are_refused():
    topology = mp.Topology()
    beads = topology.add_beads([[0, 0, 0]], mass=1.0, friction=1.0, capacity=5)
    system = mp.System(topology)
    system.add_hydrodynamics(RotnePrager(ETA, beads))
    system.add_jump(Reservoir(beads))
    with pytest.raises(mp.ParameterError, match="Reservoir creates, removes or changes beads of 'beads'"):
        mp.Context(system, mp.SplittingIntegrator("JBAOABJ", 0.02, kT=1.0))


def test_constrained_filaments_are_refused_by_d():
    system, _, _ = some()
    refuses(mp.ParameterError, "its links are constraints", mp.Context, system, mp.BrownianIntegrator(0.01, kT=1.0))
