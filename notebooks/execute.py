"""Run notebooks from clean kernels and keep what they show.

python notebooks/execute.py                          all of them, in place
python notebooks/execute.py scenario_bridging        one
python notebooks/execute.py --out made               leave the committed ones as they are

SURROGATE_SAMPLES and SURROGATE_ITERATIONS make them smaller: the tests run them that way.
"""

from __future__ import annotations

import argparse
import base64
import io
import os
import sys
import tempfile
from pathlib import Path

import nbformat
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager
from jupyter_core.paths import jupyter_runtime_dir
from nbclient import NotebookClient
from PIL import Image
from traitlets import default

HERE = Path(__file__).parent
CELL_TIMEOUT = 1_800  # seconds a cell may take


class Kernel(AsyncKernelManager):
    """A kernel of this very interpreter, whatever others are installed, reached without ports."""

    @default("transport")
    def _transport(self) -> str:
        return "ipc"

    @default("connection_file")
    def _connection_file(self) -> str:
        return str(Path(jupyter_runtime_dir()) / "kernel.json")

    @property
    def kernel_spec(self) -> KernelSpec:
        launch = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        return KernelSpec(argv=launch, display_name="Python 3", language="python")


def execute(notebook: nbformat.NotebookNode, folder: Path) -> None:
    """Run the cells in order, in an empty folder; outputs replace those of before.

    Raises CellExecutionError for the first cell that fails.
    """
    client = NotebookClient(
        notebook,
        kernel_manager_class=Kernel,
        timeout=CELL_TIMEOUT,
        record_timing=False,
        coalesce_streams=True,
        resources={"metadata": {"path": str(folder)}},
    )
    client.execute()
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            picture = output.get("data", {}).get("image/png")
            if picture is not None:
                output["data"]["image/png"] = smaller(picture)
    # what differs from one machine to the next is no part of a notebook
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }


def smaller(picture: str) -> str:
    """A PNG (base64) in 256 colours: charts look the same, at a third of the size."""
    made = io.BytesIO()
    colours = Image.open(io.BytesIO(base64.b64decode(picture))).convert("RGB")
    colours.quantize(256, dither=Image.Dither.NONE).save(made, "PNG", optimize=True)
    return base64.b64encode(made.getvalue()).decode()


def main() -> None:
    known = sorted(place.stem for place in HERE.glob("*.ipynb"))
    parser = argparse.ArgumentParser(description="Run notebooks and keep what they show.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(known)}")
    parser.add_argument("--out", type=Path, default=HERE, help="folder to write to")
    given = parser.parse_args()
    names = [Path(name).stem for name in given.names] or known
    unknown = [name for name in names if name not in known]
    if unknown:
        parser.error(f"no notebook {unknown[0]!r} (have: {', '.join(known)})")
    given.out.mkdir(parents=True, exist_ok=True)
    os.environ["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"
    for name in names:
        notebook = nbformat.read(HERE / f"{name}.ipynb", as_version=4)
        with tempfile.TemporaryDirectory() as own, tempfile.TemporaryDirectory() as work:
            for variable in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR"):
                os.environ[variable] = own  # nothing is left in a person's home
            execute(notebook, Path(work))
        nbformat.write(notebook, given.out / f"{name}.ipynb")
        print(f"{name}: {sum(cell.cell_type == 'code' for cell in notebook.cells)} cells")


if __name__ == "__main__":
    main()
