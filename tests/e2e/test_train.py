"""The trainer from topic to topic: rows counted exactly, snapshots whole, resumed where it ended."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import psutil
import pytest

from streamtrain.checks.replay import replay
from streamtrain.checks.verify import verify
from streamtrain.clients.dead_letters import dead_rows, read_dead_letters
from streamtrain.errors import UserMistake
from streamtrain.files.found import found_files
from streamtrain.kafka.round_logs import round_logs
from streamtrain.run.cores import format_cores, usable_cores
from streamtrain.topics.manifest import Counts
from streamtrain.topics.rounds import first_chain
from streamtrain.topics.shelves import is_manifest
from streamtrain.topics.snapshots import publish
from streamtrain.topics.topic import Message, job_topics
from tests.e2e.harness import LiveJob, Running, rows
from tests.e2e.test_gaps import delete
from tests.e2e.threaded import rows_after, trained
from tests.fitting.test_fit import written


@pytest.mark.parametrize("workers", [1, 3])  # two: in every sink
def test_every_row_is_trained_once(kafka: Any, tmp_path: Path, workers: int) -> None:
    job = LiveJob(kafka, tmp_path, workers=workers, batch_rows=16, produce=5000)  # 100 updates for each of 3 workers
    assert rows_after(job.path) == 5000
    job.check(5000)
    total = job.newest().manifest.metrics["total"]
    assert total["log_loss"] < total["constant_log_loss"] and total["auc"] > 0.85


def test_batches_grow_over_runs_as_the_terms_say_and_replay_gives_the_same_bits(kafka: Any, tmp_path: Path) -> None:
    job = LiveJob(kafka, tmp_path, partitions=1, batch_growth=60, workers=1, round_interval="off", produce=2000)
    rows_after(job.path, max_rows=700)
    rows_after(job.path)
    job.check(2000)
    logs = [logs.first for logs in round_logs(job.job.kafka_consumer(), f"{job.name}.rounds")]
    growth = {"name": "rows_seen", "rows": 60, "min_rows": 1}
    assert all(terms.batch_growth == growth for log in logs for terms in log.terms)
    sizes = np.concatenate([log.slots["rows"] for log in logs]).tolist()
    seen = np.cumsum([0, *sizes[:-1]])
    ends = {700, 2000}  # of the runs: there a batch closes before it is full
    grown = [(size, max(1, at // 60)) for size, at in zip(sizes, seen, strict=True) if at + size not in ends]
    assert [size for size, _ in grown] == [expected for _, expected in grown]


def test_a_record_of_many_rows_straddles_batches_and_runs(kafka: Any, tmp_path: Path) -> None:
    job = LiveJob(kafka, tmp_path, partitions=1)
    many = list(rows(2000))
    job.produce_values([msgpack.packb(many[:700]), msgpack.packb(many[700:1999]), msgpack.packb(many[1999:])])
    assert [rows_after(job.path, max_rows=bound) for bound in (333, 500, 700)] == [333, 833, 1533]
    last = job.train("--until-end", "--set", "train.batch_rows=32", "--workers", "1")
    started = next(event for event in last if event["event"] == "started")
    assert started["resumed"] and (started["rows"], last[-1]["rows"]) == (1533, 2000)
    report = job.verified()
    assert report["rows"]["trained"] == 2000
    job.replayed()
    records = next(check for check in report["checks"] if check["name"] == "records")
    assert not records["not_checkable"] and "2000 rows read again" in records["span"]


def test_the_start_and_each_death_are_reported_once_and_a_failing_start_is_one_error(
    kafka: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    job = LiveJob(kafka, tmp_path, produce=3000)
    dying = job.command("train", "--until-end", STREAMTRAIN_FAILPOINTS="worker.stepped=2,ingest.after_slot=40").stderr
    for text in ("trained again", "killed by SIGKILL; a new run follows"):
        assert dying.count(text) == 1 and " WARNING supervisor  " in dying, dying
    version = job.newest().manifest.version
    again = job.command("train", "--until-end")
    assert again.stderr.splitlines() == [
        f"resuming {job.name} at snapshot {version}, 3,000 rows", f"{job.name}: snapshot {version}, 3,000 rows",
    ]  # fmt: skip
    refused = job.command("train", "--set", "columns.x9.missing=0")
    assert refused.returncode == 2
    assert len(refused.stderr.splitlines()) == 1 and "ERROR coordinator  " in refused.stderr, refused.stderr
    with caplog.at_level("DEBUG", logger="streamtrain.run.supervisor"):
        assert trained(job.path, "columns.x9.missing=0").code == 2
    assert ("DEBUG", "coordinator ended with exit code 2") in [(r.levelname, r.getMessage()) for r in caplog.records]


def test_restore_publishes_an_older_snapshot_at_the_newest_positions(kafka: Any, tmp_path: Path) -> None:
    job = LiveJob(kafka, tmp_path, produce=2000)
    rows_after(job.path, max_rows=1000)
    older = job.newest()
    rows_after(job.path)
    newest = job.newest()
    events = trained(job.path, restore=older.manifest.version).events
    restored = job.newest()
    started = next(event for event in events if event["event"] == "started")
    assert (started["restored"], started["version"]) == (older.manifest.version, restored.manifest.version)
    assert restored.manifest.version == newest.manifest.version + 1
    assert restored.model == older.model and restored.manifest.positions == newest.manifest.positions
    assert restored.manifest.parent is not None and restored.manifest.parent.digest == older.digest
    assert restored.manifest.restored is not None and restored.manifest.restored.digest == newest.digest
    assert restored.manifest.counts == Counts() and restored.manifest.chain == first_chain(restored.manifest.lineage)
    assert restored.manifest.rows_seen == older.manifest.rows_seen
    job.produce(500, seed=9)
    assert rows_after(job.path) == older.manifest.rows_seen + 500
    assert job.newest().manifest.counts == Counts(trained=500)
    job.verified()
    job.replayed(restored.manifest.version)


# -- the newest snapshot is whole and the one that control names; --fresh continues above both -----------------------


def recreate_topic(job: LiveJob, key: str) -> None:
    """Deletes the topic and makes it again, empty."""
    delete(job, f"{job.name}.{key}")
    job.admin.ensure(wish for wish in job_topics(job.name) if wish.key == key)


def test_a_snapshots_topic_that_lost_everything_is_refused_and_fresh_goes_on_above(kafka: Any, tmp_path: Path) -> None:
    job = LiveJob(kafka, tmp_path, produce=2000)
    last = trained(job.path).events[-1]["version"]
    said = job.control().newest
    assert said is not None and said.version == last and said.digest == job.newest().digest
    recreate_topic(job, "snapshots")
    refused = trained(job.path)
    assert refused.code == 1, refused.errors
    assert f"expected version {last}, digest {said.digest.hex()[:12]}" in refused.errors[0]
    assert "found none" in refused.errors[0] and "--fresh" in refused.errors[0]
    assert job.control().newest == said, "nothing was published"
    rows_after(job.path, fresh=True)
    assert job.manifests()[0].version > last


def test_runs_count_on_from_the_manifest_where_control_was_lost(kafka: Any, tmp_path: Path) -> None:
    job = LiveJob(kafka, tmp_path)
    for part in range(3):
        job.produce(500, seed=part)
        rows_after(job.path)
    assert sorted(job.control().runs) == [1, 2, 3]
    recreate_topic(job, "control")
    job.produce(500, seed=3)
    rows_after(job.path)
    found = job.control()
    assert sorted(found.runs) == [4] and job.newest().manifest.run == found.runs[4].run
    assert found.newest is not None and found.newest.digest == job.newest().digest


def test_too_many_dead_letters_stop_a_run_which_says_how_it_ended(kafka: Any, tmp_path: Path) -> None:
    job = LiveJob(kafka, tmp_path, max_dead_letter_share=0.2, produce=500)
    rows_after(job.path)
    good, bad = (rows(800, seed) for seed in (0, 1))
    pairs = ((row, {**other, "x2": "bad"}) for row, other in zip(good, bad, strict=True))
    job.produce_values(msgpack.packb(row) for pair in pairs for row in pair)
    ended = trained(job.path)
    assert ended.code == 1 and "x $.x2: expected number" in ended.errors[0], ended.errors
    job.verified()
    ends = job.control().ends
    assert [(number, ends[number].exit_code) for number in sorted(ends)] == [(1, 0), (2, 1)]
    assert ends[1].reason == "the end of what was asked for" and "are dead letters" in ends[2].reason


def not_a_manifest(job: LiveJob) -> list[Message]:
    return [Message(b"s/0007/m", b"not a manifest")]


def an_older_manifest(job: LiveJob) -> list[Message]:
    with job.topic() as topic:
        manifests = [read for read in topic.window(*topic.bounds()) if is_manifest(read.key)]
    return [Message(manifests[-2].key or b"", manifests[-2].value)]


def a_missing_chunk(job: LiveJob) -> list[Message]:
    newest = job.newest()
    manifest = replace(newest.manifest, version=newest.manifest.version + 1, kept=newest.kept())
    messages = publish(manifest, newest.model, newest.trainer or b"", keep=100).messages
    return [message for message in messages if not message.key.endswith(b"/c/0000")]


@pytest.mark.parametrize("damage", [not_a_manifest, an_older_manifest, a_missing_chunk])
def test_a_damaged_newest_snapshot_is_refused_and_fresh_goes_on_above_it(
    kafka: Any, tmp_path: Path, damage: Callable[[LiveJob], list[Message]]
) -> None:
    job = LiveJob(kafka, tmp_path, keep=100, produce=500)  # a busy machine may publish often
    rows_after(job.path)
    before = job.newest().manifest
    messages = ({"key": key, "value": bytes(value or b"")} for key, value, _ in damage(job))
    job.produce_messages(messages, f"{job.name}.snapshots")
    refused, where = trained(job.path), f"{job.name}.snapshots@"
    assert refused.code == 1 and "with --fresh, which loses" in refused.errors[0] and where in refused.errors[0]
    if damage is not an_older_manifest:  # which may be of version 1, that nothing was trained into
        assert ("--restore" in refused.errors[0]) == (damage is a_missing_chunk)
    if damage is not_a_manifest:  # the command's own words, once
        fresh = job.command("train", "--until-end", "--fresh")
        assert fresh.returncode == 0, fresh.stderr
        warnings = [line for line in fresh.stderr.splitlines() if " WARNING coordinator " in line]
        assert len(warnings) == 1 and where in warnings[0] and "passed over" in warnings[0], fresh.stderr
    else:
        rows_after(job.path, fresh=True)
    after = job.newest().manifest
    assert after.lineage != before.lineage and after.version > before.version + 1
    assert job.verified()["rows"]["trained"] == 500
    job.produce(100, seed=1)
    assert rows_after(job.path) == 600
    assert rows_after(job.path, restore=before.version) == before.rows_seen


# -- train.affinity: cores of one's own -------------------------------------------------------------------------------

GIVEN = {"partitions": 1, "round_interval": "off", "batch_rows": 1_000, "workers": 2}


def live(kafka: Any, folder: Path, train: str = "", **settings: Any) -> LiveJob:
    return LiveJob(kafka, folder, **{**GIVEN, **settings}, averaging_frequency=f"2\n{train}")


def workers_of(running: Running) -> list[psutil.Process]:
    return [process for process in running.children() if process.name().startswith("worker")]


def allowed(process: psutil.Process) -> set[str]:
    """Returns the lists of cores that its threads may use."""
    files = Path(f"/proc/{process.pid}/task").glob("*/status")
    lines = [line for file in files for line in file.read_text().splitlines()]
    return {line.split()[1] for line in lines if line.startswith("Cpus_allowed_list")}


@pytest.mark.skipif(len(usable_cores()) < 2, reason="needs two cores")
@pytest.mark.parametrize(
    "affinity", [pytest.param("auto", marks=pytest.mark.full), "lists", pytest.param("off", marks=pytest.mark.full)]
)
def test_workers_run_on_their_cores(kafka: Any, tmp_path: Path, affinity: str) -> None:
    """A worker that is killed gets them again; the others keep all that there are."""
    first, second, *_ = usable_cores()
    setting = f"{second};{first}" if affinity == "lists" else affinity
    own = {"auto": [{str(first)}, {str(second)}], "lists": [{str(second)}, {str(first)}]}
    everything = {format_cores(usable_cores())}
    threads = 2 if affinity == "lists" else 1
    job = live(kafka, tmp_path, f'threads_per_worker = {threads}\naffinity = "{setting}"')
    job.produce(5_000)
    running = job.start("train")
    running.wait_rows(4_000)
    workers = workers_of(running)
    assert [allowed(each) for each in workers] == own.get(affinity, [everything] * 2)
    assert all(each.num_threads() >= threads for each in workers)
    others = [each for each in running.children() if each not in workers]
    assert len(others) == 2 and all(allowed(each) == everything for each in others)
    workers[0].kill()
    running.wait_event("worker_died")
    job.produce(4_000, seed=1)
    running.wait_rows(8_000)
    found = [allowed(each) for each in workers_of(running)]
    assert sorted(found, key=min) == sorted(own.get(affinity, [everything] * 2), key=min)
    assert running.end() == 0


def test_cores_that_are_not_there_end_a_start_with_2(kafka: Any, tmp_path: Path) -> None:
    missing = max(os.cpu_count() or 1, usable_cores()[-1] + 1)
    job = live(kafka, tmp_path, f'affinity = "{usable_cores()[0]};{missing}"')
    for command in (("train", "--until-end"), ("check",)):
        ended = job.here(*command)  # a start is refused before it has a process
        assert ended.returncode == (2 if command[0] == "train" else 1)
        problem = (
            f"train.affinity: expected for worker 1 cores that this process may use ({format_cores(usable_cores())})"
        )
        assert problem in " ".join((ended.stdout + ended.stderr).split()), ended.stderr


# -- `train --files`: rows of files trained exactly once, whatever dies, to the bits of the same rows on a topic ------

ROWS = 6000
BAD = (0, 1500, 3999)  # rows of the first file


def files_of(folder: Path, seed: int = 0, count: int = ROWS) -> list[str]:
    """Two files of different forms, with some rows that cannot be used."""
    given = list(rows(count, seed))
    first, second = given[: count * 2 // 3], given[count * 2 // 3 :]
    spoilt = [{**row, "x1": "bad"} if number in BAD else row for number, row in enumerate(first)]
    folder.mkdir(exist_ok=True)
    lines = folder / "b.jsonl"
    lines.write_text("".join(f"{json.dumps(row)}\n" for row in second))
    return [written(folder / "a.csv", spoilt), str(lines)]


def flags(*files: str) -> list[str]:
    return [each for path in files for each in ("--files", path)]


def checked(job: LiveJob, files: Sequence[str], start: int = 1) -> dict[str, Any]:
    """Passes of verify and replay with these files; how many rows became what."""
    found = found_files(files)
    report = verify(job.job, files=found)
    assert report.ok, "\n".join(report.lines())
    assert not [each for check in report.checks for each in check.not_checkable if "--files" in each]
    assert verify(job.job, fast=True, files=found).ok
    again = replay(job.job, start, files=found)
    assert again.ok, "\n".join(again.lines())
    return report.as_dict()["rows"]


@pytest.mark.full
def test_files_and_a_topic_give_the_same_bits(kafka: Any, tmp_path: Path) -> None:
    states = []
    for from_files in (True, False):
        job = LiveJob(kafka, tmp_path, partitions=1, round_interval="off", keep=50)
        files = files_of(tmp_path / "data")
        if from_files:
            events = job.train("--files", str(tmp_path / "data" / "*"))
            assert next(event for event in events if event["event"] == "started")["origin_rows"] == ROWS
            assert checked(job, files) == {"trained": ROWS - len(BAD), "dead_lettered": len(BAD), "filtered": 0}
            letters = [found.letter for found in read_dead_letters(job.job)]
            assert [letter.offset + each.row_from for letter in letters for each in letter.rows] == list(BAD)
            assert [row["x1"] for letter in letters for row in dead_rows(job.job, letter).rows] == ["bad"] * len(BAD)
            (gone,) = dead_rows(job.job, replace(letters[0], value=None)).refused
            assert "its rows are those of a file" in gone
            assert json.loads(job.here("status", "--json").stdout)["lag"] == 0
            assert {letter.topic for letter in letters} == {f"a.csv@{found_files(files)[0].digest}"}
        else:
            done = job.here("produce", *(each for path in files for each in ("--input", path)), "-q")
            assert done.returncode == 0, done.stderr
            job.train("--until-end")
        newest = job.newest()
        states.append((newest.model, newest.trainer, newest.manifest.counts))
    assert states[0] == states[1]


@pytest.mark.full
@pytest.mark.parametrize("failpoint", ["ingest.consumed=3", "ingest.after_slot=99", "coordinator.after_commit=3"])
def test_killed_at_a_failpoint(kafka: Any, tmp_path: Path, failpoint: str) -> None:
    job = LiveJob(kafka, tmp_path, publish_interval="50ms", keep=50)
    files = files_of(tmp_path, count=5 * ROWS)
    events = job.train(*flags(*files), failpoints=failpoint)
    assert "restarting" in [event["event"] for event in events]
    assert checked(job, files)["trained"] == 5 * ROWS - len(BAD)


@pytest.mark.full
def test_a_life_of_files_and_a_topic(kafka: Any, tmp_path: Path) -> None:
    """Killed as a whole and gone on; more files behind them; the topic; other files; and back to the topic."""
    job = LiveJob(kafka, tmp_path, publish_interval="50ms", keep=200)
    files = files_of(tmp_path / "data", count=60_000)
    given = flags(*files)
    assert job.train(*given, "--max-rows", "5003")[-1]["rows"] == 5003
    first, second = job.newest().manifest.positions.partitions
    assert first.row > 0 and first.offset + first.row == 5003 + len(BAD) and second == (0, 0)
    text = job.command("train", "--until-end").stderr
    assert "has read it up to row 5,006 of 40,000" in text and "got no --files" in text
    mended = written(tmp_path / "a.csv", list(rows(7)))
    text = job.command("train", "--files", mended).stderr
    assert f"got {mended} with the digest" in text and found_files(files)[0].digest in text
    running = job.start("train", *given)
    running.wait_rows(9_000)
    running.end(signal.SIGKILL)
    assert job.newest().manifest.rows_seen >= 9_000
    added = written(tmp_path / "c.csv", list(rows(100, 1)))
    events = job.train(*flags(*files, added))
    assert events[-1]["rows"] == 60_100 - len(BAD)
    events = job.train(*flags(*files, added))
    assert events[-1]["rows"] == 60_100 - len(BAD)  # nothing is left to train
    job.produce(500)
    assert job.train("--until-end")[-1]["rows"] == 60_600 - len(BAD)
    assert "has read the file with the digest" in job.command("train", "--files", added).stderr
    other = written(tmp_path / "d.csv", list(rows(50, 2)))
    assert job.train("--files", other)[-1]["rows"] == 60_650 - len(BAD)
    job.produce(10)
    assert job.train("--until-end")[-1]["rows"] == 60_660 - len(BAD)
    assert checked(job, [other, *files, added])["trained"] == 60_660 - len(BAD)
    report = verify(job.job)
    left = [each for check in report.checks for each in check.not_checkable]
    assert report.ok and any("give them with --files" in each for each in left)
    with pytest.raises(UserMistake, match=r"a.csv: expected the file with the digest [0-9a-f]{64}, got .*a.csv with"):
        verify(job.job, files=found_files([mended]))
    with pytest.raises(UserMistake, match=r"a.csv: expected the file with the digest"):
        replay(job.job, 1, files=found_files([mended]))


def test_files_are_checked_and_trained_without_a_topic(kafka: Any, tmp_path: Path) -> None:
    """Each row once though ingest dies."""
    job = LiveJob(kafka, tmp_path, partitions=1, publish_interval="50ms")
    delete(job)
    files = files_of(tmp_path / "data")
    given = flags(*files)

    def found(*arguments: str) -> tuple[int, dict[str, list[dict[str, str]]]]:
        done = job.here("check", "--json", *arguments)
        findings: dict[str, list[dict[str, str]]] = {}
        for finding in json.loads(done.stdout)["findings"]:
            findings.setdefault(finding["what"], []).append(finding)
        return done.returncode, findings

    code, findings = found()
    assert code == 1 and f"not there: {job.records}" in findings["topics"][0]["text"]
    code, findings = found(*given)
    assert (
        code == 0 and f"{job.records} is not there, and files are trained without it" in findings["topics"][0]["text"]
    )
    assert findings["files"][0]["text"] == f"2 files, {ROWS:,} rows"
    assert "1,000 rows of files: 999 trained, 1 dead" in findings["records"][0]["text"]
    assert "x1: expected number" in findings["records"][1]["text"]
    events = job.train(*given, "--max-rows", "5003", failpoints="ingest.after_slot=40")
    assert "restarting" in [event["event"] for event in events] and events[-1]["rows"] == 5003
    assert checked(job, files)["trained"] == 5003
    code, findings = found()
    assert code == 0 and "`check --files` says" in findings["snapshot"][0]["text"]
    code, findings = found("--files", files[1])
    assert (
        code == 1
        and "expected the file" in findings["snapshot"][0]["text"]
        and "digest" in findings["snapshot"][0]["text"]
    )
    assert found(*given, "--sample", "0")[0] == 0
    odd = tmp_path / "odd.jsonl"  # rows that no record can hold: dead letters, whose values are the reasons
    lines = [json.dumps({**row, "x1": [1]} if number == 7 else row) for number, row in enumerate(rows(100, 1))]
    odd.write_text("\n".join(["{", *lines[1:]]))
    done = job.command("train", "--json", *flags(*files, str(odd)))
    assert f"{odd}:8 at $.x1: expected number, got list" in done.stderr and "2 rows" in done.stderr
    row_counts = checked(job, [*files, str(odd)])
    assert row_counts == {"trained": ROWS - len(BAD) + 98, "dead_lettered": len(BAD) + 2, "filtered": 0}
    letters = [each.letter for each in read_dead_letters(job.job) if each.letter.topic.startswith("odd.jsonl@")]
    assert [letter.offset for letter in letters] == [0, 7]
    reasons = [(letter.value or b"").partition(b", ")[0] for letter in letters]
    assert reasons == [b"expected a JSON object", b"$.x1: expected number"]
