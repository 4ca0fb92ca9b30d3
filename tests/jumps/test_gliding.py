"""Gliding assay: filaments on a carpet of motors move as fast as these walk, once enough of them are in reach."""

import sys
from pathlib import Path

import pytest

from medyanpy.testing import check_mean

sys.path.insert(0, str(Path(__file__).parents[1] / "validation"))
from figures.chemistry import DUTY, VELOCITY, glided


@pytest.mark.slow
@pytest.mark.parametrize(("motors", "sees"), [(2, 0.6), (5, 0.4), (20, 0.14)])
def test_filaments_glide_while_a_head_holds_them(motors, sees):
    """Of N heads in reach, each of which holds for the share r of time, at least one does for 1 - (1 - r)^N: the
    crossover is at N = 1/r. Filaments go against the way of the heads, which is to the last node."""
    velocity, held = glided(motors, copies=90, looks=60)
    check_mean("share of heads that hold", held.reshape(12, -1).mean(axis=1), DUTY, sees=0.4 * DUTY)
    check_mean("velocity", velocity, VELOCITY * (1.0 - (1.0 - DUTY) ** motors), sees=sees * VELOCITY)
