"""Scenes, files and processes that tests of several folders share."""

import os
import signal
import traceback
import warnings

import h5py
import numpy as np
import pytest
from scipy.spatial import ConvexHull
from scipy.special import gammaln

import medyanpy as mp
from medyanpy.testing.forces import add_with_pools


def orients(rng, n):
    """Return n random orientations, as unit quaternions."""
    q = rng.normal(size=(n, 4))
    return q / np.linalg.norm(q, axis=1)[:, None]


def content(path):
    """Return datasets and attributes of an HDF5 file, bit for bit."""
    out = {}
    with h5py.File(path, "r") as file:

        def add(name, item):
            for key, value in item.attrs.items():
                if isinstance(value, h5py.Reference):
                    # What it points to, wherever that is in the file.
                    value = file[value].name
                out[name, key] = np.asarray(value).dtype.str, np.asarray(value).tolist()
            if isinstance(item, h5py.Dataset):
                value = item[()]
                out[name] = item.shape, item.dtype.str, value.tobytes() if isinstance(value, np.ndarray) else value

        file.visititems(add)
        add("/", file)
    return out


def forked(function, *arguments):
    """Run a function in a fork of this process, which ends with 0, or with 1 after an exception; returns its id."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        function(*arguments)
        code = 0
    except KeyboardInterrupt:
        code = 2
    except BaseException as error:
        # NumPy says this of an interrupt that comes while it compares rows, for which it calls Python.
        if isinstance(error, TypeError) and "unless they have a common dtype" in str(error):
            code = 2
        else:
            traceback.print_exc()
    finally:
        os._exit(code)


def assert_killed(function, *arguments):
    """Run a function in a fork of this process, which has to end it by SIGKILL."""
    _, status = os.waitpid(forked(function, *arguments), 0)
    assert os.waitstatus_to_exitcode(status) == -signal.SIGKILL


def in_brownian_steps(system, timestep=0.1, seed=1, threads=1, kT=1.0):
    return mp.Simulation(system, mp.BrownianIntegrator(timestep, kT=kT, seed=seed), threads=threads)


def refuses(error, phrase, call, /, *arguments, **options):
    """Assert that a call raises an error with a phrase (a regular expression) in its message."""
    with pytest.raises(error, match=phrase):
        call(*arguments, **options)


def system_with(topology, *forces, **options):
    """Return a system of a topology with forces, added in this order, and the pools that these need."""
    system = mp.System(topology, **options)
    for force in forces:
        add_with_pools(system, force)
    return system


def look(run):
    """Return what there is to compare of a context, or of the context of a simulation."""
    context = getattr(run, "context", run)
    return context.get_state(positions=True, velocities=True, forces=True, energy=True)


def quiet(make):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return make()


def beads_at(x):
    topology = mp.Topology()
    return topology, topology.add_beads(x, mass=1.0)


def one_bead():
    """A topology with a bead that never moves, far away: there must be one."""
    topology = mp.Topology()
    topology.add_beads([[-1e6, 0.0, 0.0]], mass=1.0, friction=1e30)
    return topology


def pixels(figure):
    """(height, width, 3) numbers from 0 to 1."""
    figure.canvas.draw()
    return np.asarray(figure.canvas.buffer_rgba())[..., :3] / 255.0


def like(image, color, within=0.25):
    """Where a colour is seen, in whatever light."""
    direction = np.asarray(color) / np.linalg.norm(color)
    norm = np.linalg.norm(image, axis=2)
    return (norm > 0.05) & (np.linalg.norm(image / np.maximum(norm, 1e-9)[..., None] - direction, axis=2) < within)


def balanced(end, start=None):
    """Assert that heat and works of a run are the change of its energy, from none or that of a state, to rounding."""
    works = [end.heat, end.shadow_work, end.protocol_work, end.chemical_work]
    before = 0.0 if start is None else start.total_energy
    assert abs(end.total_energy - before - sum(works)) <= 1e-12 * max(map(abs, [*works, before, end.total_energy]))


class Recorder(mp.reporters.Reporter):
    """The states that a trajectory with the same interval holds."""

    include = ("positions", "velocities", "energy")

    def __init__(self, interval):
        super().__init__(interval)
        self.states = []

    def report(self, simulation, state):
        self.states.append(state)


def retraced(context, n, atol=1e-9, least=1.0):
    """Assert that n steps lead away, by `least` at least, and n with opposite velocities back; return both states."""
    before = context.get_state(positions=True, velocities=True)
    context.step(n)
    there = context.get_state(positions=True, velocities=True)
    assert np.abs(there.positions - before.positions).max() > least
    spin = there.angular_momenta
    context.set_velocities(-there.velocities, angular_momenta=None if spin is None else -spin)
    context.step(n)
    after = context.get_state(positions=True, velocities=True)
    np.testing.assert_allclose(after.positions, before.positions, rtol=0.0, atol=atol)
    np.testing.assert_allclose(-after.velocities, before.velocities, rtol=0.0, atol=atol)
    if there.orientations is not None:
        sign = np.sign((after.orientations * before.orientations).sum(axis=1, keepdims=True))
        np.testing.assert_allclose(after.orientations * sign, before.orientations, rtol=0.0, atol=atol)
    return before, there


def energies_converge(make):
    """Assert that the root mean square error of the energy at eight times falls as the square of the timestep."""
    errors = []
    for h in (1 / 64, 1 / 128, 1 / 256):
        context, found = make(h), []
        start = context.get_state(energy=True).total_energy
        for _ in range(8):
            context.step(round(0.125 / h))
            found.append(context.get_state(energy=True).total_energy - start)
        errors.append(np.sqrt(np.mean(np.square(found))))
    order = np.log2(np.array(errors[:-1]) / errors[1:])
    assert (np.abs(order - 2.0) < 0.15).all(), (errors, order)


def energy_converges_within_triangles(make):
    """Assert that the error of the energy falls as dt² while points stay in their triangles, on a membrane that moves.

    `make` takes an integrator and options of the points.
    """
    errors = []
    for timestep in (0.02, 0.01):
        places = {"triangles": range(0, 80, 8), "barycentric": [[0.3, 0.3, 0.4]] * 10}
        context = make(mp.SplittingIntegrator("BAGAB", timestep), **places)
        n = context.system.topology.n_beads
        context.set_velocities(np.random.default_rng(7).normal(0.0, 0.3, (n, 3)))
        start = context.get_state(positions=True, energy=True)
        worst = 0.0
        for _ in range(round(0.24 / timestep)):
            context.step(1)
            state = context.get_state(positions=True, energy=True)
            worst = max(worst, abs(state.total_energy - start.total_energy))
        assert (state.intriangle.triangles == start.intriangle.triangles).all()
        errors.append(worst)
    assert 3.6 < errors[0] / errors[1] < 4.4
    assert errors[1] > 1e-8


def retraced_across_edges(context):
    """Assert that a run in which points leave their triangles leads back."""
    context.set_velocities(np.random.default_rng(7).normal(0.0, 0.5, (context.system.topology.n_beads, 3)))
    start, middle = retraced(context, 150, atol=1e-10, least=0.1)
    assert (middle.intriangle.triangles != start.intriangle.triangles).any()


def midpoints(n):
    """Return barycentric coordinates, (n², 3), of the middles of n² equal parts of a triangle."""
    i, j = np.array([(i, j) for i in range(n) for j in range(n - i)]).T
    upright = np.column_stack([i + 1 / 3, j + 1 / 3]) / n
    inner = i + j < n - 1
    turned = np.column_stack([i[inner] + 2 / 3, j[inner] + 2 / 3]) / n
    second, third = np.concatenate([upright, turned]).T
    return np.column_stack([1.0 - second - third, second, third])


def moments(log_weight):
    """Mean and variance of a whole number from 0 on, from the logarithms of weights."""
    weight = np.exp(log_weight - np.max(log_weight))
    weight /= weight.sum()
    n = np.arange(len(weight))
    return weight @ n, weight @ n**2 - (weight @ n) ** 2


def mean_of_complexes(n, ratio):
    """Mean and variance of the number of C of n A and n B, where one of each has the ratio P(C)/P(A, B)."""
    k = np.arange(n + 1)
    return moments(k * np.log(ratio) - gammaln(k + 1) - 2.0 * gammaln(n - k + 1))


def octahedron(roughness=0.15):
    """Six vertices of which each has an angle well below a full turn: many pairs have several straight lines."""
    x = np.vstack([np.eye(3), -np.eye(3)]) + roughness * np.random.default_rng(3).normal(size=(6, 3))
    return mp.TriangleMesh(x, outward(x, ConvexHull(x).simplices))


def outward(x, faces):
    turned = np.einsum("ij,ij->i", np.cross(x[faces[:, 1]] - x[faces[:, 0]], x[faces[:, 2]] - x[faces[:, 0]]),
                       x[faces].mean(axis=1)) < 0.0  # fmt: skip
    return np.where(turned[:, None], faces[:, [0, 2, 1]], faces)


def uneven_sheet(n=5, seed=1):
    """An uneven sheet in a plane, with a border."""
    x = np.array([[i, j, 0.0] for i in range(n) for j in range(n)])
    inner = ((x[:, :2] > 0) & (x[:, :2] < n - 1)).all(axis=1)
    x[inner, :2] += 0.2 * np.random.default_rng(seed).normal(size=(inner.sum(), 2))
    first = [i * n + j for i in range(n - 1) for j in range(n - 1)]
    corners = [(a, a + n, a + n + 1, a + 1) for a in first]
    return mp.TriangleMesh(x, np.array([[a, b, c] for a, b, c, d in corners] + [[a, c, d] for a, b, c, d in corners]))


def line(n, start):
    """Return n places along x, 1 apart, from a start."""
    return np.arange(n)[:, None] * [1.0, 0.0, 0.0] + start


#: A mass of beads that hardly move.
STILL = 1e18


def straight(*counts):
    """Nodes of a filament along z with so many subunits of length 1 in each link."""
    return np.concatenate([[0.0], np.cumsum(counts)])[:, None] * [0.0, 0.0, 1.0]


def linked_beads(n, stretch, rates, timestep=0.05, off_rate=1e-9, on_rate=0.0, stiffness=2.0, seed=1, threads=1,
                 friction=1e30, bound=True, every=1):  # fmt: skip
    """Beads on links to places that do not move: (simulation, beads)."""
    topology = mp.Topology()
    x = np.zeros((n, 3))
    x[:, 1] = 1e4 * np.arange(n)
    ends = x + [1000.0, 0.0, 0.0]
    beads = topology.add_beads(ends + np.multiply.outer(np.broadcast_to(stretch, n), [1.0, 0.0, 0.0]),
                               mass=1.0, friction=friction, name="beads")  # fmt: skip
    system = mp.System(topology)
    links = system.add_force(mp.forces.Links([], [], stiffness=stiffness, length=1000.0, name="links"))
    rows = np.column_stack([np.arange(n)] * 2) if bound else ()
    system.add_jump(mp.jumps.LinkBinding(
        links, mp.Sites.anchors(x), mp.Sites.beads(beads), off_rate=off_rate, on_rate=on_rate, rates=rates, bound=rows,
        reach=200.0, every=every, name="binding"))  # fmt: skip
    integrator = mp.BrownianIntegrator(timestep, kT=4.141947, seed=seed)
    return mp.Simulation(system, integrator, threads=threads), beads


def averaged_tensions(simulation):
    """Averaged tensions of links, in the order of their lower sites, at both ends alike."""
    operation = simulation.context._schedule.jumping.operations[0]
    mean, other = operation.arrays()["mean"], operation.arrays()["other"]
    lower = np.flatnonzero(other > np.arange(len(other)))
    assert np.array_equal(mean[lower], mean[other[lower]])
    return mean[lower]
