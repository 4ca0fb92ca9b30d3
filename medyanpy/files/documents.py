"""Documents: topologies, systems, forces, integrators and meshes as text that people can read and nothing can execute.

An object becomes a tree of dicts, lists, numbers, strings and NumPy arrays (`describe`), and a tree becomes an
object (`rebuild`). Documents write the tree as JSON (`text_of`, `tree_of`); checkpoints (`medyanpy.files.checkpoint`)
keep its large arrays beside the JSON. Pickles and copies are made of the same arguments, without the detour by a tree.

In a tree, an object with arguments is ``{"type": ..., "arguments": {...}}``, a handle ``{"handle": name}``, a force of
the system that jumps act on ``{"force": name}``. An array is ``{"dtype": ..., "shape": ..., "values": ...}``, a Python
function ``{"function": "module:name"}``, and sites that are the very ones of an argument before ``{"same_as":
argument}``.
"""

import inspect
import json
import math
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from medyanpy._tools.described import Described, Recorded, made_anew
from medyanpy._tools.names import did_you_mean, plainly_called
from medyanpy._tools.outputs import write_atomically
from medyanpy._tools.types import PathLike
from medyanpy._tools.validation import file_path
from medyanpy._version import __version__
from medyanpy.errors import MedyanError, MeshError, ParameterError, TopologyError, foreign_errors, shortened, shown
from medyanpy.forces import Force
from medyanpy.handles import Handle
from medyanpy.hydrodynamics import RotnePrager
from medyanpy.integrators import SplittingIntegrator
from medyanpy.jumps import Jump
from medyanpy.mesh import TriangleMesh
from medyanpy.sites import Sites
from medyanpy.system import System
from medyanpy.topology import Topology

__all__ = ["deserialize", "serialize"]

FORMAT = "medyanpy document"
VERSION = 2
# Most items that take no room in a file, but memory and time of its reader: rows of an array without numbers, and
# points of which only the number is given.
_MOST = 2**20
# Bytes that the tree of any text may take, and not only of one that is long itself.
_ROOM = 4_000_000
# Texts up to this length stay on one line.
_LINE = 110
#: Types of the arrays in files.
DTYPES = ("float64", "float32", "int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8", "bool")

Functions = Mapping[str, Callable[..., Any]]


@plainly_called
def serialize(what: Any, path: PathLike | None = None) -> str:
    """Write a topology, system, force, integrator or mesh as a document.

    Parameters
    ----------
    what : Topology, System, Force, SplittingIntegrator, TriangleMesh, Simulation or Context
        A System holds its topology; a force that was given handles holds theirs. Of a Simulation or Context, or a
        pair (system, integrator), both are written, but not the state: that is what checkpoints are for. Numbers of
        forces are written as they are now.
    path : path, optional
        A file to write to as well; written beside its name and then renamed, so that a file which is there already
        is replaced in one move.

    Returns
    -------
    str
        JSON. Numbers keep every bit.

    Raises
    ------
    ParameterError
        Something that documents cannot hold: an argument that is neither number, string, array, handle nor
        function, or a number that is not finite.
    TopologyError
        Handles of several topologies in one force.
    OutputError
        The file cannot be written; what was there before is as it was.

    Notes
    -----
    The format is described in the documentation, "Documents and checkpoints". The code of a `PythonForce` is not
    in the document; its name is.

    Examples
    --------
    >>> import medyanpy as mp
    >>> print(mp.serialize(mp.VerletIntegrator(0.01)).replace(mp.__version__, "..."))
    {
      "format": "medyanpy document",
      "version": 2,
      "medyanpy": "...",
      "content": {"type": "VerletIntegrator", "arguments": {"timestep": 0.01, "kick": null, "order": 2}}
    }
    """
    place = None if path is None else file_path("serialize: path", path)
    text = text_of(document(what)) + "\n"
    if place is not None:
        write_atomically("document", place, lambda file: file.write(text.encode()))
    return text[:-1]


