"""Boxes that change and edges that flip, at once, with everything else that may be on a membrane; and flips of
membranes whose vertices move, against a reference of its own."""

import itertools

import numpy as np
import pytest
from builders import refuses, system_with

import medyanpy as mp
from medyanpy.testing import check_mean

KT = 1.0
TIMESTEP = 0.002


def everything(threads=1, seed=3, tension=0.2, friction=1.0, word="JBAGOGABJ", flips=2.0, skin=None):
    """A periodic sheet with curved points in it, beads above it, tied to it across the sides, and a filament."""
    mesh = mp.TriangleMesh.flat_sheet(8, 8, 1.0, periodic=True)
    rng = np.random.default_rng(seed)
    topology = mp.Topology()
    sheet = topology.add_membrane(mesh, vertex_mass=1.0, vertex_friction=friction, name="sheet")
    points = topology.add_intriangle_points(sheet, 20, mass=1.0, friction=friction, seed=seed, name="points")
    lattice = np.stack(np.meshgrid(np.arange(4.0), np.arange(4.0), [1.5], indexing="ij"), -1).reshape(-1, 3)
    above = 1.7 * (lattice * [1.0, 1.0, 0.0]) + [-3.0, -2.8, 1.5] + rng.normal(0.0, 0.05, lattice.shape)
    beads = topology.add_beads(above, mass=1.0, friction=friction, name="beads")
    chain = topology.add_filament(np.arange(6)[:, None] * [0.9, 0.1, 0.0] + [2.0, 0.0, 4.0], node_mass=1.0,
                                  node_friction=friction, name="chain")  # fmt: skip
    system = system_with(topology, mp.forces.MembraneBending(sheet, 5.0),
                         mp.forces.MembraneTether(sheet, 80.0, 1.0, l_min=0.4, l_max=1.7),
                         mp.forces.MembraneFoldRepulsion(sheet, 20.0), mp.forces.PointCurvature(points, 5.0, 0.1, 0.2),
                         mp.forces.SoftSphere(points, points, 10.0, 0.6, skin=skin, name="of points"),
                         mp.forces.SoftSphere(beads, beads, 20.0, 1.5, skin=skin, name="of beads"),
                         box=(*mesh.box[:2], None))  # fmt: skip
    ends = [[int(b), int(sheet.beads[v])] for b, v in zip(beads.beads, (60, 3, 17, 40), strict=False)]
    system.add_force(mp.forces.HarmonicBonds(ends, 0.5, 2.0))
    system.add_force(mp.forces.FilamentBending(chain, 5.0))
    if flips:
        system.add_jump(mp.jumps.EdgeFlips(sheet, flips / TIMESTEP))
        system.add_jump(mp.jumps.BoxArea(tension=tension, rate=0.3 / TIMESTEP, step=0.03))
    integrator = mp.SplittingIntegrator(word, TIMESTEP, kT=KT if "J" in word else None, seed=seed)
    simulation = mp.Simulation(system, integrator, threads=threads)
    simulation.context.set_velocities_to_temperature(kT=KT, seed=seed)
    return simulation


def same(one, other):
    a, b = (s.context.get_state(positions=True, velocities=True, energy=True) for s in (one, other))
    assert a.box == b.box
    assert a.counts == b.counts
    assert a.potential_energy == b.potential_energy
    for of in ("positions", "velocities"):
        assert np.array_equal(getattr(a, of), getattr(b, of)), of
    assert np.array_equal(a.faces["sheet"], b.faces["sheet"])
    assert np.array_equal(a.intriangle.triangles, b.intriangle.triangles)


def test_bits_on_any_threads_in_any_pieces_and_after_restarts(tmp_path):
    reference = everything()
    reference.step(300)
    state = reference.context.get_state()
    assert min(counts.accepted for counts in state.counts.values()) > 20
    for threads in (2, 4):
        other = everything(threads)
        other.step(130)
        other.step(170)
        same(reference, other)
    first = everything()
    first.step(110)
    first.save_checkpoint(tmp_path / "run.checkpoint")
    other = mp.Simulation.resume(tmp_path / "run.checkpoint", threads=2)
    other.step(190)
    same(reference, other)
    # Nor is there anything in the system that its document does not say.
    again = everything()
    system, integrator = mp.deserialize(mp.serialize((again.system, again.integrator)))
    other = mp.Simulation(system, integrator, threads=1)
    other.context.set_velocities_to_temperature(kT=KT, seed=3)
    other.step(300)
    same(reference, other)


