"""What a simulation says about its numbers: warnings when a Context is made, and the worksheet."""

import re
import warnings

import numpy as np
import pytest
from builders import quiet, refuses, system_with

import medyanpy as mp


def of(topology, *forces, integrator):
    return mp.Simulation(system_with(topology, *forces), integrator, threads=1)


# Thermostats ------------------------------------------------------------------------------------------------------

MESH = mp.TriangleMesh.icosphere(500.0, 1)
KINDS = {
    "beads": lambda t, friction: t.add_beads([[0.0, 0, 0]], 1.0, friction),
    "balls": lambda t, friction: t.add_balls([[0.0, 0, 0]], 2.0, 1.0, friction),
    "membrane": lambda t, friction: t.add_membrane(MESH, 1.0, friction),
    "points": lambda t, friction: t.add_intriangle_points(t.add_membrane(MESH, 1.0, fixed=True), 3, mass=1.0,
                                                          friction=friction, seed=1),
    "filament": lambda t, friction: t.add_filament([[0.0, 0, 0], [1.0, 0, 0], [2.0, 0, 0]], 1.0, friction),
    "surface": lambda t, friction: t.add_surface_points(mp.surfaces.Sphere(1.0), [[1.0, 0, 0]], 1.0, friction),
    "bodies": lambda t, friction: t.add_rigid_bodies([[0.0, 0, 0]], [[1.0, 0, 0, 0]], 1.0, [1.0, 1, 1], friction),
    "rod": lambda t, friction: t.add_rod(*mp.rods.uniform(4, 1.0), 1.0, 1.0, [1.0, 1.0, 2.0], friction),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_a_thermostat_without_friction(kind):
    """One warning for the handle, which it names; none with friction, without O, and of what is fixed."""

    def make(friction, integrator):
        topology = mp.Topology()
        handle = KINDS[kind](topology, friction)
        return handle, lambda: mp.Context(mp.System(topology), integrator, threads=1)

    handle, context = make(0.0, mp.BAGOGABIntegrator(1e-3, kT=1.0))
    with pytest.warns(mp.ThermostatWarning, match=r"has no friction, .* mass/\(10 timesteps\) = ") as caught:
        context()
    assert len(caught) == 1
    assert repr(handle) in str(caught[0].message)
    # At the line of whoever made it.
    assert caught[0].filename == __file__
    quiet(make(0.5, mp.BAGOGABIntegrator(1e-3, kT=1.0))[1])
    quiet(make(0.0, mp.VerletIntegrator(1e-3))[1])


def test_each_handle_has_its_warning_and_fixed_ones_none():
    topology = mp.Topology()
    membrane = topology.add_membrane(MESH, 1.0, name="moving")
    topology.add_intriangle_points(membrane, 3, mass=1.0, friction=1.0, seed=1, name="warm")
    topology.add_membrane(MESH, 1.0, fixed=True, name="still")
    topology.add_beads([[0.0, 0, 0]], 1.0, name="cold")
    topology.add_beads([[0.0, 0, 0], [1.0, 0, 0]], 1.0, [0.0, 1.0], name="half")
    with pytest.warns(mp.ThermostatWarning) as caught:
        mp.Context(mp.System(topology), mp.BAGOGABIntegrator(1e-3, kT=1.0))
    named = [str(w.message).split("'")[1] for w in caught]
    assert named == ["moving", "cold"]


def test_friction_across_or_along_and_on_nodes_or_directors_is_friction():
    x = [[0.0, 0, 0], [1.0, 0, 0], [2.0, 0, 0]]
    for given in (
        {"node_friction": 0.0, "node_friction_along": 1.0},
        {"node_friction": 1.0, "directors": "parallel", "director_mass": 1.0},
        {"directors": "parallel", "director_mass": 1.0, "director_friction": 1.0},
    ):
        topology = mp.Topology()
        topology.add_filament(x, 1.0, **given)
        quiet(lambda topology=topology: mp.Context(mp.System(topology), mp.BAGOGABIntegrator(1e-3, kT=1.0)))
    topology = mp.Topology()
    topology.add_filament(x, 1.0, directors="parallel", director_mass=1.0)
    with pytest.warns(mp.ThermostatWarning) as caught:
        mp.Context(mp.System(topology), mp.BAGOGABIntegrator(1e-3, kT=1.0))
    assert len(caught) == 1


@pytest.mark.parametrize("given", [{"temperature": 300.0}, {"kT": 1.5}])
def test_a_word_without_o_keeps_no_temperature(given):
    name = next(iter(given))
    message = rf"'B A B' has no O .* {name} = {given[name]:g}: add O, as in 'BAOAB', or leave {name}= out"
    refuses(mp.ParameterError, message, mp.SplittingIntegrator, "BAB", 0.1, **given)
    assert mp.SplittingIntegrator("BAB", 0.1).kT is None


@pytest.mark.parametrize("text", ["300", "300.0", b"300", np.str_("300")])
def test_numbers_are_not_text(text):
    with pytest.raises(mp.ParameterError, match=r"temperature = .*300.* but must be a number"):
        mp.BAGOGABIntegrator(0.1, temperature=text)
    refuses(mp.ParameterError, "mass must be", mp.Topology().add_beads, [[0.0, 0, 0]], mass=text)
    refuses(mp.TopologyError, "positions must be", mp.Topology().add_beads, [[text, text, text]], mass=1.0)
    for number in (np.float32(300.0), np.int64(300), np.array(300.0)):
        assert mp.BAGOGABIntegrator(0.1, temperature=number).temperature == pytest.approx(300.0)


# Timesteps --------------------------------------------------------------------------------------------------------


def chain(n=8, stiffness=4.0, mass=1.0, friction=0.0):
    topology = mp.Topology()
    beads = topology.add_beads([[2.0 * k, 0, 0] for k in range(n)], mass, friction)
    return topology, mp.forces.HarmonicBonds([[k, k + 1] for k in range(n - 1)], stiffness, 2.0), beads


def growth(share, steps=2000):
    """By what factor the energy of a chain grows at a share of its limit."""
    topology, bonds, _ = chain()
    dt = share * bonds.longest_timestep(topology)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".* is beyond the stability limit of this force", mp.TimestepWarning)
        simulation = of(topology, bonds, integrator=mp.VerletIntegrator(dt))
    simulation.context.set_velocities_to_temperature(kT=1e-8, seed=2)
    start = simulation.context.get_state(energy=True).total_energy
    try:
        simulation.step(steps)
    except mp.SimulationError:
        return np.inf
    return simulation.context.get_state(energy=True).total_energy / start


