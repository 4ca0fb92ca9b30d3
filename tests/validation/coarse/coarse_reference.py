"""The methods of Tao and Owhadi in plain NumPy, with dense matrices, and pendula to try them on.

Written from the paper alone: nothing of the package is used, so that it can be compared with this. Numbers in brackets
are those of the paper's equations. Positions are vectors of d components; `scale` is βh² throughout.

Pendula hang: y points up and the potential is +g y, with θ = 0 below. The paper prints -g y with y = -L cos θ, a slip
of the sign (docs/figures/001.md).
"""

from dataclasses import dataclass

import numpy as np
from scipy.integrate import solve_ivp

# Newton's method has converged where a step is below this part of the positions, and failed after so many.
ROUND_OFF = 1e-13
ITERATIONS = 50


class NoSolutionError(ArithmeticError):
    """Equations of a step that have none, or none that Newton's method finds."""


# Potentials --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pendula:
    """n bobs of mass 1 in the plane, the first hung up at the origin, each from the one before; gravity is 1.

    All constraints are g_b = ½ qᵀG_b q - ℓ_b² = 0 with constant matrices G_b, of links: |q_b - q_(b-1)|² = 2 ½ qᵀG_b q.
    """

    lengths: np.ndarray

    def __post_init__(self):
        n = len(self.lengths)
        forms = np.zeros((n, n, 2, n, 2))
        for b in range(n):
            for c in range(2):
                forms[b, b, c, b, c] = 2.0
                if b:
                    forms[b, b - 1, c, b - 1, c] = 2.0
                    forms[b, b, c, b - 1, c] = forms[b, b - 1, c, b, c] = -2.0
        object.__setattr__(self, "forms", forms.reshape(n, 2 * n, 2 * n))
        object.__setattr__(self, "gravity", np.tile([0.0, -1.0], n))

    def constraints(self, q):
        """(n,) g"""
        return 0.5 * np.einsum("bij,i,j->b", self.forms, q, q) - self.lengths**2

    def jacobian(self, q):
        """(n, 2n) derivatives of g"""
        return self.forms @ q

    def penalised(self, omega):
        """The potential of (7): gravity and ½ω²|g|²."""
        return Penalised(self, omega)

    def multipliers(self, q, v):
        """(n,) λ where positions and velocities of the constrained motion are these, and -λᵀ∇g the forces of the links
        (the λ of (6) has the other sign): the second derivative of g in time is zero."""
        J = self.jacobian(q)
        return np.linalg.solve(J @ J.T, J @ self.gravity + np.einsum("bij,i,j->b", self.forms, v, v))

    def multipliers_of_steps(self, q, h):
        """(k - 2, n) λ with which SHAKE (or any path of k places) goes from each place to the next:
        q₊ - 2q + q₋ = h² (gravity - λᵀ∇g)."""
        second = self.gravity - (q[2:] - 2.0 * q[1:-1] + q[:-2]) / h**2
        return np.array([np.linalg.lstsq(self.jacobian(x).T, s, rcond=None)[0]
                         for x, s in zip(q[1:-1], second, strict=True)])  # fmt: skip

    def positions(self, angles):
        """(k, 2n) of (k, n) angles from the vertical."""
        steps = self.lengths[:, None] * np.stack([np.sin(angles), -np.cos(angles)], axis=-1)
        return np.cumsum(steps, axis=-2).reshape(*angles.shape[:-1], -1)

    def angles(self, q):
        """(n,) of (2n,) positions."""
        steps = np.diff(q.reshape(-1, 2), axis=0, prepend=0.0)
        return np.arctan2(steps[:, 0], -steps[:, 1])

    def exact(self, q, times):
        """(k, 2n) positions and velocities of the constrained motion from rest at q: Lagrange's equations in angles,
        with the masses (23), where all bobs below a link go along with it; by Runge-Kutta of order 8, to 1e-13."""
        n = len(self.lengths)
        below = n - np.maximum.outer(np.arange(n), np.arange(n))
        coupling, weight = below * np.outer(self.lengths, self.lengths), np.diag(below) * self.lengths

        def rates(_, z):
            between = np.subtract.outer(z[:n], z[:n])
            force = -(coupling * np.sin(between)) @ z[n:] ** 2 - weight * np.sin(z[:n])
            return np.concatenate([z[n:], np.linalg.solve(coupling * np.cos(between), force)])

        found = solve_ivp(rates, (0.0, times[-1]), np.concatenate([self.angles(q), np.zeros(n)]), "DOP853", times,
                          rtol=1e-13, atol=1e-13)  # fmt: skip
        angles, turns = found.y[:n].T, found.y[n:].T
        speeds = (self.lengths * turns)[..., None] * np.stack([np.cos(angles), np.sin(angles)], axis=-1)
        return self.positions(angles), np.cumsum(speeds, axis=-2).reshape(len(times), -1)


@dataclass(frozen=True)
class Penalised:
    """V = gravity + ½ω²|g|² with its derivatives; masses are 1. Any object with these five can take its place."""

    pendula: Pendula
    omega: float

    @property
    def mass(self):
        return np.ones(2 * len(self.pendula.lengths))

    def energy(self, q):
        return -self.pendula.gravity @ q + 0.5 * self.omega**2 * np.sum(self.pendula.constraints(q) ** 2)

    def gradient(self, q):
        return -self.pendula.gravity + self.omega**2 * self.pendula.jacobian(q).T @ self.pendula.constraints(q)

    def hessian(self, q):
        J = self.pendula.jacobian(q)
        return self.omega**2 * (J.T @ J + np.tensordot(self.pendula.constraints(q), self.pendula.forms, 1))

    def third(self, q, a):
        """a·V'''·a, a vector."""
        J, curved = self.pendula.jacobian(q), self.pendula.forms @ a
        return self.omega**2 * (2.0 * curved.T @ (J @ a) + J.T @ (curved @ a))


