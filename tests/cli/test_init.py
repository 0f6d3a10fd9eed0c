"""A job file from a sample: it passes `check` as it is, and says what was found."""

from __future__ import annotations

import base64
import csv
import itertools
import json
import math
import random
import tomllib
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from pictures import jpeg, noise, png

from streamtrain import _native
from streamtrain.cli.first_job.columns import decide
from streamtrain.cli.first_job.job_file import Columns, Machine, job_text
from streamtrain.cli.first_job.sample import Sample
from streamtrain.files.column_selection import ColumnSelection
from streamtrain.files.file_records import FileRecords
from streamtrain.job import Job
from tests.cli.conftest import Run

MARKS = _native.MISSING_WORDS
ROWS = range(40)
LATE = [at % 2 for at in ROWS]
X = [at * 7 % 11 + 0.5 for at in ROWS]
DAYS = [f"2026-01-{1 + at % 28:02}" for at in ROWS]
NUMBER = {"kind": "number", "standardize": True}
CATEGORY = {"kind": "category", "vocabulary": {"capacity": 16}, "embed": 2}
TIME = {"role": "event_time", "unit": "ms"}
# cells of 41 rows, and the column that they become, or why there is none; where a cell is missing it is the last
SAMPLE: dict[str, tuple[list[Any], Any]] = {
    "delay": ([at * 1.5 for at in ROWS], {**NUMBER, "missing": "mean"}),
    "carrier": (["ABC"[at % 3] for at in ROWS], {**CATEGORY, "missing": ""}),
    "code": ([*(at % 4 for at in ROWS), 1], CATEGORY),
    "empty": ([], "empty in the sample"),
    "id": ([*(f"name{at}" for at in ROWS), "last"], "a row's id"),
    "late": (LATE, {"role": "label", "missing": "skip"}),
    "speed": ([*(at + 0.5 for at in ROWS), 1], NUMBER),
    "walk": ([("walk", "sit")[at % 2] for at in ROWS], {**CATEGORY, "missing": ""}),
    "ticket type": ([f"x{at % 2}" for at in ROWS], {**CATEGORY, "missing": ""}),
    "phone": ([1_700_000_000 + at * 997 % 31 for at in range(41)],
              "whole numbers above 16,777,216, and nearly every row has its own: ids"),
    "zip": ([f"{1007 + at % 9:05}" for at in range(41)], {**CATEGORY, "vocabulary": {"capacity": 32}, "embed": 3}),
    "row": (list(range(5, 46)), "counts the rows"),
    "user_id": ([at * 7919 % 1009 for at in range(41)], "a row's id"),
    "site": (["north"] * 41, "the same in every row of the sample"),
    "version": ([3] * 41, "the same in every row of the sample"),
    "created_at": ([f"{day}T10:00:00+02:00" for day in [*DAYS, DAYS[0]]], TIME),
    "sent": ([*DAYS, DAYS[0]], "a time as text; created_at is the event time"),
    "grade": ([3 + at % 3 for at in ROWS], {**NUMBER, "missing": "mean"}),
}


def written(tmp_path: Path, columns: dict[str, list[Any]]) -> Path:
    path = tmp_path / "sample.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([columns, *itertools.zip_longest(*columns.values())])
    return path


def as_lines(tmp_path: Path, rows: list[dict[str, Any]]) -> Path:
    path = tmp_path / "sample.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    return written(tmp_path, {name: cells for name, (cells, _) in SAMPLE.items()})


def init_job(run: Run, sample: Path, label: str, path: Path) -> tuple[Any, Job]:
    ended = run("init", path, "--from", sample, "--label", label, "--json")
    assert ended.code == 0
    return ended.document, Job.load(path)


