"""Parts of a job's model and the cost of a step. It runs nothing and asks no Kafka."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from streamtrain import _native
from streamtrain.cli.console import table
from streamtrain.cli.session import JobFile, Session, command
from streamtrain.compute.explain import explained
from streamtrain.compute.graph_picture import picture
from streamtrain.compute.model import Model
from streamtrain.errors import UserMistake

ORDER = 42
app = typer.Typer(add_completion=False)


@app.command()
@command
def explain(
    session: Session,
    job: JobFile,
    svg: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw the vertices into this file.")] = None,
) -> None:
    """Show the model of a job: its vertices with their columns and parameters, the memory of its state and of a
    worker's workspace, the kernels of a step, and the arithmetic of a row.

    Runs nothing and asks no Kafka.
    """
    found = session.job(job)
    model = Model(found.model_spec(), found.network)
    slots = _native.SlotLayout.make(found.train.update_rows, 1, found.schema.block_specs())
    document = {"job": found.name, **explained(model, model.program(slots))}
    if svg is not None:
        _write(svg, picture(document["vertices"]))
    session.out.document(document, _vertices(document), "", _memory(document), "", _phases(document))


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserMistake(f"{path}: cannot be written: {error.strerror}") from None


def _vertices(document: dict[str, Any]) -> Table:
    rows = [(each["name"], each["kind"], ", ".join(each["reads"]), f"{each['columns']:,}", f"{each['parameters']:,}")
            for each in document["vertices"]]  # fmt: skip
    return table(["vertex", "", "reads", "columns", "parameters"], rows)


def _memory(document: dict[str, Any]) -> Table:
    rows = [(f"state: {group}", _size(size)) for group, size in document["state_bytes"].items()]
    apart = f"{_size(document['workspace_bytes'])}, of {_size(document['workspace_bytes_apart'])} side by side"
    return table(["memory", ""], [*rows, (f"workspace of a worker, {document['rows']:,} rows", apart)])


def _phases(document: dict[str, Any]) -> Table:
    rows = [
        (phase, f"{cost['calls']:,}", f"{cost['by_tiles']:,}", f"{cost['launches']:,}", f"{cost['bytes_per_row']:,}",
         f"{cost['product_flop_per_row']:,}",
         " ".join(f"{name}{f' x {count}' if count > 1 else ''}" for name, count in cost["ops"].items()))
        for phase, cost in document["phases"].items()
    ]  # fmt: skip
    return table(["phase", "calls", "by tiles", "launches", "bytes a row", "FLOP of products", "kernels"], rows)


def _size(size: int) -> str:
    return f"{size / 2**20:,.1f} MiB" if size >= 2**20 else f"{size / 2**10:,.1f} KiB"
