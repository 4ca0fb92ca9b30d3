"""Curvatures, reduced volume, order of meshes, and spectra, on surfaces of which all of it is known."""

from types import SimpleNamespace

import numpy as np
import pytest
from builders import refuses, system_with
from scipy import special

import medyanpy as mp
from medyanpy import analysis
from medyanpy.analysis import spectra
from medyanpy.errors import TopologyError
from medyanpy.testing import check_mean


def lattice(nx, ny, spacing=1.0):
    """Vertices (V, 3), faces and box of a regular sheet that closes through the sides."""
    mesh = mp.TriangleMesh.flat_sheet(nx, ny, spacing, periodic=True)
    return mesh.vertices.copy(), mesh.faces, np.array([*mesh.box[:2], np.nan])


def symbol(q, spacing):
    """Of the Laplacian on the lattice, for wave vectors (..., 2)."""
    angle = np.radians([0.0, 60.0, 120.0])
    edges = spacing * np.stack([np.cos(angle), np.sin(angle)])
    return 4.0 / (3.0 * spacing**2) * (1.0 - np.cos(np.asarray(q) @ edges)).sum(axis=-1)


# Curvatures ------------------------------------------------------------------------------------------------------


def test_curvatures_are_those_of_the_mesh():
    mesh = mp.TriangleMesh.red_blood_cell()
    found = analysis.curvatures(mesh)
    np.testing.assert_allclose(found.mean, mesh.mean_curvatures, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found.gaussian, mesh.gaussian_curvatures, rtol=1e-9, atol=1e-15)
    assert found.area.sum() == pytest.approx(mesh.area, rel=1e-12)
    assert (found.gaussian * found.area).sum() == pytest.approx(4.0 * np.pi, rel=1e-10)
    sheet = mp.TriangleMesh.flat_sheet(5, 6, 1.0)
    found = analysis.curvatures(sheet)
    np.testing.assert_array_equal(np.isnan(found.mean), np.isnan(sheet.mean_curvatures))
    np.testing.assert_allclose(found.mean[~np.isnan(found.mean)], 0.0, atol=1e-15)


def test_curvatures_through_the_sides_of_a_box():
    """A wave is as curved at the seam as anywhere, wherever its vertices have gone."""
    x, faces, box = lattice(24, 20)
    q = 2.0 * np.pi / box[:2]
    x[:, 2] = 1e-3 * np.cos(x[:, :2] @ q)
    mean = analysis.curvatures(x, faces=faces, box=box).mean
    # By the Laplacian of the lattice, and that is what the wave has to its own error.
    np.testing.assert_allclose(mean, 0.5 * symbol(q, 1.0) * x[:, 2], atol=1e-9)
    rng = np.random.default_rng(1)
    moved = x + rng.integers(-2, 3, x.shape) * np.nan_to_num(box)
    np.testing.assert_allclose(analysis.curvatures(moved, faces=faces, box=box).mean, mean, atol=1e-12)
    mesh = mp.TriangleMesh(x, faces, box=(*box[:2], None))
    np.testing.assert_allclose(analysis.curvatures(mesh).mean, mean, atol=1e-12)
    np.testing.assert_allclose(analysis.curvatures(moved, mesh).mean, mean, atol=1e-12)
    found = analysis.curvatures([x, x], faces=[faces, faces[::-1]], box=[box, box])
    np.testing.assert_allclose(found.mean, [mean, mean], atol=1e-12)
    assert found.gaussian.shape == (2, len(x))


