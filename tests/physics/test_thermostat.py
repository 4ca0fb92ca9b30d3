"""O and the words that contain it: temperatures, uniformity, diffusion.

False alarms: 1e-6 for each check (see medyanpy.testing). Seeds are fixed, so a pass is a pass.
"""

import numpy as np
import pytest
from builders import system_with

import medyanpy as mp
from medyanpy import units
from medyanpy.testing import check_chi_square, check_mean, check_variance, thermal


def harmonic_wells(n, timestep, word="BAOAB", kT=2.0, k=3.0, mass=1.5, friction=2.0, seed=1):
    """n beads, each tied to an immovable partner at the same place: isotropic wells would need a trap, which a
    spring of length 0 is."""
    topology = mp.Topology()
    x = np.zeros((n, 3))
    beads = topology.add_beads(x, mass=mass, friction=friction)
    walls = topology.add_membrane(mp.TriangleMesh.icosphere(1.0, 0), vertex_mass=1.0, fixed=True)
    system = mp.System(topology)
    anchor = walls.beads[0]
    system.add_force(mp.forces.HarmonicBonds(np.column_stack([beads.beads, np.full(n, anchor)]), stiffness=k,
                                             length=0.0))  # fmt: skip
    context = mp.Context(system, mp.SplittingIntegrator(word, timestep, kT=thermal(word, kT), seed=seed), threads=1)
    context.set_velocities_to_temperature(kT=kT, seed=seed)
    return context, beads, walls.mesh.vertices[0]


def test_positions_of_a_harmonic_well_have_no_error_at_any_timestep():
    """BAOAB samples <x²> = kT/k exactly for a harmonic well, velocities after O exactly kT/M, and end-of-step
    velocities (kT/M)(1 - (ωh)²/4). 3 x 40 000 samples find an error of 3.4 %; the effect here is 12.5 %."""
    kT, k, mass, h = 2.0, 3.0, 1.5, 0.5
    context, beads, centre = harmonic_wells(40_000, h, kT=kT, k=k, mass=mass)
    context.step(60)
    state = context.get_state(positions=True, velocities=True, energy=True)
    x = (state.positions[beads.beads] - centre).ravel()
    v = state.velocities[beads.beads].ravel()
    check_variance("<x²>", x @ x, x.size, kT / k, sees=0.034)
    omega_h = np.sqrt(k / mass) * h
    check_variance("<v²>", v @ v, v.size, kT / mass * (1.0 - omega_h**2 / 4.0), sees=0.034)
    n = 3 * len(beads)
    measured = state.temperatures[beads.name] * units.boltzmann
    check_variance("temperature after O", measured * n, n, kT, sees=0.034)


def test_free_beads_under_o_alone_relax_as_ornstein_uhlenbeck():
    """<v(t)·v(0)> = exp(-γt/M) <v²> for free beads, to 4 standard errors of 90 000 products at most 5."""
    topology = mp.Topology()
    n = 30_000
    beads = topology.add_beads(np.zeros((n, 3)), mass=2.0, friction=0.6)
    context = mp.Context(mp.System(topology), mp.SplittingIntegrator("B A O A B", 0.25, kT=1.0, seed=3), threads=1)
    context.set_velocities_to_temperature(kT=1.0, seed=4)
    before = context.get_state(velocities=True).velocities[beads.beads]
    context.step(6)
    after = context.get_state(velocities=True).velocities[beads.beads]
    check_mean("velocity autocorrelation", (before * after).ravel(), np.exp(-0.6 * 1.5 / 2.0) * 0.5, sees=0.017)


def points_on_fixed(mesh, n, *, timestep, kT, mass, friction, seed=1, word="BAGOGAB"):
    topology = mp.Topology()
    membrane = topology.add_membrane(mesh, vertex_mass=1.0, fixed=True)
    points = topology.add_intriangle_points(membrane, n, mass=mass, friction=friction, seed=seed)
    integrator = mp.SplittingIntegrator(word, timestep, kT=thermal(word, kT), seed=seed + 1)
    context = mp.Context(mp.System(topology), integrator, threads=1)
    context.set_velocities_to_temperature(kT=kT, seed=seed + 2)
    return context, points


