"""A job file from a sample: it passes `check` as it is, and says what was found."""

from __future__ import annotations

import base64
import json
import tomllib
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pictures import jpeg, noise, png

from streamtrain import _native
from streamtrain.cli.infer import Machine, job_text
from streamtrain.files.wanted import Wanted
from streamtrain.job import Job

Run = Callable[..., Any]


SAMPLE = "\n".join(
    ["delay,carrier,code,empty,id,late,speed,walk,ticket type"]
    + [
        f"{i * 1.5},{'ABC'[i % 3]},{i % 4},,name{i},{i % 2},{i + 0.5},{('walk', 'sit')[i % 2]},x{i % 2}"
        for i in range(50)
    ]
    + [",,1,,last,,1,,"]
)


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    path = tmp_path / "sample.csv"
    path.write_text(SAMPLE)
    return path


def made(run: Run, sample: Path, label: str, path: Path) -> tuple[Any, Job]:
    ended = run("init", path, "--from", sample, "--label", label, "--json")
    assert ended.code == 0
    return ended.document, Job.load(path)


def test_kinds_and_sizes(run: Run, sample: Path, tmp_path: Path) -> None:
    document, job = made(run, sample, "late", tmp_path / "flights.toml")
    assert job.name == "flights" and document["rows_read"] == 51
    columns = tomllib.loads((tmp_path / "flights.toml").read_text())["columns"]
    assert columns == {
        "delay": {"kind": "number", "standardize": True, "missing": 0},
        "carrier": {"kind": "category", "buckets": 16, "embed": 2, "missing": ""},
        "code": {"kind": "number", "standardize": True},
        "late": {"role": "label", "missing": "skip"},
        "speed": {"kind": "number", "standardize": True},
        "walk": {"kind": "category", "buckets": 16, "embed": 2, "missing": ""},
        "ticket type": {"kind": "category", "buckets": 16, "embed": 2, "missing": ""},
    }
    text = (tmp_path / "flights.toml").read_text()
    assert "# empty: empty in the sample" in text and "# id: a row's id; left out" in text


def test_several_labels_become_heads(run: Run, sample: Path, tmp_path: Path) -> None:
    path = tmp_path / "flights.toml"
    labels = [word for label in ("late", "ticket type", "speed") for word in ("--label", label)]
    told = run("init", path, "--from", sample, *labels, "--json")
    assert told.code == 0 and told.document["label"] == "late, ticket type, speed"
    job, columns = Job.load(path), tomllib.loads(path.read_text())["columns"]
    assert columns["late"] == {"role": "label", "missing": "skip_head"}
    assert columns["ticket type"] == {"role": "label", "missing": "skip_head", "classes": ["x0", "x1"]}
    assert columns["speed"] == {"role": "label", "standardize": True}  # in every row of the sample
    assert {name: (head.loss.name, head.weight) for name, head in job.model.heads.items()} == {
        "late": ("binary_cross_entropy", 1.0), "ticket type": ("binary_cross_entropy", 1.0),
        "speed": ("mean_squared_error", 1.0),
    }  # fmt: skip
    wrong = run("init", tmp_path / "x.toml", "--from", sample, "--label", "late", "--label", "lat")
    assert wrong.code == 2 and "--label: expected a column of" in wrong.err


@pytest.mark.parametrize(
    ("label", "loss", "settings"),
    [
        ("late", "binary_cross_entropy", {"missing": "skip"}),
        ("walk", "binary_cross_entropy", {"classes": ["sit", "walk"], "missing": "skip"}),
        ("carrier", "softmax_cross_entropy", {"classes": ["A", "B", "C"], "missing": "skip"}),
        ("speed", "mean_squared_error", {"standardize": True}),
    ],
)
def test_the_label_says_the_loss(
    run: Run, sample: Path, tmp_path: Path, label: str, loss: str, settings: dict[str, Any]
) -> None:
    _, job = made(run, sample, label, tmp_path / "job.toml")
    assert job.model.loss.name == loss
    columns = tomllib.loads((tmp_path / "job.toml").read_text())["columns"]
    assert columns[label] == {"role": "label", **settings}


