"""Importing the package is light. How long it takes is timed in benchmarks/bench_frame.py."""

import os
import re
import shutil
import subprocess
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

import medyanpy as mp

# Commands and processes: no kernel that other tests do not reach.
pytestmark = pytest.mark.slow

CHECKOUT = Path(__file__).resolve().parents[1]

# What takes long of the standard library and NumPy, and is wanted by few calls: numpy.random alone is a tenth of
# the whole, and brings hashlib, hmac and secrets.
SLOW = {"argparse", "asyncio", "concurrent.futures", "ctypes.util", "email", "hashlib", "http", "logging",
        "multiprocessing", "numpy.random", "numpy.testing", "pydoc", "sqlite3", "subprocess", "tempfile", "unittest",
        "xml", "zipfile"}  # fmt: skip


def loaded_by(code):
    """Names of the modules that a new process has imported after `code`.

    Those without a spec of their own name are none: what Cython keeps in ``sys.modules``, and ``__main__``.
    """
    code += (
        "; import sys; spec = lambda module: getattr(module, '__spec__', None)"
        "; print(*(n for n, m in sys.modules.items() if spec(m) and spec(m).name == n))"
    )
    return set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())


def packages(modules):
    return {name.partition(".")[0] for name in modules} - sys.stdlib_module_names


def test_import_loads_numpy_and_nothing_else():
    """Whatever NumPy or the environment loads by itself aside."""
    ours, numpys = loaded_by("import medyanpy"), loaded_by("import numpy")
    assert {"medyanpy", "numpy"} <= packages(ours)
    assert packages(ours) - packages(numpys) == {"medyanpy"}
    assert not (ours - numpys) & SLOW


def test_commands_load_no_demos_but_their_own():
    assert "medyanpy.demo" not in loaded_by("from medyanpy import cli; cli.main(['info'])")
    assert "medyanpy.demo" in loaded_by("from medyanpy import cli; cli._parser(demos=True)")


def imported_in(folder):
    """What a new process that starts in a folder says of ``import medyanpy``, as one types it."""
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONSAFEPATH", "PYTHONPATH")}
    command = [sys.executable, "-c", "import medyanpy"]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def without_kernels(folder):
    """The package in a folder, as it is before it is built."""
    ignore = shutil.ignore_patterns("*.so", "*.pyd", "__pycache__")
    shutil.copytree(CHECKOUT / "medyanpy", folder / "medyanpy", ignore=ignore)


def test_the_source_folder_says_what_to_do(tmp_path):
    """In the last line, which is what one reads; and nothing above it leads elsewhere."""
    without_kernels(tmp_path)
    shutil.copy(CHECKOUT / "meson.build", tmp_path)
    done = imported_in(tmp_path)
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith("ImportError: medyanpy's compiled kernels are missing: this is its source folder")
    assert "pip install ." in last
    assert "python -P" in last
    assert "circular" not in done.stderr
    assert "During handling" not in done.stderr
    assert "direct cause" not in done.stderr


def test_a_package_without_kernels_is_not_taken_for_the_source_folder(tmp_path):
    """What was installed for another Python has no kernels either."""
    without_kernels(tmp_path)
    done = imported_in(tmp_path)
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert "source folder" not in last
    assert sys.implementation.cache_tag in last
    assert "pip install --force-reinstall medyanpy" in last


@pytest.mark.skipif(sys.platform != "linux", reason="names the library of this system")
def test_a_missing_openmp_library_is_named(tmp_path):
    """With the command that installs it."""
    package = shutil.copytree(Path(mp.__file__).parent, tmp_path / "medyanpy")
    library = package / "_kernels" / "core" / f"parallel{EXTENSION_SUFFIXES[0]}"
    linked = re.search(rb"libgomp[\w.-]*?\.so\.1", library.read_bytes())
    if linked is None:
        pytest.skip("built with another compiler's OpenMP")
    library.write_bytes(library.read_bytes().replace(linked[0], linked[0][:-1] + b"9"))
    done = imported_in(tmp_path)
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert "apt install libgomp1" in last
    assert linked[0][:-1].decode() + "9" in last
    assert "source folder" not in done.stderr


def test_a_kernel_that_cannot_be_loaded_says_so_itself(tmp_path):
    """Kernels that are there and broken are not taken for missing ones."""
    package = shutil.copytree(Path(mp.__file__).parent, tmp_path / "medyanpy")
    library = package / "_kernels" / "core" / f"parallel{EXTENSION_SUFFIXES[0]}"
    assert library.exists()
    library.write_bytes(b"no library")
    done = imported_in(tmp_path)
    assert done.returncode == 1
    assert "are missing" not in done.stderr
    assert library.name in done.stderr.splitlines()[-1]


def test_pytest_starts_either_way():
    """`python -m pytest` puts the checkout before the installed package, which `pytest` does not."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"}
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "--collect-only", "tests/test_import.py"]
    done = subprocess.run(command, cwd=CHECKOUT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "test_the_source_folder_says_what_to_do" in done.stdout
