"""The page on BAGOGAB and in-triangle points, of the documentation of MEDYAN.jl.

It has formulas and no figures: here is one for each law that it states, beside a run. Nothing has units.
"""

from typing import Any

import numpy as np

from medyanpy.context import Context
from medyanpy.demo.report import bound_line, mean_line, near_line, uniformity_line, z_line
from medyanpy.forces import HarmonicBonds, HarmonicTrap, UniformField
from medyanpy.integrators import BAGOGABIntegrator, SplittingIntegrator
from medyanpy.mesh import TriangleMesh
from medyanpy.system import System
from medyanpy.topology import Topology

from .held_points import held_points
from .plates import PUBLISHED, Made, Plate, Row, Work, letters, log_ticks, panels


def _slope(x: Any, y: Any) -> float:
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


# One triangle -----------------------------------------------------------------------------------------------

CORNERS = np.array([[0.0, 0.0, 0.0], [3.0, 0.2, 0.0], [1.0, 2.6, 0.3]])
MASSES, POINT_MASS = np.array([1.0, 1.5, 2.0]), 0.7
SPRING, TIE = 4.0, 1.5
WEIGHTS = np.array([0.3, 0.4, 0.3])
PAIRS = np.array([[0, 1], [1, 2], [2, 0]])
REST = np.linalg.norm(CORNERS[PAIRS[:, 0]] - CORNERS[PAIRS[:, 1]], axis=1)
# Velocities at the start: of the corners, and dλ2/dt, dλ3/dt.
PUSH = np.array([[0.1, -0.2, 0.3], [-0.3, 0.1, -0.2], [0.2, 0.3, 0.1]])
GLIDE = np.array([0.25, -0.2])


def _triangle_flow(end: float, times: np.ndarray) -> np.ndarray:
    """(k, 5) λ2, λ3 and R_1 by the page's equations of motion, to 1e-12."""
    from scipy.integrate import solve_ivp

    def rates(_: Any, y: np.ndarray) -> Any:
        weights = np.array([1.0 - y[0] - y[1], y[0], y[1]])
        p, R, P = y[2:4], y[4:13].reshape(3, 3), y[13:].reshape(3, 3)
        A = np.column_stack([R[1] - R[0], R[2] - R[0]])
        dweights = np.linalg.solve(A.T @ A, p) / POINT_MASS
        v, r = A @ dweights, weights @ R
        # The point is tied to the three corners by springs of no length, which pull it to their middle.
        f = TIE * (R - r).sum(axis=0)
        way = R[PAIRS[:, 1]] - R[PAIRS[:, 0]]
        length = np.linalg.norm(way, axis=1)[:, None]
        pull = SPRING * (length - REST[:, None]) * way / length
        F = -TIE * (R - r)
        np.add.at(F, PAIRS[:, 0], pull)
        np.add.at(F, PAIRS[:, 1], -pull)
        every = np.array([-dweights.sum(), *dweights])
        dP = F + weights[:, None] * f + POINT_MASS * every[:, None] * v
        return np.concatenate([dweights, A.T @ f, (P / MASSES[:, None]).ravel(), dP.ravel()])

    A = np.column_stack([CORNERS[1] - CORNERS[0], CORNERS[2] - CORNERS[0]])
    y0 = np.concatenate([WEIGHTS[1:], POINT_MASS * A.T @ A @ GLIDE, CORNERS.ravel(), (MASSES[:, None] * PUSH).ravel()])
    found = solve_ivp(rates, (0.0, end), y0, method="DOP853", rtol=1e-12, atol=1e-13, t_eval=times)
    return np.asarray(found.y[[0, 1, 4, 5, 6]].T)


def _triangle_run(timestep: float, end: float) -> np.ndarray:
    """The same numbers at each step, by BAGAB."""
    topology = Topology()
    sheet = topology.add_membrane(TriangleMesh(CORNERS, [[0, 1, 2]]), vertex_mass=MASSES)
    point = topology.add_intriangle_points(sheet, triangles=[0], barycentric=[WEIGHTS], mass=POINT_MASS)
    system = System(topology)
    system.add_force(HarmonicBonds(sheet.beads[PAIRS], SPRING, REST))
    ties = np.column_stack([sheet.beads, np.repeat(point.beads, 3)])
    system.add_force(HarmonicBonds(ties, TIE, 0.0, name="Ties"))
    context = Context(system, SplittingIntegrator("BAGAB", timestep), threads=1)
    A = np.column_stack([CORNERS[1] - CORNERS[0], CORNERS[2] - CORNERS[0]])
    v = np.empty((4, 3))
    v[sheet.beads], v[point.beads] = PUSH, A @ GLIDE
    context.set_velocities(v)
    rows = []
    for _ in range(round(end / timestep) + 1):
        state = context.get_state(positions=True)
        rows.append(np.concatenate([state.intriangle.barycentric[0, 1:], state.positions[sheet.beads[0]]]))
        context.step(1)
    return np.array(rows)


