"""The document of a simulation inside a trajectory: ``/parameters``, which H5MD 1.1 leaves to programs.

Its text is ``document``, its large arrays are beside it in ``arrays``, compressed, as in checkpoints.
"""

from typing import TYPE_CHECKING, Any

from medyanpy.errors import ParameterError, foreign_errors
from medyanpy.files.documents import content_of, document, rebuild
from medyanpy.files.trees import DTYPES, arrays_apart, arrays_together, text_of, tree_of
from medyanpy.integrators import SplittingIntegrator
from medyanpy.system import System

if TYPE_CHECKING:
    import h5py
    import numpy as np

__all__ = ["read_document", "rebuilt", "write_document"]

_GROUP = "parameters"
# Deflate packs to no less than one in 1032: a larger claimed size is false, and would take memory.
_MOST_PACKED = 1100
#: The attribute that holds the reason why there is no document.
_WHY_NONE = "no_document"


def write_document(file: "h5py.File", simulation: Any) -> None:
    """Write the document of a simulation, or why it cannot be written; the run continues in either case."""
    group = file.create_group(_GROUP)
    members: dict[str, np.ndarray] = {}
    try:
        whole = document(simulation)
        whole["content"] = arrays_apart(whole["content"], "document", members)
        text = text_of(whole)
    except Exception as error:  # Also from objects that users have made.
        group.attrs[_WHY_NONE] = f"{type(error).__name__}: {error}"
        return
    group["document"] = text
    arrays = group.create_group("arrays")
    for k, (name, array) in enumerate(members.items()):
        dataset = arrays.create_dataset(str(k), data=array, compression="gzip", compression_opts=1, shuffle=True)
        dataset.attrs["name"] = name


def read_document(file: "h5py.File", path: Any) -> dict[str, Any]:
    """Return the tree of the document, with its arrays; refuse a file that holds none, or is damaged."""
    if f"{_GROUP}/document" not in file:
        why = file[_GROUP].attrs.get(_WHY_NONE, "it is not there") if _GROUP in file else "it is not there"
        raise ParameterError(f"{path} holds no document of what was simulated: {why}")
    where = f"{path}: document"
    with foreign_errors(f"{where} is damaged"):
        group = file[_GROUP]
        tree = tree_of(group["document"].asstr()[()], where)
        members = {}
        for dataset in group["arrays"].values():
            if dataset.dtype.name not in DTYPES:
                raise ParameterError(f"{where}: {dataset.name} is an array of {dataset.dtype}, which no document holds")
            if dataset.nbytes > _MOST_PACKED * dataset.id.get_storage_size():
                raise ParameterError(f"{where}: {dataset.name} is larger than what the file has of it")
            members[str(dataset.attrs["name"])] = dataset[()]
        content = arrays_together(content_of(tree, where), members, where)
        return {**tree, "content": content}


def rebuilt(tree: dict[str, Any], functions: Any, path: Any) -> tuple[System, SplittingIntegrator]:
    """Make system and integrator of the tree of a document, with the errors of `medyanpy.deserialize`."""
    made = rebuild(tree["content"], functions=functions, where=f"{path}: document")
    if not isinstance(made, tuple):
        raise ParameterError(f"{path}: document is of a {type(made).__name__}, not of a Simulation")
    return made
