"""A bead in a periodic box is in all of its images at once: distances are the same wherever beads have got to.

All public functions that take positions, states or frames are in the table here, with a scene of which beads are moved
by whole lengths of the box, or with the reason why a box does not concern them."""

import importlib
import inspect
import json
import re
from functools import partial
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from builders import refuses

import medyanpy as mp
from medyanpy import analysis
from medyanpy._tools.images import box_lengths, displacement, images_within, next_to_each_other
from medyanpy.visualize.scene import scene_of

F = mp.forces
SHEET = mp.TriangleMesh.flat_sheet(12, 12, 5.0, periodic=True)
BOX = (SHEET.box[0], SHEET.box[1], 70.0)
LENGTHS = np.array(BOX)
N_FRAMES = 6


class Scene:
    """Beads of all kinds and what acts on them; beads, sheets, and filaments and vesicles as wholes, are moved by whole
    lengths of the box, from -3 to 3 of them."""

    def __init__(self, seed=None):
        rng = np.random.default_rng(7)
        t = self.topology = mp.Topology()
        self.beads = t.add_beads(np.array([1.0, 50.0, 2.0]) + rng.uniform(0.0, 14.0, (10, 3)), mass=1e-6, friction=1e-3,
                                 name="beads")  # fmt: skip
        curved = np.cumsum([[0.0, 0, 0], *([4.0 * np.cos(0.2 * k), 4.0 * np.sin(0.2 * k), 0.0] for k in range(17))],
                           axis=0)  # fmt: skip
        self.actin = t.add_filaments(
            [x + rng.normal(0.0, 0.3, x.shape) for x in (curved + [20.0, 10.0, 40.0], curved[:5] + [3.0, 4.0, 60.0])],
            node_mass=1e-6, node_friction=1e-3, constrained=False, name="actin"
        )  # fmt: skip
        ball = mp.TriangleMesh.icosphere(12.0, 2)
        ball = ball.with_vertices(ball.vertices + rng.normal(0.0, 0.15, ball.vertices.shape) + [30.0, 20.0, 20.0])
        self.vesicle = t.add_membrane(ball, vertex_mass=1e-6, vertex_friction=1e-3, name="vesicle")
        self.proteins = t.add_intriangle_points(self.vesicle, 8, mass=1e-6, friction=1e-3, seed=1, name="proteins")
        sheet = SHEET.with_vertices(SHEET.vertices + rng.normal(0.0, 0.2, SHEET.vertices.shape) + [0.0, 0.0, 66.0])
        self.patch = t.add_membrane(sheet, vertex_mass=1e-6, vertex_friction=1e-3, name="patch")
        nodes, orientations = mp.rods.uniform(6, 4.0, curvature=[0.0, 0.02, 0.0])
        self.rod = t.add_rod(nodes + [40.0, 40.0, 30.0], orientations, 4.0, linear_density=1e-6,
                             inertia_density=[1e-6, 1e-6, 2e-6], friction=1e-3, rotational_friction=1e-2,
                             name="rod")  # fmt: skip
        self.bodies = t.add_rigid_bodies([[58.0, 10.0, 30.0], [10.0, 12.0, 68.0]], [[1.0, 0, 0, 0], [0.6, 0.8, 0, 0]],
                                         mass=1e-6, inertia=(1e-5, 1e-5, 2e-5), friction=1e-3,
                                         name="bodies")  # fmt: skip
        s = self.system = mp.System(t, box=BOX)
        b, f = self.beads.beads, mp.forces
        self.mean = mp.Sites.weighted([[b[0], b[1], b[2]]], [[0.5, 0.3, 0.2]])
        self.links = s.add_force(f.Links(self.bodies.sites([[0, 0, 4.0]])[:1] + self.mean, b[[3, 4]], 0.5, 3.0))
        self.ropes = s.add_force(f.Links([b[0]], [b[5]], 0.5, 3.0, one_sided=True, name="ropes"))
        self.bonds = s.add_force(f.HarmonicBonds([[b[6], b[7]]], 0.5, 4.0))
        self.fene = s.add_force(f.CustomBonds([[b[7], b[8]]], "-k/2*R^2*log(1 - (r/R)^2)", k=0.5, R=20.0))
        self.pairs = s.add_force(f.LinkLengthPenalty([[b[8], b[9]]], 0.01, 5.0))
        self.triples = s.add_force(f.RigidTrianglePenalty([[b[0], b[8], b[9]]], 0.01, [5.0, 5.0, 5.0]))
        self.angles = s.add_force(f.AngleLinks([b[0]], [b[1]], [b[2]], 1.0, 2.0))
        self.trap = s.add_force(f.HarmonicTrap(self.beads, 0.1, [0.0, 0.0, 0.0]))
        self.touch = s.add_force(f.SoftSphere(self.beads, self.beads, 1.0, 4.0))
        self.field = s.add_force(f.ExternalField(self.beads, f"0.1*cos(2*pi*x/{BOX[0]!r})"))
        self.wall = s.add_force(f.WallRepulsion(mp.boundaries.Sphere((58.0, 10.0, 30.0), 3.0, inside=False), self.beads,
                                                1.0, 1.0))  # fmt: skip
        s.add_force(f.FilamentBending(self.actin, 50.0))
        s.add_force(f.FilamentStretching(self.actin, 10.0))
        s.add_force(f.MembraneBending(self.vesicle, 20.0))
        s.add_force(f.MembraneEdgeSprings(self.vesicle, 0.5))
        s.add_force(f.MembraneBending(self.patch, 20.0, name="bending of the patch"))
        s.add_force(f.MembraneEdgeSprings(self.patch, 0.5, name="springs of the patch"))
        s.add_force(f.RodElasticity(self.rod, shear=(10.0, 10.0), extension=10.0, bending=(10.0, 10.0), twist=10.0))
        self.simulation = mp.Simulation(s, mp.BAGOGABIntegrator(1e-5, kT=4.14, seed=2), threads=1)
        self.context = self.simulation.context
        x = self.context.get_state(positions=True).positions
        whole = np.zeros_like(x)
        each = np.zeros_like(x)
        if seed is not None:
            rng = np.random.default_rng(seed)
            each = LENGTHS * rng.integers(-3, 4, x.shape)
            for rows in ([row] for row in [*self.beads.beads, *self.patch.beads, *self.bodies.beads]):
                whole[rows] = each[rows]
            starts = self.actin.starts
            chains = [self.actin.beads[i:j] for i, j in pairwise(starts)]
            for rows in [*chains, self.vesicle.beads, self.rod.beads]:
                whole[rows] = each[rows[0]]
            self.context.set_positions(x + whole)
        self.context.set_velocities_to_temperature(kT=4.14, seed=3)
        self.start = self.context.get_state(positions=True, velocities=True, forces=True, energy=True, virial=True,
                                            multipliers=True, physical_positions=True)  # fmt: skip
        self.states = [self.start]
        for _ in range(N_FRAMES - 1):
            self.context.step(1)
            self.states.append(self.context.get_state(positions=True, velocities=True, forces=True, energy=True))
        #: Frames of which every bead is at an image of its own, and positions that are so in each frame anew.
        x = np.array([state.positions for state in self.states])
        self.frames = [
            SimpleNamespace(
                positions=own + each - whole, box=BOX, time=state.time, step=state.step, faces=state.faces,
                ids=state.ids,
                orientations=state.orientations, intriangle=state.intriangle,
            )
            for own, state in zip(x, self.states, strict=True)
        ]  # fmt: skip
        self.x = x if seed is None else x + LENGTHS * rng.integers(-3, 4, x.shape)

    @property
    def sources(self):
        return {"states": self.states, "frames": self.frames, "state": self.start, "frame": self.frames[0]}

    def asked(self, of, **arrays):
        """What a function of a source says of all kinds of sources, and of arrays where it has a box."""
        out = {name: of(source) for name, source in self.sources.items()}
        out["array"] = of(self.x, box=BOX, **arrays)
        return out

    def along_time(self, of, **arrays):
        return {"states": of(self.states), "frames": of(self.frames), "array": of(self.x, box=BOX, **arrays)}


