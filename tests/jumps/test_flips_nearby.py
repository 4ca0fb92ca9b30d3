"""Forces that hold triangles, edges or points of membranes in lists: what a change of a few of them costs is found
nearby, and lists are mended."""

import numpy as np
import pytest
from builders import orients, system_with
from medyanpy._kernels.core.program import Operation
from medyanpy._kernels.jumps.trial import Ask

import medyanpy as mp
from medyanpy.engine.schedule import Schedule
from medyanpy.errors import TopologyError
from medyanpy.testing import ForceCase, check_flips

KT = 4.14
# Edges of all meshes are about this long, nm.
EDGE = 15.0
RADIUS = {2: 50.0, 3: 100.0}
# Through the sides of it, in which a vesicle of 162 vertices has its middle.
BOX = (150.0, 150.0, 150.0)


def rough(mesh, seed=1, by=0.06):
    return mesh.with_vertices(mesh.vertices + np.random.default_rng(seed).normal(0.0, by * EDGE, mesh.vertices.shape))


def surface(shape, subdivisions):
    if shape == "with borders":
        return rough(mp.TriangleMesh.cylinder(30.0, 90.0, 14, 9))
    if shape == "flat with peaks":
        # Lines over flat triangles are no longer than those in space, to rounding.
        mesh = mp.TriangleMesh.flat_sheet(9, 9, EDGE)
        up = np.random.default_rng(1).integers(4, size=len(mesh.vertices)) == 0
        return mesh.with_vertices(mesh.vertices + np.outer(0.4 * EDGE * up, [0.0, 0.0, 1.0]))
    if shape == "periodic":
        return rough(mp.TriangleMesh.flat_sheet(10, 12, EDGE, periodic=True))
    return rough(mp.TriangleMesh.icosphere(RADIUS[subdivisions], subdivisions))


def membrane_of(shape, subdivisions, at=(0.0, 0.0, 0.0)):
    topology = mp.Topology()
    # So that no number is counted from 0.
    topology.add_beads(np.random.default_rng(5).normal(0.0, 30.0, (5, 3)), mass=1.0, friction=1.0, name="beads")
    topology.add_membrane(
        rough(mp.TriangleMesh.icosphere(18.0, 1)).translated(np.add(at, [50.0, 0.0, 10.0])), vertex_mass=1.0,
        vertex_friction=1.0, name="other",
    )  # fmt: skip
    mesh = surface(shape, subdivisions).translated(at)
    return topology, topology.add_membrane(mesh, vertex_mass=1.0, vertex_friction=1.0, name="sheet"), mesh


