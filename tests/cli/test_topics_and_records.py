"""Topics are made, rows produced and read by the command line, from files and standard input; a produce that is stopped
says how to go on."""

from __future__ import annotations

import io
import json
import random
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from example_format import plain_formats
from waiting import wait_for

from streamtrain.broker import Broker
from streamtrain.cli.commands.produce import Sent
from streamtrain.columns.rejected import Rejecting
from streamtrain.columns.schema import Schema
from streamtrain.files.blocks import Size
from streamtrain.files.column_selection import ColumnSelection
from streamtrain.files.reading import read_blocks, without_first
from streamtrain.job import Job
from streamtrain.kafka.admin import Admin
from tests.cli.conftest import Run
from tests.e2e import commands
from tests.e2e.harness import LiveJob

NewJob = Callable[..., Path]


EXPECTED = [
    {"flight": "1", "delay": 1.5, "carrier": "AA", "late": 1},
    {"flight": "2", "delay": None, "carrier": "UA", "late": 0},
    {"flight": "1", "delay": "bad", "carrier": "U,A", "late": 0},
    {"flight": "3", "delay": -3, "carrier": None, "late": None},
]


def records(run: Run, job: Path, topic: str = "records") -> list[Any]:
    ended = run("read", job, topic, "--until-end", "--json")
    assert ended.code == 0
    return ended.lines


def rows_of(lines: list[Any]) -> list[Any]:
    return sorted((row for line in lines for row in line["rows"]), key=lambda row: (row["flight"], str(row["carrier"])))


def test_create_says_what_it_would_do_then_does_it_once(run: Run, new_job: NewJob) -> None:
    path = new_job()
    job = Job.load(path)
    planned = run("topics", "create", path, "--dry-run", "--json").document
    assert planned["dry_run"] and {topic["action"] for topic in planned["topics"]} == {"would create"}
    assert not any(topic["exists"] for topic in run("topics", "describe", path, "--json").document["topics"])
    topics = run("topics", "create", path, "--json").document["topics"]
    assert {topic["action"] for topic in topics} == {"created"}
    assert [t["partitions"] for t in topics if t["topic"] == "records"] == [2]
    assert {topic["action"] for topic in run("topics", "create", path, "--json").document["topics"]} == {"exists"}
    described = {topic["topic"]: topic for topic in run("topics", "describe", path, "--json").document["topics"]}
    assert described["records"]["name"] == f"{job.name}.records" and described["records"]["partitions"] == 2
    assert described["snapshots"]["config"]["cleanup.policy"] == "compact"
    assert f"{job.name}.dead-letters" in run("topics", "describe", path).out


def test_what_a_missing_topic_needs_is_said(run: Run, new_job: NewJob, rows: Path) -> None:
    """Rows for it would wait until they are too old, and that would be told as a broker that does not answer."""
    path = new_job()
    for call in (("produce", path, "--input", rows), ("history", path)):
        ended = run(*call)
        assert ended.code == 2 and "found none" in ended.err and "streamtrain topics create" in ended.err, ended.err
    ended = run("read", path, "predictions", "--until-end")
    assert ended.code == 2 and "make its topics with 'streamtrain topics create" in ended.err


def test_a_csv_comes_back_as_rows(run: Run, job: Path, rows: Path) -> None:
    """Messages are JSON, or one line each for people."""
    ended = run("produce", job, "--input", rows, "--json")
    assert ended.code == 0
    document = ended.document
    assert (document["rows"], document["records"], document["stopped"]) == (4, 4, False)
    lines = records(run, job)
    assert rows_of(lines) == sorted(EXPECTED, key=lambda row: (row["flight"], str(row["carrier"])))
    assert {(line["key"], line["rows"][0]["flight"]) for line in lines} == {("1", "1"), ("2", "2"), ("3", "3")}
    assert len({line["partition"] for line in lines if line["key"] == "1"}) == 1
    for_people = run("read", job, "records", "--until-end").out.splitlines()
    assert len(for_people) == 4
    (first,) = (line for line in for_people if "1.5" in line)
    assert first.endswith('@0 1  {"delay": 1.5, "carrier": "AA", "late": 1, "flight": "1"}')
    run("produce", job, "--input", rows, "--to", "requests")
    requests = records(run, job, "requests")
    assert requests and all("late" not in row for line in requests for row in line["rows"])
    assert records(run, job) == lines


PLAIN = Schema.from_columns({"x": {}, "late": {"role": "label"}}, "binary_cross_entropy")


