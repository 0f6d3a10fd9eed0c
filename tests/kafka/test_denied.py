"""Tests of access: a client that is not let in, or lacks a right, reads why and ends.

With exactly the rights that `streamtrain acl` prints, each role does its work on a Kafka that authenticates clients.
Without one of them it does not.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import threading
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from at_once import run_at_once
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
from prediction_bench import Bench
from served_http import serving
from served_model import ServedModel
from waiting import wait_for

from streamtrain.background import in_background
from streamtrain.clients.live_model import LiveModel
from streamtrain.clients.snapshots import follow_snapshots
from streamtrain.errors import KafkaDenied, KafkaSettling, UserMistake
from streamtrain.job.kafka_settings import KafkaSettings
from streamtrain.kafka.admin import Admin
from streamtrain.kafka.clients import KafkaConsumer
from streamtrain.kafka.control import ControlTopic
from streamtrain.kafka.settings import Purpose
from streamtrain.kafka.snapshot_reader import SnapshotTopic
from streamtrain.rights import REGISTRY
from streamtrain.run.roles import predictor
from streamtrain.topics.topic import TopicWish
from streamtrain.ui.followed_job import Following
from tests.e2e import commands, threaded
from tests.e2e.harness import LiveJob
from tests.e2e.test_gaps import delete

Settings = dict[str, str]
DELIVERIES = ["exactly_once", "at_least_once"]
READ, WRITE, TOPIC = AclOperation.READ, AclOperation.WRITE, ResourceType.TOPIC
RIGHTS = {
    "requests": (TOPIC, "requests", READ), "group": (ResourceType.GROUP, "predict", READ),
    "predictions": (TOPIC, "predictions", WRITE), "id": (ResourceType.TRANSACTIONAL_ID, "predict", WRITE),
}  # fmt: skip
MISSING = [  # the last of at_least_once is no right that it uses
    (delivery, right, when)
    for delivery in DELIVERIES for right in RIGHTS for when in ("before", "while")
    if (delivery, right) != ("at_least_once", "id")
]  # fmt: skip


def ask_admin(settings: Settings) -> None:
    Admin(settings["bootstrap.servers"], settings).describe(["job.records"])


def ask_snapshots(settings: Settings) -> None:
    with SnapshotTopic("job", settings["bootstrap.servers"], settings) as topic:
        topic.newest_manifest()


def ask_control(settings: Settings) -> None:
    with ControlTopic(settings, "job.control") as topic:
        topic.look()


def ask_natively(settings: Settings) -> None:
    with KafkaConsumer.open(Purpose.INGEST, settings) as consumer:
        consumer.partition_count("job.records", 8)


CLIENTS = [ask_admin, ask_snapshots, ask_control, ask_natively]


@pytest.fixture(scope="module")
def job(guarded: GuardedKafka, tmp_path_factory: pytest.TempPathFactory) -> LiveJob:
    live_job = LiveJob(guarded, tmp_path_factory.mktemp("job"))
    live_job.produce(300)
    return live_job


def test_who_is_not_let_in_reads_why(guarded: GuardedKafka, job: LiveJob) -> None:
    ways = {
        "PLAIN": (guarded.sasl("alice", "wrong"), "[Aa]uthentication"),
        "SCRAM-SHA-256": (guarded.sasl("alice", "wrong", "SCRAM-SHA-256"), "[Aa]uthentication"),
        "TLS": (guarded.tls(guarded.stranger), "certificate verify failed"),
        "right": (guarded.sasl("mallory", PASSWORD), "[Aa]uthoriz"),
        **{f"certificate {name}": (guarded.certified(name), "this client's certificate.*ssl.certificate.location")
           for name in ("", "expired", "stranger")},
        **{f"plain to {listener}": (guarded.plain(listener), f"expected security.protocol={spoken} .* got PLAINTEXT")
           for listener, spoken in (("TLS", "SSL"), ("CERTIFICATE", "SSL"), ("SASL", "SASL_PLAINTEXT"))},
        "TLS to plain": ({**guarded.tls(guarded.authority), **guarded.plain("PLAINTEXT")}, "=PLAINTEXT .* got SSL"),
        "TLS to SASL": ({**guarded.tls(guarded.authority), **guarded.plain("SASL")}, "=SASL_PLAINTEXT .* got SSL"),
        "controller": (guarded.plain("CONTROLLER"), "a broker's listener, not a controller's"),
    }  # fmt: skip

    def check(way: str, ask: Callable[[Settings], None]) -> None:
        settings, words = ways[way]
        with pytest.raises(UserMistake, match=words) as refused:
            ask(settings)
        assert refused.value.exit_code == 2 and settings["bootstrap.servers"] in str(refused.value)

    cases = [
        *(("PLAIN", ask) for ask in CLIENTS), ("SCRAM-SHA-256", ask_admin), ("TLS", ask_admin), ("TLS", ask_natively),
        ("right", ask_admin), ("right", ask_snapshots), ("controller", ask_snapshots), ("plain to TLS", ask_control),
        ("certificate expired", ask_natively), *((way, ask_admin) for way in list(ways)[4:]),
    ]  # fmt: skip
    run_at_once({f"{way}, {ask.__name__}": partial(check, way, ask) for way, ask in cases})


def test_who_is_let_in_gets_answers(guarded: GuardedKafka, job: LiveJob) -> None:
    """TLS alone gives no name: rights are the super user's here."""
    for ask in CLIENTS:
        ask(guarded.sasl("alice", PASSWORD))
        ask(guarded.sasl("alice", PASSWORD, "SCRAM-SHA-256"))
        ask(guarded.tls(guarded.authority))
        ask(guarded.certified("valid"))


