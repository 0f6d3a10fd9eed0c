"""Pictures: their points in the slot from every format, what is none, and bombs that are refused before they burst."""

from __future__ import annotations

import base64
import random
import resource
import sys
from typing import Any

import msgpack
import numpy as np
import pytest
from long_tables import in_full_all
from looped import over
from slots import RowSlot, decode_rows

from streamtrain import _native
from streamtrain.columns.formats import encode_rows
from streamtrain.columns.picture_meaning import averaged
from streamtrain.columns.records import Records
from streamtrain.columns.schema import Schema
from streamtrain.errors import UserMistake
from tests.columns.conftest import spoiled
from tests.columns.drawn_jobs import formats_of_bytes

pytest.importorskip("cv2")
from pictures import bomb, chunk, jpeg, noise, png, with_colours, with_size

PHOTO: dict[str, Any] = {"kind": "image", "size": [4, 6]}
LATE = {"late": {"role": "label", "missing": 1}}


def schema_of(**settings: Any) -> Schema:
    return Schema.from_columns({"photo": {**PHOTO, **settings}, **LATE}, "binary_cross_entropy")


def shown(slot: RowSlot, rows: int) -> list[list[int]]:
    (name,) = (name for name in slot.views if name.startswith("image:"))
    points: list[list[int]] = slot.views[name][:rows].tolist()
    return points


FORMATS = formats_of_bytes("photo", schema_of())


@over("form", FORMATS)
def test_a_picture_is_its_points(form: str) -> None:
    """PNG is exact. Written by the native encoder, as bytes, or as base64 where there are none."""
    schema, table = schema_of(), noise()
    rows = [{"photo": png(table), "late": 1}, {"photo": png(255 - table), "late": 0}] * 5
    slot = RowSlot(schema, 16, FORMATS[form])
    blocks = list(Records(schema, FORMATS[form], "rows", 99, 1 << 20).blocks(rows, None, False))
    found = []
    for made in (made for block in blocks for made in block):
        for count, tally in slot.record(made.value):
            assert not tally.dead_rows
            found += shown(slot, count)
    assert found == [table.ravel().tolist(), (255 - table).ravel().tolist()] * 5


def test_a_programs_rows_hold_bytes_or_base64() -> None:
    raw = png(noise())
    for cell in (raw, base64.b64encode(raw).decode()):
        slot = RowSlot(schema_of(), 4)
        ((rows, _),) = list(slot.batches([{"photo": cell, "late": 1}]))
        assert shown(slot, rows) == [noise().ravel().tolist()]


def test_grey_pictures_and_those_of_another_size() -> None:
    grey = np.arange(24, dtype=np.uint8).reshape(4, 6) * 10
    for settings, raw, expected in (
        ({"channels": 1}, png(grey), grey),
        ({}, png(grey), np.repeat(grey[..., None], 3, axis=2)),
        ({"size": 2}, png(noise(9, 5)), averaged(noise(9, 5), 2, 2)),
        ({"size": [7, 11]}, png(noise(2, 3)), averaged(noise(2, 3), 7, 11)),
    ):
        blocks, tally = decode_rows("msgpack", schema_of(**settings), msgpack.packb({"photo": raw, "late": 1}))
        (name,) = (name for name in blocks if name.startswith("image:"))
        assert not tally.dead_rows and np.array_equal(blocks[name][0], expected.ravel())


@over("seed", range(6))
def test_another_size_is_the_mean_of_areas(seed: int) -> None:
    chance = np.random.default_rng(seed)
    given, wanted = chance.integers(1, 40, 2), chance.integers(1, 40, 2)
    table = chance.integers(0, 256, (*given, 3), np.uint8)
    fitted = np.zeros((*wanted, 3), np.uint8)
    _native.fit_picture(table, fitted)
    assert np.array_equal(fitted, averaged(table, *wanted))


JPEG = jpeg(noise(8, 8))
BROKEN_PNG = png(noise())[:40] + b"\xff" + png(noise())[41:]


