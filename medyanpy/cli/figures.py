"""``medyanpy figures``."""

import argparse
import sys

from medyanpy.cli.codes import DONE, FAILED

__all__ = ["add", "run"]


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> argparse.ArgumentParser:
    """The command and its options."""
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
    return figures


def run(options: argparse.Namespace) -> int:
    """The exit code: 1 if a number says CHECK. What cannot be made here is left out, and is no failure."""
    from medyanpy.figures import choose, make_figures

    plates = choose(options.seed, options.only)
    if options.list:
        width = max(len(plate.name) for plate in plates)
        print(f"{'':<{width}}  quick   full  of the text")
        for plate in plates:
            quick, full = plate.seconds
            print(f"{plate.name:<{width}}  {quick:3.0f} s {full:4.0f} s  {plate.number}: {plate.title}")
        return DONE
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
    return FAILED if wrong else DONE
