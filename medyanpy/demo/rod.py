"""An elastic rod that is bent into a circle and let go, and theory of elastic rods.

After the examples of Ladd and Misra (2009), and in their units: the rod has the diameter d = 1, the density ρ = 1,
Young's modulus Y = 1 and Poisson's ratio 0.3, and is 20 π d long. The unit of time is t0 = d √(ρ/Y), in which sound
crosses the diameter.
"""

from typing import Any

import numpy as np

from medyanpy import forces, rods
from medyanpy._tools import quaternions
from medyanpy.beads import Rods
from medyanpy.context import Context
from medyanpy.demo.report import (
    Demo,
    Line,
    Option,
    Page,
    Report,
    at_temperature,
    bound_line,
    demo,
    mean_line,
    near_line,
)  # fmt: skip
from medyanpy.integrators import SplittingIntegrator
from medyanpy.reporters import Reporter
from medyanpy.simulation import Simulation
from medyanpy.state import State
from medyanpy.system import System
from medyanpy.topology import Topology
from medyanpy.visualize import draw

SECTION = rods.CircularSection(radius=0.5, youngs_modulus=1.0, poisson_ratio=0.3, density=1.0)
LENGTH, SEGMENTS = 20.0 * np.pi, 63
# Bending and twist of the circle, once around, and of a helix of four turns, 1/d.
CIRCLE, HELIX = (0.0, 0.1, 0.0), (0.4, 0.0, 0.1)
# Timestep for 63 segments, in t0; and how long the rod that is drawn is followed.
TIMESTEP, DURATION = 0.2, 1500.0
# The energy of the circle at the start, and the largest |ΔE/E| up to 300 t0 with the timestep, a half and a quarter of
# it: of a program written for that alone.
ENERGY, DEVIATIONS = 0.015177500195207, (2.979e-4, 7.333e-5, 1.838e-5)
SHORT, LONG = 300.0, 1e4
# Up to where the picture shows how the energy oscillates, t0.
SHOWN = 30.0
# Frames of the trajectory; shapes in the picture, after equal times.
FRAMES, SHAPES = 300, 6
# Thermal rods: mass, length of segments and kT are 1. Moments of inertia per length; friction along and across, and of
# rotation; steps before the first look, between looks, and looks.
NODES, THERMAL_TIMESTEP = 16, 0.025
INERTIA, FRICTION, TURNING = (0.4, 0.4, 0.6), (0.3, 0.6), 0.2
STIFFNESS: dict[str, Any] = {"shear": 40.0, "extension": 60.0, "bending": 5.0, "twist": 4.0}
START, LOOK, LOOKS = 2000, 50, 60


