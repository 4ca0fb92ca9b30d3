"""Slips that a Context, an estimate or a message says: units, errors that are no numbers, meshes, advice, names."""

import inspect
import re
import warnings

import numpy as np
import pytest
from builders import refuses

import medyanpy as mp

KT = 4.14


def said(make, kind):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        make()
    return [str(w.message) for w in caught if issubclass(w.category, kind)]


def one_bead(kT, mass, timestep, friction=None):
    topology = mp.Topology()
    friction = mass / (10.0 * timestep) if friction is None else friction
    topology.add_beads([[0.0, 0, 0], [1.0, 0, 0]], mass=mass, friction=friction)
    return mp.Context(mp.System(topology), mp.SplittingIntegrator("BAOAB", timestep, kT=kT))


@pytest.mark.parametrize("kT", [300.0, 310.0, 77.0, 4.14e-21])
def test_thermal_energy_given_as_temperature_beside_small_masses_warns(kT):
    (text,) = said(lambda: one_bead(kT, 4e-12, 1e-7), mp.UnitsWarning)
    assert f"kT = {kT:g} pN nm" in text
    assert ("temperature=" in text) == (kT > 1.0)


@pytest.mark.parametrize(
    ("kT", "mass", "timestep"), [(1.0, 1.0, 0.01), (300.0, 1.0, 0.01), (1.0, 1.0, 1e-5), (4.14, 4e-12, 1e-7),
                                 (1.0, 4e-12, 1e-7), (300.0, 1e-9, 0.01), (1e-6, 1.0, 0.1)],
)  # fmt: skip
def test_work_without_units_and_real_temperatures_are_not(kT, mass, timestep):
    assert said(lambda: one_bead(kT, mass, timestep), mp.UnitsWarning) == []


def test_an_average_whose_error_is_not_a_number_warns():
    with pytest.warns(mp.StatisticsWarning, match="average: the error of 49.5 is not a number.*too short"):
        assert np.isnan(mp.analysis.average(np.arange(100.0)).error)
    assert said(lambda: mp.analysis.average([1.0, 3.0, 2.0, 2.0]), mp.StatisticsWarning) == []


def test_adhesion_on_a_coarse_mesh_warns():
    """Of edges beyond √(aρ): at spheres, capsules, balls and beads; not at planes."""
    topology = mp.Topology()
    cell = topology.add_membrane(mp.TriangleMesh.icosphere(50.0, 2), vertex_mass=4e-12)
    balls = topology.add_balls([[0.0, 0, 80]], radius=20.0, mass=1.0)
    edge = float(cell.mesh.edge_lengths.mean())
    for to, a in (
        (mp.surfaces.Sphere(20.0), 20.0),
        (mp.boundaries.Capsule([0.0, 0, 80], [0, 0, 90], 15.0), 15.0),
        (balls, 20.0),
    ):
        enough = edge**2 / a
        with pytest.warns(mp.MeshQualityWarning, match=f"√.*= .* nm at a radius a = {a:g} nm"):
            force = mp.forces.MembraneAdhesion(cell, to, 0.1, 0.9 * enough)
        assert said(lambda to=to, r=1.1 * enough: mp.forces.MembraneAdhesion(cell, to, 0.1, r), Warning) == []
        assert said(lambda force=force: force.set(strength=0.2), Warning) == []
    plane = mp.boundaries.Plane(point=(0.0, 0.0, -52.0))
    assert said(lambda: mp.forces.MembraneAdhesion(cell, plane, 0.1, 0.1), Warning) == []


SPRINGS, AREA = "MembraneEdgeSprings", "MembraneArea(per_triangle=True)"


@pytest.mark.parametrize(("there", "not_there"), [((), (SPRINGS, AREA)), ((AREA,), (SPRINGS,)), ((SPRINGS,), (AREA,)),
                                                  ((SPRINGS, AREA), ())])  # fmt: skip
def test_advice_names_no_force_that_is_there(there, not_there):
    """A vesicle that runs away by one of them, or by another force."""
    topology = mp.Topology()
    cell = topology.add_membrane(mp.TriangleMesh.icosphere(5.0, 1), vertex_mass=1.0, vertex_friction=0.1)
    system = mp.System(topology)
    if AREA in there:
        system.add_force(mp.forces.MembraneArea(cell, 2000.0, per_triangle=True))
    if SPRINGS in there:
        system.add_force(mp.forces.MembraneEdgeSprings(cell, 2000.0))
    if not there:
        system.add_force(mp.forces.HarmonicTrap(cell, 2000.0, [0.0, 0, 0]))
    with pytest.warns(mp.TimestepWarning):
        context = mp.Context(system, mp.BAGOGABIntegrator(0.3, kT=1.0, seed=1))
    with pytest.raises(mp.SimulationError, match=r"run away|lost its area") as caught:
        context.step(1000)
    advice = str(caught.value).partition(": ")[2]
    for name in there:
        assert f"keeps triangles in shape ({name}" not in advice
        assert f", {name})" not in advice
    for name in not_there:
        assert name in advice