def triangle(work: Work) -> Made:
    """The equations of motion of a triangle with a point in it, against BAGAB."""
    end = 6.0
    timesteps = np.array([0.1, 0.05, 0.025, 0.0125])
    runs = {h: _triangle_run(h, end) for h in timesteps}
    grid = timesteps[-1] * np.arange(round(end / timesteps[-1]) + 1)
    known = _triangle_flow(end, grid)
    errors = [np.abs(runs[h] - known[:: round(h / timesteps[-1])]).max() for h in timesteps]
    figure, axes = panels(1, 3, (8.0, 2.8))
    for k, name in enumerate(("$\\lambda_2$", "$\\lambda_3$")):
        axes[0].plot(grid, known[:, k], **(PUBLISHED | {"label": None if k else "equations of motion"}))
        axes[0].plot(grid[::16], runs[0.1][::2, k], "o", color=f"C{k}", markersize=3, label=f"{name}, BAGAB")
    axes[0].set(xlabel="$t$", ylabel="barycentric weight", ylim=(None, 0.75))
    axes[0].legend()
    for k, name in enumerate("xyz"):
        axes[1].plot(grid, known[:, 2 + k], **PUBLISHED)
        axes[1].plot(grid[::16], runs[0.1][::2, 2 + k], "o", color=f"C{k}", markersize=3, label=f"${name}$")
    axes[1].set(xlabel="$t$", ylabel="$R_1$")
    axes[1].legend(ncols=3)
    axes[2].loglog(timesteps, errors, "o-", color="C0", label="largest error of λ, R")
    axes[2].loglog(timesteps, errors[-1] * (timesteps / timesteps[-1]) ** 2, **PUBLISHED, linestyle="--",
                   label="$dt^2$")  # fmt: skip
    axes[2].set(xlabel="dt", ylabel="error")
    log_ticks(axes[2], timesteps)
    axes[2].legend()
    letters(axes, ("the point in its triangle", "a vertex", "order of the splitting"))
    rows = [
        Row(near_line("power of dt in the largest error of λ and R", _slope(timesteps, errors), 2.0, 0.05),
            "symmetric Strang splitting"),
        Row(bound_line(f"largest error, dt = {timesteps[-1]:g}", float(errors[-1]), 1e-3), "λ̇, ṗ_λ, Ṙ, Ṗ"),
    ]  # fmt: skip
    return Made(figure, rows,
                "masses 1, 1.5, 2 and 0.7; springs between corners and to the point; lines: DOP853, 1e-12")  # fmt: skip


# Momentum and kinetic energy --------------------------------------------------------------------------------


def _bumpy(level: int, radius: float, amount: float) -> TriangleMesh:
    """A sphere with random bumps."""
    mesh = TriangleMesh.icosphere(radius, level)
    rng = np.random.default_rng(5)
    stretch = 1.0 + amount * rng.uniform(-1.0, 1.0, size=(len(mesh.vertices), 1))
    return TriangleMesh(mesh.vertices * stretch, mesh.faces)


