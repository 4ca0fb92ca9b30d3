"""What keeps triangles in shape, and what it does to the fluctuations of a vesicle.

    python tests/validation/membranes/modes.py [--quick] [--steps N] [--only NAME]

A vesicle of 642 vertices with a bending modulus of 20 kT, free in area and volume, and each of several ways to keep
its triangles in shape. Printed for each mode l: the bending modulus that one would read off a free fluid membrane,

    kappa(l) = kT / [(l - 1) l (l + 1) (l + 2) <|u_lm|^2>],

with u the relative distance of the surface from its centre (Milner & Safran, Phys. Rev. A 36, 4371 (1987), without
tension): 20 kT is right. Springs make it a solid shell, for which theory expects what the line below theirs says
(Paulose et al., PNAS 109, 19551 (2012), without pressure): instead of kappa (l - 1) l (l + 1) (l + 2) the stiffness of
the mode is kappa (l - 1)^2 (l + 2)^2 + Y R^2 3 (l^2 + l - 2) / (3 (l^2 + l) - 2), with Y = 2 k / sqrt(3).
"""

import argparse

import numpy as np
from scipy.special import sph_harm_y

import medyanpy as mp

KAPPA = 20.0  # kT = 1, lengths in edges
MODES = range(2, 8)
mesh = mp.TriangleMesh.icosphere(1.0, 3)
EDGE = float(np.linalg.norm(np.diff(mesh.vertices[mesh.edges], axis=1), axis=-1).mean())
RADIUS = 1.0 / EDGE  # the mean edge is 1
TRIANGLE = 4.0 * np.pi * RADIUS**2 / len(mesh.faces)

# Root mean square fluctuation of an edge sqrt(kT/k) in edges, or of an area sqrt(kT A0/k) in areas.
CHOICES = {
    "springs 0.1": ("springs", 0.1),
    "springs 0.2": ("springs", 0.2),
    "areas 0.05": ("areas", 0.05),
    "areas 0.1": ("areas", 0.1),
    "areas 0.2": ("areas", 0.2),
}


def vesicle(kind, share):
    """(system, largest stiffness of a vertex)."""
    topology = mp.Topology()
    sphere = mp.TriangleMesh.icosphere(RADIUS, 3)
    membrane = topology.add_membrane(sphere, vertex_mass=1.0, vertex_friction=0.1)
    system = mp.System(topology)
    system.add_force(mp.forces.MembraneBending(membrane, bending_modulus=KAPPA))
    if kind == "springs":
        stiffness = 1.0 / share**2
        system.add_force(mp.forces.MembraneEdgeSprings(membrane, stiffness))
        own = 6.0 * stiffness
    else:
        modulus = 1.0 / (TRIANGLE * share**2)
        system.add_force(mp.forces.MembraneArea(membrane, modulus, per_triangle=True))
        own = 5.0 * modulus
    return system, 40.0 * KAPPA + own


def coefficients(x):
    """{l: (2l + 1,) squared amplitudes of the relative height}, by least squares over the vertices."""
    x = x - x.mean(axis=0)
    r = np.linalg.norm(x, axis=1)
    theta, phi = np.arccos(x[:, 2] / r), np.arctan2(x[:, 1], x[:, 0])
    columns, of = [], []
    for degree in range(MODES.stop + 2):
        for m in range(degree + 1):
            y = sph_harm_y(degree, m, theta, phi)
            parts = [y.real] if m == 0 else [np.sqrt(2) * y.real, np.sqrt(2) * y.imag]
            columns += parts
            of += [degree] * len(parts)
    u = np.linalg.lstsq(np.column_stack(columns), r / r.mean() - 1.0, rcond=None)[0]
    return np.array([np.mean(u[np.array(of) == degree] ** 2) for degree in MODES])


def shell(share):
    """kappa(l) of a solid shell of springs."""
    degree = np.array(MODES)
    young = 2.0 / (np.sqrt(3.0) * share**2)
    stiffness = KAPPA * (degree - 1) ** 2 * (degree + 2) ** 2
    stiffness = stiffness + young * RADIUS**2 * 3 * (degree**2 + degree - 2) / (3 * (degree**2 + degree) - 2)
    return stiffness / ((degree - 1) * degree * (degree + 1) * (degree + 2))


def measure(name, steps, seed):
    """kappa(l), its relative standard error from eight stretches of the run, and the least height of a triangle seen
    as a share of that of an equilateral one."""
    system, stiffness = vesicle(*CHOICES[name])
    integrator = mp.BAGOGABIntegrator(0.25 / np.sqrt(stiffness), kT=1.0, seed=seed)
    context = mp.Context(system, integrator, threads=1)
    context.set_velocities_to_temperature(kT=1.0, seed=seed)
    context.step(steps // 5)
    samples, least = [], np.inf
    for _ in range(400):
        context.step(steps // 400)
        x = context.get_state(positions=True).positions
        samples.append(coefficients(x))
        corners = x[mesh.faces]
        sides = np.linalg.norm(corners - np.roll(corners, 1, axis=1), axis=2)
        doubled = np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1)
        least = min(least, (doubled / sides.max(axis=1)).min() / np.sqrt(0.75))
    pieces = np.array(samples).reshape(8, -1, len(MODES)).mean(axis=1)
    degree = np.array(MODES)
    bare = (degree - 1) * degree * (degree + 1) * (degree + 2)
    mean = pieces.mean(axis=0)
    return 1.0 / (bare * mean), pieces.std(axis=0, ddof=1) / np.sqrt(8) / mean, least


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a short run of the first choice")
    parser.add_argument("--steps", type=int, default=200_000)
    parser.add_argument("--only", choices=CHOICES)
    options = parser.parse_args()
    names = [options.only] if options.only else list(CHOICES)
    if options.quick:
        names, options.steps = names[:1], 2000
    print("kappa(l) / kT, 20 asked" + " " * 4 + "".join(f"l = {degree:<11}" for degree in MODES))
    for name in names:
        try:
            kappa, error, least = measure(name, options.steps, seed=1)
        except mp.SimulationError as lost:
            print(f"{name:<26} lost: {lost}")
            continue
        row = "".join(f"{k:6.1f} ± {100 * e:4.1f} % " for k, e in zip(kappa, error, strict=True))
        print(f"{name:<26} {row} lowest triangle {least:.2f}", flush=True)
        if CHOICES[name][0] == "springs":
            print(f"{'    theory of shells':<26} " + "".join(f"{k:6.1f}          " for k in shell(CHOICES[name][1])))


if __name__ == "__main__":
    main()