def deserialize(text_or_path: PathLike, *, functions: Functions | None = None) -> Any:
    """Make what a document describes.

    Parameters
    ----------
    text_or_path : str or path
        A document (a str that begins with a brace), or a file that holds one.
    functions : dict of str to callable, optional
        The Python functions of forces that call one, by the name of the force; those of a surface by the name of
        the beads on it and its argument, such as ``"walkers.gradient"``.

    Returns
    -------
    Topology, System, Force, SplittingIntegrator, TriangleMesh, or (System, SplittingIntegrator)
        The last of the document of a Simulation or Context. All new, and in use by no Context.

    Raises
    ------
    ParameterError
        A file that does not exist or holds no document, one of another version, a type that is not there, or a
        function that is missing. Names the place in the document.
    ParameterError, TopologyError, MeshError
        What the document describes cannot be made, as from the constructor, with the place in front.

    Notes
    -----
    Nothing in a document is executed, and no module is imported that it names: forces of other packages must have
    been imported by the caller.

    Examples
    --------
    >>> import medyanpy as mp
    >>> mp.deserialize(mp.serialize(mp.VerletIntegrator(0.01)))
    VerletIntegrator('B A G A B', timestep=0.01)
    """
    if not isinstance(text_or_path, str | os.PathLike):
        raise ParameterError(f"deserialize: give a document or a path, not {type(text_or_path).__name__}")
    if isinstance(text_or_path, str) and (text_or_path.lstrip()[:1] == "{" or "\n" in text_or_path):
        source, text = "the document", text_or_path
    else:
        place = file_path("deserialize: text_or_path", text_or_path)
        source = str(place)
        try:
            text = place.read_text(encoding="utf-8")
        except FileNotFoundError:
            raise ParameterError(f"deserialize: the file {source} does not exist") from None
        except (OSError, ValueError) as cause:
            raise ParameterError(f"{source} is not a document: {cause}") from cause
    return rebuild(content_of(tree_of(text, source), source), functions=functions, where=f"{source}: content")


def document(what: Any) -> dict[str, Any]:
    """Return the whole tree of a document."""
    return {"format": FORMAT, "version": VERSION, "medyanpy": __version__, "content": describe(what)}


def content_of(tree: Any, source: str) -> Any:
    """Return the content of a document's tree, after a check of format and version."""
    check_format(tree, source, FORMAT, VERSION)
    return _members(tree, source, ("format", "version", "content"), optional=("medyanpy",))["content"]


def check_format(tree: Any, source: str, form: str, version: int) -> None:
    """Refuse other formats and other versions."""
    if not isinstance(tree, dict) or tree.get("format") != form:
        found = repr(tree["format"]) if isinstance(tree, dict) and "format" in tree else "none"
        raise ParameterError(f"{source} is not a {form}: its format must be {form!r}, not {found}")
    theirs = tree.get("version")
    if isinstance(theirs, bool) or not isinstance(theirs, int) or theirs < 1:
        raise ParameterError(f"{source}: version must be a whole number from 1 to {version}, not {theirs!r}")
    if theirs != version:
        raise ParameterError(
            f"{source} has version {theirs} of the format, written by medyanpy {tree.get('medyanpy', 'of later')}; "
            f"medyanpy {__version__} reads version {version} alone: "
            f"{'install a newer one' if theirs > version else 'write the file again'}"
        )


# Objects to trees --------------------------------------------------------------------------------------------------


def describe(what: Any) -> dict[str, Any]:
    """Return the tree of an object."""
    if isinstance(what, tuple) and len(what) == 2:
        system, integrator = what
    else:
        system, integrator = getattr(what, "system", None), getattr(what, "integrator", None)
    if isinstance(system, System) and isinstance(integrator, SplittingIntegrator):
        return {"type": "Simulation", "system": describe(system), "integrator": describe(integrator)}
    writer = _Describer()
    if isinstance(what, Topology):
        return writer.topology_tree(what, "Topology")
    if isinstance(what, System):
        return writer.system_tree(what)
    if isinstance(what, Handle):
        raise ParameterError(f"serialize: {what!r} is part of a topology: serialize that")
    if isinstance(what, Described):
        tree = writer.described(what, getattr(what, "name", type(what).__name__))
        if writer.topology is None:
            return tree
        return {"type": tree["type"], "topology": writer.topology_tree(writer.topology, "Topology"), **tree}
    if isinstance(what, TriangleMesh):
        mesh: dict[str, Any] = writer.value(what, "TriangleMesh")
        return mesh
    raise ParameterError(
        f"serialize: a document holds a Topology, System, Force, integrator, TriangleMesh or Simulation, "
        f"not {type(what).__name__}"
    )


