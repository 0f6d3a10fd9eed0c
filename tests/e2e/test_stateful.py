"""Every transform with state and every one without, in one job on Kafka: the same bits from two formats, a program's
rows, whoever is killed, and at prediction.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from example_format import is_columnar, plain_formats
from stateful_examples import cells, together
from transformed import together as every_without_state

import streamtrain
from streamtrain import LiveModel, RecordWriter
from streamtrain.clients.topic_reader import read_messages
from streamtrain.columns.formats import encode_records, parse
from tests.e2e.answers import answered, predicted, toml
from tests.e2e.harness import LiveJob, rows

COUNT = 500


def given() -> tuple[str, list[dict[str, Any]]]:
    """The rest of the job file, and its rows."""
    own, with_state = together()
    columns, tables, others = every_without_state(3, COUNT)
    columns = own | {name: column for name, column in columns.items() if name not in ("plain", "late")}
    told = [f"{name} = {toml(column)}" for name, column in columns.items()]
    told += ["[transforms]", *(f"{name} = {toml(table)}" for name, table in {**tables, **with_state}.items())]
    rests = ({name: cell for name, cell in other.items() if name in columns} for other in others)
    joined = zip(rows(COUNT), rests, cells(own, COUNT), strict=True)
    return "\n".join(told), [{**row, **rest, **each} for row, rest, each in joined]


def made(kafka: Any, folder: Path, **settings: Any) -> LiveJob:
    settings = {"partitions": 1, "round_interval": "off", "batch_rows": 16, **settings}
    return LiveJob(kafka, folder, more_columns=given()[0], max_dead_letter_share=1.0, **settings)


def produce(job: LiveJob, held: list[dict[str, Any]]) -> None:
    packed = 7 if is_columnar(job.job.records.format) else 1
    values = [value for at in range(0, len(held), packed)
              for value in encode_records(job.settings["format"], job.job.schema, held[at : at + packed])]  # fmt: skip
    job.produce_values(values, partition=0)


def test_the_same_bits_from_formats_and_a_program_whoever_is_killed(kafka: Any, tmp_path: Path) -> None:
    held = given()[1]
    schema = made(kafka, tmp_path, format="json").job.schema
    first, *_, last = [name for name in plain_formats(schema) if name != "csv"]  # in which all is text
    jobs = [made(kafka, tmp_path, format=name) for name in (first, last)]
    for job, failpoints in zip(jobs, ("worker.stepped=3,worker.averaging=2", ""), strict=True):
        produce(job, held)
        events = job.train("--until-end", failpoints=failpoints)
        assert any(event["event"] == "worker_died" for event in events) == bool(failpoints)
    one, other = (job.newest() for job in jobs)
    assert (one.model, one.trainer) == (other.model, other.trainer)
    for job in jobs:
        told = job.verified()["rows"]
        assert told["trained"] > COUNT / 4 and sum(told.values()) == COUNT
    assert len(jobs[0].replayed()["snapshots"]) >= 1
    fitted = streamtrain.fit(jobs[0].path, held)
    asked = [{name: cell for name, cell in row.items() if name != "y"} for row in held[:50]]
    with LiveModel(jobs[0].name, bootstrap=jobs[0].bootstrap) as live:
        live.wait_ready(60)
        answers = answered(live.predict(asked, errors="return"))
        assert answered(fitted.predict(asked, errors="return")) == answers
        assert [answered([live.predict(row, errors="return")])[0] for row in asked] == answers
    assert len({*answers} - {None}) > 15
    assert predicted(jobs[0], asked) == answers


def test_a_vocabulary_of_hashes_that_records_hold(kafka: Any, tmp_path: Path) -> None:
    """64 bits of a hash in packed records: the same ids as of texts in others, whoever is killed."""
    more = ('id = { kind = "category", hash_bits = 64, vocabulary = { capacity = 60, admit = 2 }, embed = 4, '
            'missing = "" }')  # fmt: skip
    held = [{**row, "id": "" if at % 11 == 0 else f"u{at * at % 97}"} for at, row in enumerate(rows(COUNT))]
    states = []
    for name, failpoints in (("packed", "worker.stepped=3"), ("json", "")):
        job = LiveJob(kafka, tmp_path, format=name, more_columns=more, partitions=1, round_interval="off")
        with RecordWriter(job.job, pack=7) as writer:
            writer.write(held)
        (record, *_) = read_messages(job.job, "records", until_end=True)
        if name == "packed":
            cells = dict(parse(name, record.value or b"").columns or [])["id"]
            assert isinstance(cells, list) and [cell.bits for cell in cells[1:]] == [64] * 6
        job.train("--until-end", failpoints=failpoints)
        assert job.verified()["rows"]["trained"] == COUNT and job.replayed()["snapshots"]
        newest = job.newest()
        states.append((newest.model, newest.trainer))
        with LiveModel(job.name, bootstrap=job.bootstrap) as live:
            live.wait_ready(60)
            asked = [{k: cell for k, cell in row.items() if k != "y"} for row in held[:40]]
            answers = answered(live.predict(asked, errors="return"))
        assert predicted(job, asked) == answers and len({*answers}) > 15
    assert states[0] == states[1]
