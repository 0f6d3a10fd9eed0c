"""Where a job file gives no schema, the newest of the registry is what records are read by from a start on."""

from __future__ import annotations

import json
import struct
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from avro_schemas import nullable, record, written
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from registry_front import RegistryFront
from waiting import wait_for

from streamtrain import RecordWriter, read_predictions, schemas
from streamtrain.columns.formats.avro_schema import canonical
from streamtrain.errors import KafkaUnreachable, UserMistake
from streamtrain.job import Job
from streamtrain.run.findings import findings
from tests.e2e.harness import LiveJob, rows

FIELDS: dict[str, Any] = {**{f"x{i}": "double" for i in range(1, 5)}, "colour": "string", "y": nullable("int")}
ROW = record(*FIELDS.items())
NEWER = record(("when", "long"), *FIELDS.items())


@pytest.fixture
def front(registry: Any) -> Iterator[RegistryFront]:
    made = RegistryFront(registry.url)
    yield made
    made.close()


@pytest.fixture
def job(kafka: Any, front: RegistryFront, tmp_path: Path) -> LiveJob:
    return LiveJob(kafka, tmp_path, batch_rows=16, partitions=1, workers=1, format="avro",
                   max_dead_letter_share=f'0.9\n[registry]\nurl = "{front.url}"')  # fmt: skip


@pytest.fixture
def client(registry: Any) -> SchemaRegistryClient:
    return SchemaRegistryClient({"url": registry.url})


def produced(job: LiveJob, client: SchemaRegistryClient, schema: Any, **more: Any) -> None:
    """300 rows under a schema that is the newest from now on."""
    number = int(client.register_schema(f"{job.records}-value", Schema(json.dumps(schema), "AVRO")))
    frame = b"\0" + struct.pack(">I", number)
    job.produce_values(frame + written(schema, {**row, **more}) for row in rows(300))


def answers_later(front: RegistryFront) -> None:
    """It is away until it has been asked."""
    front.mode = 503
    front.asked.clear()

    def come_back() -> None:
        wait_for(lambda: front.asked)
        front.mode = "through"

    threading.Thread(target=come_back, daemon=True).start()


def test_the_newest_schema_is_the_readers(job: LiveJob, client: SchemaRegistryClient, front: RegistryFront) -> None:
    """It is pinned: verify and replay need neither the registry nor the schema's being the newest still."""
    pinned = []
    for schema, more in ((ROW, {}), (NEWER, {"when": 1})):
        produced(job, client, schema, **more)
        answers_later(front)  # a start waits for the registry
        job.train("--until-end")
        pinned.append(job.newest().manifest.job_settings["records"]["schema"])
    assert pinned == [canonical(json.dumps(schema)) for schema in (ROW, NEWER)]
    front.mode = "away"
    front.asked.clear()
    assert job.verified()["rows"] == {"trained": 600, "dead_lettered": 0, "filtered": 0}
    job.replayed()
    assert not front.asked
    answers_later(front)  # so does a writer
    with RecordWriter(job.job, to="requests") as writer:
        writer.write({**next(rows(1)), "y": None, "when": 2})
    assert job.command("predict", "--until-end").returncode == 0
    assert [answer.error for answer in read_predictions(job.name, bootstrap=job.bootstrap, until_end=True)] == [None]
    with RecordWriter(job.job) as writer:
        writer.write({**next(rows(1)), "when": 3})
    assert job.train("--until-end")[-1]["rows"] == 601


def test_a_start_without_a_schema_says_so(job: LiveJob, client: SchemaRegistryClient) -> None:
    subject = f"{job.records}-value"
    done = job.command("train", "--until-end")
    assert done.returncode == 2
    assert f"records.schema: expected a file with an Avro schema, or its text, or a schema of {subject}" in done.stderr
    state, text = found(job)
    assert state == "mistake" and f"a schema of {subject} in the registry, got none" in text
    client.register_schema(subject, Schema(json.dumps(record(("x1", "double"))), "AVRO"))
    done = job.command("train", "--until-end")
    assert done.returncode == 2 and "columns.colour: expected a field of the schema's" in done.stderr, done.stderr
    assert "columns.colour: " in found(job)[1]


def found(job: LiveJob) -> tuple[str, str]:
    (finding,) = [each for each in findings(job.job, job.admin, None) if each.what == "registry"]
    return finding.state, finding.text


def test_a_writer_gives_up_in_the_end(
    job: LiveJob, front: RegistryFront, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schemas, "_PATIENCE_S", 1.0)
    front.mode = 503
    with pytest.raises(KafkaUnreachable, match=r"the registry does not answer: .*said so.*; waited for 1 s"):
        RecordWriter(job.job)
    assert len(front.asked) > 1


def test_without_a_registry_a_schema_is_given(kafka: Any, tmp_path: Path) -> None:
    with pytest.raises(UserMistake, match=r"records.schema: missing, expected a file with an Avro schema, or its text"):
        LiveJob(kafka, tmp_path, format="avro")


def test_a_manifest_without_its_schema_is_refused(job: LiveJob) -> None:
    """What is pinned is never asked for again."""
    effective = Job.load(job.path).effective()
    with pytest.raises(UserMistake, match=r"records.schema: missing"):
        Job.from_effective(effective)
