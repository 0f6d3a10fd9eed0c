"""A .proto was read in time quadratic in its length: one of 100,000 fields took five minutes."""

from __future__ import annotations

import time

import pytest

from streamtrain.columns.formats._proto_text import text_messages


def reading_s(fields: int) -> float:
    text = "message Row {\n" + "".join(f"  float x{number} = {number};\n" for number in range(1, fields + 1)) + "}"
    start = time.process_time()
    (row,) = text_messages(text)["messages"]
    assert len(row["fields"]) == fields
    return time.process_time() - start


def test_ten_times_the_fields_take_ten_times_as_long():
    assert min(reading_s(20_000) for _ in range(2)) < 30 * min(reading_s(2_000) for _ in range(3))
