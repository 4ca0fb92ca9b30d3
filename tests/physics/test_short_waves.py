"""Free energy of a wave held in a sheet among all shorter ones, to first order in kT: docs/fluid_membranes.md."""

import numpy as np
import pytest
from builders import system_with

import medyanpy as mp
from medyanpy.analysis.spectra import discrete_wave_number

# Sizes of a lattice of edges of 1.
FEW, MORE = (16, 18), (24, 28)


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


@pytest.mark.parametrize(("form", "delta"), [({}, -0.713), ({"projected": True}, -0.317)], ids=["default", "projected"])
def test_short_waves_soften_a_sheet_by_the_logarithm_of_its_size(form, delta):
    """What is left after the factor 3kT/4π is the same on two lattices, to 0.002 kT: another factor by 1/4π would make
    0.032 of it."""
    energy, few = softening(*FEW, **form)
    assert np.abs(energy - 1.0).max() < 1e-3
    _, more = softening(*MORE, **form)
    assert abs(few - more) < 0.002
    # The numbers of the documentation.
    assert abs(few - delta) < 0.005


def test_the_shift_does_not_depend_on_the_bending_modulus():
    assert abs(softening(*FEW, kappa=1.0)[1] - softening(*FEW, kappa=30.0)[1]) < 1e-6
