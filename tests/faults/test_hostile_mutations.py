"""Mutated files, thousands for every reader: no raw error, no hang, and no more memory than the file is worth.

500 files for each reader in the normal run (60 trajectories, which take longest to open), 20 000 with ``-m long``.
Memory is looked at for each fifth. What is drawn is the same at every run.
"""

import copy
import json
import random
import re
import struct
import time
import tracemalloc

import numpy as np
import pytest
from builders import system_with
from hostile_files import edited, members_of, npy, packed, simulation, summed

import medyanpy as mp

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

# What is read may take ten times the file and this, in bytes; and seconds of processor time.
ROOM, SECONDS = 4e6, 5.0
NUMBERS = [b"-1", b"0", b"1e308", b"1e999", b"nan", b"inf", b"-inf", b"4294967296", b"99999999999",
           b"9223372036854775808", b"1" * 5000, b"1e-320", b"2147483647", b"-2147483648", b"0x10", b"1_000", b"1.5",
           b"\xd9\xa3", b"true", b"null", b'"a"', b"[]", b"{}"]  # fmt: skip
SIGNS = [b"[", b"]", b"{", b"}", b'"', b",", b":", b"\0", b"/", b"#", b"\xff\xfe", b"\r", b" "]
VALUES = [
    None, True, False, 0, -1, 1, 3, 2**31, 2**63, 2**64, 10**30, 10**400, 1.5, 1e308, -1e308, 1e-320, "", "x", "a\x00b",
    [], {}, [[]], [[1, 2], [3]], [None], {"handle": "membrane"}, {"handle": 7}, {"function": "os:system"},
    {"type": "PythonForce", "arguments": {}}, {"same_as": "beads"}, {"dict": {"a": 1}}, {"member": "state/x"},
    {"dtype": "float64", "values": [1.0]}, {"dtype": "int64", "shape": [0, 3], "values": []},
    {"dtype": "float64", "shape": [0, 2**31, 2**31], "values": []}, {"dtype": "bool", "values": [True]},
    {"type": "Sites", "arguments": {}}, {"type": "TriangleMesh", "arguments": {"vertices": [], "faces": []}},
    [1e308] * 3, [0.0, 0.0, 0.0], [[0.0, 0.0, 0.0]] * 3, "Beads", "Coulomb", "x**100", "exp(exp(exp(x)))",
]  # fmt: skip
SHAPES = ["0", "-1", "1", "42, 3", "1180591620717411303424, 0", "9223372036854775807, 2", "True", "1.0", "'a'", ""]
TYPES = ["'<f8'", "'|S0'", "'|O'", "[('a','<f8')]", "'<M8[ns]'", "'<U4'", "'<f2'", "'>f8'", "'|V0'", "'<c16'"]


# Seeds -------------------------------------------------------------------------------------------------------------


def good_checkpoints(folder):
    for name, made in (("a", simulation()), ("b", edited())):
        made.step(2)
        made.save_checkpoint(folder / f"{name}.checkpoint")


def good_documents(folder):
    for name, made in (("a", simulation()), ("c", edited())):
        mp.serialize((made.system, made.integrator), folder / f"{name}.json")
    topology = mp.Topology()
    beads = topology.add_beads(np.arange(12.0).reshape(4, 3), 1.0, 0.5)
    sphere = mp.surfaces.Polynomial("x**2 + y**2 + z**2 - 9", bounding_box=[[-3.5] * 3, [3.5] * 3])
    topology.add_surface_points(sphere, sphere.project([[3.0, 0, 0], [0, 1.0, 3.0]]), mass=1.0, friction=0.1)
    system = system_with(topology, mp.forces.ExternalField(beads, "k*x**2 + sin(y)", k=1.0),
                         mp.forces.Links([0, 1], mp.Sites.anchors([[0.0, 0, 1], [1.0, 0, 0]]), 1.0, 2.0))  # fmt: skip
    mp.serialize((system, mp.SplittingIntegrator("BAOAB", 1e-3, kT=1.0)), folder / "b.json")


def good_meshes(ending):
    def make(folder):
        mesh = mp.TriangleMesh.icosphere(10.0, 1)
        mesh.save(folder / f"a{ending}")
        rows = [" ".join(map(repr, x)) for x in mesh.vertices.tolist()]
        if ending == ".ply":
            faces = [f"3 {a} {b} {c}" for a, b, c in mesh.faces.tolist()]
            head = f"ply\nformat ascii 1.0\nelement vertex {len(rows)}\nproperty float x\nproperty float y\n"
            head += f"property float z\nelement face {len(faces)}\nproperty list uchar int vertex_indices\nend_header"
            (folder / "b.ply").write_text("\n".join([head, *rows, *faces, ""]))
        if ending == ".stl":
            corners = ["".join(f"vertex {rows[i]}\n" for i in face) for face in mesh.faces.tolist()]
            facets = [f"facet normal 0 0 0\nouter loop\n{three}endloop\nendfacet\n" for three in corners]
            (folder / "b.stl").write_text(f"solid a\n{''.join(facets)}endsolid a\n")

    return make


