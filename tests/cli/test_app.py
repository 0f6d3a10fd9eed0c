"""The command line as a whole: help, mistakes, exit codes, tokens, and signals, of which the first lets a command
finish what it has begun and the second ends it with 130."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from prediction_bench import PARTITIONS, Bench
from served_model import ServedModel
from waiting import wait_for

from streamtrain import __version__
from streamtrain.cli.app import commands as all_commands
from streamtrain.cli.stopping import StoppedAtOnce, StopSignals
from streamtrain.cli.token import TOKEN, token_for
from streamtrain.errors import UserMistake
from streamtrain.job import settings_table
from streamtrain.registry import registries
from streamtrain.rights import REGISTRY
from tests.cli.conftest import JOB, Run
from tests.e2e import commands


def test_version(run: Run) -> None:
    ended = run("--version")
    assert (ended.code, ended.out) == (0, f"streamtrain {__version__}\n")


def test_help_names_every_command_and_the_exit_codes(run: Run) -> None:
    ended = run("--help")
    assert ended.code == 0
    for name in all_commands():
        assert name in ended.out
    text = " ".join(ended.out.split())
    assert "0 done; 1 a check failed" in text and "130 stopped by Ctrl-C" in text


def test_each_command_has_help_that_a_pipe_does_not_cut_and_the_common_options(run: Run) -> None:
    common = ("--json", "--bootstrap", "--set", "--verbose", "--quiet", "--log-format")
    wrong = {}
    for name in sorted(all_commands()):
        ended = run(name, "--help")
        options = [option for option in common if option not in ended.out and "COMMAND" not in ended.out]
        if ended.code or "Exit codes" not in ended.out or "…" in ended.out or options:
            wrong[name] = ended.code, options, ended.out
    assert wrong == {}


def test_a_paragraph_of_help_is_wrapped_by_the_terminal_alone(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("typer.rich_utils.MAX_WIDTH", 300)
    for call, sentence in ((("predict",), "a second one stops"), (("dead-letters", "resend"), "Refused by name: the")):
        assert sentence in run(*call, "--help").out


# programs that print how many calls they took and what they loaded
COUNTED = """
import sys
calls = 0
def count(frame, event, argument):
    global calls
    calls += event in ("call", "c_call")
sys.setprofile(count)
{}
sys.setprofile(None)
print(calls, *sys.modules)
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


def test_help_is_quick_and_loads_no_command(run: Run) -> None:
    """Counts calls, which unlike seconds are the same each time: hardly more than its library needs for nothing."""

    def took(code: str) -> tuple[int, set[str]]:
        program = [sys.executable, "-c", COUNTED.format(code)]
        ended = subprocess.run(program, capture_output=True, text=True, check=True)
        calls, *modules = ended.stdout.splitlines()[-1].split()
        return int(calls), {name for name in modules if name.partition(".")[0] not in sys.stdlib_module_names}

    run("--help")  # what is compiled the first time is compiled now
    (calls, modules), (least_calls, least) = took(HELP), took(LEAST_HELP)
    assert {name.partition(".")[0] for name in modules - least} == {"streamtrain"}
    assert not {name for name in modules if name.startswith("streamtrain.cli.commands.")}
    assert calls < 1.5 * least_calls


PLAIN = 'name = "x"\n[kafka]\nbootstrap.servers = "127.0.0.1:1"\n[columns]\na = {}\nb = { role = "label" }\n'
MISTAKES = {
    "prodce": "Did you mean 'produce'?",
    "list opps": "opps",
    "check": "JOB.toml",
    "check nowhere.toml": "error: nowhere.toml: cannot be read as a job file: No such file or directory",
    "list formats --log-format xml": "--log-format",
    "train JOB --fresh --restore 3": "--fresh and --restore: expected one of them, got both",
    "train JOB --fresh --add-classes a": "--fresh and --add-classes: expected one of them, got both",
    "train JOB --workers 0": "--workers: train.workers: expected a whole number from 1 to 64, got 0",
    "train JOB --set train.workers=0": "--set: train.workers: expected a whole number",
    "train JOB --max-rows 0": "'--max-rows'",
    "train JOB --metrics-port 70000": "'--metrics-port'",
    "broker start --port 70000": "'--port'",
}


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    """A job whose Kafka is not there."""
    path = tmp_path / "job.toml"
    path.write_text(PLAIN)
    return path


@pytest.mark.parametrize("call", MISTAKES)
def test_a_mistake_is_one_message_and_exit_code_2(run: Run, plain: Path, call: str) -> None:
    ended = run(*call.replace("JOB", str(plain)).split())
    assert ended.code == 2 and MISTAKES[call] in " ".join(ended.err.split()) and "Traceback" not in ended.err


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


