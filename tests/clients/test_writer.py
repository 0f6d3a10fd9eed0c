"""RecordWriter on a real Kafka: forms, packing, keys, sizes, failures."""

from __future__ import annotations

import asyncio
import contextlib
import json
import uuid
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from waiting import wait_for

from streamtrain import Job, RecordWriter
from streamtrain.clients.outbox import Outgoing
from streamtrain.clients.topic_reader import read_messages
from streamtrain.columns.record_encoding import BLOCK_ROWS
from streamtrain.errors import KafkaUnreachable, UserMistake
from streamtrain.kafka.settings import Purpose, client_settings
from tests.clients.conftest import LOST, SOON, TEXT, new_job, values


def test_a_dict_is_a_record(job: Job, tmp_path: Path) -> None:
    """Also of requests, and where the job is given as a path."""
    path = tmp_path / "job.toml"
    path.write_text(TEXT.format(name=job.name, bootstrap=job.kafka.bootstrap, key=""))
    with RecordWriter(job) as writer:
        assert writer.write({"x": 1.5, "carrier": "AA", "late": 1}) == 1
        writer.write({"x": np.float32(0.25), "carrier": None, "late": True, "more": "kept"})
    assert (writer.rows_written, writer.records_written) == (2, 2)
    with RecordWriter(path) as writer, RecordWriter(str(path), "requests") as asking:
        writer.write({"x": 2, "late": 0})
        asking.write({"x": 1, "carrier": "AA"})
    assert sorted(values(job), key=lambda row: row["x"]) == [
        {"x": 0.25, "carrier": None, "late": True, "more": "kept"},
        {"x": 1.5, "carrier": "AA", "late": 1},
        {"x": 2, "late": 0},
    ]
    assert values(job, "requests") == [{"x": 1, "carrier": "AA"}]
    for wrong, text in ((tmp_path / "none.toml", "none.toml"), (5, "expected a Job or the path of a job file")):
        with pytest.raises(UserMistake, match=text):
            RecordWriter(wrong)  # type: ignore[arg-type]


def test_rows_given_together_are_packed(job: Job) -> None:
    with RecordWriter(job) as writer:
        assert writer.write({"x": np.arange(600), "carrier": ["AA"] * 600, "late": np.zeros(600, dtype=np.int8)}) == 600
    assert sorted(len(value["x"]) for value in values(job)) == [88, 256, 256]


def test_single_rows_are_gathered_where_a_pack_is_given(job: Job) -> None:
    with RecordWriter(job, pack=4) as writer:
        for number in range(10):
            writer.write({"x": number, "carrier": "AA", "late": 0})
        assert writer.records_written == 2
        writer.flush()
        assert (writer.rows_written, writer.records_written) == (10, 3)
    xs = [value["x"] for value in values(job)]
    assert sorted(xs) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]


def test_rows_in_one_record_have_one_key(kafka: Any) -> None:
    job = new_job(kafka, 'id = { role = "key" }')
    with RecordWriter(job) as writer:
        writer.write([{"id": f"k{i % 3}", "x": i, "carrier": "AA", "late": 0} for i in range(9)])
        writer.write({"id": 7, "x": 9, "carrier": "AA", "late": 0})
    messages = read_messages(job, "records", until_end=True)
    found = {message.key: json.loads(message.value or b"")["x"] for message in messages}
    assert found == {b"k0": [0, 3, 6], b"k1": [1, 4, 7], b"k2": [2, 5, 8], b"7": 9}


def test_a_key_lies_where_javas_producers_put_it(kafka: Any) -> None:
    """murmur2 & 0x7fffffff modulo two partitions, as Kafka's own producers have it."""
    job, keys = new_job(kafka, 'id = { role = "key" }'), [f"k{i}" for i in range(12)]
    with RecordWriter(job) as writer:
        writer.write([{"id": key, "x": 1, "carrier": "AA", "late": 0} for key in keys])
    found = {message.key: message.partition for message in read_messages(job, "records", until_end=True)}
    assert [found[key.encode()] for key in keys] == [1, 1, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0]
    for purpose in Purpose:
        writes = "enable.idempotence" in client_settings(purpose, {})
        assert client_settings(purpose, {}).get("partitioner") == ("murmur2_random" if writes else None), purpose
    assert client_settings(Purpose.WRITE, {"partitioner": "consistent"})["partitioner"] == "consistent", "the user's"


