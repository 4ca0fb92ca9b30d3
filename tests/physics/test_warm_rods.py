"""Elastic rods in heat: equipartition, decay of tangents, diffusion, and held nodes."""

# ruff: noqa: E741 - l is the symbol of the papers


import numpy as np
import pytest
from builders import look
from rods_by_differences import (
    CANTILEVER,
    make,
    tip_couple,
    tip_force,
)
from scipy.integrate import quad

import medyanpy as mp
from medyanpy._tools import quaternions
from medyanpy.testing import check_mean, check_variance, thermal

#
# In the mean frame of its nodes, Γ of a joint has the measure of space and the turn between the nodes that of
# rotations. So, without other forces, joints are independent, Γ is normal with the variance kT/(C ℓ), and of a turn
# by θ with Ω = 4 sin(θ/4)/ℓ along its axis the density is sin²(θ/2) exp(-ℓ Ω·BΩ/2kT), for any size of kT.

HOT = {"shear": (20.0, 30.0), "extension": 25.0, "bending": (4.0, 4.0), "twist": 7.0}


def joint_averages(B, B3):
    """<Ω1²>, <Ω3²> and <d3·d3'> of a joint of length 1 at kT = 1, by integration over the angle and the axis."""

    def over_axis(theta, which):
        """With u = cos² of the axis to d3: of exp(-a - b u) alone, and times 1 - u or u."""
        square = (4.0 * np.sin(0.25 * theta)) ** 2
        u, w = nodes
        weight = w * np.exp(-0.5 * square * (B * (1.0 - u * u) + B3 * u * u)) * np.sin(0.5 * theta) ** 2
        of = {"one": 1.0, "bend": 0.5 * square * (1.0 - u * u), "twist": square * u * u,
              "third": np.cos(theta) + (1.0 - np.cos(theta)) * u * u}[which]  # fmt: skip
        return np.sum(weight * of)

    nodes = np.polynomial.legendre.leggauss(60)
    total, *out = (quad(over_axis, 0.0, np.pi, args=(w,), epsabs=1e-13)[0] for w in ("one", "bend", "twist", "third"))
    return np.array(out) / total


@pytest.fixture(scope="module", params=["free", "pinned"])
def hot_rods(request):
    """2500 rods of six nodes at kT = 1, three states of them; joints of different rods and states are independent."""
    rods, n = 2500, 6
    x, q = mp.rods.uniform(n, 1.0)
    rng = np.random.default_rng(4)
    turn = rng.normal(size=(rods, 4))
    turn /= np.linalg.norm(turn, axis=1)[:, None]
    each = np.repeat(turn, n, axis=0)
    x, q = quaternions.turned(each, np.tile(x, (rods, 1))), quaternions.product(each, np.tile(q, (rods, 1)))
    context, handle = make(x, q, 1.0, HOT, many=True, starts=n * np.arange(rods + 1), word="BAOAB", timestep=0.02,
                           kT=1.0, inertia=[0.4, 0.5, 0.6], friction=(0.8, 1.2), rotational_friction=(0.5, 0.7),
                           ends=(request.param, "free"))  # fmt: skip
    context.set_velocities_to_temperature(kT=1.0, seed=5)
    states = []
    for steps in (500, 250, 250):
        context.step(steps)
        states.append(look(context))
    return handle, states


@pytest.mark.slow
def test_every_strain_has_its_energy(hot_rods):
    """<C ℓ (Γ - Γ0)²> = kT for each of shear 1, 2 and stretch, and Ω² of bending 1, 2 and twist as integrated; 37 500
    joints find 6 %. The bias of BAOAB is below 0.3 % (the highest (ωh)²/4 is 1 %, and its positions are better)."""
    rod, states = hot_rods
    strains = [rod.strains(s.positions, s.orientations) for s in states]
    gamma, omega = (np.concatenate(parts) for parts in zip(*strains, strict=True))
    for i, (name, C) in enumerate((("shear 1", 20.0), ("shear 2", 30.0), ("stretch", 25.0))):
        off = gamma[:, i] - (i == 2)
        check_variance(name, off @ off, len(off), 1.0 / C, sees=0.062)
        check_mean(name, off, 0.0, sees=0.0095)
    bend, twist, _ = joint_averages(4.0, 7.0)
    for i, (name, expected) in enumerate((("bending 1", bend), ("bending 2", bend), ("twist", twist))):
        check_mean(name, omega[:, i] ** 2, expected, sees=0.061 * expected)
        check_mean(name, omega[:, i], 0.0, sees=0.021)
    # Joints know nothing of each other, nor strains of one.
    names = ("shear 1", "shear 2", "stretch", "bending 1", "bending 2", "twist")
    parts = np.column_stack([gamma - [0.0, 0.0, 1.0], omega])
    for a in range(6):
        for b in range(a):
            check_mean(f"{names[a]} and {names[b]}", parts[:, a] * parts[:, b], 0.0, sees=0.011)


