"""Forces on single beads, in space and on membranes, and their energies written again."""

import numpy as np
from along_surface import weights_of
from point_curvature import curvature_between, free_energy_of_directions, missing_angles, with_borders
from references.membranes import mean_curvature
from references.scenes import lumpy_handles, lumpy_scene, points_of_two_membranes

import medyanpy as mp
from medyanpy.testing import ForceCase


def uniform_field():
    topology, h = lumpy_scene()
    return topology, mp.forces.UniformField([h["points"], h["beads"]], np.linspace([-1, 2, 3], [2, 1, -4], 9))


def uniform_field_energy(x):
    h = lumpy_handles()
    return -np.sum(x[np.r_[h["points"].beads, h["beads"].beads]] * np.linspace([-1, 2, 3], [2, 1, -4], 9))


def harmonic_trap():
    topology, h = lumpy_scene()
    center = np.linspace(-4, 5, 27).reshape(9, 3)
    return topology, mp.forces.HarmonicTrap([h["points"], h["beads"]], [1.0, 0.0, 3.0], center)


def harmonic_trap_energy(x):
    h = lumpy_handles()
    away = x[np.r_[h["points"].beads, h["beads"].beads]] - np.linspace(-4, 5, 27).reshape(9, 3)
    return 0.5 * np.sum(np.array([1.0, 0.0, 3.0]) * away**2)


WRITTEN = "depth*exp(-(x^2 + a*y^2)/50)*cos(z/3) + k*sqrt(1 + x^2)*z/(2 + sin(y)) - log(20 + y^2)"
SHARES = {"depth": np.linspace(1.0, 3.0, 9), "a": 0.7, "k": np.linspace(0.1, -0.2, 9)}


def written(x, depth, a, k):
    x, y, z = x.T
    return (
        depth * np.exp(-(x**2 + a * y**2) / 50.0) * np.cos(z / 3.0)
        + k * np.sqrt(1.0 + x**2) * z / (2.0 + np.sin(y))
        - np.log(20.0 + y**2)
    )


def external_field():
    topology, h = lumpy_scene()
    return topology, mp.forces.ExternalField([h["points"], h["beads"]], WRITTEN, **SHARES)


def external_field_energy(x):
    h = lumpy_handles()
    return np.sum(written(x[np.r_[h["points"].beads, h["beads"].beads]], **SHARES))


def python_force():
    topology, _ = lumpy_scene()

    def function(x):
        return python_force_energy(x), -np.cos(x) - 0.5 * (np.roll(x, 1, 0) + np.roll(x, -1, 0))

    return topology, mp.forces.PythonForce(function)


def python_force_energy(x):
    return np.sum(np.sin(x)) + 0.5 * np.sum(x * np.roll(x, 1, 0))


def on_membranes(law):
    """Of the points of one membrane among others: an energy of their weights."""

    def build():
        topology, h = points_of_two_membranes()
        return topology, law(h["more"], np.linspace(-3.0, 5.0, len(h["open"])))

    return build


def weights_squared(points, values):
    """Not linear, and it tells triangles apart."""

    def function(triangles, weights):
        share = (1.0 + 0.1 * triangles)[:, None] * values[:3]
        return np.sum(share * weights**2, axis=1), 2.0 * share * weights

    return mp.forces.PythonMembraneField(points, function)


def on_membranes_energy(linear):
    def energy(x):
        h = points_of_two_membranes()[1]
        values, membrane, total = np.linspace(-3.0, 5.0, len(h["open"])), h["open"], 0.0
        for bead, f in zip(h["more"].beads, h["more"].triangles.tolist(), strict=True):
            w = weights_of(x[membrane.beads], membrane.mesh.faces, f, x[bead])
            corners = values[membrane.mesh.faces[f]]
            total += w @ corners if linear else (1.0 + 0.1 * f) * np.sum(values[:3] * w**2)
        return total

    return energy


def curved_points(which, kT=None):
    """Of a membrane without borders, and of one that has borders, some of whose points are at these; with a kT, curved
    along directions that are left to chance."""
    numbers, directed = (3.0, 0.05, 17.0), () if kT is None else (kT,)
    law = mp.forces.PointCurvature if kT is None else mp.forces.DirectedPointCurvature

    def build():
        topology, h = points_of_two_membranes()
        return topology, law(h[which], *numbers, *directed)

    def energy(x):
        h = points_of_two_membranes()[1][which]
        membrane, total = h.membrane, 0.0
        x_m, mesh = x[membrane.beads], membrane.mesh
        faces = mesh.faces
        mean = with_borders(mean_curvature(x_m, faces, "vertex")[0], mesh)
        gauss = with_borders(missing_angles(x_m, faces), mesh)
        kappa, c, area = numbers
        for bead, f in zip(h.beads, h.triangles.tolist(), strict=True):
            w = weights_of(x_m, faces, f, x[bead])
            at = curvature_between(x_m, faces, mean, f, w)
            if kT is None:
                total += 2.0 * kappa * area * (at - c) ** 2
            else:
                k = curvature_between(x_m, faces, gauss, f, w)
                total += free_energy_of_directions(at, k, 0.5 * kappa * area, c, kT)
        return total

    return ForceCase(f"curved points, {which}, {kT}", build, energy, 1.0)


def written_on_membranes(points, values):
    text = "k*sin(h)^2 + h*b/3 - exp(-b)"
    return mp.forces.CustomMembraneField(points, text, k=2.0, h=values, b=np.cos(values))


def written_on_membranes_energy(x):
    h = points_of_two_membranes()[1]
    membrane, total = h["open"], 0.0
    values = np.linspace(-3.0, 5.0, len(membrane))
    for bead, f in zip(h["more"].beads, h["more"].triangles.tolist(), strict=True):
        face = membrane.mesh.faces[f]
        w = weights_of(x[membrane.beads], membrane.mesh.faces, f, x[bead])
        height, b = w @ values[face], w @ np.cos(values[face])
        total += 2.0 * np.sin(height) ** 2 + height * b / 3.0 - np.exp(-b)
    return total


FIELDS = [
    ForceCase("field on a membrane", on_membranes(mp.forces.MembraneField), on_membranes_energy(True), 1.0),
    ForceCase("written field", on_membranes(written_on_membranes), written_on_membranes_energy, 0.3),
    curved_points("points"),
    curved_points("more"),
    curved_points("points", 0.3),
    curved_points("more", 0.3),
    ForceCase("Python field on a membrane", on_membranes(weights_squared), on_membranes_energy(False), 1.0),
    ForceCase("uniform field", uniform_field, uniform_field_energy, 5.0),
    ForceCase("harmonic trap", harmonic_trap, harmonic_trap_energy, 5.0),
    ForceCase("external field", external_field, external_field_energy, 3.0),
    ForceCase("Python force", python_force, python_force_energy, 1.0),
]  # fmt: skip
