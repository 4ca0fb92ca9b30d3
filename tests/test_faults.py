"""Every way in which a kernel can fail, failed on purpose.

A kernel reports a fault where it returns a fault code; `test_every_fault_site_is_provoked` reads the installed kernels
and wants a test here for each such place. Each test asserts what the user is told (step, bead, object, force, what to
do), that it was that place that spoke, and that the simulation is usable afterwards. Faults of jumps are made here,
those of other folders of kernels in faults/provoked, and programs without memory in faults/memory.py.

More on faults: what a PythonForce may do wrong (tests/forces/test_python_force.py), coincident beads
(tests/forces/test_pairs.py), and how the last good state is found (tests/engine/test_last_good_state.py).
"""

import os
import re
import subprocess
import sys
import textwrap
import warnings
from collections import Counter
from pathlib import Path

# Each adds what it holds to FAULTS.
import faults.provoked.beads
import faults.provoked.forces
import faults.provoked.letters  # noqa: F401
import numpy as np
import pytest
from builders import system_with
from faults.memory import IN_PROCESSES, MEMORY
from faults.provoked.common import FAULTS, SMALLER, Scene, fault, make

import medyanpy as mp
from medyanpy import forces

# Of the checkout: sources of kernels are not installed.
KERNELS = Path(__file__).resolve().parents[1] / "medyanpy" / "_kernels"


class StubbornForce(forces.PythonForce):
    """A force bound again for each flip that is tried, and asked after each letter whether edges may flip at all; with
    what raises when it is asked."""

    _asked = staticmethod(lambda what: None)
    of_positions_alone = False

    def bind(self, layout):
        self._asked("bind")
        return super().bind(layout)

    def obstacle_to_flips(self):
        self._asked("flip")
        return super().obstacle_to_flips()


def fluid_vesicle(make_force, radius=10.0):
    """Some edges of which have flipped in five steps; a step begins with more."""
    topology = mp.Topology()
    topology.add_beads([[0.0, 0, 0]], mass=1.0, friction=1.0)
    vesicle = topology.add_membrane(mp.TriangleMesh.icosphere(radius, 2), vertex_mass=1.0, vertex_friction=1.0,
                                    name="vesicle")  # fmt: skip
    system = mp.System(topology)
    force = system.add_force(make_force(vesicle))
    system.add_jump(mp.jumps.EdgeFlips(vesicle, rate=10.0, name="flips"))
    with warnings.catch_warnings():
        # That a force is bound again for each flip is what some are here for.
        warnings.simplefilter("ignore", mp.PerformanceWarning)
        context = make(system, "JBAOABJ", 0.01)
    context.step(5)
    context.set_velocities_to_temperature(kT=1.0, seed=2)
    return context, vesicle, force


@fault("trial.pyx", "gain_below", "NOT_FINITE", "TotalArea", SMALLER, in_triangle=True)
def a_flip_gains_more_energy_than_there_are_numbers():
    """Triangles are larger than 1 nm²."""
    context, vesicle, tension = fluid_vesicle(lambda vesicle: forces.MembraneTension(vesicle, 0.0, name="tension"),
                                              radius=1000.0)  # fmt: skip
    tension.set(tension=-1.7e308)
    return Scene(context, lambda: tension.set(tension=0.0), set(vesicle.beads.tolist()), "vesicle", "tension")


def stubborn_vesicle(raises):
    """`raises(what, n)`: whether the springs raise when they are asked for the nth time from now on."""
    context, _, springs = fluid_vesicle(
        lambda vesicle: StubbornForce(lambda x: (0.0, np.zeros_like(x)), beads=vesicle, name="springs")
    )
    times = Counter()

    def asked(what):
        times[what] += 1
        if raises(what, times[what]):
            raise OverflowError("no springs left")

    springs._asked = asked

    def mend():
        springs._asked = StubbornForce._asked

    return Scene(context, mend)


@fault("trial.pyx", "raised", "PYTHON_EXCEPTION", "EdgeFlips", "called from the step raised OverflowError: ",
       cause=OverflowError)  # fmt: skip
def springs_do_not_allow_flips_any_more():
    """Forces that were bound anew within a letter are handed back at its end: all jumps ask all forces again."""
    return stubborn_vesicle(lambda what, n: (what, n) == ("flip", 3))


