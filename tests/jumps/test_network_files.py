"""Networks of reactions from BNGL and SBML: amounts, rates and their units, and what is refused, by its line."""

import numpy as np
import pytest
from builders import refuses

import medyanpy as mp
from medyanpy._tools.arithmetic import value_of
from medyanpy.errors import ParameterError
from medyanpy.testing import check_mean

# Of files: reaches no kernel but in one run.
pytestmark = pytest.mark.slow

AVOGADRO = 6.02214076e23

BNGL = """\
# a comment
begin model
begin parameters
    NA   6.0
    kf = 2*NA^2/(1 + 5) \\
        + 0   # 12 by hand
    3 kr  sqrt(16)
    A0    10*NA
end parameters
begin molecule types
    A()
    B()
end molecule types
begin seed species
    1 A()  A0
    B 25
    $E() 4
end seed species
begin observables
    Molecules total A()
end observables
begin reaction rules
    bind: A() + B() <-> C() kf, kr
    A + A -> D 3
    0 -> B() 7
    4 D() -> 0 exp(0)
    B + E -> E + C kr/2
end reaction rules
end model
simulate({method=>"ssa", t_end=>10})
"""


def written(tmp_path, text, ending=".bngl"):
    path = tmp_path / f"model{ending}"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_in_bngl(tmp_path):
    """Rates of molecules become those of concentrations: times the volume for each partner, and half for pairs."""
    network = mp.jumps.read_network(written(tmp_path, BNGL), volume=100.0)
    assert (dict(network.counts), dict(network.concentrations)) == ({"A": 60, "B": 25, "C": 0, "D": 0}, {"E": 0.04})
    assert [str(one) for one in network.reactions] == [
        "A + B <-> C; k_on = 1200.0, k_off = 4.0",
        "2 A -> D; rate = 150.0",
        "0 -> B; rate = 0.07",
        "D -> 0; rate = 1.0",
        "B + E -> E + C; rate = 200.0",
    ]
    assert network.left_out == ("line 20: Molecules total A()", 'line 30: simulate({method=>"ssa", t_end=>10})')
    pool = network.pool("cytosol")
    assert (pool.name, pool.volume) == ("cytosol", 100.0)


def test_a_file_in_bngl_of_concentrations(tmp_path):
    unit, volume = mp.units.micromolar, 1e9
    network = mp.jumps.read_network(written(tmp_path, BNGL), volume=volume, concentration=unit)
    assert network.counts["A"] == round(60.0 * unit * volume)
    assert network.concentrations["E"] == pytest.approx(4.0 * unit)
    first, pairs, source, decay, _ = (one.numbers for one in network.reactions)
    assert first == pytest.approx({"k_on": 12.0 / unit, "k_off": 4.0})
    assert pairs["rate"] == pytest.approx(1.5 / unit)
    assert (source["rate"], decay["rate"]) == pytest.approx((7.0 * unit, 1.0))


