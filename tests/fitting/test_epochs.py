"""`fit` over its rows several times: each pass goes on from the one before, in the same run."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

import streamtrain
from streamtrain.columns.records import Records
from streamtrain.errors import UserMistake
from streamtrain.fitting.callbacks import Moment
from tests.e2e.harness import LiveJob, rows
from tests.e2e.threaded import rows_after
from tests.fitting.example import TABLES, columns, dicts, same_bits
from tests.fitting.left import workers
from tests.fitting.test_endings import program
from tests.fitting.test_files import written


def test_two_passes_are_a_trainer_started_twice(kafka: Any, tmp_path: Path) -> None:
    job = LiveJob(kafka, tmp_path, partitions=1, format="msgpack", round_interval="off", workers=2)
    given = list(rows(3000))
    records = Records(job.job.schema, "msgpack", job.records, pack=7, most_bytes=100_000)
    for _ in range(2):
        job.produce_values(record.value for block in records.blocks(given, None, False) for record in block)
        assert rows_after(job.path) > 0
    published = next(streamtrain.follow_snapshots(job.name, job.bootstrap))
    fitted = streamtrain.fit(job.job, given, epochs=2)
    assert published.manifest.rows_seen == fitted.manifest.rows_seen == 6000
    assert published.manifest.round == fitted.manifest.round
    assert same_bits(published, fitted)


def test_files_are_read_again(tmp_path: Path) -> None:
    given = columns(2500)
    path = written(tmp_path / "rows.csv", dicts(given))
    fitted = streamtrain.fit(TABLES, files=path, epochs=3)
    assert same_bits(fitted, streamtrain.fit(TABLES, given, epochs=3))
    assert not same_bits(fitted, streamtrain.fit(TABLES, given, epochs=2))
    assert fitted.manifest.rows_seen == 7500


def test_a_worker_that_is_killed_costs_nothing() -> None:
    given = columns(4000)
    died: list[Any] = []

    def kill(moment: Moment) -> None:
        if moment.epoch == 2:
            os.kill(workers()[1], signal.SIGKILL)

    fitted = streamtrain.fit(
        TABLES, given, epochs=5, callbacks=[kill], every_epochs=2, on_event=lambda event: died.append(event.get("how"))
    )
    assert "SIGKILL" in died
    assert same_bits(fitted, streamtrain.fit(TABLES, given, epochs=5))


def test_rows_are_told_by_their_number_in_every_pass(caplog: pytest.LogCaptureFixture) -> None:
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


def test_ctrl_c_ends_it_while_training_waits_to_be_looked_at() -> None:
    running = program(
        "def look(moment):\n"
        "    print('looks', flush=True)\n"
        "    time.sleep(0.3)\n"
        "try:\n"
        "    streamtrain.fit(TABLES, columns(500), epochs=10**6, every_epochs=1, callbacks=[look], progress=True)\n"
        "except KeyboardInterrupt:\n"
        "    from tests.fitting.left import left\n"
        "    time.sleep(0.2)\n"
        "    print(left())\n"
    )
    assert running.stdout is not None and running.stdout.readline() == "looks\n"
    running.send_signal(signal.SIGINT)
    told, wrong = running.communicate(timeout=60)
    assert told.splitlines()[-1] == "[]" and running.returncode == 0, wrong
