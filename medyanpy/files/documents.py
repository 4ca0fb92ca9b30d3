"""Documents: topologies, systems, forces, integrators and meshes as text that people can read and nothing can execute.

An object becomes a tree of dicts, lists, numbers, strings and NumPy arrays (`describe`), and a tree becomes an
object (`rebuild`). Documents write the tree as JSON (`text_of`, `tree_of`); checkpoints (`medyanpy.files.checkpoint`)
keep its large arrays beside the JSON. Pickles and copies are made of the same arguments.

In a tree, an object with arguments is ``{"type": ..., "arguments": {...}}``, a handle ``{"handle": name}``, a force of
the system that jumps act on ``{"force": name}``, a pool of the system ``{"pool": name}``. An array is ``{"dtype": ...,
"shape": ..., "values": ...}``, a Python function ``{"function": "module:name"}``, and sites that are the very ones of
an argument before ``{"same_as": argument}``.
"""

import inspect
import math
import os
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from medyanpy._tools.described import Described, Recorded, made_anew
from medyanpy._tools.names import did_you_mean, look_up, plainly_called
from medyanpy._tools.outputs import write_atomically
from medyanpy._tools.types import PathLike
from medyanpy._tools.validation import file_path
from medyanpy._version import __version__
from medyanpy.beads import Lattice
from medyanpy.core.handles import Handle, adder_of
from medyanpy.core.sites import Sites
from medyanpy.core.species import OfSpecies
from medyanpy.errors import ParameterError, TopologyError, foreign_errors, shortened, shown
from medyanpy.files.trees import DTYPES, MOST, array_of, check_format, errors_at, expect, members_of, text_of, tree_of
from medyanpy.forces import Force
from medyanpy.hydrodynamics import RotnePrager
from medyanpy.integrators import SplittingIntegrator
from medyanpy.jumps import Jump
from medyanpy.mesh import TriangleMesh
from medyanpy.pools import MoleculePool, Species
from medyanpy.system import System
from medyanpy.topology import Topology

__all__ = ["deserialize", "serialize"]

FORMAT = "medyanpy document"
VERSION = 2

Functions = Mapping[str, Callable[..., Any]]


