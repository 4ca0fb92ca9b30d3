"""Elastic rods of A. J. C. Ladd and G. Misra, A symplectic integration method for elastic filaments (2009).

A second implementation that shares nothing with the package: energies, both kinds of forces and all integrators of the
paper. Numbers in brackets are equations of the paper, T1.x of its Table I.

The state of a rod of N segments is one array y (13, N): rows 0-2 positions, 3-6 quaternions (scalar first; they turn
vectors of the body frame into space), 7-9 velocities, 10-12 angular momenta of whole segments in the body frame.
Momenta, forces and energies are those of the paper times Δs, so that energies are energies, not densities.

All formulas are elementwise in the node. With numba they are compiled and loop over nodes one by one; without it the
same lines work on all nodes at once: an "index" is then a slice (see ``Rod``).
"""

from typing import NamedTuple

import numpy as np
from scipy.spatial.transform import Rotation

try:
    from numba import njit

    # Division by zero is what it is in NumPy.
    compiled, COMPILED = njit(error_model="numpy"), True
except ImportError:

    def compiled(function):
        return function

    COMPILED = False

COMPONENTS = ("shear 1", "shear 2", "extension", "bending 1", "bending 2", "twist")


class Rod(NamedTuple):
    """What does not change: `ds`; mass and principal inertia (3) of a segment; moduli (6) and strains at rest (6) in
    the order of COMPONENTS; joint k is between nodes first[k] and second[k]. Entries of first, second and nodes are
    numbers, or slices: then each loop has one pass."""

    ds: float
    mass: float
    inertia: np.ndarray
    moduli: np.ndarray
    rest: np.ndarray
    first: object
    second: object
    nodes: object


def rod(n, length=20.0 * np.pi, diameter=1.0, density=1.0, young=1.0, poisson=0.3, one_by_one=COMPILED):
    """A straight rod at rest with a circular section (5), (8), in n segments."""
    area, second_moment, shear = np.pi * diameter**2 / 4, np.pi * diameter**4 / 64, young / (2 * (1 + poisson))
    moments, ds = second_moment * np.array([1.0, 1.0, 2.0]), length / n
    if one_by_one:
        first, second, nodes = np.arange(n - 1), np.arange(1, n), np.arange(n)
    else:
        first, second, nodes = (slice(0, n - 1),), (slice(1, n),), (slice(0, n),)
    return Rod(ds, density * area * ds, density * moments * ds,
               np.array([shear * area, shear * area, young * area, *(np.array([young, young, shear]) * moments)]),
               np.array([0.0, 0.0, 1.0, 0.0, 0.0, 0.0]), first, second, nodes)  # fmt: skip


# Places ------------------------------------------------------------------------------------------------------------


def helix(n, ds, radius, rise):
    """y of n segments at rest along r(s) = [R cos κs, R sin κs, Pκs], directors (2); 2πP is the pitch."""
    s, k = (np.arange(n) + 0.5) * ds, 1.0 / np.hypot(radius, rise)
    sin, cos, zero = np.sin(k * s), np.cos(k * s), np.zeros(n)
    d1 = [rise * k * sin, -rise * k * cos, radius * k + zero]
    d2 = [cos, sin, zero]
    d3 = [-radius * k * sin, radius * k * cos, rise * k + zero]
    q = np.roll(Rotation.from_matrix(np.transpose([d1, d2, d3], (2, 1, 0))).as_quat(), 1, axis=1)
    # Of q and -q the one nearer to that of the node before.
    q[1:] *= np.cumprod(np.sign(np.sum(q[1:] * q[:-1], axis=1)))[:, None]
    return np.concatenate([[radius * cos, radius * sin, rise * k * s], q.T, np.zeros((6, n))])


def circle(n, ds):
    """One full circle (2πR = n ds): Ω = [1/R, 0, 0]."""
    return helix(n, ds, n * ds / (2.0 * np.pi), 0.0)


