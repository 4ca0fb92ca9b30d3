"""Networks of reactions from SBML, read by libsbml: rates of mass action, as polynomials of what species amount to."""

from collections import Counter
from math import isfinite
from types import MappingProxyType
from typing import Any, NoReturn

from medyanpy import units
from medyanpy._tools.extras import needed
from medyanpy.errors import ParameterError
from medyanpy.jumps._reaction_texts import MOST_REACTANTS, Reaction
from medyanpy.jumps.network_files import Network

_AVOGADRO = 6.02214076e23
# A sum of products: coefficients by the names in each, in alphabetical order.
Polynomial = dict[tuple[str, ...], float]
_MOST_TERMS = 1000
_MOST_TIMES = 100


def read_sbml(what: str, text: str) -> Network:
    """Read a model; the errors name `what`, the place and the remedy."""
    with needed("reading SBML", "python-libsbml", "networks"):
        import libsbml
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        # Entities of entities expand without end.
        raise ParameterError(f"{what}: it has a document type, which SBML has not: leave that line out")
    document = libsbml.readSBMLFromString(text)
    for k in range(document.getNumErrors()):
        error = document.getError(k)
        if error.getSeverity() >= libsbml.LIBSBML_SEV_ERROR:
            raise ParameterError(f"{what}, line {error.getLine()}: {error.getMessage().strip().splitlines()[0]}")
    if document.getModel() is None:
        raise ParameterError(f"{what}: there is no model")
    for conversion in ("expandFunctionDefinitions", "expandInitialAssignments", "promoteLocalParameters"):
        options = libsbml.ConversionProperties()
        options.addOption(conversion, True)
        if document.convert(options) != libsbml.LIBSBML_OPERATION_SUCCESS:
            raise ParameterError(f"{what}: libsbml cannot carry out {conversion} on it")
    return _Model(what, libsbml, document.getModel()).read()