@pytest.mark.slow
def test_tangents_lose_their_direction(hot_rods):
    """<d3(0)·d3(n)> = uⁿ with u of one joint, as its turns have no preferred side; exp(-kT ℓ n/B) of the continuum is
    as near as B/(kT ℓ) = 4 lets it be. 7500 rods find an effect of 2.6 % at n = 1, and 18 % at n = 5."""
    _rod, states = hot_rods
    u = joint_averages(4.0, 7.0)[2]
    assert u == pytest.approx(np.exp(-0.25), abs=0.03)
    d3 = np.concatenate([quaternions.matrices(s.orientations)[:, :, 2].reshape(-1, 6, 3) for s in states])
    for n in range(1, 6):
        cosine = np.einsum("ij,ij->i", d3[:, 0], d3[:, n])
        check_mean(f"tangents {n} apart", cosine, u**n, sees=0.05 if n > 1 else 0.021)


@pytest.mark.slow
def test_every_momentum_has_its_temperature(hot_rods):
    """kT/m of velocities and kT I of angular momenta, about each axis; of the pinned node only the latter, with half a
    segment. 15 000 nodes find 11 % (pinned ones 26 %); at the end of a step of BAOAB they are lower by (ωh)²/4, 1 % of
    the fastest."""
    rod, states = hot_rods
    state = states[-1]
    moves = ~rod.kind.held[:, 0]
    for i in range(3):
        v = state.velocities[moves, i] * np.sqrt(rod.mass[moves])
        check_variance(f"velocity {i}", v @ v, len(v), 1.0, sees=0.11)
        spin = state.angular_momenta[:, i] / np.sqrt(rod.inertia[:, i])
        check_variance(f"angular momentum {i}", spin @ spin, len(spin), 1.0, sees=0.099)
    assert not state.velocities[~moves].any()
    if (~moves).any():
        for i in range(3):
            spin = state.angular_momenta[~moves, i] / np.sqrt([0.2, 0.25, 0.3][i])
            check_variance(f"angular momentum {i} of pinned nodes", spin @ spin, len(spin), 1.0, sees=0.26)
    freedom = rod.degrees_of_freedom
    kT = state.temperatures[rod.name] * mp.units.boltzmann
    check_variance("temperature after O", kT * freedom, freedom, 1.0, sees=0.041)


@pytest.mark.parametrize("word", ["BAOAB", "D"])
def test_diffusion_along_and_across(word):
    """Forces within a rod do not move its centre, so that of N nodes diffuses with kT/(N γ) where frames are too heavy
    to turn. Of D <x²> = 2 D t; of BAOAB it is the double sum of h² c^|i-j| kT/(N m), the ends of a path counting
    half. 3 000 rods find 24 % along, 16 % across: along is to across as 1 to 2."""
    rods, n, h, steps, along, across = 3000, 4, 0.05, 40, 1.0, 2.0
    x, q = mp.rods.uniform(n, 1.0)
    starts = n * np.arange(rods + 1)
    options = {"friction": (along, across), "rotational_friction": 1e9, "inertia": [1e9, 1e9, 1e9]}
    integrator = (mp.BrownianIntegrator(h, kT=1.0, seed=3) if word == "D"
                  else mp.SplittingIntegrator(word, h, kT=thermal(word, 1.0), seed=3))  # fmt: skip
    context, rod = make(np.tile(x, (rods, 1)), np.tile(q, (rods, 1)), 1.0, CANTILEVER, many=True, starts=starts,
                        integrator=integrator, **options)  # fmt: skip
    if word != "D":
        context.set_velocities_to_temperature(kT=1.0, seed=5)
    context.step(steps)
    moved = (context.get_state(positions=True).positions - rod.positions).reshape(rods, n, 3).mean(axis=1)
    for friction, columns in ((across, [0, 1]), (along, [2])):
        if word == "D":
            expected = 2.0 * h * steps / (n * friction)
        else:
            i = np.arange(steps + 1)
            half = np.where((i == 0) | (i == steps), 0.5, 1.0)
            c = np.exp(-friction * h)
            expected = h * h / n * (half @ c ** np.abs(i[:, None] - i) @ half)
        part = moved[:, columns]
        check_variance(f"friction {friction}", (part**2).sum(), part.size, expected, sees=0.24)


