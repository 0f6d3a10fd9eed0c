"""Which check finds a forgery, and what it says: most are seen by several, and each by the one that is for it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import safetensors.numpy

from streamtrain.checks.verify.verify import check_topics
from streamtrain.topics import shelves
from streamtrain.topics.manifest import Payload
from tests.checks.verify.forger import Forger, copied, put_tables, tables, unpacked
from tests.checks.verify.forgeries import FORGERIES, forged, messages
from tests.checks.verify.good_job import clean_job, compacted, good_job
from tests.checks.verify.topics_in_memory import Written

FOUND_BY = {
    "the newest log is missing": ("lineage", "snapshot 16: no round log, and retention has not removed it"),
    "the round log is made anew": ("lineage", "no round log, and retention has not removed it"),
    "the first log of a restored lineage is missing": ("lineage", "its manifest says chain"),
    "the first part of a log is missing": ("round log", "expected part 0 of a log, got part 1"),
    "the second part of a log is missing": ("round log", "ends after part 0"),
    "a log is there twice": ("lineage", "the round log of snapshot 2 comes after 16's"),
    "the newest snapshot is gone": ("runs", "the topic goes to 15 only"),
    "a dead letter of an unknown run": ("dead letters", "of run 77 round"),
    "a dead letter of a round never published": ("dead letters", "which was never published"),
    "a dead letter tells another reason": ("dead letters", "are dead for another reason"),
    "a dead letter is there twice": ("dead letters", "tell of 1 rows that its round log does not"),
    "the letter of a batch left out is missing": ("dead letters", "ranges of batches left out"),
    "another topic id without a gap": ("lineage", "terms with topic_id {'another'}"),
    "a record lies in a hole": ("records", "records of the records are"),
    "a record has become another": ("records", "trained of the records are"),
    "a prediction is committed twice": ("predictions", "was answered 2 times"),
    "a prediction of version abc": ("predictions", "expected a whole number in header streamtrain-version"),
}


LOGS = [name for name in FORGERIES if " log" in name and not {"part", "position"} & set(name.split())]


@pytest.fixture(scope="module")
def later() -> Written:
    return compacted(good_job()).written


def found(written: Written, check: str) -> str:
    report = check_topics(written.topics())
    assert not report.ok
    return "; ".join(next(each for each in report.checks if each.name == check).problems)


@pytest.mark.parametrize("name", FOUND_BY)
def test_the_check_that_is_for_it(later: Written, name: str) -> None:
    check, words = FOUND_BY[name]
    assert words in found(forged(later, name), check)


@pytest.mark.parametrize("name", LOGS)
@pytest.mark.parametrize("later", [lambda made: made, compacted])
def test_a_log_without_dead_letters_and_predictions(later: Any, name: str) -> None:
    """Nothing beside the fold can tell."""
    made = later(clean_job()).written
    assert check_topics(made.topics()).ok
    report = check_topics(forged(made, name).topics())
    assert not report.ok, "\n".join(report.lines())


def test_ranges_that_overlap_within_a_log(later: Written) -> None:
    def overlap(document: Any) -> None:
        ranges, slots = tables(document)
        ranges["from_offset"][np.flatnonzero(ranges["partition"] == 0)[1]] -= 1
        put_tables(document, ranges, slots)

    words = found(Forger(later, logs={14: overlap}).forged(), "tiling")
    assert "snapshot 14 partition 0: a range ends at" in words


@pytest.mark.parametrize(("part", "key"), [("model", shelves.model_key), ("trainer", shelves.trainer_key)])
def test_a_number_that_is_not_finite(later: Written, part: str, key: Any) -> None:
    """A number of parameters or of trainer state, under the right digests."""
    other = copied(later)
    snapshots = messages(other, "snapshots")
    newest = unpacked(next(each.value for each in reversed(snapshots) if shelves.is_manifest(each.key)))
    at = next(at for at, each in enumerate(snapshots) if each.key == key(newest["shelf"], 0))
    tensors = safetensors.numpy.load(snapshots[at].value)
    name = next(name for name, tensor in tensors.items() if tensor.dtype.kind == "f" and tensor.size)
    tensors[name].flat[-1] = np.nan
    snapshots[at] = snapshots[at]._replace(value=safetensors.numpy.save(tensors))
    of = Payload.of(snapshots[at].value)

    def mended(document: Any) -> None:
        document[part] = {"size": of.size, "digest": of.digest, "chunks": b"".join(of.chunks)}

    words = found(Forger(other, manifests={newest["version"]: mended}).forged(), "snapshots")
    assert words == f"snapshot {newest['version']}: {name} holds a NaN or infinity"
