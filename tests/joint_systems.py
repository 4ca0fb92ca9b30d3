"""Systems of bodies, rods, vertices and beads that joints and other constraints hold together, and where these are."""

import numpy as np
import pytest
from builders import system_with
from constraint_systems import DISTANCE

import medyanpy as mp
from medyanpy.testing import thermal

TURNED = np.array([0.8, 0.3, -0.4, np.sqrt(1.0 - 0.8**2 - 0.3**2 - 0.4**2)])


def turned(q, v):
    """Vectors v (..., 3) after the rotation q (..., 4)."""
    q, v = np.broadcast_arrays(*(np.asarray(a, float) for a in (q, np.concatenate([np.zeros((*np.shape(v)[:-1], 1)), v],
                                                                                 axis=-1))))  # fmt: skip
    s = 2.0 * np.cross(q[..., 1:], v[..., 1:])
    return v[..., 1:] + q[..., :1] * s + np.cross(q[..., 1:], s)


def within(q, v):
    return turned(np.asarray(q) * [1.0, -1.0, -1.0, -1.0], v)


class Held:
    """The gaps of joints in a state, (r,), by the texts of constraints over their gradients, and those allowed."""

    def __init__(self, topology):
        self.rows = [rows for handle in topology.handles if isinstance(handle, mp.beads.Constraints)
                     for rows in handle.kind.constraint_rows()]  # fmt: skip
        self.allowed = np.concatenate([rows.scale for rows in self.rows])

    @staticmethod
    def all_orientations(topology, state):
        q = np.tile([1.0, 0.0, 0.0, 0.0], (topology.n_beads, 1))
        q[topology.beads_with("oriented")] = state.orientations
        return q

    def gaps(self, topology, state):
        q = self.all_orientations(topology, state)
        out = []
        for rows in self.rows:
            x = state.positions[rows.beads]
            if rows.arms is not None:
                x = x + turned(q[rows.beads], rows.arms)
            g, slope = rows.form.at(x, rows.own)
            out.append(g / np.sqrt(np.sum(slope**2, axis=(1, 2))))
        return np.concatenate(out)


def bodies_in_a_chain(topology, tolerance=1e-13):
    """A body that hangs from a place in space, one at a ball joint of it, and one at a hinge of that; all lopsided."""
    x = np.array([[0.0, 0.0, 0.0], [0.0, 1.5, 1.0], [1.0, 3.0, 0.5]])
    q = np.array([TURNED, [1.0, 0.0, 0.0, 0.0], TURNED * [1, -1, 1, -1]])
    bodies = topology.add_rigid_bodies(x, q, [1.0, 2.0, 1.5], [[1.0, 0.7, 1.4], [0.5, 0.8, 0.6], [0.9, 0.6, 0.7]],
                                       np.diag([0.3, 0.5, 0.4, 0.6, 0.2, 0.3]))  # fmt: skip
    top, ball, hinge = np.array([0.3, -1.0, 0.2]), np.array([0.1, 0.9, 0.4]), np.array([0.4, 2.2, 0.9])
    one, two, three = (bodies.sites(np.array([within(q[k], p - x[k]) for k in range(3)])[:, None])[[k]]
                       for k, p in ((0, top), (1, hinge), (2, hinge)))  # fmt: skip
    topology.join(one, mp.Sites.anchors([top]), tolerance=tolerance, name="hook")
    a, b = (bodies.sites(np.array([within(q[k], ball - x[k]) for k in range(3)])[:, None])[[k]] for k in (0, 1))
    topology.join(a, b, tolerance=tolerance, name="ball")
    topology.join(two, three, "hinge", axes=[0.2, 1.0, -0.5], tolerance=tolerance, name="hinge")


