"""CheckpointReporter and checkpoints: going on gives the same bits, and nothing else is loaded."""

import io
import json
import os
import subprocess
import sys
import zipfile

import numpy as np
import pytest
from builders import refuses, system_with

import medyanpy as mp


def make(threads=1, seed=1, n_points=600, timestep=1e-7, stiffness=0.01):
    mesh = mp.TriangleMesh.icosphere(radius=100.0, subdivisions=2)
    topology = mp.Topology()
    vesicle = topology.add_membrane(mesh, vertex_mass=4e-12, vertex_friction=4e-6)
    topology.add_intriangle_points(vesicle, n_points, mass=4e-12, friction=4e-6, seed=3)
    return mp.Simulation(system_with(topology, mp.forces.MembraneEdgeSprings(vesicle, stiffness=stiffness)),
                         mp.BAGOGABIntegrator(timestep, temperature=300.0, seed=seed), threads=threads)  # fmt: skip


def content(simulation):
    state = simulation.context.get_state(positions=True, velocities=True, energy=True)
    return (
        state.step,
        state.positions.tobytes(),
        state.velocities.tobytes(),
        state.intriangle.triangles.tobytes(),
        state.intriangle.barycentric.tobytes(),
        state.total_energy,
        state.temperature,
    )


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_resuming_gives_the_same_bits_on_any_number_of_threads(tmp_path, threads):
    through = make(threads=1)
    through.context.set_velocities_to_temperature(300.0, seed=5)
    through.reporters.append(mp.reporters.CheckpointReporter(tmp_path / "c", 10))
    through.step(17)
    at_17 = content(through)
    through.step(12)
    again = make(threads=threads)
    # Only the newest is kept: that of step 20.
    again.load_checkpoint(tmp_path / "c")
    assert again.current_step == 20
    again.step(9)
    assert content(again) == content(through)
    assert at_17 != content(through)


def test_every_step_has_its_file_if_the_name_asks_for_it(tmp_path):
    simulation = make()
    simulation.reporters.append(mp.reporters.CheckpointReporter(tmp_path / "run-{step}.checkpoint", 4))
    simulation.step(9)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["run-4.checkpoint", "run-8.checkpoint"]
    other = make()
    other.load_checkpoint(tmp_path / "run-4.checkpoint")
    other.step(5)
    assert content(other) == content(simulation)
    with pytest.raises(mp.ParameterError, match=r"run-\d\.checkpoint exists; give overwrite=True to replace all"):
        mp.reporters.CheckpointReporter(tmp_path / "run-{step}.checkpoint", 4)
    mp.reporters.CheckpointReporter(tmp_path / "run-{step}.checkpoint", 4, overwrite=True)
    with pytest.raises(mp.ParameterError, match="in the name of the file only"):
        mp.reporters.CheckpointReporter(tmp_path / "{step}" / "a", 4)


def test_existing_files_are_refused(tmp_path):
    (tmp_path / "c").write_text("precious")
    with pytest.raises(mp.ParameterError, match=r"c exists; give overwrite=True to replace it$"):
        mp.reporters.CheckpointReporter(tmp_path / "c", 1)
    refuses(mp.ParameterError, "is a folder", mp.reporters.CheckpointReporter, tmp_path, 1)
    refuses(mp.ParameterError, "does not exist", mp.reporters.CheckpointReporter, tmp_path / "nowhere" / "c", 1)
    assert (tmp_path / "c").read_text() == "precious"


@pytest.mark.parametrize(("options", "message"), [
    ({"n_points": 601}, "object 'points'"),
    ({"timestep": 2e-7}, "timestep"),
    ({"seed": 2}, "seed"),
    ({"stiffness": 0.02}, "force 'MembraneEdgeSprings'"),
])  # fmt: skip
def test_another_simulation_is_refused_and_left_as_it_was(tmp_path, options, message):
    simulation = make()
    simulation.step(3)
    simulation.save_checkpoint(tmp_path / "c")
    other = make(**options)
    before = content(other)
    with pytest.raises(mp.ParameterError, match="belongs to another simulation") as caught:
        other.load_checkpoint(tmp_path / "c")
    assert message in str(caught.value)
    assert content(other) == before


