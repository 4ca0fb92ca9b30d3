"""Large arrays of the kernels."""

import os

import numpy as np
import pytest
from medyanpy._kernels.core.arrays import large_zeros


@pytest.mark.parametrize("shape", [(5,), (0, 3), (400_000,), (70_000, 3, 3)])
@pytest.mark.parametrize("dtype", [np.float64, np.int32])
def test_zeros_to_be_written(shape, dtype):
    """Of any size, on their own pages or not, and of one process alone."""
    array = large_zeros(shape, dtype)
    assert array.shape == shape
    assert array.dtype == dtype
    assert array.flags.c_contiguous
    assert not array.any()
    array[...] = 1
    assert array.sum() == array.size
    assert not large_zeros(shape, dtype).any()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_child_has_its_own():
    array = large_zeros((400_000,))
    child = os.fork()
    if child == 0:
        array[...] = 1.0
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert not array.any()
