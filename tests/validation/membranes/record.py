"""Runs whose results lie in docs/data, where docs/data/draw.py makes the plots of docs/validation.md of them.

Run by hand, from an installed package: ``python -P tests/validation/membranes/record.py NAME ... [--quick]``, with the
names of `RECORDS`. Each writes docs/data/NAME.csv, with the day and the commit; ``--quick`` prints a few lines of few
steps instead, to see that it runs.
"""

import argparse
import datetime
import io
import itertools
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import medyanpy as mp

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests" / "physics"))


def vesicle_shapes(quick):
    """Least bending energies over reduced volumes, of curves and of meshes of them."""
    import test_vesicle_shapes as shapes

    start = {kind: np.zeros(2 * shapes.K) for kind in ("prolate", "oblate")}
    start["prolate"][[0, shapes.K]], start["oblate"][[0, shapes.K]] = (0.9, 1.2), (1.1, 0.8)
    start["stomatocyte"] = shapes.bowl()
    # Each branch is followed from where it is easily found.
    ways = {
        "prolate": (0.9, 0.8, 0.72, 0.66, 0.62),
        "oblate": (0.9, 0.8, 0.72, 0.66, 0.62, 0.58, 0.54),
        "stomatocyte": (0.4, 0.5, 0.55, 0.6, 0.64),
    }
    rows = []
    for kind, way in ways.items():
        p = start[kind]
        for v in way[:1] if quick else way:
            p = shapes.found(p, v)
            area, volume, energy, _ = shapes.measures(p)
            on_mesh = shapes.looked_at(*shapes.simulation_of(shapes.revolved(p, 4), v))
            rows.append((kind, volume / area**1.5, energy, *on_mesh))
            print(*rows[-1], file=sys.stderr, flush=True)
    return ("branch", "reduced_volume", "energy", "reduced_volume_of_mesh", "energy_of_mesh"), rows


def tethers(quick):
    """Forces, radii and gathered proteins of the tether of `medyanpy demo membrane` at some tensions."""
    from medyanpy.demo import tether

    usual, swollen, rows = tether.TENSION, tether.SWOLLEN, []
    # More tension stretches edges towards their walls, which want shorter steps.
    tether.TIMESTEP *= 0.85
    for share in (1.0,) if quick else (0.8, 1.0, 1.4):
        # Pressure and tension go together.
        tether.TENSION, tether.SWOLLEN = share * usual, share * swollen
        with tempfile.TemporaryDirectory() as folder:
            steps = 200 if quick else 35_000
            made = tether.run_membrane_demo(folder, steps=steps, threads=1, overwrite=True, stream=io.StringIO())
        numbers = [made.summary.get(name) for name in ("tension", "pressure")]
        rows.append((*numbers, *(number for line in made.lines for number in (line.measured, line.error))))
        print(*rows[-1], file=sys.stderr, flush=True)
    columns = ("tension", "pressure", "force", "error", "radius", "error_radius", "gathered", "error_gathered")
    return columns, rows


def of_a_spectrum(tension, spectrum):
    """What waves of each length resist with, kT/(A⟨|h|²⟩q²), with q² as the triangles see it; kT = 1."""
    seen = mp.analysis.discrete_wave_number(spectrum.wave_number, spectrum.spacing)
    stiffness = 1.0 / (spectrum.area * spectrum.value * seen**2)
    error = stiffness * spectrum.error / spectrum.value
    return [
        (tension, *row, spectrum.spacing)
        for row in zip(spectrum.wave_number, seen, stiffness, error, spectrum.modes, strict=True)
    ]


def patch_spectra(quick):
    """Spectra of a fluid patch of 288 vertices, 10 kT, at frame tensions of 0, 0.5 and 2 kT over the edge's square."""
    import test_patches as patches

    rows = []
    for tension in (0.5,) if quick else (0.0, 0.5, 2.0):
        _, spectrum = patches.under_tension(tension, 2000 if quick else 1_200_000)
        rows += of_a_spectrum(tension, spectrum)
    return ("tension", "q", "q_seen", "stiffness", "error", "modes", "spacing"), rows


