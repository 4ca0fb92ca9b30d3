"""Beads on implicit surfaces: time of a step by surface and by word, threads, many that interact, memory.

Run it from an installed package on a quiet machine:

    python tests/benchmarks/bench_surfaces.py [--quick]

Medians over repeats; ratios are taken within this run. Targets are those of the project, beside what was measured.
Free beads of mass 1 at kT = 1 with a constraint tolerance of 1e-12 unless told otherwise. How many iterations Newton's
method takes depends on how far a bead flies relative to the curvature:

- sphere (10) and torus (10, 3): 10 000 beads at a timestep of 0.005, as LAMMPS (fix nve/manifold/rattle: torus 87 ns at
  tolerance 1e-4, 112 ns at 1e-8) and HOOMD (sphere: 59 ns, 68 ns) were measured; a thermal step is 7e-4 of the sphere's
  radius and 2.4e-3 of the tube's.
- genus 2: the lemniscate with a = 1 and r = a/6 at speed 1 and a timestep of 0.01, as in the code this is compared with
  (2400 point-steps per second): a step is 6e-2 of r.
"""

import argparse
import multiprocessing

import numpy as np
from common import machine, median_ns, memory, row
from medyanpy._kernels.core.neighbors import near_pairs

import medyanpy as mp
from medyanpy._tools.threads import available_threads

S = mp.surfaces
A, R = 1.0, 1.0 / 6.0
BERNOULLI = "((x**2 + y**2)**2 - a**2*(x**2 - y**2))**2/a**6 + z**2 - r**2"
# Of degree 10, around the origin.
TENTH = "x**10 + y**10 + z**10 + 2*x**4*y**4*z**2 - x**3*y**5*z + x*y*z**3 + x**2 + y**2 + z**2 - 1"
POINT_STEPS_PER_SECOND = 2400.0
# Root mean square speed of two degrees of freedom of a mass of 1 at kT = 1.
THERMAL = np.sqrt(2.0)


def on(surface, n, integrator, threads=1, speed=THERMAL, box=None, tolerance=1e-12):
    """Beads on a surface with this root mean square speed, after 20 steps."""
    topology = mp.Topology()
    topology.add_surface_points(surface, surface.sample(n, 1, box=box), mass=1.0, friction=1.0, tolerance=tolerance)
    context = mp.Context(mp.System(topology), integrator, threads=threads)
    context.set_velocities_to_temperature(kT=0.5 * speed**2, seed=2)
    context.step(20)
    return context


def step_ns(context, steps, repeats):
    return median_ns(lambda: context.step(steps), repeats, steps * context.layout.n)


def integrators(timestep, kT=1.0):
    return {
        "BAB": mp.SplittingIntegrator("BAB", timestep),
        "Verlet": mp.VerletIntegrator(timestep),
        "BAOAB": mp.SplittingIntegrator("BAOAB", timestep, kT=kT, seed=3),
    }


def interacting(n, threads=1):
    """n beads on a genus-2 surface in each other's wells, as dense per area whatever n: 20 where a = 1.

    Warm enough that few are bound (kT = 2 U_e), at a timestep of 0.02 periods of a bound pair."""
    scale = np.sqrt(n / 20.0)
    surface = S.Lemniscate(2, A * scale, R * scale)
    topology = mp.Topology()
    beads = topology.add_surface_points(surface, surface.sample(n, 1), mass=1.0)
    system = mp.System(topology)
    system.add_force(mp.forces.Ricker(beads, beads, depth=0.5, distance=R))
    context = mp.Context(system, mp.SplittingIntegrator("BAB", 0.007), threads=threads)
    context.set_velocities_to_temperature(kT=1.0, seed=2)
    context.step(100)
    return context


def crowded(surface, n, diameter, along_surface, threads=1):
    """n soft spheres on a surface, by the distance through space or along it."""
    topology = mp.Topology()
    beads = topology.add_surface_points(surface, surface.sample(n, 1), mass=1.0)
    system = mp.System(topology)
    system.add_force(mp.forces.SoftSphere(beads, beads, 1.0, diameter, along_surface=along_surface))
    context = mp.Context(system, mp.SplittingIntegrator("BAB", 0.01), threads=threads)
    context.set_velocities_to_temperature(kT=1.0, seed=2)
    context.step(50)
    return context


def along_surfaces(quick, repeats):
    """Distances along the surface beside those through space: a few neighbours for each bead."""
    n, steps = (300, 3) if quick else (5000, 20)
    for name, surface, diameter in (
        ("sphere", S.Sphere(10.0), 0.8),
        ("torus", S.Torus(20.0, 5.0), 1.2),
        ("genus 2", S.Lemniscate(2, 20.0, 20.0 / 6.0), 0.9),
    ):
        space, along, two = (crowded(surface, n, diameter, *how) for how in ((False,), (True,), (True, 2)))
        x = along.get_state(positions=True).positions
        pairs = len(near_pairs(x, diameter)) / n
        times = np.median([[step_ns(c, steps, 1) for c in (space, along, two)] for _ in range(repeats)], axis=0)
        print(
            f"    ({name}, {pairs:.1f} pairs per bead: along the surface {1e-3 * times[1]:.2f} us/bead, "
            f"{1e-3 * times[1] / pairs:.2f} us/pair; through space {1e-3 * times[0]:.2f} us/bead; "
            f"two threads against one {times[1] / times[2]:.2f})"
        )


