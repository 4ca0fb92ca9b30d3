"""Compiled kernels: typed, without the GIL, without checks. Nothing here imports the rest of the package."""

import os as _os
import sys as _sys
from importlib.util import find_spec as _find_spec

# Looked for, not tried: an import that fails half way is reported as a circular one.
if _find_spec("medyanpy._kernels.core.parallel") is None:
    _here = _os.path.dirname(_os.path.dirname(_os.path.abspath(__file__)))
    if _os.path.exists(_os.path.join(_here, _os.pardir, "meson.build")):
        # Python started in the checkout finds this folder before the installed package.
        raise ImportError(
            "medyanpy's compiled kernels are missing: this is its source folder, not the installed package. Run 'pip "
            "install .' here, then start Python in another folder or as 'python -P'; 'pytest' runs the tests from here."
        )
    raise ImportError(
        f"medyanpy's compiled kernels for this Python ({_sys.implementation.cache_tag}, {_sys.platform}) are missing "
        f"in {_here}: it was installed for another. Install it again: 'pip install --force-reinstall medyanpy'"
    )

# Threads that wait for work spin, by default of GNU's OpenMP for milliseconds: on a machine that others use too, that
# takes the processor from threads with work, and a step of 100 us then takes 10 ms. This many turns are tens of
# microseconds, longer than the gaps between the loops of one step. The library reads the variable when it is loaded,
# with the first kernel; afterwards the environment is what it was.
_SPINS = "1000"

_spins = "OMP_WAIT_POLICY" not in _os.environ and "GOMP_SPINCOUNT" not in _os.environ
if _spins:
    _os.environ["GOMP_SPINCOUNT"] = _SPINS
try:
    import medyanpy._kernels.core.parallel as _parallel  # noqa: F401
except ImportError as _cause:
    if not any(_library in str(_cause) for _library in ("libgomp", "libomp", "libiomp")):
        raise
    raise ImportError(
        f"medyanpy needs the OpenMP library of the compiler that built it, which is not on this machine ({_cause}): "
        "'apt install libgomp1' (Debian, Ubuntu), 'dnf install libgomp' (Fedora), 'conda install -c conda-forge "
        "libgomp' or 'brew install libomp' (macOS) installs it"
    ) from _cause
finally:
    if _spins:
        del _os.environ["GOMP_SPINCOUNT"]
