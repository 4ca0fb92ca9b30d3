"""Sites on rigid bodies: springs and ropes between them and everything else."""

import numpy as np
import pytest
from builders import look, orients, refuses, system_with

import medyanpy as mp
from medyanpy import forces
from medyanpy._tools import quaternions
from medyanpy.testing import thermal


def add_bodies(topology, rng, n, **options):
    return topology.add_rigid_bodies(rng.normal(0.0, 4.0, (n, 3)), orients(rng, n), rng.uniform(1.0, 3.0, n),
                                     rng.uniform(1.0, 1.9, (n, 3)), **options)  # fmt: skip


def place_of(site, state):
    """Of one site on one body."""
    rows = {int(b): i for h in site.handles for i, b in zip(range(h.rows.start, h.rows.stop), h.beads, strict=True)}
    bead = int(site.bead_numbers[0])
    q = state.orientations[[rows[bead]]]
    return state.positions[bead] + quaternions.turned(q, site.arms)[0]


# A body tied to something --------------------------------------------------------------------------------------


def tied(to, h, one_sided=False):
    """A body with a bond from an arm to one place on a moving membrane or filament: (context, its site, the place)."""
    rng = np.random.default_rng(5)
    topology = mp.Topology()
    mesh = mp.TriangleMesh.icosphere(6.0, 1)
    membrane = topology.add_membrane(mesh, vertex_mass=2.0)
    points = topology.add_intriangle_points(membrane, 3, mass=1.0, seed=2)
    filament = topology.add_filaments([[[12.0, 0, 0], [14.0, 1, 0], [16.0, 0, 1], [18.0, 1, 1]]], 1.0)
    body = add_bodies(topology, rng, 2)
    others = {
        "in-triangle point": mp.Sites.beads(points.beads[[1]]),
        "vertex": mp.Sites.beads(membrane.beads[[7]]),
        "node": mp.Sites.beads(filament.beads[[2]]),
        "link": filament.sites(0, 1, 0.3),
        "body": body.sites([[0.5, 0.4, 1.0]])[1],
    }
    arm, place = body.sites([[1.0, -2.0, 1.5]])[0], others[to]
    system = system_with(topology, forces.MembraneEdgeSprings(membrane, 30.0), forces.MembraneVolume(membrane, 5.0),
                         forces.Links(arm, place, 2.0, 3.0, one_sided=one_sided, name="tie"))  # fmt: skip
    context = mp.Context(system, mp.SplittingIntegrator("BAGAB", h), threads=1)
    context.set_velocities_to_temperature(kT=1.0, seed=3)
    return context, arm, place


def where(site, state):
    if site.arms is not None:
        return place_of(site, state)
    return site.weights @ state.positions[site.bead_numbers]


@pytest.mark.parametrize("to", ["in-triangle point", "vertex", "node", "link", "body"])
def test_a_body_tied_to_anything(to):
    """The energy is that of the length from tip to tip, and what is lost and won in a run falls as dt²."""
    errors = []
    for h in (0.02, 0.01):
        context, arm, place = tied(to, h)
        start, worst, lengths = look(context).total_energy, 0.0, []
        for _ in range(round(4.0 / h)):
            context.step(1)
            state = look(context)
            length = np.linalg.norm(where(place, state) - where(arm, state))
            assert state.energies["tie"] == pytest.approx((length - 3.0) ** 2, rel=1e-12)
            lengths.append(length)
            worst = max(worst, abs(state.total_energy - start))
        errors.append(worst)
        assert np.ptp(lengths) > 1.0
    assert errors[0] / errors[1] == pytest.approx(4.0, rel=0.15)


def test_a_rope_holds():
    """Taut now and then; slack it lets the body turn freely."""
    context, arm, place = tied("vertex", 0.005, one_sided=True)
    slack = taut = 0
    before = None
    for _ in range(1500):
        state = look(context)
        length = np.linalg.norm(where(place, state) - where(arm, state))
        assert length < 30.0
        spin = quaternions.turned(state.orientations[:1], state.angular_momenta[:1])[0]
        if length < 3.0:
            assert (state.torques == 0.0).all()
            if before is not None:
                np.testing.assert_allclose(spin, before, rtol=0.0, atol=1e-12)
            slack, before = slack + 1, spin
        else:
            taut, before = taut + 1, None
        context.step(1)
    assert slack > 100
    assert taut > 100


# Many of them --------------------------------------------------------------------------------------------------