@fault("triangles.pyx", "tell", "PYTHON_EXCEPTION", "Rejoined", "called from the step raised OverflowError: .*was kept",
       cause=OverflowError)  # fmt: skip
def springs_cannot_be_bound_for_the_triangles_of_before_either():
    """A flip asks to bind them in vain, and so does the state to which the run goes back from that."""
    return stubborn_vesicle(lambda what, n: what == "bind" and n in (31, 32))


@fault("jump.pyx", "act", "TOO_MANY_JUMPS", "LinkBinding", "jump bonds: its rates ask for more than 20000000")
def links_bind_and_let_go_without_end():
    """10¹² times a second, with a timestep of a second, after three steps with other rates."""
    topology = mp.Topology()
    beads = topology.add_beads([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0]], mass=1.0, friction=1.0)
    system = mp.System(topology)
    links = system.add_force(forces.Links([], [], stiffness=1.0, length=1.0))
    bonds = mp.jumps.LinkBinding(links, beads, off_rate=1.0, on_rate=1.0, name="bonds")
    system.add_jump(bonds)
    context = make(system, "JBAOABJ", 1.0)
    context.step(3)
    bonds.set(off_rate=1e12, on_rate=1e12)
    return Scene(context, lambda: bonds.set(on_rate=0.0, off_rate=1.0))


def reacting(word, counts, far=None, **numbers):
    """Points in the faces of an octahedron, whose reactions wait until their rates are set."""
    topology = mp.Topology()
    mesh = mp.TriangleMesh.icosphere(1.0, 1)
    membrane = topology.add_membrane(mesh, vertex_mass=1.0, fixed=True)
    species = {name: {"mass": 1.0, "friction": 1.0} for name in "ABC"}
    points = topology.add_intriangle_points(membrane, species=species, counts=counts, capacity=4)
    system = mp.System(topology)
    if far is not None:
        system.add_force(forces.HarmonicTrap(points, 0.0, [far, 0.0, 0.0], name="far"))
    jump = system.add_jump(mp.jumps.Reactions(points, word, on_rate=0.0, name="react", **numbers))
    context = make(system, "JBAGOGABJ", 0.1)
    context.step(3)
    jump.set(on_rate=50.0)
    return Scene(context, lambda: jump.set(on_rate=0.0), set(points.kind.all_rows.tolist()), "points")


@fault("point_reactions.pyx", "create", "NO_ROOM", "PointReactions",
       r"jump react: a bead of species 'B' cannot be created: all 4 rows of these beads are taken\. Give more room: ")
def more_points_than_there_are_rows():
    return reacting("C -> A + B", {"C": 4}, reach=0.5)


@fault("polymerization.pyx", "change_chain", "NO_ROOM", "Polymerization", "the room of a filament ends here")
def a_filament_that_outgrows_its_room():
    topology = mp.Topology()
    nodes = np.arange(3)[:, None] * [5.0, 0.0, 0.0]
    actin = topology.add_filament(nodes, 1.0, 1.0, rise=1.0, capacity_links=3)
    system = system_with(topology, forces.FixmanPotential(actin, kT=1.0), forces.FilamentBending(actin, 5.0))
    pool = system.add_pool(mp.Pool(volume=1.0, concentrations={"G": 1.0}))
    rates = {"on_rate": 0.0, "off_rate": 0.0, "subunits": (3, 8)}
    growth = system.add_jump(mp.jumps.Polymerization(actin, pool["G"], **rates))
    context = make(system, "JBAGOGABJ", 0.1)
    context.step(3)
    growth.set(on_rate=100.0)
    return Scene(context, lambda: growth.set(on_rate=0.0), set(actin.kind.all_rows.tolist()), "filament")


@fault("nucleation.pyx", "create", "NO_ROOM", "Nucleation", "the room of a filament ends here")
def more_seeds_than_there_is_room_for():
    topology = mp.Topology()
    room = {"rise": 1.0, "capacity_links": 4, "capacity_filaments": 1}
    actin = topology.add_filament(np.arange(3)[:, None] * [5.0, 0.0, 0.0], 1.0, 1.0, **room)
    system = system_with(topology, forces.FixmanPotential(actin, kT=1.0))
    pool = system.add_pool(mp.Pool(volume=1.0, concentrations={"G": 1.0}))
    region = [[0.0] * 3, [1.0] * 3]
    seeds = mp.jumps.Nucleation(actin, pool["G"], 3, rate=0.0, dissolution_rate=0.0, region=region)
    system.add_jump(seeds)
    context = make(system, "JBAGOGABJ", 0.1)
    context.step(3)
    seeds.set(rate=100.0)
    return Scene(context, lambda: seeds.set(rate=0.0), set(actin.kind.all_rows.tolist()), "filament")


