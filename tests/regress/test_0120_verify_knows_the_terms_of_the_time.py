"""verify asked a topic made again for the old one's offsets, 8 s a stretch, and read all records by today's file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e.harness import LiveJob, rows
from tests.e2e.test_gaps import delete, make_again

pytestmark = pytest.mark.kafka


def records(job: LiveJob) -> dict[str, object]:
    """The check of that name, of a verification that passes."""
    return next(check for check in job.verified()["checks"] if check["name"] == "records")


def test_offsets_of_a_topic_that_was_made_again_are_not_asked_for(kafka, tmp_path: Path) -> None:
    job = LiveJob(kafka, tmp_path, partitions=2, format="json")
    many = [json.dumps(list(rows(300, seed))).encode() for seed in range(4)]  # each straddles batches
    job.produce_values(many)
    job.train("--until-end")
    delete(job)
    make_again(job)
    job.produce_values(many[:1])
    job.train("--until-end", "--accept-gap")
    found = records(job)
    assert "of a topic that is not there any more" in str(found["not_checkable"])
    assert str(found["span"]).startswith("1 records, 300 rows")


def test_records_are_read_by_the_format_and_columns_they_were_trained_with(kafka, tmp_path: Path) -> None:
    job = LiveJob(kafka, tmp_path, partitions=1)
    job.produce(300)
    job.train("--until-end")
    job.path.write_text(job.path.read_text().replace('format = "msgpack"', 'format = "json"'))
    job.produce_values([json.dumps(list(rows(300, 1))).encode()])
    job.train("--until-end")
    assert str(records(job)["span"]).startswith("301 records, 600 rows")
    text = job.path.read_text().replace('y = { role = "label", missing = "skip" }', 'y = { role = "label" }')
    job.path.write_text(text.replace("max_dead_letter_share = 0.1", "max_dead_letter_share = 1"))
    job.produce_values([json.dumps([{"x1": 1}] * 100).encode()])
    job.train("--until-end", "--fresh")
    records(job)
    fast = job.command("verify", "--fast", "--json")
    assert fast.returncode == 0 and "whole records not (--fast)" in fast.stdout
