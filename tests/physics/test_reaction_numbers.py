"""Numbers of reactions in membranes that others have published or that are known exactly: minutes to hours.

Units: nm, s, pN; kT = 4.141947 (300 K). False alarms: 1e-6 for each check; `sees` is an effect found with probability
0.999.
"""

import numpy as np
import pytest
from scipy.spatial import Delaunay, cKDTree
from scipy.special import gammaln

import medyanpy as mp
from medyanpy.jumps._reaction_grounds import macroscopic_rate
from medyanpy.testing import check_mean

pytestmark = pytest.mark.long
KT = 4.141947
UM2 = 1e6
MICROMOLAR = mp.units.micromolar


def sphere(area, frequency):
    mesh = mp.TriangleMesh.icosphere(1.0, frequency=frequency)
    return mesh.scaled(np.sqrt(area / mesh.area))


def sheet(side, n):
    """Nodes in a square with a border."""
    x = np.stack(np.meshgrid(*[np.linspace(0.0, side, n)] * 2, indexing="ij"), -1).reshape(-1, 2)
    first = np.add.outer(np.arange(n - 1) * n, np.arange(n - 1)).ravel()
    faces = [[first, first + n, first + n + 1], [first, first + n + 1, first + 1]]
    return mp.TriangleMesh(np.c_[x, np.zeros(len(x))], np.concatenate([np.array(f).T for f in faces]))


def disc(radius):
    """A polygon of the area of a disc."""
    rings = [radius * k / 8.0 * np.exp(2j * np.pi * np.arange(6 * k) / (6 * k)) for k in range(1, 9)]
    z = np.concatenate([[0j], *rings])
    x = np.c_[z.real, z.imag]
    faces = Delaunay(x).simplices
    a, b, c = (x[faces[:, i]] for i in range(3))
    turned = (b - a)[:, 0] * (c - a)[:, 1] - (b - a)[:, 1] * (c - a)[:, 0]
    faces = np.where(turned[:, None] < 0.0, faces[:, [0, 2, 1]], faces)
    mesh = mp.TriangleMesh(np.c_[x, np.zeros(len(x))], faces[np.abs(turned) > 1e-6 * radius**2])
    return mesh.scaled(np.sqrt(np.pi * radius**2 / mesh.area))


def numbers_that_move(h, diffusion, decay=0.5):
    """Mass and friction with which points that go forward by A, O, A diffuse at `diffusion` in steps of h, the friction
    acting for `decay` of its time: D = (kT h/2m)(1 + c)/(1 - c), c = e^(-decay)."""
    c = np.exp(-decay)
    mass = KT * h * (1.0 + c) / (2.0 * diffusion * (1.0 - c))
    return {"mass": mass, "friction": decay * mass / h}


def mean_of_free(pairs, constant):
    """Mean and standard deviation of the number of free A of as many A as B; K_D times the area is `constant`."""
    c = np.arange(pairs + 1)
    weight = -c * np.log(constant) - gammaln(c + 1) - 2.0 * gammaln(pairs - c + 1)
    weight = np.exp(weight - weight.max())
    weight /= weight.sum()
    free = pairs - c
    return weight @ free, np.sqrt(weight @ free**2 - (weight @ free) ** 2)


