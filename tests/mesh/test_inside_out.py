"""Parts that are turned inside out: what depends on the side refuses or warns, and names the part and the remedy."""

import numpy as np
import pytest
from builders import refuses, system_with

import medyanpy as mp
from medyanpy.errors import MeshQualityWarning, ParameterError

FORCES = mp.forces
SPHERE = mp.TriangleMesh.icosphere(50.0, 2)


def joined(*meshes):
    starts = np.cumsum([0, *(len(m.vertices) for m in meshes)])
    return mp.TriangleMesh(
        np.concatenate([m.vertices for m in meshes]),
        np.concatenate([m.faces + start for m, start in zip(meshes, starts, strict=False)]),
    )


FAR = SPHERE.translated([200.0, 0.0, 0.0])
INNER = SPHERE.scaled(0.4)
INWARD = {
    "alone": (SPHERE.flipped(), [0]),
    "the second of two": (joined(SPHERE, FAR.flipped()), [1]),
    "outside of an inner one": (joined(SPHERE.flipped(), INNER), [0]),
}
OUTWARD = [SPHERE, joined(SPHERE, FAR), joined(SPHERE, INNER.flipped()), joined(SPHERE, INNER)]

REFUSE = {
    "MembraneVolume": lambda m: FORCES.MembraneVolume(m, 0.1, 5e5),
    "MembraneVolume, of the start": lambda m: FORCES.MembraneVolume(m, 0.1),
    "MembranePressure": lambda m: FORCES.MembranePressure(m, 1e-3),
    "MembraneOsmoticPressure": lambda m: FORCES.MembraneOsmoticPressure(m, 1000.0, 1e-4, temperature=300.0),
    "MembraneAreaDifference": lambda m: FORCES.MembraneAreaDifference(m, 80.0, 2.0),
    "MembranePoolPressure": lambda m: FORCES.MembranePoolPressure(m, mp.Pool(inside=m, counts={"A": 1}), kT=1.0),
}


def membrane(mesh):
    return mp.Topology().add_membrane(mesh, vertex_mass=1e-9)


def points(mesh):
    handle = membrane(mesh)
    return handle, handle.topology.add_intriangle_points(handle, 40, mass=1e-9, seed=1)


@pytest.mark.parametrize("name", INWARD)
def test_the_parts_are_found_and_turned(name):
    mesh, parts = INWARD[name]
    assert mesh.inside_out == parts
    assert mesh.flipped(parts).inside_out == []
    np.testing.assert_array_equal(mesh.flipped(parts).flipped(parts).faces, mesh.faces)
    assert mesh.repaired()[0].inside_out == []


def test_nothing_is_found_where_normals_are_meant():
    for mesh in OUTWARD:
        assert mesh.inside_out == []
    # Open ones have no side that is out; a tube through the sides of a box has none either.
    assert mp.TriangleMesh.cylinder(5.0, 20.0).flipped().inside_out == []
    assert mp.TriangleMesh.cylinder(5.0, 20.0, periodic=True).flipped().inside_out == []
    refuses(ParameterError, "parts = 2 but must be an integer from 0 to 1", OUTWARD[1].flipped, [2])


def test_a_part_in_a_box_that_its_sides_have_cut():
    box = (120.0, 120.0, 120.0)
    x = np.mod(SPHERE.vertices, 120.0)
    assert mp.TriangleMesh(x, SPHERE.faces, box).inside_out == []
    assert mp.TriangleMesh(x, SPHERE.flipped().faces, box).inside_out == [0]


@pytest.mark.parametrize("force", REFUSE)
@pytest.mark.parametrize("name", INWARD)
def test_forces_of_volumes_refuse_it(name, force):
    mesh, parts = INWARD[name]
    with pytest.raises(ParameterError, match=rf"normals look inward; mesh\.flipped\(\[{parts[0]}\]\)") as caught:
        REFUSE[force](membrane(mesh))
    assert len(mesh.components) == 1 or f"part {parts[0]} of 2 (320 faces" in str(caught.value)


def test_two_nested_parts_with_normals_outward_are_counted_twice_and_that_is_said():
    for make in (REFUSE["MembraneVolume"], REFUSE["MembraneOsmoticPressure"]):
        with pytest.warns(MeshQualityWarning, match=r"part 1 of 2 .* counts twice; mesh\.flipped\(\[1\]\)"):
            make(membrane(OUTWARD[3]))
        make(membrane(OUTWARD[2]))
    REFUSE["MembranePressure"](membrane(OUTWARD[3]))
    REFUSE["MembraneVolume"](membrane(OUTWARD[1]))


