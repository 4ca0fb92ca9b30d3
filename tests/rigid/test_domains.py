"""Elastic networks, the rigid domains that they show, and linkers as stiff as their relative motion."""

import itertools

import numpy as np
import pytest
from builders import refuses

import medyanpy as mp
from medyanpy import rigid

KT = 4.142
BALLS = ((0.0, 0.0, 0.0), (2.4, 0.0, 0.0), (2.4, 2.4, 0.0))


def structure_of(x, breaks=None, b=0.0):
    """Cα alone, in one chain unless breaks say otherwise."""
    n = len(x)
    residues = tuple(rigid.Residue("ALA", str(k + 1), "A") for k in range(n))
    breaks = np.arange(n) == 0 if breaks is None else breaks
    return rigid.Structure(np.array(x, float), np.full(n, 1.2e-22), np.full(n, "C"), np.full(n, "CA"), np.arange(n),
                           residues, np.arange(n), np.full(n, float(b)), breaks)  # fmt: skip


def balls(rng, places=BALLS, n=60, radius=1.0):
    """Clouds of atoms that touch the next."""
    x, labels = [], []
    for k, place in enumerate(places):
        while sum(label == k for label in labels) < n:
            p = rng.uniform(-radius, radius, 3)
            if np.linalg.norm(p) < radius and all(np.linalg.norm(p + place - q) > 0.28 for q in x):
                x.append(p + place)
                labels.append(k)
    return np.array(x), np.array(labels)


def dense(network):
    """The matrix of the network of unit springs, term by term."""
    n = len(network.positions)
    h = np.zeros((n, 3, n, 3))
    for i, j in network.contacts:
        e = network.positions[j] - network.positions[i]
        block = np.outer(e, e) / (e @ e)
        h[i, :, i] += block
        h[j, :, j] += block
        h[i, :, j] -= block
        h[j, :, i] -= block
    return h.reshape(3 * n, 3 * n)


def test_a_network_against_its_matrix(rng):
    x, _ = balls(rng, n=25)
    breaks = np.isin(np.arange(len(x)), [0, 25, 50])
    network = rigid.elastic_network(structure_of(x, breaks), cutoff=1.6, stiffness=300.0, modes=1000)
    contacts = set(map(tuple, network.contacts.tolist()))
    for i, j in itertools.combinations(range(len(x)), 2):
        along = j - i <= 3 and not breaks[i + 1 : j + 1].any()
        assert ((i, j) in contacts) == (along or np.linalg.norm(x[i] - x[j]) <= 1.6)
    values, vectors = np.linalg.eigh(dense(network))
    assert len(network.modes) == 3 * len(x) - 6
    np.testing.assert_allclose(network.eigenvalues, values[6:], rtol=1e-9)
    # With all modes, fluctuations are those of the inverse.
    inverse = (vectors[:, 6:] / values[6:]) @ vectors[:, 6:].T * KT / 300.0
    np.testing.assert_allclose(network.squared_displacements(KT), np.diag(inverse).reshape(-1, 3).sum(axis=1),
                               rtol=1e-9)  # fmt: skip
    for (i, j), found in zip(network.contacts[::37], network.contact_fluctuations(KT)[::37], strict=True):
        d = np.zeros((len(x), 3))
        d[j] = (x[j] - x[i]) / np.linalg.norm(x[j] - x[i])
        d[i] = -d[j]
        np.testing.assert_allclose(found**2, d.ravel() @ inverse @ d.ravel(), rtol=1e-9)


