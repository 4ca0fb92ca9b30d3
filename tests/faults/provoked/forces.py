"""Forces that fail on purpose."""

import numpy as np
from builders import system_with
from faults.provoked.beads import folded, open_up
from faults.provoked.common import FAULTS, SMALLER, Fault, Scene, fault, make

import medyanpy as mp
from medyanpy import forces


@fault("mesh_pairs.pyx", "_no_area", "DEGENERATE_TRIANGLE", "MeshPairs", "lost its area.*keeps its triangles in shape",
       in_triangle=True)  # fmt: skip
def a_triangle_between_two_points_collapses():
    """All exact: the middle one of three loses its height in eight steps of 1/8; the points are in the others."""
    topology = mp.Topology()
    corners = np.array([[-2.0, 2, 0], [-1.0, 0, 0], [0, 1.0, 0], [1.0, 0, 0], [2.0, 2, 0]])
    membrane = topology.add_membrane(mp.TriangleMesh(corners, [[0, 1, 2], [1, 3, 2], [2, 3, 4]]), vertex_mass=1.0)
    points = topology.add_intriangle_points(membrane, triangles=[2, 0], barycentric=[[0.25, 0.25, 0.5]] * 2, mass=1.0,
                                            name="proteins")  # fmt: skip
    system = system_with(topology, forces.SoftSphere(points, points, 0.0, 9.0, along_surface=True, name="pairs"))
    context = make(system, timestep=1.0)
    v = np.zeros((7, 3))
    v[2, 1] = -0.125
    context.set_velocities(v)
    return Scene(context, lambda: context.set_velocities(np.zeros((7, 3))), 5, "proteins", "pairs")


@fault("membrane_fields.pyx", "_forces", "DEGENERATE_TRIANGLE", "VertexField", "lost its area", in_triangle=True)
def a_triangle_loses_its_area_under_a_point_in_a_field():
    """From outside: in a step it is the ride on the triangle that fails first."""
    topology = mp.Topology()
    corners = np.array([[0.0, 0, 0], [1.0, 0, 0], [0, 1.0, 0]])
    membrane = topology.add_membrane(mp.TriangleMesh(corners, [[0, 1, 2]]), vertex_mass=1.0)
    points = topology.add_intriangle_points(membrane, triangles=[0], barycentric=[[0.25, 0.25, 0.5]], mass=1.0,
                                            name="proteins")  # fmt: skip
    system = system_with(topology, forces.MembraneField(points, 2.0, name="field"))
    context = make(system, "BAGAB", timestep=1.0)
    x = np.zeros((4, 3))
    x[:3] = corners
    context.set_positions(x * [[1.0, 0.0, 1.0]])
    return Scene(context, lambda: context.set_positions(x), 3, "proteins", "field")


@fault("membrane_fields.pyx", "call", "PYTHON_EXCEPTION", "PythonField", "called from the step raised OverflowError: ",
       cause=OverflowError)  # fmt: skip
def a_field_of_python_raises():
    topology = mp.Topology()
    membrane = topology.add_membrane(mp.TriangleMesh.icosphere(3.0, 1), vertex_mass=1.0)
    points = topology.add_intriangle_points(membrane, 10, mass=1.0, seed=1)
    start, bound = points.triangles[0], [False]

    def field(triangles, weights):
        if triangles[0] != start and not bound[0]:
            raise OverflowError("out of the table")
        return -weights[:, 0], np.broadcast_to([-1.0, 0.0, 0.0], (10, 3))

    system = system_with(topology, forces.PythonMembraneField(points, field, name="table"))
    context = make(system, "BAGAB", 0.05)
    v = np.zeros((52, 3))
    v[42:] = np.random.default_rng(1).normal(0.0, 1.0, (10, 3))
    context.set_velocities(v)
    return Scene(context, lambda: bound.__setitem__(0, True), None, None, "table")


def proteins_that_see_each_other(mesh, n, diameter):
    topology = mp.Topology()
    membrane = topology.add_membrane(mesh, vertex_mass=1.0, fixed=True)
    points = topology.add_intriangle_points(membrane, n, mass=1000.0, friction=0.1, seed=1, name="proteins")
    system = mp.System(topology)
    pairs = system.add_force(forces.SoftSphere(points, points, 1e-3, diameter, along_surface=True, name="pairs",
                                               skin=0.1))  # fmt: skip
    context = make(system, "BAGOGAB")
    context.set_velocities_to_temperature(kT=1.0, seed=2)
    context.step(5)
    return context, pairs, set(points.beads.tolist())