@pytest.mark.parametrize("shape", ["sheet", "sphere", "fluid"])
def test_a_thousand_and_a_thousand_leave_30_884(shape):
    """1000 A, 1000 B, 1 µm², K_D = 1 /µm²: ⟨A⟩ = 30.884 of whole numbers, 31.127 by mass action."""
    mean, spread = mean_of_free(1000, 1.0)
    assert (mean, spread) == (pytest.approx(30.884, abs=5e-4), pytest.approx(3.914, abs=5e-4))
    h, reach = 1e-6, 60.0
    mesh = sheet(1000.0, 12) if shape == "sheet" else sphere(UM2, 6)
    topology = mp.Topology()
    fluid = shape == "fluid"
    membrane = topology.add_membrane(mesh, 4e-9, 4e-4, fixed=not fluid)
    kind = numbers_that_move(h, 2e8, 2.0)
    points = topology.add_intriangle_points(
        membrane, species=dict.fromkeys("ABC", kind), counts={"C": 970, "A": 30, "B": 30}, capacity=2000, seed=1
    )
    system = mp.System(topology)
    if fluid:
        edge = float(mesh.edge_lengths.mean())
        system.add_force(mp.forces.MembraneBending(membrane, 80.0))
        system.add_force(mp.forces.MembraneArea(membrane, 1e6))
        system.add_force(mp.forces.MembraneVolume(membrane, 1e3))
        system.add_force(mp.forces.MembraneTether(membrane, 80.0 * KT, edge, l_min=0.6 * edge, l_max=1.5 * edge))
        system.add_jump(mp.jumps.EdgeFlips(membrane, 0.02 / h, min_angle=0.2))
    system.add_jump(mp.jumps.Reactions(
        points, "A + B <-> C", reach=reach, dissociation_constant=1.0 / UM2, off_rate=0.02 / h, most_partners=14,
    ))  # fmt: skip
    simulation = mp.Simulation(system, mp.BAGOGABIntegrator(h, kT=KT, seed=1), threads=1)
    simulation.step(1000)
    free, areas = [], []
    for _ in range(30_000):
        simulation.step(4)
        state = simulation.context.get_state(positions=True)
        free.append(points.counts(state)["A"])
        if fluid:
            areas.append(mp.TriangleMesh(state.positions[membrane.beads], state.faces[membrane.name]).area)
    free = np.array(free, float)
    if fluid:
        # ⟨ab/area⟩ = K_D ⟨c⟩ whatever the area does; here it hardly moves.
        assert np.std(areas) < 2e-3 * UM2
        assert np.mean(areas) == pytest.approx(UM2, rel=2e-3)
        check_mean("⟨ab/area⟩ − K_D ⟨c⟩", free**2 / areas - (1000.0 - free) / UM2, 0.0, time_series=True,
                   sees=16.0 / UM2)  # fmt: skip
        mean = mean_of_free(1000, np.mean(areas) / UM2)[0]
    check_mean(f"free A on a {shape}", free, mean, time_series=True, sees=0.24)
    check_mean("their variance", (free - mean) ** 2, spread**2, time_series=True, sees=1.5)