def test_lists_are_kept_in_a_box_that_changes_and_change_no_bit():
    """With a skin, lists are kept through trials of the box, and mended after flips; without, all are built again."""
    kept, built = everything(), everything(skin=0.0)
    for simulation in (kept, built):
        simulation.step(300)
    same(kept, built)
    assert kept.context.get_state().counts["BoxArea"].accepted > 40
    for name in ("of points", "of beads"):
        one, other = (s.context._schedule.bound_forces[name].neighbors for s in (kept, built))
        assert one.builds < 0.1 * other.builds, (name, one.builds, other.builds)


def test_a_state_that_cannot_be_taken_over_changes_nothing(monkeypatch):
    """Box, triangles and positions have been taken over when it fails."""
    one, twin, other = everything(), everything(), everything(seed=4)
    for simulation in (one, twin):
        simulation.step(60)
    other.step(200)
    state = other.context.get_state(positions=True, velocities=True)

    def fails(context, velocities):
        assert context.get_state().box == state.box
        raise RuntimeError("no velocities")

    with monkeypatch.context() as patch:
        patch.setattr(mp.Context, "set_velocities", fails)
        refuses(RuntimeError, "no velocities", one.context.set_state, state)
    same(one, twin)
    for simulation in (one, twin):
        simulation.step(60)
    same(one, twin)


@pytest.mark.parametrize("word", ["JBAGOGABJ", "J M(BAGAB) O J"])
def test_books_close(word):
    simulation = everything(word=word)
    simulation.report_work = True
    before = simulation.context.get_state(energy=True)
    simulation.step(400)
    after = simulation.context.get_state(energy=True)
    assert min(counts.accepted for counts in after.counts.values()) > 20
    booked = [after.heat, after.shadow_work, after.protocol_work, after.chemical_work]
    gained = after.total_energy - before.total_energy
    scale = max(abs(term) for term in (*booked, before.total_energy, after.total_energy))
    assert sum(booked) == pytest.approx(gained, abs=1e-12 * scale)
    assert booked[2:] == [0.0, 0.0]


@pytest.mark.filterwarnings("ignore:.*friction:medyanpy.errors.ThermostatWarning")
def test_jumps_move_no_momentum():
    """Without friction nothing else does: flips and trials of the box leave the velocities of beads as they are."""
    simulation = everything(friction=0.0)
    handles = simulation.system.topology.handles
    beads = np.concatenate([handle.beads for handle in handles if handle.name != "points"])
    before = simulation.context.get_state(velocities=True)
    simulation.step(300)
    after = simulation.context.get_state(velocities=True)
    assert min(counts.accepted for counts in after.counts.values()) > 20
    moved = after.velocities[beads].sum(axis=0) - before.velocities[beads].sum(axis=0)
    # Points that have a mass and act on each other take part in it through the membrane that carries them.
    assert np.abs(after.velocities[beads] - before.velocities[beads]).max() > 0.5
    assert np.abs(moved).max() < 1e-11 * np.abs(before.velocities[beads]).sum()


def test_words_without_jumps_go_back_the_way_they_came():
    simulation = everything(word="BAGAB", flips=0.0)
    start = simulation.context.get_state(positions=True)
    simulation.step(300)
    context = simulation.context
    there = context.get_state(positions=True, velocities=True)
    assert (there.intriangle.triangles != start.intriangle.triangles).any()
    context.set_velocities(-there.velocities)
    simulation.step(300)
    back = context.get_state(positions=True)
    assert np.abs(back.positions - start.positions).max() < 1e-9
    assert np.array_equal(back.intriangle.triangles, start.intriangle.triangles)


# Vertices that move, and edges that flip ------------------------------------------------------------------------------

TRAP, AREA_MODULUS, AREA, VOLUME_MODULUS, VOLUME = 1.0, 2.0, 8.0, 0.5, 0.6
# In a box, with points on the membrane and beads beside it.
RIDERS, GAS, FRAME = 3, 20, -0.02


def triangulations_of_five():
    """All labelled triangulations of a sphere with five vertices, outside and inside told apart: two poles, and the
    other three round them in either order."""
    found = []
    for poles in itertools.combinations(range(5), 2):
        ring = [v for v in range(5) if v not in poles]
        for a, b, c in (ring, ring[::-1]):
            p, q = poles
            found.append([[p, a, b], [p, b, c], [p, c, a], [q, b, a], [q, c, b], [q, a, c]])
    return np.array(found)


