"""Shared parts of the figures: request and result of one, style, and the run of many."""

import csv
import io
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from textwrap import fill
from typing import Any, TextIO

import numpy as np

from medyanpy import __version__
from medyanpy._tools.outputs import write_atomically
from medyanpy._tools.threads import choose_threads
from medyanpy._tools.validation import number
from medyanpy.demo.report import Line, table
from medyanpy.errors import ParameterError

SEEDS = {
    "000": "BAGOGAB integrator for in-triangle points (documentation of MEDYAN.jl)",
    "001": "Tao & Owhadi: from efficient symplectic exponentiation of matrices to symplectic integration",
    "002": "Kaynak: from point particles to rigid bodies in MCell",
    "003": "Shapero: billiards on surfaces",
    "004": "Ladd & Misra: a symplectic integration method for elastic filaments",
    "chemistry": "reactions, growth and motors: closed forms, and what others have published",
}
NUMBERS, SUMMARY = "numbers.csv", "summary.json"
# Of pictures; films are GIFs always.
FORMATS = ("png", "svg", "pdf")

STYLE: dict[Any, Any] = {
    "font.size": 9.0,
    "axes.titlesize": 9.0,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.formatter.use_mathtext": True,
    "legend.frameon": False,
    "legend.fontsize": 7.5,
    "lines.linewidth": 1.1,
    "lines.markersize": 4.0,
    "savefig.dpi": 110.0,
    "svg.hashsalt": "medyanpy",
}
# A published or derived curve, under what was measured.
PUBLISHED: dict[Any, Any] = {"color": "0.25", "linewidth": 1.0}


class LeftOut(Exception):  # noqa: N818 - nothing has gone wrong
    """Figure that cannot be made here; the message says what it needs."""


@dataclass(frozen=True)
class Work:
    """Request of a figure.

    Attributes
    ----------
    quick : bool
        Smaller samples and shorter runs.
    threads : int
    structure : Path or None
        A file of a protein, for figures that need one.
    """

    quick: bool = False
    threads: int = 1
    structure: Path | None = None

    def of(self, quick: Any, full: Any) -> Any:
        return quick if self.quick else full


@dataclass(frozen=True)
class Row:
    """Number of a figure: what was measured beside what the source has, and in which words it says so."""

    line: Line
    says: str = ""

    def but(self, why: str) -> "Row":
        """Mark a row that is known not to be as published, with the reason: DIFFERS in place of CHECK."""
        if self.line.verdict != "CHECK":
            return self
        return Row(replace(self.line, verdict="DIFFERS"), f"{self.says}; {why}" if self.says else why)


@dataclass
class Made:
    """Result of a figure.

    Attributes
    ----------
    picture : matplotlib.figure.Figure or callable
        A callable writes the file that it is given itself.
    rows : list of Row
    sample : str
        Of what it was made: numbers, lengths of runs.
    missing : str
        What could not be done of it here, and what it needs.
    """

    picture: Any
    rows: list[Row]
    sample: str
    missing: str = ""


@dataclass(frozen=True)
class Plate:
    """Figure or table of a source.

    Attributes
    ----------
    name : str
        Of its file: the seed, an underscore, what it shows; with the ending.
    number : str
        Where it stands in the source.
    title : str
    make : callable
        ``make(work) -> Made``.
    seconds : (quick, full)
        About how long it takes, on two cores.
    """

    name: str
    number: str
    title: str
    make: Callable[[Work], Made]
    seconds: tuple[float, float]

    @property
    def seed(self) -> str:
        return self.name.partition("_")[0]

    @property
    def stem(self) -> str:
        return self.name.partition(".")[0]

    def file(self, kind: str) -> str:
        """Return the name of its file where pictures are of a kind."""
        return self.name.replace(".png", f".{kind}")


# Drawing ----------------------------------------------------------------------------------------------------


@contextmanager
def style() -> Iterator[None]:
    import matplotlib

    settings: Any = {**matplotlib.rcParamsDefault, **STYLE}
    with matplotlib.rc_context({**settings, "backend": matplotlib.rcParams["backend"]}):
        yield


