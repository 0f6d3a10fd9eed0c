"""The views of a job on the command line: its status, history, snapshots, predictions, columns and checks.

Each is tested in words, lines and JSON.
"""

from __future__ import annotations

import csv
import io
import json
import re
import resource
import signal
import urllib.request
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy_predict
import pytest
from confluent_kafka import Producer
from rich.console import Console
from trained_job import DEAD, REQUESTS, ROWS, RUN_OF_A_DEATH, TOMBSTONES, TRAINED, WRONG_ROWS, TrainedJob
from waiting import wait_for

from streamtrain.cli import exposed_metrics
from streamtrain.cli.console import table
from streamtrain.cli.output import Output, count_text
from streamtrain.cli.status_view import status_view
from streamtrain.cli.train_panel import panel
from streamtrain.cli.train_view import TrainView
from streamtrain.clients.status import JobStatus
from streamtrain.doctor import LOOKS, Finding, look
from streamtrain.files.forms import suffixes
from streamtrain.files.reading import read_rows
from streamtrain.job import settings_table
from streamtrain.job.early_stop import EarlyStop
from streamtrain.job.kafka_settings import KafkaSettings
from streamtrain.job.sections import EarlyStopping
from streamtrain.kafka.clients import KafkaConsumer
from streamtrain.ui.pages import overview
from tests.cli.conftest import Run
from tests.e2e import commands, threaded
from tests.e2e.harness import LiveJob

SCORES = {"log_loss": 0.25, "constant_log_loss": 0.5, "auc": 0.875, "constant_auc": 0.5, "rows": 10_000, "weight": 1e4}
DOCUMENT: dict[str, Any] = {
    "job": "flights", "records": "flights.records", "exists": True, "ends": [10, 20], "lag": 12, "lags": [2, 10],
    "rows_per_second": 1234.5, "newest_row_age_s": 3.25, "windows": [{**SCORES, "log_loss": 0.4}, SCORES],
    "snapshot": {
        "version": 7, "digest": "ab", "lineage": "cd", "run": 2, "round": 30, "rows_seen": 20_000, "age_s": 1.5,
        "untrained": False, "workers": 2, "counts": {"trained": 20_000, "dead": 3, "filtered": 0, "tombstones": 1},
    },
    "run": {"number": 2, "host": "h1", "process": 42, "started_ms": 0, "ended": None, "worker_deaths": 1},
    "dead_letters": {"$.x: expected a number": 3}, "by_class": [], "warning": "",
    "metrics": {"total": SCORES, "window": SCORES, "updates": 1500, "clipped": {"x1": 17}},
}  # fmt: skip


def screen(document: dict[str, Any], width: int = 100) -> str:
    console = Console(width=width, file=io.StringIO())
    console.print(status_view(document))
    return console.file.getvalue()  # type: ignore[attr-defined]


def test_the_screen_tells_all_there_is() -> None:
    """A window appears in the line of losses, never as a dictionary."""
    screen_text = screen({**DOCUMENT, "metrics": {**DOCUMENT["metrics"], "windows": [SCORES]}})
    assert "{" not in screen_text
    for text in (
        "7, 1.5 s old, round 30, newest row 3.2 s old", "x1 17",
        "20,000 learned, 1,234/s, 3 dead letters, 1 tombstones", "12 offsets (0: 2, 1: 10)",
        "2 on h1 (process 42)", "2 workers, 1 deaths", "3 x $.x: expected a number", "1,500", "last 10,000", "0.2500",
        "share of the constant's log loss", "80% … 50%",
    ):  # fmt: skip
        assert text in screen_text, (text, screen_text)


