"""Draw the tables of measured curves beside this file: python -P docs/data/draw.py [FOLDER]

The first two lines of a table say what it is, when and on which commit it was recorded, and by which script. Each has
one plot, docs/images/recorded/NAME.png, which docs/validation.md shows. long_runs.csv is a log and has none.
"""

import sys
from pathlib import Path

import matplotlib
import numpy as np

matplotlib.use("Agg")
import matplotlib.pyplot as plt

HERE = Path(__file__).resolve().parent


def table(name):
    """Read a table as a record array by the names of its columns."""
    return np.genfromtxt(HERE / f"{name}.csv", delimiter=",", names=True, skip_header=2, dtype=None, encoding="utf-8")


def vesicle_shapes(axes, t):
    for color, branch in enumerate(np.unique(t["branch"])):
        rows = t[t["branch"] == branch]
        axes.plot(rows["reduced_volume"], rows["energy"], f"C{color}-", lw=1.0, label=f"{branch}, without meshes")
        axes.plot(rows["reduced_volume_of_mesh"], rows["energy_of_mesh"], f"C{color}o", ms=4, label="on meshes")
    for published in (0.592, 0.652):
        axes.axvline(published, color="gray", lw=0.8, ls=":")
    axes.set(xlabel="reduced volume", ylabel="bending energy / 8πκ")
    axes.legend(frameon=False, fontsize=7)


def patch_spectra(axes, t):
    kappa, kT = 10.0, 1.0
    for color, tension in enumerate(np.unique(t["tension"])[::-1]):
        rows = t[t["tension"] == tension]
        style = {"fmt": f"C{color}o", "ms": 4, "label": f"τ = {tension:g} kT/a²"}
        axes.errorbar(rows["q_seen"] ** 2, rows["stiffness"], rows["error"], **style)
        q = np.linspace(0.05, 1.05 * rows["q_seen"].max(), 100)
        softer = kappa - 3.0 * kT / (4.0 * np.pi) * np.log(np.pi / rows["spacing"][0] / q)
        axes.plot(q**2, tension + softer * q**2, f"C{color}-", lw=1.0)
        axes.plot(q**2, tension + kappa * q**2, f"C{color}:", lw=0.8)
    axes.set(xlabel="q² (1/a²)", ylabel="kT / (A⟨|h|²⟩q²)  (kT/a²)", xlim=(0.0, None), ylim=(0.0, None))
    axes.legend(frameon=False)


def rough_sheets(axes, t):
    ends = np.array([t["law"].min() - 0.01, t["law"].max() + 0.01])
    axes.plot(ends, ends, "k-", lw=1.0)
    axes.errorbar(t["law"], t["diffusion"], t["error"], fmt="o", ms=4)
    axes.set(xlabel="1/⟨√g⟩ of the sheet", ylabel="D / D₀ of points on it")


def shear_stress(axes, t):
    middle = np.sqrt(np.maximum(t["attempts_from"], 1) * t["attempts_to"])
    axes.errorbar(middle, t["share"], t["error"], fmt="o", ms=4)
    for share in (0.0, 0.05, 0.5):
        axes.axhline(share, color="gray", lw=0.8, ls=":")
    axes.set(xscale="log", xlabel="attempts per edge", ylabel="stress over the first")


def tethers(axes, t):
    kappa = 82.0
    tension = np.linspace(0.9 * t["tension"].min(), 1.1 * t["tension"].max(), 100)
    axes.plot(tension, 2.0 * np.pi * np.sqrt(2.0 * kappa * tension), "k-", lw=1.0, label="2π√(2κσ)")
    axes.errorbar(t["tension"], t["force"], t["error"], fmt="o", ms=4, label="pulled from a vesicle")
    axes.set(xlabel="mechanical tension σ (pN/nm)", ylabel="force (pN)", ylim=(0.0, None))
    axes.legend(frameon=False)


def tether_births(axes, t):
    plateau = 2.0 * np.pi * np.sqrt(40.0)
    for which, line, label in (("patch", "C0-", "theory, this patch"), ("point", "C0:", "theory, a point far away")):
        rows = t[t["which"] == which]
        axes.plot(rows["height"], rows["force"], line, lw=1.0, label=label)
    rows = t[t["which"] == "found"]
    axes.errorbar(rows["height"], rows["force"], rows["error"], fmt="C1o", ms=4, label="found")
    axes.axhline(plateau, color="k", lw=0.8, ls="--", label="2π√(2κσ)")
    axes.set(xlabel="height (a)", ylabel="force (κ/20a)", xlim=(0.0, None), ylim=(0.0, None))
    axes.legend(frameon=False)


def vesicle_spectrum(axes, t):
    axes.errorbar(t["l"], t["power"], t["error"], fmt="o", ms=4, label="fluid vesicle")
    axes.plot(t["l"], t["law"], "k-", lw=1.0, label="Milner and Safran")
    axes.set(yscale="log", xlabel="l", ylabel="⟨|u|²⟩")
    axes.legend(frameon=False)


def budding(axes, t):
    axes.plot(t["width"], t["length_of_caps"], "k:", lw=0.8, label="caps")
    axes.plot(t["width"], t["length"], "k-", lw=1.0, label="without meshes")
    axes.plot(t["width"], t["length_of_runs"], "C0o", ms=4, label="runs")
    for limit in (4.0, 5.783):
        axes.axhline(limit, color="gray", lw=0.8, ls=":")
    axes.set(xlabel="radius of the border / L", ylabel="L / ξ", xlim=(0.0, 1.0), ylim=(0.0, 8.0))
    axes.legend(frameon=False, loc="lower right")


def wrapping(axes, t):
    for color, reach in enumerate(np.unique(t["range"])):
        rows = t[t["range"] == reach]
        axes.plot(rows["angle"], rows["strength"], f"C{color}-", lw=1.0, label=f"range {reach:g} a, without meshes")
        axes.plot(rows["angle"], rows["strength_of_runs"], f"C{color}o", ms=4, label="runs")
    axes.axhline(2.0, color="gray", lw=0.8, ls=":")
    axes.set(xlabel="wrapped up to (degrees)", ylabel="w a² / κ")
    axes.legend(frameon=False)


FIGURES = {
    f.__name__: f
    for f in (
        budding, patch_spectra, rough_sheets, shear_stress, tether_births, tethers, vesicle_shapes, vesicle_spectrum,
        wrapping,
    )
}  # fmt: skip


def main(folder):
    plt.rcParams.update({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False})
    for name, draw in FIGURES.items():
        figure, axes = plt.subplots(figsize=(4.8, 3.4), layout="constrained")
        draw(axes, table(name))
        figure.savefig(folder / f"{name}.png", dpi=150, metadata={"Software": None})
        plt.close(figure)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE.parent / "images" / "recorded")