def good_trajectories(folder):
    made = simulation()
    with mp.reporters.TrajectoryReporter(folder / "a.h5", 1, velocities=True) as reporter:
        made.reporters.append(reporter)
        made.step(4)
    made = edited()
    with mp.reporters.TrajectoryReporter(folder / "b.h5", 1, velocities=True) as reporter:
        made.reporters.append(reporter)
        made.step(4)
        with made.topology.edit():
            made.topology["balls"].reserve(20)
        made.step(2)


# Mutations ---------------------------------------------------------------------------------------------------------


def in_bytes(rng, data):
    """Bits, bytes, pieces, numbers, lines and words changed, gone, doubled or put in."""
    b = bytearray(data)
    for _ in range(rng.choice([1, 1, 1, 2, 3, 8])):
        if not b:
            break
        i = rng.randrange(len(b))
        near = max(0, i - 200)
        match rng.randrange(11):
            case 0:
                b[i] ^= 1 << rng.randrange(8)
            case 1:
                del b[i : i + rng.choice([1, 2, 4, 16, 100])]
            case 2:
                del b[i:]
            case 3:
                b[i:i] = rng.randbytes(rng.choice([1, 4, 30]))
            case 4:
                j, n = rng.randrange(len(b)), rng.choice([4, 16, 200])
                b[i:i] = b[j : j + n]
            case 5 | 6 | 7:
                found = list(re.finditer(rb"-?\d+(\.\d+)?(e-?\d+)?", bytes(b[near : i + 2000])))[:40]
                if found:
                    one = rng.choice(found)
                    b[near + one.start() : near + one.end()] = rng.choice(NUMBERS)
            case 8:
                n = rng.choice([1, 2, 4, 8])
                value = rng.choice([0, 2 ** (8 * n) - 1, 2 ** (8 * n - 1), 1])
                b[i : i + n] = value.to_bytes(n, "little")
            case 9:
                lines = bytes(b).split(b"\n")
                one = lines.pop(rng.randrange(len(lines)))
                for _ in range(rng.choice([0, 2])):
                    lines.insert(rng.randrange(len(lines) + 1), one)
                b = bytearray(b"\n".join(lines))
            case _:
                b[i:i] = rng.choice(SIGNS) * rng.choice([1, 1, 1, 2, 3000])
    return bytes(b)


def in_tree(rng, text):
    """What a document says, rather than how it is written."""
    tree = json.loads(text)
    places = []

    def walk(node, place):
        places.append(place)
        inner = node.items() if isinstance(node, dict) else enumerate(node[:6]) if isinstance(node, list) else ()
        for key, value in inner:
            walk(value, (*place, key))

    def at(place):
        node = tree
        for key in place:
            node = node[key]
        return node

    walk(tree, ())
    for _ in range(rng.choice([1, 1, 2, 4])):
        place = rng.choice(places[1:])
        try:
            around = at(place[:-1])
            match rng.randrange(5):
                case 0 | 1:
                    around[place[-1]] = copy.deepcopy(rng.choice(VALUES))
                case 2:
                    del around[place[-1]]
                case 3:
                    around[place[-1]] = json.loads(json.dumps(at(rng.choice(places))))
                case _ if isinstance(around, dict):
                    key = rng.choice(["name", "group", "arguments", "numbers", "extra", "type"])
                    around[key] = copy.deepcopy(rng.choice(VALUES))
                case _ if isinstance(around, list):
                    around.insert(place[-1], copy.deepcopy(rng.choice(VALUES)))
        except (KeyError, IndexError, TypeError):  # Not there any more.
            continue
    return json.dumps(tree).encode()


