"""One trained job a session, for all tests that only read: shared by xdist's workers, and refused to whoever writes.

A conftest imports the fixture: `from trained_job import trained_job as trained_job`.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import pytest
from confluent_kafka.admin import AdminClient
from one_for_all import one_for_all

from streamtrain.job import Job
from streamtrain.kafka.admin import Admin
from tests.e2e import threaded
from tests.e2e.harness import LiveJob

TEXT = """\
[topics]
records.partitions = 2
[records]
format = "json"
[columns]
delay = { kind = "number", standardize = true, missing = 0 }
carrier = { kind = "category", buckets = 64, embed = 8, missing = "" }
late = { role = "label", missing = "skip" }
flight = { role = "key" }
[model]
layers = [ { dense = 8, activation = "relu" } ]
[train]
batch_rows = 64
workers = 2
round_interval = "20ms"
[publish]
interval = "50ms"
archive = { every = "1s", keep = 4 }
"""
PREFIX = "a-trained-job"
ROWS = 2_000
PARTS = ((0, 1_000), (1_000, 1_600), (1_600, ROWS))  # the rows of each run
WRONG_ROWS = (7, 70, 1_700)  # their delay is no number
UNLABELED = ROWS // 10
NO_RECORD = b"\x00\xff no record <b>"
TOMBSTONES = 2
TRAINED, DEAD = ROWS - len(WRONG_ROWS) - UNLABELED, len(WRONG_ROWS) + 1
RUN_OF_A_DEATH = 2  # in which a worker dies
REQUESTS = 50
BROKEN_REQUEST = b'{"delay": '


def rows_as_csv(start: int, stop: int) -> str:
    lines = ["delay,carrier,late,flight"]
    for at in range(start, stop):
        delay = "bad" if at in WRONG_ROWS else str(at % 60)
        lines.append(f"{delay},{'AB'[at % 2]}{at % 5},{'' if at % 10 == 1 else int(at % 60 > 30)},{at % 4}")
    return "\n".join(lines) + "\n"


class TrainedJob(LiveJob):
    """The job as its readers see it; what would write raises."""

    def __init__(self, path: Path) -> None:
        self.path, self.job = path, Job.load(path)
        self.name, self.bootstrap = self.job.name, self.job.kafka.bootstrap
        self.records = str(self.job.topic("records").name)
        self.admin = Admin(self.bootstrap)
        facts = json.loads(self.path.with_suffix(".json").read_text())
        self.run_ends: list[int] = facts["run_ends"]  # the last version of each run
        self.predicted: dict[str, Any] = facts["predicted"]  # what `streamtrain predict --json` wrote

    def _refused(self, *arguments: Any, **more: Any) -> NoReturn:
        raise AssertionError("the shared job is only read; make a job of the test's own to write to it")

    produce = produce_values = produce_messages = start = train = command = _refused


@dataclass(frozen=True)
class _Names:
    """Gives the job a name that no module's end deletes."""

    bootstrap: str

    def fresh_name(self, prefix: str) -> str:
        return f"{prefix}-{uuid.uuid4().hex[:10]}"


def output_of(live: LiveJob, *arguments: str) -> str:
    ended = live.here(*arguments)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def add_rows(live: LiveJob, start: int, stop: int) -> None:
    rows = live.path.with_suffix(".csv")
    rows.write_text(rows_as_csv(start, stop))
    output_of(live, "produce", "--input", str(rows), "--pack", "8", "-q")


def run_to_the_end(live: LiveJob, number: int) -> int:
    """One run; gives the version of its last publication."""
    if number == RUN_OF_A_DEATH:
        events = live.train("--until-end", failpoints="worker.stepped=2")
        assert any(event["event"] == "worker_died" for event in events), events
    else:
        run = threaded.trained(live.path)
        assert run.code == 0, run.errors
        events = run.events
    return int(events[-1]["version"])


@contextmanager
def trained_once(bootstrap: str, folder: Path) -> Iterator[str]:
    """Makes the job; gives its file's path."""
    live = LiveJob(_Names(bootstrap), folder, prefix=PREFIX, text=TEXT)
    run_ends = []
    for number, (start, stop) in enumerate(PARTS, 1):
        add_rows(live, start, stop)
        if number == len(PARTS):
            others = [NO_RECORD, *[None] * TOMBSTONES]
            live.produce_messages({"value": value, "key": b"1", "partition": 0} for value in others)
        run_ends.append(run_to_the_end(live, number))
    requests = [json.dumps({"delay": at, "carrier": "A0", "flight": f"f{at}"}).encode() for at in range(REQUESTS)]
    topic = str(live.job.topic("requests").name)
    keyed = [{"value": value, "key": f"f{at}"} for at, value in enumerate(requests)]
    live.produce_messages([*keyed, {"value": BROKEN_REQUEST, "key": "broken"}], topic)
    predicted = json.loads(output_of(live, "predict", "--until-end", "--json"))
    live.path.with_suffix(".json").write_text(json.dumps({"run_ends": run_ends, "predicted": predicted}))
    try:
        yield str(live.path)
    finally:
        admin = AdminClient({"bootstrap.servers": bootstrap})
        topics = [topic for topic in admin.list_topics(timeout=60).topics if topic.startswith(f"{live.name}.")]
        for deleted in admin.delete_topics(topics).values():
            deleted.result(60)


@pytest.fixture(scope="session")
def trained_job(kafka: Any, folder_of_all: Path) -> Iterator[TrainedJob]:
    """A job after three runs, in the second of which a worker died, with dead letters, tombstones and predictions."""
    folder = folder_of_all / "trained-job"
    folder.mkdir(exist_ok=True)
    make: Callable[[], Any] = partial(trained_once, kafka.bootstrap, folder)
    with one_for_all(folder_of_all, "trained-job", make) as path:
        yield TrainedJob(Path(path))
