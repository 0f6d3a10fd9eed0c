"""The registry of topics: names, settings and golden messages; the wire of control, of the round log and of manifests:
parts, keys, tombstones, and every disagreement found."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import nullcontext, suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import golden_messages
import msgpack
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from long_tables import examples
from publisher import example_manifest as manifest

from streamtrain._native import CloseReason
from streamtrain.clients.writer import RecordWriter
from streamtrain.errors import CheckFailed, SnapshotError, UserMistake
from streamtrain.job import Job
from streamtrain.topics import REGISTRY, control, named_schemas, rounds
from streamtrain.topics.control import Control, Newest, RunEnd, RunEntry
from streamtrain.topics.manifest import CHUNK_BYTES, Contribution, Counts, Imported, Kept, Run, Slot, decode, encode
from streamtrain.topics.publication_logs import RoundLogs, publications
from streamtrain.topics.rounds import RANGE_DTYPE, ROUND_DTYPE, SLOT_DTYPE, RoundLog
from streamtrain.topics.shelves import all_keys, kept_after
from streamtrain.topics.snapshots import publish
from streamtrain.topics.terms import Terms, columns_digest, contribution_seed, model_digest
from streamtrain.topics.topic import MESSAGE_BYTES, Message, all_topics, job_topics, row_topics, sha256, topic


def test_names() -> None:
    assert topic("dead-letters").name("flights") == "flights.dead-letters"
    assert topic("records").name("flights", "prod.flights") == "prod.flights"
    fixed = [entry for entry in all_topics().values() if not entry.renameable]
    assert fixed
    for entry in fixed:
        assert entry.name("flights") == f"flights.{entry.suffix}"
        with pytest.raises(UserMistake, match=r"name: expected no name: .* got 'elsewhere'"):
            entry.name("flights", "elsewhere")
    with pytest.raises(UserMistake, match="249"):
        topic("records").name("x" * 250)
    with pytest.raises(UserMistake, match="expected one of"):
        topic("record")
    wrong = {"record": ({}, "expected one of"), "snapshots": ({"name": "x"}, "topics.snapshots.name: expected no name")}
    for key, (table, text) in wrong.items():
        with pytest.raises(UserMistake, match=text):
            job_topics("job", {key: table})


def test_policies() -> None:
    assert [entry.key for entry in all_topics().values()] == REGISTRY.names() == list(all_topics())
    for entry in all_topics().values():  # what a follower must find without the job file is found by its key there
        assert (entry.config["cleanup.policy"] == "compact") == (not entry.renameable), entry.key
    assert int(topic("snapshots").config["min.compaction.lag.ms"]) >= 60_000
    assert [entry.suffix for entry in all_topics().values() if not entry.owned] == row_topics()


def test_what_a_job_may_say_of_a_topic() -> None:
    for entry in all_topics().values():
        policy = {"config": {"cleanup.policy": "delete" if entry.config["cleanup.policy"] == "compact" else "compact"}}
        wrong = {name for (name, *_), _, _ in entry.wrong({"name": "a", "partitions": entry.partitions + 1, **policy})}
        assert wrong == (
            ({"name"} if not entry.renameable else set())
            | ({"partitions"} if entry.fixed_partitions else set())
            | ({"config"} if entry.owned else set())
        )
        wish = entry.wish("flights", {"config": {"retention.ms": 5}, "replication": 3})
        assert wish.config == {**entry.config, "retention.ms": "5"} and wish.replication == 3
        assert entry.of({entry.suffix: 1}) == entry.of({entry.key: 1}) == 1 and entry.of({"other": 1}) is None
        with pytest.raises(UserMistake) if entry.owned else nullcontext():
            entry.wish("flights", policy)


def test_a_trainer_writes_what_has_one_partition_alone() -> None:
    """An end that Kafka has forgotten is looked for in each of them."""
    written = {entry.key: entry.written for entry in all_topics().values() if entry.written is not None}
    assert {key for key, how in written.items() if how == "alone"} == {
        entry.key for entry in all_topics().values() if entry.fixed_partitions and entry.written is not None
    }
    assert [key for key, how in written.items() if how == "shared"] == ["dead_letters"]


@pytest.mark.parametrize("key", [key for key, entry in all_topics().items() if entry.owned])
def test_programs_write_rows_to_topics_of_rows_alone(key: str) -> None:
    job = 'name = "x"\n[kafka]\nbootstrap.servers = "x:1"\n[columns]\na = {}\nb = { role = "label" }\n'
    with pytest.raises(UserMistake, match=f"RecordWriter: expected {' or '.join(row_topics())}, got"):
        RecordWriter(Job.parse(job), key)


FOLDER = Path(__file__).parents[1] / "golden"
GOLDEN = FOLDER / "control.v3.msgpack"  # the three values, one after the other
RUN = Run(12, "ab" * 16)
ENTRY = RunEntry(RUN, "flights", "host-1", 4711, 1_750_000_000_000, "0.1.0", "many")
END = RunEnd(RUN, 1, "the ceiling of dead letters was passed", 1_750_000_060_000)
NEWEST = Newest(31, bytes(range(32)), "cd" * 16)
MESSAGES = [control.run_message(ENTRY), control.end_message(END), control.newest_message(NEWEST)]
DECODERS = [control.decode_run, control.decode_end, control.decode_newest]


def taken(*messages: Message) -> Control:
    found = Control()
    for message in messages:
        found.take(message.key, None if message.value is None else bytes(message.value))
    return found


def test_golden_bytes() -> None:
    assert [message.key for message in MESSAGES] == [b"run/12", b"end/12", b"newest"]
    assert b"".join(bytes(message.value or b"") for message in MESSAGES) == GOLDEN.read_bytes()
    found = taken(*MESSAGES)
    assert (found.runs, found.ends, found.newest) == ({12: ENTRY}, {12: END}, NEWEST)


@pytest.mark.parametrize("at", range(3))
def test_every_truncation_is_an_error(at: int) -> None:
    value = bytes(MESSAGES[at].value or b"")
    for length in range(len(value)):
        with pytest.raises(CheckFailed, match=r"run entry|end of a run|newest"):
            DECODERS[at](value[:length])


def test_the_holder_is_the_run_of_the_highest_number_wherever_its_entry_lies() -> None:
    older = control.run_message(RunEntry(Run(2, "cd" * 16), "flights", "host-2", 1, 1, "0.1.0"))
    found = taken(MESSAGES[0], older)
    assert found.holder == ENTRY and sorted(found.runs) == [2, 12]
    assert taken().holder is None


def test_a_tombstone_takes_an_entry_away_and_other_keys_are_passed_over() -> None:
    found = taken(*MESSAGES, *(message._replace(value=None) for message in MESSAGES), Message(b"later", b"x"))
    assert found == Control()


OURS = [key for key, topic in all_topics().items() if topic.owned]
GOLDEN_MESSAGES = {key: [message for message, _ in golden_messages.read(key)] for key in OURS}


@pytest.mark.parametrize("key", OURS)
def test_golden_messages(key: str) -> None:
    found = golden_messages.read(key)
    assert found
    for message, expected in found:
        description = golden_messages.describe(key, message)
        assert json.loads(json.dumps(description)) == description == expected


@pytest.mark.parametrize("key", OURS)
@settings(deadline=None, max_examples=examples(600))
@given(data=st.data())
def test_any_bytes_are_shown_or_get_our_error(key: str, data: st.DataObject) -> None:
    """A golden message with other bytes or another header, a part of it, or any bytes."""
    message = data.draw(st.sampled_from(GOLDEN_MESSAGES[key]))
    changed = bytearray(message.value or b"\0")
    for _ in range(data.draw(st.integers(0, 4))):
        changed[data.draw(st.integers(0, len(changed) - 1))] = data.draw(st.integers(0, 255))
    part = changed[: data.draw(st.integers(0, len(changed)))]
    headers = dict(message.headers)
    if headers:
        headers[data.draw(st.sampled_from(sorted(headers)))] = data.draw(st.binary() | st.just(b"[" * 100_000))
    name = data.draw(st.none() | st.binary() | st.just(message.key))
    for value in (bytes(changed), bytes(part), data.draw(st.none() | st.binary())):
        given_message = Message(name, value, tuple(headers.items()))
        description: dict[str, Any] = golden_messages.describe(key, given_message)
        assert description.get("error") or "error" in description["document"] or description["line"]
        if key == "rounds":
            with suppress(CheckFailed):
                rounds.join([rounds.decode(value or b"")])
    assert hasattr(REGISTRY.get(key), "line")


MODEL = bytes(range(256)) * 8000  # 2,048,000 bytes: three chunks
TRAINER = b"trainer"
CONTRIBUTIONS = (
    Contribution("host-a", "ab" * 16, 7, sha256(b"head"), 1_200, 1_188.5),
    Contribution("höst-b", "cd" * 16, 0, sha256(b"other head"), 0, 0.0),
)
FOLDED: dict[str, Any] = {"contributions": CONTRIBUTIONS, "inbox": 2**40, "interval_ms": 2_000}
IMPORTED = Imported("departures", 5, sha256(b"far"), "89abcdef" * 4, "4L6g3nShT-eMCtK--X86sw", "keep")


def test_golden_bytes_of_a_manifest() -> None:
    kept = Kept("a/0000", 2, 5, sha256(b"two"), 3, 1, created_ms=1_749_999_000_000)
    publication = publish(manifest(kept=(kept,), imported=(IMPORTED,), **FOLDED), MODEL, TRAINER, keep=4)
    value = bytes(publication.messages[-1].value or b"")
    assert value == (FOLDER / "manifest.v6.msgpack").read_bytes()
    assert publication.digest == sha256(value)


def test_round_trip() -> None:
    full = publish(manifest(imported=(IMPORTED, IMPORTED), **FOLDED), MODEL, TRAINER, keep=4).manifest
    again = decode(encode(full))
    assert again == replace(full, metrics=again.metrics)
    assert again.metrics["window"] == {"log_loss": 0.28, "auc": None}, "a number that is not finite is undefined"
    assert encode(again) == encode(full)
    one, other = {"a": 1, "b": {"c": 2, "d": 3}}, {"b": {"d": 3, "c": 2}, "a": 1}
    assert encode(manifest(job_settings=one)) == encode(manifest(job_settings=other)), "in any order"


def test_chunks_come_first_then_the_manifest_and_nothing_is_copied() -> None:
    model = memoryview(bytearray(MODEL))
    publication = publish(manifest(), model, TRAINER, keep=4)
    assert [message.key for message in publication.messages] == [
        b"s/0003/c/0000", b"s/0003/c/0001", b"s/0003/c/0002", b"s/0003/t/0000", b"s/0003/m",
    ]  # fmt: skip
    chunks = [message.value for message in publication.messages[:-1]]
    assert all(isinstance(chunk, memoryview) and len(chunk) <= CHUNK_BYTES for chunk in chunks)
    assert chunks[0].obj is model.obj  # type: ignore[union-attr]
    assert b"".join(chunks) == MODEL + TRAINER  # type: ignore[arg-type]
    digests = [*publication.manifest.model.chunks, *publication.manifest.trainer.chunks]
    assert [sha256(chunk or b"") for chunk in chunks] == digests


def publish_all(
    versions: range, keep: int, archived: tuple[int, ...] = (), archive_keep: int | None = None,
    best: Mapping[int, int | None] | None = None,
) -> tuple[Kept, ...]:  # fmt: skip
    """Publishes one version after the other and returns what is kept, which is what a compacted topic would hold.

    `best`: which is the best from a version on. A last publication, which keeps two at most, is only checked.
    """
    now: int | None = None
    topic: dict[bytes | None, object] = {}
    kept: tuple[Kept, ...] = ()
    for version in versions:
        now = (best or {}).get(version, now)
        one = manifest(version, kept=kept, archived=version in archived, best=now)
        publication = publish(one, MODEL, TRAINER, keep, archive_keep)
        topic.update((message.key, message.value) for message in publication.messages)
        kept = kept_after(publication.manifest, publication.digest, version * 10)
    assert {key for key, value in topic.items() if value is not None} == keys(kept)
    last = publish(manifest(versions.stop, kept=kept), MODEL, TRAINER, min(keep, 2), archive_keep)
    topic.update((message.key, message.value) for message in last.messages)
    after = kept_after(last.manifest, last.digest, 999)
    assert {key for key, value in topic.items() if value is not None} == keys(after)
    assert len([entry for entry in after if not entry.archived and not entry.best]) <= 2
    return kept


def keys(kept: tuple[Kept, ...]) -> set[bytes]:
    return {key for entry in kept for key in all_keys(entry)}


def test_keep_bounds_what_stays_and_kept_lists_it() -> None:
    assert sorted(entry.version for entry in publish_all(range(1, 12), keep=3)) == [9, 10, 11]
    assert sorted(entry.version for entry in publish_all(range(1, 9), keep=8)) == list(range(1, 9))


def test_a_smaller_model_tombstones_surplus_chunks() -> None:
    kept = publish_all(range(1, 4), keep=1)
    publication = publish(manifest(4, kept=kept), b"small", b"", keep=1)
    assert [(message.key, message.value is None) for message in publication.messages] == [
        (b"s/0000/c/0001", True), (b"s/0000/c/0002", True), (b"s/0000/t/0000", True),
        (b"s/0000/c/0000", False), (b"s/0000/m", False),
    ]  # fmt: skip


def test_archived_snapshots_have_keys_of_their_own_and_the_oldest_gives_way() -> None:
    kept = publish_all(range(1, 14), keep=2, archived=(3, 6, 9, 12), archive_keep=3)
    assert sorted(entry.version for entry in kept if entry.archived) == [6, 9, 12]
    publication = publish(manifest(14, kept=kept), MODEL, TRAINER, keep=2, archive_keep=1)
    assert [entry.version for entry in publication.manifest.kept if entry.archived] == [12]


@pytest.mark.parametrize(
    ("keep", "best", "stay", "best_ones"),
    [
        (2, {3: 3, 5: 5}, {5, 8, 9}, {5, 8, 9}),
        (2, {version: version for version in range(2, 10)}, {8, 9}, {8, 9}),
        (2, {8: 8}, {8, 9}, {8, 9}),
        (2, {1: 1, 9: 9}, {8, 9}, {8, 9}),
        (2, {2: 2, 3: 3, 4: 4}, {4, 8, 9}, {4, 8, 9}),
        (3, {2: 2, 4: 4, 5: 2}, {2, 7, 8, 9}, {2}),  # after a start that went back to a snapshot before the best
        (3, {2: 2, 4: 4, 5: None}, {4, 7, 8, 9}, {4}),  # after one that began anew: the newest that was
    ],
)
def test_the_best_stays_and_the_newest_do(
    keep: int, best: dict[int, int | None], stay: set[int], best_ones: set[int]
) -> None:
    kept = publish_all(range(1, 10), keep, best=best)
    versions = {entry.version for entry in kept}
    assert stay <= versions and len(versions) <= (2 * 2 + 1 if keep == 2 else 4)
    found = {entry.version for entry in kept if entry.best}
    assert found <= best_ones and (keep == 2 or found == best_ones)


def test_a_manifest_that_outgrows_a_message_is_refused() -> None:
    with pytest.raises(SnapshotError, match=r'at most 900000 bytes, .* kind = "vector"'):
        publish(manifest(schema={"columns": "x" * 1_000_000}), b"", b"", keep=1)


PACKED = asdict(CONTRIBUTIONS[0])
WRONG_ONES = [
    ("host", ""), ("life", "ab"), ("life", "AB" * 16), ("sequence", -1), ("sequence", True), ("head", b"x"),
    ("rows", -1), ("rows", 1.0), ("weight", 1), ("weight", -0.5), ("weight", float("nan")), ("weight", float("inf")),
]  # fmt: skip


@pytest.mark.parametrize(
    ("field", "value", "text"),
    [
        ("wire", 7, "newer streamtrain"),
        ("version", 0, "version"),
        ("version", True, "version"),
        ("lineage", "00", "lineage"),
        ("positions", {"topic_id": "a", "partitions": [[1, -1]]}, "partitions"),
        ("parent", {"version": 7, "digest": b"x" * 32, "offset": 1}, "parent.version"),
        ("model", {"size": 10**15, "digest": b"x" * 32, "chunks": b""}, "size"),
        ("model", {"size": 10, "digest": b"x" * 32, "chunks": b""}, "chunks"),
        ("kept", [["s/0001", 9, 1, b"x" * 32, 1, 1, 0]], "kept"),
        ("kept", [["s/0001", 3, 1, b"x" * 32, 1, 1, -1]], "kept"),
        ("chain", b"x" * 31, "chain"),
        ("counts", {"trained": 1, "dead": 0, "filtered": 0, "tombstones": -1}, "counts.tombstones"),
        ("shelf", "../etc", "shelf"),
        ("gaps", [1], "gaps"),
        ("gaps", [{"from": b"1"}], "gaps"),
        ("metrics", {"window": {b"rows": 1}}, "metrics: expected a map of plain data"),
        ("metrics", {"window": {"rows": b"1"}}, "metrics"),
        ("job_settings", {"train": {"workers": msgpack.ExtType(5, b"")}}, "job_settings"),
        ("imported", [1], "imported"),
        ("imported", [{**asdict(IMPORTED), "positions": "start"}], "imported.*positions: expected keep or"),
        ("imported", [{**asdict(IMPORTED), "version": 7}], "imported.*version"),
        ("imported", [{**asdict(IMPORTED), "lineage": "00"}], "imported.*lineage"),
        ("inbox", -1, "inbox"),
        ("inbox", None, "inbox: expected with interval_ms"),
        ("interval_ms", None, "inbox: expected with interval_ms"),
        *(("contributions", [{**PACKED, name: value}], rf"contributions\[0\].{name}") for name, value in WRONG_ONES),
        *(("contributions", [{**PACKED, name: None}], rf"contributions\[0\].{name}") for name in PACKED),
    ],
)
def test_a_wrong_field_is_named(field: str, value: object, text: str) -> None:
    document = msgpack.unpackb(encode(publish(manifest(**FOLDED), MODEL, TRAINER, keep=4).manifest))
    document[field] = value
    with pytest.raises(SnapshotError, match=text):
        decode(msgpack.packb(document))
    del document[field]
    with pytest.raises(SnapshotError, match=field):
        decode(msgpack.packb(document))


def test_every_truncation_of_a_manifest_is_an_error() -> None:
    """Claims of a size cost nothing."""
    value = encode(publish(manifest(), b"m", b"t", keep=4).manifest)
    claims = [
        b"\xdf\xff\xff\xff\xff",
        b"\xdd\xff\xff\xff\xff",
        b"\x81\xa4wire\xc6\xff\xff\xff\xff",
        b"\x91" * 1_000_000,
    ]
    for raw in [*(value[:length] for length in range(len(value))), *claims]:
        with pytest.raises(SnapshotError):
            decode(raw)


def terms(first_round: int = 10, **changes: object) -> Terms:
    example = Terms(
        first_round=first_round,
        learning_rate={"name": "constant", "rate": 3e-3},
        optimizer={"name": "adam", "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8},
        average_optimizer_state=True,
        averaging_frequency=50_000,
        workers=2,
        slot=Slot(256, 64),
        batch_growth={"name": "off"},
        format={"name": "json"},
        columns_digest=sha256(b"columns"),
        model_digest=sha256(b"model"),
        topic_id="2Zk7Jx8LTPO4jX2vS0Q1fg",
        seed=7,
        build="0.1.0+abcdef",
    )
    return replace(example, **changes)  # type: ignore[arg-type]


def log(round_count: int = 3, slots_per_round: int = 2, ranges_per_slot: int = 2) -> RoundLog:
    slot_count = round_count * slots_per_round
    rounds = np.zeros(round_count, ROUND_DTYPE)
    rounds["round"] = np.arange(round_count) + 10
    rounds["first_slot"] = np.arange(round_count) * slots_per_round + 100
    rounds["slots"], rounds["workers"] = slots_per_round, 2
    rounds["closed_by"] = CloseReason.INTERVAL
    rounds["newest_event_ms"] = 1_749_999_999_000 + np.arange(round_count)
    slots = np.zeros(slot_count, SLOT_DTYPE)
    slots["slot"] = np.arange(slot_count) + 100
    slots["rows"] = slots["trained"] = 256
    slots["range_count"], slots["loss_sum"], slots["weight_sum"] = ranges_per_slot, 70.5, 256
    ranges = np.zeros(slot_count * ranges_per_slot, RANGE_DTYPE)
    ranges["from_offset"] = np.arange(len(ranges)) * 128
    ranges["to_offset"] = ranges["from_offset"] + 128
    ranges["trained"], ranges["record_rows"] = 128, -1
    return RoundLog(
        job="flights",
        lineage="ab" * 16,
        run=Run(2, "cd" * 16),
        version=8,
        digest=sha256(b"snapshot"),
        terms=(terms(),) if round_count else (),
        metrics={"total": {"log_loss": 0.28, "auc": float("nan")}},
        created_ms=1_750_000_000_000,
        worker_deaths=1,
        rounds=rounds,
        slots=slots,
        ranges=ranges,
    )


def same(one: RoundLog, other: RoundLog) -> bool:
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in ("rounds", "slots", "ranges"))


def test_golden_bytes_of_a_round_log() -> None:
    (message,) = rounds.messages(log())
    assert message.key == b"8/0/0"
    assert message.value == (FOLDER / "rounds.v6.msgpack").read_bytes()


def test_round_trip_of_a_round_log() -> None:
    (message,) = rounds.messages(log())
    again = rounds.join([rounds.decode(bytes(message.value or b""))])
    assert same(again, log()) and rounds.messages(log(0)) == () and log(0).newest_event_ms == -1
    plain = log()
    for name in plain.__dataclass_fields__.keys() - {"metrics", "rounds", "slots", "ranges", "schemas"}:
        assert getattr(again, name) == getattr(plain, name)
    assert again.metrics == {"total": {"log_loss": 0.28, "auc": None}}
    assert again.rows_trained == 6 * 256 and again.newest_event_ms == 1_749_999_999_002


GUID = "0a1b2c3d-0001-0203-0405-060708090a0b"
UNKNOWN = ("", "no such schema")
SCHEMAS = {"7": ('{"a":1}', ""), GUID: UNKNOWN, "3": UNKNOWN, str(2**32 - 1): UNKNOWN, "8": ("é" * 700_000, "")}


def with_schemas(schemas: dict[str, tuple[str, str]]) -> RoundLog:
    return replace(log(), schemas=np.frombuffer(named_schemas.encode(schemas), rounds.BYTE_DTYPE))


def test_the_schemas_that_records_name_are_part_of_a_log() -> None:
    """However long their texts are."""
    whole = with_schemas(SCHEMAS)
    messages = rounds.messages(whole)
    assert len(messages) > 1 and all(len(message.value or b"") <= MESSAGE_BYTES for message in messages)
    again = rounds.join([rounds.decode(bytes(message.value or b"")) for message in messages])
    assert again.named_schemas == SCHEMAS and log().named_schemas == {}
    assert rounds.log_digest(again) == rounds.log_digest(whole) != rounds.log_digest(log())
    backwards = dict(reversed(SCHEMAS.items()))
    assert named_schemas.encode(backwards) == named_schemas.encode(SCHEMAS)


NO_NAMES = [
    b"\xa1a", b"\xff", b"\7", b"\xc0", b"\xa0", b"\xa207", b"\xa2-1", b"\xaa4294967296",
    b"\xd9\x24" + GUID.upper().encode(), b"\xd9\x25" + GUID.encode() + b"\n",
    b"\xd9\x20" + GUID.replace("-", "").encode(),
]  # fmt: skip


@pytest.mark.parametrize("raw", [b"\1", b"\xc1", b"\x91\1", *(b"\x91\x93\x91%b\xa0\xa0" % each for each in NO_NAMES)])
def test_schemas_that_are_none_are_found(raw: bytes) -> None:
    with pytest.raises(CheckFailed, match=r"round log.schemas: expected"):
        rounds.messages(replace(log(), schemas=np.frombuffer(raw, rounds.BYTE_DTYPE)))


@pytest.mark.parametrize("shape", [(1, 1, 40_000), (40_000, 1, 1), (1, 50_000, 1), (200, 20, 7)])
def test_a_long_log_is_cut_and_joined(shape: tuple[int, int, int]) -> None:
    whole = log(*shape)
    messages = rounds.messages(whole)
    assert len(messages) > 1 and all(len(message.value or b"") <= MESSAGE_BYTES for message in messages)
    parts = [rounds.decode(bytes(message.value or b"")) for message in messages]
    assert same(rounds.join(parts), whole) and all(part.terms == log().terms for part in parts)
    cut = replace(parts[-1], slots=parts[-1].slots[:0], ranges=parts[-1].ranges[:0])
    changes = ({"version": 9}, {"metrics": {}}, {"digest": b"x" * 32}, {"host": "a"})
    foreign = [replace(parts[-1], **each) for each in changes]
    for wrong in (parts[:-1], parts[::-1], *([*parts[:-1], part] for part in foreign), [], [*parts[:-1], cut]):
        with pytest.raises(CheckFailed):
            rounds.join(wrong)


def test_terms_that_change_within_a_log_are_in_force_from_their_round_on() -> None:
    round_log = replace(log(5), terms=(terms(10), terms(12, learning_rate={"name": "constant", "rate": 0.5})))
    (message,) = rounds.messages(round_log)
    again = rounds.join([rounds.decode(bytes(message.value or b""))])
    found = [again.terms_at(number).learning_rate["rate"] for number in range(10, 15)]
    assert found == [3e-3, 3e-3, 0.5, 0.5, 0.5]


@pytest.mark.parametrize(
    "wrong",
    [
        (), (terms(11),), (terms(9),), (terms(10), terms(10)), (terms(10), terms(13)), (terms(10, workers=3),),
        (terms(10), terms(12, workers=3)), (terms(10, averaging_frequency=1, workers=1),),
        (terms(10, slot=replace(terms().slot, row_capacity=255)),),
    ],
)  # fmt: skip
def test_rounds_that_do_not_keep_to_their_terms_are_found(wrong: tuple[object, ...]) -> None:
    with pytest.raises(CheckFailed):
        rounds.messages(replace(log(), terms=wrong))  # type: ignore[arg-type]


def test_the_digest_of_a_log_is_over_all_of_it_but_its_snapshot_and_its_parts() -> None:
    whole = log(1, 1, 40_000)
    parts = [rounds.decode(bytes(message.value or b"")) for message in rounds.messages(whole)]
    assert len(parts) > 1 and rounds.log_digest(rounds.join(parts)) == rounds.log_digest(whole)
    assert rounds.log_digest(replace(log(), digest=b"other" * 8)) == rounds.log_digest(log())
    others = [
        replace(log(), **changes)
        for changes in (
            {"job": "x"}, {"lineage": "ef" * 16}, {"run": Run(3, "cd" * 16)}, {"run": Run(2, "ce" * 16)}, 
            {"version": 9}, {"metrics": {}}, {"created_ms": 1}, {"worker_deaths": 0}, {"host": "a"},
            {"contribution": 1}, {"contributions": 2},
        )
    ]  # fmt: skip
    for column in ("rounds", "slots", "ranges"):
        for field in getattr(log(), column).dtype.names:
            changed = log()
            getattr(changed, column)[field][-1] += 1
            others.append(changed)
    other_field = {
        int: lambda was: was + 1, bool: lambda was: not was, str: lambda was: was + "x", bytes: sha256,
        dict: lambda was: {**was, "more": 1}, Slot: lambda was: replace(was, row_capacity=300),
    }  # fmt: skip
    for field in terms().__dataclass_fields__.keys() - {"first_round"}:
        was = getattr(terms(), field)
        others.append(replace(log(), terms=(terms(**{field: other_field[type(was)](was)}),)))
    assert len({rounds.log_digest(round_log) for round_log in [log(), *others]}) == len(others) + 1


def test_chain_and_counts_follow_the_log() -> None:
    round_log = log()
    round_log.slots["dead"][0], round_log.slots["filtered"][1], round_log.slots["tombstones"][2] = 5, 6, 7
    assert rounds.first_chain("ab" * 16) == sha256(b"ab" * 16)
    assert rounds.chain_after(b"c" * 32, round_log) == sha256(b"c" * 32 + rounds.log_digest(round_log))
    assert rounds.counts_after(Counts(100, 10, 1, 0), round_log) == Counts(100 + 6 * 256, 15, 7, 7)


def contribution(number: int, of: int = 2, partition: int | None = None, **changes: object) -> RoundLog:
    """One round of four batches, whose weights add up to other bits in another order."""
    its = log(1, 4)
    its.rounds["first_slot"], its.slots["slot"] = 0, np.arange(4)
    its.slots["weight_sum"] = 256 * 1.1 ** np.arange(number, number + 4)
    its.ranges["partition"] = number if partition is None else partition
    return replace(its, **{"host": f"host-{number}", "contribution": number, "contributions": of, **changes})


def test_the_logs_of_a_publication_are_read_as_one() -> None:
    logs = [contribution(0), contribution(1), log()]
    (many, one) = publications([contribution(1), *logs, contribution(0)])
    assert (many.is_folded, one.is_folded) == (True, False) and one.each == (logs[2],)
    assert (many.version, many.workers, many.worker_deaths, many.rows_trained) == (8, 4, 2, 8 * 256)
    assert len(many.rounds) == 1 and len(many.slots) == 8 and set(many.ranges["partition"].tolist()) == {0, 1}
    weights = logs[0].slots["weight_sum"].tolist()
    assert logs[0].weight == (weights[0] + weights[2]) + (weights[1] + weights[3]) != sum(weights)
    assert replace(logs[0], terms=(terms(workers=7),)).weight == ((weights[0] + weights[1]) + weights[2]) + weights[3]
    (message,) = rounds.messages(logs[1])
    assert message.key == b"8/1/0" and rounds.decode(bytes(message.value or b"")).host == "host-1"


@pytest.mark.parametrize(
    ("each", "text"),
    [
        ([contribution(0)], "every contribution in order"),
        ([contribution(1), contribution(0)], "every contribution in order"),
        ([contribution(0), contribution(1, 3)], "every contribution in order"),
        *(([contribution(0), contribution(1, **changes)], "contribution 1 belongs to another snapshot")
          for changes in ({"version": 9}, {"digest": sha256(b"other")}, {"created_ms": 1}, {"metrics": {}},
                          {"lineage": "ef" * 16}, {"run": Run(3, "cd" * 16)}, {"job": "x"}, {"host": ""})),
        ([contribution(0, partition=2), contribution(1)], "each partition once, in order of the smallest"),
        ([contribution(0), contribution(1, partition=0)], "each partition once, in order of the smallest"),
    ],
)  # fmt: skip
def test_logs_that_are_no_publication_are_found(each: list[RoundLog], text: str) -> None:
    with pytest.raises(CheckFailed, match=text):
        RoundLogs(tuple(each))


def test_a_contribution_is_one_round_from_slot_0() -> None:
    later, two = contribution(0), log(2)
    later.rounds["first_slot"], later.slots["slot"] = 1, np.arange(4) + 1
    two.rounds["first_slot"], two.slots["slot"] = [0, 2], np.arange(4)
    for wrong in (later, replace(two, host="a"), replace(contribution(0), host="")):
        with pytest.raises(CheckFailed, match=r"expected (a contribution of one round|the host)"):
            rounds.messages(wrong)


def test_a_hosts_seed_is_the_lineages_and_its_lowest_partitions() -> None:
    assert contribution_seed(7, 3) == int.from_bytes(sha256(b"\x92\x07\x03")[:8], "little")
    assert len({contribution_seed(seed, partition) for seed in range(20) for partition in range(20)}) == 400


def test_digests_of_columns_and_model_do_not_depend_on_order_or_optimizer() -> None:
    assert columns_digest({"a": 1, "b": (2,)}) == columns_digest({"b": [2], "a": 1}) != columns_digest({"a": 1})
    spec = {"layers": [{"dense": 4}], "loss": "x", "optimizer": {"name": "sgd"}, "average_optimizer_state": True}
    changed = {**spec, "optimizer": {"name": "adam"}, "average_optimizer_state": False}
    assert model_digest(spec) == model_digest(changed) != model_digest({**spec, "loss": "y"})
    under = terms(optimizer={"name": "momentum", "momentum": 0.5}, average_optimizer_state=False).model_spec(spec)
    assert under == {**spec, "optimizer": {"name": "momentum", "momentum": 0.5}, "average_optimizer_state": False}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("first_round", -1), ("workers", 0), ("averaging_frequency", 0), ("slot", [1]), ("format", {"x": 1}),
        ("format", {"name": "csv", "separator": b","}),
        ("learning_rate", 0.1), ("optimizer", {"name": 3}), ("batch_growth", None), ("columns_digest", b"x"),
        ("model_digest", "x" * 32), ("topic_id", 1), ("seed", -1), ("build", None), ("average_optimizer_state", 1),
    ],
)  # fmt: skip
def test_a_wrong_field_of_the_terms_is_named(field: str, value: object) -> None:
    document = msgpack.unpackb(rounds.messages(log())[0].value)
    document["terms"][0][field] = value
    with pytest.raises(CheckFailed, match=rf"terms\[0\].*{field}"):
        rounds.decode(msgpack.packb(document))


def test_columns_that_disagree_are_found() -> None:
    for column, field, value in (
        ("rounds", "round", 99), ("rounds", "slots", 3), ("rounds", "first_slot", 3), ("slots", "slot", 3),
        ("slots", "range_count", 1),
    ):  # fmt: skip
        wrong = log()
        getattr(wrong, column)[field][-1] = value
        with pytest.raises(CheckFailed):
            rounds.messages(wrong)
    with pytest.raises(CheckFailed):
        rounds.messages(replace(log(), ranges=np.zeros(12, "i4")))
