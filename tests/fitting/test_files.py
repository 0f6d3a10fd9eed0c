"""`fit` over files, whose rows give the bits of a topic and of arrays; and several passes over rows."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

import streamtrain
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
        assert job.here("produce", "--input", path, "--pack", "7", "-q").returncode == 0
    assert rows_after(job.path) > 0
    published = next(streamtrain.follow_snapshots(job.name, job.bootstrap))
    fitted = streamtrain.fit(job.job, files=paths)
    assert published.manifest.rows_seen == fitted.manifest.rows_seen == 3000
    assert same_bits(published, fitted)


def test_every_form_gives_the_bits_of_the_rows(tmp_path: Path) -> None:
    import pyarrow.parquet  # slow to import

    given = columns(5000)
    expected = streamtrain.fit(TABLES, given, epochs=2)
    assert expected.manifest.rows_seen == 10_000 and not same_bits(expected, streamtrain.fit(TABLES, given))
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
    fitted = streamtrain.fit(TABLES, given, epochs=4)
    assert caplog.text.count("row 2500 at $.y") == 4 and fitted.manifest.counts.dead == 4


def test_what_is_no_number_of_passes() -> None:
    with pytest.raises(UserMistake, match=r"epochs: expected 1 for an iterator.* got 2; give arrays"):
        streamtrain.fit(TABLES, iter(dicts(columns(10))), epochs=2)
    for name in ("epochs", "every_rounds", "every_epochs"):
        for wrong in (0, 1.5, True):
            with pytest.raises(UserMistake, match=f"{name}: expected a whole number from 1, got {wrong}"):
                streamtrain.fit(TABLES, columns(10), **{name: wrong})  # type: ignore[arg-type]
