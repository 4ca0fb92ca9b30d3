"""Blocks M( ) of words: what is accepted, what a rejection leaves, and the books; laws of averages are in
tests/physics/test_metropolis.py."""

import io

import numpy as np
import pytest
from builders import balanced, refuses, system_with

import medyanpy as mp
from medyanpy._kernels.core import numerics

# Purpose of the random numbers; never renumbered.
METROPOLIS = 7


def look(context):
    state = getattr(context, "context", context).get_state
    return state(positions=True, velocities=True, energy=True)


# Words ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("word", "spaced", "fractions"), [
    ("M(BAB)O", "M(B A B) O", [0.5, 1, 0.5, 1]),
    ("m ( bagab ) o", "M(B A G A B) O", [0.5, 0.5, 1, 0.5, 0.5, 1]),
    ("J M(BAGAB) O J", "J M(B A G A B) O J", [0.5, 0.5, 0.5, 1, 0.5, 0.5, 1, 0.5]),
    ("OM(ABA)O", "O M(A B A) O", [0.5, 0.5, 1, 0.5, 0.5]),
    ("M(AGA) M(B) O", "M(A G A) M(B) O", [0.5, 1, 0.5, 1, 1]),
    ("M(B1 B0 A B0 B1) O", "M(B1 B0 A B0 B1) O", [0.5, 0.5, 1, 0.5, 0.5, 1]),
])  # fmt: skip
def test_words_are_read_and_written(word, spaced, fractions):
    integrator = mp.SplittingIntegrator(word, 0.1, kT=1.0)
    assert integrator.word == spaced
    assert [letter.fraction for letter in integrator.letters] == fractions
    again = mp.SplittingIntegrator(integrator.word, 0.1, kT=1.0)
    assert again.letters == integrator.letters
    assert mp.SplittingIntegrator("BAOAB", 0.1, kT=1.0).blocks == ()
    assert " ".join(integrator.blocks) in spaced


@pytest.mark.parametrize(("word", "problem"), [
    ("M(BAOAB)", r"O \(friction and noise\) cannot be taken back, .* put it outside"),
    ("M(JBABJ) O", r"J \(jumps: what happens at once\) cannot be taken back"),
    ("M(BA) O", r"the block is not a palindrome: letter 1 is B, but letter 1 from the end is A"),
    ("M(BAGAB)", r"accepted or rejected by the temperature, and no O, .* 'M\(B A G A B\) O'"),
    ("B M(AGA) B O", r"B \(kick by the forces\) stands beside M\( \)"),
    ("M(BAB) A O", r"A \(flight of the beads\) stands beside M\( \)"),
    ("M(BAB O", "the block is not closed"),
    ("BAB) O", "this closes a block that was not opened"),
    ("M(BM(A)B) O", "a block M\\( \\) stands in another one"),
    ("M() BAOAB", "the block has no letters"),
    ("MBAB O", "M stands before letters in parentheses"),
    ("M(BXB) O", "'X' is not a letter of a word: A, B .* G, J and O are"),
    ("M(BAB) D", "D moves beads without velocities"),
    ("M(BAB) D O", "D moves beads without velocities"),
    ("M(ABA B1) O", "mixes kicks by all forces"),
    ("M(AGA) O", "the word has no B"),
])  # fmt: skip
@pytest.mark.parametrize("symmetric", [True, False])
def test_words_that_are_refused(word, problem, symmetric):
    refuses(mp.ParameterError, problem, mp.SplittingIntegrator, word, 0.1, kT=1.0, symmetric=symmetric)


def test_a_word_with_a_block_needs_a_temperature():
    refuses(mp.ParameterError, r"needs temperature= .* or kT=", mp.SplittingIntegrator, "M(BAB) O", 0.1)


def test_each_block_of_order_four_is_composed():
    integrator = mp.SplittingIntegrator("O M(BAB) O J", 0.1, kT=1.0, order=4)
    assert [letter.kind for letter in integrator.letters] == [*"OBABBABBABOJ"]
    assert {letter.block for letter in integrator.letters if letter.kind in "AB"} == {0}
    assert sum(letter.fraction for letter in integrator.letters if letter.kind == "A") == pytest.approx(1.0)
    assert mp.SplittingIntegrator("M(BAB) O", 0.1, kT=1.0, order=4).word == "M(B A B) O"


# One step -------------------------------------------------------------------------------------------------------------


