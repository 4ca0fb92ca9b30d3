"""Actin filaments inside a vesicle that cross-link themselves.

Everything but the links is as in the demo of filaments; these are α-actinin with the numbers of models of actin
networks (`presets.alpha_actinin`). In cells they let go a few times a second; here 20 000 times, so that a run of a
millisecond sees each link let go twenty times. What is bound on average does not depend on that.
"""

import itertools
from math import lgamma, log, pi, sqrt
from typing import Any

import numpy as np

from medyanpy import forces, presets, units
from medyanpy.beads import Filaments
from medyanpy.demo.filaments import (
    ACTIN,
    N_LINKS,
    RADIUS,
    SUBDIVISIONS,
    TIMESTEP,
    add_cell_forces,
    measured,
    relax,
    with_actin,
)  # fmt: skip
from medyanpy.demo.membrane import about_membrane_forces
from medyanpy.demo.report import (
    TEMPERATURE,
    Demo,
    Line,
    Option,
    Report,
    at_temperature,
    demo,
    facts_of,
    mean_line,
    size_of,
)
from medyanpy.integrators import BAGOGABIntegrator
from medyanpy.jumps import LinkBinding
from medyanpy.mesh import TriangleMesh
from medyanpy.sites import Sites
from medyanpy.state import State
from medyanpy.system import System
from medyanpy.topology import Topology

CROSSLINKER = presets.alpha_actinin()
# 1/s: of a relaxed link, and of a pair of sites at its length.
OFF_RATE, ON_RATE = 2e4, 4e4
# kT; the reach of links is ±3.2 nm about their length.
REACH = 10.0
# The side run: wells, rods in each, their length and the width of the distribution of their middles (nm), sites on
# each as shares of its length, steps before it is looked at, looks, and steps between them.
WELLS, RODS, ROD_LENGTH, WIDTH = 100, 10, 110.0, 60.0
PLACES = (0.125, 0.375, 0.625, 0.875)
SIDE_START, SIDE_LOOKS, SIDE_INTERVAL = 3000, 25, 200
# ω dt of a link between two nodes.
SIDE_PHASE = 0.3


@demo(
    "network",
    "filaments in a vesicle that crosslinkers bind to each other and let go",
    filaments=Option(300, "actin filaments of 0.33 µm", 2, 1000),
    steps=Option(6_000, "time steps"),
)
def run_network_demo(report: Report, filaments: int) -> Demo:
    mesh = TriangleMesh.icosphere(RADIUS, SUBDIVISIONS)
    report.begin(f"vesicle: {size_of(mesh)}")
    system = with_actin(mesh, filaments, 0, 0, report.seed)
    handles: tuple[Any, ...] = system.topology.handles
    vesicle, actin = handles
    add_cell_forces(system, vesicle, actin)
    start, relaxed = relax(system, report.threads)
    sites = _sites(actin, N_LINKS)
    system = _linked(system, sites)
    notes = [
        f"{filaments} actin filaments of {N_LINKS * ACTIN.link_length:.0f} nm, {len(sites)} sites for "
        f"{CROSSLINKER.name} ({CROSSLINKER.stiffness:g} pN/nm, {CROSSLINKER.length:g} nm), each with one link at most; "
        f"binding {ON_RATE:g}/s, letting go {OFF_RATE:g}/s",
        about_membrane_forces(mesh),
    ]
    report.note(*notes)
    report.say(relaxed)
    lines, state, end = measured(report, system, start, "filament links")
    facts = _facts(state, system, len(sites))
    report.say(
        f"links     {facts['links']} bound at the end, {100.0 * facts['share of sites']:.0f} % of the sites, with "
        f"tensions of {facts['tension']:.1f} ± {facts['spread of tensions']:.1f} pN; {facts['events']} events"
    )
    report.say(f"free      {WELLS} wells of {RODS} rods without collisions, each with one link at most: links and heat")
    lines += _bound_and_heat(report.seed, report.threads)
    return report.finish(
        mesh, system.topology, lines, mesh=facts_of(mesh, "vesicle"), notes=notes, filaments=filaments,
        at_the_end={"area": end.area, "volume": end.volume, **facts},
    )  # fmt: skip


def _sites(filaments: Filaments, n_links: int) -> Sites:
    """Make a site in the middle of every link of all filaments."""
    n = len(filaments.starts) - 1
    return filaments.sites(np.repeat(np.arange(n), n_links), np.tile(np.arange(n_links), n), 0.5)


def _linked(system: System, sites: Sites, **numbers: Any) -> System:
    """Copy the forces into a system with crosslinkers besides."""
    linked = System(system.topology)
    for force in system.forces:
        linked.add_force(force)
    links = linked.add_force(forces.Links([], [], **CROSSLINKER.arguments))
    linked.add_jump(
        LinkBinding(links, sites, off_rate=OFF_RATE, on_rate=ON_RATE, reach=REACH, name="crosslinkers", **numbers)
    )
    return linked


def _facts(state: State, system: System, n_sites: int) -> dict[str, float]:
    links: Any = system["Links"]
    tensions = links.tensions(state)
    return {
        "links": len(tensions),
        "share of sites": 2.0 * len(tensions) / n_sites,
        "tension": float(tensions.mean()) if len(tensions) else 0.0,
        "spread of tensions": float(tensions.std()) if len(tensions) else 0.0,
        "events": state.counts["crosslinkers"].accepted,
    }