@pytest.mark.parametrize(("classes", "units"), [(7, [64, 32]), (15, [64, 32]), (16, [128, 64]), (100, [128, 64])])
def test_the_classes_choose_the_networks_size_and_the_file_says_why(classes: int, units: list[int]) -> None:
    rows = [{"x": at * 7 % 11 + 0.5, "kind": f"k{at % classes}"} for at in range(400)]
    text, _ = job_text("many", "sample.csv", rows, ["kind"], "localhost:9092")
    assert [layer["dense"] for layer in tomllib.loads(text)["model"]["layers"]] == units
    assert ("Two small layers" in text) == (units == [64, 32])
    assert (f"{classes} classes have to be told apart" in text) == (units == [128, 64])


def test_json_lines(run: Run, tmp_path: Path) -> None:
    sample = tmp_path / "sample.jsonl"
    rows = [{"x": i / 3, "on": i % 2 == 0, "name": "ab"[i % 2], "list": [1], "late": i % 3 == 0} for i in range(30)]
    sample.write_text("".join(json.dumps(row) + "\n" for row in rows))
    _, job = made(run, sample, "late", tmp_path / "job.toml")
    kinds = {name: column.kind for name, column in job.schema.columns}
    assert kinds == {"x": "number", "on": "category", "name": "category", "late": None}
    assert "# list: a list, of which only single elements can be columns" in (tmp_path / "job.toml").read_text()


@pytest.mark.parametrize("label", ["out.late", "out_late"])
def test_fields_of_objects_are_columns_with_paths(run: Run, tmp_path: Path, label: str) -> None:
    sample = tmp_path / "sample.jsonl"
    rows = [
        {"user": {"age": i * 7 % 31 + 0.5, "home": {"a.b": "xyz"[i % 3]}}, "user_age": i * 3 % 7 + 0.5, "more": {},
         "odd": {"x": i % 5 + 0.5} if i % 2 else 7, "out": {"late": i % 3 == 0}}
        for i in range(40)
    ]  # fmt: skip
    sample.write_text("".join(json.dumps(row) + "\n" for row in rows))
    _, job = made(run, sample, label, tmp_path / "job.toml")
    assert {name: (column.role, column.path) for name, column in job.schema.columns} == {
        "user_age_": ("feature", "user.age"), "user_home_a.b": ("feature", 'user.home["a.b"]'),
        "user_age": ("feature", None), "odd_x": ("feature", "odd.x"), "out_late": ("label", "out.late"),
    }  # fmt: skip
    assert dict(job.schema.columns)["odd_x"].missing == 0
    wanted = Wanted(job.schema)
    first = wanted.row(rows[0])
    assert first["user"] == rows[0]["user"] and first["out"] == rows[0]["out"]
    assert wanted.row({"user_age_": "5", "out_late": "true"}) == {"user": {"age": 5}, "out": {"late": 1}}


