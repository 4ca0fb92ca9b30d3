"""Further laws of the reporter of docs/add_a_reporter.md, whose script is the module `page`."""

from pathlib import Path

import numpy as np
import pytest
from page import GyrationReporter, again, make, observed

import medyanpy as mp

# The same from the checkpoint alone.
with observed("alone.txt", make()) as first:
    first.step(17)
    first.save_checkpoint("alone-at-17")
    first.step(15)
with mp.Simulation.resume("alone-at-17") as alone:
    alone.step(33)
assert Path("alone.txt").read_bytes() == Path("through.txt").read_bytes()

# Files are refused before any step.
exists = r"cut\.txt exists; give overwrite=True to replace it or append=True to continue"
with pytest.raises(mp.ParameterError, match=exists):
    GyrationReporter("cut.txt", 5, again.topology.handles[0])

# A run that fails leaves its reports, without a call of close.
failing = observed("failing.txt", make())
failing.step(12)
failing.context.set_velocities(np.full((40, 3), 1e300))
failing.system.forces[0].set(stiffness=1e300)
with pytest.warns(mp.TimestepWarning), pytest.raises(mp.SimulationError):
    failing.step(10)
assert np.loadtxt("failing.txt")[:, 0].tolist() == [5, 10]
