"""Jumps at ends of filaments in a system: the order in which things are added, two jumps at one end, laws by name."""

import pytest
from builders import refuses, straight

import medyanpy as mp
from medyanpy.errors import ParameterError

UNIT = mp.units.per_micromolar_second
BARBED = {"end": "plus", "on_rate": 11.6 * UNIT, "off_rate": 1.4}
POINTED = {"end": "minus", "on_rate": 1.3 * UNIT, "off_rate": 0.8}


def made(capacity_links=40, box=None, nodes=None, concentrations=None):
    """A system with filaments that grow, as in the docs: (system, filaments, pool)."""
    topology = mp.Topology()
    nodes = [2.7 * straight(20, 20), 2.7 * straight(20, 20) + [9.0, 0.0, 0.0]] if nodes is None else nodes
    room = {} if capacity_links is None else {"capacity_links": capacity_links, "capacity_filaments": 12}
    actin = topology.add_filaments(nodes, 4e-12, 4e-6, rise=2.7, name="actin", **room)
    system = mp.System(topology, box=box)
    fixed = {"concentrations": concentrations} if concentrations else {}
    return system, actin, system.add_pool(mp.Pool(volume=1e9, counts={"G-actin": 6022}, **fixed))


def metric(actin):
    return mp.forces.FixmanPotential(actin, temperature=300.0)


def context(system, timestep=1e-9):
    return mp.Context(system, mp.BAGOGABIntegrator(timestep, temperature=300.0))


def growth(actin, species, **given):
    return mp.jumps.Polymerization(actin, species, **(BARBED | given))


def nucleation(actin, species):
    return mp.jumps.Nucleation(actin, species, n=20, rate=1.0)


def annealing(actin, species):
    return mp.jumps.Annealing(actin, on_rate=UNIT, off_rate=1e-7, reach=5.0)


def branching(actin, species, system):
    arp = mp.presets.arp23()
    links = system.add_force(mp.forces.Links([], [], **arp.links))
    angles = system.add_force(mp.forces.DirectionLinks([], [], [], [], **arp.angles))
    places = actin.lattice(spacing=2.7, most_subunits=4000), actin, species.pool["Arp2/3"], species
    return mp.jumps.Branching(links, angles, *places, n=20, rate=1e30)


@pytest.mark.parametrize("jump", [nucleation, annealing, branching])
def test_jumps_may_be_added_before_the_forces_that_they_need(jump):
    """A Context without a Fixman potential is refused, with what is to be added; with it, the order does not matter."""
    system, actin, pool = made(box=(9000.0,) * 3, concentrations={"Arp2/3": 1e-6})
    more = (system,) if jump is branching else ()
    system.add_jump(jump(actin, pool["G-actin"], *more))
    phrase = r"need a FixmanPotential.*system.add_force\(mp.forces.FixmanPotential\(filaments, temperature=...\)\)"
    refuses(ParameterError, phrase, context, system)
    system.add_force(metric(actin))
    context(system)


def test_bending_is_looked_at_whenever_it_is_added():
    system, actin, pool = made()
    system.add_jump(growth(actin, pool["G-actin"]))
    system.add_jump(mp.jumps.Severing(actin, 2e-3, bending_share=0.5))
    system.add_force(metric(actin))
    refuses(ParameterError, "bending_share = 0.5, but no FilamentBending acts on", context, system)
    bending = system.add_force(mp.forces.FilamentBending(actin, 7e4, rest_angle=0.1))
    refuses(ParameterError, "FilamentBending has a rest angle", context, system)
    bending.set(rest_angle=0.0)
    context(system)
    system, actin, pool = made(capacity_links=None)
    system.add_jump(growth(actin, pool["G-actin"]))
    system.add_force(mp.forces.FilamentBending(actin, [7e4, 8e4]))
    refuses(ParameterError, "bending_modulus of FilamentBending differs between joints", context, system)


def test_the_text_of_the_docs_runs_in_its_order():
    """Growth, cuts and seeds are described before forces, and say what they are."""
    system, actin, pool = made(box=(9000.0,) * 3)
    plus = system.add_jump(mp.jumps.Polymerization(actin, pool["G-actin"], **BARBED))
    assert not plus.driven
    minus = system.add_jump(mp.jumps.Polymerization(actin, pool["G-actin"], **POINTED))
    system.add_jump(mp.jumps.Ageing(actin, (0.3, 0.0026)))
    system.add_jump(mp.jumps.Severing(actin, rate_per_subunit=2e-3, of="ADP"))
    system.add_jump(mp.jumps.Nucleation(actin, pool["G-actin"], n=12, rate=1.0))
    # Two ends of different K_D drive each other from when both are there.
    assert (plus.driven, minus.driven) == (True, True)
    assert repr(plus) == (
        "Polymerization('actin', Pool['G-actin'], end='plus', on_rate=1.92623e+07, off_rate=1.4, "
        "dissociation_constant=None, contact='energy')"
    )
    assert "end='minus'" in repr(minus)
    system.add_force(mp.forces.FilamentBending(actin, 7e4))
    system.add_force(metric(actin))
    context(system)
    again = mp.deserialize(mp.serialize(system))
    assert (again["Polymerization"].driven, repr(again["Polymerization"])) == (True, repr(plus))


