"""Pictures and clips of sound, cells that are files of their own: in the slot from every format, what is none, heads
that promise much, and the threads that decode them; JPEGs as OpenCV reads them; energies by bands, lengths unsaid."""

from __future__ import annotations

import base64
import random
import resource
import sys
import threading
from collections.abc import Sequence
from typing import Any

import msgpack
import numpy as np
import pytest
from long_tables import in_full_all
from looped import over
from slots import RowSlot, decode_rows

from streamtrain import _native
from streamtrain.columns import media
from streamtrain.columns import pictures as product_pictures
from streamtrain.columns import sounds as product_sounds
from streamtrain.columns.mel import bands_of, circle
from streamtrain.columns.record_encoding import Records
from streamtrain.columns.schema import Schema
from streamtrain.errors import UserMistake
from streamtrain.job import Job
from tests.columns.conftest import spoiled
from tests.columns.drawn_jobs import formats_of_bytes
from tests.oracles.kinds.audio import head_of
from tests.oracles.kinds.image import averaged, size_of

pytest.importorskip("cv2")
pytest.importorskip("soundfile")
import cv2
import sounds
from pictures import bomb, chunk, jpeg, noise, png, with_colours, with_size
from sounds import RATE, build_wav, encoded, flac, head, tone, wav, with_count

from tests.oracles.records import encode_rows

COUNT = 40  # samples
IMAGE = "image"
AUDIO = "audio"
COLUMNS: dict[str, dict[str, Any]] = {
    IMAGE: {"kind": IMAGE, "size": [4, 6]}, AUDIO: {"kind": AUDIO, "rate": RATE, "seconds": COUNT / RATE}
}  # fmt: skip
LATE = {"late": {"role": "label", "missing": 1}}
EXPECTED = {IMAGE: "JPEG or PNG", AUDIO: f"WAV or FLAC of {RATE} samples a second"}


def schema_of(kind: str, /, **settings: Any) -> Schema:
    return Schema.from_columns({"cell": {**COLUMNS[kind], **settings}, **LATE}, "binary_cross_entropy")


def media_block(blocks: dict[str, Any]) -> Any:
    (name,) = (name for name in blocks if name.startswith(("image:", "audio:")))
    return blocks[name]


def row_of(cell: Any) -> bytes:
    return bytes(msgpack.packb({"cell": cell, "late": 1}))


def decoded(kind: str, cell: Any, **settings: Any) -> Any:
    """The numbers of one cell."""
    blocks, tally = decode_rows("msgpack", schema_of(kind, **settings), row_of(cell))
    assert not tally.dead_rows
    return media_block(blocks)[0]


FORMATS = {kind: formats_of_bytes("cell", schema_of(kind)) for kind in COLUMNS}
EVERY = [(kind, form) for kind in COLUMNS for form in FORMATS[kind]]
WAVE = tone(COUNT)
PCM = np.round(WAVE * 32767).astype(np.int16)
WAV, FLAC = wav(PCM), flac(PCM)
FLOATS = wav(WAVE, subtype="FLOAT")
RF64 = encoded(PCM, "RF64")
JPEG = jpeg(noise(8, 8))
BROKEN_PNG = png(noise())[:40] + b"\xff" + png(noise())[41:]
GOOD: dict[str, list[tuple[bytes, Any]]] = {
    IMAGE: [(png(noise()), noise().ravel()), (png(255 - noise()), 255 - noise().ravel())],
    AUDIO: [(WAV, PCM / np.float32(32768)), (FLAC, PCM / np.float32(32768))],
}


@over(("kind", "form"), EVERY)
def test_a_cell_is_its_numbers(kind: str, form: str) -> None:
    """Written by the native encoder, as bytes, or as base64 where there are none."""
    schema, format, found = schema_of(kind), FORMATS[kind][form], []
    rows = [{"cell": raw, "late": 1} for raw, _ in GOOD[kind] * 5]
    slot = RowSlot(schema, 16, format)
    blocks = list(Records(schema, format, "rows", 99, 1 << 20).blocks(rows, None, False))
    for record in (record for block in blocks for record in block):
        for count, tally in slot.record(record.value):
            assert not tally.dead_rows
            found += media_block(slot.views)[:count].tolist()
    assert np.array_equal(found, [numbers for _, numbers in GOOD[kind] * 5])


