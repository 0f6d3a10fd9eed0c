"""The pause between runs, and when there is no other."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from streamtrain.run.back_off import BackOff
from tests.e2e.harness import LiveJob


def after(back_off: BackOff, published: bool = False, lasted_s: float = 1.0, is_error: bool = False) -> float | None:
    return back_off.pause_s(published, lasted_s, is_error)


def test_it_grows_only_from_one_run_that_published_nothing_to_the_next() -> None:
    back_off = BackOff()
    assert [after(back_off, published=True) for _ in range(20)] == [0.2] * 20
    assert [after(back_off) for _ in range(7)] == [0.4, 0.8, 1.6, 3.2, 5.0, 5.0, 5.0]
    assert after(back_off, published=True) == 0.2
    assert [after(back_off), after(back_off, lasted_s=61)] == [0.4, 0.2]


def test_it_ends_after_five_runs_that_published_nothing_and_failed() -> None:
    back_off = BackOff()
    assert None not in [after(back_off, is_error=True) for _ in range(4)]
    assert None not in [after(back_off, published=True, is_error=True), *(after(back_off) for _ in range(9))]
    assert None not in [after(back_off, is_error=True) for _ in range(3)]
    assert after(back_off, is_error=True) is None and back_off.errors == 5


def test_runs_that_published_follow_each_other_at_once(kafka, tmp_path: Path) -> None:
    job = LiveJob(kafka, tmp_path, publish_interval="20ms")
    running = job.start("train")
    for life in range(1, 5):
        running.wait_event("started")
        job.produce(50, seed=life)
        running.wait_event("published", rows=50 * life)
        running.children()[1].kill()
    running.wait_event("started")
    running.process.send_signal(signal.SIGTERM)
    assert running.finish() == 0
    pauses = [event["pause_s"] for event in running.events if event["event"] == "restarting"]
    assert pauses == [0.2] * 4, (pauses, running.errors())


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_a_stop_between_two_runs_is_a_stop(kafka, tmp_path: Path, number: signal.Signals, code: int) -> None:
    job = LiveJob(kafka, tmp_path)
    running = job.start("train")
    running.wait_event("started")
    running.process.send_signal(signal.SIGSTOP)  # so that it meets both at once
    for child in running.children():
        child.kill()
    running.process.send_signal(number)
    running.process.send_signal(signal.SIGCONT)
    assert running.finish() == code
    assert "is trained by the next start" in running.errors(), running.errors()
