"""Rows of a file as the job's columns want them: texts of a CSV become numbers where the column is one."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from streamtrain.cli.sampled import iso_ms
from streamtrain.columns.paths import Path, cell_at, nested
from streamtrain.errors import UserMistake
from streamtrain.job import Job

Row = dict[str, Any]


def _number(cell: Any) -> Any:
    """A number for a text that is one; anything else stays, and is answered by a dead letter."""
    if not isinstance(cell, str):
        return cell
    text = cell.strip()
    if text.isdecimal() and text.isascii():
        return int(text)
    try:
        number = float(text)
    except ValueError:
        return {"true": 1, "false": 0}.get(text.lower(), cell)
    return number if abs(number) < float("inf") else cell


def prepared(job: Job, rows: Iterator[Row], *, label: bool) -> Iterator[Row]:
    """The rows with the job's columns only, texts as numbers where the column is one; without `label` as requests.

    A column's cell stands at its path, or, as in a table, at its name. Raises UserMistake where the first row has none
    of the columns: the input is of another job.
    """
    asked = job.schema.for_requests().decoded_names
    columns = {
        name: column
        for name, column in job.schema.columns
        if label or not column.entry.decoded or name in asked
    }
    numbers = {name for name, column in columns.items() if column.entry.is_numeric(column)}
    times = {name for name, column in columns.items() if column.entry.time_unit(column) == (1, 1)}
    paths = job.schema.paths
    for number, row in enumerate(rows):
        found = {name: row[name] for name in columns if name in row} if not paths else _at_paths(row, columns, paths)
        if number == 0 and not found:
            wanted, got = ", ".join(list(columns)[:12]), ", ".join(list(row)[:12])
            raise UserMistake(f"input: expected some of the job's columns {wanted}; got {got}")
        cells = {name: _number(cell) if name in numbers else cell for name, cell in found.items()}
        for name in times & cells.keys():
            moment = iso_ms(cells[name])
            cells[name] = cells[name] if moment is None else moment
        yield nested(cells, paths) if paths else cells


def _at_paths(row: Row, columns: Collection[str], paths: Mapping[str, Path]) -> Row:
    found = {name: cell_at(row, paths.get(name, (name,))) for name in columns}
    found |= {name: row[name] for name in columns if found[name] is None and name in row}
    return {name: cell for name, cell in found.items() if cell is not None}
