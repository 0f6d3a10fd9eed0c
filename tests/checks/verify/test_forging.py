"""Every field of every message, one at a time, and whole messages: each forgery is found, or listed with the reason why
no check can see it. Digests, parents and the chain follow each change, as a clever forger would have them."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict
from functools import cache, partial
from hashlib import sha256
from itertools import product
from typing import Any

import numpy as np
import pytest
from long_tables import some, whole_tables
from looped import over

from streamtrain.checks.verify.verify import check_topics
from streamtrain.kafka.clients import Message
from streamtrain.topics.manifest import Contribution
from streamtrain.topics.shelves import is_manifest
from streamtrain.topics.terms import contribution_seed
from streamtrain.topics.topic import topics_of
from tests.checks.verify.folded_in_memory import folded_job
from tests.checks.verify.forger import (
    COLUMNS,
    FORGERIES,
    Forger,
    Path,
    changed,
    copied,
    drop,
    forged,
    messages,
    packed,
    paths,
    put,
    unpacked,
    variants,
)
from tests.checks.verify.topics_in_memory import (
    GoodJob,
    Written,
    compacted,
    good_job,
    imported_job,
    small_windows,  # noqa: F401
)

BARE_READINGS = 40  # what a check may cost, in bare readings of the same messages: half as many are measured
SETTINGS = frozenset({"job_settings", "schema", "model_spec"})  # gone into once

# changes that no check can see: a kind of message and the path of a field, with the reason
_TRAINING = "what the rows of a batch lost and weighed comes out of training: replay computes and compares it"
_TWIN = "stands in the manifest too; where that is compacted away nothing else tells it"
_USERS = "of a record without dead rows: nothing that a trainer writes has its key"
_ELSEWHERE = "of what was trained in another job, whose topics have it"
_ALSO_ELSEWHERE = [
    ("slot", "[]"), ("metrics", "total", "log_loss"), ("metrics", "total", "rows"), ("metrics", "window", "log_loss"),
    *(("metrics", "windows", *rest) for rest in (("-the last",), ("[]", "log_loss"), ("[]", "rows"))),
]  # fmt: skip
_WORDS = "of a run's own telling: no other message has it"
_OWN = "a host's own: replay computes what comes of its settings and compares it"
_OF_HOSTS = "what hosts send is kept for ten minutes: only that none of their lives goes back, and no inbox"

UNSEEN: dict[tuple[str, ...], str] = {
    ("first manifest", "positions", "partitions", "-the last"): (
        "a partition that a lineage's first snapshot does not list is read from its first offset, as it was"
    ),
    ("manifest imported with beginning", "positions", "partitions", "-the last"): (
        "as of any lineage that begins where the records do"
    ),
    **{
        (f"manifest imported with {positions}", *path): _ELSEWHERE
        for positions, path in product(("beginning", "keep"), _ALSO_ELSEWHERE)
    },
    **{
        (log, "slots", "[]", field): _TRAINING
        for log, field in product(("log", "log alone"), ("loss_sum", "weight_sum"))
    },
    ("log alone", "metrics", "total", "log_loss"): _TWIN,
    ("log alone", "metrics", "total", "rows"): _TWIN,
    ("log alone", "metrics", "window", "log_loss"): _TWIN,
    ("log alone", "metrics", "windows", "[]", "log_loss"): _TWIN,
    ("log alone", "created_ms"): _TWIN,
    ("first folded manifest", "positions", "partitions", "-the last"): (
        "as of any lineage that begins where the records do"
    ),
    **{
        (manifest, name): _OF_HOSTS
        for manifest, name in product(("folded manifest", "first folded manifest"), ("inbox", "interval_ms"))
    },
    **{("folded manifest", "contributions", "[]", name): _OF_HOSTS for name in ("life", "sequence", "head")},
    **{("folded log", "slots", "[]", field): _TRAINING for field in ("loss_sum", "rejected")},
    **dict.fromkeys([("folded log", "worker_deaths"), ("folded log", "rounds", "[]", "closed_by")], _OWN),
    **{
        ("folded log", "terms", "[]", *path): _OWN
        for path in [
            *(("learning_rate", name) for name in ("name", "rate", "warm_up")), ("averaging_frequency",),
            ("slot", "[]"), *(("batch_growth", name) for name in ("name", "rows", "min_rows")), ("build",),
        ]
    },
    ("log alone", "worker_deaths"): "a count of the run, which no other message has: only that it never falls",
    ("prediction", "value", "prediction"): "what the model says of a request: LiveModel with that snapshot predicts it",
    **{("key in records", "k#", how): _USERS for how in ("another", "longer", "with zeros", "none", "of b'bad'")},
    **dict.fromkeys([("run", field) for field in ("host", "process", "started_ms")], _WORDS),
    **dict.fromkeys([("end", field) for field in ("reason", "ended_ms")], _WORDS),
}


@pytest.fixture(scope="module", autouse=True)
def a_check_costs_little_more_than_reading(later: Written) -> Iterator[None]:
    """The table has a thousand checks. Only the time of this process counts."""
    yield
    bare_s = min(timed(lambda: read(later)) for _ in range(6))
    assert min(timed(lambda: check_topics(later.topics())) for _ in range(6)) <= BARE_READINGS * bare_s


def timed(call: Callable[[], object]) -> float:
    begun_s = time.process_time()
    call()
    return time.process_time() - begun_s


def read(written: Written) -> None:
    for partitions in written.partitions.values():
        for message in (message for each in partitions for message in each.messages if message.value):
            sha256(message.value or b"").digest()
            with suppress(ValueError):
                unpacked(message.value)


@pytest.fixture(scope="module")
def whole() -> Written:
    return good_job().written


@pytest.fixture(scope="module")
def later() -> Written:
    return compacted(good_job()).written


@pytest.fixture(scope="module")
def short() -> Written:
    job = GoodJob()
    job.begin()
    job.more()
    job.predict()
    job.end()
    return job.written


def named(kind: str, path: tuple[Any, ...]) -> tuple[str, ...]:
    return (kind, *(step if isinstance(step, str) else "[]" for step in path))


def judge(kind: str, forgeries: Iterator[tuple[Path, Written]]) -> None:
    """Each one is found, but for those listed, of which each is needed."""
    missed, found = [], []
    for path, other in forgeries:
        (missed if check_topics(other.topics()).ok else found).append(path)
    assert found or not whole_tables()
    wrong = [path for path in missed if named(kind, path) not in UNSEEN]
    listed = [path for path in found if named(kind, path) in UNSEEN]
    assert not wrong, f"not found: {wrong}"
    assert not listed, f"found, though listed as unseen: {listed}"


def fields(written: Written, topic: str, version: int, whole: frozenset[str]) -> Iterator[tuple[Path, Written]]:
    edits = "manifests" if topic == "snapshots" else "logs"
    found = [each for each in messages(written, topic) if each.value and (topic == "rounds" or is_manifest(each.key))]
    documents = [document for document in (unpacked(each.value) for each in found) if document["version"] == version]
    its = documents[-1]

    def edit(found: Any, path: Path) -> None:
        if topic == "snapshots" or found["contribution"] == its["contribution"]:
            put(found, path)

    for path in some(paths(its, whole=whole)):
        yield path, Forger(written, **{edits: {version: partial(edit, path=path)}}).forged()


@pytest.mark.parametrize(
    ("history", "topic", "version", "kind"),
    [
        ("whole", "snapshots", 1, "first manifest"),
        ("whole", "snapshots", 7, "manifest"),  # in the middle of a lineage
        ("whole", "snapshots", 9, "manifest"),  # the first after a restore
        ("later", "snapshots", 14, "manifest"),  # the first after an accepted gap
        ("later", "snapshots", 16, "manifest"),  # the newest, of which all settings are changed
        ("whole", "rounds", 3, "log"),  # with a batch left out
        ("whole", "rounds", 14, "log"),  # after a gap
        ("later", "rounds", 4, "log alone"),  # whose snapshot is compacted away
    ],
)
def test_a_field(whole: Written, later: Written, history: str, topic: str, version: int, kind: str) -> None:
    of_once = SETTINGS if topic == "snapshots" and version < 16 else frozenset()
    judge(kind, fields(whole if history == "whole" else later, topic, version, of_once))


imported = cache(imported_job)


@pytest.mark.parametrize("positions", ["beginning", "keep"])
@pytest.mark.parametrize(("after", "kind"), [(0, "manifest imported with"), (1, "manifest"), (3, "manifest")])
def test_a_field_of_a_manifest_of_an_import(positions: str, after: int, kind: str) -> None:
    """The first, which came from elsewhere, one trained on it, and the first after a restore."""
    job = imported(positions)
    kind = kind if after else f"{kind} {positions}"
    judge(kind, fields(job.written, "snapshots", min(job.located) + after, SETTINGS))


@pytest.fixture(scope="module")
def folded() -> Written:
    return folded_job().written


@pytest.mark.parametrize(
    ("kind", "topic", "version"),
    [
        ("folded manifest", "snapshots", 5),
        ("first folded manifest", "snapshots", 12),
        ("folded log", "rounds", 4),  # with batches left out
    ],
)
def test_a_field_of_what_many_hosts_contributed(folded: Written, kind: str, topic: str, version: int) -> None:
    """Changes the log of the last contribution, so that nothing but the others speaks against it."""
    judge(kind, fields(folded, topic, version, SETTINGS))


def of_log(*edits: Callable[[Any], None]) -> Callable[[Written], Written]:
    """Changes the second contribution to a snapshot."""

    def edit_one(document: Any) -> None:
        for edit in edits if document["contribution"] == 1 else ():
            edit(document)

    return lambda written: Forger(written, logs={4: edit_one}).forged()


def of_column(name: str, field: str, value: Any) -> Callable[[Any], None]:
    def edit(document: Any) -> None:
        column = np.frombuffer(document[name], COLUMNS[name]).copy()
        column[field] = value(column[field])
        document[name] = column.tobytes()

    return edit


def of_terms(**changes: Any) -> Callable[[Any], None]:
    return lambda document: document["terms"][0].update(changes)


def of_manifest(edit: Callable[[Any], None], version: int = 5) -> Callable[[Written], Written]:
    return lambda written: Forger(written, {version: edit}).forged()


def without_contribution(number: int) -> Callable[[Written], Written]:
    def forge(written: Written) -> Written:
        other = copied(written)
        drop(other, "rounds", lambda each: (each.key or b"").startswith(b"4/%d/" % number))
        return other

    return forge


def in_another_order(written: Written) -> Written:
    """Each log tells that it is the other contribution, as their order in the topic does."""
    other = Forger(written, logs={4: lambda each: each.update(contribution=1 - each["contribution"])}).forged()
    found = messages(other, "rounds")
    at = next(index for index, each in enumerate(found) if each.key == b"4/1/0")
    found[at], found[at + 1] = found[at + 1]._replace(offset=found[at].offset), found[at]._replace(
        offset=found[at + 1].offset)  # fmt: skip
    return other


def of_mode_one(written: Written) -> Written:
    index = next(at for at, each in enumerate(messages(written, "control")) if each.key == b"run/2")
    value = packed({**unpacked(messages(written, "control")[index].value), "mode": "one"})
    return put_at(written, "control", (0, index), value=value)


ADDED_ONE = Contribution("a", "ab" * 16, 90, b"x" * 32, 0, 0.0)
OF_CONTRIBUTIONS: dict[str, tuple[Callable[[Written], Written], str, str]] = {
    "the first is missing": (without_contribution(0), "round log", "every contribution in order, got [(1, 2)]"),
    "the last is missing": (without_contribution(1), "round log", "every contribution in order, got [(0, 2)]"),
    "in another order": (in_another_order, "round log", "in order of the smallest, got"),
    "a partition twice": (
        of_log(of_column("ranges", "partition", lambda was: was * 0)), "round log", "expected each partition once"
    ),
    "of another round": (
        of_log(of_column("rounds", "round", lambda was: was + 1)),
        "round log", "expected terms from round",
    ),
    "slots that do not begin at 0": (
        of_log(of_column("rounds", "first_slot", lambda was: was + 1), of_column("slots", "slot", lambda was: was + 1)),
        "round log", "expected a contribution of one round from slot 0",
    ),
    "a window that closes for one": (
        of_log(of_column("rounds", "closed_window", lambda was: 1 - was)), "round log", "belongs to another snapshot"
    ),
    "the lineage's own seed": (of_log(of_terms(seed=0)), "terms", "seed 0 is of none of its partitions"),
    "the seed of another partition": (
        of_log(of_terms(seed=contribution_seed(0, 2))), "terms", "is of none of its partitions"
    ),
    "the seed of another host": (
        of_log(of_terms(seed=contribution_seed(0, 0))), "terms", "is of none of its partitions"
    ),
    "another model": (of_log(of_terms(model_digest=b"x" * 32)), "terms", "model_digest is"),
    "another optimizer": (of_log(of_terms(optimizer={"name": "sgd"})), "terms", "optimizer is"),
    "another topic id": (of_log(of_terms(topic_id="x")), "lineage", "terms with topic_id"),
    "of one host": (
        of_log(lambda each: each.update(host="")), "round log", "expected the host of a contribution, got none"
    ),
    "another host": (of_log(lambda each: each.update(host="x")), "lineage", "its manifest says contributions"),
    "a life that goes back": (
        of_manifest(lambda each: each["contributions"][0].update(sequence=0)), "lineage", "of the same life"
    ),
    "an inbox that goes back": (of_manifest(lambda each: each.update(inbox=0)), "lineage", "inbox 0, before it was 20"),
    "contributions in the first": (
        of_manifest(lambda each: each.update(contributions=[asdict(ADDED_ONE)]), 12), "lineage",
        "is the fold of 1 contributions",
    ),
    "a manifest of one host": (
        of_manifest(lambda each: each.update(contributions=[], inbox=None, interval_ms=None)), "runs",
        "snapshot 5: of mode one, its run of mode many",
    ),
    "a run of one host": (of_mode_one, "runs", "snapshot 4: of mode many, its run of mode one"),
}  # fmt: skip


@pytest.mark.parametrize("name", OF_CONTRIBUTIONS)
def test_a_forgery_of_contributions(folded: Written, name: str) -> None:
    report = check_topics(OF_CONTRIBUTIONS[name][0](folded).topics())
    check, words = OF_CONTRIBUTIONS[name][1:]
    assert words in "; ".join(next(e for e in report.checks if e.name == check).problems), "\n".join(report.lines())


def header_forgeries(message: Message) -> Iterator[tuple[Path, Message]]:
    """Key, value and headers, each changed, dropped and doubled."""
    yield ("key",), message._replace(key=changed(message.key or b""))
    yield ("value",), message._replace(value=changed(message.value or b""))
    yield ("value", "-gone"), message._replace(value=None if message.value is not None else b"x")
    for at, (name, value) in enumerate(message.headers):
        others = message.headers[:at], message.headers[at + 1 :]
        yield (name, "-gone"), message._replace(headers=[*others[0], *others[1]])
        yield (name, "-twice"), message._replace(headers=[*message.headers, (name, value)])
        yield (name, "-renamed"), message._replace(headers=[*others[0], (name + "x", value), *others[1]])
        for path, text in values((value or b"").decode()):
            yield (name, *path), message._replace(headers=[*others[0], (name, text.encode()), *others[1]])


def values(text: str) -> Iterator[tuple[Path, str]]:
    """Other texts like this one; of JSON lists, each field."""
    if text.startswith("["):
        yield from variants(text, json.loads, partial(json.dumps, separators=(",", ":"), ensure_ascii=False))
    else:
        yield (), str(changed(int(text))) if text.isdigit() else changed(text)


def put_at(written: Written, topic: str, where: tuple[int, int], **changes: Any) -> Written:
    other = copied(written)
    found = messages(other, topic, where[0])
    found[where[1]] = found[where[1]]._replace(**changes)
    return other


def replaced(written: Written, topic: str, partition: int, index: int) -> Iterator[tuple[Path, Written]]:
    for path, message in some(header_forgeries(messages(written, topic, partition)[index])):
        yield path, put_at(written, topic, (partition, index), **message._asdict())


def test_a_field_of_a_dead_letter(later: Written) -> None:
    """Letters of a record whose first rows are good, of one without rows, and of a batch left out."""
    found = messages(later, "dead_letters")
    kinds = [
        next(at for at, each in enumerate(found) if dict(each.headers)["streamtrain-rows"].startswith(b"[[1,2")),
        next(at for at, each in enumerate(found) if (each.value or b"").startswith(b"\xc1")),
        next(at for at, each in enumerate(found) if "streamtrain-until" in dict(each.headers)),
    ]
    for index in kinds:
        judge("dead letter", replaced(later, "dead_letters", 0, index))


def test_a_field_of_a_prediction(later: Written) -> None:
    """An answer and an error."""
    for partition, index in ((0, 1), (1, 1)):
        judge("prediction", replaced(later, "predictions", partition, index))
        change = partial(put_at, later, "predictions", (partition, index))
        bodies = some(variants(messages(later, "predictions", partition)[index].value, json.loads, json.dumps))
        judge("prediction", ((("value", *path), change(value=body.encode())) for path, body in bodies))


@pytest.mark.parametrize("key", [b"run/2", b"end/3", b"newest"])
def test_a_field_of_a_control_entry(later: Written, key: bytes) -> None:
    index, value = next((at, each.value) for at, each in enumerate(messages(later, "control")) if each.key == key)
    forgeries = some(variants(value, unpacked, packed))
    kind = key.decode().partition("/")[0]
    judge(kind, ((path, put_at(later, "control", (0, index), value=other)) for path, other in forgeries))


def other_keys(key: bytes, others: list[bytes]) -> Iterator[tuple[str, bytes | None]]:
    """Another key by how it differs: least, in its number's digits, none at all, or one that the topic has as well."""
    yield "another", changed(key)
    yield "longer", key + b"x"
    yield "with zeros", re.sub(rb"(\d+)", rb"0\1", key, count=1)
    yield "none", None
    yield from ((f"of {other!r}", other) for other in others)


