"""Figures and tables of the five texts that the package rests on, remade, and of chemistry, each beside the published
numbers.

Modules have a table of their figures, `FIGURES`; `plates` has what they share.
"""

from collections.abc import Sequence
from difflib import get_close_matches

from medyanpy.errors import ParameterError

from . import chemistry, seed_000, seed_001, seed_002, seed_003, seed_004
from .plates import FORMATS, SEEDS, LeftOut, Made, Plate, Report, Row, Work, make_figures

__all__ = ["FORMATS", "PLATES", "SEEDS", "LeftOut", "Made", "Plate", "Report", "Row", "Work", "choose", "make_figures"]

PLATES = tuple(plate for seed in (seed_000, seed_001, seed_002, seed_003, seed_004, chemistry)
               for plate in seed.FIGURES)  # fmt: skip


def choose(seeds: Sequence[str] | None = None, names: Sequence[str] | None = None) -> list[Plate]:
    """Select figures by text or by name, in their order; all without a selection.

    Parameters
    ----------
    seeds : sequence of str, optional
        Such as ``"003"``.
    names : sequence of str, optional
        With or without the ending, such as ``"003_energy"``; or a text, for all of its figures.

    Returns
    -------
    list of Plate

    Raises
    ------
    ParameterError
        There is no such text or figure, or the figure is not one of these texts.
    """
    for seed in seeds or ():
        if seed not in SEEDS:
            raise ParameterError(f"figures: there is no text {seed!r}, only {', '.join(SEEDS)}")
    known = {plate.stem: plate for plate in PLATES if seeds is None or plate.seed in seeds}
    if names is None:
        return list(known.values())
    wanted = [name.partition(".")[0] for name in names]
    for name in wanted:
        if name not in known and name not in {plate.seed for plate in known.values()}:
            close = get_close_matches(name, known, 1)
            hint = f"; did you mean {close[0]}?" if close else ""
            of = f" of {', '.join(seeds)}" if seeds else ""
            raise ParameterError(f"figures: there is no figure {name!r}{of} (--list){hint}")
    return [plate for stem, plate in known.items() if stem in wanted or plate.seed in wanted]
