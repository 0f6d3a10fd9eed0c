"""A snapshot's file: what is written is read, and a byte that is not as written is said with its place."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from publisher import example_manifest

from streamtrain.compute.snapshot import encode
from streamtrain.errors import SnapshotError, StreamtrainError, UserMistake
from streamtrain.moving.snapshot_file import Origin, SnapshotFile, head
from streamtrain.topics.manifest import CHUNK_BYTES
from streamtrain.topics.snapshots import publish
from streamtrain.topics.topic import sha256

MODEL = encode({"dense0.weight": np.arange(400_000, dtype=np.float32), "moments": np.ones((3, 2))})  # two chunks
TRAINER = encode({"adam.m": np.zeros(5, np.float32), "score.rows": np.arange(3)})
ORIGIN = Origin("4L6g3nShT-eMCtK--X86sw", "flights.snapshots", 41, 1_750_000_000_000)


def written(path: Path, model: bytes = MODEL, trainer: bytes = TRAINER) -> bytes:
    """Writes a snapshot file and returns its bytes."""
    publication = publish(example_manifest(), model, trainer, keep=4)
    value = bytes(publication.messages[-1].value or b"")
    path.write_bytes(head(ORIGIN, publication.manifest, value) + model + trainer)
    return path.read_bytes()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.snapshot"


def test_what_is_written_is_read(path: Path) -> None:
    size, heard = len(written(path)), []
    line = json.loads(path.read_bytes().split(b"\n")[0])
    assert (line["streamtrain"], line["job"], line["version"]) == ("snapshot file", "flights", 7)
    assert (line["cluster"], line["topic"], line["offset"]) == (ORIGIN.cluster, ORIGIN.topic, ORIGIN.offset)
    with SnapshotFile(path) as file:
        assert (file.origin, file.manifest.version, file.bytes) == (ORIGIN, 7, size)
        tensors = file.check(heard.append)
        assert b"".join(file.chunks()) == MODEL + TRAINER
    assert sum(heard) == len(MODEL) + len(TRAINER)
    assert {name: (each.dtype, each.shape) for name, each in tensors.items()} == {
        "dense0.weight": (np.float32, (400_000,)), "moments": (np.float64, (3, 2)),
        "adam.m": (np.float32, (5,)), "score.rows": (np.int64, (3,)),
    }  # fmt: skip


def test_memory_is_that_of_a_few_chunks(path: Path) -> None:
    size = len(written(path, model=encode({"table": np.zeros(16_000_000, np.float32)})))
    tracemalloc.start()
    try:
        with SnapshotFile(path) as file:
            file.check()
            assert sum(map(len, file.chunks())) > 64_000_000
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < size / 4


def looked_through(path: Path) -> None:
    with SnapshotFile(path) as file:
        file.check()


def test_a_byte_that_has_changed_is_said_and_a_file_that_is_cut_off_or_longer(path: Path) -> None:
    whole = written(path)
    ends = [whole.index(b"\n") + 1]  # where each section begins and the one before ends
    ends += [ends[0] + 65, ends[0] + 65 + json.loads(whole[: ends[0]])["manifest_bytes"]]
    ends += [ends[2] + CHUNK_BYTES, ends[2] + len(MODEL), len(whole)]
    names = ["first line", "second line", "manifest", "chunk 1 of 3", "chunk 2 of 3", "chunk 3 of 3"]
    for section, begin, end in zip(names, [0, *ends], ends, strict=False):
        for at in (begin, (begin + end) // 2, end - 1):
            path.write_bytes(whole[:at])
            with pytest.raises(SnapshotError, match=rf"a\.snapshot@\d+: {section}: expected"):
                looked_through(path)
            path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
            says = "second line" if section == "first line" and at else section  # it has the digest of the first
            words = rf"a\.snapshot@\d+: {says}: expected .*, got .*; nothing was used of it"
            with pytest.raises(SnapshotError, match=words):
                looked_through(path)
    path.write_bytes(whole + b"more")
    with pytest.raises(SnapshotError, match="expected the end of the file, got 4 bytes more"):
        SnapshotFile(path)


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("wire", 2, "install a newer streamtrain"),
        ("streamtrain", "something", "expected a snapshot file"),
        ("job", "other", "as its manifest says"),
        ("version", 6, "as its manifest says"),
        ("model_bytes", 10, "as its manifest says"),
        ("manifest_bytes", 10**9, "at most 900000 bytes"),
        ("manifest_bytes", 10, "the digest"),
        ("digest", "0" * 64, "the digest"),
        ("digest", "x", "hex digits|64 letters"),
        ("offset", -1, "offset"),
        ("cluster", 1, "cluster"),
    ],
)
def test_a_first_line_that_is_none_is_said(path: Path, name: str, value: object, text: str) -> None:
    """Though it has a digest of its own."""
    first, _, rest = written(path).split(b"\n", 2)
    document = json.loads(first)
    without = {key: each for key, each in document.items() if key != name}
    for changed, words in (({**document, name: value}, text), (without, name)):
        line = json.dumps(changed).encode() + b"\n"
        path.write_bytes(line + sha256(line).hex().encode() + b"\n" + rest)
        with pytest.raises(SnapshotError, match=words):
            looked_through(path)


def test_another_file_is_said_and_one_that_is_not_there_a_mistake(path: Path) -> None:
    for data in (b"", b"\n", b"{}\n", b'{"streamtrain"\n' * 2, b"\x80\x04K\x01.", b"x" * 200_000):
        path.write_bytes(data)
        with pytest.raises(SnapshotError, match=r"a\.snapshot@"):
            SnapshotFile(path)
    for nowhere in (path.parent / "none", path.parent):
        with pytest.raises(UserMistake, match="cannot be read"):
            SnapshotFile(nowhere)


@pytest.mark.parametrize(
    ("payload", "text"),
    [
        (
            {"trainer": encode({"adam.m": np.array([0, np.nan], np.float32)})},
            r"adam\.m: expected numbers, got a NaN or",
        ),
        (
            {"trainer": encode({"adam.m": np.array([0, np.inf], np.float32)})},
            r"adam\.m: expected numbers, got a NaN or",
        ),
        ({"model": b"pickled"}, "model: safetensors: expected a header"),
    ],
    ids=["NaN", "infinity", "no safetensors"],
)
def test_a_number_that_is_none_is_refused_though_every_digest_is_right(
    path: Path, payload: dict[str, bytes], text: str
) -> None:
    written(path, **payload)
    with pytest.raises(StreamtrainError, match=text):
        looked_through(path)
