"""What this installation is and uses."""

import platform
from importlib.metadata import PackageNotFoundError, version

from medyanpy._version import __version__
from medyanpy.threads import available_threads

__all__ = ["information"]

# What each optional part serves.
_PARTS = {
    "scipy": "statistics, large meshes",
    "networkx": "mesh preparation",
    "trimesh": "mesh files",
    "h5py": "trajectories",
    "matplotlib": "pictures",
    "tqdm": "progress bars",
    "MDAnalysis": "analysis of trajectories elsewhere",
}


def information() -> list[tuple[str, str]]:
    """Rows of name and value. Versions are looked up, nothing is imported."""
    rows = [
        ("medyanpy", __version__),
        ("Python", platform.python_version()),
        ("NumPy", version("numpy")),
        ("machine", f"{platform.machine()}, {platform.system()}"),
        ("instruction set", "baseline"),
        ("threads", str(available_threads())),
    ]
    for name, use in _PARTS.items():
        try:
            found = version(name)
        except PackageNotFoundError:
            found = "not installed"
        rows.append((name, f"{found} ({use})"))
    return rows