def test_states_frames_and_trajectories_have_their_own_triangles(tmp_path):
    topology = mp.Topology()
    topology.add_beads(np.zeros((3, 3)), mass=1.0)
    membrane = topology.add_membrane(mp.TriangleMesh.icosphere(10.0, 2), vertex_mass=1.0, name="vesicle")
    simulation = mp.Simulation(mp.System(topology), mp.VerletIntegrator(0.01), threads=1)
    simulation.context.set_velocities_to_temperature(kT=0.1, seed=1)
    states = []
    with mp.reporters.TrajectoryReporter(tmp_path / "run.h5", 5) as reporter:
        simulation.reporters.append(reporter)
        for _ in range(3):
            simulation.step(5)
            states.append(simulation.context.get_state(positions=True))
    expected = [mp.TriangleMesh(one.positions[membrane.beads], membrane.mesh.faces).mean_curvatures for one in states]
    np.testing.assert_allclose(analysis.curvatures(states, membrane).mean, expected, rtol=1e-9)
    np.testing.assert_allclose(analysis.curvatures(states[1], membrane).mean, expected[1], rtol=1e-9)
    arrays = np.array([one.positions for one in states])
    np.testing.assert_allclose(analysis.curvatures(arrays, membrane).mean, expected, rtol=1e-9)
    with mp.Trajectory(tmp_path / "run.h5") as trajectory:
        np.testing.assert_allclose(analysis.curvatures(trajectory, "vesicle").mean, expected, rtol=1e-9)
        assert analysis.reduced_volume(trajectory, membrane).shape == (3,)

    # A state whose membrane has other triangles by now.
    other = {"vesicle": membrane.mesh.faces[:, [0, 2, 1]]}
    flipped = SimpleNamespace(positions=states[0].positions, time=0.0, faces=other)
    np.testing.assert_allclose(analysis.curvatures(flipped, membrane).mean, -expected[0], rtol=1e-9)
    with pytest.raises(TopologyError, match="'beads' is not a membrane; there are: 'vesicle'"):
        analysis.curvatures(states, topology.handles[0])
    refuses(mp.ParameterError, "give membrane=", analysis.curvatures, states)
    with pytest.raises(TopologyError, match=r"faces\[0\] = \[0, 1, 900\], but there are 165 vertices"):
        analysis.curvatures(states, faces=[[0, 1, 900]])
    with pytest.raises(mp.ParameterError, match="faces are of 2 frames, but there are 3"):
        analysis.curvatures(states, faces=[[[0, 1, 2]], [[0, 1, 2]]])


def test_reduced_volumes():
    sphere = mp.TriangleMesh.icosphere(3.0, 5)
    assert analysis.reduced_volume(sphere) == pytest.approx(1.0, abs=1e-3)
    a, c = 1.0, 2.5
    e = np.sqrt(1.0 - (a / c) ** 2)
    area = 2.0 * np.pi * a * (a + c * np.arcsin(e) / e)
    stretched = sphere.vertices / 3.0 * [a, a, c] + [500.0, -300.0, 80.0]
    expected = 4.0 / 3.0 * np.pi * a * a * c / (4.0 / 3.0 * np.pi * (area / (4.0 * np.pi)) ** 1.5)
    found = analysis.reduced_volume([stretched, 7.0 * stretched], faces=sphere.faces)
    np.testing.assert_allclose(found, expected, atol=1e-3)
    # With normals that look inward, the same.
    assert analysis.reduced_volume(stretched, faces=sphere.faces[:, ::-1]) == pytest.approx(found[0], rel=1e-12)
    with pytest.raises(mp.ParameterError, match="the membrane has borders"):
        analysis.reduced_volume(mp.TriangleMesh.flat_sheet(4, 4, 1.0))