class _Model:
    """Reader of one model."""

    def __init__(self, what: str, sbml: Any, model: Any) -> None:
        self.what, self.sbml, self.model = what, sbml, model

    def refuse(self, of: Any, problem: str) -> NoReturn:
        line = f", line {of.getLine()}" if of.getLine() else ""
        raise ParameterError(f"{self.what}{line}: {problem}")

    def read(self) -> Network:
        model = self.model
        for kind, n, one in (
            ("event", model.getNumEvents(), model.getEvent),
            ("rule", model.getNumRules(), model.getRule),
            ("constraint", model.getNumConstraints(), model.getConstraint),
        ):
            if n:
                self.refuse(one(0), f"it has {kind}s, which reactions of pools do not have")
        self.species = {model.getSpecies(k).getId(): model.getSpecies(k) for k in range(model.getNumSpecies())}
        if not self.species:
            self.refuse(model, "there are no species")
        compartment = self.compartment()
        self.size = self.given(compartment, "size", compartment.getSize())
        litres = self.unit(compartment, "volume", compartment.getDerivedUnitDefinition())
        self.volume = self.size * litres * units.meter**3
        self.second = self.unit(model, "time", self.times())
        counts: dict[str, int] = {}
        concentrations: dict[str, float] = {}
        for name, one in self.species.items():
            molecules = self.molecules(one)
            if one.getConstant() or one.getBoundaryCondition():
                concentrations[name] = molecules / self.volume
            else:
                counts[name] = round(molecules)
        self.values = {compartment.getId(): self.size}
        for k in range(model.getNumParameters()):
            parameter = model.getParameter(k)
            self.values[parameter.getId()] = self.given(parameter, "value", parameter.getValue())
        reactions: list[Reaction] = []
        for k in range(model.getNumReactions()):
            reactions += self.reactions(model.getReaction(k))
        if not reactions:
            self.refuse(model, "there are no reactions")
        return Network(self.volume, MappingProxyType(counts), MappingProxyType(concentrations), tuple(reactions))

    def given(self, of: Any, what: str, value: float) -> float:
        if not isfinite(value):
            self.refuse(of, f"{of.getId()} has no {what}")
        return float(value)

    def compartment(self) -> Any:
        names = sorted({one.getCompartment() for one in self.species.values()})
        if len(names) > 1:
            self.refuse(self.model, f"its species are in {len(names)} compartments, {', '.join(names)}: a pool is one")
        compartment = self.model.getCompartment(names[0])
        if compartment.getSpatialDimensions() != 3:
            self.refuse(compartment, f"{names[0]} has {compartment.getSpatialDimensions()} dimensions, not 3")
        return compartment

    def times(self) -> Any:
        """Return the unit of time, seconds in Level 2 where none is given."""
        if self.model.getLevel() < 3:
            found = self.model.getUnitDefinition("time")
            if found is None:
                found = self.sbml.UnitDefinition(self.model.getSBMLNamespaces())
                unit = found.createUnit()
                unit.setKind(self.sbml.UNIT_KIND_SECOND)
                unit.initDefaults()
            return found
        found = self.sbml.UnitDefinition(self.model.getSBMLNamespaces())
        name = self.model.getTimeUnits()
        if self.model.getUnitDefinition(name) is not None:
            return self.model.getUnitDefinition(name)
        if name:
            unit = found.createUnit()
            unit.setKind(self.sbml.UnitKind_forName(name))
            unit.initDefaults()
        return found

    def unit(self, of: Any, quantity: str, definition: Any) -> float:
        """Return a unit in metres, seconds, or molecules."""
        kinds = {
            "volume": {self.sbml.UNIT_KIND_LITRE: (1, 1e-3), self.sbml.UNIT_KIND_METRE: (3, 1.0)},
            "time": {self.sbml.UNIT_KIND_SECOND: (1, 1.0)},
            "amount": {
                self.sbml.UNIT_KIND_MOLE: (1, _AVOGADRO), self.sbml.UNIT_KIND_ITEM: (1, 1.0),
                self.sbml.UNIT_KIND_AVOGADRO: (1, _AVOGADRO), self.sbml.UNIT_KIND_DIMENSIONLESS: (1, 1.0),
            },
        }[quantity]  # fmt: skip
        value, found = 1.0, 0
        for k in range(definition.getNumUnits() if definition is not None else 0):
            unit = definition.getUnit(k)
            exponent = unit.getExponentAsDouble()
            scale = (unit.getMultiplier() * 10.0 ** unit.getScale()) ** exponent
            kind = unit.getKind()
            if kind == self.sbml.UNIT_KIND_DIMENSIONLESS and quantity != "amount":
                value *= scale
                continue
            if kind not in kinds or exponent != kinds[kind][0]:
                found = 2
                break
            value *= scale * kinds[kind][1]
            found += 1
        if found != 1:
            known = {"volume": "litre, metre³", "time": "second", "amount": "mole, item"}[quantity]
            name = of.getId() or "the model"
            self.refuse(of, f"{name} has no unit of {quantity} that is known: {known}, or parts of one")
        return value

    def amount_unit(self, species: Any) -> float:
        """Return the molecules in a unit of its amount."""
        if species.isSetConversionFactor() or self.model.isSetConversionFactor():
            self.refuse(species, f"{species.getId()} has a conversion factor, which pools do not have")
        usual = self.model.getSubstanceUnits() if self.model.getLevel() > 2 else "substance"
        return self.amount(species, species.getSubstanceUnits() or usual)

    def amount(self, of: Any, name: str) -> float:
        definition = self.model.getUnitDefinition(name)
        if definition is None:
            definition = self.sbml.UnitDefinition(self.model.getSBMLNamespaces())
            kind = "mole" if name == "substance" else name
            if kind:
                unit = definition.createUnit()
                unit.setKind(self.sbml.UnitKind_forName(kind))
                unit.initDefaults()
        return self.unit(of, "amount", definition)

    def molecules(self, species: Any) -> float:
        if species.isSetInitialConcentration():
            amount = species.getInitialConcentration() * self.size
        else:
            amount = self.given(species, "amount at the start", species.getInitialAmount())
        molecules = amount * self.amount_unit(species)
        if not 0.0 <= molecules <= 2.0**53:
            self.refuse(species, f"{species.getId()} is {molecules:g} molecules, but must be >= 0 and <= 2**53")
        return float(molecules)

    def side(self, reaction: Any, of: Any, n: int) -> tuple[str, ...]:
        names: list[str] = []
        for k in range(n):
            one = of(k)
            name, times = one.getSpecies(), one.getStoichiometry()
            if name not in self.species or not 1.0 <= times <= _MOST_TIMES or times != int(times):
                problem = f"{name} takes part {times:g} times, but must do so 1 to {_MOST_TIMES} times"
                self.refuse(reaction, f"{reaction.getId()}: {problem}")
            names += [name] * int(times)
        return tuple(names)

    def reactions(self, reaction: Any) -> list[Reaction]:
        """Return a reaction, or there and back."""
        name = reaction.getId()
        reactants = self.side(reaction, reaction.getReactant, reaction.getNumReactants())
        products = self.side(reaction, reaction.getProduct, reaction.getNumProducts())
        law = reaction.getKineticLaw()
        if law is None or law.getMath() is None:
            self.refuse(reaction, f"{name} has no rate")
        if reaction.isSetFast() and reaction.getFast():
            self.refuse(reaction, f"{name} is fast: it has no rate")
        terms = {powers: value for powers, value in self.polynomial(law.getMath(), reaction).items() if value != 0.0}
        forth = [(powers, value) for powers, value in terms.items() if value > 0.0]
        back = [(powers, -value) for powers, value in terms.items() if value < 0.0]
        catalysts: tuple[str, ...] = ()
        if forth:
            catalysts = tuple((Counter(forth[0][0]) - Counter(reactants)).elements())
        out = [
            (tuple(sorted((*there, *catalysts))), tuple(sorted((*other, *catalysts))), one)
            for there, other, several in ((reactants, products, forth), (products, reactants, back))
            for one in several
        ]
        if not terms or len(forth) > 1 or len(back) > 1 or any(one[0] != tuple(sorted(side)) for side, _, one in out):
            formula = self.sbml.formulaToL3String(law.getMath())
            known = " * ".join(("k", *reactants))
            self.refuse(law, f"the rate of {name}, {formula}, is not that of mass action, {known}")
        rates = [self.rate(side, one[1], reaction) for side, _, one in out]
        for side, _, _ in out:
            if len(side) > MOST_REACTANTS:
                self.refuse(reaction, f"{name}: more than {MOST_REACTANTS} molecules would have to meet")
        try:
            if forth and back:
                numbers = {"k_on": rates[0], "k_off": rates[1]}
                return [Reaction(out[0][0], out[0][1], reversible=True, numbers=numbers)]
            return [Reaction(a, b, numbers={"rate": rate}) for (a, b, _), rate in zip(out, rates, strict=True)]
        except ParameterError as cause:
            self.refuse(reaction, f"{name}: {cause}")

    def rate(self, side: tuple[str, ...], value: float, reaction: Any) -> float:
        """Return nm^(3(n-1))/s of a coefficient in units of the model."""
        every = {self.amount_unit(one) for one in self.species.values()}
        if self.model.getLevel() > 2 and self.model.isSetExtentUnits():
            every.add(self.amount(self.model, self.model.getExtentUnits()))
        if len(every) > 1:
            self.refuse(self.model, "its species and reactions have different units of amount")
        (unit,) = every
        # Events in a second, where species stand for amounts or concentrations of molecules in place of those units.
        events = value * unit / self.second
        for name in side:
            per = unit if self.species[name].getHasOnlySubstanceUnits() else unit * self.size
            events /= per
        return events * self.volume ** (len(side) - 1)

    def polynomial(self, node: Any, reaction: Any) -> Polynomial:
        """Expand a formula; constants are numbers, names are left of species alone."""
        sbml, children = self.sbml, [node.getChild(k) for k in range(node.getNumChildren())]
        kind = node.getType()
        if node.isNumber():
            return {(): float(node.getValue())}
        if kind == sbml.AST_NAME:
            name = node.getName()
            if name in self.species:
                return {(name,): 1.0}
            if name in self.values:
                return {(): self.values[name]}
            self.refuse(reaction, f"{reaction.getId()}: {name} has no constant value")
        if kind == sbml.AST_NAME_AVOGADRO:
            return {(): _AVOGADRO}
        if kind == sbml.AST_PLUS:
            return _sum([self.polynomial(one, reaction) for one in children])
        if kind == sbml.AST_MINUS:
            parts = [self.polynomial(one, reaction) for one in children]
            signs = [-1.0] if len(parts) == 1 else [1.0, *[-1.0] * (len(parts) - 1)]
            return _sum([{k: s * v for k, v in part.items()} for s, part in zip(signs, parts, strict=True)])
        if kind == sbml.AST_TIMES:
            out: Polynomial = {(): 1.0}
            for one in children:
                out = _product(out, self.polynomial(one, reaction))
                if len(out) > _MOST_TERMS:
                    break
            else:
                return out
        if kind == sbml.AST_DIVIDE:
            over, under = (self.polynomial(one, reaction) for one in children)
            if list(under) == [()] and under[()] != 0.0:
                return {k: v / under[()] for k, v in over.items()}
        if kind in (sbml.AST_POWER, sbml.AST_FUNCTION_POWER):
            base, power = (self.polynomial(one, reaction) for one in children)
            if list(power) == [()] and power[()] in (0.0, 1.0, 2.0, 3.0):
                out = {(): 1.0}
                for _ in range(int(power[()])):
                    out = _product(out, base)
                return out
        formula = sbml.formulaToL3String(node)
        self.refuse(reaction, f"{reaction.getId()}: {formula} is not a sum of products of constants and species")


def _sum(parts: list[Polynomial]) -> Polynomial:
    out: Polynomial = {}
    for part in parts:
        for powers, value in part.items():
            out[powers] = out.get(powers, 0.0) + value
    return out


def _product(a: Polynomial, b: Polynomial) -> Polynomial:
    return _sum([{tuple(sorted(p + q)): x * y} for p, x in a.items() for q, y in b.items()])
