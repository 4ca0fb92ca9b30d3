"""Points that are held to a moving mesh by local corrections: what the page on BAGOGAB calls a future direction.

A point has a velocity of its own in space, and inertia there. It is on the mesh where g = n·(r - R1) = 0, with the unit
normal n of its triangle. A correction of one point gives it the impulse -J n, and its three vertices λ_i J n. It spoils
the corrections of all points on triangles beside; sweeps go through all points, again and again.

`Riders` are the points of BAGOGAB in the same program: their energy knows velocities along the mesh alone, A moves
vertices, and G flies points over the frozen mesh with recoil. Nothing has units.

Many copies of a mesh are run at once. With c copies, n vertices and p points arrays are (c, n, 3) and (c, p, ...).
"""

import numpy as np

# Edges that a point may cross in one flight.
MOST = 200


def _dot(a, b):
    return np.einsum("...k,...k->...", a, b)


class Riders:
    """Copies of a mesh of springs with points, by B, A, G and O of BAGOGAB.

    Takes a mesh (medyanpy.mesh.TriangleMesh), how many copies, the triangles (p,) and weights (p, 3) of points at the
    start, of all or of each copy, masses M of vertices and m of points, the stiffness of edges, friction over mass, kT,
    and a seed.
    """

    def __init__(self, mesh, copies, triangles, weights, *, M=1.0, m=1.0, stiffness=20.0, rate=1.0, kT=1.0, seed=1):
        self.faces, self.edges = np.asarray(mesh.faces), np.asarray(mesh.edges)
        self.M, self.m, self.stiffness, self.rate, self.kT = M, m, stiffness, rate, kT
        self.R = np.repeat(np.asarray(mesh.vertices, float)[None], copies, axis=0)
        self.rest = np.linalg.norm(np.diff(self.R[0][self.edges], axis=1)[:, 0], axis=1)
        self.face = np.array(np.broadcast_to(triangles, (copies, np.shape(triangles)[-1])))
        self.weight = np.array(np.broadcast_to(weights, (*self.face.shape, 3)), float)
        self.rng = np.random.default_rng(seed)
        #: 1 at the start of each edge, -1 at its end.
        self.ends = np.zeros((len(self.R[0]), len(self.edges)))
        for k, sign in ((0, 1.0), (1, -1.0)):
            self.ends[self.edges[:, k], np.arange(len(self.edges))] = sign
        self.V, self.v = np.zeros_like(self.R), np.zeros((*self.face.shape, 3))
        self.each = np.arange(copies)
        # The triangle over the edge opposite each corner, and its corner there; -1 at borders.
        beside = {(a, b): (f, i) for f, (u, v, w) in enumerate(self.faces.tolist())
                  for i, (a, b) in enumerate(((v, w), (w, u), (u, v)))}  # fmt: skip
        self.over = np.array([[beside.get((face[(i + 2) % 3], face[(i + 1) % 3]), (-1, i)) for i in range(3)]
                              for face in self.faces.tolist()])  # fmt: skip

    # What there is ----------------------------------------------------------------------------------------------

    def corners(self, p=slice(None)):
        """(c, 3, 3) of point p, or (c, p, 3, 3) of all."""
        faces = self.faces[self.face[:, p]]
        return self.R[self.each.reshape(-1, *[1] * (faces.ndim - 1)), faces]

    def places(self):
        return _dot(self.weight[..., None, :], np.swapaxes(self.corners(), -1, -2))

    def normals(self):
        x = self.corners()
        n = np.cross(x[..., 1, :] - x[..., 0, :], x[..., 2, :] - x[..., 0, :])
        return n / np.linalg.norm(n, axis=-1)[..., None]

    def areas(self):
        """(c, f) of all triangles."""
        x = self.R[:, self.faces]
        return 0.5 * np.linalg.norm(np.cross(x[:, :, 1] - x[:, :, 0], x[:, :, 2] - x[:, :, 0]), axis=-1)

    def _stretch(self):
        along = self.R[:, self.edges[:, 1]] - self.R[:, self.edges[:, 0]]
        length = np.linalg.norm(along, axis=-1)
        return along / length[..., None], length - self.rest

    def potential(self):
        return 0.5 * self.stiffness * (self._stretch()[1] ** 2).sum(axis=1)

    def kinetic(self):
        return 0.5 * self.M * (self.V**2).sum(axis=(1, 2)) + 0.5 * self.m * (self.v**2).sum(axis=(1, 2))

    def energy(self):
        return self.potential() + self.kinetic()

    def momentum(self):
        return self.M * self.V.sum(axis=1)

    def spin(self):
        return self.M * np.cross(self.R, self.V).sum(axis=1)

    # Letters ----------------------------------------------------------------------------------------------------

    def hold(self):
        """Keep velocities as they have to be: along the mesh."""
        n = self.normals()
        self.v -= _dot(n, self.v)[..., None] * n

    def heat(self):
        """Velocities of the temperature."""
        self.V = self.rng.normal(0.0, np.sqrt(self.kT / self.M), self.V.shape)
        self.v = self.rng.normal(0.0, np.sqrt(self.kT / self.m), self.v.shape)
        self.hold()

    def kick(self, h):
        along, stretch = self._stretch()
        self.V += self.ends @ (h / self.M * self.stiffness * stretch[..., None] * along)

    def thermostat(self, h):
        c = np.exp(-self.rate * h)
        for v, mass in ((self.V, self.M), (self.v, self.m)):
            v *= c
            v += self.rng.normal(0.0, np.sqrt(self.kT / mass * (1.0 - c * c)), v.shape)
        self.hold()

    def drift(self, h):
        """A, and G: vertices fly with λ and p_λ = m Aᵀv as they are, and then points with vertices as they are."""
        x = self.corners()
        p = [_dot(x[..., i, :] - x[..., 0, :], self.v) for i in (1, 2)]
        self.R += h * self.V
        x = self.corners()
        a, b = (x[..., i, :] - x[..., 0, :] for i in (1, 2))
        aa, ab, bb = _dot(a, a), _dot(a, b), _dot(b, b)
        scale = 1.0 / (aa * bb - ab * ab)
        self.v = (scale * (bb * p[0] - ab * p[1]))[..., None] * a + (scale * (aa * p[1] - ab * p[0]))[..., None] * b
        for q in range(self.face.shape[1]):
            self._fly(q, h * self.v[:, q])

    def step(self, h, steps=1, thermostat=True):
        """Steps of BAGOGAB, or of BAGAB: A and G are in `drift`. Without O the second half is back to front."""
        for _ in range(steps):
            self.kick(0.5 * h)
            self.drift(0.5 * h)
            if thermostat:
                self.thermostat(h)
            self._drift_back(0.5 * h)
            self.kick(0.5 * h)

    def _drift_back(self, h):
        """G, and then A."""
        for q in range(self.face.shape[1]):
            self._fly(q, h * self.v[:, q])
        x = self.corners()
        p = [_dot(x[..., i, :] - x[..., 0, :], self.v) for i in (1, 2)]
        self.R += h * self.V
        x = self.corners()
        a, b = (x[..., i, :] - x[..., 0, :] for i in (1, 2))
        aa, ab, bb = _dot(a, a), _dot(a, b), _dot(b, b)
        scale = 1.0 / (aa * bb - ab * ab)
        self.v = (scale * (bb * p[0] - ab * p[1]))[..., None] * a + (scale * (aa * p[1] - ab * p[0]))[..., None] * b

    # Flights over edges -----------------------------------------------------------------------------------------

    def _fly(self, q, way):
        """Move point q of each copy along the mesh by `way` (c, 3), in the plane of its triangle."""
        c = self.each
        for _ in range(MOST):
            x = self.R[c[:, None], self.faces[self.face[c, q]]]
            e1, e2 = x[:, 1] - x[:, 0], x[:, 2] - x[:, 0]
            n = np.cross(e1, e2)
            nn = _dot(n, n)
            l2, l3 = _dot(np.cross(way, e2), n) / nn, _dot(np.cross(e1, way), n) / nn
            change = np.stack([-l2 - l3, l2, l3], axis=1)
            weight = self.weight[c, q]
            with np.errstate(divide="ignore", invalid="ignore"):
                times = np.where((change < 0.0) & (weight + change < 0.0), -weight / change, np.inf)
            i = times.argmin(axis=1)
            t = np.minimum(times[np.arange(len(c)), i], 1.0)
            self._recoil(c, q, t[:, None] * change)
            self.weight[c, q] = weight + t[:, None] * change
            crosses = t < 1.0
            if not crosses.any():
                return
            c, i, x, n, rest = c[crosses], i[crosses], x[crosses], n[crosses], (1.0 - t[crosses])[:, None]
            way = rest * self._cross(c, q, i, x, n / np.sqrt(nn[crosses])[:, None], way[crosses], rest)
        raise RuntimeError("a point goes round a vertex")

    def _cross(self, c, q, i, x, n, way, rest):
        """Take point q of copies c over the edges opposite corners i, of a flight of which a part is left; return its
        way, turned."""
        row = np.arange(len(c))
        j, k = (i + 1) % 3, (i + 2) % 3
        e = x[row, k] - x[row, j]
        e /= np.linalg.norm(e, axis=1)[:, None]
        face = self.face[c, q]
        both = row[:, None], np.stack([j, k], axis=1)
        shares, ends = self.weight[c, q][both], self.faces[face][both]
        there, corner = self.over[face, i].T
        border = there < 0
        y = self.R[c[:, None], self.faces[np.where(border, face, there)]]
        m = np.cross(y[:, 1] - y[:, 0], y[:, 2] - y[:, 0])
        m /= np.linalg.norm(m, axis=1)[:, None]
        out = np.cross(e, n)
        into = np.where(border[:, None], -out, np.cross(e, m))

        def turned(u):
            return (_dot(u, e)[:, None] * e + _dot(u, out)[:, None] * into
                    + _dot(u, n)[:, None] * np.where(border[:, None], n, m))  # fmt: skip

        self._turn(c, q, ends, shares, turned, rest)
        # The ends of the edge are the next corners, the other way round.
        weight = np.zeros((len(c), 3))
        weight[row, np.where(border, j, (corner + 2) % 3)] = shares[:, 0]
        weight[row, np.where(border, k, (corner + 1) % 3)] = shares[:, 1]
        self.weight[c, q] = weight
        self.face[c, q] = np.where(border, face, there)
        return turned(way)

    def _recoil(self, c, q, change):
        """m Δλ_i v on the vertices of a stay."""
        idx = self.faces[self.face[c, q]]
        self.V[c[:, None], idx] += self.m / self.M * change[..., None] * self.v[c, q][:, None, :]

    def _turn(self, c, q, ends, shares, turned, rest):
        self.v[c, q] = turned(self.v[c, q])


