"""Boxes that follow a tension or a pressure: their distribution, books, bits and refusals."""

import copy

import numpy as np
import pytest
from builders import refuses, system_with

import medyanpy as mp
from medyanpy.errors import ParameterError, TopologyError
from medyanpy.testing import check_mean

KT = 1.0


def sampled(context, n, steps=1):
    """(n,) areas and volumes after every so many steps."""
    out = np.empty((n, 2))
    for k in range(n):
        context.step(steps)
        x, y, z = context.get_state().box
        out[k] = x * y, x * y * (1.0 if z is None else z)
    return out.T


def gas(n, box, chains=0, seed=1, threads=1, **barostat):
    """Beads, and filaments, that feel nothing."""
    rng = np.random.default_rng(seed)
    topology = mp.Topology()
    topology.add_beads(rng.uniform(0.0, 5.0, (n, 3)), mass=1.0, friction=1.0)
    if chains:
        nodes = [rng.uniform(0.0, 5.0, 3) + np.arange(3)[:, None] * [0.5, 0.0, 0.0] for _ in range(chains)]
        topology.add_filaments(nodes, node_mass=1.0, node_friction=1.0)
    system = mp.System(topology, box=box)
    system.add_jump(mp.jumps.BoxArea(rate=4000.0, **barostat))
    return mp.Context(system, mp.SplittingIntegrator("JBAOABJ", 0.01, kT=KT, seed=seed), threads=threads)


@pytest.mark.parametrize("coupling", ["isotropic", None])
def test_an_ideal_gas_under_pressure_has_its_volumes(coupling):
    """V^N exp(-PV/kT): mean and variance (N + 1) kT/P, (N + 1) (kT/P)^2. Filaments count as one each."""
    n, chains, pressure = 6, 3, 0.08
    context = gas(n, (5.0, 5.0, 5.0), chains, pressure=pressure, step=0.9, coupling=coupling)
    sampled(context, 50)
    _, volumes = sampled(context, 2500)
    shape, scale = n + chains + 1, KT / pressure
    check_mean("volumes", volumes / scale, shape, sees=0.06 * shape, time_series=True)
    squares = (volumes / scale - shape) ** 2
    check_mean("their variance", squares, shape, sees=0.35 * shape, time_series=True)
    box = np.array(context.get_state().box)
    assert np.ptp(box) < 1e-12 * box.max()


def test_an_ideal_gas_under_tension_has_its_areas():
    n, tension = 8, -0.3
    context = gas(n, (5.0, 5.0, None), tension=tension, step=0.9)
    sampled(context, 50)
    areas, _ = sampled(context, 2500)
    check_mean("areas", areas * -tension / KT, n + 1, sees=0.08 * n, time_series=True)
    assert context.get_state().box[2] is None


def points_on_a_patch(n, seed=1, flips=0.0, word="JBAGOGABJ", timestep=1.0, size=(3, 4), **barostat):
    """On vertices that are too heavy to move, in a plane."""
    topology = mp.Topology()
    mesh = mp.TriangleMesh.flat_sheet(*size, 2.0, periodic=True)
    sheet = topology.add_membrane(mesh, vertex_mass=1e12, vertex_friction=1.0)
    if n:
        topology.add_intriangle_points(sheet, n, mass=1.0, friction=1.0, seed=seed)
    system = mp.System(topology, box=mesh.box)
    system.add_jump(mp.jumps.BoxArea(rate=20.0, **barostat))
    if flips:
        system.add_jump(mp.jumps.EdgeFlips(sheet, flips, min_angle=0.2))
    context = mp.Context(system, mp.SplittingIntegrator(word, timestep, kT=KT, seed=seed), threads=1)
    context.set_velocities(np.zeros((len(sheet) + n, 3)))
    return context