def rods_and_a_filament(topology, tolerance=1e-13):
    """Two rods at a hinge, the second fixed to a body, and a filament from its tip to a bead at a ball joint."""
    nodes, frames = mp.rods.uniform(4, 1.0, curvature=[0.1, 0.0, 0.05])
    rod = topology.add_rod(nodes, frames, 1.0, 1.0, [0.4, 0.5, 0.6], (0.2, 0.4), rotational_friction=0.3, name="one")
    end = nodes[-1] + turned(frames[-1], [0.0, 0.0, 0.5])
    straight, plain = mp.rods.uniform(3, 1.0)
    other = topology.add_rod(end + straight + [0, 0, 0.5], plain, 1.0, 0.8, [0.5, 0.4, 0.6], 0.3,
                             rotational_friction=0.2, name="two")  # fmt: skip
    topology.join(rod.tips("end"), other.tips("start"), "hinge", axes=[[1.0, 0.3, 0.0]], tolerance=tolerance)
    body = topology.add_rigid_bodies([end + [0.5, 0.0, 3.5]], [TURNED], 1.2, [0.6, 0.8, 0.7], (0.4, 0.2))
    topology.join(other.tips("end"), body.sites(within(TURNED, [[-0.5, 0.0, -0.5]])), "fixed", tolerance=tolerance)
    chain = topology.add_filament([nodes[0] + [0.0, 0.0, -0.5], nodes[0] + [0.6, 0.0, -1.0],
                                   nodes[0] + [0.9, 0.4, -1.7]], 1.0, 0.3, tolerance=tolerance)  # fmt: skip
    topology.join(chain.beads[:1], rod.tips("start"), tolerance=tolerance)
    bead = topology.add_beads([nodes[0] + [0.9, 1.4, -1.7]], 2.0, 0.1)
    topology.constrain(DISTANCE, [chain.beads[2], bead.beads[0]], d=1.0, tolerance=tolerance)
    # The middle of the first rod keeps its distance from a place that is fixed to the body.
    arm = np.array([0.0, 0.3, 0.2])
    d = np.linalg.norm(nodes[2] - (body.positions[0] + turned(TURNED, arm)))
    topology.constrain(DISTANCE, [rod.beads[2], body.beads[0]], arms=[[0.0, 0.0, 0.0], arm], d=d, tolerance=tolerance)


def bodies_on_a_vesicle(topology, tolerance=1e-13):
    """A vesicle with points in it; a body at a ball joint of a vertex, one at a place in a triangle, another vertex at
    a distance from a bead."""
    mesh = mp.TriangleMesh.icosphere(3.0, 1)
    vesicle = topology.add_membrane(mesh, 1.0, 0.2)
    topology.add_intriangle_points(vesicle, 20, mass=0.5, friction=0.3, seed=2)
    tip = mesh.vertices[3]
    body = topology.add_rigid_bodies([1.3 * tip], [TURNED], 1.0, [0.5, 0.6, 0.7], (0.3, 0.4))
    topology.join(vesicle.beads[3:4], body.sites(within(TURNED, [-0.3 * tip])), tolerance=tolerance)
    bead = topology.add_beads([1.5 * mesh.vertices[7]], 1.0, 0.5)
    topology.constrain(DISTANCE, [vesicle.beads[7], bead.beads[0]], d=1.5, tolerance=tolerance)
    centre = topology.add_rigid_bodies([1.4 * mesh.vertices[9]], [TURNED], 1.0, [0.5, 0.6, 0.7], (0.3, 0.4))
    topology.constrain(DISTANCE, [vesicle.beads[9], centre.beads[0]], d=1.2, tolerance=tolerance)
    # In a triangle of none of these vertices.
    corners = next(face for face in mesh.faces if not np.isin(face, [3, 7, 9]).any())
    place = mp.Sites.weighted(vesicle.beads[[corners]], [[0.5, 0.3, 0.2]])
    foot = np.array([0.5, 0.3, 0.2]) @ mesh.vertices[corners]
    stands = topology.add_rigid_bodies([1.3 * foot], [TURNED], 1.0, [0.5, 0.6, 0.7], (0.3, 0.4))
    topology.join(stands.sites(within(TURNED, [-0.3 * foot])), place, tolerance=tolerance)


