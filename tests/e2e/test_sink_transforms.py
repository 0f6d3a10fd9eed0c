"""A sink of every transform, with state and without: the same bits from every format, whoever is killed, and from a
program's rows; what `where` leaves out is counted; LiveModel answers as predict does; a changed transform is refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import stateful_examples
import transformed
from avro_schemas import record
from example_format import is_columnar, plain_formats

import streamtrain
from streamtrain.clients.topic_reader import read_messages
from streamtrain.columns.formats import encode_records, parse
from tests.e2e.answers import answered, predicted, toml
from tests.e2e.harness import LiveJob, rows
from tests.e2e.sink import BASE, Feature, Place, Plan, Row, run_sink
from tests.e2e.threaded import trained

COUNT = 600
PACKED = 7  # rows a record of a columnar format
WHERE = "x1 > 0.5 and (colour != 'green' or big == 1)"
OWN = 'big = { expr = "x2 > 3", role = "input" }\nx12 = { expr = "x1 * x2", standardize = true }'
_IDS = '{ kind = "category", hash_bits = 64, vocabulary = { capacity = 60, admit = 2 }, embed = 4, missing = "" }'
HASHES = f"id = {_IDS}"


CLOCK = "at"  # the one column that examples share


def lines(tables: dict[str, Any]) -> str:
    return "\n".join(f"{name} = {toml(table)}" for name, table in tables.items())


def give(cells: Sequence[Row], place: Place, row: Row) -> None:
    row |= cells[place.row]


def feature(name: str, columns: dict[str, Any], table: dict[str, Any], cells: Sequence[Row]) -> Feature:
    """A transform with columns of its own."""
    own = [{column: each[column] for column in columns} for each in cells]
    return Feature(name, {"columns": lines(columns), "transforms": lines({name: table})}, cells=partial(give, own))


def features() -> list[Feature]:
    columns, tables, cells = transformed.together(3, COUNT)
    without_state = [
        feature(name, {c: columns[c] for c in columns if c.startswith(name.removeprefix("made_") + "_")}, table, cells)
        for name, table in tables.items()
    ]
    columns, tables = stateful_examples.together()
    cells = stateful_examples.cells(columns, COUNT)
    with_state = [
        feature(name, {c: columns[c] for c in columns if c.endswith(name.removeprefix("made"))}, table, cells)
        for name, table in tables.items()
    ]
    return [*without_state, *with_state]


def given(chosen: Sequence[Feature]) -> tuple[dict[str, str], list[Row]]:
    """The job file's sections but for records.format, and the rows."""
    columns, _ = stateful_examples.together()
    shared = {name: column for name, column in columns.items() if name in ("worded", CLOCK)}
    base = {
        "columns": "\n".join([BASE["columns"], HASHES, lines(shared)]), "transforms": OWN,
        "records": f"max_dead_letter_share = 1.0\nwhere = {toml(WHERE)}",
    }  # fmt: skip
    cells = stateful_examples.cells(columns, COUNT)
    held = []
    for at, row in enumerate(rows(COUNT)):
        row |= {"id": "" if at % 11 == 0 else f"u{at * at % 97}", **{name: cells[at][name] for name in shared}}
        for each in chosen:
            each.cells(Place(at, at), row)
        held.append(row)
    return base, held


def any_avro(names: Iterable[str]) -> str:
    """The format of rows of which any field may be anything, as a job file has it."""
    scalar = ["null", "boolean", "long", "double", "string"]
    cell = [*scalar, {"type": "array", "items": scalar}]
    return f'format = "avro"\nschema = {toml(json.dumps(record(*((name, cell) for name in names))))}'


def is_kept(row: Row) -> bool:
    return row["x1"] > 0.5 and (row["colour"] != "green" or row["x2"] > 3)


def produce(job: LiveJob, held: list[Row]) -> None:
    packed = PACKED if is_columnar(job.job.records.format) else 1
    for at in range(0, len(held), packed):
        job.produce_values(encode_records(job.job.records.named, job.job.schema, held[at : at + packed]))


