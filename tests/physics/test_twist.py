"""Twistable filaments: torsional waves, equilibrium, the buckling of a twisted ring, and what is conserved.

False alarms: 1e-6 for each statistical check (see medyanpy.testing). Seeds are fixed, so a pass is a pass.
"""

import numpy as np
import pytest
from builders import energies_converge, look, retraced

import medyanpy as mp
from medyanpy.testing import check_mean, check_variance, thermal


def context_of(topology, forces, word="BAB", timestep=0.01, **options):
    system = mp.System(topology)
    for force in forces:
        system.add_force(force)
    return mp.Context(system, mp.SplittingIntegrator(word, timestep, **options), threads=1)


def zoo(word="BAB", timestep=0.01, kT=1.0, tolerance=1e-10, fixed=False):
    """Chains and rings of several lengths, with uneven masses and moments, that bend and twist."""
    rng = np.random.default_rng(5)
    topology, forces = mp.Topology(), []
    for closed, counts in ((False, (2, 3, 6, 12)), (True, (4, 9, 20))):
        if closed:
            nodes = [_polygon(n) + rng.normal(0.0, 0.1, (n, 3)) for n in counts]
        else:
            nodes = [np.cumsum(rng.normal(0.0, 0.3, (n, 3)) + [1.0, 0.0, 0.0], axis=0) for n in counts]
        links = sum(counts) - (0 if closed else len(counts))
        handle = topology.add_filaments(nodes, rng.uniform(0.5, 2.0, sum(counts)), 0.7, closed=closed,
                                        directors="parallel", director_mass=rng.uniform(0.3, 2.0, links),
                                        director_friction=0.5, tolerance=tolerance,
                                        fixed_nodes=[0] if fixed else ())  # fmt: skip
        what = "rings" if closed else "chains"
        forces += [
            mp.forces.FilamentBending(handle, 4.0, name=f"bending of {what}"),
            mp.forces.FilamentTwisting(handle, 5.0, 0.3, name=f"twisting of {what}"),
            mp.forces.FixmanPotential(handle, kT=kT, name=f"metric of {what}"),
        ]
    context = context_of(topology, forces, word, timestep, kT=thermal(word, kT), seed=2)
    context.set_velocities_to_temperature(kT=kT, seed=3)
    return context, topology.handles


def _polygon(n):
    phi = 2.0 * np.pi / n * np.arange(n)
    return np.column_stack([np.cos(phi), np.sin(phi), np.zeros(n)]) / (2.0 * np.sin(np.pi / n))


# Mechanics ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("word", ["BAOAB", "BAB"])
def test_lengths_right_angles_and_directors_at_every_step(word):
    """And velocities tangent to all of them, after each of 1000 steps."""
    context, handles = zoo(word, timestep=0.02, kT=1.0)
    start = look(context)
    chains = [handle for handle in handles if not isinstance(handle, mp.topology.Directors)]
    assert len(chains) == 2
    for _ in range(1000):
        context.step(1)
        state = context.get_state(positions=True, velocities=True)
        for chain in chains:
            (a, b), p = (chain.beads[chain.links[:, end]] for end in (0, 1)), chain.directors.beads
            D, U = state.positions[b] - state.positions[a], state.velocities[b] - state.velocities[a]
            d, w = state.positions[p], state.velocities[p]
            length = chain.link_lengths
            cosine = (D * d).sum(axis=1) / length
            for kept in (np.linalg.norm(D, axis=1) / length, np.linalg.norm(d, axis=1), 1.0 + cosine):
                np.testing.assert_allclose(kept, 1.0, rtol=0.0, atol=1e-10)
            for slant in ((D * U).sum(axis=1), (d * w).sum(axis=1), (D * w + U * d).sum(axis=1)):
                assert np.abs(slant / length).max() < 1e-12
    assert np.abs(look(context).positions - start.positions).max() > 1.0


def test_energy_error_falls_as_the_square_of_the_timestep():
    energies_converge(lambda h: zoo(timestep=h)[0])


