"""Registry of the demos, which their functions, docstrings and the command line read."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from inspect import Parameter, Signature
from typing import Any, TextIO

from medyanpy._tools.validation import whole_number
from medyanpy.demo.report import OUTPUTS, Demo, Report


@dataclass(frozen=True)
class Option:
    """Option of a demo: its default, about in a few words, bounds of a whole number (`at_least` None: a file), and the
    default in words where it is not a number."""

    default: Any
    about: str
    at_least: int | None = 1
    at_most: int | None = None
    usual: str = ""

    def checked(self, name: str, value: Any) -> Any:
        if self.at_least is None or (value is None and self.default is None):
            return value
        return whole_number(name, value, at_least=self.at_least, at_most=self.at_most)

    def row(self, name: str) -> str:
        """Return an entry of a Parameters section."""
        kind = "path" if self.at_least is None else "int"
        if self.at_least is not None:
            kind += f", >= {self.at_least}" if self.at_most is None else f", {self.at_least} to {self.at_most}"
        usual = f"; {self.usual} where none are given" if self.usual else ""
        about = f"{self.about[0].upper()}{self.about[1:]}{usual}."
        return f"{name} : {kind}{', optional' * (self.default is None)}\n    {about}"


@dataclass(frozen=True)
class Entry:
    """Entry of the registry: what is simulated, the options (own ones, and the number of steps), names of files, and
    the function."""

    about: str
    options: dict[str, Option]
    outputs: tuple[str, ...]
    run: Callable[..., Demo]


DEMOS: dict[str, Entry] = {}  #: All demos, by name.

_DOC = """Simulate {about}; write files, and compare with theory.

Parameters
----------
out : path
    Folder for the files; made if need be.
{own}
threads : int, optional
seed : int
overwrite : bool
    Replace files of an earlier demo.
stream : text stream, optional
    Where to print; standard output where none is given.

Raises
------
ParameterError
    Numbers outside their domain, or files that exist.
MeshError
    A mesh that cannot carry a membrane.
SimulationError
    The run failed.
"""


def demo(
    name: str, about: str, *, steps: Option, more_outputs: Sequence[str] = (), **own: Option
) -> Callable[[Callable[..., Demo]], Callable[..., Demo]]:
    """Register a function ``f(report, **own options)`` as a demo, by its name on the command line and what is
    simulated; users call it with the options of all demos besides. `more_outputs` are names of files besides those of
    all demos."""
    options, outputs = {**own, "steps": steps}, (*OUTPUTS, *more_outputs)
    folder = "medyanpy-demo" + f"-{name}" * (name != "points")

    def made(f: Callable[..., Demo]) -> Callable[..., Demo]:
        def keyword(key: str, default: Any, kind: Any) -> Parameter:
            return Parameter(key, Parameter.KEYWORD_ONLY, default=default, annotation=kind)

        def kind(option: Option) -> Any:
            return Any if option.at_least is None else int if option.default is not None else int | None

        call = Signature(
            [
                Parameter("out", Parameter.POSITIONAL_OR_KEYWORD, default=folder, annotation=Any),
                *(keyword(key, option.default, kind(option)) for key, option in options.items()),
                keyword("threads", None, int | None),
                keyword("seed", 1, int),
                keyword("overwrite", False, bool),
                keyword("stream", None, TextIO | None),
            ],
            return_annotation=Demo,
        )

        @wraps(f)
        def run(*args: Any, **given: Any) -> Demo:
            bound = call.bind(*args, **given)
            bound.apply_defaults()
            mine = {key: bound.arguments.pop(key) for key in options}
            report = Report(**bound.arguments, outputs=outputs)
            mine = {key: option.checked(key, mine[key]) for key, option in options.items()}
            report.steps = mine.pop("steps")
            return f(report, **mine)

        run.__doc__ = _DOC.format(about=about, own="\n".join(o.row(key) for key, o in options.items()))
        run.__dict__["__signature__"] = call  # The signature is what help shows.
        DEMOS[name] = Entry(about, options, outputs, run)
        return run

    return made
