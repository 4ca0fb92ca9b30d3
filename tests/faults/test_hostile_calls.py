"""Calls with something else than is meant: errors of the package that name the argument, the value and the bound."""

import sys

import numpy as np
import pytest
from builders import refuses, system_with

import medyanpy as mp

F = mp.forces
HUGE = 10**400
TOO_MANY_DIGITS = 10**5000
RAGGED = [[1.0], [2.0, 3.0]]
ARRAY = np.arange(6.0).reshape(2, 3)


class Odd:
    """What others may hand over: raises whatever is asked of it."""

    def __float__(self):
        raise RuntimeError("odd float")

    def __int__(self):
        raise RuntimeError("odd int")

    def __array__(self, *args, **kwargs):
        raise RuntimeError("odd array")

    def __repr__(self):
        raise RuntimeError("odd repr")


class Scene:
    def __init__(self):
        self.topology = t = mp.Topology()
        self.mesh = mp.TriangleMesh.icosphere(5.0, 1)
        self.beads = t.add_beads(np.arange(18.0).reshape(6, 3), 1.0, 0.3)
        self.membrane = t.add_membrane(self.mesh, 1.0, 0.5)
        self.actin = t.add_filament(np.arange(12.0).reshape(4, 3), 1.0, 0.5)
        self.rods = t.add_rod(*mp.rods.uniform(5, 0.5), 0.5, 1.0, [1.0, 1, 1.5], (1.0, 2.0), rotational_friction=1.0)
        self.system = mp.System(t)
        self.links = self.system.add_force(F.Links(self.beads.beads[:2], self.beads.beads[2:4], 1.0, 1.0, name="links"))
        self.context = mp.Context(self.system, mp.BAGOGABIntegrator(1e-3, kT=1.0), threads=1)


@pytest.fixture(scope="module")
def scene():
    return Scene()


SWITCHES = {
    "symmetric": lambda s, v: mp.SplittingIntegrator("BAB", 0.1, symmetric=v),
    "positions": lambda s, v: s.context.get_state(positions=v),
    "energy": lambda s, v: s.context.get_state(False, False, False, v),
    "positive": lambda s, v: s.context.hessian(["links"], v),
    "one_sided": lambda s, v: F.Links([0], [1], 1.0, one_sided=v),
    "per_triangle": lambda s, v: F.MembraneArea(s.membrane, 1.0, 300.0, v),
    "replay": lambda s, v: F.PythonForce(lambda x: (0.0, 0 * x), replay=v),
    "orientations": lambda s, v: F.PythonForce(lambda x: (0.0, 0 * x), orientations=v),
    "follows": lambda s, v: F.RodLoad(s.rods, "end", [0.0, 0, 1], follows=v),
    "constrained": lambda s, v: mp.Topology().add_filament(ARRAY, 1.0, 0.5, v),
    "positive_definite": lambda s, v: mp.kicks.ZhangSkeelSimplified(0.25, v),
    "overwrite": lambda s, v: s.mesh.save("mesh.ply", v),
    "repair": lambda s, v: mp.TriangleMesh.from_file("mesh.ply", repair=v),
    "stresslets": lambda s, v: mp.rigid.bead_model_friction(ARRAY, 0.1, 1.0, stresslets=v),
    "closed": lambda s, v: mp.rods.frames(ARRAY, v),
    "inside": lambda s, v: mp.visualize.draw(s.context, "picture.png", inside=v),
}


@pytest.mark.parametrize("argument", SWITCHES)
def test_switches_are_true_or_false(scene, argument):
    for value in (ARRAY, np.zeros((0, 3)), "no", [], None, 2, 0.0, np.nan, scene.beads, Odd()):
        with pytest.raises(mp.ParameterError, match=f"{argument} must be True or False, not ") as caught:
            SWITCHES[argument](scene, value)
        assert len(str(caught.value)) < 300


def test_equivalents_of_true_and_false_are_accepted(scene):
    for yes, no in ((True, False), (np.True_, np.False_), (1, 0)):
        assert F.Links([0], [1], 1.0, one_sided=yes).one_sided is True
        assert F.Links([0], [1], 1.0, one_sided=no).one_sided is False
    assert scene.context.get_state(True, velocities=np.False_).has("positions")


WORDS = {
    "word": lambda s, v: mp.SplittingIntegrator(v, 0.1),
    "solver": lambda s, v: mp.kicks.PushForwardNewmark(0.25, v),
    "discretization": lambda s, v: F.MembraneBending(s.membrane, 1.0, 0.0, v),
    "form": lambda s, v: F.EllipsoidRepulsion(s.rods, s.rods, 1.0, [1.0, 0.5, 0.4], form=v),
    "end": lambda s, v: F.RodLoad(s.rods, v, [0.0, 0, 1]),
    "energy": lambda s, v: F.ExternalField(s.beads, v),
}


