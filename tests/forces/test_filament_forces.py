"""Forces of filaments: closed forms and refusals. What holds of all of them: test_filament_batches.py."""


import numpy as np
import pytest
from builders import refuses, system_with

import medyanpy as mp
from medyanpy.errors import ParameterError, TopologyError
from medyanpy.forces import FilamentBending, FilamentStretching, FixmanPotential


def chains(counts, closed=False, constrained=True, seed=3, fixed_nodes=()):
    """(topology, handle): random filaments with different masses."""
    rng = np.random.default_rng(seed)
    topology = mp.Topology()
    nodes = [np.cumsum(rng.normal(0.0, 2.0, (n, 3)), axis=0) for n in counts]
    mass = rng.uniform(0.5, 3.0, sum(counts))
    return topology, topology.add_filaments(nodes, mass, closed=closed, constrained=constrained,
                                            fixed_nodes=fixed_nodes)  # fmt: skip


def one(nodes, **options):
    topology = mp.Topology()
    return topology, topology.add_filament(nodes, 1.0, **options)


def context_of(topology, *forces, threads=1, timestep=1e-3):
    return mp.Context(system_with(topology, *forces), mp.SplittingIntegrator("BAB", timestep), threads=threads)


def energy_and_forces(topology, *forces, threads=1):
    # Nothing moves: the timestep is one that any of these forces bears.
    state = context_of(topology, *forces, threads=threads, timestep=1e-6).get_state(energy=True, forces=True)
    return state.potential_energy, state.forces


def polygon(n, radius=1.0):
    angle = 2.0 * np.pi * np.arange(n) / n
    return radius * np.column_stack([np.cos(angle), np.sin(angle), np.zeros(n)])


# Bending ----------------------------------------------------------------------------------------------------


def test_a_straight_filament_has_no_energy_and_no_force():
    topology, filament = one(np.arange(7)[:, None] * [3.0, 4.0, 12.0])
    energy, forces = energy_and_forces(topology, FilamentBending(filament, 5.0))
    assert energy == 0.0
    assert (forces == 0.0).all()


@pytest.mark.parametrize("n", [3, 4, 50])
def test_energy_of_a_regular_ring(n):
    topology, ring = one(polygon(n), closed=True)
    energy, forces = energy_and_forces(topology, FilamentBending(ring, 5.0))
    link = 2.0 * np.sin(np.pi / n)
    assert energy == pytest.approx(n * 5.0 / link * (1.0 - np.cos(2.0 * np.pi / n)), rel=1e-13)
    # Nodes could be pushed outwards only, all alike; but no angle changes with the size.
    assert np.abs(forces).max() < 1e-14 * 5.0 / link**3


def test_energy_of_a_fine_ring_is_that_of_an_elastic_rod():
    topology, ring = one(polygon(2000, 3.0), closed=True)
    assert energy_and_forces(topology, FilamentBending(ring, 5.0))[0] == pytest.approx(np.pi * 5.0 / 3.0, rel=2e-6)


def test_a_joint_at_its_rest_angle_has_no_energy_and_no_force():
    topology, ring = one(polygon(5), closed=True)
    energy, forces = energy_and_forces(topology, FilamentBending(ring, 5.0, 2.0 * np.pi / 5))
    assert abs(energy) < 1e-14
    assert np.abs(forces).max() < 1e-14


@pytest.mark.parametrize("angle", [1e-3, 1e-6, 1e-9])
def test_slight_bends_keep_their_digits(angle):
    """Against the series: the force on the last node is B angle / l^2."""
    topology, filament = one([[-1.0, 0.0, 0.0], [0.0, 0.0, 0.0], [np.cos(angle), np.sin(angle), 0.0]])
    energy, forces = energy_and_forces(topology, FilamentBending(filament, 2.0))
    assert energy == pytest.approx(2.0 * 2.0 * np.sin(angle / 2.0) ** 2, rel=1e-6)
    assert forces[2, 1] == pytest.approx(-2.0 * np.sin(angle) * np.cos(angle), rel=1e-6)


