"""The architecture: imports point one way, and the package holds what it should."""

import ast
import os
import re
import subprocess
import sys
from importlib import metadata
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

import medyanpy as mp

# Of the source: reaches no kernel.
pytestmark = pytest.mark.slow

PACKAGE = Path(mp.__file__).parent
# Sources of kernels are not installed.
SOURCE = Path(__file__).resolve().parents[1] / "medyanpy"

# From the bottom up; a module may import from layers below its own and from its own subpackage.
LAYERS = [{"_kernels"}, {"core.__init__", "errors", "units", "_version"}, {"_tools"},
          {"core.columns", "core.flows", "rigid"}, {"core.letters", "core.kick_flows", "core.species"},
          {"core.kinds", "core.words", "kicks"},
          {"mesh"}, {"surfaces"}, {"boundaries"}, {"core.handles"}, {"core.growing_sites"}, {"core.sites"},
          {"beads"},
          {"presets", "rods", "topology"},
          {"core.triangulation"}, {"core.layout"}, {"pools"}, {"forces", "hydrodynamics"}, {"jumps", "steps"},
          {"integrators", "system", "state"}, {"engine"}, {"context"}, {"files"}, {"reporters"}, {"simulation"},
          {"mdanalysis", "ovito", "runs", "testing"}, {"visualize", "analysis", "ensemble"}, {"demo"}, {"cli"},
          {"__main__"}, {"__init__"}]  # fmt: skip
RANK = {name: i for i, layer in enumerate(LAYERS) for name in layer}


def place(pieces) -> str:
    """Name in `LAYERS` of a module, given as the names of its folders and file below the package."""
    return ".".join(pieces[: 2 if pieces[0] == "core" else 1])


def part(path: Path) -> str:
    return place(path.relative_to(PACKAGE).with_suffix("").parts)


def imports_of(path: Path):
    """Modules imported by a file, except for type checking only; relative to the package."""
    tree = ast.parse(path.read_text())
    for_types = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in for_types:
            continue
        if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            if node.module == "medyanpy":
                yield from (f"medyanpy.{a.name}" for a in node.names)
            else:
                yield node.module
        elif isinstance(node, ast.Import):
            yield from (a.name for a in node.names)


def test_every_module_has_its_layer():
    unknown = {part(p) for p in PACKAGE.rglob("*.py")} - set(RANK)
    assert not unknown, f"say in tests/test_layers.py where these belong: {unknown}"


def test_imports_point_down():
    wrong = []
    for path in PACKAGE.rglob("*.py"):
        me = part(path)
        for module in imports_of(path):
            pieces = module.split(".")
            if pieces[0] != "medyanpy" or len(pieces) < 2:
                continue
            other = place(pieces[1:])
            other = other if other in RANK else "__init__"
            if other != me and RANK[other] >= RANK[me]:
                wrong.append(f"{path.relative_to(PACKAGE)} imports {module}")
    assert not wrong, wrong


def test_engine_layout_and_context_know_no_force_jump_or_kind_by_name():
    """They import the base classes alone, from modules whose names begin with an underscore, and units of beads."""
    allowed = re.compile(r"medyanpy\.(forces|jumps|hydrodynamics)\._\w+|medyanpy\.beads\.units")
    inside = re.compile(r"medyanpy\.(forces|jumps|hydrodynamics|beads)\b")
    files = [*(PACKAGE / "engine").glob("*.py"), PACKAGE / "core" / "layout.py", PACKAGE / "context.py"]
    wrong = [
        f"{path.name} imports {module}"
        for path in files
        for module in imports_of(path)
        if inside.match(module) and not allowed.fullmatch(module)
    ]
    assert len(files) > 10
    assert not wrong, wrong


def test_kernels_import_nothing_of_the_package():
    for path in (SOURCE / "_kernels").rglob("*.p[yx]*"):
        if path.suffix in (".pyx", ".pxd", ".pxi", ".py"):
            for line in path.read_text().splitlines():
                words = line.split()
                if words[:1] in (["from"], ["import"], ["cimport"]) and "medyanpy" in words[1]:
                    assert words[1].startswith("medyanpy._kernels"), f"{path.name}: {line}"


