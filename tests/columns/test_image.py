"""Pictures beyond what test_media.py has of all media: other sizes and colours, and JPEGs as OpenCV reads them."""

from __future__ import annotations

import random
from typing import Any

import msgpack
import numpy as np
import pytest
from looped import over
from slots import RowSlot

from streamtrain import _native
from streamtrain.columns import media
from streamtrain.columns import pictures as product_pictures
from streamtrain.columns.picture_meaning import averaged
from streamtrain.job import Job
from tests.columns.test_media import decoded, schema_of

pytest.importorskip("cv2")
import cv2
from pictures import jpeg, noise, png

GREY = np.arange(24, dtype=np.uint8).reshape(4, 6) * 10


@over(
    ("settings", "raw", "expected"),
    [
        ({"channels": 1}, png(GREY), GREY),
        ({}, png(GREY), np.repeat(GREY[..., None], 3, axis=2)),
        ({"size": 2}, png(noise(9, 5)), averaged(noise(9, 5), 2, 2)),
        ({"size": [7, 11]}, png(noise(2, 3)), averaged(noise(2, 3), 7, 11)),
    ],
)
def test_grey_pictures_and_those_of_another_size(settings: dict[str, Any], raw: bytes, expected: Any) -> None:
    assert np.array_equal(decoded("image", raw, **settings), expected.ravel())


@over("seed", range(6))
def test_another_size_is_the_mean_of_areas(seed: int) -> None:
    chance = np.random.default_rng(seed)
    given, wanted = chance.integers(1, 40, 2), chance.integers(1, 40, 2)
    table = chance.integers(0, 256, (*given, 3), np.uint8)
    fitted = np.zeros((*wanted, 3), np.uint8)
    _native.fit_picture(table, fitted)
    assert np.array_equal(fitted, averaged(table, *wanted))


def test_a_picture_is_decoded_once_for_all_rows_of_some_records(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pictures of records that come together go to the threads together, whatever becomes of their rows."""
    calls: list[int] = []
    decode = media.decode

    def counted(part: media.DecodePart, dtype: type, encoded: Any, rows: Any) -> bytes:
        calls.append(len(encoded))
        return decode(part, dtype, encoded, rows)

    monkeypatch.setattr(media, "decode", counted)
    filler = _native.BatchFiller("msgpack", RowSlot(schema_of("image"), 256).plan)
    raws = [jpeg(noise(seed=seed)) for seed in range(100)]
    records = [msgpack.packb([{"cell": raw, "late": 1}, {"cell": raw[:50], "late": 1}]) for raw in raws]
    told = filler.count(records)
    assert (told.trained, told.dead) == (100, 100) and calls == [64, 36]


def test_the_bound_of_all_records_holds() -> None:
    text = (
        'name = "x"\n[kafka]\nbootstrap.servers = "b"\n[records]\nmax_decoded_bytes = "1kB"\n[columns]\n'
        'photo = { kind = "image", size = 4 }\nsmall = { kind = "image", size = 4, max_decoded_bytes = 9 }\n'
        'late = { role = "label" }\n'
    )
    columns = dict(Job.parse(text).schema.columns)
    assert [columns[name].max_decoded_bytes for name in ("photo", "small")] == [1000, 9]


def of_opencv(raw: bytes, channels: int) -> Any:
    how = cv2.IMREAD_IGNORE_ORIENTATION | (cv2.IMREAD_COLOR_RGB if channels == 3 else cv2.IMREAD_GRAYSCALE)
    found = cv2.imdecode(np.frombuffer(raw, np.uint8), how)
    return None if found is None else found.reshape(*found.shape[:2], channels)


def kinds_of_jpeg() -> dict[str, bytes]:
    """One of each way that a writer has: colours at half the points, in several scans, with restarts, grey."""
    sampling = {name: value for name, value in vars(cv2).items() if name.startswith("IMWRITE_JPEG_SAMPLING_FACTOR_")}
    assert len(sampling) > 3
    ways = {name: (cv2.IMWRITE_JPEG_SAMPLING_FACTOR, value) for name, value in sampling.items()}
    ways |= {"scans": (cv2.IMWRITE_JPEG_PROGRESSIVE, 1), "restarts": (cv2.IMWRITE_JPEG_RST_INTERVAL, 2)}
    ways |= {f"quality {quality}": (cv2.IMWRITE_JPEG_QUALITY, quality) for quality in (5, 50, 100)}
    tables = {"odd": noise(37, 51), "small": noise(1, 1), "grey": noise(33, 18)[..., 0]}
    return {f"{name}, {size}": jpeg(table, *way) for name, way in ways.items() for size, table in tables.items()}


@over("channels", [1, 3])
def test_a_jpegs_points_are_opencvs(channels: int) -> None:
    """Its own, or those of a library that is quicker: nobody can tell; of a damaged one too."""
    chance, damaged = random.Random(channels), 0
    for name, raw in kinds_of_jpeg().items():
        assert np.array_equal(product_pictures.opened(raw, channels), of_opencv(raw, channels)), name
        for _ in range(20):
            at = chance.randrange(raw.index(b"\xff\xda"), len(raw))
            worse = raw[:at] + bytes([chance.randrange(256)]) + raw[at + 1 :]
            found, wanted = product_pictures.opened(worse, channels), of_opencv(worse, channels)
            assert (found is None) == (wanted is None) and (found is None or np.array_equal(found, wanted)), name
            damaged += found is not None and not np.array_equal(found, of_opencv(raw, channels))
    assert damaged > 100
