"""Rows from a CSV, JSON lines, Parquet, VW or libsvm file, or from standard input, for `produce` and `init`.

Never a file at once. Cells of a CSV are texts; an empty one is None.
"""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import IO, Any

from streamtrain.columns.formats import format_names, parse
from streamtrain.columns.formats.parsed import contains_unusable
from streamtrain.errors import UserMistake

Row = dict[str, Any]
SUFFIXES = {
    ".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet", ".vw": "vw", ".libsvm": "libsvm",
    ".svm": "libsvm", ".svmlight": "libsvm",
}  # fmt: skip
_BATCH_ROWS = 10_000  # of a Parquet file held at once


def read_rows(path: str, kind: str | None = None) -> Iterator[Row]:
    """The rows of a file; "-" is standard input, JSON lines or CSV by its first letter.

    Raises UserMistake, naming the line, for what is not a row.
    """
    if path == "-":
        yield from _text_rows(sys.stdin, "standard input", kind)
        return
    found = kind or SUFFIXES.get(Path(path).suffix.lower())
    if found is None:
        raise UserMistake(f"{path}: expected a file ending in {', '.join(SUFFIXES)}, or - for standard input")
    try:
        if found == "parquet":
            yield from _parquet_rows(path)
        else:
            with open(path, encoding="utf-8-sig", newline="") as file:
                yield from _text_rows(file, path, found)
    except OSError as error:
        raise UserMistake(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UserMistake(f"{path}: expected UTF-8 text: {error}") from error


def _text_rows(file: IO[str], name: str, kind: str | None) -> Iterator[Row]:
    first = file.readline()
    if not first.strip():
        return
    lines = chain([first], file)
    if kind is not None and is_records(kind):
        yield from _format_rows(lines, name, kind)
    elif kind == "jsonl" or (kind is None and first.lstrip().startswith("{")):
        yield from _json_rows(lines, name)
    else:
        yield from _csv_rows(lines, name)


def is_records(kind: str) -> bool:
    """Whether a file's lines are records of a format as they stand: of texts that hold features by index."""
    return kind in format_names() and parse(kind, b"").by_role


def _format_rows(lines: Iterator[str], name: str, kind: str) -> Iterator[Row]:
    for number, line in enumerate(lines, 1):
        parsed = parse(kind, line.encode()) if line.strip() else None
        for row in [] if parsed is None else parsed.rows:
            if not isinstance(row, list) or contains_unusable(row):
                raise UserMistake(f"{name}:{number}: expected a line of {kind}, got {line.strip()[:60]!r}")
            yield dict(row)


def _json_rows(lines: Iterator[str], name: str) -> Iterator[Row]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            raise UserMistake(f"{name}:{number}: expected a JSON object, got {line.strip()[:60]!r}: {error}") from error
        if not isinstance(row, dict):
            raise UserMistake(f"{name}:{number}: expected a JSON object, got {line.strip()[:60]!r}")
        yield row


def _csv_rows(lines: Iterator[str], name: str) -> Iterator[Row]:
    reader = csv.reader(lines)
    header = next(reader)
    if len(set(header)) != len(header):
        raise UserMistake(f"{name}:1: expected column names that differ, got {', '.join(header)}")
    for cells in reader:
        if not cells:
            continue
        if len(cells) != len(header):
            raise UserMistake(f"{name}:{reader.line_num}: expected {len(header)} cells, got {len(cells)}")
        yield {column: cell if cell != "" else None for column, cell in zip(header, cells, strict=True)}


def _parquet_rows(path: str) -> Iterator[Row]:
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise UserMistake(f"{path}: Parquet needs pyarrow: pip install 'streamtrain[data]'") from error
    try:
        file = pyarrow.parquet.ParquetFile(path)
    except pyarrow.lib.ArrowInvalid as error:
        raise UserMistake(f"{path}: not a Parquet file: {error}") from error
    with file:
        for batch in file.iter_batches(batch_size=_BATCH_ROWS):
            yield from batch.to_pylist()