def test_damaged_files_are_refused(tmp_path):
    """Any byte that has changed is found, and any that is missing or too many."""
    simulation = make(n_points=40)
    simulation.step(3)
    before = content(simulation)
    path = tmp_path / "c"
    simulation.save_checkpoint(path)
    whole = path.read_bytes()
    rng = np.random.default_rng(1)
    places = np.concatenate([np.arange(300), len(whole) - np.arange(1, 300), rng.integers(0, len(whole), 300)])
    damages = [b"", b"hello", whole[: len(whole) // 2], whole[:-1], whole[1:], whole + b"\0", whole + whole]
    for place in places:
        flipped = bytearray(whole)
        flipped[int(place)] ^= 1 << int(rng.integers(8))
        damages.append(bytes(flipped))
    for damage in damages:
        path.write_bytes(damage)
        for read in (simulation.load_checkpoint, mp.Simulation.resume):
            refuses(mp.ParameterError, r"c is damaged|c is not a checkpoint, or has lost its end", read, path)
    assert content(simulation) == before
    path.write_bytes(whole)
    simulation.load_checkpoint(path)
    for read in (simulation.load_checkpoint, mp.Simulation.resume):
        refuses(mp.ParameterError, "nowhere does not exist", read, tmp_path / "nowhere")


def forge(path, change, drop=(), replace=()):
    """Rewrite a checkpoint, its text changed by a function and some files left out, with the checksum right."""
    from medyanpy.files import checkpoint

    with zipfile.ZipFile(path) as archive:
        files = {name: archive.read(name) for name in archive.namelist() if name not in drop}
    files.update(replace)
    if "checkpoint.json" in files:
        files["checkpoint.json"] = json.dumps(change(json.loads(files["checkpoint.json"]))).encode()
    n = len("medyanpy checkpoint, crc32 01234567")
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
        archive.comment = bytes(n)
    with open(path, "r+b") as file:
        file.seek(-n, 2)
        checksum = checkpoint._crc(file, file.tell())
        file.write(b"medyanpy checkpoint, crc32 %08x" % checksum)


def test_consistent_but_wrong_files_are_refused(tmp_path):
    simulation = make(n_points=40)
    simulation.step(3)
    path = tmp_path / "c"
    before = content(simulation)
    document = r"content\.system"
    cases = [
        ({}, (), None),
        ({"version": 5}, (), r"version 5 of the format.*reads version 4 alone: install a newer"),
        ({"version": 3}, (), r"version 3 of the format.*reads version 4 alone: write the file again"),
        ({"since": [0.0]}, (), r"since = \[0.0\] but must be a time and a step from 0 to 3"),
        ({"since": [0.0, 4]}, (), r"since = \[0.0, 4\] but must"),
        ({"since": ["0", 0]}, (), r"since = \['0', 0\] but must"),
        ({"format": "x"}, (), "c is not a medyanpy checkpoint"),
        ({"step": -1}, (), "step = -1"),
        ({"step": 2**63}, (), "step = 9223372036854775808"),
        ({"document": {}}, (), "c: document is not a medyanpy document"),
        ({}, ["checkpoint.json"], "not a checkpoint, or is damaged: .*checkpoint.json"),
        ({}, ["state/x.npy"], "c: checkpoint: x is missing"),
        ({}, ["document/system/topology/objects/0/arguments/mesh/arguments/faces.npy"], document),
    ]
    for change, drop, message in cases:
        simulation.save_checkpoint(path)
        forge(path, lambda head, change=change: {**head, **change}, drop)
        for read in (simulation.load_checkpoint, mp.Simulation.resume):
            if message is None:
                read(path)
                continue
            refuses(mp.ParameterError, message, read, path)
    assert content(simulation) == before

    def only_integrator(head):
        head["document"]["content"] = head["document"]["content"]["integrator"]
        return head

    def as_file(array):
        file = io.BytesIO()
        np.save(file, array)
        return file.getvalue()

    n_faces = len(simulation.topology.membranes[0].mesh.faces)
    exist = f"does not exist: the mesh has faces 0 to {n_faces - 1}"
    other_type = "triangle is float64 of shape .40,., not int32"
    for wrong, message in (([n_faces] * 40, exist), ([-1] * 40, exist), ([0.5] * 40, other_type)):
        simulation.save_checkpoint(path)
        wrong = as_file(np.array(wrong, None if 0.5 in wrong else np.int32))
        forge(path, lambda head: head, replace={"state/triangle.npy": wrong})
        for read in (simulation.load_checkpoint, mp.Simulation.resume):
            refuses(mp.ParameterError, message, read, path)
    three = as_file(np.zeros(3))
    fortran = as_file(np.zeros((2, 2), order="F"))
    for wrong in (three, three.replace(b"(3,)", b"(9,)"), three[:-1], three + b"x", b"x", fortran):
        simulation.save_checkpoint(path)
        forge(path, lambda head: head, replace={"state/x.npy": wrong})
        for read in (simulation.load_checkpoint, mp.Simulation.resume):
            refuses(mp.ParameterError, r"not a checkpoint, or is damaged|c: checkpoint: x is", read, path)
    assert content(simulation) == before

    simulation.save_checkpoint(path)
    forge(path, only_integrator)
    for read in (simulation.load_checkpoint, mp.Simulation.resume):
        refuses(mp.ParameterError, r"not (the document )?of a Simulation", read, path)


def test_a_checkpoint_is_an_archive_of_numpy(tmp_path):
    """Anybody can look inside, and the same state gives the same file."""
    simulation = make()
    simulation.step(2)
    for name in "ab":
        simulation.save_checkpoint(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    with zipfile.ZipFile(tmp_path / "a") as archive:
        text = archive.read("checkpoint.json").decode()
    assert '"step": 2,' in text
    assert '"type": "MembraneEdgeSprings"' in text
    with np.load(tmp_path / "a", allow_pickle=False) as arrays:
        state = simulation.context.get_state(velocities=True)
        assert (np.sort(arrays["state/v"], axis=0) == np.sort(state.velocities, axis=0)).all()


def spring(positions):
    return 0.5e-4 * float(np.sum(positions**2)), -1e-4 * positions


def rich(threads=1):
    """Changed numbers, a Python force, a link added on the way."""
    simulation = make(threads)
    proteins = simulation.topology.handles[1]
    system = mp.System(simulation.topology)
    springs = system.add_force(mp.forces.MembraneEdgeSprings(simulation.topology.handles[0], stiffness=0.01))
    system.add_force(mp.forces.SoftSphere(proteins, proteins, 0.01, 5.0, group=2))
    system.add_force(mp.forces.PythonForce(spring, name="spring"))
    links = system.add_force(mp.forces.Links([0], [1], stiffness=0.001))
    integrator = mp.BAGOGABIntegrator(1e-7, temperature=300.0, seed=2**63 + 1)
    del simulation
    out = mp.Simulation(system, integrator, threads=threads)
    out.context.set_velocities_to_temperature(300.0, seed=5)
    return out, springs, links


SCRIPT = """
import sys
import medyanpy as mp
import numpy as np

def spring(positions):
    return 0.5e-4 * float(np.sum(positions**2)), -1e-4 * positions

simulation = mp.Simulation.resume(sys.argv[1], threads=int(sys.argv[2]), functions={"spring": spring})
assert simulation.context.threads == int(sys.argv[2])
assert simulation.current_step == 5
simulation.step(7)
simulation.save_checkpoint(sys.argv[1] + ".end")
"""


@pytest.mark.parametrize("threads", [1, 3])
def test_file_alone_resumes_with_the_same_bits_in_another_process(tmp_path, threads):
    simulation, springs, links = rich()
    simulation.step(3)
    # What has been changed on the way is in the file.
    springs.set(stiffness=0.02)
    links.add([5], [7], stiffness=0.003, length=1.0)
    links.remove(0)
    simulation.step(2)
    path = tmp_path / "c"
    simulation.save_checkpoint(path)
    simulation.step(7)
    simulation.save_checkpoint(tmp_path / "expected")
    command = [sys.executable, "-W", "error", "-c", SCRIPT, str(path), str(threads)]
    isa = {"MEDYANPY_ISA": "baseline"} if threads == 3 else {}
    done = subprocess.run(command, env={**os.environ, **isa}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    # Description and state, to the last byte, but for the module of the function.
    ours, theirs = (zipfile.ZipFile(p) for p in (tmp_path / "expected", tmp_path / "c.end"))
    with ours, theirs:
        assert ours.namelist() == theirs.namelist()
        for name in ours.namelist():
            expected = ours.read(name).replace(f'"{__name__}:spring"'.encode(), b'"__main__:spring"')
            assert theirs.read(name) == expected, name


def test_resuming_needs_the_functions_and_an_integrator_that_is_free(tmp_path):
    simulation, _, _ = rich()
    simulation.step(1)
    simulation.save_checkpoint(tmp_path / "c")
    with pytest.raises(mp.ParameterError, match=r"c: content\.system\.forces\[2\].*'spring' calls a Python function"):
        mp.Simulation.resume(tmp_path / "c")
    again = mp.Simulation.resume(str(tmp_path / "c"), functions={"spring": spring})
    assert again.context is not simulation.context
    assert again.reporters == []
    assert again.system.force_names == simulation.system.force_names
    # The file is for the simulation it came from, too, and for what was made of it.
    for one in (simulation, again):
        one.step(2)
        one.load_checkpoint(tmp_path / "c")
    again.step(1)
    simulation.step(1)
    assert content(again) == content(simulation)


def test_differences_are_told_in_the_words_of_the_user(tmp_path):
    simulation, springs, _ = rich()
    simulation.save_checkpoint(tmp_path / "c")

    def differences(other):
        before = content(other)
        with pytest.raises(mp.ParameterError, match="belongs to another simulation") as caught:
            other.load_checkpoint(tmp_path / "c")
        assert content(other) == before
        assert str(caught.value).endswith("Simulation.resume makes the one that it belongs to")
        return [line.strip() for line in str(caught.value).splitlines()[1:-1]]

    other, springs, links = rich()
    other.load_checkpoint(tmp_path / "c")
    stiffness = np.full(len(springs.parameters["stiffness"]), 0.01)
    springs.set(stiffness=stiffness)
    other.load_checkpoint(tmp_path / "c")
    stiffness[[3, 8]] = [0.5, 0.6]
    springs.set(stiffness=stiffness)
    links.add([1], [2])
    found = differences(other)
    assert found[0] == "force 'MembraneEdgeSprings': stiffness[3]: 0.01 in the file, 0.5 here (and 1 more)"
    assert found[1] == "force 'Links': a: start: array of shape (2,) in the file, array of shape (3,) here"
    plain = make(seed=3, n_points=601)
    assert differences(plain) == [
        f"seed: {2**63 + 1} in the file, 3 here",
        "object 'points': triangles: array of shape (600,) in the file, array of shape (601,) here",
        "object 'points': barycentric: array of shape (600, 3) in the file, array of shape (601, 3) here",
        "force 'SoftSphere': SoftSphere in the file, none here",
        "force 'spring': PythonForce in the file, none here",
        "force 'Links': Links in the file, none here",
    ]


def test_the_order_of_objects_and_forces_matters(tmp_path):
    def build(names, forces):
        topology = mp.Topology()
        for name in names:
            topology.add_beads([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0]], mass=1.0, name=name)
        system = mp.System(topology)
        for name in forces:
            system.add_force(mp.forces.HarmonicBonds([[0, 1]], 1.0, 0.0, name=name))
        return mp.Simulation(system, mp.VerletIntegrator(0.1))

    build("ab", "cd").save_checkpoint(tmp_path / "c")
    build("ab", "cd").load_checkpoint(tmp_path / "c")
    with pytest.raises(mp.ParameterError, match="order of objects: a, b in the file, b, a here"):
        build("ba", "cd").load_checkpoint(tmp_path / "c")
    with pytest.raises(mp.ParameterError, match="order of forces: c, d in the file, d, c here"):
        build("ab", "dc").load_checkpoint(tmp_path / "c")


def test_where_things_start_and_how_the_integrator_was_made_do_not_matter(tmp_path):
    def build(shift, integrator):
        topology = mp.Topology()
        mesh = mp.TriangleMesh.icosphere(10.0, 1).translated([shift, 0.0, 0.0])
        vesicle = topology.add_membrane(mesh, vertex_mass=1.0, vertex_friction=1.0)
        triangles, weights = [3, 70], [[0.2 + shift, 0.8 - shift, 0.0], [0.0, 0.5, 0.5]]
        topology.add_intriangle_points(vesicle, triangles=triangles, barycentric=weights, mass=1.0, friction=1.0)
        topology.add_beads([[shift, 0.0, 40.0]], mass=1.0, friction=1.0)
        return mp.Simulation(system_with(topology, mp.forces.MembraneEdgeSprings(vesicle, 1.0, 5.0)), integrator)

    first = build(0.0, mp.BAGOGABIntegrator(0.01, kT=1.0, seed=4))
    first.step(3)
    first.save_checkpoint(tmp_path / "c")
    other = build(0.25, mp.SplittingIntegrator("b a g o g a b", 0.01, kT=1.0, seed=4))
    other.load_checkpoint(tmp_path / "c")
    first.step(2)
    other.step(2)
    assert content(first) == content(other)


@pytest.mark.slow
def test_a_checkpoint_of_a_million_beads_takes_no_time(tmp_path):
    """Writing 10^6 beads takes a fifth of a second or so; the bounds are such that a busy machine meets them."""
    from time import perf_counter

    topology = mp.Topology()
    beads = topology.add_beads(np.random.default_rng(1).normal(size=(1_000_000, 3)), mass=1.0, friction=1.0)
    simulation = mp.Simulation(system_with(topology, mp.forces.HarmonicTrap(beads, 1.0, [0.0, 0.0, 0.0])),
                               mp.BAGOGABIntegrator(0.01, kT=1.0), threads=1)  # fmt: skip
    took = []
    for _ in range(3):
        start = perf_counter()
        simulation.save_checkpoint(tmp_path / "c")
        took.append(perf_counter() - start)
    assert min(took) < 1.0
    start = perf_counter()
    again = mp.Simulation.resume(tmp_path / "c", threads=1)
    assert perf_counter() - start < 5.0
    assert again.topology.n_beads == 1_000_000


def test_a_checkpoint_is_replaced_in_one_move(tmp_path, monkeypatch):
    """A crash while writing leaves the old one whole, and nothing beside it."""
    simulation = make()
    path = tmp_path / "c"
    simulation.save_checkpoint(path)
    old = path.read_bytes()
    simulation.step(1)

    def fail(*_):
        assert path.read_bytes() == old
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "replace", fail)
    refuses(OSError, "no space", simulation.save_checkpoint, path)
    assert path.read_bytes() == old
    assert [p.name for p in tmp_path.iterdir()] == ["c"]


def test_other_files_reach_as_far_as_the_checkpoint(tmp_path):
    simulation = make()
    simulation.reporters += [
        mp.reporters.TrajectoryReporter(tmp_path / "run.h5", 1),
        mp.reporters.CheckpointReporter(tmp_path / "c", 5),
    ]
    simulation.step(7)
    from medyanpy.files.trajectory import Trajectory

    with Trajectory(tmp_path / "run.h5") as trajectory:
        assert trajectory.steps.tolist() == [1, 2, 3, 4, 5]
    simulation.close()
