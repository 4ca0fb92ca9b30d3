"""`medyanpy.testing.check_force`, to which others trust their forces: each of its clauses, broken alone, is noticed."""

from types import SimpleNamespace

import numpy as np
import pytest
from builders import refuses

import medyanpy as mp
from medyanpy._tools import quaternions
from medyanpy._tools.validation import per_item
from medyanpy.testing import ForceCase, check_force
from medyanpy.testing import forces as contract

PLACES = np.array([[0.0, 0, 0], [1.0, 2.0, 0.5], [-1.0, 1.0, 2.0], [0.5, -1.5, 1.0]])
PAIRS = [[0, 1], [1, 2], [3, 0]]
K, R0 = np.array([10.0, 20.0, 30.0]), np.array([2.0, 2.5, 1.5])
LENGTH = 1.5


def build():
    topology = mp.Topology()
    topology.add_beads(PLACES, mass=1.0)
    return topology, mp.forces.HarmonicBonds(PAIRS, K, R0)


def energy(x):
    r = np.linalg.norm(np.subtract(*(x[side] for side in np.transpose(PAIRS))), axis=1)
    return np.sum(0.5 * K * (r - R0) ** 2)


SOUND = ForceCase("bonds", build, energy, LENGTH)
# Of the forces, to which errors are compared.
SCALE = float(np.abs(contract._state(SOUND)[0].forces).max())
ARM = [0.0, 1.5, -0.5]


def build_on_a_body():
    topology = mp.Topology()
    body = topology.add_rigid_bodies([[0.5, 0, 0]], [[0.8, 0.6, 0, 0]], 1.0, (1.0, 1.5, 2.0), (0.0, 0.0))
    return topology, mp.forces.HarmonicTrap(body.sites([ARM])[0], 3.0, [1.0, -2.0, 3.0])


def energy_on_a_body(x, q):
    away = x + quaternions.turned(q, np.array([ARM])) - [1.0, -2.0, 3.0]
    return 0.5 * 3.0 * np.sum(away**2)


BODY = ForceCase("trap of an arm", build_on_a_body, energy_on_a_body, LENGTH)


def fails(case, match):
    refuses(AssertionError, f"^{case.name}: .*{match}", check_force, case)


@pytest.mark.parametrize("case", [SOUND, BODY], ids=lambda case: case.name)
def test_a_sound_force_passes(case):
    check_force(case)


@pytest.mark.parametrize(
    ("extra", "match"),
    [
        # Four times what rounding is allowed.
        (lambda d: 4e-12 * SCALE * LENGTH, "energy .*, independently"),
        # Twice what differences are allowed, in one component of one bead.
        (lambda d: 4e-6 * SCALE * d[2, 1], "force on bead 2, component 1"),
        # Beside the place, where every force is right, the error falls as h and not as h².
        (lambda d: 0.1 * SCALE / LENGTH * np.sum(d * np.abs(d)), "error falls as"),
    ],
    ids=["energy", "force", "order"],
)
def test_an_energy_that_is_not_that_of_the_force(extra, match):
    fails(ForceCase("bonds", build, lambda x: energy(x) + extra(x - PLACES), LENGTH), match)


def altered(case, monkeypatch, change, **when):
    """The state of a force, changed where it is asked for in this way."""
    sound = contract._state

    def state(case, threads=1, copies=1, energy=True):
        state, x = sound(case, threads, copies, energy)
        asked = {"threads": threads, "copies": copies, "energy": energy}
        if all(asked[name] == value for name, value in when.items()):
            read = ["forces", "torques", "orientations"] + ["energies", "potential_energy", "virial"] * energy
            state = SimpleNamespace(**{**{name: getattr(state, name) for name in read}, **change(state)})
        return state, x

    monkeypatch.setattr(contract, "_state", state)
    return case


def one_bit(state):
    forces = state.forces.copy()
    forces[2, 1] = np.nextafter(forces[2, 1], np.inf)
    return {"forces": forces}


def turned(state):
    torques = state.torques.copy()
    torques[0, 2] += 4e-6 * max(np.abs(state.forces).max(), np.abs(torques).max() / LENGTH) * LENGTH
    return {"torques": torques}


def strained(state):
    virial = state.virial.copy()
    virial[0, 2] += 4e-6 * SCALE * np.abs(PLACES).sum()
    return {"virial": virial}


@pytest.mark.parametrize(("case", "change", "when", "match"), [
    (SOUND, lambda state: {"forces": np.zeros_like(state.forces)}, {}, "exerts no force"),
    (SOUND, lambda state: {"forces": np.full_like(state.forces, np.nan)}, {}, "forces are not finite"),
    (SOUND, strained, {}, r"virial\[0, 2\]"),
    (BODY, turned, {}, "torque on oriented bead 0, component 2"),
    (SOUND, one_bit, {"threads": 2}, "forces differ between 1 and 2 threads"),
    (SOUND, one_bit, {"threads": 4}, "forces differ between 1 and 4 threads"),
    (SOUND, lambda state: {"energies": {name: np.nextafter(e, 1e9) for name, e in state.energies.items()}},
     {"threads": 3}, "energy differs between 1 and 3 threads"),
    (SOUND, one_bit, {"energy": False}, "whether the energy is wanted"),
    (SOUND, one_bit, {"copies": 2}, "do not give twice one"),
])  # fmt: skip
def test_results_that_are_not_those_of_the_energy_or_depend_on_how_they_are_asked_for(
    case, change, when, match, monkeypatch
):
    fails(altered(case, monkeypatch, change, **when), match)


