"""Remake the figures and tables of five texts, and those of chemistry, and print their numbers beside the published
ones.

    python tests/validation/figures [--quick] [--list] [--seed ...] [--only ...] [--out DIR]

The texts are 000 in-triangle points (MEDYAN.jl), 001 linearly implicit integrators (Tao and Owhadi), 002 rigid bodies
(Kaynak), 003 billiards on surfaces, 004 elastic rods (Ladd and Misra); those of chemistry are of several. Writes a PNG
(--format: SVG or PDF) or GIF of each figure, numbers.csv and summary.json. --quick takes about three minutes on two
cores; --list says how long each figure takes.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from medyanpy.errors import MedyanError, OutputError, SimulationError

# This folder is a package, beside those of the programs that it runs.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from figures import FORMATS, choose, make_figures


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; the exit code is 1 if a run fails, a number says CHECK or something is left out, 2 if it cannot
    begin."""
    parser = argparse.ArgumentParser(prog="figures", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("--seed", nargs="+", metavar="N", help="only of these: 000, 001, 002, 003, 004, chemistry")
    parser.add_argument("--only", nargs="+", metavar="NAME",
                        help="only these figures, by names as --list has them, or by text")  # fmt: skip
    parser.add_argument("--quick", action="store_true", help="smaller samples and shorter runs, stated on each figure")
    parser.add_argument("--list", action="store_true", help="list the figures and how long they take; make none")
    parser.add_argument("--structure", metavar="FILE", help="PDB or mmCIF file of a channel with five subunits (002)")
    parser.add_argument("--threads", type=int, metavar="N", help="default: as many as the machine offers")
    parser.add_argument("--format", choices=FORMATS, default="png", help="of pictures (%(default)s); films are GIFs")
    parser.add_argument("--dpi", type=float, metavar="N", help="dots per inch of pictures (110)")
    parser.add_argument("--out", default="medyanpy-figures", metavar="DIR", help="folder for the files (./%(default)s)")
    parser.add_argument("--overwrite", action="store_true", help="replace the files of an earlier call")
    options = parser.parse_args(argv)
    try:
        plates = choose(options.seed, options.only)
        if options.list:
            width = max(len(plate.name) for plate in plates)
            print(f"{'':<{width}}  quick   full  of the text")
            for plate in plates:
                quick, full = plate.seconds
                print(f"{plate.name:<{width}}  {quick:3.0f} s {full:4.0f} s  {plate.number}: {plate.title}")
            return 0
        report = make_figures(plates, options.out, quick=options.quick, threads=options.threads,
                              structure=options.structure, overwrite=options.overwrite, kind=options.format,
                              dpi=options.dpi)  # fmt: skip
    except MedyanError as error:
        print(f"figures: {str(error).removeprefix('figures: ')}", file=sys.stderr)
        return 1 if isinstance(error, SimulationError | OutputError) else 2
    wrong = report.with_verdict("CHECK")
    if wrong:
        print(f"figures: not as expected (CHECK in the tables): {'; '.join(wrong)}", file=sys.stderr)
    if report.left_out:
        print(f"figures: left out, in whole or in part: {', '.join(report.left_out)}", file=sys.stderr)
    return 1 if wrong or report.left_out else 0


if __name__ == "__main__":
    sys.exit(main())
