"""``medyanpy demo``."""

import argparse
import sys

from medyanpy.cli.codes import DONE, FAILED
from medyanpy.errors import ParameterError

__all__ = ["DEMOS", "add", "run"]

# The function that runs each demo, and the options that are only for it.
DEMOS: dict[str, tuple[str, tuple[str, ...]]] = {
    "points": ("run_demo", ("mesh", "points")),
    "filaments": ("run_filament_demo", ("filaments",)),
    "network": ("run_network_demo", ("filaments",)),
    "protein": ("run_protein_demo", ("proteins",)),
    "surface": ("run_surface_demo", ("walkers",)),
    "rigid": ("run_rigid_demo", ("bodies",)),
    "rod": ("run_rod_demo", ("segments", "rods")),
    "membrane": ("run_membrane_demo", ("frequency", "curved")),
}


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> argparse.ArgumentParser:
    """The command and its options."""
    demo = commands.add_parser(
        "demo",
        help="simulate proteins on a cell membrane, actin filaments in a vesicle, filaments that link themselves, "
        "proteins in water near a membrane, beads on a surface, rigid bodies, elastic rods, or a tether pulled from a "
        "fluid vesicle, and compare with theory",
        description="points: mutually repelling proteins on a thermally undulating red blood cell, or on a mesh of "
        "your own. filaments: actin filaments inside a vesicle, some of them tied to proteins of its membrane. "
        "network: filaments in a vesicle that crosslinkers bind to each other and let go. "
        "protein: adenylate kinases of three rigid domains in water, around a vesicle. "
        "surface: beads that fall along a surface with two holes, without units. rigid: ellipsoids in a trap, and "
        "spinning tops. rod: an elastic rod, bent into a circle and let go, without units. "
        "membrane: a tether that is pulled from a fluid vesicle, with curved proteins that gather on it. Each writes "
        "trajectory.h5, state.csv, run.checkpoint, summary.json and picture.png (surface, membrane: movie.gif too), "
        "and prints what was measured beside what theory expects. Takes under a minute on two cores.",
    )
    demo.add_argument("which", nargs="?", choices=sorted(DEMOS), default="points", help="default: %(default)s")
    demo.add_argument("--mesh", metavar="FILE", help="points: PLY, OBJ, OFF or STL file; scaled to 8 µm")
    demo.add_argument("--points", type=int, metavar="N", help="points: proteins (default: 2000)")
    demo.add_argument("--filaments", type=int, metavar="N", help="filaments, network: how many of them (default: 300)")
    demo.add_argument("--proteins", type=int, metavar="N", help="protein: how many of them (default: 12)")
    demo.add_argument("--walkers", type=int, metavar="N", help="surface: Brownian points (default: 4000)")
    demo.add_argument("--bodies", type=int, metavar="N", help="rigid: ellipsoids in the trap (default: 400)")
    demo.add_argument("--segments", type=int, metavar="N", help="rod: of the rod that is drawn (default: 63)")
    demo.add_argument("--rods", type=int, metavar="N", help="rod: thermal rods (default: 200)")
    demo.add_argument("--frequency", type=int, metavar="N", help="membrane: size of the vesicle (default: 12)")
    demo.add_argument("--curved", type=int, metavar="N", help="membrane: curved proteins (default: 200)")
    demo.add_argument(
        "--steps",
        type=int,
        metavar="N",
        help="time steps (default: 6000; filaments 10000, network 6000, protein 8000, surface 2000, rigid 8000, rod "
        "1500 t0, membrane 30000)",
    )
    demo.add_argument("--threads", type=int, metavar="N", help="default: as many as the machine offers")
    demo.add_argument("--seed", type=int, metavar="N", help="of the noise (default: 1)")
    demo.add_argument(
        "--out",
        metavar="DIR",
        help="folder for the files (default: ./medyanpy-demo; of the others ./medyanpy-demo-filaments and so on)",
    )
    demo.add_argument("--overwrite", action="store_true", help="replace the files of an earlier demo")
    return demo


def run(options: argparse.Namespace) -> int:
    """The exit code: 1 if a line of the table says CHECK."""
    from medyanpy import demo

    function, own = DEMOS[options.which]
    for name in dict.fromkeys(name for _, names in DEMOS.values() for name in names):
        if name not in own and getattr(options, name) is not None:
            owners = " and ".join(f"'medyanpy demo {which}'" for which, (_, names) in DEMOS.items() if name in names)
            raise ParameterError(f"--{name} is for {owners}, not for 'demo {options.which}'")
    common = ("out", "steps", "threads", "seed", "overwrite")
    # What is not given is left to the defaults of the function.
    given = {name: getattr(options, name) for name in (*common, *own) if getattr(options, name) is not None}
    done = getattr(demo, function)(**given)
    wrong = [line.quantity for line in done.lines if line.verdict == "CHECK"]
    if wrong:
        print(f"medyanpy: not as expected (CHECK in the table): {'; '.join(wrong)}", file=sys.stderr)
    return FAILED if wrong else DONE