def soft(shape, subdivisions, at=(0.0, 0.0, 0.0), points=True, **options):
    """Filaments that lie on a membrane, balls, points in it, and another membrane that pierces it."""
    topology, sheet, mesh = membrane_of(shape, subdivisions, at)
    rng = np.random.default_rng(2)
    for k, vertex in enumerate(rng.choice(len(mesh.vertices), len(mesh.vertices) // 12, replace=False)):
        way = rng.normal(size=3)
        nodes = mesh.vertices[vertex] + 0.8 * EDGE * np.arange(-1.5, 2.0)[:, None] * way / np.linalg.norm(way)
        topology.add_filament(nodes, 1.0, 1.0, constrained=False, name=f"chain {k}")
    near = mesh.vertices[::9] + rng.normal(0.0, 3.0, mesh.vertices[::9].shape)
    topology.add_balls(near, 4.0, 1.0, 1.0, name="balls")
    if points:
        topology.add_intriangle_points(sheet, len(mesh.faces) // 4, mass=1.0, friction=1.0, seed=3)
    handles = [h for h in topology.handles if h.name != "beads"]
    return topology, mp.forces.SoftCollisions(handles, stiffness=5.0, radius=5.0, skin=2.0, **options)


def avoiding(shape, subdivisions, at=(0.0, 0.0, 0.0)):
    """A membrane whose own triangles repel each other."""
    return soft(shape, subdivisions, at, self_avoiding=True)


def ellipsoids(shape, subdivisions, at=(0.0, 0.0, 0.0)):
    topology, sheet, mesh = membrane_of(shape, subdivisions, at)
    rng = np.random.default_rng(3)
    inside = mesh.vertices[::6] + rng.normal(0.0, 4.0, mesh.vertices[::6].shape)
    bodies = topology.add_rigid_bodies(inside, orients(rng, len(inside)), 1.0, [1.0, 1.0, 1.0], (1.0, 1.0))
    points = topology.add_intriangle_points(sheet, len(mesh.faces) // 4, mass=1.0, friction=1.0, seed=3)
    chain = topology.add_filament(
        mesh.vertices[7] + 12.0 * np.arange(-1.5, 2.0)[:, None] * [0.8, 0.6, 0.1], 1.0, 1.0, constrained=False
    )
    shapes = [sheet, topology["other"], points, chain, topology["beads"]]
    return topology, mp.forces.EllipsoidCollisions(bodies, shapes, 1.0, [4.0, 8.0, 10.0], 2.0, skin=2.0, form="soft")


def along(shape, subdivisions, at=(0.0, 0.0, 0.0), cutoff=12.0, per_face=1):
    """Points that interact along a membrane, some of them of one group only."""
    topology, sheet, mesh = membrane_of(shape, subdivisions, at)
    one = topology.add_intriangle_points(sheet, per_face * len(mesh.faces) // 2, mass=1.0, friction=1.0, seed=3)
    other = topology.add_intriangle_points(sheet, per_face * len(mesh.faces) // 2, mass=1.0, friction=1.0, seed=4)
    topology.add_intriangle_points(topology["other"], 20, mass=1.0, friction=1.0, seed=5)
    excluded = np.column_stack([one.beads[:40], other.beads[:40]])
    others = [one, other, *topology.point_handles[2:]]
    return topology, mp.forces.SoftSphere(one, others, 5.0, cutoff, along_surface=True, exclusions=excluded)


def along_far(shape, subdivisions, at=(0.0, 0.0, 0.0)):
    """Ways that lead over several triangles, and past borders."""
    return along(shape, subdivisions, at, 2.2 * EDGE)


def normals(shape, subdivisions, at=(0.0, 0.0, 0.0)):
    topology, sheet, mesh = membrane_of(shape, subdivisions, at)
    n = len(mesh.faces) // 3
    points = topology.add_intriangle_points(sheet, n, mass=1.0, friction=1.0, seed=3)
    x = points.positions + np.random.default_rng(6).normal(0.0, 5.0, (n, 3))
    beads = topology.add_beads(x, mass=1.0, friction=1.0)
    # The direction of every other one is that of two vertices.
    ends = np.where(np.arange(n) % 2 == 0, beads.beads, sheet.beads[np.arange(n) % len(sheet)])
    return topology, mp.forces.NormalLinks(points.beads, ends, points.beads, 7.0)


BUILDS = {
    "collisions": soft, "self-avoiding": avoiding, "ellipsoids": ellipsoids, "along": along, "along far": along_far,
    "normals": normals,
}  # fmt: skip


def make(force, shape="closed", subdivisions=2, at=(0.0, 0.0, 0.0)):
    return BUILDS[force](shape, subdivisions, at)


@pytest.mark.parametrize("box", [None, BOX], ids=["open", "box"])
@pytest.mark.parametrize("shape", ["closed", "with borders", "flat with peaks"])
@pytest.mark.parametrize("force", BUILDS)
def test_contract(force, shape, box):
    at = (0.0, 0.0, 0.0) if box is None else (70.0, -60.0, 5.0)
    check_flips(ForceCase(force, lambda: make(force, shape, at=at), lambda x: 0.0, 40.0), box=box)


@pytest.mark.parametrize("force", ["collisions", "ellipsoids", "along", "along far", "normals"])
def test_contract_of_periodic_sheets(force):
    """Corners of one triangle lie on several images, and so do points near a flip."""
    sides = (10.0 * EDGE, 12.0 * EDGE * 0.75**0.5, 150.0)
    check_flips(ForceCase(force, lambda: make(force, "periodic"), lambda x: 0.0, 40.0), flips=150, box=sides)


def context_of(force, subdivisions=2):
    topology, own = make(force, subdivisions=subdivisions)
    return mp.Context(system_with(topology, own), mp.VerletIntegrator(1e-3), threads=1), topology["sheet"]


def tried(context, sheet, n, seed=2, moves=0):
    """Proposals of single flips, with beads that move now and then, one after the other."""
    rng, flipping = np.random.default_rng(seed), context._schedule.flipping
    edges, first = sheet.mesh.edges.copy(), context.layout.slice_of(sheet).start
    for k in range(n):
        i = rng.integers(len(edges))
        moved = rng.choice(context.layout.n_cartesian, moves if k % 5 == 0 else 0, replace=False)
        x = context._store.x[moved] + rng.normal(0.0, 2.0, (len(moved), 3))
        try:
            change = flipping.proposal("test", sheet, edges[[i]], moved, x)
        except TopologyError:
            continue
        yield change
        if (change.made[0] != edges[i] + first).all():
            edges[i] = change.made[0] - first


@pytest.mark.parametrize("moves", [0, 3])
@pytest.mark.parametrize("force", BUILDS)
def test_gains_add_up_without_energies_in_between(force, moves):
    """As a letter goes on: lists are mended change by change, and nothing is made anew."""
    context, sheet = context_of(force)
    flipping, operation = context._schedule.flipping, context._schedule.bound[0]
    before = context.get_state(energy=True).potential_energy
    builds, gained, done = None, 0.0, 0
    for change in tried(context, sheet, 150, moves=moves):
        # As in the letter, an attempt is asked for, and some are made.
        gain = change.difference(operation)
        # The first flip ever makes room for those to come.
        builds = getattr(operation, "builds", 0) if builds is None else builds
        if done % 3 < 2:
            gained += gain
            flipping.swap(sheet, change)
            assert change.mended(operation)
        done += 1
    assert done > 70
    assert getattr(operation, "builds", 0) == builds
    after = context.get_state(energy=True).potential_energy
    assert after != before
    assert gained == pytest.approx(after - before, abs=1e-11 * (abs(before) + abs(after)))


@pytest.mark.parametrize("force", BUILDS)
def test_terms_looked_at_do_not_grow_with_the_system(force):
    looked = []
    for subdivisions in (2, 3):
        context, sheet = context_of(force, subdivisions)
        operation = context._schedule.bound[0]
        context.get_state(energy=True)
        counts = []
        for change in tried(context, sheet, 200):
            before = operation.examined
            change.difference(operation)
            counts.append(operation.examined - before)
        looked.append(np.mean(counts))
    assert looked[0] > 0.5
    # Four times as many vertices and all else; means of 200 scatter by less than a tenth.
    assert looked[1] < 1.4 * looked[0]


@pytest.mark.parametrize("force", BUILDS)
def test_no_force_is_bound_again_in_a_run(force, monkeypatch):
    topology, own = make(force)
    system = system_with(topology, own, mp.forces.MembraneArea(topology["sheet"], 10.0))
    system.add_jump(mp.jumps.EdgeFlips(topology["sheet"], 0.3 / 1e-6))
    word = "JBAGOGABJ" if topology.point_handles else "JBAOABJ"
    context = mp.Context(system, mp.SplittingIntegrator(word, 1e-6, kT=1e3, seed=3), threads=1)
    context.step(1)
    bound, bind = [], Schedule.bind
    monkeypatch.setattr(Schedule, "bind", lambda self, force: bound.append(force) or bind(self, force))
    context.step(15)
    flips = next(iter(context.get_state().counts.values()))
    assert flips.accepted > 30
    assert not bound


SHAPES = ("collisions", "self-avoiding", "ellipsoids")
# Its sides cut the vesicle, whose edges remain short beside it though nothing but collisions holds them.
WIDE = (300.0, 300.0, 300.0)


def in_motion(force, box=None, rate=0.0, timestep=1e-6, subdivisions=2):
    """A context whose beads move by a share of the skin in ten steps or so, with flips at both ends of a step."""
    topology, own = make(force, subdivisions=subdivisions, at=(0.0, 0.0, 0.0) if box is None else (145.0, -135.0, 5.0))
    system = system_with(topology, own, box=box)
    # Without narrow triangles few become larger than cells allow.
    system.add_jump(mp.jumps.EdgeFlips(topology["sheet"], rate, min_angle=np.radians(20.0)))
    word = "JBAGOGABJ" if topology.point_handles else "JBAOABJ"
    context = mp.Context(system, mp.SplittingIntegrator(word, timestep, kT=1e3, seed=3), threads=1)
    context.set_velocities_to_temperature(kT=1e3, seed=4)
    return context


def expect_a_new_context_to_agree(context, other):
    other._set_dynamical_arrays({k: a.copy() for k, a in context._dynamical_arrays().items()}, context.step_count)
    mine, theirs = (one.get_state(positions=True, forces=True, energy=True) for one in (context, other))
    assert mine.potential_energy == theirs.potential_energy != 0.0
    assert (mine.forces == theirs.forces).all()


@pytest.mark.parametrize("box", [None, WIDE], ids=["open", "box"])
@pytest.mark.parametrize("force", SHAPES)
def test_lists_that_are_mended_are_those_of_a_new_context(force, box):
    """In the course of 60 steps with flips, between which lists are built now and then: to the bit."""
    context = in_motion(force, box, rate=0.1 / 1e-3, timestep=1e-3)
    operation = context._schedule.bound[0]
    for k in range(30):
        context.step(1 + k % 3)
        expect_a_new_context_to_agree(context, in_motion(force, box))
    assert next(iter(context.get_state().counts.values())).accepted > 100
    assert 2 < operation.builds < 30
    assert operation.mended > 30


@pytest.mark.parametrize("force", SHAPES)
def test_lists_are_those_of_a_new_context_after_ten_thousand_flips(force):
    """Each mended many times over, and none built, except where some shapes have become larger than cells allow."""
    context = in_motion(force, rate=5.0 / 1e-6)
    operation = context._schedule.bound[0]
    context.step(1)
    before = operation.builds
    while next(iter(context.get_state().counts.values())).accepted < 10_000:
        context.step(2)
    assert operation.builds <= before + 1
    assert operation.mended > 5
    expect_a_new_context_to_agree(context, in_motion(force))


@pytest.mark.parametrize("force", SHAPES)
def test_flips_cause_no_searches(force):
    """Within the skin there are as many as without flips: one, and one more before the first flip."""
    still, fluid = in_motion(force), in_motion(force, rate=0.1 / 1e-6)
    for context in (still, fluid):
        context.step(30)
    assert next(iter(fluid.get_state().counts.values())).accepted > 50
    assert still._schedule.bound[0].builds == 1
    assert fluid._schedule.bound[0].builds <= 2


@pytest.mark.parametrize("force", ["collisions", "self-avoiding", "along", "in space"])
def test_flips_refused_early_change_no_bit(force):
    """The force that is asked last stops where it is certain that a flip is refused; asked in full, runs are the
    same."""
    stops, asks_all = (bends_too(force) for _ in range(2))
    for context in (stops, asks_all):
        # The jump learns its forces with the first step.
        context.step(1)
    weights = asks_all._schedule.jumping.operations[0].weights
    assert weights.may_stop
    bound = asks_all._schedule.bound
    # Behind a force that is bound again none is the last.
    asks = [Ask.DIFFERENCE] * len(bound)
    weights.take([*bound, Operation()], [*asks, Ask.REBIND], lambda k: Operation(), lambda rebound: None)
    assert not weights.may_stop
    seen = []
    for context in (stops, asks_all):
        before = context._schedule.bound[1].examined
        context.step(20)
        seen.append(context._schedule.bound[1].examined - before)
    one, other = (context.get_state(positions=True, velocities=True, energy=True) for context in (stops, asks_all))
    assert (one.positions == other.positions).all()
    assert (one.velocities == other.velocities).all()
    assert one.counts == other.counts
    assert one.potential_energy == other.potential_energy
    counts = next(iter(one.counts.values()))
    assert counts.accepted > 20
    assert counts.tried > 3 * counts.accepted
    assert seen[0] < 0.9 * seen[1]


def bends_too(force):
    """A membrane that bends, so that most flips are refused, and whose force is asked last."""
    topology, own = make("along" if force == "in space" else force)
    points = topology.point_handles
    if force == "in space":
        own = mp.forces.SoftSphere(points[0], points[1], 5.0, 12.0)
    bending = mp.forces.MembraneBending(topology["sheet"], 300.0)
    system = system_with(topology, bending, own)
    system.add_force(mp.forces.MembraneFoldRepulsion(topology["sheet"], 200.0))
    system.add_jump(mp.jumps.EdgeFlips(topology["sheet"], 0.1 / 1e-4))
    context = mp.Context(system, mp.SplittingIntegrator("JBAGOGABJ", 1e-4, kT=10.0, seed=3), threads=1)
    context.set_velocities_to_temperature(kT=10.0, seed=4)
    return context


@pytest.mark.parametrize("force", SHAPES)
def test_flips_made_from_outside_are_noticed(force):
    """Faces are exchanged from outside while lists are mended: the state is set to one with others."""
    context, other = in_motion(force, rate=1.0 / 1e-6), in_motion(force, rate=1.0 / 1e-6)
    context.step(3)
    other.step(1)
    expect_a_new_context_to_agree(context, other)
    other.step(2)
    expect_a_new_context_to_agree(other, in_motion(force))


@pytest.mark.parametrize("self_avoiding", [False, True])
def test_rows_that_are_mended_hold_for_as_long_as_the_others(self_avoiding):
    """Beads go almost half the skin away before lists are mended, and as far to the other side afterwards."""

    def made():
        topology, own = soft("closed", 2, points=False, self_avoiding=self_avoiding)
        return mp.Context(system_with(topology, own), mp.VerletIntegrator(1e-3), threads=1), topology["sheet"]

    context, sheet = made()
    operation = context._schedule.bound[0]
    # The first flip ever makes room for those to come.
    next(tried(context, sheet, 1)).difference(operation)
    builds, x = operation.builds, context.get_state(positions=True).positions
    # Beads outside and the membrane away from each other, then nearer than they were.
    way = 0.95 * x / np.linalg.norm(x, axis=1)[:, None]
    way[sheet.beads] *= -1.0
    context.set_positions(x + way)
    for change in tried(context, sheet, 100):
        change.difference(operation)
        context._schedule.flipping.swap(sheet, change)
        assert change.mended(operation)
    context.get_state(energy=True)
    context.set_positions(x - way)
    expect_a_new_context_to_agree(context, made()[0])
    assert operation.builds == builds
    assert operation.mended > 0
