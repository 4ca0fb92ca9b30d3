"""Pendula as the package runs them: by constraints, or with a penalty on the lengths of links and any kick."""

import time

import numpy as np

import medyanpy as mp

BETA = 0.4
# Methods of the paper that are kicks of the package.
KICKS = {
    "Newmark": mp.kicks.Newmark,
    "push-forward Newmark": mp.kicks.PushForwardNewmark,
    "Zhang-Skeel": mp.kicks.ZhangSkeel,
    "simplified": mp.kicks.ZhangSkeelSimplified,
}


class Package:
    """Bobs (n, 2) of mass 1 below the origin, from rest, with the links that they have at the start; gravity is 1.

    "SHAKE" keeps the links' lengths. All others have penalties: "variational Euler" (kick, flight), "explicit"
    (velocity Verlet) and the names of KICKS. Those that have coordinates of their own begin where beads are at the
    bobs, in the physical sense; with at="coordinates" they begin with these there.
    """

    def __init__(self, bobs, method, h, omega=None, beta=BETA, at="places"):
        bobs = np.asarray(bobs, float)
        nodes = np.zeros((len(bobs) + 1, 3))
        nodes[1:, :2] = bobs
        topology = mp.Topology()
        self.rope = topology.add_filament(nodes, 1.0, constrained=method == "SHAKE", fixed_nodes=[0])
        self.system = mp.System(topology)
        self.system.add_force(mp.forces.UniformField(self.rope, [0.0, -1.0, 0.0]))
        if method != "SHAKE":
            self.penalty = self.system.add_force(mp.forces.LinkLengthPenalty(self.rope, omega))
        if method == "variational Euler":
            integrator = mp.SplittingIntegrator("BA", h, symmetric=False)
        else:
            kick = KICKS[method](beta) if method in KICKS else None
            integrator = mp.SplittingIntegrator("BAB", h, kick=kick)
        self.context = mp.Context(self.system, integrator, threads=1)
        if at == "places" and integrator.kick.coordinates:
            # x = q - βh²a with the forces at q (docs/kicks.md); the node that is held stays.
            force = self.context.get_state(forces=True).forces.copy()
            force[0] = 0.0
            self.context.set_positions(nodes - beta * h * h * force)

    def look(self, physical=True):
        """(2n,) where the bobs are, in the physical sense or in the coordinates of the method."""
        x = self.context.physical_positions() if physical else self.context.get_state(positions=True).positions
        return x[1:, :2].ravel()

    def path(self, looks, every=1, physical=True):
        """(looks + 1, 2n) from here on, a row every so many steps."""
        rows = [self.look(physical)]
        for _ in range(looks):
            self.context.step(every)
            rows.append(self.look(physical))
        return np.array(rows)

    def seconds_a_step(self, steps, least):
        """CPU time: the shortest of runs of so many steps from the start, for so long, three at least. What else runs
        on the machine only adds."""
        start = self.context.get_state(positions=True, velocities=True)
        times = []
        while sum(times) < least or len(times) < 3:
            self.context.set_state(start)
            self.context.step(1)
            started = time.process_time()
            self.context.step(steps)
            times.append(time.process_time() - started)
        self.context.set_state(start)
        return min(times) / steps


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
