"""Handles show users few names; what the engine, files and pictures ask is in `handle.kind`."""

import copy
import pickle

import numpy as np
import pytest

import medyanpy as mp
from medyanpy.beads import Beads, BeadsKind, Handle
from medyanpy.core.handles import adder_of


class Own(Beads):
    """Another kind without hooks of its own."""


def topology_of_all():
    """One handle of every class of this package, and one of another."""
    topology, x = mp.Topology(), np.arange(12.0).reshape(4, 3)
    topology.add_beads(x, 1.0)
    topology.add_balls(x, 1.0, 1.0)
    topology.add_beads(x, species={"A": {"mass": 1.0}}, of_species="A")
    topology.add_balls(x, 1.0, species={"A": {"mass": 1.0}}, of_species="A")
    vesicle = topology.add_membrane(mp.TriangleMesh.icosphere(5.0, 0), 1.0)
    topology.add_intriangle_points(vesicle, 3, mass=1.0)
    topology.add_filament(x, 1.0, directors="parallel", director_mass=1.0)
    topology.add_filament(x, 1.0, rise=27.0**0.5)
    topology.add_rod(x * [0, 0, 1], [[1.0, 0, 0, 0]] * 4, 3.0, linear_density=1.0, inertia_density=[1.0, 1.0, 1.0])
    topology.add_rigid_bodies(x[:1], [[1.0, 0, 0, 0]], mass=1.0, inertia=[1.0, 1.0, 1.0])
    kinds = {"A": {"mass": 1.0, "inertia": [1.0, 1.0, 1.0]}}
    topology.add_rigid_bodies(x[:1], [[1.0, 0, 0, 0]], species=kinds, of_species="A")
    sphere = mp.surfaces.Sphere(5.0)
    topology.add_surface_points(sphere, sphere.sample(4, seed=1), mass=1.0)
    topology.constrain("x1 - x2 + 3", [topology["beads"].beads[:2]], length=1.0)
    topology.add(Own, x, 1.0, name="own")
    return topology


def classes(cls):
    return {cls}.union(*map(classes, cls.__subclasses__()))


def public(handle):
    return [name for name in dir(handle) if not name.startswith("_")]


def test_few_names_are_public():
    handles = topology_of_all().handles
    here = {cls for cls in classes(Handle) if cls.__module__.startswith("medyanpy") and "_added_by" in vars(cls)}
    assert {type(handle) for handle in handles} >= here
    # Filaments have lattices beside, and those that grow lengths, subunits, ages, their rise and room; rods have ends.
    most = {handle: 25 + isinstance(handle, mp.beads.Filaments | mp.beads.Rods) for handle in handles}
    most |= {handle: 31 for handle in handles if isinstance(handle, mp.beads.GrowingFilaments)}
    assert all(len(public(h)) <= most[h] for h in handles), {h.name: len(public(h)) for h in handles}
    used = {"topology", "name", "kind", "beads", "ids", "capacity", "mass", "friction", "fixed", "remove", "reserve"}
    assert all(used <= set(public(handle)) for handle in handles)


def test_kinds_know_their_handles():
    topology = topology_of_all()
    for handle in topology.handles:
        assert handle.kind.handle is handle
        assert str(handle.kind) == handle.kind.name
        for copied in (copy.deepcopy(handle), pickle.loads(pickle.dumps(handle))):
            assert copied.kind.handle is copied
            assert type(copied.kind) is type(handle.kind)
    assert adder_of(Own, topology).args == (Own,)


def test_flags_hold_for_the_class_that_sets_them():
    topology = topology_of_all()
    assert topology["beads"].kind.comes_and_goes
    assert topology["beads"].kind.takes_constraints
    own = topology["own"].kind
    assert isinstance(own, BeadsKind)
    assert (own.name, own.comes_and_goes, own.takes_constraints) == ("beads", False, False)


def test_hooks_are_not_assigned_to():
    kind = topology_of_all()["beads"].kind
    with pytest.raises(AttributeError, match="comes_and_goes cannot be assigned to"):
        kind.comes_and_goes = False
    with pytest.raises(AttributeError, match=r"has no attribute 'fixed_bead'.*did you mean 'fixed_beads'"):
        kind.fixed_bead  # noqa: B018