@over(("kind", "raw", "expected"), [(IMAGE, *GOOD[IMAGE][0]), (AUDIO, FLOATS, WAVE)])
def test_a_programs_rows_hold_bytes_or_base64(kind: str, raw: bytes, expected: Any) -> None:
    for cell in (raw, base64.b64encode(raw).decode()):
        slot = RowSlot(schema_of(kind), 4)
        ((rows, _),) = list(slot.batches([{"cell": cell, "late": 1}]))
        assert rows == 1 and np.array_equal(media_block(slot.views)[0], expected)


@over(
    ("kind", "cell", "got"),
    [
        *((kind, cell, got) for kind, other in ((IMAGE, b"GIF89a"), (AUDIO, b"OggS")) for cell, got in (
            (other, "neither"), (b"", "neither"), (7, "7"), (True, "true"),
            ("no base64!", 'text that is no base64: "no base64!"'), (base64.b64encode(other).decode(), "neither"),
        )),
        (IMAGE, JPEG[: len(JPEG) // 2], "a JPEG that is cut short"),
        (IMAGE, JPEG[:-2], "a JPEG that is cut short"),
        (IMAGE, b"\xff\xd8\xff\xd9", "a JPEG without a picture"),
        (IMAGE, with_size(JPEG, 65535, 65535), "a picture of 65535 x 65535"),
        (IMAGE, with_size(JPEG, 0, 8), "a picture of 8 x 0"),
        (IMAGE, with_colours(JPEG, 4), "a JPEG of 4 colours"),
        (IMAGE, png(noise())[:-1], "a PNG that is cut short"),
        (IMAGE, b"\x89PNG\r\n\x1a\n" + chunk(b"IEND", b""), "a PNG without a head"),
        (IMAGE, bomb(1 << 20, 1 << 20), "a picture of 1048576 x 1048576"),
        (IMAGE, BROKEN_PNG, "one that cannot be decoded"),
        (AUDIO, b"RIFF\0\0\0\0AVI ", "neither"),
        (AUDIO, WAV[:-1], "a WAV that is cut short"),
        (AUDIO, WAV[:30], "a WAV that is cut short"),
        (AUDIO, build_wav(sounds.chunk(b"data", b"\0" * 8)), "a WAV without a head"),
        (AUDIO, build_wav(head(), head(), sounds.chunk(b"data", b"\0" * 8)), "a WAV of two heads"),
        (AUDIO, build_wav(head(), sounds.chunk(b"data", b"")), "a WAV of 0 samples in 1 channels"),
        (AUDIO, build_wav(head(channels=9), sounds.chunk(b"data", b"\0" * 180)), "a WAV of 9 channels"),
        (AUDIO, build_wav(head(channels=0), sounds.chunk(b"data", b"\0" * 8)), "a WAV of 0 channels"),
        (AUDIO, build_wav(head(form=17, bits=4), sounds.chunk(b"data", b"\0" * 8)), "a WAV of format 17"),
        (AUDIO, wav(WAVE, 44100), "one of 44100"),
        (AUDIO, flac(WAVE, 16000), "one of 16000"),
        (AUDIO, FLAC[:30], "a FLAC that is cut short"),
        (AUDIO, b"fLaC" + b"\x84\0\0\4abcdef", "a FLAC without a head"),
        (AUDIO, with_count(FLAC, (1 << 36) - 1), "a FLAC of 68719476735 samples in 1 channels"),
        (AUDIO, with_count(FLAC, 0)[:-1], "a FLAC of 0 samples in 1 channels"),
        (AUDIO, RF64[:-1], "a WAV that is cut short"),
        (AUDIO, RF64.replace(b"ds64", b"JUNK"), "a WAV without a head"),
        (AUDIO, FLAC[:-20], "one that cannot be decoded"),
        (AUDIO, with_count(flac(PCM[:-9]), COUNT), "one that cannot be decoded"),
        (AUDIO, wav(np.full(COUNT, np.nan, np.float32), subtype="FLOAT"), "one that cannot be decoded"),
        (AUDIO, wav(np.full(COUNT, 1e30, np.float32), subtype="FLOAT"), "one that cannot be decoded"),
    ],
)  # fmt: skip
def test_what_is_none_is_a_dead_letter(kind: str, cell: Any, got: str) -> None:
    reason = f"expected {EXPECTED[kind]}, got {got}"
    _, tally = decode_rows("msgpack", schema_of(kind), row_of(cell))
    assert [(each.path, each.reason) for each in tally.dead_rows] == [("$.cell", reason)]
    slot = RowSlot(schema_of(kind), 4)
    ((rows, row_tally),) = list(slot.batches([{"cell": cell, "late": 1}]))
    assert rows == 0 and row_tally.dead_rows[0].reason == reason


SILENCE = 600 * RATE  # samples


@over(
    ("kind", "raw", "size", "got", "most_kb"),
    [
        (IMAGE, bomb(4000, 4000), 4000 * 4000 * 3, "a picture of 4000 x 4000", 20_000),
        (AUDIO, flac(np.zeros(SILENCE, np.float32)), 4 * SILENCE, f"a FLAC of {SILENCE} samples in 1 channels",
         10_000),
    ],
    ids=COLUMNS,
)  # fmt: skip
def test_a_bomb_does_not_burst(kind: str, raw: bytes, size: int, got: str, most_kb: int) -> None:
    """40 kB that become 48 MB, and 10 minutes of silence in 20 kB: refused by their heads where the column allows less,
    with no memory taken for them; and of samples that it allows, those that the column has are decoded."""
    assert len(raw) < 60_000
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(20):
        _, tally = decode_rows("msgpack", schema_of(kind, max_decoded_bytes=size - 1), row_of(raw))
        assert tally.dead_rows[0].reason == f"expected {EXPECTED[kind]}, got {got}"
        assert kind == IMAGE or not decoded(kind, raw).any()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < most_kb
    decoded(kind, raw)


MEL = {"seconds": 400 / RATE, "features": {"mel": 8, "window": 64, "step": 32}}
SILENT = product_sounds.features(np.zeros(400, np.float32), product_sounds.SoundForm(RATE, 400, 8, 64, 32))


@over(
    ("kind", "settings", "expected"),
    [
        (IMAGE, {"missing": 0}, [[0] * 72]), (IMAGE, {"missing": 200}, [[200] * 72]),
        (IMAGE, {"missing": "skip"}, []), (AUDIO, {"missing": "skip"}, []),
        (AUDIO, {"missing": 0}, [[0.0] * COUNT]), (AUDIO, {"missing": 0.5}, [[0.5] * COUNT]),
        (AUDIO, {"missing": 0, **MEL}, [SILENT.tolist()]),
    ],
)  # fmt: skip
def test_a_missing_one_is_what_the_column_says(kind: str, settings: dict[str, Any], expected: list[Any]) -> None:
    assert set(SILENT) == {np.log(np.float32(1e-10))}
    slot = RowSlot(schema_of(kind, **settings), 4, "msgpack")
    ((rows, _),) = list(slot.record(msgpack.packb({"late": 1})))
    assert media_block(slot.views)[:rows].tolist() == expected


SCHEMAS = {
    IMAGE: [schema_of(IMAGE), schema_of(IMAGE, channels=1, missing=7),
              schema_of(IMAGE, size=3, max_decoded_bytes=120)],
    AUDIO: [schema_of(AUDIO), schema_of(AUDIO, features={"mel": 3, "window": 24, "step": 5}, missing=0),
              schema_of(AUDIO, seconds=0.001, max_decoded_bytes=120)],
}  # fmt: skip
SPOILED = {
    IMAGE: [JPEG, jpeg(noise(5, 9)), jpeg(noise()[..., 0]), png(noise())],
    AUDIO: [WAV, FLAC, FLOATS, RF64, with_count(FLAC, 0), flac(np.stack([WAVE, -WAVE], axis=1))],
}


@in_full_all()
@over(("kind", "raw"), [(kind, raw) for kind in COLUMNS for raw in SPOILED[kind]])
def test_native_and_slow_agree_cut_and_mutated(same: Any, kind: str, raw: bytes, take: Any) -> None:
    for schema in SCHEMAS[kind]:
        for capacity in (1, 3):
            same(schema, "msgpack", msgpack.packb([{"cell": raw, "late": 1}, {"late": 0, "cell": None}]), capacity)
        for worse in spoiled(raw, take, 0):
            same(schema, "msgpack", row_of(worse))
    for worse in spoiled(raw[:60], take, 300, b"\xff\xda\1\0"):  # heads, which say most
        same(SCHEMAS[kind][0], "msgpack", row_of(worse + raw[60:]))
    for worse in spoiled(raw, take, 200, b"\xff\xda\0"):
        same(SCHEMAS[kind][0], "msgpack", row_of(worse))


@in_full_all()
@over(("kind", "raw"), [(kind, raw) for kind in COLUMNS for raw in SPOILED[kind]])
def test_heads_are_those_of_the_slow_reader(kind: str, raw: bytes, take: Any) -> None:
    """`init` and the decoder of clips read them: of whole files, and of those that are cut or mutated."""
    native, slow = {IMAGE: (_native.picture_size, size_of), AUDIO: (_native.sound_head, head_of)}[kind]
    assert native(raw) is not None
    for worse in (raw, *spoiled(raw, take, 100), *(each + raw[60:] for each in spoiled(raw[:60], take, 300))):
        assert native(worse) == slow(worse), worse


@in_full_all()
@over(("kind", "form"), EVERY)
def test_records_cut_and_mutated(same: Any, kind: str, form: str, take: Any) -> None:
    schema, format, raw = SCHEMAS[kind][kind == AUDIO], FORMATS[kind][form], GOOD[kind][0][0]
    cells: list[Any] = [raw, None, b"none"]
    ((first,),) = Records(schema, format, "rows", 9, 1 << 20).blocks([{"cell": raw, "late": 1}], None, False)
    if raw not in first.value:
        cells = [base64.b64encode(cell).decode() if cell else cell for cell in cells]
    rows = [{"cell": cell, "late": at % 2} for at, cell in enumerate(cells)]
    record = encode_rows(format, schema, rows[:1] if isinstance(format, dict) else rows)
    for capacity in (1, 64):
        same(schema, format, record, capacity)
    for worse in spoiled(record, take, 100):
        same(schema, format, worse)


@over(
    ("kind", "settings", "problem"),
    [
        (IMAGE, {"size": None}, "size: expected the height and the width that pictures are brought to, got None"),
        (IMAGE, {"size": [1, 2, 3]}, "size: expected the height and the width"),
        (IMAGE, {"size": [0, 2]}, "size: expected the height and the width"),
        (IMAGE, {"size": 4000}, "size: expected at most"),
        (IMAGE, {"missing": 256}, 'missing: expected "dead_letter", "skip" or a byte'),
        (IMAGE, {"missing": ""}, "missing: expected"),
        (IMAGE, {"channels": 4}, "channels: "),
        (IMAGE, {"kind": "number", "size": None, "rate": RATE}, "rate: only a feature of kind audio has one"),
        (AUDIO, {"rate": None}, "rate: expected samples a second, such as 16000, got none"),
        (AUDIO, {"seconds": None}, "seconds: expected how long clips are, such as 1.0, got none"),
        (AUDIO, {"rate": 0}, "rate: "),
        (AUDIO, {"seconds": 0}, "seconds: "),
        (AUDIO, {"seconds": 1e-9}, "seconds: expected 1 to 16,777,216 samples at this rate, got 1e-09 seconds"),
        (AUDIO, {"seconds": 1e9}, "seconds: "),
        (AUDIO, {"seconds": 86400}, "seconds: expected 1 to 16,777,216 samples at this rate, got 86400 seconds"),
        (AUDIO, {"seconds": 10}, "seconds: expected at most 65,535 numbers, got 80,000 samples"),
        (AUDIO, {"seconds": 60, "features": True}, "at most 65,535 numbers, got 5,998 frames of 64 bands"),
        (AUDIO, {"features": {}}, "seconds: expected 200 to 16,777,216 samples at this rate"),
        (AUDIO, {"seconds": 1, "features": {"mel": 200}}, "features: expected a frequency in each of 200 bands, got"),
        (AUDIO, {"features": {"mels": 3}}, "mels: "),
        (AUDIO, {"features": {"window": 8}}, "window: "),
        (AUDIO, {"missing": 2}, '"dead_letter", "skip" or a number for all its samples, -1 to 1'),
        (AUDIO, {"missing": True}, "missing: expected"),
        (AUDIO, {"size": 4}, "size: only a feature of kind vector or image has one"),
        (AUDIO, {"parse": "decimal"}, "parse: only a number, a time, a category or a label can be parsed"),
    ],
)
def test_mistakes(kind: str, settings: dict[str, Any], problem: str) -> None:
    with pytest.raises(UserMistake) as raised:
        schema_of(kind, **settings)
    assert problem in str(raised.value)


@pytest.mark.parametrize(
    ("kind", "library", "cache", "message"),
    [
        (IMAGE, "cv2", product_pictures._libraries, r"cv2 is .*pip install 'streamtrain\[images\]'"),
        (IMAGE, "simplejpeg", product_pictures._libraries, r"simplejpeg is .*pip install 'streamtrain\[images\]'"),
        (AUDIO, "soundfile", product_sounds._soundfile, r"pip install 'streamtrain\[audio\]'"),
    ],
)
def test_without_a_library_a_plan_is_refused_and_a_record_is_written(
    monkeypatch: pytest.MonkeyPatch, kind: str, library: str, cache: Any, message: str
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    cache.cache_clear()
    schema, raw = schema_of(kind), GOOD[kind][0][0]
    try:
        with pytest.raises(UserMistake, match=message):
            RowSlot(schema, 4, "msgpack")
        ((record,),) = Records(schema, "msgpack", "rows", 9, 1 << 20).blocks([{"cell": raw, "late": 1}], None, False)
        assert raw in record.value
    finally:
        cache.cache_clear()


@pytest.mark.parametrize(("size", "together"), [(media.SMALL - 1, True), (media.SMALL, False)])
def test_small_cells_are_decoded_by_the_calling_thread(
    size: int, together: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(media, "threads", lambda: 2)
    calls: list[tuple[int, int]] = []

    def first_bytes(encoded: Sequence[memoryview], rows: Any) -> bytes:
        calls.append((threading.get_ident(), len(encoded)))
        rows[:, 0] = [cell[0] for cell in encoded]
        return bytes(cell[0] % 2 for cell in encoded)

    cells = [memoryview(bytes([at]) * size) for at in range(60)]
    rows = bytearray(2 * len(cells))
    good = media.decode(first_bytes, np.uint8, cells, memoryview(rows))
    assert list(rows[::2]) == list(range(60)) and list(good) == [0, 1] * 30
    assert (calls == [(threading.get_ident(), 60)]) is together and sum(count for _, count in calls) == 60
    if not together:
        assert all(thread != threading.get_ident() for thread, _ in calls) and len(calls) == 8


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
    given, target_size = chance.integers(1, 40, 2), chance.integers(1, 40, 2)
    table = chance.integers(0, 256, (*given, 3), np.uint8)
    fitted = np.zeros((*target_size, 3), np.uint8)
    _native.fit_picture(table, fitted)
    assert np.array_equal(fitted, averaged(table, *target_size))


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
    tally = filler.count(records)
    assert (tally.trained, tally.dead) == (100, 100) and calls == [64, 36]


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
    """The points come from OpenCV or from a quicker library: nobody can tell. This holds for damaged files too."""
    chance, damaged = random.Random(channels), 0
    for name, raw in kinds_of_jpeg().items():
        assert np.array_equal(product_pictures.opened(raw, channels), of_opencv(raw, channels)), name
        for _ in range(20):
            at = chance.randrange(raw.index(b"\xff\xda"), len(raw))
            worse = raw[:at] + bytes([chance.randrange(256)]) + raw[at + 1 :]
            found, expected = product_pictures.opened(worse, channels), of_opencv(worse, channels)
            assert (found is None) == (expected is None) and (found is None or np.array_equal(found, expected)), name
            damaged += found is not None and not np.array_equal(found, of_opencv(raw, channels))
    assert damaged > 100


@over(("subtype", "apart"), [("PCM_U8", 1 / 64), ("PCM_24", 1e-6), ("DOUBLE", 0), ("ULAW", 0.02)])
def test_samples_of_other_forms(subtype: str, apart: float) -> None:
    assert np.abs(decoded("audio", wav(WAVE, subtype=subtype)) - WAVE).max() <= apart


def test_channels_are_one_and_lengths_are_the_columns() -> None:
    table = np.stack([tone(COUNT, seed=seed) for seed in range(3)], axis=1)
    mean = ((table[:, 0].astype(float) + table[:, 1] + table[:, 2]) / 3).astype(np.float32)
    assert np.array_equal(decoded("audio", wav(table, subtype="FLOAT")), mean)
    longer = wav(tone(COUNT + 9), subtype="FLOAT")
    assert np.array_equal(decoded("audio", longer), tone(COUNT + 9)[:COUNT])
    assert np.array_equal(decoded("audio", FLOATS, seconds=(COUNT + 5) / RATE), [*WAVE, *[0] * 5])


def log_mel(wave: Any, rate: int, window: int, step: int, mel: int) -> tuple[Any, Any]:
    """Returns, by docs/produce.md in float64, [frames, mel] and the largest energy of each frame."""
    points = 1 << (window - 1).bit_length()
    hann = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(window) / window)
    frames = [wave[at : at + window] * hann for at in range(0, len(wave) - window + 1, step)]
    power = np.abs(np.fft.rfft(frames, points)) ** 2
    scale = np.linspace(0, 2595 * np.log10(1 + rate / 2 / 700), mel + 2)
    corners, bins = 700 * (10 ** (scale / 2595) - 1), np.arange(points // 2 + 1) * rate / points
    weights = [np.interp(bins, corners[at : at + 3], [0, 1, 0], 0, 0) for at in range(mel)]
    energies = power @ np.transpose(weights)
    return np.log(np.maximum(energies, 1e-10)), energies.max(axis=1, keepdims=True)


@over(
    ("window", "step", "mel", "noise"),
    [(256, 128, 20, 0.1), (200, 80, 40, 0.01), (33, 7, 4, 0.0), (400, 400, 64, 1e-3)],
)
def test_features_are_log_energies_by_bands(window: int, step: int, mel: int, noise: float) -> None:
    """Compares with float64 to 3e-4, where a band has more than 1e-9 of its frame's loudest: 90 dB."""
    wave = tone(4000, noise=noise)
    form = {"features": {"mel": mel, "window": window, "step": step}, "seconds": 0.5}
    found = decoded("audio", wav(wave, subtype="FLOAT"), **form).reshape(-1, mel)
    expected, loudest = log_mel(wave.astype(float), RATE, window, step, mel)
    assert found.shape == expected.shape == (1 + (4000 - window) // step, mel)
    audible = np.exp(expected) > 1e-9 * loudest
    assert audible.mean() > 0.3 and np.abs(found - expected)[audible].max() < 3e-4
    assert np.abs(np.exp(found) - np.exp(expected)).max() < 1e-6 * loudest.max()


def test_frames_are_of_25_ms_every_10() -> None:
    def features(settings: Any) -> Any:
        return decoded("audio", wav(tone(1000)), features=settings, seconds=0.125)

    usual = features({"mel": 8})
    assert np.array_equal(usual, features({"mel": 8, "window": 200, "step": 80}))
    assert len(usual) == 8 * (1 + (1000 - 200) // 80)
    assert np.array_equal(features(True), features({"mel": 64}))


def test_tables_are_exact() -> None:
    for of in (3, 16, 400, 512):
        angles = 2 * np.pi * np.arange(2 * of) / of
        found = np.array([circle(at, of) for at in range(2 * of)])
        assert np.abs(found - np.stack([np.cos(angles), np.sin(angles)], axis=1)).max() < 1e-14
    bands = bands_of(16000, 400, 64)
    assert bands.empty == 0 and bands_of(16000, 400, 128).empty > 0 and len(bands.turn_of) == 256


def test_a_wav_written_to_a_pipe_is_as_long_as_it_is(same: Any) -> None:
    at = WAV.index(b"data") + 4
    for tail in (b"", b"\1"):
        piped = WAV[:4] + b"\xff" * 4 + WAV[8:at] + b"\xff" * 4 + WAV[at + 4 :] + tail
        assert decoded("audio", piped).tobytes() == decoded("audio", WAV).tobytes()
        assert same(schema_of("audio"), "msgpack", row_of(piped)).trained == 1


def test_a_clip_of_a_long_form_is_the_same() -> None:
    assert RF64.startswith(b"RF64") and decoded("audio", RF64).tobytes() == decoded("audio", WAV).tobytes()
    wave = tone(9_000)
    table = np.stack([wave, -wave, wave / 2], axis=1)
    long, usual = (decoded("audio", encoded(table, form, subtype="FLOAT")) for form in ("RF64", "WAV"))
    assert long.tobytes() == usual.tobytes()


@over("count", [1, COUNT - 9, COUNT, 4096, 4097, 9_000])
@over("channels", [1, 2])
def test_a_flac_written_to_a_pipe_is_as_long_as_its_frames(same: Any, count: int, channels: int) -> None:
    """Shorter than the column's clips, as long, longer; of one frame and of several."""
    wave = tone(9_000)[:count]
    whole = flac(np.stack([wave, -wave / 3][:channels], axis=1))
    piped = with_count(whole, 0)
    for seconds in (COUNT / RATE, 10_000 / RATE):
        assert decoded("audio", piped, seconds=seconds).tobytes() == decoded("audio", whole, seconds=seconds).tobytes()
    assert _native.sound_head(piped) == _native.sound_head(whole) == (RATE, channels, count)
    size = 4 * channels * count
    for allowed, trained in ((size, 1), (size - 1, 0)) if count > 1 else ((size, 1),):
        assert same(schema_of("audio", max_decoded_bytes=allowed), "msgpack", row_of(piped)).trained == trained
