# PYTHON_ARGCOMPLETE_OK
"""Command ``medyanpy``: a module for each of its commands, with its options (`add`) and what it does (`run`)."""

import argparse
import os
import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial

from medyanpy._version import __version__
from medyanpy.cli import bench, demo, export, info, installation, run
from medyanpy.cli.codes import BAD_INPUT, DONE, EXIT_CODES, FAILED, INTERRUPTED, PIPE_CLOSED, TOO_LITTLE_TIME
from medyanpy.errors import MedyanError, OutputError, SimulationError, WalltimeError

__all__ = ["main"]


def _parser(demos: bool = True) -> argparse.ArgumentParser:
    """Build the parser; the options of demos are those of a registry that takes time to load."""
    parser = argparse.ArgumentParser(
        prog="medyanpy",
        description="Mechanics of cells: proteins on living membranes under Langevin dynamics.",
        epilog="exit codes:\n" + "\n".join(f"  {code:<4}{meaning}" for code, meaning in EXIT_CODES.items()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"medyanpy {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for add, act in (
        (partial(demo.add, whole=demos), demo.run),
        (info.add, info.run),
        (run.add_run, run.run),
        (run.add_resume, run.resume),
        (export.add, export.run),
        (bench.add, bench.run),
        (installation.add, installation.run),
    ):
        add(commands).set_defaults(act=act)
    return parser


def _complete(parser: argparse.ArgumentParser) -> None:
    """Answer a shell that asks for completions, by the extra `completion`."""
    # Shells set a variable when they call; looking for the extra at every call would take time.
    if "_ARGCOMPLETE" in os.environ:
        try:
            import argcomplete  # type: ignore[import-not-found, unused-ignore]
        except ImportError:
            return
        argcomplete.autocomplete(parser)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command with these arguments, or those of the process; return one of `medyanpy.cli.codes.EXIT_CODES`.

    One line on standard error tells why it is not 0.
    """
    words = sys.argv[1:] if argv is None else argv
    parser = _parser(demos="demo" in words or "_ARGCOMPLETE" in os.environ)
    _complete(parser)
    options = parser.parse_args(argv)
    if options.command is None:
        parser.print_help()
        return DONE
    try:
        with _plain_warnings():
            code = int(options.act(options))
            # Here, where a reader that is gone can be told from a failure.
            sys.stdout.flush()
            return code
    except SimulationError as error:
        return _said(f"the run failed: {error}", FAILED)
    except OutputError as error:
        return _said(str(error), FAILED)
    except BrokenPipeError:
        with suppress(OSError, ValueError):
            # Python writes the rest of the buffer when it ends.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PIPE_CLOSED
    except WalltimeError as error:
        return _said(str(error), TOO_LITTLE_TIME)
    except (MedyanError, ImportError, OSError) as error:
        # An argument in Python is an option here.
        text = re.sub(
            r"\b(\w+)=True\b", lambda found: f"--{found[1]}" if hasattr(options, found[1]) else found[0], str(error)
        )
        return _said(text, BAD_INPUT)
    except KeyboardInterrupt:
        return _said("interrupted; what was reported so far is in the output files", INTERRUPTED)


def _said(text: str, code: int) -> int:
    """Write the reason to standard error; return the exit code."""
    print(f"medyanpy: {text}", file=sys.stderr)
    return code


@contextmanager
def _plain_warnings() -> Iterator[None]:
    """Show warnings without the line of the script that started the command."""
    before = warnings.formatwarning
    warnings.formatwarning = lambda message, category, *where: f"medyanpy: {category.__name__}: {message}\n"
    try:
        yield
    finally:
        warnings.formatwarning = before
