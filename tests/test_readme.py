"""README's commands and programs run in order, on a Kafka that its first command starts; what it names exists.

Its commands, files and links: tests/docs/test_pages.py.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client import generate_latest

from streamtrain.job import Job, settings_table
from streamtrain.telemetry import PredictorMeters, TrainerMeters
from tests.docs.page import ROOT, STEP_S, Shell, blocks, free_port, spans

README = ROOT / "README.md"
TEXT = README.read_text(encoding="utf-8")
BLOCKS, SPANS = blocks(README), spans(README)


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    port = free_port()
    made = Shell(tmp_path, port)
    yield made
    assert f"localhost:{port}" in (tmp_path / "flights.toml").read_text(), "another Kafka than the test's own"
    subprocess.run(["streamtrain", "broker", "stop"], env=made.environment, check=True, timeout=STEP_S)


def test_the_set_up_is_the_only_block_that_is_not_run_here() -> None:
    assert {kind for kind, _ in BLOCKS} == {"", "sh", "python", "toml", "text"}
    (setup,) = [text for kind, text in BLOCKS if kind == ""]
    assert all(line.startswith("python -m venv .venv && ") for line in setup.splitlines())
    (picture,) = [text for kind, text in BLOCKS if kind == "text"]
    assert "ingest" in picture


@pytest.mark.full
@pytest.mark.kafka
@pytest.mark.timeout(900)
def test_every_block_runs(shell: Shell) -> None:
    printed = "".join(shell.run(kind, text) for kind, text in BLOCKS if kind in ("sh", "python"))
    assert re.search(r"rows +10,243", printed), printed  # what was produced has been learned
    assert "{'prediction': 0." in printed
    assert "every check passed" in printed and "came out bit for bit" in printed


def test_the_job_file_is_one() -> None:
    (text,) = [text for kind, text in BLOCKS if kind == "toml"]
    job = Job.parse(text)
    assert [name for name, _ in job.schema.columns][2:5] == ["C1", "C2", "C3"]


def test_every_setting_and_metric_named_exists() -> None:
    settings = {setting.path for setting in settings_table()}
    sections = "records|model|optimizer|train|publish|predict"
    for span in SPANS:
        if match := re.match(rf"({sections})\.[a-z_.]+", span):
            assert match[0] in settings or match[0] in {"publish.archive", "model.py"}, span
    told = re.findall(r"begin with `streamtrain_`: (.*?`ready`)\.\s", TEXT, re.DOTALL)
    (taken,) = re.findall(r"What its\s+processes take is read (.*?)\.\s", TEXT, re.DOTALL)
    labels = {"reason", "name", "span", "partition", "version", "run", "process", "device"}
    for text, meters in zip(told, (TrainerMeters("x", 1), PredictorMeters("x")), strict=True):
        named = set(re.findall(r"`(\w+)`", text + taken)) - labels
        exposed = re.findall(r"^# TYPE streamtrain_(\w+) \w+", generate_latest(meters.registry).decode(), re.MULTILINE)
        assert named == {name for name in exposed if not name.endswith("_created")}