def test_the_limit_parts_what_is_stable_from_what_is_lost():
    """Of a chain of 8 the exact limit is 1.02 times the bound; 1.3 is 30 % beyond."""
    assert growth(0.8) < 10.0
    assert growth(1.3) > 1e6


def test_a_warning_and_its_remedy():
    topology, bonds, _ = chain()
    limit = bonds.longest_timestep(topology)
    assert limit == pytest.approx(0.5)
    quiet(lambda: of(topology, bonds, integrator=mp.VerletIntegrator(0.499)))
    topology, bonds, _ = chain()
    with pytest.warns(mp.TimestepWarning, match=r"0.501 s is beyond .* 0.5 s with .* Take about 0.12 s, heavier") as w:
        of(topology, bonds, integrator=mp.VerletIntegrator(0.501))
    assert len(w) == 1


def test_a_force_that_becomes_stiffer_warns_at_the_next_step():
    topology, bonds, _ = chain()
    simulation = quiet(lambda: of(topology, bonds, integrator=mp.VerletIntegrator(0.4)))
    bonds.set(stiffness=40.0)
    with pytest.warns(mp.TimestepWarning, match="HarmonicBonds: the timestep 0.4 s"):
        simulation.step(1)
    quiet(lambda: simulation.step(1))


def test_linearly_implicit_kicks_bear_what_they_solve_for():
    topology, bonds, beads = chain()
    for kick in (mp.kicks.ZhangSkeel(), mp.kicks.ZhangSkeelStiff(stiff=[bonds])):
        topology, bonds, beads = chain()
        quiet(lambda kick=kick, topology=topology, bonds=bonds: of(
            topology, bonds, integrator=mp.VerletIntegrator(5.0, kick=kick)
        ))  # fmt: skip
    topology, bonds, beads = chain()
    trap = mp.forces.HarmonicTrap(beads, 4.0, [0.0, 0, 0])
    with pytest.warns(mp.TimestepWarning, match="HarmonicTrap") as caught:
        of(topology, bonds, trap, integrator=mp.VerletIntegrator(5.0, kick=mp.kicks.ZhangSkeelStiff(stiff=[bonds])))
    assert len(caught) == 1