@pytest.mark.slow
def test_many_atoms_have_the_same_softest_modes(rng):
    """Those of large molecules are found by another method."""
    x, _ = balls(rng, n=60)
    small = rigid.elastic_network(structure_of(x), stiffness=1.0, modes=20)
    big, _ = balls(rng, places=[(0.0, 2.2 * k, 0.0) for k in range(12)], n=60)
    for positions, modes in ((x, 20), (big, 20)):
        network = rigid.elastic_network(structure_of(positions), stiffness=1.0, modes=modes)
        values = np.linalg.eigvalsh(dense(network))[6 : 6 + modes]
        np.testing.assert_allclose(network.eigenvalues, values, rtol=1e-6)
        flat = network.modes.reshape(modes, -1)
        np.testing.assert_allclose(flat @ flat.T, np.eye(modes), atol=1e-8)
        again = rigid.elastic_network(structure_of(positions), stiffness=1.0, modes=modes)
        assert np.array_equal(network.modes, again.modes)
    assert len(big) * 3 > 2000 > len(x) * 3
    assert np.array_equal(small.contacts, rigid.elastic_network(structure_of(x), stiffness=1.0, modes=5).contacts)


def test_stiffness_from_b_factors(rng):
    x, _ = balls(rng)
    network = rigid.elastic_network(structure_of(x, b=0.2), kT=KT, modes=40)
    np.testing.assert_allclose(network.squared_displacements(KT).mean() * 8.0 * np.pi**2 / 3.0, 0.2, rtol=1e-12)
    refuses(mp.ParameterError, "has no B factors: give the stiffness", rigid.elastic_network, structure_of(x))


def test_networks_that_fall_apart_name_who_is_loose(rng):
    x, _ = balls(rng, places=[(0.0, 0.0, 0.0), (30.0, 0.0, 0.0)], n=20)
    breaks = np.isin(np.arange(40), [0, 20])
    with pytest.raises(mp.ParameterError, match="6 motions of parts are resisted by nothing, most of all of ALA"):
        rigid.elastic_network(structure_of(x, breaks), stiffness=1.0, cutoff=1.1)
    refuses(mp.ParameterError, "3 Cα are too few", rigid.elastic_network, structure_of(x[:3]), stiffness=1.0)
    for name, value in (("cutoff", 0.0), ("stiffness", -1.0), ("kT", np.inf), ("modes", 0)):
        refuses(mp.ParameterError, name, rigid.elastic_network, structure_of(x), **{"stiffness": 1.0} | {name: value})


@pytest.mark.parametrize("n", [2, 3, pytest.param(4, marks=pytest.mark.slow)])
def test_balls_in_a_row_are_domains(rng, n):
    """And as many as there are have the best score."""
    turns = [(2.1 * k, 0.5 * (k % 2), 0.3 * (k % 3)) for k in range(n)]
    x, labels = balls(rng, places=turns)
    network = rigid.elastic_network(structure_of(x, np.diff(labels, prepend=-1) != 0), stiffness=1.0)
    found = rigid.rigid_domains(network)
    assert found.n == n
    assert max(found.scores, key=found.scores.get) == n
    # Each ball is one, but for atoms where they touch.
    for k in range(n):
        own = np.bincount(found.labels[labels == k], minlength=n)
        assert own.max() >= 0.93 * own.sum()
    assert (np.diff(found.sizes) <= 0).all()
    assert np.array_equal(found.labels, rigid.rigid_domains(network).labels)
    assert f"Domains({n} of" in repr(found)


def test_domains_do_not_depend_on_stiffness_or_place(rng):
    x, _ = balls(rng)
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    one = rigid.rigid_domains(rigid.elastic_network(structure_of(x), stiffness=1.0), 3)
    other = rigid.rigid_domains(rigid.elastic_network(structure_of(x @ turn.T + 50.0), stiffness=77.0), 3)
    assert np.array_equal(one.labels, other.labels)


def test_wrong_numbers_of_domains(rng):
    network = rigid.elastic_network(structure_of(balls(rng, n=10)[0]), stiffness=1.0)
    for n in (1, 100, 2.5):
        refuses(mp.ParameterError, "n", rigid.rigid_domains, network, n)
    refuses(mp.ParameterError, "must be an ElasticNetwork", rigid.rigid_domains, "adk", 3)