class Claims(mp.forces.UniformField):
    conserves_momentum = True


@pytest.mark.parametrize(
    ("pulls", "match"),
    [([[1.0, 0, 0], [0, 0, 0]], "there is a net force"), ([[1.0, 0, 0], [-1.0, 0, 0]], "there is a net torque")],
)
def test_momentum_that_is_claimed_to_be_conserved(pulls, match):
    def build():
        topology = mp.Topology()
        beads = topology.add_beads(PLACES[:2], mass=1.0)
        return topology, Claims([beads], pulls)

    fails(ForceCase("field", build, lambda x: -np.sum(x * pulls), LENGTH), match)


@pytest.mark.parametrize(("of", "match"), [
    ("skew", "the Hessian is not symmetric"),
    ("hessian", "second derivative in component 1 of bead 0 and component 1 of bead 0"),
    ("third", "third derivative along a direction, component 2 of bead 1"),
])  # fmt: skip
def test_wrong_higher_derivatives(of, match, monkeypatch):
    name = "third" if of == "third" else "hessian"
    sound = getattr(contract._Anywhere, name)

    def wrong(self, *args):
        out = sound(self, *args)
        off = 1e-5 * np.abs(out).max()
        out[(1, 1) if of == "hessian" else (1, 2)] += off
        return out

    monkeypatch.setattr(contract._Anywhere, name, wrong)
    fails(SOUND, match)


def broken(**members):
    """The sound case with a force of a class changed in these members."""

    def build_broken():
        topology, force = build()
        force.__class__ = type("Broken", (mp.forces.HarmonicBonds,), members)
        return topology, force

    return ForceCase("bonds", build_broken, energy, LENGTH)


@pytest.mark.parametrize(("members", "match"), [
    ({"stiffness": property(lambda self: 5.0, lambda self, value: None)}, "stiffness reads 5.0"),
    ({"parameters": property(lambda self: {"stiffness": K.copy()}), "stiffness": property(lambda self: K)},
     "stiffness is an array that can be written to"),
    ({"set": lambda self, **numbers: None}, "assigning to stiffness is not noticed"),
    ({"set": lambda self, **n: mp.forces.HarmonicBonds.set(self, **{"length": 1.01 * self.length, **n})},
     "assigning stiffness to itself changes length"),
    ({"extra": property(lambda self: 1, lambda self, value: None)}, "extra can be assigned to"),
])  # fmt: skip
def test_numbers_that_cannot_be_trusted(members, match):
    fails(broken(**members), match)


SPRING = mp.forces.HarmonicBonds


def unbounded(force, name, value, n=None):
    return per_item(f"{force.name}: {name}", value, len(force.pairs))


def cautious(force, name, value, n=None):
    number = SPRING._in_domain(force, name, value, n)
    if np.ndim(value) == 0 and value == 0.0:
        raise mp.ParameterError(f"{force.name}: {name} = {value} but must be finite and > 0")
    return number


def mute(force, **numbers):
    try:
        return SPRING._checked(force, **numbers)
    except mp.ParameterError:
        raise mp.ParameterError(f"{force.name}: a number is wrong") from None


def hasty(force, **numbers):
    force._version += 1
    SPRING.set(force, **numbers)


def careless(force, **numbers):
    force._values = dict(force._values)
    SPRING.set(force, **numbers)


def stubborn(force, layout):
    now = force._values
    force._values = force.__dict__.setdefault("_first", now)
    operation = SPRING.bind(force, layout)
    force._values = now
    return operation


def tolerant(force, **numbers):
    SPRING.set(force, **{name: value for name, value in numbers.items() if name in force.changeable})


@pytest.mark.parametrize(("members", "match"), [
    ({"set": tolerant}, "any name can be set"),
    ({"bind": stubborn}, "a run does not follow where stiffness is set"),
    ({"_in_domain": unbounded}, "stiffness = -5e-324 is not refused"),
    ({"_in_domain": cautious}, "0.0 is in the domain of stiffness, but: "),
    ({"_checked": mute}, "a number is wrong' should begin with 'HarmonicBonds: stiffness = nan but must"),
    ({"set": hasty}, "stiffness = nan is refused and changes something"),
    ({"set": careless}, "stiffness = nan is refused and changes something"),
    ({"_arguments_now": lambda force: {**SPRING._arguments_now(force), "length": 3.0}},
     "made again from its arguments it has another length"),
])  # fmt: skip
def test_domains_that_are_not_kept(members, match):
    fails(broken(**members), match)