def columns_of(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads(path.read_text())["columns"]
    return found


def written(tmp_path: Path, columns: dict[str, list[Any]]) -> Path:
    path = tmp_path / "sample.csv"
    lines = [",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True))]
    path.write_text("\n".join(lines) + "\n")
    return path


LATE = [at % 2 for at in range(40)]
MARKS = _native.MISSING_MARKS
X = [at * 7 % 11 + 0.5 for at in range(40)]


@pytest.mark.parametrize(
    ("name", "cells", "line"),
    [
        ("made", [1_700_000_000 + 60 * (at // 3) for at in range(40)], {"role": "event_time", "unit": "s"}),
        ("ts", [1_700_000_000_000 + at * 997 % 31 for at in range(40)], {"role": "event_time", "unit": "ms"}),
        ("when", [f"2026-01-{1 + at % 28:02}T10:00:00Z" for at in range(40)], {"role": "event_time", "unit": "ms"}),
        ("day", [f"2026-01-{1 + at % 28:02}" for at in range(40)], {"role": "event_time", "unit": "ms"}),
        ("phone", [1_700_000_000 + at * 997 % 31 for at in range(40)], {"kind": "number", "standardize": True}),
        ("zip", [f"{1007 + at % 9:05}" for at in range(40)], {"kind": "category", "buckets": 32, "embed": 3}),
    ],
)
def test_times_and_codes(
    run: Run, tmp_path: Path, name: str, cells: list[Any], line: dict[str, Any]
) -> None:
    sample = written(tmp_path, {"x": X, name: cells, "late": LATE})
    made(run, sample, "late", tmp_path / "job.toml")
    assert columns_of(tmp_path / "job.toml")[name] == line


@pytest.mark.parametrize(
    ("name", "cells", "why"),
    [
        ("row", list(range(5, 45)), "counts the rows"),
        ("user_id", [at * 7919 % 1009 for at in range(40)], "a row's id"),
        ("site", ["north"] * 40, "the same in every row of the sample"),
        ("version", [3] * 40, "the same in every row of the sample"),
    ],
)
def test_what_nothing_can_be_learned_from_is_left_out(
    run: Run, tmp_path: Path, name: str, cells: list[Any], why: str
) -> None:
    sample = written(tmp_path, {"x": X, name: cells, "late": LATE})
    made(run, sample, "late", tmp_path / "job.toml")
    assert name not in columns_of(tmp_path / "job.toml")
    assert f"# {name}: {why}; left out" in (tmp_path / "job.toml").read_text()


def test_a_second_time_is_left_out(run: Run, tmp_path: Path) -> None:
    days = [f"2026-01-{1 + at % 28:02}" for at in range(40)]
    made(run, written(tmp_path, {"x": X, "made": days, "sent": days, "late": LATE}), "late", tmp_path / "job.toml")
    assert "# sent: a time as text; made is the event time; left out" in (tmp_path / "job.toml").read_text()


@pytest.mark.parametrize(
    ("labels", "loss", "settings"),
    [
        ([3, 5, 6, 7], "softmax_cross_entropy", {"classes": ["3", "5", "6", "7"]}),
        ([1, 2], "binary_cross_entropy", {"classes": ["1", "2"]}),
        (list(range(40)), "mean_squared_error", {"standardize": True}),
        ([1.5, 2.5], "mean_squared_error", {"standardize": True}),
    ],
)
def test_few_whole_numbers_are_taken_for_classes_and_that_is_said(
    run: Run, tmp_path: Path, labels: list[Any], loss: str, settings: dict[str, Any]
) -> None:
    sample = written(tmp_path, {"x": X, "grade": [labels[at % len(labels)] for at in range(40)]})
    document, job = made(run, sample, "grade", tmp_path / "job.toml")
    assert job.model.loss.name == loss and columns_of(tmp_path / "job.toml")["grade"] == {"role": "label", **settings}
    assert len(document["notes"]) == ("classes" in settings)


def test_times_and_whole_classes_train_as_they_are_produced(run: Run, kafka: Any, tmp_path: Path) -> None:
    days = [f"2026-01-{1 + at % 28:02}T10:00:00+02:00" for at in range(40)]
    sample = written(tmp_path, {"x": X, "made": days, "grade": [3 + at % 3 for at in range(40)]})
    path = tmp_path / f"{kafka.fresh_name('init')}.toml"
    assert run("init", path, "--from", sample, "--label", "grade", "-b", kafka.bootstrap).code == 0
    assert run("topics", "create", path).code == 0 and run("produce", path, "--input", sample).code == 0
    findings = run("check", path, "--json").document["findings"]
    assert [found["text"] for found in findings if found["what"] == "records"] == ["40 records: 40 trained"]


def test_parquet_timestamps_are_the_event_time(run: Run, tmp_path: Path) -> None:
    import pyarrow
    import pyarrow.parquet

    moments = [datetime(2026, 1, 1 + at % 28, tzinfo=UTC) for at in range(40)]
    pyarrow.parquet.write_table(pyarrow.table({"x": X, "made": moments, "late": LATE}), tmp_path / "sample.parquet")
    made(run, tmp_path / "sample.parquet", "late", tmp_path / "job.toml")
    assert columns_of(tmp_path / "job.toml")["made"] == {"role": "event_time", "unit": "ms"}


@pytest.mark.parametrize("names", [["x{1}", "late"], ["", "late"]])
def test_a_sample_that_makes_no_job_is_what_the_error_speaks_of(run: Run, tmp_path: Path, names: list[str]) -> None:
    sample = written(tmp_path, dict(zip(names, [X, LATE], strict=True)))
    ended = run("init", tmp_path / "job.toml", "--from", sample, "--label", "late")
    assert ended.code == 2 and f"{sample}: expected a column to learn late from" in ended.err
    assert "job.toml" not in ended.err and not (tmp_path / "job.toml").exists()


def test_rate_and_workers_are_chosen_by_the_model_and_machine() -> None:
    rows = [{"x": at * 0.5, "late": at % 2} for at in range(40)]
    text, _ = job_text("job", "sample.csv", rows, ["late"], "localhost:9092")
    assert "learning_rate = 2e-3" in text and "workers = 1 " in text
    wide = [{**{f"x{c}": (at * c) % 7 * 0.5 for c in range(1, 400)}, "late": at % 2} for at in range(40)]
    text, _ = job_text("job", "sample.csv", wide, ["late"], "localhost:9092", Machine(devices=4))
    assert "learning_rate = 0.004 " in text and "times 4" in text
    assert "workers = 4 " in text and "# a device each" in text
    pairs = [{"x": [[at, 1.0], [at * 7 % 40, 0.5]], "late": at % 2} for at in range(40)]
    text, _ = job_text("job", "sample.jsonl", pairs, ["late"], "localhost:9092")
    assert 'name = "adagrad"\nlearning_rate = 0.5 ' in text
    numbers = [{**row, "late": at * 0.7} for at, row in enumerate(pairs)]
    text, _ = job_text("job", "sample.jsonl", numbers, ["late"], "localhost:9092")
    assert 'name = "adagrad"\nlearning_rate = 0.2 ' in text
    text, _ = job_text("job", "sample.jsonl", [{**row, "y": 0.5 * at} for at, row in enumerate(pairs)], ["late"], "")
    assert 'name = "adam"\nlearning_rate = 2e-2 ' in text


@pytest.mark.parametrize(
    ("label", "message"),
    [
        ("nope", "--label: expected a column of "),
        ("empty", "--label empty: expected numbers or texts in the sample, found neither"),
    ],
)
def test_label_mistakes(run: Run, sample: Path, tmp_path: Path, label: str, message: str) -> None:
    ended = run("init", tmp_path / "job.toml", "--from", sample, "--label", label)
    assert ended.code == 2 and message in ended.err and not (tmp_path / "job.toml").exists()


def test_a_file_that_is_there_is_not_written_over(run: Run, sample: Path, tmp_path: Path) -> None:
    path = tmp_path / "job.toml"
    path.write_text("mine")
    ended = run("init", path, "--from", sample, "--label", "late")
    assert ended.code == 2 and "--force" in ended.err and path.read_text() == "mine"
    assert run("init", path, "--from", sample, "--label", "late", "--force").code == 0


def test_the_file_passes_check_and_its_sample_trains(run: Run, kafka: Any, sample: Path, tmp_path: Path) -> None:
    path = tmp_path / f"{kafka.fresh_name('init')}.toml"
    assert run("init", path, "--from", sample, "--label", "late", "-b", kafka.bootstrap).code == 0
    before = run("check", path, "--json")
    assert before.code == 1 and "streamtrain topics create" in before.out
    assert run("topics", "create", path).code == 0
    assert run("produce", path, "--input", sample).code == 0
    ended = run("check", path, "--json")
    assert ended.code == 0 and ended.document["ok"]
    (records,) = [finding for finding in ended.document["findings"] if finding["what"] == "records"]
    assert records["text"] == "51 records: 50 trained, 1 filtered"


def test_texts_of_some_words_are_texts() -> None:
    rows = [{"note": f"gate {i} is closed again", "name": f"name {i}", "late": i % 2} for i in range(40)]
    text, _ = job_text("notes", "notes.jsonl", rows, ["late"], "localhost:9092", Machine())
    told = tomllib.loads(text)["columns"]["note"]
    assert told["kind"] == "text" and told["ngrams"] == [1, 2] and told["cut"]
    assert "# name: nearly every row has another text" in text
    Job.parse(text)


@pytest.mark.parametrize("mark", MARKS)
def test_marks_of_what_is_missing_make_no_texts_of_numbers(run: Run, tmp_path: Path, mark: str) -> None:
    cells = {
        "x": [mark if at % 5 == 0 else at * 7 % 11 + 0.5 for at in range(40)],
        "when": [mark if at % 5 == 0 else f"2026-01-{1 + at % 28:02}" for at in range(40)],
        "word": [mark if at % 5 == 0 else "ab"[at % 2] for at in range(40)],
        "late": [mark if at % 5 == 0 else at % 2 for at in range(40)],
    }
    path = tmp_path / "job.toml"
    _, job = made(run, written(tmp_path, cells), "late", path)
    assert columns_of(path) == {
        "x": {"kind": "number", "standardize": True, "missing": 0},
        "when": {"role": "event_time", "unit": "ms", "missing": "skip"},
        "word": {"kind": "category", "buckets": 16, "embed": 2},
        "late": {"role": "label", "missing": "skip"},
    }
    row = Wanted(job.schema).row({name: str(column[0]) for name, column in cells.items()})
    assert row == {"x": None, "when": None, "word": mark, "late": None}


@pytest.mark.parametrize(("height", "width", "size"), [(4, 6, [4, 6]), (100, 200, [32, 64])])
def test_pictures(run: Run, tmp_path: Path, height: int, width: int, size: list[int]) -> None:
    made_ones = [jpeg(noise(height, width, at)) if at % 2 else png(noise(height, width, at)) for at in range(40)]
    texts = [base64.b64encode(each).decode() for each in made_ones]
    path, rows = tmp_path / "job.toml", [{"photo": text, "late": at % 2} for at, text in enumerate(texts)]
    (tmp_path / "sample.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    made(run, tmp_path / "sample.jsonl", "late", path)
    assert columns_of(path)["photo"] == {"kind": "image", "size": size}
    assert f"The input matrix has {3 * size[0] * size[1]} columns" in path.read_text()
    as_bytes = [{"photo": raw, "late": at % 2} for at, raw in enumerate(made_ones)]
    text, _ = job_text("p", "sample", as_bytes, ["late"], "k:1")
    assert tomllib.loads(text)["columns"]["photo"] == {"kind": "image", "size": size}
    broken = [{**row, "photo": "no picture " * 9} if at == 7 else row for at, row in enumerate(rows)]
    assert 'kind = "image"' not in job_text("p", "sample", broken, ["late"], "k:1")[0]


@pytest.mark.parametrize(
    ("rate", "count", "settings"),
    [
        (16000, 4000, {"seconds": 0.25, "features": {"mel": 64}}),
        pytest.param(48000, 480_960, {"seconds": 10.0, "features": {"mel": 64}}, marks=pytest.mark.full),
        (2000, 10, {"seconds": 0.025, "features": {"mel": 32}}),
    ],
)
def test_sound(run: Run, tmp_path: Path, rate: int, count: int, settings: dict[str, Any]) -> None:
    pytest.importorskip("soundfile")
    from sounds import flac, tone, wav

    waves = [tone(count, seed=seed, rate=rate) for seed in range(2)]
    cells = [encode(wave, rate) for wave in waves for encode in (wav, flac)] * 10
    path, texts = tmp_path / "job.toml", [base64.b64encode(cell).decode() for cell in cells]
    rows = [{"clip": text, "late": at % 2} for at, text in enumerate(texts)]
    (tmp_path / "sample.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    made(run, tmp_path / "sample.jsonl", "late", path)
    assert columns_of(path)["clip"] == {"kind": "audio", "rate": rate, **settings, "standardize": True}
    broken = [{**row, "clip": "no clip " * 9} if at == 7 else row for at, row in enumerate(rows)]
    assert 'kind = "audio"' not in job_text("p", "sample", broken, ["late"], "k:1")[0]


def test_a_tag_of_vws_lines_is_said_and_not_learned_from(run: Run, tmp_path: Path) -> None:
    sample = tmp_path / "lines.vw"
    sample.write_text("1 1 'k1|u a:1 |b c\n-1 2 k2|u d |b\n1 |u x:2\n")
    _, job = made(run, sample, "label", tmp_path / "lines.toml")
    assert len(job.schema.columns) == 3 and "tag" not in dict(job.schema.columns)
    assert '# tag = { role = "key", path = "tag" }' in (tmp_path / "lines.toml").read_text()