# Linkers ------------------------------------------------------------------------------------------------------------


def relative_square(network, labels, pair, displacement_covariance):
    """⟨Σ |Δu|²⟩ over contacts between two domains of rigid motions that fit displacements best, from their covariance
    (3n, 3n): atom by atom."""
    x, n = network.positions, len(network.positions)
    project = np.zeros((n, 3, n, 3))
    for k in range(labels.max() + 1):
        own = np.flatnonzero(labels == k)
        basis = np.array([[np.concatenate([np.eye(3)[a], np.zeros(3)]) for a in range(3)] for _ in own])
        basis = np.zeros((len(own), 3, 6))
        for row, i in enumerate(own):
            r = x[i] - x[own].mean(axis=0)
            for a in range(3):
                basis[row, a, a] = 1.0
                basis[row, :, 3 + a] = np.cross(np.eye(3)[a], r)
        flat = basis.reshape(-1, 6)
        q, _ = np.linalg.qr(flat)
        block = (q @ q.T).reshape(len(own), 3, len(own), 3)
        project[np.ix_(own, range(3), own, range(3))] = block
    p = project.reshape(3 * n, 3 * n)
    c = (p @ displacement_covariance @ p.T).reshape(n, 3, n, 3)
    total = 0.0
    for i, j in network.contacts:
        if set(labels[[i, j]].tolist()) == set(pair):
            for a in range(3):
                total += c[i, a, i, a] + c[j, a, j, a] - 2.0 * c[i, a, j, a]
    return total


def test_linkers_reproduce_the_relative_motion_of_the_network(rng):
    """Between each pair of domains, and against matrices that are made atom by atom; without the fit domains would be
    too stiff."""
    x, labels = balls(rng, n=40)
    network = rigid.elastic_network(structure_of(x), cutoff=1.3, stiffness=200.0, modes=10_000)
    molecule = rigid.from_structure(structure_of(x), 1e-9, model="residues", domains=labels, network=network)
    springs = molecule.linkers
    n = len(x)
    values, vectors = np.linalg.eigh(dense(network))
    of_network = (vectors[:, 6:] / values[6:]) @ vectors[:, 6:].T * KT / 200.0
    # Rigid domains with these linkers: in the coordinates of their motions.
    basis = np.zeros((n, 3, 3, 6))
    for k in range(3):
        for i in np.flatnonzero(labels == k):
            r = x[i] - x[labels == k].mean(axis=0)
            basis[i, :, k, :3] = np.eye(3)
            for a in range(3):
                basis[i, :, k, 3 + a] = np.cross(np.eye(3)[a], r)
    flat = basis.reshape(3 * n, 18)

    def covariance(stiffness):
        h = np.zeros((18, 18))
        for (a, b), k in zip(springs.ends, stiffness, strict=True):
            i, j = (int(np.argmin(np.linalg.norm(x - end, axis=1))) for end in (a, b))
            e = (x[j] - x[i]) / np.linalg.norm(x[j] - x[i])
            row = e @ (basis[j] - basis[i]).reshape(3, 18)
            h += k * np.outer(row, row)
        w, v = np.linalg.eigh(h)
        assert w[5] < 1e-9 * w[-1] < 1e-3 * w[6]
        return flat @ ((v[:, 6:] / w[6:]) @ v[:, 6:].T * KT) @ flat.T

    pairs = {tuple(sorted(pair)) for pair in springs.bodies.tolist()}
    assert pairs == {(0, 1), (1, 2)}
    for pair in pairs:
        wanted = relative_square(network, labels, pair, of_network)
        np.testing.assert_allclose(relative_square(network, labels, pair, covariance(springs.stiffness)), wanted,
                                   rtol=1e-6)  # fmt: skip
        stiff = relative_square(network, labels, pair, covariance(np.full(len(springs.stiffness), 200.0)))
        assert stiff < 0.9 * wanted
    np.testing.assert_allclose(springs.lengths, np.linalg.norm(np.diff(springs.ends, axis=1)[:, 0], axis=1))


