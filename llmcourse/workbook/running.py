"""Execute a notebook in a kernel of its own, and keep of its outputs what stays readable and stable in a file."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from llmcourse.errors import AuthoringError

from .course import PACKAGE

CELL_SECONDS = 600
WIDGET = "application/vnd.jupyter.widget-view+json"


def run_notebook(notebook: dict, file: Path, root: Path) -> dict:
    """The notebook with its outputs. file: where it will be stored; root: of the course, which the kernel uses.

    The kernel imports this very package and has a work folder of its own, so that a learner's predictions stay theirs.
    Raises AuthoringError, with the cell, when one raises.
    """
    import nbformat
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError, CellTimeoutError

    node = nbformat.from_dict(notebook)
    file.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as work:
        paths = [str(PACKAGE.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "LLMCOURSE_WORK": work, "PYTHONHASHSEED": "0"}
        if root != PACKAGE.parent:
            env["LLMCOURSE_ROOT"] = str(root)
        client = NotebookClient(node, timeout=CELL_SECONDS, kernel_name="python3", record_timing=False,
                                store_widget_state=False,
                                extra_arguments=["--IPKernelApp.log_level=ERROR"],
                                resources={"metadata": {"path": str(file.parent)}})
        try:
            client.execute(env=env)
        except (CellExecutionError, CellTimeoutError) as error:
            raise AuthoringError(f"{file.parent.name}/{file.name} does not run:\n{error}") from error
    node.metadata["language_info"] = {"name": "python"}
    for cell in node.cells:
        if cell.cell_type == "code":
            cell.metadata.pop("execution", None)
            cell.outputs = _joined([_at_home(_lasting(output), work, file.parent) for output in cell.outputs])
    return node


def _at_home(output: dict, work: str, here: Path) -> dict:
    """Links into the kernel's own work folder, as a reader has them: into the work folder beside the notebooks."""
    data = output.get("data", {})
    for kind, text in data.items():
        if isinstance(text, str):
            data[kind] = text.replace(Path(os.path.relpath(work, here)).as_posix(), "../work")
    return output


def _lasting(output: dict) -> dict:
    """Without the live view of a widget, which no reader of a file can show; its text and picture stay."""
    if WIDGET in output.get("data", {}):
        del output["data"][WIDGET]
    return output


def _joined(outputs: list[dict]) -> list[dict]:
    """Neighbouring pieces of one stream as one: how they were cut depends on timing."""
    joined: list[dict] = []
    for output in outputs:
        last = joined[-1] if joined else {}
        if output["output_type"] == "stream" == last.get("output_type") and output["name"] == last["name"]:
            last["text"] += output["text"]
        else:
            joined.append(output)
    return joined