def test_without_velocities_friction_bounds_the_timestep():
    """x <- (1 - h k/γ) x is stable up to h = 2 γ/k."""
    for share, expected in ((0.99, False), (1.01, True)):
        topology = mp.Topology()
        bead = topology.add_beads([[1.0, 0, 0]], mass=1.0, friction=3.0)
        trap = mp.forces.HarmonicTrap(bead, 6.0, [0.0, 0, 0])
        integrator = mp.BrownianIntegrator(share * 1.0, kT=1e-12)
        if not expected:
            simulation = quiet(lambda t=topology, f=trap, i=integrator: of(t, f, integrator=i))
            assert simulation.check().forces[0].limit == pytest.approx(1.0)
            continue
        with pytest.warns(mp.TimestepWarning, match="2 over its highest rate"):
            of(topology, trap, integrator=integrator)


def test_forces_that_know_no_limit_say_none_or_infinity():
    topology = mp.Topology()
    beads = topology.add_beads([[0.0, 0, 0], [1.0, 0, 0]], 1.0)
    assert mp.forces.UniformField(beads, [0.0, 0, 1]).longest_timestep() == np.inf
    assert mp.forces.Coulomb(beads, 1.0).longest_timestep() is None
    assert mp.forces.PythonForce(lambda x: (0.0, 0.0 * x)).longest_timestep(topology) is None
    refuses(mp.ParameterError, "give topology=", mp.forces.HarmonicBonds([[0, 1]], 1.0, 1.0).longest_timestep)


def test_points_pass_what_is_on_them_on_to_their_triangles():
    """A spring of a point to an anchor, across the plane: it is the three corners that it moves, not the point."""
    mesh = mp.TriangleMesh([[0.0, 0, 0], [3.0, 0, 0], [0, 3.0, 0]], [[0, 1, 2]])
    topology = mp.Topology()
    membrane = topology.add_membrane(mesh, vertex_mass=0.01)
    points = topology.add_intriangle_points(membrane, triangles=[0], barycentric=[[1 / 3] * 3], mass=1e6)
    trap = mp.forces.HarmonicTrap(points, [0.0, 0.0, 4.0], [1.0, 1.0, 0.0])
    exact = 2.0 / np.sqrt(4.0 / (3.0 * 0.01))
    assert 0.5 * exact <= trap.longest_timestep() <= 1.0001 * exact
    topology = mp.Topology()
    membrane = topology.add_membrane(mesh, vertex_mass=0.01, fixed=True)
    points = topology.add_intriangle_points(membrane, triangles=[0], barycentric=[[1 / 3] * 3], mass=9.0)
    trap = mp.forces.HarmonicTrap(points, 4.0, [1.0, 1.0, 0.0])
    assert trap.longest_timestep() == pytest.approx(2.0 / np.sqrt(4.0 / 9.0))


def test_arms_of_bodies():
    """A spring across the end of an arm: k/m + k a²/I."""
    topology = mp.Topology()
    body = topology.add_rigid_bodies([[0.0, 0, 0]], [[1.0, 0, 0, 0]], mass=2.0, inertia=[3.0, 3.0, 3.0])
    link = mp.forces.Links(body.sites([[0.0, 0.0, 5.0]]), mp.Sites.anchors([[1.0, 0.0, 5.0]]), 7.0)
    exact = 2.0 / np.sqrt(7.0 / 2.0 + 7.0 * 25.0 / 3.0)
    assert 0.5 * exact <= link.longest_timestep() <= 1.0001 * exact


# Meshes -----------------------------------------------------------------------------------------------------------


def membrane_of(mesh, *make, timestep, temperature=300.0, points=0):
    topology = mp.Topology()
    membrane = topology.add_membrane(mesh, vertex_mass=4e-12, vertex_friction=4e-7, name="vesicle")
    if points:
        topology.add_intriangle_points(membrane, points, mass=4e-12, friction=4e-6, seed=1)
    thermal = {} if temperature is None else {"temperature": temperature}
    integrator = mp.SplittingIntegrator("BAGOGAB" if thermal else "BAGAB", timestep, seed=1, **thermal)
    return of(topology, *(force(membrane) for force in make), integrator=integrator)


