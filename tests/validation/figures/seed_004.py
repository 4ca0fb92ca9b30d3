"""A. J. C. Ladd, G. Misra, A symplectic integration method for elastic filaments (2009): figures 2 to 6.

Their method, OSDH (operator splitting, Hamiltonian forces), is the word ABA with RodElasticity. The methods that they
compare it with are run by rods/rod_reference.py beside this folder. Numba makes it fast; without it their runs are cut
short, and say so. Lengths are in d, times in t0 = d/c_l, energies in that of the start.
"""

from functools import cache
from typing import Any

import numpy as np
from rods import rod_reference

from medyanpy import rods
from medyanpy.beads import Rods
from medyanpy.context import Context
from medyanpy.demo.report import bound_line, near_line, not_measured
from medyanpy.demo.rod import ENERGY, LENGTH, SECTION
from medyanpy.forces import RodElasticity
from medyanpy.integrators import SplittingIntegrator
from medyanpy.state import State
from medyanpy.system import System
from medyanpy.topology import Topology

from . import kirchhoff
from .plates import Made, Plate, Row, Work, above_line, letters, order_line, panels
from .rod_drawing import drawing

COLORS = {"OSDH": "C0", "OSDF": "C1", "RKDH": "C2", "RKDF": "C3", "MPDH": "C4", "TRDH": "C5"}
PARTS = ("shear 1", "shear 2", "extension", "bending 1", "bending 2", "twist")
CIRCLE = np.array([2.0 * np.pi / LENGTH, 0.0, 0.0])
# Exactly four turns with Ω1 = 4 Ω3: the paper's [0.4, 0, 0.1] would be 4.12 of them in this length.
HELIX = 8.0 * np.pi / LENGTH / np.sqrt(17.0) * np.array([4.0, 0.0, 1.0])
STARTS: dict[Any, Any] = {"circle": CIRCLE, "helix": HELIX}
# A method is unstable from the first look at which the energy is off by this part.
UNSTABLE = 0.1


# Programs ---------------------------------------------------------------------------------------------------


class Run:
    """A rod let go, by the package."""

    def __init__(
        self, start: str, segments: int, dt: float, ends: Any = ("free", "free"), *, order: int = 2, parts: int = 1
    ) -> None:  # fmt: skip
        # Nodes are in the middles of segments, (19): rods of any number of them are pieces of one curve.
        nodes, orientations = (a[1::2] for a in rods.uniform(2 * segments, 0.5 * LENGTH / segments, STARTS[start]))
        topology = Topology()
        self.rod: Rods = topology.add_rod(nodes, orientations, LENGTH / segments, SECTION.linear_density,
                                          SECTION.inertia_density, ends=ends, rotation_parts=parts)  # fmt: skip
        system = System(topology)
        system.add_force(RodElasticity(self.rod, **SECTION.stiffness))
        self.context: Context = Context(system, SplittingIntegrator("ABA", dt, order=order), threads=1)

    def step(self, n: int) -> None:
        self.context.step(n)

    def state(self) -> State:
        return self.context.get_state(positions=True, velocities=True)

    def look(self) -> np.ndarray:
        """(13, N) positions, orientations, velocities and angular momenta, as rod_reference.py has them."""
        state = self.state()
        parts = state.positions, state.orientations, state.velocities, state.angular_momenta
        return np.concatenate([part.T for part in parts])

    def energies(self) -> np.ndarray:
        """(2, 6) kinetic and potential, of each of PARTS."""
        return energies_of(self.rod, self.look())


class Other:
    """A method of rod_reference.py, from the same start."""

    def __init__(self, start: str, segments: int, dt: float, method: str) -> None:
        own = Run(start, segments, dt)
        self.rod: Rods = own.rod
        self._y = own.look()
        self._dt, self._method = dt, method
        self._program = rod_reference.rod(segments)

    def start(self, y: np.ndarray) -> None:
        """Go on from another state."""
        self._y = y

    def step(self, n: int) -> None:
        self._y = rod_reference.advance(self._program, self._y, self._method, self._dt, n)

    def look(self) -> np.ndarray:
        return self._y

    def energies(self) -> np.ndarray:
        return energies_of(self.rod, self._y)


def energies_of(rod: Rods, y: np.ndarray) -> np.ndarray:
    """(2, 6) of the state y (13, N): (47) and (48) of the paper."""
    x, q, v, l = y[:3].T, y[3:7].T, y[7:10].T, y[10:].T  # noqa: E741
    # Velocities in the frames of the nodes, q⁻¹ v q.
    s = 2.0 * np.cross(-q[:, 1:], v)
    own = v + q[:, :1] * s + np.cross(-q[:, 1:], s)
    kinetic = np.concatenate([0.5 * (rod.mass[:, None] * own**2).sum(axis=0), 0.5 * (l**2 / rod.inertia).sum(axis=0)])
    shear, turn = rod.strains(x, q)
    c = SECTION.stiffness
    length = rod.kind.joint_lengths[:, None]
    stiff = np.array([c["shear"], c["shear"], c["extension"]]), np.array([c["bending"], c["bending"], c["twist"]])
    elastic = [
        0.5 * (length * k * e**2).sum(axis=0)
        for k, e in zip(stiff, (shear - np.array([0.0, 0.0, 1.0]), turn), strict=True)
    ]
    return np.array([kinetic, np.concatenate(elastic)])