def test_jumps_know_each_other_while_they_are_in_a_system():
    system, actin, pool = made(concentrations={"one": 1e-6, "other": 2e-6})
    rates = {"on_rate": UNIT, "off_rate": 1.0}
    plus = system.add_jump(growth(actin, pool["G-actin"], **rates))
    minus = system.add_jump(growth(actin, pool["G-actin"], end="minus", **rates))
    assert not plus.driven
    minus.set(off_rate=2.0)
    assert plus.driven
    assert minus.driven
    system.remove_jump(minus)
    assert not plus.driven
    assert not minus.driven
    # One K_D, but two reservoirs: subunits flow from the one to the other.
    system.remove_jump(plus)
    plus = system.add_jump(growth(actin, pool["one"], **rates))
    assert not plus.driven
    minus = system.add_jump(growth(actin, pool["other"], end="minus", **rates))
    assert plus.driven
    # Free filaments of another weight drive those that join.
    ends = system.add_jump(mp.jumps.Annealing(actin, on_rate=UNIT, off_rate=1e-7, reach=5.0))
    assert not ends.driven
    system.remove_jump(minus)
    system.add_jump(mp.jumps.Nucleation(actin, pool["one"], n=20, rate=1.0, dissolution_rate=1.0))
    assert ends.driven


def test_a_jump_of_two_systems_is_beside_those_of_the_context():
    system, actin, pool = made()
    plus = system.add_jump(growth(actin, pool["G-actin"]))
    system.add_jump(growth(actin, pool["G-actin"], **POINTED))
    system.add_force(metric(actin))
    alone = mp.System(actin.topology)
    alone.add_pool(pool)
    alone.add_jump(plus)
    assert not plus.driven
    context(system)
    assert plus.driven


def test_driven_ends_that_act_seldom_are_refused_beside_others():
    """Each end alone is in balance."""
    system, actin, pool = made()
    system.add_force(metric(actin))
    system.add_jump(growth(actin, pool["G-actin"], every=4000))
    context(system, timestep=1e-6)
    system, actin, pool = made()
    system.add_force(metric(actin))
    for own in ({}, POINTED):
        system.add_jump(growth(actin, pool["G-actin"], every=4000, **own))
    refuses(ParameterError, "every = 4000, and its fastest event", context, system, timestep=1e-6)


def test_one_end_takes_a_species_once():
    system, actin, pool = made(concentrations={"G-ATP": 1e-6})
    for end in ("plus", "both"):
        system.add_jump(growth(actin, pool["G-actin"], end=end))
        for other in ("plus", "both"):
            phrase = rf"Polymerization\('actin'.*end='{end}'.* is at the plus end of 'actin' already.*give end="
            refuses(ParameterError, phrase, system.add_jump, growth(actin, pool["G-actin"], end=other))
        assert len(system.jumps) == 1
        system.remove_jump(system.jumps[0])
    # Of another species or pool, or at the other end, it may.
    system.add_jump(growth(actin, pool["G-actin"]))
    system.add_jump(growth(actin, pool["G-ATP"]))
    system.add_jump(growth(actin, system.add_pool(mp.Pool(volume=1e9, counts={"G-actin": 9}))["G-actin"]))
    system.add_jump(growth(actin, pool["G-actin"], end="minus"))
    system.add_force(metric(actin))
    assert len(context(system).system.jumps) == 4


def test_laws_by_name():
    """As the docs write them, with an average of 1 ms where none is given."""
    system, actin, pool = made(capacity_links=None)
    species = pool["G-actin"]
    assert repr(growth(actin, species, contact="energy")) == repr(growth(actin, species))
    for law, said in (
        (mp.jumps.MedyanRatchet(average=2e-3), "MedyanRatchet(average=0.002)"),
        (mp.jumps.MedyanRatchet(), "MedyanRatchet(average=0.001)"),
        (mp.jumps.CytosimGrowth(force=3.0), "CytosimGrowth(force=3, average=0.001)"),
        (mp.jumps.CytosimGrowth(3.0, average=5e-4), "CytosimGrowth(force=3, average=0.0005)"),
    ):
        jump = growth(actin, species, rates=law)
        assert repr(jump).endswith(f"dissociation_constant=None, rates={said})")
        assert jump.driven
        # What has a rate by a force has rates still.
        assert jump.rates == (11.6 * UNIT, 1.4)
        system.add_jump(jump)
        assert f"rates={said}" in repr(mp.deserialize(mp.serialize(system))["Polymerization"])
        system.remove_jump(jump)
    refuses(ParameterError, 'contact must be "energy".*given by rates=', growth, actin, species, contact="force")
    refuses(ParameterError, "contact must be text", growth, actin, species, contact=mp.jumps.MedyanRatchet())
    refuses(ParameterError, "rates must be MedyanRatchet", growth, actin, species, rates=mp.jumps.Bell(3.0))


@pytest.mark.parametrize("law", [mp.jumps.MedyanRatchet, lambda **own: mp.jumps.CytosimGrowth(3.0, **own)])
def test_forces_of_the_moment_are_warned_of(law):
    """With by how much they are wrong; an average over more than ten steps is not: warnings are errors here."""
    for average in (0.0, 9e-9, 1.1e-8):
        system, actin, pool = made(capacity_links=None)
        system.add_jump(growth(actin, pool["G-actin"], rates=law(average=average)))
        if average > 1e-8:
            context(system)
        else:
            with pytest.warns(mp.UnitsWarning, match="5.9 times too fast at 3 pN against a wall of 100 pN/nm"):
                context(system)
