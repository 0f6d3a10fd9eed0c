"""`fit`: rows of a program and of files, through the same ring, rounds and workers as on Kafka; labels in arrays are
checked before anything runs; callbacks at the end of rounds, and the history that is left. Early stopping."""

from __future__ import annotations

import contextlib
import copy
import csv
import math
import os
import pickle
import pty
import subprocess
import sys
import threading
from contextlib import suppress
from dataclasses import fields
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from example_format import plain_formats
from looped import over

import streamtrain
from streamtrain import EarlyStopping, EarlyStoppingTrainer, Fitted, ParallelWrapper, Snapshot, fit
from streamtrain.columns.record_encoding import Records
from streamtrain.columns.schema import Schema
from streamtrain.errors import CheckFailed, SnapshotError, UserMistake
from streamtrain.fitting.callbacks import Moment
from tests.e2e.harness import LiveJob, rows
from tests.e2e.threaded import rows_after
from tests.fitting.example import ALONE, TABLES, columns, dicts, same_bits, whole_fit, with_train, workers

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
    given = dicts(columns(1500))
    arrays = whole_fit(1500)
    assert same_bits(arrays, streamtrain.fit(TABLES, given))
    assert same_bits(arrays, streamtrain.fit(TABLES, iter(given)))
    assert not same_bits(arrays, whole_fit(500))


def test_an_iterator_may_give_many_rows_at_a_time() -> None:
    pandas = pytest.importorskip("pandas")
    given = columns(70_000)
    arrays = streamtrain.fit(ALONE, given)
    places = ((0, 100), (100, 66_100), (66_100, 70_000))
    parts = [{name: cells[first:end] for name, cells in given.items()} for first, end in places]
    assert same_bits(arrays, streamtrain.fit(ALONE, iter(parts)))
    assert same_bits(arrays, streamtrain.fit(ALONE, map(pandas.DataFrame, parts)))
    wrong = {**columns(5), "b": ["x", 1, object(), 2, 3]}
    left_out = streamtrain.fit(ALONE, iter([columns(100), wrong])).rejected
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
    assert same_bits(streamtrain.fit({**TABLES, "columns": table}, columns(500)), whole_fit(500))


@pytest.mark.parametrize("format", plain_formats(SCHEMA))
def test_rows_that_cannot_be_used_are_logged_by_their_numbers(caplog: pytest.LogCaptureFixture, format: str) -> None:
    given = dicts(columns(1600))
    for number in (3, 1024, 1599):
        given[number]["y"] = 5
    manifest = streamtrain.fit({**ALONE, "records": {"format": format}}, given).manifest
    assert manifest.rows_seen == 1597 and manifest.counts.dead == 3 and "rows were left out" in caplog.text
    for number in (3, 1024, 1599):
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


def written(path: Path, given: list[dict[str, Any]]) -> str:
    with open(path, "w", newline="") as file:
        table = csv.DictWriter(file, list(given[0]))
        table.writeheader()
        table.writerows(given)
    return str(path)


def test_a_file_and_a_topic_give_the_same_bits(kafka: Any, tmp_path: Path) -> None:
    job = LiveJob(kafka, tmp_path, partitions=1, round_interval="off", workers=2)
    given = [{**row, "unused": "x"} for row in rows(3000)]
    paths = [written(tmp_path / "one.csv", given[:1777]), written(tmp_path / "two.csv", given[1777:])]
    for path in paths:
        assert job.here("produce", "--input", path, "--pack", "7", "-q").returncode == 0
    assert rows_after(job.path) > 0
    published = next(streamtrain.follow_snapshots(job.name, job.bootstrap))
    fitted = streamtrain.fit(job.job, files=paths)
    assert published.manifest.rows_seen == fitted.manifest.rows_seen == 3000
    assert same_bits(published, fitted)


