"""Description of this installation and of the libraries that it uses."""

import platform
import re
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from medyanpy._kernels import selected
from medyanpy._kernels.core import parallel
from medyanpy._tools.threads import available_threads
from medyanpy._version import __version__

__all__ = ["information", "told"]

# Purposes of the optional parts.
_PARTS = {
    "scipy": "statistics, large meshes",
    "networkx": "mesh preparation",
    "h5py": "trajectories",
    "matplotlib": "pictures",
    "tqdm": "progress bars",
    "scikit-image": "meshes and pictures of implicit surfaces",
    "gemmi": "structures of proteins",
    "MDAnalysis": "viewers: analysis of trajectories elsewhere",
    "gsd": "viewers: export to GSD",
    "ovito": "viewers: reads run.h5",
    "pyvista": "viewers: scenes that turn; ParaView's files",
    "ipywidgets": "notebooks",
    "distributed": "ensembles past one machine, by Dask",
    "argcomplete": "completion of the command line",
}
# Versions of the OpenMP specification, by their dates.
_OPENMP = {201511: "4.5", 201811: "5.0", 202011: "5.1", 202111: "5.2"}
_LIBRARIES = re.compile(r"/(lib(?:gomp|omp|iomp5)[^/\s]*\.(?:so|dylib)[^/\s]*)$", re.MULTILINE)


def _openmp_library() -> str | None:
    """Return the file that is loaded, where the system tells."""
    with suppress(OSError):
        return next(iter(_LIBRARIES.findall(Path("/proc/self/maps").read_text())), None)
    return None


def _version_of(name: str) -> str | None:
    with suppress(PackageNotFoundError):
        return version(name)
    return None


def information() -> dict[str, str | int | list[str] | None]:
    """Return versions, threads and parts, by name, without importing anything; None for what is not known."""
    return {
        "medyanpy": __version__,
        "Python": platform.python_version(),
        "NumPy": version("numpy"),
        "machine": f"{platform.machine()}, {platform.system()}",
        "instruction set": selected.isa,
        "instruction sets built": list(selected.built),
        "OpenMP": _OPENMP.get(parallel.OPENMP_VERSION, str(parallel.OPENMP_VERSION)),
        "OpenMP library": _openmp_library(),
        "threads": available_threads(),
        "folder": str(Path(__file__).resolve().parents[1]),
        **{name: _version_of(name) for name in _PARTS},
    }


def told() -> list[tuple[str, str]]:
    """Return the information as rows for people."""
    found = information()
    others = [name for name in selected.built if name != selected.isa]
    isa = selected.isa + (f" (MEDYANPY_ISA chooses; also built: {', '.join(others)})" if others else "")
    library = found["OpenMP library"]
    said: dict[str, str] = {
        "instruction set": isa,
        "OpenMP": f"on, {found['OpenMP']}" + (f", {library}" if library else ""),
        **{name: f"{found[name] or 'not installed'} ({use})" for name, use in _PARTS.items()},
    }
    kept = [name for name in found if name not in ("instruction sets built", "OpenMP library")]
    return [(name, said.get(name, str(found[name]))) for name in kept]
