"""Records from one topic to another, packed and keyed, each row once, whatever ends it in between."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import pytest
from confluent_kafka import Producer
from example_format import example_format, row_formats
from waiting import wait_for

from streamtrain import Job
from streamtrain.cli import main
from streamtrain.clients import repacking
from streamtrain.clients.repacking import Repacked, Repacker
from streamtrain.columns.formats import Format, parse, record_format
from streamtrain.columns.records import Records
from streamtrain.columns.row_plan import RowPlan
from streamtrain.errors import StreamtrainError, UserMistake
from streamtrain.kafka.admin import Admin
from streamtrain.kafka.clients import KafkaConsumer, Message
from streamtrain.kafka.reader import read_all
from streamtrain.kafka.settings import Purpose
from streamtrain.topics.topic import TopicWish

JOB = """
name = "{name}"
[kafka]
bootstrap.servers = "{bootstrap}"
[records]
where = "x > -50"
[columns]
x = {{}}
city = {{ kind = "category", buckets = 64 }}
tenant = {{ kind = "category", buckets = 9, from = "key" }}
late = {{ role = "label", missing = "skip" }}
[model]
loss = "binary_cross_entropy"
"""
ROWS = 1_000
BAD = {17: b"[", 18: b'{"x": "n/a", "city": "a", "late": 1}', 19: b'{"x": -60, "city": "a", "late": 1}', 20: b"",
       21: b'[{"x": 21, "city": "a", "late": 1}, {"x": 22}, [23, 7, 0]]'}  # fmt: skip


@pytest.fixture
def job(kafka: Any, tmp_path: Path) -> Job:
    """Rows of four keys in two partitions, some of them bad, and a topic to write to."""
    path = tmp_path / "job.toml"
    path.write_text(JOB.format(name=kafka.fresh_name("repack"), bootstrap=kafka.bootstrap))
    job = Job.load(path)
    records = []
    for number in range(ROWS):
        row = {"x": number, "city": f"c{number % 7}", "late": number % 2, "id": f"i{number % 3}"}
        headers = [("h", b"1")] if number % 4 == 0 and number % 400 < 200 else []
        records.append((BAD.get(number, json.dumps(row).encode()), f"k{number % 4}", number % 2, headers))
    produce(job, records, 2, 3)
    return job


def produce(job: Job, records: list[Any], partitions: int, target_partitions: int) -> None:
    """Value, key, partition and headers of each record, to a topic that is made first; so is the one to write to."""
    wishes = [TopicWish("records", source(job), partitions), TopicWish("target", target(job), target_partitions)]
    Admin(job.kafka.bootstrap).ensure(wishes)
    producer = Producer({"bootstrap.servers": job.kafka.bootstrap, "enable.idempotence": True})  # in this order
    for value, key, partition, headers in records:
        producer.produce(source(job), value, key, partition, headers=headers)
    assert producer.flush(30) == 0


def source(job: Job) -> str:
    return str(job.topic("records").name)


def target(job: Job) -> str:
    return f"{job.name}.packed"


def messages(job: Job, topic: str) -> Iterator[Message]:
    admin = Admin(job.kafka.bootstrap, job.kafka_admin())
    count = len(admin.spans(topic) or [])
    wait_for(lambda: admin.last_stable(topic, count) == admin.high_watermarks(topic, count))  # commits are there
    spans = dict(enumerate(admin.spans(topic) or []))
    with KafkaConsumer.open(Purpose.READ, job.kafka_consumer(), "test") as consumer:
        yield from read_all(consumer, topic, spans)  # type: ignore[arg-type]


def trained(job: Job, topic: str, format: Format) -> list[tuple[float, ...]]:
    """What is trained of a topic's records, in no order."""
    plan = RowPlan(job.schema, format, repacking.FORMAT)
    records = ((message.value or b"", message.around()) for message in messages(job, topic) if message.value)
    found = plan.joined(plan.batches(records), "leave_out")
    return sorted(zip(*(np.asarray(found[name]).tolist() for name in found), strict=True))


def written(job: Job) -> list[tuple[float, ...]]:
    return trained(job, target(job), repacking.FORMAT)


def check(job: Job, told: Repacked) -> None:
    expected = trained(job, source(job), "json")
    assert written(job) == expected and len(expected) == told.rows == ROWS - 5 + 2
    assert (told.filtered, told.left_out, len(told.first)) == (2, 2, 2)
    assert any(each.startswith(f"{source(job)}[1]@8 row 0 at $: expected ") for each in told.first)


