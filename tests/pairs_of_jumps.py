"""One small scene, and what may change in it while it runs: jumps, edits, boxes and numbers, each beside each other.

A new jump, or another way to change a run, enters by one line of PARTS: it meets all others in the bits matrix
(test_bits.py), in the contract of jumps (test_jump_contract.py) and against a context made anew (test_stale_lists.py).
"""

import functools
import sys
import tempfile
from itertools import combinations
from pathlib import Path

import numpy as np

import medyanpy as mp

KT = 1.0
TIMESTEP = 0.01
STEPS = 12
DOCS = Path(__file__).parents[1] / "docs"


@functools.cache
def births():
    """The reservoir of docs/births.md, compiled once in a process; skips where there is no compiler."""
    from test_documents import compile_kernel

    folder = Path(tempfile.mkdtemp(prefix="births"))
    blocks = compile_kernel(DOCS / "births.md", "births", folder)
    sys.path.insert(0, str(folder))
    # Under a name of its own, so that a checkpoint finds the class again.
    (folder / "reservoir.py").write_text(blocks[0], encoding="utf-8")
    import reservoir

    return reservoir.TrapReservoir


# Parts: what each adds to a system, and {step: what is done to a simulation then}.


def links(system):
    beads, points = (system.topology[name] for name in ("beads", "points"))
    sites = mp.Sites.beads(beads) + mp.Sites.beads(points)
    force = system.add_force(mp.forces.Links([], [], stiffness=20.0, length=0.8, name="springs"))
    system.add_jump(mp.jumps.LinkBinding(force, sites, off_rate=20.0, on_rate=60.0, name="links"))


def flips(system):
    system.add_jump(mp.jumps.EdgeFlips(system.topology["sheet"], 30.0, name="flips"))


def box(system):
    system.add_jump(mp.jumps.BoxArea(tension=0.2, rate=60.0, step=0.3, name="area"))


def molecules(system):
    grid = system.add_pool(mp.Compartments((3, 2, 1), 1.0, {"A": 20, "B": 10, "C": 0}, {"A": 4.0, "C": 1.0}))
    system.add_jump(mp.jumps.Reactions(grid, "A + B <-> C; k_on = 4.0, k_off = 3.0", name="molecules"))


def reactions(system):
    proteins = system.topology["proteins"]
    system.add_force(mp.forces.SoftSphere(proteins.of("A"), proteins.of("C"), 5.0, 0.6, name="apart"))
    options = {"reach": 1.2, "on_rate": 40.0, "off_rate": 60.0, "name": "react"}
    system.add_jump(mp.jumps.Reactions(proteins, "A + B <-> C", **options))
    system.add_jump(mp.jumps.Reactions(proteins, "A <-> B", on_rate=30.0, off_rate=40.0, name="switch"))


def in_space(system):
    solved = system.topology["solved"]
    system.add_force(mp.forces.SoftSphere(solved.of("A"), solved.of("C"), 5.0, 0.6, name="solved apart"))
    options = {"reach": 1.2, "on_rate": 40.0, "off_rate": 60.0, "name": "react in space"}
    system.add_jump(mp.jumps.Reactions(solved, "A + B <-> C", **options))


def bodies(system):
    turning = system.topology["turning"]
    shape = {"semi_axes": [0.3, 0.3, 0.9], "semi_axes_b": [0.5, 0.3, 0.3], "form": "soft", "name": "turning apart"}
    system.add_force(mp.forces.EllipsoidRepulsion(turning.of("A"), turning.of("C"), 3.0, **shape))
    options = {"reach": 1.2, "on_rate": 40.0, "off_rate": 60.0, "name": "react by centres"}
    system.add_jump(mp.jumps.Reactions(turning, "A + B <-> C", **options))
    system.add_jump(mp.jumps.Reactions(turning, "A <-> B", on_rate=30.0, off_rate=40.0, name="switch of bodies"))


