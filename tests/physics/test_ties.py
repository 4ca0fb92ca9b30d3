"""Ties of filaments to proteins that move in a membrane."""

import numpy as np
import pytest

import medyanpy as mp
from medyanpy.demo.report import KT, TEMPERATURE, at_temperature
from medyanpy.demo.vesicle import RADIUS, TIE_LENGTH, TIE_STIFFNESS, TIMESTEP, with_actin
from medyanpy.testing import check_mean


@pytest.mark.slow
def test_the_energy_of_a_tie():
    """Filaments that do not collide, each tied by one end to a protein of a vesicle held still. Neither shapes nor the
    membrane matter to a spring of stiffness k and length L in space: <U> = kT/2 (L² + 3s²)/(L² + s²), s² = kT/k; 3/2 kT
    for L = 0, and 1/2 kT for L much longer than s. 0.17 kT would be seen."""
    n = 200
    system = with_actin(mp.TriangleMesh.icosphere(RADIUS, 1), n, n, n, 11, held=True)
    _, proteins, actin = system.topology.handles
    context = at_temperature(system, mp.BAGOGABIntegrator(TIMESTEP, temperature=TEMPERATURE, seed=11), 1)
    context.step(2000)
    energy = np.zeros(n)
    for _ in range(10):
        context.step(200)
        x = context.get_state(positions=True).positions
        reach = np.linalg.norm(x[actin.beads[actin.starts[:-1]]] - x[proteins.beads], axis=1)
        energy += 0.1 * 0.5 * TIE_STIFFNESS * (reach - TIE_LENGTH) ** 2 / KT
    s2 = KT / TIE_STIFFNESS
    check_mean("energy of a tie, kT", energy, 0.5 * (TIE_LENGTH**2 + 3.0 * s2) / (TIE_LENGTH**2 + s2), sees=0.17)