def four_turns(n, ds):
    """Exactly four turns with Ω1 = 4 Ω3. With n ds = 20πd, Ω = [0.388, 0, 0.097]/d: the paper's "[0.4, 0, 0.1]" is
    rounded, for with it this length would have 4.12 turns."""
    k = 8.0 * np.pi / (n * ds)
    return helix(n, ds, 4.0 / (k * np.sqrt(17.0)), 1.0 / (k * np.sqrt(17.0)))


def straight(n, ds):
    """Along z."""
    y = np.zeros((13, n))
    y[2], y[3] = (np.arange(n) + 0.5) * ds, 1.0
    return y


# Strains and energies ----------------------------------------------------------------------------------------------


@compiled
def directors(w, x, y, z):
    """d1, d2, d3 (T1.2)."""
    return (
        (w * w + x * x - y * y - z * z, 2.0 * (x * y + w * z), 2.0 * (x * z - w * y)),
        (2.0 * (y * x - w * z), w * w - x * x + y * y - z * z, 2.0 * (y * z + w * x)),
        (2.0 * (z * x + w * y), 2.0 * (z * y - w * x), w * w - x * x - y * y + z * z),
    )


@compiled
def rotations(w, x, y, z):
    """e1, e2, e3 (T1.3)."""
    return (-x, w, z, -y), (-y, -z, w, x), (-z, y, -x, w)


@compiled
def dot3(a, b):
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@compiled
def dot4(a, b):
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2] + a[3] * b[3]


@compiled
def cross(a, b):
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


@compiled
def combine(c, a):
    """Σ c_i a_i of three vectors in space."""
    return (
        c[0] * a[0][0] + c[1] * a[1][0] + c[2] * a[2][0],
        c[0] * a[0][1] + c[1] * a[1][1] + c[2] * a[2][1],
        c[0] * a[0][2] + c[1] * a[1][2] + c[2] * a[2][2],
    )


@compiled
def joint(rod, y, a, b):
    """|q_a + q_b|, d and e of the mean quaternion (26), Γ and Ω (24), (25) between nodes a and b."""
    w, i, j, k = y[3, a] + y[3, b], y[4, a] + y[4, b], y[5, a] + y[5, b], y[6, a] + y[6, b]
    size = np.sqrt(w * w + i * i + j * j + k * k)
    w, i, j, k = w / size, i / size, j / size, k / size
    d, e = directors(w, i, j, k), rotations(w, i, j, k)
    r = (y[0, b] - y[0, a]) / rod.ds, (y[1, b] - y[1, a]) / rod.ds, (y[2, b] - y[2, a]) / rod.ds
    q = (
        2.0 * (y[3, b] - y[3, a]) / rod.ds,
        2.0 * (y[4, b] - y[4, a]) / rod.ds,
        2.0 * (y[5, b] - y[5, a]) / rod.ds,
        2.0 * (y[6, b] - y[6, a]) / rod.ds,
    )
    gamma = dot3(d[0], r), dot3(d[1], r), dot3(d[2], r)
    omega = dot4(e[0], q), dot4(e[1], q), dot4(e[2], q)
    return size, d, e, gamma, omega


@compiled
def stresses(rod, gamma, omega):
    """F^Γ and F^Ω (3), in the frame of the joint."""
    c, z = rod.moduli, rod.rest
    return (
        (c[0] * (gamma[0] - z[0]), c[1] * (gamma[1] - z[1]), c[2] * (gamma[2] - z[2])),
        (c[3] * (omega[0] - z[3]), c[4] * (omega[1] - z[4]), c[5] * (omega[2] - z[5])),
    )