def test_a_record_too_large_is_split_and_a_row_too_large_refused(job: Job) -> None:
    with RecordWriter(job) as writer:
        writer.write({"x": list(range(8)), "carrier": ["a" * 300_000] * 8, "late": [0] * 8})
        assert writer.records_written == 4
        with pytest.raises(UserMistake, match=r"a row of at most 900,000 bytes with its key.*, got 1,000,\d{3}"):
            writer.write({"x": 1, "carrier": "a" * 1_000_000, "late": 0})
    assert sorted(x for value in values(job) for x in value["x"]) == list(range(8))


def test_no_broker_is_said_and_a_delivery_that_failed() -> None:
    row = {"x": 1, "carrier": "AA", "late": 0}
    writer = RecordWriter(Job.parse(LOST))
    writer.write(row)
    text = r"1 records to x\.records not taken by Kafka at 127\.0\.0\.1:1 in 0\.5 s"
    with pytest.raises(KafkaUnreachable, match=text):
        writer.flush(0.5)
    with pytest.raises(KafkaUnreachable, match=r"not taken .* in 0\.2 s"):
        writer.close(0.2)
    failing = RecordWriter(Job.parse(LOST, sets=[SOON]))
    for call in (failing.flush, failing.close):
        failing.write(row)
        with pytest.raises(KafkaUnreachable, match="a record was not delivered"):
            call()
    with pytest.raises(UserMistake, match="got a closed one"):
        failing.write(row)


MISTAKES: tuple[tuple[Any, Any, str], ...] = (
    ("rounds", None, "records or requests"), ("records", 0, "at least 1"), ("records", 65_537, "at most 65,536"),
    ("records", 1.5, "at least 1"),
)  # fmt: skip


def test_mistakes(job: Job) -> None:
    for to, pack, message in MISTAKES:
        with pytest.raises(UserMistake, match=message):
            RecordWriter(job, to, pack=pack)


def test_key_headers_and_timestamp_are_the_calls(kafka: Any) -> None:
    job = new_job(kafka, 'id = { role = "key" }')
    row = {"id": "own", "x": 1, "carrier": "AA", "late": 0}
    with RecordWriter(job) as writer:
        writer.write(row, headers={"a": "é", "b": b"\xff", "c": None}, timestamp_ms=1_700_000_000_123)
        writer.write([row, {**row, "id": "other"}], key=b"given", headers=[("a", "1"), ("a", "2")])
        writer.write({**row, "id": np.int64(7)}, key="text")
    found = {message.key: message for message in read_messages(job, "records", until_end=True)}
    assert found.keys() == {b"own", b"given", b"text"}
    assert found[b"own"].headers == [("a", "é".encode()), ("b", b"\xff"), ("c", None)]
    assert found[b"own"].timestamp_ms == 1_700_000_000_123
    assert found[b"given"].headers == [("a", b"1"), ("a", b"2")]
    assert json.loads(found[b"given"].value or b"")["id"] == ["own", "other"]


CANNOT_GO_ALONG: tuple[tuple[dict[str, Any], str], ...] = (
    ({"key": 5}, "key of text or bytes"), ({"timestamp_ms": 1.5}, "whole milliseconds"),
    ({"timestamp_ms": 0}, "whole milliseconds"), ({"headers": {"a": 1}}, "expected headers"),
    ({"headers": 5}, "expected headers"), ({"headers": ["ab", "abc"]}, "expected headers"),
    ({"timestamp_ms": 2**63}, "write: expected"), ({"headers": {"half": "\ud800"}}, "write: expected"),
    ({"headers": {"a\0b": "x"}}, "write: expected"), ({"headers": [("\udfff", b"")]}, "write: expected"),
    ({"key": "\ud800"}, "write: expected"),
)  # fmt: skip


def test_what_cannot_go_along_is_refused_at_once(job: Job) -> None:
    for pack in (4, None):
        with RecordWriter(job, pack=pack) as writer:
            writer.write({"x": 1})
            for along, text in CANNOT_GO_ALONG:
                with pytest.raises(UserMistake, match=text):
                    writer.write({"x": 2, "late": 0}, **along)
            writer.write({"x": 3})
    written = sorted(x for row in values(job) for x in np.atleast_1d(row["x"]))
    assert written == [1, 1, 3, 3]


