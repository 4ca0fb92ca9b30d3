"""What version 0.1 (commit cb3f01d) wrote of a system of every kind of bead: run with that version, not with this one.

    python make.py FOLDER

`later.npz` is what its run of `run.checkpoint` came to ten steps later. `public_names.json` are its public names.
"""

import sys
from pathlib import Path

import numpy as np

import medyanpy as mp


def unit(rng, n):
    q = rng.normal(size=(n, 4))
    return q / np.linalg.norm(q, axis=1)[:, None]


def main(out):
    rng = np.random.default_rng(7)
    turn = 2 * np.pi * np.arange(6) / 6
    line = np.column_stack([30 + np.arange(5.0), np.zeros(5), np.zeros(5)])
    ring = np.column_stack([40 + 3 * np.cos(turn), 3 * np.sin(turn), np.zeros(6)])
    t = mp.Topology()
    beads = t.add_beads(rng.normal(0, 3, (4, 3)), mass=1.0, friction=0.5, name="beads")
    balls = t.add_balls(rng.normal(0, 3, (3, 3)) + 10, [1.0, 1.2, 0.8], mass=2.0, friction=0.3, name="balls")
    m = t.add_membrane(mp.TriangleMesh.icosphere(10.0, 1), vertex_mass=1.0, vertex_friction=0.4, name="vesicle")
    points = t.add_intriangle_points(m, 9, mass=0.7, friction=0.2, seed=3, name="points")
    t.add_membrane(mp.TriangleMesh.flat_sheet(3, 3, 4.0), vertex_mass=1.0, fixed=True, name="sheet")
    plain = t.add_filament(line, 1.0, 0.5, name="filament")
    t.add_filaments([line + [0, 5, 0], line + [0, 9, 0]], 1.0, (0.2, 0.4), name="along and across")
    twistable = t.add_filament(
        ring, 1.0, 0.5, closed=True, directors="parallel", director_mass=0.1, director_friction=0.05,
        name="twistable ring",
    )  # fmt: skip
    springs = t.add_filament(line + [0, 15, 0], 1.0, 0.5, constrained=False, name="springs")
    torus = mp.surfaces.Torus(9.0, 2.0)
    walkers = t.add_surface_points(torus, torus.sample(7, 1), mass=1.0, friction=0.5, name="walkers")
    places, turns = rng.normal(0, 3, (3, 3)) - 20, unit(rng, 3)
    bodies = t.add_rigid_bodies(places, turns, 1.0, (1.0, 1.5, 2.0), (0.4, 0.6), name="bodies")
    x, q = mp.rods.uniform(5, 2.0, curvature=[0.0, 0.05, 0.02])
    rod = t.add_rod(
        x + [0, 0, 50], q, 2.0, 1.0, [1.0, 1.0, 1.5], friction=(0.5, 1.0), rotational_friction=0.3, name="rod"
    )
    system = mp.System(t)
    F = mp.forces
    for force in (
        F.HarmonicBonds([[0, 1], [1, 2]], 3.0, 2.0),
        F.SoftSphere(balls, beads, 2.0, 5.0),
        F.MembraneBending(m, 5.0),
        F.MembraneArea(m, 1.0, per_triangle=True),
        F.MembraneVolume(m, 0.5),
        F.MembraneEdgeSprings(m, 3.0),
        F.FilamentBending(plain, 4.0),
        F.FilamentTwisting(twistable, 2.0),
        F.FixmanPotential(twistable, kT=1.0),
        F.FilamentStretching(springs, 5.0),
        F.Links(bodies.sites([[0, 0, 1.0]])[:2], [beads.beads[0], points.beads[0]], 0.2, 3.0),
        F.UniformField(walkers, [0, 0, -0.5]),
        F.RodElasticity(rod, shear=20.0, extension=20.0, bending=5.0, twist=5.0),
        F.HarmonicTrap([beads, balls], 0.3, [0.0, 0, 0]),
    ):
        system.add_force(force)
    run = mp.Simulation(system, mp.BAGOGABIntegrator(0.005, kT=1.0, seed=5), threads=1)
    run.context.set_velocities_to_temperature(kT=1.0, seed=6)
    (out / "system.json").write_text(mp.serialize(system))
    run.step(10)
    run.save_checkpoint(out / "run.checkpoint")
    run.step(10)
    state = run.context.get_state(positions=True, velocities=True, energy=True)
    np.savez_compressed(
        out / "later.npz",
        **{name: getattr(state, name) for name in ("positions", "velocities", "orientations", "angular_momenta")},
        energies=np.array([state.energies[name] for name in sorted(state.energies)]),
        version=mp.__version__,
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