def conservation(work: Work) -> Made:
    """G: kinetic energies through crossings on a frozen mesh; momenta on a moving one."""
    n, steps = 40, work.of(500, 4000)
    mesh = _bumpy(2, 3.0, 0.15)
    topology = Topology()
    sheet = topology.add_membrane(mesh, vertex_mass=1.0, fixed=True)
    topology.add_intriangle_points(sheet, n, mass=1.0, seed=1, name="points")
    context = Context(System(topology), SplittingIntegrator("BAGAB", 0.2), threads=1)
    context.set_velocities_to_temperature(kT=1.0, seed=2)
    points = topology["points"].beads
    kinetic: Any = []
    crossings, before = 0, None
    for _ in range(steps + 1):
        state = context.get_state(velocities=True, positions=True)
        kinetic.append((state.velocities[points] ** 2).sum(axis=1))
        crossings += 0 if before is None else int((state.intriangle.triangles != before).sum())
        before = state.intriangle.triangles
        context.step(1)
    kinetic = np.array(kinetic)
    off = np.abs(kinetic / kinetic[0] - 1.0).max(axis=1)

    # A moving mesh with springs, and points that fall in a field: nothing else acts from outside.
    topology = Topology()
    sheet = topology.add_membrane(mesh, vertex_mass=2.0)
    inside = topology.add_intriangle_points(sheet, n, mass=1.0, seed=1)
    system = System(topology)
    edges = mesh.edges
    system.add_force(HarmonicBonds(sheet.beads[edges], 20.0,
                                   np.linalg.norm(mesh.vertices[edges[:, 0]] - mesh.vertices[edges[:, 1]],
                                                  axis=1)))  # fmt: skip
    pull = np.array([0.0, 0.0, -0.02])
    system.add_force(UniformField(inside, pull))
    context = Context(system, SplittingIntegrator("BAGAB", 0.05), threads=1)
    context.set_velocities_to_temperature(kT=1.0, seed=3)
    momentum: Any = []
    spin: Any = []
    for _ in range(steps + 1):
        state = context.get_state(velocities=True, positions=True)
        p = 2.0 * state.velocities[sheet.beads]
        momentum.append(p.sum(axis=0))
        spin.append(np.cross(state.positions[sheet.beads], p).sum(axis=0))
        context.step(1)
    t, momentum, spin = 0.05 * np.arange(steps + 1), np.array(momentum), np.array(spin)
    gain = momentum - momentum[0] - n * pull * t[:, None]
    figure, axes = panels(1, 3, (8.0, 2.7))
    # Powers of ten in the labels: above an axis they would push its title up.
    axes[0].plot(0.2 * np.arange(steps + 1), 1e14 * np.asarray(off), color="C0")
    axes[0].set(xlabel="$t$", ylabel="$10^{14}$ × largest $|K/K_0 - 1|$ of a point")
    few = slice(None, None, max(1, steps // 25))
    for k, name in enumerate("xyz"):
        axes[1].plot(t, momentum[0, k] + n * pull[k] * t,
                     **(PUBLISHED | {"label": None if k else "net external force"}))  # fmt: skip
        axes[1].plot(t[few], momentum[few, k], "o", color=f"C{k}", markersize=3, label=f"$P_{name}$")
    axes[1].set(xlabel="$t$", ylabel="momentum of the vertices")
    axes[2].plot(t, 1e12 * np.abs(gain).max(axis=1), color="C0", label="$|P - P_0 - nFt|$")
    axes[2].plot(t, 1e12 * np.abs(spin[:, 2] - spin[0, 2]), color="C1", label="$|L_z - L_{z0}|$")
    axes[2].set(xlabel="$t$", ylabel="$10^{12}$ × rounding")
    for axis in axes[1:]:
        low, high = axis.get_ylim()
        axis.set_ylim(low, high + 0.45 * (high - low))
        axis.legend(loc="upper left", ncols=2, columnspacing=0.8)
    letters(axes, ("frozen mesh: kinetic energies", "moving mesh, in a field", "less what the field gives"))
    rows = [
        Row(bound_line(f"largest |K/K0 - 1| in {crossings} changes of triangle", float(off.max()), 1e-11),
            "½ m|v|² is conserved across the transfer"),
        Row(bound_line("largest |P - P0 - n F t|", float(np.abs(gain).max()), 1e-10),
            "total momentum tracks the net external force"),
        Row(bound_line("change of L_z in the field along z", float(np.abs(spin[:, 2] - spin[0, 2]).max()), 1e-10),
            "recoils sum to zero"),
    ]  # fmt: skip
    return Made(figure, rows, f"{n} points on a bumpy sphere of {len(mesh.faces)} triangles, {steps} steps of BAGAB")


# Kinks ------------------------------------------------------------------------------------------------------


def _energy_errors(level: int | None, timestep: float, end: float, seed: int) -> np.ndarray:
    """E - E0 at equal times: of 20 points on a sphere of springs, or each in a triangle that it never leaves."""
    topology = Topology()
    if level is None:
        far = np.arange(20)[:, None, None] * np.array([50.0, 0.0, 0.0])
        mesh = TriangleMesh((CORNERS + far).reshape(-1, 3), np.arange(60).reshape(-1, 3))
    else:
        mesh = _bumpy(level, 4.0, 0.1)
    sheet = topology.add_membrane(mesh, vertex_mass=4.0)
    if level is None:
        points = topology.add_intriangle_points(sheet, triangles=np.arange(20), barycentric=np.full((20, 3), 1.0 / 3.0),
                                                mass=1.0)  # fmt: skip
    else:
        points = topology.add_intriangle_points(sheet, 20, mass=1.0, seed=seed)
    system = System(topology)
    edges = mesh.edges
    rest = np.linalg.norm(mesh.vertices[edges[:, 0]] - mesh.vertices[edges[:, 1]], axis=1)
    system.add_force(HarmonicBonds(sheet.beads[edges], 20.0, rest))
    if level is None:
        ties = np.column_stack([sheet.beads, np.repeat(points.beads, 3)])
        system.add_force(HarmonicBonds(ties, 8.0, 0.0, name="Ties"))
    else:
        system.add_force(HarmonicTrap(points, 1.0, [0.0, 0.0, 2.0]))
    context = Context(system, SplittingIntegrator("BAGAB", timestep), threads=1)
    context.set_velocities_to_temperature(kT=0.2, seed=seed)
    energies, every = [], round(0.2 / timestep)
    for _ in range(round(end / 0.2) + 1):
        energies.append(context.get_state(energy=True).total_energy)
        context.step(every)
    return np.array(energies) - energies[0]


def kinks(work: Work) -> Made:
    """What crossings do to the energy, beside motion without them."""
    end, seeds = work.of(20.0, 60.0), range(1, work.of(9, 33))
    timesteps = np.array([0.1, 0.05, 0.025, 0.0125])
    found = {
        level: np.array([[_energy_errors(level, h, end, seed) for seed in seeds] for h in timesteps])
        for level in (None, 1)
    }
    rms = {level: np.sqrt((e**2).mean(axis=(1, 2))) for level, e in found.items()}
    figure, axes = panels(1, 3, (8.0, 2.8))
    t = 0.2 * np.arange(found[None].shape[2])
    for axis, level in ((axes[0], None), (axes[1], 1)):
        for k in (0, 2):
            axis.plot(t, found[level][k][0], color=f"C{k}", linewidth=0.8, label=f"dt = {timesteps[k]:g}")
        axis.set(xlabel="$t$", ylabel="$E - E_0$" if level is None else "", ylim=(None, 1.6 if level is None else None))
        axis.legend(loc="upper left")
    for level, color, name, power in ((None, "C0", "none", 2), (1, "C3", "crossings", 1)):
        axes[2].loglog(timesteps, rms[level], "o", color=color, label=f"{name}")
        guide = rms[level][1] * (timesteps / timesteps[1]) ** power
        axes[2].loglog(timesteps, guide, color=color, linewidth=0.8, linestyle="--", label=f"$dt^{power}$")
    axes[2].set(xlabel="dt", ylabel="rms of $E - E_0$")
    log_ticks(axes[2], timesteps)
    axes[2].legend(ncols=2)
    letters(axes, ("points that stay in a triangle", "points that cross edges", "and the timestep"))
    crossing = _slope(timesteps, rms[1])
    rows = [
        Row(near_line("power of dt in the rms energy error, no crossings", _slope(timesteps, rms[None]), 2.0, 0.05),
            "symplectic, second order"),
        Row(near_line("power of dt with crossings", crossing, 1.0, 0.35),
            f"kinks cause problems of energy conservation (no number); here {rms[1][-1] / rms[None][-1]:.2g} times the "
            f"error at dt = {timesteps[-1]:g}"),
    ]  # fmt: skip
    sample = f"20 points, {len(seeds)} starts at kT = 0.2, BAGAB to t = {end:g}"
    return Made(figure, rows, sample)


# What the kinetic term leaves: densities --------------------------------------------------------------------

STIFFNESS, LENGTH = 2.0, 4.0


def _law_of_areas(n: int, cells: int = 160) -> tuple[np.ndarray, np.ndarray]:
    """Areas of triangles on a grid of their three sides, and how likely each is with n points in it.

    Three places in space have the density abc da db dc over the sides of their triangle.
    """
    side = (np.arange(cells) + 0.5) * (LENGTH + 6.0) / cells
    a, b, c = (x.ravel() for x in np.meshgrid(side, side, side, indexing="ij"))
    s = 0.5 * (a + b + c)
    square = s * (s - a) * (s - b) * (s - c)
    a, b, c, square = (x[square > 0.0] for x in (a, b, c, square))
    area = np.sqrt(square)
    energy = 0.5 * STIFFNESS * ((a - LENGTH) ** 2 + (b - LENGTH) ** 2 + (c - LENGTH) ** 2)
    weight = a * b * c * area**n * np.exp(-energy)
    return area, weight / weight.sum()


def density(work: Work) -> Made:
    """Areas of triangles of springs with no, one and six ideal points in them: √det G for each point."""
    copies, steps, looks = work.of(3000, 20_000), 60, 10
    corners = LENGTH * np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.5, 0.75**0.5, 0.0]])
    far = np.arange(copies)[:, None, None] * np.array([60.0, 0.0, 0.0])
    mesh = TriangleMesh((corners + far).reshape(-1, 3), np.arange(3 * copies).reshape(-1, 3))
    figure, axes = panels(1, 2, (7.2, 2.9), width_ratios=(1.6, 1.0))
    rows: Any = []
    means: Any = []
    for k, n in enumerate((0, 1, 6)):
        topology = Topology()
        sheet = topology.add_membrane(mesh, vertex_mass=2.0, vertex_friction=2.0)
        if n:
            topology.add_intriangle_points(sheet, triangles=np.repeat(np.arange(copies), n),
                                           barycentric=np.full((n * copies, 3), 1.0 / 3.0), mass=1.0,
                                           friction=1.0)  # fmt: skip
        system = System(topology)
        system.add_force(HarmonicBonds(sheet.beads[mesh.edges], STIFFNESS, LENGTH))
        integrator = BAGOGABIntegrator(0.08, kT=1.0, seed=20 + n)
        context = Context(system, integrator, work.threads)
        context.set_velocities_to_temperature(kT=1.0, seed=30 + n)
        context.step(200)
        areas: Any = []
        for _ in range(looks):
            context.step(steps)
            x = context.get_state(positions=True).positions[sheet.beads].reshape(copies, 3, 3)
            areas.append(0.5 * np.linalg.norm(np.cross(x[:, 1] - x[:, 0], x[:, 2] - x[:, 0]), axis=1))
        areas = np.array(areas)
        known, weight = _law_of_areas(n)
        bins = np.linspace(0.0, 20.0, 41)
        middle = 0.5 * (bins[1:] + bins[:-1])
        law = np.histogram(known, bins, weights=weight)[0] / np.diff(bins)
        axes[0].plot(middle, law, color=f"C{k}", linewidth=1.0)
        measured = np.histogram(areas.ravel(), bins)[0] / areas.size / np.diff(bins)
        axes[0].plot(middle, measured, "o", color=f"C{k}", markerfacecolor="none", markersize=3,
                     label=f"{n} point{'s' * (n != 1)}")  # fmt: skip
        mean = float(known @ weight)
        # One mean for each copy: its looks are not independent.
        line = mean_line(f"mean area with {n} points", areas.mean(axis=0), mean)
        means.append((n, line.measured, line.error, mean))
        rows.append(Row(line, "√det G exp(-PE/kT) for each point"))
    axes[0].set(xlabel="area", ylabel="probability density")
    axes[0].legend(title="lines: $A^n e^{-U/kT}$ abc", title_fontsize=7.5)
    means = np.array(means)
    some = range(9)
    axes[1].plot(some, [float(np.dot(*_law_of_areas(n, 80))) for n in some], **PUBLISHED, label="law")
    axes[1].errorbar(means[:, 0], means[:, 1], 2.0 * means[:, 2], fmt="o", color="C0", markerfacecolor="none",
                     label="measured")  # fmt: skip
    axes[1].set(xlabel="points in the triangle", ylabel="mean area")
    axes[1].legend()
    letters(axes, ("area of a triangle of springs", "a 2D gas pushes outward"))
    return Made(
        figure, rows, f"{copies} triangles, kT = 1, springs {STIFFNESS:g}, BAGOGAB with dt = 0.08, {looks} looks"
    )