def measured(x, faces):
    """(...,) areas, volumes and sums of the squares of edges, of vertices (n, 5, 3) and triangulations (m, 6, 3)."""
    a, b, c = (x[:, faces[..., k]] for k in range(3))
    vectors = np.cross(b - a, c - a)
    area = 0.5 * np.sqrt((vectors**2).sum(axis=-1)).sum(axis=-1)
    volume = (a * np.cross(b, c)).sum(axis=-1).sum(axis=-1) / 6.0
    # Each edge is in two triangles.
    squares = 0.5 * sum(((one - other) ** 2).sum(axis=(-1, -2)) for one, other in ((a, b), (b, c), (c, a)))
    return area, volume, squares


def exact(points, n=60_000):
    """Means of area, volume, squares of edges and energy of the membrane, and their standard errors: by independent
    vertices from the trap, weighed with what all twenty triangulations have of A^points exp(-U/kT)."""
    rng = np.random.default_rng(1)
    faces = triangulations_of_five()
    weights, values = [], []
    for _ in range(n // 5000):
        area, volume, squares = measured(rng.normal(0.0, np.sqrt(KT / TRAP), (5000, 5, 3)), faces)
        energy = 0.5 * AREA_MODULUS * (area - AREA) ** 2 / AREA + 0.5 * VOLUME_MODULUS * (volume - VOLUME) ** 2 / VOLUME
        w = area**points * np.exp(-energy / KT)
        weights.append(w.sum(axis=1))
        values.append(np.stack([(w * of).sum(axis=1) for of in (area, volume, squares, energy)], axis=-1))
    weight, value = np.concatenate(weights), np.concatenate(values)
    mean = value.sum(axis=0) / weight.sum()
    return mean, np.sqrt(((value - mean * weight[:, None]) ** 2).sum(axis=0)) / weight.sum()


def ball_of_five(word, timestep, boxed, seed=5):
    """In a trap; or free, with points on it, in a box that changes, which is filled with beads. There springs between
    all pairs, without a length, are what the trap is to all that does not ask where the middle is."""
    topology = mp.Topology()
    x = np.array([[0, 0, 1.3], [0, 0, -1.3], [1.2, 0, 0], [-0.6, 1.0, 0], [-0.6, -1.0, 0]])
    outside = [f for f in triangulations_of_five() if measured(x[None], f[None])[1] > 0.0]
    faces = next(f for f in outside if {f[0, 0], f[3, 0]} == {0, 1})
    ball = topology.add_membrane(mp.TriangleMesh(x, faces), vertex_mass=1.0, vertex_friction=1.0, name="ball")
    if boxed:
        topology.add_intriangle_points(ball, RIDERS, mass=1.0, friction=1.0, seed=1)
        topology.add_beads(np.random.default_rng(1).uniform(-9.0, 9.0, (GAS, 3)), mass=1.0, friction=1.0)
    system = mp.System(topology, box=(33.0, 33.0, None) if boxed else None)
    if boxed:
        pairs = list(itertools.combinations(ball.beads.tolist(), 2))
        system.add_force(mp.forces.HarmonicBonds(pairs, TRAP / len(ball), 0.0))
        system.add_jump(mp.jumps.BoxArea(tension=FRAME, rate=2.0 / timestep, step=0.1))
    else:
        system.add_force(mp.forces.HarmonicTrap(ball.beads, TRAP, [0.0, 0.0, 0.0]))
    system.add_force(mp.forces.MembraneArea(ball, AREA_MODULUS, AREA))
    system.add_force(mp.forces.MembraneVolume(ball, VOLUME_MODULUS, VOLUME))
    system.add_jump(mp.jumps.EdgeFlips(ball, 1.0 / timestep, min_angle=0.25))
    context = mp.Context(system, mp.SplittingIntegrator(word, timestep, kT=KT, seed=seed), threads=1)
    context.set_velocities_to_temperature(kT=KT, seed=seed)
    return ball, context


@pytest.mark.slow
@pytest.mark.parametrize("boxed", [False, True])
@pytest.mark.filterwarnings("ignore:.*has become a needle:medyanpy.errors.MeshQualityWarning")
def test_a_membrane_that_moves_and_flips_has_exact_averages(boxed):
    """Under M( ), which has no error of the timestep; flips have a guard against slivers, which takes nothing from the
    distribution. The box does not care for what is in it: a^(beads + 1) exp(tau a/kT), 1 for the ball."""
    wanted, error = exact(RIDERS if boxed else 0)
    ball, context = ball_of_five("J M(BAGAB) O J" if boxed else "J M(BAB) O J", 0.2 if boxed else 0.3, boxed)
    context.step(200)
    rows = np.empty((6000, 4))
    boxes = []
    for row in rows:
        context.step(8)
        state = context.get_state(positions=True, energy=True)
        row[:3] = [of.item() for of in measured(state.positions[ball.beads][None], state.faces["ball"][None])]
        row[3] = state.energies["MembraneArea"] + state.energies["MembraneVolume"]
        if boxed:
            boxes.append(state.box[0] * state.box[1])
    assert 0.5 < state.acceptance < 0.99
    for counts in state.counts.values():
        assert 0.03 < counts.accepted / counts.tried < 0.95
    for k, name in enumerate(("area", "volume", "squares of edges", "energy")):
        scale = rows[:, k].std()
        assert error[k] < 0.02 * scale
        check_mean(name, rows[:, k] / scale, wanted[k] / scale, sees=0.2, time_series=True)
    if boxed:
        check_mean("boxes", np.array(boxes) * -FRAME / KT, GAS + 2, sees=1.5, time_series=True)


# Points on a membrane in a box, all of it at once ---------------------------------------------------------------------

SIDE, POINTS, SURFACE_TENSION, FRAME_TENSION = 11.0, 4, 0.25, -0.07


def heavy_ball(seed=3):
    """Five vertices that are too heavy to move by themselves, and points that are free."""
    x = np.array([[0.3, 0.2, 2.2], [0.0, -0.4, -2.3], [2.3, 0.3, 0.5], [-1.1, 1.7, -0.6], [-0.9, -2.0, 0.3]])
    faces = triangulations_of_five()[0]
    topology = mp.Topology()
    mesh = mp.TriangleMesh(x, faces, box=(SIDE, SIDE, None))
    ball = topology.add_membrane(mesh, vertex_mass=1e12, vertex_friction=1.0, name="ball")
    topology.add_intriangle_points(ball, POINTS, mass=1.0, friction=2.0, seed=1)
    system = system_with(topology, mp.forces.MembraneTension(ball, SURFACE_TENSION), box=mesh.box)
    system.add_jump(mp.jumps.EdgeFlips(ball, 4.0, min_angle=0.1))
    system.add_jump(mp.jumps.BoxArea(tension=FRAME_TENSION, rate=6.0, step=0.6))
    context = mp.Context(system, mp.SplittingIntegrator("JBAGOGABJ", 0.4, kT=KT, seed=seed), threads=1)
    context.set_velocities_to_temperature(kT=KT, seed=seed)
    velocities = context.get_state(velocities=True).velocities.copy()
    velocities[ball.beads] = 0.0
    context.set_velocities(velocities)
    return x, context


def test_points_flips_and_the_box_have_the_distribution_of_all_of_them():
    """a^V A(T, a)^n exp(-(sigma A(T, a) - tau a)/kT), a the area of the box, T one of 20 triangulations: summed here
    over all of both."""
    x, context = heavy_ball()
    areas = np.linspace(1.0, 1500.0, 3000)
    scaled = x * np.stack([np.sqrt(areas) / SIDE, np.sqrt(areas) / SIDE, np.ones_like(areas)], axis=-1)[:, None, :]
    surface = measured(scaled, triangulations_of_five())[0]
    exponent = (5 * np.log(areas) + FRAME_TENSION * areas / KT)[:, None]
    exponent = exponent + POINTS * np.log(surface) - SURFACE_TENSION * surface / KT
    weights = np.exp(exponent - exponent.max())
    weights /= weights.sum()
    assert weights[[0, -1]].sum() < 1e-6
    wanted = (weights.sum(axis=1) @ areas, (weights * surface).sum(), (weights * surface / areas[:, None]).sum())
    context.step(100)
    rows = np.empty((4000, 3))
    for row in rows:
        context.step(2)
        state = context.get_state(positions=True)
        a = state.box[0] * state.box[1]
        now = x * [state.box[0] / SIDE, state.box[1] / SIDE, 1.0]
        row[0], row[1] = a, measured(now[None], state.faces["ball"][None])[0].item()
        row[2] = row[1] / a
    assert min(counts.accepted for counts in state.counts.values()) > 1000
    for k, name in enumerate(("area of the box", "area of the membrane", "share")):
        scale = rows[:, k].std()
        check_mean(name, rows[:, k] / scale, wanted[k] / scale, sees=0.25, time_series=True)
