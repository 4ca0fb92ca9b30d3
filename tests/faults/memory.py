"""Programs whose memory runs out in each kernel that asks for some, for processes of their own."""

# Memory that runs out, in processes of their own: a bound on their address space does what a full machine would.
MEMORY = """
    import ctypes
    import resource
    import numpy as np
    import medyanpy as mp
    from medyanpy import forces

    held = []

    def bound(extra):
        "Let the process have so many bytes more than it has now; no bound for None."
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        def limit(extra):
            size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (size + extra, hard))
        held.clear()
        if extra is None:
            resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
            return
        # Without what earlier calls have left free, which needs no more from the system.
        ctypes.CDLL(None).malloc_trim(0)
        limit(0)
        try:
            while True:
                held.append(bytearray(2**19))
        except MemoryError:
            limit(extra)

    def context(n, make, box=1.0, kick=None, sides=None):
        topology = mp.Topology()
        beads = topology.add_beads(np.random.default_rng(1).uniform(0.0, box, (n, 3)), mass=1.0, name="crowd")
        system = mp.System(topology, box=sides)
        force = system.add_force(make(beads))
        made = mp.Context(system, mp.VerletIntegrator(1e-6, kick=kick), threads=1)
        made.runaway = None  # whose energies would ask for the memory first
        return made, force

    def sites_in_a_box(n, box, rate):
        topology = mp.Topology()
        beads = topology.add_beads(np.random.default_rng(1).uniform(0.0, box, (n, 3)), mass=1.0, friction=1.0)
        system = mp.System(topology)
        links = system.add_force(forces.Links([], [], stiffness=1.0, length=0.5))
        jump = mp.jumps.LinkBinding(links, beads, on_rate=rate, off_rate=rate)
        system.add_jump(jump)
        made = mp.Context(system, mp.BAGOGABIntegrator(1e-3, kT=1.0, seed=1), threads=1)
        made.runaway = None
        return made, jump

    def fails(action, *expected):
        try:
            action()
        except mp.SimulationError as error:
            bound(None)
            assert (error.step, error.object, error.force) == expected, (error.step, error.object, error.force)
            assert "no memory for" in str(error), error
            return error
        raise AssertionError("there was enough memory")
"""

CROWD = """
    crowd, force = context(20_000, lambda b: forces.SoftSphere(b, b, 1.0, diameter=10.0, name="pairs"))
    before = crowd.get_state(positions=True).positions
    bound(100_000_000)
    error = fails(lambda: crowd.step(5), 0, "crowd", "pairs")
    assert 0 <= error.bead < 20_000
    assert "far denser than the cutoff" in str(error), error
    assert crowd.step_count == 0
    assert (crowd.get_state(positions=True).positions == before).all()
    force.set(diameter=0.01)
    bound(100_000_000)
    crowd.step(5)
    assert crowd.step_count == 5
"""

# Enough for the rows of the list, not for what is kept of each pair.
CROWD_ON_A_PLANE = """
    topology = mp.Topology()
    x = np.random.default_rng(1).uniform(0.0, 100.0, (20_000, 3)) * [1.0, 1.0, 0.0]
    beads = topology.add_surface_points(mp.surfaces.Plane(), x, mass=1.0, name="crowd")
    system = mp.System(topology)
    force = system.add_force(forces.SoftSphere(beads, beads, 1e-3, 0.01, skin=0.0, along_surface=True, name="pairs"))
    crowd = mp.Context(system, mp.VerletIntegrator(1e-6), threads=1)
    crowd.runaway = None
    crowd.step(1)
    force.set(diameter=8.0)
    bound(150_000_000)
    fails(lambda: crowd.step(1), 1, "crowd", "pairs")
    assert crowd.step_count == 1
    force.set(diameter=0.01)
    crowd.step(3)
    assert crowd.step_count == 4
"""

ROWS = """
    gas, force = context(1_000_000, lambda b: forces.SoftSphere(b, b, 1.0, diameter=0.5, name="pairs"), box=100.0)
    gas.step(1)
    a = np.ones((1_000_000, 3))
    # Enough for the arrays of the call, not for the 12 MB of the index of all rows.
    bound(4_000_000 + 2 * a.nbytes)
    fails(lambda: gas.third_derivative(a), 1, None, "pairs")
    gas.step(1)
    assert np.isfinite(gas.third_derivative(a)).all()
"""

BLOCKS = """
    crowd, force = context(300_000, lambda b: forces.HarmonicTrap(b, 1.0, [0.0, 0, 0], name="trap"))
    import scipy.sparse
    bound(10_000_000)
    fails(crowd.hessian, 0, None, "trap")
    crowd.step(3)
    assert crowd.hessian().shape == (900_000, 900_000)
"""

