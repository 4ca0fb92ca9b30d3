"""What the file of a run holds: enough to draw it, to go on from it and to make it again, and where others look."""

import json
import shutil
import subprocess
import sys

import h5py
import numpy as np
import pytest
from builders import refuses, system_with
from files.contents import COLUMNS, everything, expected_bonds, pairs_of, recorded

import medyanpy as mp

# Files, and processes that are killed: no kernel that other tests do not reach.
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A path, the simulation that wrote it, and the states of its frames: one edge is flipped before the first."""
    path = tmp_path_factory.mktemp("content") / "run.h5md"
    simulation = everything()
    vesicle = simulation.topology["vesicle"]
    simulation.context.flip_edges(vesicle, vesicle.mesh.edges[:1])
    recorder = recorded(simulation, path, velocities=True)
    simulation.step(6)
    simulation.close()
    return path, simulation, recorder


# Energies, bonds, document -----------------------------------------------------------------------------------------


def test_frames_have_the_energy_of_every_force(run):
    path, _, recorder = run
    with mp.Trajectory(path) as trajectory:
        for frame, state in zip(trajectory, recorder.states, strict=True):
            assert frame.energies == state.energies
            assert sum(frame.energies.values()) == frame.potential_energy
    with h5py.File(path) as file:
        there = file["observables/energies"]
        assert set(there) == set(recorder.states[0].energies)
        assert there["ropes/value"][()].tolist() == [s.energies["ropes"] for s in recorder.states]
        assert there["ropes/value"].attrs["unit"] == "pN nm"
        assert there["ropes/step"][()].tolist() == [s.step for s in recorder.states]


def test_bonds_are_those_of_chains_bonds_and_links(run):
    path, simulation, recorder = run
    with mp.Trajectory(path) as trajectory:
        for frame, links in zip(trajectory, recorder.links, strict=True):
            # Sites of bodies have arms: their main beads are the bodies.
            main = [np.column_stack([e.a.main_beads, e.b.main_beads]) for e in links]
            more = np.concatenate([simulation.system["HarmonicBonds"].pairs, *main])
            assert pairs_of(frame.bonds) == expected_bonds(simulation.topology, [], more)
            assert len(frame.bonds) == len(pairs_of(frame.bonds))


def test_main_beads_of_sites():
    weighted = mp.Sites.weighted([[4, 7, 2], [1, 3, 5]], [[0.2, 0.3, 0.5], [0.4, 0.4, 0.2]])
    sites = mp.Sites.anchors([[0.0, 0, 0]]) + weighted + mp.Sites.beads([6])
    assert sites.main_beads.tolist() == [-1, 2, 1, 6]


def test_bonds_are_where_h5md_looks(run):
    """H5MD 1.1: tuples are of ids, refer to their particles, and are none where they are the fill value."""
    path, _, recorder = run
    with h5py.File(path) as file, mp.Trajectory(path) as trajectory:
        for name in ("bonds", "mesh_edges"):
            assert file[file["connectivity"][name].attrs["particles_group"]] == file["particles/all"]
        group = file["connectivity/bonds"]
        assert group["value"].fillvalue == -1
        for k, frame in enumerate(trajectory):
            tuples = group["value"][k]
            tuples = tuples[(tuples >= 0).all(axis=1)]
            assert pairs_of(tuples) == pairs_of(frame.ids[frame.bonds])
            edges = set()
            for name, faces in recorder.states[k].faces.items():
                corners = trajectory.handles[name].beads[faces]
                for i in range(3):
                    edges |= pairs_of(corners[:, [i, (i + 1) % 3]])
            assert pairs_of(file["connectivity/mesh_edges/value"][k]) == edges


def test_names_and_radii_are_where_h5md_looks(run):
    path, simulation, _ = run
    with h5py.File(path) as file:
        assert file["particles/trajectory"] == file["particles/all"]
        species = file["particles/all/species"]
        assert h5py.check_enum_dtype(species.dtype) == {h.name: k for k, h in enumerate(simulation.topology.handles)}
        radius = file["particles/all/radius"][()]
        for k, handle in enumerate(simulation.topology.handles):
            own = radius[species[()] == k]
            if handle.name == "balls":
                assert own.tolist() == handle.radius.tolist()
            else:
                assert np.isfinite(own).all() == (handle.name == "rod")


def test_more_names_than_hdf5_can_hold(tmp_path):
    topology = mp.Topology()
    for k in range(300):
        topology.add_beads([[float(k), 0.0, 0.0]], mass=1.0, name=f"{k} " + 200 * "x")
    simulation = mp.Simulation(mp.System(topology), mp.VerletIntegrator(0.1), threads=1)
    recorded(simulation, tmp_path / "run.h5")
    simulation.step(2)
    simulation.close()
    with h5py.File(tmp_path / "run.h5") as file:
        assert file["particles/all/species"][()].tolist() == list(range(300))
    with mp.Trajectory(tmp_path / "run.h5") as trajectory:
        assert list(trajectory.handles) == [h.name for h in topology.handles]


def test_forces_with_names_that_are_paths(tmp_path):
    topology = mp.Topology()
    beads = topology.add_beads([[1.0, 0.0, 0.0]], mass=1.0)
    system = mp.System(topology)
    names = ["a/b", "..", "plain", "force 0"]
    for name in names:
        system.add_force(mp.forces.HarmonicTrap(beads, 1.0, [0.0, 0, 0], name=name))
    simulation = mp.Simulation(system, mp.VerletIntegrator(0.1), threads=1)
    recorder = recorded(simulation, tmp_path / "run.h5")
    simulation.step(2)
    simulation.close()
    with mp.Trajectory(tmp_path / "run.h5") as trajectory:
        assert trajectory[0].energies == recorder.states[0].energies
        assert list(trajectory[0].energies) == names
    with h5py.File(tmp_path / "run.h5") as file:
        assert len(file["observables/energies"]) == 4
        assert all("value" in group for group in file["observables/energies"].values())


def test_the_document_and_the_seed_are_in_the_file(run):
    path, simulation, _ = run
    with mp.Trajectory(path) as trajectory:
        assert trajectory.document == mp.serialize(simulation)
        assert trajectory[0].document == trajectory.document
        assert json.loads(trajectory.document)["content"]["type"] == "Simulation"
        assert trajectory.seed == 5
        system, integrator = trajectory.system()
        assert mp.serialize((system, integrator)) == trajectory.document
        assert list(system.force_names) == list(simulation.system.force_names)


class Secret(mp.forces.PythonForce):
    """It was given something that no document can hold."""

    def _arguments_now(self):
        raise RuntimeError("the key is not given away")


def push(x):
    return 0.5 * float((x**2).sum()), -x


def test_python_functions_are_given_again(tmp_path):
    topology = mp.Topology()
    beads = topology.add_beads([[1.0, 0.0, 0.0]], mass=1.0)
    simulation = mp.Simulation(system_with(topology, mp.forces.PythonForce(push, beads=beads, name="mine")),
                               mp.VerletIntegrator(0.1), threads=1)  # fmt: skip
    recorded(simulation, tmp_path / "run.h5", velocities=True)
    simulation.step(2)
    simulation.close()
    with mp.Trajectory(tmp_path / "run.h5") as trajectory:
        refuses(mp.ParameterError, "mine", trajectory.system)
        context = mp.Context(*trajectory.system({"mine": push}), threads=1)
        context.set_state(trajectory[-1].state())
        context.step(3)
        simulation.context.step(3)
        assert (
            context.get_state(positions=True).positions == simulation.context.get_state(positions=True).positions
        ).all()


def test_run_without_a_document_resumes_and_its_file_says_why(tmp_path):
    topology = mp.Topology()
    beads = topology.add_beads([[1.0, 0.0, 0.0]], mass=1.0)
    simulation = mp.Simulation(system_with(topology, Secret(push, beads=beads, name="mine")),
                               mp.VerletIntegrator(0.1), threads=1)  # fmt: skip
    recorder = recorded(simulation, tmp_path / "run.h5")
    simulation.step(4)
    simulation.close()
    with mp.Trajectory(tmp_path / "run.h5") as trajectory:
        assert [f.energies for f in trajectory] == [s.energies for s in recorder.states]
        for look in (lambda: trajectory.document, trajectory.system):
            refuses(mp.ParameterError, r"holds no document .*RuntimeError: the key is not given away", look)


# Frames as states ----------------------------------------------------------------------------------------------------


def test_a_frame_is_a_state_to_the_bit(run):
    """What set_state does with it is what it does with the state itself; and the run goes on likewise."""
    path, _, recorder = run
    with mp.Trajectory(path) as trajectory:
        for k in (0, -1):
            state, given = trajectory[k].state(), recorder.states[k]
            assert (state.step, state.time) == (given.step, given.time)
            for name in ("energies", "potential_energy", "kinetic_energy", "total_energy", "temperature"):
                assert getattr(state, name) == getattr(given, name)
            with pytest.raises(mp.ParameterError, match="no kinetic_energies"):
                state.kinetic_energies  # noqa: B018
            assert "ropes" in state._repr_html_()
            assert (state.ids == given.ids).all()
            for name in COLUMNS:
                np.testing.assert_array_equal(state.column(name), given.column(name))
            for name, faces in given.faces.items():
                assert (state.faces[name] == faces).all()
            assert (state.jumps["binding"]["links"] == given.jumps["binding"]["links"]).all()
            mine, other = (mp.Context(*trajectory.system(), threads=1) for _ in range(2))
            mine.set_state(state)
            other.set_state(given)
            for _ in range(2):
                one, two = (c.get_state(positions=True, velocities=True, energy=True) for c in (mine, other))
                assert one.energies == two.energies
                for name in COLUMNS:
                    np.testing.assert_array_equal(one.column(name), two.column(name))
                assert (one.jumps["binding"]["links"] == two.jumps["binding"]["links"]).all()
                mine.step(5)
                other.step(5)


def test_links_of_a_frame_are_bound_again_whatever_was_bound(run):
    """And the run goes on likewise, whatever was before."""
    path, *_ = run
    with mp.Trajectory(path) as trajectory:
        wanted = trajectory[0].links("binding").tolist()
        assert len(wanted) == 2
        fresh, used = (mp.Context(*trajectory.system(), threads=1) for _ in range(2))
        for _ in range(100):
            used.step(100)
            if used.get_state(positions=True).jumps["binding"]["links"].tolist() != wanted:
                break
        else:
            pytest.fail("nothing was bound or let go in 20 lifetimes of a link")
        for context in (fresh, used):
            context.set_state(trajectory[0].state())
            assert context.get_state(positions=True).jumps["binding"]["links"].tolist() == wanted
        for _ in range(20):
            fresh.step(100)
            used.step(100)
            one, two = (c.get_state(positions=True, velocities=True) for c in (fresh, used))
            for name in COLUMNS:
                np.testing.assert_array_equal(one.column(name), two.column(name))
            assert one.jumps["binding"]["links"].tolist() == two.jumps["binding"]["links"].tolist()
        assert one.jumps["binding"]["links"].tolist() != wanted


def test_states_of_single_precision_can_be_set(tmp_path):
    simulation = everything()
    recorder = recorded(simulation, tmp_path / "run.h5", velocities=True, precision="single", faces=True)
    simulation.step(2)
    simulation.close()
    with mp.Trajectory(tmp_path / "run.h5") as trajectory:
        context = mp.Context(*trajectory.system(), threads=1)
        state = trajectory[0].state()
        assert state.positions.dtype == np.float64
        rods = trajectory.handles["filaments"].beads
        np.testing.assert_allclose(state.positions[rods], recorder.states[0].positions[rods], rtol=1e-6)
        np.testing.assert_allclose(state.intriangle.barycentric[:9].sum(axis=1), 1.0, atol=1e-15)
        context.set_state(state)
        context.step(2)


def test_a_state_without_velocities_is_said_to_have_none(tmp_path):
    simulation = everything()
    recorded(simulation, tmp_path / "run.h5")
    simulation.step(2)
    simulation.close()
    with mp.Trajectory(tmp_path / "run.h5") as trajectory:
        state = trajectory[0].state()
        assert not state.has("velocities")
        refuses(mp.ParameterError, "velocities", mp.Context(*trajectory.system(), threads=1).set_state, state)
        refuses(mp.ParameterError, "no column 'angular_momenta'", state.column, "angular_momenta")


def test_more_links_than_a_site_can_have_are_refused(run):
    _, simulation, recorder = run
    parts = dict(recorder.states[0]._parts)
    context = mp.Context(*mp.deserialize(mp.serialize(simulation)), threads=1)
    for wrong, why in (([[0, 0], [0, 1], [0, 2]], "more than"), ([[0, 9]], r"b has sites 0 to")):
        parts |= {"discrete": {}, "jumps": {"binding": {"links": np.array(wrong, np.int32)}}}
        refuses(mp.TopologyError, why, context.set_state, mp.State(2, 0.004, parts))


# Looking -------------------------------------------------------------------------------------------------------------


def test_slices_are_lazy_sequences(run):
    path, _, recorder = run
    steps = [state.step for state in recorder.states]
    with mp.Trajectory(path) as trajectory:
        ends = [(None,), (1, None), (None, None, -1), (2, 0, -1), (-1, None), (5, 9), (1, 1)]
        for index in (slice(*end) for end in ends):
            frames = trajectory[index]
            assert len(frames) == len(steps[index])
            assert [frame.step for frame in frames] == steps[index]
            assert frames.steps.tolist() == steps[index]
            assert frames.times.tolist() == [state.time for state in recorder.states][index]
            x = frames.read("positions", beads="balls")
            assert x.shape[:1] == (len(frames),)
            for rows, frame in zip(x, frames, strict=True):
                assert (rows == frame.positions[trajectory.handles["balls"].beads]).all()
            assert frames.read("potential_energy").tolist() == [frame.potential_energy for frame in frames]
        frames = trajectory[1:]
        assert frames[0] == trajectory[1]
        assert frames[-1] == trajectory[-1]
        assert frames[-1] in frames
        assert trajectory[0] not in frames
        assert frames[::-1][0].step == frames[-1].step
        assert [f.step for f in reversed(frames)] == steps[1:][::-1]
        assert [f.step for f in trajectory[:1] + frames] == steps
        assert [f.step for f in [trajectory[0]] + frames] == steps
        assert len({trajectory[0], trajectory[0], trajectory[1]}) == 2
        with pytest.raises(IndexError, match=r"frame 2 of Frames\(2 of"):
            frames[2]
        with pytest.raises(mp.ParameterError, match="there is no handle 'ball': did you mean 'balls'"):
            trajectory.read("positions", beads="ball")


def test_where_filaments_begin_and_end(run):
    path, simulation, _ = run
    with mp.Trajectory(path) as trajectory:
        for name in ("filaments", "twistable", "rod"):
            mine, handle = trajectory.handles[name], simulation.topology[name]
            assert mine.starts.tolist() == handle.starts.tolist()
            assert mine.closed is bool(handle.closed)
            chains = trajectory[0].chains(mine)
            assert np.concatenate(chains).tolist() == handle.beads.tolist()
            assert np.cumsum([0, *map(len, chains)]).tolist() == handle.starts.tolist()
        room = trajectory.handles["springs"]
        assert room.starts is None
        assert [c.tolist() for c in trajectory[0].chains(room)] == [simulation.topology["springs"].beads.tolist()]
        assert trajectory.handles["balls"].starts is None
        assert trajectory.handles["balls"].radius.tolist() == [1.0, 1.5, 0.8]
        assert trajectory.handles["bodies"].semi_axes.shape == (3, 3)
        with pytest.raises(mp.ParameterError, match="the balls of 'balls' are not filaments or rods"):
            trajectory[0].chains(trajectory.handles["balls"])


def test_ends_of_links_of_forces(run, tmp_path):
    """At beads, at arms of bodies, at anchors and at means: beside the frames or, from the first change on, in them."""
    path, _, recorder = run
    with mp.Trajectory(path) as trajectory:
        assert trajectory[0].link_forces == ["ropes", "bridges"]
        for frame, (ropes, _), state in zip(trajectory, recorder.links, recorder.states, strict=True):
            ends = np.stack([ropes.a.positions(state), ropes.b.positions(state)], axis=1)
            np.testing.assert_array_equal(frame.link_ends("ropes"), ends)
            assert frame.links("ropes").tolist() == np.column_stack([ropes.a.main_beads, ropes.b.main_beads]).tolist()
            # What a jump has bound is the jump's.
            assert frame.links("bridges").shape == (0, 2)
            assert frame.link_ends("bridges").shape == (0, 2, 3)
    simulation = everything()
    ropes = simulation.system["ropes"]
    recorder = recorded(simulation, tmp_path / "run.h5")
    simulation.step(2)
    beads = simulation.topology["beads"].beads
    mean = mp.Sites.weighted([[int(beads[0]), int(beads[1])]], [[0.25, 0.75]])
    new = ropes.add(mean + mp.Sites.anchors([[1.0, 2.0, 3.0]]), beads[2:4])
    simulation.step(2)
    ropes.remove(0)
    simulation.step(2)
    ropes.remove(new)
    simulation.step(2)
    simulation.close()
    with mp.Trajectory(tmp_path / "run.h5") as trajectory:
        assert len(trajectory.paths) == 2
        for frame, (given, _), state in zip(trajectory, recorder.links, recorder.states, strict=True):
            ends = np.stack([given.a.positions(state), given.b.positions(state)], axis=1)
            np.testing.assert_array_equal(frame.link_ends("ropes"), ends)
            pairs = list(zip(given.a.main_beads.tolist(), given.b.main_beads.tolist(), strict=True))
            assert list(map(tuple, frame.links("ropes").tolist())) == pairs
            joined = pairs_of([pair for pair in pairs if -1 not in pair])
            assert joined <= pairs_of(frame.bonds)
        assert [len(frame.links("ropes")) for frame in trajectory] == [2, 4, 3, 1]
        assert (trajectory[1].links("ropes")[3, 0], trajectory[1].links("ropes")[2, 0]) == (-1, beads[1])


# Damage --------------------------------------------------------------------------------------------------------------


def damaged(run, tmp_path, change):
    path = tmp_path / "run.h5"
    shutil.copy(run[0], path)
    with h5py.File(path, "r+") as file:
        change(file)
    return path


def without(place):
    def change(file):
        del file[place]

    return change


def replaced(place, value):
    def change(file):
        del file[place]
        file[place] = value

    return change


def endless(place):
    """Said to be of a terabyte, which nobody has written."""

    def change(file):
        name = file[place].attrs["name"]
        del file[place]
        file.create_dataset(place, shape=(2**37,), dtype="f8", chunks=(2**20,), compression="gzip").attrs["name"] = name

    return change


@pytest.mark.parametrize(("change", "look", "why"), [
    (without("parameters"), lambda t: t.document, "holds no document"),
    (without("parameters/document"), lambda t: t.document, "holds no document"),
    (without("parameters/arrays"), lambda t: t.document, "document is damaged"),
    (without("parameters/arrays/0"), lambda t: t.system(), "must be the name of an array in the file"),
    (replaced("parameters/document", "{}"), lambda t: t.document, "is not a medyanpy document"),
    (replaced("parameters/document", "{["), lambda t: t.system(), "run.h5: document"),
    (replaced("parameters/arrays/0", "text"), lambda t: t.document, "document"),
    (endless("parameters/arrays/0"), lambda t: t.system(), "is larger than what the file has of it"),
    (replaced("connectivity/bonds", np.zeros((3, 2))), lambda t: t[0].bonds, None),
    (without("medyanpy/connectivity/bonds/value"), lambda t: t[0].bonds, "bonds"),
    (without("medyanpy/energies/0/value"), lambda t: t[0].energies, "energy of HarmonicBonds"),
])  # fmt: skip
def test_missing_parts_are_named_and_the_rest_is_read(run, tmp_path, change, look, why):
    path = damaged(run, tmp_path, change)
    with mp.Trajectory(path) as trajectory:
        if why is not None:
            refuses(mp.ParameterError, why, look, trajectory)
        assert len(trajectory) == len(run[2].states)
        for frame, state in zip(trajectory, run[2].states, strict=True):
            np.testing.assert_array_equal(frame.positions, state.positions)


# In other programs ---------------------------------------------------------------------------------------------------


IN_MDANALYSIS = """
import sys, warnings
import numpy as np
import MDAnalysis
path, velocities, out, n_beads = sys.argv[1:]
if velocities == "yes":
    # MDAnalysis knows no nm/s, and is told to leave units as they are; it can then not count the particles by itself.
    universe = MDAnalysis.Universe(path, n_atoms=int(n_beads), convert_units=False)
