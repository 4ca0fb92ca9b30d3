"""Forces on filaments, and their energies written again."""

import numpy as np

import medyanpy as mp
from medyanpy.testing import ForceCase


def filament_scene(closed, constrained=True, twistable=False):
    """Filaments of several lengths among other beads, with different masses and fixed nodes: (topology, handle)."""
    rng = np.random.default_rng(23)
    topology = mp.Topology()
    topology.add_beads(rng.normal(0.0, 5.0, (3, 3)), mass=1.0)
    counts = [3, 7, 4, 12] if closed else [2, 5, 3, 2, 11, 4]
    nodes = [np.cumsum(rng.normal(0.0, 2.0, (n, 3)), axis=0) for n in counts]
    fixed = [4, 6, 17] if closed else [0, 4, 9, 15]
    mass, options = rng.uniform(0.5, 3.0, sum(counts)), {}
    if twistable:
        links = [np.diff(np.vstack([x, x[:1]]) if closed else x, axis=0) for x in nodes]
        directors = [np.cross(d, rng.normal(size=d.shape)) for d in links]
        options = {"directors": directors, "director_mass": rng.uniform(0.5, 8.0, sum(map(len, links)))}
    filaments = topology.add_filaments(nodes, mass, constrained=constrained, closed=closed, fixed_nodes=fixed,
                                       **options)  # fmt: skip
    sheet = topology.add_membrane(mp.TriangleMesh.flat_sheet(2, 2, 4.0), vertex_mass=2.0)
    topology.add_intriangle_points(sheet, 3, mass=0.5, seed=3)
    return topology, filaments


def filament_joints(closed):
    """(before, node, after) of every joint, as beads of the topology."""
    filaments, out = filament_scene(closed)[1], []
    for a, b in zip(filaments.starts.tolist(), filaments.starts.tolist()[1:], strict=False):
        beads = [filaments.kind.first_bead + i for i in range(a, b)]
        if closed:
            beads = [beads[-1], *beads, beads[0]]
        out += list(zip(beads, beads[1:], beads[2:], strict=False))
    return np.array(out)


def bending_numbers(closed, rest):
    n = len(filament_joints(closed))
    return np.linspace(3.0, 8.0, n)[::-1], np.linspace(0.0, 2.8, n) if rest else 0.0


def filament_bending(closed, rest):
    def build():
        topology, filaments = filament_scene(closed)
        return topology, mp.forces.FilamentBending(filaments, *bending_numbers(closed, rest))

    joints = filament_joints(closed)
    modulus, angle = bending_numbers(closed, rest)
    start = filament_scene(closed)[0]
    x0 = np.concatenate([handle.positions for handle in start.handles])
    length = 0.5 * sum(np.linalg.norm(x0[joints[:, k + 1]] - x0[joints[:, k]], axis=1) for k in (0, 1))

    def energy(x):
        a, b = (x[joints[:, k + 1]] - x[joints[:, k]] for k in (0, 1))
        theta = np.arctan2(np.linalg.norm(np.cross(a, b), axis=1), np.sum(a * b, axis=1))
        # Nothing near the places where rest angles leave no direction.
        assert theta.min() > 0.1
        assert theta.max() < 3.0
        return np.sum(modulus / length * (1.0 - np.cos(theta - angle)))

    kind = ("rings" if closed else "filaments") + (" with rest angles" if rest else "")
    return ForceCase(f"bending of {kind}", build, energy, 1.0)


def filament_stretching(closed):
    def build():
        topology, filaments = filament_scene(closed, constrained=False)
        moved = filaments.positions * [1.05, 0.9, 1.1]
        # The same filaments in another shape, so that nothing is at rest.
        other = mp.Topology()
        other.add_beads(topology.handles[0].positions, mass=1.0)
        strained = other.add_filaments(moved, 1.0, constrained=False, closed=closed, starts=filaments.starts,
                                       link_lengths=filaments.link_lengths)  # fmt: skip
        n = len(filaments.link_lengths)
        return other, mp.forces.FilamentStretching(strained, np.linspace(20.0, 50.0, n))

    filaments = filament_scene(closed)[1]

    def energy(x):
        out, link = 0.0, 0
        moduli = np.linspace(20.0, 50.0, len(filaments.link_lengths))
        for a, b in zip(filaments.starts.tolist(), filaments.starts.tolist()[1:], strict=False):
            nodes, first = x[filaments.kind.first_bead + a : filaments.kind.first_bead + b], filaments.positions[a:b]
            if closed:
                nodes, first = np.vstack([nodes, nodes[:1]]), np.vstack([first, first[:1]])
            for r, r0 in zip(*(np.linalg.norm(np.diff(y, axis=0), axis=1) for y in (nodes, first)), strict=True):
                out += moduli[link] / r0 * 0.5 * (r - r0) ** 2
                link += 1
        return out

    return ForceCase("stretching of " + ("rings" if closed else "filaments"), build, energy, 1.0)