def test_every_form_gives_the_bits_of_the_rows(tmp_path: Path) -> None:
    import pyarrow.parquet  # slow to import

    given, expected = columns(1500), whole_fit(1500, epochs=2)
    assert expected.manifest.rows_seen == 3000 and not same_bits(expected, whole_fit(1500))
    table = pyarrow.table(given)
    pyarrow.parquet.write_table(table, tmp_path / "rows.parquet")
    with pyarrow.ipc.new_file(tmp_path / "rows.arrow", table.schema) as file:
        file.write_table(table, max_chunksize=999)
    for path in (written(tmp_path / "rows.csv", dicts(given)), tmp_path / "rows.parquet", [tmp_path / "rows.arrow"]):
        assert same_bits(streamtrain.fit(TABLES, files=path, epochs=2), expected), path


def test_mistakes(tmp_path: Path) -> None:
    path = written(tmp_path / "rows.csv", [{**row, "a": "bad"} for row in dicts(columns(40))])
    with pytest.raises(CheckFailed, match=r"rows.csv row 0 at \$.a: expected number, got"):
        streamtrain.fit(TABLES, files=path)
    with pytest.raises(UserMistake, match="got both"):
        streamtrain.fit(TABLES, columns(10), files=path)
    for nothing in ({}, {"files": []}):
        with pytest.raises(UserMistake):
            streamtrain.fit(TABLES, **nothing)  # type: ignore[arg-type]
    for wrong, got in ((3, "int"), ([path, 3], "int")):
        with pytest.raises(UserMistake, match=f"fit: files: expected the paths of files, got {got}"):
            streamtrain.fit(TABLES, files=wrong)  # type: ignore[arg-type]
    with pytest.raises(UserMistake, match=r"no.csv: cannot be read"):
        streamtrain.fit(TABLES, files=tmp_path / "no.csv")


def test_dead_rows_have_their_number_in_every_pass(caplog: pytest.LogCaptureFixture) -> None:
    given = columns(3000)
    given["y"] = given["y"].astype(float)
    given["y"][2500] = float("nan")
    fitted = streamtrain.fit(ALONE, given, epochs=4)
    assert caplog.text.count("row 2500 at $.y") == 4 and fitted.manifest.counts.dead == 4


def test_what_is_no_number_of_passes() -> None:
    with pytest.raises(UserMistake, match=r"epochs: expected 1 for an iterator.* got 2; give arrays"):
        streamtrain.fit(TABLES, iter(dicts(columns(10))), epochs=2)
    for name in ("epochs", "every_rounds", "every_epochs"):
        for wrong in (0, 1.5, True):
            with pytest.raises(UserMistake, match=f"{name}: expected a whole number from 1, got {wrong}"):
                streamtrain.fit(TABLES, columns(10), **{name: wrong})  # type: ignore[arg-type]


# 64 rows a batch, 384 a round; on a busy machine a second may pass, after which one is published that nobody asked for
EVEN = {**with_train(batch_growth="off"), "publish": {"interval": "10m"}}


def test_moments_are_the_same_in_every_run_and_change_no_bit() -> None:
    given, found = columns(5000), []
    plain = streamtrain.fit(EVEN, given, epochs=2)
    callback = lambda moment: found.append((moment.round, moment.epoch, moment.rows))  # noqa: E731
    assert same_bits(plain, streamtrain.fit(EVEN, given, epochs=2, every_rounds=5, callbacks=[callback]))
    assert found == [(4, 0, 1920), (9, 0, 3840), (14, 1, 5384), (19, 1, 7304), (24, 1, 9224), (27, 2, 10_000)]


def test_a_moments_model_is_that_of_its_round() -> None:
    given = columns(3840)
    models: list[streamtrain.Fitted] = []
    fitted = streamtrain.fit(EVEN, given, every_rounds=5, callbacks=[lambda moment: models.append(moment.model())])
    half = streamtrain.fit(EVEN, {name: cells[:1920] for name, cells in given.items()})
    assert same_bits(models[0], half) and same_bits(models[1], fitted)
    assert models[0].predict({"a": 1, "b": 1, "colour": "red"}) == half.predict({"a": 1, "b": 1, "colour": "red"})


