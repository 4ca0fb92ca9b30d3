"""GSD, the files of HOOMD-blue: particles, bonds and angles, as many in each frame as there are.

Lengths are nm, masses pN s²/nm, velocities nm/s: the format has no units. It has boxes, periodic ones, with the origin
in the middle. In open directions it is four times as wide as the run reaches from the origin, so that no distance
between two particles is shorter across it. In periodic directions it is that of the run, and particles are in it, with
the numbers of their images. Schema: Glotzer group, "GSD: HOOMD schema" 1.4; quaternions there have the scalar first
too.
"""

from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from medyanpy._tools.extras import needed
from medyanpy._tools.quaternions import product
from medyanpy.files.exports._format import Format
from medyanpy.files.hdf5 import ENERGIES
from medyanpy.files.particles import Particles, edges_of, energies_of

__all__ = ["FORMAT"]


def _import_gsd() -> Any:
    with needed("export: a GSD file", "gsd", "viewers"):
        import gsd.hoomd
    return gsd.hoomd


class _Gsd(Format):
    title = "GSD"
    holds: ClassVar[frozenset[str]] = frozenset({
        "triangles", "flips", "bonds", "force bonds", "bound", "velocities", "radii", "masses", "ids", "orientations",
        "semi-axes", "inertia", "angular momenta", "energies", "times", "box",
    })  # fmt: skip

    @classmethod
    def check_installed(cls) -> None:
        _import_gsd()

    def write(self, made: list[Path]) -> None:
        hoomd = _import_gsd()
        trajectory = self.contents.trajectory
        # The format rounds to single precision.
        reach = (1.0 + 1e-6) * max(float(np.abs(there.positions).max(initial=0.0)) for there in self.each())
        with hoomd.open(name=str(made[0]), mode="w") as file:
            for k, there in zip(self.frames, self.each(), strict=True):
                frame = hoomd.Frame()
                frame.configuration.step = there.step
                frame.configuration.dimensions = 3
                lengths = np.where(there.box > 0.0, there.box, 4.0 * reach or 1.0)
                frame.configuration.box = [*lengths, 0.0, 0.0, 0.0]
                self._fill(frame, there)
                if k == self.frames[0]:
                    self._name_types(frame)
                frame.log["time"] = np.array([there.time])
                for name in ENERGIES:
                    frame.log[name] = np.array([getattr(trajectory[k], name)])
                for name, energy in energies_of(trajectory[k]).items():
                    frame.log[f"energy of {name}"] = np.array([energy])
                frame.log["particles/id"] = there.ids
                file.append(frame)

    def _fill(self, frame: Any, there: Particles) -> None:
        particles = frame.particles
        particles.N, particles.typeid = len(there), there.types
        particles.type_shapes = self._shapes(there)
        particles.position = there.positions
        if there.is_periodic:
            particles.position, particles.image = _in_the_box(there)
        particles.mass = there.masses
        # 0 is not a radius.
        particles.diameter = 2.0 * np.nan_to_num(there.radii)
        particles.orientation = there.orientations
        particles.moment_inertia = there.inertia
        if there.angular_momenta is not None:
            # As HOOMD has them: quaternions p = 2 q L, with L (pN nm s) in the frame of the body.
            particles.angmom = 2.0 * product(there.orientations, np.insert(there.angular_momenta, 0, 0.0, axis=1))
        if there.velocities is not None:
            particles.velocity = there.velocities
        # Readers want the same bonds in all frames: what comes and goes are pairs.
        bound = np.isin(there.bond_types, self.contents.numbers_of_jumps)
        _tell(frame.pairs, [there.bonds[bound]], [there.bond_types[bound]])
        membranes = [name for name in self.contents.membranes if name in there.faces]
        faces = [there.faces[name] for name in membranes]
        numbers = [self.contents.membranes.index(name) for name in membranes]
        kinds = [np.full(len(own), k) for own, k in zip(faces, numbers, strict=True)]
        _tell(frame.angles, faces, kinds)
        edges = [edges_of(own) for own in faces]
        kinds = [np.full(len(own), len(self.contents.bond_types) + k) for own, k in zip(edges, numbers, strict=True)]
        _tell(frame.bonds, [there.bonds[~bound], *edges], [there.bond_types[~bound], *kinds])

    def _name_types(self, frame: Any) -> None:
        """Name types in the first frame, from which others take them; names beyond ASCII must be bytes."""
        types, bonds, membranes = self.contents.types, self.contents.bond_types, self.contents.membranes
        groups = frame.particles, frame.bonds, frame.angles, frame.pairs
        for group, names in zip(groups, (types, [*bonds, *membranes], membranes, bonds), strict=True):
            if names:
                group.types = [name.encode() for name in names]

    def _shapes(self, there: Particles) -> list[dict[str, Any]]:
        """Return the shape of each type, as the schema of GSD has it: ellipsoids, where all of a type are alike."""
        shapes: list[dict[str, Any]] = []
        for number in range(len(self.contents.types)):
            axes = there.semi_axes[there.types == number]
            alike = len(axes) > 0 and np.isfinite(axes).all() and (axes == axes[0]).all()
            shapes.append({"type": "Ellipsoid", **dict(zip("abc", axes[0].tolist(), strict=True))} if alike else {})
        return shapes

    def left_out(self) -> list[str]:
        out = super().left_out()
        if self.open_directions:
            out.append(
                f"GSD files are periodic in all directions; in open ones ({self.open_directions}) by four times as "
                "much as the run reaches from the origin."
            )
        if self.contents.jumps:
            links = ", ".join(self.contents.jumps)
            out.append(f"GSD files have links that jumps bind as pairs ({links}): readers want bonds that stay.")
        if self.contents.comes_and_goes:
            out.append("GSD files have the particles that are there; MDAnalysis and mdtraj read equal numbers alone.")
        return out


def _in_the_box(there: Particles) -> tuple[np.ndarray, np.ndarray]:
    """Return positions (n, 3) from minus to below plus half of the box, in single precision, and numbers of images."""
    shifted = there.positions + 0.5 * there.box
    image = np.floor(np.divide(shifted, there.box, out=np.zeros_like(shifted), where=there.box > 0.0)).astype(np.int64)
    x = (there.positions - image * there.box).astype(np.float32)
    # Rounded, what is a little below the upper side may be at it, and is then at the lower one.
    half = 0.5 * there.box.astype(np.float32)
    over = (there.box > 0.0) & (x >= half)
    return np.where(over, -half, x), (image + over).astype(np.int32)


def _tell(group: Any, members: list[np.ndarray], kinds: list[np.ndarray]) -> None:
    """Fill the bonds, angles or pairs of a frame."""
    if not members:
        return
    group.group = np.concatenate(members).astype(np.int32)
    group.typeid = np.concatenate(kinds).astype(np.uint32)
    group.N = len(group.group)


FORMAT = _Gsd