@pytest.fixture(scope="module")
def scenes():
    return [Scene(), Scene(5), Scene(6)]


def flat(found, path=""):
    """Arrays of numbers by where they are in what was found."""
    if hasattr(found, "_parts") and hasattr(found, "lags"):
        found = found.value
    if isinstance(found, dict):
        return {k: v for name, value in found.items() for k, v in flat(value, f"{path}.{name}").items()}
    if hasattr(found, "__dataclass_fields__"):
        return flat({name: getattr(found, name) for name in found.__dataclass_fields__}, path)
    if isinstance(found, list | tuple) and any(not np.isscalar(one) for one in found):
        return {k: v for i, value in enumerate(found) for k, v in flat(value, f"{path}[{i}]").items()}
    return {path: np.asarray(found)}


def modulo(x):
    """Places, as far as a box tells them apart."""
    return np.exp(2j * np.pi * np.asarray(x) / LENGTHS)


def of_rod(s):
    q = s.start.orientations[s.rod.rows]
    return [s.rod.strains(x[s.rod.beads], q, box=BOX) for x in (s.start.positions, s.frames[0].positions, s.x[0])]


def of_mesh(s):
    """A mesh in any image, asked for places in any image."""
    mesh = mp.TriangleMesh(s.x[0][s.vesicle.beads], s.vesicle.mesh.faces, box=BOX)
    ask = s.x[0][np.concatenate([s.beads.beads, s.vesicle.beads])]
    middle = s.vesicle.mesh.vertices.mean(axis=0)
    here = [middle, *(middle + 0.9 * (s.vesicle.mesh.vertices[::9] - middle))]
    inside = mesh.contains(here + LENGTHS * np.arange(-3, len(here) - 3)[:, None])
    assert inside.all()
    assert not mesh.contains([middle + [20.0, 0.0, 0.0]]).any()
    return [mesh.contains(ask)[: len(s.beads)], inside, mesh.volume, mesh.area, mesh.edge_lengths, mesh.mean_curvatures]