@fault("mesh_pairs.pyx", "_search", "NOT_FINITE", "MeshPairs", SMALLER, in_triangle=True, unstable=True)
def points_push_each_other_along_a_membrane_with_what_is_no_number():
    context, pairs, beads = proteins_that_see_each_other(mp.TriangleMesh.icosphere(10.0, 2), 60, 6.0)
    pairs.set(stiffness=1.7e308)
    return Scene(context, lambda: pairs.set(stiffness=1e-3), beads, "proteins", "pairs")


@fault("mesh_pairs.pyx", "_new_node", "TOO_FAR", "MeshPairs", "along the surface does not end.*Try a shorter range")
def a_point_looks_for_another_much_too_far_away():
    mesh = mp.TriangleMesh.icosphere(10.0, 5)
    rough = mesh.vertices * np.random.default_rng(3).normal(1.0, 0.01, (len(mesh.vertices), 1))
    context, pairs, beads = proteins_that_see_each_other(mesh.with_vertices(rough), 3, 0.1)
    pairs.set(diameter=60.0)
    return Scene(context, lambda: pairs.set(diameter=0.1), beads, "proteins", "pairs")


@fault("neighbors.pyx", "_bounds", "NOT_FINITE", "Pairs", SMALLER)
def a_bead_flies_to_infinity():
    topology = mp.Topology()
    x = np.random.default_rng(2).uniform(0.0, 10.0, (1200, 3))
    topology.add_beads(x[:100], mass=1.0)
    beads = topology.add_beads(x, mass=1.0, name="gas")
    system = system_with(topology, forces.SoftSphere(beads, beads, 1e-3, 1.0, name="pairs"))
    context = make(system, "BAB", 10.0)
    context.step(4)
    v = np.zeros((1300, 3))
    v[731, 1] = 1e308
    context.set_velocities(v)
    return Scene(context, lambda: context.set_velocities(np.zeros((1300, 3))), 731, "gas", "pairs")


@fault("fields.pyx", "_field", "NOT_FINITE", "ExpressionField", SMALLER)
def a_bead_crosses_a_pole():
    """Beyond it the energy is not a number, but the force is one."""
    topology = mp.Topology()
    topology.add_beads([[1.0, 0, 0]], mass=1.0)
    beads = topology.add_beads(np.column_stack([np.linspace(1.0, 2.0, 5000), np.zeros((5000, 2))]), 1.0, name="walkers")
    system = system_with(topology, forces.ExternalField(beads.beads[::-1], "-log(x)", name="pole"))
    context = make(system, "BAB", 1e-3)
    v = np.zeros((5001, 3))
    v[4321, 0] = -30.0
    context.set_velocities(v)
    return Scene(context, lambda: context.set_velocities(np.zeros((5001, 3))), 4321, "walkers", "pole")


@fault("shapes.pxi", "_surround", "NOT_FINITE", "Collisions", SMALLER)
def a_node_flies_to_infinity():
    topology = mp.Topology()
    topology.add_beads([[9.0, 9.0, 9.0]], mass=1.0)
    nodes = np.random.default_rng(3).uniform(0.0, 10.0, (300, 1, 3)) + [[0.0, 0, 0], [1.0, 0, 0]]
    rods = topology.add_filaments(nodes, 1.0, constrained=False, name="rods")
    system = system_with(topology, forces.SoftCollisions(rods, 0.01, 0.2, name="contacts"))
    context = make(system, "BAB", 10.0)
    context.step(4)
    v = np.zeros((601, 3))
    v[432, 1] = 1e308
    context.set_velocities(v)
    return Scene(context, lambda: context.set_velocities(np.zeros((601, 3))), 432, "rods", "contacts")


def collapsing(make_force):
    def build():
        topology = mp.Topology()
        mesh = mp.TriangleMesh.icosphere(10.0, 3)
        topology.add_beads([[0.0, 0, 0]], mass=1.0)
        sphere = topology.add_membrane(mesh, vertex_mass=1.0, name="cell")
        system = system_with(topology, make_force(sphere))
        context = make(system, "BAB")
        context.step(3)
        good = context.get_state(positions=True).positions
        x = good.copy()
        a, b = sphere.beads[mesh.faces[400][:2]]
        x[a] = x[b]
        context.set_positions(x)
        involved = {int(sphere.beads[v]) for f in mesh.faces.tolist() if {a - 1, b - 1} <= set(f) for v in f}
        return Scene(context, lambda: context.set_positions(good), involved, "cell", "bending")

    return build