def everything(word, timestep, threads=1, seed=7):
    """All kinds of beads, few of each."""
    rng = np.random.default_rng(3)
    topology = mp.Topology()
    membrane = topology.add_membrane(mp.TriangleMesh.icosphere(3.0, 1), vertex_mass=1.0)
    points = topology.add_intriangle_points(membrane, 6, mass=1.0, seed=1)
    beads = topology.add_beads(rng.normal(0.0, 2.0, (3, 3)), mass=1.0)
    nodes = np.cumsum(rng.normal(size=(5, 3)), axis=0)
    filament = topology.add_filaments([nodes], 1.0, directors="parallel", director_mass=0.7)
    turns = rng.normal(size=(3, 4))
    turns /= np.linalg.norm(turns, axis=1)[:, None]
    bodies = topology.add_rigid_bodies(rng.normal(0.0, 2.0, (3, 3)), turns, 1.5, (1.0, 2.0, 2.5))
    sphere = mp.surfaces.Sphere(4.0)
    walkers = topology.add_surface_points(sphere, [[4.0, 0, 0], [0, 4.0, 0]], 1.0)
    pendulum = topology.add_beads([[2.0, 0, 0]], mass=1.0)
    topology.constrain("x^2 + y^2 + z^2 - L^2", pendulum.beads, L=2.0)
    system = system_with(topology, mp.forces.MembraneEdgeSprings(membrane, 20.0),
                         mp.forces.HarmonicTrap([beads, points], 2.0, [0.3, 0.0, 0.5]),
                         mp.forces.FilamentBending(filament, 5.0, group=1),
                         mp.forces.Links(bodies.sites([[0.5, -0.3, 0.2]]), beads.beads, 3.0, 1.0),
                         mp.forces.UniformField([walkers, pendulum], [0.0, 1.0, -2.0]))  # fmt: skip
    integrator = mp.SplittingIntegrator(word, timestep, kT=1.0, seed=seed, symmetric=False)
    return system, mp.Context(system, integrator, threads=threads)


def drawn(seed, step, letter):
    """The uniform number that decides."""
    words = np.empty((1, 4), np.uint32)
    counter = np.array([[0, step, letter << 8, METROPOLIS << 24]], np.uint32)
    numerics.philox(counter, np.array([seed, 0], np.uint32), words)
    high, low = (int(w) for w in words[0, :2])
    return (high * 2**20 + (low >> 12) + 0.5) * 2.0**-52


@pytest.mark.frictionless
@pytest.mark.parametrize("word", ["M(BAGAB) O", "O M(AGBGA) O", "M(B1 B0 A G A B0 B1) O"])
def test_a_block_is_the_plain_word_or_leads_back(word):
    """Without friction O does nothing. Accepted or not is what the energies of the plain word and the number drawn say;
    accepted, the state is that of the plain word; rejected, all that says where beads are has the bits of before, and
    all momenta are those of before, reversed."""
    system, context = everything(word, 0.09)
    _, plain = everything(word.replace("M(", "").replace(")", ""), 0.09)
    columns = {c.name: c for c in system.topology.columns}
    assert {"angular_momenta", "orientations", "triangles", "velocities"} <= columns.keys()
    outcomes = []
    for k in range(40):
        context.set_velocities_to_temperature(kT=1.0, seed=k)
        before = look(context)
        plain.set_state(before)
        plain.step(1)
        end = look(plain)
        change = (end.potential_energy - before.potential_energy) + (end.kinetic_energy - before.kinetic_energy)
        accepted = change <= -np.log(drawn(7, before.step, int(word.startswith("O"))))
        context.step(1)
        after = look(context)
        assert after.blocks[0].accepted - before.blocks[0].accepted == accepted
        for name, column in columns.items():
            own, theirs = after.column(name), (end if accepted else before).column(name)
            if accepted:
                assert np.allclose(own, theirs, rtol=0.0, atol=1e-8), name
            elif column.is_momentum:
                # O makes velocities tangent once more.
                assert np.allclose(own, -theirs, rtol=0.0, atol=1e-12), name
            else:
                assert np.array_equal(own, theirs), name
        outcomes.append(accepted)
    assert 0.15 < np.mean(outcomes) < 0.95, np.mean(outcomes)


