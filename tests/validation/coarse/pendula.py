"""Times of pendula, and figures of them; they are run by the package."""

import numpy as np


def seconds_a_step(cases, rounds, least=0.05):
    """{key: s} of {key: (run, steps)}, in turns, so that a busy time does not meet one of them alone."""
    found = dict.fromkeys(cases, np.inf)
    for _ in range(rounds):
        for key, (run, steps) in cases.items():
            found[key] = min(found[key], run.seconds_a_step(steps, least))
    return found


def figure(plt, shape, size, **options):
    """A figure and its axes in a row."""
    fig, axes = plt.subplots(*shape, figsize=size, layout="constrained", squeeze=False, **options)
    for axis in axes.flat:
        axis.spines[["top", "right"]].set_visible(False)
    return fig, axes.ravel()
