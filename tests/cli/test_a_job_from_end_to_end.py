"""One job by commands: what those that read say of the shared job, and a trainer that Ctrl-C ends, on a real Kafka."""

from __future__ import annotations

import csv
import json
import re
import signal
import urllib.request
from pathlib import Path

import numpy as np
import numpy_predict
import pytest
from trained_job import DEAD, REQUESTS, ROWS, RUN_OF_A_DEATH, TOMBSTONES, TRAINED, WRONG_ROWS, TrainedJob
from waiting import wait_for

from streamtrain.files.forms import suffixes
from streamtrain.files.reading import read_rows
from tests.cli.conftest import Run
from tests.e2e import commands, threaded


@pytest.fixture
def trained(trained_job: TrainedJob) -> Path:
    return trained_job.path


def test_rows_are_vectorized_as_the_model_has_them(run: Run, trained: Path, tmp_path: Path) -> None:
    version = run("status", trained, "--json").document["snapshot"]["version"]
    rows = tmp_path / "new.csv"
    rows.write_text("delay,carrier,late,flight\n50,A1,1,2\nbad,A1,1,2\n,B2,0,1\n3,A1,,1\n-1e9,B2,0,1\n")
    told = {}
    for end in suffixes("Writer"):
        for snapshot in ([], ["--snapshot", version]):
            output = tmp_path / f"out{len(snapshot)}{end}"
            ended = run("vectorize", trained, "--input", rows, "-o", output, *snapshot, "--json")
            assert ended.code == 0, ended.err
            told = ended.document
            assert (told["rows_read"], told["rows_written"], told["left_out"], told["filtered"]) == (5, 3, 1, 1)
    assert told["first_left_out"] == [f'{rows} row 1 at $.delay: expected number, got "bad"']
    plain, made = np.load(tmp_path / "out0.npy"), np.load(tmp_path / "out2.npy")
    assert plain.dtype.names == ("delay", "carrier", "late") and plain["delay"].tolist() == [50, 0, -1e9]
    snapshot_ = run("snapshots", "get", trained, "-o", tmp_path / "model.safetensors", "--json")
    assert snapshot_.code == 0
    _, tensors = numpy_predict.read(tmp_path / "model.safetensors")
    count, mean, squares = tensors["standardize.numbers"][0][:3]
    expected = np.clip((plain["delay"] - mean) / np.sqrt(squares / count), -8, 8)
    assert np.allclose(made["delay"], expected, rtol=1e-5) and made["delay"][2] == -8
    assert np.array_equal(made["carrier"], plain["carrier"]) and np.array_equal(made["late"], plain["late"])
    for path in (f"out2{end}" for end in suffixes("Writer")):
        again = {name: [row[name] for row in read_rows(str(tmp_path / path))] for name in made.dtype.names}
        assert all(np.array_equal(again[name], made[name]) for name in made.dtype.names), path
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
    assert str(snapshots[-1]["version"]) in run("snapshots", "list", trained).out
    shown = run("snapshots", "show", trained, "--snapshot", snapshots[0]["version"], "--json").document
    assert shown["digest"] == snapshots[0]["digest"] and shown["positions"] == [[0, 0], [0, 0]]
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
    told = (of_topic["rows"], of_topic["unusable_rows"], list(columns))
    assert told == (ROWS + 1 + TOMBSTONES, DEAD + TOMBSTONES, ["delay", "carrier", "late"])
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
    shown = run("analyze", trained, "--input", rows, "--against", version).out
    assert f"drift from {version}" in shown and "500 rows, 0 of them unusable" in shown
    for wrong in ([], ["--topic", "--input", rows], ["--input", rows, "--against", 99]):
        assert run("analyze", trained, *wrong).code == 2