def test_joints_are_the_inner_nodes_in_order():
    assert FilamentBending(chains([2, 4, 3])[1], 1.0).joints.tolist() == [3, 4, 7]
    assert FilamentBending(chains([3, 4], closed=True)[1], 1.0).joints.tolist() == list(range(7))
    topology, filaments = chains([2, 4, 3])
    # Only the joint that bends.
    force = FilamentBending(filaments, [0.0, 0.0, 6.0])
    assert np.flatnonzero(energy_and_forces(topology, force)[1].any(axis=1)).tolist() == [6, 7, 8]


@pytest.mark.parametrize("rest", [0.0, 0.7])
def test_nodes_in_one_place_pull_at_nothing(rest):
    # The reference lengths come from the nodes: they come together later.
    topology, filament = one(np.random.default_rng(2).normal(0.0, 3.0, (6, 3)), constrained=False, link_lengths=2.0)
    context = context_of(topology, FilamentBending(filament, 4.0, rest))
    x = context.get_state(positions=True).positions.copy()
    x[3] = x[2]
    context.set_positions(x)
    state = context.get_state(energy=True, forces=True)
    first, last = (energy_and_forces(*_three(x[rows], rest)) for rows in ([0, 1, 2], [3, 4, 5]))
    # The joints 2 and 3 count with all of B/l and without force; 1 and 4 are as ever.
    assert state.potential_energy == pytest.approx(first[0] + last[0] + 2.0 * 4.0 / 2.0, rel=1e-14)
    assert np.abs(state.forces - np.vstack([first[1], last[1]])).max() < 1e-13


def _three(nodes, rest):
    topology, filament = one(nodes, constrained=False, link_lengths=2.0)
    return topology, FilamentBending(filament, 4.0, rest)


@pytest.mark.parametrize("end", [2.0, 0.0])
def test_no_direction_no_force(end):
    """Straight and folded joints with a rest angle; the straight one keeps its energy."""
    nodes = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [end, 0.0, 0.0]])
    topology, filament = one(nodes)
    energy, forces = energy_and_forces(topology, FilamentBending(filament, 4.0, 0.5))
    assert energy == pytest.approx(4.0 * (1.0 - np.cos(0.5 - (0.0 if end else np.pi))), rel=1e-14)
    assert (forces == 0.0).all()


# Stretching -------------------------------------------------------------------------------------------------


def test_stretching_modulus_is_that_of_the_whole_filament():
    """Pulled to 1.02 of its length: the tension is 0.02 Y, whatever the links."""
    nodes = np.cumsum([0.0, 1.0, 3.0, 0.5, 2.0])[:, None] * [1.0, 0.0, 0.0]
    topology, filament = one(nodes * 1.02, constrained=False, link_lengths=[1.0, 3.0, 0.5, 2.0])
    energy, forces = energy_and_forces(topology, FilamentStretching(filament, 300.0))
    assert energy == pytest.approx(0.5 * 300.0 * 0.02**2 * 6.5, rel=1e-12)
    assert forces[[0, -1], 0] == pytest.approx([6.0, -6.0], rel=1e-12)
    assert np.abs(forces[1:-1]).max() < 1e-11


# Fixman -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("angle", [0.0, 0.4, 1.5, 3.0])
def test_fixman_potential_of_the_trimer(angle):
    nodes = [[-1.0, 0.0, 0.0], [0.0, 0.0, 0.0], [3.0 * np.cos(angle), 3.0 * np.sin(angle), 0.0]]
    topology, trimer = one(nodes)
    energy, forces = energy_and_forces(topology, FixmanPotential(trimer, kT=2.0))
    c, s = np.cos(angle), np.sin(angle)
    assert energy == pytest.approx(np.log(1.0 - c * c / 4.0), rel=1e-13)
    # Minus the slope in the angle, at the distance of the last node and across its link.
    torque = -2.0 * c * s / 4.0 / (1.0 - c * c / 4.0)
    assert forces[2] == pytest.approx(torque / 3.0 * np.array([-s, c, 0.0]), abs=1e-15)