def of_meshes_with_other_vertices(s):
    meshes = [mesh.with_vertices(s.x[1][handle.beads]) for handle in (s.vesicle, s.patch)
              for mesh in [mp.TriangleMesh(s.x[0][handle.beads], handle.mesh.faces, box=BOX)]]  # fmt: skip
    return [[m.edge_lengths, m.area, modulo(m.positions([3, 5], [[0.2, 0.3, 0.5], [1.0, 0.0, 0.0]]))] for m in meshes]


def of_table(s):
    """A row of a table."""
    import io

    text = io.StringIO()
    table = mp.reporters.StateDataReporter(text, 1, step=True, potential_energy=True, kinetic_energy=True,
                                           temperature=True, area=True, volume=True, box=True)  # fmt: skip
    table.report(s.simulation, s.states[-1])
    return np.loadtxt(io.StringIO(text.getvalue()), delimiter=",")


def of_export(s, tmp_path):
    """What a viewer is shown: numbers of a file, and how many there are."""
    path = tmp_path / f"{id(s)}.h5"
    simulation = mp.Simulation(s.system, mp.BAGOGABIntegrator(1e-5, kT=4.14, seed=2), threads=1)
    simulation.context.set_state(s.states[-1])
    with mp.reporters.TrajectoryReporter(path, 1) as reporter:
        simulation.reporters.append(reporter)
        simulation.step(2)
    mp.export(path, tmp_path / f"{id(s)}.simularium")
    held = json.loads((tmp_path / f"{id(s)}.simularium").read_text())
    numbers = [float(one) for one in re.findall(r"-?\d+\.\d+(?:e-?\d+)?", json.dumps(held["spatialData"]))]
    with mp.Trajectory(path) as trajectory:
        read = {
            "msd": analysis.mean_square_displacement(trajectory, "beads", lags=[1]).value,
            "gyration": [
                analysis.radius_of_gyration(trajectory, name) for name in ("beads", "vesicle", "rod", "proteins")
            ],
            "ends": analysis.end_to_end(trajectory, s.actin),
            "wrapped": modulo(trajectory[-1].wrapped_positions),
            "volume": analysis.reduced_volume(trajectory, "vesicle"),
        }
    return [np.array(numbers), read]


def of_links(s):
    ends = s.start.links(s.links)
    return [s.links.lengths(s.start), s.links.tensions(s.start), s.ropes.lengths(s.start), s.ropes.tensions(s.start),
            len(ends), s.links.joined_in(s.start), [len(one) for one in s.links.sites_in(s.start)]]  # fmt: skip


def of_context(s):
    """Energies, forces, virials; and again, of a state that is put into another context."""
    other = mp.Context(s.system, mp.BAGOGABIntegrator(1e-5, kT=4.14, seed=2), threads=1)
    other.set_state(s.start)
    there = other.get_state(positions=True, forces=True, energy=True)
    return [s.start.energies, s.start.forces, s.start.virials, there.energies, there.forces, modulo(there.positions),
            modulo(s.start.physical_positions), [state.potential_energy for state in s.states]]  # fmt: skip


def of_walls(s):
    walls = [
        mp.boundaries.Sphere((58.0, 10.0, 30.0), 3.0),
        mp.boundaries.Capsule((58.0, 10.0, 30.0), (58.0, 12.0, 30.0), 3.0),
    ]  # fmt: skip
    x = s.x[0][s.beads.beads]
    return [[wall.distance(x, BOX), wall.normals(x, BOX)] for wall in walls]


def of_planes(s):
    """A wall across an open direction; others are refused."""
    wall, x = mp.boundaries.Plane((0.0, 0.0, 3.0)), s.x[0][s.beads.beads] * [1.0, 1.0, 0.0]
    refuses(mp.ParameterError, "periodic along z, so that there is nothing behind", wall.distance, x, BOX)
    return wall.distance(x, (*BOX[:2], None)), wall.normals(x, (*BOX[:2], None))


def of_multipliers(s):
    given = [s.pairs.multipliers(s.x[0], BOX), s.triples.multipliers(s.x[0], BOX)]
    return [given, [analysis.constraint_multipliers(s.x, force, 2, box=BOX) for force in (s.pairs, s.triples)]]


def of_timesteps(s):
    """Stiffness is looked at where beads are added: at any image."""
    t = mp.Topology()
    t.add_beads(s.x[0][s.beads.beads], mass=1e-6)
    b = np.arange(10)
    forces = [
        mp.forces.CustomBonds([[b[7], b[8]]], "-k/2*R^2*log(1 - (r/R)^2)", k=0.5, R=20.0),
        mp.forces.AngleLinks([0], [1], [2], 1.0, 2.0), mp.forces.SoftSphere(b, b, 1.0, 14.0),
        mp.forces.LennardJones(b, b, 1.0, 3.0, cutoff=9.0),
        mp.forces.ExternalField(b, f"cos(2*pi*x/{BOX[0]!r}) + exp(-x*x)"),
    ]  # fmt: skip
    return [force.longest_timestep(t, box=BOX) for force in forces]


