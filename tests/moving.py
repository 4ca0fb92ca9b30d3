"""What moves in the matrix of bits: every kind of bead, force and jump, and the words that move them."""

import functools

import numpy as np
from builders import system_with

import medyanpy as mp
from medyanpy import forces
from medyanpy._tools.quaternions import turned

#
# Each builds a new System, large enough that its loops really run in parallel (four blocks; the largest blocks are
# of 8192 beads). If numbers or terms change during the run, it also returns {step: what is done to the system then}.


@functools.cache
def sphere(radius, subdivisions):
    return mp.TriangleMesh.icosphere(radius, subdivisions)


def vesicle():
    """Beads, balls, a membrane that moves and points that push it."""
    rng = np.random.default_rng(1)
    topology = mp.Topology()
    topology.add_beads(rng.normal(0.0, 2.0, (18000, 3)), mass=1.0, friction=0.3, name="solvent")
    membrane = topology.add_membrane(sphere(20.0, 5), vertex_mass=1.0, vertex_friction=0.5)
    points = topology.add_intriangle_points(membrane, 6500, mass=rng.uniform(0.5, 1.0, 6500),
                                            friction=rng.uniform(0.0, 1.0, 6500), seed=3)  # fmt: skip
    topology.add_balls(rng.normal(0.0, 3.0, (50, 3)), 0.5, mass=2.0, friction=1.0)
    system = system_with(topology, forces.MembraneEdgeSprings(membrane, 30.0))
    pairs = np.column_stack([points.beads[:2000], rng.choice(3000, 2000)])
    system.add_force(forces.HarmonicBonds(pairs, 0.1, 8.0, group=1))
    return system


def points_on_a_fixed_mesh():
    topology = mp.Topology()
    membrane = topology.add_membrane(mp.TriangleMesh.torus(10.0, 4.0, 30, 15), vertex_mass=1.0, fixed=True)
    points = topology.add_intriangle_points(membrane, 6500, mass=1.0, friction=0.4, seed=2)
    system = system_with(topology, forces.UniformField(points, [1.0, 2.0, 3.0]))
    return system


def free_beads():
    """A chain whose next-nearest neighbours are joined too, by a force of another group."""
    rng = np.random.default_rng(2)
    topology = mp.Topology()
    n = topology.add_beads(rng.normal(0.0, 5.0, (26000, 3)), mass=rng.uniform(1.0, 2.0, 26000), friction=0.2).beads
    system = system_with(topology, forces.HarmonicBonds(np.column_stack([n[:-1], n[1:]]), 1.0, 1.0))
    stiffness = rng.uniform(0.0, 1.0, len(n) - 2)
    system.add_force(forces.HarmonicBonds(np.column_stack([n[:-2], n[2:]]), stiffness, 2.0, group=1))
    return system


def lattice(rng, n, spacing):
    """n places in random order."""
    side = int(np.ceil(n ** (1 / 3)))
    x = np.stack(np.unravel_index(rng.permutation(side**3)[:n], (side,) * 3), 1) * spacing
    return x - x.mean(axis=0)


def fluid():
    """WCA dimers: their bonds are excluded, the list is built anew now and then."""
    rng = np.random.default_rng(3)
    topology = mp.Topology()
    beads = topology.add_beads(lattice(rng, 4500, 1.06), mass=rng.uniform(0.5, 2.0, 4500), friction=1.0)
    bonds = beads.beads.reshape(-1, 2)
    system = system_with(topology, forces.WCA(beads, beads, 1.0, 1.0, exclusions=bonds, skin=0.15),
                         forces.HarmonicBonds(bonds, 0.05, 1.0, group=1),
                         forces.HarmonicTrap(beads, 0.3, [0.0, 0.0, 0.0], group=1))  # fmt: skip
    return system


def charged_water(box=None):
    """Rigid molecules, charges at any distance, or with all of their images, and oxygens that attract each other."""
    rng, water = np.random.default_rng(17), mp.presets.tip3p()
    topology = mp.Topology()
    arguments = water.arguments(lattice(rng, 60, 0.3), seed=2)
    arguments.update(nodes=10.0 * arguments["nodes"], link_lengths=10.0 * arguments["link_lengths"], node_mass=1.0)
    molecules = topology.add_filaments(**arguments)
    oxygens, within = molecules.beads[1::3], molecules.beads[molecules.links]
    system = mp.System(topology, box=box)
    cutoff = None if box is None else 5.0
    system.add_force(forces.Coulomb(molecules, np.tile(water.charges, 60), 0.3, exclusions=within, cutoff=cutoff))
    system.add_force(forces.LennardJones(oxygens, oxygens, 0.2, 2.5, cutoff=cutoff, group=1))
    system.add_force(forces.LennardJones(molecules, molecules, 0.01, 0.5, cutoff=2.0, exclusions=within, skin=0.1))
    return system


