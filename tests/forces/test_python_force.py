"""PythonForce: what the function gets, what it may return, and how its failures arrive."""

import os
import signal
import traceback
from itertools import pairwise

import numpy as np
import pytest
from builders import refuses, system_with

import medyanpy as mp
from medyanpy.forces import HarmonicTrap, PythonForce

K = 2.0


def trap(x):
    return 0.5 * K * np.sum(x**2), -K * x


def scene():
    """Places differ from bead numbers: points come last inside, first here but for two beads."""
    topology = mp.Topology()
    topology.add_beads([[1.0, 2, 3], [4.0, 5, 6]], mass=1.0)
    membrane = topology.add_membrane(mp.TriangleMesh.icosphere(4.0, 0), vertex_mass=1.0)
    topology.add_intriangle_points(membrane, 8, mass=1.0, seed=1)
    topology.add_beads(np.random.default_rng(1).normal(size=(5, 3)), mass=3.0)
    return topology


def make_context(*forces, threads=1, timestep=1e-2):
    return mp.Context(system_with(scene(), *forces), mp.VerletIntegrator(timestep), threads=threads)


def test_agrees_with_a_kernel():
    everything = scene().handles
    numbers = np.arange(sum(map(len, everything)))
    a = make_context(PythonForce(trap))
    b = make_context(HarmonicTrap(numbers, K, [0.0, 0, 0]))
    for context in (a, b):
        context.set_velocities_to_temperature(kT=1.0, seed=1)
        context.step(100)
    one, two = (c.get_state(positions=True, velocities=True, forces=True, energy=True) for c in (a, b))
    np.testing.assert_array_equal(one.positions, two.positions)
    np.testing.assert_array_equal(one.velocities, two.velocities)
    np.testing.assert_array_equal(one.forces, two.forces)
    assert one.potential_energy == pytest.approx(two.potential_energy, rel=1e-13)


def test_function_gets_a_read_only_copy_in_topology_order():
    seen = []

    def look(x):
        seen.append(x)
        return 0.0, np.zeros_like(x)

    context = make_context(PythonForce(look))
    context.set_velocities_to_temperature(kT=1.0, seed=1)
    context.step(3)
    now = context.get_state(positions=True, forces=True).positions
    assert len(seen) == 4, "once at the start, then once a step"
    np.testing.assert_array_equal(seen[-1], now)
    # The function may keep what it got: nobody writes into it later.
    assert not any((a == b).all() for a, b in pairwise(seen))
    assert not any(x.flags.writeable for x in seen)
    assert seen[0].shape == (27, 3)
    assert seen[0].flags.c_contiguous


def test_adds_to_other_forces_and_follows_groups():
    plain = make_context(HarmonicTrap([0, 1], K, [1.0, 1, 1]), PythonForce(trap, name="mine"))
    state = plain.get_state(positions=True, forces=True, energy=True)
    alone = make_context(PythonForce(trap)).get_state(forces=True)
    expected = alone.forces.copy()
    expected[:2] -= K * (state.positions[:2] - 1.0)
    np.testing.assert_allclose(state.forces, expected, rtol=1e-14)
    assert set(state.energies) == {"HarmonicTrap", "mine"}


def test_anything_array_like_may_be_returned():
    context = make_context(PythonForce(lambda x: [np.float32(1.5), (-K * x).tolist()]))
    state = context.get_state(positions=True, forces=True, energy=True)
    assert state.potential_energy == 1.5
    np.testing.assert_array_equal(state.forces, -K * state.positions)
    context = make_context(PythonForce(lambda x: (0, np.asfortranarray(-K * x, dtype=np.float64))))
    np.testing.assert_array_equal(context.get_state(forces=True).forces, state.forces)