@cache
def _series(start: str, segments: int, method: str, dt: float, end: float, every: float,
            ends: Any = None) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Times, and (k, 2, 6) energies. Ends early where the energy has doubled or is not a number."""
    if method == "OSDH":
        run: Any = Run(start, segments, dt, ends or ("free", "free"))
    else:
        run = Other(start, segments, dt, method)
    times, energies = [0.0], [run.energies()]
    steps = round(every / dt)
    for k in range(1, round(end / every) + 1):
        run.step(steps)
        times.append(k * every)
        energies.append(run.energies())
        if not abs(energies[-1].sum() / energies[0].sum() - 1.0) < 1.0:
            break
    return np.array(times), np.array(energies)


def _error(energies: np.ndarray) -> np.ndarray:
    total = energies.sum(axis=(1, 2))
    return np.asarray(total / total[0] - 1.0)


def _unstable_from(times: np.ndarray, energies: np.ndarray) -> float | None:
    off = np.flatnonzero(~(np.abs(_error(energies)) < UNSTABLE))
    return float(times[off[0]]) if len(off) else None


def _steps_of_energy(run: Any, n: int) -> np.ndarray:
    """E/E0 - 1 after each of n steps of a run."""
    energies = [run.energies()]
    for _ in range(n):
        run.step(1)
        energies.append(run.energies())
    return _error(np.array(energies))[1:]


def _end_of_others(work: Work, full: float, every: float) -> float:
    """Length of a run by rod_reference.py: the full one where Numba compiles it."""
    most = work.of(1000.0, full) if rod_reference.COMPILED else work.of(20.0, 1000.0)
    return max(every, min(full, most))


CUT_SHORT = "" if rod_reference.COMPILED else "; other methods are cut short, for want of numba"
MISSING = "" if rod_reference.COMPILED else "other methods in full need numba: pip install 'medyanpy[figures]'"


# Figure 2 ---------------------------------------------------------------------------------------------------

SHAPE_TIMES = (0.0, 300.0, 600.0, 900.0, 1200.0, 1500.0)


def shapes(work: Work) -> Made:
    """Shapes of the circle let go."""
    run, dt = Run("circle", 63, 0.2), 0.2
    found, curvature = {}, {}
    start = run.state().positions
    t: Any = [0.0]
    likeness: Any = [0.0]
    for k in range(0, 400):
        if k * 20.0 in SHAPE_TIMES:
            state = run.state()
            found[k * 20.0] = state.positions
            curvature[k * 20.0] = np.abs(run.rod.strains(state.positions, state.orientations)[1]).max()
        run.step(round(20.0 / dt))
        x = run.state().positions
        t.append(20.0 * (k + 1))
        likeness.append(np.sqrt(((x - x.mean(axis=0) - start + start.mean(axis=0)) ** 2).sum(axis=1).mean()))
    t, likeness = np.array(t), np.array(likeness)
    figure, axes = panels(1, 2, (7.6, 3.0), width_ratios=(1.6, 1.0))
    styles = "-", "-", (0, (8, 3)), "--", "-.", ":"
    # In its plane, and such that the gap of the circle is below, as in the paper.
    middle = found[0.0].mean(axis=0)
    gap = 0.5 * (found[0.0][0] + found[0.0][-1]) - middle
    down = gap / np.linalg.norm(gap)
    across = found[0.0][15] - middle
    across -= (across @ down) * down
    across /= np.linalg.norm(across)
    for time, style in zip(SHAPE_TIMES, styles, strict=True):
        x = found[time] - middle
        axes[0].plot(x @ across, -x @ down, color="k" if time else "0.7", linestyle=style, linewidth=1.0,
                     label=f"{time:g}")  # fmt: skip
    axes[0].set(xlabel="$y/d$", ylabel="$-x/d$", aspect="equal")
    axes[0].legend(title="$t/t_0$", loc="center left", bbox_to_anchor=(1.0, 0.5))
    axes[1].plot(t, likeness, color="C0")
    axes[1].set(xlabel="$t/t_0$", ylabel="rms distance from the start, $d$")
    letters(axes, ("shapes", "how unlike the first one"))
    late = t > 3000.0
    back = float(t[late][np.argmin(likeness[late])])
    straight = {time: float(np.linalg.norm(x[-1] - x[0])) / LENGTH for time, x in found.items()}
    # At 1500 the middle stands up between two minima of the height.
    height = -(found[1500.0] - middle) @ down
    inner = (height[1:-1] < height[:-2]) & (height[1:-1] < height[2:])
    rows = [
        Row(near_line("energy at the start", float(Run("circle", 63, dt).energies().sum()), ENERGY, 1e-9, "Y d³"),
            "not said: another program's, to 15 digits"),
        Row(above_line("largest curvature at 300 t0, over that of the circle", curvature[300.0] / CIRCLE[0], 1.0),
            "stresses exceed those of the start at the top of the teardrop"),
        Row(above_line("largest curvature at 600 t0, over that of the circle", curvature[600.0] / CIRCLE[0], 1.0),
            "and at the bends of the hairpin"),
        Row(above_line("end to end, 1200 t0 over 900 t0", straight[1200.0] / straight[900.0], 1.0), "straightens out"),
        Row(near_line("minima of the height at 1500 t0", float(inner.sum()), 2.0, 1e-9), "double minimum"),
        Row(near_line("back to about the first shape after", back, 6000.0, 0.15, "t0"), "about 6000 t0"),
    ]  # fmt: skip
    return Made(figure, rows, "63 segments, OSDH, Δt = 0.2 t0, to 8000 t0")


# Figure 3 ---------------------------------------------------------------------------------------------------

# Segments, timestep, and methods with the end of their run and when the paper has them unstable (None: never).
PANELS: dict[Any, Any] = {
    "a": (63, 0.2, (("OSDH", 1e6, None), ("OSDF", 3e5, 1e5), ("RKDF", 6e5, 1e5), ("RKDH", 6e5, 1e5),
                     ("MPDH", 2e5, None))),
    "b": (63, 0.02, (("OSDH", 3e5, None), ("OSDF", 6e5, 1e5), ("RKDF", 2e5, 1e5), ("RKDH", 2e5, None))),
    "c": (127, 0.1, (("OSDH", 1e6, None), ("OSDF", 1e6, 4e5), ("RKDF", 2e5, 1e5))),
}  # fmt: skip
WHEN = (
    "such times depend on rounding; Runge-Kutta loses energy steadily, 10 % of it late, and at which loss the paper "
    "calls a run unstable is not said"
)


def stability(work: Work) -> Made:
    """Energy against time by all methods that are there."""
    figure, axes = panels(3, 1, (6.4, 7.2))
    rows, runs, unstable = [], [], {}
    for axis, (letter, (segments, dt, methods)) in zip(axes, PANELS.items(), strict=True):
        last, reach, band = 0.0, False, min(published for *_, published in methods if published)
        for method, end, published in methods:
            own = method == "OSDH"
            every = work.of(20.0, 100.0)
            stop = work.of(1000.0, end) if own else _end_of_others(work, end, every)
            times, energies = _series("circle", segments, method, dt, stop, every)
            e = 1.0 + _error(energies)[1:]
            thin = np.unique(np.searchsorted(times[1:], np.geomspace(times[1], times[-1], 800)).clip(0, len(e) - 1))
            # Stable methods lie on each other: OSDH is a broad line below the others.
            width, color = (3.5, "0.75") if own else (1.0, COLORS[method])
            (curve,) = axis.plot(times[1:][thin], e[thin], color=color, linewidth=width, label=method)
            when = _unstable_from(times, energies)
            if when is None:
                # Here the run ends; the others end where the energy is lost.
                axis.plot(times[-1], e[-1], "o", color=curve.get_color(), markersize=3.5, clip_on=False)
            last = max(last, times[-1])
            reach = reach or (published == band and times[-1] > band)
            runs.append(f"3{letter} {method} {times[-1]:.2g}")
            name = f"3{letter}, {segments} segments, Δt = {dt:g} t0: {method}"
            if published is None:
                largest = float(np.abs(_error(energies)).max())
                rows.append(Row(bound_line(f"{name}, largest |E/E0 - 1| to {times[-1]:.3g} t0", largest, UNSTABLE),
                                "stable"))  # fmt: skip
            else:
                unstable[letter, method] = when
                if when is None:
                    why = f"stable to {times[-1]:.3g} t0, where this run ends"
                    line = not_measured(f"{name}, unstable from", published, "t0", why)
                else:
                    line = order_line(f"{name}, unstable from", when, published, 3.0, "t0")
                rows.append(Row(line, "times of the order of this").but(WHEN))
        axis.set(xscale="log", xlim=(every, last), ylim=(0.85, 1.15), ylabel="$E/E_0$")
        if reach:
            axis.axvspan(0.8 * band, 1.25 * band, color="0.92", zorder=0)
            axis.text(0.8 * band, 1.135, "paper: unstable from here ", fontsize=6.5, ha="right", va="top", color="0.4")
        axis.legend(ncols=5, loc="lower left")
    coarse, fine = unstable.get(("a", "OSDF")), unstable.get(("c", "OSDF"))
    if coarse is not None and fine is not None:
        gain = order_line("OSDF: time to instability, 127 over 63 segments", fine / coarse, 4.0, 2.0)
        rows.append(Row(gain, "a factor of about 4").but(
            "these times depend on rounding, as the same circle elsewhere in space shows, and on what Γ is taken for "
            "beyond the free ends, which the paper does not say"
        ))  # fmt: skip
    axes[-1].set_xlabel("$t/t_0$")
    letters(axes, [f"{segments} segments, Δt = {dt:g} $t_0$" for segments, dt, _ in PANELS.values()])
    return Made(figure, rows, f"ends of runs, t0: {', '.join(runs)}{CUT_SHORT}", MISSING)


# Figure 3d: single precision --------------------------------------------------------------------------------


class Narrow:
    """OSDH in NumPy with numbers of one kind, all of it: the package has double precision alone."""

    def __init__(self, y: np.ndarray, segments: int, dt: float, kind: Any, rescale: bool) -> None:
        area, inertia = SECTION.linear_density, np.array(SECTION.inertia_density)
        c, ds = SECTION.stiffness, LENGTH / segments
        stiff = np.array([c["shear"], c["shear"], c["extension"], c["bending"], c["bending"], c["twist"]])
        self.y: np.ndarray = y.astype(kind)
        self.mass: Any = kind(area * ds)
        self.inertia: np.ndarray = (inertia * ds).astype(kind)
        self.c: np.ndarray = stiff.astype(kind)
        self.ds: Any = kind(ds)
        self.dt: Any = kind(dt)
        self.kind: Any = kind
        self.rescale: bool = rescale

    @staticmethod
    def _basis(q: np.ndarray) -> np.ndarray:
        """(3, 4, n) e_i, which a turn about the body axis i moves q along."""
        w, x, y, z = q
        return np.array([[-x, w, z, -y], [-y, -z, w, x], [-z, y, -x, w]])

    @staticmethod
    def _directors(q: np.ndarray) -> np.ndarray:
        w, x, y, z = q
        two = q.dtype.type(2.0)
        return np.array([
            [w * w + x * x - y * y - z * z, two * (x * y + w * z), two * (x * z - w * y)],
            [two * (x * y - w * z), w * w - x * x + y * y - z * z, two * (y * z + w * x)],
            [two * (x * z + w * y), two * (y * z - w * x), w * w - x * x - y * y + z * z],
        ])  # fmt: skip

    def _turn(self, i: int, h: Any) -> None:
        y, half = self.y, self.kind(0.5)
        angle = h * y[10 + i] / self.inertia[i]
        c, s = np.cos(half * angle), np.sin(half * angle)
        y[3:7] = c * y[3:7] + s * self._basis(y[3:7])[i]
        j, k = 10 + (i + 1) % 3, 10 + (i + 2) % 3
        cos, sin = np.cos(angle), np.sin(angle)
        y[j], y[k] = cos * y[j] + sin * y[k], cos * y[k] - sin * y[j]

    def _drift(self, h: Any) -> None:
        self.y[:3] += h * self.y[7:10]
        half = self.kind(0.5) * h
        for i, part in ((0, half), (1, half), (2, h), (1, half), (0, half)):
            self._turn(i, part)

    def _kick(self, h: Any) -> None:
        """By minus the derivatives of ds/2 Σ c (strain - rest)² with respect to places and quaternions."""
        y, ds, two = self.y, self.ds, self.kind(2.0)
        a, b = y[3:7, :-1], y[3:7, 1:]
        total = a + b
        size = np.sqrt((total * total).sum(axis=0))
        mean = total / size
        e, d = self._basis(mean), self._directors(mean)
        way, turn = (y[:3, 1:] - y[:3, :-1]) / ds, two * (b - a) / ds
        gamma, omega = (d * way).sum(axis=1), (e * turn).sum(axis=1)
        stretch = gamma.copy()
        stretch[2] -= self.kind(1.0)
        f, m = self.c[:3, None] * stretch, self.c[3:, None] * omega
        force = (f[:, None] * d).sum(axis=0)
        arm = np.cross(omega, m, axis=0) + two * np.cross(gamma, f, axis=0)
        same = (arm[:, None] * e).sum(axis=0) * ds / size
        opposite = two * (m[:, None] * e).sum(axis=0)
        torque = np.zeros_like(y[3:7])
        torque[:, :-1] += same + opposite
        torque[:, 1:] += same - opposite
        y[7:10, :-1] += h * force / self.mass
        y[7:10, 1:] -= h * force / self.mass
        y[10:] += h * self.kind(0.5) * (self._basis(y[3:7]) * torque).sum(axis=1)

    def step(self, n: int) -> None:
        half = self.kind(0.5) * self.dt
        for _ in range(n):
            self._drift(half)
            self._kick(self.dt)
            self._drift(half)
            if self.rescale:
                self.y[3:7] /= np.sqrt((self.y[3:7] * self.y[3:7]).sum(axis=0))

    def norms(self) -> float:
        """The largest | |q| - 1 |."""
        return float(np.abs(np.sqrt((self.y[3:7].astype(float) ** 2).sum(axis=0)) - 1.0).max())


def precision(work: Work) -> Made:
    """OSDH in single precision, as it is and with quaternions rescaled, beside double."""
    end, every, dt = work.of(1000.0, 20_000.0), work.of(20.0, 50.0), 0.2
    own = Run("circle", 63, dt)
    rod, start = own.rod, own.look()
    figure, axes = panels(1, 2, (7.4, 2.9))
    found = {}
    for name, kind, rescale, color in (
        ("single", np.float32, False, "C3"),
        ("single, rescaled", np.float32, True, "C1"),
        ("double", np.float64, False, "C0"),
    ):
        program = Narrow(start, 63, dt, kind, rescale)
        times, errors, norms = [], [], []
        first = energies_of(rod, start).sum()
        stop = end if kind is np.float32 else min(end, 1000.0)
        for k in range(1, round(stop / every) + 1):
            with np.errstate(all="ignore"):
                program.step(round(every / dt))
            y = program.y.astype(float)
            # Energies of what is stored, with unit quaternions as energies take them to be.
            y[3:7] /= np.sqrt((y[3:7] ** 2).sum(axis=0))
            e = energies_of(rod, y).sum() / first - 1.0 if np.isfinite(y).all() else np.nan
            times.append(k * every)
            errors.append(e)
            norms.append(program.norms())
            if not abs(e) < 1.0:
                break
        found[name] = np.array(times), np.array(errors), np.array(norms), program
        if kind is np.float32:
            axes[0].loglog(times, np.abs(errors), color=color, label=name)
        if not rescale:
            axes[1].loglog(times, np.maximum(norms, 1e-17), color=color, label=name)
    # The program in double precision is the package's: same path.
    program = Narrow(start, 63, dt, np.float64, False)
    program.step(500)
    own.step(500)
    same = float(np.abs(program.y[:3] - own.look()[:3]).max())
    times, energies = _series("circle", 63, "OSDH", dt, end, every)
    axes[0].loglog(times[1:], np.abs(_error(energies)[1:]), color="C0", label="double")
    axes[0].axhline(UNSTABLE, color="0.4", linewidth=0.8, linestyle="--")
    axes[0].text(times[1], 0.8 * UNSTABLE, " paper: single is lost before 1000", fontsize=6.5, va="top", color="0.4")
    axes[0].set(xlabel="$t/t_0$", ylabel="$|E/E_0 - 1|$", ylim=(1e-7, 0.3))
    axes[1].set(xlabel="$t/t_0$", ylabel="largest $|\\,|q| - 1\\,|$")
    for axis in axes:
        axis.legend()
    letters(axes, ("energy", "length of quaternions"))

    def unstable(name: str) -> Any:
        times, errors, _, _ = found[name]
        off = np.flatnonzero(~(np.abs(errors) < UNSTABLE))
        return float(times[off[0]]) if len(off) else None

    rows = [Row(bound_line("this program in double against the package, 100 t0", same, 1e-10, "d"), "the same method")]
    when = unstable("single")
    if when is not None:
        rows.append(Row(order_line("single precision: energy off by 10 % from", when, 1e3, 3.0, "t0"), "t < 10³ t0"))
    else:
        largest = float(np.abs(found["single"][1]).max())
        rows.append(
            Row(above_line(f"single precision, |E/E0 - 1| to {end:g} t0", largest, UNSTABLE),
                "most rapid instability at t < 10³ t0").but(
                "in this program, with every operation in single precision, quaternions lose their length too, but the "
                "energy stays"
            )
        )  # fmt: skip
    rows.append(Row(above_line("single precision: quaternions off at the end by", float(found["single"][2][-1]), 1e-6),
                    "the error increases rapidly"))  # fmt: skip
    later = unstable("single, rescaled")
    if later is not None:
        rows.append(Row(above_line("rescaled: energy off by 10 % from", later, when or 0.0, "t0"),
                        "merely delays the onset"))  # fmt: skip
    else:
        largest = float(np.abs(found["single, rescaled"][1]).max())
        rows.append(Row(bound_line(f"rescaled: largest |E/E0 - 1| to {end:g} t0", largest, UNSTABLE),
                        "merely delays the onset"))  # fmt: skip
    rows.append(Row(bound_line("double: largest | |q| - 1 | to 1000 t0", float(found["double"][2].max()), 1e-13),
                    "stable at less than one part in 10^14"))  # fmt: skip
    return Made(figure, rows, f"63 segments, Δt = 0.2 t0, to {end:g} t0; NumPy, every operation in the precision named")


# Figure 4 ---------------------------------------------------------------------------------------------------

DRIFTS = (
    ("a", 0.2, (("OSDH", 2e5),)),
    ("b", 0.2, (("MPDH", 2e5), ("TRDH", 2e5))),
    ("c", 0.02, (("OSDH", 2e5),)),
    ("d", 0.02, (("MPDH", 5e4),)),
)


def drift(work: Work) -> Made:
    """The slow drift of the energy of symplectic methods, and its short-time fluctuations."""
    figure, axes = panels(2, 2, (7.4, 4.8))
    rows, last = [], {}
    for axis, (letter, dt, methods) in zip(axes, DRIFTS, strict=True):
        for method, end in methods:
            own = method == "OSDH"
            every = work.of(20.0, 100.0)
            stop = work.of(1000.0, end) if own else _end_of_others(work, end, every)
            times, energies = _series("circle", 63, method, dt, stop, every)
            e = _error(energies)
            name = {"TRDH": "trapezoidal rule, (57)", "MPDH": "implicit midpoint"}.get(method, method)
            axis.plot(times, e, color=COLORS[method], linewidth=0.6, label=name)
            last[
                letter, method
            ] = (float(times[-1]), float(np.abs(e).max()), float(e[-max(1, len(e) // 10) :].mean()))  # fmt: skip
        axis.ticklabel_format(style="sci", scilimits=(-2, 3))
        axis.set(xlabel="$t/t_0$", ylabel="$E/E_0 - 1$")
        if axis.lines:
            axis.legend()
    letters(axes, [f"{' and '.join(m for m, _ in methods)}, Δt = {dt:g} $t_0$" for _, dt, methods in DRIFTS])
    for (letter, method), (end, largest, mean) in last.items():
        if method in ("MPDH", "TRDH") and letter == "b" and end > 1.5e5:
            line = order_line(f"4{letter}: {method}, |E/E0 - 1| at {end:.2g} t0", abs(mean), 3e-3, 3.0)
            why = "an iteration to rounding drifts less than theirs; the trapezoidal rule, which (57) is, as much"
            rows.append(Row(line, "0.3 % at 200 000 t0, for MPDH").but(why))
        else:
            bound = {0.2: 1e-3, 0.02: 1e-5}[dict((d[0], d[1]) for d in DRIFTS)[letter]]
            name = f"4{letter}: {method}, largest |E/E0 - 1| to {end:.2g} t0"
            rows.append(Row(bound_line(name, largest, bound), "drift quadratic in Δt"))
    _, _, own = last["a", "OSDH"]
    end, _, theirs = last["b", "MPDH"]
    name, both = "4b over 4a: drift of MPDH over that of OSDH", f"{abs(theirs):.2g} and {abs(own):.2g} at {end:.2g} t0"
    if end > 1.5e5:
        line = order_line(name, abs(theirs / own), 10.0, 2.0)
    else:
        line = not_measured(name, 10.0, "", f"{both}, too early for a drift")
    rows.append(Row(line, f"OSDH about an order of magnitude better; here {both}").but(
        "how far either has drifted depends on rounding, as the same circle elsewhere in space shows"
    ))  # fmt: skip
    # Fluctuations at every step, and the power of the timestep.
    span = work.of(100.0, 300.0)
    steps = (0.4, 0.2, 0.1)
    off = [float(np.abs(_error(_series("circle", 63, "OSDH", dt, span, dt)[1])).max()) for dt in steps]
    rows.append(
        Row(order_line("fluctuations of OSDH over (Δt/t0)², Δt = 0.2 t0", off[1] / 0.04, 0.1, 2.0),
            "approximately 0.1 (Δt/t0)²").but(
            "a tenth of it in the first 300 t0, by this package and by another program alike; as much from 1e6 t0 on, "
            "when shear and extension are excited"
        )
    )  # fmt: skip
    rows.append(Row(near_line("power of Δt in the fluctuations", float(np.polyfit(np.log(steps), np.log(off), 1)[0]),
                              2.0, 0.05), "quadratic in the time step"))  # fmt: skip
    four = [np.abs(_steps_of_energy(Run("helix", 63, 0.2, parts=j), 240)).max() for j in (1, 4)]
    line = near_line("largest |E/E0 - 1| of the helix, J = 4 over J = 1 in (68)", float(four[1] / four[0]), 1.0, 1e-3)
    rows.append(Row(line, "a more accurate integration without substantial overhead"))
    for order, dt in ((4, 0.2), (6, 0.4), (8, 0.4)):
        off = [float(np.abs(_steps_of_energy(Run("circle", 63, h, order=order), round(48.0 / h))).max())
               for h in (dt, 0.5 * dt)]  # fmt: skip
        power = float(np.log2(off[0] / off[1]))
        line = near_line(f"power of Δt in the fluctuations, order {order}", power, order, 0.05)
        rows.append(Row(line, "higher-order algorithms are available"))
    rows += _late(work)
    ends = ", ".join(f"4{letter} {method} {end:.2g}" for (letter, method), (end, _, _) in last.items())
    return Made(figure, rows, f"63 segments, circle; ends of runs, t0: {ends}{CUT_SHORT}", MISSING)


def _late(work: Work) -> list[Row]:
    """Fluctuations of OSDH and of MPDH in 300 t0 of a rod on its way to equilibrium, and what a step of MPDH costs."""
    late, dt = work.of(1e5, 1e6), 0.2
    n = round((300.0 if rod_reference.COMPILED else 100.0) / dt)
    run, other = Run("circle", 63, dt), Other("circle", 63, dt, "MPDH")
    run.step(round(late / dt))
    other.start(run.look())
    start = other.look()
    own, theirs = (_steps_of_energy(program, n) for program in (run, other))
    ratio = float(own.std() / theirs.std())
    says = "about 20 times larger with OSDH than with MPDH"
    rows = [Row(order_line(f"rms fluctuation of OSDH over that of MPDH, from {late:g} t0 on", ratio, 20.0, 2.0), says)]
    if not work.quick:
        name = f"fluctuations of OSDH over (Δt/t0)², from {late:g} t0 on"
        rows.append(Row(order_line(name, float(np.abs(own).max()) / dt**2, 0.1, 2.0), "approximately 0.1 (Δt/t0)²"))
    program = rod_reference.rod(63)
    for step in (0.02, 0.1, 0.2):
        needed = rod_reference.evaluations(program, start, step, n, 1e-12)
        row = Row(order_line(f"force evaluations of MPDH per step to 1e-12, Δt = {step:g} t0", needed, 7.5, 1.5),
                  "5 to 10 times as many as OSDH")  # fmt: skip
        rows.append(row.but(
            "so many for Δt = 0.02 to 0.1 t0, or solved to 1e-9 to 1e-6; midpoint steps of 0.2 to rounding take 21"
        ))  # fmt: skip
    return rows


# The pinned rod ---------------------------------------------------------------------------------------------


def pinned(work: Work) -> Made:
    """The circle let go with one end pinned, after Dichmann and Maddocks."""
    end, every, dt = work.of(5000.0, 2e5), work.of(10.0, 20.0), 0.2
    times, energies = _series("circle", 63, "OSDH", dt, end, every, ("pinned", "free"))
    e = _error(energies)
    run = Run("circle", 63, dt, ("pinned", "free"))
    figure, axes = panels(1, 2, (7.4, 2.9))
    axes[0].set(xlabel="$y/d$", ylabel="$z/d$", aspect="equal")
    pinned_at = []
    for k in range(6):
        x = run.state().positions
        pinned_at.append(x[0])
        axes[0].plot(x[:, 1], x[:, 2], color=f"C{k}", linewidth=1.0, label=f"{300 * k}")
        run.step(1500)
    axes[0].plot(*pinned_at[0][1:], "k^", markersize=5)
    axes[0].legend(title="$t/t_0$", loc="center left", bbox_to_anchor=(1.0, 0.5))
    axes[1].plot(times, 100.0 * e, linewidth=0.6)
    axes[1].set(xlabel="$t/t_0$", ylabel="$E/E_0 - 1$, %")
    letters(axes, ("shapes", "energy"))
    tail = float(np.abs(e[-max(1, len(e) // 10) :].mean()))
    moved = float(np.abs(np.array(pinned_at) - pinned_at[0]).max())
    rows = [
        Row(bound_line(f"drift of the energy at {times[-1]:.2g} t0", tail, 2e-3),
            "0.2 % after 200 000 t0 by Dichmann and Maddocks, for a Kirchhoff rod and the midpoint rule; OSDH about an "
            "order of magnitude less"),
        Row(bound_line("largest |E/E0 - 1|", float(np.abs(e).max()), 2e-3), "bounded"),
        Row(bound_line("how far the pinned end has moved", moved, 1e-9, "d"), "pinned at one end"),
    ]  # fmt: skip
    return Made(figure, rows, f"63 segments, Δt = {dt:g} t0, one end pinned, the other free, to {times[-1]:.2g} t0")


def kirchhoff_beside(work: Work) -> Made:
    """The circle let go as Kirchhoff's rod, and how much longer its steps may be."""
    return kirchhoff.beside(work, lambda dt: Run("circle", 63, dt))