# What second derivatives of bending are made with, of 160 000 vertices, is allocated when they are first asked for.
LINES = """
    from medyanpy._kernels.core.derivatives import Multiplication
    topology = mp.Topology()
    sheet = topology.add_membrane(mp.TriangleMesh.flat_sheet(400, 400, 1.0), vertex_mass=1.0)
    system = mp.System(topology)
    system.add_force(forces.MembraneBending(sheet, 1.0, name="bending"))
    made = mp.Context(system, mp.VerletIntegrator(1e-6), threads=1)
    made.runaway = None
    made.step(1)
    a = np.ones((len(sheet), 3))
    product = Multiplication(made._schedule.bound_forces["bending"], a, np.zeros_like(a))
    bound(50_000_000)
    fails(lambda: made._schedule.perform(product, changes_state=False), 1, None, "bending")
    bound(None)
    made._schedule.perform(product, changes_state=False)
    made.step(1)
"""

# Not even beads that are alone make a band: conjugate gradients have arrays by row, made when they are needed first.
DESCENT = """
    from medyanpy import kicks
    kicks._WIDEST_BAND = -1
    make = lambda b: forces.HarmonicTrap(b, 1.0, [0.0, 0, 0], name="trap")
    crowd, force = context(300_000, make, kick=kicks.ZhangSkeelSimplified())
    crowd.get_state(forces=True)
    bound(10_000_000)
    fails(lambda: crowd.step(1), 0, None, None)
    crowd.step(1)
    assert crowd.step_count == 1
"""

# Two million pairs that were apart: 117 MB to find them again, and 340 MB for their blocks.
COUPLED = """
    from medyanpy import kicks
    make = lambda b: forces.SoftSphere(b, b, 1.0, diameter=0.001, name="pairs")
    crowd, force = context(2000, make, kick=kicks.ZhangSkeelSimplified(positive_definite=True, tolerance=1e-3))
    crowd.step(1)
    force.set(diameter=2.0)
    crowd.get_state(forces=True)
    bound({extra})
    fails(lambda: crowd.step(1), 1, None, None)
    force.set(diameter=0.5)
    crowd.step(1)
    force.set(diameter=2.0)
    crowd.step(1)
    assert crowd.step_count == 3
"""

# Listened to, links that bind and let go ten million times in one step.
EVENTS = """
    made, jump = sites_in_a_box(2, box=1.0, rate=1.0)
    made.step(1)
    jump.set(on_rate=1e12, off_rate=1e12)
    before = made.get_state(positions=True)
    listener = made.events()
    bound(50_000_000)
    error = fails(lambda: made.step(5), 1, None, None)
    assert error.jump == "LinkBinding", error
    after = made.get_state(positions=True)
    assert (before.positions == after.positions).all() and before.counts == after.counts
    assert not listener.heard()
"""

# The list of all pairs of neighbours is there from the crowd before; that of pairs which may be bound is not.
PAIRS = """
    made, _ = sites_in_a_box(5_000, box=1.0, rate=1e-3)
    crowd = made.get_state(positions=True).positions
    made.step(1)
    made.set_positions(1000.0 * crowd)
    made.step(1)
    made.set_positions(crowd)
    bound(20_000_000)
    error = fails(lambda: made.step(5), 2, None, None)
    assert error.jump == "LinkBinding", error
    assert made.step_count == 2
    made.step(5)
    assert made.step_count == 7
"""

# All balls of a crowd overlap: 5 GB of pairs.
OVERLAPS = """
    topology = mp.Topology()
    x = np.random.default_rng(1).uniform(0.0, 1.0, (8_000, 3))
    balls = topology.add_balls(x, 1.0, mass=1.0, friction=1.0)
    system = mp.System(topology)
    system.add_hydrodynamics(mp.hydrodynamics.RotnePrager(1.0 / (6.0 * np.pi), balls))
    made = mp.Context(system, mp.BrownianIntegrator(1e-9, kT=1.0), threads=1)
    made.set_positions(1e6 * x)
    made.step(1)
    made.set_positions(x)
    bound(50_000_000)
    fails(lambda: made.step(5), 1, None, None)
    assert (made.get_state(positions=True).positions == x).all()
    made.set_positions(1e6 * x)
    made.step(1)
"""

# Of a fluid in a periodic box waves are listed first, then images near each other.
IMAGES = """
    topology = mp.Topology()
    x = np.random.default_rng(1).uniform(0.0, 100.0, (4_000, 3))
    balls = topology.add_balls(x, 1.0, mass=1.0, friction=1.0)
    system = mp.System(topology, box=(100.0, 100.0, 100.0))
    system.add_hydrodynamics(mp.hydrodynamics.RotnePrager(1.0 / (6.0 * np.pi), balls))
    made = mp.Context(system, mp.BrownianIntegrator(1e-9, kT=1.0), threads=1)
    bound({extra})
    fails(lambda: made.step(5), 0, None, None)
    assert (made.get_state(positions=True).positions == x).all()
    made.step(1)
"""

