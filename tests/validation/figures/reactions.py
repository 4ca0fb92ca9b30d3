"""Reactions of points in membranes, beside closed forms and the test cases that programs for cells share.

The cases in two dimensions and of membrane localisation are those of M. E. Johnson and others, Mol. Biol. Cell 32, 186
(2021), with results of NERDSS at github.com/spatialnimbios/testcases. Units: nm, s, pN; kT = 4.141947 (300 K).
"""

from typing import Any

import numpy as np

import medyanpy as mp
from medyanpy.demo.report import KT, bound_line, near_line, z_line
from medyanpy.jumps._reaction_grounds import macroscopic_rate

from . import reaction_laws as laws
from .plates import PUBLISHED, Made, Plate, Row, Work, above_line, letters, panels

UM2 = 1e6
#: Of the case in two dimensions: rate λ within R, for k_on = 3.07391 µm²/s where both diffuse with 1 µm²/s.
REACH, RATE, DIFFUSION = 5.0, 61097.0, 1e6


# Meshes and points ------------------------------------------------------------------------------------------


def sphere(area: float, frequency: int) -> mp.TriangleMesh:
    mesh = mp.TriangleMesh.icosphere(1.0, frequency=frequency)
    return mesh.scaled(np.sqrt(area / mesh.area))


def sheet(side: float, n: int) -> mp.TriangleMesh:
    """Nodes in a square with a border."""
    x = np.stack(np.meshgrid(*[np.linspace(0.0, side, n)] * 2, indexing="ij"), -1).reshape(-1, 2)
    first = np.add.outer(np.arange(n - 1) * n, np.arange(n - 1)).ravel()
    faces = [[first, first + n, first + n + 1], [first, first + n + 1, first + 1]]
    return mp.TriangleMesh(np.c_[x, np.zeros(len(x))], np.concatenate([np.array(f).T for f in faces]))


def disc(radius: float) -> mp.TriangleMesh:
    """A polygon of the area of a disc."""
    from scipy.spatial import Delaunay

    rings = [radius * k / 8.0 * np.exp(2j * np.pi * np.arange(6 * k) / (6 * k)) for k in range(1, 9)]
    z = np.concatenate([[0j], *rings])
    x = np.c_[z.real, z.imag]
    faces = Delaunay(x).simplices
    a, b, c = (x[faces[:, i]] for i in range(3))
    turned = (b - a)[:, 0] * (c - a)[:, 1] - (b - a)[:, 1] * (c - a)[:, 0]
    faces = np.where(turned[:, None] < 0.0, faces[:, [0, 2, 1]], faces)
    mesh = mp.TriangleMesh(np.c_[x, np.zeros(len(x))], faces[np.abs(turned) > 1e-6 * radius**2])
    return mesh.scaled(np.sqrt(np.pi * radius**2 / mesh.area))


def numbers_that_move(h: float, diffusion: float, decay: float = 0.5) -> dict[str, float]:
    """Mass and friction with which points that go forward by A, O, A diffuse at `diffusion` in steps of h, the friction
    acting for `decay` of its time: D = (kT h/2m)(1 + c)/(1 - c), c = e^(-decay)."""
    c = np.exp(-decay)
    mass = float(KT * h * (1.0 + c) / (2.0 * diffusion * (1.0 - c)))
    return {"mass": mass, "friction": decay * mass / h}


def run(system: mp.System, h: float, seed: int = 1) -> mp.Simulation:
    return mp.Simulation(system, mp.BAGOGABIntegrator(h, kT=KT, seed=seed), threads=1)


def looked_at(points: Any, simulation: mp.Simulation) -> dict[str, int]:
    return dict(points.counts(simulation.context.get_state(positions=True)))


# One pair ---------------------------------------------------------------------------------------------------