def soft_spheres():
    """Balls of many sizes among themselves, and against points of a membrane, in wells beside."""
    rng = np.random.default_rng(4)
    topology = mp.Topology()
    balls = topology.add_balls(lattice(rng, 2000, 1.0), rng.uniform(0.4, 0.7, 2000), mass=1.0, friction=0.5)
    membrane = topology.add_membrane(sphere(7.0, 4), vertex_mass=1.0)
    points = topology.add_intriangle_points(membrane, 1500, mass=1.0, friction=0.2, seed=5)
    system = system_with(topology, forces.SoftSphere(balls, balls, 20.0, skin=0.1),
                         forces.SoftSphere(balls, points, 5.0, 1.2, group=1),
                         forces.Ricker(points, balls, 0.5, 1.0, cutoff=2.5, skin=0.1),
                         forces.MembraneEdgeSprings(membrane, 30.0))  # fmt: skip
    return system


def points_that_meet_along_membranes():
    """Wells along two membranes, one of them open, with paths that bend at vertices."""
    rng = np.random.default_rng(18)
    topology = mp.Topology()
    system = mp.System(topology)
    bumpy = sphere(8.0, 3).vertices * rng.normal(1.0, 0.03, (642, 1))
    sheet = mp.TriangleMesh.flat_sheet(16, 16, 1.5)
    meshes = sphere(8.0, 3).with_vertices(bumpy), sheet.with_vertices(sheet.vertices + rng.normal(0, 0.2, (256, 3)))
    membranes = [topology.add_membrane(mesh, vertex_mass=1.0, vertex_friction=0.2) for mesh in meshes]
    points = [topology.add_intriangle_points(m, 300, mass=1.0, friction=0.2, seed=5) for m in membranes]
    for membrane in membranes:
        system.add_force(forces.MembraneEdgeSprings(membrane, 30.0, name=membrane.name))
    system.add_force(forces.Ricker(points, points, 0.2, 1.0, cutoff=3.0, along_surface=True, skin=0.2))
    system.add_force(forces.SoftSphere(points[0], points, 1.0, 1.0, along_surface=True, group=1))
    more = topology.add_intriangle_points(membranes[0], 4500, mass=1.0, friction=0.2, seed=6)
    system.add_force(forces.MembraneField(more, rng.normal(0.0, 1.0, 642)))
    return system


def bending(form):
    def build():
        rng = np.random.default_rng(6)
        topology = mp.Topology()
        mesh = sphere(10.0, 4)
        membrane = topology.add_membrane(mesh, vertex_mass=1.0, vertex_friction=0.3)
        topology.add_intriangle_points(membrane, 1100, mass=1.0, friction=0.3, seed=7)
        system = mp.System(topology)
        kappa = rng.uniform(1.0, 3.0, len(mesh.vertices))
        system.add_force(forces.MembraneBending(membrane, kappa, 0.05, form))
        system.add_force(forces.MembraneArea(membrane, 10.0, per_triangle=form == "dihedral", group=1))
        system.add_force(forces.MembraneVolume(membrane, 5.0, 1.1 * mesh.volume, group=1))
        system.add_force(forces.MembraneTension(membrane, 0.2))
        return system

    return build


def fields_and_python():
    rng = np.random.default_rng(8)
    topology = mp.Topology()
    beads = topology.add_beads(rng.normal(0.0, 3.0, (9000, 3)), mass=1.0, friction=0.1)
    topology.add_beads(rng.normal(0.0, 3.0, (500, 3)), mass=1.0)
    some = rng.permutation(beads.beads)[:8500]
    system = system_with(topology, forces.HarmonicTrap(some, [1.0, 0.5, 0.2], rng.normal(size=(8500, 3))),
                         forces.UniformField(some, [0.1, 0.2, 0.3], group=1),
                         forces.PythonForce(quartic, group=1))  # fmt: skip
    depth = rng.uniform(0.5, 1.0, 8500)
    written = "depth*cos(k*x)*exp(-y^2/9)/sqrt(1 + log(2 + z^2))"
    system.add_force(forces.ExternalField(some, written, depth=depth, k=2.0))
    others = "depth*(tanh(x)*erf(y/3) + asinh(z)) + abs(x*y)^1.3/9 + select(step(z), atan2(y, z + 9), max(x, y)/2)"
    system.add_force(forces.ExternalField(beads, others, depth=0.7, name="others"))
    bonds = "depth*sinh(r/19)^2 + min(r, a)^2.5/99 + exp(-r)*cot(r/99 + 1)"
    system.add_force(forces.CustomBonds(some.reshape(-1, 2), bonds, depth=depth[::2], a=4.0, group=1))
    return system


def quartic(x):
    square = x * x
    return 0.025 * float((square * square).sum()), -0.1 * square * x


def numbers_that_change():
    """`force.set` before steps 5 and 9: the list of neighbours is made anew, the trap becomes another."""

    def soften(system):
        wca, _, trap = system.forces
        wca.set(epsilon=0.5, skin=0.2)
        trap.set(center=[0.5, 0.0, 0.0])

    def shrink(system):
        wca, bonds, _ = system.forces
        wca.set(sigma=0.9)
        bonds.set(stiffness=np.linspace(0.0, 0.1, len(bonds.pairs)))

    return fluid(), {5: soften, 9: shrink}