@pytest.mark.frictionless
def test_a_rejected_block_goes_back_the_way_it_came():
    """Two steps accepted, one rejected, and the next two are those before, backwards."""
    _, context = everything("M(BAGAB) O", 0.1)
    context.set_velocities_to_temperature(kT=1.0, seed=3)
    states = [look(context)]
    for _ in range(200):
        context.step(1)
        states.append(look(context))
    accepted = np.diff([s.blocks[0].accepted for s in states]).astype(bool)
    seen = 0
    for k in range(2, len(accepted) - 2):
        if list(accepted[k - 2 : k + 3]) == [True, True, False, True, True]:
            assert np.allclose(states[k + 2].positions, states[k - 1].positions, atol=1e-8)
            assert np.allclose(states[k + 3].positions, states[k - 2].positions, atol=1e-8)
            assert np.allclose(states[k + 3].velocities, -states[k - 2].velocities, atol=1e-7)
            seen += 1
    assert seen > 0


# Faults ---------------------------------------------------------------------------------------------------------------


def one_bead(function, word="M(BAB) O", timestep=0.5, **options):
    topology = mp.Topology()
    bead = topology.add_beads([[0.3, 0.2, 0.1]], mass=1.0, friction=1.0)
    simulation = mp.Simulation(system_with(topology, mp.forces.PythonForce(function, beads=bead, **options)),
                               mp.SplittingIntegrator(word, timestep, kT=1.0, seed=3), threads=1)  # fmt: skip
    simulation.context.set_velocities_to_temperature(kT=1.0, seed=2)
    return simulation


def test_places_without_an_energy_are_never_entered():
    """A well whose outside has no energy: plain words end there, and blocks are rejected. Of a field that is written,
    and of functions in Python."""
    topology = mp.Topology()
    bead = topology.add_beads([[0.3, 0.2, 0.1]], mass=1.0, friction=1.0)
    system = system_with(topology, mp.forces.ExternalField(bead, "-log(1 - x^2 - y^2 - z^2)"))
    for word in ("OBABO", "M(BAB) O"):
        simulation = mp.Simulation(system, mp.SplittingIntegrator(word, 0.5, kT=1.0, seed=3), threads=1)
        if "M" not in word:
            refuses(mp.SimulationError, "no longer a finite number", simulation.step, 500)
    simulation.step(500)
    state = look(simulation)
    assert (state.positions**2).sum() < 1.0
    assert 50 < state.blocks[0].failed < 400

    def well(x):
        outside = (x**2).sum() > 1.0
        return (np.nan if outside else 0.5 * float((x**2).sum())), (np.full_like(x, np.nan) if outside else -x)

    refuses(mp.SimulationError, "the energy returned = nan but must be finite", one_bead(well, "OBABO").step, 500)
    simulation = one_bead(well)
    for _ in range(40):
        simulation.step(10)
        state = look(simulation)
        assert (state.positions**2).sum() <= 1.0
    block, = state.blocks
    assert block.tried == 400
    assert 50 < block.failed <= block.tried - block.accepted

    def energy_alone(x):
        """Forces that are finite do not help."""
        outside = (x**2).sum() > 1.0
        return (np.nan if outside else 0.0), np.zeros_like(x)

    simulation = one_bead(energy_alone)
    simulation.step(200)
    state = look(simulation)
    assert (state.positions**2).sum() <= 1.0
    assert 20 < state.blocks[0].failed <= 200 - state.blocks[0].accepted


def test_a_start_without_an_energy_ends_the_run():
    with pytest.raises(mp.SimulationError, match="the energy returned = nan but must be finite"):
        one_bead(lambda x: (np.nan, np.zeros_like(x))).step(1)
    with pytest.raises(mp.SimulationError, match=r"the forces returned.* = inf but must be finite"):
        one_bead(lambda x: (0.0, np.full_like(x, np.inf))).step(1)
    topology = mp.Topology()
    beads = topology.add_beads([[1e200, 0, 0]], mass=1.0, friction=1.0)
    context = mp.Context(system_with(topology, mp.forces.HarmonicTrap(beads, 1.0, [0.0, 0.0, 0.0])),
                         mp.SplittingIntegrator("M(BAB) O", 0.1, kT=1.0), threads=1)  # fmt: skip
    refuses(mp.SimulationError, "no longer a finite number", context.step, 1)


def test_an_exception_of_a_python_force_ends_the_run_at_the_last_good_state():
    calls = []

    def counted(x):
        if len(calls) == 37:
            raise ZeroDivisionError("enough")
        calls.append(1)
        return 0.5 * float((x**2).sum()), -x

    simulation = one_bead(counted)
    with pytest.raises(mp.SimulationError, match="ZeroDivisionError: enough") as caught:
        simulation.step(100)
    assert caught.value.force == "PythonForce"
    # Back at the start: the function does not repeat itself.
    assert caught.value.step == 36
    assert look_counts(simulation).tried == simulation.current_step == 0
    calls.clear()
    simulation.step(36)
    assert look_counts(simulation).tried == 36


