"""A verifier written apart from the product: confluent_kafka, msgpack and NumPy alone read what the topics hold.

It shares no line with streamtrain, so that a mistake in a wire or a decoder cannot hide from both.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgpack
import numpy as np
from confluent_kafka import Consumer, KafkaError, TopicPartition

RANGE = np.dtype(
    [("from_offset", "<i8"), ("to_offset", "<i8"), ("from_row", "<i4"), ("to_row", "<i4"), ("partition", "<i4"),
     ("record_rows", "<i4"), ("trained", "<u4"), ("dead", "<u4"), ("filtered", "<u4"), ("tombstones", "<u4"),
     ("records", "<u4"), ("reserved", "V12")]
)  # fmt: skip
ROUND = np.dtype([("round", "<i8"), ("first_slot", "<i8"), ("slots", "<u4"), ("rest", "V20")])
SLOT = np.dtype(
    [("slot", "<i8"), ("rows", "<u4"), ("trained", "<u4"), ("dead", "<u4"), ("filtered", "<u4"), ("tombstones", "<u4"),
     ("range_count", "<u4"), ("loss_sum", "<f8"), ("weight_sum", "<f8"), ("rejected", "u1"), ("rest", "V7")]
)  # fmt: skip
KINDS = ("trained", "dead", "filtered", "tombstones")
Outcome = list[str]  # of a record: what each of its rows must become


class Read(NamedTuple):
    offset: int
    key: bytes | None
    value: bytes | None


@dataclass(frozen=True)
class Witness:
    """Looks at one job of which everything is still in its topics."""

    bootstrap: str
    job: str
    records: str
    partitions: int

    def read(self, topic: str, partition: int = 0) -> Iterator[Read]:
        """Yields every committed message of the partition."""
        consumer = Consumer({
            "bootstrap.servers": self.bootstrap, "group.id": "witness", "enable.auto.commit": False,
            "isolation.level": "read_committed", "enable.partition.eof": True, "auto.offset.reset": "earliest",
        })  # fmt: skip
        with closing(consumer):
            consumer.assign([TopicPartition(topic, partition, 0)])
            while True:
                message = consumer.poll(60)
                assert message is not None, f"{topic}: no answer"
                if message.error() is None:
                    yield Read(message.offset(), message.key(), message.value())  # type: ignore[arg-type]
                elif message.error().code() == KafkaError._PARTITION_EOF:
                    return

    def last_records(self) -> list[int]:
        """The offset of the last committed record, -1 where there is none, per partition."""
        return [max((read.offset for read in self.read(self.records, p)), default=-1) for p in range(self.partitions)]

    def check(self) -> dict[str, int]:
        """AssertionError names what does not hold; else the rows by what became of them."""
        manifests = self._manifests()
        logs = self._logs()
        lineage = manifests[-1]["lineage"]
        manifests = [manifest for manifest in manifests if manifest["lineage"] == lineage]
        assert [log["version"] for log in logs] == [m["version"] for m in manifests[1:]], (
            "each snapshot after a lineage's first has one round log"
        )
        places = {p: tuple(at) for p, at in enumerate(manifests[0]["positions"]["partitions"])}
        totals: Counter[str] = Counter()
        outcomes = [
            {each.offset: outcome(each.value) for each in self.read(self.records, p)} for p in range(self.partitions)
        ]
        round_, chain = manifests[0]["round"], hashlib.sha256(lineage.encode()).digest()
        assert manifests[0]["chain"] == chain and not any(manifests[0]["counts"].values())
        for manifest, log in zip(manifests[1:], logs, strict=True):
            assert log["lineage"] == lineage and log["digest"] == manifest["digest"]
            assert log["run"] == manifest["run"]
            round_ = _rounds(log, round_)
            for part in log["ranges"]:
                totals += _range(part, places, outcomes[int(part["partition"])])
            chain = hashlib.sha256(chain + _log_digest(log)).digest()
            assert manifest["chain"] == chain and manifest["counts"] == {kind: totals[kind] for kind in KINDS}
            assert manifest["round"] == round_
            assert manifest["rows_seen"] == totals["trained"], (manifest["version"], manifest["rows_seen"], totals)
            assert [places[p] for p in sorted(places)] == [tuple(at) for at in manifest["positions"]["partitions"]]
        for p, known in enumerate(outcomes):
            assert places[p][0] > max(known, default=-1) and places[p][1] == 0, (p, places[p], max(known, default=-1))
        expected = Counter(kind for known in outcomes for rows in known.values() for kind in rows)
        assert {kind: totals[kind] for kind in KINDS} == {kind: expected[kind] for kind in KINDS}
        counts = {kind: totals[kind] for kind in KINDS}
        return {**counts, "versions": len(manifests), "runs": manifests[-1]["run"]["number"]}

    def _manifests(self) -> list[dict[str, Any]]:
        """Whole snapshots in the order they were committed; versions only go up, parents are named, nothing is NaN."""
        found: list[dict[str, Any]] = []
        chunks: dict[bytes, bytes] = {}
        for read in self.read(f"{self.job}.snapshots"):
            assert read.key is not None
            if not read.key.endswith(b"/m"):
                if read.value is not None:
                    chunks[read.key] = read.value
                continue
            if read.value is None:
                continue
            manifest = msgpack.unpackb(read.value)
            manifest["digest"] = hashlib.sha256(read.value).digest()
            for kind, payload in (("c", manifest["model"]), ("t", manifest["trainer"])):
                _payload(manifest["shelf"], kind, payload, chunks)
            if found:
                last = found[-1]
                assert manifest["version"] == last["version"] + 1, (last["version"], manifest["version"])
                assert manifest["parent"]["digest"] == last["digest"]
                assert manifest["run"]["number"] >= last["run"]["number"]
            found.append(manifest)
        assert found, "no snapshot"
        return found

    def _logs(self) -> list[dict[str, Any]]:
        logs: list[dict[str, Any]] = []
        for read in self.read(f"{self.job}.rounds"):
            assert read.value is not None
            part = msgpack.unpackb(read.value)
            columns = {name: np.frombuffer(part[name], kind) for name, kind in _COLUMNS.items()}
            if part["part"] == 0:
                logs.append({**part, **columns})
            else:
                assert _head(logs[-1]) == _head(part)
                for name in _COLUMNS:
                    logs[-1][name] = np.concatenate([logs[-1][name], columns[name]])
        return logs


_COLUMNS = {"rounds": ROUND, "slots": SLOT, "ranges": RANGE, "schemas": np.dtype("u1")}


def outcome(value: bytes | None) -> Outcome:
    """Returns what the job of tests/e2e/harness.py must make of each row of a record of tests/chaos/chaos.py."""
    if value is None:
        return ["tombstones"]
    unpacker = msgpack.Unpacker(raw=True)
    unpacker.feed(value)
    try:
        many = value[0] & 0xF0 == 0x90 or value[0] in (0xDC, 0xDD)
        count = unpacker.read_array_header() if many else 1
    except ValueError:
        return ["dead"]
    rows: Outcome = []
    for _ in range(count):
        try:
            row = unpacker.unpack()
        except (ValueError, msgpack.OutOfData):
            return [*rows, "dead"]  # the remainder is one row
        numbers = all(isinstance(row.get(f"x{i}".encode()), float) for i in range(1, 5))
        rows.append("dead" if not numbers else "trained" if b"y" in row else "filtered")
    return rows


def _head(part: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in part.items() if key not in ("digest", "part", "parts", *_COLUMNS)}


def _log_digest(log: dict[str, Any]) -> bytes:
    """Returns a digest of everything but the snapshot's digest and how the log was cut."""
    hashed = hashlib.sha256(msgpack.packb(_head(log)))
    for name in _COLUMNS:
        raw = log[name].tobytes()
        hashed.update(len(raw).to_bytes(8, "little") + raw)
    return hashed.digest()