def test_an_object_hears_what_it_has_names_for() -> None:
    heard: list[Any] = []
    callback = SimpleNamespace(
        on_begin=lambda job: heard.append(job.name),
        on_epoch=lambda moment: heard.append((moment.epoch, moment.ends_epoch, moment.rows)),
        on_end=heard.append,
    )
    fitted = streamtrain.fit(ALONE, columns(1000), epochs=3, callbacks=[callback])
    assert heard == ["fit", (1, True, 1000), (2, True, 2000), (3, True, 3000), fitted] and heard[-1] is fitted


def test_a_callback_stops_training_where_it_says() -> None:
    given = columns(50_000)

    def enough(moment: Moment) -> None:
        if moment.rows >= 3840:
            moment.stop("seen enough")

    events: list[Any] = []
    fitted = streamtrain.fit(EVEN, given, every_rounds=5, callbacks=[enough], on_event=events.append)
    assert fitted.stopped == "seen enough" and fitted.manifest.rows_seen == 3840 and events[-1]["event"] == "ended"
    assert same_bits(fitted, streamtrain.fit(EVEN, {name: cells[:3840] for name, cells in given.items()}))


def test_a_callback_that_raises_ends_it_and_one_that_is_none_too() -> None:
    def broken(moment: Moment) -> None:
        raise ArithmeticError("no such figure")

    for more in ({}, {"every_rounds": 3}, {"every_epochs": 1}):
        with pytest.raises(ArithmeticError, match="no such figure"):
            streamtrain.fit(ALONE, columns(2000), callbacks=[broken], **more)  # type: ignore[arg-type]
        assert workers() == []
    with pytest.raises(UserMistake, match=r"callbacks: expected functions of a moment, or objects with on_begin.* int"):
        streamtrain.fit(TABLES, columns(10), callbacks=[3])


def test_the_history_has_a_row_for_each_publication() -> None:
    tables = {**EVEN, "optimizer": {**EVEN["optimizer"], "schedule": {"name": "inverse", "gamma": 0.01, "power": 1.0}}}
    fitted = streamtrain.fit(tables, columns(3840), epochs=2, every_rounds=5, callbacks=[lambda moment: None])
    frame = fitted.history.frame()
    assert frame["rows"].tolist() == [1920, 3840, 5760, 7680] and frame["round"].tolist() == [4, 9, 14, 19]
    assert frame["epoch"].tolist() == [0, 1, 1, 2] and frame["steps"].tolist() == [15, 30, 45, 60]
    assert (np.diff(frame["learning_rate"]) < 0).all() and (np.diff(frame["seconds"]) > 0).all()
    assert (np.diff(frame["loss"]) < 0).all() and (frame["log_loss"] < frame["constant_log_loss"]).all()
    mean = (frame["loss"]).mean()  # every row weighs the same on average
    assert abs(mean - fitted.manifest.metrics["total"]["log_loss"]) < 0.01
    plain = streamtrain.fit(tables, columns(3840)).history
    assert len(plain) == 1 and plain[0].rows == 3840


def test_a_picture_of_the_history() -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed (extra plot)")
    history = streamtrain.fit(EVEN, columns(3840), every_rounds=2, callbacks=[lambda moment: None]).history
    upper, lower = history.plot("log_loss", "auc").axes
    assert [line.get_label() for line in upper.lines] == ["log_loss", "constant_log_loss"]
    assert upper.lines[0].get_xdata().tolist() == [768, 1536, 2304, 3072, 3840]
    assert lower.lines[0].get_ydata().tolist() == history.frame()["auc"].tolist()
    assert len(history.plot().axes) == 1
    with pytest.raises(UserMistake, match=r"expected one of version, round, .* got 'los'"):
        history.plot("los")