def test_early_stopping_validation_scores_and_gradients_are_described_in_words() -> None:
    window = {**SCORES, "gradient_norm": 3.14159}
    early = EarlyStop(EarlyStopping(no_improvement=2), ["log_loss"])
    state = early.after({}, {"windows": [SCORES]}, 5, 20_000, 0)
    metrics = {**DOCUMENT["metrics"], "window": window, "early_stopping": state, "held_out": {**SCORES, "auc": 0.811}}
    screen_text = screen({**DOCUMENT, "metrics": metrics})
    line = "1 evaluation, log_loss 0.25; the best is snapshot 5, log_loss 0.25"
    for text in (line, "0.8110", "held out", "3.142 before"):
        assert text in screen_text, (text, screen_text)
    assert "least_improvement" not in screen_text and "held_out" not in screen_text
    for version in (6, 7):
        window_metrics = {"windows": [{**SCORES, "log_loss": 0.3}]}
        state = early.after({"early_stopping": state}, window_metrics, version, 30_000, 0)
    ended = screen({**DOCUMENT, "metrics": {**metrics, "early_stopping": state}}, 160)
    assert "no_improvement: 2 evaluations were not better than 0.25 of snapshot 5; the best is snapshot 5" in ended


def test_what_is_not_there_yet_is_left_out() -> None:
    assert "warning" not in screen(DOCUMENT) and "is above" in screen({**DOCUMENT, "warning": "the loss is above"})
    for missing in ("snapshot", "run", "rows_per_second", "newest_row_age_s"):
        assert "flights" in screen({**DOCUMENT, missing: None}), missing
    assert "not ours" not in screen(DOCUMENT)
    assert "2 entries that are not ours" in screen({**DOCUMENT, "dead_letters_not_ours": 2})


def test_classes_are_listed_one_by_one_the_heaviest_first() -> None:
    classes = [{"class": f"c{at:02}", "weight": 1000.0 + at, "precision": 0.5, "recall": 0.25, "f1": at / 100}
               for at in range(15)]  # fmt: skip
    screen_text = screen({**DOCUMENT, "by_class": classes})
    assert [f"c{at:02}" in screen_text for at in range(15)] == [False] * 3 + [True] * 12 and "3 more" in screen_text
    assert "1,014" in screen_text and "0.1400" in screen_text
    assert "precision" not in screen({**DOCUMENT, "by_class": classes[:2]})


