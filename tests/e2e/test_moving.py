"""A snapshot exported from one job and imported into another, on real Kafkas: the same bits, a lineage that reaches
back, and nothing of it to be seen unless all of it is."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from served_http import serving
from waiting import wait_for

import streamtrain
from streamtrain.broker import Broker
from streamtrain.errors import Replaced, SnapshotError, UserMistake
from streamtrain.kafka.transaction import Transactions
from streamtrain.moving import importing
from streamtrain.moving.exporting import export
from streamtrain.moving.importing import Import
from streamtrain.moving.snapshot_file import SnapshotFile
from streamtrain.run.lease import Lease
from streamtrain.topics.chunks import Stored
from streamtrain.topics.topic import job_topics
from tests.e2e import commands
from tests.e2e.harness import LiveJob, answered, rows
from tests.e2e.threaded import Run, rows_after

REQUEST_ROWS = [{name: value for name, value in row.items() if name != "y"} for row in rows(50, seed=7)]


def killed(job: LiveJob, path: Path, failpoint: str) -> None:
    """An import that dies there."""
    command = ["snapshots", "import", str(job.path), str(path), "--positions", "end"]
    done = commands.run(command, {"STREAMTRAIN_FAILPOINTS": failpoint})
    assert done.returncode == -9, done.stderr


def exported(job: LiveJob, folder: Path, *arguments: str) -> Path:
    path = folder / f"{job.name}.snapshot"
    done = job.here("snapshots export", "--output", str(path), "--json", *arguments)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert (document["file"], document["bytes"]) == (str(path), path.stat().st_size)
    return path


def imported(job: LiveJob, path: Path, *arguments: str) -> dict[str, Any]:
    done = job.here("snapshots import", str(path), "--json", *arguments)
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


@pytest.fixture(scope="module")
def trained(kafka: Any, tmp_path_factory: pytest.TempPathFactory) -> LiveJob:
    """A job that nobody trains on."""
    job = LiveJob(kafka, tmp_path_factory.mktemp("trained"), produce=2000)
    rows_after(job.path)
    return job


@pytest.fixture
def other(kafka: Any, tmp_path: Path) -> LiveJob:
    return LiveJob(kafka, tmp_path, "other")


@pytest.fixture
def path(trained: LiveJob, tmp_path: Path) -> Path:
    """A file with the trained job's newest snapshot."""
    return exported(trained, tmp_path)


def check_came_from(stored: Stored, was: Stored, cluster: str, positions: str) -> None:
    (of,) = stored.manifest.imported
    assert (of.job, of.version, of.digest) == (was.manifest.job, was.manifest.version, was.digest)
    assert (of.lineage, of.cluster, of.positions) == (was.manifest.lineage, cluster, positions)


