"""Every field of every message, one at a time, and whole messages: each forgery is found, or listed with the reason why
no check can see it. Digests, parents and the chain follow each change, as a clever forger would have them."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from hashlib import sha256
from typing import Any

import pytest
from long_tables import some, whole_tables

from streamtrain.checks.verify.verify import check_topics
from streamtrain.kafka.clients import Message
from streamtrain.topics.shelves import is_manifest
from streamtrain.topics.topic import all_topics
from tests.checks.verify.fields import Path, changed, paths, put, told
from tests.checks.verify.forger import Forger, copied, packed, unpacked
from tests.checks.verify.good_job import compacted, good_job, imported_job
from tests.checks.verify.topics_in_memory import Written
from tests.checks.verify.unseen import UNSEEN, named
from tests.checks.verify.whole import FORGERIES

BARE_READINGS = 40  # what a check may cost, in bare readings of the same messages: half as many are measured
SETTINGS = frozenset({"job_settings", "schema", "model_spec"})  # gone into once


@pytest.fixture(scope="module", autouse=True)
def a_check_costs_little_more_than_reading(later: Written) -> Iterator[None]:
    """Of this process's work, whatever else the machine does; the table has a thousand checks."""
    yield
    bare_s = min(timed(lambda: read(later)) for _ in range(20))
    assert min(timed(lambda: check_topics(later.topics())) for _ in range(20)) <= BARE_READINGS * bare_s


def timed(call: Callable[[], object]) -> float:
    begun_s = time.process_time()
    call()
    return time.process_time() - begun_s


def read(written: Written) -> None:
    """Every value's digest, and what it says."""
    for partitions in written.partitions.values():
        for message in (message for each in partitions for message in each.messages if message.value):
            sha256(message.value or b"").digest()
            with suppress(ValueError):
                unpacked(message.value)


@pytest.fixture(scope="module")
def whole() -> Written:
    """As the trainer wrote it."""
    return good_job().written


@pytest.fixture(scope="module")
def later() -> Written:
    """After compaction."""
    return compacted(good_job()).written


def judge(kind: str, forgeries: Iterator[tuple[Path, Written]]) -> None:
    """Each one is found, but for those listed, of which each is needed."""
    missed, found = [], []
    for path, forged in forgeries:
        report = check_topics(forged.topics())
        (found if not report.ok else missed).append(path)
    assert found or not whole_tables()
    wrong = [told(path) for path in missed if named(kind, path) not in UNSEEN]
    listed = [told(path) for path in found if named(kind, path) in UNSEEN]
    assert not wrong, f"not found: {wrong}"
    assert not listed, f"found, though listed as unseen: {listed}"


# -- manifests and round logs ---------------------------------------------------------------------------


def document(written: Written, topic: str, version: int) -> Any:
    for message in written.partitions[topic][0].messages:
        if message.value and (topic == "rounds" or is_manifest(message.key)):
            found = unpacked(message.value)
            if found["version"] == version:
                return found
    raise AssertionError(f"no version {version} in {topic}")


def fields(written: Written, topic: str, version: int, whole: frozenset[str]) -> Iterator[tuple[Path, Written]]:
    edits = "manifests" if topic == "snapshots" else "logs"
    for path in some(paths(document(written, topic, version), whole=whole)):
        yield path, Forger(written, **{edits: {version: lambda found, path=path: put(found, path)}}).forged()


@pytest.mark.parametrize(("version", "kind"), [(1, "first manifest"), (7, "manifest"), (9, "manifest")])
def test_a_field_of_a_manifest(whole: Written, version: int, kind: str) -> None:
    """The first of a lineage, one in the middle, and the first after a restore."""
    judge(kind, fields(whole, "snapshots", version, SETTINGS))


@pytest.mark.parametrize("positions", ["beginning", "keep"])
@pytest.mark.parametrize(("after", "kind"), [(0, "manifest imported with"), (1, "manifest"), (3, "manifest")])
def test_a_field_of_a_manifest_of_an_import(positions: str, after: int, kind: str) -> None:
    """The first, which came from elsewhere, one trained on it, and the first after a restore."""
    made = imported_job(positions)
    kind = kind if after else f"{kind} {positions}"
    judge(kind, fields(made.written, "snapshots", min(made.located) + after, SETTINGS))


@pytest.mark.parametrize(("version", "kept_whole"), [(14, SETTINGS), (16, frozenset())])
def test_a_field_of_a_manifest_after_compaction(later: Written, version: int, kept_whole: frozenset[str]) -> None:
    """The first after an accepted gap, and the newest."""
    judge("manifest", fields(later, "snapshots", version, kept_whole))


@pytest.mark.parametrize("version", [3, 14])
def test_a_field_of_a_round_log(whole: Written, version: int) -> None:
    """With a batch left out; after a gap."""
    judge("log", fields(whole, "rounds", version, frozenset()))


