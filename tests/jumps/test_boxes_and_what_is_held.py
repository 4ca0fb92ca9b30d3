"""Boxes that change beside constraints written by a user, fixed beads and surfaces: measures, places and refusals."""

import numpy as np
import pytest
from builders import refuses

import medyanpy as mp
from medyanpy.errors import ParameterError, TopologyError
from medyanpy.testing import check_mean

KT = 1.0
DISTANCE = "(x1-x2)^2 + (y1-y2)^2 + (z1-z2)^2 - d^2"
TURN = [1.0, 0.0, 0.0, 0.0]


def in_a_box(topology, box, rate=4000.0, word="JBAOABJ", forces=(), **barostat):
    system = mp.System(topology, box=box)
    for force in forces:
        system.add_force(force)
    system.add_jump(mp.jumps.BoxArea(rate=rate, **barostat))
    integrator = mp.SplittingIntegrator(word, 0.01, kT=KT, seed=1)
    return mp.Simulation(system, integrator, threads=1)


def sampled(context, n, steps=1):
    """(n, 3) lengths after every so many steps, the first ones left out."""
    context.step(50)
    out = np.empty((n, 3))
    for row in out:
        context.step(steps)
        row[:] = context.get_state().box
    return out


def check_gamma(found, shape):
    """Numbers with the density x^(shape - 1) e^-x: their mean, by less than the weight of half a unit, and variance."""
    check_mean("mean", found, shape, sees=0.45, time_series=True)
    check_mean("variance", (found - shape) ** 2, shape, sees=0.6 * shape, time_series=True)


def places(rng, *shape):
    return rng.uniform(0.0, 5.0, (*shape, 3))


# What adds a number of units whose places are coordinates -------------------------------------------------------------


def free_beads(topology, rng):
    topology.add_beads(places(rng, 4), mass=1.0, friction=1.0)
    return 4


def dimers(topology, rng):
    """Of unlike masses."""
    x = places(rng, 5)
    first = topology.add_beads(x, mass=1.0, friction=1.0)
    second = topology.add_beads(x + [0.0, 0.6, 0.0], mass=3.0, friction=0.5)
    topology.constrain(DISTANCE, np.column_stack([first.beads, second.beads]), d=0.6, name="dimers")
    return 5


def trimers(topology, rng):
    """Three beads and three distances, in rows with other orders of beads."""
    corners = np.array([[0.0, 0, 0], [1.0, 0, 0], [0.5, 0.8, 0]])
    beads = topology.add_beads((places(rng, 3, 1) + corners).reshape(-1, 3), mass=1.0, friction=1.0)
    for i, j in ((0, 1), (2, 1), (0, 2)):
        d = np.linalg.norm(corners[i] - corners[j])
        topology.constrain(DISTANCE, beads.beads.reshape(3, 3)[:, [i, j]], d=d, name=f"side {i} {j}")
    return 3


def filaments_and_what_they_carry(topology, rng):
    """Two filaments with a bead that is tied to both are one unit, a third is one alone."""
    line = np.arange(3)[:, None] * [0.5, 0.0, 0.0]
    chains = topology.add_filaments([line, line + [0.0, 1.0, 0.0], line + places(rng)], 1.0, 1.0)
    bead = topology.add_beads([[0.0, 0.5, 0.0]], mass=1.0, friction=1.0)
    ends = [[chains.beads[0], bead.beads[0]], [bead.beads[0], chains.beads[3]]]
    topology.constrain(DISTANCE, ends, d=0.5, name="ties")
    return 2


def fixed_vertices(topology, rng):
    topology.add_membrane(mp.TriangleMesh.icosphere(1.0, 0), vertex_mass=1.0, fixed=True)
    return 0


def filaments_that_hold_on(topology, rng):
    """By a fixed node, and by a bead that is tied to one."""
    line = np.arange(3)[:, None] * [0.5, 0.0, 0.0]
    chains = topology.add_filaments([line, line + places(rng)], 1.0, 1.0, fixed_nodes=[0, 3], name="anchored")
    bead = topology.add_beads([chains.positions[0] + [0.0, 0.5, 0.0]], mass=1.0, friction=1.0)
    topology.constrain(DISTANCE, [[chains.beads[0], bead.beads[0]]], d=0.5, name="tie")
    return 0


def fixed_bodies(topology, rng):
    topology.add_rigid_bodies(places(rng, 3), [TURN] * 3, 1.0, [1.0, 1.5, 2.0], (0.4, 0.6), fixed=[True, False, True])
    return 1


def a_clamped_rod(topology, rng):
    nodes, frames = mp.rods.uniform(4, 0.3)
    topology.add_rod(nodes, frames, 1.0, 0.3, [1.0, 1.0, 1.5], 1.0, rotational_friction=0.3, ends=("clamped", "free"))
    return 0