@fault("severing.pyx", "cut", "NO_ROOM", "Severing", "the room of a filament ends here")
def more_fragments_than_there_is_room_for():
    topology = mp.Topology()
    room = {"rise": 1.0, "capacity_links": 4, "capacity_filaments": 1}
    actin = topology.add_filament(np.arange(4)[:, None] * [5.0, 0.0, 0.0], 1.0, 1.0, **room)
    system = system_with(topology, forces.FixmanPotential(actin, kT=1.0))
    cuts = system.add_jump(mp.jumps.Severing(actin, 0.0))
    context = make(system, "JBAGOGABJ", 0.1)
    context.step(3)
    cuts.set(rate_per_subunit=100.0)
    return Scene(context, lambda: cuts.set(rate_per_subunit=0.0), set(actin.kind.all_rows.tolist()), "filament")


@fault("annealing.pyx", "cut", "NO_ROOM", "Annealing", "the room of a filament ends here")
def more_parts_than_there_is_room_for():
    topology = mp.Topology()
    room = {"rise": 1.0, "capacity_links": 4, "capacity_filaments": 1}
    actin = topology.add_filament(np.arange(4)[:, None] * [5.0, 0.0, 0.0], 1.0, 1.0, **room)
    system = system_with(topology, forces.FixmanPotential(actin, kT=1.0))
    ends = system.add_jump(mp.jumps.Annealing(actin, on_rate=1.0, off_rate=0.0, reach=1.0))
    context = make(system, "JBAGOGABJ", 0.1)
    context.step(3)
    ends.set(off_rate=100.0)
    return Scene(context, lambda: ends.set(off_rate=0.0), set(actin.kind.all_rows.tolist()), "filament")


@fault("point_reactions.pyx", "attempt", "TOO_CROWDED", "PointReactions", "the jump allows for: give most_partners=")
def more_partners_than_a_reaction_allows_for():
    return reacting("A + B -> C", {"A": 1, "B": 3}, reach=1.5, most_partners=1)


@fault("point_reactions.pyx", "attempt", "TOO_FAR", "PointReactions", "lines of a reaction wind around.*shorter reach=")
def straight_lines_that_wind_around_a_sphere():
    return reacting("A + B -> C", {"A": 1, "B": 3}, reach=1e3)


@fault("point_reactions.pyx", "decide", "NOT_FINITE", "PointReactions", "no longer a finite number", unstable=True)
def energies_beyond_all_numbers():
    scene = reacting("A + B -> C", {"A": 2, "B": 2}, reach=1.5, far=1e3)
    trap = scene.context.system["far"]
    trap.set(stiffness=1e308)
    return Scene(scene.context, lambda: (scene.mend(), trap.set(stiffness=0.0)), scene.bead, scene.object, "far")


def transitions(subject, text, system, handle):
    """A jump whose rate goes above its bound once its number is set."""
    jump = system.add_jump(mp.jumps.CustomTransitions(subject, text, at_most=50.0, k=0.0, name="switch"))
    context = make(system, "JBAGOGABJ", 0.1)
    context.step(3)
    jump.set(k=60.0)
    return Scene(context, lambda: jump.set(k=0.0), set(handle.kind.all_rows.tolist()), handle.name)


@fault("transitions.pyx", "_checked", "RATE_ABOVE_BOUND", "WrittenTurns", "is 60 1/s here, but must be from 0 to")
def a_rate_that_is_above_its_bound():
    topology = mp.Topology()
    species = {name: {"mass": 1.0, "friction": 1.0} for name in "AB"}
    beads = topology.add_beads(np.zeros((4, 3)), species=species, of_species="A", name="beads")
    return transitions(beads, "A <-> B; rate = k", mp.System(topology), beads)


