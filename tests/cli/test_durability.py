"""`check` warns where Kafka keeps records or snapshots on one disk although there are more."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from streamtrain.broker import Broker

Run = Callable[..., Any]
JOB = """
name = "{name}"
[kafka]
bootstrap.servers = "{bootstrap}"
[topics]
records = {records}
snapshots = {snapshots}
[columns]
delay = {{}}
late = {{ role = "label" }}
"""
WEAK = "{ replication = 1 }", '{ replication = 3, config = { "min.insync.replicas" = 1 } }'
SAFE = ('{ replication = 3, config = { "min.insync.replicas" = 2 } }',) * 2


def warnings(run: Run, path: Path, bootstrap: str, name: str, records: str, snapshots: str) -> list[str]:
    """What `check` warns of on a job's new topics."""
    path.write_text(JOB.format(name=name, bootstrap=bootstrap, records=records, snapshots=snapshots))
    assert run("topics", "create", path, "-q").code == 0
    ended = run("check", path, "--json")
    assert ended.code == 0
    return [finding["text"] for finding in ended.document["findings"] if finding["state"] == "warning"]


@pytest.mark.full
def test_one_copy_or_one_in_sync_on_many_brokers(
    run: Run, private_kafka: Callable[..., Broker], tmp_path: Path
) -> None:
    bootstrap = private_kafka(nodes=3).bootstrap
    one_copy, one_in_sync = warnings(run, tmp_path / "job.toml", bootstrap, "weak", *WEAK)
    assert one_copy == "weak.records: 1 copy on 3 brokers, a lost disk loses it; 3 copies are usual"
    assert one_in_sync == (
        "weak.snapshots: min.insync.replicas is 1 of 3 copies, what is acknowledged may be on one disk only; 2 is usual"
    )
    assert warnings(run, tmp_path / "job.toml", bootstrap, "safe", *SAFE) == []


def test_one_broker_is_not_warned_of(run: Run, kafka: Any, tmp_path: Path) -> None:
    one = "{ replication = 1 }"
    assert warnings(run, tmp_path / "job.toml", kafka.bootstrap, kafka.fresh_name("one"), one, one) == []