@pytest.mark.parametrize("format", plain_formats(PLAIN))
def test_packed_rows_share_a_record_by_key(run: Run, new_job: NewJob, tmp_path: Path, rows: Path, format: str) -> None:
    path = new_job(format=format)
    run("topics", "create", path, "-q")
    good = tmp_path / "good.csv"
    good.write_text(rows.read_text().replace("bad", "7"))
    document = run("produce", path, "--input", good, "--pack", 100, "--json").document
    assert (document["rows"], document["records"]) == (4, 3)
    cells = [row.get("delay") for line in records(run, path) for row in line["rows"]]
    assert sorted(float(cell) for cell in cells if cell is not None) == [-3, 1.5, 7]


def test_standard_input_as_json_lines(run: Run, job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = "\n".join(json.dumps(row) for row in EXPECTED)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(lines.encode())))
    assert run("produce", job, "--input", "-", "--json").document["rows"] == 4
    assert len(rows_of(records(run, job))) == 4


def test_parquet(run: Run, job: Path, tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    table = pyarrow.table({"flight": [1, 2], "delay": [0.5, None], "carrier": ["AA", "UA"], "late": [True, False]})
    pyarrow.parquet.write_table(table, path)
    run("produce", job, "--input", path)
    assert rows_of(records(run, job)) == [
        {"flight": 1, "delay": 0.5, "carrier": "AA", "late": True},
        {"flight": 2, "delay": None, "carrier": "UA", "late": False},
    ]


BAD_INPUT = (
    ("rows.csv", "delay,delay\n1,2\n", "rows.csv:1: expected column names that differ"),
    ("rows.csv", "delay,late\n1\n", "rows.csv:2: expected 2 cells, got 1"),
    ("rows.jsonl", '{"delay": 1}\n[1]\n', "rows.jsonl:2: expected a JSON object"),
    ("rows.jsonl", '{"delay": 1}\n{"delay\n', "rows.jsonl:2: expected a JSON object"),
    ("rows.txt", "x", "rows.txt: expected a file ending in .arrow"),
    ("rows.csv", "a,b\n1,2\n", "expected some of the job's columns"),
    ("rows.parquet", "x", "not a Parquet file"),
)


def test_bad_input(run: Run, job: Path, tmp_path: Path) -> None:
    wrong = []
    for name, text, message in BAD_INPUT:
        (tmp_path / name).write_text(text)
        ended = run("produce", job, "--input", tmp_path / name)
        if ended.code != 2 or message not in ended.err:
            wrong.append((message, ended))
    assert wrong == []


def test_rate_paces(run: Run, job: Path, tmp_path: Path) -> None:
    path = tmp_path / "many.csv"
    path.write_text("delay\n" + "1\n" * 60)
    document = run("produce", job, "--input", path, "--rate", 100, "--json").document
    assert document["rows"] == 60 and 0.5 < document["seconds"] < 60


def has_records(path: Path, count: int) -> bool:
    job = Job.load(path)
    return sum(end for _, end in Admin(job.kafka.bootstrap).spans(f"{job.name}.records") or []) >= count


@pytest.mark.parametrize(
    ("number", "code"), [pytest.param(signal.SIGINT, 130, marks=pytest.mark.full), (signal.SIGTERM, 0)]
)
def test_a_signal_delivers_what_was_written(run: Run, job: Path, tmp_path: Path, number: int, code: int) -> None:
    path = tmp_path / "many.csv"
    path.write_text("delay\n" + "1\n" * 100_000)
    with (tmp_path / "errors").open("w") as errors:
        producer = commands.start(
            ["produce", str(job), "--input", str(path), "--rate", "500", "--json"], errors, {}
        )  # fmt: skip
    wait_for(lambda: has_records(job, 50))  # it is in full swing
    producer.send_signal(number)
    out, _ = producer.communicate(timeout=240)
    document = json.loads(out)
    assert producer.returncode == code and document["stopped"] and 50 <= document["rows"] < 100_000
    assert sum(len(line["rows"]) for line in records(run, job)) == document["rows"]


def test_bootstrap_and_set_stand_over_the_file(run: Run, new_job: NewJob, kafka: Any) -> None:
    path = new_job(name="x", bootstrap="127.0.0.1:1")
    name = kafka.fresh_name("cli")
    for flag in ("-b", "--bootstrap", "--bootstrap-server"):
        ended = run("topics", "create", path, flag, kafka.bootstrap, "--set", f"name={name}", "--json")
        assert ended.document["topics"][0]["name"].startswith(name)


def test_ctrl_c_ends_the_wait_for_standard_input(run: Run, job: Path) -> None:
    command = [*commands.STREAMTRAIN, "produce", str(job), "--input", "-", "--json"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as producer:
        assert producer.stdin is not None
        producer.stdin.write('{"delay": 1}\n')  # is sent without waiting for more
        producer.stdin.flush()
        wait_for(lambda: has_records(job, 1))
        producer.send_signal(signal.SIGINT)
        assert producer.wait(240) == 130
        document = json.loads(producer.stdout.read() if producer.stdout is not None else "")
    assert document["stopped"] and document["rows"] == 1


# -- what `check` warns of, where there are more disks than Kafka uses -----------------------------------------------

WEAK = "{ replication = 1 }", '{ replication = 3, config = { "min.insync.replicas" = 1 } }'
SAFE = ('{ replication = 3, config = { "min.insync.replicas" = 2 } }',) * 2


def warnings(kafka: Any, folder: Path, records: str, snapshots: str) -> list[str]:
    """Returns what `check` warns of on a job's new topics."""
    topics = f"[topics]\nrecords = {records}\nsnapshots = {snapshots}\n"
    job = LiveJob(kafka, folder, "disks", topics + '[columns]\ndelay = {}\nlate = { role = "label" }\n')
    ended = job.here("check", "--json")
    assert ended.returncode == 0
    found = [each["text"] for each in json.loads(ended.stdout)["findings"] if each["state"] == "warning"]
    return [text.removeprefix(f"{job.name}.") for text in found]


@pytest.mark.full
def test_one_copy_or_one_in_sync_on_many_brokers(private_kafka: Callable[..., Broker], tmp_path: Path) -> None:
    bootstrap = private_kafka(nodes=3).bootstrap
    kafka = SimpleNamespace(bootstrap=bootstrap, fresh_name=lambda prefix: f"{prefix}-{time.monotonic_ns()}")
    assert warnings(kafka, tmp_path, *WEAK) == [
        "records: 1 copy on 3 brokers, a lost disk loses it; 3 copies are usual",
        "snapshots: min.insync.replicas is 1 of 3 copies, what is acknowledged may be on one disk only; 2 is usual",
    ]
    assert warnings(kafka, tmp_path, *SAFE) == []


def test_one_broker_is_not_warned_of(kafka: Any, tmp_path: Path) -> None:
    assert warnings(kafka, tmp_path, "{ replication = 1 }", "{ replication = 1 }") == []


ROWS = 9_000


def line(number: int, end: str) -> str:
    return f"{number},AA,1,{number % 7}" if end == ".csv" else json.dumps({"delay": number, "late": 1, "flight": "7"})


def written(path: Path, bad: dict[int, str] | None = None) -> Path:
    lines = [line(number, path.suffix) for number in range(ROWS)]
    for number, text in (bad or {}).items():
        lines[number] = text
    path.write_text("\n".join([*(["delay,carrier,late,flight"] if path.suffix == ".csv" else []), *lines, ""]))
    return path


def delays(run: Run, job: Path) -> list[float]:
    return sorted(row["delay"] for line in records(run, job) for row in line["rows"])


def given_command(text: str) -> list[str]:
    """The arguments of the command that goes on."""
    found = re.search(r"go on with: (streamtrain .*?--skip \d+.*)", text.replace("\n", " "))
    assert found is not None, text
    return shlex.split(found[1])[1:]


@pytest.mark.parametrize("end", [".csv", ".jsonl"])
def test_a_mistake_anywhere_leaves_nothing_or_says_what_is_sent(run: Run, job: Path, tmp_path: Path, end: str) -> None:
    path, drawn, strict = tmp_path / f"rows of{end}", random.Random(end), ("--max-rejected", "0")
    for bad in ("1,2", "{") if end == ".jsonl" else ("1,AA",):
        written(path, {drawn.randrange(ROWS): bad})
        ended = run("produce", job, "--input", path, "--pack", drawn.choice((1, 7, 256)), *strict)
        assert ended.code == 2 and "no row is sent" in ended.err and not has_records(job, 1), ended.err
    written(path, {drawn.randrange(4_096, ROWS): "1,AA" if end == ".csv" else "{"})
    ended = run("produce", job, "--input", path, "--pack", 100, "--no-check", *strict)
    assert ended.code == 2 and re.search(r"[1-9],?\d* rows are sent", ended.err), ended.err
    written(path)
    again = run(*given_command(ended.err), "--json").document
    assert 0 < again["skipped"] < ROWS and again["skipped"] + again["rows"] == ROWS
    assert delays(run, job) == list(range(ROWS))


def test_rows_that_no_record_can_hold_are_left_out_and_counted(run: Run, job: Path, tmp_path: Path) -> None:
    """Catches a row that takes others of its block along, and a --skip that does not count it."""
    path, bad = tmp_path / "rows.jsonl", (0, 1, 700, 4_999, 5_000, 8_999)
    written(path, dict(zip(bad, ['{"delay": 1e400, "late": 1}', '{"delay": [1], "late": 1}', "7"] * 2, strict=True)))
    refused = run("produce", job, "--input", path, "--max-rejected", 5 / ROWS)
    assert refused.code == 2 and f"{path}:1 at $.delay" in refused.err and "raise --max-rejected" in refused.err
    assert "no row is sent" in refused.err and not has_records(job, 1)
    first = run("produce", job, "--input", path, "--pack", 100, "--limit", 5_000)
    assert "4,996 rows" in first.out and f"{path}:2 at $.delay" in first.err and "4 of 5,000 rows" in first.err
    second = run("produce", job, "--input", path, "--pack", 100, "--skip", 5_000, "--no-check", "--json").document
    assert (second["rows"], second["rejected"]) == (3_998, 2)
    assert delays(run, job) == [number for number in range(ROWS) if number not in bad]


def test_a_signal_says_how_to_go_on(run: Run, job: Path, tmp_path: Path) -> None:
    path = written(tmp_path / "rows.csv")
    with (tmp_path / "errors").open("w") as errors:
        producer = commands.start(["produce", str(job), "--input", str(path), "--rate", "2000"], errors, {})
    wait_for(lambda: has_records(job, 50))
    producer.send_signal(signal.SIGINT)
    out, _ = producer.communicate(timeout=240)
    arguments = given_command(str(out))
    assert arguments[-4:-2] == ["--rate", "2000.0"]
    run(*[each if each != "2000.0" else "0" for each in arguments])
    assert delays(run, job) == list(range(ROWS))


def test_limit_and_skip_divide_a_file(run: Run, job: Path, tmp_path: Path) -> None:
    path, done = written(tmp_path / "rows.csv"), 0
    for limit in (1, 4_095, 2, 4_097, 805):
        done += run("produce", job, "--input", path, "--skip", done, "--limit", limit, "--json").document["rows"]
    assert done == ROWS and delays(run, job) == list(range(ROWS))
    assert run("produce", job, "--input", path, "--skip", ROWS, "--json").document["rows"] == 0


def test_every_form_leaves_out_the_first_rows(tmp_path: Path) -> None:
    import pyarrow.parquet

    tables = {"columns": {"x": {}, "y": {"role": "label"}}, "model": {"loss": "mean_squared_error"}}
    job = Job.from_tables(tables)
    rows = [{"x": float(number), "y": 0.0} for number in range(50)]
    (tmp_path / "a.csv").write_text("x,y\r\n" + "".join(f'{row["x"]},"0"\r\n\r\n' for row in rows))
    (tmp_path / "a.jsonl").write_text("\n\n".join(map(json.dumps, rows)))
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "a.parquet", row_group_size=7)
    plan = job.plan()
    for path in tmp_path.iterdir():
        whole = list(read_blocks([str(path)], ColumnSelection(job.schema), Size(8)))
        for skip in range(52):
            left = list(without_first(iter(whole), skip))
            records = [record for block in left for record in plan.records(block)]
            found = plan.joined(plan.batches(records, bare=True))["x"].tolist() if records else []
            assert found == [row["x"] for row in rows[skip:]], (path, skip)
            line = {".csv": f":{2 * skip + 2}", ".jsonl": f":{2 * skip + 1}", ".parquet": f" row {skip}"}[path.suffix]
            assert not left or left[0].where(0).endswith(line)


@pytest.mark.parametrize("seed", range(20))
def test_only_rows_up_to_the_first_undelivered_record_count(seed: int) -> None:
    """Kafka went away: what lies behind a lost record would be there twice, and is told."""
    drawn, sent, calls = random.Random(seed), Sent(), []

    class Writer:
        rows_written = records_written = 0

        def write(self, rows: Any, on_delivery: Any, on_rejected: Any) -> None:
            self.rows_written += rows.row_count
            self.records_written += 2
            calls.extend([(on_delivery, rows.row_count)] * 2)

    writer: Any = Writer()
    for _ in range(10):
        sent.write(writer, SimpleNamespace(row_count=drawn.randint(1, 9)), Rejecting())  # type: ignore[arg-type]
    lost = drawn.randrange(len(calls))
    for number, (call, _) in enumerate(calls):
        call("gone" if number == lost or (number > lost and drawn.random() < 0.3) else None, None)
    assert sent.rows == sum(count for _, count in calls[: lost - lost % 2 : 2])
    assert sent.records_behind <= len(calls) - (lost - lost % 2) - 1