def test_rows_are_packed_under_their_keys(job: Job) -> None:
    (told,) = Repacker(job, source(job), target(job), 64).run()
    check(job, told)
    found = list(messages(job, target(job)))
    assert {message.key for message in found} == {b"k0", b"k1", b"k2", b"k3"}
    assert {(message.key, tuple(message.headers)) for message in found} == {
        (b"k0", ()), (b"k0", (("h", b"1"),)), (b"k1", ()), (b"k2", ()), (b"k3", ())
    }  # fmt: skip
    assert len({message.partition for message in found}) > 1 and len(found) == told.records < ROWS / 30
    assert list(Repacker(job, source(job), target(job), 64).run()) == []


def test_a_key_column_gives_the_keys(job: Job) -> None:
    keyed = JOB.replace("x = {{}}", 'x = {{}}\nid = {{ role = "key" }}').replace(', from = "key"', ', missing = ""')
    other = Job.parse(keyed.format(name=job.name, bootstrap=job.kafka.bootstrap))
    (told,) = Repacker(other, source(job), target(job), 64).run()
    found = list(messages(job, target(job)))
    assert {message.key for message in found} == {b"i0", b"i1", b"i2", None}
    assert written(other) == trained(other, source(job), "json") and told.rows == ROWS - 4


def test_a_transaction_is_bounded_in_bytes(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repacking, "BYTES_A_TRANSACTION", 10_000)
    at: list[int] = []
    for told in Repacker(job, source(job), target(job), 64).run():
        at.append(told.messages)
    check(job, told)
    sizes = [len(message.value or b"") for message in messages(job, source(job))]
    assert at[-1] == ROWS and sum(sizes) / (10_000 + max(sizes)) <= len(at) <= sum(sizes) / 10_000 + 1


def test_each_row_is_written_once_whatever_ends_it(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repacking, "MESSAGES_A_TRANSACTION", 150)
    first = Repacker(job, source(job), target(job), 7).run()
    assert [next(first).messages, next(first).messages] == [150, 300]

    def failing(name: str) -> None:
        if name == "vectorize.written":
            raise ConnectionError("pulled the plug")

    with monkeypatch.context() as broken:
        broken.setattr(repacking, "hit", failing)
        with pytest.raises(ConnectionError):
            list(first)
    before = len(written(job))
    second = Repacker(job, source(job), target(job), 7).run()
    one = next(second)
    assert one.messages == 150 and len(written(job)) == before + one.rows
    third = Repacker(job, source(job), target(job), 7).run()
    next(third)
    with pytest.raises(StreamtrainError):  # fenced by the third
        next(second)
    rest = list(third)[-1]
    assert rest.messages == ROWS - 450
    assert written(job) == trained(job, source(job), "json")


