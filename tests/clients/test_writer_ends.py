"""Rows that RecordWriter.write has returned for reach Kafka, or an error says so; Kafka away floods no log."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from at_once import run_at_once
from confluent_kafka import Producer
from publisher import Publisher
from small_model import SmallModel

from streamtrain import Job, RecordWriter
from streamtrain.clients.live_model import LiveModel
from streamtrain.errors import KafkaUnreachable, UserMistake
from streamtrain.log import librdkafka_logger
from tests.clients.conftest import LOST, SOON, TEXT, values


def xs(job: Job) -> list[int]:
    return sorted(x for value in values(job) for x in np.atleast_1d(value["x"]))


def test_an_exception_in_the_block_flushes_what_was_gathered_or_says_what_is_not_delivered(job: Job) -> None:
    for given in (job, Job.parse(LOST, sets=[SOON])):
        with pytest.raises(ZeroDivisionError) as raised, RecordWriter(given, pack=256) as writer:
            for number in range(10):
                writer.write({"x": number, "late": 0})
            1 / 0  # noqa: B018
    assert xs(job) == list(range(10)) and "a record was not delivered" in raised.value.__notes__[0]


@pytest.mark.parametrize("pack", [None, 7])
def test_many_threads_lose_nothing(job: Job, pack: int | None) -> None:
    def write(turn: int) -> None:
        for number in range(turn, 3_000, 6):
            writer.write({"x": number, "late": 0} if number % 5 else [{"x": number, "late": 0}])

    with RecordWriter(job, pack=pack) as writer:
        run_at_once({str(turn): partial(write, turn) for turn in range(6)})
        writer.flush()
        assert writer.rows_written == 3_000
    assert xs(job) == list(range(3_000))


class Slow:
    """A number that lets another thread run while it is read."""

    def __init__(self, meanwhile: threading.Thread) -> None:
        self._meanwhile = meanwhile

    def __float__(self) -> float:
        self._meanwhile.start()
        self._meanwhile.join(0.3)  # which ends only where nothing holds it back
        return 1.5


def test_a_row_is_read_and_encoded_before_another_threads(job: Job) -> None:
    with RecordWriter(job) as writer:
        other = threading.Thread(target=writer.write, args=({"late": 1, "x": 7},))
        writer.write({"late": 0, "x": Slow(other)})
        other.join()
    assert sorted((value["late"], value["x"]) for value in values(job)) == [(0, 1.5), (1, 7)]


def test_threads_that_write_while_it_is_closed_are_refused_or_delivered(job: Job) -> None:
    """Once it is closed it refuses everything."""
    accepted: list[int] = []
    writer = RecordWriter(job, pack=3)

    def write(turn: int) -> None:
        with pytest.raises(UserMistake, match="expected an open writer, got a closed one"):
            for number in range(turn, 1_000_000, 4):
                writer.write({"x": number, "late": 0})
                accepted.append(number)

    def close() -> None:
        while len(accepted) < 500:
            pass
        writer.close()

    run_at_once({"close": close, **{str(turn): partial(write, turn) for turn in range(4)}})
    assert xs(job) == sorted(accepted)
    writer.close()
    for call in (lambda: writer.write({"x": 1, "late": 0}), lambda: writer.write([]), writer.flush):
        with pytest.raises(UserMistake, match="expected an open writer, got a closed one"):
            call()


def test_a_gathered_row_is_checked_and_copied_when_it_is_accepted(job: Job) -> None:
    row = {"x": 1, "late": 0}
    with RecordWriter(job, pack=10) as writer:
        writer.write(row)
        row["x"] = 2
        with pytest.raises(UserMistake, match=r"row at \$\.x"):
            writer.write({"x": object(), "late": 0})
        writer.write(row)
    assert xs(job) == [1, 2]


def test_what_librdkafka_has_no_room_for_is_kept(job: Job) -> None:
    """A full queue is waited for, and nothing is written twice."""
    text = TEXT.format(name=job.name, bootstrap=job.kafka.bootstrap, key="")
    small = Job.parse(text, sets=["kafka.producer.queue.buffering.max.messages=2"])
    with RecordWriter(small, pack=1) as writer:
        writer.write([{"x": number, "late": 0} for number in range(50)])
        for number in range(50, 60):
            writer.write({"x": number, "late": 0})
    assert xs(job) == list(range(60))


@pytest.fixture
def path(job: Job, tmp_path: Path) -> Path:
    path = tmp_path / "job.toml"
    path.write_text(TEXT.format(name=job.name, bootstrap=job.kafka.bootstrap, key=""))
    return path


def ended(program: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", program, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


OPEN_AT_THE_END = """
import os, signal, sys
from streamtrain import RecordWriter
threads = {*os.listdir("/proc/self/task")}
writer = RecordWriter(sys.argv[1], pack=256)
for number in range(5):
    writer.write({"x": number, "late": 0})
"""
# librdkafka's threads have ended too
CLOSED = """
writer.close()
while not threads >= {*os.listdir("/proc/self/task")}:
    pass
