"""What tests of exports share: programs that may not be there, and small runs."""

import pytest

import medyanpy as mp

VIEWERS = "{} is not installed: pip install 'medyanpy[viewers]'"


def needs(module):
    return pytest.importorskip(module, reason=VIEWERS.format(module.partition(".")[0]))


def needs_writer_of(ending):
    if ending in (".dcd", ".gsd"):
        needs({".dcd": "MDAnalysis", ".gsd": "gsd.hoomd"}[ending])


def write_one(topology, path, steps=1):
    simulation = mp.Simulation(mp.System(topology), mp.VerletIntegrator(0.5), threads=1)
    with mp.reporters.TrajectoryReporter(path, 1) as reporter:
        simulation.reporters.append(reporter)
        simulation.step(steps)
