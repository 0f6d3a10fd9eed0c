"""A topic packed into another, killed again and again: each row is there once, in the order of its key or partition."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from streamtrain.clients.repacking import FORMAT, MESSAGES_A_TRANSACTION, Repacker
from streamtrain.columns.row_plan import RowPlan
from streamtrain.errors import CheckFailed
from streamtrain.topics.topic import TopicWish
from tests.e2e import commands
from tests.e2e.harness import LiveJob
from tests.e2e.test_gaps import delete

JOB = """
[topics]
records = { partitions = 2 }
[columns]
x = {}
city = { kind = "category", buckets = 64 }
late = { role = "label", missing = "skip" }
[model]
loss = "binary_cross_entropy"
"""
ROWS = int(4.4 * MESSAGES_A_TRANSACTION)
# each in a life of its own: with rows written and none committed, with the commit under way, behind it; then none
DEATHS = ("vectorize.written=1", "vectorize.written=2", "vectorize.written=1@2", "vectorize.committed=1", "")
NEVER_WRITTEN = 13  # left out


def messages(rows: int) -> Iterator[dict[str, Any]]:
    """Yields messages for partition 0 with four keys whose headers change, for 1 without keys."""
    for x in range(rows):
        row = {"x": "n/a" if x == NEVER_WRITTEN else x, "city": f"c{x % 7}", "late": x % 2}
        keyed: dict[str, Any] = {"key": f"k{x // 2 % 4}", "headers": [("h", b"%d" % (x // 100 % 2))]}
        yield {"value": json.dumps(row), "partition": x % 2, **({} if x % 2 else keyed)}


@pytest.fixture
def job(kafka: Any, tmp_path: Path) -> LiveJob:
    return LiveJob(kafka, tmp_path, "repack", JOB)


@pytest.fixture
def target(job: LiveJob) -> TopicWish:
    wish = TopicWish("packed", f"{job.name}.packed", 2)
    job.admin.ensure([wish])
    return wish


@pytest.mark.full
def test_killed_again_and_again(job: LiveJob, target: TopicWish, tmp_path: Path) -> None:
    job.produce_messages(messages(ROWS))
    given = ["vectorize", str(job.path), "--from-topic", job.records, "--to-topic", target.name, "--json"]
    ended = [commands.run(given, {"STREAMTRAIN_FAILPOINTS": death}) for death in DEATHS]
    assert [each.returncode for each in ended] == [*[-9] * (len(DEATHS) - 1), 0], ended[-1].stderr
    plan = RowPlan(job.job.schema, FORMAT, FORMAT)
    by_key: dict[object, list[int]] = {}
    for message in job.messages(target.name):
        found = plan.decode([message.value or b""])
        at = message.key or message.partition
        by_key.setdefault(at, []).extend(int(x) for x in found["x"])  # type: ignore[arg-type, union-attr]
        assert [("h", b"%d" % (int(x) // 100 % 2)) for x in found["x"][:1]] == message.headers or at == 1  # type: ignore[index]
    expected: dict[object, list[int]] = {}
    for x in range(ROWS):
        if x != NEVER_WRITTEN:
            expected.setdefault(1 if x % 2 else b"k%d" % (x // 2 % 4), []).append(x)
    assert by_key == expected


def test_a_target_made_anew_is_no_more_the_one_that_was_written(job: LiveJob, target: TopicWish) -> None:
    job.produce_messages(messages(100))
    list(Repacker(job.job, job.records, target.name, 64).run())
    delete(job, target.name)
    job.admin.ensure([target])
    with pytest.raises(CheckFailed, match="made anew"):
        list(Repacker(job.job, job.records, target.name, 64).run())