"""
TERMINATED = """
os.kill(os.getpid(), signal.SIGTERM)
"""
CLOSING = """
flush = writer._outbox.flush
def terminated(timeout_s):
    os.kill(os.getpid(), signal.SIGTERM)
    flush(timeout_s)
writer._outbox.flush = terminated
writer.close()
while True:
    pass
"""


def test_a_writer_left_open_at_the_programs_end_sends_or_says(job: Job, path: Path) -> None:
    assert ended(OPEN_AT_THE_END, path).returncode == 0
    assert ended(OPEN_AT_THE_END + TERMINATED, path).returncode == 128 + signal.SIGTERM
    assert ended(OPEN_AT_THE_END + CLOSING, path).returncode == -signal.SIGTERM
    assert xs(job) == sorted([*range(5)] * 3)
    assert ended(OPEN_AT_THE_END + CLOSED + TERMINATED, path).returncode == -signal.SIGTERM
    path.write_text(LOST.replace("[topics]", 'producer."message.timeout.ms" = 300\n[topics]'))
    lost = ended(OPEN_AT_THE_END, path)
    assert "RecordWriter to x.records was not closed: x.records: a record was not delivered" in lost.stderr, lost


def test_a_forked_child_is_refused_and_ends_well(job: Job) -> None:
    SmallModel.make().put(Publisher(job.kafka.bootstrap, job.name), 1)
    row = {"dep_delay": 3.5, "distance": 7, "hour": 2, "carrier": "UA", "origin": "JFK"}
    with (
        RecordWriter(job, pack=256, on_delivery=lambda error, message: None) as writer,
        LiveModel(job.name, job.kafka.bootstrap) as model,
    ):
        writer.write({"x": 1, "late": 0})
        model.wait_ready(120)
        calls = (lambda: writer.write({"x": 2}), writer.flush, lambda: model.predict(row), lambda: model.wait_ready(1))
        child = os.fork()
        if child == 0:  # no assert here: the child must end by _exit
            refused = 0
            for call in calls:
                try:
                    call()
                except UserMistake as error:
                    refused += "after a fork" in str(error)
            writer.close()
            model.close()
            os._exit(0 if refused == len(calls) else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert model.predict(row)
    assert xs(job) == [1]


# beside a writer and a model it has a consumer whose freeing librdkafka would abort a child for
FORKED = """
import gc, os, sys
from confluent_kafka import Consumer, TopicPartition
from streamtrain import LiveModel, RecordWriter
from streamtrain.clients.forks import after_fork, keep_for_ever
client = type("Client", (), {})()
client.consumer = Consumer({"bootstrap.servers": sys.argv[3], "group.id": "never joined"})
client.consumer.assign([TopicPartition("no-such-topic", 0, 0)])
client.consumer.poll(1)
after_fork(client, lambda client: keep_for_ever(client.consumer))
writer = RecordWriter(sys.argv[1], pack=256)
writer.write({"x": 1, "late": 0})
model = LiveModel(sys.argv[2], sys.argv[3])
while not model.connected:
    pass
child = os.fork()
if child == 0:
    del writer, model, client
    gc.collect()
    sys.exit(7)
code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
writer.close()
model.close()
client.consumer.close()
sys.exit(code)
"""


def test_a_forked_child_ends_as_it_would_without_clients(job: Job, path: Path) -> None:
    done = ended(FORKED, path, job.name, job.kafka.bootstrap)
    assert (done.returncode, done.stderr) == (7, "")
    assert xs(job) == [1]


SAID = 40  # by librdkafka
LINES = 12  # each wording once in ten seconds, and what is said by ourselves
AWAY = "127.0.0.1:9"
QUICK = {"reconnect.backoff.ms": 5, "reconnect.backoff.max.ms": 5}


@pytest.fixture
def logger(monkeypatch: pytest.MonkeyPatch) -> logging.Logger:
    """librdkafka's, as if nothing had been said before."""
    logger = librdkafka_logger()
    monkeypatch.setattr(logger, "filters", [type(each)() for each in logger.filters])
    return logger


def warned(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


def test_what_a_writers_library_repeats_is_logged_seldom(
    caplog: pytest.LogCaptureFixture, logger: logging.Logger
) -> None:
    said = []
    logger.filters.insert(0, lambda record: said.append(record) is None)
    with caplog.at_level(logging.INFO):
        # many: librdkafka itself holds back what one of them says again for half a minute
        producers = [Producer({"bootstrap.servers": AWAY, **QUICK}, logger=logger) for _ in range(SAID)]
        while len(said) < SAID:
            for producer in producers:
                producer.poll(0.01)
    lines = warned(caplog)
    assert 1 <= len(lines) <= LINES, lines


@pytest.mark.usefixtures("logger")
def test_what_a_followers_library_repeats_is_logged_seldom(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO), LiveModel("job", AWAY, kafka=QUICK) as model, pytest.raises(KafkaUnreachable):
        model.wait_ready(5)
    lines = warned(caplog)
    assert 1 <= len(lines) <= LINES, lines
