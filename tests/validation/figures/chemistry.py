"""Filaments that grow against what is in their way, and motors that carry them.

A growing end and an obstacle that is pushed against it are a Brownian ratchet: C. S. Peskin, G. M. Odell and G. F.
Oster, Biophys. J. 65, 316 (1993). No rate reads a force here: a subunit is added where there is room for it.
"""

from typing import Any

import numpy as np

import medyanpy as mp
from medyanpy.demo import contraction, pushing
from medyanpy.demo.report import KT, TEMPERATURE, bound_line, mean_line, z_line

from . import reactions
from .plates import PUBLISHED, Made, Plate, Row, Work, letters, panels

# The Brownian ratchet ---------------------------------------------------------------------------------------

# Units: a subunit, kT, and the time in which the obstacle diffuses by the root of two subunits.
CONTACT, APART, START = 20.0, 6.0, 30.0
#: By how many subunits come in that time: a step of the integrator, and how soon the obstacle forgets velocities.
SPEEDS = {0.1: (0.02, 0.05), 1.0: (0.005, 0.005), 10.0: (0.0015, 0.001)}
OFF = 0.02


def ratchet(force: float, on: float, off: float) -> float:
    """Velocity of an end below an obstacle that diffuses with D = 1 and is pushed down by a force: the stationary
    distribution of the gap between them, on a grid.

    The obstacle steps between points of the grid with rates that balance its energy (Scharfetter and Gummel). A subunit
    closes the gap by one, and costs the energy of a contact where there is too little room.
    """
    from scipy.sparse import coo_matrix, identity, vstack
    from scipy.sparse.linalg import spsolve

    cells = 40
    gap = np.arange(-1.5, 10.0 + 25.0 / force, 1.0 / cells)
    contact = 0.5 * CONTACT * np.minimum(gap, 0.0) ** 2
    rise = np.diff(contact + force * gap)
    index = np.arange(len(gap))
    # Up and down by a cell; the end by a subunit, which closes the gap, and back.
    cost = np.maximum(contact[:-cells] - contact[cells:], 0.0)
    moves = [
        (index[:-1], index[1:], cells**2 * rise / np.expm1(rise)),
        (index[1:], index[:-1], cells**2 * -rise / np.expm1(-rise)),
        (index[cells:], index[:-cells], on * np.exp(-cost)),
        (index[:-cells], index[cells:], np.full(len(cost), off)),
    ]
    rates = sum(coo_matrix((rate, (to, start)), (len(gap),) * 2) for start, to, rate in moves).tocsr()
    flow = rates - identity(len(gap)).multiply(np.asarray(rates.sum(axis=0)).ravel())
    p = spsolve(vstack([flow.tocsr()[:-1], np.ones((1, len(gap)))]).tocsc(), np.eye(len(gap))[-1])
    return float(p[cells:] @ (on * np.exp(-cost)) - off * p[:-cells].sum())


def pushed(force: float, on: float, off: float, copies: int, timestep: float, mass: float,
           seed: int) -> tuple[Any, Any, mp.Simulation]:  # fmt: skip
    """Build copies of a filament that points along z, whatever its length, below a bead that a force pushes down:
    (filaments, beads, simulation)."""
    across = 80.0 * np.arange(copies)[:, None] * [1.0, 0.0, 0.0]
    topology = mp.Topology()
    # The end moves with its length alone: its mass only makes its direction slow. None comes near to one subunit.
    nodes = across[:, None] + [[0.0, 0.0, 0.0], [0.0, 0.0, START]]
    actin: Any = topology.add_filaments(list(nodes), 4.0, 4.0, rise=1.0, fixed_nodes=2 * np.arange(copies))
    # With this friction beads diffuse in steps of BAOAB with D = 1, exactly.
    friction = 2.0 * mass / timestep * np.arctanh(0.5 * timestep / mass)
    beads: Any = topology.add_beads(across + [0.0, 0.0, START + 0.5 + APART], mass, friction)
    system = mp.System(topology)
    direction = "0.5*k*((x - a)^2 + y^2)/((x - a)^2 + y^2 + z^2)"
    system.add_force(mp.forces.ExternalField(actin.beads[1::2], direction, k=2e5, a=across[:, 0]))
    system.add_force(mp.forces.HarmonicTrap(beads, [20.0, 20.0, 0.0], across))
    system.add_force(mp.forces.UniformField(beads, [0.0, 0.0, -force]))
    system.add_force(mp.forces.SoftSphere(actin, beads, CONTACT, APART))
    pool = system.add_pool(mp.Pool(volume=1.0, concentrations={"G": 1.0}))
    system.add_jump(mp.jumps.Polymerization(actin, pool["G"], on_rate=on, off_rate=off, subunits=(1, 10_000)))
    integrator = mp.SplittingIntegrator("JBAOABJ", timestep, kT=1.0, seed=seed)
    simulation = mp.Simulation(system, integrator, threads=1)
    simulation.context.set_velocities_to_temperature(kT=1.0, seed=seed)
    return actin, beads, simulation