def sets(settings: Settings) -> list[str]:
    return [f"kafka.{name}={value}" for name, value in settings.items()]


def test_train_says_so_and_ends_with_2(guarded: GuardedKafka, job: LiveJob) -> None:
    flags = [part for each in sets(guarded.sasl("alice", "wrong")) for part in ("--set", each)]
    refused = job.here("train", "--until-end", *flags)
    assert refused.returncode == 2 and "does not let this user in" in refused.stderr, refused.stderr
    trained = threaded.trained(job.path, *sets(guarded.sasl("alice", PASSWORD)))
    assert trained.code == 0, trained.errors


def test_a_trainer_that_may_read_no_more_ends(guarded: GuardedKafka, tmp_path: Path) -> None:
    job = LiveJob(guarded, tmp_path, prefix="revoked")
    job.produce(300)
    running = threaded.Run(job.path, sets(guarded.sasl("alice", PASSWORD)))
    running.wait_event("published", rows=300)
    guarded.deny("alice", TOPIC, job.records, READ)
    assert running.finish() == 2, running.errors
    assert any("does not let this user in" in error for error in running.errors), running.errors


def test_a_reader_of_the_snapshots_follows_them_with_that_right_alone(guarded: GuardedKafka) -> None:
    """Control, which names hosts, is not read, and nobody joins the group that a reader names for librdkafka's sake."""
    job = "followed"
    served = ServedModel(guarded.bootstrap, job)
    served.put()
    Admin(guarded.bootstrap).ensure([TopicWish("control", f"{job}.control", 1)])
    guarded.set_password("bob", PASSWORD)
    guarded.allow("bob", TOPIC, f"{job}.snapshots", READ)
    kafka = guarded.sasl("bob", PASSWORD, "SCRAM-SHA-256")
    bootstrap = kafka.pop("bootstrap.servers")
    with LiveModel(job, bootstrap=bootstrap, kafka=kafka) as model:
        model.wait_ready(120)
        served.put()
        wait_for(lambda: model.version == 2)
        assert model.error is None
    followed = follow_snapshots(job, bootstrap=bootstrap, kafka=kafka)
    assert next(followed).version == 2
    followed.close()
    everything = {**kafka, "bootstrap.servers": bootstrap}
    with ControlTopic(everything, f"{job}.control") as control, pytest.raises((KafkaDenied, KafkaSettling)):
        control.look()


def ask(bench: Bench, key: str) -> None:
    bench.ask((1, 1), key)
    bench.flush()


