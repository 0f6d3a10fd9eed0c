"""A job on Kafka that gets another class while all that predict go on: what was learned stays, and checks know it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import pytest
from prediction_bench import Bench, running
from waiting import wait_for

from streamtrain.checks.verify.beginnings import check_beginning
from streamtrain.checks.verify.snapshot_check import Snapshots
from streamtrain.clients.scorer import Scorer
from streamtrain.columns.served import Served
from streamtrain.topics.chunks import Stored
from streamtrain.topics.manifest import Manifest
from tests.e2e.harness import LiveJob
from tests.e2e.harness import rows as plain_rows
from tests.e2e.threaded import rows_after, trained

SETTINGS = {
    "label": 'classes = ["low", "mid"]', "workers": 1, "keep": 100,
    "model": 'layers = [ { dense = 8, activation = "relu" } ]\nloss = "softmax_cross_entropy"',
}  # fmt: skip
NAMES = ["low", "mid", "high"]
REQUEST_ROWS = [{name: cell for name, cell in row.items() if name != "y"} for row in plain_rows(60, 7)]


def values(count: int, seed: int, classes: int) -> Iterator[bytes]:
    """Rows whose label follows x1: below 0, below 4 and above."""
    for row in plain_rows(count, seed):
        place = int(row["x1"] > 0) + int(row["x1"] > 4)
        yield msgpack.packb({**row, "y": NAMES[min(place, classes - 1)]})


def with_classes(job: LiveJob, names: str) -> None:
    head, _, rest = job.path.read_text().partition("classes = [")
    job.path.write_text(f"{head}classes = [{names}]{rest.partition(']')[2]}")


def refusal(job: LiveJob, *add: str, **options: Any) -> str:
    run = trained(job.path, add_classes=add, **options)
    assert run.code == 2, run.errors
    return run.errors[0]


def shares(stored: Stored) -> np.ndarray[Any, Any]:
    """The probabilities of each row asked for, by class."""
    answers = Scorer(Served.of(stored.manifest, stored.digest, stored.model)).predict(REQUEST_ROWS)
    return np.array([[*answer["probabilities"].values()] for answer in answers])


def check_forgeries(job: LiveJob, before: Stored, added: Stored) -> None:
    """Checks that a forged snapshot is found.

    It begins with other numbers than those of the snapshot before it, or with other classes.
    """
    with job.topic() as topic:
        located = {each.manifest.version: each for each in topic.list()}
    snapshots = Snapshots(tuple(located.values()), frozenset(located), lambda number: before)

    def found(manifest: Manifest) -> list[str]:
        forged = located[manifest.version]._replace(manifest=manifest)
        return [*check_beginning(snapshots, forged, lambda topic_id: None)]

    manifest = added.manifest
    assert found(manifest) == []
    assert "holds other numbers" in found(replace(manifest, trainer=before.manifest.trainer))[0]
    turned = [{**each, **({"classes": NAMES[::-1]} if each["name"] == "y" else {})}
              for each in manifest.job_settings["columns"]]  # fmt: skip
    forged = replace(manifest, job_settings={**manifest.job_settings, "columns": turned})
    assert "columns.y.classes: the snapshot has" in found(forged)[0]


def check_added(before: Stored, added: Stored) -> None:
    """It goes on where the snapshot before it ends, and predicts the same but for the share of the new class."""
    manifest, parent = added.manifest, before.manifest
    assert (manifest.version, manifest.positions) == (parent.version + 1, parent.positions)
    assert (manifest.rows_seen, manifest.metrics) == (1500, parent.metrics)
    was, now = shares(before), shares(added)
    np.testing.assert_allclose(now[:, :2] / now[:, :2].sum(1, keepdims=True), was, rtol=1e-5)
    assert 0 < now[:, 2].max() < 0.01, "the prior of a class without rows"


def check_later_starts(job: LiveJob, version: int, last: Manifest) -> None:
    """The flag is of no weight once the class is there; other changes are refused; an older snapshot gets all."""
    again = trained(job.path, add_classes=["high"]).events
    assert next(event for event in again if event["event"] == "started")["version"] == last.version
    with_classes(job, '"top", "low", "mid", "high"')
    assert "does not fit the job: columns.y.classes" in refusal(job, "top")
    with_classes(job, '"low", "mid", "high", "top"')
    assert "adds high, top to the classes that" in refusal(job, "top", restore=version)
    assert trained(job.path, restore=version).code == 0
    assert job.newest().manifest.schema["columns"] != last.schema["columns"]
    job.verified()


@pytest.mark.parametrize(
    "point", ["coordinator.in_commit=2", pytest.param("coordinator.in_commit=3", marks=pytest.mark.full)]
)
def test_a_class_is_added_while_all_that_predict_go_on(kafka: Any, tmp_path: Path, point: str) -> None:
    """The coordinator is killed in the transaction that adds the class, or in the next one."""
    job = LiveJob(kafka, tmp_path, **SETTINGS)
    job.produce_values(values(1500, 0, 2))
    rows_after(job.path)
    before = job.newest()
    version = before.manifest.version
    bench = Bench(job.bootstrap, job.name)
    with job.model() as live, running(bench.config(format={"name": "msgpack"})) as counters:
        wait_for(lambda: counters["version"] == version)
        with_classes(job, '"low", "mid", "high"')
        job.produce_values(values(3000, 1, 3))
        assert "the next start adds high and keeps what was learned" in job.here("check").stdout
        unknown = job.here("train", "--add-classes", "hop").stderr
        assert "expected classes of the job file, low, mid, high, got hop" in " ".join(unknown.split())
        events = job.train("--until-end", failpoints=point)
        assert any(event["event"] == "restarting" for event in events)
        assert [event["added"] for event in events if "added" in event] == [["high"]]
        last = job.newest()
        wait_for(lambda: live.version == counters["version"] == last.manifest.version)
        bench.ask(msgpack.packb(REQUEST_ROWS), "all")
        bench.flush()
        wait_for(lambda: bench.counts())
        answer, here = bench.answers()["all"], live.answer(REQUEST_ROWS)
        assert (answer.version, answer.prediction) == (here.version, here.values)
        assert {each["prediction"] for each in here.values} == {*NAMES}
    (manifest,) = (each for each in job.manifests() if each.restored is not None)
    with job.topic() as topic:
        added = topic.version(manifest.version)
    check_added(before, added)
    matrix = last.manifest.metrics["total"]["confusion_matrix"]
    assert np.sum(matrix) == 4500 and matrix[2][2] > 0
    job.check(trained=3000)
    replayed = {each["version"]: each for each in job.replayed(version)["snapshots"]}
    assert replayed[manifest.version] == {
        "version": manifest.version, "rounds": 0, "rows": 0, "whole": True, "differences": []
    }  # fmt: skip
    assert replayed[last.manifest.version]["whole"]
    check_forgeries(job, before, added)
    check_later_starts(job, version, last.manifest)