def test_fixman_potential_of_a_long_straight_chain():
    """The determinant of m links in a row, with -1/2 beside the diagonal, is (m + 1)/2^m."""
    m = 30000
    topology, filament = one(np.arange(m + 1)[:, None] * [1.0, 0.0, 0.0])
    energy, forces = energy_and_forces(topology, FixmanPotential(filament, kT=2.0))
    assert energy == pytest.approx(np.log(m + 1.0) - m * np.log(2.0), rel=1e-12)
    assert (forces == 0.0).all()


@pytest.mark.parametrize("n", [3, 5, 40, 3000])
def test_fixman_potential_of_regular_rings(n):
    """A cyclic matrix: its eigenvalues are 1 - c cos(2 pi k/n)."""
    topology, ring = one(polygon(n), closed=True)
    energy, forces = energy_and_forces(topology, FixmanPotential(ring, kT=2.0))
    turn = 2.0 * np.pi / n
    assert energy == pytest.approx(np.log(1.0 - np.cos(turn) * np.cos(turn * np.arange(n))).sum(), rel=1e-9)
    # Zero, as for bending. Rounded coordinates tilt links by 1e-16/l, what a joint makes of it is divided by l again,
    # and the inverse metric grows with n.
    assert np.abs(forces).max() < 1e-14 + 4e-17 * n**3


@pytest.mark.parametrize("closed", [False, True])
def test_fixman_forces_on_many_nodes(closed):
    """Against kT/2 tr(S dC/dx) with the dense inverse S, stiff shapes included."""
    n = 300
    rng = np.random.default_rng(4)
    x = polygon(n, 100.0) + rng.normal(0.0, 0.05, (n, 3))
    mass, fixed = rng.uniform(0.5, 3.0, n), [17, 200]
    topology = mp.Topology()
    filament = topology.add_filament(x, mass, closed=closed, fixed_nodes=fixed)
    forces = energy_and_forces(topology, FixmanPotential(filament, kT=2.0))[1]
    w = 1.0 / mass
    w[fixed] = 0.0
    m = n if closed else n - 1
    d = np.roll(x, -1, axis=0)[:m] - x[:m]
    length = np.linalg.norm(d, axis=1)
    u = d / length[:, None]
    jacobian = np.zeros((m, n, 3))
    links = np.arange(m)
    jacobian[links, links], jacobian[links, (links + 1) % n] = -u, u
    inverse = np.linalg.inv(np.einsum("lnc,n,mnc->lm", jacobian, w, jacobian))
    gradient = np.zeros_like(x)
    for first in range(m if closed else m - 1):
        second, node = (first + 1) % n, (first + 1) % n
        slope = -2.0 * w[node] * inverse[first, second]
        c = u[first] @ u[second]
        for link, other in ((first, second), (second, first)):
            pull = slope * (u[other] - c * u[link]) / length[link]
            gradient[(link + 1) % n] += pull
            gradient[link] -= pull
    assert np.abs(forces + gradient).max() < 1e-10 * np.abs(gradient).max()


def test_fixed_nodes_decouple_what_they_separate():
    topology, filament = one(np.random.default_rng(5).normal(0.0, 2.0, (9, 3)), fixed_nodes=[4])
    whole = energy_and_forces(topology, FixmanPotential(filament, kT=2.0))[0]
    parts = 0.0
    for rows, fixed in ((slice(0, 5), [4]), (slice(4, 9), [0])):
        other, part = one(filament.positions[rows], fixed_nodes=fixed)
        parts += energy_and_forces(other, FixmanPotential(part, kT=2.0))[0]
    assert whole == pytest.approx(parts, rel=1e-13)


