"""Lattices: places at equal distances along filaments, for forces, jumps and documents."""

import pickle

import numpy as np
import pytest
from builders import refuses, system_with

import medyanpy as mp
from medyanpy.files.documents import deserialize, serialize
from medyanpy.forces import Links


def scene():
    """Filaments of 17 and 30 nm, bent, with links of unequal length: (topology, handle)."""
    topology = mp.Topology()
    topology.add_beads([[0.0, 0.0, 0.0]], mass=1.0, friction=1.0)
    nodes = [[[0.0, 0, 0], [10.0, 0, 0], [10.0, 7, 0]], [[0.0, 0, 50], [5.0, 0, 50], [5.0, 0, 60], [20.0, 0, 60]]]
    return topology, topology.add_filaments(nodes, node_mass=1.0, node_friction=1.0, name="actin")


def where(topology, sites):
    system = mp.System(topology)
    return sites.positions(mp.Context(system, mp.VerletIntegrator(1e-3)).get_state(positions=True))


def test_places_lie_at_equal_distances_along_each_filament():
    topology, actin = scene()
    lattice = actin.lattice(4.0)
    assert lattice.filaments.tolist() == [0] * 5 + [1] * 8
    assert lattice.numbers.tolist() == [*range(5), *range(8)]
    assert lattice.abscissas.tolist() == [*range(0, 17, 4), *range(0, 29, 4)]
    x = [[0, 0, 0], [4, 0, 0], [8, 0, 0], [10, 2, 0], [10, 6, 0],
         [0, 0, 50], [4, 0, 50], [5, 0, 53], [5, 0, 57], [6, 0, 60], [10, 0, 60], [14, 0, 60], [18, 0, 60]]  # fmt: skip
    np.testing.assert_allclose(where(topology, lattice), x, rtol=0.0, atol=1e-12)


def test_a_filament_of_a_whole_number_of_spacings_has_both_ends():
    topology = mp.Topology()
    actin = topology.add_filaments([[[0.0, 0, 0], [27.0, 0, 0], [54.0, 0, 0]]], node_mass=1.0)
    lattice = actin.lattice(2.7)
    assert len(lattice) == 21
    np.testing.assert_allclose(where(topology, lattice)[-1], [54.0, 0, 0], rtol=0.0, atol=1e-12)


def test_places_beside_are_those_of_the_same_filament():
    lattice = scene()[1].lattice(4.0)
    assert lattice.beside(1).tolist() == [1, 2, 3, 4, -1, 6, 7, 8, 9, 10, 11, 12, -1]
    assert lattice.beside(-2).tolist() == [-1, -1, 0, 1, 2, -1, -1, 5, 6, 7, 8, 9, 10]
    # In another order, and with a gap.
    part = lattice[[12, 3, 1, 2, 5, 6, 8]]
    assert part.filaments.tolist() == [1, 0, 0, 0, 1, 1, 1]
    assert part.beside(1).tolist() == [-1, -1, 3, 1, 5, -1, -1]
    assert lattice[:0].beside(1).tolist() == []


def test_links_and_jumps_take_a_lattice():
    topology, actin = scene()
    lattice = actin.lattice(4.0)
    system = system_with(topology, Links(lattice[3], mp.Sites.anchors([[10.0, 4.0, 0.0]]), 3.0))
    bound = system.add_force(Links([], [], stiffness=0.5, length=50.0, name="bound"))
    far, near = lattice[lattice.filaments == 1], lattice[lattice.filaments == 0]
    system.add_jump(mp.jumps.LinkBinding(bound, near, far, off_rate=1.0, on_rate=1e3, bound=[[1, 1]]))
    context = mp.Context(system, mp.BAGOGABIntegrator(1e-3, kT=1.0))
    state = context.get_state(positions=True, energy=True)
    assert state.potential_energy == pytest.approx(0.5 * 3.0 * 2.0**2, abs=1e-12)
    assert bound.lengths(state).tolist() == [50.0]
    context.step(50)
    assert context.get_state().counts["LinkBinding"].accepted > 0


def test_documents_and_copies_keep_a_lattice():
    topology, actin = scene()
    lattice = actin.lattice(4.0)
    system = mp.System(topology)
    links = system.add_force(Links([], [], stiffness=0.5, length=50.0))
    jump = system.add_jump(mp.jumps.LinkBinding(links, lattice, off_rate=1.0, on_rate=1e3))
    assert jump.a is lattice
    again, _ = deserialize(serialize(mp.Simulation(system, mp.BAGOGABIntegrator(1e-3, kT=1.0))))
    (read,) = again.jumps
    copied = pickle.loads(pickle.dumps(mp.Sites.concatenate([lattice])))
    assert type(copied) is mp.Sites
    for one in (read.a, lattice[::-1][::-1]):
        assert type(one) is mp.beads.Lattice
        assert one.spacing == 4.0
        for name in ("filaments", "numbers", "start", "bead_numbers", "weights"):
            assert np.array_equal(getattr(one, name), getattr(lattice, name))
        assert repr(one) == repr(lattice) == "Lattice(13: 4 nm apart on 2 filaments)"
    assert read.a.handles[0].name == "actin"


def ring():
    return mp.Topology().add_filament([[0.0, 0, 0], [9.0, 0, 0], [0.0, 9, 0]], node_mass=1.0, closed=True)


def growing():
    return mp.Topology().add_filaments([[[0.0, 0, 0], [27.0, 0, 0]]], 1.0, 1.0, rise=2.7)


@pytest.mark.parametrize(("handle", "spacing", "error", "text"), [
    (lambda: scene()[1], 0.0, mp.ParameterError, "lattice of 'actin': spacing = 0.0 but must be finite and > 0"),
    (lambda: scene()[1], np.nan, mp.ParameterError, "spacing = nan"),
    (lambda: scene()[1], 18.0, mp.ParameterError, "spacing = 18 nm but must be <= the length .* filament 0 has 17 nm"),
    (ring, 2.0, mp.TopologyError, "rings have no ends to count places from: filaments.sites_along"),
    (growing, 4.0, mp.ParameterError, "spacing = 4 nm but must be a multiple of the rise of these filaments, 2.7 nm"),
])  # fmt: skip
def test_refused(handle, spacing, error, text):
    refuses(error, text, handle().lattice, spacing)


def test_documents_refuse_a_lattice_with_a_place_twice():
    _, actin = scene()
    lattice = actin.lattice(4.0)
    arrays = {**lattice.arrays, "handles": lattice.handles, "spacing": 4.0, "filaments": lattice.filaments}
    make = lambda **more: mp.beads.Lattice.from_arrays(**arrays, **more)  # noqa: E731
    assert len(make(numbers=lattice.numbers)) == 13
    refuses(mp.TopologyError, "a place of a filament is there twice", make, numbers=0 * lattice.numbers)
