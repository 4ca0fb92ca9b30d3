"""Every force keeps the contract of `medyanpy.testing`.

A new force adds one row to the list of its family in the folder `references`, which holds the energies in NumPy.
"""

import copy
import pickle
import sys
from pathlib import Path

import numpy as np
import pytest
from builders import refuses, system_with

import medyanpy as mp
from medyanpy._tools.described import made_anew
from medyanpy.testing import check_box, check_force

sys.path.insert(0, str(Path(__file__).parent))
from references.along_surfaces import ALONG_SURFACES
from references.bodies import ORIENTED
from references.bonds import BONDS
from references.fields import FIELDS
from references.filaments import FILAMENTS
from references.links import ANGLES, LINKS
from references.membranes import MEMBRANES
from references.pairs import ENDING, PAIRS_OF_BEADS
from references.penalties import PENALTIES
from references.walls import COLLISIONS, WALLS

CASES = [*BONDS, *PENALTIES, *LINKS, *ANGLES, *MEMBRANES, *PAIRS_OF_BEADS, *ENDING, *ALONG_SURFACES, *FIELDS,
         *FILAMENTS, *WALLS, *COLLISIONS, *ORIENTED]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_force_keeps_the_contract(case):
    check_force(case)


# What a box means nothing to, and why.
WITHOUT_BOX = {
    **dict.fromkeys(("charges", "charges of sites", "charges on bodies"), "acts at any distance"),
    **dict.fromkeys(("Lennard-Jones", "Yukawa of all pairs"), "acts at any distance"),
    **dict.fromkeys(("wall", "adhesion, wall"), "periodic along x, so that there is nothing behind a wall"),
}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_force_keeps_the_contract_in_a_box(case):
    if case.name in WITHOUT_BOX:
        refuses(mp.ParameterError, WITHOUT_BOX[case.name], check_box, case)
    else:
        check_box(case)


@pytest.mark.parametrize("case", [c for c in CASES if "Python" not in c.name], ids=lambda case: case.name)
def test_copies_and_documents_are_the_force(case):
    """With numbers that were set, name and group: the same bits. Functions of Python are in no document."""
    topology, force = case.build()
    values = {name: getattr(force, name) for name in force.changeable}
    # At once: some must stay below others.
    force.set(**{name: value / 3.0 for name, value in values.items() if isinstance(value, float | np.ndarray)})
    arguments = {**force._arguments_now(), "name": "own", "group": 3}
    force = made_anew(type(force), arguments, {})
    system = system_with(topology, force)

    def look(system):
        context = mp.Context(system, mp.SplittingIntegrator("BAGAB" if topology.point_handles else "BAB", 1e-3))
        return context.get_state(energy=True, forces=True)

    expected, text = look(system), mp.serialize(system)
    assert mp.serialize(mp.deserialize(text)) == text
    for other in (copy.deepcopy(system), pickle.loads(pickle.dumps(system)), mp.deserialize(text)):
        again, state = other.forces[0], look(other)
        assert (again.name, again.group, repr(again)) == ("own", 3, repr(force))
        assert state.energies == expected.energies
        assert (state.forces == expected.forces).all()
        assert (state.torques == expected.torques).all()