def test_an_exception_arrives_with_its_traceback_and_the_step():
    calls = []

    def fails_later(x):
        calls.append(1)
        if len(calls) == 6:
            deep(x)
        return trap(x)

    def deep(x):
        raise ZeroDivisionError("no such energy")

    context = make_context(HarmonicTrap([0], 1.0, [0.0, 0, 0]), PythonForce(fails_later, name="mine"))
    context.step(2)
    with pytest.raises(mp.SimulationError, match=r"step 4, force mine: ") as caught:
        context.step(10)
    error = caught.value
    assert (error.step, error.force, error.bead) == (4, "mine", None)
    assert isinstance(error.__cause__, ZeroDivisionError)
    frames = [frame.name for frame in traceback.extract_tb(error.__cause__.__traceback__)]
    assert frames[-2:] == ["fails_later", "deep"]
    # An error of the past is forgotten.
    context.step(1)
    assert context._schedule.bound_forces["mine"].error is None


@pytest.mark.parametrize(("returned", "message"), [
    (lambda x: None, r"mine: the function must return \(energy, forces\), not NoneType"),
    (lambda x: 1.0, r"mine: the function must return \(energy, forces\), not float"),
    (lambda x: (1.0, x, x), r"mine: the function must return \(energy, forces\), not tuple"),
    (lambda x: (1.0, x[:-1]), r"mine: the forces returned must have shape \(27, 3\), not \(26, 3\)"),
    (lambda x: (1.0, x.ravel()), r"mine: the forces returned must have shape \(27, 3\), not \(81,\)"),
    (lambda x: (1.0, "push"), "mine: the forces returned must be an array"),
    (lambda x: (x, x), r"mine: the energy returned must be one number, not an array of shape \(27, 3\)"),
    (lambda x: ("much", x), "mine: the energy returned = 'much' but must be a number"),
    (lambda x: (np.nan, x), "mine: the energy returned = nan but must be finite"),
    (lambda x: (1.0, np.where(x == x[5, 1], np.inf, x)), r"mine: the forces returned\[5, 1\] = inf but must"),
    (lambda x: (1.0, x * 1j), "mine: the forces returned must be real, not complex"),
])  # fmt: skip
def test_results_of_functions_are_checked(returned, message):
    context = make_context(PythonForce(returned, name="mine"))
    # In the message itself: of what a log keeps, the cause is above or gone.
    raised = f"Python code called from the step raised ParameterError: {message}"
    with pytest.raises(mp.SimulationError, match=rf"step 0, force mine: {raised}.*The simulation is back at") as caught:
        context.step(1)
    assert isinstance(caught.value.__cause__, mp.ParameterError)
    with pytest.raises(mp.ParameterError, match=message):
        raise caught.value.__cause__
    refuses(mp.SimulationError, r"step 0, force mine: ", context.get_state, energy=True)


def test_writing_into_the_positions_is_an_error():
    def careless(x):
        x -= 1.0
        return 0.0, x

    with pytest.raises(mp.SimulationError, match=r"force PythonForce: .*ValueError: .*read-only") as caught:
        make_context(PythonForce(careless)).step(1)
    assert "read-only" in str(caught.value.__cause__)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_inside_the_function_ends_the_run_between_two_steps():
    interrupted = []

    def interrupts_itself(x):
        if len(interrupted) == 0 and x[0, 0] != 1.0:
            interrupted.append(1)
            os.kill(os.getpid(), signal.SIGINT)
        return trap(x)

    context = make_context(PythonForce(interrupts_itself))
    undisturbed = make_context(PythonForce(trap))
    with pytest.raises(KeyboardInterrupt):
        context.step(1000)
    assert interrupted
    assert 1 <= context.step_count < 1000
    # The state is whole: it is one that an undisturbed run passes through, and the run goes on from it.
    context.step(20)
    undisturbed.step(context.step_count)
    np.testing.assert_array_equal(context.get_state(positions=True).positions,
                                  undisturbed.get_state(positions=True).positions)  # fmt: skip


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_that_insists_gets_out():
    def insists(x):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make_context(PythonForce(insists)).step(10)


def test_other_ways_out_are_chained():
    def leaves(x):
        raise SystemExit(3)

    with pytest.raises(mp.SimulationError, match="step 0, force PythonForce") as caught:
        make_context(PythonForce(leaves)).step(10)
    assert isinstance(caught.value.__cause__, SystemExit)