def test_the_standing_of_a_job_on_kafka(kafka, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    job = LiveJob(kafka, tmp_path, max_dead_letter_share=1.0, publish_interval="50ms")
    with JobStatus(job.job) as job_status:
        assert job_status.look()["snapshot"] is None
        job.produce(2000)
        job.produce_values([b"\xc1"] * 3, partition=0)
        threaded.rows_after(job.path)
        first = job_status.look()
        assert 0 <= first["newest_row_age_s"] < 600
        assert first["lag"] == 0 and first["lags"] == [0, 0, 0]
        assert first["snapshot"]["counts"] == {"trained": 2000, "dead": 3, "filtered": 0, "tombstones": 0}
        assert sum(first["dead_letters"].values()) == 3
        assert first["run"]["number"] == 1 and first["run"]["ended"]["exit_code"] == 0
        job.produce(500, seed=1)
        assert job_status.look()["lag"] == 500 and job_status.look()["behind_open_transaction"] == 0
        hanging = Producer({"bootstrap.servers": job.bootstrap, "transactional.id": job.name})
        hanging.init_transactions(60)
        hanging.begin_transaction()
        requests = str(job.job.topic("requests").name)
        for topic in (job.records, requests):
            hanging.produce(topic, b"", partition=0)
        assert hanging.flush(60) == 0
        job.produce(300, seed=2)
        assert threaded.rows_after(job.path) == 2700
        assert "an open transaction hides offsets (101 in partition 0); this run ends before them" in caplog.text
        job.produce_messages([{"value": b"\xc1", "partition": 0}], requests)
        predicted = job.here("predict", "--until-end", "--json")
        assert json.loads(predicted.stdout)["requests"] == 0, predicted.stderr
        assert f"{requests}: an open transaction hides offsets (2 in partition 0)" in caplog.text
        hidden = job_status.look()
        assert (hidden["lag"], hidden["behind_open_transaction"]) == (0, 101) and "101 offsets behind" in screen(hidden)
        meters = exposed_metrics.of_trainer("127.0.0.1", 0, job.job)
        meters._meters.behind(meters._lag())
        behind = {"job": job.name, "partition": "0"}
        name = "streamtrain_behind_open_transaction_offsets"
        assert meters._meters.registry.get_sample_value(name, behind) == 101
        hanging.abort_transaction(60)
        job.produce_values([b"\xc1"], partition=1)
        assert threaded.rows_after(job.path) == 2800
        wait_for(lambda: job_status.look()["behind_open_transaction"] == 0)
        second = job_status.look()
        with pytest.MonkeyPatch.context() as patched:  # what has not grown is not read
            patched.setattr(KafkaConsumer, "consume", None)
            patched.setattr(KafkaConsumer, "bounds", None)
            assert job_status.look()["snapshot"]["version"] == second["snapshot"]["version"]
    assert second["snapshot"]["rows_seen"] == 2800 and second["run"]["number"] == 3
    assert sum(second["dead_letters"].values()) == 4
    assert [window["rows"] for window in second["windows"]] == [2800]  # a run goes on within a window, which grows


def test_a_job_worse_than_the_constant_is_a_warning_of_train_status_and_page(
    kafka, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Only this finds a reader of the topics that judges other rows than the trainer, or a run that says it again."""
    job = LiveJob(kafka, tmp_path, optimizer='name = "adam"\nlearning_rate = 30', produce=35_000, batch_rows=512)
    threaded.rows_after(job.path)
    warned = [each for each in caplog.messages if "above that of the constant prediction" in each]
    with JobStatus(job.job) as job_status:
        document = job_status.look()
    assert warned == [f"{job.name}: {document['warning']}"] and "learning_rate is 30" in warned[0]
    view: Any = SimpleNamespace(name=job.name, error="", state="ended", job_status=document)
    assert document["warning"] in screen(document, 400) and document["warning"] in overview._said([view])


# -- `doctor`: what is well, what is not, and what to do --------------------------------------------------------------


def found(document: Any) -> dict[str, Any]:
    return {finding["what"]: finding for finding in document["findings"]}


def test_every_look_says_something(run: Run, impatient: None) -> None:
    findings = dict(look(None))
    assert list(findings) == list(LOOKS)
    for name, each in findings.items():
        assert each and all(finding.found for finding in each), name
        assert all(finding.state == "ok" or finding.do for finding in each), name
        assert not any("could not be looked at" in finding.found for finding in each), each
    secret = {"bootstrap.servers": "127.0.0.1:1", "sasl.password": "hunter2", "security.protocol": "SASL_PLAINTEXT",
              "sasl.mechanism": "PLAIN", "sasl.username": "someone"}  # fmt: skip
    assert "hunter2" not in str(list(look(KafkaSettings(secret))))


def test_a_kafka_that_is_away_is_wrong(run: Run, impatient: None) -> None:
    ended = run("doctor", "-b", "127.0.0.1:1", "--json")
    kafka = found(ended.document)["kafka"]
    assert ended.code == 1 and kafka["state"] == "wrong" and "127.0.0.1:1" in kafka["found"] and kafka["do"]


def test_a_kafka_that_is_there_is_well(run: Run, kafka: Any) -> None:
    ended = run("doctor", "-b", kafka.bootstrap, "--json")
    assert found(ended.document)["kafka"]["found"].startswith(f"{kafka.bootstrap} answers within ")
    assert not [each for each in ended.document["findings"] if each["state"] == "wrong"]
    assert ended.code == 0


@pytest.mark.parametrize(("files", "state", "code"), [(128, "wrong", 1), (512, "warning", 0), (4096, "ok", 0)])
def test_few_open_files_are_shown(run: Run, monkeypatch: pytest.MonkeyPatch, files: int, state: str, code: int) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda which: (files, files))
    ended = run("doctor", "--json")
    finding = found(ended.document)["open files"]
    assert (finding["found"], finding["state"], ended.code) == (f"limited to {files:,}", state, code)


def test_a_look_that_fails_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamtrain.doctor.usable_cores", lambda: 1 / 0)
    found = dict(look(None))["processor"]
    assert found[-1].state == "warning" and "ZeroDivisionError" in found[-1].found
    assert isinstance(found[-1], Finding)


# -- lines that commands write, to people, to a pipe and as JSON; the view of `train` ---------------------------------

EVENTS: list[dict[str, Any]] = [
    {"event": "started", "resumed": True, "version": 812, "rows": 3_400_000, "run": 2},
    {"event": "published", "version": 813, "rows": 3_400_010,
     "metrics": {"total": {"log_loss": 0.25, "constant_log_loss": 0.5, "auc": 0.875}, "window": None}},
    {"event": "progress", "rows": 10, "unreachable": False},
    {"event": "worker_died", "worker": 1, "how": "SIGKILL", "round": 4, "slot": 9},
    {"event": "restarting", "reason": "ingest was killed by SIGKILL"},
    {"event": "ended", "version": 813, "rows": 3_400_010, "dead_letters": {"a": 2, "b": 1}},
]  # fmt: skip


def viewed(*arguments: Any) -> None:
    with TrainView(*arguments) as view:
        for event in EVENTS:
            view(event)


def test_events_are_lines_for_people_logs_or_json(capsys: pytest.CaptureFixture[str]) -> None:
    viewed(Output(False), "flights")
    lines = [
        "resuming flights at snapshot 812, 3.4 M rows",
        "3,400,010 rows, 0/s, snapshot 813, log_loss 0.2500 (constant 0.5000), auc 0.8750",
        "flights: snapshot 813, 3,400,010 rows, 3 rows dead lettered",
    ]
    assert capsys.readouterr() == ("", "".join(f"{line}\n" for line in lines))
    logs: list[str] = []
    viewed(Output(False), "flights", logs.append)
    assert logs == lines and capsys.readouterr() == ("", "")
    viewed(Output(True), "flights")
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == EVENTS


WHY = "early stopping, no_improvement: 2 evaluations were not better than 0.3; the best is snapshot 7, log_loss 0.3"
LONG_NAME = "a-job-of-a-long-name" * 10
RESTORED = {"resumed": True, "restored": 3, "version": 9, "rows": 12}


@pytest.mark.parametrize(
    ("name", "event", "text"),
    [
        (LONG_NAME, {"resumed": False, "version": 1}, f"starting {LONG_NAME} at snapshot 1, untrained"),
        ("flights", {"resumed": True, "version": 9, "rows": 12}, "resuming flights at snapshot 9, 12 rows"),
        ("flights", RESTORED, "restored snapshot 3 of flights as 9, 12 rows"),
        ("flights", {**RESTORED, "added": ["a", "b"]}, "added a, b to snapshot 3 of flights as 9, 12 rows"),
        ("flights", {"event": "stopped_early", "why": WHY, "reason": "no_improvement", "best_version": 7},
         f"flights: {WHY}"),
    ],
)  # fmt: skip
def test_an_event_is_a_line(capsys: pytest.CaptureFixture[str], name: str, event: dict[str, Any], text: str) -> None:
    with TrainView(Output(False), name) as view:
        view({"event": "started", **event})
    assert capsys.readouterr().err == f"{text}\n"


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0"), (9_999, "9,999"), (12_345, "12 k"), (3_400_000, "3.4 M"), (2_500_000_000, "2.5 G")]
)
def test_counts(count: int, text: str) -> None:
    assert count_text(count) == text


@pytest.mark.parametrize("width", [50, 80, 200])
def test_no_figure_is_broken_on_a_terminal(width: int) -> None:
    scores = {"log_loss": 0.2345, "constant_log_loss": 0.5432, "auc": 0.8765, "accuracy": 0.9123, "rows": 10_000}
    view = TrainView(Output(False), "flights")
    view({**EVENTS[1], "metrics": {"total": scores, "window": scores}})
    screen = Console(width=width, file=io.StringIO(), force_terminal=False)
    screen.print(panel(view._figures(EVENTS[2]), view._published["metrics"]))
    screen_text = screen.file.getvalue()  # type: ignore[attr-defined]
    figures = ["0.2345", "0.5432"] if width == 50 else ["0.2345", "0.5432", "0.8765", "0.9123"]
    assert all(screen_text.count(figure) == 2 for figure in figures), screen_text


LONG = "a cell of many words, " * 40 + "all of them"


def test_a_table_in_a_pipe_is_whole_and_not_padded(capsys: pytest.CaptureFixture[str]) -> None:
    Output(False).say(table(["name", "help"], [("a", LONG), ("b", "short"), ("c", None)]), "a line")
    assert capsys.readouterr().out.splitlines() == ["name  help", f"a     {LONG}", "b     short", "c", "a line"]


def test_settings_in_a_pipe_are_a_line_each(run: Run) -> None:
    lines = run("list", "settings").out.splitlines()
    assert len(lines) == 1 + len(settings_table())
    assert all(line == line.rstrip() for line in lines)
    for line, setting in zip(lines[1:], settings_table(), strict=True):
        assert line.startswith(setting.path) and line.endswith(setting.help)


@pytest.fixture
def trained(trained_job: TrainedJob) -> Path:
    return trained_job.path


def test_rows_are_vectorized_as_the_model_has_them(run: Run, trained: Path, tmp_path: Path) -> None:
    version = run("status", trained, "--json").document["snapshot"]["version"]
    rows = tmp_path / "new.csv"
    rows.write_text("delay,carrier,late,flight\n50,A1,1,2\nbad,A1,1,2\n,B2,0,1\n3,A1,,1\n-1e9,B2,0,1\n")
    report = {}
    for end in suffixes("Writer"):
        for snapshot in ([], ["--snapshot", version]):
            output = tmp_path / f"out{len(snapshot)}{end}"
            ended = run("vectorize", trained, "--input", rows, "-o", output, *snapshot, "--json")
            assert ended.code == 0, ended.err
            report = ended.document
            assert (report["rows_read"], report["rows_written"], report["left_out"], report["filtered"]) == (5, 3, 1, 1)
    assert report["first_left_out"] == [f'{rows} row 1 at $.delay: expected number, got "bad"']
    plain, model_rows = np.load(tmp_path / "out0.npy"), np.load(tmp_path / "out2.npy")
    assert plain.dtype.names == ("delay", "carrier", "late") and plain["delay"].tolist() == [50, 0, -1e9]
    snapshot_ = run("snapshots", "get", trained, "-o", tmp_path / "model.safetensors", "--json")
    assert snapshot_.code == 0
    _, tensors = numpy_predict.read(tmp_path / "model.safetensors")
    count, mean, squares = tensors["standardize.numbers"][0][:3]
    expected = np.clip((plain["delay"] - mean) / np.sqrt(squares / count), -8, 8)
    assert np.allclose(model_rows["delay"], expected, rtol=1e-5) and model_rows["delay"][2] == -8
    assert np.array_equal(model_rows["carrier"], plain["carrier"]) and np.array_equal(model_rows["late"], plain["late"])
    for path in (f"out2{end}" for end in suffixes("Writer")):
        again = {name: [row[name] for row in read_rows(str(tmp_path / path))] for name in model_rows.dtype.names}
        assert all(np.array_equal(again[name], model_rows[name]) for name in model_rows.dtype.names), path
    output = tmp_path / "out.txt"
    assert run("vectorize", trained, "--input", rows, "-o", output).code == 2 and not output.exists()
    assert run("vectorize", trained, "--input", rows, "-o", tmp_path / "x.npy", "--snapshot", 99).code == 2
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".") or path.name == "x.npy"] == []


def test_what_was_trained_can_be_seen(run: Run, trained: Path, tmp_path: Path) -> None:
    status = run("status", trained, "--json").document
    assert status["lag"] == 0 and status["snapshot"]["rows_seen"] == TRAINED and not status["snapshot"]["untrained"]
    assert {"log_loss", "auc", "accuracy", "constant_log_loss"} <= status["metrics"]["total"].keys()
    assert f"{status['snapshot']['version']}, " in run("status", trained).out

    snapshots = run("snapshots", "list", trained, "--json").document["snapshots"]
    assert snapshots[0]["untrained"] and snapshots[-1]["version"] == status["snapshot"]["version"]
    listed = run("snapshots", "list", trained).out
    assert str(snapshots[-1]["version"]) in listed and snapshots[-1]["parameters_digest"][:12] in listed
    assert snapshots[-1]["parameters_digest"] == status["snapshot"]["parameters_digest"]
    document = run("snapshots", "show", trained, "--snapshot", snapshots[0]["version"], "--json").document
    assert document["digest"] == snapshots[0]["digest"] and document["positions"] == [[0, 0], [0, 0]]
    output = run("snapshots", "show", trained).out
    assert re.search(r"metrics.total.auc +0\.\d", output) and re.search(r"metrics.windows +a list of 0", output), output
    assert not re.search("metrics.*{", output), output
    assert run("snapshots", "show", trained, "--snapshot", 99).code == 2
    file = tmp_path / "model.safetensors"
    assert run("snapshots", "get", trained, "-o", file).code == 0
    header = json.loads(file.read_bytes()[8 : 8 + int.from_bytes(file.read_bytes()[:8], "little")])
    assert any(name.endswith(".weight") for name in header)
    assert header["__metadata__"]["version"] == str(snapshots[-1]["version"])

    letters = run("read", trained, "dead-letters", "--until-end", "--json").lines
    reasons = sorted(row["reason"] for letter in letters for row in letter["rows"])
    assert reasons[:3] == ['expected number, got "bad"'] * len(WRONG_ROWS) and len(reasons) == DEAD
    rounds = run("read", trained, "rounds", "--until-end", "--json").lines
    assert sum(log["rows_trained"] for log in rounds) == TRAINED
    assert "rows trained" in run("read", trained, "rounds", "--until-end", "--limit", 1).out
    manifests = [each["manifest"] for each in run("read", trained, "snapshots", "--until-end", "--json").lines
                 if "manifest" in each]  # fmt: skip
    newest = [each["newest"] for each in run("read", trained, "control", "--until-end", "--json").lines
              if "newest" in each]  # fmt: skip
    assert manifests[-1]["version"] == newest[-1]["version"] and manifests[-1]["digest"] == newest[-1]["digest"]
    assert "ended with exit code 0" in run("read", trained, "control", "--until-end").out

    found = run("check", trained, "--json").document
    assert found["ok"] and any("training goes on from it" in finding["text"] for finding in found["findings"])
    changed = run("check", trained, "--set", "columns.carrier.buckets=32", "--json")
    assert changed.code == 1 and "columns.carrier" in changed.out and "--fresh" in changed.out


def test_verify_and_replay(run: Run, trained: Path) -> None:
    verified = run("verify", trained, "--json")
    assert verified.code == 0 and verified.document["ok"] and verified.document["rows"]["trained"] == TRAINED
    first = run("snapshots", "list", trained, "--json").document["snapshots"][0]["version"]
    replayed = run("replay", trained, "--from", first, "--json")
    assert replayed.code == 0 and replayed.document["ok"]
    assert run("replay", trained, "--from", 5, "--to", 5).code == 2
    assert run("replay", trained, "--from", 99).code == 2


def test_history(run: Run, trained_job: TrainedJob) -> None:
    path, versions = trained_job.path, trained_job.newest().manifest.version
    lines = run("history", path, "--json").lines
    assert [line["version"] for line in lines] == list(range(2, versions + 1)), "the first snapshot has no round"
    assert sum(line["rows"] for line in lines) == TRAINED and sum(line["dead"] for line in lines) == DEAD
    assert lines[-1]["metrics"]["total"]["rows"] == TRAINED
    assert {line["run"] for line in lines if line["worker_deaths"]} == {RUN_OF_A_DEATH}
    assert [line["version"] for line in lines if line["run_end"]] == trained_job.run_ends
    assert all(line["run_end"]["exit_code"] == 0 and line["run_end"]["reason"] for line in lines if line["run_end"])
    assert [line["version"] for line in run("history", path, "--json", "--last", 1).lines] == [versions]

    rows = list(csv.DictReader(run("history", path, "--csv").out.splitlines()))
    assert [int(row["version"]) for row in rows] == [line["version"] for line in lines]
    assert float(rows[-1]["total.log_loss"]) == lines[-1]["metrics"]["total"]["log_loss"]
    assert rows[-1]["run_end"] == lines[-1]["run_end"]["reason"]
    assert "the run ended" in run("history", path).out
    assert run("history", path, "--csv", "--json").code == 2


def test_predictions_are_read(run: Run, trained_job: TrainedJob) -> None:
    assert (trained_job.predicted["rows"], trained_job.predicted["errors"]) == (REQUESTS, 1)
    assert run("predict", trained_job.path, "--until-end", "--snapshot", 99).code == 2
    answers = run("read", trained_job.path, "predictions", "--until-end", "--json").lines
    good = [answer for answer in answers if answer["key"] != "broken"]
    assert {answer["key"] for answer in good} == {f"f{i}" for i in range(REQUESTS)} and len(answers) == REQUESTS + 1
    assert all(0 < answer["prediction"]["prediction"] < 1 and answer["version"] >= 1 for answer in good)


def test_ctrl_c_drains_and_metrics_are_served(run: Run, job: Path, rows: Path, tmp_path: Path) -> None:
    assert run("produce", job, "--input", rows, "-q").code == 0
    assert threaded.rows_after(job, "records.max_dead_letter_share=1") == 2
    log = tmp_path / "train.log"
    with log.open("w") as errors:
        arguments = ["train", str(job), "--metrics-port", "0", "--json", "--log-format", "json"]
        trainer = commands.start(arguments, errors, {})
    port = wait_for(lambda: re.search(r'"port": ?(\d+)', log.read_text()))[1]
    assert trainer.stdout is not None
    first = trainer.stdout.readline()
    assert first, log.read_text()
    assert json.loads(first)["resumed"]
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/ready", timeout=60) as answer:
        assert answer.status == 200
    trainer.send_signal(signal.SIGINT)
    out, _ = trainer.communicate(timeout=60)
    assert trainer.returncode == 130
    assert json.loads(out.splitlines()[-1])["event"] == "ended"


def test_columns_are_analyzed(run: Run, trained: Path, tmp_path: Path) -> None:
    version = run("status", trained, "--json").document["snapshot"]["version"]
    of_topic = run("analyze", trained, "--topic", "--against", version, "--json").document
    columns = of_topic["columns"]
    summary = (of_topic["rows"], of_topic["unusable_rows"], list(columns))
    assert summary == (ROWS + 1 + TOMBSTONES, DEAD + TOMBSTONES, ["delay", "carrier", "late"])
    assert (columns["delay"]["unusable"], columns["delay"]["distinct"]) == (3, 60)
    assert (columns["carrier"]["distinct"], columns["carrier"]["missing"]) == (10, 0)
    assert columns["late"]["missing"] == 200 and columns["late"]["distinct"] == 2
    assert abs(columns["delay"]["quantiles"]["0.5"] - 29.5) < 1 and abs(columns["delay"]["mean"] - 29.3) < 0.1
    assert sum(columns["delay"]["histogram"]["rows"]) == 1_997
    assert all(column["drift"] < 1e-9 for column in columns.values())

    rows = tmp_path / "new.csv"
    rows.write_text("delay,carrier,late\n" + "".join(f"{100 + i % 60},A{i % 5},\n" for i in range(500)))
    moved = run("analyze", trained, "--input", rows, "--against", version, "--json").document["columns"]
    assert moved["delay"]["drift"] > 0.25 < moved["late"]["drift"] and moved["late"]["missing"] == 500
    assert run("analyze", trained, "--input", rows, "--limit", 10, "--json").code == 0
    text = run("analyze", trained, "--input", rows, "--against", version).out
    assert f"drift from {version}" in text and "500 rows, 0 of them unusable" in text
    for wrong in ([], ["--topic", "--input", rows], ["--input", rows, "--against", 99]):
        assert run("analyze", trained, *wrong).code == 2