def links_that_come_and_go():
    """Links and spheres between beads, points, weighted sites and anchors."""
    rng = np.random.default_rng(9)
    sites = mp.Sites
    topology = mp.Topology()
    beads = topology.add_beads(rng.normal(0.0, 4.0, (5000, 3)), mass=1.0, friction=0.3)
    membrane = topology.add_membrane(sphere(8.0, 4), vertex_mass=1.0, vertex_friction=0.3)
    points = topology.add_intriangle_points(membrane, 1100, mass=1.0, friction=0.2, seed=5)
    system = system_with(topology, forces.MembraneEdgeSprings(membrane, 30.0))
    n = beads.beads
    middles = sites.weighted(np.column_stack([n[0::2], n[1::2]]), np.tile([0.7, 0.3], (2500, 1)))
    system.add_force(forces.Links(middles, n[::-2], rng.uniform(0.5, 1.0, 2500), 1.0, name="links"))
    ends = sites.beads(points) + sites.beads(n[:900])
    anchors = sites.anchors(rng.normal(0.0, 4.0, (2000, 3)))
    system.add_force(forces.Links(ends, anchors, 1.0, 2.0, one_sided=True, group=1, name="ropes"))
    system.add_force(forces.SoftSphere(middles[:1500], points, 3.0, 1.5, group=1))

    def grow(system):
        links, ropes = system.forces[1:3]
        links.add(n[:700], points.beads[:700], 0.3, 2.0)
        ropes.add(n[1000:2000], middles[:1000])

    def cut(system):
        links, ropes = system.forces[1:3]
        links.remove(np.arange(0, 2500, 3))
        ropes.remove(ropes.ids[-500:])

    def rearrange(system):
        links, ropes = system.forces[1:3]
        links.move(links.ids[100:400], b=points.beads[:300])
        ropes.move(ropes.ids[5:25], a=middles[40:60], b=sites.anchors(np.zeros((20, 3))))

    return system, {3: grow, 6: cut, 10: rearrange}


def angles_that_come_and_go():
    """Angles at sites of filaments, points and anchors, and between directions."""
    rng = np.random.default_rng(13)
    topology = mp.Topology()
    nodes = rng.normal(0.0, 5.0, (250, 1, 3)) + np.cumsum(rng.normal(0.0, 0.3, (250, 12, 3)) + [1.0, 0, 0], axis=1)
    chains = topology.add_filaments(list(nodes), node_mass=1.0, node_friction=0.5)
    membrane = topology.add_membrane(sphere(8.0, 4), vertex_mass=1.0, vertex_friction=0.3)
    points = topology.add_intriangle_points(membrane, 1100, mass=1.0, friction=0.2, seed=5)
    system = system_with(topology, forces.MembraneEdgeSprings(membrane, 30.0))

    def somewhere(n):
        return chains.sites(rng.integers(0, 250, n), rng.integers(0, 11, n), rng.uniform(0.0, 1.0, n))

    anchors = mp.Sites.anchors(rng.normal(0.0, 4.0, (1100, 3)))
    rest = rng.uniform(0.0, np.pi, 2200)
    corners = (somewhere(2200), mp.Sites.beads(points) + somewhere(1100), anchors + somewhere(1100))
    system.add_force(forces.AngleLinks(*corners, 1.0, rest))
    system.add_force(forces.DirectionLinks(*(somewhere(2200) for _ in range(4)), 2.0, rest, group=1))

    def change(system):
        corners, crossings = system.forces[1:3]
        points = system.topology.handles[2].beads
        corners.remove(np.arange(0, 2200, 3))
        crossings.add(*(points[k::4] for k in range(4)), angle=1.0)
        crossings.move(crossings.ids[100:200], b=anchors[:100], c=points[:100])

    return system, {6: change}


def chains_and_rings(rng, **options):
    """A topology with chains and rings of many lengths, one of each long enough to be cut into segments, some held."""

    def nodes(n, closed):
        turns = rng.normal(0.0, 0.2 if n < 100 else 0.05, (n, 3)) + [1.0, 0.0, 0.0]
        if closed:
            phi = np.arange(n) * (2.0 * np.pi / n)
            return n / 6.0 * np.column_stack([np.cos(phi), np.sin(phi), rng.normal(0.0, 0.02, n)]) + rng.normal(
                0.0, 5.0, 3
            )
        return np.cumsum(turns, axis=0) + rng.normal(0.0, 5.0, 3)

    topology = mp.Topology()
    for closed, counts in ((False, [*rng.integers(2, 40, 70), 601]), (True, [*rng.integers(3, 40, 50), 600])):
        n = int(sum(counts))
        topology.add_filaments([nodes(m, closed) for m in counts], rng.uniform(0.5, 2.0, n), rng.uniform(0.0, 5.0, n),
                               closed=closed, fixed_nodes=np.cumsum(counts)[:9], **options)  # fmt: skip
    return topology


def filaments():
    topology = chains_and_rings(np.random.default_rng(11))
    system = mp.System(topology)
    handles = list(topology.handles)
    links = np.concatenate([h.beads[h.links] for h in handles])
    system.add_force(forces.SoftSphere(handles, handles, 5.0, 0.8, exclusions=links, skin=0.2))
    system.add_force(forces.HarmonicTrap(handles, [0.01, 0.02, 0.03], [0.0, 0.0, 0.0], group=1))
    return system


