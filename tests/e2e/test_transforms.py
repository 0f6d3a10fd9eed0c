"""Every transform there is, in one job on Kafka: the same bits from every format and from a program's rows, whoever is
killed; what `where` leaves out is counted; LiveModel answers as predict does; a changed transform is refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from avro_schemas import record
from example_format import is_columnar, plain_formats
from transformed import together

import streamtrain
from streamtrain import LiveModel
from streamtrain.columns.formats import encode_records
from tests.e2e.answers import answered, predicted, toml
from tests.e2e.harness import LiveJob, rows

COUNT = 600
WHERE = "x1 > 0.5 and (colour != 'green' or big == 1)"
OWN = 'big = { expr = "x2 > 3", role = "input" }\nx12 = { expr = "x1 * x2", standardize = true }\n'


def given() -> tuple[str, list[dict[str, Any]]]:
    """The rest of the job file, and its rows."""
    columns, tables, others = together(3, COUNT)
    own = {name: column for name, column in columns.items() if name not in ("plain", "late")}
    told = [f"{name} = {toml(column)}" for name, column in own.items()]
    told += ["[transforms]", *(f"{name} = {toml(table)}" for name, table in tables.items()), OWN]
    held = [
        {**row, **{name: cell for name, cell in other.items() if name in own}}
        for row, other in zip(rows(COUNT), others, strict=True)
    ]
    return "\n".join(told), held


def any_avro(names: Iterable[str]) -> str:
    """The format of rows of which any field may be anything, as a job file has it."""
    scalar = ["null", "boolean", "long", "double", "string"]
    cell = [*scalar, {"type": "array", "items": scalar}]
    return f"avro\"\nschema = {toml(json.dumps(record(*((name, cell) for name in names))))}".removesuffix('"')


def is_kept(row: dict[str, Any]) -> bool:
    return row["x1"] > 0.5 and (row["colour"] != "green" or row["x2"] > 3)


def made(kafka: Any, folder: Path, **settings: Any) -> LiveJob:
    columns, _ = given()
    job = LiveJob(
        kafka, folder, partitions=1, round_interval="off", max_dead_letter_share=1.0, batch_rows=16,
        more_columns=columns, **settings,
    )  # fmt: skip
    job.path.write_text(job.path.read_text().replace("[records]\n", f"[records]\nwhere = {toml(WHERE)}\n"))
    job.job = streamtrain.Job.load(job.path)
    return job


def produce(job: LiveJob, held: list[dict[str, Any]]) -> None:
    packed = 7 if is_columnar(job.job.records.format) else 1
    values = [value for at in range(0, len(held), packed)
              for value in encode_records(job.job.records.named, job.job.schema, held[at : at + packed])]  # fmt: skip
    job.produce_values(values, partition=0)


def test_the_same_bits_from_every_format_and_a_program(kafka: Any, tmp_path: Path) -> None:
    _, held = given()
    schema = made(kafka, tmp_path, format="json").job.schema
    names = [name for name in plain_formats(schema) if name != "csv"]  # in which all is text
    jobs = [made(kafka, tmp_path, format=name) for name in (*names, any_avro(schema.record_names))]
    for number, job in enumerate(jobs):
        produce(job, held)
        failpoints = "worker.stepped=3,worker.averaging=2" if number == 0 else ""
        events = job.train("--until-end", failpoints=failpoints)
        assert any(event["event"] == "worker_died" for event in events) == bool(failpoints)
    first, *others = [job.newest() for job in jobs]
    assert all((each.model, each.trainer) == (first.model, first.trainer) for each in others)
    for job in jobs:
        told = job.verified()["rows"]
        assert told["trained"] > COUNT / 4 and told["dead_lettered"] > 0
        assert told["filtered"] >= sum(not is_kept(row) for row in held)
        assert sum(told.values()) == COUNT
    assert len(jobs[0].replayed()["snapshots"]) >= 1
    model = streamtrain.fit(jobs[0].path, held)
    with LiveModel(jobs[0].name, bootstrap=jobs[0].bootstrap) as live:
        live.wait_ready(60)
        asked = [{name: cell for name, cell in row.items() if name != "y"} for row in held[:120]]
        answers = live.predict(asked, errors="return")
        assert answered(model.predict(asked, errors="return")) == answered(answers)
        frame = pd.DataFrame(asked, dtype=object)
        columns = {name: [row[name] for row in asked] for name in asked[0]}
        for form in (columns, frame):
            assert answered(live.predict(form, errors="return")) == answered(answers)
        assert [answered([live.predict(row, errors="return")])[0] for row in asked] == answered(answers)
    assert sum(answer is not None for answer in answered(answers)) > 20
    assert predicted(jobs[0], asked) == answered(answers)


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ('"x1 * x2"', '"x1 - x2"', "transforms.x12.expr: the snapshot has x1 * x2, the job file x1 - x2"),
        ("x1 > 0.5", "x1 > 0.25", "records.where: the snapshot has"),
        ("x12 = {", "x21 = {", "transforms.x21"),
    ],
    ids=["a transform", "the condition", "a name"],
)
def test_a_change_under_a_snapshot_is_refused_with_the_difference(
    kafka: Any, tmp_path: Path, before: str, after: str, told: str
) -> None:
    job = LiveJob(kafka, tmp_path, partitions=1, more_columns="[transforms]\n" + OWN)
    job.path.write_text(job.path.read_text().replace("[records]\n", '[records]\nwhere = "x1 > 0.5"\n'))
    job.produce(200)
    assert job.train("--until-end")[-1]["rows"] == sum(row["x1"] > 0.5 for row in rows(200))
    job.path.write_text(job.path.read_text().replace(before, after))
    done = job.command("train", "--until-end")
    assert done.returncode == 2 and told in done.stderr.replace('"', ""), done.stderr