def test_forces_that_bear_the_timestep_alone_but_not_together():
    """Total area and volume of a vesicle are stiff in one and the same breath: squares of frequencies add up."""
    mesh = mp.TriangleMesh.icosphere(500.0, 2)
    forces = (
        lambda v: mp.forces.MembraneBending(v, 82.0),
        lambda v: mp.forces.MembraneArea(v, 200.0),
        lambda v: mp.forces.MembraneVolume(v, 0.8),
        lambda v: mp.forces.MembraneArea(v, 0.2, per_triangle=True, name="TriangleAreas"),
    )
    sheet = quiet(lambda: membrane_of(mesh, *forces, timestep=1e-8)).check()
    alone, limit = min(f.limit for f in sheet.forces), sheet.together.limit
    assert limit < 0.9 * alone
    quiet(lambda: membrane_of(mesh, *forces, timestep=0.99 * limit))
    with pytest.warns(mp.TimestepWarning, match=r"of all forces together, .* Take about .* s, heavier beads") as caught:
        simulation = membrane_of(mesh, *forces, timestep=0.5 * (limit + alone))
    assert len(caught) == 1
    assert simulation.check().remarks[0][1] == str(caught[0].message)
    refuses(mp.SimulationError, "has run away", simulation.step, 2000)
    # Forces that do not bear it alone say so themselves.
    with pytest.warns(mp.TimestepWarning, match="of this force") as caught:
        membrane_of(mesh, *forces, timestep=1.01 * alone)
    assert len(caught) == 1


def pinched():
    """A sphere with one vertex close to the edge across from it: two low triangles."""
    mesh = mp.TriangleMesh.icosphere(500.0, 2)
    x = np.array(mesh.vertices)
    a, b, c = mesh.faces[100]
    x[a] = 0.9 * 0.5 * (x[b] + x[c]) + 0.1 * x[a]
    return mesh.with_vertices(x), int(a)


def test_a_place_that_is_stiffer_than_all_others_is_named():
    mesh, vertex = pinched()
    topology = mp.Topology()
    topology.add_beads([[5000.0, 0, 0]], mass=1.0, friction=1.0)
    membrane = topology.add_membrane(mesh, vertex_mass=4e-12, vertex_friction=4e-7, name="vesicle")
    bending = mp.forces.MembraneBending(membrane, 82.0)
    limit = bending.longest_timestep()
    regular = mp.Topology().add_membrane(mp.TriangleMesh.icosphere(500.0, 2), vertex_mass=4e-12)
    assert limit < 0.5 * mp.forces.MembraneBending(regular, 82.0).longest_timestep()
    integrator = mp.BAGOGABIntegrator(1.01 * limit, temperature=300.0)
    with pytest.warns(mp.TimestepWarning, match="MembraneBending: the timestep") as caught:
        of(topology, bending, integrator=integrator)
    assert len(caught) == 1
    named = re.search(r"is bead (\d+) \('vesicle', vertices\), triangle (\d+) \(height", str(caught[0].message))
    bead, triangle = map(int, named.groups())
    assert bead - 1 in mesh.faces[100]
    assert vertex in mesh.faces[triangle]
    # Where all beads are alike there is nothing to name.
    topology, bonds, _ = chain()
    with pytest.warns(mp.TimestepWarning) as caught:
        of(topology, bonds, integrator=mp.VerletIntegrator(0.501))
    assert "stiffest" not in str(caught[0].message)


def spike():
    mesh = mp.TriangleMesh.icosphere(500.0, 2)
    x = np.array(mesh.vertices)
    x[[3, 150]] *= 2.0
    return mesh.with_vertices(x)


