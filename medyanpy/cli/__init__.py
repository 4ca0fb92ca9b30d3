# PYTHON_ARGCOMPLETE_OK
"""The command ``medyanpy``: a module for each of its commands, with its options (`add`) and what it does (`run`)."""

import argparse
import os
import sys
from collections.abc import Sequence

from medyanpy._version import __version__
from medyanpy.cli import bench, demo, export, figures, info, installation, run
from medyanpy.cli.codes import BAD_INPUT, DONE, EXIT_CODES, FAILED, INTERRUPTED
from medyanpy.errors import MedyanError, OutputError, SimulationError

__all__ = ["main"]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="medyanpy",
        description="Mechanics of cells: proteins on living membranes under Langevin dynamics.",
        epilog="exit codes:\n" + "\n".join(f"  {code:<4}{meaning}" for code, meaning in EXIT_CODES.items()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"medyanpy {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for add, act in (
        (demo.add, demo.run),
        (info.add, info.run),
        (run.add_run, run.run),
        (run.add_resume, run.resume),
        (export.add, export.run),
        (figures.add, figures.run),
        (bench.add, bench.run),
        (installation.add, installation.run),
    ):
        add(commands).set_defaults(act=act)
    return parser


def _complete(parser: argparse.ArgumentParser) -> None:
    """Answer a shell that asks for completions, by the extra `completion`."""
    # Shells say that it is them who call; looking for the extra at every call would take time.
    if "_ARGCOMPLETE" in os.environ:
        try:
            import argcomplete  # type: ignore[import-not-found, unused-ignore]
        except ImportError:
            return
        argcomplete.autocomplete(parser)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments after the name of the command; those of the process where none are given.

    Returns
    -------
    int
        0; 1 for a run that failed, or a demo, figure or test that found something else than is expected; 2 for input
        that cannot be used; 3 for a run that ended in time, before it was done: call it again; 130 for Ctrl-C. One line
        on standard error says why.
    """
    parser = _parser()
    _complete(parser)
    options = parser.parse_args(argv)
    if options.command is None:
        parser.print_help()
        return DONE
    try:
        return int(options.act(options))
    except SimulationError as error:
        print(f"medyanpy: the run failed: {error}", file=sys.stderr)
        return FAILED
    except OutputError as error:
        print(f"medyanpy: {error}", file=sys.stderr)
        return FAILED
    except (MedyanError, ImportError, OSError) as error:
        print(f"medyanpy: {error}", file=sys.stderr)
        return BAD_INPUT
    except KeyboardInterrupt:
        print("medyanpy: interrupted; what was reported so far is in the output files", file=sys.stderr)
        return INTERRUPTED
