"""docker-compose.yml: the same Kafka as the embedded one, and a file Docker accepts."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from streamtrain.broker.distribution import JAR_LIST

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