def test_order_of_meshes():
    x, faces, box = lattice(8, 6)
    turned = x @ np.linalg.qr(np.random.default_rng(2).normal(size=(3, 3)))[0].T
    flat = analysis.mesh_order(x, faces=faces, box=box)
    np.testing.assert_allclose(flat.hexatic, 1.0, atol=1e-12)
    np.testing.assert_array_equal(flat.neighbors, 6)
    sheet = mp.TriangleMesh.flat_sheet(5, 5, 2.0)
    order = analysis.mesh_order(sheet.vertices @ np.linalg.qr(turned[:3] + np.eye(3))[0].T, faces=sheet.faces)
    inside = ~np.isnan(order.hexatic)
    assert inside.sum() == 9
    np.testing.assert_allclose(order.hexatic[inside], 1.0, atol=1e-12)
    assert order.neighbors.sum() == 2 * len(sheet.edges)
    # Five neighbours at equal angles add up to nothing.
    ball = analysis.mesh_order(mp.TriangleMesh.icosphere(1.0, 0))
    np.testing.assert_allclose(ball.hexatic, 0.0, atol=1e-12)
    np.testing.assert_array_equal(ball.neighbors, 5)
    # One neighbour that is turned by an angle.
    star = np.array([[np.cos(t), np.sin(t), 0.0] for t in np.radians([0, 60, 120, 180, 240, 310])])
    found = analysis.mesh_order(np.vstack([[[0, 0, 0]], star]), faces=[[0, 1 + k, 1 + (k + 1) % 6] for k in range(6)])
    assert found.hexatic[0] == pytest.approx(abs(5 + np.exp(6j * np.radians(310))) / 6)


# What triangles make of bending ---------------------------------------------------------------------------------


@pytest.mark.parametrize("discretization", ["vertex", "dihedral"])
def test_energy_of_a_wave_on_the_lattice(discretization):
    """κ q̂⁴ A |h|² of one period of a plane wave, by the force itself: κ is 0 around it."""
    nx, ny, margin, height = 12, 14, 4, 1e-4
    sheet = mp.TriangleMesh.flat_sheet(nx + margin, ny + margin, 1.0)
    x = sheet.vertices - sheet.vertices.min(axis=0)
    row, column = np.round(x[:, 1] / np.sqrt(0.75)).astype(int), np.floor(x[:, 0] + 1e-9).astype(int)
    period = (row >= 2) & (row < 2 + ny) & (column >= 2) & (column < 2 + nx)
    assert period.sum() == nx * ny
    for orders in ((1, 0), (0, 2), (2, 3), (4, -2)):
        q = 2.0 * np.pi * np.array(orders) / [nx, ny * np.sqrt(0.75)]
        topology = mp.Topology()
        bent = np.column_stack([x[:, :2], height * np.cos(x[:, :2] @ q)])
        membrane = topology.add_membrane(mp.TriangleMesh(bent, sheet.faces), vertex_mass=1.0)
        system = mp.System(topology)
        system.add_force(mp.forces.MembraneBending(membrane, np.where(period, 3.0, 0.0), discretization=discretization))
        energy = mp.Context(system, mp.VerletIntegrator(1e-3)).get_state(energy=True).potential_energy
        area = nx * ny * np.sqrt(0.75)
        # ⟨cos²⟩ is 1/2, and h of e^iqr and e^-iqr together 2 |h_q|².
        expected = 0.5 * 3.0 * symbol(q, 1.0) ** 2 * area * height**2 / 2.0
        assert energy == pytest.approx(expected, rel=2e-6), orders


def test_tension_of_a_wave_and_the_mean_over_directions():
    x, faces, box = lattice(12, 14)
    for orders in ((1, 0), (2, 3)):
        q = 2.0 * np.pi * np.array(orders) / box[:2]
        bent = np.column_stack([x[:, :2], 1e-3 * np.cos(x[:, :2] @ q)])
        excess = analysis.curvatures(bent, faces=faces, box=box).area.sum() - box[:2].prod()
        assert excess == pytest.approx(0.5 * symbol(q, 1.0) * box[:2].prod() * 0.5e-6, rel=1e-4)
    angle = np.linspace(0.0, 2.0 * np.pi, 60, endpoint=False)
    for size in (0.1, 0.5, 1.0):
        q = size * np.stack([np.cos(angle), np.sin(angle)], axis=1)
        mean = symbol(q, 1.0).mean()
        assert analysis.discrete_wave_number(size, 1.0) ** 2 == pytest.approx(mean, rel=1e-12)
        # Directions matter from the sixth order on.
        assert np.ptp(symbol(q, 1.0)) < 0.001 * size**6
    assert analysis.discrete_wave_number(0.1, 1.0) ** 2 == pytest.approx(0.01 * (1.0 - 0.01 / 16), rel=1e-5)


