"""Training on the records that a job's topic holds now: what `streamtrain train --until-end` does, for a program."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import accumulate
from pathlib import Path
from tempfile import TemporaryDirectory

from streamtrain.clients.history import history, run_ends
from streamtrain.compute.early_stopping import NAME
from streamtrain.errors import CheckFailed, KafkaUnreachable, Replaced, StreamtrainError, UserMistake
from streamtrain.fitting.fit_history import History, Step
from streamtrain.fitting.fitted import Fitted, fitted_of
from streamtrain.job import Job
from streamtrain.kafka.admin import Admin
from streamtrain.kafka.snapshot_reader import SnapshotTopic
from streamtrain.moving.importing import Import
from streamtrain.moving.snapshot_file import Origin, SnapshotFile
from streamtrain.run.host import Event
from streamtrain.run.train import Interrupts, TrainOptions, train
from streamtrain.schemas import with_schema
from streamtrain.topics.manifest import POSITIONS

_MEANING: dict[int, type[StreamtrainError]] = {
    each.exit_code: each for each in (CheckFailed, UserMistake, KafkaUnreachable, Replaced)
}


def train_to_end(job: Job, on_event: Callable[[Event], None], start: Fitted | None = None) -> Fitted:
    """Goes on where the newest snapshot ends, publishes to the job's topics, and gives the snapshot it ends with.

    A job that has no snapshot begins with `start`, as after `streamtrain snapshots import`. Raises as the commands end:
    UserMistake, CheckFailed, KafkaUnreachable, Replaced, with what the run itself says.
    """
    bootstrap, kafka = job.kafka_admin()["bootstrap.servers"], job.kafka_consumer()
    job = with_schema(job)
    if start is not None:
        _import(job, start)
    code = train(job, TrainOptions(until_end=True), on_event, Interrupts())
    if code:
        ends = run_ends(job.name, bootstrap, kafka)
        end = ends[max(ends)] if ends else None
        said = "see in the log why" if end is None else end.reason
        wrong = _MEANING.get(code, StreamtrainError)
        raise wrong(f"{job.name}: expected to train to the end, ended with {code}: {said}")
    with SnapshotTopic(job.name, bootstrap, kafka) as topic:
        stored = topic.newest()
    assert stored is not None
    cluster = Admin(bootstrap, job.kafka_admin()).cluster_id()
    origin = Origin(cluster, topic.name, stored.offset, stored.manifest.created_ms)
    steps = History(list(_steps(job, bootstrap, stored.manifest.lineage)))
    early = stored.manifest.metrics.get(NAME, {})
    stopped = f"{early['reason']}: {early['details']}" if early.get("reason") else ""
    return fitted_of(Fitted, stored, job.network, steps, origin, stopped=stopped)


def _import(job: Job, start: Fitted) -> None:
    """Nothing where the job's newest snapshot is it, or came from it. UserMistake where it came from elsewhere."""
    with SnapshotTopic(job.name, job.kafka_admin()["bootstrap.servers"], job.kafka_consumer()) as topic:
        newest = topic.newest_manifest()
    digests = [] if newest is None else [newest.digest, *(of.digest for of in newest.manifest.imported)]
    if bytes.fromhex(start.digest) in digests:
        return
    with TemporaryDirectory() as folder:
        start.save(folder)
        with SnapshotFile(Path(folder)) as file:
            Import(job, file, POSITIONS[0]).run()


def _steps(job: Job, bootstrap: str, lineage: str) -> Iterator[Step]:
    """Yields the steps of the lineage that its round log still holds."""
    found = history(job.name, bootstrap, job.kafka_consumer(), topic=job.topic("rounds").name)
    own = [published for published in found if published.lineage == lineage]
    for published, rows in zip(own, accumulate(published.rows for published in own), strict=True):
        seconds = (published.created_ms - own[0].created_ms) / 1000
        yield Step(published, published.first_round + published.rounds - 1, 0, rows, seconds, False)