def test_into_another_job_the_same_bits_and_answers_then_trained_on(
    kafka: Any, trained: LiveJob, path: Path, tmp_path: Path
) -> None:
    was, other = trained.newest(), LiveJob(kafka, tmp_path, "other", partitions=2)
    kept = other.here("snapshots import", str(path))
    assert kept.returncode == 2 and "--positions beginning, or --positions end" in kept.stderr
    assert was.manifest.positions.topic_id in kept.stderr and other.manifests() == []
    with serving(trained.path, other.path) as server:
        wait_for(lambda: server.get(f"/v2/models/{trained.name}/ready").status_code == 200)
        before = server.post(f"/predict/{trained.name}", REQUEST_ROWS).json()
        assert server.post(f"/predict/{other.name}", REQUEST_ROWS).status_code == 503
        result = imported(other, path, "--positions", "beginning")
        server.wait_ready()
        answers = [server.post(f"/predict/{other.name}", request).json() for request in (REQUEST_ROWS, REQUEST_ROWS[0])]
        assert server.stop() == 0
    now = other.newest()
    assert (now.model, now.trainer) == (was.model, was.trainer)
    assert result["version"] == now.manifest.version == was.manifest.version + 1
    assert result["digest"] == now.digest.hex() and now.manifest.parent is None
    check_came_from(now, was, trained.admin.cluster_id(), "beginning")
    assert before["digest"] == was.digest.hex() != result["digest"]
    document = json.loads(other.here("snapshots show", "--json").stdout)
    assert document["parameters_digest"] == was.manifest.parameters_digest
    for answer in answers:
        assert (answer["version"], answer["digest"]) == (result["version"], result["digest"])
        assert answer["lineage"] == now.manifest.lineage and answer["age_s"] >= 0
    assert answers[0]["predictions"] == before["predictions"]
    assert answers[1]["prediction"] == before["predictions"][0]["prediction"]
    with other.model() as model:
        assert answered(model.predict(REQUEST_ROWS)) == answered(before["predictions"])
    other.verified()
    other.produce(1000, seed=3)
    assert rows_after(other.path) == 3000, "the snapshot's own rows count on"
    report = other.verified()
    assert report["rows"]["trained"] == 1000
    lineage = next(check for check in report["checks"] if check["name"] == "lineage")
    assert any(f"of job {trained.name}" in each and was.digest.hex()[:12] in each for each in lineage["not_checkable"])
    other.replayed(result["version"])
    assert other.newest().manifest.imported == now.manifest.imported, "every snapshot of the lineage reaches back"
    assert other.newest().manifest.round > was.manifest.round
    ends = other.control().ends
    assert [ends[1].exit_code, ends[1].reason] == [0, f"imported snapshot {was.manifest.version} of {trained.name}"]


def test_a_fit_goes_live(other: LiveJob, tmp_path: Path) -> None:
    """Imports what Fitted.save wrote, as a folder or its file; training begins where records.start does."""
    fitted = streamtrain.fit(other.job, list(rows(1500)))
    fitted.save(tmp_path / "model")
    other.produce(1000, seed=3)
    result = imported(other, tmp_path / "model")
    now, manifest = other.newest(), fitted.manifest
    assert (now.model, now.trainer, now.manifest.version) == (fitted.payload, fitted.trainer, manifest.version + 1)
    (of,) = now.manifest.imported
    assert (of.version, of.digest.hex(), of.lineage) == (fitted.version, fitted.digest, manifest.lineage)
    assert (of.cluster, of.positions, result["positions"][0]) == ("memory", "beginning", [0, 0])
    with other.model() as model:
        assert answered(model.predict(REQUEST_ROWS)) == answered(fitted.predict(REQUEST_ROWS))
    other.verified()
    assert rows_after(other.path) == 2500 and other.verified()["rows"]["trained"] == 1000
    other.replayed(result["version"])
    again = other.here("snapshots import", str(tmp_path / "model" / "model.snapshot"))
    assert again.returncode == 2 and "expected no snapshot yet" in " ".join(again.stderr.split())
    other.path.write_text(other.path.read_text().replace("[records]", '[records]\nstart = "2024-01-01"'))
    timed = other.here("snapshots import", str(tmp_path / "model"))
    assert timed.returncode == 2 and "records.start is a time (2024-01-01T" in " ".join(timed.stderr.split())


def test_on_the_same_records_training_goes_on_where_it_ended(
    kafka: Any, trained: LiveJob, other: LiveJob, path: Path, tmp_path: Path
) -> None:
    """A restore keeps what a lineage came from, an import of an import has both, a fresh start nothing."""
    at = f'name = "{trained.records}", partitions'
    other.path.write_text(other.path.read_text().replace("records = { partitions", f"records = {{ {at}"))
    result = imported(other, path)
    trained.produce(500, seed=3)
    assert rows_after(other.path) == 2500
    assert other.verified()["rows"]["trained"] == 500
    other.replayed(result["version"])
    assert other.manifests()[0].version == result["version"]
    rows_after(other.path, restore=result["version"])
    again = other.newest()
    check_came_from(again, trained.newest(), trained.admin.cluster_id(), "keep")
    assert again.model == trained.newest().model
    third = LiveJob(kafka, tmp_path, "third")
    imported(third, exported(other, tmp_path), "--positions", "end")
    assert [of.job for of in third.newest().manifest.imported] == [trained.name, other.name]
    third.verified()
    rows_after(other.path, fresh=True)
    assert other.newest().manifest.imported == ()
    other.verified()