LOST = "lost its area.*MembraneEdgeSprings.*smaller timestep"
for form, kernel, function, make_force in (
    ("vertex form", "vertex_form.pxd", "rows_of_faces",
     lambda sphere: forces.MembraneBending(sphere, 5.0, 0.0, "vertex", name="bending")),
    ("dihedral form", "membrane_dihedral.pyx", "_rows",
     lambda sphere: forces.MembraneBending(sphere, 5.0, 0.0, "dihedral", name="bending")),
    ("folds", "membrane_folds.pyx", "_find",
     lambda sphere: forces.MembraneFoldRepulsion(sphere, 5.0, 0.1, name="bending")),
    ("difference in area, vertex form", "membrane_curvatures.pyx", "_rows_of_vertices",
     lambda sphere: forces.MembraneAreaDifference(sphere, 5.0, 1.0, 600.0, name="bending")),
    ("difference in area, dihedral form", "membrane_curvatures.pyx", "_values_of_faces",
     lambda sphere: forces.MembraneAreaDifference(sphere, 5.0, 1.0, 600.0, None, "dihedral", name="bending")),
):  # fmt: skip
    FAULTS.append(Fault(kernel, function, "DEGENERATE_TRIANGLE", "", LOST, collapsing(make_force), True,
                        name=f"bending, {form}"))  # fmt: skip


@fault("membrane_edges.pyx", "_pull", "OUT_OF_TETHER", "", "its edge to bead [0-9]+ is longer or shorter than",
       in_triangle=True)  # fmt: skip
def a_vertex_jumps_over_the_wall_of_its_tether():
    topology = mp.Topology()
    topology.add_beads([[0.0, 0, 0]], mass=1.0)
    mesh = mp.TriangleMesh.icosphere(10.0, 2)
    vesicle = topology.add_membrane(mesh, vertex_mass=1.0, name="vesicle")
    system = system_with(topology, forces.MembraneTether(vesicle, 1e-3, name="tether"))
    context = make(system, "BAB", 0.01)
    context.step(4)
    v = np.zeros((len(mesh.vertices) + 1, 3))
    v[1 + 77] = 1e3 * mesh.vertices[77] / 10.0
    context.set_velocities(v)
    around = {1 + int(i) for f in mesh.faces.tolist() if 77 in f for i in f}
    return Scene(context, lambda: context.set_velocities(np.zeros_like(v)), around, "vesicle", "tether")


@fault("membrane_folds.pyx", "_find", "NOT_FINITE", "FoldRepulsion", SMALLER, in_triangle=True)
def a_triangle_comes_to_lie_on_the_next():
    """It never has no area: one step takes it from one side of the edge to the other."""
    topology = mp.Topology()
    topology.add_beads([[9.0, 9, 9]], mass=1.0)
    corners = np.array([[0.0, 0, 0], [2, 0, 0], [1, 3, 0], [1, -1, 0]])
    sheet = topology.add_membrane(mp.TriangleMesh(corners, [[0, 1, 2], [1, 0, 3]]), vertex_mass=1.0, name="sheet")
    system = system_with(topology, forces.MembraneFoldRepulsion(sheet, 5.0, name="folds"))
    context = make(system, "BAB", 1.0)
    context.step(4)
    v = np.zeros((5, 3))
    v[4] = [0.0, 0.75, 0.0]
    context.set_velocities(v)
    return Scene(context, lambda: context.set_velocities(np.zeros_like(v)), {1, 2, 3, 4}, "sheet", "folds")


@fault("membrane_totals.pyx", "run", "NOT_FINITE", "OsmoticPressure", SMALLER)
def a_vesicle_is_turned_inside_out():
    """Each vertex flies through the centre, in four steps."""
    topology = mp.Topology()
    topology.add_beads([[0.0, 0, 0]], mass=1.0)
    mesh = mp.TriangleMesh.icosphere(10.0, 2)
    vesicle = topology.add_membrane(mesh, vertex_mass=1.0, name="vesicle")
    system = mp.System(topology)
    system.add_force(forces.MembraneOsmoticPressure(vesicle, 4e-6 * mesh.volume, 4e-6, kT=1.0, name="osmosis"))
    context = make(system, "BAB", 1.0)
    context.step(4)
    v = np.zeros((len(mesh.vertices) + 1, 3))
    v[1:] = -mesh.vertices / 3.5
    context.set_velocities(v)
    return Scene(context, lambda: context.set_velocities(np.zeros_like(v)), vesicle.beads[0], "vesicle", "osmosis")