@pytest.mark.parametrize("word", ["BAB", "ABA"])
def test_time_reversal(word):
    retraced(zoo(word, tolerance=2e-14, fixed=True)[0], 200)


def test_angular_momentum_is_that_of_nodes_and_directors():
    context, handles = zoo(timestep=0.02)
    mass = np.concatenate([handle.mass for handle in handles])[:, None]
    nodes = np.concatenate([np.full(len(h), not isinstance(h, mp.topology.Directors)) for h in handles])

    def momenta():
        state = look(context)
        p = mass * state.velocities
        own = np.cross(state.positions, p)
        return p[nodes].sum(axis=0), own.sum(axis=0), own[nodes].sum(axis=0)

    p0, l0, nodes0 = momenta()
    context.step(300)
    p1, l1, nodes1 = momenta()
    assert np.abs(p1 - p0).max() < 1e-11
    assert np.abs(l1 - l0).max() < 1e-10
    # It goes to and fro between the two.
    assert np.abs(nodes1 - nodes0).max() > 0.1


@pytest.mark.parametrize("mode", [1, 2, 7, 15])
def test_torsional_waves_of_a_straight_filament(mode):
    """A chain of angles with moments I and springs C/l has the frequencies 2 sqrt(C/(l I)) sin(q l/2), with free ends
    at q l = mode pi/links; a step of BAB turns them by 2 arcsin(frequency h/2). To 1e-6."""
    links, modulus, length, moment, h, n = 16, 3.0, 0.8, 0.5, 0.02, 400
    topology = mp.Topology()
    x = np.arange(links + 1)[:, None] * [0.0, 0.0, length]
    shape = np.cos(mode * np.pi / links * (np.arange(links) + 0.5))
    angle = 1e-4 * shape
    p = np.column_stack([np.cos(angle), np.sin(angle), np.zeros(links)])
    filament = topology.add_filament(x, 1.3, directors=p, director_mass=moment)
    forces = [mp.forces.FilamentTwisting(filament, modulus), mp.forces.FilamentBending(filament, 2.0)]
    context = context_of(topology, forces, timestep=h)
    frequency = 2.0 * np.sqrt(modulus / (length * moment)) * np.sin(mode * np.pi / links / 2.0)
    for _ in range(3):
        context.step(n)
        x, y, _ = context.get_state(positions=True).positions[filament.directors.beads].T
        phase = 2.0 * np.arcsin(frequency * h / 2.0) * context.step_count
        assert np.arctan2(y, x) == pytest.approx(1e-4 * np.cos(phase) * shape, abs=1e-10)


# Michell's ring -------------------------------------------------------------------------------------------------


def twisted_ring(n, bending, twist_modulus, total):
    """A flat ring of n links of length 1 whose twist is `total` away from rest, the same at all joints."""
    topology = mp.Topology()
    ring = topology.add_filament(_polygon(n), 1.0, closed=True, directors="parallel", director_mass=1.0)
    forces = [mp.forces.FilamentBending(ring, bending), mp.forces.FilamentTwisting(ring, twist_modulus, -total / n)]
    return ring, context_of(topology, forces, timestep=0.1)


def michell(n, bending, twist_modulus):
    """Total twist at which a ring of n links buckles (docs/theory/twist.md); 2 pi sqrt(3) bending/twist for many."""
    c = np.cos(2.0 * np.pi / n)
    return n * bending / twist_modulus * (1.0 + c) * np.sqrt((1.0 - c) * (1.0 + 2.0 * c) / (2.0 * c))


