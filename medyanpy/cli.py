"""The command ``medyanpy``."""

import argparse
import sys
from collections.abc import Sequence

from medyanpy._version import __version__
from medyanpy.errors import MedyanError, SimulationError

__all__ = ["main"]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="medyanpy", description="Mechanics of cells: proteins on living membranes under Langevin dynamics."
    )
    parser.add_argument("--version", action="version", version=f"medyanpy {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    demo = commands.add_parser(
        "demo",
        help="simulate proteins on a cell membrane and compare with theory",
        description="Simulates mutually repelling proteins on a thermally undulating red blood cell, or on a mesh of "
        "your own; writes trajectory.h5, state.csv, run.checkpoint, summary.json and picture.png; and prints what "
        "was measured beside what theory expects. Takes under a minute on two cores.",
    )
    demo.add_argument("--mesh", metavar="FILE", help="PLY, OBJ, OFF or STL file; scaled to 8 µm")
    demo.add_argument("--points", type=int, default=2000, metavar="N", help="proteins (default: %(default)s)")
    demo.add_argument("--steps", type=int, default=6000, metavar="N", help="time steps (default: %(default)s)")
    demo.add_argument("--threads", type=int, metavar="N", help="default: as many as the machine offers")
    demo.add_argument("--seed", type=int, default=1, metavar="N", help="of the noise (default: %(default)s)")
    demo.add_argument(
        "--out", default="medyanpy-demo", metavar="DIR", help="folder for the files (default: ./%(default)s)"
    )
    demo.add_argument("--overwrite", action="store_true", help="replace the files of an earlier demo")
    commands.add_parser("info", help="show version, threads and optional parts")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments after the name of the command; those of the process where none are given.

    Returns
    -------
    int
        0; 1 for a run that failed; 2 for input that cannot be used, of which one line on standard error says why.
    """
    parser = _parser()
    options = parser.parse_args(argv)
    if options.command is None:
        parser.print_help()
        return 0
    try:
        if options.command == "info":
            from medyanpy.info import information

            rows = information()
            width = max(len(name) for name, _ in rows)
            for name, value in rows:
                print(f"{name:<{width}}  {value}")
        else:
            from medyanpy.demo import run_demo

            run_demo(
                options.out,
                mesh=options.mesh,
                points=options.points,
                steps=options.steps,
                threads=options.threads,
                seed=options.seed,
                overwrite=options.overwrite,
            )
    except SimulationError as error:
        print(f"medyanpy: the run failed: {error}", file=sys.stderr)
        return 1
    except (MedyanError, ImportError) as error:
        print(f"medyanpy: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"medyanpy: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("medyanpy: interrupted; what was reported so far is in the output files", file=sys.stderr)
        return 130
    return 0