def test_ideal_points_on_a_frozen_mesh_stay_uniform_per_area_and_at_temperature():
    """A torus of unequal triangles: 20 000 points, chi-square over 60 groups of faces. Curvature or area
    weights gone wrong by 8 % of the density would be found."""
    mesh = mp.TriangleMesh.torus(10.0, 5.0, 20, 10)
    context, points = points_on_fixed(mesh, 20_000, timestep=0.3, kT=1.0, mass=1.0, friction=1.0)
    context.step(150)
    state = context.get_state(positions=True, velocities=True, energy=True)
    order = np.argsort(
        mesh.vertices[mesh.faces].mean(axis=1)[:, 0] ** 2 + mesh.vertices[mesh.faces].mean(axis=1)[:, 1] ** 2
    )
    group = np.empty(len(mesh.faces), int)
    group[order] = np.arange(len(mesh.faces)) * 60 // len(mesh.faces)
    counts = np.bincount(group[state.intriangle.triangles], minlength=60)
    expected = np.bincount(group, weights=mesh.face_areas, minlength=60) * (len(points) / mesh.area)
    check_chi_square("points per area", counts, expected, sees=0.085)
    # Inside triangles too: 1 - sqrt(1 - lambda) maps uniform density to a uniform number.
    number = (1.0 - state.intriangle.barycentric) ** 2
    for corner in range(3):
        counts, _ = np.histogram(number[:, corner], bins=20, range=(0.0, 1.0))
        check_chi_square(f"weight of corner {corner}", counts, np.full(20, len(points) / 20), sees=0.073)
    n = 2 * len(points)
    check_variance("temperature", state.temperatures[points.name] * units.boltzmann * n, n, 1.0, sees=0.06)


@pytest.mark.parametrize("friction", [0.5, 2.0, 8.0])
def test_diffusion_on_a_flat_mesh(friction):
    """<r²> = 4 D t with D = (kT/γ) x coth x, x = γ dt / 2m, exactly at every step once velocities are stationary.

    With unit mass, words B A G O G A B and uncorrelated starts, the mean square displacement after n steps is
    that of a discrete velocity process; its long-time slope is D. Points start in the middle of a sheet large
    enough that none reaches the border. 2 x 8 000 samples find an error of 9.5 %; x coth x - 1 is 14 % to 304 %.
    """
    kT, mass, dt, n_steps = 1.0, 1.0, 0.75, 80
    size = 60.0
    mesh = mp.TriangleMesh.flat_sheet(24, 24, 2 * size / 20)
    centre = mesh.vertices.mean(axis=0)
    face = int(np.argmin(np.linalg.norm(mesh.vertices[mesh.faces].mean(axis=1) - centre, axis=1)))
    n = 8_000
    topology = mp.Topology()
    membrane = topology.add_membrane(mesh, vertex_mass=1.0, fixed=True)
    points = topology.add_intriangle_points(membrane, triangles=np.full(n, face), barycentric=np.full((n, 3), 1 / 3),
                                            mass=mass, friction=friction)  # fmt: skip
    context = mp.Context(mp.System(topology), mp.BAGOGABIntegrator(dt, kT=kT, seed=11), threads=1)
    context.set_velocities_to_temperature(kT=kT, seed=12)
    start = context.get_state(positions=True).positions[points.beads]
    context.step(n_steps)
    moved = (context.get_state(positions=True).positions[points.beads] - start)[:, :2]
    reached = np.abs(mesh.vertices[:, :2] - start[0, :2]).max()
    assert np.abs(moved).max() < 0.9 * reached, "points must not reach the border"

    # The exact mean square displacement of the discrete process, to compare at finite time.
    c1 = np.exp(-friction * dt / mass)
    half = dt / 2
    # x_{n+1} = x_n + half (v_n + v_{n+1}), v_{n+1} = c1 v_n + noise: <(x_N - x_0)²> by summing covariances.
    c = kT / mass * c1 ** np.abs(np.subtract.outer(np.arange(n_steps + 1), np.arange(n_steps + 1)))
    w = np.full(n_steps + 1, dt)
    w[0] = w[-1] = half
    exact = w @ c @ w
    check_variance("<dx²>", (moved**2).sum(), moved.size, exact, sees=0.095)
    x = friction * dt / (2 * mass)
    # And that closed form has the slope 2 D t with D = (kT/γ) x coth x.
    lags = c1 ** np.arange(4001)
    msd = kT / mass * (dt**2 * (4000 + 2 * ((4000 - np.arange(1, 4000)) @ lags[1:4000])))
    assert msd / (2 * 4000 * dt) == pytest.approx(kT / friction * x / np.tanh(x),
                                                  rel=2e-3 + 4 * mass / friction / (4000 * dt))  # fmt: skip