class Held(Riders):
    """Points with inertia in space, held by `sweeps` local corrections; `recoil` of vertices, and velocities `turned`
    at edges, can be left out."""

    def __init__(self, *arguments, sweeps=4, recoil=True, turned=True, **options):
        super().__init__(*arguments, **options)
        self.sweeps, self.recoil, self.turned = sweeps, recoil, turned
        #: Of the flight that is under way.
        self.time = 0.0

    def momentum(self):
        return super().momentum() + self.m * self.v.sum(axis=1)

    def spin(self):
        return super().spin() + self.m * np.cross(self.places(), self.v).sum(axis=1)

    def off(self):
        """(c, p) velocities across the mesh, seen from it."""
        V = self.V[self.each[:, None, None], self.faces[self.face]]
        return _dot(self.normals(), self.v - _dot(self.weight[..., None, :], np.swapaxes(V, -1, -2)))

    def gram(self):
        """(c, p, p) by how much the impulse of a unit on one changes the velocity across the mesh of another."""
        carried = np.zeros((*self.face.shape, self.R.shape[1], 3))
        c, p = self.face.shape
        idx = self.faces[self.face]
        at = (np.arange(c)[:, None, None], np.arange(p)[:, None], idx)
        carried[at] = self.weight[..., None] * self.normals()[..., None, :]
        flat = carried.reshape(c, p, -1)
        return np.eye(p) / self.m + flat @ np.swapaxes(flat, 1, 2) / self.M

    def heaviness(self):
        """(c,) √det(1 + K): what inertia across the mesh multiplies the density per area by."""
        return np.sqrt(np.linalg.det(self.m * self.gram()))

    def _share(self, weight):
        """How much a correction moves its own constraint, for each unit."""
        return 1.0 / self.m + (1.0 if self.recoil else 0.0) * _dot(weight, weight) / self.M

    def _at(self):
        """Rows of R and V, as (c n, 3), that the corners of points have, (p, c, 3)."""
        first = (len(self.R[0]) * self.each)[:, None, None]
        return np.ascontiguousarray((first + self.faces[self.face]).transpose(1, 0, 2))

    def hold(self, sweeps=None):
        at, V = self._at(), self.V.reshape(-1, 3)
        n, weights = self.normals().transpose(1, 0, 2), self.weight.transpose(1, 0, 2)
        per = n / self._share(weights)[..., None]
        for _ in range(self.sweeps if sweeps is None else sweeps):
            for q, (rows, weight) in enumerate(zip(at, weights, strict=True)):
                near = V[rows]
                seen = self.v[:, q] - (weight[:, None] @ near)[:, 0]
                push = (seen * n[q]).sum(axis=1)[:, None] * per[q]
                self.v[:, q] -= push / self.m
                if self.recoil:
                    V[rows] = near + (weight / self.M)[:, :, None] * push[:, None]

    def drift(self, h):
        """A: all fly, and corrections along the normals of the start bring points back to the mesh."""
        at, V, R = self._at(), self.V.reshape(-1, 3), self.R.reshape(-1, 3)
        n, weights, share = self.normals(), self.weight.transpose(1, 0, 2), self._share(self.weight)
        r = self.places() + h * self.v
        self.time = h
        self.R += h * self.V
        for _ in range(self.sweeps):
            for q, (rows, weight) in enumerate(zip(at, weights, strict=True)):
                x = R[rows]
                m = np.cross(x[:, 1] - x[:, 0], x[:, 2] - x[:, 0])
                J = _dot(m, r[:, q] - x[:, 0]) / (h * share[:, q] * _dot(m, n[:, q]))
                push = J[:, None] * n[:, q]
                self.v[:, q] -= push / self.m
                r[:, q] -= h / self.m * push
                if self.recoil:
                    back = (weight / self.M)[:, :, None] * push[:, None]
                    V[rows] += back
                    R[rows] = x + h * back
        way = r - self.places()
        for q in range(self.face.shape[1]):
            self._fly(q, way[:, q])
        self.hold()

    _drift_back = drift

    def kick(self, h):
        super().kick(h)
        self.hold()

    def _recoil(self, c, q, change):
        """Vertices feel corrections and edges alone."""

    def _turn(self, c, q, ends, shares, turned, rest):
        """Turn the velocity seen from the place on the edge; what that takes, the ends of the edge get, for the rest of
        the flight."""
        if not self.turned:
            return
        V = self.V[c[:, None], ends]
        u = self.v[c, q] - np.einsum("ci,cik->ck", shares, V)
        J = (turned(u) - u) / self._share(shares)[:, None]
        self.v[c, q] += J / self.m
        if self.recoil:
            back = shares[..., None] * J[:, None] / self.M
            self.V[c[:, None], ends] = V - back
            self.R[c[:, None], ends] -= self.time * rest[..., None] * back