def uniform(work: Work) -> Made:
    """Points on a frozen, uneven mesh: as many in each triangle as its area says."""
    n = work.of(40_000, 400_000)
    mesh = _bumpy(2, 3.0, 0.2)
    stretched = TriangleMesh(mesh.vertices * [1.6, 1.0, 0.6], mesh.faces)
    topology = Topology()
    sheet = topology.add_membrane(stretched, vertex_mass=1.0, fixed=True)
    topology.add_intriangle_points(sheet, triangles=np.zeros(n, int), barycentric=np.full((n, 3), 1.0 / 3.0), mass=1.0,
                                   friction=1.0)  # fmt: skip
    context = Context(System(topology), BAGOGABIntegrator(1.0, kT=1.0, seed=41), work.threads)
    context.set_velocities_to_temperature(kT=1.0, seed=42)
    # To forget the one triangle that all start in takes R²/2D = 10.
    context.step(150)
    state = context.get_state(positions=True)
    corners = stretched.vertices[stretched.faces]
    areas = 0.5 * np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1)
    counts = np.bincount(state.intriangle.triangles, minlength=len(areas))
    expected = n * areas / areas.sum()
    figure, axes = panels(1, 2, (7.2, 2.9))
    axes[0].plot(areas, counts, "o", color="C0", markerfacecolor="none", markersize=3, label="measured")
    order = np.sort(areas)
    axes[0].plot(order, n * order / areas.sum(), **PUBLISHED, label="$n\\,A_i/A$")
    axes[0].set(xlabel="area of a triangle", ylabel="points in it")
    axes[0].legend()
    weights = np.sort(state.intriangle.barycentric[:, 0])
    share = np.arange(1, n + 1) / n
    law = 1.0 - (1.0 - weights) ** 2
    few = slice(None, None, max(1, n // 30))
    axes[1].plot(weights[few], share[few], "o", color="C0", markerfacecolor="none", markersize=3, label="measured")
    axes[1].plot(weights, law, **PUBLISHED, label="$1 - (1 - \\lambda)^2$")
    axes[1].set(xlabel="$\\lambda_1$", ylabel="share of points below")
    axes[1].legend()
    letters(axes, ("points in triangles", "within triangles"))
    rows = [
        Row(uniformity_line(counts, expected), "exp(-PE/kT) dA, PE = 0"),
        # Kolmogorov and Smirnov: √n D is beyond 2.7 once in a million.
        Row(bound_line("√n times the largest deviation of λ1's distribution",
                       float(np.sqrt(n) * np.abs(share - law).max()), 2.7), "uniform within a triangle"),
    ]  # fmt: skip
    return Made(
        figure, rows, f"{n} points, 320 triangles of areas {areas.min():.2g} to {areas.max():.2g}, from one of them"
    )


# O ----------------------------------------------------------------------------------------------------------


def thermostat(work: Work) -> Made:
    """O on beads and in-triangle points: relaxation, and the covariance of p_λ in a skewed triangle."""
    n, dt = work.of(8000, 60_000), 0.25
    mass, friction = 2.0, 0.6
    wide = 400.0 * np.array([[-1.0, -0.3, 0.0], [0.9, -0.2, 0.1], [-0.2, 0.4, 0.2]])
    topology = Topology()
    beads = topology.add_beads(np.zeros((n, 3)), mass=mass, friction=friction)
    sheet = topology.add_membrane(TriangleMesh(wide, [[0, 1, 2]]), vertex_mass=1.0, fixed=True)
    points = topology.add_intriangle_points(sheet, triangles=np.zeros(n, int), barycentric=np.full((n, 3), 1.0 / 3.0),
                                            mass=mass, friction=friction)  # fmt: skip
    context = Context(System(topology), BAGOGABIntegrator(dt, kT=1.0, seed=51), work.threads)
    context.set_velocities_to_temperature(kT=1.0, seed=52)
    first = context.get_state(velocities=True).velocities
    t = dt * np.arange(0, 41, 2)
    products: Any = []
    for k in range(len(t)):
        if k:
            context.step(2)
        v = context.get_state(velocities=True).velocities
        every = (v * first).sum(axis=1)
        products.append((every[beads.beads] / 3.0, every[points.beads] / 2.0))
    products = np.array(products) * mass
    A = np.column_stack([wide[1] - wide[0], wide[2] - wide[0]])
    p = mass * v[points.beads] @ A
    known = mass * A.T @ A
    figure, axes = panels(1, 2, (7.2, 3.1))
    fine = np.linspace(0.0, t[-1], 200)
    axes[0].plot(fine, np.exp(-friction * fine / mass), **PUBLISHED, label="$e^{-\\gamma t/M}$")
    mean, error = products.mean(axis=2), products.std(axis=2, ddof=1) / np.sqrt(n)
    for k, name in enumerate(("free beads", "in-triangle points")):
        axes[0].errorbar(t, mean[:, k], 2.0 * error[:, k], fmt="os"[k] if k == 0 else "s", color=f"C{k}",
                         markerfacecolor="none", markersize=3.5, label=name)  # fmt: skip
    axes[0].set(xlabel="$t$", ylabel="$\\langle v(t)\\cdot v(0)\\rangle\\,M/dkT$")
    axes[0].legend()
    shown = p[:2000] / 1e3
    axes[1].plot(shown[:, 0], shown[:, 1], ".", color="C1", markersize=1.5, label="$p_\\lambda = m A^T v$")
    angle = np.linspace(0.0, 2.0 * np.pi, 200)
    ring = np.linalg.cholesky(known / 1e6) @ np.array([np.cos(angle), np.sin(angle)])
    for times, label in ((1.0, "$m\\,kT\\,G$: 1, 2, 3 σ"), (2.0, None), (3.0, None)):
        axes[1].plot(times * ring[0], times * ring[1], **PUBLISHED, label=label)
    axes[1].set(xlabel="$p_2 / 10^3$", ylabel="$p_3 / 10^3$", ylim=(-2.5, 3.4))
    axes[1].legend(loc="upper right")
    letters(axes, ("velocities forget", "canonical momenta in a skewed triangle"))
    rows = []
    for k, name in enumerate(("beads", "points")):
        for j in (4, 12):
            rows.append(Row(z_line(f"{name}: <v(t)·v(0)> M/kT at t = {t[j]:g}", mean[j, k], error[j, k],
                                   float(np.exp(-friction * t[j] / mass)), ""), "c1 = exp(-γ dt/M)"))  # fmt: skip
    # End-of-step velocities without forces are those after O: exact.
    for i, j in ((0, 0), (0, 1), (1, 1)):
        rows.append(Row(mean_line(f"<p{i + 2} p{j + 2}> / (m kT G)", p[:, i] * p[:, j] / known[i, j], 1.0),
                        "covariance m kT G"))  # fmt: skip
    return Made(figure, rows, f"{n} beads and {n} points, m = {mass:g}, γ = {friction:g}, kT = 1, dt = {dt:g}")


# Diffusion --------------------------------------------------------------------------------------------------


def _flat_diffusion(n: int, x: float, seed: int, threads: int) -> np.ndarray:
    """(n,) <dr²>/4t over times longer than velocities last, with γ dt / 2m = x and m = γ = kT = 1."""
    dt, size = 2.0 * x, 4000.0
    corners = size * np.array([[-1.0, -1.0, 0.0], [1.0, -1.0, 0.0], [0.0, 1.2, 0.0]])
    topology = Topology()
    sheet = topology.add_membrane(TriangleMesh(corners, [[0, 1, 2]]), vertex_mass=1.0, fixed=True)
    points = topology.add_intriangle_points(sheet, triangles=np.zeros(n, int), barycentric=np.full((n, 3), 1.0 / 3.0),
                                            mass=1.0, friction=1.0)  # fmt: skip
    context = Context(System(topology), BAGOGABIntegrator(dt, kT=1.0, seed=seed), threads)
    context.set_velocities_to_temperature(kT=1.0, seed=seed + 1)
    start = context.get_state(positions=True, velocities=True)
    steps = max(40, round(400.0 / dt))
    context.step(steps)
    state = context.get_state(positions=True, velocities=True)
    moved = (state.positions - start.positions)[points.beads]
    # Velocities at both ends put off what they have still to bring: r + τ v diffuses from the start, in steps of
    # independent noise, with τ = dt/(1 - c1) - dt/2.
    tau = dt / -np.expm1(-dt) - 0.5 * dt
    moved = moved + tau * (state.velocities - start.velocities)[points.beads]
    return np.asarray((moved**2).sum(axis=1) / (4.0 * steps * dt))


def diffusion(work: Work) -> Made:
    """D on a flat sheet at several timesteps, and how points forget where on a sphere they began."""
    n = work.of(4000, 40_000)
    xs = np.array([0.1, 0.25, 0.5, 1.0, 2.0])
    found = np.array([_flat_diffusion(n, x, 60 + 2 * k, work.threads) for k, x in enumerate(xs)])
    mean, error = found.mean(axis=1), found.std(axis=1, ddof=1) / np.sqrt(n)
    law = xs / np.tanh(xs)
    # A sphere: friction so strong that points turn round within a fiftieth of the radius.
    radius, friction, dt = 1.0, 50.0, 0.02
    mesh = TriangleMesh.icosphere(radius, work.of(3, 4))
    top = int(np.argmax(mesh.vertices[mesh.faces].mean(axis=1)[:, 2]))
    topology = Topology()
    sheet = topology.add_membrane(mesh, vertex_mass=1.0, fixed=True)
    points = topology.add_intriangle_points(sheet, triangles=np.full(n, top), barycentric=np.full((n, 3), 1.0 / 3.0),
                                            mass=1.0, friction=friction)  # fmt: skip
    context = Context(System(topology), BAGOGABIntegrator(dt, kT=1.0, seed=71), work.threads)
    context.set_velocities_to_temperature(kT=1.0, seed=72)
    begun = context.get_state(positions=True).positions[points.beads]
    begun /= np.linalg.norm(begun, axis=1)[:, None]
    looks = 12
    cosines: Any = []
    for _ in range(looks):
        context.step(100)
        x = context.get_state(positions=True).positions[points.beads]
        cosines.append((x * begun).sum(axis=1) / np.linalg.norm(x, axis=1))
    cosines = np.array(cosines)
    t, half = 100 * dt * np.arange(1, looks + 1), 0.5 * friction * dt
    D = half / np.tanh(half) / friction
    decay = np.exp(-2.0 * D * t / radius**2)
    figure, axes = panels(1, 2, (7.2, 2.9))
    fine = np.linspace(0.01, 2.1, 100)
    axes[0].plot(fine, fine / np.tanh(fine), **PUBLISHED, label="$x\\coth x$")
    axes[0].errorbar(xs, mean, 2.0 * error, fmt="o", color="C0", markerfacecolor="none", label="measured")
    axes[0].set(xlabel="$x = \\gamma\\,dt/2m$", ylabel="$D\\,\\gamma/kT$")
    axes[0].legend()
    c, ce = cosines.mean(axis=1), cosines.std(axis=1, ddof=1) / np.sqrt(n)
    axes[1].semilogy(np.append(0.0, t), np.append(1.0, decay), **PUBLISHED, label="$e^{-2Dt/R^2}$")
    axes[1].errorbar(t, c, 2.0 * ce, fmt="o", color="C0", markerfacecolor="none", label="measured")
    axes[1].set(xlabel="$t$", ylabel="$\\langle\\cos\\theta\\rangle$")
    axes[1].legend()
    letters(axes, ("a flat sheet", "a sphere"))
    rows = [
        Row(z_line(f"D γ/kT at x = {x:g}", m, e, k, ""), "O controls the diffusion coefficients; D → kT/γ")
        for x, m, e, k in zip(xs, mean, error, law, strict=True)
    ]
    for k in (3, looks - 1):
        rows.append(Row(z_line(f"sphere: <cos θ> at t = {t[k]:g}", c[k], ce[k], decay[k], ""), "diffusion on a sphere"))
    return Made(figure, rows, f"{n} points; sphere of {len(mesh.faces)} triangles, R = kT = m = 1, γ = {friction:g}")


FIGURES: tuple[Plate, ...] = (
    Plate("000_triangle.png", "equations of motion", "a triangle with a point in it", triangle, (3.0, 4.0)),
    Plate("000_conservation.png", "G", "kinetic energy, momentum, recoil", conservation, (1.0, 3.0)),
    Plate("000_kinks.png", "G", "crossings are kinks", kinks, (3.0, 25.0)),
    Plate("000_density.png", "Lagrangian", "the density √det G exp(-PE/kT)", density, (5.0, 50.0)),
    Plate("000_uniform.png", "Lagrangian", "points are uniform per area", uniform, (2.0, 30.0)),
    Plate("000_thermostat.png", "O", "relaxation and the covariance of momenta", thermostat, (1.0, 2.0)),
    Plate("000_diffusion.png", "O", "diffusion", diffusion, (2.0, 20.0)),
    Plate("000_held.png", "motivation", "points held by local corrections", held_points, (10.0, 60.0)),
)
