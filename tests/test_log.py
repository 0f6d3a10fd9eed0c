"""Logs: their two forms, their fields, and that no secret ever stands in one."""

from __future__ import annotations

import io
import json
import logging
import re
import subprocess
import sys

import pytest

from streamtrain.errors import UserMistake
from streamtrain.log import configure_logging, get_logger, is_secret, mask_text, masked


@pytest.fixture
def lines():
    """Start logging with some settings; gives a function that returns the lines written so far."""
    root, ours = logging.getLogger(), logging.getLogger("streamtrain")
    before = root.handlers[:], root.level, ours.level
    stream = io.StringIO()

    def start(**settings):
        configure_logging(stream=stream, **settings)
        return lambda: stream.getvalue().splitlines()

    yield start
    root.handlers[:], root.level, ours.level = before
    logging.captureWarnings(False)


def test_a_plain_line(lines):
    written = lines()
    get_logger("streamtrain.run.roles.ingest").info("ring full", slots=24, waited_s=0.123456789, topic="a b", job="x")
    assert re.fullmatch(
        r'\d\d:\d\d:\d\d INFO ingest  ring full slots=24 waited_s=0\.123457 topic="a b" job=x', written()[0]
    )


def test_a_json_line(lines):
    written = lines(format="json", process="worker-1")
    get_logger("streamtrain.run.roles.worker").warning("rejected", round=7, message="taken name", level=(1, 2))
    line = json.loads(written()[0])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line.pop("time"))
    assert line == {
        "level": "warning",
        "process": "worker-1",
        "logger": "streamtrain.run.roles.worker",
        "message": "rejected",
        "round": 7,
        "message_": "taken name",
        "level_": [1, 2],
    }


def test_levels_and_a_second_configuration_replaces_the_first(lines):
    written = lines()
    lines(level="warning", process="ingest")
    log = get_logger("streamtrain.x")
    log.debug("no")
    log.info("no")
    log.error("yes")
    logging.getLogger("other.library").info("no")
    logging.getLogger("other.library").warning("also %s", "yes")
    for settings in ({"level": "loud"}, {"format": "xml"}):
        with pytest.raises(UserMistake, match="expected one of"):
            configure_logging(**settings)
    assert [line[9:] for line in written()] == ["ERROR ingest  yes", "WARNING ingest  also yes"]


def test_a_record_cannot_forge_a_line(lines):
    written = lines()
    get_logger("streamtrain.ingest").info("bad value", value="x\n14:00:00 INFO fake  line\x1b[2J")
    get_logger("streamtrain.ingest").info("first\n14:00:00 INFO fake  line\x1b[2J\r")
    assert len(written()) == 3
    assert written()[0].endswith(r'value="x\n14:00:00 INFO fake  line\u001b[2J"')
    assert written()[2] == r"    14:00:00 INFO fake  line\x1b[2J\x0d"


SECRETS = {
    "sasl.password": "hunter2",
    "ssl.key.password": "hunter2",
    "ssl.key.pem": "hunter2",
    "SASL_PASSWORD": "hunter2",
    "api.key": "hunter2",
    "sasl.oauthbearer.client.secret": "hunter2",
    "auth_token": "hunter2",
    "sasl.jaas.config": 'org.apache.Plain required username="x" password="hunter2";',
    "sasl.jaas": "hunter2",
    "consumer": {"sasl.password": "hunter2", "list": [{"token": "hunter2"}]},
}


@pytest.mark.parametrize("format", ["plain", "json"])
def test_no_secret_is_logged(lines, format):
    written = lines(format=format)
    log = get_logger("streamtrain.kafka")
    log.info("settings", **SECRETS)
    log.info("settings", kafka=SECRETS)
    logging.getLogger("streamtrain.kafka").info("with extra", extra=SECRETS)
    logging.getLogger("streamtrain.kafka").info("as text %s", SECRETS)
    log.info("failed: sasl.password = hunter2, sasl.jaas.config=Plain required user='x' password='hunter2';")
    try:
        raise ValueError("sasl.password=hunter2")
    except ValueError:
        log.exception("failed", text="token: hunter2")
    text = "\n".join(written())
    assert "hunter2" not in text
    assert "***" in text
    assert "ValueError" in text


def test_what_is_no_secret_is_shown():
    settings = {"ssl.key.location": "key.pem", "keep": 8, "bootstrap.servers": "a:9092", "group.id": "key-group"}
    assert masked(settings) == settings
    assert not is_secret("monkeys")
    assert mask_text("key 7 of tokens 3 at offset=12") == "key 7 of tokens 3 at offset=12"


def test_lines_go_to_the_stderr_of_their_time(lines, monkeypatch):
    gone, now = io.StringIO(), io.StringIO()
    monkeypatch.setattr(sys, "stderr", gone)
    lines()
    configure_logging()
    gone.close()
    monkeypatch.setattr(sys, "stderr", now)
    get_logger("streamtrain.x").info("heard")
    assert re.fullmatch(r"\S+ INFO x  heard\n", now.getvalue())


def test_a_warning_that_repeats_itself_is_counted_and_shown_again_later(lines, monkeypatch):
    written = lines()
    log = get_logger("streamtrain.repeats")
    for attempt in range(1000):
        log.warning(f"Connect failed (after {attempt}ms in state CONNECT)")
        log.info("as often as it likes")
    assert [sum(words in line for line in written()) for words in ("Connect failed", "as often")] == [1, 1000]
    monkeypatch.setattr("streamtrain.log.REPEAT_S", 0.0)
    log.warning("Connect failed (after 7ms in state CONNECT)")
    assert sum("Connect failed" in line for line in written()) == 2


def test_importing_configures_nothing():
    script = "import logging, streamtrain.log; assert not logging.getLogger().handlers"
    subprocess.run([sys.executable, "-c", script], check=True)
