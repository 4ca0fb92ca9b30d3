"""``medyanpy export``."""

import argparse

from medyanpy.cli.codes import DONE
from medyanpy.errors import ParameterError
from medyanpy.files.exports.exporting import FORMATS

__all__ = ["add", "frames_of", "run"]


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> argparse.ArgumentParser:
    """Add the command and its options."""
    parser = commands.add_parser(
        "export",
        help="write a trajectory in the format of other programs",
        description="Writes the frames of a trajectory in another format, which the ending of OUT says: "
        f"{', '.join(FORMATS)}. What the format cannot hold is named.",
    )
    parser.add_argument("source", metavar="RUN.h5", help="a file of TrajectoryReporter")
    parser.add_argument("out", metavar="OUT", help="the file to write")
    parser.add_argument(
        "--frames", metavar="A:B:C", help="which frames, as Python slices them: 10, -1, ::10, 100:200 (default: all)"
    )
    parser.add_argument("--overwrite", action="store_true", help="replace files that are there")
    return parser


def run(options: argparse.Namespace) -> int:
    """Run the command; return the exit code."""
    from medyanpy.files.exports import export

    frames = None if options.frames is None else frames_of(options.frames)
    # The files, and what the format could not hold.
    print(export(options.source, options.out, frames=frames, overwrite=options.overwrite))
    return DONE


def frames_of(text: str) -> slice:
    """Return the slice that text means; of one number, that frame alone."""
    try:
        parts = [int(part) if part.strip() else None for part in text.split(":")]
        if len(parts) > 3 or (len(parts) == 1 and parts[0] is None) or (len(parts) == 3 and parts[2] == 0):
            raise ValueError
    except ValueError:
        raise ParameterError(f"--frames {text!r} must be a number or a slice, such as 10, ::10 or 100:200") from None
    if len(parts) == 1 and parts[0] is not None:
        # The last has no number after it.
        return slice(parts[0], parts[0] + 1 or None)
    return slice(*parts)