def of_displacements(s):
    ask = partial(analysis.mean_square_displacement, lags=[1, 3])
    beads = (s.beads.beads, s.proteins.beads, s.vesicle.beads, s.actin.beads, s.bodies.beads)
    about = partial(ask, beads=s.proteins.beads, sphere=[30.0, 20.0, 20.0])
    return [s.along_time(of, interval=1e-5) for of in [*(partial(ask, beads=rows) for rows in beads), about]]


def of_frames_in_time(of):
    return lambda s: s.along_time(of, interval=1e-5)


#: Of each function what is asked in every scene.
SAME = {
    "analysis.radial_distribution": lambda s: s.asked(
        lambda source, **more: analysis.radial_distribution(source, s.beads, r_max=20.0, bins=5, **more)
    ),
    "analysis.contact_counts": lambda s: s.asked(
        lambda source, **more: analysis.contact_counts(source, s.beads, s.proteins, cutoff=20.0, **more)
    ),
    "analysis.contact_times": of_frames_in_time(
        lambda source, **more: analysis.contact_times(source, range(10), cutoff=6.0, **more)
    ),
    "analysis.clusters": lambda s: s.asked(lambda source, **more: analysis.clusters(source, s.beads, 6.0, **more)),
    "analysis.cluster_sizes": lambda s: s.asked(
        lambda source, **more: analysis.cluster_sizes(source, s.beads, 6.0, **more)
    ),
    "analysis.structure_factor": lambda s: s.asked(
        lambda source, **more: analysis.structure_factor(source, s.beads, q_max=0.3, bins=4, **more)
    ),
    "analysis.mean_square_displacement": of_displacements,
    "analysis.surface_mean_square_displacement": lambda s: [
        analysis.surface_mean_square_displacement(s.states, s.proteins, [1, 2], reach=10.0, relative_to=to)
        for to in ("membrane", "space")
    ],
    "analysis.surface_distances": lambda s: analysis.surface_distances(s.states, s.proteins, reach=15.0),
    "analysis.surface_radial_distribution": lambda s: analysis.surface_radial_distribution(
        s.states, s.proteins, r_max=15.0, bins=3
    ),
    "analysis.end_to_end": lambda s: s.asked(lambda source, **more: analysis.end_to_end(source, s.actin, **more)),
    "analysis.contour_curvature": lambda s: s.asked(
        lambda source, **more: analysis.contour_curvature(source, s.actin, **more)
    ),
    "analysis.tangent_correlation": lambda s: s.asked(
        lambda source, **more: analysis.tangent_correlation(source, s.actin, **more)
    ),
    "analysis.persistence_length": lambda s: s.asked(
        lambda source, **more: analysis.persistence_length(source, s.actin, 20.0, **more)
    ),
    "analysis.gyration_tensor": lambda s: [
        s.asked(partial(analysis.gyration_tensor, beads=beads)) for beads in (s.beads, s.vesicle, s.rod, s.proteins)
    ],
    "analysis.radius_of_gyration": lambda s: s.asked(
        lambda source, **more: analysis.radius_of_gyration(source, s.beads, **more)
    ),
    "analysis.curvatures": lambda s: [
        s.asked(partial(analysis.curvatures, membrane=membrane)) for membrane in (s.vesicle, s.patch)
    ],
    "analysis.mesh_order": lambda s: [
        s.asked(partial(analysis.mesh_order, membrane=membrane)) for membrane in (s.vesicle, s.patch)
    ],
    "analysis.reduced_volume": lambda s: s.asked(
        lambda source, **more: analysis.reduced_volume(source, s.vesicle, **more)
    ),
    "analysis.patch_spectrum": lambda s: s.asked(
        lambda source, **more: analysis.patch_spectrum(source, s.patch, **more).power
    ),
    "analysis.vesicle_spectrum": lambda s: s.asked(
        lambda source, **more: analysis.vesicle_spectrum(source, s.vesicle, l_max=3, **more).power
    ),
    "analysis.tether_force": lambda s: s.asked(lambda source, **more: analysis.tether_force(source, s.trap, **more)),
    "analysis.virial_stress": lambda s: analysis.virial_stress(s.context, 1.0),
    "analysis.surface_tension": lambda s: [
        analysis.surface_tension(s.context), analysis.surface_tension(s.context, s.vesicle)
    ],
    "analysis.constraint_multipliers": of_multipliers,
    "LinkLengthPenalty.multipliers": of_multipliers,
    "RigidTrianglePenalty.multipliers": of_multipliers,
    "Links.lengths": of_links, "Links.tensions": of_links, "Links.joined_in": of_links, "Links.sites_in": of_links,
    "Force.joined_in": of_links,
    "Force.longest_timestep": of_timesteps,
    "Sites.positions": lambda s: [
        modulo(sites.positions(state)) for sites in (s.mean, *s.links.sites, s.actin.sites([0, 1], [2, 3], 0.3))
        for state in (s.start,)
    ],
    "Sites.places": lambda s: [
        modulo(sites.places(frame, np.full(len(s.x[0]), -1))) for sites in (s.mean, s.actin.sites([0, 1], [2, 3], 0.3))
        for frame in s.frames
    ],
    "Rods.strains": of_rod,
    "MeshAttributes.contains": of_mesh, "TriangleMesh.__init__": of_mesh,
    "TriangleMesh.with_vertices": of_meshes_with_other_vertices,
    "Boundary.distance": of_walls, "Boundary.normals": of_walls, "_Round.distance": of_walls,
    "_Round.normals": of_walls,
    "Plane.distance": of_planes, "Plane.normals": of_planes,
    "Settable.set_positions": of_context, "Settable.set_state": of_context, "Context.get_state": of_context,
    "Reporter.report": of_table, "StateDataReporter.report": of_table,
    "draw": lambda s: [scene_of(s.context, {}).positions, scene_of(s.context, {}).links],
    "movie": lambda s: [scene_of(s.context, {}).positions],
    **dict.fromkeys(["show", "export_gltf", "export_html"], lambda s: [scene_of(s.context, {}).positions]),
}  # fmt: skip

