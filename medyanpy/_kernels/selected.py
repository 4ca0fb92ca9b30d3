"""The hot kernels, in the variant for this machine.

They are built from the same sources for several instruction sets (baseline, avx2, avx512 on x86-64) and give the same
bits in all. The best that the processor has and the build holds is chosen when this module is first imported; the
environment variable MEDYANPY_ISA names another one.

>>> from medyanpy._kernels import selected
>>> selected.geodesic.__name__ == f"medyanpy._kernels.{selected.isa}.geodesic"
True
"""

import importlib
import importlib.util
import os
from typing import Any

from medyanpy._kernels.core.program import SUPPORTED

built = [
    name for name in SUPPORTED if importlib.util.find_spec(f"medyanpy._kernels.{name}.geodesic") is not None
]
isa = os.environ.get("MEDYANPY_ISA", "") or built[-1]
if isa not in built:
    raise ImportError(
        f"MEDYANPY_ISA is {isa!r}, but this processor and this installation of medyanpy offer: {', '.join(built)}"
    )


def __getattr__(name: str) -> Any:
    try:
        module = importlib.import_module(f"medyanpy._kernels.{isa}.{name}")
    except ModuleNotFoundError:
        raise AttributeError(f"there is no hot kernel {name!r}") from None
    globals()[name] = module
    return module
