"""The command ``medyanpy``."""

import argparse
import sys
from collections.abc import Sequence

from medyanpy._version import __version__
from medyanpy.errors import MedyanError, ParameterError, SimulationError

__all__ = ["main"]


# The function that runs each demo, and the options that are only for it.
_DEMOS = {
    "points": ("run_demo", ("mesh", "points")),
    "filaments": ("run_filament_demo", ("filaments",)),
    "network": ("run_network_demo", ("filaments",)),
    "protein": ("run_protein_demo", ("proteins",)),
    "surface": ("run_surface_demo", ("walkers",)),
    "rigid": ("run_rigid_demo", ("bodies",)),
    "rod": ("run_rod_demo", ("segments", "rods")),
}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="medyanpy", description="Mechanics of cells: proteins on living membranes under Langevin dynamics."
    )
    parser.add_argument("--version", action="version", version=f"medyanpy {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    demo = commands.add_parser(
        "demo",
        help="simulate proteins on a cell membrane, actin filaments in a vesicle, filaments that link themselves, "
        "proteins in water near a membrane, beads on a surface, rigid bodies, or elastic rods, and compare with theory",
        description="points: mutually repelling proteins on a thermally undulating red blood cell, or on a mesh of "
        "your own. filaments: actin filaments inside a vesicle, some of them tied to proteins of its membrane. "
        "network: filaments in a vesicle that crosslinkers bind to each other and let go. "
        "protein: adenylate kinases of three rigid domains in water, around a vesicle. "
        "surface: beads that fall along a surface with two holes, without units. rigid: ellipsoids in a trap, and "
        "spinning tops. rod: an elastic rod, bent into a circle and let go, without units. Each writes trajectory.h5, "
        "state.csv, run.checkpoint, summary.json and picture.png (surface: movie.gif too), and prints what was "
        "measured beside what theory expects. Takes under a minute on two cores.",
    )
    demo.add_argument("which", nargs="?", choices=sorted(_DEMOS), default="points", help="default: %(default)s")
    demo.add_argument("--mesh", metavar="FILE", help="points: PLY, OBJ, OFF or STL file; scaled to 8 µm")
    demo.add_argument("--points", type=int, metavar="N", help="points: proteins (default: 2000)")
    demo.add_argument("--filaments", type=int, metavar="N", help="filaments, network: how many of them (default: 300)")
    demo.add_argument("--proteins", type=int, metavar="N", help="protein: how many of them (default: 12)")
    demo.add_argument("--walkers", type=int, metavar="N", help="surface: Brownian points (default: 4000)")
    demo.add_argument("--bodies", type=int, metavar="N", help="rigid: ellipsoids in the trap (default: 400)")
    demo.add_argument("--segments", type=int, metavar="N", help="rod: of the rod that is drawn (default: 63)")
    demo.add_argument("--rods", type=int, metavar="N", help="rod: thermal rods (default: 200)")
    demo.add_argument(
        "--steps",
        type=int,
        metavar="N",
        help="time steps (default: 6000; filaments 10000, network 6000, protein 8000, surface 2000, rigid 8000, rod "
        "1500 t0)",
    )
    demo.add_argument("--threads", type=int, metavar="N", help="default: as many as the machine offers")
    demo.add_argument("--seed", type=int, metavar="N", help="of the noise (default: 1)")
    demo.add_argument(
        "--out",
        metavar="DIR",
        help="folder for the files (default: ./medyanpy-demo; of the others ./medyanpy-demo-filaments and so on)",
    )
    demo.add_argument("--overwrite", action="store_true", help="replace the files of an earlier demo")
    figures = commands.add_parser(
        "figures",
        help="remake the figures and tables of the texts that this package rests on, beside their numbers",
        description="Remakes the figures and tables of five texts: 000 in-triangle points (MEDYAN.jl), 001 linearly "
        "implicit integrators (Tao and Owhadi), 002 rigid bodies (Kaynak), 003 billiards on surfaces, 004 elastic rods "
        "(Ladd and Misra). Writes a PNG or GIF of each, numbers.csv and summary.json, and prints what was measured "
        "beside what the text has. --quick takes about two minutes on two cores; --list says how long each takes.",
    )
    figures.add_argument("--seed", nargs="+", metavar="N", help="only of these texts: 000, 001, 002, 003, 004")
    figures.add_argument("--only", nargs="+", metavar="NAME", help="only these figures, by names as --list has them")
    figures.add_argument("--quick", action="store_true", help="smaller samples and shorter runs, stated on each figure")
    figures.add_argument("--list", action="store_true", help="list the figures and how long they take; make none")
    figures.add_argument("--structure", metavar="FILE", help="PDB or mmCIF file of a channel with five subunits (002)")
    figures.add_argument(
        "--references", metavar="DIR", help="tests/validation of the source tree: methods that 001 and 004 compare with"
    )
    figures.add_argument("--threads", type=int, metavar="N", help="default: as many as the machine offers")
    figures.add_argument("--out", metavar="DIR", help="folder for the files (default: ./medyanpy-figures)")
    figures.add_argument("--overwrite", action="store_true", help="replace the files of an earlier call")
    commands.add_parser("info", help="show version, threads and optional parts")
    return parser