def brownian_ratchet(work: Work) -> Made:
    """Velocities against force for three rates of growth, and two staircases."""
    copies, forces = work.of(100, 800), work.of((1.0,), (0.5, 1.0, 1.5, 2.0, 2.5, 3.0))
    figure, (left, right) = panels(1, 2, (7.4, 3.1))
    fine = np.linspace(0.1, 5.0, 60)
    rows = []
    for k, (on, (timestep, mass)) in enumerate(SPEEDS.items()):
        off, color = OFF * on, f"C{k}"
        law = np.array([ratchet(f, on, off) for f in fine])
        left.plot(fine, law / (on - off), color=color, label=f"rate {on:g}")
        stall = float(np.log(1.0 / OFF))
        for force in (*forces, stall):
            expected = ratchet(force, on, off)
            # A dozen subunits each, where that is not too long; below the first it has to be forgotten how it began.
            time = min(work.of(20.0, 400.0) / max(work.of(0.3, 1.0), on), 12.0 / max(expected, 1e-9))
            actin, _, simulation = pushed(force, on, off, copies, timestep, mass, seed=k + 1)
            simulation.step(round(min(10.0, 0.5 * time) / timestep))
            start = actin.subunits(simulation.context.get_state(positions=True))
            steps = round(time / timestep)
            simulation.step(steps)
            grown = actin.subunits(simulation.context.get_state(positions=True)) - start
            speed = grown / (steps * timestep)
            mean, error = float(speed.mean()), float(speed.std(ddof=1)) / np.sqrt(copies)
            left.errorbar(force, mean / (on - off), 2.0 * error / (on - off), fmt="o", color=color, markersize=3.5)
            at = "at stall" if force == stall else f"at {force:g} kT/δ"
            says = "the same distribution of gaps, with the contact that is used here"
            if force == stall:
                says = "no growth at the force kT/δ ln(k_on C/k_off), however fast"
            rows.append(Row(z_line(f"velocity {at}, k_on C = {on:g} D/δ²", mean, error, expected, "δ D/δ²"), says))
    left.plot(fine, (np.exp(-fine) - OFF) / (1.0 - OFF), "--", **PUBLISHED, label="obstacle much faster")
    slow = fine**2 / (np.expm1(fine) - fine) / ((1.0 - OFF) * max(SPEEDS))
    left.plot(fine, slow, ":", **PUBLISHED, label=f"growth much faster (for {max(SPEEDS):g})")
    left.axhline(0.0, color="0.8", linewidth=0.6)
    left.set(xlabel="force, $kT/\\delta$", ylabel="velocity / free velocity", ylim=(-0.03, 1.0), xlim=(0.0, 5.0))
    left.legend()
    for on, color in ((0.1, "C0"), (10.0, "C2")):
        timestep, mass = SPEEDS[on]
        actin, beads, simulation = pushed(1.0, on, OFF * on, 1, timestep, mass, seed=3)
        seen = []
        for _ in range(700):
            simulation.step(max(1, round(0.1 / on**0.5 / timestep)))
            state = simulation.context.get_state(positions=True)
            seen.append((state.time, state.positions[beads.beads[0], 2] - APART, actin.subunits(state)[0]))
        t, obstacle, end = (np.array(seen) - [0.0, START, START]).T
        keep = end <= 10.0
        right.plot(t[keep] / t[keep][-1], obstacle[keep], color=color, alpha=0.35, linewidth=0.6)
        right.step(t[keep] / t[keep][-1], end[keep], color=color, where="post", label=f"rate {on:g}")
    right.set(xlabel="time, of the whole", ylabel="end, and obstacle (pale), δ", ylim=(-1.0, 16.0))
    right.legend()
    letters((left, right), ("velocity against force", "staircases against 1 kT/δ"))
    return Made(
        figure, rows,
        f"{copies} filaments for each point, rates in D/δ², k_off = {OFF:g} k_on C, contact of {CONTACT:g} "
        f"kT/δ², obstacles forget velocities in {SPEEDS[10.0][1]:g} to {SPEEDS[0.1][1]:g} δ²/D",
    )  # fmt: skip