@pytest.mark.parametrize("command", ["topics create", "train"])
def test_no_broker_is_exit_code_3(run: Run, plain: Path, impatient: None, command: str) -> None:
    """Returns after one call's time-out, whose length tests/kafka/test_admin.py checks."""
    started_s = time.monotonic()
    ended = run(*command.split(), plain)
    assert time.monotonic() - started_s < 60  # a second or two, on a busy machine
    assert ended.code == 3
    assert "error: " in ended.err and "127.0.0.1:1" in ended.err and "Traceback" not in ended.err


def test_no_color_gives_no_escapes(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("NO_COLOR", "1"), ("FORCE_COLOR", ""), ("TERM", "xterm-256color")):
        monkeypatch.setenv(name, value)
    ended = run("list", "formats")
    assert ended.code == 0 and "\x1b" not in ended.out and "json" in ended.out


def test_completion_knows_the_commands(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    environment = {"_STREAMTRAIN_COMPLETE": "complete_bash", "COMP_WORDS": "streamtrain top", "COMP_CWORD": "1"}
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert run().out.split() == ["topics"]


def test_list(run: Run) -> None:
    expected = {kind: [each.display_name(name) for name in each.names()] for kind, each in registries().items()}
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


# -- the token of what listens: one form, wherever it comes from, and where there must be one -------------------------

GOOD = "s3cret-._~+/8=="


@pytest.fixture(autouse=True)
def no_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(TOKEN, raising=False)


def test_only_others_than_this_machine_need_one(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [token_for(host, None) for host in ("127.0.0.1", "localhost", "::1", "127.8.8.8")] == [""] * 4
    others = ["0.0.0.0", "::", "192.0.2.1", "trainer.example", "localhost.example", ""]
    for host in others:
        with pytest.raises(UserMistake, match=f"--host {host}: expected a token where others can connect"):
            token_for(host, None)
    monkeypatch.setenv(TOKEN, f" {GOOD}\n")
    assert [token_for(host, None) for host in others] == [GOOD] * 6


def test_a_file_goes_before_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TOKEN, GOOD)
    (tmp_path / "token").write_text("0123456789\n")
    assert token_for("0.0.0.0", tmp_path / "token") == "0123456789"
    with pytest.raises(UserMistake, match=r"--token-file .*none: expected a file that holds a token"):
        token_for("127.0.0.1", tmp_path / "none")


@pytest.mark.parametrize(
    "text", ["short", "with a space", "naïve-token", "tab\ttab-tab", "a;b=c;path=", "=in=front", "{curly}-braces"]
)
def test_what_is_no_token(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TOKEN, text)
    with pytest.raises(UserMistake, match=f"{TOKEN}: expected a token of 8 or more"):
        token_for("127.0.0.1", None)
    for written in (text, "\n"):
        (tmp_path / "token").write_text(written)
        with pytest.raises(UserMistake, match=r"--token-file .*: expected a token of 8 or more"):
            token_for("127.0.0.1", tmp_path / "token")


PROGRAM = [sys.executable, "-c", "from streamtrain.cli import main; main()"]
NewJob = Callable[..., Path]
SIGNALS = [signal.SIGINT, signal.SIGTERM]


@pytest.mark.parametrize("first", SIGNALS)
@pytest.mark.parametrize("second", SIGNALS)
def test_a_second_signal_ends_what_is_done(first: int, second: int) -> None:
    with pytest.raises(StoppedAtOnce), StopSignals() as stop:
        os.kill(os.getpid(), first)
        assert stop.is_set() and stop.interrupted == (first == signal.SIGINT)
        os.kill(os.getpid(), second)


@pytest.mark.parametrize("writes", [True, pytest.param(False, marks=pytest.mark.full)])
def test_a_command_over_files_ends_while_it_waits(tmp_path: Path, new_job: Callable[..., Path], writes: bool) -> None:
    job, output = new_job(bootstrap="localhost:1"), tmp_path / "rows.npy"
    command = ["vectorize", "--output", str(output)] if writes else ["analyze"]
    arguments = [*PROGRAM, *command, str(job), "--input", "-", "--form", "csv", "--json"]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as working:
        assert working.stdin is not None and working.stdout is not None
        working.stdin.write("delay,carrier,late\n" + "1,AA,1\n" * 100_000)
        working.stdin.flush()  # it reads: more than a pipe holds is gone
        if writes:
            assert any(path.name.endswith(".part") for path in tmp_path.iterdir())
        working.send_signal(signal.SIGINT)
        assert working.wait(60) == 130
        text = working.stdout.read()
    assert [path for path in tmp_path.iterdir() if path != job] == []
    if not writes:
        assert json.loads(text)["stopped"]


@pytest.mark.full
def test_a_second_sigterm_ends_a_predictor_whose_kafka_is_away(private_kafka: Any, new_job: NewJob) -> None:
    broker = private_kafka()
    bench = Bench(broker.bootstrap, "away")
    ServedModel(broker.bootstrap, "away").put()
    path = new_job("away", broker.bootstrap)
    command = [*PROGRAM, "predict", str(path), "--set", "predict.delivery=at_least_once", "--log-format", "json"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as predictor:
        assert predictor.stderr is not None
        for i in range(20_000):  # more than it answers before Kafka is gone
            bench.ask([[i, 1]] * 50, str(i), partition=i % PARTITIONS)
        wait_for(lambda: bench.counts().total())
        broker.kill()
        next(line for line in predictor.stderr if "brokers are down" in line)
        predictor.send_signal(signal.SIGTERM)
        with pytest.raises(subprocess.TimeoutExpired):  # it waits for Kafka to take the last answers
            predictor.wait(1)
        predictor.send_signal(signal.SIGTERM)
        assert predictor.wait(240) == 130


IN_BACKGROUND = ["sh", "-c", 'trap "" INT; exec "$@"', "background"]  # as a shell starts it


@pytest.mark.parametrize(
    ("number", "started"),
    [
        (signal.SIGINT, IN_BACKGROUND), (signal.SIGTERM, []),
        pytest.param(signal.SIGINT, [], marks=pytest.mark.full),
        pytest.param(signal.SIGTERM, IN_BACKGROUND, marks=pytest.mark.full),
    ],
    ids=["interrupted-in-background", "ended", "interrupted", "ended-in-background"],
)  # fmt: skip
def test_a_watched_status_in_a_pipe_is_shown_again_and_again_and_ends_with_130(
    job: Path, number: int, started: list[str]
) -> None:
    form = ["--json"] if number == signal.SIGINT else []
    with subprocess.Popen([*started, *PROGRAM, "status", str(job), "--watch", *form], stdout=-1, text=True) as watching:
        assert watching.stdout is not None
        begins = '{"job"' if form else "job "
        for _ in range(2):
            assert any(line.startswith(begins) for line in watching.stdout), "it ended"
        watching.send_signal(number)
        assert watching.wait(240) == 130


def test_a_second_sigterm_ends_a_trainer_that_cannot_publish(
    run: Callable[..., Any], job: Path, rows: Path, tmp_path: Path
) -> None:
    assert run("produce", job, "--input", rows, "-q").code == 0
    failpoints = {"STREAMTRAIN_FAILPOINTS": "coordinator.stall_in_transaction=3~60"}  # the first publication
    log = tmp_path / "train.log"
    with log.open("w") as errors:
        arguments = ["train", str(job), "--json", "--set", "records.max_dead_letter_share=1"]
        trainer = commands.start(arguments, errors, failpoints)
    assert trainer.stdout is not None
    next(event for event in map(json.loads, trainer.stdout) if event.get("rows") == 2)
    trainer.send_signal(signal.SIGTERM)
    wait_for(lambda: "draining" in log.read_text())
    trainer.send_signal(signal.SIGTERM)
    assert trainer.wait(240) == 130


def test_only_a_job_of_many_hosts_exchanges_contributions(run: Run, tmp_path: Path) -> None:
    """The rights of its other topics are those of one host."""
    job, found = tmp_path / "job.toml", []
    job.write_text(JOB.format(name="acl", bootstrap="127.0.0.1:1", format="json"))
    for hosts in ("one", "many"):
        arguments = ("acl", job, "--set", f"train.hosts={hosts}", "--json", "--for")
        found.append({role: run(*arguments, role).document["rights"] for role in REGISTRY.names()})
    more = {role: [right for right in found[1][role] if right not in found[0][role]] for role in found[0]}
    names = {role: {right["name"] for right in rights} for role, rights in more.items() if rights}
    assert names.pop("trainer") == {"acl.contributions", "acl.hosts", "acl.leader"}
    assert names and all(each == {"acl.contributions"} for each in names.values()), "who sees or makes all topics"
    operations = next(right["operations"] for right in more["trainer"] if right["kind"] == "topic")
    assert operations == ["Read", "Describe", "DescribeConfigs", "Write", "Delete"]


STOPPING = '\n[train.early_stopping]\nno_improvement = 3\nheld_out = {{ topic = "{topic}" }}\n'


def test_a_trainer_reads_the_validation_topic(run: Run, tmp_path: Path) -> None:
    plain = JOB.format(name="acl", bootstrap="127.0.0.1:1", format="json")
    found = []
    for text in (plain, plain + STOPPING.format(topic="judges"), plain + STOPPING.format(topic="acl.records")):
        job = tmp_path / "job.toml"
        job.write_text(text)
        found.append(run("acl", job, "--for", "trainer", "--json").document["rights"])
    of_it = {"kind": "topic", "name": "judges", "operations": ["Read", "Describe", "DescribeConfigs"], "begins": False}
    assert of_it in found[1] and [right for right in found[1] if right != of_it] == found[0] == found[2]
