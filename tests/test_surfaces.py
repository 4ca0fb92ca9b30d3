"""Implicit surfaces: derivatives, text, projection, sampling, meshes; and beads that stay on them."""

import math
import pickle

import numpy as np
import pytest
from builders import refuses, system_with
from scipy import stats

import medyanpy as mp
from medyanpy.core.flows import Stage
from medyanpy.surfaces import expressions
from medyanpy.testing import check_variance, thermal

S = mp.surfaces
BERNOULLI = "((x**2 + y**2)**2 - a**2*(x**2 - y**2))**2/a**6 + z**2 - r**2"


def torus(p, R=3.0, r=1.0):
    return (np.hypot(p[:, 0], p[:, 1]) - R) ** 2 + p[:, 2] ** 2 - r**2


def tilted(p):
    """A torus around the axis (1, 2, -2)/3 through (1, 0, 2)."""
    q, a = p - [1.0, 0.0, 2.0], np.array([1.0, 2.0, -2.0]) / 3.0
    z = q @ a
    return (np.linalg.norm(q - z[:, None] * a, axis=1) - 3.0) ** 2 + z**2 - 0.25


def lemniscate(p, n, a, r):
    w = p[:, 0] + 1j * p[:, 1]
    c = a * 2.0 ** (-1.0 / n)
    f = (np.abs(w**n - c**n) ** 2 - c ** (2 * n)) / a ** (2 * n - 1)
    return f**2 + p[:, 2] ** 2 - r**2


def gyroid(p, period, level):
    (x, y, z), sin, cos = (p * 2.0 * np.pi / period).T, np.sin, np.cos
    return sin(x) * cos(y) + sin(y) * cos(z) + sin(z) * cos(x) - level


# Each surface, and its function written independently.
SURFACES = {
    "sphere": (S.Sphere(2.0, [0.1, 0.2, -0.3]), lambda p: ((p - [0.1, 0.2, -0.3]) ** 2).sum(axis=1) - 4.0),
    "torus": (S.Torus(3.0, 1.0), torus),
    "tilted torus": (S.Torus(3.0, 0.5, [1.0, 0.0, 2.0], axis=[1.0, 2.0, -2.0]), tilted),
    "ellipsoid": (S.Ellipsoid([1.0, 2.0, 0.5]), lambda p: ((p / [1.0, 2.0, 0.5]) ** 2).sum(axis=1) - 1.0),
    "plane": (S.Plane([0.0, 0.0, 1.0], [3.0, 0.0, 4.0]), lambda p: 0.6 * p[:, 0] + 0.8 * (p[:, 2] - 1.0)),
    "cylinder": (S.Cylinder(2.0, [0.0, 1.0, 0.0], axis=[0.0, 1.0, 1.0]),
                 lambda p: p[:, 0] ** 2 + (p[:, 1] - 1.0 - p[:, 2]) ** 2 / 2.0 - 4.0),
    "gyroid": (S.Gyroid(5.0, 0.3), lambda p: gyroid(p, 5.0, 0.3)),
    "inflated": (S.Inflated("(x**4 + y**4)/8 - c", r=0.2, c=0.25),
                 lambda p: ((p[:, 0] ** 4 + p[:, 1] ** 4) / 8.0 - 0.25) ** 2 + p[:, 2] ** 2 - 0.04),
    "genus 2": (S.Lemniscate(2, a=1.0, r=1 / 6), lambda p: lemniscate(p, 2, 1.0, 1 / 6)),
    "genus 5": (S.Lemniscate(5, a=2.0, r=0.4), lambda p: lemniscate(p, 5, 2.0, 0.4)),
    "polynomial": (S.Polynomial(BERNOULLI, a=1.5, r=0.3), lambda p: lemniscate(p, 2, 1.5, 0.3)),
}  # fmt: skip


def jacobian(function, x, h=1e-3):
    """Derivatives of sixth order by differences."""
    out = 0.0
    for k, w in zip((1, 2, 3), (3 / 4, -3 / 20, 1 / 60), strict=True):
        d = [function(x + k * h * e) - function(x - k * h * e) for e in np.eye(3)]
        out = out + w / h * np.stack(d, axis=-1)
    return out


@pytest.mark.parametrize("name", SURFACES)
def test_values_and_derivatives(name):
    """37 points: whole batches of the kernel, and a part of one."""
    surface, g = SURFACES[name]
    x = np.random.default_rng(3).uniform(-1.2, 1.2, (37, 3))
    value = g(x)
    np.testing.assert_allclose(surface.value(x), value, rtol=0.0, atol=1e-13 * np.abs(value).max())
    gradient = jacobian(g, x)
    np.testing.assert_allclose(surface.gradient(x), gradient, rtol=0.0, atol=1e-9 * np.abs(gradient).max())
    hessian = jacobian(surface.gradient, x)
    np.testing.assert_allclose(surface.hessian(x), hessian, rtol=0.0, atol=1e-8 * max(1.0, np.abs(hessian).max()))
    # No point depends on its neighbours in a batch.
    assert (surface.gradient(x[5:6]) == surface.gradient(x)[5:6]).all()


