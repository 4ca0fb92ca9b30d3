"""EllipsoidCollisions in runs: ellipsoids in a closed membrane, and in equilibrium around a link."""

import numpy as np
import pytest
from builders import look, orients, system_with
from forces.references.ellipsoids import END, FORMS, growth, law, matrices, nearest

import medyanpy as mp
from medyanpy._tools import quaternions
from medyanpy.forces import EllipsoidCollisions, EllipsoidRepulsion
from medyanpy.testing import check_mean, thermal


def cell(h, form="WCA", word="BAB", threads=1, skin=None, n=30):
    """Bodies in a closed membrane with filaments across it; some are near everything."""
    rng = np.random.default_rng(10)
    topology = mp.Topology()
    mesh = mp.TriangleMesh.icosphere(9.0, 2)
    vesicle = topology.add_membrane(mesh, vertex_mass=1.0, vertex_friction=0.5)
    inside = [x for x in rng.uniform(-6.0, 6.0, (4000, 3)) if np.linalg.norm(x) < 6.0 and abs(x[2]) > 2.2]
    kept = []
    for x in inside:
        if len(kept) < n and all(np.linalg.norm(x - y) > 2.3 for y in kept):
            kept.append(x)
    lines = [np.column_stack([np.linspace(-6.0, 6.0, 7), np.full(7, y), np.zeros(7)]) for y in (-3.0, 0.0, 3.0)]
    actin = topology.add_filaments(lines, node_mass=1.0, node_friction=0.5, constrained=False)
    inertia = mp.rigid.ellipsoid_inertia([0.5, 0.7, 1.4], 1.0)
    bodies = topology.add_rigid_bodies(kept, orients(rng, len(kept)), 1.0, inertia, (0.5, 0.3))
    system = mp.System(topology)
    system.add_force(mp.forces.MembraneEdgeSprings(vesicle, 40.0))
    system.add_force(mp.forces.FilamentStretching(actin, 300.0))
    system.add_force(EllipsoidCollisions(bodies, [actin, vesicle], 1.0, [0.5, 0.7, 1.4], [0.4, 0.3], form=form,
                                         skin=skin))  # fmt: skip
    system.add_force(EllipsoidRepulsion(bodies, bodies, 1.0, [0.5, 0.7, 1.4], form=form))
    kT = {"kT": thermal(word, 1.0)} if "O" in word else {}
    simulation = mp.Simulation(system, mp.SplittingIntegrator(word, h, seed=4, **kT), threads=threads)
    simulation.context.set_velocities_to_temperature(kT=1.0, seed=5)
    return simulation


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_energy_in_a_cell_is_of_second_order(form):
    errors = []
    for h in (4e-3, 2e-3, 1e-3):
        simulation = cell(h, form)
        start, worst, most = look(simulation), 0.0, 0.0
        for _ in range(round(1.0 / h)):
            simulation.step(1)
            now = look(simulation)
            worst = max(worst, abs(now.total_energy - start.total_energy))
            most = max(most, now.energies["EllipsoidCollisions"])
        errors.append(worst)
    assert most > 0.5
    assert np.abs(now.angular_momenta - start.angular_momenta).max() > 0.3
    assert errors[0] / errors[1] == pytest.approx(4.0, rel=0.3)
    assert errors[1] / errors[2] == pytest.approx(4.0, rel=0.2)


def test_momentum_and_angular_momentum_of_a_cell():
    simulation = cell(2e-3)
    topology = simulation.system.topology
    mass = np.concatenate([np.broadcast_to(h.mass, (len(h),)) for h in topology.handles])

    def momenta():
        s = look(simulation)
        p = mass[:, None] * s.velocities
        spin = quaternions.turned(s.orientations, s.angular_momenta).sum(axis=0)
        return np.concatenate([p.sum(axis=0), np.cross(s.positions, p).sum(axis=0) + spin])

    before = momenta()
    simulation.step(500)
    np.testing.assert_allclose(momenta(), before, rtol=0.0, atol=1e-10)


def test_bodies_stay_in_a_cell():
    """Thermal ones, for long: none gets out through a triangle."""
    simulation = cell(4e-3, word="BAOAB")
    simulation.step(5000)
    x = look(simulation).positions
    topology = simulation.system.topology
    bodies, vesicle = topology.handles[2], topology.handles[0]
    corners = x[vesicle.beads][vesicle.mesh.faces]
    for place in x[bodies.beads]:
        a, b, c = np.moveaxis(corners - place, 1, 0)
        la, lb, lc = (np.linalg.norm(v, axis=1) for v in (a, b, c))
        top = np.einsum("ij,ij->i", a, np.cross(b, c))
        bottom = la * lb * lc + (a * b).sum(1) * lc + (b * c).sum(1) * la + (c * a).sum(1) * lb
        # The solid angle of the membrane from inside.
        assert 2.0 * np.arctan2(top, bottom).sum() == pytest.approx(4.0 * np.pi, rel=1e-9)


