"""README's commands and programs run in order, on a Kafka that its first command starts; what it names exists."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
import typer.main
from prometheus_client import generate_latest

from streamtrain.cli.app import app
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


def lines_of(text: str) -> Iterator[str]:
    """The streamtrain commands of a block, without comments."""
    for line in text.splitlines():
        if line.startswith("streamtrain "):
            yield line


def test_every_command_named_exists() -> None:
    commands = [span for span in SPANS if re.match(r"(streamtrain|train|produce) \S", span)]
    commands += [line for kind, text in BLOCKS if kind == "sh" for line in lines_of(text)]
    assert len(commands) > 20
    root = typer.main.get_command(app)
    for command in commands:
        words = [word for word in shlex.split(command, comments=True) if word != "streamtrain"]
        assert words[0] in root.list_commands(None), command
        options = {word.split("=")[0] for word in words if word.startswith("-")}
        assert options <= options_of(words[0]), command


def options_of(name: str) -> set[str]:
    """The options of a command, or of all below it."""
    module = name.replace("-", "_")
    command = typer.main.get_command(import_module(f"streamtrain.cli.commands.{module}").app)
    below = getattr(command, "commands", {"": command})
    return {option for entry in below.values() for parameter in entry.params for option in parameter.opts}


def test_every_setting_metric_and_file_named_exists() -> None:
    settings = {setting.path for setting in settings_table()}
    sections = "records|model|optimizer|train|publish|predict"
    for span in SPANS:
        if match := re.match(rf"({sections})\.[a-z_.]+", span):
            assert match[0] in settings or match[0] in {"publish.archive", "model.py"}, span
        if re.match(r"(native|compute|topics|streamtrain|tests|examples)/", span) and "x." not in span:
            assert (ROOT / span).exists(), span
    told = re.findall(r"begin with `streamtrain_`: (.*?`ready`)\.\s", TEXT, re.DOTALL)
    (taken,) = re.findall(r"What its\s+processes take is read (.*?)\.\s", TEXT, re.DOTALL)
    labels = {"reason", "name", "span", "partition", "version", "run", "process", "device"}
    for text, meters in zip(told, (TrainerMeters("x", 1), PredictorMeters("x")), strict=True):
        named = set(re.findall(r"`(\w+)`", text + taken)) - labels
        exposed = re.findall(r"^# TYPE streamtrain_(\w+) \w+", generate_latest(meters.registry).decode(), re.MULTILINE)
        assert named == {name for name in exposed if not name.endswith("_created")}
