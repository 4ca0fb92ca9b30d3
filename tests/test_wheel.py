"""What is installed is the package: every kernel in every variant, what third parties compile against, and no more."""

import re
from importlib import metadata
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path, PurePosixPath

import pytest

import medyanpy as mp

SOURCE = Path(__file__).resolve().parents[1] / "medyanpy"
KERNELS = PurePosixPath("medyanpy/_kernels")
# Bytes of an optimised build with all variants: 15.5 MB. What makes it larger than this was not meant to be in.
LARGEST = 17_000_000


@pytest.fixture(scope="module")
def installed():
    """{path in the wheel: where it is}, without what pip adds."""
    distribution = metadata.distribution("medyanpy")
    found = {PurePosixPath(p.as_posix()): Path(distribution.locate_file(p)) for p in distribution.files or []}
    if PurePosixPath("medyanpy/__init__.py") not in found:
        pytest.skip("medyanpy is installed from its source folder: there is no wheel to look into")
    # The command is put where the environment has its commands.
    return {p: where for p, where in found.items() if p.parts[0] != ".."}


@pytest.fixture(scope="module")
def built():
    """Names of kernels in meson.build: those built once, and those built for each instruction set."""
    text = (SOURCE / "_kernels" / "meson.build").read_text()
    lists = (re.search(rf"^{name} = \[(.*?)\]", text, re.DOTALL | re.MULTILINE) for name in ("kernels", "hot_kernels"))
    return [re.findall(r"'([\w/]+)'", found[1]) for found in lists]


def sources():
    """What of the source folder belongs into the wheel."""
    for path in SOURCE.rglob("*"):
        if path.name == "translate.py":  # of the build alone
            continue
        if path.suffix in (".py", ".pxd", ".pyi", ".h", ".json") or path.name == "py.typed":
            yield PurePosixPath("medyanpy", path.relative_to(SOURCE).as_posix())


def extensions(built, installed):
    once, hot = built
    # Built with -Disa=auto, the baseline is there and the best of the machine.
    variants = [
        v for v in ("baseline", "avx2", "avx512")
        if v == "baseline" or any(p.parent == KERNELS / v and p.suffix == ".so" for p in installed)
    ]
    yield from (KERNELS / f"{name}{EXTENSION_SUFFIXES[0]}" for name in ("_cyutility", *once))
    hot = [name.split("/")[-1] for name in hot]
    yield from (KERNELS / v / f"{name}{EXTENSION_SUFFIXES[0]}" for name in hot for v in variants)


def test_nothing_is_missing(installed, built):
    wanted = {*sources(), *extensions(built, installed), PurePosixPath("medyanpy/_version.py")}
    assert wanted - set(installed) == set()
    assert all(where.is_file() for where in installed.values())


def test_nothing_is_there_that_should_not_be(installed, built):
    """No C, no sources of kernels, no build files, no tests, no caches of modules that are gone."""
    wanted = {*sources(), *extensions(built, installed), PurePosixPath("medyanpy/_version.py")}
    for path in set(installed) - wanted:
        if path.parts[0] == "medyanpy":
            # Compiled by pip, each from a module beside it.
            assert path.suffix == ".pyc", path
            assert path.parent.parent / f"{path.name.split('.')[0]}.py" in wanted, path
        else:
            assert re.fullmatch(r"medyanpy-[\w.]+\.dist-info", path.parts[0]), path
            assert path.parts[1:] == ("licenses", "LICENSE") or path.name in {
                "METADATA", "RECORD", "WHEEL", "entry_points.txt",
                "INSTALLER", "REQUESTED", "direct_url.json",  # pip's
            }, path  # fmt: skip


def test_headers_for_third_parties_are_installed(installed):
    """An interface file for each kernel that offers something, the marker of types, and headers named by no other."""
    core = ("program", "parallel", "box", "vec3", "neighbors", "philox", "elementary")
    for name in (*(f"core/{name}" for name in core), "forces/radial", "beads/points", "jumps/jump"):
        assert KERNELS / f"{name}.pxd" in installed
    text = {p: where.read_text() for p, where in installed.items() if p.suffix == ".pxd"}
    for path, content in text.items():
        for module in re.findall(r"^from (medyanpy\.[\w.]+) cimport", content, re.MULTILINE):
            assert PurePosixPath(*module.split(".")).with_suffix(".pxd") in installed, f"{path} needs {module}"


def test_the_version_is_that_of_the_distribution(installed):
    text = installed[PurePosixPath("medyanpy/_version.py")].read_text()
    assert mp.__version__ == metadata.version("medyanpy")
    assert f"__version__ = {mp.__version__!r}" in text


def test_it_is_small(installed):
    program = installed[KERNELS / "core" / f"program{EXTENSION_SUFFIXES[0]}"].read_bytes()
    if b".debug_info" in program or b"__asan_init" in program:
        pytest.skip("a debug or sanitizer build is as large as it is")
    size = sum(where.stat().st_size for p, where in installed.items() if p.suffix != ".pyc")
    assert size < LARGEST, f"{size} bytes are installed"