def columns_of(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads(path.read_text())["columns"]
    return found


def text_of(rows: list[dict[str, Any]], labels: list[str], machine: Machine | None = None) -> str:
    sample = Sample.of("sample", rows, labels)
    return job_text("job", len(rows), Columns(decide(sample, {}), sample), "localhost:9092", machine)


def test_each_column_has_its_kind_or_a_reason_why_it_is_left_out(run: Run, sample: Path, tmp_path: Path) -> None:
    document, job = init_job(run, sample, "late", tmp_path / "flights.toml")
    assert job.name == "flights" and document["rows_read"] == 41
    text = (tmp_path / "flights.toml").read_text()
    found = {name: f"# {name}: {why}" in text and why for name, (_, why) in SAMPLE.items() if isinstance(why, str)}
    assert {**found, **columns_of(tmp_path / "flights.toml")} == {name: column for name, (_, column) in SAMPLE.items()}
    assert "# id: a row's id; left out" in text


def test_times(run: Run, tmp_path: Path) -> None:
    path, found = tmp_path / "job.toml", {}
    times = {
        "made": [1_700_000_000 + 60 * (at // 3) for at in ROWS],
        "ts": [1_700_000_000_000 + at * 997 % 31 for at in ROWS],
        "when": [f"{day}T10:00:00Z" for day in DAYS],
    }
    for name, cells in times.items():
        init_job(run, written(tmp_path, {"x": X, name: cells, "late": LATE}), "late", path)
        found[name] = columns_of(path)[name]
        path.unlink()
    moments = [datetime.fromisoformat(day).replace(tzinfo=UTC) for day in DAYS]
    pyarrow.parquet.write_table(pyarrow.table({"x": X, "time": moments, "late": LATE}), tmp_path / "sample.parquet")
    init_job(run, tmp_path / "sample.parquet", "late", path)
    found["time"] = columns_of(path)["time"]
    assert found == {**dict.fromkeys((*times, "time"), TIME), "made": {**TIME, "unit": "s"}}


def test_several_labels_become_heads(run: Run, sample: Path, tmp_path: Path) -> None:
    path = tmp_path / "flights.toml"
    labels = [word for label in ("late", "ticket type", "speed") for word in ("--label", label)]
    result = run("init", path, "--from", sample, *labels, "--json")
    assert result.code == 0 and result.document["label"] == "late, ticket type, speed"
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


SIGMOID, SOFTMAX, SQUARED = "binary_cross_entropy", "softmax_cross_entropy", "mean_squared_error"


@pytest.mark.parametrize(
    ("cells", "loss", "settings", "is_guessed"),
    [
        ([*LATE, ""], SIGMOID, {"missing": "skip"}, False),
        ([*["walk", "sit"] * 20, ""], SIGMOID, {"classes": ["sit", "walk"], "missing": "skip"}, False),
        ([*["A", "B", "C", "A"] * 10, ""], SOFTMAX, {"classes": ["A", "B", "C"], "missing": "skip"}, False),
        ([3, 5, 6, 7] * 10, SOFTMAX, {"classes": [3, 5, 6, 7]}, True),
        ([1, 2] * 20, SIGMOID, {"classes": [1, 2]}, True),
        (list(ROWS), SQUARED, {"standardize": True}, False),
        ([1.5, 2.5] * 20, SQUARED, {"standardize": True}, False),
        ([at + 0.5 for at in ROWS], SQUARED, {"standardize": True}, False),
    ],
)
def test_the_label_chooses_the_loss_and_few_whole_numbers_are_classes_which_is_said(
    run: Run, tmp_path: Path, cells: list[Any], loss: str, settings: dict[str, Any], is_guessed: bool
) -> None:
    sample = written(tmp_path, {"x": [*X, 1][: len(cells)], "grade": cells})
    document, job = init_job(run, sample, "grade", tmp_path / "job.toml")
    assert job.model.loss.name == loss and columns_of(tmp_path / "job.toml")["grade"] == {"role": "label", **settings}
    assert ("taken as classes" in document["columns"]["grade"]["reason"]) == is_guessed


@pytest.mark.parametrize(("classes", "units"), [(7, [64, 32]), (15, [64, 32]), (16, [128, 64]), (100, [128, 64])])
def test_the_classes_choose_the_networks_size_and_the_file_says_why(classes: int, units: list[int]) -> None:
    rows = [{"x": at * 7 % 11 + 0.5, "kind": f"k{at % classes}"} for at in range(400)]
    text = text_of(rows, ["kind"])
    assert [layer["dense"] for layer in tomllib.loads(text)["model"]["layers"]] == units
    assert ("Two small layers" in text) == (units == [64, 32])
    assert (f"{classes} classes have to be told apart" in text) == (units == [128, 64])


@pytest.mark.parametrize("label", ["out.late", "out_late"])
def test_fields_of_json_objects_are_columns_with_paths(run: Run, tmp_path: Path, label: str) -> None:
    rows = [
        {"user": {"age": i * 7 % 31 + 0.5, "home": {"a.b": "xyz"[i % 3]}}, "user_age": i * 3 % 7 + 0.5, "more": {},
         "x": i / 3, "on": i % 2 == 0, "name": "ab"[i % 2], "list": [1],
         "odd": {"x": i % 5 + 0.5} if i % 2 else 7, "out": {"late": i % 3 == 0}}
        for i in range(40)
    ]  # fmt: skip
    _, job = init_job(run, as_lines(tmp_path, rows), label, tmp_path / "job.toml")
    assert {name: (column.role, column.path) for name, column in job.schema.columns} == {
        "user_age_": ("feature", "user.age"), "user_home_a.b": ("feature", 'user.home["a.b"]'),
        "user_age": ("feature", None), "odd_x": ("feature", "odd.x"), "out_late": ("label", "out.late"),
        **dict.fromkeys(("x", "on", "name"), ("feature", None)),
    }  # fmt: skip
    kinds = {name: column.kind for name, column in job.schema.columns}
    assert (kinds["x"], kinds["on"], kinds["name"], kinds["out_late"]) == ("number", "category", "category", None)
    assert "# list: a list, of which only single elements can be columns" in (tmp_path / "job.toml").read_text()
    assert dict(job.schema.columns)["odd_x"].missing == "mean"
    selection = ColumnSelection(job.schema)
    first = selection.row(rows[0])
    assert first["user"] == rows[0]["user"] and first["out"] == rows[0]["out"]
    assert selection.row({"user_age_": "5", "out_late": "true"}) == {"user": {"age": 5}, "out": {"late": 1}}


NOTHING_TO_LEARN_FROM = "sample.csv: expected a column to learn late from"


@pytest.mark.parametrize(
    ("columns", "label", "message"),
    [
        ({"x{1}": X, "late": LATE}, "late", NOTHING_TO_LEARN_FROM),
        ({"": X, "late": LATE}, "late", NOTHING_TO_LEARN_FROM),
        ({"x": X, "late": LATE}, "nope", "--label: expected a column of "),
        ({"x": X, "late": [""] * 40}, "late", "--label late: expected numbers or texts in the sample, found neither"),
    ],
)
def test_a_sample_that_makes_no_job_is_what_the_error_speaks_of(
    run: Run, tmp_path: Path, columns: dict[str, list[Any]], label: str, message: str
) -> None:
    ended = run("init", tmp_path / "job.toml", "--from", written(tmp_path, columns), "--label", label)
    assert ended.code == 2 and message in ended.err
    assert "job.toml" not in ended.err and not (tmp_path / "job.toml").exists()


def test_rate_and_workers_are_chosen_by_the_model_and_machine() -> None:
    rows = [{"x": at * 0.5, "late": at % 2} for at in range(40)]
    text = text_of(rows, ["late"])
    assert "learning_rate = 2e-3" in text and "workers = 1 " in text
    wide = [{**{f"x{c}": (at * c) % 7 * 0.5 for c in range(1, 400)}, "late": at % 2} for at in range(40)]
    text = text_of(wide, ["late"], Machine(devices=4))
    assert "learning_rate = 0.004 " in text and "times 4" in text
    assert "workers = 4 " in text and "# a device each" in text
    pairs = [{"x": [[at, 1.0], [at * 7 % 40, 0.5]], "late": at % 2} for at in range(40)]
    text = text_of(pairs, ["late"])
    assert 'name = "adagrad"\nlearning_rate = 0.5 ' in text
    numbers = [{**row, "late": at * 0.7} for at, row in enumerate(pairs)]
    text = text_of(numbers, ["late"])
    assert 'name = "adagrad"\nlearning_rate = 0.2 ' in text
    text = text_of([{**row, "y": 0.5 * at} for at, row in enumerate(pairs)], ["late"])
    assert 'name = "adam"\nlearning_rate = 2e-2 ' in text
    for values, optimizer in ((512, "adam"), (513, "rmsprop")):
        ids = [{"user_id": f"u{at % values}", "late": at % 2} for at in range(2 * values)]
        text = text_of(ids, ["late"])
        found = tomllib.loads(text)["optimizer"]
        assert found["name"] == optimizer and found["groups"]["embedding"]["rate_factor"] == 4
    assert (found["alpha"], found["learning_rate"]) == (0.999, 1e-3) and "# 513 values, each seen seldom" in text


def test_a_file_that_is_there_is_not_written_over(run: Run, sample: Path, tmp_path: Path) -> None:
    path = tmp_path / "job.toml"
    path.write_text("mine")
    ended = run("init", path, "--from", sample, "--label", "late")
    assert ended.code == 2 and "--force" in ended.err and path.read_text() == "mine"
    assert run("init", path, "--from", sample, "--label", "late", "--force").code == 0


def test_the_file_passes_check_and_its_sample_trains(run: Run, kafka: Any, sample: Path, tmp_path: Path) -> None:
    """Also with a time, and whole numbers as classes."""
    path = tmp_path / f"{kafka.fresh_name('init')}.toml"
    labels = ["--label", "late", "--label", "grade"]
    assert run("init", path, "--from", sample, *labels, "-b", kafka.bootstrap).code == 0
    assert columns_of(path)["grade"]["classes"] == [3, 4, 5] and columns_of(path)["created_at"] == TIME
    before = run("check", path, "--json")
    assert before.code == 1 and "streamtrain topics create" in before.out
    assert run("topics", "create", path).code == 0
    assert run("produce", path, "--input", sample).code == 0
    ended = run("check", path, "--json")
    assert ended.code == 0 and ended.document["ok"]
    records = [finding["text"] for finding in ended.document["findings"] if finding["what"] == "records"]
    assert records == ["41 records: 40 trained, 1 filtered"]


def test_texts_of_some_words_are_texts() -> None:
    rows = [{"note": f"gate {i} is closed again", "name": f"name {i}", "late": i % 2} for i in range(40)]
    text = text_of(rows, ["late"], Machine())
    note = tomllib.loads(text)["columns"]["note"]
    assert note["kind"] == "text" and note["ngrams"] == [1, 2] and note["cut"]
    assert "# name: nearly every row has another text" in text
    Job.parse(text)


def test_words_for_what_is_missing_make_no_texts_of_numbers(run: Run, tmp_path: Path) -> None:
    """All of them in one file; of texts each is one."""
    words = {at: mark for at, mark in zip(range(0, 1000, 5), MARKS, strict=False)}
    rows = range(5 * len(MARKS))
    cells = {
        "x": [words.get(at, at * 7 % 11 + 0.5) for at in rows],
        "when": [words.get(at, f"2026-01-{1 + at % 28:02}") for at in rows],
        "word": [words.get(at, "ab"[at % 2]) for at in rows],
        "late": [words.get(at, at % 2) for at in rows],
    }
    path, sample = tmp_path / "job.toml", written(tmp_path, cells)
    _, job = init_job(run, sample, "late", path)
    assert columns_of(path) == {
        "x": {"kind": "number", "standardize": True, "missing": "mean"},
        "when": {"role": "event_time", "unit": "ms", "missing": "skip"},
        "word": {"kind": "category", "vocabulary": {"capacity": 64}, "embed": 5},
        "late": {"role": "label", "missing": "skip"},
    }
    found = job.plan().joined(job.plan().batches(FileRecords(job, [str(sample)])))
    assert (found.count, found.filtered) == (4 * len(MARKS), len(MARKS)) and not found.left_out


CHANCE = random.Random(5)
# texts of a column by a number, the setting that reads them, and what they are
WRITINGS: dict[str, tuple[Callable[[float], str], str, Callable[[float], float]]] = {
    "money": (lambda x: f"{'-' * (x < 0)}${abs(x):,.2f}", "amount", lambda x: round(x, 2)),
    "accounts": (lambda x: f"({-x:,.1f})" if x < 0 else f"{x:,.1f} EUR", "amount", lambda x: round(x, 1)),
    "shares": (lambda x: f"{x:.1f} %", "amount", lambda x: round(x, 1)),
    "commas": (lambda x: f"{x:.2f}".replace(".", ","), "decimal_comma", lambda x: round(x, 2)),
    "german": (lambda x: f"{x:,.2f} €".translate(str.maketrans(",.", ".,")), "decimal_comma", lambda x: round(x, 2)),
}


@pytest.mark.parametrize("delimiter", [",", ";"])
def test_numbers_as_people_write_them(run: Run, tmp_path: Path, delimiter: str) -> None:
    """Each is the number it is, with words for missing ones between; whole thousands beside commas are thousands."""
    numbers = [CHANCE.uniform(-1, 1) * 10 ** CHANCE.randint(0, 6) for _ in range(300)]
    for name, (write, parse, value) in WRITINGS.items():
        texts = [write(number) if at % 7 else CHANCE.choice(MARKS) for at, number in enumerate(numbers)]
        whole = [f"{at * at * 11:,}".replace(",", "." if parse == "decimal_comma" else ",") for at in range(300)]
        path, sample = tmp_path / f"{name}.toml", tmp_path / "sample.csv"
        with sample.open("w", newline="") as file:
            lines = zip(texts, whole, [at % 2 for at in range(300)], strict=True)
            csv.writer(file, delimiter=delimiter).writerows([("x", "whole", "late"), *lines])
        _, job = init_job(run, sample, "late", path)
        assert [columns_of(path)[each].get("parse") for each in ("x", "whole")] == [parse, parse], name
        found = job.plan().joined(job.plan().batches(FileRecords(job, [str(sample)])))
        expected = [value(number) if at % 7 else np.nan for at, number in enumerate(numbers)]
        assert np.array_equal(found["x"], expected, equal_nan=True), name
        assert np.array_equal(found["whole"], np.arange(300) ** 2 * 11), name


def test_texts_that_only_look_like_amounts(run: Run, tmp_path: Path) -> None:
    few = {name: [word.format(100 + at % 7) for at in range(60)] for name, word in {
        "course": "ABC {}", "phone": "555 {} 123", "code": "00{}", "range": "{} - 120", "version": "v{}.1",
        "list": "{},x",
    }.items()}  # fmt: skip
    path = tmp_path / "job.toml"
    _, job = init_job(run, written(tmp_path, {**few, "late": [at % 2 for at in range(60)]}), "late", path)
    assert {name: column.get("parse") for name, column in columns_of(path).items()} == dict.fromkeys([*few, "late"])
    assert {column.kind for _, column in job.schema.columns} == {"category", None}


@pytest.mark.parametrize("words", [("True", "False"), ("true", "false"), ("TRUE", "FALSE")])
def test_true_and_false_are_what_a_program_has(run: Run, tmp_path: Path, words: tuple[str, str]) -> None:
    """Tests such a column as a category and as the label, and whole floats that are ids."""
    flags = [words[at * 7 % 11 % 2] for at in range(200)]
    ids = [f"{3 * (at % 40)}.0" for at in range(200)]
    path, sample = tmp_path / "job.toml", written(tmp_path, {"flag": flags, "user_id": ids, "late": flags[::-1]})
    init_job(run, sample, "late", path)
    assert {name: each.get("parse") for name, each in columns_of(path).items()} == {
        "flag": "bool", "user_id": "number", "late": "bool",
    }  # fmt: skip
    job = Job.load(path)
    rows = [{"flag": flag, "user_id": user, "late": flag} for flag in (words[0], True, "true", 1, "1.0", 1.0)
             for user in ("3.0", 3, "3", 3.0)]  # fmt: skip
    found = job.plan().transform(rows)
    assert [len(set(map(int, found[name]))) for name in ("flag", "user_id", "late")] == [1, 1, 1]
    assert set(found["late"]) == {1}


def pictures(height: int, width: int) -> list[bytes]:
    return [jpeg(noise(height, width, at)) if at % 2 else png(noise(height, width, at)) for at in ROWS]


def clips(rate: int, count: int) -> list[bytes]:
    pytest.importorskip("soundfile")
    from sounds import flac, tone, wav

    waves = [tone(count, seed=seed, rate=rate) for seed in range(2)]
    return [encode(wave, rate) for wave in waves for encode in (wav, flac)] * 10


@pytest.mark.parametrize(
    ("kind", "cells", "settings"),
    [
        ("image", partial(pictures, 4, 6), {"size": [4, 6]}),
        ("image", partial(pictures, 100, 200), {"size": [32, 64]}),
        ("audio", partial(clips, 16000, 4000), {"rate": 16000, "seconds": 0.25, "features": {"mel": 64}}),
        pytest.param("audio", partial(clips, 48000, 480_960), {"rate": 48000, "seconds": 10.0, "features": {"mel": 64}},
                     marks=pytest.mark.full),
        ("audio", partial(clips, 2000, 10), {"rate": 2000, "seconds": 0.025, "features": {"mel": 32}}),
    ],
    ids=["small pictures", "pictures", "sounds", "long sounds", "short sounds"],
)  # fmt: skip
def test_pictures_and_sounds(
    run: Run, tmp_path: Path, kind: str, cells: Callable[[], list[bytes]], settings: dict[str, Any]
) -> None:
    path, as_bytes = tmp_path / "job.toml", [{"it": raw, "late": at % 2} for at, raw in enumerate(cells())]
    rows = [{**row, "it": base64.b64encode(row["it"]).decode()} for row in as_bytes]
    expected = {"kind": kind, **settings, **({"standardize": True} if kind == "audio" else {})}
    init_job(run, as_lines(tmp_path, rows), "late", path)
    assert columns_of(path)["it"] == expected
    if kind == "image":
        assert f"The input matrix has {3 * math.prod(settings['size'])} columns" in path.read_text()
    text = text_of(as_bytes, ["late"])
    assert tomllib.loads(text)["columns"]["it"] == expected
    rows[7]["it"] = f"no {kind} " * 9
    assert f'kind = "{kind}"' not in text_of(rows, ["late"])


def test_a_tag_of_vws_lines_is_said_and_not_learned_from(run: Run, tmp_path: Path) -> None:
    sample = tmp_path / "lines.vw"
    sample.write_text("1 1 'k1|u a:1 |b c\n-1 2 k2|u d |b\n1 |u x:2\n")
    _, job = init_job(run, sample, "label", tmp_path / "lines.toml")
    assert len(job.schema.columns) == 3 and "tag" not in dict(job.schema.columns)
    assert '# or tag = { role = "key", path = "tag" }' in (tmp_path / "lines.toml").read_text()