_BEFORE = "beads are described, at any image; System refuses images of joined ones that are not next to each other"
_BODY = "a body, a molecule or a mesh file in its own frame, where there is no box"
_SURFACE = "implicit surfaces have no images, and beads on them are at places in space"
_STEPS = "asks for no distances"
#: And of each of the others why it is not asked.
NOT_ASKED = {
    **dict.fromkeys(["Directors.__init__", "Directors.add", "Filaments.__init__", "Filaments.add", "add_filament",
                     "add_filaments", "Balls.__init__", "Beads.__init__", "Beads.add", "add", "add_balls", "add_beads",
                     "OrientedBeads.__init__", "RigidBodies.add", "add_rigid_bodies", "Rods.__init__", "Rods.add",
                     "add_rod", "add_rods", "frames", "FilamentMaterial.arguments", "FilamentMaterial.__init__",
                     "RigidWater.arguments", "RigidWater.__init__", "Crosslinker.__init__", "Brancher.__init__",
                     "Links.__init__", "RigidMolecule.arguments",
                     "CircularSection.kirchhoff",
                     "HarmonicTrap.__init__", "Sites.anchors", "CustomMembraneField.__init__",
                     "DirectedPointCurvature.__init__", "MembraneField.__init__", "PointCurvature.__init__",
                     "PythonMembraneField.__init__"], _BEFORE),
    **dict.fromkeys(["bead_model_friction", "PrincipalAxes.to_body", "PrincipalAxes.to_space", "principal_axes",
                     "enclosing_ellipsoid", "ElasticNetwork.__init__", "Structure.__init__", "TriangleMesh.repair"],
                    _BODY),
    **dict.fromkeys(["SurfacePoints.__init__", "add_surface_points", "Ellipsoid.__init__",
                     "Sphere.__init__", "Torus.__init__", "PythonSurface.hessian", "Surface.gradient",
                     "Surface.hessian", "Surface.principal_curvatures", "Surface.project", "Surface.value"], _SURFACE),
    **dict.fromkeys(["Callback.report", "CheckpointReporter.report", "EventReporter.report", "Ramp.report",
                     "Exchanges.__init__", "check_mean", "check_chi_square", "check_same_distribution",
                     "check_same_mean", "check_tensor", "check_variance", "serialize", "System.name_of",
                     "Context.snapshot", "Sites.check", "Topology.bead_indices", "Topology.expect_awake",
                     "Topology.expect_places", "plot", "Kind.taken",
                     "average", "autocorrelation", "statistical_inefficiency", "Trajectory.read", "JumpCase.__init__",
                     "Jump.log_weight", "BoxArea.log_weight", "EdgeFlips.log_weight", "LinkBinding.log_weight",
                     "FormedJump.log_weight", "Adsorption.__init__", "TrialMoves.log_weight", "Kind.remade",
                     "Polymerization.log_weight", "Capping.log_weight", "HeadsJump.log_weight",
                     "HandleOfSpecies.counts", "Capping.caps", "Ageing.ages", "Ageing.known", "Ageing.state_of",
                     "Ageing.__init__", "Kind.expect_rows",
                     "MoleculePool.checked", "GrowingFilaments.subunits", "GrowingFilaments.lengths",
                     "GrowingFilaments.ages", "Lattice.numbers_in", "Links.states_in", "Sites.as_in",
                     "Sites.on_growing", "LinkingJump.take_links", "Settable.set_links"],
                    _STEPS),
    "mobility_matrix": "its box is asked for, and other images are seen by tests/hydrodynamics/test_lattice.py",
    "cluster_mobility_matrix": "clusters are in open space",
    "Kind.multipliers": "of links of filaments, whose nodes are next to each other in a Context",
    "Kind.multipliers_among": "likewise, of filaments with directors",
    "AdaptiveSteps.around": "its state is the density of steps, and no positions",
    "OrthonormalFramePenalty.multipliers": "columns are positions from the origin, whatever the box",
    "ConstraintPenalty.multipliers": "texts are functions of positions as they are, whatever the box",
    "export": "by test_files_show_the_same",
    "TrajectoryReporter.report": "by test_files_show_the_same",
}  # fmt: skip

#: Names of parameters that are positions, or have some.
_HAVE_PLACES = {"source", "state", "states", "frame", "frames", "positions", "points", "x", "trajectory", "places",
                "nodes", "vertices", "previous", "samples", "position", "center", "centers", "what"}  # fmt: skip