@pytest.mark.parametrize("ending", [".bngl", ".sbml"])
def test_networks_of_both_run_to_the_same_law(tmp_path, ending):
    """A + B <-> C of 30 and 20 molecules with k_f 0.01 and k_r 0.5 for each: weights (k_f/k_r)^c/(a! b! c!)."""
    if ending == ".bngl":
        path, volume = written(tmp_path, "begin seed species\nA() 30\nB() 20\nend seed species\nbegin reaction rules\n"
                               "A() + B() <-> C() 0.01, 0.5\nend reaction rules\n"), 1e6  # fmt: skip
    else:
        # 1 fl; per concentration in nmol/l the rate constant is that of molecules times N_A V.
        k = 0.01 * AVOGADRO * 1e-15 * 1e-9
        path, volume = written(tmp_path, sbml(f"cell*({k!r}*A*B - 0.5*C)", amounts=(30, 20, 0)), ending), None
    network = mp.jumps.read_network(path, volume=volume)
    assert dict(network.counts) == {"A": 30, "B": 20, "C": 0}
    system = mp.System(mp.Topology())
    system.topology.add_beads([[0.0, 0.0, 0.0]], 1.0, 1.0)
    pool = system.add_pool(network.pool())
    jump = system.add_jump(mp.jumps.Reactions(pool, network.reactions))
    assert not jump.driven
    simulation = mp.Simulation(system, mp.BrownianIntegrator(2.0, kT=1.0, seed=2), threads=1)
    simulation.step(10)
    found = []
    for _ in range(4000):
        simulation.step(1)
        found.append(simulation.context.get_state().pools["C"])
    c = np.arange(21)
    log = c * np.log(0.02) - np.array([sum(np.log(np.arange(1, n + 1)).sum() for n in (30 - k, 20 - k, k)) for k in c])
    weight = np.exp(log - log.max())
    check_mean("C", np.array(found, float), weight @ c / weight.sum(), sees=0.3, time_series=True)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("A(b) 10", "line 2: 'A(b)' has components, bonds or a compartment"),
        ("A(b!1).B(a!1) 10", "line 2: 'A(b!1).B(a!1)' has components"),
        ("@cell:A() 10", "line 2: '@cell:A()' has components, bonds or a compartment"),
        ("A()", "line 2: A has no amount"),
        ("A() x", "line 2: 'x': x has no value"),
        ("A() -1", "line 2: A is -1 molecules, but must be >= 0"),
        ("A() 1\nA 2", "line 3: the amount of A is given twice"),
        ("A() 1e400", "line 2: '1e400' is inf, but must be a finite number"),
        ("A() 9^9^9^9", "is not a number or a formula"),
        ("A() __import__('os').getpid()", "is not a formula of constants"),
    ],
)
def test_refusals_of_species(tmp_path, line, said):
    text = f"begin seed species\n{line}\nend seed species\nbegin reaction rules\nA -> B 1\nend reaction rules\n"
    with pytest.raises(ParameterError) as error:
        mp.jumps.read_network(written(tmp_path, text), volume=1.0)
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("A(b) + B(a) -> A(b!1).B(a!1) 1", "line 2: 'A(b)' has components, bonds"),
        ("A() -> A(x~p) 1", "has components, bonds"),
        ("A() + B() C() 1", "must have one arrow"),
        ("A() <-> B() 1", "line 2: two rates must stand behind the products, not '1'"),
        ("A() -> B()", "line 2: one rate must stand behind the products, not ''"),
        ("A() -> B() 1, 2", "one rate must stand behind the products"),
        ("A() -> B() Sat(1, 2)", "'Sat(1, 2)' is not a rate of mass action"),
        ("A() -> B() k*total", "k has no value"),
        ("A() -> B() -1", "the rate '-1' is -1, but must be >= 0"),
        ("A() -> A() 1", "reactants and products are the same"),
        ("A + A + A + A -> B 1", "more than 3 molecules would have to meet"),
        ("A + -> B 1", "there is no molecule in ''"),
    ],
)
def test_refusals_of_rules(tmp_path, line, said):
    text = f"begin reaction rules\n{line}\nend reaction rules\n"
    with pytest.raises(ParameterError) as error:
        mp.jumps.read_network(written(tmp_path, text), volume=1.0)
    assert said in str(error.value)
    assert "line 2" in str(error.value)


def test_refusals_of_files(tmp_path):
    read = mp.jumps.read_network
    rules = "begin reaction rules\nA -> B 1\nend reaction rules\n"
    refuses(ParameterError, "which has no volume: give volume=", read, written(tmp_path, rules))
    refuses(ParameterError, "volume = 0", read, written(tmp_path, rules), volume=0.0)
    refuses(ParameterError, "concentration = -1", read, written(tmp_path, rules), volume=1.0, concentration=-1.0)
    refuses(ParameterError, "cannot be read: No such file", read, tmp_path / "none.bngl", volume=1.0)
    refuses(ParameterError, "ends in '.net'", read, tmp_path / "a.net")
    for text, said in (
        ("begin parameters\nk 1\n", "parameters of line 1 has not ended"),
        ("begin parameters\nbegin species\n", "line 2: begin species, but parameters of line 1 has not ended"),
        ("end parameters\n", "line 1: end parameters, but no block has begun"),
        ("begin compartments\ncell 3 1\nend compartments\n", "line 1: pools have no compartments"),
        ("begin functions\nf() 1\nend functions\n", "pools have no functions"),
        ("begin parameters\nk 1\nk 2\nend parameters\n", "line 3: the parameter k is given twice"),
        ("begin parameters\nk\nend parameters\n", "must be a name and its number"),
        ("", "there is no reaction rule"),
    ):
        refuses(ParameterError, said, read, written(tmp_path, text), volume=1.0)
    (tmp_path / "latin.bngl").write_bytes(b"begin parameters\n\xe9 1\n")
    refuses(ParameterError, "is not text in UTF-8", read, tmp_path / "latin.bngl", volume=1.0)


