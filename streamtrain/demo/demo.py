"""The demo: Kafka, flights streaming in, a trainer and a predictor beside them, then the check of it all.

Every part is one a user has: `streamtrain train` and `predict` run as children, the rest is what programs import.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from streamtrain.broker import Broker, broker_status, start_broker
from streamtrain.checks.verify import verify
from streamtrain.demo.flights import data_file, load_flights
from streamtrain.demo.folder import JOB_NAME, Folder, fresh_name, job_text, jobs_in
from streamtrain.demo.page import Page, metrics_ports, page, stay
from streamtrain.demo.standing import Standing
from streamtrain.demo.streaming import Streaming
from streamtrain.demo.summary import Summary, next_commands
from streamtrain.errors import KafkaUnreachable, SnapshotError, UserMistake
from streamtrain.job import Job
from streamtrain.kafka.admin import Admin
from streamtrain.kafka.snapshots import SnapshotTopic
from streamtrain.topics.topic import job_topics

KAFKA_VARIABLES = "STREAMTRAIN_KAFKA__"
ANYWHERE = "localhost:9092"  # in a job that is only looked at


class View(Protocol):
    """A view that shows the demo."""

    def say(self, event: str, text: str, **fields: Any) -> None: ...

    def show(self, standing: Standing) -> None: ...

    def end(self, summary: Summary) -> None: ...


@dataclass(frozen=True)
class Options:
    """The options of the command line. `rate`: rows a second, 0 as fast as it goes; `bootstrap` None: the embedded
    Kafka.

    `program` is how the user calls streamtrain.
    """

    rows: int | None
    rate: float
    workers: int
    bootstrap: str | None = None
    sets: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    kafka_home: Path | None = None
    folder: Folder = field(default_factory=Folder)
    program: str = "streamtrain"
    ui: bool = False  # a page beside it, which stays until it is ended by hand

    def children_environment(self) -> dict[str, str]:
        """Without the settings of another Kafka, which would keep us from our own."""
        own = self.bootstrap is None
        given = self.environment.items()
        return {name: value for name, value in given if not (own and name.startswith(KAFKA_VARIABLES))}

    def job(self, name: str, bootstrap: str) -> Job:
        """The demo's job under that name. Raises JobMistakes for what --set or the environment say."""
        text = job_text(name, bootstrap, self.workers)
        return Job.parse(text, environment=self.children_environment(), sets=self.sets, bootstrap=bootstrap)


def run(options: Options, view: View) -> Summary:
    """The whole demo. Whatever happens, nothing it started is left running; its folder stays.

    Raises KeyboardInterrupt when it was asked to stop and everything has ended; UserMistake, KafkaUnreachable, and what
    a process of it ended of.
    """
    folder, began_s = options.folder, time.monotonic()
    data_file()  # what is missing or mistaken is said before anything is started
    options.job(JOB_NAME, options.bootstrap or ANYWHERE)
    folder.make()
    with ThreadPoolExecutor(1) as pool, ExitStack() as ending:
        loading = pool.submit(load_flights, options.rows)  # while Kafka starts
        broker = ending.enter_context(_own_kafka(options, view)) if options.bootstrap is None else None
        bootstrap = broker.bootstrap if broker is not None else str(options.bootstrap)
        job = _fresh_job(options, bootstrap, view)
        flights = loading.result()
        workers = f"{job.train.workers} worker process{'es' * (job.train.workers > 1)}"
        text = f"job {job.name}: {len(flights):,} flights out of New York in 2013, {workers}"
        view.say("job", text, job=job.name, rows=len(flights), workers=job.train.workers)
        metrics = metrics_ports() if options.ui else {}
        looked_at = ending.enter_context(_page(options, bootstrap, view, metrics.values())) if options.ui else None
        settings = ["--bootstrap", bootstrap, *(part for given in options.sets for part in ("--set", given))]
        streaming = Streaming(job, flights, options.rate, folder, settings, options.children_environment(), metrics)
        standing = streaming.run(view.show, lambda: _check(broker))
        if streaming.stopped:
            raise KeyboardInterrupt
        summary = _checked(options, job, standing, view, began_s)
        view.end(summary)
        if looked_at is not None:
            view.say("staying", f"Kafka and {looked_at.url} stay until Ctrl-C", url=looked_at.url)
            stay(lambda: _check(broker), looked_at.child.check)
        return summary