# Spectra --------------------------------------------------------------------------------------------------------


def disordered(rng, nx=24, ny=28, off=0.3):
    """A sheet whose vertices are off their places."""
    x, faces, box = lattice(nx, ny)
    x[:, :2] += off * rng.uniform(-1.0, 1.0, (len(x), 2))
    return x, faces, box


def waves(x, box, orders, h):
    phase = np.exp(2j * np.pi * (x[:, :2] / box[:2]) @ orders.T)
    return 2.0 * (phase @ h).real


def test_waves_that_are_fitted_are_found_exactly(rng):
    x, faces, box = disordered(rng)
    orders = spectra.wave_orders(box[:2], 1.5 * np.pi / 3.0)
    h = rng.normal(size=len(orders)) + 1j * rng.normal(size=len(orders))
    x[:, 2] = 40.0 + waves(x, box, orders, h)
    # Wherever vertices have gone through the sides.
    moved = x + rng.integers(-3, 4, x.shape) * np.nan_to_num(box)
    found = analysis.patch_spectrum([x, moved], faces=faces, box=box)
    q = 2.0 * np.pi * orders / box[:2]
    own = np.linalg.norm(q, axis=1) <= np.pi / 3.0
    np.testing.assert_allclose(found.wave_vectors, q[own], rtol=1e-12)
    np.testing.assert_allclose(found.power, np.tile(np.abs(h[own]) ** 2, (2, 1)), rtol=1e-6, atol=1e-8)
    assert found.modes.sum() == own.sum()
    assert found.area == pytest.approx(box[0] * box[1])
    assert found.spacing == pytest.approx(1.0)
    assert (np.diff(found.wave_number) > 0.0).all()
    binned = analysis.patch_spectrum([x, moved], faces=faces, box=box, bins=4)
    assert binned.modes.sum() == own.sum()
    assert len(binned.modes) == 4
    assert (binned.value * binned.modes).sum() == pytest.approx(found.power[0].sum())
    # One state or frame by itself, whose box is its own.
    frame = SimpleNamespace(positions=x, time=0.0, box=(*box[:2], None))
    one = analysis.patch_spectrum(frame, faces=faces)
    np.testing.assert_allclose(one.power, found.power[:1], rtol=1e-9)
    assert np.isnan(one.error).all()


def test_bias_of_a_spectrum_with_all_waves(rng):
    """On a disordered mesh, with waves down to two vertices: what is too short to be fitted adds less than 0.5 %."""
    orders, found, true = None, 0.0, 0.0
    for _ in range(6):
        x, faces, box = disordered(rng)
        orders = spectra.wave_orders(box[:2], np.pi)
        q = np.linalg.norm(2.0 * np.pi * orders / box[:2], axis=1)
        h = q**-2 * (rng.normal(size=len(q)) + 1j * rng.normal(size=len(q)))
        x[:, 2] = waves(x, box, orders, h)
        spectrum = analysis.patch_spectrum(x, faces=faces, box=box)
        own = q <= np.pi / 3.0
        short = q[own] > 0.8 * np.pi / 3.0
        found, true = found + spectrum.power[0, short].sum(), true + (np.abs(h[own][short]) ** 2).sum()
    assert found == pytest.approx(true, rel=5e-3)


