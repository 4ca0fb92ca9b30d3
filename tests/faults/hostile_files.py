"""Files made up by hand: a simulation of many kinds, checkpoints taken apart and put together, what reading takes."""

import io
import struct
import tracemalloc
import zipfile
import zlib

import numpy as np

import medyanpy as mp

_SUM = b"medyanpy checkpoint, crc32 %08x"
SUM_LENGTH = len(_SUM % 0)


def simulation():
    """One of every kind of bead that has columns of its own, and the arrays of O for each."""
    topology = mp.Topology()
    vesicle = topology.add_membrane(mp.TriangleMesh.icosphere(10.0, 1), 1.0, 0.5)
    topology.add_intriangle_points(vesicle, 6, mass=1.0, friction=0.2, seed=1)
    topology.add_filament([[20.0, 0, 0], [21.0, 0, 0], [22.0, 0, 0]], node_mass=1.0, node_friction=0.5)
    axes = [[1.0, 0, 0, 0]] * 3
    topology.add_rigid_bodies(np.arange(9.0).reshape(3, 3), axes, 1.0, (1.0, 2.0, 2.5), friction=0.4)
    system = mp.System(topology)
    system.add_force(mp.forces.MembraneEdgeSprings(vesicle, 1.0))
    out = mp.Simulation(system, mp.BAGOGABIntegrator(1e-3, kT=1.0, seed=1), threads=1)
    out.context.set_velocities_to_temperature(kT=1.0, seed=2)
    return out


def edited():
    """The same after beads have come and gone: rows and ids are no longer those in which they were added."""
    out = simulation()
    topology = out.topology
    with topology.edit():
        balls = topology.add_balls(np.arange(12.0).reshape(4, 3), 0.1, mass=1.0, friction=0.5, capacity=9)
        topology["points"].add(3, seed=2)
        topology["points"].remove(ids=topology["points"].ids[:2])
        topology["filament"].add([[[20.0, 9, 0], [21.0, 9, 0]]])
        topology["rigid bodies"].remove(topology["rigid bodies"].beads[1])
        out.system.add_force(mp.forces.SoftSphere(balls, balls, 1.0))
    with topology.edit():
        balls.remove(balls.beads[1])
        topology["points"].add(1, seed=5)
    return out


def members_of(data):
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {info.filename: archive.read(info) for info in archive.infolist()}


def packed(members, method=zipfile.ZIP_STORED):
    """The archive, as a checkpoint with a right checksum."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
        archive.comment = bytes(SUM_LENGTH)
    return summed(out.getvalue())


def summed(data):
    return data[:-SUM_LENGTH] + _SUM % zlib.crc32(data[:-SUM_LENGTH])


def npy(descr, shape, data=b"", fortran=False):
    """A member: its header, and whatever bytes."""
    head = f"{{'descr': {descr}, 'fortran_order': {fortran}, 'shape': {shape}, }}".encode()
    head += b" " * max(0, 117 - len(head)) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + data


def with_number(data, name, index, *values):
    """The members of a checkpoint with some doubles of one replaced."""
    members = members_of(data)
    place = 128 + 8 * index
    end = place + 8 * len(values)
    old = members[f"state/{name}.npy"]
    members[f"state/{name}.npy"] = old[:place] + struct.pack(f"<{len(values)}d", *values) + old[end:]
    return members


def peak_of(function, *arguments):
    """Bytes that Python and NumPy had allocated at most, and the error that was raised."""
    tracemalloc.start()
    try:
        function(*arguments)
        error = None
    except mp.MedyanError as caught:
        error = caught
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return peak, error
