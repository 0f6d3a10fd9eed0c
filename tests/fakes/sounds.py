"""Clips of sound for tests: tones in noise, encoded by soundfile, and heads that lie."""

from __future__ import annotations

import io
import struct
from typing import Any

import numpy as np
import soundfile

RATE = 8000
PITCHES = {"low": 440.0, "high": 660.0}  # Hz


def tone(count: int, hz: float = 440.0, noise: float = 0.1, seed: int = 1, rate: int = RATE) -> Any:
    """float32 [count], full scale from -1 to 1."""
    chance = np.random.default_rng(seed)
    phase = chance.uniform(0, 2 * np.pi)
    wave = 0.3 * np.sin(2 * np.pi * hz * np.arange(count) / rate + phase) + noise * chance.normal(size=count)
    return np.clip(wave, -0.99, 0.99).astype(np.float32)


def encoded(wave: Any, form: str, rate: int = RATE, subtype: str = "PCM_16") -> bytes:
    """float32 [count] or [count, channels] as a WAV or a FLAC."""
    file = io.BytesIO()
    soundfile.write(file, wave, rate, format=form, subtype=subtype)
    return file.getvalue()


def wav(wave: Any, rate: int = RATE, subtype: str = "PCM_16") -> bytes:
    return encoded(wave, "WAV", rate, subtype)


def flac(wave: Any, rate: int = RATE) -> bytes:
    return encoded(wave, "FLAC", rate)


def chunk(name: bytes, content: bytes) -> bytes:
    """One of a WAV."""
    return name + struct.pack("<I", len(content)) + content + b"\0" * (len(content) % 2)


def build_wav(*chunks: bytes) -> bytes:
    body = b"WAVE" + b"".join(chunks)
    return b"RIFF" + struct.pack("<I", len(body)) + body


def head(channels: int = 1, rate: int = RATE, bits: int = 16, form: int = 1) -> bytes:
    """A WAV's chunk that tells its form."""
    of_frame = channels * bits // 8
    fields = struct.pack("<HHIIHH", form, channels, rate, rate * of_frame & 0xFFFFFFFF, of_frame & 0xFFFF, bits)
    return chunk(b"fmt ", fields)


def with_count(flac_bytes: bytes, count: int) -> bytes:
    """A FLAC whose head claims another number of samples."""
    (form,) = struct.unpack_from(">Q", flac_bytes, 18)
    return flac_bytes[:18] + struct.pack(">Q", form >> 36 << 36 | count) + flac_bytes[26:]


def labelled(count: int, samples: int = 2000) -> list[tuple[bytes, str]]:
    """Clips of one of two pitches in noise, and which: by turns a WAV and a FLAC."""
    chance = np.random.default_rng(5)
    names = chance.choice(sorted(PITCHES), count)
    waves = [tone(samples, PITCHES[name], 0.3, seed) for seed, name in enumerate(names)]
    clips = [(flac if at % 2 else wav)(wave) for at, wave in enumerate(waves)]
    return list(zip(clips, map(str, names), strict=True))