def test_places_that_a_mesh_does_not_resolve():
    """Heat crumples tips of a mesh; vertices there were silently at twice the temperature."""
    mesh = spike()
    bending = {
        "vertex": lambda v: mp.forces.MembraneBending(v, 82.0),
        "projected": lambda v: mp.forces.MembraneBending(v, 82.0, projected=True),
        "dihedral": lambda v: mp.forces.MembraneBending(v, 82.0, discretization="dihedral"),
    }
    # The vertex form costs the more the sharper it is bent.
    limit = quiet(lambda: membrane_of(mesh, bending["vertex"], timestep=1e-9)).check().forces[0].limit
    quiet(lambda: membrane_of(mesh, bending["vertex"], timestep=0.3 * limit))
    limit = quiet(lambda: membrane_of(mesh, bending["projected"], timestep=1e-9)).check().forces[0].limit
    says = r"'vesicle' is bent too sharply for its mesh at vertex (3|150) and 1 more \(triangle .* add up to 0\.[2-6]"
    remedy = rf" of 2e-07 s|or a timestep of {0.05 * limit:.2g} s"
    with pytest.warns(mp.TimestepWarning, match=says) as caught:
        membrane_of(mesh, bending["projected"], timestep=0.3 * limit)
    assert len(caught) == 1
    assert re.search(remedy, str(caught[0].message))
    quiet(lambda: membrane_of(mesh, bending["projected"], timestep=0.05 * limit))
    # The jump of the dihedral form is there at any timestep.
    with pytest.warns(mp.TimestepWarning, match=says + ".*dihedral form jumps") as caught:
        membrane_of(mesh, bending["dihedral"], timestep=1e-9)
    assert len(caught) == 1
    # Nothing crumples without heat, and nothing where the membrane does not move.
    quiet(lambda: membrane_of(mesh, bending["dihedral"], timestep=1e-9, temperature=None))
    topology = mp.Topology()
    still = topology.add_membrane(mesh, vertex_mass=1.0, fixed=True)
    quiet(lambda: of(topology, bending["dihedral"](still), integrator=mp.BAGOGABIntegrator(1e-7, temperature=300.0)))


@pytest.mark.parametrize("form", ["vertex", "dihedral"])
@pytest.mark.parametrize(
    "mesh",
    [*(mp.TriangleMesh.icosphere(500.0, k) for k in range(4)), mp.TriangleMesh.red_blood_cell(4000.0, 3),
     mp.TriangleMesh.torus(300.0, 100.0, 24, 12), mp.TriangleMesh.cylinder(100.0, 500.0, 12, 10),
     mp.TriangleMesh.flat_sheet(9, 9, 30.0)],
)  # fmt: skip
def test_no_alarm_of_meshes_that_can_be_run(mesh, form):
    """At 0.3 of what all forces together bear, as is recommended."""
    area = 414.0 / mesh.face_areas
    how = {"projected": True} if form == "projected" else {"discretization": form}
    forces = (
        lambda v: mp.forces.MembraneBending(v, 82.0, **how),
        lambda v: mp.forces.MembraneArea(v, area, per_triangle=True),
    )
    limit = membrane_of(mesh, *forces, timestep=1e-10).check().together.limit
    quiet(lambda: membrane_of(mesh, *forces, timestep=0.3 * limit, points=10))


REAL = ["celegans_cell6_T17.ply", "freedts_G1_neck_cut.off", "freedts_flat_cut.off", "freedts_vesicle.off",
        "mem3dg_patch.ply", "mem3dg_prolate.ply", "rbc_mirheo_498v.off"]  # fmt: skip


@pytest.mark.parametrize("name", REAL)
def test_no_alarm_of_real_membranes(shared_data, name):
    mesh = mp.TriangleMesh.from_file(shared_data / "meshes" / "biology" / name)
    test_no_alarm_of_meshes_that_can_be_run(mesh.scaled(800.0 / np.ptp(mesh.vertices, axis=0).max()), "vertex")


SHARP = ("topology/bunny_small.ply", "topology/cat_head.obj", "formats/DendriticSpine_compartments.obj")


@pytest.mark.parametrize("name", SHARP)
def test_alarm_of_real_meshes_that_get_hot(shared_data, name):
    """In the projected form single vertices get to 450 to 1400 K, with the whole within 4 % of 300 K and no error; in
    the vertex form nothing is warned of."""
    mesh = mp.TriangleMesh.from_file(shared_data / "meshes" / name)
    mesh = mesh.scaled(800.0 / np.ptp(mesh.vertices, axis=0).max())
    with pytest.raises(mp.TimestepWarning, match="is bent too sharply for its mesh"):
        test_no_alarm_of_meshes_that_can_be_run(mesh, "projected")
    test_no_alarm_of_meshes_that_can_be_run(mesh, "vertex")