def oriented_program(threads=1):
    """Three beads, of which the last two are oriented: the kernels' side."""
    from medyanpy._kernels.core.accumulate import Accumulator
    from medyanpy._kernels.core.program import Program
    from medyanpy._kernels.letters.kick import ForceSum

    from medyanpy.core.layout import Layout

    rng = np.random.default_rng(4)
    x, q = rng.normal(size=(3, 3)), rng.normal(size=(2, 4))
    q /= np.linalg.norm(q, axis=1)[:, None]
    topology = mp.Topology()
    topology.add_beads(x[:1], 1.0)
    topology.add_rigid_bodies(x[1:], q, 1.0, [1.0, 1.0, 1.0])
    program = Program(x=x, v=np.zeros((3, 3)), mass=np.ones(3), inverse_mass=np.ones(3),
                      bead=np.arange(3, dtype=np.int32), n_vertices=0, faces=np.empty((0, 3), np.int32),
                      opposite=np.empty((0, 3), np.int32), triangle=np.empty(0, np.int32), barycentric=np.empty((0, 2)),
                      membranes_move=False, seed=0, threads=threads, first_oriented=1, orientation=q)  # fmt: skip

    def force_sum(*forces):
        operations = [force.bind(Layout(topology)) for force in forces]
        return ForceSum(operations, np.zeros((3, 3)), [np.zeros((2, 3))], np.zeros((0, 3)), Accumulator(0, 1))

    return program, x, q, force_sum


def test_the_second_form_gets_orientations_and_returns_torques():
    seen = []

    def turns(x, q):
        seen.append((x, q))
        return 1.5, -x, 2.0 * q[:, 1:]

    program, x, q, force_sum = oriented_program()
    forces = force_sum(PythonForce(turns, orientations=True), PythonForce(turns, orientations=True), PythonForce(trap))
    forces.refresh(program, True)
    (positions, orientations), _ = seen
    np.testing.assert_array_equal(positions, x)
    np.testing.assert_array_equal(orientations, q)
    assert not orientations.flags.writeable
    np.testing.assert_array_equal(forces.f_array, -x - x - K * x)
    np.testing.assert_array_equal(forces.drive_arrays[0], 4.0 * q[:, 1:])
    # Cleared before every evaluation.
    forces.refresh(program, False)
    np.testing.assert_array_equal(forces.drive_arrays[0], 4.0 * q[:, 1:])
    q[0] = [1.0, 0, 0, 0]
    forces.refresh(program, True)
    np.testing.assert_array_equal(forces.drive_arrays[0][0], 0.0)


@pytest.mark.parametrize(("returned", "message"), [
    (lambda x, q: (0.0, x), r"must return \(energy, forces, torques\), not tuple"),
    (lambda x, q: (0.0, x, q), r"mine: the torques returned must have shape \(2, 3\), not \(2, 4\)"),
    (lambda x, q: (0.0, x, q[:, 1:] * np.nan), r"mine: the torques returned\[0, 0\] = nan but must be finite"),
])  # fmt: skip
def test_torques_are_checked(returned, message):
    from medyanpy._kernels.core.program import ProgramFault

    program, _, _, force_sum = oriented_program()
    with pytest.raises(ProgramFault) as caught:
        force_sum(PythonForce(returned, name="mine", orientations=True)).refresh(program, True)
    with pytest.raises(mp.ParameterError, match=message):
        raise caught.value.cause


def test_the_second_form_without_oriented_beads():
    context = make_context(PythonForce(lambda x, q: (len(q), -K * x, q[:, 1:]), orientations=True))
    state = context.get_state(energy=True, forces=True, positions=True)
    assert state.potential_energy == 0.0
    np.testing.assert_array_equal(state.forces, -K * state.positions)


def test_refusals():
    refuses(mp.ParameterError, "PythonForce: function must be callable, not 3", PythonForce, 3)
    refuses(mp.ParameterError, "'k' cannot be set; nothing can", PythonForce(trap).set, k=1.0)
    assert repr(PythonForce(trap)) == "PythonForce(trap)"
    assert not PythonForce(trap).conserves_momentum