HELD = (fixed_vertices, filaments_that_hold_on, fixed_bodies, a_clamped_rod)


@pytest.mark.parametrize(
    "added", [(dimers,), (trimers, free_beads), (filaments_and_what_they_carry,), *((one, free_beads) for one in HELD)]
)
def test_units_under_pressure_have_their_volumes(added):
    """V^N exp(-PV/kT) with N units whose places are coordinates: those with fixed beads weigh nothing."""
    rng, topology, pressure = np.random.default_rng(3), mp.Topology(), 0.08
    shape = 1 + sum(add(topology, rng) for add in added)
    fixed = "scale" if added[0] in HELD else "refuse"
    simulation = in_a_box(topology, (5.0, 5.0, 5.0), pressure=pressure, step=0.9, fixed_beads=fixed)
    check_gamma(sampled(simulation.context, 5000, 3).prod(axis=1) * pressure / KT, shape)


@pytest.mark.parametrize("held", HELD)
def test_fixed_beads_keep_their_place_in_the_box(held):
    """Of all that is joined to them the shape stays."""
    rng, topology = np.random.default_rng(4), mp.Topology()
    held(topology, rng)
    fixed = np.concatenate([handle.beads[handle.kind.fixed_beads] for handle in topology.handles])
    simulation = in_a_box(topology, (5.0, 5.0, 5.0), pressure=0.08, step=0.9, fixed_beads="scale")
    before = simulation.context.get_state(positions=True)
    simulation.step(20)
    after = simulation.context.get_state(positions=True, velocities=True)
    assert after.counts["BoxArea"].accepted > 100
    assert after.box != before.box
    centres = [fixed] if held is a_clamped_rod else fixed[:, None]
    for beads in centres:
        one, other = (state.positions[beads].mean(axis=0) / state.box for state in (before, after))
        np.testing.assert_allclose(other, one, rtol=1e-12, atol=1e-14)
    assert not after.velocities[fixed].any()


def test_constraints_hold_in_the_new_box():
    rng, topology = np.random.default_rng(5), mp.Topology()
    for add in (dimers, trimers, filaments_and_what_they_carry, filaments_that_hold_on):
        add(topology, rng)
    simulation = in_a_box(topology, (5.0, 5.0, 5.0), pressure=0.3, step=0.9, fixed_beads="scale", word="JABOBAJ")
    for _ in range(5):
        simulation.step(4)
        x = simulation.context.get_state(positions=True).positions
        for handle in topology.handles:
            for rows in handle.kind.constraint_rows():
                g, slope = rows.form.at(x[rows.beads], rows.own)
                assert (np.abs(g) <= 1e-9 * np.abs(slope).sum(axis=(1, 2))).all()


def test_beads_bound_to_fixed_ones_weigh_nothing_either():
    """Springs of their own length: the beads at the ends have a place to be of one size in every box."""
    rng, topology, pressure = np.random.default_rng(6), mp.Topology(), 0.08
    n = free_beads(topology, rng)
    bodies = topology.add_rigid_bodies(places(rng, 4), [TURN] * 4, 1.0, [1.0] * 3, fixed=True)
    beads = topology.add_beads(bodies.positions + 0.1, mass=1.0, friction=1.0)
    springs = mp.forces.HarmonicBonds(np.column_stack([bodies.beads, beads.beads]), 60.0, 0.0)
    simulation = in_a_box(topology, (5.0, 5.0, 5.0), 400.0, pressure=pressure, step=0.9, fixed_beads="scale",
                          forces=[springs])  # fmt: skip
    simulation.context.set_velocities_to_temperature(kT=KT, seed=2)
    check_gamma(sampled(simulation.context, 4000, 20).prod(axis=1) * pressure / KT, n + 1)


def test_points_weigh_a_fixed_patch_by_its_area():
    """A^n exp(tau A/kT): their momenta have what fixed vertices have not."""
    topology, n, tension = mp.Topology(), 8, -0.5
    mesh = mp.TriangleMesh.flat_sheet(3, 4, 2.0, periodic=True)
    sheet = topology.add_membrane(mesh, vertex_mass=1.0, fixed=True)
    topology.add_intriangle_points(sheet, n, mass=1.0, friction=1.0, seed=1)
    system = mp.System(topology, box=mesh.box)
    system.add_jump(mp.jumps.BoxArea(rate=20.0, tension=tension, step=0.9, fixed_beads="scale"))
    simulation = mp.Simulation(system, mp.SplittingIntegrator("JBAGOGABJ", 1.0, kT=KT, seed=1), threads=1)
    context = simulation.context
    context.step(30)
    areas = np.empty(6000)
    for k in range(len(areas)):
        context.step(1)
        areas[k] = np.prod(context.get_state().box[:2])
    check_gamma(areas * -tension / KT, n + 1)


