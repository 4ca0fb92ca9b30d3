"""Documents, pickles and copies: what comes back is what was there, to the bit, and nothing else is believed."""

import copy
import importlib.util
import json
import math
import os
import pickle
import sys
from pathlib import Path

import numpy as np
import pytest
from builders import refuses, system_with

import medyanpy as mp


def _contract():
    """The cases of the contract: every force of the package, on untidy data."""
    path = Path(__file__).parents[1] / "forces" / "test_contract.py"
    spec = importlib.util.spec_from_file_location("contract_of_forces", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.CASES


def pull(positions):
    """A Python force that pickle finds by its name."""
    return 0.5 * float(np.sum(positions**2)), -positions


def python_force():
    topology = mp.Topology()
    topology.add_beads(np.random.default_rng(1).normal(size=(5, 3)), mass=1.0)
    return topology, mp.forces.PythonForce(pull, name="pull")


BUILDERS = {case.name: case.build for case in _contract()} | {"a function": python_force}


def system_of(topology, *forces):
    system = system_with(topology, *forces)
    return system


def through_document(what):
    kinds = mp.forces.PythonForce, mp.forces.PythonMembraneField
    functions = {f.name: f.function for f in getattr(what, "forces", ()) if isinstance(f, kinds)}
    return mp.deserialize(mp.serialize(what), functions=functions)


def through_pickle(what):
    return pickle.loads(pickle.dumps(what))


WAYS = [through_document, through_pickle, copy.deepcopy]


def numbers(system):
    """Energies and forces, to the bit."""
    state = mp.Context(system, mp.SplittingIntegrator("BAGAB", 1e-3)).get_state(
        positions=True, forces=True, energy=True
    )
    return state.positions.tobytes(), state.forces.tobytes(), state.energies


@pytest.mark.parametrize("name", BUILDERS)
@pytest.mark.parametrize("changed", [False, True], ids=["as made", "after set"])
def test_every_force_comes_back_to_the_bit(name, changed):
    topology, force = BUILDERS[name]()
    system = system_of(topology, force)
    if changed:
        now = {key: value for key, value in force.parameters.items() if isinstance(value, float | np.ndarray)}
        if not now:
            return
        # Lengths shorter: tables end where they do.
        force.set(**{key: value * 0.95 for key, value in now.items()})
    expected = numbers(system)
    assert np.abs(np.frombuffer(expected[1])).max() > 0.0
    for way in WAYS:
        if way is through_pickle and "<locals>" in mp.serialize(system):
            continue  # Pickle finds functions by their names alone.
        again = way(system)
        assert again is not system
        assert again.topology is not topology
        assert again.forces[0] is not force
        assert numbers(again) == expected
        if way is through_document or '"Sites"' not in mp.serialize(system):
            # Copies of sites know beads by their numbers; documents keep handles too.
            assert mp.serialize(again) == mp.serialize(system)
    assert numbers(system) == expected


def everything():
    """A system with every kind of handle and of argument."""
    rng = np.random.default_rng(3)
    topology = mp.Topology()
    loose = topology.add_beads(rng.normal(size=(4, 3)), mass=[1.0, 2.0, 3.0, 0.1], friction=0.3, name="loose ends")
    mesh = mp.TriangleMesh.icosphere(10.0, 1)
    ball = topology.add_membrane(mesh, vertex_mass=1.0, vertex_friction=np.linspace(0.0, 1.0, 42), fixed=True)
    points = topology.add_intriangle_points(ball, 300, mass=0.5, friction=0.7, seed=5, name="Proteïne")
    other = topology.add_membrane(mesh.translated([30.0, 0.0, 0.0]), vertex_mass=2.0, vertex_friction=0.2)
    balls = topology.add_balls(rng.normal(0.0, 8.0, (5, 3)), rng.uniform(3.0, 6.0, 5), mass=1.0, friction=0.1)
    system = system_of(topology, mp.forces.HarmonicBonds([[0, 1], [3, 2]], 1.0, [0.5, 1.0 / 3.0]),
                       mp.forces.MembraneEdgeSprings(other, stiffness=1),
                       mp.forces.HarmonicBonds([[1, 2]], 1.0, 0.0, group=3),
                       mp.forces.UniformField([points, loose], [0.0, 0.0, -0.1]),
                       mp.forces.SoftSphere(balls, [ball, other], 1.0, 4.0,
                                            exclusions=np.zeros((0, 2), int)))  # fmt: skip
    return system, points


def test_topologies_keep_order_names_and_every_bit():
    system, points = everything()
    topology = system.topology
    # A mass that is one number for all stays one number.
    assert '"vertex_mass": 1.0' in mp.serialize(topology)
    for again in (mp.deserialize(mp.serialize(topology)), pickle.loads(pickle.dumps(topology)), copy.copy(topology)):
        assert repr(again) == repr(topology)
        for a, b in zip(again.handles, topology.handles, strict=True):
            assert type(a) is type(b)
            assert (a.name, a.fixed, a.kind.first_bead) == (b.name, b.fixed, b.kind.first_bead)
            for key in ("mass", "friction", "positions", "radius", "triangles", "barycentric", "_weights"):
                assert hasattr(a, key) == hasattr(b, key)
                if hasattr(a, key):
                    assert getattr(a, key).tobytes() == getattr(b, key).tobytes(), (a, key)
        assert again.membranes[1].mesh.faces.tolist() == topology.membranes[1].mesh.faces.tolist()
        assert again.point_handles[0].membrane is again.membranes[0]
    assert points.name == "Proteïne"


def test_places_drawn_at_random_are_places_that_can_be_given():
    """The first weight, (1 - second) - third, is never negative by a rounding."""
    mesh = mp.TriangleMesh.icosphere(10.0, 0)

    class Unlucky(type(mesh)):
        def sample(self, n, rng):
            u = np.nextafter(0.1, 1.0)
            return np.zeros(n, np.int32), np.tile([0.0, u, 1.0 - u + 2.0**-53], (n, 1))

    topology = mp.Topology()
    membrane = topology.add_membrane(Unlucky(mesh.vertices, mesh.faces), vertex_mass=1.0)
    points = topology.add_intriangle_points(membrane, 3, mass=1.0)
    assert (points.barycentric >= 0.0).all()
    again = topology.add_intriangle_points(membrane, triangles=points.triangles, barycentric=points.barycentric,
                                           mass=1.0)  # fmt: skip
    assert again._weights.tobytes() == points._weights.tobytes()


def test_systems_keep_order_and_names_of_forces():
    system, _ = everything()
    # Names stay what state.energies calls them, also where the first of its name has gone.
    system.remove_force(system.forces[0])
    assert system.force_names[1] == "HarmonicBonds 2"
    for way in WAYS:
        again = way(system)
        assert again.force_names == system.force_names
        assert [type(f) for f in again.forces] == [type(f) for f in system.forces]
        assert again.forces[1].group == 3
        again.add_force(mp.forces.HarmonicBonds([[0, 1]], 1.0, 0.0))
        assert again.force_names[-1] == "HarmonicBonds"


def test_connected_beads_stay_together():
    """One topology in all parts of a pickle or copy; handles are those of the copy."""
    system, points = everything()
    for both in (pickle.loads(pickle.dumps((points, system))), copy.deepcopy((points, system))):
        assert both[0].topology is both[1].topology
        assert both[0] is both[1].topology.handles[2]
        assert both[1].forces[3].handles[0] is both[0]
    # Shallow copies share what they are made of.
    shallow = copy.copy(system)
    assert shallow.topology is system.topology
    assert shallow.forces == system.forces
    field = copy.copy(system.forces[3])
    assert field is not system.forces[3]
    assert field.handles == system.forces[3].handles
    assert copy.copy(points) is points


def test_a_copy_is_in_use_by_no_context_and_independent():
    system, _ = everything()
    integrator = mp.BAGOGABIntegrator(1e-3, kT=1.0)
    context = mp.Context(system, integrator)
    for way in WAYS:
        again = way(system)
        again.add_force(mp.forces.HarmonicBonds([[0, 1]], 1.0, 0.0))
        again.topology.add_beads([[0.0, 0, 0]], mass=1.0, friction=1.0)
        again.forces[0].set(stiffness=7.0)
        mp.Context(again, copy.deepcopy(integrator))
    assert system.forces[0].parameters["stiffness"][0] == 1.0
    assert len(system.forces) == 5
    assert context.step_count == 0


@pytest.mark.parametrize(
    "integrator",
    [
        mp.SplittingIntegrator("B1 B0 A O A B0 B1", 0.1, temperature=293.15, seed=2**64 - 1),
        mp.SplittingIntegrator("bao", 1, kT=1.0, symmetric=False),
        mp.SplittingIntegrator("BAGAB", 1e-7),
        mp.BAGOGABIntegrator(1.0 / 3.0, temperature=310.0, seed=4),
        mp.BAGOGABIntegrator(1.0 / 3.0, kT=0.1 + 0.2),
        mp.VerletIntegrator(0.01),
    ],
    ids=repr,
)
def test_integrators_come_back(integrator):
    for way in WAYS:
        again = way(integrator)
        assert type(again) is type(integrator)
        for key in ("word", "letters", "timestep", "kT", "temperature", "seed"):
            assert getattr(again, key) == getattr(integrator, key)
        assert mp.serialize(again) == mp.serialize(integrator)


def test_meshes_come_back():
    mesh = mp.TriangleMesh.torus(30.0, 10.0, 8, 6)
    for way in WAYS:
        again = way(mesh)
        assert again.vertices.tobytes() == mesh.vertices.tobytes()
        assert again.faces.tolist() == mesh.faces.tolist()
        assert not again.vertices.flags.writeable


def test_a_force_alone_brings_the_topology_of_its_handles():
    system, points = everything()
    field = mp.deserialize(mp.serialize(system.forces[3]))
    assert [h.name for h in field.handles] == [points.name, "loose ends"]
    assert field.handles[0].topology is field.handles[1].topology
    assert len(field.handles[0].topology.handles) == 5
    bonds = mp.deserialize(mp.serialize(system.forces[0]))
    assert bonds.pairs.tolist() == [[0, 1], [3, 2]]
    assert "topology" not in mp.serialize(system.forces[0])


def test_a_simulation_gives_system_and_integrator():
    system, _ = everything()
    simulation = mp.Simulation(system, mp.BAGOGABIntegrator(1e-3, kT=1.0, seed=8))
    text = mp.serialize(simulation)
    assert text == mp.serialize(simulation.context) == mp.serialize((system, simulation.integrator))
    again, integrator = mp.deserialize(text)
    assert again.force_names == system.force_names
    assert integrator.seed == 8
    mp.Simulation(again, integrator)


# Sites --------------------------------------------------------------------------------------------------------


def test_sites_and_links_come_back_as_they_are_now():
    system, _ = everything()
    topology = system.topology
    loose = topology.handles[0]
    middle = mp.Sites.weighted([[0, 1]], [[0.3, 0.7]])
    ends = mp.Sites.beads(loose) + middle + mp.Sites.anchors([[1.0, 2.0, 3.0]])
    links = system.add_force(mp.forces.Links(ends[:2], ends[3:5], [1.0, 2.0], length=0.1, one_sided=True))
    links.add(ends[4], [3], stiffness=0.7)
    links.remove(0)
    links.move(2, a=mp.Sites.anchors([[0.5, 0.0, 1.0 / 3.0]]))
    links.set(length=[0.2, 0.3])
    system.remove_force(system.forces[4])
    for way in WAYS:
        again = way(system).forces[-1]
        assert again.ids.tolist() == [1, 2]
        assert again.one_sided
        # Copies of sites may know beads by their numbers alone; documents keep handles too.
        named = {h.name for h in again.handles}
        assert named == {"loose ends"} if way is through_document else named <= {"loose ends"}
        for end in ("a", "b"):
            for key in ("start", "bead_numbers", "weights", "anchor_positions"):
                assert getattr(getattr(again, end), key).tobytes() == getattr(getattr(links, end), key).tobytes()
        for key, value in links.parameters.items():
            assert again.parameters[key].tobytes() == value.tobytes()
        assert again.add([0], [1], stiffness=1.0, length=0.0).tolist() == [3]
        assert numbers(way(system)) == numbers(copy.deepcopy(system))


# Forces of others ---------------------------------------------------------------------------------------------


class Wall(mp.forces.UniformField):
    """Takes some arguments by *args and **kwargs, gives a number of its own, and rounds on the way."""

    changeable = ("force", "tilt")

    def __init__(self, beads, /, *tilt, note="as given", **others):
        self.note = note
        super().__init__(beads, **others)
        self._declare(force=others["force"], tilt=list(tilt))

    def _checked(self, *, force, tilt=(1.0, 0.0, 0.0)):
        tilt = np.array(tilt, float)
        # Dividing twice by a length that is 1 but for a rounding moves the last bit.
        return {**super()._checked(force=force), "tilt": tilt / np.linalg.norm(tilt)}


class Stiff(mp.forces.HarmonicBonds):
    """Has numbers that its constructor does not take."""

    def __init__(self, pairs):
        super().__init__(pairs, 100.0, 1.0)


class Forgetful(Stiff):
    def __new__(cls, *args):
        return object.__new__(cls)


def test_forces_of_other_packages_need_no_code():
    topology = mp.Topology()
    beads = topology.add_beads(np.random.default_rng(5).normal(size=(6, 3)), mass=1.0)
    rng = np.random.default_rng(0)
    # A direction that is not the same when brought to length 1 twice.
    while True:
        tilt = rng.normal(size=3)
        once = tilt / np.linalg.norm(tilt)
        if (once / np.linalg.norm(once) != once).any():
            break
    wall = Wall(beads, *tilt, note="x", force=[1.0, 2.0, 3.0])
    stiff = Stiff([[0, 1], [2, 3]])
    stiff.set(stiffness=[3.0, 4.0])
    system = system_of(topology, wall, stiff)
    module = Wall.__module__
    assert f'"type": "{module}:Wall"' in mp.serialize(system)
    for way in WAYS:
        a, b = way(system).forces
        assert a.note == "x"
        assert a.handles[0].name == "beads"
        assert a.parameters["tilt"].tobytes() == once.tobytes() == wall.parameters["tilt"].tobytes()
        assert a.parameters["force"].tolist() == [1.0, 2.0, 3.0]
        assert b.parameters["stiffness"].tolist() == [3.0, 4.0]
        assert b.parameters["length"].tolist() == [1.0, 1.0]
        assert numbers(way(system)) == numbers(system)
    wall.set(force=[0.0, 0.0, 1.0])
    assert through_document(system).forces[0].parameters["force"].tolist() == [0.0, 0.0, 1.0]
    with pytest.raises(mp.ParameterError, match="Forgetful does not know the arguments it was made of"):
        mp.serialize(Forgetful([[0, 1]]))


def test_types_are_looked_up_and_never_imported(tmp_path, monkeypatch):
    (tmp_path / "evil_module.py").write_text("raise SystemExit('imported')\n")
    monkeypatch.syspath_prepend(tmp_path)
    text = mp.serialize(mp.forces.HarmonicBonds([[0, 1]], 1.0, 1.0))
    with pytest.raises(mp.ParameterError, match=r"type = 'evil_module:Wall' is not a type that this process"):
        mp.deserialize(text.replace('"HarmonicBonds",', '"evil_module:Wall",', 1))
    assert "evil_module" not in sys.modules
    for name in ("os:system", "builtins:eval", "Described", "_PairForce", "Force", "medyanpy.forces:WCA", "Nope"):
        with pytest.raises(mp.ParameterError, match=r"content\.type = "):
            mp.deserialize(text.replace('"HarmonicBonds",', f'"{name}",', 1))
    system = mp.serialize(everything()[0])
    with pytest.raises(mp.ParameterError, match=r"forces\[1\]\.type = 'Verlet.*' is not a force of medyanpy.*WCA"):
        mp.deserialize(system.replace('"type": "MembraneEdgeSprings"', '"type": "VerletIntegrator"', 1))


def test_arguments_are_kept_as_they_were_given():
    """Nobody changes them afterwards."""
    for pairs in ([[0, 1], [1, 2]], np.array([[0, 1], [1, 2]])):
        length = np.array([1.0, 2.0])
        force = mp.forces.HarmonicBonds(pairs, 1.0, length)
        pairs[0][0] = 5
        length[:] = 9.0
        again = mp.deserialize(mp.serialize(force))
        assert again.pairs.tolist() == [[0, 1], [1, 2]]
        assert again.parameters["length"].tolist() == [1.0, 2.0]


# Functions ----------------------------------------------------------------------------------------------------


def test_functions_are_named_and_must_be_given():
    topology, force = python_force()
    system = system_of(topology, force, mp.forces.PythonForce(lambda x: (0.0, 0 * x)))
    text = mp.serialize(system)
    assert f'{{"function": "{__name__}:pull"}}' in text
    refuses(mp.ParameterError, r"'pull' calls a Python function .*functions=\{'pull': ...\}", mp.deserialize, text)
    refuses(mp.ParameterError, r"forces\[1\].*'PythonForce' calls", mp.deserialize, text, functions={"pull": pull})
    both = {"pull": pull, "PythonForce": pull}
    with pytest.raises(mp.ParameterError, match=r"functions names 'push'; .*'PythonForce', 'pull'"):
        mp.deserialize(text, functions={**both, "push": pull})
    refuses(mp.ParameterError, "dict of callables", mp.deserialize, text, functions={"pull": "os.system"})
    again = mp.deserialize(text, functions=both)
    assert again.forces[1].function is pull


# Text ---------------------------------------------------------------------------------------------------------


def test_numbers_keep_every_bit_and_text_stays_readable(tmp_path):
    rng = np.random.default_rng(1)
    x = rng.normal(size=(3334, 3)) * 10.0 ** rng.integers(-300, 300, (3334, 3))
    x[0] = [-0.0, 5e-324, math.nextafter(math.inf, 0.0)]
    topology = mp.Topology()
    topology.add_beads(x, mass=1.0)
    text = mp.serialize(topology, tmp_path / "beads.json")
    assert (tmp_path / "beads.json").read_text() == text + "\n"
    lines = text.splitlines()
    assert len(lines) < 3500
    assert max(map(len, lines)) <= 120
    assert json.loads(text)["content"]["type"] == "Topology"
    for source in (text, "\n " + text, tmp_path / "beads.json", str(tmp_path / "beads.json")):
        assert mp.deserialize(source).handles[0].positions.tobytes() == x.tobytes()


def test_arrays_of_all_kinds_come_back():
    class Holder(mp.forces.HarmonicBonds):
        def __init__(self, held):
            super().__init__([[0, 1]], 1.0, 1.0)
            self.held = held

    kinds = [
        np.arange(5, dtype=np.uint8),
        np.array([[True], [False]]),
        np.zeros((0, 3)),
        np.zeros((2, 0), np.int32),
        np.linspace(0.0, 1.0, 60, dtype=np.float32).reshape(3, 4, 5),
        np.array([2**64 - 1, 0], np.uint64),
        np.array([-(2**63), 2**63 - 1]),
    ]
    for a in kinds:
        again = mp.deserialize(mp.serialize(Holder(a))).held
        assert again.dtype == a.dtype
        assert again.shape == a.shape
        assert again.tobytes() == a.tobytes()
    held = [None, True, -(10**30), 'Größe "x"\n', [1, "a", None, [2.5, []]], {"handle": [{"values": "a"}]}, (), []]
    for value in held:
        again = mp.deserialize(mp.serialize(Holder(value))).held
        assert again == (list(value) if isinstance(value, tuple) else value)
    for value, message in [
        (math.nan, "held = nan"),
        (np.array([1.0, np.inf]), r"held\[1\] = inf"),
        (1j, "held is a complex"),
        (np.array(["a"]), "held is an array of <U1"),
        (object(), "held is a object"),
        ([{1: 2}], r"held\[0\] is a dict"),
    ]:
        refuses(mp.ParameterError, message, mp.serialize, Holder(value))


def test_a_document_can_be_written_by_hand():
    text = """
    {"format": "medyanpy document", "version": 2, "content":
      {"type": "Simulation",
       "system": {"type": "System",
         "topology": {"type": "Topology", "objects": [
           {"type": "Membrane", "arguments": {"name": "cell", "vertex_mass": 1, "vertex_friction": 2, "mesh":
             {"type": "TriangleMesh", "arguments": {
               "vertices": [[0, 0, 0], [9, 0, 0], [0, 9, 0], [0, 0, 9]],
               "faces": [[0, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]]}}}},
           {"type": "InTrianglePoints", "arguments":
             {"membrane": {"handle": "cell"}, "n": 7, "mass": 2.5, "friction": 0.5, "seed": 3}},
           {"type": "Balls", "arguments": {"positions": [[0, 0, 20]], "radius": 1.5, "mass": 1, "friction": 3}}]},
         "forces": [
           {"type": "MembraneEdgeSprings", "arguments": {"membrane": {"handle": "cell"}, "stiffness": 2}},
           {"name": "my bonds", "type": "HarmonicBonds", "arguments": {"pairs": [[0, 11]], "stiffness": 1, "length":
             {"dtype": "float64", "values": [3]}}}]},
       "integrator": {"type": "BAGOGABIntegrator", "arguments": {"timestep": 0.01, "kT": 1}}}}
    """
    system, integrator = mp.deserialize(text)
    assert system.force_names == ("MembraneEdgeSprings", "my bonds")
    assert [h.name for h in system.topology.handles] == ["cell", "points", "balls"]
    simulation = mp.Simulation(system, integrator)
    simulation.step(3)
    # The same, written by a script.
    again = mp.Topology()
    cell = again.add_membrane(system.topology.membranes[0].mesh, vertex_mass=1, vertex_friction=2, name="cell")
    again.add_intriangle_points(cell, 7, mass=2.5, friction=0.5, seed=3)
    again.add_balls([[0, 0, 20]], radius=1.5, mass=1, friction=3)
    other = system_of(again, mp.forces.MembraneEdgeSprings(cell, 2),
                      mp.forces.HarmonicBonds([[0, 11]], 1, 3.0, name="my bonds"))  # fmt: skip
    twin = mp.Simulation(other, mp.BAGOGABIntegrator(0.01, kT=1))
    twin.step(3)
    a, b = (s.context.get_state(positions=True, velocities=True) for s in (simulation, twin))
    assert a.positions.tobytes() == b.positions.tobytes()
    assert a.velocities.tobytes() == b.velocities.tobytes()


# What is refused ----------------------------------------------------------------------------------------------


def small():
    topology = mp.Topology()
    mesh = mp.TriangleMesh([[0.0, 0, 0], [9, 0, 0], [0, 9, 0], [0, 0, 9]], [[0, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]])
    cell = topology.add_membrane(mesh, vertex_mass=1.0)
    points = topology.add_intriangle_points(cell, triangles=[1], barycentric=[[0.5, 0.25, 0.25]], mass=1.0,
                                            name="points")  # fmt: skip
    balls = topology.add_balls([[0.0, 0, 20]], 1.5, mass=1.0)
    system = system_of(topology, mp.forces.MembraneArea(cell, 1.0, per_triangle=True),
                       mp.forces.SoftSphere([points, balls], cell, 1.0, 2.0, exclusions=[[0, 5]]),
                       mp.forces.Links(mp.Sites.beads(balls), mp.Sites.anchors([[0.0, 0, 1]]), 1.0),
                       mp.forces.PythonForce(pull))  # fmt: skip
    return mp.serialize((system, mp.SplittingIntegrator("BAOGOAB", 0.1, kT=1.0)))


def places(tree, path=()):
    yield path
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield from places(value, (*path, key))
    elif isinstance(tree, list):
        for i, value in enumerate(tree):
            yield from places(value, (*path, i))


WRONG = [
    None, True, -1, 0, 2.5, 1e300, 10**400, "", "x", [], [[]], ["x"], [None], [[1, 2], [3]], {}, {"handle": "nobody"},
    {"handle": ["points"]}, {"type": "HarmonicBonds"}, {"type": "Sites", "arguments": {}}, {"values": [1]},
    {"dtype": "object", "values": [1]}, {"dtype": "float64", "values": ["x"]}, {"dtype": "int64", "values": [1.5]},
    {"dtype": "int8", "values": [300]}, {"dtype": "float64", "shape": [0, 10**30], "values": []},
    {"dtype": "float32", "values": [1e300]}, {"same_as": "x"}, {"function": 3}, {"dict": 3}, {"dict": {"a": 1}},
    {"member": "x"},
    {"type": ["x"], "arguments": {}}, {"type": "VerletIntegrator", "arguments": {"timestep": 0.1}},
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("stride", [21, pytest.param(1, marks=pytest.mark.long)])
def test_whatever_is_wrong_with_a_document_is_one_of_our_errors(stride):
    """Each key and item deleted, doubled under another name, and replaced by each of many things; with a stride by
    every so manieth of them, others at the next place."""
    tree = json.loads(small())
    functions = {"PythonForce": pull}
    mp.deserialize(json.dumps(tree), functions=functions)
    refused = accepted = 0
    messages = set()
    for k, path in enumerate(list(places(tree))):
        if not path:
            continue
        for wrong in [*WRONG[k % stride :: stride], "delete", "rename"]:
            broken = copy.deepcopy(tree)
            holder = broken
            for key in path[:-1]:
                holder = holder[key]
            if wrong == "delete":
                del holder[path[-1]]
            elif wrong == "rename" and isinstance(holder, dict):
                holder[f"{path[-1]} "] = holder.pop(path[-1])
            else:
                holder[path[-1]] = wrong
            try:
                mp.deserialize(json.dumps(broken), functions=functions)
                accepted += 1
            except (mp.ParameterError, mp.TopologyError, mp.MeshError) as error:
                messages.add(str(error))
                refused += 1
    assert [m for m in messages if not m.startswith("the document")] == []
    # Some changes give another sound document: another seed, another name, a default in place of a number.
    assert refused > 10 * accepted > 0


P, T, M = mp.ParameterError, mp.TopologyError, mp.MeshError


@pytest.mark.parametrize(("old", "new", "error", "message"), [
    ('"version": 2', '"version": 3', P, r"version 3 of the format, written by .*reads version 2 alone: inst"),
    ('"version": 2', '"version": 1', P, r"version 1 of the format, written by .*reads version 2 alone: write"),
    ('"version": 2', '"version": "2"', P, "version must be a whole number from 1 to 2, not '2'"),
    ('"medyanpy document"', '"something"', P, "not a medyanpy document: .* not 'something'"),
    ('"objects"', '"object"', P, r"content\.system\.topology: the key 'objects' is missing"),
    ('"Balls"', '"Bulls"', P, r"objects\[2\]\.type = 'Bulls' is not a kind of bead of medyanpy .*: it has .*Balls"),
    ('"mass": 1.0', '"mass": -1.0', P, r"objects\[1\]: .*mass = -1.0 but"),
    ("[0, 1, 3]", "[0, 1, 7]", M, r"(?s)arguments\.mesh: .*vertex that does not exist"),
    ("[0.5, 0.25, 0.25]", "[0.5, 0.25, 0.26]", T, r"objects\[1\]: .*point 0 lies outside"),
    ('"handle": "points"', '"handle": "pints"', P, r"group_a\[0\]\.handle = 'pints', but no .*'points'"),
    ('"per_triangle"', '"per_corner"', P, r"forces\[0\]: MembraneArea has no argument 'per_corner'"),
    ('"fixed": false', '"fixed": "no"', P, r"objects\[0\]\.arguments\.fixed must be true or false, not 'no'"),
    ('"one_sided": false', '"one_sided": 0', P, r"forces\[2\]\.arguments\.one_sided must be true or false, not 0"),
    ('"name": "points"', '"name": 3', P, r"objects\[1\]\.arguments\.name must be a string, not 3"),
    ('"seed": 0', '"seed": NaN', P, "NaN is not a finite number"),
    ('"seed": 0', '"seed": 1e999', P, "1e999 is not a finite number"),
    ('"seed": 0', '"seed": 0, "seed": 1', P, "the key 'seed' occurs twice"),
    ('"seed": 0', '"seed": 0,', P, "not JSON"),
    ('"name": "SoftSphere"', '"name": "MembraneArea"', P, "two forces have the name 'MembraneArea'"),
    ('"shape": [1, 3], "values": [[0.0, 0.0, 20.0]]', '"shape": [3], "values": [[0.0, 0.0, 20.0]]', P,
     r"shape must be \[1, 3\]"),
])  # fmt: skip
def test_errors_say_where_and_why(old, new, error, message):
    text = small()
    assert old in text
    with pytest.raises(error, match=message) as caught:
        mp.deserialize(text.replace(old, new, 1), functions={"PythonForce": pull})
    assert type(caught.value) is error


def test_refusals_of_other_documents(tmp_path):
    for text in ("{", "{}", "[]\n", "{" * 100_000, '{"format": {}}'):
        refuses(mp.ParameterError, r"is not a (medyanpy )?document", mp.deserialize, text)
    (tmp_path / "binary").write_bytes(bytes(range(256)))
    refuses(mp.ParameterError, "binary is not a document", mp.deserialize, tmp_path / "binary")
    refuses(mp.ParameterError, "nowhere does not exist", mp.deserialize, str(tmp_path / "nowhere"))
    refuses(mp.ParameterError, "is not a document", mp.deserialize, tmp_path)
    refuses(mp.ParameterError, "not int", mp.deserialize, 3)


def test_refusals_of_writing():
    system, points = everything()
    for what, message in [(points, "is part of a topology"), (3, "not int"), (np.zeros(3), "not ndarray")]:
        refuses(mp.ParameterError, message, mp.serialize, what)
    with pytest.raises(mp.TopologyError, match="belongs to another topology"):
        mp.serialize(mp.forces.UniformField([points, everything()[1]], [0.0, 0, 1]))
    # Names are unique unless somebody sees to it that they are not.
    points._complete(name="loose ends")
    refuses(mp.TopologyError, "two objects have the name 'loose ends'", mp.serialize, system)


def test_a_document_is_replaced_in_one_move(tmp_path, monkeypatch):
    path = tmp_path / "a.json"
    mp.serialize(mp.VerletIntegrator(0.1), path)
    old = path.read_bytes()

    def fail(*_):
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "replace", fail)
    refuses(OSError, "no space", mp.serialize, mp.VerletIntegrator(0.2), path)
    assert path.read_bytes() == old
    assert [p.name for p in tmp_path.iterdir()] == ["a.json"]


def test_running_things_are_not_pickled():
    system, _ = everything()
    simulation = mp.Simulation(system, mp.BAGOGABIntegrator(1e-3, kT=1.0))
    for use in (pickle.dumps, copy.copy, copy.deepcopy):
        refuses(TypeError, r"a Simulation cannot be pickled or copied: save_checkpoint.*resume", use, simulation)
        refuses(TypeError, r"a Context cannot be pickled or copied: .*save_checkpoint.*resume", use, simulation.context)


def test_help_still_shows_the_arguments():
    import inspect

    assert str(inspect.signature(mp.forces.UniformField)) == (
        "(beads: Beads, force: Numbers, *, name: str | None = None, group: int = 0)"
    )
    refuses(TypeError, r"VerletIntegrator needs the argument 'timestep'", mp.VerletIntegrator)


class TaggedKind(mp.beads.BeadsKind):
    name = "tagged beads"


class Tagged(mp.topology.Beads, kind=TaggedKind):
    """A kind of bead of another package, with an array of its own."""

    def __init__(self, topology, name, first, positions, mass, friction, *, tag):
        super().__init__(topology, name, first, positions, mass, friction)
        self.tag = np.asarray(tag, float)


def test_kinds_of_beads_of_other_packages_are_carried():
    topology = mp.Topology()
    tag = [0.5, 1.5]
    topology.add_beads([[1.0, 2, 3]], mass=1.0)
    handle = topology.add(Tagged, [[0.0, 0, 0], [1.0, 0, 0]], mass=[1.0, 2.0], friction=0.1, tag=tag, name="mine")
    tag[0] = 99.0
    text = mp.serialize(topology)
    assert f'"type": "{Tagged.__module__}:Tagged"' in text
    for copied in (mp.deserialize(text), copy.deepcopy(topology), pickle.loads(pickle.dumps(topology))):
        again = copied.handles[1]
        assert type(again) is Tagged
        assert (again.name, len(again), again.tag.tolist()) == ("mine", 2, [0.5, 1.5])
        assert (again.mass == handle.mass).all()
    refuses(mp.TopologyError, "kind must be a class of beads, not 3", topology.add, 3, [[0.0, 0, 0]], mass=1.0)
    with pytest.raises(mp.ParameterError, match=r"is not a kind of bead that this process knows.* import elsewhere"):
        mp.deserialize(text.replace(f"{Tagged.__module__}:Tagged", "elsewhere:Tagged"))
