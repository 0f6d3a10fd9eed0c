"""A first job, nothing edited: the same rows in the files and topics of other tools learn alike.

Only this sees a wrapping in which a column is lost, or taken as something else, and everything still runs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from avro_schemas import nullable, record, written
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from sending import send

from tests.cli.conftest import Run
from tests.e2e import threaded

ROWS = 6_000
Rows = list[dict[str, Any]]
Source = Callable[[Path, Rows, Any, Any], tuple[list[Any], str]]


def drawn() -> Rows:
    """Ids of buyers that tell most, a price with cells missing, a city, a rising time."""
    random = np.random.default_rng(8)
    buyer, city = random.integers(1000, 1200, ROWS), random.integers(0, 6, ROWS)
    price, of_buyer = random.normal(40, 12, ROWS).round(2), random.normal(0, 1.5, 1200)
    logit = of_buyer[buyer] + (price - 40) / 8 + (city == 2)
    fraud, missing = random.random(ROWS) < 1 / (1 + np.exp(-logit)), random.random(ROWS) < 0.05
    when = pd.date_range("2026-01-03", periods=ROWS, freq="97s")
    cells = zip(when, buyer.tolist(), price.tolist(), missing, city.tolist(), fraud.tolist(), strict=True)
    return [
        {"ts": at.isoformat() + "Z", "buyer_id": buyer, "price": None if gone else price, "city": f"city {city}",
         "fraud": int(fraud)} for at, buyer, price, gone, city, fraud in cells
    ]  # fmt: skip


def frame(rows: Rows) -> pd.DataFrame:
    return pd.DataFrame(rows).assign(ts=lambda it: pd.to_datetime(it["ts"]))


def file_of(name: str, write: Callable[[Path, pd.DataFrame], Any]) -> Source:
    def source(folder: Path, rows: Rows, kafka: Any, registry: Any) -> tuple[list[Any], str]:
        write(folder / name, frame(rows))
        return ["--from", folder / name, "--label", "fraud"], ""

    return source


def topic_of(wrap: Callable[[dict[str, Any], int], Any], label: str) -> Source:
    def source(folder: Path, rows: Rows, kafka: Any, registry: Any) -> tuple[list[Any], str]:
        topic = kafka.new_topic("events", 1)
        send(kafka.bootstrap, topic, (json.dumps(wrap(row, at)).encode() for at, row in enumerate(rows)))
        return ["--from-topic", topic, "--label", label], topic

    return source


def subject(folder: Path, rows: Rows, kafka: Any, registry: Any) -> tuple[list[Any], str]:
    schema = record(
        ("ts", "string"), ("buyer_id", "long"), ("price", nullable("double")), ("city", "string"), ("fraud", "int")
    )
    topic = kafka.new_topic("rows", 1)
    found = SchemaRegistryClient({"url": registry.url}).register_schema(
        f"{topic}-value", Schema(json.dumps(schema), "AVRO")
    )
    send(kafka.bootstrap, topic, (b"\0" + found.to_bytes(4, "big") + written(schema, row) for row in rows))
    given = ["--from-subject", f"{topic}-value", "--label", "fraud", "--set", f"registry.url={registry.url}"]
    return given, topic


def cloud_event(row: dict[str, Any], at: int) -> Mapping[str, Any]:
    data = {name: cell if name == "fraud" or cell is None else str(cell) for name, cell in row.items()}
    return {"specversion": "1.0", "id": f"e-{at:06}", "source": "/shop", "time": row["ts"], "data": data}


def change(row: dict[str, Any], at: int) -> Mapping[str, Any]:
    return {
        "before": None, "after": row, "op": "c", "ts_ms": 1_780_000_000_000 + at, "source": {"table": "sales"},
    }  # fmt: skip


SOURCES: dict[str, Source] = {
    "csv": file_of("plain.csv", lambda path, rows: rows.to_csv(path, index=False)),
    "csv with index and NaN": file_of("index.csv", lambda path, rows: rows.to_csv(path, na_rep="NaN")),
    "decimal commas": file_of("comma.csv", lambda path, rows: rows.to_csv(path, sep=";", decimal=",", index=False)),
    "jsonl": file_of("rows.jsonl.gz", lambda path, rows: rows.to_json(path, orient="records", lines=True)),
    "parquet, nanoseconds": file_of("rows.parquet", lambda path, rows: rows.to_parquet(path)),
    "CloudEvents": topic_of(cloud_event, "data.fraud"),
    "Debezium": topic_of(change, "after.fraud"),
    "Avro subject": subject,
}


@pytest.mark.full
def test_the_same_rows_learn_alike(run: Run, kafka: Any, registry: Any, tmp_path: Path) -> None:
    rows, losses = drawn(), {}
    for name, source in SOURCES.items():
        given, topic = source(tmp_path, rows, kafka, registry)
        path = tmp_path / f"{kafka.fresh_name('first')}.toml"
        ended = run("init", path, "-b", kafka.bootstrap, *given)
        assert ended.code == 0, f"{name}: {ended.err}"
        assert run("topics", "create", path).code == 0
        if not topic:
            ended = run("produce", path, "--input", given[1])
            assert ended.code == 0, f"{name}: {ended.err}"
        assert threaded.trained(path).code == 0, name
        figures = run("status", path, "--json").document["metrics"]["total"]
        assert figures["rows"] == ROWS, f"{name}: {figures}\n{path.read_text()}"
        losses[name] = figures["log_loss"]
    assert losses["csv"] < 0.9 * figures["constant_log_loss"], losses
    worse = {name: loss for name, loss in losses.items() if loss > 1.02 * losses["csv"]}
    assert not worse, losses