@pytest.mark.parametrize("n", [0, 12])
def test_points_weigh_a_patch_by_its_area(n):
    """A^(V + n) exp(tau A/kT) with V vertices: without the points' kinetic energy it would be A^V."""
    tension = -0.5
    context = points_on_a_patch(n, tension=tension, step=0.5)
    sampled(context, 30)
    areas, _ = sampled(context, 1500)
    check_mean("areas", areas * -tension / KT, 12 + n + 1, sees=0.08 * (13 + n), time_series=True)
    # Points have moved with their triangles, and keep the temperature.
    assert context.get_state(positions=True).intriangle.barycentric.min(initial=0.0) >= 0.0


@pytest.mark.parametrize("word", ["JBAGOGABJ", "J M(BAGAB) O J"])
def test_edges_that_flip_change_nothing_of_it(word):
    """Whatever the triangles are, in a plane or folded over, their area is a number times that of the box."""
    options = {"flips": 1.0, "word": word, "timestep": 0.2, "size": (5, 6), "tension": -0.5, "step": 0.5}
    context = points_on_a_patch(12, seed=2, **options)
    sampled(context, 100)
    areas, _ = sampled(context, 2500)
    check_mean("areas", areas * 0.5 / KT, 30 + 12 + 1, sees=3.0, time_series=True)
    flips = context.get_state().counts["EdgeFlips"]
    assert flips.accepted > 1000


def fluid(seed=1, threads=1, coupling="isotropic", box=(6.0, 6.0, 6.0), word="JBAOABJ", timestep=0.05, **barostat):
    """Soft spheres."""
    lattice = np.stack(np.meshgrid(*[np.arange(4.0)] * 3, indexing="ij"), -1).reshape(-1, 3)
    rng = np.random.default_rng(seed)
    topology = mp.Topology()
    beads = topology.add_beads(1.5 * lattice + rng.normal(0.0, 0.1, lattice.shape), mass=1.0, friction=1.0)
    system = system_with(topology, mp.forces.SoftSphere(beads, beads, stiffness=20.0, diameter=1.5), box=box)
    system.add_jump(mp.jumps.BoxArea(rate=10.0, step=0.1, coupling=coupling, **barostat))
    integrator = mp.SplittingIntegrator(word, timestep, kT=KT, seed=seed)
    simulation = mp.Simulation(system, integrator, threads=threads)
    simulation.context.set_velocities_to_temperature(kT=KT, seed=seed)
    return simulation


@pytest.mark.parametrize(
    ("coupling", "options"),
    [("isotropic", {}), ("semi-isotropic", {}), ("anisotropic", {}),
     ("isotropic", {"word": "J M(BAB) O J", "timestep": 0.1})],
)  # fmt: skip
def test_the_pressure_of_a_fluid_is_that_of_its_barostat(coupling, options):
    """(N kT + W/3)/V by the virial W, or along each axis: the mean is P where V changes by itself."""
    pressure = 0.9
    context = fluid(coupling=coupling, pressure=pressure, **options).context
    context.step(400)
    found = np.empty((1200, 3))
    for row in found:
        context.step(8)
        state = context.get_state(virial=True)
        row[:] = (64 * KT + np.diag(state.virial)) / np.prod(state.box)
    check_mean("pressures", found.mean(axis=1), pressure, sees=0.06, time_series=True)
    if coupling == "anisotropic":
        for c in range(3):
            check_mean("pressures", found[:, c], pressure, sees=0.1, time_series=True)


