"""Every file that is read is read here: rows as they are, or blocks of what a job wants of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from streamtrain.columns.forms import FileRows
from streamtrain.columns.rejected import Unreadable
from streamtrain.errors import UserMistake
from streamtrain.files.blocks import Size, in_blocks
from streamtrain.files.column_selection import ColumnSelection, Row
from streamtrain.files.forms import file_form, form_names, form_of
from streamtrain.files.source import STANDARD_INPUT, Source, opened


def read_rows(path: str, form: str | None = None) -> Iterator[Row]:
    """The rows of a file; "-" is standard input, JSON lines or CSV by its first letter.

    Raises UserMistake, naming the line, for what is not a row.
    """
    with _source(path, form) as (source, found):
        for number, row in file_form(found).rows(source):
            if isinstance(row, Unreadable):
                raise UserMistake(f"{source.name}:{number}: {row.reason}")
            yield row


def read_blocks(
    paths: Sequence[str], selection: ColumnSelection, size: Size, form: str | None = None
) -> Iterator[FileRows]:
    """Yields blocks of what a job reads from the rows of files, one file after the other."""
    for path in paths:
        if not size.rows:
            return
        with _source(path, form) as (source, found):
            module = file_form(found)
            if hasattr(module, "blocks"):
                yield from module.blocks(source, selection, size)
            else:
                yield from in_blocks(source.name, module.rows(source), selection, size)


def without_first(blocks: Iterator[FileRows], skip: int) -> Iterator[FileRows]:
    """The rows of blocks behind the first `skip`."""
    for block in blocks:
        if skip < block.row_count:
            yield block.behind(skip) if skip else block
        skip = max(0, skip - block.row_count)


def count_rows(path: str) -> int:
    """Counts the rows of a file, without parsing each if the format allows. Raises UserMistake as read_rows()."""
    with _source(path, None) as (source, found):
        module = file_form(found)
        if hasattr(module, "count"):
            return int(module.count(source))
        return sum(1 for _ in module.rows(source))


@contextmanager
def _source(path: str, form: str | None) -> Iterator[tuple[Source, str]]:
    found = form or (None if path == STANDARD_INPUT else form_of(path, "rows"))
    if path == STANDARD_INPUT and found is not None and not file_form(found).TEXT:
        texts = [name for name in form_names() if file_form(name).TEXT]
        raise UserMistake(f"standard input: expected one of {', '.join(texts)}, got {found}")
    with opened(path) as source:
        if found is None:
            found = "jsonl" if source.begin().lstrip().startswith(b"{") else "csv"
        yield source, found