def test_a_bar_is_shown_on_a_terminal_alone() -> None:
    code = """import os, sys, streamtrain
from tests.fitting.example import columns, with_train
streamtrain.fit(with_train(workers=1), columns(3000), progress=True)
os.dup2(int(sys.argv[1]), 2)
streamtrain.fit(with_train(workers=1), columns(3000), epochs=2, progress=True)
"""
    environment = {"PATH": "/usr/bin:/bin", "TERM": "xterm", "COLUMNS": "100"}
    drawn: list[bytes] = []

    def read_all() -> None:
        with contextlib.suppress(OSError):  # by which Linux tells that no program has the terminal open
            while piece := os.read(screen, 4096):
                drawn.append(piece)

    screen, terminal = pty.openpty()
    reader = threading.Thread(target=read_all)  # a terminal that nobody reads holds its writer
    reader.start()
    arguments = [sys.executable, "-P", "-c", code, str(terminal)]
    try:
        done = subprocess.run(
            arguments, capture_output=True, text=True, env=environment, timeout=120, pass_fds=[terminal]
        )
    finally:
        os.close(terminal)
        reader.join()
        os.close(screen)
    text = b"".join(drawn).decode()
    assert done.returncode == 0 and done.stderr == "", done.stderr + text
    assert "rows" in text and "/6000" in text


CLASSES = {"role": "label", "classes": 3}
JOB: dict[str, Any] = {"columns": {"x": {}, "y": CLASSES}, "model": {"loss": "softmax_cross_entropy"}}
BINARY: dict[str, Any] = {"columns": {"x": {}, "y": {"role": "label"}}}


class Begins:
    def on_begin(self, job: Any) -> None:
        raise AssertionError("it has begun")


def labels(*values: float, dtype: str = "f8") -> dict[str, Any]:
    return {"x": np.zeros(len(values)), "y": np.array(values, dtype)}


@over(
    ("job", "rows", "message"),
    [
        (JOB, labels(0, 2, 3, -1), "rows: y: expected a class from 0 to 2, got 3.0 in row 2, as in 2 of 4 rows; mend"),
        (JOB, labels(4), "tell the job how many there are (classes = …)"),
        (JOB, labels(0, 2, -1, dtype="i8"), "got -1 in row 2"),
        (JOB, labels(0, 1.5), "got 1.5 in row 1"),
        (JOB, labels(0, np.inf), "got inf in row 1"),
        (BINARY, labels(0, 1, 2, dtype="u1"), "expected a class from 0 to 1, got 2 in row 2"),
        (JOB, labels(), "expected at least one row, got none"),
    ],
)
@over("frame", [False, True])
def test_a_class_that_there_is_not_is_refused_before_anything_runs(
    job: Any, rows: dict[str, Any], message: str, frame: bool
) -> None:
    pandas = pytest.importorskip("pandas")
    given = pandas.DataFrame(rows) if frame else rows
    for train in (partial(fit, job), ParallelWrapper(job, workers=1).fit):
        with pytest.raises(UserMistake) as found:
            train(given, callbacks=[Begins()])
        assert message in str(found.value)


def test_missing_labels_and_names_are_left_to_the_column() -> None:
    skipped = {"columns": {"x": {}, "y": {**CLASSES, "missing": "skip"}}, "model": JOB["model"]}
    assert fit(skipped, labels(0, np.nan, 2)).manifest.rows_seen == 2
    named = {"columns": {"x": {}, "y": {"role": "label", "classes": ["7", "8"]}}, "model": JOB["model"]}
    assert fit(named, labels(7, 8, dtype="i8")).manifest.rows_seen == 2
    assert fit(BINARY, {"x": np.zeros(2), "y": np.array([True, False])}).manifest.rows_seen == 2


def test_rows_that_are_left_out_may_have_any_label() -> None:
    filtered = {**BINARY, "records": {"where": "x <= 0.5"}}
    assert fit(filtered, {"x": np.array([0.0, 1, 0]), "y": np.array([1, 7, 0])}).manifest.rows_seen == 2
    skipped = {"columns": {"x": {"missing": "skip"}, "y": {"role": "label"}}}
    assert fit(skipped, {"x": np.array([0.0, np.nan, 0]), "y": np.array([1, 7, 0])}).manifest.rows_seen == 2


