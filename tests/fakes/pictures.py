"""Pictures for tests: made ones, broken ones, and those of CIFAR-10 where they are at hand."""

from __future__ import annotations

import struct
import tarfile
import zlib
from pathlib import Path
from typing import Any

import cv2
import numpy as np

CIFAR = Path(__file__).parents[3] / "shared/data/cifar10_jpeg/train.tar"


def jpeg(table: Any, *options: int) -> bytes:
    """uint8 [height, width] or [height, width, 3], red first."""
    return bytes(cv2.imencode(".jpg", table[..., ::-1] if table.ndim == 3 else table, options)[1].tobytes())


def png(table: Any) -> bytes:
    return bytes(cv2.imencode(".png", table[..., ::-1] if table.ndim == 3 else table)[1].tobytes())


def noise(height: int = 4, width: int = 6, seed: int = 1) -> Any:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8)


def chunk(name: bytes, content: bytes) -> bytes:
    """One of a PNG."""
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))


def bomb(width: int, height: int) -> bytes:
    """A PNG of that size, all of it one colour: 1,000 times smaller than what it becomes."""
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    rows = zlib.compress(bytes((1 + 3 * width) * height), 9) if width * height < 1 << 24 else zlib.compress(b"")
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def with_size(encoded: bytes, height: int, width: int) -> bytes:
    """A JPEG whose head claims another size."""
    at = encoded.index(b"\xff\xc0") + 5
    return encoded[:at] + struct.pack(">HH", height, width) + encoded[at + 4 :]


def with_colours(encoded: bytes, colours: int) -> bytes:
    """A JPEG whose head claims other colours."""
    at = encoded.index(b"\xff\xc0") + 9
    return encoded[:at] + bytes([colours]) + encoded[at + 1 :]


def labelled(count: int) -> list[tuple[bytes, str]]:
    """JPEGs of 32 x 32 and what is on them, in mixed order: CIFAR-10's, else made ones whose colours say it."""
    chance = np.random.default_rng(2)
    if not CIFAR.exists():
        tints = chance.integers(60, 200, (10, 3))
        what = chance.integers(0, 10, count)
        images = np.clip(tints[what][:, None, None] + chance.normal(0, 60, (count, 32, 32, 3)), 0, 255).astype(np.uint8)
        return [(jpeg(table), f"class{each}") for table, each in zip(images, what, strict=True)]
    with tarfile.open(CIFAR) as archive:
        names = sorted(name for name in archive.getnames() if name.endswith(".jpg"))
        chosen = chance.choice(names, count, replace=False)
        found = [(archive.extractfile(str(name)), str(name).split("/")[1]) for name in chosen]
        return [(file.read(), name) for file, name in found if file is not None]
