"""Arguments that a class declares once: its constructor, domains, attributes and rows of its docstring."""

import inspect
import pickle
import re
from dataclasses import InitVar

import numpy as np
import pytest
from builders import refuses, system_with
from medyanpy._kernels.forces.radial import Radial

import medyanpy as mp
from medyanpy.errors import ArgumentError
from medyanpy.forces._base import Each, Force, Given, argument, declared, number
from medyanpy.forces.pairs import EndingPair


@declared
class Screened(EndingPair):
    """A pair force as a reader would add one.

    Parameters
    ----------
    cutoff
        Of the screening.

    Notes
    -----
    None.
    """

    strength: float = number("pN nm²", "A.")
    screening_length: float = number("nm", "λ.", default=2.0, above=0.0)

    def _kernel(self):
        return Radial.YUKAWA, self._named("strength", "screening_length"), 0.0, ()


@declared
class Terms(Force):
    """A force of terms."""

    pairs: Given["Rows", np.ndarray] = argument("(B, 2) int", "Beads.", attribute="(B, 2) beads.")  # noqa: F821
    stiffness: Each = number("pN/nm", "k.", at_least=0.0, per="pairs", many="(B,)")
    soft: InitVar[bool] = argument("bool", "Whether it is soft.", default=False, kw_only=True)

    def _take(self, given):
        super()._take(given)
        self._pairs = np.array(given["pairs"])

    def bind(self, layout):
        raise NotImplementedError


def test_the_constructor_is_that_of_the_declarations():
    """Arguments by position from base classes on, those by name alone from the class itself on."""
    assert list(inspect.signature(Screened).parameters) == ["group_a", "group_b", "strength", "screening_length",
                                                            "cutoff", "switch", "shift", "exclusions", "skin",
                                                            "along_surface", "name", "group"]  # fmt: skip
    assert str(inspect.signature(Terms)) == (
        "(pairs: Rows, stiffness: Numbers, *, soft: bool = False, name: str | None = None, group: int = 0)"
    )
    beads = mp.Topology().add_beads([[0.0, 0, 0], [1.0, 0, 0]], mass=1.0)
    force = Screened(beads, beads, 3, cutoff=5.0, name="mine", group=2)
    assert (force.strength, force.screening_length, force.cutoff, force.switch) == (3.0, 2.0, 5.0, None)
    assert (force.name, force.group, force.shift) == ("mine", 2, True)
    assert Screened.changeable == ("strength", "screening_length", "cutoff", "switch", "skin")


def test_it_acts_as_the_force_that_it_repeats():
    topology = mp.Topology()
    beads = topology.add_beads([[0.0, 0, 0], [1.5, 0, 0]], mass=1.0)
    system = system_with(topology, Screened(beads, beads, 3.0, cutoff=5.0),
                         mp.forces.Yukawa(beads, beads, 3.0, 2.0, cutoff=5.0))  # fmt: skip
    energies = mp.Context(system, mp.VerletIntegrator(0.01)).get_state(energy=True).energies
    assert energies["Screened"] == energies["Yukawa"] > 0.0


@pytest.mark.parametrize(("call", "message"), [
    (lambda: Terms([[0, 1]]), "Terms needs the argument 'stiffness'"),
    (lambda: Terms([[0, 1]], 1.0, pairs=[[0, 1]]), "was given the argument 'pairs' twice"),
    (lambda: Terms([[0, 1]], 1.0, True), "was given 3 arguments without a name, but only these go without: pairs"),
    (lambda: Terms([[0, 1]], stifness=1.0), r"no argument 'stifness': did you mean 'stiffness'\?"),
])  # fmt: skip
def test_wrong_calls_are_refused(call, message):
    refuses(ArgumentError, message, call)


def test_values_outside_of_what_is_declared_are_refused():
    with pytest.raises(mp.ParameterError, match=r"Terms: stiffness\[1\] = -1.0 but must be finite and >= 0"):
        Terms([[0, 1], [1, 2]], [1.0, -1.0])
    for wrong in ({"soft": "no"}, {"name": 3}):
        refuses(mp.ParameterError, rf"Terms: {next(iter(wrong))} must be", Terms, [[0, 1]], 1.0, **wrong)
    force = Terms([[0, 1]], 1.0)
    refuses(mp.ParameterError, "pairs cannot be assigned to", setattr, force, "pairs", [[1, 2]])
    assert force.pairs.tolist() == [[0, 1]]
    assert not hasattr(force, "soft")


def test_docstrings_have_a_row_for_each_argument():
    """Rows alike share one; what a class writes itself wins, and keeps the type."""
    rows = re.findall(r"^(\w.*)\n    (.*)$", Screened.__doc__.partition("\nRaises\n")[0], re.M)
    assert rows == [
        ("group_a, group_b : handle, list of handles, (n,) int, or Sites", "As in `SoftSphere`."),
        ("strength : float, pN nm², finite", "A."),
        ("screening_length : float, nm, > 0", "λ."),
        ("cutoff : float, nm, > 0, optional", "Of the screening."),
        ("switch : float, nm, > 0, optional", "As in `LennardJones`."),
        ("shift : bool", "As in `LennardJones`."),
        ("exclusions : (E, 2) int, optional", "As in `SoftSphere`."),
        ("skin : float, nm, >= 0, optional", "As in `SoftSphere`; 0.4 times the cutoff where none is given."),
        ("along_surface : bool", "As in `SoftSphere`."),
        ("name, group", "See `Force`."),
    ]
    assert "stiffness : float or (B,) float, pN/nm, >= 0\n    k.\n" in Terms.__doc__
    assert Terms.__doc__.startswith("A force of terms.\n\nParameters\n----------\npairs : (B, 2) int\n    Beads.\n")
    assert Terms.pairs.__doc__ == "(B, 2) beads."


def test_pickles_have_the_numbers_as_they_are():
    force = Terms([[0, 1]], 1.0)
    force.stiffness = 3.0
    again = pickle.loads(pickle.dumps(force))
    assert (again.stiffness, again.pairs.tolist()) == (3.0, [[0, 1]])
