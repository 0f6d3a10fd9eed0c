"""A category's vocabulary over `fit`: the values with an id after some rounds, however many workers."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from looped import over

import streamtrain
from streamtrain import _native
from streamtrain.columns.kinds.category import hash_seed
from streamtrain.compute.ops.vocabulary import Table
from streamtrain.errors import UserMistake

ROWS = 4000
TIMES = {"at": {"role": "event_time", "unit": "s"}}


def job(vocabulary: dict[str, Any], workers: int = 2, **columns: Any) -> dict[str, Any]:
    """Rounds of the same rows, however many workers."""
    own = {"kind": "category", "hash_bits": 64, "vocabulary": vocabulary, "embed": 4}
    return {
        "columns": {"id": own, "y": {"role": "label"}, **columns},
        "model": {"loss": "binary_cross_entropy"},
        "train": {"batch_rows": 32, "averaging_frequency": 8 // workers, "workers": workers, "round_interval": "off"},
    }


def rows(seed: int = 1, count: int = ROWS) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    ids = np.minimum(random.zipf(1.3, count), 10**6).astype(str)
    return {"id": ids, "y": random.integers(0, 2, count)}


def hash_of(text: str) -> int:
    return int(np.uint64(_native.murmur3(text.encode(), hash_seed("id"), 64)).astype(np.int64))


def holders(fitted: Any) -> list[list[int]]:
    """(hash, count, newest) of ids 1 on."""
    table = Table(fitted.statistics["vocabulary.id"])
    return [list(each) for each in table.entry[: table.capacity].tolist()]


def test_a_vocabulary_does_not_depend_on_the_number_of_workers() -> None:
    """Full ones, of 3 and 100 ids, and one with room for all."""
    given, found = rows(), []
    for workers in (1, 2, 4):
        tables = job({"capacity": 3, "admit": 3}, workers)
        for capacity in (100, 5000):
            vocabulary = {"capacity": capacity, "admit": 3}
            tables["columns"][f"id{capacity}"] = {**tables["columns"]["id"], "vocabulary": vocabulary}
        all_ids = {f"id{capacity}": given["id"] for capacity in (100, 5000)}
        found.append(streamtrain.fit(tables, given | all_ids).statistics)
    for name in ("vocabulary.id", "vocabulary.id100", "vocabulary.id5000"):
        assert all(np.array_equal(found[0][name], other[name]) for other in found[1:]), name


def test_ids_are_of_those_counted_often_enough() -> None:
    given = rows()
    fitted = streamtrain.fit(job({"capacity": 5000, "admit": 3}), given)
    seen = Counter(hash_of(each) for each in given["id"].tolist())
    found = {value: count for value, count, _ in holders(fitted) if count}
    assert found == {value: count for value, count in seen.items() if count >= 3}


def test_a_rounds_ids_go_by_count_and_then_by_hash() -> None:
    given = {"id": np.array(list("cbdcbdca")), "y": np.arange(8) % 2}
    fitted = streamtrain.fit(job({"capacity": 9, "admit": 2}), given)
    twice = sorted(map(hash_of, "bd"), key=lambda each: each % (1 << 64))
    assert [value for value, count, _ in holders(fitted) if count] == [hash_of("c"), *twice]


def test_a_full_vocabulary_holds_the_most_counted_and_says_how_many_it_lost() -> None:
    given = rows()
    fitted = streamtrain.fit(job({"capacity": 10}), given)
    often = [hash_of(each) for each, _ in Counter(given["id"].tolist()).most_common(3)]
    assert {value for value, *_ in holders(fitted)} >= set(often)
    assert fitted.manifest.metrics["evicted"]["id"] > 0


def test_a_value_that_was_not_seen_for_long_is_forgotten() -> None:
    """After a day in which none of the values of the first half is seen."""
    half = {"id": np.array(["old"] * 512), "y": np.arange(512) % 2, "at": np.full(512, 1_700_000_000)}
    later = {"id": np.array(["new"] * 512), "y": np.arange(512) % 2, "at": np.full(512, 1_700_086_400)}
    both = {name: np.concatenate([half[name], later[name]]) for name in half}
    before, after = (streamtrain.fit(job({"capacity": 8, "evict": "1h"}, **TIMES), each) for each in (half, both))
    assert holders(before)[0][0] == hash_of("old") and before.parameters["id.embedding"][1].any()
    assert hash_of("old") not in [value for value, *_ in holders(after)]
    assert after.manifest.metrics["evicted"] == {"id": 1}
    asked = [{"id": each} for each in ("old", "never seen")]
    one, other = (each["prediction"] for each in after.predict(asked))
    assert one == other  # both read the row of all others
    assert [value for value, count, _ in holders(after) if count] == [hash_of("new")]


def test_a_few_wrong_times_forget_nothing() -> None:
    given, tables = {**rows(), "at": np.full(ROWS, 1_700_000_000)}, job({"capacity": 5000, "evict": "1h"}, **TIMES)
    before = holders(streamtrain.fit(tables, given))
    given["at"][::50] += 10**9
    assert holders(streamtrain.fit(tables, given)) == before


@over(
    ("column", "message"),
    [
        ({"vocabulary": {"capacity": 0}}, "vocabulary.capacity: expected a whole number from 1"),
        ({"vocabulary": {}}, "vocabulary.capacity: missing"),
        ({"vocabulary": {"capacity": 3, "admitt": 3}}, "vocabulary.admitt: unknown setting of vocabulary"),
        ({"vocabulary": {"capacity": 3}, "buckets": 7}, "buckets: expected none beside a vocabulary"),
        ({"vocabulary": {"capacity": 3}, "list": True}, "list: expected none beside a vocabulary"),
        ({"vocabulary": {"capacity": 3, "evict": "1h"}}, 'evict: expected a column with role = "event_time"'),
    ],
)
def test_mistakes(column: dict[str, Any], message: str) -> None:
    given = job({"capacity": 3})
    given["columns"]["id"] = {"kind": "category", **column}
    with pytest.raises(UserMistake) as raised:
        streamtrain.fit(given, rows(count=10))
    assert message in str(raised.value)