def test_a_field_of_a_round_log_whose_snapshot_is_compacted_away(later: Written) -> None:
    judge("log alone", fields(later, "rounds", 4, frozenset()))


# -- messages whose fields are headers ------------------------------------------------------------------


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
        for path, forged in values((value or b"").decode()):
            yield (name, *path), message._replace(headers=[*others[0], (name, forged.encode()), *others[1]])


def values(text: str) -> Iterator[tuple[Path, str]]:
    """Other texts like this one; of JSON lists, each field."""
    if not text.startswith("["):
        yield (), changed(int(text)).__str__() if text.isdigit() else changed(text)
        return
    for path in paths(json.loads(text)):
        document = json.loads(text)
        put(document, path)
        yield path, json.dumps(document, separators=(",", ":"), ensure_ascii=False)


def replaced(written: Written, topic: str, partition: int, index: int) -> Iterator[tuple[Path, Written]]:
    for path, forged in some(header_forgeries(written.partitions[topic][partition].messages[index])):
        other = copied(written)
        other.partitions[topic][partition].messages[index] = forged
        yield path, other


def test_a_field_of_a_dead_letter(later: Written) -> None:
    """Of a record whose first rows are good, of a record without rows, and of a batch left out."""
    found = later.partitions["dead_letters"][0].messages
    kinds = [
        next(at for at, each in enumerate(found) if dict(each.headers)["streamtrain-rows"].startswith(b"[[1,2")),
        next(at for at, each in enumerate(found) if (each.value or b"").startswith(b"\xc1")),
        next(at for at, each in enumerate(found) if "streamtrain-until" in dict(each.headers)),
    ]
    for index in kinds:
        judge("dead letter", replaced(later, "dead_letters", 0, index))


def bodies(written: Written, partition: int, index: int) -> Iterator[tuple[Path, Written]]:
    """Each field of a prediction's JSON."""
    message = written.partitions["predictions"][partition].messages[index]
    for path in some(paths(json.loads(message.value or b""))):
        document = json.loads(message.value or b"")
        put(document, path)
        other = copied(written)
        forged = message._replace(value=json.dumps(document).encode())
        other.partitions["predictions"][partition].messages[index] = forged
        yield ("value", *path), other


def test_a_field_of_a_prediction(later: Written) -> None:
    """An answer and an error."""
    for partition, index in ((0, 1), (1, 1)):
        judge("prediction", replaced(later, "predictions", partition, index))
        judge("prediction", bodies(later, partition, index))


# -- control --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", [b"run/2", b"end/3", b"newest"])
def test_a_field_of_a_control_entry(later: Written, key: bytes) -> None:
    def forgeries() -> Iterator[tuple[Path, Written]]:
        messages = later.partitions["control"][0].messages
        index = next(at for at, message in enumerate(messages) if message.key == key)
        for path in some(paths(unpacked(messages[index].value))):
            document = unpacked(messages[index].value)
            put(document, path)
            other = copied(later)
            other.partitions["control"][0].messages[index] = messages[index]._replace(value=packed(document))
            yield path, other

    judge(key.decode().partition("/")[0], forgeries())


# -- keys -----------------------------------------------------------------------------------------------


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
                other = copied(written)
                other.partitions[topic][partition].messages[index] = message._replace(key=key)
                yield (form.decode("latin1"), how), other


@pytest.mark.parametrize("topic", list(all_topics()))
def test_a_key(later: Written, topic: str) -> None:
    forgeries = some(rekeyed(later, topic))
    assert forgeries, f"the good job's {topic} have no keys"
    judge(f"key in {topic}", iter(forgeries))


# -- whole messages -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forgery(whole: Written, later: Written, name: str) -> None:
    histories = {"whole": whole, "later": later}
    reports = {kind: check_topics(FORGERIES[name](made).topics()) for kind, made in histories.items()}
    wrong = [kind for kind, report in reports.items() if report.ok != ((kind, name) in UNSEEN)]
    assert wrong == [], "\n".join(line for kind in wrong for line in (kind, *reports[kind].lines()))


@pytest.mark.parametrize("topic", list(all_topics()))
def test_any_bytes_are_a_finding_and_never_an_exception(later: Written, topic: str) -> None:
    keys = {"control": (b"run/x", b"newest", b"end/1"), "snapshots": (b"s/0001/m", b"s/0001/c/0000", b"m")}
    for value in (None, b"", b"\xc1", b"[" * 2000, packed({"wire": 2}), packed([1])):
        for key in keys.get(topic, (None, b"3/0")):
            other = copied(later)
            other.append(topic, value, key, [("streamtrain-wire", b"1"), ("streamtrain-version", b"\xff")])
            check_topics(other.topics())
