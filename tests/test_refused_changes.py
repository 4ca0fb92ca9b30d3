"""Changes of a running simulation that are refused leave nothing behind; fields in a box that changes."""

import warnings

import numpy as np
import pytest
from builders import line, refuses, system_with

import medyanpy as mp
from medyanpy import forces, jumps
from medyanpy.errors import BoxWarning, MedyanError

pytestmark = pytest.mark.frictionless


def left_behind(simulation):
    """All that a refused change could have changed."""
    context = simulation.context
    state = context.get_state(positions=True, velocities=True, energy=True)
    numbers = {one.name: dict(one.parameters) for one in (*simulation.system.forces, *simulation.system.jumps)}
    integrator = simulation.integrator.timestep, simulation.integrator.kT
    return {"reporters": list(simulation.reporters), "numbers": repr(numbers), "integrator": integrator,
            "box": state.box, "energies": state.energies, "time": state.time, "widths": dict(context.layout._widths),
            "handles": [repr(one) for one in simulation.topology.handles],
            "forces": simulation.system.force_names}  # fmt: skip


def boxed(*more):
    """Beads in a box, with others that cannot be moved with it."""
    topology = mp.Topology()
    beads = topology.add_beads(2.5 * line(4, [0.0, 0, 0]), mass=1.0, friction=1.0, name="beads")
    if "surface" in more:
        topology.add_surface_points(mp.surfaces.Sphere(3.0), [[3.0, 0, 0]], mass=1.0, friction=1.0)
    if "surface of Python" in more:
        surface = mp.surfaces.PythonSurface(lambda x: x[:, 2], lambda x: np.broadcast_to([0.0, 0.0, 1.0], x.shape))
        topology.add_surface_points(surface, [[3.0, 0, 0]], mass=1.0, friction=1.0)
    if "fixed" in more:
        topology.add_filament(line(3, [0.0, 5.0, 0]), 1.0, 1.0, fixed_nodes=[0])
    if "constraints" in more:
        topology.constrain("(x1-x2)^2 + (y1-y2)^2 + x1^2 - d^2", [beads.beads[:2]], d=2.5)
    system = mp.System(topology, box=(20.0,) * 3)
    system.add_force(forces.LennardJones(beads, beads, 0.1, 1.0, cutoff=5.0, name="pairs"))
    return mp.Simulation(system, mp.SplittingIntegrator("BAOAB", 0.01, kT=1.0, seed=1), threads=1)


def raise_in_an_edit(simulation):
    with simulation.topology.edit():
        simulation.integrator.set(kT=3.0, timestep=0.02)
        simulation.topology["beads"].add([[0.0, 9.0, 0.0]])
        raise mp.ParameterError("changed my mind")


def too_wide_in_an_edit(simulation):
    with simulation.topology.edit():
        beads = simulation.topology["beads"]
        simulation.system.add_force(forces.LennardJones(beads, beads, 0.1, 1.0, cutoff=11.0))


def too_wide_for_the_box_of_now(simulation):
    simulation.context.set_box((14.0,) * 3)
    before = left_behind(simulation)
    try:
        with simulation.topology.edit():
            beads = simulation.topology["beads"]
            simulation.system.add_force(forces.LennardJones(beads, beads, 0.1, 1.0, cutoff=8.0))
    finally:
        assert left_behind(simulation) == before
        simulation.context.set_box((20.0,) * 3)


