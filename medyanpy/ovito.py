"""OVITO opens trajectories: ``ovito.io.import_file("run.h5")``.

OVITO finds `TrajectoryReader` by the entry point ``OVITO.FileReader`` of the installed package, in scripts and in the
windows of OVITO Pro. Lengths are nm, times s, energies pN nm.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from medyanpy._tools.extras import needed
from medyanpy._tools.images import images_between
from medyanpy.errors import ParameterError
from medyanpy.files import hdf5
from medyanpy.files.particles import Contents, Particles, energies_of, whole_lengths
from medyanpy.files.trajectory import Trajectory

with needed("medyanpy.ovito", "OVITO", "viewers"):
    from ovito.data import DataCollection
    from ovito.io import FileReaderInterface

__all__ = ["TrajectoryReader"]


class TrajectoryReader(FileReaderInterface):  # type: ignore[misc, unused-ignore]
    """Reads what `TrajectoryReporter` wrote, or is writing, with all segments.

    Particles are the beads that are there in a frame, with types named like handles or species, permanent ids as
    identifiers, and true radii; rigid bodies are ellipsoids that turn. Links of filaments and rods, and those that
    jumps have bound, are bonds, with types named like the handle or the jump. Each membrane is a `TriangleMesh` of its
    name. Step, time and energies are attributes.

    A periodic box is the simulation cell; in open directions it reaches as far as particles do. Particles and membranes
    are where pictures show them: by images in the cell, filaments and membranes as wholes, and triangles across its
    sides with images of their vertices. ``Periodic Image`` leads from there to the images that the file holds, and
    bonds have their own.

    Examples
    --------
    ::

        from ovito.io import import_file

        pipeline = import_file("run.h5")
        data = pipeline.compute(pipeline.num_frames - 1)
        data.particles.count, data.particles.bonds.count, data.triangle_meshes["vesicle"].face_count
    """

    @staticmethod
    def detect(filename: str) -> bool:
        """Tell whether a file is a trajectory of this package, of whatever version: `scan` reports what is wrong with
        it."""
        return hdf5.is_trajectory(Path(filename))

    @staticmethod
    def scan(filename: str, register_frame: Callable[..., None]) -> None:
        """Tell of every frame: its number, with its step as label.

        Raises
        ------
        ParameterError
            A file that is damaged, of a later version, or without frames.
        """
        with Trajectory(filename) as trajectory:
            if not len(trajectory):
                raise ParameterError(f"{filename} holds no frames")
            for k, step in enumerate(trajectory.steps.tolist()):
                register_frame(frame_info=k, label=step)

    def parse(
        self,
        data: Any,
        *,
        filename: str,
        frame_index: int = 0,
        frame_info: Any = None,
        **options: Any,
    ) -> None:
        """Bring a frame into a collection.

        Raises
        ------
        ParameterError
            As `scan`.
        """
        number = frame_index if frame_info is None else int(frame_info)
        contents = self._opened(filename)
        frame = contents.trajectory[number]
        there = contents.particles(frame)
        if there.is_periodic:
            _fill_cell(data, there)
        _fill_particles(data, contents, there)
        _fill_bonds(data, contents, there)
        _fill_meshes(data, contents, there)
        data.attributes["Timestep"], data.attributes["Time"] = there.step, there.time
        for name in hdf5.ENERGIES:
            data.attributes[name] = getattr(frame, name)
        for name, energy in energies_of(frame).items():
            data.attributes[f"energy of {name}"] = energy

    def _opened(self, filename: str) -> Contents:
        """Return the content of a file, opened once for all frames that are read one after the other."""
        kept: Contents | None = self.__dict__.get("_kept")
        if kept is None or kept.trajectory.paths[0] != Path(filename):
            if kept is not None:
                kept.trajectory.close()
            kept = Contents(Trajectory(filename))
        else:
            # Its writer may have continued, or begun another.
            kept.trajectory.refresh()
            if kept.read_from is not kept.trajectory.handles:
                kept = Contents(kept.trajectory)
        self.__dict__["_kept"] = kept
        return kept


def _fill_cell(data: DataCollection, there: Particles) -> None:
    x, closed = there.shown_positions, there.box > 0.0
    low, high = (x.min(axis=0), x.max(axis=0)) if len(x) else (np.zeros(3), np.zeros(3))
    # It must not be flat.
    wide = np.where(high > low, high - low, there.box.max())
    matrix = np.zeros((3, 4))
    matrix[:, :3], matrix[:, 3] = np.diag(np.where(closed, there.box, wide)), np.where(closed, 0.0, low)
    data.create_cell(matrix, pbc=tuple(closed.tolist()))


def _fill_particles(data: DataCollection, contents: Contents, there: Particles) -> None:
    particles = data.create_particles(count=len(there))
    particles.create_property("Position", data=there.shown_positions)
    if there.is_periodic:
        particles.create_property("Periodic Image", data=there.images.astype(np.int32))
    particles.create_property("Particle Identifier", data=there.ids)
    particles.create_property("Mass", data=there.masses)
    # OVITO takes what has no radius, or no shape, to be as its type.
    particles.create_property("Radius", data=np.nan_to_num(there.radii))
    bodies = np.isfinite(there.semi_axes)
    if bodies.any():
        particles.create_property("Aspherical Shape", data=np.where(bodies, there.semi_axes, 0.0))
    if any(handle.rows_of == "oriented" for handle in contents.handles.values()):
        # Theirs have the scalar last.
        particles.create_property("Orientation", data=there.orientations[:, [1, 2, 3, 0]])
    if there.velocities is not None:
        particles.create_property("Velocity", data=there.velocities)
    types = particles.create_property("Particle Type")
    for number, name in enumerate(contents.types, start=1):
        kind: Any = types.add_type_id(number, particles, name=name)
        kind.radius = contents.size
    types[...] = there.types + 1


def _fill_bonds(data: DataCollection, contents: Contents, there: Particles) -> None:
    bonds = data.particles_.create_bonds(count=len(there.bonds))
    bonds.create_property("Topology", data=there.bonds)
    if there.is_periodic:
        a, b = there.shown_positions[there.bonds].transpose(1, 0, 2)
        shifts = -whole_lengths(images_between(b - a, there.box), there.box)
        bonds.create_property("Periodic Image", data=shifts.astype(np.int32))
    types = bonds.create_property("Bond Type")
    for number, name in enumerate(contents.bond_types, start=1):
        types.add_type_id(number, bonds, name=name)
    types[...] = there.bond_types + 1
    # The diameter.
    bonds.create_property("Width", data=np.full(len(there.bonds), contents.size))


def _fill_meshes(data: DataCollection, contents: Contents, there: Particles) -> None:
    for name in contents.membranes:
        # A membrane that is added later is empty before.
        vertices, faces = there.sheet(name) if name in there.faces else (np.empty((0, 3)), np.empty((0, 3), np.int64))
        mesh = data.triangle_meshes.create(identifier=name, vis_params={"title": name, "transparency": 0.4})
        mesh.set_vertices(vertices)
        mesh.set_faces(faces)
