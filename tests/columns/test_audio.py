"""Clips of sound beyond what test_media.py has of all media: forms of samples, energies by bands, lengths unsaid."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from looped import over

from streamtrain import _native
from streamtrain.columns.mel import bands_of, circle
from tests.columns.test_media import COUNT, FLOATS, RF64, WAV, WAVE, decoded, row_of, schema_of

pytest.importorskip("soundfile")
from sounds import RATE, encoded, flac, tone, wav, with_count


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
    """To 3e-4 what float64 gives, where a band has more than 1e-9 of its frame's loudest: 90 dB."""
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
    told = flac(np.stack([wave, -wave / 3][:channels], axis=1))
    piped = with_count(told, 0)
    for seconds in (COUNT / RATE, 10_000 / RATE):
        assert decoded("audio", piped, seconds=seconds).tobytes() == decoded("audio", told, seconds=seconds).tobytes()
    assert _native.flac_samples(piped) == _native.flac_samples(told) == count
    size = 4 * channels * count
    for allowed, trained in ((size, 1), (size - 1, 0)) if count > 1 else ((size, 1),):
        assert same(schema_of("audio", max_decoded_bytes=allowed), "msgpack", row_of(piped)).trained == trained