def panels(rows: int, columns: int, size: tuple[float, float], **options: Any) -> tuple[Any, Any]:
    """Make a figure without a window, and its axes in a row."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, **options).ravel()


def letters(axes: Any, titles: Sequence[str]) -> None:
    for letter, axis, title in zip("abcdefgh", axes, titles, strict=False):
        axis.set_title(f"{letter}) {title}")


def log_ticks(axis: Any, values: Any) -> None:
    """These values along a logarithmic x axis, and no others between them."""
    from matplotlib.ticker import NullLocator

    axis.set_xscale("log")
    axis.xaxis.set_minor_locator(NullLocator())
    axis.set_xticks(values, [f"{value:g}" for value in values])


def _covered(axis: Any) -> bool:
    """Tell whether the legend of axes lies over what is drawn in them."""
    box, places = axis.get_legend().get_window_extent(), []
    for line in axis.lines:
        # Lines across all of a panel cross any legend.
        if line.get_transform() == axis.transData:
            path = line.get_path()
            joined = line.get_linestyle() not in ("None", "none", "", " ")
            places.append(axis.transData.transform((path.interpolated(50) if joined else path).vertices))
    for collection in axis.collections:
        places.append(collection.get_offset_transform().transform(collection.get_offsets()))
        places += [collection.get_transform().transform(path.vertices) for path in collection.get_paths()]
    for patch in axis.patches:
        corners = patch.get_path().interpolated(50).vertices
        places.append(patch.get_transform().transform(corners))
    return any(box.contains(*xy) for xy in np.concatenate([np.zeros((0, 2)), *places]) if np.isfinite(xy).all())


def clear_legends(figure: Any) -> list[Any]:
    """Make room for legends: the limits of axes move apart until a legend covers nothing. Return these axes."""
    moved = []
    for _ in range(12):
        figure.draw_without_rendering()
        covered = [axis for axis in figure.axes if axis.get_legend() is not None and _covered(axis)]
        if not covered:
            break
        moved += [axis for axis in covered if axis not in moved]
        for axis in covered:
            box, panel = axis.get_legend().get_window_extent(), axis.get_window_extent()
            above = box.y0 + box.y1 >= panel.y0 + panel.y1
            end = axis.transAxes.transform((0.0, 1.1 if above else -0.1))
            _, y = axis.transData.inverted().transform(end)
            axis.set_ylim(**{"top" if above != axis.yaxis_inverted() else "bottom": y})
    return moved


def _save(figure: Any, path: Path, sample: str, dpi: float | None) -> None:
    """Save a PNG of 256 colours, or a vector file, with a line below on how it was made."""
    from PIL import Image

    # As many characters as go into its width.
    sample = fill(sample, int(18.5 * figure.get_figwidth()))
    figure.supxlabel(sample, fontsize=6.5, color="0.4", x=0.01, ha="left")
    for axis in clear_legends(figure):
        print(f"    made room for the legend of {axis.get_title(loc='left')!r}")
    drawn, image, kind = io.BytesIO(), io.BytesIO(), path.suffix[1:]
    # Without a date the same figure is the same file.
    undated: dict[str, Any] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
    figure.savefig(drawn, format=kind, dpi=dpi, metadata=undated.get(kind))
    if kind != "png":
        write_atomically("figures", path, lambda file: file.write(drawn.getvalue()))
        return
    Image.open(drawn).convert("RGB").quantize(256).save(image, format="png", optimize=True)
    write_atomically("figures", path, lambda file: file.write(image.getvalue()))


# The run ----------------------------------------------------------------------------------------------------


@dataclass
class Report:
    """Figures that were made and left out.

    Attributes
    ----------
    rows : dict of str to list of Row
        By the names of figures.
    left_out : dict of str to str
        Why, by the names of figures: those that were not made, and those of which a part could not be.
    seconds : dict of str to float
    summary : dict
        The content of summary.json.
    """

    rows: dict[str, list[Row]] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    summary: dict[str, Any] = field(default_factory=dict)

    def with_verdict(self, verdict: str) -> list[str]:
        """List the quantities with this verdict, after the names of their figures."""
        return [
            f"{name}: {row.line.quantity}"
            for name, rows in self.rows.items()
            for row in rows
            if row.line.verdict == verdict
        ]


def make_figures(plates: Sequence[Plate], out: Any, *, quick: bool = False, threads: int | None = None,
                 structure: Any = None, overwrite: bool = False, stream: TextIO | None = None, kind: str = "png",
                 dpi: float | None = None) -> Report:  # fmt: skip
    """Make figures, print their numbers beside those of their sources, and write both.

    Parameters
    ----------
    plates : sequence of Plate
    out : path
        Folder for the figures, numbers.csv and summary.json; made if need be.
    quick : bool
        Smaller samples and shorter runs, stated below each figure.
    threads : int, optional
    structure : path, optional
        PDB or mmCIF file of a channel, for the figure of rigid domains.
    overwrite : bool
        Replace files of an earlier call.
    stream : text stream, optional
        Where to print; standard output where none is given.
    kind : "png", "svg" or "pdf"
        Of pictures.
    dpi : float, 20 to 1200, optional
        Dots per inch; 110 where none is given.

    Returns
    -------
    Report

    Raises
    ------
    ParameterError
        No figures, files that exist, no such structure or kind of picture, or dots per inch outside their domain.
    SimulationError
        A run failed; what was made before is in the folder.
    """
    out, threads = Path(out), choose_threads(threads)
    plates = list(plates)
    if not plates:
        raise ParameterError("figures: none of them was asked for")
    if kind not in FORMATS:
        raise ParameterError(f"figures: no pictures of kind {kind!r}, only {', '.join(FORMATS)}")
    if dpi is not None:
        dpi = number("figures: dpi", dpi, at_least=20.0, at_most=1200.0)
    if structure is not None:
        structure = Path(structure)
        if not structure.is_file():
            raise ParameterError(f"figures: there is no file {structure} with a structure")
    if out.exists() and not out.is_dir():
        raise ParameterError(f"{out} is not a folder")
    existing = [name for name in (*(p.file(kind) for p in plates), NUMBERS, SUMMARY) if (out / name).exists()]
    if existing and not overwrite:
        few = ", ".join(existing[:3]) + (f" and {len(existing) - 3} more" if len(existing) > 3 else "")
        raise ParameterError(f"{out} holds {few} already: choose another --out, or give --overwrite")
    out.mkdir(parents=True, exist_ok=True)
    work = Work(quick, threads, structure)

    def say(text: str) -> None:
        print(text, file=stream or sys.stdout, flush=True)

    seeds = sorted({plate.seed for plate in plates})
    say(f"medyanpy {__version__}")
    say(
        f"figures   {len(plates)} of {', '.join(seeds)}, {'quick' if quick else 'full'}, "
        f"{threads} thread{'s' * (threads > 1)}, about {_minutes(sum(p.seconds[not quick] for p in plates))}"
    )
    report, started = Report(), time.perf_counter()
    for plate in plates:
        begun = time.perf_counter()
        path = out / plate.file(kind)
        say(f"\n{path.name}: {plate.number}; {plate.title}")
        try:
            with style():
                made = plate.make(work)
                sample = f"medyanpy {__version__}{', quick' if quick else ''}: {made.sample}"
                if callable(made.picture):
                    made.picture(path)
                else:
                    _save(made.picture, path, sample, dpi)
        except (LeftOut, ImportError) as why:
            report.left_out[plate.stem] = str(why)
            say(f"left out  {why}")
            continue
        report.rows[plate.stem], report.seconds[plate.stem] = made.rows, time.perf_counter() - begun
        for text in table([row.line for row in made.rows], expected="source") if made.rows else ():
            say(f"    {text}")
        say(f"    {made.sample}; {report.seconds[plate.stem]:.1f} s")
        if made.missing:
            report.left_out[plate.stem] = made.missing
            say(f"left out  {made.missing}")
        _write(out, plates, work, report, kind)
    _write(out, plates, work, report, kind)
    differs = report.with_verdict("DIFFERS")
    say("")
    for name in differs:
        say(f"differs   {name}")
    say(
        f"made      {len(report.rows)} figures, {len(report.left_out)} left out, "
        f"{len(differs)} numbers that differ from their source, in {time.perf_counter() - started:.0f} s"
    )
    say(f"files     {out}: {NUMBERS}, {SUMMARY} and the figures")
    return report


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 180.0 else f"{seconds / 60.0:.0f} min"


def _write(out: Path, plates: Sequence[Plate], work: Work, report: Report, kind: str) -> None:
    """numbers.csv and summary.json, of what there is so far."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["figure", "quantity", "measured", "error", "source", "unit", "verdict", "criterion",
                     "what the source says"])  # fmt: skip
    for name, rows in report.rows.items():
        for row in rows:
            m = row.line
            writer.writerow([name, m.quantity, m.measured, m.error, m.expected, m.unit, m.verdict, m.criterion,
                             row.says])  # fmt: skip
    report.summary = {
        "version": __version__,
        "quick": work.quick,
        "threads": work.threads,
        "figures": [
            {
                "name": plate.file(kind),
                "source": SEEDS[plate.seed],
                "number": plate.number,
                "title": plate.title,
                "seconds": report.seconds[plate.stem],
                "numbers": [{**asdict(row.line), "says": row.says} for row in report.rows[plate.stem]],
            }
            for plate in plates
            if plate.stem in report.rows
        ],
        "left_out": report.left_out,
        "differs": report.with_verdict("DIFFERS"),
        "ok": not (report.with_verdict("CHECK") or report.left_out),
    }
    write_atomically("figures", out / NUMBERS, lambda file: file.write(text.getvalue().encode()))
    summary = json.dumps(report.summary, indent=2) + "\n"
    write_atomically("figures", out / SUMMARY, lambda file: file.write(summary.encode()))


# Numbers ----------------------------------------------------------------------------------------------------


def worst(samples: np.ndarray, expected: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    """Means of (n, k) independent samples, their standard errors, and which of the k is off by the most of these."""
    mean, error = samples.mean(axis=0), samples.std(axis=0, ddof=1) / np.sqrt(len(samples))
    return mean, error, int(np.argmax(np.abs(mean - expected) / error))


def above_line(quantity: str, measured: float, bound: float, unit: str = "") -> Line:
    verdict = "OK" if measured > bound else "CHECK"
    return Line(quantity, measured, None, None, unit, f"> {bound:g}", verdict)


def order_line(quantity: str, measured: float, expected: float, factor: float, unit: str = "") -> Line:
    """Compare with what a text gives as an order of magnitude."""
    verdict = "OK" if expected / factor <= measured <= expected * factor else "CHECK"
    return Line(quantity, measured, None, expected, unit, f"within a factor of {factor:g}", verdict)
