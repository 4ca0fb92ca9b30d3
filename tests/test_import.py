"""Importing the package is light."""

import json
import statistics
import subprocess
import sys

HEAVY = ("h5py", "matplotlib", "tqdm", "scipy", "networkx", "trimesh", "MDAnalysis", "pandas")


def in_a_new_process(code):
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return json.loads(run.stdout)


def test_import_loads_nothing_heavy():
    loaded = in_a_new_process(
        "import sys, json, medyanpy; print(json.dumps(sorted({name.split('.')[0] for name in sys.modules})))"
    )
    assert "numpy" in loaded
    assert not set(loaded) & set(HEAVY)


def test_import_is_quick():
    """Under 0.3 s of processor time, of which NumPy takes most; wall clock would measure the machine's other work."""
    code = "import time, json; t = time.process_time(); import medyanpy; print(json.dumps(time.process_time() - t))"
    times = [in_a_new_process(code) for _ in range(5)]
    assert statistics.median(times) < 0.3, times