def test_harmonics():
    """Orthonormal over the sphere, by a quadrature that is exact for them; and SciPy's."""
    z, weight = special.roots_legendre(12)
    azimuth = 2.0 * np.pi * np.arange(24) / 24
    u, phi = (grid.ravel() for grid in np.meshgrid(z, azimuth, indexing="ij"))
    directions = np.stack([np.sqrt(1.0 - u**2) * np.cos(phi), np.sqrt(1.0 - u**2) * np.sin(phi), u], axis=1)
    y = spectra.harmonics(directions, 10)
    area = np.repeat(weight, 24) * 2.0 * np.pi / 24
    np.testing.assert_allclose((y.T * area) @ y, np.eye(121), atol=1e-12)
    for degree in (2, 7):
        legendre = special.eval_legendre(degree, u)
        np.testing.assert_allclose(y[:, degree * degree + degree], legendre * np.sqrt((2 * degree + 1) / (4 * np.pi)))
        # The addition theorem takes all orders.
        own = y[:, degree**2 : (degree + 1) ** 2]
        np.testing.assert_allclose((own**2).sum(axis=1), (2 * degree + 1) / (4.0 * np.pi), rtol=1e-12)


def test_spectrum_of_a_vesicle_of_known_shape(rng):
    mesh = mp.TriangleMesh.icosphere(1.0, 4)
    y = spectra.harmonics(mesh.vertices, 12)
    u = 1e-4 * rng.normal(size=y.shape[1])
    u[:4] = 0.0
    places = 250.0 * mesh.vertices * (1.0 + y @ u)[:, None] + [1e4, -3e3, 7.0]
    found = analysis.vesicle_spectrum([places, places[:, [1, 2, 0]]], faces=mesh.faces)
    assert found.degree.tolist() == list(range(2, 9))
    expected = [np.mean(u[k * k : (k + 1) ** 2] ** 2) for k in range(2, 9)]
    # To the first order in u, whose middle and volume are of the second.
    np.testing.assert_allclose(found.power, [expected, expected], rtol=5e-3)
    assert found.radius == pytest.approx(250.0, rel=2e-3)
    with pytest.raises(mp.ParameterError, match="l_max = 90 but must be at most 18 with 2562 vertices"):
        analysis.vesicle_spectrum(places, faces=mesh.faces, l_max=90)
    refuses(mp.ParameterError, "the membrane has borders", analysis.vesicle_spectrum, places, faces=mesh.faces[1:])


# Fits -----------------------------------------------------------------------------------------------------------


def patch_of(power, q, area=400.0, spacing=1.0):
    size = np.linalg.norm(q, axis=1)
    return analysis.PatchSpectrum(size, power.mean(axis=0), power.std(axis=0), np.ones(len(q), int), q, power, area,
                                  spacing)  # fmt: skip


def some_waves(area=400.0, longest=np.pi / 3.0):
    side = np.sqrt(area)
    return 2.0 * np.pi * spectra.wave_orders(np.array([side, side]), longest) / side


@pytest.mark.filterwarnings("ignore:fit_spectrum. the error of:medyanpy.errors.StatisticsWarning")
@pytest.mark.parametrize("tension", [-0.02, 0.0, 0.5])
@pytest.mark.parametrize("discretization", [False, True])
def test_a_spectrum_as_theory_has_it_gives_its_numbers_back(tension, discretization):
    q, kT, kappa, area = some_waves(), 4.1, 80.0, 400.0
    size = np.linalg.norm(q, axis=1)
    at = analysis.discrete_wave_number(size, 1.0) if discretization else size
    soft = kappa - 3.0 * kT / (4.0 * np.pi) * np.log(np.pi / size)
    for softening, rigidity in ((False, kappa), (True, soft)):
        power = np.tile(kT / (area * (rigidity * at**4 + tension * at**2)), (3, 1))
        options = {"kT": kT, "discretization": discretization, "softening": softening}
        found = analysis.fit_spectrum(patch_of(power, q), **options)
        assert found.bending_modulus.value == pytest.approx(kappa, rel=1e-8)
        assert found.tension.value == pytest.approx(tension, rel=1e-7, abs=1e-7)
        assert found.reduced_tension.value == pytest.approx(tension * area / kappa, rel=1e-7, abs=1e-6)
        np.testing.assert_allclose(found.value, power[0], rtol=1e-7)
        known = analysis.fit_spectrum(patch_of(power, q), tension=tension, q_max=0.6, **options)
        assert known.bending_modulus.value == pytest.approx(kappa, rel=1e-8)
        assert known.tension == analysis.Estimate(tension, known.tension.error)
        assert known.wave_number.max() <= 0.6


