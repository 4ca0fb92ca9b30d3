"""Free energy of a wave held in a sheet among all shorter ones, to first order in kT: docs/fluid_membranes.md."""

import numpy as np
from builders import system_with

import medyanpy as mp
from medyanpy.analysis.spectra import discrete_wave_number


def of_heights(context, positions):
    """Second derivatives of the energy in the heights, (V, V)."""
    context.set_positions(positions)
    return context.hessian().toarray()[2::3, 2::3]


def log_determinant(hessian):
    # All heights moved alike cost nothing.
    n = len(hessian)
    sign, value = np.linalg.slogdet(hessian + np.full((n, n), 1.0 / n))
    assert sign > 0.0
    return value


def softening(nx, ny, kappa=1.0, **form):
    """κ without kT over the number put in, of two wave numbers; and what kT adds to κ beyond the logarithm, over kT."""
    mesh = mp.TriangleMesh.flat_sheet(nx, ny, 1.0, periodic=True)
    topology = mp.Topology()
    sheet = topology.add_membrane(mesh, vertex_mass=1.0)
    system = system_with(topology, mp.forces.MembraneBending(sheet, kappa, **form), box=mesh.box)
    context = mp.Context(system, mp.VerletIntegrator(1e-3), threads=1)
    at_rest = context.get_state(positions=True).positions.copy()
    at_rest[:, 2] = 0.0
    area, spacing = mesh.box[0] * mesh.box[1], np.sqrt(2.0 / np.sqrt(3.0) * mesh.box[0] * mesh.box[1] / len(at_rest))
    still = log_determinant(of_heights(context, at_rest))
    rows = []
    for n in (1, 2):
        q = 2.0 * np.pi * n / mesh.box[0]
        on_lattice = float(discrete_wave_number(np.array([q]), spacing)[0])
        energies, entropies = [], []
        for amplitude in (0.06 / q, 0.12 / q):
            positions = at_rest.copy()
            positions[:, 2] = amplitude * np.cos(q * at_rest[:, 0] + 0.3)
            scale = 0.25 * area * amplitude**2 * on_lattice**4
            entropies.append(0.5 * (log_determinant(of_heights(context, positions)) - still) / scale)
            energies.append(context.get_state(energy=True).potential_energy / scale / kappa)
        # Errors are of the square of the amplitude.
        energy, entropy = ((4.0 * first - second) / 3.0 for first, second in (energies, entropies))
        logarithm = 3.0 / (4.0 * np.pi) * np.log(np.pi / spacing / q)
        rows.append((on_lattice, energy, entropy + logarithm))
    q, energy, entropy = np.array(rows).T
    # entropy q² = σ + δ q²
    return energy, np.diff(entropy * q**2)[0] / np.diff(q**2)[0]
