"""Burak Kaynak, From point particles to rigid bodies in MCell (MMBioS meeting, December 2018): slides.

What they plot, and for each formula they state a plot of it beside a run: diffusion of a point, of an ellipsoid, of an
ellipse in a plane; the symplectic integrator; a free top; the six momenta of a body in a fluid. Where the slides do not
say a number (angles at the start, masses, the moments of the top), the one used here stands below the figure.
"""

from typing import Any

import numpy as np

from medyanpy import rigid
from medyanpy._tools import quaternions
from medyanpy.context import Context
from medyanpy.demo.report import bound_line, mean_line, near_line, z_line
from medyanpy.forces import HarmonicTrap
from medyanpy.integrators import BrownianIntegrator, SplittingIntegrator, VerletIntegrator
from medyanpy.presets import adenylate_kinase
from medyanpy.system import System
from medyanpy.topology import Topology

from .plates import PUBLISHED, Made, Plate, Row, Work, letters, panels, worst

AXES = "xyz"


# A point in one dimension -----------------------------------------------------------------------------------

MASS, FRICTION = 2.0, 1.0


def langevin(work: Work) -> Made:
    """The mean square displacement of the Ornstein-Uhlenbeck process, and both of its limits."""
    n, dt, steps = work.of(3000, 60_000), 0.02, 2000
    topology = Topology()
    topology.add_beads(np.zeros((n, 3)), mass=MASS, friction=FRICTION)
    context = Context(System(topology), SplittingIntegrator("BAOAB", dt, kT=1.0, seed=1), work.threads)
    context.set_velocities_to_temperature(kT=1.0, seed=2)
    looks = np.unique(np.geomspace(1, steps, 24).astype(int))
    squares: Any = []
    for k in np.diff(looks, prepend=0):
        context.step(int(k))
        squares.append((context.get_state(positions=True).positions ** 2).ravel())
    t, squares = dt * looks, np.array(squares).T
    tau = MASS / FRICTION

    def law(t: Any) -> Any:
        return 2.0 * tau / MASS * (t - tau * (1.0 - np.exp(-t / tau)))

    mean, error, k = worst(squares, law(t))
    figure, (left, right) = panels(1, 2, (7.0, 2.9))
    fine = np.geomspace(0.5 * dt, 1.5 * t[-1], 200)
    left.loglog(fine, law(fine), **PUBLISHED, label="slide 8")
    left.loglog(fine, fine**2 / MASS, "--", color="C2", linewidth=0.8, label="$(kT/m)\\,t^2$")
    left.loglog(fine, fine**2 / MASS**2, ":", color="C3", linewidth=0.8, label="as printed: $(kT/m^2)\\,t^2$")
    left.loglog(fine, 2.0 * fine / FRICTION, "-.", color="C4", linewidth=0.8, label="$2Dt$, $D = kT/\\xi$")
    left.loglog(t, mean, "o", color="C0", markerfacecolor="none", label="measured")
    left.set(xlabel="$t$", ylabel="$\\langle (x_t - x_0)^2\\rangle$", ylim=(0.3 * mean[0], 3.0 * mean[-1]))
    left.legend()
    right.errorbar(t, mean / law(t) - 1.0, 2.0 * error / law(t), fmt="o", color="C0", markerfacecolor="none")
    right.axhline(0.0, **PUBLISHED)
    right.set(xscale="log", xlabel="$t$", ylabel="measured / slide − 1")
    letters((left, right), ("mean square displacement", "its deviation, two standard errors"))
    short = squares[:, 2] / t[2] ** 2 / (law(t[2]) / (t[2] ** 2 / MASS))
    rows = [
        Row(z_line(f"<(x - x0)²> at t = {t[k]:g}, the worst of {len(t)}", mean[k], error[k], law(t[k]), ""),
            "2τkT/m [t - τ(1 - exp(-t/τ))]"),
        Row(mean_line("short times: <(x - x0)²>/t² → kT/m", short, 1.0 / MASS), "kT/m²: a misprint, as m = 2 shows"),
        Row(mean_line("long times: <(x - x0)²>/2t + D τ/t", squares[:, -1] / (2.0 * t[-1]) + tau / t[-1], 1.0),
            "D = kT/ξ"),
    ]  # fmt: skip
    return Made(figure, rows, f"3 × {n} coordinates, m = {MASS:g}, ξ = kT = 1, BAOAB with Δt = {dt:g}")