@over(
    ("cell", "got"),
    [
        (b"GIF89a", "neither"),
        (b"", "neither"),
        (JPEG[: len(JPEG) // 2], "a JPEG that is cut short"),
        (JPEG[:-2], "a JPEG that is cut short"),
        (b"\xff\xd8\xff\xd9", "a JPEG without a picture"),
        (with_size(JPEG, 65535, 65535), "a picture of 65535 x 65535"),
        (with_size(JPEG, 0, 8), "a picture of 8 x 0"),
        (with_colours(JPEG, 4), "a JPEG of 4 colours"),
        (png(noise())[:-1], "a PNG that is cut short"),
        (b"\x89PNG\r\n\x1a\n" + chunk(b"IEND", b""), "a PNG without a head"),
        (bomb(1 << 20, 1 << 20), "a picture of 1048576 x 1048576"),
        (BROKEN_PNG, "one that cannot be decoded"),
        (7, "7"),
        (True, "true"),
        ("no base64!", 'text that is no base64: "no base64!"'),
        (base64.b64encode(b"GIF89a").decode(), "neither"),
    ],
)
def test_what_is_no_picture_is_a_dead_letter(cell: Any, got: str) -> None:
    _, tally = decode_rows("msgpack", schema_of(), msgpack.packb({"photo": cell, "late": 1}))
    assert [(each.path, each.reason) for each in tally.dead_rows] == [("$.photo", f"expected JPEG or PNG, got {got}")]
    slot = RowSlot(schema_of(), 4)
    ((rows, told),) = list(slot.batches([{"photo": cell, "late": 1}]))
    assert rows == 0 and told.dead_rows[0].reason == tally.dead_rows[0].reason


def test_a_bomb_does_not_burst() -> None:
    """40 kB that become 48 MB: refused by its head where the column allows less, with no memory taken for it."""
    raw = bomb(4000, 4000)
    assert len(raw) < 60_000
    bounded = schema_of(max_decoded_bytes=4000 * 4000 * 3 - 1)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(20):
        _, tally = decode_rows("msgpack", bounded, msgpack.packb({"photo": raw, "late": 1}))
        assert tally.dead_rows[0].reason == "expected JPEG or PNG, got a picture of 4000 x 4000"
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20_000  # kB
    _, tally = decode_rows("msgpack", schema_of(), msgpack.packb({"photo": raw, "late": 1}))
    assert not tally.dead_rows


def test_a_missing_picture_is_what_the_column_says() -> None:
    for missing, expected in ((0, [[0] * 72]), (200, [[200] * 72]), ("skip", [])):
        slot = RowSlot(schema_of(missing=missing), 4, "msgpack")
        ((rows, _),) = list(slot.record(msgpack.packb({"late": 1})))
        assert shown(slot, rows) == expected


SCHEMAS = [schema_of(), schema_of(channels=1, missing=7), schema_of(size=3, max_decoded_bytes=120)]


@in_full_all()
@over("raw", [JPEG, jpeg(noise(5, 9)), jpeg(noise()[..., 0]), png(noise())])
def test_native_and_slow_agree_cut_and_mutated(same: Any, raw: bytes, take: Any) -> None:
    def row(cell: bytes) -> bytes:
        return bytes(msgpack.packb({"photo": cell, "late": 1}))

    for schema in SCHEMAS:
        for capacity in (1, 3):
            same(schema, "msgpack", msgpack.packb([{"photo": raw, "late": 1}, {"late": 0, "photo": None}]), capacity)
        for worse in spoiled(raw, take, 0):
            same(schema, "msgpack", row(worse))
    for worse in spoiled(raw[:60], take, 300, b"\xff\xda\1\0"):  # heads, which say most
        same(SCHEMAS[0], "msgpack", row(worse + raw[60:]))
    for worse in spoiled(raw, take, 200, b"\xff\xda\0"):
        same(SCHEMAS[0], "msgpack", row(worse))


def holds_bytes(form: str) -> bool:
    """Whether what the native encoder makes of bytes holds them as they are."""
    ((made,),) = Records(schema_of(), form, "rows", 9, 1 << 20).blocks([{"photo": JPEG, "late": 1}], None, False)
    return JPEG in made.value


@in_full_all()
@over("form", FORMATS)
def test_records_of_pictures_cut_and_mutated(same: Any, form: str, take: Any) -> None:
    schema = SCHEMAS[0]
    cells: list[Any] = [png(noise()), None, b"no picture"]
    if not isinstance(FORMATS[form], dict) and not holds_bytes(form):
        cells = [base64.b64encode(cell).decode() if cell else cell for cell in cells]
    rows = [{"photo": cell, "late": at % 2} for at, cell in enumerate(cells)]
    given = rows[:1] if isinstance(FORMATS[form], dict) else rows
    made = encode_rows(FORMATS[form], schema, given)
    for capacity in (1, 64):
        same(schema, FORMATS[form], made, capacity)
    for worse in spoiled(made, take, 100):
        same(schema, FORMATS[form], worse)


def test_a_picture_is_decoded_once_for_all_rows_of_some_records(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of records that come together go to the threads together, whatever the order of what becomes of them."""
    calls: list[int] = []
    from streamtrain.columns import media

    decode = media.decode

    def counted(part: media.DecodePart, dtype: type, encoded: Any, rows: Any) -> bytes:
        calls.append(len(encoded))
        return decode(part, dtype, encoded, rows)

    monkeypatch.setattr(media, "decode", counted)
    schema = schema_of()
    filler = _native.BatchFiller("msgpack", RowSlot(schema, 256).plan)
    raws = [jpeg(noise(seed=seed)) for seed in range(100)]
    records = [msgpack.packb([{"photo": raw, "late": 1}, {"photo": raw[:50], "late": 1}]) for raw in raws]
    told = filler.count(records)
    assert (told.trained, told.dead) == (100, 100) and calls == [64, 36]


@over(
    ("settings", "problem"),
    [
        ({"size": None}, "size: expected the height and the width that pictures are brought to, got None"),
        ({"size": [1, 2, 3]}, "size: expected the height and the width"),
        ({"size": [0, 2]}, "size: expected the height and the width"),
        ({"size": 4000}, "size: expected at most"),
        ({"missing": 256}, 'missing: expected "dead_letter", "skip" or a byte'),
        ({"missing": ""}, "missing: expected"),
        ({"channels": 4}, "channels: "),
    ],
)
def test_mistakes(settings: dict[str, Any], problem: str) -> None:
    with pytest.raises(UserMistake) as raised:
        schema_of(**settings)
    assert problem in str(raised.value)


def test_the_bound_of_all_records_holds() -> None:
    from streamtrain.job import Job

    text = (
        'name = "x"\n[kafka]\nbootstrap.servers = "b"\n[records]\nmax_decoded_bytes = "1kB"\n[columns]\n'
        'photo = { kind = "image", size = 4 }\nsmall = { kind = "image", size = 4, max_decoded_bytes = 9 }\n'
        'late = { role = "label" }\n'
    )
    columns = dict(Job.parse(text).schema.columns)
    assert [columns[name].max_decoded_bytes for name in ("photo", "small")] == [1000, 9]


@pytest.mark.parametrize("library", ["cv2", "simplejpeg"])
def test_without_a_library_a_plan_is_refused_and_a_record_is_written(
    monkeypatch: pytest.MonkeyPatch, library: str
) -> None:
    from streamtrain.columns import pictures

    monkeypatch.setitem(sys.modules, library, None)
    pictures._libraries.cache_clear()
    try:
        with pytest.raises(UserMistake, match=rf"{library} is not installed.* pip install 'streamtrain\[images\]'"):
            RowSlot(schema_of(), 4, "msgpack")
        rows = [{"photo": JPEG, "late": 1}]
        ((made,),) = Records(schema_of(), "msgpack", "rows", 9, 1 << 20).blocks(rows, None, False)
        assert JPEG in made.value
    finally:
        pictures._libraries.cache_clear()


def of_opencv(raw: bytes, channels: int) -> Any:
    import cv2

    how = cv2.IMREAD_IGNORE_ORIENTATION | (cv2.IMREAD_COLOR_RGB if channels == 3 else cv2.IMREAD_GRAYSCALE)
    found = cv2.imdecode(np.frombuffer(raw, np.uint8), how)
    return None if found is None else found.reshape(*found.shape[:2], channels)


def kinds_of_jpeg() -> dict[str, bytes]:
    """One of each way that a writer has: colours at half the points, in several scans, with restarts, grey."""
    import cv2

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
    from streamtrain.columns import pictures

    chance, damaged = random.Random(channels), 0
    for name, raw in kinds_of_jpeg().items():
        assert np.array_equal(pictures.opened(raw, channels), of_opencv(raw, channels)), name
        for _ in range(20):
            at = chance.randrange(raw.index(b"\xff\xda"), len(raw))
            worse = raw[:at] + bytes([chance.randrange(256)]) + raw[at + 1 :]
            found, wanted = pictures.opened(worse, channels), of_opencv(worse, channels)
            assert (found is None) == (wanted is None) and (found is None or np.array_equal(found, wanted)), name
            damaged += found is not None and not np.array_equal(found, of_opencv(raw, channels))
    assert damaged > 100