def describe_call(cls: type[Recorded], arguments: Mapping[str, Any], topology: Topology) -> dict[str, Any]:
    """Return the tree of a call of a constructor, with handles of this topology."""
    return {"type": type_name(cls), "arguments": _Describer(topology)._arguments(arguments, cls.__name__)}


class _Describer:
    """Makes trees. `topology` is that of the handles met so far."""

    def __init__(self, topology: Topology | None = None) -> None:
        self.topology = topology
        self.forces: dict[int, str] = {}

    def topology_tree(self, topology: Topology, where: str) -> dict[str, Any]:
        names = [handle.name for handle in topology.handles]
        for name in names:
            if names.count(name) > 1:
                raise TopologyError(f"{where}: two objects have the name {name!r}")
        self.topology = topology
        objects = [
            {"type": type_name(type(handle)), "arguments": self._arguments(handle._arguments_now(), repr(handle.name))}
            for handle in topology.handles
            if handle.moves_with is handle
        ]
        # Rows and ids, where an edit has made them others than their numbers.
        numbering = topology.numbering()
        return {"type": "Topology", "objects": objects} | (
            {} if numbering is None else {"numbering": self._numbering(numbering)}
        )

    @staticmethod
    def _numbering(numbering: dict[str, Any]) -> dict[str, Any]:
        """Return the numbering without arrays, which would be taken for arguments."""
        lists = {
            name: {key: rows.tolist() for key, rows in own.items()} for name, own in numbering["handles"].items()
        }
        return {**numbering, "handles": lists}

    def system_tree(self, system: System) -> dict[str, Any]:
        topology = self.topology_tree(system.topology, "System")
        forces = [
            {"name": name, **self.described(force, name)}
            for name, force in zip(system.force_names, system.forces, strict=True)
        ]
        self.forces = dict(zip(map(id, system.forces), system.force_names, strict=True))
        jumps = [
            {"name": name, **self.described(jump, name)}
            for name, jump in zip(system.jump_names, system.jumps, strict=True)
        ]
        tree: dict[str, Any] = {"type": "System", "topology": topology, "forces": forces}
        tree |= {"jumps": jumps} if jumps else {}
        if system.box is not None:
            tree["box"] = list(system.box)
        fluid = system.hydrodynamics
        return tree | ({} if fluid is None else {"hydrodynamics": self.described(fluid, type(fluid).__name__)})

    def described(self, what: Described, name: str) -> dict[str, Any]:
        tree = {"type": type_name(type(what)), "arguments": self._arguments(what._arguments_now(), name)}
        rest = what._rest_now()
        if rest:
            tree["numbers"] = self._arguments(rest, name)
        return tree

    def _arguments(self, arguments: Mapping[str, Any], where: str) -> dict[str, Any]:
        out: dict[str, Any] = {}
        sites: dict[int, str] = {}
        for name, value in arguments.items():
            # Whether both groups of a force are the same sites, or equal ones, makes a difference.
            first = sites.setdefault(id(value), name) if isinstance(value, Sites) else name
            out[name] = self.value(value, f"{where}: {name}") if first == name else {"same_as": first}
        return out

    def value(self, value: Any, where: str) -> Any:
        """Return the tree of an argument."""
        if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0):
            value = value.item()
        if value is None or isinstance(value, bool | int | str):
            return value
        if isinstance(value, float):
            if not math.isfinite(value):
                raise ParameterError(f"{where} = {value}: a document holds finite numbers only")
            return value
        if isinstance(value, np.ndarray):
            if value.dtype.name not in DTYPES:
                raise ParameterError(f"{where} is an array of {value.dtype}, which a document cannot hold")
            if value.dtype.kind == "f" and not np.isfinite(value).all():
                index = tuple(np.argwhere(~np.isfinite(value))[0].tolist())
                raise ParameterError(f"{where}{list(index)} = {value[index]}: a document holds finite numbers only")
            return value
        if isinstance(value, Handle):
            if self.topology is None:
                self.topology = value.topology
            if value.topology is not self.topology:
                raise TopologyError(f"{where}: {value!r} belongs to another topology")
            return {"handle": value.name}
        if isinstance(value, TriangleMesh):
            box = {} if value.box is None else {"box": list(value.box)}
            return {"type": "TriangleMesh", "arguments": {"vertices": value.vertices, "faces": value.faces, **box}}
        if isinstance(value, Sites):
            parts = {name: getattr(value, name) for name in _SITES}
            return {"type": "Sites", "arguments": self._arguments(parts, where)}
        if id(value) in self.forces:
            return {"force": self.forces[id(value)]}
        if isinstance(value, Described):
            return self.described(value, where)
        if isinstance(value, list | tuple):
            return [self.value(v, f"{where}[{i}]") for i, v in enumerate(value)]
        if isinstance(value, dict) and all(isinstance(name, str) for name in value):
            return {"dict": self._arguments(value, where)}
        if callable(value):
            named = value if hasattr(value, "__qualname__") else type(value)
            return {"function": f"{named.__module__}:{named.__qualname__}"}
        raise ParameterError(f"{where} is a {type(value).__qualname__}, which a document cannot hold")


