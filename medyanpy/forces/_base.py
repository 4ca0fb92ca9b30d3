"""Base classes of forces."""

import inspect
import re
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import InitVar
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np

from medyanpy._tools.declared import Each, Given, argument, declared, number
from medyanpy._tools.domains import Domain, domain_table
from medyanpy._tools.images import checked_box, displacement
from medyanpy._tools.parameters import Parameterized
from medyanpy._tools.validation import array, required_thermal_energy, whole_number
from medyanpy.core.handles import Handle, bead_numbers, handles_in
from medyanpy.errors import ParameterError, TopologyError
from medyanpy.forces._stiffness import Start, longest_timestep
from medyanpy.pools import MoleculePool
from medyanpy.topology import Topology

if TYPE_CHECKING:
    from medyanpy._kernels.core.program import Operation
    from medyanpy.core.layout import Layout
    from medyanpy.engine.worksheet import Look, Remark
    from medyanpy.forces.links import Bound, LinkEnds
    from medyanpy.state import State

__all__ = [
    "AtTemperature", "Domain", "Each", "Force", "Given", "OnHandle", "argument", "bead_numbers", "bead_rows",
    "declared", "domain_table", "handles_in", "number",
]  # fmt: skip


_Kind = TypeVar("_Kind", bound=Handle)

#: Objects that cannot have numbers of their own where edges are flipped.
_OF_TRIANGLES = {"membrane.mesh.faces": "triangle", "membrane.mesh.edges": "edge"}
_RAISES = re.compile(r"^Raises\n-+\n.*?(?=\n\n\w[\w ]*\n---|\Z)", re.MULTILINE | re.DOTALL)
_NUMBERS = "ParameterError\n    A number outside its domain."
_BEHIND = re.compile(r"^(Warns|Notes|References|Examples)\n-+$", re.MULTILINE)


