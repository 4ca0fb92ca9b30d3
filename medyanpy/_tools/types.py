"""What public signatures call the values that users give: checkers then refuse text where numbers are wanted."""

import os
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

__all__ = ["Number", "Numbers", "PathLike"]

#: One number.
Number: TypeAlias = float | np.number
#: A number, or an array of any shape, also as lists. (NumPy's own ArrayLike takes text too.)
Numbers: TypeAlias = (
    Number | np.ndarray | Sequence[Number] | Sequence[Sequence[Number]] | Sequence[np.ndarray]
    | Sequence[Sequence[Sequence[Number]]]
)  # fmt: skip
#: Where a file is.
PathLike: TypeAlias = str | os.PathLike[str]
