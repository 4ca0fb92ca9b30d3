"""Ladd and Misra's rod beside Kirchhoff's, (13) to (16): the same circle let go, without shear and stretch.

`rods.CircularSection.kirchhoff` makes a twistable filament of it, whose links keep their lengths by constraints.
"""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from medyanpy.context import Context
from medyanpy.demo.report import bound_line, near_line
from medyanpy.demo.rod import LENGTH, SECTION
from medyanpy.errors import SimulationError, TimestepWarning
from medyanpy.forces import FilamentBending, FilamentTwisting, RodElasticity
from medyanpy.integrators import SplittingIntegrator
from medyanpy.system import System
from medyanpy.topology import Topology

from .plates import Made, Row, Work, letters, panels

TIMES = (0.0, 300.0, 600.0, 900.0, 1200.0, 1500.0)
# A run is unstable from here on.
LOST = 0.1


def kirchhoff(segments: int, dt: float) -> Context:
    """The circle of `segments` links; links are at the places of the segments of rods."""
    angle = 2.0 * np.pi / segments * np.arange(segments + 1)
    radius = 0.5 * LENGTH / segments / np.sin(np.pi / segments)
    corners = radius * np.column_stack([np.zeros(segments + 1), np.cos(angle), np.sin(angle)])
    topology = Topology()
    rod = topology.add_filament(**SECTION.kirchhoff(corners))
    system = System(topology)
    system.add_force(FilamentBending(rod, SECTION.stiffness["bending"]))
    system.add_force(FilamentTwisting(rod, SECTION.stiffness["twist"]))
    return Context(system, SplittingIntegrator("ABA", dt), threads=1)


def middles(context: Context, segments: int) -> np.ndarray:
    """(N, 2) places of the middles of links in the plane, from their mean."""
    x = context.get_state(positions=True).positions[: segments + 1, 1:]
    x = 0.5 * (x[1:] + x[:-1])
    return np.asarray(x - x.mean(axis=0))


def largest_error(context: Context, dt: float, end: float) -> float:
    """Of the energy, relative, looked at every step; not a number where the run fails."""
    start, worst = context.get_state(energy=True).total_energy, 0.0
    try:
        for _ in range(round(end / dt)):
            context.step(1)
            worst = max(worst, abs(context.get_state(energy=True).total_energy / start - 1.0))
            if worst > LOST:
                break
    except SimulationError:
        return np.nan
    return worst


def longest_stable(make: Callable[[float], Context], low: float, high: float, end: float) -> float:
    """The longest timestep, to 0.01, with which the energy stays."""
    with warnings.catch_warnings():
        # They are asked for.
        warnings.simplefilter("ignore", TimestepWarning)
        while high - low > 0.01:
            middle = 0.5 * (low + high)
            stays = largest_error(make(middle), middle, end) < LOST
            low, high = (middle, high) if stays else (low, middle)
    return low


def beside(work: Work, make_rod: Callable[[float], Any]) -> Made:
    """Shapes and timesteps of both; `make_rod` makes a run of the rod that shears."""
    n, dt = 63, 0.2
    own, other = kirchhoff(n, dt), make_rod(dt)
    figure, axes = panels(1, 2, (7.6, 3.1), width_ratios=(1.4, 1.0))
    apart = {}
    for k, time in enumerate(TIMES):
        if k:
            own.step(1500)
            other.step(1500)
        x, y = middles(own, n), other.state().positions[:, 1:]
        y = y - y.mean(axis=0)
        apart[time] = float(np.linalg.norm(x - y, axis=1).max())
        axes[0].plot(*x.T, color=f"C{k}", linewidth=1.1, label=f"{time:g}")
        axes[0].plot(*y.T[:, ::3], "o", color=f"C{k}", markersize=2.2, markerfacecolor="none", markeredgewidth=0.6)
    axes[0].set(xlabel="$y/d$", ylabel="$z/d$", aspect="equal")
    axes[0].legend(title="$t/t_0$", loc="center left", bbox_to_anchor=(1.0, 0.5))
    end = work.of(100.0, 1000.0)
    grids = {"shearable": (0.1, 0.2, 0.4, 0.6, 0.75), "Kirchhoff": (0.1, 0.2, 0.4, 0.8, 1.2, 1.5)}
    makers: dict[str, Any] = {"shearable": lambda h: make_rod(h).context, "Kirchhoff": lambda h: kirchhoff(n, h)}
    errors, longest = {}, {}
    for k, (name, make) in enumerate(makers.items()):
        errors[name] = [largest_error(make(h), h, end) for h in grids[name]]
        longest[name] = longest_stable(make, 0.5, 3.0, end)
        axes[1].loglog(grids[name], errors[name], "os"[k] + "-", color=f"C{k}", label=name)
        axes[1].axvline(longest[name], color=f"C{k}", linestyle=":", linewidth=1.0)
    axes[1].set(xlabel="$\\Delta t/t_0$", ylabel="largest $|E/E_0 - 1|$")
    axes[1].legend()
    letters(axes, ("Kirchhoff (lines), shearable (dots)", "dotted: stable up to here"))
    law = RodElasticity(other.rod, **SECTION.stiffness).longest_timestep()
    ratio = longest["Kirchhoff"] / longest["shearable"]
    equal = float(np.sqrt(errors["shearable"][1] / errors["Kirchhoff"][1]))
    rows = [
        Row(bound_line("the two rods at 300 t0, largest distance", apart[300.0], 0.5, "d"),
            "shear and stretch are negligible where curvature times thickness is small"),
        Row(near_line("longest stable timestep of the rod that shears", longest["shearable"], law, 0.02, "t0"),
            "bounded by shear and extension; 2/ω of its fastest wave"),
        Row(bound_line("longest stable timestep, Kirchhoff over shearable", ratio, 10.0),
            "within a factor of 10; 8 beside the implicit rule of Dichmann and Maddocks"),
        Row(bound_line("timestep of the same error, Kirchhoff over shearable", equal, 10.0), "within a factor of 10"),
    ]  # fmt: skip
    return Made(figure, rows, f"63 segments, ABA, Δt = {dt:g} t0; errors and limits to {end:g} t0")
