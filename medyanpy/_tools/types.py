"""Types of the values that users give, for public signatures: checkers then refuse text where numbers are wanted."""

import os
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

__all__ = ["Number", "Numbers", "PathLike"]

#: One number.
Number: TypeAlias = float | np.number
# One kind of sequence at each depth: of several, mypy would not know which of them a list of lists is to be.
_Row: TypeAlias = Number | np.ndarray | Sequence[Number | np.ndarray]
#: A number, or an array of any shape, also as lists, or lists of arrays. (NumPy's own ArrayLike takes text too.)
Numbers: TypeAlias = Number | np.ndarray | Sequence[Number | np.ndarray | Sequence[_Row]]
#: Where a file is.
PathLike: TypeAlias = str | os.PathLike[str]
