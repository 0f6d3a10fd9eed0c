"""Batches of rows into a file that is there whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import ExitStack, closing, suppress
from pathlib import Path

from streamtrain.columns.row_plan import Part, Rows
from streamtrain.errors import UserMistake
from streamtrain.files.forms import file_form, form_of


class Stopped(Exception):
    """The one who asked for it wants no file any more."""


def write_rows(path: str, parts: list[Part], batches: Iterable[Rows]) -> int:
    """The batches one behind the other, in the form that the file's name ends in; how many rows they are.

    Written beside it and then put in its place: whatever ends it before leaves the file as it was. UserMistake for a
    form that such columns cannot be written in, and where the file cannot be written.
    """
    form = file_form(form_of(path, "Writer"))
    ragged = [part.name for part in parts if part.block.ragged]
    if ragged and not form.Writer.LISTS:
        raise UserMistake(f"{path}: expected a form whose cells may be lists, such as .parquet, for {ragged[0]}")
    beside = Path(path).with_name(f".{Path(path).name}.{os.getpid()}.part")
    rows = 0
    with ExitStack() as stack:
        stack.callback(_removed, beside)
        try:
            with open(beside, "wb") as file:
                with closing(form.Writer(file, path, parts)) as writer:
                    for batch in batches:
                        writer.add(batch)
                        rows += batch.count
                    writer.finish()
                file.flush()
                os.fsync(file.fileno())
            os.replace(beside, path)
        except OSError as error:
            raise UserMistake(f"{path}: cannot be written: {error.strerror or error}") from error
    return rows


def _removed(path: Path) -> None:
    with suppress(OSError):
        path.unlink()