VALIDATION = columns(2000, seed=9)


def probabilities(model: Fitted, rows: Any) -> Any:
    return np.array([answer["prediction"] for answer in model.predict(rows)])


def log_loss(model: Fitted) -> float:
    p, y, w = probabilities(model, VALIDATION), VALIDATION["y"], VALIDATION["w"]
    return float(-(w * np.log(np.where(y, p, 1 - p))).sum() / w.sum())


def trained(rows: Any, job: Any = ALONE, /, **settings: Any) -> Any:
    return EarlyStoppingTrainer(EarlyStopping(**settings), job, rows).fit()


def test_it_ends_when_the_validation_score_stops_improving_and_saves_the_best(tmp_path: Path) -> None:
    """On few rows, of which it learns too much."""
    fast = {**ALONE, "optimizer": {"name": "adam", "learning_rate": 0.05}}
    found = trained(columns(200), fast, no_improvement=4, held_out=VALIDATION, epochs=300, save_to=tmp_path / "best")
    assert found.reason == "no_improvement" and found.details.startswith("4 evaluations were not better than")
    scores = [each.score for each in found.evaluations]
    assert [each.epoch for each in found.evaluations] == list(range(1, len(scores) + 1)) and len(scores) < 300
    assert found.best_score == min(scores) and scores.index(found.best_score) == len(scores) - 5
    assert found.best_epoch == len(scores) - 4 and found.scores[found.best_version] == found.best_score
    assert abs(log_loss(found.best_model) - found.best_score) < 1e-6
    assert abs(log_loss(found.model) - scores[-1]) < 1e-6 and found.best_model.version < found.model.version
    again = streamtrain.fit(fast, columns(200), epochs=found.best_epoch)
    assert same_bits(found.best_model, again) and found.best_model.parameters_digest == again.parameters_digest
    assert found.best_model.digest != again.digest
    assert found.model.stopped == f"no_improvement: {found.details}"
    loaded = Fitted.load(tmp_path / "best")
    assert loaded.digest == found.best_model.digest and same_bits(loaded, found.best_model)
    assert loaded.predict(VALIDATION) == found.best_model.predict(VALIDATION)
    (model,) = (tmp_path / "best").iterdir()
    model.write_bytes(model.read_bytes()[:-1] + b"\x07")
    with pytest.raises(SnapshotError, match=r"model\.snapshot@\d+: chunk 2 of 2: expected the digest"):
        Fitted.load(tmp_path / "best")
    with pytest.raises(UserMistake, match=r"nowhere: cannot be read"):
        Fitted.load(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("score", "forms"),
    [
        ("log_loss", ["arrays", "rows", "file"]), ("auc", ["rows"]), ("accuracy", ["file"]),
        *(pytest.param(score, ["arrays", "rows", "file"], marks=pytest.mark.full) for score in ("auc", "accuracy")),
    ],
)  # fmt: skip
def test_the_score_of_a_validation_set_in_every_form(tmp_path: Path, score: str, forms: list[str]) -> None:
    path = written(tmp_path / "held out.csv", dicts(VALIDATION))
    validation_sets = {"arrays": VALIDATION, "rows": dicts(VALIDATION), "file": path}
    found = [trained(columns(600), epochs=2, score=score, held_out=validation_sets[form]) for form in forms]
    assert len({each.best_score for each in found}) == 1 and found[0].reason == "epochs"
    p, y, w = probabilities(found[0].best_model, VALIDATION), VALIDATION["y"], VALIDATION["w"]
    yes, no = ((p[at], w[at]) for at in (y == 1, y == 0))
    right = (yes[0][:, None] > no[0]) + 0.5 * (yes[0][:, None] == no[0])
    expected = {
        "log_loss": log_loss(found[0].best_model),
        "auc": (right * np.outer(yes[1], no[1])).sum() / (yes[1].sum() * no[1].sum()),
        "accuracy": float((w * ((p >= 0.5) == y)).sum() / w.sum()),
    }
    assert abs(found[0].best_score - expected[score]) < (1e-3 if score == "auc" else 1e-6)


