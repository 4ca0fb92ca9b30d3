"""Actin filaments inside a vesicle that cross-link themselves.

Everything but the links is as in the demo of filaments; these are α-actinin with the numbers of models of actin
networks (`presets.alpha_actinin`). In cells they let go a few times a second; here 20 000 times, so that a run of a
millisecond sees each link let go twenty times. What is bound on average does not depend on that.
"""

from typing import Any

import numpy as np

import medyanpy as mp
from medyanpy.demo.membrane import about_forces, facts_of, size_of
from medyanpy.demo.registry import Option, demo
from medyanpy.demo.report import Demo, Report
from medyanpy.demo.vesicle import ACTIN, N_LINKS, RADIUS, SUBDIVISIONS, measured, relax, with_actin

CROSSLINKER = mp.presets.alpha_actinin()
# 1/s: of a relaxed link, and of a pair of sites at its length; and kT: the reach of links is ±3.2 nm about it.
OFF_RATE, ON_RATE, REACH = 2e4, 4e4, 10.0


@demo(
    "network",
    "filaments in a vesicle that crosslinkers bind to each other and let go",
    filaments=Option(300, "actin filaments of 0.33 µm", 2, 1000),
    steps=Option(6_000, "time steps"),
)
def run_network_demo(report: Report, filaments: int) -> Demo:
    mesh = mp.TriangleMesh.icosphere(RADIUS, SUBDIVISIONS)
    report.begin(f"vesicle: {size_of(mesh)}")
    bare = with_actin(mesh, filaments, 0, 0, report.seed)
    start, relaxed = relax(bare, report.threads)
    system = mp.System(bare.topology)
    for force in bare.forces:
        system.add_force(force)
    actin: Any = system.topology["actin"]
    # One in the middle of every link.
    sites = actin.sites(np.repeat(np.arange(filaments), N_LINKS), np.tile(np.arange(N_LINKS), filaments), 0.5)
    links = system.add_force(mp.forces.Links([], [], **CROSSLINKER.arguments))
    system.add_jump(
        mp.jumps.LinkBinding(links, sites, off_rate=OFF_RATE, on_rate=ON_RATE, reach=REACH, name="crosslinkers")
    )
    notes = [
        f"{filaments} actin filaments of {N_LINKS * ACTIN.link_length:.0f} nm, {len(sites)} sites for "
        f"{CROSSLINKER.name} ({CROSSLINKER.stiffness:g} pN/nm, {CROSSLINKER.length:g} nm), each with one link at most; "
        f"binding {ON_RATE:g}/s, letting go {OFF_RATE:g}/s",
        about_forces(mesh),
    ]
    report.note(*notes)
    report.say(relaxed)
    lines, state, end = measured(report, system, start, "filament links")
    tensions = links.tensions(state)
    facts = {
        "links": len(tensions),
        "share of sites": 2.0 * len(tensions) / len(sites),
        "tension": float(tensions.mean()) if len(tensions) else 0.0,
        "spread of tensions": float(tensions.std()) if len(tensions) else 0.0,
        "events": state.counts["crosslinkers"].accepted,
    }
    report.say(
        f"links     {facts['links']} bound at the end, {100.0 * facts['share of sites']:.0f} % of the sites, with "
        f"tensions of {facts['tension']:.1f} ± {facts['spread of tensions']:.1f} pN; {facts['events']} events"
    )
    return report.finish(
        mesh, system.topology, lines, mesh=facts_of(mesh, "vesicle"), notes=notes, filaments=filaments,
        at_the_end={"area": end.area, "volume": end.volume, **facts},
    )  # fmt: skip
