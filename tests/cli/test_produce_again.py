"""However `produce` ends, it says what is sent, and the command that it gives sends the other rows: each row once."""

from __future__ import annotations

import json
import random
import re
import shlex
import signal
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from waiting import wait_for

from streamtrain.cli.commands.produce import Sent
from streamtrain.columns.rejected import Rejecting
from streamtrain.files.blocks import Size
from streamtrain.files.reading import read_blocks, without_first
from streamtrain.files.wanted import Wanted
from streamtrain.job import Job
from tests.cli.conftest import Run
from tests.cli.test_topics_and_records import has_records, records
from tests.e2e import commands

ROWS = 9_000


@pytest.fixture
def job(run: Run, new_job: Callable[..., Path]) -> Path:
    path = new_job()
    assert run("topics", "create", path, "-q").code == 0
    return path


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
        whole = list(read_blocks([str(path)], Wanted(job.schema), Size(8)))
        for skip in range(52):
            left = list(without_first(iter(whole), skip))
            made = [record for block in left for record in plan.encoded(block)]
            found = plan.joined(plan.batches(made, bare=True))["x"].tolist() if made else []
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