# Names ----------------------------------------------------------------------------------------------------------------


def handles_whose_beads_differ():
    """A handle of every kind that can grow, of which no two beads have the same numbers, and what one more is given."""
    topology = mp.Topology()
    two, x = np.array([1.0, 2.0]), np.array([[0.0, 0, 0], [9.0, 0, 0]])
    turn = np.tile([1.0, 0, 0, 0], (2, 1))
    chain = np.array([[0.0, 0, 0], [1.0, 0, 0], [2.0, 0, 0]])
    three, links = np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0])
    cell = topology.add_membrane(mp.TriangleMesh.icosphere(5.0, 1), vertex_mass=1.0)
    along = {"node_friction_along": three}
    yield topology.add_beads(x, mass=two, friction=two), {"positions": x[:1]}
    yield topology.add_balls(x, radius=two, mass=two, friction=two), {"positions": x[:1]}
    yield topology.add_intriangle_points(cell, 2, mass=two, friction=two, seed=1), {"n": 1, "seed": 2}
    yield topology.add_filament(chain, three, three, **along), {"nodes": chain + 5.0}
    yield topology.add_filament(chain, 1.0, three, **along), {"nodes": chain + 5.0}
    yield (
        topology.add_filament(chain, 1.0, 1.0, directors="parallel", director_mass=links, director_friction=links),
        {"nodes": chain + 5.0},
    )
    bodies = topology.add_rigid_bodies(x, turn, two, [[1.0, 1, 1], [2.0, 2, 2]])
    yield bodies, {"positions": x[:1], "orientations": turn[:1]}
    yield (
        topology.add_surface_points(mp.surfaces.Sphere(5.0), [[5.0, 0, 0], [0, 5.0, 0]], mass=two, friction=two),
        {"positions": [[0.0, 0, 5]]},
    )  # fmt: skip


@pytest.mark.parametrize("k", range(8))
def test_messages_of_add_name_arguments_of_add(k):
    """Followed one after another, they lead to beads that are added."""
    handle, given = list(handles_whose_beads_differ())[k]
    names = inspect.signature(handle.add).parameters
    asked = []
    for _ in range(8):
        try:
            handle.add(**given)
            break
        except mp.ParameterError as error:
            (name,) = re.findall(r"give (\w+)=", str(error))
            asked.append(name)
            given[name] = [1.0, 1.0, 1.0] if name == "inertia" else 1.0
    else:
        raise AssertionError(asked)
    assert asked
    assert "own" in names or set(asked) <= set(names)


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize("directors", [None, "parallel"])
@pytest.mark.parametrize("material", ["actin", "microtubule"])
def test_filaments_are_added_with_the_arguments_of_their_material(material, directors, closed):
    material = getattr(mp.presets, material)()
    nodes = 30.0 * np.array([[1.0, 0, 0], [0.0, 1, 0], [-1.0, 0, 0], [0.0, -1.0, 0.0]])
    if directors and material.twist_modulus is None:
        directors = None
    arguments = material.arguments([nodes], relaxation_time=1e-6, closed=closed, directors=directors)
    handle = mp.Topology().add_filaments(**arguments)
    again = material.arguments([nodes + 100.0], relaxation_time=1e-6, closed=closed, directors=directors)
    assert handle.add(**again).tolist() == [1]
    np.testing.assert_array_equal(handle.mass[:4], handle.mass[4:])
    refuses(mp.ParameterError, r"closed = .*, but those of", handle.add, **{**again, "closed": not closed})


def test_water_and_bodies_are_added_with_the_arguments_of_their_presets():
    water = mp.presets.tip3p()
    topology = mp.Topology()
    molecules = topology.add_filaments(**water.arguments([[0.0, 0, 0]], seed=1))
    molecules.add(**water.arguments([[1.0, 0, 0]], seed=2))
    assert len(molecules) == 6
    kinase = mp.presets.adenylate_kinase()
    bodies = topology.add_rigid_bodies(**kinase.arguments([[0, 0, 0]]))
    n = len(bodies)
    bodies.add(**kinase.arguments([[20.0, 0, 0]]))
    assert len(bodies) == 2 * n
