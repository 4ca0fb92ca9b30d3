"""Export of a trajectory to the format of another program, and the table of formats."""

import importlib
import os
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from medyanpy._tools.names import plainly_called
from medyanpy._tools.outputs import check_replaceable, made_beside, new_file, remove_left_over
from medyanpy._tools.validation import file_path
from medyanpy.errors import ParameterError, shown
from medyanpy.files.exports._format import Format
from medyanpy.files.particles import Contents
from medyanpy.files.trajectory import Trajectory

__all__ = ["FORMATS", "ExportReport", "export"]


class Entry(NamedTuple):
    """Entry of the registry: the module that writes a format, and what its files hold."""

    module: str
    about: str


#: The formats, by the ending of their files: the docstring of `export` and the command read this registry, and a test
#: compares the pages with it.
FORMATS = {
    ".dcd": Entry(
        "dcd",
        "coordinates and boxes in single precision, for VMD and others, beside a PDB file of the same frames. Needs "
        "``pip install 'medyanpy[viewers]'``",
    ),
    ".gsd": Entry(
        "gsd",
        "types, diameters, masses, velocities, orientations; links and edges as bonds, triangles as angles; energies "
        "and ids as log. Needs ``pip install 'medyanpy[viewers]'``",
    ),
    ".pdb": Entry("pdb", "names, residues, bonds; at most 99 999 atoms. In rows without a bead the occupancy is 0"),
    ".ply": Entry("ply", "the triangles of one membrane in one frame. More: ``out.vesicle.0000.ply``, ..."),
    ".simularium": Entry(
        "simularium", "balls and fibres, and plots of energies, for the viewer at simularium.allencell.org"
    ),
    ".vtkhdf": Entry(
        "vtkhdf",
        "for ParaView and PyVista, of virtual datasets: it shows what is in the files of the trajectory, beside which "
        "it must stay. The first membrane is `out`, every other handle ``out.NAME.vtkhdf``. Where no bead is, "
        "positions are nan, and no cell is drawn",
    ),
    ".xyz": Entry(
        "xyz", "extended XYZ: types, velocities, radii, masses, ids, orientations and semi-axes, in full precision"
    ),
}


@dataclass(frozen=True)
class ExportReport:
    """Report of what `export` has written.

    Attributes
    ----------
    paths : tuple of Path
        Of the files.
    n_frames : int
    left_out : tuple of str
        Sentences on what of the run the format cannot hold.
    """

    paths: tuple[Path, ...]
    n_frames: int
    left_out: tuple[str, ...]

    def __str__(self) -> str:
        frames = "1 frame" if self.n_frames == 1 else f"{self.n_frames} frames"
        files = str(self.paths[0]) if len(self.paths) == 1 else f"{len(self.paths)} files, the first {self.paths[0]}"
        return "\n".join([f"{frames} in {files}", *self.left_out])


@plainly_called
def export(
    source: str | os.PathLike[str] | Trajectory, out: str | os.PathLike[str], *, frames: slice | None = None,
    overwrite: bool = False
) -> ExportReport:  # fmt: skip
    """Write a trajectory in the format of another program.

    The ending of `out` names the format. Lengths are nm, in DCD and PDB Å; times are s, in DCD ps. Where beads come and
    go, GSD, extended XYZ and Simularium have in each frame those that are there, DCD, PDB and VTKHDF all rows.

    {formats}

    Periodic boxes are written frame by frame; in DCD and PDB those that are periodic in all directions, in PLY as a
    comment. Positions are inside in GSD, with the numbers of images, and as pictures show them in PLY and Simularium.
    Elsewhere they are unwrapped.

    Parameters
    ----------
    source : path or Trajectory
        What `TrajectoryReporter` wrote, with all segments.
    out : path
    frames : slice, optional
        Which frames, such as ``slice(0, None, 10)`` or ``slice(-1, None)``; all by default. It goes forwards.
    overwrite : bool
        Replace existing files. Without it, and wherever something goes wrong, what was there stays as it was.

    Returns
    -------
    ExportReport

    Raises
    ------
    ParameterError
        An ending of no format. A file that exists or is the source itself. A source that is not a trajectory, is
        damaged or without frames. An empty choice of frames, or what the format cannot hold at all.
    ImportError
        A format needs an extra that is not installed.
    OutputError
        A file cannot be written.

    Examples
    --------
    >>> import medyanpy as mp, tempfile, pathlib
    >>> topology = mp.Topology()
    >>> beads = topology.add_beads([[0.0, 0, 0], [1.0, 0, 0]], mass=1.0)
    >>> simulation = mp.Simulation(mp.System(topology), mp.VerletIntegrator(0.5))
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> with mp.reporters.TrajectoryReporter(folder / "run.h5", 10) as reporter:
    ...     simulation.reporters.append(reporter)
    ...     simulation.step(30)
    >>> report = mp.export(folder / "run.h5", folder / "run.simularium")
    >>> report.n_frames
    3
    >>> report.left_out[0]
    'Simularium files are written without masses.'
    """
    out = file_path("export: out", out)
    if out.suffix.lower() not in FORMATS:
        raise ParameterError(
            f"export: files with the ending {out.suffix!r} are not written, only {', '.join(FORMATS)}: {out}"
        )
    if not (frames is None or isinstance(frames, slice)):
        raise ParameterError(f"export: frames = {shown(frames)} but must be a slice, such as slice(0, None, 10)")
    module = importlib.import_module(f"medyanpy.files.exports.{FORMATS[out.suffix.lower()].module}")
    writer: type[Format] = module.FORMAT
    writer.check_installed()
    with _opened(source) as trajectory:
        form = writer(Contents(trajectory), _chosen(trajectory, frames), out)
        form.check()
        paths = form.paths()
        for path in paths:
            if any(_is_same(path, there) for there in trajectory.paths):
                raise ParameterError(f"export: {path} is the trajectory itself")
            new_file("export", path, overwrite=overwrite)
            check_replaceable("export", path)
            remove_left_over(path)
        with made_beside("export", paths) as made:
            form.write(made)
        return ExportReport(tuple(paths), len(form.frames), tuple(form.left_out()))


if export.__doc__ is not None:
    export.__doc__ = export.__doc__.replace(
        "    {formats}",
        "\n".join(
            f"    ``{ending}``\n" + textwrap.fill(entry.about, 120, initial_indent=8 * " ", subsequent_indent=8 * " ")
            for ending, entry in FORMATS.items()
        ),
    )


@contextmanager
def _opened(source: str | os.PathLike[str] | Trajectory) -> Iterator[Trajectory]:
    """Open a trajectory; one that is given as such stays open."""
    if isinstance(source, Trajectory):
        yield source
    else:
        with Trajectory(source) as trajectory:
            yield trajectory


def _chosen(trajectory: Trajectory, frames: slice | None) -> range:
    what = trajectory.paths[0]
    if not len(trajectory):
        raise ParameterError(f"export: {what} holds no frames")
    try:
        chosen = range(len(trajectory))[frames or slice(None)]
    except (TypeError, ValueError) as cause:
        raise ParameterError(f"export: frames = {frames} is not a slice of frames: {cause}") from cause
    if chosen.step < 0:
        raise ParameterError(f"export: frames = {frames} goes backwards; times go forwards")
    if not chosen:
        raise ParameterError(f"export: frames = {frames} are none of the {len(trajectory)} frames of {what}")
    return chosen


def _is_same(path: Path, other: Path) -> bool:
    with suppress(OSError):
        return os.path.samefile(path, other)
    return False
