"""README is run as a reader would: its commands and programs in order, on a Kafka that its first command starts."""

from __future__ import annotations

import os
import re
import shlex
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path

import pytest
import typer.main
from prometheus_client import generate_latest

from streamtrain.cli.app import app
from streamtrain.job import Job, settings_table
from streamtrain.telemetry import PredictorMeters, TrainerMeters

ROOT = Path(__file__).resolve().parents[1]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
SPANS = re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```$", "", TEXT, flags=re.MULTILINE | re.DOTALL))
PORT = "9092"  # README's; the test takes one that is free
STEP_S = 240


def free_port() -> int:
    """Below the ephemeral range, where no connection of ours can hold it."""
    for port in range(20_000 + os.getpid() % 5_000, 32_000):
        with socket.socket() as listener:
            try:
                listener.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError("no free port")


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Callable[[str, str], str]]:
    """Runs one block in the folder of all; gives what it printed."""
    port = str(free_port())
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("STREAMTRAIN_")},
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "XDG_DATA_HOME": str(tmp_path / "data"),
    }
    environment.pop("KAFKA_HOME", None)

    printed: list[str] = []

    def call(kind: str, text: str) -> str:
        text = text.replace(f"localhost:{PORT}", f"localhost:{port}")
        text = text.replace("broker start ", f"broker start --port {port} ")
        command = [sys.executable, "-c", text] if kind == "python" else ["bash", "-euo", "pipefail", "-c", text]
        ended = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=STEP_S, check=False
        )
        printed.append(f"{text}\n{ended.stdout}\n{ended.stderr}")
        assert ended.returncode == 0, "\n".join([*printed, f"ended with {ended.returncode}"])
        assert f"localhost:{port}" in (tmp_path / "flights.toml").read_text(), "another Kafka than the test's own"
        return ended.stdout

    yield call
    subprocess.run(["streamtrain", "broker", "stop"], env=environment, check=True, timeout=STEP_S)


def test_the_set_up_is_the_only_block_that_is_not_run_here() -> None:
    assert {kind for kind, _ in BLOCKS} == {"", "sh", "python", "toml", "text"}
    (setup,) = [text for kind, text in BLOCKS if kind == ""]
    assert all(line.startswith("python -m venv .venv && ") for line in setup.splitlines())
    (picture,) = [text for kind, text in BLOCKS if kind == "text"]
    assert "ingest" in picture


@pytest.mark.timeout(900)
def test_every_block_runs(run: Callable[[str, str], str]) -> None:
    printed = "".join(run(kind, text) for kind, text in BLOCKS if kind in ("sh", "python"))
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
    for text, meters in zip(told, (TrainerMeters(1), PredictorMeters()), strict=True):
        named = set(re.findall(r"`(\w+)`", text)) - {"reason", "name", "span"}
        exposed = re.findall(r"^# TYPE streamtrain_(\w+) \w+", generate_latest(meters.registry).decode(), re.MULTILINE)
        assert named == {name for name in exposed if not name.endswith("_created")}
