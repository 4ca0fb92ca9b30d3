"""Membranes with flips are fluids: long runs of vesicles, kT = 1, edges of 1."""

import numpy as np
import pytest

import medyanpy as mp

TIMESTEP = 0.0015


def vesicle(subdivisions, per_step, kappa, area_modulus, volume_modulus, seed=1):
    """Bending, area, volume and the published tether; each edge is tried `per_step` times in a step."""
    mesh = mp.TriangleMesh.icosphere(1.0, subdivisions)
    mesh = mesh.with_vertices(mesh.vertices / mesh.edge_lengths.mean())
    topology = mp.Topology()
    membrane = topology.add_membrane(mesh, vertex_mass=1.0, vertex_friction=1.0, name="vesicle")
    system = mp.System(topology)
    system.add_force(mp.forces.MembraneBending(membrane, kappa))
    system.add_force(mp.forces.MembraneArea(membrane, area_modulus))
    system.add_force(mp.forces.MembraneVolume(membrane, volume_modulus))
    system.add_force(mp.forces.MembraneTether(membrane, 80.0, 1.0))
    system.add_jump(mp.jumps.EdgeFlips(membrane, per_step / TIMESTEP))
    context = mp.Context(system, mp.SplittingIntegrator("JBAOABJ", TIMESTEP, kT=1.0, seed=seed), threads=1)
    context.set_velocities_to_temperature(kT=1.0, seed=seed)
    return context


def apart(per_step, looks):
    """(looks,) mean square of how far vertices that were neighbours have moved apart, every 200 steps."""
    context = vesicle(3, per_step, 20.0, 20.0, 5.0)
    context.step(4000)
    state = context.get_state(positions=True)
    i, j = mp.TriangleMesh(state.positions, state.faces["vesicle"]).edges.T
    start = state.positions[j] - state.positions[i]
    out = np.empty(looks)
    for k in range(looks):
        context.step(200)
        x = context.get_state(positions=True).positions
        out[k] = ((x[j] - x[i] - start) ** 2).sum(axis=1).mean()
    return out


@pytest.mark.long
def test_vertices_diffuse_apart():
    """Over the last decade the mean square grows with time, beyond the square of an edge; without flips it stays."""
    square = apart(1.0, 500)
    time = np.arange(1, 501)
    last = (time >= 50) & np.isin(time, np.unique(np.geomspace(50, 500, 16).astype(int)))
    assert square[49] > 1.0
    slope = np.polyfit(np.log(time[last]), np.log(square[last]), 1)[0]
    print(f"slope {slope:.3f}, from {square[49]:.2f} to {square[-1]:.2f} squares of an edge")
    assert abs(slope - 1.0) < 0.1
    still = apart(0.0, 100)
    print(f"without flips {still[49]:.3f}, {still[-1]:.3f}")
    assert still[-1] < 0.3
