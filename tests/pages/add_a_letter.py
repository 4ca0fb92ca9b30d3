"""Further laws of the letter of docs/add_a_letter.md, whose script is the module `page`."""

import numpy as np
from page import make, state, w, x0

# It turns back with the field reversed, and not without.
there = make("BAMAB", 0.1)
there.step(100)
end = state(there)
for rate, returns in ((-w, True), (w, False)):
    back = make("BAMAB", 0.1, rate, end.positions[:500], -end.velocities[:500])
    back.step(100)
    assert np.allclose(state(back).positions[:500], x0, atol=1e-10) == returns

# The same bits on any number of threads.
several = make("BAMAB", 0.1, threads=3)
several.step(100)
assert (state(several).positions == state(there).positions).all()