def test_rows_with_other_headers_are_gathered_apart(job: Job) -> None:
    with RecordWriter(job, pack=3) as writer:
        for number in range(6):
            writer.write({"x": number, "late": 0}, headers={"half": str(number // 3)})
    found = [(message.headers, json.loads(message.value or b"")["x"]) for message in
             read_messages(job, "records", until_end=True)]  # fmt: skip
    assert sorted(found) == [([("half", b"0")], [0, 1, 2]), ([("half", b"1")], [3, 4, 5])]


def test_times_and_other_types_go_where_the_column_can(kafka: Any) -> None:
    job = new_job(kafka, 'at = { role = "event_time", unit = "ms" }\nid = { role = "key" }')
    moment = datetime(2026, 3, 4, 5, 6, 7, 250_000, tzinfo=UTC)
    ms = 1_772_600_767_250
    others = {"note": object(), "when": moment, "tags": ["a", "b"]}  # the job ignores them
    rows = [
        {"x": Decimal("1.5"), "carrier": b"AA", "late": np.bool_(True), "at": moment, "id": uuid.UUID(int=1), **others},
        {"x": np.float32(1.5), "carrier": "AA", "late": 1, "at": pd.Timestamp(moment), "id": str(uuid.UUID(int=1))},
        {"x": 1.5, "carrier": "AA", "late": True, "at": np.datetime64(ms, "ms"), "id": np.str_(uuid.UUID(int=1))},
    ]
    with RecordWriter(job) as writer:
        writer.write(rows)
        for row in rows:
            writer.write(row)
        frame = pd.DataFrame([{**row, "x": float(row["x"])} for row in rows[1:]])
        frame["at"] = pd.to_datetime(frame["at"], utc=True)
        writer.write(frame)
        frame["at"] = frame["at"].dt.tz_localize(None)
        writer.write(frame)
        mistakes = [{"x": moment}, {"carrier": moment}, {"late": date(2026, 1, 1)}, {"at": timedelta(1)}, {"x": b"1"},
                    {"x": 1j}, {"carrier": b"\xff"}, {"carrier": "\ud800"}, {"x": float("inf")}]  # fmt: skip
        for mistake in mistakes:
            (name,) = mistake
            with pytest.raises(UserMistake, match=rf"^row at \$\.{name}: expected "):
                writer.write({**rows[0], **mistake})
            with pytest.raises(UserMistake, match=rf"^row 2 at \$\.{name}: expected "):
                writer.write([rows[0], rows[1], {**rows[2], **mistake}])
    messages = list(read_messages(job, "records", until_end=True))
    assert {message.key for message in messages} == {str(uuid.UUID(int=1)).encode()} and len(messages) == 6
    for message in messages:
        value = json.loads(message.value or b"")
        assert set(np.atleast_1d(value["at"])) == {ms} and set(np.atleast_1d(value["x"])) == {1.5}
        assert value.keys() == {"x", "carrier", "late", "at", "id"}


def test_frames_iterators_and_nothing(job: Job) -> None:
    arrow = pytest.importorskip("pyarrow", reason="pyarrow comes with the extra data")
    rows = [{"x": number, "carrier": "AA", "late": 0} for number in range(300)]
    with RecordWriter(job) as writer:
        for given in (pd.DataFrame(rows), arrow.Table.from_pylist(rows), (row for row in rows), map(dict, rows), rows):
            assert writer.write(given) == 300
        for nothing in ([], (), iter(()), pd.DataFrame(rows[:0]), {"x": []}, arrow.Table.from_pylist(rows[:0])):
            assert writer.write(nothing) == 0
        assert writer.write({}) == 1
        for wrong in (5, "text", None, b"bytes", [5], iter([{"x": 1}, 5])):
            with pytest.raises(UserMistake, match="expected a dict"):
                writer.write(wrong)
        assert (writer.rows_written, writer.records_written) == (1501, 11)
    assert sum(len(np.atleast_1d(value.get("x", 0))) for value in values(job)) == 1501


def test_many_dicts_are_written_block_by_block_and_a_mistake_says_what_is_written(job: Job) -> None:
    rows = [{"x": number, "late": 0} for number in range(BLOCK_ROWS + 10)]
    with RecordWriter(job, pack=4096) as writer:
        assert writer.write(rows) == len(rows)
        rows[-1] = {"x": object(), "late": 0}
        with pytest.raises(UserMistake, match=r"row 65545 at \$\.x: .*object; the 65,536 rows before its block are"):
            writer.write(iter(rows))
        with pytest.raises(UserMistake, match=r"row 65545 at"):
            writer.write(rows)
        assert writer.rows_written == len(rows) + 2 * BLOCK_ROWS
    assert sum(len(value["x"]) for value in values(job)) == writer.rows_written


def test_awaited_while_the_loop_goes_on(job: Job) -> None:
    async def use() -> None:
        async with RecordWriter(job) as writer:
            written = [asyncio.create_task(writer.awrite({"x": number, "late": 0})) for number in range(50)]
            assert sum(await asyncio.gather(*written)) == 50
            assert await writer.awrite([{"x": 50, "late": 0}], headers={"a": "1"}) == 1
            await writer.aflush()
            with pytest.raises(UserMistake, match=r"row at \$\.x"):
                await writer.awrite({"x": object()})
        for call in (lambda: writer.awrite({"x": 1}), writer.aflush):
            with pytest.raises(UserMistake, match="got a closed one"):
                await call()
        await writer.aclose()
        await lost()

    async def lost() -> None:
        """The queue is full and nobody takes anything: the loop is not blocked meanwhile."""
        full = ["kafka.producer.queue.buffering.max.messages=1", "kafka.producer.message.timeout.ms=1000"]
        writer = RecordWriter(Job.parse(LOST, sets=full))
        await writer.awrite({"x": 1, "late": 0})
        waiting = asyncio.create_task(writer.awrite({"x": 2, "late": 0}))
        await asyncio.sleep(0)
        assert not waiting.done()
        assert await waiting == 1  # the first has failed and made room
        with pytest.raises(KafkaUnreachable, match="2 records were not delivered"):
            await writer.aflush()
        with contextlib.suppress(KafkaUnreachable):
            await writer.aclose(5)

    asyncio.run(use())


def test_deliveries_are_reported(job: Job) -> None:
    deliveries: list[tuple[Any, Any, Any]] = []
    own: list[Any] = []

    def all_of_them(error: Any, message: Any) -> None:
        deliveries.append((error, message.key(), json.loads(message.value())["x"]))
        raise RuntimeError("of the program; logged")

    with RecordWriter(job, on_delivery=all_of_them) as writer:
        writer.write({"x": 1, "late": 0}, key="a")
        writer.write({"x": [2, 3], "late": [0, 0]}, on_delivery=lambda error, message: own.append(message.offset()))
        wait_for(lambda: len(deliveries) == 2 and own)  # without another call
        assert sorted(deliveries, key=str) == [(None, None, [2, 3]), (None, b"a", 1)] and len(own) == 1
    with RecordWriter(job) as writer:  # only some of them
        writer.write({"x": 4, "late": 0})
        writer.write({"x": 5, "late": 0}, on_delivery=lambda error, message: own.append(error))
        writer.flush()
        assert own[1:] == [None] and writer.rows_written == 2
    assert len(values(job)) == 4


def test_reading_until_the_end_stops_where_the_end_was(job: Job) -> None:
    with RecordWriter(job, pack=1) as writer:
        writer.write([{"x": i, "carrier": "AA", "late": 0} for i in range(10)])
        writer.flush()
        messages = read_messages(job, "records", until_end=True)
        xs = [json.loads(next(messages).value or b"")["x"]]
        writer.write([{"x": i, "carrier": "AA", "late": 0} for i in range(10, 2_000)])
        writer.flush()
        xs += [json.loads(message.value or b"")["x"] for message in messages]
    assert sorted(xs) == list(range(10))
    assert len(values(job)) == 2_000


def test_a_record_that_cannot_be_one_holds_up_no_other(job: Job) -> None:
    """Whatever the library refuses it for, where the checks of arguments let it through."""
    with RecordWriter(job) as writer:
        ((record,),) = writer._records.blocks({"x": 1}, None, False, 0)
        writer._outbox.put(Outgoing(record, None, 2**64, None))
        with pytest.raises(UserMistake, match="was not taken"):
            writer.flush()
        writer.write({"x": 2})
    assert [row["x"] for row in values(job)] == [2]


def test_a_closed_writer_does_not_block_the_loop(job: Job) -> None:
    writer = RecordWriter(job)

    async def use() -> None:
        await writer.awrite({"x": 1})
        with writer._lock:  # as close() has it while it waits for Kafka
            writer._outbox.shut = writer._outbox.refusing = True
            late = asyncio.create_task(writer.awrite({"x": 2}))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert not late.done()
        with pytest.raises(UserMistake, match="closed"):
            await late
        writer._outbox.shut = writer._outbox.refusing = False
        await writer.aclose()
        await writer.aclose()
        with pytest.raises(UserMistake, match="closed"):
            await writer.awrite({"x": 3})

    asyncio.run(use())
    assert [row["x"] for row in values(job)] == [1]