@fault("pools.pyx", "measure", "NOT_FINITE", "Network", SMALLER)
def a_vesicle_is_turned_inside_out_between_kicks():
    """In the first half of a step: molecules that react look first."""
    topology = mp.Topology()
    topology.add_beads([[0.0, 0, 0]], mass=1.0)
    mesh = mp.TriangleMesh.icosphere(10.0, 2)
    vesicle = topology.add_membrane(mesh, vertex_mass=1.0, name="vesicle")
    system = mp.System(topology)
    pool = system.add_pool(mp.Pool(inside=vesicle, counts={"A": 1}))
    system.add_force(forces.MembranePoolPressure(vesicle, pool, kT=1e-6, name="osmosis"))
    system.add_jump(mp.jumps.Reactions(pool, "A -> 0; rate = 0.0", name="reactions"))
    context = make(system, "BAJAB", 1.0)
    context.step(4)
    v = np.zeros((len(mesh.vertices) + 1, 3))
    v[1:] = -mesh.vertices / 3.25
    context.set_velocities(v)
    return Scene(context, lambda: context.set_velocities(np.zeros_like(v)), vesicle.beads[0], "vesicle", "osmosis")


@fault("membrane_fields.pyx", "_written", "NOT_FINITE", "WrittenField", SMALLER)
def a_point_walks_to_where_a_field_on_its_membrane_has_no_energy():
    """u = -k ln(x - 1/8): beyond the pole the slope is a number, but the energy is none."""
    topology = mp.Topology()
    topology.add_beads([[1.0, 0, 0]], mass=1.0)
    corners = np.array([[0.0, 0, 0], [1.0, 0, 0], [0, 1.0, 0]])
    membrane = topology.add_membrane(mp.TriangleMesh(corners, [[0, 1, 2]]), vertex_mass=1.0, fixed=True)
    points = topology.add_intriangle_points(membrane, triangles=[0] * 300, barycentric=[[0.25, 0.5, 0.25]] * 300,
                                            mass=1.0, name="proteins")  # fmt: skip
    system = mp.System(topology)
    system.add_force(forces.CustomMembraneField(points, "-k*log(a - 1/8)", a=corners[:, 0], k=1e-6, name="pole"))
    context = make(system, "BAGAB", 1.0 / 64.0)
    v = np.zeros((304, 3))
    v[4 + 217, 0] = -1.0
    context.set_velocities(v)
    return Scene(context, lambda: context.set_velocities(np.zeros_like(v)), 4 + 217, "proteins", "pole")


@fault("pairs.pyx", "_run", "NOT_FINITE", "WrittenPairs", SMALLER)
def two_beads_come_closer_than_their_formula_allows():
    topology = mp.Topology()
    topology.add_beads([[-9.0, 0, 0]], mass=1.0)
    x = np.zeros((2000, 3))
    x[:, 0] = 3.0 * np.arange(2000.0)
    beads = topology.add_beads(x, mass=1.0, name="gas")
    system = system_with(topology, forces.CustomPair(beads, beads, "-k*log(r - 1)", k=1e-6, cutoff=4.0, name="pole"))
    context = make(system, "BAB", 1e-2)
    v = np.zeros((2001, 3))
    v[1235, 0] = 10.0
    context.set_velocities(v)
    return Scene(context, lambda: context.set_velocities(np.zeros_like(v)), {1235, 1236}, "gas", "pole")


@fault("fixman.pxi", "_filaments", "NOT_FINITE", "Fixman", SMALLER)
def a_filament_that_cannot_move_has_no_determinant():
    _, hairpin, system = folded()
    system.add_force(forces.FixmanPotential(hairpin, kT=1.0))
    context = make(system, "BAB")
    return Scene(context, open_up(context), 1, "hairpin", "FixmanPotential")


@fault("python_force.pyx", "call", "PYTHON_EXCEPTION", "PythonTerm", "called from the step raised OverflowError: ",
       cause=OverflowError)  # fmt: skip
def a_python_function_raises():
    topology = mp.Topology()
    topology.add_beads(np.zeros((10, 3)), mass=1.0)
    bound = [1.0]

    def field(x):
        if x[0, 0] > bound[0]:
            raise OverflowError("out of the table")
        return -float(x.sum()), np.ones_like(x)

    system = system_with(topology, forces.PythonForce(field, name="table"))
    return Scene(make(system, "BAB", 0.1), lambda: bound.__setitem__(0, np.inf), None, None, "table")


