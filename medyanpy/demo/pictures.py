"""Pictures of the demos of rods and tethers, with panels."""

from pathlib import Path
from typing import Any

import numpy as np

import medyanpy as mp
from medyanpy.reporters._base import new_file
from medyanpy.rods import CircularSection
from medyanpy.visualize import draw


class Page:
    """Picture by `draw` with room for panels beside or below it, in pixels; `axes` are those of the picture."""

    def __init__(self, scene: Any, size: tuple[int, int], beside: int = 0, below: int = 0) -> None:
        from medyanpy.visualize.pictures import Picture

        scene.canvas.draw()
        width, height = size[0] + beside, size[1] + below
        self._figure = Picture(figsize=(width / 200.0, height / 200.0), dpi=200.0, facecolor="white")
        self.axes: Any = self._figure.add_axes((0.0, below / height, size[0] / width, size[1] / height))
        self.axes.imshow(np.asarray(scene.canvas.buffer_rgba()), interpolation="none")
        self.axes.set_axis_off()

    def panel(self, place: tuple[float, float, float, float], x: str, y: str) -> Any:
        """Make axes with these labels at a place of the page, (left, bottom, width, height) as shares."""
        axes = self._figure.add_axes(place)
        axes.set_xlabel(x, fontsize=6.0)
        axes.set_ylabel(y, fontsize=6.0)
        axes.tick_params(labelsize=5.5, width=0.5, length=2.0)
        axes.spines[["top", "right"]].set_visible(False)
        return axes

    def save(self, path: Path) -> None:
        """Write the page over what is there, with a legend above each panel that has labels."""
        path = new_file("draw", path, overwrite=True)
        for axes in self._figure.axes[1:]:
            labels = axes.get_legend_handles_labels()[1]
            if labels:
                axes.legend(
                    frameon=False, ncols=len(labels), loc="lower center", bbox_to_anchor=(0.5, 0.98), fontsize=6.0
                )
        self._figure.savefig(path, dpi=self._figure.dpi)


def draw_rod(
    simulation: mp.Simulation, path: Any, states: list[mp.State], energies: dict[float, np.ndarray],
    section: CircularSection,
) -> None:
    """Draw six shapes after equal times, energies of the run, and errors of energies with three timesteps, at every
    step of the first 30 t0."""
    rod: Any = simulation.system.topology.handles[0]
    times, shapes = np.array([0.0, *(s.time for s in states)]), [rod.positions, *(s.positions for s in states)]
    chosen = [int(np.argmin(np.abs(times - t))) for t in np.linspace(0.0, times[-1], 6)]
    length = len(rod) * rod.segment_length[0]
    places = np.array([[(k % 3) * 1.08 * length, 0.0, -(k // 3) * 0.62 * length] for k in range(6)])
    topology = mp.Topology()
    moved = []
    for k, place in zip(chosen, places, strict=True):
        x = shapes[k] - 0.5 * (shapes[k].min(axis=0) + shapes[k].max(axis=0))
        moved.append(x[:, [2, 1, 0]] + place)  # Turned such that it opens downwards.
    topology.add_rods(
        moved, [mp.rods.frames(x) for x in moved], rod.segment_length[0], section.linear_density,
        section.inertia_density, name="rod",
    )  # fmt: skip
    size, low = (1600, 760), 440
    share = low / (size[1] + low)
    context = mp.Context(mp.System(topology), mp.SplittingIntegrator("ABA", 1.0), threads=1)
    scene = draw(context, view=(0.0, 0.0), size=size, unit="d")
    page = Page(scene, size, below=low)
    # Places as `draw` puts them on the page, in pixels.
    scale = scene.axes[0].get_xlim()[1] / size[0]
    everything = np.concatenate(moved)
    middle = 0.5 * (everything.min(axis=0) + everything.max(axis=0))
    for k, place, x in zip(chosen, places, moved, strict=True):
        page.axes.text(
            0.5 * size[0] + (place[0] - middle[0]) / scale, 0.47 * size[1] - (x[:, 2].max() - middle[2] + 2.5) / scale,
            f"t = {times[k]:g} t₀", ha="center", va="bottom", fontsize=6.0, color="#333333",
        )  # fmt: skip
    left = page.panel((0.08, 0.09, 0.38, share - 0.13), "time (t₀)", "energy (10⁻³ Y d³)")
    for label, of in (("elastic", "potential"), ("of motion", "kinetic"), ("sum", "total")):
        left.plot(times[1:], [1e3 * getattr(s, f"{of}_energy") for s in states], lw=0.8, label=label)
    right = page.panel((0.58, 0.09, 0.38, share - 0.13), "time (t₀)", "ΔE / E (Δt/t₀)²")
    for (dt, energy), style in zip(energies.items(), ("-", "--", ":"), strict=True):
        first = dt * np.arange(1 + int(30.0 / dt))
        error = energy[: len(first)] / energy[0] - 1.0
        right.plot(first, error / dt**2, lw=0.8, ls=style, label=f"Δt = {dt:g} t₀")
    page.save(path)


def draw_tether(
    simulation: mp.Simulation, path: Any, time: np.ndarray, table: dict[str, np.ndarray], force: float | None, view: Any
) -> None:
    """Draw the tether at the end; in time (s) the force, beside that of theory, and how proteins gather."""
    size, beside = (800, 1000), 700
    share = size[0] / (size[0] + beside)
    page = Page(draw(simulation, view=view, size=size), size, beside)
    upper = page.panel((share + 0.07, 0.58, 0.9 - share, 0.34), "time (µs)", "force (pN)")
    lower = page.panel((share + 0.07, 0.11, 0.9 - share, 0.34), "time (µs)", "proteins per 1000 nm²")
    if len(time):
        time = time / mp.units.microsecond
        upper.plot(time, table["force"], lw=0.4, color="0.7")
        upper.plot(time, _smooth(table["force"]), lw=1.0, label="of the trap")
        upper.axhline(force, color="k", ls="--", lw=0.8, label="2π√(2κσ)")
        for area in ("tube", "body"):
            with np.errstate(divide="ignore", invalid="ignore"):
                # Before there is a tube this is the top of the vesicle.
                density = 1e3 * table[f"on_{area}"] / table[area]
            lower.plot(time, _smooth(density), lw=1.0, label=area)
    page.save(path)


def draw_contraction(
    simulation: mp.Simulation, path: Any, time: np.ndarray, curves: dict[str, np.ndarray]
) -> None:
    """Draw the network at the end; in time (s) its radius of gyration, the heat and the ATP."""
    size, beside = (1000, 1000), 700
    share = size[0] / (size[0] + beside)
    page = Page(draw(simulation, size=size), size, beside)
    radius, *energies = curves
    upper = page.panel((share + 0.08, 0.58, 0.89 - share, 0.34), "time (ms)", radius)
    lower = page.panel((share + 0.08, 0.11, 0.89 - share, 0.34), "time (ms)", "energy (pN nm)")
    time = time / mp.units.millisecond
    upper.plot(time, curves[radius], lw=1.0)
    for name in energies:
        lower.plot(time, curves[name], lw=1.0, label=name.split(" (")[0])
    # Most of the ATP goes into futile turns inside of heads.
    lower.set_yscale("log", nonpositive="mask")
    page.save(path)


def _smooth(values: np.ndarray, over: int = 40) -> np.ndarray:
    """Return running means, (n,), of fewer at the ends."""
    n = max(1, min(over, len(values)))
    ones = np.ones(n)
    return np.asarray(np.convolve(values, ones, "same") / np.convolve(np.ones(len(values)), ones, "same"))
