"""Tube of the demo of tethers: what is looked at, and theory.

A long tube has the radius √(κ/2σ) and pulls at the trap with 2π√(2κσ). The tension σ is mechanical: it is what
Laplace's law makes of the pressure. So small a vesicle is under a pressure that widens the tube, and on a mesh of few
edges around it bends with more energy, which widens it, too: the radius is compared with both.
"""

from math import pi, sqrt
from typing import Any, ClassVar

import numpy as np

import medyanpy as mp
from medyanpy.analysis.estimates import mean_of
from medyanpy.demo.membrane import BENDING_MODULUS
from medyanpy.demo.report import LARGEST_Z, Line, not_measured

EDGE = 10.0  # nm: of edges where nothing pulls or pushes.
# The tube that is looked at, from its end, nm: its cap is left out, and the neck is farther off.
CAP, LONG = 30.0, 60.0
EVEN = 40.0  # Part of it where the neck is not felt: the radius is measured there.
STIFFER = 0.104  # Tubes of regular triangles have 1 + STIFFER (edge/R)² of the bending energy of round ones.
# Share of the steps until looks count; below so many steps the tube is not at rest, and there is no verdict.
COUNT, FEWEST_STEPS = 0.5, 20_000
WITHIN = 0.15


class Tube:
    """Force of the trap, shape of the tube and of the body, and where proteins are, look by look; of the mesh at the
    start and the modulus (pN/nm²) and volume (nm³) of its `MembraneVolume`."""

    #: Columns of a row: force (pN) and place (nm) of the tip, pressure (pN/nm²); of the body area (nm²), integral of H
    #: (nm), and proteins; of the tube area, proteins and radius (nm).
    names: ClassVar[tuple[str, ...]] = (
        "force", "tip", "pressure", "body", "bent", "on_body", "tube", "on_tube", "radius"
    )

    def __init__(self, mesh: mp.TriangleMesh, modulus: float, volume: float) -> None:
        self._radius = float(np.linalg.norm(mesh.vertices, axis=1).mean())
        self._modulus, self._volume = modulus, volume
        self.steps: list[int] = []
        self.rows: list[tuple[float, ...]] = []

    def look(self, simulation: mp.Simulation, state: mp.State) -> None:
        system = simulation.system
        vesicle: Any = system.topology.handles[0]
        tip: Any = system["tip"]
        x, faces = state.positions[vesicle.beads], state.faces[vesicle.name]
        held = state.positions[tip.beads]
        now = mp.TriangleMesh(x, faces)
        middles, area = x[faces].mean(axis=1), now.face_areas
        height, high = middles[:, 2], float(x[:, 2].max()) - CAP
        body = np.abs(height) < 0.4 * self._radius  # Not the foot, nor the neck.
        tube = (height > high - LONG) & (height < high)
        H = now.mean_curvatures[faces].mean(axis=1)
        there = state.intriangle.triangles
        self.steps.append(state.step)
        self.rows.append((
            float((tip.stiffness * (tip.center - held)).sum(axis=0)[2]), float(held[:, 2].mean()),
            -self._modulus * (now.volume / self._volume - 1.0),
            float(area[body].sum()), float((H * area)[body].sum()), float(body[there].sum()),
            float(area[tube].sum()), float(tube[there].sum()),
            radius_of(middles[:, :2], area * ((height > high - EVEN) & (height < high))),
        ))  # fmt: skip

    def table(self) -> dict[str, np.ndarray]:
        """Return the columns by name, (T,) each."""
        return dict(zip(self.names, np.array(self.rows).reshape(-1, len(self.names)).T, strict=True))


def compared(tube: Tube, steps: int) -> tuple[list[Line], dict[str, Any]]:
    kept = np.array(tube.steps) > COUNT * steps
    t = {name: values[kept] for name, values in tube.table().items()}
    names = ("force of the tether", "radius of the tether", "proteins per area, tube over body")
    if steps < FEWEST_STEPS or not (t["tube"] > 0.0).all():
        why = f"the tether is at rest after some {FEWEST_STEPS} steps: more --steps"
        return [not_measured(name, None, unit, why) for name, unit in zip(names, ("pN", "nm", ""), strict=True)], {}
    tension = tension_of(t)
    force = mean_of(t["force"], warn=False)  # Lines without an error warn of it themselves.
    radius = mean_of(t["radius"], warn=False)
    # Errors of ratios of means to first order, sample by sample.
    parts = {name: t[name] / t[name].mean() for name in ("on_tube", "tube", "on_body", "body")}
    ratio = float(t["on_tube"].mean() / t["tube"].mean() / (t["on_body"].mean() / t["body"].mean()))
    gathered = mean_of(ratio * (1.0 + parts["on_tube"] - parts["tube"] - parts["on_body"] + parts["body"]), warn=False)
    above = bool(gathered.value - 1.0 > LARGEST_Z * gathered.error)
    pressure = float(t["pressure"].mean())
    lines = [
        _within(names[0], force, force_expected(tension), "pN"),
        _within(names[1], radius, radius_expected(tension, pressure), "nm"),
        Line(
            names[2], gathered.value, _known(gathered.error), None, "",
            f"above 1 by {LARGEST_Z:g} standard errors", "OK" if above else "CHECK",
        ),
    ]  # fmt: skip
    largest = float(tube.table()["force"].max())
    return lines, {"tension": tension, "pressure": pressure, "largest_force": largest}


def radius_of(places: np.ndarray, weights: np.ndarray) -> float:
    """Return the mean distance from the middle, in the plane, nm; nan where nothing is."""
    if not weights.any():
        return float("nan")
    middle = np.average(places, axis=0, weights=weights)
    return float(np.average(np.linalg.norm(places - middle, axis=1), weights=weights))


def force_expected(tension: float) -> float:
    """Return the force of a long tube, pN."""
    return 2.0 * pi * sqrt(2.0 * BENDING_MODULUS * tension)


def radius_expected(tension: float, pressure: float) -> float | None:
    """Return the radius R of a long tube on this mesh and under a pressure, nm, where πκ/R (1 + s (a/R)²) + 2πσR - πR²p
    is least, that is κ/2R² (1 + 3s (a/R)²) = σ - pR. None beyond the pressure that widens it without end."""
    roots = np.roots([pressure, -tension, 0.0, 0.5 * BENDING_MODULUS, 0.0, 1.5 * BENDING_MODULUS * STIFFER * EDGE**2])
    positive = roots[np.isreal(roots)].real
    positive = positive[positive > 0.0]
    return float(positive.min()) if len(positive) else None


def tension_of(t: dict[str, np.ndarray]) -> float:
    """Return the tension, pN/nm, by Laplace's law p = 2σH where the body is; H is the same all over it, if tension and
    pressure are."""
    return float(t["pressure"].mean() * t["body"].sum() / (2.0 * t["bent"].sum()))


def _known(error: float) -> float | None:
    return error if np.isfinite(error) else None


def _within(quantity: str, found: Any, expected: float | None, unit: str) -> Line:
    """Compare with theory, which is that of a long tube without fluctuations."""
    verdict = "OK" if expected is not None and abs(found.value / expected - 1.0) < WITHIN else "CHECK"
    error = _known(found.error)
    criterion = f"within {100 * WITHIN:g} %" + ("" if error is not None else "; too short a run for an error")
    return Line(quantity, found.value, error, expected, unit, criterion, verdict)
