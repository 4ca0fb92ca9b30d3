"""Reactions as text: what is read, and how mistakes are shown."""

import copy
import pickle

import pytest
from builders import refuses

import medyanpy as mp
from medyanpy.jumps._reaction_texts import read_reactions

Reaction = mp.jumps.Reaction


@pytest.mark.parametrize(
    ("text", "reactants", "products", "reversible", "numbers"),
    [
        ("A + B <-> C", "A B", "C", True, {}),
        ("A+B<->C", "A B", "C", True, {}),
        ("A->B", "A", "B", False, {}),
        ("2 A -> D", "A A", "D", False, {}),
        ("A + A -> D", "A A", "D", False, {}),
        ("A + B + A <-> 3 C", "A B A", "C C C", True, {}),
        ("0 -> A", "", "A", False, {}),
        ("A -> ∅", "A", "", False, {}),
        ("0 -> 20 A ; rate=3e-2", "", "A " * 20, False, {"rate": 0.03}),
        (" A + E ->  B + E; rate = -1.5 ", "A E", "B E", False, {"rate": -1.5}),
        ("G-actin + Arp2/3<->alpha-actinin;k_on=2,k_off = 1.", "G-actin Arp2/3", "alpha-actinin", True,
         {"k_on": 2.0, "k_off": 1.0}),
        ("14-3-3 + _x(1) -> Ca'", "14-3-3 _x(1)", "Ca'", False, {}),
        ("A-B->C", "A-B", "C", False, {}),
    ],
)  # fmt: skip
def test_texts_are_read_and_written(text, reactants, products, reversible, numbers):
    (reaction,) = read_reactions("Reactions", text)
    assert reaction.reactants == tuple(reactants.split())
    assert reaction.products == tuple(products.split())
    assert reaction.reversible is reversible
    assert dict(reaction.numbers) == numbers
    assert read_reactions("Reactions", str(reaction)) == (reaction,)
    for same in (copy.deepcopy(reaction), pickle.loads(pickle.dumps(reaction))):
        assert same == reaction
        assert hash(same) == hash(reaction)


def test_several_reactions_are_lines_or_a_list():
    first, second, third = "A -> B; rate = 1.0", "0 <-> A", "2 A -> D"
    lines = read_reactions("Reactions", f"\n  {first}\n\n{second}\r\n")
    assert [str(reaction) for reaction in lines] == [first, second]
    assert read_reactions("Reactions", [first, lines[1], Reaction(["A", "A"], ["D"])]) == (
        *lines, *read_reactions("Reactions", third),
    )  # fmt: skip
    assert read_reactions("Reactions", lines) == lines
    assert read_reactions("Reactions", lines[0]) == lines[:1]


def test_reactions_tell_what_they_change():
    (reaction,) = read_reactions("Reactions", "A + E + A -> B + E")
    assert reaction.species == ("A", "E", "B")
    assert reaction.changes() == {"A": -2, "E": 0, "B": 1}
    assert reaction.equation == "A + E + A -> B + E"
    assert len({reaction, Reaction([*"AEA"], [*"BE"]), Reaction([*"AEA"], [*"BE"], numbers={"rate": 1.0})}) == 2
    with pytest.raises(AttributeError, match="cannot be assigned"):
        reaction.reversible = True