@pytest.mark.parametrize(("rate", "every"), [(2.0, 1), (10.0, 1), (60.0, 1), (4.0, 3)])
def test_a_trial_costs_one_evaluation_of_the_energy(rate, every):
    """Kicks on the way to a trial compute the energies: forces are evaluated once a step, once for each trial, once
    after a box that has changed, and once for trials after that but before the next kick."""
    calls = []

    def trap(x):
        calls.append(1)
        return 0.05 * float((x**2).sum()), -0.1 * x

    topology = mp.Topology()
    topology.add_beads(np.random.default_rng(1).normal(size=(20, 3)), mass=1.0, friction=1.0)
    system = system_with(topology, mp.forces.PythonForce(trap), box=(9.0, 9.0, 9.0))
    system.add_jump(mp.jumps.BoxArea(rate=rate, step=0.1, pressure=0.05, every=every))
    context = mp.Context(system, mp.SplittingIntegrator("JBAOABJ", 0.05, kT=KT, seed=2))
    context.set_velocities_to_temperature(kT=KT, seed=2)
    context.step(30)
    before = context.get_state().counts["BoxArea"]
    events = context.events()
    calls.clear()
    context.step(400)
    tried, accepted = np.subtract(context.get_state().counts["BoxArea"], before)[:2]
    assert 20 < tried
    assert 10 < accepted < tried
    # Halves of the time of a step are those of its first and second J. The kick after the last may be still to come.
    halves = {np.floor(event.time / (0.025 * every)) for event in events.heard()}
    changed = len({(half + 1) // 2 for half in halves})
    assert changed - 1 <= len(calls) - 400 - tried <= changed + len({half for half in halves if half % 2})


def test_books_close_to_rounding():
    simulation = fluid(coupling="anisotropic", pressure=0.9)
    simulation.report_work = True
    context = simulation.context
    before = context.get_state(energy=True)
    context.step(400)
    after = context.get_state(energy=True)
    assert context.system.jumps[0].counts.accepted > 50
    booked = after.heat + after.shadow_work + after.protocol_work + after.chemical_work
    scale = max(abs(after.heat), abs(after.shadow_work), abs(after.total_energy))
    assert booked == pytest.approx(after.total_energy - before.total_energy, abs=1e-11 * scale)
    assert after.protocol_work == 0.0


def test_bits_do_not_depend_on_threads_cuts_or_restarts(tmp_path):
    reference = fluid(pressure=0.9)
    reference.step(120)
    wanted = reference.context.get_state(positions=True, velocities=True)
    others = [fluid(pressure=0.9, threads=threads) for threads in (2, 3)]
    for other in others:
        other.step(50)
        other.step(70)
    first = fluid(pressure=0.9)
    first.step(50)
    first.save_checkpoint(tmp_path / "run.ckpt")
    others.append(mp.Simulation.resume(tmp_path / "run.ckpt"))
    others[-1].step(70)
    for other in others:
        state = other.context.get_state(positions=True, velocities=True)
        assert state.box == wanted.box
        assert (state.positions == wanted.positions).all()
        assert (state.velocities == wanted.velocities).all()
        assert state.counts == wanted.counts


def test_trajectories_hold_each_box(tmp_path):
    simulation = fluid(pressure=0.9)
    with mp.reporters.TrajectoryReporter(tmp_path / "run.h5", 10) as reporter:
        simulation.reporters.append(reporter)
        boxes = []
        for _ in range(4):
            simulation.step(10)
            boxes.append(simulation.context.get_state().box)
    with mp.Trajectory(tmp_path / "run.h5") as trajectory:
        assert [frame.box for frame in trajectory][-4:] == boxes
    assert len(set(boxes)) > 1


def test_documents_of_a_tension_ask_for_no_pressure():
    """A number that was left out is written as 0, which asks for nothing; one that is set later does."""
    context = points_on_a_patch(3, tension=-0.5)
    system, integrator = mp.deserialize(mp.serialize((context.system, context.integrator)))
    again = mp.Context(system, integrator, threads=1)
    again.step(3)
    system.jumps[0].set(pressure=0.1)
    refuses(ParameterError, "periodic along z under pressure", again.step, 1)


def test_a_box_does_not_become_too_small():
    """Neither for forces nor by trials: it would be pressed to nothing."""
    context = fluid(pressure=400.0).context
    context.step(300)
    assert min(context.get_state().box) >= 3.0


def test_refusals():
    beads = mp.Topology()
    beads.add_beads([[0.0, 0.0, 0.0]], mass=1.0, friction=1.0)

    def made(box, topology=beads, **barostat):
        system = mp.System(topology, box=box)
        system.add_jump(mp.jumps.BoxArea(rate=1.0, **barostat))
        return mp.Context(system, mp.SplittingIntegrator("JBAOABJ", 1.0, kT=KT))

    for box, barostat, message in [
        (None, {"tension": 1.0}, "periodic along x"),
        ((5.0, 5.0, None), {"pressure": 1.0}, "periodic along z under pressure"),
        ((5.0, None, 5.0), {"tension": 1.0}, "periodic along y"),
        ((5.0, 5.0, None), {"tension": 1.0, "coupling": "semi-isotropic"}, "along z with coupling"),
        ((5.0, 5.0, 5.0), {"coupling": "cubic"}, "coupling = 'cubic'"),
        ((5.0, 5.0, 5.0), {"step": 0.0}, "step = 0"),
    ]:
        refuses(ParameterError, message, made, box, **barostat)
    fixed = mp.Topology()
    fixed.add_membrane(mp.TriangleMesh.icosphere(1.0, 0), vertex_mass=1.0, fixed=True)
    on_surface = mp.Topology()
    on_surface.add_surface_points(mp.surfaces.Sphere(1.0), [[1.0, 0, 0]], mass=1.0, friction=1.0)
    for topology, message in ((fixed, "is fixed"), (on_surface, "surface under bead 0 .* move alike along x")):
        refuses(TopologyError, message, made, (5.0, 5.0, 5.0), topology, tension=1.0)
    system = mp.System(beads, box=(5.0, 5.0, 5.0))
    system.add_jump(mp.jumps.BoxArea(rate=1.0))
    refuses(ParameterError, "needs a temperature", mp.Context, system, mp.SplittingIntegrator("JBABJ", 1.0))




@pytest.mark.parametrize(
    "arguments",
    [{"pressure": 0.1}, {"tension": 0.1}, {}, {"pressure": 0.1, "tension": 0.1}, {"pressure": 0.1, "coupling": "area"},
     {"tension": 0.1, "coupling": "anisotropic"}],
)  # fmt: skip
def test_copies_and_documents_are_coupled_as_the_jump_is(arguments):
    """The default follows from what is given, which a document does not tell from numbers that are 0."""
    topology = mp.Topology()
    topology.add_beads([[0.0, 0, 0]], mass=1.0, friction=1.0)
    system = mp.System(topology, box=(5.0, 5.0, 5.0))
    jump = system.add_jump(mp.jumps.BoxArea(rate=1.0, **arguments))
    integrator = mp.SplittingIntegrator("JBAOABJ", 0.01, kT=KT)
    again, _ = mp.deserialize(mp.serialize((system, integrator)))
    assert [copy.copy(jump).coupling, again.jumps[0].coupling] == [jump.coupling] * 2
    expected = "isotropic" if arguments == {"pressure": 0.1} else arguments.get("coupling", "area")
    assert jump.coupling == expected


def test_a_reach_that_grows_in_a_run_is_known_to_the_box():
    """Of links that bind, with kT and with the stiffness of the springs: a box below twice that is refused."""
    rng = np.random.default_rng(1)
    topology = mp.Topology()
    beads = topology.add_beads(rng.uniform(0.0, 6.0, (20, 3)), mass=1.0, friction=1.0)
    system = mp.System(topology, box=(6.0, 6.0, 6.0))
    springs = system.add_force(mp.forces.Links([], [], stiffness=20.0, length=0.8))
    # The box comes first: it must not hold what reached how far before the others were asked.
    system.add_jump(mp.jumps.BoxArea(pressure=3.0, rate=300.0, step=0.05))
    binding = system.add_jump(mp.jumps.LinkBinding(springs, beads, off_rate=20.0, on_rate=60.0))
    context = mp.Context(system, mp.SplittingIntegrator("JBAOABJ", 0.002, kT=KT, seed=1), threads=1)
    springs.set(stiffness=15.0)
    for _ in range(40):
        context.step(25)
        assert min(context.get_state().box) >= 2.0 * binding.window(KT)[1]
    assert min(context.get_state().box) < 2.1 * binding.window(KT)[1]
    springs.set(stiffness=5.0)
    refuses(ParameterError, r"LinkBinding reaches .* and the box is", context.step, 1)
