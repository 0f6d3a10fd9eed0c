"""Transforms with state over `fit`, and a category's vocabulary: their state after some rows, however many workers; and
what reaches a row."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from looped import over

import streamtrain
from streamtrain import _native
from streamtrain.columns.kinds.category import hash_seed
from streamtrain.compute.ops import sketch
from streamtrain.errors import UserMistake
from tests.fitting.example import TABLES, columns
from tests.oracles.ops.vocabulary import Table

ROWS = 3000
BUCKETS = 64
TRANSFORMS = {
    "often": {"count": "colour", "buckets": BUCKETS},
    "rate": {"target_mean": "colour", "buckets": BUCKETS},
    "group": {"rare_to_other": "colour", "buckets": BUCKETS, "least": 1500, "embed": 2},
}
COLUMNS = {**TABLES["columns"], "colour": {"role": "input", "kind": "category"}}
del COLUMNS["b"]
JOB: dict[str, Any] = {"columns": COLUMNS, "transforms": TRANSFORMS, "model": TABLES["model"], "train": TABLES["train"]}


def rows(count: int = ROWS) -> dict[str, Any]:
    return {name: values for name, values in columns(count).items() if name != "b"}


def bucket(name: str, text: str) -> int:
    return int(_native.murmur3(text.encode(), hash_seed(name), 32)) % BUCKETS


def by_workers(job: dict[str, Any], rows: dict[str, Any]) -> list[Any]:
    """Fits of the same rows by one and by four workers."""
    return [streamtrain.fit({**job, "train": {**job["train"], "workers": workers}}, rows) for workers in (1, 4)]


def test_the_state_is_that_of_all_rows_however_many_workers() -> None:
    given = rows()
    seen, all_rows = Counter(given["colour"].tolist()), float(given["w"].sum())
    for statistics in (fitted.statistics for fitted in by_workers(JOB, given)):
        for name in ("often", "group"):
            table = statistics[f"{'count' if name == 'often' else 'rare_to_other'}.{name}"]
            assert table[-1] == ROWS and table[:-1].sum() == ROWS
            for colour, count in seen.items():
                assert table[bucket(name, colour)] == count
        for colour in seen:
            is_it = given["colour"] == colour
            weight, label = given["w"][is_it].sum(), (given["w"] * given["y"])[is_it].sum()
            sums = statistics["target_mean.rate"][bucket("rate", colour)]
            np.testing.assert_allclose(sums, [weight, label], rtol=1e-12)
        label = (given["w"] * given["y"]).sum()
        np.testing.assert_allclose(statistics["target_mean.rate.all"], [all_rows, label, label], rtol=1e-12)


def test_a_row_gets_the_state_of_its_value() -> None:
    """A linear model of one such number: its input is read off its answers."""
    given, table_of = rows(), {name: each for name, each in COLUMNS.items() if name != "a"}
    del given["a"]
    given["y"] = (given["colour"] == "red").astype(np.int64)
    for name, table in {"rate": {**TRANSFORMS["rate"], "prior": 0}, "often": TRANSFORMS["often"]}.items():
        job = {**JOB, "columns": table_of, "transforms": {name: table}, "model": {}}
        fitted = streamtrain.fit(job, given)
        requests = [{"colour": colour} for colour in ("red", "green", "blue", "never seen")]
        p = np.array([each["prediction"] for each in fitted.predict(requests)])
        prior = fitted.statistics["label.classes"]
        z = np.log(p / (1 - p)) - np.log((prior[1] + 0.5) / (prior[0] + 0.5))
        weight, bias = fitted.parameters["output.weight"][0, 0], fitted.parameters["output.bias"][0]
        seen = Counter(given["colour"].tolist())
        share = (given["w"] * given["y"]).sum() / given["w"].sum()
        away = {1: (1 - share) / np.sqrt(share * (1 - share)), 0: -share / np.sqrt(share * (1 - share))}
        values = {"often": [*(np.log1p(seen[each["colour"]]) for each in requests[:3]), 0.0],
                  "rate": [away[1], away[0], away[0], 0.0]}[name]  # fmt: skip
        np.testing.assert_allclose(z, weight * np.array(values) + bias, rtol=2e-3, atol=2e-4)


NUMBERS = {
    "bin": {"quantile_bins": "a", "bins": 8, "embed": 2},
    "robust": {"robust_scale": "a", "clip": 3},
    "place": {"min_max": "a"},
}


def test_quantiles_and_extremes_are_those_of_all_rows_however_many_workers() -> None:
    given, cells, names = rows(), sketch.CELLS, ("quantile_bins.bin", "robust_scale.robust", "min_max.place")
    given["a"] = np.concatenate([np.exp(given["a"][:2000]), -given["a"][2000:]]).astype(np.float32)
    states = [fitted.statistics for fitted in by_workers({**JOB, "transforms": NUMBERS}, given)]
    for name in names:
        assert all(np.array_equal(states[0][name], each[name]) for each in states), name
    bins, quartiles = (states[0][name][0] for name in names[:2])
    assert bins[cells] == quartiles[cells] == ROWS
    for edges, count in ((bins[cells + 1 :], 8), (quartiles[cells + 1 :], 4)):
        exact = np.quantile(given["a"], np.arange(1, count) / count, method="inverted_cdf")
        np.testing.assert_allclose(edges, exact, rtol=1 / 32)
    assert states[0]["min_max.place"].tolist() == [[ROWS, given["a"].min(), given["a"].max()]]
    given["a"][7] = 1e17  # one wrong number moves no quantile
    after = streamtrain.fit({**JOB, "transforms": NUMBERS}, given).statistics["robust_scale.robust"]
    np.testing.assert_allclose(after[0, -3:], quartiles[-3:], rtol=0.01)


DECAYING = {
    "often": {"count": "colour", "half_life": "1m", "buckets": BUCKETS},
    "paid": {"total": "a", "by": "colour", "half_life": "90s", "as": "number", "buckets": BUCKETS},
    "away": {"decayed_scale": "a", "half_life": "1h"},
}
TIMED = {**JOB, "columns": {**JOB["columns"], "at": {"role": "event_time", "unit": "s"}}, "transforms": DECAYING}


def test_decayed_state_goes_by_event_time_however_many_workers() -> None:
    """Rows out of order, over 50 half-lives; sums are as of the newest row."""
    given, random = rows(), np.random.default_rng(5)
    given["at"] = np.sort(random.integers(1_700_000_000, 1_700_003_000, ROWS)) + random.integers(0, 300, ROWS)
    newest = given["at"].max()
    fits = by_workers(TIMED, given)
    for statistics in (fitted.statistics for fitted in fits):
        for block, half_life_s in {"count.often": 60, "total.paid": 90, "decayed_scale.away": 3600}.items():
            table, name = statistics[block], block.partition(".")[2]
            assert table[0, 1] == pytest.approx(newest / half_life_s + 1, rel=1e-15)
            sums = table[1:] * 2.0 ** (table[0, 0] - table[0, 1])
            kept, a = 2.0 ** ((given["at"] - newest) / half_life_s), given["a"]
            if name == "away":
                np.testing.assert_allclose(sums[0], [(kept * a**k).sum() for k in range(3)], rtol=1e-8)
                continue
            x = a if name == "paid" else np.ones(ROWS)
            np.testing.assert_allclose(sums[-1], [kept.sum(), (kept * x).sum()], rtol=1e-8)
            for colour in set(given["colour"].tolist()):
                its = given["colour"] == colour
                np.testing.assert_allclose(
                    sums[bucket(name, colour)], [kept[its].sum(), (kept * x)[its].sum()], rtol=1e-8
                )
    assert fits[0].predict({"a": 1.5, "colour": "red"})["prediction"] > 0  # a request needs no time


@pytest.mark.parametrize("growth", ["off", 4000])
def test_a_few_wrong_times_age_nothing(growth: str | int) -> None:
    """A row in a hundred of the year 2100 or later, beside some late ones. In a lineage's first batch, of one row, such
    a time is not noticed: what was counted goes, and the next round begins anew."""
    given, random = rows(), np.random.default_rng(5)
    job = {**TIMED, "train": {**TIMED["train"], "batch_growth": growth}}
    given["at"] = np.sort(random.integers(1_700_000_000, 1_700_003_000, ROWS))
    given["at"][random.choice(ROWS, 40)] -= 900
    before = streamtrain.fit(job, given).statistics
    given["at"][random.choice(ROWS - 100, 30)] = 4_102_444_800 + random.integers(0, 10**9, 30)
    after = streamtrain.fit(job, given).statistics
    for block in ("count.often", "total.paid", "decayed_scale.away"):
        assert after[block][0, 1] == pytest.approx(before[block][0, 1], abs=3)
        if growth == "off":
            now = [found[block][1:] * 2.0 ** (found[block][0, 0] - before[block][0, 1]) for found in (before, after)]
            np.testing.assert_allclose(now[1], now[0], rtol=0.25, atol=4)


def test_rows_without_a_time_count_for_nothing_that_decays() -> None:
    given = {**rows(), "at": np.full(ROWS, 1_700_000_000)}
    timed = {**TIMED["columns"], "at": {"role": "event_time", "unit": "s", "missing": -1}}
    before = streamtrain.fit({**TIMED, "columns": timed}, given).statistics
    doubled = {name: np.concatenate([values, values]) for name, values in given.items()}
    doubled["at"][ROWS:] = -1
    after = streamtrain.fit({**TIMED, "columns": timed}, doubled).statistics
    for block in ("count.often", "total.paid", "decayed_scale.away"):
        np.testing.assert_allclose(after[block], before[block], rtol=1e-12)


@pytest.mark.parametrize("distinct", [20_000, *(pytest.param(few, marks=pytest.mark.full) for few in (1, 30))])
def test_a_rows_own_label_does_not_reach_it(distinct: int) -> None:
    """Labels at random: nothing is to be learned of them, and a mean that held the row's own would tell it."""
    random = np.random.default_rng(7)
    given = {"id": random.integers(0, distinct, 20_000).astype(str), "y": random.integers(0, 2, 20_000)}
    job = {
        "columns": {"id": {"role": "input", "kind": "category"}, "y": {"role": "label"}},
        "transforms": {"rate": {"target_mean": "id", "prior": 1, "buckets": 1 << 16}},
        "model": {"loss": "binary_cross_entropy"},
        "train": {**JOB["train"], "averaging_frequency": 8},
    }
    total = streamtrain.fit(job, given).manifest.metrics["total"]
    assert total["log_loss"] > total["constant_log_loss"] - 0.002, total
    assert total["log_loss"] < total["constant_log_loss"] + 0.02, total


