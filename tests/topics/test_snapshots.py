"""The manifest's wire: golden bytes, keys and tombstones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path

import msgpack
import pytest
from publisher import example_manifest as manifest

from streamtrain.errors import SnapshotError
from streamtrain.topics.manifest import CHUNK_BYTES, Imported, Kept, decode, encode
from streamtrain.topics.shelves import all_keys, kept_after
from streamtrain.topics.snapshots import publish
from streamtrain.topics.topic import sha256

GOLDEN = Path(__file__).parents[1] / "golden"


MODEL = bytes(range(256)) * 8000  # 2,048,000 bytes: three chunks
TRAINER = b"trainer"
IMPORTED = Imported("departures", 5, sha256(b"far"), "89abcdef" * 4, "4L6g3nShT-eMCtK--X86sw", "keep")


def test_golden_bytes() -> None:
    kept = Kept("a/0000", 2, 5, sha256(b"two"), 3, 1, created_ms=1_749_999_000_000)
    made = publish(manifest(kept=(kept,), imported=(IMPORTED,)), MODEL, TRAINER, keep=4)
    value = bytes(made.messages[-1].value or b"")
    assert value == (GOLDEN / "manifest.v4.msgpack").read_bytes()
    assert made.digest == sha256(value)


def test_round_trip() -> None:
    full = publish(manifest(imported=(IMPORTED, IMPORTED)), MODEL, TRAINER, keep=4).manifest
    again = decode(encode(full))
    assert again == replace(full, metrics=again.metrics)
    assert again.metrics["window"] == {"log_loss": 0.28, "auc": None}, "a number that is not finite is undefined"
    assert encode(again) == encode(full)
    one, other = {"a": 1, "b": {"c": 2, "d": 3}}, {"b": {"d": 3, "c": 2}, "a": 1}
    assert encode(manifest(job_settings=one)) == encode(manifest(job_settings=other)), "in any order"


def test_chunks_come_first_then_the_manifest_and_nothing_is_copied() -> None:
    model = memoryview(bytearray(MODEL))
    made = publish(manifest(), model, TRAINER, keep=4)
    assert [message.key for message in made.messages] == [
        b"s/0003/c/0000", b"s/0003/c/0001", b"s/0003/c/0002", b"s/0003/t/0000", b"s/0003/m",
    ]  # fmt: skip
    chunks = [message.value for message in made.messages[:-1]]
    assert all(isinstance(chunk, memoryview) and len(chunk) <= CHUNK_BYTES for chunk in chunks)
    assert chunks[0].obj is model.obj  # type: ignore[union-attr]
    assert b"".join(chunks) == MODEL + TRAINER  # type: ignore[arg-type]
    digests = [*made.manifest.model.chunks, *made.manifest.trainer.chunks]
    assert [sha256(chunk or b"") for chunk in chunks] == digests


def publish_all(
    versions: range,
    keep: int,
    archived: tuple[int, ...] = (),
    archive_keep: int | None = None,
    best: Mapping[int, int | None] | None = None,
) -> tuple[Kept, ...]:
    """What is kept when one version after the other is published, which is what a compacted topic would hold. `best`:
    which is the best from a version on. The last keeps two at most.
    """
    now: int | None = None
    topic: dict[bytes | None, object] = {}
    kept: tuple[Kept, ...] = ()
    for version in versions:
        now = (best or {}).get(version, now)
        one = manifest(version, kept=kept, archived=version in archived, best=now)
        made = publish(one, MODEL, TRAINER, keep, archive_keep)
        topic.update((message.key, message.value) for message in made.messages)
        kept = kept_after(made.manifest, made.digest, version * 10)
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
    made = publish(manifest(4, kept=kept), b"small", b"", keep=1)
    assert [(message.key, message.value is None) for message in made.messages] == [
        (b"s/0000/c/0001", True), (b"s/0000/c/0002", True), (b"s/0000/t/0000", True),
        (b"s/0000/c/0000", False), (b"s/0000/m", False),
    ]  # fmt: skip


def test_archived_snapshots_have_keys_of_their_own_and_the_oldest_gives_way() -> None:
    kept = publish_all(range(1, 14), keep=2, archived=(3, 6, 9, 12), archive_keep=3)
    assert sorted(entry.version for entry in kept if entry.archived) == [6, 9, 12]
    made = publish(manifest(14, kept=kept), MODEL, TRAINER, keep=2, archive_keep=1)
    assert [entry.version for entry in made.manifest.kept if entry.archived] == [12]


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


@pytest.mark.parametrize(
    ("field", "value", "text"),
    [
        ("wire", 5, "newer streamtrain"),
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
    ],
)
def test_a_wrong_field_is_named(field: str, value: object, text: str) -> None:
    document = msgpack.unpackb(encode(publish(manifest(), MODEL, TRAINER, keep=4).manifest))
    document[field] = value
    with pytest.raises(SnapshotError, match=text):
        decode(msgpack.packb(document))
    del document[field]
    with pytest.raises(SnapshotError, match=field):
        decode(msgpack.packb(document))


def test_every_truncation_is_an_error() -> None:
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