def end_of_predictor(bench: Bench, settings: Settings, delivery: str, change: Callable[[], None] | None) -> Exception:
    """Returns the error that ends a predictor with these settings, while requests go on.

    `change` follows the predictor's first answer.
    """
    config = bench.config(delivery)
    config.kafka_consumer.update(settings)
    config = predictor.Config(**{**vars(config), "kafka_producer": settings})
    counters, stop = {"requests": 0}, threading.Event()
    ended = in_background(lambda: predictor.answer(config, stop, counters.update), name=f"predictor of {bench.job}")
    try:
        if change is not None:
            ask(bench, "first")
            wait_for(lambda: counters["requests"] == 1 or ended.done())
            change()
        numbers = count()
        wait_for(lambda: ended.done() or ask(bench, str(next(numbers))))
    finally:
        stop.set()
    error = ended.exception(60)
    assert isinstance(error, Exception), f"{bench.job} ended well"
    return error


def served(bootstrap: str, job: str) -> Bench:
    bench = Bench(bootstrap, job)
    ServedModel(bootstrap, job).put()
    return bench


def test_a_missing_right_ends_a_predictor(guarded: GuardedKafka) -> None:
    """Each right that it uses, taken away before its start and while it answers."""

    def check(name: str, delivery: str, right: str, when: str) -> None:
        kind, suffix, operation = RIGHTS[right]
        bench = served(guarded.bootstrap, name)
        deny = partial(guarded.deny, "alice", kind, f"{name}.{suffix}", operation)
        if when == "before":
            deny()
        settings = guarded.sasl("alice", PASSWORD)
        error = end_of_predictor(bench, settings, delivery, deny if when == "while" else None)
        assert isinstance(error, KafkaDenied) and error.exit_code == 2 and re.search("[Aa]uthoriz", str(error)), error

    names = {f"{right}.{delivery}.{when}": (delivery, right, when) for delivery, right, when in MISSING}
    run_at_once({name: partial(check, name, *case) for name, case in names.items()})


@pytest.mark.parametrize("when", ["before", pytest.param("while", marks=pytest.mark.full)])
@pytest.mark.parametrize("delivery", DELIVERIES)
def test_a_password_that_holds_no_more_ends_a_predictor(guarded: GuardedKafka, delivery: str, when: str) -> None:
    """While it answers it meets a new password when it comes back to a broker that was away."""
    bench = served(guarded.bootstrap, f"password.{delivery}.{when}")
    guarded.set_password("alice", "for now" if when == "while" else PASSWORD)
    settings = guarded.sasl("alice", "for now", "SCRAM-SHA-256")

    def change() -> None:
        guarded.set_password("alice", PASSWORD)
        guarded.broker.kill()
        guarded.broker.start()

    error = end_of_predictor(bench, settings, delivery, change if when == "while" else None)
    assert isinstance(error, KafkaDenied) and re.search("[Aa]uthentication", str(error)), error


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
        wait_for(lambda: len(following.publications) and following.job_status)
        assert (following.state, following.error) == ("ended", "")
    finally:
        following.close()
    assert len(REGISTRY.names()) == 8  # each was somebody above


ROW = {"x1": 0.5, "x2": 0.1, "x3": 0.2, "x4": 0.3, "colour": "red"}


@pytest.mark.full
@pytest.mark.parametrize(
    ("role", "operation", "pattern", "command"),
    [
        ("trainer", "WRITE", "{}.rounds", "train JOB --until-end"),
        ("trainer", "READ", "{}.records", "train JOB --until-end"),
        ("trainer", "WRITE", "streamtrain.{}", "train JOB --until-end"),  # its transactions
        ("predictor", "READ", "{}.snapshots", "predict JOB --until-end"),
        ("auditor", "READ", "{}.control", "verify JOB"),
    ],
)
def test_what_is_not_given_is_missed(
    guarded: GuardedKafka, tmp_path: Path, role: str, operation: str, pattern: str, command: str
) -> None:
    job = LiveJob(guarded, tmp_path, produce=100)
    if role != "trainer":
        threaded.rows_after(job.path)
    user = As(guarded, job, role, tmp_path)
    name = pattern.format(job.name)
    (taken,) = [each for each in user.bindings if (each.name, each.operation) == (name, AclOperation[operation])]
    exact = AclBindingFilter(
        taken.restype, taken.name, taken.resource_pattern_type, taken.principal, taken.host, taken.operation,
        taken.permission_type,
    )  # fmt: skip
    for done in user.admin.delete_acls([exact]).values():
        assert done.result(30)
    refused = user.runs(*command.split())
    assert refused.returncode == 2 and "uthori" in refused.stderr, refused.stderr[-2000:]
