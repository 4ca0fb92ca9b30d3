"""What version 0.1 wrote and offered: documents and checkpoints of every kind of bead, and all public names."""

import importlib
import inspect
import json
import warnings
from pathlib import Path

import numpy as np
import pytest

import medyanpy as mp

FOLDER = Path(__file__).parent / "from_0_1"


def test_a_document_of_every_kind_of_bead_loads():
    text = (FOLDER / "system.json").read_text()
    system = mp.deserialize(text)
    kinds = {handle.kind for handle in system.topology}
    assert kinds == {
        "beads", "balls", "vertices", "points", "filament nodes", "directors", "surface points", "rigid bodies",
        "rod nodes",
    }  # fmt: skip
    assert len(system.forces) == 14
    again = json.loads(mp.serialize(system))
    assert json.loads(text)["content"] == again["content"]


def test_a_checkpoint_of_every_kind_of_bead_goes_on():
    """To rounding: kernels of other versions may add in another order, and ten steps let that grow little."""
    with warnings.catch_warnings():
        # Of a later version, about numbers of this system.
        warnings.simplefilter("ignore", mp.TimestepWarning)
        simulation = mp.Simulation.resume(FOLDER / "run.checkpoint", threads=1)
    assert simulation.current_step == 10
    simulation.step(10)
    state = simulation.context.get_state(positions=True, velocities=True, energy=True)
    with np.load(FOLDER / "later.npz") as later:
        for name in ("positions", "velocities", "orientations", "angular_momenta"):
            scale = np.abs(later[name]).max()
            np.testing.assert_allclose(getattr(state, name), later[name], rtol=0, atol=1e-11 * scale, err_msg=name)
        energies = [state.energies[name] for name in sorted(state.energies)]
        np.testing.assert_allclose(energies, later["energies"], rtol=1e-9, atol=1e-9)


NAMES = json.loads((FOLDER / "public_names.json").read_text())


@pytest.mark.parametrize("name", NAMES)
def test_every_public_name_is_still_there(name):
    """With its own public names; what was public by mistake in 0.1, inside of Context, is not among them."""
    module, _, last = name.rpartition(".")
    owner = importlib.import_module(f"medyanpy.{module}") if module else mp
    there = getattr(owner, last)
    if inspect.isclass(there):
        assert set(NAMES[name]) <= set(dir(there))
