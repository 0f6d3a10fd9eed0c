"""The frame of the command line: help, version, exit codes, errors."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from streamtrain import __version__
from streamtrain.cli.app import commands
from streamtrain.job import settings_table
from streamtrain.registry import registries

Run = Callable[..., Any]


def test_version(run: Run) -> None:
    ended = run("--version")
    assert (ended.code, ended.out) == (0, f"streamtrain {__version__}\n")


def test_help_names_every_command_and_the_exit_codes(run: Run) -> None:
    ended = run("--help")
    assert ended.code == 0
    for name in commands():
        assert name in ended.out
    text = " ".join(ended.out.split())
    assert "0 done; 1 a check failed" in text and "130 stopped by Ctrl-C" in text


def test_each_command_has_help_that_a_pipe_does_not_cut_and_the_common_options(run: Run) -> None:
    common = ("--json", "--bootstrap", "--set", "--verbose", "--quiet", "--log-format")
    wrong = {}
    for name in sorted(commands()):
        ended = run(name, "--help")
        options = [option for option in common if option not in ended.out and "COMMAND" not in ended.out]
        if ended.code or "Exit codes" not in ended.out or "…" in ended.out or options:
            wrong[name] = ended.code, options, ended.out
    assert wrong == {}


def test_a_paragraph_of_help_is_wrapped_by_the_terminal_alone(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("typer.rich_utils.MAX_WIDTH", 300)
    for call, sentence in ((("predict",), "a second one stops"), (("dead-letters", "resend"), "Refused by name: the")):
        assert sentence in run(*call, "--help").out


CALLS_COUNTED = """
import sys
calls = 0
def count(frame, event, argument):
    global calls
    calls += event in ("call", "c_call")
sys.setprofile(count)
"""
LEAST_HELP = """
import typer
app = typer.Typer()
app.command("one")(lambda: None)
app.command("two")(lambda: None)
app(["--help"], standalone_mode=False)
"""
HELP = """
from streamtrain.cli import main
try: main(["--help"])
except SystemExit: pass
"""
SAID = """
sys.setprofile(None)
print(calls, *sys.modules)
"""


def test_help_is_quick_and_loads_no_command(run: Run) -> None:
    """It loads its library and what says which commands there are; of calls, which unlike seconds are the same each
    time, it takes hardly more than the library's to say nothing."""

    def took(code: str) -> tuple[int, set[str]]:
        whole = CALLS_COUNTED + code + SAID
        ended = subprocess.run([sys.executable, "-c", whole], capture_output=True, text=True, check=True)
        calls, *modules = ended.stdout.splitlines()[-1].split()
        return int(calls), {name for name in modules if name.partition(".")[0] not in sys.stdlib_module_names}

    run("--help")  # what is compiled the first time is compiled now
    (calls, modules), (least_calls, least) = took(HELP), took(LEAST_HELP)
    assert {name.partition(".")[0] for name in modules - least} == {"streamtrain"}
    assert not {name for name in modules if name.startswith("streamtrain.cli.commands.")}
    assert calls < 1.5 * least_calls


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["prodce"], 2, "Did you mean 'produce'?"),
        (["list", "opps"], 2, "opps"),
        (["check"], 2, "JOB.toml"),
        (["check", "nowhere.toml"], 2, "error: nowhere.toml: cannot be read as a job file: No such file or directory"),
        (["list", "formats", "--log-format", "xml"], 2, "--log-format"),
        (["train", "x.toml", "--fresh", "--restore", "3"], 2, "--fresh and --restore: expected one of them, got both"),
    ],
)
def test_a_mistake_is_one_message_and_exit_code_2(run: Run, arguments: list[str], code: int, text: str) -> None:
    if arguments[0] not in ("prodce", *commands()):
        pytest.skip(f"there is no command {arguments[0]}")
    ended = run(*arguments)
    assert ended.code == code and text in " ".join(ended.err.split()) and "Traceback" not in ended.err


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["train", "JOB", "--workers", "0"], "--workers: train.workers: expected a whole number from 1 to 64, got 0"),
        (["train", "JOB", "--set", "train.workers=0"], "--set: train.workers: expected a whole number"),
        (["train", "JOB", "--max-rows", "0"], "'--max-rows'"),
        (["train", "JOB", "--metrics-port", "70000"], "'--metrics-port'"),
        (["broker", "start", "--port", "70000"], "'--port'"),
    ],
)
def test_a_mistake_of_a_flag_names_the_flag(run: Run, tmp_path: Path, arguments: list[str], text: str) -> None:
    path = tmp_path / "job.toml"
    path.write_text('name = "x"\n[kafka]\nbootstrap.servers = "x:1"\n[columns]\na = {}\nb = { role = "label" }\n')
    ended = run(*(str(path) if argument == "JOB" else argument for argument in arguments))
    assert ended.code == 2 and text in ended.err, ended.err


def test_mistakes_are_json_with_json(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "job.toml"
    path.write_text("name = 5\n")
    ended = run("topics", "describe", path, "--json")
    line = json.loads(ended.err)
    assert (ended.code, ended.out) == (2, "")
    assert (line["error"], line["exit_code"]) == ("JobMistakes", 2)
    assert [mistake["path"] for mistake in line["mistakes"]] == ["name", "kafka.bootstrap.servers", "columns"]
    assert line["mistakes"][0]["where"] == "job.toml:1"


def test_vv_shows_the_traceback(run: Run) -> None:
    assert "Traceback" in run("check", "nowhere.toml", "-vv").err


def test_no_broker_is_exit_code_3_within_10_seconds(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "job.toml"
    path.write_text(
        'name = "x"\n[kafka]\nbootstrap.servers = "127.0.0.1:1"\n[columns]\na = {}\nb = { role = "label" }\n'
    )
    started_s = time.monotonic()
    ended = run("topics", "create", path)
    assert time.monotonic() - started_s < 60  # 8 s, on a busy machine
    assert ended.code == 3
    assert "error: " in ended.err and "127.0.0.1:1" in ended.err and "Traceback" not in ended.err


def test_no_color_gives_no_escapes(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("NO_COLOR", "1"), ("FORCE_COLOR", ""), ("TERM", "xterm-256color")):
        monkeypatch.setenv(name, value)
    ended = run("list", "formats")
    assert ended.code == 0 and "\x1b" not in ended.out and "json" in ended.out


def test_completion_knows_the_commands(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = {"_STREAMTRAIN_COMPLETE": "complete_bash", "COMP_WORDS": "streamtrain top", "COMP_CWORD": "1"}
    for name, value in asked.items():
        monkeypatch.setenv(name, value)
    assert run().out.split() == ["topics"]


def test_list(run: Run) -> None:
    expected = {kind: [each.shown(name) for name in each.names()] for kind, each in registries().items()}
    expected["settings"] = [setting.path + setting.when for setting in settings_table()]
    wrong = {}
    for kind, names in expected.items():
        ended = run("list", kind, "--json")
        entries = ended.document[kind]
        listed = [entry.get("name", entry.get("path", "") + entry.get("when", "")) for entry in entries]
        without_help = [name for name, entry in zip(listed, entries, strict=True) if not entry["help"]]
        with_settings = {entry.get("name") for entry in entries if "settings" in entry}
        registry = registries().get(kind)
        declare = {name for name in names if registry is not None and hasattr(registry.get(name), "OPTIONS")}
        if ended.code or listed != names or len({*names}) < len(names) or without_help or declare - with_settings:
            wrong[kind] = ended.code, listed, without_help, declare - with_settings
    assert wrong == {}