def in_archive(rng, data):
    """A member of a checkpoint changed, gone or under another name, and the checksum made right."""
    members = members_of(data)
    name = "checkpoint.json" if rng.random() < 0.5 else rng.choice(list(members))
    content = members.pop(name)
    if name == "checkpoint.json":
        content = in_tree(rng, content) if rng.random() < 0.8 else in_bytes(rng, content)
    else:
        match rng.randrange(6):
            case 0:
                content = npy(rng.choice(TYPES), f"({rng.choice(SHAPES)},)", content[128:])
            case 1:
                content = content[:128] + in_bytes(rng, content[128:])
            case 2:
                content = in_bytes(rng, content)
            case 3:
                name = rng.choice(["state/x.npy", "document/x.npy", "../../x.npy", "state/work.npy", "state/.npy"])
            case 4 if len(content) >= 136:
                at = 128 + 8 * rng.randrange(len(content[128:]) // 8)
                wrong = rng.choice([np.nan, np.inf, 1e308, -1e308, 0.0, 1e-310, -1.0])
                content = content[:at] + struct.pack("<d", wrong) + content[at + 8 :]
            case _:
                name = None
    if name is not None:
        members[name] = content
    return packed(members, rng.choice([0, 0, 0, 8, 12, 14]))


def of_checkpoint(rng, data):
    kind = rng.random()
    if kind < 0.2:
        return in_bytes(rng, data)
    return summed(in_bytes(rng, data)) if kind < 0.4 else in_archive(rng, data)


def of_document(rng, data):
    return in_tree(rng, data) if rng.random() < 0.6 else in_bytes(rng, data)


# Reading -----------------------------------------------------------------------------------------------------------


def go_on(path):
    mp.Simulation.resume(path, threads=1).step(1)


def make_anew(path):
    made = mp.deserialize(path)
    if isinstance(made, tuple):
        mp.Context(*made, threads=1).step(1)


def look_at(path):
    with mp.Trajectory(path) as trajectory:
        for frame in trajectory:
            _ = frame.positions, frame.velocities, frame.triangles, frame.barycentric, frame.orientations
            _ = frame.potential_energy, frame.temperature, frame.ids
            _ = [(frame.living(handle), frame.beside(handle)) for handle in frame.handles.values()]
            _ = frame.energies, frame.bonds, frame.state(), [frame.link_ends(name) for name in frame.link_forces]
            _ = [frame.chains(handle) for handle in frame.handles.values() if handle.links is not None]
        _ = trajectory.document, trajectory.system()


READERS = {
    "checkpoint": (good_checkpoints, of_checkpoint, go_on),
    "document": (good_documents, of_document, make_anew),
    "trajectory": (good_trajectories, in_bytes, look_at),
    **{e: (good_meshes(e), in_bytes, mp.TriangleMesh.from_file) for e in (".ply", ".obj", ".off", ".stl")},
}


def mutated_files(kind, n, seed, folder):
    """Read n of them; how many were read, how many refused, and the longest time."""
    make, mutate, read = READERS[kind]
    (folder / "good").mkdir()
    make(folder / "good")
    rng = random.Random(f"{kind} {seed}")
    seeds = sorted((folder / "good").iterdir())
    for path in seeds:
        read(path)
    data = [path.read_bytes() for path in seeds]
    fine, longest = 0, 0.0
    try:
        for k in range(n):
            which = rng.randrange(len(seeds))
            mutated = mutate(rng, data[which])
            path = folder / f"mutated{seeds[which].suffix}"
            path.write_bytes(mutated)
            # Looking at memory takes twice the time of what is looked at.
            if k % 5 == 0:
                tracemalloc.start()
            begin = time.process_time()
            try:
                read(path)
                fine += 1
            except mp.MedyanError as error:
                assert len(str(error)) < 5000  # noqa: PT017
            except BaseException as error:
                raise AssertionError(f"{kind} {seed}, file {k}: {type(error).__name__}: {error}") from error
            seconds = time.process_time() - begin
            taken = tracemalloc.get_traced_memory()[1]  # 0 where nobody looks
            tracemalloc.stop()
            assert taken < 10 * len(mutated) + ROOM, f"{kind} {seed}, file {k}: {taken} bytes for {len(mutated)}"
            assert seconds < SECONDS, f"{kind} {seed}, file {k}: {seconds:.1f} s"
            longest = max(longest, seconds)
    finally:
        tracemalloc.stop()
    return fine, longest


@pytest.mark.parametrize("kind", READERS)
def test_mutated_files_are_read_or_refused(kind, tmp_path):
    if kind == "trajectory":
        pytest.importorskip("h5py")
    n = 60 if kind == "trajectory" else 500
    fine, _ = mutated_files(kind, n, 1, tmp_path)
    # The mutations leave some files good, and spoil most.
    assert 0 < fine < 0.9 * n


@pytest.mark.long
@pytest.mark.parametrize("kind", READERS)
def test_twenty_thousand_mutated_files_are_read_or_refused(kind, tmp_path):
    fine, longest = mutated_files(kind, 20_000, 2, tmp_path)
    print(f"{kind}: {fine} of 20000 read, the rest refused; {longest:.2f} s at most")