@pytest.mark.parametrize("argument", WORDS)
def test_words_are_text(scene, argument):
    for value in (ARRAY, np.array("A"), ["A"], 1, None, b"A", np.nan, Odd()):
        with pytest.raises(mp.ParameterError, match=f"{argument} must be text(, not | or a SymPy expression, not )"):
            WORDS[argument](scene, value)


@pytest.mark.parametrize("value", [np.nan, [1], ARRAY, 3, b"x", Odd()])
def test_names_are_text(scene, value):
    t = mp.Topology()
    for make in (
        lambda: F.Links([0], [1], 1.0, name=value), lambda: F.ExternalField([0], "x", name=value),
        lambda: F.RodLoad(scene.rods, "end", [0.0, 0, 1], name=value), lambda: t.add_beads(ARRAY, 1.0, name=value),
        lambda: t.add_membrane(scene.mesh, 1.0, name=value), lambda: t.add_filament(ARRAY, 1.0, 0.5, name=value),
    ):  # fmt: skip
        refuses(mp.ParameterError, "name must be text, not ", make)
    assert t.n_beads == 0


class BytesPath:
    def __fspath__(self):
        return b"bytes.ply"


class OddPath(Odd):
    def __fspath__(self):
        raise RuntimeError("odd path")


def report(**options):
    return mp.reporters.StateDataReporter(sys.stdout, 1, progress=True, **{"total_steps": 10, **options})


def has_a_path(scene):
    """All that take one."""
    beads = mp.System(mp.Topology())
    beads.topology.add_beads(ARRAY, 1.0)
    simulation = mp.Simulation(beads, mp.VerletIntegrator(0.1), threads=1)
    return {
        "from_file": mp.TriangleMesh.from_file,
        "save": scene.mesh.save,
        "Trajectory": mp.Trajectory,
        "deserialize": mp.deserialize,
        "serialize": lambda path: mp.serialize(scene.mesh, path),
        "save_checkpoint": simulation.save_checkpoint,
        "load_checkpoint": simulation.load_checkpoint,
        "resume": mp.Simulation.resume,
        "StateDataReporter": lambda path: mp.reporters.StateDataReporter(path, 1, step=True),
        "TrajectoryReporter": lambda path: mp.reporters.TrajectoryReporter(path, 1),
        "CheckpointReporter": lambda path: mp.reporters.CheckpointReporter(path, 1),
        "draw": lambda path: mp.visualize.draw(scene.mesh, path, size=(100, 100)),
    }


@pytest.mark.parametrize("value", [3, None, ARRAY, 1.5, b"a", [], True, Odd(), BytesPath(), OddPath(), "\ud800.ply"])
def test_paths_are_paths(scene, value):
    for name, call in has_a_path(scene).items():
        if value is None and name in ("serialize", "draw"):
            continue  # Nothing is written.
        with pytest.raises(mp.ParameterError, match=r"must be a path, not |give a document or a path") as caught:
            call(value)
        assert name in str(caught.value)
        assert len(str(caught.value)) < 300


