"""Long runs, left out of the normal test command: `pytest -m long`. Their results are recorded in docs/validation.md.

The systems of the demos come from the demos' own builders, with fewer members, and run for 10⁷ steps of the demos' own
words and timesteps. False alarms: 1e-6 for each check.
"""

import numpy as np
import pytest
from builders import system_with

import medyanpy as mp
from medyanpy._tools import quaternions
from medyanpy.demo import filaments as filament_demo
from medyanpy.demo import points as point_demo
from medyanpy.demo import rigid as rigid_demo
from medyanpy.demo import rod as rod_demo
from medyanpy.demo import surface as surface_demo
from medyanpy.demo import vesicle as vesicle_demo
from medyanpy.demo.report import TEMPERATURE
from medyanpy.testing import check_chi_square, check_mean, statistical_inefficiency

pytestmark = pytest.mark.long

STEPS = 10_000_000
ROUND_OFF = np.finfo(float).eps


def vesicle(word, timestep, **thermal):
    """An elastic vesicle with bending, area and volume, and points that repel each other."""
    topology = mp.Topology()
    membrane = topology.add_membrane(mp.TriangleMesh.icosphere(10.0, 2), vertex_mass=4.0, vertex_friction=2.0)
    points = topology.add_intriangle_points(membrane, 300, mass=1.0, friction=1.0, seed=3)
    system = system_with(topology, mp.forces.MembraneBending(membrane, 20.0), mp.forces.MembraneArea(membrane, 20.0),
                         mp.forces.MembraneVolume(membrane, 2.0), mp.forces.MembraneEdgeSprings(membrane, 20.0),
                         mp.forces.SoftSphere(points, points, stiffness=10.0, diameter=1.0))  # fmt: skip
    simulation = mp.Simulation(system, mp.SplittingIntegrator(word, timestep, seed=7, **thermal), threads=1)
    simulation.minimize_energy(tolerance=0.1)
    simulation.context.set_velocities_to_temperature(kT=1.0, seed=8)
    return simulation, membrane, points