def test_blocks_of_which_none_is_accepted_are_warned_of():
    """Once; and not where some are, or where there are few."""
    topology = mp.Topology()
    beads = topology.add_beads([[30.0, 0, 0]], mass=1.0, friction=1.0)
    context = mp.Context(system_with(topology, mp.forces.HarmonicTrap(beads, 1.0, [0.0, 0.0, 0.0])),
                         mp.SplittingIntegrator("M(ABA) O", 1.9, kT=1e-3, seed=1), threads=1)  # fmt: skip
    context.step(99)
    with pytest.warns(mp.TimestepWarning, match=r"none of 100 blocks M\(A B A\) in a row was accepted"):
        context.step(1)
    context.step(300)
    context.integrator.set(timestep=0.05)
    context.step(300)
    assert look(context).acceptance > 0.1


def look_counts(simulation):
    return simulation.context.get_state().blocks[0]


def test_a_bead_that_jumps_off_its_surface_is_a_rejection():
    """Timesteps so long that Newton's method does not come back to the sphere."""
    topology = mp.Topology()
    walkers = topology.add_surface_points(mp.surfaces.Sphere(1.0), [[1.0, 0, 0]], 1.0, friction=1.0)
    system = mp.System(topology)
    plain = mp.Context(system, mp.SplittingIntegrator("OBABO", 1.0, kT=1.0, seed=3), threads=1)
    refuses(mp.SimulationError, "does not come back to its surface", plain.step, 1000)
    context = mp.Context(system, mp.SplittingIntegrator("M(BAB) O", 1.0, kT=1.0, seed=3), threads=1)
    context.step(1000)
    state = look(context)
    assert np.linalg.norm(state.positions) == pytest.approx(1.0, abs=1e-12)
    # Without a force nothing else is a reason to reject: |v| > 1/h has a share of exp(-1/2).
    assert state.blocks[0].failed == state.blocks[0].tried - state.blocks[0].accepted
    assert 400 < state.blocks[0].failed < 800
    assert len(walkers) == 1


@pytest.mark.frictionless
def test_constraints_that_are_not_solved_back_are_a_rejection():
    """A ring in steps so long that Newton's method does not come back, or finds another solution on the way back: plain
    words tell, with velocities reversed."""
    angle = 2.0 * np.pi * np.arange(5) / 5
    contexts = []
    for word in ("BAB", "M(BAB) O"):
        topology = mp.Topology()
        topology.add_filaments([np.stack([np.cos(angle), np.sin(angle), 0.0 * angle], 1)], 1.0, closed=True)
        thermal = {"kT": 1.0} if "O" in word else {}
        contexts.append(mp.Context(mp.System(topology), mp.SplittingIntegrator(word, 0.5, **thermal), threads=1))
    plain, context = contexts
    plain.runaway = None

    def goes(before):
        """Whether a step can be taken, and whether it leads back."""
        try:
            plain.step(1)
            plain.set_velocities(-look(plain).velocities)
        except mp.SimulationError:
            return False, False
        try:
            plain.step(1)
        except mp.SimulationError:
            return True, False
        return True, bool(np.abs(look(plain).positions - before.positions).max() < 1e-8)

    seen = []
    for k in range(700):
        plain.set_velocities_to_temperature(kT=1.0, seed=k)
        before = look(plain)
        context.set_state(before)
        failed = look(context).blocks[0].failed
        context.step(1)
        forth, back = goes(before)
        assert look(context).blocks[0].failed - failed == (not back), k
        seen.append((forth, back))
        # On from another place.
        plain.set_state(before if (k % 3 or not back) else look(context))
    assert min(seen.count(case) for case in ((False, False), (True, False), (True, True))) >= 3, seen


# Forces ---------------------------------------------------------------------------------------------------------------


def test_forces_are_asked_for_once_in_a_step_whatever_becomes_of_it():
    """Of M(BAB): at its end, with the energy; at its start they are known, after a rejection too."""
    calls = []

    def quartic(x):
        calls.append(x.copy())
        return 0.25 * float((x**4).sum()), -(x**3)

    simulation = one_bead(quartic, timestep=1.3)
    simulation.step(1)
    calls.clear()
    simulation.step(200)
    assert 30 < look_counts(simulation).accepted < 180
    assert len(calls) == 200
    # And they are those of where the bead is.
    calls.clear()
    state = simulation.context.get_state(positions=True, forces=True)
    assert np.array_equal(state.forces, -state.positions**3)
    assert len(calls) == 0