def landing(system):
    ions, landed = system.topology["ions"], system.topology["landed"]
    system.add_force(mp.forces.SoftSphere(ions, landed, 5.0, 0.5, name="ions apart"))
    options = {"layer": 0.8, "side": "both", "most_feet": 40}
    system.add_jump(mp.jumps.Adsorption(
        ions.of("A"), landed.of("A"), on_rate=60.0, off_rate=40.0, name="landing", **options))  # fmt: skip
    system.add_jump(mp.jumps.Absorption(
        ions.of("B"), system.topology["sheet"], rate=40.0, concentration=0.1, name="reservoir of ions", **options
    ))  # fmt: skip


def growth(system):
    grid = system.add_pool(mp.Compartments((2, 1, 1), 2.0, {"G": 30, "Cap": 4}, name="subunits"))
    rates = {"on_rate": 40.0, "off_rate": 60.0, "end": "both", "subunits": (2, 6)}
    chains = system.topology["chains"]
    system.add_jump(mp.jumps.Polymerization(chains, grid["G"], name="growth", **rates))
    system.add_jump(mp.jumps.Capping(chains, grid["Cap"], on_rate=300.0, off_rate=80.0, end="both", name="caps"))
    system.add_jump(mp.jumps.Ageing(chains, (20.0, 10.0), start="ATP", name="ages"))


def turnover(system):
    threads = system.topology["threads"]
    pool = system.add_pool(mp.Pool(volume=4.0, counts={"G": 60, "Cap": 4}, name="threads and caps"))
    system.add_jump(mp.jumps.Ageing(threads, (20.0, 10.0), start="ATP", name="ages of threads"))
    rates = {"on_rate": 4.0, "off_rate": 40.0, "off_rates": {"ADP": 80.0}, "end": "both", "subunits": (2, 5)}
    system.add_jump(mp.jumps.Polymerization(threads, pool["G"], name="threads grow", **rates))
    rates = {"on_rate": 80.0, "off_rate": 80.0, "end": "both"}
    system.add_jump(mp.jumps.Capping(threads, pool["Cap"], name="caps of threads", **rates))
    region = [[-2.0, -2.0, 0.5], [2.0, 2.0, 2.0]]
    system.add_jump(mp.jumps.Nucleation(
        threads, pool["G"], 2, rate=0.06, dissolution_rate=20.0, region=region, name="seeds"))  # fmt: skip
    system.add_jump(mp.jumps.Severing(threads, 12.0, of="ADP", name="cuts"))
    system.add_jump(mp.jumps.Annealing(threads, on_rate=400.0, off_rate=5.0, reach=0.8, name="ends that join"))


def crosslinkers(system):
    lattice = system.topology["tracks"].lattice(0.2)
    force = system.add_force(mp.forces.Links([], [], stiffness=20.0, length=0.7, name="crosslinks"))
    pool = system.add_pool(mp.Pool(50.0, {"X": 12}, name="free crosslinkers"))
    numbers = {"dissociation_constants": (0.2, 0.4), "off_rates": (30.0, 20.0), "name": "crosslinkers"}
    system.add_jump(mp.jumps.CrosslinkerBinding(force, lattice, pool=pool["X"], **numbers))


def branches(system):
    springs = system.add_force(mp.forces.Links([], [], stiffness=20.0, length=0.3, name="springs of branches"))
    angles = system.add_force(mp.forces.DirectionLinks([], [], [], [], stiffness=3.0, angle=1.2, name="angles"))
    lattice, daughters = system.topology["tracks"].lattice(0.2), system.topology["daughters"]
    grid = system.add_pool(mp.Compartments((2, 1, 1), 4.0, {"G": 60, "Arp": 12}, name="for branches"))
    rates = {"on_rate": 200.0, "off_rate": 90.0, "end": "both", "subunits": (2, 5)}
    system.add_jump(mp.jumps.Polymerization(daughters, grid["G"], name="branches grow", **rates))
    # So many attempts that beads near places are counted.
    rates = {"rate": 8000.0, "dissolution_rate": 30.0, "release_rate": 10.0, "name": "branches"}
    system.add_jump(mp.jumps.Branching(
        springs, angles, lattice, daughters, grid["Arp"], grid["G"], 2, near=system.topology["points"], reach=2.5,
        **rates))  # fmt: skip


