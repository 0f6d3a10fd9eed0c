"""A process that was stopped itself does not take its own sleep for the coordinator's silence."""

from __future__ import annotations

import signal
from pathlib import Path

from streamtrain import _native
from tests.chaos.faults import hold
from tests.chaos.trainer import Trainer
from tests.e2e.harness import LiveJob

SECOND = 1_000_000_000


def looks(silence: _native.Silence, beat_s: float, from_s: float, to_s: float, step_s: float) -> bool:
    """Whether the last of the looks from one moment to another finds silence."""
    found = False
    for at in range(int(from_s * 10), int(to_s * 10), int(step_s * 10)):
        found = silence.lasts(int(beat_s * SECOND), at * SECOND // 10)
    return found


def test_silence_is_counted_in_looks() -> None:
    silence = _native.Silence()
    assert not looks(silence, 1, 1, 10, 0.1)
    assert not silence.lasts(1 * SECOND, 500 * SECOND)  # nobody looked between: the looker was stopped
    assert looks(silence, 1, 500, 502, 0.1)
    assert not silence.lasts(502 * SECOND, 502 * SECOND)


def test_silence_begins_with_the_first_beat() -> None:
    assert not looks(_native.Silence(), 0, 1, 100, 0.1)


def test_a_run_that_slept_longer_than_silence_may_last_goes_on(kafka, tmp_path: Path) -> None:
    job = LiveJob(kafka, tmp_path, publish_interval="100ms")
    trainer = Trainer(job, tmp_path / "trainer.log")
    job.produce(500)
    assert trainer.wait("published", rows=500)
    for number in (signal.SIGSTOP, signal.SIGCONT):
        for each in trainer.tree():
            each.send_signal(number)
        hold(12.0 if number == signal.SIGSTOP else 0.0)
    job.produce(500, seed=1)
    assert trainer.wait("published", rows=1000)
    assert trainer.first("restarting") is None, trainer.errors()
    assert trainer.end() == 0
    assert job.verified()["rows"]["trained"] == 1000