_MODULES = ["", "analysis", "visualize", "rigid", "presets", "reporters", "forces", "jumps", "surfaces",
            "hydrodynamics", "testing", "ensemble", "kicks", "boundaries", "beads", "rods"]  # fmt: skip


def callables():
    """Public functions, and methods of public classes, with the names of their parameters."""
    found = {}
    for module in (importlib.import_module(f"medyanpy.{name}".rstrip(".")) for name in _MODULES):
        for name in getattr(module, "__all__", dir(module)):
            one = getattr(module, name)
            if name.startswith("_") or not callable(one):
                continue
            inside = (
                [getattr(one, key) for key in type.__dir__(one) if not key.startswith("_")]
                if inspect.isclass(one) else [one]
            )
            for function in [*inside, *([one.__init__] if inspect.isclass(one) else [])]:
                if not callable(function) or inspect.isclass(function):
                    continue
                try:
                    parameters = inspect.signature(function).parameters
                except (TypeError, ValueError):
                    continue
                home = getattr(function, "__module__", "") or ""
                if home.startswith("medyanpy"):
                    found[home.split(".")[1] + "." + function.__qualname__] = set(parameters)
    return found


def test_everything_that_takes_places_is_here():
    """A new public function with positions, states or frames among its parameters has its line above."""
    known = {name.rpartition("analysis.")[2] for name in [*SAME, *NOT_ASKED]}
    missing = {
        name for name, parameters in callables().items()
        if parameters & _HAVE_PLACES and name.partition(".")[2] not in known
    }  # fmt: skip
    assert missing == set()
    there = {name.partition(".")[2] for name in callables()}
    assert known - there == set()


@pytest.mark.parametrize("name", SAME)
def test_nothing_depends_on_images(name, scenes):
    wanted, *others = (flat(SAME[name](scene)) for scene in scenes)
    assert wanted
    scale = max(np.abs(value[np.isfinite(value)]).max(initial=0.0) for value in wanted.values())
    for found in others:
        assert found.keys() == wanted.keys()
        for key, value in wanted.items():
            if value.dtype.kind in "iub":
                assert (found[key] == value).all(), key
                continue
            # Virials are differences of energies, known to 1e-9 of these.
            assert np.allclose(found[key], value, rtol=1e-6, atol=1e-9 * max(1.0, scale), equal_nan=True), key


def test_timesteps_in_a_box_are_those_of_open_space():
    """Of a chain of beads that touch, across a side of the box and by any images."""
    x = np.array([[0.0, 0, 0], [1.0, 0, 0], [2.0, 0, 0], [2.0, 1.0, 0]]) + [19.2, 19.7, 0.0]
    moved = x + 20.0 * np.random.default_rng(1).integers(-3, 4, x.shape)
    found = []
    for places, box in ((x, None), (x, (20.0, 20.0, 20.0)), (moved, (20.0, 20.0, 20.0))):
        topology = mp.Topology()
        topology.add_beads(places, mass=1e-6)
        forces = [
            F.SoftSphere([0, 1, 2, 3], [0, 1, 2, 3], 1.0, 1.2),
            F.CustomBonds([[0, 1], [1, 2]], "k*r^4", k=1.0),
            F.AngleLinks([0], [1], [2], 1.0, 2.0),
        ]
        found.append([force.longest_timestep(topology, box=box) for force in forces])
    assert np.allclose(found, found[0], rtol=1e-9)


def test_files_show_the_same(scenes, tmp_path):
    wanted, *others = (flat(of_export(scene, tmp_path)) for scene in scenes[:2])
    for found in others:
        for key, value in wanted.items():
            assert np.allclose(found[key], value, rtol=1e-6, atol=1e-6), key


# The accessor ---------------------------------------------------------------------------------------------------------


def test_distances_are_asked_of_one_accessor():
    """No module but `_tools.images` rounds to whole boxes. Files and pictures count whole boxes, readers of meshes ask
    whether numbers are whole, and fields take the image next to the origin."""
    home = Path(mp.__file__).parent
    texts = {str(path.relative_to(home)): path.read_text() for path in home.rglob("*.py")}
    assert {name for name, text in texts.items() if "np.rint(" in text} == {
        "_tools/images.py", "analysis/diffusion.py", "files/particles.py", "mesh/files.py", "mesh/images.py",
        "mesh/ply.py",
    }  # fmt: skip
    assert {name for name, text in texts.items() if "nearest_image" in text} == {
        "_tools/images.py", "forces/external.py"
    }  # fmt: skip
    assert texts["analysis/diffusion.py"].count("rint(") == texts["analysis/diffusion.py"].count(
        "counts = np.rint(counts)"
    )


def test_all_images_within_bounds():
    box, low, high = (10.0, None, 4.0), np.array([-12.0, 0.0, 1.0]), np.array([13.0, 5.0, 9.5])
    found = images_within(np.array([103.0, 2.0, -3.0]), low, high, box)
    assert sorted(map(tuple, found.tolist())) == [(x, 2.0, z) for x in (-7.0, 3.0, 13.0) for z in (1.0, 5.0, 9.0)]
    assert len(images_within(np.array([103.0, 6.0, -3.0]), low, high, box)) == 0
    assert images_within(np.array([1.0, 2.0, 3.0]), low, high, None).tolist() == [[1.0, 2.0, 3.0]]
    assert len(images_within(np.array([14.0, 2.0, 3.0]), low, high, None)) == 0