def mean_time(mesh: mp.TriangleMesh, kind: dict[str, float], h: float, rate: float, reach: float, wanted: float,
              steps: int, still: bool = False, n: int = 400) -> tuple[float, float]:  # fmt: skip
    """Mean time in which A meets the one B, and its standard error.

    About n of A are there: they come at random times and places, uniformly, and each that reacts with B goes. The mean
    of their lives is the time that all A have spent over how many have gone. `still`: B stays in the middle.
    """
    topology = mp.Topology()
    membrane: Any = topology.add_membrane(mesh, 1.0, fixed=True)
    species = {"A": kind, "B": {"mass": 1e9 * kind["mass"], "friction": 1e9 * kind["friction"]} if still else kind}
    middle = np.linalg.norm(mesh.vertices[mesh.faces].mean(axis=1), axis=1).argmin()
    triangles, barycentric = mesh.sample(n, 1)
    points: Any = topology.add_intriangle_points(
        membrane, triangles=[middle, *triangles], barycentric=[[1.0 / 3.0] * 3, *barycentric], species=species,
        of_species=["B", *"A" * n], capacity=4 * n,
    )  # fmt: skip
    system = mp.System(topology)
    near = n * np.pi * reach**2 / mesh.area
    jump = system.add_jump(mp.jumps.Reactions(points, [
        f"0 -> A; rate = {n / wanted / mesh.area}", f"B + A -> B; rate = {rate}",
    ], reach=reach, placement=0.0, most_partners=int(24 + 2.5 * near)))  # fmt: skip
    simulation = run(system, h)
    # They have to become scarce round B, for which points cross the mesh; their number is right from the start.
    simulation.step(int(0.3 * wanted / h))
    every = max(1, int(0.05 * wanted / h))
    seen = []
    for k in range(steps // every + 1):
        simulation.step(every if k else 0)
        state = simulation.context.get_state(positions=True)
        seen.append([points.counts(state)["A"], state.jumps[jump.name]["events"][0]])
    a, come = np.array(seen, float).T
    lived, gone = 0.5 * (a[1:] + a[:-1]) * every * h, np.diff(come) - np.diff(a)
    mean = lived.sum() / gone.sum()
    blocks = [part.sum() for part in np.array_split(lived - mean * gone, 24)]
    return float(mean), float(np.std(blocks, ddof=1) * np.sqrt(len(blocks)) / gone.sum())


def pair(work: Work) -> Made:
    """Rate constants of one pair: on spheres of several radii, and in the disc in which programs define k_on."""
    h = 1e-7
    kind = numbers_that_move(h, DIFFUSION, 8.0)
    radii, lives = work.of((20.0,), (15.0, 20.0, 30.0, 50.0)), work.of(300, 5000)
    figure, (left, right) = panels(1, 2, (7.4, 3.0))
    fine = np.geomspace(12.0, 600.0, 60)
    areas = 4.0 * np.pi * fine**2
    left.plot(fine, areas / [laws.time_on_a_sphere(a, RATE, REACH, 2.0 * DIFFUSION) for a in fine] / UM2, **PUBLISHED,
              label="sphere, finite volumes")  # fmt: skip
    left.plot(fine, [macroscopic_rate(RATE, REACH, 2.0 * DIFFUSION, 4.0 / a) / UM2 for a in areas], "--", color="C2",
              label="disc of this area, B in the middle")  # fmt: skip
    exact = 1e3 * laws.time_on_a_sphere(50.0, RATE, REACH, 2.0 * DIFFUSION)
    rows = [Row(near_line("mean time on a sphere of 50 nm, finite volumes", exact, 13.400, 1e-4, "ms"), "13.400 ms")]
    for radius in radii:
        mesh = sphere(4.0 * np.pi * radius**2, max(6, round(0.32 * radius)))
        law = laws.time_on_a_sphere(radius, RATE, REACH, 2.0 * DIFFUSION)
        mean, error = mean_time(mesh, kind, h, RATE, REACH, law, int(lives / 400.0 * law / h))
        k = mesh.area / mean / UM2
        left.errorbar(radius, k, 2.0 * k * error / mean, fmt="o", color="C0")
        rows.append(Row(z_line(f"mean time on a sphere of {radius:g} nm", 1e3 * mean, 1e3 * error, 1e3 * law, "ms"),
                        "the mean over uniform starts, of the sphere itself"))  # fmt: skip
    left.set(xscale="log", xlabel="radius of the sphere, nm", ylabel="area / mean time, µm²/s", ylim=(0.0, None))
    left.legend()
    b = 2.0 * np.sqrt(1e3 / np.pi + 1.0)
    density = 4.0 / (np.pi * b**2)
    fine = np.geomspace(5e3, 2e5, 60)
    right.plot(fine, [macroscopic_rate(x, REACH, 2.0 * DIFFUSION, density) / UM2 for x in fine], **PUBLISHED,
               label="closed form, $R$ = 5 nm")  # fmt: skip
    for k_a, k_on, rate in ((1.0, 0.81611, 1.1492e4), (10.0, 3.07391, RATE), (100.0, 4.24955, 1.0717e5)):
        contact = laws.contact_rate(k_a * UM2, 1.0, 2.0 * DIFFUSION, b) / UM2
        rows.append(Row(near_line(f"k_on, k_a = {k_a:g} µm²/s at contact", contact, k_on, 1e-5, "µm²/s"),
                        f"{k_on:g} µm²/s, radiation at 1 nm in a disc of {b:.3f} nm"))  # fmt: skip
        right.axhline(k_on, linestyle=":", color="0.6", linewidth=0.8)
        right.text(5e3, k_on + 0.06, f"$k_a$ = {k_a:g}", fontsize=7.5, color="0.4")
        if work.quick and rate != RATE:
            continue
        law = np.pi * b**2 / k_on / UM2
        # B stays, so that A moves for both.
        mean, error = mean_time(disc(b), numbers_that_move(h, 2.0 * DIFFUSION, 8.0), h, rate, REACH, law,
                                int(work.of(1, 4) * lives / 400.0 * law / h), still=True)  # fmt: skip
        k = np.pi * b**2 / mean / UM2
        right.errorbar(rate, k, 2.0 * k * error / mean, fmt="o", color="C0")
        rows.append(Row(z_line(f"k_on of a run, λ = {rate:g} /s within 5 nm", k, k * error / mean, k_on, "µm²/s"),
                        f"{k_on:g} µm²/s, that of k_a = {k_a:g} µm²/s"))  # fmt: skip
    right.set(xscale="log", xlabel="rate $\\lambda$ within $R$, 1/s", ylabel="$k_{on}$, µm²/s", ylim=(0.0, 5.2))
    right.legend(loc="lower right")
    letters((left, right), ("one A, one B on a sphere", f"B in the middle of a disc of {b:.2f} nm"))
    return Made(
        figure, rows,
        f"D_A + D_B = 2 µm²/s, R = 5 nm, λ = {RATE:g} /s in a; h = {1e9 * h:g} ns; {lives} lives each"
        f"{work.of('', ', four times as many in b')}; inertial length R/16",
    )  # fmt: skip


# Equilibrium in whole numbers -------------------------------------------------------------------------------


def a_thousand(shape: str, h: float = 1e-6) -> tuple[Any, Any, mp.Simulation]:
    """Build 1000 A and 1000 B on 1 µm² with K_D = 1 /µm², near equilibrium, on a sheet, a sphere or a fluid vesicle:
    (membrane, points, simulation)."""
    mesh = sheet(1000.0, 12) if shape == "sheet" else sphere(UM2, 6)
    topology = mp.Topology()
    fluid = shape == "fluid"
    membrane: Any = topology.add_membrane(mesh, 4e-9, 4e-4, fixed=not fluid)
    kind = numbers_that_move(h, 2e8, 2.0)
    points: Any = topology.add_intriangle_points(
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
        points, "A + B <-> C", reach=60.0, dissociation_constant=1.0 / UM2, off_rate=0.01 / h, most_partners=14,
    ))  # fmt: skip
    simulation = run(system, h)
    simulation.step(300)
    return membrane, points, simulation