@fault("exchange.pyx", "attempt", "TOO_CROWDED", "Exchange", "the jump allows for: give most_partners= or most_feet=")
def more_triangles_below_a_bead_than_it_may_have():
    topology = mp.Topology()
    membrane = topology.add_membrane(mp.TriangleMesh.icosphere(1.0, 1), vertex_mass=1.0, fixed=True)
    beads = topology.add_beads([[0.0, 0.0, 0.1]], species={"A": {"mass": 1.0, "friction": 1.0}}, of_species="A",
                               capacity=1, name="beads")  # fmt: skip
    system = mp.System(topology)
    jump = system.add_jump(mp.jumps.Absorption(
        beads.of("A"), membrane, rate=0.0, layer=0.99, side="inside", most_feet=1, name="absorb"))  # fmt: skip
    context = make(system, "JBAGOGABJ", 0.1)
    context.step(3)
    jump.set(rate=50.0)
    return Scene(context, lambda: jump.set(rate=0.0), set(beads.kind.all_rows.tolist()), "beads")


def everything(context):
    """What get_state can tell without computing forces, which may be what fails."""
    state = context.get_state(positions=True, velocities=True)
    there = state.alive
    return [state.positions[there], state.velocities[there], state.intriangle.triangles, state.intriangle.barycentric]


def assert_usable_afterwards(context, error, reference, mend):
    """The state is that of an undisturbed run to the step that failed, and the run goes on from it once mended."""
    assert context.step_count == error.step
    now = everything(context)
    assert all(np.isfinite(part).all() for part in now)
    reference.step(error.step - reference.step_count)
    for mine, theirs in zip(now, everything(reference), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    mend()
    context.step(3)
    assert context.step_count == error.step + 3
    state = context.get_state(positions=True, velocities=True, forces=True, energy=True)
    assert np.isfinite(state.total_energy)
    assert all(np.isfinite(a[state.alive]).all() for a in (state.positions, state.velocities, state.forces))


@pytest.mark.parametrize(
    "case", [pytest.param(case, id=case.name, marks=pytest.mark.unstable if case.unstable else ()) for case in FAULTS]
)  # fmt: skip
def test_fault(case):
    scene, reference = case.build(), case.build()
    before = scene.context.step_count
    with pytest.raises(mp.SimulationError, match=case.says) as caught:
        scene.context.step(scene.steps)
    error = caught.value
    assert error.step >= before
    assert str(error).startswith(f"step {error.step}")
    assert (error.object, error.force) == (scene.object, scene.force)
    if isinstance(scene.bead, range | set):
        assert error.bead in scene.bead
    else:
        assert error.bead == scene.bead
    if error.bead is not None:
        assert f"bead {error.bead} ({error.object!r}, " in str(error)
    if error.force is not None:
        assert f"force {error.force}" in str(error)
    assert type(error.__cause__) is (case.cause or type(None))
    # It was that place in the kernels that spoke.
    program_fault = error.__context__
    kinds = {"PYTHON_EXCEPTION": "python"}
    assert program_fault.kind == kinds.get(case.code, case.code.lower().replace("_", " "))
    if case.operation:
        assert type(program_fault.operation).__name__ == case.operation
    assert (program_fault.triangle >= 0) == case.in_triangle
    assert_usable_afterwards(scene.context, error, reference.context, scene.mend)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="only Linux bounds the memory of a process")
@pytest.mark.parametrize("site", IN_PROCESSES, ids=lambda site: "-".join(site))
def test_memory_runs_out(site):
    code = textwrap.dedent(MEMORY) + textwrap.dedent(IN_PROCESSES[site])
    # One arena and one thread: how much memory is left over from earlier calls does not depend on chance.
    environment = {**os.environ, "MALLOC_ARENA_MAX": "1", "OMP_NUM_THREADS": "1"}
    run = [sys.executable, "-c", code]
    done = subprocess.run(run, capture_output=True, text=True, timeout=300, check=False, env=environment)
    assert done.returncode == 0, done.stderr