def shear_stress(quick):
    """What is left of the stress of a shear of 10 % in patches of 288 vertices, over attempts to flip each edge."""
    import test_patches as patches

    ends = (0, 10, 30, 100, 300, 1000, 3000, 8000, 12_000)[: 3 if quick else None]
    shares, flipped = [], []
    for seed in (11, 12) if quick else range(11, 16):
        context, flips = patches.sheared(seed)
        first = patches.stresses(context, 100, 50).mean()
        flips.rate = 1.0 / patches.TIMESTEP
        shares.append([])
        flipped.append([])
        for begin, end in itertools.pairwise(ends):
            every = max((end - begin) // 20, 1)
            shares[-1].append([first, patches.stresses(context, (end - begin) // every, every).mean()])
            flipped[-1].append(flips.counts.accepted / (3 * 16 * 18))
    first, left = np.moveaxis(shares, 2, 0)
    error = left.std(axis=0, ddof=1) / np.sqrt(len(left)) / first.mean()
    rows = zip(ends, ends[1:], np.mean(flipped, axis=0), left.mean(axis=0) / first.mean(), error, strict=False)
    return ("attempts_from", "attempts_to", "flips", "share", "error"), list(rows)


def vesicle_spectrum(quick):
    """Spectrum of a fluid vesicle of 642 vertices, 20 kT, and that of Milner and Safran which is fitted to it."""
    import test_patches as patches

    _, spectrum = patches.vesicle_sampled(0.1, 1, 2000 if quick else 400_000)
    law = mp.analysis.fit_spectrum(spectrum, kT=1.0, softening=True).value
    return ("l", "power", "error", "law"), list(zip(spectrum.degree, spectrum.value, spectrum.error, law, strict=True))


def budding(quick):
    """Lengths at which a domain with a border of some width is at rest: without meshes, of caps, by where runs go."""
    import test_budding_and_wrapping as budding

    rows = []
    for width in budding.WIDTHS[5:6] if quick else budding.WIDTHS:
        found = (budding.length_at_rest(width, 8, form) for form in ("vertex", "dihedral"))
        rows.append((width, budding.Domain.of_width(width).length, 8.0 * width, *found))
        print(*rows[-1], file=sys.stderr, flush=True)
    return ("width", "length", "length_of_caps", "length_of_runs", "length_of_runs_dihedral"), rows


def wrapping(quick):
    """Strengths at which a membrane is at rest round a sphere, by its contact: without meshes, and by where runs go."""
    import test_budding_and_wrapping as wrapping

    rows = []
    for reach, n in ((0.05, 8 if quick else 12), (0.025, 16))[: 1 if quick else None]:
        for degrees in (90,) if quick else (60, 75, 90, 105, 120):
            rest = wrapping.Wrapped.at(degrees, reach)
            found = wrapping.strength_at_rest(degrees, reach, n)
            rows.append((reach, degrees, rest.contact, rest.strength, found))
            print(*rows[-1], file=sys.stderr, flush=True)
    return ("range", "angle", "contact", "strength", "strength_of_runs"), rows


def tether_births(quick):
    """Force of a tether over its length: found at 200 kT, of theory for that patch, of theory for a point far away."""
    import test_tethers as births

    rows = [] if quick else [("found", *row[:2].ravel()) for row in births.births()]
    rows += [("patch", shape.height, 0.0, shape.force, 0.0) for shape in births.curve()[1::2]]
    wide = births.shapes(np.arange(0.5, 30.0, 0.5), ring=births.WIDE, patch=births.POINT)
    rows += [("point", shape.height, 0.0, shape.force, 0.0) for shape in wide]
    return ("which", "height", "error_height", "force", "error"), rows


RECORDS = {
    f.__name__: f
    for f in (
        vesicle_shapes, tethers, patch_spectra, shear_stress, vesicle_spectrum, budding, wrapping, tether_births
    )
}  # fmt: skip


def commit():
    command = ["git", "-C", ROOT, "rev-parse", "--short=7", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def written(value):
    return value if isinstance(value, str) else "nan" if value is None else f"{value:.6g}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[[], *RECORDS], help="all, where none is given")
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    for name in given.names or RECORDS:
        columns, rows = RECORDS[name](given.quick)
        lines = [
            f"# {RECORDS[name].__doc__}",
            f"# {datetime.date.today()}, commit {commit()}, tests/validation/membranes/record.py {name}",
            ",".join(columns),
            *(",".join(map(written, row)) for row in rows),
        ]
        if given.quick:
            print("\n".join(lines))
        else:
            (ROOT / "docs" / "data" / f"{name}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