# Equations of a step -----------------------------------------------------------------------------------------------


def solve(matrix, right):
    try:
        return np.linalg.solve(matrix, right)
    except np.linalg.LinAlgError:
        raise NoSolutionError("singular equations") from None


def stationary(potential, x, scale, start):
    """q = x + scale a(q) with a = -M⁻¹V', by Newton's method: what all of push-forward Newmark, Newmark's own method
    and the implicit midpoint rule solve."""
    q = start
    for _ in range(ITERATIONS):
        residual = potential.mass * (q - x) + scale * potential.gradient(q)
        step = -solve(np.diag(potential.mass) + scale * potential.hessian(q), residual)
        q = q + step
        size = np.abs(step).max()
        if not np.isfinite(size):
            break
        if size <= ROUND_OFF * max(1.0, np.abs(q).max()):
            return q
    raise NoSolutionError("Newton's method does not converge")


def explicit(potential, scale):
    """A kick by the forces."""
    del scale
    return lambda x: (-potential.gradient(x) / potential.mass, x)


def simplified(potential, scale):
    """(18)"""

    def kick(x):
        a = solve(np.diag(potential.mass) + scale * potential.hessian(x), -potential.gradient(x))
        return a, x + scale * a

    return kick


def zhang_skeel(potential, scale):
    """(3)"""
    first = simplified(potential, scale)

    def kick(x):
        a, q = first(x)
        return a - 0.5 * scale**2 * potential.third(x, a) / potential.mass, q

    return kick


def push_forward_newmark(potential, scale):
    """(14)"""

    def kick(x):
        q = stationary(potential, x, scale, x)
        return -potential.gradient(q) / potential.mass, q

    return kick


# Paths -------------------------------------------------------------------------------------------------------------
# (k, d) positions, velocities, and, of kicks, physical positions q; the start is the first row.


def verlet(kick, x, v, h, steps):
    """Lines 1 and 2 of (3), (14), (18)."""
    f, q = kick(x)
    rows = [(x, v, q)]
    for _ in range(steps):
        x = x + h * v + 0.5 * h * h * f
        before, (f, q) = f, kick(x)
        v = v + 0.5 * h * (before + f)
        rows.append((x, v, q))
    return tuple(np.array(part) for part in zip(*rows, strict=True))


def variational_euler(potential, q, v, h, steps):
    """Kick, then flight: order 1, symplectic."""
    rows = [(q, v)]
    for _ in range(steps):
        v = v - h * potential.gradient(q) / potential.mass
        q = q + h * v
        rows.append((q, v))
    return tuple(np.array(part) for part in zip(*rows, strict=True))


def newmark(potential, q, v, h, steps, beta, solver="full"):
    """(12) with γ = ½.

    "full": solved to round-off. "one": one iteration of Newton's method from where the last step ended, and the force
    where that leads to. "linear": the same, and the acceleration too is that of the linear equations.
    """
    scale = beta * h * h
    a = -potential.gradient(q) / potential.mass
    rows = [(q, v)]
    for _ in range(steps):
        predicted = q + h * v + (0.5 - beta) * h * h * a
        if solver == "full":
            q = stationary(potential, predicted, scale, q)
        else:
            matrix = np.diag(potential.mass) + scale * potential.hessian(q)
            residual = potential.mass * (q - predicted) + scale * potential.gradient(q)
            q = q - solve(matrix, residual)
        new = (q - predicted) / scale if solver == "linear" else -potential.gradient(q) / potential.mass
        if not np.isfinite(new).all():
            raise NoSolutionError("numbers are not finite")
        v = v + 0.5 * h * (a + new)
        a = new
        rows.append((q, v))
    return tuple(np.array(part) for part in zip(*rows, strict=True))


def midpoint(potential, q, v, h, steps):
    """The implicit midpoint rule."""
    rows = [(q, v)]
    for _ in range(steps):
        middle = stationary(potential, q + 0.5 * h * v, 0.25 * h * h, q)
        v = v - h * potential.gradient(middle) / potential.mass
        q = 2.0 * middle - q
        rows.append((q, v))
    return tuple(np.array(part) for part in zip(*rows, strict=True))


def shake(pendula, q, v, h, steps):
    """Velocity Verlet with constraints, held to round-off by Newton's method; velocities tangent at the end."""
    rows = [(q, v)]
    for _ in range(steps):
        J = pendula.jacobian(q)
        half = v + 0.5 * h * pendula.gravity
        new = q + h * half
        for _ in range(ITERATIONS):
            g = pendula.constraints(new)
            # As far as places have digits.
            if np.abs(g).max() <= ROUND_OFF * np.max(pendula.lengths) * np.abs(new).max():
                break
            new = new - J.T @ solve(pendula.jacobian(new) @ J.T, g)
        else:
            raise NoSolutionError("constraints do not converge")
        v = (new - q) / h + 0.5 * h * pendula.gravity
        q, J = new, pendula.jacobian(new)
        v = v - J.T @ solve(J @ J.T, J @ v)
        rows.append((q, v))
    return tuple(np.array(part) for part in zip(*rows, strict=True))
