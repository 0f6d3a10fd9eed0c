"""A snapshot's file: what is written is read, and a byte that is not as written is said with its place."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable
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
    """What the file holds."""
    made = publish(example_manifest(), model, trainer, keep=4)
    value = bytes(made.messages[-1].value or b"")
    path.write_bytes(head(ORIGIN, made.manifest, value) + model + trainer)
    return path.read_bytes()


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.snapshot"
    size, heard = len(written(path)), []
    with SnapshotFile(path) as file:
        assert (file.origin, file.manifest.version, file.bytes) == (ORIGIN, 7, size)
        tensors = file.check(heard.append)
        assert b"".join(file.chunks()) == MODEL + TRAINER
    assert sum(heard) == len(MODEL) + len(TRAINER)
    assert {name: (each.dtype, each.shape) for name, each in tensors.items()} == {
        "dense0.weight": (np.float32, (400_000,)), "moments": (np.float64, (3, 2)),
        "adam.m": (np.float32, (5,)), "score.rows": (np.int64, (3,)),
    }  # fmt: skip


def test_memory_is_that_of_a_few_chunks(tmp_path: Path) -> None:
    path = tmp_path / "a.snapshot"
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


def test_the_first_line_says_what_it_is(tmp_path: Path) -> None:
    line = json.loads(written(tmp_path / "a.snapshot").split(b"\n")[0])
    assert (line["streamtrain"], line["job"], line["version"]) == ("snapshot file", "flights", 7)
    assert (line["cluster"], line["topic"], line["offset"]) == (ORIGIN.cluster, ORIGIN.topic, ORIGIN.offset)


def looked_through(path: Path) -> None:
    with SnapshotFile(path) as file:
        file.check()


def sections(whole: bytes) -> dict[str, tuple[int, int]]:
    """Where each begins and ends."""
    first = whole.index(b"\n") + 1
    second = first + 65
    manifest = second + json.loads(whole[:first])["manifest_bytes"]
    trainer = manifest + len(MODEL)
    return {
        "first line": (0, first), "second line": (first, second), "manifest": (second, manifest),
        "chunk 1 of 3": (manifest, manifest + CHUNK_BYTES), "chunk 2 of 3": (manifest + CHUNK_BYTES, trainer),
        "chunk 3 of 3": (trainer, len(whole)),
    }  # fmt: skip


SECTIONS = ["first line", "second line", "manifest", "chunk 1 of 3", "chunk 2 of 3", "chunk 3 of 3"]


@pytest.mark.parametrize("section", SECTIONS)
@pytest.mark.parametrize("where", ["its first byte", "its middle", "its last byte"])
def test_a_byte_that_has_changed_is_said(tmp_path: Path, section: str, where: str) -> None:
    path = tmp_path / "a.snapshot"
    whole = bytearray(written(path))
    begin, end = sections(whole)[section]
    at = {"its first byte": begin, "its middle": (begin + end) // 2, "its last byte": end - 1}[where]
    whole[at] ^= 1
    path.write_bytes(whole)
    told_by_the_next = section == "first line" and where != "its first byte"
    says = "second line" if told_by_the_next else section
    with pytest.raises(SnapshotError, match=rf"a\.snapshot@\d+: {says}: expected .*, got .*; nothing was used of it"):
        looked_through(path)


@pytest.mark.parametrize("section", SECTIONS)
def test_a_file_that_is_cut_off_is_said(tmp_path: Path, section: str) -> None:
    path = tmp_path / "a.snapshot"
    whole = written(path)
    begin, end = sections(whole)[section]
    for at in (begin, (begin + end) // 2, end - 1):
        path.write_bytes(whole[:at])
        with pytest.raises(SnapshotError, match=rf"a\.snapshot@\d+: {section}: expected"):
            looked_through(path)


def test_what_lies_behind_is_said(tmp_path: Path) -> None:
    path = tmp_path / "a.snapshot"
    path.write_bytes(written(path) + b"more")
    with pytest.raises(SnapshotError, match="expected the end of the file, got 4 bytes more"):
        SnapshotFile(path)


def with_line(path: Path, change: Callable[[dict[str, object]], object]) -> None:
    """Another first line, with a digest of its own."""
    first, _, rest = written(path).split(b"\n", 2)
    document = json.loads(first)
    change(document)
    line = json.dumps(document).encode() + b"\n"
    path.write_bytes(line + sha256(line).hex().encode() + b"\n" + rest)


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
def test_a_first_line_that_is_none_is_said(tmp_path: Path, name: str, value: object, text: str) -> None:
    path = tmp_path / "a.snapshot"
    with_line(path, lambda line: line.update({name: value}))
    with pytest.raises(SnapshotError, match=text):
        looked_through(path)
    with_line(path, lambda line: line.pop(name))
    with pytest.raises(SnapshotError, match=name):
        looked_through(path)


@pytest.mark.parametrize("data", [b"", b"\n", b"{}\n", b'{"streamtrain"\n' * 2, b"\x80\x04K\x01.", b"x" * 200_000])
def test_another_file_is_said(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "a.snapshot"
    path.write_bytes(data)
    with pytest.raises(SnapshotError, match=r"a\.snapshot@"):
        SnapshotFile(path)


def test_a_file_that_is_not_there_is_a_mistake(tmp_path: Path) -> None:
    for path in (tmp_path / "none", tmp_path):
        with pytest.raises(UserMistake, match="cannot be read"):
            SnapshotFile(path)


@pytest.mark.parametrize("hole", [np.nan, np.inf])
def test_a_number_that_is_none_is_refused_though_every_digest_is_right(tmp_path: Path, hole: float) -> None:
    path = tmp_path / "a.snapshot"
    written(path, trainer=encode({"adam.m": np.array([0, hole], np.float32)}))
    with pytest.raises(SnapshotError, match=r"adam\.m: expected numbers, got a NaN or infinity"):
        looked_through(path)


def test_a_payload_that_is_no_safetensors_is_refused_though_every_digest_is_right(tmp_path: Path) -> None:
    path = tmp_path / "a.snapshot"
    written(path, model=b"pickled")
    with pytest.raises(StreamtrainError, match="model: safetensors: expected a header"):
        looked_through(path)