@pytest.mark.parametrize("closed", [False, True])
def test_fixman_potential_takes_away_the_root_of_the_metric(closed):
    """sqrt(det J M^-1 J^T) e^(-U/kT) is the same for all shapes; the Jacobian by differences of lengths."""
    n, kT = 6, 1.7
    rng = np.random.default_rng(8)
    mass, lengths = rng.uniform(0.5, 4.0, n), rng.uniform(1.5, 2.5, n if closed else n - 1)
    logs, alone = [], []
    for _ in range(6):
        x = _with_lengths(rng.normal(0.0, 1.5, (n, 3)), lengths, closed)
        topology = mp.Topology()
        filament = topology.add_filament(x, mass, closed=closed)
        energy = energy_and_forces(topology, FixmanPotential(filament, kT=kT))[0]
        jacobian = np.empty((len(lengths), 3 * n))
        for k in range(3 * n):
            up, down = x.copy(), x.copy()
            up.flat[k] += 1e-5
            down.flat[k] -= 1e-5
            jacobian[:, k] = (_lengths(up, closed) - _lengths(down, closed)) / 2e-5
        metric = jacobian / np.repeat(mass, 3) @ jacobian.T
        alone.append(0.5 * np.linalg.slogdet(metric)[1])
        logs.append(alone[-1] - energy / kT)
    assert np.ptp(logs) < 1e-8
    assert np.ptp(alone) > 0.05


def _lengths(x, closed):
    return np.linalg.norm(np.diff(np.vstack([x, x[:1]]) if closed else x, axis=0), axis=1)


def _with_lengths(x, lengths, closed):
    for _ in range(5000):
        for i in range(len(lengths)):
            j = (i + 1) % len(x)
            d = x[j] - x[i]
            change = 0.5 * (1.0 - lengths[i] / np.linalg.norm(d)) * d
            x[i] += change
            x[j] -= change
    assert np.abs(_lengths(x, closed) - lengths).max() < 1e-9
    return x


def test_temperature_or_kt():
    _, filaments = chains([4])
    force = FixmanPotential(filaments, 300.0)
    assert force.parameters == {"kT": 300.0 * mp.units.boltzmann}
    assert "temperature" not in FixmanPotential.changeable
    force.set(kT=2.0)
    assert force.parameters == {"kT": 2.0}


# All --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("closed", [False, True])
def test_energy_is_kept_to_second_order(closed):
    """With the constraints: halving the timestep divides the error by four."""
    topology, filaments = chains([8, 4, 5], closed, seed=6)
    errors = []
    for timestep in (0.008, 0.004):
        forces = [FilamentBending(filaments, 6.0, 0.3), FixmanPotential(filaments, kT=2.0)]
        context = context_of(topology, *forces, timestep=timestep)
        context.set_velocities_to_temperature(kT=1.0, seed=3)
        state = context.get_state(energy=True)
        start, worst = state.potential_energy + state.kinetic_energy, 0.0
        for _ in range(50):
            context.step(round(0.04 / timestep))
            state = context.get_state(energy=True)
            worst = max(worst, abs(state.potential_energy + state.kinetic_energy - start))
        errors.append(worst)
    assert errors[0] / errors[1] == pytest.approx(4.0, rel=0.25)
    assert errors[1] < 1e-2


# Refusals ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [FilamentBending, FilamentStretching, FixmanPotential])
def test_other_handles_are_refused(kind):
    beads = mp.Topology().add_beads([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0]], mass=1.0)
    refuses(TopologyError, rf"{kind.__name__}: filaments must be the handle of filaments, not Beads", kind, beads, 1.0)


def test_refusals_of_kinds_excluded_by_constraints():
    refuses(TopologyError, "constrained to their lengths", FilamentStretching, chains([4])[1], 1.0)
    refuses(TopologyError, "not constrained", FixmanPotential, chains([4], constrained=False)[1], kT=1.0)


@pytest.mark.parametrize(("arguments", "message"), [
    ({}, "give temperature= "),
    ({"temperature": 300.0, "kT": 4.0}, "give temperature= "),
])  # fmt: skip
def test_bad_numbers_of_fixman(arguments, message):
    refuses(ParameterError, message, FixmanPotential, chains([4])[1], **arguments)