else:
    universe = MDAnalysis.Universe(path)
frames = universe.trajectory
with warnings.catch_warnings():
    # Without a time between frames it says so, and takes 1 ps.
    warnings.simplefilter("error")
    dt = frames.dt
np.savez(
    out, dt=dt, n=len(frames), times=[ts.time for ts in frames], x=[ts.positions.copy() for ts in frames],
    **({"v": [ts.velocities.copy() for ts in frames]} if velocities == "yes" else {}),
    energy=[ts.data["energies/ropes"] for ts in frames], total=[ts.data["potential_energy"] for ts in frames],
)
"""


@pytest.mark.slow
@pytest.mark.parametrize("velocities", [False, True])
def test_mdanalysis_opens_it_in_one_line(tmp_path, velocities):
    pytest.importorskip("MDAnalysis")
    simulation = everything()
    recorder = recorded(simulation, tmp_path / "run.h5md", 3, velocities=velocities)
    simulation.step(12)
    simulation.close()
    n = simulation.topology.n_beads
    arguments = [tmp_path / "run.h5md", "yes" if velocities else "no", tmp_path / "out.npz", n]
    command = [sys.executable, "-c", IN_MDANALYSIS, *map(str, arguments)]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    with np.load(tmp_path / "out.npz") as out:
        assert out["n"] == 4
        # nm and s as they are where there are velocities; else angstrom and ps.
        length, time = (1.0, 1.0) if velocities else (10.0, 1e12)
        np.testing.assert_allclose(out["x"], length * np.array([s.positions for s in recorder.states]), rtol=1e-6)
        np.testing.assert_allclose(out["times"], [time * s.time for s in recorder.states], rtol=1e-9)
        np.testing.assert_allclose(out["dt"], np.diff(out["times"]), rtol=1e-9)
        if velocities:
            np.testing.assert_allclose(out["v"], np.array([s.velocities for s in recorder.states]), rtol=1e-6)
        assert out["energy"].tolist() == [s.energies["ropes"] for s in recorder.states]
        assert out["total"].tolist() == [s.potential_energy for s in recorder.states]


# Pictures ------------------------------------------------------------------------------------------------------------


def test_frames_are_drawn_as_simulations_pixel_by_pixel(tmp_path):
    """Every kind of bead, links that jumps have bound, edges that were flipped, beads that have come and gone."""
    simulation = everything()
    recorded(simulation, tmp_path / "run.h5", 1)
    simulation.step(1)
    pictures = [picture(simulation, tmp_path)]
    vesicle = simulation.topology["vesicle"]
    simulation.context.flip_edges(vesicle, vesicle.mesh.edges[10:11])
    with simulation.topology.edit():
        simulation.topology["points"].remove(simulation.topology["points"].beads[2])
        simulation.topology["beads"].add([[5.0, 5.0, 25.0]])
        simulation.topology["balls"].add([[0.0, -25.0, 8.0]], radius=2.5)
        simulation.topology["springs"].add(np.column_stack([np.zeros((3, 2)), 20 + np.arange(3.0)]))
    simulation.step(1)
    pictures.append(picture(simulation, tmp_path))
    simulation.close()
    assert (pictures[0] != pictures[1]).any()
    with mp.Trajectory(tmp_path / "run.h5") as trajectory:
        drawn = [picture(frame, tmp_path) for frame in trajectory]
    for one, two in zip(pictures, drawn, strict=True):
        assert (one == two).all()


def picture(what, folder):
    from matplotlib import image

    mp.visualize.draw(what, folder / "picture.png", size=(400, 300), overwrite=True, view=(20.0, 30.0))
    return image.imread(folder / "picture.png")
