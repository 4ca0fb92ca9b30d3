"""Forces on membranes, and their energies written again."""

import math

import numpy as np
from references.scenes import lumpy_handles, lumpy_scene

import medyanpy as mp
from medyanpy.testing import ForceCase


def corners_and_areas(x, faces):
    a, b, c = x[faces].transpose(1, 0, 2)
    return a, b, c, 0.5 * np.linalg.norm(np.cross(b - a, c - a), axis=1)


def vertex_gradients(x, faces):
    """Gradients of area and volume at every vertex; nonsense on borders."""
    grad_area, grad_volume = np.zeros(x.shape), np.zeros(x.shape)
    for k in range(3):
        v, i, j = (faces[:, (k + c) % 3] for c in range(3))
        normal = np.cross(x[i] - x[v], x[j] - x[v])
        # A triangle grows fastest along the height on the side opposite the vertex.
        side = x[j] - x[i]
        foot = x[i] + side * (np.sum((x[v] - x[i]) * side, 1) / np.sum(side * side, 1))[:, None]
        height = x[v] - foot
        slope = 0.5 * np.linalg.norm(side, axis=1) / np.linalg.norm(height, axis=1)
        np.add.at(grad_area, v, height * slope[:, None])
        np.add.at(grad_volume, v, normal / 6.0)
    return grad_area, grad_volume


def mean_curvature(x, faces, form):
    """Mean curvature and a third of the ring's area of every vertex; nonsense on borders."""
    n = len(x)
    area = np.zeros(n)
    np.add.at(area, faces.ravel(), np.repeat(corners_and_areas(x, faces)[3] / 3.0, 3))
    if form != "dihedral":
        grad_area, grad_volume = vertex_gradients(x, faces)
        return 0.5 * np.sum(grad_area * grad_volume, 1) / np.sum(grad_volume**2, 1), area
    third = {(f[k], f[(k + 1) % 3]): f[(k + 2) % 3] for f in faces.tolist() for k in range(3)}
    hinges = [(i, j, k, third[j, i]) for (i, j), k in third.items() if i < j and (j, i) in third]
    i, j, k, m = np.transpose(hinges)
    n1, n2 = np.cross(x[j] - x[i], x[k] - x[i]), np.cross(x[m] - x[i], x[j] - x[i])
    angle = np.arctan2(np.linalg.norm(np.cross(n1, n2), axis=1), np.sum(n1 * n2, 1))
    angle *= -np.sign(np.sum(n1 * (x[m] - x[i]), 1))
    turn = np.zeros(n)
    for end in (i, j):
        np.add.at(turn, end, angle * np.linalg.norm(x[i] - x[j], axis=1))
    return turn / (4.0 * area), area


def curvature(x, faces, c0, form):
    """(H - c)², and the area of every vertex, as bending has them; nonsense on borders."""
    if form == "vertex":
        grad_area, grad_volume = vertex_gradients(x, faces)
        area = np.linalg.norm(grad_volume, axis=1)
        return np.sum((0.5 * grad_area - c0[:, None] * grad_volume) ** 2, 1) / area**2, area
    h, area = mean_curvature(x, faces, form)
    return (h - c0) ** 2, area


def membrane_bending(which, form):
    def numbers(n):
        return np.linspace(10.0, 50.0, n), np.linspace(-0.2, 0.3, n)

    def build():
        topology, handles = lumpy_scene()
        how = {"projected": True} if form == "projected" else {"discretization": form}
        force = mp.forces.MembraneBending(handles[which], *numbers(len(handles[which])), **how)
        return topology, force

    membrane = lumpy_handles()[which]

    def energy(x):
        kappa, c0 = numbers(len(membrane.beads))
        square, area = curvature(x[membrane.beads], membrane.mesh.faces, c0, form)
        inside = np.ones(len(area), bool)
        for loop in membrane.mesh.borders:
            inside[loop] = False
        return np.sum((2.0 * kappa * square * area)[inside])

    return ForceCase(f"bending, {form}, {which}", build, energy, 4.0)