def shapes_that_collide():
    """Filaments, balls and points of a vesicle, all against all, and ellipsoids; lists are made anew now and then."""
    rng = np.random.default_rng(14)
    topology = mp.Topology()
    membrane = topology.add_membrane(sphere(9.0, 3), vertex_mass=1.0, vertex_friction=0.3)
    points = topology.add_intriangle_points(membrane, 600, mass=1.0, friction=0.2, seed=5)
    nodes = rng.normal(0.0, 4.0, (140, 1, 3)) + np.cumsum(rng.normal(0.0, 0.3, (140, 9, 3)) + [0.5, 0, 0], axis=1)
    chains = topology.add_filaments(list(nodes), node_mass=1.0, node_friction=0.5)
    balls = topology.add_balls(rng.normal(0.0, 4.0, (400, 3)), rng.uniform(0.2, 0.5, 400), mass=1.0, friction=0.5)
    system = mp.System(topology)
    shapes = [membrane, chains, balls, points]
    system.add_force(forces.SoftCollisions(shapes, 20.0, [0.3, 0.2, None, 0.25], skin=0.15))
    q = rng.normal(size=(300, 4))
    q /= np.linalg.norm(q, axis=1)[:, None]
    x = rng.normal(size=(300, 3))
    x *= rng.uniform(5.0, 9.0, (300, 1)) / np.linalg.norm(x, axis=1)[:, None]
    bodies = topology.add_rigid_bodies(x, q, 1.0, (0.5, 0.5, 0.2), (0.3, 0.5))
    axes = rng.uniform(0.3, 1.5, (300, 3))
    system.add_force(forces.EllipsoidCollisions(bodies, shapes, 2.0, axes, [0.3, 0.2, None, 0.25], form="soft",
                                                skin=0.15))  # fmt: skip
    system.add_force(forces.MembraneEdgeSprings(membrane, 30.0, group=1))
    return system


def twistable_filaments():
    """With all that acts on them inside."""
    topology = chains_and_rings(np.random.default_rng(17), directors="parallel", director_mass=0.7,
                                director_friction=0.4)  # fmt: skip
    system = mp.System(topology)
    for handle in topology.handles:
        if isinstance(handle, mp.topology.Filaments):
            name = "rings" if handle.closed else "chains"
            n = len(forces.FilamentBending(handle, 1.0).joints)
            system.add_force(forces.FilamentBending(handle, 3.0, name=f"bending of {name}"))
            rest = np.linspace(-5.0, 5.0, n)
            system.add_force(forces.FilamentTwisting(handle, 2.0, rest, group=1, name=f"twisting of {name}"))
            system.add_force(forces.FixmanPotential(handle, kT=1.0, name=f"metric of {name}"))
    return system


@functools.cache
def places_on_surfaces():
    surfaces = [
        (mp.surfaces.Lemniscate(2, a=8.0, r=1.0), None, 1500),
        (mp.surfaces.Torus(9.0, 2.0, axis=[1.0, 2.0, 2.0]), None, 701),
        (mp.surfaces.Gyroid(6.0, 0.2), [[-7.0] * 3, [7.0] * 3], 1200),
        (mp.surfaces.Polynomial("(x**4 + y**4 + z**4)/c**3 - c", c=6.0), [[-7.0] * 3, [7.0] * 3], 330),
    ]
    return [(surface, surface.sample(n, i, box=box)) for i, (surface, box, n) in enumerate(surfaces)]


def beads_on_surfaces():
    """On four surfaces, in all operations of their programs; those of one push each other, and links tie two."""
    rng = np.random.default_rng(19)
    topology = mp.Topology()
    handles = [
        topology.add_surface_points(surface, places, rng.uniform(1.0, 2.0, len(places)), 0.3 * i)
        for i, (surface, places) in enumerate(places_on_surfaces())
    ]
    system = system_with(topology, forces.SoftSphere(handles[0], handles[0], 2.0, 0.6, skin=0.2))
    pairs = np.column_stack([handles[1].beads[:300], rng.permutation(handles[2].beads)[:300]])
    system.add_force(forces.HarmonicBonds(pairs, 0.1, 1.0))
    system.add_force(forces.UniformField(handles, [0.0, 0.3, -1.0], group=1))
    return system


def beads_that_feel_each_other_along_a_surface():
    """With geodesics of all lengths, on all instructions of programs; lists are built anew now and then."""
    rng = np.random.default_rng(29)
    topology = mp.Topology()
    shapes = [(mp.surfaces.Lemniscate(2, a=8.0, r=1.2), None, 500, 0.7),
              (mp.surfaces.Torus(6.0, 1.0, axis=[1.0, 2.0, 2.0]), None, 200, 2.8),
              (mp.surfaces.Gyroid(9.0, 0.2), [[-9.0] * 3, [9.0] * 3], 400, 1.2)]  # fmt: skip
    handles = [
        topology.add_surface_points(surface, surface.sample(n, i, box=box), rng.uniform(1.0, 2.0, n), 0.2 + 0.2 * i)
        for i, (surface, box, n, _) in enumerate(shapes)
    ]
    system = mp.System(topology)
    for i, (handle, (*_, cutoff)) in enumerate(zip(handles, shapes, strict=True)):
        system.add_force(forces.Ricker(handle, handle, 0.3, 0.5 * cutoff, cutoff=cutoff, skin=0.1, along_surface=True,
                                       group=i % 2, name=f"{i}"))  # fmt: skip
    return system