def memory_of(n, pipe):
    """Bytes per bead of everything that a Context holds, in a process of its own."""
    surface = S.Lemniscate(2, A, R)
    on(surface, 1000, mp.VerletIntegrator(0.01))
    x = surface.sample(n, 1)
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # start VmHWM anew
    before = memory("VmRSS")
    topology = mp.Topology()
    topology.add_surface_points(surface, x, mass=1.0)
    context = mp.Context(mp.System(topology), mp.VerletIntegrator(0.01), threads=1)
    context.step(2)
    pipe.send(((memory("VmRSS") - before) / n, (memory("VmHWM") - before) / n))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small numbers: does it run?")
    quick = parser.parse_args().quick
    n, steps, repeats = (500, 5, 3) if quick else (10_000, 20, 15)
    print(machine(), "\n")
    genus2, text = S.Lemniscate(2, A, R), S.Polynomial(BERNOULLI, a=A, r=R, length=A)
    cases = [
        ("sphere", S.Sphere(10.0), 0.005, THERMAL, None, 45),
        ("torus", S.Torus(10.0, 3.0), 0.005, THERMAL, None, 60),
        ("genus 2, Lemniscate", genus2, 0.01, 1.0, None, 150),
        ("genus 2, Polynomial", text, 0.01, 1.0, genus2.bounding_box, 150),
    ]
    for name, surface, timestep, speed, box, target in cases:
        for word, integrator in integrators(timestep, 0.5 * speed**2).items():
            time = step_ns(on(surface, n, integrator, speed=speed, box=box), steps, repeats)
            if word == "BAOAB":
                print(f"    ({name}, {word}: {time:.1f} ns)")
            else:
                row(f"{name}, {word}", time, target, "ns/bead")
            if word == "BAB" and name == "genus 2, Lemniscate":
                times = f"{1e9 / time / POINT_STEPS_PER_SECOND:.0f} times"
                print(f"    ({1e3 / time:.2f} million point-steps per second: {times} 2400)")
    others = [
        ("sphere at a tolerance of 1e-8", S.Sphere(10.0), 0.005, THERMAL, None, 1e-8),
        ("torus at a tolerance of 1e-8", S.Torus(10.0, 3.0), 0.005, THERMAL, None, 1e-8),
        ("gyroid of period 10", S.Gyroid(10.0), 0.005, THERMAL, [[0.0] * 3, [10.0] * 3], 1e-12),
        ("a polynomial of degree 10", S.Polynomial(TENTH), 0.01, 1.0, [[-1.5] * 3, [1.5] * 3], 1e-12),
    ]
    for name, surface, timestep, speed, box, tolerance in others:
        context = on(surface, n, mp.SplittingIntegrator("BAB", timestep), 1, speed, box, tolerance)
        print(f"    ({name}, BAB: {step_ns(context, steps, repeats):.1f} ns)")
    if available_threads() > 1:
        contexts = [on(genus2, 2 * n, mp.SplittingIntegrator("BAB", 0.01), threads, 1.0) for threads in (1, 2)]
        # In turn, so that drifting clocks of a shared machine hit both alike.
        times = [[step_ns(c, steps, 1) for c in contexts] for _ in range(repeats)]
        row(f"two threads against one, {2 * n} beads", float(np.median([a / b for a, b in times])), 1.8, "x", True)
    sizes = (200, 400) if quick else (500, 1000, 2000, 4000, 8000)
    contexts = [interacting(n) for n in sizes]
    times = np.array([[step_ns(c, max(1, 40_000 // c.layout.n), 1) for c in contexts] for _ in range(repeats)])
    medians = np.median(times, axis=0)
    for c, size, time in zip(contexts, sizes, medians, strict=True):
        entries = c._schedule.bound_forces["Ricker"].neighbors.entries / size
        whole = f"{1e-3 * size * time:.0f} us a step"
        print(f"    ({size} in wells: {time:.1f} ns/bead, {whole}, {entries:.0f} in a row of neighbours)")
    row(f"in wells: slowest against fastest of {sizes[0]} to {sizes[-1]}", medians.max() / medians.min(), 1.15, "x")
    along_surfaces(quick, repeats)
    if available_threads() > 1:
        pair = [interacting(sizes[-1], threads) for threads in (1, 2)]
        times = [[step_ns(c, 5, 1) for c in pair] for _ in range(repeats)]
        gain = float(np.median([a / b for a, b in times]))
        print(f"    ({sizes[-1]} in wells, two threads against one: {gain:.2f})")
    size = 10_000 if quick else 1_000_000
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe()
    process = spawn.Process(target=memory_of, args=(size, theirs))
    process.start()
    kept, peak = ours.recv()
    process.join()
    row(f"memory kept, {size} beads", kept, 200, "B/bead")
    print(f"{'':4s}(while building and stepping, at most {peak:.0f} B/bead)")


if __name__ == "__main__":
    main()