def mean_time(mesh, kind, h, rate, reach, wanted, steps, still=False):
    """Mean time in which A meets the one B, and its standard error: A comes at random times and places, and reacts with
    B, which stays. It is the time that all A have spent over how many have come, the mean of their lives."""
    topology = mp.Topology()
    membrane = topology.add_membrane(mesh, 1.0, fixed=True)
    species = {"A": kind, "B": {"mass": 1e9 * kind["mass"], "friction": 1e9 * kind["friction"]} if still else kind}
    n = 400
    middle = np.linalg.norm(mesh.vertices[mesh.faces].mean(axis=1), axis=1).argmin()
    points = topology.add_intriangle_points(
        membrane, triangles=[middle], barycentric=[[1.0 / 3.0] * 3], species=species, of_species="B", capacity=4 * n
    )
    system = mp.System(topology)
    near = n * np.pi * reach**2 / mesh.area
    system.add_jump(mp.jumps.Reactions(points, [
        f"0 -> A; rate = {n / wanted / mesh.area}", f"B + A -> B; rate = {rate}",
    ], reach=reach, placement=0.0, most_partners=int(24 + 2.5 * near)))  # fmt: skip
    simulation = mp.Simulation(system, mp.BAGOGABIntegrator(h, kT=KT, seed=1), threads=1)
    simulation.step(int(6.0 * wanted / h))
    every = int(0.05 * wanted / h)
    seen = []
    for _ in range(steps // every + 1):
        state = simulation.context.get_state(positions=True)
        seen.append([points.counts(state)["A"], state.jumps["Reactions"]["events"][0]])
        simulation.step(every)
    a, come = np.array(seen, float).T
    # Between two looks, by the trapezoid; of both ends of the run the first A have come before, and the last go on.
    lived, come = 0.5 * (a[1:] + a[:-1]) * every * h, np.diff(come)
    mean = lived.sum() / come.sum()
    blocks = [part.sum() for part in np.array_split(lived - mean * come, 24)]
    return mean, np.std(blocks, ddof=1) * np.sqrt(len(blocks)) / come.sum()


def test_one_pair_on_a_sphere_of_50_nm_meets_after_13_400_ms():
    """D_A + D_B = 2 µm²/s, R = 5 nm, λ = 61 097 /s, from uniform places: 13.400 ms by finite volumes. Points forget
    their velocities in each step, so that the inertial length √(Dh/2) of the relative motion is R/16."""
    h = 1e-7
    mesh = sphere(4.0 * np.pi * 50.0**2, 16)
    mean, error = mean_time(mesh, numbers_that_move(h, 1e6, 8.0), h, 61097.0, 5.0, 13.4e-3, 20_000_000)
    print(f"mean time {1e3 * mean:.3f} ± {1e3 * error:.3f} ms")
    assert error < 0.006 * mean
    assert abs(mean - 13.4e-3) < max(0.01 * 13.4e-3, 5.0 * error)


@pytest.mark.parametrize(("length", "slower"), [(0.1, 0.017), (0.2, 0.065), (0.5, 0.239), (1.0, 0.465)])
def test_inertia_makes_reactions_slower(length, slower):
    """λR²/D = 4 in a disc of b = 4R: k falls with the inertial length √(m kT)/γ over R. Values by an independent
    program, known to 1.4 %."""
    reach, diffusion = 5.0, 1e6
    rate, friction = 4.0 * diffusion / reach**2, KT / diffusion
    kind = {"mass": (length * reach * friction) ** 2 / KT, "friction": friction}
    h = min(2e-3 * reach**2 / diffusion, 0.2 * kind["mass"] / friction)
    mesh = disc(4.0 * reach)
    plain = mesh.area / macroscopic_rate(rate, reach, diffusion, 4.0 / mesh.area)
    mean, error = mean_time(mesh, kind, h, rate, reach, plain, 3_000_000, still=True)
    found = 1.0 - plain / mean
    print(f"inertial length/R = {length}: slower by {100.0 * found:.2f} ± {100.0 * error * plain / mean**2:.2f} %")
    assert error * plain / mean**2 < 0.006
    assert abs(found - slower) < 0.04


def overdamped(n, side, reach, rate, diffusion, h, looks, every, seed):
    """A of n A and n B in a periodic square, A + B -> 0 at `rate` within `reach`, by steps without momenta."""
    random = np.random.default_rng(seed)
    a, b = random.uniform(0.0, side, (2, n, 2))
    out = [n]
    for step in range(looks * every):
        a, b = (np.mod(x + np.sqrt(2.0 * diffusion * h) * random.normal(size=x.shape), side) for x in (a, b))
        trees = (cKDTree(x, boxsize=side) for x in (a, b))
        pairs = next(trees).sparse_distance_matrix(next(trees), reach, output_type="coo_matrix")
        happens = random.random(len(pairs.row)) < -np.expm1(-rate * h)
        gone_a, gone_b = set(), set()
        for i, j in zip(pairs.row[happens], pairs.col[happens], strict=True):
            if i not in gone_a and j not in gone_b:
                gone_a.add(i)
                gone_b.add(j)
        a, b = np.delete(a, list(gone_a), axis=0), np.delete(b, list(gone_b), axis=0)
        if (step + 1) % every == 0:
            out.append(len(a))
    return np.array(out)


def test_a_thousand_and_a_thousand_decay_as_points_without_momenta_do():
    """A + B -> C, 1 µm², D = 1 µm²/s each, R = 5 nm, λ = 61 097 /s: A at 0.1, 0.325 and 1 ms within 2 % of plain
    overdamped runs. Read as 1000/(1 + 1000 k t) its k falls, from λπR² = 4.8 to 2.4 to 2.6 µm²/s."""
    h, runs = 1e-7, 24
    at = np.array([1000, 3250, 10_000])
    plain = np.array([overdamped(1000, 1000.0, 5.0, 61097.0, 1e6, 2e-7, 40, 125, 100 + k) for k in range(runs)])
    plain = plain[:, at // 250]
    found = []
    kind = numbers_that_move(h, 1e6)
    for seed in range(runs):
        topology = mp.Topology()
        membrane = topology.add_membrane(sphere(UM2, 12), 1.0, fixed=True)
        points = topology.add_intriangle_points(
            membrane, species=dict.fromkeys("ABC", kind), counts={"A": 1000, "B": 1000}, capacity=2000, seed=seed
        )
        system = mp.System(topology)
        system.add_jump(mp.jumps.Reactions(
            points, "A + B -> C", reach=5.0, on_rate=61097.0, most_partners=30
        ))  # fmt: skip
        simulation = mp.Simulation(system, mp.BAGOGABIntegrator(h, kT=KT, seed=seed), threads=1)
        numbers = []
        for n in np.diff(at, prepend=0):
            simulation.step(int(n))
            numbers.append(points.counts(simulation.context.get_state(positions=True))["A"])
        found.append(numbers)
    found = np.array(found, float)
    for k, step in enumerate(at):
        both = np.hypot(*(x[:, k].std(ddof=1) / np.sqrt(runs) for x in (found, plain)))
        mean = plain[:, k].mean()
        # Five of its errors, all of which must be less than the claim.
        assert 5.0 * both < 0.03 * mean
        assert abs(found[:, k].mean() - mean) < 5.0 * both, f"{found[:, k].mean()} for {mean} at {step * h}"
        k_read = (1000.0 / found[:, k].mean() - 1.0) / (1e-3 * step * h) * 1e-6
        said = f"{found[:, k].mean():.1f}, without momenta {mean:.1f} ± {both:.1f}; k {k_read:.3f}"
        print(f"A({1e3 * step * h:g} ms) {said}")
        low, high = [(2.8, 3.5), (2.6, 2.9), (2.3, 2.65)][k]
        assert low < k_read < high


def gathered(area, volume, lipid, pair, sigma):
    """Means of M, MA and MABM of 665 A, 665 B and 3755 M, over whole numbers of molecules: each species has the weight
    (room times activity)^n/n!, with the activity 1 of A, B and M. MAB and MBA are counted together."""
    y, ma, mb = np.ogrid[540:660, 0:130, 0:130]
    weights = []
    for ab, x in [(ab, x) for ab in range(2) for x in range(4)]:
        a, b, m = 665 - y - ab - x - ma, 665 - y - ab - x - mb, 3755 - ma - mb - x - 2 * y
        shares = [(a, volume), (b, volume), (ab, volume / pair), (m, area), (ma, area / lipid), (mb, area / lipid),
                  (x, 2.0 * area / (pair * lipid)), (y, area / (2.0 * sigma * lipid**2 * pair))]  # fmt: skip
        logs = sum(np.maximum(n, 0) * np.log(z) - gammaln(np.maximum(n, 0) + 1) for n, z in shares)
        weights.append((np.where((a >= 0) & (b >= 0), logs, -np.inf), m))
    most = max(logs.max() for logs, _ in weights)
    sums = np.zeros(4)
    for logs, m in weights:
        p = np.exp(logs - most)
        sums += [p.sum(), (p * m).sum(), (p * ma).sum(), (p * y).sum()]
    return sums[1:] / sums[0]


def test_a_membrane_gathers_what_binds_to_it():
    """665 A and 665 B in 0.47 × 0.47 × 5 µm, 3755 lipids M: A and B bind M with 0.5 µM and each other with 20 µM,
    between two members of the membrane with K_3D 2σ, σ = 1 nm. By mass action M 2440.5, MA and MB 56.5, MABM 600.7; of
    whole numbers 2440.42, 56.34 and 600.92, since 7.7 A are free."""
    side, deep, sigma = 470.0, 5000.0, 1.0
    volume, h = side**2 * deep, 1e-6
    lipid, pair = 0.5 * MICROMOLAR, 20.0 * MICROMOLAR
    topology = mp.Topology()
    membrane = topology.add_membrane(sheet(side, 10), 1.0, fixed=True)
    kind = numbers_that_move(h, 1e8, 2.0)
    names = ["M", "MA", "MB", "MAB", "MBA", "MABM"]
    points = topology.add_intriangle_points(
        membrane, species=dict.fromkeys(names, kind), counts={"M": 2441, "MA": 57, "MB": 57, "MABM": 600},
        capacity=3755, seed=1,
    )  # fmt: skip
    system = mp.System(topology)
    pool = system.add_pool(mp.Pool(volume=volume, counts={"A": 8, "B": 8, "AB": 0}))
    off, fast = 0.03 / h, 0.3 / h
    system.add_jump(mp.jumps.Reactions(pool, f"A + B <-> AB; k_on = {fast / pair}, k_off = {fast}", name="water"))
    binds = [f"M + {one} <-> {two}; k_on = {off / lipid}, k_off = {off}"
             for one, two in [("A", "MA"), ("B", "MB"), ("AB", "MAB"), ("AB", "MBA")]]  # fmt: skip
    binds += [f"{one} + {two} <-> {three}; k_on = {fast / pair}, k_off = {fast}"
              for one, two, three in [("MA", "B", "MAB"), ("MB", "A", "MBA")]]  # fmt: skip
    system.add_jump(mp.jumps.Reactions(points, binds, pool=pool, name="landing"))
    meets = [f"{one} + M <-> MABM; K_D = {2.0 * sigma * lipid}, k_off = {off}" for one in ("MAB", "MBA")]
    meets += [f"MA + MB <-> MABM; K_D = {2.0 * sigma * pair}, k_off = {off}"]
    jump = system.add_jump(mp.jumps.Reactions(points, meets, reach=20.0, most_partners=60, name="meeting"))
    assert not jump.driven
    simulation = mp.Simulation(system, mp.BAGOGABIntegrator(h, kT=KT, seed=1), threads=1)
    simulation.step(5_000)
    seen = []
    for _ in range(4_000):
        simulation.step(15)
        seen.append(list(points.counts(simulation.context.get_state(positions=True)).values()))
    seen = dict(zip(names, np.array(seen, float).T, strict=True))
    m, ma, mabm = gathered(side**2, volume, lipid, pair, sigma)
    assert (m, ma, mabm) == (pytest.approx(2440.423, abs=1e-3), pytest.approx(56.338, abs=1e-3),
                             pytest.approx(600.918, abs=1e-3))  # fmt: skip
    wanted = {"M": (m, 4.0), "MA": (ma, 1.5), "MB": (ma, 1.5), "MABM": (mabm, 2.5)}
    print({name: round(float(seen[name].mean()), 3) for name in wanted})
    for name, (mean, sees) in wanted.items():
        check_mean(name, seen[name], mean, time_series=True, sees=sees)
