"""Heat, shadow work and protocol work: measured apart, together the change of the total energy."""

import numpy as np
import pytest
from builders import look, system_with

import medyanpy as mp


def vesicle(word="BAGOGAB", threads=1, timestep=0.02):
    rng = np.random.default_rng(5)
    topology = mp.Topology()
    beads = topology.add_beads(rng.normal(0.0, 3.0, (2000, 3)), mass=rng.uniform(1.0, 2.0, 2000), friction=0.4)
    membrane = topology.add_membrane(mp.TriangleMesh.icosphere(10.0, 3), vertex_mass=2.0, vertex_friction=0.5)
    points = topology.add_intriangle_points(membrane, 3000, mass=1.0, friction=0.3, seed=3)
    system = system_with(topology, mp.forces.MembraneEdgeSprings(membrane, 30.0))
    trap = system.add_force(mp.forces.HarmonicTrap([beads, points], 0.5, [1.0, 0.0, 0.0]))
    kT = {"kT": 1.0} if "O" in word else {}
    simulation = mp.Simulation(system, mp.SplittingIntegrator(word, timestep, seed=9, **kT), threads=threads)
    simulation.context.set_velocities_to_temperature(kT=1.0, seed=4)
    simulation.report_work = True
    return simulation, trap


def interfere(simulation, trap):
    """All ways of changing the energy between steps."""
    trap.set(stiffness=0.7)
    simulation.step(3)
    trap.set(center=[0.0, 1.0, 0.0])
    state = look(simulation)
    simulation.context.set_positions(1.01 * state.positions)
    simulation.step(2)
    simulation.context.set_velocities(0.5 * look(simulation).velocities)
    simulation.context.set_intriangle(state.intriangle.triangles, state.intriangle.barycentric)
    trap.set(stiffness=0.6)
    simulation.context.set_velocities_to_temperature(kT=2.0, seed=6)
    with pytest.warns(mp.ConvergenceWarning, match="max_iterations = 5"):
        simulation.minimize_energy(max_iterations=5)


@pytest.mark.parametrize("word", ["BAGOGAB", "AGBOBGA", "OBAGABO", "BAGAB", "AGBGA"])
def test_the_parts_are_the_change_of_the_total_energy(word):
    simulation, trap = vesicle(word)
    start = look(simulation)
    assert (start.heat, start.shadow_work, start.protocol_work) == (0.0, 0.0, 0.0)
    for _ in range(3):
        simulation.step(40)
        interfere(simulation, trap)
    simulation.step(40)
    end = look(simulation)
    change = end.total_energy - start.total_energy
    parts = end.heat + end.shadow_work + end.protocol_work
    moved = abs(end.heat) + abs(end.shadow_work) + abs(end.protocol_work)
    # Round-off of energies of this size, each measured with the rounding of a sum of thousands of terms.
    scale = max(start.total_energy, end.total_energy, moved)
    assert abs(change - parts) <= 1e-12 * scale
    assert abs(end.protocol_work) > 10.0
    assert abs(end.shadow_work) > 1e-3
    assert (end.heat == 0.0) == ("O" not in word)
    assert abs(end.heat) > 10.0 or "O" not in word


def test_nothing_but_shadow_work_in_a_run_at_constant_energy():
    errors = []
    for timestep in (0.04, 0.02, 0.01):
        simulation, _ = vesicle("BAGAB", timestep=timestep)
        start = look(simulation).total_energy
        simulation.step(round(0.4 / timestep))
        state = look(simulation)
        assert state.heat == state.protocol_work == 0.0
        assert state.shadow_work == pytest.approx(state.total_energy - start, rel=1e-9)
        errors.append(state.shadow_work)
    assert abs(errors[2]) < abs(errors[0]), errors


def test_exact_flows_do_no_shadow_work():
    """Free beads: A changes no energy and B does nothing, so all change is heat."""
    topology = mp.Topology()
    topology.add_beads(np.zeros((500, 3)), mass=1.0, friction=0.2)
    simulation = mp.Simulation(mp.System(topology), mp.SplittingIntegrator("BAOAB", 0.1, kT=1.0), threads=1)
    simulation.report_work = True
    simulation.step(200)
    state = look(simulation)
    assert state.shadow_work == state.protocol_work == 0.0
    assert state.heat == pytest.approx(state.kinetic_energy, rel=1e-13)
    assert state.heat > 100.0


