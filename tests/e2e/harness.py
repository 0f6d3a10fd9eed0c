"""A job on a real Kafka for end-to-end tests: its file, its rows, its commands as a user gives them, its answers."""

from __future__ import annotations

import io
import itertools
import json
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import psutil
from sending import send

from streamtrain import LiveModel, read_predictions
from streamtrain.checks.replay import replay
from streamtrain.checks.verify import verify
from streamtrain.cli import main
from streamtrain.job import Job
from streamtrain.kafka.admin import Admin
from streamtrain.kafka.clients import KafkaConsumer, Message
from streamtrain.kafka.control import ControlTopic
from streamtrain.kafka.reader import read_all
from streamtrain.kafka.settings import Purpose
from streamtrain.kafka.snapshot_reader import SnapshotTopic
from streamtrain.run import fork_server
from streamtrain.topics.chunks import Stored
from streamtrain.topics.control import Control
from streamtrain.topics.manifest import Manifest
from tests.e2e import commands
from tests.e2e.commands import Command
from tests.oracles.records import encode_records

JOB_FILE = """\
[topics]
records = {{ partitions = {partitions} }}
{more_topics}
[records]
format = "{format}"
max_dead_letter_share = {max_dead_letter_share}
[columns]
"x{{1..4}}" = {{ kind = "number", standardize = true }}
colour = {{ kind = "category", buckets = 16, embed = 4 }}
y = {{ role = "label", {label} }}
{more_columns}
[model]
{model}
[optimizer]
{optimizer}
[train]
hosts = "{hosts}"
batch_rows = {batch_rows}
batch_growth = {batch_growth}
workers = {workers}
averaging_frequency = {averaging_frequency}
round_interval = "{round_interval}"
[publish]
interval = "{publish_interval}"
keep = {keep}
"""
DEFAULTS = {
    "partitions": 3, "format": "msgpack", "batch_rows": 64, "batch_growth": '"off"', "workers": 2, "hosts": "one",
    "averaging_frequency": 4,
    "round_interval": "100ms", "publish_interval": "200ms", "keep": 8, "max_dead_letter_share": 0.1,
    "more_columns": "", "more_topics": "", "label": 'missing = "skip"',
    "optimizer": 'name = "adam"\nlearning_rate = 3e-3',
    "model": 'layers = [ { dense = 16, activation = "relu" } ]',
}  # fmt: skip


def rows(count: int, seed: int = 0) -> Iterator[dict[str, Any]]:
    """Rows whose label can be learned."""
    random = np.random.default_rng(seed)
    numbers = random.normal(2, 3, (count, 4)).round(4)
    colours = random.choice(["red", "green", "blue"], count)
    labels = (numbers[:, 0] - numbers[:, 1] + 2 * (colours == "red") + random.normal(0, 1, count) > 0).astype(int)
    for x, colour, y in zip(numbers.tolist(), colours.tolist(), labels.tolist(), strict=True):
        yield {"x1": x[0], "x2": x[1], "x3": x[2], "x4": x[3], "colour": colour, "y": y}