def test_temperatures_and_uniformity_over_a_million_steps():
    """Temperatures of vertices and points, and points per area of the moving triangles, in 400 samples that lie
    50 friction times apart. Finds 3 % of the temperature and of shares of the area."""
    simulation, membrane, points = vesicle("BAGOGAB", 0.02, kT=1.0)
    simulation.step(10_000)
    temperatures = {membrane.name: [], points.name: []}
    hits, shares = np.zeros(20), np.zeros(20)
    for _ in range(400):
        simulation.step(2_500)
        state = simulation.context.get_state(positions=True, energy=True)
        for name, values in temperatures.items():
            values.append(state.temperatures[name] * mp.units.boltzmann)
        x = state.positions[membrane.beads]
        a, b, c = (x[membrane.mesh.faces[:, k]] for k in range(3))
        areas = 0.5 * np.linalg.norm(np.cross(b - a, c - a), axis=1)
        hits += np.bincount(state.intriangle.triangles // 16, minlength=20)
        shares += np.bincount(np.arange(320) // 16, weights=areas, minlength=20) / areas.sum()
    for name, values in temperatures.items():
        check_mean(f"temperature of {name}", values, 1.0, sees=0.03)
        print(f"temperature of {name}: {np.mean(values):.5f} ± {np.std(values) / np.sqrt(len(values)):.5f}, expected 1")
    # Repulsion makes counts of a region less random than independent points: the test is conservative.
    p = check_chi_square("points per area", hits, shares / shares.sum() * hits.sum(), sees=0.03)
    print(f"points per area: p = {p:.3g}")


def test_energy_at_constant_energy_over_many_steps():
    """Kinks at edges make the energy of BAGAB wander and creep upwards (docs/theory/geodesic.md). At a twentieth of an
    inverse frequency that is not seen: over 200 000 steps, with half a million crossings, the energy stays within 0.05
    kT per point (measured: 0.006)."""
    simulation, _, points = vesicle("BAGAB", 0.01)
    start = simulation.context.get_state(energy=True).total_energy
    errors = []
    for _ in range(200):
        simulation.step(1_000)
        errors.append(simulation.context.get_state(energy=True).total_energy - start)
    errors = np.array(errors) / len(points)
    print(f"energy error per point, kT: final {errors[-1]:+.4f}, largest {np.abs(errors).max():.4f}")
    assert np.abs(errors).max() < 0.05


def largest_frequency(context, membrane):
    """Of the vertices alone, points held: power iterations with differences of forces."""
    state = context.get_state(positions=True, forces=True)
    direction = np.zeros_like(state.positions)
    direction[membrane.beads] = np.random.default_rng(0).normal(size=(len(membrane.beads), 3))
    for _ in range(60):
        direction /= np.linalg.norm(direction)
        context.set_positions(state.positions + 1e-5 * direction)
        changed = (state.forces - context.get_state(forces=True).forces)[membrane.beads] / 1e-5
        stiffness = np.vdot(direction[membrane.beads], changed)
        direction[membrane.beads] = changed
    context.set_positions(state.positions)
    return np.sqrt(stiffness / 4.0)


def crossings_per_time(context, membrane, points, kT):
    """Of points spread evenly over the mesh as it is, 2 sqrt(kT/(2 pi m)) per length of edge and point per area; and
    the mean edge."""
    x = context.get_state(positions=True).positions[membrane.beads]
    mesh = membrane.mesh.with_vertices(x)
    i, j = mesh.edges.T
    length = np.linalg.norm(x[i] - x[j], axis=1).sum()
    return 2.0 * np.sqrt(kT / (2.0 * np.pi)) * length * len(points) / mesh.area, length / len(mesh.edges)


def test_energy_gained_at_edges_at_four_tenths_of_the_largest_frequency():
    """The vesicle at omega dt = 0.4, inside what docs/parameters.md recommends. At constant energy its 300 points gain
    energy at edges: found with 8 standard errors, and between one and three times what recoil alone gives on
    equilateral triangles, 20/9 kT h² kT/(M l²) a crossing (docs/theory/geodesic.md); contacts between points add to it.
    The same timestep with the thermostat: both temperatures are right, of which 2 % would be found."""
    simulation, membrane, points = vesicle("BAGAB", 0.01)
    context = simulation.context
    timestep = 0.4 / largest_frequency(context, membrane)
    simulation, membrane, points = vesicle("BAGAB", timestep)
    simulation.step(2_000)
    energies, temperatures, crossings = [], [], 0.0
    for _ in range(60):
        state = simulation.context.get_state(energy=True)
        energies.append(state.total_energy)
        temperatures.append(state.temperature * mp.units.boltzmann)
        rate, edge = crossings_per_time(simulation.context, membrane, points, temperatures[-1])
        crossings += rate * 1_000 * timestep
        simulation.step(1_000)
    energies.append(simulation.context.get_state(energy=True).total_energy)
    gains = np.diff(energies)
    # Increments share the oscillation of the energy at their common ends, so that the spread of the sum is less than
    # independent increments would have: the error is on the safe side.
    error = gains.std(ddof=1) * np.sqrt(len(gains)) / crossings
    gain, kT = gains.sum() / crossings, np.mean(temperatures)
    recoil = 20.0 / 9.0 * kT * timestep**2 * kT / (4.0 * edge**2)
    print(
        f"dt {timestep:.4f}: {crossings:.3g} crossings, kT {temperatures[0]:.3f} to {temperatures[-1]:.3f}, gain per "
        f"crossing {gain:.2e} ± {error:.1e} ({gain / kT:.2e} kT), by recoil alone {recoil:.2e}"
    )
    assert gain > 8.0 * error
    assert recoil < gain < 3.0 * recoil

    simulation, membrane, points = vesicle("BAGOGAB", timestep, kT=1.0)
    simulation.step(2_000)
    measured = {membrane.name: [], points.name: []}
    for _ in range(1_000):
        # Four to ten relaxation times of velocities apart.
        simulation.step(round(4.0 / timestep))
        state = simulation.context.get_state(energy=True)
        for name, values in measured.items():
            values.append(state.temperatures[name] * mp.units.boltzmann)
    for name, values in measured.items():
        check_mean(f"temperature of {name}", values, 1.0, sees=0.02)


def broken_links(handle, state):
    """Of filaments, the largest relative error of lengths, right angles and unit directors; and the largest velocity
    that would change one of them."""
    a, b = (handle.beads[handle.links[:, end]] for end in (0, 1))
    D, U = state.positions[b] - state.positions[a], state.velocities[b] - state.velocities[a]
    length = handle.link_lengths
    off = np.abs(np.linalg.norm(D, axis=1) / length - 1.0).max()
    slant = np.abs((D * U).sum(axis=1) / length).max()
    if handle.directors is not None:
        p, w = (x[handle.directors.beads] for x in (state.positions, state.velocities))
        off = max(off, np.abs(np.linalg.norm(p, axis=1) - 1.0).max())
        off = max(off, np.abs((D * p).sum(axis=1) / length).max())
        slant = max(slant, np.abs((p * w).sum(axis=1)).max())
        slant = max(slant, np.abs((D * w + U * p).sum(axis=1) / length).max())
    return off, slant


def test_constraints_hold_over_a_million_steps():
    """Chains and rings, plain and twistable, stiff and thermal, looked at every hundred steps and after each of the
    last ten thousand: lengths, right angles and unit directors to 1e-10, velocities tangent, and the temperature, of
    which 1.5 % would be found."""
    rng = np.random.default_rng(11)
    topology = mp.Topology()
    handles = []
    phi = np.arange(12) * (2.0 * np.pi / 12)
    for closed in (False, True):
        for twist in ({}, {"directors": "parallel", "director_mass": 0.2, "director_friction": 0.3}):
            flat = np.stack([2.0 * np.cos(phi), 2.0 * np.sin(phi), 0.0 * phi], axis=1)
            straight = np.cumsum(rng.normal(0.0, 0.2, (12, 3)) + [1.0, 0.0, 0.0], axis=0)
            nodes = [(flat if closed else straight) + rng.normal(0.0, 0.05, (12, 3)) for _ in range(6)]
            handles.append(topology.add_filaments(nodes, rng.uniform(0.5, 2.0, 72), (0.5, 1.0), closed=closed, **twist))
    system = mp.System(topology)
    for handle in handles:
        system.add_force(mp.forces.FilamentBending(handle, 10.0))
        if handle.directors is not None:
            system.add_force(mp.forces.FilamentTwisting(handle, 10.0))
    context = mp.Context(system, mp.SplittingIntegrator("BAOAB", 0.02, kT=1.0, seed=12), threads=1)
    context.set_velocities_to_temperature(kT=1.0, seed=13)
    off = slant = 0.0
    temperatures = []
    for k in range(20_000):
        context.step(100 if k < 10_000 else 1)
        state = context.get_state(positions=True, velocities=True, energy=True)
        if k < 10_000 and k % 10 == 0:
            temperatures.append(state.temperature * mp.units.boltzmann)
        for handle in handles:
            error, speed = broken_links(handle, state)
            off, slant = max(off, error), max(slant, speed)
    print(f"largest relative error of constraints {off:.2e}, of tangent velocities {slant:.2e} (thermal: of order 1)")
    error = np.std(temperatures) / np.sqrt(len(temperatures))
    print(f"temperature: {np.mean(temperatures):.5f} ± {error:.5f}, expected 1")
    assert off < 1e-10
    assert slant < 1e-12
    check_mean("temperature", temperatures, 1.0, sees=0.015)


# The demos, 10⁷ steps each ---------------------------------------------------------------------------------------


def follow(context, errors, *, steps=None, every=500, kT=1.0):
    """Run, and look every so often: what is finite stays so.

    Parameters
    ----------
    errors : callable (State) -> dict of str to float
        What must stay small at every look, by name.
    kT : float
        The unit of energies and temperatures.

    Returns
    -------
    dict, dict
        Series of temperatures and energies by name, and the largest of each error.
    """
    series, worst = {}, {}
    for _ in range((steps or STEPS) // every):
        context.step(every)
        state = context.get_state(positions=True, velocities=True, energy=True)
        for values in (state.positions, state.velocities, state.orientations, state.angular_momenta):
            assert np.isfinite(values).all()
        now = {f"temperature of {name}": value * mp.units.boltzmann for name, value in state.temperatures.items()}
        now |= state.energies | {"potential energy": state.potential_energy, "total energy": state.total_energy}
        for name, value in now.items():
            series.setdefault(name, []).append(value / kT)
        for name, value in errors(state).items():
            worst[name] = max(worst.get(name, 0.0), float(value))
    for name, value in worst.items():
        print(f"largest {name}: {value:.2e}")
    return {name: np.array(values) for name, values in series.items()}, worst


def said(name, values):
    """Print a mean with its standard error."""
    error = values.std() * np.sqrt(statistical_inefficiency(values) / len(values))
    print(f"{name}: {values.mean():.6g} ± {error:.2g}")


def check_flat(what, values, sees):
    """The mean of the second half of a run is that of the first; only printed where nothing is said to be seen."""
    half = len(values) // 2
    difference = values[half : 2 * half] - values[:half]
    said(f"{what}, last half less first", difference)
    if sees is not None:
        check_mean(f"{what}, last half less first", difference, 0.0, sees=sees, time_series=True)


def at_temperature(system, integrator, start=None):
    context = mp.Context(system, integrator, threads=1)
    if start is not None:
        context.set_state(start)
    context.set_velocities_to_temperature(kT=integrator.kT, seed=2)
    return context


def outside_of_triangles(state):
    """How far weights are from those of a place in a triangle."""
    w = state.intriangle.barycentric
    return max(-w.min(), np.abs(w.sum(axis=1) - 1.0).max())


def quaternion_error(state):
    return np.abs(np.linalg.norm(state.orientations, axis=1) - 1.0).max()


def proteins_on_a_cell():
    """180 triangles and 50 proteins, and the skeleton that a red cell has, of a shear modulus of 0.006 pN/nm.

    The demo's few thousand steps do without it. In the long run triangles that keep their areas only are sheared to
    needles, in five million steps, and there the bending energy falls below that of any closed surface, 8πκ."""
    system, _ = point_demo._build(mp.TriangleMesh.red_blood_cell(frequency=3), 50, seed=1)
    system.add_force(mp.forces.MembraneEdgeSprings(system.topology.membranes[0], 4.0 / np.sqrt(3.0) * 0.006))
    integrator = mp.BAGOGABIntegrator(point_demo.TIMESTEP, temperature=TEMPERATURE, seed=1)

    def errors(state):
        return {"error of weights": outside_of_triangles(state)}

    return at_temperature(system, integrator), errors, {"error of weights": ROUND_OFF}


def actin_in_a_vesicle():
    """180 triangles and 6 filaments of 12 links, 2 of them tied to one of 4 proteins. The inscribed sphere has the
    radius of the demo's vesicle."""
    mesh = mp.TriangleMesh.icosphere(vesicle_demo.RADIUS, frequency=3)
    inside = np.einsum("ij,ij->i", mesh.vertices[mesh.faces[:, 0]], mesh.face_normals).min()
    mesh = mesh.scaled(vesicle_demo.RADIUS / inside)
    system, _ = filament_demo._build(mesh, 6, seed=1)
    start, _ = vesicle_demo.relax(system, threads=1)
    integrator = mp.BAGOGABIntegrator(vesicle_demo.TIMESTEP, temperature=TEMPERATURE, seed=1)
    vesicle, _, actin = system.topology.handles
    thermal = np.sqrt(integrator.kT / actin.mass.min())

    def errors(state):
        off, slant = broken_links(actin, state)
        found = {"error of lengths": off, "velocity along links": slant / thermal,
                 "error of weights": outside_of_triangles(state)}  # fmt: skip
        # It takes as long as 200 steps.
        if state.step % 10_000 == 0:
            cell = mesh.with_vertices(state.positions[vesicle.beads])
            found["nodes outside"] = (~cell.contains(state.positions[actin.beads])).sum()
        return found

    return (
        at_temperature(system, integrator, start),
        errors,
        {"error of lengths": vesicle_demo.LENGTH_TOLERANCE, "velocity along links": 1e-12,
         "error of weights": ROUND_OFF, "nodes outside": 0},
    )  # fmt: skip


def bodies_in_a_trap():
    """15 rods and 15 discs."""
    system = rigid_demo._trapped(30, seed=1)
    integrator = mp.SplittingIntegrator("BAOAB", rigid_demo.TIMESTEP, temperature=TEMPERATURE, seed=1)
    return (
        at_temperature(system, integrator),
        lambda state: {"error of quaternions": quaternion_error(state)},
        {"error of quaternions": 5e-16},
    )


def rods_in_a_bath():
    """3 elastic rods of 16 nodes."""
    system, _ = rod_demo._bath(3)
    integrator = mp.SplittingIntegrator("BAOAB", rod_demo.THERMAL_TIMESTEP, kT=1.0, seed=1)
    return (
        at_temperature(system, integrator),
        lambda state: {"error of quaternions": quaternion_error(state)},
        {"error of quaternions": 5e-16},
    )


def off_the_surface(state):
    normals = surface_demo.SURFACE.gradient(state.positions)
    normals /= np.linalg.norm(normals, axis=1)[:, None]
    along = np.abs((normals * state.velocities).sum(axis=1))
    return {"distance from the surface": surface_demo._off(state.positions).max(), "velocity off it": along.max()}


ON_THE_SURFACE = {"distance from the surface": 1.02 * surface_demo.TOLERANCE, "velocity off it": 1e-14}


def walkers_on_a_surface():
    """25 Brownian points on genus 2."""
    x = surface_demo.SURFACE.sample(25, seed=1, box=[[-1.5] * 3, [1.5] * 3])
    context, _ = surface_demo._brownian(surface_demo.SURFACE, x, 2.0, 0.01, 1, 1)
    return context, off_the_surface, ON_THE_SURFACE


@pytest.mark.parametrize(
    ("build", "warm_up", "temperatures_see", "energy_sees"),
    [
        (proteins_on_a_cell, 500_000, (0.006, 0.01), 8.0),
        # Its energy forgets so slowly that this run has too few independent looks for a test.
        (actin_in_a_vesicle, 500_000, (0.006, 0.008, 0.035), None),
        (bodies_in_a_trap, 100_000, (0.01, 0.01), 3.0),
        (rods_in_a_bath, 100_000, (0.006,), 1.5),
        (walkers_on_a_surface, 100_000, (0.012,), None),
    ],
    ids=["points", "filaments", "bodies", "rods", "surface"],
)
def test_a_demo_keeps_temperature_energy_and_constraints(build, warm_up, temperatures_see, energy_sees):
    """Under the demos' thermostats: temperatures wrong by a percent would be found, by 2 % where a handle has few
    degrees of freedom, and energies that move by some kT in the whole run (of a red cell without its skeleton: by more
    than a hundred)."""
    context, errors, bounds = build()
    context.step(warm_up)
    series, worst = follow(context, errors, kT=context.integrator.kT)
    assert worst.keys() == bounds.keys()
    for name, bound in bounds.items():
        assert worst[name] <= bound, f"{name}: {worst[name]:.3g}, bound {bound:.3g}"
    temperatures = [name for name in series if name.startswith("temperature of ")]
    for name, sees in zip(temperatures, temperatures_see, strict=True):
        said(name, series[name])
        check_mean(name, series[name], 1.0, sees=sees, time_series=True)
    check_flat("potential energy", series["potential energy"], energy_sees)


# Without a thermostat --------------------------------------------------------------------------------------------


def momenta(context, handles):
    """A function of a state: the largest change of momentum and of angular momentum since now, each over the largest
    sum of what beads have of it."""
    first, scale = None, np.zeros(2)

    def change(state):
        nonlocal first
        parts = []
        for handle in handles:
            p = handle.mass[:, None] * state.velocities[handle.beads]
            spin = quaternions.turned(state.orientations[handle.rows], state.angular_momenta[handle.rows])
            parts.append((p, np.cross(state.positions[handle.beads], p) + spin))
        each = [np.concatenate(part) for part in zip(*parts, strict=True)]
        sums = np.array([part.sum(axis=0) for part in each])
        first = sums if first is None else first
        scale[:] = np.maximum(scale, [np.linalg.norm(part, axis=1).sum() for part in each])
        return np.linalg.norm(sums - first, axis=1) / np.where(scale > 0.0, scale, 1.0)

    change(context.get_state(positions=True, velocities=True))
    return change


def conserved(context, *kept, handles=()):
    """Of a run at constant energy, as errors: the energy relative to the start; those of momentum and angular momentum
    that are kept."""
    start = context.get_state(energy=True).total_energy
    change = momenta(context, handles) if kept else None

    def errors(state):
        found = {"energy error": abs(state.total_energy / start - 1.0)}
        if kept:
            now = dict(zip(("momentum", "angular momentum"), change(state), strict=True))
            found |= {f"change of {name}": now[name] for name in kept}
        if len(state.orientations):
            found["error of quaternions"] = quaternion_error(state)
        return found

    return errors


# Rounding errors of n steps add up like a random walk, of some steps of their own in each.
WALK = 10.0 * ROUND_OFF * np.sqrt(STEPS)


def rod_let_go(curvature, bound):
    """20 segments."""
    system, rod, _ = rod_demo._rod(curvature, 20)
    context = mp.Context(system, mp.SplittingIntegrator("ABA", rod_demo._timestep(20)), threads=1)
    return (
        context,
        conserved(context, "momentum", "angular momentum", handles=[rod]),
        {"energy error": bound, "change of momentum": WALK, "change of angular momentum": WALK,
         "error of quaternions": 5e-16},
    )  # fmt: skip


def circle():
    """It stays in its plane, and takes longer than the run to pass its energy on to short waves. The error of theirs is
    larger, so that the energy moves, downwards; within what the source asks for up to 10⁶ t0 (docs/figures/004.md).
    """
    return rod_let_go(rod_demo.CIRCLE, 0.1 * rod_demo.TIMESTEP**2)


def helix():
    """Chaotic, and at equilibrium before the first look."""
    return rod_let_go(rod_demo.HELIX, 0.01)


def billiards():
    """The 25 beads of the picture."""
    system, start = surface_demo.billiards(surface_demo.TIMESTEP)
    context = mp.Context(system, mp.SplittingIntegrator("BAB", surface_demo.TIMESTEP), threads=1)
    context.set_state(start)
    energy = 0.5 + start.positions[:, 2]

    def errors(state):
        now = 0.5 * (state.velocities**2).sum(axis=1) + state.positions[:, 2]
        return off_the_surface(state) | {"energy error of a bead": np.abs(now - energy).max()}

    return context, errors, ON_THE_SURFACE | {"energy error of a bead": 0.1}


def free_bodies():
    """15 rods and 15 discs in the trap, whose middle keeps the angular momentum. At an eighth of the demo's timestep:
    each hard contact changes the energy a little (of all of it 2 % in 40 000 steps of the demo's timestep, 41 % in
    300 000; to the thermostat that is nothing), and what many contacts leave is a random walk."""
    system = rigid_demo._trapped(30, seed=1)
    context = mp.Context(system, mp.VerletIntegrator(rigid_demo.TIMESTEP / 8), threads=1)
    context.set_velocities_to_temperature(TEMPERATURE, seed=2)
    return (
        context,
        conserved(context, "angular momentum", handles=system.topology.handles),
        {"energy error": 1e-3, "change of angular momentum": WALK, "error of quaternions": 5e-16},
    )


@pytest.mark.parametrize(("build", "energy_sees"),
                         [(circle, None), (helix, 5e-4), (billiards, 2.5e-5), (free_bodies, None)],
                         ids=["rod, circle", "rod, helix", "surface", "bodies"])  # fmt: skip
def test_a_demo_without_thermostat_keeps_energy_and_momenta(build, energy_sees):
    """The energy error is bounded, and has no trend where a run comes to equilibrium: of that of the helix, 7e-3 at
    the most, a fourteenth would be found, of that of the beads on the surface, 8e-3 at the most, a three-hundredth."""
    context, errors, bounds = build()
    start = context.get_state(energy=True).total_energy
    context.step(100_000)
    series, worst = follow(context, errors)
    assert worst.keys() == bounds.keys()
    for name, bound in bounds.items():
        assert worst[name] <= bound, f"{name}: {worst[name]:.3g}, bound {bound:.3g}"
    check_flat("energy over that at the start", series["total energy"] / start, energy_sees)


# G ---------------------------------------------------------------------------------------------------------------


def bumpy(mesh):
    return mesh.with_vertices(mesh.vertices + np.random.default_rng(5).normal(0.0, 0.5, mesh.vertices.shape))


def spiky():
    """A point on each triangle of a bumpy sphere: as many vertices with three triangles as there were triangles."""
    mesh = bumpy(mp.TriangleMesh.icosphere(10.0, 1))
    tips = mesh.vertices[mesh.faces].mean(axis=1) + 1.5 * mesh.face_normals
    tip = len(mesh.vertices) + np.arange(len(mesh.faces))
    faces = [np.column_stack([mesh.faces[:, k], mesh.faces[:, (k + 1) % 3], tip]) for k in range(3)]
    return mp.TriangleMesh(np.vstack([mesh.vertices, tips]), np.concatenate(faces))


@pytest.mark.parametrize(
    "mesh", [bumpy(mp.TriangleMesh.icosphere(10.0, 2)), bumpy(mp.TriangleMesh.torus(10.0, 4.0, 14, 8)), spiky()],
    ids=["bumpy sphere", "bumpy torus", "three triangles round a vertex"]
)  # fmt: skip
def test_a_billion_steps_of_points_lose_none(mesh):
    """10⁴ points without forces on a mesh that is held, 10⁵ steps of a third of an edge: each keeps its speed and its
    plane, its weights are those of a place in its triangle, and all remain uniform over the area."""
    n = 10_000
    topology = mp.Topology()
    membrane = topology.add_membrane(mesh, vertex_mass=1.0, fixed=True)
    points = topology.add_intriangle_points(membrane, n, mass=1.0, seed=1)
    timestep = 0.3 * mesh.edge_lengths.mean()
    context = mp.Context(mp.System(topology), mp.SplittingIntegrator("BAGAB", timestep), threads=1)
    context.set_velocities_to_temperature(kT=1.0, seed=2)
    speed = np.linalg.norm(context.get_state(velocities=True).velocities[points.beads], axis=1)
    # Groups of triangles of like size.
    order = np.argsort(mesh.face_areas)
    group = np.empty(len(order), int)
    group[order] = (20.0 * (np.cumsum(mesh.face_areas[order]) / mesh.area - 1e-9)).astype(int)
    hits = np.zeros(20)
    steps, looks = STEPS // 100, 20
    largest = {"error of weights": 0.0, "velocity out of the triangle": 0.0}
    for _ in range(looks):
        context.step(steps // looks)
        state = context.get_state(positions=True, velocities=True)
        assert np.isfinite(state.positions).all()
        faces = state.intriangle.triangles
        assert faces.min() >= 0
        assert faces.max() < len(mesh.faces)
        v = state.velocities[points.beads]
        out = np.abs((v * mesh.face_normals[faces]).sum(axis=1)) / speed
        for name, value in zip(largest, (outside_of_triangles(state), out.max()), strict=True):
            largest[name] = max(largest[name], value)
        hits += np.bincount(group[faces], minlength=20)
    error = np.linalg.norm(v, axis=1) / speed - 1.0
    # Lines that cross edges of the total length L, of points spread over the area A: 2L|v|/πA a time.
    crossings = 2.0 * mesh.edge_lengths.sum() * speed / (np.pi * mesh.area) * steps * timestep
    energy = (speed**2 * ((1.0 + error) ** 2 - 1.0)).sum() / (speed**2).sum()
    p = check_chi_square("points per area", hits, np.bincount(group, mesh.face_areas) / mesh.area * hits.sum(),
                         sees=0.025)  # fmt: skip
    print(
        f"{n * steps:.3g} steps of points, {crossings.sum():.3g} crossings; speed: largest error "
        f"{np.abs(error).max():.2e}, mean {error.mean():+.2e} ± {error.std() / np.sqrt(n):.1e}; kinetic energy "
        f"{energy:+.2e}; points per area: p = {p:.3g}; largest "
        + ", ".join(f"{name} {value:.2e}" for name, value in largest.items())
    )
    assert largest["error of weights"] <= ROUND_OFF
    assert largest["velocity out of the triangle"] < 1e-12
    # Rounding errors at one edge are the same each time, so that they add up, to some 1e-17 a crossing.
    beyond = (np.abs(error) / (ROUND_OFF * (0.1 * crossings + 100.0))).max()
    assert beyond < 1.0, f"errors of speed are {beyond:.3g} times those of rounding"
