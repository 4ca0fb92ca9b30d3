"""Linearly implicit kicks: beside what they do not solve for, in documents and checkpoints, and what is refused."""

import re

import numpy as np
import pytest
from builders import refuses, system_with
from kicks.scenes import network

import medyanpy as mp
from medyanpy.kicks import Explicit, PushForwardNewmark, ZhangSkeel, ZhangSkeelSimplified, ZhangSkeelStiff


def test_refusals():
    _, system = network()
    with pytest.raises(mp.ParameterError, match=r"kick must be one of medyanpy\.kicks, not 'coarse'"):
        mp.SplittingIntegrator("BAB", 1.0, kick="coarse")
    with pytest.raises(mp.ParameterError, match="must kick by all forces: B, not B0, B1 or D"):
        mp.SplittingIntegrator("B1 B0 A B0 B1", 1.0, kick=ZhangSkeel())
    refuses(mp.ParameterError, "must be equally far apart", mp.SplittingIntegrator, "BABAABAB", 1.0, kick=ZhangSkeel())
    refuses(mp.ParameterError, "order = 3 but must be 2, 4, 6 or 8", mp.SplittingIntegrator, "BAB", 1.0, order=3)
    with pytest.raises(mp.ParameterError, match=r"has O inside. Put it outside, 'O B A A B O'"):
        mp.SplittingIntegrator("BAOAB", 1.0, kT=1.0, order=4)
    with pytest.raises(mp.ParameterError, match="is not a palindrome without D"):
        mp.SplittingIntegrator("AB", 1.0, symmetric=False, order=4)
    refuses(mp.ParameterError, r'solver must be "newton" or "one-step"', PushForwardNewmark, 0.3, "euler")
    refuses(mp.ParameterError, "stiff must be names of forces", ZhangSkeelStiff, 0.3)
    with pytest.raises(mp.ParameterError, match="there is no force 'bonds'; there are HarmonicBonds, HarmonicTrap"):
        mp.Context(system, mp.SplittingIntegrator("BAB", 1.0, kick=ZhangSkeelStiff(0.3, "bonds")))
    topology = mp.Topology()
    topology.add_filament([[0.0, 0, 0], [1.0, 0, 0], [2.0, 0, 0]], node_mass=1.0)
    beads = topology.add_beads([[0.0, 0, 1.0]], mass=1.0)
    mixed = system_with(topology, mp.forces.HarmonicBonds([[0, 3]], 1.0, 1.0, name="across"),
                        mp.forces.HarmonicTrap(beads, 1.0, [0.0, 0.0, 0.0]))  # fmt: skip
    with pytest.raises(mp.ParameterError, match="ZhangSkeel kicks plain beads, and Filaments"):
        mp.Context(mixed, mp.SplittingIntegrator("BAB", 1.0, kick=ZhangSkeel()))
    with pytest.raises(mp.ParameterError, match=r"the stiff force 'across' acts on Filaments.* which are not plain"):
        mp.Context(mixed, mp.SplittingIntegrator("BAB", 1.0, kick=ZhangSkeelStiff(0.3, "across")))
    mp.Context(mixed, mp.SplittingIntegrator("BAB", 1.0, kick=ZhangSkeelStiff(0.3, "HarmonicTrap")))


ICOSPHERE = mp.TriangleMesh.icosphere(3.0, 1)


def carrier(topology):
    """A membrane that moves and carries points: the points would have to be kicked with it."""
    membrane = topology.add_membrane(ICOSPHERE, vertex_mass=1.0, vertex_friction=0.2)
    topology.add_intriangle_points(membrane, 12, mass=0.5, friction=0.2, seed=5)
    return membrane


