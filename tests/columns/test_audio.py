"""Clips of sound: their samples and energies in the slot from every format, what is none, heads that promise much."""

from __future__ import annotations

import base64
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
from streamtrain.columns import sounds
from streamtrain.columns.formats import encode_rows
from streamtrain.columns.mel import bands_of, circle
from streamtrain.columns.records import Records
from streamtrain.columns.schema import Schema
from streamtrain.columns.sounds import SoundForm
from streamtrain.errors import UserMistake
from tests.columns.conftest import spoiled
from tests.columns.drawn_jobs import formats_of_bytes

pytest.importorskip("soundfile")
from sounds import RATE, chunk, encoded, flac, head, made_wav, tone, wav, with_count

COUNT = 40
CLIP: dict[str, Any] = {"kind": "audio", "rate": RATE, "seconds": COUNT / RATE}
LATE = {"late": {"role": "label", "missing": 1}}
EXPECTED = f"WAV or FLAC of {RATE} samples a second"


def schema_of(**settings: Any) -> Schema:
    return Schema.from_columns({"clip": {**CLIP, **settings}, **LATE}, "binary_cross_entropy")


def shown(blocks: dict[str, Any]) -> Any:
    (name,) = (name for name in blocks if name.startswith("audio:"))
    return blocks[name]


def decoded(cell: Any, **settings: Any) -> Any:
    """The row of one clip."""
    blocks, tally = decode_rows("msgpack", schema_of(**settings), msgpack.packb({"clip": cell, "late": 1}))
    assert not tally.dead_rows
    return shown(blocks)[0]


FORMATS = formats_of_bytes("clip", schema_of())
WAVE = tone(COUNT)
PCM = np.round(WAVE * 32767).astype(np.int16)
WAV, FLAC = wav(PCM), flac(PCM)
FLOATS = wav(WAVE, subtype="FLOAT")
RF64, LONG = encoded(PCM, "RF64"), tone(9_000)


@over("form", FORMATS)
def test_a_clip_is_its_samples(form: str) -> None:
    """Written by the native encoder, as bytes, or as base64 where there are none."""
    schema = schema_of()
    rows = [{"clip": WAV, "late": 1}, {"clip": FLAC, "late": 0}] * 5
    slot = RowSlot(schema, 16, FORMATS[form])
    blocks = list(Records(schema, FORMATS[form], "rows", 99, 1 << 20).blocks(rows, None, False))
    found: list[Any] = []
    for made in (made for block in blocks for made in block):
        for count, tally in slot.record(made.value):
            assert not tally.dead_rows
            found += shown(slot.views)[:count].tolist()
    assert np.array_equal(found, [PCM / np.float32(32768)] * 10)


def test_a_programs_rows_hold_bytes_or_base64() -> None:
    for cell in (FLOATS, base64.b64encode(FLOATS).decode()):
        slot = RowSlot(schema_of(), 4)
        ((rows, _),) = list(slot.batches([{"clip": cell, "late": 1}]))
        assert rows == 1 and np.array_equal(shown(slot.views)[0], WAVE)


@over(("subtype", "apart"), [("PCM_U8", 1 / 64), ("PCM_24", 1e-6), ("DOUBLE", 0), ("ULAW", 0.02)])
def test_samples_of_other_forms(subtype: str, apart: float) -> None:
    assert np.abs(decoded(wav(WAVE, subtype=subtype)) - WAVE).max() <= apart


def test_channels_are_one_and_lengths_are_the_columns() -> None:
    table = np.stack([tone(COUNT, seed=seed) for seed in range(3)], axis=1)
    mean = ((table[:, 0].astype(float) + table[:, 1] + table[:, 2]) / 3).astype(np.float32)
    assert np.array_equal(decoded(wav(table, subtype="FLOAT")), mean)
    longer = wav(tone(COUNT + 9), subtype="FLOAT")
    assert np.array_equal(decoded(longer), tone(COUNT + 9)[:COUNT])
    assert np.array_equal(decoded(FLOATS, seconds=(COUNT + 5) / RATE), [*WAVE, *[0] * 5])