# Trees to objects --------------------------------------------------------------------------------------------------


def rebuild(tree: Any, *, functions: Functions | None = None, where: str = "content") -> Any:
    """Make the object of a tree: `where` is its place, for messages."""
    reader = _Rebuilder(functions)
    with foreign_errors(where):
        out = reader.anything(tree, where)
    reader.check_all_used(where)
    return out


def call_anew(tree: Any, base: type[Recorded], topology: Topology, where: str) -> Any:
    """Call the constructor that a tree of `describe_call` describes, of a class derived from `base`."""
    reader = _Rebuilder()
    reader.topology = topology
    return reader.described(tree, where, base)


class _Rebuilder:
    """Makes objects of trees. `topology` is where handles are looked for."""

    def __init__(self, functions: Functions | None = None) -> None:
        self.functions = {} if functions is None else functions
        if not isinstance(self.functions, Mapping) or not all(map(callable, self.functions.values())):
            raise ParameterError("functions must be a dict of callables by the names of forces and beads")
        self.topology: Topology | None = None
        self.made: System | None = None
        self._called: set[str] = set()

    def check_all_used(self, where: str) -> None:
        for name in self.functions:
            if name not in self._called:
                known = ", ".join(map(repr, sorted(self._called))) or "none"
                raise ParameterError(f"{where}: functions names {name!r}; those that call a function: {known}")

    def anything(self, tree: Any, where: str) -> Any:
        kind = _members(tree, where, ("type",), more=True)["type"]
        if kind == "Simulation":
            parts = _members(tree, where, ("type", "system", "integrator"))
            return self.system(parts["system"], f"{where}.system"), self.described(
                parts["integrator"], f"{where}.integrator", SplittingIntegrator
            )
        if kind == "System":
            return self.system(tree, where)
        if kind == "Topology":
            return self.topology_of(tree, where)
        if kind == "TriangleMesh":
            return self.value(tree, where, "")
        tree = dict(tree)
        if "topology" in tree:
            self.topology_of(tree.pop("topology"), f"{where}.topology")
        return self.described(tree, where, Described)

    def topology_of(self, tree: Any, where: str) -> Topology:
        parts = _members(tree, where, ("type", "objects"), optional=("numbering",))
        _expect(parts["type"] == "Topology", f"{where}.type", 'must be "Topology"', parts["type"])
        _expect(isinstance(parts["objects"], list), f"{where}.objects", "must be a list", parts["objects"])
        self.topology = topology = Topology()
        for i, item in enumerate(parts["objects"]):
            here = f"{where}.objects[{i}]"
            thing = _members(item, here, ("type", "arguments"))
            kind = find_type(thing["type"], Handle, f"{here}.type")
            given = thing["arguments"]
            name = given.get("name") if isinstance(given, dict) else None
            arguments = self._arguments(given, f"{here}.arguments", name if isinstance(name, str) else "")
            add = kind.adder(topology)
            _check_plain(inspect.signature(add), arguments, f"{here}.arguments")
            few = type(arguments.get("n")) is not int or arguments["n"] <= _MOST
            bound = f"must be <= {_MOST}: more points are given by triangles and barycentric"
            _expect(few, f"{here}.arguments.n", bound, arguments.get("n"))
            with _errors_at(here):
                add(**arguments)
        if "numbering" in parts:
            here = f"{where}.numbering"
            numbering = _members(parts["numbering"], here, ("n_beads", "next_id", "handles"))
            rows_of = numbering["handles"]
            _expect(isinstance(rows_of, dict), f"{here}.handles", "must be an object", rows_of)
            own = {
                name: _members(rows, f"{here}.handles.{name}", ("beads", "ids", "asleep"))
                for name, rows in rows_of.items()
            }
            with _errors_at(here):
                topology.number({**numbering, "handles": own})
        return topology

    def system(self, tree: Any, where: str) -> System:
        parts = _members(tree, where, ("type", "topology", "forces"), optional=("jumps", "hydrodynamics", "box"))
        _expect(parts["type"] == "System", f"{where}.type", 'must be "System"', parts["type"])
        topology = self.topology_of(parts["topology"], f"{where}.topology")
        with _errors_at(where):
            self.made = system = System(topology, parts.get("box"))
        for key, base, add in (("forces", Force, system._add), ("jumps", Jump, system._add_jump)):
            given = parts.get(key, [])
            _expect(isinstance(given, list), f"{where}.{key}", "must be a list", given)
            for i, item in enumerate(given):
                here = f"{where}.{key}[{i}]"
                item = dict(_members(item, here, ("type",), more=True))
                name = item.pop("name", None)
                _expect(name is None or isinstance(name, str), f"{here}.name", "must be a string", name)
                made = self.described(item, here, base, name)
                with _errors_at(here):
                    add(made, name)
        if "hydrodynamics" in parts:
            here = f"{where}.hydrodynamics"
            made = self.described(parts["hydrodynamics"], here, RotnePrager)
            with _errors_at(here):
                system.add_hydrodynamics(made)
        return system

    def described(self, tree: Any, where: str, base: type, name: str | None = None) -> Any:
        parts = _members(tree, where, ("type", "arguments"), optional=("numbers",))
        cls = find_type(parts["type"], base, f"{where}.type")
        given = parts["arguments"]
        if name is None and isinstance(given, dict) and isinstance(given.get("name"), str):
            name = given["name"]
        name = cls.__name__ if name is None else name
        arguments = self._arguments(given, f"{where}.arguments", name)
        _check_plain(cls.__signature__, arguments, f"{where}.arguments")
        rest = self._arguments(parts.get("numbers", {}), f"{where}.numbers", name)
        with _errors_at(where):
            return made_anew(cls, arguments, rest)

    def _arguments(self, tree: Any, where: str, name: str) -> dict[str, Any]:
        _expect(isinstance(tree, dict), where, "must be an object (names and values)", tree)
        out: dict[str, Any] = {}
        for key, value in tree.items():
            if isinstance(value, dict) and "same_as" in value:
                first = _members(value, f"{where}.{key}", ("same_as",))["same_as"]
                known = isinstance(first, str) and first in out
                _expect(known, f"{where}.{key}.same_as", "must be the name of an argument before it", first)
                out[key] = out[first]
            else:
                out[key] = self.value(value, f"{where}.{key}", name)
        return out

    def value(self, tree: Any, where: str, name: str) -> Any:
        """Return an argument of the force or object `name`."""
        if isinstance(tree, list):
            return [self.value(v, f"{where}[{i}]", name) for i, v in enumerate(tree)]
        if not isinstance(tree, dict):
            return tree
        if "values" in tree:
            return array_of(tree, where)
        if "handle" in tree:
            return self._handle(_members(tree, where, ("handle",))["handle"], f"{where}.handle")
        if "force" in tree:
            return self._force(_members(tree, where, ("force",))["force"], f"{where}.force")
        if "function" in tree:
            return self._function(_members(tree, where, ("function",))["function"], where, name)
        if "dict" in tree:
            return self._arguments(_members(tree, where, ("dict",))["dict"], f"{where}.dict", name)
        if "type" in tree:
            if tree["type"] not in ("TriangleMesh", "Sites"):
                return self.described(tree, where, Described, name or None)
            given = _members(tree, where, ("type", "arguments"))["arguments"]
            of_mesh = tree["type"] == "TriangleMesh"
            wanted = ("vertices", "faces") if of_mesh else _SITES
            _members(given, f"{where}.arguments", wanted, optional=("box",) if of_mesh else ())
            parts = self._arguments(given, f"{where}.arguments", name)
            with _errors_at(where):
                return TriangleMesh(**parts) if of_mesh else Sites.from_arrays(**parts)
        known = "values, handle, force, function, dict, type"
        raise ParameterError(f"{where} is an object without any of the keys {known}: what it means is not known")

    def _handle(self, name: Any, where: str) -> Handle:
        _expect(isinstance(name, str), where, "must be a string", name)
        handles = () if self.topology is None else self.topology.handles
        for handle in handles:
            if handle.name == name:
                return handle
        known = ", ".join(repr(h.name) for h in handles) or "none"
        raise ParameterError(f"{where} = {name!r}, but no object before it in the topology has this name: {known}")

    def _force(self, name: Any, where: str) -> Force:
        _expect(isinstance(name, str), where, "must be a string", name)
        names = () if self.made is None else self.made.force_names
        if self.made is None or name not in names:
            known = ", ".join(map(repr, names)) or "none"
            raise ParameterError(f"{where} = {shown(name)}, but no force of the system has this name: {known}")
        return self.made.forces[names.index(name)]

    def _function(self, function: Any, where: str, name: str) -> Callable[..., Any]:
        _expect(isinstance(function, str), f"{where}.function", "must be a string", function)
        for key in (f"{name}.{where.rpartition('.')[2]}", name):
            if key in self.functions:
                self._called.add(key)
                return self.functions[key]
        raise ParameterError(
            f"{where}: {name!r} calls a Python function ({function}), which no document holds: "
            f"give it with functions={{{name!r}: ...}}"
        )