def test_diffusion_on_a_sphere():
    """<cos θ(t)> = exp(-2 D t / R²) for t >> m/γ and free path << R.

    5 000 points from one pole, checked where the cosine has fallen to about a half: finds 0.05 of it, 14 % of D.
    """
    R, kT, mass, friction, dt = 20.0, 1.0, 0.5, 1.0, 0.5
    mesh = mp.TriangleMesh.icosphere(R, 4)
    n = 5_000
    topology = mp.Topology()
    membrane = topology.add_membrane(mesh, vertex_mass=1.0, fixed=True)
    points = topology.add_intriangle_points(membrane, triangles=np.zeros(n, int), barycentric=np.full((n, 3), 1 / 3),
                                            mass=mass, friction=friction)  # fmt: skip
    context = mp.Context(mp.System(topology), mp.BAGOGABIntegrator(dt, kT=kT, seed=21), threads=1)
    context.set_velocities_to_temperature(kT=kT, seed=22)
    start = context.get_state(positions=True).positions[points.beads[0]]
    steps = 280
    context.step(steps)
    x = context.get_state(positions=True).positions[points.beads]
    cosine = x @ start / (np.linalg.norm(x, axis=1) * np.linalg.norm(start))
    y = friction * dt / (2 * mass)
    D = kT / friction * y / np.tanh(y)
    # The free path √(kT m)/γ = 0.7 is short against R = 20; its correction to the start is (m/γ)/t = 0.4 %,
    # and the mesh's inscribed radius differs from R by 0.2 %: both below the resolution of 5 000 points.
    check_mean("<cos θ>", cosine, np.exp(-2.0 * D * (steps * dt - mass / friction) / R**2), sees=0.05)


def test_the_seed_makes_the_noise():
    runs = []
    for seed in (1, 1, 2):
        context, points = points_on_fixed(mp.TriangleMesh.icosphere(10.0, 1), 50, timestep=0.1, kT=1.0, mass=1.0,
                                          friction=1.0, seed=seed)  # fmt: skip
        context.step(10)
        runs.append(context.get_state(positions=True, velocities=True).velocities)
    assert (runs[0] == runs[1]).all()
    moving = points.beads
    assert not np.isclose(runs[0][moving], runs[2][moving]).any()


def test_two_letters_o_of_one_step_draw_different_noise():
    """At enormous friction the flight follows the noise of the first O and the velocity that of the second:
    10 000 pairs of numbers would show a correlation of 6 %."""
    n = 10_000
    topology = mp.Topology()
    topology.add_beads(np.zeros((n, 3)), mass=1.0, friction=1e3)
    system = mp.System(topology)
    context = mp.Context(system, mp.SplittingIntegrator("OABAO", 1.0, kT=1.0, seed=5), threads=1)
    context.step(1)
    state = context.get_state(positions=True, velocities=True)
    product = (state.positions * state.velocities).ravel()
    check_mean("noise of the first O times noise of the second", product, 0.0, sees=0.048)
    check_variance("noise of the first O", (state.positions**2).sum(), 3 * n, 1.0, sees=0.069)


@pytest.mark.frictionless
def test_beads_without_friction_and_fixed_beads_get_no_noise():
    topology = mp.Topology()
    topology.add_beads(np.zeros((1, 3)), mass=1.0, friction=[1.0])
    free = topology.add_beads(np.zeros((2, 3)), mass=1.0, friction=0.0)
    walls = topology.add_membrane(mp.TriangleMesh.icosphere(1.0, 0), vertex_mass=1.0, vertex_friction=5.0, fixed=True)
    context = mp.Context(mp.System(topology), mp.SplittingIntegrator("BAOAB", 0.1, kT=1.0), threads=1)
    v = np.zeros((topology.n_beads, 3))
    v[free.beads] = [[1.0, 2.0, 3.0], [0.0, 0.0, 0.0]]
    context.set_velocities(v)
    context.step(10)
    after = context.get_state(positions=True, velocities=True)
    assert (after.velocities[free.beads] == v[free.beads]).all()
    assert (after.velocities[walls.beads] == 0.0).all()
    assert (after.positions[walls.beads] == walls.mesh.vertices).all()
    assert (after.velocities[0] != 0.0).all()


