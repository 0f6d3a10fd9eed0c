"""`streamtrain acl`: with exactly the rights it prints each role does its work on a Kafka that asks who one is, and
without one of them it does not.
"""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)
from guarded_kafka import PASSWORD, GuardedKafka
from served_http import serving
from waiting import wait_for

from streamtrain import LiveModel
from streamtrain.job.kafka_settings import KafkaSettings
from streamtrain.rights import REGISTRY
from streamtrain.ui.following import Following
from tests.cli.conftest import JOB, Run
from tests.e2e import commands, threaded
from tests.e2e.harness import LiveJob
from tests.e2e.test_gaps import delete

IN_PROCESSES = ("train", "predict")  # the others run in the test's
KINDS = {"topic": ResourceType.TOPIC, "group": ResourceType.GROUP, "transactional-id": ResourceType.TRANSACTIONAL_ID}
PATTERNS = {"literal": ResourcePatternType.LITERAL, "prefixed": ResourcePatternType.PREFIXED}


def bindings(line: str) -> list[AclBinding]:
    """Returns the bindings that kafka-acls.sh makes of a printed line, by its manual."""
    tool, *words = shlex.split(line)
    assert tool == "kafka-acls.sh" and words.pop(words.index("--add"))
    options: dict[str, list[str]] = {}
    for name, value in zip(words[::2], words[1::2], strict=True):
        options.setdefault(name.removeprefix("--"), []).append(value)
    options.pop("bootstrap-server")
    (principal,), operations = options.pop("allow-principal"), options.pop("operation")
    (pattern,) = options.pop("resource-pattern-type", ["literal"])
    ((kind, (name,)),) = options.items()
    return [
        AclBinding(KINDS[kind], name, PATTERNS[pattern], principal, "*", _operation(operation), AclPermissionType.ALLOW)
        for operation in operations
    ]  # fmt: skip


def _operation(name: str) -> AclOperation:
    return AclOperation[{"DescribeConfigs": "DESCRIBE_CONFIGS"}.get(name, name.upper())]


class As:
    """A job as a user sees it who has what was printed for a role."""

    def __init__(self, guarded: GuardedKafka, job: LiveJob, role: str, folder: Path) -> None:
        self.user, self.role, self.job, self.guarded = f"the-{role}", role, job, guarded
        guarded.set_password(self.user, PASSWORD)
        printed = job.here("acl", "--for", role, "--principal", f"User:{self.user}")
        assert printed.returncode == 0, printed.stderr
        self.bindings = [binding for line in printed.stdout.splitlines() for binding in bindings(line)]
        self.admin = AdminClient({"bootstrap.servers": guarded.bootstrap})
        anybody = AclBindingFilter(
            ResourceType.ANY, None, ResourcePatternType.ANY, f"User:{self.user}", None, AclOperation.ANY,
            AclPermissionType.ANY,
        )  # fmt: skip
        for done in self.admin.delete_acls([anybody]).values():
            done.result(30)
        for done in self.admin.create_acls(self.bindings).values():
            done.result(30)
        settings = guarded.sasl(self.user, PASSWORD, "SCRAM-SHA-256")
        self.bootstrap = settings.pop("bootstrap.servers")
        sections = "\n".join(f"{name} = {json.dumps(value)}" for name, value in settings.items())
        text = job.path.read_text().replace(f'"{job.bootstrap}"', f'"{self.bootstrap}"\n{sections}')
        self.path = folder / f"{role}.toml"
        self.path.write_text(text)

    def runs(self, *words: str) -> subprocess.CompletedProcess[str]:
        """A command as that user; JOB among the words is the job file."""
        if words[0] in IN_PROCESSES:
            return commands.run([str(self.path) if word == "JOB" else word for word in words], {})
        before_job = words.index("JOB")
        return self.here(" ".join(words[:before_job]), *words[before_job + 1 :])

    here: Any = LiveJob.here  # of the job file at self.path

    def does(self, *words: str) -> None:
        """Runs a command that must end well."""
        done = self.runs(*words)
        assert done.returncode == 0, f"{self.role} {words}: {done.stdout[-800:]}\n{done.stderr[-3000:]}"