def fixman(closed):
    def build():
        topology, filaments = filament_scene(closed)
        return topology, mp.forces.FixmanPotential(filaments, kT=2.5)

    filaments = filament_scene(closed)[1]
    inverse_mass = np.where(filaments.kind.fixed_beads, 0.0, 1.0 / filaments.mass)

    def energy(x):
        """From the Jacobian of all lengths, filament by filament, without what is constant."""
        out = 0.0
        for a, b in zip(filaments.starts.tolist(), filaments.starts.tolist()[1:], strict=False):
            nodes, w = x[filaments.kind.first_bead + a : filaments.kind.first_bead + b], inverse_mass[a:b]
            n = b - a
            links = [(i, (i + 1) % n) for i in range(n if closed else n - 1)]
            jacobian = np.zeros((len(links), n, 3))
            for link, (i, j) in enumerate(links):
                u = (nodes[j] - nodes[i]) / np.linalg.norm(nodes[j] - nodes[i])
                jacobian[link, i], jacobian[link, j] = -u, u
            metric = np.einsum("lnc,n,mnc->lm", jacobian, w, jacobian)
            sign, log = np.linalg.slogdet(metric)
            assert sign == 1.0
            out += 0.5 * 2.5 * (log - sum(np.log(w[i] + w[j]) for i, j in links))
        return out

    return ForceCase("Fixman potential of " + ("rings" if closed else "filaments"), build, energy, 1.0)


def filament_twisting(closed):
    joints = filament_joints(closed).tolist()
    topology, filaments = filament_scene(closed, twistable=True)
    number = {tuple(pair): link for link, pair in enumerate((filaments.kind.first_bead + filaments.links).tolist())}
    links = np.array([[number[a, b], number[b, c]] for a, b, c in joints])

    def turns(x):
        """Each director is turned with its link, by the matrix of that turn, and compared with the next."""
        out = []
        for (before, node, after), pair in zip(joints, links, strict=True):
            a, b = ((x[j] - x[i]) / np.linalg.norm(x[j] - x[i]) for i, j in ((before, node), (node, after)))
            p, q = x[filaments.directors.kind.first_bead + pair]
            p, q = p - (p @ a) * a, q - (q @ b) * b
            assert a @ b > -0.98
            axis = np.cross(a, b)
            m = np.array([[0, -axis[2], axis[1]], [axis[2], 0, -axis[0]], [-axis[1], axis[0], 0]])
            p = p + m @ p + m @ m @ p / (1.0 + a @ b)
            out.append(np.arctan2(np.cross(p, q) @ b, p @ q))
        return np.array(out)

    modulus = np.linspace(3.0, 8.0, len(joints))[::-1]
    # The kink at half a turn is far from all.
    start = np.concatenate([handle.positions for handle in topology.handles])
    rest = turns(start) + np.linspace(-2.5, 2.5, len(joints)) - 8.0 * np.pi

    def build():
        topology, filaments = filament_scene(closed, twistable=True)
        return topology, mp.forces.FilamentTwisting(filaments, modulus, rest)

    def energy(x):
        off = turns(x) - rest
        off -= 2.0 * np.pi * np.round(off / (2.0 * np.pi))
        assert np.abs(off).max() < 3.0
        return np.sum(0.5 * modulus / filaments.link_lengths[links].mean(axis=1) * off**2)

    return ForceCase("twisting of " + ("rings" if closed else "filaments"), build, energy, 1.0)


def fixman_twistable(closed):
    def build():
        topology, filaments = filament_scene(closed, twistable=True)
        return topology, mp.forces.FixmanPotential(filaments, kT=2.5)

    filaments = filament_scene(closed, twistable=True)[1]
    inverse_mass = np.where(filaments.kind.fixed_beads, 0.0, 1.0 / filaments.mass)

    def energy(x):
        """The metric of lengths and right angles, with unit vectors along links, directors as they are, and a
        diagonal that is constant."""
        links, n = filaments.links, len(filaments)
        nodes, p = x[filaments.beads], x[filaments.directors.beads]
        u = nodes[links[:, 1]] - nodes[links[:, 0]]
        u /= np.linalg.norm(u, axis=1)[:, None]
        jacobian = np.zeros((2, len(links), n, 3))
        for way, e in enumerate((u, p)):
            jacobian[way, np.arange(len(links)), links[:, 0]] = -e
            jacobian[way, np.arange(len(links)), links[:, 1]] = e
        jacobian = jacobian.reshape(2 * len(links), n, 3)
        metric = np.einsum("lnc,n,mnc->lm", jacobian, inverse_mass, jacobian)
        both = inverse_mass[links].sum(axis=1)
        diagonal = np.concatenate([both, both + filaments.link_lengths**2 / filaments.directors.mass])
        one = np.arange(2 * len(links))
        # What the right angle of a link has to do with its own length is zero where they hold.
        metric[one, np.roll(one, len(links))] = 0.0
        metric[one, one] = diagonal
        sign, log = np.linalg.slogdet(metric)
        assert sign == 1.0
        return 0.5 * 2.5 * (log - np.log(diagonal).sum())

    return ForceCase("Fixman potential of twistable " + ("rings" if closed else "filaments"), build, energy, 1.0)


FILAMENTS = [
    *[filament_bending(closed, rest) for closed in (False, True) for rest in (False, True)],
    *[filament_stretching(closed) for closed in (False, True)],
    *[fixman(closed) for closed in (False, True)],
    *[filament_twisting(closed) for closed in (False, True)],
    *[fixman_twistable(closed) for closed in (False, True)],
]
