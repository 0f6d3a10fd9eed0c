"""Histories as they should be: every check passes, and what cannot be checked is said; what only the fold finds; early
stopping is counted again."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
from looped import over

from streamtrain.checks.verify.verify import check_topics
from streamtrain.checks.verify.verify_report import Check, Report
from streamtrain.errors import CheckFailed
from streamtrain.topics import shelves
from streamtrain.topics.manifest import Payload
from streamtrain.topics.rounds import ROUND_DTYPE
from streamtrain.topics.shelves import is_manifest
from tests.checks.verify.folded_in_memory import folded_job
from tests.checks.verify.forger import (
    FORGERIES,
    Forger,
    Path,
    copied,
    edited,
    forged,
    messages,
    paths,
    put,
    put_tables,
    tables,
    unpacked,
)
from tests.checks.verify.topics_in_memory import (
    GoodJob,
    Partition,
    Written,
    clean_job,
    compacted,
    good_job,
    imported_job,
    small_windows,  # noqa: F401
)

BOTH = pytest.mark.parametrize("later", [lambda job: job, compacted])


def passed(job: GoodJob, fast: bool = False, exactly_once: bool = True, **changes: int) -> Report:
    report = check_topics(replace(job.written.topics(exactly_once), **changes), fast)
    assert report.ok, "\n".join(report.lines())
    return report


def not_checkable(report: Report, name: str) -> str:
    return "; ".join(next(check for check in report.checks if check.name == name).not_checkable)


@BOTH
def test_a_good_job_passes(later) -> None:
    job = later(good_job())
    for fast in (False, True):
        passed(job, fast)


@BOTH
def test_a_job_that_many_hosts_trained_passes(later) -> None:
    """Between runs of one host; dead letters are those of the log that has their partition."""
    job = later(folded_job())
    for fast in (False, True):
        report = passed(job, fast)
        assert report.rows_trained and report.rows_dead and report.versions == (2, 14)


def test_contributions_of_which_retention_has_taken_the_first() -> None:
    job = compacted(folded_job())
    rounds = job.written.partitions["rounds"][0]
    rounds.remove(next(each.offset for each in rounds.messages if each.key == b"5/1/0"))
    assert passed(job).versions == (6, 14)


@BOTH
@pytest.mark.parametrize("positions", ["keep", "beginning"])
def test_a_job_that_began_with_an_import_passes(later, positions: str) -> None:
    job = later(imported_job(positions))
    first = min(job.located)
    here = first in [each.version for each in job.lineage.kept] or later is not compacted
    for fast in (False, True):
        words = not_checkable(passed(job, fast), "lineage")
        assert (f"snapshot {first}: its parameters are those of snapshot {first - 1} of job good" in words) == here


def test_an_import_that_nothing_has_followed_yet() -> None:
    job, other = GoodJob(), started()
    job.begin(imports=other)
    assert "are those of snapshot 3 of job good" in not_checkable(passed(job), "lineage")
    job.end()
    untrained, unseen = GoodJob(), GoodJob()
    untrained.begin()
    unseen.begin(imports=untrained)
    passed(unseen)


def started() -> GoodJob:
    job = GoodJob()
    job.produce()
    job.begin()
    job.train()
    job.more(5)
    return job


@BOTH
def test_recreated_records_are_a_gap_and_the_old_ones_are_not_required(later) -> None:
    job = started()
    job.written.topic_ids["records"] = "another-topic-id"
    job.written.partitions["records"] = [Partition(), Partition()]
    job.produce(3)
    job.begin(accept_gap=True)
    job.train()
    assert "partition 0 offsets 0 to" in not_checkable(passed(later(job)), "records")
    job.begin(fresh=True)
    job.train()
    for _ in range(4):
        job.more(2)
    words = not_checkable(passed(later(job)), "tiling")
    assert ("the manifests that would tell a gap are gone" in words) == (later is compacted)


def test_a_format_that_changes_between_starts() -> None:
    job = started()
    job.use(format="json")
    job.begin()
    job.written.append("records", b'{"x": 1, "z": 1, "at": 1700000009999, "y": 1}')
    job.train()
    passed(job)


def test_columns_that_change_with_a_fresh_start() -> None:
    job = started()
    job.use(missing='"dead_letter"')
    job.begin(fresh=True)
    job.train()
    report = passed(job)
    assert report.rows_filtered == 0 and report.rows_dead > 10


def test_a_log_that_retention_has_shortened() -> None:
    job = compacted(good_job())
    for topic, index in (("rounds", 6), ("dead_letters", 40), ("predictions", 9)):
        partition = job.written.partitions[topic][0]
        partition.remove(partition.messages[index].offset)
    report = passed(job)
    assert "retention" in not_checkable(report, "dead letters") and report.versions is not None
    rounds = job.written.partitions["rounds"][0]
    rounds.remove(rounds.end)
    report = passed(job)
    assert "removed by retention" in not_checkable(report, "tiling") and report.versions is None


@pytest.mark.parametrize("left", [0, 1, 2])
def test_records_that_their_policy_lets_kafka_compact_are_counted_and_no_others_may_lack(left: int) -> None:
    job = clean_job()
    gone = 0
    for partition in job.written.partitions["records"]:
        kept = partition.messages[left::3]
        gone += len(partition.messages) - len(kept)
        partition.messages = kept
    topics = job.written.topics()
    assert topics.records is not None and not check_topics(topics).ok
    report = check_topics(replace(topics, records=replace(topics.records, compacted=True)))
    assert report.ok, "\n".join(report.lines())
    counts = [int(count) for check in report.checks for each in check.not_checkable
              for count in re.findall(r"(\d+) records compacted", each)]  # fmt: skip
    assert sum(counts) == gone


def test_what_was_published_while_the_topics_were_read() -> None:
    job = good_job()
    ends = {key: job.written.partitions[key][0].end for key in ("predictions", "snapshots")}
    control_end = job.written.partitions["control"][0].end
    job.begin()
    job.more(4)
    job.predict()
    for key, end in ends.items():
        for partition in job.written.partitions[key]:
            partition.messages = [message for message in partition.messages if message.offset < end]
            partition.end = min(partition.end, end)
    passed(job, control_end=control_end)


def test_requests_made_again() -> None:
    job = started()
    job.predict()
    job.written.partitions["requests"] = [Partition(), Partition()]
    job.predict(2)
    for fast in (False, True):
        assert "before this one" in not_checkable(passed(job, fast), "predictions")


def test_a_request_answered_twice_at_least_once() -> None:
    job = started()
    job.predict()
    again = job.written.partitions["predictions"][0].messages[0]
    job.written.append("predictions", again.value, again.key, again.headers)
    assert "1 requests were answered twice" in not_checkable(passed(job, exactly_once=False), "predictions")
    assert not check_topics(job.written.topics()).ok


@pytest.mark.parametrize("damage", ["garbage", "an older manifest"])
def test_damage_that_a_fresh_start_has_passed_over(damage: str) -> None:
    job = started()
    found = [message for message in job.written.partitions["snapshots"][0].messages if is_manifest(message.key)][-2]
    job.written.append("snapshots", b"garbage" if damage == "garbage" else found.value, found.key)
    assert not check_topics(job.written.topics()).ok
    job.begin(fresh=True, damaged=found.key.decode().removesuffix("/m"))
    job.train()
    assert "passed over" in not_checkable(passed(job), "snapshots")


def test_no_snapshot_at_all() -> None:
    with pytest.raises(CheckFailed, match="no snapshot yet"):
        check_topics(GoodJob().written.topics())


LOGS = [name for name in FORGERIES if " log" in name and not {"part", "position"} & set(name.split())]


@pytest.fixture(scope="module")
def later() -> Written:
    return compacted(good_job()).written


def found(written: Written, check: str) -> str:
    report = check_topics(written.topics())
    assert not report.ok
    return "; ".join(next(each for each in report.checks if each.name == check).problems)


@BOTH
def test_a_log_without_dead_letters_and_predictions(later: Any) -> None:
    """Nothing beside the fold can tell."""
    job = later(clean_job())
    passed(job)
    assert [name for name in LOGS if check_topics(forged(job.written, name).topics()).ok] == []


def test_ranges_that_overlap_within_a_log(later: Written) -> None:
    def overlap(document: Any) -> None:
        ranges, slots = tables(document)
        ranges["from_offset"][np.flatnonzero(ranges["partition"] == 0)[1]] -= 1
        put_tables(document, ranges, slots)

    words = found(Forger(later, logs={14: overlap}).forged(), "tiling")
    assert "snapshot 14 partition 0: a range ends at" in words


@pytest.mark.parametrize(("rows", "words"), [
    ([], "snapshot 3: the open window has 12 rows, one closes at 10"),
    ([3], "snapshot 3: a window of 3 rows closes with 12 more rows trained, one closes at 10"),
    ([13], "snapshot 3: a window of 13 rows closes with 12 more rows trained, one closes at 10"),
    ([12, 12], "snapshot 3: 1 windows close, its metrics have"),
])  # fmt: skip
def test_windows_that_cannot_be_though_all_messages_agree(rows: list[int], words: str) -> None:
    def edit(document: dict[str, Any]) -> None:
        document["metrics"]["windows"] = [{"rows": each} for each in rows]
        if "rounds" in document and not rows:
            table = np.frombuffer(document["rounds"], ROUND_DTYPE).copy()
            table["closed_window"] = 0
            document["rounds"] = table.tobytes()

    assert words in found(edited(clean_job().written, 3, edit), "round log")


@pytest.mark.parametrize("what", ["number", "name", "shape"])
@pytest.mark.parametrize(("part", "key"), [("model", shelves.model_key), ("trainer", shelves.trainer_key)])
def test_a_payload_that_is_not_the_models(later: Written, part: str, key: Any, what: str) -> None:
    """A number of parameters or of trainer state that is not finite, or a header of another model's, under the right
    digests."""
    other = copied(later)
    snapshots = messages(other, "snapshots")
    newest = unpacked(next(each.value for each in reversed(snapshots) if shelves.is_manifest(each.key)))
    at = next(at for at, each in enumerate(snapshots) if each.key == key(newest["shelf"], 0))
    tensors = safetensors.numpy.load(snapshots[at].value)
    name = next(name for name, tensor in tensors.items() if tensor.dtype.kind == "f" and tensor.size)
    tensor = tensors.pop(name)
    if what == "number":
        tensor.flat[-1] = np.nan
    tensors[f"{name}x" if what == "name" else name] = tensor.reshape(1, *tensor.shape) if what == "shape" else tensor
    snapshots[at] = snapshots[at]._replace(value=safetensors.numpy.save(tensors))
    of = Payload.of(snapshots[at].value)

    def mended(document: Any) -> None:
        document[part] = {"size": of.size, "digest": of.digest, "chunks": b"".join(of.chunks)}

    words = found(Forger(other, manifests={newest["version"]: mended}).forged(), "snapshots")
    expected = {
        "number": f"snapshot {newest['version']}: {name} holds a NaN or infinity",
        "name": f"snapshot {newest['version']}: {name}: expected F.*, got nothing; the model cannot load it",
        "shape": f"snapshot {newest['version']}: {name}: expected F.*, got F.*; the model cannot load it",
    }
    assert re.search(expected[what], words)


EARLY = """[train.early_stopping]
no_improvement = 2
rows = 1000
time = "1h"
epochs = 9
"""
SCORES = (0.5, 0.4, 0.45, 0.3, 0.35, 0.36)


def trained(settings: str = EARLY, held_out: dict[str, Any] | None = None, starts: int = 3) -> GoodJob:
    job = GoodJob(clean=True)
    job.use(early=settings)
    scores = iter(SCORES)
    for start in ({}, {}, {"restore": 3})[:starts]:
        job.begin(**start)
        for publication in range(2):
            job.produce(12 if held_out is None or publication else 2)  # no window closes then
            score = next(scores)
            validation_scores = {"held_out": {"log_loss": score}} if held_out is not None and publication else {}
            job.train(score=score, scores=validation_scores, held_out=held_out, passes=publication)
    return job


def found_of(written: Written) -> Check | None:
    return next((check for check in check_topics(written.topics()).checks if check.name == "early stopping"), None)


BLOCK = ("metrics", "early_stopping")
VALIDATION_SET = {"identity": "files:abc", "rows": 700}
BY_FILES = EARLY + 'held_out = { files = ["held.csv"] }\n'
CASES = {"windows": (EARLY, None), "rows held out": (BY_FILES, VALIDATION_SET)}


@cache
def of_case(case: str, starts: int = 3) -> Written:
    """The topics of a trainer, which nobody changes in place."""
    return trained(*CASES[case], starts).written


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("later", [lambda job: job, compacted], ids=["whole", "later"])
def test_what_a_trainer_tells_is_right(case: str, later: Any) -> None:
    written = later(trained(*CASES[case])).written
    report = check_topics(written.topics())
    assert report.ok, "\n".join(report.lines())
    check = found_of(written)
    assert check is not None and check.span == "6 publications"


def test_a_job_without_it_has_no_such_line() -> None:
    assert found_of(trained("").written) is None


WHERE = [("windows", 2), ("rows held out", 5), ("windows", 7)]
ELSEWHERE = [("rows held out", 2), ("windows", 5), ("rows held out", 7)]


@pytest.mark.parametrize(("case", "version", "part"), [
    *((*each, slice(at, None, len(WHERE))) for at, each in enumerate(WHERE)),
    *(pytest.param(*each, slice(None), marks=pytest.mark.full) for each in (*WHERE, *ELSEWHERE)),
])  # fmt: skip
def test_whatever_else_it_tells_is_found(case: str, version: int, part: slice) -> None:
    """Changes it in manifest and round log alike, so only the counts speak against it: in the first evaluation, in a
    run that went on, and after a restore."""
    written = of_case(case)
    logs = [unpacked(each.value) for each in written.partitions["rounds"][0].messages]
    ours = [path for log in logs if log["version"] == version for path in paths(log) if path[:2] == BLOCK]
    assert ours[part]
    for path in ours[part]:
        check = found_of(edited(written, version, lambda document, path=path: put(document, path)))
        assert check is not None and check.problems, f"not found: {path}"
        assert all(f"snapshot {version}" in each or f"snapshot {version + 1}" in each for each in check.problems)


def test_metrics_that_do_not_fit_the_settings_are_found() -> None:
    for early, metrics in (("", {"early_stopping": {"epochs": 0}}), (EARLY, {})):
        job = GoodJob(clean=True)
        job.use(early=early)
        job.begin()
        for _ in range(2):
            job.more()
        version = max(job.located)

        def edit(document: dict[str, Any], metrics: dict[str, Any] = metrics) -> None:
            document["metrics"].pop("early_stopping", None)
            document["metrics"] |= metrics

        check = found_of(edited(job.written, version, edit))
        assert check is not None and len(check.problems) == 1 and f"snapshot {version}: " in check.problems[0]


@pytest.mark.parametrize("version", [2, 3])
def test_validation_figures_are_only_where_the_model_is_scored(version: int) -> None:
    def edit(document: dict[str, Any]) -> None:
        if document["metrics"].pop("held_out", None) is None:
            document["metrics"]["held_out"] = {"log_loss": 0.1}

    check = found_of(edited(of_case("rows held out"), version, edit))
    assert check is not None and any("of rows held out" in each for each in check.problems)


@over("value", [None, 1, "x", [], {}, {"epochs": {}}, {"epochs": b"1"}, {b"epochs": 1, "since": 0}])
@over("at", [("early_stopping",), ("early_stopping", "held_out")])
def test_what_is_of_another_type_is_a_finding_and_never_an_exception(at: Path, value: Any) -> None:
    def edit(document: Any) -> None:
        put(document, ("metrics", *at), lambda _: value)

    written = of_case("rows held out", starts=1)
    for forgery in ({"manifests": {2: edit}, "logs": {2: edit}}, {"manifests": {2: edit}}, {"logs": {2: edit}}):
        assert not check_topics(Forger(written, **forgery).forged().topics()).ok
