"""Rows that RecordWriter.write has returned for reach Kafka, or an error says so; Kafka away floods no log."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import threading
from typing import Any

import pytest
from confluent_kafka import Producer

from streamtrain import Job, RecordWriter
from streamtrain.clients.live_model import LiveModel
from streamtrain.clients.topic_reader import read_messages
from streamtrain.errors import KafkaUnreachable, UserMistake
from streamtrain.kafka.admin import Admin
from streamtrain.log import librdkafka_logger
from streamtrain.topics.topic import job_topics

TEXT = """\
name = "{name}"
[kafka]
bootstrap.servers = "{bootstrap}"
[columns]
x = {{}}
late = {{ role = "label" }}
"""


@pytest.fixture
def job(kafka: Any) -> Job:
    job = Job.parse(TEXT.format(name=kafka.fresh_name("writer"), bootstrap=kafka.bootstrap))
    Admin(job.kafka.bootstrap, job.kafka_admin()).ensure(job_topics(job.name, job.topic_tables()))
    return job


def xs(job: Job) -> list[int]:
    found: list[int] = []
    for message in read_messages(job, "records", until_end=True):
        x = json.loads(message.value or b"")["x"]
        found += x if isinstance(x, list) else [x]
    return sorted(found)


def test_an_exception_in_the_block_flushes_what_was_gathered(job: Job) -> None:
    with pytest.raises(ZeroDivisionError), RecordWriter(job, pack=256) as writer:
        for number in range(10):
            writer.write({"x": number, "late": 0})
        1 / 0  # noqa: B018
    assert xs(job) == list(range(10))


def test_an_exception_in_the_block_says_what_is_not_delivered() -> None:
    job = Job.parse(TEXT.format(name="x", bootstrap="127.0.0.1:1"), sets=["kafka.producer.message.timeout.ms=300"])
    with pytest.raises(ZeroDivisionError) as raised, RecordWriter(job, pack=256) as writer:
        writer.write({"x": 1, "late": 0})
        1 / 0  # noqa: B018
    assert "a record was not delivered" in raised.value.__notes__[0]


@pytest.mark.parametrize("pack", [None, 7])
def test_many_threads_lose_nothing(job: Job, pack: int | None) -> None:
    def write(turn: int) -> None:
        for number in range(turn, 3_000, 6):
            writer.write({"x": number, "late": 0} if number % 5 else [{"x": number, "late": 0}])

    with RecordWriter(job, pack=pack) as writer:
        threads = [threading.Thread(target=write, args=(turn,)) for turn in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
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
    values = [json.loads(message.value or b"") for message in read_messages(job, "records", until_end=True)]
    assert sorted((value["late"], value["x"]) for value in values) == [(0, 1.5), (1, 7)]


def test_threads_that_write_while_it_is_closed_are_refused_or_delivered(job: Job) -> None:
    accepted: list[int] = []

    def write(turn: int) -> None:
        for number in range(turn, 1_000_000, 4):
            try:
                writer.write({"x": number, "late": 0})
            except UserMistake:
                return
            accepted.append(number)

    writer = RecordWriter(job, pack=3)
    threads = [threading.Thread(target=write, args=(turn,)) for turn in range(4)]
    for thread in threads:
        thread.start()
    while len(accepted) < 500:
        pass
    writer.close()
    for thread in threads:
        thread.join()
    assert xs(job) == sorted(accepted)


def test_after_close_it_refuses(job: Job) -> None:
    writer = RecordWriter(job)
    writer.close()
    writer.close()
    for call in (lambda: writer.write({"x": 1, "late": 0}), lambda: writer.write([]), writer.flush):
        with pytest.raises(UserMistake, match="expected an open writer, got a closed one"):
            call()
    lost = Job.parse(TEXT.format(name="x", bootstrap="127.0.0.1:1"), sets=["kafka.producer.message.timeout.ms=300"])
    writer = RecordWriter(lost)
    writer.write({"x": 1, "late": 0})
    with pytest.raises(KafkaUnreachable, match="a record was not delivered"):
        writer.close()
    with pytest.raises(UserMistake, match="got a closed one"):
        writer.write({"x": 1, "late": 0})


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
    """A full queue is waited for; the order stays, and nothing is written twice."""
    small = Job.parse(
        TEXT.format(name=job.name, bootstrap=job.kafka.bootstrap),
        sets=["kafka.producer.queue.buffering.max.messages=2", "topics.records.partitions=1"],
    )
    with RecordWriter(small, pack=1) as writer:
        writer.write([{"x": number, "late": 0} for number in range(50)])
        for number in range(50, 60):
            writer.write({"x": number, "late": 0})
    assert xs(job) == list(range(60))


OPEN_AT_THE_END = """
import sys
from streamtrain import RecordWriter
writer = RecordWriter(sys.argv[1], pack=256)
for number in range(5):
    writer.write({"x": number, "late": 0})
