"""Files as a source: what a lineage goes on with, and what is refused; records have the same places however often they
are read."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from streamtrain.checks.verify.frontier import Frontier
from streamtrain.errors import UserMistake
from streamtrain.files.found import FoundFile, found_files
from streamtrain.files.placed import placed_records
from streamtrain.job import Job
from streamtrain.record_sources.file_source import FileRecordSource, check_read
from streamtrain.record_sources.source_changes import left_topic, list_files, move
from streamtrain.record_sources.source_kind import source_of
from streamtrain.topics.manifest import Position, Positions
from tests.fitting.example import TABLES, columns, dicts
from tests.fitting.test_fit import written

JOB = Job.from_tables(TABLES)
ROWS = 3000


def write(path: Path, given: dict[str, Any]) -> str:
    """In the form that the name's end says, in pieces where a form has some."""
    table = pyarrow.table(given)
    if path.suffix == ".parquet":
        pyarrow.parquet.write_table(table, path, row_group_size=700)
    elif path.suffix == ".arrow":
        with pyarrow.ipc.new_file(path, table.schema) as file:
            file.write_table(table, max_chunksize=999)
    elif path.suffix == ".jsonl":
        path.write_text("".join(f"{json.dumps(row)}\n\n" for row in dicts(given)))
    elif path.suffix == ".npy":
        np.save(path, np.rec.fromarrays(list(given.values()), names=",".join(given)))
    else:
        return written(path, dicts(given))
    return str(path)


@pytest.fixture(scope="module")
def given() -> dict[str, Any]:
    return columns(ROWS)


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet", ".arrow", ".npy"])
def test_records_have_the_same_places_wherever_reading_begins(
    suffix: str, given: dict[str, Any], tmp_path: Path
) -> None:
    path = write(tmp_path / f"rows{suffix}", given)
    whole = list(placed_records(path, JOB.schema, JOB.records.named))
    assert [row for row, _ in whole] == list(np.cumsum([0, *(record.rows for _, record in whole)])[:-1])
    assert sum(record.rows for _, record in whole) == ROWS == found_files([path])[0].rows
    for number, (row, _) in enumerate(whole):
        assert list(placed_records(path, JOB.schema, JOB.records.named, row)) == whole[number:]
    with pytest.raises(UserMistake, match="expected a record that begins with row 5, got one of rows 0 to"):
        next(placed_records(path, JOB.schema, JOB.records.named, 5))


def test_what_is_found(given: dict[str, Any], tmp_path: Path) -> None:
    paths = [write(tmp_path / name, given) for name in ("b.csv", "a.csv")]
    found = found_files([str(tmp_path / "*.csv"), paths[0]])
    assert [file.name for file in found] == ["a.csv", "b.csv", "b.csv"]
    assert {file.digest for file in found} == {found[0].digest} and {file.rows for file in found} == {ROWS}
    found[0].check_unchanged()
    Path(paths[1]).write_text("a,b\n")
    with pytest.raises(UserMistake, match=rf"a.csv: expected the file with the digest {found[0].digest}, got one that"):
        found[0].check_unchanged()
    odd = tmp_path / os.fsdecode(b"caf\xe9.csv")  # a name that is no text, and can be published
    odd.write_text("a,b\n1,2\n")
    (one,) = found_files([str(odd)])
    assert one.rows == 1 and one.name == msgpack.unpackb(msgpack.packb(one.name)) == "caf\ufffd.csv"
    for wrong, text in (("-", "standard input"), (str(tmp_path / "*.x"), "found none"), ("no.csv", "cannot be read")):
        with pytest.raises(UserMistake, match=text):
            found_files([wrong])


def record_source(*names: str) -> FileRecordSource:
    return FileRecordSource(JOB, [FoundFile(f"data/{name}", f"digest of {name}", 100, (1, 1)) for name in names])


TOPIC = Positions("topic", (Position(7, 2), Position(9)))


def begun(*at: int) -> tuple[Positions, Any]:
    """Returns the positions of files a and b, read up to the rows `at`, and the gaps."""
    positions, gaps = record_source("a", "b").begin()
    return Positions(positions.topic_id, tuple(Position(row) for row in at)), gaps


@pytest.mark.timeout(20)
def test_what_cannot_be_read_again_is_refused_before_it_is_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "rows.csv")
    for path in (tmp_path / "rows.csv", tmp_path):
        with pytest.raises(UserMistake, match="expected a file, which can be read again"):
            found_files([str(path)])


def test_it_goes_on_where_it_was() -> None:
    seen, gaps = begun(100, 40)
    files, topic = source_of(seen.topic_id), source_of("topic")
    assert files.begins(seen.topic_id, gaps) and topic.begins("topic", ()) and not topic.begins("topic", gaps)
    assert record_source("a", "b").go_on(3, seen, gaps) == (seen, ())
    after, (added,) = record_source("a", "b", "c", "a").go_on(3, seen, gaps)
    assert after == Positions(seen.topic_id, (*seen.partitions, Position(0), Position(0)))
    assert [file.name for file in list_files((*gaps, added), seen.topic_id)] == ["a", "b", "c", "a"]
    assert record_source("a", "b", "c", "a").go_on(4, after, (*gaps, added)) == (after, ())


@pytest.mark.parametrize(
    ("names", "at", "words"),
    [
        ("ax", (100, 40), r"b: snapshot 3 has read it up to row 40 of 100: .*digest of b, got data/x with"),
        ("xb", (100, 40), r"a: snapshot 3 has read it up to row 100 of 100: .*digest of a, got data/x with"),
        ("a", (100, 40), r"digest of b, got no file in its place"),
        ("ba", (30, 0), r"a: snapshot 3 .* row 30 .*got data/b with the digest digest of b in its place"),
        ("b", (100, 100), r"data/b: expected a file that this lineage has not read"),
        ("ca", (100, 100), r"data/a: expected a file that this lineage has not read"),
    ],
)
def test_what_would_be_trained_twice_or_not_at_all_is_refused(names: str, at: tuple[int, int], words: str) -> None:
    seen, gaps = begun(*at)
    with pytest.raises(UserMistake, match=words):
        record_source(*names).go_on(3, seen, gaps)


def test_a_topic_comes_after_the_last_row() -> None:
    seen, gaps = begun(100, 40)
    with pytest.raises(UserMistake, match=r"b: snapshot 3 has read it up to row 40 of 100.*got no --files"):
        check_read(3, seen, gaps, accept_gap=False)
    check_read(3, seen, gaps, accept_gap=True)
    check_read(3, Positions(seen.topic_id, (Position(100), Position(100))), gaps, accept_gap=False)


def test_a_topic_is_left_and_found_again() -> None:
    seen, (moved,) = record_source("a").go_on(3, TOPIC, ())
    assert left_topic((moved,)) == TOPIC and left_topic(()) is None
    frontier = Frontier.of(TOPIC)
    back = move("back", seen, TOPIC)
    assert not frontier.pass_gap(back) and frontier.pass_gap(moved) and frontier.topic_id == seen.topic_id
    assert frontier.pass_gap(back) and frontier.places == {0: (7, 2), 1: (9, 0)}


def test_more_files_are_passed_where_they_are_as_many_as_recorded() -> None:
    seen, gaps = begun(100, 40)
    _, (added,) = record_source("a", "b", "c").go_on(3, seen, gaps)
    frontier = Frontier.of(seen)
    for wrong in ({**added, "from": 1, "to": 2}, {**added, "to": 4}):
        assert not frontier.pass_gap(wrong)
    assert frontier.pass_gap(added) and frontier.places == {0: (100, 0), 1: (40, 0), 2: (0, 0)}