# Units ------------------------------------------------------------------------------------------------------------


def vesicle(radius=500.0, mass=4e-12, friction=4e-7, kappa=82.0, timestep=2e-7, **thermal):
    topology = mp.Topology()
    membrane = topology.add_membrane(mp.TriangleMesh.icosphere(radius, 2), mass, friction, name="vesicle")
    bending = mp.forces.MembraneBending(membrane, kappa)
    return of(topology, bending, integrator=mp.BAGOGABIntegrator(timestep, **(thermal or {"temperature": 300.0})))


SLIPS = {
    "timestep in fs": ({"timestep": 2.0}, "timestep of 2 s"),
    "mass in dalton": ({"mass": 5e4}, r"pN s²/nm, which is 1 g \(units.dalton\)"),
    "radius in micrometers": ({"radius": 0.2}, "units.micrometer"),
    "modulus in joule": ({"kappa": 8e-20}, "1 J is 1e21"),
}


@pytest.mark.parametrize("slip", SLIPS)
def test_slips_of_units(slip):
    given, message = SLIPS[slip]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        vesicle(**given)
    texts = [str(w.message) for w in caught if w.category is mp.UnitsWarning]
    assert any(re.search(message, text) for text in texts), texts


@pytest.mark.parametrize("slip", SLIPS)
def test_numbers_without_units_may_be_anything(slip):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        vesicle(**SLIPS[slip][0], kT=1.0)
    assert not [w for w in caught if w.category is mp.UnitsWarning]


def test_no_slip_no_word():
    quiet(vesicle)


# The worksheet ------------------------------------------------------------------------------------------------------


def test_the_worksheet():
    simulation = vesicle()
    sheet = simulation.check()
    assert sheet.ok
    (row,), (bending,) = sheet.beads, sheet.forces
    kT = 300.0 * mp.units.boltzmann
    assert row.diffusion == pytest.approx((kT / 4e-7,) * 2)
    assert row.relaxation == pytest.approx((1e-5,) * 2)
    assert row.damping == pytest.approx((0.02,) * 2)
    assert row.step == pytest.approx((np.sqrt(kT / 4e-12) * 2e-7,) * 2)
    assert row.length == pytest.approx(simulation.topology.membranes[0].mesh.edge_lengths.min())
    assert bending.limit == simulation.system.forces[0].longest_timestep()
    assert bending.share == pytest.approx(2e-7 / bending.limit)
    text = str(sheet)
    for part in ("word J B A G O G A B J", "vesicle", "162 vertices", "MembraneBending", "All is well"):
        assert part in text
    assert repr(sheet) == text


def test_the_worksheet_of_several_forces_and_groups():
    """On the same beads squares of frequencies add up, each by its own time between kicks."""
    topology = mp.Topology()
    bead = topology.add_beads([[1.0, 0, 0]], mass=1.0)
    fixed = topology.add_membrane(MESH, 1.0, fixed=True)
    traps = [mp.forces.HarmonicTrap(bead, k, [0.0, 0, 0], group=g) for k, g in ((9.0, 0), (16.0, 1))]
    sheet = of(topology, *traps, mp.forces.MembraneBending(fixed, 1.0),
               integrator=mp.SplittingIntegrator("B1 A B0 A B1 A B0 A B1", 0.1)).check()  # fmt: skip
    way = 0.5
    assert [f.limit for f in sheet.forces] == pytest.approx([2.0 / 3.0 / way, 2.0 / 4.0 / way, np.inf])
    assert sheet.together.limit == pytest.approx(2.0 / 5.0 / way)
    assert "fixed" in str(sheet)
    assert "∞" in str(sheet)


def test_errors_stand_at_the_end():
    topology, bonds, _ = chain(friction=1.0)
    with pytest.warns(mp.TimestepWarning):
        simulation = of(topology, bonds, integrator=mp.BAGOGABIntegrator(0.6, kT=1.0))
    sheet = simulation.check()
    assert not sheet.ok
    assert [kind for kind, _ in sheet.remarks] == [mp.TimestepWarning]
    assert "TimestepWarning: HarmonicBonds" in str(sheet).splitlines()[-1]