@fault("along_surface.pyx", "_gather", "NO_GEODESIC", "PairsAlongSurface",
       r"no shortest way along the surface to bead 40 was found, 1\.6 nm away", in_triangle=True)  # fmt: skip
def two_beads_on_two_sheets_that_are_bent():
    """Of two spheres of one function; the cutoff is longer than the radius, so that normals do not tell them apart."""
    spheres = mp.surfaces.Polynomial("((x - 1.05)**2 + y**2 + z**2 - 1)*((x + 1.05)**2 + y**2 + z**2 - 1)",
                                     bounding_box=[[-2.1, -1.1, -1.1], [2.1, 1.1, 1.1]])  # fmt: skip
    turn = np.linspace(-1.5, 1.5, 40)
    x = np.column_stack([1.05 + np.cos(turn), np.zeros(40), np.sin(turn)])
    topology = mp.Topology()
    walkers = topology.add_surface_points(spheres, np.append(x, [[-0.8, 0.0, 0.968245836551854]], axis=0), mass=1.0,
                                          name="walkers")  # fmt: skip
    system = mp.System(topology)
    pull = np.zeros((41, 3))
    pull[39] = [-1.0, 0.0, 0.0]
    system.add_force(forces.UniformField(walkers, pull))
    own = np.column_stack(np.triu_indices(40, 1))
    soft = system.add_force(forces.SoftSphere(walkers, walkers, 1.0, 1.6, exclusions=own, along_surface=True,
                                              name="along"))  # fmt: skip
    return Scene(make(system, "BAB"), lambda: soft.set(diameter=0.1), 39, "walkers", "along")


@fault("along_surface.pyx", "_normals", "TOO_CURVED", "PairsAlongSurface",
       r"radius of curvature of its surface here is 0\.6.*bounding_box", in_triangle=True)  # fmt: skip
def a_bead_comes_to_a_bend():
    topology = mp.Topology()
    valley = mp.surfaces.Polynomial("z - x**4/2")
    x = np.column_stack([np.zeros(600), np.linspace(0.0, 60.0, 600), np.zeros(600)])
    walkers = topology.add_surface_points(valley, x, mass=1.0, name="walkers")
    system = mp.System(topology)
    soft = system.add_force(forces.SoftSphere(walkers, walkers, 1e-6, 2.0, along_surface=True, name="along"))
    context = make(system, "BAB")
    v = np.zeros((600, 3))
    v[420, 0] = 1.0
    context.set_velocities(v)
    return Scene(context, lambda: soft.set(diameter=0.1), 420, "walkers", "along")


@fault("terms.pyx", "_terms", "NOT_FINITE", "Terms", SMALLER)
def a_penalty_has_a_pole():
    topology = mp.Topology()
    topology.add_beads([[1.0, 0, 0]], mass=1.0)
    beads = topology.add_beads(np.column_stack([np.linspace(1.1, 2.0, 5000), np.zeros((5000, 2))]), 1.0, name="walkers")
    system = system_with(topology, forces.ConstraintPenalty("sqrt(log(x))", beads, 1e-3, name="pole"))
    context = make(system, "BAB", 1e-3)
    v = np.zeros((5001, 3))
    v[4321, 0] = -1e3
    context.set_velocities(v)
    return Scene(context, lambda: context.set_velocities(np.zeros((5001, 3))), 4321, "walkers", "pole")


@fault("bonds.pyx", "_find", "NOT_FINITE", "WrittenBonds", SMALLER)
def a_bond_breaks_its_formula():
    topology = mp.Topology()
    topology.add_beads([[1.0, 0, 0]], mass=1.0)
    x = np.zeros((5000, 3))
    x[:, 0] = np.arange(5000.0)
    beads = topology.add_beads(x, 1.0, name="chain")
    system = mp.System(topology)
    pairs = np.column_stack([beads.beads[:-1], beads.beads[1:]])
    system.add_force(forces.CustomBonds(pairs, "-k*log(1 - (r/9)^2)", k=1e-3, name="pole"))
    context = make(system, "BAB", 1e-3)
    v = np.zeros((5001, 3))
    v[5000, 0] = 1e4
    context.set_velocities(v)
    return Scene(context, lambda: context.set_velocities(np.zeros((5001, 3))), 4999, "chain", "pole")