def run(kafka: Any, folder: Path, chosen: Sequence[Feature]) -> None:
    base, held = given(chosen)

    def job(name: str, format: str) -> LiveJob:
        text = Plan({**base, "records": f"{format}\n{base['records']}"}).job(chosen)
        return LiveJob(kafka, folder, "transforms", text, partitions=1, format=name)

    schema = job("json", 'format = "json"').job.schema
    names = [name for name in plain_formats(schema) if name != "csv"]  # in which all is text
    jobs = [*(job(name, f'format = "{name}"') for name in names), job("avro", any_avro(schema.record_names))]
    for each in jobs:
        produce(each, held)
    first, *others = jobs
    events = first.train("--until-end", failpoints="worker.stepped=3,worker.averaging=2")
    assert [event["event"] for event in events].count("worker_died") == 2
    for each in others:
        assert trained(each.path).code == 0
    newest = first.newest()
    for each in jobs:
        found = each.newest()
        assert (found.model, found.trainer) == (newest.model, newest.trainer), each.settings["format"]
        told = each.verified()["rows"]
        assert told["trained"] > COUNT / 4 and sum(told.values()) == COUNT, told
        assert told["dead_lettered"] > 0 or len(chosen) < len(features())
        assert told["filtered"] >= sum(not is_kept(row) for row in held)
    assert len(first.replayed()["snapshots"]) >= 1
    check_hashes(next(each for each in jobs if each.settings["format"] == "packed"))
    check_answers(first, held)
    check_changes(first)


def check_hashes(job: LiveJob) -> None:
    """Packed records hold 64 bits of a hash where the others hold texts."""
    (message, *_) = read_messages(job.job, "records", until_end=True)
    cells = dict(parse("packed", message.value or b"").columns or [])["id"]
    assert isinstance(cells, list) and [cell.bits for cell in cells[1:]] == [64] * (PACKED - 1)


def check_answers(job: LiveJob, held: list[Row]) -> None:
    asked = [{name: cell for name, cell in row.items() if name != "y"} for row in held[:120]]
    fitted = streamtrain.fit(job.path, held)
    with job.model() as live:
        answers = answered(live.predict(asked, errors="return"))
        assert answered(fitted.predict(asked, errors="return")) == answers
        columns = {name: [row[name] for row in asked] for name in asked[0]}
        for form in (columns, pd.DataFrame(asked, dtype=object)):
            assert answered(live.predict(form, errors="return")) == answers
        assert [answered([live.predict(row, errors="return")])[0] for row in asked] == answers
    assert len({*answers} - {None}) > 20
    assert predicted(job, asked) == answers


def check_changes(job: LiveJob) -> None:
    """A changed transform is refused with the difference."""
    text = job.path.read_text()
    for before, after, told in [
        ('"x1 * x2"', '"x1 - x2"', "transforms.x12.expr: the snapshot has x1 * x2, the job file x1 - x2"),
        ("x1 > 0.5", "x1 > 0.25", "records.where: the snapshot has"),
        ("x12 = {", "x21 = {", "transforms.x21"),
    ]:
        job.path.write_text(text.replace(before, after))
        done = trained(job.path)
        assert done.code == 2 and told in done.errors[0].replace('"', ""), (told, done.errors)


def test_every_transform(kafka: Any, tmp_path: Path) -> None:
    run_sink(kafka, tmp_path, features(), run=partial(run, kafka, tmp_path))


# -- a sink that fails names the features that it takes to fail -------------------------------------------------------

FEATURES = [Feature(name) for name in "abcdefg"]


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (["c"], "fails with c: c is broken"), (["b", "g"], "fails with b; g: b, g are"), ([], None),
        (["a+f"], "fails with only together: a, b, c, d, e, f, g: a+f is broken"),
        (["b+c"], "fails with only together: b, c: b+c is"), (["a", "b+c"], "fails with a; only together: b, c: "),
        ([""], "fails with no feature: "),
    ],
)  # fmt: skip
def test_it_names_what_it_takes_to_fail(broken: list[str], message: str | None) -> None:
    runs: list[str] = []

    def run(chosen: Sequence[Feature]) -> None:
        names = {each.name for each in chosen}
        runs.append("".join(sorted(names)))
        found = [each for each in broken if {*each.split("+")} - {""} <= names]
        assert not found, f"{', '.join(found)} {'is' if len(found) == 1 else 'are'} broken"

    if message is None:
        return run_sink(None, None, FEATURES, run=run)  # type: ignore[arg-type]
    with pytest.raises(AssertionError) as raised:
        run_sink(None, None, FEATURES, run=run)  # type: ignore[arg-type]
    assert message in str(raised.value)
    assert runs[0] == "abcdefg" and len(runs) <= 2 * len(FEATURES)
