"""Files that somebody made up: typed errors, no more memory than the file is worth, no code run.

Checksums are made to match: CRC-32 finds what a disk does to a file, not what a person does.
"""

import io
import json
import struct
import time
import zipfile

import numpy as np
import pytest
from builders import refuses
from hostile_files import SUM_LENGTH, edited, members_of, npy, packed, peak_of, simulation, summed, with_number

import medyanpy as mp

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::medyanpy.errors.TimestepWarning")]

@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    """The bytes of a checkpoint after two steps."""
    path = tmp_path_factory.mktemp("hostile") / "good"
    made = simulation()
    made.step(2)
    made.save_checkpoint(path)
    return path.read_bytes()


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_members_are_read_only_as_they_lie_there(checkpoint, tmp_path, method):
    """50 kB that unpack to 50 MB: a person's checksum is right whatever the member says."""
    path = tmp_path / "bomb"
    many = members_of(checkpoint) | {"state/y.npy": npy("'|u1'", f"({50 << 20},)", bytes(50 << 20))}
    text = members_of(checkpoint)
    text["checkpoint.json"] = text["checkpoint.json"].rstrip()[:-1] + b" " * (50 << 20) + b"}"
    for members in (many, text):
        path.write_bytes(packed(members, method))
        assert path.stat().st_size < 200_000
        peak, error = peak_of(mp.Simulation.resume, path)
        assert isinstance(error, mp.ParameterError)
        assert "is compressed, which members of checkpoints are not" in str(error)
        assert peak < 10 * path.stat().st_size + 2e6
    spoiled = bytearray(packed(members_of(checkpoint), method))
    spoiled[60:100] = b"\xff" * 40
    path.write_bytes(summed(bytes(spoiled)))
    refuses(mp.ParameterError, "is not a checkpoint, or is damaged", mp.Simulation.resume, path)


