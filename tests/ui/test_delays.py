"""How long predictions take, from the time stamps on two topics."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from waiting import wait_for

from streamtrain.kafka.admin import Admin
from streamtrain.topics import predictions
from streamtrain.ui import charts, delays
from streamtrain.ui.delays import Delays
from tests.e2e.harness import LiveJob


def test_figures_of_a_sample() -> None:
    assert delays.figures([]) == {}
    found = delays.figures([*range(100), 5000])
    assert found["prediction_delay.median_ms"] == 50 and found["prediction_delay.p99_ms"] == 99
    assert [line.label for line in charts.REGISTRY.get("delay").lines(found)] == ["median", "99 %"]


def test_only_the_newest_requests_that_are_there_are_read() -> None:
    answered = {(0, 5): 1, (0, 900): 2, (0, 910): 3, (1, 7): 4, (2, 3): 5, (9, 0): 6}
    there = {0: (0, 905), 1: (0, 100), 2: (4, 100)}  # of partition 2 it is gone, 9 there is none
    assert delays.around(answered, there) == {0: (901 - delays._NEWEST, 901), 1: (7, 8)}


def test_on_kafka(kafka: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delays, "EVERY_S", 0.0)
    job = LiveJob(kafka, tmp_path)
    admin = Admin(kafka.bootstrap)
    asked, answered = str(job.job.topic("requests").name), str(job.job.topic("predictions").name)
    sampled = Delays(job.job, admin)

    def look() -> dict[str, float]:
        return sampled.look([end for _, end in admin.spans(answered) or ()])

    assert look() == {}
    before_ms = int(time.time() * 1000)
    ages_ms = [60_000] * 10 + [7_000] * 90
    job.produce_messages(({"value": b"{}", "partition": 0, "timestamp": before_ms - age} for age in ages_ms), asked)
    places = [[(predictions.PARTITION_HEADER, b"0"), (predictions.OFFSET_HEADER, b"%d" % at)] for at in range(100)]
    places[70] = []
    places += [[(predictions.PARTITION_HEADER, b"x"), (predictions.OFFSET_HEADER, b"1")], []]
    job.produce_messages(({"value": b"anything", "partition": 0, "headers": place} for place in places), answered)
    found = wait_for(look)
    took_ms = time.time() * 1000 - before_ms
    # the oldest are left out: it is a sample of the newest
    assert 7_000 <= found["prediction_delay.median_ms"] <= found["prediction_delay.p99_ms"] <= 7_000 + took_ms
    assert look() == {}  # nothing new