def joints():
    """Pairs of bodies at ball joints, hinges and fixed ones, in parts and of many at once; vertices that carry points
    at bodies; what is beside them is not held."""
    rng = np.random.default_rng(29)
    topology, n = mp.Topology(), 90
    x = rng.uniform(0.0, 60.0, (n, 3))
    q = rng.normal(size=(2 * n, 4))
    q /= np.linalg.norm(q, axis=1)[:, None]
    both = [topology.add_rigid_bodies(x + [2.0 * k, 0, 0], q[k * n : (k + 1) * n], rng.uniform(1.0, 2.0, n),
                                      rng.uniform(1.0, 1.5, (n, 3)), (0.3, 0.2), rotation_parts=1 + k, name=f"side {k}")
            for k in range(2)]  # fmt: skip
    back = q * [1.0, -1.0, -1.0, -1.0]
    arms = [turned(back[k * n : (k + 1) * n], np.tile([1.0 - 2.0 * k, 0.4, 0.1], (n, 1))) for k in range(2)]
    sites = [bodies.sites(arm[:, None]) for bodies, arm in zip(both, arms, strict=True)]
    third = n // 3
    for k, kind in enumerate(("ball", "hinge", "fixed")):
        own = slice(k * third, (k + 1) * third)
        axes = rng.normal(size=(third, 3)) if kind == "hinge" else None
        topology.join(sites[0][own], sites[1][own], kind, axes=axes)
    vesicle = topology.add_membrane(sphere(5.0, 2), vertex_mass=1.0, vertex_friction=0.5)
    topology.add_intriangle_points(vesicle, 100, mass=0.5, friction=0.3, seed=3)
    held = topology.add_rigid_bodies(1.2 * vesicle.mesh.vertices[:5], np.tile([1.0, 0, 0, 0], (5, 1)), 1.0, [1.0] * 3,
                                     (0.3, 0.2), name="held")  # fmt: skip
    topology.join(vesicle.beads[:5], held.sites(-0.2 * vesicle.mesh.vertices[:5, None]))
    pull = forces.HarmonicTrap([*both, held], 0.2, [0.0, 0.0, 0.0])
    return system_with(topology, pull, forces.MembraneEdgeSprings(vesicle, 20.0))