def equilibrium(work: Work) -> Made:
    """The distribution of free A, and its mean as it becomes known."""
    shapes, looks = work.of(("sphere",), ("sphere", "sheet")), work.of(600, 30_000)
    p = laws.law_of_free(1000, 1.0)
    mean, spread = laws.mean_of_free(1000, 1.0)
    acted = (np.sqrt(1.0 + 4000.0) - 1.0) / 2.0
    figure, (left, right) = panels(1, 2, (7.4, 3.0))
    shown, means = np.arange(15, 48), []
    left.plot(shown, p[shown], **PUBLISHED, label="exact, whole numbers")
    rows = [
        Row(near_line("mean of free A, sum over whole numbers", mean, 30.884, 2e-5), "30.884"),
        Row(near_line("by mass action", acted, 31.127, 1e-5), "A_eq = 31.1267 of the test case"),
    ]
    for k, shape in enumerate(shapes):
        _, points, simulation = a_thousand(shape)
        free = []
        for _ in range(looks):
            simulation.step(4)
            free.append(looked_at(points, simulation)["A"])
        free = np.array(free, float)
        found, square = mp.analysis.average(free), mp.analysis.average((free - mean) ** 2)
        label, deviation = f"{'a' if shape == 'sphere' else 'flat'} {shape}", float(np.sqrt(square.value))
        rows += [
            Row(z_line(f"mean of free A, {label}", found.value, found.error, mean, ""), "30.884, exact"),
            Row(z_line(f"standard deviation, {label}", deviation, square.error / (2.0 * deviation), spread, ""),
                "3.914, exact"),
        ]  # fmt: skip
        means.append((found.value, found.error**-2))
        counts = np.bincount(free.astype(int), minlength=shown[-1] + 1)[shown] / len(free)
        left.plot(shown, counts, "os"[k], color=f"C{k}", markerfacecolor="none", label=label)
        n = np.arange(1, looks + 1)
        running = np.cumsum(free) / n
        error = found.error * np.sqrt(looks / n)
        right.plot(n, running, color=f"C{k}", label=label)
        right.fill_between(n, running - error, running + error, color=f"C{k}", alpha=0.2, linewidth=0.0)
    if not work.quick:
        both, weights = np.array(means).T
        off = float((acted - np.average(both, weights=weights)) * np.sqrt(weights.sum()))
        rows.append(Row(above_line("mass action above the mean of both", off, 4.0, "standard errors"),
                        "whole numbers leave fewer free than mass action"))  # fmt: skip
    left.set(xlabel="free A", ylabel="probability")
    right.axhline(mean, **PUBLISHED, label="exact, 30.884")
    right.axhline(acted, linestyle="--", color="C3", linewidth=1.0, label="mass action, 31.127")
    right.set(xscale="log", xlim=(50, looks), ylim=(29.6, 32.2), xlabel="looks", ylabel="mean so far")
    left.legend(loc="upper left")
    right.legend()
    letters((left, right), ("free A of 1000 + 1000 on 1 µm²", "their mean, one standard error"))
    return Made(figure, rows, f"K_D = 1 /µm², R = 60 nm, {looks} looks, one every 4 steps of 1 µs")


