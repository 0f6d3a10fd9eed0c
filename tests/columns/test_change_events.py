"""Debezium's change events by the job file of docs/produce.md: rows below `after` train, deletes are filtered."""

from __future__ import annotations

import json
from typing import Any

import msgpack
from looped import over
from slots import decode_rows

from streamtrain.columns.schema import Schema
from streamtrain.job import Job
from tests.docs.page import ROOT, blocks

ROW = {"id": 7, "distance": 2.5, "zone": "centre", "tip": 1}


def schema(root: str) -> Schema:
    """That of the page, whose events stand inside of `payload`, or of events as they are."""
    (text,) = [text for kind, text in blocks(ROOT / "docs" / "produce.md") if kind == "toml" and "payload." in text]
    return Job.parse(text.replace("payload.", root), name="trips.toml").schema


def event(op: str, before: Any, after: Any) -> dict[str, Any]:
    source = {"connector": "postgresql", "table": "trips", "lsn": 33}
    around = {"source": source, "op": op, "ts_ms": 1_700_000_000_000, "transaction": None}
    return {"before": before, "after": after, **around}


@over("root", ["", "payload."])
@over("is_text", [True, False])
def test_rows_train_and_deletes_are_filtered(root: str, is_text: bool) -> None:
    events = [
        event("r", None, ROW), event("c", None, ROW), event("u", {**ROW, "distance": 1.5}, {**ROW, "tip": 0}),
        event("d", ROW, None), event("u", ROW, {**ROW, "tip": None}), event("t", None, None),
    ]  # fmt: skip
    wrapped = [{"schema": {"type": "struct", "fields": []}, "payload": each} if root else each for each in events]
    records = [json.dumps(each).encode() if is_text else msgpack.packb(each) for each in wrapped]
    form = "json" if is_text else "msgpack"
    told = [decode_rows(form, schema(root), record) for record in records]
    fates = [(tally.trained, tally.filtered, tally.dead) for _, tally in told]
    assert fates == [(1, 0, 0)] * 3 + [(0, 1, 0), (0, 0, 1), (0, 1, 0)]
    assert [blocks["numbers"].tolist() for blocks, _ in told[:3]] == [[[2.5, 2.5]], [[2.5, 2.5]], [[2.5, 1.5]]]
    assert [blocks["label"].tolist() for blocks, _ in told[:3]] == [[[1]], [[1]], [[0]]]
    assert {tally.newest_event_time_ms for _, tally in told[:3]} == {1_700_000_000_000}
    (dead,) = told[4][1].dead_rows
    assert dead.path == f"$.{root}after.tip"