# Where a kernel reports a fault: what it returns or records, and helpers that do it for whoever calls them.
CODE = (
    r"(NOT_FINITE|TOO_MANY_CROSSINGS|DEGENERATE_TRIANGLE|PYTHON_EXCEPTION|OUT_OF_MEMORY|NOT_CONVERGED|NOT_SOLVED"
    r"|LOST_SURFACE|RUNAWAY|TOO_MANY_JUMPS|NO_ROOM|IN_WALL|NO_ROOT|CONSTRAINTS_LOST|TOO_FAR|NO_GEODESIC|TOO_CURVED"
    r"|OUT_OF_TETHER|TOO_WIDE|NO_DENSITY|TOO_CROWDED|RATE_ABOVE_BOUND"
    r"|[A-Z_]*_FAULT)"
)
REPORT = re.compile(rf"record_fault\(world, {CODE}|return {CODE}$")
HELPERS = {"bend_no_area": "DEGENERATE_TRIANGLE", "fail_lanes": "NOT_CONVERGED"}
FUNCTION = re.compile(r"^\s*(?:cdef|cpdef|def) (?:inline )?[^=]*?(\w+)\(")


def sites():
    """(file, function, code) of every place in the installed kernels, as often as it is there."""
    for path in sorted(KERNELS.rglob("*.p[yx][xdi]")):
        function = ""
        # A call may go on in the next line.
        for line in re.sub(r"record_fault\(\s+", "record_fault(", path.read_text()).splitlines():
            found = FUNCTION.match(line)
            if found:
                function = found[1]
                continue
            for report in REPORT.finditer(line):
                code = report[1] or report[2]
                if code != "NO_FAULT" and function not in HELPERS:
                    yield path.name, function, code
            for helper, code in HELPERS.items():
                if f"{helper}(" in line and "import" not in line:
                    yield path.name, function, code


# LOST_COUNT is not among them: it is the end of a walk that only a mistake of this package can lead beyond what is
# listed. Walks have such an end everywhere: those written without one are named here, with what ends them.
ENDS = {
    ("flight.pxd", "fly"): "MAX_CROSSINGS",
    ("hydrodynamics.pyx", "run"): "lanczos_take",
    ("krylov.pxi", "_eigenvectors"): "steps > 60",
    ("mesh_pairs.pyx", "_straight"): "passed == MOST_BESIDE",
    ("program.pyx", "go_on"): "admit",
    ("remeshing.pyx", "ring"): "n == MOST",
}


def endless():
    """(file, function) of every loop in the kernels that has no condition, with the text of the function."""
    for path in sorted(KERNELS.rglob("*.p[yx][xdi]")):
        function, text, has = "", [], False
        for line in [*path.read_text().splitlines(), "cdef end()"]:
            found = FUNCTION.match(line)
            if found:
                if has:
                    yield (path.name, function), "\n".join(text)
                function, text, has = found[1], [], False
            text.append(line)
            has |= bool(re.search(r"while (True|1)\b", line))


def test_every_walk_has_an_end():
    found = dict(endless())
    assert found.keys() == ENDS.keys()
    for site, text in found.items():
        assert ENDS[site] in text


# By the kernel of docs/births.md, which no jump of the package is like: the test of the documents runs it.
BY_PAGES = [("capacity.pyx", "wake", "NO_ROOM")]

# Room for the neighbours of one change, some kB, which no bound on a process takes away before all else.
NOT_PROVOKED = [
    ("collisions.pyx", "_touched", "OUT_OF_MEMORY"), ("ellipsoid_collisions.pyx", "local_energy", "OUT_OF_MEMORY"),
    ("ellipsoids.pyx", "local_energy", "OUT_OF_MEMORY"), ("pairs.pyx", "local_energy", "OUT_OF_MEMORY"),
    ("point_reactions.pyx", "attempt", "OUT_OF_MEMORY"), ("shapes.pxi", "mend", "OUT_OF_MEMORY"),
    ("exchange.pyx", "act", "OUT_OF_MEMORY"), ("pairs.pyx", "of_bead", "OUT_OF_MEMORY"),
    ("mesh_pairs.pyx", "of_bead", "OUT_OF_MEMORY"), *2 * [("annealing.pyx", "find_pairs", "OUT_OF_MEMORY")],
    ("branching.pyx", "count", "OUT_OF_MEMORY"),
]  # fmt: skip


def test_every_fault_site_is_provoked():
    """A new `record_fault` wants a test here or in faults/provoked; one that is gone takes its test with it."""
    provoked = Counter([*((f.file, f.function, f.code) for f in FAULTS), *IN_PROCESSES, *BY_PAGES, *NOT_PROVOKED])
    assert Counter(sites()) == provoked