def test_places_of_boxes_of_their_own():
    """Of arrays of boxes each has its own."""
    rng = np.random.default_rng(3)
    x, boxes = rng.uniform(-50.0, 50.0, (6, 4, 3)), rng.uniform(5.0, 9.0, (6, 1, 3)) * [1.0, 0.0, 1.0]
    found = displacement(x, x[::-1], boxes)
    for k in range(6):
        assert (found[k] == displacement(x[k], x[5 - k], boxes[k, 0])).all()
        assert (found[k, :, 1] == x[5 - k, :, 1] - x[k, :, 1]).all()


def test_joined_beads_are_neighbours():
    """A ring, a chain and a bead, each bead at an image of its own."""
    rng = np.random.default_rng(4)
    angle = 2.0 * np.pi * np.arange(20) / 20
    x = np.concatenate([
        8.0 * np.column_stack([np.cos(angle), np.sin(angle), 0.0 * angle]), np.arange(30)[:, None] * [2.0, 0.5, 0.0],
        [[1.0, 2.0, 3.0]],
    ])  # fmt: skip
    joined = np.concatenate([
        np.column_stack([np.arange(20), np.roll(np.arange(20), -1)]),
        20 + np.column_stack([np.arange(29), np.arange(1, 30)])
    ])  # fmt: skip
    box = (20.0, 15.0, None)
    moved = x + box_lengths(box) * rng.integers(-4, 5, x.shape)
    found = next_to_each_other(moved, joined, box)
    for own in (slice(0, 20), slice(20, 50), slice(50, 51)):
        assert np.abs(found[own] - found[own][:1] - (x[own] - x[own][:1])).max() < 1e-12
        assert (found[own][0] == moved[own][0]).all()


def test_meshes_of_several_parts_are_at_several_images():
    """A vesicle in another one, and one that is longer than half of the box, each wrapped in its own way."""
    big, small = mp.TriangleMesh.icosphere(20.0, 2), mp.TriangleMesh.icosphere(8.0, 1)
    long = small.with_vertices(small.vertices * [5.5, 1.0, 1.0])
    vertices = np.concatenate([big.vertices, small.vertices[:, ::-1] + [300.0, -100.0, 200.0], long.vertices + 45.0])
    faces = np.concatenate([big.faces, small.faces[:, ::-1] + 162, long.faces + 162 + 42])
    mesh = mp.TriangleMesh((vertices + 3.0) % 100.0, faces, box=(100.0, 100.0, 100.0))
    assert len(mesh.components) == 3
    ask = np.array(
        [[0.0, 0, 15], [0.0, 0, 0], [0.0, 0, 25], [45.0, 45, 45], [85.0, 45, 45], [5.0, 45, 45], [45.0, 54, 45]]
    )
    # The inner one turns the other way where its corners have been exchanged twice: then it counts once more.
    wanted = [True, abs(2 * np.sign(small.volume)) > 0, False, True, True, True, False]
    for shift in ([0, 0, 0], [700.0, -300.0, 100.0]):
        assert mesh.contains(ask + 3.0 + shift).tolist() == wanted


# Shapes ---------------------------------------------------------------------------------------------------------------


def test_shapes_without_an_image_are_refused(scenes):
    scene = scenes[1]
    state = scene.start
    for source in (state, scene.frames[0]):
        for beads, why in ((scene.patch, "joined through the sides along x"), (scene.actin, "not joined are"),
                           ([scene.beads, scene.vesicle], "nothing says which")):  # fmt: skip
            refuses(mp.ParameterError, why, analysis.radius_of_gyration, source, beads)
    own = state.positions[scene.actin.beads]
    given = analysis.radius_of_gyration(state, scene.actin, images="given")
    assert given == pytest.approx(np.sqrt(((own - own.mean(axis=0)) ** 2).sum(axis=1).mean()), rel=1e-12)
    refuses(mp.ParameterError, "images", analysis.gyration_tensor, state, scene.beads, images="far")
    # One filament is one thing, however long.
    chain = mp.Topology().add_filament(np.arange(50)[:, None] * [3.0, 0.0, 0.0], node_mass=1.0)
    frame = SimpleNamespace(positions=chain.positions % 60.0, box=(60.0, 60.0, 60.0), time=0.0, ids=np.arange(50))
    assert analysis.radius_of_gyration(frame, chain) == pytest.approx(3.0 * np.sqrt((50**2 - 1) / 12.0), rel=1e-12)


