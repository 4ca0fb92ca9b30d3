"""Gliding assay: filaments on a carpet of motors move as fast as these walk, once enough of them are in reach."""

import numpy as np
import pytest

import medyanpy as mp
from medyanpy.testing import check_mean

KT, STIFFNESS, HOLD, STEP, LENGTH = 4.141947, 0.5, 8.0, 1.0, 160.0
#: Of a head, per step of the integrator: nm, and letting go.
VELOCITY, OFF = 0.02, 0.004


def gliding(motors, duty, copies, seed=1):
    """Filaments that slide along x over fixed heads, `motors` of them in reach of each: (simulation, filaments)."""
    topology = mp.Topology()
    y, box = 500.0 * np.arange(copies), 3.0 * LENGTH
    nodes = [[[0.0, own, 0.0], [LENGTH, own, 0.0]] for own in y]
    # Positions of BAOAB have the right width for any step: that of springs is 2.9 nm, and forgotten in a few steps.
    # Drag must be low: heads that let go take their share of it with them, which is a friction of its own.
    mass = 0.5 * max(STIFFNESS * motors, HOLD) / 0.4
    track = topology.add_filaments(nodes, mass, 0.2 * mass)
    system = mp.System(topology, box=[box, None, None])
    system.add_force(mp.forces.HarmonicTrap(track, (0.0, 0.5 * HOLD, 0.5 * HOLD), np.concatenate(nodes)))
    springs = system.add_force(mp.forces.Links([], [], stiffness=STIFFNESS, length=0.0))
    apart = LENGTH / motors
    x = np.arange(round(box / apart)) * apart
    heads = np.stack([np.tile(x, copies), np.repeat(y, len(x)), np.zeros(copies * len(x))], axis=1)
    heads[:, 0] += np.random.default_rng(seed).uniform(0.0, apart, copies).repeat(len(x))
    # Heads let go at a rate that knows no strain, and take hold of any of some places near to them: a sum along x, and
    # a mean over what the track, held by HOLD, moves across.
    places = np.sqrt(2.0 * np.pi * KT / STIFFNESS) / STEP / (1.0 + STIFFNESS / HOLD)
    on = OFF * duty / (1.0 - duty) / places
    system.add_jump(mp.jumps.Motors(
        springs, track.lattice(STEP), mp.Sites.anchors(heads), step=STEP, unloaded_velocity=VELOCITY, stall_force=40.0,
        load_sharing=0.2, on_rate=on, off_rate=OFF, unbinding_share=0.0, leaves_end=True, name="motors"))  # fmt: skip
    simulation = mp.Simulation(system, mp.SplittingIntegrator("JBAOABJ", 1.0, kT=KT, seed=seed), threads=1)
    simulation.context.set_velocities_to_temperature(kT=KT, seed=2)
    return simulation, track


def middles(simulation, copies):
    return simulation.context.get_state(positions=True).positions.reshape(copies, 2, 3).mean(axis=1)[:, 0]


@pytest.mark.slow
@pytest.mark.parametrize(("motors", "sees"), [(2, 0.6), (5, 0.4), (20, 0.14)])
def test_filaments_glide_while_a_head_holds_them(motors, sees):
    """Of N heads in reach, each of which holds for the share r of time, at least one does for 1 - (1 - r)^N: the
    crossover is at N = 1/r. Filaments go against the way of the heads, which is to the last node."""
    duty, copies = 0.2, 90
    simulation, _ = gliding(motors, duty, copies)
    simulation.step(3000)
    before, held, looks = middles(simulation, copies), [], 60
    for _ in range(looks):
        simulation.step(200)
        rows = simulation.context.get_state(positions=True).jumps["motors"]["links"]
        held.append(len(rows[rows[:, 0] >= 0]) / (motors * copies))
    share = 1.0 - (1.0 - duty) ** motors
    check_mean("share of heads that hold", np.array(held).reshape(12, -1).mean(axis=1), duty, sees=0.4 * duty)
    velocity = -(middles(simulation, copies) - before) / (200 * looks)
    check_mean("velocity", velocity, VELOCITY * share, sees=sees * VELOCITY)
