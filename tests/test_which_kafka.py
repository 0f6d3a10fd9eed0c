"""Which Kafka the tests use: a given one, Docker's where it is asked for, else the embedded one."""

from __future__ import annotations

import inspect
import os
import re
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

import pytest
import tests_kafka
from one_for_all import one_for_all
from tests_kafka import COMPOSE_ADDRESS, COMPOSE_PROJECT, ROOT, running_kafka


class FakeCompose:
    """Stands in for Docker; as testcontainers', it brings its services up and takes them down with what they hold."""

    calls: list[Any]

    def __init__(self, context: Any, **given: Any) -> None:
        self.calls.append((context, given))

    def __enter__(self) -> Self:
        self.calls.append(("up", os.environ["COMPOSE_PROJECT_NAME"]))
        return self

    def __exit__(self, *error: object) -> None:
        self.calls.append(("down", os.environ["COMPOSE_PROJECT_NAME"]))


class Embedded(nullcontext[Any]):
    bootstrap = "127.0.0.1:20001"

    def __init__(self, **settings: Any) -> None:
        super().__init__(self)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    for name in ("STREAMTRAIN_TEST_BOOTSTRAP", "STREAMTRAIN_TEST_BROKER", "COMPOSE_PROJECT_NAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setitem(sys.modules, "testcontainers", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "testcontainers.compose", SimpleNamespace(DockerCompose=FakeCompose))
    monkeypatch.setattr(tests_kafka, "start_broker", Embedded)
    monkeypatch.setattr(FakeCompose, "calls", [], raising=False)
    return FakeCompose.calls


def test_dockers_is_the_compose_files_in_a_project_of_its_own(
    calls: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STREAMTRAIN_TEST_BROKER", "docker")
    with running_kafka() as bootstrap:
        assert bootstrap == COMPOSE_ADDRESS
        assert calls == [(ROOT, {"services": ["kafka"], "wait": True}), ("up", COMPOSE_PROJECT)]
    assert calls[2:] == [("down", COMPOSE_PROJECT)] and "COMPOSE_PROJECT_NAME" not in os.environ
    file = (ROOT / "docker-compose.yml").read_text()
    assert re.search(rf"OUTSIDE://{COMPOSE_ADDRESS}\b", file) and f":{COMPOSE_ADDRESS.partition(':')[2]}:" in file


@pytest.mark.full
def test_testcontainers_takes_what_it_is_given() -> None:
    compose = pytest.importorskip("testcontainers.compose", reason="not installed (extra test-full)").DockerCompose
    inspect.signature(compose).bind(ROOT, services=["kafka"], wait=True)
    assert hasattr(compose, "__enter__") and hasattr(compose, "__exit__")


def test_a_given_one_comes_first_and_the_embedded_one_last(calls: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    with running_kafka() as bootstrap:
        assert bootstrap == Embedded.bootstrap
    monkeypatch.setenv("STREAMTRAIN_TEST_BROKER", "podman")
    with pytest.raises(pytest.UsageError, match="expected docker or embedded, got 'podman'"), running_kafka():
        pass
    monkeypatch.setenv("STREAMTRAIN_TEST_BOOTSTRAP", "elsewhere:9092")
    with running_kafka() as bootstrap:
        assert bootstrap == "elsewhere:9092"
    assert calls == []


def test_all_who_ask_share_one_until_the_last_is_done(
    calls: list[Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    log: list[str] = []
    all_have_it, starter_leaves = threading.Barrier(3), threading.Event()
    starters: list[threading.Thread] = []

    class Counted(Embedded):
        def __enter__(self) -> Self:
            starters.append(threading.current_thread())
            log.append("started")
            return self

        def __exit__(self, *error: object) -> None:
            log.append("ended")

    monkeypatch.setattr(tests_kafka, "start_broker", Counted)

    def use() -> str:
        with one_for_all(tmp_path, "kafka", running_kafka) as bootstrap:
            all_have_it.wait(60)
            if threading.current_thread() in starters:
                starter_leaves.set()
            assert starter_leaves.wait(60)
            log.append("left")
            return bootstrap

    with ThreadPoolExecutor(3) as pool:
        users = [pool.submit(use) for _ in range(3)]
        assert {user.result(60) for user in users} == {Embedded.bootstrap}
    assert log == ["started", "left", "left", "left", "ended"]
    with one_for_all(tmp_path, "kafka", running_kafka):
        assert log[5:] == ["started"]
