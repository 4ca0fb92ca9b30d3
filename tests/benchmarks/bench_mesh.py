"""Time and memory of preparing a large mesh. Bound (issue 2): 1.3 million faces under 10 s and under 2 GiB.

Run by hand: ``python tests/benchmarks/bench_mesh.py [--quick] [subdivisions]``. Prints one line per step and the peak
of resident memory of the whole process, then ends with status 1 if a bound is missed. ``--quick``: 5 subdivisions.
"""

import argparse
import resource
import sys
import time

SECONDS = 10.0
GIBIBYTES = 2.0


def main(subdivisions: int, quick: bool) -> int:
    """Prepare an icosphere of 20 * 4**subdivisions faces and print what each step costs."""
    import numpy as np
    from common import status

    from medyanpy.mesh import TriangleMesh, shapes

    x, faces = shapes.unit_icosphere(subdivisions)
    x, faces = 500.0 * x, np.asarray(faces)
    start = time.perf_counter()
    mesh = TriangleMesh(x, faces)
    times = {"construction with all checks": time.perf_counter() - start}
    for name in ("neighbors", "opposite_corners", "edges", "edge_faces", "borders", "components", "face_areas",
                 "face_normals", "vertex_faces", "edge_lengths", "quality", "volume", "genus"):  # fmt: skip
        before = time.perf_counter()
        getattr(mesh, name)
        times[name] = time.perf_counter() - before
    total = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(mesh)
    for name, seconds in times.items():
        print(f"{name:32s} {seconds:8.3f} s")
    print(f"{'all':32s} {total:8.3f} s   (bound {SECONDS:g} s)")
    print(f"{'peak resident memory':32s} {peak:8.3f} GiB (bound {GIBIBYTES:g} GiB)")
    return status(total <= SECONDS and peak <= GIBIBYTES, quick)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("subdivisions", nargs="?", type=int, default=8)
    parser.add_argument("--quick", action="store_true", help="a small mesh")
    given = parser.parse_args()
    sys.exit(main(5 if given.quick else given.subdivisions, given.quick))
