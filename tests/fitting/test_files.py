"""`fit` over files: the rows of a file and of a topic give the same bits."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

import streamtrain
from streamtrain.cli import main
from streamtrain.errors import CheckFailed, UserMistake
from tests.e2e.harness import LiveJob, rows
from tests.e2e.threaded import rows_after
from tests.fitting.example import TABLES, columns, dicts, same_bits


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
        with pytest.raises(SystemExit) as ended:
            main(["produce", str(job.path), "--input", path, "--pack", "7", "-q"])
        assert ended.value.code == 0
    assert rows_after(job.path) > 0
    published = next(streamtrain.follow_snapshots(job.name, job.bootstrap))
    fitted = streamtrain.fit(job.job, files=paths)
    assert published.manifest.rows_seen == fitted.manifest.rows_seen == 3000
    assert same_bits(published, fitted)


def test_every_form_gives_the_bits_of_the_rows(tmp_path: Path) -> None:
    import pyarrow.parquet  # slow to import

    given = columns(5000)
    expected = streamtrain.fit(TABLES, given)
    table = pyarrow.table(given)
    pyarrow.parquet.write_table(table, tmp_path / "rows.parquet")
    with pyarrow.ipc.new_file(tmp_path / "rows.arrow", table.schema) as file:
        file.write_table(table, max_chunksize=999)
    for path in (written(tmp_path / "rows.csv", dicts(given)), tmp_path / "rows.parquet", [tmp_path / "rows.arrow"]):
        assert same_bits(streamtrain.fit(TABLES, files=path), expected), path


def test_mistakes(tmp_path: Path) -> None:
    path = written(tmp_path / "rows.csv", [{**row, "a": "n/a"} for row in dicts(columns(40))])
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
