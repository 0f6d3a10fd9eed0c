"""The control topic's wire: runs, their ends, the newest snapshot."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamtrain.errors import CheckFailed
from streamtrain.topics import control
from streamtrain.topics.control import Control, Newest, RunEnd, RunEntry
from streamtrain.topics.manifest import Run
from streamtrain.topics.topic import Message

GOLDEN = Path(__file__).parents[1] / "golden" / "control.v2.msgpack"  # the three values, one after the other
RUN = Run(12, "ab" * 16)
ENTRY = RunEntry(RUN, "flights", "host-1", 4711, 1_750_000_000_000, "0.1.0")
END = RunEnd(RUN, 1, "the ceiling of dead letters was passed", 1_750_000_060_000)
NEWEST = Newest(31, bytes(range(32)), "cd" * 16)
MESSAGES = [control.run_message(ENTRY), control.end_message(END), control.newest_message(NEWEST)]
DECODERS = [control.decode_run, control.decode_end, control.decode_newest]


def taken(*messages: Message) -> Control:
    found = Control()
    for message in messages:
        found.take(message.key, None if message.value is None else bytes(message.value))
    return found


def test_golden_bytes() -> None:
    assert [message.key for message in MESSAGES] == [b"run/12", b"end/12", b"newest"]
    assert b"".join(bytes(message.value or b"") for message in MESSAGES) == GOLDEN.read_bytes()


def test_round_trip() -> None:
    found = taken(*MESSAGES)
    assert (found.runs, found.ends, found.newest) == ({12: ENTRY}, {12: END}, NEWEST)


@pytest.mark.parametrize("at", range(3))
def test_every_truncation_is_an_error(at: int) -> None:
    value = bytes(MESSAGES[at].value or b"")
    for length in range(len(value)):
        with pytest.raises(CheckFailed, match=r"run entry|end of a run|newest"):
            DECODERS[at](value[:length])


def test_the_holder_is_the_run_of_the_highest_number_wherever_its_entry_lies() -> None:
    older = control.run_message(RunEntry(Run(2, "cd" * 16), "flights", "host-2", 1, 1, "0.1.0"))
    found = taken(MESSAGES[0], older)
    assert found.holder == ENTRY and sorted(found.runs) == [2, 12]
    assert taken().holder is None


def test_a_tombstone_takes_an_entry_away_and_other_keys_are_passed_over() -> None:
    found = taken(*MESSAGES, *(message._replace(value=None) for message in MESSAGES), Message(b"later", b"x"))
    assert found == Control()


def test_an_entry_under_another_runs_key_is_refused() -> None:
    with pytest.raises(CheckFailed, match=r"run/13: expected the entry of that run, got 12's"):
        taken(MESSAGES[0]._replace(key=b"run/13"))
    with pytest.raises(CheckFailed, match=r"end/x: expected a run's number"):
        taken(MESSAGES[1]._replace(key=b"end/x"))
