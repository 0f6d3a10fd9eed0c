"""Columns from the messages around records train, predict, verify and replay as the same cells in the records do."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
from confluent_kafka import Producer

from streamtrain import LiveModel, read_predictions
from streamtrain.columns.formats import record_format
from tests.e2e import commands
from tests.e2e.harness import LiveJob, rows

COUNT = 1_500
FIRST_MS = time.time_ns() // 1_000_000 - 3_600_000  # one that Kafka neither refuses nor removes
COLUMNS = """
at = {{ kind = "number", standardize = true{timestamp} }}
tenant = {{ kind = "category", buckets = 32, embed = 2, missing = "none"{tenant} }}
user = {{ kind = "category", buckets = 64, embed = 2{key} }}
place = {{ kind = "category", buckets = 8, embed = 2{partition} }}
number = {{ kind = "number", standardize = true{offset} }}
when = {{ role = "event_time"{timestamp} }}
"""
NAMES = {"timestamp": "timestamp", "tenant": "headers.tenant", "key": "key", "partition": "partition",
         "offset": "offset"}  # fmt: skip
AROUND = COLUMNS.format(**{name: f', from = "{source}"' for name, source in NAMES.items()})
INSIDE = COLUMNS.format(**dict.fromkeys(NAMES, ""))


def messages() -> Iterator[tuple[dict[str, Any], list[dict[str, Any]], dict[str, Any]]]:
    """What a message is made with, its rows, and the fields that say inside a record what is around one."""
    given = list(rows(COUNT))
    at = offset = 0
    while at < COUNT:
        count = min((1, 40, 7)[offset % 3], COUNT - at)
        key, tenant = f"user {offset % 50}", (None if offset % 5 == 4 else f"tenant {offset % 9}")
        headers = [] if tenant is None else [("tenant", b"first"), ("tenant", tenant.encode()), ("more", None)]
        around = {"key": key.encode(), "headers": headers, "timestamp": FIRST_MS + 77 * offset}
        inside = {"at": FIRST_MS + 77 * offset, "when": FIRST_MS + 77 * offset, "tenant": tenant, "user": key,
                  "place": 0, "number": offset}  # fmt: skip
        yield around, given[at : at + count], inside
        at, offset = at + count, offset + 1


def produce(job: LiveJob, columns: str) -> None:
    producer = Producer({"bootstrap.servers": job.bootstrap})
    for number, (around, given, inside) in enumerate(messages()):
        held = given if columns is AROUND else [{**row, **inside} for row in given]
        producer.produce(job.records, value=value_of(job, held, number), partition=0, **around)
    assert producer.flush(60) == 0


def value_of(job: LiveJob, held: list[dict[str, Any]], number: int) -> bytes:
    if job.settings["format"] == "packed":
        made: bytes = record_format("packed").encode(
            job.job.schema, {name: [row[name] for row in held] for name in held[0] if held[0][name] is not None}
        )
        return made
    return bytes(msgpack.packb(held[0] if len(held) == 1 else held))


def trained(kafka: Any, folder: Path, columns: str, failpoints: str = "", **settings: Any) -> LiveJob:
    job = LiveJob(kafka, folder, partitions=1, round_interval="off", more_columns=columns, **settings)
    produce(job, columns)
    events = job.train("--until-end", failpoints=failpoints)
    assert events[-1]["rows"] == COUNT
    assert any(event["event"] == "worker_died" for event in events) == bool(failpoints)
    return job


def test_the_bits_are_those_of_fields_whoever_is_killed(kafka: Any, tmp_path: Path) -> None:
    jobs = [trained(kafka, tmp_path, INSIDE), trained(kafka, tmp_path, AROUND, "worker.stepped=9,worker.averaging=3"),
            trained(kafka, tmp_path, AROUND, format="packed")]  # fmt: skip
    inside, *around = [job.newest() for job in jobs]
    assert all((each.model, each.trainer) == (inside.model, inside.trainer) for each in around)
    for job in jobs[1:]:
        assert job.verified()["rows"] == {"trained": COUNT, "dead_lettered": 0, "filtered": 0}
        assert len(job.replayed()["snapshots"]) >= 1
    answers = [predicted(job, columns) for job, columns in zip(jobs[:2], (INSIDE, AROUND), strict=True)]
    assert answers[0] == answers[1] and len(answers[0]) > 50
    assert len(set(answers[0])) > 50
    assert live(jobs[0]) == live(jobs[1]) == answers[0]


def predicted(job: LiveJob, columns: str) -> list[float]:
    """Answers to the first messages' rows as requests; of several partitions, hence by their size."""
    producer = Producer({"bootstrap.servers": job.bootstrap})
    for around, given, inside in list(messages())[:100]:
        row = {name: cell for name, cell in given[0].items() if name != "y"}
        producer.produce(
            f"{job.name}.requests", value=msgpack.packb(row if columns is AROUND else {**row, **inside}),
            partition=0, **around,
        )  # fmt: skip
    assert producer.flush(60) == 0
    assert job.command("predict", "--until-end").returncode == 0
    found = read_predictions(job.name, bootstrap=job.bootstrap, until_end=True)
    return sorted(float(np.float32(answer.prediction["prediction"])) for answer in found)


def live(job: LiveJob) -> list[float]:
    """The same from a program, which has no message and gives fields."""
    given = [{**rows_[0], **inside} for _, rows_, inside in list(messages())[:100]]
    with LiveModel(job.name, bootstrap=job.bootstrap) as model:
        model.wait_ready(60)
        return sorted(float(np.float32(answer["prediction"])) for answer in model.predict(given))


def letters(job: LiveJob, verb: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return commands.run(["dead-letters", verb, str(job.path), *arguments])


def test_a_cell_around_that_does_not_fit_is_a_dead_letter(kafka: Any, tmp_path: Path) -> None:
    """With the place it stands at; verify decodes it again in its message, and resend sends what makes it one again."""
    columns = 'tenant = { kind = "category", buckets = 9, from = "headers.tenant" }'
    job = LiveJob(kafka, tmp_path, partitions=1, max_dead_letter_share=1.0, more_columns=columns)
    producer = Producer({"bootstrap.servers": job.bootstrap})
    for header in (b"acme", b"\xff", None):
        producer.produce(job.records, value=msgpack.packb(list(rows(4))), headers=[("tenant", header)])
    assert producer.flush(60) == 0
    job.train("--until-end")
    assert job.verified()["rows"] == {"trained": 4, "dead_lettered": 8, "filtered": 0}
    job.replayed()
    told = [json.loads(line) for line in letters(job, "list", "--json").stdout.splitlines()]
    assert [(each["path"], each["rows"]) for each in told] == [("headers.tenant", 4)] * 2
    assert told[0]["reason"].endswith("got text that is not UTF-8")
    assert job.command("check").returncode == 0
    assert "would be dead letters again" in letters(job, "resend").stderr
    mended = job.path.read_text().replace('from = "headers.tenant"', 'from = "headers.other", missing = "-"')
    job.path.write_text(mended)
    done = letters(job, "resend")
    assert done.returncode == 0, done.stderr
