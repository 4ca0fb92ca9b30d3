"""Compiled kernels: typed, without the GIL, without checks. Nothing here imports the rest of the package."""

import os as _os
from importlib.util import find_spec as _find_spec

# Python started in the checkout finds this folder before the installed package. Looked for, not tried: an import that
# fails half way is reported as a circular one.
if _find_spec("medyanpy._kernels.parallel") is None:
    raise ImportError(
        "medyanpy's compiled kernels are missing: this is its source folder, not the installed package. Run 'pip "
        "install .' here, then start Python in another folder or as 'python -P'; 'pytest' runs the tests from here."
    )

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
