"""A child that dies before it has read its settings: its own words are what the user sees, and its exit code counts."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from streamtrain.run import train as supervisor
from streamtrain.run.train import Interrupts, Supervisor, TrainOptions
from tests.e2e.harness import LiveJob

_PIPE_BYTES = 1 << 20  # as much as a pipe may hold: writing more waits for a reader, or learns that there is none


@pytest.mark.parametrize("settings", ["that fit the pipe", "that do not"])
def test_its_words_and_its_exit_code(
    kafka: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any, settings: str
) -> None:
    dying = tmp_path / "python"
    dying.write_text("#!/bin/sh\nexec <&-\necho 'no memory for this process' >&2\nexit 2\n")
    dying.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(dying))
    if settings == "that do not":
        monkeypatch.setattr(Supervisor, "_ingest_config", lambda self: {"much": "x" * 2 * _PIPE_BYTES})
    code = supervisor.train(LiveJob(kafka, tmp_path).job, TrainOptions(), lambda event: None, Interrupts())
    told = capfd.readouterr().err
    assert code == 2 and "no memory for this process" in told and "Traceback" not in told
