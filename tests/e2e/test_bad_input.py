"""A records topic made again with fewer partitions."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from waiting import wait_for

from tests.e2e.harness import LiveJob


@pytest.mark.full
def test_fewer_partitions_are_a_gap_that_must_be_accepted(kafka, tmp_path: Path) -> None:
    job = LiveJob(kafka, tmp_path, partitions=3)
    job.produce(900)
    job.train("--until-end")
    client = AdminClient({"bootstrap.servers": job.bootstrap})
    client.delete_topics([job.records])[job.records].result(10)
    wait_for(lambda: job.records not in job.admin.names())
    client.create_topics([NewTopic(job.records, 1, 1)])[job.records].result(10)
    job.settings["partitions"] = 1
    job.produce(500, seed=1)
    refused = job.command("train", "--until-end")
    assert refused.returncode == 2 and "--accept-gap" in refused.stderr, refused.stderr
    assert "partition 2 offset 300, found topic id" in refused.stderr, refused.stderr
    assert job.train("--until-end", "--accept-gap")[-1]["rows"] == 1400
    assert job.verified()["rows"]["trained"] == 1400
