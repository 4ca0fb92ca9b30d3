"""``medyanpy demo``."""

import argparse
import sys
from typing import TYPE_CHECKING, Any

from medyanpy.cli.codes import DONE, FAILED
from medyanpy.errors import ParameterError

if TYPE_CHECKING:
    from medyanpy.demo.registry import Entry

__all__ = ["add", "run"]

_FIRST = "points"


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]", whole: bool = True) -> argparse.ArgumentParser:
    """Add the command and, with `whole`, its options as the registry of demos has them."""
    demo = commands.add_parser("demo", help="simulate cells at work, and compare with theory")
    if whole:
        _add_options(demo)
    return demo


def _add_options(demo: argparse.ArgumentParser) -> None:
    from medyanpy.demo import DEMOS
    from medyanpy.demo.report import OUTPUTS

    others = [name for name in DEMOS if name != _FIRST]
    files = f"{', '.join(OUTPUTS[:-1])} and {OUTPUTS[-1]}"
    more: dict[str, list[str]] = {}
    for name, entry in DEMOS.items():
        for file in set(entry.outputs) - set(OUTPUTS):
            more.setdefault(file, []).append(name)
    too = "; ".join(f"{', '.join(names)}: {file} too" for file, names in more.items())
    demo.description = (
        " ".join(f"{name}: {DEMOS[name].about}." for name in (_FIRST, *others))
        + f" Each writes {files} ({too}), and prints what was measured beside what theory expects. Takes under a "
        "minute on two cores."
    )
    demo.add_argument("which", nargs="?", choices=sorted(DEMOS), default=_FIRST, help="default: %(default)s")
    for name, owners in _owners(DEMOS).items():
        option = DEMOS[owners[0]].options[name]
        kind: dict[str, Any] = {"metavar": "FILE"} if option.at_least is None else {"type": int, "metavar": "N"}
        usual = f" (default: {option.default})" * (option.default is not None)
        demo.add_argument(f"--{name}", help=f"{', '.join(owners)}: {option.about}{usual}", **kind)
    steps = {name: entry.options["steps"].usual or entry.options["steps"].default for name, entry in DEMOS.items()}
    usual = f"{steps[_FIRST]}; {', '.join(f'{name} {steps[name]}' for name in others)}"
    demo.add_argument("--steps", type=int, metavar="N", help=f"time steps (default: {usual})")
    demo.add_argument("--threads", type=int, metavar="N", help="default: as many as the machine offers")
    demo.add_argument("--seed", type=int, metavar="N", help="of the noise (default: 1)")
    out = f"folder for the files (default: ./medyanpy-demo; of the others ./medyanpy-demo-{others[0]} and so on)"
    demo.add_argument("--out", metavar="DIR", help=out)
    demo.add_argument("--overwrite", action="store_true", help="replace the files of an earlier demo")


def _owners(demos: "dict[str, Entry]") -> dict[str, list[str]]:
    """Find the demos that take each option that not all demos take."""
    out: dict[str, list[str]] = {}
    for which in sorted(demos, key=lambda which: which != _FIRST):
        for name in demos[which].options:
            if name != "steps":
                out.setdefault(name, []).append(which)
    return out


def run(options: argparse.Namespace) -> int:
    """Run a demo; the exit code is 1 if a line of its table reads CHECK."""
    from medyanpy.demo import DEMOS

    entry = DEMOS[options.which]
    for name, owners in _owners(DEMOS).items():
        if name not in entry.options and getattr(options, name) is not None:
            known = "', '".join(owners)
            raise ParameterError(f"--{name} is for 'medyanpy demo {known}', not for 'demo {options.which}'")
    common = ("out", "threads", "seed", "overwrite")
    # Options that are not given have the defaults of the demo.
    given = {name: getattr(options, name) for name in (*common, *entry.options) if getattr(options, name) is not None}
    done = entry.run(**given)
    wrong = [line.quantity for line in done.lines if line.verdict == "CHECK"]
    if wrong:
        print(f"medyanpy: not as expected (CHECK in the table): {'; '.join(wrong)}", file=sys.stderr)
    return FAILED if wrong else DONE