# A filament in a vesicle ------------------------------------------------------------------------------------


def tube(work: Work) -> Made:
    """A filament that grows in a vesicle, and draws a tube out of it: the scene of the demo ``treadmilling``."""
    system, mesh = pushing.build()
    watch, steps = pushing.Watch(mesh), work.of(20_000, 60_000)
    look = mp.reporters.Callback(pushing.LOOK, watch.look, include="positions")
    integrator = mp.SplittingIntegrator("JBAGOGABJ", pushing.TIMESTEP, temperature=TEMPERATURE, seed=1)
    simulation = mp.Simulation(system, integrator, threads=work.threads)
    simulation.reporters.append(look)
    simulation.context.set_velocities_to_temperature(kT=integrator.kT, seed=1)
    simulation.step(steps)
    lines, _ = pushing.compared(watch, steps)
    force, subunits = np.array(watch.rows)[:, :2].T
    time = pushing.FASTER * pushing.TIMESTEP * pushing.LOOK * np.arange(1, len(force) + 1)
    figure, (left, middle, right) = panels(1, 3, (7.8, 3.0))
    left.step(time, subunits - subunits[0], where="post", color="C0", label="measured")
    late = round(pushing.COUNT * len(time))
    slope = lines[1].expected * (time[late:] - time[late])
    left.plot(time[late:], subunits[late] - subunits[0] + slope, **PUBLISHED, label="by the mean force")
    left.set(xlabel="time of a cell, s", ylabel="subunits added")
    left.legend()
    wide = max(1, len(force) // 60)
    middle.plot(time, force, color="C1", alpha=0.25, linewidth=0.5)
    middle.plot(time[wide - 1 :], np.convolve(force, np.ones(wide) / wide, "valid"), color="C1", label="measured")
    middle.axhline(lines[0].expected, **PUBLISHED, label="$2\\pi\\sqrt{2\\kappa\\sigma}$")
    middle.axhline(pushing.STALL, linestyle="--", color="0.6", linewidth=0.8, label="stall")
    middle.set(xlabel="time of a cell, s", ylabel="force on the membrane, pN")
    middle.legend()
    state = simulation.context.get_state(positions=True)
    vesicle, actin = (simulation.topology[name] for name in ("vesicle", "actin"))
    x = state.positions[vesicle.beads]
    right.triplot(x[:, 0], x[:, 2], state.faces["vesicle"], color="0.6", linewidth=0.25)
    nodes = state.positions[actin.beads]
    right.plot(nodes[:, 0], nodes[:, 2], color="C3", linewidth=1.6)
    right.set(aspect="equal", xlabel="x, nm", ylabel="z, nm")
    letters((left, middle, right), ("growth", "force", "the vesicle at the end"))
    rows = [
        Row(lines[0], "2π√(2κσ), with the tension by the pressure (Derényi, Jülicher and Prost 2002)"),
        Row(lines[1], "k_on C exp(-F δ/kT) - k_off: the membrane moves faster than the filament grows"),
    ]
    return Made(
        figure, rows,
        f"{len(mesh.vertices)} vertices, κ = {pushing.BENDING_MODULUS / KT:g} kT, edges flip; "
        f"{pushing.MICROMOLES:g} µM of actin, rates {pushing.FASTER:g} times those of cells; {steps} "
        f"steps, of which the last {100 * (1 - pushing.COUNT):.0f} % count",
    )  # fmt: skip


# A gliding assay --------------------------------------------------------------------------------------------

STIFFNESS, HOLD, STEP, LENGTH = 0.5, 8.0, 1.0, 160.0
#: Of a head, per step of the integrator: nm, and letting go. Share of time for which it holds.
VELOCITY, UNBINDING, DUTY = 0.02, 0.004, 0.2


def gliding(motors: int, copies: int, seed: int = 1) -> tuple[mp.Simulation, Any]:
    """Build filaments that slide along x over fixed heads, `motors` of them in reach of each: (simulation, filaments).

    Positions of BAOAB have the right width for any step: that of springs is 2.9 nm, and forgotten in a few steps. Drag
    must be low: heads that let go take their share of it with them, which is a friction of its own.
    """
    topology = mp.Topology()
    y, box = 500.0 * np.arange(copies), 3.0 * LENGTH
    nodes = [[[0.0, own, 0.0], [LENGTH, own, 0.0]] for own in y]
    mass = 0.5 * max(STIFFNESS * motors, HOLD) / 0.4
    track: Any = topology.add_filaments(nodes, mass, 0.2 * mass)
    system = mp.System(topology, box=[box, None, None])
    system.add_force(mp.forces.HarmonicTrap(track, (0.0, 0.5 * HOLD, 0.5 * HOLD), np.concatenate(nodes)))
    springs = system.add_force(mp.forces.Links([], [], stiffness=STIFFNESS, length=0.0))
    apart = LENGTH / motors
    x = np.arange(round(box / apart)) * apart
    heads = np.stack([np.tile(x, copies), np.repeat(y, len(x)), np.zeros(copies * len(x))], axis=1)
    heads[:, 0] += np.random.default_rng(seed).uniform(0.0, apart, copies).repeat(len(x))
    # Heads let go at a rate that knows no strain, and take hold of any of some places near to them: a sum along x, and
    # a mean over what the track, held by HOLD, moves across.
    places = np.sqrt(2.0 * np.pi * KT / STIFFNESS) / STEP / (1.0 + STIFFNESS / HOLD)
    on = UNBINDING * DUTY / (1.0 - DUTY) / places
    system.add_jump(mp.jumps.Motors(
        springs, track.lattice(STEP), mp.Sites.anchors(heads), step=STEP, unloaded_velocity=VELOCITY, stall_force=40.0,
        load_sharing=0.2, on_rate=on, off_rate=UNBINDING, unbinding_share=0.0, leaves_end=True, name="motors",
    ))  # fmt: skip
    simulation = mp.Simulation(system, mp.SplittingIntegrator("JBAOABJ", 1.0, kT=KT, seed=seed), threads=1)
    simulation.context.set_velocities_to_temperature(kT=KT, seed=2)
    return simulation, track


def glided(motors: int, copies: int, looks: int, settle: int = 3000) -> tuple[np.ndarray, np.ndarray]:
    """Run them: (velocities of filaments against the way of heads, shares of heads that hold, look by look)."""
    simulation, _ = gliding(motors, copies)

    def middles() -> Any:
        return simulation.context.get_state(positions=True).positions.reshape(copies, 2, 3).mean(axis=1)[:, 0]

    simulation.step(settle)
    before, held = middles(), []
    for _ in range(looks):
        simulation.step(200)
        rows = simulation.context.get_state(positions=True).jumps["motors"]["links"]
        held.append(len(rows[rows[:, 0] >= 0]) / (motors * copies))
    return -(middles() - before) / (200 * looks), np.array(held)


def gliding_assay(work: Work) -> Made:
    """Velocity against the number of motors in reach: the crossover is where one of them holds at any time."""
    copies, looks = work.of((24, 15), (90, 60))
    numbers = work.of((2, 20), (1, 2, 3, 5, 8, 12, 20))
    figure, (axis,) = panels(1, 1, (4.4, 3.1))
    fine = np.geomspace(0.8, 25.0, 100)
    axis.plot(fine, 1.0 - (1.0 - DUTY) ** fine, **PUBLISHED, label="one of N holds, $1 - (1 - r)^N$")
    axis.axvline(1.0 / DUTY, color="0.7", linestyle=":", label="N = 1/r")
    rows = []
    for n in numbers:
        velocity, _ = glided(n, copies, looks, work.of(1500, 3000))
        share = 1.0 - (1.0 - DUTY) ** n
        line = mean_line(f"velocity over that of heads, {n} in reach", velocity / VELOCITY, share)
        axis.errorbar(n, line.measured, 2.0 * line.error, fmt="o", color="C0")
        rows.append(Row(line, "moves as heads walk while one holds: 1 - (1 - r)^N"))
    axis.set(xscale="log", xlabel="motors in reach, N", ylabel="velocity / that of a head", ylim=(0.0, 1.1))
    axis.legend()
    return Made(figure, rows, f"{copies} filaments of {LENGTH:g} nm for each point, r = {DUTY:g}, {200 * looks} steps")


# Networks ---------------------------------------------------------------------------------------------------


def network(motors: int, linkers: int, filaments: int, steps: int, seed: int, looks: int) -> Any:
    """Run the scene of the demo ``contraction``: (looks + 1,) radius of gyration over that of the start."""
    system, actin, _ = contraction.build(filaments, seed, linkers, motors)
    integrator = mp.SplittingIntegrator("JBAGOGABJ", contraction.TIMESTEP, temperature=TEMPERATURE, seed=seed)
    simulation = mp.Simulation(system, integrator, threads=1)
    simulation.context.set_velocities_to_temperature(kT=integrator.kT, seed=seed)
    out = []
    for k in range(looks + 1):
        simulation.step(steps // looks if k else 0)
        x = simulation.context.get_state(positions=True).positions[actin.beads]
        out.append(np.sqrt(((x - x.mean(axis=0)) ** 2).sum(axis=1).mean()))
    return np.array(out) / out[0]


def contractility(work: Work) -> Made:
    """Radius of gyration against time, for several numbers of motors and of crosslinkers."""
    filaments, steps, seeds = work.of((60, 1600, 1), (120, 6000, 3))
    motors, linkers = work.of((0, 100), (0, 25, 50, 100, 200)), work.of((500,), (100, 500))
    figure, axes = panels(1, 2, (7.2, 3.0))
    seconds = contraction.FASTER * contraction.TIMESTEP * steps
    shrunk: dict[tuple[int, int], Any] = {}
    for n in linkers:
        for m in motors:
            runs = np.array([network(m, n, filaments, steps, seed, 40) for seed in range(1, seeds + 1)])
            shrunk[n, m] = runs[:, -4:].mean(axis=1)
            if n == linkers[-1]:
                axes[0].plot(np.linspace(0.0, seconds, 41), runs.mean(axis=0), label=f"{m} motors")
        mean = np.array([shrunk[n, m].mean() for m in motors])
        axes[1].plot(motors, mean, "o-", label=f"{n} crosslinkers")
    axes[0].set(xlabel="time of a cell, s", ylabel="radius of gyration / at the start")
    axes[1].set(xlabel="motors", ylabel="at the end / at the start")
    for axis in axes:
        axis.legend()
    letters(axes, (f"{linkers[-1]} crosslinkers", "at the end"))
    rows = [
        Row(bound_line(f"radius of gyration, {m} motors over none, {n} crosslinkers",
                       float((shrunk[n, m] / shrunk[n, 0]).mean()), 1.0), "contraction increases with motors")
        for n in linkers for m in motors[1:]
    ]  # fmt: skip
    return Made(
        figure, rows, f"{filaments} filaments, {steps} steps, means of {seeds} networks, rates and velocities "
        f"{contraction.FASTER:g} times those of cells",
        "curves of the paper: its data (doi 10.13016/M2W16B) are not part of this package",
    )  # fmt: skip


FIGURES = (
    Plate("chemistry_ratchet.png", "Peskin, Odell and Oster 1993", "an end that pushes an obstacle", brownian_ratchet,
          (6.0, 200.0)),
    Plate("chemistry_tube.png", "MEDYAN's example of filopodia", "a filament that pushes a membrane into a tube", tube,
          (8.0, 25.0)),
    Plate("chemistry_gliding.png", "a gliding assay, as in AFINES (Freedman et al. 2017)",
          "velocity against motors in reach", gliding_assay, (6.0, 120.0)),
    Plate("chemistry_contraction.png", "Popov, Komianos and Papoian 2016", "contraction against motors",
          contractility, (8.0, 500.0)),
    *reactions.FIGURES,
)  # fmt: skip