@over(
    ("tables", "message"),
    [
        ({"t": {"target_mean": "colou"}}, "expected a column that stands before it, got 'colou'; did you mean"),
        ({"t": {"target_mean": "y"}}, "which is the label"),
        ({"t": {"target_meen": "colour"}}, "did you mean 'target_mean'?"),
        ({"t": {"target_mean": "colour", "prior": -1}}, "prior: expected a number from 0"),
        ({"t": {"target_mean": "colour", "embed": 4}}, "embed: expected none but missing, buckets, hash_bits"),
        ({"t": {"count": "colour", "standardize": True}}, "standardize: only a number feature or label"),
        ({"t": {"count": "colour", "role": "weight"}}, "role"),
        ({"t": {"min_max": "colour"}}, "expected columns that hold a number, got colour, which holds a text"),
        ({"t": {"quantile_bins": "a", "bins": 1}}, "bins: expected a whole number from 2"),
        ({"t": {"robust_scale": "a", "buckets": 4}}, "buckets: only a category"),
        ({"t": {"count": "colour", "half_life": "1h"}}, 'a column with role = "event_time" beside it, got none'),
        ({"t": {"count": "colour", "half_life": "1 hour"}}, "half_life: expected a duration of at least 1s such as"),
        ({"t": {"total": "colour", "by": "colour"}}, "expected columns that hold a number, got colour, which holds"),
        ({"t": {"count": "colour"}, "u": {"log1p": "t"}}, "got t, which has state: the model makes it, behind all"),
        ({"t": {"count": "colour"}, "a": {"log1p": "a"}}, "expected a name of its own, got 'a' again"),
        ({"t{1..2}": {"count": "colour"}, "t2": {"log1p": "a"}}, "expected a name of its own, got 't2' again"),
    ],
)
def test_mistakes(tables: dict[str, Any], message: str) -> None:
    with pytest.raises(UserMistake) as raised:
        streamtrain.fit({**JOB, "transforms": tables}, rows(10))
    assert message in str(raised.value)