# Surfaces, and constraints that know directions -----------------------------------------------------------------------


def on_a_plane(topology):
    plane = mp.surfaces.Polynomial("z - 1")
    topology.add_surface_points(plane, [[k, k, 1.0] for k in range(6)], mass=1.0, friction=1.0, name="walkers")


def on_a_tube(topology):
    tube = mp.surfaces.Polynomial("x^2 + y^2 - 1")
    topology.add_surface_points(tube, [[1.0, 0.0, k] for k in range(6)], mass=1.0, friction=1.0, name="walkers")


def at_a_height(topology):
    beads = topology.add_beads([[k, k, 1.0] for k in range(6)], mass=1.0, friction=1.0, name="walkers")
    topology.constrain("z - 1", beads)


@pytest.mark.parametrize("added", [on_a_plane, at_a_height])
def test_beads_on_a_plane_weigh_it_by_its_area(added):
    """A^N exp(tau A/kT), and their height stays."""
    topology, tension = mp.Topology(), -0.3
    added(topology)
    context = in_a_box(topology, (5.0, 5.0, 5.0), tension=tension, step=0.9).context
    check_gamma(sampled(context, 5000)[:, :2].prod(axis=1) * -tension / KT, 6 + 1)
    z = context.get_state(positions=True).positions[:, 2]
    assert np.abs(z - 1.0).max() < 1e-9


def test_beads_on_a_tube_weigh_it_by_its_length():
    """Lz^N exp(-P Lx Ly Lz/kT)."""
    topology, pressure = mp.Topology(), 0.05
    on_a_tube(topology)
    context = in_a_box(topology, (5.0, 5.0, 5.0), pressure=pressure, step=0.9, coupling="z").context
    lengths = sampled(context, 5000)
    assert (lengths[:, :2] == 5.0).all()
    check_gamma(lengths[:, 2] * 25.0 * pressure / KT, 6 + 1)
    x, y, _ = context.get_state(positions=True).positions.T
    assert np.abs(np.hypot(x, y) - 1.0).max() < 1e-9


def constrained(text, beads=1, **parameters):
    def added(topology):
        x = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0]])[:beads]
        topology.constrain(text, topology.add_beads(x, mass=1.0, friction=1.0).beads[None], length=1.0, **parameters)

    return added


def on_a_surface(surface, place):
    def added(topology):
        topology.add_surface_points(surface, [place], mass=1.0, friction=1.0, name="walkers")

    return added


# A system, the couplings that are refused, the direction that is named, and the lengths that may change.
NOT_ALIKE = {
    "an absolute place": (constrained("x1"), ("area", "isotropic", "anisotropic", "x"), "x", "yz"),
    "a place and a distance": (constrained("x1 - x2 + 1 + 0.1*(y1 + y2)", 2), ("area", "y"), "y", "xz"),
    "a distance that depends on the place": (constrained("x2 - x1 - cos(2*pi*z1/5)", 2), ("isotropic", "z"), "z", "xy"),
    "a staircase": (constrained("z1 - floor(x1/40)"), ("x", "area"), "x", "y"),
    "a wave in the box": (constrained("z1 - sin(2*pi*y1/5)"), ("y", "area"), "y", "x"),
    "a wave that the box holds ten times": (constrained("z1 - sin(2*pi*y1/0.5)"), ("y", "area"), "y", "x"),
    "what has a value near by only": (constrained("z1 - floor(0.5*sqrt(1 - x1^2))"), ("x", "area"), "x", "y"),
    "what has no value elsewhere": (constrained("z1 - 1 + sqrt(1 - x1^2)"), ("x", "area"), "x", "y"),
    "what counts far apart only": (constrained("select(step(x2 - x1 - 1.2), z1, z2 - z1)", 2), ("z",), "z", "xy"),
    "a sphere": (on_a_surface(mp.surfaces.Sphere(2.0), [2.0, 0, 0]), ("area", "z", "isotropic"), "[xz]", ""),
    "a plane along z": (on_a_surface(mp.surfaces.Polynomial("x - 1"), [1.0, 0, 0]), ("area", "x"), "x", "yz"),
    "a tube along z": (on_a_surface(mp.surfaces.Polynomial("x^2 + y^2 - 1"), [1.0, 0, 0]), ("y", "area"), "[xy]", "z"),
}


def coupled_to(added, coupling):
    topology = mp.Topology()
    added(topology)
    return in_a_box(topology, (5.0,) * 3, pressure=0.1, coupling=coupling)


