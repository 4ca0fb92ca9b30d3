"""Tests of ensembles share `ensemble_runs`, which worker processes import too."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "faults")]
