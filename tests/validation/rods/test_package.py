"""The package moves elastic rods as rod_reference.py does, and has the same energies, forces and torques."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
import elastic_rods
import rod_reference as reference


@pytest.fixture
def bent(rng):
    """Twelve segments, stretched, sheared, bent and twisted by much; six different moduli, three moments."""
    rod = reference.rod(12, length=11.0, diameter=0.8)
    rod = rod._replace(moduli=rng.uniform(0.5, 2.0, 6), inertia=np.array([0.3, 0.5, 0.7]))
    y = reference.helix(12, rod.ds, 2.0, 0.7)
    y[:7] += rng.normal(0.0, 0.15, (7, 12))
    reference.rescale(y)
    return rod, y


@pytest.mark.parametrize("steps", [1, 50])
def test_same_path(steps, bent):
    """Steps so large that the state is another one: 50 of them turn and move all nodes by more than 0.3."""
    rod, y = bent
    ours, theirs = elastic_rods.Package(rod, y, 0.05), elastic_rods.Reference(rod, y, "OSDH", 0.05)
    ours.step(steps)
    theirs.step(steps)
    a, b = ours.look(), theirs.look()
    # Of q and -q, both the same orientation, the one the reference has.
    a[3:7] *= np.sign(np.sum(a[3:7] * b[3:7], axis=0))
    np.testing.assert_allclose(a, b, rtol=0, atol=1e-12)


@pytest.mark.parametrize("start", ["circle", "helix"])
def test_same_energy_of_the_papers_rods(start):
    """Over 100 t0; the circle's motion is plane, the helix's is not, and neither has become sensitive to rounding."""
    rod = reference.rod(63)
    y = elastic_rods.STARTS[start](63, rod.ds)
    ours, theirs = elastic_rods.Package(rod, y, 0.2), elastic_rods.Reference(rod, y, "OSDH", 0.2)
    for _ in range(5):
        ours.step(100)
        theirs.step(100)
        np.testing.assert_allclose(reference.energies(rod, ours.look()), reference.energies(rod, theirs.look()),
                                   rtol=1e-9, atol=1e-14)  # fmt: skip