def test_the_package_imports_nothing_of_tests_or_docs():
    root = SOURCE.parent
    theirs = {"tests", "docs"}
    for folder in ("tests", "docs"):
        for path in (root / folder).rglob("*.py"):
            theirs |= {path.stem, path.parent.name}
    wrong = [
        f"{path.relative_to(SOURCE)} imports {module}"
        for path in SOURCE.rglob("*.py")
        for module in imports_of(path)
        if module.split(".")[0] in theirs
    ]
    assert not wrong, wrong


def test_only_the_mesh_package_uses_networkx():
    users = {part(p) for p in PACKAGE.rglob("*.py") if any(m.split(".")[0] == "networkx" for m in imports_of(p))}
    assert users <= {"mesh"}


def test_interface_for_third_party_operations_is_installed():
    assert (PACKAGE / "_kernels" / "core" / "program.pxd").exists()
    assert (PACKAGE / "_kernels" / "core" / "parallel.pxd").exists()
    assert (PACKAGE / "py.typed").exists()


def test_the_version_is_one():
    assert metadata.version("medyanpy") == mp.__version__


THREADS_AT_WORK = """
import os
import time
os.environ["OPENBLAS_NUM_THREADS"] = "1"
import numpy as np
import medyanpy as mp

def times():
    return {t: int(open(f"/proc/self/task/{t}/schedstat").read().split()[0]) for t in os.listdir("/proc/self/task")}

def context(n, threads):
    topology = mp.Topology()
    beads = topology.add_beads(np.zeros((n, 3)), mass=1.0, friction=1.0)
    return mp.Context(mp.System(topology), mp.SplittingIntegrator("BAOAB", 0.1, kT=1.0), threads=threads)

start = times()
context(100_000, 1).step(2)
context(1000, 3).step(2)
for _ in range(100):
    # Threads that were started to see whether they can be may take a moment to end.
    if times().keys() == start.keys():
        break
    time.sleep(0.01)
serial = times()
three = context(100_000, 3)
before = times()
three.step(100)
after = times()
me = str(os.getpid())
print(len(serial) - len(start), len(after) - len(before))
print(after[me] - before[me], *(after[t] for t in after if t not in before))
"""


@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="only Linux tells the time of each thread")
def test_openmp_is_on():
    """A step on three threads starts two more, and each does its part of the work; little work starts none."""
    from medyanpy._kernels.core import parallel

    assert parallel.OPENMP_VERSION >= 201511
    done = subprocess.run([sys.executable, "-c", THREADS_AT_WORK], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    started, worked = (list(map(int, line.split())) for line in done.stdout.splitlines())
    assert started == [0, 2]
    assert min(worked) > 0.3 * max(worked)


def test_there_is_one_parallel_loop():
    """No other module enters a parallel region: none could do so without the guard for forks and small work."""
    region = (b"GOMP_parallel", b"__kmpc_fork_call")
    modules = {p: p.read_bytes() for suffix in EXTENSION_SUFFIXES[:1] for p in PACKAGE.rglob(f"*{suffix}")}
    assert len(modules) >= 19
    users = [p.relative_to(PACKAGE) for p, content in modules.items() if any(name in content for name in region)]
    assert [str(p.parent / p.name.split(".")[0]) for p in users] == ["_kernels/core/parallel"]


def test_instruction_sets_are_chosen_at_import():
    """The best by default; any other that the machine has on request; a sentence for what it has not."""
    from medyanpy._kernels import selected

    assert selected.geodesic.__name__ == f"medyanpy._kernels.{selected.isa}.geodesic"
    code = "from medyanpy._kernels import selected; print(selected.isa, selected.pairs.__name__)"
    for isa in [*selected.built, "sse9"]:
        done = subprocess.run([sys.executable, "-c", code], env={**os.environ, "MEDYANPY_ISA": isa},
                              capture_output=True, text=True, check=False)  # fmt: skip
        if isa == "sse9":
            assert "MEDYANPY_ISA is 'sse9', but this processor and this installation of medyanpy offer:" in done.stderr
        else:
            assert done.stdout.split() == [isa, f"medyanpy._kernels.{isa}.pairs"], done.stderr