@compiled
def energies(rod, y):
    """(2, 6): kinetic and potential energy of each of COMPONENTS, (47) and (48) times Δs. Terms n = 0 and n = N of
    (48) are those of free ends: zero."""
    terms = np.zeros((2, 6, y.shape[1]))
    for n in rod.nodes:
        d = directors(y[3, n], y[4, n], y[5, n], y[6, n])
        v = y[7, n], y[8, n], y[9, n]
        terms[0, 0, n] = 0.5 * rod.mass * dot3(d[0], v) ** 2
        terms[0, 1, n] = 0.5 * rod.mass * dot3(d[1], v) ** 2
        terms[0, 2, n] = 0.5 * rod.mass * dot3(d[2], v) ** 2
        terms[0, 3, n] = 0.5 * y[10, n] ** 2 / rod.inertia[0]
        terms[0, 4, n] = 0.5 * y[11, n] ** 2 / rod.inertia[1]
        terms[0, 5, n] = 0.5 * y[12, n] ** 2 / rod.inertia[2]
    for a, b in zip(rod.first, rod.second):  # noqa: B905 (numba knows no strict)
        _, _, _, gamma, omega = joint(rod, y, a, b)
        f, t = stresses(rod, gamma, omega)
        terms[1, 0, a] = 0.5 * rod.ds * f[0] * (gamma[0] - rod.rest[0])
        terms[1, 1, a] = 0.5 * rod.ds * f[1] * (gamma[1] - rod.rest[1])
        terms[1, 2, a] = 0.5 * rod.ds * f[2] * (gamma[2] - rod.rest[2])
        terms[1, 3, a] = 0.5 * rod.ds * t[0] * (omega[0] - rod.rest[3])
        terms[1, 4, a] = 0.5 * rod.ds * t[1] * (omega[1] - rod.rest[4])
        terms[1, 5, a] = 0.5 * rod.ds * t[2] * (omega[2] - rod.rest[5])
    return terms.sum(axis=2)


# Forces ------------------------------------------------------------------------------------------------------------


@compiled
def hamiltonian_forces(rod, y, f):
    """Writes minus the derivatives of the potential energy to f (6, N): force in space (53), torque in the body (56).

    With |q_a + q_b| = 2 q̄ and the joint's g = (Ω×F^Ω)/2q̄ + (Γ×F^Γ)/q̄, the torque (54) in the quaternion basis is
    Σ_i ē_i (±2 F_i^Ω + Δs g_i), + for node a and - for b; its body components are half its products with the node's
    own e. (F_a^Ω of (54) is 2 Σ_i F_i^Ω ē_ia, as l_a is in (39).)
    """
    f[:] = 0.0
    t = np.zeros((4, y.shape[1]))
    for a, b in zip(rod.first, rod.second):  # noqa: B905
        size, d, e, gamma, omega = joint(rod, y, a, b)
        fg, fo = stresses(rod, gamma, omega)
        force = combine(fg, d)
        bend, shear = cross(omega, fo), cross(gamma, fg)
        for k in range(3):
            f[k, a] += force[k]
            f[k, b] -= force[k]
        for k in range(4):
            same = (
                e[0][k] * (bend[0] + 2.0 * shear[0])
                + e[1][k] * (bend[1] + 2.0 * shear[1])
                + e[2][k] * (bend[2] + 2.0 * shear[2])
            ) * (rod.ds / size)
            opposite = 2.0 * (e[0][k] * fo[0] + e[1][k] * fo[1] + e[2][k] * fo[2])
            t[k, a] += same + opposite
            t[k, b] += same - opposite
    for n in rod.nodes:
        e = rotations(y[3, n], y[4, n], y[5, n], y[6, n])
        for i in range(3):
            f[3 + i, n] = 0.5 * (e[i][0] * t[0, n] + e[i][1] * t[1, n] + e[i][2] * t[2, n] + e[i][3] * t[3, n])


