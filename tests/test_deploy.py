"""What runs it elsewhere: the same Kafka as the embedded one, a file Docker accepts, and no restart of exit code 4."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from streamtrain.broker.distribution import JAR_LIST
from streamtrain.errors import Replaced, UserMistake

ROOT = Path(__file__).resolve().parents[1]


def test_compose_runs_the_embedded_brokers_version():
    embedded = re.search(r"^org\.apache\.kafka:kafka_2\.13:(\S+)$", JAR_LIST.read_text(), re.MULTILINE)[1]
    image = re.search(r"^\s+image: apache/kafka:(\S+)$", (ROOT / "docker-compose.yml").read_text(), re.MULTILINE)[1]
    assert image == embedded


def test_docker_accepts_the_file():
    docker = shutil.which("docker")
    if docker is None or subprocess.run([docker, "compose", "version"], capture_output=True).returncode != 0:
        pytest.skip("no `docker compose` here")
    command = [docker, "compose", "--file", str(ROOT / "docker-compose.yml"), "config", "--quiet"]
    assert subprocess.run(command, capture_output=True, text=True, check=False).stderr == ""


def test_systemd_never_restarts_a_replaced_trainer():
    unit = (ROOT / "deploy" / "streamtrain@.service").read_text()
    prevented = re.search(r"^RestartPreventExitStatus=(.*)$", unit, re.MULTILINE)[1].split()
    assert str(Replaced.exit_code) in prevented and str(UserMistake.exit_code) in prevented
    assert "Restart=on-failure" in unit


def test_compose_never_restarts_a_replaced_trainer():
    compose = (ROOT / "docker-compose.yml").read_text()
    train = compose[compose.index("\n  train:") : compose.index("\n  predict:")]
    assert "entrypoint: [leave-when-replaced, streamtrain]" in train and "restart: on-failure" in train


@pytest.mark.long
@pytest.mark.parametrize(("service", "here"), [("train", "9400"), ("predict", "9401")])
def test_compose_shows_metrics_and_looks_at_readiness(service: str, here: str):
    compose = (ROOT / "docker-compose.yml").read_text()
    (section,) = re.findall(rf"\n  {service}:\n((?:    .*\n)+)", compose)
    command = re.search(r"command: (.*)", section)[1].split()
    port = command[command.index("--metrics-port") + 1]
    assert command[command.index("--metrics-host") + 1] == "0.0.0.0"  # of the container, whose port Docker hands on
    assert f'ports: ["127.0.0.1:{here}:{port}"]' in section and "healthcheck: *ready" in section
    assert f"localhost:{port}/ready" in compose
    done = subprocess.run(
        [Path(sys.executable).parent / "streamtrain", *command[:1], "no.toml", *command[2:]],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "no.toml" in done.stderr and "option" not in done.stderr  # the options are taken, the file is not there


LEAVE = ROOT / "deploy" / "leave-when-replaced"


@pytest.mark.parametrize(("code", "seen"), [(0, 0), (1, 1), (3, 3), (Replaced.exit_code, 0), (130, 130)])
def test_only_the_replaced_one_ends_well(code: int, seen: int):
    assert subprocess.run(["sh", str(LEAVE), "sh", "-c", f"exit {code}"], check=False).returncode == seen


def test_signals_reach_the_command():
    script = "import signal, sys\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit(7))\nprint('up', flush=True)\n"
    command = ["sh", str(LEAVE), sys.executable, "-c", script + "while True:\n    signal.pause()\n"]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert running.stdout is not None and running.stdout.readline() == "up\n"
    running.terminate()
    assert running.wait(60) == 7