@pytest.mark.full
def test_each_role_has_what_it_needs(guarded: GuardedKafka, tmp_path: Path) -> None:
    """Each step, from the topics' creation to the views, is done by the role that does it."""
    job = LiveJob(guarded, tmp_path)
    rows = tmp_path / "rows.jsonl"
    rows.write_text("".join(json.dumps({**ROW, "x1": at / 10, "y": at % 2}) + "\n" for at in range(200)))
    requests = tmp_path / "requests.jsonl"
    requests.write_text(json.dumps(ROW) + "\n")
    who: Callable[[str], As] = lambda role: As(guarded, job, role, tmp_path)  # noqa: E731

    admin = who("admin")
    delete(job, *(name for name in job.admin.names() if name.startswith(job.name)))
    admin.does("topics", "create", "JOB")
    producer = who("producer")
    producer.does("produce", "JOB", "--input", str(rows))
    producer.does("produce", "JOB", "--input", str(requests), "--to", "requests")
    who("trainer").does("train", "JOB", "--until-end")
    who("predictor").does("predict", "JOB", "--until-end")
    auditor = who("auditor")
    for words in ("status JOB", "history JOB", "verify JOB", "replay JOB --from 1", "read JOB predictions --until-end"):
        auditor.does(*words.split())
    follower = who("follower")
    settings = guarded.sasl(follower.user, PASSWORD, "SCRAM-SHA-256")
    with LiveModel(job.name, bootstrap=settings.pop("bootstrap.servers"), kafka=settings) as model:
        model.wait_ready(60)
        assert model.predict(ROW)
    with serving(who("serve").path) as server:
        server.wait_ready()
        assert server.post(f"/predict/{job.name}", ROW).status_code == 200
    following = Following(job.name, KafkaSettings(guarded.sasl(who("ui").user, PASSWORD, "SCRAM-SHA-256")))
    try:
        following.watched()
        wait_for(lambda: len(following.publications) and following.standing)
        assert (following.state, following.error) == ("ended", "")
    finally:
        following.close()
    assert len(REGISTRY.names()) == 8  # each was somebody above


ROW = {"x1": 0.5, "x2": 0.1, "x3": 0.2, "x4": 0.3, "colour": "red"}


@pytest.mark.full
@pytest.mark.parametrize(
    ("role", "operation", "ending", "command"),
    [
        ("trainer", "WRITE", ".rounds", "train JOB --until-end"),
        ("trainer", "READ", ".records", "train JOB --until-end"),
        ("trainer", "WRITE", "", "train JOB --until-end"),  # its transactions
        ("predictor", "READ", ".snapshots", "predict JOB --until-end"),
        ("auditor", "READ", ".control", "verify JOB"),
    ],
)
def test_what_is_not_given_is_missed(
    guarded: GuardedKafka, tmp_path: Path, role: str, operation: str, ending: str, command: str
) -> None:
    job = LiveJob(guarded, tmp_path, produce=100)
    if role != "trainer":
        threaded.rows_after(job.path)
    user = As(guarded, job, role, tmp_path)
    name = f"{job.name}{ending}"
    (taken,) = [each for each in user.bindings if (each.name, each.operation) == (name, AclOperation[operation])]
    exact = AclBindingFilter(
        taken.restype, taken.name, taken.resource_pattern_type, taken.principal, taken.host, taken.operation,
        taken.permission_type,
    )  # fmt: skip
    for done in user.admin.delete_acls([exact]).values():
        assert done.result(30)
    refused = user.runs(*command.split())
    assert refused.returncode == 2 and "uthori" in refused.stderr, refused.stderr[-2000:]


HELD_OUT = '\n[train.early_stopping]\nno_improvement = 3\nheld_out = {{ topic = "{topic}" }}\n'


def test_a_trainer_reads_the_topic_that_is_held_out(run: Run, tmp_path: Path) -> None:
    plain = JOB.format(name="acl", bootstrap="127.0.0.1:1", format="json")
    found = []
    for text in (plain, plain + HELD_OUT.format(topic="judges"), plain + HELD_OUT.format(topic="acl.records")):
        job = tmp_path / "job.toml"
        job.write_text(text)
        found.append(run("acl", job, "--for", "trainer", "--json").document["rights"])
    of_it = {"kind": "topic", "name": "judges", "operations": ["Read", "Describe", "DescribeConfigs"], "begins": False}
    assert of_it in found[1] and [right for right in found[1] if right != of_it] == found[0] == found[2]
