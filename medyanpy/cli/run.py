"""``medyanpy run`` and ``medyanpy resume``."""

import argparse
import runpy
from pathlib import Path
from typing import Any

from medyanpy.cli.codes import DONE, TIME_UP
from medyanpy.errors import ParameterError

__all__ = ["add_resume", "add_run", "resume", "run"]

# Options that only documents have, whose reporters nothing else describes.
_OF_DOCUMENTS = ("trajectory", "table", "checkpoint")


def add_run(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> argparse.ArgumentParser:
    """Add the command and its options."""
    parser = commands.add_parser(
        "run",
        help="run a script or document in a folder of its own: start, resume, or find it done",
        description="Runs a simulation in a folder of its own, up to a step. The same words start it, resume it "
        "after it was stopped or killed, and find that it is done; its files are in the end those of a run that "
        "nothing happened to, bit for bit. Exit code 0: done; 3: time is up, call again.",
    )
    parser.add_argument(
        "target", metavar="TARGET",
        help="a Python script that defines make(directory), which returns a Simulation whose reporters write into that "
        "folder, and possibly functions, a dict of those of Python forces; a document of a Simulation "
        "(medyanpy.serialize); or the folder of a run that has begun",
    )  # fmt: skip
    _add_common(parser)
    parser.add_argument(
        "--dir", metavar="DIR", help="folder of the run (default: the name of TARGET without its ending)"
    )
    parser.add_argument("--trajectory", type=int, metavar="N", help="documents: steps between frames (default: 1000)")
    parser.add_argument("--table", type=int, metavar="N", help="documents: steps between rows (default: 100)")
    parser.add_argument(
        "--checkpoint", type=int, metavar="N", help="documents: steps between checkpoints (default: by the clock)"
    )
    return parser


def add_resume(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> argparse.ArgumentParser:
    """Add the command and its options."""
    parser = commands.add_parser(
        "resume",
        help="resume from a checkpoint, with the reporters that are in it",
        description="Resumes from a checkpoint up to a step, in the files of its reporters, and saves the last step in "
        "its place. Exit code 0: done; 3: time is up, call again.",
    )
    parser.add_argument("file", metavar="FILE", help="a checkpoint")
    _add_common(parser)
    return parser


def _add_common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--until", type=int, metavar="N", required=True, help="the step at which the run is done")
    parser.add_argument(
        "--walltime", metavar="T",
        help="how long this call may take: seconds, or such as 50m, 1h30m, 1-02:30:00 (default: as long as it takes)",
    )  # fmt: skip
    parser.add_argument("--threads", type=int, metavar="N", help="default: as many as the machine offers")


def run(options: argparse.Namespace) -> int:
    """Run the command; return the exit code."""
    from medyanpy.files.checkpoint import is_checkpoint
    from medyanpy.runs import CHECKPOINT, FromDocument
    from medyanpy.runs import run as run_in

    target = Path(options.target)
    given = {name: getattr(options, name) for name in _OF_DOCUMENTS if getattr(options, name) is not None}
    functions = None
    directory = Path(target.stem) if options.dir is None else Path(options.dir)
    if not target.exists():
        raise ParameterError(f"{target} does not exist: give a script, a document, or the folder of a run")
    if target.is_dir():
        if options.dir is not None:
            raise ParameterError(f"{target} is the folder of a run already: --dir is for scripts and documents")
        if not (target / CHECKPOINT).exists():
            raise ParameterError(f"{target} holds no {CHECKPOINT}: a run begins with a script or a document")
        make: Any = None
        directory = target
    elif target.suffix == ".py":
        make, functions = _script(target)
    elif is_checkpoint(target):
        raise ParameterError(f"{target} is a checkpoint: medyanpy resume {target}")
    else:
        make = FromDocument(target, **given)
    if given and not isinstance(make, FromDocument):
        raise ParameterError(f"--{next(iter(given))} is for documents; here reporters are those of {target}")
    outcome = run_in(
        directory, make, until=options.until, walltime=options.walltime, threads=options.threads, functions=functions
    )
    return _told(str(directory), outcome, options.until)


def resume(options: argparse.Namespace) -> int:
    """Run the command; return the exit code."""
    from medyanpy.runs import run as run_in

    outcome = run_in(options.file, until=options.until, walltime=options.walltime, threads=options.threads)
    return _told(options.file, outcome, options.until)


def _told(name: str, outcome: Any, until: int) -> int:
    """Print how the run ended, and return the exit code."""
    if outcome.finished:
        how = "was done before" if outcome.action == "was done" else "done"
    else:
        how = f"time is up, call again for the {until - outcome.step} steps that are left"
    print(f"{name}: step {outcome.step} of {until}: {how}")
    return DONE if outcome.finished else TIME_UP


def _script(path: Path) -> tuple[Any, Any]:
    """Load what a script calls `make`, and `functions`, if it has any. It is not run as a program:
    ``if __name__ == "__main__"`` keeps what is."""
    import sys

    # As for a program, what lies beside it can be imported.
    sys.path.insert(0, str(path.resolve().parent))
    try:
        names = runpy.run_path(str(path), run_name=path.stem)
    except SyntaxError as error:
        raise ParameterError(f"{path} is not a Python script: line {error.lineno}: {error.msg}") from error
    if not callable(names.get("make")):
        raise ParameterError(
            f"{path} defines no make: write `def make(directory):`, which returns a Simulation whose reporters write "
            "into that folder"
        )
    return names["make"], names.get("functions")
