"""Importing the package is light. How long it takes is timed in benchmarks/bench_frame.py."""

import subprocess
import sys

# What takes long of the standard library and NumPy, and is wanted by few calls: numpy.random alone is a tenth of
# the whole, and brings hashlib, hmac and secrets.
SLOW = {
    "argparse", "asyncio", "concurrent.futures", "ctypes.util", "email", "hashlib", "http", "logging",
    "multiprocessing", "numpy.random", "numpy.testing", "pydoc", "sqlite3", "subprocess", "tempfile", "unittest",
    "xml", "zipfile",
}  # fmt: skip


def loaded_by(code):
    """Names of the modules that a new process has imported after `code`.

    Those without a spec are none: what Cython keeps of its own in ``sys.modules``, and ``__main__``.
    """
    code += "; import sys; print(*(n for n, m in sys.modules.items() if getattr(m, '__spec__', None)))"
    return set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())


def packages(modules):
    return {name.partition(".")[0] for name in modules} - sys.stdlib_module_names


def test_import_loads_numpy_and_nothing_else():
    """Whatever NumPy or the environment loads by itself aside."""
    ours, numpys = loaded_by("import medyanpy"), loaded_by("import numpy")
    assert {"medyanpy", "numpy"} <= packages(ours)
    assert packages(ours) - packages(numpys) == {"medyanpy"}
    assert not (ours - numpys) & SLOW