"""


def test_a_writer_left_open_at_the_programs_end_sends_or_says(job: Job, tmp_path: Any) -> None:
    path = tmp_path / "job.toml"
    path.write_text(TEXT.format(name=job.name, bootstrap=job.kafka.bootstrap))
    subprocess.run([sys.executable, "-c", OPEN_AT_THE_END, str(path)], check=True)
    assert xs(job) == list(range(5))
    lost = TEXT.format(name="x", bootstrap="127.0.0.1:1")
    path.write_text(lost.replace("[columns]", 'producer."message.timeout.ms" = 300\n[columns]'))
    told = subprocess.run([sys.executable, "-c", OPEN_AT_THE_END, str(path)], capture_output=True, text=True)
    assert "RecordWriter to x.records was not closed: x.records: a record was not delivered" in told.stderr, told


def test_a_forked_child_is_refused_and_ends_well(job: Job) -> None:
    with RecordWriter(job, pack=256, on_delivery=lambda error, message: None) as writer:
        writer.write({"x": 1, "late": 0})
        child = os.fork()
        if child == 0:  # no assert here: the child must end by _exit
            told = 0
            for call in (lambda: writer.write({"x": 2, "late": 0}), writer.flush):
                try:
                    call()
                except UserMistake as error:
                    told += "after a fork" in str(error)
            writer.close()
            os._exit(0 if told == 2 else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert xs(job) == [1]


FORKED = """
import gc, os, sys
from streamtrain import LiveModel, RecordWriter
writer = RecordWriter(sys.argv[1], pack=256)
writer.write({"x": 1, "late": 0})
model = LiveModel(sys.argv[2], sys.argv[3])
while not model.connected:
    pass
child = os.fork()
if child == 0:
    del writer, model
    gc.collect()
    sys.exit(7)
code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
writer.close()
model.close()
sys.exit(code)
"""


def test_a_forked_child_ends_as_it_would_without_clients(job: Job, tmp_path: Any) -> None:
    path = tmp_path / "job.toml"
    path.write_text(TEXT.format(name=job.name, bootstrap=job.kafka.bootstrap))
    arguments = [str(path), job.name, job.kafka.bootstrap]
    ended = subprocess.run([sys.executable, "-c", FORKED, *arguments], capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (7, "")
    assert xs(job) == [1]


SAID = 40  # by librdkafka
LINES = 12  # each wording once in ten seconds, and what is said by ourselves
AWAY = "127.0.0.1:9"
QUICK = {"reconnect.backoff.ms": 5, "reconnect.backoff.max.ms": 5}


def warned(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


def test_what_a_writers_library_repeats_is_logged_seldom(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = []
    logger = librdkafka_logger()
    monkeypatch.setattr(logger, "filters", [lambda record: said.append(record) is None, *logger.filters])
    with caplog.at_level(logging.INFO):
        producer = Producer({"bootstrap.servers": AWAY, "enable.idempotence": True, **QUICK}, logger=logger)
        while len(said) < SAID:
            producer.poll(0.1)
    lines = warned(caplog)
    assert 1 <= len(lines) <= LINES, lines


def test_what_a_followers_library_repeats_is_logged_seldom(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO), LiveModel("job", AWAY, kafka=QUICK) as model, pytest.raises(KafkaUnreachable):
        model.wait_ready(5)
    lines = warned(caplog)
    assert 1 <= len(lines) <= LINES, lines