# Measured against expected ----------------------------------------------------------------------------------


def _bound_and_heat(seed: int, threads: int) -> list[Line]:
    """Measure rods in wells that act on their middles, without collisions, each with one link at most.

    Two rods that are bound have the weight W = w0 Σ_ij <exp(-U(r_ij)/kT)>, w0 = on / off, relative to the same two
    unbound, with the mean over independent places and directions. Links share no rod, so that a set of k links weighs
    W^k: of n rods, k links have the probability n!/((n - 2k)! k! 2^k) W^k over the sum of all. Rates that balance
    take no heat.
    """
    kT = TEMPERATURE * units.boltzmann
    rng = np.random.default_rng(seed + 20)
    n = WELLS * RODS
    wells = np.zeros((n, 3))
    # They are so far apart that no link reaches.
    wells[:, 0] = 30.0 * WIDTH * (np.arange(n) // RODS)
    direction = rng.normal(size=(n, 3))
    direction *= 0.5 * ROD_LENGTH / np.linalg.norm(direction, axis=1, keepdims=True)
    middles = wells + rng.normal(0.0, WIDTH, (n, 3))
    topology = Topology()
    mass = 2.0 * CROSSLINKER.stiffness * (TIMESTEP / SIDE_PHASE) ** 2
    # It forgets its velocity on its way through a well.
    friction = mass * sqrt(kT / (2.0 * mass)) / WIDTH
    rods = topology.add_filaments(list(np.stack([middles - direction, middles + direction], axis=1)), mass, friction)
    bare = System(topology)
    stiffness = kT / WIDTH**2
    ends = rods.sites(np.arange(n), 0, 0.5), Sites.anchors(wells)
    bare.add_force(forces.Links(*ends, stiffness=stiffness, name="wells"))
    sites = rods.sites(np.repeat(np.arange(n), len(PLACES)), 0, np.tile(PLACES, n))
    # One link on each rod: its sites are nearer to each other than that.
    system = _linked(bare, sites, separation=2.0 * ROD_LENGTH)
    integrator = BAGOGABIntegrator(TIMESTEP, temperature=TEMPERATURE, seed=seed + 20)
    context = at_temperature(system, integrator, threads)
    context.step(SIDE_START)
    listener = context.events()
    per_well = len(PLACES) * RODS
    bound = np.zeros(WELLS)
    for _ in range(SIDE_LOOKS):
        context.step(SIDE_INTERVAL)
        rows = context.get_state(positions=True).jumps["crosslinkers"]["links"]
        bound += np.bincount(rows[:, 0] // per_well, minlength=WELLS)
    events = listener.heard()
    heat, number = np.zeros(WELLS), np.zeros(WELLS)
    well = np.array([event.a for event in events]) // per_well
    np.add.at(heat, well, [event.energy for event in events])
    np.add.at(number, well, 1.0)
    weight = ON_RATE / OFF_RATE * _overlap(2.0 * WIDTH**2, kT)
    return [
        mean_line("links per rod", bound / SIDE_LOOKS / RODS, _mean_number(RODS, weight) / RODS),
        mean_line("heat of an event", heat / number.mean() / kT, 0.0, "kT"),
    ]


def _overlap(variance: float, kT: float) -> float:
    """Return Σ_ij <exp(-U(r_ij)/kT)> of two rods whose middles are apart by a normal vector of this variance. For rods
    at an angle of cosine c, sites s and t from their middles are apart by that and m, m² = s² + t² - 2 s t c."""
    x, wx = np.polynomial.legendre.leggauss(100)
    half = sqrt(2.0 * REACH * kT / CROSSLINKER.stiffness)
    r, wr = CROSSLINKER.length + half * x, half * wx
    c, wc = np.polynomial.legendre.leggauss(60)
    boltzmann = np.exp(-0.5 * CROSSLINKER.stiffness * (r - CROSSLINKER.length) ** 2 / kT)
    total = 0.0
    for s, t in itertools.product(ROD_LENGTH * (np.array(PLACES) - 0.5), repeat=2):
        m = np.sqrt(s * s + t * t - 2.0 * s * t * c)[:, None]
        # exp(-(r² + m²)/2v) sinh(rm/v)/(rm/v), without overflow.
        density = np.exp(-((r - m) ** 2) / (2.0 * variance)) - np.exp(-((r + m) ** 2) / (2.0 * variance))
        density *= variance / (2.0 * r * m) / (2.0 * pi * variance) ** 1.5
        total += 0.5 * float(wc @ density @ (wr * 4.0 * pi * r**2 * boltzmann))
    return total


def _mean_number(n: int, weight: float) -> float:
    """Compute the mean number of links between n rods with one each at most."""
    k = np.arange(n // 2 + 1)
    logs = [lgamma(n + 1) - lgamma(n - 2 * i + 1) - lgamma(i + 1) + i * log(0.5 * weight) for i in k]
    p = np.exp(np.array(logs) - max(logs))
    return float(p @ k / p.sum())
