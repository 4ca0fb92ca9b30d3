"""Steps across a kink: a point in a trap that is seen under two angles, from the two triangles at an edge.

Across the edge, unfolded at s = 0, the energy is ω²/2 (s - a)² up to a constant, with one a on either side: continuous,
with a force that jumps by g = ω²(a_left - a_right) from left to right. Mass and kT are 1.

Functions take places and momenta (n,), the timestep h and the two a, and return places and momenta after a step.
"""

import numpy as np

OMEGA = 1.0
# Times below this, of one step, are those of a point that has just crossed.
JUST_NOW = 1e-14


def _a(s, a):
    return np.where(s < 0.0, a[0], a[1])


def force(s, a):
    return -(OMEGA**2) * (s - _a(s, a))


def energy(s, p, a):
    return 0.5 * p * p + 0.5 * OMEGA**2 * ((s - _a(s, a)) ** 2 - _a(s, a) ** 2)


def shadow(s, p, h, a):
    """The energy that steps of length h keep to its fourth order where none crosses: by BCH for a harmonic force."""
    return energy(s, p, a) + h * h * (OMEGA**2 * p * p / 12.0 - force(s, a) ** 2 / 24.0)


def plain(s, p, h, a):
    """Velocity Verlet: half kick, flight, half kick."""
    p = p + 0.5 * h * force(s, a)
    s = s + h * p
    return s, p + 0.5 * h * force(s, a)


def impulse(s, p, h, a):
    """At the crossing, at the time t, what half kicks at the ends of the step have missed: (f1 - f2)(t - h/2)."""
    left = s < 0.0
    p = p + 0.5 * h * force(s, a)
    t = np.divide(-s, p, out=np.full_like(s, np.inf), where=p != 0.0)
    crosses = (t > 0.0) & (t < h)
    missed = np.where(left, 1.0, -1.0) * OMEGA**2 * (a[0] - a[1]) * (t - 0.5 * h)
    # One that would be turned back by it crosses without.
    crosses_on = crosses & ((p + np.where(crosses, missed, 0.0)) * p > 0.0)
    after = np.where(crosses_on, p + np.where(crosses, missed, 0.0), p)
    s = np.where(crosses_on, after * (h - t), s + h * p)
    return s, after + 0.5 * h * force(s, a)


def ramp(s, p, h, a):
    """Kicks by the smooth half, f ± g/2; flights by the other, constant on either side: parabolas across the edge."""
    g = OMEGA**2 * (a[0] - a[1])

    def smooth(s):
        return force(s, a) - np.where(s < 0.0, 0.5 * g, -0.5 * g)

    p = p + 0.5 * h * smooth(s)
    side, left = np.where(s < 0.0, -1.0, 1.0), np.full_like(s, h)
    while (left > 0.0).any():
        half = -0.25 * side * g
        root = p * p - 4.0 * half * s
        with np.errstate(divide="ignore", invalid="ignore"):
            q = -0.5 * (p + np.where(p < 0.0, -1.0, 1.0) * np.sqrt(np.maximum(root, 0.0)))
            times = np.array([q / half, s / q])
        times = np.where((root >= 0.0) & np.isfinite(times) & (times > JUST_NOW), times, np.inf).min(axis=0)
        time = np.minimum(times, left)
        s, p = np.where(times < left, 0.0, s + p * time + half * time * time), p + 2.0 * half * time
        side = np.where(times < left, -side, side)
        left = left - time
    # On the edge itself the side decides.
    s = np.where(s == 0.0, side * 1e-300, s)
    return s, p + 0.5 * h * smooth(s)


STEPS = {"plain": plain, "impulse": impulse, "ramp": ramp}


def starts(n, seed=1):
    rng = np.random.default_rng(seed)
    return rng.normal(size=n), rng.normal(size=n)


def determinant(step, s, p, h, a, by=1e-6):
    """By what steps multiply areas in (s, p), by differences."""
    ends = [step(s + i * by, p + j * by, h, a) for i, j in ((1, 0), (-1, 0), (0, 1), (0, -1))]
    s_s, p_s = (ends[0][k] - ends[1][k] for k in range(2))
    s_p, p_p = (ends[2][k] - ends[3][k] for k in range(2))
    return (s_s * p_p - s_p * p_s) / (4.0 * by * by)


def report(a=(0.4, -0.4), n=4000, time=400.0):
    """Print, for each kind of step and ω h: error of a crossing, share that do not run back, what areas are multiplied
    by, and the drift and spread of the energy after a time."""
    print("omega h  step      error of a crossing  not reversible  |area - 1|  drift     spread")
    for h in (0.4, 0.2, 0.1, 0.05):
        for name, step in STEPS.items():
            s, p = starts(n)
            t, q = step(s, p, h, a)
            crossed = (s < 0.0) != (t < 0.0)
            wrong = (shadow(t, q, h, a) - shadow(s, p, h, a))[crossed]
            back = step(t, -q, h, a)
            lost = np.maximum(np.abs(back[0] - s), np.abs(back[1] + p))[crossed] > 1e-9
            area = np.median(np.abs(determinant(step, s, p, h, a)[crossed] - 1.0))
            before = energy(s, p, a)
            for _ in range(round(time / h)):
                s, p = step(s, p, h, a)
            after = energy(s, p, a) - before
            print(f"{h:7.2f}  {name:8s}  {np.sqrt(np.mean(wrong**2)):19.1e}  {lost.mean():14.4f}  {area:10.1e}  "
                  f"{after.mean():8.1e}  {after.std():.1e}")  # fmt: skip


if __name__ == "__main__":
    report()