def test_the_progressive_score_is_that_of_the_rows_since_the_evaluation_before() -> None:
    found = trained(columns(1500), TABLES, epochs=4, every_epochs=2)
    half = whole_fit(1500, epochs=2).manifest.metrics["total"]["log_loss"]
    whole = found.model.manifest.metrics["total"]["log_loss"]
    first, second = (each.score for each in found.evaluations)
    assert abs(first - half) < 1e-12 and abs(second - (2 * whole - half)) < 1e-12


def test_the_score_of_a_number_is_its_rmse() -> None:
    x = np.linspace(-1, 1, 1000)
    job = {"columns": {"x": {}, "y": {"role": "label"}}, "model": {"loss": "mean_squared_error"}}
    found = trained({"x": x, "y": 3 * x}, job, epochs=3, held_out={"x": x, "y": 3 * x})
    error = probabilities(found.best_model, {"x": x}) - 3 * x
    assert abs(found.best_score - math.sqrt((error**2).mean())) < 1e-6


THIRD = SimpleNamespace(name="third", met=lambda seen: "enough" if len(seen) == 3 else "")
OWN = {"conditions": [THIRD], "score": lambda model: model.manifest.rows_seen, "minimise": False}


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"best_score": 0.9, "score": "auc"}, "best_score"),
        ({"rows": 2500}, "rows"),
        ({"epochs": 3}, "epochs"),
        ({"time": "1ms"}, "time"),
        ({"epochs": 9, "score": lambda model: math.nan if model.version > 3 else 1.0}, "invalid_score"),
        (OWN, "third"),
    ],
)
def test_why_it_ends(settings: dict[str, Any], reason: str) -> None:
    found = trained(columns(1000), **settings)
    assert found.reason == reason and found.details, found
    assert settings is not OWN or (found.details, found.best_score, found.best_epoch) == ("enough", 3000, 3)


def test_rows_that_come_once_end_it() -> None:
    found = trained(iter(dicts(columns(1000))), no_improvement=50)
    assert found.reason == "end_of_rows" and found.details == "1,000 rows are trained"


def test_a_save_that_is_killed_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before, after = whole_fit(1500), whole_fit(500)
    before.save(tmp_path)

    def replace(*names: Any) -> None:
        raise GeneratorExit  # which nobody catches

    with monkeypatch.context() as patch, suppress(GeneratorExit):
        patch.setattr("os.replace", replace)
        after.save(tmp_path)
    assert Fitted.load(tmp_path).digest == before.digest
    after.save(tmp_path)
    assert Fitted.load(tmp_path).digest == after.digest and len(list(tmp_path.iterdir())) == 1


def test_a_missing_number_is_at_the_mean() -> None:
    """It moves no mean, trains its row, and is to the model what the mean would be."""
    given, gone = columns(2_000), np.arange(2_000) % 3 == 0
    there = given["a"][~gone]
    given["a"][gone] = np.nan
    job = {**TABLES, "columns": {**TABLES["columns"], "a": {"standardize": True, "missing": "mean"}}}
    fitted = streamtrain.fit(job, given)
    count, mean = fitted.statistics["standardize.numbers"][0, :2]
    assert (fitted.manifest.rows_seen, count) == (2_000, len(there)) and mean == pytest.approx(there.mean(), abs=1e-3)
    rest = {"b": 0.5, "colour": "red"}
    found = [fitted.predict({**rest, **cells})["prediction"] for cells in ({}, {"a": mean}, {"a": mean + 1})]
    assert found[0] == pytest.approx(found[1], rel=1e-5) and abs(found[2] - found[1]) > 1e-3


