"""Membranes some of whose vertices are fixed, such as those of a border: nothing moves them, they count for nothing."""

import numpy as np
import pytest
from builders import system_with

import medyanpy as mp

KT = 4.14
SHEET = mp.TriangleMesh.flat_sheet(8, 8, 10.0)


def sheet(fixed, points=0, word="BAGOGAB", **integrator):
    topology = mp.Topology()
    topology.add_beads([[0.0, 0, 80.0]], mass=1.0, friction=1.0)
    membrane = topology.add_membrane(SHEET, vertex_mass=1.0, vertex_friction=1.0, fixed=fixed, name="sheet")
    if points:
        topology.add_intriangle_points(membrane, points, mass=0.05, friction=1.0, seed=1)
    system = system_with(topology, mp.forces.MembraneBending(membrane, 82.0),
                         mp.forces.MembraneEdgeSprings(membrane, 2.0, 10.5))  # fmt: skip
    integrator = {"kT": KT, "seed": 2, **integrator}
    return mp.Simulation(system, mp.SplittingIntegrator(word, 0.05, **integrator)), membrane


def test_border_vertices_are_those_of_the_borders():
    x = SHEET.vertices
    on_the_rim = (x[:, :2] == x[:, :2].min(axis=0)).any(axis=1) | (x[:, :2] == x[:, :2].max(axis=0)).any(axis=1)
    # Rows of a flat sheet are shifted in turn: the sides are the rim of the loop.
    loop = np.concatenate(SHEET.borders)
    assert set(np.flatnonzero(SHEET.border_vertices)) == set(loop)
    assert set(np.flatnonzero(on_the_rim)) <= set(loop)
    assert not mp.TriangleMesh.icosphere(1.0, 1).border_vertices.any()


def test_a_pinned_border_stays_and_the_rest_moves(tmp_path):
    pinned = SHEET.border_vertices
    simulation, membrane = sheet(pinned, points=40)
    assert (membrane.kind.fixed_beads == pinned).all()
    assert membrane.fixed is False
    assert membrane.degrees_of_freedom == 3 * np.count_nonzero(~pinned)
    simulation.context.set_velocities_to_temperature(kT=KT, seed=3)
    rng = np.random.default_rng(1)
    for _ in range(20):
        edges = simulation.context.get_state(positions=True).faces["sheet"][:, :2]
        try:
            simulation.context.flip_edges(membrane, [rng.choice(edges)])
        except mp.TopologyError:
            continue
        simulation.step(10)
    state = simulation.context.get_state(positions=True, velocities=True)
    x, v = state.positions[membrane.beads], state.velocities[membrane.beads]
    assert (state.faces["sheet"] != SHEET.faces).any()
    assert (x[pinned] == SHEET.vertices[pinned]).all()
    assert (v[pinned] == 0.0).all()
    assert (x[~pinned] != SHEET.vertices[~pinned]).all()
    simulation.save_checkpoint(tmp_path / "run.checkpoint")
    again = mp.Simulation.resume(tmp_path / "run.checkpoint")
    assert (again.topology["sheet"].kind.fixed_beads == pinned).all()
    for one in (simulation, again):
        one.step(10)
    a, b = (one.context.get_state(positions=True).positions for one in (simulation, again))
    assert (a == b).all()


def test_none_and_all_are_as_without_a_mask():
    for mask, word in ((np.zeros(len(SHEET.vertices), bool), False), (np.ones(len(SHEET.vertices), bool), True)):
        runs = []
        for fixed in (mask, word):
            simulation, membrane = sheet(fixed, points=20)
            assert membrane.fixed is word
            assert membrane._arguments_now()["fixed"] is word
            simulation.context.set_velocities_to_temperature(kT=KT, seed=3)
            simulation.step(50)
            runs.append(simulation.context.get_state(positions=True).positions)
        assert (runs[0] == runs[1]).all()


def test_minimisation_moves_what_is_free():
    pinned = SHEET.border_vertices
    simulation, membrane = sheet(pinned)
    start = SHEET.vertices + np.where(pinned[:, None], 0.0, np.random.default_rng(4).normal(0.0, 1.0, (len(pinned), 3)))
    x = simulation.context.get_state(positions=True).positions.copy()
    x[membrane.beads] = start
    simulation.context.set_positions(x)
    # What is left over is on fixed vertices alone.
    assert simulation.minimize_energy(tolerance=1e-4).converged
    state = simulation.context.get_state(positions=True, forces=True)
    assert (state.positions[membrane.beads][pinned] == SHEET.vertices[pinned]).all()
    assert np.abs(state.forces[membrane.beads][~pinned]).max() < 1e-3
    assert np.abs(state.forces[membrane.beads][pinned]).max() > 0.1


def test_the_temperature_is_that_of_what_moves():
    """Of 40 draws from Maxwell's distribution the mean has the standard error kT √(2/n), n numbers in all; false alarms
    1e-6 by 4.9 of them, 14 %. Fixed vertices that counted as free would take more than a third off."""
    simulation, membrane = sheet(SHEET.border_vertices, word="BAOAB")
    found = []
    for seed in range(40):
        simulation.context.set_velocities_to_temperature(kT=KT, seed=seed)
        v = simulation.context.get_state(velocities=True).velocities[membrane.beads]
        found.append(np.sum(v**2) / membrane.degrees_of_freedom)
    n = membrane.degrees_of_freedom * len(found)
    assert np.mean(found) == pytest.approx(KT, abs=4.9 * KT * np.sqrt(2.0 / n))


@pytest.mark.parametrize("fixed", ["yes", [True], np.zeros(3, bool), np.zeros((len(SHEET.vertices), 1), bool), 1, None])
def test_a_mask_has_a_row_for_each_vertex(fixed):
    with pytest.raises(mp.TopologyError, match=r"add_membrane: fixed must be True or False, or \d+ of these, not"):
        mp.Topology().add_membrane(SHEET, 1.0, fixed=fixed)