@pytest.mark.parametrize("word", ["BAOAB", "D", "ABA"])
@pytest.mark.parametrize("tensor", [False, True])
def test_held_beads_do_not_move(word, tensor):
    """Under forces, loads and noise: a pinned node turns and keeps its place, a clamped one both, to the bit."""
    n, l = 6, 1.0
    root = np.random.default_rng(2).normal(size=(6, 6))
    options = ({"friction": root @ root.T + np.eye(6)} if tensor
               else {"friction": (1.0, 2.0), "rotational_friction": 0.5})  # fmt: skip
    integrator = (mp.BrownianIntegrator(0.005, kT=1.0, seed=3) if word == "D"
                  else mp.SplittingIntegrator(word, 0.02, kT=thermal(word, 1.0), seed=3))  # fmt: skip
    x, q = mp.rods.uniform(n, l)
    context, _rod = make(x, q, l, HOT, tip_force([1.0, 2.0, 3.0]), tip_couple([1.0, 1.0, 1.0]),
                        integrator=integrator, ends=("clamped", "pinned"), **options)  # fmt: skip
    context.set_velocities_to_temperature(kT=1.0, seed=5)
    start = look(context)
    assert not start.velocities[[0, -1]].any()
    assert not start.angular_momenta[0].any()
    context.step(200)
    state = look(context)
    assert np.array_equal(state.positions[[0, -1]], x[[0, -1]])
    assert np.array_equal(state.orientations[0], start.orientations[0])
    assert not state.velocities[[0, -1]].any()
    assert not state.angular_momenta[0].any()
    assert np.abs(state.orientations[-1] - q[-1]).max() > 0.01
    assert np.abs(state.positions[1:-1] - x[1:-1]).max() > 0.01
    if word != "D":
        assert (state.angular_momenta[-1] != 0.0).all()


def test_a_pinned_node_turns_as_if_it_were_alone():
    """Of a tensor that couples all six momenta, what does not move takes no part: the pinned node relaxes by the 3×3
    block of rotation alone, <l(t) l(0)> = exp(-γ t/I) kT I in its frame, as free turns of a sphere keep l there; and
    diffuses by the inverse of that block. 6000 nodes find 0.13 of products of momenta, 15 % of their squares and of
    those of turns, and 0.005 of mean turns of 0.008 to 0.027."""
    rods = 6000
    root = np.random.default_rng(6).normal(size=(6, 6))
    friction = root @ root.T + np.eye(6)
    x, q = mp.rods.uniform(2, 1.0)
    starts = 2 * np.arange(rods + 1)
    soft = {"shear": 1e-9, "extension": 1e-9, "bending": 1e-9, "twist": 1e-9}

    def build(integrator, *loads):
        return make(np.tile(x, (rods, 1)), np.tile(q, (rods, 1)), 1.0, soft, *loads, many=True, starts=starts,
                    integrator=integrator, friction=friction, inertia=[2.0] * 3, ends=("pinned", "free"))  # fmt: skip

    h, steps = 0.02, 5
    context, _ = build(mp.SplittingIntegrator("BAOAB", h, kT=1.0, seed=3))
    context.set_velocities_to_temperature(kT=1.0, seed=5)
    before = look(context).angular_momenta[::2]
    context.step(steps)
    after = look(context).angular_momenta[::2]
    rate, axes = np.linalg.eigh(friction[3:, 3:] / 1.0)
    expected = (axes * np.exp(-rate * h * steps)) @ axes.T
    for i in range(3):
        for j in range(3):
            check_mean(f"<l{i}(t) l{j}(0)>", after[:, i] * before[:, j], expected[i, j], sees=0.13)
            check_mean(f"<l{i} l{j}>", after[:, i] * after[:, j], float(i == j), sees=0.16)
    context, _rod = build(mp.BrownianIntegrator(1e-3, kT=1.0, seed=3))
    context.step(4)
    # Twice the vector part of a small turn is its angle; rods start in the frame of space.
    angle = 2.0 * look(context).orientations[::2, 1:]
    expected = 2.0 * 4e-3 * np.linalg.inv(friction[3:, 3:])
    for i in range(3):
        for j in range(i + 1):
            check_mean(f"<φ{i} φ{j}>", angle[:, i] * angle[:, j], expected[i, j], sees=3.6e-4)
    # A couple turns it by the same block.
    couple = 20.0 * np.array([1.0, -1.0, 1.0])
    pull = lambda rod: mp.forces.RodLoad(rod, "start", couple=couple, follows=True)  # noqa: E731
    context, _ = build(mp.BrownianIntegrator(1e-3, kT=1.0, seed=3), pull)
    context.step(4)
    expected = 4e-3 * np.linalg.inv(friction[3:, 3:]) @ couple
    for i in range(3):
        check_mean(f"<φ{i}>", 2.0 * look(context).orientations[::2, 1 + i], expected[i], sees=0.0052)
