"""Histories as they should be: every check passes, and what cannot be checked is said."""

from __future__ import annotations

from dataclasses import replace

import pytest

from streamtrain.checks.verify.report import Report
from streamtrain.checks.verify.verify import check_topics
from streamtrain.errors import CheckFailed
from streamtrain.topics.shelves import is_manifest
from tests.checks.verify.good_job import GoodJob, compacted, good_job, imported_job
from tests.checks.verify.topics_in_memory import Partition

BOTH = pytest.mark.parametrize("later", [lambda made: made, compacted])


def passed(made: GoodJob, fast: bool = False, exactly_once: bool = True, **changes: int) -> Report:
    report = check_topics(replace(made.written.topics(exactly_once), **changes), fast)
    assert report.ok, "\n".join(report.lines())
    return report


def not_checkable(report: Report, name: str) -> str:
    return "; ".join(next(check for check in report.checks if check.name == name).not_checkable)


@BOTH
@pytest.mark.parametrize("fast", [False, True])
def test_a_good_job_passes(later, fast: bool) -> None:
    passed(later(good_job()), fast)


@BOTH
@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("positions", ["keep", "beginning"])
def test_a_job_that_began_with_an_import_passes(later, positions: str, fast: bool) -> None:
    made = imported_job(positions)
    words = not_checkable(passed(later(made), fast), "lineage")
    first = min(made.located)
    here = first in [each.version for each in made.lineage.kept] or later is not compacted
    assert (f"snapshot {first}: its parameters are those of snapshot {first - 1} of job good" in words) == here


def test_an_import_that_nothing_has_followed_yet() -> None:
    made, other = GoodJob(), started()
    made.begin(imports=other)
    assert "are those of snapshot 3 of job good" in not_checkable(passed(made), "lineage")
    made.end()
    untrained, unseen = GoodJob(), GoodJob()
    untrained.begin()
    unseen.begin(imports=untrained)
    passed(unseen)


def started() -> GoodJob:
    made = GoodJob()
    made.produce()
    made.begin()
    made.train()
    made.more(5)
    return made


@BOTH
def test_records_made_again_are_a_gap_and_the_old_ones_are_not_asked_for(later) -> None:
    made = started()
    made.written.topic_ids["records"] = "another-topic-id"
    made.written.partitions["records"] = [Partition(), Partition()]
    made.produce(3)
    made.begin(accept_gap=True)
    made.train()
    assert "partition 0 offsets 0 to" in not_checkable(passed(later(made)), "records")
    made.begin(fresh=True)
    made.train()
    for _ in range(4):
        made.more(2)
    words = not_checkable(passed(later(made)), "tiling")
    assert ("the manifests that would tell a gap are gone" in words) == (later is compacted)


def test_a_format_that_changes_between_starts() -> None:
    made = started()
    made.use(format="json")
    made.begin()
    made.written.append("records", b'{"x": 1, "z": 1, "at": 1700000009999, "y": 1}')
    made.train()
    passed(made)


def test_columns_that_change_with_a_fresh_start() -> None:
    made = started()
    made.use(missing='"dead_letter"')
    made.begin(fresh=True)
    made.train()
    report = passed(made)
    assert report.rows_filtered == 0 and report.rows_dead > 10


def test_a_log_that_retention_has_shortened() -> None:
    made = compacted(good_job())
    for topic, index in (("rounds", 6), ("dead_letters", 40), ("predictions", 9)):
        partition = made.written.partitions[topic][0]
        partition.remove(partition.messages[index].offset)
    report = passed(made)
    assert "retention" in not_checkable(report, "dead letters") and report.versions is not None
    rounds = made.written.partitions["rounds"][0]
    rounds.remove(rounds.end)
    report = passed(made)
    assert "removed by retention" in not_checkable(report, "tiling") and report.versions is None


def test_what_was_published_while_the_topics_were_read() -> None:
    made = good_job()
    ends = {key: made.written.partitions[key][0].end for key in ("predictions", "snapshots")}
    control_end = made.written.partitions["control"][0].end
    made.begin()
    made.more(4)
    made.predict()
    for key, end in ends.items():
        for partition in made.written.partitions[key]:
            partition.messages = [message for message in partition.messages if message.offset < end]
            partition.end = min(partition.end, end)
    passed(made, control_end=control_end)


def test_requests_made_again() -> None:
    made = started()
    made.predict()
    made.written.partitions["requests"] = [Partition(), Partition()]
    made.predict(2)
    for fast in (False, True):
        assert "before this one" in not_checkable(passed(made, fast), "predictions")


def test_a_request_answered_twice_at_least_once() -> None:
    made = started()
    made.predict()
    again = made.written.partitions["predictions"][0].messages[0]
    made.written.append("predictions", again.value, again.key, again.headers)
    assert "1 requests were answered twice" in not_checkable(passed(made, exactly_once=False), "predictions")
    assert not check_topics(made.written.topics()).ok


@pytest.mark.parametrize("damage", ["garbage", "an older manifest"])
def test_damage_that_a_fresh_start_has_passed_over(damage: str) -> None:
    made = started()
    found = [message for message in made.written.partitions["snapshots"][0].messages if is_manifest(message.key)][-2]
    made.written.append("snapshots", b"garbage" if damage == "garbage" else found.value, found.key)
    assert not check_topics(made.written.topics()).ok
    made.begin(fresh=True, damaged=found.key.decode().removesuffix("/m"))
    made.train()
    assert "passed over" in not_checkable(passed(made), "snapshots")


def test_no_snapshot_at_all() -> None:
    with pytest.raises(CheckFailed, match="no snapshot yet"):
        check_topics(GoodJob().written.topics())
