"""The round log's wire: golden bytes, parts, and every disagreement of its columns found."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamtrain.errors import CheckFailed
from streamtrain.topics import rounds
from streamtrain.topics._topic import MESSAGE_BYTES, sha256
from streamtrain.topics.rounds import RANGE_DTYPE, ROUND_DTYPE, SLOT_DTYPE, ClosedBy, RoundLog
from streamtrain.topics.snapshots import Run

GOLDEN = Path(__file__).parents[1] / "golden"


def log(round_count: int = 3, slots_per_round: int = 2, ranges_per_slot: int = 2) -> RoundLog:
    slot_count = round_count * slots_per_round
    made_rounds = np.zeros(round_count, ROUND_DTYPE)
    made_rounds["round"] = np.arange(round_count) + 10
    made_rounds["first_slot"] = np.arange(round_count) * slots_per_round + 100
    made_rounds["slots"], made_rounds["workers"] = slots_per_round, 2
    made_rounds["closed_by"] = ClosedBy.INTERVAL
    slots = np.zeros(slot_count, SLOT_DTYPE)
    slots["slot"] = np.arange(slot_count) + 100
    slots["rows"] = slots["trained"] = 256
    slots["range_count"], slots["loss_sum"], slots["weight_sum"] = ranges_per_slot, 70.5, 256
    ranges = np.zeros(slot_count * ranges_per_slot, RANGE_DTYPE)
    ranges["from_offset"] = np.arange(len(ranges)) * 128
    ranges["to_offset"] = ranges["from_offset"] + 128
    ranges["trained"], ranges["record_rows"] = 128, -1
    return RoundLog("flights", "ab" * 16, Run(2, "cd" * 16), 8, sha256(b"snapshot"), made_rounds, slots, ranges)


def same(one: RoundLog, other: RoundLog) -> bool:
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in ("rounds", "slots", "ranges"))


def test_golden_bytes() -> None:
    (message,) = rounds.messages(log())
    assert message.key == b"8/0"
    assert message.value == (GOLDEN / "rounds.v1.msgpack").read_bytes()


def test_round_trip() -> None:
    (message,) = rounds.messages(log())
    again = rounds.join([rounds.decode(bytes(message.value or b""))])
    assert same(again, log()) and replace(again, rounds=0, slots=0, ranges=0) == replace(
        log(), rounds=0, slots=0, ranges=0
    )  # type: ignore[arg-type]
    assert again.rows_trained == 6 * 256


@pytest.mark.parametrize("shape", [(1, 1, 40_000), (40_000, 1, 1), (1, 50_000, 1), (200, 20, 7)])
def test_a_long_log_is_cut_and_joined(shape: tuple[int, int, int]) -> None:
    whole = log(*shape)
    messages = rounds.messages(whole)
    assert len(messages) > 1 and all(len(message.value or b"") <= MESSAGE_BYTES for message in messages)
    parts = [rounds.decode(bytes(message.value or b"")) for message in messages]
    assert same(rounds.join(parts), whole)
    cut = replace(parts[-1], slots=parts[-1].slots[:0], ranges=parts[-1].ranges[:0])
    for wrong in (parts[:-1], parts[::-1], [*parts[:-1], replace(parts[-1], version=9)], [], [*parts[:-1], cut]):
        with pytest.raises(CheckFailed):
            rounds.join(wrong)


def test_no_round_no_message() -> None:
    assert rounds.messages(log(0)) == ()


def test_columns_that_disagree_are_found() -> None:
    def broken(column: str, field: str, value: int) -> RoundLog:
        made = log()
        getattr(made, column)[field][-1] = value
        return made

    for wrong in (
        broken("rounds", "round", 99), broken("rounds", "slots", 3), broken("rounds", "first_slot", 3),
        broken("slots", "slot", 3), broken("slots", "range_count", 1), replace(log(), ranges=np.zeros(12, "i4")),
    ):  # fmt: skip
        with pytest.raises(CheckFailed):
            rounds.messages(wrong)


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_any_bytes_are_answered(data: st.DataObject) -> None:
    value = bytearray(rounds.messages(log(1, 1, 1))[0].value or b"")
    for _ in range(data.draw(st.integers(1, 4))):
        value[data.draw(st.integers(0, len(value) - 1))] = data.draw(st.integers(0, 255))
    for raw in (bytes(value), bytes(value[: data.draw(st.integers(0, len(value)))]), data.draw(st.binary(max_size=99))):
        try:
            rounds.join([rounds.decode(raw)])
        except CheckFailed as error:
            assert str(error).startswith("round log")