def test_forces_whose_energy_does_not_tell_their_work_are_refused():
    nodes, orientations = mp.rods.uniform(8, 1.0)
    topology = mp.Topology()
    rod = topology.add_rod(nodes, orientations, 1.0, 1.0, [1.0, 1.0, 2.0], ends=("clamped", "free"), friction=1.0)
    system = mp.System(topology)
    load = system.add_force(mp.forces.RodLoad(rod, "end", force=[0.0, 0.1, 0.0]))
    context = mp.Context(system, mp.SplittingIntegrator("M(BAB) O", 0.01, kT=1.0), threads=1)
    context.step(2)
    load.set(couple=[0.0, 0.1, 0.0])
    refuses(mp.ParameterError, r"RodLoad: its energy does not tell .* M\(B A B\) accepts by energies", context.step, 1)
    load.set(couple=[0.0, 0.0, 0.0])
    context.step(1)


def test_numbers_that_are_set_between_steps_count():
    """The energy at the start of a block is that of the end of the last one unless something was changed."""
    topology = mp.Topology()
    bead = topology.add_beads([[1.0, 0, 0]], mass=1.0, friction=1.0)
    system = mp.System(topology)
    trap = system.add_force(mp.forces.HarmonicTrap(bead, 1.0, [0.0, 0.0, 0.0]))
    contexts = []
    for _ in range(2):
        integrator = mp.SplittingIntegrator("M(BAB) O", 1.0, kT=1.0, seed=3)
        contexts.append(mp.Context(system, integrator, threads=1))
    for k in range(200):
        trap.set(stiffness=1.0 + 2.0 * (k % 2))
        state = look(contexts[0])
        # What is remembered in one, is made anew in the other.
        contexts[1].set_state(state)
        for context in contexts:
            context.step(1)
        one, other = (look(context) for context in contexts)
        assert np.array_equal(one.positions, other.positions)
        assert one.blocks == other.blocks
    assert 50 < one.blocks[0].accepted < 190


# Implicit kicks -------------------------------------------------------------------------------------------------------


def test_positions_are_those_of_particles_also_with_implicit_kicks():
    topology = mp.Topology()
    bead = topology.add_beads([[1.0, 0, 0]], mass=1.0, friction=1.0)
    system = system_with(topology, mp.forces.HarmonicTrap(bead, 1.0, [0.0, 0.0, 0.0]))
    kick = mp.kicks.ZhangSkeel(0.3)
    for word, same in (("M(BAB) O", True), ("OBABO", False)):
        context = mp.Context(system, mp.SplittingIntegrator(word, 1.0, kT=1.0, kick=kick), threads=1)
        state = context.get_state(positions=True, physical_positions=True)
        assert np.array_equal(state.positions, state.physical_positions) == same
    with pytest.raises(mp.ParameterError, match="Newmark does not keep the volume of phase space"):
        mp.SplittingIntegrator("M(BAB) O", 1.0, kT=1.0, kick=mp.kicks.Newmark())


# Books, checkpoints, reports ------------------------------------------------------------------------------------------


def vesicle(word="J M(BAGAB) O J", threads=1, timestep=0.1, report_work=True, links=True):
    rng = np.random.default_rng(5)
    topology = mp.Topology()
    beads = topology.add_beads(rng.normal(0.0, 2.0, (6, 3)), mass=1.0, friction=0.4)
    membrane = topology.add_membrane(mp.TriangleMesh.icosphere(3.0, 1), vertex_mass=2.0, vertex_friction=0.5)
    points = topology.add_intriangle_points(membrane, 10, mass=1.0, friction=0.3, seed=3)
    system = system_with(topology, mp.forces.MembraneEdgeSprings(membrane, 30.0))
    trap = system.add_force(mp.forces.HarmonicTrap([beads, points], 0.5, [1.0, 0.0, 0.0]))
    if links:
        bonds = system.add_force(mp.forces.Links([], [], stiffness=2.0, length=1.5))
        system.add_jump(mp.jumps.LinkBinding(bonds, beads, off_rate=1.0, on_rate=3.0, partners=2))
    simulation = mp.Simulation(system, mp.SplittingIntegrator(word, timestep, seed=9, kT=1.0), threads=threads)
    simulation.context.set_velocities_to_temperature(kT=1.0, seed=4)
    simulation.report_work = report_work
    return simulation, trap


