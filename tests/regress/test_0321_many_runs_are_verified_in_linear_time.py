"""A job that was started very often is verified as quickly per entry as one that was started twice."""

from __future__ import annotations

import time

import pytest

from streamtrain.checks.verify.runs import read_control
from streamtrain.checks.verify.topics import Topic
from streamtrain.kafka.clients import Message
from streamtrain.topics import control
from streamtrain.topics.control import RunEnd, RunEntry
from streamtrain.topics.manifest import Run
from tests.checks.verify.topics_in_memory import Listed

ENTRIES = 20_000
CPU_S = 10.0  # it takes half a second; when every entry was compared with all others it took hours


def test_twenty_thousand_entries_take_seconds() -> None:
    runs = [Run(number, f"{number:032x}") for number in range(1, ENTRIES // 2 + 1)]
    told = [
        each
        for run in runs
        for each in (
            control.run_message(RunEntry(run, "often", "host", 1, 1, "build")),
            control.end_message(RunEnd(run, 0, "stopped", 2)),
        )
    ]
    messages = [Message(0, at, at, each.key, bytes(each.value or b""), [], 0, "") for at, each in enumerate(told)]
    topic = Topic("often.control", "id", [Listed(0, ENTRIES, messages)])
    begun_s = time.process_time()
    check, found, _ = read_control("often", topic, ENTRIES)
    assert time.process_time() - begun_s < CPU_S
    assert not check.problems and len(found.runs) == len(found.ends) == len(runs)