@pytest.mark.parametrize("name", NOT_ALIKE)
def test_constraints_that_depend_on_the_place_are_refused(name):
    """Along these directions, and along no other."""
    added, refused, direction, others = NOT_ALIKE[name]
    for coupling in refused:
        refuses(TopologyError, f"changes where these move alike along {direction},", coupled_to, added, coupling)
    for coupling in others:
        coupled_to(added, coupling).step(2)


def test_each_direction_is_asked_for_by_itself():
    """Also after others were."""
    topology = mp.Topology()
    on_a_plane(topology)
    context = in_a_box(topology, (5.0,) * 3, tension=0.0).context
    context.set_box((5.0, 6.0, 5.0))
    for _ in range(2):
        refuses(TopologyError, "set_box: the surface under bead 0 .* along z,", context.set_box, (5.0, 6.0, 6.0))
    assert context.get_state().box == (5.0, 6.0, 5.0)


def test_surfaces_of_python_functions_are_refused():
    surface = mp.surfaces.PythonSurface(lambda x: x[:, 2], lambda x: np.broadcast_to([0.0, 0.0, 1.0], x.shape))
    refuses(TopologyError, "of Python functions", coupled_to, on_a_surface(surface, [1.0, 1.0, 0.0]), "area")


def test_other_words_for_fixed_beads_are_refused():
    refuses(ParameterError, "fixed_beads = 'keep' but must be", mp.jumps.BoxArea, rate=1.0, fixed_beads="keep")
    topology = mp.Topology()
    free_beads(topology, np.random.default_rng(1))
    simulation = in_a_box(topology, (5.0,) * 3)
    refuses(ParameterError, "set_box: fixed_beads = 'no' but", simulation.context.set_box, (6.0,) * 3, fixed_beads="no")
    refuses(ParameterError, "Ramp: fixed_beads = ''", simulation.ramp, "box", x=(5.0, 6.0), steps=2, fixed_beads="")


# set_box and ramps ----------------------------------------------------------------------------------------------------


def a_bit_of_everything():
    rng, topology = np.random.default_rng(7), mp.Topology()
    for add in (free_beads, dimers, filaments_and_what_they_carry, *HELD):
        add(topology, rng)
    return in_a_box(topology, (5.0, 5.0, 5.0), pressure=0.08, step=0.5, fixed_beads="scale")


def test_a_box_that_is_set_takes_units_along():
    """Each by its centre of mass, or by what is fixed of it."""
    simulation = a_bit_of_everything()
    context, topology = simulation.context, simulation.topology
    before = context.get_state(positions=True).positions
    refuses(TopologyError, 'is fixed: fixed_beads="scale"', context.set_box, (6.0, 5.0, 5.0))
    context.set_box((6.0, 5.0, 4.0), fixed_beads="scale")
    went = context.get_state(positions=True).positions - before
    by = np.array([0.2, 0.0, -0.2])
    one, other = topology["dimers"].members.T
    centre = 0.25 * (before[one] + 3.0 * before[other])
    for beads in (one, other):
        np.testing.assert_allclose(went[beads], by * centre, atol=1e-9)
    anchored = topology["anchored"].beads
    np.testing.assert_allclose(went[anchored], np.repeat(by * before[anchored[[0, 3]]], 3, axis=0), atol=1e-9)
    tied = topology["tie"].members[0]
    np.testing.assert_allclose(went[tied], [by * before[tied[0]]] * 2, atol=1e-9)


def test_a_ramp_takes_fixed_beads_along():
    """And leaves none of the work of the walls: no force acts."""
    simulation = a_bit_of_everything()
    simulation.system.jumps[0].set(rate=0.0)
    refuses(TopologyError, "is fixed", simulation.ramp, "box", x=(5.0, 6.0), steps=4)
    before = simulation.context.get_state(positions=True)
    fixed = simulation.topology["membrane"].beads
    ramp = simulation.ramp("box", x=(5.0, 6.0), steps=4, fixed_beads="scale")
    after = simulation.context.get_state(positions=True)
    assert after.box == (6.0, 5.0, 5.0)
    assert ramp.work == 0.0
    np.testing.assert_allclose(after.positions[fixed], before.positions[fixed] * [1.2, 1.0, 1.0], atol=1e-12)


def test_bits_do_not_depend_on_threads_or_restarts(tmp_path):
    def state_of(simulation):
        state = simulation.context.get_state(positions=True, velocities=True)
        return state.box, state.positions.tobytes(), state.velocities.tobytes(), state.counts

    reference = a_bit_of_everything()
    reference.step(12)
    reference.save_checkpoint(tmp_path / "run.ckpt")
    again = mp.Simulation.resume(tmp_path / "run.ckpt", threads=3)
    assert again.system.jumps[0].fixed_beads == "scale"
    for simulation in (reference, again):
        simulation.step(12)
    assert state_of(reference) == state_of(again)