# Figures 5 and 6 --------------------------------------------------------------------------------------------

HELIX_TIMES = (0.0, 100.0, 200.0, 300.0, 400.0, 500.0)


def helix_shapes(work: Work) -> Made:
    """Shapes of the helix let go, with 63 and with 630 segments."""
    coarse, fine = Run("helix", 63, 0.1), Run("helix", 630, work.of(0.05, 0.02))
    figure, axes = panels(2, 3, (7.6, 5.2))
    apart = []
    # The middles of 63 segments are every tenth of the fine ones, between two of them.
    for k, axis in enumerate(axes):
        if k:
            coarse.step(1000)
            fine.step(round(100.0 / work.of(0.05, 0.02)))
        a, b = coarse.state().positions, fine.state().positions
        if k == 0:
            directions = np.linalg.svd(b - b.mean(axis=0), full_matrices=False)[2]
        low = 10 * np.arange(63) + 4
        apart.append(float(np.linalg.norm(a - 0.5 * (b[low] + b[low + 1]), axis=1).max()))
        axis.plot(b @ directions[0], b @ directions[1], color="k", linewidth=1.3, label="630")
        axis.plot(a @ directions[0], a @ directions[1], "o", color="C0", markersize=3,
                  markerfacecolor="none", label="63")  # fmt: skip
        axis.set(aspect="equal", xlabel="$z/d$", ylabel="$x/d$")
        axis.set_adjustable("datalim")
    axes[0].legend(title="segments", title_fontsize=7.5)
    letters(axes, [f"t = {t:g} $t_0$" for t in HELIX_TIMES])
    rows = [
        Row(bound_line(f"63 against 630 segments at {t:g} t0, largest distance", apart[k], bound, "d"), says)
        for k, t, bound, says in (
            (1, 100.0, 0.5, "high degree of coherence"),
            (3, 300.0, 1.5, "high degree of coherence"),
            (5, 500.0, 10.0, "start to diverge at times of the order of 500 t0"),
        )
    ]
    return Made(figure, rows, f"OSDH, Δt = 0.1 t0 (63 segments) and {work.of(0.05, 0.02):g} t0 (630)")