def test_velocities_drawn_to_a_temperature_fit_each_kind():
    """In-plane for points, zero for fixed beads, √(kT/M) each. 30 000 and 20 000 numbers find 7 and 8.5 % of it."""
    topology = mp.Topology()
    n = 10_000
    beads = topology.add_beads(np.zeros((n, 3)), mass=np.linspace(1.0, 5.0, n))
    mesh = mp.TriangleMesh.torus(10.0, 4.0, 12, 8)
    moving = topology.add_membrane(mesh, vertex_mass=2.0)
    fixed = topology.add_membrane(mesh, vertex_mass=2.0, fixed=True)
    points = topology.add_intriangle_points(moving, n, mass=np.linspace(0.1, 1.0, n), seed=1)
    context = mp.Context(mp.System(topology), mp.VerletIntegrator(0.1), threads=1)
    context.set_velocities_to_temperature(300.0, seed=7)
    state = context.get_state(positions=True, velocities=True)
    kT = 300.0 * units.boltzmann
    for handle, freedom in ((beads, 3), (points, 2)):
        square = (handle.mass[:, None] * state.velocities[handle.beads] ** 2).sum()
        check_variance(handle.name, square, freedom * n, kT, sees=0.085)
    assert (state.velocities[fixed.beads] == 0.0).all()
    normal = mesh.face_normals[state.intriangle.triangles]
    largest = np.abs(state.velocities[points.beads]).max()
    assert np.abs(np.einsum("ij,ij->i", normal, state.velocities[points.beads])).max() < 1e-14 * largest


@pytest.mark.slow
def test_temperature_of_points_and_vertices_of_moving_meshes():
    """BAGOGAB on 1 000 octahedra of springs with four ideal points each, whose recoil pushes the vertices about. Looks
    are two relaxation times of velocities apart, so that kinetic energies share exp(-4) and count as independent. Finds
    1.5 % of either temperature, 8 standard errors of the sample's own; edges add 0.06 % (docs/theory/geodesic.md)."""
    copies, kT = 1_000, 1.0
    octahedron = 2.1 * np.array([[1.0, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1]])
    faces = np.array([[0, 2, 4], [2, 1, 4], [1, 3, 4], [3, 0, 4], [2, 0, 5], [1, 2, 5], [3, 1, 5], [0, 3, 5]])
    number = np.arange(copies)[:, None, None]
    mesh = mp.TriangleMesh((octahedron + 100.0 * number * [1, 0, 0]).reshape(-1, 3),
                           (faces + 6 * number).reshape(-1, 3))  # fmt: skip
    topology = mp.Topology()
    membrane = topology.add_membrane(mesh, vertex_mass=2.0, vertex_friction=2.0)
    points = topology.add_intriangle_points(membrane, 4 * copies, mass=1.0, friction=1.0, seed=60)
    system = system_with(topology, mp.forces.MembraneEdgeSprings(membrane, 4.0))
    context = mp.Context(system, mp.BAGOGABIntegrator(0.1, kT=kT, seed=61), threads=1)
    context.set_velocities_to_temperature(kT=kT, seed=62)
    context.step(100)
    before = context.get_state(positions=True)
    measured = {membrane.name: [], points.name: []}
    for _ in range(100):
        context.step(20)
        state = context.get_state(energy=True)
        for name, values in measured.items():
            values.append(state.temperatures[name] * units.boltzmann)
    after = context.get_state(positions=True)
    assert (after.intriangle.triangles != before.intriangle.triangles).mean() > 0.5
    assert np.abs(after.positions - before.positions)[membrane.beads].max() > 1.0
    for name, values in measured.items():
        check_mean(f"temperature of {name}", values, kT, sees=0.02 * kT)