class LiveJob:
    """One job and what tests do to it."""

    def __init__(
        self, kafka: Any, folder: Path, prefix: str = "job", text: str = "", produce: int = 0, **settings: Any
    ) -> None:
        """Makes a job of JOB_FILE with `settings`, or of `text` behind the job's name and Kafka's address."""
        self.settings = {**DEFAULTS, **settings}
        self.name = kafka.fresh_name(prefix)
        self.bootstrap = kafka.bootstrap
        self.path = folder / f"{self.name}.toml"
        head = f'name = "{self.name}"\n[kafka]\nbootstrap.servers = "{self.bootstrap}"\n'
        self.path.write_text(head + (text or JOB_FILE.format(**self.settings)))
        self.job = Job.load(self.path)
        self.admin = Admin(self.bootstrap)
        self.admin.ensure(self.job.topic_wishes())
        self.records = self.job.topic("records").name or ""
        if produce:
            self.produce(produce)

    # -- producing ------------------------------------------------------------------------------------------------

    def produce(self, count: int, seed: int = 0) -> None:
        """`count` rows, one a record, in turn over the partitions."""
        encode: Callable[[Any], Any] = msgpack.packb if self.settings["format"] == "msgpack" else json.dumps
        self.produce_values(encode(row) for row in rows(count, seed))

    def produce_values(self, values: Any, partition: int | None = None) -> None:
        """Values as records, in turn over the partitions or all to one."""
        turns = itertools.cycle(range(self.settings["partitions"]) if partition is None else [partition])
        self.produce_messages({"value": value, "partition": next(turns)} for value in values)

    def produce_messages(self, messages: Iterable[Mapping[str, Any]], topic: str = "") -> None:
        """Messages as keywords of Producer.produce; to the records topic unless another is named."""
        send(self.bootstrap, topic or self.records, messages)

    # -- commands -------------------------------------------------------------------------------------------------

    def command(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        name, *rest = arguments
        return commands.run([name, str(self.path), *rest], environment)

    def here(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """The same in this process, where the command's own process is not what a test is about."""
        name, *rest = arguments
        with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as errors:
            try:
                main([*name.split(), str(self.path), *rest])
            except SystemExit as ended:
                return subprocess.CompletedProcess(arguments, int(ended.code or 0), out.getvalue(), errors.getvalue())
        raise AssertionError(f"{name} returned")

    def start(self, *arguments: str, **environment: str) -> Running:
        name, *rest = arguments
        errors = self.path.with_suffix(f".{time.monotonic_ns()}.log")  # a pipe nobody reads would stop the run
        with errors.open("w") as file:
            process = commands.start([name, str(self.path), *rest, "--json"], file, environment)
        return Running(process, errors)

    def train(self, *arguments: str, failpoints: str = "") -> list[dict[str, Any]]:
        """`streamtrain train JOB …` to its end; gives its events."""
        done = self.command("train", *arguments, "--json", STREAMTRAIN_FAILPOINTS=failpoints)
        assert done.returncode == 0, f"{done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-6000:]}"
        return [json.loads(line) for line in done.stdout.splitlines()]

    def verified(self) -> dict[str, Any]:
        """Returns the findings of `streamtrain verify JOB`, which must pass; in this process, which has loaded it."""
        report = verify(Job.load(self.path))
        assert report.ok, "\n".join(report.lines())
        return report.as_dict()

    def check(self, trained: int, dead: int = 0, filtered: int = 0) -> None:
        """Raises unless `verify` finds so many rows, and `replay` the same bits."""
        found = self.verified()["rows"]
        assert found == {"trained": trained, "dead_lettered": dead, "filtered": filtered}, found
        self.replayed()

    def replayed(self, start: int | None = None) -> dict[str, Any]:
        """Returns the findings of `streamtrain replay JOB --from …` (by default the oldest snapshot): the same bits."""
        report = replay(Job.load(self.path), self.manifests()[0].version if start is None else start)
        assert report.ok, "\n".join(report.lines())
        return report.as_dict()

    # -- looking --------------------------------------------------------------------------------------------------

    def topic(self) -> SnapshotTopic:
        return SnapshotTopic(self.name, self.bootstrap)

    def newest(self) -> Stored:
        with self.topic() as topic:
            found = topic.newest()
        assert found is not None
        return found

    @contextmanager
    def model(self, **more: Any) -> Iterator[LiveModel]:
        with LiveModel(self.name, bootstrap=self.bootstrap, **more) as model:
            model.wait_ready(60)
            yield model

    def manifests(self) -> list[Manifest]:
        """Returns those of the snapshots that are kept, the oldest first."""
        with self.topic() as topic:
            return [located.manifest for located in topic.list()]

    def messages(self, topic: str = "") -> list[Message]:
        """Returns all messages of a topic, by default of the records."""
        spans = dict(enumerate(self.admin.spans(topic or self.records) or []))
        with KafkaConsumer.open(Purpose.READ, self.job.kafka_consumer(), "test") as consumer:
            return list(read_all(consumer, topic or self.records, spans))  # type: ignore[arg-type]

    def control(self) -> Control:
        with ControlTopic({"bootstrap.servers": self.bootstrap}, f"{self.name}.control") as topic:
            return topic.look()


class Running:
    """A command that is still running."""

    def __init__(self, process: Command | subprocess.Popen[str], log: Path) -> None:
        self.process = process
        self.log = log
        self.events: list[dict[str, Any]] = []

    def wait_event(self, name: str, timeout_s: float = 240, **fields: Any) -> dict[str, Any]:
        """Reads events until one of that name, and with those fields at least, has come."""
        seen = len(self.events)

        def has_come() -> bool:
            event = self.events[-1] if len(self.events) > seen else {"event": ""}
            return event["event"] == name and all(event.get(key, 0) >= value for key, value in fields.items())

        self._read_until(has_come, name, timeout_s)
        return self.events[-1]

    def wait_rows(self, rows: int, timeout_s: float = 240) -> None:
        """Returns when a snapshot of so many rows is there: published, or what the run started from."""
        self._read_until(
            lambda: any(e["event"] in ("published", "started") and e.get("rows", 0) >= rows for e in self.events),
            f"{rows} rows", timeout_s,
        )  # fmt: skip

    def _read_until(self, is_there: Callable[[], bool], what: str, timeout_s: float) -> None:
        deadline = time.monotonic() + timeout_s
        assert self.process.stdout is not None
        while not is_there():
            assert time.monotonic() < deadline, f"no {what}; last {self.events[-1:]}\n{self.errors()[-3000:]}"
            line = self.process.stdout.readline()
            assert line, f"ended with {self.process.wait()} before {what}: {self.errors()[-4000:]}"
            self.events.append(json.loads(line))

    def children(self) -> list[psutil.Process]:
        """The run's processes in the order they were spawned: coordinator, ingest, workers."""
        return processes_of(self.process.pid)

    def finish(self, timeout_s: float = 240) -> int:
        out, _ = self.process.communicate(timeout=timeout_s)
        self.events += [json.loads(line) for line in out.splitlines()]
        return self.process.returncode

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Asks it to end, and waits; gives the exit code."""
        self.process.send_signal(number)
        return self.finish()

    def errors(self) -> str:
        return self.log.read_text()


def processes_of(supervisor: int) -> list[psutil.Process]:
    """Returns them in the order they were spawned, without what spawns them and what that forks on the way."""
    found = []
    for process in psutil.Process(supervisor).children(recursive=True):
        with suppress(psutil.NoSuchProcess):  # it may have ended since it was listed
            if process.name() != fork_server.NAME:
                found.append(process)
    return sorted(found, key=lambda process: (process.create_time(), process.pid))


def toml(value: Any) -> str:
    """A value as a job file has it."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(name)} = {toml(each)}" for name, each in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return json.dumps(value)


def answered(answers: list[Any]) -> list[float | None]:
    """Predictions as float32; None of a row that has none."""
    found = [each.get("prediction") if isinstance(each, dict) else None for each in answers]
    return [None if each is None else float(np.float32(each)) for each in found]


def predicted(job: LiveJob, rows: list[dict[str, Any]]) -> list[float | None]:
    """The same from the requests and predictions topics."""
    values = (encode_records(job.settings["format"], job.job.schema, [row]) for row in rows)
    job.produce_messages(
        ({"value": value, "key": str(number), "partition": 0} for number, (value,) in enumerate(values)),
        f"{job.name}.requests",
    )
    assert job.here("predict", "--until-end").returncode == 0
    found = {int(each.key): each.prediction
             for each in read_predictions(job.name, bootstrap=job.bootstrap, until_end=True)}  # fmt: skip
    return answered([found[number] for number in range(len(rows))])
