"""Runs the tutorials and stores their results in them: python -P tutorials/store_outputs.py [NOTEBOOK ...]

Needs the installed package with the test extra. What depends on the machine or on the day is left out, pictures are
stored with 256 colours, so that running it again changes nothing that a reader sees.
"""

import base64
import io
import os
import sys
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from PIL import Image

HERE = Path(__file__).resolve().parent


def smaller(png: str) -> str:
    """The same picture with a palette, if that is smaller."""
    old = base64.b64decode(png)
    file = io.BytesIO()
    Image.open(io.BytesIO(old)).convert("RGB").quantize(256).save(file, "PNG", optimize=True)
    return base64.b64encode(min(old, file.getvalue(), key=len)).decode("ascii")


def is_bar(output: nbformat.NotebookNode) -> bool:
    """Whether it is a progress bar, which only shows how fast this machine is."""
    return (output.get("name") == "stderr" and output.text.startswith("\r")) or (
        "application/vnd.jupyter.widget-view+json" in output.get("data", {})
    )


def store(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(
        notebook, timeout=600, kernel_name="python3", record_timing=False, resources={"metadata": {"path": str(HERE)}}
    ).execute()
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if "outputs" in cell:
            cell.outputs = [output for output in cell.outputs if not is_bar(output)]
        for output in cell.get("outputs", ()):
            if "image/png" in output.get("data", {}):
                output.data["image/png"] = smaller(output.data["image/png"])
    nbformat.write(notebook, path)


if __name__ == "__main__":
    os.environ.pop("MEDYANPY_QUICK", None)
    for path in map(Path, sys.argv[1:] or sorted(HERE.glob("*.ipynb"))):
        start = time.perf_counter()
        store(path)
        print(f"{path.name}: {time.perf_counter() - start:.0f} s, {path.stat().st_size / 1e3:.0f} kB")