# The diffusion tensor of an ellipsoid -----------------------------------------------------------------------


def _slide_diffusion(axes: Any) -> np.ndarray:
    """(6,) the formulas of the slide, by quadrature; kT = μ = 1."""
    from scipy.integrate import quad

    a2 = np.square(axes)
    scale = a2.max()

    # λ = scale s/(1 - s) brings infinity to 1.
    def integral(power: Any) -> Any:
        def integrand(s: Any) -> Any:
            lam = scale * s / (1.0 - s)
            return scale / (1.0 - s) ** 2 / np.sqrt(np.prod(a2 + lam)) / power(lam)

        return quad(integrand, 0.0, 1.0, epsabs=0.0, epsrel=1e-10, limit=200)[0]

    chi = integral(lambda lam: 1.0)
    alpha = np.array([integral(lambda lam, a=a: a + lam) for a in a2])
    weighted = a2 * alpha
    turning = [(weighted[j] + weighted[k]) / (a2[j] + a2[k]) for j, k in ((1, 2), (2, 0), (0, 1))]
    return np.concatenate([(chi + weighted) / (16.0 * np.pi), 3.0 * np.array(turning) / (16.0 * np.pi)])


def _shape(p: float) -> np.ndarray:
    """Semi-axes of a spheroid of the aspect ratio p and the volume of a sphere of radius 1."""
    return np.array([p ** (2.0 / 3.0), p ** (-1.0 / 3.0), p ** (-1.0 / 3.0)])


def ellipsoid(work: Work) -> Made:
    """Diffusion of spheroids and of an ellipsoid with three different axes, measured in their own frames."""
    n, steps = work.of(400, 4000), 60
    ratios = np.array([0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0])
    shapes = [*(_shape(p) for p in ratios), np.array([2.0, 1.0, 0.5])]
    known = np.array([_slide_diffusion(axes) for axes in shapes])
    topology = Topology()
    rng = np.random.default_rng(3)
    handles = []
    for axes in shapes:
        q = rng.normal(size=(n, 4))
        q /= np.linalg.norm(q, axis=1)[:, None]
        handles.append(topology.add_rigid_bodies(np.zeros((n, 3)), q, 1.0, rigid.ellipsoid_inertia(axes, 1.0),
                                                 rigid.ellipsoid_friction(axes, 1.0)))  # fmt: skip
    dt = 1e-3
    context = Context(System(topology), BrownianIntegrator(dt, kT=1.0, seed=4), work.threads)
    squares = np.zeros((len(shapes), n, 6))
    after = context.get_state(positions=True)
    for _ in range(steps):
        before = after
        context.step(1)
        after = context.get_state(positions=True)
        for k, h in enumerate(handles):
            back = before.orientations[h.rows] * [1.0, -1.0, -1.0, -1.0]
            moved = quaternions.turned(back, after.positions[h.beads] - before.positions[h.beads])
            turn = quaternions.product(back, after.orientations[h.rows])
            turned = 2.0 * turn[:, 1:] * np.sign(turn[:, :1])
            squares[k] += np.column_stack([moved, turned]) ** 2 / (2.0 * dt * steps)
    measured, error = squares.mean(axis=1), squares.std(axis=1, ddof=1) / np.sqrt(n)
    figure, axes = panels(1, 2, (7.0, 3.1), sharex=True)
    fine = np.geomspace(0.08, 12.5, 60)
    curves = np.array([_slide_diffusion(_shape(p)) for p in fine])
    for axis, first, what in ((axes[0], 0, "${}^{tt}D$"), (axes[1], 3, "${}^{rr}D$")):
        sphere = (1.0 / (6.0 * np.pi), 1.0 / (8.0 * np.pi))[first > 0]
        for k, color, way in ((first, "C0", "along the axis" if first == 0 else "about the axis"),
                              (first + 1, "C1", "across")):  # fmt: skip
            axis.plot(fine, curves[:, k] / sphere, **(PUBLISHED | {"color": color}))
            axis.errorbar(ratios, measured[:-1, k] / sphere, 2.0 * error[:-1, k] / sphere, fmt="o", color=color,
                          markerfacecolor="none", label=way)  # fmt: skip
        axis.set(xscale="log", xlabel="aspect ratio (oblate < 1 < prolate)", ylabel=f"{what} / that of the sphere")
        axis.legend(title="lines: slide; points: measured", title_fontsize=7.5)
    letters(axes, ("translation", "rotation"))
    # Formula against formula, and run against formula.
    own = np.array([np.diag(rigid.ellipsoid_diffusion(a, 1.0, kT=1.0)) for a in shapes])
    z = (measured - known) / error
    k, j = map(int, np.unravel_index(np.argmax(np.abs(z)), z.shape))
    name = f"semi-axes {', '.join(f'{a:.3g}' for a in shapes[k])}: {'tt' if j < 3 else 'rr'}D_{AXES[j % 3]}"
    rows = [
        Row(bound_line("formulas by quadrature against ellipsoid_friction, relative", np.abs(own / known - 1.0).max(),
                       1e-8), "ttD, rrD with χ, α1, α2, α3"),
        Row(z_line(f"{name}, the worst of {z.size}", measured[k, j], error[k, j], known[k, j], "kT/μ"), "as above"),
    ]  # fmt: skip
    for j in (*range(3), *range(3, 6)):
        what = f"semi-axes 2, 1, 0.5: {'tt' if j < 3 else 'rr'}D_{AXES[j % 3]}"
        rows.append(Row(z_line(what, measured[-1, j], error[-1, j], known[-1, j], "kT/μ"), "as above"))
    sample = f"{n} bodies of each of {len(shapes)} shapes, {steps} Brownian steps of {dt:g}; kT = μ = 1, volume 4π/3"
    return Made(figure, rows, sample)