@pytest.mark.full
def test_between_clusters(kafka: Any, private_kafka: Callable[..., Broker], trained: LiveJob, tmp_path: Path) -> None:
    far = private_kafka()

    (tmp_path / "far").mkdir()
    cluster = SimpleNamespace(bootstrap=far.bootstrap, fresh_name=lambda prefix: trained.name)
    other = LiveJob(cluster, tmp_path / "far")
    path = exported(trained, tmp_path, "--snapshot", str(trained.manifests()[-2].version))
    other.produce(700, seed=1)
    kept = other.here("snapshots import", str(path))
    assert kept.returncode == 2 and "--positions beginning, or --positions end" in kept.stderr
    assert trained.newest().manifest.positions.topic_id in kept.stderr and other.manifests() == []
    result = imported(other, path, "--positions", "end")
    assert result["imported"][0]["cluster"] == trained.admin.cluster_id() != other.admin.cluster_id()
    assert sum(offset for offset, _ in result["positions"]) == 700
    other.produce(300, seed=2)
    rows_after(other.path)
    assert other.verified()["rows"]["trained"] == 300
    other.replayed(result["version"])


def test_killed_within_its_transaction_nothing_is_there(trained: LiveJob, other: LiveJob, path: Path) -> None:
    for failpoint in ("coordinator.before_produce=1", "coordinator.after_chunks=3", "coordinator.in_commit=2"):
        killed(other, path, failpoint)
        assert other.manifests() == [] and other.control().newest is None, failpoint
    killed(other, path, "coordinator.after_commit=2")
    again = other.here("snapshots import", str(path), "--positions", "end")
    there = f"found version {other.newest().manifest.version}, published by run {max(other.control().runs)}"
    assert again.returncode == 2 and there in again.stderr
    assert other.newest().model == trained.newest().model
    other.verified()


def test_a_live_trainer_is_not_robbed(trained: LiveJob, other: LiveJob, path: Path) -> None:
    running = Run(other.path)
    running.wait_event("started")
    refused = other.here("snapshots import", str(path), "--positions", "end")
    assert refused.returncode == 2 and "expected no snapshot yet" in refused.stderr
    other.produce(500)
    running.wait_event("published", rows=500)
    assert running.drain() == 0
    assert other.control().holder.run.number == 1  # type: ignore[union-attr]
    assert other.verified()["rows"]["trained"] == 500


def taken(job: LiveJob) -> None:
    """Lets a run take the job that has published nothing yet."""
    names = {wish.key: wish.name for wish in job_topics(job.name)}
    topics = Lease(job.name, {"bootstrap.servers": job.bootstrap}, names, job.admin)
    Transactions({"bootstrap.servers": job.bootstrap}, job.name, topics).open()