@plainly_called
def serialize(what: Any, path: PathLike | None = None) -> str:
    """Write a topology, system, force, integrator or mesh as a document.

    Parameters
    ----------
    what : Topology, System, Force, SplittingIntegrator, TriangleMesh, Simulation or Context
        A System holds its topology; a force that was given handles holds theirs. Of a Simulation or Context, or a
        pair (system, integrator), both are written, but not the state. Numbers of forces are written as they are now.
    path : path, optional
        A file to write to as well; one which is there already is replaced in one move.

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
    :doc:`/documents` describes the format. The code of a `PythonForce` is not in the document; its name is.

    Examples
    --------
    >>> import medyanpy as mp
    >>> print(mp.serialize(mp.VerletIntegrator(0.01)).replace(mp.__version__, "..."))
    {
      "format": "medyanpy document",
      "version": 2,
      "medyanpy": "...",
      "content": {
        "type": "VerletIntegrator",
        "arguments": {"timestep": 0.01, "kick": null, "order": 2, "parts": null, "steps": null, "rotation": "split"}
      }
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
    ParameterError, TopologyError, MeshError
        A file that does not exist or holds no document, another version, a type or function that is missing; or what
        the constructor raises. The message names the place in the document.

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
    return members_of(tree, source, ("format", "version", "content"), optional=("medyanpy",))["content"]


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
        self.pools: dict[int, str] = {}

    def topology_tree(self, topology: Topology, where: str) -> dict[str, Any]:
        names = [handle.name for handle in topology.handles]
        for name in names:
            if names.count(name) > 1:
                raise TopologyError(f"{where}: two objects have the name {name!r}")
        self.topology = topology
        objects = [
            {"type": type_name(type(handle)), "arguments": self._arguments(handle._arguments_now(), repr(handle.name))}
            for handle in topology.handles
            if handle.kind.moves_with is handle
        ]
        tree: dict[str, Any] = {"type": "Topology", "objects": objects}
        # Rows and ids, where an edit has made them others than their numbers; without arrays, as those are arguments.
        if (numbering := topology.numbering()) is not None:
            rows = {name: {k: a.tolist() for k, a in own.items()} for name, own in numbering["handles"].items()}
            tree["numbering"] = {**numbering, "handles": rows}
        return tree

    def system_tree(self, system: System) -> dict[str, Any]:
        topology = self.topology_tree(system.topology, "System")

        def named(names: Any, things: Any) -> list[dict[str, Any]]:
            return [{"name": name, **self.described(one, name)} for name, one in zip(names, things, strict=True)]

        pools = named(system.pools, system.pools.values())
        self.pools = {id(pool): name for name, pool in system.pools.items()}
        forces = named(system.force_names, system.forces)
        self.forces = dict(zip(map(id, system.forces), system.force_names, strict=True))
        jumps = named(system.jump_names, system.jumps)
        tree: dict[str, Any] = {"type": "System", "topology": topology, "forces": forces}
        tree |= {"jumps": jumps} if jumps else {}
        tree |= {"pools": pools} if pools else {}
        if system.box is not None:
            tree["box"] = list(system.box)
        if (fluid := system.hydrodynamics) is not None:
            tree["hydrodynamics"] = self.described(fluid, type(fluid).__name__)
        return tree

    def described(self, what: Described, name: str) -> dict[str, Any]:
        tree = {"type": type_name(type(what)), "arguments": self._arguments(what._arguments_now(), name)}
        if rest := what._rest_now():
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
        if isinstance(value, OfSpecies):
            return {**self.value(value.handle, where), "of": value.name}
        if isinstance(value, TriangleMesh):
            box = {} if value.box is None else {"box": list(value.box)}
            return {"type": "TriangleMesh", "arguments": {"vertices": value.vertices, "faces": value.faces, **box}}
        if isinstance(value, Sites):
            kind = type(value).__name__
            parts = {name: getattr(value, name) for name in _SITES[kind]}
            return {"type": kind, "arguments": self._arguments(parts, where)}
        if id(value) in self.forces:
            return {"force": self.forces[id(value)]}
        if id(value) in self.pools:
            return {"pool": self.pools[id(value)]}
        if isinstance(value, Species):
            return {"species": value.name, "of": self.value(value.pool, where)}
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
        kind = members_of(tree, where, ("type",), more=True)["type"]
        if kind == "Simulation":
            parts = members_of(tree, where, ("type", "system", "integrator"))
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
        parts = members_of(tree, where, ("type", "objects"), optional=("numbering",))
        expect(parts["type"] == "Topology", f"{where}.type", 'must be "Topology"', parts["type"])
        expect(isinstance(parts["objects"], list), f"{where}.objects", "must be a list", parts["objects"])
        self.topology = topology = Topology()
        for i, item in enumerate(parts["objects"]):
            here = f"{where}.objects[{i}]"
            thing = members_of(item, here, ("type", "arguments"))
            kind = find_type(thing["type"], Handle, f"{here}.type")
            given = thing["arguments"]
            name = given.get("name") if isinstance(given, dict) else None
            arguments = self._arguments(given, f"{here}.arguments", name if isinstance(name, str) else "")
            add = adder_of(kind, topology)
            _check_plain(inspect.signature(add), arguments, f"{here}.arguments")
            few = type(arguments.get("n")) is not int or arguments["n"] <= MOST
            bound = f"must be <= {MOST}: more points are given by triangles and barycentric"
            expect(few, f"{here}.arguments.n", bound, arguments.get("n"))
            with errors_at(here):
                add(**arguments)
        if "numbering" in parts:
            here = f"{where}.numbering"
            numbering = members_of(parts["numbering"], here, ("n_beads", "next_id", "handles"))
            rows_of = numbering["handles"]
            expect(isinstance(rows_of, dict), f"{here}.handles", "must be an object", rows_of)
            own = {
                name: members_of(rows, f"{here}.handles.{name}", ("beads", "ids", "asleep"))
                for name, rows in rows_of.items()
            }
            with errors_at(here):
                topology.number({**numbering, "handles": own})
        return topology

    def system(self, tree: Any, where: str) -> System:
        may = ("jumps", "pools", "hydrodynamics", "box")
        parts = members_of(tree, where, ("type", "topology", "forces"), optional=may)
        expect(parts["type"] == "System", f"{where}.type", 'must be "System"', parts["type"])
        topology = self.topology_of(parts["topology"], f"{where}.topology")
        with errors_at(where):
            self.made = system = System(topology, parts.get("box"))
        for key, base, add in (
            ("pools", MoleculePool, system._add_pool), ("forces", Force, system._add), ("jumps", Jump, system._add)
        ):  # fmt: skip
            given = parts.get(key, [])
            expect(isinstance(given, list), f"{where}.{key}", "must be a list", given)
            for i, item in enumerate(given):
                here = f"{where}.{key}[{i}]"
                item = dict(members_of(item, here, ("type",), more=True))
                name = item.pop("name", None)
                expect(name is None or isinstance(name, str), f"{here}.name", "must be a string", name)
                made = self.described(item, here, base, name)
                with errors_at(here):
                    add(made, name)
        if "hydrodynamics" in parts:
            here = f"{where}.hydrodynamics"
            made = self.described(parts["hydrodynamics"], here, RotnePrager)
            with errors_at(here):
                system.add_hydrodynamics(made)
        return system

    def described(self, tree: Any, where: str, base: type, name: str | None = None) -> Any:
        parts = members_of(tree, where, ("type", "arguments"), optional=("numbers",))
        cls = find_type(parts["type"], base, f"{where}.type")
        given = parts["arguments"]
        if name is None and isinstance(given, dict) and isinstance(given.get("name"), str):
            name = given["name"]
        name = cls.__name__ if name is None else name
        arguments = self._arguments(given, f"{where}.arguments", name)
        _check_plain(cls.__signature__, arguments, f"{where}.arguments")
        rest = self._arguments(parts.get("numbers", {}), f"{where}.numbers", name)
        with errors_at(where):
            return made_anew(cls, arguments, rest)

    def _arguments(self, tree: Any, where: str, name: str) -> dict[str, Any]:
        expect(isinstance(tree, dict), where, "must be an object (names and values)", tree)
        out: dict[str, Any] = {}
        for key, value in tree.items():
            if isinstance(value, dict) and "same_as" in value:
                first = members_of(value, f"{where}.{key}", ("same_as",))["same_as"]
                known = isinstance(first, str) and first in out
                expect(known, f"{where}.{key}.same_as", "must be the name of an argument before it", first)
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
            given = members_of(tree, where, ("handle",), optional=("of",))
            handle = self._handle(given["handle"], f"{where}.handle")
            with errors_at(where):
                return OfSpecies(handle, given["of"]) if "of" in given else handle
        if "force" in tree:
            return self._force(members_of(tree, where, ("force",))["force"], f"{where}.force")
        if "pool" in tree:
            pools = {} if self.made is None else self.made.pools
            with errors_at(f"{where}.pool"):
                return look_up(pools, members_of(tree, where, ("pool",))["pool"], "pool", ParameterError)
        if "species" in tree:
            parts = members_of(tree, where, ("species", "of"))
            pool = self.value(parts["of"], f"{where}.of", name)
            expect(isinstance(pool, MoleculePool), f"{where}.of", "must be a pool", parts["of"])
            with errors_at(f"{where}.species"):
                return pool[parts["species"]]
        if "function" in tree:
            return self._function(members_of(tree, where, ("function",))["function"], where, name)
        if "dict" in tree:
            return self._arguments(members_of(tree, where, ("dict",))["dict"], f"{where}.dict", name)
        if "type" in tree:
            if tree["type"] != "TriangleMesh" and tree["type"] not in _SITES:
                return self.described(tree, where, Described, name or None)
            given = members_of(tree, where, ("type", "arguments"))["arguments"]
            of_mesh = tree["type"] == "TriangleMesh"
            wanted = ("vertices", "faces") if of_mesh else _SITES[tree["type"]]
            members_of(given, f"{where}.arguments", wanted, optional=("box",) if of_mesh else ("growth",))
            parts = self._arguments(given, f"{where}.arguments", name)
            with errors_at(where):
                if of_mesh:
                    return TriangleMesh(**parts)
                return (Lattice if tree["type"] == "Lattice" else Sites).from_arrays(**parts)
        known = "values, handle, force, pool, species, function, dict, type"
        raise ParameterError(f"{where} is an object without any of the keys {known}: what it means is not known")

    def _handle(self, name: Any, where: str) -> Handle:
        expect(isinstance(name, str), where, "must be a string", name)
        handles = () if self.topology is None else self.topology.handles
        for handle in handles:
            if handle.name == name:
                return handle
        known = ", ".join(repr(h.name) for h in handles) or "none"
        raise ParameterError(f"{where} = {name!r}, but no object before it in the topology has this name: {known}")

    def _force(self, name: Any, where: str) -> Force:
        expect(isinstance(name, str), where, "must be a string", name)
        names = () if self.made is None else self.made.force_names
        if self.made is None or name not in names:
            known = ", ".join(map(repr, names)) or "none"
            raise ParameterError(f"{where} = {shown(name)}, but no force of the system has this name: {known}")
        return self.made.forces[names.index(name)]

    def _function(self, function: Any, where: str, name: str) -> Callable[..., Any]:
        expect(isinstance(function, str), f"{where}.function", "must be a string", function)
        for key in (f"{name}.{where.rpartition('.')[2]}", name):
            if key in self.functions:
                self._called.add(key)
                return self.functions[key]
        raise ParameterError(
            f"{where}: {name!r} calls a Python function ({function}), which no document holds: "
            f"give it with functions={{{name!r}: ...}}"
        )


def type_name(cls: type) -> str:
    """Return the name of a class in documents: the bare one for this package, with what tells two of them apart."""
    return getattr(cls, "_qualifier", "") + cls.__name__ if _is_ours(cls) else f"{cls.__module__}:{cls.__qualname__}"


def find_type(name: Any, base: type, where: str) -> Any:
    """Return the class that a document names, among those that exist: nothing is imported."""
    expect(isinstance(name, str), where, "must be a string", name)
    made = [c for c in _descendants(base) if c is not Described and not inspect.isabstract(c)]
    candidates = [c for c in made if not c.__name__.startswith("_")]
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
_ARRAYS_OF_SITES = ("start", "bead_numbers", "weights", "anchor_positions", "arms", "handles", "growth")
_SITES = {"Sites": _ARRAYS_OF_SITES, "Lattice": (*_ARRAYS_OF_SITES, "spacing", "filaments", "numbers")}
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


def _check_plain(signature: inspect.Signature, arguments: Mapping[str, Any], where: str) -> None:
    """Refuse what constructors would take without a word: "no" for a switch, a list for a name."""
    for key, value in arguments.items():
        if key in signature.parameters and isinstance(signature.parameters[key].default, bool):
            # Where the type is not bool alone, one for each of many may be given.
            each = signature.parameters[key].annotation is not bool and isinstance(value, np.ndarray)
            expect(each or isinstance(value, bool), f"{where}.{key}", "must be true or false", value)
        elif key == "name":
            expect(value is None or isinstance(value, str), f"{where}.{key}", "must be a string", value)