CHARGES = """
    charges, force = context(
        100, lambda b: forces.Coulomb(b, np.tile([1.0, -1.0], 50), 1e-9, cutoff=5.0, tolerance=1e-13, name="charges"),
        box=100.0, sides=(100.0, 100.0, 100.0),
    )
    bound(10_000_000)
    fails(lambda: charges.step(5), 0, None, "charges")
    charges.step(1)
"""

# A million pairs of ellipsoids and links: their list fits, what is known of each does not.
TOUCHING = """
    topology = mp.Topology()
    rng = np.random.default_rng(1)
    bodies = topology.add_rigid_bodies(rng.uniform(0.0, 1.0, (1000, 3)), [[1.0, 0, 0, 0]] * 1000, 1.0, [1.0, 1.0, 1.0])
    nodes = rng.uniform(0.0, 1.0, (1000, 1, 3)) + [[0.0, 0, 0], [1.0, 0, 0]]
    links = topology.add_filaments(nodes, 1.0, constrained=False)
    system = mp.System(topology)
    system.add_force(forces.EllipsoidCollisions(bodies, links, 1.0, [3.0, 4.0, 5.0], 0.5, form="soft", name="contacts"))
    made = mp.Context(system, mp.VerletIntegrator(1e-6), threads=1)
    made.runaway = None
    before = made.get_state(positions=True).positions
    bound(50_000_000)
    fails(lambda: made.step(5), 0, None, "contacts")
    assert (made.get_state(positions=True).positions == before).all()
    made.set_positions(1000.0 * before)
    bound(50_000_000)
    made.step(5)
    bound(None)
    made.set_positions(before)
    made.step(5)
    assert made.step_count == 10
"""

# Two million pairs of points, whose forces on the corners of triangles have to be kept until all are known.
STRINGS = """
    topology = mp.Topology()
    membrane = topology.add_membrane(mp.TriangleMesh.icosphere(1.0, 1), vertex_mass=1.0)
    points = topology.add_intriangle_points(membrane, 2000, mass=1.0, seed=1)
    system = mp.System(topology)
    force = system.add_force(forces.SoftSphere(points, points, 1e-9, 0.01, along_surface=True, name="pairs"))
    made = mp.Context(system, mp.SplittingIntegrator("BAGAB", 1e-6), threads=1)
    made.runaway = None
    made.step(1)
    force.set(diameter=4.0)
    bound(100_000_000)
    fails(lambda: made.step(5), 1, points.name, "pairs")
    force.set(diameter=0.01)
    made.step(5)
    assert made.step_count == 6
"""

IN_PROCESSES = {
    ("mesh_pairs.pyx", "_room", "OUT_OF_MEMORY"): STRINGS,
    ("mobility.pxi", "_find_near", "OUT_OF_MEMORY"): OVERLAPS,
    ("lattice.pxi", "find_images", "OUT_OF_MEMORY"): IMAGES.format(extra=1_000_000),
    ("lattice.pxi", "_find_images", "OUT_OF_MEMORY"): IMAGES.format(extra=60_000_000),
    ("ewald.pyx", "run", "OUT_OF_MEMORY"): CHARGES,
    ("ellipsoid_collisions.pyx", "_list", "OUT_OF_MEMORY"): TOUCHING,
    ("jump.pyx", "record", "OUT_OF_MEMORY"): EVENTS,
    ("link_binding.pyx", "list_pairs", "OUT_OF_MEMORY"): PAIRS,
    ("neighbors.pyx", "_rows", "OUT_OF_MEMORY"): CROWD,
    ("neighbors.pyx", "index", "OUT_OF_MEMORY"): ROWS,
    ("derivatives.pyx", "_append", "OUT_OF_MEMORY"): BLOCKS,
    ("conjugate_gradients.pxi", "_make_rows", "OUT_OF_MEMORY"): DESCENT,
    ("conjugate_gradients.pxi", "_into_rows", "OUT_OF_MEMORY"): COUPLED.format(extra=50_000_000),
    ("conjugate_gradients.pxi", "_arrange", "OUT_OF_MEMORY"): COUPLED.format(extra=250_000_000),
    ("bending.pyx", "prepare", "OUT_OF_MEMORY"): LINES,
    ("along_surface.pyx", "number", "OUT_OF_MEMORY"): CROWD_ON_A_PLANE,
}