def membrane_measure(name, which, make, energy):
    """A force that depends on the areas of the faces and on the volume (about the mean of the vertices)."""

    def build():
        topology, handles = lumpy_scene()
        return topology, make(handles[which])

    membrane = lumpy_handles()[which]

    def of_positions(x):
        x = x[membrane.beads]
        a, b, c, areas = corners_and_areas(x - x.mean(axis=0), membrane.mesh.faces)
        return energy(areas, np.linalg.det(np.stack([a, b, c], axis=1)).sum() / 6.0)

    return ForceCase(name, build, of_positions, 4.0)


def tether(which):
    """Its walls are near where the mesh has edges, whatever their lengths."""
    membrane = lumpy_handles()[which]
    lengths = np.linalg.norm(np.diff(membrane.mesh.vertices[membrane.mesh.edges], axis=1)[:, 0], axis=1)
    # Derivatives of exp(-1/s) are large near where walls begin: that is where no edge is.
    middle = np.sort(lengths)[len(lengths) // 3 : 2 * len(lengths) // 3]
    gap = int(np.argmax(np.diff(middle)))
    begin = middle[gap : gap + 2] @ np.array([[0.6, 0.4], [0.4, 0.6]])
    ends = np.array([0.3 * lengths.min(), *begin, 12.0 * lengths.max()])
    least, repelled, attracted, most = ends

    def build():
        topology, handles = lumpy_scene()
        limits = dict(zip(("l_min", "l_c1", "l_c0", "l_max"), ends, strict=True))
        return topology, mp.forces.MembraneTether(handles[which], 900.0, 1.0, **limits)

    def energy(x):
        x = x[membrane.beads]
        length = np.linalg.norm(x[membrane.mesh.edges[:, 1]] - x[membrane.mesh.edges[:, 0]], axis=1)
        long, short = length[length > attracted], length[length < repelled]
        above = np.exp(1.0 / (attracted - long)) / (most - long)
        return 900.0 * (above.sum() + (np.exp(1.0 / (short - repelled)) / (short - least)).sum())

    return ForceCase(f"tether, {which}", build, energy, 1.0)


def folds(which):
    """From an angle on that half of the edges have, as the lumps are."""
    membrane = lumpy_handles()[which]
    inner = [[a // 3, b // 3] for a, b in enumerate(membrane.mesh.opposite_corners.ravel()) if b > a]
    faces = membrane.mesh.faces

    def cosines(x):
        a, b, c = np.moveaxis(x[membrane.beads][faces], 1, 0)
        normals = np.cross(b - a, c - a)
        normals = normals / np.sqrt((normals**2).sum(axis=1))[:, None]
        return (normals[[i for i, _ in inner]] * normals[[j for _, j in inner]]).sum(axis=1)

    before = np.zeros((membrane.kind.first_bead, 3))
    middle = float(np.median(cosines(np.concatenate([before, membrane.mesh.vertices]))))

    def build():
        topology, handles = lumpy_scene()
        return topology, mp.forces.MembraneFoldRepulsion(handles[which], 90.0, math.acos(middle))

    def energy(x):
        cosine = cosines(x)
        folded = cosine[cosine < middle]
        return 90.0 * ((middle - folded) ** 3 / (1.0 + folded)).sum()

    return ForceCase(f"folds, {which}", build, energy, 1.0)


def own_areas(n):
    return np.linspace(1.0, 3.0, n), np.linspace(4.0, 9.0, n)


def triangles_energy(areas, _):
    k, a0 = own_areas(len(areas))
    return np.sum(0.5 * k * (areas - a0) ** 2 / a0)


MEMBRANES = [
    membrane_bending("closed", "vertex"),
    membrane_bending("closed", "projected"),
    membrane_bending("closed", "dihedral"),
    membrane_bending("open", "vertex"),
    membrane_bending("open", "projected"),
    membrane_bending("open", "dihedral"),
    membrane_measure("area", "closed", lambda m: mp.forces.MembraneArea(m, 20.0, 900.0),
                     lambda a, v: 10.0 * (a.sum() - 900.0) ** 2 / 900.0),
    membrane_measure("area of each triangle", "open",
                     lambda m: mp.forces.MembraneArea(m, *own_areas(len(m.mesh.faces)), per_triangle=True),
                     triangles_energy),
    membrane_measure("tension", "open", lambda m: mp.forces.MembraneTension(m, 0.3), lambda a, v: 0.3 * a.sum()),
    membrane_measure("volume", "closed", lambda m: mp.forces.MembraneVolume(m, 0.8, 3000.0),
                     lambda a, v: 0.4 * (v - 3000.0) ** 2 / 3000.0),
    tether("closed"),
    tether("open"),
    folds("closed"),
    folds("open"),
]  # fmt: skip


def of_membrane(name, which, make, energy, length=4.0):
    """A force on a membrane of the scene, and its energy: of the positions of all beads, the handles and the faces."""

    def build():
        topology, handles = lumpy_scene()
        return topology, make(handles[which], handles)

    return ForceCase(name, build, lambda x: energy(x[lumpy_handles()[which].beads], lumpy_handles()[which], x), length)


def angles_of(x, faces):
    """(F, 3) by the law of cosines."""
    a, b, c = (np.linalg.norm(x[faces[:, (k + 1) % 3]] - x[faces[:, (k + 2) % 3]], axis=1) for k in range(3))
    return np.arccos(
        np.column_stack([(q**2 + r**2 - p**2) / (2.0 * q * r) for p, q, r in ((a, b, c), (b, c, a), (c, a, b))])
    )


def gaussian_energy(x, membrane, _):
    faces = membrane.mesh.faces
    missing = np.full(len(x), 2.0 * np.pi)
    np.subtract.at(missing, faces, angles_of(x, faces))
    ends = np.concatenate([np.sort(faces[:, [i, i - 1]], axis=1) for i in range(3)])
    edges, counts = np.unique(ends, axis=0, return_counts=True)
    missing[edges[counts == 1]] = 0.0
    return missing @ np.linspace(-20.0, 30.0, len(x))


def border_energy(x, membrane, _):
    faces = membrane.mesh.faces
    ends = np.concatenate([np.sort(faces[:, [i, i - 1]], axis=1) for i in range(3)])
    edges, counts = np.unique(ends, axis=0, return_counts=True)
    i, j = edges[counts == 1].T
    return 3.0 * np.linalg.norm(x[i] - x[j], axis=1).sum()


def area_difference_energy(form):
    def energy(x, membrane, _):
        h, area = mean_curvature(x, membrane.mesh.faces, form)
        difference = 2.0 * 2.5 * (h @ area)
        return 0.5 * 30.0 * np.pi / (900.0 * 2.5**2) * (difference - 400.0) ** 2

    return energy


def phases_of(n):
    """Two of them, and a few between."""
    phases = 0.9 * (np.arange(n) % 5 < 2)
    phases[::7] = np.linspace(0.1, 0.8, len(phases[::7]))
    return phases


def phases_energy(x, membrane, _):
    """The gradient of phi from the plane through the three values, times the area."""
    total = 0.0
    phases = phases_of(len(x))
    for face in membrane.mesh.faces:
        p, q = x[face[1]] - x[face[0]], x[face[2]] - x[face[0]]
        metric = np.array([[p @ p, p @ q], [p @ q, q @ q]])
        rise = phases[face[1:]] - phases[face[0]]
        total += np.sqrt(rise @ np.linalg.solve(metric, rise)) * 0.5 * np.sqrt(np.linalg.det(metric))
    return 2.0 * total


def adhesion_energy(distances):
    """distances (x of all) -> (V, targets)."""

    def energy(x, membrane, all_of_them):
        *_, areas = corners_and_areas(x, membrane.mesh.faces)
        share = np.zeros(len(x))
        np.add.at(share, membrane.mesh.faces, areas[:, None] / 3.0)
        q = np.exp(-(distances(x, all_of_them) - 0.7) / 3.0)
        return np.sum(share * np.linspace(0.5, 2.0, len(x)) * np.sum((1.0 - q) ** 2 - 1.0, axis=1))

    return energy


def adheres(which, to, distances, what):
    def make(membrane, handles):
        return mp.forces.MembraneAdhesion(membrane, to(handles), np.linspace(0.5, 2.0, len(membrane)), 3.0, 0.7)

    return of_membrane(f"adhesion, {what}", which, make, adhesion_energy(distances), 2.0)


def from_balls(x, every):
    balls = lumpy_handles()["balls"]
    return np.linalg.norm(x[:, None] - every[balls.beads], axis=2) - balls.radius


def from_segment(x, start, way):
    share = np.clip((x - start) @ way / (way @ way), 0.0, 1.0)
    return np.linalg.norm(x - start - share[:, None] * way, axis=1)


WALL = mp.boundaries.Plane((1.0, 2.0, -4.0), (0.48, -0.6, 0.64))
MEMBRANES += [
    of_membrane(
        "Gaussian curvature, closed", "closed",
        lambda m, _: mp.forces.MembraneGaussianCurvature(m, np.linspace(-20.0, 30.0, len(m))), gaussian_energy,
    ),
    of_membrane(
        "Gaussian curvature, open", "open",
        lambda m, _: mp.forces.MembraneGaussianCurvature(m, np.linspace(-20.0, 30.0, len(m))), gaussian_energy,
    ),
    of_membrane("tension of borders", "open", lambda m, _: mp.forces.BorderTension(m, 3.0), border_energy),
    of_membrane(
        "two phases", "closed", lambda m, _: mp.forces.MembraneLineTension(m, phases_of(len(m)), 2.0), phases_energy
    ),
    of_membrane(
        "two phases, open", "open", lambda m, _: mp.forces.MembraneLineTension(m, phases_of(len(m)), 2.0), phases_energy
    ),
    *(
        of_membrane(
            f"difference in area, {form}", "closed",
            lambda m, _, form=form: mp.forces.MembraneAreaDifference(m, 30.0, 2.5, 400.0, 900.0, form),
            area_difference_energy(form),
        )
        for form in ("vertex", "dihedral")
    ),
    membrane_measure("pressure", "closed", lambda m: mp.forces.MembranePressure(m, 0.7), lambda a, v: -0.7 * v),
    membrane_measure(
        "osmotic pressure", "closed", lambda m: mp.forces.MembraneOsmoticPressure(m, 5000.0, 1.3, kT=0.4),
        lambda a, v: 0.4 * (1.3 * v - 5000.0 - 5000.0 * np.log(1.3 * v / 5000.0)),
    ),
    membrane_measure(
        "molecules inside", "closed",
        lambda m: mp.forces.MembranePoolPressure(m, mp.Pool(inside=m, counts={"A": 3000, "B": 2000}), kT=0.4),
        lambda a, v: -0.4 * 5000.0 * np.log(v / lumpy_handles()["closed"].mesh.volume),
    ),
    adheres("open", lambda h: WALL, lambda x, _: ((x - [1.0, 2.0, -4.0]) @ [0.48, -0.6, 0.64])[:, None], "wall"),
    adheres(
        "closed", lambda h: mp.surfaces.Sphere(9.0, (1.0, -2.0, 3.0)),
        lambda x, _: np.linalg.norm(x - [1.0, -2.0, 3.0], axis=1)[:, None] - 9.0, "sphere",
    ),
    adheres("closed", lambda h: h["balls"], from_balls, "balls"),
    adheres(
        "open", lambda h: mp.boundaries.Capsule([1.0, -2.0, 3.0], [-2.0, 4.0, 5.0], 12.0),
        lambda x, _: 12.0 - from_segment(x, np.array([1.0, -2.0, 3.0]), np.array([-3.0, 6.0, 2.0]))[:, None],
        "capsule",
    ),
]  # fmt: skip