def test_pressure_blows_up_what_is_turned():
    mesh = INWARD["the second of two"][0].flipped([1])
    topology = mp.Topology()
    handle = topology.add_membrane(mesh, vertex_mass=1e-9)
    system = system_with(topology, FORCES.MembranePressure(handle, 1e-3))
    f = mp.Context(system, mp.VerletIntegrator(1e-9), threads=1).get_state(forces=True).forces
    for k, centre in enumerate(([0.0, 0, 0], [200.0, 0, 0])):
        own = np.unique(mesh.faces[mesh.components[k]])
        assert (f[own] * (mesh.vertices[own] - centre)).sum() == pytest.approx(3e-3 * SPHERE.volume, rel=1e-9)


@pytest.mark.parametrize("name", INWARD)
def test_curvatures_and_directions_warn_of_it(name):
    mesh, parts = INWARD[name]
    match = rf"part {parts[0]} of \d .* is turned inside out: its normals look inward.*mesh\.flipped"
    handle, on = points(mesh)
    with pytest.warns(MeshQualityWarning, match=match):
        bending = FORCES.MembraneBending(handle, 80.0, spontaneous_curvature=0.01)
    bending.set(spontaneous_curvature=0.02)  # Said once.
    with pytest.warns(MeshQualityWarning, match=match):
        FORCES.PointCurvature(on, bending_modulus=80.0, curvature=0.001, area=10.0)
    with pytest.warns(MeshQualityWarning, match=match):
        FORCES.DirectedPointCurvature(on, 80.0, curvature=0.001, area=10.0, kT=4.14)
    # Without a curvature either side will do; and of vertices elsewhere nothing is said.
    FORCES.MembraneBending(handle, 80.0)
    FORCES.PointCurvature(on, bending_modulus=80.0, curvature=0.0, area=10.0)
    elsewhere = np.full(len(handle), 0.01)
    elsewhere[mesh.faces[mesh.components[parts[0]]]] = 0.0
    FORCES.MembraneBending(handle, 80.0, spontaneous_curvature=elsewhere)


def test_directions_along_normals_warn_of_it():
    topology = mp.Topology()
    handle = topology.add_membrane(SPHERE.flipped(), vertex_mass=1.0)
    foot = topology.add_intriangle_points(handle, triangles=[0], barycentric=[[0.3, 0.3, 0.4]], mass=1.0)
    body = topology.add_rigid_bodies([[80.0, 20, 0]], [[1.0, 0, 0, 0]], mass=1.0, inertia=(1, 1, 1))
    with pytest.warns(MeshQualityWarning, match="normals point into it"):
        FORCES.NormalLinks(body.sites([[0.0, 0, 0]]), body.sites([[0.0, 0, 1]]), foot, stiffness=100.0)


def test_numbers_of_volumes_warn_or_refuse(tmp_path):
    mesh, _ = INWARD["the second of two"]
    with pytest.warns(MeshQualityWarning, match=r"the volume counts part 1 of 2 .* as negative"):
        assert mesh.volume == pytest.approx(0.0, abs=1e-6)
    # Of one part alone the sign says it.
    assert SPHERE.flipped().volume == -SPHERE.volume
    for analysis in (mp.analysis.reduced_volume, lambda m: mp.analysis.vesicle_spectrum(m, l_max=3)):
        with pytest.raises(ParameterError, match=r"part 1 of 2 .* turned inside out.*mesh\.flipped\(\[1\]\)"):
            analysis(joined(SPHERE, FAR.flipped()))
    assert mp.analysis.reduced_volume(SPHERE.flipped()) == mp.analysis.reduced_volume(SPHERE)


def test_a_table_of_volumes_warns_of_it(tmp_path):
    topology = mp.Topology()
    topology.add_membrane(SPHERE.flipped(), vertex_mass=1.0)
    simulation = mp.Simulation(mp.System(topology), mp.VerletIntegrator(1e-3), threads=1)
    reporter = mp.reporters.StateDataReporter(tmp_path / "a.csv", 1, step=True, volume=True)
    simulation.reporters.append(reporter)
    with pytest.warns(MeshQualityWarning, match="StateDataReporter: part 0 of 1 .* counts as negative"):
        simulation.step(1)
    reporter.close()