@pytest.mark.parametrize("settings", [{}, {"average_optimizer_state": False}, {"batch_growth": 50, "workers": 3}])
def test_it_goes_on_where_another_ended(tmp_path: Path, settings: dict[str, Any]) -> None:
    """Expects the bits of one fit of two passes: its parameters, moments, scores, batch growth and rounds."""
    tables, given = with_train(**settings), columns(1500)
    whole, first = fit(tables, given, epochs=2), fit(tables, given)
    first.save(tmp_path)
    seen: list[int] = []
    for start in (first, str(tmp_path)) if not settings else (str(tmp_path),):
        second = fit(tables, given, start=start, callbacks=[lambda moment: seen.append(moment.round)], every_rounds=4)
        assert same_bits(second, whole) and second.trainer == whole.trainer
        theirs, ours = whole.manifest, second.manifest
        assert (ours.round, ours.rows_seen, ours.metrics["total"]) == (theirs.round, 3000, theirs.metrics["total"])
        (of,) = ours.imported
        assert (of.version, of.digest.hex(), of.lineage) == (first.version, first.digest, first.manifest.lineage)
        assert (ours.counts.trained, second.history[0].rows > 1500, ours.lineage != of.lineage) == (1500, True, True)
    assert all((round + 1) % 4 == 0 or round == ours.round for round in seen) and min(seen) > first.manifest.round


def test_it_goes_on_twice() -> None:
    second = fit(ALONE, columns(200), start=fit(ALONE, columns(100)))
    third = fit(ALONE, columns(300), start=second)
    assert len(third.manifest.imported) == 2 and third.manifest.rows_seen == 600


def test_what_it_cannot_go_on_from(tmp_path: Path) -> None:
    """A followed snapshot has no state of the optimizer: that begins anew."""
    given, first = columns(500), whole_fit(500)
    followed = Snapshot(**{each.name: getattr(first, each.name) for each in fields(Snapshot)})
    second = fit(TABLES, given, start=followed)
    assert second.manifest.rows_seen == 1000 and second.manifest.imported[0].digest.hex() == first.digest
    assert not same_bits(second, first) and not same_bits(second, fit(TABLES, given, start=first))
    skips = {**TABLES, "columns": {**TABLES["columns"], "y": {"role": "label", "missing": "skip"}}}
    with pytest.raises(CheckFailed, match="rows: expected some to train on"):
        fit(skips, {**given, "y": np.full(500, np.nan)}, start=fit(skips, given))
    for tables, text in (
        ({**TABLES, "model": {**TABLES["model"], "layers": [{"dense": 9}]}}, r"model.layers: .*dense = 8.*dense = 9"),
        ({**TABLES, "optimizer": {"name": "sgd"}}, "optimizer.name: snapshot 'adam', job 'sgd'; take the columns"),
        ({**TABLES, "columns": {name: each for name, each in TABLES["columns"].items() if name != "b"}}, "columns.b"),
    ):  # fmt: skip
        with pytest.raises(UserMistake, match=rf"fit: start: snapshot {first.version} of fit does not fit .*{text}"):
            fit(tables, given, start=first)
    for start, text in ((5, "expected a Fitted, .* got int"), (tmp_path / "none", "none: cannot be read")):
        with pytest.raises(UserMistake, match=text):
            fit(TABLES, given, start=start)


UNPICKLE = """
import pickle, sys
fitted, rows = pickle.load(sys.stdin.buffer)
sys.stdout.buffer.write(pickle.dumps((fitted, fitted.predict(rows))))
"""


