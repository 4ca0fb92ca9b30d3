"""Summary of a Context as tables: what notebooks show of it, and of a Simulation."""

from typing import TYPE_CHECKING

import numpy as np

from medyanpy._tools.images import box_shown, in_words
from medyanpy._tools.tables import Table, amount, named, quantity
from medyanpy.errors import MedyanError
from medyanpy.kicks import Explicit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from medyanpy.context import Context
    from medyanpy.core.handles import Handle
    from medyanpy.reporters import Reporter
    from medyanpy.state import State

__all__ = ["said_of", "table_of_reporters", "tables_of"]

# Energies are taken of no more beads than this, which is a matter of milliseconds, and of pairs that all see each other
# of some tenths of a second.
MOST_BEADS = 10_000


def said_of(context: "Context") -> str:
    """Return the step and time of a context, in one line."""
    return f"step {context.step_count:,}, {context.time:.6g} s"


def tables_of(context: "Context") -> tuple[list[Table], list[str]]:
    """Return the tables of a context, and the reasons for what is left out of them."""
    state, why_not = _look(context)
    temperatures = {} if state is None else state.temperatures
    energies = {} if state is None else state.energies
    integrator, system = context.integrator, context.system
    kT, box = integrator.kT, box_shown(context._store.layout.box)
    run = [
        ("step", amount(context.step_count)), ("time", quantity(context.time, "s")),
        ("integrator", type(integrator).__name__), ("word", integrator.word),
        *([] if isinstance(integrator.kick, Explicit) else [("kick", repr(integrator.kick))]),
        ("timestep", quantity(integrator.timestep, "s")),
        ("thermostat", _thermostat(kT, integrator.temperature, integrator.in_kelvin)),
        *([] if box is None else [("box (nm)", in_words(box))]),
        *([] if state is None else [("temperature now", quantity(state.temperature, "K"))]),
        ("threads", amount(context.threads)),
    ]  # fmt: skip
    beads = [
        (h.name, h.kind.name, amount(_living(h, state)), amount(temperatures.get(h.name)))
        for h in system.topology.handles
    ]
    forces = [
        (named(name, force), amount(energies.get(name)), _in_heat(energies.get(name), kT))
        for name, force in zip(system.force_names, system.forces, strict=True)
    ]
    if state is not None:
        for name, energy in (("potential", state.potential_energy), ("kinetic", state.kinetic_energy)):
            forces.append((f"{name} energy", amount(energy), _in_heat(energy, kT)))
    jumps = []
    for name, jump in zip(system.jump_names, system.jumps, strict=True):
        tried, happened = (None, None) if state is None else state.counts[name]
        jumps.append((named(name, jump), amount(tried), amount(happened)))
    tables = [
        Table("run", run),
        Table("beads", beads, ("beads", "kind", "number", "temperature (K)")),
        Table("forces", forces, ("forces", "energy (pN nm)", "energy (kT)")),
        Table("jumps", jumps, ("jumps", "tried", "happened")),
    ]
    now = [] if state is None else list(state.pools.items())
    molecules = [(f"{pool}, {name}", amount(int(np.sum(n)))) for pool, own in now for name, n in own.items()]
    tables.append(Table("pools", molecules, ("pools", "molecules")))
    if system.hydrodynamics is not None:
        tables.append(Table("fluid", [("hydrodynamics", repr(system.hydrodynamics))]))
    return tables, [why_not] if why_not else []


def table_of_reporters(reporters: "Sequence[Reporter]") -> Table:
    """Return the table of the reporters of a simulation."""
    # Reporter classes of others may not have called the constructor of their base class.
    rows = [(type(r).__name__, getattr(r, "writes_to", "–"), amount(getattr(r, "interval", None))) for r in reporters]
    return Table("reporters", rows, ("reporters", "writes to", "every (steps)"))


def _look(context: "Context") -> "tuple[State | None, str]":
    """Return energies and temperatures, or why a display does not take them."""
    n, schedule = context.layout.n, context._schedule
    if n > MOST_BEADS:
        return None, f"Energies and temperatures are not taken here of more than {MOST_BEADS:,} beads: get_state does."
    # Functions of a user's may do anything when they are called.
    own = [
        name
        for name, force in zip(context.system.force_names, context.system.forces, strict=True)
        if force.calls_python
    ]
    if own:
        return None, f"Energies and temperatures are not taken here, since {own[0]} calls a function: get_state does."
    if schedule.stale() or schedule.jumping.stale() or not schedule.follows_integrator:
        return None, "Numbers have been set since the last step or state: energies will be known after the next."
    try:
        return context.get_state(energy=True), ""
    except MedyanError as error:
        return None, f"Energies and temperatures cannot be taken now: {error}"


def _living(handle: "Handle", state: "State | None") -> int:
    """Return how many beads of a handle there are now, where that is known, or were at the start."""
    return len(handle) if state is None or not len(handle._inactive) else len(state.living(handle))


def _thermostat(kT: float | None, temperature: float | None, in_kelvin: bool) -> str:
    if kT is None:
        return "none"
    return f"{temperature:.6g} K (kT = {kT:.4g} pN nm)" if in_kelvin else f"kT = {kT:.6g}"


def _in_heat(energy: float | None, kT: float | None) -> str:
    return "–" if energy is None or kT is None else f"{energy / kT:.4g}"