@pytest.mark.filterwarnings("ignore:fit_spectrum. the error of:medyanpy.errors.StatisticsWarning")
def test_a_vesicle_as_theory_has_it_gives_its_numbers_back():
    """Milner and Safran."""
    degree, kT, kappa, sigma, radius = np.arange(2, 9), 4.1, 82.0, 3.5, 300.0
    power = kT / kappa / ((degree + 2) * (degree - 1) * (degree * (degree + 1) + sigma))
    spectrum = analysis.VesicleSpectrum(degree, power, power, np.tile(power, (2, 1)), radius, 20.0)
    found = analysis.fit_spectrum(spectrum, kT=kT, discretization=False)
    assert found.bending_modulus.value == pytest.approx(kappa, rel=1e-8)
    assert found.reduced_tension.value == pytest.approx(sigma, rel=1e-7)
    assert found.tension.value == pytest.approx(sigma * kappa / radius**2, rel=1e-7)
    temperature = kT / mp.units.boltzmann
    again = analysis.fit_spectrum(spectrum, temperature=temperature, discretization=False, q_max=5.0 / radius)
    assert len(again.value) == 3
    assert again.bending_modulus.value == pytest.approx(kappa, rel=1e-8)


@pytest.mark.slow
def test_errors_of_fits_are_those_of_repeated_experiments(rng):
    """Modes that remember the longer the slower they are, as of a membrane with friction: deviations in units of the
    errors. 1e-6 each; errors that do not know of the memory are 2 times too small here, and z² is 4."""
    q = some_waves(area=150.0)
    size, kT, kappa, tension = np.linalg.norm(q, axis=1), 1.0, 20.0, 0.3
    theory = kT / (150.0 * (kappa * size**4 + tension * size**2))
    keep = np.exp(-size**2 / size.min() ** 2 / 6.0)
    z = []
    for _ in range(60):
        h = rng.normal(size=(2, len(q)))
        power = np.empty((2400, len(q)))
        for k in range(len(power)):
            h = keep * h + np.sqrt(1.0 - keep**2) * rng.normal(size=h.shape)
            power[k] = 0.5 * theory * (h**2).sum(axis=0)
        found = analysis.fit_spectrum(patch_of(power, q, area=150.0), kT=kT, discretization=False)
        assert found.parts == 20
        z.append([
            (found.bending_modulus.value - kappa) / found.bending_modulus.error,
            (found.tension.value - tension) / found.tension.error,
        ])  # fmt: skip
    for name, own in zip(("bending modulus", "tension"), np.transpose(z), strict=True):
        check_mean(name, own, 0.0, sees=1.5)
        # χ² of 60 with errors of 19 degrees of freedom: 19/17 in the mean.
        assert 0.35 < np.mean(own**2) < 2.4, name


def test_few_frames_tell_no_error(rng):
    q = some_waves()
    power = rng.exponential(size=(4, len(q))) / np.linalg.norm(q, axis=1) ** 4
    with pytest.warns(mp.StatisticsWarning, match="the error of .* is not a number"):
        found = analysis.fit_spectrum(patch_of(power, q), kT=1.0)
    assert np.isnan(found.bending_modulus.error)
    assert found.parts == 1