def test_protocol_work_of_a_moved_trap_is_its_difference_in_energy():
    topology = mp.Topology()
    bead = topology.add_beads([[2.0, 0, 0]], mass=1.0)
    system = mp.System(topology)
    trap = system.add_force(mp.forces.HarmonicTrap(bead, 3.0, [0.0, 0, 0]))
    simulation = mp.Simulation(system, mp.VerletIntegrator(0.01), threads=1)
    simulation.report_work = True
    trap.set(center=[1.0, 0.0, 0.0])
    state = look(simulation)
    assert (state.heat, state.shadow_work, state.protocol_work) == (0.0, 0.0, 1.5 * (1.0 - 4.0))


@pytest.mark.parametrize("threads", [1, 2])
def test_measuring_changes_no_bit_and_cutting_changes_no_reading(threads, tmp_path):
    def run(cuts, looks, measured=True, restart=False):
        simulation, trap = vesicle(threads=threads)
        simulation.report_work = measured
        for n in cuts:
            simulation.step(n)
            if looks:
                look(simulation)
            if simulation.current_step == 20:
                trap.set(stiffness=0.9)
            if restart:
                simulation.save_checkpoint(tmp_path / "a.chk")
                number = trap.parameters["stiffness"]
                simulation, trap = vesicle(threads=3)
                trap.set(stiffness=number)
                simulation.load_checkpoint(tmp_path / "a.chk")
        return look(simulation)

    one, unmeasured = run((20, 13), False), run((20, 13), False, measured=False)
    assert (one.positions == unmeasured.positions).all()
    assert (one.velocities == unmeasured.velocities).all()
    for other in (run((20, 1, 1, 11), True), run((5, 15, 13), False, restart=True)):
        assert (other.positions == one.positions).all()
        # Sums are cut where somebody changes or saves something, not where somebody looks.
        assert other.heat == one.heat
        assert other.shadow_work == one.shadow_work
        assert other.protocol_work == one.protocol_work


def test_not_measured_says_so():
    simulation, _ = vesicle()
    simulation.report_work = False
    for name in ("heat", "shadow_work", "protocol_work"):
        with pytest.raises(mp.ParameterError, match=f"holds no {name}: set simulation.report_work = True"):
            getattr(look(simulation), name)
        with pytest.raises(mp.ParameterError, match=r"ask for them with get_state\(energy=True\)"):
            getattr(simulation.context.get_state(), name)


@pytest.mark.slow
def test_the_work_of_a_sudden_change_gives_the_free_energy():
    """Zwanzig and Jarzynski: <exp(-W/kT)> = exp(-dF/kT), here (k0/k1)^(3/2) for one bead in a stiffened trap.

    2000 changes, each after 40 steps of a well damped bead. The mean is compared in units of its own standard error by
    Student's t with a false-alarm rate of 1e-6; an error of 0.048 would be seen: 0.13 kT of dF.
    """
    from medyanpy.testing import check_mean

    k0, k1 = 1.0, 2.0
    topology = mp.Topology()
    bead = topology.add_beads([[0.0, 0, 0]], mass=1.0, friction=1.5)
    system = mp.System(topology)
    trap = system.add_force(mp.forces.HarmonicTrap(bead, k0, [0.0, 0, 0]))
    simulation = mp.Simulation(system, mp.SplittingIntegrator("BAOAB", 0.2, kT=1.0, seed=2), threads=1)
    simulation.report_work = True
    works = []
    for _ in range(2000):
        simulation.step(40)
        before = look(simulation).protocol_work
        trap.set(stiffness=k1)
        works.append(look(simulation).protocol_work - before)
        trap.set(stiffness=k0)
    check_mean("exp(-W/kT)", np.exp(-np.array(works)), (k0 / k1) ** 1.5, sees=0.048)


def test_a_reporter_switches_measuring_on(tmp_path):
    simulation, _ = vesicle()
    simulation.report_work = False
    path = tmp_path / "work.csv"
    reporter = mp.reporters.StateDataReporter(path, 5, step=True, total_energy=True, work=True)
    with simulation:
        simulation.reporters.append(reporter)
        start = look(simulation).total_energy
        simulation.step(20)
    assert simulation.report_work
    table = np.loadtxt(path, delimiter=",")
    assert path.read_text().splitlines()[0] == (
        '#"Step","Total Energy (pN nm)","Heat (pN nm)","Shadow Work (pN nm)","Protocol Work (pN nm)"'
    )
    np.testing.assert_allclose(table[:, 2:].sum(axis=1), table[:, 1] - start, rtol=0, atol=1e-11 * abs(start))