def test_domains_that_nothing_holds(rng):
    x, labels = balls(rng, places=[(0.0, 0.0, 0.0), (2.4, 0.0, 0.0)], n=30)
    network = rigid.elastic_network(structure_of(x), stiffness=1.0)
    loose = np.where(np.arange(60) < 30, 0, 1)
    apart = rigid.ElasticNetwork(x, network.contacts[(loose[network.contacts[:, 0]] == loose[network.contacts[:, 1]])],
                                 1.0, network.eigenvalues, network.modes)  # fmt: skip
    with pytest.raises(mp.ParameterError, match="relative motions of the domains are resisted by no contact"):
        rigid.from_structure(structure_of(x), 1e-9, model="residues", domains=labels, network=apart)


# Real ones ----------------------------------------------------------------------------------------------------------


def numbers(structure, labels, k):
    own = structure.alpha[labels == k]
    return {int(structure.residues[structure.residue_of[a]].number) for a in own}


def test_adenylate_kinase_is_lid_nmp_and_core(shared_data):
    """Residues 118 to 160 and 30 to 67 (Schulz, Müller and Diederichs 1990), and the rest: nine in ten of each."""
    structure = rigid.read_structure(shared_data / "proteins" / "adk_open_4ake.pdb")
    found = rigid.rigid_domains(rigid.elastic_network(structure, stiffness=700.0), 3)
    core, lid, nmp = (numbers(structure, found.labels, k) for k in range(3))
    if len(lid & set(range(118, 161))) < len(nmp & set(range(118, 161))):
        lid, nmp = nmp, lid
    assert len(lid & set(range(118, 161))) >= 39
    assert len(nmp & set(range(30, 68))) >= 35
    rest = set(range(1, 215)) - set(range(118, 161)) - set(range(30, 68))
    assert len(core & rest) >= 0.87 * len(rest)
    # The closed one has the same lid.
    closed = rigid.read_structure(shared_data / "proteins" / "adk_closed_1ake.pdb")
    two = rigid.rigid_domains(rigid.elastic_network(closed), 2)
    assert len(numbers(closed, two.labels, 1) & set(range(118, 161))) >= 39


@pytest.mark.slow
def test_the_channel_is_two_layers_and_six_domains(shared_data):
    """The pentameric glycine receptor: outside and membrane; or the outer part of each subunit, and the membrane part
    of all. Both are peaks of the score, and nothing else up to ten is."""
    path = shared_data / "proteins" / "glyr_7tu9.pdb"
    structure = rigid.read_structure(path, ligands="leave out", gaps="allow")
    network = rigid.elastic_network(structure)
    chain = np.array([structure.residues[structure.residue_of[a]].chain for a in structure.alpha])
    layers = rigid.rigid_domains(network)
    assert layers.n == 2
    score = layers.scores
    assert [k for k in range(3, 10) if score[k] > max(score[k - 1], score[k + 1])] == [6]
    axis = np.linalg.svd(network.positions - network.positions.mean(axis=0), full_matrices=False)[2][0]
    height = network.positions @ axis
    apart = abs(height[layers.labels == 0].mean() - height[layers.labels == 1].mean())
    assert apart > 1.5 * max(height[layers.labels == k].std() for k in (0, 1))
    for k in (0, 1):
        counts = [int(((chain == c) & (layers.labels == k)).sum()) for c in "ABCDE"]
        assert max(counts) < 1.2 * min(counts)
    six = rigid.rigid_domains(network, 6)
    counts = np.array([[((chain == c) & (six.labels == k)).sum() for c in "ABCDE"] for k in range(6)])
    assert counts[0].min() > 110
    outer = counts[1:]
    assert sorted(outer.argmax(axis=1).tolist()) == [0, 1, 2, 3, 4]
    assert (outer.max(axis=1) > 0.93 * outer.sum(axis=1)).all()
