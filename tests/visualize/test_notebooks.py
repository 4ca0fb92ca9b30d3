"""A real kernel: what its cells show."""

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

CELLS = [
    """
import sys
import medyanpy as mp
from medyanpy._tools import progress
progress._DELAY = 0.0
topology = mp.Topology()
vesicle = topology.add_membrane(mp.TriangleMesh.icosphere(50.0, 2), vertex_mass=4e-12, vertex_friction=4e-6)
system = mp.System(topology)
system.add_force(mp.forces.MembraneBending(vesicle, 82.0))
simulation = mp.Simulation(system, mp.BAGOGABIntegrator(1e-9, temperature=300.0, seed=1))
table = mp.reporters.StateDataReporter("state.csv", 10, time=True, temperature=True, potential_energy=True)
simulation.reporters.append(table)
""",
    "simulation.step(100)",
    "mp.visualize.draw(simulation, size=(200, 150))",
    "simulation",
    "mp.plot(table)",
    "simulation.close(); print('matplotlib.pyplot' in sys.modules)",
]


@pytest.mark.slow
def test_bars_pictures_and_tables_are_shown(tmp_path):
    """Steps have a bar, and the last line of a cell its picture or its table, without pyplot."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    client = nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}})
    client.execute()
    _, stepped, drawn, table, plotted, pyplot = (cell.outputs for cell in notebook.cells)
    text = "".join(str(output) for output in stepped)
    # With widgets, or with letters.
    assert "widget-view" in text or "/100 [" in text
    assert "Warning" not in text
    for output in (drawn, plotted):
        assert sorted(output[-1].data) == ["image/png", "text/plain"]
    assert "MembraneBending" in table[-1].data["text/html"]
    assert table[-1].data["text/plain"].startswith("Simulation(step 100")
    assert pyplot[-1].text == "False\n"
