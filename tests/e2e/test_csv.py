"""CSV from Kafka to snapshots and predictions; what is wrong in a line is that row's dead letter."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from streamtrain import read_predictions
from tests.e2e import commands
from tests.e2e.harness import LiveJob, rows

NAMES = ["x1", "x2", "x3", "x4", "colour", "y"]
COUNT = 600


def lines(given: Iterable[dict[str, Any]], names: list[str]) -> bytes:
    """As Python writes them."""
    file = io.StringIO()
    writer = csv.DictWriter(file, names, extrasaction="ignore", delimiter="\t")
    writer.writerows(given)
    return file.getvalue().encode()


def sent(job: LiveJob, topic: str, values: list[bytes]) -> None:
    producer = Producer({"bootstrap.servers": job.bootstrap})
    for value in values:
        producer.produce(topic, value=value, partition=0)
    assert producer.flush(60) == 0


@pytest.mark.parametrize("header", [False, True], ids=["in order", "named"])
def test_from_kafka_to_predictions(kafka: Any, tmp_path: Path, header: bool) -> None:
    """The bits are those of the same rows in another format."""
    told = f'format = "csv"\ndelimiter = "\\t"\nheader = {str(header).lower()}'
    job, other = (
        LiveJob(kafka, tmp_path, partitions=1, round_interval="off", max_dead_letter_share=1.0) for _ in range(2)
    )
    job.path.write_text(job.path.read_text().replace('format = "msgpack"', told))
    given = list(rows(COUNT))
    names = NAMES[::-1] if header else NAMES
    first = ("\t".join(names) + "\r\n").encode() if header else b""
    records = [first + lines(given[at : at + 50], names) for at in range(0, COUNT, 50)]
    bad = [first + b"1\t2\n" + b"\n", first + b'1\t2\t"3\t4\tred\t1\n', first]
    sent(job, job.records, [*records, *bad[: 3 if header else 2]])
    other.produce(COUNT)
    for each in (job, other):
        each.train("--until-end")
    assert (job.newest().model, job.newest().trainer) == (other.newest().model, other.newest().trainer)
    assert job.verified()["rows"] == {"trained": COUNT, "dead_lettered": 2, "filtered": 0}
    job.replayed()
    letters = commands.run(["dead-letters", "list", str(job.path), "--json"])
    said = [json.loads(line) for line in letters.stdout.splitlines()]
    assert [(each["path"], each["reason"].partition(" at ")[0]) for each in said] == [
        ("$[0]", "expected 6 cells, got 2"), ("$[0]", "expected the closing quote of the cell")]  # fmt: skip
    asked = [name for name in names if name != "y"]
    head = ("\t".join(asked) + "\n").encode() if header else b""
    sent(job, f"{job.name}.requests", [head + lines(given[:3], asked), head + lines(given[3:4], asked)])
    assert job.command("predict", "--until-end").returncode == 0
    answers = read_predictions(job.name, bootstrap=job.bootstrap, until_end=True)
    one, many = sorted((each.prediction for each in answers), key=len)
    assert len(many) == 3 and all("prediction" in answer for answer in (*many, one))