@declared
class Force(Parameterized):
    """A term of the potential energy: its law, its beads, and its numbers.

    A force only describes: each Context makes its own operation from it with `bind`. To write one, see "How to add a
    force" in the documentation; `PythonForce` needs less. Reading a number gives it as it is now, and assigning to one
    of `changeable` is the same as `set`.

    Parameters
    ----------
    name : str, optional
        Name of its energy in ``state.energies``; the class name where none is given.
    group : int, 0 to 31
        Kicks of a word may name the groups they apply, as in ``"B1 B0 A O A B0 B1"``.

    Raises
    ------
    ParameterError
        A number outside its domain.
    """

    _remedy = "make a new force, and a new System with it; only force.changeable can be set"
    #: True if the force does not depend on where in space the system is, so that it keeps the total momentum.
    conserves_momentum = False
    #: True if its energy accounts for the work that it does: runs are then watched for beads that run away by it.
    energy_tells_work = True
    #: True if its energy is a function of 3D positions and orientations alone, not of the triangles of beads: then a
    #: flipped edge does not change it unless it moves a point.
    of_positions_alone = False
    #: True if it calls a function of a user's, which may do anything.
    calls_python = False
    #: True if its terms are links, of which `link_ends` tells the ends.
    has_links = False
    #: True if `squared_frequencies` are exact and not only bounds.
    exact_frequencies = False

    #: That section of docstrings, of subclasses that do not write one too.
    _raises = "Raises\n------\n" + _NUMBERS
    #: For authors: help() of other forces leaves these out.
    _hooks = frozenset(
        "apart bind calls_python directions domains ends energy_tells_work exact_frequencies has_links joined_in "
        "keeps_triangles link_ends naming noun obstacle_to_births obstacle_to_flips of_positions_alone pools remarks "
        "remarks_on_box squared_frequencies stiff_links terms terms_argument without".split()
    )

    name: Given[str | None, str] = argument("", "See `Force`.", default=None, kw_only=True)
    group: int = argument("", "See `Force`.", default=0, kw_only=True)

    def __init_subclass__(cls, **options: Any) -> None:
        """Give a class without errors in its docstring those of its base class."""
        super().__init_subclass__(**options)
        text = inspect.cleandoc(vars(cls).get("__doc__") or "")
        if own := _RAISES.search(text):
            cls._raises = own[0]
        elif text:
            at = m.start() if (m := _BEHIND.search(text)) else len(text)
            cls.__doc__ = f"{text[:at].rstrip()}\n\n{cls._raises}\n\n{text[at:]}".rstrip() + "\n"

    def _take(self, given: dict[str, Any]) -> None:
        super()._take(given)
        self.group = whole_number(f"{self.name}: group", given["group"], at_least=0, at_most=31)

    def _identity(self) -> dict[str, Any]:
        return {**super()._identity(), "group": self.group}

    @property
    def handles(self) -> tuple[Handle, ...]:
        """Handles that it was given; a System refuses those of another topology."""
        return ()

    @property
    def handles_by_species(self) -> tuple[Handle, ...]:
        """Handles of which it acts on beads of some species alone."""
        return ()

    @property
    def pools(self) -> tuple[MoleculePool, ...]:
        """Pools of whose molecules its energy is a function: they must be in the system."""
        return ()

    @property
    def joined(self) -> np.ndarray:
        """Rows (b, 2) of beads that it joins in pairs, shown as bonds; empty for most forces."""
        return np.empty((0, 2), np.int64)

    def joined_in(self, state: "State") -> np.ndarray:
        """Return `joined` as it was in a state."""
        return self.joined

    def _count(self) -> Any:
        return tuple(handle._version for handle in self.handles)

    def longest_timestep(
        self, topology: Topology | None = None, *, box: Sequence[float | None] | None = None
    ) -> float | None:
        """Return 2 over the highest frequency of this force on its beads where they start, s.

        Kicks are unstable at longer timesteps; a Context warns. It is inf where nothing is stiff, None without an
        estimate, and between half and all of the value from the matrix of second derivatives; an approximation for
        colliding pairs and bent filaments. For a pair force on more than 16 384 beads, four neighbourhoods of 4096 are
        used. See :doc:`/parameters`.

        Parameters
        ----------
        topology : Topology, optional
            Needed by a force that was given bead numbers; handles have theirs.
        box : (3,) of float, nm, > 0, or None, optional
            As `System` takes it: distances are then those of nearest images.

        Raises
        ------
        ParameterError
            No topology, and no handles to take it from; a box outside its domain.
        """
        if topology is None:
            if not self.handles:
                raise ParameterError(f"{self.name}: give topology=, which has the masses of the beads")
            topology = self.handles[0].topology
        start = Start(topology, box=checked_box(f"{self.name}: longest_timestep", box))
        return longest_timestep(self.squared_frequencies(start))

    def squared_frequencies(self, start: Start) -> np.ndarray | None:
        """Return ω² (rows,), 1/s², of springs of each row of `start` to its place that bound this force; None if
        unknown."""
        return None

    def stiff_links(self, topology: Topology, box: Any, least: float) -> tuple[np.ndarray, np.ndarray]:
        """Return beads (b, 2) that it joins with ω² of at least `least` (1/s²), and 1/(√m ℓ) of the lighter one (b,).

        ℓ is their distance where they start; pairs at one place are left out.
        """
        pairs = self.joined
        start = Start(topology, box=box)
        squared = self.squared_frequencies(start) if len(pairs) else None
        if squared is None:
            return np.empty((0, 2), np.int64), np.empty(0)
        pairs = pairs[squared[pairs].min(axis=1) >= least]
        ends = start.positions[pairs]
        length = np.linalg.norm(displacement(ends[:, 0], ends[:, 1], box), axis=1)
        pairs, length = pairs[length > 0.0], length[length > 0.0]
        return pairs, start.lightness[pairs].max(axis=1, initial=0.0) / length

    def obstacle_to_flips(self) -> str:
        """Return why edges of a membrane that it names cannot be flipped; empty where they can."""
        # A number for each triangle or edge loses its meaning once these join other vertices.
        for name, domain in self.domains.items():
            if domain.per in _OF_TRIANGLES and len(np.unique(self._numbers[name])) > 1:
                return f"its {name} is another for each {_OF_TRIANGLES[domain.per]}, give one for all"
        return ""

    def obstacle_to_births(self) -> str:
        """Return why jumps cannot add beads to it: numbers that differ from bead to bead; or nothing."""
        given = (name for name in self._belong if self._numbers[name] is not None)
        return next((f"its {name} is not the same for all" for name in given if self._number_of_all(name) is None), "")

    def remarks(self, look: "Look") -> "list[Remark]":
        """Return what is wrong or unlikely about it in a system, for `Simulation.check` and warnings."""
        return []

    def remarks_on_box(self, look: "Look") -> "list[Remark]":
        """Return remarks that depend on the box, made again when that changes; one warning is given."""
        return []

    def link_ends(self, bound: "list[Bound]") -> "LinkEnds":
        """Return its links and those `bound` by jumps."""
        raise NotImplementedError

    @property
    def keeps_triangles(self) -> str:
        """Name in advice on forces that keep triangles of a membrane in shape; empty of others."""
        return ""

    @abstractmethod
    def bind(self, layout: "Layout") -> "Operation":
        """Return the operation that computes this force on the arrays of one Context."""