@pytest.mark.parametrize("value", ["", "/", "a\0b.ply", "x" * 5000 + ".png", "file.ply/x.ply", "loop.ply"])
def test_paths_name_a_file_that_can_be(scene, value, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file.ply").write_text("")
    (tmp_path / "loop.ply").symlink_to("loop.ply")
    for call in has_a_path(scene).values():
        with pytest.raises(mp.MedyanError):
            call(value)
    assert {file.name for file in tmp_path.iterdir()} == {"file.ply", "loop.ply"}


@pytest.mark.parametrize(("call", "message"), [
    (lambda s: mp.VerletIntegrator(HUGE), r"timestep = 10+\.\.\. but must be below 1.8e308"),
    (lambda s: mp.VerletIntegrator(TOO_MANY_DIGITS), "timestep = a int but must be below 1.8e308"),
    (lambda s: mp.VerletIntegrator(Odd()), "timestep = a Odd but must be a number"),
    (lambda s: F.HarmonicBonds([[0, 1]], HUGE, 1.0), "stiffness must be a number or 1 numbers: int too large"),
    (lambda s: F.HarmonicBonds([[0, 1]], Odd(), 1.0), "stiffness must be a number or 1 numbers: odd array"),
    (lambda s: mp.TriangleMesh.icosphere(HUGE, 1), r"radius = 10+\.\.\. but must be finite"),
    (lambda s: mp.TriangleMesh.icosphere(TOO_MANY_DIGITS, 1), "radius = a int but must be finite"),
    (lambda s: mp.TriangleMesh.icosphere(1.0, TOO_MANY_DIGITS), "subdivisions = a int but must be an integer from"),
    (lambda s: s.mesh.scaled(HUGE), "must be finite"),
    (lambda s: s.mesh.translated(RAGGED), r"shift must be an array of shape \(3,\)"),
    (lambda s: s.mesh.translated(Odd()), r"shift must be an array of shape \(3,\): odd array"),
    (lambda s: s.mesh.positions(RAGGED, ARRAY), r"triangles must be \(n,\) integers"),
    (lambda s: s.mesh.positions([], [[1.0, 2.0]]), "barycentric has shape"),
    (lambda s: s.context.step(2**63), r"step: n = 9223372036854775808 but must be a whole number >= 0 and"),
    (lambda s: s.context.step(TOO_MANY_DIGITS), "step: n = a int but must be a whole number"),
    (lambda s: s.context.step(Odd()), "step: n = a Odd but must be a whole number"),
    (lambda s: s.context.set_state(ARRAY), r"set_state: state must be a State, as get_state.* gives, not array"),
    (lambda s: s.context.set_state(None), "set_state: state must be a State, .*, not None"),
    (lambda s: s.context.set_velocities_to_temperature(HUGE), "temperature = 10+.* must be below 1.8e308"),
    (lambda s: s.context.hessian(ARRAY), r"forces\[0\] = array.* but must be text"),
    (lambda s: s.context.hessian(3), "forces = 3 but must be a list"),
    (lambda s: s.context.hessian("nothing"), "there is no force 'nothing'; there are: links"),
    (lambda s: s.context.third_derivative(np.zeros((s.topology.n_beads, 3)), s.beads), "forces.* but must be"),
    (lambda s: s.topology.handle_of("x"), "handle_of: bead = 'x' but must be a whole number >= 0"),
    (lambda s: s.topology.handle_of(ARRAY), "handle_of: bead = array"),
    (lambda s: s.topology.handle_of(-1), "handle_of: bead = -1 but must be"),
    (lambda s: s.topology.handle_of(10**6), "bead 1000000 does not exist"),
    (lambda s: mp.Sites.from_arrays([0, 1], [0], [1.0], [1.0, 2.0]), r"anchor_positions must have shape \(0, 3\)"),
    (lambda s: mp.Sites.from_arrays([0, 1], [0], [1.0], RAGGED), r"anchor_positions must have shape \(0, 3\)"),
    (lambda s: mp.Sites.from_arrays([0, 1], [0], [1.0], [], handles=3), "handles = 3 but must be a list"),
    (lambda s: mp.Sites.concatenate(3), "parts = 3 but must be a list"),
    (lambda s: mp.Sites.concatenate([Odd()]), "a Odd is not Sites"),
    (lambda s: s.actin.sites(RAGGED, 0), r"filament must have shape \(n,\)"),
    (lambda s: s.actin.sites(0, RAGGED), r"link must have shape \(n,\)"),
    (lambda s: s.actin.sites(0, 0, RAGGED), r"fraction must have shape \(n,\)"),
    (lambda s: s.actin.sites_along(0, Odd()), "distance must"),
    (lambda s: s.links.move(RAGGED, a=[1]), r"ids must have shape \(n,\)"),
    (lambda s: s.links.remove(RAGGED), r"ids must have shape \(n,\)"),
    (lambda s: s.links.remove("a"), "ids must be an array"),
    (lambda s: s.topology.add_filaments(3, 1.0, 0.5), "nodes = 3 but must be a list"),
    (lambda s: mp.VerletIntegrator(0.1, order=ARRAY), "order = array.* but must be a whole number >= 2 and <= 8"),
    (lambda s: mp.VerletIntegrator(0.1, order=3), "order = 3 but must be 2, 4, 6 or 8"),
    (lambda s: mp.kicks.ZhangSkeelStiff(0.25, 3), "stiff = 3 but must be a list"),
    (lambda s: mp.kicks.ZhangSkeelStiff(0.25, [Odd()]), r"stiff\[0\] = a Odd but must be text"),
    (lambda s: F.SoftCollisions([s.membrane, s.actin], 5.0, [0.1, 0.1], self_avoiding=RAGGED), "self_avoiding"),
    (lambda s: mp.presets.tip3p().arguments([[0.0, 0, 0]], seed=-1), "seed = -1 but must be a whole number >= 0"),
    (lambda s: mp.presets.tip3p().arguments([[0.0, 0, 0]], seed=ARRAY), "seed = array.* but must be a whole"),
    (lambda s: mp.presets.actin().longest_timestep(HUGE), "node_mass = 10+.* but must be below 1.8e308"),
    (lambda s: report(total_steps=ARRAY), "total_steps = array.* but must be a whole number >= 1"),
    (lambda s: report(total_steps=np.nan), "total_steps = nan but must be a whole number >= 1"),
    (lambda s: report(total_steps=RAGGED), "total_steps = .* but must be a whole number >= 1"),
    (lambda s: report(separator=ARRAY), "separator must be text, not array"),
    (lambda s: mp.VerletIntegrator(1j), "timestep = 1j but must be a number"),
    (lambda s: F.HarmonicBonds([[0, 1]], 1j, 1.0), "stiffness must be a number or 1 numbers: complex128, not real"),
    (lambda s: mp.Topology().add_beads(ARRAY + 0j, 1.0), r"of shape \(n, 3\): complex128, not real"),
    (lambda s: mp.Topology().add_beads(ARRAY.astype("M8[D]"), 1.0), r"datetime64\[D\], not real numbers"),
    (lambda s: mp.TriangleMesh(s.mesh.vertices + 0j, s.mesh.faces), "vertices must be an array of numbers"),
    (lambda s: mp.TriangleMesh(s.mesh.vertices.astype(str), s.mesh.faces), "vertices must be an array of numbers"),
    (lambda s: mp.rigid.principal_axes(ARRAY, 1e308), "masses times squared positions must be below 1.8e308"),
    (lambda s: mp.surfaces.Sphere(1.0).sample(2**64, 1), "sample: n = 1844.* but must .* <= 2147483647"),
    (lambda s: mp.surfaces.Polynomial("x*x-1").sample(2**31, 1, box=[[-2] * 3, [2] * 3]), "n = 2147483648"),
    (lambda s: mp.surfaces.Sphere(1.0).sample(4, 1, resolution=2**64), "sample: resolution = .* <= 1048576"),
    (lambda s: mp.surfaces.Sphere(1.0).mesh(2**20), "mesh: resolution = 1048576 but must .* <= 1024"),
])  # fmt: skip
def test_other_things_that_are_not_meant(scene, call, message):
    n = scene.topology.n_beads, len(scene.links), scene.context.step_count
    with pytest.raises(mp.MedyanError, match=message) as caught:
        call(scene)
    assert len(str(caught.value)) < 500
    assert (scene.topology.n_beads, len(scene.links), scene.context.step_count) == n


@pytest.mark.parametrize("length", [1e-320, 1e-200, 27.0, 1e200, 1e308])
def test_the_longest_timestep_of_any_link_is_a_number(length):
    """1e-320 cubed is 0, 1e200 cubed is no number of Python's."""
    actin = mp.presets.actin()
    found = actin.longest_timestep(1e-12, length)
    with np.errstate(all="ignore"):
        expected = 2.0 / np.sqrt(16.0 * actin.bending_modulus / (np.float64(length) ** 3 * 1e-12))
    assert found == pytest.approx(expected, rel=1e-12)


ON_SITES = {
    "links": lambda s, sites: F.Links(sites, [s.rods.kind.first_bead], 1.0),
    "trap": lambda s, sites: F.HarmonicTrap(sites, 1.0, [0.0, 0, 0]),
    "spheres": lambda s, sites: F.SoftSphere(sites, sites, 1.0, 1.0),
}


def with_force(scene, force):
    return mp.Context(system_with(scene.topology, force), mp.VerletIntegrator(1e-3))


@pytest.mark.parametrize("force", ON_SITES)
def test_arms_need_beads_that_have_orientations(scene, force):
    """Found by mutated documents: kernels took orientations from beside their array."""
    for handle in (scene.beads, scene.membrane, scene.actin):
        bead = handle.kind.first_bead
        sites = mp.Sites.from_arrays([0, 1], [bead], [1.0], [], arms=[[0.0, 0, 1]])
        with pytest.raises(mp.TopologyError, match=rf"\[0\] has an arm on bead {bead}, which has no orientation"):
            with_force(scene, ON_SITES[force](scene, sites))
    arm = mp.Sites.from_arrays([0, 1], [scene.rods.kind.first_bead], [1.0], [], arms=[[0.0, 0, 1]])
    with_force(scene, F.Links(arm, [0], 1.0)).step(1)
