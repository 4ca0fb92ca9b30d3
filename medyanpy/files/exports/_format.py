"""Base classes and helpers of every export format."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import numpy as np

from medyanpy import units
from medyanpy._tools.images import in_words
from medyanpy.errors import ParameterError
from medyanpy.files.particles import Contents, Particles

__all__ = ["Format", "FormatOfEqualFrames", "features", "in_file_names", "words_of"]


def features(contents: Contents) -> dict[str, str]:
    """Return what a run has that not every format holds, in words; by what a `Format` calls it."""
    handles = contents.trajectory.handles.values()
    there = contents.handles.values()
    box = contents.trajectory[-1].box if len(contents.trajectory) else None

    def named(what: str, names: Sequence[str]) -> str:
        return f"{what} ({', '.join(names)})" if names else ""

    words = {
        "triangles": named("triangles", contents.membranes),
        "flips": named("flips of edges", [n for n in contents.membranes if contents.holds(f"faces of {n}")]),
        "weights": named("places in triangles", [h.name for h in there if h.rows_of == "intriangle"]),
        "bonds": named("links", [h.name for h in there if h.links is not None]),
        "force bonds": named("bonds and links of forces", contents.joining_forces),
        "bound": named("links that jumps bind", contents.jumps),
        "ends": named("places of the ends of bound links, between beads", contents.jumps),
        "orientations": named("orientations", [h.name for h in there if h.rows_of == "oriented"]),
        "semi-axes": named("shapes of ellipsoids", [h.name for h in there if "semi_axes" in h.beside]),
        "inertia": named("moments of inertia", [h.name for h in there if h.inertia is not None]),
        "angular momenta": "angular momenta" if contents.holds("angular_momenta") else "",
        "velocities": "velocities" if contents.has_velocities else "",
        "radii": named("radii", [h.name for h in there if {"radius", "semi_axes"} & set(h.beside)]),
        "masses": "masses",
        "energies": "energies and temperatures",
        "ids": "permanent ids of beads" if contents.comes_and_goes else "",
        "times": "times",
        "box": "" if box is None else f"the periodic box ({in_words(box)} nm)",
        "precision": "numbers in double precision",
        "surfaces": named("surfaces that points are held to", [h.name for h in there if h.surface is not None]),
        "directions": named("directions that are not beads", [h.name for h in handles if not h.in_space]),
    }
    return {key: text for key, text in words.items() if text}


def words_of(names: Sequence[str], allowed: Callable[[str], bool]) -> dict[str, str]:
    """Return a word for each name, of the letters that are allowed and _ for others; no two are the same."""
    out: dict[str, str] = {}
    for name in names:
        word = "".join(c if allowed(c) else "_" for c in name) or "_"
        number = 1
        while (one := word if number == 1 else f"{word}_{number}") in out.values():
            number += 1
        out[name] = one
    return out


def in_file_names(c: str) -> bool:
    """Tell whether a letter may be in the name of a file."""
    return c.isalnum() or c in "-_"


class Format(ABC):
    """A format of export of `contents`: `frames`, ascending, go to `out`, as the user called it."""

    #: The name of its files in messages.
    title: ClassVar[str]
    #: The `features` that its files hold.
    holds: ClassVar[frozenset[str]]

    def __init__(self, contents: Contents, frames: range, out: Path) -> None:
        self.contents: Contents = contents
        self.frames: range = frames
        self.out: Path = out

    @classmethod
    def check_installed(cls) -> None:
        """Refuse what needs a package that is not there."""

    def check(self) -> None:
        """Refuse what the format cannot hold at all."""

    def paths(self) -> list[Path]:
        """Return the files it makes."""
        return [self.out]

    @abstractmethod
    def write(self, made: list[Path]) -> None:
        """Write each of `paths` under another name."""

    def left_out(self) -> list[str]:
        """Return sentences about what the files do not hold."""
        there = features(self.contents)
        missing = there.keys() - self.holds
        if "bound" in missing:
            # Ends of links are not missed where the links are not there.
            missing.discard("ends")
        return [f"{self.title} files are written without {there[key]}." for key in there if key in missing]

    def each(self) -> Iterator[Particles]:
        """Iterate over the particles of each frame."""
        for k in self.frames:
            yield self.contents.particles(self.contents.trajectory[k])

    @cached_property
    def boxes(self) -> np.ndarray:
        """Lengths of the periodic box in each of the frames, (m, 3) nm, 0 in open directions."""
        return self.contents.boxes(self.frames)

    @property
    def times(self) -> np.ndarray:
        """Times of the frames, (m,) s."""
        return np.asarray(self.contents.trajectory.times[list(self.frames)])

    @property
    def box_changes(self) -> bool:
        return bool((self.boxes != self.boxes[:1]).any())

    @property
    def open_directions(self) -> str:
        """Directions of x, y and z that are open, where there is a box."""
        return ", ".join(np.array(list("xyz"))[self.boxes[0] == 0.0]) if self.boxes[0].any() else ""

    def refuse(self, problem: str) -> ParameterError:
        """Return the error of what the format cannot hold."""
        return ParameterError(f"export: {self.contents.trajectory.paths[0]} {problem}")


class FormatOfEqualFrames(Format):
    """A format with the same atoms in every frame, in Å: all rows that have a bead in one of the frames."""

    def __init__(self, contents: Contents, frames: range, out: Path) -> None:
        super().__init__(contents, frames, out)
        there = np.zeros(contents.trajectory.n_beads, bool)
        low, high = np.inf, -np.inf
        for one in self.each():
            there[one.rows] = True
            low, high = min(low, one.positions.min(initial=np.inf)), max(high, one.positions.max(initial=-np.inf))
        self._rows: np.ndarray = np.flatnonzero(there)
        self._reach: tuple[float, float] = (low, high)

    def each_in_full(self) -> Iterator[tuple[Particles, np.ndarray, np.ndarray]]:
        """Iterate over frames: the particles, places of all rows in Å, (n, 3), and which of them have a bead, (n,). The
        others stay where they were last, or are where they are first seen."""
        places = self._first_places()
        for there in self.each():
            own = np.searchsorted(self._rows, there.rows)
            places[own] = there.positions / units.angstrom
            alive = np.zeros(len(places), bool)
            alive[own] = True
            yield there, places, alive

    def _first_places(self) -> np.ndarray:
        """Return where each row is first seen, (n, 3) Å."""
        places = np.full((len(self._rows), 3), np.nan)
        for there in self.each():
            own = np.searchsorted(self._rows, there.rows)
            new = np.isnan(places[own, 0])
            places[own[new]] = there.positions[new] / units.angstrom
            if not np.isnan(places).any():
                break
        return places

    @property
    def is_closed(self) -> bool:
        """True if the box is periodic in all directions."""
        return bool(self.boxes.all())

    def box_left_out(self, most: float = np.inf) -> list[str]:
        """Return a sentence on a box that the format cannot hold, `most` (nm) being the longest side that it can."""
        if not self.boxes.any() or (self.is_closed and (self.boxes <= most).all()):
            return []
        limit = f", at most {most:g} nm wide" if np.isfinite(most) else ""
        box = features(self.contents)["box"]
        return [
            f"{self.title} files are written without {box}: they hold a box that is periodic in all directions{limit}."
        ]
