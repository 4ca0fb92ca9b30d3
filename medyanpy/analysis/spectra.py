"""Fluctuation spectra of patches and vesicles, and the bending modulus and tension fitted to them."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from medyanpy._tools.names import plainly_called
from medyanpy._tools.series import statistical_inefficiency
from medyanpy._tools.validation import number, one_or_many, required_thermal_energy, whole_number
from medyanpy.analysis.estimates import PARTS, Estimate, cuts, jackknife, means_of, warn_of_no_error
from medyanpy.analysis.structure import wave_orders
from medyanpy.analysis.surfaces import Surfaces, vertex_spacing
from medyanpy.errors import ParameterError

__all__ = [
    "PatchSpectrum", "SpectrumFit", "VesicleSpectrum", "discrete_wave_number", "fit_spectrum", "patch_spectrum",
    "vesicle_spectrum",
]  # fmt: skip

_ALONG = 1.5  # Waves shorter than those that are asked for are fitted too, so that they do not look like longer ones.
_COVERED = 1e-3  # How much of the box a patch may leave open, seen along z: roundings of positions in files.
# Conjugate gradients end at this share of the residual that they began with.
_CLOSE = 1e-10
_MOST_ITERATIONS = 200
# Fewer parts than these give no error; and the statistical inefficiencies in each part.
_FEWEST_PARTS = 5
_MEMORIES_IN_PART = 2.0


@dataclass(frozen=True)
class PatchSpectrum:
    r"""⟨\|h_q\|²⟩ of a patch, by wave number.

    Attributes
    ----------
    wave_number : (K,) float array, 1/nm
        Mean of \|q\| over the modes of each bin.
    value, error : (K,) float array, nm²
        Mean over modes and frames, and its standard error; nan where correlations of frames are too long.
    modes : (K,) int array
        Number of wave vectors in each bin; q and -q are one.
    wave_vectors : (M, 2) float array, 1/nm
        Of all modes, in the mean box.
    power : (m, M) float array, nm²
        \|h_q\|² of each mode in each frame.
    area : float, nm²
        Of the frame, LxLy; the mean of all frames.
    spacing : float, nm
        The edge of a regular lattice of triangles of as many vertices on this area.
    """

    wave_number: np.ndarray
    value: np.ndarray
    error: np.ndarray
    modes: np.ndarray
    wave_vectors: np.ndarray
    power: np.ndarray = field(repr=False)
    area: float
    spacing: float

    def _groups(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the wave number of each mode, and how many are averaged in its power."""
        return np.linalg.norm(self.wave_vectors, axis=1), np.ones(len(self.wave_vectors))

    def _rigidity(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the factors of κ and the tension in kT/⟨|h|²⟩, with q² = x."""
        return self.area * x * x, self.area * x


@dataclass(frozen=True)
class VesicleSpectrum:
    r"""⟨\|u_lm\|²⟩ of a vesicle, by degree.

    Attributes
    ----------
    degree : (K,) int array
        l, from 2.
    value, error : (K,) float array, dimensionless
        Mean over the 2 l + 1 orders and frames, and its standard error; nan where correlations are too long.
    power : (m, K) float array, dimensionless
        Mean over the orders in each frame.
    radius : float, nm
        Of a sphere of the same volume; the mean of all frames.
    spacing : float, nm
        The edge of a regular lattice of triangles of as many vertices on the area of the vesicle.
    """

    degree: np.ndarray
    value: np.ndarray
    error: np.ndarray
    power: np.ndarray = field(repr=False)
    radius: float
    spacing: float

    def _groups(self) -> tuple[np.ndarray, np.ndarray]:
        l = self.degree  # noqa: E741 - the symbol of the papers
        return np.sqrt(l * (l + 1.0)) / self.radius, 2.0 * l + 1.0

    def _rigidity(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the factors of κ and the tension in kT/⟨|u|²⟩, with l (l + 1)/R² = x."""
        square = self.radius**2
        return (square * x - 2.0) * square * x, (square * x - 2.0) * square


@dataclass(frozen=True)
class SpectrumFit:
    """Bending modulus and tension fitted to a spectrum.

    Attributes
    ----------
    bending_modulus : Estimate, pN nm
    tension : Estimate, pN/nm
    reduced_tension : Estimate, dimensionless
        Tension over bending modulus: times R² of a vesicle (σ̄), times the area of a patch.
    wave_number, value : (K,) float array, 1/nm; and nm² or dimensionless
        Of the modes that were used, of a vesicle √(l (l + 1))/R; and their fitted spectrum.
    parts : int
        Number of parts into which the frames were cut for the errors.
    """

    bending_modulus: Estimate
    tension: Estimate
    reduced_tension: Estimate
    wave_number: np.ndarray = field(repr=False)
    value: np.ndarray = field(repr=False)
    parts: int


def patch_spectrum(
    source: Any, membrane: Any = None, *, faces: Any = None, box: Any = None, q_max: float | None = None,
    bins: int | None = None,
) -> PatchSpectrum:
    r"""Return the spectrum of height fluctuations of a nearly flat, periodic, rectangular patch in x and y.

    .. math:: h(x, y) = \sum_q h_q\,e^{i q \cdot r}, \qquad
              \langle |h_q|^2 \rangle = \frac{kT}{A\,(\kappa q^4 + \tau q^2)}

    Parameters
    ----------
    source, membrane, faces
        As of `curvatures`; the membrane in Monge's gauge, without overhangs.
    box : (2,) or (3,) float, nm, or one for each frame, optional
        Lx and Ly. That of states and trajectories where none is given.
    q_max : float, 1/nm, > 0, optional
        The largest wave number; a third of π/a where none is given, with the `spacing` a.
    bins : int, >= 1, optional
        Of equal width in \|q\|; a bin for each wave number that there is, where none are given.

    Raises
    ------
    ParameterError, TopologyError
        As of `curvatures`; no box in x and y, a membrane that does not cover it once or closes through it along z, a
        q_max below the longest wave, or beyond 2/3 of π/a.

    Notes
    -----
    In each frame, the :math:`h_q` are the least-squares fit of the waves to the heights of the vertices, weighted with
    their areas seen from above, of waves up to 1.5 times as many. On a regular lattice this is the discrete Fourier
    transform; on others the sum over vertices takes long waves for short ones. Shorter waves are taken for noise of the
    heights, which makes less than 0.2 %. Errors are those of `average` for the mean over the modes of a bin in each
    frame. Source: W. Helfrich, R.-M. Servuss, Nuovo Cimento D 3, 137 (1984).
    """
    what = "patch_spectrum"
    surfaces = Surfaces(what, source, membrane, faces, box)
    for cell in surfaces.boxes:
        if cell is None or not cell[:2].all():
            raise ParameterError(f"{what}: give box=(Lx, Ly), the periodic frame of the patch: frames have none")
    boxes = np.array(surfaces.boxes)[:, :2]
    lengths = boxes.mean(axis=0)
    area, n = float(np.mean(boxes.prod(axis=1))), len(surfaces.rows)
    spacing = vertex_spacing(area, n)
    shortest = np.pi / spacing
    longest = shortest / 3.0 if q_max is None else number(f"{what}: q_max", q_max, above=0.0)
    if longest * (1.0 + 1e-9) < 2.0 * np.pi / lengths.max() or longest > 2.0 / 3.0 * shortest:
        raise ParameterError(
            f"{what}: q_max = {longest:g} but must be from 2π/L = {2.0 * np.pi / lengths.max():g}, the longest wave in "
            f"the box, to 2/3 π/a = {2.0 / 3.0 * shortest:g}, with the distance a of the vertices"
        )
    orders = wave_orders(lengths, _ALONG * longest)
    q = 2.0 * np.pi * orders / lengths
    size = np.linalg.norm(q, axis=1)
    own = size <= longest * (1.0 + 1e-9)
    power = np.empty((len(surfaces), int(own.sum())))
    for k, patch in enumerate(surfaces):
        if patch.closes_through[2]:
            raise ParameterError(f"{what}: the membrane closes through the box along z, so that it has no height")
        covered = abs(float(patch.area_vectors[:, 2].sum())) / boxes[k].prod()
        if abs(covered - 1.0) > _COVERED:
            raise ParameterError(
                f"{what}: seen along z, the membrane of frame {k} covers {covered:.3g} of its box but must cover it "
                "once: it is closed (vesicle_spectrum is for vesicles), has borders, or the box is another"
            )
        z, weight = patch.whole[:, 2], patch.vertex_vectors()[:, 2]
        weight = np.maximum(weight * np.sign(weight.sum()), 0.0)  # Areas seen from above, 0 below overhangs.
        found = _fitted(_Waves(patch.x[:, :2] / boxes[k], orders), weight, z - z.mean())
        cosines, sines = found[1 : 1 + len(q)][own], found[1 + len(q) :][own]
        # h cos + h' sin is h_q e^iqr and its conjugate with 2 h_q = h - i h'.
        power[k] = 0.25 * (cosines**2 + sines**2)
    q, size = q[own], size[own]
    if bins is None:
        _, label = np.unique(np.round(size / size.min(), 6), return_inverse=True)
    else:
        width = longest / whole_number(f"{what}: bins", bins, at_least=1)
        _, label = np.unique(np.minimum((size / width).astype(int), int(bins) - 1), return_inverse=True)
    modes = np.bincount(label)
    binned = np.array([power[:, label == k].mean(axis=1) for k in range(len(modes))]).T
    value, error = means_of(binned)
    return PatchSpectrum(np.bincount(label, size) / modes, value, error, modes, q, power, area, spacing)


def vesicle_spectrum(
    source: Any, membrane: Any = None, *, faces: Any = None, box: Any = None, l_max: int = 8
) -> VesicleSpectrum:
    r"""Return the spectrum of fluctuations of a nearly spherical vesicle in spherical harmonics.

    .. math:: r(\theta, \varphi) = R\,\Bigl(1 + \sum_{lm} u_{lm} Y_{lm}(\theta, \varphi)\Bigr), \qquad
              \langle |u_{lm}|^2 \rangle = \frac{kT}{(l + 2)(l - 1)\,[\kappa\,l(l + 1) + \sigma R^2]}

    Distances r are from the middle of the volume, and R is the radius of a sphere of the same volume. l = 0 is the
    volume and l = 1 a translation: they are fitted and left out.

    Parameters
    ----------
    source, membrane, faces, box
        As of `curvatures`; a closed membrane.
    l_max : int, >= 2
        The largest degree. Degrees up to half as large again are fitted too.

    Raises
    ------
    ParameterError, TopologyError
        As of `curvatures`; a membrane with borders, or one that closes through the box, an l_max for which there are
        too few vertices.

    Notes
    -----
    Coefficients are the least-squares fit of real spherical harmonics, orthonormal over the sphere, to :math:`r/R - 1`
    at the vertices, weighted with the solid angles around them. Source: S. T. Milner, S. A. Safran, Phys. Rev. A 36,
    4371 (1987).
    """
    what = "vesicle_spectrum"
    surfaces = Surfaces(what, source, membrane, faces, box)
    top = whole_number(f"{what}: l_max", l_max, at_least=2)
    along, n = int(np.ceil(_ALONG * top)), len(surfaces.rows)
    if 3 * (along + 1) ** 2 > n:
        most = int((np.sqrt(n / 3.0) - 1.0) / _ALONG)
        raise ParameterError(f"{what}: l_max = {top} but must be at most {most} with {n} vertices")
    power, radii, areas = np.empty((len(surfaces), top - 1)), [], []
    for k, patch in enumerate(surfaces):
        patch.expect_closed()
        if k == 0:
            patch.expect_one_side()
        radius = (3.0 * abs(patch.volume) / (4.0 * np.pi)) ** (1.0 / 3.0)
        off = patch.whole - patch.centroid
        r = np.linalg.norm(off, axis=1)
        directions = off / r[:, None]
        weight = np.abs(np.einsum("vi,vi->v", patch.vertex_vectors(), directions)) / r**2
        found = _fitted(_Columns(harmonics(directions, along)), weight, r / radius - 1.0)
        # The orders of l follow each other from l².
        power[k] = [np.mean(found[degree**2 : (degree + 1) ** 2] ** 2) for degree in range(2, top + 1)]
        radii.append(radius)
        areas.append(patch.face_areas.sum())
    value, error = means_of(power)
    spacing = vertex_spacing(float(np.mean(areas)), n)
    return VesicleSpectrum(np.arange(2, top + 1), value, error, power, float(np.mean(radii)), spacing)


@plainly_called
def fit_spectrum(
    spectrum: PatchSpectrum | VesicleSpectrum, *, kT: float | None = None, temperature: float | None = None,
    q_max: float | None = None, tension: float | None = None, discretization: bool = True, softening: bool = False,
) -> SpectrumFit:
    r"""Fit bending modulus and tension to the spectrum of a membrane.

    Parameters
    ----------
    spectrum : PatchSpectrum or VesicleSpectrum
    kT, temperature : float, pN nm or kelvin, > 0
        One of them.
    q_max : float, 1/nm, > 0, optional
        Longer waves alone are used (of a vesicle √(l (l + 1))/R); all of the spectrum where none is given.
    tension : float, pN/nm, optional
        A known tension; then the bending modulus alone is fitted.
    discretization : bool
        Replace q² by its value on a lattice of triangles, see Notes.
    softening : bool
        Fit the κ of :math:`\kappa(q) = \kappa - \frac{3 kT}{4\pi} \ln\frac{\pi/a}{q}`, which is that of the shortest
        waves, in place of a κ for all waves.

    Raises
    ------
    ParameterError
        Not a spectrum, or one with fewer wave numbers than fitted parameters; a spectrum that no bending modulus and
        tension reproduce.

    Notes
    -----
    κ and τ are the most likely ones of Gaussian modes, each frame counting as 1/g with the `statistical_inefficiency`
    g of its modes (Whittle). Errors are those of the jackknife over parts of the frames, 20 at most, each longer than
    two inefficiencies of the slowest mode; nan where there would be fewer than 5.

    On a lattice of triangles bending and tension have `discrete_wave_number` for q, which makes κ look 13 % smaller at
    q = π/3a: right to 0.5 % there where vertices are up to 0.15 a off their places, to 2 % at 0.3 a. For a vesicle
    l (l + 1)/R² is taken for q², which leaves an error of κ of about 1.5 (a/R)², upwards. Source: P. Whittle, J. Roy.
    Statist. Soc. B 15, 125 (1953). W. Helfrich, J. Phys. 46, 1263 (1985), and L. Peliti, S. Leibler, Phys. Rev. Lett.
    54, 1690 (1985): κ(q).
    """
    what = "fit_spectrum"
    if not isinstance(spectrum, PatchSpectrum | VesicleSpectrum):
        raise ParameterError(f"{what}: {spectrum!r} is not a PatchSpectrum or VesicleSpectrum")
    energy = required_thermal_energy(what, temperature, kT)
    longest = np.inf if q_max is None else number(f"{what}: q_max", q_max, above=0.0)
    waves, weights = spectrum._groups()
    use = waves <= longest * (1.0 + 1e-9)
    q, power, weight = waves[use], spectrum.power[:, use], weights[use]
    known = None if tension is None else number(f"{what}: tension", tension)
    needed = 2 if known is None else 1
    if len(np.unique(q.round(12))) < needed:
        raise ParameterError(f"{what}: {len(q)} modes are up to q_max, and {needed} wave numbers are needed")
    if not (power.mean(axis=0) > 0.0).all():
        raise ParameterError(f"{what}: a mode does not move, so that nothing bends this membrane")
    x = (discrete_wave_number(q, spectrum.spacing) if discretization else q) ** 2
    bends, pulls = (one / energy for one in spectrum._rigidity(x))
    offset = np.zeros(len(q))
    if softening:
        offset -= 3.0 * energy / (4.0 * np.pi) * np.log(np.pi / spectrum.spacing / q) * bends
    if known is not None:
        offset += known * pulls
    terms = np.stack([bends, pulls], axis=1)[:, :needed]
    # The memory of a single frame is that of one sample.
    memory = np.array([statistical_inefficiency(one) if len(one) > 1 else 1.0 for one in _pooled(q, power)])
    weight = weight / memory
    n = len(power)
    parts = int(min(PARTS, n / (_MEMORIES_IN_PART * memory.max())))
    parts = parts if parts >= _FEWEST_PARTS else 1
    blocks = cuts(n, parts)
    sums = np.array([power[i:j].sum(axis=0) for i, j in blocks])
    counts = np.array([[j - i] for i, j in blocks], float)
    scale = spectrum.radius**2 if isinstance(spectrum, VesicleSpectrum) else spectrum.area

    def estimate(total: np.ndarray, count: np.ndarray) -> np.ndarray:
        """Return κ, tension and their ratio, (..., 3)."""
        means = np.atleast_2d(total / count)
        each = np.array([_most_likely(what, mean, weight, terms, offset) for mean in means])
        if known is not None:
            each = np.column_stack([each, np.full(len(each), known)])
        out = np.column_stack([each, scale * each[:, 1] / each[:, 0]])
        return out[0] if np.ndim(total) == 1 else out

    if parts > 1:
        value, error = jackknife(sums, counts, estimate)
    else:
        value, error = estimate(sums[0], counts[0]), np.full(3, np.nan)
    if np.isnan(error[0]):
        are = f"the spectrum is of {parts} part{'s' * (parts != 1)} that do not depend on each other"
        warn_of_no_error(what, value[0], f"{are}: the run is too short for its slowest mode")
    modulus, pull, ratio = (Estimate(float(a), float(b)) for a, b in zip(value, error, strict=True))
    fitted = 1.0 / (terms @ value[:needed] + offset)
    return SpectrumFit(modulus, pull, ratio, q, fitted, parts)


def discrete_wave_number(q: Any, spacing: float) -> Any:
    r"""Return the effective wave number of q on a lattice of triangles, which replaces q in energies.

    .. math:: \hat q = \frac{2}{a} \sqrt{1 - J_0(q a)}

    Parameters
    ----------
    q : float or (k,) float array, 1/nm, >= 0
    spacing : float, nm, > 0
        The edge a of the lattice.

    Returns
    -------
    float or array, 1/nm
        The mean over directions, up to :math:`(qa)^4`, of :math:`\frac{4}{3 a^2} \sum_{i=1}^3 (1 - \cos q \cdot e_i)`,
        the symbol of the lattice with edges :math:`e_i`.

    Examples
    --------
    >>> import medyanpy as mp
    >>> float(mp.analysis.discrete_wave_number(1.0, spacing=0.1).round(6))
    0.999688
    """
    from scipy import special

    a = number("discrete_wave_number: spacing", spacing, above=0.0)
    waves = one_or_many("discrete_wave_number: q", q)
    found = 2.0 / a * np.sqrt(1.0 - special.j0(waves * a))
    return found if np.ndim(q) else found[0]


class _Columns:
    """Functions by their values (V, B) at vertices."""

    def __init__(self, values: np.ndarray) -> None:
        self._values = values
        self.squares: np.ndarray = np.mean(values**2, axis=0)  #: Mean squares of the functions.

    def sum(self, coefficients: np.ndarray) -> np.ndarray:
        """Sum all functions with coefficients (B,) at vertices, (V,)."""
        return np.asarray(self._values @ coefficients)

    def onto(self, values: np.ndarray) -> np.ndarray:
        """Sum over vertices values (V,) times each function, (B,)."""
        return np.asarray(self._values.T @ values)


class _Waves:
    """Functions 1, cosines and sines at places (V, 2) in units of the box, of whole numbers of waves (M, 2); as
    `_Columns`, by products of waves along x and along y, which are few."""

    def __init__(self, places: np.ndarray, orders: np.ndarray) -> None:
        nx, ny = np.abs(orders).max(axis=0).tolist()
        self._at = orders[:, 0], orders[:, 1] + ny
        whole = np.arange(nx + 1), np.arange(-ny, ny + 1)
        self._x, self._y = (np.exp(2j * np.pi * np.outer(x, k)) for x, k in zip(places.T, whole, strict=True))
        self.squares: np.ndarray = np.concatenate([[1.0], np.full(2 * len(orders), 0.5)])

    def sum(self, coefficients: np.ndarray) -> np.ndarray:
        m = (len(coefficients) - 1) // 2
        table = np.zeros((self._x.shape[1], self._y.shape[1]), complex)
        table[self._at] = coefficients[1 : 1 + m] - 1j * coefficients[1 + m :]
        return np.asarray(coefficients[0] + np.einsum("vi,vi->v", self._x, self._y @ table.T).real)

    def onto(self, values: np.ndarray) -> np.ndarray:
        table = (self._x.T @ (values[:, None] * self._y))[self._at]
        return np.concatenate([[values.sum()], table.real, table.imag])


def harmonics(directions: np.ndarray, l_max: int) -> np.ndarray:
    """Return real spherical harmonics in unit directions, (V, (l_max + 1)²), orthonormal; order m of degree l is in
    column l² + l + m."""
    x, y, z = directions.T
    planar, azimuth = np.hypot(x, y), np.arctan2(y, x)
    out = np.empty((len(directions), (l_max + 1) ** 2))
    diagonal = np.full(len(directions), np.sqrt(0.25 / np.pi))
    for m in range(l_max + 1):
        if m:
            diagonal = diagonal * planar * np.sqrt((2 * m + 1) / (2 * m))
        below, here = np.zeros_like(diagonal), diagonal
        cosine, sine = np.sqrt(2.0) * np.cos(m * azimuth), np.sqrt(2.0) * np.sin(m * azimuth)
        for l in range(m, l_max + 1):  # noqa: E741 - the symbol of the papers
            if l > m:
                factor = np.sqrt((4 * l * l - 1) / (l * l - m * m))
                before = np.sqrt(((l - 1) ** 2 - m * m) / (4 * (l - 1) ** 2 - 1))
                below, here = here, factor * (z * here - before * below)
            if m:
                out[:, l * l + l + m], out[:, l * l + l - m] = here * cosine, here * sine
            else:
                out[:, l * l + l] = here
    return out


def _fitted(basis: _Columns | _Waves, weight: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Fit coefficients (B,) to values (V,) in least squares by conjugate gradients: with these weights, functions are
    nearly orthogonal."""
    scale = 1.0 / (weight.sum() * basis.squares)
    out = np.zeros(len(scale))
    rest = basis.onto(weight * values)
    ahead = scale * rest
    direction, size = ahead, float(rest @ ahead)
    begin = size
    for _ in range(_MOST_ITERATIONS):
        if size <= _CLOSE**2 * begin:
            break
        pushed = basis.onto(weight * basis.sum(direction))
        step = size / float(direction @ pushed)
        out = out + step * direction
        rest = rest - step * pushed
        ahead = scale * rest
        last, size = size, float(rest @ ahead)
        direction = ahead + size / last * direction
    return np.asarray(out)


def _pooled(q: np.ndarray, power: np.ndarray) -> list[np.ndarray]:
    """Return for each mode the mean series of all modes of its wave number, which have one correlation time."""
    _, label = np.unique(np.round(q / q.min(), 6), return_inverse=True)
    pools = [power[:, label == k].mean(axis=1) for k in range(label.max() + 1)]
    return [pools[k] for k in label]


def _most_likely(what: str, mean: np.ndarray, weight: np.ndarray, terms: np.ndarray, offset: np.ndarray) -> np.ndarray:
    """Find the parameters (p,) that minimize Σ w [P g - ln g], g = terms . parameters + offset > 0, by Newton's
    method."""

    def cost(at: np.ndarray) -> float:
        g = terms @ at + offset
        return float(weight @ (mean * g - np.log(g))) if (g > 0.0).all() else np.inf

    # Start where kT/S is as measured, mode by mode, in least squares; if there is no such place, from κ alone.
    size = weight * mean**2
    normal = terms.T @ (size[:, None] * terms)
    at = np.linalg.solve(normal, terms.T @ (size * (1.0 / mean - offset)))
    if not np.isfinite(cost(at)):
        at = np.zeros(terms.shape[1])
        # So large that all are positive, and that the whole power is right.
        at[0] = max(float((weight @ np.ones(len(mean))) / (weight @ (mean * terms[:, 0]))), 0.0)
        at[0] = max(at[0], 1.01 * float((-offset / terms[:, 0]).max()))
    value = cost(at)
    for _ in range(100):
        g = terms @ at + offset
        slope = terms.T @ (weight * (mean - 1.0 / g))
        curve = terms.T @ ((weight / g**2)[:, None] * terms)
        step = np.linalg.solve(curve, slope)
        share = 1.0
        while share > 1e-12 and not cost(at - share * step) <= value:
            share *= 0.5
        at = at - share * step
        last, value = value, cost(at)
        if float(slope @ step) < 1e-20 * weight.sum() or last - value == 0.0:
            break
    if not np.isfinite(value):
        raise ParameterError(f"{what}: no bending modulus and tension make such a spectrum")
    return np.asarray(at)