@pytest.mark.parametrize(
    ("text", "message", "place"),
    [
        ("A + B => C", "the arrow '=>' is not known: '->' and '<->' are", 6),
        ("A <=> C", "the arrow '<=>' is not known", 2),
        ("A --> C", "the arrow '-->' is not known", 2),
        ("A <- C", "the arrow '<-' is not known", 2),
        ("A ⇌ C", "the arrow '⇌' is not known", 2),
        ("A + B", "there is no arrow", 5),
        ("A - B; rate = 2", "there is no arrow", 5),
        ("A -> B -> C", "there is a second arrow: write one reaction on each line", 7),
        ("-> C", "a species is missing: write 0 for none at all", 0),
        ("A ->", "a species is missing: write 0 for none at all", 4),
        ("A + -> B", "a species is missing", 4),
        ("A + + B -> C", "a species is missing", 4),
        ("A B -> C", "there is no '+' between 'A' and 'B'", 1),
        ("A + 2 B C -> D", "there is no '+' between 'B' and 'C'", 7),
        ("2A -> D", "'2A' begins with a number: write '2 A' for 2 molecules", 0),
        ("A + 0 -> B", "'0' stands for no molecules: it cannot be added to others", 4),
        ("A + 7 -> B", "'7' is a number, not the name of a species", 4),
        ("0 A -> B", "'0' molecules, but must be 1 to 100", 0),
        ("0 -> 99999999999 A", "molecules, but must be 1 to 100", 5),
        ("A, -> B", "'A,' has a character that names of species cannot have", 0),
        ("4 A -> B", "more than 3 molecules would have to meet: write it as steps", 2),
        ("A + B + C + D -> E", "more than 3 molecules would have to meet", 12),
        ("E <-> A + B + 2 C", "more than 3 molecules would have to meet", 16),
        ("A + E -> E + A", "both sides are the same: nothing would change", 6),
        ("0 -> 0", "both sides are the same", 2),
        ("A -> B; rate = fast", "rate = 'fast' but must be a finite number", 14),
        ("A -> B; rate =", "rate = '' but must be a finite number", 14),
        ("A -> B; rate = inf", "rate = 'inf' but must be a finite number", 14),
        ("A -> B; 3.0", "'3.0' must be a name and its number, as in 'rate = 2.0'", 8),
        ("A -> B; rate = 1,", "'' must be a name and its number", 17),
        ("A -> B; k on = 1", "'k on = 1' must be a name and its number", 8),
        ("A <-> B; k_on = 1, k_on = 1", "'k_on' is given twice", 19),
        ("A -> B; rate = 1; x = 2", "rate = '1; x = 2' but must be a finite number", 14),
    ],
)
def test_mistakes_are_shown_in_the_text(text, message, place):
    with pytest.raises(mp.ParameterError) as info:
        read_reactions("Reactions", f"A -> B\n  {text}")
    first, shown, caret = str(info.value).split("\n")
    assert first.startswith("Reactions: ")
    assert message in first
    assert shown == f"    {text}"
    assert caret == "    " + " " * place + "^"


@pytest.mark.parametrize("given", ["", "\n \n", [], None, 3, [3], [["A -> B"]], ["A -> B", ""]])
def test_anything_but_a_reaction_is_refused(given):
    refuses(mp.ParameterError, r"^Reactions: ", read_reactions, "Reactions", given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((["A"] * 4, ["B"]), "reactants are 4 molecules, but must be at most 3"),
        ((["A"], ["B"] * 101), "products are 101 molecules, but must be at most 100"),
        ((["A", ""], ["B"]), r"reactants\[1\]: the species '' has no name"),
        ((["A"], [7]), r"products\[0\]: the species 7 must be text"),
        ((["A b"], ["B"]), "the species 'A b' has a character"),
        ((["0"], ["B"]), "stands for no molecules"),
        ((3, ["B"]), "reactants = 3 but must be a list"),
        ((["A", "B"], ["B", "A"]), "reactants and products are the same"),
    ],
)
def test_objects_that_no_text_could_be_are_refused(given, message):
    refuses(mp.ParameterError, message, Reaction, *given)


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ({"rate": float("nan")}, "rate = nan"),
        ({"rate": "fast"}, "rate"),
        ({"my rate": 1.0}, "'my rate' is not a name"),
        ({3: 1.0}, "3 is not a name"),
        ([1.0], r"numbers = \[1.0\] but must be a dict"),
    ],
)
def test_numbers_are_checked(numbers, message):
    refuses(mp.ParameterError, message, Reaction, ["A"], ["B"], numbers=numbers)
    refuses(mp.ParameterError, "must be at most 3", Reaction, ["A"], ["B"] * 4, reversible=True)
