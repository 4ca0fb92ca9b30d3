"""What holds of all forces of filaments, twistable or not: the same bits whoever shares a batch, sums over filaments,
filaments with nothing to bend, and taut ones, which have no metric."""

import numpy as np
import pytest
from builders import system_with

import medyanpy as mp
from medyanpy.errors import SimulationError
from medyanpy.forces import FilamentBending, FilamentStretching, FilamentTwisting, FixmanPotential

KINDS = ["constrained", "free", "twistable"]


def filaments_of(kind, counts, closed=False, fixed_nodes=()):
    """Random filaments with different masses, and directors."""
    rng = np.random.default_rng(3)
    nodes = [np.cumsum(rng.normal(0.0, 2.0, (n, 3)), axis=0) for n in counts]
    options = {"closed": closed, "constrained": kind != "free", "fixed_nodes": fixed_nodes}
    if kind == "twistable":
        links = [np.diff(np.vstack([x, x[:1]]) if closed else x, axis=0) for x in nodes]
        options["directors"] = [np.cross(d, rng.normal(size=d.shape)) for d in links]
        options["director_mass"] = rng.uniform(0.5, 3.0, sum(map(len, links)))
    return mp.Topology().add_filaments(nodes, rng.uniform(0.5, 3.0, sum(counts)), **options)


def forces_on(filaments):
    forces = [FilamentBending(filaments, 3.0), FilamentBending(filaments, 2.0, 0.4, name="bent")]
    if filaments.directors is not None:
        forces.append(FilamentTwisting(filaments, 2.0, 0.4))
    forces.append(FixmanPotential(filaments, kT=1.3) if filaments.constrained else FilamentStretching(filaments, 7.0))
    return forces


def rows(filaments, i):
    return slice(*filaments.starts[i : i + 2]), slice(*filaments.kind.link_starts[i : i + 2])


def alone(filaments, i):
    """One of them, in a topology of its own."""
    (nodes, links), directors = rows(filaments, i), filaments.directors
    options = {"closed": filaments.closed, "constrained": filaments.constrained}
    if directors is not None:
        options |= {"directors": directors.positions[links], "director_mass": directors.mass[links]}
    return mp.Topology().add_filament(filaments.positions[nodes], filaments.mass[nodes], **options)


def context_of(filaments, *forces, threads=1):
    system = system_with(filaments.topology, *(forces or forces_on(filaments)))
    # Nothing moves: the timestep is one that any of these forces bears.
    return mp.Context(system, mp.SplittingIntegrator("BAB", 1e-6), threads=threads)


def look(filaments, *forces, threads=1):
    return context_of(filaments, *forces, threads=threads).get_state(energy=True, forces=True)


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_bits_depend_on_no_thread_and_no_neighbour(kind, closed):
    """Many blocks, filaments that end anywhere in a batch; alone and among others each has the same forces."""
    counts = [3, 130, 127, 5, 4, 1500, 3, 256, *[7] * 130, 640]
    filaments = filaments_of(kind, counts, closed)
    expected = look(filaments)
    for threads in (2, 3, 4):
        state = look(filaments, threads=threads)
        assert (state.forces == expected.forces).all()
        assert state.energies == expected.energies
    for i in (0, 1, 2, 4, 5, 7, 100, len(counts) - 1):
        nodes, links = rows(filaments, i)
        forces = look(alone(filaments, i)).forces
        assert (forces[: counts[i]] == expected.forces[nodes]).all()
        if filaments.directors is not None:
            assert (forces[counts[i] :] == expected.forces[filaments.directors.beads[links]]).all()


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_energies_add_up_over_filaments(kind, closed):
    filaments = filaments_of(kind, [5, 700, 3, 90], closed)
    whole = look(filaments).energies
    parts = [look(alone(filaments, i)).energies for i in range(4)]
    added = {name: sum(part[name] for part in parts) for name in whole}
    assert added == pytest.approx(whole, rel=1e-12 if kind == "twistable" else 1e-13)


@pytest.mark.parametrize("kind", KINDS)
def test_filaments_without_joints_do_nothing(kind):
    filaments = filaments_of(kind, [2, 2, 2])
    forces = [FilamentBending(filaments, 3.0), FilamentBending(filaments, [], [], name="none")]
    if kind != "free":
        forces.append(FixmanPotential(filaments, kT=1.0))
    if kind == "twistable":
        forces.append(FilamentTwisting(filaments, []))
    state = look(filaments, *forces)
    assert state.potential_energy == 0.0
    assert (state.forces == 0.0).all()


@pytest.mark.parametrize("kind", ["constrained", "twistable"])
def test_taut_filaments_have_no_fixman_potential(kind):
    filaments = filaments_of(kind, [4, 3], fixed_nodes=[4, 6])
    context = context_of(filaments, FixmanPotential(filaments, kT=1.0))
    # Past what the topology and the constraints refuse.
    context._store.x[4:7] = [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [2.0, 0.0, 0.0]]
    context._store.x[7 + 3 : 7 + 5] = [0.0, 1.0, 0.0]
    context._store.positions_changed()
    with pytest.raises(SimulationError, match="FixmanPotential") as error:
        context.get_state(forces=True)
    assert (error.value.bead, error.value.force) == (4, "FixmanPotential")