@pytest.mark.parametrize("word", ["J M(BAGAB) O J", "O M(AGBGA) O J", "M(A G A) J M(B) O"])
def test_heat_shadow_work_and_protocol_work_are_the_change_of_the_energy(word):
    simulation, trap = vesicle(word, timestep=0.02 if "M(B)" in word else 0.1)
    start = look(simulation)
    for k in range(4):
        simulation.step(100)
        trap.set(stiffness=0.6 + 0.1 * k)
        simulation.context.set_positions(1.001 * look(simulation).positions)
    simulation.step(100)
    end = look(simulation)
    balanced(end, start)
    assert 0.05 < end.acceptance < 0.95
    assert end.counts["LinkBinding"].accepted > 10


def test_a_rejected_block_does_no_work():
    simulation, _ = vesicle("M(BAGAB) O", links=False)
    none = 0
    before = look(simulation)
    for _ in range(100):
        simulation.step(1)
        after = look(simulation)
        shadow = after.shadow_work - before.shadow_work
        if after.blocks[0].accepted == before.blocks[0].accepted:
            assert abs(shadow) < 1e-11 * abs(after.total_energy)
            none += 1
        else:
            assert abs(shadow) > 1e-6
        before = after
    assert 10 < none < 90


def test_checkpoint_of_a_word_with_j_resumes_without_it(tmp_path):
    """Where there are no jumps."""
    simulation, _ = vesicle("J M(BAGAB) O J", links=False)
    simulation.step(5)
    simulation.save_checkpoint(tmp_path / "c")
    other, _ = vesicle("M(BAGAB) O", links=False)
    other.load_checkpoint(tmp_path / "c")
    plain, _ = vesicle("BAGOGAB", links=False)
    refuses(mp.ParameterError, "word", plain.load_checkpoint, tmp_path / "c")


@pytest.mark.parametrize("threads", [1, 3])
def test_runs_repeat_to_the_bit_over_cuts_looks_and_restarts(threads, tmp_path):
    whole, _ = vesicle(report_work=False)
    whole.step(60)
    other, _ = vesicle(threads=threads, report_work=False)
    other.step(1)
    for _ in range(19):
        other.step(1)
        look(other)
    other.save_checkpoint(tmp_path / "c")
    other.step(5)
    other.load_checkpoint(tmp_path / "c")
    other.step(10)
    other.save_checkpoint(tmp_path / "c")
    other.step(3)
    resumed = mp.Simulation.resume(tmp_path / "c", threads=2)
    resumed.step(30)
    one, two = look(whole), look(resumed)
    assert np.array_equal(one.positions, two.positions)
    assert np.array_equal(one.velocities, two.velocities)
    assert one.blocks == two.blocks
    assert one.counts == two.counts
    assert 5 < one.blocks[0].accepted < one.blocks[0].tried == 60


def test_counts_are_carried_over_an_edit_and_by_states():
    simulation, _ = vesicle(links=False)
    simulation.step(20)
    state = look(simulation)
    with simulation.topology.edit():
        pass
    assert look(simulation).blocks == state.blocks
    other, _ = vesicle(links=False)
    other.context.set_state(state)
    assert look(other).blocks == state.blocks
    for one in (simulation, other):
        one.step(10)
    assert look(other).blocks == look(simulation).blocks


def test_the_acceptance_is_reported():
    simulation, _ = vesicle("M(BAGAB) O", links=False, report_work=False)
    table = io.StringIO()
    simulation.reporters.append(mp.reporters.StateDataReporter(table, 5, step=True, acceptance=True))
    assert np.isnan(look(simulation).acceptance)
    simulation.step(20)
    state = look(simulation)
    block = state.blocks[0]
    assert (block.block, block.tried) == ("M(B A G A B)", 20)
    assert state.acceptance == block.accepted / 20
    rows = table.getvalue().splitlines()
    assert rows[0] == '#"Step","Acceptance"'
    assert rows[-1] == f"20,{state.acceptance:.6f}"
    assert "M(B A G A B)" in str(state)
    plain, _ = vesicle("BAGOGAB", links=False, report_work=False)
    with pytest.raises(mp.ParameterError, match="the word of its run has no block"):
        assert look(plain).acceptance
    plain.reporters.append(mp.reporters.StateDataReporter(io.StringIO(), 5, acceptance=True))
    refuses(mp.ParameterError, r"acceptance is asked for, but the word .* has no block M\( \)", plain.step, 5)