# Every kind of bead that is not plain: what adds some of it to a topology and returns its handle.
OTHERS = {
    "membrane with points": carrier,
    "points of a fixed membrane": lambda topology: topology.add_intriangle_points(
        topology.add_membrane(ICOSPHERE, vertex_mass=1.0, fixed=True), 9, mass=0.5, friction=0.2, seed=6
    ),
    "beads on a surface": lambda topology: topology.add_surface_points(
        mp.surfaces.Torus(5.0, 2.0), mp.surfaces.Torus(5.0, 2.0).sample(8, 3), 1.0, 0.3
    ),
    "constrained filament": lambda topology: topology.add_filament(
        [[0.0, 0, 9.0], [1.0, 0, 9.0], [1.5, 0.8, 9.0], [2.0, 0.8, 9.9]], node_mass=1.0, node_friction=0.4
    ),
    "twistable filament": lambda topology: topology.add_filament(
        [[0.0, 9.0, 0.0], [1.0, 9.0, 0.0], [1.5, 9.8, 0.0]], node_mass=1.0, node_friction=0.4, directors="parallel",
        director_mass=0.5, director_friction=0.1,
    ),
    "rigid bodies": lambda topology: topology.add_rigid_bodies(
        [[9.0, 0.0, 0.0], [9.0, 3.0, 0.0]], [[1.0, 0, 0, 0], [0.6, 0.8, 0, 0]], 2.0, (1.0, 1.5, 2.0), np.eye(6)
    ),
    "rod": lambda topology: topology.add_rod(
        [[-9.0, 0.0, 0.0], [-9.0, 0.0, 1.0], [-9.0, 0.0, 2.0]], [[1.0, 0, 0, 0]] * 3, 1.0, 1.0, (0.1, 0.1, 0.2), 0.3,
        rotational_friction=0.1,
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", OTHERS)
def test_each_kind_that_is_not_plain_is_refused(kind):
    """By rules that treat all beads alike, and by ZhangSkeelStiff where the stiff force acts on it; the message names
    that kind, also where a plain one comes first."""
    topology = mp.Topology()
    topology.add_beads([[0.0, 0, 0], [1.0, 0, 0]], 1.0)
    other = OTHERS[kind](topology)
    system = mp.System(topology)
    trap = system.add_force(mp.forces.HarmonicTrap([int(other.beads[-1])], 1.0, [0.0, 0.0, 0.0]))
    word = "BAGAB" if topology.point_handles else "BAB"
    named = re.escape(repr(other))
    for rule in (ZhangSkeel(0.3), ZhangSkeelSimplified(0.3, positive_definite=True), PushForwardNewmark(0.3)):
        with pytest.raises(mp.ParameterError, match=f"kicks plain beads, and {named} are others"):
            mp.Context(system, mp.SplittingIntegrator(word, 0.01, kick=rule))
    with pytest.raises(mp.ParameterError, match=f"'{trap.name}' acts on {named}, which are not plain"):
        mp.Context(system, mp.SplittingIntegrator(word, 0.01, kick=ZhangSkeelStiff(0.3, trap.name)))


@pytest.mark.parametrize("word", ["BAGAB", "BAGOGAB"])
def test_other_kinds_beside_stiff_kicks_move_as_under_explicit_ones(word):
    """ZhangSkeelStiff with bonds of plain beads: every other kind, pulled and pushed by forces of its own, has the bits
    of a run with explicit kicks; the plain beads have not."""
    topology = mp.Topology()
    chain = topology.add_beads(np.arange(12.0)[:, None] * [1.0, 0.02, 0.0] - [0.0, 30.0, 0.0], 1.0, 0.4)
    others = [add(topology) for add in OTHERS.values()]
    system = mp.System(topology)
    system.add_force(mp.forces.HarmonicBonds(np.column_stack([chain.beads[:-1], chain.beads[1:]]), 50.0, 0.9))
    for i, handle in enumerate(topology.handles):
        system.add_force(mp.forces.HarmonicTrap(handle, 0.2 + 0.1 * i, [0.3, 0.1, 0.0], name=f"trap {i}"))
    states = []
    for kick in (ZhangSkeelStiff(0.3, ["HarmonicBonds"]), None):
        kT = 0.5 if "O" in word else None
        context = mp.Context(system, mp.SplittingIntegrator(word, 0.02, kick=kick, kT=kT, seed=8), threads=2)
        context.set_velocities_to_temperature(kT=0.5, seed=9)
        context.step(40)
        states.append(context.get_state(positions=True, velocities=True))
    implicit, explicit = states
    rest = mp.Context(system, mp.SplittingIntegrator(word, 0.02, kT=kT), threads=1).get_state(positions=True).positions
    for handle in others:
        assert np.abs(implicit.positions[handle.beads] - rest[handle.beads]).max() > 0.05
    mask = np.ones(topology.n_beads, bool)
    mask[chain.beads] = False
    assert np.array_equal(implicit.positions[mask], explicit.positions[mask])
    assert np.array_equal(implicit.velocities[mask], explicit.velocities[mask])
    assert np.array_equal(implicit.orientations, explicit.orientations)
    assert np.array_equal(implicit.angular_momenta, explicit.angular_momenta)
    assert np.abs(implicit.positions[~mask] - explicit.positions[~mask]).max() > 1e-6


def test_a_force_without_derivatives_is_named():
    _, system = network()
    system.add_force(mp.forces.PythonForce(lambda x: (0.0, np.zeros_like(x)), name="mine"))
    with pytest.raises(mp.ParameterError, match="ZhangSkeelSimplified: the force 'mine' offers no second derivatives"):
        mp.Context(system, mp.SplittingIntegrator("BAB", 1.0, kick=ZhangSkeelSimplified()))


def test_documents():
    """Integrators with kicks come back from documents."""
    for kick in (
        ZhangSkeel(0.3), ZhangSkeelStiff(0.4, ["a", "b"]), PushForwardNewmark(0.25, "one-step"),
        ZhangSkeelSimplified(0.3, positive_definite=True), ZhangSkeelStiff(0.4, ["a"], positive_definite=True),
        ZhangSkeel(0.3, positive_definite=True),
    ):  # fmt: skip
        integrator = mp.SplittingIntegrator("OBABO", 0.1, kT=1.0, kick=kick, order=4)
        again = mp.deserialize(mp.serialize(integrator))
        assert repr(again) == repr(integrator)
        assert again.kick.beta == kick.beta
        assert again.letters == integrator.letters
        assert getattr(again.kick, "positive_definite", None) == getattr(kick, "positive_definite", None)


def test_checkpoints_know_kick_and_order(tmp_path):
    """A checkpoint goes on with the same kick and order only; how explicit ones were asked for does not matter."""
    def make(**options):
        return mp.Simulation(network()[1], mp.SplittingIntegrator("BAB", 0.1, **options))

    make(kick=ZhangSkeelStiff(0.3, ["HarmonicBonds"])).save_checkpoint(tmp_path / "coarse")
    make().save_checkpoint(tmp_path / "plain")
    make(kick=ZhangSkeelStiff(0.3, ["HarmonicBonds"])).load_checkpoint(tmp_path / "coarse")
    make(kick=Explicit(), order=2).load_checkpoint(tmp_path / "plain")
    for file, options, what in [
        ("coarse", {}, "kick"),
        ("coarse", {"kick": ZhangSkeelStiff(0.4, ["HarmonicBonds"])}, "kick"),
        ("coarse", {"kick": ZhangSkeelStiff(0.3, ["HarmonicBonds", "HarmonicTrap"])}, "kick"),
        ("plain", {"order": 4}, "order: 2 in the file, 4 here"),
    ]:
        refuses(mp.ParameterError, what, make(**options).load_checkpoint, tmp_path / file)


def test_composition():
    """Yoshida's weights; O stays whole at the ends."""
    letters = mp.SplittingIntegrator("OBABO", 1.0, kT=1.0, order=4).letters
    assert "".join(letter.kind for letter in letters) == "OBABBABBABO"
    assert [letter.fraction for letter in letters[::10]] == [0.5, 0.5]
    w = 1.0 / (2.0 - 2.0 ** (1.0 / 3.0))
    assert [letter.fraction for letter in letters if letter.kind == "A"] == pytest.approx([w, 1.0 - 2.0 * w, w])
    assert sum(letter.fraction for letter in letters if letter.kind == "B") == pytest.approx(1.0)