def log_mel(wave: Any, rate: int, window: int, step: int, mel: int) -> tuple[Any, Any]:
    """By the definition of docs/produce.md, in float64: [frames, mel], and of each frame its largest energy."""
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
    """To 3e-4 what float64 gives, where a band has more than 1e-9 of its frame's loudest: 90 dB."""
    wave = tone(4000, noise=noise)
    form = {"features": {"mel": mel, "window": window, "step": step}, "seconds": 0.5}
    found = decoded(wav(wave, subtype="FLOAT"), **form).reshape(-1, mel)
    expected, loudest = log_mel(wave.astype(float), RATE, window, step, mel)
    assert found.shape == expected.shape == (1 + (4000 - window) // step, mel)
    audible = np.exp(expected) > 1e-9 * loudest
    assert audible.mean() > 0.3 and np.abs(found - expected)[audible].max() < 3e-4
    assert np.abs(np.exp(found) - np.exp(expected)).max() < 1e-6 * loudest.max()


def test_frames_are_of_25_ms_every_10() -> None:
    wave = tone(1000)
    usual = decoded(wav(wave), features={"mel": 8}, seconds=0.125)
    assert np.array_equal(usual, decoded(wav(wave), features={"mel": 8, "window": 200, "step": 80}, seconds=0.125))
    assert len(usual) == 8 * (1 + (1000 - 200) // 80)
    of_64 = decoded(wav(wave), features={"mel": 64}, seconds=0.125)
    assert np.array_equal(decoded(wav(wave), features=True, seconds=0.125), of_64)


def test_tables_are_exact() -> None:
    for of in (3, 16, 400, 512):
        angles = 2 * np.pi * np.arange(2 * of) / of
        found = np.array([circle(at, of) for at in range(2 * of)])
        assert np.abs(found - np.stack([np.cos(angles), np.sin(angles)], axis=1)).max() < 1e-14
    bands = bands_of(16000, 400, 64)
    assert bands.empty == 0 and bands_of(16000, 400, 128).empty > 0 and len(bands.turn_of) == 256


SHORT = made_wav(head(), chunk(b"data", b"\0\0" * COUNT))


@over(
    ("cell", "got"),
    [
        (b"OggS", "neither"),
        (b"", "neither"),
        (b"RIFF\0\0\0\0AVI ", "neither"),
        (WAV[:-1], "a WAV that is cut short"),
        (WAV[:30], "a WAV that is cut short"),
        (made_wav(chunk(b"data", b"\0" * 8)), "a WAV without a head"),
        (made_wav(head(), head(), chunk(b"data", b"\0" * 8)), "a WAV of two heads"),
        (made_wav(head(), chunk(b"data", b"")), "a WAV of 0 samples in 1 channels"),
        (made_wav(head(channels=9), chunk(b"data", b"\0" * 180)), "a WAV of 9 channels"),
        (made_wav(head(channels=0), chunk(b"data", b"\0" * 8)), "a WAV of 0 channels"),
        (made_wav(head(form=17, bits=4), chunk(b"data", b"\0" * 8)), "a WAV of format 17"),
        (wav(WAVE, 44100), "one of 44100"),
        (flac(WAVE, 16000), "one of 16000"),
        (FLAC[:30], "a FLAC that is cut short"),
        (b"fLaC" + b"\x84\0\0\4abcdef", "a FLAC without a head"),
        (with_count(FLAC, (1 << 36) - 1), "a FLAC of 68719476735 samples in 1 channels"),
        (with_count(FLAC, 0)[:-1], "a FLAC of 0 samples in 1 channels"),
        (RF64[:-1], "a WAV that is cut short"),
        (RF64.replace(b"ds64", b"JUNK"), "a WAV without a head"),
        (FLAC[:-20], "one that cannot be decoded"),
        (with_count(flac(PCM[:-9]), COUNT), "one that cannot be decoded"),
        (wav(np.full(COUNT, np.nan, np.float32), subtype="FLOAT"), "one that cannot be decoded"),
        (wav(np.full(COUNT, 1e30, np.float32), subtype="FLOAT"), "one that cannot be decoded"),
        (7, "7"),
        (True, "true"),
        ("no base64!", 'text that is no base64: "no base64!"'),
        (base64.b64encode(b"OggS").decode(), "neither"),
    ],
)
def test_what_is_no_clip_is_a_dead_letter(cell: Any, got: str) -> None:
    _, tally = decode_rows("msgpack", schema_of(), msgpack.packb({"clip": cell, "late": 1}))
    assert [(each.path, each.reason) for each in tally.dead_rows] == [("$.clip", f"expected {EXPECTED}, got {got}")]
    slot = RowSlot(schema_of(), 4)
    ((rows, told),) = list(slot.batches([{"clip": cell, "late": 1}]))
    assert rows == 0 and told.dead_rows[0].reason == tally.dead_rows[0].reason


def test_a_bomb_does_not_burst() -> None:
    """10 minutes of silence in 20 kB: refused by its head where the column allows less, with no memory taken for it;
    and where it allows them, of its samples those that the column has are decoded."""
    count = 600 * RATE
    raw = flac(np.zeros(count, np.float32))
    assert len(raw) < 60_000
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(20):
        cell = msgpack.packb({"clip": raw, "late": 1})
        _, tally = decode_rows("msgpack", schema_of(max_decoded_bytes=4 * count - 1), cell)
        assert tally.dead_rows[0].reason == f"expected {EXPECTED}, got a FLAC of {count} samples in 1 channels"
        assert not decoded(raw).any()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 10_000  # kB


def test_a_missing_clip_is_what_the_column_says() -> None:
    form = SoundForm(RATE, 400, 8, 64, 32)
    told = {"seconds": 400 / RATE, "features": {"mel": 8, "window": 64, "step": 32}}
    silent = sounds.features(np.zeros(400, np.float32), form)
    assert np.all(silent == np.log(np.float32(1e-10)))
    for settings, expected in (
        ({"missing": 0}, [[0.0] * COUNT]),
        ({"missing": 0.5}, [[0.5] * COUNT]),
        ({"missing": 0, **told}, [silent.tolist()]),
        ({"missing": "skip"}, []),
    ):
        slot = RowSlot(schema_of(**settings), 4, "msgpack")
        ((rows, _),) = list(slot.record(msgpack.packb({"late": 1})))
        assert shown(slot.views)[:rows].tolist() == expected


FEATURES = {"mel": 3, "window": 24, "step": 5}
SCHEMAS = [schema_of(), schema_of(features=FEATURES, missing=0), schema_of(seconds=0.001, max_decoded_bytes=120)]


def test_a_wav_written_to_a_pipe_is_as_long_as_it_is(same: Any) -> None:
    at = WAV.index(b"data") + 4
    for tail in (b"", b"\1"):
        piped = WAV[:4] + b"\xff" * 4 + WAV[8:at] + b"\xff" * 4 + WAV[at + 4 :] + tail
        assert decoded(piped).tobytes() == decoded(WAV).tobytes()
        record = msgpack.packb({"clip": piped, "late": 1})
        assert same(schema_of(), "msgpack", record).trained == 1


def test_a_clip_of_a_long_form_is_the_same(same: Any) -> None:
    assert RF64.startswith(b"RF64") and decoded(RF64).tobytes() == decoded(WAV).tobytes()
    table = np.stack([LONG, -LONG, LONG / 2], axis=1)
    assert decoded(encoded(table, "RF64", subtype="FLOAT")).tobytes() == decoded(wav(table, subtype="FLOAT")).tobytes()


@over("count", [1, COUNT - 9, COUNT, 4096, 4097, 9_000])
@over("channels", [1, 2])
def test_a_flac_written_to_a_pipe_is_as_long_as_its_frames(same: Any, count: int, channels: int) -> None:
    """Shorter than the column's clips, as long, longer; of one frame and of several."""
    wave = tone(9_000)[:count]
    told = flac(np.stack([wave, -wave / 3][:channels], axis=1))
    piped = with_count(told, 0)
    for seconds in (COUNT / RATE, 10_000 / RATE):
        assert decoded(piped, seconds=seconds).tobytes() == decoded(told, seconds=seconds).tobytes()
    assert _native.flac_samples(piped) == _native.flac_samples(told) == count
    allowed = schema_of(max_decoded_bytes=4 * channels * count)
    assert same(allowed, "msgpack", msgpack.packb({"clip": piped, "late": 1})).trained == 1
    if count > 1:
        less = schema_of(max_decoded_bytes=4 * channels * count - 1)
        assert same(less, "msgpack", msgpack.packb({"clip": piped, "late": 1})).trained == 0


@in_full_all()
@over("raw", [WAV, FLAC, FLOATS, RF64, with_count(FLAC, 0), flac(np.stack([WAVE, -WAVE], axis=1))])
def test_native_and_slow_agree_cut_and_mutated(same: Any, raw: bytes, take: Any) -> None:
    def row(cell: bytes) -> bytes:
        return bytes(msgpack.packb({"clip": cell, "late": 1}))

    for schema in SCHEMAS:
        for capacity in (1, 3):
            same(schema, "msgpack", msgpack.packb([{"clip": raw, "late": 1}, {"late": 0, "clip": None}]), capacity)
        for worse in spoiled(raw, take, 0):
            same(schema, "msgpack", row(worse))
    for worse in spoiled(raw[:60], take, 300, b"\xff\xda\1\0"):  # heads, which say most
        same(SCHEMAS[0], "msgpack", row(worse + raw[60:]))
    for worse in spoiled(raw, take, 200, b"\xff\xda\0"):
        same(SCHEMAS[0], "msgpack", row(worse))


@in_full_all()
@over("form", FORMATS)
def test_records_of_clips_cut_and_mutated(same: Any, form: str, take: Any) -> None:
    schema = SCHEMAS[1]
    cells: list[Any] = [WAV, None, b"no clip"]
    ((first,),) = Records(schema, FORMATS[form], "rows", 9, 1 << 20).blocks([{"clip": WAV, "late": 1}], None, False)
    if WAV not in first.value:
        cells = [base64.b64encode(cell).decode() if cell else cell for cell in cells]
    rows = [{"clip": cell, "late": at % 2} for at, cell in enumerate(cells)]
    made = encode_rows(FORMATS[form], schema, rows[:1] if isinstance(FORMATS[form], dict) else rows)
    for capacity in (1, 64):
        same(schema, FORMATS[form], made, capacity)
    for worse in spoiled(made, take, 100):
        same(schema, FORMATS[form], worse)


@over(
    ("settings", "problem"),
    [
        ({"rate": None}, "rate: expected samples a second, such as 16000, got none"),
        ({"seconds": None}, "seconds: expected how long clips are, such as 1.0, got none"),
        ({"rate": 0}, "rate: "),
        ({"seconds": 0}, "seconds: "),
        ({"seconds": 1e-9}, "seconds: expected 1 to 16,777,216 samples at this rate, got 1e-09 seconds"),
        ({"seconds": 1e9}, "seconds: "),
        ({"seconds": 86400}, "seconds: expected 1 to 16,777,216 samples at this rate, got 86400 seconds"),
        ({"seconds": 10}, "seconds: expected at most 65,535 numbers, got 80,000 samples"),
        ({"seconds": 60, "features": True}, "seconds: expected at most 65,535 numbers, got 5,998 frames of 64 bands"),
        ({"features": {}}, "seconds: expected 200 to 16,777,216 samples at this rate"),
        ({"seconds": 1, "features": {"mel": 200}}, "features: expected a frequency in each of 200 bands, got"),
        ({"features": {"mels": 3}}, "mels: "),
        ({"features": {"window": 8}}, "window: "),
        ({"missing": 2}, 'missing: expected "dead_letter", "skip" or a number for all its samples, -1 to 1'),
        ({"missing": True}, "missing: expected"),
        ({"size": 4}, "size: only a feature of kind vector or image has one"),
        ({"parse": "decimal"}, "parse: only a number or a time can be parsed"),
    ],
)
def test_mistakes(settings: dict[str, Any], problem: str) -> None:
    with pytest.raises(UserMistake) as raised:
        schema_of(**settings)
    assert problem in str(raised.value)


def test_a_number_has_no_rate() -> None:
    with pytest.raises(UserMistake, match="rate: only a feature of kind audio has one"):
        Schema.from_columns({"x": {"rate": 8000}, **LATE}, "binary_cross_entropy")


def test_without_soundfile_a_plan_is_refused_and_a_record_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "soundfile", None)
    sounds._soundfile.cache_clear()
    try:
        with pytest.raises(UserMistake, match=r"pip install 'streamtrain\[audio\]'"):
            RowSlot(schema_of(), 4, "msgpack")
        ((made,),) = Records(schema_of(), "msgpack", "rows", 9, 1 << 20).blocks([{"clip": WAV, "late": 1}], None, False)
        assert WAV in made.value
    finally:
        sounds._soundfile.cache_clear()