@compiled
def difference_forces(rod, y, f):
    """Writes (34), (35) times Δs to f (6, N): the equations of motion discretised, which no energy has."""
    f[:] = 0.0
    # Sums over both joints of a node: couples in space, Γ and F^Γ each in the frame of its joint. Beyond a free end
    # F = 0 (29), and so Γ = Γ⁰.
    t = np.zeros((9, y.shape[1]))
    for k in range(3):
        t[3 + k, 0] = t[3 + k, -1] = rod.rest[k]
    for a, b in zip(rod.first, rod.second):  # noqa: B905
        _, d, _, gamma, omega = joint(rod, y, a, b)
        fg, fo = stresses(rod, gamma, omega)
        force, couple = combine(fg, d), combine(fo, d)
        for k in range(3):
            f[k, a] += force[k]
            f[k, b] -= force[k]
            t[k, a] += couple[k]
            t[k, b] -= couple[k]
            t[3 + k, a] += gamma[k]
            t[3 + k, b] += gamma[k]
            t[6 + k, a] += fg[k]
            t[6 + k, b] += fg[k]
    for n in rod.nodes:
        d = directors(y[3, n], y[4, n], y[5, n], y[6, n])
        arm = cross((t[3, n], t[4, n], t[5, n]), (t[6, n], t[7, n], t[8, n]))
        couple = t[0, n], t[1, n], t[2, n]
        for i in range(3):
            f[3 + i, n] = dot3(d[i], couple) + 0.25 * rod.ds * arm[i]


@compiled
def forces(rod, y, f, hamiltonian):
    if hamiltonian:
        hamiltonian_forces(rod, y, f)
    else:
        difference_forces(rod, y, f)


# Integrators -------------------------------------------------------------------------------------------------------


@compiled
def turn(rod, y, n, i, h):
    """Node n about its body axis i for a time h (66), (67): the momentum along the axis stays."""
    angle = h * y[10 + i, n] / rod.inertia[i]
    c, s = np.cos(0.5 * angle), np.sin(0.5 * angle)
    # All right-hand sides are computed before the first of them is stored.
    w, q1, q2, q3 = y[3, n], y[4, n], y[5, n], y[6, n]
    e = rotations(w, q1, q2, q3)[i]
    y[3, n], y[4, n], y[5, n], y[6, n] = c * w + s * e[0], c * q1 + s * e[1], c * q2 + s * e[2], c * q3 + s * e[3]
    j, k = 10 + (i + 1) % 3, 10 + (i + 2) % 3
    cos, sin = c * c - s * s, 2.0 * s * c
    y[j, n], y[k, n] = cos * y[j, n] + sin * y[k, n], cos * y[k, n] - sin * y[j, n]


@compiled
def drift(rod, y, h):
    """A: (62), and (68) with J = 1."""
    for n in rod.nodes:
        for k in range(3):
            y[k, n] += h * y[7 + k, n]
        turn(rod, y, n, 0, 0.5 * h)
        turn(rod, y, n, 1, 0.5 * h)
        turn(rod, y, n, 2, h)
        turn(rod, y, n, 1, 0.5 * h)
        turn(rod, y, n, 0, 0.5 * h)


@compiled
def split(rod, y, h, steps, hamiltonian):
    """OS: ABA (61), in place."""
    f = np.zeros((6, y.shape[1]))
    for _ in range(steps):
        drift(rod, y, 0.5 * h)
        forces(rod, y, f, hamiltonian)
        for n in rod.nodes:
            for k in range(3):
                y[7 + k, n] += h * f[k, n] / rod.mass
                y[10 + k, n] += h * f[3 + k, n]
        drift(rod, y, 0.5 * h)


@compiled
def rate(rod, y, f, hamiltonian, dy):
    """Writes dy/dt (49)-(52) to dy; f is scratch."""
    forces(rod, y, f, hamiltonian)
    for n in rod.nodes:
        e = rotations(y[3, n], y[4, n], y[5, n], y[6, n])
        l = y[10, n], y[11, n], y[12, n]  # noqa: E741
        omega = l[0] / rod.inertia[0], l[1] / rod.inertia[1], l[2] / rod.inertia[2]
        gyration = cross(l, omega)
        for k in range(3):
            dy[k, n] = y[7 + k, n]
            dy[7 + k, n] = f[k, n] / rod.mass
            dy[10 + k, n] = gyration[k] + f[3 + k, n]
        for k in range(4):
            dy[3 + k, n] = 0.5 * (e[0][k] * omega[0] + e[1][k] * omega[1] + e[2][k] * omega[2])