@demo(
    "rod",
    "an elastic rod, bent into a circle and let go, without units",
    segments=Option(SEGMENTS, "segments of the rod that is drawn; more of them need a shorter timestep", 20, 2000),
    rods=Option(200, "thermal rods of the measurements", 20),
    steps=Option(None, "time steps", usual=f"{DURATION:g} t0"),
)
def run_rod_demo(report: Report, segments: int, rods: int) -> Demo:
    timestep = _timestep(segments)
    report.steps = report.steps or round(DURATION / timestep)
    about = f"{LENGTH:.4g} long, 1 thick, {segments} segments; lengths in d, times in t0, no other units"
    report.begin(about, "rod")
    report.note("bent into a circle and let go; nothing damps it")
    errors = [_errors(TIMESTEP / n) for n in (1, 2, 4)]
    system, _, _ = _rod(CIRCLE, segments)
    watch = _Watch(max(1, report.steps // FRAMES))
    report.run(
        system, SplittingIntegrator("ABA", timestep), reporters=[watch], frames=FRAMES,
        drawn_by=lambda *given, **_: _picture(watch, errors, *given),
    )  # fmt: skip
    report.say(f"circle    of {SEGMENTS} segments: energy at three timesteps and up to {LONG:g} t0, back in time")
    lines = [*_energy(errors), _reversal()]
    report.say("helix     of four turns, unwinding: momenta, equilibrium")
    lines += [*_momenta(), *_helix()]
    report.say("held      at one end, under a force and under a couple")
    lines += [_cantilever(), _rolled_up()]
    report.say(f"thermal   {rods} rods of {NODES} nodes; mass, segment and kT are 1")
    lines += _thermal(rods, report.seed, report.threads)
    return report.finish(None, system.topology, lines, segments=segments, rods=rods)


# Rods -------------------------------------------------------------------------------------------------------


def _timestep(segments: int) -> float:
    return TIMESTEP * min(1.0, SEGMENTS / segments)


def _rod(curvature: Any, segments: int = SEGMENTS) -> tuple[System, Rods, forces.RodElasticity]:
    """Build the rod of the paper, bent, with free ends; straight is where it has no stress."""
    topology = Topology()
    nodes, orientations = rods.uniform(segments, LENGTH / segments, curvature)
    rod = topology.add_rod(
        nodes, orientations, LENGTH / segments, SECTION.linear_density, SECTION.inertia_density, name="rod"
    )
    system = System(topology)
    return system, rod, system.add_force(forces.RodElasticity(rod, **SECTION.stiffness))


def _let_go(curvature: Any, timestep: float) -> tuple[Context, Rods]:
    system, rod, _ = _rod(curvature)
    return Context(system, SplittingIntegrator("ABA", timestep), threads=1), rod


class _Watch(Reporter):
    """Keeps energies and shapes."""

    include = ("positions", "energy")

    def __init__(self, interval: int) -> None:
        super().__init__(interval)
        self.time: list[float] = []
        self.energy: list[tuple[float, float]] = []
        self.nodes: list[np.ndarray] = []

    def report(self, simulation: Simulation, state: State) -> None:
        self.time.append(state.time)
        self.energy.append((state.kinetic_energy, state.potential_energy))
        self.nodes.append(state.positions)


def _picture(watch: _Watch, errors: list[tuple[np.ndarray, np.ndarray]], simulation: Simulation, path: Any) -> None:
    """Draw shapes after equal times, side by side; energies of the run; and their errors at three timesteps."""
    rod: Any = simulation.system.topology.handles[0]
    times, shapes = np.array([0.0, *watch.time]), [rod.positions, *watch.nodes]
    chosen = [int(np.argmin(np.abs(times - t))) for t in np.linspace(0.0, times[-1], SHAPES)]
    columns, apart = SHAPES // 2, (1.08 * LENGTH, 0.62 * LENGTH)
    places = np.array([[(k % columns) * apart[0], 0.0, -(k // columns) * apart[1]] for k in range(SHAPES)])
    topology = Topology()
    moved = []
    for k, place in zip(chosen, places, strict=True):
        x = shapes[k] - 0.5 * (shapes[k].min(axis=0) + shapes[k].max(axis=0))
        # Turned such that it opens downwards.
        moved.append(x[:, [2, 1, 0]] + place)
    topology.add_rods(
        moved, [rods.frames(x) for x in moved], rod.segment_length[0], SECTION.linear_density, SECTION.inertia_density,
        name="rod",
    )  # fmt: skip
    size, low = (1600, 760), 440
    share = low / (size[1] + low)
    scene = draw(
        Context(System(topology), SplittingIntegrator("ABA", 1.0), threads=1), view=(0.0, 0.0), size=size, unit="d"
    )
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
    kinetic, elastic = np.array(watch.energy).T
    for energy, label in ((elastic, "elastic"), (kinetic, "of motion"), (elastic + kinetic, "sum")):
        left.plot(watch.time, 1e3 * energy, lw=0.8, label=label)
    right = page.panel((0.58, 0.09, 0.38, share - 0.13), "time (t₀)", "ΔE / E (Δt/t₀)²")
    for n, (time, error) in zip((1, 2, 4), errors, strict=True):
        first = time <= SHOWN
        right.plot(
            time[first], error[first] / (TIMESTEP / n) ** 2, lw=0.8, ls=("-", "--", ":")[n // 2],
            label=f"Δt = {TIMESTEP / n:g} t₀",
        )  # fmt: skip
    page.save(path)


# Measured against expected: let go --------------------------------------------------------------------------


def _errors(timestep: float) -> tuple[np.ndarray, np.ndarray]:
    """Return times of every step up to 300 t0, and ΔE/E of the circle there."""
    context, _ = _let_go(CIRCLE, timestep)
    energy = [context.get_state(energy=True).total_energy]
    for _ in range(round(SHORT / timestep)):
        context.step(1)
        energy.append(context.get_state(energy=True).total_energy)
    return timestep * np.arange(len(energy)), np.array(energy) / energy[0] - 1.0


def _energy(errors: list[tuple[np.ndarray, np.ndarray]]) -> list[Line]:
    context, _ = _let_go(CIRCLE, TIMESTEP)
    start = context.get_state(energy=True).total_energy
    largest = [float(np.abs(error).max()) for _, error in errors]
    parts = ("Δt", "Δt/2", "Δt/4")
    lines = [near_line("circle: energy at the start", start, ENERGY, 1e-12, "Y d³")]
    lines += [
        near_line(f"circle: largest |ΔE/E| to {SHORT:g} t0, {part}", measured, expected, 1e-3)
        for part, measured, expected in zip(parts, largest, DEVIATIONS, strict=True)
    ]
    lines += [
        near_line(f"circle: |ΔE/E| at {long} over {short}", a / b, 4.0, 0.05)
        for long, short, a, b in zip(parts, parts[1:], largest, largest[1:], strict=False)
    ]
    worst = 0.0
    for _ in range(round(LONG / TIMESTEP) // 10):
        context.step(10)
        worst = max(worst, abs(context.get_state(energy=True).total_energy / start - 1.0))
    lines.append(bound_line(f"circle: largest |ΔE/E| to {LONG:g} t0, Δt", worst, 1e-2 * TIMESTEP**2))
    return lines


def _momenta() -> list[Line]:
    """Compare momenta of the helix, which turns in space, with the sum of what its nodes have of each."""
    context, rod = _let_go(HELIX, 0.5 * TIMESTEP)
    worst = np.zeros(2)
    for _ in range(100):
        context.step(50)
        state = context.get_state(positions=True, velocities=True)
        p = rod.mass[:, None] * state.velocities
        angular = np.cross(state.positions, p) + quaternions.turned(state.orientations, state.angular_momenta)
        for k, each in enumerate((p, angular)):
            worst[k] = max(worst[k], np.linalg.norm(each.sum(axis=0)) / np.linalg.norm(each, axis=1).sum())
    return [
        bound_line(f"helix: {name}, over that of its nodes", float(value), 1e-12)
        for name, value in zip(("momentum", "angular momentum"), worst, strict=True)
    ]


def _reversal() -> Line:
    context, rod = _let_go(CIRCLE, TIMESTEP)
    steps = round(DURATION / TIMESTEP)
    context.step(steps)
    state = context.get_state(velocities=True)
    context.set_velocities(-state.velocities)
    context.set_angular_momenta(-state.angular_momenta)
    context.step(steps)
    off = context.get_state(positions=True).positions - rod.positions
    return bound_line(f"circle: {DURATION:g} t0 and back, distance", float(np.abs(off).max()), 1e-10, "d")


def _helix() -> list[Line]:
    """Measure a helix: chaotic and nearly harmonic, it comes to equilibrium within some 10⁴ t0: then half of the energy
    is that of motion, half of which is that of rotation. What is expected is exact for harmonic rods and long times."""
    timestep = 0.5 * TIMESTEP
    context, rod = _let_go(HELIX, timestep)
    start = context.get_state(energy=True).total_energy
    context.step(round(2.0 * LONG / timestep))
    parts, worst = [], 0.0
    for _ in range(200):
        context.step(round(0.01 * LONG / timestep))
        state = context.get_state(velocities=True, energy=True)
        flight = 0.5 * float((rod.mass * (state.velocities**2).sum(axis=1)).sum())
        parts.append((flight, state.kinetic_energy - flight, state.potential_energy))
        worst = max(worst, abs(state.total_energy / start - 1.0))
    flight, rotation, elastic = np.mean(parts, axis=0)
    kinetic = flight + rotation
    return [
        bound_line(f"helix: largest |ΔE/E| to {4 * LONG:g} t0, Δt/2", worst, 0.01),
        near_line("helix: energy of motion over all", kinetic / (kinetic + elastic), 0.5, 0.05),
        near_line("helix: energy of rotation over that of motion", rotation / kinetic, 0.5, 0.05),
    ]


# Measured against expected: held and loaded -----------------------------------------------------------------


def _held(segments: int, friction: float = 0.0, **load: Any) -> tuple[System, Rods]:
    """Build a straight rod, clamped at its start, with a load on its end; segments of 1."""
    topology = Topology()
    nodes, orientations = rods.uniform(segments, 1.0)
    rod = topology.add_rod(
        nodes, orientations, 1.0, SECTION.linear_density, SECTION.inertia_density, friction, ends=("clamped", "free")
    )
    system = System(topology)
    system.add_force(forces.RodElasticity(rod, **SECTION.stiffness))
    system.add_force(forces.RodLoad(rod, "end", **load))
    return system, rod


def _cantilever() -> Line:
    """Measure a cantilever: F L³/3B of bending and F L/C of shear (Timoshenko), when the friction has calmed the rod.

    Its slowest mode has the frequency 3.52/L² √(B/ρA); of twice that friction per mass it is calmed soonest.
    """
    segments = 33
    length, bending = segments - 0.5, SECTION.stiffness["bending"]
    force = 3e-3 * 3.0 * bending / length**2
    slowest = 3.52 / length**2 * np.sqrt(bending / SECTION.linear_density)
    friction = 2.0 * slowest * SECTION.linear_density
    system, rod = _held(segments, friction, force=(force, 0.0, 0.0))
    # Noise that is smaller than rounding errors.
    context = Context(system, SplittingIntegrator("BAOAB", 0.4, kT=1e-30), threads=1)
    context.step(round(20.0 / slowest / 0.4))
    tip = _tip(context.get_state(positions=True), rod)[0]
    expected = force * length**3 / (3.0 * bending) + force * length / SECTION.stiffness["shear"]
    return near_line("clamped rod under a force: deflection", float(tip), float(expected), 1e-3, "d")


def _tip(state: State, rod: Rods) -> np.ndarray:
    node, arm = rod.tips("end")
    tips: np.ndarray = state.positions[rod.beads][node] + quaternions.turned(state.orientations[rod.rows][node], arm)
    return np.asarray(tips[0])


def _rolled_up() -> Line:
    """Measure a rod under a couple: under M every joint is turned by the same angle, 2 B sin(θ/2) = M ℓ, without shear
    or stretch: such a shape, once around, stays where it is."""
    segments = 33
    angle = 2.0 * np.pi / (segments - 0.5)
    couple = 2.0 * SECTION.stiffness["bending"] * np.sin(0.5 * angle)
    system, _ = _held(segments, couple=(0.0, couple, 0.0))
    context = Context(system, SplittingIntegrator("ABA", TIMESTEP), threads=1)
    # Chords of the circle are as long as segments.
    nodes, orientations = rods.uniform(segments, 1.0, (0.0, angle, 0.0), (0.0, 0.0, 0.5 * angle / np.sin(0.5 * angle)))
    context.set_positions(nodes)
    context.set_orientations(orientations)
    state = context.get_state(forces=True)
    left = max(np.abs(state.forces[1:]).max(), np.abs(state.torques[1:]).max())
    return bound_line("rod rolled up by a couple: left over of it", float(left / couple), 1e-11)


# Measured against expected: thermal -------------------------------------------------------------------------


def _bath(n: int) -> tuple[System, Rods]:
    """Build n straight rods with friction."""
    topology = Topology()
    nodes, orientations = rods.uniform(NODES, 1.0)
    handle = topology.add_rods(
        np.tile(nodes, (n, 1)), np.tile(orientations, (n, 1)), 1.0, 1.0, INERTIA, FRICTION,
        rotational_friction=TURNING, starts=NODES * np.arange(n + 1),
    )  # fmt: skip
    system = System(topology)
    system.add_force(forces.RodElasticity(handle, **STIFFNESS))
    return system, handle


def _thermal(n: int, seed: int, threads: int) -> list[Line]:
    """Measure rods in a bath: temperatures, energies of strains, persistence length. One number for each rod."""
    system, handle = _bath(n)
    integrator = SplittingIntegrator("BAOAB", THERMAL_TIMESTEP, kT=1.0, seed=seed + 10)
    context = at_temperature(system, integrator, threads)
    context.step(START)
    moduli = [np.array([STIFFNESS[k] for k in keys])
              for keys in (("shear", "shear", "extension"), ("bending", "bending", "twist"))]  # fmt: skip
    strain, cosine = np.zeros((4, n)), np.zeros(n)
    for _ in range(LOOKS):
        context.step(LOOK)
        state = context.get_state(positions=True)
        gamma, omega = handle.strains(state.positions, state.orientations)
        doubled = np.hstack([moduli[0] * (gamma - [0.0, 0.0, 1.0]) ** 2, moduli[1] * omega**2])
        each = doubled.reshape(n, NODES - 1, 6).mean(axis=1).T / LOOKS
        strain += [0.5 * (each[0] + each[1]), each[2], 0.5 * (each[3] + each[4]), each[5]]
        third = quaternions.matrices(state.orientations)[:, :, 2]
        a, b = third[handle.links.T]
        cosine += np.einsum("ij,ij->i", a, b).reshape(n, -1).mean(axis=1) / LOOKS
    # Shapes come out better with BAOAB, velocities are exact at the end of steps that end with O.
    start = context.get_state(positions=True, velocities=True)
    context = Context(system, SplittingIntegrator("OBABO", THERMAL_TIMESTEP, kT=1.0, seed=seed + 20), threads)
    context.set_state(start)
    context.step(LOOK)
    motion = np.zeros((2, n))
    for _ in range(LOOKS // 2):
        context.step(LOOK // 2)
        state = context.get_state(velocities=True)
        motion[0] += (state.velocities**2).reshape(n, -1).mean(axis=1) / (LOOKS // 2)
        motion[1] += (state.angular_momenta**2 / INERTIA).reshape(n, -1).mean(axis=1) / (LOOKS // 2)
    bend, twist, aligned = _joint(STIFFNESS["bending"], STIFFNESS["twist"])
    lines = [
        mean_line(f"temperature of {name}", values, 1.0, "kT")
        for name, values in zip(("translation", "rotation"), motion, strict=True)
    ]
    lines += [
        mean_line(f"{name} of a joint, twice its energy", values, expected, "kT")
        for name, values, expected in zip(
            ("shear", "stretch", "bending", "twist"), strain, (1.0, 1.0, bend, twist), strict=True
        )
    ]
    # The logarithm of the mean, rod by rod to first order.
    mean = float(cosine.mean())
    lengths = -1.0 / np.log(mean) + (cosine - mean) / (mean * np.log(mean) ** 2)
    lines.append(mean_line("persistence length", lengths, float(-1.0 / np.log(aligned)), "segments"))
    return lines


def _joint(bending: float, twist: float, n: int = 800) -> tuple[float, float, float]:
    """Compute averages of a joint of length 1 at kT = 1: <B Ω²> of one direction of bending, and of twist; <cos> of the
    angle of the third axes.

    Free joints are independent, and uniform over orientations but for exp(-E/kT). A turn by the angle θ about n is
    v = 4 sin(θ/4) n, E = v·B v/2, and the uniform measure sin²(θ/2) dθ d²n is √(1 - v²/16) d³v, up to v² = 8 at θ = π.
    """
    limit = np.sqrt(8.0)
    across, along = np.meshgrid(limit * (np.arange(n) + 0.5) / n, limit * (np.arange(n) + 0.5) / n, indexing="ij")
    square = across**2 + along**2
    weight = np.where(square < 8.0, across * np.sqrt(np.maximum(1.0 - square / 16.0, 0.0)), 0.0)
    weight *= np.exp(-0.5 * (bending * across**2 + twist * along**2))
    half = 1.0 - square / 8.0
    cosine = 2.0 * half**2 - 1.0
    third = along**2 / square

    def mean(value: np.ndarray) -> float:
        return float((weight * value).sum() / weight.sum())

    return mean(0.5 * bending * across**2), mean(twist * along**2), mean(third + (1.0 - third) * cosine)