def bodies_at_points(topology, tolerance=1e-13):
    """A vesicle with points in it: one at a ball joint of a body, one at a distance from a bead, two from each other,
    one from a vertex, and one at the end of a filament."""
    mesh = mp.TriangleMesh.icosphere(3.0, 1)
    vesicle = topology.add_membrane(mesh, 1.0, 0.2)
    points = topology.add_intriangle_points(vesicle, 20, mass=0.5, friction=0.3, seed=2)
    x = points.positions
    body = topology.add_rigid_bodies([1.3 * x[0]], [TURNED], 1.0, [0.5, 0.6, 0.7], (0.3, 0.4))
    topology.join(points.beads[:1], body.sites(within(TURNED, [-0.3 * x[0]])), tolerance=tolerance)
    bead = topology.add_beads([1.4 * x[1]], 1.0, 0.5)
    vertex = np.argmin(np.linalg.norm(mesh.vertices - x[4], axis=1))
    near = 1 + np.argsort(np.linalg.norm(x[1:] - x[5], axis=1))
    pairs = np.array([[points.beads[1], bead.beads[0]], points.beads[near[:2]],
                      [points.beads[4], vesicle.beads[vertex]]])  # fmt: skip
    ends = topology.start_positions(pairs)
    topology.constrain(DISTANCE, pairs, d=np.linalg.norm(ends[:, 0] - ends[:, 1], axis=1), tolerance=tolerance)
    chain = topology.add_filament([x[7], 1.2 * x[7], 1.2 * x[7] + [0.3, 0.4, 0.0]], 0.8, 0.4, tolerance=tolerance)
    topology.join(points.beads[7:8], chain.beads[:1], length=1.0, tolerance=tolerance)


def in_space(topology, state):
    """Velocities (n, 3) of where beads are: points also ride."""
    v = state.velocities.copy()
    for points in topology.point_handles:
        faces, own = state.faces[points.membrane.name], state.intriangle
        corners = points.membrane.beads[faces[own.triangles[points.points]]]
        v[points.beads] += np.einsum("pi,pic->pc", own.barycentric[points.points], state.velocities[corners])
    return v


SYSTEMS = {f.__name__.replace("_", " "): f
           for f in (bodies_in_a_chain, rods_and_a_filament, bodies_on_a_vesicle, bodies_at_points)}  # fmt: skip
every_system = pytest.mark.parametrize("build", SYSTEMS.values(), ids=SYSTEMS)


def made(build, word="BAB", h=0.02, kT=1.0, tolerance=1e-13, threads=1, order=2, heat=0.3, **more):
    """A context of a system with springs to places beside the start, and what turns bodies and bends rods."""
    topology = mp.Topology()
    build(topology, tolerance)
    forces = []
    if not topology.point_handles:
        beads = np.concatenate([h.beads for h in topology.handles if len(h)])
        center = np.random.default_rng(3).normal(0.0, 0.5, (len(beads), 3)) + [0.0, 1.0, 1.0]
        # Rods must not fold: they have no energy there.
        forces.append(mp.forces.HarmonicTrap(beads, 1.0 if len(beads) < 5 else 0.2, center))
    else:
        forces.append(mp.forces.MembraneEdgeSprings(topology.membranes[0], stiffness=5.0))
        forces.append(mp.forces.HarmonicTrap(np.concatenate([h.beads for h in topology.oriented_handles]), 1.0,
                                             [0.0, 0.0, 0.0]))  # fmt: skip
    for handle in topology.oriented_handles:
        if isinstance(handle, mp.beads.Rods):
            forces.append(mp.forces.RodElasticity(handle, [20.0, 20.0], 30.0, [9.0, 9.0], 9.0))
        else:
            sites = handle.sites([[0.5, -0.2, 0.3]])
            goals = mp.Sites.anchors(np.tile([2.0, 0.0, 1.0], (len(sites), 1)))
            forces.append(mp.forces.Links(sites, goals, stiffness=1.0, length=1.0))
    word = word if not topology.point_handles or "G" in word else word.replace("A", "AGA").replace("AGAOAGA", "AGOGA")
    system = system_with(topology, *forces)
    context = mp.Context(system, mp.SplittingIntegrator(word, h, kT=thermal(word, kT), seed=5, order=order, **more),
                         threads=threads)  # fmt: skip
    context.set_velocities_to_temperature(kT=heat, seed=2)
    return context


def whole(context, **more):
    return context.get_state(positions=True, velocities=True, **more)
