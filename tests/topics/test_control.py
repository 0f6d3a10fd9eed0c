"""The run entry's wire."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamtrain.errors import CheckFailed
from streamtrain.topics import control
from streamtrain.topics.control import RunEntry
from streamtrain.topics.snapshots import Run

GOLDEN = Path(__file__).parents[1] / "golden"
ENTRY = RunEntry(Run(12, "ab" * 16), "flights", "host-1", 4711, 1_750_000_000_000, "0.1.0")


def test_golden_bytes() -> None:
    assert control.message(ENTRY) == (b"run", (GOLDEN / "control.v1.msgpack").read_bytes(), ())


def test_round_trip() -> None:
    assert control.decode(control.encode(ENTRY)) == ENTRY


def test_every_truncation_is_an_error() -> None:
    value = control.encode(ENTRY)
    for length in range(len(value)):
        with pytest.raises(CheckFailed, match="run entry"):
            control.decode(value[:length])