def test_vesicles_that_flip_are_whole_by_their_triangles_of_now():
    """A vesicle that is wider than half of the box, whose neighbours of the start are anywhere by now."""
    ball = mp.TriangleMesh.icosphere(22.0, 2)
    vesicle = mp.Topology().add_membrane(ball, vertex_mass=1.0, name="vesicle")
    rng = np.random.default_rng(1)
    order = rng.permutation(len(vesicle))
    x = np.empty_like(ball.vertices)
    x[order] = ball.vertices
    frame = SimpleNamespace(positions=x + 60.0 * rng.integers(-3, 4, x.shape), box=(60.0, 60.0, 60.0), time=0.0,
                            ids=np.arange(len(x)), faces={"vesicle": order[ball.faces]})  # fmt: skip
    assert analysis.radius_of_gyration(frame, vesicle) == pytest.approx(22.0, rel=1e-9)


def test_membranes_that_close_through_the_box_enclose_nothing(scenes):
    for ask in (analysis.reduced_volume, partial(analysis.vesicle_spectrum, l_max=2)):
        refuses(mp.ParameterError, "closes through the sides of the box", ask, scenes[1].frames[0], scenes[1].patch)
    tube = mp.TriangleMesh.cylinder(6.0, 40.0, 16, periodic=True)
    with pytest.raises(mp.ParameterError, match="closes through the box along z"):
        analysis.patch_spectrum(tube.vertices, tube, box=(40.0, 40.0, 40.0))


# A box that changes ---------------------------------------------------------------------------------------------------


def test_displacements_in_a_box_that_changes_are_refused_or_scaled(scenes):
    frames = [
        SimpleNamespace(positions=np.array([[1.0, 2.0, 3.0], [7.0, 9.0, 5.0]]) * side + 1e4 * side, time=float(k),
                        box=(10.0 * side, 10.0 * side, 10.0), faces={}, ids=np.arange(2))
        for k, side in enumerate((1.0, 1.1, 0.9, 1.3))
    ]  # fmt: skip
    with pytest.raises(mp.ParameterError, match=r"10 nm long along x in frame 0 and 11 in frame 1.*scaled=True"):
        analysis.mean_square_displacement(frames)
    still = analysis.mean_square_displacement(frames, axes="xy", scaled=True, lags=[1, 2, 3])
    assert still.value.max() < 1e-15
    # Along z nothing changes, and what is given as an array may be wrapped.
    for one in frames:
        one.positions[:, 2] = one.time
    assert analysis.mean_square_displacement(frames, axes="z", lags=[2]).value[0] == pytest.approx(4.0)
    x = np.array([one.positions for one in frames]) + LENGTHS[2] * np.random.default_rng(1).integers(-3, 4, (4, 2, 1))
    boxes = [(None, None, LENGTHS[2])] * 4
    moved = analysis.mean_square_displacement(x, axes="z", lags=[2], interval=1.0, box=boxes)
    assert moved.value[0] == pytest.approx(4.0)
    # About a middle that moves with the box it is known where beads are.
    middle = np.array([one.positions[0] for one in frames])
    analysis.mean_square_displacement(frames, [1], lags=[1], sphere=middle)
    refusals = [
        (lambda: analysis.mean_square_displacement(frames, [1], sphere=[0.0, 0, 0]), "a middle in each frame"),
        (lambda: analysis.mean_square_displacement(frames, [1], sphere=middle, scaled=True), "give no scaled="),
        (lambda: analysis.mean_square_displacement(frames, box=(1.0, 1.0, 1.0)), "these frames have their own"),
        (lambda: analysis.mean_square_displacement(x, interval=1.0, scaled=True), "these frames have none"),
    ]
    for refused, message in refusals:
        refuses(mp.ParameterError, message, refused)
    same = scenes[0].states
    plain, scaled = (
        analysis.mean_square_displacement(same, scenes[0].beads, lags=[2], scaled=on).value[0] for on in (False, True)
    )
    assert scaled == pytest.approx(plain, rel=1e-12)


@pytest.mark.slow
def test_ideal_beads_diffuse_in_units_of_a_box_that_follows_a_pressure():
    """6Dt, false alarms 2e-6 for the two lags; a factor of ⟨L⟩²⟨L⁻²⟩, which is 1.02 here, is seen, and so is the drift
    with the box, which is 30 times more, from an origin that is 400 nm away."""
    n, kT, gamma, dt = 16, 1.0, 1.0, 0.01
    topology = mp.Topology()
    topology.add_beads(np.random.default_rng(1).uniform(0.0, 10.0, (n, 3)) + 400.0, mass=1.0, friction=gamma)
    system = mp.System(topology, box=(10.0, 10.0, 10.0))
    system.add_jump(mp.jumps.BoxArea(pressure=(n + 1) * kT / 1000.0, rate=100.0, step=0.15))
    context = mp.Context(system, mp.BrownianIntegrator(dt, kT=kT, seed=2), threads=1)
    states = []
    for _ in range(9000):
        context.step(1)
        states.append(context.get_state(positions=True))
    sides = np.array([state.box[0] for state in states])
    assert np.mean(sides) ** 2 * np.mean(sides**-2.0) > 1.012
    moved = analysis.mean_square_displacement(states, lags=[1, 4], scaled=True)
    wanted = 6.0 * kT / gamma * moved.time
    assert (moved.error < 0.003 * wanted * [1.0, 1.7]).all()
    assert (np.abs(moved.value - wanted) < 4.9 * moved.error).all()