def motors(system):
    lattice = system.topology["tracks"].lattice(0.2)
    force = system.add_force(mp.forces.Links([], [], stiffness=20.0, length=0.7, name="arms"))
    grid = system.add_pool(mp.Compartments((2, 1, 1), 4.0, {"M": 12}, name="free motors"))
    numbers = {"step": 0.2, "unloaded_velocity": 8.0, "stall_force": 5.0, "off_rate": 15.0, "on_rate": 10.0, "heads": 3}
    options = {"dissociation_constants": 0.1, "leaves_end": True, "name": "motors"}
    system.add_jump(mp.jumps.Motors(force, lattice, pool=grid["M"], **numbers, **options))
    # Heads on arms of bodies.
    arms = system.topology["minifilaments"].sites([[-0.4, 0.0, 0.0], [0.4, 0.0, 0.0]])
    force = system.add_force(mp.forces.Links([], [], stiffness=20.0, length=0.3, name="heads of minifilaments"))
    numbers = {"step": 0.2, "unloaded_velocity": 8.0, "stall_force": 5.0, "off_rate": 15.0, "on_rate": 60.0}
    system.add_jump(mp.jumps.Motors(force, lattice, arms, name="minifilaments walk", **numbers))


def rails(system):
    own = system.topology["rails"]
    pool = system.add_pool(mp.Pool(4.0, {"G": 60, "X": 10, "M": 8}, name="rails and heads"))
    springs = {"stiffness": 20.0, "length": 0.6}
    force = system.add_force(mp.forces.Links([], [], name="between rails", **springs))
    numbers = {"dissociation_constants": (0.2, 0.4), "off_rates": (30.0, 20.0), "name": "on rails"}
    system.add_jump(mp.jumps.CrosslinkerBinding(force, own.lattice(0.2, most_subunits=60), pool=pool["X"], **numbers))
    force = system.add_force(mp.forces.Links([], [], name="arms on rails", **springs))
    numbers = {"step": 0.2, "unloaded_velocity": 8.0, "stall_force": 5.0, "off_rate": 15.0, "leaves_end": True}
    lattice = own.lattice(0.2, at_end="unbind", most_subunits=60)
    system.add_jump(mp.jumps.Motors(
        force, lattice, pool=pool["M"], dissociation_constants=0.1, name="motors on rails", **numbers))  # fmt: skip
    rates = {"on_rate": 4.0, "off_rate": 60.0, "end": "both", "subunits": (2, 5)}
    system.add_jump(mp.jumps.Polymerization(own, pool["G"], name="rails grow", **rates))
    system.add_jump(mp.jumps.Severing(own, 0.5, name="cuts of rails"))
    system.add_jump(mp.jumps.Annealing(own, on_rate=400.0, off_rate=5.0, reach=0.8, name="rails that join"))


def written(system):
    proteins = system.topology["written"]
    system.add_force(mp.forces.SoftSphere(proteins.of("B"), system.topology["beads"], 5.0, 0.8, name="of B"))
    text = ["A <-> B; rate = k*exp(-z^2), energy = 0.3", "B -> A; rate = step(x)",
            "0 <-> A; k_on = c*step(20 - n_A), k_off = 20*c"]  # fmt: skip
    bounds = {"at_most": 60.0, "at_most_created": 2.0}
    system.add_jump(mp.jumps.CustomTransitions(proteins, text, **bounds, k=40.0, c=2.0, name="transitions"))
    sites = mp.Sites.beads(system.topology["beads"])
    states = {"slack": {}, "taut": {"length": 0.6, "stiffness": 20.0}}
    force = system.add_force(mp.forces.Links(
        [], [], stiffness=15.0, length=0.8, states=states, name="written springs"))  # fmt: skip
    rates = mp.jumps.Bell(12.0, average=0.05)
    system.add_jump(mp.jumps.LinkBinding(force, sites, off_rate=5.0, on_rate=60.0, rates=rates, name="bound"))
    text = """unbind; rate = min(20*exp(tension/5), 90)
              bind; rate = 8*exp(-energy)
              slack <-> taut; rate = 30 + 20*step(n_taut - 1), energy = 0.5"""
    system.add_jump(mp.jumps.CustomTransitions(force, text, at_most=90.0, name="let go"))