# Decay ------------------------------------------------------------------------------------------------------

def overdamped(n: int, side: float, h: float, looks: int, every: int, copies: int, seed: int) -> np.ndarray:
    """(copies, looks + 1) A of n A and n B in periodic squares, A + B -> 0 at `RATE` within `REACH`, by steps without
    momenta: a program of its own. Copies are layers that are far from each other."""
    from scipy.spatial import cKDTree

    random = np.random.default_rng(seed)
    a, b = random.uniform(0.0, side, (2, n * copies, 2))
    layer_a = layer_b = np.repeat(np.arange(copies), n)
    out = [np.full(copies, n)]
    for step in range(looks * every):
        a, b = (np.mod(x + np.sqrt(2.0 * DIFFUSION * h) * random.normal(size=x.shape), side) for x in (a, b))
        one, other = (cKDTree(np.c_[x, 10.0 * REACH * layer], boxsize=[side, side, 0.0])
                      for x, layer in ((a, layer_a), (b, layer_b)))  # fmt: skip
        pairs = one.sparse_distance_matrix(other, REACH, output_type="coo_matrix")
        happens = random.random(len(pairs.row)) < -np.expm1(-RATE * h)
        gone_a: set[int] = set()
        gone_b: set[int] = set()
        for i, j in zip(pairs.row[happens], pairs.col[happens], strict=True):
            if i not in gone_a and j not in gone_b:
                gone_a.add(i)
                gone_b.add(j)
        a, layer_a = (np.delete(x, list(gone_a), axis=0) for x in (a, layer_a))
        b, layer_b = (np.delete(x, list(gone_b), axis=0) for x in (b, layer_b))
        if (step + 1) % every == 0:
            out.append(np.bincount(layer_a, minlength=copies))
    return np.array(out).T


