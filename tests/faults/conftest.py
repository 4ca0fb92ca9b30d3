"""Tests of faults share `fault_runs`, which the programs that they start in other processes import too."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
