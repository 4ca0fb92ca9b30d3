"""Adenylate kinase as the package holds it is what its structure gives."""

from pathlib import Path

import numpy as np
import pytest
from builders import system_with

import medyanpy as mp

# Friction of one rigid body of 214 spheres of the same radius (pN s/nm), as the preset was made.
WHOLE = 4.6583e-8
STRUCTURE = Path(__file__).parents[3] / "shared" / "data" / "proteins" / "adk_open_4ake.pdb"


@pytest.mark.slow
@pytest.mark.skipif(not STRUCTURE.exists(), reason="no structures beside the checkout")
def test_molecule_made_again_from_its_structure():
    structure = mp.rigid.read_structure(STRUCTURE, chains="A")
    network = mp.rigid.elastic_network(structure, stiffness=700.0)
    domains = mp.rigid.rigid_domains(network, 3)
    made = mp.rigid.from_structure(structure, mp.presets.WATER, domains=domains, network=network, model="residues")
    kept = mp.presets.adenylate_kinase()
    np.testing.assert_allclose(kept.mass, made.mass, rtol=1e-6)
    np.testing.assert_allclose(kept.inertia, made.inertia, rtol=1e-6)
    # Axes have a sign of their own: what does not depend on it.
    for k, (a, b) in enumerate(zip(kept.bodies, made.bodies, strict=True)):
        np.testing.assert_allclose(a.center_of_mass, b.center_of_mass, atol=1e-5)
        turn = np.kron(np.eye(2), a.axes.T), np.kron(np.eye(2), b.axes.T)
        one, other = (t @ f @ t.T for t, f in zip(turn, (kept.friction[k], made.friction[k]), strict=True))
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-6 * abs(other).max())
    assert len(kept.linkers.stiffness) == len(made.linkers.stiffness) == 122
    order = [np.lexsort(m.linkers.ends.reshape(-1, 6).round(3).T) for m in (kept, made)]
    np.testing.assert_allclose(kept.linkers.ends[order[0]], made.linkers.ends[order[1]], atol=1e-4)
    np.testing.assert_allclose(np.sort(kept.linkers.stiffness), np.sort(made.linkers.stiffness), rtol=1e-5)
    np.testing.assert_allclose(np.sort(kept.linkers.lengths), np.sort(made.linkers.lengths), atol=2e-4)
    whole = mp.rigid.from_structure(structure, mp.presets.WATER, model="residues")
    diffusion = mp.rigid.friction_to_diffusion(whole.friction[0], kT=1.0)
    center = mp.rigid.center_of_diffusion(diffusion)
    mean = np.trace(mp.rigid.move_diffusion(diffusion, center)[:3, :3]) / 3.0
    assert 1.0 / mean == pytest.approx(WHOLE, rel=1e-4)


def test_its_linkers_are_at_rest():
    kinase = mp.presets.adenylate_kinase()
    topology = mp.Topology()
    bodies = topology.add_rigid_bodies(**kinase.arguments([[0, 0, 0], [20.0, 0, 0]], [[0.6, 0, 0.8, 0]] * 2))
    system = system_with(topology, mp.forces.Links(**kinase.links(bodies)))
    state = mp.Context(system, mp.VerletIntegrator(1e-13)).get_state(energy=True, forces=True)
    assert state.potential_energy < 1e-12
    assert abs(state.forces).max() < 1e-6
    assert [len(np.unique(kinase.linkers.bodies, axis=0)), len(kinase.bodies)] == [4, 3]