def creation(system):
    balls = system.topology["balls"]
    trap = system.add_force(mp.forces.HarmonicTrap(balls, 1.0, [0.0, 0.0, 0.0], name="trap"))
    system.add_jump(births()(balls, trap, 0.5, 10.0, [[-2.0] * 3, [2.0] * 3], name="reservoir"))


def edits(system):
    def change(simulation):
        handle = simulation.topology["beads"]
        with simulation.topology.edit():
            handle.remove(handle.beads[[1, 4]], terms="remove")
            handle.add([[0.3, 0.2, 3.3], [1.4, -0.6, 2.2], [-1.1, 0.8, 2.9]])

    return {5: change}


def set_box(system):
    def scaled(factor):
        def change(simulation):
            x, y, z = simulation.context.get_state().box
            simulation.context.set_box((factor * x, y / factor, z))

        return change

    return {3: scaled(0.97), 4: scaled(1.05), 9: scaled(0.98)}


def ramp_of_the_box(system):
    x, y, _ = system.box
    course = {"box": {"x": (x, 0.93 * x), "y": (y, 1.04 * y)}}
    return {0: lambda simulation: simulation.reporters.append(mp.reporters.Ramp(course, steps=STEPS, every=2))}


def ramp_of_numbers(system):
    course = {
        "edges": {"stiffness": (4.0, 3.0)}, "metric": {"kT": (1.0, 1.2)}, "metric of rails": {"kT": (1.0, 1.2)},
        "springs": {"stiffness": (20.0, 10.0)}, "integrator": {"kT": (1.0, 1.2)},
        "metric of branches": {"kT": (1.0, 1.2)}, "springs of branches": {"stiffness": (20.0, 15.0)},
    }  # fmt: skip
    jumps = {"links": {"off_rate": (20.0, 60.0)}, "flips": {"rate": (30.0, 60.0)}, "area": {"tension": (0.2, -0.2)}}
    course |= {name: numbers for name, numbers in jumps.items() if name in system.jump_names}
    course = {name: numbers for name, numbers in course.items() if name in (*system.force_names, *jumps, "integrator")}
    return {0: lambda simulation: simulation.reporters.append(mp.reporters.Ramp(course, steps=STEPS, every=3))}


PARTS = {"links": links, "flips": flips, "box": box, "creation": creation, "molecules": molecules,
         "reactions": reactions, "in space": in_space, "bodies": bodies, "landing": landing, "growth": growth,
         "turnover": turnover, "branches": branches, "crosslinkers": crosslinkers, "motors": motors, "rails": rails,
         "written": written, "edits": edits, "set_box": set_box, "ramp of the box": ramp_of_the_box,
         "ramp of numbers": ramp_of_numbers}  # fmt: skip
#: Those that are jumps: the others need one beside them.
JUMPS = ("links", "flips", "box", "creation", "molecules", "reactions", "in space", "bodies", "landing", "growth",
         "turnover", "branches", "crosslinkers", "motors", "rails", "written")  # fmt: skip
# Filaments whose nodes have come and gone cannot be edited.
COMING = {"turnover", "branches", "rails"}
PAIRS = {" + ".join(pair): pair for pair in combinations(PARTS, 2) if not ("edits" in pair and COMING & set(pair))}
#: All that there is, at once.
PAIRS["all together"] = tuple(part for part in PARTS if part not in COMING)


