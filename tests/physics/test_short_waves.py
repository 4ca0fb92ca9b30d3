"""What short waves do to the bending modulus of long ones."""

import numpy as np
import pytest
from short_waves import softening

# Sizes of a lattice of edges of 1.
FEW, MORE = (16, 18), (24, 28)


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
