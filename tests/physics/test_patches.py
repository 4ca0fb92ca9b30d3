"""Periodic patches of fluid membranes: long runs, kT = 1, edges of about 1, masses and frictions of 1."""

import numpy as np

import medyanpy as mp

TIMESTEP = 0.0015
KAPPA = 10.0
# No triangle has an angle beyond 120 degrees.
TETHER = {"l_min": 0.76, "l_c1": 0.92, "l_c0": 1.15, "l_max": 0.76 * np.sqrt(3.0)}


def patch(nx, ny, spacing, per_step, seed, kappa=KAPPA, tension=None, word="JBAOABJ", more=()):
    """Bending, the published tether and what keeps folds out; edges tried `per_step` times a step, and at a tension the
    box once in ten."""
    mesh = mp.TriangleMesh.flat_sheet(nx, ny, spacing, periodic=True)
    topology = mp.Topology()
    membrane = topology.add_membrane(mesh, vertex_mass=1.0, vertex_friction=1.0, name="patch")
    system = mp.System(topology, box=mesh.box)
    system.add_force(mp.forces.MembraneBending(membrane, kappa))
    system.add_force(mp.forces.MembraneTether(membrane, 80.0, 1.0, **TETHER))
    system.add_force(mp.forces.MembraneFoldRepulsion(membrane, 20.0))
    for make in more:
        system.add_force(make(membrane))
    system.add_jump(mp.jumps.EdgeFlips(membrane, per_step / TIMESTEP))
    if tension is not None:
        system.add_jump(mp.jumps.BoxArea(tension=tension, rate=0.1 / TIMESTEP, step=0.02))
    context = mp.Context(system, mp.SplittingIntegrator(word, TIMESTEP, kT=1.0, seed=seed), threads=1)
    context.set_velocities_to_temperature(kT=1.0, seed=seed)
    return context


def sampled(context, steps, every):
    """Projected areas and energies (looks, 2), and the spectrum."""
    membrane = context.system.topology["patch"]
    context.step(steps // 10)
    states = []
    for _ in range(steps // every):
        context.step(every)
        states.append(context.get_state(positions=True, energy=True))
    numbers = np.array([[state.box[0] * state.box[1], state.potential_energy] for state in states])
    return numbers, mp.analysis.patch_spectrum(states, membrane)