def test_a_run_that_has_just_begun_has_time(other: LiveJob, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    taken(other)

    def meanwhile(seconds: float) -> None:
        rows_after(other.path)

    monkeypatch.setattr(importing, "time", SimpleNamespace(monotonic=time.monotonic, sleep=meanwhile))
    with SnapshotFile(path) as file, pytest.raises(UserMistake, match="expected no snapshot yet"):
        Import(other.job, file, "end").run()
    monkeypatch.undo()
    other.verified()


class Interrupted(SnapshotFile):
    """Between two of whose chunks, when it is sent, something happens."""

    def __init__(self, path: Path, meanwhile: Callable[[], Any]) -> None:
        super().__init__(path)
        self._meanwhile, self._times = meanwhile, 0

    def chunks(self) -> Iterator[bytes]:
        self._times += 1
        for index, chunk in enumerate(super().chunks()):
            yield chunk
            if (self._times, index) == (2, 0):  # the first time it is only looked at
                self._meanwhile()


def test_a_zombie_is_mute(trained: LiveJob, other: LiveJob, path: Path) -> None:
    """A trainer that starts while a snapshot is sent has the job; what the import still writes is not to be seen."""
    other.produce(400)
    with Interrupted(path, lambda: rows_after(other.path)) as file, pytest.raises(Replaced, match="run 2"):
        Import(other.job, file, "beginning").run()
    assert all(manifest.imported == () for manifest in other.manifests())
    assert other.verified()["rows"]["trained"] == 400


def test_a_file_that_is_damaged_or_changes_while_it_is_sent_is_not_imported(other: LiveJob, path: Path) -> None:
    whole = path.read_bytes()
    path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    done = other.here("snapshots import", str(path), "--positions", "end")
    assert done.returncode == 1 and f"{path}@" in done.stderr and "the digest" in done.stderr
    assert other.control().runs == {} and other.manifests() == []
    path.write_bytes(whole)
    with Interrupted(path, lambda: path.write_bytes(whole[:-9])) as file, pytest.raises(SnapshotError, match="cut off"):
        Import(other.job, file, "end").run()
    assert other.manifests() == []
    path.write_bytes(whole)
    imported(other, path, "--positions", "end")
    other.verified()


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"more_columns": 'z = { kind = "number", missing = 0 }'}, "columns.z: the snapshot has none"),
        ({"model": "layers = [ { dense = 8 } ]"}, "model.layers"),
        ({"optimizer": 'name = "sgd"\nlearning_rate = 0.1'}, "optimizer.name: snapshot 'adam', job 'sgd'"),
    ],
)
def test_another_job_file_is_refused_by_what_differs(
    kafka: Any, path: Path, tmp_path: Path, settings: dict[str, str], text: str
) -> None:
    other = LiveJob(kafka, tmp_path, "other", **settings)
    done = other.here("snapshots import", str(path), "--positions", "end")
    assert done.returncode == 2 and text in done.stderr and "nothing was imported" in done.stderr
    assert other.control().runs == {} and other.manifests() == []


def test_of_files_the_positions_hold_everywhere(kafka: Any, tmp_path: Path) -> None:
    data = tmp_path / "data.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows(1500)))
    job, other = LiveJob(kafka, tmp_path, format="json"), LiveJob(kafka, tmp_path, "other", format="json")
    rows_after(job.path, files=[data], max_rows=600)
    imported(other, exported(job, tmp_path))
    assert other.newest().manifest.positions == job.newest().manifest.positions
    assert rows_after(other.path, files=[data]) == 1500
    other.verified()


def test_nothing_is_written_over(trained: LiveJob, other: LiveJob, path: Path, tmp_path: Path) -> None:
    path.write_text("mine")
    done = trained.here("snapshots export", "--output", str(path))
    assert done.returncode == 2 and "--force" in done.stderr and path.read_text() == "mine"
    meanwhile = tmp_path / "a.snapshot"
    with trained.topic() as topic, pytest.raises(UserMistake, match="found one"):
        newest = topic.newest_manifest()
        assert newest is not None
        export(topic, newest, "c", meanwhile, on_bytes=lambda _: meanwhile.write_text("mine"))
    assert meanwhile.read_text() == "mine"
    exported(trained, tmp_path, "--force")
    with SnapshotFile(path) as file:
        file.check()
    assert [each.name for each in tmp_path.iterdir() if ".part" in each.name] == []
    nowhere = trained.here("snapshots export", "--output", str(tmp_path / "none" / "a.snapshot"))
    assert nowhere.returncode == 2 and "cannot be written: No such file" in nowhere.stderr
    none = other.here("snapshots export", "--output", str(tmp_path / "empty.snapshot"))
    assert none.returncode == 2 and "found none yet" in none.stderr and not (tmp_path / "empty.snapshot").exists()