REFUSALS = {
    "ramp of a box with surface points": (("surface",), lambda s: s.ramp("box", x=(20.0, 19.0), steps=6),
                                          "the surface under bead 0 of .* move alike along x"),
    "ramp of a box with a surface of Python functions": (
        ("surface of Python",), lambda s: s.ramp("box", x=(20.0, 19.0), steps=6), "a surface of Python functions"),
    "ramp of a box with fixed beads": (("fixed",), lambda s: s.ramp("box", x=(20.0, 19.0), steps=6), "is fixed"),
    "ramp of a box with constraints": (("constraints",), lambda s: s.ramp("box", x=(20.0, 19.0), steps=6),
                                       "constraint 0 .* move alike along x"),
    "ramp of a box with an unknown word": ((), lambda s: s.ramp("box", x=(20.0, 19.0), steps=6, fixed_beads="stay"),
                                           "fixed_beads = 'stay'"),
    "set_box with fixed beads": (("fixed",), lambda s: s.context.set_box((19.0, 20.0, 20.0)), "is fixed"),
    "ramp of a box that becomes too small": ((), lambda s: s.ramp("box", x=(20.0, 9.0), steps=6), "reaches 5 nm"),
    "ramp of a cutoff": ((), lambda s: s.ramp("pairs", cutoff=(11.0, 12.0), steps=6), "reaches 11 nm"),
    "ramp of a name": ((), lambda s: s.ramp("pears", cutoff=(11.0, 12.0), steps=6), "pears"),
    "set_box": ((), lambda s: s.context.set_box((9.0, 20.0, 20.0)), "reaches 5 nm"),
    "an edit that raises": ((), raise_in_an_edit, "changed my mind"),
    "an edit that cannot be followed": ((), too_wide_in_an_edit, "reaches 11 nm"),
    "an edit that the box of now refuses": ((), too_wide_for_the_box_of_now, "reaches 8 nm"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSALS)
def test_a_refused_change_leaves_nothing_behind(name):
    more, changed, message = REFUSALS[name]
    simulation = boxed(*more)
    simulation.step(2)
    before = left_behind(simulation)
    refuses(MedyanError, message, changed, simulation)
    after = left_behind(simulation)
    if name == "an edit that the box of now refuses":
        # The box went there and back.
        before.pop("energies"), after.pop("energies")
    assert after == before
    simulation.step(3)


# Fields in a box that changes ----------------------------------------------------------------------------------------


def with_a_field(length, barostat=None):
    topology = mp.Topology()
    bead = topology.add_beads([[4.9, 0, 0]], mass=1.0, friction=1.0, name="bead")
    system = system_with(topology, forces.ExternalField(bead, "sin(2*pi*x/10)", name="field"), box=(length,) * 3)
    if barostat is not None:
        system.add_jump(jumps.BoxArea(rate=10.0, step=0.5, name="barostat", **barostat))
    return mp.Simulation(system, mp.SplittingIntegrator("JBAOABJ", 0.01, kT=1.0, seed=1), threads=1)


def edited_in(simulation):
    with simulation.topology.edit():
        bead = simulation.topology["bead"]
        simulation.system.add_force(forces.ExternalField(bead, "sin(2*pi*x/10 + 1)", name="other"))


def warned(act):
    """Of which fields, and whether because of a barostat."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        act()
    texts = [str(one.message) for one in seen if issubclass(one.category, BoxWarning)]
    return [text.partition(":")[0] + (" and barostat" if "barostat has changed" in text else "") for text in texts]


def test_fields_that_do_not_repeat_with_the_box_are_warned_of(tmp_path):
    """However it comes to its lengths; and once."""
    assert warned(lambda: with_a_field(13.0)) == ["field"]
    simulation = with_a_field(10.0)
    assert warned(lambda: simulation.context.set_box((13.0, 10.0, 10.0))) == ["field"]
    assert warned(lambda: simulation.context.set_box((14.0, 10.0, 10.0))) == []
    assert warned(lambda: edited_in(simulation)) == ["other"]
    simulation.save_checkpoint(tmp_path / "run.checkpoint")
    assert warned(lambda: mp.Simulation.resume(tmp_path / "run.checkpoint")) == ["field", "other"]
    state = simulation.context.get_state(positions=True, velocities=True)
    another = with_a_field(10.0)
    assert warned(lambda: another.context.set_state(state)) == ["field"]
    third = with_a_field(10.0)
    assert warned(lambda: third.ramp("box", x=(10.0, 11.0), steps=4)) == ["field"]
    for numbers in ({"pressure": 0.001}, {"tension": 0.001}):
        assert warned(lambda numbers=numbers: with_a_field(10.0, numbers)) == ["field and barostat"]
    assert warned(lambda: with_a_field(13.0, {"tension": 0.001})) == ["field"]


def test_fields_that_repeat_are_not_warned_of():
    """Boxes of whole wave lengths; a barostat that leaves the direction of the field alone."""
    simulation = with_a_field(10.0)
    simulation.context.set_box((20.0, 13.0, 13.0))
    topology = mp.Topology()
    bead = topology.add_beads([[4.9, 0, 0]], mass=1.0, friction=1.0)
    system = system_with(topology, forces.ExternalField(bead, "sin(2*pi*z/10)"), box=(10.0,) * 3)
    system.add_jump(jumps.BoxArea(tension=0.01, rate=10.0, step=0.5))
    mp.Simulation(system, mp.SplittingIntegrator("JBAOABJ", 0.01, kT=1.0, seed=1), threads=1)
