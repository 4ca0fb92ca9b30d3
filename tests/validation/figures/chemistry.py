"""Filaments that grow against what is in their way, and motors that carry them.

A growing end and an obstacle that is pushed against it are a Brownian ratchet: C. S. Peskin, G. M. Odell and G. F.
Oster, Biophys. J. 65, 316 (1993). No rate reads a force here: a subunit is added where there is room for it.
"""

from typing import Any

import numpy as np

import medyanpy as mp
from medyanpy.demo.report import z_line

from .plates import PUBLISHED, Made, Plate, Row, Work, letters, panels

# The Brownian ratchet ---------------------------------------------------------------------------------------

# Units: a subunit, kT, and the time in which the obstacle diffuses by the root of two subunits.
CONTACT, APART = 20.0, 6.0
#: Subunits that come in that time, and what share of it the integrator's steps and the obstacle's inertia are.
SPEEDS = {0.1: (0.02, 0.05), 1.0: (0.01, 0.02), 10.0: (0.01, 0.02)}
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
    # The end moves with its length alone: its mass only makes its direction slow.
    nodes = across[:, None] + [[0.0, 0.0, 0.0], [0.0, 0.0, 4.0]]
    actin: Any = topology.add_filaments(list(nodes), 4.0, 4.0, rise=1.0, fixed_nodes=2 * np.arange(copies))
    beads: Any = topology.add_beads(across + [0.0, 0.0, 4.5 + APART], mass, 1.0)
    system = mp.System(topology)
    direction = "0.5*k*((x - a)^2 + y^2)/((x - a)^2 + y^2 + z^2)"
    system.add_force(mp.forces.ExternalField(actin.beads[1::2], direction, k=4000.0, a=across[:, 0]))
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
    copies, forces = work.of(150, 1500), work.of((1.0, 3.0), (0.5, 1.0, 1.5, 2.0, 2.5, 3.0))
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
            time = min(work.of(40.0, 400.0), 12.0 / max(expected, 1e-9))
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
            seen.append((state.time, state.positions[beads.beads[0], 2] - APART - 4.0, actin.subunits(state)[0] - 4.0))
        t, obstacle, end = np.array(seen).T
        keep = end <= 10.0
        right.plot(t[keep] / t[keep][-1], obstacle[keep], color=color, alpha=0.35, linewidth=0.6)
        right.step(t[keep] / t[keep][-1], end[keep], color=color, where="post", label=f"rate {on:g}")
    right.set(xlabel="time, of the whole", ylabel="end, and obstacle (pale), δ", ylim=(-1.0, 16.0))
    right.legend()
    letters((left, right), ("velocity against force", "staircases against 1 kT/δ"))
    return Made(
        figure, rows,
        f"{copies} filaments for each point, rates in D/δ², k_off = {OFF:g} k_on C, contact of {CONTACT:g} kT/δ², "
        f"obstacles forget velocities in {SPEEDS[10.0][1]:g} to {SPEEDS[0.1][1]:g} δ²/D",
    )  # fmt: skip


FIGURES = (
    Plate("chemistry_ratchet.png", "Peskin, Odell and Oster 1993", "an end that pushes an obstacle", brownian_ratchet,
          (6.0, 200.0)),
)  # fmt: skip
