"""What this installation is and uses."""

import platform
from importlib.metadata import PackageNotFoundError, version

from medyanpy._kernels import selected
from medyanpy._tools.threads import available_threads
from medyanpy._version import __version__

__all__ = ["information"]

# What each optional part serves.
_PARTS = {
    "scipy": "statistics, large meshes",
    "networkx": "mesh preparation",
    "trimesh": "mesh files",
    "h5py": "trajectories",
    "matplotlib": "pictures",
    "tqdm": "progress bars",
    "scikit-image": "meshes and pictures of implicit surfaces",
    "gemmi": "structures of proteins",
    "MDAnalysis": "analysis of trajectories elsewhere",
}


def _instruction_set() -> str:
    """The variant in use, and what else MEDYANPY_ISA could choose."""
    others = [name for name in selected.built if name != selected.isa]
    return selected.isa + (f" (MEDYANPY_ISA chooses; also built: {', '.join(others)})" if others else "")


def information() -> list[tuple[str, str]]:
    """Rows of name and value. Versions are looked up, nothing is imported."""
    rows = [
        ("medyanpy", __version__),
        ("Python", platform.python_version()),
        ("NumPy", version("numpy")),
        ("machine", f"{platform.machine()}, {platform.system()}"),
        ("instruction set", _instruction_set()),
        ("threads", str(available_threads())),
    ]
    for name, use in _PARTS.items():
        try:
            found = version(name)
        except PackageNotFoundError:
            found = "not installed"
        rows.append((name, f"{found} ({use})"))
    return rows
