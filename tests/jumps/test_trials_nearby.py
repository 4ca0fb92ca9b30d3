"""Trial moves of filaments, rods and bodies: what a few of their beads gain, against the whole energy."""

import numpy as np
import pytest
from builders import orients, system_with

import medyanpy as mp

KT = 2.0
BOX = (60.0, 55.0, 70.0)
NONE = np.empty((0, 2), int)


def lines(n, rings=False):
    """Crooked chains of five links through the sides of the box; or rings of six nodes."""
    rng = np.random.default_rng(4)
    turns = 2.0 * np.pi * np.arange(6) / 6
    shape = 2.0 * np.column_stack([np.cos(turns), np.sin(turns), 0.0 * turns] if rings else [turns, 0.0 * turns, turns])
    return [at + shape + rng.normal(0.0, 0.3, shape.shape) for at in rng.uniform(20.0, 36.0, (n, 3))]


def bending(topology, n, **options):
    closed = options.get("closed", False)
    chains = topology.add_filaments(lines(n, closed), 1.0, 1.0, constrained=False, **options)
    count = len(mp.forces.FilamentBending(chains, 1.0).joints)
    return chains, mp.forces.FilamentBending(chains, 5.0, np.linspace(0.0, 0.5, count))


def straight(topology, n):
    chains, _ = bending(topology, n)
    return chains, mp.forces.FilamentBending(chains, 5.0)


def rings(topology, n):
    return bending(topology, n, closed=True)


def twisting(topology, n):
    chains = topology.add_filaments(lines(n), 1.0, 1.0, directors="parallel", director_mass=0.7, director_friction=0.4)
    return chains, mp.forces.FilamentTwisting(chains, 2.0, 0.3)


def stretching(topology, n):
    chains, _ = bending(topology, n)
    return chains, mp.forces.FilamentStretching(chains, 3.0)


def rods(topology, n, closed=False):
    nodes = lines(n, closed)
    frames = [mp.rods.frames(x, closed) for x in nodes]
    handle = topology.add_rods(nodes, frames, 0.5, 2.0, [1.0, 1.0, 1.5], closed=closed, friction=1.0,
                               rotational_friction=1.0)  # fmt: skip
    return handle, mp.forces.RodElasticity(handle, (3.0, 4.0), 5.0, (2.0, 1.0), 3.0)


def rod_rings(topology, n):
    return rods(topology, n, closed=True)


def frames(topology, n):
    beads = topology.add_beads(np.concatenate(lines(n)), mass=1.0, friction=1.0)
    triples = beads.beads.reshape(-1, 3)
    return beads, mp.forces.OrthonormalFramePenalty(triples, np.linspace(0.01, 0.02, len(triples)), 30.0)


def ellipsoids(topology, n):
    """Four times as many bodies as chains, on a lattice and off it, that overlap with some of their neighbours."""
    side = round((4 * n / 0.75) ** (1 / 3))
    rng = np.random.default_rng(8)
    x = 20.0 + 4.0 * np.stack(np.meshgrid(*map(np.arange, (side, side, 0.75 * side))), axis=-1).reshape(-1, 3)
    x += rng.normal(0.0, 0.3, x.shape)
    bodies = topology.add_rigid_bodies(x, orients(rng, len(x)), 1.0, [1.0, 1.5, 2.0], (0.4, 0.6))
    axes = rng.uniform(1.5, 3.0, (len(x), 3))
    return bodies, mp.forces.EllipsoidRepulsion(bodies, bodies, 1.0, axes, axes, form="soft", skin=1.0)


SCENES = {
    "bending": bending, "straight": straight, "rings": rings, "twisting": twisting, "stretching": stretching,
    "rods": rods, "rod rings": rod_rings, "frames": frames, "ellipsoids": ellipsoids,
}  # fmt: skip


def scene(name, n=12, box=None):
    topology = mp.Topology()
    # So that no number is counted from 0.
    topology.add_beads(np.random.default_rng(5).normal(0.0, 9.0, (5, 3)), mass=1.0, friction=1.0, name="others")
    sheet = topology.add_membrane(mp.TriangleMesh.icosphere(3.0, 0), vertex_mass=1.0, vertex_friction=1.0)
    handle, force = SCENES[name](topology, n)
    context = mp.Context(system_with(topology, force, box=box), mp.VerletIntegrator(1e-3), threads=1)
    return context, sheet, handle


def moves(context, sheet, handle, n, seed=1):
    """Some beads of one handle, and of its directors, elsewhere; and the membrane, of which nothing changes."""
    rng = np.random.default_rng(seed)
    rows = np.concatenate([h.beads for h in (handle, getattr(handle, "directors", None)) if h is not None])
    places = context.layout.internal(rows)
    for k in range(n):
        moved = rng.choice(places, 1 + 3 * (k % 2), replace=False).astype(np.int32)
        x = context._store.x[moved] + rng.normal(0.0, 0.5, (len(moved), 3))
        yield context._schedule.flipping.proposal("test", sheet, NONE, moved, x)


@pytest.mark.parametrize("box", [None, BOX], ids=["open", "box"])
@pytest.mark.parametrize("name", SCENES)
def test_the_gain_is_that_of_the_whole_energy(name, box):
    """Moves are made one after the other, and some are not."""
    context, sheet, handle = scene(name, box=box)
    operation = context._schedule.bound[0]
    assert operation.has_local_difference
    for k, change in enumerate(moves(context, sheet, handle, 60)):
        before = context.get_state(positions=True, energy=True)
        gained = change.difference(operation)
        again = context.get_state(positions=True, energy=True)
        assert before.potential_energy == again.potential_energy
        assert (before.positions == again.positions).all()
        if k % 3 == 0:
            continue
        change.swap()
        assert change.mended(operation)
        whole = context.get_state(energy=True).potential_energy - before.potential_energy
        assert whole != 0.0
        assert abs(gained - whole) <= 1e-12 * (abs(before.potential_energy) + abs(whole))


@pytest.mark.parametrize("name", SCENES)
def test_as_much_is_looked_at_in_a_larger_system(name):
    found = []
    for n in (12, 96):
        context, sheet, handle = scene(name, n)
        operation = context._schedule.bound[0]
        context.get_state(energy=True)
        before = operation.examined
        for change in moves(context, sheet, handle, 40):
            change.difference(operation)
        found.append((operation.examined - before) / 40)
    assert found[0] > 0.5
    assert found[1] < 2.0 * found[0]


@pytest.mark.parametrize("name", ["bending", "rods", "ellipsoids"])
def test_gains_of_a_run_add_up(name):
    """Trial moves of nodes in a letter: their heat is the change of the energy; and no warning is given."""
    topology = mp.Topology()
    handle, force = SCENES[name](topology, 12)

    def shift(x, uniform):
        row = int(uniform[0] * len(x))
        return [row], [x[row] + 0.5 * (uniform[1:] - 0.5)]

    system = system_with(topology, force)
    system.add_jump(mp.jumps.TrialMoves(handle, shift, rate=1000.0))
    context = mp.Context(system, mp.SplittingIntegrator("JBAOABJ", 0.3, kT=KT, seed=1), threads=1)
    events, before = context.events(), context.get_state(energy=True).potential_energy
    context._store.program.perform(context._store.program.operations[0])
    heat = sum(event.energy for event in events.heard())
    after = context.get_state(energy=True).potential_energy
    assert system.jumps[0].counts.accepted > 20
    assert abs(heat - (after - before)) < 1e-11 * (abs(before) + abs(after))
