"""The cells of docs/tutorial/notebook.md, run by a real Jupyter kernel."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

PAGE = Path(__file__).parents[2] / "docs" / "tutorial" / "notebook.md"
CELL = re.compile(r"(<!-- not run.*?-->\n)?^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
START = "run = pj.run(job)"


def cells() -> list[str]:
    return [cell for skipped, cell in CELL.findall(PAGE.read_text()) if not skipped]


def cells_for_a_cluster(image: str) -> list[str]:
    """With the cell that the page shows for a cluster in the place of the one that starts the job here."""
    (submit,) = [cell for skipped, cell in CELL.findall(PAGE.read_text()) if skipped]
    return [f"import paddlejob as pj\nIMAGE = {image!r}\n{submit}" if START in cell else cell for cell in cells()]


def execute(cells: list[str], folder: Path, environment: dict[str, str]) -> list[str]:
    """Run the cells in a folder; returns what each of them shows."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    kernels = folder / "kernels" / "here"
    kernels.mkdir(parents=True)
    argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    kernel = {"argv": argv, "display_name": "here", "language": "python", "env": environment}
    (kernels / "kernel.json").write_text(json.dumps(kernel))
    client = NotebookClient(notebook, kernel_name="here", timeout=240, resources={"metadata": {"path": str(folder)}})
    client.create_kernel_manager().kernel_spec_manager.kernel_dirs.insert(0, str(folder / "kernels"))  # type: ignore[attr-defined]
    client.execute()
    return ["".join(_shown(output) for output in cell.get("outputs", [])) for cell in notebook.cells]


def _shown(output: dict[str, object]) -> str:
    data = output.get("data")
    if isinstance(data, dict):
        return str(data.get("text/html") or data.get("text/plain") or "")
    return str(output.get("text") or "")