def test_formulas_of_constants():
    assert value_of(" 2^3*(1 - 4)/-6 ", {}) == 4.0
    assert value_of("ln(_e^2) + max(1, x)", {"x": 3.0}) == pytest.approx(5.0)
    for text, said in (
        ("", "is not a number"), ("1/0", "division by zero"), ("y", "y has no value"), ("x.real", "not a formula"),
        ("[1]", "not a formula"), ("True", "not a formula"), ("1e200^2", "is not a number"), ("(-1)^0.5", "not a num"),
        ("(" * 400 + "1" + ")" * 400, "is not a number"), ("1" * 20_000, "more than 10000"), ("sqrt(-1)", "not a num"),
        ("2 if x else 3", "not a formula"), ("exp(x=1)", "not a formula"), ("open('a')", "not a formula"),
    ):  # fmt: skip
        refuses(ParameterError, said, value_of, text, {"x": 1.0})


def sbml(law, amounts=(1000, 500, 0), size=1e-15, level='level="3" version="2"', ns="level3/version2/core", units=True,
         more="", species="", reversible=True, left=(("A", 1), ("B", 1)), right=(("C", 1),)):  # fmt: skip
    """A model of nmol and litres, with molecules at the start, in one compartment."""
    from xml.sax.saxutils import quoteattr

    nano = AVOGADRO * 1e-9
    rows = "".join(
        f'<species id="{name}" compartment="cell" initialAmount={quoteattr(repr(n / nano))} '
        f'hasOnlySubstanceUnits="false" boundaryCondition="false" constant="false"/>'
        for name, n in zip("ABC", amounts, strict=True)
    )
    import libsbml

    math = libsbml.writeMathMLToString(libsbml.parseL3Formula(law)).split("\n", 1)[1]
    sides = [
        f"<{tag}>" + "".join(f'<speciesReference species="{s}" stoichiometry="{n}" constant="true"/>' for s, n in side)
        + f"</{tag}>" if side else ""
        for tag, side in (("listOfReactants", left), ("listOfProducts", right))
    ]  # fmt: skip
    told = 'substanceUnits="nmol" extentUnits="nmol" timeUnits="second" volumeUnits="litre"' if units else ""
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<sbml xmlns="http://www.sbml.org/sbml/{ns}" {level}>
<model id="m" {told}>
<listOfUnitDefinitions><unitDefinition id="nmol"><listOfUnits>
<unit kind="mole" exponent="1" scale="-9" multiplier="1"/></listOfUnits></unitDefinition></listOfUnitDefinitions>
<listOfCompartments><compartment id="cell" spatialDimensions="3" size="{size!r}" constant="true"/></listOfCompartments>
<listOfSpecies>{rows}{species}</listOfSpecies>
<listOfParameters><parameter id="kf" value="2" constant="true"/></listOfParameters>
{more}
<listOfReactions><reaction id="r" reversible="{str(reversible).lower()}">{"".join(sides)}
<kineticLaw>{math}</kineticLaw></reaction></listOfReactions>
</model></sbml>"""


def read(tmp_path, *args, **given):
    return mp.jumps.read_network(written(tmp_path, sbml(*args, **given), ".xml"))


def test_a_file_in_sbml(tmp_path):
    """Rates per nmol/l become nm³/s, of a reaction that goes both ways, of powers and quotients, and with catalysts."""
    per = 1e24 / (AVOGADRO * 1e-9)  # nm³/s of l/(nmol s).
    network = read(tmp_path, "cell*(kf*A*B - 3*C/4)")
    assert network.volume == pytest.approx(1e9)
    assert dict(network.counts) == {"A": 1000, "B": 500, "C": 0}
    (both,) = network.reactions
    assert (both.reactants, both.products, both.reversible) == (("A", "B"), ("C",), True)
    assert both.numbers == pytest.approx({"k_on": 2.0 * per, "k_off": 0.75})
    (pairs,) = read(tmp_path, "cell*kf*A^2", left=(("A", 2),), reversible=False).reactions
    assert (pairs.reactants, pairs.numbers["rate"]) == (("A", "A"), pytest.approx(2.0 * per))
    (made,) = read(tmp_path, "kf*5", left=(), reversible=False).reactions
    # nmol/s in a femtolitre.
    assert (made.equation, made.numbers["rate"]) == ("0 -> C", pytest.approx(10.0 * AVOGADRO * 1e-9 / 1e9))
    (catalysed,) = read(tmp_path, "cell*kf*A*B", left=(("A", 1),), reversible=False).reactions
    assert (catalysed.equation, catalysed.numbers["rate"]) == ("A + B -> B + C", pytest.approx(2.0 * per))
    held = ('<species id="E" compartment="cell" initialConcentration="3" hasOnlySubstanceUnits="false" '
            'boundaryCondition="true" constant="true"/>')  # fmt: skip
    network = read(tmp_path, "cell*kf*A*E", left=(("A", 1), ("E", 1)), species=held, reversible=False)
    assert network.concentrations["E"] == pytest.approx(3.0 / per)
    assert "E" not in network.counts
    amounts = held.replace('initialConcentration="3"', 'initialAmount="3"').replace("false", "true", 1)
    network = read(tmp_path, "kf*A*E", left=(("A", 1), ("E", 1)), species=amounts, reversible=False)
    # Per nmol of E in a femtolitre, and per concentration of A, in nmol/s.
    assert network.reactions[0].numbers["rate"] == pytest.approx(2.0 * per)


@pytest.mark.parametrize(
    ("law", "given", "said"),
    [
        ("cell*kf*A/(1 + A)", {}, "is not a sum of products"),
        ("cell*kf*A", {}, "is not that of mass action, k * A * B"),
        ("cell*kf*A*B*x", {}, "x has no constant value"),
        ("cell*kf*sin(A)*B", {}, "is not a sum of products"),
        ("cell*kf*A*B", {"units": False}, "no unit of"),
        ("cell*kf*A^4", {"left": (("A", 4),)}, "is not a sum of products"),
        ("cell*kf*A*A*A*A", {"left": (("A", 4),)}, "more than 3 molecules would have to meet"),
        ("cell*kf*A*B", {"left": (("A", 1.5), ("B", 1))}, "A takes part 1.5 times"),
        ("cell*kf*A*B", {"size": float("nan")}, "cell has no size"),
        ("cell*kf*A*B", {"more": '<listOfRules><rateRule variable="kf"><math xmlns="http://www.w3.org/1998/Math/MathML">'
                                 "<cn>1</cn></math></rateRule></listOfRules>"}, "rules, which reactions of pools"),
    ],
)  # fmt: skip
def test_refusals_of_sbml(tmp_path, law, given, said):
    with pytest.raises(ParameterError) as error:
        read(tmp_path, law, **given)
    assert said in str(error.value)
    assert "model.xml" in str(error.value)


def test_refusals_of_files_in_sbml(tmp_path):
    path = written(tmp_path, "<sbml", ".sbml")
    refuses(ParameterError, "model.sbml, line", mp.jumps.read_network, path)
    refuses(ParameterError, "tells its units: leave out volume=", mp.jumps.read_network, path, volume=1.0)
    empty = '<?xml version="1.0" encoding="UTF-8"?>\n<sbml level="3" version="2" xmlns='
    empty += '"http://www.sbml.org/sbml/level3/version2/core"/>'
    entity = '<!DOCTYPE a [<!ENTITY b "c">]>'
    refuses(ParameterError, "has a document type", mp.jumps.read_network, written(tmp_path, entity + empty, ".sbml"))
    refuses(ParameterError, "there is no model", mp.jumps.read_network, written(tmp_path, empty, ".sbml"))


def test_level_2_has_moles_seconds_and_litres(tmp_path):
    text = sbml("cell*kf*A*B", level='level="2" version="4"', ns="level2/version4", units=False, reversible=False)
    text = text.replace('stoichiometry="1" constant="true"', 'stoichiometry="1"')
    network = mp.jumps.read_network(written(tmp_path, text, ".xml"))
    per = 1e24 / AVOGADRO
    assert network.counts["A"] == round(1000 / 1e-9)
    assert network.reactions[0].numbers["rate"] == pytest.approx(2.0 * per)