def helix_energy(work: Work) -> Made:
    """Energy of the helix, and how it spreads over the degrees of freedom."""
    end, every = work.of(4e4, 1e6), work.of(10.0, 20.0)
    times, energies = _series("helix", 63, "OSDH", 0.1, end, every)
    share = energies / energies[0].sum()
    figure, axes = panels(2, 3, (8.0, 4.4))
    for axis, stop in ((axes[0], min(end, 1e5)), (axes[3], 4000.0)):
        keep = np.flatnonzero(times <= stop)
        keep = keep[:: max(1, len(keep) // 300)]
        for name, e in (("total", share.sum(axis=(1, 2))), ("potential", share[:, 1].sum(axis=1)),
                        ("kinetic", share[:, 0].sum(axis=1))):  # fmt: skip
            axis.plot(times[keep] / 1e3, e[keep], linewidth=0.7, label=name)
        axis.set(xlabel="$t/10^3 t_0$", ylabel="$E/E_0$", ylim=(0.0, 1.35))
        axis.legend(ncols=3, columnspacing=0.8, handlelength=1.2)
    width = max(1, round(1000.0 / every))
    shown = len(times) if work.quick else round(1e5 / every)
    blocks = (shown - 1) // width
    mean = share[1 : 1 + blocks * width].reshape(blocks, width, 2, 6).mean(axis=1)
    middle = times[1 : 1 + blocks * width].reshape(blocks, width).mean(axis=1)
    for axis, kind, part in ((axes[1], 0, 0), (axes[2], 0, 3), (axes[4], 1, 0), (axes[5], 1, 3)):
        for k in range(part, part + 3):
            axis.plot(middle / 1e3, mean[:, kind, k], linewidth=0.8, label=PARTS[k])
        axis.set(xlabel="$t/10^3 t_0$", ylabel="mean of 1000 $t_0$ / $E_0$", ylim=(0.0, None))
        axis.legend(loc="upper right" if (kind, part) == (1, 3) else "lower right")
    letters(axes, ("to long times", "kinetic, translation", "kinetic, rotation", "to 4000 $t_0$",
                   "potential, translation", "potential, rotation"))  # fmt: skip
    late = energies[times >= min(0.4 * end, 4e4)].mean(axis=0)
    kt = 2.0 * late[0].sum() / (6 * 63 - 6)
    rows = [Row(bound_line(f"largest |E/E0 - 1| to {end:.2g} t0", float(np.abs(_error(energies)).max()), 1e-2),
                "conserves energy as long as tested, up to 10⁶ t0")]  # fmt: skip
    for what, row, n in (("kinetic", late[0], 63), ("potential", late[1], 62)):
        for name, e in zip(PARTS, row, strict=True):
            rows.append(Row(near_line(f"{what}, {name}, over ½kT each", float(2.0 * e / (n * kt)), 1.0,
                                      work.of(0.15, 0.05)), "equipartition within 10⁴ t0"))  # fmt: skip
    sample = f"63 segments, OSDH, Δt = 0.1 t0, four turns, to {end:.2g} t0; means from {min(0.4 * end, 4e4):.2g} t0 on"
    return Made(figure, rows, sample)


FIGURES: tuple[Plate, ...] = (
    Plate("004_1.png", "figure 1", "a filament, unstrained and deformed", drawing, (1.0, 1.0)),
    Plate("004_2.png", "figure 2", "shapes of a circle let go", shapes, (2.0, 2.0)),
    Plate("004_3abc.png", "figure 3, a to c", "how long methods are stable", stability, (2.0, 1200.0)),
    Plate("004_3d.png", "figure 3d", "single precision", precision, (5.0, 100.0)),
    Plate("004_4.png", "figure 4", "how the energy drifts", drift, (3.0, 400.0)),
    Plate("004_pinned.png", "section V.A", "one end pinned", pinned, (1.0, 20.0)),
    Plate("004_kirchhoff.png", "sections II and VI", "beside Kirchhoff's rod", kirchhoff_beside, (4.0, 12.0)),
    Plate("004_5.png", "figure 5", "shapes of a helix let go", helix_shapes, (2.0, 4.0)),
    Plate("004_6.png", "figure 6", "energy and equipartition of the helix", helix_energy, (4.0, 150.0)),
)