def stiffnesses(ring, context):
    """Second derivatives of the energy of a flat ring along all motions that constraints leave, by size; no force acts
    on it, and so none on the constraints, whose own curvature then does not count."""
    x = context.get_state(positions=True).positions
    n = len(ring)

    def forces(x):
        context._store.x[:] = x[context.layout.order]
        context._store.positions_changed()
        return context.get_state(forces=True).forces.ravel()

    assert np.abs(forces(x)).max() < 1e-13
    hessian = np.empty((x.size, x.size))
    for k in range(x.size):
        step = np.zeros(x.size)
        step[k] = 1e-5
        step = step.reshape(x.shape)
        hessian[k] = (forces(x - step) - forces(x + step)) / 2e-5
    link, (first, last) = np.arange(n), ring.links.T
    d, p = x[last] - x[first], x[n:]
    jacobian = np.zeros((3, n, *x.shape))
    for row, on_nodes in enumerate((d, p)):
        jacobian[row, link, first] = -on_nodes
        jacobian[row, link, last] = on_nodes
    jacobian[1, link, n + link], jacobian[2, link, n + link] = d, p
    # Columns beyond the rank are the motions that change no constraint.
    free = np.linalg.qr(jacobian.reshape(3 * n, x.size).T, mode="complete").Q[:, 3 * n :]
    values = np.linalg.eigvalsh(free.T @ (0.5 * (hessian + hessian.T)) @ free)
    return values[np.argsort(np.abs(values))]


@pytest.mark.parametrize(("n", "bending", "twist_modulus"), [(8, 1.0, 1.0), (24, 2.0, 5.0), (40, 3.0, 1.0)])
def test_a_twisted_ring_loses_its_stability_where_michell_says(n, bending, twist_modulus):
    """The stiffness of the two modes z ~ cos 2 phi, sin 2 phi changes sign there, to 1e-3 of that threshold and of its
    own slope to 1e-2; rigid motions and the turning of all directors cost nothing."""
    threshold = michell(n, bending, twist_modulus)
    assert threshold == pytest.approx(2.0 * np.pi * np.sqrt(3.0) * bending / twist_modulus, rel=8.3 / n**2)
    lowest = []
    for factor in (0.999, 1.001):
        values = stiffnesses(*twisted_ring(n, bending, twist_modulus, factor * threshold))
        assert np.abs(values[:7]).max() < 2e-9
        assert (values[9:] > 10.0 * np.abs(values[7:9]).max()).all()
        lowest.append(values[7:9])
    assert (lowest[0] > 1e-6).all()
    assert lowest[1] == pytest.approx(-lowest[0], rel=1e-2)


@pytest.mark.parametrize("factor", [0.9, 1.1])
def test_a_ring_that_is_twisted_too_much_buckles(factor):
    """With constraints and all, from a push by 1e-7: it stays flat, or comes out of its plane by more than a link."""
    n = 24
    _, context = twisted_ring(n, 1.0, 1.0, factor * michell(n, 1.0, 1.0))
    v = np.zeros((2 * n, 3))
    v[:n, 2] = 1e-7 * np.cos(4.0 * np.pi * np.arange(n) / n + 0.3)
    context.set_velocities(v)
    height = 0.0
    for _ in range(8):
        context.step(400)
        height = max(height, np.ptp(context.get_state(positions=True).positions[:n, 2]))
    assert height < 1e-4 if factor < 1.0 else height > 1.0