class NamedTerms(Force):
    """A force on tuples of beads that a user has named, such as the pairs of bonds.

    Raises
    ------
    TopologyError
        A term that names a bead twice, or (when added to a system) a bead that does not exist.
    ParameterError
        A number outside its domain.
    """

    #: Name of a term in messages, and the attribute (T, k) with the rows of their beads.
    noun = "term"
    terms = ""
    #: The argument of the constructor that gives them, where it has another name.
    terms_argument = ""

    def naming(self, gone: np.ndarray) -> dict[str, np.ndarray]:
        return {} if self.handles else {self.noun: gone[getattr(self, self.terms)].any(axis=1)}

    def without(self, terms: dict[str, np.ndarray]) -> None:
        keep = ~terms[self.noun]
        numbers, left = self._numbers_of(keep), getattr(self, self.terms)[keep]
        left.flags.writeable = False
        vars(self)[self.terms] = left
        self._was_cut = True
        self._declare(**numbers)
        self._version += 1

    def _arguments_now(self) -> dict[str, Any]:
        now, argument = super()._arguments_now(), self.terms_argument or self.terms[1:]
        # Handles may have other beads now than when terms were made from them.
        return now | ({argument: getattr(self, self.terms)} if self._was_cut or handles_in(now.get(argument)) else {})


@declared
class AtTemperature(Force):
    """A force with the thermal energy kT, which a temperature may give."""

    temperature: InitVar[float | None] = argument(
        "float, K, > 0, optional", "Temperature of the integrator.", default=None
    )
    kT: Given[float | None, float] = number(  # noqa: N815 - the symbol of the papers
        "pN nm", "In place of the temperature; `set` takes this one.", default=None, above=0.0, optional=False
    )

    def _take(self, given: dict[str, Any]) -> None:
        super()._take(given)
        given["kT"] = required_thermal_energy(self.name, given["temperature"], given["kT"])

    def _arguments_now(self) -> dict[str, Any]:
        # kT in place of the temperature, so that no rounding is repeated.
        return {**super()._arguments_now(), "temperature": None}


class OnHandle(Force):
    """A force on the beads of one handle, its first argument."""

    #: Name of the argument, kind of the handle, and what messages call it.
    _on: ClassVar[tuple[str, type[Handle], str]]

    def __init_subclass__(cls, **options: Any) -> None:
        if "_on" in vars(cls):
            cls._raises = f"Raises\n------\nTopologyError\n    Not the handle of {cls._on[2]}.\n" + _NUMBERS
        super().__init_subclass__(**options)

    def _take(self, given: dict[str, Any]) -> None:
        super()._take(given)
        name, kind, article = self._on
        setattr(self, f"_{name}", expect_handle(f"{self.name}: {name}", given[name], kind, article))

    @property
    def handles(self) -> tuple[Handle, ...]:
        return (getattr(self, f"_{self._on[0]}"),)


def expect_handle(what: str, handle: Any, kind: type[_Kind], article: str) -> _Kind:
    """Return `handle` if it is one of `kind`, else refuse it."""
    if not isinstance(handle, kind):
        raise TopologyError(f"{what} must be the handle of {article}, not {handle!r}")
    return handle


def bead_rows(what: str, given: Any, shape: tuple[int | None, ...]) -> np.ndarray:
    """Return numbers of beads or sites as a user gives them: a copy, read-only."""
    out = array(what, given, shape, dtype=np.int64, error=TopologyError).copy()
    out.flags.writeable = False
    return out


def check_beads(force: str, index: np.ndarray, topology: Topology) -> None:
    """Refuse terms (rows of bead numbers) that name beads which do not exist."""
    outside = ((index < 0) | (index >= topology.n_beads)).any(axis=1)
    if outside.any():
        term = int(np.argmax(outside))
        raise TopologyError(
            f"{force}: term {term} names beads {index[term].tolist()}, "
            f"but the topology has beads 0 to {topology.n_beads - 1}"
        )
    topology.expect_awake(force, index.ravel())
