"""Further laws of the balls of docs/add_a_column.md, whose script is the module `page`."""

import pathlib
import tempfile

import numpy as np
import pytest
from page import KT, REST, N, look, make, rows, warm

import medyanpy as mp

# The energy error falls with the square of the timestep, and the run is reversible.
drift = []
for timestep in (0.05, 0.025):
    simulation = make("BAB", timestep)
    simulation.context.set_velocities_to_temperature(kT=KT, seed=1)
    start = look(simulation)
    assert abs(start.kinetic_energies["balls"] / (2 * N * KT) - 1.0) < 0.1      # four degrees of freedom each
    simulation.step(round(10 / timestep))
    drift.append(look(simulation).total_energy - start.total_energy)
assert 3.5 < drift[0] / drift[1] < 4.5
there = look(simulation)
simulation.context.set_velocities(-there.velocities)
simulation.context.set_column("radial_momenta", -there.column("radial_momenta"))
simulation.context.set_angular_momenta(-there.angular_momenta)
simulation.step(400)
np.testing.assert_allclose(look(simulation).column("radii"), start.column("radii"), atol=1e-9)

# The same bits on any number of threads, and through a checkpoint with another step between.
folder = pathlib.Path(tempfile.mkdtemp())
warm.save_checkpoint(folder / "checkpoint")
warm.step(5)
end = look(warm)
several = make("BAOAB", timestep=0.2, kT=KT, seed=3, threads=3)
several.context.set_velocities_to_temperature(kT=KT, seed=4)
several.step(305)
warm.load_checkpoint(folder / "checkpoint")
warm.step(5)
for other in (several, warm):
    for name in ("positions", "velocities", "radii", "radial_momenta"):
        assert (look(other).column(name) == end.column(name)).all(), name

# A state can be set elsewhere; a run that fails returns to the last good one.
other = make("BAOAB", timestep=0.2, kT=KT, seed=9)
other.context.set_state(end)
assert (look(other).column("radial_momenta") == end.column("radial_momenta")).all()
other.system.forces[0].set(elasticity=1e300)
with pytest.raises(mp.SimulationError):
    other.step(10)
assert (look(other).column("radii") == end.column("radii")).all()

# The minimiser finds the state without forces, and keeps momenta.
report = warm.minimize_energy(tolerance=1e-6)
assert report.converged
state = look(warm)
np.testing.assert_allclose(state.column("radii")[rows], REST, atol=1e-6)
assert (state.column("radial_momenta") == end.column("radial_momenta")).all()

# Written, read, drawn.
writer = mp.reporters.TrajectoryReporter(folder / "run.h5", 10, velocities=True)
several.reporters.append(writer)
several.step(15)
writer.close()
with mp.Trajectory(folder / "run.h5") as trajectory:
    frame, state = trajectory[-1], look(several)
    assert frame.step == state.step
    for name in ("radii", "radial_momenta"):
        assert (frame.column(name) == state.column(name)).all()
        assert (trajectory.read(name, beads=trajectory.handles["balls"])[-1] == state.column(name)[rows]).all()
    for other in ("picture of the run", several), ("picture of the file", frame):
        mp.visualize.draw(other[1], folder / f"{other[0]}.png", size=(200, 150))
assert (folder / "picture of the run.png").read_bytes() == (folder / "picture of the file.png").read_bytes()