def test_members_that_share_their_bytes_are_refused(checkpoint, tmp_path):
    """A directory of many entries for the same 4 MB: each is stored, together they are more than the file."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, data in members_of(checkpoint).items():
            archive.writestr(name, data)
        archive.writestr("state/y.npy", npy("'|u1'", f"({4 << 20},)", bytes(4 << 20)))
        first = archive.filelist[-1]
        for k in range(20):
            again = zipfile.ZipInfo(f"state/y{k}.npy")
            for name in ("header_offset", "CRC", "file_size", "compress_size", "compress_type"):
                setattr(again, name, getattr(first, name))
            archive.filelist.append(again)
        archive.comment = bytes(SUM_LENGTH)
    path = tmp_path / "shared"
    path.write_bytes(summed(out.getvalue()))
    refuses(mp.ParameterError, r"its members have \d+ bytes together, but the file has \d+", mp.Simulation.resume, path)


@pytest.mark.parametrize(
    "member",
    [
        npy("'<f8'", "('a',)"), npy("'<f8'", "(("), npy("'|S0'", "(99999999999,)"), npy("'|V0'", "(9,)"),
        npy("'<f8'", "(-3,)"), npy("'<f8'", "(1180591620717411303424, 0)"), npy("'<f8'", "(4294967296, 4294967296, 0)"),
        npy("'<f8'", "(0, 2147483647)"), npy("'<f8'", "(True,)", bytes(8)), npy("'<f8'", "(1.0,)", bytes(8)),
        npy("'<f8'", "(" + "1, " * 9 + ")", bytes(8)), npy("'<f8'", "(" + "1," * 9000 + ")"),
        npy("'|O'", "(1,)", b"cos\nsystem\n(S'true'\ntR."),
        npy("[('a', '<f8'), ('b', '<i4', (3,))]", "(1,)", bytes(20)),
        npy("'<M8[ns]'", "(1,)", bytes(8)), npy("'<U4'", "(1,)", bytes(16)), npy("'<c16'", "(1,)", bytes(16)),
        npy("'>f8'", "(1,)", bytes(8)), npy("'<f2'", "(1,)", bytes(2)), npy("'<f8'", "(2, 2)", bytes(32), fortran=True),
        npy("'<f8'", "(2,)", bytes(15)), npy("'<f8'", "(2,)", bytes(17)), npy("(" * 3000 + ")" * 3000, "(1,)"),
        b"", b"\x93NUMPY", b"\x93NUMPY\x02\x00",
    ],
)  # fmt: skip
def test_members_that_are_no_plain_array_of_numbers_are_refused(checkpoint, tmp_path, member):
    path = tmp_path / "c"
    path.write_bytes(packed(members_of(checkpoint) | {"state/y.npy": member}))
    peak, error = peak_of(mp.Simulation.resume, path)
    assert isinstance(error, mp.ParameterError)
    assert "c is not a checkpoint, or is damaged" in str(error) or "state/y.npy = [" in str(error)
    assert len(str(error)) < 500
    assert peak < 10 * path.stat().st_size + 2e6


@pytest.mark.parametrize(("name", "index", "values", "message"), [
    ("x", 4, [np.nan], r"x\[1, 1\] = nan but must be finite"),
    ("v", 3, [-np.inf], r"v\[1, 0\] = -inf but must be finite"),
    ("spin", 0, [np.inf], r"spin\[0, 0\] = inf"),
    ("barycentric", 2, [-5.0], r"point \d lies outside its triangle \d+: barycentric = .*must be >= 0 with sum 1"),
    ("barycentric", 0, [0.75, 0.75], r"point \d lies outside its triangle"),
    ("barycentric", 1, [np.nan], r"barycentric\[0, 1\] = nan"),
    ("orientation", 0, [0.0, 0, 0, 0], r"orientations\[0\] = .* has length 0"),
    ("orientation", 4, [1.0, 1e-2, 0, 0], r"orientations\[1\] = .* must have length 1 to 1e-06"),
    ("c1", 0, [1e300], r"c1\[0\] = 1e\+300, but here it is 0\.99"),
    ("c2", 7, [-0.5], r"c2\[7\] = -0.5, but here it is 0.0"),
    ("friction of rigid bodies", 0, [2.0], r"friction of rigid bodies\[0, 0, 0, 0\] = 2.0, but here it is 0\.99"),
    ("runaway", 2, [np.nan], r"runaway\[2\] = nan"),
])  # fmt: skip
def test_a_state_that_none_can_be_is_refused_and_changes_nothing(checkpoint, tmp_path, name, index, values, message):
    path = tmp_path / "c"
    path.write_bytes(packed(with_number(checkpoint, name, index, *values)))
    there = simulation()
    before = {key: a.tobytes() for key, a in there.context._dynamical_arrays().items()}
    for read in (mp.Simulation.resume, there.load_checkpoint):
        refuses(mp.ParameterError, f"c: .*{message}", read, path)
    assert {key: a.tobytes() for key, a in there.context._dynamical_arrays().items()} == before


def test_measurements_may_be_missing_at_first(checkpoint, tmp_path):
    """Kinetic energies after O are nan until there was one."""
    path = tmp_path / "c"
    made = simulation()
    made.save_checkpoint(path)
    assert b"after_o" in path.read_bytes()
    assert np.isnan(made.context._store.after_o).all()
    mp.Simulation.resume(path).step(1)


def test_work_that_is_none_changes_nothing(checkpoint, tmp_path):
    """Whether it is measured is not known before the file is read: it is the last thing that is taken."""
    path = tmp_path / "c"
    there = simulation()
    before = {key: a.tobytes() for key, a in there.context._dynamical_arrays().items()}
    for wrong in (npy("'<f8'", "(5,)", bytes(40)), npy("'<i4'", "(8,)", bytes(32)), npy("'<f8'", "(2, 4)", bytes(64))):
        path.write_bytes(packed(members_of(checkpoint) | {"state/work.npy": wrong}))
        for read in (mp.Simulation.resume, there.load_checkpoint):
            refuses(mp.ParameterError, r"c: checkpoint: work is .* not float64 of shape \(11,\)", read, path)
    assert {key: a.tobytes() for key, a in there.context._dynamical_arrays().items()} == before


def test_a_point_stays_on_the_membrane_that_it_belongs_to(tmp_path):
    """Faces of all membranes are numbered through; those of another one do exist."""
    topology = mp.Topology()
    first, second = (topology.add_membrane(mp.TriangleMesh.icosphere(r, 0), 1.0, name=f"m{r:.0f}") for r in (5.0, 9.0))
    topology.add_intriangle_points(first, triangles=[3], barycentric=[[0.2, 0.3, 0.5]], mass=1.0)
    topology.add_intriangle_points(second, triangles=[4], barycentric=[[0.2, 0.3, 0.5]], mass=1.0, name="on m9")
    made = mp.Simulation(mp.System(topology), mp.SplittingIntegrator("BAGAB", 0.1))
    made.save_checkpoint(tmp_path / "c")
    mp.Simulation.resume(tmp_path / "c")
    members = members_of((tmp_path / "c").read_bytes())
    members["state/triangle.npy"] = npy("'<i4'", "(2,)", struct.pack("<2i", 3, 4))
    (tmp_path / "c").write_bytes(packed(members))
    with pytest.raises(mp.ParameterError, match=r"on m9: triangles\[0\] = -16 does not exist: the mesh has faces 0 to"):
        mp.Simulation.resume(tmp_path / "c")


def test_trees_with_arrays_where_words_belong_are_refused(checkpoint, tmp_path):
    """A member of the file may stand anywhere in the tree, not only where an array is meant."""
    path = tmp_path / "c"
    members = members_of(checkpoint)
    somewhere = next(name for name in members if name.startswith("document/")).removesuffix(".npy")
    places = [
        ("type",), ("system",), ("system", "type"), ("system", "topology", "type"), ("system", "forces"),
        ("system", "topology", "objects", 0, "type"), ("system", "topology", "objects", 0, "arguments", "name"),
        ("system", "topology", "objects", 0, "arguments"),
        ("system", "topology", "objects", 1, "arguments", "membrane"),
        ("system", "topology", "objects", 1, "arguments", "membrane", "handle"), ("system", "forces", 0, "name"),
        ("system", "forces", 0, "type"), ("system", "forces", 0, "arguments", "membrane"), ("integrator",),
        ("integrator", "type"), ("integrator", "arguments"), ("integrator", "arguments", "word"),
    ]  # fmt: skip
    there = simulation()
    for place in places:
        for wrong in ({"member": somewhere}, {"dtype": "int64", "values": [1, 2]}, [[]], 10**400, None):
            head = json.loads(members["checkpoint.json"])
            node = head["document"]["content"]
            for key in place[:-1]:
                node = node[key]
            node[place[-1]] = wrong
            path.write_bytes(packed(members | {"checkpoint.json": json.dumps(head).encode()}))
            for read in (mp.Simulation.resume, there.load_checkpoint):
                error = peak_of(read, path)[1]
                assert error is None or (str(path) in str(error) and len(str(error)) < 1500)


def document(content):
    return json.dumps({"format": "medyanpy document", "version": 2, "content": content})


@pytest.mark.parametrize(
    "shape", [[0] + [2**31 - 1] * 3, [2**31 - 1, 0], [0, 2**40], [-1, 0], [0, 1.5], [0, True], [0] * 65, [0, "a"]]
)
def test_documents_with_absurd_shapes_are_refused(shape):
    positions = {"dtype": "float64", "shape": shape, "values": []}
    beads = {"type": "Beads", "arguments": {"mass": 1.0, "positions": positions}}
    with pytest.raises(mp.ParameterError, match=r"positions\.shape = \[.* is not the shape of an array in a file"):
        mp.deserialize(document({"type": "Topology", "objects": [beads]}))


HOLLOW = {
    "lists": ('{"format": "medyanpy document", "version": 2, "content": [%s0]}', "[],", 600_000),
    "lists of one": ('{"format": "medyanpy document", "version": 2, "content": [%s0]}', "[0],", 600_000),
    "objects": ('{"format": "medyanpy document", "version": 2, "content": [%s0]}', "{},", 600_000),
    "objects of one": ('{"format": "medyanpy document", "version": 2, "content": [%s0]}', '{"a":0},', 300_000),
    "strings": ('{"format": "medyanpy document", "version": 2, "content": [%s0]}', '"ab",', 400_000),
    "deep lists": ('{"format": "medyanpy document", "version": 2, "content": [%s0]}', "[[[]]],", 300_000),
    "one key": ('{"format": "medyanpy document", "version": 2, "content": {%s"a": 0}}', '"a":0,', 300_000),
    "zeros": ('{"format": "medyanpy document", "version": 2, "content": [%s0]}', "0,", 600_000),
}


@pytest.mark.parametrize("what", HOLLOW)
def test_documents_of_nothing_take_no_memory(what):
    around, unit, n = HOLLOW[what]
    text = around % (unit * n)
    begin = time.process_time()
    with pytest.raises(mp.ParameterError):
        mp.deserialize(text)
    assert time.process_time() - begin < max(1.0, len(text) / 1e6)
    taken, error = peak_of(mp.deserialize, text)
    assert isinstance(error, mp.ParameterError)
    assert len(str(error)) < 500
    assert taken < 10 * len(text) + 4e6


def test_the_one_key_that_occurs_twice_is_found_at_once():
    """Looking through all that came before, for each, took hours."""
    pairs = ", ".join(f'"{i}": 0' for i in range(100_000))
    begin = time.process_time()
    refuses(mp.ParameterError, "the key '99999' occurs twice", mp.deserialize, f'{{{pairs}, "99999": 1}}')
    assert time.process_time() - begin < 2.0


PLY = "ply\nformat {form} 1.0\nelement vertex {v}\nproperty float x\nproperty float y\nproperty float z\nelement {rows}"
THREE = "\nproperty list uchar int a\nproperty list uchar int b\nproperty list uchar int c\n"
FACES = "\nproperty list uchar uchar vertex_indices\n"
HOLLOW_MESHES = {
    "lists of nothing": (".ply", "<", "more 100000" + THREE, bytes(300_000), "holds no surface"),
    "one of them is something": (".ply", "<", "more 100000" + THREE, bytes(299_999) + b"\1\0\0\0\0", "no surface"),
    "text of them": (".ply", "a", "more 100000" + THREE, b"0 " * 300_000, "holds no surface"),
    "short words": (".ply", "a", "more 300000\nproperty float a\n", b"00 " * 300_000, "holds no surface"),
    "faces of nothing": (".ply", "<", "face 300000" + FACES, bytes(300_000), "a face with 0 vertices"),
    "faces of 0 and 1": (".ply", "<", "face 200000" + FACES, b"\0\1\0" * 100_000, "a face with 0 vertices"),
    "many columns": (".ply", "<", "face 1" + "\nproperty float a" * 60_000 + "\n", b"", "its header has"),
    "many elements": (".ply", "<", "a 0\nelement " * 90_000 + "a 0\n", b"", "its header has"),
    "lists that would be long": (".ply", "<", "a 1\nproperty list uint uchar a\n", b"\xff" * 99, "ends within"),
    "rows without columns": (".ply", "<", "a 99999999999999\n", b"", "holds no surface"),
    "words without columns": (".ply", "a", "a 99999999999999\n", b"", "holds no surface"),
    "vertices alone": (".obj", "", "", b"v 0 0 0\n" * 100_000, "holds no surface"),
    "empty lines": (".obj", "", "", b"\n" * 1_000_000, "is empty"),
    "counts alone": (".off", "", "OFF\n99999999 99999999 0\n", b"0 " * 400_000, "cannot be read"),
}


@pytest.mark.parametrize("what", HOLLOW_MESHES)
def test_meshes_of_nothing_take_no_memory(what, tmp_path):
    ending, form, head, body, message = HOLLOW_MESHES[what]
    if form:
        form = "ascii" if form == "a" else "binary_little_endian"
        head = PLY.format(form=form, v=0, rows=head) + "end_header\n"
    path = tmp_path / f"hollow{ending}"
    path.write_bytes(head.encode() + body)
    size = path.stat().st_size
    begin = time.process_time()
    refuses(mp.MeshError, message, mp.TriangleMesh.from_file, path)
    assert time.process_time() - begin < max(1.0, size / 1e6)
    taken, _ = peak_of(mp.TriangleMesh.from_file, path)
    assert taken < 10 * size + 4e6


@pytest.mark.parametrize("n", [2**20 + 1, 300_000_000, 10**12, 10**400])
def test_documents_do_not_make_more_points_than_they_are_worth(n):
    mesh = json.loads(mp.serialize(mp.TriangleMesh.icosphere(1.0, 0)))["content"]
    membrane = {"type": "Membrane", "arguments": {"mesh": mesh, "vertex_mass": 1.0, "name": "m"}}
    points = {"type": "InTrianglePoints", "arguments": {"membrane": {"handle": "m"}, "n": n, "mass": 1.0, "seed": 1}}
    text = document({"type": "Topology", "objects": [membrane, points]})
    peak, error = peak_of(mp.deserialize, text)
    assert isinstance(error, mp.ParameterError)
    assert r"objects[1].arguments.n must be <= 1048576: more points are given by triangles" in str(error)
    assert peak < 2e6
    points["arguments"]["n"] = 2000
    assert mp.deserialize(document({"type": "Topology", "objects": [membrane, points]})).n_beads == 2012


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1", "utf-8-sig", "utf-16", "utf-16-be", "cp437", "shift_jis"])
@pytest.mark.parametrize("ending", [".stl", ".obj", ".off"])
def test_names_and_comments_of_meshes_are_in_any_encoding(tmp_path, ending, encoding, monkeypatch):
    """None needs a package that guesses encodings."""
    import sys

    monkeypatch.setitem(sys.modules, "charset_normalizer", None)
    mesh = mp.TriangleMesh.icosphere(10.0, 0)
    name = "表" if encoding == "shift_jis" else "Zélle"
    if ending == ".stl":
        facets = [
            "facet normal 0 0 0\nouter loop\n" + "".join(f"vertex {x!r} {y!r} {z!r}\n" for x, y, z in corners.tolist())
            + "endloop\nendfacet\n" for corners in mesh.vertices[mesh.faces]
        ]  # fmt: skip
        text = f"solid {name}\n{''.join(facets)}endsolid {name}\n"
    else:
        mesh.save(tmp_path / f"plain{ending}")
        text = (tmp_path / f"plain{ending}").read_text()
        text = text.replace("\n", f" # {name}\n", 1) if ending == ".off" else f"# {name}\no {name}\n{text}"
    mark = b"\xfe\xff" if encoding == "utf-16-be" else b""
    (tmp_path / f"odd{ending}").write_bytes(mark + text.encode(encoding))
    odd = mp.TriangleMesh.from_file(tmp_path / f"odd{ending}")
    assert (len(odd.vertices), len(odd.faces)) == (12, 20)
    np.testing.assert_array_equal(odd.vertices[odd.faces], mesh.vertices[mesh.faces])


def test_damaged_chunks_of_a_trajectory(tmp_path):
    """The file opens, the chunk does not: every look at it is a ParameterError that names file and array."""
    h5py = pytest.importorskip("h5py")
    made = simulation()
    with mp.reporters.TrajectoryReporter(tmp_path / "t.h5", 1, velocities=True) as reporter:
        made.reporters.append(reporter)
        made.step(5)
    with h5py.File(tmp_path / "t.h5") as file:
        chunk = file["particles/all/position/value"].id.get_chunk_info(0)
    spoiled = bytearray((tmp_path / "t.h5").read_bytes())
    spoiled[chunk.byte_offset : chunk.byte_offset + chunk.size] = b"\xff" * chunk.size
    (tmp_path / "bad.h5").write_bytes(spoiled)
    with mp.Trajectory(tmp_path / "bad.h5") as trajectory:
        frame = trajectory[-1]
        for look in (
            lambda: frame.positions, lambda: trajectory.read("positions"),
            lambda: trajectory.read("positions", slice(0, 3), [0, 1]),
        ):  # fmt: skip
            refuses(mp.ParameterError, r"bad\.h5 is damaged: positions: ", look)
        assert frame.velocities.shape == (trajectory.n_beads, 3)
        refuses(mp.ParameterError, "frames = 3 but must be a slice", trajectory.read, "velocities", 3)


# Who is there ------------------------------------------------------------------------------------------------------


def with_array(data, name, change):
    """A checkpoint with an array of its state changed."""
    members = members_of(data)
    array = np.load(io.BytesIO(members[f"state/{name}.npy"]))
    changed = change(array)
    file = io.BytesIO()
    np.save(file, array if changed is None else changed)
    members[f"state/{name}.npy"] = file.getvalue()
    return packed(members)


def put(index, value):
    def change(array):
        array[index] = value

    return change


def swapped(array):
    first, second = np.flatnonzero(array >= 0)[[0, -1]]
    array[[first, second]] = array[[second, first]]


WHO = [
    ("alive", put(0, 2), "alive and ids do not say who is there"),
    ("alive", put(0, -1), "alive and ids do not say who is there"),
    ("alive", put(0, 0), "alive and ids do not say who is there"),
    ("alive", put(slice(None), 1), "alive and ids do not say who is there"),
    ("alive", put(slice(None), 0), "alive and ids do not say who is there"),
    ("ids", put(0, 10**15), "alive and ids do not say who is there"),
    ("ids", put(0, -5), "alive and ids do not say who is there"),
    ("ids", lambda a: np.where(a >= 0, 3, a), "alive and ids do not say who is there"),
    ("ids", swapped, r"alive: row \d+ \('\w+'\) is that of id \d+ in the state, and that of id \d+ here"),
    ("next_id", put(0, 0), "alive and ids do not say who is there"),
    ("next_id", put(0, -1), "alive and ids do not say who is there"),
    ("next_id", put(0, 2**60), "alive and ids do not say who is there"),
    ("ids", lambda a: a[:-1], "ids is int64 of shape"),
    ("alive", lambda a: a.astype(np.int64), "alive is int64 of shape .*, not int8"),
    ("next_id", lambda a: np.array([1, 2]), "next_id is int64 of shape"),
]


@pytest.mark.parametrize(("name", "change", "message"), WHO)
def test_living_beads_are_stored_once(name, change, message, tmp_path):
    made, path = edited(), tmp_path / "c"
    made.save_checkpoint(path)
    before = made.context.get_state(positions=True, velocities=True)
    path.write_bytes(with_array(path.read_bytes(), name, change))
    for read in (made.load_checkpoint, mp.Simulation.resume):
        refuses(mp.ParameterError, message, read, path)
    after = made.context.get_state(positions=True, velocities=True)
    assert np.array_equal(before.ids, after.ids)
    assert np.array_equal(before.positions, after.positions, equal_nan=True)


def test_missing_arrays_of_who_is_there_are_missed(tmp_path):
    made, path = edited(), tmp_path / "c"
    for name in ("alive", "ids", "next_id"):
        made.save_checkpoint(path)
        members = members_of(path.read_bytes())
        del members[f"state/{name}.npy"]
        path.write_bytes(packed(members))
        refuses(mp.ParameterError, f"checkpoint: {name} is missing", made.load_checkpoint, path)