def type_name(cls: type) -> str:
    """Return the name of a class in documents: those of this package by their bare names, or what tells two of them
    apart."""
    return getattr(cls, "_qualifier", "") + cls.__name__ if _is_ours(cls) else f"{cls.__module__}:{cls.__qualname__}"


def find_type(name: Any, base: type, where: str) -> Any:
    """Return the class that a document names, among those that exist: nothing is imported."""
    _expect(isinstance(name, str), where, "must be a string", name)
    candidates = [
        c
        for c in _descendants(base)
        if c is not Described and not inspect.isabstract(c) and not c.__name__.startswith("_")
    ]
    # Where a class was defined twice, as by a cell of a notebook run again, the last is the one meant.
    for cls in reversed(candidates):
        if type_name(cls) == name:
            return cls
    kind = _KIND.get(base, "type")
    a_kind = f"an {kind}" if kind[0] in "aeiou" else f"a {kind}"
    if ":" in name:
        raise ParameterError(
            f"{where} = {shown(name)} is not {a_kind} that this process knows: documents import nothing, so import "
            f"{shortened(name.partition(':')[0])}, which defines it, before reading this one"
        )
    known = sorted(type_name(c) for c in candidates if _is_ours(c))
    # A list of a hundred names does not help.
    has = f": it has {', '.join(known)}" if len(known) <= _MANY else did_you_mean(name, known)
    raise ParameterError(f"{where} = {shown(name)} is not {a_kind} of medyanpy {__version__}{has}")