def _rounds(log: dict[str, Any], last: int) -> int:
    numbers = log["rounds"]["round"]
    assert np.array_equal(numbers, np.arange(last + 1, last + 1 + len(numbers))), (last, numbers)
    assert int(log["rounds"]["slots"].sum()) == len(log["slots"])
    assert int(log["slots"]["range_count"].sum()) == len(log["ranges"])
    assert np.isfinite(log["slots"]["loss_sum"]).all()
    assert not log["slots"]["rejected"].any() and not log["schemas"].size
    return int(numbers[-1])


def _range(part: Any, places: dict[int, tuple[int, int]], outcomes: dict[int, Outcome]) -> Counter[str]:
    """Moves the partition's place over the range; its counts must be those of the rows in it."""
    p = int(part["partition"])
    begin, end = (int(part["from_offset"]), int(part["from_row"])), (int(part["to_offset"]), int(part["to_row"]))
    assert places.get(p, (0, 0)) == begin <= end, (p, places.get(p), begin, end)
    found: Counter[str] = Counter()
    for offset in range(begin[0], end[0] + (end[1] > 0)):
        rows = outcomes.get(offset, [])  # none: a control record, or one that was aborted
        low = begin[1] if offset == begin[0] else 0
        high = end[1] if offset == end[0] else len(rows)
        assert high <= len(rows), (p, offset, high, len(rows))
        found.update(rows[low:high])
    part_counts = Counter({kind: int(part[kind]) for kind in KINDS})
    assert +part_counts == +found, (p, begin, end, part_counts, found)
    places[p] = end
    return found


def _payload(shelf: str, kind: str, payload: dict[str, Any], chunks: dict[bytes, bytes]) -> None:
    digests = [payload["chunks"][at : at + 32] for at in range(0, len(payload["chunks"]), 32)]
    parts = [chunks[f"{shelf}/{kind}/{index:04d}".encode()] for index in range(len(digests))]
    assert [hashlib.sha256(part).digest() for part in parts] == digests
    whole = b"".join(parts)
    assert len(whole) == payload["size"] and hashlib.sha256(whole).digest() == payload["digest"]
    length = int.from_bytes(whole[:8], "little")
    header = json.loads(whole[8 : 8 + length])
    for name, entry in header.items():
        if name != "__metadata__" and entry["dtype"].startswith("F"):
            begin, end = entry["data_offsets"]
            numbers = np.frombuffer(whole[8 + length + begin : 8 + length + end], f"<f{int(entry['dtype'][1:]) // 8}")
            assert np.isfinite(numbers).all(), name
