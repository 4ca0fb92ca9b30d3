"""Pictures, and scenes that turn: processor time for a membrane of a hundred thousand vertices.

    python tests/benchmarks/bench_pictures.py [--quick]

Scenes need PyVista (``pip install 'medyanpy[notebooks]'``); without it they are left out.
"""

import argparse
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from common import machine, row

import medyanpy as mp


def processor_seconds(work):
    started = time.process_time()
    work()
    return time.process_time() - started


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small numbers: does it run?")
    quick = parser.parse_args().quick
    print(machine())
    topology = mp.Topology()
    mesh = mp.TriangleMesh.red_blood_cell(frequency=10 if quick else 100)
    cell = topology.add_membrane(mesh, vertex_mass=1.0, vertex_friction=0.1, name="cell")
    topology.add_intriangle_points(cell, 100, mass=1.0, friction=0.1, seed=1, name="proteins")
    context = mp.Context(mp.System(topology), mp.BAGOGABIntegrator(1e-6, kT=1.0))
    n = len(mesh.vertices)
    with tempfile.TemporaryDirectory() as folder:
        where = Path(folder)

        def draw():
            mp.visualize.draw(context, where / "a.png", values="mean_curvature", overwrite=True)

        def export_html():
            mp.visualize.export_html(context, where / "a.html", values="mean_curvature", overwrite=True)

        def export_gltf():
            mp.visualize.export_gltf(context, where / "a.gltf", values="mean_curvature", overwrite=True)

        def show():
            mp.visualize.show(context)._repr_html_()

        works = [(draw, 10.0, ".png")]
        if find_spec("pyvista") is not None and find_spec("trame_vtk") is not None:
            # Scenes as they would be in a notebook: without a browser.
            mp.visualize.View.open = lambda self: None  # type: ignore[method-assign]
            works += [(export_html, 2.0, ".html"), (export_gltf, 2.0, ".gltf"), (show, 2.0, "")]
        for work, target, ending in works:
            first = processor_seconds(work)
            again = float(np.median([processor_seconds(work) for _ in range(1 if quick else 5)]))
            row(f"{work.__name__} of {n} vertices, processor time", again, target, "s")
            size = f", {(where / f'a{ending}').stat().st_size / 1e6:.1f} MB" if ending else ""
            print(f"{'':4s}(the first of a session {first:.2f} s, with what is imported{size})", flush=True)


if __name__ == "__main__":
    main()