_MANY = 70
_SITES = ("start", "bead_numbers", "weights", "anchor_positions", "arms", "handles")
_KIND: dict[type[Any], str] = {
    Force: "force",
    Jump: "jump",
    RotnePrager: "kind of hydrodynamic interactions",
    Handle: "kind of bead",
    SplittingIntegrator: "integrator",
}


def _is_ours(cls: type) -> bool:
    return cls.__module__.partition(".")[0] == "medyanpy"


def _descendants(cls: type[Any]) -> list[type[Any]]:
    """Return the class and everything derived from it, each once, in the order of definition within one base."""
    out = [cls]
    for child in cls.__subclasses__():
        out += [c for c in _descendants(child) if c not in out]
    return out


def _expect(ok: bool, where: str, bound: str, value: Any) -> None:
    if not ok:
        text = repr(value)
        raise ParameterError(f"{where} {bound}, not {text if len(text) <= 60 else text[:57] + '...'}")


def _check_plain(signature: inspect.Signature, arguments: Mapping[str, Any], where: str) -> None:
    """Refuse what constructors would take without a word: "no" for a switch, a list for a name."""
    for key, value in arguments.items():
        if key in signature.parameters and isinstance(signature.parameters[key].default, bool):
            # Where the type is not bool alone, one for each of many may be given.
            each = signature.parameters[key].annotation is not bool and isinstance(value, np.ndarray)
            _expect(each or isinstance(value, bool), f"{where}.{key}", "must be true or false", value)
        elif key == "name":
            _expect(value is None or isinstance(value, str), f"{where}.{key}", "must be a string", value)


