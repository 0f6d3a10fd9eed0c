"""A job file from a sample: it passes `check` as it is, and says what was found."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

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
    assert "# empty: empty in the sample" in text and "# id: nearly every row has another text" in text


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
    assert job.model.loss == loss
    columns = tomllib.loads((tmp_path / "job.toml").read_text())["columns"]
    assert columns[label] == {"role": "label", **settings}


def test_json_lines(run: Run, tmp_path: Path) -> None:
    sample = tmp_path / "sample.jsonl"
    rows = [{"x": i / 3, "on": i % 2 == 0, "name": "ab"[i % 2], "list": [1], "late": i % 3 == 0} for i in range(30)]
    sample.write_text("".join(json.dumps(row) + "\n" for row in rows))
    _, job = made(run, sample, "late", tmp_path / "job.toml")
    kinds = {name: column.kind for name, column in job.schema.columns}
    assert kinds == {"x": "number", "on": "category", "name": "category", "late": None}
    assert "# list: not a number or a text" in (tmp_path / "job.toml").read_text()


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