def _demo(options: argparse.Namespace) -> int:
    """The exit code: 1 if a line of the table says CHECK."""
    from medyanpy import demo

    run, own = _DEMOS[options.which]
    for name in dict.fromkeys(name for _, names in _DEMOS.values() for name in names):
        if name not in own and getattr(options, name) is not None:
            owners = " and ".join(f"'medyanpy demo {which}'" for which, (_, names) in _DEMOS.items() if name in names)
            raise ParameterError(f"--{name} is for {owners}, not for 'demo {options.which}'")
    common = ("out", "steps", "threads", "seed", "overwrite")
    # What is not given is left to the defaults of the function.
    given = {name: getattr(options, name) for name in (*common, *own) if getattr(options, name) is not None}
    done = getattr(demo, run)(**given)
    wrong = [line.quantity for line in done.lines if line.verdict == "CHECK"]
    if wrong:
        print(f"medyanpy: not as expected (CHECK in the table): {'; '.join(wrong)}", file=sys.stderr)
    return int(bool(wrong))


def _figures(options: argparse.Namespace) -> int:
    """The exit code: 1 if a number says CHECK. What cannot be made here is left out, and is no failure."""
    from medyanpy.figures import choose, make_figures

    plates = choose(options.seed, options.only)
    if options.list:
        width = max(len(plate.name) for plate in plates)
        print(f"{'':<{width}}  quick   full  of the text")
        for plate in plates:
            quick, full = plate.seconds
            print(f"{plate.name:<{width}}  {quick:3.0f} s {full:4.0f} s  {plate.number}: {plate.title}")
        return 0
    report = make_figures(
        plates,
        options.out or "medyanpy-figures",
        quick=options.quick,
        threads=options.threads,
        structure=options.structure,
        references=options.references,
        overwrite=options.overwrite,
    )
    wrong = report.with_verdict("CHECK")
    if wrong:
        print(f"medyanpy: not as expected (CHECK in the tables): {'; '.join(wrong)}", file=sys.stderr)
    return int(bool(wrong))


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments after the name of the command; those of the process where none are given.

    Returns
    -------
    int
        0; 1 for a run that failed, or a demo or figure that measured something else than is expected; 2 for input that
        cannot be used. One line on standard error says why.
    """
    parser = _parser()
    options = parser.parse_args(argv)
    if options.command is None:
        parser.print_help()
        return 0
    try:
        if options.command == "info":
            from medyanpy._tools.info import information

            rows = information()
            width = max(len(name) for name, _ in rows)
            for name, value in rows:
                print(f"{name:<{width}}  {value}")
        elif options.command == "figures":
            return _figures(options)
        else:
            return _demo(options)
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