def _members(
    tree: Any, where: str, required: tuple[str, ...], *, optional: tuple[str, ...] = (), more: bool = False
) -> dict[str, Any]:
    """Return a dict with the keys required and, unless `more` is allowed, no others than the optional ones."""
    _expect(isinstance(tree, dict), where, "must be an object (names and values)", tree)
    for key in required:
        if key not in tree:
            raise ParameterError(f"{where}: the key {key!r} is missing")
    for key in tree:
        if not more and key not in required and key not in optional:
            known = ", ".join(map(repr, required + optional))
            raise ParameterError(f"{where}: the key {key!r} is not known; {known} are")
    members: dict[str, Any] = tree
    return members


@contextmanager
def _errors_at(where: str) -> Iterator[None]:
    """Turn errors inside into errors of the document, at this place."""
    try:
        # Constructors check numbers, but not every type that JSON can hold.
        with foreign_errors("it cannot be made"):
            yield
    except MedyanError as cause:
        # Where a value is wrong as a whole, messages show all of it.
        message = f"{where}: {shortened(str(cause), 1000)}"
        if isinstance(cause, MeshError):
            raise MeshError(message, cause.defects) from cause
        raise (TopologyError if isinstance(cause, TopologyError) else ParameterError)(message) from cause


# Trees and text ----------------------------------------------------------------------------------------------------


def text_of(tree: Any) -> str:
    """Return a tree as JSON: short objects on one line, arrays filled into lines."""
    return _text(tree, 0)


def _text(node: Any, level: int) -> str:
    if isinstance(node, np.ndarray):
        head = f'{{"dtype": "{node.dtype.name}", "shape": {list(node.shape)}, "values": '
        return head + _filled(node, level) + "}"
    if isinstance(node, dict):
        items = [f"{json.dumps(k, ensure_ascii=False)}: {_text(v, level + 1)}" for k, v in node.items()]
        opening, closing = "{", "}"
    elif isinstance(node, list):
        items = [_text(v, level + 1) for v in node]
        opening, closing = "[", "]"
    else:
        return json.dumps(node, ensure_ascii=False, allow_nan=False)
    if sum(map(len, items)) + 2 * len(items) + 2 * level <= _LINE and not any("\n" in item for item in items):
        return opening + ", ".join(items) + closing
    space = "\n" + "  " * (level + 1)
    return opening + space + ("," + space).join(items) + "\n" + "  " * level + closing


def _filled(array: np.ndarray, level: int) -> str:
    """Return nested lists as text, as many rows to a line as fit."""
    whole = json.dumps(array.tolist(), allow_nan=False)
    if len(whole) + 2 * level <= _LINE or array.size == 0:
        return whole
    if array.ndim == 1:
        rows = whole[1:-1].split(", ")
    elif array.ndim == 2:
        rows = [f"[{row}]" for row in whole[2:-2].split("], [")]
    else:
        rows = [json.dumps(row) for row in array.tolist()]
    lines: list[str] = []
    line: list[str] = []
    room = 0
    for row in rows:
        if room < len(row) + 2 and line:
            lines.append(", ".join(line))
            line = []
        if not line:
            room = _LINE - 2 * (level + 1)
        line.append(row)
        room -= len(row) + 2
    lines.append(", ".join(line))
    space = "\n" + "  " * (level + 1)
    return "[" + space + ("," + space).join(lines) + "\n" + "  " * level + "]"


