"""Public names: what a call or a name that does not exist probably meant, and what assigning to one does.

`Named` classes turn a wrong call of theirs, and the look-up of a name that they do not have, into an error that tells
what was probably meant; the names that OpenMM has for something are known by `OPENMM`. They refuse calls with something
else where a switch or a word is wanted. `Guarded` classes also refuse to be assigned to, where nothing would follow.
"""

import functools
import inspect
from abc import ABCMeta
from collections.abc import Callable, Hashable, Iterable, Mapping
from operator import or_
from types import FunctionType, UnionType
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeVar, Union, cast, get_args, get_origin

import numpy as np

from medyanpy.errors import ArgumentError, ParameterError, PublicNameError, shown

__all__ = ["OPENMM", "Guarded", "Named", "bound_call", "did_you_mean", "look_up", "module_names", "plainly_called"]

_Function = TypeVar("_Function", bound=Callable[..., Any])

_TABLE = "the table of names in docs/coming_from_openmm.md"

#: OpenMM's names that nothing here resembles, and what to write instead. Names that differ by spelling alone
#: (``addForce``) are found without.
OPENMM = {
    # Integrators
    "LangevinIntegrator": "mp.BAGOGABIntegrator(timestep, temperature=...); friction belongs to beads",
    "LangevinMiddleIntegrator": "mp.BAGOGABIntegrator(timestep, temperature=...); friction belongs to beads",
    "CustomIntegrator": "mp.SplittingIntegrator(word, timestep, temperature=...)",
    "CompoundIntegrator": "integrator.set(timestep=..., temperature=...)",
    "setTemperature": "integrator.set(temperature=...)",
    "setStepSize": "integrator.set(timestep=...)",
    "getStepSize": "integrator.timestep",
    "stepSize": "timestep",
    "setFriction": "friction=, which belongs to beads and is given when they are added",
    "setRandomNumberSeed": "seed=, when the integrator is made",
    # Forces
    "HarmonicBondForce": "mp.forces.HarmonicBonds(pairs, stiffness, length)",
    "CustomBondForce": "mp.forces.CustomBonds(pairs, energy, **parameters)",
    "addBond": "mp.forces.HarmonicBonds(pairs, stiffness, length), all pairs at once",
    "HarmonicAngleForce": "mp.forces.AngleLinks(a, b, c, stiffness, angle)",
    "CustomAngleForce": "mp.forces.AngleLinks(a, b, c, stiffness, angle)",
    "addAngle": "mp.forces.AngleLinks(a, b, c, stiffness, angle), all angles at once",
    "addTabulatedFunction": "mp.forces.TabulatedPair(a, b, distances, energies)",
    "NonbondedForce": "mp.forces.LennardJones and mp.forces.Coulomb",
    "CustomNonbondedForce": "mp.forces.CustomPair(group_a, group_b, energy, cutoff=..., **parameters)",
    "GayBerneForce": "mp.forces.EllipsoidRepulsion",
    "CustomExternalForce": "mp.forces.ExternalField(beads, energy, **parameters)",
    "setForceGroup": "group=, when the force is made",
    "getForceGroup": "group",
    "setName": "name=, when it is made",
    "updateParametersInContext": "force.set(...), which every context follows by itself",
    # Topology and system
    "addParticle": "topology.add_beads(positions, mass, friction), before mp.System(topology) is made",
    "addAtom": "topology.add_beads(positions, mass, friction)",
    "addConstraint": "topology.add_filaments(list_of_nodes, ...)",
    "getNumParticles": "topology.n_beads",
    # Running and looking
    "setDefaultPeriodicBoxVectors": "mp.System(topology, box=(x, y, z))",
    "setPeriodicBoxVectors": "context.set_box((x, y, z)); the first box is that of mp.System(topology, box=(x, y, z))",
    "Platform": "mp.Simulation(system, integrator, threads=...)",
    "DCDReporter": "mp.reporters.TrajectoryReporter",
    "XTCReporter": "mp.reporters.TrajectoryReporter",
    "PDBReporter": "mp.reporters.TrajectoryReporter",
    "XmlSerializer": "mp.serialize and mp.deserialize",
    "OpenMMException": "mp.MedyanError",
}


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ``": did you mean 'stiffness'?"`` for a name that is not one of those known; empty where none is near."""
    known = [k for k in known if not k.startswith("_")]
    if name in OPENMM and name not in known:
        return f": that is OpenMM's name; here it is {OPENMM[name]} (see {_TABLE})"
    # Not needed before something is wrong.
    from difflib import get_close_matches

    # Spelled alike but for case, underscores and the module that a name is in.
    spelled = {_plain(k.rpartition(".")[2]): k for k in known}
    found = get_close_matches(_plain(name), spelled, n=1, cutoff=0.65)
    return f": did you mean {spelled[found[0]]!r}?" if found else ""


def _plain(name: str) -> str:
    return name.replace("_", "").lower()


def look_up(named: Mapping[str, Any], name: Any, noun: str, error: type[Exception]) -> Any:
    """Return the item of a name; where there is none, raise an error that lists the names there are."""
    if isinstance(name, str) and name in named:
        return named[name]
    hint = did_you_mean(name, named) if isinstance(name, str) else ""
    before = f"{hint} There" if hint else "; there"
    raise error(f"there is no {noun} {name!r}{before} are: {', '.join(map(repr, named)) or 'none'}")


def module_names(module: str, names: Callable[[], Iterable[str]]) -> Callable[[str], NoReturn]:
    """Return the ``__getattr__`` of a module whose public names are these."""

    def missing(name: str) -> NoReturn:
        # Python looks for names of its own in many places.
        hint = "" if name.startswith("_") else did_you_mean(name, names())
        raise PublicNameError(f"module {module!r} has no attribute {name!r}{hint}")

    return missing


# Calls ---------------------------------------------------------------------------------------------------------------


def _wrong_call(
    what: str, signature: inspect.Signature, given: tuple[Any, ...], named: Mapping[str, Any], hint: str
) -> str:
    """Describe what is wrong with the arguments of a call that its signature does not allow."""
    parameters = signature.parameters.values()
    by_place = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    by_name = [p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    plain = signature.replace(
        parameters=[p.replace(annotation=p.empty) for p in parameters], return_annotation=signature.empty
    )
    takes = f"The call is {what}{plain}"
    unknown = [name for name in named if name not in by_name]
    twice = [name for name in by_place[: len(given)] if name in named]
    missing = [
        p.name for p in parameters
        if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
        and p.name not in named and p.name not in by_place[: len(given)]
    ]  # fmt: skip
    if unknown and not any(p.kind is p.VAR_KEYWORD for p in parameters):
        meant = did_you_mean(unknown[0], [n for n in by_name if n not in named])
        problem = f"has no argument {unknown[0]!r}{meant}"
    elif len(given) > len(by_place) and not any(p.kind is p.VAR_POSITIONAL for p in parameters):
        first = ", ".join(by_place) or "none"
        problem = f"was given {len(given)} arguments without a name, but only these go without: {first}"
    elif twice:
        problem = f"was given the argument {twice[0]!r} twice"
    else:
        problem = f"needs the argument {missing[0]!r}" if missing else "cannot be called like this"
    ended = problem if problem.endswith("?") else f"{problem}."
    return f"{what} {ended} {hint or takes}"


def _is_switch(value: Any) -> bool:
    return isinstance(value, bool | np.bool_) or (type(value) is int and value in (0, 1))


#: What parameters with these annotations take, and the word for it in messages. Anything else given would mean
#: something by accident: text is always true, and arrays are neither true nor equal to a word.
_PLAIN: dict[Any, tuple[Callable[[Any], bool], str]] = {
    bool: (_is_switch, "True or False"),
    bool | None: (lambda value: value is None or _is_switch(value), "True, False or None"),
    str: (lambda value: isinstance(value, str), "text"),
    str | None: (lambda value: value is None or isinstance(value, str), "text"),
}


def _without_words(annotation: Any) -> Any:
    """Return an annotation in which words, ``Literal["a", "b"]``, are text: which words there are, callees tell."""
    if get_origin(annotation) is Literal and all(isinstance(word, str) for word in get_args(annotation)):
        return str
    if get_origin(annotation) in (Union, UnionType) and any(get_origin(one) is Literal for one in get_args(annotation)):
        return functools.reduce(or_, map(_without_words, get_args(annotation)))
    return annotation


class _PlainArguments:
    """Arguments of a function that their annotations describe completely."""

    def __init__(self, what: str, signature: inspect.Signature) -> None:
        self._what = what
        self._wanted = [
            (place if p.kind is p.POSITIONAL_OR_KEYWORD else None, p.name, *_PLAIN[kind])
            for place, p in enumerate(signature.parameters.values())
            if isinstance(kind := _without_words(p.annotation), Hashable) and kind in _PLAIN
        ]

    def check(self, given: tuple[Any, ...], named: Mapping[str, Any]) -> None:
        for place, name, fits, meant in self._wanted:
            if name in named:
                value = named[name]
            elif place is not None and place < len(given):
                value = given[place]
            else:
                continue
            if not fits(value):
                raise ParameterError(f"{self._what}: {name} must be {meant}, not {shown(value)}")


def plainly_called(function: _Function) -> _Function:
    """Return a function, or a method of a class that is not `Named`, that refuses what its annotations exclude."""
    plain = _PlainArguments(function.__qualname__.removesuffix(".__init__"), inspect.signature(function))

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        plain.check(args, kwargs)
        return function(*args, **kwargs)

    return cast(_Function, call)


def bound_call(what: str, function: Callable[..., Any], named: Mapping[str, Any]) -> inspect.BoundArguments:
    """Return the arguments of a function that another takes for it, by name and with its defaults; refuse wrong
    ones."""
    signature = inspect.signature(function)
    _PlainArguments(what, signature).check((), named)
    try:
        call = signature.bind(**named)
    except TypeError:
        raise ArgumentError(_wrong_call(what, signature, (), named, "")) from None
    call.apply_defaults()
    return call


def _without_self(function: Callable[..., Any], **changes: Any) -> inspect.Signature:
    signature = inspect.signature(function)
    return signature.replace(parameters=list(signature.parameters.values())[1:], **changes)


def _has_options(function: Callable[..., Any]) -> bool:
    return any(p.default is not p.empty for p in inspect.signature(function).parameters.values())


def _spoken(function: FunctionType) -> Callable[..., Any]:
    """Return a method whose wrong calls tell what was probably meant."""
    plain = _PlainArguments(function.__name__, _without_self(function))

    @functools.wraps(function)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        plain.check(args, kwargs)
        try:
            return function(self, *args, **kwargs)
        except TypeError:
            signature = _without_self(function)
            try:
                signature.bind(*args, **kwargs)
            except TypeError:
                raise ArgumentError(_wrong_call(function.__name__, signature, args, kwargs, "")) from None
            raise

    return call


class _Named(ABCMeta):
    """The class of `Named` classes: looks at calls, and knows when an object has been made."""

    __signature__: inspect.Signature
    _plain: _PlainArguments

    def __init__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **options: Any) -> None:
        super().__init__(name, bases, namespace, **options)
        for key, value in namespace.items():
            # Methods without options leave little to get wrong, and a call of `Context.step(1)` is to cost nothing.
            if isinstance(value, FunctionType) and not key.startswith("_") and _has_options(value):
                setattr(cls, key, _spoken(value))
        # Also what help() shows: it would show __call__ below otherwise.
        cls.__signature__ = _without_self(cls.__init__, return_annotation=inspect.Signature.empty)  # type: ignore[misc]
        cls._plain = _PlainArguments(name, cls.__signature__)

    def __dir__(cls) -> list[str]:
        # What help() and notebooks list of a class: Python's own names, and those for authors of subclasses, would fill
        # pages.
        hooks = () if "_hooks" in vars(cls) else getattr(cls, "_hooks", ())
        return [n for n in super().__dir__() if n not in hooks and not (n.startswith("__") and n.endswith("__"))]

    if not TYPE_CHECKING:
        # Type checkers are to see the constructors themselves.

        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            cls._plain.check(args, kwargs)
            try:
                made = super().__call__(*args, **kwargs)
            except TypeError:
                try:
                    cls.__signature__.bind(*args, **kwargs)
                except TypeError:
                    hint = cls._call_hint(args)
                    raise ArgumentError(_wrong_call(cls.__name__, cls.__signature__, args, kwargs, hint)) from None
                raise
            made.__dict__["_made"] = True
            return made


class Named(metaclass=_Named):
    """Objects whose wrong calls and unknown names tell what was probably meant."""

    @classmethod
    def _call_hint(cls, given: tuple[Any, ...]) -> str:
        """Return what a call with too many arguments without a name should have been, if that is known."""
        return ""

    if not TYPE_CHECKING:
        # Type checkers are to refuse names that are not there.

        def __getattr__(self, name: str) -> Any:
            # Asked for what was not found. Names with an underscore are Python's (copies, pickles, notebooks) or ours.
            if name.startswith("_"):
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            if hasattr(type(self), name):
                # A property failed: it tells why.
                return object.__getattribute__(self, name)
            raise PublicNameError(f"{type(self).__name__} has no attribute {name!r}{did_you_mean(name, dir(self))}")


class Guarded(Named):
    """Objects that others are made of, which would not notice an assignment to a public name.

    Once an object is made, assigning to one of `changeable`, if it has that, does what ``set`` does, and to a property
    what its setter does. Anything else is refused. Names with an underscore are the class's own business.
    """

    #: Remedy instead of assigning, for messages.
    _remedy = "make a new one"

    def __setattr__(self, name: str, value: Any) -> None:
        own = getattr(type(self), name, None)
        if name.startswith("_") or "_made" not in self.__dict__ or (isinstance(own, property) and own.fset):
            object.__setattr__(self, name, value)
        elif name in getattr(self, "changeable", ()):
            cast(Any, self).set(**{name: value})
        elif name in dir(self):
            raise PublicNameError(f"{self._called}: {name} cannot be assigned to, nothing would follow: {self._remedy}")
        else:
            meant = did_you_mean(name, dir(self))
            raise PublicNameError(f"{type(self).__name__} has no attribute {name!r} to assign to{meant}")

    def __delattr__(self, name: str) -> None:
        if name.startswith("_"):
            object.__delattr__(self, name)
        else:
            raise PublicNameError(f"{self._called}: {name} cannot be deleted")

    @property
    def _called(self) -> str:
        """Name of this object in messages."""
        name = self.__dict__.get("name")
        return type(self).__name__ if name in (None, type(self).__name__) else f"{type(self).__name__} {name!r}"

    def _complete(self, **attributes: Any) -> None:
        """Take public attributes that are known only after an object has been made."""
        self.__dict__.update(attributes)