def network(h, word="BAB", threads=1, n=9, length=0.5, **options):
    """Bodies of two handles and beads, all joined to each other by springs between random sites of them."""
    rng = np.random.default_rng(7)
    topology = mp.Topology()
    a = add_bodies(topology, rng, n, **options)
    beads = topology.add_beads(rng.normal(0.0, 4.0, (n, 3)), mass=rng.uniform(0.5, 2.0, n), friction=0.2)
    b = add_bodies(topology, rng, n, **options)
    mean = mp.Sites.weighted(np.column_stack([a.beads, beads.beads]), np.tile([0.3, 0.7], (n, 1)))
    sites = a.sites(rng.normal(0.0, 1.0, (n, 3, 3))) + b.sites([[0.0, 0, 1.5], [0, 0.5, -1.0]]) + mean
    sites += mp.Sites.beads(beads) + mp.Sites.beads(b)
    i, j = rng.permutation(np.tile(np.arange(len(sites)), 2)).reshape(2, -1)
    i, j = np.array([(p, q) for p, q in zip(i, j, strict=True) if p != q]).T
    alone = sites.single_beads
    keep = (alone[i] < 0) | (alone[i] != alone[j])
    system = mp.System(topology)
    system.add_force(forces.Links(sites[i[keep]], sites[j[keep]], rng.uniform(0.5, 2.0, keep.sum()), length))
    system.add_force(forces.AngleLinks(sites[i[:n]], sites[j[:n]], sites[j[n : 2 * n]], 0.3, 1.0))
    integrator = mp.SplittingIntegrator(word, h, kT=thermal(word, 1.0), seed=5)
    context = mp.Context(system, integrator, threads=threads)
    context.set_velocities_to_temperature(kT=1.0, seed=3)
    return context


def momenta(context, state):
    """Momentum and angular momentum of everything about the origin."""
    topology = context.system.topology
    mass = np.concatenate([handle.mass for handle in topology.handles])
    p = mass[:, None] * state.velocities
    spin = quaternions.turned(state.orientations, state.angular_momenta)
    return np.concatenate([p.sum(axis=0), np.cross(state.positions, p).sum(axis=0) + spin.sum(axis=0)])


@pytest.mark.parametrize("word", ["BAB", "ABA"])
def test_isolated_bodies_keep_both_momenta(word):
    """To round-off, at any timestep: spins change much meanwhile."""
    context = network(0.05, word)
    state = look(context)
    start, spin = momenta(context, state), state.angular_momenta
    size = np.abs(start).max()
    for _ in range(20):
        context.step(20)
        state = look(context)
        assert np.abs(momenta(context, state) - start).max() < 2e-13 * max(size, 50.0)
    assert np.abs(state.angular_momenta - spin).max() > 1.0
    net = np.cross(state.positions, state.forces).sum(axis=0)
    torque = quaternions.turned(state.orientations, state.torques).sum(axis=0)
    assert np.abs(state.forces.sum(axis=0)).max() < 1e-12
    assert np.abs(net).max() > 1.0
    assert np.abs(net + torque).max() < 1e-11


@pytest.mark.parametrize("word", ["BAB", "ABA"])
def test_energy_of_a_network_is_of_second_order(word):
    errors = []
    for h in (0.02, 0.01, 0.005):
        context = network(h, word)
        start, worst = look(context).total_energy, 0.0
        for _ in range(round(2.0 / h)):
            context.step(1)
            worst = max(worst, abs(look(context).total_energy - start))
        errors.append(worst)
    assert errors[0] / errors[1] == pytest.approx(4.0, rel=0.1)
    assert errors[1] / errors[2] == pytest.approx(4.0, rel=0.05)


def test_links_on_arms_are_added_and_removed():
    """A link added to an arm turns the body, moved to the centre it does not, removed it does nothing."""
    topology = mp.Topology()
    body = topology.add_rigid_bodies([[1.0, 2, 3]], [[0.5, 0.5, 0.5, 0.5]], 1.0, [1.0, 1.0, 1.0])
    system = mp.System(topology)
    links = system.add_force(forces.Links(body.sites([[1.0, 0, 0]])[:0], mp.Sites.anchors(np.empty((0, 3))), 2.0))
    context = mp.Context(system, mp.VerletIntegrator(0.01), threads=1)

    def torque():
        return context.get_state(forces=True).torques[0]

    assert (torque() == 0.0).all()
    # The body's axes 1, 2, 3 are y, z, x of space: the tip of the arm is at (1, 3, 3).
    (number,) = links.add(body.sites([[1.0, 0, 0]]), mp.Sites.anchors([[1.0, 3, 5]]))
    np.testing.assert_allclose(torque(), [0.0, 0.0, 0.0] + np.cross([1.0, 0, 0], [0.0, 4.0, 0.0]), atol=1e-15)
    np.testing.assert_allclose(context.get_state(forces=True).forces[0], [0.0, 0.0, 4.0], atol=1e-14)
    links.move(number, a=body)
    assert (torque() == 0.0).all()
    links.move(number, a=body.sites([[0.0, 3.0, 0]]))
    assert abs(torque()).max() == pytest.approx(6.0)
    links.remove(number)
    assert (torque() == 0.0).all()


@pytest.mark.parametrize(("arms", "message"), [
    ([1.0, 2.0, 3.0], r"pair.sites: arms must have shape \(n, 3\), not \(3,\)"),
    ([[0.0, 0, 1], [0, 1]], r"pair.sites: arms must have shape \(k, 3\) or \(2, k, 3\): "),
    (np.zeros((3, 1, 3)), r"pair.sites: arms must have shape \(2, n, 3\), not \(3, 1, 3\)"),
])  # fmt: skip
def test_arms_that_are_refused(arms, message):
    bodies = add_bodies(mp.Topology(), np.random.default_rng(1), 2, name="pair")
    refuses(mp.ParameterError, message, bodies.sites, arms)