def tree_of(text: str, source: str) -> Any:
    """Return the tree of a text, arrays still as lists."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        out = dict(pairs)
        if len(out) < len(pairs):
            seen: set[str] = set()
            for key, _ in pairs:
                if key in seen:
                    raise ParameterError(f"{source}: the key {key!r} occurs twice in one object")
                seen.add(key)
        return out

    def finite(digits: str) -> float:
        out = float(digits)
        if not math.isfinite(out):
            raise ParameterError(f"{source}: {digits} is not a finite number")
        return out

    # Counted before they are made: a list without entries takes thirty times its two characters.
    takes = 72 * text.count("[") + 200 * text.count("{") + 30 * text.count('"')
    if takes > max(10 * len(text), _ROOM):
        raise ParameterError(f"{source} is not a document: lists, objects and strings of next to nothing")
    try:
        return json.loads(text, object_pairs_hook=once, parse_float=finite, parse_constant=finite)
    except ParameterError:
        raise
    except RecursionError:
        raise ParameterError(f"{source} is not a document: it is nested too deeply") from None
    except ValueError as cause:
        raise ParameterError(f"{source} is not a document: it is not JSON: {cause}") from cause


def array_of(tree: dict[str, Any], where: str) -> np.ndarray:
    """Return the array of ``{"dtype": ..., "shape": ..., "values": ...}``, where the shape may be left out."""
    parts = _members(tree, where, ("dtype", "values"), optional=("shape",))
    name, shape = parts["dtype"], parts.get("shape")
    _expect(name in DTYPES, f"{where}.dtype", f"must be one of {', '.join(DTYPES)}", name)
    _expect(isinstance(parts["values"], list), f"{where}.values", "must be a list", parts["values"])
    dtype = np.dtype(name)
    with _errors_at(f"{where}.values"):
        raw = np.array(parts["values"])
        if name == "uint64" and raw.dtype.kind == "f":
            # NumPy makes doubles of whole numbers on both sides of 2^63.
            raw = np.array(parts["values"], dtype=object)
            raw = raw.astype(dtype) if all(type(v) is int for v in raw.flat) else raw
        if raw.size == 0:
            raw = raw.astype(dtype)
        if raw.dtype.kind not in {"f": "iuf", "i": "iu", "u": "iu", "b": "b"}[dtype.kind]:
            raise ParameterError(f"they are not {name} numbers")
        with np.errstate(over="ignore"):
            out = raw.astype(dtype)
        if not (out == raw).all():
            raise ParameterError(f"they are not {name} numbers, or out of range")
    if shape is not None and list(out.shape) != shape:
        # Nested lists do not tell how wide an array without rows is.
        empty = out.size == 0 and isinstance(shape, list) and 0 in shape
        _expect(empty, f"{where}.shape", f"must be {list(out.shape)}, the shape of the values", shape)
        check_shape(f"{where}.shape", shape)
        out = np.zeros(shape, dtype)
    return out


def check_shape(what: str, shape: list[Any]) -> None:
    """Refuse shapes that no array of a file has: too many dimensions, or an empty array that is long all the same."""
    if (
        len(shape) > 8
        or not all(type(n) is int and 0 <= n < 2**40 for n in shape)
        or (0 in shape and math.prod(n or 1 for n in shape) > _MOST)
    ):
        raise ParameterError(f"{what} = {shortened(str(shape))} is no shape of an array in a file")


# Arrays beside the text --------------------------------------------------------------------------------------------

_ODD = re.compile(r"[^\w.-]+")
# In these keys of an object are names of the user's and values, not what the format means by them.
_NAMES_AND_VALUES = ("arguments", "numbers", "dict")


def arrays_apart(tree: Any, place: str, members: dict[str, np.ndarray], at_least: int = 32) -> Any:
    """Return the tree with its large arrays put into `members`, under names that tell their places, and ``{"member":
    name}`` in their stead."""
    if isinstance(tree, np.ndarray) and tree.size >= at_least:
        name = place
        while name in members:
            name += "_"
        members[name] = tree
        return {"member": name}
    if isinstance(tree, dict):
        return {k: arrays_apart(v, f"{place}/{_ODD.sub('_', k)}", members, at_least) for k, v in tree.items()}
    if isinstance(tree, list):
        return [arrays_apart(v, f"{place}/{i}", members, at_least) for i, v in enumerate(tree)]
    return tree


def arrays_together(tree: Any, members: Mapping[str, np.ndarray], where: str) -> Any:
    """Return the tree with all its arrays as arrays: those in the text, and those in `members`."""
    if isinstance(tree, list):
        return [arrays_together(v, members, f"{where}[{i}]") for i, v in enumerate(tree)]
    if not isinstance(tree, dict):
        return tree
    if "member" in tree:
        name = _members(tree, where, ("member",))["member"]
        known = isinstance(name, str) and name in members
        _expect(known, f"{where}.member", "must be the name of an array in the file", name)
        return members[name]
    if "values" in tree:
        return array_of(tree, where)
    out = {}
    for key, value in tree.items():
        here = f"{where}.{key}"
        if key in _NAMES_AND_VALUES and isinstance(value, dict):
            out[key] = {name: arrays_together(v, members, f"{here}.{name}") for name, v in value.items()}
        else:
            out[key] = arrays_together(value, members, here)
    return out
