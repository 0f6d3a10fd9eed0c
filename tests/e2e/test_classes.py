"""Figures of a model over classes on Kafka: in manifests, status and history, over a worker's death, replayed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgpack
import numpy as np

import streamtrain
from tests.e2e.harness import LiveJob, rows

COUNT, CLASSES = 3_000, 7


def rows_of_classes() -> list[dict[str, Any]]:
    """A seventh class is never seen."""
    return [{**row, "y": int(np.clip(row["x1"] + 2 * row["y"], 0, 5))} for row in rows(COUNT)]


def test_top_classes_and_confusion_are_told_everywhere(kafka: Any, tmp_path: Path) -> None:
    job = LiveJob(
        kafka, tmp_path, partitions=1, round_interval="off", averaging_frequency=2, batch_rows=16,
        label="classes = 7", model='layers = []\nloss = "softmax_cross_entropy"',
    )
    given = rows_of_classes()
    job.produce_values([msgpack.packb(row) for row in given], partition=0)
    events = job.train("--until-end", failpoints="worker.stepped=9,worker.averaging=3")
    assert any(event["event"] == "worker_died" for event in events)
    assert job.verified()["rows"]["trained"] == COUNT and len(job.replayed()["snapshots"]) >= 1
    metrics = job.newest().manifest.metrics
    total = metrics["total"]
    matrix = np.array(total["confusion_matrix"])
    assert matrix.shape == (CLASSES, CLASSES) and matrix.sum() == COUNT and not matrix[6].any()
    assert matrix.sum(1).tolist() == np.bincount([row["y"] for row in given], minlength=CLASSES).tolist()
    assert np.trace(matrix) / COUNT == total["accuracy"] <= total["top_5_accuracy"] <= 1 and total["macro_f1"] > 0.2
    assert streamtrain.fit(job.job, given).manifest.metrics["total"] == total
    standing = json.loads(job.command("status", "--json").stdout)
    assert standing["metrics"]["total"]["confusion_matrix"] == matrix.tolist()
    assert [each["class"] for each in standing["by_class"]][:6] == list("012345")
    assert "macro F1" in job.command("status").stdout and "precision" in job.command("status").stdout
    told = json.loads(job.command("history", "--json").stdout.splitlines()[-1])
    assert told["metrics"]["total"]["confusion_matrix"] == matrix.tolist()
    header = job.command("history", "--csv").stdout.splitlines()[0]
    assert "total.macro_f1" in header and "confusion" not in header