def test_refused():
    x, faces, box = lattice(12, 12)
    refuses(mp.ParameterError, r"give box=\(Lx, Ly\)", analysis.patch_spectrum, x, faces=faces)
    with pytest.raises(mp.ParameterError, match=r"box\[1\] = -1.0 but must be finite and > 0"):
        analysis.patch_spectrum(x, faces=faces, box=(12.0, -1.0))
    for q_max in (0.01, 3.0):
        with pytest.raises(mp.ParameterError, match=f"q_max = {q_max:g} but must be from 2π/L = "):
            analysis.patch_spectrum(x, faces=faces, box=box, q_max=q_max)
    # Closed, with a border, and in the box of another.
    vesicle = mp.TriangleMesh.icosphere(4.0, 2)
    for own, there, of, covers in (
        (vesicle.vertices, vesicle.faces, (20.0, 20.0), "0"), (x, faces[:-1], box, "0.99"),
        (x, faces, (24.0, 24.0 * box[1] / box[0]), "0.25"),
    ):  # fmt: skip
        with pytest.raises(mp.ParameterError, match=rf"along z, the membrane of frame 0 covers ({covers}|[\d.]+e-)"):
            analysis.patch_spectrum(own, faces=there, box=of)
    with pytest.raises(mp.ParameterError, match="a mode does not move"):
        analysis.fit_spectrum(analysis.patch_spectrum(x, faces=faces, box=box), kT=1.0)
    refuses(mp.ParameterError, "is not a PatchSpectrum", analysis.fit_spectrum, x, kT=1.0)
    q = some_waves()
    spectrum = patch_of(np.ones((2, len(q))), q)
    refuses(mp.ParameterError, "2 wave numbers are needed", analysis.fit_spectrum, spectrum, kT=1.0, q_max=0.32)
    refuses(mp.ParameterError, "kT", analysis.fit_spectrum, spectrum)


@pytest.mark.slow
def test_spectrum_of_a_patch_that_fluctuates_in_its_box():
    """Vertices that move up and down alone, in a periodic box: κ and tension as they were put in, and the tension that
    the virial has. 5 errors each; heights are small, so that what is beyond the quadratic energy is 1 kT/a² at most."""
    kappa, sigma, kT = 100.0, 40.0, 1.0
    mesh = mp.TriangleMesh.flat_sheet(16, 16, 1.0, periodic=True)
    topology = mp.Topology()
    sheet = topology.add_membrane(mesh, vertex_mass=1.0, vertex_friction=4.0)
    system = system_with(topology, mp.forces.MembraneBending(sheet, kappa), mp.forces.MembraneTension(sheet, sigma),
                         mp.forces.HarmonicTrap(sheet, [2e3, 2e3, 0.0], mesh.vertices, name="places"),
                         box=mesh.box)  # fmt: skip
    simulation = mp.Simulation(system, mp.SplittingIntegrator("BAOAB", 0.0045, kT=kT, seed=3), threads=1)
    simulation.context.set_velocities_to_temperature(kT=kT, seed=4)
    simulation.step(3000)
    states, tensions = [], []
    for k in range(500):
        simulation.step(30)
        states.append(simulation.context.get_state(positions=True))
        if k % 10 == 0:
            tensions.append(analysis.surface_tension(simulation).total)
    spectrum = analysis.patch_spectrum(states, sheet)
    assert spectrum.area == pytest.approx(mesh.area)
    fit = analysis.fit_spectrum(spectrum, kT=kT)
    assert fit.bending_modulus.error < 0.12 * kappa
    assert abs(fit.bending_modulus.value - kappa) < 5.0 * fit.bending_modulus.error
    assert fit.tension.error < 0.15 * sigma
    assert abs(fit.tension.value - sigma) < 5.0 * fit.tension.error
    frame = analysis.average(tensions)
    assert abs(fit.tension.value - frame.value) < 5.0 * np.hypot(fit.tension.error, frame.error)
    # With the tension known, a percent or two.
    known = analysis.fit_spectrum(spectrum, kT=kT, tension=sigma).bending_modulus
    assert known.error < 0.05 * kappa
    assert abs(known.value - kappa) < 5.0 * known.error
