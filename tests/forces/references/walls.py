"""Walls and collisions, and their energies written again: see test_walls.py for ellipsoids."""

import numpy as np
from references.scenes import lumpy_handles, lumpy_scene

import medyanpy as mp
from medyanpy.testing import ForceCase

LEANING = mp.boundaries.Plane([1.0, 2.0, 0.5], [3.0, 0.0, 4.0])


def wall():
    topology, h = lumpy_scene()
    return topology, mp.forces.WallRepulsion(LEANING, [h["points"], h["balls"], h["open"]], 2.0, 3.0, form="soft")


def wall_energy(x):
    h, total = lumpy_handles(), 0.0
    for name in ("points", "balls", "open"):
        depth = ([1.0, 2.0, 0.5] - x[h[name].beads]) @ [0.6, 0.0, 0.8] + getattr(h[name], "radius", 0.0)
        total += np.sum(2.0 * (np.maximum(0.0, depth) / 3.0) ** 2)
    return total


def round_wall(wall):
    """From inside and outside, for beads in front of it, at both ends, and behind it."""

    def build():
        topology, h = lumpy_scene()
        return topology, mp.forces.WallRepulsion(wall, [h["points"], h["balls"], h["open"]], 2.0, 3.0, form="soft")

    def energy(x):
        h, total = lumpy_handles(), 0.0
        a, b = (wall.center, wall.center) if isinstance(wall, mp.boundaries.Sphere) else (wall.a, wall.b)
        for name in ("points", "balls", "open"):
            # The nearest of very many places on the segment would be as good.
            s = np.clip((x[h[name].beads] - a) @ (b - a) / max(1e-9, (b - a) @ (b - a)), 0.0, 1.0)[:, None]
            out = np.linalg.norm(x[h[name].beads] - a - s * (b - a), axis=1) - wall.radius
            depth = (out if wall.inside else -out) + getattr(h[name], "radius", 0.0)
            total += np.sum(2.0 * (np.maximum(0.0, depth) / 3.0) ** 2)
        assert total > 1.0
        return total

    return build, energy


WALLS = [
    ForceCase("wall", wall, wall_energy, 0.05),
    ForceCase("wall of a cell", *round_wall(mp.boundaries.Sphere([1.0, -2.0, 3.0], 9.0)), 3.0),
    ForceCase("wall of an obstacle", *round_wall(mp.boundaries.Sphere([2.0, 1.0, 0.5], 7.0, inside=False)), 2.0),
    ForceCase("wall of a bacterium", *round_wall(mp.boundaries.Capsule([1.0, 0.0, -3.0], [5.0, 4.0, 2.0], 5.0)), 2.0),
    ForceCase("wall of a rod",
              *round_wall(mp.boundaries.Capsule([-8.0, 0.0, -3.0], [5.0, 4.0, 2.0], 4.0, inside=False)), 2.0),
]  # fmt: skip


# Collisions: see test_collisions.py for the other pairs of shapes. ----------------------------------------------------


def collisions():
    """Balls and points against each other and against the triangles of a sheet that the points do not live in."""
    topology, h = lumpy_scene()
    return topology, mp.forces.SoftCollisions([h["points"], h["open"], h["balls"]], [3.0, 5.0, 7.0], [2.0, 0.7, None])


def collisions_energy(x):
    h = lumpy_handles()
    at = np.r_[h["points"].beads, h["balls"].beads]
    radius, k = np.r_[np.full(7, 2.0), h["balls"].radius], np.r_[np.full(7, 3.0), np.full(5, 7.0)]
    i, j = np.triu_indices(12, 1)
    overlap = np.maximum(radius[i] + radius[j] - np.linalg.norm(x[at[i]] - x[at[j]], axis=1), 0.0)
    total = 0.5 * np.sum(k[i] * k[j] / (k[i] + k[j]) * overlap**2)
    corners = x[h["open"].beads][h["open"].mesh.faces]
    p = x[at][:, None, None]
    # The closest of three sides, or of the plane where its foot is inside.
    side = np.roll(corners, -1, axis=1) - corners
    along = np.clip(np.sum((p - corners) * side, -1) / np.sum(side**2, -1), 0.0, 1.0)
    r = np.linalg.norm(corners + along[..., None] * side - p, axis=-1).min(axis=-1)
    normal = np.cross(side[:, 0], side[:, 1])
    normal /= np.linalg.norm(normal, axis=1)[:, None]
    inside = (np.sum(np.cross(normal[:, None], side) * (p - corners), -1) > 0.0).all(axis=-1)
    r = np.where(inside, np.abs(np.sum(normal * (p[:, 0] - corners[:, 0]), -1)), r)
    overlap = np.maximum(radius[:, None] + 0.7 - r, 0.0)
    return total + 0.5 * np.sum((k * 5.0 / (k + 5.0))[:, None] * overlap**2)


COLLISIONS = [ForceCase("collisions", collisions, collisions_energy, 0.02)]