# An ellipse in a plane --------------------------------------------------------------------------------------

ELLIPSE = (1.5, 1.0, 1.0)
ANGLE, END = np.pi / 6.0, 2.5


def _plane_law(t: np.ndarray) -> np.ndarray:
    """(3, ...) D_xx, D_yy, D_xy of the slide."""
    mean, difference = 0.5 * (ELLIPSE[0] + ELLIPSE[1]), ELLIPSE[0] - ELLIPSE[1]
    fade = difference * -np.expm1(-4.0 * ELLIPSE[2] * t) / (8.0 * ELLIPSE[2] * t)
    return np.array([mean + np.cos(2.0 * ANGLE) * fade, mean - np.cos(2.0 * ANGLE) * fade, np.sin(2.0 * ANGLE) * fade])


def ellipse(work: Work) -> Made:
    """D_xx, D_yy and D_xy of an ellipse that may only move in a plane, from one angle."""
    n, steps = work.of(40_000, 100_000), work.of(250, 1000)
    dt = END / steps
    # Whatever would leave the plane has a friction that leaves it nothing.
    friction = np.diag([1.0 / ELLIPSE[0], 1.0 / ELLIPSE[1], 1e12, 1e12, 1e12, 1.0 / ELLIPSE[2]])
    q = np.tile([np.cos(0.5 * ANGLE), 0.0, 0.0, np.sin(0.5 * ANGLE)], (n, 1))
    topology = Topology()
    topology.add_rigid_bodies(np.zeros((n, 3)), q, 1.0, [1.0, 1.0, 1.0], friction)
    context = Context(System(topology), BrownianIntegrator(dt, kT=1.0, seed=31), work.threads)
    looks = np.unique(np.geomspace(max(1, steps // 100), steps, 20).astype(int))
    t, products = dt * looks, []
    for k in np.diff(looks, prepend=0):
        context.step(int(k))
        x, y, _ = context.get_state(positions=True).positions.T
        products.append([x * x, y * y, x * y])
    products = np.array(products) / (2.0 * t[:, None, None])
    mean, error = products.mean(axis=2).T, products.std(axis=2, ddof=1).T / np.sqrt(n)
    figure, axes = panels(1, 3, (7.5, 2.7), sharex=True)
    fine = np.linspace(1e-3, END, 200)
    rows = []
    names = "D_{xx}", "D_{yy}", "D_{xy}"
    for axis, name, law, m, e, known in zip(axes, names, _plane_law(fine), mean, error, _plane_law(t), strict=True):
        axis.plot(fine, law, **PUBLISHED, label="slide")
        axis.errorbar(t, m, 2.0 * e, fmt="o", color="C0", markerfacecolor="none", markersize=3, label="measured")
        axis.set(xlabel="$t$", ylabel=f"${name}$")
        plain = name.replace("{", "").replace("}", "")
        for k in sorted({0, int(np.argmax(np.abs(m - known) / e)), len(t) - 1}):
            rows.append(Row(z_line(f"{plain} at t = {t[k]:.3g}", m[k], e[k], known[k], ""), "curves of the slide"))
    axes[0].legend()
    sample = (
        f"{n} ellipses (slide: 100 000), {steps} steps (slide: 1000) of {dt:g}, "
        f"θ0 = {np.degrees(ANGLE):g}° (not said on the slide)"
    )
    return Made(figure, rows, sample)


# The symplectic integrator ----------------------------------------------------------------------------------


def _oscillator(dt: float, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Velocity Verlet with unit mass and frequency from x = 1 at rest: x and p after each step."""
    topology = Topology()
    bead = topology.add_beads([[1.0, 0.0, 0.0]], mass=1.0)
    system = System(topology)
    system.add_force(HarmonicTrap(bead, 1.0, [0.0, 0.0, 0.0]))
    context = Context(system, VerletIntegrator(dt), threads=1)
    found = np.empty((steps + 1, 2))
    for k in range(steps + 1):
        state = context.get_state(positions=True, velocities=True)
        found[k] = state.positions[0, 0], state.velocities[0, 0]
        context.step(1)
    return found[:, 0], found[:, 1]


def oscillator(work: Work) -> Made:
    """Closed orbits of the harmonic oscillator, and the Hamiltonian that they keep."""
    steps = work.of(2000, 100_000)
    timesteps = (0.2, 1.0, 1.6, 1.9)
    figure, (left, right) = panels(1, 2, (7.0, 3.1))
    rows, largest, angle = [], 0.0, np.linspace(0.0, 2.0 * np.pi, 400)
    for k, dt in enumerate(timesteps):
        x, p = _oscillator(dt, steps)
        alpha = 1.0 - 0.25 * dt**2
        shadow = (0.5 * p**2 / np.sqrt(alpha) + 0.5 * x**2 * np.sqrt(alpha)) * np.arccos(1.0 - 0.5 * dt**2) / dt
        left.plot(np.cos(angle), np.sqrt(alpha) * np.sin(angle), color=f"C{k}", linewidth=0.8)
        left.plot(x[:200], p[:200], ".", color=f"C{k}", markersize=2.5, label=f"Δt = {dt:g}")
        energy = 0.5 * (x**2 + p**2)
        n = round(25.0 / dt) + 1
        right.plot(dt * np.arange(n), energy[:n] / energy[0], ".-", color=f"C{k}", linewidth=0.6, markersize=3)
        right.plot(dt * np.arange(n), shadow[:n] / shadow[0], color=f"C{k}", linewidth=1.2)
        largest = max(largest, float(np.abs(shadow / shadow[0] - 1.0).max()))
        # Phase by phase: the angle on the ellipse goes on by arccos(1 - Δt²/2) in a step.
        phase = np.unwrap(np.arctan2(-p / np.sqrt(alpha), x))
        measured = (phase[-1] - phase[0]) / (steps * dt)
        rows.append(Row(near_line(f"frequency, Δt = {dt:g}", measured, np.arccos(1.0 - 0.5 * dt**2) / dt, 1e-9),
                        "the second factor of H̃"))  # fmt: skip
    left.set(xlabel="$x$", ylabel="$p$", aspect="equal", ylim=(-1.75, 1.1))
    left.legend(ncols=2, loc="lower center")
    right.set(xlabel="$t$", ylabel="over that at the start", xlim=(0.0, 25.0))
    right.plot([], [], "k.-", linewidth=0.6, markersize=3, label="$H$")
    right.plot([], [], "k", label="$\\tilde H$")
    right.legend()
    letters((left, right), ("orbits: points on ellipses $\\tilde H$ = const", "$H$ and $\\tilde H$"))
    rows.append(Row(bound_line(f"largest |H̃/H̃0 - 1| in {steps} steps, all Δt", largest, 1e-10),
                    "a conserved Hamiltonian"))  # fmt: skip
    small = _oscillator(0.02, 5)[0]
    rows.append(Row(near_line("Δt = 0.02: x after 5 steps, against cos t", small[5], np.cos(0.1), 1e-4), "H̃ → H"))
    return Made(figure, rows, f"velocity Verlet, {steps} steps, m = ω = 1")


# A free top -------------------------------------------------------------------------------------------------

TOP = np.array([1.0, 1.0, 1.8])
SPIN, LEAN = 2.0, 0.6


def _spin(inertia: np.ndarray, lean: float, dt: float, steps: int) -> tuple[np.ndarray, ...]:
    """A free top whose angular momentum is along z of space, its third axis leaning by an angle: t, orientations and
    angular velocities in its frame."""
    topology = Topology()
    q0 = np.array([[np.cos(0.5 * lean), np.sin(0.5 * lean), 0.0, 0.0]])
    topology.add_rigid_bodies([[0.0, 0.0, 0.0]], q0, 1.0, inertia)
    context = Context(System(topology), VerletIntegrator(dt), threads=1)
    l0 = quaternions.turned(q0 * [1.0, -1.0, -1.0, -1.0], np.array([[0.0, 0.0, SPIN]]))
    context.set_angular_momenta(l0)
    q, omega = np.empty((steps + 1, 4)), np.empty((steps + 1, 3))
    for k in range(steps + 1):
        state = context.get_state(positions=True, velocities=True)
        q[k], omega[k] = state.orientations[0], state.angular_momenta[0] / inertia
        context.step(1)
    return dt * np.arange(steps + 1), q, omega


def top(work: Work) -> Made:
    """The free symmetric top Ix = Iy < Iz: angular velocities, Euler angles, the way of its axis, energy."""
    dt, steps = 0.01, work.of(3000, 100_000)
    t, q, omega = _spin(TOP, LEAN, dt, steps)
    phi, theta, psi = np.unwrap(rigid.euler_from_quaternions("ZXZ", q), axis=0).T
    # Euler: ω1 + i ω2 turns in the body; the axis goes round the angular momentum at L/I1.
    nutation = (1.0 / TOP[2] - 1.0 / TOP[0]) * SPIN * np.cos(LEAN)
    across, along = SPIN * np.sin(LEAN) / TOP[0], SPIN * np.cos(LEAN) / TOP[2]
    known = np.column_stack([across * np.sin(nutation * t), across * np.cos(nutation * t), along + 0.0 * t])
    figure, axes = panels(2, 2, (7.2, 5.0))
    few = t <= 25.0
    for k in range(3):
        axes[0].plot(t[few], known[few, k], **PUBLISHED, label=None if k else "Euler's equations")
        axes[0].plot(t[few][::40], omega[few][::40, k], "o", color=f"C{k}", markersize=3, label=f"$\\omega_{k + 1}$")
    axes[0].set(xlabel="$t$", ylabel="angular velocity, body frame", ylim=(-1.5, 2.5))
    axes[0].legend(ncols=2)
    rate = SPIN / TOP[0]
    laws = (LEAN + 0.0 * t, rate * t, nutation * t)
    for k, (angle, law, name) in enumerate(zip((theta, phi, psi), laws, ("θ", "φ", "ψ"), strict=True)):
        axes[1].plot(t[few], law[few], **PUBLISHED, label=None if k else "$\\theta_0$, $L/I_1$, $(1/I_3 - 1/I_1)L_3$")
        axes[1].plot(t[few][::100], (angle - (angle[0] if k else 0.0))[few][::100], "o", color=f"C{k}", markersize=3,
                     label=name)  # fmt: skip
    axes[1].set(xlabel="$t$", ylabel="Euler angle, rad", ylim=(-25.0, 75.0))
    axes[1].legend(ncols=2)
    axis = quaternions.turned(q[few], np.tile([0.0, 0.0, 1.0], (few.sum(), 1)))
    fast = quaternions.turned(q[few], omega[few])
    axes[2].plot(axis[:, 0], axis[:, 1], color="C0")
    axes[2].plot(fast[:, 0], fast[:, 1], color="C1")
    axes[2].plot(0, 0, "k+")
    axes[2].set(xlabel="$x$", ylabel="$y$", aspect="equal", xlim=(-0.8, 0.8), ylim=(-0.8, 0.8))
    for y, name, color in (
        (0.62, "axis of symmetry", "C0"), (0.24, "angular velocity", "C1"), (0.05, "angular momentum", "k")
    ):  # fmt: skip
        axes[2].text(0.0, y, name, color=color, fontsize=7.5, ha="center")
    energy = 0.5 * (TOP * omega**2).sum(axis=1)
    off = energy / energy[0] - 1.0
    axes[3].plot(t[few], 1e6 * off[few], color="C0")
    axes[3].set(xlabel="$t$", ylabel="$10^6\\,(E/E_0 - 1)$")
    letters(axes, ("angular velocities", "Euler angles; φ and ψ less those at $t = 0$",
                   "seen along the angular momentum", "energy"))  # fmt: skip
    slopes = [np.polyfit(t, np.unwrap(angle), 1)[0] for angle in (phi, psi)]
    norms = np.abs(np.linalg.norm(q, axis=1) - 1.0).max()
    momentum = quaternions.turned(q, TOP * omega) - [0.0, 0.0, SPIN]
    # The order, from the largest error of ω in a short time.
    errors = []
    for h in (0.04, 0.02):
        times, _, w = _spin(TOP, LEAN, h, round(5.0 / h))
        errors.append(np.abs(w[:, 0] - across * np.sin(nutation * times)).max())
    rows = [
        Row(near_line("dφ/dt", slopes[0], rate, 1e-4), "L/I1; φ̇ and ψ̇ are exchanged on the slide"),
        Row(near_line("dψ/dt", slopes[1], nutation, 3e-4), "Euler's equations, τ = 0"),
        Row(bound_line("change of θ, rad", float(np.abs(theta - LEAN).max()), 1e-4), "free: constant"),
        Row(bound_line("largest |E/E0 - 1|", float(np.abs(off).max()), 5e-5), "symplectic: bounded"),
        Row(bound_line("largest | |q| - 1 |", float(norms), 1e-13), "preserves |Q| = 1 at each step"),
        Row(bound_line("change of the angular momentum in space", float(np.abs(momentum).max()), 1e-10), "free"),
        Row(near_line("error of ω1: Δt over Δt/2", errors[0] / errors[1], 4.0, 0.05), "weak order 2"),
    ]
    sample = (
        f"I = {', '.join(f'{i:g}' for i in TOP)} (oblate; the slides call Ix = Iy < Iz prolate), L = {SPIN:g} leaning "
        f"by {LEAN:g} rad, {steps} steps of {dt:g}"
    )
    return Made(figure, rows, sample)


# A body in a fluid ------------------------------------------------------------------------------------------


def momenta(work: Work) -> Made:
    """The six momenta of a body like a screw, from rest: covariance against that of the exact Ornstein-Uhlenbeck
    step."""
    from scipy.linalg import expm

    n = work.of(10_000, 60_000)
    mass, inertia = 1.5, np.array([0.7, 1.0, 1.6])
    rng = np.random.default_rng(7)
    a = rng.normal(size=(6, 6))
    friction = a @ a.T / 3.0 + 0.3 * np.eye(6)
    topology = Topology()
    topology.add_rigid_bodies(np.zeros((n, 3)), np.tile([1.0, 0.0, 0.0, 0.0], (n, 1)), mass, inertia, friction)
    t = np.array([0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.4, 2.0, 3.0, 4.0])
    products: Any = []
    for k, dt in enumerate(t):
        # From rest, without forces, B and A do nothing: what is there after one step is what O has done.
        integrator = SplittingIntegrator("BAO", dt, kT=1.0, seed=8 + k, symmetric=False)
        context = Context(System(topology), integrator, work.threads)
        context.step(1)
        state = context.get_state(velocities=True)
        y = np.column_stack([mass * state.velocities, state.angular_momenta])
        products.append(y[:, :, None] * y[:, None, :])
    products = np.array(products)
    weights = np.diag([mass] * 3 + list(inertia))

    def law(t: Any) -> Any:
        return (np.eye(6) - expm(-2.0 * friction @ np.linalg.inv(weights) * t)) @ weights

    known = np.array([law(time) for time in t])
    mean, error = products.mean(axis=1), products.std(axis=1, ddof=1) / np.sqrt(n)
    figure, axes = panels(1, 2, (7.0, 3.0))
    fine = np.linspace(0.0, t[-1], 120)
    curves = np.array([law(time) for time in fine])
    labels = ["p_x", "p_y", "p_z", "l_1", "l_2", "l_3"]
    for axis, pairs in ((axes[0], [(k, k) for k in range(6)]), (axes[1], [(0, 1), (0, 3), (1, 5), (3, 4)])):
        for c, (i, j) in enumerate(pairs):
            axis.plot(fine, curves[:, i, j], **(PUBLISHED | {"color": f"C{c}"}))
            axis.errorbar(t, mean[:, i, j], 2.0 * error[:, i, j], fmt="o", color=f"C{c}", markerfacecolor="none",
                          markersize=3, label=f"${labels[i]}\\,{labels[j]}$")  # fmt: skip
        axis.set(xlabel="$t$", ylabel="covariance / kT")
        axis.legend(ncols=2)
    letters(axes, ("of each momentum, from rest", "of pairs: coupled by friction"))
    z = np.triu((mean - known) / error)
    k, i, j = map(int, np.unravel_index(np.argmax(np.abs(z)), z.shape))
    what = f"<{labels[i]} {labels[j]}> at t = {t[k]:g}, the worst of {21 * len(t)}"
    rows = [
        Row(z_line(what.replace("_", ""), mean[k, i, j], error[k, i, j], known[k, i, j], "kT"), "C(t, r, q)"),
        Row(z_line("<px px> in equilibrium", mean[-1, 0, 0], error[-1, 0, 0], known[-1, 0, 0], "kT"), "Gibbsian"),
    ]
    sample = f"{n} bodies with a full 6×6 friction tensor (random, positive definite), one O for each time"
    return Made(figure, rows, sample)


# A channel --------------------------------------------------------------------------------------------------


def _ribbon(axis: Any, x: np.ndarray, far: np.ndarray, labels: np.ndarray, part: np.ndarray) -> None:
    """Draw smooth chains through Cα, (n, 2) in a plane and (n,) towards the eye, coloured by label; what is behind is
    paler, and covered."""
    from matplotlib.collections import LineCollection
    from matplotlib.colors import to_rgb
    from scipy.interpolate import CubicSpline

    pieces: Any = []
    for k in np.unique(part):
        own = np.flatnonzero(part == k)
        if len(own) > 1:
            t = np.linspace(0.0, len(own) - 1.0, 4 * (len(own) - 1) + 1)
            path = CubicSpline(np.arange(len(own)), np.column_stack([x[own], far[own]]))(t)
            label = labels[own[np.rint(0.5 * (t[1:] + t[:-1])).astype(int)]]
            pieces.append((np.stack([path[:-1], path[1:]], axis=1), label))
    segments = np.concatenate([piece for piece, _ in pieces])
    label = np.concatenate([which for _, which in pieces])
    depth = segments[:, :, 2].mean(axis=1)
    order = np.argsort(depth)
    near = (depth - depth.min()) / np.ptp(depth)
    color = np.array([to_rgb(f"C{k}") for k in range(label.max() + 1)])[label]
    # Paler behind.
    color = 1.0 - (1.0 - color) * (0.35 + 0.65 * near)[:, None]
    lines = LineCollection(list(segments[order, :, :2]), colors=color[order], linewidths=2.0, capstyle="round")
    axis.add_collection(lines)
    axis.autoscale_view()
    axis.set(aspect="equal", xlabel="nm", ylabel="nm")


def _kinase() -> Made:
    """Adenylate kinase as the three rigid bodies of the preset: ellipsoids of their inertia, and their linkers."""
    from matplotlib.patches import Ellipse

    molecule = adenylate_kinase()
    linkers = molecule.linkers
    assert linkers is not None
    middle = np.mean([body.center_of_mass for body in molecule.bodies], axis=0)
    views = np.linalg.svd(np.array([body.center_of_mass for body in molecule.bodies]) - middle)[2]
    figure, axes = panels(1, 2, (6.6, 3.3))
    names = "core", "lid", "binds AMP"
    for axis, plane in ((axes[0], views[[0, 1]]), (axes[1], views[[0, 2]])):
        for k, (body, name) in enumerate(zip(molecule.bodies, names, strict=True)):
            # Of a solid ellipsoid of this mass and inertia.
            square = 2.5 / body.mass * (body.inertia.sum() - 2.0 * body.inertia)
            seen = plane @ body.axes.T
            values, vectors = np.linalg.eigh(seen * square @ seen.T)
            turn = np.degrees(np.arctan2(vectors[1, 1], vectors[0, 1]))
            width, height = 2.0 * np.sqrt(values[::-1])
            place = plane @ (body.center_of_mass - middle)
            axis.add_patch(
                Ellipse(place, width, height, angle=turn, color=f"C{k}", alpha=0.45, linewidth=0, label=name)
            )
        ends = (linkers.ends - middle) @ plane.T
        for k, end in enumerate(ends):
            axis.plot(*end.T, color="0.25", linewidth=1.2, label=None if k else "linkers")
        axis.autoscale_view()
        axis.set(aspect="equal", xlabel="nm", ylabel="nm")
        axis.margins(0.1)
    axes[0].legend(loc="upper left", bbox_to_anchor=(0.0, -0.2), ncols=4)
    letters(axes, ("adenylate kinase, three domains", "from the side"))
    rows = [
        Row(near_line("domains", len(molecule.bodies), 3, 1e-9), "rigid domains joined by linkers"),
        Row(near_line("bodies that linkers join", len(np.unique(linkers.bodies)), 3, 1e-9), "the same"),
    ]
    return Made(figure, rows, "adenylate kinase, for want of --structure FILE, such as 7tu9 (glycine receptor) or 4hfi "
                "(GLIC) of the PDB")  # fmt: skip


def channel(work: Work) -> Made:
    """The six rigid domains of a pentameric ligand-gated channel; without its structure, another protein's."""
    if work.structure is None:
        return _kinase()
    structure = rigid.read_structure(work.structure, ligands="leave out", gaps="allow")
    network = rigid.elastic_network(structure)
    scored, six = rigid.rigid_domains(network), rigid.rigid_domains(network, 6)
    chains = np.array([structure.residues[structure.residue_of[a]].chain for a in structure.alpha])
    x = network.positions - network.positions.mean(axis=0)
    axes3 = np.linalg.svd(x, full_matrices=False)[2]
    up, side, depth = x @ axes3[0], x @ axes3[1], x @ axes3[2]
    figure, axes = panels(1, 3, (7.8, 3.3), width_ratios=(1.1, 1.0, 1.1))
    names = [str(n) for n in scored.scores]
    colors = ["C3" if n == "6" else "0.6" for n in names]
    axes[0].bar(names, list(scored.scores.values()), color=colors)
    axes[0].set(xlabel="number of domains", ylabel="score")
    # A chain ends where the next Cα is not that of a neighbour.
    breaks = (chains[1:] != chains[:-1]) | (np.linalg.norm(np.diff(network.positions, axis=0), axis=1) > 0.5)
    part = np.concatenate([[0], np.cumsum(breaks)])
    for axis, (a, b), far in ((axes[1], (side, up), depth), (axes[2], (side, depth), up)):
        _ribbon(axis, np.column_stack([a, b]), far, six.labels, part)
    letters(axes, ("how good divisions are", "six domains, side", "along the axis"))
    peaks = [k for k in range(3, 10) if scored.scores[k] > max(scored.scores[k - 1], scored.scores[k + 1])]
    counts = np.array([[((chains == c) & (six.labels == k)).sum() for c in np.unique(chains)] for k in range(6)])
    pure = counts[1:].max(axis=1) / counts[1:].sum(axis=1)
    rows = [
        Row(near_line("peak of the score beyond the first", peaks[0] if peaks else np.nan, 6, 1e-9),
            "6, by SPECTRUS + RTB"),
        Row(near_line("least share of one chain in the five smaller domains", float(pure.min()), 1.0, 0.1),
            "five of the domains are of one subunit each"),
        Row(near_line("chains in the sixth", float((counts[0] > 0.1 * counts[0].sum()).sum()),
                      len(np.unique(chains)), 1e-9), "the sixth is the membrane part of all"),
    ]  # fmt: skip
    sample = f"{work.structure.name}: {len(network.positions)} Cα, domains of {', '.join(map(str, six.sizes))} residues"
    return Made(figure, rows, sample + "; the slide shows GLIC")


FIGURES = (
    Plate("002_channel.png", "slide 4", "six domains of a channel", channel, (8.0, 8.0)),
    Plate("002_langevin.png", "slides 7, 8", "diffusion of a point with inertia", langevin, (1.0, 3.0)),
    Plate("002_ellipsoid.png", "slide 12", "diffusion tensor of ellipsoids", ellipsoid, (1.0, 3.0)),
    Plate("002_ellipse.png", "slides 14 to 17", "an ellipse in a plane: D_xx, D_yy, D_xy", ellipse, (1.0, 4.0)),
    Plate("002_oscillator.png", "slides 27, 28", "a symplectic integrator and its Hamiltonian", oscillator,
          (1.0, 15.0)),
    Plate("002_top.png", "slides 30 to 33", "a free spheroid with Ix = Iy < Iz", top, (1.0, 5.0)),
    Plate("002_momenta.png", "slides 35 to 41", "momenta of a body in a fluid", momenta, (2.0, 5.0)),
)  # fmt: skip