# Minimisation -------------------------------------------------------------------------------------------------------


def test_the_default_tolerance_of_a_minimisation_is_below_the_forces_of_a_membrane():
    """A vesicle of which no force reaches 1 pN is relaxed nonetheless."""
    topology = mp.Topology()
    membrane = topology.add_membrane(mp.TriangleMesh.icosphere(500.0, 1), 4e-12, 4e-7)
    forces = mp.forces.MembraneBending(membrane, 82.0), mp.forces.MembraneArea(membrane, 1e-3, per_triangle=True)
    simulation = of(topology, *forces, integrator=mp.BAGOGABIntegrator(2e-7, temperature=300.0))
    x = np.array(simulation.context.get_state(positions=True).positions)
    simulation.context.set_positions(x * [1.1, 1.0, 1.0])
    before = simulation.context.get_state(energy=True, forces=True)
    assert np.abs(before.forces).max() < 1.0
    report = simulation.minimize_energy()
    assert report.converged
    assert report.iterations > 10
    assert report == np.abs(simulation.context.get_state(forces=True).forces).max()
    kT = 300.0 * mp.units.boltzmann
    assert report <= report.tolerance
    # Of the edges of the stretched mesh: between the shortest of both.
    edges = simulation.topology.membranes[0].mesh.edge_lengths.min()
    assert 0.01 * kT / (1.1 * edges) <= report.tolerance <= 0.01 * kT / edges * 1.0001
    after = simulation.context.get_state(energy=True)
    assert (report.energy_before, report.energy_after) == (before.potential_energy, after.potential_energy)
    assert report.energy_after < report.energy_before
    assert f"converged after {report.iterations} iterations" in repr(report)


def test_without_temperature_the_tolerance_is_a_part_of_the_forces():
    topology, bonds, beads = chain()
    simulation = of(topology, bonds, integrator=mp.VerletIntegrator(0.1))
    x = beads.positions + np.random.default_rng(1).normal(0.0, 0.1, (8, 3))
    simulation.context.set_positions(x)
    forces = simulation.context.get_state(forces=True).forces
    report = simulation.minimize_energy()
    assert report.tolerance == pytest.approx(1e-3 * np.sqrt(np.mean(forces**2)))
    assert report.converged


def test_a_minimisation_that_does_not_converge_says_so():
    topology, bonds, beads = chain()
    simulation = of(topology, bonds, integrator=mp.VerletIntegrator(0.1))
    simulation.context.set_positions(1.3 * beads.positions)
    with pytest.warns(mp.ConvergenceWarning, match=r"above the tolerance of 1e-06 pN: max_iterations = 3 were not"):
        report = simulation.minimize_energy(1e-6, max_iterations=3)
    assert not report.converged
    assert report.iterations == 3
    assert report > report.tolerance == 1e-6
    assert "not converged" in str(report)
    quiet(lambda: simulation.minimize_energy(1e-6))


# Numbers that change -------------------------------------------------------------------------------------------------


def trapped(stiffness):
    topology = mp.Topology()
    trap = mp.forces.HarmonicTrap(topology.add_beads([[0.0, 0, 0]], 1.0), stiffness, [0.0, 0, 0])
    return trap, of(topology, trap, integrator=mp.VerletIntegrator(0.1))


def test_ramps_beyond_the_limit_are_warned_of_within_a_fiftieth():
    """A number that hardly changes is not looked at again; one that has changed by 2 % since it was is, however slowly
    it did so."""
    trap, simulation = trapped(1.0)
    limit, told = 4.0 / 0.1**2, []
    for stiffness in np.linspace(0.9 * limit, 1.1 * limit, 400):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            trap.set(stiffness=stiffness)
            simulation.step(1)
        assert all("beyond the stability limit" in str(warning.message) for warning in caught)
        told += [stiffness / limit] * bool(caught)
    assert 1.0 < told[0] <= 1.021
    assert 3 <= len(told) <= 6
    assert (np.diff(told) > 0.0199).all()