def constraints_of_its_own():
    """Many small components, with all functions of their programs, on all that can be held: filaments, some of them
    twistable, beads on a surface, free ones; a net that is one component; what is beside them is not."""
    rng = np.random.default_rng(23)
    topology = mp.Topology()
    bent = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [1.4, 0.9, 0.0], [1.6, 1.0, 1.0]])
    n = 120
    x = bent + rng.normal(0.0, 0.1, (n, 4, 3)) + rng.uniform(0.0, 20.0, (n, 1, 3))
    free = topology.add_beads(x.reshape(-1, 3), rng.uniform(1.0, 2.0, 4 * n), rng.uniform(0.1, 1.0, 4 * n))
    chains = topology.add_filaments(x + 30.0, 1.0, 0.3)
    directors = np.cross(np.diff(x, axis=1), rng.normal(size=(n, 3, 3))).reshape(-1, 3)
    directors /= np.linalg.norm(directors, axis=1)[:, None]
    twistable = topology.add_filaments(x - 30.0, 1.0, 0.3, directors=directors, director_mass=1.0,
                                       director_friction=0.2, name="twistable")  # fmt: skip
    sphere = mp.surfaces.Sphere(6.0)
    walkers = topology.add_surface_points(sphere, sphere.sample(400, 2), 1.0, 0.4)
    net = np.arange(100).reshape(10, 10)
    places = np.column_stack([net.ravel() % 10, net.ravel() // 10, np.zeros(100)]) + rng.normal(0.0, 0.1, (100, 3))
    sheet = topology.add_beads(places - [0.0, 0.0, 40.0], 1.0, 0.3, name="sheet")
    start = topology.start_positions(np.arange(topology.n_beads))
    distance = "(x1-x2)^2 + (y1-y2)^2 + (z1-z2)^2 - d^2"

    def tie(pairs, name):
        d = np.linalg.norm(start[pairs[:, 0]] - start[pairs[:, 1]], axis=1)
        topology.constrain(distance, pairs, d=d, name=name)

    rows = free.beads.reshape(-1, 4)
    a, b, c, _ = (start[row] for row in rows.T)
    angle = "exp(((x1-x2)*(x3-x2) + (y1-y2)*(y3-y2) + (z1-z2)*(z3-z2))/4) - e"
    topology.constrain(angle, rows[:, :3], e=np.exp(np.einsum("ij,ij->i", a - b, c - b) / 4.0), name="angles")
    tie(rows[:, [0, 1]], "lengths")
    topology.constrain("sin(x/9) + cos(y/9) + sqrt(z^2 + 900) + log(z + 100) - g", rows[:, 3:], length=1.0, g=(
        np.sin(start[rows[:, 3], 0] / 9.0) + np.cos(start[rows[:, 3], 1] / 9.0)
        + np.sqrt(start[rows[:, 3], 2] ** 2 + 900.0) + np.log(start[rows[:, 3], 2] + 100.0)
    ))  # fmt: skip
    tie(np.column_stack([chains.beads.reshape(-1, 4)[:80, 3], walkers.beads[:160:2]]), "ties")
    tie(twistable.beads.reshape(-1, 4)[:60, [0, 2]], "struts")
    across = sheet.beads[np.concatenate([np.column_stack([net[1:].ravel(), net[:-1].ravel()]),
                                         np.column_stack([net[:, 1:].ravel(), net[:, :-1].ravel()])])]  # fmt: skip
    tie(across, "net")
    system = mp.System(topology)
    system.add_force(forces.HarmonicTrap([free, chains, twistable, walkers], 0.02, [0.0, 0.0, 0.0]))
    system.add_force(forces.ConstraintFixmanPotential(topology["angles"], kT=1.0, group=1))
    system.add_force(forces.ConstraintPenalty("x1*x2 + y1*z2 - c", rows[:, [0, 3]], 0.001, c=rng.uniform(0.0, 1.0, n)))
    return system


def rigid_bodies(points):
    """Bodies that differ in mass or in friction, tied at sites beside their centres to each other, to beads and, if
    wanted, to points of a membrane."""

    def build():
        rng = np.random.default_rng(20)

        def some(n):
            q = rng.normal(size=(n, 4))
            return rng.normal(0.0, 4.0, (n, 3)), q / np.linalg.norm(q, axis=1)[:, None]

        roots = rng.normal(size=(3, 6, 6))
        tensors = roots @ roots.transpose(0, 2, 1) / 3.0 + np.eye(6)
        topology = mp.Topology()
        beads = topology.add_beads(rng.normal(0.0, 4.0, (3000, 3)), mass=1.0, friction=0.6)
        a = topology.add_rigid_bodies(*some(4200), rng.choice([1.0, 1.5], 4200), (1.0, 2.0, 2.5), tensors[0], name="a")
        b = topology.add_rigid_bodies(*some(300), 2.0, (1.0, 1.0, 0.5), tensors[rng.integers(1, 3, 300)], name="b")
        membrane = topology.add_membrane(sphere(8.0, 4), vertex_mass=1.0, vertex_friction=0.5)
        system = system_with(topology, forces.MembraneEdgeSprings(membrane, 30.0 if points else 5.0))
        arms = a.sites([[0.5, -0.3, 0.2]])
        system.add_force(forces.Links(arms[:3000], beads.beads, 0.5, 1.0))
        corners = b.sites([[0.0, 0, 1.0], [0.0, 1.0, 0]])
        system.add_force(forces.Links(arms[3000:3600], corners, 1.0, group=1, name="ab"))
        system.add_force(forces.UniformField(a.sites([[0.0, 0, 2.0]]), [0.1, 0.5, 0.2], group=1))
        if points:
            proteins = topology.add_intriangle_points(membrane, 1100, mass=1.0, friction=0.2, seed=5)
            ends = b.sites([[0.5, 0, 0], [-0.5, 0.1, 0]])
            system.add_force(forces.Links(ends, proteins.beads[:600], 0.5, 1.0, name="anchors"))
        return system

    return build


def ellipsoids():
    """Rods that overlap, on spheres: lists are built anew now and then."""
    rng = np.random.default_rng(21)
    x, q = lattice(rng, 1500, 1.5), rng.normal(size=(1200, 4))
    topology = mp.Topology()
    balls = topology.add_balls(x[1200:], 0.5, mass=1.0, friction=0.4)
    q /= np.linalg.norm(q, axis=1)[:, None]
    rods = topology.add_rigid_bodies(x[:1200], q, 1.0, (0.5, 0.5, 0.2), (0.3, 0.5))
    system = mp.System(topology)
    axes = rng.uniform(0.5, 1.5, (1200, 3))
    system.add_force(forces.EllipsoidRepulsion(rods, rods, 1.0, axes, form="soft", skin=0.1))
    system.add_force(forces.EllipsoidRepulsion(balls, rods, 0.1, [0.5] * 3, axes, group=1, skin=0.1, name="balls"))
    system.add_force(forces.EllipsoidCollisions(rods, balls, 0.3, axes, form="soft", skin=0.1))
    floor = mp.boundaries.Plane((0.0, 0.0, x[:, 2].min() - 1.6), (0.05, 0.02, 1.0))
    system.add_force(forces.WallRepulsion(floor, rods, 0.5, 3.0, semi_axes=axes, form="soft"))
    return system


def rods(free):
    """Rods and rings of many lengths and numbers that collide, with ends that are free, pinned or clamped, loads, and,
    where `free`, beads tied to them. The rest is what D moves, too."""

    def build():
        rng = np.random.default_rng(22)
        topology = mp.Topology()
        system = mp.System(topology)
        handles = []

        def shapes(counts, closed):
            x, q = zip(*(mp.rods.uniform(n, 0.5, [0.0, 4.0 * np.pi / n if closed else 0.1, 0.0]) for n in counts),
                       strict=True)  # fmt: skip
            return [part + rng.normal(0.0, 4.0, 3) for part in x], list(q)

        kinds = (("held", ("clamped", "pinned"), False), ("rods", "free", False), ("rings", "free", True))
        for name, ends, closed in kinds:
            counts = [*rng.integers(3 if closed else 2, 40, 40), 700 if name == "rods" else 90]
            n = int(sum(counts))
            root = rng.normal(size=(2, 6, 6))
            tensors = (root @ root.transpose(0, 2, 1) / 3.0 + np.eye(6))[rng.integers(0, 2, n)]
            along = {"friction": tensors} if name == "rods" else {"friction": (1.0, 2.0), "rotational_friction": 1.0}
            handle = topology.add_rods(*shapes(counts, closed), 0.5, 2.0, [1.0, 1.0, 1.5], ends=ends, closed=closed,
                                       name=name, **along)  # fmt: skip
            handles.append(handle)
            numbers = ((3.0, 4.0), 5.0, (2.0, 1.0), 3.0)
            if closed:
                joints = len(handle.links)
                numbers = (rng.uniform(2.0, 4.0, (joints, 2)), 5.0, rng.uniform(1.0, 2.0, (joints, 2)), 2.0)
            system.add_force(forces.RodElasticity(handle, *numbers, name=f"elasticity of {name}"))
        # The lists of neighbours are made anew now and then.
        system.add_force(forces.RodCollision(handles, 5.0, [0.2, 0.15, 0.1], neighbors=3, skin=0.2, group=1))
        system.add_force(forces.RodLoad(handles[1], "start", [0.1, 0.0, 0.2], [0.1, 0.2, 0.3], group=1))
        if free:
            beads = topology.add_beads(rng.normal(0.0, 4.0, (600, 3)), mass=1.0, friction=0.5)
            ends = handles[1].sites([[0.1, 0.0, 0.2]])
            system.add_force(forces.Links(ends[:600], beads.beads, 0.5, 1.0, name="ties"))
        return system

    return build


def suspension(wall=None, box=None):
    """Beads of many kinds that feel each other through the fluid, some of them overlapping, and one that does not."""

    def build():
        rng = np.random.default_rng(23)

        def some(n):
            q = rng.normal(size=(n, 4))
            x = lattice(rng, n, 2.5) + rng.normal(0.0, 0.3, (n, 3))
            return x, q / np.linalg.norm(q, axis=1)[:, None]

        topology = mp.Topology()
        topology.add_beads(rng.normal(0.0, 4.0, (9, 3)), mass=1.0, friction=0.5, name="aside")
        roots = rng.normal(size=(2, 6, 6))
        tensors = (roots @ roots.transpose(0, 2, 1) / 6.0 + np.eye(6)) * 2.0
        bodies = topology.add_rigid_bodies(*some(60), 1.5, (1.0, 2.0, 2.5), tensors[rng.integers(0, 2, 60)])
        balls = topology.add_balls(some(110)[0] + 1.2, 0.5, mass=rng.uniform(0.5, 1.0, 110), friction=0.7)
        system = mp.System(topology, box=box)
        system.add_force(forces.HarmonicTrap(np.arange(topology.n_beads), 0.5, [0.0, 0.0, 0.0]))
        system.add_force(forces.UniformField(bodies.sites([[0.5, 0.0, 0.2]]), [0.3, 0.0, 0.1], group=1))
        flow = np.zeros((3, 3))
        if wall is None and box is None:
            # Not rigid: a shear would turn these bodies in ways that are not known.
            flow[0, 1], flow[1, 0] = -0.3, 0.3
        system.add_hydrodynamics(mp.hydrodynamics.RotnePrager(0.05, [balls, bodies], wall=wall, velocity_gradient=flow,
                                                              tolerance=1e-3))  # fmt: skip
        return system

    return build


KINDS = {
    "vesicle": vesicle,
    "points on a fixed mesh": points_on_a_fixed_mesh,
    "free beads": free_beads,
    "fluid of dimers": fluid,
    "charged water": charged_water,
    "charged water in a box": functools.partial(charged_water, (12.5, 12.0, 13.0)),
    "soft spheres": soft_spheres,
    "points that meet along membranes": points_that_meet_along_membranes,
    "bending, vertex form": bending("vertex"),
    "bending, dihedral form": bending("dihedral"),
    "fields and Python": fields_and_python,
    "numbers that change": numbers_that_change,
    "links that come and go": links_that_come_and_go,
    "angles that come and go": angles_that_come_and_go,
    "filaments": filaments,
    "twistable filaments": twistable_filaments,
    "shapes that collide": shapes_that_collide,
    "beads on surfaces": beads_on_surfaces,
    "beads along surfaces": beads_that_feel_each_other_along_a_surface,
    "constraints of its own": constraints_of_its_own,
    "joints": joints,
    "rigid bodies": rigid_bodies(points=True),
    "ellipsoids": ellipsoids,
    "elastic rods": rods(free=True),
    "spheres in a fluid": suspension(),
}

# The last kicks group 0 twice as often as group 1.
WORDS = ["BAGOGAB", "BAGAB", "AGBOBGA", "OGABAGO", "B1 B0 A G B0 O B0 G A B0 B1"]
# What the word D moves: no in-triangle points.
OVERDAMPED = {
    "free beads": free_beads,
    "bodies without points": rigid_bodies(points=False),
    "rods alone": rods(free=False),
    "spheres in a fluid": suspension(),
    "spheres in a box": suspension(box=(60.0, 56.0, 64.0)),
    "spheres above a wall": suspension(mp.boundaries.Plane((0, 0, -60.0), (0.1, -0.2, 1.0))),
}


def molecules():
    """A long chain, and many small molecules of several shapes, all stiffer than the timestep resolves."""
    rng = np.random.default_rng(31)
    topology = mp.Topology()
    turns = rng.normal(size=(9000, 3))
    turns *= rng.normal(1.0, 0.02, (9000, 1)) / np.linalg.norm(turns, axis=1)[:, None]
    chain = topology.add_beads(np.cumsum(turns, axis=0), rng.uniform(1.0, 2.0, 9000), 0.3)
    tetrahedron = np.array([[1.0, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]]) / np.sqrt(8.0)
    places = rng.uniform(0.0, 50.0, (1500, 1, 3)) + tetrahedron + rng.normal(0.0, 0.02, (1500, 4, 3))
    small = topology.add_beads(places.reshape(-1, 3), 1.0, 0.2)
    system = mp.System(topology)
    links = np.column_stack([chain.beads[:-1], chain.beads[1:]])
    system.add_force(forces.HarmonicBonds(links, 1e5, 1.0))
    a, b, c, d = small.beads.reshape(-1, 4).T
    pairs = np.concatenate([np.column_stack(p) for p in ((a, d), (d, b), (b, c), (c[::2], a[::2]))])
    system.add_force(forces.LinkLengthPenalty(pairs, 100.0, 1.0))
    system.add_force(forces.ExternalField(chain.beads[::-1], "exp(cos(x*k))*sin(y + z)", k=rng.uniform(0.5, 1.0, 9000)))
    k = rng.uniform(0.5, 9.0, 4500)
    system.add_force(forces.CustomBonds(links[::2], "k*(1 - exp(1 - r))^2 + erfc(r)*r^0.7", k=k))
    return system


def net():
    """Too wide for a band, and enough beads for all threads."""
    rng = np.random.default_rng(32)
    topology = mp.Topology()
    grid = np.arange(2116).reshape(46, 46)
    places = np.column_stack([grid.ravel() % 46, grid.ravel() // 46, np.zeros(2116)])
    topology.add_beads(places + rng.normal(0.0, 0.1, (2116, 3)), 1.0, 0.2)
    system = mp.System(topology)
    pairs = [np.column_stack([p.ravel(), q.ravel()]) for p, q in ((grid[1:], grid[:-1]), (grid[:, 1:], grid[:, :-1]))]
    system.add_force(forces.HarmonicBonds(np.concatenate(pairs), 1e4, 1.0))
    return system


def membranes():
    """A sphere and a sheet, of the two forms of bending, in blocks of faces and vertices."""
    rng = np.random.default_rng(20)
    topology = mp.Topology()
    system = mp.System(topology)
    meshes = {"vertex": sphere(8.0, 3), "dihedral": mp.TriangleMesh.flat_sheet(24, 24, 1.5)}
    for form, mesh in meshes.items():
        mesh = mesh.with_vertices(mesh.vertices + rng.normal(0.0, 0.05, mesh.vertices.shape))
        membrane = topology.add_membrane(mesh, vertex_mass=1.0, vertex_friction=0.2)
        system.add_force(forces.MembraneBending(membrane, 20.0, 0.05, discretization=form, name=form))
        system.add_force(forces.MembraneArea(membrane, 5.0, per_triangle=True, name=f"areas, {form}"))
        system.add_force(forces.MembraneTension(membrane, 0.1, name=f"tension, {form}"))
    return system


# Options of words: kicks that solve equations, which words with groups refuse, and rotation at once.
COARSE = {
    "molecules, implicit kick": molecules,
    "a net, implicit kick": net,
    "membranes, implicit kick": membranes,
    "bodies that turn at once": rigid_bodies(points=False),
}
COARSE_WORDS = ["BAGOGAB", "OBABO"]
OPTIONS = {
    "molecules, implicit kick": {"kick": mp.kicks.ZhangSkeel(0.3)},
    "a net, implicit kick": {"kick": mp.kicks.Newmark()},
    "membranes, implicit kick": {"kick": mp.kicks.ZhangSkeel(0.35, positive_definite=True)},
    "bodies that turn at once": {"rotation": "exact"},
}

# What is accepted or rejected together: of these, blocks of both fates are in a run.
IN_BLOCKS = ["vesicle", "twistable filaments"]
BLOCKS = ["M(BAGAB) O"]