def rekeyed(written: Written, topic: str) -> Iterator[tuple[Path, Written]]:
    """The newest message of each form of key ("run/2" and "run/3" are one) under other keys."""
    forms = {}
    for partition, found in enumerate(written.partitions[topic]):
        for index, message in enumerate(found.messages):
            if message.key is not None and message.value is not None:
                forms[re.sub(rb"\d+", b"#", message.key)] = partition, index, message
    for form, (partition, index, message) in forms.items():
        others = [other.key or b"" for at, (_, _, other) in forms.items() if at != form]
        for how, key in other_keys(message.key or b"", others):
            if key != message.key:
                yield (form.decode("latin1"), how), put_at(written, topic, (partition, index), key=key)


@pytest.mark.parametrize("topic", list(topics_of("one")))
def test_a_key(later: Written, topic: str) -> None:
    forgeries = some(rekeyed(later, topic))
    assert forgeries, f"the good job's {topic} have no keys"
    judge(f"key in {topic}", iter(forgeries))


FOUND_BY = {
    "the newest log is missing": ("lineage", "snapshot 16: no round log, and retention has not removed it"),
    "the round log is made anew": ("lineage", "no round log, and retention has not removed it"),
    "the first log of a restored lineage is missing": ("lineage", "its manifest says chain"),
    "the first part of a log is missing": ("round log", "expected part 0 of a log, got part 1"),
    "the second part of a log is missing": ("round log", "ends after part 0"),
    "a log is there twice": ("lineage", "the round log of snapshot 2 comes after 16's"),
    "the newest snapshot is gone": ("runs", "the topic goes to 15 only"),
    "a dead letter of an unknown run": ("dead letters", "of run 77 round"),
    "a dead letter of a round never published": ("dead letters", "which was never published"),
    "a dead letter tells another reason": ("dead letters", "are dead for another reason"),
    "a dead letter is there twice": ("dead letters", "tell of 1 rows that its round log does not"),
    "the letter of a batch left out is missing": ("dead letters", "ranges of batches left out"),
    "another topic id without a gap": ("lineage", "terms with topic_id {'another'}"),
    "a record lies in a hole": ("records", "records of the records are"),
    "a record has become another": ("records", "trained of the records are"),
    "a prediction is committed twice": ("predictions", "was answered 2 times"),
    "a prediction of version abc": ("predictions", "expected a whole number in header streamtrain-version"),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forgery(later: Written, name: str) -> None:
    """Found, and by the check that is for it."""
    report = check_topics(forged(later, name).topics())
    assert not report.ok, "\n".join(report.lines())
    check, words = FOUND_BY.get(name, ("", ""))
    assert not check or words in "; ".join(next(e for e in report.checks if e.name == check).problems)


@pytest.mark.full
@over("name", FORGERIES)
def test_a_forgery_before_compaction(whole: Written, name: str) -> None:
    assert not check_topics(forged(whole, name).topics()).ok


@pytest.mark.parametrize("topic", list(topics_of("one")))
def test_any_bytes_are_a_finding_and_never_an_exception(short: Written, topic: str) -> None:
    keys = {"control": (b"run/x", b"newest", b"end/1"), "snapshots": (b"s/0001/m", b"s/0001/c/0000", b"m")}
    for value in (None, b"", b"\xc1", b"[" * 2000, packed({"wire": 2}), packed([1])):
        for key in keys.get(topic, (None, b"3/0")):
            other = copied(short)
            other.append(topic, value, key, [("streamtrain-wire", b"1"), ("streamtrain-version", b"\xff")])
            check_topics(other.topics())