# What holds in the mean ----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_torsional_equipartition():
    """Stiff twist with the Fixman potential: <φ²> = kT l/C at every joint, whatever the masses and bends. 24 000 nearly
    independent angles find 7.7 %."""
    n, nodes, times, steps = 300, 6, 20, 40
    kT, length, modulus = 1.5, 0.8, 40.0
    rng = np.random.default_rng(3)
    d = np.cumsum(rng.normal(0.0, 0.5, (n, nodes - 1, 3)) + [1.0, 0.0, 0.0], axis=1)
    d = length * d / np.linalg.norm(d, axis=2)[:, :, None]
    x = np.concatenate([np.zeros((n, 1, 3)), np.cumsum(d, axis=1)], axis=1).reshape(-1, 3)
    topology = mp.Topology()
    filaments = topology.add_filaments(
        x, np.tile(rng.uniform(0.5, 3.0, nodes), n), 1.0, starts=nodes * np.arange(n + 1), directors="parallel",
        director_mass=np.tile(rng.uniform(0.5, 2.0, nodes - 1), n), director_friction=10.0,
    )  # fmt: skip
    forces = [
        mp.forces.FilamentTwisting(filaments, modulus), mp.forces.FilamentBending(filaments, 10.0),
        mp.forces.FixmanPotential(filaments, kT=kT),
    ]  # fmt: skip
    context = context_of(topology, forces, "BAOAB", 0.02, kT=kT, seed=4)
    context.set_velocities_to_temperature(kT=kT, seed=5)
    context.step(100)
    squares, neighbors = [], []
    for _ in range(times):
        context.step(steps)
        phi = turns(filaments, context).reshape(n, nodes - 2)
        squares.append(phi**2)
        neighbors.append(phi[:, 1:] * phi[:, :-1])
    expected = kT * length / modulus
    check_variance("twist", np.sum(squares), np.size(squares), expected, sees=0.077)
    # Joints are independent of each other, filaments as well.
    check_mean("product of neighbours", np.mean(neighbors, axis=(0, 2)) / expected, 0.0, sees=0.063)
    # Times are nearly so.
    a, b = (np.array(squares)[i].ravel() for i in (slice(None, -1), slice(1, None)))
    assert np.corrcoef(a, b)[0, 1] < 0.05


def turns(filaments, context):
    """(J,) twist angles of chains, by carrying each director on with two mirrors."""
    x = context.get_state(positions=True).positions
    nodes, p = x[filaments.beads], x[filaments.directors.beads]
    t = nodes[filaments.links[:, 1]] - nodes[filaments.links[:, 0]]
    t /= np.linalg.norm(t, axis=1)[:, None]
    inner = np.delete(np.arange(len(t)), filaments.kind.link_starts[1:] - 1)
    a, b, p, q = t[inner], t[inner + 1], p[inner], p[inner + 1]
    both = a + b
    moved = p - (2.0 * (both * p).sum(axis=1) / (both * both).sum(axis=1))[:, None] * both
    # The first lies across a + b, the second across b.
    moved -= 2.0 * (b * moved).sum(axis=1)[:, None] * b
    return np.arctan2((np.cross(moved, q) * b).sum(axis=1), (moved * q).sum(axis=1))


HEAVY = {"mass": [1.0, 0.2, 1.0], "moment": [4.0, 2.0], "bending": 6.0, "twist": 2.0}


@pytest.mark.slow
@pytest.mark.parametrize("fixman", [False, True])
def test_two_links_with_heavy_directors(fixman):
    """Soft joints between two unit links: p ~ e^(a cos θ - C φ²/2kT), times the root of the metric without the Fixman
    potential. Heavy directors and a light middle make that root matter: it lowers <cos θ> by 0.0096 and raises <φ²>
    from 0.50 to 0.57. The checks find 0.010 and 0.044."""
    n, times, steps = 2000, 10, 40
    a = HEAVY["bending"]
    rng = np.random.default_rng(6)
    cosine = np.log(np.exp(-a) + rng.uniform(size=n) * (np.exp(a) - np.exp(-a))) / a
    d = np.column_stack([cosine, np.sqrt(1.0 - cosine**2), np.zeros(n)])
    x = np.stack([np.tile([-1.0, 0.0, 0.0], (n, 1)), np.zeros((n, 3)), d], axis=1).reshape(-1, 3)
    topology = mp.Topology()
    filaments = topology.add_filaments(x, np.tile(HEAVY["mass"], n), 1.0, starts=3 * np.arange(n + 1),
                                       directors="parallel", director_mass=np.tile(HEAVY["moment"], n),
                                       director_friction=4.0)  # fmt: skip
    forces = [mp.forces.FilamentTwisting(filaments, HEAVY["twist"]), mp.forces.FilamentBending(filaments, a)]
    forces += [mp.forces.FixmanPotential(filaments, kT=1.0)] if fixman else []
    context = context_of(topology, forces, "BAOAB", 0.04, kT=1.0, seed=7)
    context.set_velocities_to_temperature(kT=1.0, seed=8)
    context.step(4 * steps)
    cosines, twists = [], []
    for _ in range(times):
        context.step(steps)
        twists.append(turns(filaments, context) ** 2)
        nodes = context.get_state(positions=True).positions[filaments.beads].reshape(n, 3, 3)
        cosines.append(((nodes[:, 1] - nodes[:, 0]) * (nodes[:, 2] - nodes[:, 1])).sum(axis=1))
    cosine, twist = expected_of_two_links(fixman)
    check_mean("<cos θ>", np.mean(cosines, axis=0), cosine, sees=0.013 * cosine)
    check_mean("<φ²>", np.mean(twists, axis=0), twist, sees=0.089 * twist)


