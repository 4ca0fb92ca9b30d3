"""Tables of domains: docstrings say the same. That what they say holds is in the contract of every force."""

import inspect
import re

import numpy as np
import pytest
from builders import refuses

import medyanpy as mp
from medyanpy._tools.domains import Domain, domain_table
from medyanpy.forces import Force

CLASSES = [getattr(mp.forces, name) for name in mp.forces.__all__]
# Those of an `ExternalField` are what its expression names.
TABLES = {cls.__name__: cls.domains for cls in CLASSES if cls.domains}


def documented(cls):
    """{name: what is said of it} of the parameters of a class, of which several may share a line."""
    lines = re.findall(r"^(\w+(?:, \w+)*) : (.*)$", inspect.getdoc(cls), re.M)
    return {name: said for names, said in lines for name in names.split(", ")}


def test_every_force_with_numbers_has_a_table():
    without = {cls.__name__ for cls in CLASSES} - set(TABLES)
    written = {"CustomBonds", "CustomMembraneField", "CustomPair", "ExternalField"}
    assert without == {"Force", "PythonForce", "PythonMembraneField", *written}
    for cls in CLASSES:
        assert tuple(cls.domains) == cls.changeable
        # What the constructor takes, by the same names.
        assert set(cls.domains) <= set(cls.__signature__.parameters) | {"switchover"}


@pytest.mark.parametrize("name", TABLES)
def test_docstrings_say_what_the_table_says(name):
    cls = getattr(mp.forces, name)
    said = documented(cls)
    for number, domain in cls.domains.items():
        # What is passed on as it is has the docstring of what it is passed on to.
        if number not in cls.__signature__.parameters or (cls is mp.forces.RodCollision and number == "skin"):
            continue
        text = said[number]
        if text.endswith(", optional"):
            assert cls.__signature__.parameters[number].default is None
            text = text.removesuffix(", optional")
        text = text.replace("float or None, ", "float, ").replace("; or (F,) float with `per_triangle`", "")
        many = re.search(r"\([A-Za-z],", text)
        many = f"{many[0]})" if many else "(n,)"
        wanted = domain.in_words(many)
        if domain.per in ("handles", "shapes"):
            wanted = wanted.replace("(n,) float", "one per handle")
        assert text.replace("float, or one per handle", "float or one per handle") == wanted, number


@pytest.mark.parametrize(("domain", "said"), [
    (Domain(), "float, finite"),
    (Domain("nm", above=0.0), "float, nm, > 0"),
    (Domain("pN/nm", at_least=0.0, per="pairs"), "float or (B,) float, pN/nm, >= 0"),
    (Domain("radians", at_least=0.0, below=np.pi, per="joints"), "float or (B,) float, radians, >= 0 and < π"),
    (Domain("", above=-1.5, at_most=2.0), "float, > -1.5 and <= 2"),
    (Domain("pN", size=3), "(3,) float, pN, finite"),
    (Domain("pN", size=3, per="beads"), "(3,) or (B, 3) float, pN, finite"),
    (Domain("pN/nm", at_least=0.0, size=3, or_number=True), "float or (3,) float, pN/nm, >= 0"),
    (Domain("pN", above=0.0, size=2, or_number=True, per="links"), "float, (2,) or (B, 2) float, pN, > 0"),
])  # fmt: skip
def test_in_words(domain, said):
    assert domain.in_words("(B,)") == said


def test_messages_name_object_place_value_and_bound():
    angle = Domain("radians", at_least=0.0, below=np.pi, per="joints")
    with pytest.raises(mp.ParameterError) as refused:
        angle.checked("bend: rest_angle", [1.0, 4.0], 2)
    assert str(refused.value) == "bend: rest_angle[1] = 4.0 but must be finite and >= 0 and < π (radians)"
    with pytest.raises(mp.ParameterError) as refused:
        Domain("nm", above=0.0, per="beads", size=3).checked("axes", [[1.0, 2.0, 3.0], [1.0, 2.0, 0.0]], 2)
    assert str(refused.value) == "axes[1, 2] = 0.0 but must be finite and > 0"


def test_a_table_gives_what_can_be_set_and_cannot_be_written_to():
    class Own(Force):
        domains = domain_table(k=Domain("pN/nm", at_least=0.0), c=Domain("nm", size=3))

        def __init__(self, k, c):
            super().__init__()
            self._declare(k=k, c=c)

        def bind(self, layout):
            raise NotImplementedError

    class Other(Own):
        changeable = ("k",)

    assert (Own.changeable, Other.changeable) == (("k", "c"), ("k",))
    force = Own(1.0, [1, 2, 3])
    force.k = 2
    assert force.parameters["k"] == 2.0
    refuses(mp.ParameterError, r"Own: k = -1.0 but must be finite and >= 0", setattr, force, "k", -1)
    refuses(mp.ParameterError, r"Own: c must have shape \(3,\), not \(2,\)", force.set, c=[1.0, 2.0])
    with pytest.raises(TypeError):
        Own.domains["k"] = Domain()
