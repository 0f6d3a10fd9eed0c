"""Rows that are left out, counted or have stand-ins keep their places; settings keep what they say, and their limits
are the engine's; sums in float32 stay as good as float64."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from example_format import plain_formats
from given_outputs import echo_plan
from pydantic import ValidationError
from slots import decode_rows

from streamtrain import Job, _native
from streamtrain.columns.schema import Schema
from streamtrain.compute.model import Model
from streamtrain.errors import UserMistake
from streamtrain.job.sections import TopicSettings, Train
from streamtrain.kafka.admin import TopicState, _mistakes
from streamtrain.topics.topic import TopicWish
from tests.oracles.ops._batch import step
from tests.oracles.ops.embedding import places_of
from tests.oracles.records import encode_records

SKIPPING = {"a": {"missing": "skip"}, "b": {}, "y": {"role": "label", "missing": 0}}
SKIPPED_ROWS: list[Any] = [{"a": at, "b": at} for at in range(9)]
SKIPPED_ROWS[2] = SKIPPED_ROWS[3] = {"b": 2}  # left out
SKIPPED_ROWS[5] = {"a": 5, "b": "x"}  # dead
SKIPPED_ROWS[8] = {"b": 8}


@pytest.mark.parametrize("as_columns", [False, True])
def test_a_scorer_answers_each_row_in_its_place_though_others_are_left_out(as_columns: bool) -> None:
    schema = Schema.from_columns(SKIPPING, "mean_squared_error")
    plan, layout = echo_plan(schema)
    scorer = _native.RowScorer(plan, schema.native_plan(layout), [("", plan.width, [], True)], 1 << 30)
    if as_columns:
        answers, failed = scorer.score_columns({name: [row.get(name) for row in SKIPPED_ROWS] for name in ("a", "b")})
    else:
        answers, failed = scorer.score_rows(SKIPPED_ROWS)
    answered = [at for at, row in enumerate(SKIPPED_ROWS) if "a" in row and at != 5]
    assert [at for at, answer in enumerate(answers) if answer is not None] == answered
    for at in answered:
        assert list(answers[at]["probabilities"].values()) == [at, at]
    assert [(row, path) for row, path, _ in failed] == [(2, "$[2].a"), (3, "$[3].a"), (5, "$[5].b"), (8, "$[8].a")]
    assert "leaves such rows out" in failed[0][2] and 'got "x"' in failed[2][2]


COUNTED = {"a": {"missing": "skip"}, "at": {"role": "event_time", "unit": "ms"}, "y": {"role": "label"}}
COUNTED_SCHEMA = Schema.from_columns(COUNTED, "mean_squared_error")
ROW = {"a": 1, "y": 0}


def counter(rows: int) -> _native.BatchFiller:
    layout = _native.SlotLayout.make(rows, 1, COUNTED_SCHEMA.block_specs())
    return _native.BatchFiller("json", COUNTED_SCHEMA.native_plan(layout))


def record(*times: int | None) -> bytes:
    """A row for each time; None stands for a row that cannot be used."""
    rows: list[Any] = [{**ROW, "at": time} if time is not None else {"a": "x"} for time in times]
    return json.dumps(rows).encode()


@pytest.mark.parametrize("batch_rows", [1, 2, 3, 7, 100])
def test_all_rows_of_records_larger_than_a_batch(batch_rows: int) -> None:
    records = [record(5, 6, None, 70, 8, 9), record(1), record(*range(20)), b"{", b'{"y": 1}', record(3, 4)]
    tally = counter(batch_rows).count(records)
    assert (tally.trained, tally.dead, tally.filtered, tally.newest_event_time_ms) == (28, 2, 1, 70)
    dead = [(start, to, remainder) for start, to, *_, remainder in tally.dead_rows]
    assert dead[:2] == [(2, 3, False), (0, 1, True)]


@pytest.mark.parametrize("batch_rows", [1, 2, 100])
def test_no_more_rows_than_requested(batch_rows: int) -> None:
    filler, given = counter(batch_rows), record(1, 2, None, 9, 3, None)
    for most, newest, dead, passed in ((0, -1, 0, 0), (1, 1, 0, 1), (2, 2, 0, 2), (3, 9, 1, 4), (4, 9, 1, 5)):
        tally = filler.count([given], most=most)
        assert (tally.trained, tally.newest_event_time_ms) == (most, newest)
        assert tally.dead == dead and filler.record_rows == passed
    assert filler.count([given], from_row=3).trained == 2
    assert filler.count([given, given], from_row=3).trained == 6


def test_a_batch_takes_no_more_than_its_slot_holds() -> None:
    filler = counter(4)
    with pytest.raises(ValueError, match="no slot is open"):
        filler.fill(record(1))
    with pytest.raises(ValueError, match="smaller than its layout"):
        filler.open(bytearray(8))
    layout = _native.SlotLayout.make(4, 1, COUNTED_SCHEMA.block_specs())
    filler.open(bytearray(layout.slot_bytes))
    with pytest.raises(ValueError, match="no record is begun"):
        filler.more()
    assert not filler.fill(record(1, 2, 3), until=2) and filler.rows == 2
    for until in (1, 5):
        with pytest.raises(ValueError, match="its rows at least"):
            filler.more(until)
    assert filler.more() and filler.close() == 3
    with pytest.raises(ValueError, match="no slot is open"):
        filler.more()


STAND_IN = Schema.from_columns(
    {"x": {"missing": 0.5}, "late": {"role": "label"}}, "binary_cross_entropy", {"twice": {"scale": "x", "by": 2}}
)


@pytest.mark.parametrize("format_name", plain_formats(STAND_IN))
def test_a_stand_in_is_one_rows(format_name: str) -> None:
    """Transforms see it in the rows that lack the cell, and in no other of a packed block."""
    rows = [{"x": None if i % 3 == 0 else float(i), "late": 1} for i in range(40)]
    found = []
    for record in encode_records(format_name, STAND_IN, rows):
        blocks, _ = decode_rows(format_name, STAND_IN, record)
        found += blocks["numbers"].tolist()
    assert found == [[0.5, 1.0] if row["x"] is None else [row["x"], 2 * row["x"]] for row in rows]


def test_a_job_of_tables_may_name_a_schema_in_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fields = [{"name": "far", "type": "float"}, {"name": "late", "type": "boolean"}]
    (tmp_path / "trip.avsc").write_text(json.dumps({"type": "record", "name": "Trip", "fields": fields}))
    monkeypatch.chdir(tmp_path)
    tables = {
        "records": {"format": "avro", "schema": "trip.avsc"},
        "columns": {"far": {}, "late": {"role": "label"}},
        "model": {"layers": [], "loss": "binary_cross_entropy"},
    }
    columns = Job.from_tables(tables).plan().decode([b"\x00\x00\x80\x3f\x01"])
    assert (columns["far"].tolist(), columns["late"].tolist()) == ([1.0], [1.0])


@pytest.mark.parametrize("setting", ["train.round_interval", "train.batch_growth"])
def test_off_goes_through_the_effective_job(setting: str) -> None:
    text = (
        'name = "job"\n[kafka]\nbootstrap.servers = "localhost:9092"\n'
        '[columns]\nx = { standardize = { clip = "off" } }\ny = { role = "label" }\n'
    )
    job = Job.parse(text, sets=[f'{setting}="off"'])
    other = Job.from_effective(job.effective())
    assert job.effective()["train"][setting.partition(".")[2]] == "off"
    assert other.rounds == job.rounds and other.schema == job.schema and other.digest() == job.digest()
    assert job.digest() != Job.parse(text).digest()


def arena(workers: int) -> _native.Arena:
    model = Model({"input": {"numbers": 1}, "layers": [], "loss": "mean_squared_error", "optimizer": {"name": "sgd"}})
    slots = _native.SlotLayout.make(1, 1, [("numbers", "f32", 1), ("label", "f32", 1), ("weight", "f32", 1)])
    return _native.Arena.create(workers, 1, 2 * workers, slots, model.layout)


def test_workers() -> None:
    most = _native.MAX_WORKERS
    for take in (arena, lambda count: Train(workers=count)):
        take(most)
        with pytest.raises(ValueError):
            take(most + 1)


def test_partitions() -> None:
    most = _native.MAX_PARTITIONS
    assert TopicSettings(partitions=most).partitions == most
    with pytest.raises(ValidationError):
        TopicSettings(partitions=most + 1)
    ring = _native.CoordinatorEnd(arena(1))
    ring.begin(round=-1, learning_rate=0.1, positions=[(at, 0, 0) for at in range(most)])
    with pytest.raises(ValueError, match="too many partitions"):
        ring.begin(round=-1, learning_rate=0.1, positions=[(at, 0, 0) for at in range(most + 1)])
    state = TopicState("r", "id", most + 1, 1, {}, "delete", None)
    assert _mistakes(TopicWish("records", "r", 4), state, "") == ["topic r: expected at most 4096 partitions, got 4097"]


def table(numbers: int, classes: Any = None) -> Schema:
    loss = "softmax_cross_entropy" if classes else "mean_squared_error"
    label = {"role": "label"} | ({"classes": classes} if classes else {})
    return Schema.from_columns({f"x{{1..{numbers}}}": {}, "y": label}, loss)


def test_classes_and_columns() -> None:
    most = _native.MAX_CLASSES
    spec = {"layers": [], "loss": "softmax_cross_entropy", "optimizer": {"name": "sgd"}}
    assert Model({**spec, "input": table(1, most).engine_inputs()}).parsed.input.classes == most
    for beyond in (most + 1, [str(at) for at in range(most + 1)]):
        with pytest.raises(UserMistake, match="expected 2 to 65,535 classes, got 65536"):
            table(1, beyond)
    assert len(table(_native.MAX_COLUMNS - 1).columns) == _native.MAX_COLUMNS
    with pytest.raises(UserMistake, match="columns: expected at most 65,535, got 65,536"):
        table(_native.MAX_COLUMNS)


BETAS, EPSILON, RATE, STEPS, COUNT = (0.9, 0.99999), 1e-8, 1e-3, 20_000, 64


def reference(gradients: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], ...]:
    """Parameters and moments after all gradients, in float64."""
    p, m, v = np.zeros(COUNT), np.zeros(COUNT), np.zeros(COUNT)
    for t, g in enumerate(gradients.astype(np.float64), 1):
        m, v = BETAS[0] * m + (1 - BETAS[0]) * g, BETAS[1] * v + (1 - BETAS[1]) * g * g
        p = p - RATE * (m / (1 - BETAS[0] ** t)) / (np.sqrt(v / (1 - BETAS[1] ** t)) + EPSILON)
    return p, m, v


@pytest.mark.parametrize("isa", _native.supported_isas())
def test_adam_agrees_with_float64(isa: str) -> None:
    """1 - beta as a float32 difference was off by 1.4e-3 in the second moment at 0.99999."""
    gradients = np.random.default_rng(3).normal(0.3, 1, (STEPS, COUNT)).astype(np.float32)
    p, m, v = (np.zeros(COUNT, np.float32) for _ in range(3))
    settings = np.array([[COUNT, 1.0, 0, 0, 0, 0, *BETAS, EPSILON]])
    for t, g in enumerate(gradients, 1):
        block = step(learning_rate=RATE, number=t)
        _native.call_kernel("adam", "", [COUNT, 1, block, settings, None, g, p, m, v, None], isa)
        if t == 1:  # nothing but 1 - beta itself
            np.testing.assert_allclose(v, (1 - BETAS[1]) * g.astype(np.float64) ** 2, rtol=3e-7)
    expected = reference(gradients)
    np.testing.assert_allclose(v, expected[2], rtol=1e-5)
    np.testing.assert_allclose(m, expected[1], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(p, expected[0], rtol=1e-5)


ROWS, INPUTS = 1_000_000, 3


@pytest.fixture(scope="module")
def batch() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """x of mean 1 and a gradient of mean 0.1: what a chain adds becomes small beside what it holds."""
    rng = np.random.default_rng(11)
    return rng.normal(1, 1, (ROWS, INPUTS)).astype(np.float32), rng.normal(0.1, 0.3, (ROWS, 9)).astype(np.float32)


def off(found: np.ndarray[Any, Any], exact: np.ndarray[Any, Any]) -> float:
    """The largest error, as a share of the largest sum."""
    return float(abs(found - exact).max() / abs(exact).max())


@pytest.mark.parametrize("isa", _native.supported_isas())
@pytest.mark.parametrize("outputs", [1, 2, 9])
def test_gradient_sums_of_a_dense_layer(batch: Any, outputs: int, isa: str) -> None:
    x, dy = batch[0], np.ascontiguousarray(batch[1][:, :outputs])
    dw, db = np.empty((INPUTS, outputs), np.float32), np.empty(outputs, np.float32)
    values = [ROWS, INPUTS, outputs, x, dy, dw, db, np.empty((INPUTS, 64))]
    _native.call_kernel("dense_grad_weight", "", values, isa)
    assert off(dw, x.astype(np.float64).T @ dy) < 2e-6
    assert off(db, dy.sum(0, dtype=np.float64)) < 2e-6


@pytest.mark.parametrize("isa", _native.supported_isas())
def test_gradient_sums_of_a_table_row(batch: Any, isa: str) -> None:
    """All rows of the batch have the same category."""
    dx, lead, gradient = batch[0], np.zeros((1, ROWS), np.int32), np.zeros((ROWS, INPUTS))
    places = np.array(places_of([(0, 1, INPUTS)], at=0))
    _native.call_kernel("embedding_gradient", "", [ROWS, 1, INPUTS, INPUTS, 0, places, dx, lead, gradient], isa)
    assert off(gradient[0], dx.sum(0, dtype=np.float64)) < 1e-12