@compiled
def rescale(y):
    """Quaternions to unit length."""
    size = np.sqrt(y[3] * y[3] + y[4] * y[4] + y[5] * y[5] + y[6] * y[6])
    for k in range(3, 7):
        y[k] = y[k] / size


@compiled
def runge_kutta(rod, y, h, steps, hamiltonian):
    """RK: the classical one of fourth order, in place; quaternions rescaled after each step."""
    f = np.zeros((6, y.shape[1]))
    k1, k2, k3, k4 = np.zeros_like(y), np.zeros_like(y), np.zeros_like(y), np.zeros_like(y)
    for _ in range(steps):
        rate(rod, y, f, hamiltonian, k1)
        rate(rod, y + 0.5 * h * k1, f, hamiltonian, k2)
        rate(rod, y + 0.5 * h * k2, f, hamiltonian, k3)
        rate(rod, y + h * k3, f, hamiltonian, k4)
        y += (h / 6.0) * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
        rescale(y)


@compiled
def implicit(rod, y, h, steps, hamiltonian, trapezoidal, tolerance=0.0):
    """MP, in place: y' = y + h rate((y + y')/2), or, as (57) is printed, y' = y + h (rate(y) + rate(y'))/2;
    quaternions rescaled after each step. Iterated until nothing changes beyond round-off, or by less than a tolerance
    above 0. Returns the number of evaluations of the forces."""
    f = np.zeros((6, y.shape[1]))
    dy, old = np.zeros_like(y), np.zeros_like(y)
    rate(rod, y, f, hamiltonian, dy)
    evaluations = 1
    for _ in range(steps):
        # The midpoint of both rules; of the trapezoidal rule y + h/2 rate(y) is known and y' is sought.
        base = y + 0.5 * h * dy if trapezoidal else y.copy()
        new = base + 0.5 * h * dy
        before = np.inf
        for _ in range(200):
            old[:] = dy
            rate(rod, new, f, hamiltonian, dy)
            evaluations += 1
            change = h * np.abs(dy - old).max()
            new = base + 0.5 * h * dy
            if change < tolerance:
                break
            # Below 1e-12 changes that no longer shrink are round-off.
            if change == 0.0 or (change < 1e-12 and change >= 0.5 * before) or not np.isfinite(change):
                break
            before = change
        y[:] = new if trapezoidal else y + h * dy
        rescale(y)
        if trapezoidal:
            rate(rod, y, f, hamiltonian, dy)
            evaluations += 1
    return evaluations


def evaluations(rod, y, dt, steps, tolerance=0.0):
    """Forces that MPDH evaluates per step, from a state on, each step solved to round-off or to a tolerance."""
    return implicit(rod, y.copy(), dt, steps, True, False, tolerance) / steps


METHODS = ("OSDH", "OSDF", "RKDH", "RKDF", "MPDH", "MPDF", "TRDH", "TRDF")


def advance(rod, y, method, dt, steps):
    """The state after `steps` steps of one of METHODS: OS split, RK Runge-Kutta, MP midpoint, TR the trapezoidal rule
    (57); DH Hamiltonian forces, DF finite differences."""
    y, how, hamiltonian = y.copy(), method[:2], method[2:] == "DH"
    with np.errstate(over="ignore", invalid="ignore"):
        if how == "OS":
            split(rod, y, dt, steps, hamiltonian)
        elif how == "RK":
            runge_kutta(rod, y, dt, steps, hamiltonian)
        else:
            implicit(rod, y, dt, steps, hamiltonian, how == "TR")
    return y
