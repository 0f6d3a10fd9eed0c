"""`streamtrain doctor`: what is well, what is not, and what to do."""

from __future__ import annotations

import resource
from typing import Any

import pytest

from streamtrain.doctor import REGISTRY
from streamtrain.doctor.finding import Finding
from streamtrain.doctor.looking import looked
from streamtrain.job.kafka_settings import KafkaSettings
from tests.cli.conftest import Run


def found(document: Any) -> dict[str, Any]:
    return {finding["what"]: finding for finding in document["findings"]}


def test_every_look_says_something(run: Run) -> None:
    findings = dict(looked(None))
    assert sorted(findings) == REGISTRY.names()
    for name, each in findings.items():
        assert each and all(finding.found for finding in each), name
        assert all(finding.state == "ok" or finding.do for finding in each), name
        assert not any("could not be looked at" in finding.found for finding in each), each
    secret = {"bootstrap.servers": "127.0.0.1:1", "sasl.password": "hunter2", "security.protocol": "SASL_PLAINTEXT",
              "sasl.mechanism": "PLAIN", "sasl.username": "someone"}  # fmt: skip
    assert "hunter2" not in str(list(looked(KafkaSettings(secret))))


def test_a_kafka_that_is_away_is_wrong(run: Run) -> None:
    ended = run("doctor", "-b", "127.0.0.1:1", "--json")
    kafka = found(ended.document)["kafka"]
    assert ended.code == 1 and kafka["state"] == "wrong" and "127.0.0.1:1" in kafka["found"] and kafka["do"]


def test_a_kafka_that_is_there_is_well(run: Run, kafka: Any) -> None:
    ended = run("doctor", "-b", kafka.bootstrap, "--json")
    assert found(ended.document)["kafka"]["found"].startswith(f"{kafka.bootstrap} answers within ")
    assert not [each for each in ended.document["findings"] if each["state"] == "wrong"]
    assert ended.code == 0


@pytest.mark.parametrize(("files", "state", "code"), [(128, "wrong", 1), (512, "warning", 0), (4096, "ok", 0)])
def test_few_open_files_are_told(run: Run, monkeypatch: pytest.MonkeyPatch, files: int, state: str, code: int) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda which: (files, files))
    ended = run("doctor", "--json")
    told = found(ended.document)["open files"]
    assert (told["found"], told["state"], ended.code) == (f"limited to {files:,}", state, code)


def test_a_look_that_fails_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamtrain.doctor.processor.usable_cores", lambda: 1 / 0)
    found = dict(looked(None))["processor"]
    assert found[-1].state == "warning" and "ZeroDivisionError" in found[-1].found
    assert isinstance(found[-1], Finding)