def _checked(options: Options, job: Job, standing: Standing, view: View, began_s: float) -> Summary:
    view.say("verifying", "checking the guarantees on the topics")
    verified_s = time.monotonic()
    report = verify(job, fast=True)
    ended_s = time.monotonic()
    first_s = None if standing.first_trained_s is None else standing.began_s + standing.first_trained_s - began_s
    own_kafka, folder = options.bootstrap is None, options.folder
    commands = next_commands(options.program, folder, standing.version, own_kafka=own_kafka)
    return Summary(job.name, standing, report, ended_s - began_s, ended_s - verified_s, first_s, folder, commands)


@contextmanager
def _page(options: Options, bootstrap: str, view: View, metrics: Iterable[int]) -> Iterator[Page]:
    with page(options.folder, bootstrap, options.children_environment(), metrics) as looked_at:
        view.say("ui", f"look at {looked_at.url}", url=looked_at.url)
        yield looked_at


@contextmanager
def _own_kafka(options: Options, view: View) -> Iterator[Broker]:
    """An embedded Kafka on the folder, ended with the `with`. One that runs there already is somebody else's."""
    folder = options.folder.kafka
    began_s = time.monotonic()
    if not broker_status(folder).running:
        view.say("starting", f"starting Kafka, its data in {folder}")
        with start_broker(folder, kafka_home=options.kafka_home, fast_start=True) as broker:
            if not broker.found:
                seconds = time.monotonic() - began_s
                text = f"Kafka runs at {broker.bootstrap}, up in {seconds:.1f} s"
                view.say("kafka", text, bootstrap=broker.bootstrap, seconds=round(seconds, 2))
                yield broker
                return
    found, program = broker_status(folder).bootstrap, options.program
    raise UserMistake(
        f"{folder}: expected that no Kafka runs here, got one at {found} that this demo did not start; "
        f"stop it with `{program} broker stop --data {folder}`, or use it with `{program} demo -b {found}`"
    )


def _check(broker: Broker | None) -> None:
    if broker is not None and not broker.pids:
        raise KafkaUnreachable(f"the demo's Kafka at {broker.bootstrap} has ended; its log lies in {broker.data}")


def _fresh_job(options: Options, bootstrap: str, view: View) -> Job:
    """The job of this run, its file and its topics. Says what earlier runs left."""
    job = options.job(JOB_NAME, bootstrap)
    admin = Admin(bootstrap, job.kafka_admin())
    topics = admin.names()
    if earlier := jobs_in(topics):
        job = options.job(fresh_name(topics), bootstrap)
        text = f"found {_told(earlier[-1], job)} of an earlier run; starting over as {job.name}"
        view.say("found", text, jobs=earlier, job=job.name)
    options.folder.write_job(job_text(job.name, bootstrap, options.workers))
    admin.ensure(job_topics(job.name, job.topic_tables()))
    return job


def _told(name: str, job: Job) -> str:
    """An earlier job on the Kafka of `job`, in half a line."""
    with SnapshotTopic(name, job.kafka.bootstrap, job.kafka_consumer()) as topic:
        try:
            newest = topic.newest_manifest()
        except SnapshotError:
            return f"job {name}, whose newest snapshot is damaged,"
    if newest is None:
        return f"job {name}, without a snapshot,"
    manifest = newest.manifest
    loss = manifest.metrics.get("total", {}).get("log_loss")
    quality = "" if loss is None else f", log loss {loss:.4f}"
    return f"job {name} (snapshot {manifest.version}, {manifest.rows_seen:,} rows{quality})"
