"""Places on the links of filaments: where they are, who carries them, and what is refused."""

import numpy as np
import pytest
from builders import refuses, system_with

import medyanpy as mp
from medyanpy.forces import Links


def scene(closed=False):
    """Filaments of several lengths after other beads, with unequal links: (topology, handle)."""
    rng = np.random.default_rng(3)
    topology = mp.Topology()
    topology.add_beads(rng.normal(size=(4, 3)), mass=1.0)
    counts = [3, 8, 5] if closed else [2, 7, 3]
    nodes = [np.cumsum(rng.normal(0.0, 3.0, (n, 3)), axis=0) for n in counts]
    return topology, topology.add_filaments(nodes, node_mass=1.0, closed=closed, name="actin")


def places(topology, sites):
    """Where sites are in the starting positions, by a rope to an anchor at the origin."""
    x = np.concatenate([handle.positions for handle in topology.handles])
    assert (np.diff(sites.start) == 2).all()
    return np.einsum("nk,nkc->nc", sites.weights.reshape(-1, 2), x[sites.bead_numbers.reshape(-1, 2)])


@pytest.mark.parametrize("closed", [False, True])
def test_places_on_links(closed, rng):
    topology, actin = scene(closed)
    nodes = [actin.positions[a:b] for a, b in zip(actin.starts, actin.starts[1:], strict=False)]
    filament = rng.integers(0, 3, 50)
    link = np.array([rng.integers(0, len(nodes[i]) - (not closed)) for i in filament])
    fraction = rng.uniform(0.0, 1.0, 50)
    sites = actin.sites(filament, link, fraction)
    expected = [
        (1.0 - f) * nodes[i][k] + f * nodes[i][(k + 1) % len(nodes[i])]
        for i, k, f in zip(filament, link, fraction, strict=True)
    ]
    np.testing.assert_allclose(places(topology, sites), expected, rtol=0.0, atol=1e-14)
    assert sites.handles == (actin,)

    # The same by their distances along the filaments.
    rest = [np.linalg.norm(np.roll(x, -1, axis=0) - x, axis=1) for x in nodes]
    distance = [rest[i][:k].sum() + f * rest[i][k] for i, k, f in zip(filament, link, fraction, strict=True)]
    np.testing.assert_allclose(places(topology, actin.sites_along(filament, distance)), expected, atol=1e-12)


@pytest.mark.parametrize("closed", [False, True])
def test_both_ends(closed):
    topology, actin = scene(closed)
    lengths = np.add.reduceat(actin.link_lengths, actin.kind.link_starts[:-1])
    first = actin.positions[actin.starts[:-1]]
    last = first if closed else actin.positions[actin.starts[1:] - 1]
    every = np.arange(3)
    np.testing.assert_allclose(places(topology, actin.sites_along(every, 0.0)), first, atol=1e-12)
    np.testing.assert_allclose(places(topology, actin.sites_along(every, lengths)), last, atol=1e-12)
    np.testing.assert_allclose(places(topology, actin.sites(every, 0, 0.0)), first, atol=0.0)
    final = np.diff(actin.kind.link_starts) - 1
    np.testing.assert_allclose(places(topology, actin.sites(every, final, 1.0)), last, atol=0.0)


def test_numbers_and_arrays():
    _, actin = scene()
    assert len(actin.sites(1, 2)) == len(actin.sites([1], 2, 0.5)) == 1
    assert actin.sites(1, 2).weights.tolist() == [0.5, 0.5]
    assert actin.sites(1, [2, 3, 4]).bead_numbers.tolist() == [8, 9, 9, 10, 10, 11]
    assert actin.sites([1, 2], [5, 1], [0.25, 1.0]).weights.tolist() == [0.75, 0.25, 0.0, 1.0]
    assert len(actin.sites([], [], [])) == len(actin.sites_along([], [])) == 0


def test_links_between_filaments_share_forces_among_nodes():
    topology, actin = scene()
    system = system_with(topology, Links(actin.sites(0, 0, 0.25), mp.Sites.anchors([[0.0, 0, 0]]), 2.0))
    state = mp.Context(system, mp.VerletIntegrator(1e-3)).get_state(forces=True, positions=True)
    x = 0.75 * state.positions[4] + 0.25 * state.positions[5]
    np.testing.assert_allclose(state.forces[4], -1.5 * x, atol=1e-13)
    np.testing.assert_allclose(state.forces[5], -0.5 * x, atol=1e-13)
    assert (np.delete(state.forces, [4, 5], axis=0) == 0.0).all()


@pytest.mark.parametrize(("make", "error", "text"), [
    (lambda a: a.sites(3, 0), mp.TopologyError, r"'actin': filament\[0\] = 3, but there are filaments 0 to 2"),
    (lambda a: a.sites([0, -1], 0), mp.TopologyError, r"filament\[1\] = -1, but there are filaments 0 to 2"),
    (lambda a: a.sites([1, 0], [5, 1]), mp.TopologyError, r"link\[1\] = 1, but filament 0 has links 0 to 0"),
    (lambda a: a.sites(1, [0, -1]), mp.TopologyError, r"link\[1\] = -1, but filament 1 has links 0 to 5"),
    (lambda a: a.sites(1, 3, [0.5, 1.01]), mp.ParameterError,
     r"sites of 'actin': fraction\[1\] = 1.01 on link 3 of filament 1, but must be from 0 to 1"),
    (lambda a: a.sites(1, 3, -1e-9), mp.ParameterError, r"fraction\[0\] = -1e-09 on link 3 of filament 1"),
    (lambda a: a.sites(1, 3, np.nan), mp.ParameterError, r"fraction\[0\] = nan but must be finite"),
    (lambda a: a.sites(0, 0.5), mp.TopologyError, "link must hold integers"),
    (lambda a: a.sites([0, 1], [0, 1, 2]), mp.TopologyError, "not filament: 2, link: 3, fraction: 1"),
    (lambda a: a.sites_along([0, 1], [0.0]), mp.TopologyError, "not filament: 2, distance: 1"),
    (lambda a: a.sites_along(4, 0.0), mp.TopologyError, "there are filaments 0 to 2"),
    (lambda a: a.sites_along(2, [1.0, -2.0]), mp.ParameterError, r"distance\[1\] = -2.0 nm, but .* of filament 2"),
    (lambda a: a.sites_along(2, 1e3), mp.ParameterError, "must be from 0 to the length of filament 2, [0-9.]+ nm"),
])  # fmt: skip
def test_refused(make, error, text):
    refuses(error, text, make, scene()[1])


def test_handles_of_another_topology():
    topology, _ = scene()
    _, other = scene()
    system = mp.System(topology)
    refuses(mp.TopologyError, "belongs to another topology", system.add_force, Links(other.sites(0, 0), [0], 1.0))
