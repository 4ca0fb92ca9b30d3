"""Compiled kernels: typed, without the GIL, without checks. Nothing here imports the rest of the package."""

import os as _os

# Threads that wait for work spin, by default of GNU's OpenMP for milliseconds: on a machine that others use too,
# that takes the processor from whoever has work, and a step of 100 us then takes 10 ms. This many turns are
# tens of microseconds, longer than the gaps between the loops of one step. The library reads the variable when it is
# loaded, with the first kernel; afterwards the environment is what it was.
_SPINS = "1000"

if "OMP_WAIT_POLICY" not in _os.environ and "GOMP_SPINCOUNT" not in _os.environ:
    _os.environ["GOMP_SPINCOUNT"] = _SPINS
    try:
        from medyanpy._kernels import parallel as _parallel  # noqa: F401
    finally:
        del _os.environ["GOMP_SPINCOUNT"]