def built(*parts, n=30):
    """A system with these parts, and {step: what is done to its simulation then}."""
    rng = np.random.default_rng(5)
    mesh = mp.TriangleMesh.flat_sheet(6, 6, 1.3, periodic=True)
    topology = mp.Topology()
    sheet = topology.add_membrane(mesh, vertex_mass=1.0, vertex_friction=1.0, name="sheet")
    points = topology.add_intriangle_points(sheet, 8, mass=1.0, friction=1.0, seed=2, name="points")
    places = rng.uniform([-3.9, -3.3, 0.5], [3.9, 3.3, 3.0], (n, 3))
    beads = topology.add_beads(places, mass=1.0, friction=1.0, name="beads")
    balls = topology.add_balls(np.empty((0, 3)), 0.3, mass=1.0, friction=1.0, capacity=40, name="balls")
    numbers = {"A": (1.0, 1.0), "B": (2.0, 1.0), "C": (3.0, 2.0)}
    species = {name: {"mass": m, "friction": friction} for name, (m, friction) in numbers.items()}
    if "in space" in parts:
        places = np.random.default_rng(8).uniform([-3.9, -3.3, 0.5], [3.9, 3.3, 3.0], (20, 3))
        topology.add_beads(places, species=species, counts={"A": 10, "B": 10}, capacity=30, name="solved")
    if "bodies" in parts:
        rng_of_bodies = np.random.default_rng(11)
        places = rng_of_bodies.uniform([-3.9, -3.3, 0.5], [3.9, 3.3, 3.0], (20, 3))
        turned = rng_of_bodies.normal(size=(20, 4))
        inertia = {"A": [0.5, 0.5, 0.2], "B": [1.0, 0.8, 0.5], "C": [0.5, 2.0, 2.0]}
        kinds = {name: {"mass": m, "inertia": inertia[name], "friction": (f, f)} for name, (m, f) in numbers.items()}
        topology.add_rigid_bodies(
            places, turned / np.linalg.norm(turned, axis=1)[:, None], species=kinds, counts={"A": 10, "B": 10},
            capacity=30, name="turning",
        )  # fmt: skip
    if "written" in parts:
        two = {name: species[name] for name in "AB"}
        topology.add_intriangle_points(sheet, species=two, counts={"A": 12}, capacity=30, seed=6, name="written")
    if "reactions" in parts:
        topology.add_intriangle_points(
            sheet, species=species, counts={"A": 6, "B": 6}, capacity=20, seed=4, name="proteins"
        )  # fmt: skip
    if "landing" in parts:
        places = np.random.default_rng(9).uniform([-3.9, -3.3, -1.0], [3.9, 3.3, 1.0], (24, 3))
        topology.add_beads(places, species=species, counts={"A": 12, "B": 12}, capacity=60, name="ions")
        topology.add_intriangle_points(sheet, species=species, counts={}, capacity=20, name="landed")
    if "growth" in parts:
        nodes = [[[x, 0.5 * i, 1.5] for x in (-2.0, -1.2, 0.0, 0.8)] for i in range(4)]
        topology.add_filaments(nodes, 1.0, 1.0, rise=0.2, name="chains")
    if {"crosslinkers", "motors", "branches"} & set(parts):
        nodes = [[[x, 0.7 * i, 2.2] for x in (-1.5, -0.5, 0.5, 1.5)] for i in range(4)]
        topology.add_filaments(nodes, 1.0, 1.0, constrained=False, name="tracks")
    if "motors" in parts:
        places = [[x, 0.7 * i, 2.5] for x in (-0.8, 0.8) for i in range(3)]
        topology.add_rigid_bodies(places, [[1.0, 0, 0, 0]] * 6, 1.0, [0.5, 0.5, 0.2], (1.0, 1.0), name="minifilaments")
    if "turnover" in parts:
        nodes = [[[x, 0.6 * i, 2.5] for x in (-1.6, -0.8, 0.0, 0.8)] for i in range(3)]
        topology.add_filaments(
            nodes, 1.0, 1.0, rise=0.2, capacity_links=12, capacity_filaments=40, name="threads"
        )  # fmt: skip
    if "branches" in parts:
        room = {"rise": 0.2, "capacity_links": 8, "capacity_filaments": 60}
        topology.add_filaments([], 1.0, 1.0, name="daughters", **room)
    if "rails" in parts:
        nodes = [[[x, 0.6 * i, 2.8] for x in (-1.6, -0.8, 0.0, 0.8)] for i in range(3)]
        topology.add_filaments(nodes, 1.0, 1.0, rise=0.2, capacity_links=12, capacity_filaments=30, name="rails")
    system = mp.System(topology, box=(*mesh.box[:2], None))
    if {"crosslinkers", "motors", "branches"} & set(parts):
        tracks = topology["tracks"]
        system.add_force(mp.forces.HarmonicTrap(tracks, 30.0, tracks.positions, name="places of tracks"))
    if "turnover" in parts:
        system.add_force(mp.forces.FixmanPotential(topology["threads"], kT=KT, name="metric"))
        system.add_force(mp.forces.FilamentBending(topology["threads"], 3.0, name="bending of threads"))
        system.add_force(mp.forces.SoftSphere(topology["threads"], [sheet, beads], 10.0, 0.5, name="threads apart"))
    if "branches" in parts:
        daughters = topology["daughters"]
        system.add_force(mp.forces.FixmanPotential(daughters, kT=KT, name="metric of branches"))
        system.add_force(mp.forces.SoftSphere(daughters, [sheet, beads], 10.0, 0.5, name="branches apart"))
    if "rails" in parts:
        system.add_force(mp.forces.FixmanPotential(topology["rails"], kT=KT, name="metric of rails"))
        system.add_force(mp.forces.FilamentBending(topology["rails"], 3.0, name="bending of rails"))
    if "growth" in parts:
        system.add_force(mp.forces.FilamentBending(topology["chains"], 3.0, name="bending"))
        system.add_force(mp.forces.SoftSphere(topology["chains"], [sheet, beads], 10.0, 0.5, name="contacts"))
    system.add_force(mp.forces.MembraneEdgeSprings(sheet, 4.0, length=1.3, name="edges"))
    system.add_force(mp.forces.SoftSphere(beads, [beads, points, balls], 10.0, 0.7, name="spheres"))
    system.add_force(mp.forces.HarmonicTrap([beads, sheet], (0.0, 0.0, 1.0), [0.0, 0.0, 1.0], name="plane"))
    changes = {}
    # Ramps last, since they name others.
    for part in sorted(parts, key=list(PARTS).index):
        for step, change in (PARTS[part](system) or {}).items():
            changes.setdefault(step, []).append(change)
    if not system.jumps:
        # Something that J does, in which nothing ever happens.
        system.add_jump(mp.jumps.EdgeFlips(sheet, 0.0, name="nothing"))
    return system, {step: functools.partial(_all_of, done) for step, done in changes.items()}


def _all_of(changes, simulation):
    for change in changes:
        change(simulation)


def together(*parts, word="JBAGOGABJ", seed=3, threads=1, n=30):
    """A simulation, to which all changes that come with steps are done by `advance`."""
    system, changes = built(*parts, n=n)
    integrator = mp.SplittingIntegrator(word, TIMESTEP, kT=KT, seed=seed)
    simulation = mp.Simulation(system, integrator, threads=threads)
    simulation.context.set_velocities_to_temperature(kT=KT, seed=seed)
    if {"growth", *COMING} & set(parts):
        # Velocities that constraints leave as they are, to the bit, when a state is set.
        simulation.context.set_state(simulation.context.get_state(positions=True, velocities=True))
    return simulation, changes


def advance(simulation, changes, steps):
    """Take so many steps, with what is done between them."""
    end = simulation.current_step + steps
    while simulation.current_step < end:
        now = simulation.current_step
        if now in changes:
            changes[now](simulation)
        simulation.step(min([end, *(step for step in changes if step > now)]) - now)