PARTS = ("positions", "velocities", "orientations", "angular_momenta", "forces", "torques")


def test_checkpoints_and_documents(tmp_path):
    simulation = cell(0.004, word="BAOAB")
    force = simulation.system["EllipsoidCollisions"]
    n = len(simulation.system.topology.handles[2])
    force.set(semi_axes=np.random.default_rng(3).uniform(0.4, 1.2, (n, 3)), radius=[0.5, 0.2], epsilon=2.0)
    simulation.step(10)
    simulation.save_checkpoint(tmp_path / "a.checkpoint")
    simulation.step(10)
    end = look(simulation)
    again = mp.Simulation(*mp.deserialize(mp.serialize(simulation)), threads=2)
    again.load_checkpoint(tmp_path / "a.checkpoint")
    again.step(10)
    for part in PARTS:
        np.testing.assert_array_equal(getattr(look(again), part), getattr(end, part))
    assert mp.serialize(again) == mp.serialize(simulation)


def test_lists_are_rebuilt_when_they_must():
    simulation = cell(0.004, word="BAOAB", skin=0.6)
    operation = simulation.context._schedule.bound_forces["EllipsoidCollisions"]
    simulation.step(400)
    assert 2 < operation.builds < operation.runs / 5
    x = look(simulation).positions
    topology = simulation.system.topology
    bodies, actin = topology.handles[2], topology.handles[1]
    # Links whose distance from a centre is below the range.
    order = simulation.context.layout.internal(np.arange(topology.n_beads))
    listed = {(a[0], b) for _, a, b in operation.pairs() if len(a) == 1 and len(b) == 2}
    reach = END["WCA"] * (1.4 + 0.4)
    n = 0
    for body in bodies.beads:
        for link in actin.links + actin.kind.first_bead:
            r = np.sqrt(nearest(np.eye(3)[None], (x[link] - x[body])[None]))[0]
            if r < reach:
                assert (order[body], tuple(order[link].tolist())) in listed
                n += 1
    assert n > 3


# Equilibrium ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_boltzmann_around_a_link():
    """6000 ellipsoids, each for itself in a trap around a fixed link: places and directions are those of uniform turns
    and normal places weighted with exp(-U/kT), 2·10⁵ of them. Without the force the distance would be 5 times what is
    seen away; with forces but no torques the last mean would be a third of the distance's, twice what is seen."""
    n, k, axes = 6000, 1.0, np.array([0.3, 0.4, 2.5])
    rng = np.random.default_rng(11)
    topology = mp.Topology()
    ends = np.array([[-1.5, 0.0, 0.0], [1.5, 0.0, 0.0]])
    link = topology.add_filament(ends, node_mass=1.0, constrained=False, fixed_nodes=[0, 1])
    x = np.column_stack([rng.normal(size=n), np.zeros(n), rng.choice([-2.0, 2.0], n)])
    bodies = topology.add_rigid_bodies(x, orients(rng, n), 1.0, mp.rigid.ellipsoid_inertia(axes, 1.0), (1.0, 0.3))
    system = system_with(topology, EllipsoidCollisions(bodies, link, 1.0, axes, 0.5),
                         mp.forces.HarmonicTrap(bodies, k, [0.0, 0.0, 0.0]))  # fmt: skip
    context = mp.Context(system, mp.SplittingIntegrator("BAOAB", 0.01, kT=1.0, seed=3), threads=2)
    context.set_velocities_to_temperature(kT=1.0, seed=4)
    context.step(1500)
    state = context.get_state(positions=True)
    mine = state.positions[bodies.beads], matrices(state.orientations)[:, :, 2]
    m = 200_000
    places, q = rng.normal(size=(m, 3)) / np.sqrt(k), orients(rng, m)
    R = matrices(q)
    mu = growth(np.tile(axes, (m, 1)), R, np.full(m, 0.5), ends - places[:, None], sections=24)
    weight = np.exp(-law(np.maximum(mu, 0.3), 1.0, "WCA"))

    def compare(what, of, sees):
        a, b = of(*mine), of(places, R[:, :, 2])
        expected = np.sum(weight * b) / weight.sum()
        # What the reference itself is uncertain by is little beside the sample.
        error = np.sqrt(np.sum((weight * (b - expected)) ** 2)) / weight.sum()
        assert error < 0.3 * a.std() / np.sqrt(n)
        check_mean(what, a, expected, sees=sees)
        return expected

    across = compare("distance from the axis", lambda x, b: x[:, 1] ** 2 + x[:, 2] ** 2, 0.25)
    assert abs(across - 2.0 / k) > 4.0 * 0.25
    compare("place along it", lambda x, b: x[:, 0] ** 2, 0.18)
    compare("direction", lambda x, b: b[:, 0] ** 2, 0.035)
    radial = compare("direction and place", lambda x, b: (x[:, 1] * b[:, 1] + x[:, 2] * b[:, 2]) ** 2, 0.14)
    assert across / 3.0 - radial > 2.0 * 0.14
