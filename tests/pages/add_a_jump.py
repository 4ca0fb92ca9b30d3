"""Further laws of the jump of docs/add_a_jump.md, whose script is the module `page`."""

import numpy as np
from page import make

from medyanpy.testing import check_mean

# Beads that move: k^(-3/2), whatever the jump's rate.
simulation = make(4000, 1, 2, 0.05, fixed=False)
simulation.context.set_velocities_to_temperature(kT=1.0, seed=2)
simulation.step(400)
looks = []
for _ in range(25):
    simulation.step(100)
    looks.append(simulation.context.get_state(positions=True).jumps["Switch"]["stiff"].mean())
check_mean("stiff traps", np.array(looks), 1.0 / (1.0 + 2.0**1.5), sees=0.02)
