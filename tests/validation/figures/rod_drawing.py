"""Seed 004, figure 1: a filament at rest and deformed, with a cross section, directors and a material point."""

import numpy as np

from medyanpy import rods
from medyanpy._tools.quaternions import matrices
from medyanpy.demo.report import bound_line
from medyanpy.topology import Topology

from .plates import Made, Row, Work, letters

NODES, SEGMENT, RADII, CURVES = 61, 0.1, (0.75, 0.45), ("C0", "C1", "C2")
# Shear, stretch; bending, twist.
STRAIN, CURVATURE = np.array([0.25, 0.0, 1.15]), np.array([0.0, 0.3, 0.12])
MARKED = (8, 30, 52)


def drawing(work: Work) -> Made:
    """Return the picture; its numbers are the strains that the package finds in the drawn rod."""
    from matplotlib.figure import Figure

    shapes = [rods.uniform(NODES, SEGMENT), rods.uniform(NODES, SEGMENT, CURVATURE, STRAIN)]
    figure = Figure((7.2, 3.6))
    axes = [figure.add_subplot(1, 2, i + 1, projection="3d") for i in range(2)]
    angle = np.linspace(0.0, 2.0 * np.pi, 61)
    for ax, shape in zip(axes, shapes, strict=True):
        places, directors = shape[0], matrices(shape[1])
        ax.plot(*places.T, "--", color="0.4", linewidth=0.9)
        for i in MARKED:
            ring = (directors[i][:, :2] * RADII) @ np.array([np.cos(angle), np.sin(angle)])
            ax.plot(*(places[i][:, None] + ring), color="0.2", linewidth=0.9)
            for k, color in enumerate(CURVES):
                ax.quiver(*places[i], *directors[i][:, k], color=color, linewidth=1.3, arrow_length_ratio=0.25)
            point = places[i] + 0.6 * RADII[0] * directors[i][:, 0]
            ax.plot(*point[:, None], "o", color="k", markersize=3.5)
        i = MARKED[-1]
        for k, color in enumerate(CURVES):
            ax.text(*(places[i] + 1.25 * directors[i][:, k]), f"$d_{k + 1}$", color=color)
        middle, half = 0.5 * (places.max(0) + places.min(0)), 0.5 * np.ptp(places, axis=0).max() + 0.9
        ax.set(xlim=middle[0] + np.array([-half, half]), ylim=middle[1] + np.array([-half, half]),
               zlim=middle[2] + np.array([-half, half]))  # fmt: skip
        ax.set_box_aspect((1, 1, 1), zoom=1.75)
        ax.view_init(elev=28, azim=-65)
        ax.set_axis_off()
    letters(axes, ["unstrained", "extension, shear, bending and twist"])
    strain, curvature = Topology().add_rod(*shapes[1], SEGMENT, 1.0, np.ones(3)).strains()
    rows = [
        Row(bound_line("extension and shear, error", float(np.abs(strain - STRAIN).max()), 1e-3), "those drawn"),
        Row(bound_line("bending and twist, error", float(np.abs(curvature - CURVATURE).max()), 1e-3), "those drawn"),
    ]
    return Made(figure, rows, f"{NODES} nodes, shear 0.25, stretch 1.15, bending 0.3, twist 0.12 per unit of length")