def test_the_command(job: Job, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["vectorize", str(tmp_path / "job.toml"), "--from-topic", source(job), "--to-topic", target(job)]
    for arguments, code in (([*given, "--json"], 0), (given[:4], 2), ([*given, "--input", "x.csv"], 2),
                            ([*given[:-1], f"{job.name}.nowhere"], 2)):  # fmt: skip
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        assert ended.value.code == code
        out = capsys.readouterr().out
        if not code:
            told = json.loads(out)
            assert (told["rows"], told["left_out"], told["filtered"]) == (ROWS - 3, 2, 2)
    assert written(job) == trained(job, source(job), "json")


def test_columns_that_a_packed_record_cannot_hold_are_refused(job: Job) -> None:
    for more in ('wide = { kind = "sparse", buckets = 9 }', 'at = { from = "timestamp" }'):
        changed = JOB.replace("x = {{}}", "x = {{}}\n" + more.replace("{", "{{").replace("}", "}}"))
        other = Job.parse(changed.format(name=job.name, bootstrap=job.kafka.bootstrap))
        with pytest.raises(UserMistake, match=r"wide|timestamp"):
            Repacker(other, source(job), target(job), 64)
    with pytest.raises(UserMistake, match="another topic"):
        Repacker(job, source(job), source(job), 64)


EXAMPLE_COLUMNS = """
[columns]
x1 = { }
x2 = { missing = 0 }
carrier = { kind = "category", buckets = 64, missing = "" }
late = { role = "label", missing = "skip" }
"""
ALL_KINDS = """
[columns]
x = { }
w = { role = "weight", missing = 1 }
v = { kind = "vector", size = 3, missing = 0 }
c = { kind = "category", buckets = 64, missing = "none" }
id = { kind = "category", hash_bits = 64, buckets = 64, missing = "" }
p = { parse = "decimal", missing = 0 }
at = { role = "event_time", parse = "iso8601", missing = 0 }
s = { kind = "text", ngrams = [1, 2], buckets = 64, missing = "" }
age = { path = "user.age", missing = 0 }
t = { kind = "category", list = true, buckets = 64, missing = "none" }
late = { role = "label", missing = "skip" }
"""


def repacked(kafka: Any, columns: str, format: Format, records: list[bytes]) -> tuple[Job, Repacked, list[Message]]:
    """Records of a topic of one partition, and what was made of them."""
    options = {"format": format} if isinstance(format, str) else {**format, "format": format["name"]}
    plain = Job.parse(JOB.format(name=kafka.fresh_name("repack"), bootstrap=kafka.bootstrap))
    records_table = {name: value for name, value in options.items() if name != "name"}
    tables = {"name": plain.name, "records": records_table, "model": {"loss": "binary_cross_entropy"}}
    job = replace(Job.from_tables(tables | tomllib.loads(columns)), kafka=plain.kafka)
    produce(job, [(record, None, 0, []) for record in records], 1, 1)
    (told,) = Repacker(job, source(job), target(job), 64).run()
    return job, told, list(messages(job, target(job)))


@pytest.mark.parametrize("name", row_formats())
def test_every_format_is_packed(kafka: Any, name: str) -> None:
    format = example_format(name)
    job, told, _ = repacked(kafka, EXAMPLE_COLUMNS, format, list(record_format(name).EXAMPLES))
    expected = trained(job, source(job), format)
    assert written(job) == expected and len(expected) == told.rows >= 8


def all_kinds(count: int) -> list[dict[str, Any]]:
    return [{
        "x": number % 5 - 0.5, "w": 1 + number % 2, "v": [1, 2.5, number], "c": ["AA", 7, True, "é", None][number % 5],
        "id": ["q", 5, "r"][number % 3], "p": "12.5" if number % 2 else 3, "at": f"2026-11-22T02:10:{number % 60:02}Z",
        "s": ["hello world", "a b c", None][number % 3],
        "t": [["a", 7, None, True], [], None, ["\u00e9"]][number % 4], "user": {"age": number % 90}, "late": number % 2,
    } for number in range(count)]  # fmt: skip


def test_records_have_the_bytes_that_a_programs_rows_have(kafka: Any) -> None:
    """More rows than lie in a slot; those without a label are filtered between them."""
    rows = all_kinds(3_000)
    given = [msgpack.packb({**row, "late": row["late"] if number % 7 else None}) for number, row in enumerate(rows)]
    many = [msgpack.packb(rows[2_900:])]
    job, told, found = repacked(kafka, ALL_KINDS, "msgpack", given[:2_900] + many)
    kept = [row for number, row in enumerate(rows) if number % 7 or number >= 2_900]
    made = Records(job.schema, repacking.FORMAT, "", 64, 1 << 20).blocks(kept, None, False)
    assert [message.value for message in found] == [record.value for block in made for record in block]
    assert (told.rows, told.filtered, told.left_out) == (len(kept), 3_000 - len(kept), 0)


def test_a_dead_rows_cells_stay_its_own(kafka: Any) -> None:
    """The next row takes its place, also where it has no such cell; of a cell given twice the last counts."""
    good = {"x": 1, "w": 2, "c": "AA", "late": 1}
    records = [json.dumps({**good, "v": [1, 2, "n/a"]}), json.dumps({"x": 2, "late": 0}),
               '{"x": 3, "c": "AA", "w": 2, "c": null, "late": 1}', json.dumps({**good, "x": "n/a"}),
               '[{"x": 4, "late": 1}]']  # fmt: skip
    _, told, (message,) = repacked(kafka, ALL_KINDS, "json", [each.encode() for each in records])
    found = dict(parse(repacking.FORMAT, message.value or b"").columns or [])
    assert (found["x"], told.rows, told.left_out) == ([2, 3, 4], 3, 2) and not {"v", "c"} & found.keys()
    assert found["w"][1] == 2 and found["late"] == [0, 1, 1]