def test_sudden_changes_are_warned_of_at_once_from_zero_too():
    trap, simulation = trapped(0.0)
    for stiffness in (500.0, 600.0):
        trap.set(stiffness=stiffness)
        with pytest.warns(mp.TimestepWarning, match=r"HarmonicTrap: the timestep 0.1 s is beyond"):
            simulation.step(1)
    trap.set(stiffness=1.0)
    quiet(lambda: simulation.step(1))


def test_links_that_come_are_looked_at_though_numbers_stay():
    """To a bead so light that it cannot bear what the heavy ones do."""
    topology = mp.Topology()
    beads = topology.add_beads([[0.0, 0, 0], [1.0, 0, 0], [2.0, 0, 0]], [1.0, 1.0, 1e-6])
    links = mp.forces.Links([0], [1], 10.0, 1.0)
    simulation = of(topology, links, integrator=mp.VerletIntegrator(0.1))
    assert len(beads) == 3
    links.set(stiffness=10.0001)
    quiet(lambda: simulation.step(1))
    links.add([1], [2])
    with pytest.warns(mp.TimestepWarning, match="beyond the stability limit of this force"):
        simulation.step(1)


def test_jumps_are_compared_with_how_fast_beads_relax():
    """Rates, the steps between events, and the longer of m/gamma and l^2/2D, by hand."""
    topology = mp.Topology()
    actin = topology.add_filaments([[[0.0, 0, 0], [27.0, 0, 0], [54.0, 0, 0]]], 4e-12, 1e-6, rise=2.7, name="actin")
    mesh = mp.TriangleMesh.icosphere(100.0, 2)
    vesicle = topology.add_membrane(mesh, 1e-6, 1e-6, name="vesicle")
    points = topology.add_intriangle_points(
        vesicle, species={"A": {"mass": 1e-12, "friction": 1e-6}, "B": {"mass": 3e-12, "friction": 1e-6}},
        counts={"A": 5, "B": 5}, name="points",
    )  # fmt: skip
    system = mp.System(topology)
    pool = system.add_pool(mp.Pool(volume=1e9, counts={"G": 6022, "M": 5}))
    unit = mp.units.per_micromolar_second
    system.add_jump(mp.jumps.Polymerization(actin, pool["G"], on_rate=11.6 * unit, off_rate=1.4))
    system.add_jump(mp.jumps.EdgeFlips(vesicle, 5.0))
    system.add_jump(mp.jumps.Reactions(points, "A <-> B; k_on = 2.0, k_off = 30.0", name="switch"))
    system.add_jump(mp.jumps.Reactions(pool, "M -> 0; rate = 7.0", name="molecules"))
    simulation = mp.Simulation(system, mp.BAGOGABIntegrator(1e-7, temperature=300.0, seed=1), threads=1)
    sheet = simulation.check()
    rows = {row.name: row for row in sheet.jumps}
    # Of one molecule of the pool, which growth uses too: no beads are slower or faster than it.
    assert list(rows) == ["Polymerization", "EdgeFlips", "switch", "molecules"]
    assert rows["molecules"].rate == 7.0
    assert np.isnan(rows["molecules"].relaxation)
    growth = rows["Polymerization"]
    diffusion = 300.0 * mp.units.boltzmann / 1e-6
    assert growth.rate == pytest.approx(11.6 * unit * 6022 / 1e9)
    assert growth.steps == pytest.approx(1.0 / (growth.rate * 1e-7))
    assert (growth.relaxation, growth.slowest) == (pytest.approx(27.0**2 / (2.0 * diffusion)), "actin")
    assert growth.room == pytest.approx(1.0 / (growth.rate * growth.relaxation))
    # Velocities of vertices last for a second, those of points for three microseconds.
    assert (rows["EdgeFlips"].rate, rows["EdgeFlips"].relaxation, rows["EdgeFlips"].room) == (5.0, 1.0, 0.2)
    assert (rows["switch"].rate, rows["switch"].relaxation) == (30.0, pytest.approx(3e-6))
    table = str(sheet).split("\n\n")[3]
    assert table.splitlines()[0].split() == (
        "jumps fastest event (1/s) steps to it relaxation (s) slowest beads rates may rise by".split()
    )
    assert table.splitlines()[2].split() == ["EdgeFlips", "5", "2e+06", "1", "vesicle", "0.2"]