def expected_of_two_links(fixman):
    """<cos θ> and <φ²> by quadrature over cos θ, the angle of the first director to the plane of the links, and φ."""
    c, weights = np.polynomial.legendre.leggauss(24)
    first, phi = np.pi / 24.0 * np.arange(48), np.pi / 48.0 * np.arange(-48, 49)
    c, first, phi = np.meshgrid(c, first, phi, indexing="ij")
    weight = weights[:, None, None] * np.exp(HEAVY["bending"] * c - 0.5 * HEAVY["twist"] * phi**2)
    weight[:, :, [0, -1]] *= 0.5
    if not fixman:
        # Links (1, 0, 0) and (c, s, 0), directors turned about them from the common normal (0, 0, 1).
        s, second = np.sqrt(1.0 - c * c), first + phi
        w, i = 1.0 / np.array(HEAVY["mass"]), 1.0 / np.array(HEAVY["moment"])
        metric = np.zeros((*c.shape, 4, 4))
        for link in range(2):
            metric[..., 2 * link, 2 * link] = w[link] + w[link + 1]
            metric[..., 2 * link + 1, 2 * link + 1] = w[link] + w[link + 1] + i[link]
        before = np.stack([np.ones_like(c), 0.0 * c, 0.0 * c]), np.stack([0.0 * c, -np.sin(first), np.cos(first)])
        after = np.stack([c, s, 0.0 * c]), np.stack([s * np.sin(second), -c * np.sin(second), np.cos(second)])
        for j, k in np.ndindex(2, 2):
            metric[..., j, 2 + k] = metric[..., 2 + k, j] = -w[1] * (before[j] * after[k]).sum(axis=0)
        weight *= np.sqrt(np.linalg.det(metric))
    return [float((weight * value).sum() / weight.sum()) for value in (c, phi**2)]


@pytest.mark.slow
@pytest.mark.parametrize("closed", [False, True])
def test_temperature_counts_the_constraints_of_directors(closed):
    """3 n + 3 l - 3 l degrees of freedom, less 3 for a fixed node, right after O; frictions 1:50. 9 000
    degrees of freedom find 13 %; directors counted as free would change it by 40 % and more."""
    rng = np.random.default_rng(8)
    n, k = 7, 500
    links = n if closed else n - 1
    x = _polygon(n) + rng.normal(0.0, 0.1, (n, 3)) if closed else np.cumsum(rng.normal(size=(n, 3)), axis=0)
    topology = mp.Topology()
    handle = topology.add_filaments(np.tile(x, (k, 1)), np.tile(rng.uniform(0.5, 2.0, n), k),
                                    np.tile(rng.choice([0.4, 20.0], n), k), starts=n * np.arange(k + 1), closed=closed,
                                    fixed_nodes=n * np.arange(k), directors="parallel",
                                    director_mass=np.tile(rng.uniform(0.5, 2.0, links), k),
                                    director_friction=np.tile(rng.choice([0.4, 20.0], links), k))  # fmt: skip
    context = context_of(topology, [], "BAOAB", 0.02, kT=1.5, seed=3)
    context.step(250)
    state = context.get_state(energy=True)
    free = k * (3 * n - 3)
    assert handle.degrees_of_freedom == free
    check_variance("temperature", state.temperatures[handle.name] * mp.units.boltzmann * free, free, 1.5, sees=0.13)