def test_it_is_pickled_and_copied(tmp_path: Path) -> None:
    """Compares what comes out of another process to the bit: model, trainer state, history, rejected rows."""
    rows = [*dicts(columns(1500)), {**dicts(columns(1))[0], "a": math.inf}]
    fitted = streamtrain.fit(ALONE, rows, max_rejected=0.5)
    given = pickle.dumps((fitted, columns(300, seed=5)))
    command = [sys.executable, "-c", UNPICKLE]
    done = subprocess.run(command, input=given, capture_output=True, check=True, cwd=tmp_path, timeout=300)
    other, answers = pickle.loads(done.stdout)
    for model in (other, copy.deepcopy(fitted)):
        assert model == fitted and same_bits(model, fitted) and model.trainer == fitted.trainer
        assert model.predict(columns(300, seed=5)) == fitted.predict(columns(300, seed=5)) == answers
        assert model.history.rows() == fitted.history.rows() and [*model.rejected] == [*fitted.rejected] != []
        model.save(tmp_path)
        assert Fitted.load(tmp_path) == fitted


@over(
    ("settings", "message"),
    [
        ({}, "expected a condition that ends training: no_improvement, .* got none"),
        ({"no_improvement": 0}, "no_improvement: expected a whole number from 1, got 0"),
        ({"least_improvement": -1}, "least_improvement: expected a number from 0, got -1"),
        ({"epochs": 1, "time": "soon"}, "time: expected a duration .* got 'soon'"),
        ({"epochs": 1, "best_score": math.nan}, "best_score: expected a finite number, got nan"),
        ({"epochs": 1, "best_score": "0.6"}, "best_score: expected a finite number, got '0.6'"),
        ({"epochs": 1, "minimise": "no"}, "minimise: expected True, False or None, got 'no'"),
        ({"epochs": 1, "invalid_score": "no"}, "invalid_score: expected True or False, got 'no'"),
        ({"epochs": 1, "save_to": 3}, "save_to: expected a folder's path, got 3"),
        ({"epochs": 1, "conditions": 3}, r"conditions: expected objects with name and met\(\), got int"),
        ({"epochs": 1, "conditions": [3]}, r"conditions: expected objects with name and met\(\), got int"),
        ({"epochs": 1, "score": "rmse"}, "score: expected one of log_loss, .* or a function of the model, got 'rmse'"),
        ({"epochs": 1, "score": "calibration"}, "score: expected one of .* got 'calibration'"),
        ({"epochs": 1, "held_out": [{"a": "x"}]}, "row 0 at .*expected number"),
        ({"epochs": 1, "held_out": []}, "held_out: expected at least one row, got none"),
        ({"epochs": 1, "held_out": VALIDATION, "score": lambda model: 0}, "held_out: expected none beside a function"),
        ({"epochs": 2, "score": lambda model: math.nan, "invalid_score": False}, "score that is finite, got nan, nan"),
    ],
)
def test_mistakes_of_early_stopping(settings: dict[str, Any], message: str) -> None:
    with pytest.raises((UserMistake, CheckFailed), match=message):
        trained(columns(100), **settings)


def test_what_is_no_early_stopping() -> None:
    with pytest.raises(UserMistake, match="early_stopping: expected an EarlyStopping, got dict"):
        EarlyStoppingTrainer({}, TABLES, columns(10))  # type: ignore[arg-type]


def test_a_pytorch_module_is_scored_as_it_predicts(own_workers: None) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra torch)")

    def net(inputs: Any) -> Any:
        layers = (torch.nn.Linear(inputs.width, 8), torch.nn.BatchNorm1d(8), torch.nn.ReLU(), torch.nn.Dropout(0.5))
        return torch.nn.Sequential(*layers, torch.nn.Linear(8, inputs.outputs))

    stopping = EarlyStopping(no_improvement=2, epochs=20, held_out=VALIDATION)
    found = EarlyStoppingTrainer(stopping, {**TABLES, "model": {}}, columns(2000), module=net).fit()
    assert abs(log_loss(found.best_model) - found.best_score) < 1e-6


def test_early_stopping_of_a_job_file_ends_no_fit() -> None:
    job = with_train(early_stopping={"rows": 1})
    assert same_bits(streamtrain.fit(job, columns(500)), whole_fit(500))
