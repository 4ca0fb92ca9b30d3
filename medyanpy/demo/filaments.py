"""Actin inside a vesicle, some of it tied to proteins of the membrane."""

import numpy as np

import medyanpy as mp
from medyanpy.demo.membrane import about_forces, facts_of, size_of
from medyanpy.demo.registry import Option, demo
from medyanpy.demo.report import TEMPERATURE, Demo, Report
from medyanpy.demo.vesicle import ACTIN, N_LINKS, RADIUS, SUBDIVISIONS, measured, relax, with_actin

TIED, BUSY = 0.25, 0.5  # Share of the filaments that are tied to a protein, and of the proteins that hold one.


@demo(
    "filaments",
    "actin filaments inside a vesicle, some of them tied to proteins of its membrane",
    filaments=Option(300, "actin filaments of 0.33 µm", 1, 1000),
    steps=Option(10_000, "time steps"),
)
def run_filament_demo(report: Report, filaments: int) -> Demo:
    mesh = mp.TriangleMesh.icosphere(RADIUS, SUBDIVISIONS)
    report.begin(f"vesicle: {size_of(mesh)}")
    system, notes = _build(mesh, filaments, report.seed)
    report.note(*notes)
    start, relaxed = relax(system, report.threads)
    report.say(relaxed)
    lines, _, end = measured(report, system, start, "links")
    return report.finish(
        mesh, system.topology, lines, mesh=facts_of(mesh, "vesicle"), notes=notes, filaments=filaments,
        proteins=len(system.topology["proteins"]), at_the_end={"area": end.area, "volume": end.volume},
    )  # fmt: skip


def _build(mesh: mp.TriangleMesh, filaments: int, seed: int) -> tuple[mp.System, list[str]]:
    """Build topology and forces, and describe them."""
    tied = int(np.ceil(TIED * filaments))
    system = with_actin(mesh, filaments, tied, round(tied / BUSY), seed)
    return system, [
        f"{filaments} actin filaments of {N_LINKS * ACTIN.link_length:.0f} nm, persistence length "
        f"{ACTIN.persistence_length(TEMPERATURE) / mp.units.micrometer:.3g} µm, {tied} of them tied to one of "
        f"{len(system.topology['proteins'])} proteins; all collide with each other and with the membrane",
        about_forces(mesh),
    ]