def test_against_sympy():
    sympy = pytest.importorskip("sympy")
    x, y, z = sympy.symbols("x y z")
    f = (x**2 + y**2) ** 2 - (x**2 - y**2)
    g = f**2 + z**2 - sympy.Rational(1, 36) + x * y * z * sympy.pi - sympy.Float(0.1) * z**3
    surface = S.Polynomial(g)
    p = np.random.default_rng(4).normal(size=(20, 3))
    for derivatives, found in [
        ([g], surface.value(p)[:, None]),
        (sympy.derive_by_array(g, [x, y, z]), surface.gradient(p)),
        (sympy.hessian(g, (x, y, z)), surface.hessian(p).reshape(-1, 9)),
    ]:
        exact = np.column_stack([np.broadcast_to(sympy.lambdify([x, y, z], d)(*p.T), 20) for d in derivatives])
        np.testing.assert_allclose(found, exact, rtol=1e-13, atol=1e-12)
    refuses(mp.ParameterError, r"Polynomial: sin\(x\) is not part of a polynomial", S.Polynomial, sympy.sin(x) + y)
    refuses(mp.ParameterError, r"'w' at column .* is unknown", S.Polynomial, x**2 + sympy.Symbol("w"))


def test_coefficients():
    c = np.zeros((3, 2, 4))
    c[2, 0, 0], c[0, 1, 3], c[0, 0, 0], c[1, 1, 1] = 1.5, -2.0, 0.1, 3.0
    p = np.random.default_rng(5).normal(size=(9, 3))
    exact = np.polynomial.polynomial.polyval3d(*p.T, c)
    by_powers = {tuple(map(int, i)): c[tuple(i)] for i in np.argwhere(c)}
    for surface in (S.Polynomial(c), S.Polynomial(by_powers)):
        np.testing.assert_allclose(surface.value(p), exact, rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize(("text", "message"), [
    ("x +", "cannot read 'x \\+'"),
    ("x**y", "'y' at column 4 of 'x\\*\\*y' is a power, but powers must be whole numbers from 0 to 100"),
    ("x**-1", "'-1' at column 4 .* is a power"),
    ("x**1.5", "'1.5' at column 4 .* is a power"),
    ("x**101", "'101' .* is a power"),
    ("1/x", "'x' at column 3 of '1/x' divides, but in a polynomial only numbers may"),
    ("x/(1 - 1)", "is zero and divides"),
    ("x + w", "'w' at column 5 of 'x \\+ w' is unknown: there are x, y, z and R"),
    ("sin(x)", "'sin\\(x\\)' at column 1 .* is not part of a polynomial"),
    ("__import__('os').system('true')", "is not part of a polynomial"),
    ("x.real", "is not part of a polynomial"),
    ("x if y else z", "is not part of a polynomial"),
    ("x + True", "'True' at column 5 .* is not part of a polynomial"),
    ("x + 1j", "is not part of a polynomial"),
    ("1e308*10 + x", "is inf, but must be finite"),
    ("x*1" + "0" * 400, "is too large a number"),
    ("(" * 300 + "x" + ")" * 299, "the parenthesis at column 1 is not closed"),
    ("", "cannot read ''"),
    ("R - x + x", "does not depend on x, y or z"),
])  # fmt: skip
def test_text_that_is_not_a_polynomial(text, message):
    refuses(mp.ParameterError, message, S.Polynomial, text, R=1.0)


def test_powers_as_written_elsewhere():
    assert S.Polynomial("-x^2 + +y").value([[3.0, 1.0, 0.0]]) == -8.0


def test_common_terms_are_computed_once():
    """The seed's surface: value and gradient in fewer than 30 instructions."""
    assert len(S.Polynomial(BERNOULLI, a=1.0, r=1 / 6).evaluator.instructions) < 30
    graph = expressions.Graph()
    x, y, _ = graph.coordinates
    assert graph.add(x, y) == graph.add(y, x)


@pytest.mark.parametrize(("make", "message"), [
    (lambda: S.Sphere(0.0), "Sphere: radius = 0.0 but must be finite and > 0"),
    (lambda: S.Sphere(1.0, [0.0, np.nan, 0.0]), r"Sphere: center\[1\]"),
    (lambda: S.Torus(1.0, 1.0), "Torus: tube_radius = 1.0 but must be < radius = 1.0: the surface would cross"),
    (lambda: S.Ellipsoid([1.0, -1.0, 1.0]), r"Ellipsoid: semi_axes\[1\] = -1.0"),
    (lambda: S.Plane(normal=[0.0, 0.0, 0.0]), "Plane: normal = .* must not be zero"),
    (lambda: S.Gyroid(1.0, 1.5), "Gyroid: level = 1.5 but must be between"),
    (lambda: S.Lemniscate(2, 1.0, 0.25), "Lemniscate: r = 0.25 but must be < a/4 = 0.25: .* has no holes"),
    (lambda: S.Lemniscate(1, 1.0, 0.1), "Lemniscate: foci = 1"),
    (lambda: S.Inflated("x + z", 0.1), "Inflated: 'x \\+ z' depends on z"),
    (lambda: S.Polynomial("x", x=1.0), "x is a coordinate"),
    (lambda: S.Polynomial("x*k", k="a"), "Polynomial: k = 'a' but must be a number"),
    (lambda: S.Polynomial({(1, 2): 1.0}), "must be given by three powers"),
    (lambda: S.Polynomial([[1.0]]), "Polynomial: coefficients must have shape"),
    (lambda: S.Polynomial("x", bounding_box=[[0, 0, 0], [1, 0, 1]]), "the second corner must be above the first"),
    (lambda: S.PythonSurface(1.0, len), "PythonSurface: g = 1.0 but must be a function"),
    (lambda: S.PythonSurface(len, len).hessian([[0.0, 0, 0]]), "give the function hessian="),
    (lambda: S.PythonSurface(lambda p: p, len).value([[0.0, 0, 0]]), r"g\(points\) must have shape \(1,\)"),
    (lambda: S.Plane().sample(3, 1), "the surface has no known bounds: give box="),
    pytest.param(lambda: S.Sphere(1.0).sample(3, 1, box=[[2, 2, 2], [3, 3, 3]]), "found no surface",
                 marks=pytest.mark.slow),
    (lambda: S.Sphere(1.0).value([1.0, 2.0]), r"Sphere: points must have shape \(n, 3\)"),
    (lambda: S.Sphere(1.0).project([[2.0, 0, 0], [0.0, 0, 0]]),
     r"Sphere.project: point 1 at \[0.0, 0.0, 0.0\] cannot .* the gradient vanishes there"),
    (lambda: S.Polynomial("x**2 + y**2 + z**2 + 1").project([[1.0, 0, 0]]), r"point 0 .* has not converged"),
])  # fmt: skip
def test_refusals(make, message):
    refuses(mp.ParameterError, message, make)


@pytest.mark.parametrize("name", SURFACES)
def test_projection(name):
    """Points land on the surface, on the line through them along the gradient; what is on it stays to the bit."""
    surface, g = SURFACES[name]
    x = surface.sample(200, 1, box=[[-4.0] * 3, [4.0] * 3])
    size = np.linalg.norm(surface.gradient(x), axis=1)
    allowed = 1e-12 * np.maximum(surface.length, np.linalg.norm(x, axis=1))
    assert (np.abs(g(x)) / size <= 1.01 * allowed + 1e-14).all()
    assert (surface.project(x) == x).all()
    away = x + (0.01 * surface.gradient(x).T / size).T
    back = surface.project(away)
    moved, along = back - away, surface.gradient(away)
    assert np.abs(np.cross(moved, along) / np.linalg.norm(along, axis=1)[:, None]).max() < 1e-13
    assert np.linalg.norm(back - x, axis=1).max() < 0.005
    far = surface.project(away, tolerance=1e-5)
    assert np.abs(far - back).max() < 1e-3


@pytest.mark.parametrize("name", [n for n, (s, _) in SURFACES.items() if np.isfinite(s.bounding_box).all()])
def test_bounding_box(name):
    surface = SURFACES[name][0]
    low, high = surface.bounding_box
    x = surface.sample(3000, 2, box=[low - 1.0, high + 1.0])
    assert ((x >= low - 1e-9) & (x <= high + 1e-9)).all()
    assert np.isinf(S.Gyroid(1.0).bounding_box).all()


def uniform(what, u, bins=40):
    """Numbers that should be uniform in [0, 1]: a chi-square test with a false-alarm rate of 1e-6."""
    p = stats.chisquare(np.histogram(u, bins, (0.0, 1.0))[0]).pvalue
    assert p > 1e-6, f"{what}: p = {p:.2g}"


@pytest.mark.parametrize("resolution", [64, 1])
def test_samples_are_uniform_on_a_sphere(resolution):
    """20 000 points in 40 bins: a deviation of 6 % in one half of the sphere would show. At a resolution of 1 the
    segments on which points are looked for are as long as the sphere is wide, and most meet it twice."""
    x = S.Sphere(2.0, [1.0, 2.0, 3.0]).sample(20_000, 5, resolution=resolution) - [1.0, 2.0, 3.0]
    # Archimedes: each coordinate is uniform.
    for i in range(3):
        uniform(f"coordinate {i}", 0.5 + 0.25 * x[:, i])
    d = np.abs(x).sum(axis=1) / 2.0  # 1 to sqrt 3: large where the weights are
    reference = np.random.default_rng(1).normal(size=(200_000, 3))
    reference = np.abs(reference).sum(axis=1) / np.linalg.norm(reference, axis=1)
    assert stats.ks_2samp(d, reference).pvalue > 1e-6
    # Independent: neighbours in the list know nothing of each other.
    check_variance("sum of neighbours", ((x[::2, 0] + x[1::2, 0]) ** 2).sum(), 10_000, 2.0 * 4.0 / 3.0, sees=0.13)


@pytest.mark.slow
@pytest.mark.parametrize("axis", [[0.0, 0.0, 1.0], [1.0, 1.0, 1.0]])
def test_samples_are_uniform_on_a_torus(axis):
    """Area R + r cos(t) per angle t around the tube: uniform in t - or in space - would differ by 33 % here."""
    surface = S.Torus(3.0, 1.0, axis=axis)
    x = surface.sample(20_000, 6)
    z = x @ surface.axis
    out = np.linalg.norm(x - z[:, None] * surface.axis, axis=1) - 3.0
    t = np.arctan2(z, out)
    uniform("around the tube", 0.5 + (t + np.sin(t) / 3.0) / (2.0 * np.pi))
    if axis[0] == 0.0:
        uniform("around the axis", 0.5 + np.arctan2(x[:, 1], x[:, 0]) / (2.0 * np.pi))
    assert (surface.sample(50, 6) == x[:50]).all()
    assert not (surface.sample(50, 7) == x[:50]).any()


@pytest.mark.parametrize(("surface", "genus", "area"), [
    (S.Sphere(2.0), 0, 16.0 * np.pi),
    (S.Torus(3.0, 1.0), 1, 12.0 * np.pi**2),
    (S.Torus(3.0, 1.0, axis=[1.0, 2.0, 3.0]), 1, 12.0 * np.pi**2),
    (S.Lemniscate(2, 1.0, 1 / 6), 2, None),
    (S.Lemniscate(3, 1.0, 0.1), 3, None),
])  # fmt: skip
def test_meshes(surface, genus, area):
    pytest.importorskip("skimage")
    mesh = surface.mesh(40)
    assert (mesh.genus, mesh.is_closed) == (genus, True)
    assert mesh.volume > 0.0
    assert np.abs(surface.value(mesh.vertices)).max() < 1e-11
    if area is not None:
        assert mesh.area == pytest.approx(area, rel=5e-3)


def test_mesh_of_a_part():
    pytest.importorskip("skimage")
    mesh = S.Cylinder(1.0).mesh(20, box=[[-2, -2, 0], [2, 2, 4]])
    assert not mesh.is_closed
    assert mesh.area == pytest.approx(8.0 * np.pi, rel=0.02)


def test_python_surface():
    exact, _ = SURFACES["torus"]
    surface = S.PythonSurface(torus, exact.gradient, length=4.0, bounding_box=exact.bounding_box)
    x = exact.sample(40, 3)
    assert np.abs(surface.value(x)).max() < 1e-11
    np.testing.assert_allclose(surface.project(1.01 * x), exact.project(1.01 * x), rtol=0.0, atol=1e-11)
    np.testing.assert_allclose(surface.sample(40, 3), x, rtol=0.0, atol=1e-10)

    def broken(p):
        raise OSError("no such thing")

    refuses(OSError, "no such thing", S.PythonSurface(broken, broken).project, x)


@pytest.mark.parametrize("name", SURFACES)
def test_copies_and_documents(name):
    surface, _ = SURFACES[name]
    x = surface.sample(20, 8, box=[[-4.0] * 3, [4.0] * 3])
    topology = mp.Topology()
    topology.add_surface_points(surface, x, mass=2.0, friction=1.0, tolerance=1e-11, name="walkers")
    for again in (pickle.loads(pickle.dumps(topology)), mp.deserialize(mp.serialize(mp.System(topology))).topology):
        walkers = again.handles[0]
        assert (walkers.name, walkers.tolerance, len(walkers)) == ("walkers", 1e-11, 20)
        assert (walkers.positions == topology.handles[0].positions).all()
        assert (walkers.surface.gradient(x) == surface.gradient(x)).all()
        assert type(walkers.surface) is type(surface)


def test_documents_of_python_surfaces():
    """Their functions are given again, by the name of the beads."""
    exact = SURFACES["torus"][0]
    topology = mp.Topology()
    for name, hessian in (("walkers", None), ("others", exact.hessian)):
        surface = S.PythonSurface(torus, exact.gradient, 4.0, exact.bounding_box, hessian)
        topology.add_surface_points(surface, exact.sample(5, 1), mass=1.0, name=name)
    text = mp.serialize(mp.System(topology))
    refuses(mp.ParameterError, r"'walkers' calls a Python function .*torus", mp.deserialize, text)
    functions = {"walkers.g": torus, "walkers.gradient": exact.gradient, "others.g": torus,
                 "others.gradient": exact.gradient, "others.hessian": exact.hessian}  # fmt: skip
    again = mp.deserialize(text, functions=functions).topology
    for handle, copy in zip(topology.handles, again.handles, strict=True):
        assert (handle.positions == copy.positions).all()
        assert (copy.surface.length, copy.surface.bounding_box.tolist()) == (4.0, exact.bounding_box.tolist())
        assert (copy.surface.gradient(handle.positions) == exact.gradient(handle.positions)).all()
    assert (again.handles[1].surface.hessian(handle.positions) == exact.hessian(handle.positions)).all()
    with pytest.raises(mp.ParameterError, match=r"functions names 'walkers\.f'"):
        mp.deserialize(text, functions={**functions, "walkers.f": torus})


# Beads on surfaces ------------------------------------------------------------------------------------------------


def walkers(surface, n, word, h, *, kT=1.0, friction=0.0, force=None, mass=1.0, threads=1, tolerance=1e-12, seed=1):
    box = None if np.isfinite(surface.bounding_box).all() else [[-4.0] * 3, [4.0] * 3]
    topology = mp.Topology()
    points = topology.add_surface_points(surface, surface.sample(n, seed, box=box), mass, friction, tolerance=tolerance)
    system = mp.System(topology)
    if force is not None:
        system.add_force(force(points))
    integrator = mp.SplittingIntegrator(word, h, kT=thermal(word, kT), seed=3)
    context = mp.Context(system, integrator, threads=threads)
    context.set_velocities_to_temperature(kT=kT, seed=4)
    return context, points


def off(surface, state):
    gradient = surface.gradient(state.positions)
    size = np.linalg.norm(gradient, axis=1)
    across = np.einsum("ij,ij->i", gradient, state.velocities) / size
    return np.abs(surface.value(state.positions)) / size, np.abs(across)


@pytest.mark.parametrize("word", ["BAB", "BAOAB", "ABOBA", "OBABO"])
@pytest.mark.parametrize("name", SURFACES)
def test_beads_stay_on_their_surface(name, word):
    """At every step, on a box of positions up to 7 nm and sizes up to 4 nm; velocities tangent to round-off."""
    surface, _ = SURFACES[name]
    trap = lambda points: mp.forces.HarmonicTrap([points], 1.0, [0.5, 0.0, 0.0])  # noqa: E731
    context, points = walkers(surface, 35, word, 0.005, friction=0.5, force=trap)
    assert points.degrees_of_freedom == 70
    for _ in range(20):
        context.step(1)
        state = context.get_state(positions=True, velocities=True)
        away, across = off(surface, state)
        far = np.maximum(surface.length, np.linalg.norm(state.positions, axis=1))
        assert (away <= 1.01e-12 * far + 1e-14).all()
        assert across.max() < 1e-13


def test_great_circles():
    """Free flight on a sphere: chords of equal length in one plane, the exact geodesic at every step."""
    R, h, n = 3.0, 0.05, 400
    surface = S.Sphere(R)
    context, _ = walkers(surface, 20, "BAB", h)
    start = context.get_state(positions=True, velocities=True)
    context.step(n)
    end = context.get_state(positions=True, velocities=True)
    x, v = start.positions, start.velocities
    speed = np.linalg.norm(v, axis=1)
    # h v is the tangent that ends above the next point: the chord spans the angle asin(h v/R).
    angle = (n * np.arcsin(h * speed / R))[:, None]
    exact = np.cos(angle) * x + np.sin(angle) * R * v / speed[:, None]
    np.testing.assert_allclose(end.positions, exact, rtol=0.0, atol=1e-9)
    np.testing.assert_allclose(np.linalg.norm(end.velocities, axis=1), speed, rtol=1e-12)


@pytest.mark.parametrize("name", ["torus", "genus 2", "gyroid"])
def test_runs_backwards(name):
    trap = lambda points: mp.forces.HarmonicTrap([points], 1.0, [0.5, 0.0, 0.0])  # noqa: E731
    context, _ = walkers(SURFACES[name][0], 20, "BAB", 0.002, force=trap, tolerance=1e-15)
    start = context.get_state(positions=True).positions
    context.step(200)
    there = context.get_state(positions=True, velocities=True)
    context.set_velocities(-there.velocities)
    context.step(200)
    back = context.get_state(positions=True).positions
    assert np.abs(there.positions - start).max() > 0.1
    np.testing.assert_allclose(back, start, rtol=0.0, atol=1e-10)


def test_energy_error_is_of_second_order():
    """The seed's run: gravity on the lemniscate, 25 directions from the top; the largest deviation over the mean
    kinetic energy is 1.23 % at 0.01 by an independent code. After every one of 6 000 steps beads are on the surface to
    its tolerance and velocities tangent to round-off."""
    r = 1.0 / 6.0
    angle = np.linspace(0.0, 2.0 * np.pi, 25)
    deviations = []
    for h in (0.01, 0.005):
        topology = mp.Topology()
        points = topology.add_surface_points(S.Lemniscate(2, 1.0, r), np.tile([0.0, 0.0, r], (25, 1)), mass=1.0)
        system = system_with(topology, mp.forces.UniformField([points], [0.0, 0.0, -1.0]))
        context = mp.Context(system, mp.SplittingIntegrator("BAB", h), threads=1)
        context.set_velocities(np.column_stack([np.cos(angle), np.sin(angle), 0.0 * angle]))
        energies, kinetic = [], []
        for _ in range(round(20.0 / h)):
            state = context.get_state(positions=True, velocities=True)
            kinetic.append(0.5 * (state.velocities**2).sum(axis=1))
            energies.append(kinetic[-1] + state.positions[:, 2])
            away, across = off(points.surface, state)
            far = np.maximum(points.surface.length, np.linalg.norm(state.positions, axis=1))
            assert (away <= 1.01e-12 * far).all()
            assert across.max() < 1e-14 or len(energies) == 1
            context.step(1)
        deviations.append(np.max(np.abs(np.array(energies) - energies[0]) / np.mean(kinetic, axis=0)))
    assert deviations[0] == pytest.approx(0.0123, rel=0.01)
    assert 3.5 < deviations[0] / deviations[1] < 5.0


@pytest.mark.frictionless
def test_surfaces_do_not_keep_momentum():
    """Nothing is left out of the temperature of beads without friction or forces: 2 degrees of freedom each."""
    topology = mp.Topology()
    sphere = S.Sphere(2.0)
    topology.add_surface_points(sphere, sphere.sample(4, seed=1), 1.0)
    context = mp.Context(mp.System(topology), mp.VerletIntegrator(0.01))
    context.set_velocities_to_temperature(kT=1.0, seed=1)
    state = context.get_state(energy=True)
    assert 2.0 * state.kinetic_energy == pytest.approx(8.0 * mp.units.boltzmann * state.temperature, rel=1e-12)


def test_temperature_and_density():
    """BAOAB on a torus in a trap-free run: Maxwell's distribution in the tangent plane, uniform per area.

    2 000 beads that have forgotten where they started; started all on the outer rim. A missing Jacobian would show
    as 33 % more or less density inside."""
    surface = S.Torus(3.0, 1.0)
    topology = mp.Topology()
    rim = np.linspace(0.0, 2.0 * np.pi, 2000, endpoint=False)
    x = np.column_stack([4.0 * np.cos(rim), 4.0 * np.sin(rim), 0.0 * rim])
    points = topology.add_surface_points(surface, x, mass=2.0, friction=2.0)
    context = mp.Context(mp.System(topology), mp.SplittingIntegrator("BAOAB", 0.1, kT=1.0, seed=7), threads=1)
    context.set_velocities_to_temperature(kT=1.0, seed=4)
    context.step(600)
    state = context.get_state(positions=True, energy=True)
    p = state.positions[points.beads]
    t = np.arctan2(p[:, 2], np.hypot(p[:, 0], p[:, 1]) - 3.0)
    uniform("around the tube", 0.5 + (t + np.sin(t) / 3.0) / (2.0 * np.pi), bins=20)
    measured = state.temperatures["surface points"] * mp.units.boltzmann
    check_variance("velocities after O", 4000 * measured, 4000, 1.0, sees=0.2)


def test_far_from_the_origin():
    """Where coordinates are no finer than 6e-11 nm, beads are on the surface to 1e-12 of the distance."""
    sphere = S.Sphere(1.0, [4e5, -3e5, 1e5])
    context, _ = walkers(sphere, 40, "BAOAB", 0.05, friction=0.5)
    context.step(50)
    away, across = off(sphere, context.get_state(positions=True, velocities=True))
    assert away.max() < 6e-7
    assert across.max() < 1e-13


def test_multipliers():
    """The force -λ ∇g is what keeps beads on the surface: against accelerations by differences, and closed forms."""
    gravity = lambda points: mp.forces.UniformField([points], [0.3, 0.0, -1.0])  # noqa: E731
    for name in ("sphere", "genus 2", "gyroid"):
        surface = SURFACES[name][0]
        h = 1e-4
        context, _ = walkers(surface, 30, "BAB", h, force=gravity, mass=2.0)
        context.step(1)
        before = context.get_state(velocities=True).velocities
        context.step(1)
        state = context.get_state(positions=True, velocities=True, forces=True, multipliers=True)
        context.step(1)
        acceleration = (context.get_state(velocities=True).velocities - before) / (2.0 * h)
        gradient = surface.gradient(state.positions)
        held = state.forces - state.multipliers["surface points"][:, None] * gradient
        np.testing.assert_allclose(held, 2.0 * acceleration, rtol=0.0, atol=1e-4 * np.abs(acceleration).max())
        if name == "sphere":
            x = state.positions - surface.center
            exact = 2.0 * (state.velocities**2).sum(axis=1) + (state.forces * x).sum(axis=1)
            np.testing.assert_allclose(state.multipliers["surface points"], exact / 8.0, rtol=1e-12)
    with pytest.raises(mp.ParameterError, match=r"this State holds no multipliers: .* get_state\(multipliers=True\)"):
        _ = context.get_state().multipliers
    topology = mp.Topology()
    topology.add_beads([[0.0, 0.0, 0.0]], mass=1.0)
    plane = S.PythonSurface(lambda p: p[:, 2], lambda p: np.broadcast_to([0.0, 0.0, 1.0], p.shape))
    topology.add_surface_points(plane, [[1.0, 0.0, 0.0]], mass=1.0, name="on the table")
    context = mp.Context(mp.System(topology), mp.VerletIntegrator(0.1))
    refuses(mp.ParameterError, "give the function hessian=", context.get_state, multipliers=True)


def test_verlet_is_one_flight():
    """Without in-triangle points G does nothing, and the two A of BAGAB are one: RATTLE, at half the cost."""
    ends = []
    for word in ("BAB", "BAGAB"):
        trap = lambda points: mp.forces.HarmonicTrap([points], 1.0, [0.5, 0.0, 0.0])  # noqa: E731
        context, _ = walkers(SURFACES["torus"][0], 20, word, 0.05, force=trap)
        context.step(20)
        ends.append(context.get_state(positions=True, velocities=True))
    assert (ends[0].positions == ends[1].positions).all()
    assert (ends[0].velocities == ends[1].velocities).all()


def test_going_back(tmp_path):
    """Gradients that are kept belong to positions, not to the step before."""
    surface = SURFACES["genus 2"][0]
    topology = mp.Topology()
    topology.add_surface_points(surface, surface.sample(50, 1), mass=1.0, friction=1.0)
    simulation = mp.Simulation(mp.System(topology), mp.SplittingIntegrator("ABOBA", 0.01, kT=1.0, seed=3), threads=1)
    simulation.context.set_velocities_to_temperature(kT=1.0, seed=4)
    simulation.step(5)
    simulation.save_checkpoint(tmp_path / "run.checkpoint")
    ends = []
    for _ in range(2):
        simulation.step(7)
        ends.append(simulation.context.get_state(positions=True).positions)
        simulation.load_checkpoint(tmp_path / "run.checkpoint")
    assert (ends[0] == ends[1]).all()


def test_beads_of_python_surfaces():
    exact = SURFACES["torus"][0]
    python = S.PythonSurface(torus, exact.gradient, length=4.0, bounding_box=exact.bounding_box)
    x = exact.sample(20, 1)
    ends = []
    for surface in (exact, python):
        topology = mp.Topology()
        topology.add_surface_points(surface, x, mass=1.0)
        context = mp.Context(mp.System(topology), mp.VerletIntegrator(0.02), threads=1)
        context.set_velocities_to_temperature(kT=1.0, seed=1)
        context.step(50)
        ends.append(context.get_state(positions=True).positions)
    np.testing.assert_allclose(*ends, rtol=0.0, atol=1e-9)

    calls = []

    def fails_later(p):
        calls.append(1)
        if len(calls) > 30:
            raise OSError("disk full")
        return torus(p)

    topology = mp.Topology()
    topology.add_surface_points(S.PythonSurface(fails_later, exact.gradient, length=4.0), x[:3], mass=1.0)
    context = mp.Context(mp.System(topology), mp.VerletIntegrator(0.02), threads=1)
    context.set_velocities_to_temperature(kT=1.0, seed=1)
    with pytest.raises(mp.SimulationError, match="Python code called from the step raised") as caught:
        context.step(50)
    assert isinstance(caught.value.__cause__, OSError)


def test_beads_that_are_lost():
    sphere = S.Sphere(1.0)
    topology = mp.Topology()
    points = topology.add_surface_points(sphere, sphere.sample(20, 1), mass=1.0, name="walkers")
    context = mp.Context(mp.System(topology), mp.VerletIntegrator(0.1), threads=1)
    v = np.zeros((20, 3))
    # Two flights of 1.2 radii each, along the tangent: no point of the sphere is below where the first ends.
    tangent = np.cross(points.positions[17], [0.3, 0.8, 0.5])
    v[17] = 24.0 * tangent / np.linalg.norm(tangent)
    context.set_velocities(v)
    with pytest.raises(mp.SimulationError, match=r"bead 17 \('walkers', surface points\).* back to its surface") as e:
        context.step(3)
    assert (e.value.step, e.value.bead, e.value.object) == (0, 17, "walkers")
    # Back where it was.
    assert (context.get_state(positions=True).positions == points.positions).all()


def test_beads_at_rest_are_put_right():
    """A bead as far off as the tolerance allows is corrected by more than it flies."""
    sphere = S.Sphere(1.0)
    topology = mp.Topology()
    topology.add_surface_points(sphere, [[1.0 + 1e-6 * (1.0 + 1.4e-6), 0.0, 0.0]], mass=1.0, tolerance=1e-6)
    context = mp.Context(mp.System(topology), mp.SplittingIntegrator("BAB", 0.1), threads=1)
    context.set_velocities([[0.0, 1e-5, 0.0]])
    context.step(3)
    state = context.get_state(positions=True)
    np.testing.assert_allclose(state.positions, [[1.0, 3e-6, 0.0]], rtol=0.0, atol=1e-11)


@pytest.mark.parametrize(
    ("text", "start", "flight"),
    [
        # From the inner of two spheres beyond the outer one: back from there, the outer one comes first.
        ("(x**2 + y**2 + z**2 - 1)*(x**2 + y**2 + z**2 - 1.21)", [1.0, 0.0, 0.0], [0.0, 0.6, 0.0]),
        # From the inner side of a thin shell to its outer side.
        ("(x**2 + y**2 + z**2 - 1)*(x**2 + y**2 + z**2 - 0.9604)", [0.98, 0.0, 0.0], [0.0, 0.22, 0.0]),
        # Over a hill, under three layers: the third passes where the flight ends, and its normal points the same way.
        ("(z + x**2/2)*(z + x**2/2 - 0.1)*(z + x**2/2 - 0.2)", [0.0, 0.0, 0.0], [0.63, 0.0, 0.0]),
        # Up a cliff twelve times as high as the flight was long.
        ("z - 100*x**2*(x - 1)**2", [0.0, 0.0, 0.0], [0.5, 0.0, 0.0]),
    ],
)
def test_flights_too_far(text, start, flight):
    """Newton's method finds a root, but not one to trust."""
    topology = mp.Topology()
    topology.add_surface_points(S.Polynomial(text), [start], mass=1.0)
    context = mp.Context(mp.System(topology), mp.SplittingIntegrator("BAB", 0.1), threads=1)
    context.set_velocities(10.0 * np.array([flight]))
    refuses(mp.SimulationError, "another sheet was reached", context.step, 1)


@pytest.mark.parametrize(("surface", "x", "message"), [
    (S.Sphere(1.0), [[1.0, 0, 0], [1.1, 0, 0]], r"positions\[1\] = .* is 0.1 nm off the surface, but must be"),
    (S.Sphere(1.0), [[0.0, 0, 0]], "the gradient vanishes there"),
    ("sphere", [[1.0, 0, 0]], "surface must be one of medyanpy.surfaces, not 'sphere'"),
    (S.Sphere(1.0), [[np.inf, 0, 0]], "must be finite"),
    (S.Sphere(1.0), np.empty((0, 3)), "there is nothing to add"),
])  # fmt: skip
def test_beads_that_cannot_be_added(surface, x, message):
    refuses(mp.TopologyError, message, mp.Topology().add_surface_points, surface, x, mass=1.0)


def test_set_positions():
    """Positions from outside are brought onto the surface, or refused and left as they were."""
    sphere = S.Sphere(1.0)
    context, _ = walkers(sphere, 40, "BAB", 0.01)
    before = context.get_state(positions=True).positions
    context.set_positions(1.0001 * before)
    np.testing.assert_allclose(context.get_state(positions=True).positions, before, rtol=0.0, atol=1e-12)
    # Elsewhere on the surface, gradients are others; velocities are made tangent there.
    context.step(1)
    context.set_positions(-context.get_state(positions=True).positions)
    context.set_positions(np.roll(before, 1, axis=1))
    assert max(off(sphere, context.get_state(positions=True, velocities=True))[1]) < 1e-14
    context.set_positions(before)
    refuses(mp.SimulationError, "the gradient vanishes", context.set_positions, 0.0 * before)
    moved = before.copy()
    moved[23] *= 1.0011
    with pytest.raises(mp.SimulationError, match=r"bead 23 .*\(distance 1\.1e-03 nm\).* too far from it, and must"):
        context.set_positions(moved)
    state = context.get_state(positions=True, velocities=True)
    np.testing.assert_allclose(state.positions, before, rtol=0.0, atol=1e-12)
    assert math.isclose(max(off(sphere, state)[1]), 0.0, abs_tol=1e-14)


def test_gradients_belong_to_one_program():
    """The minimiser moves the same beads with a program of its own, whose count of positions may be the same."""
    sphere = S.Sphere(1.0)
    context, handle = walkers(sphere, 40, "BAB", 0.01)
    store, schedule = context._store, context._schedule
    flow = schedule.flows[handle]
    (tangent,) = flow.after_b(Stage(0, "B", 0.01, None))
    turned = np.roll(store.x, 1, axis=1)
    for x in (store.x.copy(), turned):
        store.x[:], store.v[:] = x, np.random.default_rng(1).normal(size=x.shape)
        store.make_program(store.v, store.mass, store.inverse_mass, []).perform(tangent)
        assert np.abs(np.einsum("ij,ij->i", store.v, x)).max() < 1e-13
