"""`train --files`: rows of files trained exactly once, whatever dies, to the bits of the same rows on a topic."""

from __future__ import annotations

import json
import signal
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from streamtrain.checks.replay import replay
from streamtrain.checks.verify import verify
from streamtrain.clients.dead_letters import dead_rows, read_dead_letters
from streamtrain.errors import UserMistake
from streamtrain.files.found import found_files
from tests.e2e.harness import LiveJob, rows
from tests.e2e.test_gaps import delete
from tests.fitting.test_files import written

ROWS = 6000
BAD = (0, 1500, 3999)  # rows of the first file


def files_of(folder: Path, seed: int = 0, count: int = ROWS) -> list[str]:
    """Two files of different forms, with some rows that cannot be used."""
    given = list(rows(count, seed))
    first, second = given[: count * 2 // 3], given[count * 2 // 3 :]
    spoilt = [{**row, "x1": "bad"} if number in BAD else row for number, row in enumerate(first)]
    folder.mkdir(exist_ok=True)
    lines = folder / "b.jsonl"
    lines.write_text("".join(f"{json.dumps(row)}\n" for row in second))
    return [written(folder / "a.csv", spoilt), str(lines)]


def flags(*files: str) -> list[str]:
    return [each for path in files for each in ("--files", path)]


def checked(job: LiveJob, files: Sequence[str], start: int = 1) -> dict[str, Any]:
    """Passes of verify and replay with these files; how many rows became what."""
    found = found_files(files)
    report = verify(job.job, files=found)
    assert report.ok, "\n".join(report.lines())
    assert not [each for check in report.checks for each in check.not_checkable if "--files" in each]
    assert verify(job.job, fast=True, files=found).ok
    again = replay(job.job, start, files=found)
    assert again.ok, "\n".join(again.lines())
    return report.as_dict()["rows"]


@pytest.mark.full
def test_files_and_a_topic_give_the_same_bits(kafka: Any, tmp_path: Path) -> None:
    states = []
    for from_files in (True, False):
        job = LiveJob(kafka, tmp_path, partitions=1, round_interval="off", keep=50)
        files = files_of(tmp_path / "data")
        if from_files:
            events = job.train("--files", str(tmp_path / "data" / "*"))
            assert next(event for event in events if event["event"] == "started")["origin_rows"] == ROWS
            assert checked(job, files) == {"trained": ROWS - len(BAD), "dead_lettered": len(BAD), "filtered": 0}
            letters = [found.letter for found in read_dead_letters(job.job)]
            assert [letter.offset + each.row_from for letter in letters for each in letter.rows] == list(BAD)
            assert [row["x1"] for letter in letters for row in dead_rows(job.job, letter).rows] == ["bad"] * len(BAD)
            (gone,) = dead_rows(job.job, replace(letters[0], value=None)).refused
            assert "its rows are those of a file" in gone
            assert json.loads(job.here("status", "--json").stdout)["lag"] == 0
            assert {letter.topic for letter in letters} == {f"a.csv@{found_files(files)[0].digest}"}
        else:
            done = job.here("produce", *(each for path in files for each in ("--input", path)), "-q")
            assert done.returncode == 0, done.stderr
            job.train("--until-end")
        newest = job.newest()
        states.append((newest.model, newest.trainer, newest.manifest.counts))
    assert states[0] == states[1]


@pytest.mark.full
@pytest.mark.parametrize("failpoint", ["ingest.consumed=3", "ingest.after_slot=99", "coordinator.after_commit=3"])
def test_killed_at_a_failpoint(kafka: Any, tmp_path: Path, failpoint: str) -> None:
    job = LiveJob(kafka, tmp_path, publish_interval="50ms", keep=50)
    files = files_of(tmp_path, count=5 * ROWS)
    events = job.train(*flags(*files), failpoints=failpoint)
    assert "restarting" in [event["event"] for event in events]
    assert checked(job, files)["trained"] == 5 * ROWS - len(BAD)


@pytest.mark.full
def test_a_life_of_files_and_a_topic(kafka: Any, tmp_path: Path) -> None:
    """Killed as a whole and gone on; more files behind them; the topic; other files; and back to the topic."""
    job = LiveJob(kafka, tmp_path, publish_interval="50ms", keep=200)
    files = files_of(tmp_path / "data", count=60_000)
    given = flags(*files)
    assert job.train(*given, "--max-rows", "5003")[-1]["rows"] == 5003
    first, second = job.newest().manifest.positions.partitions
    assert first.row > 0 and first.offset + first.row == 5003 + len(BAD) and second == (0, 0)
    told = job.command("train", "--until-end").stderr
    assert "has read it up to row 5,006 of 40,000" in told and "got no --files" in told
    mended = written(tmp_path / "a.csv", list(rows(7)))
    told = job.command("train", "--files", mended).stderr
    assert f"got {mended} with the digest" in told and found_files(files)[0].digest in told
    running = job.start("train", *given)
    running.wait_rows(9_000)
    running.end(signal.SIGKILL)
    assert job.newest().manifest.rows_seen >= 9_000
    added = written(tmp_path / "c.csv", list(rows(100, 1)))
    events = job.train(*flags(*files, added))
    assert events[-1]["rows"] == 60_100 - len(BAD)
    events = job.train(*flags(*files, added))
    assert events[-1]["rows"] == 60_100 - len(BAD)  # nothing is left to train
    job.produce(500)
    assert job.train("--until-end")[-1]["rows"] == 60_600 - len(BAD)
    assert "has read the file with the digest" in job.command("train", "--files", added).stderr
    other = written(tmp_path / "d.csv", list(rows(50, 2)))
    assert job.train("--files", other)[-1]["rows"] == 60_650 - len(BAD)
    job.produce(10)
    assert job.train("--until-end")[-1]["rows"] == 60_660 - len(BAD)
    assert checked(job, [other, *files, added])["trained"] == 60_660 - len(BAD)
    report = verify(job.job)
    left = [each for check in report.checks for each in check.not_checkable]
    assert report.ok and any("give them with --files" in each for each in left)
    with pytest.raises(UserMistake, match=r"a.csv: expected the file with the digest [0-9a-f]{64}, got .*a.csv with"):
        verify(job.job, files=found_files([mended]))
    with pytest.raises(UserMistake, match=r"a.csv: expected the file with the digest"):
        replay(job.job, 1, files=found_files([mended]))


def test_files_are_checked_and_trained_without_a_topic(kafka: Any, tmp_path: Path) -> None:
    """Each row once though ingest dies."""
    job = LiveJob(kafka, tmp_path, partitions=1, publish_interval="50ms")
    delete(job)
    files = files_of(tmp_path / "data")
    given = flags(*files)

    def found(*arguments: str) -> tuple[int, dict[str, list[dict[str, str]]]]:
        done = job.here("check", "--json", *arguments)
        told: dict[str, list[dict[str, str]]] = {}
        for finding in json.loads(done.stdout)["findings"]:
            told.setdefault(finding["what"], []).append(finding)
        return done.returncode, told

    code, told = found()
    assert code == 1 and f"not there: {job.records}" in told["topics"][0]["text"]
    code, told = found(*given)
    assert code == 0 and f"{job.records} is not there, and files are trained without it" in told["topics"][0]["text"]
    assert told["files"][0]["text"] == f"2 files, {ROWS:,} rows"
    assert "1,000 rows of files: 999 trained, 1 dead" in told["records"][0]["text"]
    assert "x1: expected number" in told["records"][1]["text"]
    events = job.train(*given, "--max-rows", "5003", failpoints="ingest.consumed=3")
    assert "restarting" in [event["event"] for event in events] and events[-1]["rows"] == 5003
    assert checked(job, files)["trained"] == 5003
    code, told = found()
    assert code == 0 and "`check --files` says" in told["snapshot"][0]["text"]
    code, told = found("--files", files[1])
    assert code == 1 and "expected the file" in told["snapshot"][0]["text"] and "digest" in told["snapshot"][0]["text"]
    assert found(*given, "--sample", "0")[0] == 0
