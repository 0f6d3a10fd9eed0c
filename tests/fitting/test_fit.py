"""`fit`: rows of a program, through the same ring, rounds and workers as on Kafka."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from example_format import plain_formats

import streamtrain
from streamtrain.columns.records import Records
from streamtrain.columns.schema import Schema
from streamtrain.errors import UserMistake
from tests.e2e.harness import LiveJob, rows
from tests.e2e.threaded import rows_after
from tests.fitting.example import TABLES, columns, dicts, same_bits

SCHEMA = Schema.from_columns(TABLES["columns"], TABLES["model"]["loss"])


def test_it_learns_from_arrays() -> None:
    events: list[str] = []
    snapshot = streamtrain.fit(TABLES, columns(20_000), on_event=lambda event: events.append(event["event"]))
    figures = snapshot.manifest.metrics["window"]
    assert snapshot.manifest.rows_seen == 20_000 and not snapshot.untrained
    assert figures["accuracy"] > 0.95, figures
    assert "published" in events and events[-1] == "ended"
    fresh = columns(2000, seed=9)
    found = np.array([answer["prediction"] > 0.5 for answer in snapshot.predict(fresh)])
    assert (found == fresh["y"].astype(bool)).mean() > 0.95


def test_arrays_rows_and_an_iterator_give_the_same_bits() -> None:
    given = columns(1500)
    arrays = streamtrain.fit(TABLES, given)
    assert same_bits(arrays, streamtrain.fit(TABLES, dicts(given)))
    assert same_bits(arrays, streamtrain.fit(TABLES, iter(dicts(given))))
    assert not same_bits(arrays, streamtrain.fit(TABLES, columns(1500, seed=4)))


def test_an_iterator_may_give_many_rows_at_a_time() -> None:
    pandas = pytest.importorskip("pandas")
    given = columns(70_000)
    arrays = streamtrain.fit(TABLES, given)
    for cut in ([70_000], [100, 66_000, 3900]):
        places = zip(np.cumsum([0, *cut]), np.cumsum(cut), strict=False)
        parts = [{name: cells[first:end] for name, cells in given.items()} for first, end in places]
        assert same_bits(arrays, streamtrain.fit(TABLES, iter(parts)))
        assert same_bits(arrays, streamtrain.fit(TABLES, map(pandas.DataFrame, parts)))
    wrong = {**columns(5), "b": ["x", 1, object(), 2, 3]}
    left_out = streamtrain.fit(TABLES, iter([columns(100), wrong])).rejected
    assert [row.place for row in left_out] == ["row 100", "row 102"] and left_out.rows == 2
    with pytest.raises(UserMistake, match=r"row 1 at \$\.b: expected number"):
        streamtrain.fit(TABLES, [{"a": 1, "b": 2, "y": 1}, {"a": 1, "b": object(), "y": 1}])


@pytest.mark.parametrize(("format", "passes"), [*((each, 1) for each in plain_formats(SCHEMA)), ("msgpack", 2)])
def test_the_same_rows_through_kafka_give_the_same_bits(kafka: Any, tmp_path: Path, format: str, passes: int) -> None:
    """Two passes over them are a trainer that is started twice."""
    job = LiveJob(kafka, tmp_path, partitions=1, format=format, round_interval="off", workers=2)
    given = list(rows(3000))
    records = Records(job.job.schema, format, job.records, pack=7, most_bytes=100_000)
    for _ in range(passes):
        job.produce_values(record.value for block in records.blocks(given, None, False) for record in block)
        assert rows_after(job.path) > 0
    published = next(streamtrain.follow_snapshots(job.name, job.bootstrap))
    fitted = streamtrain.fit(job.job, given, epochs=passes)
    assert published.manifest.rows_seen == fitted.manifest.rows_seen == 3000 * passes
    assert published.manifest.round == fitted.manifest.round and same_bits(published, fitted)


def test_columns_from_a_message_are_fields() -> None:
    """A program's rows have no message metadata."""
    table = {**TABLES["columns"], "w": {**TABLES["columns"]["w"], "from": "partition"}}
    given = columns(2_000)
    assert same_bits(streamtrain.fit({**TABLES, "columns": table}, given), streamtrain.fit(TABLES, given))


@pytest.mark.parametrize("format", plain_formats(SCHEMA))
def test_rows_that_cannot_be_used_are_logged_by_their_numbers(caplog: pytest.LogCaptureFixture, format: str) -> None:
    given = dicts(columns(5000))
    for number in (3, 1500, 4000):
        given[number]["y"] = 5
    manifest = streamtrain.fit({**TABLES, "records": {"format": format}}, given).manifest
    assert manifest.rows_seen == 4997 and manifest.counts.dead == 3 and "rows were left out" in caplog.text
    for number in (3, 1500, 4000):
        assert f"row {number} at $.y: expected 0, 1, true or false, got 5" in caplog.text


def test_a_job_file_needs_no_broker(tmp_path: Path) -> None:
    path = tmp_path / "job.toml"
    path.write_text(
        'name = "alone"\n[columns]\nx = {}\ny = { role = "label" }\n[model]\nloss = "mean_squared_error"\n'
        "[train]\nworkers = 1\n"
    )
    x = np.linspace(-1, 1, 4000)
    snapshot = streamtrain.fit(path, {"x": x, "y": 3 * x + 1})
    assert snapshot.manifest.job == "alone"
    figures = snapshot.manifest.metrics["window"]
    assert figures["rmse"] < 0.5 * figures["constant_rmse"], figures


@pytest.mark.parametrize("optimizer", [{"name": "adam", "learning_rate": 0.05, "clip_norm": 5.0}, {"name": "lamb"}])
def test_a_table_may_be_all_that_learns(optimizer: dict[str, Any]) -> None:
    label = np.arange(2000) % 2
    tables = {
        "columns": {"c": {"kind": "category", "buckets": 64, "embed": 1}, "y": {"role": "label"}},
        "model": {"graph": {"output": {"scale": "input.c", "by": 1.0}}},
        "optimizer": optimizer,
    }
    fitted = streamtrain.fit(tables, {"c": np.array(["a", "b"])[label], "y": label})
    assert list(fitted.parameters) == ["c.embedding"]
    assert fitted.manifest.metrics["total"]["log_loss"] < 0.6