def test_classes_have_no_mean() -> None:
    columns = {**COLUMNS, "y": {"role": "label", "classes": 3}}
    with pytest.raises(UserMistake, match=r"transforms\.rate: expected a label that is a number, or 0 or 1"):
        streamtrain.fit({**JOB, "columns": columns, "model": {"loss": "softmax_cross_entropy"}}, rows(10))


SEEN = 4000
TIMES = {"at": {"role": "event_time", "unit": "s"}}


def job(vocabulary: dict[str, Any], workers: int = 2, **columns: Any) -> dict[str, Any]:
    """Rounds of the same rows, however many workers."""
    own = {"kind": "category", "hash_bits": 64, "vocabulary": vocabulary, "embed": 4}
    return {
        "columns": {"id": own, "y": {"role": "label"}, **columns},
        "model": {"loss": "binary_cross_entropy"},
        "train": {"batch_rows": 32, "averaging_frequency": 8 // workers, "workers": workers, "round_interval": "off"},
    }


def id_rows(seed: int = 1, count: int = SEEN) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    ids = np.minimum(random.zipf(1.3, count), 10**6).astype(str)
    return {"id": ids, "y": random.integers(0, 2, count)}


def hash_of(text: str, column: str = "id") -> int:
    return int(np.uint64(_native.murmur3(text.encode(), hash_seed(column), 64)).astype(np.int64))


def holders(found: Any) -> list[list[int]]:
    """(hash, count, newest) of ids 1 on, of a fit or of a block."""
    table = Table(found if isinstance(found, np.ndarray) else found.statistics["vocabulary.id"])
    return [list(each) for each in table.entry[: table.capacity].tolist()]


def test_a_vocabulary_does_not_depend_on_the_number_of_workers() -> None:
    """Full ones, of 3 and 100 ids, and one with room for all."""
    given, found = id_rows(), []
    for workers in (1, 2, 4):
        tables = job({"capacity": 3, "admit": 3}, workers)
        for capacity in (100, 5000):
            vocabulary = {"capacity": capacity, "admit": 3}
            tables["columns"][f"id{capacity}"] = {**tables["columns"]["id"], "vocabulary": vocabulary}
        all_ids = {f"id{capacity}": given["id"] for capacity in (100, 5000)}
        found.append(streamtrain.fit(tables, given | all_ids).statistics)
    for name in ("vocabulary.id", "vocabulary.id100", "vocabulary.id5000"):
        assert all(np.array_equal(found[0][name], other[name]) for other in found[1:]), name
    seen = Counter(hash_of(each, "id5000") for each in given["id"].tolist())
    counts = {value: count for value, count, _ in holders(found[0]["vocabulary.id5000"]) if count}
    assert counts == {value: count for value, count in seen.items() if count >= 3}, "those counted often enough"


def test_a_rounds_ids_go_by_count_and_then_by_hash() -> None:
    given = {"id": np.array(list("cbdcbdca")), "y": np.arange(8) % 2}
    fitted = streamtrain.fit(job({"capacity": 9, "admit": 2}), given)
    twice = sorted(map(hash_of, "bd"), key=lambda each: each % (1 << 64))
    assert [value for value, count, _ in holders(fitted) if count] == [hash_of("c"), *twice]


def test_a_full_vocabulary_holds_the_most_counted_and_says_how_many_it_lost() -> None:
    given = id_rows()
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
    requests = [{"id": each} for each in ("old", "never seen")]
    one, other = (each["prediction"] for each in after.predict(requests))
    assert one == other  # both read the row of all others
    assert [value for value, count, _ in holders(after) if count] == [hash_of("new")]


def test_a_few_wrong_times_forget_nothing() -> None:
    given, tables = {**id_rows(), "at": np.full(SEEN, 1_700_000_000)}, job({"capacity": 5000, "evict": "1h"}, **TIMES)
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
def test_mistakes_of_a_vocabulary(column: dict[str, Any], message: str) -> None:
    given = job({"capacity": 3})
    given["columns"]["id"] = {"kind": "category", **column}
    with pytest.raises(UserMistake) as raised:
        streamtrain.fit(given, id_rows(count=10))
    assert message in str(raised.value)
