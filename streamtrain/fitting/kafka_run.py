"""Training on the records that a job's topic holds now: what `streamtrain train --until-end` does, for a program."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import accumulate

from streamtrain.clients.history import history, run_ends
from streamtrain.compute.early_stopping import NAME
from streamtrain.errors import CheckFailed, KafkaUnreachable, Replaced, StreamtrainError, UserMistake
from streamtrain.fitting.fitted import Fitted, fitted_of
from streamtrain.fitting.history import History, Step
from streamtrain.job import Job
from streamtrain.kafka.admin import Admin
from streamtrain.kafka.snapshots import SnapshotTopic
from streamtrain.moving.snapshot_file import Origin
from streamtrain.run.host import Event
from streamtrain.run.train import Interrupts, TrainOptions, train
from streamtrain.schemas import with_schema

_MEANING: dict[int, type[StreamtrainError]] = {
    each.exit_code: each for each in (CheckFailed, UserMistake, KafkaUnreachable, Replaced)
}


def train_to_end(job: Job, on_event: Callable[[Event], None]) -> Fitted:
    """Goes on where the newest snapshot ends, publishes to the job's topics, and gives the snapshot it ends with.

    Raises as the command ends: UserMistake, CheckFailed, KafkaUnreachable, Replaced, with what the run itself says.
    """
    bootstrap, kafka = job.kafka_admin()["bootstrap.servers"], job.kafka_consumer()
    code = train(with_schema(job), TrainOptions(until_end=True), on_event, Interrupts())
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


def _steps(job: Job, bootstrap: str, lineage: str) -> Iterator[Step]:
    """Of the lineage what its round log still holds."""
    found = history(job.name, bootstrap, job.kafka_consumer(), topic=job.topic("rounds").name)
    own = [published for published in found if published.lineage == lineage]
    for published, rows in zip(own, accumulate(published.rows for published in own), strict=True):
        seconds = (published.created_ms - own[0].created_ms) / 1000
        yield Step(published, published.first_round + published.rounds - 1, 0, rows, seconds, False)