def decayed(n: int, at: np.ndarray, seed: int, h: float = 1e-7) -> np.ndarray:
    """(len(at),) A of n A and n B, 1000 of each per µm² of a sphere, after these numbers of steps of A + B -> C."""
    topology = mp.Topology()
    membrane: Any = topology.add_membrane(sphere(n * 1e-3 * UM2, 12), 1.0, fixed=True)
    points: Any = topology.add_intriangle_points(
        membrane, species=dict.fromkeys("ABC", numbers_that_move(h, DIFFUSION, 8.0)), counts={"A": n, "B": n},
        capacity=2 * n, seed=seed,
    )  # fmt: skip
    system = mp.System(topology)
    system.add_jump(mp.jumps.Reactions(points, "A + B -> C", reach=REACH, on_rate=RATE, most_partners=30))
    simulation = run(system, h, seed)
    out = []
    for steps in np.diff(at, prepend=0):
        simulation.step(int(steps))
        out.append(looked_at(points, simulation)["A"])
    return np.array(out)


def decay(work: Work) -> Made:
    """A + B -> C of 1000 + 1000 on 1 µm², beside steps without momenta, and what they say of k."""
    h, n, runs, last = 1e-7, work.of(100, 1000), work.of(12, 24), work.of(2000, 10_000)
    grid = np.array([250, 500, 1000, 1500, 2000, 3250, 4000, 6000, 8000, 10_000])
    grid = grid[grid <= last]
    found = np.array([decayed(n, grid, seed) for seed in range(runs)]) / n
    side = 1e3 * np.sqrt(n * 1e-3)
    plain = overdamped(n, side, 2e-7, last // 250, 125, runs, 100)[:, grid // 250] / n
    t = h * grid
    figure, (left, right) = panels(1, 2, (7.4, 3.0))
    fine = np.linspace(0.0, t[-1], 100)
    left.plot(1e3 * fine, 1e3 / (1.0 + 3.07391e3 * fine), "--", color="0.5", linewidth=0.9,
              label="$1000/(1+1000kt)$, $k$ = 3.07391")  # fmt: skip
    within = laws.NERDSS[laws.NERDSS[:, 0] <= 1.001 * t[-1]]
    for axis, read in ((left, lambda share, _: 1e3 * share), (right, laws.rate_read)):
        for x, marker, color, label in ((plain, "s", "C1", "without momenta"), (found, "o", "C0", "here")):
            y, errors = read(x.mean(axis=0), t), x.std(axis=0, ddof=1) / np.sqrt(runs)
            spread = np.abs(read(x.mean(axis=0) + errors, t) - y)
            axis.errorbar(1e3 * t, y, 2.0 * spread, fmt=marker, color=color, markerfacecolor="none", label=label)
        axis.plot(1e3 * within[:, 0], read(1e-3 * within[:, 1], within[:, 0]), "x", color="C2",
                  label="NERDSS, contact at 1 nm")  # fmt: skip
        axis.set(xlabel="time, ms")
    left.set(ylabel="A per µm²", ylim=(0.0, 1000.0))
    right.axhline(RATE * np.pi * REACH**2 / UM2, linestyle=":", color="0.6", linewidth=0.9, label="$\\lambda\\pi R^2$")
    right.axhline(3.07391, linestyle="--", color="0.5", linewidth=0.9)
    right.set(ylabel="$k$ read from A, µm²/s", ylim=(2.0, 6.2))
    left.legend()
    right.legend()
    letters((left, right), ("A + B → C", "no single rate constant fits"))
    rows = []
    for step in (1000, 2000, 3250, 10_000):
        if step > last:
            continue
        ((k,),) = np.nonzero(grid == step)
        (mine, error), (other, its) = ((1e3 * x[:, k].mean(), 1e3 * x[:, k].std(ddof=1) / np.sqrt(runs))
                                       for x in (found, plain))  # fmt: skip
        both = float(np.hypot(error, its))
        rows.append(Row(z_line(f"A per µm² at {1e3 * t[k]:g} ms", mine, both, other, ""),
                        f"{other:.1f} by {runs} runs without momenta, a program of its own"))  # fmt: skip
        read = laws.rate_read(1e-3 * mine, t[k])
        published = laws.NERDSS[np.isclose(laws.NERDSS[:, 0], t[k])] * [1.0, 1e-3, 1e-3]
        if len(published) and not work.quick:
            _, share, sem = published[0].tolist()
            errors = np.array([1e-3 * error / (1e-3 * mine) ** 2, sem / share**2]) / (1e3 * t[k])
            line = z_line(f"k read at {1e3 * t[k]:g} ms", float(read), float(np.hypot(*errors)),
                          float(laws.rate_read(share, t[k])), "µm²/s")  # fmt: skip
            rows.append(Row(line, f"A = {1e3 * share:.1f} by 48 runs of NERDSS").but(
                "the same k in the disc, but contact at 1 nm begins with 10 instead of λπR² = 4.8 µm²/s"))  # fmt: skip
    over = float(read / (RATE * np.pi * REACH**2 / UM2))
    rows.append(Row(bound_line(f"k read at {1e3 * t[k]:g} ms over that of the start", over, 0.8),
                    "in two dimensions k falls as partners become scarce"))  # fmt: skip
    return Made(
        figure, rows, f"{n} + {n} on {n * 1e-3:g} µm², R = 5 nm, λ = {RATE:g} /s, {runs} runs, 2 standard errors"
    )


# Localisation at a membrane ---------------------------------------------------------------------------------

GATHERED = ("M", "MA", "MABM")


def lipids_and_proteins(part: float, proteins: int, lipids: int) -> tuple[Any, mp.Simulation]:
    """Build a part of the area with so many molecules, near equilibrium: (points, simulation)."""
    side, h = laws.SIDE * np.sqrt(part), 1e-6
    y, ma = round(0.9023 * proteins), round(0.0857 * proteins)
    free = proteins - y - ma
    topology = mp.Topology()
    membrane: Any = topology.add_membrane(sheet(side, max(3, round(10 * np.sqrt(part)))), 1.0, fixed=True)
    kind = numbers_that_move(h, 1e8, 2.0)
    points: Any = topology.add_intriangle_points(
        membrane, species=dict.fromkeys(["M", "MA", "MB", "MAB", "MBA", "MABM"], kind),
        counts={"M": lipids - 2 * ma - 2 * y, "MA": ma, "MB": ma, "MABM": y}, capacity=lipids, seed=1,
    )  # fmt: skip
    system = mp.System(topology)
    pool = system.add_pool(mp.Pool(volume=side**2 * laws.DEEP, counts={"A": free, "B": free, "AB": 0}))
    off, fast = 0.03 / h, 0.3 / h
    system.add_jump(mp.jumps.Reactions(pool, f"A + B <-> AB; k_on = {fast / laws.PAIR}, k_off = {fast}", name="water"))
    binds = [f"M + {one} <-> {two}; k_on = {off / laws.LIPID}, k_off = {off}"
             for one, two in [("A", "MA"), ("B", "MB"), ("AB", "MAB"), ("AB", "MBA")]]  # fmt: skip
    binds += [f"{one} + {two} <-> {three}; k_on = {fast / laws.PAIR}, k_off = {fast}"
              for one, two, three in [("MA", "B", "MAB"), ("MB", "A", "MBA")]]  # fmt: skip
    system.add_jump(mp.jumps.Reactions(points, binds, pool=pool, name="landing"))
    meets = [f"{one} + M <-> MABM; K_D = {2.0 * laws.SIGMA * laws.LIPID}, k_off = {off}" for one in ("MAB", "MBA")]
    meets += [f"MA + MB <-> MABM; K_D = {2.0 * laws.SIGMA * laws.PAIR}, k_off = {off}"]
    jump: Any = system.add_jump(mp.jumps.Reactions(points, meets, reach=20.0, most_partners=60, name="meeting"))
    if jump.driven:
        raise AssertionError("the rates of the cycle are not in balance")
    return points, run(system, h)


def numbers_of(points: Any, simulation: mp.Simulation, settle: int, looks: int) -> dict[str, np.ndarray]:
    """Numbers of each species, every 15 steps."""
    simulation.step(settle)
    seen: list[dict[str, int]] = []
    for _ in range(looks):
        simulation.step(15)
        seen.append(looked_at(points, simulation))
    return {name: np.array([one[name] for one in seen], float) for name in seen[0]}


def localisation(work: Work) -> Made:
    """Lipids, and proteins that bind to them and to each other, in solution and in the membrane."""
    part, proteins, lipids = work.of((1.0 / 25.0, 27, 150), (1.0, laws.PROTEINS, laws.LIPIDS))
    settle, looks = work.of((200, 150), (3000, 2500))
    area, volume = laws.SIDE**2, laws.SIDE**2 * laws.DEEP
    acted = laws.mass_action(laws.PROTEINS, laws.LIPIDS, area, volume, laws.SIGMA)
    exact, _, _ = laws.gathered(laws.PROTEINS, laws.LIPIDS, area, volume)
    rows = [
        Row(near_line(f"{name} by mass action", float(acted[k]), wanted, 5e-4), f"{wanted:g}, rates of three digits")
        for k, (name, wanted) in enumerate(zip(GATHERED, (2440.662, 56.523, 600.617), strict=True))
    ]
    rows += [
        Row(near_line(f"{name}, sum over whole numbers", float(exact[k]), wanted, 1e-5), f"{wanted:g}, exact")
        for k, (name, wanted) in enumerate(zip(GATHERED, (2440.423, 56.338, 600.918), strict=True))
    ]
    law, numbers, chances = laws.gathered(proteins, lipids, part * area, part * volume)
    seen = numbers_of(*lipids_and_proteins(part, proteins, lipids), settle, looks)
    found = [mp.analysis.average(seen[name]) for name in GATHERED]
    of = f", {proteins} proteins of a kind" if work.quick else ""
    rows += [
        Row(z_line(f"{name} of a run{of}", one.value, one.error, float(law[k]), ""), "the sum for these numbers")
        for k, (name, one) in enumerate(zip(GATHERED, found, strict=True))
    ]
    figure, (left, right) = panels(1, 2, (7.4, 3.0))
    counts = np.bincount(seen["MABM"].astype(int), minlength=numbers[-1] + 1)[numbers] / looks
    keep = chances > 1e-4
    left.plot(numbers[keep], chances[keep], **PUBLISHED, label="exact, whole numbers")
    left.plot(numbers[keep], counts[keep], "o", color="C0", markerfacecolor="none", label="here")
    left.set(xlabel="MABM", ylabel="probability")
    left.legend()
    here = laws.mass_action(proteins, lipids, part * area, part * volume, laws.SIGMA)
    place = np.arange(3)
    for factor, marker, label in ((0.5, "v", "σ in place of 2σ"), (2.0, "^", "4σ in place of 2σ")):
        other = laws.mass_action(laws.PROTEINS, laws.LIPIDS, area, volume, laws.SIGMA * factor) - acted
        right.plot(place, other, marker, color="C3", markerfacecolor="none", label=label)
    # The means of 10 runs at their end, after 1.76 s, and their standard errors.
    right.errorbar(place + 0.12, np.array([2444.3, 58.7, 596.7]) - acted, 2.0 * np.array([0.40, 0.55, 0.55]), fmt="x",
                   color="C2", label="NERDSS at 1.76 s")  # fmt: skip
    # Of a part, as if all of it were like it.
    scale = acted / here
    right.errorbar(place - 0.12, scale * ([one.value for one in found] - here), 2.0 * scale *
                   [one.error for one in found], fmt="o", color="C0", label="here")  # fmt: skip
    right.axhline(0.0, **PUBLISHED)
    right.set(xticks=place, xticklabels=GATHERED, xlim=(-0.5, 2.5), ylabel="molecules more than by mass action")
    right.legend()
    letters((left, right), (f"MABM of {proteins} A and {proteins} B", "against mass action"))
    return Made(
        figure, rows, f"{proteins} A, {proteins} B, {lipids} M on {part * area / UM2:.4g} µm², R = 20 nm, "
        f"{looks} looks, one every 15 steps of 1 µs"
    )  # fmt: skip


# Inertia ----------------------------------------------------------------------------------------------------

#: Inertial length over R: by how much k falls, by an independent program that knows it to 1.4 %.
SLOWER = {0.1: 1.7, 0.2: 6.5, 0.5: 23.9, 1.0: 46.5}


def slower(length: float, steps: int | None = None, lives: int = 0) -> tuple[float, float]:
    """By how many per cent k of a pair falls whose inertial length √(m kT)/γ is so many R, and the standard error:
    λR²/D = 4, in a disc of 4 R. So many steps, or about so many lives."""
    rate, friction = 4.0 * DIFFUSION / REACH**2, KT / DIFFUSION
    kind = {"mass": float((length * REACH * friction) ** 2 / KT), "friction": friction}
    h = min(2e-3 * REACH**2 / DIFFUSION, 0.2 * kind["mass"] / friction)
    mesh = disc(4.0 * REACH)
    plain = mesh.area / macroscopic_rate(rate, REACH, DIFFUSION, 4.0 / mesh.area)
    steps = round(lives / 400.0 * plain / h) if steps is None else steps
    mean, error = mean_time(mesh, kind, h, rate, REACH, plain, steps, still=True)
    return 100.0 * (1.0 - plain / mean), 100.0 * error * plain / mean**2


def inertia(work: Work) -> Made:
    """Rates of points with momenta over those without, against the length in which they forget their velocities."""
    lengths, lives = work.of((0.5, 1.0), (0.1, 0.2, 0.35, 0.5, 0.7, 1.0)), work.of(400, 20_000)
    figure, (axis,) = panels(1, 1, (4.6, 3.2))
    known = np.array(list(SLOWER.items()))
    axis.errorbar(known[:, 0], 1.0 - known[:, 1] / 100.0, 0.014 * np.ones(len(known)), fmt="s", color="0.4",
                  markerfacecolor="none", label="independent program")  # fmt: skip
    axis.axhline(1.0, **PUBLISHED, label="without momenta, closed form")
    rows = []
    for length in lengths:
        fall, error = slower(length, lives=lives)
        axis.errorbar(length, 1.0 - fall / 100.0, 0.02 * error, fmt="o", color="C0",
                      label="here" if length == lengths[0] else None)  # fmt: skip
        if length in SLOWER:
            rows.append(Row(z_line(f"k falls by, inertial length {length:g} R", fall, float(np.hypot(error, 1.4)),
                                   SLOWER[length], "%"), "by an independent program, to 1.4 %"))  # fmt: skip
    axis.set(xlabel=r"inertial length $\sqrt{m\,kT}/\gamma$ over $R$", ylabel="$k$ / $k$ without momenta",
             xlim=(0.0, 1.05), ylim=(0.4, 1.05))  # fmt: skip
    axis.legend()
    return Made(figure, rows, f"λR²/D = 4, disc of 4 R, {lives} lives each, 2 standard errors")


FIGURES = (
    Plate("chemistry_pair.png", "two-dimensional test cases (Johnson et al. 2021)", "rate constants of one pair", pair,
          (4.5, 480.0)),
    Plate("chemistry_equilibrium.png", "reversible binding in two dimensions (Johnson et al. 2021)",
          "1000 + 1000 in equilibrium", equilibrium, (4.5, 280.0)),
    Plate("chemistry_decay.png", "association in two dimensions (Johnson et al. 2021)", "1000 + 1000 react", decay,
          (5.0, 210.0)),
    Plate("chemistry_localisation.png", "membrane localisation (Johnson et al. 2021)",
          "what binds a membrane gathers there", localisation, (4.0, 150.0)),
    Plate("chemistry_inertia.png", "reactive Langevin dynamics (Isaacson et al. 2025)",
          "rates of points with momenta", inertia, (2.5, 230.0)),
)  # fmt: skip
